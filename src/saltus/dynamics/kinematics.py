"""Forward kinematics: where all joints and frames are, how they move and accelerate.

    X_0i = X_0p X_pi,      v_i = X_pi^-1 v_p + S_i qd_i,      a_i = X_pi^-1 a_p + S_i qdd_i + v_i x S_i qd_i

One sweep to the leaves, O(n). Accelerations are spatial ones, without gravity, as Pinocchio's; results are in joint
frames, not in the canonical ones of the kernels. What concerns one frame alone is in frame.py.
"""

from __future__ import annotations

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.kernel import Layout, kernel, st, zero
from saltus.model.joint_kernels import add_motion, carried, joint_placement, joint_rotation, joint_turn, placed_after
from saltus.model.model import Model
from saltus.model.tree import LIGHT, algorithm
from saltus.spatial.algebra import SE3, Mat3, Motion, Vec3, act_inv


@kernel
def store_matrix(out, k, X):
    """X as a 4x4 matrix, at row k of matrices."""
    R, p, o = X.R, X.p, k * 16
    st(out, o, Vec3(R.xx, R.xy, R.xz))
    st(out, o + 3, p.x)
    st(out, o + 4, Vec3(R.yx, R.yy, R.yz))
    st(out, o + 7, p.y)
    st(out, o + 8, Vec3(R.zx, R.zy, R.zz))
    st(out, o + 11, p.z)
    st(out, o + 12, Vec3(0.0, 0.0, 0.0))
    st(out, o + 15, 1.0)


@kernel
def at_origin(q):
    """The world's own placement, in numbers of the type of q."""
    o = zero(q)
    one = o + 1.0
    return SE3(Mat3(one, o, o, o, one, o, o, o, one), Vec3(o, o, o))


@kernel
def place_bodies(tree, q, place):
    """The placements of all bodies in the world, in canonical frames."""
    place[0] = at_origin(q)
    for i in range(1, tree.nj):
        place[i] = placed_after(tree, i, q, place[tree.parent[i]])


@kernel
def store_user_motion(tree, i, m, out):
    """A motion of body i, turned into its joint frame."""
    R = tree.turned[i]
    st(out, 6 * i, R @ m.lin)
    st(out, 6 * i + 3, R @ m.ang)


@kernel
def place_joints(tree, q, w, placements):
    """The same in joint frames; those of forks alone are kept, for others are at hand when their child comes."""
    X = at_origin(q)
    w.place[0] = X
    store_matrix(placements, 0, X)
    for i in range(1, tree.nj):
        if tree.parent[i] != i - 1:
            X = w.place[tree.parent[i]]
        X = placed_after(tree, i, q, X)
        if tree.fork[i]:
            w.place[i] = X
        store_matrix(placements, i, SE3(joint_rotation(tree, i, X.R), X.p))


@algorithm(inputs={"q": "nq"}, outputs={"placements": "nj 4 4"}, work=Layout(nj={"place": SE3}), own_code=LIGHT)
def _joint_placements(tree, q, w, placements):
    place_joints(tree, q, w, placements)


@algorithm(inputs={"q": "nq"}, outputs={"placements": "nf 4 4"}, work=Layout(nj={"place": SE3}), own_code=LIGHT)
def _frame_placements(tree, q, w, placements):
    place_bodies(tree, q, w.place)
    for k in range(tree.nf):
        store_matrix(placements, k, w.place[tree.frame_body[k]] @ tree.frame_placement[k])


@kernel
def sweep_motions(tree, q, v, a, w, velocities):
    """Velocities, and accelerations if a is given, of all bodies, kept in the workspace."""
    o = zero(q)
    rest = Motion(Vec3(o, o, o), Vec3(o, o, o))
    w.velocity[0] = rest
    store_user_motion(tree, 0, rest, velocities)
    if a is not None:
        w.acceleration[0] = rest
    for i in range(1, tree.nj):
        parent = tree.parent[i]
        X = joint_placement(tree, i, q, joint_turn(tree, i, q))
        velocity = add_motion(tree, i, act_inv(X, w.velocity[parent]), v)
        w.velocity[i] = velocity
        store_user_motion(tree, i, velocity, velocities)
        if a is not None:
            up = add_motion(tree, i, act_inv(X, w.acceleration[parent]), a)
            w.acceleration[i] = up + carried(tree, i, velocity, v)


