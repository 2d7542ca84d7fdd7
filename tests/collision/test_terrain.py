"""What a robot feels of a terrain: seams, steps, ramps, height fields; and which terrains are refused."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

import saltus as sl
from tests.collision.bodies import floating, placed, poses, upright

DEEP = 1e-4


def alive(found: sl.Contacts, sample: int) -> set[tuple[Any, ...]]:
    mask = found.mask[sample]
    rows = np.column_stack([found.gap[sample][mask], found.normal[sample][mask]]).round(6) + 0.0
    return {tuple(row) for row in rows.tolist()}


@pytest.mark.parametrize(("kind", "height"), [("sphere", 0.1), ("capsule", 0.05), ("box", 0.05)])
def test_seams_of_a_flat_floor_are_not_felt(kind: str, height: float) -> None:
    floor = [sl.Box((1, 1, 0.1), placed(position=(x, 0, -0.05))) for x in (0, 1, 2)]
    q = upright(np.column_stack([np.linspace(-0.3, 2.3, 4001), np.zeros(4001), np.full(4001, height - DEEP)]))
    q[:, 3:] = Rotation.from_euler("zyx", [0.3, np.pi / 2 if kind == "capsule" else 0.0, 0.0]).as_quat()
    found = sl.find_contacts(floating(kind), floor, q)
    assert found.mask.any(axis=-1).all()
    np.testing.assert_allclose(found.gap.min(axis=-1), -DEEP, atol=1e-9)
    assert np.abs(found.normal[found.mask][:, :2]).max() < 1e-3


def test_a_ball_climbs_stairs() -> None:
    """It feels the tread and the riser ahead, each with its own normal, and no edge that lies within the stairs."""
    stairs = [sl.Ground(), sl.Stairs(start=(0.5, 0, 0), steps=4, height=0.1, depth=0.3)]
    ball = floating("sphere", (0.05,))
    found = sl.find_contacts(ball, stairs, upright([[0.3, 0, 0.05], [0.44, 0, 0.05], [0.79, 0, 0.15], [0.81, 0, 0.25]]))
    up, back = (0.0, 0.0, 1.0), (-1.0, 0.0, 0.0)
    assert alive(found, 0) == {(0.0, *up)}
    assert alive(found, 1) == {(0.0, *up), (0.01, *back)}
    assert alive(found, 2) == {(0.0, *up), (-0.04, *back)}
    assert alive(found, 3) == {(0.0, *up)}


def test_normals_turn_smoothly_around_the_edge_of_a_step() -> None:
    angle = np.linspace(0.01, np.pi / 2 - 0.01, 500)
    edge = np.array([0.5, 0.0, 0.1])
    centres = edge + 0.06 * np.column_stack([-np.cos(angle), np.zeros(500), np.sin(angle)])
    stairs = sl.Stairs(start=(0.5, 0, 0), steps=1)
    found = sl.find_contacts(floating("sphere", (0.05,)), stairs, upright(centres))
    assert (found.mask.sum(axis=-1) == 1).all()
    np.testing.assert_allclose(found.gap[found.mask], 0.01, atol=1e-12)
    np.testing.assert_allclose(found.normal[found.mask], (centres - edge) / 0.06, atol=1e-12)


def test_a_box_rests_on_all_its_corners() -> None:
    box = floating("box", (0.3, 0.2, 0.1))
    for terrain in (sl.Ground(), sl.Box((2, 2, 1), placed(position=(0, 0, -0.5)))):
        found = sl.find_contacts(box, terrain, upright([0.1, 0.2, 0.05 - DEEP]))
        assert found.mask.sum() == 4
        corners = {tuple(row) for row in (found.point[found.mask] - [0.1, 0.2, 0.0]).round(3).tolist()}
        assert {(abs(x), abs(y)) for x, y, _ in corners} == {(0.15, 0.1)} and len(corners) == 4
        np.testing.assert_allclose(found.gap[found.mask], -DEEP, atol=1e-12)


def test_edges_and_faces_of_boxes() -> None:
    """The edge of a step in the middle of a trunk's face: two contacts where it leaves the face; two edges: one contact."""
    trunk, step = floating("box", (0.3, 0.2, 0.1)), sl.Box((2, 2, 1), placed(position=(1, 0, -0.5)))
    tilted = upright([0.0, 0.0, 0.0])
    turn = Rotation.from_euler("y", -0.6)
    tilted[3:], tilted[:3] = turn.as_quat(), turn.apply([0.0, 0.0, 0.05 - DEEP])
    found = sl.find_contacts(trunk, step, tilted, margin=0.005)
    assert found.mask.sum() == 2
    np.testing.assert_allclose(np.abs(found.point[found.mask][:, 1]), 0.1, atol=1e-9)
    np.testing.assert_allclose(found.normal[found.mask], np.tile(turn.apply([0, 0, 1]), (2, 1)), atol=1e-9)
    turn = Rotation.from_euler("xz", [np.pi / 4, np.pi / 4])  # one of its edges is lowest, and level, across the ridge
    lowest = min((turn.apply([0.0, y, -0.05]) for y in (-0.1, 0.1)), key=lambda point: point[2])
    crossed = upright(-lowest - [0.0, 0.0, DEEP])
    crossed[3:] = turn.as_quat()
    ridge = sl.Box((2, 2, 2), placed(Rotation.from_euler("x", np.pi / 4).as_matrix(), (0, 0, -np.sqrt(2))))
    found = sl.find_contacts(trunk, ridge, crossed, margin=0.005)
    assert found.mask.sum() == 1
    np.testing.assert_allclose(found.gap[found.mask], -DEEP, atol=1e-9)
    np.testing.assert_allclose(found.normal[found.mask], [[0.0, 0.0, 1.0]], atol=1e-9)


