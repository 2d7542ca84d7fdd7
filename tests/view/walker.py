"""A quadruped of primitive shapes, and a motion of it with contact forces."""

from __future__ import annotations

import numpy as np

import saltus as sl

FEET = ["FL_foot", "FR_foot", "HL_foot", "HR_foot"]
DARK, ORANGE, LIGHT = (0.16, 0.17, 0.19, 1.0), (0.93, 0.49, 0.19, 1.0), (0.82, 0.84, 0.87, 1.0)


def moved(x: float, y: float, z: float) -> np.ndarray:
    placement = np.eye(4)
    placement[:3, 3] = x, y, z
    return placement


def quadruped(shapes: bool = True) -> sl.Model:
    builder = sl.ModelBuilder("quadruped")
    trunk = builder.add_joint("root", "free_flyer")
    builder.add_body(trunk, 12.0, inertia=np.diag([0.1, 0.3, 0.35]))
    parts: list[tuple[int, str, tuple[float, ...], np.ndarray, tuple[float, ...]]] = [
        (trunk, "box", (0.5, 0.2, 0.12), np.eye(4), LIGHT),
        (trunk, "ellipsoid", (0.18, 0.09, 0.05), moved(0, 0, 0.06), ORANGE),
    ]
    sideways = np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    for name, x, y in (("FL", 0.22, 0.1), ("FR", 0.22, -0.1), ("HL", -0.22, 0.1), ("HR", -0.22, -0.1)):
        limits = {"lower": -2.6, "upper": 2.6, "velocity_limit": 10.0, "effort_limit": 40.0}
        hip = builder.add_joint(f"{name}_hip", "revolute", trunk, moved(x, y, 0), (1, 0, 0), **limits)
        thigh = builder.add_joint(f"{name}_thigh", "revolute", hip, moved(0, 0.6 * y, 0), (0, 1, 0), **limits)
        shank = builder.add_joint(f"{name}_shank", "revolute", thigh, moved(0, 0, -0.25), (0, 1, 0), **limits)
        for joint, mass in ((hip, 1.0), (thigh, 1.0), (shank, 0.3)):
            builder.add_body(joint, mass, inertia=np.eye(3) * 1e-3)
        builder.add_frame(f"{name}_foot", shank, moved(0, 0, -0.25))
        parts += [
            (hip, "cylinder", (0.05, 0.08), sideways, DARK),
            (thigh, "capsule", (0.035, 0.2), moved(0, 0, -0.12), ORANGE),
            (shank, "capsule", (0.02, 0.21), moved(0, 0, -0.13), DARK),
            (shank, "sphere", (0.03,), moved(0, 0, -0.25), LIGHT),
        ]
    for joint, kind, size, placement, color in parts if shapes else ():
        builder.add_shape(joint, kind, size, placement, color=color)
    builder.add_reference("standing", standing())
    return builder.build()


def standing() -> np.ndarray:
    q = np.zeros(19)
    q[2], q[6], q[7:] = 0.5 * np.cos(0.7) + 0.03, 1.0, np.tile([0.0, 0.7, -1.4], 4)
    return q


def crouch(frames: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """Down and forward, all feet on the ground: q (T, 19) and forces (T, 4, 3) that carry the robot's weight."""
    bend = np.linspace(0.7, 1.2, frames)
    q = np.tile(standing(), (frames, 1))
    q[:, 0], q[:, 2] = np.linspace(0.0, 0.3, frames), 0.5 * np.cos(bend) + 0.03
    q[:, 8::3], q[:, 9::3] = bend[:, None], -2 * bend[:, None]
    forces = np.zeros((frames, 4, 3))
    forces[..., 0], forces[..., 2] = 10.0, quadruped(False).total_mass * 9.81 / 4
    return q, forces
