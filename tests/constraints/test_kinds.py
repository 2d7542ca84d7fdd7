"""Kinds of constraints beside points, welds and loops: rows of contacts and users, edges, surfaces; external forces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import saltus as sl
from saltus.constraints.dynamics import METHODS, TAKE_ROWS
from tests.closeness import assert_close
from tests.constraints import truth

TOLERANCE = 1e-9
each_method = pytest.mark.parametrize("method", sorted(METHODS))
each_row_method = pytest.mark.parametrize("method", sorted(TAKE_ROWS))


def states(model: sl.Model, count: int, seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    q = sl.random_configuration(model, seed, count)
    return q, rng.normal(size=(count, model.nv)), 10.0 * rng.normal(size=(count, model.nv))


def sleigh(ahead: float) -> sl.Model:
    """A body on a plane with a knife edge along x, its centre of mass ahead of it. m = 3, I = 0.5."""
    builder = sl.ModelBuilder("sleigh")
    builder.add_joint("base", "planar")
    builder.add_body("base", 3.0, com=[ahead, 0, 0], inertia=0.5 * np.eye(3))
    builder.add_frame("edge", "base")
    return builder.build()


@each_method
def test_rows_of_contacts_against_dense(method: str) -> None:
    model = sl.load_robot("quadruped")
    contacts = [sl.Contact(model, "LF_FOOT", rows=(1,), kd=3.0), sl.Contact(model, "RH_FOOT", rows=(5, 0, 2))]
    q, v, tau = states(model, 9, 1)
    target = np.random.default_rng(0).normal(size=(9, 4))
    solution = sl.ConstrainedDynamics(model, contacts, method).solve(q, v, tau, target=target)
    for k in range(len(q)):
        a, forces, _ = truth.solve(model, contacts, q[k], v[k], tau[k], target=target[k])
        assert_close(solution.a[k], a, TOLERANCE)
        assert_close(solution.forces[k], forces, 1e-8)


@each_method
def test_chaplygin_sleigh(method: str) -> None:
    """Closed form: u' = l w^2, w' = -m l u w / (I + m l^2), pushed sideways by m (u w + l w')."""
    ahead, mass, inertia = 0.4, 3.0, 0.5
    model = sleigh(ahead)
    q, (u, w) = sl.random_configuration(model, 0), (1.7, -0.8)
    dynamics = sl.ConstrainedDynamics(model, [sl.Contact(model, "edge", rows=(1,))], method)
    solution = dynamics.solve(q, np.array([u, 0.0, w]), np.zeros(3))
    spin = -mass * ahead * u * w / (inertia + mass * ahead**2)
    assert_close(solution.a, np.array([ahead * w**2, 0.0, spin]), TOLERANCE)
    assert_close(solution.forces, np.array([mass * (u * w + ahead * spin)]), TOLERANCE)


def test_a_skate_does_not_slip() -> None:
    """Over time, too: with its centre of mass at the edge it goes round a circle, of radius u / w."""
    model, steps, (u, w) = sleigh(0.0), 400, (1.0, 2.0)
    dynamics = sl.ConstrainedDynamics(model, [sl.Contact(model, "edge", rows=(1,))])
    q, v, step = model.neutral(), np.array([u, 0.0, w]), 2 * np.pi / w / steps
    way = []
    for _ in range(steps):
        middle = sl.integrate(model, q, 0.5 * step * v)
        v = v + step * dynamics.solve(middle, v, np.zeros(3)).a
        q = sl.integrate(model, q, step * v)
        way.append(q[:2])
    assert_close(v, np.array([u, 0.0, w]), TOLERANCE)
    assert_close(np.hypot(*(np.array(way) - [0.0, u / w]).T), np.full(steps, u / w), 1e-9)


@each_row_method
def test_rolling_disc(method: str) -> None:
    """An upright disc rolls without slipping: x' = r phi' cos(theta), y' = r phi' sin(theta). Closed form:
    (I + m r^2) phi'' = its torque, J theta'' = its torque."""
    radius, mass, spin, turn = 0.2, 1.5, 0.03, 0.02
    builder = sl.ModelBuilder("disc")
    for name, kind, axis, parent in (
        ("x", "prismatic", (1, 0, 0), "universe"), ("y", "prismatic", (0, 1, 0), "x"),
        ("theta", "revolute", (0, 0, 1), "y"), ("phi", "revolute", (0, 1, 0), "theta"),
    ):  # fmt: skip
        builder.add_joint(name, kind, parent, axis=axis)
    builder.add_body("phi", mass, inertia=np.diag([turn, spin, turn]))
    disc = builder.build()
    rng = np.random.default_rng(0)
    q, rates, torques = sl.random_configuration(disc, 0, 7), rng.normal(size=(7, 2)), rng.normal(size=(7, 2))
    theta, one, none = q[:, 2], np.ones(7), np.zeros(7)
    cos, sin = np.cos(theta), np.sin(theta)
    J = np.stack([np.stack([one, none, none, -radius * cos], -1), np.stack([none, one, none, -radius * sin], -1)], -2)
    theta_rate, phi_rate = rates.T
    v = np.stack([radius * phi_rate * cos, radius * phi_rate * sin, theta_rate, phi_rate], -1)
    drift = radius * (phi_rate * theta_rate)[:, None] * np.stack([sin, -cos], -1)  # dJ/dt v
    dynamics = sl.ConstrainedDynamics(disc, [sl.UserRows(disc, 2, name="rolling")], method)
    tau = np.concatenate([np.zeros((7, 2)), torques], -1)
    a = dynamics.solve(q, v, tau, target=-drift, rows=J).a
    assert_close(a[:, 2], torques[:, 0] / turn, TOLERANCE)
    assert_close(a[:, 3], torques[:, 1] / (spin + mass * radius**2), TOLERANCE)
    assert_close(np.einsum("krv,kv->kr", J, a), -drift, 1e-8)


@pytest.mark.parametrize("dofs", [None, [8, 11, 14]])
@each_row_method
def test_differential_gear(method: str, dofs: Any) -> None:
    """The mean of two joints drives a third one, on a robot that stands; between other constraints, and switched off."""
    model, off = sl.load_robot("quadruped"), 3
    J = np.zeros((2, model.nv))
    J[0, [8, 11, 14]], J[1, [8, 14]] = (0.5, 0.5, -1.0), (1.0, 3.0)
    constraints = [sl.Contact(model, "LF_FOOT"), sl.UserRows(model, 2, dofs), sl.Contact(model, "RH_FOOT", 6)]
    q, v, tau = states(model, 6, 2)
    active, target = np.ones((6, 3)), np.random.default_rng(0).normal(size=(6, 11))
    active[off, 1] = 0
    solution = sl.ConstrainedDynamics(model, constraints, method).solve(q, v, tau, active, target, rows=J)
    for k in range(6):
        (A, drift, *_), (B, drift_b, *_) = (truth.rows_of(model, constraints[c], q[k], v[k]) for c in (0, 2))
        rows = np.vstack([A, (k != off) * J, B])
        goal = target[k] - np.concatenate([drift, [0, 0], drift_b])
        goal[3:5] *= k != off
        M, rest = sl.crba(model, q[k]), tau[k] - sl.nonlinear_effects(model, q[k], v[k])
        response = np.linalg.solve(M, np.column_stack([rest, rows.T]))
        delassus = rows @ response[:, 1:]
        forces = np.linalg.pinv(delassus, rtol=1e-11, hermitian=True) @ (goal - rows @ response[:, 0])
        assert_close(solution.a[k], response @ np.concatenate([[1.0], forces]), TOLERANCE)
        assert_close(solution.forces[k], forces, 1e-8)


@each_method
def test_edges_and_surfaces(method: str) -> None:
    """A surface holds what a contact of six rows does, with forces that add up; an edge leaves the turn about it free."""
    model, sole = sl.load_robot("humanoid"), "left_sole"
    q, v, tau = states(model, 5, 3)
    surface = sl.SurfaceContact(model, sole, (0.2, 0.1))
    found = sl.ConstrainedDynamics(model, surface, method, most_iterations=200).solve(q, v, tau)
    for k in range(5):
        a, _, _ = truth.solve(model, surface, q[k], v[k], tau[k])
        assert_close(found.a[k], a, TOLERANCE)
    still = np.zeros_like(v)
    six = sl.ConstrainedDynamics(model, [sl.Contact(model, sole, 6)], method).solve(q, still, tau)
    corners = sl.ConstrainedDynamics(model, surface, method, most_iterations=200).solve(q, still, tau)
    assert_close(corners.a, six.a, 1e-8)
    points = np.array([[0.1, 0.05, 0], [-0.1, 0.05, 0], [-0.1, -0.05, 0], [0.1, -0.05, 0]])
    forces = corners.forces.reshape(5, 4, 3)
    wrench = np.concatenate([forces.sum(1), np.cross(points, forces).sum(1)], -1)
    assert_close(wrench, six.forces, 1e-8)

    edge = sl.LineContact(model, sole, 0.2)
    line = sl.ConstrainedDynamics(model, edge, method, most_iterations=200).solve(q, still, tau)
    five = sl.ConstrainedDynamics(model, [sl.Contact(model, sole, rows=(0, 1, 2, 4, 5))], method).solve(q, still, tau)
    assert_close(line.a, five.a, 1e-8)


def test_points_of_edges_and_surfaces() -> None:
    model = sl.load_robot("humanoid")
    ends = np.array([[0.1, 0.02, 0.0], [-0.1, 0.02, 0.01]])
    for contact, end in zip(sl.LineContact(model, "left_sole", ends=ends, name="toe"), ends, strict=True):
        frame = model.frames[model.frame_index("left_sole")]
        assert_close(contact.placement_a[:3, 3], (frame.placement @ [*end, 1.0])[:3], 1e-15)
        assert contact.name.startswith("toe ") and contact.dim == 3 and contact.point
    anchor = np.eye(4)
    anchor[:3, 3] = 1.0, 2.0, 3.0
    corners = [[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0]]
    surface = sl.SurfaceContact(model, "left_sole", corners=corners, anchor=anchor, kp=10.0, kd=1.0)
    assert_close(np.array([c.placement_b[:3, 3] for c in surface]), np.add(corners, [1.0, 2.0, 3.0]), 1e-15)


@each_method
def test_external_forces(method: str) -> None:
    """Against Pinocchio's unconstrained forces, by dense least squares; without contacts, the free motion."""
    model = sl.load_robot("quadruped")
    contacts = [sl.Contact(model, "LF_FOOT"), sl.Contact(model, "RH_FOOT")]
    q, v, tau = states(model, 4, 5)
    external = 20.0 * np.random.default_rng(0).normal(size=(4, model.njoints, 6))
    dynamics = sl.ConstrainedDynamics(model, contacts, method)
    found, free = (dynamics.solve(q, v, tau, active, external=external) for active in (None, [0, 0]))
    assert_close(free.a, sl.aba(model, q, v, tau, external), TOLERANCE)
    for k in range(4):
        pushed = tau[k].copy()
        for i in range(1, model.njoints):
            pushed += sl.joint_jacobian(model, q[k], i, "local").T @ external[k, i]
        a, forces, _ = truth.solve(model, contacts, q[k], v[k], pushed)
        assert_close(found.a[k], a, TOLERANCE)
        assert_close(found.forces[k], forces, 1e-8)


def test_external_forces_against_pinocchio() -> None:
    from tests.model.robots import ROBOTS

    path, frame_name = ROBOTS / "talos_data/robots/talos_reduced.urdf", "left_sole_link"
    model, robot = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer()), sl.load_urdf(path, floating_base=True)
    q, v, tau = (x[0] for x in states(robot, 1, 6))
    external = np.random.default_rng(0).normal(size=(robot.njoints, 6))
    data, frame = model.createData(), model.frames[model.getFrameId(frame_name)]
    contact = pin.RigidConstraintModel(pin.ContactType.CONTACT_6D, model, frame.parentJoint, frame.placement, pin.LOCAL)
    contacts, found = pin.StdVec_RigidConstraintModel([contact]), pin.StdVec_RigidConstraintData([contact.createData()])
    pin.initConstraintDynamics(model, data, contacts, found)
    pushed = pin.rnea(model, data, q, v, 0 * v).copy() - pin.rnea(model, data, q, v, 0 * v, forces_of(external))
    torques = tau + pushed
    right = pin.constraintDynamics(model, data, q, v, torques, contacts, found, pin.ProximalSettings(1e-14, 1e-8, 10))
    dynamics = sl.ConstrainedDynamics(robot, [sl.Contact(robot, frame_name, 6)], tolerance=1e-13)
    assert_close(dynamics.solve(q, v, tau, external=external).a, right, TOLERANCE)


