"""Equalities of a quadratic program taken out of it: A x = b gives some of the variables by the others.

    x_B = beta - T w,    w = x_N        minimise 1/2 x'Qx + c'x    becomes    minimise 1/2 w'Hw + h'w

Variables that nothing bounds are taken, and others that stand in one row only (elimination.py); their bounds become rows of
the reduced program: lower <= beta - T w <= upper. Columns change places so that those taken stand in front. What is left are
rows of forces in cones: if they are not zero they become equalities of the reduced program, else they are dropped, and
whether they agree with the others is seen from the residual of the solution. Zeros are skipped, of A as of Q.

| code | what | shape |
|---|---|---|
| `eliminated` | A, b by columns as in `order`; in the end T, beta in the rows that were taken | m, stride(n) |
| `factors`, `waiting` | what each step took from other rows; what was taken from rows that waited | m padded(m) |
| `right` | right sides of A x = b, or multipliers | padded(m) |
| `order`, `position` | which variable stands in a column, and the other way | n |
| `pivot_row`, `taken` | the row of each step; the step of each row, or -1 | m |
| `ended` | the step of each row of the reduced program that was a bound | m |
| `curved` | Q_BB T - Q_BN | m, stride |

O(n^3).
"""

from __future__ import annotations

from saltus.control.cholesky import padded, total
from saltus.control.convexity import skewness
from saltus.control.elimination import is_small, stride
from saltus.control.interior_program import COST, ENDLESS, LINEAR, vector
from saltus.kernel import Quad, fabs, kernel, ld, less, lift, maximum, quad, select, some, st, zero

STIFF = 1e-4


@kernel
def keep_rows(w, n, m, lonely, alone, unbounded, steps, first, lower, upper):
    """Rows of the reduced program: variables with bounds that were taken, and rows that are left, unless they are zero. How
    many of all, and of the first sort; and how many operations all rows have seen."""
    E, row, o, rows, cleared = w.eliminated, stride(n), zero(w.eliminated), 0, 0
    for s in range(lonely, steps):
        if s < alone or s >= unbounded:
            w.ended[rows] = s
            rows = rows + 1
    for r in range(rows):
        s = w.ended[r]
        i, v = w.pivot_row[s], w.order[s]
        for j in range(first):
            st(w.general, r * first + j, -ld(E, i * row + steps + j) if j < n - steps else o)
        there = ld(E, i * row + n)
        low, high = ld(lower, v), ld(upper, v)
        w.lower[first + r] = select(less(-ENDLESS, low), low - there, low)
        w.upper[first + r], w.give[first + r] = select(less(high, ENDLESS), high - there, high), o
    taken = rows + 0
    for i in range(m):
        if w.taken[i] < 0:
            cleared = cleared + clear_with(w, n, m, row, steps, steps + cleared, i)
    for i in range(m):
        w.kept[i] = -1
        if w.taken[i] < 0:
            big = o
            for k in range(steps, n):
                big = maximum(big, fabs(ld(E, i * row + k)))
            there = less(w.small[0] * w.biggest[i], big)
            if some(there):
                for j in range(first):
                    x = ld(E, i * row + steps + j) if j < n - steps else o
                    st(w.general, rows * first + j, select(there, x, o))
                end = select(there, ld(E, i * row + n), o)
                w.lower[first + rows], w.upper[first + rows], w.give[first + rows] = end, end, o
                w.kept[i] = rows
                rows = rows + 1
    return rows, taken, steps + cleared