@algorithm(
    inputs={"q": "nq", "v": "nv"}, outputs={"velocities": "nj 6"}, work=Layout(nj={"velocity": Motion}), own_code=LIGHT
)
def _joint_velocities(tree, q, v, w, velocities):
    sweep_motions(tree, q, v, None, w, velocities)


@algorithm(
    inputs={"q": "nq", "v": "nv", "a": "nv"},
    outputs={"velocities": "nj 6", "accelerations": "nj 6"},
    work=Layout(nj={"velocity": Motion, "acceleration": Motion}),
    own_code=LIGHT,
)
def _joint_accelerations(tree, q, v, a, w, velocities, accelerations):
    sweep_motions(tree, q, v, a, w, velocities)
    for i in range(tree.nj):
        store_user_motion(tree, i, w.acceleration[i], accelerations)


@algorithm(
    inputs={"q": "nq", "v": "nv", "a": "nv optional"},
    outputs={"placements": "nj 4 4", "velocities": "nj 6", "accelerations": "nj 6 zeroed"},
    work=Layout(nj={"place": SE3, "velocity": Motion, "acceleration": Motion}),
    own_code=LIGHT,
)
def _forward_kinematics(tree, q, v, a, w, placements, velocities, accelerations):
    """In one, so that all have the same leading axes; without a, accelerations stay zero."""
    place_joints(tree, q, w, placements)
    sweep_motions(tree, q, v, a, w, velocities)
    if a is not None:
        for i in range(tree.nj):
            store_user_motion(tree, i, w.acceleration[i], accelerations)


def joint_placements(model: Model, q: ArrayLike, *, out: Array | None = None, on_invalid: OnInvalid = "raise") -> Array:
    """Placements (..., njoints, 4, 4) of all joints in the world at `q` (..., nq) [m].

    >>> import saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3)
    >>> sl.joint_placements(robot, robot.neutral()).shape
    (4, 4, 4)
    """
    return _joint_placements.call(model, (q,), out, on_invalid)


def frame_placements(model: Model, q: ArrayLike, *, out: Array | None = None, on_invalid: OnInvalid = "raise") -> Array:
    """Placements (..., nframes, 4, 4) of all frames in the world at `q` (..., nq) [m].

    >>> import saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3)
    >>> sl.frame_placements(robot, robot.neutral()).shape[0] == len(robot.frames)
    True
    """
    return _frame_placements.call(model, (q,), out, on_invalid)


def joint_velocities(
    model: Model, q: ArrayLike, v: ArrayLike, *, out: Array | None = None, on_invalid: OnInvalid = "raise"
) -> Array:
    """Spatial velocities (..., njoints, 6) of all joints, each in its own frame, linear first [m/s, rad/s].

    >>> import numpy as np, saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=1, kinds=["free_flyer"])
    >>> sl.joint_velocities(robot, robot.neutral(), np.arange(6.0))[1]
    array([0., 1., 2., 3., 4., 5.])
    """
    return _joint_velocities.call(model, (q, v), out, on_invalid)


def joint_accelerations(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, on_invalid: OnInvalid = "raise"
) -> Array:
    """Spatial accelerations (..., njoints, 6) of all joints, each in its own frame, without gravity [m/s^2, rad/s^2].

    >>> import numpy as np, saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=1, kinds=["free_flyer"])
    >>> sl.joint_accelerations(robot, robot.neutral(), np.zeros(6), np.arange(6.0))[1]
    array([0., 1., 2., 3., 4., 5.])
    """
    accelerations: Array = _joint_accelerations.call(model, (q, v, a), None, on_invalid)[1]
    return accelerations


def forward_kinematics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    *,
    on_invalid: OnInvalid = "raise",
) -> tuple[Array, ...]:
    """Placements (..., njoints, 4, 4) of all joints; with `v` their velocities, with `a` their accelerations too, both
    (..., njoints, 6) in the joints' own frames. All have the leading axes that those of `q`, `v` and `a` broadcast to.

    >>> import numpy as np, saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3)
    >>> X, V, A = sl.forward_kinematics(robot, robot.neutral(), np.ones(robot.nv), np.zeros(robot.nv))
    >>> X.shape, V.shape, A.shape
    ((4, 4, 4), (4, 6), (4, 6))
    """
    if v is None:
        return (joint_placements(model, q, on_invalid=on_invalid),)
    if a is None:
        placements, velocities, _ = _forward_kinematics.call(model, (q, v), None, on_invalid)
        return placements, velocities
    placements, velocities, accelerations = _forward_kinematics.call(model, (q, v, a), None, on_invalid)
    return placements, velocities, accelerations
