"""Inverse dynamics, energies and momentum as linear functions of the inertial parameters of the bodies.

    tau = Y(q, v, a) pi,      T = y_T(q, v) pi,      V = y_V(q) pi,      h = Y_h(q, v) pi

with pi = (m, m c, J) of each body: ten numbers. The force that body i needs is linear in its parameters; each of the ten is
carried to the root, joint by joint, as `rnea` carries their sum. O(n d) for trees of depth d. The momentum of a body is the
force that gives it its velocity within a second, from rest; the kinetic energy is half of that along the velocity. O(n).

| paper | code | what | frame |
|---|---|---|---|
| pi_i | `inertial_parameters` | m, m c (3), and of the inertia about the joint's origin xx, xy, yy, xz, yz, zz | joint |
| A_i | `columns` | force of body i by its parameters | joint, then canonical |

Reference: C. G. Atkeson, C. H. An, J. M. Hollerbach, Estimation of inertial parameters of manipulator loads and links,
IJRR 5 (1986); the order of parameters is Pinocchio's.
"""

from __future__ import annotations

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.dynamics.centroidal import PLACES, center_or_origin, gather_momentum
from saltus.dynamics.kinematics import at_origin
from saltus.kernel import Layout, kernel, st, zero
from saltus.model.joint_kernels import (
    add_motion,
    carried,
    component,
    joint_placement,
    joint_rotation,
    joint_turn,
    placed_after,
)
from saltus.model.model import Model
from saltus.model.parameters import PARAMETERS
from saltus.model.tree import algorithm
from saltus.spatial.algebra import SE3, Force, Motion, Vec3, act_force, act_inv, cross, power, turn_back

WORK = Layout(nj={"place": SE3, "velocity": Motion, "acceleration": Motion})


@kernel
def columns(velocity, acceleration):
    """The forces of a body whose inertia is one of the ten parameters alone, of size 1, in the order of `PARAMETERS`."""
    o, w, alpha = velocity.ang.x * 0.0, velocity.ang, acceleration.ang
    c, none = acceleration.lin + cross(w, velocity.lin), Vec3(o, o, o)
    x, y, z = Vec3(o + 1.0, o, o), Vec3(o, o + 1.0, o), Vec3(o, o, o + 1.0)
    return (
        Force(c, none),
        Force(swung(alpha, w, x), cross(x, c)),
        Force(swung(alpha, w, y), cross(y, c)),
        Force(swung(alpha, w, z), cross(z, c)),
        Force(none, turned(w, Vec3(alpha.x, o, o), Vec3(w.x, o, o))),
        Force(none, turned(w, Vec3(alpha.y, alpha.x, o), Vec3(w.y, w.x, o))),
        Force(none, turned(w, Vec3(o, alpha.y, o), Vec3(o, w.y, o))),
        Force(none, turned(w, Vec3(alpha.z, o, alpha.x), Vec3(w.z, o, w.x))),
        Force(none, turned(w, Vec3(o, alpha.z, alpha.y), Vec3(o, w.z, w.y))),
        Force(none, turned(w, Vec3(o, o, alpha.z), Vec3(o, o, w.z))),
    )


@kernel
def swung(alpha, w, h):
    """alpha x h + w x (w x h): how a point at h is accelerated as its body turns."""
    return cross(alpha, h) + cross(w, cross(w, h))


@kernel
def turned(w, changed, moment):
    """J alpha + w x J w"""
    return changed + cross(w, moment)


