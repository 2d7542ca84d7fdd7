"""The two sweeps that all analytical derivatives share: along the world's axes, about the origin of the first body.

For a degree of freedom k of body i, with parent p, and any body j that it carries,

    dv_j/dq_k = S_k x v_j + psi'_k                          dv_j/dv_k = S_k
    da_j/dq_k = S_k x a_j + psi''_k - v_j x psi'_k          da_j/dv_k = y'_k - v_j x S_k

A turn about S_k displaces all that k carries as one rigid body, which changes no torque below it; what is left are psi' and
psi'', the part of the motion that does not turn along. Torques therefore change by (B: rate.py)

    dtau_l/dq_k = S_l . (I_i psi''_k + B_i psi'_k + S_k x* F_i)     l above body i (without the last term on body i itself)
    dtau_l/dq_k = S_l . (I_j psi''_k + B_j psi'_k)                  l on body j, below k
    dtau_l/dv_k = S_l . (I_j y'_k + B_j S_k)                        j the outer one of the two bodies

| paper | code | what |
|---|---|---|
| S_k | `axis` | motion along degree of freedom k |
| psi'_k = v_p x S_k, psi''_k = a_p x S_k + v_p x psi'_k | `psi_dot`, `psi_ddot` | of k; the world accelerates |
| y'_k = psi'_k + v_i x S_k | `upsilon_dot` | of k |
| I_i, I_i v, B_i, F_i | `composite`, `momentum`, `rate`, `force` | of body i, then summed up with all that it carries |

References: J. Carpentier, N. Mansard, Analytical derivatives of rigid body dynamics algorithms (2018); S. Singh, R. Russell,
P. Wensing, Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra (2022).
"""

from __future__ import annotations

from saltus.derivatives.rate import coriolis, coriolis_back, inertia_rate
from saltus.dynamics.rnea import external_force
from saltus.kernel import kernel, ld, lift, st, zero
from saltus.model.joint_kernels import axis_seen_from, joint_placement, lift_vec, placed_after
from saltus.spatial.algebra import (
    SE3,
    Force,
    Mat3,
    Motion,
    Sym3,
    Vec2,
    Vec3,
    act_force,
    cross_force,
    cross_motion,
    dot,
    power,
)  # fmt: skip
from saltus.spatial.inertia import Rigid

BODIES: dict[str, type | None] = {
    "place": SE3, "velocity": Motion, "acceleration": Motion,
    "composite": Rigid, "momentum": Force, "rate": Sym3, "force": Force,
}  # fmt: skip
AXES: dict[str, type | None] = {"axis": Motion, "psi_dot": Motion, "psi_ddot": Motion, "upsilon_dot": Motion}


@kernel
def sweep_out(tree, q, v, a, forces, w):
    """To the leaves: motions of bodies and axes, and the inertias, momenta and forces of each body. `a` may be None (zero),
    and so may `forces` (external ones, as in `rnea`)."""
    sweep_out_from(tree, lift_vec(tree.gravity[0] * -1.0, zero(q)), q, v, a, forces, w)


@kernel
def sweep_out_from(tree, rising, q, v, a, forces, w):
    """The same in a world that accelerates so."""
    o = zero(q)
    none, one = Vec3(o, o, o), lift(1.0, o)
    X = SE3(Mat3(one, o, o, o, one, o, o, o, one), none)
    if tree.nj > 1:
        X = SE3(X.R, -joint_placement(tree, 1, q, Vec2(one, o)).p)
    velocity, acceleration = Motion(none, none), Motion(rising, none)
    w.place[0], w.velocity[0], w.acceleration[0] = X, velocity, acceleration
    w.composite[0], w.momentum[0] = Rigid(o, none, Sym3(o, o, o, o, o, o)), Force(none, none)
    w.rate[0], w.force[0] = Sym3(o, o, o, o, o, o), Force(none, none)
    for i in range(1, tree.nj):
        if tree.parent[i] != i - 1:
            X, velocity = w.place[tree.parent[i]], w.velocity[tree.parent[i]]
            acceleration = w.acceleration[tree.parent[i]]
        X = placed_after(tree, i, q, X)
        turning, speeding = Motion(none, none), Motion(none, none)
        for k in range(tree.iv[i], tree.end[i]):
            axis = axis_seen_from(X, tree.axis[k])
            psi_dot = cross_motion(velocity, axis)
            w.axis[k], w.psi_dot[k] = axis, psi_dot
            w.psi_ddot[k] = cross_motion(acceleration, axis) + cross_motion(velocity, psi_dot)
            turning = turning + axis * ld(v, k)
            if a is not None:
                speeding = speeding + axis * ld(a, k)
        velocity = velocity + turning
        acceleration = acceleration + speeding + cross_motion(velocity, turning)
        for k in range(tree.iv[i], tree.end[i]):
            w.upsilon_dot[k] = w.psi_dot[k] + cross_motion(velocity, w.axis[k])
        body = X @ tree.solid[i]
        momentum = body @ velocity
        force = body @ acceleration + cross_force(velocity, momentum)
        if forces is not None:
            force = force - act_force(X, external_force(tree, i, forces))
        w.place[i], w.velocity[i], w.acceleration[i] = X, velocity, acceleration
        w.composite[i], w.momentum[i], w.rate[i], w.force[i] = body, momentum, inertia_rate(body, velocity), force


@kernel
def store_pair(nv, k, j, w, push, swing, along_q, along_v, M, dq, dv):
    """Entries (j, k) and (k, j) of dtau/dq and dtau/dv, and (j, k) of M: j above k, or k itself."""
    axis = w.axis[j]
    st(M, j * nv + k, power(axis, push))
    st(dq, j * nv + k, power(axis, along_q))
    st(dv, j * nv + k, power(axis, along_v))
    st(dq, k * nv + j, power(w.psi_ddot[j], push) + dot(w.psi_dot[j].ang, swing))
    st(dv, k * nv + j, power(w.upsilon_dot[j], push) + dot(axis.ang, swing))


@kernel
def sweep_back(tree, w, M, dq, dv):
    """To the root: the upper triangle of M, and all entries of dtau/dq and dtau/dv that the tree's structure leaves."""
    nv = tree.nv
    for i in range(tree.nj - 1, 0, -1):
        composite, momentum, rate, force = w.composite[i], w.momentum[i], w.rate[i], w.force[i]
        parent = tree.parent[i]
        if parent > 0:
            w.composite[parent] = w.composite[parent] + composite
            w.momentum[parent] = w.momentum[parent] + momentum
            w.rate[parent] = w.rate[parent] + rate
            w.force[parent] = w.force[parent] + force
        for k in range(tree.iv[i], tree.end[i]):
            axis = w.axis[k]
            push, swing = composite @ axis, coriolis_back(momentum, rate, axis)
            along_q = composite @ w.psi_ddot[k] + coriolis(momentum, rate, w.psi_dot[k].ang)
            along_v = composite @ w.upsilon_dot[k] + coriolis(momentum, rate, axis.ang)
            j = k
            while j >= tree.iv[i]:  # the joint's own axes turn with it
                store_pair(nv, k, j, w, push, swing, along_q, along_v, M, dq, dv)
                j = tree.above[j]
            along_q = along_q + cross_force(axis, force)
            while j >= 0:
                store_pair(nv, k, j, w, push, swing, along_q, along_v, M, dq, dv)
                j = tree.above[j]
            st(M, k * nv + k, ld(M, k * nv + k) + tree.armature[k])
