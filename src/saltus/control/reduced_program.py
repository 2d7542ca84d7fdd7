"""Quadratic programs of whole-body control, with friction cones as they are.

    minimise 1/2 x'Qx + c'x    subject to    A x = b,  |(x_fx, x_fy)| <= mu x_fz,  lower <= x <= upper

    Q x + c + A'y + z = 0,     z in the normal cone of cones and bounds at x

Equalities are taken out (reduction.py), what is left is solved by an interior point method (interior_point.py), and the
solution is judged by the numbers that were given.

| `report` | |
|---|---|
| 0, 1 | iterations; status |
| 2 to 5 | residuals: A x - b and bounds; the gradient; the work of multipliers; cones |

Reference: B. Acosta, FCCQP: A whole-body QP with full friction cone constraints (2024).
"""

from __future__ import annotations

from saltus.control.cholesky import dot, padded, total
from saltus.control.cones import NOTHING
from saltus.control.interior_point import (
    CHANGE,
    DOUBLE,
    ENDLESS,
    PLACE,
    PROGRAM,
    PULL,
    REST,
    SLOPE,
    STEP,
    find_unit,
    minimise,
    vector,
)
from saltus.control.quadratic_program import (
    DEADLINE,
    EMPTY,
    INFEASIBLE,
    MAX_ITERATIONS,
    NOT_CONVEX,
    PROBLEM,
    SOLVED,
    TABLES,
)
from saltus.control.reduction import (
    REDUCTION,
    backward,
    eliminate,
    forward,
    keep_rows,
    order_columns,
    reduce_cost,
    stiffen,
    stride,
)
from saltus.kernel import (
    Quad,
    declare,
    fabs,
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
from saltus.spatial.algebra import Vec3

FAR = 1e-3
"""The share of what is there by which a step is long."""

SHARED = 2
"""How often what is left of slopes is shared out."""

AWAY = 1e3
"""How much further than the point at hand, at least, a point would have to be that meets contradictions."""


@declare(
    TABLES,
    inputs=PROBLEM | {"start_x": "sn optional", "start_z": "sn optional"},
    outputs={"x": "sn", "y": "sm", "z": "sn", "report": "6"},
    work=PROGRAM.extended(**REDUCTION.groups, sn={"slope": None}, sn_bent={"bent": None}, sn_pulled={"pulled": None}),
    double_only=True,
)
def _reduced_program(
    tree, options, Q, c, A, b, friction, lower, upper, limits, start_x, start_z, w, x, y, z, report
):  # fmt: skip
    """`options`: the most iterations, and ticks of the clock / 1024; `limits`: the tolerance."""
    n, m, nc, cones, begun = tree.sn, tree.sm, tree.sk, tree.cone, ticks()
    find_unit(w)
    free, bounded, loaded = order_columns(w, n, lower, upper, cones, friction, nc)
    steps, alone, unbounded = eliminate(w, n, m, A, b, free, bounded, loaded)
    left = n - steps
    first = padded(left)
    rows, taken, operations = keep_rows(w, n, m, unbounded, steps, first, lower, upper)
    size = first + padded(rows)
    reduce_cost(w, n, m, steps, first, size, Q, c, ld(limits, 0))
    stiffen(w, left, taken, rows, first, size)
    fill_bounds(w, n, nc, steps, cones, friction, lower, upper)
    if start_x is not None:
        fill_start(w, n, nc, unbounded, steps, first, size, cones, start_x, start_z)
    tolerance, scale = ld(limits, 0), zero(Q)
    for j in range(n):
        scale = maximum(scale, fabs(ld(c, j)))
    warm = start_x is not None
    given = n, m, steps, unbounded, operations, alone, Q, c, A, b, x, y, z, scale * tolerance * 1e-3
    count, _, _, _, late, _ = minimise(
        w, left, rows, nc, warm, scale, tolerance, options[0], begun, options[1] * 1024, evaluate, given
    )
    fill_multipliers(w, n, nc, steps, cones, z)
    share_slope(w, n, m, steps, operations, alone, first, size, A, c, y, z, tolerance)
    st(report, 0, count)
    judge(
        w,
        n,
        m,
        nc,
        steps,
        operations,
        alone,
        cones,
        Q,
        c,
        A,
        b,
        friction,
        lower,
        upper,
        tolerance,
        late,
        x,
        y,
        z,
        report,
    )


@kernel
def fill_bounds(w, n, nc, steps, cones, friction, lower, upper):
    for k in range(steps, n):
        j = w.order[k]
        w.lower[k - steps], w.upper[k - steps] = ld(lower, j), ld(upper, j)
    for c in range(nc):
        w.mu[c] = ld(friction, c)
        w.fx[c], w.fy[c] = w.position[cones[3 * c]] - steps, w.position[cones[3 * c + 1]] - steps
        w.fz[c] = w.position[cones[3 * c + 2]] - steps


@kernel
def fill_start(w, n, nc, unbounded, steps, first, size, cones, x, z):
    """Variables and multipliers of the reduced program. That of a normal force is first the cone's."""
    o = zero(w.system)
    for s in range(unbounded, steps):
        r, pull = first + s - unbounded, ld(z, w.order[s])
        w.below[r], w.above[r] = maximum(-pull, o), maximum(pull, o)
    for k in range(padded(n - steps)):
        vector(w, PLACE, size)[k] = o
    for k in range(steps, n):
        j = w.order[k]
        vector(w, PLACE, size)[k - steps] = ld(x, j)
        w.below[k - steps], w.above[k - steps] = maximum(-ld(z, j), o), maximum(ld(z, j), o)
    for c in range(nc):
        a, b, along = -ld(z, cones[3 * c]), -ld(z, cones[3 * c + 1]), ld(z, cones[3 * c + 2])
        normal = maximum(-along / (w.mu[c] + NOTHING), sqrt(a * a + b * b))
        rest = along + w.mu[c] * normal
        w.reaction[c] = Vec3(normal, a, b)
        w.below[w.fz[c]], w.above[w.fz[c]] = maximum(-rest, o), maximum(rest, o)


@kernel
def put_together(w, n, m, steps, alone, A, b, x):
    """x by the reduced program's solution, less what rounding leaves of A x - b."""
    E, row = w.eliminated, stride(n)
    for k in range(steps, n):
        x[w.order[k]] = ld(w.vector, k - steps)
    for s in range(steps):
        i = w.pivot_row[s] * row
        x[w.order[s]] = ld(E, i + n) - along(tail(E, i + steps), w.vector, n - steps)
    meet_equalities(w, n, m, steps, alone, A, b, x)


@kernel
def meet_equalities(w, n, m, steps, alone, A, b, x):
    clear_right(w, m)
    for i in range(m):
        st(w.right, i, ld(b, i) - row_times(A, i, n, x))
    forward(w, m, steps, alone)
    for s in range(steps):
        x[w.order[s]] = ld(x, w.order[s]) + ld(w.right, w.pivot_row[s])


@kernel
def clear_right(w, m):
    o = zero(w.right)
    for k in range(0, padded(m), 4):
        st(w.right, k, quad(w.right, o, o, o, o))


@kernel
def along(x, y, n):
    """x . y, of any number of numbers."""
    end = n // 4 * 4
    found = dot(x, y, end)
    for j in range(end, n):
        found = found + ld(x, j) * ld(y, j)
    return found


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
def evaluate(w, left, rows, first, size, exact, given):
    """The slope along what is left, by the numbers that were given: x by the variables at hand, and y by the slope along
    those that were taken out, multipliers of bounds counted; the largest part of slopes, and of the costs. Rows are where
    these are."""
    n, m, steps, unbounded, operations, alone, Q, c, A, b, x, y, z, accuracy = given
    E, row, place, pull = w.eliminated, stride(n), vector(w, PLACE, size), vector(w, PULL, size)
    slope = vector(w, SLOPE, size)
    if exact > 1 and not has_moved(w, left, size):
        for k in range(steps, n):
            x[w.order[k]] = ld(place, k - steps)
        for s in range(steps):
            change = along(tail(E, w.pivot_row[s] * row + steps), vector(w, CHANGE, size), left)
            x[w.order[s]] = ld(x, w.order[s]) - change
    else:
        put_together(w, n, m, steps, alone, A, b, x)
    for j in range(n):
        z[j] = zero(w.system)
    for s in range(unbounded, steps):
        r, v = first + s - unbounded, w.order[s]
        pull[r] = w.above[r] - w.below[r]
        z[v] = ld(pull, r)
    taken = steps - unbounded
    for r in range(taken, rows):  # with the work of what they cost
        slope[first + r] = dot(tail(w.general, r * first), place, first)
        off = ld(slope, first + r) - w.lower[first + r]
        vector(w, REST, size)[first + r] = ld(pull, first + r) + w.stiff[r - taken] * off
    find_multipliers(w, n, m, steps, operations, alone, first, size, Q, c, A, x, y, z, accuracy)
    for k in range(left):
        slope[k] = w.slope[w.order[steps + k]]
    for r in range(taken):
        s = unbounded + r
        slope[first + r] = ld(x, w.order[s]) - ld(E, w.pivot_row[s] * row + n)
    steep, bent, linear = lift(1e-30, zero(w.system)), zero(w.system), zero(w.system)
    for j in range(n):
        steep = maximum(steep, maximum(fabs(ld(c, j)), maximum(fabs(ld(w.bent, j)), fabs(ld(w.pulled, j)))))
        bent, linear = bent + fabs(ld(x, j) * ld(w.bent, j)), linear + fabs(ld(x, j) * ld(c, j))
    return steep, maximum(bent, linear)


@kernel
def has_moved(w, left, size):
    """Whether the last step went so far that equalities are to be met anew. What else rounding leaves of them is all the
    same to them, but not to slopes."""
    far, most = zero(w.system), zero(w.system)
    for k in range(left):
        far, most = maximum(far, fabs(ld(vector(w, CHANGE, size), k))), maximum(most, fabs(ld(w.vector, k)))
    return some(less(FAR * most, far))


@kernel
def find_multipliers(w, n, m, steps, operations, alone, first, size, Q, c, A, x, y, z, accuracy):
    """y from the slope along the variables that were taken out; and the `slope` with it."""
    for i in range(n):
        curved = row_times(Q, i, n, x)
        st(w.slope, i, ld(c, i) + curved)
        st(w.pulled, i, zero(Q))
        st(w.bent, i, curved)
    clear_right(w, m)
    for i in range(m):
        if w.taken[i] >= 0:
            j = w.order[w.taken[i]]
            st(w.right, i, -ld(w.slope, j) - ld(z, j))
        elif w.kept[i] >= 0:
            st(w.right, i, ld(vector(w, REST, size), first + w.kept[i]))
    backward(w, m, operations, alone)
    for i in range(m):
        y[i] = ld(w.right, i)
        add_row(A, i, n, ld(y, i), w.pulled)
    clear_right(w, m)
    rest = zero(w.system)
    for i in range(m):  # what rounding has left along variables that were taken out
        if w.taken[i] >= 0:
            j = w.order[w.taken[i]]
            left = -ld(w.slope, j) - ld(w.pulled, j) - ld(z, j)
            st(w.right, i, left)
            rest = maximum(rest, fabs(left))
    if some(less(accuracy, rest)):
        backward(w, m, operations, alone)
        for i in range(m):
            y[i] = ld(y, i) + ld(w.right, i)
            add_row(A, i, n, ld(w.right, i), w.pulled)
    for j in range(n):
        st(w.slope, j, ld(w.slope, j) + ld(w.pulled, j))


@kernel
def fill_multipliers(w, n, nc, steps, cones, z):
    """z of bounds and cones, that of what is held such that nothing is left of the slope; and what is left of all."""
    for k in range(steps, n):
        j = w.order[k]
        z[j] = select(less(0.5, w.held[k - steps]), -ld(w.slope, j), w.above[k - steps] - w.below[k - steps])
    for k in range(nc):
        f, a, b, j = w.reaction[k], cones[3 * k], cones[3 * k + 1], cones[3 * k + 2]
        z[a], z[b] = add_unless_held(w, a, steps, z, -f.y), add_unless_held(w, b, steps, z, -f.z)
        z[j] = add_unless_held(w, j, steps, z, -w.mu[k] * f.x)
    for j in range(n):
        st(w.slope, j, ld(w.slope, j) + ld(z, j))


@kernel
def share_slope(w, n, m, steps, operations, alone, first, size, A, c, y, z, tolerance):
    """What is left of the slope, all of it along variables that were not taken out, given by y in small parts to those that
    were: where these depend on others by large numbers it stems from the rounding of their own places."""
    E, row, left, steep, most = w.eliminated, stride(n), n - steps, zero(w.system), lift(1e-30, zero(w.system))
    for j in range(n):
        steep = maximum(steep, fabs(w.slope[j]))
        most = maximum(most, maximum(fabs(ld(c, j)), maximum(fabs(ld(w.bent, j)), fabs(ld(z, j)))))
    if some(less(tolerance * most, steep)):
        clear_right(w, m)
        d = vector(w, STEP, size)
        for k in range(size):
            d[k] = w.slope[w.order[steps + k]] if k < left else zero(w.system)
        for _ in range(SHARED):
            for s in range(steps):
                i = w.pivot_row[s]
                T = tail(E, i * row + steps)
                part = -along(T, d, left) / (1.0 + along(T, T, left))
                add_row(T, 0, left, part, d)
                st(w.right, i, ld(w.right, i) + part)
            for i in range(m):
                if w.kept[i] >= 0:
                    F = tail(w.general, w.kept[i] * first)
                    part = -dot(F, d, first) / (dot(F, F, first) + NOTHING)
                    add_row(F, 0, first, part, d)
                    st(w.right, i, ld(w.right, i) + part)
        backward(w, m, operations, alone)
        for j in range(n):
            st(w.slope, j, ld(w.slope, j) - ld(w.pulled, j))
        for i in range(m):
            y[i] = ld(y, i) + ld(w.right, i)
            add_row(A, i, n, ld(w.right, i), w.pulled)
        for j in range(n):
            st(w.slope, j, ld(w.slope, j) + ld(w.pulled, j))
        for k in range(steps, n):
            j, held = w.order[k], w.held[k - steps]
            z[j] = ld(z, j) - held * ld(w.slope, j)
            st(w.slope, j, (1.0 - held) * ld(w.slope, j))


@kernel
def add_unless_held(w, j, steps, z, x):
    return ld(z, j) + x * (1.0 - w.held[w.position[j] - steps])


@kernel
def judge(
    w, n, m, nc, steps, operations, alone, cones, Q, c, A, b, friction, lower, upper, tolerance, late, x, y, z, report
):
    """Residuals of the point and the multipliers that are returned, by the numbers that were given, and the status that
    follows from them. `position` says which variables are in cones."""
    o = zero(Q)
    one = lift(1.0, o)
    for j in range(n):
        w.position[j] = 0
    for k in range(3 * nc):
        w.position[cones[k]] = 1
    equal = share = o
    for i in range(m):
        row, size = parts(tail(A, i * n), x, n)
        row = row - ld(b, i)
        equal, share = maximum(equal, fabs(row)), maximum(share, fabs(row) / (maximum(size, fabs(ld(b, i))) + 1e-30))
    steep, most, largest = o, lift(1e-30, o), lift(1e-30, o)
    value, bent_work, work = o, o, o
    for j in range(n):
        steep, inner = maximum(steep, fabs(w.slope[j])), maximum(fabs(ld(c, j)), fabs(ld(w.bent, j)))
        most = maximum(maximum(most, inner), maximum(fabs(ld(z, j)), fabs(ld(w.pulled, j))))
        largest = maximum(largest, fabs(ld(x, j)))
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
    work = maximum(maximum(fabs(value), bent_work), work)
    gap = fabs(gap) / (work + 1e-30)
    st(report, 2, maximum(equal, beyond))
    st(report, 3, maximum(steep, outside))
    st(report, 4, gap)
    st(report, 5, missed)
    left = maximum(maximum(share, maximum(beyond, missed) / largest), maximum(maximum(steep, outside) / most, gap))
    solved = less(left, tolerance)
    status = select(less(0.5, late), 1.0 * DEADLINE + o, 1.0 * MAX_ITERATIONS + o)
    failed = select(solved, o, one)
    if some(less(0.5, failed)):
        far = AWAY * largest
        sure = contradicts(w, n, m, nc, steps, cones, A, b, friction, lower, upper, far, y, z)
        drop_met(w, n, m, operations, alone, A, b, x)
        sure = maximum(sure, contradicts(w, n, m, nc, steps, cones, A, b, friction, lower, upper, far, w.right, None))
        status = select(less(0.5, sure * failed), 1.0 * INFEASIBLE + o, status)
    status = select(solved, 1.0 * SOLVED + o, status)
    concave = select(less(status, 1.0 * INFEASIBLE + o), w.concave[0], o)
    status = select(less(0.5, concave), 1.0 * NOT_CONVEX + o, status)
    empty = select(less(o, w.skew[0]), one, empty)
    st(report, 1, select(less(0.5, empty), 1.0 * EMPTY + o, status))


@kernel
def drop_met(w, n, m, operations, alone, A, b, x):
    """Of equalities that others contradict: -y with A'y = 0, b'y the squares of what they are missed by."""
    clear_right(w, m)
    for i in range(m):
        st(w.right, i, row_times(A, i, n, x) - ld(b, i))
    forward(w, m, operations, alone)
    for i in range(m):
        st(w.right, i, ld(w.right, i) if w.taken[i] < 0 and w.kept[i] < 0 else zero(w.right))
    backward(w, m, operations, alone)


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
def parts(x, y, n):
    """x . y, and the root of the sum of the squares of what it is made of."""
    o, end = zero(x), n // 4 * 4
    found, squares = quad(x, o, o, o, o), quad(x, o, o, o, o)
    for j in range(0, end, 4):
        part = ld(x, j, Quad) * ld(y, j, Quad)
        found, squares = found + part, squares + part * part
    rest, square = total(found), total(squares)
    for j in range(end, n):
        part = ld(x, j) * ld(y, j)
        rest, square = rest + part, square + part * part
    return rest, sqrt(square)


@kernel
def has_end(lower, upper, j):
    """More than 0 for a variable that has an end."""
    return maximum(ld(lower, j) + ENDLESS, ENDLESS - ld(upper, j))
