"""Polytopes that stand for shapes: corners, normals of faces, edges. Meshes become their convex hull.

A hull with more than `MOST_CORNERS` corners is reduced to so many of them: first those that are farthest out along the axes,
then, one after the other, the corner that lies farthest outside the hull of those chosen. What is lost so is inside the
original: the reduced hull never reaches beyond the mesh.

Cylinders and ellipsoids, which are exact against half-spaces, are polytopes with corners on their surface against all else.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saltus.collision.terrain import CUBE, CUBE_EDGES
from saltus.model.checks import Array, ModelError
from saltus.model.shapes import Shape

MOST_CORNERS = 32
ALIKE = 1e-6
"""Sines of angles up to which normals or directions count as one."""


class Polytope(NamedTuple):
    """In the frame of its shape."""

    corners: Array  # (C, 3)
    groups: tuple[int, ...]  # where each group of corners begins that shares one contact with a plane, and the end
    edges: NDArray[np.int64]  # (E, 2) corners
    normals: Array  # (F, 3) outwards
    offsets: Array  # (F,) of the faces' planes
    directions: Array  # (D, 3) of edges, parallel ones once


def polytope_of(shape: Shape) -> Polytope:
    """What stands for a box, cylinder, ellipsoid or mesh."""
    if shape.kind == "box":
        half = shape.size / 2.0
        normals = np.concatenate([np.eye(3), -np.eye(3)])
        return Polytope(CUBE * half, tuple(range(9)), CUBE_EDGES, normals, np.tile(half, 2), np.eye(3))
    if shape.kind == "cylinder":
        angles = 2.0 * np.pi * np.arange(MOST_CORNERS // 2) / (MOST_CORNERS // 2)
        rim = shape.size[0] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        ends = [np.column_stack([rim, np.full(len(rim), z)]) for z in (-shape.size[1] / 2.0, shape.size[1] / 2.0)]
        return hull_of(np.concatenate(ends))
    if shape.kind == "ellipsoid":
        k = np.arange(MOST_CORNERS) + 0.5
        z, turn = 1.0 - 2.0 * k / MOST_CORNERS, np.pi * (1.0 + 5.0**0.5) * k
        r = np.sqrt(1.0 - z * z)
        return hull_of(np.column_stack([r * np.cos(turn), r * np.sin(turn), z]) * shape.size)
    return hull_of(mesh_points(shape))


def mesh_points(shape: Shape) -> Array:
    """The points (V, 3) of a mesh file, scaled as its shape says."""
    import trimesh

    where = f"collider {shape.name!r}: its mesh {shape.path}"
    if not Path(shape.path).is_file():
        raise ModelError(f"{where} is not there, expected a file")
    try:
        parts = [
            np.asarray(getattr(part, "vertices", np.empty((0, 3)))) for part in trimesh.load_scene(shape.path).dump()
        ]
    except Exception as error:  # whatever a mesh reader may stumble over
        raise ModelError(f"{where} cannot be read: {error}") from None
    points = np.concatenate([np.empty((0, 3)), *parts]) * shape.size
    if len(points) < 4 or not np.isfinite(points).all():
        raise ModelError(f"{where} has {len(points)} points, expected at least 4, all finite")
    return points


def hull_of(points: Array) -> Polytope:
    """The convex hull of points (V, 3), reduced to `MOST_CORNERS` corners.

    >>> hull_of(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.1, 0.1, 0.1]])).corners.shape
    (4, 3)
    """
    from scipy.spatial import ConvexHull, QhullError  # type: ignore[import-untyped]

    size = float(np.ptp(points, axis=0).max())
    thin = np.linalg.eigh(np.cov(points.T))[1][:, 0]
    if float(np.ptp(points @ thin)) < 1e-6 * size:  # flat: give it some body
        points = np.concatenate([points + 1e-4 * size * thin, points - 1e-4 * size * thin])
    try:
        hull = ConvexHull(points)
    except QhullError as error:
        raise ModelError(f"points have no convex hull: {str(error).splitlines()[0]}") from None
    corners = points[hull.vertices]
    if len(corners) > MOST_CORNERS:
        corners = corners[_chosen(corners)]
        hull = ConvexHull(corners)
        corners = corners[hull.vertices]
    corners, groups = _grouped(corners)
    return _faced(corners, groups, ConvexHull(corners))


def _chosen(corners: Array) -> list[int]:
    """Which corners stay."""
    from scipy.spatial import ConvexHull

    axes = np.array([[x, y, z] for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if x or y or z], float)
    chosen = list(dict.fromkeys(np.argmax(corners @ axes[np.abs(axes).sum(axis=1) == 1].T, axis=0).tolist()))
    for axis in axes:
        if len(chosen) < 5:
            chosen = list(dict.fromkeys([*chosen, int(np.argmax(corners @ axis))]))
    while len(chosen) < MOST_CORNERS:
        planes = ConvexHull(corners[chosen], qhull_options="QJ").equations
        outside = (corners @ planes[:, :3].T + planes[:, 3]).max(axis=1)
        outside[chosen] = -np.inf
        farthest = int(np.argmax(outside))
        if outside[farthest] <= 0.0:
            break
        chosen.append(farthest)
    return chosen


def _grouped(corners: Array) -> tuple[Array, tuple[int, ...]]:
    """Corners by the octants that they lie in, seen from the middle along their principal axes, the outermost first."""
    middle = (corners.min(axis=0) + corners.max(axis=0)) / 2.0
    apart = corners - middle
    octant = (apart > 0.0) @ np.array([4, 2, 1])
    order = np.lexsort([-np.linalg.norm(apart, axis=1), octant])
    starts = [k for k in range(len(order)) if k == 0 or octant[order[k]] != octant[order[k - 1]]]
    return corners[order], (*starts, len(order))


def _faced(corners: Array, groups: tuple[int, ...], hull: Any) -> Polytope:
    """Faces and edges, triangles in one plane being one face."""
    normals, offsets = hull.equations[:, :3], -hull.equations[:, 3]
    face = np.full(len(normals), -1)
    kept: list[int] = []
    for k, normal in enumerate(normals):
        same = [j for j, first in enumerate(kept) if np.linalg.norm(normals[first] - normal) < ALIKE]
        face[k] = same[0] if same else len(kept)
        if not same:
            kept.append(k)
    sides: dict[tuple[int, int], set[int]] = {}
    for k, triangle in enumerate(hull.simplices.tolist()):
        for a, b in ((0, 1), (1, 2), (2, 0)):
            sides.setdefault((min(triangle[a], triangle[b]), max(triangle[a], triangle[b])), set()).add(int(face[k]))
    edges = np.array([pair for pair, faces in sides.items() if len(faces) > 1])
    return Polytope(corners, groups, edges, normals[kept], offsets[kept], np.array(list(_directions(corners, edges))))


def _directions(corners: Array, edges: NDArray[np.int64]) -> Iterator[Array]:
    along = corners[edges[:, 1]] - corners[edges[:, 0]]
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    alike = np.linalg.norm(np.cross(along[:, None], along[None]), axis=-1) < ALIKE
    for k in range(len(along)):
        if not alike[k, :k].any():
            yield along[k]
