"""Quadratic programs with bounds, friction cones and rows, by a primal-dual interior point method.

    minimise 1/2 x'Hx + h'x    subject to    lower <= x <= upper,  |(x_fx, x_fy)| <= mu x_fz,  lower <= F x <= upper

A row is an equality where its ends meet; H need not be definite along rows. One that gives way costs 1/2 / `give` times the
square of what it is missed by. Each iteration factors one matrix:

    | H + D_x + C'W^-2 C    F'         | | dx |        D: z / s of the bounds at hand; of a row, D^-1 -> 0 as it meets an end
    | F                     -D_row^-1  | | dl |        W: the cones' scaling (cones.py)

which is quasidefinite: it has factors in any order (cholesky.py); what no end holds so far is eliminated once
(interior_loose.py, interior_system.py). What lies between a variable and its bounds, s, is always
computed from it, so that every iterate lies within bounds and cones. Mehrotra's predictor and corrector; the step is the
same for x and multipliers. In packets all lanes go together, and those that are done stay as they are.

| code | what | shape |
|---|---|---|
| `hessian`, `general` | H and F, rows of padded(n) numbers | n n, nf n |
| `system` | the matrix above, then its factors (interior_system.py) | N N, N = padded(n) + padded(nf) |
| `place`, `step` | (x, t), where rows have F x = t, and its change | N |
| `slope` | (Hx + h + F'l, F x) | N |
| `pull`, `pull_step` | l, of the rows, and its change | N |
| `CHANGE` | what the last step has added to x | N |
| `COST`, `base`, `base_cost` | of the costs 1/2 x'Hx + h'x + base as they were given, COST'x + base_cost are linear | n |
| `below`, `above` | z of both ends | N |
| `inside`, `outside` | 1 / (s z) of both ends, 0 where there is none | N |

Reference: L. Vandenberghe, The CVXOPT linear and quadratic cone program solvers (2010), section 7; R. Vanderbei, Symmetric
quasidefinite matrices (1995).
"""

from __future__ import annotations

from saltus.control.cholesky import padded
from saltus.control.cones import NOTHING, root
from saltus.control.interior_loose import NEAR, loosen, see_rows, tighten, too_far
from saltus.control.interior_program import (
    COST,
    LINEAR,
    PLACE,
    REST,
    SLOPE,
    find_ends,
    find_slope,
    list_bounded,
    slack,
    to_lower,
    to_upper,
    vector,
)
from saltus.control.interior_start import NOTHING_WORTH, PUSH, begin, choose, enter, go_inside, is_good
from saltus.control.interior_step import aim_step, find_step, forget_second, keep_change, measure, move, reach
from saltus.control.interior_system import assemble, settle
from saltus.kernel import fabs, kernel, ld, less, lift, maximum, minimum, rolled, select, some, ticks, zero
from saltus.spatial.algebra import Vec3

NEARLY, CAREFUL, HASTE = 0.995, 0.9, 10
"""The share of the way to the boundary that a step goes; and after so many: who comes too near may go in circles."""

ALIKE, JUST_ALIKE = 0.1, 1e-3
"""Shares of multipliers that are nearly the same, and but for rounding."""

FLOWN = 1e6
"""How much larger than at the start multipliers become of what cannot be met."""

HIGH, MISSED = 1e3, 1e-6
"""And how much larger, where rows are missed by such a share, if something that was loose is not met either."""

PATIENCE, CENTRED = 20, 0.5
"""From so many iterations on every other one goes to the middle: correctors may lead in circles."""

ENOUGH = 0.02
"""The share of the gap that is allowed which steps aim at: barriers without work leave cones' places to rounding."""

CLOSE = 30.0
"""How much closer than the tolerance gaps are brought: multipliers miss by the root of them."""

FULL = 0.9
"""From this length on a step should take most of what is left."""

SMALL = 1e-3
"""What rounding leaves of a slope, at most."""

ROUNDING = 1e-12
"""What is left of a cost where all of it cancels."""

NO_GAIN = 1e-18
"""A cost that is none."""

ADMITTED = 1e-5
"""The least work of a pair that comes later, as a share of what there is to be gained."""

CANCELLED = 1e-4
"""How much of what cancels in a slope counts as what is there."""


