"""Forward dynamics by the articulated body algorithm.

    a = M(q)^-1 (tau - b(q, v) + sum_i J_i^T f_i)

Three sweeps over the tree, O(n). Each joint's degrees of freedom are eliminated one by one: an axis that may move freely
takes the rank-one matrix u u^T / d out of the inertia of the body that it carries. Where the parent is the body just
before (or the child the one just after), its quantities are still at hand and do not go through memory.

| paper | code | what | frame |
|---|---|---|---|
| v_i | `velocity` | spatial velocity of body i | body |
| I_i^A, p_i^A | `I`, `f`; `inertia`, `force` | articulated inertia and bias force, as collected from the children | body |
| U D^-1, D^-1 u | `gain`, `free_rate` | column of I^A and torque left over, by the pivot, one a degree of freedom | body |
| a_i | `bias` + `jump` | spatial acceleration of body i, gravity taken as an acceleration of the world | body |

`bias` is what a body's acceleration is while no joint accelerates, and `jump` the rest: the third sweep then asks for no
velocities, which need not be kept until there.

Reference: R. Featherstone, Rigid Body Dynamics Algorithms (2008), table 7.1; here with armature on the pivots, and with
accelerations split as said.
"""

from __future__ import annotations

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.dynamics.coupled_aba import _coupled_aba
from saltus.dynamics.rnea import external_force
from saltus.kernel import Layout, kernel, ld, st, zero
from saltus.model.joint_kernels import add_along, add_motion, carried, component, joint_placement, joint_turn, set_free
from saltus.model.model import Model
from saltus.model.tree import HEAVY, algorithm
from saltus.spatial.algebra import Force, Motion, Vec2, Vec3, act_force, act_inv, power
from saltus.spatial.inertia import Sym6, act_sym6, add_rigid, as_sym6, force_of

WORK = Layout(
    nj={"turn": Vec2, "velocity": Motion, "bias": Motion, "force": Force, "inertia": Sym6, "jump": Motion},
    nv={"gain": Force, "free_rate": None},
)


@kernel
def articulate(tree, q, v, tau, forces, w, a, kept):
    """The three sweeps; forces may be None, which stands for zero. If v is None, nor is there gravity: a = M^-1 tau.

    `kept` is None, or where inverse pivots are kept for derivatives; then so are the accelerations of all bodies."""
    o, g = zero(q), tree.gravity[0]
    none, still = Force(Vec3(o, o, o), Vec3(o, o, o)), Motion(Vec3(o, o, o), Vec3(o, o, o))
    velocity, bias = still, Motion(Vec3(o - g.x, o - g.y, o - g.z), Vec3(o, o, o))
    w.velocity[0], w.bias[0], w.jump[0] = velocity, bias, still

    for i in range(1, tree.nj):  # to the leaves: velocities, and accelerations while joints have none
        turn, parent = joint_turn(tree, i, q), tree.parent[i]
        w.turn[i] = turn
        if v is not None:
            X = joint_placement(tree, i, q, turn)
            if parent != i - 1:
                velocity, bias = w.velocity[parent], w.bias[parent]
            velocity = add_motion(tree, i, act_inv(X, velocity), v)
            bias = act_inv(X, bias) + carried(tree, i, velocity, v)
            w.velocity[i], w.bias[i] = velocity, bias

    I, f = as_sym6(tree.inertia[0], o), none
    for i in range(tree.nj - 1, 0, -1):  # to the root: articulated inertias, and what is left of forces
        body, parent = tree.inertia[i], tree.parent[i]
        if tree.leaf[i]:
            I, f = as_sym6(body, o), none
        else:
            if tree.parent[i + 1] != i:
                I, f = w.inertia[i], w.force[i]
            I = add_rigid(I, body)
        if v is not None:
            f = f + force_of(body, w.velocity[i], w.bias[i])
        if forces is not None:
            f = f - external_force(tree, i, forces)
        for k in range(tree.end[i] - 1, tree.iv[i] - 1, -1):
            gain, inverse, I = set_free(tree, k, I)
            torque = ld(tau, k) - component(f, tree.axis[k])
            f = f + gain * torque
            w.gain[k], w.free_rate[k] = gain, inverse * torque
            if kept is not None:
                kept[k] = inverse
        if parent > 0:
            X = joint_placement(tree, i, q, w.turn[i])
            I, f = act_sym6(X, I), act_force(X, f)
            if not tree.last_child[i]:
                I, f = I + w.inertia[parent], f + w.force[parent]
            if parent != i - 1:
                w.inertia[parent], w.force[parent] = I, f

    jump = still
    for i in range(1, tree.nj):  # to the leaves: accelerations
        if tree.parent[i] != i - 1:
            jump = w.jump[tree.parent[i]]
        jump = act_inv(joint_placement(tree, i, q, w.turn[i]), jump)
        for k in range(tree.iv[i], tree.end[i]):
            rate = w.free_rate[k] - power(jump, w.gain[k])
            st(a, k, rate)
            jump = add_along(jump, tree.axis[k], rate)
        if tree.fork[i]:
            w.jump[i] = jump
        if kept is not None:
            w.acceleration[i] = w.bias[i] + jump


@algorithm(
    inputs={"q": "nq", "v": "nv", "tau": "nv", "forces": "nj 6 optional"},
    outputs={"a": "nv"},
    work=WORK,
    inverts_inertia=True,
    own_code=HEAVY,
)
def _aba(tree, q, v, tau, forces, w, a):
    articulate(tree, q, v, tau, forces, w, a, None)


_aba.take_for_coupled(_coupled_aba)


def aba(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    forces: ArrayLike | None = None,
    *,
    out: Array | None = None,
    on_invalid: OnInvalid = "raise",
) -> Array:
    """Joint accelerations (..., nv) [rad/s^2, m/s^2] under the torques `tau`.

    `q` (..., nq), `v` and `tau` (..., nv); `forces` (..., njoints, 6), external forces on each joint's body in its own
    frame, linear first [N, N m] (row 0, the universe, does not count).

    >>> import numpy as np, saltus as sl
    >>> builder = sl.ModelBuilder("brick")
    >>> _ = builder.add_body(builder.add_joint("root", "free_flyer"), mass=1.0, inertia=np.eye(3))
    >>> brick = builder.build()
    >>> sl.aba(brick, brick.neutral(), np.zeros(6), np.zeros(6)).round(6) + 0.0
    array([ 0.  ,  0.  , -9.81,  0.  ,  0.  ,  0.  ])
    """
    return _aba.call(model, (q, v, tau) if forces is None else (q, v, tau, forces), out, on_invalid)
