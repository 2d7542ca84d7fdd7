"""What terms measure: six numbers b of each, and how they change with (q, v, u).

    residual_r = n_r . b(q, v, f),      db = sum over columns of b_q dq + b_v dv + b_f (f_q dq + f_v dv + f_u du)

Placements and velocities are along the world's axes about the origin of the first body, as in derivatives/sweep.py, whose
`place`, `velocity`, `axis` and `psi_dot` are read here. With A the frame of a term, S_k the motion along degree of
freedom k,

| b of | value | by q_k | by v_k |
|---|---|---|---|
| placement | log6(ref^-1 A) | J_r^-1 A^-1 S_k | |
| translation, rotation | p - ref; log3(ref^T R) | S_k at p; J_r^-1 R^T S_k | |
| velocity, local | A^-1 v | A^-1 psi'_k | A^-1 S_k |
| velocity, aligned | v at p | psi'_k at p + S_k,ang x v_lin | S_k at p |
| centre of mass | h / m - ref | (I_i S_k)_lin / m | |
| momentum | h about the centre | derivatives/centroidal.py | I_i S_k about the centre |
| force, aligned | R f | R f_q + S_k,ang x R f | R f_v |
| distance | n . (p_a - p_b) - radii | n . (S_k at p_a, if k moves a, less S_k at p_b, if b) | |

Reference: R. Budhiraja, Multi-body locomotion (2019), table 4.2 and equation 3.19; J. Carpentier, N. Mansard, Analytical
derivatives of rigid body dynamics algorithms (2018), section III.
"""

from __future__ import annotations

from saltus.collision.closest import along_segments, unit_or
from saltus.constraints.measure import load_rows
from saltus.control.task_rows import first_origin, quaternion
from saltus.derivatives.centroidal import about, about_moving
from saltus.derivatives.constraint_rows import at
from saltus.dynamics.frame import LOCAL, WORLD
from saltus.kernel import Layout, kernel, ld, lift, sqrt, st, zero
from saltus.model.joint_kernels import add_along, axis_seen_from, lift_vec, placed_after
from saltus.ocp.terms import CENTER, CONE, DISTANCE, MOMENTUM, PLACEMENT, ROTATION, TRANSLATION, VELOCITY
from saltus.spatial.algebra import (
    SE3,
    Force,
    Mat3,
    Motion,
    Sym3,
    Vec3,
    act_inv,
    cross,
    cross_force,
    cross_motion,
    dot,
    inverse,
    transpose,
    turn_back,
)  # fmt: skip
from saltus.spatial.inertia import Rigid
from saltus.spatial.lie import log_pose, log_quaternion, right_jacobian_inverse, right_jacobian_inverse_se3

PLACES: dict[str, type | None] = {"place": SE3, "velocity": Motion}
WHOLE: dict[str, type | None] = {"origin": Vec3, "center": Vec3, "mass": None, "total_spin": Force}
VALUES = Layout(nj=PLACES, one=WHOLE)
SLOPES = Layout(nj={**PLACES, "spin": Force}, one=WHOLE, nall={"columns": Motion, "spot": int}, napart={"apart": None})


@kernel
def move_for_terms(tree, q, v, w):
    """To the leaves, over the bodies that terms look at: placements and, where they are asked for, velocities, the centre of
    mass and the momentum about the origin."""
    o = zero(q)
    none, one = Vec3(o, o, o), lift(1.0, o)
    w.origin[0] = first_origin(tree, q)
    w.place[0] = SE3(Mat3(one, o, o, o, one, o, o, o, one), -w.origin[0])
    w.velocity[0] = Motion(none, none)
    total, spin = Rigid(o, none, Sym3(o, o, o, o, o, o)), Force(none, none)
    for n in range(tree.ntb):
        i = tree.term_bodies[n]
        X = placed_after(tree, i, q, w.place[tree.parent[i]])
        w.place[i] = X
        velocity = w.velocity[tree.parent[i]]
        if tree.term_speeds[0]:
            for k in range(tree.iv[i], tree.end[i]):
                velocity = velocity + axis_seen_from(X, tree.axis[k]) * ld(v, k)
        w.velocity[i] = velocity
        if tree.term_masses[0]:
            body = X @ tree.solid[i]
            total = total + body
            if tree.term_spins[0]:
                spin = spin + body @ velocity
    if tree.term_masses[0]:
        keep_whole(total, spin, w)


