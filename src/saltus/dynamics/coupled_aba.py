"""Forward dynamics of robots with mimic joints by the articulated body algorithm, O(n).

    a = (G^T M G)^-1 G^T (tau_tree - b),      v_tree = G v

A joint that moves with others is not set free on its own: on the way to the root, the coordinate x of its group stays
unknown until all joints of the group are met (coupled_tables.py). Until then every body on the way keeps, beside its
articulated inertia and bias force, a column and a row for each open group,

    f = I a + p + sum_g h_g x_g,      h_g^T a + sum_o d_go x_o = t_g,

which joints of the group add to, other joints reduce when they are set free, and bodies hand on to their parents. Once they
are complete the group closes: x is eliminated as a free joint's rate is.

| here | code | what | frame |
|---|---|---|---|
| h_g, t_g | `column`, `torque` | of a slot: force by x, and what is left of the group's torque | body |
| d_go | `cross` | of two slots of a body | |
| h_g / d_gg, t_g / d_gg, d_go / d_gg | `group_gain`, `group_rate`, `other` | of a group, once it is closed | |
| s^T h_g / d | `couple` | of a degree of freedom that is set free, and a slot | |

The rest is `aba`. Compare M. Chignoli, N. Adrian, S. Kim, P. M. Wensing, Recursive rigid-body dynamics algorithms for
systems with kinematic loops (2023), where all bodies of a group are one, which has more unknowns.
"""

from __future__ import annotations

from saltus.dynamics.rnea import external_force
from saltus.kernel import Layout, kernel, ld, st, zero
from saltus.model.coupled_tables import coupled_algorithm, expand, expand_configuration
from saltus.model.joint_kernels import add_along, add_motion, carried, component, joint_placement, joint_turn, set_free
from saltus.model.tree import HEAVY
from saltus.spatial.algebra import Force, Motion, Vec2, Vec3, act_force, act_inv, power
from saltus.spatial.inertia import Sym6, act_sym6, add_rigid, as_sym6, column, force_of, without

WORK = Layout(
    nq={"q": None},
    tree_v={"v": None},
    nj={"turn": Vec2, "velocity": Motion, "bias": Motion, "force": Force, "inertia": Sym6, "jump": Motion},
    nv={"gain": Force, "free_rate": None},
    n_slots={"column": Force, "torque": None},
    n_pairs={"cross": None},
    n_groups={"group_gain": Force, "group_rate": None, "rate": None},
    n_couples={"couple": None},
    n_others={"other": None},
)


@kernel
def clear_slots(tree, o, w):
    for s in range(tree.n_slots):
        w.column[s], w.torque[s] = Force(Vec3(o, o, o), Vec3(o, o, o)), o
    for s in range(tree.n_pairs):
        w.cross[s] = o
    for g in range(tree.n_groups):
        w.rate[g] = o


@kernel
def join_group(tree, i, k, torque, I, f, w):
    """Degree of freedom k moves with its group: what it adds to the column and the row."""
    s, r, axis, first, n = tree.slot[k], tree.ratio[k], tree.axis[k], tree.first_slot[i], tree.slots[i]
    u, row = column(I, axis), tree.first_pair[i] + (s - first) * n
    for b in range(n):
        if first + b != s:
            x = r * component(w.column[first + b], axis)
            w.cross[row + b] = w.cross[row + b] + x
            w.cross[tree.first_pair[i] + b * n + s - first] = w.cross[row + b]
    own = row + s - first
    own_inertia = r * (component(u, axis) + tree.armature[k]) + 2.0 * component(w.column[s], axis)
    w.cross[own] = w.cross[own] + r * own_inertia
    w.column[s] = w.column[s] + u * r
    w.torque[s] = w.torque[s] + torque - r * component(f, axis)


