"""A polytope against a piece of the terrain: boxes, hulls, and what they stand for, against boxes and facets.

The normal is the direction along which both are farthest apart, or overlap least; it is one of the faces of either, or
square to an edge of both (the theorem of separating axes). Contacts are where, seen along it, the outlines of both meet:

1. corners of the polytope over the piece (those outside of it with the closest point there and a normal of their own)
2. corners of the piece under the polytope
3. edges of both that cross

so that a box on its face has four, and an edge across a face has two.
"""

from __future__ import annotations

from saltus.collision.closest import (
    LEAN,
    OPEN,
    choose,
    clamp,
    from_box,
    from_piece,
    lean,
    lean_from_facet,
    unit_or,
)
from saltus.collision.slots import offer
from saltus.collision.tables import BOX, FAR
from saltus.kernel import fabs, kernel, less, lift, maximum, minimum, select, some, sqrt, zero
from saltus.spatial.algebra import SE3, Vec3, cross, dot, transpose, turn_back

PREFERRED = 1e-6
"""How much farther apart an edge must show both to be than the faces before it do [m]."""


@kernel
def meet_polytope(tree, w, i, k, grip, bounce):
    """Shape i and piece k."""
    o, P = zero(w.gap), tree.piece_place[k]
    X = w.place[tree.shape_body[i]]
    R = transpose(P.R) @ X.R
    own = SE3(R, turn_back(P.R, X.p + (w.origin[0] - P.p)))  # of the body, in the piece's frame
    n, least = separate(tree, i, k, own, o)
    # Where no way out is open, nor near, there is nothing to be said.
    least = select(less(least, -0.5 * FAR), lift(FAR, o), least)
    if some(less(least, tree.margin[0])):
        meet_corners(tree, w, i, k, own, n, least, grip, bounce)
        meet_corners_of_piece(tree, w, i, k, own, n, least, grip, bounce)
        meet_edges(tree, w, i, k, own, n, least, grip, bounce)


@kernel
def give(tree, w, i, P, x, n, gap, grip, bounce):
    """Offers a contact in the frame of a piece."""
    point = P.R @ x + (P.p - w.origin[0])
    offer(tree, w, tree.pool_slot[i], tree.pool_end[i], point, P.R @ n, gap, grip, bounce)


# ---------------------------------------------------------------------------------------------------- the normal


@kernel
def separate(tree, i, k, X, o):
    """The direction in which shape i is best pushed from piece k, in the frame of the piece, and how far they are apart."""
    one = lift(1.0, o)
    n, best = Vec3(o, o, one), lift(-FAR, o)
    if tree.piece_kind[k] == BOX:
        n, best = try_axis(tree, i, k, X, Vec3(o, o, one), n, best)
        n, best = try_axis(tree, i, k, X, Vec3(one, o, o), n, best)
        n, best = try_axis(tree, i, k, X, Vec3(o, one, o), n, best)
    else:
        n, best = try_axis(tree, i, k, X, Vec3(o, o, one), n, best)
    if some(less(best, tree.margin[0])):
        for f in range(tree.first_face[i], tree.end_face[i]):
            n, best = try_axis(tree, i, k, X, X.R @ tree.face_normal[f], n, best)
    if some(less(best, tree.margin[0])):
        first = tree.piece_corner[k]
        for d in range(tree.first_direction[i], tree.end_direction[i]):
            along = X.R @ tree.edge_direction[d]
            if tree.piece_kind[k] == BOX:
                n, best = try_edges(tree, i, k, X, Vec3(o, along.z, -along.y), n, best)
                n, best = try_edges(tree, i, k, X, Vec3(-along.z, o, along.x), n, best)
                n, best = try_edges(tree, i, k, X, Vec3(along.y, -along.x, o), n, best)
            else:
                for e in range(tree.piece_edge[k], tree.piece_edges[k]):
                    edge = tree.corner[first + tree.edge_to[e]] - tree.corner[first + tree.edge_from[e]]
                    n, best = try_edges(tree, i, k, X, cross(along, edge), n, best)
    return n, best


@kernel
def try_edges(tree, i, k, X, axis, n, best):
    """The same with the direction square to two edges, if they are not parallel."""
    square = dot(axis, axis)
    slanted = less(1e-12, square)
    unit = axis * (1.0 / sqrt(select(slanted, square, lift(1.0, square))))
    if tree.piece_kind[k] != BOX:
        unit = unit * select(less(unit.z, 0.0), lift(-1.0, square), lift(1.0, square))
    found, gap = try_axis(tree, i, k, X, unit, n, best)
    better = less(best + PREFERRED, gap)
    better = less(0.5, select(better, select(slanted, lift(1.0, gap), 0.0 * gap), 0.0 * gap))
    return choose(better, found, n), select(better, gap, best)


