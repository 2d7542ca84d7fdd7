"""Quadratic programs of whole-body control by the alternating direction method of multipliers: FCCQP's algorithm 1.

    minimise 1/2 x'Qx + c'x    subject to    A x = b,  |(x_fx, x_fy)| <= mu x_fz,  lower <= x <= upper

x meets the equalities, its copy s cones and bounds, and multipliers rho u pull both together. One after the other:

    | Q + rho  A' | | x |   | rho (s - u) - c |
    | A        0  | | y | = | b               |,      s = P(x + u),      u = u + x - s

The matrix is factored once. Rows of A may depend on each other: in the place of 0 stands -delta, small and by the size of
each row, and what that leaves of A x - b is taken off by repeating the step, a proximal method on y. So the matrix is
quasidefinite, with factors in any order (cholesky.py), and equalities hold at every iterate. P is exact (cones.py).

What is returned is x, with y and z = rho u: x may lie outside of cones and bounds, u is their normal at s, and

    Q x + c + A'y + z = rho (s - s_before)

A start x, z is x, s = x and u = z / rho. Iterations are counted as in the reference, from 0, and end where x - s and what s
has moved are within the tolerance, as they are, and all that x, y and z miss is, as shares (optimality.py): x - s alone is
small wherever rho is large. The shares decide whether it is solved. O((n + m)^3 / 6), and O((n + m)^2) an iteration.

| paper | code | what | shape |
|---|---|---|---|
| x, nu | `x`, `y` | | n, m |
| x bar | `split` | s | n |
| w | `gathered` | u, the sum of x - s | n |
| (7) | `system`, `inverse` | factors of the matrix; `scaled`: what making them takes | N N, N = padded(n) + padded(m) |
| | `right` | its right side, less what x and y make of it; then their changes | N |
| | `change_y`, `change_z` | of the last iteration: where nothing is feasible they grow, and prove it | m, n |

Reference: B. Acosta, FCCQP: A whole-body QP with full friction cone constraints (2024), equations 5 to 9 and algorithm 1.
Without a start, x is what costs least where A x = b, as there, but for a little of rho |x|^2 / 2: Q may be singular.
"""

from __future__ import annotations

from saltus.control.cholesky import factor, padded, solve_lower, solve_upper
from saltus.control.cones import projected
from saltus.control.convexity import bends_down, skewness
from saltus.control.optimality import (
    AWAY,
    add_row,
    conclude,
    contradicts,
    find_largest,
    find_missed,
    mark_cones,
    row_missed,
    row_times,
)
from saltus.control.quadratic_program import PROBLEM, TABLES
from saltus.kernel import (
    Layout,
    declare,
    fabs,
    kernel,
    ld,
    less,
    lift,
    maximum,
    minimum,
    select,
    some,
    sqrt,
    st,
    ticks,
    zero,
)
from saltus.spatial.algebra import Vec3

START = 1e-5
"""The share of rho in the first system, which is to find what costs least."""

GIVE = 1e-10
"""delta, as a share of A Q^-1 A', of which only diagonals are looked at."""

EXACT, REPEATS = 1e-14, 4
"""What may be left of equalities, as a share of what they are made of; how often, at most, it is taken off."""

LEAST = 1e-14
"""The share of its diagonal entry below which a pivot is rounding."""


@declare(
    TABLES,
    inputs=PROBLEM | {"limits": "2", "start_x": "sn optional", "start_z": "sn optional"},
    outputs={"x": "sn", "y": "sm", "z": "sn", "report": "6"},
    work=Layout(
        ss2={"system": None},
        ss={"inverse": None},
        ss_right={"right": None},
        ss4={"scaled": None},
        sn={"slope": None},
        sn_bent={"bent": None},
        sn_pulled={"pulled": None},
        sn_z={"change_z": None},
        sm={"change_y": None},
        sn_split={"split": None, "gathered": None, "off": None, "moved": None, "position": int},
    ),
    double_only=True,
    sloped=False,
)
def _admm(tree, options, Q, c, A, b, friction, lower, upper, limits, start_x, start_z, w, x, y, z, report):
    """`options`: the most iterations, and ticks of the clock / 1024; `limits`: the tolerance, rho. A start is x and z."""
    n, m, nc, cones, begun = tree.sn, tree.sm, tree.sk, tree.cone, ticks()
    tolerance, rho, o = ld(limits, 0), ld(limits, 1), zero(Q)
    allowed, going = options[1] * 1024, lift(1.0, o)
    mark_cones(w, n, nc, cones)
    begin(w, n, m, rho, start_x, start_z, x, y)
    find_products(w, n, m, Q, A, b, x, y)
    if start_z is None:
        factor_system(w, n, m, START * rho, Q, A, tolerance)
        meet_equalities(w, n, m, START * rho, Q, c, A, b, x, y, going)
        for j in range(n):
            w.split[j] = ld(x, j)
    concave, skew = factor_system(w, n, m, rho, Q, A, tolerance)
    count, late, left, largest, empty = o, o, o, o, o
    iteration, last = 0, options[0] + 0
    while True:
        equalities = meet_equalities(w, n, m, rho, Q, c, A, b, x, y, going)
        apart = meet_limits(w, n, nc, rho, cones, friction, lower, upper, x, z, going)
        for j in range(n):
            st(w.slope, j, ld(c, j) + ld(w.bent, j) + ld(w.pulled, j) + ld(z, j))
        left, largest, empty = find_missed(w, n, nc, cones, c, equalities, friction, lower, upper, x, z, o, report)
        going = select(less(tolerance, maximum(left, apart)), going, o)
        if iteration < last and allowed > 0 and ticks() - begun > allowed:
            late, last = going, iteration
        if iteration == last or not some(less(0.5, going)):
            break
        iteration, count = iteration + 1, count + going
    st(report, 0, count)
    sure = o
    if some(less(0.5, going)):
        far = AWAY * largest
        sure = contradicts(w, n, m, nc, 0, cones, A, b, friction, lower, upper, far, w.change_y, w.change_z)
    conclude(left, tolerance, late, sure, concave, skew, empty, report)


