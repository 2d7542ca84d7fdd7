"""Quadratic programs with bounds, friction cones and rows, by a primal-dual interior point method.

    minimise 1/2 x'Hx + h'x    subject to    lower <= x <= upper,  |(x_fx, x_fy)| <= mu x_fz,  lower <= F x <= upper

A row is an equality where its ends meet; H need not be definite along rows. One that gives way costs 1/2 / `give` times the
square of what it is missed by. Each iteration factors one matrix:

    | H + D_x + C'W^-2 C    F'         | | dx |        D: z / s of the bounds at hand; of a row, D^-1 -> 0 as it meets an end
    | F                     -D_row^-1  | | dl |        W: the cones' scaling (cones.py)

which is quasidefinite: it has factors in any order (cholesky.py). What lies between a variable and its bounds, s, is always
computed from it, so that every iterate lies within bounds and cones. Mehrotra's predictor and corrector; the step is the
same for x and multipliers. In packets all lanes go together, and those that are done stay as they are.

| code | what | shape |
|---|---|---|
| `hessian`, `general` | H and F, rows of padded(n) numbers | n n, nf n |
| `system` | the matrix above, then its factors | N N, N = padded(n) + padded(nf) |
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

from saltus.control.cholesky import dot, factor, padded, solve_lower, solve_upper
from saltus.control.cones import (
    NOTHING,
    Inverse,
    Scaling,
    barrier_axes,
    barrier_block,
    circle,
    circle_solved,
    inverted,
    root,
    scaled,
    scaling,
    unscaled,
    way_out,
)
from saltus.control.convexity import bends_down
from saltus.kernel import (
    Layout,
    Quad,
    fabs,
    kernel,
    ld,
    less,
    lift,
    maximum,
    minimum,
    rolled,
    select,
    some,
    sqrt,
    st,
    tail,
    ticks,
    zero,
)
from saltus.spatial.algebra import Mat3, Vec3, transpose, turn_back

ENDLESS = 1e20
"""Bounds beyond this are none."""

NO_FRICTION = 1e-9
"""Friction below this is none: forces along the normal are what is left of a cone."""

HELD = 1e25
"""On the diagonal, of a variable that cannot move."""

NEARLY, CAREFUL, HASTE = 0.995, 0.9, 10
"""The share of the way to the boundary that a step goes; and after so many: who comes too near may go in circles."""

LEAST = 1e-14
"""The share of its diagonal entry below which a pivot is rounding."""

SOFT = 1e-10
"""Of an equality: the share by which it may give way in one iteration."""

START, APART, INNER = 1e-6, 0.1, 0.9
"""Where iterations start: what is added to H's diagonal; how far from ends; how far inside cones."""

PUSH = 3e-4
"""The work of barriers at the start, beside that of the slope."""

NOTHING_WORTH = 1e-12
"""The least that there is to be gained."""

WARM = 1e-2
"""How much less of both if it starts from a solution of something similar."""

ALIKE, JUST_ALIKE = 0.1, 1e-3
"""Shares of multipliers that are nearly the same, and but for rounding."""

FLOWN = 1e6
"""How much larger than at the start multipliers become of what cannot be met."""

PATIENCE, CENTRED = 20, 0.5
"""From so many iterations on every other one goes to the middle: correctors may lead in circles."""

ENOUGH = 0.02
"""The share of the gap that is allowed which steps aim at: barriers without work leave cones' places to rounding."""

CLOSE = 10.0
"""How much closer than the tolerance gaps are brought: multipliers miss by the root of them."""

FULL = 0.9
"""From this length on a step should take most of what is left."""

SMALL = 1e-3
"""What rounding leaves of a slope, at most."""

DOUBLE, UNIT, SINGLE_UNIT = 1e-9, 4e-16, 2e-7
"""Single precision is what does not tell 1 from 1 + 1e-9; and the shares by which numbers are rounded."""