@kernel
def try_axis(tree, i, k, X, axis, n, best):
    """The better one of a normal and a direction, either way along it."""
    low, high = extent(tree, i, X, axis)
    for normal, lowest in ((axis, low), (-axis, -high)):
        gap = lowest - top(tree, k, normal)
        gap = select(less(LEAN, lean_from(tree, k, normal)), lift(-FAR, best), gap)
        better = less(best + PREFERRED, gap)
        n, best = choose(better, normal, n), select(better, gap, best)
    return n, best


@kernel
def top(tree, k, n):
    """How far piece k reaches along a direction."""
    if tree.piece_kind[k] == BOX:
        half = tree.piece_half[k]
        return half.x * fabs(n.x) + half.y * fabs(n.y) + half.z * fabs(n.z)
    c = tree.piece_corner[k]
    return maximum(dot(tree.corner[c], n), maximum(dot(tree.corner[c + 1], n), dot(tree.corner[c + 2], n)))


@kernel
def extent(tree, i, X, axis):
    """From where to where shape i reaches along an axis."""
    own, first = turn_back(X.R, axis), tree.first_corner[i]
    low = dot(tree.corner[first], own)
    high = low
    for j in range(first + 1, tree.end_corner[i]):
        along = dot(tree.corner[j], own)
        low, high = minimum(low, along), maximum(high, along)
    shift = dot(X.p, axis)
    return low + shift, high + shift


# ---------------------------------------------------------------------------------------------------- the contacts


@kernel
def meet_corners(tree, w, i, k, X, n, least, grip, bounce):
    """Corners of the shape: outside by themselves, inside along the normal."""
    o, half = zero(w.gap), tree.piece_half[k]
    for j in range(tree.first_corner[i], tree.end_corner[i]):
        x = X @ tree.corner[j]
        found = from_piece(tree, k, x)
        normal, gap = found.normal, found.gap
        if tree.piece_kind[k] == BOX:
            way = minimum(way_out(x.x, n.x, half.x), minimum(way_out(x.y, n.y, half.y), way_out(x.z, n.z, half.z)))
            inside = maximum(fabs(x.x) - half.x, maximum(fabs(x.y) - half.y, fabs(x.z) - half.z))
            held = less(inside, o)
            normal, gap = choose(held, n, normal), select(held, -way, gap)
        gap = select(less(tree.margin[0], least), lift(FAR, o), gap)
        give(tree, w, i, tree.piece_place[k], x - normal * (0.5 * gap), normal, gap, grip, bounce)


@kernel
def way_out(x, n, half):
    """How far it is along n from x to a side."""
    flat, way = less(fabs(n), 1e-12), half - select(less(n, 0.0), -x, x)
    return select(flat, lift(FAR, x), way / select(flat, lift(1.0, x), fabs(n)))


@kernel
def meet_corners_of_piece(tree, w, i, k, X, n, least, grip, bounce):
    """Corners of the piece: how far it is from there along the line of sight until the shape begins."""
    o, sight = zero(w.gap), line_of_sight(tree, k, n, least)
    own, slope = turn_back(X.R, sight), maximum(dot(n, sight), LEAN + zero(w.gap))
    for j in range(tree.piece_corner[k], tree.piece_end[k]):
        x = tree.corner[j]
        x = Vec3(x.x + o, x.y + o, x.z + o)
        y = turn_back(X.R, x - X.p)
        enter, leave = lift(-FAR, o), lift(FAR, o)
        for f in range(tree.first_face[i], tree.end_face[i]):
            facing, height = dot(tree.face_normal[f], own), tree.face_offset[f] - dot(tree.face_normal[f], y)
            along = less(fabs(facing), 1e-9)
            far = height / select(along, lift(1.0, o), facing)
            beside = select(less(height, -1e-9), lift(FAR, o), lift(-FAR, o))
            enter = maximum(enter, select(less(facing, -1e-9), far, beside))
            leave = minimum(leave, select(less(1e-9, facing), far, lift(FAR, o)))
        missed = less(leave + 1e-9, enter)
        normal, gap = n, select(missed, lift(FAR, o), seen(tree, k, enter * slope, least))
        if tree.shape_kind[i] == BOX:
            place = tree.shape_place[i]
            found = from_box(turn_back(place.R, y - place.p), tree.shape_size[i], OPEN, OPEN)
            closest = -(X.R @ (place.R @ found.normal))
            out = lean_from(tree, k, closest)
            outside = less(o, found.gap)
            normal = choose(outside, closest, normal)
            gap = select(outside, select(less(LEAN, out), lift(FAR, o), found.gap), gap)
        elif some(less(o, least)):
            closest, distance = from_hull(tree, i, y)
            closest = X.R @ closest
            shorter = less(distance, select(less(LEAN, lean_from(tree, k, closest)), lift(-FAR, o), gap))
            normal, gap = choose(shorter, closest, normal), select(shorter, distance, gap)
        gap = select(less(tree.margin[0], least), lift(FAR, o), gap)
        give(tree, w, i, tree.piece_place[k], x + normal * (0.5 * gap), normal, gap, grip, bounce)


