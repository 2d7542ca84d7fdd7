"""What is drawn of a terrain: a surface for each piece, the more like ice the more slippery it is.

A horizontal ground is the floor, which is drawn anyway.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from saltus.collision.terrain import PIECES, Ground, HeightField, Terrain
from saltus.model.checks import Array
from saltus.view.mesh_files import CREASE, Mesh, creased

STONE_COLOR = np.array([0.62, 0.57, 0.50])
ICE_COLOR = np.array([0.55, 0.78, 0.93])
EDGE_SHADE = 0.6  # of the colour of a surface
STONE_FRICTION = 0.6
"""From this friction on all looks like stone."""


class Surface(NamedTuple):
    mesh: Mesh  # in the world
    edges: Array  # (E, 2, 3) the ends of those that are sharp
    color: Array  # (3,)


def floor_of(terrain: Terrain) -> float | None:
    """The height of the highest horizontal ground, if there is any."""
    return max(
        (piece.height for piece in terrain.pieces if isinstance(piece, Ground) and _is_floor(piece)), default=None
    )


def above_floor(terrain: Terrain) -> Terrain:
    """All other pieces."""
    return Terrain(tuple(piece for piece in terrain.pieces if not _is_floor(piece)))


def surfaces_of(terrain: Terrain, extent: float) -> tuple[Surface, ...]:
    """What is to be drawn besides the floor; an inclined ground as a square of this side [m].

    >>> import saltus as sl
    >>> [surface.mesh.faces.shape for surface in surfaces_of(sl.Terrain([sl.Ground(), sl.Stairs(steps=2)]), 10.0)]
    [(24, 3)]
    """
    return tuple(_surface(piece, extent) for piece in above_floor(terrain).pieces)


def _surface(piece: PIECES, extent: float) -> Surface:
    import trimesh

    vertices, faces = Terrain((piece,)).triangles(extent)
    share = min(1.0, piece.friction / STONE_FRICTION)
    color = share * STONE_COLOR + (1.0 - share) * ICE_COLOR
    if isinstance(piece, HeightField):  # each triangle by itself, and lines along the grid: heights are to be seen
        grid = vertices.reshape(*piece.heights.shape, 3)
        lines = [
            np.stack(ends, axis=-2).reshape(-1, 2, 3) for ends in ((grid[1:], grid[:-1]), (grid[:, 1:], grid[:, :-1]))
        ]
        facets = Mesh(vertices[faces].reshape(-1, 3), np.arange(faces.size).reshape(-1, 3))
        return Surface(facets, np.concatenate(lines), color)
    mesh = trimesh.Trimesh(vertices, faces, process=False)
    sharp = mesh.face_adjacency_edges[mesh.face_adjacency_angles > CREASE]
    return Surface(creased(mesh), vertices[sharp], color)


def _is_floor(piece: PIECES) -> bool:
    return isinstance(piece, Ground) and bool(piece.normal[2] > 1.0 - 1e-12)