ROUNDING = 1e-12
"""What is left of a cost where all of it cancels."""

NO_GAIN = 1e-18
"""A cost that is none."""

CANCELLED = 1e-4
"""How much of what cancels in a slope counts as what is there."""

PLACE, STEP, SLOPE, LINEAR, PULL, PULL_STEP, REST, INVERSE, COST, CHANGE, SCALED = range(11)
VECTORS = SCALED + 4

PROGRAM = Layout(
    one={"unit": None, "base": None, "base_cost": None, "trifle": None, "concave": None},
    npk={"system": None},
    nph={"hessian": None},
    npg={"general": None},
    npv={"vector": None},
    npp={
        "lower": None, "upper": None, "below": None, "above": None, "inside": None, "outside": None, "held": None,
        "has_lower": None, "has_upper": None, "room_below": None, "room_above": None,
        "second_below": None, "second_above": None, "change_below": None, "change_above": None, "give": None,
        "bounded": int,
    },
    npc={
        "mu": None, "open": None, "reaction": Vec3, "scaling": Scaling, "axes": Mat3, "balance": Vec3, "inverse": Inverse,
        "second": Vec3, "change": Vec3, "fx": int, "fy": int, "fz": int,
    },
)  # fmt: skip


def program_sizes(n: int, rows: int, cones: int) -> dict[str, int]:
    """The sizes of `PROGRAM`."""
    first, size = -(-n // 4) * 4, -(-n // 4) * 4 + -(-rows // 4) * 4
    return {
        "npk": size**2, "nph": first**2, "npg": rows * first, "npv": VECTORS * size, "npp": size, "npc": cones,
    }  # fmt: skip


@kernel
def vector(p, k, size):
    return tail(p.vector, k * size)


@kernel
def find_unit(p):
    one = lift(1.0, zero(p.system))
    p.unit[0] = select(less(one, one + DOUBLE), lift(UNIT, one), lift(SINGLE_UNIT, one))
    p.concave[0] = 0.0 * one


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
    nb = list_bounded(p, n, nf, first, nc)
    good = o
    if warm:
        good = is_good(p, n, nf, nc, first, size, nb)
    if not warm or evaluate is not None or some(less(good, 0.5)):
        begin(p, n, nf, nc, first, size, nb, good)
    worth = enter(p, nf, nc, first, size, nb, good)
    count, going, before, length = o, one, lift(1e30, o), o
    dual, rows, gap, late, steep, costs, usual = o, o, o, o, o, o, o
    iteration, last, exact = 0, most + 0, 0
    while True:
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
        going = select(less(tolerance, left), select(less(FLOWN * usual, largest), o, going), o)
        if iteration < last and allowed > 0 and ticks() - begun > allowed:
            late, last = going, iteration
        if iteration == last or not some(less(0.5, going)):
            if evaluate is None or exact > 0:
                break
            exact, going, before = 1, one, lift(1e30, o)
        else:
            mu = measure(p, nc, nb)
            assemble(p, n, nf, nc, first, size, nb, o, False, exact)
            find_step(p, n, nf, nc, first, size, nb, None, exact)
            longest = reach(p, nc, size, nb, None)
            short = 1.0 - minimum(one, 1.0 / maximum(longest, one))
            target = mu * maximum(short * short * short, ENOUGH * tolerance / maximum(gap, lift(NOTHING, o)))
            if iteration >= PATIENCE and iteration % 2 == 0:
                target = maximum(target, CENTRED * mu)
                forget_second(p, nc, nb)
            find_step(p, n, nf, nc, first, size, nb, target, exact)
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
def list_bounded(p, n, nf, first, nc):
    """Lists the places that have ends, and all rows; how many. Variables that cannot move have none, but are held."""
    o = zero(p.system)
    one = lift(1.0, o)
    for c in range(nc):
        a, b, z = p.fx[c], p.fy[c], p.fz[c]
        is_open = select(less(o, p.upper[z]), select(less(NO_FRICTION, p.mu[c]), one, o), o)
        p.open[c] = is_open
        far = ENDLESS * 10.0 * is_open  # what is shut has no tangential force
        p.lower[a], p.lower[b], p.upper[a], p.upper[b] = -far, -far, far, far
        low = maximum(p.lower[z], o)
        p.lower[z] = select(less(o, low), low, -far)  # the cone sees to that
    nb = 0
    for k in range(n + nf):
        j = k if k < n else first + k - n
        low, high = p.lower[j], p.upper[j]
        held = select(less(low, high), o, one)
        p.held[j] = held
        p.has_lower[j] = select(less(-ENDLESS, low), 1.0 - held, o)
        p.has_upper[j] = select(less(high, ENDLESS), 1.0 - held, o)
        if k >= n or some(less(0.5, held + p.has_lower[j] + p.has_upper[j])):
            p.bounded[nb] = j
            nb = nb + 1
        else:
            p.below[j], p.above[j] = o, o
    return nb


@kernel
def is_good(p, n, nf, nc, first, size, nb):
    """1 where slopes at x, multipliers counted, are less steep than they are at 0 without any: else 0."""
    o = zero(p.system)
    g, h, pull, rest, off, steep = (
        vector(p, SLOPE, size), vector(p, LINEAR, size), vector(p, PULL, size), vector(p, REST, size), o, o,
    )  # fmt: skip
    for j in range(first, size):
        pull[j] = o
    for k in range(nb):
        j = p.bounded[k]
        if j >= first:
            pull[j] = p.above[j] * p.has_upper[j] - p.below[j] * p.has_lower[j]
    find_slope(p, n, nf, first, size)
    for j in range(n):
        rest[j] = ld(g, j)
    for k in range(nb):
        j = p.bounded[k]
        if j < first:
            rest[j] = (ld(rest, j) - p.below[j] * p.has_lower[j] + p.above[j] * p.has_upper[j]) * (1.0 - p.held[j])
    for c in range(nc):
        f = p.reaction[c] * p.open[c]
        add(rest, p.fx[c], -f.y)
        add(rest, p.fy[c], -f.z)
        add(rest, p.fz[c], -f.x * p.mu[c])
    for j in range(n):
        off, steep = maximum(off, fabs(ld(rest, j))), maximum(steep, fabs(ld(h, j)))
    return select(less(off, steep), lift(1.0, o), o)


@kernel
def begin(p, n, nf, nc, first, size, nb, good):
    """The minimum that knows of no ends and cones, for a beginning, where that at hand is not `good`; and whether there is
    one: costs that were given may be anything, also where a start is."""
    o = zero(p.system)
    there, x, h = vector(p, PLACE, size), vector(p, STEP, size), vector(p, LINEAR, size)
    total = o
    for i in range(n):
        total = total + ld(p.hessian, i * first + i)
    added = total * (START / max(n, 1))
    assemble(p, n, nf, nc, first, size, nb, added, True, 0)
    p.concave[0] = bends_down(vector(p, INVERSE, size), n, added)
    for i in range(first):
        x[i] = -ld(h, i)
    for i in range(first, size):
        x[i] = p.held[i] * p.lower[i] if i < first + nf else o
    for k in range(nb):
        j = p.bounded[k]
        if j < first:
            x[j] = select(less(0.5, p.held[j]), p.lower[j] * HELD, ld(x, j))
    solve(p, size, x)
    for i in range(first):
        there[i] = select(less(0.5, good), ld(there, i), ld(x, i))


@kernel
def enter(p, nf, nc, first, size, nb, good):
    """A place within all ends and cones, near that at hand, and multipliers that do some work everywhere. What there is
    to be gained in all."""
    o = zero(p.system)
    x, g, h = vector(p, PLACE, size), vector(p, SLOPE, size), vector(p, LINEAR, size)
    for i in range(first, size):
        vector(p, PULL, size)[i] = o
        vector(p, PULL_STEP, size)[i] = o
    is_warm = less(0.5, good)
    put_inside(
        p,
        nf,
        nc,
        first,
        size,
        nb,
        select(is_warm, WARM * APART + o, APART + o),
        select(is_warm, 1.0 - WARM + o, INNER + o),
    )
    find_slope(p, first, nf, first, size)
    worth = o
    for i in range(first):
        worth = worth + fabs(ld(x, i) * ld(g, i)) + 0.5 * fabs(ld(x, i) * ld(h, i))
    worth = maximum(worth, lift(NOTHING_WORTH, o))
    push(p, nc, size, nb, worth * select(is_warm, PUSH * WARM + o, PUSH + o), is_warm)
    for k in range(nb):
        j = p.bounded[k]
        if j >= first:
            vector(p, PULL, size)[j] = select(is_warm, p.above[j] - p.below[j], o)
    return worth


@kernel
def put_inside(p, nf, nc, first, size, nb, apart, inner):
    o = zero(p.system)
    x = vector(p, PLACE, size)
    for r in range(nf):
        x[first + r] = dot(tail(p.general, r * first), x, first)
    force = o
    for c in range(nc):
        force = force + fabs(ld(x, p.fz[c]))
    least = force * (apart / max(nc, 1)) + NOTHING
    far = lift(1e-30, o)
    for k in range(nb):
        j = p.bounded[k]
        beyond = maximum(p.lower[j] - ld(x, j), ld(x, j) - p.upper[j])
        far = maximum(far, select(less(0.5, p.held[j]), o, beyond))
    for k in range(nb):
        j = p.bounded[k]
        low, high, at = p.lower[j], p.upper[j], ld(x, j)
        margin = minimum((high - low) * apart, apart * maximum(fabs(at), far))
        x[j] = select(less(0.5, p.held[j]), low, minimum(maximum(at, low + margin), high - margin))
    for c in range(nc):
        a, b, z = p.fx[c], p.fy[c], p.fz[c]
        normal = maximum(ld(x, z), minimum(least, 0.5 * p.upper[z]))
        x[z] = select(less(0.5, p.held[z]), ld(x, z), normal)
        length = sqrt(ld(x, a) * ld(x, a) + ld(x, b) * ld(x, b))
        share = minimum(lift(1.0, o), inner * p.mu[c] * ld(x, z) / (length + 1e-30)) * p.open[c]
        x[a], x[b] = ld(x, a) * share, ld(x, b) * share


@kernel
def push(p, nc, size, nb, work, is_warm):
    """Multipliers that share this work equally; where it `is_warm`, those at hand, if they do more."""
    o = zero(p.system)
    x, ends = vector(p, PLACE, size), lift(1e-30, o)
    for k in range(nb):
        j = p.bounded[k]
        ends = ends + p.has_lower[j] + p.has_upper[j]
    for c in range(nc):
        ends = ends + p.open[c]
    mu = work / ends + 1e-30
    for k in range(nb):
        j = p.bounded[k]
        low, high = to_lower(p, j, ld(x, j)), to_upper(p, j, ld(x, j))
        below, above = mu / (low + (1.0 - p.has_lower[j])), mu / (high + (1.0 - p.has_upper[j]))
        below = select(is_warm, maximum(below, p.below[j]), below)
        above = select(is_warm, maximum(above, p.above[j]), above)
        p.below[j], p.above[j] = below * p.has_lower[j], above * p.has_upper[j]
    for c in range(nc):
        s, f = slack(p, c, x), choose(is_warm, p.reaction[c], Vec3(o, o, o))
        share = mu * p.open[c] / maximum(s.x * s.x - s.y * s.y - s.z * s.z, lift(1e-30, o))
        p.reaction[c] = Vec3(f.x + s.x * share, f.y - s.y * share, f.z - s.z * share)


@kernel
def to_lower(p, j, at):
    """How far a place is from its lower end: no nearer than rounding lets see; 0 if there is none."""
    low = p.lower[j]
    return maximum(at - low, p.unit[0] * fabs(low) + NOTHING) * p.has_lower[j]


@kernel
def to_upper(p, j, at):
    high = p.upper[j]
    return maximum(high - at, p.unit[0] * fabs(high) + NOTHING) * p.has_upper[j]


@kernel
def slack(p, c, x):
    return Vec3(p.mu[c] * ld(x, p.fz[c]), ld(x, p.fx[c]), ld(x, p.fy[c]))


@kernel
def find_slope(p, n, nf, first, size):
    """Hx + h + F'l, and F x of the rows."""
    x, g, h, l = vector(p, PLACE, size), vector(p, SLOPE, size), vector(p, LINEAR, size), vector(p, PULL, size)
    for j in range(0, first, 4):
        st(g, j, ld(h, j, Quad))
    times_hessian(p, n, first, x, g)
    for r in range(nf):
        row = tail(p.general, r * first)
        g[first + r] = dot(row, x, first) - p.give[first + r] * ld(l, first + r)
        for j in range(0, first, 4):
            st(g, j, ld(g, j, Quad) + ld(row, j, Quad) * ld(l, first + r))


@kernel
def times_hessian(p, n, first, x, y):
    """y += H x"""
    for i in range(0, n, 4):
        a, b, c, d = ld(x, i), ld(x, i + 1), ld(x, i + 2), ld(x, i + 3)
        e, k, m, q = i * first, (i + 1) * first, (i + 2) * first, (i + 3) * first
        for j in range(0, first, 4):
            total = ld(y, j, Quad) + ld(p.hessian, e + j, Quad) * a + ld(p.hessian, k + j, Quad) * b
            st(y, j, total + ld(p.hessian, m + j, Quad) * c + ld(p.hessian, q + j, Quad) * d)


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
def choose(condition, x, y):
    return Vec3(select(condition, x.x, y.x), select(condition, x.y, y.y), select(condition, x.z, y.z))


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
    for j in range(first, first + nf):
        ends = maximum(p.has_lower[j] * fabs(p.lower[j]), p.has_upper[j] * fabs(p.upper[j]))
        largest_part = maximum(fabs(ld(x, j)), ends) + 1e-30
        for i in range(n):
            largest_part = maximum(largest_part, fabs(ld(p.general, (j - first) * first + i) * ld(x, i)))
        rows = maximum(rows, fabs(ld(g, j) - ld(x, j)) / largest_part)
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
def measure(p, nc, nb):
    """The mean work of multipliers; and for all places 1 / (s z), for all cones their scaling."""
    o = zero(p.system)
    x = tail(p.vector, 0)
    work, ends = o, lift(1e-30, o)
    for k in range(nb):
        j = p.bounded[k]
        below, above, at = p.below[j], p.above[j], ld(x, j)
        here, there = p.has_lower[j], p.has_upper[j]
        p.room_below[j], p.room_above[j] = to_lower(p, j, at), to_upper(p, j, at)
        low, high = p.room_below[j] * below, p.room_above[j] * above
        p.inside[j], p.outside[j] = here / (low + (1.0 - here)), there / (high + (1.0 - there))
        work, ends = work + low + high, ends + here + there
    for c in range(nc):
        s, is_open = slack(p, c, x), p.open[c]
        apart = 1.0 - is_open
        s = Vec3(s.x + apart, s.y, s.z)  # of a cone that is shut, anything
        f = Vec3(p.reaction[c].x + apart, p.reaction[c].y, p.reaction[c].z)
        W = scaling(s, f, p.unit[0])
        balance = scaled(W, f)
        p.scaling[c], p.balance[c], p.inverse[c] = W, balance, inverted(balance, p.unit[0])
        work, ends = work + (s.x * f.x + s.y * f.y + s.z * f.z) * is_open, ends + is_open
    return work / ends


@kernel
def assemble(p, n, nf, nc, first, size, nb, added, alone, turned):
    """The matrix and its factors. `alone`: without inequalities, but with `added` on the diagonal. `turned`: forces along
    the axes of their barriers."""
    K, H, o = p.system, p.hessian, zero(p.system)
    for i in range(n):
        for j in range(i // 4 * 4, first, 4):
            st(K, i * size + j, ld(H, i * first + j, Quad))
        for j in range(first, size):
            st(K, i * size + j, ld(p.general, (j - first) * first + i) * (1.0 - p.held[i]) if j < first + nf else o)
        if alone:
            st(K, i * size + i, ld(K, i * size + i) + added)
    for i in range(first, size):
        for j in range(i // 4 * 4, size):
            st(K, i * size + j, o)
    for i in range(n, first):
        for j in range(i // 4 * 4, size):
            st(K, i * size + j, o)
        st(K, i * size + i, 1.0)
    for i in range(first, size):
        st(K, i * size + i, -1.0)
    for r in range(nf):
        j, give = first + r, o
        for i in range(n):
            along = ld(K, i * size + j)
            give = give + along * along / maximum(ld(K, i * size + i), lift(1e-30, o))
        st(K, j * size + j, select(less(o, give), -SOFT * give - p.give[j] - 1e-30, -lift(1.0, o)))
    for k in range(nb):
        j = p.bounded[k]
        below, above, held = p.below[j], p.above[j], p.held[j]
        if alone:
            stiff = o
        else:
            stiff = below * below * p.inside[j] + above * above * p.outside[j]
        at = j * size + j
        if j < first:
            st(K, at, ld(K, at) + stiff + held * HELD)
        else:
            st(K, at, select(less(0.5, held), ld(K, at), -1.0 / maximum(stiff, lift(1e-25, o)) - p.give[j]))
    for c in range(nc):
        a, b, z, is_open = p.fx[c], p.fy[c], p.fz[c], p.open[c]
        if turned > 0:
            turn_block(p, c, size)
        elif not alone:
            B = barrier_block(p.mu[c], p.scaling[c])
            add(K, a * size + a, B.xx * is_open)
            add(K, b * size + b, B.yy * is_open)
            add(K, z * size + z, B.zz * is_open)
            add(K, min(a, b) * size + max(a, b), B.xy * is_open)
            add(K, min(a, z) * size + max(a, z), B.xz * is_open)
            add(K, min(b, z) * size + max(b, z), B.yz * is_open)
    factor(K, size, first, size, vector(p, INVERSE, size), LEAST, vector(p, SCALED, size))


@kernel
def turn_block(p, c, size):
    """A force's rows and columns along its axes, and its barrier: beside that, little is left of what H knows of the other
    axes unless they are those of the system."""
    K, a, b, z = p.system, p.fx[c], p.fy[c], p.fz[c]
    R, B = barrier_axes(p.mu[c], p.scaling[c], p.open[c], p.held[z])
    p.axes[c] = R
    for j in range(size):
        if j != a and j != b and j != z:
            k, e, i = upper_place(a, j, size), upper_place(b, j, size), upper_place(z, j, size)
            found = R @ Vec3(ld(K, k), ld(K, e), ld(K, i))
            st(K, k, found.x)
            st(K, e, found.y)
            st(K, i, found.z)
    ab, az, bz = ld(K, upper_place(a, b, size)), ld(K, upper_place(a, z, size)), ld(K, upper_place(b, z, size))
    aa, bb, zz = ld(K, a * size + a), ld(K, b * size + b), ld(K, z * size + z)
    M = R @ Mat3(aa, ab, az, ab, bb, bz, az, bz, zz) @ transpose(R)
    st(K, a * size + a, M.xx + B.xx)
    st(K, b * size + b, M.yy + B.yy)
    st(K, z * size + z, M.zz + B.zz)
    st(K, upper_place(a, b, size), M.xy + B.xy)
    st(K, upper_place(a, z, size), M.xz + B.xz)
    st(K, upper_place(b, z, size), M.yz + B.yz)


@kernel
def upper_place(i, j, size):
    return min(i, j) * size + max(i, j)


@kernel
def turn_forces(p, nc, d, back):
    """Forces in d along the axes of their barriers; or `back`."""
    for c in range(nc):
        a, b, z, R = p.fx[c], p.fy[c], p.fz[c], p.axes[c]
        f = Vec3(ld(d, a), ld(d, b), ld(d, z))
        f = turn_back(R, f) if back else R @ f
        d[a], d[b], d[z] = f.x, f.y, f.z


@kernel
def add(K, k, x):
    st(K, k, ld(K, k) + x)


@kernel
def solve(p, size, d):
    inverse = vector(p, INVERSE, size)
    solve_lower(p.system, size, size, inverse, d)
    solve_upper(p.system, size, size, inverse, d)


@kernel
def pulls(p, j, target):
    """What barriers ask of the multipliers of both ends."""
    if target is None:
        low = high = zero(p.system)
    else:
        low = (target - p.second_below[j]) * p.below[j] * p.inside[j]
        high = (target - p.second_above[j]) * p.above[j] * p.outside[j]
    return low, high


@kernel
def cone_pull(p, c, target):
    """The same of a cone, scaled: W z + W dz + W^-1 ds."""
    o = zero(p.system)
    if target is None:
        found = Vec3(o, o, o)
    else:
        second = p.second[c]
        found = circle_solved(p.balance[c], p.inverse[c], Vec3(target - second.x, -second.y, -second.z))
    return found


@kernel
def find_step(p, n, nf, nc, first, size, nb, target, turned):
    """Newton's step towards products s z of `target`."""
    o = zero(p.system)
    x, g, d, l = vector(p, PLACE, size), vector(p, SLOPE, size), vector(p, STEP, size), vector(p, PULL, size)
    for i in range(first):
        d[i] = -ld(g, i)
    for i in range(n, first):
        d[i] = o
    for i in range(first, size):
        d[i] = ld(x, i) - ld(g, i) if i < first + nf else o
    for k in range(nb):
        j = p.bounded[k]
        low, high = pulls(p, j, target)
        if j < first:
            d[j] = select(less(0.5, p.held[j]), o, ld(d, j) + low - high)
        else:
            give = -softness(p, j)
            d[j] = ld(d, j) - give * (ld(l, j) + low - high)
    if target is not None:
        for c in range(nc):
            f = unscaled(p.scaling[c], cone_pull(p, c, target))
            add(d, p.fx[c], f.y * p.open[c])
            add(d, p.fy[c], f.z * p.open[c])
            add(d, p.fz[c], f.x * p.mu[c] * p.open[c])
    if turned > 0:
        turn_forces(p, nc, d, False)
    solve(p, size, d)
    if turned > 0:
        turn_forces(p, nc, d, True)
    for k in range(nb):
        j = p.bounded[k]
        if j >= first:
            low, high = pulls(p, j, target)
            change = ld(d, j)
            vector(p, PULL_STEP, size)[j] = change
            d[j] = softness(p, j) * (ld(l, j) + change + low - high)


@kernel
def softness(p, j):
    """D^-1 of a row; 0 of an equality."""
    stiff = p.below[j] * p.below[j] * p.inside[j] + p.above[j] * p.above[j] * p.outside[j]
    return select(less(0.5, p.held[j]), lift(0.0, stiff), 1.0 / maximum(stiff, lift(1e-25, stiff)))


@kernel
def reach(p, nc, size, nb, target):
    """1 / the longest step that stays inside; the changes of multipliers. Without a target, also what Newton neglects."""
    d, longest = vector(p, STEP, size), zero(p.system)
    for k in range(nb):
        j = p.bounded[k]
        below, above, ds = p.below[j], p.above[j], ld(d, j)
        per_low, per_high = below * p.inside[j], above * p.outside[j]  # 1 / s
        low, high = pulls(p, j, target)
        dl, du = low - below - below * per_low * ds, high - above + above * per_high * ds
        p.change_below[j], p.change_above[j] = dl, du
        if target is None:
            p.second_below[j], p.second_above[j] = ds * dl, -ds * du
        ends = maximum(-ds * per_low, ds * per_high)
        multipliers = maximum(-dl * (p.room_below[j] * p.inside[j]), -du * (p.room_above[j] * p.outside[j]))
        longest = maximum(longest, maximum(ends, multipliers))
    for c in range(nc):
        W, balance, inverse, is_open = p.scaling[c], p.balance[c], p.inverse[c], p.open[c]
        ds = slack(p, c, d)
        ds = unscaled(W, ds * is_open)
        dz = cone_pull(p, c, target) - balance - ds
        if target is None:
            p.second[c] = circle(ds, dz)
        p.change[c] = unscaled(W, dz) * is_open
        longest = maximum(longest, maximum(way_out(inverse, ds), way_out(inverse, dz)) * is_open)
    return longest


@kernel
def forget_second(p, nc, nb):
    o = zero(p.system)
    for k in range(nb):
        p.second_below[p.bounded[k]], p.second_above[p.bounded[k]] = o, o
    for c in range(nc):
        p.second[c] = Vec3(o, o, o)


@kernel
def room(p, nc, size, first, nb, d):
    """How much of a change of x stays inside, up to all of it; 0 of one that is not finite."""
    o, x = zero(p.system), vector(p, PLACE, size)
    longest = o
    for k in range(nb):
        j = p.bounded[k]
        if j < first:
            low, high, ds = to_lower(p, j, ld(x, j)), to_upper(p, j, ld(x, j)), ld(d, j)
            nearest_low, nearest_high = low + (1.0 - p.has_lower[j]), high + (1.0 - p.has_upper[j])
            longest = maximum(longest, -ds * p.has_lower[j] / nearest_low)
            longest = maximum(longest, ds * p.has_upper[j] / nearest_high)
    for c in range(nc):
        s = slack(p, c, x)
        s = Vec3(s.x + (1.0 - p.open[c]), s.y, s.z)
        longest = maximum(longest, way_out(inverted(s, p.unit[0]), slack(p, c, d)) * p.open[c])
    share = minimum(lift(1.0, o), NEARLY / maximum(longest, lift(NOTHING, o)))
    for i in range(size):
        share = select(less(fabs(ld(d, i)), lift(ENDLESS, o)), share, o)
    return share


@kernel
def keep_change(p, first, size, length):
    """It may be too small to be seen in x, but not in what depends on it."""
    d, change = vector(p, STEP, size), vector(p, CHANGE, size)
    for i in range(first):
        change[i] = select(less(0.0, length), length * ld(d, i), 0.0 * length)


@kernel
def move(p, nf, nc, first, size, nb, length):
    x, d, l, dl = vector(p, PLACE, size), vector(p, STEP, size), vector(p, PULL, size), vector(p, PULL_STEP, size)
    moves = less(0.0, length)
    for i in range(first + nf):
        x[i] = select(moves, ld(x, i) + length * ld(d, i), ld(x, i))
    for i in range(first, first + nf):
        l[i] = select(moves, ld(l, i) + length * ld(dl, i), ld(l, i))
    for k in range(nb):
        j = p.bounded[k]
        p.below[j] = select(moves, p.below[j] + length * p.change_below[j], p.below[j])
        p.above[j] = select(moves, p.above[j] + length * p.change_above[j], p.above[j])
    for c in range(nc):
        f, df = p.reaction[c], p.change[c]
        p.reaction[c] = Vec3(
            select(moves, f.x + length * df.x, f.x),
            select(moves, f.y + length * df.y, f.y),
            select(moves, f.z + length * df.z, f.z),
        )