@kernel
def reduce_slots(tree, i, k, gain, inverse, torque, w):
    """Degree of freedom k is set free: what that leaves of the columns and rows at its body."""
    axis, first, n, pairs, couple = (
        tree.axis[k],
        tree.first_slot[i],
        tree.slots[i],
        tree.first_pair[i],
        tree.first_couple[k],
    )
    for a in range(n):
        share = inverse * component(w.column[first + a], axis)
        w.couple[couple + a] = share
        w.torque[first + a] = w.torque[first + a] - share * torque
        for b in range(n):
            pair = pairs + a * n + b
            w.cross[pair] = w.cross[pair] - share * component(w.column[first + b], axis)
    for a in range(n):
        w.column[first + a] = w.column[first + a] - gain * component(w.column[first + a], axis)


@kernel
def close_group(tree, i, s, I, f, w):
    """The group of slot s is complete: its rate is eliminated; what is left of inertia and force of body i."""
    g, first, n, pairs, o = tree.group[s], tree.first_slot[i], tree.slots[i], tree.first_pair[i], zero(w.torque)
    row = pairs + (s - first) * n
    h, inverse, torque = w.column[s], 1.0 / w.cross[row + s - first], w.torque[s]
    gain = h * inverse
    w.group_gain[g], w.group_rate[g] = gain, inverse * torque
    for b in range(n):
        share = inverse * w.cross[row + b]
        w.other[tree.first_other[s] + b] = o if first + b == s else share
        if first + b != s:
            w.torque[first + b] = w.torque[first + b] - share * torque
            w.column[first + b] = w.column[first + b] - h * share
            for c in range(n):
                if first + c != s:
                    w.cross[pairs + b * n + c] = w.cross[pairs + b * n + c] - share * w.cross[row + c]
    for b in range(n):  # it is no longer there for those that close after it
        w.cross[row + b] = o
        w.cross[pairs + b * n + s - first] = o
    w.column[s], w.torque[s] = Force(Vec3(o, o, o), Vec3(o, o, o)), o
    return without(I, h, gain), f + gain * torque


@kernel
def close_groups(tree, i, I, f, w):
    """Those that close before the joint's own motion."""
    for s in range(tree.first_slot[i], tree.first_slot[i] + tree.slots[i]):
        if tree.closed_first[s]:
            I, f = close_group(tree, i, s, I, f, w)
    return I, f


@kernel
def hand_on(tree, i, X, w):
    """What is open at body i adds to what is at its parent."""
    first, n, parent = tree.first_slot[i], tree.slots[i], tree.parent[i]
    for a in range(n):
        s, upper = first + a, tree.upper[first + a]
        if upper >= 0:
            w.column[upper] = w.column[upper] + act_force(X, w.column[s])
            w.torque[upper] = w.torque[upper] + w.torque[s]
            for b in range(n):
                other = tree.upper[first + b]
                if other >= 0:
                    pair = tree.first_pair[parent] + (upper - tree.first_slot[parent]) * tree.slots[parent]
                    pair = pair + other - tree.first_slot[parent]
                    w.cross[pair] = w.cross[pair] + w.cross[tree.first_pair[i] + a * n + b]


@kernel
def find_rate(tree, i, s, jump, w):
    """The rate of a group that closes at body i, on the way back."""
    g = tree.group[s]
    rate = w.group_rate[g] - power(jump, w.group_gain[g])
    for b in range(tree.slots[i]):
        rate = rate - w.other[tree.first_other[s] + b] * w.rate[tree.group[tree.first_slot[i] + b]]
    w.rate[g] = rate
    return rate


@kernel
def find_rates(tree, i, jump, w):
    """Of those that close before the joint's own motion, the last one first."""
    for s in range(tree.first_slot[i] + tree.slots[i] - 1, tree.first_slot[i] - 1, -1):
        if tree.closed_first[s]:
            find_rate(tree, i, s, jump, w)


