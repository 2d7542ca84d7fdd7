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
def test_samples_that_are_done_wait_for_others(method: str) -> None:
    """In a packet each has the iterations that it has alone: none stops with the first, or goes on with the last."""
    q, v, tau = STATES.q, STATES.v, STATES.tau
    dynamics = with_tolerance(method, 1e-5)
    found = dynamics.solve(q, v, tau)
    assert len(set(found.iterations[:4])) > 2
    alone = [dynamics.solve(*sample) for sample in zip(q, v, tau, strict=True)]
    assert found.iterations.tolist() == [one.iterations for one in alone]
    assert_close(found.a, np.array([one.a for one in alone]), 1e-10)
    assert_close(found.forces, np.array([one.forces for one in alone]), 1e-10)


@each_method
def test_the_second_iteration_takes_rounding_away(method: str) -> None:
    """Inertias as large as 1 / mu leave errors of the rounding unit times that, 1e-5 here, which the second step undoes."""
    inputs = STATES.q, STATES.v, STATES.tau
    found = sl.ConstrainedDynamics(ROBOT, HELD[1:], method, mu=1e-10, most_iterations=2).solve(*inputs)
    a, forces, _ = truth.solve(ROBOT, HELD[1:], *inputs)
    assert_close(found.a, a, 1e-8)
    assert_close(found.forces, forces, 1e-8)


# --------------------------------------------------------------------------------------------------------------- status


def with_tolerance(method: str, tolerance: float, most_iterations: int = 50) -> sl.ConstrainedDynamics:
    return sl.ConstrainedDynamics(ROBOT, HELD[1:], method, 1e-2, tolerance, most_iterations)


@each_method
def test_status_by_tolerance(method: str) -> None:
    """What is enough for one tolerance is not for another, whatever the tolerance is."""
    inputs = STATES.q, STATES.v, STATES.tau
    for tolerance in (1e-2, 1e-5):
        found = with_tolerance(method, tolerance).solve(*inputs)
        assert (found.status == sl.Status.CONVERGED).all() and (found.residual <= tolerance).all()
        assert (found.residual > 1e-9).any()  # what the default tolerance would not let pass
    stopped = with_tolerance(method, 1e-5, 2).solve(*inputs)
    missed = stopped.residual > 1e-5
    assert missed.any() and (stopped.status[missed] == sl.Status.STOPPED).all()


@each_method
def test_status_of_contradictions_by_tolerance(method: str) -> None:
    """Accelerations that stand still by one tolerance still move by another."""
    twice = [sl.Contact(ROBOT, FEET[0]), sl.Contact(ROBOT, FEET[0])]
    inputs, target = (STATES.q, STATES.v, STATES.tau), [1.0, 0.0, 0.0, -1.0, 2.0, 0.0]
    for tolerance, most, status in ((1e-3, 50, sl.Status.LEAST_SQUARES), (1e-7, 2, sl.Status.STOPPED)):
        dynamics = sl.ConstrainedDynamics(ROBOT, twice, method, 1e-2, tolerance, most)
        found = dynamics.solve(*inputs, target=target)
        assert (found.status == status).all(), tolerance
        assert (found.report[:, 2] > 1e-9).any()  # the last change, which the default tolerance would not let pass


@pytest.mark.parametrize("function", ["impact", "inverse_dynamics"])
def test_status_of_other_functions_by_tolerance(function: str) -> None:
    def solved(tolerance: float, most_iterations: int) -> Any:
        dynamics = with_tolerance("prox_ltl", tolerance, most_iterations)
        more = () if function == "impact" else (STATES.a,)
        return getattr(dynamics, function)(STATES.q, STATES.v, *more)

    left = solved(0.0, 2).residual
    assert (solved(float(2.0 * left.max()), 50).status == sl.Status.CONVERGED).all()
    assert (solved(float(0.5 * left.min()), 2).status == sl.Status.STOPPED).all()
