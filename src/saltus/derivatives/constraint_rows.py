"""How what constraints ask for changes with configurations and velocities, accelerations and forces held.

A row of a constraint compares the motions of frame A, on body a, and of frame B, on body b, along the axes of A. Along
degree of freedom k, which carries one of them (psi', psi'', y': sweep.py), six rows change by

    d acc/dq_k = psi'' - (v_a + v_b) x psi' + S x a_b - v_a x (S x v_b)        d acc/dv_k = y' - (v_a + v_b) x S
    d rate/dq_k = psi' + S x v_b                                               d rate/dv_k = S

if it carries a, and by the opposite if it carries b. Points have velocities and classical accelerations of their own
origins instead; `point_slopes` has theirs. Baumgarte's gains add kd rate - kp gap to a row.

Forces turn with A, so that one on body b turns with bodies that b does not: `turn_forces` adds what sweep.py cannot know.

Constraints that hold in no lane cost nothing: rows of matrices are those of `live` ones, one after the other.

| code | what | group |
|---|---|---|
| `live`, `lives` | the constraints that are active in some lane, and how many | nc, one |
| `live_row`, `live_rows` | their rows, and how many | nm, one |
| `row_place` | of each row, which of these it is; -1 if it is none | nm |
"""

from __future__ import annotations

from typing import NamedTuple

from saltus.constraints.measure import separation
from saltus.constraints.system import direction, fill_row, point_acceleration, take_row, unit_force
from saltus.kernel import Layout, fabs, kernel, ld, less, some, st, zero
from saltus.model.joint_kernels import component
from saltus.spatial.algebra import (
    SE3,
    Force,
    Motion,
    Vec3,
    act_inv,
    cross,
    cross_force,
    cross_motion,
    inverse,
    power,
    turn_back,
)  # fmt: skip
from saltus.spatial.lie import right_jacobian_inverse_se3


class Pair(NamedTuple):
    """The two frames of a constraint in the world, and how they move; accelerations are without gravity."""

    A: SE3
    B: SE3
    va: Motion
    vb: Motion
    aa: Motion
    ab: Motion
    X: SE3  # B seen from A


LIVE = Layout(
    nc={"live": int}, nm={"live_row": int, "row_place": int}, one={"lives": int, "live_rows": int}
)  # fmt: skip

REDUNDANT = 1e-5
"""Rows count as redundant if elimination leaves less than this of a row's diagonal entry."""


@kernel
def find_live(tree, active, w):
    """What holds in some lane; all that there is if `active` is None."""
    lives, rows = 0, 0
    for c in range(tree.nc):
        holds = True
        if active is not None:
            holds = some(less(0.0, fabs(ld(active, c))))
        if holds:
            w.live[lives] = c
            lives += 1
        for r in range(tree.first_row[c], tree.end_row[c]):
            if holds:
                w.live_row[rows], w.row_place[r] = r, rows
                rows += 1
            else:
                w.row_place[r] = -1
    w.lives[0], w.live_rows[0] = lives, rows


@kernel
def spread_matrix(tree, w, matrix, columns):
    """Rows of live constraints, of so many numbers each, to their places among all rows; those of others are zero."""
    if w.live_rows[0] < tree.nm:
        for r in range(tree.nm - 1, -1, -1):
            p = w.row_place[r]
            for k in range(columns):
                if p < 0:
                    st(matrix, r * columns + k, 0.0)
                else:
                    st(matrix, r * columns + k, ld(matrix, p * columns + k))


@kernel
def spread_columns(tree, w, matrix, rows):
    """The same for columns."""
    nm, m = tree.nm, w.live_rows[0]
    if m < nm:
        for k in range(rows - 1, -1, -1):
            for r in range(nm - 1, -1, -1):
                p = w.row_place[r]
                if p < 0:
                    st(matrix, k * nm + r, 0.0)
                else:
                    st(matrix, k * nm + r, ld(matrix, k * m + p))


@kernel
def rising(tree, w, i):
    """The acceleration of body i, without gravity."""
    return w.acceleration[i] - w.acceleration[0]


