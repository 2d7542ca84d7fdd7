"""Constrained dynamics by dense matrices, from frame Jacobians and accelerations that are tested elsewhere."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import saltus as sl


@functools.cache
def frame_on(model: sl.Model, joint: int, placement: bytes) -> tuple[sl.Model, str]:
    """The model with one more frame; its name."""
    name = f"truth_{len(model.frames)}"
    frame = sl.Frame(name, joint, np.frombuffer(placement).reshape(4, 4), sl.FrameKind.OP, 0)
    return model.replace(frames=(*model.frames, frame)), name


def world_motion(model: sl.Model, joint: int, placement: Any, q: Any, v: Any) -> tuple[Any, ...]:
    """Placement, Jacobian, velocity and bias acceleration of a frame, the latter three in its own axes."""
    nv = model.nv
    if joint == 0:
        return np.asarray(placement), np.zeros((6, nv)), np.zeros(6), np.zeros(6)
    model, name = frame_on(model, joint, np.asarray(placement).tobytes())
    return (
        sl.frame_placement(model, q, name),
        sl.frame_jacobian(model, q, name, "local"),
        sl.frame_velocity(model, q, v, name, "local"),
        sl.frame_acceleration(model, q, v, np.zeros(nv), name, "local"),
    )


def motion_matrix(X: Any) -> Any:
    """The 6x6 matrix that takes motions from the child frame to the parent."""
    R, p = X[:3, :3], X[:3, 3]
    skew = np.array([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])
    return np.block([[R, skew @ R], [np.zeros((3, 3)), R]])


def crossed(v: Any, m: Any) -> Any:
    return np.concatenate([np.cross(v[3:], m[:3]) + np.cross(v[:3], m[3:]), np.cross(v[3:], m[3:])])


def rows_of(model: sl.Model, constraint: sl.Constraint, q: Any, v: Any) -> tuple[Any, Any, Any, Any]:
    """J, its drift, the relative velocity and the placement error of a constraint."""
    A, Ja, va, aa = world_motion(model, constraint.joint_a, constraint.placement_a, q, v)
    B, Jb, vb, ab = world_motion(model, constraint.joint_b, constraint.placement_b, q, v)
    AB = np.linalg.inv(A) @ B
    R, chosen = AB[:3, :3], list(constraint.rows)
    if constraint.point:
        J, speed = Ja[:3] - R @ Jb[:3], va[:3] - R @ vb[:3]
        drift = aa[:3] + np.cross(va[3:], va[:3]) - R @ (ab[:3] + np.cross(vb[3:], vb[:3]))
        return J[chosen], drift[chosen], speed[chosen], -AB[:3, 3][chosen]
    X = motion_matrix(AB)
    J, speed, drift = Ja - X @ Jb, va - X @ vb, aa - X @ ab + crossed(va, X @ vb)
    from scipy.linalg import logm

    log = np.real(logm(AB))
    error = -np.array([*log[:3, 3], log[2, 1], log[0, 2], log[1, 0]])
    return J[chosen], drift[chosen], speed[chosen], error[chosen]


def solve(
    model: sl.Model, constraints: list[sl.Constraint], q: Any, v: Any, tau: Any, active: Any = None, target: Any = None
) -> tuple[Any, Any, Any]:
    """Accelerations, forces of least norm, and J, by the pseudo-inverse of the Delassus matrix."""
    M, rest = sl.crba(model, q), np.asarray(tau) - sl.nonlinear_effects(model, q, v)
    rows, goals, start = [], [], 0
    for c, constraint in enumerate(constraints):
        J, drift, speed, error = rows_of(model, constraint, q, v)
        asked = np.zeros(len(J)) if target is None else np.asarray(target)[start : start + len(J)]
        start += len(J)
        on = 1.0 if active is None else active[c]
        rows.append(on * J)
        goals.append(on * (asked - drift - constraint.kd * speed - constraint.kp * error))
    J, goal = np.vstack(rows), np.concatenate(goals)
    free, response = np.linalg.solve(M, rest), np.linalg.solve(M, J.T)
    forces = np.linalg.pinv(J @ response, rtol=1e-11, hermitian=True) @ (goal - J @ free)
    return free + response @ forces, forces, J
