"""`fccqp` against Clarabel's conic solutions and the conditions as they are written; and what is no ordinary problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.arrays import Array
from tests.control.qp_truth import Truth, conic, missed, objective
from tests.control.whole_body_qps import CORNERS, Problem, Weights, family, random_problem, robot_of

CONSTRAINTS, OPTIMALITY, OBJECTIVE = 1e-9, 1e-9, 1e-8
"""What may be missed, relative to what the conditions are made of; OPTIMALITY is that of the gradient."""
DUALS = 3e-5
"""Of multipliers that are unique: by so much, the root of a gap of 1e-9, may slopes be off at an objective as good."""
CANCELS = 0.01
"""Objectives are measured beside this share of what they are made of, at least: some of them are next to nothing."""


def solve(problem: Problem, **options: Any) -> Any:
    Q, c, A, b, cones, friction, lower, upper = problem
    return sl.fccqp(Q, c, A, b, cones=cones, friction=friction, lower=lower, upper=upper, **options)


def check(problem: Problem, found: Any, truth: Truth | None = None) -> None:
    """That it says that it is solved, and that it is."""
    assert found.status == sl.QPStatus.SOLVED, (found.status, found.residuals)
    assert not faults(problem, found.x, found.y, found.z, truth)


def faults(problem: Problem, x: Array, y: Array, z: Array, truth: Truth | None = None) -> dict[str, float]:
    """What is missed by more than is allowed, and by how much."""
    left = missed(problem, x, y, z)[1]._asdict()
    allowed = {"equalities": CONSTRAINTS, "cones": CONSTRAINTS, "gap": OBJECTIVE}
    if truth is not None:
        made_of = max(np.abs(x * (problem.Q @ x)).sum(), np.abs(x * problem.c).sum())
        off = abs(objective(problem, x) - truth.objective)
        left["objective"] = off / max(abs(truth.objective), CANCELS * made_of, 1e-300)
        allowed["objective"] = OBJECTIVE
        if unique_multipliers(problem):
            left["multipliers"] = np.abs(y - truth.y).max() / np.abs(truth.y).max()
            allowed["multipliers"] = DUALS
    return {name: miss for name, miss in left.items() if not miss <= allowed.get(name, OPTIMALITY)}


def check_random(seeds: range) -> None:
    """All of them, before it says which are wrong."""
    wrong = {}
    for seed in seeds:
        problem = random_problem(seed)
        found = solve(problem)
        fault = faults(problem, found.x, found.y, found.z, conic(problem))
        if fault or found.status != sl.QPStatus.SOLVED:
            wrong[seed] = found.status, fault
    assert not wrong, f"{len(wrong)} of {len(seeds)}: {wrong}"


def unique_multipliers(problem: Problem) -> bool:
    """Of the equalities: what is free by itself decides on all of them."""
    free = np.isinf(problem.lower) & np.isinf(problem.upper)
    free[problem.cones] = False
    left = np.linalg.svd(problem.A[:, free], compute_uv=False)
    return 0 < len(problem.b) == len(left) and bool(left[-1] > 1e-4 * left[0])


# --------------------------------------------------------------------------------------------------------------- robots


@pytest.mark.parametrize("name", ["anymal", "talos"])
def test_families(name: str) -> None:
    many = family(name, 10, seed=1)
    for k in range(10):
        check(many[k], solve(many[k]), conic(many[k]))


def test_random_problems() -> None:
    check_random(range(150))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 2000, 500))
def test_two_thousand_random_problems(first: int) -> None:
    check_random(range(first, first + 500))


# -------------------------------------------------------------------------------------------------------------- by hand


def forces_near(wanted: Array, friction: float, low: float = -np.inf, high: float = np.inf) -> Problem:
    """The forces that are nearest to those wanted (k, 3), each in a cone of its own."""
    count = wanted.size
    cones, none = np.arange(count).reshape(-1, 3), np.full(count, np.inf)
    lower, upper = -none, none.copy()
    lower[2::3], upper[2::3] = low, high
    A, b = np.zeros((0, count)), np.zeros(0)
    return Problem(np.eye(count), -wanted.ravel(), A, b, cones, np.full(len(cones), friction), lower, upper)


NEAR = np.sqrt(2.0 * OBJECTIVE * 100.0)
"""What the objective, of at most 100, may leave of distances: some of these lie where two cases meet, and it is level."""

WANTED = np.array(
    [
        [0.1, 0.2, 1.0],  # inside
        [0.0, 0.0, 1.0],
        [3.0, 4.0, 1.0],  # to the edge
        [3.0, 4.0, 0.0],  # its normal force is 0: the paper's cases would have the tangents stay
        [3.0, 4.0, -1.0],  # to the edge, from below
        [3.0, 4.0, -2.5],  # to the tip: straight down the edge's normal, and beyond
        [3.0, 4.0, -5.0],
        [0.0, 0.0, -1.0],
        [0.0, 0.0, 0.0],
    ]
)


@pytest.mark.parametrize("friction", [0.0, 0.5, 2.0])
def test_nearest_forces(friction: float) -> None:
    """Equation 8 of the paper, by the angle in the plane of force and normal."""
    problem = forces_near(WANTED, friction)
    found = solve(problem)
    check(problem, found)
    for wanted, force in zip(WANTED, found.x.reshape(-1, 3), strict=True):
        across = np.hypot(*wanted[:2])
        along = max(0.0, (wanted[2] + friction * across) / (1.0 + friction**2))  # of the edge
        nearest = np.r_[wanted[:2] * friction * along / max(across, 1e-300), along]
        nearest = wanted if wanted[2] >= 0.0 and across <= friction * wanted[2] else nearest
        assert np.allclose(force, nearest, atol=NEAR)


def test_limits_of_normal_forces() -> None:
    """Held down to a limit, the cone is as wide as it is there; lifted to one, the tangents may stay."""
    wanted = np.array([[3.0, 4.0, 9.0], [0.3, 0.4, 0.5], [3.0, 0.0, -1.0], [0.1, 0.0, 2.0]])
    problem = forces_near(wanted, 0.5, 1.0, 4.0)
    found = solve(problem)
    check(problem, found)
    assert np.allclose(found.x.reshape(-1, 3), [[1.2, 1.6, 4], [0.3, 0.4, 1], [0.5, 0, 1], [0.1, 0, 2]], atol=NEAR)
    off = forces_near(wanted, 0.5, 0.0, 0.0)
    assert np.allclose(solve(off).x, 0.0, atol=1e-8)


def test_a_robot_that_is_to_jump_pushes_and_one_that_is_to_fall_does_not() -> None:
    problem = family("anymal", 1, seed=3)[0]
    height = problem.cones[:, 2]
    goal = np.zeros(len(problem.c))
    goal[2] = 1e3 * problem.A[0, 0]  # the base's height, whose weight is the tasks' against that of the ground
    up, down = (problem._replace(c=problem.c + sign * goal) for sign in (-1.0, 1.0))
    for each in (up, down):
        check(each, solve(each), conic(each))
    assert solve(up).x[height].sum() > 9.81 * problem.A[0, 0]
    assert np.abs(solve(down).x[problem.cones]).max() < 1e-6


# --------------------------------------------------------------------------------------------------- little of anything


def plain(n: int, rows: int = 0, seed: int = 0) -> Problem:
    """Positive definite, with equalities, without bounds and cones."""
    rng = np.random.default_rng(seed)
    root, none = rng.normal(size=(n, n)), np.full(n, np.inf)
    A, b = rng.normal(size=(rows, n)), rng.normal(size=rows)
    return Problem(root @ root.T + np.eye(n), rng.normal(size=n), A, b, np.zeros((0, 3), int), np.zeros(0), -none, none)


@pytest.mark.parametrize("rows", [0, 3, 7])
def test_without_inequalities_it_is_a_linear_system(rows: int) -> None:
    problem = plain(7, rows)
    found = solve(problem)
    check(problem, found)
    K = np.block([[problem.Q, problem.A.T], [problem.A, np.zeros((rows, rows))]])
    assert np.allclose(np.r_[found.x, found.y], np.linalg.solve(K, np.r_[-problem.c, problem.b]), atol=1e-7)
    assert np.allclose(found.z, 0.0, atol=1e-7)


def test_bounds_alone() -> None:
    problem = plain(9)
    problem.lower[:5], problem.upper[2:7] = -0.05, 0.05
    check(problem, solve(problem), conic(problem))


def test_one_variable() -> None:
    problem = plain(1)._replace(lower=np.array([2.0]))
    found = solve(problem)
    check(problem, found)
    assert np.isclose(found.x[0], 2.0) and np.isclose(found.z[0], -(2.0 * problem.Q[0, 0] + problem.c[0]))


def test_arguments_may_be_left_out() -> None:
    problem = plain(4, 2)
    assert np.allclose(sl.fccqp(*problem[:4]).x, solve(problem).x, atol=1e-9)
    cones = sl.fccqp(np.eye(3), [-3.0, -4.0, -1.0], np.zeros((0, 3)), [], cones=[(0, 1, 2)], friction=0.5)
    assert np.allclose(cones.x, solve(forces_near(np.array([[3.0, 4.0, 1.0]]), 0.5)).x, atol=1e-8)


def test_all_is_fixed() -> None:
    """Nothing is left to be found but multipliers; or, where it contradicts the equalities, that."""
    problem = plain(6, 2)
    x = np.linalg.lstsq(problem.A, problem.b)[0]
    fixed = problem._replace(lower=x, upper=x)
    found = solve(fixed)
    check(fixed, found)
    assert np.allclose(found.x, x, atol=1e-12)
    assert solve(problem._replace(lower=x + 1.0, upper=x + 1.0)).status == sl.QPStatus.INFEASIBLE


@pytest.mark.parametrize("wanted", [[0, 0, -1.0], [-1.0, -2.0, -3.0], [0, 0, -1e-3], [0, 0, -1e3], [0, 0, 0]])
def test_nothing_at_all_may_be_the_best(wanted: list[float]) -> None:
    """Where costs vanish at the solution, they are no measure of what is left."""
    problem = forces_near(np.array([wanted]), 0.5)
    found = solve(problem)
    assert found.status == sl.QPStatus.SOLVED and np.abs(found.x).max() < 1e-12 * max(1.0, *np.abs(wanted))


def test_rows_of_zeros() -> None:
    """They say nothing, or the impossible; in packets also where other lanes have something there."""
    zeros, c = np.zeros((2, 3)), np.array([1.0, 2.0, 3.0])
    rows = np.stack([zeros, [[1.0, 0, 0], [0, 0, 0]], [[1.0, 0, 0], [0, 1.0, 0]], zeros])
    right = np.array([[0.0, 0], [1, 0], [1, 2], [0, 1]])
    expected = np.array([[-1.0, -2, -3], [1, -2, -3], [1, 2, -3]])
    alone = [sl.fccqp(np.eye(3), c, A, b) for A, b in zip(rows, right, strict=True)]
    together = sl.fccqp(np.eye(3), c, rows, right)
    assert alone[3].status == sl.QPStatus.INFEASIBLE and together.status[3] != int(sl.QPStatus.SOLVED)
    for found in (together, sl.QPSolution(*(np.stack(x) for x in zip(*alone, strict=True)))):
        assert (found.status[:3] == int(sl.QPStatus.SOLVED)).all()
        assert np.allclose(found.x[:3], expected, atol=1e-9) and np.isfinite(found.x).all()


def test_costs_that_do_not_see_everything() -> None:
    """Q is singular, but along what equalities and bounds hold."""
    for seed in range(5):
        problem = family("anymal", 1, seed=seed)[0]
        torques = np.flatnonzero(np.isfinite(problem.upper))
        slacks = np.arange(problem.cones[-1, 2] + 1, len(problem.c))
        Q = problem.Q.copy()
        Q[torques, torques] = 0.0
        Q[slacks[::2], slacks[::2]] = 0.0
        check(problem._replace(Q=Q), solve(problem._replace(Q=Q)), conic(problem._replace(Q=Q)))


# ------------------------------------------------------------------------------------------------------------- statuses


def contradiction(seed: int) -> Problem:
    """Of equalities, of equalities and limits, of equalities and cones."""
    problem = random_problem(seed)
    normal = problem.cones[0, 2]
    if seed % 3 == 0:
        return problem._replace(A=np.vstack([problem.A, problem.A[:1]]), b=np.r_[problem.b, problem.b[0] + 1.0])
    row = np.eye(len(problem.c))[normal if seed % 3 == 1 else problem.cones[0, 0]]
    beyond = -1.0 if seed % 3 == 1 else 2.0 + 2.0 * min(problem.upper[normal], 1e3)
    upper = problem.upper.copy()
    upper[normal] = min(upper[normal], 1e3)
    lower = np.minimum(problem.lower, upper)
    return problem._replace(A=np.vstack([problem.A, row]), b=np.r_[problem.b, beyond], lower=lower, upper=upper)


@pytest.mark.parametrize("seed", range(12))
def test_contradictions_are_infeasible(seed: int) -> None:
    found = solve(contradiction(seed))
    assert found.status == sl.QPStatus.INFEASIBLE
    assert np.isfinite(found.x).all()


def test_costs_that_bend_down_are_not_solved() -> None:
    """But where equalities do not let them; and others of a batch are solved."""
    saddle, none, c = np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros((0, 2)), np.ones(2)
    bent = [
        sl.fccqp(-np.eye(2), 0 * c, none, []),
        sl.fccqp(saddle, c, none, []),
        sl.fccqp(saddle, c, none, [], lower=-c, upper=c),
        sl.fccqp(saddle, c, [[1.0, 1.0]], [0.0]),
        sl.fccqp(-np.eye(2), c, none, [], x=c),
        sl.fccqp(-np.eye(2), 0 * c, none, [], method="admm"),
    ]
    assert all(found.status == sl.QPStatus.NOT_CONVEX for found in bent)
    assert sl.fccqp(saddle, c, [[1.0, -1.0]], [0.0]).status == sl.QPStatus.SOLVED
    many = sl.fccqp(np.stack([np.eye(2), saddle, np.ones((2, 2))]), c, none, [])
    assert many.status.tolist() == [int(sl.QPStatus.SOLVED), int(sl.QPStatus.NOT_CONVEX), int(sl.QPStatus.SOLVED)]


def test_what_has_no_least_is_not_solved() -> None:
    problem = plain(3)
    found = solve(problem._replace(Q=np.zeros((3, 3))))
    assert found.status != sl.QPStatus.SOLVED and np.isfinite(found.x).all()


@pytest.mark.parametrize(
    ("name", "bad"),
    [(name, np.nan) for name in ("Q", "c", "A", "b", "friction", "lower", "upper")]
    + [(name, np.inf) for name in "QcAb"],
)
def test_what_is_not_finite_is_said(name: str, bad: float) -> None:
    """And others of a batch are solved."""
    many = family("anymal", 3, seed=4)
    many = many._replace(**{name: getattr(many, name).copy()})
    place = (1, -1, -1) if name in "QA" else (1, -1)
    getattr(many, name)[place] = bad
    found = solve(many)
    solved, wrong = int(sl.QPStatus.SOLVED), int(sl.QPStatus.NOT_FINITE)
    assert found.status.tolist() == [solved, wrong, solved]
    assert solve(many[1]).status == sl.QPStatus.NOT_FINITE
    check(many[0], solve(many[0]))


def test_iterations_and_time_are_kept() -> None:
    problem = family("talos", 1, seed=5)[0]
    few = solve(problem, max_iterations=2)
    assert few.status == sl.QPStatus.MAX_ITERATIONS and few.iterations <= 2
    late = solve(problem, max_time=1e-9)
    assert late.status == sl.QPStatus.DEADLINE
    for found in (few, late):
        assert all(np.isfinite(each).all() for each in (found.x, found.y, found.z))
    assert solve(problem, max_time=10.0).status == sl.QPStatus.SOLVED


NOTHING: dict[str, Any] = {"A": np.zeros((0, 3)), "b": []}
GOOD: dict[str, Any] = {"Q": np.eye(3), "c": np.zeros(3), "A": np.zeros((1, 3)), "b": np.zeros(1)}


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"lower": [0.0, 1.0, 0.0], "upper": [0.0, 0.0, 0.0]}, "lower"),
        ({"cones": [(0, 1, 2)], "lower": [-np.inf, -np.inf, 2.0], "upper": [np.inf, np.inf, 1.0]}, "lower"),
        ({"cones": [(0, 1, 2)], "upper": [1.0, np.inf, np.inf]}, "upper"),  # of a tangent
        ({"cones": [(0, 1, 2)], "upper": [np.inf, np.inf, -1.0]}, "upper"),  # below the ground
        ({"cones": [(0, 1, 3)]}, "cones"),
        ({"cones": [(0, 1, 1)]}, "cones"),
        ({"cones": [(0, 1)]}, "cones"),
        ({"cones": [(0, 1, 2)], "friction": -0.1}, "friction"),
        ({"cones": [(0, 1, 2)], "friction": [0.1, 0.1]}, "friction"),
        ({"Q": np.eye(4)}, "Q"),
        ({"c": np.zeros(4)}, "Q|c"),
        ({"A": np.zeros((1, 4))}, "A"),
        ({"b": np.zeros(2)}, "A|b"),
        ({"lower": np.zeros(2)}, "lower"),
        ({"x": np.zeros(2)}, "x"),
        ({"y": np.zeros(2)}, "y"),
        ({"method": "simplex"}, "method"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"tolerance": np.inf}, "tolerance"),
        ({"max_iterations": -1}, "max_iterations"),
        ({"cones": (0, 1, 2)}, "cones"),
        ({"cones": ((0.5, 1, 2),)}, "cones"),
        ({"cones": [(0.5, 1, 2)]}, "cones"),
        ({"Q": np.triu(np.ones((3, 3))) + 2 * np.eye(3)}, r"Q is not symmetric: Q\[0, 1\] is 1.0, Q\[1, 0\] is 0.0"),
    ],
)
def test_what_is_wrong_is_named(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=rf"\b({named})\b"):
        sl.fccqp(**GOOD | wrong)


def test_numbers_of_all_kinds() -> None:
    """Cones and friction in whichever way they are written."""
    expected = sl.fccqp(np.eye(3), [-3.0, -4.0, -1.0], **NOTHING, cones=[(0, 1, 2)], friction=0.5).x
    for cones in (((0, 1, 2),), ([0, 1, 2],), ((0.0, 1.0, 2.0),), [[0.0, 1.0, 2.0]], np.array([[0, 1, 2]])):
        for friction in (0.5, np.float32(0.5), np.array(0.5), [0.5]):
            found = sl.fccqp(np.eye(3), [-3.0, -4.0, -1.0], **NOTHING, cones=cones, friction=friction)
            assert (found.x == expected).all()
    whole = [
        sl.fccqp(np.eye(3), [-3.0, -4.0, -1.0], **NOTHING, cones=[(0, 1, 2)], friction=x).x for x in (1, np.int64(1))
    ]
    assert (whole[0] == whole[1]).all()
    assert sl.fccqp(np.eye(3), np.ones(3), **NOTHING, max_iterations=10**12).status == sl.QPStatus.SOLVED


# ---------------------------------------------------------------------------------------------- starts, scales, numbers


@pytest.mark.parametrize("name", ["anymal", "talos"])
def test_from_the_solution_it_is_not_further(name: str) -> None:
    many = family(name, 10, seed=6)
    for k in range(10):
        cold = solve(many[k])
        warm = solve(many[k], x=cold.x, y=cold.y, z=cold.z)
        check(many[k], warm)
        assert warm.iterations <= cold.iterations
        size = abs(objective(many[k], cold.x))
        assert abs(objective(many[k], warm.x) - objective(many[k], cold.x)) <= OBJECTIVE * size


def test_from_anywhere_it_gets_there() -> None:
    rng = np.random.default_rng(7)
    for seed in range(10):
        problem = random_problem(seed)
        truth = conic(problem)
        for size in (0.0, 1.0, 1e6):
            x, y, z = (size * rng.normal(size=len(each)) for each in (problem.c, problem.b, problem.c))
            check(problem, solve(problem, x=x, y=y, z=z), truth)


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_costs_in_other_units(size: float) -> None:
    for seed in range(10):
        problem = random_problem(seed)
        other = problem._replace(Q=size * problem.Q, c=size * problem.c)
        check(
            other,
            solve(other),
            conic(problem)._replace(objective=size * conic(problem).objective, y=size * conic(problem).y),
        )


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_variables_and_equalities_in_other_units(size: float) -> None:
    """Forces and torques in thousands or thousandths, and rows by their own sizes."""
    for seed in range(10):
        problem, rng = random_problem(seed), np.random.default_rng(seed)
        units, rows = np.ones(len(problem.c)), size ** rng.uniform(-1, 1, len(problem.b))
        units[robot_of(list(CORNERS)[seed % len(CORNERS)]).nv : problem.cones[-1, 2] + 1] = size
        other = Problem(
            units[:, None] * problem.Q * units, units * problem.c, rows[:, None] * problem.A * units, rows * problem.b,
            problem.cones, problem.friction, problem.lower / units, problem.upper / units,
        )  # fmt: skip
        found, truth = solve(other), conic(problem)
        assert found.status == sl.QPStatus.SOLVED
        assert abs(objective(other, found.x) - truth.objective) <= OBJECTIVE * abs(truth.objective)


def test_single_precision() -> None:
    """Solved in double, and rounded: the gradient of what is rounded is not small, for costs of slacks are steep. Equalities
    that depend on each other may contradict each other when they are rounded."""
    for seed in range(40):
        problem = random_problem(seed)
        found = solve(Problem(*(part if part.dtype.kind == "i" else part.astype(np.float32) for part in problem)))
        assert found.x.dtype == found.y.dtype == found.z.dtype == np.float32
        assert np.isfinite(found.x).all()
        independent = np.linalg.matrix_rank(problem.A) == len(problem.b)
        assert found.status == sl.QPStatus.SOLVED or not independent, seed
        if found.status == sl.QPStatus.SOLVED:
            left = missed(problem, *(part.astype(float) for part in (found.x, found.y, found.z)))[1]
            assert left.equalities < 1e-5 and left.cones < 1e-5 and left.gap < 1e-3, (seed, left)


def test_lanes_of_a_batch_are_single_calls() -> None:
    """One may end an iteration before the other, and be off by the root of the gap that is allowed."""
    many = family("anymal", 20, seed=8, weights=Weights(acceleration=1e-3, torque=1e-3, force=1e-3))
    shaped = Problem(*(part if part is many.cones else part.reshape(4, 5, *part.shape[1:]) for part in many))
    found = solve(shaped)
    assert found.x.shape == found.z.shape == (4, 5, 54) and found.y.shape == (4, 5, 30)
    assert found.status.shape == found.iterations.shape == (4, 5)
    for k in range(20):
        one, lane = solve(many[k]), np.unravel_index(k, (4, 5))
        assert found.status[lane] == one.status
        assert abs(found.iterations[lane] - one.iterations) <= 1
        for ours, alone in ((found.x, one.x), (found.y, one.y), (found.z, one.z)):
            assert np.abs(ours[lane] - alone).max() <= DUALS * max(np.abs(alone).max(), 1.0)


def test_parts_are_broadcast() -> None:
    problem, rng = family("anymal", 1, seed=9)[0], np.random.default_rng(9)
    c = problem.c + rng.normal(size=(6, 1, 54))
    friction = rng.uniform(0.3, 0.9, (2, 4))
    found = solve(problem._replace(c=c, friction=friction))
    assert found.x.shape == (6, 2, 54)
    assert (found.status == int(sl.QPStatus.SOLVED)).all()
    for i, j in np.ndindex(6, 2):
        one = problem._replace(c=c[i, 0], friction=friction[j])
        assert not faults(one, found.x[i, j], found.y[i, j], found.z[i, j])
