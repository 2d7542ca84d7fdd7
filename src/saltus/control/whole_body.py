"""The whole-body program of a controller, by the structure of its dynamics: from a state and references to torques.

    minimise  1/2 |W (R a - goal)|^2 + 1/2 w_s |J_c a - goal_c|^2 + 1/2 w_u |u|^2 + 1/2 w_f |f - f_wanted|^2
    over torques u of motors within limits, forces f of contacts in their friction cones,
    M a = rest + S u + J_c^T f + J_h^T l,      J_h a = goal_h,      low <= a_limited <= high

Accelerations and multipliers l of bilateral constraints (loops, locked springs) are affine in z = (u, f): by the sparse
factors of M, column by column, and by those of the constraints' small Delassus matrix. What is left is a program of the size
of z (interior_point.py). Contacts are soft (FCCQP, 10d): slack is what J_c a misses. Priorities come one after the
other: what the rows of one have reached, those of the next keep. Limits of joints are rows where they are near, and where
accelerations would pass them: a level is solved again until none is passed.

| code | what | shape |
|---|---|---|
| `response` | V: a = V (z, 1) (response.py) | nv row, row = padded(n) + 4, the last column behind padded(n) |
| `stacked` | W (R V) and sqrt(w_s) (J_c V), less goals in the last column | (ntr + 3 mc) row |
| `push_rows`, `push_goal` | J_c, goal_c | 3 mc nv, 3 mc |

O(n d c + r c^2 + c^3) for c columns and r rows of tasks.

Reference: B. Acosta, FCCQP (2024), equation 10.
"""

from __future__ import annotations

from saltus.constraints.system import AXES, BODIES, move_bodies, point_acceleration
from saltus.control.cholesky import dot as dot_quads
from saltus.control.cholesky import padded
from saltus.control.cones import NOTHING
from saltus.control.control_tables import CONTROL_TABLES
from saltus.control.interior_point import minimise
from saltus.control.interior_program import COST, LINEAR, PROGRAM, find_unit, vector
from saltus.control.quadratic_program import DEADLINE, EMPTY, MAX_ITERATIONS, SOLVED
from saltus.control.response import RESPONSES, hold, respond, stack
from saltus.control.task_rows import ROWS, fill_tasks, first_origin
from saltus.dynamics.crba import collect
from saltus.dynamics.ltl import factor
from saltus.dynamics.passive import spring_torque
from saltus.kernel import (
    Quad,
    declare,
    fabs,
    four,
    kernel,
    ld,
    less,
    lift,
    maximum,
    minimum,
    quad,
    select,
    some,
    sqrt,
    st,
    tail,
    ticks,
    zero,
)
from saltus.model.joint_kernels import lift_vec
from saltus.spatial.algebra import Force, Sym3, Vec3, cross, dot, power
from saltus.spatial.inertia import Rigid

SLACK, WHOLE = 1e-3, 0.9999
"""A contact that holds less than the one bears nothing, and one that holds more than the other bears anything."""

ROUNDED = 100.0
"""Of the tolerance: where rounding allows no less, that much is enough."""

SLIGHT = 1.0
"""A torque that is next to nothing [N m, N]: slopes are never seen as shares of less than it costs."""

TRIFLE = 1e-6
"""The share of what tasks cost while nothing pushes that is as good as nothing."""

LIMIT_WEIGHT = 1e6
"""Of what accelerations miss their limits by."""

NEAR, FAR = 0.25, 2.0
"""Limits that allow less than so many times `braking` are near; and none asks for more than so many."""

OUTSIDE = 1e-9
"""A load so far below 0 or above 1 is none."""

PASSED = 1e-9
"""The share of `braking` by which an acceleration passes a limit."""

ENDLESS = 1e30
"""The end of a row that asks for nothing."""

WORK = ROWS.extended(
    **{group: fields for group, fields in PROGRAM.groups.items() if group != "one"},
    one={**PROGRAM.groups["one"], "near_count": int},
    ml={"near": int, "asked": None},
    mn={"found": None},
    nj=BODIES,
    nv={**AXES, "pivot": None, "rest": None, "moved": int},
    nvv={"M": None},
    mjv={"push_rows": None},
    mz={"push_goal": None},
    **RESPONSES,
)


