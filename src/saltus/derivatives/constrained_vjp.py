"""Vector-Jacobian products of constrained dynamics and of impacts: one solution with the factors that there are, two sweeps.

    L = w_a . a + w_f . f,      M a - J^T f = tau - b,      J a = goal

The matrix of the system is symmetric but for signs. So with

    z_f = G (J M^-1 w_a + w_f),      z_a = M^-1 (w_a - J^T z_f),      G = (J M^-1 J^T)^-1 as the proximal method has it,

dL/dtau = z_a, dL/dtarget = z_f, and gradients with respect to q and v are those of

    u . (rnea(q, v, a) - J^T f) + y . rows(q, v, a),      u = -z_a,  y = -z_f,  a and f held,

which pull_back.py finds once it is told what the constraints feel of their bodies: each pulls at body a with the force Phi
of f, at body b with its opposite, and likewise with Psi of y where accelerations are compared. With R, the six rows,

    u*_a = -Phi,   a*_a = Psi,   v*_a = kd Psi + v_b x* Psi,   x_a = (u_a - u_b) x* Phi - R x* Psi,

for Phi and Psi turn along with A; points have the same of their own velocities and classical accelerations. Impacts are the
same with jumps for accelerations, in no time: no velocity turns anything, and 1 + e, of the restitution e, stands for kd.

Redundant rows share forces so that these are the least, by mu: n . f = 0 for all n with J^T n = 0. As n turns with q,

    n . df = -dn . f,      all in all      df += Y dJ s,      Y = lim (P mu)^k P,   s = M^-1 J^T h,   (J M^-1 J^T) h = mu f,

where Y w_f, zero if no rows are redundant, is what the proximal method cannot answer of the weights (`loose`, s is `slide`).

O(n d^2 + m d^2 + m^2 d + m^3) as prox_ltl.py, where the system is solved; the gradients themselves O(n + m d).

References: pull_back.py; prox_ltl.py; and constraint_rows.py for the matrices that are not formed here.
"""

from __future__ import annotations

from saltus.constraints.dense import factor_block
from saltus.constraints.measure import load_rows, separation
from saltus.constraints.prox_ltl import ROUNDING, SETTLED, accelerate, converge, free, project
from saltus.constraints.system import point_acceleration, point_rows, take_rows
from saltus.constraints.tables import MOVERS, constrained
from saltus.derivatives.constraint_rows import REDUNDANT, at, pull
from saltus.derivatives.pull_back import FELT, lead_bodies, pull_back
from saltus.derivatives.sweep import AXES, BODIES, sweep_out
from saltus.dynamics.crba import inertia_matrix
from saltus.dynamics.ltl import factor
from saltus.kernel import Layout, kernel, ld, less, lift, maximum, minimum, select, st, zero
from saltus.spatial.algebra import (
    Force,
    Motion,
    Sym3,
    Vec3,
    act_force,
    cross,
    cross_force,
    cross_motion,
    dot,
    inverse,
    power,
    turn_back,
)  # fmt: skip
from saltus.spatial.lie import right_jacobian_inverse_se3

WORK = Layout(
    nj=BODIES | FELT | {"to_place": Force},
    nv=AXES | {"rest": None, "inverse": None, "scaled": None, "slide": None},
    nvv={"M": None},
    nmv={"J": None},
    nmm={"delassus": None},
    nm={"goal": None, "push": None, "scale": None, "step": None, "miss": None, "loose": None},
)


