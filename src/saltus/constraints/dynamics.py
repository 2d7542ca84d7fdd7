"""Constrained dynamics of a model: constraints, a method, and what is computed with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saltus.arrays import Array, ArrayLike
from saltus.constraints.constrained_aba import _constrained_aba
from saltus.constraints.constraint import Constraint
from saltus.constraints.impact import Impact, _impact
from saltus.constraints.inverse_dynamics import InverseDynamics, _inverse_dynamics
from saltus.constraints.kkt import solve_kkt
from saltus.constraints.prox_ltl import _prox_ltl
from saltus.constraints.prox_ltls import _prox_ltls
from saltus.constraints.report import Reported
from saltus.constraints.tables import ConstrainedModel
from saltus.dynamics.rnea import gravity
from saltus.model.checks import ModelError
from saltus.model.joints import JointKind
from saltus.model.model import Model

METHODS: dict[str, Callable[[ConstrainedModel, tuple[Any, ...]], tuple[Array, Array, Array]]] = {
    "constrained_aba": _constrained_aba.call,
    "prox_ltl": _prox_ltl.call,
    "prox_ltls": _prox_ltls.call,
    "kkt": solve_kkt,
}
"""Each takes (q, v, tau, active, target, start), those in `TAKE_ROWS` the user's rows as well, and returns accelerations,
forces, and (iterations, residual, change)."""

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)

TREES_ONLY = {"constrained_aba"}
"""Methods for contacts; they know nothing of constraints between two moving bodies."""

TAKE_ROWS = {"prox_ltl", "prox_ltls", "kkt"}
"""Methods that take rows given by users."""

DEFAULT_MU = {"prox_ltls": 1e-3}
"""Where 1e-5 is too little: this method adds 1 / mu to an inertia matrix, and rounds at that size."""


@dataclass(frozen=True, eq=False)
class Solution(Reported):
    """Accelerations and forces, each with the leading shape of the inputs, and how the iteration ended."""

    a: Array  # (..., nv) [rad/s^2, m/s^2]
    forces: Array  # (..., nm) on body a of each constraint, along its rows [N, N m]
    report: (
        Array  # (..., 3) iterations; largest row that is left of the constraints [m/s^2, rad/s^2]; and its last change
    )
    tolerance: float


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
        given = [constraint.name for constraint in constraints if constraint.dofs]
        if given and method not in TAKE_ROWS:
            rest = ", ".join(sorted(TAKE_ROWS))
            raise ModelError(f"method {method!r} takes no rows of users, such as {given[0]!r}, expected one of {rest}")
        if not (0 < mu < np.inf and tolerance >= 0 and most_iterations > 0):
            raise ModelError(
                f"mu = {mu}, tolerance = {tolerance}, most_iterations = {most_iterations}: expected positive numbers"
            )
        self.model, self.constraints, self.method = model, tuple(constraints), method
        self.mu, self.tolerance, self.most_iterations = mu, tolerance, most_iterations
        self._problem = ConstrainedModel(model, constraints, mu, tolerance, most_iterations)
        self._actuated: dict[bytes, ConstrainedModel] = {}
        self._run = METHODS[method]
        self._defaults = {
            dtype: (
                np.ones(self._problem.nc, dtype),
                np.zeros(self._problem.nm, dtype),
                np.zeros((self._problem.nu, model.nv), dtype),
            )
            for dtype in (DOUBLE, SINGLE)
        }

    def solve(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        active: ArrayLike | None = None,
        target: ArrayLike | None = None,
        start: ArrayLike | None = None,
        external: ArrayLike | None = None,
        rows: ArrayLike | None = None,
    ) -> Solution:
        """Accelerations and forces for `q` (..., nq), `v` and `tau` (..., nv).

        active: (..., nc), 1 for constraints that hold and 0 for others; all by default.
        target: (..., nm), accelerations asked of the constraints, zero by default.
        start: (..., nm), forces to start from.
        external: (..., njoints, 6), forces on each joint's body in its own frame, linear first [N, N m], as in `aba`.
        rows: (..., nu, nv), the rows of all `UserRows`, one below the other.
        """
        everything, nothing, given = self._filled(rows, q, v, tau)
        if external is not None:
            tau = tau + (gravity(self.model, q) - gravity(self.model, q, external))
        inputs: tuple[Any, ...] = (
            q, v, tau, everything if active is None else active, nothing if target is None else target,
            nothing if start is None else start,
        )  # fmt: skip
        if self.method in TAKE_ROWS:
            inputs = (*inputs, given)
        return Solution(*self._run(self._problem, inputs), self.tolerance)

    def impact(
        self,
        q: ArrayLike,
        v: ArrayLike,
        active: ArrayLike | None = None,
        restitution: ArrayLike = 0.0,
        rows: ArrayLike | None = None,
    ) -> Impact:
        """Velocities just after the active constraints are met at once, at `q` (..., nq), with velocities `v` (..., nv).

            M (v+ - v-) = J^T impulses,      J v+ = -restitution J v-

        active: (..., nc), as in `solve`: the contacts that strike, and whatever holds already (loops, other feet).
        restitution: one number or (..., nc), from 0 (nothing bounces) to 1 (no energy is lost).
        rows: as in `solve`.

        What holds already has no velocity to give back. The method is that of `prox_ltl`, whatever `solve` uses.

        >>> import numpy as np, saltus as sl
        >>> robot = sl.load_robot("quadruped")
        >>> feet = [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet]
        >>> q, v = robot.reference_configurations["standing"], np.zeros(robot.nv)
        >>> v[2] = -1.0  # it lands
        >>> after = sl.ConstrainedDynamics(robot, feet).impact(q, v)
        >>> speed = sl.frame_velocity(robot, q, after.v, "LF_FOOT")[:3]
        >>> bool(np.abs(speed).max() < 1e-8), bool(after.impulses[2] > 0)
        (True, True)
        """
        everything, _, given = self._filled(rows, q, v)
        if not hasattr(restitution, "__cuda_array_interface__"):
            restitution = np.asarray(restitution, everything.dtype)
            if not ((restitution >= 0) & (restitution <= 1)).all():
                raise ValueError(f"impact: restitution is {restitution}, expected numbers from 0 to 1")
            if restitution.shape[-1:] not in ((), everything.shape):
                expected = f"expected a number or (..., {len(everything)})"
                raise ValueError(f"impact: restitution has shape {restitution.shape}, {expected}")
            restitution = restitution * everything
        inputs = (q, v, everything if active is None else active, restitution, given)
        after, impulses, report = _impact.call(self._problem, inputs)
        return Impact(after, impulses, report, self.tolerance)

    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        active: ArrayLike | None = None,
        actuated: ArrayLike | None = None,
        rows: ArrayLike | None = None,
    ) -> InverseDynamics:
        """Torques and forces of the constraints for the accelerations `a` (..., nv), at `q` (..., nq) and `v` (..., nv).

            M a + b = S^T tau + J^T forces

        Forces are the least, weighted as the constraints are, that carry what has no actuator; torques do the rest. Where no
        forces can, the rows without actuator are missed by as little as can be, as `residual` [N, N m] and `status` say.

        active, rows: as in `solve`.
        actuated: (nv,), whether each degree of freedom has an actuator; by default all but those of free flyers.

        >>> import numpy as np, saltus as sl
        >>> robot = sl.load_robot("quadruped")
        >>> feet = [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet]
        >>> dynamics, still = sl.ConstrainedDynamics(robot, feet), np.zeros(robot.nv)
        >>> q = robot.reference_configurations["standing"]
        >>> standing = dynamics.inverse_dynamics(q, still, still)
        >>> bool(np.abs(dynamics.solve(q, still, standing.tau).a).max() < 1e-8)
        True
        """
        everything, _, given = self._filled(rows, q, v, a)
        inputs = (q, v, a, everything if active is None else active, given)
        tau, forces, report = _inverse_dynamics.call(self._driven(actuated), inputs)
        return InverseDynamics(tau, forces, report, self.tolerance)

    def _filled(self, rows: ArrayLike | None, *inputs: ArrayLike) -> tuple[Array, Array, ArrayLike]:
        """All constraints active, zeros for each row of them, and the user's rows; in the precision of the inputs."""
        dtypes = {getattr(x, "dtype", None) for x in inputs}
        everything, nothing, none = self._defaults[SINGLE if dtypes == {SINGLE} else DOUBLE]
        return everything, nothing, none if rows is None and not self._problem.nu else self._checked(rows)

    def _checked(self, rows: ArrayLike) -> ArrayLike:
        """The user's rows; kernels check the rest of them."""
        users, shape = [c for c in self.constraints if c.dofs], (self._problem.nu, self.model.nv)
        if not users:
            raise ValueError("rows are given, but no constraint takes them, expected one made by UserRows")
        if rows is None:
            names = ", ".join(repr(user.name) for user in users)
            raise ValueError(f"rows is None, expected (..., {shape[0]}, {shape[1]}), for {names}")
        if not hasattr(rows, "__cuda_array_interface__") and np.shape(rows)[-2:] == shape:
            used, start = np.any(np.reshape(rows, (-1, *shape)), axis=0), 0
            for user in users:
                for k in np.flatnonzero(used[start : start + user.dim].any(0)):
                    if k not in user.dofs:
                        raise ValueError(
                            f"rows are not 0 in column {k}, expected only in the dofs {user.dofs} of {user.name!r}"
                        )
                start += user.dim
        return rows

    def _driven(self, actuated: ArrayLike | None) -> ConstrainedModel:
        """The problem, with the degrees of freedom that have actuators marked."""
        if actuated is None:
            driven = np.ones(self.model.nv, bool)
            for joint in self.model.joints:
                if joint.kind == JointKind.FREE_FLYER:
                    driven[joint.iv : joint.iv + joint.nv] = False
        else:
            driven = np.asarray(actuated, bool)
            if driven.shape != (self.model.nv,):
                raise ValueError(f"inverse_dynamics: actuated has shape {driven.shape}, expected ({self.model.nv},)")
        key = driven.tobytes()
        if key not in self._actuated:
            self._actuated[key] = ConstrainedModel(
                self.model,
                self.constraints,
                self.mu,
                self.tolerance,
                self.most_iterations,
                np.flatnonzero(~driven).tolist(),
            )
        return self._actuated[key]
