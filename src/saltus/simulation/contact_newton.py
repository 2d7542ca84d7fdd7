"""The contact problem by a proximal point method, each of whose problems is solved by a semismooth Newton method.

    x = P((1 - a) (x - u / D) + a home),      u = G x + g                        D: typical entries of the diagonal of G

That is the contact problem, pulled towards `home` by a share a of the diagonal. Contacts that are more than needed make G
singular, and sliding ones spoil its symmetry: far from the solution Newton's steps may then lead anywhere. With enough of a
they do not. A problem that is solved gives the next one its `home` and a tenth of its a, which ends at what keeps the matrix
from being singular; one that is not gives it more. Mostly the first one is solved, in as many steps as it takes to find
which contacts stick, slide and are open. Steps are shortened until what the map leaves (`judge`) has become less.

    (1 - (1 - a) Q (1 - G / D)) dx = P(tau) - x

Rows with Q = 0, open contacts and joints at an end, have dx = P - x; only the others stand in the system, close together,
with right sides behind their columns (`assemble`). The path's system is the same, with one more (contact_path.py).

| code | what | shape |
|---|---|---|
| `delassus`, `free` | G and g: rates of the rows by impulses, and without any | n n, n |
| `impulse`, `rate` | x and G x + g | n |
| `step`, `change` | dx and G dx | n |
| `home`, `home_rate` | where the proximal point method stands, and G x + g there | n |
| `scale`, `inverse` | D, the same for the three rows of a contact, and 1 / D | n |
| `slope` | rows of Q; of a joint's row, the first number | n 3 |
| `listed` | rows in the system, then others that move | n |
| `system` | the matrix and right sides, rows of `stride(n)` | nrs |

O(n^3) a step. No pivots are looked for: where contacts stick the matrix is one of inertias, and a sliding contact's
normal row comes before its tangents.

Reference: V. Acary, M. Bremond, O. Huber, On solving contact problems with Coulomb friction: formulations and numerical
comparisons (2018), sections 4 and 5.
"""

from __future__ import annotations

from saltus.kernel import Quad, four, kernel, ld, less, lift, maximum, minimum, quad, select, some, sqrt, st, zero
from saltus.simulation.contact_law import is_within, project, slope, within
from saltus.spatial.algebra import Mat3, Vec3

TRIED_AGAIN = 1e-2
"""The least a after a failure."""

MORE, LESS, MOST = 30.0, 0.1, 0.99
"""By how much a changes, and where it ends."""

SHORTEST = 5
"""So often a step is halved."""

ENOUGH = 0.02
"""The share of what was left by which a step has to make it less."""

NEAR = 0.1
"""The share of the tolerance at which a proximal problem is solved."""


@kernel
def stride(n):
    """Numbers in a row of the system: n, and two right sides, in quads."""
    return (n + 5) // 4 * 4


@kernel
def respond(w, n, x, y):
    """y = G x, four rows at a time, where there are four: G is symmetric."""
    G, o = w.delassus, zero(w.delassus)
    if n < 4:
        for i in range(n):
            total = o
            for j in range(n):
                total = total + ld(G, i * n + j) * ld(x, j)
            y[i] = total
    else:
        for q in range(0, n, 4):
            i, sums = min(q, n - 4), quad(G, o, o, o, o)
            for j in range(n):
                sums = sums + ld(G, j * n + i, Quad) * ld(x, j)
            y[i], y[i + 1], y[i + 2], y[i + 3] = four(sums)


@kernel
def three(x, i):
    return Vec3(ld(x, i), ld(x, i + 1), ld(x, i + 2))


@kernel
def set_three(x, i, value):
    x[i], x[i + 1], x[i + 2] = value.x, value.y, value.z


@kernel
def begin(w, first, n):
    """Scales, and rates under the impulses at hand."""
    most = zero(w.delassus)
    for i in range(n):
        most = maximum(most, ld(w.delassus, i * n + i))
    least = most * 1e-12 + 1e-30  # of rows that nothing moves
    for i in range(first):
        scale = maximum(ld(w.delassus, i * n + i), least)
        w.scale[i], w.inverse[i] = scale, 1.0 / scale
    for i in range(first, n, 3):
        trace = ld(w.delassus, i * n + i) + ld(w.delassus, (i + 1) * n + i + 1) + ld(w.delassus, (i + 2) * n + i + 2)
        scale = maximum(trace * (1.0 / 3.0), least)
        inverse = 1.0 / scale
        set_three(w.scale, i, Vec3(scale, scale, scale))
        set_three(w.inverse, i, Vec3(inverse, inverse, inverse))
    find_rates(w, n)