@kernel
def answer(tree, forces, active, rows, a_weights, f_weights, w, z, y):
    """z = z_a and y = -z_f: the constrained system solved for the weights; and for redundant rows `loose` and `slide`."""
    nv, nm, o = tree.nv, tree.nm, zero(z)
    point_rows(tree, active, w, w.J)
    take_rows(tree, active, f_weights, rows, w.J, w.goal)
    for k in range(nv):
        st(w.rest, k, ld(a_weights, k))
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            st(w.goal, r, -(ld(f_weights, r) * ld(active, c)))
    factor(tree.above, nv, w.M, w.inverse)
    project(tree, w)
    free(tree, w)
    noise, least = lift(SETTLED, o), lift(1.0, o)
    for r in range(nm):
        diagonal = ld(w.delassus, r * nm + r)
        st(w.step, r, diagonal)
        noise = maximum(noise, diagonal * (ROUNDING / tree.mu[r]))
    factor_block(w.delassus, w.scale, nm, 0, nm)
    for r in range(nm):
        least = minimum(least, 1.0 / (ld(w.scale, r) * ld(w.step, r)))
    still = select(less(least, REDUNDANT), noise, lift(SETTLED, o))
    converge(tree, still, w)
    accelerate(tree, w, z, y)
    for k in range(nv):
        st(w.rest, k, o)
    for r in range(nm):
        st(w.loose, r, -(ld(w.miss, r) / tree.mu[r]))
        st(w.goal, r, tree.mu[r] * ld(forces, r))
    converge(tree, still, w)
    accelerate(tree, w, w.slide, w.push)


@kernel
def feel(w, i, moving, place, velocity, acceleration, lead):
    """Adds what L feels of body i, in the form that `pull_back` takes. Bodies that do not move have no Coriolis forces."""
    v, a, u = w.velocity[i], w.acceleration[i], w.lead[i]
    turned = cross_force(v, velocity) + cross_force(a, acceleration) + cross_force(u, lead)
    w.to_place[i] = w.to_place[i] + place + turned
    w.to_velocity[i] = w.to_velocity[i] + velocity
    if moving:
        w.to_velocity[i] = w.to_velocity[i] + cross_force(v, acceleration)
    w.to_acceleration[i] = w.to_acceleration[i] + acceleration
    w.to_lead[i] = w.to_lead[i] + lead


@kernel
def feel_frames(tree, c, kd, moving, phi, psi, pulling, w):
    """Of a constraint between frames; `pulling` is what gains on placements add, on body a."""
    a, b = tree.body_a[c], tree.body_b[c]
    va, vb, none = w.velocity[a], w.velocity[b], phi * 0.0
    rows = w.acceleration[a] - w.acceleration[b] + (va - vb) * kd
    on_a, on_b = psi * kd, psi * -kd
    if moving:
        rows = rows + cross_motion(va, vb)
        on_a, on_b = on_a + cross_force(vb, psi), on_b - cross_force(va, psi)
    turned = cross_force(w.lead[a] - w.lead[b], phi) - cross_force(rows, psi)
    feel(w, a, moving, turned + pulling, on_a, psi, phi * -1.0)
    feel(w, b, moving, none - pulling, on_b, psi * -1.0, phi)


@kernel
def point_force(f, p):
    return Force(f, cross(p, f))


@kernel
def feel_end(w, i, p, phi, psi, kp, kd, moving, couple):
    """Of one end of a point constraint, at p, by its forces; and a couple."""
    v, a = w.velocity[i], w.acceleration[i]
    swing = cross(psi, v.ang)
    drawn = cross(psi, a.ang) - cross(phi, w.lead[i].ang) + swing * kd + psi * kp
    velocity = point_force(psi * kd, p)
    if moving:
        drawn = drawn + cross(swing, v.ang)
        velocity = velocity + point_force(swing, p) + Force(psi * 0.0, cross(at(v, p), psi))
    place = point_force(drawn, p) + Force(psi * 0.0, couple)
    feel(w, i, moving, place, velocity, point_force(psi, p), point_force(phi * -1.0, p))


@kernel
def feel_points(tree, c, kp, kd, moving, pa, pb, phi, psi, w):
    """Of a constraint between points, its forces phi and psi along the axes of A, which turn them."""
    a, b = tree.body_a[c], tree.body_b[c]
    va, vb = w.velocity[a], w.velocity[b]
    rows = (at(va, pa) - at(vb, pb)) * kd + (pa - pb) * kp
    if moving:
        rows = rows + point_acceleration(va, w.acceleration[a], pa) - point_acceleration(vb, w.acceleration[b], pb)
    else:
        rows = rows + at(w.acceleration[a], pa) - at(w.acceleration[b], pb)
    couple = cross(psi, rows) - cross(phi, at(w.lead[a], pa) - at(w.lead[b], pb))
    feel_end(w, a, pa, phi, psi, kp, kd, moving, couple)
    feel_end(w, b, pb, -phi, -psi, kp, kd, moving, couple * 0.0)


