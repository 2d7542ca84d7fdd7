"""Free bodies for a simulator: boxes, balls, wheels, rods, piles of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

import saltus as sl

G = 9.81


def inertia(kind: str, mass: float, size: Sequence[float]) -> np.ndarray:
    """Of a solid body (3, 3); of capsules that of the box around them."""
    if kind == "sphere":
        return 0.4 * mass * size[0] ** 2 * np.eye(3)
    sides = np.array(size if kind == "box" else [2 * size[0], 2 * size[0], size[1]])
    return mass / 12.0 * np.diag((sides**2).sum() - sides**2)


def free(*bodies: tuple[str, Sequence[float]], mass: float = 1.0, moments: Sequence[float] | None = None) -> sl.Model:
    """One free flyer for each body (kind, size)."""
    builder = sl.ModelBuilder("bodies")
    for n, (kind, size) in enumerate(bodies):
        joint = builder.add_joint(f"joint_{n}", "free_flyer")
        tensor = inertia(kind, mass, size) if moments is None else np.diag(moments)
        builder.add_body(joint, mass, inertia=tensor, name=f"body_{n}")
        builder.add_collider(joint, kind, size, name=f"body_{n}")
    return builder.build()


def pose(position: Sequence[float], axis: Sequence[float] = (0, 0, 1), angle: float = 0.0) -> np.ndarray:
    """A free flyer's q (7,)."""
    return np.concatenate([position, Rotation.from_rotvec(angle * np.asarray(axis, float)).as_quat()])


def groove(angle: float, deep: float, radius: float = 0.1) -> list[sl.Ground]:
    """Two planes, each so many degrees from upright, so deep in a ball of this radius about the origin."""
    tilt = np.deg2rad(angle)
    height, across = -(radius - deep) / np.sin(tilt), np.cos(tilt)
    return [sl.Ground(height=height, normal=np.array([x, 0.0, np.sin(tilt)]), friction=0.7) for x in (across, -across)]


def world(model: sl.Model, motion: sl.Motion, frame: str = "body_0") -> np.ndarray:
    """Velocities (T, 6) of a body along the world's axes."""
    return np.asarray(sl.frame_velocity(model, motion.q, motion.v, frame, "local_world_aligned"))