def forces_of(external: Any) -> Any:
    forces = pin.StdVec_Force()
    forces.extend([pin.Force(each) for each in external])
    return forces


def test_errors() -> None:
    model = sl.load_robot("humanoid")
    zeros = np.zeros(model.nv)
    with pytest.raises(sl.ModelError, match=r"kp is 1.0, but rows of its velocity have no placement"):
        sl.Contact(model, "left_sole", rows=(1,), kp=1.0)
    with pytest.raises(sl.ModelError, match="expected different ones of 0 to 5"):
        sl.Contact(model, "left_sole", rows=(6,))
    with pytest.raises(sl.ModelError, match="expected either a length or two ends"):
        sl.LineContact(model, "left_sole")
    with pytest.raises(sl.ModelError, match=r"its ends have shape \(3, 3\), expected \(2, 3\)"):
        sl.LineContact(model, "left_sole", ends=np.zeros((3, 3)))
    with pytest.raises(sl.ModelError, match="expected either a size or corners"):
        sl.SurfaceContact(model, "left_sole")
    with pytest.raises(sl.ModelError, match=r"its corners have shape \(2, 3\), expected \(>= 3, 3\)"):
        sl.SurfaceContact(model, "left_sole", corners=np.zeros((2, 3)))
    with pytest.raises(sl.ModelError, match="its count of rows is 0, expected one or more"):
        sl.UserRows(model, 0)
    with pytest.raises(sl.ModelError, match=rf"its dofs are \(99,\), expected some of 0 to {model.nv - 1}"):
        sl.UserRows(model, 1, [99])
    rows = [sl.UserRows(model, 2, name="wheel")]
    with pytest.raises(
        sl.ModelError, match="'constrained_aba' takes no rows of users, such as 'wheel', expected one of"
    ):
        sl.ConstrainedDynamics(model, rows)
    dynamics = sl.ConstrainedDynamics(model, rows, "prox_ltl")
    with pytest.raises(ValueError, match=rf"rows is None, expected \(..., 2, {model.nv}\), for 'wheel'"):
        dynamics.solve(model.neutral(), zeros, zeros)
    with pytest.raises(ValueError, match=r"rows has shape \(1, "):
        dynamics.solve(model.neutral(), zeros, zeros, rows=zeros[None])
    few = sl.ConstrainedDynamics(model, [sl.UserRows(model, 1, [8], name="one")], "prox_ltl")
    with pytest.raises(ValueError, match="rows are not 0 in column 30, expected only in the dofs .8,. of 'one'"):
        J = np.zeros((1, model.nv))
        J[0, 30] = 1.0
        few.solve(model.neutral(), zeros, zeros, rows=J)
    with pytest.raises(ValueError, match="rows are given, but no constraint takes them"):
        sl.ConstrainedDynamics(model, [sl.Contact(model, "left_sole")]).solve(
            model.neutral(), zeros, zeros, rows=zeros[None]
        )