@rolled
@kernel
def minimise(p, n, nf, nc, warm, scale, tolerance, most, begun, allowed, evaluate, given):
    """From H, F, `LINEAR`, bounds, cones on, and where it is `warm` from x and multipliers on: their solution. Iterations,
    what is left of slope, rows and gap, and whether time was up: `allowed` ticks after `begun`, unless these are 0. `scale`:
    slopes are given as shares of what is there, and of this. In the end `evaluate` gives the slope without what rounding has
    left in H, unless it is None; from then on it is that which counts."""
    first = padded(n)
    size = first + padded(nf)
    o = zero(p.system)
    one = lift(1.0, o)
    find_ends(p, n, nf, first, nc)
    good = o
    if warm:
        good = is_good(p, n, nf, nc, first, size, list_bounded(p, n, nf, first))
    loose_rows = 0 if evaluate is None else nf  # else callers list those that matter
    watched = loosen(p, n, loose_rows, first, nc)
    if warm:
        see_rows(p, watched, first, size)
        tighten(p, watched, first, size, NEAR, good, None)
    ahead, width = settle(p, n, nf, first, size)
    nb = list_bounded(p, n, nf, first)
    if not warm or evaluate is not None or some(less(good, 0.5)):
        begin(p, n, nf, nc, first, size, ahead, width, nb, good)
    go_inside(p, n, nf, nc, first, size, ahead, width, nb, good, one)
    see_rows(p, watched, first, size)
    if tighten(p, watched, first, size, NEAR, one, None) > 0:
        ahead, width = settle(p, n, nf, first, size)
        nb = list_bounded(p, n, nf, first)
        go_inside(p, n, nf, nc, first, size, ahead, width, nb, good, p.fresh[0] + o)
    worth = enter(p, nf, nc, first, size, nb, good)
    mu = worth * PUSH
    count, going, before, length = o, one, lift(1e30, o), o
    dual, rows, gap, late, steep, costs, usual, largest, lost = o, o, o, o, o, o, o, o, o
    iteration, last, exact = 0, most + 0, 0
    while True:
        see_rows(p, watched, first, size)
        if evaluate is None or iteration == 0:
            high = o
        else:
            high = select(less(HIGH * usual, largest), select(less(MISSED, rows), going, o), o)
        back = too_far(p, watched, first, size, length, high)
        if some(less(o, back)):
            move(p, nf, nc, first, size, nb, -back * length)
            see_rows(p, watched, first, size)
            length, exact = (1.0 - back) * length, min(exact, 1)
            lost = maximum(lost, select(less(o, back), high, o))
            going = going * (1.0 - lost)
        passed = tighten(p, watched, first, size, 0.0, going, maximum(mu, ADMITTED * worth))
        if passed > 1:
            ahead, width = settle(p, n, nf, first, size)
        if passed > 0:
            nb = list_bounded(p, n, nf, first)
            length, exact = length * (1.0 - p.fresh[0]), min(exact, 1)
        if evaluate is None:
            find_slope(p, n, nf, first, size)
        elif exact > 0:
            steep, costs = evaluate(p, n, nf, first, size, exact, given)
        else:
            find_slope(p, n, nf, first, size)
        follow_slope(p, nc, first, size, nb)
        dual, rows, gap, slip, worth, largest = judge(p, n, nf, nc, first, size, nb, scale, worth, exact, steep, costs)
        stuck = select(less(FULL, length), select(less(0.5 * before, dual), one, o), o)
        settled = select(less(dual, lift(SMALL, o)), stuck, o)  # rounding allows no less
        before = dual
        left = maximum(maximum(select(less(0.5, settled), o, maximum(dual, slip)), rows), CLOSE * gap)
        usual = maximum(largest, lift(NOTHING_WORTH, o)) if iteration == 0 else usual
        flown = less(FLOWN * usual, largest * (1.0 - p.fresh[0]))
        going = select(less(tolerance, left), select(flown, o, going), o)
        if iteration < last and allowed > 0 and ticks() - begun > allowed:
            late, last = going, iteration
        if iteration == last or not some(less(0.5, going)):
            if evaluate is None or exact > 0:
                break
            exact, going, before = 1, 1.0 - lost, lift(1e30, o)
        else:
            mu = measure(p, nc, nb)
            assemble(p, n, nc, first, size, ahead, width, nb, o, False, exact)
            aim_step(p, n, nf, first, size, ahead, width, nb)
            find_step(p, nc, first, size, ahead, width, nb, None, exact)
            longest = reach(p, nc, size, nb, None)
            short = 1.0 - minimum(one, 1.0 / maximum(longest, one))
            target = mu * maximum(short * short * short, ENOUGH * tolerance / maximum(gap, lift(NOTHING, o)))
            if iteration >= PATIENCE and iteration % 2 == 0:
                target = maximum(target, CENTRED * mu)
                forget_second(p, nc, nb)
            find_step(p, nc, first, size, ahead, width, nb, target, exact)
            longest = reach(p, nc, size, nb, target)
            nearly = NEARLY if iteration < HASTE else CAREFUL
            length = minimum(one, nearly / maximum(longest, lift(1e-30, o))) * going
            length = select(less(o, length), length, o)
            if exact > 0:
                keep_change(p, first, size, length)
                exact = 2
            move(p, nf, nc, first, size, nb, length)
            count, iteration = count + going, iteration + 1
    p.trifle[0] = maximum(p.trifle[0], ROUNDING * worth)
    return count, dual, rows, gap, late, nb


