"""Configurations as points of a manifold: steps along it and differences, batched.

    integrate(q, v) = q (+) v,      difference(q0, q1) = v  with  q0 (+) v = q1

A revolute, prismatic or translation joint adds; a continuous joint is SO(2), a planar one SE(2), a spherical one SO(3), a
free flyer SE(3), each stepping by the exponential of the local velocity.

Convention: Pinocchio's; a free flyer's quaternion keeps the sign that is nearer to the old one's.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.kernel import Algorithm, Layout, atan2, kernel, ld, less, select, sincos, sqrt, st, zero
from saltus.model.joint_kernels import CONTINUOUS, FREE_FLYER, PLANAR, PRISMATIC, REVOLUTE, SPHERICAL
from saltus.model.joints import JointKind
from saltus.model.model import Model
from saltus.model.tree import LIGHT, algorithm
from saltus.spatial.algebra import Motion, Quat, Vec2, Vec3, turn_back
from saltus.spatial.lie import (
    exp_plane,
    exp_quaternion,
    exp_translation,
    log_plane,
    log_pose,
    log_quaternion,
    unit,
)
from saltus.spatial.quaternion import conjugate, rotation


@kernel
def turn_by(a, b):
    """The cosine and sine of a sum of two angles, of unit length up to rounding."""
    c, s = a.x * b.x - a.y * b.y, a.y * b.x + a.x * b.y
    k = 1.5 - 0.5 * (c * c + s * s)
    return Vec2(c * k, s * k)


@kernel
def nearer(a, b):
    """a or -a, whichever is nearer to b."""
    flip = less(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w, 0.0)
    return Quat(select(flip, -a.x, a.x), select(flip, -a.y, a.y), select(flip, -a.z, a.z), select(flip, -a.w, a.w))


@kernel
def step_joint(tree, i, q, v, scale, out):
    """out = q (+) scale v, for joint i."""
    kind, iq, iv = tree.kind[i], tree.iq[i], tree.iv[i]
    if kind == REVOLUTE or kind == PRISMATIC:
        st(out, iq, ld(q, iq) + ld(v, iv) * scale)
    elif kind == FREE_FLYER:
        m = ld(v, iv, Motion) * scale
        a = ld(q, iq + 3, Quat)
        st(out, iq, ld(q, iq, Vec3) + rotation(a) @ exp_translation(m))
        st(out, iq + 3, nearer(unit(a * exp_quaternion(m.ang)), a))
    elif kind == SPHERICAL:
        st(out, iq, unit(ld(q, iq, Quat) * exp_quaternion(ld(v, iv, Vec3) * scale)))
    elif kind == CONTINUOUS:
        s, c = sincos(ld(v, iv) * scale)
        st(out, iq, turn_by(ld(q, iq, Vec2), Vec2(c, s)))
    elif kind == PLANAR:
        turn = ld(q, iq + 2, Vec2)
        p, new = exp_plane(ld(v, iv) * scale, ld(v, iv + 1) * scale, ld(v, iv + 2) * scale)
        st(out, iq, ld(q, iq) + turn.x * p.x - turn.y * p.y)
        st(out, iq + 1, ld(q, iq + 1) + turn.y * p.x + turn.x * p.y)
        st(out, iq + 2, turn_by(turn, new))
    else:
        st(out, iq, ld(q, iq, Vec3) + ld(v, iv, Vec3) * scale)


@kernel
def difference_joint(tree, i, q0, q1, out):
    """out = v with q0 (+) v = q1, for joint i."""
    kind, iq, iv = tree.kind[i], tree.iq[i], tree.iv[i]
    if kind == REVOLUTE or kind == PRISMATIC:
        st(out, iv, ld(q1, iq) - ld(q0, iq))
    elif kind == FREE_FLYER:
        a = ld(q0, iq + 3, Quat)
        p = turn_back(rotation(a), ld(q1, iq, Vec3) - ld(q0, iq, Vec3))
        st(out, iv, log_pose(conjugate(a) * ld(q1, iq + 3, Quat), p))
    elif kind == SPHERICAL:
        st(out, iv, log_quaternion(conjugate(ld(q0, iq, Quat)) * ld(q1, iq, Quat)))
    elif kind == CONTINUOUS:
        turn = relative_turn(ld(q0, iq, Vec2), ld(q1, iq, Vec2))
        st(out, iv, atan2(turn.y, turn.x))
    elif kind == PLANAR:
        a = ld(q0, iq + 2, Vec2)
        x, y = ld(q1, iq) - ld(q0, iq), ld(q1, iq + 1) - ld(q0, iq + 1)
        p = Vec2(a.x * x + a.y * y, a.x * y - a.y * x)
        st(out, iv, log_plane(p, relative_turn(a, ld(q1, iq + 2, Vec2))))
    else:
        st(out, iv, ld(q1, iq, Vec3) - ld(q0, iq, Vec3))


@kernel
def relative_turn(a, b):
    """The cosine and sine of the angle from a to b."""
    return Vec2(a.x * b.x + a.y * b.y, a.x * b.y - a.y * b.x)


@algorithm(inputs={"q": "nq", "v": "nv"}, outputs={"result": "nq"}, own_code=LIGHT)
def _integrate(tree, q, v, w, result):
    for i in range(1, tree.nj):
        step_joint(tree, i, q, v, 1.0, result)


@algorithm(inputs={"q0": "nq", "q1": "nq"}, outputs={"v": "nv"}, own_code=LIGHT)
def _difference(tree, q0, q1, w, v):
    for i in range(1, tree.nj):
        difference_joint(tree, i, q0, q1, v)


@algorithm(inputs={"q0": "nq", "q1": "nq", "u": ""}, outputs={"q": "nq"}, work=Layout(nv={"v": None}), own_code=LIGHT)
def _interpolate(tree, q0, q1, u, w, q):
    for i in range(1, tree.nj):
        difference_joint(tree, i, q0, q1, w.v)
        step_joint(tree, i, q0, w.v, ld(u, 0), q)


@algorithm(inputs={"q0": "nq", "q1": "nq"}, outputs={"d": ""}, work=Layout(nv={"v": None}), own_code=LIGHT)
def _distance(tree, q0, q1, w, d):
    total = zero(q0)
    for i in range(1, tree.nj):
        difference_joint(tree, i, q0, q1, w.v)
    for k in range(tree.nv):
        total = total + w.v[k] * w.v[k]
    st(d, 0, sqrt(total))


def on_free_joints(algorithm: Algorithm) -> None:
    """Steps along the manifold concern the joints that are free; mimic joints have no coordinates of their own."""
    algorithm.when_coupled = lambda model, *inputs: algorithm.call(model.coupling.free, inputs)


for _algorithm in (_integrate, _difference, _interpolate, _distance):
    on_free_joints(_algorithm)


def integrate(
    model: Model, q: ArrayLike, v: ArrayLike, *, out: Array | None = None, on_invalid: OnInvalid = "raise"
) -> Array:
    """The configuration (..., nq) reached from `q` (..., nq) by the tangent step `v` (..., nv) [rad, m].

    >>> import numpy as np, saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=4)
    >>> q, v = robot.neutral(), np.full(robot.nv, 0.1)
    >>> bool(np.allclose(sl.difference(robot, q, sl.integrate(robot, q, v)), v))
    True
    """
    return _integrate.call(model, (q, v), out, on_invalid)


def difference(
    model: Model, q0: ArrayLike, q1: ArrayLike, *, out: Array | None = None, on_invalid: OnInvalid = "raise"
) -> Array:
    """The shortest tangent step (..., nv) [rad, m] that leads from `q0` to `q1`, both (..., nq).

    >>> import saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=1, kinds=["prismatic"])
    >>> sl.difference(robot, [1.0], [3.0])
    array([2.])
    """
    return _difference.call(model, (q0, q1), out, on_invalid)


def interpolate(
    model: Model,
    q0: ArrayLike,
    q1: ArrayLike,
    u: ArrayLike,
    *,
    out: Array | None = None,
    on_invalid: OnInvalid = "raise",
) -> Array:
    """The configuration (..., nq) a share `u` (...) of the way from `q0` to `q1`, along the shortest path.

    >>> import saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=1, kinds=["prismatic"])
    >>> sl.interpolate(robot, [1.0], [3.0], 0.25)
    array([1.5])
    """
    return _interpolate.call(model, (q0, q1, u), out, on_invalid)


def distance(model: Model, q0: ArrayLike, q1: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Any:
    """The length (...) of the shortest step from `q0` to `q1`, both (..., nq).

    >>> import saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=1, kinds=["prismatic"])
    >>> float(sl.distance(robot, [1.0], [3.0]))
    2.0
    """
    return _distance.call(model, (q0, q1), None, on_invalid)


def random_configuration(model: Model, seed: int | np.random.Generator, shape: int | tuple[int, ...] = ()) -> Array:
    """Configurations (*shape, nq), uniform within the position limits, rotations uniform; unbounded lengths in [-1, 1] m,
    unbounded angles in [-pi, pi], or as near to that as a limit on one side allows.

    >>> import saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=4)
    >>> sl.random_configuration(robot, seed=1, shape=10).shape == (10, robot.nq)
    True
    """
    try:
        rng = np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_configuration: seed is {seed!r}, expected a number from 0 on, or a Generator"
        ) from None
    try:
        shape = tuple(map(operator.index, shape)) if isinstance(shape, tuple | list) else (operator.index(shape),)
    except TypeError:
        raise TypeError(
            f"random_configuration: shape is {shape!r}, expected a whole number or a tuple of them"
        ) from None
    if any(size < 0 for size in shape):
        raise ValueError(f"random_configuration: shape is {shape}, expected nothing negative")
    reach = np.ones(model.nq)
    for joint in model.joints:
        if joint.kind == JointKind.REVOLUTE and not joint.mimic:
            reach[joint.iq] = np.pi
    lower, upper = model.lower_position_limit, model.upper_position_limit
    bounded = (np.abs(lower) < 1e6) & (np.abs(upper) < 1e6)
    low, high = np.maximum(lower, -reach), np.minimum(upper, reach)  # where unbounded; a limit on one side shifts them
    low, high = (
        np.maximum(lower, np.minimum(low, high - 2.0 * reach)),
        np.minimum(upper, np.maximum(high, low + 2.0 * reach)),
    )
    q: Array = rng.uniform(np.where(bounded, lower, low), np.where(bounded, upper, high), (*shape, model.nq))
    for joint in model.joints:
        part = joint.kind.unit_coordinates
        if part.stop and not joint.mimic:
            x = rng.normal(size=(*shape, part.stop - part.start))
            q[..., joint.iq + part.start : joint.iq + part.stop] = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return q
