"""How far a point is from a box or a facet, and where two segments come closest; no kernel branches on a number.

Distances have a sign: negative inside. Outside, normals point from the closest point; inside, along the shortest way out.
Where another piece of the terrain goes on beyond a side, there is no way out, and no normal leans over it: what rolls over
the seam of two boxes does not feel it.
"""

from __future__ import annotations

from typing import NamedTuple

from saltus.collision.tables import BOX, FAR
from saltus.kernel import Scalar, fabs, kernel, less, lift, maximum, minimum, select, sqrt
from saltus.spatial.algebra import Vec3, dot

LEAN = 1e-3
"""The sine up to which a normal may lean over a side where another piece goes on."""

OPEN = Vec3(2.0, 2.0, 2.0)
"""Limits of sides that stick out."""

INNER = 1e-6
"""The share of a segment that counts as its end."""

TINY = 1e-30


class Near(NamedTuple):
    normal: Vec3
    gap: Scalar


@kernel
def choose(condition, a, b):
    """`select` for vectors."""
    return Vec3(select(condition, a.x, b.x), select(condition, a.y, b.y), select(condition, a.z, b.z))


@kernel
def clamp(x, low, high):
    return minimum(maximum(x, low), high)


@kernel
def clamped(x, half):
    return Vec3(clamp(x.x, -half.x, half.x), clamp(x.y, -half.y, half.y), clamp(x.z, -half.z, half.z))


@kernel
def unit_or(x, instead):
    """x by its length, or this where it has none; and the length."""
    square = dot(x, x)
    there = less(TINY, square)
    length = sqrt(select(there, square, lift(1.0, square)))
    return choose(there, x * (1.0 / length), instead), select(there, length, 0.0 * square)


@kernel
def lean(n, low, high):
    """How much too far a normal leans over the sides of a box."""
    x = maximum(-n.x - low.x, n.x - high.x)
    y = maximum(-n.y - low.y, n.y - high.y)
    z = maximum(-n.z - low.z, n.z - high.z)
    return maximum(x, maximum(y, z))


@kernel
def beside(x, reach, half):
    """How far a segment, from x as far as `reach` either way, is at least from a box."""
    a, b, c = fabs(x.x) - fabs(reach.x), fabs(x.y) - fabs(reach.y), fabs(x.z) - fabs(reach.z)
    return maximum(a - half.x, maximum(b - half.y, c - half.z))


@kernel
def slab(x, reach, half, enter, leave):
    """From which share of a segment on, and up to which, it is between two sides of a box."""
    flat = less(fabs(reach), 1e-12)
    inverse = 1.0 / select(flat, lift(1.0, x), reach)
    a, b = (-half - x) * inverse, (half - x) * inverse
    beside = select(less(half, fabs(x)), lift(FAR, x), lift(-FAR, x))
    a, b = select(flat, beside, a), select(flat, -beside, b)
    return maximum(enter, minimum(a, b)), minimum(leave, maximum(a, b))


@kernel
def inside(x, reach, half):
    """The middle of what is in a box of a segment, from x as far as `reach` either way, as a share of `reach`; and whether
    there is any: then negative."""
    one = lift(1.0, x.x)
    enter, leave = slab(x.x, reach.x, half.x, -one, one)
    enter, leave = slab(x.y, reach.y, half.y, enter, leave)
    enter, leave = slab(x.z, reach.z, half.z, enter, leave)
    return clamp(0.5 * (enter + leave), -one, one), enter - leave


@kernel
def deeper(best, axis, depth, normal):
    """The shorter way out of two."""
    return select(less(depth, best), depth, best), choose(less(depth, best), normal, axis)


@kernel
def from_box(x, half, low, high):
    """Of a point in the frame of a box's middle. `low`, `high`: 0 for sides where there is no way out, else 2."""
    o = 0.0 * x.x
    one = lift(1.0, o)
    n, distance = unit_or(x - clamped(x, half), Vec3(o, o, one))
    # Inside: six ways out, those that are closed made long.
    far = FAR * 1e-3
    depth, out = half.x - x.x + (2.0 - high.x) * far, Vec3(one, o, o)
    depth, out = deeper(depth, out, half.x + x.x + (2.0 - low.x) * far, Vec3(-one, o, o))
    depth, out = deeper(depth, out, half.y - x.y + (2.0 - high.y) * far, Vec3(o, one, o))
    depth, out = deeper(depth, out, half.y + x.y + (2.0 - low.y) * far, Vec3(o, -one, o))
    depth, out = deeper(depth, out, half.z + x.z + (2.0 - low.z) * far, Vec3(o, o, -one))
    depth, out = deeper(depth, out, half.z - x.z + (2.0 - high.z) * far, Vec3(o, o, one))
    outside = less(0.0 * distance, distance)
    gap = select(less(LEAN, lean(n, low, high)), lift(FAR, o), distance)
    return Near(choose(outside, n, out), select(outside, gap, select(less(far, depth), lift(FAR, o), -depth)))


@kernel
def seen_edge(x, a, b):
    """Of the edge from a to b of a triangle in the plane z = 0: how far x is out of it; from the closest point on it to x;
    and a number that is negative if that point is one of its ends."""
    ex, ey = b.x - a.x, b.y - a.y
    square = ex * ex + ey * ey
    t = ((x.x - a.x) * ex + (x.y - a.y) * ey) / square
    held = clamp(t, 0.0 * x.x, lift(1.0, x.x))
    out = ((x.x - a.x) * ey - (x.y - a.y) * ex) / sqrt(square)
    return out, Vec3(x.x - a.x - held * ex, x.y - a.y - held * ey, x.z), minimum(t, 1.0 - t) - INNER


