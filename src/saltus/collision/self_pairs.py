"""A robot against itself: spheres and capsules, which are segments with a radius, and both against boxes."""

from __future__ import annotations

from saltus.collision.closest import INNER, OPEN, along_segments, beside, from_box, inside, unit_or
from saltus.collision.half_spaces import axis_of
from saltus.collision.slots import clear, offer, put
from saltus.collision.tables import BOX, FAR, SPHERE
from saltus.kernel import kernel, less, lift, maximum, minimum, select, some, zero
from saltus.spatial.algebra import Vec3, dot, turn_back


@kernel
def meet_each_other(tree, w):
    """Contacts of all pairs."""
    for p in range(tree.npair):
        i, j, first = tree.pair_a[p], tree.pair_b[p], tree.pair_slot[p]
        if some(balls_within(tree, w, i, j, tree.margin[0] + zero(w.gap))):
            if tree.shape_kind[j] == BOX:
                clear(w, first, tree.pair_end[p])
                x, half, B = in_box_frame(tree, w, i, j)
                if some(less(beside(x, half, tree.shape_size[j]) - tree.shape_size[i].x, tree.margin[0])):
                    meet_box(tree, w, p, i, j, x, half, B)
            else:
                n, gap, y = between(tree, w, i, j)
                point = y + n * (tree.shape_size[j].x + 0.5 * gap)
                put(tree, w, first, point, n, gap, tree.pair_grip[p], tree.pair_bounce[p])
        else:
            clear(w, first, tree.pair_end[p])


@kernel
def least_distance(tree, w, most):
    """How far the two nearest shapes are apart; pairs farther than `most` apart need not be looked at."""
    least = most
    for p in range(tree.npair):
        i, j = tree.pair_a[p], tree.pair_b[p]
        if some(balls_within(tree, w, i, j, least)):
            if tree.shape_kind[j] == BOX:
                x, half, _ = in_box_frame(tree, w, i, j)
                if some(less(beside(x, half, tree.shape_size[j]) - tree.shape_size[i].x, least)):
                    least = minimum(least, from_box_of_model(tree, i, j, x, half))
            else:
                _, gap, _ = between(tree, w, i, j)
                least = minimum(least, gap)
    return least


@kernel
def balls_within(tree, w, i, j, distance):
    """Whether balls around two shapes are less than this apart."""
    apart = w.middle[i] - w.middle[j]
    reach = maximum(distance + (tree.shape_radius[i] + tree.shape_radius[j]), 0.0 * distance)
    return less(dot(apart, apart), reach * reach)


@kernel
def segment(tree, i, X):
    """From the middle of a sphere or capsule to its end."""
    if tree.shape_kind[i] == SPHERE:
        o = 0.0 * X.p.x
        return Vec3(o, o, o)
    return axis_of(tree, i, X) * tree.shape_size[i].y


@kernel
def between(tree, w, i, j):
    """Of two round shapes: the normal from j to i, their distance, and the closest point on the segment of j."""
    X, Y = w.place[tree.shape_body[i]], w.place[tree.shape_body[j]]
    u, v = segment(tree, i, X), segment(tree, j, Y)
    a, b = w.middle[i], w.middle[j]
    s, t = along_segments(a - u, u * 2.0, b - v, v * 2.0)
    x, y = a + u * (2.0 * s - 1.0), b + v * (2.0 * t - 1.0)
    o = zero(w.place)
    n, distance = unit_or(x - y, Vec3(o, o, lift(1.0, o)))
    return n, distance - tree.shape_size[i].x - tree.shape_size[j].x, y


# ---------------------------------------------------------------------------------------------------- boxes


@kernel
def in_box_frame(tree, w, i, j):
    """The middle of a round shape i, and from there to its end, in the frame of box j; and that frame."""
    X, B = w.place[tree.shape_body[i]], w.place[tree.shape_body[j]] @ tree.shape_place[j]
    x = turn_back(B.R, w.middle[i] - B.p)
    return x, turn_back(B.R, segment(tree, i, X)), B


@kernel
def share_at_edge(tree, j, e, x, half):
    """Where a segment is closest to edge e of box j: its share, from the middle on, and `FAR` if that is its end."""
    first, place = tree.first_corner[j], tree.shape_place[j]
    c = turn_back(place.R, tree.corner[first + tree.edge_from[e]] - place.p)
    d = turn_back(place.R, tree.corner[first + tree.edge_to[e]] - place.p)
    s, _ = along_segments(x - half, half * 2.0, c, d - c)
    return 2.0 * s - 1.0, select(less(minimum(s, 1.0 - s), INNER), lift(FAR, s), 0.0 * s)


@kernel
def meet_box(tree, w, p, i, j, x, half, B):
    """Contacts of pair p, of a round shape i and box j."""
    if tree.shape_kind[i] == SPHERE:
        touch_box(tree, w, p, j, B, x, tree.shape_size[i].x, 0.0)
        return
    radius = tree.shape_size[i].x
    touch_box(tree, w, p, j, B, x - half, radius, 0.0)
    touch_box(tree, w, p, j, B, x + half, radius, 0.0)
    share, none = inside(x, half, tree.shape_size[j])
    if some(less(none, 0.0)):
        touch_box(tree, w, p, j, B, x + half * share, radius, select(less(none, 0.0), 0.0 * none, lift(FAR, none)))
    for e in range(tree.first_edge[j], tree.end_edge[j]):
        share, more = share_at_edge(tree, j, e, x, half)
        if some(less(more, 0.5 * FAR)):
            touch_box(tree, w, p, j, B, x + half * share, radius, more)


@kernel
def touch_box(tree, w, p, j, B, x, radius, more):
    """A ball about x in the frame of a box."""
    near = from_box(x, tree.shape_size[j], OPEN, OPEN)
    gap = near.gap - radius
    point = B @ (x - near.normal * (radius + 0.5 * gap))
    first, end = tree.pair_slot[p], tree.pair_end[p]
    offer(tree, w, first, end, point, B.R @ near.normal, gap + more, tree.pair_grip[p], tree.pair_bounce[p])


@kernel
def from_box_of_model(tree, i, j, x, half):
    """How far a round shape i is from box j, in whose frame its middle is x."""
    if tree.shape_kind[i] == SPHERE:
        return from_box(x, tree.shape_size[j], OPEN, OPEN).gap - tree.shape_size[i].x
    size = tree.shape_size[j]
    least = minimum(from_box(x - half, size, OPEN, OPEN).gap, from_box(x + half, size, OPEN, OPEN).gap)
    share, _ = inside(x, half, size)
    least = minimum(least, from_box(x + half * share, size, OPEN, OPEN).gap)
    for e in range(tree.first_edge[j], tree.end_edge[j]):
        share, _ = share_at_edge(tree, j, e, x, half)
        least = minimum(least, from_box(x + half * share, size, OPEN, OPEN).gap)
    return least - tree.shape_size[i].x
