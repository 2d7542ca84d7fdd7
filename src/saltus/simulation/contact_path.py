"""The contact problem by following a path of easier ones.

    H(x, a) = x - P((1 - a) (x - u / D) + a home) = 0,      u = G x + g,      from a = 1 to a = 0

At a = 1 each contact is alone, and x = P(home) is the only solution; at a = 0 stands the problem itself. In between all
impulses stay bounded, and solutions lie on a curve without ends: it leads from one to the other, though sometimes back for a
while. Its direction is dx / d(1 - a) = (H_x)^-1 Q (tau - home), towards lesser a where H_x has a positive determinant, away
from it where the determinant is negative. Each step goes straight ahead, by what the last ones have borne, and comes back
to the curve by the shortest Newton steps, in x (weighed by D) and in log a. Corners, where a contact begins to stick, to
slide or opens, make steps short, and home is chosen so that no two corners coincide: near where a solution is thought to
be, with disorder.

That finds solutions where Newton's method, near as it may begin, does not. A step costs some solutions of the Newton
system (contact_system.py); mostly 20 to 60 lead to the end, a few hundred where contacts are wedged and impulses large.

| code | what | shape |
|---|---|---|
| `home` | what it says above | n |
| `impulse`, `rate` | where H is looked at | n |
| `step`, `along` | -(H_x)^-1 H, and the direction there | n |
| `passed`, `ahead` | the last point on the curve, and the direction there | n |

Reference: E. Allgower, K. Georg, Introduction to numerical continuation methods (2003), chapters 2, 3 and 12.
"""

from __future__ import annotations

from saltus.kernel import floor, kernel, ld, less, lift, maximum, minimum, select, some, sqrt, zero
from saltus.simulation.contact_law import project, within
from saltus.simulation.contact_newton import choose, find_rates, judge
from saltus.simulation.contact_system import assemble, eliminate, set_three, three

FIRST, LONGEST, SHORTEST = 0.5, 1e3, 1e-7
"""Lengths of steps, where 1 is what contacts would be pushed by if alone, or a factor e of a."""

LONGER, SHORTER, BORNE = 2.0, 0.4, 0.7
"""By how much a step changes: after one that was easily borne, was not, just so."""

EASY, TRIES = 3.5, 12.5
"""How many corrections make a step easy, and when it is given up."""

CLOSE = 1e-2
"""What H may be on the curve: times a, and a typical impulse."""

AT_ONCE = 0.1
"""To what share of itself a goes down at once."""

ROUNDING = 1e-13
"""Below this, a does not make H on the curve less."""

GOLDEN, OTHER = 0.6180339887498949, 0.7548776662466927
"""Multiples of these, less their whole parts, are as good as chance."""

FIXED = 1e-3
"""The share of its contact's D below which a row is not one that impulses move."""

NOTHING = 1e-30


