"""Impacts against Pinocchio and dense least squares; what becomes of the energy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import saltus as sl
from tests.closeness import assert_close
from tests.constraints import truth
from tests.model.robots import ROBOTS

TOLERANCE = 1e-9
TALOS = ROBOTS / "talos_data/robots/talos_reduced.urdf"


def humanoid() -> tuple[sl.Model, list[sl.Constraint]]:
    """Contacts of both kinds, one of them twice, and a loop."""
    model, names = sl.load_robot("humanoid"), sl.robot_frames("humanoid")
    (left, right), (left_hand, right_hand) = names.feet, names.hands
    feet = [sl.Contact(model, left, 6), sl.Contact(model, left, 6), sl.Contact(model, right, 3)]
    return model, [*feet, sl.LoopClosure(model, left_hand, right_hand, 5)]


def states(model: sl.Model, count: int, seed: int) -> tuple[Any, Any]:
    return sl.random_configuration(model, seed, count), np.random.default_rng(seed).normal(size=(count, model.nv))


def dense(model: sl.Model, constraints: Any, q: Any, v: Any, active: Any, restitution: Any) -> tuple[Any, Any]:
    """Velocities after, and impulses of least norm."""
    blocks = [truth.rows_of(model, constraint, q, v)[0] for constraint in constraints]
    J = np.vstack([on * block for on, block in zip(active, blocks, strict=True)])
    e = np.repeat(restitution, [len(block) for block in blocks])
    response = np.linalg.solve(sl.crba(model, q), J.T)
    impulses = np.linalg.pinv(J @ response, rtol=1e-11, hermitian=True) @ (-(1.0 + e) * (J @ v))
    return v + response @ impulses, impulses


def test_against_dense_with_masks_and_restitution() -> None:
    """Loops and duplicated contacts included; every sample has its own active constraints and restitutions."""
    model, constraints = humanoid()
    q, v = states(model, 17, 0)
    rng = np.random.default_rng(1)
    active, restitution = rng.integers(0, 2, size=(17, 4)).astype(float), rng.uniform(size=(17, 4))
    restitution[:, 1] = restitution[:, 0]  # two of the same contact cannot bounce differently
    impact = sl.ConstrainedDynamics(model, constraints, "prox_ltl").impact(q, v, active, restitution)
    assert (impact.status == sl.Status.CONVERGED).all() and impact.residual.shape == (17,)
    for k in range(17):
        after, impulses = dense(model, constraints, q[k], v[k], active[k], restitution[k])
        assert_close(impact.v[k], after, TOLERANCE)
        assert_close(impact.impulses[k], impulses, 1e-8)


@pytest.mark.parametrize("restitution", [0.0, 0.4, 1.0])
def test_against_pinocchio(restitution: float) -> None:
    model, robot = (
        pin.buildModelFromUrdf(str(TALOS), pin.JointModelFreeFlyer()),
        sl.load_urdf(TALOS, floating_base=True),
    )
    data, frames = model.createData(), ("left_sole_link", "right_sole_link")
    contacts, found = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for frame in (model.frames[model.getFrameId(name)] for name in frames):
        contact = pin.RigidConstraintModel(
            pin.ContactType.CONTACT_6D, model, frame.parentJoint, frame.placement, pin.LOCAL
        )
        contacts.append(contact)
        found.append(contact.createData())
    pin.initConstraintDynamics(model, data, contacts, found)
    dynamics = sl.ConstrainedDynamics(robot, [sl.Contact(robot, name, 6) for name in frames], tolerance=1e-14)
    for q, v in zip(*states(robot, 5, 3), strict=True):
        settings = pin.ProximalSettings(1e-14, 1e-14, 1)  # its impacts do not iterate
        theirs = pin.impulseDynamics(model, data, q, v, contacts, found, restitution, settings)
        ours = dynamics.impact(q, v, restitution=restitution)
        assert_close(ours.v, theirs, TOLERANCE)
        impulses = np.concatenate([each.contact_force.vector for each in found])
        assert_close(ours.impulses, impulses, TOLERANCE)


def test_energy_never_grows() -> None:
    """What is lost is (1 - e^2) times the energy of what the constraints end; nothing for e = 1."""
    model, constraints = humanoid()
    q, v = states(model, 300, 4)
    rng = np.random.default_rng(5)
    restitution = rng.uniform(size=(300, 1)) * np.ones(4)
    restitution[0], restitution[1] = 0.0, 1.0
    active = rng.integers(0, 2, size=(300, 4))
    dynamics = sl.ConstrainedDynamics(model, constraints, "prox_ltl", tolerance=1e-12)
    before = sl.kinetic_energy(model, q, v)
    after = sl.kinetic_energy(model, q, dynamics.impact(q, v, active, restitution).v)
    ended = sl.kinetic_energy(model, q, v - dynamics.impact(q, v, active).v)
    assert (after <= before * (1 + 1e-12)).all()
    assert_close(before - after, (1 - restitution[:, 0] ** 2) * ended, TOLERANCE)


def test_a_rod_bounces() -> None:
    """Closed form: a rod of mass m that falls flat onto one end, which comes back at e times its speed."""
    builder, mass, half, inertia = sl.ModelBuilder("rod"), 2.0, 0.3, 0.06
    builder.add_joint("base", "free_flyer")
    builder.add_body("base", mass, inertia=inertia * np.eye(3))
    tip = np.eye(4)
    tip[0, 3] = half
    builder.add_frame("tip", "base", tip)
    rod = builder.build()
    v = np.array([0.0, 0.0, -1.5, 0.0, 0.0, 0.0])
    impact = sl.ConstrainedDynamics(rod, [sl.Contact(rod, "tip", rows=(2,))]).impact(rod.neutral(), v, restitution=0.6)
    impulse = 1.6 * 1.5 / (1 / mass + half**2 / inertia)
    assert_close(impact.impulses, np.array([impulse]), TOLERANCE)
    assert_close(impact.v, np.array([0, 0, -1.5 + impulse / mass, 0, -half * impulse / inertia, 0]), TOLERANCE)


def test_rows_of_users() -> None:
    """A foot's own Jacobian, given as rows."""
    model = sl.load_robot("quadruped")
    q, v = states(model, 5, 6)
    J = sl.frame_jacobian(model, q, "LF_FOOT")[:, :3]
    given = sl.ConstrainedDynamics(model, [sl.UserRows(model, 3)], "prox_ltl").impact(q, v, restitution=0.3, rows=J)
    right = sl.ConstrainedDynamics(model, [sl.Contact(model, "LF_FOOT")]).impact(q, v, restitution=0.3)
    assert_close(given.v, right.v, TOLERANCE)
    assert_close(given.impulses, right.impulses, TOLERANCE)


def test_errors() -> None:
    model, constraints = humanoid()
    dynamics, q, v = sl.ConstrainedDynamics(model, constraints, "prox_ltl"), model.neutral(), np.zeros(model.nv)
    with pytest.raises(ValueError, match="restitution is 1.5, expected numbers from 0 to 1"):
        dynamics.impact(q, v, restitution=1.5)
    with pytest.raises(ValueError, match=r"restitution has shape \(3,\), expected a number or \(..., 4\)"):
        dynamics.impact(q, v, restitution=[0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match=r"impact: v has shape \(3,\)"):
        dynamics.impact(q, np.zeros(3))
