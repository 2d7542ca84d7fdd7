"""Ends that nothing comes near cost nothing: a variable outside of cones is loose until it passes one of its ends.

Loose variables are eliminated once (interior_system.py), and have no multipliers. They go where costs take them; one that
passes an end, in some lane of a packet, is put back inside and has that end, and all others of its own, from then on.
"""

from __future__ import annotations

from saltus.control.interior_program import PLACE, to_lower, to_upper, vector
from saltus.kernel import fabs, kernel, ld, less, maximum, minimum, select, some

NEAR = 0.02
"""The share of itself by which a variable is near an end at the start."""

ROOM, AWAY = 0.1, 0.01
"""How far from an end a variable is put that has passed it: of the room between ends, at most; of itself, at least."""


@kernel
def loosen(p, n, nc):
    """All variables are loose that are in no cone and not held."""
    for j in range(n):
        p.loose[j] = 0 if some(less(0.5, p.held[j])) else 1
    for c in range(nc):
        p.loose[p.fx[c]], p.loose[p.fy[c]], p.loose[p.fz[c]] = 0, 0, 0


@kernel
def tighten(p, n, size, near, going, mu):
    """Those that pass an end, or come `near`, where it is `going`, are loose no more; whether there are any. Their pairs do
    the work `mu`, unless that is None."""
    x, found = vector(p, PLACE, size), False
    for j in range(n):
        if p.loose[j] > 0:
            at = ld(x, j)
            beyond = maximum(p.lower[j] - at, at - p.upper[j])
            there = less(-near * fabs(at), beyond)
            if some(less(0.5, select(there, going, 0.0 * going))):
                found = True
                p.loose[j] = 0
                if mu is not None:
                    admit(p, x, j, beyond, going, mu)
    return found


@kernel
def admit(p, x, j, beyond, going, mu):
    low, high, at = p.lower[j], p.upper[j], ld(x, j)
    margin = minimum(ROOM * (high - low), maximum(beyond, AWAY * fabs(at)))
    inside = minimum(maximum(at, low + margin), high - margin)
    at = select(less(0.5, going), inside, at)
    x[j] = at
    work = mu * going + 1e-30
    p.below[j] = work / (to_lower(p, j, at) + (1.0 - p.has_lower[j])) * p.has_lower[j]
    p.above[j] = work / (to_upper(p, j, at) + (1.0 - p.has_upper[j])) * p.has_upper[j]
