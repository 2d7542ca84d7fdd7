"""What constraints compare with their targets, against frames and solutions; and its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from tests.closeness import assert_close

ROBOTS = {
    "points": ("quadruped", lambda robot: [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet]),
    "surfaces with gains": ("humanoid", lambda robot: [
        sl.Contact(robot, foot, 6, anchor=np.eye(4), kp=20.0, kd=7.0) for foot in sl.robot_frames("humanoid").feet
    ]),
    "loops with gains": ("biped", lambda robot: sl.model_loops(robot, kp=30.0, kd=5.0)),
    "a planar loop": ("four_bar", sl.model_loops),
}  # fmt: skip


def prepared(name: str) -> tuple[sl.ConstrainedDynamics, tuple[Any, ...]]:
    robot_name, constraints = ROBOTS[name]
    robot = sl.load_robot(robot_name)
    rng = np.random.default_rng(3)
    q = sl.integrate(robot, robot.neutral(), 0.3 * rng.normal(size=(7, robot.nv)))
    v, a = rng.normal(size=(2, 7, robot.nv))
    return sl.ConstrainedDynamics(robot, constraints(robot)), (q, v, a)


def test_of_points_they_are_classical_accelerations() -> None:
    dynamics, (q, v, a) = prepared("points")
    rows = dynamics.constraint_accelerations(q, v, a).reshape(7, 4, 3)
    for k, foot in enumerate(sl.robot_frames("quadruped").feet):
        velocity, rise = (
            sl.frame_velocity(dynamics.model, q, v, foot),
            sl.frame_acceleration(dynamics.model, q, v, a, foot),
        )
        assert_close(rows[:, k], rise[:, :3] + np.cross(velocity[:, 3:], velocity[:, :3]), 1e-12)


@pytest.mark.parametrize("name", ROBOTS)
def test_solutions_leave_their_targets(name: str) -> None:
    dynamics, (q, v, tau) = prepared(name)
    target = np.random.default_rng(0).normal(size=dynamics.problem.nm) if name != "a planar loop" else None
    solution = dynamics.solve(q, v, tau, target=target)
    left = dynamics.constraint_accelerations(q, v, solution.a) - (0.0 if target is None else target)
    assert np.abs(left).max() < 1e-7


@pytest.mark.parametrize("name", ROBOTS)
def test_derivatives(name: str) -> None:
    dynamics, inputs = prepared(name)
    ours = dynamics.constraint_acceleration_derivatives(*inputs)
    for mode, tolerance in {"ad": 1e-12, "fdc": 1e-7}.items():
        right = dynamics.constraint_acceleration_derivatives(*inputs, mode=mode)
        for one, other in zip(ours, right, strict=True):
            assert_close(one, other, tolerance, what=mode)


def test_rows_that_are_not_active_do_not_change() -> None:
    dynamics, inputs = prepared("points")
    active = np.array([1.0, 0.0, 1.0, 0.0])
    for matrix in dynamics.constraint_acceleration_derivatives(*inputs, active=active):
        assert matrix[:, :3].any() and not matrix[:, 3:6].any()
