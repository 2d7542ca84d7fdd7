"""Contacts of a robot with a terrain and with itself: where, in which direction, and how far both are apart.

    gap(q) >= 0 where nothing overlaps;     d gap / dt = normal . (velocity of a - velocity of b) at the point

Every shape has a fixed number of slots (scene.py). Half-spaces have slots of their own; the other pieces of a terrain share
those of a shape, which keep what is nearest. A ball around the shape says what is worth a look: pieces are the leaves of a
tree of boxes, gone through in depth-first order, without a stack.

Contacts outside are those of closest points, so that normals turn smoothly as a ball rolls over an edge; where pieces of
the terrain go on beyond each other, their common edges are not felt (closest.py).

| code | what |
|---|---|
| `place`, `origin` | placements of the bodies' canonical frames along the world's axes, about a point near the robot |
| `point` | the middle between both surfaces, about that point |
| `normal` | from b to a |
| `gap` | distance, negative where they overlap; `FAR` for what does not count |

Reference: C. Ericson, Real-Time Collision Detection (2005), chapters 4 to 6.
"""

from __future__ import annotations

from saltus.collision.closest import INNER, along_segments, beside, from_piece, inside
from saltus.collision.half_spaces import axis_of, meet_half_spaces
from saltus.collision.polytopes import give, meet_polytope
from saltus.collision.self_pairs import meet_each_other
from saltus.collision.slots import clear, place_shapes
from saltus.collision.tables import BOX, CAPSULE, FAR, SPHERE
from saltus.kernel import fabs, kernel, less, lift, maximum, minimum, rolled, select, some
from saltus.spatial.algebra import turn_back


@rolled
@kernel
def find_contacts(tree, w):
    """Fills `point`, `normal`, `gap`, `grip`, `bounce` of all slots; `place` and `origin` are given."""
    place_shapes(tree, w)
    meet_half_spaces(tree, w)
    meet_pieces(tree, w)
    meet_each_other(tree, w)


@kernel
def meet_pieces(tree, w):
    """All shapes and all pieces of the terrain that are no half-spaces."""
    if tree.nnode > 0:
        i = 0
        while i < tree.nshape:
            node = 0
            if tree.pool_end[i] > tree.pool_slot[i]:
                clear(w, tree.pool_slot[i], tree.pool_end[i])
                middle = w.middle[i]
                reach = tree.shape_radius[i] + tree.margin[0]
                while node < tree.nnode:
                    at, half = tree.node_middle[node], tree.node_half[node]
                    x = middle + (w.origin[0] - at)
                    x, y, z = fabs(x.x) - half.x, fabs(x.y) - half.y, fabs(x.z) - half.z
                    if some(less(maximum(x, maximum(y, z)), reach)):
                        if tree.node_piece[node] >= 0:
                            meet_piece(tree, w, i, tree.node_piece[node])
                        node = node + 1
                    else:
                        node = tree.node_after[node]
            i = i + 1


@kernel
def meet_piece(tree, w, i, k):
    """Shape i and piece k."""
    root, bounce = tree.piece_root[k], tree.piece_bounce[k]
    grip = root * (tree.shape_root[i] if tree.own_grip[i] else root)
    if tree.shape_kind[i] > CAPSULE:
        meet_polytope(tree, w, i, k, grip, bounce)
        return
    X, P = w.place[tree.shape_body[i]], tree.piece_place[k]
    radius = tree.shape_size[i].x
    middle = turn_back(P.R, w.middle[i] + (w.origin[0] - P.p))
    if tree.shape_kind[i] == SPHERE:
        meet_ball(tree, w, i, k, middle, radius, 0.0, grip, bounce)
        return
    half = turn_back(P.R, axis_of(tree, i, X)) * tree.shape_size[i].y
    if tree.piece_kind[k] != BOX or some(less(beside(middle, half, tree.piece_half[k]) - radius, tree.margin[0])):
        meet_segment(tree, w, i, k, middle, half, radius, grip, bounce)


@kernel
def meet_segment(tree, w, i, k, middle, half, radius, grip, bounce):
    """A capsule: balls at its ends, wherever it is closest to an edge of the piece, and inside of it."""
    a, u = middle - half, half * 2.0
    meet_ball(tree, w, i, k, a, radius, 0.0, grip, bounce)
    meet_ball(tree, w, i, k, middle + half, radius, 0.0, grip, bounce)
    if tree.piece_kind[k] == BOX:
        share, none = inside(middle, half, tree.piece_half[k])
        if some(less(none, 0.0)):  # it may pierce the box with both ends outside
            outside = select(less(none, 0.0), 0.0 * none, lift(FAR, none))
            meet_ball(tree, w, i, k, middle + half * share, radius, outside, grip, bounce)
    first = tree.piece_corner[k]
    for e in range(tree.piece_edge[k], tree.piece_edges[k]):
        c = tree.corner[first + tree.edge_from[e]]
        s, _ = along_segments(a, u, c, tree.corner[first + tree.edge_to[e]] - c)
        from_end = minimum(s, 1.0 - s) - INNER
        if some(less(0.0, from_end)):
            at_end = select(less(from_end, 0.0), lift(FAR, s), 0.0 * s)
            meet_ball(tree, w, i, k, a + u * s, radius, at_end, grip, bounce)


@kernel
def meet_ball(tree, w, i, k, x, radius, more, grip, bounce):
    """A ball of shape i about x, in the frame of piece k; `more` is added to its gap."""
    near = from_piece(tree, k, x)
    gap = near.gap - radius
    give(tree, w, i, tree.piece_place[k], x - near.normal * (radius + 0.5 * gap), near.normal, gap + more, grip, bounce)
