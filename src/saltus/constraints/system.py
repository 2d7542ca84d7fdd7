"""The constrained system, assembled: inertia matrix, forces without constraints, Jacobian and goal of the constraints.

    M a = rest + J^T forces,      J a = goal

Everything is expressed along the world's axes about the origin of the first body (as in crba.py). An entry of J is the
power of a row's unit force along a degree of freedom; it acts on body a at frame A, its opposite on body b. Rows that users
give (non-holonomic constraints, gears) are taken as they are.

| paper | code | what |
|---|---|---|
| M, tau - b | `M`, `rest` | upper triangle of the inertia matrix; forces that are left for accelerations |
| J_fc | `J` | (nm, nv), zero but on the way from the root to bodies a and b |
| | `far`, `lost` | what distance adds to inertias; how many times larger it is than what accelerations feel |
| a_c^* - gamma_fc | `goal` | (nm,) with Baumgarte's feedback |

Reference: J. Carpentier, R. Budhiraja, N. Mansard, Proximal and sparse resolution of constrained dynamic equations (2021),
equations 1 to 6.
"""

from __future__ import annotations

from saltus.constraints.measure import separation
from saltus.constraints.tables import MOVERS, constrained
from saltus.dynamics.crba import collect
from saltus.dynamics.ltl import factor
from saltus.kernel import Layout, fabs, kernel, ld, lift, st, zero
from saltus.model.joint_kernels import axis_seen_from, component, joint_placement, placed_after
from saltus.spatial.algebra import (
    SE3,
    Force,
    Mat3,
    Motion,
    Sym3,
    Vec2,
    Vec3,
    cross,
    cross_motion,
    dot,
    inverse,
    power,
)  # fmt: skip
from saltus.spatial.inertia import Rigid, force_of

BODIES: dict[str, type | None] = {"place": SE3, "composite": Rigid, "velocity": Motion, "drift": Motion, "force": Force}
AXES: dict[str, type | None] = {"axis": Motion}


@kernel
def move_bodies(tree, q, v, w):
    """To the leaves: placements, axes, inertias, velocities, accelerations at zero joint accelerations, forces they need."""
    move_accelerated(tree, q, v, None, w)


@kernel
def move_accelerated(tree, q, v, a, w):
    """The same with joint accelerations, where they are not None."""
    o, g = zero(q), tree.gravity[0]
    none, one = Vec3(o, o, o), lift(1.0, o)
    X = SE3(Mat3(one, o, o, o, one, o, o, o, one), none)
    if tree.nj > 1:
        X = SE3(X.R, -joint_placement(tree, 1, q, Vec2(one, o)).p)
    w.place[0], w.velocity[0], w.drift[0] = X, Motion(none, none), Motion(none, none)
    w.composite[0] = Rigid(o, none, Sym3(o, o, o, o, o, o))
    for i in range(1, tree.nj):
        parent = tree.parent[i]
        X, velocity, drift = placed_after(tree, i, q, w.place[parent]), w.velocity[parent], w.drift[parent]
        rate = Motion(none, none)
        for k in range(tree.iv[i], tree.end[i]):
            axis = axis_seen_from(X, tree.axis[k])
            w.axis[k] = axis
            rate = rate + axis * ld(v, k)
            if a is not None:
                drift = drift + axis * ld(a, k)
        velocity = velocity + rate
        drift = drift + cross_motion(velocity, rate)
        body = X @ tree.solid[i]
        falling = Motion(Vec3(drift.lin.x - g.x, drift.lin.y - g.y, drift.lin.z - g.z), drift.ang)
        w.place[i], w.velocity[i], w.drift[i], w.composite[i] = X, velocity, drift, body
        w.force[i] = force_of(body, velocity, falling)