@kernel
def find_rates(w, n):
    respond(w, n, w.impulse, w.rate)
    for i in range(n):
        w.rate[i] = w.rate[i] + w.free[i]


@kernel
def put_inside(w, first, n, law, chosen):
    """Impulses onto their intervals and cones, where a lane is chosen (1 or 0), and all rates."""
    for i in range(first):
        x = w.impulse[i]
        w.impulse[i] = select(less(0.5, chosen), within(x, w.lower[i], w.upper[i]), x)
    for i in range(first, n, 3):
        x = three(w.impulse, i)
        set_three(w.impulse, i, choose(less(0.5, chosen), project(law, w.friction[i], x), x))
    find_rates(w, n)


@kernel
def choose(condition, x, y):
    return Vec3(select(condition, x.x, y.x), select(condition, x.y, y.y), select(condition, x.z, y.z))


@kernel
def judge(w, first, n, law, t, a):
    """Of x + t dx: the sum of squares of what the map leaves, as velocities, and the square of the worst contact or row.
    None stands for t = 0."""
    squares = worst = zero(w.delassus)
    for i in range(first):
        x, u = w.impulse[i], w.rate[i]
        if t is not None:
            x, u = x + t * w.step[i], u + t * w.change[i]
        tau = x - u * w.inverse[i]
        left = (x - within(tau + a * (w.home[i] - tau), w.lower[i], w.upper[i])) * w.scale[i]
        squares, worst = squares + left * left, maximum(worst, left * left)
    for i in range(first, n, 3):
        x, u = three(w.impulse, i), three(w.rate, i)
        if t is not None:
            x, u = x + three(w.step, i) * t, u + three(w.change, i) * t
        tau = x - u * w.inverse[i]
        left = (x - project(law, w.friction[i], tau + (three(w.home, i) - tau) * a)) * w.scale[i]
        square = left.x * left.x + left.y * left.y + left.z * left.z
        squares, worst = squares + square, maximum(worst, square)
    return squares, worst


@kernel
def assemble(w, first, n, law, a, along):
    """The system of a step; how many rows it has, and how many rows move. `step` of the others is known then.

    `along`: also the right side of the path's direction, dx by 1 - a."""
    G, A, o, row, share = w.delassus, w.system, zero(w.delassus), stride(n), 1.0 - a
    m = 0
    for i in range(first):
        x = w.impulse[i]
        tau = x - w.rate[i] * w.inverse[i]
        mixed = tau + a * (w.home[i] - tau)
        moves = is_within(mixed, w.lower[i], w.upper[i])
        w.step[i], w.slope[i] = within(mixed, w.lower[i], w.upper[i]) - x, Vec3(moves, o, o)
        if along:
            w.along[i] = moves * (tau - w.home[i])
        if some(less(0.5, moves)):
            w.listed[m] = i
            m = m + 1
    joints = m
    for i in range(first, n, 3):
        x, mu = three(w.impulse, i), w.friction[i]
        tau = x - three(w.rate, i) * w.inverse[i]
        away = three(w.home, i) - tau
        mixed = tau + away * a
        set_three(w.step, i, project(law, mu, mixed) - x)
        if law == 0:
            pushes = mixed.x
        else:
            pushes = mixed.x + mu * sqrt(mixed.y * mixed.y + mixed.z * mixed.z)
        if along:
            set_three(w.along, i, Vec3(o, o, o))
        if some(less(o, pushes)):
            Q = slope(law, mu, mixed)
            w.slope[i], w.slope[i + 1], w.slope[i + 2] = (
                Vec3(Q.xx, Q.xy, Q.xz),
                Vec3(Q.yx, Q.yy, Q.yz),
                Vec3(Q.zx, Q.zy, Q.zz),
            )
            if along:
                set_three(w.along, i, Q @ away * -1.0)
            w.listed[m], w.listed[m + 1], w.listed[m + 2] = i, i + 1, i + 2
            m = m + 3
    moving, k = m, 0
    for i in range(n):
        if k < m and w.listed[k] == i:
            k = k + 1
        elif some(less(0.0, w.step[i] * w.step[i])):
            w.listed[moving] = i
            moving = moving + 1
    for p in range(joints):
        i = w.listed[p]
        factor = share * w.slope[i].x
        pull = factor * w.inverse[i]
        for q in range(m):
            st(A, p * row + q, pull * ld(G, i * n + w.listed[q]))
        st(A, p * row + p, ld(A, p * row + p) + 1.0 - factor)
        total = o
        for q in range(m, moving):
            j = w.listed[q]
            total = total + ld(G, i * n + j) * w.step[j]
        set_right(w, p, row, m, w.step[i] - pull * total, i, along)
    for p in range(joints, m, 3):
        i = w.listed[p]
        Q = slope_of(w, i)
        Q = Q * share
        R, k = Q * w.inverse[i], p * row
        if m == n and n > 3:  # as they lie, four at a time
            for q in range(0, n, 4):
                j = min(q, n - 4)
                a, b, c = ld(G, i * n + j, Quad), ld(G, i * n + n + j, Quad), ld(G, i * n + n + n + j, Quad)
                st(A, k + j, a * R.xx + b * R.xy + c * R.xz)
                st(A, k + j + row, a * R.yx + b * R.yy + c * R.yz)
                st(A, k + j + row + row, a * R.zx + b * R.zy + c * R.zz)
        else:
            for q in range(m):
                column = R @ ld(G, w.listed[q] * n + i, Vec3)
                st(A, k + q, column.x)
                st(A, k + q + row, column.y)
                st(A, k + q + row + row, column.z)
        k = k + p
        st(A, k, ld(A, k) + (1.0 - Q.xx))
        st(A, k + 1, ld(A, k + 1) - Q.xy)
        st(A, k + 2, ld(A, k + 2) - Q.xz)
        k = k + row
        st(A, k, ld(A, k) - Q.yx)
        st(A, k + 1, ld(A, k + 1) + (1.0 - Q.yy))
        st(A, k + 2, ld(A, k + 2) - Q.yz)
        k = k + row
        st(A, k, ld(A, k) - Q.zx)
        st(A, k + 1, ld(A, k + 1) - Q.zy)
        st(A, k + 2, ld(A, k + 2) + (1.0 - Q.zz))
        total = Vec3(o, o, o)
        for q in range(m, moving):
            j = w.listed[q]
            total = total + ld(G, j * n + i, Vec3) * w.step[j]
        right = three(w.step, i) - R @ total
        set_right(w, p, row, m, right.x, i, along)
        set_right(w, p + 1, row, m, right.y, i + 1, along)
        set_right(w, p + 2, row, m, right.z, i + 2, along)
    return m, moving


