"""How a robot's node changes with state and controls: dynamics by analytical derivatives, costs to second order.

    dv' = G (dq, dv, du),    G = dt (a_q, a_v, a_u) + (0, 1, 0), or that of the impact
    dq' = A dq + B dv',      A, B / dt the Jacobians of q (+) dt v', block diagonal

Identities but for joints that turn in more than an angle, so only blocks of those are handed out (euler_structure.py).

| paper | code | what | shape |
|---|---|---|---|
| a_q, a_v, a_tau | `a_q`, `a_v`, `A` | of accelerations, or jumps of velocities | nv nv |
| g_q, g_v, g_tau | `f_q`, `f_v`, `N` | of forces, or impulses | nm nv |
| | `slide` | dt v' | nv |
| A, B | `turned`, `pushed` | blocks of joints that turn, one after the other, row by row | nturn |

References: R. Budhiraja, Multi-body locomotion (2019), equations 3.16 to 3.19; derivatives/constrained.py, impact.py.
"""

from __future__ import annotations

from saltus.constraints.tables import CONSTRAINTS, INFLUENCES, MOVERS
from saltus.derivatives.constrained import WORK as DERIVATIVES
from saltus.derivatives.constrained import begin, finish
from saltus.derivatives.constraint_rows import add_rows, first_of, frames_of, rate_slopes
from saltus.kernel import Tables, declare, kernel, ld, less, select, some, st, st_symmetric, tail, zero
from saltus.model.joint_kernels import FREE_FLYER, SPHERICAL
from saltus.model.manifold_jacobians import back_plane, back_se3, right_jacobian_plane, store_block
from saltus.model.tree import CONFIGURATIONS, INERTIAS, TREE, extent
from saltus.ocp.costs import EXPANSION, expand_terms
from saltus.ocp.residuals import collect_for_terms
from saltus.ocp.term_tables import DATA, TERMS
from saltus.spatial.algebra import Motion, Vec3, cross_motion, transpose
from saltus.spatial.lie import exp_quaternion, right_jacobian, right_jacobian_se3
from saltus.spatial.quaternion import rotation


@kernel
def differentiate_motion(tree, q, v, a, forces, data, w):
    """How accelerations and forces of a node change, or jumps and impulses: those of a motion from rest, without gravity,
    whose rows ask for velocities. Rows of forces are those of live constraints (constraint_rows.py)."""
    nv, o, g = tree.nv, zero(data), tree.gravity[0]
    active, impact = tail(data, DATA), less(0.5 + o, ld(data, 2))
    moves = select(impact, o, o + 1.0)
    for k in range(nv):
        w.rates[k] = ld(v, k) * moves
    rising = Vec3(moves * -g.x, moves * -g.y, moves * -g.z)
    begin(tree, rising, q, w.rates, a, forces, active, forces, None, w, w.a_q, w.a_v, w.f_q, w.f_v)
    if some(impact):
        differentiate_speeds(tree, q, v, active, 1.0 - moves, w)
    finish(tree, forces, active, w, w.a_q, w.a_v, w.A, w.T, w.f_q, w.f_v, w.N, w.G)
    if some(impact):
        for i in range(1, tree.nj):
            w.velocity[i] = w.before[i]
        for k in range(nv):
            w.psi_dot[k] = w.psi_before[k]
        for n in range(nv * nv):
            st(w.A, n, ld(w.A, n) * moves)
        for n in range(w.live_rows[0] * nv):
            st(w.N, n, ld(w.N, n) * moves)


@kernel
def differentiate_speeds(tree, q, v, active, struck, w):
    """Of impacts, where `struck` is 1: rows are the velocities after them. Velocities before them in `before`."""
    nv, o = tree.nv, zero(active)
    for n in range(w.live_rows[0] * nv):
        st(w.f_q, n, ld(w.f_q, n) * (1.0 - struck))
        st(w.f_v, n, ld(w.f_v, n) * (1.0 - struck) + ld(w.J, n) * struck)
    w.before[0] = Motion(Vec3(o, o, o), Vec3(o, o, o))
    for i in range(1, tree.nj):
        velocity = w.before[tree.parent[i]]
        for k in range(tree.iv[i], tree.end[i]):
            w.psi_before[k] = cross_motion(w.before[tree.parent[i]], w.axis[k])
            velocity = velocity + w.axis[k] * ld(v, k)
        w.before[i] = velocity
    for n in range(w.lives[0]):
        c = w.live[n]
        on, pair = ld(active, c) * struck, frames_of(tree, c, w)
        vb = w.acceleration[tree.body_b[c]] + w.before[tree.body_b[c]]
        for side in range(2):
            k = first_of(tree, c, side)
            while k >= 0:
                slopes = rate_slopes(tree, c, w.axis[k], w.psi_ddot[k] + w.psi_before[k], vb, side == 0, pair)
                add_rows(tree, c, k, slopes, on * (1.0 - 2.0 * side), w, w.f_q)
                k = tree.above[k]


