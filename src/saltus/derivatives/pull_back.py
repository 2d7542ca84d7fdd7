"""Vector-Jacobian products of rigid-body dynamics: how a weighted sum of its results changes, in two sweeps, O(n).

    L = sum_k u_k tau_k(q, v, a)   ->   dL/dq, dL/dv, dL/da                 no matrix is formed

Let L depend on the bodies: on where they are, on their velocities v_j and accelerations a_j, and on the motions u_j that the
weights would give them, were they joint velocities. If a small displacement d of body j and changes of its motions make

    dL = x_j . d + v*_j . dv_j + a*_j . da_j + u*_j . du_j,

then, by the derivatives of motions in sweep.py and with capitals for sums over all that body i carries, p its parent,

    dL/dq_k = S_k . X_i + psi'_k . V_i + psi''_k . A_i + (u_p x S_k) . U_i         after x_j += v_j x* v*_j + a_j x* a*_j
    dL/dv_k = S_k . V_i + y'_k . A_i                                                            + u_j x* u*_j
    dL/da_k = S_k . A_i                    dL/du_k = S_k . U_i                     and  v*_j += v_j x* a*_j

Inverse dynamics is L = sum_j u_j . f_j with the force f_j = I a + v x* I v of body j, so that a*_j = I u_j, u*_j = f_j, and
v*_j + v_j x* a*_j = B^T u_j (B: rate.py). The force turns along with its body: no x_j is left.

| paper | code | what |
|---|---|---|
| u_k, u_j | `weights`, `lead` | of degree of freedom k; of body j |
| v*_j, a*_j, u*_j | `to_velocity`, `to_acceleration`, `to_lead` | what L feels of body j, then of all that it carries |
| S_k, psi'_k, psi''_k, y'_k | `axis`, `psi_dot`, `psi_ddot`, `upsilon_dot` | see sweep.py |

Forward dynamics a = M^-1 (tau - b), weights w: with u = M^-1 w, gradients are those of -u . rnea(q, v, a), and dL/dtau = u.

Reference: the principle is reverse differentiation, A. Griewank, A. Walther, Evaluating Derivatives (2008), section 3.2.
"""

from __future__ import annotations

import numpy as np

from saltus.arrays import Array, ArrayLike
from saltus.derivatives.rate import coriolis_back
from saltus.derivatives.sweep import AXES, BODIES, sweep_out
from saltus.dynamics.aba import WORK as ABA_WORK
from saltus.dynamics.aba import aba, articulate
from saltus.dynamics.crba import crba
from saltus.dynamics.kinematics import sweep_motions
from saltus.kernel import Layout, kernel, ld, st, zero
from saltus.model.model import Model
from saltus.model.tree import algorithm
from saltus.spatial.algebra import Force, Motion, Vec3, cross_motion, power

FELT: dict[str, type | None] = {"lead": Motion, "to_velocity": Force, "to_acceleration": Force, "to_lead": Force}
WORK = Layout(nj=BODIES | FELT, nv=AXES)


@kernel
def lead_bodies(tree, weights, sign, w):
    """To the leaves, after `sweep_out`: what the torques, weighted, feel of each body; `sign` is that of the weights."""
    o = zero(weights)
    none = Vec3(o, o, o)
    w.lead[0] = Motion(none, none)
    for i in range(1, tree.nj):
        lead = w.lead[tree.parent[i]]
        for k in range(tree.iv[i], tree.end[i]):
            lead = lead + w.axis[k] * (sign * ld(weights, k))
        w.lead[i], w.to_acceleration[i], w.to_lead[i] = lead, w.composite[i] @ lead, w.force[i]
        w.to_velocity[i] = Force(none, coriolis_back(w.momentum[i], w.rate[i], lead))


