"""Derivatives of steps through contact against central differences, where contacts stay as they are."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import saltus as sl
from tests.simulation.bodies import free, groove, pose


@cache
def standing(name: str, kp: float, kd: float) -> tuple[sl.Simulator, np.ndarray, np.ndarray, np.ndarray]:
    """A simulator, and the state and torques of a robot that has come to stand."""
    robot = sl.load_robot(name)
    sim = sl.Simulator(robot, sl.Ground(friction=0.7), tolerance=1e-12)
    q = robot.reference_configurations["standing"]
    motion = sim.rollout(q, np.zeros(robot.nv), sl.PDTargets(q, kp, kd), duration=0.4)
    return sim, motion.q[-1], motion.v[-1], motion.tau[-1]


def assert_same(sim: sl.Simulator, q: np.ndarray, v: np.ndarray, tau: object, **more: object) -> None:
    exact = sim.step_derivatives(q, v, tau, **more)
    rough = sim.step_derivatives(q, v, tau, mode="fdc", **more)
    for found, expected in ((exact.A, rough.A), (exact.B, rough.B)):
        assert np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()
    after = sim.step(q, v, tau, **more)
    assert np.abs(exact.v - after.v).max() < 1e-9
    assert np.abs(sl.difference(sim.model, exact.q, after.q)).max() < 1e-12


@pytest.mark.parametrize("name, kp, kd", [("quadruped", 200.0, 5.0), ("humanoid", 500.0, 20.0)])
def test_standing(name, kp, kd):
    sim, q, v, tau = standing(name, kp, kd)
    assert sim.step(q, v, tau).contacts.mask.any()
    assert_same(sim, q, v, tau)


def test_under_control():
    sim, q, v, _ = standing("quadruped", 200.0, 5.0)
    assert_same(sim, q, v, sl.PDTargets(sim.model.reference_configurations["standing"], 200.0, 5.0))


@pytest.mark.parametrize("friction", [1.0, 0.05])
def test_sliding(friction):
    sim, q, v, tau = standing("quadruped", 200.0, 5.0)
    v = v.copy()
    v[0] = 0.5
    forces = sim.step(q, v, tau, friction=friction).contact_forces
    forces = forces[forces[:, 2] > 0]
    slides = np.hypot(*forces.T[:2]) > (1 - 1e-9) * 0.7 * friction * forces[:, 2]
    assert slides.any()
    assert_same(sim, q, v, tau, friction=friction)


def test_in_the_air():
    sim, q, v, tau = standing("quadruped", 200.0, 5.0)
    q = q.copy()
    q[2] += 0.1
    assert_same(sim, q, v + 0.1, tau)


@pytest.mark.parametrize("speed", [1.0, 0.05])
def test_rebounding(speed):
    """One foot after the other, within the step, or so slowly that they do so at its start."""
    dog = standing("quadruped", 200.0, 5.0)[0].model
    sim = sl.Simulator(dog, sl.Ground(friction=0.7, restitution=0.5), tolerance=1e-12)
    q, v = dog.reference_configurations["standing"].copy(), np.zeros(dog.nv)
    q[3:5] = 1e-4 * speed, 1e-3 * speed
    q[6] = np.sqrt(1.0 - q[3] ** 2 - q[4] ** 2)
    gaps = sim.contacts(q).gap
    q[2] += 0.3e-3 * speed - gaps.min()
    v[2] = -speed
    after = sim.step(q, v)
    assert 2 <= after.touching.sum() < 4
    assert_same(sim, q, v, np.zeros(dog.nv))


def test_batch():
    sim, q, v, tau = standing("quadruped", 200.0, 5.0)
    many = v + 0.01 * np.random.default_rng(0).normal(size=(3, 2, v.size))
    together = sim.step_derivatives(q, many, tau)
    assert together.A.shape == (3, 2, 36, 36) and together.B.shape == (3, 2, 36, 18)
    alone = sim.step_derivatives(q, many[1, 1], tau)
    assert np.abs(together.A[1, 1] - alone.A).max() < 1e-6 * np.abs(alone.A).max()


def test_at_a_limit():
    robot = sl.load_robot("double_pendulum")
    lower = np.array([-0.5, -0.5])
    robot = robot.replace(lower_position_limit=lower, upper_position_limit=-lower)
    sim = sl.Simulator(robot, tolerance=1e-12)
    q, v = np.array([0.5, 0.1]), np.array([1.0, 0.3])
    assert sim.step(q, v).held[0] > 0
    assert_same(sim, q, v, np.zeros(2))


def test_wedged():
    """What overlaps cannot part; more rows hold the ball than it has ways to go."""
    sim = sl.Simulator(free(("sphere", [0.1])), groove(10.0, 1e-5), tolerance=1e-12)
    q, v = pose((1e-6, 0, 0)), np.zeros(6)
    assert sim.step(q, v, friction=3.0).status == sl.Status.CONVERGED
    exact, rough = (sim.step_derivatives(q, v, friction=3.0, mode=mode) for mode in ("analytical", "fdc"))
    assert np.abs(exact.A - rough.A).max() < 1e-5 and np.abs(exact.B - rough.B).max() < 1e-5


def test_unknown_mode():
    sim, q, v, tau = standing("quadruped", 200.0, 5.0)
    with pytest.raises(ValueError, match="mode is 'ad', expected 'analytical' or 'fdc'"):
        sim.step_derivatives(q, v, tau, mode="ad")