def test_a_capsule_lies_across_a_beam() -> None:
    beam = sl.Box((0.2, 2, 1), placed(position=(0, 0, -0.5)))
    q = upright([0.0, 0.0, 0.05 - DEEP])
    q[3:] = Rotation.from_euler("y", np.pi / 2).as_quat()
    found = sl.find_contacts(floating("capsule"), beam, q, margin=0.005)
    ends = found.point[found.mask][:, 0]
    np.testing.assert_allclose([ends.min(), ends.max()], [-0.1, 0.1], atol=1e-9)
    np.testing.assert_allclose(found.gap[found.mask], -DEEP, atol=1e-12)


def test_a_ramp_rises_from_its_line() -> None:
    ramp = sl.Ramp(start=(1, 0, 0), length=2.0, height=1.0, yaw=np.pi / 2)
    normal = np.array([0.0, -1.0, 2.0]) / np.sqrt(5.0)
    centre = np.array([1.0, 1.0, 0.5]) + 0.13 * normal
    found = sl.find_contacts(floating("sphere"), ramp, upright(centre), margin=0.1)
    np.testing.assert_allclose(found.gap[found.mask], 0.03, atol=1e-12)
    np.testing.assert_allclose(found.normal[found.mask], [normal], atol=1e-12)


def test_the_nearest_contacts_of_all_pieces_are_kept() -> None:
    """A foot on a tread against a riser: four corners, and the riser's own."""
    terrain = [sl.Box((2, 2, 1), placed(position=(0, 0, -0.5))), sl.Box((1, 2, 1), placed(position=(0.65, 0, 0)))]
    found = sl.find_contacts(floating("box", (0.3, 0.2, 0.1)), terrain, upright([0.0, 0.0, 0.05]), margin=0.005)
    normals = found.normal[found.mask].round(9).tolist()
    assert normals.count([0.0, 0.0, 1.0]) == 4 and normals.count([-1.0, 0.0, 0.0]) == 4


def test_friction_is_the_geometric_mean() -> None:
    ice, rubber = sl.Ground(friction=0.04, restitution=0.3), floating("sphere", friction=1.0)
    found = sl.find_contacts(rubber, ice, upright([0.0, 0.0, 0.1]))
    assert found.friction.tolist() == pytest.approx([0.2]) and found.restitution.tolist() == [0.3]
    found = sl.find_contacts(floating("sphere"), sl.Box((1, 1, 1), friction=0.04), upright([0.0, 0.0, 0.6]))
    assert found.friction.tolist() == pytest.approx([0.04])


# ---------------------------------------------------------------------------------------------------- height fields

HEIGHTS = 0.05 * np.random.default_rng(4).normal(size=(9, 8))
FIELD = sl.HeightField(HEIGHTS, cell=0.1, origin=(-0.4, -0.35, 0.02))
CLOSE = 0.0025  # between two points of the sampled surface, at most


