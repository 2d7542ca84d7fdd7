"""Simulated motions in pictures: what is drawn of terrain, contacts, forces and pushes."""

from __future__ import annotations

import base64
import json
import re
from functools import cache
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus import view
from saltus.view.contacts import contacts_of_motion
from saltus.view.terrain import ICE_COLOR, STONE_COLOR, surfaces_of

MASS, RADIUS, FRAME = 2.0, 0.1, 0.02
PUSH = sl.Push("body", (3.0, 0.0, 0.0), 0.3, 0.2)


@cache
def ball() -> sl.Model:
    builder = sl.ModelBuilder("ball")
    builder.add_joint("body", "free_flyer")
    builder.add_body("body", MASS, (0, 0, 0), 0.4 * MASS * RADIUS**2 * np.eye(3))
    builder.add_collider("body", "sphere", (RADIUS,))
    builder.add_shape("body", "sphere", (RADIUS,))
    return builder.build()


@cache
def rolled() -> Any:
    """A ball that falls 5 cm and is then pushed."""
    sim = sl.Simulator(ball(), [sl.Ground(friction=0.5), sl.Box((1, 1, 0.4), placed(0.0, 2.0, 0.2), friction=0.0)])
    return sim.rollout(at(0.0, 0.0, RADIUS + 0.05), np.zeros(6), duration=0.6, every=4, pushes=[PUSH])


def at(x: float, y: float, z: float) -> np.ndarray:
    return np.array([x, y, z, 0.0, 0.0, 0.0, 1.0])


def placed(x: float, y: float, z: float) -> np.ndarray:
    X = np.eye(4)
    X[:3, 3] = x, y, z
    return X


def test_frames_are_rows_of_the_motion() -> None:
    motion = rolled()
    scene = view.describe(motion, dt=FRAME)
    assert scene.frames == 31 and abs(scene.dt - FRAME) < 1e-12
    np.testing.assert_allclose(scene.placements[0, :, 1, :3, 3], motion.q[::5, :3], atol=1e-12)
    assert abs(view.describe(motion, dt=0.009).dt - 0.008) < 1e-12  # as near as rows allow


def test_forces_balance_what_changes_the_momentum() -> None:
    """Those drawn are means over a frame, of all rows of it where each row is a step."""
    sim = sl.Simulator(ball(), sl.Ground(friction=0.5))
    motion = sim.rollout(at(0.0, 0.0, RADIUS + 0.05), np.zeros(6), duration=0.6)
    scene = view.describe(motion, dt=FRAME)
    touching = scene.contacts.active[0, 1:].any(axis=-1)
    change = MASS * np.diff(motion.v[::20, 2]) / FRAME + 9.81 * MASS
    assert touching.sum() > 20
    np.testing.assert_allclose(scene.contacts.forces[0, 1:].sum(axis=1)[touching, 2], change[touching], atol=1e-6)
    assert not scene.contacts.forces[0, 1:][~touching].any()


def test_contacts_are_below_the_ball_and_pushes_act_on_its_frame() -> None:
    motion = rolled()
    contacts = view.describe(motion, dt=FRAME).contacts
    assert contacts.names == ("body", "push on body")
    active = contacts.active[0, :, 0]
    np.testing.assert_allclose(contacts.points[0, active, 0, :2], motion.q[::5, :2][active], atol=1e-9)
    np.testing.assert_allclose(contacts.points[0, active, 0, 2], 0.0, atol=1e-6)
    np.testing.assert_allclose(contacts.friction[0, active, 0], 0.5, rtol=1e-12)
    assert (contacts.normals[0, :, 0] == [0, 0, 1]).all()
    t = motion.t[::5]
    pushed = (t > 0.29) & (t < 0.49)
    assert (contacts.forces[0, :, 1, 0] == np.where(pushed, 3.0, 0.0)).all()
    assert not contacts.active[0, :, 1].any() and not contacts.carrying[0, :, 1].any()


def test_friction_of_the_rollout_is_that_of_the_cones() -> None:
    sim = sl.Simulator(ball(), sl.Ground(friction=0.5))
    motion = sim.rollout(at(0, 0, RADIUS), np.zeros(6), duration=0.1, friction=[1.0, 0.2])
    scene = view.describe(motion)
    for robot, coefficient in enumerate((0.5, 0.1)):
        active = scene.contacts.active[robot]
        assert active.any()
        np.testing.assert_allclose(scene.contacts.friction[robot][active], coefficient, rtol=1e-12)
    assert (scene.terrain_places == scene.placements[:, 0, 0, :3, 3]).all() and len(scene.terrain_places) == 2


def test_a_short_impact_leaves_arrows_of_what_lasts() -> None:
    """It is the quantile that fills an arrow, and none is longer."""
    scene = view.describe(rolled())
    lengths = np.linalg.norm(scene.arrows, axis=-1)
    assert lengths.max() <= 0.5 * scene.size * (1 + 1e-12)
    assert np.linalg.norm(scene.contacts.forces, axis=-1).max() * scene.metres_per_newton >= scene.longest_arrow


