"""One frame of the robot, or one joint: its placement, velocity, acceleration, Jacobian, and how that changes.

Everything is found on the way from the frame to the root, O(d) for depth d, without a look at the rest of the tree. With
s_k the motion along degree of freedom k seen from the frame, and the joints i numbered from the root,

    J_k = s_k,      v = sum_i S_i qd_i,      a = sum_i (S_i qdd_i + sum_(j < i) S_j qd_j x S_i qd_i)
    dJ_k / dt = s_k x sum_(j > i) S_j qd_j                                           (all of them in the local frame)

| reference | meaning (Pinocchio's) |
|---|---|
| "local" | seen from the frame |
| "world" | the same motion, seen from the world |
| "local_world_aligned" | about the frame's origin, along the world's axes |

Accelerations are spatial ones, without gravity.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.dynamics.kinematics import store_matrix
from saltus.kernel import kernel, ld, lift, st, zero
from saltus.model.joint_kernels import joint_motion, joint_placement, joint_turn
from saltus.model.model import Model
from saltus.model.tree import algorithm
from saltus.spatial.algebra import SE3, Mat3, Motion, Vec3, act, act_inv, cross, cross_motion, transpose

LOCAL, WORLD, LOCAL_WORLD_ALIGNED = range(3)
REFERENCES = {"local": LOCAL, "world": WORLD, "local_world_aligned": LOCAL_WORLD_ALIGNED}
FRAME, JOINT = 0, 1


@kernel
def selected_body(tree, which):
    """The body that carries the frame or joint selected."""
    return tree.frame_body[which[1]] if which[0] == FRAME else which[1]


@kernel
def selected_placement(tree, which, like):
    """Its placement in the body's canonical frame."""
    if which[0] == FRAME:
        X = tree.frame_placement[which[1]]
    else:
        R = transpose(tree.turned[which[1]])
        X = SE3(R, Vec3(R.xx, R.yx, R.zx) * 0.0)
    R, p = X.R, X.p
    return SE3(
        Mat3(lift(R.xx, like), lift(R.xy, like), lift(R.xz, like), lift(R.yx, like), lift(R.yy, like), lift(R.yz, like),
             lift(R.zx, like), lift(R.zy, like), lift(R.zz, like)),
        Vec3(lift(p.x, like), lift(p.y, like), lift(p.z, like)),
    )  # fmt: skip


@kernel
def step_up(tree, i, q, X):
    """From a placement seen from body i to one seen from its parent."""
    return joint_placement(tree, i, q, joint_turn(tree, i, q)) @ X


@kernel
def seen(X, m, reference):
    """A local motion of a frame placed at X in the world, in the reference wanted."""
    if reference == WORLD:
        return act(X, m)
    if reference == LOCAL_WORLD_ALIGNED:
        return Motion(X.R @ m.lin, X.R @ m.ang)
    return m


@kernel
def load_column(J, nv, k):
    lin = Vec3(ld(J, k), ld(J, nv + k), ld(J, 2 * nv + k))
    return Motion(lin, Vec3(ld(J, 3 * nv + k), ld(J, 4 * nv + k), ld(J, 5 * nv + k)))


@kernel
def store_column(J, nv, k, m):
    st(J, k, m.lin.x)
    st(J, nv + k, m.lin.y)
    st(J, 2 * nv + k, m.lin.z)
    st(J, 3 * nv + k, m.ang.x)
    st(J, 4 * nv + k, m.ang.y)
    st(J, 5 * nv + k, m.ang.z)


@kernel
def axis_seen_in(X, axis):
    """The unit motion along an axis of the parent frame, seen from the child placed there at X."""
    R, p = X.R, X.p
    o = p.x * 0.0
    x, y, z = Vec3(R.xx, R.xy, R.xz), Vec3(R.yx, R.yy, R.yz), Vec3(R.zx, R.zy, R.zz)
    if axis == 5:
        return Motion(y * p.x - x * p.y, z)
    if axis == 4:
        return Motion(x * p.z - z * p.x, y)
    if axis == 3:
        return Motion(z * p.y - y * p.z, x)
    if axis == 2:
        return Motion(z, Vec3(o, o, o))
    if axis == 1:
        return Motion(y, Vec3(o, o, o))
    return Motion(x, Vec3(o, o, o))


