"""`out=`: what it may not be, and what is in it after an input was refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.dynamics.frame import FRAME, _frame_jacobian_dot, select

TREE = sl.random_model(seed=8, bodies=9)
each_shape = pytest.mark.parametrize("shape", [(), (5,), (700,)], ids=str)


def jacobians(shape: tuple[int, ...], out: Any = None) -> Any:
    """Of a frame, and its rate: two results of one shape."""
    q = np.broadcast_to(TREE.neutral(), (*shape, TREE.nq)).copy()
    return _frame_jacobian_dot.call(TREE, (select(TREE, FRAME, 5, "local"), q, np.ones((*shape, TREE.nv))), out)


@each_shape
def test_two_results_in_one_memory(shape: tuple[int, ...]) -> None:
    """By the long way, and by the short one once it is there."""
    right = jacobians(shape)
    whole = np.zeros((2, *shape, 6, TREE.nv))
    for one, other in ((whole[0], whole[0]), (whole[0], whole[0].view()), (whole[1], whole[1])):
        for _ in range(2):
            with pytest.raises(ValueError, match="out for dJ lies in the memory of J, expected memory of its own"):
                jacobians(shape, (one, other))
    numbers = np.zeros(2 * whole[0].size)
    half = tuple(numbers[start : start + whole[0].size].reshape(whole[0].shape) for start in (0, whole[0].size - 1))
    with pytest.raises(ValueError, match="out for dJ lies in the memory of J"):
        jacobians(shape, half)
    for _ in range(2):
        assert all(map(np.array_equal, jacobians(shape, (whole[0], whole[1])), right))  # side by side is apart


@each_shape
@pytest.mark.parametrize("wrong", ["nan", "quaternion", "angle"])
def test_refused_input_leaves_nan(shape: tuple[int, ...], wrong: str) -> None:
    q, v = np.broadcast_to(TREE.neutral(), (*shape, TREE.nq)).copy(), np.ones((*shape, TREE.nv))
    right = sl.aba(TREE, q, v, v)
    revolute = next(joint for joint in TREE.joints if joint.kind == sl.JointKind.REVOLUTE)
    quaternion = next(joint for joint in TREE.joints if joint.kind == sl.JointKind.SPHERICAL)
    worse = q.copy()
    if wrong == "nan":
        worse[..., 0] = np.nan
    elif wrong == "quaternion":
        worse[..., quaternion.iq] += 1.0
    else:
        worse[..., revolute.iq] = 2e6
    for _ in range(2):
        out = np.zeros_like(v)
        with pytest.raises(ValueError):
            sl.aba(TREE, worse, v, v, out=out)
        assert np.isnan(out).all()
        assert np.array_equal(sl.aba(TREE, q, v, v, out=out), right)


@each_shape
def test_refused_input_that_is_the_result_too(shape: tuple[int, ...]) -> None:
    """What was wrong with it is told from what it was."""
    q = np.broadcast_to(TREE.neutral(), (*shape, TREE.nq)).copy()
    quaternion = next(joint for joint in TREE.joints if joint.kind == sl.JointKind.SPHERICAL)
    q[..., quaternion.iq + 3] = 2.0
    with pytest.raises(ValueError, match=f"the quaternion of joint {quaternion.name!r}.* has norm 2, expected 1"):
        sl.integrate(TREE, q, np.zeros((*shape, TREE.nv)), out=q)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("count", [1, 2, 9, 700])
def test_a_part_of_a_larger_array(count: int, dtype: Any) -> None:
    """Samples with room between them, symmetric matrices, several leading axes: nothing is written in between."""
    q = sl.random_configuration(TREE, 1, count).astype(dtype)
    right = sl.crba(TREE, q)
    for room in (
        np.full((count, 3, TREE.nv, TREE.nv), 7.0, dtype)[:, 1],
        np.full((3 * count, TREE.nv, TREE.nv), 7.0, dtype)[::3],
        np.full((count, TREE.nv + 2, TREE.nv), 7.0, dtype)[:, 2:],
    ):
        whole = room.base
        before = (whole == 7.0).sum()
        assert sl.crba(TREE, q, out=room) is room
        np.testing.assert_array_equal(room, right)
        kept = whole.copy()
        room[...] = 7.0
        assert (whole == 7.0).all() and (kept != 7.0).sum() <= before - (whole.size - right.size)
    two = np.full((2, count, 5, TREE.nv, TREE.nv), 7.0, dtype)
    np.testing.assert_array_equal(sl.crba(TREE, np.stack([q, q]), out=two[:, :, 4]), np.stack([right, right]))
    assert (two[:, :, :4] == 7.0).all()