@kernel
def collect_bodies(tree, q, tau, w, M, rest, far):
    """To the root: the upper triangle of M, and tau - b; and, unless it is None, what distance adds to the inertia along an
    axis, about the origin of the first body."""
    o = zero(q)
    composite = Rigid(o, Vec3(o, o, o), Sym3(o, o, o, o, o, o))
    w.force[0] = Force(Vec3(o, o, o), Vec3(o, o, o))
    for i in range(tree.nj - 1, 0, -1):
        composite, force = collect(tree, i, composite, w), w.force[i]
        w.force[tree.parent[i]] = w.force[tree.parent[i]] + force
        for k in range(tree.iv[i], tree.end[i]):
            axis = w.axis[k]
            st(rest, k, ld(tau, k) - power(axis, force))
            momentum = composite @ axis
            st(M, k * tree.nv + k, power(axis, momentum) + tree.armature[k])
            if far is not None:
                st(far, k, distant(composite, axis))
            j = tree.above[k]
            while j >= 0:
                st(M, j * tree.nv + k, power(w.axis[j], momentum))
                j = tree.above[j]


@kernel
def distant(composite, axis):
    """The inertia along an axis, as far as it is distance: of a small body far away it is the most, and is taken off again,
    but for what is rounded of it."""
    return composite.m * dot(axis.lin, axis.lin)


@kernel
def lost_to_distance(far, inverse, n):
    """How many times larger than inertias what is `distant` of them is, by pivots turned over: by so many times their
    rounding accelerations may be off."""
    lost = zero(far)
    for k in range(n):
        lost = lost + ld(far, k) * fabs(ld(inverse, k))
    return lost


@kernel
def point_acceleration(velocity, drift, p):
    """The classical acceleration of a body's point at p."""
    speed = velocity.lin + cross(velocity.ang, p)
    return drift.lin + cross(drift.ang, p) + cross(velocity.ang, speed)


@kernel
def direction(R, axis):
    """Axis 0, 1 or 2 (of six: modulo 3) of a frame turned by R."""
    if axis == 0 or axis == 3:
        return Vec3(R.xx, R.yx, R.zx)
    if axis == 1 or axis == 4:
        return Vec3(R.xy, R.yy, R.zy)
    return Vec3(R.xz, R.yz, R.zz)


@kernel
def unit_force(d, p, axis):
    """The force of size one along row `axis`: at the point p in direction d, or the couple about d."""
    if axis < 3:
        return Force(d, cross(p, d))
    return Force(d * 0.0, d)


@kernel
def aim_rows(tree, active, target, w, J, goal):
    """J and goal of constraints between frames, zero for those that are not active."""
    o = zero(goal)
    for c in range(tree.nc):
        if tree.given[c] >= 0:
            continue
        a, b, on = tree.body_a[c], tree.body_b[c], ld(active, c)
        A, B = w.place[a] @ tree.place_a[c], w.place[b] @ tree.place_b[c]
        va, vb, da, db = w.velocity[a], w.velocity[b], w.drift[a], w.drift[b]
        relative, drift = va - vb, da - db + cross_motion(va, vb)
        speed = va.lin + cross(va.ang, A.p) - vb.lin - cross(vb.ang, B.p)
        gamma = point_acceleration(va, da, A.p) - point_acceleration(vb, db, B.p)
        gap = Motion(Vec3(o, o, o), Vec3(o, o, o))
        if tree.pulled[0]:
            gap = separation(tree, c, inverse(A) @ B)
        for r in range(tree.first_row[c], tree.end_row[c]):
            axis = tree.row_axis[r]
            d = direction(A.R, axis)
            on_a = unit_force(d, A.p, axis)
            on_b = on_a
            rate, bias = power(relative, on_a), power(drift, on_a)
            if tree.point[c]:
                on_b = unit_force(d, B.p, axis)
                rate, bias = dot(d, speed), dot(d, gamma)
            wish = ld(target, r) - tree.kd[c] * rate + tree.kp[c] * component(gap, axis)
            st(goal, r, (wish - bias) * on)
            fill_row(tree, r, a, b, on_a * on, on_b * on, w, J)


@kernel
def point_rows(tree, active, w, J):
    """J of constraints between frames."""
    for c in range(tree.nc):
        if tree.given[c] < 0:
            a, b, on = tree.body_a[c], tree.body_b[c], ld(active, c)
            A = w.place[a] @ tree.place_a[c]
            p = (w.place[b] @ tree.place_b[c]).p if tree.point[c] else A.p
            for r in range(tree.first_row[c], tree.end_row[c]):
                axis = tree.row_axis[r]
                d = direction(A.R, axis)
                fill_row(tree, r, a, b, unit_force(d, A.p, axis) * on, unit_force(d, p, axis) * on, w, J)


