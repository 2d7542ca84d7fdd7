"""Exponential and logarithm of SO(3) and SE(3) on arrays: against Pinocchio, and against matrices of 50 digits."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import saltus as sl
from tests.closeness import assert_close
from tests.spatial.dense import expm, phi, skew

ANGLES = [0.0, 1e-300, 1e-12, 1e-8, 1e-4, 0.01, 0.5, 1.0, 2.0, 3.0, np.pi - 1e-4, np.pi - 1e-9]


def motion(angle: float) -> np.ndarray:
    rng = np.random.default_rng(int(100 * angle))
    axis = rng.normal(size=3)
    return np.concatenate([rng.normal(size=3), angle * axis / np.linalg.norm(axis)])


LOOSE = 1e-10
"""Of Pinocchio, whose series end early, and whose logarithms lose digits near pi."""


@pytest.mark.parametrize("angle", ANGLES)
def test_against_pinocchio(angle: float) -> None:
    m = motion(angle)
    w, X, R = m[3:], pin.exp6(m), pin.exp3(m[3:])
    assert_close(sl.exp3(w), R, 1e-13)
    assert_close(sl.exp6(m), X.homogeneous, 1e-13)
    assert_close(sl.Jexp3(w), pin.Jexp3(w), LOOSE)
    assert_close(sl.Jexp6(m), pin.Jexp6(m), LOOSE)
    assert_close(sl.Jlog3(R), pin.Jlog3(R), LOOSE)
    assert_close(sl.Jlog6(X.homogeneous), pin.Jlog6(X), LOOSE)
    if angle < 3.1:
        assert_close(sl.log3(R), pin.log3(R), LOOSE, 1.0)
        assert_close(sl.log6(X.homogeneous), pin.log6(X).vector, LOOSE, 1.0)


@pytest.mark.parametrize("angle", ANGLES)
def test_logarithms_are_what_exponentials_are_of(angle: float) -> None:
    m = motion(angle)
    assert_close(sl.log3(sl.exp3(m[3:])), m[3:], 1e-14, 1.0)
    assert_close(sl.log6(sl.exp6(m)), m, 1e-13, 1.0)
    assert_close(sl.Jlog3(sl.exp3(m[3:])) @ sl.Jexp3(m[3:]), np.eye(3), 1e-13)
    assert_close(sl.Jlog6(sl.exp6(m)) @ sl.Jexp6(m), np.eye(6), 1e-12)


@pytest.mark.parametrize("angle", [*ANGLES, np.pi, 4.0, 2 * np.pi, 100.0])
def test_exponentials_are_those_of_matrices(angle: float) -> None:
    m = motion(angle)
    right = expm(np.block([[skew(m[3:]), m[:3, None]], [np.zeros((1, 4))]]))
    assert_close(sl.exp6(m), right, 1e-13)
    assert_close(sl.exp3(m[3:]), right[:3, :3], 1e-13)
    W = skew(m[3:])
    moved = np.block([[W, skew(m[:3])], [np.zeros((3, 3)), W]])  # m x
    assert_close(sl.Jexp6(m), phi(-moved), 1e-12)
    assert_close(sl.Jexp3(m[3:]), phi(-W), 1e-12)


@pytest.mark.parametrize(
    "axis", [*np.eye(3), [0.6, 0.8, 0.0], [0.6, 0.0, -0.8], [0.0, 0.6, 0.8], np.full(3, 3.0**-0.5)]
)
def test_half_a_turn(axis: Any) -> None:
    """Either way round."""
    R = 2.0 * np.outer(axis, axis) - np.eye(3)
    assert_close(np.linalg.norm(sl.log3(R)), np.float64(np.pi), 1e-14)
    assert_close(sl.exp3(sl.log3(R)), R, 1e-14)


FUNCTIONS: list[tuple[Callable[..., Any], tuple[int, ...]]] = [
    (sl.exp3, (3,)), (sl.Jexp3, (3,)), (sl.log3, (3, 3)), (sl.Jlog3, (3, 3)),
    (sl.exp6, (6,)), (sl.Jexp6, (6,)), (sl.log6, (4, 4)), (sl.Jlog6, (4, 4)),
]  # fmt: skip


def inputs(shape: tuple[int, ...], leading: tuple[int, ...]) -> Any:
    m = np.random.default_rng(0).normal(size=(*leading, 6))
    return {(3,): m[..., 3:], (6,): m, (3, 3): sl.exp3(m[..., 3:]), (4, 4): sl.exp6(m)}[shape]


@pytest.mark.parametrize(("function", "shape"), FUNCTIONS)
@pytest.mark.parametrize("leading", [(1,), (0,), (21,), (2, 3)])
def test_batches(function: Callable[..., Any], shape: tuple[int, ...], leading: tuple[int, ...]) -> None:
    x = inputs(shape, leading)
    found = function(x)
    for place in np.ndindex(leading):
        assert_close(found[place], function(x[place]), 1e-14)
    assert found.shape == (*leading, *function(inputs(shape, ())).shape)
    out = np.full(found.shape, np.nan)
    assert function(x, out=out) is out and np.array_equal(out, found)
    strided = np.repeat(x, 2, axis=-1)[..., ::2]
    assert np.array_equal(function(strided), found)
    single = function(x.astype(np.float32))
    assert single.dtype == np.float32
    if found.size:
        assert_close(single, found, 1e-5)


@pytest.mark.parametrize(("function", "shape"), FUNCTIONS)
def test_marked(function: Callable[..., Any], shape: tuple[int, ...]) -> None:
    x = inputs(shape, (9,))
    right = function(x)
    x[3], x[5] = np.nan, 1e7
    with pytest.raises(ValueError, match=rf"^{function.__name__}: \w\[3, 0.*\] is nan, expected finite numbers"):
        function(x)
    marked = function(x, on_invalid="mark")
    assert np.isnan(marked[[3, 5]]).all()
    good = np.setdiff1d(np.arange(9), [3, 5])
    assert np.array_equal(marked[good], right[good])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sl.log3(-np.eye(3)), r"^log3: R: off by 1, expected a rotation: R R\^T = 1 with determinant 1"),
        (lambda: sl.log3([np.eye(3), 1.1 * np.eye(3)]), r"^log3: R\[1\]: off by 0\.21, expected a rotation"),
        (lambda: sl.log6(np.diag([1, 1, 1, 2.0])), "^log6: X: off by 1, expected a placement: the last row"),
        (lambda: sl.exp3([1e7, 0, 0]), r"^exp3: w: its angle is 10000000 rad, expected at most 1e\+06 in 64 bits"),
        (lambda: sl.exp6([0, 0]), r"^exp6: m has shape \(2,\), expected \(\.\.\., 6\)"),
        (lambda: sl.Jlog6(np.eye(3)), r"^Jlog6: X has shape \(3, 3\), expected \(\.\.\., 4, 4\)"),
        (lambda: sl.log3(1.0), r"^log3: R has shape \(\), expected \(\.\.\., 3, 3\)"),
    ],
)
def test_what_is_none_is_refused(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_functions_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(sl.exp3)) is sl.exp3
