"""The rows of a step's contact problem: what may hold, its Jacobian, rates without impulses, and the Delassus matrix.

    u = J v+ + bias = G x + g,      G = J M^-1 J^T,      g = J v_free + bias

Rows come in this order: loops; dry friction; limits of joints that are near; contacts that are near, normal first and then
two tangents. Each row's column y = U^-1 J^T, on M = U D U^T (ltl.py), is not zero but on the way from its bodies to the
root: an entry of G is y_i . D^-1 y_j along the shorter of two ways.

Rows of joints are the same in all lanes of a packet: those that are far in one of them have rates that no impulse answers.
Of contacts, each lane has its own: rows of a contact that is near in some lanes take in those of contacts that are near
in others only. So there are about as many as the lane with the most contacts has, and not as all have together.

bias, as a velocity: what a gap allows in one step, and what brings back a share `PULL` of what is lost.

What rebounds does so within the step, at the share `late` of it: before, the robot moves at v_free, then at v+. So the
motion between impacts is that of semi-implicit Euler, which is leapfrog: to second order, velocities are those at the
ends of steps, and places those half a step later, across impacts too.

| code | what | shape |
|---|---|---|
| `row` | J, then y | nr nv |
| `last` | the last degree of freedom on a row's way to the root; nv where ways are joined | nr |
| `place_of` | of each row of a joint, its number among all there are | nr |
| `slot`, `facing` | of each contact's first row, which of all possible contacts it is, or -1, and its normal | nr |
| `taken` | of each contact's first row, 1 in lanes in which that contact is near, else 0 | nr |
| `free`, `delassus` | g, G | nr, nr nr |
| `pushed` | of rows of limits and of contacts' first ones, how fast what overlaps is to part, as a negative rate | nr |
| `late` | the share of the step before the first rebound; 0 where something else is pressed before it | 1 |
"""

from __future__ import annotations

from saltus.collision.closest import choose
from saltus.collision.tables import CONTACT_WORK, FAR
from saltus.constraints.measure import separation
from saltus.constraints.system import direction, fill_row, unit_force
from saltus.kernel import fabs, kernel, ld, less, lift, maximum, minimum, rolled, select, some, st, zero
from saltus.model.joint_kernels import component
from saltus.simulation.contact_problem import ENDLESS, ROWS
from saltus.spatial.algebra import Force, Mat3, Vec3, cross, dot, inverse

PULL = 0.2
"""The share of a deep penetration, or of a loop's gap, that a step takes away."""

GENTLE = 0.05
"""What goes back at less than this does so in one step, so that nothing changes abruptly where a gap begins [m/s, rad/s]."""

FASTEST = 1.0
"""At which bodies are pushed out of each other, at most [m/s]."""

SLOW = 10.0
"""What closes at less than so many times what its rate changes by in a step rebounds at the start of the step: it
comes to rest instead of being shaken by the second order."""

NEAR = 2e-3
"""What is as near as this is looked at, whatever its speed [m, rad]."""

TOUCHING = 1e-4
"""The same where there is no room for all [m]."""

ROW_WORK = CONTACT_WORK.extended(**ROWS.groups).extended(
    nr={"last": int, "place_of": int, "slot": None, "facing": Vec3, "taken": None, "softness": None, "pushed": None},
    nslot={"near": int},
    one={"late": None},
    nrv={"row": None},
    nv={"speed": None, "pivot_inverse": None},
)


@rolled
@kernel
def find_rows(tree, q, v, h, surface, w):
    """All rows that may hold in a step of h, from velocities `v`, and `speed`, those without impulses. Returns how many
    there are that are no contact, how many in all, and 1 where contacts were left out.

    `surface`: by what friction is multiplied, and compliance."""
    w.late[0] = lift(ENDLESS if tree.nm == 0 else 0.0, h)  # loops would open before the rebound
    first = loop_rows(tree, h, w)
    for n in range(tree.nrub):
        k, most = tree.rubbing[n], tree.dry[n] * h
        w.lower[first], w.upper[first] = -most, most
        axis_row(tree, w, first, k, lift(1.0, h), tree.nm + n)
        w.free[first] = w.speed[k]
        first = first + 1
    first = limit_rows(tree, q, v, h, first, w)
    n, crowded = contact_rows(tree, h, first, surface, w)
    w.late[0] = select(less(w.late[0], ENDLESS), w.late[0], lift(0.0, h))
    find_delassus(tree, w, first, n)
    return first, n, crowded


