"""What a point misses of the conditions of a program, by the numbers that were given; and proofs that no point is feasible.

    A x = b,  x in C,      Q x + c + A'y + z = 0,      z'x the most that z'C is,      C: cones and bounds

| code | what | shape |
|---|---|---|
| `bent`, `pulled` | Q x, A'y | n |
| `slope` | Q x + c + A'y + z | n |
| `position` | which variables are in cones | n |

| `report` | |
|---|---|
| 0, 1 | iterations; status |
| 2 to 5 | residuals: A x - b and bounds; the gradient; the work of multipliers; cones |
"""

from __future__ import annotations

from saltus.control.cholesky import along, total
from saltus.control.interior_program import DOUBLE, ENDLESS
from saltus.control.quadratic_program import DEADLINE, EMPTY, INFEASIBLE, MAX_ITERATIONS, NOT_CONVEX, SOLVED
from saltus.kernel import Quad, fabs, kernel, ld, less, lift, maximum, minimum, quad, select, sqrt, st, tail, zero

AWAY = 1e3
"""How much further than the point at hand, at least, a point would have to be that meets contradictions."""

VANISHING = 1e-6
"""The share of the largest variable below which others are nothing: rows of these alone have only rounding to show."""


@kernel
def mark_cones(w, n, nc, cones):
    """`position`: 1 of variables in cones, else 0."""
    for j in range(n):
        w.position[j] = 0
    for k in range(3 * nc):
        w.position[cones[k]] = 1


@kernel
def find_missed(w, n, nc, cones, c, equalities, friction, lower, upper, x, z, trifle, report):
    """Residuals. The largest of them as a share of its equation; the largest variable; 1 of what is no problem, else 0.
    `equalities`: what is left of them, the largest, as it is and as a share. `trifle`: costs that are next to none."""
    (equal, share), o, largest = equalities, zero(x), find_largest(x, n)
    one = lift(1.0, o)
    steep, most = o, lift(1e-30, o)
    value, bent_work, work = o, o, o
    for j in range(n):
        steep, inner = maximum(steep, fabs(w.slope[j])), maximum(fabs(ld(c, j)), fabs(ld(w.bent, j)))
        most = maximum(maximum(most, inner), maximum(fabs(ld(z, j)), fabs(ld(w.pulled, j))))
        curved, linear = ld(x, j) * ld(w.bent, j), ld(x, j) * ld(c, j)
        value, bent_work, work = value + 0.5 * curved + linear, bent_work + fabs(curved), work + fabs(linear)
    gap = beyond = outside = empty = o
    for j in range(n):
        if w.position[j] == 0:
            low, high, at, pull = ld(lower, j), ld(upper, j), ld(x, j), ld(z, j)
            up, down = maximum(pull, o), maximum(-pull, o)
            ends, begins = less(high, ENDLESS), less(-ENDLESS, low)
            beyond = maximum(beyond, maximum(low - at, at - high))
            outside = maximum(outside, maximum(select(ends, o, up), select(begins, o, down)))
            gap = gap + select(ends, up * (high - at), o) + select(begins, down * (at - low), o)
            empty = select(less(high, low), one, empty)
    missed = o
    for k in range(nc):
        a, e, j = cones[3 * k], cones[3 * k + 1], cones[3 * k + 2]
        fx, fy, fz, mu = ld(x, a), ld(x, e), ld(x, j), ld(friction, k)
        low, high, px, py = maximum(ld(lower, j), o), ld(upper, j), ld(z, a), ld(z, e)
        ends = less(high, ENDLESS)
        missed = maximum(missed, sqrt(fx * fx + fy * fy) - mu * maximum(fz, o))
        beyond = maximum(beyond, maximum(low - fz, fz - high))
        across = mu * sqrt(px * px + py * py)
        rate = ld(z, j) + across  # of z'x along the edge that it likes best
        up, down = select(ends, maximum(rate, o), o), maximum(-rate, o)
        outside = maximum(outside, select(ends, o, rate))
        gap = gap + up * (high - fz) + down * (fz - low) + (across * fz - fx * px - fy * py)
        tangents = maximum(has_end(lower, upper, a), has_end(lower, upper, e))
        wrong = maximum(maximum(-mu, -high), maximum(tangents, low - high))
        empty = select(less(o, wrong), one, empty)
    work = maximum(maximum(maximum(fabs(value), bent_work), work), trifle)
    gap = fabs(gap) / (work + 1e-30)
    st(report, 2, maximum(equal, beyond))
    st(report, 3, maximum(steep, outside))
    st(report, 4, gap)
    st(report, 5, missed)
    left = maximum(maximum(share, maximum(beyond, missed) / largest), maximum(maximum(steep, outside) / most, gap))
    return left, largest, empty