@kernel
def follow(w, first, n, law, disorder, turn, end, most, going):
    """From near `impulse` to a = `end`, where a lane is `going` (1 or 0), by at most so many solutions of the system."""
    o, one = zero(w.delassus), lift(1.0, zero(w.delassus))
    size, rate = depart(w, first, n, law, disorder, turn, going)
    weight = 1.0 / (size * size)
    a, base, length, forward, tried = one, one, lift(FIRST, o), one, o
    for _ in range(most):
        if not some(less(0.5, going)):
            break
        m, symmetric = assemble(w, first, n, law, a, True)
        sign = eliminate(w, n, m, symmetric, True)
        _, miss = judge(w, first, n, law, None, a)
        ss, sd, dd, force = o, o, o, o
        for i in range(n):
            s, d, D = w.step[i], w.along[i] * a, w.scale[i]
            ss, sd, dd = ss + D * s * s, sd + D * s * d, dd + D * d * d
            force = maximum(force, D * D * w.impulse[i] * w.impulse[i])
        ss, sd, dd = ss * weight, sd * weight, dd * weight
        ahead = -sd / (1.0 + dd)  # of 1 - a, over a: the shortest way back to the curve
        way = ss + sd * ahead
        bound = CLOSE * maximum(a, lift(ROUNDING, o))
        here = select(less(miss, bound * bound * (rate * rate + force)), select(less(a, 1.0 + 1e-9), going, o), o)
        here = select(less(0.0, sign * sign), here, o)
        comes = select(less(way, length * length), one, select(less(tried, 0.5), one, o))
        comes = select(less(tried, TRIES), select(less(a, 1.0), comes, o), o) * (1.0 - here) * going
        fails = (1.0 - here) * (1.0 - comes) * going
        base = select(less(0.5, here), a, base)
        forward = select(less(0.5, here), sign / sqrt(1.0 + dd), forward)
        longer = select(less(tried, EASY), LONGER * one, select(less(tried, TRIES - 1.0), one, BORNE * one))
        length = select(
            less(0.5, here), minimum(length * longer, LONGEST * one), select(less(0.5, fails), length * SHORTER, length)
        )
        going = select(less(end, base), select(less(SHORTEST, length), going, o), o)
        begins = here + fails
        length = select(less(1.0 - AT_ONCE, length * forward), (1.0 - AT_ONCE) / forward, length)
        for i in range(n):
            s, d, x = w.step[i], w.along[i] * a, w.impulse[i]
            w.passed[i], w.ahead[i] = select(less(0.5, here), x, w.passed[i]), select(less(0.5, here), d, w.ahead[i])
            x = select(less(0.5, comes), x + s + d * ahead, x)
            w.impulse[i] = select(less(0.5, begins), w.passed[i] + w.ahead[i] * (length * forward), x)
        a = select(less(0.5, comes), a * (1.0 - minimum(ahead, 0.9 * one)), a)
        a = select(less(0.5, begins), base * (1.0 - length * forward), a)
        tried = select(less(0.5, begins), o, tried + comes)
        find_rates(w, n)
    for i in range(n):
        w.impulse[i] = w.passed[i]
    find_rates(w, n)


@kernel
def sizes(w, n, i, x, size, rate):
    """Squares of typical impulses, by the root of D, and of rates, with that of row i."""
    x = select(less(FIXED * w.scale[i], ld(w.delassus, i * n + i)), w.scale[i] * x, 0.0 * x)
    return maximum(size, x * x * w.inverse[i]), maximum(rate, x * x)


@kernel
def depart(w, first, n, law, disorder, turn, going):
    """Where a path begins; a typical size of impulses, by the root of D, and of rates: those of rows and contacts that were
    alone. What is far would not be pushed, however fast it moves."""
    o, size, rate = zero(w.delassus), zero(w.delassus), zero(w.delassus)
    for i in range(first):
        x = within(-w.free[i] * w.inverse[i], w.lower[i], w.upper[i])
        size, rate = sizes(w, n, i, x, size, rate)
    for i in range(first, n, 3):
        x = project(law, w.friction[i], three(w.free, i) * -w.inverse[i])
        size, rate = sizes(w, n, i, x.x, size, rate)
        size, rate = sizes(w, n, i + 1, x.y, size, rate)
        size, rate = sizes(w, n, i + 2, x.z, size, rate)
    size, rate = sqrt(size) + NOTHING, sqrt(rate)
    for i in range(n):
        x = w.impulse[i]
        chance = GOLDEN * i + OTHER * turn + o
        chance = chance - floor(chance) - 0.5
        w.passed[i], w.ahead[i] = x, o
        w.home[i] = x - w.rate[i] * w.inverse[i] + chance * (disorder * size) * sqrt(w.inverse[i])
    for i in range(first):
        x = within(w.home[i], w.lower[i], w.upper[i])
        w.impulse[i] = select(less(0.5, going), x, w.impulse[i])
    for i in range(first, n, 3):
        x, old = project(law, w.friction[i], three(w.home, i)), three(w.impulse, i)
        set_three(w.impulse, i, choose(less(0.5, going), x, old))
    find_rates(w, n)
    return size, rate
