"""Gauss and Jordan: rows of A x = b taken to give some of the variables by the others (reduction.py has the symbols).

First variables that stand in one row only, those first that nothing bounds: slacks and torques, for nothing. Then each row
takes one of the largest of its entries of other free variables, or else of those with bounds. Zeros are skipped.
"""

from __future__ import annotations

from saltus.control.cholesky import along, dot, padded
from saltus.control.interior_program import DOUBLE, ENDLESS, NO_FRICTION
from saltus.kernel import Layout, Quad, fabs, kernel, ld, less, maximum, quad, select, some, sqrt, st, tail, zero

SMALL = 1e5
"""Entries of a row below so many roundings of its largest ones, those at the beginning and those taken off, are zero; in
single precision a hundredth of it."""

FREE, BOUNDED, LOADED, FIXED, TAKEN = range(5)

LEAST_PIVOT = 0.5
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
    nrm={
        "pivot_row": int,
        "taken": int,
        "kept": int,
        "ended": int,
        "biggest": None,
        "stiff": None,
        "inverse_pivot": None,
    },
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
def sort_columns(w, n, lower, upper, cones, friction, nc):
    """Free variables, those with bounds, those in cones, and those without a choice; what has none in all lanes is
    `fixed`."""
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


@kernel
def append(w, n, sort, count):
    """Columns of a sort behind those that there are; how many there are then."""
    for j in range(n):
        if w.position[j] == sort:
            w.order[count] = j
            count = count + 1
    return count


@kernel
def eliminate(w, n, m, A, b):
    """Gauss and Jordan. How many rows were taken; by variables that stand in them alone, first of all free ones; and by
    those and other free ones."""
    row, o = stride(n), zero(w.eliminated)
    for i in range(m):
        w.biggest[i], w.taken[i] = sqrt(along(tail(A, i * n), tail(A, i * n), n)), -1
    lonely = append_alone(w, n, m, A, FREE, 0)
    alone = append_alone(w, n, m, A, BOUNDED, lonely)
    free = append(w, n, FREE, alone)
    bounded = append(w, n, BOUNDED, free)
    loaded = append(w, n, LOADED, bounded)
    append(w, n, FIXED, loaded)
    for i in range(m):
        copy_row(w, n, row, i, A, b, loaded)
        for k in range(0, padded(m), 4):
            st(w.waiting, i * padded(m) + k, quad(w.waiting, o, o, o, o))
    find_small(w)
    for s in range(alone):
        scale_row(w, m, row, s, w.pivot_row[s])
    steps = alone + 0
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
    return steps, lonely, alone, unbounded


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
    there = ld(b, i)
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
def append_alone(w, n, m, A, sort, steps):
    """Variables of a sort that stand in one row alone, and may be taken: behind those that there are; how many there are
    then."""
    for j in range(n):
        if w.position[j] == sort:
            i = only_row(w, n, m, A, j)
            if i >= 0:
                w.order[steps], w.position[j] = j, TAKEN
                w.pivot_row[steps], w.taken[i] = i, steps
                steps = steps + 1
    return steps


@kernel
def only_row(w, n, m, A, j):
    """The row in which variable j stands alone, if that may be taken; else -1."""
    found, count = -1, 0
    for i in range(m):
        x = fabs(ld(A, i * n + j))
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