@kernel
def keep_whole(total, spin, w):
    w.mass[0], w.center[0] = total.m, total.h * (1.0 / total.m)
    w.total_spin[0] = spin


@kernel
def collect_for_terms(tree, q, w):
    """The same once derivatives/sweep.py has been out and back, whose composites are those of all that bodies carry; momenta
    of these in `spin`."""
    o = zero(q)
    none = Vec3(o, o, o)
    w.origin[0] = first_origin(tree, q)
    if tree.term_masses[0]:
        total = Rigid(o, none, Sym3(o, o, o, o, o, o))
        for i in range(tree.nj):
            w.spin[i] = Force(none, none)
        for i in range(tree.nj - 1, 0, -1):
            if tree.parent[i] == 0:
                total = total + w.composite[i]
            if tree.term_spins[0]:
                w.spin[i] = w.spin[i] + (w.place[i] @ tree.solid[i]) @ w.velocity[i]
                w.spin[tree.parent[i]] = w.spin[tree.parent[i]] + w.spin[i]
        keep_whole(total, w.spin[0], w)


@kernel
def goal_of(tree, t, references, cls):
    return ld(references, tree.term_at[t], cls)


@kernel
def placed(tree, t, w):
    """The frame of a term."""
    return w.place[tree.term_body[t]] @ tree.term_place[t]


@kernel
def measure(tree, t, forces, references, w):
    """The six numbers of a term."""
    kind, o = tree.term_kind[t], zero(references)
    none = Vec3(o, o, o)
    if kind == TRANSLATION:
        return Motion(placed(tree, t, w).p - (goal_of(tree, t, references, Vec3) - w.origin[0]), none)
    if kind == PLACEMENT:
        X = placed_from_goal(tree, t, references, w)
        return log_pose(quaternion(X.R), X.p)
    if kind == ROTATION:
        R = transpose(goal_of(tree, t, references, Mat3)) @ placed(tree, t, w).R
        return Motion(none, log_quaternion(quaternion(R)))
    if kind == VELOCITY:
        m = seen_velocity(tree, t, w.velocity[tree.term_body[t]], placed(tree, t, w), w)
        return m - goal_of(tree, t, references, Motion)
    if kind == CENTER:
        return Motion(w.center[0] - (goal_of(tree, t, references, Vec3) - w.origin[0]), none)
    if kind == MOMENTUM:
        h = about(w.center[0], w.total_spin[0])
        return Motion(h.lin, h.ang) - goal_of(tree, t, references, Motion)
    if kind == DISTANCE:
        near = closest(tree, t, w)
        return Motion(Vec3(near[3] - tree.term_radii[t], o, o), none)
    f = held_force(tree, t, forces, w)
    if kind == CONE:
        normal = lift_vec(tree.term_normal[t], o)
        along = dot(normal, f.lin)
        _, size = slide(tree, t, f.lin, normal, along)
        return Motion(Vec3(size - tree.term_friction[t] * along, along, o), none)
    if tree.term_at[t] >= 0:
        f = f - goal_of(tree, t, references, Motion)
    return f


@kernel
def placed_from_goal(tree, t, references, w):
    """The frame of a term, seen from where it should be."""
    goal, X = goal_of(tree, t, references, SE3), placed(tree, t, w)
    return inverse(SE3(goal.R, goal.p - w.origin[0])) @ X


@kernel
def seen_velocity(tree, t, m, X, w):
    """A velocity about the origin of the first body, in the axes and about the point that the term says."""
    axes = tree.term_axes[t]
    if axes == LOCAL:
        return act_inv(X, m)
    if axes == WORLD:
        return Motion(at(m, -w.origin[0]), m.ang)
    return Motion(at(m, X.p), m.ang)


