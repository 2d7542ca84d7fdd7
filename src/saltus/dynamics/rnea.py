"""Inverse dynamics by the recursive Newton-Euler algorithm; nonlinear effects and generalised gravity.

    tau = M(q) a + b(q, v) - sum_i J_i^T f_i

Two sweeps over the tree, O(n): velocities and accelerations to the leaves, forces back to the root.

| paper | code | what | frame |
|---|---|---|---|
| v_i, a_i | `velocity`, `acceleration` | of body i; gravity is taken as an acceleration of the world | body |
| f_i | `force` | force that body i's joint transmits | body |

Reference: R. Featherstone, Rigid Body Dynamics Algorithms (2008), table 5.1.
"""

from __future__ import annotations

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.kernel import Layout, kernel, ld, st, zero
from saltus.model.joint_kernels import add_motion, carried, joint_placement, joint_turn, project
from saltus.model.model import Model
from saltus.model.tree import LIGHT, algorithm
from saltus.spatial.algebra import Force, Motion, Vec2, Vec3, act_force, act_inv, turn_back
from saltus.spatial.inertia import force_of

WORK = Layout(nj={"turn": Vec2, "velocity": Motion, "acceleration": Motion, "force": Force})


@kernel
def external_force(tree, i, forces):
    """The external force on body i, from its joint frame to its canonical frame."""
    R = tree.turned[i]
    return Force(turn_back(R, ld(forces, 6 * i, Vec3)), turn_back(R, ld(forces, 6 * i + 3, Vec3)))


@kernel
def newton_euler(tree, q, v, a, forces, w, tau, kept):
    """The two sweeps; v, a and forces may be None, which stands for zero. `kept`: see `transmit`."""
    move(tree, q, v, a, forces, w, kept)
    transmit(tree, q, w, tau, kept)
    if a is not None:
        for k in range(tree.nv):
            st(tau, k, ld(tau, k) + tree.armature[k] * ld(a, k))


@kernel
def move(tree, q, v, a, forces, w, kept):
    """To the leaves: velocities, accelerations, and the forces they need."""
    o, g = zero(q), tree.gravity[0]
    velocity = Motion(Vec3(o, o, o), Vec3(o, o, o))
    acceleration = Motion(Vec3(o - g.x, o - g.y, o - g.z), Vec3(o, o, o))
    w.velocity[0], w.acceleration[0] = velocity, acceleration

    for i in range(1, tree.nj):
        body, parent = tree.inertia[i], tree.parent[i]
        turn = joint_turn(tree, i, q)
        X = joint_placement(tree, i, q, turn)
        if parent != i - 1:  # otherwise the parent is the body just before, its motion still at hand
            velocity, acceleration = w.velocity[parent], w.acceleration[parent]
        acceleration = act_inv(X, acceleration)
        if a is not None:
            acceleration = add_motion(tree, i, acceleration, a)
        if v is not None:
            velocity = add_motion(tree, i, act_inv(X, velocity), v)
            acceleration = acceleration + carried(tree, i, velocity, v)
        force = body @ acceleration if v is None else force_of(body, velocity, acceleration)
        if forces is not None:
            force = force - external_force(tree, i, forces)
        w.turn[i], w.force[i] = turn, force
        if kept is not None or tree.fork[i]:
            w.velocity[i], w.acceleration[i] = velocity, acceleration


@kernel
def transmit(tree, q, w, tau, kept):
    """To the root: joint torques, unless `tau` is None, and what is left for the parent to carry. `kept` is None, or where
    the forces that joints transmit are kept."""
    o = zero(q)
    force = Force(Vec3(o, o, o), Vec3(o, o, o))
    for i in range(tree.nj - 1, 0, -1):
        parent = tree.parent[i]
        if not tree.leaf[i] and tree.parent[i + 1] == i:
            force = force + w.force[i]
        else:
            force = w.force[i]
        if kept is not None:
            kept[i] = force
        if tau is not None:
            project(tree, i, force, tau)
        if parent > 0:
            force = act_force(joint_placement(tree, i, q, w.turn[i]), force)
            if parent != i - 1:
                w.force[parent] = w.force[parent] + force


@algorithm(
    inputs={"q": "nq", "v": "nv", "a": "nv", "forces": "nj 6 optional"},
    outputs={"tau": "nv"},
    work=WORK,
    own_code=LIGHT,
)
def _rnea(tree, q, v, a, forces, w, tau):
    newton_euler(tree, q, v, a, forces, w, tau, None)


@algorithm(inputs={"q": "nq", "v": "nv", "forces": "nj 6 optional"}, outputs={"tau": "nv"}, work=WORK, own_code=LIGHT)
def _nonlinear_effects(tree, q, v, forces, w, tau):
    newton_euler(tree, q, v, None, forces, w, tau, None)


@algorithm(inputs={"q": "nq", "forces": "nj 6 optional"}, outputs={"tau": "nv"}, work=WORK, own_code=LIGHT)
def _gravity(tree, q, forces, w, tau):
    newton_euler(tree, q, None, None, forces, w, tau, None)


def rnea(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    forces: ArrayLike | None = None,
    *,
    out: Array | None = None,
    on_invalid: OnInvalid = "raise",
) -> Array:
    """Joint torques (..., nv) [N m, N] that give the accelerations `a`.

    `q` (..., nq), `v` and `a` (..., nv); `forces` (..., njoints, 6), external forces on each joint's body in its own frame,
    linear first [N, N m] (row 0, the universe, does not count).

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> q, v, a = arm.neutral(), np.ones(3), np.zeros(3)
    >>> bool(np.allclose(sl.aba(arm, q, v, sl.rnea(arm, q, v, a)), a))
    True
    """
    return _rnea.call(model, (q, v, a) if forces is None else (q, v, a, forces), out, on_invalid)


def nonlinear_effects(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    forces: ArrayLike | None = None,
    *,
    out: Array | None = None,
    on_invalid: OnInvalid = "raise",
) -> Array:
    """Torques (..., nv) that hold the accelerations at zero: Coriolis, centrifugal, gravity, external forces.

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> q, v = arm.neutral(), np.ones(3)
    >>> bool(np.allclose(sl.nonlinear_effects(arm, q, v), sl.rnea(arm, q, v, np.zeros(3))))
    True
    """
    return _nonlinear_effects.call(model, (q, v) if forces is None else (q, v, forces), out, on_invalid)


def gravity(
    model: Model,
    q: ArrayLike,
    forces: ArrayLike | None = None,
    *,
    out: Array | None = None,
    on_invalid: OnInvalid = "raise",
) -> Array:
    """Torques (..., nv) that hold the robot still against gravity and external forces.

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> bool(np.allclose(sl.gravity(arm, arm.neutral()), sl.nonlinear_effects(arm, arm.neutral(), np.zeros(3))))
    True
    """
    return _gravity.call(model, (q,) if forces is None else (q, forces), out, on_invalid)
