"""Standing poses: solved by Newton's method, so that soles lie flat, loops close and the weight is carried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tools.make_robots.parts import ZERO, Robot, Triple


@dataclass(frozen=True)
class Pose:
    """Angles by joint, and where the root of a floating robot is; it is never turned."""

    angles: dict[str, float] = field(default_factory=dict)
    base: Triple = ZERO


def solve(residual: Callable[[np.ndarray], np.ndarray], start: list[float]) -> list[float]:
    """A root of `residual`, by Newton's method with central differences, to the last digits."""
    x, step = np.array(start), 1e-6
    for _ in range(50):
        slopes = [(residual(x + step * e) - residual(x - step * e)) / (2.0 * step) for e in np.eye(len(x))]
        change = np.linalg.lstsq(np.transpose(slopes), residual(x), rcond=None)[0]
        x -= change
        if np.abs(change).max() < 1e-14:
            break
    assert np.abs(residual(x)).max() < 1e-12, residual(x)
    return x.tolist()


def grounded(robot: Robot, angles: dict[str, float], foot: str) -> Pose:
    """The pose with the origin of the frame `foot` at height zero."""
    places = robot.placements(angles)
    return Pose(angles, (0.0, 0.0, -places[foot][2, 3]))
