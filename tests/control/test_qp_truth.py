"""The judges of `fccqp`: problems are what they say, right points pass, and every sort of wrong point is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest

import saltus as sl
from saltus.arrays import Array
from tests.control.qp_truth import Missed, Truth, conic, missed, objective
from tests.control.whole_body_qps import CORNERS, Problem, contact_points, family, point_rows, random_problem, robot_of

PASSES = 1e-10
"""Of Clarabel's points, relative: three times what the worst of two thousand misses."""


def small() -> tuple[Problem, Truth]:
    """A mass that rests on a point: f_x = a_x, f_z = a_z + 10. The least of (a_x - 8)^2 + a_z^2 is at the edge of the cone,
    f_x = 0.75 f_z, where f_z = 16 / 1.5625; its limit is not reached."""
    Q, c = np.diag([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]), np.array([-8.0, 0, 0, 0, 0, 0])
    A, b = np.hstack([np.eye(3), -np.eye(3)]), np.array([0, 0, -10.0])
    upper = np.array([np.inf] * 5 + [100.0])
    problem = Problem(Q, c, A, b, np.array([[3, 4, 5]]), np.array([0.75]), np.full(6, -np.inf), upper)
    f = 16.0 / 1.5625
    x = np.array([0.75 * f, 0.0, f - 10.0, 0.75 * f, 0.0, f])
    y = -(Q @ x + c)[:3]
    return problem, Truth(x, y, -(Q @ x + c + A.T @ y), objective(problem, x), "by hand")


def test_a_solution_by_hand() -> None:
    problem, truth = small()
    absolute, relative = missed(problem, truth.x, truth.y, truth.z)
    assert max(absolute) < 1e-13 and max(relative) < 1e-15
    found = conic(problem)
    assert np.allclose(found.x, truth.x, atol=1e-6) and np.allclose(found.y, truth.y, atol=1e-6)
    assert abs(found.objective - truth.objective) < 1e-9


@dataclass
class Wrong:
    """What is changed of a solution, and which conditions must notice."""

    x: Array = field(default_factory=lambda: np.zeros(6))
    y: Array = field(default_factory=lambda: np.zeros(3))
    z: Array = field(default_factory=lambda: np.zeros(6))
    noticed: set[str] = field(default_factory=set)


e = np.eye(6)
WRONG = {
    "acceleration": Wrong(x=e[0], noticed={"stationarity", "equalities"}),
    "force out of its cone": Wrong(x=e[3] + e[0], noticed={"stationarity", "cones", "gap"}),
    "force into its cone": Wrong(x=-e[3] - e[0], noticed={"stationarity", "gap"}),
    "force across": Wrong(x=e[4] + e[1], noticed={"stationarity"}),
    "multiplier": Wrong(y=np.array([0, 1.0, 0]), noticed={"stationarity"}),
    "multiplier of what is free": Wrong(z=e[0], noticed={"stationarity", "dual"}),
    "multiplier that pulls": Wrong(z=-e[5], noticed={"stationarity", "gap"}),
    "no number": Wrong(x=np.nan * e[0], noticed=set(Missed._fields)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_points_are_refused(name: str) -> None:
    problem, truth = small()
    wrong = WRONG[name]
    found = missed(problem, truth.x + 1e-3 * wrong.x, truth.y + 1e-3 * wrong.y, truth.z + 1e-3 * wrong.z)
    for absolute_or_relative in found:
        noticed = {key for key, miss in absolute_or_relative._asdict().items() if miss > 1e-6}
        assert noticed >= wrong.noticed


def test_limits_of_normal_forces_have_multipliers() -> None:
    """The mass pushed less than its friction holds, and no more than 5 N from the ground: it falls at half of gravity."""
    problem, _ = small()
    problem.upper[5] = 5.0
    found = conic(problem)
    assert np.allclose(found.x[3:], [3.75, 0, 5.0], atol=1e-6)
    assert max(missed(problem, found.x, found.y, found.z)[1]) < PASSES
    assert found.z[5] > 0
    low = problem._replace(lower=np.r_[problem.lower[:5], 20.0], upper=np.r_[problem.upper[:5], 30.0])
    found = conic(low)
    assert np.allclose(found.x[3:], [8.0, 0, 20.0], atol=1e-6) and found.z[5] < 0
    assert max(missed(low, found.x, found.y, found.z)[1]) < PASSES
    assert max(missed(low, found.x, found.y, 0.9 * found.z)[1]) > 1e-3


@pytest.mark.parametrize("name", ["anymal", "talos"])
def test_families_are_those_of_the_table(name: str) -> None:
    """Their sizes; that they are solved; and on Talos six or seven contacts of eight at the edge."""
    many = family(name, 8)
    sizes = {"anymal": (54, 30, 4), "talos": (118, 62, 8)}[name]
    assert (many.Q.shape[1], many.A.shape[1], len(many.cones)) == sizes
    edge = []
    for k in range(8):
        found = conic(many[k])
        assert max(missed(many[k], found.x, found.y, found.z)[1]) < PASSES
        force = found.x[many.cones]
        edge.append((0.6 * force[:, 2] - np.hypot(*force[:, :2].T) < 1e-5 * force[:, 2].max()).sum())
    low, high = {"anymal": (0.5, 3.0), "talos": (6.0, 7.5)}[name]
    assert low < np.mean(edge) < high


def sorts_of(problem: Problem, seed: int) -> set[str]:
    name, count, normal = list(CORNERS)[seed % 5], len(problem.cones), problem.cones[:, 2]
    nv, others = robot_of(name).nv, slice(0, problem.cones[0, 0])
    assert count == 1 + seed // 5 % 8
    sorts = {
        "hard": normal[-1] == len(problem.c) - 1,
        "redundant": len(problem.b) > nv + 3 * count,
        "frictionless": (problem.friction == 0).any(),
        "off": (problem.upper[normal] == 0).any(),
        "loaded": (problem.lower[normal] > 0).any(),
        "fixed": (problem.lower == problem.upper)[others].any(),
        "doubled": len(contact_points(name)) < count,
        "bounded": np.isfinite(problem.lower[:nv]).any(),
    }
    return {sort for sort, there in sorts.items() if there} or {"plain"}


def test_random_problems_are_of_all_sorts() -> None:
    counts: Counter[str] = Counter()
    for seed in range(160):
        problem = random_problem(seed)
        found = conic(problem)
        assert max(missed(problem, found.x, found.y, found.z)[1]) < PASSES, seed
        counts.update(sorts_of(problem, seed))
    assert len(counts) == 9 and min(counts.values()) >= 8, counts


def test_points_of_feet_move_as_their_rows_say() -> None:
    """By differences, along a motion of constant velocities."""
    robot = robot_of("g1")
    frame, place = contact_points("g1")[-1]
    rng, h = np.random.default_rng(0), 1e-4
    q, v = (
        sl.integrate(robot, robot.reference_configurations["standing"], 0.1 * rng.normal(size=robot.nv)),
        rng.normal(size=robot.nv),
    )
    J, drift = point_rows(robot, q[None], v[None], frame, place)
    X = [sl.frame_placement(robot, sl.integrate(robot, q, t * v), frame) for t in (-h, 0.0, h)]
    before, now, after = (each[:3, :3] @ place + each[:3, 3] for each in X)
    assert np.allclose((after - before) / (2 * h), J[0] @ v, atol=1e-6)
    assert np.allclose((after - 2 * now + before) / h**2, drift[0], atol=1e-5)