@declare(
    CONTROL_TABLES,
    inputs={
        "q": "nq",
        "v": "nv",
        "references": "nref",
        "active": "mc",
        "friction": "mc",
        "wanted": "mc 3",
        "held": "nc",
        "options": "2 int",
        "limits": "1",
    },
    outputs={
        "tau": "nv", "a": "nv", "forces": "mc 3", "slack": "mc 3", "missed": "ntr", "beyond": "ml", "grip": "mc",
        "report": "5",
    },
    work=WORK,
    inverts_inertia=True,
    double_only=True,
    sloped=False,
)  # fmt: skip
def _whole_body(
    tree, q, v, references, active, friction, wanted, held, options, limits,
    w, tau, a, forces, slack, missed, beyond, grip, report,
):  # fmt: skip
    """`active`: how much of each contact holds, 0 to 1; `held`: which bilateral constraints do. `options`: the most
    iterations of each solution, and ticks / 1024; `limits`: the tolerance."""
    begun, o = ticks(), zero(q)
    n = tree.mm + 3 * tree.mc
    first = padded(n)
    row = first + 4
    find_unit(w)
    w.origin[0] = first_origin(tree, q)
    move_bodies(tree, q, v, w)
    collect_all(tree, q, v, w)
    factor(tree.above, tree.nv, w.M, w.pivot)
    fill_tasks(tree, q, v, references, w)
    fill_contacts(tree, w)
    respond(tree, w, first, row)
    if tree.nm > 0:
        hold(tree, held, w, first, row)
    stack(tree, active, w, first, row)
    count, left, late = o, o, o
    list_limits(tree, q, v, w, first)
    for level in range(tree.nlevel):
        counted, rest, stopped = solve_level(
            tree, q, v, active, friction, wanted, options, ld(limits, 0), begun, level, w, n, first, row
        )
        count, left, late = count + counted, maximum(left, rest), maximum(late, stopped)
    answer(tree, friction, w, first, row, tau, a, forces, slack, missed, beyond, grip, q, v)
    status = select(less(0.5, late), 1.0 * DEADLINE + o, 1.0 * MAX_ITERATIONS + o)
    status = select(less(left, ROUNDED * ld(limits, 0)), 1.0 * SOLVED + o, status)
    st(report, 0, count)
    st(report, 1, select(less(OUTSIDE + o, impossible(tree, active, friction)), 1.0 * EMPTY + o, status))
    st(report, 2, left)
    st(report, 3, 1.0 * tree.nlevel)
    st(report, 4, o)


@kernel
def impossible(tree, active, friction):
    """By how much loads lie outside of 0 to 1; more than that if friction is negative."""
    off = zero(active)
    for c in range(tree.mc):
        load = ld(active, c)
        off = maximum(maximum(off, maximum(-load, load - 1.0)), select(less(ld(friction, c), 0.0 * off), 1.0, off))
    return off


@kernel
def collect_all(tree, q, v, w):
    """To the root: the inertia matrix, forces that are left for accelerations, momenta, and the centre of mass."""
    o, nv = zero(q), tree.nv
    none = Vec3(o, o, o)
    total = Rigid(o, none, Sym3(o, o, o, o, o, o))
    w.force[0] = Force(none, none)
    for i in range(tree.nj - 1, 0, -1):
        total, force = collect(tree, i, total, w), w.force[i]
        w.force[tree.parent[i]] = w.force[tree.parent[i]] + force
        for k in range(tree.iv[i], tree.end[i]):
            axis = w.axis[k]
            momentum = total @ axis
            w.momentum[k] = momentum
            w.rest[k] = spring_torque(tree, k, q) - tree.damping[k] * ld(v, k) - power(axis, force)
            st(w.M, k * nv + k, power(axis, momentum) + tree.armature[k])
            j = tree.above[k]
            while j >= 0:
                st(w.M, j * nv + k, power(w.axis[j], momentum))
                j = tree.above[j]
    total = total + w.composite[0]
    share = 1.0 / select(less(o, total.m), total.m, lift(1.0, o))
    center, force = total.h * share, w.force[0]
    w.mass[0], w.center[0] = total.m, center
    w.center_drift[0] = force.lin * share + lift_vec(tree.gravity[0], o)
    w.spin_drift[0] = force.ang - cross(center, force.lin)


