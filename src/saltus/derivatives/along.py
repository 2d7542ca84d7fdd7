"""Analytical derivatives of rigid-body dynamics along directions: O(n) each, no matrix is formed.

    tau' = d rnea(q, v, a) (q', v', a'),      a' = M^-1 (tau' - d rnea(q, v, a) (q', v', 0)),      M' = dM q'

A joint's placement X changes by the motion u = S q' of the body it carries, seen from that body, and with it what goes
through X:

    (X^-1 m)' = X^-1 m' + (X^-1 m) x u                  motions, to the leaves
    (X f)' = X (f' + u x* f)                            forces, to the root

Spatial transformations are then elementary operations (the paper's "ED"), whose slopes cost what they cost themselves. The
solution of a linear system is another: forward dynamics takes the articulated body algorithm's factors for its slopes.

The inertia matrix has M_lk = S_l . F_k, F_k = C S_k with the inertia C of all that k carries, along the world's axes. With
e_i = sum of S_j q'_j down to body i, and C' = sum of [S_j, C_j] q'_j over the joints below, b and c the bodies of k and l,

    M'_lk = S_l . (e_b x* F_k + C'_b S_k) + (e_c x S_l) . F_k

| paper | code | what | frame |
|---|---|---|---|
| v_i', a_i', f_i' | `velocity`, `acceleration`, `force` of the slopes `d` | of body i | body |
| f_i | `load` | force that body i's joint transmits | body |
| U D^-1, D^-1 | `gain`, `pivot` | see aba.py | body |
| S_k, F_k, [S_k, C] | `axis`, `push`, `swing` | of degree of freedom k | world axes |
| e_i, C'_i | `shift`, `change` | of body i | world axes |

Reference: M. Kudruss, P. Manns, C. Kirches, Efficient derivative evaluation for rigid-body dynamics based on recursive
algorithms subject to kinematic and loop constraints (2019), sections 3.1 to 3.3.
"""

from __future__ import annotations

from saltus.derivatives.rate import inertia_rate
from saltus.dynamics.aba import WORK as ABA_WORK
from saltus.dynamics.aba import _aba, aba, articulate
from saltus.dynamics.crba import _crba, crba, inertia_matrix
from saltus.dynamics.rnea import (
    _nonlinear_effects,
    _rnea,
    external_force,
    newton_euler,
    nonlinear_effects,
    rnea,
    transmit,
)
from saltus.kernel import Layout, kernel, ld, lift, st, st_symmetric, zero
from saltus.kernel.directional import directional
from saltus.model.joint_kernels import (
    CONTINUOUS,
    add_along,
    add_motion,
    carried,
    component,
    joint_motion,
    joint_placement,
    project,
)
from saltus.spatial.algebra import (
    Force,
    Motion,
    Sym3,
    Vec3,
    act_force,
    act_inv,
    cross,
    cross_force,
    cross_motion,
    power,
)  # fmt: skip
from saltus.spatial.inertia import Rigid, force_along, force_of

SLOPES = Layout(nj={"velocity": Motion, "acceleration": Motion, "force": Force})
LOAD: dict[str, type | None] = {"load": Force}


@kernel
def swept(tree, i, m, x):
    """m x S x, as `carried`, of slopes m and values x."""
    if tree.kind[i] <= CONTINUOUS:
        rate, lin, ang = ld(x, tree.iv[i]), m.lin, m.ang
        o = lift(0.0, lin.x)
        return Motion(Vec3(lin.y * rate, -(lin.x * rate), o), Vec3(ang.y * rate, -(ang.x * rate), o))
    return cross_motion(m, joint_motion(tree, i, x))


