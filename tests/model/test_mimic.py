"""Robots with mimic joints, against the dense oracle, which puts a mimic joint's column onto its primary's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import saltus as sl
from tests import oracles


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