@kernel
def frames_of(tree, c, w):
    a, b = tree.body_a[c], tree.body_b[c]
    A, B = w.place[a] @ tree.place_a[c], w.place[b] @ tree.place_b[c]
    return Pair(A, B, w.velocity[a], w.velocity[b], rising(tree, w, a), rising(tree, w, b), inverse(A) @ B)


@kernel
def at(m, p):
    """The linear part of a motion, at a point."""
    return m.lin + cross(m.ang, p)


@kernel
def point_slopes(axis, psi_dot, psi_ddot, upsilon_dot, v, p):
    """How the classical acceleration at p changes with q (but for the turn of it all) and v."""
    speed = at(v, p)
    q = at(psi_ddot - cross_motion(v, psi_dot), p) + cross(psi_dot.ang, speed) + cross(v.ang, at(psi_dot, p))
    return q, at(upsilon_dot - cross_motion(v, axis), p) + cross(axis.ang, speed) + cross(v.ang, at(axis, p))


@kernel
def rate_slopes(tree, c, axis, psi, vb, on_a, pair):
    """The six rows of the velocity of A relative to B, by q_k: psi is the parent's velocity x axis, vb that of body b."""
    if tree.point[c]:
        moved = at(psi, pair.A.p if on_a else pair.B.p) + cross(axis.ang, at(vb, pair.B.p))
        return Motion(turn_back(pair.A.R, moved), moved * 0.0)
    return act_inv(pair.A, psi + cross_motion(axis, vb))


@kernel
def row_slopes(tree, c, k, on_a, pair, w):
    """The six rows of constraint c, by q_k and by v_k, gains included, if k carries body a; or the opposite, if body b."""
    axis, psi_dot, upsilon_dot = w.axis[k], w.psi_dot[k], w.upsilon_dot[k]
    psi_ddot = w.psi_ddot[k] - cross_motion(w.acceleration[0], axis)
    A, va, vb, kd = pair.A, pair.va, pair.vb, tree.kd[c]
    s = act_inv(A, axis)
    if tree.point[c]:
        v, p = (va, A.p) if on_a else (vb, pair.B.p)
        q, slope_v = point_slopes(axis, psi_dot, psi_ddot, upsilon_dot, v, p)
        q = q + cross(axis.ang, point_acceleration(vb, pair.ab, pair.B.p))
        none = q * 0.0
        rows_q = Motion(turn_back(A.R, q), none)
        rows_v = Motion(turn_back(A.R, slope_v + at(axis, p) * kd), none)
        if tree.pulled[0]:
            rows_q = Motion(rows_q.lin + at(s, pair.X.p) * tree.kp[c], none)
    else:
        both, turn = va + vb, cross_motion(axis, vb)
        q = psi_ddot - cross_motion(both, psi_dot) + cross_motion(axis, pair.ab) - cross_motion(va, turn)
        rows_q = act_inv(A, q)
        rows_v = act_inv(A, upsilon_dot - cross_motion(both, axis)) + s * kd
        if tree.pulled[0]:
            J = right_jacobian_inverse_se3(-separation(tree, c, pair.X))
            rows_q = rows_q + Motion(J.A @ s.lin + J.B @ s.ang, J.D @ s.ang) * tree.kp[c]
    return rows_q + rate_slopes(tree, c, axis, psi_dot, vb, on_a, pair) * kd, rows_v


@kernel
def pull(tree, c, R, p, forces, on):
    """The force of constraint c on body a (p: the origin of A) or, but for its sign, on body b (of B, for points)."""
    o = zero(forces)
    total = Force(Vec3(o, o, o), Vec3(o, o, o))
    for r in range(tree.first_row[c], tree.end_row[c]):
        axis = tree.row_axis[r]
        total = total + unit_force(direction(R, axis), p, axis) * (ld(forces, r) * on)
    return total


@kernel
def held_at(tree, c, pair):
    """Where the force on body b acts."""
    return pair.B.p if tree.point[c] else pair.A.p