@coupled_algorithm(
    inputs={"q": "free_nq", "v": "free_nv", "tau": "free_nv", "forces": "nj 6 optional"},
    outputs={"a": "free_nv"},
    work=WORK,
    inverts_inertia=True,
    own_code=HEAVY,
)
def _coupled_aba(tree, q, v, tau, forces, w, a):
    o, g = zero(q), tree.gravity[0]
    none, still = Force(Vec3(o, o, o), Vec3(o, o, o)), Motion(Vec3(o, o, o), Vec3(o, o, o))
    velocity, bias = still, Motion(Vec3(o - g.x, o - g.y, o - g.z), Vec3(o, o, o))
    w.velocity[0], w.bias[0], w.jump[0] = velocity, bias, still
    expand_configuration(tree, q, w.q)
    expand(tree, v, w.v)
    clear_slots(tree, o, w)

    for i in range(1, tree.nj):  # to the leaves: velocities, and accelerations while joints have none
        turn, parent = joint_turn(tree, i, w.q), tree.parent[i]
        w.turn[i] = turn
        X = joint_placement(tree, i, w.q, turn)
        if parent != i - 1:
            velocity, bias = w.velocity[parent], w.bias[parent]
        velocity = add_motion(tree, i, act_inv(X, velocity), w.v)
        bias = act_inv(X, bias) + carried(tree, i, velocity, w.v)
        w.velocity[i], w.bias[i] = velocity, bias

    I, f = as_sym6(tree.inertia[0], o), none
    for i in range(tree.nj - 1, 0, -1):  # to the root: articulated inertias, what is left of forces, and open groups
        body, parent = tree.inertia[i], tree.parent[i]
        if tree.leaf[i]:
            I, f = as_sym6(body, o), none
        else:
            if tree.parent[i + 1] != i:
                I, f = w.inertia[i], w.force[i]
            I = add_rigid(I, body)
        f = f + force_of(body, w.velocity[i], w.bias[i])
        if forces is not None:
            f = f - external_force(tree, i, forces)
        I, f = close_groups(tree, i, I, f, w)
        for k in range(tree.end[i] - 1, tree.iv[i] - 1, -1):
            if tree.slot[k] >= 0:
                join_group(tree, i, k, o if tree.follows[i] else ld(tau, tree.free[k]), I, f, w)
                if tree.closes[k]:
                    I, f = close_group(tree, i, tree.slot[k], I, f, w)
            else:
                gain, inverse, I = set_free(tree, k, I)
                torque = ld(tau, tree.free[k]) - component(f, tree.axis[k])
                reduce_slots(tree, i, k, gain, inverse, torque, w)
                f = f + gain * torque
                w.gain[k], w.free_rate[k] = gain, inverse * torque
        X = joint_placement(tree, i, w.q, w.turn[i])
        hand_on(tree, i, X, w)
        if parent > 0:
            I, f = act_sym6(X, I), act_force(X, f)
            if not tree.last_child[i]:
                I, f = I + w.inertia[parent], f + w.force[parent]
            if parent != i - 1:
                w.inertia[parent], w.force[parent] = I, f
    close_groups(tree, 0, as_sym6(tree.inertia[0], o), none, w)

    find_rates(tree, 0, still, w)
    jump = still
    for i in range(1, tree.nj):  # to the leaves: accelerations
        if tree.parent[i] != i - 1:
            jump = w.jump[tree.parent[i]]
        jump = act_inv(joint_placement(tree, i, w.q, w.turn[i]), jump)
        for k in range(tree.iv[i], tree.end[i]):
            if tree.slot[k] >= 0:
                s = tree.slot[k]
                if tree.closes[k]:
                    find_rate(tree, i, s, jump, w)
                rate = w.rate[tree.group[s]]
            else:
                rate = w.free_rate[k] - power(jump, w.gain[k])
                for b in range(tree.slots[i]):
                    rate = rate - w.couple[tree.first_couple[k] + b] * w.rate[tree.group[tree.first_slot[i] + b]]
            if not tree.follows[i]:
                st(a, tree.free[k], rate)
            jump = add_along(jump, tree.axis[k], tree.ratio[k] * rate)
        find_rates(tree, i, jump, w)
        if tree.fork[i]:
            w.jump[i] = jump
