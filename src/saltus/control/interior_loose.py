"""Ends that nothing comes near cost nothing: variables outside of cones, and rows, are loose until they pass an end.

Loose variables are eliminated once, loose rows are not there (interior_system.py); neither has multipliers. They go where
costs take them. One that passes an end in some lane of a packet is put back inside, and has its ends from then on, in that
lane: what the others find does not depend on it.
"""

from __future__ import annotations

from saltus.control.cholesky import dot
from saltus.control.cones import NOTHING
from saltus.control.interior_program import ENDLESS, PLACE, STEP, to_lower, to_upper, vector
from saltus.kernel import fabs, kernel, ld, less, lift, maximum, minimum, select, some, tail, zero

NEAR = 0.02
"""The share of itself by which something is near an end at the start."""

BEYOND = 0.5
"""The share of the room between ends, or of the end itself, by which a step may pass one."""

ROOM, AWAY = 0.1, 0.01
"""How far from an end something is put that has passed it: of the room between ends, at most; of itself, at least."""


@kernel
def loosen(p, n, nf, first, nc):
    """Whatever is in no cone, and not held in any lane, is loose. How many of them are watched, as they have ends."""
    o, watched = zero(p.system), 0
    for c in range(nc):
        p.loose[p.fx[c]], p.loose[p.fy[c]], p.loose[p.fz[c]] = -1, -1, -1
    for k in range(n + nf):
        j = k if k < n else first + k - n
        if p.loose[j] == 0 and not some(less(0.5, p.held[j])):
            p.loose[j] = 1
            if some(less(0.5, p.has_lower[j] + p.has_upper[j])):
                p.watched[watched] = j
                watched = watched + 1
                p.has_lower[j], p.has_upper[j] = o, o
    return watched


@kernel
def see_rows(p, watched, first, size):
    """Where loose rows are."""
    x = vector(p, PLACE, size)
    for k in range(watched):
        j = p.watched[k]
        if j >= first:
            at = dot(tail(p.general, (j - first) * first), x, first)
            x[j] = select(less(0.5, p.has_lower[j] + p.has_upper[j]), ld(x, j), at)


@kernel
def too_far(p, watched, first, size, length, high):
    """The share of the last step by which something loose went too far beyond an end; all of it if multipliers are `high`:
    then nothing is to be found there."""
    x, d, o = vector(p, PLACE, size), vector(p, STEP, size), zero(p.system)
    back = o
    for k in range(watched):
        j = p.watched[k]
        at, low, up = ld(x, j), p.lower[j], p.upper[j]
        beyond = maximum(low - at, at - up)
        end = maximum(fabs(at) - beyond, 0.1 * fabs(at))  # how large, about
        excess = beyond - BEYOND * minimum(up - low, end) * (1.0 - high)
        excess = select(less(0.5, p.has_lower[j] + p.has_upper[j]), o, maximum(excess, o))
        if some(less(o, excess)):
            change = ld(d, j) if j < first else dot(tail(p.general, (j - first) * first), d, first)
            share = minimum(lift(1.0, o), excess / (fabs(change) * length + NOTHING))
            back = maximum(back, select(less(o, excess * high), lift(1.0, o), share))
    return back


@kernel
def tighten(p, watched, first, size, near, going, mu):
    """What passes an end, or comes `near`, where it is `going`, has its ends from now on; 1 if there is any, 2 if one was
    loose; and `fresh`: in which lanes. Their pairs do the work `mu`, unless that is None."""
    x, one, found = vector(p, PLACE, size), lift(1.0, zero(p.system)), 0
    p.fresh[0] = 0.0 * one
    for k in range(watched):
        j = p.watched[k]
        at, low, high = ld(x, j), p.lower[j], p.upper[j]
        beyond = maximum(low - at, at - high)
        passes = select(less(-near * fabs(at), beyond), going, 0.0 * going)
        had = p.has_lower[j] + p.has_upper[j]
        passes = select(less(0.5, had), 0.0 * going, passes)
        if some(less(0.5, passes)):
            found = max(found, 2 if p.loose[j] > 0 else 1)
            p.loose[j] = 0
            new = less(0.5, passes)
            p.fresh[0] = maximum(p.fresh[0], passes)
            p.has_lower[j] = select(new, select(less(-ENDLESS, low), one, 0.0 * one), p.has_lower[j])
            p.has_upper[j] = select(new, select(less(high, ENDLESS), one, 0.0 * one), p.has_upper[j])
            if mu is not None:
                margin = minimum(ROOM * (high - low), maximum(beyond, AWAY * fabs(at)))
                at = select(new, minimum(maximum(at, low + margin), high - margin), at)
                p.below[j] = admitted(new, p.has_lower[j], to_lower(p, j, at), mu, p.below[j])
                p.above[j] = admitted(new, p.has_upper[j], to_upper(p, j, at), mu, p.above[j])
        x[j] = select(less(0.5, had), ld(x, j), at)
    return found


@kernel
def admitted(new, has_end, room, mu, before):
    return select(new, (mu + 1e-30) / (room + (1.0 - has_end)) * has_end, before)
