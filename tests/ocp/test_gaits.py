"""Gaits: solved from standing still, feet where they should be, forces that push and do not slip; on several robots."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.ocp.gaits import Foot, Gait, ahead, bound, jump, pace, strides, trot, walk

MISSED = 5e-3
"""By how much feet miss their places [m]."""

QUADRUPEDAL = {"walk": walk, "trot": trot, "pace": pace, "bound": bound}


def solved(gait: Gait, iterations: int) -> tuple[Any, Any]:
    """The problem and its solution."""
    exercise = gait.exercise()
    result = exercise.solve(max_iterations=iterations)
    assert result.status == sl.OCPStatus.SOLVED, result.reason
    assert np.abs(result.gaps).max() == 0.0
    return exercise.problem, result


def feet_of(gait: Gait, xs: Any) -> Any:
    """(feet, T + 1, 3)"""
    q = xs[:, : gait.robot.nq]
    return np.array([sl.frame_placement(gait.robot, q, foot.frame)[:, :3, 3] for foot in gait.feet])


def check(gait: Gait, iterations: int, ahead: float) -> None:
    """All that should be so of any gait."""
    problem, result = solved(gait, iterations)
    feet = feet_of(gait, result.xs)
    assert np.abs(feet[:, -1] - feet[:, 0] - [ahead, 0.0, 0.0]).max() < MISSED
    tilt, speed = problem.difference(problem.x0, result.xs[-1])[3:6], result.xs[-1, gait.robot.nq :]
    assert np.abs(tilt).max() < 0.02 and np.abs(speed).max() < 0.1
    assert (np.abs(result.us) <= problem.u_upper).all()
    check_forces(problem, result)


def check_forces(problem: Any, result: Any) -> None:
    """They push and do not slip, but for a hundredth of the robot's weight: cones are terms, not bounds."""
    found, spare = problem.term_values(result.xs, result.us), 0.01 * 9.81 * problem.model.total_mass
    cones = [term for term in problem.terms.terms if isinstance(term, sl.terms.FrictionCone)]
    assert cones
    for term in cones:
        rows, bounds = found.residuals[term.name][problem.weights[:, problem.terms.index(term.name)] > 0], term.bounds()
        assert (rows[:, :5] >= np.array(bounds.lower)[:5] - spare).all()
        assert (rows[:, :5] <= np.array(bounds.upper)[:5] + spare).all()
        assert rows[:, 4].max() > 20.0 * spare  # it carries
    assert sum(found.costs[term.name].sum() for term in cones) < 1e-3 * result.cost


@pytest.mark.parametrize("name", QUADRUPEDAL)
def test_gaits_of_the_quadruped(name: str) -> None:
    gait = QUADRUPEDAL[name](sl.load_robot("quadruped"))
    check(gait, 30, 3.0 * gait.swings[-1].length)


@pytest.mark.parametrize("length", [-0.1, 0.2])
def test_other_lengths(length: float) -> None:
    check(trot(sl.load_robot("quadruped"), steps=1, length=length, height=0.05), 20, 0.5 * length)


@pytest.mark.parametrize(
    ("name", "length", "height"), [("quadruped", 0.3, 0.15), ("quadruped", 0.0, 0.1), ("anymal", 0.5, 0.2)]
)
def test_jumps(name: str, length: float, height: float) -> None:
    if name not in sl.robot_names():
        pytest.skip("example-robot-data is not installed")
    gait = jump(sl.load_robot(name), length, height)
    problem, result = solved(gait, 40)
    assert (np.abs(result.us) <= problem.u_upper).all()
    feet, center = feet_of(gait, result.xs), sl.center_of_mass(gait.robot, result.xs[:, : gait.robot.nq])
    assert np.abs(feet[:, -1, :2] - feet[:, 0, :2] - [length, 0.0]).max() < MISSED
    air = problem.active[:-1].sum(axis=-1) == 0
    assert center[:-1, 2][air].max() - center[0, 2] == pytest.approx(height, abs=0.01)
    assert (feet[:, :-1, 2][:, air][:, 2:-2] - feet[:, :1, 2] > 0.01).all()  # all are in the air


