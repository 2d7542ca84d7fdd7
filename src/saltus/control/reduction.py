"""Equalities of a quadratic program taken out of it: A x = b gives some of the variables by the others.

    x_B = beta - T w,    w = x_N        minimise 1/2 x'Qx + c'x    becomes    minimise 1/2 w'Hw + h'w

Gauss and Jordan. First variables that nothing bounds and that stand in one row only: slacks, torques without limits. Then
each row takes the largest of its entries of other free variables, or else of those with bounds, which become rows of the
reduced program: lower <= beta - T w <= upper. Columns change places so that those taken stand in front. What is left are
rows of forces in cones: if they are not zero they become equalities of the reduced program, else they are dropped, and
whether they agree with the others is seen from the residual of the solution. Zeros are skipped, of A as of Q.

| code | what | shape |
|---|---|---|
| `eliminated` | A, b by columns as in `order`; in the end T, beta in the rows that were taken | m, stride(n) |
| `factors`, `waiting` | what each step took from other rows; what was taken from rows that waited | m padded(m) |
| `right` | right sides of A x = b, or multipliers | padded(m) |
| `order`, `position` | which variable stands in a column, and the other way | n |
| `pivot_row`, `taken` | the row of each step; the step of each row, or -1 | m |
| `curved` | Q_BB T - Q_BN | m, stride |

O(n^3).
"""

from __future__ import annotations

from saltus.control.cholesky import dot, padded, total
from saltus.control.convexity import skewness
from saltus.control.interior_point import COST, DOUBLE, ENDLESS, LINEAR, NO_FRICTION, vector
from saltus.kernel import (
    Layout,
    Quad,
    fabs,
    kernel,
    ld,
    less,
    lift,
    maximum,
    quad,
    select,
    some,
    sqrt,
    st,
    tail,
    zero,
)

SMALL = 1e5
"""Entries of a row below so many roundings of its largest ones, those at the beginning and those taken off, are zero; in
single precision a hundredth of it."""

STIFF = 1e-4

FREE, BOUNDED, LOADED, FIXED = range(4)

LEAST_PIVOT = 0.1
"""The share of its row's largest entry that is enough to be taken out."""

FAIR, FEW = 1e-4, 1e-7
"""The shares of what its row has seen that an entry must have to be taken out: as it comes; as the best of all rows."""

POOR = 1e-2
"""And of what is left of its row, if it has bounds: others grow by as much, and the row may as well stay one."""

ALONE = 1e-3
"""The share of its row's largest entry that a variable must have to be taken for standing in it alone."""

REDUCTION = Layout(
    one={"small": None, "skew": None},
    nre={"eliminated": None},
    nrf={"factors": None},
    nrw={"waiting": None},
    nrr={"right": None},
    nrg={"curved": None},
    nrc={"order": int, "position": int, "listed": int, "start": int, "share": None, "fixed": None},
    nrm={"pivot_row": int, "taken": int, "kept": int, "biggest": None, "stiff": None, "inverse_pivot": None},
)


def reduction_sizes(n: int, m: int) -> dict[str, int]:
    """The sizes of `REDUCTION`."""
    row, width = (n + 4) // 4 * 4, -(-m // 4) * 4
    return {
        "nre": m * row + 4,
        "nrf": m * width,
        "nrw": m * width,
        "nrr": width,
        "nrg": m * row + 4,
        "nrc": max(n, m),
        "nrm": m,
    }


@kernel
def stride(n):
    """Numbers in a row: n and the right side, in quads."""
    return (n + 4) // 4 * 4


@kernel
def order_columns(w, n, lower, upper, cones, friction, nc):
    """Free variables first, then those with bounds, those in cones, and those without a choice; how many of the first, of
    the first two and of the first three sorts. What has no choice in all lanes is `fixed`."""
    o = zero(w.eliminated)
    for j in range(n):
        low, high = ld(lower, j), ld(upper, j)
        ends = maximum(low + ENDLESS, ENDLESS - high)
        w.position[j] = FREE if not some(less(0.0, ends)) else BOUNDED if some(less(low, high)) else FIXED
        w.fixed[j] = low
    for c in range(nc):
        a, e, j = cones[3 * c], cones[3 * c + 1], cones[3 * c + 2]
        low, high = maximum(ld(lower, j), o), ld(upper, j)
        is_open = some(less(o, select(less(NO_FRICTION, ld(friction, c)), high, o)))
        w.position[a], w.fixed[a] = LOADED if is_open else FIXED, o
        w.position[e], w.fixed[e] = LOADED if is_open else FIXED, o
        w.position[j], w.fixed[j] = LOADED if some(less(low, high)) else FIXED, low
    free = append(w, n, FREE, 0)
    bounded = append(w, n, BOUNDED, free)
    loaded = append(w, n, LOADED, bounded)
    append(w, n, FIXED, loaded)
    return free, bounded, loaded


@kernel
def append(w, n, sort, count):
    """Columns of a sort behind those that there are; how many there are then."""
    for j in range(n):
        if w.position[j] == sort:
            w.order[count] = j
            count = count + 1
    return count


