"""Whether a robot stands: where its shapes meet the ground, and whether its motors can hold it there."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.optimize import linprog

import saltus as sl

GROUND = 1e-6  # what is as near to it touches [m]
FRICTION = 0.7


def lowest_points(shape: sl.Shape, X: np.ndarray) -> np.ndarray:
    """The corners of a box, or the lowest point of a rounded shape, placed at X (4, 4) in the world: (n, 3)."""
    center, R = X[:3, 3], X[:3, :3]
    if shape.kind == "box":
        signs = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))
        return center + (signs * shape.size) @ R.T
    down, axis = np.array([0.0, 0.0, -1.0]), R[:, 2]
    if shape.kind == "sphere":
        return (center + shape.size[0] * down)[None]
    ends = center + np.outer([-0.5, 0.5], shape.size[1] * axis)
    if shape.kind == "capsule":
        return ends + shape.size[0] * down
    across = down - down @ axis * axis
    length = np.linalg.norm(across)
    return ends + shape.size[0] * across / length if length > 1e-9 else ends


def low_points(model: sl.Model, q: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Where the shapes could touch the ground: points (3,), each with its joint."""
    placements = sl.joint_placements(model, q)
    return [
        (shape.joint, point)
        for shape in model.shapes
        for point in lowest_points(shape, placements[shape.joint] @ shape.placement)
    ]


def touching(model: sl.Model, q: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """The points (3,) of moving bodies that are on the ground, each with its joint."""
    return [(joint, point) for joint, point in low_points(model, q) if joint and abs(point[2]) < GROUND]


def point_jacobian(model: sl.Model, q: np.ndarray, joint: int, point: np.ndarray) -> np.ndarray:
    """Of the velocity in the world of a point (3,) that moves with a joint: (3, nv)."""
    linear, angular = np.split(sl.joint_jacobian(model, q, joint, "local_world_aligned"), 2)
    arm = point - sl.joint_placements(model, q)[joint][:3, 3]
    return linear - np.cross(arm, angular, axisb=0, axisc=0)


def loop_jacobian(model: sl.Model, q: np.ndarray, loop: sl.Loop) -> np.ndarray:
    """Of the distance between a loop's ends: (3, nv)."""
    ends = [sl.frame_jacobian(model, q, frame, "local_world_aligned")[:3] for frame in (loop.frame_a, loop.frame_b)]
    return ends[0] - ends[1]


def motor_limits(model: sl.Model) -> np.ndarray:
    """What motors can do at each degree of freedom (nv,): up to the effort limits, but nothing at a free flyer."""
    limits = model.effort_limit.copy()
    for joint in model.joints[1:]:
        if joint.kind == sl.JointKind.FREE_FLYER:
            limits[joint.iv : joint.iv + 6] = 0.0
    return limits


def holding_torques(model: sl.Model, q: np.ndarray) -> tuple[np.ndarray, float]:
    """Torques (nv,) that hold the robot still, and the largest share of a limit that any of them takes.

    Exact statics: gravity = tau + J^T f, contact forces inside friction pyramids, any forces at the loops. Of all
    solutions the one that takes the smallest share.
    """
    gravity, limits = sl.gravity(model, q), motor_limits(model)
    pyramid = np.array([[FRICTION, 0, 1], [-FRICTION, 0, 1], [0, FRICTION, 1], [0, -FRICTION, 1]]) / 4.0
    edges = [pyramid @ point_jacobian(model, q, joint, point) for joint, point in touching(model, q)]
    loops = [loop_jacobian(model, q, loop) for loop in model.loops]
    blocks = [np.eye(model.nv), *edges, *loops]
    columns = np.concatenate(blocks)
    free, pushing, total = 3 * len(loops), 4 * len(edges), len(columns)
    within = np.concatenate([np.eye(model.nv), -np.eye(model.nv)])  # |tau| <= share * limits
    result = linprog(
        np.eye(total + 1)[-1],
        A_ub=np.hstack([within, np.zeros((2 * model.nv, total - model.nv)), -np.tile(limits, 2)[:, None]]),
        b_ub=np.zeros(2 * model.nv),
        A_eq=np.hstack([columns.T, np.zeros((model.nv, 1))]),
        b_eq=gravity,
        bounds=[(None, None)] * model.nv + [(0, None)] * pushing + [(None, None)] * free + [(0, None)],
    )
    assert result.success, result.message
    return result.x[: model.nv], result.x[-1]