def test_from_elsewhere() -> None:
    """Turned aside, crouched, with coarser steps: feet go ahead along x all the same."""
    robot = sl.load_robot("quadruped")
    rng = np.random.default_rng(0)
    q0 = robot.reference_configurations["standing"].copy()
    q0[7:] += rng.uniform(-0.1, 0.1, 12)
    exercise = trot(robot, steps=1).exercise(q0, dt=0.0125)
    assert exercise.solve(max_iterations=30).solved
    assert exercise.problem.x0[: robot.nq] == pytest.approx(q0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["anymal", "hyq"])
def test_gaits_of_other_quadrupeds(name: str) -> None:
    if name not in sl.robot_names():
        pytest.skip("example-robot-data is not installed")
    for make in (walk, trot, pace):
        check(make(sl.load_robot(name), steps=1, length=0.2), 40, 0.1)


@pytest.mark.parametrize("name", ["humanoid", "talos"])
def test_bipeds_walk(name: str) -> None:
    if name not in sl.robot_names():
        pytest.skip("example-robot-data is not installed")
    gait = walk(sl.load_robot(name), steps=1, length=0.3, height=0.1)
    problem, result = solved(gait, 60)
    feet = feet_of(gait, result.xs)
    assert np.abs(feet[:, -1] - feet[:, 0] - [0.15, 0.0, 0.0]).max() < MISSED
    assert problem.dynamics.constraints[0].dim == 6
    check_forces(problem, result)


def test_bodies_of_strides() -> None:
    halves = strides([[3], [1], [2], [0]], 1, 0.2)
    assert [swing.length for swing in halves] == [0.1] * 4
    whole = strides([[1], [0]], 3, 0.2)
    assert [sum(swing.length for swing in whole if swing.feet == (foot,)) for foot in (0, 1)] == pytest.approx(
        [0.5, 0.5]
    )
    share = np.linspace(0.0, 1.0, 101)[:, None]
    way = ahead(share, 0.3, 0.1)
    assert way[-1] == pytest.approx([0.3, 0.0, 0.0]) and way[:, 2].max() == pytest.approx(0.1)
    assert np.abs(np.diff(way, axis=0))[[0, -1]].max() < 1e-4  # no velocity at both ends


def test_what_is_wrong_is_named() -> None:
    robot, arm = sl.load_robot("quadruped"), sl.load_robot("arm")
    for make, words in (
        (lambda: walk(arm), "it has 0 feet, expected 2 or 4"),
        (lambda: walk(arm, feet=["tool"] * 4), "its first joint is REVOLUTE, expected a free flyer"),
        (lambda: trot(robot, feet=["LF_FOOT", "RF_FOOT"]), "it has 2 feet, expected 4"),
        (lambda: trot(robot, steps=0), "0 steps, expected one at least"),
        (lambda: jump(robot, height=0.0), "its height is 0.0"),
        (lambda: walk(sl.random_model(seed=0, bodies=4)), "expected its feet to be given"),
        (lambda: trot(robot.replace(gravity=np.zeros(3))), "there is no gravity"),
        (lambda: walk(robot, feet=["LF_FOOT", "RF_FOOT", "LH_FOOT", "TAIL"]).problem(), "TAIL"),
    ):
        with pytest.raises(sl.ModelError, match=words):
            make()


def test_feet_as_given() -> None:
    robot = sl.load_robot("humanoid")
    gait = walk(robot, feet=[Foot("left_sole", (0.15,)), Foot("right_sole")])
    assert [each.dim for each in gait.problem(dt=0.05).dynamics.constraints] == [3, 3, 3]


def test_gaits_are_pickled() -> None:
    gait = pickle.loads(pickle.dumps(trot(sl.load_robot("quadruped"), steps=1)))
    assert gait.problem().T == pickle.loads(pickle.dumps(gait.problem())).T
