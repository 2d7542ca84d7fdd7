"""What the viewer and the replay file draw, and where: the numbers that their pages are given, without a browser."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus import view
from saltus.view.browser import Viewer
from tests.view.walker import FEET, crouch, quadruped

FRAMES, DT = 30, 0.1
ROBOT = quadruped()
Q = crouch(FRAMES)[0]
FORCES = np.random.default_rng(0).normal([3.0, -5.0, 20.0], size=(FRAMES, 4, 3))  # in no direction alike
FORCES[:, 2] *= np.linspace(0.0, 1.0, FRAMES)[:, None]  # the third foot touches down
NORMALS = np.array([[0.0, 0.0, 1.0], [0.6, 0.0, 0.8], [0.0, -0.6, 0.8], [0.0, 0.0, -1.0]])
EXTRAS: dict[str, Any] = {"contacts": FEET, "forces": FORCES, "normals": NORMALS, "friction": [0.3, 0.5, 0.7, 0.0]}


def feet(frame: int) -> np.ndarray:
    return np.array([sl.frame_placement(ROBOT, Q[frame], foot)[:3, 3] for foot in FEET])


@pytest.fixture(scope="module")
def viewer() -> Iterator[Viewer]:
    with view.show(ROBOT, Q, DT, port=8171, **EXTRAS) as viewer:
        viewer._follow.value = False
        yield viewer


def at(viewer: Viewer, seconds: float) -> Viewer:
    """The viewer with its slider there."""
    viewer._time.value = seconds
    viewer._draw()
    return viewer


@pytest.mark.parametrize(
    ("seconds", "frame"),
    # k / 10 by 0.1 is less than k for 3, 6, 7, 12, 14 ...: the nearest frame is meant, not the one below
    [(k / 10, k) for k in range(FRAMES)] + [(0.26, 3), (0.34, 3), (2.86, 29), (99.0, 29)],
)
def test_the_slider_shows_the_nearest_frame(viewer: Viewer, seconds: float, frame: int) -> None:
    at(viewer, seconds)
    assert viewer._frame == frame
    index, _, handle = viewer._drawn[0].solids[0]
    shape = viewer._scene.solids[index].shape
    place = sl.joint_placements(ROBOT, Q[frame])[shape.joint] @ shape.placement
    np.testing.assert_allclose(np.asarray(handle.batched_positions)[0], place[:3, 3], atol=1e-6)
    np.testing.assert_allclose(
        viewer._drawn[0].balls.batched_positions[0], sl.center_of_mass(ROBOT, Q[frame]), atol=1e-6
    )


@pytest.mark.parametrize("frame", [1, 17, 29])
def test_arrows_start_at_the_contacts_and_point_along_the_forces(viewer: Viewer, frame: int) -> None:
    at(viewer, frame * DT)
    tails, heads = np.moveaxis(np.asarray(viewer._drawn[0].arrows.points), 1, 0)
    np.testing.assert_allclose(tails, feet(frame), atol=1e-6)
    arrows, forces = heads - tails, FORCES[frame]
    lengths, sizes = np.linalg.norm(arrows, axis=1), np.linalg.norm(forces, axis=1)
    np.testing.assert_allclose(arrows / lengths[:, None], forces / sizes[:, None], atol=1e-5)
    scale = 0.5 * viewer._scene.size / np.linalg.norm(FORCES, axis=-1).max()  # one for all contacts and times
    np.testing.assert_allclose(lengths, scale * sizes, rtol=1e-5)


def test_no_force_no_arrow(viewer: Viewer) -> None:
    tails = np.asarray(at(viewer, 0.0)._drawn[0].arrows.points)[:, 0]
    np.testing.assert_allclose(tails, feet(0)[[0, 1, 3]], atol=1e-6)


def test_cones_stand_on_the_contacts_along_the_normals(viewer: Viewer) -> None:
    cones = at(viewer, 5 * DT)._drawn[0].cones
    np.testing.assert_allclose(cones.batched_positions, feet(5), atol=1e-6)
    w, x, y, z = np.asarray(cones.batched_wxyzs).T
    turned = np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], axis=1)
    np.testing.assert_allclose(turned, NORMALS, atol=1e-6)
    wide, _, high = np.asarray(cones.batched_scales).T
    np.testing.assert_allclose(wide, np.array([0.3, 0.5, 0.7, 0.0]) * high.max(), atol=1e-6)
    assert (high[:3] == high[0]).all() and high[0] > 0 == high[3]  # without friction there is no cone
    assert not np.asarray(at(viewer, 0.0)._drawn[0].cones.batched_scales)[2].any()  # nor where nothing touches


def test_the_centre_of_mass_hangs_over_the_floor(viewer: Viewer) -> None:
    ((top, ground),) = np.asarray(at(viewer, 9 * DT)._drawn[0].plumbs.points)
    center = sl.center_of_mass(ROBOT, Q[9])
    np.testing.assert_allclose(top, center, atol=1e-6)
    np.testing.assert_allclose(ground[:2], center[:2], atol=1e-6)
    assert viewer._scene.floor <= ground[2] < 0.01


def test_a_camera_that_follows_moves_all_else_back(viewer: Viewer) -> None:
    """By as much as the robot has gone, the ground with it."""
    gone = sl.center_of_mass(ROBOT, Q[20]) - sl.center_of_mass(ROBOT, Q[0])
    still = np.array(at(viewer, 20 * DT)._drawn[0].arrows.points)  # a copy: viser writes to its arrays
    viewer._follow.value = True
    try:
        moved = np.asarray(at(viewer, 20 * DT)._drawn[0].arrows.points)
        np.testing.assert_allclose(still - moved, np.broadcast_to(gone, still.shape), atol=1e-6)
        np.testing.assert_allclose(viewer._ground.position, -gone, atol=1e-6)
    finally:
        viewer._follow.value = False


def test_the_replay_file_holds_the_same(tmp_path) -> None:
    text = view.save_replay(tmp_path / "walk.html", ROBOT, Q, DT, **EXTRAS).read_text()
    found = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', text, re.DOTALL)
    assert found
    data = json.loads(found[1])

    def numbers(packed: str, *shape: int) -> np.ndarray:
        return np.frombuffer(base64.b64decode(packed), np.float32).reshape(1, FRAMES, *shape)

    contacts = data["parts"][0]["contacts"]
    points, arrows = numbers(contacts["points"], 4, 3), numbers(contacts["arrows"], 4, 3)
    scale = 0.5 * data["size"] / np.linalg.norm(FORCES, axis=-1).max()
    np.testing.assert_allclose(points[0], [feet(frame) for frame in range(FRAMES)], atol=1e-6)
    np.testing.assert_allclose(arrows[0], scale * FORCES, atol=1e-6)
    np.testing.assert_allclose(numbers(contacts["normals"], 4, 3)[0], np.tile(NORMALS, (FRAMES, 1, 1)), atol=1e-6)
    np.testing.assert_allclose(numbers(data["parts"][0]["center"], 3)[0], sl.center_of_mass(ROBOT, Q), atol=1e-6)
    assert data["dt"] == DT and data["frames"] == FRAMES
