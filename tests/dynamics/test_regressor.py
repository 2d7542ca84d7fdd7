"""Inverse dynamics, energies and momentum by inertial parameters: against Pinocchio, against what they give, and against
parameters that change."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import saltus as sl
from benchmarks.robots import pinocchio_model, saltus_model
from tests.model import test_mimic


def states(model: sl.Model, shape: tuple[int, ...] = ()) -> tuple[Any, ...]:
    rng = np.random.default_rng(3)
    q = sl.random_configuration(model, 1, shape)
    return q, *rng.normal(size=(2, *shape, model.nv))


@pytest.mark.parametrize("robot", ["panda", "solo12", "talos38"])
def test_against_pinocchio(robot: str) -> None:
    model, peer = saltus_model(robot), pinocchio_model(robot)
    q, v, a = states(model)
    right = pin.computeJointTorqueRegressor(peer, peer.createData(), q, v, a)
    np.testing.assert_allclose(sl.torque_regressor(model, q, v, a), right, rtol=0, atol=1e-12 * np.abs(right).max())
    parameters = [peer.inertias[i].toDynamicParameters() for i in range(1, peer.njoints)]
    np.testing.assert_allclose(sl.inertial_parameters(model), parameters, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shape", [(), (3,), (2, 9)])
def test_torques_are_linear_in_the_parameters(seed: int, shape: tuple[int, ...]) -> None:
    model = sl.random_model(seed=seed, bodies=4 + 2 * seed)
    q, v, a = states(model, shape)
    Y, pi = sl.torque_regressor(model, q, v, a), sl.inertial_parameters(model).ravel()
    right = sl.rnea(model, q, v, a) - model.armature * a
    np.testing.assert_allclose(Y @ pi, right, rtol=0, atol=1e-12 * np.abs(Y).max() * np.abs(pi).sum())


def test_it_is_the_derivative_by_parameters() -> None:
    """Of a body of whatever mass, centre of mass and inertia: torques are those that the regressor says."""
    model = sl.load_robot("quadruped")
    q, v, a = states(model)
    Y, rng = sl.torque_regressor(model, q, v, a), np.random.default_rng(0)
    joints = tuple(
        replace(joint, mass=joint.mass * rng.uniform(0.5, 2), com=joint.com + rng.normal(size=3) * 0.1,
                inertia=joint.inertia * rng.uniform(1, 3))
        for joint in model.joints
    )  # fmt: skip
    other = model.replace(joints=joints)
    change = (sl.inertial_parameters(other) - sl.inertial_parameters(model)).ravel()
    found = sl.rnea(other, q, v, a) - sl.rnea(model, q, v, a)
    np.testing.assert_allclose(Y @ change, found, rtol=0, atol=1e-11 * np.abs(found).max())


def test_single_precision_and_joints_that_follow_others() -> None:
    model = sl.load_robot("quadruped")
    q, v, a = (x.astype(np.float32) for x in states(model, (5,)))
    found = sl.torque_regressor(model, q, v, a)
    assert found.dtype == np.float32
    right = sl.torque_regressor(model, *states(model, (5,)))
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-5 * np.abs(right).max())
    builder, parent = sl.ModelBuilder("fingers"), 0
    for name, mimic in (("a", None), ("b", sl.Mimic("a", 2.0, 0.1)), ("c", None)):
        parent = builder.add_joint(name, "revolute", parent=parent, axis=(0, 1, 0), mimic=mimic)
        builder.add_body(parent, mass=1.0, com=(0.1, 0.0, 0.2), inertia=0.1 * np.eye(3))
    hand = builder.build()
    q, v, a = states(hand)
    torques = sl.torque_regressor(hand, q, v, a) @ sl.inertial_parameters(hand).ravel()
    np.testing.assert_allclose(torques, sl.rnea(hand, q, v, a), rtol=0, atol=1e-12)


@pytest.mark.parametrize("robot", ["panda", "solo12", "talos38"])
def test_energies_and_momentum_against_pinocchio(robot: str) -> None:
    model, peer = saltus_model(robot), pinocchio_model(robot)
    data = peer.createData()
    q, v, _ = states(model)
    kinetic = pin.computeKineticEnergyRegressor(peer, data, q, v).ravel()
    potential = pin.computePotentialEnergyRegressor(peer, data, q).ravel()
    np.testing.assert_allclose(sl.kinetic_energy_regressor(model, q, v), kinetic, rtol=0, atol=1e-13 * kinetic.max())
    found = sl.potential_energy_regressor(model, q)
    np.testing.assert_allclose(found, potential, rtol=0, atol=1e-13 * np.abs(potential).max())
    h = pin.computeCentroidalMomentum(peer, data, q, v).vector
    found = sl.centroidal_momentum_regressor(model, q, v) @ sl.inertial_parameters(model).ravel()
    np.testing.assert_allclose(found, h, rtol=0, atol=1e-12 * np.abs(h).max())


HAND = test_mimic.MODEL
MODELS = [sl.random_model(seed=seed, bodies=4 + 2 * seed) for seed in range(4)] + [HAND]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
@pytest.mark.parametrize("shape", [(), (3,), (2, 9)])
def test_energies_and_momentum_are_linear(model: sl.Model, shape: tuple[int, ...]) -> None:
    """In the parameters of any bodies: those of the momentum about the centre of mass that these happen to have."""
    model, pi = model.with_armature(0.0), sl.inertial_parameters(model).ravel()
    q, v, _ = states(model, shape)
    close = partial(np.testing.assert_allclose, rtol=0)
    right = sl.kinetic_energy(model, q, v)
    close(sl.kinetic_energy_regressor(model, q, v) @ pi, right, atol=1e-12 * np.max(right))
    y = sl.potential_energy_regressor(model, q)
    close(y @ pi, sl.potential_energy(model, q), atol=1e-12 * np.abs(y).max() * np.abs(pi).sum())
    Y, h = sl.centroidal_momentum_regressor(model, q, v), sl.centroidal_momentum(model, q, v)
    close(Y @ pi, h, atol=1e-12 * np.abs(Y).max() * np.abs(pi).sum())
    heavier = model.replace(joints=(model.joints[0], *(replace(j, mass=3.0 * j.mass, inertia=3.0 * j.inertia)
                                                      for j in model.joints[1:])))  # fmt: skip
    assert heavier.total_mass > 2.9 * model.total_mass
    close(sl.centroidal_momentum_regressor(heavier, q, v), Y, atol=1e-12 * np.abs(Y).max())


def test_momentum_by_parameters_of_one_body() -> None:
    """About a point that stays: what is added to a body moves as that body does."""
    model = sl.load_robot("quadruped")
    q, v, _ = states(model)
    Y, i = sl.centroidal_momentum_regressor(model, q, v).reshape(6, -1, 10), model.njoints - 1
    place, velocity = sl.joint_placements(model, q)[i], sl.joint_velocities(model, q, v)[i]
    R, lever = place[:3, :3], place[:3, 3] - sl.center_of_mass(model, q)
    push = R @ velocity[:3]  # of a mass of 1 kg at the origin of the joint
    np.testing.assert_allclose(Y[:, i - 1, 0], [*push, *np.cross(lever, push)], rtol=0, atol=1e-12)
    spin = R @ np.diag([1.0, 0.0, 0.0]) @ velocity[3:]  # of a moment of inertia about x
    np.testing.assert_allclose(Y[:, i - 1, 4], [0, 0, 0, *spin], rtol=0, atol=1e-12)
