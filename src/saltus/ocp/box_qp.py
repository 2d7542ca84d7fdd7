"""Quadratic programs with bounds alone, by projected Newton steps: what controls within bounds ask of each node.

    minimise 1/2 x'Hx + q'x    subject to    lower <= x <= upper

Each iteration holds those at a bound that the slope presses against it, takes Newton's step in all others, and goes back
from the full step until the cost falls by a tenth of what the slope promises; what leaves the bounds is put back onto them.
In packets all lanes go together, and those that are done stay as they are.

| code | what | shape |
|---|---|---|
| `H` | its upper triangle, rows of `row` numbers; of what is padded, that of the identity | m row |
| `q`, `x`, `lower`, `upper` | m is a multiple of four | m |
| `full`, `system` | H with both triangles; H where nothing is held, the identity else, then its factors | m m |
| `slope`, `step`, `held` | q + Hx; Newton's step; 1 of what is held | m |

Reference: Y. Tassa, N. Mansard, E. Todorov, Control-limited differential dynamic programming (2014), section III.
"""

from __future__ import annotations

from saltus.control.cholesky import factor, solve_lower, solve_upper
from saltus.kernel import fabs, kernel, ld, less, lift, maximum, minimum, select, some, st, zero

TOLERANCE = 1e-12
"""Of the slope, as a share of q."""

ENOUGH, HALVINGS, MOST = 0.1, 12, 60
"""The share of what the slope promises that a step must bring, how often it is halved, and the most steps."""

POSITIVE, HUGE = 1e-30, 1e30
"""Pivots up to the one are none; what is larger than the other counts as infinite."""


@kernel
def solve_box(H, row, q, lower, upper, m, x, full, system, inverse, slope, step, held, scaled):
    """x and `held`; 1 if H is not positive definite where nothing is held, or if q is not finite, else 0."""
    o = zero(H)
    one = lift(1.0, o)
    scale = o
    for i in range(m):
        scale = maximum(scale, fabs(ld(q, i)))
        x[i] = minimum(maximum(o, ld(lower, i)), ld(upper, i))
        for j in range(i, m):
            full[i * m + j] = full[j * m + i] = ld(H, i * row + j)
    going, failed = one, select(less(scale, HUGE), o, one)
    for _ in range(MOST):
        left = find_slope(full, q, lower, upper, m, x, slope, held)
        going = select(less(TOLERANCE * scale, left), going, o)
        if not some(less(0.5, going)):
            break
        hold(full, m, m, held, system, m)
        for i in range(m):
            step[i] = -ld(slope, i) * (1.0 - ld(held, i))
        factor(system, m, m, m, inverse, 0.0, scaled)
        failed = maximum(failed, not_positive(system, m, m) * going)
        solve_lower(system, m, m, m, inverse, step)
        solve_upper(system, m, m, m, inverse, step)
        going = going * (1.0 - failed)
        length = find_length(full, lower, upper, m, x, slope, step) * going
        for i in range(m):
            there = clipped(ld(x, i) + length * ld(step, i), ld(lower, i), ld(upper, i))
            x[i] = select(less(o, length), there, ld(x, i))
        going = select(less(o, length), going, o)
    find_slope(full, q, lower, upper, m, x, slope, held)
    return failed


@kernel
def clipped(x, low, high):
    return minimum(maximum(x, low), high)


@kernel
def find_slope(full, q, lower, upper, m, x, slope, held):
    """The slope, who is held, and the largest slope of those who are not."""
    o = zero(full)
    one, left = lift(1.0, o), o
    for i in range(m):
        g = ld(q, i)
        for j in range(m):
            g = g + ld(full, i * m + j) * ld(x, j)
        slope[i] = g
        below, above = select(less(ld(lower, i), ld(x, i)), o, one), select(less(ld(x, i), ld(upper, i)), o, one)
        is_held = select(less(o, g), below, select(less(g, o), above, o))
        held[i] = is_held
        left = maximum(left, fabs(g) * (1.0 - is_held))
    return left


@kernel
def hold(H, row, m, held, system, width):
    """`system`, rows of `width` numbers: the upper triangle of H, of those who are held that of the identity."""
    for i in range(m):
        free = 1.0 - ld(held, i)
        for j in range(i, m):
            st(system, i * width + j, ld(H, i * row + j) * free * (1.0 - ld(held, j)))
        system[i * width + i] += ld(held, i)


@kernel
def not_positive(V, row, m):
    """1 if a pivot of its factors was held up, or is NaN."""
    found = zero(V)
    for i in range(m):
        found = select(less(POSITIVE, ld(V, i * row + i)), found, 1.0)
    return found


@kernel
def find_length(full, lower, upper, m, x, slope, step):
    """The longest step that is good enough; 0 if none is."""
    o = zero(full)
    found, length = o, lift(1.0, o)
    for _ in range(HALVINGS):
        first, second = o, o
        for i in range(m):
            change = clipped(ld(x, i) + length * ld(step, i), ld(lower, i), ld(upper, i)) - ld(x, i)
            along = o
            for j in range(m):
                other = clipped(ld(x, j) + length * ld(step, j), ld(lower, j), ld(upper, j)) - ld(x, j)
                along = along + ld(full, i * m + j) * other
            first, second = first + ld(slope, i) * change, second + change * along
        good = select(less(-ENOUGH * first, -first - 0.5 * second), length, o)
        found = select(less(o, found), found, good)
        length = 0.5 * length
    return found
