"""Derivatives of a frame's velocity and acceleration: against dual numbers, Pinocchio, and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.dynamics.frame import FRAME, REFERENCES, _frame_motion, select
from tests.closeness import assert_close
from tests.derivatives.forward import ERRORS, exact_jacobians
from tests.dynamics.test_against_pinocchio import REFERENCES as SEEN
from tests.dynamics.test_against_pinocchio import load
from tests.generators import TREES, State, chain, floating_tree, make_tree, mimic_tree, random_state
from tests.model.robots import LOADABLE

pin = pytest.importorskip("pinocchio")

each_reference = pytest.mark.parametrize("reference", REFERENCES)


def both(model: sl.Model, s: State, frame: str | int, reference: str) -> tuple[Any, ...]:
    """dv_dq, dv_dv, da_dq, da_dv, da_da"""
    velocity = sl.frame_velocity_derivatives(model, s.q, s.v, frame, reference)
    return *velocity, *sl.frame_acceleration_derivatives(model, s.q, s.v, s.a, frame, reference)


def compare_with_dual_numbers(model: sl.Model, s: State, frame: int, reference: str) -> None:
    which = select(model, FRAME, frame, reference)
    (v_q, a_q), (v_v, a_v), (_, a_a) = exact_jacobians(_frame_motion, model, which, s.q, s.v, s.a)
    speed = max(1.0, float(np.abs(s.v).max()))
    right, sizes = (v_q, v_v, a_q, a_v, a_a), (speed, 1.0, speed**2, speed, 1.0)
    for ours, exact, size in zip(both(model, s, frame, reference), right, sizes, strict=True):
        assert_close(ours, exact, 1e-12, max(size, np.abs(exact).max()), f"{reference}, frame {frame}")


@each_reference
@pytest.mark.parametrize(("seed", "bodies"), TREES[::5] + TREES[-1:])
def test_against_dual_numbers(seed: int, bodies: int, reference: str) -> None:
    tree = make_tree(seed, bodies)
    last = len(tree.model.frames) - 1
    for frame in {0, last // 2, last}:
        compare_with_dual_numbers(tree.model, tree.state, frame, reference)


@each_reference
def test_a_long_chain(reference: str) -> None:
    model = chain(sl.random_model(seed=9, bodies=100))
    compare_with_dual_numbers(model, random_state(model, 1), len(model.frames) - 1, reference)


def with_fixed_point(slopes: np.ndarray, J: np.ndarray, angular: np.ndarray) -> np.ndarray:
    """Pinocchio's meaning of derivatives along the world's axes: the point they are about stays, the frame goes on."""
    result = slopes.copy()
    result[:3] -= np.cross(angular, J[:3].T).T
    return result


@pytest.mark.parametrize("name", LOADABLE)
def test_against_pinocchio(name: str) -> None:
    r = load(name, "free")
    for frame in r.frames:
        for reference in REFERENCES:
            batch = both(r.model, r.states, frame, reference)
            for k in range(len(r.states.q)):
                s, (v_q, v_v, a_q, a_v, a_a) = r.states.sample(k), (x[k] for x in batch)
                pin.computeForwardKinematicsDerivatives(r.peer, r.data, s.q, s.v, s.a)
                pin.updateFramePlacements(r.peer, r.data)
                right = pin.getFrameVelocityDerivatives(r.peer, r.data, frame, SEEN[reference])
                right += pin.getFrameAccelerationDerivatives(r.peer, r.data, frame, SEEN[reference])[1:]
                if reference == "local_world_aligned":
                    speed = sl.frame_velocity(r.model, s.q, s.v, frame, reference)
                    rise = sl.frame_acceleration(r.model, s.q, s.v, s.a, frame, reference)
                    v_q, a_q = with_fixed_point(v_q, v_v, speed[3:]), with_fixed_point(a_q, a_a, rise[3:])
                for ours, theirs in zip((v_q, v_v, a_q, a_v, a_a), right, strict=True):
                    assert_close(ours, theirs, 1e-11, max(1.0, np.abs(theirs).max()), reference)


@each_reference
@pytest.mark.parametrize("mode", ERRORS)
def test_other_modes(mode: str, reference: str) -> None:
    model = floating_tree(seed=5, bodies=6)
    s, frame = random_state(model, 1, 3), len(model.frames) - 1
    of_v = sl.frame_velocity_derivatives(model, s.q, s.v, frame, reference)
    of_a = sl.frame_acceleration_derivatives(model, s.q, s.v, s.a, frame, reference)
    assert_close(sl.frame_velocity_derivatives(model, s.q, s.v, frame, reference, mode), of_v, ERRORS[mode])
    assert_close(sl.frame_acceleration_derivatives(model, s.q, s.v, s.a, frame, reference, mode), of_a, ERRORS[mode])
    found = sl.jacobian(sl.frame_velocity, model, (s.q, s.v, frame, reference), "analytical")
    assert_close(found[:2], tuple(of_v), 0.0)
    found = sl.jacobian(sl.frame_acceleration, model, (s.q, s.v, s.a, frame, reference), "analytical")
    assert_close(found[:3], tuple(of_a), 0.0)


@each_reference
def test_mimic_joints_against_central_differences(reference: str) -> None:
    model, h = mimic_tree(seed=2, bodies=8), 1e-5
    s, frame, steps = random_state(model, 1), len(model.frames) - 1, h * np.eye(model.nv)
    ahead, behind = (
        sl.frame_acceleration(model, sl.integrate(model, s.q, sign * steps), s.v, s.a, frame, reference)
        for sign in (1.0, -1.0)
    )
    D = sl.frame_acceleration_derivatives(model, s.q, s.v, s.a, frame, reference)
    assert_close(D.da_dq, (ahead - behind).T / (2.0 * h), 1e-8)


def test_a_single_rigid_body() -> None:
    """Its velocity is v itself: the same wherever it is, as it sees it; turned and moved along, as the world does."""
    model = floating_tree(seed=5, bodies=1)
    s = random_state(model, 0)
    joint = model.frame_index("root")
    v_q, v_v, a_q, a_v, a_a = both(model, s, joint, "local")
    for zero in (v_q, a_q, a_v):
        assert not zero.any()
    assert_close(v_v, np.eye(6), 1e-15)
    assert_close(a_a, np.eye(6), 1e-15)
    R = sl.frame_placement(model, s.q, joint)[:3, :3]
    v_q, v_v, *_ = both(model, s, joint, "local_world_aligned")
    lin, ang = s.v[:3], s.v[3:]
    turned = np.concatenate([R @ np.cross(np.eye(3), lin).T, R @ np.cross(np.eye(3), ang).T])
    assert_close(v_q, np.hstack([np.zeros((6, 3)), turned]), 1e-14)


def test_at_rest() -> None:
    model = sl.load_robot("humanoid")
    s = random_state(model, 0)
    s.v = 0.0 * s.v
    D = sl.frame_acceleration_derivatives(model, s.q, s.v, s.a, "left_hand")
    assert not sl.frame_velocity_derivatives(model, s.q, s.v, "left_hand").dv_dq.any()
    assert not D.da_dv.any() and D.da_dq.any()
