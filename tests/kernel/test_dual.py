"""Dual numbers: values and slopes of small kernels against mpmath, interpreted and compiled; second derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import saltus as sl
from saltus.dynamics.rnea import _rnea
from saltus.kernel import Dual, atan2, fabs, floor, largest, ld, less, lift, maximum, minimum, select, sincos, sqrt, st
from saltus.kernel.forward import push_forward
from saltus.kernel.target import packet
from saltus.model.manifold import _integrate
from saltus.model.tree import algorithm
from tests.closeness import assert_close
from tests.generators import random_state

X, Y, DX, DY = 1.3, -0.7, 0.4, 2.1

# Every rule of dual numbers, alone and mixed with constants on either side: ours, and in mpmath.
CASES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "x + y": (lambda x, y: x + y, lambda x, y: x + y),
    "x + c": (lambda x, y: x + 2.0, lambda x, y: x + 2),
    "c + x": (lambda x, y: 2.0 + x, lambda x, y: 2 + x),
    "x - y": (lambda x, y: x - y, lambda x, y: x - y),
    "x - c": (lambda x, y: x - 2.0, lambda x, y: x - 2),
    "c - x": (lambda x, y: 2.0 - x, lambda x, y: 2 - x),
    "-x": (lambda x, y: -x, lambda x, y: -x),
    "x y": (lambda x, y: x * y, lambda x, y: x * y),
    "x c": (lambda x, y: x * 2.5, lambda x, y: x * 2.5),
    "c x": (lambda x, y: 2.5 * x, lambda x, y: 2.5 * x),
    "x / y": (lambda x, y: x / y, lambda x, y: x / y),
    "x / c": (lambda x, y: x / 2.5, lambda x, y: x / 2.5),
    "c / x": (lambda x, y: 2.5 / x, lambda x, y: 2.5 / x),
    "sqrt": (lambda x, y: sqrt(x * x + y * y), lambda x, y: mpmath.sqrt(x * x + y * y)),
    "sin": (lambda x, y: sincos(x * y)[0], lambda x, y: mpmath.sin(x * y)),
    "cos": (lambda x, y: sincos(x * y)[1], lambda x, y: mpmath.cos(x * y)),
    "atan2": (lambda x, y: atan2(y, x), lambda x, y: mpmath.atan2(y, x)),
    "atan2, second quadrant": (atan2, mpmath.atan2),
    "fabs, positive": (lambda x, y: fabs(x), lambda x, y: x),
    "fabs, negative": (lambda x, y: fabs(y), lambda x, y: -y),
    "floor": (lambda x, y: floor(x) * y, lambda x, y: y),
    "select, first": (lambda x, y: select(less(y, x), x * x, y), lambda x, y: x * x),
    "select, second": (lambda x, y: select(less(x, y), x * x, y), lambda x, y: y),
    "select, constant first": (lambda x, y: select(less(y, x), 3.0, y), lambda x, y: mpmath.mpf(3)),
    "select, constant second": (lambda x, y: select(less(y, 0.0), y, 3.0), lambda x, y: y),
    "select by a constant": (lambda x, y: select(less(2.0, x), x, y), lambda x, y: y),
    "minimum": (minimum, lambda x, y: y),
    "maximum": (maximum, lambda x, y: x),
    "largest, the size": (largest, lambda x, y: x),
    "largest, the number": (lambda x, y: largest(x * 0.5, y), lambda x, y: -y),
    "largest, constant": (lambda x, y: largest(0.5, y), lambda x, y: -y),
    "lift": (lambda x, y: lift(2.0, x) * y, lambda x, y: 2 * y),
    "lift of a number": (lambda x, y: lift(x, y) * y, lambda x, y: x * y),
    "all together": (
        lambda x, y: atan2(sqrt(x / (y * y)), sincos(x)[1] - 2.0) / (1.0 + x * x),
        lambda x, y: mpmath.atan2(mpmath.sqrt(x / (y * y)), mpmath.cos(x) - 2) / (1 + x * x),
    ),
}
each_case = pytest.mark.parametrize("name", CASES)


def exact(function: Callable[..., Any], along: int) -> float:
    """The derivative of this order along (DX, DY) at (X, Y), with 40 digits."""
    with mpmath.workdps(40):
        return float(mpmath.diff(lambda t: mpmath.mpf(function(X + t * DX, Y + t * DY)), 0, along))


@each_case
def test_value_and_slope(name: str) -> None:
    ours, right = CASES[name]
    result = ours(Dual(X, DX), Dual(Y, DY))
    assert isinstance(result, Dual) and isinstance(result.value, float) and isinstance(result.slope, float)
    assert result.value == pytest.approx(float(right(mpmath.mpf(X), mpmath.mpf(Y))), rel=4e-15)
    assert result.slope == pytest.approx(exact(right, 1), rel=4e-15, abs=1e-15)


@each_case
def test_second_derivative(name: str) -> None:
    """A dual number of dual numbers: the slope of the slope along the same direction."""
    ours, right = CASES[name]
    result = ours(Dual(Dual(X, DX), Dual(DX, 0.0)), Dual(Dual(Y, DY), Dual(DY, 0.0)))
    assert result.value.value == pytest.approx(float(right(mpmath.mpf(X), mpmath.mpf(Y))), rel=4e-15)
    assert result.value.slope == pytest.approx(exact(right, 1), rel=1e-14, abs=1e-15)
    assert result.slope.value == pytest.approx(exact(right, 1), rel=1e-14, abs=1e-15)
    assert result.slope.slope == pytest.approx(exact(right, 2), rel=1e-13, abs=1e-14)


@algorithm(inputs={"x": "nv", "y": "nv"}, outputs={"a": "nv", "b": "nv", "c": "nv", "d": "nv"})
def _mixture(tree, x, y, w, a, b, c, d):
    for k in range(tree.nv):
        p, q = ld(x, k), ld(y, k)
        s, t = sincos(p * q)
        st(a, k, (s / (2.0 + p * p) - q) / 3.0 + 1.0 / (p - 5.0))
        st(b, k, select(less(p, q), sqrt(p * p + t * t + 1.0), -p * 2.0))
        st(c, k, atan2(p + s, q) + fabs(p) * maximum(p, q))
        st(d, k, minimum(p, 0.5) * lift(2.0, p) + (1.0 - t))


def mixture(x: Any, y: Any) -> list[Any]:
    s, t = np.sin(x * y), np.cos(x * y)
    return [
        (s / (2.0 + x * x) - y) / 3.0 + 1.0 / (x - 5.0),
        np.where(x < y, np.sqrt(x * x + t * t + 1.0), -x * 2.0),
        np.arctan2(x + s, y) + np.abs(x) * np.maximum(x, y),
        np.minimum(x, 0.5) * 2.0 + (1.0 - t),
    ]


def test_compiled_with_packets_of_slopes() -> None:
    """More directions than lanes, and a ragged end."""
    model = sl.random_model(seed=0, bodies=7, kinds=["prismatic"])
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, model.nv))
    directions = packet(64).width + 3
    dx, dy = rng.normal(size=(2, directions, model.nv))
    values, slopes = push_forward(_mixture, model, (x, y), (dx, dy))
    for value, right in zip(values, mixture(x, y), strict=True):
        assert_close(value, right, 1e-14)
    h = 1e-6
    for k in range(4):
        central = (mixture(x + h * dx, y + h * dy)[k] - mixture(x - h * dx, y - h * dy)[k]) / (2 * h)
        assert_close(slopes[k], central, 1e-8)


@pytest.mark.slow
def test_derivatives_of_algorithms() -> None:
    """Along v and a, of inverse dynamics and of a step on the manifold, against central differences."""
    model = sl.random_model(seed=21, bodies=10)
    s, h = random_state(model, 1), 1e-6
    directions = np.random.default_rng(2).normal(size=(6, model.nv))
    (tau,), (slopes,) = push_forward(_rnea, model, (s.q, s.v, s.a), (None, directions, 2.0 * directions))
    assert_close(tau, sl.rnea(model, s.q, s.v, s.a), 1e-12)
    ahead, behind = (sl.rnea(model, s.q, s.v + e * directions, s.a + 2.0 * e * directions) for e in (h, -h))
    assert_close(slopes, (ahead - behind) / (2 * h), 1e-7)
    for v in (s.v, 0.0 * s.v):  # at zero every series is in use
        (q,), (slopes,) = push_forward(_integrate, model, (s.q, v), (None, directions))
        assert_close(q, sl.integrate(model, s.q, v), 1e-12)
        ahead, behind = (sl.integrate(model, s.q, v + e * directions) for e in (h, -h))
        assert_close(slopes, (ahead - behind) / (2 * h), 1e-7)


def test_batches_and_what_is_wrong_with_slopes() -> None:
    model = sl.random_model(seed=0, bodies=2)
    q, v = sl.random_configuration(model, 1, 3), np.random.default_rng(2).normal(size=(3, model.nv))
    (_,), (slopes,) = push_forward(_rnea, model, (q, v, v[0]), (None, v[:, None], None))
    for k in range(3):
        (_,), (one,) = push_forward(_rnea, model, (q[k], v[k], v[0]), (None, v[k, None], None))
        assert np.array_equal(slopes[k], one)
    with pytest.raises(ValueError, match="rnea: the slopes of v have shape"):
        push_forward(_rnea, model, (q, v, v), (None, q[:, None], None))
    with pytest.raises(ValueError, match=r"rnea: the slope of v\[0, 1, 0\] is nan"):
        wrong = np.zeros((3, 2, model.nv))
        wrong[0, 1, 0] = np.nan
        push_forward(_rnea, model, (q, v, v), (None, wrong, None))