@kernel
def loop_rows(tree, h, w):
    for c in range(tree.nc):
        a, b = tree.body_a[c], tree.body_b[c]
        A, B = w.place[a] @ tree.place_a[c], w.place[b] @ tree.place_b[c]
        gap = separation(tree, c, inverse(A) @ B)
        for r in range(tree.first_row[c], tree.end_row[c]):
            axis = tree.row_axis[r]
            d = direction(A.R, axis)
            on_a = unit_force(d, A.p, axis)
            on_b = unit_force(d, B.p, axis) if tree.point[c] else on_a
            fill_row(tree, r, a, b, on_a, on_b, w, w.row)
            w.free[r] = rate(tree, w, r, tree.nv) - PULL / h * component(gap, axis)
            w.lower[r], w.upper[r] = lift(-1e300, h), lift(1e300, h)
            w.place_of[r] = r
            join_ways(tree, w, (r,), way_of(tree, a, b))
    return tree.nm + 0


@kernel
def limit_rows(tree, q, v, h, r, w):
    """The nearer limit of each joint that is near one."""
    one = lift(1.0, h)
    for n in range(tree.nlimit):
        k, x = tree.limited[n], ld(q, tree.limited_q[n])
        below, above = x - tree.lower_limit[n], tree.upper_limit[n] - x
        gap, sign = minimum(below, above), select(less(below, above), one, -one)
        reach = NEAR + 2.0 * h * maximum(fabs(ld(v, k)), fabs(w.speed[k]))
        if some(less(gap, reach)):
            axis_row(tree, w, r, k, sign, tree.nm + tree.nrub + n)
            w.lower[r], w.upper[r] = lift(0.0, h), lift(1e300, h)
            aim(w, r, sign * w.speed[k], allowed(gap, h))
            w.late[0] = select(goes_through(gap, h, sign * w.speed[k]), lift(0.0, h), w.late[0])
            r = r + 1
    return r


@kernel
def contact_rows(tree, h, first, surface, w):
    """Where more are near in a lane than it has rows for, those go first that touch."""
    r, end, near, o, one = first + 0, first + 3 * tree.nmost, 0, lift(0.0, h), lift(1.0, h)
    count, crowded = o, o
    for s in range(tree.nslot):
        if some(less(w.gap[s], tree.margin[0])):
            blank(tree, w, s, less(0.5 * FAR, w.gap[s]))
            close = select(less(w.gap[s], NEAR + reach_of(tree, w, s, h)), one, o)
            if some(less(0.5, close)):
                w.near[near], near, count = s, near + 1, count + close
    room = select(less(tree.nmost + 0.5, count), TOUCHING * one, NEAR * one)
    for e in range(near):
        s = w.near[e]
        here = select(less(w.gap[s], room + reach_of(tree, w, s, h)), one, o)
        if some(less(0.5, here)):
            blank(tree, w, s, less(here, 0.5))
            add_contact(tree, w, s, r, tree.slot_a[s], tree.slot_b[s], closing_speed(tree, w, s), here, surface, h)
            p = first + 0
            while p < r and some(less(1.5, w.taken[p] + here)):
                p = p + 3
            if p < r:
                put_beside(tree, w, r, p, here)
            elif r < end:
                r = r + 3
            else:
                crowded = maximum(crowded, share_out(tree, w, first, r, here))
    return r, crowded


@kernel
def share_out(tree, w, first, r, here):
    """The contact at row r to wherever its lanes have room; 1 in those that have none."""
    for p in range(first, r, 3):
        fits = here * (1.0 - w.taken[p])
        put_beside(tree, w, r, p, fits)
        here = here - fits
    return here


@kernel
def put_beside(tree, w, r, p, here):
    """The contact at row r takes the rows from p on, in lanes that are `here` (1 or 0)."""
    moves, nv = less(0.5, here), tree.nv
    for d in range(3):
        for k in range(nv):
            own, other = (p + d) * nv + k, (r + d) * nv + k
            st(w.row, own, select(moves, ld(w.row, other), ld(w.row, own)))
        w.free[p + d] = select(moves, w.free[r + d], w.free[p + d])
        if w.last[p + d] != w.last[r + d]:
            w.last[p + d] = nv
    w.pushed[p] = select(moves, w.pushed[r], w.pushed[p])
    w.friction[p] = select(moves, w.friction[r], w.friction[p])
    w.softness[p] = select(moves, w.softness[r], w.softness[p])
    w.slot[p] = select(moves, w.slot[r], w.slot[p])
    w.facing[p] = choose(moves, w.facing[r], w.facing[p])
    w.taken[p] = w.taken[p] + here