@kernel
def clear_with(w, n, m, row, steps, s, i):
    """Takes the largest entry of a row out of all others that are left, so that those that depend on it become zero; how
    many steps that was."""
    E, best, found = w.eliminated, zero(w.eliminated), -1
    for k in range(steps, n):
        x = fabs(ld(E, i * row + k))
        if some(less(best, x)):
            best, found = maximum(best, x), k + 0
    done = 0
    if found >= 0 and not is_small(fabs(ld(E, i * row + found)), w.small[0] * w.biggest[i]):
        inverse = 1.0 / ld(E, i * row + found)
        w.pivot_row[s], w.inverse_pivot[s], done = i, lift(1.0, inverse), 1
        for k in range(m, padded(m)):
            st(w.factors, s * padded(m) + k, 0.0)
        for k in range(m):
            factor = ld(E, k * row + found) * inverse if k != i and w.taken[k] < 0 else zero(E)
            st(w.factors, s * padded(m) + k, factor)
            if some(less(0.0, fabs(factor))):
                for j in range(steps // 4 * 4, row, 4):
                    st(E, k * row + j, ld(E, k * row + j, Quad) - ld(E, i * row + j, Quad) * factor)
    return done


@kernel
def stiffen(w, left, taken, rows, first, size):
    """Costs on what rows hold, which change nothing where they are met: H may be singular along them."""
    H, h, F, most = w.hessian, vector(w, LINEAR, size), w.general, zero(w.hessian)
    for i in range(left):
        most = maximum(most, ld(H, i * first + i))
    for r in range(taken, rows):
        squares = most * 0.0 + 1e-30
        for i in range(left):
            squares = squares + ld(F, r * first + i) * ld(F, r * first + i)
        cost = STIFF * most / squares
        w.stiff[r - taken] = cost
        w.base[0] = w.base[0] + 0.5 * cost * w.lower[first + r] * w.lower[first + r]
        for i in range(left):
            entry = cost * ld(F, r * first + i)
            if some(less(0.0, fabs(entry))):
                h[i] = ld(h, i) - entry * w.lower[first + r]
                for j in range(0, first, 4):
                    st(H, i * first + j, ld(H, i * first + j, Quad) + ld(F, r * first + j, Quad) * entry)


@kernel
def reduce_cost(w, n, m, steps, first, size, Q, c, tolerance):
    """H and h; `skew` is more than 0 where Q is not symmetric."""
    E, row, H, o = w.eliminated, stride(n), w.hessian, zero(w.eliminated)
    begin = steps // 4 * 4
    for k in range(n):
        w.position[w.order[k]] = k
    for i in range(first):
        for j in range(0, first, 4):
            st(H, i * first + j, quad(H, o, o, o, o))
        vector(w, LINEAR, size)[i] = o
    h, linear = vector(w, LINEAR, size), vector(w, COST, size)
    w.skew[0] = o
    for v in range(n):
        k = w.position[v]
        if k < steps:
            gather_basic(w, n, row, begin, steps, Q, v, k, tolerance)
        else:
            gather_other(w, n, row, first, h, steps, Q, v, k - steps, tolerance)
            linear[k - steps] = ld(c, v)
    multiply(w, n, row, first, h, steps)
    base = base_cost = o
    for s in range(steps):
        cost, i = ld(c, w.order[s]), w.pivot_row[s] * row + steps
        there = ld(E, i + n - steps)
        base, base_cost = base + 0.5 * there * ld(w.curved, s * row + n), base_cost + there * cost
        if some(less(0.0, fabs(cost))):
            for j in range(n - steps):
                linear[j] = ld(linear, j) - ld(E, i + j) * cost
    for j in range(n - steps):
        h[j] = ld(h, j) + ld(linear, j)
    w.base[0], w.base_cost[0] = base + base_cost, base_cost
    w.trifle[0] = o
    for i in range(first):
        for j in range(i):
            st(H, i * first + j, ld(H, j * first + i))


@kernel
def list_nonzero(w, n, Q, v, tolerance):
    """Lists the entries of row v of Q that are not zero; how many."""
    count, entry, end = 0, ld(Q, v * n + v), n // 4 * 4
    o = zero(Q)
    squares = quad(Q, o, o, o, o)
    for u in range(0, end, 4):
        squares = squares + ld(Q, v * n + u, Quad) * ld(Q, v * n + u, Quad)
    rest = total(squares)
    for u in range(end, n):
        rest = rest + ld(Q, v * n + u) * ld(Q, v * n + u)
    if not some(less(entry * entry, rest)):  # as of torques, forces, slacks
        return list_entry(w, n, Q, v, v, count, tolerance)
    for u in range(n):
        count = list_entry(w, n, Q, v, u, count, tolerance)
    return count


@kernel
def list_entry(w, n, Q, v, u, count, tolerance):
    if some(less(0.0, fabs(ld(Q, v * n + u)))):
        w.skew[0] = maximum(w.skew[0], skewness(Q, n, v, u, tolerance))
        w.listed[count] = u
        count = count + 1
    return count


@kernel
def gather_basic(w, n, row, begin, steps, Q, v, s, tolerance):
    """Row s of Q_BB T - Q_BN; behind it, of Q_BB beta."""
    E, G, count, inner = w.eliminated, w.curved, list_nonzero(w, n, Q, v, tolerance), 0
    o = zero(E)
    none = quad(E, o, o, o, o)
    for e in range(count):  # those that were taken come first
        u = w.listed[e]
        if w.position[u] < steps:
            w.listed[e] = w.listed[inner]
            w.listed[inner] = u
            w.start[inner], w.share[inner] = w.pivot_row[w.position[u]] * row, ld(Q, v * n + u)
            inner = inner + 1
    for j in range(begin, row - 4, 8):
        a, b = none, none
        for e in range(inner):
            k, share = w.start[e] + j, w.share[e]
            a, b = a + ld(E, k, Quad) * share, b + ld(E, k + 4, Quad) * share
        st(G, s * row + j, a)
        st(G, s * row + j + 4, b)
    if (row - begin) % 8 == 4:
        a = none
        for e in range(inner):
            a = a + ld(E, w.start[e] + row - 4, Quad) * w.share[e]
        st(G, s * row + row - 4, a)
    for e in range(inner, count):
        u = w.listed[e]
        k = s * row + w.position[u]
        st(G, k, ld(G, k) - ld(Q, v * n + u))


@kernel
def gather_other(w, n, row, first, h, steps, Q, v, i, tolerance):
    """Row i of Q_NN - Q_NB T, and of Q_NB beta."""
    E, H, count = w.eliminated, w.hessian, list_nonzero(w, n, Q, v, tolerance)
    for e in range(count):
        u = w.listed[e]
        x, k = ld(Q, v * n + u), w.position[u]
        if k < steps:
            from_row = w.pivot_row[k] * row
            for j in range(n - steps):
                st(H, i * first + j, ld(H, i * first + j) - ld(E, from_row + steps + j) * x)
            h[i] = ld(h, i) + ld(E, from_row + n) * x
        else:
            st(H, i * first + k - steps, ld(H, i * first + k - steps) + x)


@kernel
def multiply(w, n, row, first, h, steps):
    """H += T' (Q_BB T - Q_BN), from the diagonal on, and h -= T' Q_BB beta: four rows at a time."""
    E, G, H, left, o = w.eliminated, w.curved, w.hessian, n - steps, zero(w.eliminated)
    for i in range(0, left, 4):
        for j in range(i, left, 4):
            none = quad(E, o, o, o, o)
            A, B, C, D = none, none, none, none
            for s in range(steps):
                g, k = ld(G, s * row + steps + j, Quad), w.pivot_row[s] * row + steps + i
                A, B = A + g * ld(E, k), B + g * ld(E, k + 1)
                C, D = C + g * ld(E, k + 2), D + g * ld(E, k + 3)
            k = i * first + j
            add_quad(H, k, A)
            add_quad(H, k + first, B)
            add_quad(H, k + 2 * first, C)
            add_quad(H, k + 3 * first, D)
    for s in range(steps):
        k, factor = w.pivot_row[s] * row + steps, -ld(G, s * row + n)
        if some(less(0.0, fabs(factor))):
            for j in range(0, left, 4):
                add_quad(h, j, ld(E, k + j, Quad) * factor)
    for i in range(left, first):  # what lies behind the end
        h[i] = o
        for j in range(first):
            st(H, i * first + j, o)
            st(H, j * first + i, o)


@kernel
def add_quad(x, k, y):
    st(x, k, ld(x, k, Quad) + y)
