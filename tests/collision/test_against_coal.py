"""Distances, normals and points of random pairs, against coal's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import coal
import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

import saltus as sl
from tests.collision.bodies import SHAPES, coal_distance, floating, geometry, matrix, placed, poses

FAR = 10.0  # a margin that leaves out nothing
SIZE = (0.5, 0.4, 0.3)
PLACE = placed(Rotation.random(random_state=1).as_matrix(), (0.1, 0.2, 0.3))
NORMAL = np.array([0.3, 0.1, 1.0]) / np.linalg.norm([0.3, 0.1, 1.0])
SHALLOW = 0.02  # less than what is round of every shape
TOLERANCE = 1e-7  # coal's


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("meshes") / "hull.stl"
    points = np.random.default_rng(5).normal(size=(40, 3)) * [0.15, 0.1, 0.05]
    trimesh.Trimesh(vertices=points).convex_hull.export(path)
    return path


def body(kind: str, mesh: Path) -> sl.Model:
    return floating(kind, (1, 1, 1), path=str(mesh)) if kind == "mesh" else floating(kind)


def nearest(found: sl.Contacts) -> tuple[Any, Any, Any]:
    """Gap, normal and point of the nearest contact of each sample."""
    slot = np.argmin(found.gap, axis=-1)[:, None]
    of = [np.take_along_axis(array, slot[..., None], axis=1)[:, 0] for array in (found.normal, found.point)]
    return np.take_along_axis(found.gap, slot, axis=1)[:, 0], *of


@pytest.mark.parametrize("kind", [*SHAPES, "mesh"])
def test_box_of_the_terrain(kind: str, mesh: Path) -> None:
    """Cylinders and ellipsoids as the polytopes that stand for them."""
    model = body(kind, mesh)
    q = poses(1000, PLACE[:3, 3], 0.4)
    found = sl.find_contacts(model, sl.Box(SIZE, PLACE), q, margin=FAR)
    gap, normal, point = nearest(found)
    ours = geometry(model.colliders[0], as_hull=kind in ("cylinder", "ellipsoid"))
    answers = [coal_distance(ours, matrix(each), coal.Box(*SIZE), PLACE) for each in q]
    theirs = np.array([distance for distance, _ in answers])
    known = theirs > -SHALLOW
    assert known.sum() > 500 and (np.abs(theirs[known]) < SHALLOW).sum() > 30
    np.testing.assert_allclose(gap[known], theirs[known], atol=TOLERANCE)
    assert (gap[~known] < -SHALLOW / 2.0).all()  # deeper, it still pushes
    # Normals and points, where there is one closest pair.
    for sample in np.flatnonzero(theirs > 1e-3)[:300]:
        one, other = answers[sample][1].getNearestPoint1(), answers[sample][1].getNearestPoint2()
        lone = (found.gap[sample] < theirs[sample] + 1e-3).sum() == 1
        if lone:
            np.testing.assert_allclose(normal[sample], (one - other) / theirs[sample], atol=2e-3)
            np.testing.assert_allclose(point[sample], (one + other) / 2.0, atol=2e-3)


@pytest.mark.parametrize("kind", [*SHAPES, "mesh"])
def test_half_space(kind: str, mesh: Path) -> None:
    model = body(kind, mesh)
    q = poses(1000, (0.0, 0.0, 0.1), 0.3)
    found = sl.find_contacts(model, sl.Ground(height=0.1, normal=NORMAL), q, margin=FAR)
    plane = coal.Halfspace(NORMAL, float(NORMAL[2] * 0.1))
    theirs = [coal_distance(geometry(model.colliders[0]), matrix(each), plane, np.eye(4))[0] for each in q]
    np.testing.assert_allclose(found.gap.min(axis=-1), theirs, atol=2e-6 if kind == "mesh" else 1e-9)
    np.testing.assert_allclose(found.normal, np.broadcast_to(NORMAL, found.normal.shape), atol=1e-12)
    surface = (found.point @ NORMAL - NORMAL[2] * 0.1) - found.gap / 2.0  # points are in the middle
    np.testing.assert_allclose(surface, 0.0, atol=1e-12)


def test_a_cylinder_stands_on_three_points() -> None:
    q = np.array([0.1, 0.2, 0.15, 0.0, 0.0, 0.0, 1.0])
    found = sl.find_contacts(floating("cylinder"), sl.Ground(), q)
    points = found.point[found.mask] - [0.1, 0.2, 0.0]
    assert len(points) == 3
    np.testing.assert_allclose(points.sum(axis=0), 0.0, atol=1e-12)  # all around
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 0.1, atol=1e-12)


ROUND_PAIRS = [
    ("sphere", "sphere"),
    ("sphere", "capsule"),
    ("capsule", "capsule"),
    ("sphere", "box"),
    ("capsule", "box"),
]


def two(one: str, other: str) -> sl.Model:
    builder = sl.ModelBuilder("two")
    for name, kind in (("one", one), ("other", other)):
        joint = builder.add_joint(name, "free_flyer")
        builder.add_body(joint, mass=1.0, inertia=np.eye(3))
        turned = placed(Rotation.random(random_state=len(kind)).as_matrix(), (0.03, -0.02, 0.05))
        builder.add_collider(joint, kind, SHAPES[kind], turned)
    return builder.build()


@pytest.mark.parametrize(("one", "other"), ROUND_PAIRS, ids=map("-".join, ROUND_PAIRS))
def test_pairs_of_a_robot(one: str, other: str) -> None:
    model = two(one, other)
    q = np.concatenate([poses(1000, (0, 0, 0), 0.15), poses(1000, (0, 0, 0), 0.15, seed=1)], axis=1)
    q[:100, 10:] = q[:100, 3:7]  # some are parallel
    found = sl.find_contacts(model, None, q, margin=FAR)
    shapes = [geometry(shape) for shape in model.colliders]
    at = [[matrix(each[7 * k : 7 * k + 7]) @ shape.placement for each in q] for k, shape in enumerate(model.colliders)]
    theirs = np.array([coal_distance(shapes[0], a, shapes[1], b)[0] for a, b in zip(*at, strict=True)])
    known = theirs > -SHALLOW
    gap, normal, _ = nearest(found)
    np.testing.assert_allclose(gap[known], theirs[known], atol=TOLERANCE)
    distance = sl.self_distance(model, q)
    np.testing.assert_allclose(distance[known], theirs[known], atol=TOLERANCE)
    assert (gap[~known] < 0.0).all() and (distance[~known] < 0.0).all()
    assert (sl.in_collision(model, q) == (distance < 0.0)).all()
    assert (sl.in_collision(model, q, 0.05) == (distance < 0.05)).all()
    # The normal points to the first body: moving that along it adds to the gap.
    pushed = q.copy()
    pushed[:, :3] += 1e-6 * normal * np.where(found.pairs[0][0] == "one", 1.0, -1.0)
    more = sl.self_distance(model, pushed) - distance
    np.testing.assert_allclose(more[theirs > 1e-3], 1e-6, atol=1e-8)


def test_coal_by_name_knows_all_pairs() -> None:
    model = two("box", "cylinder")
    q = np.concatenate([poses(20, (0, 0, 0), 0.3), poses(20, (0, 0, 0), 0.3, seed=1)], axis=1)
    assert np.isinf(sl.self_distance(model, q)).all()
    distance = sl.self_distance(model, q, method="coal")
    shapes = [geometry(shape) for shape in model.colliders]
    for each, ours in zip(q, distance, strict=True):
        at = [matrix(each[7 * k : 7 * k + 7]) @ shape.placement for k, shape in enumerate(model.colliders)]
        assert ours == pytest.approx(coal_distance(shapes[0], at[0], shapes[1], at[1], tolerance=1e-6)[0], abs=1e-5)
    assert (sl.in_collision(model, q, method="coal") == (distance < 0.0)).all()