@kernel
def fill_contacts(tree, w):
    """J_c and what J_c a should be: points of contact come to rest."""
    nv, o = tree.nv, zero(w.M)
    for c in range(tree.mc):
        body, axes = tree.point_body[c], tree.point_axes[c]
        X, velocity, drift = w.place[body], w.velocity[body], w.drift[body]
        p = X.p + X.R @ tree.point_place[c]
        speed = velocity.lin + cross(velocity.ang, p)
        gamma = point_acceleration(velocity, drift, p)
        wish = speed * -tree.contact_damping[0] - gamma
        for axis in range(3):
            r = 3 * c + axis
            d = lift_vec(axis_of(axes, axis), o)
            push = Force(d, cross(p, d))
            for k in range(nv):
                st(w.push_rows, r * nv + k, 0.0)
            k = tree.end[body] - 1 if body > 0 else -1
            while k >= 0:
                st(w.push_rows, r * nv + k, power(w.axis[k], push))
                k = tree.above[k]
            w.push_goal[r] = dot(d, wish)


@kernel
def axis_of(R, axis):
    if axis == 0:
        return Vec3(R.xx, R.yx, R.zx)
    if axis == 1:
        return Vec3(R.xy, R.yy, R.zy)
    return Vec3(R.xz, R.yz, R.zz)


@kernel
def solve_level(tree, q, v, active, friction, wanted, options, tolerance, begun, level, w, n, first, row):
    """A level with the limits that are listed, and from the beginning with those that accelerations then pass, until none is
    passed: where these were far off, what is known of the others is worth nothing. Lanes in which none is passed stay as
    they are. Iterations, what is left, and whether time was up."""
    o = zero(q)
    going, count, left, late = lift(1.0, o), o, o, o
    rows = count_rows(tree, level, w)
    fill_program(tree, active, friction, wanted, level, w, first, row, rows)
    scale = steepness(tree, w, n, first, rows)
    while True:
        fill_rows(tree, q, v, level, w, first, row, rows)
        counted, dual, rest, gap, stopped, _ = minimise(
            w, n, rows, tree.mc, level > 0, scale, tolerance, options[0], begun, options[1] * 1024, None, None
        )
        for i in range(n):
            w.found[i] = select(less(0.5, going), ld(w.vector, i), w.found[i])
            w.vector[i] = w.found[i]
        count, late = count + counted * going, maximum(late, stopped * going)
        left = select(less(0.5, going), maximum(dual, maximum(rest, gap)), left)
        going = list_passed(tree, q, v, going, w, first, row)
        if not some(less(0.5, going)):
            break
        if some(less(0.5, late)):
            left, late = maximum(left, going), maximum(late, going)
            break
        more = count_rows(tree, level, w)
        make_room(w, first, rows, more)
        rows = more
    return count, left, late


@kernel
def count_rows(tree, level, w):
    """Rows of limits, and behind them of what levels before have reached."""
    return w.near_count[0] + (tree.level_first[level] + 3 * tree.mc if level > 0 else 0)


@kernel
def make_room(w, first, rows, more):
    """Moves h to where it is when there are more rows."""
    before, behind = vector(w, LINEAR, first + padded(rows)), vector(w, LINEAR, first + padded(more))
    for i in range(first - 1, -1, -1):
        behind[i] = ld(before, i)


@kernel
def fill_program(tree, active, friction, wanted, level, w, first, row, rows):
    """What a level costs, limits of torques, and cones."""
    H, o = w.hessian, zero(w.M)
    contacts = tree.ntr + 3 * tree.mc
    h = vector(w, LINEAR, first + padded(rows))
    for i in range(first):
        for j in range(0, first, 4):
            st(H, i * first + j, quad(H, o, o, o, o))
        h[i] = o
    square(w, h, first, row, tree.level_first[level], tree.level_end[level])
    if level == 0:
        square(w, h, first, row, tree.ntr, contacts)
    for m in range(tree.mm):
        add(H, m * first + m, tree.torque_weight[0])
        w.lower[m], w.upper[m] = -tree.most_torque[m] + o, tree.most_torque[m] + o
    for c in range(tree.mc):
        load = ld(active, c)
        part = load * load
        most = tree.weight_of_all[0] * part / maximum(1.0 - part * part, lift(1e-9, o))
        most = select(less(load, lift(SLACK, o)), o, select(less(load, lift(WHOLE, o)), most, lift(1e30, o)))
        i = tree.mm + 3 * c
        w.mu[c], w.fx[c], w.fy[c], w.fz[c] = ld(friction, c), i, i + 1, i + 2
        w.lower[i + 2], w.upper[i + 2] = o, most
        for axis in range(3):
            add(H, (i + axis) * first + i + axis, tree.force_weight[0])
            h[i + axis] = ld(h, i + axis) - tree.force_weight[0] * ld(wanted, 3 * c + axis)
    for i in range(first):
        for j in range(i):
            st(H, i * first + j, ld(H, j * first + i))
    at_rest = missed_at_rest(tree, w, first, row, level)
    w.base[0], w.base_cost[0], w.trifle[0] = at_rest, o, TRIFLE * at_rest


