"""Several robots side by side in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from saltus.model.checks import Array
from saltus.view.scene import Scene


def side_by_side(scenes: Sequence[Scene], title: str | None = None) -> Scene:
    """One scene of several, each with robots of its own, in a row along y, the first one left; what `describe` makes of
    each, `show` and `save_replay` show of all.

    Arrows of forces have one scale, that of the smallest. What ends earlier waits for the others.

    >>> import saltus as sl
    >>> robots = [sl.load_robot(name) for name in ("arm", "cartpole")]
    >>> scene = side_by_side([sl.view.describe(robot, robot.neutral()) for robot in robots])
    >>> len(scene.parts), scene.title
    (2, 'arm, cartpole')
    """
    scenes = [each for scene in scenes for each in scene.parts]
    if not scenes:
        raise ValueError("there is no scene, expected one or more")
    if len({scene.dt for scene in scenes if scene.frames > 1}) > 1:
        raise ValueError(f"the scenes have frames {[scene.dt for scene in scenes]} s apart, expected one time for all")
    frames = max(scene.frames for scene in scenes)
    size = max(scene.size for scene in scenes)
    scales = [scene.metres_per_newton for scene in scenes if scene.metres_per_newton]
    moved, right = [], 0.0
    for scene in scenes:
        offset = np.array([0.0, right - scene.high[1], 0.0])
        right -= scene.high[1] - scene.low[1] + 0.2 * size
        moved.append(replace(_longer(_moved(scene, offset), frames), metres_per_newton=min(scales, default=0.0)))
    middle = np.array([0.0, (moved[0].high[1] + moved[-1].low[1]) / 2, 0.0])
    first, *others = (_moved(scene, -middle) for scene in moved)
    return replace(
        first,
        title=", ".join(dict.fromkeys(scene.title for scene in scenes)) if title is None else str(title),
        dt=next((scene.dt for scene in scenes if scene.frames > 1), first.dt),
        low=np.min([scene.low for scene in (first, *others)], axis=0),
        high=np.max([scene.high for scene in (first, *others)], axis=0),
        size=size,
        floor=min(scene.floor for scene in scenes),
        follow=any(scene.follow for scene in scenes),
        beside=tuple(others),
    )


def _moved(scene: Scene, offset: Array) -> Scene:
    """The same scene elsewhere."""
    lift = np.zeros((4, 4))
    lift[:3, 3] = offset
    contacts = replace(scene.contacts, points=scene.contacts.points + offset)
    return replace(
        scene, placements=scene.placements + lift, center=scene.center + offset, contacts=contacts,
        terrain_places=scene.terrain_places + offset, axes=scene.axes + lift, low=scene.low + offset,
        high=scene.high + offset,
    )  # fmt: skip


def _longer(scene: Scene, frames: int) -> Scene:
    """The same scene with so many frames, the last of its own at the end."""
    rows = np.minimum(np.arange(frames), scene.frames - 1)
    contacts = scene.contacts
    names = ("points", "active", "forces", "normals", "friction", "carrying")
    return replace(
        scene, placements=scene.placements[:, rows], center=scene.center[:, rows], axes=scene.axes[:, rows],
        contacts=replace(contacts, **{name: getattr(contacts, name)[:, rows] for name in names}),
        objects=scene.objects.at(rows),
    )  # fmt: skip