@kernel
def from_hull(tree, i, y):
    """From a point outside of a hull to it, where an edge or a corner is closest: the direction and how far; else `FAR`."""
    first, o = tree.first_corner[i], 0.0 * y.x
    nearest, square = Vec3(o, o, o), lift(FAR, o)
    for e in range(tree.first_edge[i], tree.end_edge[i]):
        a = tree.corner[first + tree.edge_from[e]]
        u = tree.corner[first + tree.edge_to[e]] - a
        r = Vec3(a.x - y.x, a.y - y.y, a.z - y.z)
        s = clamp(-dot(r, u) / dot(u, u), o, lift(1.0, o))
        r = Vec3(r.x + s * u.x, r.y + s * u.y, r.z + s * u.z)
        closer = less(dot(r, r), square)
        nearest, square = choose(closer, r, nearest), select(closer, dot(r, r), square)
    n, distance = unit_or(nearest, Vec3(o, o, lift(1.0, o)))
    lowest = lift(FAR, o)
    for j in range(first, tree.end_corner[i]):
        lowest = minimum(lowest, dot(n, tree.corner[j]))
    whole = less(distance, lowest - dot(n, y) + 1e-9)  # nothing of the hull is closer
    return n, select(whole, distance, lift(FAR, o))


@kernel
def line_of_sight(tree, k, n, least):
    """Along the normal; in facets vertical, since straight above a surface nothing is in it."""
    if tree.piece_kind[k] == BOX:
        return n
    down = tree.piece_half[k]
    scale = 1.0 / sqrt(1.0 + down.x * down.x + down.y * down.y)
    return choose(less(least, 0.0), Vec3(down.x * scale, down.y * scale, scale), n)


@kernel
def seen(tree, k, gap, least):
    """`FAR` for what is below a facet, and for what lies over it though both seem to overlap: that is beyond a ridge."""
    if tree.piece_kind[k] == BOX:
        return gap
    kept = select(less(gap, -tree.piece_half[k].z), lift(FAR, gap), gap)
    return select(less(least, 0.0), select(less(0.0, gap), lift(FAR, gap), kept), kept)


@kernel
def lean_from(tree, k, n):
    """How much too far a normal leans over the sides or edges of piece k."""
    if tree.piece_kind[k] == BOX:
        return lean(n, tree.limit_low[k], tree.limit_high[k])
    c = tree.piece_corner[k]
    return lean_from_facet(n, tree.corner[c], tree.corner[c + 1], tree.corner[c + 2], tree.limit_low[k])


@kernel
def meet_edges(tree, w, i, k, X, n, least, grip, bounce):
    """Edges of both that cross, along the line of sight."""
    o, first, start = zero(w.gap), tree.first_corner[i], tree.piece_corner[k]
    sight = line_of_sight(tree, k, n, least)
    one, highest = lift(1.0, o), top(tree, k, n)
    for e in range(tree.first_edge[i], tree.end_edge[i]):
        a, b = X @ tree.corner[first + tree.edge_from[e]], X @ tree.corner[first + tree.edge_to[e]]
        lowest = minimum(dot(n, a), dot(n, b)) - highest
        if some(less(maximum(lowest, least), tree.margin[0])):
            u = b - a
            for d in range(tree.piece_edge[k], tree.piece_edges[k]):
                c = tree.corner[start + tree.edge_from[d]]
                v = tree.corner[start + tree.edge_to[d]] - c
                r = Vec3(c.x - a.x, c.y - a.y, c.z - a.z)
                square = dot(sight, cross(u, v))
                size = dot(u, u) * dot(v, v)
                slanted = less(1e-12 * size, square * square)
                inverse = 1.0 / select(slanted, square, one)
                s, t = dot(sight, cross(r, v)) * inverse, dot(sight, cross(r, u)) * inverse
                within = minimum(minimum(s, one - s), minimum(t, one - t))
                within = select(slanted, within, -one)
                over, under = a + u * s, Vec3(c.x + v.x * t, c.y + v.y * t, c.z + v.z * t)
                gap = select(less(within, -1e-9), lift(FAR, o), seen(tree, k, dot(n, over - under), least))
                gap = select(less(tree.margin[0], least), lift(FAR, o), gap)
                if some(less(gap, tree.margin[0])):
                    give(tree, w, i, tree.piece_place[k], (over + under) * 0.5, n, gap, grip, bounce)
