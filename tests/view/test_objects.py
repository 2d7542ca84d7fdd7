"""Users' objects, frame axes, forces of constraints, several robots: what scenes, pages and files hold of them."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus import view
from saltus.view.replay import _packed_poses
from saltus.view.scene import poses
from tests.view.walker import FEET, crouch, moved, quadruped

ROBOT = quadruped()
Q, FORCES = crouch(6)
WAY = np.linspace([0.0, 0.0, 0.0], [1.0, 0.5, 0.0], 6)
OBJECTS = [
    view.Marker(WAY, "box", (0.1, 0.2, 0.3), (0.2, 0.4, 0.6, 0.5)),
    view.Marker(moved(0.3, 0.0, 0.2), "axes", (0.15,)),
    view.Path(WAY[:3], width=0.02),
    view.Arrow(WAY, (0.0, 0.0, 0.4)),
    view.Label("goal", (1.0, 0.5, 0.1)),
]


def part_of(path: Path) -> dict[str, Any]:
    found = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', path.read_text(), re.DOTALL)
    assert found
    return json.loads(found[1])["parts"][0]


def floats(packed: str, *shape: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed), np.float32).reshape(shape)


def test_objects_of_a_page_move_with_the_frames() -> None:
    with view.show(ROBOT, Q, 0.1, objects=OBJECTS, axes=["FL_foot", "root"], port=8181) as viewer:
        viewer._follow.value = False
        viewer._time.value = 0.4
        viewer._draw()
        (drawn,) = viewer._drawn
        np.testing.assert_allclose(drawn.markers[0].batched_positions, WAY[4:5], atol=1e-6)
        np.testing.assert_allclose(drawn.triads[0].batched_positions, [[0.3, 0.0, 0.2]], atol=1e-6)
        np.testing.assert_allclose(drawn.pointers[0].points, [[WAY[4], WAY[4] + [0, 0, 0.4]]], atol=1e-6)
        np.testing.assert_allclose(drawn.labels[0][0].position, (1.0, 0.5, 0.1), atol=1e-6)
        expected = [sl.frame_placement(ROBOT, Q[4], frame) for frame in ("FL_foot", "root")]
        np.testing.assert_allclose(drawn.axes.batched_positions, [X[:3, 3] for X in expected], atol=1e-6)
        turned = np.asarray(drawn.axes.batched_wxyzs)[:, [1, 2, 3, 0]]
        np.testing.assert_allclose(abs((turned * poses(np.array(expected))[:, 3:]).sum(axis=1)), 1.0, atol=1e-6)
        before = drawn.markers[0]
        viewer.update(Q, axes=["FL_foot", "root"], objects=[view.Marker(WAY[::-1], *_looks(0)), *OBJECTS[1:]])
        assert viewer._drawn[0].markers[0] is before  # a target that moves is no new page
        viewer._time.value = 0.4
        viewer._draw()
        np.testing.assert_allclose(before.batched_positions, WAY[1:2], atol=1e-6)
        assert viewer.server.get_port() == int(viewer.url.rsplit(":", 1)[1])


def _looks(index: int) -> tuple[Any, ...]:
    marker = OBJECTS[index]
    assert isinstance(marker, view.Marker)
    return marker.kind, marker.size, marker.color


def test_a_file_holds_the_objects(tmp_path: Path) -> None:
    part = part_of(view.save_replay(tmp_path / "a.html", ROBOT, Q, 0.1, objects=OBJECTS, axes=["FL_foot"]))
    np.testing.assert_allclose(floats(part["markers"][0]["poses"], 6, 7)[:, :3], WAY, atol=1e-6)
    assert part["markers"][0]["color"] == [0.2, 0.4, 0.6, 0.5] and part["triads"][0]["length"] == 0.15
    assert part["paths"][0]["points"] == WAY[:3].tolist() and part["labels"][0]["text"] == "goal"
    np.testing.assert_allclose(floats(part["pointers"][0]["vectors"], 6, 3), np.tile([0, 0, 0.4], (6, 1)), atol=1e-6)
    feet = [sl.frame_placement(ROBOT, q, "FL_foot")[:3, 3] for q in Q]
    np.testing.assert_allclose(floats(part["axes"], 6, 7)[:, :3], feet, atol=1e-6)


def test_the_camera_sees_the_objects() -> None:
    scene = view.describe(ROBOT, Q, objects=[view.Marker((3.0, -2.0, 1.0))])
    assert scene.high[0] == 3.0 and scene.low[1] == -2.0
    np.testing.assert_allclose(np.cross(scene.eye("front") - (scene.low + scene.high) / 2, (1, 0, 0)), 0, atol=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: view.Marker((0, 0, 0), "ball"), "kind is 'ball', expected one of box, sphere"),
        (lambda: view.Marker((0, 0, 0), "axes", (1, 1)), "expected their length"),
        (lambda: view.Marker((0, 0, 0), color=(2, 0, 0)), "a colour is"),
        (lambda: view.Path([(0, 0, 0)]), r"a path has shape \(1, 3\)"),
        (lambda: view.Path(WAY, width=0.0), "width is 0.0"),
        (lambda: view.describe(ROBOT, Q, objects=[view.Label("a", np.zeros((5, 3)))]), r"label 'a' has shape \(5, 3\)"),
        (lambda: view.describe(ROBOT, Q, objects=[view.Marker((0, 0, np.nan))]), "contains NaN"),
        (lambda: view.describe(ROBOT, Q, axes=["FL_fot"]), "did you mean 'FL_foot'"),
        (lambda: view.describe(ROBOT, Q, force_scale=-1.0), "force_scale is -1.0"),
        (lambda: view.describe(ROBOT, Q, axis="robot"), "axis is 'robot', expected one of 'time', 'robots'"),
        (lambda: view.save_replay("a.png", ROBOT, Q), "a.png: a replay is an HTML file"),
        (lambda: view.save_picture("a.html", ROBOT, Q), "expected the name of a picture"),
        (lambda: view.save_video("a.png", ROBOT, Q), "expected the name of a video"),
        (lambda: view.save_video("a.gif", ROBOT, Q, size=(301, 200)), "expected even numbers"),
        (lambda: view.save_picture("a.png", ROBOT, Q, view="below"), "view is 'below'"),
        (lambda: view.save_picture("a.png", ROBOT, Q, time=9.0), "time is 9.0"),
        (lambda: view.show(view.describe(ROBOT, Q), dt=0.1, axes=["root"]), "expected no axes"),
    ],
)
def test_errors(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(TypeError, match="among the objects is a str"):
        view.describe(ROBOT, Q, objects=["goal"])  # type: ignore[list-item]


# ------------------------------------------------------------------------------------------------ forces of constraints


def pushes(robot: sl.Model, q: np.ndarray, frame: str, local: np.ndarray) -> np.ndarray:
    """A force along the axes of a frame, in the world."""
    return sl.frame_placement(robot, q, frame)[:3, :3] @ local


def held() -> tuple[sl.Model, sl.ConstrainedDynamics, sl.Solution, np.ndarray]:
    robot = sl.load_robot("quadruped")
    q = robot.reference_configurations["standing"]
    q = sl.integrate(robot, q, np.linspace(-0.2, 0.3, robot.nv))
    feet = sl.robot_frames("quadruped").feet
    dynamics = sl.ConstrainedDynamics(
        robot, [sl.Contact(robot, feet[0], dim=6), *(sl.Contact(robot, f) for f in feet[1:])]
    )
    return robot, dynamics, dynamics.solve(q, np.zeros(robot.nv), np.zeros(robot.nv)), q


def test_forces_of_a_solution_are_turned_into_the_world() -> None:
    robot, dynamics, solution, q = held()
    feet = sl.robot_frames("quadruped").feet
    contacts = view.describe(robot, q, contacts=dynamics, forces=solution, friction=0.6).contacts
    begins = [0, 6, 9, 12]
    for k, (foot, begin) in enumerate(zip(feet, begins, strict=True)):
        expected = pushes(robot, q, foot, solution.forces[begin : begin + 3])
        np.testing.assert_allclose(contacts.forces[0, 0, k], expected, atol=1e-9)
        np.testing.assert_allclose(contacts.points[0, 0, k], sl.frame_placement(robot, q, foot)[:3, 3], atol=1e-12)
    assert np.linalg.norm(contacts.forces) > 1.0 and contacts.friction.tolist() == [[[0.6] * 4]]


def test_corners_of_a_surface_push_as_much_as_the_surface() -> None:
    """Lists in the list of contacts, as `SurfaceContact` makes them."""
    robot = sl.load_robot("humanoid")
    q, zero = robot.reference_configurations["standing"], np.zeros(robot.nv)
    soles = [sl.SurfaceContact(robot, foot, (0.2, 0.1)) for foot in sl.robot_frames("humanoid").feet]
    solution = sl.ConstrainedDynamics(robot, [corner for sole in soles for corner in sole]).solve(q, zero, zero)
    contacts = view.describe(robot, q, contacts=soles, forces=solution).contacts
    assert contacts.points.shape == (1, 1, 8, 3) and contacts.carrying.all()
    lifted = robot.total_mass * (sl.centroidal_momentum_rate(robot, q, zero, solution.a)[2] / robot.total_mass + 9.81)
    np.testing.assert_allclose(contacts.forces[0, 0, :, 2].sum(), lifted, rtol=1e-6)


def test_a_trajectory_knows_its_forces() -> None:
    robot, dynamics, _, q = held()
    fall = sl.rollout(dynamics, q, np.zeros(robot.nv), np.zeros(robot.nv), duration=0.1, dt=1e-3)
    scene = view.describe(robot, fall, dt=0.02, contacts=dynamics, force_scale=0.01)
    assert scene.frames == 6 and abs(scene.dt - 0.02) < 1e-12
    foot = sl.robot_frames("quadruped").feet[1]
    expected = pushes(robot, fall.q[40], foot, fall.forces[40, 6:9])
    np.testing.assert_allclose(scene.contacts.forces[0, 2, 1], expected, atol=1e-9)
    np.testing.assert_allclose(scene.arrows[0, 2, 1], 0.01 * expected, atol=1e-12)
    with pytest.raises(ValueError, match="a trajectory has its forces"):
        view.describe(robot, fall, contacts=dynamics, forces=np.zeros((6, 15)))
    with pytest.raises(ValueError, match="along its constraints"):
        view.describe(robot, q, contacts=[foot], forces=dynamics.solve(q, np.zeros(18), np.zeros(18)))


def test_loops_have_no_cones_and_carry_nothing() -> None:
    robot = sl.load_robot("four_bar")
    q, zero = robot.reference_configurations["standing"], np.zeros(robot.nv)
    dynamics = sl.ConstrainedDynamics(robot, sl.model_loops(robot))
    contacts = view.describe(robot, q, contacts=dynamics, forces=dynamics.solve(q, zero, zero), friction=0.5).contacts
    assert not contacts.carrying.any() and not contacts.friction.any() and contacts.forces.any()


def test_arrows_have_the_scale_that_is_given() -> None:
    given = view.describe(ROBOT, Q, contacts=FEET, forces=FORCES, force_scale=0.002)
    np.testing.assert_allclose(given.arrows[0], 0.002 * FORCES, atol=1e-12)


# ------------------------------------------------------------------------------------------------------- several robots


def test_an_axis_counts_time_or_robots() -> None:
    assert (view.describe(ROBOT, Q).robots, view.describe(ROBOT, Q).frames) == (1, 6)
    scene = view.describe(ROBOT, Q, axis="robots", contacts=FEET, forces=FORCES)
    assert (scene.robots, scene.frames) == (6, 1)
    np.testing.assert_allclose(scene.contacts.forces[:, 0], FORCES)


def test_robots_stand_side_by_side() -> None:
    arm = sl.load_robot("arm")
    both = [view.describe(ROBOT, Q, 0.1, axes=["root"]), view.describe(arm, arm.neutral(), objects=[OBJECTS[4]])]
    scene = view.side_by_side(both, title="two")
    first, second = scene.parts
    assert (first.frames, second.frames) == (6, 6) and scene.title == "two" and scene.dt == 0.1
    assert (
        first.placements[:, :, 1:, 1, 3].min() > second.placements[:, :, 1:, 1, 3].max()
    )  # the first one is at the left
    shift = first.placements[0, 0, 1, :3, 3] - both[0].placements[0, 0, 1, :3, 3]
    assert abs(shift[1]) > 0.1 and shift[0] == shift[2] == 0
    for moved_, still in ((first.axes, both[0].axes), (first.placements, both[0].placements)):
        np.testing.assert_allclose(
            moved_[..., :3, 3] - still[..., :3, 3], np.broadcast_to(shift, still[..., :3, 3].shape)
        )
    np.testing.assert_allclose(first.center - both[0].center, np.broadcast_to(shift, first.center.shape), atol=1e-12)
    np.testing.assert_array_equal(second.placements, second.placements[:, :1].repeat(6, axis=1))
    assert (scene.low <= second.low).all() and (scene.high >= first.high).all()
    with view.show(scene, port=8183) as viewer:
        assert len(viewer._drawn) == 2
        viewer.update(scene)
        with pytest.raises(TypeError, match="expected another one"):
            viewer.update(Q)
    with pytest.raises(ValueError, match="one time for all"):
        view.side_by_side([view.describe(ROBOT, Q, 0.1), view.describe(ROBOT, Q, 0.2)])


def test_poses_of_many_are_short_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saltus.view.replay.MOST_EXACT", 10)
    scene = view.describe(ROBOT, np.stack([Q, Q[::-1], Q]))
    exact = poses(scene.placements)
    packed = _packed_poses(exact, scene.terrain_places)
    shorts = np.frombuffer(base64.b64decode(packed["shorts"]), np.int16).reshape(exact.shape).astype(float)
    low, step = np.array(packed["low"]), np.array(packed["scale"])
    places = low + (shorts[..., :3] + 32768) * step + scene.terrain_places[:, None, None]
    np.testing.assert_allclose(places, exact[..., :3], atol=0.51 * step.max())
    np.testing.assert_allclose(shorts[..., 3:] / 32767, exact[..., 3:], atol=2e-5)
    assert step.max() < 2e-5  # not of the grid, of what one robot does


# ---------------------------------------------------------------------------------------------------------- the sliders


def test_sliders_move_the_robot_and_follow_it() -> None:
    builder = sl.ModelBuilder("two")
    wheel = builder.add_joint("wheel", "continuous", axis=(0, 0, 1))
    slide = builder.add_joint("slide", "prismatic", wheel, axis=(1, 0, 0), lower=-0.1, upper=0.4)
    for joint in (wheel, slide):
        builder.add_body(joint, 1.0, inertia=np.eye(3))
    robot = builder.build()
    with view.show(robot, robot.neutral(), port=8185, axes=["slide"]) as viewer:
        assert viewer._sliders is not None
        (_, _, _, turn), (_, low, high, shift) = viewer._sliders._handles
        assert (low, high) == (-0.1, 0.4)
        turn.value, shift.value = np.pi / 2, 0.3
        np.testing.assert_allclose(viewer.q, [0.0, 1.0, 0.3], atol=1e-12)
        np.testing.assert_allclose(viewer._drawn[0].axes.batched_positions, [[0.0, 0.3, 0.0]], atol=1e-6)
        viewer.update([1.0, 0.0, 0.1])
        assert (turn.value, shift.value) == (0.0, 0.1)
        np.testing.assert_allclose(viewer.q, [1.0, 0.0, 0.1])
        viewer.update(np.tile(robot.neutral(), (3, 1)))
        with pytest.raises(ValueError, match="no pose of one robot"):
            viewer.q  # noqa: B018