@kernel
def held_force(tree, t, forces, w):
    """The force of a contact on the body that it holds."""
    c = tree.term_contact[t]
    return seen_force(tree, t, load_rows(tree, c, forces, zero(forces)), w)


@kernel
def seen_force(tree, t, m, w):
    if tree.term_axes[t] == LOCAL:
        return m
    R = contact_turn(tree, t, w)
    return Motion(R @ m.lin, R @ m.ang)


@kernel
def contact_turn(tree, t, w):
    return w.place[tree.term_body[t]].R @ tree.place_a[tree.term_contact[t]].R


@kernel
def slide(tree, t, f, normal, along):
    """The part of a force across the normal, and its size, rounded at zero."""
    across = f - normal * along
    return across, sqrt(dot(across, across) + tree.term_smooth[t] * tree.term_smooth[t])


@kernel
def closest(tree, t, w):
    """Of the middle lines of two capsules: the closest points, the direction from the second to the first, and how far."""
    A, B = placed(tree, t, w), w.place[tree.term_body_b[t]] @ tree.term_place_b[t]
    u = Vec3(A.R.xz, A.R.yz, A.R.zz) * tree.term_half[t]
    v = Vec3(B.R.xz, B.R.yz, B.R.zz) * tree.term_half_b[t]
    s, r = along_segments(A.p - u, u * 2.0, B.p - v, v * 2.0)
    p, x = A.p + u * (2.0 * s - 1.0), B.p + v * (2.0 * r - 1.0)
    o = zero(w.mass)
    normal, far = unit_or(p - x, Vec3(o, o, o + 1.0))
    return p, x, normal, far


# ---------------------------------------------------------------------------------------------------- how they change


@kernel
def fill_columns(tree, t, forces, references, f_q, f_v, f_u, w):
    """`columns` and `spot`: of each column of a term, in turn, how its six numbers change, and with what; their count."""
    kind, first = tree.term_kind[t], tree.term_first_column[t]
    count = tree.term_end_column[t] - first
    for n in range(count):
        w.spot[n] = tree.column[first + n]
    if kind == PLACEMENT or kind == TRANSLATION or kind == ROTATION:
        fill_frame(tree, t, count, references, w)
    elif kind == VELOCITY:
        fill_velocity(tree, t, count, w)
    elif kind == CENTER or kind == MOMENTUM:
        fill_whole(tree, kind, w)
    elif kind == DISTANCE:
        fill_distance(tree, t, count, w)
    else:
        fill_force(tree, t, forces, f_q, f_v, f_u, w)
    return count


@kernel
def fill_frame(tree, t, count, references, w):
    kind, X, o = tree.term_kind[t], placed(tree, t, w), zero(w.mass)
    none = Vec3(o, o, o)
    if kind == TRANSLATION:
        for n in range(count):
            w.columns[n] = Motion(at(w.axis[w.spot[n]], X.p), none)
    elif kind == ROTATION:
        R = transpose(goal_of(tree, t, references, Mat3)) @ X.R
        J = right_jacobian_inverse(log_quaternion(quaternion(R)))
        for n in range(count):
            w.columns[n] = Motion(none, J @ turn_back(X.R, w.axis[w.spot[n]].ang))
    else:
        Y = placed_from_goal(tree, t, references, w)
        J = right_jacobian_inverse_se3(log_pose(quaternion(Y.R), Y.p))
        for n in range(count):
            s = act_inv(X, w.axis[w.spot[n]])
            w.columns[n] = Motion(J.A @ s.lin + J.B @ s.ang, J.D @ s.ang)


