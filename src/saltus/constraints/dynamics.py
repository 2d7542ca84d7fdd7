"""Constrained dynamics of a model: constraints, a method, and what is computed with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from saltus.arrays import Array, ArrayLike
from saltus.constraints.constrained_aba import _constrained_aba
from saltus.constraints.constraint import Constraint
from saltus.constraints.kkt import solve_kkt
from saltus.constraints.loop_aba import _loop_aba
from saltus.constraints.prox_ltl import _prox_ltl
from saltus.constraints.prox_ltls import _prox_ltls
from saltus.constraints.prox_pv import _prox_pv
from saltus.constraints.nodes import Plan
from saltus.constraints.operational_space import OSIM_METHODS, RESPONSES, FactoredOSIM, _osim_base, _response
from saltus.constraints.tables import ConstrainedModel
from saltus.model.checks import ModelError
from saltus.model.model import Model

METHODS: dict[str, Callable[[ConstrainedModel, tuple[Any, ...]], tuple[Array, Array, Array]]] = {
    "constrained_aba": _constrained_aba.call,
    "loop_aba": _loop_aba.call,
    "prox_ltl": _prox_ltl.call,
    "prox_ltls": _prox_ltls.call,
    "prox_pv": _prox_pv.call,
    "kkt": solve_kkt,
}
"""Each takes (q, v, tau, active, target, start) and returns accelerations, forces, and (iterations, residual, change)."""

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)

TREES_ONLY = {"constrained_aba", "prox_pv"}
"""Methods for contacts; they know nothing of constraints between two moving bodies."""


DEFAULT_MU: dict[str, float] = {}
"""Where 1e-5 is too little: this method adds 1 / mu to an inertia matrix, and rounds at that size."""


class Status(IntEnum):
    """How an iteration ended."""

    CONVERGED = 0  # all constraints are met to the tolerance
    LEAST_SQUARES = (
        1  # they contradict each other: accelerations do not change any more, and miss them as little as can be
    )
    STOPPED = 2  # after the most iterations allowed


@dataclass(frozen=True, eq=False)
class Solution:
    """Accelerations and forces, each with the leading shape of the inputs, and how the iteration ended."""

    a: Array  # (..., nv) [rad/s^2, m/s^2]
    forces: Array  # (..., nm) on body a of each constraint, along its rows [N, N m]
    report: Array  # (..., 3) iterations; largest row that is left of the constraints; and its last change
    tolerance: float

    @property
    def iterations(self) -> Array:
        """(...)"""
        return self.report[..., 0].astype(int)

    @property
    def residual(self) -> Array:
        """(...), the largest row that is left of the constraints [m/s^2, rad/s^2]."""
        return self.report[..., 1]

    @property
    def status(self) -> Array:
        """(...) of `Status`."""
        still = np.where(self.report[..., 2] <= self.tolerance, Status.LEAST_SQUARES, Status.STOPPED)
        return np.where(self.residual <= self.tolerance, Status.CONVERGED, still)


class ConstrainedDynamics:
    """A model under constraints, solved by the method named."""

    def __init__(
        self,
        model: Model,
        constraints: Sequence[Constraint],
        method: str = "constrained_aba",
        mu: float | None = None,
        tolerance: float = 1e-9,
        most_iterations: int = 50,
    ) -> None:
        """mu: the amount that is added to the Delassus matrix's diagonal [1/kg, 1/(kg m^2)]; smaller converges in fewer
        iterations, larger keeps more digits. By default what suits the method.
        tolerance: on what is left of the constraints [m/s^2, rad/s^2].
        """
        if method not in METHODS:
            raise ModelError(f"unknown method {method!r}, expected one of {', '.join(METHODS)}")
        mu = DEFAULT_MU.get(method, 1e-5) if mu is None else mu
        loops = [constraint.name for constraint in constraints if constraint.joint_b > 0]
        if loops and method in TREES_ONLY:
            rest = ", ".join(set(METHODS) - TREES_ONLY)
            raise ModelError(f"method {method!r} is for contacts; {loops[0]!r} ties two bodies, expected one of {rest}")
        if not (0 < mu < np.inf and tolerance >= 0 and most_iterations > 0):
            raise ModelError(
                f"mu = {mu}, tolerance = {tolerance}, most_iterations = {most_iterations}: expected positive numbers"
            )
        self.model, self.constraints, self.method = model, tuple(constraints), method
        self.mu, self.tolerance = mu, tolerance
        self._problem = ConstrainedModel(model, constraints, mu, tolerance, most_iterations)
        self._run, self._loops = METHODS[method], loops
        self._plans: dict[Plan, ConstrainedModel] = {}
        self._defaults = {
            dtype: (np.ones(self._problem.nc, dtype), np.zeros(self._problem.nm, dtype)) for dtype in (DOUBLE, SINGLE)
        }

    def solve(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        active: ArrayLike | None = None,
        target: ArrayLike | None = None,
        start: ArrayLike | None = None,
    ) -> Solution:
        """Accelerations and forces for `q` (..., nq), `v` and `tau` (..., nv).

        active: (..., nc), 1 for constraints that hold and 0 for others; all by default.
        target: (..., nm), accelerations asked of the constraints, zero by default.
        start: (..., nm), forces to start from.
        """
        dtypes = {getattr(x, "dtype", None) for x in (q, v, tau)}
        everything, nothing = self._defaults[SINGLE if dtypes == {SINGLE} else DOUBLE]
        inputs: tuple[Any, ...] = (
            q, v, tau, everything if active is None else active, nothing if target is None else target,
            nothing if start is None else start,
        )  # fmt: skip
        return Solution(*self._run(self._problem, inputs), self.tolerance)

    def delassus(self, q: ArrayLike, active: ArrayLike | None = None, method: str | None = None) -> Array:
        """The Delassus matrix J M^-1 J^T (..., nm, nm) at `q` (..., nq), rows of constraints that are not active zero.

        method: "pv_r" (by default), "pv" or "efpa" for contacts; "ltl" (by default if there are loops).
        """
        able = [name for name, method in OSIM_METHODS.items() if method.delassus is not None]
        name = self._osim_method(method, able, "pv_r")
        plan = OSIM_METHODS[name].delassus
        assert plan is not None
        return OSIM_METHODS[name].algorithm.call(self._planned(plan), (q, self._active(q, active)))  # type: ignore[no-any-return]

    def osim(self, q: ArrayLike, active: ArrayLike | None = None, method: str | None = None) -> Array:
        """The damped operational-space inertia matrix (J M^-1 J^T + mu)^-1 (..., nm, nm) at `q` (..., nq).

        method: "caba" (by default), "caba_f", "pv", "efpa", "pv_r" or "pv_f" for contacts; "ltl" (by default if there are
        loops). Those that give factors give their product here; see `osim_factors`.
        """
        name = self._osim_method(method, list(OSIM_METHODS), "caba")
        chosen = OSIM_METHODS[name]
        if chosen.algorithm is _osim_base:
            return self.osim_factors(q, active, name).matrix
        return chosen.algorithm.call(self._planned(chosen.osim), (q, self._active(q, active)))  # type: ignore[no-any-return]

    def osim_factors(self, q: ArrayLike, active: ArrayLike | None = None, method: str = "caba_f") -> FactoredOSIM:
        """The same of a floating robot as B - Z C Z^T: what limbs do, and what their base adds.

        method: "caba_f" or "pv_f".
        """
        able = [name for name, method in OSIM_METHODS.items() if method.algorithm is _osim_base]
        problem = self._planned(OSIM_METHODS[self._osim_method(method, able, method)].osim)
        return FactoredOSIM(problem, *_osim_base.call(problem, (q, self._active(q, active))))

    def delassus_times(self, q: ArrayLike, x: ArrayLike, active: ArrayLike | None = None) -> Array:
        """The Delassus matrix times x (..., nm), for contacts, without making the matrix."""
        return self._respond("delassus", q, x, active)

    def osim_times(self, q: ArrayLike, x: ArrayLike, active: ArrayLike | None = None) -> Array:
        """The damped operational-space inertia matrix times x (..., nm), for contacts, without making the matrix."""
        return self._respond("osim", q, x, active)

    def _respond(self, what: str, q: ArrayLike, x: ArrayLike, active: ArrayLike | None) -> Array:
        if self._loops:
            raise ModelError(f"{what}_times is for contacts; {self._loops[0]!r} ties two bodies")
        return _response.call(self._planned(RESPONSES[what]), (q, self._active(q, active), x))  # type: ignore[no-any-return]

    def _osim_method(self, method: str | None, able: list[str], default: str) -> str:
        name = method or ("ltl" if self._loops else default)
        if name not in able:
            raise ModelError(f"unknown method {name!r}, expected one of {', '.join(able)}")
        if self._loops and name != "ltl":
            raise ModelError(f"method {name!r} is for contacts; {self._loops[0]!r} ties two bodies, expected 'ltl'")
        return name

    def _planned(self, plan: Plan) -> ConstrainedModel:
        if plan not in self._plans:
            self._plans[plan] = ConstrainedModel(self.model, self.constraints, self.mu, plan=plan)
        return self._plans[plan]

    def _active(self, q: ArrayLike, active: ArrayLike | None) -> ArrayLike:
        if active is not None:
            return active
        return self._defaults[SINGLE if getattr(q, "dtype", None) == SINGLE else DOUBLE][0]
