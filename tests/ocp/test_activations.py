"""Activations against what they should be, and their slopes and curvatures against differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

import saltus as sl
from saltus.ocp.activations import (
    Activation,
    Barrier,
    Huber,
    LogBarrier,
    Quadratic,
    SmoothAbs,
    activate,
    activation_rows,
    logarithm,
)

ALL = [
    Quadratic(weights=2.0),
    Barrier(-0.7, 1.3, beta=0.5),
    Barrier(upper=0.4),
    SmoothAbs(0.3),
    Huber(0.6),
    LogBarrier(-2.0, 3.0, delta=0.4),
    LogBarrier(lower=-2.0, delta=0.5),
]


def log_barrier(r: float, low: float, high: float, delta: float) -> float:
    def one(z: float) -> float:
        if not math.isfinite(z):
            return 0.0
        return -math.log(z) if z >= delta else 0.5 * (((z - 2 * delta) / delta) ** 2 - 1.0) - math.log(delta)

    return one(r - low) + one(high - r)


def expected(kind: Activation, r: float) -> float:
    if isinstance(kind, Barrier):
        low, high = kind.lower, kind.upper
        if math.isfinite(low) and math.isfinite(high):
            middle, half = 0.5 * (low + high), 0.5 * (high - low) * kind.beta
            low, high = middle - half, middle + half
        return 0.5 * min(r - low, 0.0) ** 2 + 0.5 * max(r - high, 0.0) ** 2
    if isinstance(kind, SmoothAbs):
        return math.sqrt(kind.eps + r * r)
    if isinstance(kind, Huber):
        return 0.5 * r * r if abs(r) < kind.delta else kind.delta * (abs(r) - 0.5 * kind.delta)
    if isinstance(kind, LogBarrier):
        return log_barrier(r, kind.lower, kind.upper, kind.delta)
    return 0.5 * r * r


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: type(kind).__name__)
def test_value_slope_and_curvature(kind: Activation) -> None:
    table, h = activation_rows(kind, 1, "a term"), 1e-5
    for r in np.random.default_rng(0).uniform(-4.0, 4.0, 200):
        ends = [activate(table.kind, x, table.low[0], table.high[0], table.size[0]) for x in (r - h, r, r + h)]
        assert ends[1].value == pytest.approx(expected(kind, r), rel=1e-14, abs=1e-12)
        assert ends[1].slope == pytest.approx((ends[2].value - ends[0].value) / (2 * h), abs=1e-4)
        if ends[0].curve == pytest.approx(ends[2].curve, rel=1e-2, abs=1e-9):  # not at a corner
            assert ends[1].curve == pytest.approx((ends[2].slope - ends[0].slope) / (2 * h), abs=1e-3, rel=1e-4)


def test_logarithm() -> None:
    for x in [*np.exp(np.random.default_rng(0).uniform(-80.0, 80.0, 300)), 1.0, 2.0, 0.5, 1.0 + 1e-9]:
        assert logarithm(float(x)) == pytest.approx(math.log(x), rel=3e-16, abs=3e-16)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Barrier(1.0, -1.0), "a term: bounds are"),
        (Barrier(0.0, 1.0, beta=2.0), "a term: beta is 2.0"),
        (Huber(0.0), "a term: delta is 0.0"),
        (Quadratic(weights=(1.0, 2.0)), "a term: weights of its activation has shape"),
        (Quadratic(weights=-1.0), "a term: weights of its activation is"),
        ("quadratic", "a term: its activation is 'quadratic'"),
    ],
)
def test_what_is_wrong_is_named(kind: Activation, words: str) -> None:
    with pytest.raises(sl.ModelError, match=words.replace("(", r"\(")):
        activation_rows(kind, 3, "a term")
