"""Where an interior point method begins: within all ends and cones, with multipliers that do some work everywhere."""

from __future__ import annotations

from saltus.control.cholesky import dot
from saltus.control.cones import NOTHING
from saltus.control.convexity import bends_down
from saltus.control.interior_program import (
    ENDLESS,
    INVERSE,
    LINEAR,
    PLACE,
    PULL,
    PULL_STEP,
    REST,
    SLOPE,
    STEP,
    add,
    find_slope,
    slack,
    to_lower,
    to_upper,
    vector,
)
from saltus.control.interior_system import HELD, assemble, follow_forces, solve
from saltus.kernel import fabs, kernel, ld, less, lift, maximum, minimum, select, sqrt, tail, zero
from saltus.spatial.algebra import Vec3

START, APART, INNER = 1e-6, 0.1, 0.9
"""Where iterations start: what is added to H's diagonal; how far from ends; how far inside cones."""

PUSH = 3e-4
"""The work of barriers at the start, beside that of the slope."""

NOTHING_WORTH = 1e-12
"""The least that there is to be gained."""

WARM = 1e-2
"""How much less of both if it starts from a solution of something similar."""


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
def begin(p, n, nf, nc, first, size, ahead, width, nb, good):
    """The minimum that knows of no ends and cones, for a beginning, where that at hand is not `good`; and whether there is
    one: costs that were given may be anything, also where a start is."""
    o = zero(p.system)
    there, x, h = vector(p, PLACE, size), vector(p, STEP, size), vector(p, LINEAR, size)
    total = o
    for i in range(n):
        total = total + ld(p.hessian, i * first + i)
    added = total * (START / max(n, 1))
    assemble(p, n, nc, first, size, ahead, width, nb, added, True, 0)
    p.concave[0] = bends_down(tail(p.vector, INVERSE * size + ahead), n - ahead, added)
    for i in range(first):
        x[i] = -ld(h, i)
    for i in range(first, size):
        x[i] = p.held[i] * p.lower[i] if i < first + nf else o
    for k in range(nb):
        j = p.bounded[k]
        if j < first:
            x[j] = select(less(0.5, p.held[j]), p.lower[j] * HELD, ld(x, j))
    solve(p, nc, size, ahead, width, x)
    for i in range(first):
        there[i] = select(less(0.5, good), ld(there, i), ld(x, i))


@kernel
def go_inside(p, n, nf, nc, first, size, ahead, width, nb, good, where):
    """A place within all ends and cones, near that at hand, in the lanes `where` it is asked for; loose variables follow."""
    x, d, is_warm, o = vector(p, PLACE, size), vector(p, STEP, size), less(0.5, good), zero(p.system)
    for i in range(size):
        d[i] = ld(x, i)
    apart, inner = select(is_warm, WARM * APART + o, APART + o), select(is_warm, 1.0 - WARM + o, INNER + o)
    put_inside(p, nf, nc, first, size, nb, apart, inner)
    for i in range(first + nf):
        if i < n or i >= first:
            x[i] = select(less(0.5, where), ld(x, i), ld(d, i))
    for i in range(n):
        d[i] = ld(x, i) - ld(d, i)
    follow_forces(p, first, size, ahead, width, d)
    for i in range(n):
        x[i] = ld(x, i) + (ld(d, i) if p.loose[i] > 0 else o)


@kernel
def enter(p, nf, nc, first, size, nb, good):
    """Multipliers that do some work everywhere. What there is to be gained in all."""
    o = zero(p.system)
    x, g, h = vector(p, PLACE, size), vector(p, SLOPE, size), vector(p, LINEAR, size)
    for i in range(first, size):
        vector(p, PULL, size)[i] = o
        vector(p, PULL_STEP, size)[i] = o
    is_warm = less(0.5, good)
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
        low, high = ends_of(p, j)
        beyond = maximum(low - ld(x, j), ld(x, j) - high)
        far = maximum(far, select(less(0.5, p.held[j]), o, beyond))
    for k in range(nb):
        j = p.bounded[k]
        (low, high), at = ends_of(p, j), ld(x, j)
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
def ends_of(p, j):
    """Ends of what is not loose in its lane."""
    far = lift(10.0 * ENDLESS, zero(p.system))
    low = select(less(0.5, p.has_lower[j] + p.held[j]), p.lower[j], -far)
    return low, select(less(0.5, p.has_upper[j] + p.held[j]), p.upper[j], far)


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
def choose(condition, x, y):
    return Vec3(select(condition, x.x, y.x), select(condition, x.y, y.y), select(condition, x.z, y.z))