@kernel
def fill_rows(tree, q, v, level, w, first, row, rows):
    """Limits where they are asked for, and what levels before have reached."""
    V, o = w.response, zero(w.M)
    for k in range(w.near_count[0]):
        limited = w.near[k]
        j, dof = first + k, tree.limited[limited]
        here, asked = ld(V, dof * row + first), less(0.5, w.asked[limited])
        for i in range(0, first, 4):
            st(w.general, k * first + i, ld(V, dof * row + i, Quad))
        low, high = stopping(tree, limited, q, v)
        w.lower[j] = select(asked, low - here, lift(-ENDLESS, o))
        w.upper[j] = select(asked, high - here, lift(ENDLESS, o))
        w.give[j] = lift(1.0 / LIMIT_WEIGHT, o)
    if level > 0:
        keep_levels(tree, level, w, first, row, w.near_count[0] + 0)
    for i in range(first):
        vector(w, COST, first + padded(rows))[i] = o


@kernel
def add(K, k, x):
    st(K, k, ld(K, k) + x)


@kernel
def steepness(tree, w, n, first, rows):
    """A share of the largest slope there is without any forces."""
    h, most = vector(w, LINEAR, first + padded(rows)), zero(w.M)
    for i in range(n):
        most = maximum(most, fabs(ld(h, i)))
    return maximum(most * 1e-2, tree.torque_weight[0] * lift(SLIGHT, most))


@kernel
def list_limits(tree, q, v, w, first):
    """Lists the limits that are near."""
    o, one = zero(q), lift(1.0, zero(q))
    w.near_count[0] = 0
    for k in range(tree.ml):
        low, high = stopping(tree, k, q, v)
        w.asked[k] = o
        ask(w, k, select(less(minimum(-low, high), NEAR * tree.braking[0] + o), one, o), first)


@kernel
def list_passed(tree, q, v, going, w, first, row):
    """Lists the limits that accelerations pass where it is `going`; 1 where one came anew."""
    V, o = w.response, zero(q)
    new = o
    for k in range(tree.ml):
        low, high = stopping(tree, k, q, v)
        at = tree.limited[k] * row
        there = ld(V, at + first) + dot_quads(tail(V, at), w.vector, first)
        passed = less(PASSED * tree.braking[0] + o, maximum(there - high, low - there))
        wish = select(passed, going * (1.0 - w.asked[k]), o)
        ask(w, k, wish, first)
        new = maximum(new, wish)
    return new


@kernel
def ask(w, k, wish, first):
    """Limit k gets a row if a lane wishes for it, and has none yet."""
    if some(less(0.5, wish)):
        if not some(less(0.5, w.asked[k])):
            count = w.near_count[0]
            w.near[count] = k
            w.below[first + count], w.above[first + count] = zero(w.M), zero(w.M)
            w.near_count[0] = count + 1
        w.asked[k] = maximum(w.asked[k], wish)


@kernel
def stopping(tree, k, q, v):
    """Accelerations with which a joint stops before its ends, and keeps below its largest speed."""
    speed, at = ld(v, tree.limited[k]), ld(q, tree.limited_at[k])
    o, brake, ahead = zero(q), tree.braking[0], tree.horizon[0]
    rate, half = 1.0 / ahead, 0.5 * brake * ahead
    down = fastest_towards(at - tree.low[k], -speed, brake, ahead, half)
    up = fastest_towards(tree.high[k] - at, speed, brake, ahead, half)
    fastest = tree.fastest[k] + o
    low, high = (-minimum(down, fastest) - speed) * rate, (minimum(up, fastest) - speed) * rate
    most = FAR * brake + o
    low, high = minimum(low, most), maximum(high, -most)
    return minimum(low, high), maximum(low, high)