@kernel
def pulled_place(tree, c, A, B, y, on):
    """What gains on placements feel of body a: rows change by kp J_r^-1(-gap), seen from A."""
    J, o = right_jacobian_inverse_se3(-separation(tree, c, inverse(A) @ B)), zero(y)
    m = load_rows(tree, c, y, o) * (on * tree.kp[c])
    return act_force(A, Force(turn_back(J.A, m.lin), turn_back(J.B, m.lin) + turn_back(J.D, m.ang)))


@kernel
def feel_constraints(tree, forces, y, active, restitution, w):
    """What all constraints feel of their bodies, by their forces and by y. Restitutions make it an impact; else None."""
    o = zero(y)
    none = Force(Vec3(o, o, o), Vec3(o, o, o))
    for i in range(tree.nj):
        w.to_place[i] = none
    w.to_velocity[0], w.to_acceleration[0], w.to_lead[0] = none, none, none
    for c in range(tree.nc):
        if tree.given[c] >= 0:
            continue
        on, moving = ld(active, c), restitution is None
        kp, kd = lift(tree.kp[c], o), lift(tree.kd[c], o)
        if restitution is not None:
            kp, kd = o, 1.0 + ld(restitution, c)
        A, B = w.place[tree.body_a[c]] @ tree.place_a[c], w.place[tree.body_b[c]] @ tree.place_b[c]
        phi, psi = pull(tree, c, A.R, A.p, forces, on), pull(tree, c, A.R, A.p, y, on)
        if tree.point[c]:
            feel_points(tree, c, kp, kd, moving, A.p, B.p, phi.lin, psi.lin, w)
        else:
            pulling = none
            if tree.pulled[0] and moving:
                pulling = pulled_place(tree, c, A, B, y, on)
            feel_frames(tree, c, kd, moving, phi, psi, pulling, w)


@kernel
def slide_along(tree, c, i, p, pb, psi, sign, w, dq):
    """To dq: how the rows of constraint c change along psi, its bodies moving at `lead`, with what carries body i (at p)."""
    slip = w.lead[tree.body_b[c]]
    k = tree.end[i] - 1 if i > 0 else -1
    while k >= 0:
        axis = w.axis[k]
        carried = cross_motion(w.lead[tree.parent[tree.body[k]]], axis)
        if tree.point[c]:
            slope = dot(psi.lin, at(carried, p) + cross(axis.ang, at(slip, pb)))
        else:
            slope = power(carried + cross_motion(axis, slip), psi)
        st(dq, k, ld(dq, k) + slope * sign)
        k = tree.above[k]


@kernel
def add_slides(tree, active, w, dq):
    """To dq, at the end: the directions in which rows are redundant turn with q, and the least forces keep clear of them."""
    for i in range(1, tree.nj):
        lead = w.lead[tree.parent[i]]
        for k in range(tree.iv[i], tree.end[i]):
            lead = lead + w.axis[k] * ld(w.slide, k)
        w.lead[i] = lead
    for c in range(tree.nc):
        if tree.given[c] < 0:
            a, b = tree.body_a[c], tree.body_b[c]
            A, B = w.place[a] @ tree.place_a[c], w.place[b] @ tree.place_b[c]
            psi = pull(tree, c, A.R, A.p, w.loose, ld(active, c))
            slide_along(tree, c, a, A.p, B.p, psi, 1.0, w, dq)
            slide_along(tree, c, b, B.p, B.p, psi, -1.0, w, dq)


@kernel
def turn_over(tree, active, y, dtarget):
    """z_f from y, of constraints that are active."""
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            st(dtarget, r, -(ld(y, r) * ld(active, c)))