@kernel
def blank(tree, w, s, away):
    """A contact of some lanes is one in all: where it is `away`, without a normal, so that no impulse moves anything,
    and with a gap of a size that rounding does not feel."""
    o = zero(w.gap)
    none = Vec3(o, o, o)
    w.point[s], w.normal[s] = choose(away, none, w.point[s]), choose(away, none, w.normal[s])
    w.grip[s], w.bounce[s] = select(away, o, w.grip[s]), select(away, o, w.bounce[s])
    w.gap[s] = select(away, tree.margin[0] + o, w.gap[s])


@kernel
def reach_of(tree, w, s, h):
    """How far a contact may come in a step."""
    return 2.0 * h * fabs(closing_speed(tree, w, s))


@kernel
def closing_speed(tree, w, s):
    n, p, va, vb = w.normal[s], w.point[s], w.velocity[tree.slot_a[s]], w.velocity[tree.slot_b[s]]
    return dot(n, vb.lin + cross(vb.ang, p) - va.lin - cross(va.ang, p))


@kernel
def add_contact(tree, w, s, r, a, b, closing, here, surface, h):
    """The rows of contact s, from r on; `here`: 1 in lanes in which it is near, else 0."""
    o, gap, n, p = lift(0.0, h), w.gap[s], w.normal[s], w.point[s]
    t = tangent(n)
    contact_row(tree, w, r, a, b, n, p)
    contact_row(tree, w, r + 1, a, b, t, p)
    contact_row(tree, w, r + 2, a, b, cross(n, t), p)
    last = way_of(tree, a, b)
    u = rate(tree, w, r, last)
    bounces = less(o, closing * w.bounce[s])
    back, share = bounced(gap, h, u, closing, w.bounce[s])
    aim(w, r, u, select(bounces, back, allowed(gap, h)))
    w.late[0] = select(goes_through(gap, h, u), minimum(w.late[0], select(bounces, share, o)), w.late[0])
    w.free[r + 1], w.free[r + 2] = rate(tree, w, r + 1, last), rate(tree, w, r + 2, last)
    w.friction[r], w.softness[r] = w.grip[s] * ld(surface, 0), ld(surface, 1) / (h * h)
    w.slot[r], w.facing[r], w.taken[r] = select(less(0.5, here), 1.0 * s + o, o - 1.0), n, here
    join_ways(tree, w, (r, r + 1, r + 2), last)


@kernel
def aim(w, r, u, bias):
    """The rate of a row that moves at u."""
    w.free[r], w.pushed[r] = u + bias, minimum(bias, zero(w.row))


@kernel
def let_be(tree, first, n, wedged, w):
    """What overlaps need not part in lanes that are `wedged` (1; else 0)."""
    for r in range(tree.nm + tree.nrub, first):
        w.free[r] = w.free[r] - wedged * w.pushed[r]
    for r in range(first, n, 3):
        w.free[r] = w.free[r] - wedged * w.pushed[r]


@kernel
def allowed(gap, h):
    """What a gap adds to the rate of its row."""
    rate = gap / h
    return maximum(select(less(rate, lift(-GENTLE, h)), PULL * (rate + GENTLE) - GENTLE, rate), lift(-FASTEST, h))


@kernel
def goes_through(gap, h, u):
    """Whether a gap would be closed in a step."""
    return less(gap + h * u, lift(0.0, h))


@kernel
def bounced(gap, h, u, closing, restitution):
    """What a gap adds to the rate of its row where that rebounds in the step in which it would go through, and the share
    of the step that passes before it. Places are ahead of velocities by half a step, before the rebound and after it."""
    o, through, change = lift(0.0, h), goes_through(gap, h, u), u + closing
    fast = less(SLOW * fabs(change), closing)
    share = select(fast, maximum(gap, o), o) / select(through, -h * u, lift(1.0, h))
    exact = restitution * (closing - (share + 0.5) * change) + (0.5 - share) * change
    speed = select(fast, maximum(exact, o), restitution * closing)
    return select(through, -speed, gap / h), share


@kernel
def tangent(n):
    """A unit vector across a unit vector, by continuous rules in each half space (T. Duff et al., 2017)."""
    sign = select(less(n.z, lift(0.0, n.z)), lift(-1.0, n.z), lift(1.0, n.z))
    a = -1.0 / (sign + n.z)
    return Vec3(1.0 + sign * n.x * n.x * a, sign * (n.x * n.y * a), -(sign * n.x))


@kernel
def contact_row(tree, w, r, a, b, d, p):
    force = Force(d, cross(p, d))
    fill_row(tree, r, a, b, force, force, w, w.row)


@kernel
def axis_row(tree, w, r, k, sign, place):
    """The row of one degree of freedom."""
    start = r * tree.nv
    for j in range(tree.nv):
        st(w.row, start + j, lift(0.0, sign))
    st(w.row, start + k, sign)
    w.place_of[r], w.last[r] = place, k
    climb(tree, w, (start,), k)