@kernel
def move_along(tree, q, v, a, dq, dv, da, dforces, shifts, w, d):
    """To the leaves: slopes of velocities, accelerations, and of the forces they need; a, da and dforces may be None. The
    displacements of the bodies go to `shifts`, unless that is None."""
    o = zero(dq)
    velocity = acceleration = shift = Motion(Vec3(o, o, o), Vec3(o, o, o))
    d.velocity[0], d.acceleration[0] = velocity, acceleration
    if shifts is not None:
        shifts[0] = shift
    for i in range(1, tree.nj):
        body, parent = tree.inertia[i], tree.parent[i]
        X = joint_placement(tree, i, q, w.turn[i])
        if parent != i - 1:
            velocity, acceleration = d.velocity[parent], d.acceleration[parent]
        speed, rise = w.velocity[i], w.acceleration[i]
        before = rise - carried(tree, i, speed, v)  # what comes from the parent
        if a is not None:
            before = before - joint_motion(tree, i, a)
        velocity = act_inv(X, velocity) + carried(tree, i, speed - joint_motion(tree, i, v), dq)
        velocity = add_motion(tree, i, velocity, dv)
        acceleration = act_inv(X, acceleration) + carried(tree, i, before, dq)
        acceleration = acceleration + swept(tree, i, velocity, v) + carried(tree, i, speed, dv)
        if da is not None:
            acceleration = add_motion(tree, i, acceleration, da)
        force = force_along(body, speed, velocity, acceleration)
        if dforces is not None:
            force = force - external_force(tree, i, dforces)
        d.velocity[i], d.acceleration[i], d.force[i] = velocity, acceleration, force
        if shifts is not None:
            if parent != i - 1:
                shift = shifts[parent]
            shift = add_motion(tree, i, act_inv(X, shift), dq)
            shifts[i] = shift


@kernel
def turned_along(tree, i, f, x):
    """S x x* f: how a force changes that turns along with body i."""
    if tree.kind[i] <= CONTINUOUS:
        rate = ld(x, tree.iv[i])
        lin, ang, o = f.lin, f.ang, lift(0.0, rate)
        return Force(Vec3(-(lin.y * rate), lin.x * rate, o), Vec3(-(ang.y * rate), ang.x * rate, o))
    return cross_force(joint_motion(tree, i, x), f)


@kernel
def transmit_along(tree, q, dq, given, w, d, dtau):
    """To the root, after `transmit`: slopes of the torques. Or these are given, `dtau` is None, and what they leave for the
    accelerations is found, as in aba.py."""
    o = zero(dq)
    slope = Force(Vec3(o, o, o), Vec3(o, o, o))
    for i in range(tree.nj - 1, 0, -1):
        parent = tree.parent[i]
        if not tree.leaf[i] and tree.parent[i + 1] == i:
            slope = slope + d.force[i]
        else:
            slope = d.force[i]
        if dtau is not None:
            project(tree, i, slope, dtau)
        if given is not None:
            for k in range(tree.end[i] - 1, tree.iv[i] - 1, -1):
                torque = ld(given, k) - component(slope, tree.axis[k])
                slope = slope + w.gain[k] * torque
                d.rate[k] = torque * w.pivot[k]
        if parent > 0:
            X = joint_placement(tree, i, q, w.turn[i])
            slope = act_force(X, slope + turned_along(tree, i, w.load[i], dq))
            if parent != i - 1:
                d.force[parent] = d.force[parent] + slope


@kernel
def move_and_transmit(tree, q, v, a, forces, w, tau):
    newton_euler(tree, q, v, a, forces, w, tau, w.load)


@directional(_rnea, SLOPES, move_and_transmit, _rnea.work.extended(nj=LOAD))
def _rnea_along(tree, q, v, a, forces, dq, dv, da, dforces, w, d, tau, dtau):
    move_along(tree, q, v, a, dq, dv, da, dforces, None, w, d)
    transmit_along(tree, q, dq, None, w, d, dtau)
    for k in range(tree.nv):
        st(dtau, k, ld(dtau, k) + tree.armature[k] * ld(da, k))


@kernel
def drift_and_transmit(tree, q, v, forces, w, tau):
    newton_euler(tree, q, v, None, forces, w, tau, w.load)


@directional(_nonlinear_effects, SLOPES, drift_and_transmit, _rnea.work.extended(nj=LOAD))
def _nonlinear_effects_along(tree, q, v, forces, dq, dv, dforces, w, d, tau, dtau):
    move_along(tree, q, v, None, dq, dv, None, dforces, None, w, d)
    transmit_along(tree, q, dq, None, w, d, dtau)


@kernel
def weigh(tree, forces, w):
    """The forces that the bodies need for their motions."""
    for i in range(1, tree.nj):
        force = force_of(tree.inertia[i], w.velocity[i], w.acceleration[i])
        if forces is not None:
            force = force - external_force(tree, i, forces)
        w.force[i] = force


