"""Quadratic programs of whole-body control, with friction cones as they are.

    minimise 1/2 x'Qx + c'x    subject to    A x = b,  |(x_fx, x_fy)| <= mu x_fz,  lower <= x <= upper

    Q x + c + A'y + z = 0,     z in the normal cone of cones and bounds at x

Equalities are taken out (reduction.py), what is left is solved by an interior point method (interior_point.py), and the
solution is judged by the numbers that were given (optimality.py).

Reference: B. Acosta, FCCQP: A whole-body QP with full friction cone constraints (2024).
"""

from __future__ import annotations

from saltus.control.cholesky import along, dot, padded
from saltus.control.cones import NOTHING
from saltus.control.elimination import REDUCTION, backward, eliminate, forward, sort_columns, stride
from saltus.control.interior_point import NO_GAIN, minimise
from saltus.control.interior_program import CHANGE, PLACE, PROGRAM, PULL, REST, SLOPE, STEP, find_unit, vector
from saltus.control.optimality import (
    AWAY,
    add_row,
    conclude,
    contradicts,
    equalities_missed,
    find_missed,
    mark_cones,
    row_times,
)
from saltus.control.quadratic_program import PROBLEM, TABLES
from saltus.control.reduction import keep_rows, reduce_cost, stiffen
from saltus.kernel import (
    declare,
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
    ticks,
    zero,
)
from saltus.spatial.algebra import Vec3

FAR = 1e-3
"""The share of what is there by which a step is long."""

SHARED = 2
"""How often what is left of slopes is shared out."""


@declare(
    TABLES,
    inputs=PROBLEM | {"start_x": "sn optional", "start_z": "sn optional"},
    outputs={"x": "sn", "y": "sm", "z": "sn", "report": "6"},
    work=PROGRAM.extended(**REDUCTION.groups, sn={"slope": None}, sn_bent={"bent": None}, sn_pulled={"pulled": None}),
    double_only=True,
    sloped=False,
)
def _reduced_program(
    tree, options, Q, c, A, b, friction, lower, upper, limits, start_x, start_z, w, x, y, z, report
):  # fmt: skip
    """`options`: the most iterations, and ticks of the clock / 1024; `limits`: the tolerance. A start is x and z."""
    n, m, nc, cones, begun = tree.sn, tree.sm, tree.sk, tree.cone, ticks()
    find_unit(w)
    sort_columns(w, n, lower, upper, cones, friction, nc)
    steps, lonely, alone, unbounded = eliminate(w, n, m, A, b)
    left = n - steps
    first = padded(left)
    rows, taken, operations = keep_rows(w, n, m, lonely, alone, unbounded, steps, first, lower, upper)
    size = first + padded(rows)
    reduce_cost(w, n, m, steps, first, size, Q, c, ld(limits, 0))
    stiffen(w, left, taken, rows, first, size)
    fill_bounds(w, n, nc, steps, cones, friction, lower, upper)
    if start_z is not None:
        fill_start(w, n, nc, taken, steps, first, size, cones, start_x, start_z)
    tolerance, scale = ld(limits, 0), zero(Q)
    for j in range(n):
        scale = maximum(scale, fabs(ld(c, j)))
    warm = start_z is not None
    given = n, m, steps, taken, operations, alone, Q, c, A, b, x, y, z, scale * tolerance * 1e-3
    count, _, _, _, late, _ = minimise(
        w, left, rows, nc, warm, scale, tolerance, options[0], begun, options[1] * 1024, evaluate, given
    )
    fill_multipliers(w, n, nc, steps, cones, z)
    share_slope(w, n, m, steps, operations, alone, first, size, A, c, y, z, tolerance)
    st(report, 0, count)
    mark_cones(w, n, nc, cones)
    equalities = equalities_missed(n, m, A, b, x)
    none = w.trifle[0] + select(less(0.0 * scale, scale), 0.0 * scale, lift(NO_GAIN, scale))
    left, largest, empty = find_missed(w, n, nc, cones, c, equalities, friction, lower, upper, x, z, none, report)
    sure = zero(Q)
    failed = select(less(left, tolerance), sure, 1.0 + sure)
    if some(less(0.5, failed)):
        far = AWAY * largest
        sure = contradicts(w, n, m, nc, steps, cones, A, b, friction, lower, upper, far, y, z)
        drop_met(w, n, m, operations, alone, A, b, x)
        sure = maximum(sure, contradicts(w, n, m, nc, steps, cones, A, b, friction, lower, upper, far, w.right, None))
    conclude(left, tolerance, late, sure, w.concave[0], w.skew[0], empty, report)


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
def fill_start(w, n, nc, taken, steps, first, size, cones, x, z):
    """Variables and multipliers of the reduced program. That of a normal force is first the cone's."""
    o = zero(w.system)
    for k in range(taken):
        r, pull = first + k, ld(z, w.order[w.ended[k]])
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
def evaluate(w, left, rows, first, size, exact, given):
    """The slope along what is left, by the numbers that were given: x by the variables at hand, and y by the slope along
    those that were taken out, multipliers of bounds counted; the largest part of slopes, and of the costs. Rows are where
    these are."""
    n, m, steps, taken, operations, alone, Q, c, A, b, x, y, z, accuracy = given
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
    for k in range(taken):
        r, v = first + k, w.order[w.ended[k]]
        pull[r] = w.above[r] - w.below[r]
        z[v] = ld(pull, r)
    for r in range(taken, rows):  # with the work of what they cost
        slope[first + r] = dot(tail(w.general, r * first), place, first)
        off = ld(slope, first + r) - w.lower[first + r]
        vector(w, REST, size)[first + r] = ld(pull, first + r) + w.stiff[r - taken] * off
    find_multipliers(w, n, m, steps, operations, alone, first, size, Q, c, A, x, y, z, accuracy)
    for k in range(left):
        slope[k] = w.slope[w.order[steps + k]]
    for r in range(taken):
        s = w.ended[r]
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
def drop_met(w, n, m, operations, alone, A, b, x):
    """Of equalities that others contradict: -y with A'y = 0, b'y the squares of what they are missed by."""
    clear_right(w, m)
    for i in range(m):
        st(w.right, i, row_times(A, i, n, x) - ld(b, i))
    forward(w, m, operations, alone)
    for i in range(m):
        st(w.right, i, ld(w.right, i) if w.taken[i] < 0 and w.kept[i] < 0 else zero(w.right))
    backward(w, m, operations, alone)
