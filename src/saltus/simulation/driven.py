"""What drives a robot in a rollout: its controller, springs, dampers and constraints, as accelerations.

    a(t, q, v):      M a + b = tau + disturbance(t, q, v) - damping v + J^T forces,      J a = goal  where constraints hold

Torques, masks and forces are those of the last call. The next solution starts from the forces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from saltus.arrays import Array, ArrayLike
from saltus.constraints.dynamics import ConstrainedDynamics
from saltus.dynamics.aba import aba
from saltus.model.model import Model

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
        damping: bool,
        disturbance: Function | None,
    ) -> None:
        """torques: (..., nv) or a function; masks: (..., steps + 1, nc) or a function."""
        self._constrained = robot if isinstance(robot, ConstrainedDynamics) else None
        self._model = robot.model if isinstance(robot, ConstrainedDynamics) else robot
        self._torques, self._disturbance, self._real = torques, disturbance, real
        self._resistance = self._model.damping.astype(real) if damping else None
        self._held: Array | None = None if callable(torques) else np.asarray(torques, real)
        constraints = self._constrained.constraints if self._constrained else ()
        self.nc, self.nm = len(constraints), sum(constraint.dim for constraint in constraints)
        self.tau = np.zeros(self._model.nv, real)
        self.forces = self._start = np.zeros((*leading, self.nm), real)
        self.active = np.zeros((*leading, self.nc), real)
        self._masks = masks if callable(masks) else np.broadcast_to(masks, (*leading, *masks.shape[-2:])).astype(real)

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        tau = self.tau = self._ask(self._torques, t, q, v) if self._held is None else self._held
        if self._disturbance is not None:
            tau = tau + self._ask(self._disturbance, t, q, v)
        if self._resistance is not None:
            tau = tau - self._resistance * v
        if self._constrained is None:
            return aba(self._model, q, v, tau)
        solution = self._constrained.solve(q, v, tau, self.active, start=self._start)
        self.forces = solution.forces
        met = solution.residual <= self._constrained.tolerance
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
        after = self._constrained.impact(q, v, self.active).v
        return np.where(hit[..., None], after, v)

    def _ask(self, function: Function, t: float, q: Array, v: Array) -> Array:
        return np.asarray(function(t, q, v), self._real)