@kernel
def slope_of(w, i):
    x, y, z = w.slope[i], w.slope[i + 1], w.slope[i + 2]
    return Mat3(x.x, x.y, x.z, y.x, y.y, y.z, z.x, z.y, z.z)


@kernel
def set_right(w, p, row, m, right, i, along):
    """The right sides of row p of the system, row i of the problem, and zeros to the end of a quad."""
    k = p * row + m
    for q in range(k, p * row + (m + 5) // 4 * 4):
        st(w.system, q, 0.0)
    st(w.system, k, right)
    if along:
        st(w.system, k + 1, w.along[i])


@kernel
def eliminate(w, n, m, along):
    """The system's solution, by Gauss, into `step` (and `along`); the sign of its determinant, 0 if it has none.

    Three columns at a time: a row goes through memory a third as often."""
    A, row = w.system, stride(n)
    end = (m + 5) // 4 * 4 if along else (m + 4) // 4 * 4
    alone = m % 3
    sign = lift(1.0, zero(A))
    for k in range(alone):
        sign = take_pivot(A, row, k, sign)
        for i in range(k + 1, m):
            take_row(A, row, i, k, k // 4 * 4, end)
    for k in range(alone, m, 3):
        here, a, b, c = k // 4 * 4, k * row, (k + 1) * row, (k + 2) * row
        sign = take_pivot(A, row, k, sign)
        take_row(A, row, k + 1, k, here, end)
        sign = take_pivot(A, row, k + 1, sign)
        take_row(A, row, k + 2, k, here, end)
        take_row(A, row, k + 2, k + 1, here, end)
        sign = take_pivot(A, row, k + 2, sign)
        ab, ac, bc = ld(A, a + k + 1), ld(A, a + k + 2), ld(A, b + k + 2)
        first, second, third = ld(A, a + k), ld(A, b + k + 1), ld(A, c + k + 2)
        for i in range(k + 3, m):
            d = i * row
            x = ld(A, d + k) * first
            y = (ld(A, d + k + 1) - x * ab) * second
            z = (ld(A, d + k + 2) - x * ac - y * bc) * third
            for j in range((k + 3) // 4 * 4, end, 4):
                rest = ld(A, d + j, Quad) - ld(A, a + j, Quad) * x - ld(A, b + j, Quad) * y
                st(A, d + j, rest - ld(A, c + j, Quad) * z)
    put_back(w, row, m, m, w.step)
    if along:
        put_back(w, row, m, m + 1, w.along)
    return sign


@kernel
def take_pivot(A, row, k, sign):
    """Inverts a pivot in its place; the sign of the determinant up to it."""
    pivot = ld(A, k * row + k)
    st(A, k * row + k, 1.0 / pivot)
    return select(less(pivot, 0.0), -sign, select(less(0.0, pivot), sign, 0.0 * sign))


@kernel
def take_row(A, row, i, k, here, end):
    """Row i without column k, from a place on."""
    ratio = ld(A, i * row + k) * ld(A, k * row + k)
    for j in range(here, end, 4):
        st(A, i * row + j, ld(A, i * row + j, Quad) - ld(A, k * row + j, Quad) * ratio)


@kernel
def put_back(w, row, m, column, x):
    """The solution for the right side in a column."""
    A = w.system
    for k in range(m - 1, -1, -1):
        found = ld(A, k * row + column) * ld(A, k * row + k)
        x[w.listed[k]] = found
        for i in range(k):
            st(A, i * row + column, ld(A, i * row + column) - ld(A, i * row + k) * found)


@kernel
def shorten(w, first, n, law, a, squares):
    """How much of the step is taken, per lane, what it leaves (`judge`), and whether that is less."""
    one, o = lift(1.0, squares), lift(0.0, squares)
    t, best, least, looking = one, o, lift(1e300, squares), one
    best_worst = least
    for _ in range(SHORTEST + 1):
        found, worst = judge(w, first, n, law, t, a)
        better = less(found, least)
        best, least, best_worst = (
            select(better, t, best),
            select(better, found, least),
            select(better, worst, best_worst),
        )
        looking = select(less(found, squares * (1.0 - ENOUGH * t)), o, looking)
        if not some(less(0.5, looking)):
            break
        t = select(less(0.5, looking), 0.5 * t, t)
    return best, least, best_worst, less(least, squares * (1.0 - 1e-6))


@kernel
def newton(w, first, n, law, tolerance, least, most, going):
    """From `impulse` on, where a lane is `going` (1 or 0): as many steps as it takes, at most `most`. Returns how many, and
    what the map leaves. `least`: the a to begin with."""
    o, one = zero(w.delassus), lift(1.0, zero(w.delassus))
    goal = tolerance * tolerance + o
    near = goal * (NEAR * NEAR)
    a, count = least + o, o
    for i in range(n):
        w.home[i], w.home_rate[i] = w.impulse[i], w.rate[i]
    squares, left = judge(w, first, n, law, None, a)
    inner, going = left, select(less(left, lift(1e300, o)), going, o)
    for _ in range(most):
        if some(less(inner, goal)):
            put_inside(w, first, n, law, select(less(inner, goal), going, o))
            _, left = judge(w, first, n, law, None, o)
            going = select(less(goal, left), going, o)
            squares, inner = judge(w, first, n, law, None, a)
        if not some(less(0.5, going)):
            break
        m, _moving = assemble(w, first, n, law, a, False)
        eliminate(w, n, m, False)
        respond(w, n, w.step, w.change)
        t, found, worst, better = shorten(w, first, n, law, a, squares)
        taken = less(o, select(better, t, o) * going)
        for i in range(n):  # a step that is not taken may be NaN
            x, u = w.impulse[i], w.rate[i]
            w.impulse[i], w.rate[i] = select(taken, x + t * w.step[i], x), select(taken, u + t * w.change[i], u)
        squares, inner = select(taken, found, squares), select(taken, worst, inner)
        count = count + going
        # The problem is solved, or given up.
        solved = select(less(inner, near), going, o)
        lost = select(better, o, going) * (1.0 - solved)
        if some(less(0.5, solved + lost)):
            move_home(w, n, solved, lost)
            a = select(less(0.5, solved), maximum(a * LESS, least + o), a)
            a = select(less(0.5, lost), minimum(maximum(a * MORE, lift(TRIED_AGAIN, o)), MOST * one), a)
            squares, inner = judge(w, first, n, law, None, a)
    if some(less(0.5, going)):
        put_inside(w, first, n, law, going)
        _, left = judge(w, first, n, law, None, o)
    return count, sqrt(left)


@kernel
def move_home(w, n, solved, lost):
    """Home to where the iteration stands, or the iteration back home."""
    for i in range(n):
        x, u, home, rate = w.impulse[i], w.rate[i], w.home[i], w.home_rate[i]
        w.home[i], w.home_rate[i] = select(less(0.5, solved), x, home), select(less(0.5, solved), u, rate)
        w.impulse[i], w.rate[i] = select(less(0.5, lost), home, x), select(less(0.5, lost), rate, u)
