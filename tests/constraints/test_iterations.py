"""Every iteration of every proximal method is a step of the same dense one, and what a status says follows the tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.constraints.dynamics import METHODS, TREES_ONLY
from tests.closeness import assert_close
from tests.constraints import truth
from tests.generators import random_state

ITERATIVE = sorted(set(METHODS) - {"kkt"})
each_method = pytest.mark.parametrize("method", ITERATIVE)
each_loop_method = pytest.mark.parametrize("method", sorted(set(ITERATIVE) - TREES_ONLY))
ROBOT = sl.load_robot("quadruped")
FEET = sl.robot_frames("quadruped").feet
HELD = [sl.Contact(ROBOT, FEET[0], 6, kd=2.0), *(sl.Contact(ROBOT, foot, weight=2.0) for foot in FEET[1:])]
LOOPS = [*HELD[:2], sl.LoopClosure(ROBOT, FEET[2], FEET[3], 5, kd=1.0), sl.LoopClosure(ROBOT, "universe", FEET[3], 3)]
STATES = random_state(ROBOT, 1, 20)


def follows_the_dense_method(held: list[sl.Constraint], method: str, count: int) -> None:
    """mu is about as large as the Delassus matrix, so that an iteration is far from the one before and from the next."""
    mu, inputs = 1.0, (STATES.q, STATES.v, STATES.tau)
    amounts = np.concatenate([mu * constraint.weight[list(constraint.rows)] for constraint in held])
    start = np.random.default_rng(0).normal(size=(20, len(amounts)))
    found = sl.ConstrainedDynamics(ROBOT, held, method, mu, 0.0, count).solve(*inputs, start=start)
    before, right, after = (
        truth.iterated(ROBOT, held, *inputs, amounts, n, start) for n in (count - 1, count, count + 1)
    )
    assert (found.iterations == count).all()
    assert_close(found[:2], right, 1e-12)
    for other in (before, after):
        assert (np.abs(other[0] - right[0]).max(-1) > 1e-3 * np.abs(right[0]).max(-1)).all()  # no sample stands still


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@each_method
def test_each_iteration(method: str, count: int) -> None:
    follows_the_dense_method(HELD, method, count)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@each_loop_method
def test_each_iteration_with_loops(method: str, count: int) -> None:
    follows_the_dense_method(LOOPS, method, count)


@each_method
def test_the_second_iteration_takes_rounding_away(method: str) -> None:
    """Inertias as large as 1 / mu leave errors of the rounding unit times that, 1e-5 here, which the second step undoes."""
    inputs = STATES.q, STATES.v, STATES.tau
    found = sl.ConstrainedDynamics(ROBOT, HELD[1:], method, mu=1e-10, most_iterations=2).solve(*inputs)
    a, forces, _ = truth.solve(ROBOT, HELD[1:], *inputs)
    assert_close(found.a, a, 1e-8)
    assert_close(found.forces, forces, 1e-8)


# --------------------------------------------------------------------------------------------------------------- status


def with_tolerance(method: str, tolerance: float) -> sl.ConstrainedDynamics:
    return sl.ConstrainedDynamics(ROBOT, HELD[1:], method, mu=1e-3, tolerance=tolerance, most_iterations=3)


@each_method
def test_status_by_tolerance(method: str) -> None:
    """The same three iterations are enough for one tolerance and not for another, whatever the tolerance is."""
    inputs = STATES.q, STATES.v, STATES.tau
    left = with_tolerance(method, 0.0).solve(*inputs).residual
    for tolerance in np.quantile(left, [0.25, 0.75]):
        found = with_tolerance(method, float(tolerance)).solve(*inputs)
        met = left <= tolerance
        assert 0 < met.sum() < 20
        assert (found.status[~met] == sl.Status.STOPPED).all()
        assert (found.status[met] == sl.Status.CONVERGED).all()


@each_method
def test_status_of_contradictions_by_tolerance(method: str) -> None:
    """Accelerations that stand still by one tolerance still move by another."""
    twice = [sl.Contact(ROBOT, FEET[0]), sl.Contact(ROBOT, FEET[0])]
    inputs, target = (STATES.q, STATES.v, STATES.tau), [1.0, 0.0, 0.0, -1.0, 2.0, 0.0]
    for tolerance, status in ((1e-1, sl.Status.LEAST_SQUARES), (1e-5, sl.Status.STOPPED)):
        dynamics = sl.ConstrainedDynamics(ROBOT, twice, method, mu=1e-2, tolerance=tolerance, most_iterations=3)
        assert (dynamics.solve(*inputs, target=target).status == status).all(), tolerance


@pytest.mark.parametrize("function", ["impact", "inverse_dynamics"])
def test_status_of_other_functions_by_tolerance(function: str) -> None:
    def solved(tolerance: float) -> Any:
        dynamics = with_tolerance("prox_ltl", tolerance)
        more = () if function == "impact" else (STATES.a,)
        return getattr(dynamics, function)(STATES.q, STATES.v, *more)

    left = solved(0.0).residual
    assert (solved(float(2.0 * left.max())).status == sl.Status.CONVERGED).all()
    assert (solved(float(0.5 * left.min())).status == sl.Status.STOPPED).all()
