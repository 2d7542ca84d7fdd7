"""Loops whose first body is the world: the same as those whose second is, with forces on the world instead."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.constraints.dynamics import METHODS, TREES_ONLY
from tests.closeness import assert_close
from tests.constraints import truth
from tests.generators import random_state

TOLERANCE = 1e-9
each_dim = pytest.mark.parametrize("dim", [3, 5, 6])
each_loop_method = pytest.mark.parametrize("method", sorted(set(METHODS) - TREES_ONLY))
ROBOT = sl.load_robot("humanoid")
HAND = sl.robot_frames("humanoid").hands[0]
STATES = random_state(ROBOT, 3, 9)
GAINS = {"kp": 5.0, "kd": 2.0}


@functools.cache
def constrained(frames: tuple[str, str], dim: int) -> list[tuple[list[sl.Constraint], Any]]:
    """The loop by itself, and between a contact and a loop of two moving bodies, each with what is right."""
    alone = [sl.LoopClosure(ROBOT, *frames, dim, **GAINS)]
    others = [sl.Contact(ROBOT, "left_sole", 6), sl.LoopClosure(ROBOT, "right_hand", "right_sole", 3)]
    sets = (alone, [others[0], *alone, others[1]])
    return [(held, truth.solve(ROBOT, held, STATES.q, STATES.v, STATES.tau)) for held in sets]


@pytest.mark.parametrize("frames", [("universe", HAND), (HAND, "universe")], ids=["world first", "world second"])
@each_dim
@each_loop_method
def test_against_dense(method: str, dim: int, frames: tuple[str, str]) -> None:
    for held, (a, forces, _) in constrained(frames, dim):
        solution = sl.ConstrainedDynamics(ROBOT, held, method).solve(STATES.q, STATES.v, STATES.tau)
        assert_close(solution.a, a, TOLERANCE)
        assert_close(solution.forces, forces, 1e-8)


@pytest.mark.parametrize("dim", [3, 6])
@each_loop_method
def test_both_orders_are_one_constraint(method: str, dim: int) -> None:
    """Without gains: a point, or a whole frame, that does not move, wherever its axes lie. A force on the world, along its
    axes at its origin, is the opposite of that on the hand."""
    first, second = (
        sl.ConstrainedDynamics(ROBOT, [sl.LoopClosure(ROBOT, *frames, dim)], method).solve(
            STATES.q, STATES.v, STATES.tau
        )
        for frames in (("universe", HAND), (HAND, "universe"))
    )
    assert_close(first.a, second.a, TOLERANCE)
    X = sl.frame_placement(ROBOT, STATES.q, HAND)
    if dim == 3:
        turned = truth.times(X[:, :3, :3], second.forces)
    else:
        turned = truth.times(np.linalg.inv(truth.transposed(truth.motion_matrix(X))), second.forces)
    assert_close(first.forces, -turned, 1e-8)
    if dim == 6 and method == "loop_aba":  # that is, of a contact
        contact = sl.ConstrainedDynamics(ROBOT, [sl.Contact(ROBOT, HAND, 6)], "constrained_aba")
        assert_close(first.a, contact.solve(STATES.q, STATES.v, STATES.tau).a, TOLERANCE)
