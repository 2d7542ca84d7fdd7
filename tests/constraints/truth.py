"""Constrained dynamics by dense matrices, from frame Jacobians and accelerations that are tested elsewhere.

Everything takes leading axes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

import saltus as sl

RANK = 1e-11  # of the Delassus matrix: eigenvalues below so much of the largest count as zero


@functools.cache
def frame_on(model: sl.Model, joint: int, placement: bytes) -> tuple[sl.Model, str]:
    """The model with one more frame; its name."""
    name = f"truth_{len(model.frames)}"
    frame = sl.Frame(name, joint, np.frombuffer(placement).reshape(4, 4), sl.FrameKind.OP, 0)
    return model.replace(frames=(*model.frames, frame)), name


def world_motion(model: sl.Model, joint: int, placement: Any, q: Any, v: Any) -> tuple[Any, ...]:
    """Placement, Jacobian, velocity and bias acceleration of a frame, the latter three in its own axes."""
    batch, nv = np.shape(q)[:-1], model.nv
    if joint == 0:
        X = np.broadcast_to(placement, (*batch, 4, 4))
        return X, np.zeros((*batch, 6, nv)), np.zeros((*batch, 6)), np.zeros((*batch, 6))
    model, name = frame_on(model, joint, np.asarray(placement).tobytes())
    return (
        sl.frame_placement(model, q, name),
        sl.frame_jacobian(model, q, name, "local"),
        sl.frame_velocity(model, q, v, name, "local"),
        sl.frame_acceleration(model, q, v, np.zeros(nv), name, "local"),
    )


def motion_matrix(X: Any) -> Any:
    """The 6x6 matrix that takes motions from the child frame to the parent."""
    R, p = X[..., :3, :3], X[..., :3, 3]
    matrix = np.zeros((*R.shape[:-2], 6, 6))
    matrix[..., :3, :3] = matrix[..., 3:, 3:] = R
    matrix[..., :3, 3:] = np.swapaxes(np.cross(p[..., None, :], np.swapaxes(R, -1, -2)), -1, -2)
    return matrix


def times(A: Any, x: Any) -> Any:
    return np.einsum("...ij,...j", A, x)


def transposed(A: Any) -> Any:
    return np.swapaxes(A, -1, -2)


def crossed(v: Any, m: Any) -> Any:
    lin = np.cross(v[..., 3:], m[..., :3]) + np.cross(v[..., :3], m[..., 3:])
    return np.concatenate([lin, np.cross(v[..., 3:], m[..., 3:])], -1)


def log6(X: Any) -> Any:
    """Of one placement, by the logarithm of the matrix."""
    from scipy.linalg import logm

    log = np.real(logm(X))
    return np.array([*log[:3, 3], log[2, 1], log[0, 2], log[1, 0]])


def rows_of(model: sl.Model, constraint: sl.Constraint, q: Any, v: Any) -> tuple[Any, Any, Any, Any]:
    """J, its drift, the relative velocity and, where a gain asks for it, the placement error of a constraint."""
    A, Ja, va, aa = world_motion(model, constraint.joint_a, constraint.placement_a, q, v)
    B, Jb, vb, ab = world_motion(model, constraint.joint_b, constraint.placement_b, q, v)
    AB = np.linalg.inv(A) @ B
    R, chosen = AB[..., :3, :3], list(constraint.rows)
    if constraint.point:
        J, speed = Ja[..., :3, :] - R @ Jb[..., :3, :], va[..., :3] - times(R, vb[..., :3])
        own, other = (a[..., :3] + np.cross(w[..., 3:], w[..., :3]) for a, w in ((aa, va), (ab, vb)))
        drift, error = own - times(R, other), -AB[..., :3, 3]
    else:
        X = motion_matrix(AB)
        J, speed = Ja - X @ Jb, va - times(X, vb)
        drift, error = aa - times(X, ab) + crossed(va, times(X, vb)), np.zeros_like(va)
        if constraint.kp:
            error = -np.array([log6(each) for each in AB.reshape(-1, 4, 4)]).reshape(va.shape)
    return J[..., chosen, :], drift[..., chosen], speed[..., chosen], error[..., chosen]


def jacobian(model: sl.Model, constraints: Sequence[sl.Constraint], q: Any) -> Any:
    """J (..., nm, nv) of all constraints."""
    still = np.zeros((*np.shape(q)[:-1], model.nv))
    return np.concatenate([rows_of(model, constraint, q, still)[0] for constraint in constraints], -2)


def delassus_inverse(M: Any, J: Any) -> tuple[Any, Any, Any]:
    """M^-1 J^T, the pseudo-inverse of the Delassus matrix J M^-1 J^T, and its eigenvalues."""
    response = np.linalg.solve(M, transposed(J))
    values, vectors = np.linalg.eigh(J @ response)
    regular = values > RANK * values[..., -1:]
    inverse = np.where(regular, 1.0 / np.where(regular, values, 1.0), 0.0)
    return response, vectors * inverse[..., None, :] @ transposed(vectors), values


def system(
    model: sl.Model,
    constraints: Sequence[sl.Constraint],
    q: Any,
    v: Any,
    tau: Any,
    active: Any = None,
    target: Any = None,
) -> tuple[Any, Any, Any, Any]:
    """M a = rest + J^T forces, J a = goal: M, rest, J and goal."""
    M, rest = sl.crba(model, q), np.asarray(tau) - sl.nonlinear_effects(model, q, v)
    rows, goals, start = [], [], 0
    for c, constraint in enumerate(constraints):
        J, drift, speed, error = rows_of(model, constraint, q, v)
        dim = constraint.dim
        asked = np.zeros(dim) if target is None else np.asarray(target)[..., start : start + dim]
        start += dim
        on = np.ones(1) if active is None else np.asarray(active)[..., c, None]
        rows.append(on[..., None] * J)
        goals.append(on * (asked - drift - constraint.kd * speed - constraint.kp * error))
    return M, rest, np.concatenate(rows, -2), np.concatenate(goals, -1)


def solve(
    model: sl.Model,
    constraints: Sequence[sl.Constraint],
    q: Any,
    v: Any,
    tau: Any,
    active: Any = None,
    target: Any = None,
) -> tuple[Any, Any, Any]:
    """Accelerations, forces of least norm, and J, by the pseudo-inverse of the Delassus matrix."""
    M, rest, J, goal = system(model, constraints, q, v, tau, active, target)
    response, inverse, _ = delassus_inverse(M, J)
    free = np.linalg.solve(M, rest[..., None])[..., 0]
    forces = times(inverse, goal - times(J, free))
    forces = forces + times(inverse, goal - times(J, free + times(response, forces)))  # once more, for the last digits
    return free + times(response, forces), forces, J


def iterated(
    model: sl.Model, constraints: Sequence[sl.Constraint], q: Any, v: Any, tau: Any, mu: Any, count: int, start: Any
) -> tuple[Any, Any]:
    """Accelerations and forces after so many steps of the proximal method, (J M^-1 J^T + diag(mu)) step = goal - J a."""
    M, rest, J, goal = system(model, constraints, q, v, tau)
    response, free = np.linalg.solve(M, transposed(J)), np.linalg.solve(M, rest[..., None])[..., 0]
    damped, forces = J @ response + np.diag(mu), np.asarray(start)
    for _ in range(count):
        left = goal - times(J, free + times(response, forces))
        forces = forces + np.linalg.solve(damped, left[..., None])[..., 0]
    return free + times(response, forces), forces
