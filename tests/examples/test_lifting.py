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
from examples.lifting import JOINTS, LIFTED, NV, STANDING, UNIT, WEIGHT, Lifting, Q, U

pytest.importorskip("casadi")
from examples.interior_point import Optimum, minimise

LOAD, GRAVITY = 12.0, 9.81


@pytest.fixture(scope="module")
def point() -> Any:
    """Unknowns near the start, off the constraints, with three intervals a phase."""
    start = Lifting(LOAD, intervals=3).guess()
    return start + 0.05 * np.random.default_rng(0).normal(size=len(start))


def differences(function: Any, x: Any, h: float = 1e-6) -> Any:
    """The Jacobian of a function, by central differences."""
    return np.stack([(function(x + h * d) - function(x - h * d)) / (2 * h) for d in np.eye(len(x))], axis=-1)


@cache
def solved(mode: str) -> tuple[Lifting, Optimum]:
    programme = Lifting(LOAD, mode, intervals=8)
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
    programme, found = solved("analytical")
    assert found.status == "Solve_Succeeded" and found.iterations < 100
    x, values = found.x, programme.constraints(found.x)
    assert (values > programme.least - 1e-7).all() and (values < programme.most + 1e-7).all()
    assert (x > programme.lower - 1e-7).all() and (x < programme.upper + 1e-7).all()
    slope = programme.gradient(x) + found.multipliers @ programme.jacobian(x) + found.bound_multipliers
    assert np.abs(slope).max() < 1e-7
    slack = np.minimum(values - programme.least, programme.most - values)
    assert np.abs(found.multipliers * slack).max() < 1e-7


def test_exact_derivatives_take_fewer_iterations_than_differences() -> None:
    exact, ad, fd = (solved(mode)[1] for mode in ("analytical", "ad", "fd"))
    assert exact.iterations == ad.iterations <= fd.iterations
    assert np.abs(exact.x - ad.x).max() < 1e-6


def test_its_torques_move_the_human_in_a_simulation() -> None:
    programme, found = solved("analytical")
    q, v = programme.parts(found.x)[0][1][0, Q], np.zeros(NV)
    hands = []
    for phase, z, T in programme.parts(found.x):
        times = np.linspace(0.0, T, len(z))

        def torques(t: float, q: Any, v: Any, times: Any = times, u: Any = z[:, U]) -> Any:
            tau = np.zeros(NV)
            tau[JOINTS] = [UNIT * np.interp(t, times, each) for each in u.T]
            return tau

        motion = sl.rollout(phase.dynamics, q, v, torques, duration=T, dt=T / 200, method="rk4")
        q, v = motion.q[-1], motion.v[-1]
        hands.append(sl.frame_placement(phase.model, q, "hand")[[0, 2], 3])
    wanted = sl.frame_placement(phase.model, on_the_ground(phase.model, LIFTED), "hand")[[0, 2], 3]
    assert np.abs(hands[0] - WEIGHT).max() < 5e-3  # m
    assert np.abs(hands[1] - wanted).max() < 5e-2
