"""Shapes against half-spaces: the height of points over the plane.

| shape | points |
|---|---|
| sphere, ellipsoid | the lowest one |
| capsule | the lowest ones of both ends |
| cylinder | of both rims the lowest one, and two more a third of a turn from there |
| polytope | its corners, or of each group of them the lowest |
"""

from __future__ import annotations

import math

from saltus.collision.closest import choose, unit_or
from saltus.collision.slots import clear, put
from saltus.collision.tables import CAPSULE, CYLINDER, ELLIPSOID, SPHERE
from saltus.kernel import kernel, less, select, some, sqrt, zero
from saltus.spatial.algebra import Vec3, cross, dot, turn_back

SIXTH = math.sqrt(0.75)
"""The sine of a third of a turn."""

TIE = 1e-6
"""How much lower a corner must be than one farther out to take its place [m]."""


@kernel
def meet_half_spaces(tree, w):
    for g in range(tree.nplane):
        n = tree.plane_normal[g]
        level = dot(w.origin[0], n) - tree.plane_offset[g]
        for i in range(tree.nshape):
            count = tree.plane_slots[i]
            if count > 0:
                first, X = tree.plane_slot[i] + g * count, w.place[tree.shape_body[i]]
                middle = w.middle[i]
                height = dot(middle, n) + level
                if some(less(height, tree.margin[0] + tree.shape_radius[i])):
                    grip = tree.plane_root[g] * (tree.shape_root[i] if tree.own_grip[i] else tree.plane_root[g])
                    meet_half_space(tree, w, i, X, middle, height, g, first, grip)
                else:
                    clear(w, first, first + count)


@kernel
def meet_half_space(tree, w, i, X, middle, height, g, first, grip):
    """Shape i, whose middle is at this height over half-space g."""
    o, kind, bounce = zero(w.gap), tree.shape_kind[i], tree.plane_bounce[g]
    size, plane = tree.shape_size[i], tree.plane_normal[g]
    n = Vec3(plane.x + o, plane.y + o, plane.z + o)
    if kind == SPHERE:
        gap = height - size.x
        put(tree, w, first, middle - n * (size.x + 0.5 * gap), n, gap, grip, bounce)
        return
    if kind == CAPSULE:
        half = axis_of(tree, i, X) * size.y
        rise = dot(half, n)
        gap = height - rise - size.x
        put(tree, w, first, middle - half - n * (size.x + 0.5 * gap), n, gap, grip, bounce)
        gap = height + rise - size.x
        put(tree, w, first + 1, middle + half - n * (size.x + 0.5 * gap), n, gap, grip, bounce)
        return
    if kind == CYLINDER:
        axis = axis_of(tree, i, X)
        rise = dot(axis, n)
        R = tree.shape_place[i].R
        across = X.R @ Vec3(R.xx, R.yx, R.zx)
        down, _ = unit_or(axis * rise - n, across)
        down = choose(less(1.0 - 1e-12, rise * rise), across, down) * size.x
        side = cross(axis, down)
        for k in range(3):
            turned = down if k == 0 else side * (SIXTH if k == 1 else -SIXTH) - down * 0.5
            fall = dot(turned, n)
            gap = height + fall - rise * size.y
            put(tree, w, first + k, middle + turned - axis * size.y - n * (0.5 * gap), n, gap, grip, bounce)
            gap = height + fall + rise * size.y
            put(tree, w, first + 3 + k, middle + turned + axis * size.y - n * (0.5 * gap), n, gap, grip, bounce)
        return
    if kind == ELLIPSOID:
        P = tree.shape_place[i].R
        own = turn_back(P, turn_back(X.R, n))
        stretched = Vec3(own.x * size.x, own.y * size.y, own.z * size.z)
        reach = sqrt(dot(stretched, stretched))
        lowest = Vec3(stretched.x * size.x, stretched.y * size.y, stretched.z * size.z) * (-1.0 / reach)
        gap = height - reach
        put(tree, w, first, middle + X.R @ (P @ lowest) - n * (0.5 * gap), n, gap, grip, bounce)
        return
    own, level = turn_back(X.R, n), height - dot(middle - X.p, n)
    for s in range(first, first + tree.plane_slots[i]):
        k = tree.group[s]
        end = tree.group[s + 1] if s + 1 < first + tree.plane_slots[i] else tree.end_corner[i]
        corner = tree.corner[k]
        corner = Vec3(corner.x + o, corner.y + o, corner.z + o)
        gap = dot(corner, own) + level
        for j in range(k + 1, end):
            other = tree.corner[j]
            fall = dot(other, own) + level
            lower = less(fall + TIE, gap)
            corner, gap = choose(lower, other, corner), select(lower, fall, gap)
        put(tree, w, s, X @ corner - n * (0.5 * gap), n, gap, grip, bounce)


@kernel
def axis_of(tree, i, X):
    """The axis of shape i, unit, along the world's."""
    R = tree.shape_place[i].R
    return X.R @ Vec3(R.xz, R.yz, R.zz)
