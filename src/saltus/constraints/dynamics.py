"""Constrained dynamics of a model: constraints, a method, and what is computed with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike
from saltus.constraints.constrained_aba import _constrained_aba
from saltus.constraints.constraint import Constraint
from saltus.constraints.kkt import solve_kkt
from saltus.constraints.kkt_factors import KKTFactors, factor_kkt
from saltus.constraints.loop_aba import _loop_aba
from saltus.constraints.nodes import Plan
from saltus.constraints.operational_space import OSIM_METHODS, RESPONSES, FactoredOSIM, _osim_base
from saltus.constraints.prox_ltl import _prox_ltl
from saltus.constraints.prox_ltls import _prox_ltls
from saltus.constraints.prox_pv import _prox_pv
from saltus.constraints.response import _response
from saltus.constraints.system import _constrained_system
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

SOFT = {"soft": "prox_ltls", "pv_soft": "constrained_aba"}
"""The first iteration of another method: constraints as springs of compliance mu, as MuJoCo has them."""

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)

TREES_ONLY = {"constrained_aba", "prox_pv"}
"""Methods for contacts; they know nothing of constraints between two moving bodies."""


class Status(IntEnum):
    """How an iteration ended."""

    CONVERGED = 0  # all constraints are met to the tolerance
    LEAST_SQUARES = (
        1  # they contradict each other: accelerations do not change any more, and miss them as little as can be
    )
    STOPPED = 2  # after the most iterations allowed


class Solution(NamedTuple):
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
        mu: float = 1e-6,
        tolerance: float = 1e-9,
        most_iterations: int = 50,
    ) -> None:
        """mu: the amount that is added to the Delassus matrix's diagonal [1/kg, 1/(kg m^2)]; smaller converges in fewer
        iterations, larger keeps more digits.
        tolerance: on what is left of the constraints [m/s^2, rad/s^2].
        """
        if method not in METHODS and method not in SOFT:
            raise ModelError(f"unknown method {method!r}, expected one of {', '.join([*METHODS, *SOFT])}")
        loops = [constraint.name for constraint in constraints if constraint.joint_b > 0]
        solver, most_iterations = (SOFT[method], 1) if method in SOFT else (method, most_iterations)
        if loops and solver == "constrained_aba":
            solver = "loop_aba"
        if loops and solver in TREES_ONLY:
            rest = ", ".join(set(METHODS) - TREES_ONLY)
            raise ModelError(f"method {method!r} is for contacts; {loops[0]!r} ties two bodies, expected one of {rest}")
        if not (0 < mu < np.inf and tolerance >= 0 and most_iterations > 0):
            raise ModelError(
                f"mu = {mu}, tolerance = {tolerance}, most_iterations = {most_iterations}: expected positive numbers"
            )
        self.model, self.constraints, self.method = model, tuple(constraints), method
        self.mu, self.tolerance = mu, tolerance
        self._problem = ConstrainedModel(model, constraints, mu, tolerance, most_iterations)
        self._run, self._loops = METHODS[solver], loops
        self._plans: dict[Plan, ConstrainedModel] = {}
        none = np.zeros(self._problem.nm)
        self._one = (np.ones(self._problem.nc), none, none)
        self._kept: dict[Any, tuple[Any, ...]] = {}

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
        rest = self._one if q.__class__ is np.ndarray and q.ndim == 1 and q.dtype is DOUBLE else self._rest(q, v, tau)
        if not (active is target is start is None):
            given = zip((active, target, start), rest, strict=True)
            rest = tuple(default if value is None else value for value, default in given)
        a, forces, report = self._run(self._problem, (q, v, tau, *rest))
        return Solution(a, forces, report, self.tolerance)

    def _rest(self, *arrays: Any) -> tuple[Any, ...]:
        """All constraints active, no targets and no forces to start from: beside these arrays, of their type, where they are."""
        q, on_gpu = arrays[0], hasattr(arrays[0], "__cuda_array_interface__")
        dtype = SINGLE if all(_is_single(x) for x in arrays) else DOUBLE
        key = (dtype, on_gpu or (q.shape[:-1] if isinstance(q, np.ndarray) else ()))
        rest = self._kept.get(key)
        if rest is None:
            rest = tuple(x.astype(dtype) for x in self._one)
            if on_gpu:
                from saltus.kernel.cuda import to_device

                rest = tuple(map(to_device, rest))
            elif isinstance(q, np.ndarray) and q.ndim == 2:  # the short way wants a leading axis of all inputs
                rest = tuple(np.tile(x, (len(q), 1)) for x in rest)
            self._kept = {key: rest}
        return rest

    def factor(self, q: ArrayLike, active: ArrayLike | None = None, M: ArrayLike | None = None) -> KKTFactors:
        """The sparse Cholesky factors of the KKT matrix [[-mu, J], [J^T, M]] at `q` (..., nq).

        M: (..., nv, nv), any positive definite matrix that is zero where the inertia matrix is, by the structure of the tree; by
        default that matrix.
        """
        still = np.zeros(self.model.nv, getattr(q, "dtype", DOUBLE))
        inputs = (q, still, still, self._active(q, active), np.zeros(self._problem.nm, still.dtype))
        inertia, _, J, _ = _constrained_system.call(self._problem, inputs)
        return factor_kkt(self._problem, inertia if M is None else M, J)

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
        return self._rest(q)[0] if active is None else active


def _is_single(array: Any) -> bool:
    interface = getattr(array, "__cuda_array_interface__", None)
    return (getattr(array, "dtype", None) if interface is None else np.dtype(interface["typestr"])) == SINGLE
