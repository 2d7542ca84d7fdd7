"""Writing contacts into their slots."""

from __future__ import annotations

from saltus.collision.closest import choose
from saltus.collision.tables import FAR
from saltus.kernel import kernel, less, lift, maximum, select, some, zero
from saltus.spatial.algebra import dot

SAME = 1e-4
"""Two contacts that are nearer than this, and alike in their normals, are one [m]."""


@kernel
def clear(w, first, end):
    """Nothing is near."""
    for s in range(first, end):
        w.gap[s] = lift(FAR, zero(w.gap))


@kernel
def place_shapes(tree, w):
    """`middle` of all shapes."""
    for i in range(tree.nshape):
        w.middle[i] = w.place[tree.shape_body[i]] @ tree.shape_middle[i]


@kernel
def put(tree, w, s, point, normal, gap, grip, bounce):
    """A contact in a slot of its own; of those that are far, nobody asks where."""
    o = zero(w.gap)
    w.gap[s] = select(less(tree.margin[0], gap), lift(FAR, o), gap)
    if some(less(w.gap[s], 0.5 * FAR)):
        w.point[s], w.normal[s] = point, normal
        w.grip[s], w.bounce[s] = lift(grip, o), lift(bounce, o)


@kernel
def offer(tree, w, first, end, point, normal, gap, grip, bounce):
    """A contact for slots that several share: it replaces the one that is farthest, unless it is there already."""
    o, one = zero(w.gap), lift(1.0, zero(w.gap))
    left = select(less(tree.margin[0], gap), lift(FAR, o), gap)
    if some(less(left, 0.5 * FAR)):
        worst = -FAR * one
        for s in range(first, end):
            apart = w.point[s] - point
            distance = select(less(0.99, dot(w.normal[s], normal)), dot(apart, apart), one)
            same = less(select(less(w.gap[s], 0.5 * FAR), distance, one), SAME * SAME)
            w.gap[s] = select(same, select(less(left, w.gap[s]), left, w.gap[s]), w.gap[s])
            left = select(same, lift(FAR, o), left)
            worst = maximum(worst, w.gap[s])
        for s in range(first, end):
            # The first of the farthest.
            taken = less(select(less(w.gap[s], worst), lift(FAR, o), left), worst)
            w.point[s] = choose(taken, point, w.point[s])
            w.normal[s] = choose(taken, normal, w.normal[s])
            w.gap[s] = select(taken, left, w.gap[s])
            w.grip[s], w.bounce[s] = select(taken, grip + o, w.grip[s]), select(taken, bounce + o, w.bounce[s])
            left = select(taken, lift(FAR, o), left)