@algorithm(inputs={"which": "3 int", "q": "nq"}, outputs={"placement": "4 4"})
def _frame_placement(tree, which, q, w, placement):
    i = selected_body(tree, which)
    X = selected_placement(tree, which, zero(q))
    while i > 0:
        X = step_up(tree, i, q, X)
        i = tree.parent[i]
    store_matrix(placement, 0, X)


@algorithm(
    inputs={"which": "3 int", "q": "nq", "v": "nv", "a": "nv optional"}, outputs={"velocity": "6", "acceleration": "6"}
)
def _frame_motion(tree, which, q, v, a, w, velocity, acceleration):
    i, o = selected_body(tree, which), zero(q)
    X = selected_placement(tree, which, o)
    below = Motion(Vec3(o, o, o), Vec3(o, o, o))
    rise = below
    while i > 0:
        s = act_inv(X, joint_motion(tree, i, v))
        rise = rise + cross_motion(s, below)
        if a is not None:
            rise = rise + act_inv(X, joint_motion(tree, i, a))
        below = below + s
        X = step_up(tree, i, q, X)
        i = tree.parent[i]
    st(velocity, 0, seen(X, below, which[2]))
    st(acceleration, 0, seen(X, rise, which[2]))


@algorithm(inputs={"which": "3 int", "q": "nq"}, outputs={"J": "6 nv zeroed"})
def _frame_jacobian(tree, which, q, w, J):
    body, nv = selected_body(tree, which), tree.nv
    X = selected_placement(tree, which, zero(q))
    i = body
    while i > 0:
        for k in range(tree.iv[i], tree.end[i]):
            store_column(J, nv, k, axis_seen_in(X, tree.axis[k]))
        X = step_up(tree, i, q, X)
        i = tree.parent[i]
    i = body
    while i > 0 and which[2] != LOCAL:
        for k in range(tree.iv[i], tree.end[i]):
            store_column(J, nv, k, seen(X, load_column(J, nv, k), which[2]))
        i = tree.parent[i]


@algorithm(inputs={"which": "3 int", "q": "nq", "v": "nv"}, outputs={"J": "6 nv zeroed", "dJ": "6 nv zeroed"})
def _frame_jacobian_dot(tree, which, q, v, w, J, dJ):
    body, nv, o = selected_body(tree, which), tree.nv, zero(q)
    X = selected_placement(tree, which, o)
    below = Motion(Vec3(o, o, o), Vec3(o, o, o))
    i = body
    while i > 0:
        for k in range(tree.iv[i], tree.end[i]):
            s = axis_seen_in(X, tree.axis[k])
            store_column(J, nv, k, s)
            store_column(dJ, nv, k, cross_motion(s, below))
        below = below + act_inv(X, joint_motion(tree, i, v))
        X = step_up(tree, i, q, X)
        i = tree.parent[i]
    i = body
    while i > 0 and which[2] != LOCAL:
        for k in range(tree.iv[i], tree.end[i]):
            s, ds = load_column(J, nv, k), load_column(dJ, nv, k)
            if which[2] == WORLD:
                turned = cross_motion(below, s)
            else:
                turned = Motion(cross(below.ang, s.lin), cross(below.ang, s.ang))
            store_column(J, nv, k, seen(X, s, which[2]))
            store_column(dJ, nv, k, seen(X, ds + turned, which[2]))
        i = tree.parent[i]


def select(model: Model, kind: int, name: str | int, reference: str = "local") -> Any:
    """What the kernels are told of a frame or a joint, and the reference; kept by the model."""
    key = (kind, name.__class__, name, reference)  # the class, for 1.0 is no index, though it equals one
    try:
        chosen = model.selections.get(key)
    except AttributeError:
        raise TypeError(f"the model is a {type(model).__name__}, expected a saltus.Model") from None
    except TypeError:  # what cannot be looked up is refused below
        chosen = None
    if chosen is None:
        if not isinstance(reference, str) or reference not in REFERENCES:
            raise ValueError(f"reference is {reference!r}, expected one of {', '.join(map(repr, REFERENCES))}")
        index = model.frame_index(name) if kind == FRAME else model.joint_index(name)
        chosen = model.selections[key] = np.array((kind, index, REFERENCES[reference]), np.int32)
    return chosen


