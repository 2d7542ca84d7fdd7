"""Robots with mimic joints, against the dense oracle, which puts a mimic joint's column onto its primary's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.model.coupled_tables import Slots
from tests import oracles
from tests.closeness import assert_close, with_rounding
from tests.model.hands import HANDS, load_hands, random_coupled, system_in_pinocchio


def gripper() -> sl.Model:
    """A free-flying hand: a finger that follows another with a ratio, one that follows a continuous joint, and a slide."""
    builder = sl.ModelBuilder("gripper")
    rng = np.random.default_rng(5)

    def body(joint: int) -> None:
        builder.add_body(
            joint, mass=rng.uniform(0.5, 2.0), com=rng.normal(size=3) * 0.1, inertia=np.diag([0.01, 0.012, 0.015])
        )

    palm = builder.add_joint("palm", "free_flyer")
    finger = builder.add_joint("finger", "revolute", palm, axis=(0, 1, 0), armature=0.1)
    spinner = builder.add_joint("spinner", "continuous", palm, axis=(0, 0, 1))
    follower = builder.add_joint("follower", "revolute", palm, axis=(1, 0, 0), mimic=sl.Mimic("finger", -2.0, 0.3))
    tip = builder.add_joint("tip", "revolute", finger, axis=(0, 1, 0), mimic=sl.Mimic("finger", 0.5, 0.0))
    gear = builder.add_joint("gear", "continuous", spinner, axis=(0, 1, 1), mimic=sl.Mimic("spinner", 1.5, -0.2))
    slide = builder.add_joint("slide", "prismatic", follower, axis=(1, 0, 0))
    for joint in (palm, finger, spinner, follower, tip, gear, slide):
        body(joint)
    return builder.build()


MODEL = gripper()
RNG = np.random.default_rng(1)
Q = sl.random_configuration(MODEL, 2)
V, A, TAU = RNG.normal(size=(3, MODEL.nv))
F = RNG.normal(size=(MODEL.njoints, 6))
JOINT = MODEL.joint_index("slide")

CASES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "aba": (lambda: sl.aba(MODEL, Q, V, TAU, F), lambda: oracles.forward_dynamics(MODEL, Q, V, TAU, F)),
    "rnea": (lambda: sl.rnea(MODEL, Q, V, A, F), lambda: oracles.inverse_dynamics(MODEL, Q, V, A, F)),
    "crba": (lambda: sl.crba(MODEL, Q), lambda: oracles.mass_matrix(MODEL, Q)),
    "minverse": (lambda: sl.minverse(MODEL, Q), lambda: oracles.mass_matrix_inverse(MODEL, Q)),
    "jacobian": (lambda: sl.joint_jacobian(MODEL, Q, JOINT), lambda: oracles.joint_jacobian(MODEL, Q, JOINT)),
    "accelerations": (lambda: sl.joint_accelerations(MODEL, Q, V, A), lambda: oracles.accelerations(MODEL, Q, V, A)),
    "momentum": (lambda: sl.centroidal_momentum(MODEL, Q, V), lambda: oracles.centroidal_momentum(MODEL, Q, V)),
    "momentum matrix": (
        lambda: sl.centroidal_momentum_matrix(MODEL, Q),
        lambda: oracles.centroidal_momentum_matrix(MODEL, Q),
    ),
    "kinetic energy": (lambda: sl.kinetic_energy(MODEL, Q, V), lambda: oracles.kinetic_energy(MODEL, Q, V)),
    "integrate": (lambda: sl.integrate(MODEL, Q, V), lambda: oracles.integrate(MODEL, Q, V)),
    "batch": (
        lambda: sl.aba(MODEL, np.stack([Q, Q]), V, TAU, F)[1],
        lambda: oracles.forward_dynamics(MODEL, Q, V, TAU, F),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_oracle(name: str) -> None:
    ours, theirs = (np.asarray(call()) for call in CASES[name])
    assert np.abs(ours - theirs).max() <= 1e-11 * np.abs(theirs).max()


COUPLED = [model for model in map(random_coupled, range(25)) if model.coupling]


@pytest.mark.parametrize("model", COUPLED, ids=lambda model: model.name)
@pytest.mark.parametrize("specialised", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_forward_dynamics_of_any_tree(model: sl.Model, specialised: bool) -> None:
    """Groups of joints within each other, across branches, and closed at the world."""
    rng, q = np.random.default_rng(1), sl.random_configuration(model, 1, 9)
    v, tau = rng.normal(size=(2, 9, model.nv))
    forces = rng.normal(size=(9, model.njoints, 6))
    robot = sl.specialise(model) if specialised else model
    right = np.array([oracles.forward_dynamics(model, *each) for each in zip(q, v, tau, forces, strict=True)])
    conditions = [np.linalg.cond(oracles.mass_matrix(model, each)) for each in q]
    found = sl.aba(robot, q, v, tau, forces)
    for x, y, condition in zip(found, right, conditions, strict=True):
        assert_close(x, y, with_rounding(1e-11, condition, 10.0))
    assert_close(sl.aba(robot, q[0], v[0], tau[0], forces[0]), found[0], with_rounding(1e-12, conditions[0], 10.0))
    still = np.zeros_like(forces)
    assert_close(sl.aba(robot, q, v, tau), sl.aba(robot, q, v, tau, still), 1e-11)


@pytest.mark.parametrize("model", COUPLED[::3], ids=lambda model: model.name)
def test_inverse_dynamics_and_inertia_of_any_tree(model: sl.Model) -> None:
    rng, q = np.random.default_rng(1), sl.random_configuration(model, 1, 9)
    v, a = rng.normal(size=(2, 9, model.nv))
    forces, still = rng.normal(size=(9, model.njoints, 6)), np.zeros(model.nv)
    M, tau = sl.crba(model, q), sl.rnea(model, q, v, a, forces)
    drift, held = sl.nonlinear_effects(model, q, v, forces), sl.gravity(model, q, forces)
    for k in range(9):
        assert_close(M[k], oracles.mass_matrix(model, q[k]), 1e-12)
        assert_close(tau[k], oracles.inverse_dynamics(model, q[k], v[k], a[k], forces[k]), 1e-11)
        assert_close(drift[k], oracles.inverse_dynamics(model, q[k], v[k], still, forces[k]), 1e-11)
        assert_close(held[k], oracles.inverse_dynamics(model, q[k], still, still, forces[k]), 1e-11)
    assert_close(sl.crba(model, q[0]), M[0], 1e-12)
    assert_close(sl.rnea(model, q[0], v[0], a[0], forces[0]), tau[0], 1e-11)
    single = sl.rnea(model, *(x.astype(np.float32) for x in (q, v, a, forces)))
    assert single.dtype == np.float32
    assert_close(single, tau, 1e-4)


def test_slots() -> None:
    """A group is open from its joints to the body that carries all of them; there are many of each kind."""
    closed_at_world = closed_across = closed_within = nested = 0
    for model in COUPLED:
        slots = Slots(model)
        for i, closing in enumerate(slots.closing):
            own = {g for g in closing if i in slots.groups[g]}
            closed_at_world += i == 0 and bool(closing)
            closed_across += i > 0 and bool(closing - own)
            closed_within += bool(own)
            nested += len(slots.of_body[i]) > 1
    assert min(closed_at_world, closed_across, closed_within, nested) >= 5


@pytest.mark.parametrize("path", HANDS, ids=lambda path: path.rpartition("/")[2][:-5])
def test_hands_against_pinocchio(path: str) -> None:
    """Its `aba` knows no mimic joints: its inertia matrix and inverse dynamics do."""
    model = load_hands(path)
    rng, q = np.random.default_rng(0), sl.random_configuration(model, 1)
    v, tau = rng.normal(size=(2, model.nv))
    M, b = system_in_pinocchio(path, model, q, v)[:2]
    assert_close(sl.crba(model, q), M, 1e-11)
    assert_close(sl.nonlinear_effects(model, q, v), b, 1e-10)
    right = np.linalg.solve(M, tau - b)
    assert_close(sl.aba(model, q, v, tau), right, with_rounding(1e-10, np.linalg.cond(M)))


def test_one_call_for_packets_and_single_precision() -> None:
    """As with all models, results may be given, and samples marked."""
    q, rng = sl.random_configuration(MODEL, 3, 40), np.random.default_rng(2)
    v, tau = rng.normal(size=(2, 40, MODEL.nv))
    right, out = sl.aba(MODEL, q, v, tau), np.empty((40, MODEL.nv))
    assert sl.aba(MODEL, q, v, tau, out=out) is out and np.array_equal(out, right)
    single = sl.aba(MODEL, *(x.astype(np.float32) for x in (q, v, tau)))
    assert single.dtype == np.float32
    assert_close(single, right, 1e-3)
    with pytest.raises(ValueError, match=r"^aba: tau has shape \(3,\), expected \(\.\.\., 9\)"):
        sl.aba(MODEL, q, v, tau[0, :3])
    q[3, 3:7] *= 2.0
    with pytest.raises(ValueError, match=r"^aba: q\[3\]: the quaternion of joint 'palm'"):
        sl.aba(MODEL, q, v, tau)


def test_follows_its_primary() -> None:
    assert (MODEL.nq, MODEL.nv) == (7 + 1 + 2 + 1, 6 + 1 + 1 + 1)
    moved = sl.joint_placements(MODEL, sl.integrate(MODEL, Q, np.eye(MODEL.nv)[6] * 0.1))
    still = sl.joint_placements(MODEL, Q)
    follower, spinner = MODEL.joint_index("follower"), MODEL.joint_index("spinner")
    turn = np.arccos((np.trace(still[follower, :3, :3].T @ moved[follower, :3, :3]) - 1) / 2)
    assert turn == pytest.approx(0.2)
    assert np.allclose(moved[spinner], still[spinner])


def test_factors_are_refused() -> None:
    with pytest.raises(ValueError, match="mimic"):
        sl.ltl(MODEL, sl.crba(MODEL, Q))
