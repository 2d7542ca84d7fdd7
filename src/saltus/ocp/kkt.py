"""Newton's method on the whole horizon at once: one dense system an iteration, the truth for all others.

    | H  C' | | z |     | g |     z = (dx_0 ... dx_T, du_0 ... du_{T-1}),  C z = gaps: dx_0 = gap_0,
    | C  0  | | l | = - |-c |     dx_{t+1} - F_x dx_t - F_u du_t = gap_{t+1}

Candidates are xs (+) a dx, us + a du; they are no rollouts, so gaps close with the steps. O(T^3). `BoxKKT` solves the
quadratic program with bounds of controls instead. For tests, and for problems of some ten nodes.

Reference: J. Nocedal, S. Wright, Numerical optimization (2006), section 18.1; Crocoddyl 3.2.0's SolverKKT.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saltus.arrays import Array
from saltus.control.fccqp import fccqp
from saltus.control.quadratic_program import QPStatus
from saltus.ocp.problem import Expansion, Trial
from saltus.ocp.solver import HUGE, Direction, Solver, refuse_bad_bounds
from saltus.ocp.vector_problem import FREE


def dense(expansion: Expansion, gaps: Array, controlled: Array) -> tuple[Array, Array, Array, Array]:
    """H, g, C and c of a horizon, controls that do nothing with a cost of their own alone."""
    (T, n, m), lead = expansion.Fu.shape[-3:], expansion.Fu.shape[:-3]
    acts = controlled[:, None, None]
    states, controls = (T + 1) * n, T * m
    H = np.zeros((*lead, states + controls, states + controls))
    C = np.zeros((*lead, states, states + controls))
    t = np.arange(T)
    whole = np.arange(T + 1)

    x, u, spread = slice(0, states), slice(states, states + controls), np.moveaxis
    xx, xu, uu = (np.zeros((*lead, *shape)) for shape in ((T + 1, n, T + 1, n), (T + 1, n, T, m), (T, m, T, m)))
    xx[..., whole, :, whole, :] = spread(expansion.Lxx, -3, 0)
    xu[..., t, :, t, :] = spread(expansion.Lxu * acts, -3, 0)
    uu[..., t, :, t, :] = spread(expansion.Luu * acts + (1 - acts) * np.eye(m), -3, 0)
    H[..., x, x], H[..., x, u] = xx.reshape(*lead, states, states), xu.reshape(*lead, states, controls)
    H[..., u, x] = H[..., x, u].swapaxes(-1, -2)
    H[..., u, u] = uu.reshape(*lead, controls, controls)
    Cx, Cu = np.zeros((*lead, T + 1, n, T + 1, n)), np.zeros((*lead, T + 1, n, T, m))
    Cx[..., whole, :, whole, :] = np.eye(n)
    Cx[..., t + 1, :, t, :] = spread(-expansion.Fx, -3, 0)
    Cu[..., t + 1, :, t, :] = spread(-expansion.Fu * acts, -3, 0)
    C[..., :, x], C[..., :, u] = Cx.reshape(*lead, states, states), Cu.reshape(*lead, states, controls)
    g = np.concatenate([expansion.Lx.reshape(*lead, -1), (expansion.Lu * controlled[:, None]).reshape(*lead, -1)], -1)
    return H, g, C, gaps.reshape(*lead, -1)


class KKT(Solver):
    """Newton's method on all nodes at once.

    `dxs` (..., T + 1, ndx), `dus` (..., T, nu) and `multipliers` (..., T + 1, ndx) are its direction.
    """

    def set_candidate(self, *arguments: Any, **named: Any) -> None:
        super().set_candidate(*arguments, **named)
        problem = self.problem
        self.dxs = np.zeros((*self.batch, problem.T + 1, problem.ndx))
        self.multipliers = np.zeros_like(self.dxs)
        self.dus = np.zeros((*self.batch, problem.T, problem.nu))

    def compute_direction(self, recalculate: bool = True) -> Any:
        """See Solver; regularisation is added to H."""
        if recalculate or self.expansion is None:
            self.expansion = self.problem.calc_diff(self.xs, self.us)
        nodes = np.full(self.batch, -1)
        if not all(np.isfinite(array).all() for array in self.expansion[:7]):
            nodes = self.set_aside(self.expansion)
        self.H, self.g, self.C, self.c = dense(self.expansion, self.iterate.gaps, self.controlled)
        z, self.multipliers = self.solve_system()
        states = self.multipliers.shape[-1]
        shape = (*self.batch, self.problem.T + 1, self.problem.ndx)
        self.dxs, self.multipliers = z[..., :states].reshape(shape), self.multipliers.reshape(shape)
        self.dus = z[..., states:].reshape(*self.batch, self.problem.T, self.problem.nu)
        return nodes

    def solve_system(self) -> tuple[Array, Array]:
        """z and multipliers."""
        H, C = self.H, self.C
        rows, n = C.shape[-2:]
        K = np.zeros((*self.batch, n + rows, n + rows))
        K[..., :n, :n], K[..., n:, :n], K[..., :n, n:] = H, C, C.swapaxes(-1, -2)
        right = np.concatenate([-self.g, self.c], -1)[..., None]
        try:
            found = np.linalg.solve(K, right)[..., 0]
        except np.linalg.LinAlgError:
            found = (np.linalg.pinv(K) @ right)[..., 0]
        return found[..., :n], found[..., n:]

    def roll(self, lengths: Array) -> Trial:
        """See Solver: no rollouts."""
        a = lengths.reshape(-1, *(1,) * len(self.batch), 1, 1)
        xs = self.problem.integrate(np.broadcast_to(self.xs, (len(lengths), *self.xs.shape)), a * self.dxs)
        us = self.us + a * self.dus
        return Trial(xs, us, np.stack([self.cost_of(x, u) for x, u in zip(xs, us, strict=True)]))

    def cost_of(self, xs: Array, us: Array) -> Array:
        """(...) of a candidate; infinite where one is so far off that the problem refuses it."""
        try:
            costs = np.asarray(self.problem.calc(xs, us).costs.sum(-1))
            return np.where(np.abs(xs).max((-1, -2)) < HUGE, costs, np.inf)
        except ValueError:
            return np.full(self.batch, np.inf)

    def improvements(self, found: Trial, sound: Any) -> Array:
        """(2, ...): -g'z and -z'Hz."""
        z = np.concatenate([self.dxs.reshape(*self.batch, -1), self.dus.reshape(*self.batch, -1)], -1)
        slope = -np.einsum("...i,...i->...", self.g, z)
        curve = -np.einsum("...i,...ij,...j->...", z, self.H, z)
        return np.stack([slope, curve])

    def acceptable(self, d: Array, expected: Array, gained: Array) -> Any:
        options = self.options
        return (d[0] < options.th_grad) | ~self.iterate.feasible | (gained > options.th_acceptstep * expected)

    def advance(self, length: Array, found: Trial) -> tuple[Array, Any]:
        """The true gaps of the candidates that are taken."""
        a = np.asarray(length)[..., None, None]
        xs, us = self.problem.integrate(self.xs, a * self.dxs), self.us + a * self.dus
        gaps, _, _ = self.find_gaps(xs, us)
        return gaps, np.abs(gaps).max((-1, -2)) < max(self.options.th_gaptol, ROUNDING)

    def stopping_criteria(self) -> Any:
        """What is left of the system's right-hand side, with multipliers: its square."""
        l = self.multipliers.reshape(*self.batch, -1)
        dual = self.g + np.einsum("...ij,...i->...j", self.C, l)
        self.stop = squares(dual) + squares(self.c)
        return self.stop

    def outcome(self) -> Direction:
        """It has no gains: the slope of its value function are the multipliers."""
        problem, n, m = self.problem, self.problem.ndx, self.problem.nu
        zeros = np.zeros
        return Direction(
            zeros((*self.batch, problem.T, m, n)), -self.dus, zeros((*self.batch, problem.T, m)), -self.multipliers,
            zeros((*self.batch, problem.T + 1, n, n)), zeros((*self.batch, problem.T + 1, n)), zeros((*self.batch, 5)),
        )  # fmt: skip


