"""IPOPT on a nonlinear programme whose functions are Python's, by way of CasADi's callbacks; every iterate is kept.

    minimise cost(x)    subject to    lower <= x <= upper,    least <= constraints(x) <= most

Derivatives are the programme's own. IPOPT gets them as sparse matrices; the programme makes them dense, and says which
entries can differ from zero.

Reference: A. Waechter, L. T. Biegler, On the implementation of a primal-dual interior point filter line search algorithm for
large-scale nonlinear programming (2006).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

import casadi
import numpy as np

from saltus.arrays import Array


class Programme(Protocol):
    """x has n entries, the constraints have m."""

    lower: Array  # (n,)
    upper: Array  # (n,)
    least: Array  # (m,)
    most: Array  # (m,)
    jacobian_pattern: Array  # (m, n) of bool
    hessian_pattern: Array  # (n, n) of bool

    def cost(self, x: Array) -> float: ...

    def gradient(self, x: Array) -> Array:
        """(n,) of the cost."""

    def constraints(self, x: Array) -> Array:
        """(m,)"""

    def jacobian(self, x: Array) -> Array:
        """(m, n) of the constraints."""

    def hessian(self, x: Array, scale: float, multipliers: Array) -> Array:
        """(n, n) of scale * cost + multipliers . constraints."""


@dataclass(frozen=True)
class Optimum:
    x: Array  # (n,)
    multipliers: Array  # (m,) of the constraints
    bound_multipliers: Array  # (n,)
    status: str  # IPOPT's
    iterates: Array  # (iterations + 1, n)
    seconds: float

    @property
    def iterations(self) -> int:
        return len(self.iterates) - 1


def minimise(programme: Programme, start: Array, tolerance: float = 1e-8, most_iterations: int = 200) -> Optimum:
    """The optimum that IPOPT finds from `start` (n,), by its own settings but for these two.

    tolerance: IPOPT's `tol`, on the scaled optimality error.
    """
    n, m = len(programme.lower), len(programme.least)
    J, H = _Pattern(programme.jacobian_pattern), _Pattern(np.triu(programme.hessian_pattern))
    one, x, g, none = (casadi.Sparsity.dense(size, 1) for size in (1, n, m, 0))
    at = [("x", x), ("p", none)]
    dual = [("lam_f", one), ("lam_g", g)]
    cost, gradient, constraints = programme.cost, programme.gradient, programme.constraints
    derivatives = {
        "grad_f": _Callback(
            "grad_f", at, [("f", one), ("grad_f_x", x)], lambda x, _: [cost(x), gradient(x)],
        ),
        "jac_g": _Callback(
            "jac_g", at, [("g", g), ("jac_g_x", J.sparsity)],
            lambda x, _: [constraints(x), J.filled(programme.jacobian(x))],
        ),
        "hess_lag": _Callback(
            "hess_lag", at + dual, [("triu_hess_gamma_x_x", H.sparsity)],
            lambda x, _, scale, multipliers: [H.filled(programme.hessian(x, scale.item(), multipliers))],
        ),
    }  # fmt: skip
    iterates: list[Array] = []
    shapes = {"f": one, "x": x, "lam_x": x, "g": g, "lam_g": g}
    seen = [(name, shapes.get(name, none)) for name in casadi.nlpsol_out()]
    watch = _Callback("watch", seen, [("go_on", one)], lambda *found: [iterates.append(found[0]) or 0.0])
    f = _Callback("cost", at[:1], [("f", one)], lambda x: [cost(x)])
    c = _Callback("constraints", at[:1], [("g", g)], lambda x: [constraints(x)])
    unknowns = casadi.MX.sym("x", n)
    quiet = {"print_level": 0, "sb": "yes"}
    options = {
        **derivatives, "iteration_callback": watch, "no_nlp_grad": True, "print_time": False,
        "ipopt": {"tol": tolerance, "max_iter": most_iterations, "acceptable_iter": 0, **quiet},
    }  # fmt: skip
    solver = casadi.nlpsol("solver", "ipopt", {"x": unknowns, "f": f(unknowns), "g": c(unknowns)}, options)
    begin = perf_counter()
    found = solver(x0=start, lbx=programme.lower, ubx=programme.upper, lbg=programme.least, ubg=programme.most)
    spent = perf_counter() - begin
    x, multipliers, bound_multipliers = (np.asarray(found[name]).ravel() for name in ("x", "lam_g", "lam_x"))
    return Optimum(x, multipliers, bound_multipliers, solver.stats()["return_status"], np.array(iterates), spent)


class _Callback(casadi.Callback):  # type: ignore[misc]
    """A function of NumPy vectors as one of CasADi's. Inputs and outputs: name and sparsity."""

    def __init__(
        self,
        name: str,
        inputs: Sequence[tuple[str, Any]],
        outputs: Sequence[tuple[str, Any]],
        function: Callable[..., list[Any]],
    ) -> None:
        super().__init__()
        self._inputs, self._outputs, self._function = inputs, outputs, function
        self.construct(name, {})

    def get_n_in(self) -> int:
        return len(self._inputs)

    def get_n_out(self) -> int:
        return len(self._outputs)

    def get_name_in(self, i: int) -> str:
        return self._inputs[i][0]

    def get_name_out(self, i: int) -> str:
        return self._outputs[i][0]

    def get_sparsity_in(self, i: int) -> Any:
        return self._inputs[i][1]

    def get_sparsity_out(self, i: int) -> Any:
        return self._outputs[i][1]

    def eval(self, arguments: list[Any]) -> list[Any]:
        return self._function(*(np.asarray(argument).ravel() for argument in arguments))


class _Pattern:
    """A pattern of bool, as CasADi has it, and dense matrices in it."""

    def __init__(self, pattern: Array) -> None:
        columns, rows = np.nonzero(pattern.T)  # column by column
        self.sparsity = casadi.Sparsity.triplet(*pattern.shape, rows.tolist(), columns.tolist())
        self._entries = rows, columns

    def filled(self, matrix: Array) -> Any:
        return casadi.DM(self.sparsity, matrix[self._entries])