@algorithm(inputs={"q": "nq", "v": "nv", "a": "nv"}, outputs={"Y": "nv nj 10 zeroed"}, work=WORK)
def _regressor(tree, q, v, a, w, Y):
    o, g = zero(q), tree.gravity[0]
    none = Vec3(o, o, o)
    w.velocity[0] = Motion(none, none)
    w.acceleration[0] = Motion(Vec3(o - g.x, o - g.y, o - g.z), none)
    for i in range(1, tree.nj):
        X = joint_placement(tree, i, q, joint_turn(tree, i, q))
        velocity = add_motion(tree, i, act_inv(X, w.velocity[tree.parent[i]]), v)
        acceleration = add_motion(tree, i, act_inv(X, w.acceleration[tree.parent[i]]), a) + carried(
            tree, i, velocity, v
        )
        w.place[i], w.velocity[i], w.acceleration[i] = X, velocity, acceleration
        R = tree.turned[i]
        seen, felt = (
            Motion(R @ velocity.lin, R @ velocity.ang),
            Motion(R @ acceleration.lin, R @ acceleration.ang),
        )
        parameter = 0
        for column in columns(seen, felt):
            transmit(tree, i, Force(turn_back(R, column.lin), turn_back(R, column.ang)), parameter, w, Y)
            parameter += 1


@kernel
def transmit(tree, i, force, parameter, w, Y):
    """What a force on body i asks of all joints on its way to the root."""
    j = i
    while j > 0:
        for k in range(tree.iv[j], tree.end[j]):
            st(Y, (k * tree.nj + i) * PARAMETERS + parameter, component(force, tree.axis[k]))
        force = act_force(w.place[j], force)
        j = tree.parent[j]


@kernel
def momenta(velocity):
    """The momenta of a body whose inertia is one of the ten parameters alone, of size 1."""
    return columns(velocity * 0.0, velocity)


@kernel
def velocity_of_joint(tree, i, q, v, w):
    """Of body i, in the frame of its joint, once those before it are found; `w.velocity` keeps it."""
    X = joint_placement(tree, i, q, joint_turn(tree, i, q))
    velocity = add_motion(tree, i, act_inv(X, w.velocity[tree.parent[i]]), v)
    w.velocity[i] = velocity
    R = tree.turned[i]
    return Motion(R @ velocity.lin, R @ velocity.ang)


@algorithm(inputs={"q": "nq", "v": "nv"}, outputs={"y": "nj 10 zeroed"}, work=Layout(nj={"velocity": Motion}))
def _kinetic_energy_regressor(tree, q, v, w, y):
    o = zero(q)
    w.velocity[0] = Motion(Vec3(o, o, o), Vec3(o, o, o))
    for i in range(1, tree.nj):
        velocity = velocity_of_joint(tree, i, q, v, w)
        parameter = 0
        for momentum in momenta(velocity):
            st(y, i * PARAMETERS + parameter, 0.5 * power(velocity, momentum))
            parameter += 1


@algorithm(inputs={"q": "nq"}, outputs={"y": "nj 10 zeroed"}, work=Layout(nj={"place": SE3}))
def _potential_energy_regressor(tree, q, w, y):
    g = tree.gravity[0]
    w.place[0] = at_origin(q)
    for i in range(1, tree.nj):
        X = placed_after(tree, i, q, w.place[tree.parent[i]])
        w.place[i] = X
        st(y, i * PARAMETERS, -(X.p.x * g.x + X.p.y * g.y + X.p.z * g.z))
        st(y, i * PARAMETERS + 1, -turn_back(joint_rotation(tree, i, X.R), g))


@algorithm(
    inputs={"q": "nq", "v": "nv"},
    outputs={"Y": "6 nj 10 zeroed"},
    work=Layout(nj=PLACES | {"place": SE3, "velocity": Motion}),
)
def _centroidal_momentum_regressor(tree, q, v, w, Y):
    gather_momentum(tree, q, None, None, w)
    o, center = zero(q), center_or_origin(w.moment[0], w.mass[0])
    w.velocity[0] = Motion(Vec3(o, o, o), Vec3(o, o, o))
    origin = at_origin(q)
    w.place[0] = SE3(origin.R, origin.p - center)
    for i in range(1, tree.nj):
        X = placed_after(tree, i, q, w.place[tree.parent[i]])
        w.place[i] = X
        seen = SE3(joint_rotation(tree, i, X.R), X.p)
        parameter = 0
        for momentum in momenta(velocity_of_joint(tree, i, q, v, w)):
            h = act_force(seen, momentum)
            for row in range(6):
                st(Y, (row * tree.nj + i) * PARAMETERS + parameter, component(h, row))
            parameter += 1