def squares(array: Array) -> Array:
    """(...) their sum, infinite where it is too large."""
    with np.errstate(over="ignore"):
        found: Array = (array**2).sum(-1)
    return found


ROUNDING = 1e-11
"""Gaps up to this are what rounding leaves."""


class BoxKKT(KKT):
    """The same with bounds of controls: a quadratic program an iteration (fccqp)."""

    def set_candidate(self, *arguments: Any, **named: Any) -> None:
        refuse_bad_bounds(self)
        super().set_candidate(*arguments, **named)

    def solve_system(self) -> tuple[Array, Array]:
        """See KKT."""
        problem, rows = self.problem, self.C.shape[-2]
        free = np.full((*self.batch, rows), FREE)
        lower, upper = (
            np.concatenate([sign * free, np.clip(bound - self.us, -FREE, FREE).reshape(*self.batch, -1)], -1)
            for sign, bound in ((-1, problem.u_lower), (1, problem.u_upper))
        )
        found = fccqp(self.H, self.g, self.C, self.c, lower=lower, upper=upper, tolerance=1e-12)
        bad = np.asarray(found.status) == QPStatus.INFEASIBLE
        if bad.any():
            raise ValueError(f"{type(self).__name__}: the bounds of controls exclude each other")
        self.pressed = found.z[..., rows:]
        return found.x, found.y

    def stopping_criteria(self) -> Any:
        """As KKT's, with multipliers of bounds."""
        l = self.multipliers.reshape(*self.batch, -1)
        dual = self.g + np.einsum("...ij,...i->...j", self.C, l)
        dual[..., l.shape[-1] :] += self.pressed
        self.stop = squares(dual) + squares(self.c)
        return self.stop
