"""The program that an interior point method solves: its numbers, places within its ends, and its slope."""

from __future__ import annotations

from saltus.control.cholesky import dot
from saltus.control.cones import NOTHING, Inverse, Scaling
from saltus.kernel import Layout, Quad, fabs, kernel, ld, less, lift, maximum, select, some, st, tail, zero
from saltus.spatial.algebra import Mat3, Vec3

ENDLESS = 1e20
"""Bounds beyond this are none."""

NO_FRICTION = 1e-9
"""Friction below this is none: forces along the normal are what is left of a cone."""

DOUBLE, UNIT, SINGLE_UNIT = 1e-9, 4e-16, 2e-7
"""Single precision is what does not tell 1 from 1 + 1e-9; and the shares by which numbers are rounded."""

PLACE, STEP, SLOPE, LINEAR, PULL, PULL_STEP, REST, INVERSE, COST, CHANGE, SEATING, BEHIND, SCALED = range(13)

VECTORS = SCALED + 4

PROGRAM = Layout(
    one={"unit": None, "base": None, "base_cost": None, "trifle": None, "concave": None, "fresh": None},
    npk={"system": None},
    nps={"settled": None},
    nph={"hessian": None},
    npg={"general": None},
    npv={"vector": None},
    npp={
        "lower": None, "upper": None, "below": None, "above": None, "inside": None, "outside": None, "held": None,
        "has_lower": None, "has_upper": None, "room_below": None, "room_above": None,
        "second_below": None, "second_above": None, "change_below": None, "change_above": None, "give": None,
        "bounded": int, "watched": int, "loose": int, "seat": int, "seated": int,
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
        "npk": size**2, "nps": size**2, "nph": first**2, "npg": rows * first, "npv": VECTORS * size, "npp": size,
        "npc": cones,
    }  # fmt: skip


@kernel
def vector(p, k, size):
    return tail(p.vector, k * size)


@kernel
def find_unit(p):
    one = lift(1.0, zero(p.system))
    p.unit[0] = select(less(one, one + DOUBLE), lift(UNIT, one), lift(SINGLE_UNIT, one))
    p.concave[0] = 0.0 * one


@kernel
def find_ends(p, n, nf, first, nc):
    """Which ends there are. Variables that cannot move have none, but are held; none is loose."""
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
    for k in range(n + nf):
        j = k if k < n else first + k - n
        low, high = p.lower[j], p.upper[j]
        held = select(less(low, high), o, one)
        p.held[j] = held
        p.has_lower[j] = select(less(-ENDLESS, low), 1.0 - held, o)
        p.has_upper[j] = select(less(high, ENDLESS), 1.0 - held, o)
        p.loose[j] = 0


@kernel
def list_bounded(p, n, nf, first):
    """Lists the places that have ends, and rows, that are not loose; how many. All others have no multipliers."""
    nb, o = 0, zero(p.system)
    for k in range(n + nf):
        j = k if k < n else first + k - n
        if p.loose[j] <= 0 and (k >= n or some(less(0.5, p.held[j] + p.has_lower[j] + p.has_upper[j]))):
            p.bounded[nb] = j
            nb = nb + 1
        else:
            p.below[j], p.above[j] = o, o
    return nb


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
        if p.loose[first + r] <= 0:
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
def add(K, k, x):
    st(K, k, ld(K, k) + x)
