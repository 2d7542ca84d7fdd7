"""What users draw around their robots: markers, paths, arrows, labels. In the world's axes, still or moving with the frames.

`at` and the like are (3,), or (T, 3) with a row for every frame of the scene; of markers also placements (4, 4) or
(T, 4, 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from saltus.arrays import real_numbers
from saltus.model.checks import Array
from saltus.model.shapes import SIZES, Shape
from saltus.view.solids import Solid

TRIAD = "axes"
MARKERS = (*(kind for kind in SIZES if kind != "mesh"), TRIAD)
ORANGE, BLUE, GREEN = (0.93, 0.49, 0.19, 1.0), (0.23, 0.51, 0.77, 1.0), (0.18, 0.62, 0.37, 1.0)


@dataclass(frozen=True, eq=False)
class Marker:
    """A body without weight: a target, an obstacle, a frame's axes.

    >>> Marker((0.4, 0.0, 0.5), "box", (0.1, 0.1, 0.2)).places(3).shape
    (3, 4, 4)
    """

    at: ArrayLike
    kind: str = "sphere"  # one of MARKERS
    size: Sequence[float] = (0.05,)  # as a `Shape` of this kind has it; of axes, their length [m]
    color: Sequence[float] = ORANGE  # red, green, blue, and opacity; axes have their own

    def __post_init__(self) -> None:
        if self.kind not in MARKERS:
            raise ValueError(f"a marker's kind is {self.kind!r}, expected one of {', '.join(MARKERS)}")
        if self.kind == TRIAD and not (len(self.size) == 1 and self.size[0] > 0):
            raise ValueError(f"a marker's axes have the size {self.size}, expected their length")
        object.__setattr__(self, "color", _color(self.color))
        self.solid  # noqa: B018 - its sizes are checked there

    @property
    def solid(self) -> Solid | None:
        """What is drawn; None for axes."""
        if self.kind == TRIAD:
            return None
        return Solid(Shape("marker", 0, self.kind, np.array(self.size, float), np.eye(4), np.array(self.color)), None)

    def places(self, frames: int) -> Array:
        """(T, 4, 4)."""
        at = _numbers(self.at, "a marker's place")
        if at.shape[-2:] == (4, 4) and at.ndim <= 3:
            return _over_time(at, (4, 4), frames, "a marker's place")
        placements = np.tile(np.eye(4), (frames, 1, 1))
        placements[:, :3, 3] = _over_time(at, (3,), frames, "a marker's place")
        return placements


@dataclass(frozen=True, eq=False)
class Path:
    """A line through points (N, 3), which does not move: a path, a contour, what was planned."""

    points: ArrayLike
    color: Sequence[float] = BLUE
    width: float = 0.008  # [m]

    def __post_init__(self) -> None:
        points = _numbers(self.points, "a path")
        if points.ndim != 2 or points.shape[1] != 3 or len(points) < 2:
            raise ValueError(f"a path has shape {points.shape}, expected (N, 3) with two points or more")
        if not 0 < self.width < np.inf:
            raise ValueError(f"a path's width is {self.width}, expected a positive length in metres")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "color", _color(self.color))


@dataclass(frozen=True, eq=False)
class Arrow:
    """From `at` as far as `vector` [m]: a velocity, a force, a direction, scaled by whoever draws it."""

    at: ArrayLike
    vector: ArrayLike
    color: Sequence[float] = GREEN

    def __post_init__(self) -> None:
        object.__setattr__(self, "color", _color(self.color))

    def rows(self, frames: int) -> tuple[Array, Array]:
        """Where it begins and how far it goes, both (T, 3)."""
        return tuple(  # type: ignore[return-value]
            _over_time(_numbers(values, what), (3,), frames, what)
            for values, what in ((self.at, "an arrow's place"), (self.vector, "an arrow's vector"))
        )


@dataclass(frozen=True, eq=False)
class Label:
    """A word at a place."""

    text: str
    at: ArrayLike

    def rows(self, frames: int) -> Array:
        """(T, 3)."""
        what = f"the place of label {self.text!r}"
        return _over_time(_numbers(self.at, what), (3,), frames, what)


Object: TypeAlias = Marker | Path | Arrow | Label


@dataclass(frozen=True, eq=False)
class Objects:
    """All of a scene, with their places over T frames."""

    markers: tuple[tuple[Solid, Array], ...] = ()  # with placements (T, 4, 4)
    triads: tuple[tuple[float, Array], ...] = ()  # lengths, and placements (T, 4, 4)
    paths: tuple[Path, ...] = ()
    arrows: tuple[tuple[Array, Array, Array], ...] = ()  # from (T, 3), as far as (T, 3), colour (4,)
    labels: tuple[tuple[str, Array], ...] = ()  # with places (T, 3)
    given: tuple[Object, ...] = field(default=(), repr=False)

    def at(self, rows: Any) -> Objects:
        """The same with these frames."""
        return Objects(
            tuple((solid, places[rows]) for solid, places in self.markers),
            tuple((length, places[rows]) for length, places in self.triads),
            self.paths,
            tuple((at[rows], vector[rows], color) for at, vector, color in self.arrows),
            tuple((text, places[rows]) for text, places in self.labels),
            self.given,
        )

    @property
    def looks(self) -> tuple[Any, ...]:
        """All but where things are that move."""
        return (
            [(solid.shape.kind, solid.shape.size.tolist(), solid.shape.color.tolist()) for solid, _ in self.markers],
            [length for length, _ in self.triads],
            [(np.asarray(path.points).tolist(), path.color, path.width) for path in self.paths],
            [color.tolist() for _, _, color in self.arrows],
            [text for text, _ in self.labels],
        )

    @property
    def ends(self) -> Array:
        """(N, 3) points that a picture of all should show."""
        found = [places[:, :3, 3] for _, places in (*self.markers, *self.triads)]
        found += [np.asarray(path.points) for path in self.paths]
        found += [each for at, vector, _ in self.arrows for each in (at, at + vector)]
        found += [places for _, places in self.labels]
        return np.concatenate([np.empty((0, 3)), *found])


def objects_of(given: Sequence[Object], frames: int) -> Objects:
    """Users' objects, checked.

    >>> objects_of([Label("goal", (1, 0, 0)), Path([(0, 0, 0), (1, 0, 0)])], frames=5).labels[0][1].shape
    (5, 3)
    """
    given = tuple(given)
    for each in given:
        if not isinstance(each, Object):
            raise TypeError(f"among the objects is a {type(each).__name__}, expected Marker, Path, Arrow or Label")
    markers = [(each, each.solid, each.places(frames)) for each in given if isinstance(each, Marker)]
    return Objects(
        tuple((solid, places) for _, solid, places in markers if solid is not None),
        tuple((float(each.size[0]), places) for each, solid, places in markers if solid is None),
        tuple(each for each in given if isinstance(each, Path)),
        tuple((*each.rows(frames), np.array(each.color)) for each in given if isinstance(each, Arrow)),
        tuple((each.text, each.rows(frames)) for each in given if isinstance(each, Label)),
        given,
    )


def _numbers(values: ArrayLike, what: str) -> Array:
    array = real_numbers(values, what).astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{what} contains NaN or an infinity")
    return array


def _over_time(values: Array, shape: tuple[int, ...], frames: int, what: str) -> Array:
    if values.shape not in (shape, (frames, *shape)):
        raise ValueError(f"{what} has shape {values.shape}, expected {shape} or {(frames, *shape)}")
    return np.broadcast_to(values, (frames, *shape))


def _color(color: Sequence[float]) -> tuple[float, ...]:
    values = _numbers(color, "a colour")
    if values.shape not in ((3,), (4,)) or (values < 0).any() or (values > 1).any():
        raise ValueError(f"a colour is {color}, expected red, green, blue, and opacity if you like, from 0 to 1")
    return (*values.tolist(), 1.0)[:4]