@kernel
def pull_back(tree, w, places, dq, dv):
    """To the root: gradients with respect to q and v; sums over what each body carries are left in its place. `places` is
    what L feels of where bodies are, or None."""
    for i in range(tree.nj - 1, 0, -1):
        parent, V, A, U = tree.parent[i], w.to_velocity[i], w.to_acceleration[i], w.to_lead[i]
        if parent > 0:
            w.to_velocity[parent] = w.to_velocity[parent] + V
            w.to_acceleration[parent] = w.to_acceleration[parent] + A
            w.to_lead[parent] = w.to_lead[parent] + U
            if places is not None:
                places[parent] = places[parent] + places[i]
        for k in range(tree.iv[i], tree.end[i]):
            axis = w.axis[k]
            total = power(w.psi_dot[k], V) + power(w.psi_ddot[k], A) + power(cross_motion(w.lead[parent], axis), U)
            if places is not None:
                total = total + power(axis, places[i])
            st(dq, k, total)
            st(dv, k, power(axis, V) + power(w.upsilon_dot[k], A))


@algorithm(
    inputs={"q": "nq", "v": "nv", "a": "nv", "weights": "nv", "forces": "nj 6 optional"},
    outputs={"tau": "nv", "dq": "nv", "dv": "nv", "da": "nv"},
    work=WORK,
    sloped=False,
)
def _rnea_vjp(tree, q, v, a, weights, forces, w, tau, dq, dv, da):
    sweep_out(tree, q, v, a, forces, w)
    lead_bodies(tree, weights, 1.0, w)
    pull_back(tree, w, None, dq, dv)
    for i in range(1, tree.nj):
        for k in range(tree.iv[i], tree.end[i]):
            st(tau, k, power(w.axis[k], w.to_lead[i]) + tree.armature[k] * ld(a, k))
            st(da, k, power(w.axis[k], w.to_acceleration[i]) + tree.armature[k] * ld(weights, k))


@algorithm(
    inputs={"q": "nq", "v": "nv", "weights": "nv", "forces": "nj 6 optional"},
    outputs={"tau": "nv", "dq": "nv", "dv": "nv"},
    work=WORK,
    sloped=False,
)
def _nonlinear_effects_vjp(tree, q, v, weights, forces, w, tau, dq, dv):
    sweep_out(tree, q, v, None, forces, w)
    lead_bodies(tree, weights, 1.0, w)
    pull_back(tree, w, None, dq, dv)
    for i in range(1, tree.nj):
        for k in range(tree.iv[i], tree.end[i]):
            st(tau, k, power(w.axis[k], w.to_lead[i]))


@algorithm(
    inputs={"q": "nq", "v": "nv", "tau": "nv", "weights": "nv", "forces": "nj 6 optional"},
    outputs={"a": "nv", "dq": "nv", "dv": "nv", "dtau": "nv"},
    work=ABA_WORK.extended(nj=BODIES | FELT, nv=AXES),
    inverts_inertia=True,
    sloped=False,
)
def _aba_vjp(tree, q, v, tau, weights, forces, w, a, dq, dv, dtau):
    articulate(tree, q, v, tau, forces, w, a, None)
    articulate(tree, q, None, weights, None, w, dtau, None)
    sweep_out(tree, q, v, a, forces, w)
    lead_bodies(tree, dtau, -1.0, w)
    pull_back(tree, w, None, dq, dv)


@algorithm(
    inputs={"q": "nq", "weights": "nv", "tau": "nv"},
    outputs={"dforces": "nj 6"},
    work=Layout(nj={"velocity": Motion}),
    sloped=False,
)
def _forces_vjp(tree, q, weights, tau, w, dforces):
    """Of external forces on torques, -J^T f: each force feels the motion of its body. `tau` only brings its leading axes."""
    sweep_motions(tree, q, weights, None, w, dforces)
    for k in range(6 * tree.nj):
        st(dforces, k, -ld(dforces, k))


def _solve_coupled(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, weights: ArrayLike, *forces: ArrayLike
) -> tuple[Array, ...]:
    """With mimic joints the inertia matrix is not that of a tree."""
    a = aba(model, q, v, tau, *forces)
    u = np.linalg.solve(crba(model, q), np.asarray(weights)[..., None])[..., 0]
    _, dq, dv, _ = _rnea_vjp.call(model, (q, v, a, -u, *forces))
    return a, dq, dv, u


_aba_vjp.when_coupled = _solve_coupled