@kernel
def eliminate(w, n, m, A, b, free, bounded, loaded):
    """Gauss and Jordan. How many rows were taken; by variables that stand in them alone; by free ones."""
    row, o = stride(n), zero(w.eliminated)
    for i in range(m):
        copy_row(w, n, row, i, A, b, loaded)
        for k in range(0, padded(m), 4):
            st(w.waiting, i * padded(m) + k, quad(w.waiting, o, o, o, o))
    find_small(w)
    steps = 0
    for k in range(free):
        i = only_row(w, m, row, k)
        if i >= 0:
            swap(w, m, row, steps, k)
            scale_row(w, m, row, steps, i)
            steps = steps + 1
    alone = steps + 0
    for i in range(m - 1, -1, -1):
        if w.taken[i] < 0:
            k = last_entry(w, row, i, steps, free)
            if k >= 0:
                swap(w, m, row, steps, k)
                take(w, m, row, alone, steps, i, n)
                steps = steps + 1
    unbounded = take_best(w, m, row, alone, steps, free, n, FAIR)
    steps = take_best(w, m, row, alone, unbounded, bounded, n, POOR)
    for s in range(alone):
        finish_row(w, m, row, alone, steps, w.pivot_row[s])
    return steps, alone, unbounded


@kernel
def copy_row(w, n, row, i, A, b, loaded):
    """A row with columns in order, four at a time where they are neighbours in A as well; what is fixed on the right."""
    E, o, k = w.eliminated, zero(w.eliminated), 0
    while k < n:
        j = w.order[k]
        if k + 3 < n and are_neighbours(w, k):
            st(E, i * row + k, ld(A, i * n + j, Quad))
            k = k + 4
        else:
            st(E, i * row + k, ld(A, i * n + j))
            k = k + 1
    for j in range(n, row):
        st(E, i * row + j, o)
    w.biggest[i], w.taken[i], there = size_of(tail(E, i * row), row), -1, ld(b, i)
    for k in range(loaded, n):
        there = there - ld(E, i * row + k) * w.fixed[w.order[k]]
        st(E, i * row + k, o)
    st(E, i * row + n, there)


@kernel
def are_neighbours(w, k):
    j = w.order[k]
    return w.order[k + 1] == j + 1 and w.order[k + 2] == j + 2 and w.order[k + 3] == j + 3


@kernel
def size_of(x, count):
    """Of `count` numbers, a multiple of four: the root of the sum of their squares."""
    return sqrt(dot(x, x, count))


@kernel
def find_small(w):
    o = zero(w.eliminated)
    w.small[0] = w.unit[0] * select(less(DOUBLE, w.unit[0]), SMALL * 0.01 + o, SMALL + o)


@kernel
def is_small(entry, least):
    """Whether it is no more than that, or no number, in some lane."""
    return some(less(select(less(least, entry), 1.0 + 0.0 * least, 0.0 * least), 0.5))


@kernel
def last_entry(w, row, i, first, end):
    """The last column in a range whose entry is not much smaller than the largest of its row: of inertia matrices, the way
    that keeps them sparse. -1 if they are small beside what the row has seen, in some lane: others may do better."""
    E, best, found = w.eliminated, zero(w.eliminated), -1
    for k in range(first, end):
        best = maximum(best, fabs(ld(E, i * row + k)))
    if first < end and not is_small(best, FAIR * w.biggest[i]):
        least = best * LEAST_PIVOT
        k = end - 1
        while k >= first and found < 0:
            if not some(less(fabs(ld(E, i * row + k)), least)):
                found = k + 0
            k = k - 1
    return found


@kernel
def take_best(w, m, row, alone, steps, end, n, least):
    """Rows that are left, by variables before `end`, that first whose entry is largest beside what the row has seen; how
    many have been taken then."""
    searching = True
    while searching:
        best, found, column = zero(w.eliminated), -1, -1
        for i in range(m):
            if w.taken[i] < 0:
                k, share = largest_entry(w, row, i, steps, end, n, least)
                if k >= 0 and some(less(best, share)):
                    best, found, column = maximum(best, share), i + 0, k
        searching = column >= 0
        if searching:
            swap(w, m, row, steps, column)
            take(w, m, row, alone, steps, found, n)
            steps = steps + 1
    return steps


@kernel
def only_row(w, m, row, k):
    """The row in which column k stands alone, if that may be taken; else -1."""
    E, found, count = w.eliminated, -1, 0
    for i in range(m):
        x = fabs(ld(E, i * row + k))
        if some(less(0.0, x)):
            count = count + 1
            if count > 1:
                break
            small = is_small(x, ALONE * w.biggest[i])
            found = i if w.taken[i] < 0 and not small else -1
    return found if count == 1 else -1