@kernel
def fastest_towards(room, speed, brake, ahead, half):
    """The speed v after the horizon from which a joint can still stop: v^2 = 2 brake (room - way until then)."""
    return sqrt(maximum(half * half + 2.0 * brake * (room - 0.5 * ahead * speed), lift(0.0, room))) - half


@kernel
def square(w, h, first, row, begin, end):
    """H and h of rows of tasks: four rows of H at a time, from the diagonal on."""
    B, H, o = w.stacked, w.hessian, zero(w.M)
    for i in range(0, first, 4):
        for j in range(i, row, 4):
            none = quad(B, o, o, o, o)
            P, Q, R, S = none, none, none, none
            for r in range(begin, end):
                x = ld(B, r * row + j, Quad)
                a, b, c, d = four(ld(B, r * row + i, Quad))
                P, Q, R, S = P + x * a, Q + x * b, R + x * c, S + x * d
            if j < first:
                st(H, i * first + j, ld(H, i * first + j, Quad) + P)
                st(H, (i + 1) * first + j, ld(H, (i + 1) * first + j, Quad) + Q)
                st(H, (i + 2) * first + j, ld(H, (i + 2) * first + j, Quad) + R)
                st(H, (i + 3) * first + j, ld(H, (i + 3) * first + j, Quad) + S)
            else:
                add(h, i, four(P)[0])
                add(h, i + 1, four(Q)[0])
                add(h, i + 2, four(R)[0])
                add(h, i + 3, four(S)[0])


@kernel
def missed_at_rest(tree, w, first, row, level):
    """What tasks and contacts cost while nothing pushes."""
    cost = zero(w.M)
    for r in range(tree.level_first[level], tree.level_end[level]):
        cost = cost + ld(w.stacked, r * row + first) * ld(w.stacked, r * row + first)
    for r in range(tree.ntr, tree.ntr + 3 * tree.mc):
        if level == 0:
            cost = cost + ld(w.stacked, r * row + first) * ld(w.stacked, r * row + first)
    return 0.5 * cost


@kernel
def keep_levels(tree, level, w, first, row, rows):
    """Rows of all levels before, and of contacts, stay what they have become, behind so many others."""
    for r in range(tree.level_first[level]):
        keep_row(w, first, row, r, rows + r)
    for r in range(3 * tree.mc):
        keep_row(w, first, row, tree.ntr + r, rows + tree.level_first[level] + r)


@kernel
def keep_row(w, first, row, r, k):
    value = zero(w.M)
    for i in range(0, first, 4):
        st(w.general, k * first + i, ld(w.stacked, r * row + i, Quad))
    for i in range(first):
        value = value + ld(w.general, k * first + i) * ld(w.vector, i)
    j = first + k
    w.lower[j], w.upper[j], w.give[j], w.below[j], w.above[j] = value, value, value * 0.0, value * 0.0, value * 0.0


@kernel
def answer(tree, friction, w, first, row, tau, a, forces, slack, missed, beyond, grip, q, v):
    """Torques, accelerations and forces, what tasks, contacts and limits miss, and how much of their cones forces take."""
    nv, n, V = tree.nv, tree.mm + 3 * tree.mc, w.response
    for k in range(nv):
        st(tau, k, 0.0)
        total = ld(V, k * row + first)
        for j in range(n):
            total = total + ld(V, k * row + j) * ld(w.vector, j)
        st(a, k, total)
    for m in range(tree.mm):
        st(tau, tree.motor[m], ld(w.vector, m))
    for r in range(3 * tree.mc):
        st(forces, r, ld(w.vector, tree.mm + r))
        total = -w.push_goal[r]
        for k in range(nv):
            total = total + ld(w.push_rows, r * nv + k) * ld(a, k)
        st(slack, r, total)
    for c in range(tree.mc):
        fx, fy, fz = ld(forces, 3 * c), ld(forces, 3 * c + 1), ld(forces, 3 * c + 2)
        st(grip, c, sqrt(fx * fx + fy * fy) / (ld(friction, c) * fz + NOTHING))
    for r in range(tree.ntr):
        total = -w.goal[r]
        for k in range(nv):
            total = total + ld(w.R, r * nv + k) * ld(a, k)
        st(missed, r, total)
    for k in range(tree.ml):
        low, high = stopping(tree, k, q, v)
        there = ld(a, tree.limited[k])
        st(beyond, k, maximum(there - high, minimum(there - low, zero(q))))
