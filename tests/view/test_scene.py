"""The scene against placements, hulls and boxes computed another way."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import trimesh
from scipy.spatial import ConvexHull

import saltus as sl
from saltus.model import Shape
from saltus.view.contacts import contacts_of, convex_hull
from saltus.view.scene import describe, poses
from saltus.view.solids import Solid, half_extents, skeleton, solids_of, triangulated
from tests.view.walker import FEET, crouch, moved, quadruped

SHAPES = {
    "box": (0.3, 0.2, 0.1),
    "sphere": (0.2,),
    "cylinder": (0.1, 0.4),
    "capsule": (0.1, 0.4),
    "ellipsoid": (0.1, 0.2, 0.3),
}


def matrix_of(pose: np.ndarray) -> np.ndarray:
    """The placement (4, 4) of position and quaternion x y z w, by the formula of the textbooks."""
    x, y, z, w = pose[3:]
    placement = np.eye(4)
    placement[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    placement[:3, 3] = pose[:3]
    return placement


def random_placements(count: int) -> np.ndarray:
    robot = sl.random_model(seed=3, bodies=1, kinds=["free_flyer"])
    return sl.joint_placements(robot, sl.random_configuration(robot, seed=4, shape=count))[:, 1]


@pytest.mark.parametrize("lead", [(), (7,), (3, 7), (1, 1)])
def test_bodies_are_where_the_joints_are(lead: tuple[int, ...]) -> None:
    robot = sl.random_model(seed=5, bodies=12)
    q = sl.random_configuration(robot, seed=6, shape=lead)
    scene = describe(robot, q, layout="overlay")
    batch = q.reshape((1,) * (2 - len(lead)) + q.shape)
    assert (scene.robots, scene.frames) == batch.shape[:2]
    for b, t in np.ndindex(*batch.shape[:2]):
        np.testing.assert_allclose(scene.placements[b, t], sl.joint_placements(robot, batch[b, t]), atol=1e-14)
        np.testing.assert_allclose(scene.center[b, t], sl.center_of_mass(robot, batch[b, t]), atol=1e-13)


def test_poses_are_placements() -> None:
    half_turns = np.stack([np.diag([1.0, -1, -1, 1]), np.diag([-1.0, 1, -1, 1]), np.diag([-1.0, -1, 1, 1])])
    for placement in [*random_placements(200), *half_turns]:
        pose = poses(placement)
        assert np.linalg.norm(pose[3:]) == pytest.approx(1, abs=1e-14)
        np.testing.assert_allclose(matrix_of(pose), placement, atol=1e-14)


def test_a_batch_stands_on_a_grid_without_touching() -> None:
    robot = quadruped()
    q = np.tile(crouch(5)[0], (5, 1, 1))
    scene, there = describe(robot, q), describe(robot, q, layout="overlay")
    offsets = scene.placements[:, :, :, :3, 3] - there.placements[:, :, :, :3, 3]
    np.testing.assert_allclose(offsets - offsets[:, :1, :1], 0, atol=1e-14)  # a robot moves as a whole
    assert not offsets[..., 2].any()
    np.testing.assert_allclose(scene.center - there.center, offsets[:, :, 0], atol=1e-14)
    places = offsets[:, 0, 0, :2]
    width = there.placements[..., :2, 3].max(axis=(0, 1, 2)) - there.placements[..., :2, 3].min(axis=(0, 1, 2))
    for a in range(5):
        for b in range(a):
            assert (abs(places[a] - places[b]) > width).any()
    assert scene.opacity.tolist() == [1] * 5
    assert there.opacity[0] == 1 and (there.opacity[1:] < 1).all()


@pytest.mark.parametrize("kind", SHAPES)
def test_extents_and_triangles_agree(kind: str) -> None:
    solid = Solid(Shape("", 0, kind, np.array(SHAPES[kind]), np.eye(4)), None)
    vertices = triangulated(solid).vertices
    for placement in random_placements(20):
        rotation = placement[:3, :3]
        middle, half = half_extents(solid, rotation)
        corners = vertices @ rotation.T
        assert not middle.any()
        np.testing.assert_allclose(corners.max(axis=0), half, atol=4e-3)  # triangles cut a curve short
        np.testing.assert_allclose(corners.min(axis=0), -half, atol=4e-3)
        assert (abs(corners) <= half + 1e-12).all()


def test_the_floor_is_under_the_robot() -> None:
    robot = quadruped()
    assert describe(robot, crouch()[0]).floor == 0
    low = robot.neutral()  # the legs straight down from a trunk at the origin
    assert describe(robot, low).floor == pytest.approx(-0.53, abs=1e-12)


def test_far_trips_are_followed() -> None:
    robot, (q, _) = quadruped(), crouch()
    assert not describe(robot, q).follow
    near = describe(robot, q)
    q[:, 0] *= 20
    far = describe(robot, q)
    assert far.follow
    np.testing.assert_allclose(far.path[:, 0], np.linspace(0, 6, len(q)), atol=0.05)
    assert (far.high - far.low < near.high - near.low + 0.1).all()  # what the camera sees does not grow with the way


def test_contact_points_are_the_frames() -> None:
    robot, (q, forces) = quadruped(), crouch(4)
    contacts = contacts_of(robot, q, FEET, forces=forces, friction=0.6)
    for t in range(4):
        for k, foot in enumerate(FEET):
            np.testing.assert_allclose(contacts.points[t, k], sl.frame_placement(robot, q[t], foot)[:3, 3], atol=1e-14)
    assert contacts.active.all() and (contacts.friction == 0.6).all()
    forces[1, 2] = 0
    assert not contacts_of(robot, q, FEET, forces=forces).active[1, 2]
    lifted = contacts_of(robot, q, FEET, forces=forces, active=np.arange(4) != 3)
    assert not lifted.active[:, 3].any() and not lifted.forces[:, 3].any()


def test_hulls_are_scipys() -> None:
    for seed in range(30):
        points = np.random.default_rng(seed).normal(size=(3 + seed, 2))
        expected = ConvexHull(points).vertices.tolist()  # counterclockwise too
        found = convex_hull(points)
        start = expected.index(found[0])
        assert found == expected[start:] + expected[:start]


def test_support_of_few_points() -> None:
    robot, (q, _) = quadruped(), crouch(3)
    for count in range(5):
        active = np.arange(4) < count
        support = contacts_of(robot, q, FEET, active=active).support
        assert support.shape == (3, 4, 3)
        corners = {tuple(corner) for corner in support[0].round(9)}
        assert len(corners) == max(count, 1)
    in_line = np.array([[0.0, 0], [1, 0], [2, 0], [3, 0]])
    assert convex_hull(in_line) == [0, 3]


def test_a_robot_without_shapes_has_a_skeleton() -> None:
    robot = quadruped(shapes=False)
    bones = [shape for shape in skeleton(robot) if shape.kind == "capsule"]
    q = crouch(1)[0][0]
    placements = sl.joint_placements(robot, q)
    ends = []
    for bone in bones:
        X = placements[bone.joint] @ bone.placement
        ends += [X[:3, 3] + sign * X[:3, 2] * bone.size[1] / 2 for sign in (-1, 1)]
    for place in [*placements[1:, :3, 3], *(sl.frame_placement(robot, q, foot)[:3, 3] for foot in FEET)]:
        assert min(np.linalg.norm(end - place) for end in ends) < 1e-12
    balls = [shape.joint for shape in skeleton(robot) if shape.kind == "sphere"]
    assert balls == list(range(1, robot.njoints))


def test_shapes_of_the_world_and_of_nothing_else() -> None:
    builder = sl.ModelBuilder("table")
    builder.add_shape("universe", "box", (1, 1, 0.1), moved(0, 0, 0.7))
    alone = describe(builder.build(), np.zeros(0))
    np.testing.assert_allclose([alone.low, alone.high], [[-0.5, -0.5, 0.65], [0.5, 0.5, 0.75]])
    hinge = builder.add_joint("hinge", "revolute")
    builder.add_body(hinge, 1.0, inertia=np.eye(3))
    scene = describe(builder.build(), np.zeros((2, 3, 1)), layout="overlay")
    np.testing.assert_array_equal(scene.placements[:, :, 0], np.broadcast_to(np.eye(4), (2, 3, 4, 4)))
    np.testing.assert_allclose(scene.high, [0.5, 0.5, 0.75])


def test_one_joint_and_nothing_to_draw() -> None:
    builder = sl.ModelBuilder("point", physical=False)
    builder.add_joint("slide", "prismatic")
    scene = describe(builder.build(), [0.3], solids=())
    np.testing.assert_allclose(scene.center, [[[0, 0, 0.15]]])  # no mass: the middle of world and joint
    assert scene.size > 0 and np.isfinite(scene.eye()).all()


def test_meshes(tmp_path, caplog) -> None:
    file = tmp_path / "wedge.stl"
    box = trimesh.creation.box(extents=(1, 2, 3))
    box.apply_translation([1, 0, 0])
    box.export(file)
    builder = sl.ModelBuilder("meshes")
    hinge = builder.add_joint("hinge", "revolute")
    builder.add_body(hinge, 1.0, inertia=np.eye(3))
    builder.add_shape(hinge, "mesh", (0.1, 0.1, -0.1), path=str(file), color=(1, 0, 0, 1))
    for missing in ("a.stl", "b.dae"):
        builder.add_shape(hinge, "mesh", (1, 1, 1), path=str(tmp_path / missing))
    with caplog.at_level(logging.WARNING):
        (solid,) = solids_of(builder.build())
    assert len(caplog.records) == 1 and "a.stl" in caplog.text and "b.dae" in caplog.text
    mesh = solid.mesh
    assert mesh is not None and solid.shape.color.tolist() == [1, 0, 0, 1]
    np.testing.assert_allclose(
        [mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)], [[0.05, -0.1, -0.15], [0.15, 0.1, 0.15]]
    )
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces], 1, 0)
    volume = np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6
    assert volume == pytest.approx(0.006)  # positive: the faces look outwards, though the mesh is mirrored
    middle, half = half_extents(solid, np.eye(3))
    np.testing.assert_allclose([middle, half], [[0.1, 0, 0], [0.05, 0.1, 0.15]])


def test_only_missing_meshes_leave_a_skeleton(tmp_path) -> None:
    builder = sl.ModelBuilder("bare")
    hinge = builder.add_joint("hinge", "revolute")
    builder.add_body(hinge, 1.0, com=(0, 0, 1), inertia=np.eye(3))
    builder.add_shape(hinge, "mesh", (1, 1, 1), path=str(tmp_path / "none.stl"))
    assert {solid.shape.kind for solid in solids_of(builder.build())} == {"sphere", "capsule"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q": np.zeros(18)}, r"q has shape \(18,\), expected \(19,\), \(T, 19\) or \(B, T, 19\)"),
        ({"q": np.zeros((2, 2, 2, 19))}, "q has shape"),
        ({"q": np.zeros((0, 19))}, "q has shape"),
        ({"dt": 0.0}, "dt is 0.0, expected a positive time"),
        ({"dt": np.nan}, "dt is nan"),
        ({"layout": "heap"}, "layout is 'heap', expected one of 'grid', 'overlay'"),
        ({"contacts": ["FL_fot"]}, "no frame 'FL_fot'; did you mean 'FL_foot'"),
        ({"contacts": FEET, "forces": np.zeros((3, 3))}, r"forces has shape \(3, 3\)"),
        ({"contacts": FEET, "forces": np.full((4, 3), np.nan)}, "forces contains NaN"),
        ({"contacts": FEET, "normals": (0, 0, 0)}, "normals contains one of length 0"),
    ],
)
def test_errors(changes, message) -> None:
    arguments = {"q": crouch(3)[0], **changes}
    with pytest.raises(ValueError, match=message):
        describe(quadruped(), **arguments)