def sampled_surface() -> Any:
    points, faces = FIELD.surface()
    k = 40
    share = np.array([(i / k, j / k) for i in range(k + 1) for j in range(k + 1 - i)])
    a, b, c = (points[faces[:, n]][:, None] for n in range(3))
    return (a + share[None, :, :1] * (b - a) + share[None, :, 1:] * (c - a)).reshape(-1, 3)


def height(xy: Any) -> Any:
    """Of the surface, by hand."""
    u = (xy - [-0.4, -0.35]) / 0.1
    i, j = np.floor(u).astype(int).T
    s, t = (u - np.floor(u)).T
    a, b, c, d = HEIGHTS[i, j], HEIGHTS[i + 1, j], HEIGHTS[i + 1, j + 1], HEIGHTS[i, j + 1]
    return 0.02 + np.where(s >= t, a + (b - a) * s + (c - b) * t, a + (d - a) * t + (c - d) * s)


def over_the_field(count: int, low: float, high: float) -> Any:
    rng = np.random.default_rng(6)
    xy = rng.uniform(-0.25, 0.2, size=(count, 2))
    return np.column_stack([xy, height(xy) + rng.uniform(low, high, size=count)])


def test_balls_over_a_height_field() -> None:
    centres = over_the_field(2000, 0.001, 0.12)
    found = sl.find_contacts(floating("sphere", (0.05,)), FIELD, upright(centres), margin=1.0)
    sampled, _ = cKDTree(sampled_surface()).query(centres)
    exact = found.gap.min(axis=-1) + 0.05
    assert (exact < sampled + 1e-12).all()  # samples are never nearer than the surface
    assert (np.sqrt(np.maximum(sampled**2 - CLOSE**2, 0.0)) < exact + 1e-12).all()


def test_balls_below_a_height_field_are_pushed_out() -> None:
    centres = over_the_field(2000, -0.03, -0.001)
    found = sl.find_contacts(floating("sphere", (0.05,)), FIELD, upright(centres), margin=0.0)
    slot = np.argmin(found.gap, axis=-1)
    rows = np.arange(len(slot))
    gap, normal = found.gap[rows, slot], found.normal[rows, slot]
    assert (gap < -0.05).all() and (normal[:, 2] > 0.3).all()
    sampled, _ = cKDTree(sampled_surface()).query(centres)
    assert np.abs(gap + 0.05 + sampled).max() < 0.012  # along the normal of the facet above


def test_boxes_over_a_height_field() -> None:
    size, q = np.array([0.12, 0.1, 0.06]), poses(400, (0, 0, 0), 0.0)
    q[:, :3] = over_the_field(400, 0.02, 0.15)
    found = sl.find_contacts(floating("box", size), FIELD, q, margin=1.0)
    gap, surface = found.gap.min(axis=-1), sampled_surface()
    apart = 0
    for each, ours in zip(q, gap, strict=True):
        inside = np.abs(Rotation.from_quat(each[3:]).inv().apply(surface - each[:3])) - size / 2.0
        sampled = np.linalg.norm(np.maximum(inside, 0.0), axis=1).min()
        if sampled > CLOSE:
            apart += 1
            assert -CLOSE < ours - sampled < 1e-9
        elif inside.max(axis=1).min() < -0.002:
            assert ours < 0.0
    assert apart > 100


def test_what_is_flat_in_a_height_field_has_no_seams() -> None:
    flat = sl.HeightField(np.zeros((6, 6)), cell=0.1, origin=(-0.25, -0.25, 0.0))
    x = np.linspace(-0.15, 0.15, 1001)
    q = upright(np.column_stack([x, 0.3 * x, np.full(1001, 0.1 - DEEP)]))
    found = sl.find_contacts(floating("sphere"), flat, q)
    np.testing.assert_allclose(found.gap.min(axis=-1), -DEEP, atol=1e-12)
    assert np.abs(found.normal[found.mask][:, :2]).max() < 2e-3


# ---------------------------------------------------------------------------------------------------- the terrain itself


def test_terrain_is_kept_by_pickle() -> None:
    terrain = sl.Terrain([sl.Ground(), sl.Box((1, 2, 3)), sl.Stairs(), sl.Ramp(), FIELD])
    copy = pickle.loads(pickle.dumps(terrain))
    np.testing.assert_array_equal(copy.triangles()[0], terrain.triangles()[0])
    with pytest.raises(AttributeError):
        copy.pieces[0].height = 1.0