@kernel
def begin(w, n, m, rho, start_x, start_z, x, y):
    o = zero(w.system)
    for j in range(n):
        at, pull = o, o
        if start_z is not None:
            at, pull = ld(start_x, j) + o, ld(start_z, j) / rho
        x[j], w.split[j], w.gathered[j] = at, at, pull
    for i in range(m):
        y[i] = o
    for k in range(padded(n) + padded(m)):
        st(w.right, k, o)


@kernel
def factor_system(w, n, m, rho, Q, A, tolerance):
    """Returns whether Q is concave, 1 or 0, and more than 0 where it is not symmetric."""
    K, o = w.system, zero(w.system)
    first = padded(n)
    size, skew = first + padded(m), o
    for i in range(size * size):
        st(K, i, o)
    for i in range(first):
        for j in range(i, n):
            st(K, i * size + j, ld(Q, i * n + j))
            skew = maximum(skew, skewness(Q, n, i, j, tolerance))
        st(K, i * size + i, ld(K, i * size + i) + rho if i < n else lift(1.0, o))
    for r in range(padded(m)):
        i, give = first + r, o
        if r < m:
            for j in range(n):
                entry = ld(A, r * n + j)
                st(K, j * size + i, entry)
                give = give + entry * entry / ld(K, j * size + j)
        st(K, i * size + i, select(less(o, give), -GIVE * give, lift(-1.0, o)))
    factor(K, size, first, size, w.inverse, LEAST, w.scaled)
    return bends_down(w.inverse, n, rho), skew


@kernel
def meet_equalities(w, n, m, rho, Q, c, A, b, x, y, going):
    """(7): x and y of lanes that are going, from those at hand, by what these leave of it."""
    first = padded(n)
    size = first + padded(m)
    moves, repeats = less(0.5, going), 0
    for i in range(m):
        st(w.change_y, i, zero(y))
    while True:
        for j in range(n):
            pull = rho * (ld(x, j) - w.split[j] + w.gathered[j])
            st(w.right, j, -(ld(c, j) + ld(w.bent, j) + ld(w.pulled, j) + pull))
        solve_lower(w.system, size, size, size, w.inverse, w.right)
        solve_upper(w.system, size, size, size, w.inverse, w.right)
        for j in range(n):
            x[j] = select(moves, ld(x, j) + ld(w.right, j), ld(x, j))
        for i in range(m):
            change = select(moves, ld(w.right, first + i), zero(y))
            y[i] = ld(y, i) + change
            st(w.change_y, i, ld(w.change_y, i) + change)
        equal, share = find_products(w, n, m, Q, A, b, x, y)
        repeats = repeats + 1
        if repeats == REPEATS or not some(less(EXACT, share * going)):
            return equal, share


@kernel
def find_products(w, n, m, Q, A, b, x, y):
    """Q x, A'y, and b - A x where it is a right side; the largest of it, as it is and as a share."""
    equal = share = zero(A)
    first, largest = padded(n), find_largest(x, n)
    for j in range(n):
        st(w.bent, j, row_times(Q, j, n, x))
        st(w.pulled, j, zero(A))
    for i in range(m):
        rest, part = row_missed(A, i, n, b, x, largest)
        st(w.right, first + i, rest)
        equal, share = maximum(equal, fabs(rest)), maximum(share, part)
        add_row(A, i, n, ld(y, i), w.pulled)
    return equal, share


@kernel
def meet_limits(w, n, nc, rho, cones, friction, lower, upper, x, z, going):
    """(6b) to (6d): s, u and z of lanes that are going. How far x is from s, or s from where it was."""
    off = moved = zero(x)
    for j in range(n):
        if w.position[j] == 0:
            at = ld(x, j) + w.gathered[j]
            split(w, j, at, minimum(maximum(at, ld(lower, j)), ld(upper, j)), rho, z, going)
    for k in range(nc):
        a, e, j = cones[3 * k], cones[3 * k + 1], cones[3 * k + 2]
        at = Vec3(ld(x, a) + w.gathered[a], ld(x, e) + w.gathered[e], ld(x, j) + w.gathered[j])
        force = projected(ld(friction, k), ld(lower, j), ld(upper, j), at)
        split(w, a, at.x, force.x, rho, z, going)
        split(w, e, at.y, force.y, rho, z, going)
        split(w, j, at.z, force.z, rho, z, going)
    for j in range(n):
        off, moved = off + w.off[j] * w.off[j], moved + w.moved[j] * w.moved[j]
    return sqrt(maximum(off, moved))


@kernel
def split(w, j, at, nearest, rho, z, going):
    """A variable at x + u, whose copy is to be at `nearest`."""
    moves, pull = less(0.5, going), at - nearest
    w.off[j], w.moved[j] = pull - w.gathered[j], nearest - w.split[j]
    st(w.change_z, j, rho * w.off[j])
    w.split[j], w.gathered[j] = select(moves, nearest, w.split[j]), select(moves, pull, w.gathered[j])
    z[j] = rho * w.gathered[j]