@kernel
def take_rows(tree, active, target, rows, J, goal):
    """J and goal of constraints whose rows are given, zero for those that are not active."""
    for c in range(tree.nc):
        if tree.given[c] >= 0:
            on = ld(active, c)
            for r in range(tree.first_row[c], tree.end_row[c]):
                st(goal, r, ld(target, r) * on)
                take_row(tree, c, r, r, rows, on, J)


@kernel
def take_row(tree, c, r, place, rows, on, J):
    """Row r, of constraint c, whose rows are given: to row `place` of J."""
    nv = tree.nv
    first = (tree.given[c] + r - tree.first_row[c]) * nv
    for k in range(nv):
        st(J, place * nv + k, 0.0)
    for n in range(tree.first_mover[c], tree.end_mover[c]):
        k = tree.mover[n]
        st(J, place * nv + k, ld(rows, first + k) * on)


@kernel
def fill_row(tree, r, a, b, on_a, on_b, w, J):
    """Row r of J: powers along the degrees of freedom that move body a, less those that move body b."""
    start = r * tree.nv
    for k in range(tree.nv):
        st(J, start + k, 0.0)
    k = tree.end[a] - 1 if a > 0 else -1
    while k >= 0:
        st(J, start + k, power(w.axis[k], on_a))
        k = tree.above[k]
    k = tree.end[b] - 1 if b > 0 else -1
    while k >= 0:
        st(J, start + k, ld(J, start + k) - power(w.axis[k], on_b))
        k = tree.above[k]


@constrained(
    MOVERS,
    inputs={"q": "nq", "v": "nv", "tau": "nv", "active": "nc", "target": "nm", "rows": "nu nv"},
    outputs={"M": "nv nv zeroed", "rest": "nv", "J": "nm nv", "goal": "nm", "lost": "1"},
    work=Layout(nj=BODIES, nv={**AXES, "far": None, "inverse": None}, nvv={"U": None}),
)
def _constrained_system(tree, q, v, tau, active, target, rows, w, M, rest, J, goal, lost):
    move_bodies(tree, q, v, w)
    collect_bodies(tree, q, tau, w, M, rest, w.far)
    aim_rows(tree, active, target, w, J, goal)
    take_rows(tree, active, target, rows, J, goal)
    for k in range(tree.nv):
        st(w.U, k * tree.nv + k, ld(M, k * tree.nv + k))
        j = tree.above[k]
        while j >= 0:
            entry = ld(M, j * tree.nv + k)
            st(M, k * tree.nv + j, entry)
            st(w.U, j * tree.nv + k, entry)
            j = tree.above[j]
    factor(tree.above, tree.nv, w.U, w.inverse)
    for k in range(tree.nv):
        st(w.inverse, k, 1.0 / ld(w.inverse, k))
    st(lost, 0, lost_to_distance(w.far, w.inverse, tree.nv))


@constrained(
    MOVERS,
    inputs={"q": "nq", "v": "nv", "a": "nv", "active": "nc", "rows": "nu nv"},
    outputs={"accelerations": "nm"},
    work=Layout(nj=BODIES, nv=AXES, nmv={"J": None}, nm={"none": None}),
)
def _constraint_accelerations(tree, q, v, a, active, rows, w, accelerations):
    """J a - goal, with targets of zero."""
    nv = tree.nv
    for r in range(tree.nm):
        st(w.none, r, 0.0)
    move_bodies(tree, q, v, w)
    aim_rows(tree, active, w.none, w, w.J, accelerations)
    take_rows(tree, active, w.none, rows, w.J, accelerations)
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            total = -ld(accelerations, r)
            for n in range(tree.first_mover[c], tree.end_mover[c]):
                k = tree.mover[n]
                total = total + ld(w.J, r * nv + k) * ld(a, k)
            st(accelerations, r, total)