def frame_placement(
    model: Model, q: ArrayLike, frame: str | int, *, out: Array | None = None, on_invalid: OnInvalid = "raise"
) -> Array:
    """The placement (..., 4, 4) of a frame, by name or index, in the world at `q` (..., nq) [m].

    >>> import saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3)
    >>> sl.frame_placement(robot, robot.neutral(), robot.frames[-1].name).shape
    (4, 4)
    """
    return _frame_placement.call(model, (select(model, FRAME, frame), q), out, on_invalid)


def frame_velocity(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    frame: str | int,
    reference: str = "local",
    *,
    on_invalid: OnInvalid = "raise",
) -> Array:
    """The spatial velocity (..., 6) of a frame, linear first [m/s, rad/s], for `q` (..., nq) and `v` (..., nv).

    >>> import numpy as np, saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3)
    >>> q, v = robot.neutral(), np.ones(robot.nv)
    >>> bool(np.allclose(sl.frame_velocity(robot, q, v, 3), sl.frame_jacobian(robot, q, 3) @ v))
    True
    """
    velocity: Array = _frame_motion.call(model, (select(model, FRAME, frame, reference), q, v), None, on_invalid)[0]
    return velocity


def frame_acceleration(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    frame: str | int,
    reference: str = "local",
    *,
    on_invalid: OnInvalid = "raise",
) -> Array:
    """The spatial acceleration (..., 6) of a frame, without gravity, linear first [m/s^2, rad/s^2], for `q` (..., nq),
    `v` and `a` (..., nv).

    >>> import numpy as np, saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3)
    >>> q, v, a = robot.neutral(), np.zeros(robot.nv), np.ones(robot.nv)
    >>> bool(np.allclose(sl.frame_acceleration(robot, q, v, a, 3), sl.frame_jacobian(robot, q, 3) @ a))
    True
    """
    acceleration: Array = _frame_motion.call(
        model, (select(model, FRAME, frame, reference), q, v, a), None, on_invalid
    )[1]
    return acceleration


def frame_jacobian(
    model: Model,
    q: ArrayLike,
    frame: str | int,
    reference: str = "local",
    *,
    out: Array | None = None,
    on_invalid: OnInvalid = "raise",
) -> Array:
    """The Jacobian (..., 6, nv) of a frame at `q` (..., nq): its velocity is J v.

    >>> import saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> sl.frame_jacobian(robot, robot.neutral(), robot.frames[-1].name, "local_world_aligned").shape
    (6, 3)
    """
    return _frame_jacobian.call(model, (select(model, FRAME, frame, reference), q), out, on_invalid)


def frame_jacobian_dot(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    frame: str | int,
    reference: str = "local",
    *,
    on_invalid: OnInvalid = "raise",
) -> tuple[Array, Array]:
    """The Jacobian of a frame and its time derivative, both (..., 6, nv), for `q` (..., nq) and `v` (..., nv).

    >>> import numpy as np, saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3)
    >>> q, v, a = robot.neutral(), np.ones(robot.nv), np.zeros(robot.nv)
    >>> J, dJ = sl.frame_jacobian_dot(robot, q, v, 3)
    >>> bool(np.allclose(sl.frame_acceleration(robot, q, v, a, 3), dJ @ v))
    True
    """
    J, dJ = _frame_jacobian_dot.call(model, (select(model, FRAME, frame, reference), q, v), None, on_invalid)
    return J, dJ


def joint_jacobian(
    model: Model,
    q: ArrayLike,
    joint: str | int,
    reference: str = "local",
    *,
    out: Array | None = None,
    on_invalid: OnInvalid = "raise",
) -> Array:
    """The Jacobian (..., 6, nv) of a joint's frame, by name or index, at `q` (..., nq).

    >>> import saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> sl.joint_jacobian(robot, robot.neutral(), 1)[:, 1:].any()
    np.False_
    """
    return _frame_jacobian.call(model, (select(model, JOINT, joint, reference), q), out, on_invalid)


def joint_jacobian_dot(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    joint: str | int,
    reference: str = "local",
    *,
    on_invalid: OnInvalid = "raise",
) -> tuple[Array, Array]:
    """The Jacobian of a joint's frame and its time derivative, both (..., 6, nv).

    >>> import numpy as np, saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> J, dJ = sl.joint_jacobian_dot(robot, robot.neutral(), np.zeros(3), 3)
    >>> bool(np.allclose(dJ, 0))
    True
    """
    J, dJ = _frame_jacobian_dot.call(model, (select(model, JOINT, joint, reference), q, v), None, on_invalid)
    return J, dJ