def test_self_contacts_carry_nothing() -> None:
    builder = sl.ModelBuilder("two")
    for name in "ab":
        builder.add_joint(name, "free_flyer")
        builder.add_body(name, MASS, (0, 0, 0), 0.4 * MASS * RADIUS**2 * np.eye(3))
        builder.add_collider(name, "sphere", (RADIUS,))
    motion = sl.Simulator(builder.build(), sl.Ground()).rollout(
        np.r_[at(0, 0, RADIUS), at(0, 0, 3 * RADIUS)], np.zeros(12), duration=0.05
    )
    contacts = contacts_of_motion(motion, motion.q, 1)
    assert set(contacts.names) == {"a", "a and b"} and contacts.active[1:].all() and not contacts.carrying.any()


def test_lost_robots_stay_where_they_were() -> None:
    start = np.tile(at(0, 0, 1.0), (2, 1))
    sim = sl.Simulator(ball(), sl.Ground())
    v = np.zeros((2, 6))
    v[1] = np.nan
    motion = sim.rollout(start, v, duration=0.1, on_invalid="mark")
    scene = view.describe(motion, layout="overlay")
    assert np.isfinite(scene.placements).all()
    np.testing.assert_allclose(scene.placements[1, -1, 1, :3, 3], [0, 0, 1.0])


def test_what_is_drawn_of_a_terrain() -> None:
    terrain = sl.Terrain([sl.Ground(height=0.2), sl.Stairs(steps=3, friction=0.0), sl.HeightField(np.zeros((4, 5)))])
    stairs, field = surfaces_of(terrain, 10.0)
    assert (stairs.color == ICE_COLOR).all() and (field.color == STONE_COLOR).all()
    assert stairs.mesh.faces.shape == (36, 3) and len(stairs.edges) == 36  # 12 of each box
    assert field.mesh.faces.shape == (24, 3) and len(field.edges) == 3 * 5 + 4 * 4
    outward = np.cross(*np.diff(stairs.mesh.vertices[stairs.mesh.faces[:12]], axis=1).swapaxes(0, 1))
    middle = stairs.mesh.vertices[stairs.mesh.faces[:12]].reshape(-1, 3).mean(axis=0)
    assert (((stairs.mesh.vertices[stairs.mesh.faces[:12, 0]] - middle) * outward).sum(axis=1) > 0).all()


@pytest.mark.parametrize(
    ("terrain", "floor"),
    [
        (sl.Ground(height=0.3), 0.3),
        ([sl.Ground(), sl.Ground(height=-1.0)], 0.0),
        (sl.Box((1.0, 1.0, 1.0), placed(0, 0, -0.5)), -1.0),
        (None, 0.0),
    ],
)
def test_the_floor_lies_below_all_that_is_drawn(terrain: Any, floor: float) -> None:
    assert view.describe(ball(), at(0, 0, 1.0), terrain=terrain).floor == floor


def test_the_replay_file_holds_the_terrain(tmp_path) -> None:
    text = view.save_replay(tmp_path / "ball.html", rolled()).read_text()
    found = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', text, re.DOTALL)
    assert found
    data = json.loads(found[1])
    (part,) = data["parts"]
    (box,) = part["surfaces"]
    points = np.frombuffer(base64.b64decode(box["vertices"]), np.float32).reshape(-1, 3)
    np.testing.assert_allclose(points.min(axis=0), [-0.5, 1.5, 0.0], atol=1e-6)
    np.testing.assert_allclose(points.max(axis=0), [0.5, 2.5, 0.4], atol=1e-6)
    assert part["places"] == [[0.0, 0.0, 0.0]] and part["contacts"]["count"] == 2


def test_the_viewer_shows_a_motion_and_keeps_a_terrain() -> None:
    with view.show(rolled(), port=8173) as viewer:
        (frame,) = viewer._drawn[0].terrain
        viewer._follow.value = True
        viewer._time.value = 0.6
        viewer._draw()
        np.testing.assert_allclose(frame.position, -viewer._scene.path[-1], atol=1e-6)
        viewer._follow.value = False
        assert viewer._drawn[0].arrows.points.shape[1:] == (2, 3)
        viewer.update(at(0, 0, 0.5))
        assert viewer._scene.floor == 0.0 and len(viewer._scene.terrain.pieces) == 2
        before = viewer._drawn[0].terrain
        viewer.update(at(0, 0, 0.7))
        assert viewer._drawn[0].terrain is before  # only the robot moved


def test_a_motion_takes_no_other_contacts() -> None:
    with pytest.raises(ValueError, match="expected none besides"):
        view.describe(rolled(), contacts=["body"])


def test_what_touches_nothing_is_drawn_as_well() -> None:
    robot = sl.random_model(seed=0, bodies=3)
    motion = sl.Simulator(robot, sl.Ground()).rollout(robot.neutral(), np.zeros(robot.nv), duration=0.04)
    scene = view.describe(motion)
    assert scene.frames == 3 and scene.contacts.names == () and motion.contact_forces.shape == (41, 0, 3)
