"""Terms of users: residuals by a kernel of theirs, or by a function in Python, and how these change.

    l += scale weight sum_r phi(r),      L_z += R' (w phi'),    L_zz += R' (w phi'') R           with R = dr/d(x, u)

A kernel is part of every node (costs.py) and of rollouts; here it is one batch, differentiated by dual numbers unless it has
slopes of its own. A function is called with whole horizons, and its slopes are differences unless it brings them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from saltus.arrays import Array, real_numbers
from saltus.constraints.tables import CONSTRAINTS
from saltus.derivatives.modes import jacobian
from saltus.dynamics.panel import clear
from saltus.kernel import Algorithm, Tables, kernel
from saltus.model.checks import ModelError
from saltus.model.tree import CONFIGURATIONS, INERTIAS, TREE, extent
from saltus.ocp.term_tables import TERMS
from saltus.ocp.term_values import _row_costs
from saltus.ocp.terms import Own, OwnFunction

STEP = 6e-6
"""Of central differences: the third root of what is rounded."""


class Nodes(NamedTuple):
    """All nodes, controls of the last zero."""

    q: Array  # (..., T + 1, nq)
    v: Array
    u: Array

    @property
    def x(self) -> Array:
        return np.concatenate([self.q, self.v], axis=-1)


@cache
def own_algorithms(residual: Callable[..., Any], derivative: Callable[..., Any] | None, size: int, n: int) -> Any:
    """Batches of a kernel of the user's with n numbers of reference, and of its slopes, if it has them."""
    tables = Tables([TREE, CONSTRAINTS, TERMS], CONFIGURATIONS, extent, INERTIAS)
    inputs = {"q": "nq", "v": "nv", "u": "nact", "reference": str(n)}

    def declared(made: Any, name: str, outputs: dict[str, str]) -> Algorithm:
        made.__name__ = name
        return Algorithm(made, tables, inputs, outputs, double_only=True)  # of the user, not of the package

    @kernel
    def own_residual(tree: Any, q: Any, v: Any, u: Any, reference: Any, w: Any, rows: Any) -> None:
        residual(tree, q, v, u, reference, rows)

    if derivative is None:
        return declared(own_residual, f"own_{residual.__name__}", {"rows": str(size)}), None

    @kernel
    def own_slopes(tree: Any, q: Any, v: Any, u: Any, reference: Any, w: Any, R: Any) -> None:
        clear(R, size * tree.nall)  # type: ignore[no-untyped-call]
        derivative(tree, q, v, u, reference, R)

    return (
        declared(own_residual, f"own_{residual.__name__}", {"rows": str(size)}),
        declared(own_slopes, f"own_{derivative.__name__}", {"R": f"{size} nall"}),
    )


def answer(term: Any, what: str, function: Any, nodes: Nodes, reference: Array, shape: tuple[int, ...]) -> Array:
    """What a function in Python returns for all nodes: (..., T + 1, *shape)."""
    given = [
        np.broadcast_to(array, array.shape) for array in (nodes.x, nodes.u, reference)
    ]  # to look at, not to write to
    try:
        found = real_numbers(function(*given), "what it returns").astype(float, copy=False)
    except Exception as error:
        raise ModelError(f"term {term.name!r}: its {what} raises {type(error).__name__}: {error}") from error
    wanted = (*nodes.q.shape[:-1], *shape)
    if found.shape != wanted:
        raise ModelError(f"term {term.name!r}: its {what} returns the shape {found.shape}, expected {wanted}")
    return found


