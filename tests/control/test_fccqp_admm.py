"""`fccqp` by the reference's algorithm 1: what it promises at every iterate, where it ends, and what it says of itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.control.cones import projected
from saltus.spatial.algebra import Vec3
from tests.control.qp_truth import missed, objective
from tests.control.test_fccqp import WANTED, contradiction, forces_near, plain, solve
from tests.control.whole_body_qps import Problem, family, random_problem, redundant

EQUALITIES = 1e-9
"""What may be left of them at any iterate, relative to what they are made of."""
SURE: dict[str, Any] = {"method": "admm", "max_iterations": 20_000}


# ------------------------------------------------------------------------------------------------------------ iterates


@pytest.mark.parametrize("iterations", [0, 1, 2, 5, 15])
def test_equalities_hold_at_every_iterate(iterations: int) -> None:
    """From nothing and from anything; rows may depend on each other."""
    rng = np.random.default_rng(iterations)
    for seed in range(40):
        problem = random_problem(seed)
        anything: dict[str, Any] = {"x": 100.0 * rng.normal(size=len(problem.c)), "z": rng.normal(size=len(problem.c))}
        for start in ({}, anything):
            found = solve(problem, method="admm", max_iterations=iterations, **start)
            assert found.iterations <= iterations
            assert found.status in (sl.QPStatus.SOLVED, sl.QPStatus.MAX_ITERATIONS)
            left = np.abs(problem.A @ found.x - problem.b).max()
            assert missed(problem, found.x, found.y, found.z)[1].equalities <= EQUALITIES
            assert left <= found.residuals.primal * (1.0 + 1e-6) + 1e-12


def test_rows_twice_change_nothing() -> None:
    for seed in range(10):
        problem = family("anymal", 1, seed=seed)[0]
        once, twice = (
            solve(each, method="admm") for each in (problem, redundant(problem, np.random.default_rng(seed)))
        )
        assert once.iterations == twice.iterations and once.status == twice.status
        assert np.abs(once.x - twice.x).max() <= 1e-6 * np.abs(once.x).max()


def test_without_limits_the_first_point_is_it() -> None:
    """x_0 is that of algorithm 1: what costs least where A x = b."""
    problem = plain(7, 3)
    found = solve(problem, method="admm", max_iterations=0)
    assert found.status == sl.QPStatus.SOLVED
    K = np.block([[problem.Q, problem.A.T], [problem.A, np.zeros((3, 3))]])
    assert np.allclose(np.r_[found.x, found.y], np.linalg.solve(K, np.r_[-problem.c, problem.b]), atol=1e-7)


# ---------------------------------------------------------------------------------------------------------- projection


@pytest.mark.parametrize("friction", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("limits", [(-1e30, 1e30), (1.0, 4.0), (-2.0, 3.0), (0.0, 0.0)])
def test_projections_are_the_nearest_points(friction: float, limits: tuple[float, float]) -> None:
    """Of points in a convex set, p alone has (f - p)'(c - p) <= 0 for all others c."""
    rng = np.random.default_rng(3)
    low, high = max(limits[0], 0.0), min(limits[1], 1e3)
    forces = np.vstack([WANTED, rng.normal(size=(200, 3)) * [3.0, 3.0, 5.0], [[3.0, 4.0, -10.0]]])
    normal = np.r_[low, high, low + (high - low) * rng.random(200) ** 6]
    angle, across = rng.uniform(0.0, 2.0 * np.pi, 202), friction * normal * np.sqrt(np.r_[1.0, 1.0, rng.random(200)])
    others = np.stack([across * np.cos(angle), across * np.sin(angle), normal], -1)
    for f in forces:
        p = np.array(projected(friction, *limits, Vec3(*f.tolist())))
        assert low <= p[2] <= high and np.hypot(*p[:2]) <= friction * p[2] * (1.0 + 1e-12)
        along = np.column_stack([f[:2] * (friction * normal / max(np.hypot(*f[:2]), 1e-300))[:, None], normal])
        for points in (others, along):
            assert ((points - p) @ (f - p)).max() <= 1e-9 * (1.0 + np.abs(points).max())


def test_projections_to_the_tip() -> None:
    """Of the polar cone, |f_xy| mu <= -f_z, and of nothing else."""
    for f in WANTED:
        p = projected(0.5, -1e30, 1e30, Vec3(*f.tolist()))
        assert (max(map(abs, p)) == 0.0) == (0.5 * np.hypot(*f[:2]) <= -f[2]), f


def test_nearest_forces() -> None:
    problem = forces_near(WANTED, 0.5)
    found, exact = solve(problem, tolerance=1e-9, rho=1.0, **SURE), solve(problem)
    assert found.status == exact.status == sl.QPStatus.SOLVED
    assert np.allclose(found.x, exact.x, atol=1e-4)


# ---------------------------------------------------------------------------------------------------------------- ends


@pytest.mark.parametrize(("name", "rho"), [("anymal", 5e-3), ("talos", 1e-3)])
def test_it_ends_where_the_interior_point_method_does(name: str, rho: float) -> None:
    many = family(name, 6, seed=2)
    found = solve(many, rho=rho, tolerance=1e-6, **SURE)
    exact = solve(many)
    assert (found.status == int(sl.QPStatus.SOLVED)).all()
    for k in range(6):
        assert abs(objective(many[k], found.x[k]) / objective(many[k], exact.x[k]) - 1.0) < 1e-6
        assert max(missed(many[k], found.x[k], found.y[k], found.z[k])[1]) < 1e-6