@kernel
def lean_over_edge(n, a, b, limit, inner, there):
    """How much too far a normal leans over an edge, if it stands there: `there` is not negative. If it stands on an end of
    the edge, `inner` is negative: then only edges count that do not stick out, as other facets go on beyond the rest."""
    ex, ey = b.x - a.x, b.y - a.y
    over = (n.x * ey - n.y * ex) / sqrt(ex * ex + ey * ey)
    limit = lift(limit, over)
    free = select(less(inner, 0.0), select(less(LEAN, limit), 2.0 + 0.0 * over, limit), limit)
    return select(less(there, 0.0), 0.0 * over - 1.0, over - free)


@kernel
def lean_from_facet(n, a, b, c, limits):
    """How much too far a direction leans over the edges of a facet from that end or edge of it which lies farthest in this
    direction, or down."""
    x, y, z = dot(n, a), dot(n, b), dot(n, c)
    top = maximum(x, maximum(y, z)) - 1e-9
    p, q, r = minimum(x, y) - top, minimum(y, z) - top, minimum(z, x) - top  # an edge is farthest
    edge = maximum(p, maximum(q, r))
    u = select(less(edge, 0.0), maximum(x, y) - top, p)
    v = select(less(edge, 0.0), maximum(y, z) - top, q)
    w = select(less(edge, 0.0), maximum(z, x) - top, r)
    most = maximum(lean_over_edge(n, a, b, limits.x, edge, u), lean_over_edge(n, b, c, limits.y, edge, v))
    return maximum(most, maximum(lean_over_edge(n, c, a, limits.z, edge, w), LEAN - n.z))


@kernel
def from_facet(x, a, b, c, limits, down):
    """Of a point in the frame of a facet, whose corners have z = 0. What lies straight below it in the world, less deep than
    it is thick, is pushed out along its normal. `down`: how far x and y change for z = 1 along the vertical; thickness."""
    o = 0.0 * x.x
    one = lift(1.0, o)
    out_a, to_a, inner_a = seen_edge(x, a, b)
    out_b, to_b, inner_b = seen_edge(x, b, c)
    out_c, to_c, inner_c = seen_edge(x, c, a)
    far_a, far_b, far_c = dot(to_a, to_a), dot(to_b, to_b), dot(to_c, to_c)
    least = minimum(far_a, minimum(far_b, far_c))
    nearest = choose(less(least, far_a), choose(less(least, far_b), to_c, to_b), to_a)
    over = less(maximum(out_a, maximum(out_b, out_c)), 1e-9)
    n, distance = unit_or(choose(over, Vec3(o, o, x.z), nearest), Vec3(o, o, one))
    least = least * (1.0 + 1e-9) + 1e-18
    most = lean_over_edge(n, a, b, limits.x, inner_a, least - far_a)
    most = maximum(most, lean_over_edge(n, b, c, limits.y, inner_b, least - far_b))
    most = maximum(most, lean_over_edge(n, c, a, limits.z, inner_c, least - far_c))
    gap = select(less(LEAN, most), select(over, distance, lift(FAR, o)), distance)
    foot = Vec3(x.x - x.z * down.x, x.y - x.z * down.y, o)
    out_a, _, _ = seen_edge(foot, a, b)
    out_b, _, _ = seen_edge(foot, b, c)
    out_c, _, _ = seen_edge(foot, c, a)
    held = select(less(maximum(out_a, maximum(out_b, out_c)), 1e-9), x.z, lift(FAR, o))
    held = select(less(x.z, -down.z), lift(FAR, o), held)
    below = less(x.z, o)
    return Near(choose(below, Vec3(o, o, one), n), select(below, held, gap))


@kernel
def from_piece(tree, k, x):
    """Of a point in the frame of piece k of the terrain."""
    if tree.piece_kind[k] == BOX:
        return from_box(x, tree.piece_half[k], tree.limit_low[k], tree.limit_high[k])
    first = tree.piece_corner[k]
    a, b, c = tree.corner[first], tree.corner[first + 1], tree.corner[first + 2]
    return from_facet(x, a, b, c, tree.limit_low[k], tree.piece_half[k])


@kernel
def along_segments(a, u, c, v):
    """Where two segments, from a along u and from c along v, come closest: shares of both (Ericson, Real-Time Collision
    Detection, 5.1.9). Where they are parallel, one of many pairs."""
    r = a - c
    uu, vv, uv = dot(u, u) + TINY, dot(v, v) + TINY, dot(u, v)
    ur, vr = dot(u, r), dot(v, r)
    one, o = lift(1.0, uu + vv), 0.0 * (uu + vv)
    square = uu * vv - uv * uv
    slanted = less(1e-12 * uu * vv, square)
    s = clamp(select(slanted, uv * vr - ur * vv, 0.5 * one) / select(slanted, square, one), o, one)
    t = (uv * s + vr) / vv
    held = clamp(t, o, one)
    s = select(less(fabs(t - held), TINY), s, clamp((uv * held - ur) / uu, o, one))
    return s, held