class OwnTerms:
    """The terms of users of a problem."""

    def __init__(self, problem: Any) -> None:
        self.problem, self.terms = problem, problem.terms
        self.kernels = [term for term in self.terms.terms if isinstance(term, Own)]
        self.functions = [term for term in self.terms.terms if isinstance(term, OwnFunction)]

    def __bool__(self) -> bool:
        return bool(self.kernels or self.functions)

    def _reference(self, term: Any) -> Array:
        references: Array = self.problem.references[..., self.terms.places[term.name]]
        return references if references.shape[-1] else np.zeros((*references.shape[:-1], 1))

    def rows(self, term: Any, nodes: Nodes) -> Array:
        """(..., T + 1, size) the residual of a term."""
        reference = self._reference(term)
        if isinstance(term, Own):
            algorithm, _ = own_algorithms(term.residual, term.derivative, term.size, reference.shape[-1])
            return np.asarray(algorithm.call(self.problem.problem, (*nodes, reference)))
        return answer(term, "function", term.residual, nodes, reference, (term.size,))

    def slopes(self, term: Any, nodes: Nodes) -> Array:
        """(..., T + 1, size, 2 nv + nu)"""
        reference = self._reference(term)
        if isinstance(term, OwnFunction):
            if term.derivative is not None:
                shape = (term.size, self.problem.ndx + self.problem.nu)
                return answer(term, "derivative", term.derivative, nodes, reference, shape)
            return self._differences(term, nodes)
        algorithm, given = own_algorithms(term.residual, term.derivative, term.size, reference.shape[-1])
        if given is not None:
            return np.asarray(given.call(self.problem.problem, (*nodes, reference)))

        def residual(model: Any, q: Any, v: Any, controls: Any) -> Any:
            return algorithm.call(model, (q, v, controls, reference))

        return np.concatenate(jacobian(residual, self.problem.problem, tuple(nodes)), axis=-1)

    def _differences(self, term: Any, nodes: Nodes) -> Array:
        """All directions and both signs in one call."""
        problem = self.problem
        n, total = problem.ndx, problem.ndx + problem.nu
        steps = STEP * np.eye(total).reshape(total, *[1] * (nodes.q.ndim - 1), total)
        ends = []
        for sign in (1.0, -1.0):
            x = np.broadcast_to(nodes.x, (total, *nodes.x.shape))
            there = problem.integrate(x, np.broadcast_to(sign * steps[..., :n], (*x.shape[:-1], n)))
            u = nodes.u + sign * steps[..., n:]
            reference = np.broadcast_to(self._reference(term), (*x.shape[:-1], self._reference(term).shape[-1]))
            here = Nodes(
                there[..., : problem.nq], there[..., problem.nq :], np.broadcast_to(u, (total, *nodes.u.shape))
            )
            ends.append(answer(term, "function", term.residual, here, reference, (term.size,)))
        return np.moveaxis((ends[0] - ends[1]) / (2.0 * STEP), 0, -1)

    def activated(self, term: Any, rows: Array) -> tuple[Array, Array, Array]:
        """phi, phi' and phi'' of its rows."""
        place = self.terms.rows[term.name]
        whole, lost = np.zeros((*rows.shape[:-1], self.terms.sizes["nrow"])), ~np.isfinite(rows)
        whole[..., place] = np.where(lost, 0.0, rows)
        value, slope, curve = (each[..., place] for each in _row_costs.call(self.problem.problem, (whole,)))
        for each in (value, slope, curve) if lost.any() else ():
            each[lost] = np.nan
        return value, slope, curve

    def weight(self, term: Any) -> Array:
        """(..., T + 1) with the scale of the node."""
        weight: Array = self.problem.weights[..., self.terms.index(term.name)] * self.problem.data[..., 1]
        return weight

    def costs_of_functions(self, nodes: Nodes) -> Array | float:
        """(..., T + 1) what functions in Python cost: kernels count theirs themselves."""
        total: Array | float = 0.0
        for term in self.functions:
            value, _, _ = self.activated(term, self.rows(term, nodes))
            weight = self.weight(term)
            total = total + np.where(weight > 0, weight * value.sum(axis=-1), 0.0)
        return total

    def expand(self, nodes: Nodes, Lx: Array, Lu: Array, Lxx: Array, Lxu: Array, Luu: Array) -> None:
        """Adds the slopes and curvatures of all of them, controls of the last node included."""
        n = self.problem.ndx
        for term in [*self.kernels, *self.functions]:
            weight = self.weight(term)[..., None]
            counts = weight > 0  # where it does not, rows and slopes may be anything
            _, slope, curve = self.activated(term, np.where(counts, self.rows(term, nodes), 0.0))
            R = np.where(counts[..., None], self.slopes(term, nodes), 0.0)
            gradient = ((weight * slope)[..., None, :] @ R)[..., 0, :]
            hessian = np.swapaxes(R, -1, -2) @ ((weight * curve)[..., None] * R)
            Lx += gradient[..., :n]
            Lu += gradient[..., n:]
            Lxx += hessian[..., :n, :n]
            Lxu += hessian[..., :n, n:]
            Luu += hessian[..., n:, n:]
