"""The centre of mass, centroidal momentum, its matrix and how it changes.

    h = A(q) v,      dh/dt = A a + dA/dt v      momentum about the centre of mass, along the world's axes, linear first

The matrix comes from composite inertias: column k is I_b s_k, moved to the centre of mass, O(n). Momentum and its rate are
sums over the bodies of I v and I a + v x* I v, carried to the root in one sweep back.

Reference: D. Orin, A. Goswami, S.-H. Lee, Centroidal dynamics of a humanoid robot (2013); conventions are Pinocchio's.
"""

from __future__ import annotations

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.dynamics.crba import COMPOSITE, collect, place_bodies, place_world
from saltus.dynamics.frame import store_column
from saltus.kernel import Layout, kernel, less, lift, select, st, zero
from saltus.model.joint_kernels import add_motion, axis_seen_from, carried, joint_placement, joint_turn, placed_after
from saltus.model.model import Model
from saltus.model.tree import LIGHT, algorithm
from saltus.spatial.algebra import SE3, Force, Motion, Sym3, Vec2, Vec3, act_force, act_inv, cross
from saltus.spatial.inertia import Rigid, force_of


@kernel
def center_or_origin(moment, mass):
    """The centre of mass; the origin if nothing has mass, about which the momentum is then zero."""
    return moment * (1.0 / select(less(0.0, mass), mass, lift(1.0, mass)))


@algorithm(inputs={"q": "nq"}, outputs={"A": "6 nv"}, work=Layout(**COMPOSITE), own_code=LIGHT)
def _centroidal_momentum_matrix(tree, q, w, A):
    mass, moment = place_bodies(tree, q, w)
    center, o = center_or_origin(moment, mass), zero(q)
    composite = Rigid(o, Vec3(o, o, o), Sym3(o, o, o, o, o, o))
    w.composite[0] = composite
    for i in range(tree.nj - 1, 0, -1):
        composite = collect(tree, i, composite, w)
        for k in range(tree.iv[i], tree.end[i]):
            h = composite @ w.axis[k]
            store_column(A, tree.nv, k, Force(h.lin, h.ang - cross(center, h.lin)))


@kernel
def gather_momentum(tree, q, v, a, w):
    """To the leaves and back: at body 0, mass moment, momentum and its rate in the world. v and a may be None."""
    o = zero(q)
    none = Vec3(o, o, o)
    w.moment[0], w.mass[0] = none, o
    if v is not None:
        w.velocity[0], w.momentum[0] = Motion(none, none), Force(none, none)
        w.acceleration[0], w.rate[0] = Motion(none, none), Force(none, none)
    for i in range(1, tree.nj):
        body, parent = tree.inertia[i], tree.parent[i]
        turn = joint_turn(tree, i, q)
        w.turn[i], w.moment[i], w.mass[i] = turn, body.h, body.m
        if v is not None:
            X = joint_placement(tree, i, q, turn)
            velocity = add_motion(tree, i, act_inv(X, w.velocity[parent]), v)
            acceleration = act_inv(X, w.acceleration[parent]) + carried(tree, i, velocity, v)
            if a is not None:
                acceleration = add_motion(tree, i, acceleration, a)
            w.velocity[i], w.acceleration[i], w.momentum[i] = velocity, acceleration, body @ velocity
            w.rate[i] = force_of(body, velocity, acceleration)
    for i in range(tree.nj - 1, 0, -1):
        parent = tree.parent[i]
        X = joint_placement(tree, i, q, w.turn[i])
        w.moment[parent] = w.moment[parent] + X.R @ w.moment[i] + X.p * w.mass[i]
        w.mass[parent] = w.mass[parent] + w.mass[i]
        if v is not None:
            w.momentum[parent] = w.momentum[parent] + act_force(X, w.momentum[i])
            w.rate[parent] = w.rate[parent] + act_force(X, w.rate[i])


PLACES = {"turn": Vec2, "moment": Vec3, "mass": None}
MOTIONS = PLACES | {"velocity": Motion, "acceleration": Motion, "momentum": Force, "rate": Force}


@algorithm(inputs={"q": "nq"}, outputs={"com": "3"}, work=Layout(nj=PLACES), own_code=LIGHT)
def _center_of_mass(tree, q, w, com):
    gather_momentum(tree, q, None, None, w)
    st(com, 0, w.moment[0] * (1.0 / w.mass[0]))


@algorithm(
    inputs={"q": "nq", "v": "nv", "a": "nv optional"},
    outputs={"com": "3", "h": "6", "dh": "6"},
    work=Layout(nj=MOTIONS),
    own_code=LIGHT,
)
def _centroidal_momentum(tree, q, v, a, w, com, h, dh):
    gather_momentum(tree, q, v, a, w)
    st(com, 0, w.moment[0] * (1.0 / w.mass[0]))
    center = center_or_origin(w.moment[0], w.mass[0])
    momentum, rate = w.momentum[0], w.rate[0]
    st(h, 0, Force(momentum.lin, momentum.ang - cross(center, momentum.lin)))
    st(dh, 0, Force(rate.lin, rate.ang - cross(center, rate.lin)))


@algorithm(
    inputs={"q": "nq", "v": "nv", "a": "nv optional"},
    outputs={"com": "3", "velocity": "3", "acceleration": "3"},
    work=Layout(nj=MOTIONS),
    own_code=LIGHT,
)
def _center_of_mass_motion(tree, q, v, a, w, com, velocity, acceleration):
    gather_momentum(tree, q, v, a, w)
    inverse = 1.0 / w.mass[0]
    st(com, 0, w.moment[0] * inverse)
    st(velocity, 0, w.momentum[0].lin * inverse)
    st(acceleration, 0, w.rate[0].lin * inverse)