@kernel
def fill_velocity(tree, t, count, w):
    X, velocity, half = placed(tree, t, w), w.velocity[tree.term_body[t]], count // 2
    for n in range(half):
        k = w.spot[n]
        axis, along_q = w.axis[k], w.psi_dot[k]
        if tree.term_axes[t] == WORLD:
            along_q = along_q + cross_motion(axis, velocity)
        seen = seen_velocity(tree, t, along_q, X, w)
        if tree.term_axes[t] != LOCAL and tree.term_axes[t] != WORLD:
            turned = Motion(cross(axis.ang, at(velocity, X.p)), cross(axis.ang, velocity.ang))
            seen = seen + turned
        w.columns[n] = seen
        w.columns[half + n] = seen_velocity(tree, t, axis, X, w)


@kernel
def fill_whole(tree, kind, w):
    """Of the centre of mass by q, or of the momentum by q and v."""
    center, per_mass, nv = w.center[0], 1.0 / w.mass[0], tree.nv
    for k in range(nv):
        i, axis = tree.body[k], w.axis[k]
        h = w.composite[i] @ axis
        shift = h.lin * per_mass
        if kind == CENTER:
            w.columns[k] = Motion(shift, shift * 0.0)
        else:
            along_q = cross_force(axis, w.spin[i]) + w.composite[i] @ w.psi_dot[k]
            by_q, by_v = about_moving(center, along_q, shift, w.total_spin[0]), about(center, h)
            w.columns[k], w.columns[nv + k] = Motion(by_q.lin, by_q.ang), Motion(by_v.lin, by_v.ang)


@kernel
def fill_distance(tree, t, count, w):
    p, x, normal, _ = closest(tree, t, w)
    o = zero(w.mass)
    none = Vec3(o, o, o)
    for k in range(tree.nv):
        st(w.apart, k, o)
    for side in (0, 1):
        body = tree.term_body[t] if side == 0 else tree.term_body_b[t]
        k = tree.end[body] - 1 if body > 0 else -1
        while k >= 0:
            if side == 0:
                st(w.apart, k, dot(normal, at(w.axis[k], p)))
            else:
                st(w.apart, k, ld(w.apart, k) - dot(normal, at(w.axis[k], x)))
            k = tree.above[k]
    for n in range(count):
        w.columns[n] = Motion(Vec3(ld(w.apart, w.spot[n]), o, o), none)


@kernel
def fill_force(tree, t, forces, f_q, f_v, f_u, w):
    c, nv, o = tree.term_contact[t], tree.nv, zero(w.mass)
    for k in range(nv):
        w.columns[k] = seen_force(tree, t, load_slopes(tree, c, f_q, k, o, w), w)
        w.columns[nv + k] = seen_force(tree, t, load_slopes(tree, c, f_v, k, o, w), w)
    for m in range(tree.nact):
        w.columns[2 * nv + m] = seen_force(tree, t, load_slopes(tree, c, f_u, tree.motor[m], o, w), w)
    f = held_force(tree, t, forces, w)
    if tree.term_axes[t] != LOCAL:  # its axes stand still while it turns
        body = tree.term_body[t]
        k = tree.end[body] - 1 if body > 0 else -1
        while k >= 0:
            turn = w.axis[k].ang
            w.columns[k] = w.columns[k] + Motion(cross(turn, f.lin), cross(turn, f.ang))
            k = tree.above[k]
    if tree.term_kind[t] == CONE:
        normal = lift_vec(tree.term_normal[t], o)
        across, size = slide(tree, t, f.lin, normal, dot(normal, f.lin))
        tip = across * (1.0 / size) - normal * tree.term_friction[t]
        for n in range(tree.nall):
            change = w.columns[n].lin
            w.columns[n] = Motion(Vec3(dot(tip, change), dot(normal, change), o), Vec3(o, o, o))


@kernel
def load_slopes(tree, c, matrix, k, o, w):
    """The six rows of a contact in column k of a matrix, which has those of live ones (derivatives/constraint_rows.py)."""
    rows = Motion(Vec3(o, o, o), Vec3(o, o, o))
    for r in range(tree.first_row[c], tree.end_row[c]):
        if w.row_place[r] >= 0:
            rows = add_along(rows, tree.row_axis[r], ld(matrix, w.row_place[r] * tree.nv + k))
    return rows
