"""What drives a robot in a rollout: its controller, springs, dampers and constraints, as accelerations.

    a(t, q, v):      M a + b = tau + disturbance(t, q, v) + passive + sum_i J_i^T external_i + J^T forces,
                     passive = stiffness (rest - q) - damping v,
                     J a = goal  where constraints hold

Torques, masks and forces are those of the last call. The next solution starts from the forces. Where `on_invalid` is "mark",
whatever is not finite has accelerations that are NaN, and controllers never see it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.constraints.dynamics import ConstrainedDynamics
from saltus.constraints.report import Status
from saltus.dynamics.aba import aba
from saltus.dynamics.passive import passive_torques
from saltus.model.model import Model

Mask = NDArray[np.bool_]

Function = Callable[[float, Array, Array], ArrayLike]
"""Of the time [s] and the state (..., nq), (..., nv): torques (..., nv), or masks (..., nc)."""


class Driven:
    """The accelerations (..., nv) of a robot, as a function of time and state."""

    def __init__(
        self,
        robot: Model | ConstrainedDynamics,
        torques: Any,
        masks: Any,
        leading: tuple[int, ...],
        real: Any,
        springs: bool,
        damping: bool,
        disturbance: Function | None,
        external: Any,
        on_invalid: OnInvalid,
    ) -> None:
        """torques: (..., nv) or a function; masks: (..., steps + 1, nc) or one;
        external: None, (..., njoints, 6) or one."""
        self._constrained = robot if isinstance(robot, ConstrainedDynamics) else None
        self._model = robot.model if isinstance(robot, ConstrainedDynamics) else robot
        self._torques, self._disturbance, self._real, self._on_invalid = torques, disturbance, real, on_invalid
        self._external = external if callable(external) or external is None else np.asarray(external, real)
        self._springs = springs and bool(self._model.stiffness.any())
        self._resistance = self._model.damping.astype(real) if damping else None
        self._held: Array | None = None if callable(torques) else np.asarray(torques, real)
        constraints = self._constrained.constraints if self._constrained else ()
        self.nc, self.nm = len(constraints), sum(constraint.dim for constraint in constraints)
        self.tau = np.zeros(self._model.nv, real)
        self.forces = self._start = np.zeros((*leading, self.nm), real)
        self.active = np.zeros((*leading, self.nc), real)
        self.status = np.full(leading, int(Status.CONVERGED))
        """(...) the worst of the solver since it was set."""
        self._masks = masks if callable(masks) else np.broadcast_to(masks, (*leading, *masks.shape[-2:])).astype(real)

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        tau = self.tau = self._ask(self._torques, t, q, v) if self._held is None else self._held
        if self._disturbance is not None:
            tau = tau + self._ask(self._disturbance, t, q, v)
        if self._springs:
            tau = tau + passive_torques(self._model, q, on_invalid=self._on_invalid)
        if self._resistance is not None:
            tau = tau - self._resistance * v
        external = self._ask(self._external, t, q, v) if callable(self._external) else self._external
        if self._constrained is None:
            return aba(self._model, q, v, tau, external, on_invalid=self._on_invalid)
        solution = self._constrained.solve(
            q, v, tau, self.active, start=self._start, external=external, on_invalid=self._on_invalid
        )
        status = solution.status
        if status.__class__ is Status:
            status = np.array(int(status))
        self.forces, self.status = solution.forces, np.maximum(self.status, status)
        met = status == int(Status.CONVERGED)
        # Forces on what cannot be met grow with every iteration: they are no start.
        self._start = self.forces if met.all() else np.where(met[..., None], self.forces, 0.0)
        return solution.a

    def hold(self, t: float, q: Array, v: Array) -> None:
        """Asks the controller, and keeps its torques until the next time."""
        if callable(self._torques):
            self._held = self._ask(self._torques, t, q, v)

    def switch(self, k: int, t: float, q: Array, v: Array) -> Array:
        """Takes the masks of step k; velocities after the impacts of what switches on, those before where nothing does."""
        if self._constrained is None:
            return v
        before = self.active
        if callable(self._masks):
            self.active = np.broadcast_to(self._ask(self._masks, t, q, v), before.shape)
        else:
            self.active = self._masks[..., k, :].copy()  # a view of a larger array takes the slow way into kernels
        hit = np.asarray((self.active > before).any(axis=-1))
        if k == 0 or not hit.any():
            return v
        impact = self._constrained.impact(q, v, self.active, on_invalid=self._on_invalid)
        self.status = np.where(hit, np.maximum(self.status, impact.status), self.status)
        return np.where(hit[..., None], impact.v, v)

    def _ask(self, function: Function, t: float, q: Array, v: Array) -> Array:
        if self._on_invalid == "mark":
            q, v = standing_in(self._model, lost(q, v), q, v)
        return np.asarray(function(t, q, v), self._real)


def lost(q: Array, v: Array) -> Mask:
    """Which states (...) are not finite."""
    return np.asarray(~(np.isfinite(q).all(axis=-1) & np.isfinite(v).all(axis=-1)))


def standing_in(model: Model, lost: Mask, q: Array, v: Array) -> tuple[Array, Array]:
    """The states, with a robot at rest in the place of those that are lost."""
    if not lost.any():
        return q, v
    return np.where(lost[..., None], model.neutral().astype(q.dtype), q), np.where(lost[..., None], v.dtype.type(0), v)