@algorithm(
    inputs={"q": "nq"},
    outputs={"J": "3 nv"},
    work=Layout(nj={"place": SE3, "moment": Vec3, "mass": None}, nv={"axis": Motion}),
    own_code=LIGHT,
)
def _center_of_mass_jacobian(tree, q, w, J):
    """Column k is the momentum of all that degree of freedom k carries, if that moves at unit rate, by the total mass."""
    total, X = zero(q), place_world(tree, q)
    w.place[0] = X
    for i in range(1, tree.nj):
        if tree.parent[i] != i - 1:
            X = w.place[tree.parent[i]]
        X, body = placed_after(tree, i, q, X), tree.inertia[i]
        w.moment[i], w.mass[i] = X.R @ body.h + X.p * body.m, body.m
        total = total + body.m
        if tree.fork[i]:
            w.place[i] = X
        for k in range(tree.iv[i], tree.end[i]):
            w.axis[k] = axis_seen_from(X, tree.axis[k])
    inverse = 1.0 / total
    for i in range(tree.nj - 1, 0, -1):
        moment, mass, parent = w.moment[i] * inverse, w.mass[i] * inverse, tree.parent[i]
        for k in range(tree.iv[i], tree.end[i]):
            column = w.axis[k].lin * mass + cross(w.axis[k].ang, moment)
            st(J, k, column.x)
            st(J, tree.nv + k, column.y)
            st(J, 2 * tree.nv + k, column.z)
        if parent > 0:
            w.moment[parent], w.mass[parent] = w.moment[parent] + w.moment[i], w.mass[parent] + w.mass[i]


def center_of_mass(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    *,
    on_invalid: OnInvalid = "raise",
) -> Array | tuple[Array, ...]:
    """The centre of mass (..., 3) in the world [m]; with `v` (position, velocity), with `a` (position, velocity,
    acceleration), each (..., 3), for `q` (..., nq), `v` and `a` (..., nv).

    >>> import numpy as np, saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3)
    >>> position, velocity = sl.center_of_mass(robot, robot.neutral(), np.zeros(robot.nv))
    >>> bool(np.allclose(position, sl.center_of_mass(robot, robot.neutral())) and not velocity.any())
    True
    """
    if v is None:
        com: Array = _center_of_mass.call(model, (q,), None, on_invalid)
        return com
    if a is None:
        com, velocity, _ = _center_of_mass_motion.call(model, (q, v), None, on_invalid)
        return com, velocity
    motion: tuple[Array, ...] = _center_of_mass_motion.call(model, (q, v, a), None, on_invalid)
    return motion


def center_of_mass_jacobian(model: Model, q: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Array:
    """The Jacobian (..., 3, nv) of the centre of mass at `q` (..., nq).

    >>> import numpy as np, saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3)
    >>> q, v = robot.neutral(), np.ones(robot.nv)
    >>> bool(np.allclose(sl.center_of_mass_jacobian(robot, q) @ v, sl.center_of_mass(robot, q, v)[1]))
    True
    """
    return _center_of_mass_jacobian.call(model, (q,), None, on_invalid)


def centroidal_momentum_matrix(
    model: Model, q: ArrayLike, *, out: Array | None = None, on_invalid: OnInvalid = "raise"
) -> Array:
    """The matrix A (..., 6, nv) at `q` (..., nq) with h = A v.

    >>> import numpy as np, saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3)
    >>> q, v = robot.neutral(), np.ones(robot.nv)
    >>> bool(np.allclose(sl.centroidal_momentum_matrix(robot, q) @ v, sl.centroidal_momentum(robot, q, v)))
    True
    """
    return _centroidal_momentum_matrix.call(model, (q,), out, on_invalid)


def centroidal_momentum(model: Model, q: ArrayLike, v: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Array:
    """Momentum h (..., 6) about the centre of mass, along the world's axes, linear first [kg m/s, kg m^2/s].

    >>> import numpy as np, saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3)
    >>> sl.centroidal_momentum(robot, robot.neutral(), np.zeros(robot.nv))
    array([0., 0., 0., 0., 0., 0.])
    """
    h: Array = _centroidal_momentum.call(model, (q, v), None, on_invalid)[1]
    return h


def centroidal_momentum_drift(model: Model, q: ArrayLike, v: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Array:
    """dA/dt v (..., 6): how the momentum changes when the joints do not accelerate.

    >>> import numpy as np, saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3)
    >>> sl.centroidal_momentum_drift(robot, robot.neutral(), np.zeros(robot.nv)).any()
    np.False_
    """
    drift: Array = _centroidal_momentum.call(model, (q, v), None, on_invalid)[2]
    return drift


def centroidal_momentum_rate(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, on_invalid: OnInvalid = "raise"
) -> Array:
    """dh/dt = A a + dA/dt v (..., 6) [N, N m].

    >>> import numpy as np, saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3)
    >>> q, v, a = robot.neutral(), np.ones(robot.nv), np.ones(robot.nv)
    >>> expected = sl.centroidal_momentum_matrix(robot, q) @ a + sl.centroidal_momentum_drift(robot, q, v)
    >>> bool(np.allclose(sl.centroidal_momentum_rate(robot, q, v, a), expected))
    True
    """
    rate: Array = _centroidal_momentum.call(model, (q, v, a), None, on_invalid)[2]
    return rate
