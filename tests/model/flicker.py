"""Where flat faces of different colours lie in one plane and look the same way, a picture flickers between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import saltus as sl

NEAR = 5e-4  # faces nearer to each other than this lie in one plane [m]


class Face(NamedTuple):
    """A flat face: a rectangle, or a disc, in the plane x, y of its frame, looking along z."""

    shape: sl.Shape
    placement: np.ndarray  # (4, 4) in the world
    half: np.ndarray  # (2,) of the rectangle's sides; a disc's radius, twice
    round: bool

    def covers(self, points: np.ndarray) -> np.ndarray:
        """Which of the points (n, 2) in its plane are on it."""
        scaled = np.abs(points) / self.half
        return np.asarray((np.linalg.norm(scaled, axis=1) if self.round else scaled.max(axis=1)) < 1.0)

    def points(self) -> np.ndarray:
        """Some points (n, 2) on it."""
        grid = np.stack(np.meshgrid(*[np.linspace(-0.99, 0.99, 23)] * 2), axis=-1).reshape(-1, 2) * self.half
        return grid[self.covers(grid)]


def flickering(model: sl.Model, q: np.ndarray) -> list[tuple[str, str]]:
    """The pairs of shapes that flicker."""
    joints = sl.joint_placements(model, q)
    faces = [face for shape in model.shapes for face in _faces(shape, joints[shape.joint] @ shape.placement)]
    return [
        (_named(model, a.shape), _named(model, b.shape))
        for a in faces
        for b in faces
        if _one_plane(a, b) and _overlap(a, b)
    ]


def _one_plane(a: Face, b: Face) -> bool:
    apart = (b.placement[:3, 3] - a.placement[:3, 3]) @ a.placement[:3, 2]
    same_side = a.placement[:3, 2] @ b.placement[:3, 2] > 0.99999
    return bool(same_side and abs(apart) < NEAR and (a.shape.color != b.shape.color).any())


def _overlap(a: Face, b: Face) -> bool:
    points = a.points()
    world = points @ a.placement[:3, :2].T + a.placement[:3, 3]
    return bool(b.covers((world - b.placement[:3, 3]) @ b.placement[:3, :2]).any())


def _faces(shape: sl.Shape, X: np.ndarray) -> Iterator[Face]:
    """The six of a box, the two of a cylinder."""
    if shape.kind not in ("box", "cylinder"):
        return
    for axis in (0, 1, 2) if shape.kind == "box" else (2,):
        length = shape.size[axis] if shape.kind == "box" else shape.size[1]
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for side in (1.0, -1.0):
            local = np.eye(4)
            local[:3, :3] = np.eye(3)[:, [u, v, axis]] * [side, 1.0, side]  # still right-handed
            local[axis, 3] = side * length / 2.0
            half = shape.size[[u, v]] / 2.0 if shape.kind == "box" else np.full(2, shape.size[0])
            yield Face(shape, X @ local, half, shape.kind == "cylinder")


def _named(model: sl.Model, shape: sl.Shape) -> str:
    return f"{shape.kind} {shape.size.tolist()} of {model.joints[shape.joint].name}"
