"""Inverse dynamics by inertial parameters: against Pinocchio, against `rnea`, and against parameters that change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import saltus as sl
from benchmarks.robots import pinocchio_model, saltus_model


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
