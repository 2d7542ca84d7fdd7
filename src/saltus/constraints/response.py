"""Products with the Delassus matrix of contacts and with the damped operational-space inertia matrix, without making them.

    Delassus x = J M^-1 J^T x,      osim x = W x - W J (M + J^T W J)^-1 J^T W x,      W = 1 / mu

Forces of the rows go to the root, accelerations come back: the articulated body algorithm of a robot at rest, without
gravity, on inertias that the constraints are added to in the second case. O(n + m).

| paper | code | what | frame |
|---|---|---|---|
| H_i^A, f_i^A | `I`, `-f` | articulated inertia and force | body |
| K_i a_i | rows of `y` | acceleration of the rows | A |

Reference: A. Sathya, J. Carpentier, Constrained articulated body dynamics algorithms, equation 40 and algorithm 2.
"""

from __future__ import annotations

from saltus.constraints.tables import NODES, PLACES, SUPPORTS, constrained
from saltus.kernel import Layout, kernel, ld, lift, st, zero
from saltus.model.joint_kernels import add_along, component, joint_placement, joint_turn, set_free
from saltus.spatial.algebra import Force, Motion, Vec2, Vec3, act_force, act_inv, power
from saltus.spatial.inertia import Sym6, act_sym6, add_rigid, as_sym6, scaled

WORK = Layout(
    nj={"turn": Vec2, "inertia": Sym6, "force": Force, "acceleration": Motion}, nv={"gain": Force, "rate": None}
)


@constrained(
    SUPPORTS,
    PLACES,
    NODES,
    inputs={"q": "nq", "active": "nc", "x": "nm"},
    outputs={"y": "nm"},
    work=WORK,
    inverts_inertia=True,
    double_only=True,
)
def _response(tree, q, active, x, w, y):
    collect(tree, q, active, x, w)
    roll_out(tree, q, active, x, w, y)


@kernel
def weight(tree, p, o):
    """Of the row at place p, where products are those with the inverse; else 1; `o` is zero."""
    if tree.augmented[0]:
        return lift(1.0, o) / tree.mu[tree.row_at[p]]
    return lift(1.0, o)


@kernel
def collect(tree, q, active, x, w):
    """To the root: articulated inertias and the forces of the rows."""
    o = zero(q)
    none = Force(Vec3(o, o, o), Vec3(o, o, o))
    I, f = as_sym6(tree.inertia[0], o), none
    for i in range(tree.nj):
        w.force[i] = none
    for p in range(tree.nm):
        c = tree.holder[p]
        push = ld(x, tree.row_at[p]) * ld(active, c) * weight(tree, p, o)
        w.force[tree.body_a[c]] = w.force[tree.body_a[c]] - tree.row_force[p] * push
    for i in range(tree.nj - 1, 0, -1):
        parent, f = tree.parent[i], w.force[i]
        if tree.leaf[i]:
            I = as_sym6(tree.inertia[i], o)
        else:
            if tree.parent[i + 1] != i:
                I = w.inertia[i]
            I = add_rigid(I, tree.inertia[i])
        if tree.augmented[0]:
            c = tree.held[i]
            while c >= 0:
                I = I + scaled(tree.stiffness[c], ld(active, c))
                c = tree.next_held[c]
        for k in range(tree.end[i] - 1, tree.iv[i] - 1, -1):
            gain, inverse, I = set_free(tree, k, I)
            torque = -component(f, tree.axis[k])
            f = f + gain * torque
            w.gain[k], w.rate[k] = gain, inverse * torque
        w.turn[i] = joint_turn(tree, i, q)
        if parent > 0:
            X = joint_placement(tree, i, q, w.turn[i])
            I = act_sym6(X, I)
            w.force[parent] = w.force[parent] + act_force(X, f)
            if not tree.last_child[i]:
                I = I + w.inertia[parent]
            if parent != i - 1:
                w.inertia[parent] = I


@kernel
def roll_out(tree, q, active, x, w, y):
    """To the leaves, over the bodies that support rows: accelerations, and those of the rows."""
    o = zero(q)
    w.acceleration[0] = Motion(Vec3(o, o, o), Vec3(o, o, o))
    for i in range(1, tree.nj):
        if tree.supports[i]:
            X = joint_placement(tree, i, q, w.turn[i])
            acceleration = act_inv(X, w.acceleration[tree.parent[i]])
            for k in range(tree.iv[i], tree.end[i]):
                rate = w.rate[k] - power(acceleration, w.gain[k])
                acceleration = add_along(acceleration, tree.axis[k], rate)
            w.acceleration[i] = acceleration
    for p in range(tree.nm):
        c, r = tree.holder[p], tree.row_at[p]
        answer = power(w.acceleration[tree.body_a[c]], tree.row_force[p]) * ld(active, c)
        if tree.augmented[0]:
            answer = (ld(x, r) - answer) * weight(tree, p, o)
        st(y, r, answer)