@pytest.mark.parametrize("rho", [5e-5, 1e-2, 1e2])
def test_no_status_is_better_than_the_truth(rho: float) -> None:
    """Large rho keep x near its copy, which says nothing."""
    solved = 0
    for seed in range(100):
        problem = random_problem(seed)
        found = solve(problem, method="admm", rho=rho)
        left = max(missed(problem, found.x, found.y, found.z)[1])
        assert found.status != sl.QPStatus.SOLVED or left <= 1e-4, (seed, left)
        solved += found.status == sl.QPStatus.SOLVED
        absolute = missed(problem, found.x, found.y, found.z)[0]
        assert absolute.stationarity <= found.residuals.dual * (1.0 + 1e-6) + 1e-12
        beyond = found.residuals.cone + max(1.0, problem.friction.max()) * found.residuals.primal
        assert absolute.cones <= beyond * (1.0 + 1e-6) + 1e-12
    assert solved > 0 or rho != 5e-5


def test_contradicting_equalities_are_infeasible() -> None:
    for seed in range(0, 12, 3):
        found = solve(contradiction(seed), method="admm")
        assert found.status == sl.QPStatus.INFEASIBLE
        assert np.isfinite(found.x).all()


@pytest.mark.parametrize("seed", [1, 2, 4, 5])
def test_what_contradicts_limits_is_never_solved(seed: int) -> None:
    found = solve(contradiction(seed), method="admm", max_iterations=200)
    assert found.status != sl.QPStatus.SOLVED and np.isfinite(found.x).all()


def test_equalities_beyond_limits_are_infeasible() -> None:
    problem = plain(6, 2)
    beyond = np.linalg.lstsq(problem.A, problem.b)[0] + 1.0
    assert solve(problem._replace(lower=beyond, upper=beyond), rho=1.0, **SURE).status == sl.QPStatus.INFEASIBLE


def test_what_is_not_finite_is_said() -> None:
    many = family("anymal", 3, seed=4)
    many.c[1, 7] = np.nan
    status = solve(many, method="admm", max_iterations=2000, rho=1e-3).status
    assert status[1] == int(sl.QPStatus.NOT_FINITE) and int(sl.QPStatus.NOT_FINITE) not in status[[0, 2]]


def test_time_is_kept() -> None:
    problem = family("talos", 1, seed=5)[0]
    late = solve(problem, max_time=1e-9, **SURE)
    assert late.status == sl.QPStatus.DEADLINE and late.iterations == 0
    assert missed(problem, late.x, late.y, late.z)[1].equalities <= EQUALITIES


@pytest.mark.parametrize("rho", [0.0, -1.0, np.inf, np.nan])
def test_rho_is_positive(rho: float) -> None:
    with pytest.raises(ValueError, match=r"\brho\b"):
        solve(plain(3), method="admm", rho=rho)


# ------------------------------------------------------------------------------------------------------ starts, numbers


def test_starts_spare_iterations() -> None:
    before, now = (family("talos", 5, seed=6, later=later) for later in (-1e-3, 0.0))
    for k in range(5):
        cold = solve(before[k], rho=1e-3, **SURE)
        warm, anew = (solve(now[k], rho=1e-3, **SURE, **start) for start in ({"x": cold.x, "z": cold.z}, {}))
        assert cold.status == warm.status == anew.status == sl.QPStatus.SOLVED
        assert warm.iterations < anew.iterations


@pytest.mark.parametrize("rho", [1e-3, 1.0])
def test_from_the_solution_it_does_not_move(rho: float) -> None:
    """z is rho times the multiplier of the reference: so a start is good for any rho."""
    for seed in range(10):
        problem = random_problem(seed)
        exact = solve(problem)
        found = solve(problem, method="admm", rho=rho, x=exact.x, z=exact.z)
        assert found.status == sl.QPStatus.SOLVED
        assert np.abs(found.x - exact.x).max() <= 1e-3 * np.abs(exact.x).max()


def test_packets_are_single_calls() -> None:
    """Those that are done wait for the others."""
    many = family("talos", 12, seed=8)
    for options in ({"method": "admm"}, SURE | {"rho": 1e-3}):
        found = solve(many, **options)
        for k in range(12):
            one = solve(many[k], **options)
            assert found.status[k] == one.status and found.iterations[k] == one.iterations
            for ours, alone in ((found.x, one.x), (found.y, one.y), (found.z, one.z)):
                assert np.abs(ours[k] - alone).max() <= 1e-7 * np.abs(alone).max()


def test_single_precision() -> None:
    """Computed in double, and rounded."""
    problem = family("anymal", 1, seed=9)[0]
    found = solve(
        Problem(*(part if part.dtype.kind == "i" else part.astype(np.float32) for part in problem)), method="admm"
    )
    double = solve(problem, method="admm")
    assert found.x.dtype == found.y.dtype == found.z.dtype == np.float32
    assert found.status == double.status
    assert np.abs(found.x - double.x).max() <= 1e-3 * np.abs(double.x).max()
