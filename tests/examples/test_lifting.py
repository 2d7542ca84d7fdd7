"""The human of `examples/human.py` stands as the lever rule says; the programme of `examples/lifting.py` has the derivatives
it claims; what IPOPT finds is optimal, and moves the human so that a simulation of its torques arrives where it should."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import saltus as sl
from examples import lifting
from examples.human import HEEL, MASS, SUPPORT, TOE, human, on_the_ground, standing
from examples.lifting import JOINTS, LIFTED, NV, STANDING, WEIGHT, Lifting, Q, U, V

pytest.importorskip("casadi")
from examples.interior_point import Optimum, minimise

LOAD, INTERVALS, GRAVITY = 12.0, 12, 9.81
STRENGTH = human().effort_limit[JOINTS]


@pytest.fixture(scope="module")
def point() -> Any:
    """Unknowns near the start, off the constraints, with three intervals a phase."""
    start = Lifting(LOAD, intervals=3).guess()
    return start + 0.05 * np.random.default_rng(0).normal(size=len(start))


def differences(function: Any, x: Any, h: float = 1e-6) -> Any:
    """The Jacobian of a function, by central differences."""
    return np.stack([(function(x + h * d) - function(x - h * d)) / (2 * h) for d in np.eye(len(x))], axis=-1)


@cache
def solved() -> tuple[Lifting, Optimum]:
    programme = Lifting(LOAD, intervals=INTERVALS)
    return programme, minimise(programme, programme.guess())


def test_standing_human_is_held_as_a_lever_is() -> None:
    model, still = human(LOAD), np.zeros(NV)
    assert sum(joint.mass for joint in model.joints) == pytest.approx(MASS + LOAD)
    q = on_the_ground(model, STANDING)
    assert np.abs(sl.frame_placement(model, q, "sole") - np.eye(4)).max() < 1e-12
    held = standing(model).inverse_dynamics(q, still, still, actuated=np.arange(NV) >= 3)
    heel, toe = SUPPORT @ held.forces[[2, 4]]
    lever = (sl.center_of_mass(model, q)[0] - HEEL) / (TOE - HEEL)
    weight = (MASS + LOAD) * GRAVITY
    assert toe == pytest.approx(lever * weight, rel=1e-9) and heel == pytest.approx((1 - lever) * weight, rel=1e-9)


@pytest.mark.parametrize(("mode", "error"), [("analytical", 1e-9), ("ad", 1e-9), ("fdc", 1e-8), ("fd", 1e-6)])
def test_jacobian(point: Any, mode: str, error: float) -> None:
    programme = Lifting(LOAD, mode, intervals=3)
    J = programme.jacobian(point)
    truth = differences(programme.constraints, point)
    assert np.abs(J - truth).max() < error * np.abs(truth).max()
    assert not J[~programme.jacobian_pattern].any()
    assert np.abs(programme.gradient(point) - differences(programme.cost, point)).max() < 1e-8


def test_hessian(point: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifting, "CURVATURE_STEP", 1e-4)
    programme = Lifting(LOAD, intervals=3)
    multipliers = np.random.default_rng(1).normal(size=len(programme.least))
    H = programme.hessian(point, 0.7, multipliers)
    truth = differences(lambda x: 0.7 * programme.gradient(x) + multipliers @ programme.jacobian(x), point)
    assert np.abs(H - truth).max() < 1e-6 * np.abs(truth).max()
    assert not H[~programme.hessian_pattern].any()


def test_it_is_optimal() -> None:
    programme, found = solved()
    assert found.status == "Solve_Succeeded" and found.iterations < 100
    x, values = found.x, programme.constraints(found.x)
    assert (values > programme.least - 1e-7).all() and (values < programme.most + 1e-7).all()
    assert (x > programme.lower - 1e-7).all() and (x < programme.upper + 1e-7).all()
    slope = programme.gradient(x) + found.multipliers @ programme.jacobian(x) + found.bound_multipliers
    assert np.abs(slope).max() < 1e-7
    slack = np.minimum(values - programme.least, programme.most - values)
    assert np.abs(found.multipliers * slack).max() < 1e-7


@pytest.mark.slow
def test_exact_derivatives_take_no_more_iterations_than_differences() -> None:
    exact, ad, fd = (
        minimise(programme, programme.guess(), tolerance=1e-10, most_iterations=60)
        for programme in (Lifting(LOAD, mode, intervals=6) for mode in ("analytical", "ad", "fd"))
    )
    assert exact.status == ad.status == "Solve_Succeeded"
    assert exact.iterations == ad.iterations <= fd.iterations
    assert np.abs(exact.x - ad.x).max() < 1e-6


def test_nodes_are_where_a_simulation_of_the_torques_arrives() -> None:
    """Interval by interval: over a whole phase errors grow, since there is no feedback."""
    programme, found = solved()
    for phase, z, T in programme.parts(found.x):
        step, starts, ends = T / INTERVALS, z[:-1:2], z[2::2]

        def torques(t: float, q: Any, v: Any, step: float = step, a: Any = starts, b: Any = ends) -> Any:
            tau = np.zeros_like(v)
            tau[:, JOINTS] = STRENGTH * (a[:, U] + t / step * (b[:, U] - a[:, U]))
            return tau

        motion = sl.rollout(
            phase.dynamics, starts[:, Q], starts[:, V], torques, duration=step, dt=step / 20, method="rk4"
        )
        assert np.abs(motion.q[:, -1] - ends[:, Q]).max() < 5e-3  # m, rad
        assert np.abs(motion.v[:, -1] - ends[:, V]).max() < 0.1
        soles = sl.frame_placement(phase.model, z[:, Q], "sole")
        assert np.abs(soles - np.eye(4)).max() < 1e-3


def test_the_hand_takes_the_weight_at_rest_and_holds_it_in_the_end() -> None:
    programme, found = solved()
    (_, bend, _), (_, lift, _) = programme.parts(found.x)
    hand = sl.frame_placement(programme.model, bend[-1, Q], "hand")[[0, 2], 3]
    speed = sl.frame_velocity(programme.model, bend[-1, Q], bend[-1, V], "hand", "local_world_aligned")
    assert np.abs(hand - WEIGHT).max() < 1e-7 and np.abs(speed).max() < 1e-3
    assert np.abs(lift[-1, JOINTS] - LIFTED).max() < 1e-7
