"""Constrained inverse dynamics against dense least squares, and there and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from tests.closeness import assert_close
from tests.constraints import truth

TOLERANCE = 1e-9


def quadruped() -> tuple[sl.Model, list[sl.Constraint], Any]:
    model = sl.load_robot("quadruped")
    return model, [sl.Contact(model, foot) for foot in sl.robot_frames("quadruped").feet], None


def humanoid() -> tuple[sl.Model, list[sl.Constraint], Any]:
    """Weights, and one foot twice."""
    model = sl.load_robot("humanoid")
    left, right = sl.robot_frames("humanoid").feet
    weights = [1.0, 2.0, 0.5, 4.0, 1.0, 3.0]
    return model, [*(sl.Contact(model, f, 6, weight=weights) for f in (left, left)), sl.Contact(model, right, 6)], None


def biped() -> tuple[sl.Model, list[sl.Constraint], Any]:
    """Legs with closed loops, whose rods have no actuators, and two points a foot."""
    model = sl.load_robot("biped")
    driven = ("roll", "yaw", "pitch", "knee", "crank")
    actuated = np.concatenate([[joint.name.endswith(driven)] * joint.nv for joint in model.joints[1:]])
    feet = [point for foot in sl.robot_frames("biped").feet for point in sl.LineContact(model, foot, 0.15)]
    return model, [*sl.model_loops(model), *feet], actuated


CASES = {"quadruped": quadruped, "humanoid": humanoid, "biped": biped}
each_case = pytest.mark.parametrize("name", list(CASES))


def states(model: sl.Model, count: int, seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    q = sl.random_configuration(model, seed, count)
    return q, *rng.normal(size=(2, count, model.nv))


def passive_of(model: sl.Model, actuated: Any) -> Any:
    return np.arange(model.nv) < 6 if actuated is None else ~actuated


def dense(
    model: sl.Model, constraints: Any, actuated: Any, q: Any, v: Any, a: Any, active: Any
) -> tuple[Any, Any, Any]:
    """Torques, forces of least weighted norm, and what is left of the passive rows."""
    blocks = [truth.rows_of(model, constraint, q, v)[0] for constraint in constraints]
    J = np.vstack([on * block for on, block in zip(active, blocks, strict=True)])
    scale = 1 / np.sqrt(np.concatenate([c.weight[list(c.rows)] for c in constraints]))
    d, passive = sl.rnea(model, q, v, a), passive_of(model, actuated)
    forces = scale * np.linalg.lstsq((scale[:, None] * J[:, passive]).T, d[passive], rcond=1e-10)[0]
    tau = d - J.T @ forces
    return np.where(passive, 0.0, tau), forces, tau[passive]


@each_case
def test_against_dense(name: str) -> None:
    """Also with contacts switched off, so that the passive rows cannot be met."""
    model, constraints, actuated = CASES[name]()
    q, v, a = states(model, 13, 1)
    active = np.random.default_rng(2).integers(0, 2, size=(13, len(constraints)))
    active[:5] = 1
    dynamics = sl.ConstrainedDynamics(model, constraints, "prox_ltl", most_iterations=200)
    found = dynamics.inverse_dynamics(q, v, a, active, actuated)
    for k in range(13):
        tau, forces, left = dense(model, constraints, actuated, q[k], v[k], a[k], active[k])
        size = np.abs(sl.rnea(model, q[k], v[k], a[k])).max()
        assert_close(found.tau[k], tau, TOLERANCE, max(size, np.abs(tau).max()))
        assert_close(found.forces[k], forces, TOLERANCE, max(size, np.abs(forces).max()))
        met = np.abs(left).max() < 1e-8 * size
        assert found.status[k] == (sl.Status.CONVERGED if met else sl.Status.LEAST_SQUARES)
        if not met:
            assert_close(found.residual[k], np.abs(left).max(), TOLERANCE)


@each_case
def test_there_and_back(name: str) -> None:
    """Accelerations that the constraints allow come back from the torques found for them."""
    model, constraints, actuated = CASES[name]()
    q, v, tau = states(model, 9, 3)
    tau[:, passive_of(model, actuated)] = 0.0
    dynamics = sl.ConstrainedDynamics(model, constraints, "prox_ltl", most_iterations=500, tolerance=1e-10)
    wanted = dynamics.solve(q, v, tau)
    found = dynamics.inverse_dynamics(q, v, wanted.a, actuated=actuated)
    assert (found.status == sl.Status.CONVERGED).all()
    assert not found.tau[:, passive_of(model, actuated)].any()
    assert_close(dynamics.solve(q, v, found.tau).a, wanted.a, 1e-8)
    weight = np.concatenate([c.weight[list(c.rows)] for c in constraints])
    ours, theirs = (np.sum(weight * forces**2, -1) for forces in (found.forces, wanted.forces))
    assert (ours <= theirs * (1 + 1e-9)).all()  # no forces do with less


def test_every_joint_driven_needs_no_forces() -> None:
    model, constraints, _ = quadruped()
    q, v, a = states(model, 3, 4)
    found = sl.ConstrainedDynamics(model, constraints).inverse_dynamics(q, v, a, actuated=np.ones(model.nv))
    assert_close(found.tau, sl.rnea(model, q, v, a), 1e-12)
    assert not found.forces.any() and (found.status == sl.Status.CONVERGED).all()


def test_in_the_air() -> None:
    """No forces: what the base needs is left, and said."""
    model, constraints, _ = quadruped()
    q, v, a = states(model, 3, 5)
    found = sl.ConstrainedDynamics(model, constraints).inverse_dynamics(q, v, a, np.zeros(4))
    needed = sl.rnea(model, q, v, a)
    assert_close(found.tau[:, 6:], needed[:, 6:], 1e-12)
    assert_close(found.residual, np.abs(needed[:, :6]).max(1), 1e-12)
    assert (found.status == sl.Status.LEAST_SQUARES).all() and not found.forces.any()


def test_rows_of_users() -> None:
    """A gear's force moves a joint that has no actuator."""
    arm = sl.load_robot("arm")
    q, v, a = states(arm, 4, 6)
    J = np.zeros((1, arm.nv))
    J[0, 1:3] = 1.0, -2.0
    actuated = np.arange(arm.nv) != 2
    dynamics = sl.ConstrainedDynamics(arm, [sl.UserRows(arm, 1, [1, 2])], "prox_ltl")
    found = dynamics.inverse_dynamics(q, v, a, actuated=actuated, rows=J)
    d = sl.rnea(arm, q, v, a)
    assert_close(found.forces[:, 0], -0.5 * d[:, 2], TOLERANCE)
    assert_close(found.tau[:, 1], d[:, 1] + 0.5 * d[:, 2], TOLERANCE)


def test_errors() -> None:
    model, constraints, _ = quadruped()
    zeros = np.zeros(model.nv)
    with pytest.raises(ValueError, match=r"actuated has shape \(3,\), expected \(18,\)"):
        sl.ConstrainedDynamics(model, constraints).inverse_dynamics(model.neutral(), zeros, zeros, actuated=[1, 0, 1])
