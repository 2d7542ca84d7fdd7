"""Terrain: what does not move and may be touched. Its pieces may overlap; together they are one solid.

| piece | what it is |
|---|---|
| `Ground` | all that lies below a plane |
| `Box` | a box, anywhere |
| `Stairs` | steps, each a box from its riser to the end of the stairs |
| `Ramp` | an inclined slab |
| `HeightField` | heights over a grid, with two triangles in each cell, and what lies below |

Every piece has a coefficient of friction, and a restitution: which part of the speed of an impact comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saltus.model.checks import Array, ModelError, finite, read_only, rigid_placement, unit_vector
from saltus.model.placements import placement

FRICTION = 0.8
"""Unless another one is given."""


class Plane(NamedTuple):
    """normal . x <= offset"""

    normal: Array  # (3,)
    offset: float


class Block(NamedTuple):
    placement: Array  # (4, 4) of its middle
    half: Array  # (3,) half its sides


class Facet(NamedTuple):
    """A triangle of a surface that is solid below."""

    corners: Array  # (3, 3) from above against the clock
    limits: Array  # (3,) at the edge from each corner to the next: how far normals may lean over it, a sine
    thickness: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Piece:
    """What all pieces of a terrain have."""

    friction: float = FRICTION
    restitution: float = 0.0

    kind: ClassVar[str]

    def _check(self) -> None:
        for name, most in (("friction", np.inf), ("restitution", 1.0)):
            value = float(finite(getattr(self, name), (), f"{name} of {self.kind}"))
            if not 0.0 <= value <= most:
                expected = "no negative number" if most == np.inf else "a number from 0 to 1"
                raise ModelError(f"{name} of {self.kind} is {value}, expected {expected}")
            object.__setattr__(self, name, value)

    def _array(self, name: str, shape: tuple[int, ...]) -> None:
        object.__setattr__(self, name, finite(getattr(self, name), shape, f"{name} of {self.kind}"))

    def _positive(self, *names: str) -> None:
        for name in names:
            value = float(finite(getattr(self, name), (), f"{name} of {self.kind}"))
            if value <= 0.0:
                raise ModelError(f"{name} of {self.kind} is {value}, expected a positive number")
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _remade, (type(self), {each.name: getattr(self, each.name) for each in fields(self)})


def _remade(kind: type[Piece], values: dict[str, Any]) -> Piece:
    return kind(**values)


@dataclass(frozen=True, eq=False)
class Ground(Piece):
    """All that lies below the plane through (0, 0, `height`) with this normal (3,).

    >>> Ground(normal=(0, 0, 2)).normal
    array([0., 0., 1.])
    """

    height: float = 0.0  # [m]
    normal: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))  # (3,) of any length

    kind: ClassVar[str] = "a ground"

    def __post_init__(self) -> None:
        self._check()
        object.__setattr__(self, "height", float(finite(self.height, (), "height of a ground")))
        object.__setattr__(self, "normal", unit_vector(self.normal, "normal of a ground"))

    def parts(self) -> list[Any]:
        return [Plane(self.normal, float(self.normal[2] * self.height))]


@dataclass(frozen=True, eq=False)
class Box(Piece):
    """A box with these sides (3,) [m] about its placement (4, 4)."""

    size: Array
    placement: Array = field(default_factory=lambda: np.eye(4))

    kind: ClassVar[str] = "a box"

    def __post_init__(self) -> None:
        self._check()
        self._array("size", (3,))
        if (self.size <= 0.0).any():
            raise ModelError(f"size of a box is {self.size.tolist()}, expected positive numbers")
        object.__setattr__(self, "placement", rigid_placement(self.placement, "placement of a box"))

    def parts(self) -> list[Any]:
        return [Block(self.placement, self.size / 2.0)]


@dataclass(frozen=True, eq=False)
class Stairs(Piece):
    """Steps up. The first riser stands on `start` (3,), in its middle; they climb along x, turned by `yaw` about z [rad]."""

    start: Array = field(default_factory=lambda: np.array([1.0, 0.0, 0.0]))
    steps: int = 6
    height: float = 0.1
    depth: float = 0.3
    width: float = 2.0
    yaw: float = 0.0

    kind: ClassVar[str] = "stairs"

    def __post_init__(self) -> None:
        self._check()
        self._array("start", (3,))
        self._array("yaw", ())
        self._positive("height", "depth", "width")
        if int(self.steps) != self.steps or self.steps < 1:
            raise ModelError(f"steps of stairs are {self.steps}, expected a positive integer")
        object.__setattr__(self, "steps", int(self.steps))

    def parts(self) -> list[Any]:
        turn, found = placement(_about_z(float(self.yaw)), self.start), []
        for k in range(self.steps):
            size = np.array([(self.steps - k) * self.depth, self.width, (k + 1) * self.height])
            middle = [k * self.depth + size[0] / 2.0, 0.0, size[2] / 2.0]
            found.append(Block(turn @ placement(np.eye(3), middle), size / 2.0))
        return found


@dataclass(frozen=True, eq=False)
class Ramp(Piece):
    """A slab whose upper face rises from the line through `start` (3,) by `height` over a horizontal `length` [m], along x
    turned by `yaw` about z [rad]. A negative height: it falls."""

    start: Array = field(default_factory=lambda: np.array([1.0, 0.0, 0.0]))
    length: float = 2.0
    height: float = 0.5
    width: float = 2.0
    yaw: float = 0.0
    thickness: float = 0.1

    kind: ClassVar[str] = "a ramp"

    def __post_init__(self) -> None:
        self._check()
        self._array("start", (3,))
        self._array("yaw", ())
        self._array("height", ())
        self._positive("length", "width", "thickness")

    def parts(self) -> list[Any]:
        along = np.hypot(self.length, self.height)
        c, s = self.length / along, float(self.height) / along
        tilt = np.array([[c, 0.0, -s], [0.0, 1.0, 0.0], [s, 0.0, c]])
        half = np.array([along, self.width, self.thickness]) / 2.0
        turn = placement(_about_z(float(self.yaw)), self.start) @ placement(tilt, np.zeros(3))
        return [Block(turn @ placement(np.eye(3), [half[0], 0.0, -half[2]]), half)]


@dataclass(frozen=True, eq=False)
class HeightField(Piece):
    """Heights (nx, ny) [m] over a grid along x and y with cells of side `cell`, its first point at `origin` (3,).

    Each cell is cut in two along its diagonal from its first point. What is less than `thickness` below is pushed up.
    """

    heights: Array
    cell: float = 0.1
    origin: Array = field(default_factory=lambda: np.zeros(3))
    thickness: float = 0.5

    kind: ClassVar[str] = "a height field"

    def __post_init__(self) -> None:
        self._check()
        heights = np.asarray(self.heights, np.float64)
        if heights.ndim != 2 or min(heights.shape) < 2:
            raise ModelError(f"heights of a height field have shape {heights.shape}, expected (nx, ny) from 2 on")
        if not np.isfinite(heights).all():
            raise ModelError("heights of a height field are not all finite")
        object.__setattr__(self, "heights", read_only(heights, heights.shape, "heights of a height field"))
        self._array("origin", (3,))
        self._positive("cell", "thickness")

    def surface(self) -> tuple[Array, NDArray[np.int64]]:
        """Its points (nx ny, 3) and triangles (2 (nx - 1) (ny - 1), 3)."""
        nx, ny = self.heights.shape
        x, y = np.meshgrid(self.cell * np.arange(nx), self.cell * np.arange(ny), indexing="ij")
        points = np.stack([x, y, self.heights], axis=-1).reshape(-1, 3) + self.origin
        index = np.arange(nx * ny).reshape(nx, ny)
        a, b, c, d = index[:-1, :-1], index[1:, :-1], index[1:, 1:], index[:-1, 1:]
        return points, np.stack([np.stack([a, b, c], -1), np.stack([a, c, d], -1)], axis=2).reshape(-1, 3)

    def parts(self) -> list[Any]:
        points, faces = self.surface()
        corners = points[faces]  # (F, 3, 3)
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
        limits = np.ones((len(faces), 3))  # at the rim
        owners = {edge: f for f, face in enumerate(faces.tolist()) for edge in pairwise((*face, face[0]))}
        for (a, b), f in owners.items():
            other = owners.get((b, a))
            if other is not None:
                outwards = np.cross(points[b] - points[a], normals[f])
                sine = max(0.0, float(normals[other] @ outwards / np.linalg.norm(outwards)))
                sharp = sine > 0.0 and normals[other] @ normals[f] < 0.0
                limits[f, faces[f].tolist().index(a)] = 1.0 if sharp else sine
        return [Facet(corners[f], limits[f], self.thickness) for f in range(len(faces))]


PIECES = Ground | Box | Stairs | Ramp | HeightField


@dataclass(frozen=True, eq=False)
class Terrain:
    """Pieces that together are one solid.

    >>> terrain = Terrain([Ground(friction=0.7), Stairs(start=(1, 0, 0), steps=3, height=0.1, depth=0.3)])
    >>> len(terrain.pieces), terrain.triangles()[1].shape
    (2, (38, 3))
    """

    pieces: tuple[PIECES, ...] = field(default_factory=lambda: (Ground(),))

    def __post_init__(self) -> None:
        pieces = self.pieces
        if isinstance(pieces, PIECES):
            pieces = (pieces,)
        if not isinstance(pieces, Iterable):
            raise TypeError(f"a terrain is {pieces!r}, expected a sequence of pieces")
        pieces = tuple(pieces)
        for index, piece in enumerate(pieces):
            if not isinstance(piece, PIECES):
                expected = "Ground, Box, Stairs, Ramp or HeightField"
                raise TypeError(f"piece {index} of the terrain is {piece!r}, expected {expected}")
        object.__setattr__(self, "pieces", pieces)

    def triangles(self, extent: float = 20.0) -> tuple[Array, NDArray[np.int64]]:
        """Points (V, 3) and triangles (F, 3) of its surface, for pictures; of a ground, a square of this side [m]."""
        points: list[Array] = [np.empty((0, 3))]
        faces: list[NDArray[np.int64]] = [np.empty((0, 3), np.int64)]
        for piece in self.pieces:
            for vertices, triangles in _surfaces(piece, extent):
                faces.append(triangles + sum(map(len, points)))
                points.append(vertices)
        return np.concatenate(points), np.concatenate(faces)


def _surfaces(piece: PIECES, extent: float) -> Iterable[tuple[Array, NDArray[np.int64]]]:
    if isinstance(piece, HeightField):
        yield piece.surface()
        return
    for part in piece.parts():
        if isinstance(part, Plane):
            x = np.cross(part.normal, np.eye(3)[int(np.argmin(np.abs(part.normal)))])
            x *= extent / 2.0 / np.linalg.norm(x)
            y = np.cross(part.normal, x)
            yield part.normal * part.offset + np.array([x + y, y - x, -x - y, x - y]), np.array([[0, 1, 2], [0, 2, 3]])
        else:
            yield CUBE * part.half @ part.placement[:3, :3].T + part.placement[:3, 3], CUBE_FACES


CUBE = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
CUBE_EDGES = np.array([(a, b) for a in range(8) for b in range(a + 1, 8) if (a ^ b).bit_count() == 1])
_SIDES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
CUBE_FACES = np.array([triangle for a, b, c, d in _SIDES for triangle in ((a, b, c), (a, c, d))])


def _about_z(angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def as_terrain(terrain: Terrain | PIECES | Iterable[PIECES] | None) -> Terrain:
    """What may be given as a terrain."""
    if isinstance(terrain, Terrain):
        return terrain
    return Terrain(() if terrain is None else terrain)  # type: ignore[arg-type]