@kernel
def articulate_and_weigh(tree, q, v, tau, forces, w, a):
    articulate(tree, q, v, tau, forces, w, a, w.pivot)
    weigh(tree, forces, w)
    transmit(tree, q, w, None, w.load)


@kernel
def accelerate_along(tree, q, w, d, da):
    """To the leaves: the slopes of accelerations that leave the forces of `move_along` in balance."""
    o = zero(da)
    acceleration = Motion(Vec3(o, o, o), Vec3(o, o, o))
    d.acceleration[0] = acceleration
    for i in range(1, tree.nj):
        if tree.parent[i] != i - 1:
            acceleration = d.acceleration[tree.parent[i]]
        acceleration = act_inv(joint_placement(tree, i, q, w.turn[i]), acceleration)
        for k in range(tree.iv[i], tree.end[i]):
            rate = d.rate[k] - power(acceleration, w.gain[k])
            st(da, k, rate)
            acceleration = add_along(acceleration, tree.axis[k], rate)
        d.acceleration[i] = acceleration


@directional(
    _aba,
    SLOPES.extended(nv={"rate": None}),
    articulate_and_weigh,
    ABA_WORK.extended(nj={**LOAD, "acceleration": Motion}, nv={"pivot": None}),
)
def _aba_along(tree, q, v, tau, forces, dq, dv, dtau, dforces, w, d, a, da):
    move_along(tree, q, v, a, dq, dv, None, dforces, None, w, d)
    transmit_along(tree, q, dq, dtau, w, d, None)
    accelerate_along(tree, q, w, d, da)


@kernel
def compose(tree, q, w, M):
    """The inertia matrix; all composite inertias, and what joints do to them, are kept."""
    inertia_matrix(tree, q, w, M)
    for i in range(tree.nj - 1, 0, -1):
        composite = w.composite[i]
        if not tree.leaf[i] and tree.parent[i + 1] == i:
            composite = composite + w.composite[i + 1]
        w.composite[i] = composite
        for k in range(tree.iv[i], tree.end[i]):
            axis = w.axis[k]
            w.push[k] = composite @ axis
            moment = axis.lin * composite.m + cross(axis.ang, composite.h)
            w.swing[k] = Rigid(composite.m * 0.0, moment, inertia_rate(composite, axis))


@directional(
    _crba,
    Layout(nj={"shift": Motion, "change": Rigid}, nv={"bent": Motion}),
    compose,
    _crba.work.extended(nv={"push": Force, "swing": Rigid}),
)
def _crba_along(tree, q, dq, w, d, M, dM):
    nv, o = tree.nv, zero(dq)
    none = Vec3(o, o, o)
    d.shift[0], d.change[0] = Motion(none, none), Rigid(o, none, Sym3(o, o, o, o, o, o))
    for i in range(1, tree.nj):
        shift = d.shift[tree.parent[i]]
        for k in range(tree.iv[i], tree.end[i]):
            shift = shift + w.axis[k] * ld(dq, k)
        for k in range(tree.iv[i], tree.end[i]):
            d.bent[k] = cross_motion(shift, w.axis[k])
        d.shift[i], d.change[i] = shift, d.change[0]
    for i in range(tree.nj - 1, 0, -1):
        change, parent = d.change[i], tree.parent[i]
        for k in range(tree.end[i] - 1, tree.iv[i] - 1, -1):
            push = w.push[k]
            slope = cross_force(d.shift[i], push) + change @ w.axis[k]
            j = k
            while j >= 0:
                st_symmetric(dM, nv, k, j, power(w.axis[j], slope) + power(d.bent[j], push))
                j = tree.above[j]
        for k in range(tree.iv[i], tree.end[i]):
            swing, rate = w.swing[k], ld(dq, k)
            J = swing.J
            change = Rigid(
                change.m,
                change.h + swing.h * rate,
                change.J + Sym3(J.xx * rate, J.xy * rate, J.xz * rate, J.yy * rate, J.yz * rate, J.zz * rate),
            )
        d.change[parent] = d.change[parent] + change


ALONG = {aba: _aba_along, crba: _crba_along, nonlinear_effects: _nonlinear_effects_along, rnea: _rnea_along}
"""Functions with slopes of their own."""
