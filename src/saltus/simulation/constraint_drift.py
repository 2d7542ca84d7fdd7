"""How far constraints have come apart in a motion.

Constraints are held by accelerations; what integration adds to the placements of their frames is their drift,

    linear:   R_A^T (p_A - p_ref)  [m],            angular:   log(R_ref^T R_A)  [rad],

the placement of frame A in frame B against `ref`: the identity where a constraint is pulled back (kp > 0), else what it was
when the constraint switched on. Only the rows of a constraint count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from saltus.arrays import Array
from saltus.constraints.constraint import Constraint
from saltus.constraints.dynamics import ConstrainedDynamics
from saltus.dynamics.kinematics import joint_placements
from saltus.simulation.conservation import Drift
from saltus.simulation.rollout import Trajectory


def constraint_drift(dynamics: ConstrainedDynamics, trajectory: Trajectory) -> list[Drift]:
    """The drift over time of each constraint, in metres, and then in radians for those that hold orientations.

    It is zero while a constraint does not hold, and NaN where a robot is lost. There is no size to compare it with:
    `relative` is NaN.

    >>> import saltus as sl
    >>> linkage = sl.load_robot("four_bar")
    >>> closed = sl.ConstrainedDynamics(linkage, sl.model_loops(linkage), method="prox_ltl")
    >>> swing = sl.rollout(closed, linkage.neutral(), np.zeros(3), duration=0.1)
    >>> [loop] = constraint_drift(closed, swing)
    >>> loop.name, loop.unit, bool(loop.absolute.max() < 1e-6)
    ('closure', 'm', True)
    """
    placements = np.asarray(joint_placements(dynamics.model, trajectory.q, on_invalid="mark"))
    return [
        drift
        for c, constraint in enumerate(dynamics.constraints)
        for drift in _drifts(constraint, placements, trajectory.active[..., c] > 0)
    ]


def _drifts(constraint: Constraint, placements: Array, active: NDArray[np.bool_]) -> list[Drift]:
    """From placements (..., T, njoints, 4, 4) and whether the constraint holds (..., T)."""
    A = placements[..., constraint.joint_a, :, :] @ constraint.placement_a
    B = placements[..., constraint.joint_b, :, :] @ constraint.placement_b
    X = np.linalg.inv(B) @ A
    ref = np.eye(4) if constraint.kp else np.take_along_axis(X, _switched_on(active)[..., None, None], axis=-3)
    shift = np.swapaxes(X[..., :3, :3], -1, -2) @ (X - ref)[..., :3, 3:]
    turn = _rotation_vector(np.swapaxes(ref[..., :3, :3], -1, -2) @ X[..., :3, :3])
    rows = {
        "m": (shift[..., 0], [row for row in constraint.rows if row < 3]),
        "rad": (turn, [row - 3 for row in constraint.rows if row >= 3]),
    }
    return [
        Drift(
            constraint.name, unit, np.linalg.norm(error[..., chosen], axis=-1) * active, np.zeros(active.shape[:-1])
        )
        for unit, (error, chosen) in rows.items()
        if chosen
    ]  # fmt: skip


def _switched_on(active: NDArray[np.bool_]) -> NDArray[Any]:
    """For every time (..., T) the index of the one at which what holds now has begun to."""
    begins = active.copy()
    begins[..., 1:] &= ~active[..., :-1]
    return np.maximum.accumulate(np.where(begins, np.arange(active.shape[-1]), 0), axis=-1)


def _rotation_vector(R: Array) -> Array:
    """(..., 3) [rad] of rotations (..., 3, 3) by less than half a turn."""
    skew = 0.5 * (R - np.swapaxes(R, -1, -2))
    sine_axis = np.stack([skew[..., 2, 1], skew[..., 0, 2], skew[..., 1, 0]], axis=-1)
    sine = np.linalg.norm(sine_axis, axis=-1)
    angle = np.arctan2(sine, 0.5 * (np.trace(R, axis1=-2, axis2=-1) - 1.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sine_axis * np.where(sine > 0, angle / sine, 1.0)[..., None])