@kernel
def largest_entry(w, row, i, first, end, n, least):
    """The column of the largest entry of a row in a range, -1 if that is too little in some lane; and its share of what the
    row has seen. `least`: of what is left of it."""
    E, best, found, share = w.eliminated, zero(w.eliminated), -1, zero(w.eliminated)
    for k in range(first, end):
        x = fabs(ld(E, i * row + k))
        if some(less(best, x)):
            best, found = maximum(best, x), k + 0
    if found >= 0:
        for k in range(end, n):
            best = maximum(best, fabs(ld(E, i * row + k)))
        entry = fabs(ld(E, i * row + found))
        share = entry / w.biggest[i]
        if is_small(entry, maximum(w.small[0], FEW + entry * 0.0) * w.biggest[i]) or some(less(entry, least * best)):
            found = -1
    return found, share


@kernel
def swap(w, m, row, a, b):
    if a != b:
        E = w.eliminated
        for i in range(m):
            x = ld(E, i * row + a)
            st(E, i * row + a, ld(E, i * row + b))
            st(E, i * row + b, x)
        k = w.order[a]
        w.order[a] = w.order[b]
        w.order[b] = k


@kernel
def scale_row(w, m, row, step, i):
    E = w.eliminated
    inverse = 1.0 / ld(E, i * row + step)
    for j in range(step // 4 * 4, row, 4):
        st(E, i * row + j, ld(E, i * row + j, Quad) * inverse)
    w.inverse_pivot[step] = inverse
    w.pivot_row[step], w.taken[i] = i, step


@kernel
def take(w, m, row, alone, step, i, n):
    """Row i gives the variable of a column, which leaves all other rows but those that wait for `finish_row`."""
    E = w.eliminated
    scale_row(w, m, row, step, i)
    begin = step // 4 * 4
    big = size_of(tail(E, i * row + begin), row - begin)
    for k in range(padded(m)):
        st(w.factors, step * padded(m) + k, 0.0)
    for k in range(m):
        if k != i and not is_alone(w, alone, k):
            factor = ld(E, k * row + step)
            st(w.factors, step * padded(m) + k, factor)
            if some(less(0.0, fabs(factor))):
                w.biggest[k] = maximum(w.biggest[k], big * fabs(factor))
                for j in range(begin, row, 4):
                    st(E, k * row + j, ld(E, k * row + j, Quad) - ld(E, i * row + j, Quad) * factor)


@kernel
def is_alone(w, alone, i):
    """Whether a row was taken by a variable that stands in it alone."""
    return 0 <= w.taken[i] < alone


@kernel
def finish_row(w, m, row, alone, steps, i):
    """What the variables that were taken out later leave of a row that was waiting."""
    E, count, width = w.eliminated, 0, padded(m)
    for s in range(alone, steps):
        factor = ld(E, i * row + s)
        st(w.waiting, i * width + w.pivot_row[s], factor)
        if some(less(0.0, fabs(factor))):
            w.listed[count] = s
            count = count + 1
    for j in range(steps // 4 * 4, row, 4):
        rest = ld(E, i * row + j, Quad)
        for e in range(count):
            k = w.pivot_row[w.listed[e]]
            rest = rest - ld(E, k * row + j, Quad) * ld(w.waiting, i * width + k)
        st(E, i * row + j, rest)


@kernel
def forward(w, m, steps, alone):
    """What elimination makes of `right`."""
    x, width = w.right, padded(m)
    for s in range(steps):
        i = w.pivot_row[s]
        y = ld(x, i) * w.inverse_pivot[s]
        if s >= alone:
            for k in range(0, width, 4):
                st(x, k, ld(x, k, Quad) - ld(w.factors, s * width + k, Quad) * y)
        st(x, i, y)
    for t in range(alone):
        i = w.pivot_row[t]
        st(x, i, ld(x, i) - dot(tail(w.waiting, i * width), x, width))


@kernel
def backward(w, m, steps, alone):
    """Multipliers of A x = b, by those of the eliminated rows, in `right`."""
    y, width = w.right, padded(m)
    for t in range(alone):
        i = w.pivot_row[t]
        factor = ld(y, i)
        for k in range(0, width, 4):
            st(y, k, ld(y, k, Quad) - ld(w.waiting, i * width + k, Quad) * factor)
    for s in range(steps - 1, -1, -1):
        i = w.pivot_row[s]
        rest = ld(y, i)
        if s >= alone:
            rest = rest - dot(tail(w.factors, s * width), y, width)
        st(y, i, rest * w.inverse_pivot[s])


@kernel
def keep_rows(w, n, m, unbounded, steps, first, lower, upper):
    """Rows of the reduced program: variables with bounds that were taken, and rows that are left, unless they are zero. How
    many of all, and of the first sort; and how many operations all rows have seen."""
    E, row, o, rows, cleared = w.eliminated, stride(n), zero(w.eliminated), 0, 0
    for s in range(unbounded, steps):
        i, v = w.pivot_row[s], w.order[s]
        for j in range(first):
            st(w.general, rows * first + j, -ld(E, i * row + steps + j) if j < n - steps else o)
        there = ld(E, i * row + n)
        low, high = ld(lower, v), ld(upper, v)
        w.lower[first + rows] = select(less(-ENDLESS, low), low - there, low)
        w.upper[first + rows], w.give[first + rows] = select(less(high, ENDLESS), high - there, high), o
        rows = rows + 1
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