@kernel
def rate(tree, w, r, last):
    """J v of a row that is zero but on the way from `last` to the root, for v in `speed`."""
    total, k = zero(w.row), min(last, tree.nv - 1)
    while k >= 0:
        total = total + ld(w.row, r * tree.nv + k) * w.speed[k]
        k = onward(tree, last, k)
    return total


@kernel
def way_of(tree, a, b):
    """Where the way of a row of two bodies begins: nv where two are joined, -1 where none moves."""
    if a > 0:
        return tree.nv + 0 if b > 0 else tree.end[a] - 1
    return tree.end[b] - 1 if b > 0 else -1


@kernel
def join_ways(tree, w, rows, last):
    """The rows, of the same bodies, become y, and know their way to the root."""
    starts = ()
    for r in rows:
        w.last[r] = last
        starts = (*starts, r * tree.nv)
    climb(tree, w, starts, last)


@kernel
def climb(tree, w, starts, last):
    """U^-1 times vectors that begin at `starts` of `row`, and are zero but on the way from `last` to the root."""
    nv, k = tree.nv, min(last, tree.nv - 1)
    while k >= 0:
        i, entries = tree.above[k], ()
        for start in starts:
            entries = (*entries, (start, ld(w.row, start + k)))
        while i >= 0:
            part = ld(w.M, i * nv + k)
            for each in entries:
                start, entry = each
                st(w.row, start + i, ld(w.row, start + i) - entry * part)
            i = tree.above[i]
        k = onward(tree, last, k)


@kernel
def onward(tree, last, k):
    """The next degree of freedom on a way to the root; where two ways are joined, all are."""
    return k - 1 if last >= tree.nv else tree.above[k]


@kernel
def find_delassus(tree, w, first, n):
    G, nv = w.delassus, tree.nv
    for i in range(first):
        for j in range(i + 1):
            total, last = zero(G), min(w.last[i], w.last[j])
            k = min(last, nv - 1)
            while k >= 0:
                total = total + ld(w.row, i * nv + k) * w.pivot_inverse[k] * ld(w.row, j * nv + k)
                k = onward(tree, last, k)
            st(G, i * n + j, total)
            st(G, j * n + i, total)
    for i in range(first, n, 3):
        for j in range(first):
            couple_row(tree, w, i, j, n)
        for j in range(first, i + 1, 3):
            couple_contacts(tree, w, i, j, n)
        for d in range(3):
            k = (i + d) * n + i + d
            st(G, k, ld(G, k) + (w.softness[i] if d == 0 else zero(G)))


@kernel
def couple_row(tree, w, i, j, n):
    """The entries of a contact that begins at row i, and a row j."""
    G, nv, last = w.delassus, tree.nv, min(w.last[i], w.last[j])
    k = min(last, nv - 1)
    a = b = c = zero(G)
    while k >= 0:
        y = ld(w.row, j * nv + k) * w.pivot_inverse[k]
        at = i * nv + k
        a, b, c = a + ld(w.row, at) * y, b + ld(w.row, at + nv) * y, c + ld(w.row, at + nv + nv) * y
        k = onward(tree, last, k)
    put_row(G, n, i, j, a, b, c)


@kernel
def put_row(G, n, i, j, a, b, c):
    st(G, i * n + j, a)
    st(G, (i + 1) * n + j, b)
    st(G, (i + 2) * n + j, c)
    st(G, j * n + i, a)
    st(G, j * n + i + 1, b)
    st(G, j * n + i + 2, c)


@kernel
def couple_contacts(tree, w, i, j, n):
    """The entries of two contacts."""
    G, nv, last, o = w.delassus, tree.nv, min(w.last[i], w.last[j]), zero(w.delassus)
    k = min(last, nv - 1)
    B = Mat3(o, o, o, o, o, o, o, o, o)
    while k >= 0:
        at, to, D = i * nv + k, j * nv + k, w.pivot_inverse[k]
        x, y, z = ld(w.row, at) * D, ld(w.row, at + nv) * D, ld(w.row, at + nv + nv) * D
        a, b, c = ld(w.row, to), ld(w.row, to + nv), ld(w.row, to + nv + nv)
        B = Mat3(
            B.xx + x * a, B.xy + x * b, B.xz + x * c,
            B.yx + y * a, B.yy + y * b, B.yz + y * c,
            B.zx + z * a, B.zy + z * b, B.zz + z * c,
        )  # fmt: skip
        k = onward(tree, last, k)
    put_row(G, n, i, j, B.xx, B.yx, B.zx)
    put_row(G, n, i, j + 1, B.xy, B.yy, B.zy)
    put_row(G, n, i, j + 2, B.xz, B.yz, B.zz)
