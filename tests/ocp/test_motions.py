"""Motions: each is found from its start, and does what its name says."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.ocp.astronaut import astronaut, circling
from saltus.ocp.motions import MOTIONS, SwingUpWeights, reach, swing_up

FINE = 10
"""Steps of a rollout in one of a plan."""


def solved(exercise: sl.Exercise, iterations: int) -> sl.OCPResult:
    result = exercise.solve(max_iterations=iterations)
    assert result.status == sl.OCPStatus.SOLVED, result.reason
    return result


def test_all_have_a_title_and_a_start() -> None:
    assert {"reach", "double_pendulum", "cartpole", "astronaut", "walk", "trot", "pace", "bound", "jump"} <= set(
        MOTIONS
    )
    for make in MOTIONS.values():
        exercise = make()
        assert exercise.problem.model.name in exercise.title
        assert exercise.xs.shape == (exercise.problem.T + 1, exercise.problem.nx)
        assert exercise.us.shape == (exercise.problem.T, exercise.problem.nu)
        assert all(each.default is not inspect.Parameter.empty for each in inspect.signature(make).parameters.values())


def test_a_motion_with_another_robot() -> None:
    robot = sl.load_robot("quadruped").replace(name="other")
    with pytest.raises(sl.ModelError, match="expected its feet to be given"):
        MOTIONS["trot"](robot=robot)
    assert MOTIONS["reach"](robot=sl.load_robot("arm").replace(name="other")).title == "other reaches"


def end_of(exercise: sl.Exercise, result: sl.OCPResult) -> tuple[Any, Any]:
    return result.xs[-1, : exercise.problem.nq], result.xs[-1, exercise.problem.nq :]


@pytest.mark.parametrize("target", [(0.45, -0.3, 0.4), (0.3, 0.4, 0.6)])
def test_the_arm_reaches(target: tuple[float, float, float]) -> None:
    pose = np.diag([1.0, -1.0, -1.0, 1.0])
    pose[:3, 3] = target
    exercise = reach(target=pose)
    result = solved(exercise, 40)
    q, v = end_of(exercise, result)
    assert np.abs(sl.frame_placement(exercise.problem.model, q, "tool") - pose).max() < 2e-3
    assert np.abs(v).max() < 0.05
    assert (np.abs(result.us) <= exercise.problem.u_upper).all()


@pytest.mark.parametrize("seconds", [1.5, 2.0, 2.5])
def test_the_double_pendulum_is_up(seconds: float) -> None:
    robot = sl.load_robot("double_pendulum")
    exercise = swing_up(robot, [np.pi, 0.0], seconds=seconds)
    result = solved(exercise, 80)
    q, v = end_of(exercise, result)
    assert np.abs(q - [np.pi, 0.0]).max() < 1e-2 and np.abs(v).max() < 1e-2
    lift = np.abs(sl.gravity(robot, [np.pi / 2, 0.0])).max()
    assert np.abs(result.us).max() < lift  # the motors could not hold it out: it swings
    assert np.sign(result.xs[:, 0]).min() < 0.0


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_the_cartpole_is_up(side: float) -> None:
    robot = sl.load_robot("cartpole")
    weights = SwingUpWeights(tip=10.0, control=0.01, near=0.1)
    exercise = swing_up(robot, [0.0, side * np.pi], weights=weights)
    result = solved(exercise, 90)
    q, v = end_of(exercise, result)
    assert np.abs(q - [0.0, side * np.pi]).max() < 1e-2 and np.abs(v).max() < 1e-2
    assert (np.abs(result.us) <= exercise.problem.u_upper).all()
    assert np.abs(result.xs[:, 0]).max() < 2.0  # on its rail


def turned(robot: sl.Model, q: Any) -> Any:
    """Of the trunk, about the long axis, turns counted [deg]."""
    return np.degrees(np.unwrap(2.0 * np.arctan2(q[:, 5], q[:, 6])))


def test_circles_have_no_momentum() -> None:
    exercise = astronaut(dt=0.05)
    robot = exercise.problem.model
    momentum = sl.centroidal_momentum(robot, exercise.xs[:, : robot.nq], exercise.xs[:, robot.nq :])
    assert np.abs(momentum).max() < 1e-12
    some = [turned(robot, circling(robot, circles, 0.7, 300, 0.04).xs[:, : robot.nq])[-1] for circles in (2, 4)]
    assert some[1] == pytest.approx(2.0 * some[0], rel=0.02) and some[0] > 90.0


@pytest.mark.parametrize(("circles", "width"), [(5, 0.81), pytest.param(6, 0.72, marks=pytest.mark.slow)])
def test_the_astronaut_turns_about_without_momentum(circles: int, width: float) -> None:
    """What was found, and what its torques do in rollouts of a tenth of the step."""
    exercise = astronaut(circles, width)
    result, problem, robot = solved(exercise, 30), exercise.problem, exercise.problem.model
    q, v = result.xs[:, : robot.nq], result.xs[:, robot.nq :]
    assert turned(robot, q)[-1] == pytest.approx(360.0, abs=0.1)
    assert np.abs(v[-1]).max() < 1e-2
    tau = np.zeros((problem.T * FINE, robot.nv))
    tau[:, 6:] = np.repeat(result.us, FINE, axis=0)
    step = float(problem.dt[0])
    motion = sl.rollout(robot, q[0], v[0], sl.OverTime(tau), duration=problem.T * step, dt=step / FINE)
    assert np.abs(sl.centroidal_momentum(robot, motion.q, motion.v)).max() < 1e-9
    assert turned(robot, motion.q)[-1] == pytest.approx(360.0, abs=1.0)
    assert np.degrees(np.linalg.norm(sl.difference(robot, motion.q[0], motion.q[-1])[3:6])) < 1.0
    lower, upper = robot.lower_position_limit[7:], robot.upper_position_limit[7:]
    assert (motion.q[:, 7:] > lower - 0.05).all() and (motion.q[:, 7:] < upper + 0.05).all()
    assert (np.abs(result.us) <= problem.u_upper).all()