def test_triangles_face_outwards() -> None:
    points, faces = sl.Terrain(
        [sl.Box((1, 2, 3), placed(Rotation.random(random_state=3).as_matrix(), (1, 2, 3)))]
    ).triangles()
    a, b, c = (points[faces[:, k]] for k in range(3))
    assert (np.einsum("ij,ij->i", np.cross(b - a, c - a), a - [1, 2, 3]) > 0.0).all()


REFUSED = {
    "friction": (lambda: sl.Ground(friction=-0.1), "friction of a ground is -0.1, expected no negative number"),
    "restitution": (
        lambda: sl.Box((1, 1, 1), restitution=1.5),
        "restitution of a box is 1.5, expected a number from 0",
    ),
    "NaN": (lambda: sl.Stairs(friction=np.nan), "friction of stairs contains NaN"),
    "height": (lambda: sl.Ground(height=np.nan), "height of a ground contains NaN"),
    "normal": (lambda: sl.Ground(normal=(0, 0, 0)), "normal of a ground is .* expected a direction"),
    "size": (lambda: sl.Box((1, 0, 1)), "size of a box is .* expected positive numbers"),
    "steps": (lambda: sl.Stairs(steps=0), "steps of stairs are 0, expected a positive integer"),
    "depth": (lambda: sl.Stairs(depth=-1.0), "depth of stairs is -1.0, expected a positive number"),
    "heights": (lambda: sl.HeightField(np.zeros(3)), r"heights of a height field have shape \(3,\), expected"),
    "infinite heights": (lambda: sl.HeightField([[0, np.inf], [0, 0]]), "are not all finite"),
    "margin": (lambda: sl.Scene(floating("sphere"), None, margin=-1.0), "margin of a scene is -1.0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    make, message = REFUSED[case]
    with pytest.raises(sl.ModelError, match=message):
        make()


def test_no_piece() -> None:
    with pytest.raises(TypeError, match="piece 1 of the terrain is 3, expected Ground"):
        sl.Terrain([sl.Ground(), 3])
    with pytest.raises(TypeError, match="a terrain is 3.0, expected a sequence of pieces"):
        sl.Terrain(3.0)


# ---------------------------------------------------------------------------------------------------- motion

CLUTTER = [
    sl.Ground(),
    sl.Stairs(start=(-0.5, 0, 0), steps=4),
    sl.Ramp(start=(-1.5, -1.5, 0), length=2, height=0.6, yaw=0.4),
    sl.Box((0.5, 0.5, 0.5), placed(Rotation.random(random_state=2).as_matrix(), (0.3, -1.0, 0.2))),
]


@pytest.mark.parametrize("kind", ["sphere", "capsule", "box", "cylinder", "ellipsoid"])
def test_gaps_do_not_jump(kind: str) -> None:
    """Along random motions among stairs, ramps and boxes, down to overlaps of a centimetre."""
    model, margin, steps = floating(kind), 0.05, 2000
    scene, rng, compared = sl.Scene(model, CLUTTER, margin=margin), np.random.default_rng(0), 0
    for _ in range(12):
        ends = rng.uniform([-1, -1.5, 0.05], [0.8, 0.8, 0.5], size=(2, 3))
        turn, share = 2.0 * rng.normal(size=3), np.linspace(0.0, 1.0, steps)[:, None]
        turns = (Rotation.from_rotvec(share * turn) * Rotation.random(random_state=rng)).as_quat()
        q = np.column_stack([ends[0] + share * (ends[1] - ends[0]), turns])
        gap = np.minimum(sl.find_contacts(scene, None, q).gap.min(axis=-1), margin)
        reach = 0.25  # of all of them, from their middle
        moved = (np.linalg.norm(ends[1] - ends[0]) + reach * np.linalg.norm(turn)) / steps
        looked_at = np.minimum(gap[1:], gap[:-1]) > -0.01
        assert np.abs(np.diff(gap))[looked_at].max(initial=0.0) < 2.0 * moved
        compared += (looked_at & (gap[1:] < margin)).sum()
    assert compared > 500


def test_a_large_height_field_is_made_and_asked_in_no_time() -> None:
    field = sl.HeightField(0.02 * np.random.default_rng(0).normal(size=(81, 81)), cell=0.1)
    scene = sl.Scene(floating("sphere"), field)
    assert scene.sizes["npiece"] == 12800
    found = sl.find_contacts(scene, None, upright(np.array([[4.03, 3.98, 0.06], [1.0, 7.0, 5.0]])))
    assert found.mask.any(axis=-1).tolist() == [True, False]