def torque_regressor(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, on_invalid: OnInvalid = "raise"
) -> Array:
    """The matrix Y (..., nv, 10 (njoints - 1)) with `rnea(model, q, v, a) = Y @ inertial_parameters(model).ravel()`, but for
    armature; also the derivative of `rnea` by these parameters.

    `q` (..., nq), `v` and `a` (..., nv). Ten columns for each joint but the universe, as in Pinocchio's
    `computeJointTorqueRegressor`.

    >>> import numpy as np, saltus as sl
    >>> arm = sl.load_robot("arm").with_armature(0.0)
    >>> q, v, a = arm.neutral(), np.ones(arm.nv), np.ones(arm.nv)
    >>> Y = sl.torque_regressor(arm, q, v, a)
    >>> Y.shape, bool(np.allclose(Y @ sl.inertial_parameters(arm).ravel(), sl.rnea(arm, q, v, a)))
    ((7, 70), True)
    """
    return without_universe(_regressor.call(model, (q, v, a), None, on_invalid))


def kinetic_energy_regressor(model: Model, q: ArrayLike, v: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Array:
    """The row y (..., 10 (njoints - 1)) with `kinetic_energy(model, q, v) = y @ inertial_parameters(model).ravel()`, but for
    armature, for `q` (..., nq) and `v` (..., nv).

    >>> import numpy as np, saltus as sl
    >>> arm = sl.load_robot("arm").with_armature(0.0)
    >>> q, v = arm.neutral(), np.ones(arm.nv)
    >>> y = sl.kinetic_energy_regressor(arm, q, v)
    >>> bool(np.isclose(y @ sl.inertial_parameters(arm).ravel(), sl.kinetic_energy(arm, q, v)))
    True
    """
    return without_universe(_kinetic_energy_regressor.call(model, (q, v), None, on_invalid))


def potential_energy_regressor(model: Model, q: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Array:
    """The row y (..., 10 (njoints - 1)) with `potential_energy(model, q) = y @ inertial_parameters(model).ravel()`, for
    `q` (..., nq).

    >>> import numpy as np, saltus as sl
    >>> arm = sl.load_robot("arm")
    >>> y = sl.potential_energy_regressor(arm, arm.neutral())
    >>> bool(np.isclose(y @ sl.inertial_parameters(arm).ravel(), sl.potential_energy(arm, arm.neutral())))
    True
    """
    return without_universe(_potential_energy_regressor.call(model, (q,), None, on_invalid))


def centroidal_momentum_regressor(
    model: Model, q: ArrayLike, v: ArrayLike, *, on_invalid: OnInvalid = "raise"
) -> Array:
    """The matrix Y (..., 6, 10 (njoints - 1)) with `centroidal_momentum(model, q, v)` equal to
    `Y @ inertial_parameters(model).ravel()`, for `q` (..., nq) and `v` (..., nv).

    Momentum is linear in the parameters about a point that is given: here the centre of mass that the model has. Other
    parameters give the momentum about that same point.

    >>> import numpy as np, saltus as sl
    >>> robot = sl.load_robot("quadruped")
    >>> q, v = robot.neutral(), np.ones(robot.nv)
    >>> Y = sl.centroidal_momentum_regressor(robot, q, v)
    >>> bool(np.allclose(Y @ sl.inertial_parameters(robot).ravel(), sl.centroidal_momentum(robot, q, v)))
    True
    """
    return without_universe(_centroidal_momentum_regressor.call(model, (q, v), None, on_invalid))


def without_universe(Y: Array) -> Array:
    """(..., njoints, 10) as (..., 10 (njoints - 1))."""
    return Y[..., 1:, :].reshape(*Y.shape[:-2], PARAMETERS * (Y.shape[-2] - 1))