@kernel
def fill_dynamics(tree, v, a, data, w, Fx, Fu, turned, pushed):
    """F_x and F_u: velocities below, configurations above."""
    nv, nu, n, o = tree.nv, tree.nact, 2 * tree.nv, zero(data)
    dt = ld(data, 0)
    share = select(less(0.5 + o, ld(data, 2)), o + 1.0, dt)
    for k in range(nv):
        w.slide[k] = (ld(v, k) + ld(a, k) * share) * dt
        row = (nv + k) * n
        for j in range(nv):
            st(Fx, row + j, ld(w.a_q, k * nv + j) * share)
            st(Fx, row + nv + j, ld(w.a_v, k * nv + j) * share)
        st(Fx, row + nv + k, ld(Fx, row + nv + k) + 1.0)
        for m in range(nu):
            st(Fu, (nv + k) * nu + m, ld(w.A, k * nv + tree.motor[m]) * share)
    for i in range(1, tree.nj):
        iv, size = tree.iv[i], tree.end[i] - tree.iv[i]
        if tree.turn_at[i] >= 0:
            A, B = tail(turned, tree.turn_at[i]), tail(pushed, tree.turn_at[i])
            fill_blocks(tree, i, w.slide, dt, A, B)
            for r in range(size):
                push_row(B, r, iv, nv, n, size, Fx)
                push_row(B, r, iv, nv, nu, size, Fu)
                for j in range(size):
                    place = (iv + r) * n + iv + j
                    st(Fx, place, ld(Fx, place) + ld(A, r * size + j))
        else:
            for k in range(iv, tree.end[i]):
                for j in range(n):
                    st(Fx, k * n + j, ld(Fx, (nv + k) * n + j) * dt)
                st(Fx, k * n + k, ld(Fx, k * n + k) + 1.0)
                for m in range(nu):
                    st(Fu, k * nu + m, ld(Fu, (nv + k) * nu + m) * dt)


@kernel
def push_row(B, r, iv, nv, n, size, F):
    """Row r of a joint that turns: that of its block B times those of its velocities."""
    for j in range(n):
        x = zero(F)
        for l in range(size):
            x = x + ld(B, r * size + l) * ld(F, (nv + iv + l) * n + j)
        st(F, (iv + r) * n + j, x)


@kernel
def fill_blocks(tree, i, slide, dt, A, B):
    """The blocks of joint i."""
    kind, iv = tree.kind[i], tree.iv[i]
    if kind == FREE_FLYER:
        m = ld(slide, iv, Motion)
        back, J = back_se3(m), right_jacobian_se3(m)
        store_block(A, 6, 0, 0, back.A)
        store_block(A, 6, 0, 3, back.B)
        store_block(A, 6, 3, 0, back.C)
        store_block(A, 6, 3, 3, back.D)
        store_block(B, 6, 0, 0, J.A * dt)
        store_block(B, 6, 0, 3, J.B * dt)
        store_block(B, 6, 3, 0, J.C * dt)
        store_block(B, 6, 3, 3, J.D * dt)
    elif kind == SPHERICAL:
        x = ld(slide, iv, Vec3)
        store_block(A, 3, 0, 0, transpose(rotation(exp_quaternion(x))))
        store_block(B, 3, 0, 0, right_jacobian(x) * dt)
    else:
        x = ld(slide, iv, Vec3)
        store_block(A, 3, 0, 0, back_plane(x.x, x.y, x.z))
        store_block(B, 3, 0, 0, right_jacobian_plane(x.x, x.y, x.z) * dt)


SLOPES = DERIVATIVES.extended(**EXPANSION.groups).extended(
    nslide={"slide": None},
    nj={"before": Motion},
    nv={"rates": None, "psi_before": Motion},
    nvv={"A": None, "a_q": None, "a_v": None},
    nmv={"T": None, "N": None, "f_q": None, "f_v": None},
    nmm={"G": None},
)

EXPAND = Tables([TREE, CONSTRAINTS, MOVERS, INFLUENCES, TERMS], CONFIGURATIONS, extent, INERTIAS)


@declare(
    EXPAND,
    inputs={"x": "nx", "u": "nact", "a": "nv", "forces": "nm", "data": "ndata"},
    outputs={
        "Fx": "ndx ndx", "Fu": "ndx nact", "Lx": "ndx", "Lu": "nact", "Lxx": "ndx ndx symmetric", "Lxu": "ndx nact",
        "Luu": "nact nact symmetric", "turned": "nturn", "pushed": "nturn",
    },
    work=SLOPES,
    inverts_inertia=True,
    double_only=True,
    sloped=False,
)  # fmt: skip
def _expand_nodes(tree, x, u, a, forces, data, w, Fx, Fu, Lx, Lu, Lxx, Lxu, Luu, turned, pushed):
    n, nu, nall = tree.ndx, tree.nact, tree.nall
    q, v = tail(x, 0), tail(x, tree.nq)
    differentiate_motion(tree, q, v, a, forces, data, w)
    fill_dynamics(tree, v, a, data, w, Fx, Fu, turned, pushed)
    collect_for_terms(tree, q, w)
    weights, references = tail(data, DATA + tree.nc), tail(data, DATA + tree.nc + tree.nterm)
    expand_terms(tree, q, v, u, forces, w.f_q, w.f_v, w.N, ld(data, 1), weights, references, w)
    for i in range(n):
        st(Lx, i, ld(w.gradient, i))
        for j in range(i + 1):
            st_symmetric(Lxx, n, i, j, ld(w.hessian, i * nall + j))
    for m in range(nu):
        st(Lu, m, ld(w.gradient, n + m))
        row = (n + m) * nall
        for j in range(n):
            st(Lxu, j * nu + m, ld(w.hessian, row + j))
        for l in range(m + 1):
            st_symmetric(Luu, nu, m, l, ld(w.hessian, row + n + l))