@kernel
def load_bodies(tree, c, pair, forces, on, w, J):
    """Rows of J; and the forces of constraint c off those of its bodies."""
    a, b, p = tree.body_a[c], tree.body_b[c], held_at(tree, c, pair)
    w.force[a] = w.force[a] - pull(tree, c, pair.A.R, pair.A.p, forces, on)
    w.force[b] = w.force[b] + pull(tree, c, pair.A.R, p, forces, on)
    for r in range(tree.first_row[c], tree.end_row[c]):
        axis = tree.row_axis[r]
        d = direction(pair.A.R, axis)
        place = w.row_place[r]
        fill_row(tree, place, a, b, unit_force(d, pair.A.p, axis) * on, unit_force(d, p, axis) * on, w, J)


@kernel
def add_rows(tree, c, k, rows, scale, w, matrix):
    """To column k of a matrix, the rows of constraint c."""
    for r in range(tree.first_row[c], tree.end_row[c]):
        place = w.row_place[r] * tree.nv + k
        st(matrix, place, ld(matrix, place) + component(rows, tree.row_axis[r]) * scale)


@kernel
def first_of(tree, c, side):
    """The last degree of freedom that carries body a (side 0) or b (1) of a constraint, or -1."""
    body = tree.body_a[c] if side == 0 else tree.body_b[c]
    return tree.end[body] - 1 if body > 0 else -1


@kernel
def differentiate_rows(tree, forces, active, rows, w, J, dq, dv):
    """J, and the derivatives of all rows (dq, dv: zero before); takes the forces of constraints off those of bodies.
    `rows`: those that users give."""
    for n in range(w.lives[0]):
        c = w.live[n]
        on = ld(active, c)
        if tree.given[c] >= 0:
            for r in range(tree.first_row[c], tree.end_row[c]):
                take_row(tree, c, r, w.row_place[r], rows, on, J)
            continue
        pair = frames_of(tree, c, w)
        load_bodies(tree, c, pair, forces, on, w, J)
        for side in range(2):
            k, scale = first_of(tree, c, side), on * (1.0 - 2.0 * side)
            while k >= 0:
                rows_q, rows_v = row_slopes(tree, c, k, side == 0, pair, w)
                add_rows(tree, c, k, rows_q, scale, w, dq)
                add_rows(tree, c, k, rows_v, scale, w, dv)
                k = tree.above[k]


@kernel
def turned_force(tree, c, axis, force, p):
    """How a force on body b changes as A turns about an axis: it stays at its point, if it has one."""
    if tree.point[c]:
        lin = cross(axis.ang, force.lin)
        return Force(lin, cross(p, lin))
    return cross_force(axis, force)


@kernel
def turn_forces(tree, forces, active, w, dq):
    """To dtau/dq: the force on body b turns with what carries A, not with what carries b."""
    nv = tree.nv
    for n in range(w.lives[0]):
        c = w.live[n]
        if tree.given[c] >= 0 or tree.body_b[c] == 0:
            continue
        pair = frames_of(tree, c, w)
        p = held_at(tree, c, pair)
        force = pull(tree, c, pair.A.R, p, forces, ld(active, c))
        l = first_of(tree, c, 1)
        while l >= 0:
            for side in range(2):
                k = first_of(tree, c, side)
                while k >= 0:
                    turned = power(w.axis[l], turned_force(tree, c, w.axis[k], force, p)) * (1.0 - 2.0 * side)
                    st(dq, l * nv + k, ld(dq, l * nv + k) + turned)
                    k = tree.above[k]
            l = tree.above[l]


@kernel
def measure_rows(tree, w, gap, rate):
    """What Baumgarte's gains multiply: how far B is from A, and how fast A moves away; zero for rows that users give."""
    for c in range(tree.nc):
        pair = frames_of(tree, c, w)
        apart, leaving = separation(tree, c, pair.X), act_inv(pair.A, pair.va - pair.vb)
        if tree.point[c]:
            leaving = Motion(turn_back(pair.A.R, at(pair.va, pair.A.p) - at(pair.vb, pair.B.p)), leaving.ang)
        scale = 1.0 if tree.given[c] < 0 else 0.0
        for r in range(tree.first_row[c], tree.end_row[c]):
            st(gap, r, component(apart, tree.row_axis[r]) * scale)
            st(rate, r, component(leaving, tree.row_axis[r]) * scale)