@kernel
def conclude(left, tolerance, late, sure, concave, skew, empty, report):
    """The status. `sure`: that nothing is feasible; `concave`, `skew`: what costs are that they should not be."""
    o = zero(report)
    status = select(less(0.5, late), 1.0 * DEADLINE + o, 1.0 * MAX_ITERATIONS + o)
    status = select(less(0.5, sure), 1.0 * INFEASIBLE + o, status)
    status = select(less(left, tolerance), 1.0 * SOLVED + o, status)
    concave = select(less(status, 1.0 * INFEASIBLE + o), concave, o)
    status = select(less(0.5, concave), 1.0 * NOT_CONVEX + o, status)
    empty = select(less(o, skew), lift(1.0, o), empty)
    st(report, 1, select(less(0.5, empty), 1.0 * EMPTY + o, status))


@kernel
def contradicts(w, n, m, nc, steps, cones, A, b, friction, lower, upper, far, y, z):
    """1 where no x of places up to `far` can be: for all that are within bounds and cones (A'y + z)'x is more than b'y and
    the largest z'x allow. Else 0. Without z, it is that of what is held alone."""
    o = zero(A)
    work, size, left = o, o, o
    for j in range(n):
        st(w.pulled, j, o)
    for i in range(m):
        part = ld(b, i) * ld(y, i)
        add_row(A, i, n, ld(y, i), w.pulled)
        work, size = work + part, size + fabs(part)
    if z is None:
        for k in range(steps, n):
            j, held = w.order[k], w.held[k - steps]
            part = held * ld(w.pulled, j) * w.fixed[j]
            st(w.pulled, j, ld(w.pulled, j) * (1.0 - held))
            work, size = work - part, size + fabs(part)
    else:
        for j in range(n):
            if w.position[j] == 0:
                low, high, pull = ld(lower, j), ld(upper, j), ld(z, j)
                pull = select(less(high, ENDLESS), pull, minimum(pull, o))
                pull = select(less(-ENDLESS, low), pull, maximum(pull, o))
                part = pull * select(less(o, pull), high, select(less(pull, o), low, o))
                st(w.pulled, j, ld(w.pulled, j) + pull)
                work, size = work + part, size + fabs(part)
        for k in range(nc):
            a, e, j = cones[3 * k], cones[3 * k + 1], cones[3 * k + 2]
            low, high, px, py = maximum(ld(lower, j), o), ld(upper, j), ld(z, a), ld(z, e)
            rate = ld(z, j) + ld(friction, k) * sqrt(px * px + py * py)
            excess = select(less(high, ENDLESS), o, maximum(rate, o))
            part = select(less(o, rate - excess), rate * high, (rate - excess) * low)
            st(w.pulled, a, ld(w.pulled, a) + px)
            st(w.pulled, e, ld(w.pulled, e) + py)
            st(w.pulled, j, ld(w.pulled, j) + ld(z, j) - excess)
            work, size = work + part, size + fabs(part)
    for j in range(n):
        left = left + fabs(ld(w.pulled, j))
    return select(less(far * left + DOUBLE * size, -work), lift(1.0, o), o)


@kernel
def row_times(A, i, n, x):
    return along(tail(A, i * n), x, n)


@kernel
def add_row(A, i, n, factor, x):
    """x + factor times row i."""
    end = n // 4 * 4
    for j in range(0, end, 4):
        st(x, j, ld(x, j, Quad) + ld(A, i * n + j, Quad) * factor)
    for j in range(end, n):
        st(x, j, ld(x, j) + ld(A, i * n + j) * factor)


@kernel
def find_largest(x, n):
    largest = lift(1e-30, zero(x))
    for j in range(n):
        largest = maximum(largest, fabs(ld(x, j)))
    return largest


@kernel
def equalities_missed(n, m, A, b, x):
    """What is left of them, the largest, as it is and as a share."""
    equal = share = zero(A)
    largest = find_largest(x, n)
    for i in range(m):
        rest, part = row_missed(A, i, n, b, x, largest)
        equal, share = maximum(equal, fabs(rest)), maximum(share, part)
    return equal, share


@kernel
def row_missed(A, i, n, b, x, largest):
    """b - A x of a row, and its size as a share of the row's: the root of the sum of the squares of what A x is made of, or
    b; of a row that all variables nearly vanish from, a little of what the largest of them would make of it."""
    o, first, end = zero(A), i * n, n // 4 * 4
    none = quad(A, o, o, o, o)
    found, squares, entries = none, none, none
    for j in range(0, end, 4):
        entry = ld(A, first + j, Quad)
        part = entry * ld(x, j, Quad)
        found, squares, entries = found + part, squares + part * part, entries + entry * entry
    value, square, whole = total(found), total(squares), total(entries)
    for j in range(end, n):
        entry = ld(A, first + j)
        part = entry * ld(x, j)
        value, square, whole = value + part, square + part * part, whole + entry * entry
    rest, least = ld(b, i) - value, VANISHING * largest
    size = maximum(sqrt(maximum(square, least * least * whole)), fabs(ld(b, i)))
    return rest, fabs(rest) / (size + 1e-30)


@kernel
def has_end(lower, upper, j):
    """More than 0 for a variable that has an end."""
    return maximum(ld(lower, j) + ENDLESS, ENDLESS - ld(upper, j))
