"""Contacts are the same for one robot, in packets of both precisions, on dual numbers, and far from the origin; they compile
for GPUs."""

from __future__ import annotations

import re

import numpy as np
import pytest

import saltus as sl
from saltus.collision.queries import _contacts, _self_distance
from saltus.kernel import F32, F64, Algorithm
from saltus.kernel.cuda import compile_ptx
from saltus.kernel.forward import push_forward
from tests.collision.bodies import placed

HEIGHTS = 0.03 * np.random.default_rng(1).normal(size=(5, 5))
TERRAIN = [
    sl.Ground(),
    sl.Stairs(start=(0.3, 0, 0), steps=3),
    sl.HeightField(HEIGHTS, cell=0.2, origin=(-1.2, -0.4, 0.1)),
]


def walker() -> sl.Model:
    """Every kind of collider, on joints whose coordinates are numbers without conditions."""
    builder = sl.ModelBuilder("walker")
    last = 0
    shapes = [
        ("sphere", (0.1,)), ("capsule", (0.06, 0.3)), ("box", (0.3, 0.2, 0.1)), ("cylinder", (0.1, 0.2)),
        ("ellipsoid", (0.1, 0.15, 0.08)), ("capsule", (0.05, 0.2)), ("sphere", (0.08,)),
    ]  # fmt: skip
    last = builder.add_joint("root", "translation")
    for k, (kind, size) in enumerate(shapes):
        last = builder.add_joint(f"hinge_{k}", "revolute", last, placed(position=(0.12, 0.0, 0.02)), np.eye(3)[k % 3])
        builder.add_body(last, mass=1.0, inertia=np.eye(3))
        builder.add_collider(last, kind, size, name=f"{kind}_{k}")
    return builder.build()


def configurations(count: int) -> np.ndarray:
    rng = np.random.default_rng(2)
    q = rng.uniform(-1.0, 1.0, size=(count, walker().nq))
    q[:, 0] = rng.uniform(-1.3, 0.5, size=count)
    q[:, 2] = rng.uniform(0.05, 0.4, size=count)
    return q


SCENE = sl.Scene(walker(), TERRAIN, margin=0.03)


def test_packets_are_single_samples() -> None:
    q = configurations(203)
    many = sl.find_contacts(SCENE, None, q)
    assert many.mask.any(axis=0).mean() > 0.8 and 0.05 < many.mask.mean() < 0.9
    slots = slots_of_pairs()
    for sample in range(len(q)):
        one = sl.find_contacts(SCENE, None, q[sample])
        for own in slots:  # those that are shared may have changed places
            order, theirs = np.argsort(one.gap[own]), np.argsort(many.gap[sample][own])
            np.testing.assert_allclose(one.gap[own][order], many.gap[sample][own][theirs], atol=1e-9)


def slots_of_pairs() -> list[list[int]]:
    """The slots of each pair of names."""
    found: dict[tuple[str, str], list[int]] = {}
    for k, pair in enumerate(SCENE.slots):
        found.setdefault(pair, []).append(k)
    return list(found.values())


def test_normals_are_unit_also_where_nothing_is_near() -> None:
    found = sl.find_contacts(SCENE, None, configurations(50))
    np.testing.assert_allclose(np.linalg.norm(found.normal, axis=-1), 1.0, atol=1e-12)
    assert np.isfinite(found.point).all() and np.isfinite(found.friction).all()


def test_single_precision() -> None:
    """The nearest contact with each pair: which of several is first in a slot may differ."""
    q = configurations(200).astype(np.float32)
    double, single = (sl.find_contacts(SCENE, None, each) for each in (q.astype(np.float64), q))
    assert single.gap.dtype == np.float32
    for slots in slots_of_pairs():
        a, b = (found.gap[:, slots].min(axis=-1) for found in (double, single))
        near = np.isfinite(a) & (a < 0.029)
        np.testing.assert_allclose(b[near], a[near], atol=2e-5)


def test_far_from_the_origin() -> None:
    """About a point near the robot, single precision loses nothing of a gap a kilometre away, on a half-space and a box."""
    builder = sl.ModelBuilder("ball")
    builder.add_body(builder.add_joint("root", "free_flyer"), mass=1.0, inertia=np.eye(3))
    builder.add_body(builder.add_joint("arm", "revolute", 1, placed(position=(0, 0, 0.3))), mass=1.0, inertia=np.eye(3))
    builder.add_collider(2, "sphere", (0.0625,))
    q = np.array([1024.0, 512.0, -0.25, 0.0, 0.0, 0.0, 1.0, 0.0], np.float32)
    box = sl.Box((4.0, 4.0, 1.0), placed(position=(1024.0, 512.0, -0.5)))
    for terrain in (sl.Ground(), box):
        found = sl.find_contacts(builder.build(), terrain, q)
        assert found.gap[0] == pytest.approx(0.05 - 0.0625, abs=1e-7)


def test_slopes_of_gaps_are_those_of_differences() -> None:
    """Where a contact stays what it is."""
    q, step = configurations(60), 1e-6
    slopes = np.broadcast_to(np.eye(q.shape[1]), (len(q), q.shape[1], q.shape[1]))
    (_, normal, gap, *_), (_, _, rates, *_) = push_forward(_contacts, SCENE, (q,), (slopes,))
    compared = 0
    for k in range(q.shape[1]):
        apart = step * np.eye(q.shape[1])[k]
        low, high = (sl.find_contacts(SCENE, None, q + side * apart) for side in (-1.0, 1.0))
        here = sl.find_contacts(SCENE, None, q)
        stays = low.mask & here.mask & high.mask
        for found in (low, high):  # slots that are shared may have changed places
            stays &= np.linalg.norm(found.point - here.point, axis=-1) < 1e-4
            stays &= np.linalg.norm(found.normal - here.normal, axis=-1) < 1e-4
        found = (high.gap - low.gap)[stays] / (2.0 * step)
        compared += stays.sum()
        np.testing.assert_allclose(rates[:, k][stays], found, atol=2e-5)
    assert compared > 5000
    # Along x, y, z all of the robot moves: the slope of the nearest contact is its normal.
    for own in slots_of_pairs():
        if SCENE.slots[own[0]][1] == "":
            nearest = np.array(own)[np.argmin(gap[:, own], axis=-1)]
            least = gap[np.arange(len(q)), nearest]
            samples = np.flatnonzero((least > 0.0) & (least < 1.0))
            nearest = nearest[samples]
            np.testing.assert_allclose(rates[samples, :3, nearest], normal[samples, nearest], atol=1e-9)


@pytest.mark.parametrize("number", [F64, F32], ids=["f64", "f32"])
@pytest.mark.parametrize("algorithm", [_contacts, _self_distance], ids=["contacts", "self_distance"])
def test_compiles_for_gpus(algorithm: Algorithm, number: sl.kernel.Number) -> None:
    """Nothing is left to call or to keep on a stack, and single precision stays single."""
    ptx = compile_ptx(algorithm, number, len(algorithm.inputs))
    assert ptx.count(".visible .entry kernel(") == 1
    assert not re.search(r"\.local\b|\bld\.b64|\bst\.b|\bcall\b|\.extern", ptx)
    products = [line for line in ptx.splitlines() if "fma" in line or "mul.rn" in line]
    assert products and (number is F64 or not any(".f64" in line for line in products))