@kernel
def follow_slope(p, nc, first, size, nb):
    """Multipliers of what is held by an end or a cone are what the slope asks for, where that is nearly what they are: steps
    lose what large numbers have in common."""
    g, rest, o = vector(p, SLOPE, size), vector(p, REST, size), zero(p.system)
    for k in range(nb):
        rest[p.bounded[k]] = ld(g, p.bounded[k])
    for c in range(nc):  # across the edge: as much more of all
        f = p.reaction[c]
        across = f.y * f.y + f.z * f.z
        more = (ld(g, p.fx[c]) * f.y + ld(g, p.fy[c]) * f.z) / (across + NOTHING) - 1.0
        more = select(less(fabs(more), lift(JUST_ALIKE, o)), select(less(across, 0.5 * f.x * f.x), o, more), o)
        p.reaction[c] = f * (1.0 + more)
    for c in range(nc):
        rest[p.fz[c]] = ld(g, p.fz[c]) - p.mu[c] * p.reaction[c].x
    for k in range(nb):
        j = p.bounded[k]
        if j < first:
            slope, below, above = ld(rest, j), p.below[j], p.above[j]
            low, high = slope + above, below - slope
            p.below[j] = select(less(above, below), select(less(fabs(low - below), ALIKE * below), low, below), below)
            p.above[j] = select(less(below, above), select(less(fabs(high - above), ALIKE * above), high, above), above)
    for c in range(nc):
        f, z = p.reaction[c], p.fz[c]
        normal = (ld(g, z) - p.below[z] + p.above[z]) / (p.mu[c] + NOTHING)
        other = Vec3(normal, ld(g, p.fx[c]), ld(g, p.fy[c]))
        off = other - f
        edge, there = root(f, p.unit[0]), root(other, p.unit[0])
        near = less(maximum(fabs(off.x), maximum(fabs(off.y), fabs(off.z))), ALIKE * f.x)
        p.reaction[c] = choose(near, choose(less(fabs(there - edge), ALIKE * edge), other, f), f)


@kernel
def judge(p, n, nf, nc, first, size, nb, scale, worth, exact, steep, costs):
    """What is left of the slope, of rows, of the gap, and what that of the slope does to it, each as a share of what is
    there; the largest worth, and the largest multiplier or slope. `steep` and `costs`: what is there of slopes and of the
    objective, where that is known.

    Of the slope, what is there are slopes and multipliers, not what cancels in a slope, but for rounding."""
    o = zero(p.system)
    x, g, h, rest = vector(p, PLACE, size), vector(p, SLOPE, size), vector(p, LINEAR, size), vector(p, REST, size)
    most, gap = scale + NOTHING, o
    half, linear = o, o
    for j in range(n):
        slope = ld(g, j)
        rest[j] = slope
        most = maximum(most, maximum(fabs(slope), CANCELLED * fabs(ld(h, j))))
        half, linear = half + ld(x, j) * (slope - ld(h, j)), linear + ld(x, j) * ld(h, j)
    for k in range(nb):
        j = p.bounded[k]
        below, above, at = p.below[j], p.above[j], ld(x, j)
        gap = gap + below * to_lower(p, j, at) + above * to_upper(p, j, at)
        if j < first:
            rest[j] = select(less(0.5, p.held[j]), o, ld(rest, j) - below + above)
            most = maximum(most, maximum(below, above))
    for c in range(nc):
        f, s = p.reaction[c], slack(p, c, x)
        gap = gap + (f.x * s.x + f.y * s.y + f.z * s.z)
        a, b, z = p.fx[c], p.fy[c], p.fz[c]
        rest[z] = (ld(rest, z) - p.mu[c] * f.x) * p.open[c]
        rest[a] = (ld(rest, a) - f.y) * p.open[c]
        rest[b] = (ld(rest, b) - f.z) * p.open[c]
    dual = slip = o
    for j in range(n):
        dual, slip = maximum(dual, fabs(ld(rest, j))), slip + fabs(ld(rest, j) * ld(x, j))
    rows = o
    for r in range(nf):
        if p.loose[first + r] <= 0:
            rows = maximum(rows, row_missed(p, r, n, first, x, g))
    cost = p.base_cost[0]
    for j in range(n):
        cost = cost + ld(vector(p, COST, size), j) * ld(x, j)
    value = p.base[0] + 0.5 * half + linear
    here = maximum(fabs(value), maximum(fabs(cost), fabs(value - cost)))
    worth = maximum(worth, here)
    there = costs if exact > 0 else maximum(here, p.trifle[0])
    share = 1.0 / maximum(there, ROUNDING * worth + NO_GAIN)
    return dual / select(exact > 0, steep, most), rows, gap * share, slip * share, worth, most


@kernel
def row_missed(p, r, n, first, x, g):
    """What is left of F x - t of a row, as a share of what is there."""
    j = first + r
    largest = maximum(p.has_lower[j] * fabs(p.lower[j]), p.has_upper[j] * fabs(p.upper[j]))
    largest = maximum(largest, fabs(ld(x, j))) + 1e-30
    for i in range(n):
        largest = maximum(largest, fabs(ld(p.general, r * first + i) * ld(x, i)))
    return fabs(ld(g, j) - ld(x, j)) / largest