@constrained(
    MOVERS,
    inputs={
        "q": "nq", "v": "nv", "a": "nv", "forces": "nm", "active": "nc", "rows": "nu nv",
        "a_weights": "nv", "f_weights": "nm", "external": "nj 6 optional",
    },
    outputs={"dq": "nv", "dv": "nv", "dtau": "nv", "dtarget": "nm"},
    work=WORK,
    inverts_inertia=True,
    sloped=False,
)  # fmt: skip
def _constrained_vjp(tree, q, v, a, forces, active, rows, a_weights, f_weights, external, w, dq, dv, dtau, dtarget):
    inertia_matrix(tree, q, w, w.M)
    sweep_out(tree, q, v, a, external, w)
    answer(tree, forces, active, rows, a_weights, f_weights, w, dtau, dtarget)
    lead_bodies(tree, dtau, -1.0, w)
    feel_constraints(tree, forces, dtarget, active, None, w)
    pull_back(tree, w, w.to_place, dq, dv)
    if tree.most_iterations[0] > 1:  # springs are never redundant
        add_slides(tree, active, w, dq)
    turn_over(tree, active, dtarget, dtarget)


@kernel
def sweep_jump(tree, q, v, after, w):
    """To the leaves, as `sweep_out`: velocities, and instead of accelerations their jumps, which nothing carries along."""
    sweep_out(tree, q, v, None, None, w)
    o = zero(q)
    none = Vec3(o, o, o)
    still = Motion(none, none)
    w.acceleration[0] = still
    for i in range(1, tree.nj):
        jump = w.acceleration[tree.parent[i]]
        for k in range(tree.iv[i], tree.end[i]):
            w.psi_ddot[k], w.upsilon_dot[k] = cross_motion(jump, w.axis[k]), still
        for k in range(tree.iv[i], tree.end[i]):
            jump = jump + w.axis[k] * (ld(after, k) - ld(v, k))
        w.acceleration[i], w.force[i] = jump, w.composite[i] @ jump
        w.momentum[i], w.rate[i] = Force(none, none), Sym3(o, o, o, o, o, o)


@kernel
def add_given_speeds(tree, y, active, restitution, rows, dv):
    """Rows of users compare velocities, too, in an impact."""
    for c in range(tree.nc):
        if tree.given[c] >= 0:
            share = (1.0 + ld(restitution, c)) * ld(active, c)
            for r in range(tree.first_row[c], tree.end_row[c]):
                first = (tree.given[c] + r - tree.first_row[c]) * tree.nv
                for n in range(tree.first_mover[c], tree.end_mover[c]):
                    k = tree.mover[n]
                    st(dv, k, ld(dv, k) + ld(rows, first + k) * (ld(y, r) * share))


@constrained(
    MOVERS,
    inputs={
        "q": "nq", "v": "nv", "after": "nv", "impulses": "nm", "active": "nc", "restitution": "nc", "rows": "nu nv",
        "v_weights": "nv", "f_weights": "nm",
    },
    outputs={"dq": "nv", "dv": "nv"},
    work=WORK.extended(nv={"z": None}, nm={"y": None}),
    inverts_inertia=True,
    sloped=False,
)  # fmt: skip
def _impact_vjp(tree, q, v, after, impulses, active, restitution, rows, v_weights, f_weights, w, dq, dv):
    inertia_matrix(tree, q, w, w.M)
    sweep_jump(tree, q, v, after, w)
    answer(tree, impulses, active, rows, v_weights, f_weights, w, w.z, w.y)
    lead_bodies(tree, w.z, -1.0, w)
    feel_constraints(tree, impulses, w.y, active, restitution, w)
    pull_back(tree, w, w.to_place, dq, dv)
    if tree.most_iterations[0] > 1:
        add_slides(tree, active, w, dq)
    for k in range(tree.nv):
        st(dv, k, ld(dv, k) + ld(v_weights, k))
    add_given_speeds(tree, w.y, active, restitution, rows, dv)
