"""The elementary functions against mpmath, to 2 units in the last place: compiled for single calls, for packets of both
precisions, and interpreted.

Test algorithms carry the numbers: their model is a row of prismatic joints, whose configuration may hold anything finite.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import saltus as sl
from saltus.kernel import (
    Algorithm,
    atan2,
    fabs,
    floor,
    largest,
    ld,
    less,
    lift,
    maximum,
    minimum,
    select,
    sincos,
    sqrt,
    st,
)
from saltus.kernel.interpret import interpret
from saltus.kernel.number import Number
from saltus.kernel.target import target
from saltus.model.tree import algorithm

MODEL = sl.random_model(seed=0, bodies=64, kinds=["prismatic"])
LENGTH = MODEL.nq
ULPS = 2.0


@algorithm(inputs={"q": "nq"}, outputs={"sine": "nq", "cosine": "nq"})
def _sincos(tree, q, w, sine, cosine):
    for k in range(tree.nq):
        s, c = sincos(ld(q, k))
        st(sine, k, s)
        st(cosine, k, c)


@algorithm(inputs={"y": "nv", "x": "nv"}, outputs={"angle": "nv"})
def _atan2(tree, y, x, w, angle):
    for k in range(tree.nv):
        st(angle, k, atan2(ld(y, k), ld(x, k)))


@algorithm(inputs={"q": "nq"}, outputs={"root": "nq"})
def _sqrt(tree, q, w, root):
    for k in range(tree.nq):
        st(root, k, sqrt(ld(q, k)))


@algorithm(
    inputs={"x": "nv", "y": "nv"},
    outputs={"down": "nv", "size": "nv", "smaller": "nv", "larger": "nv", "chosen": "nv", "lifted": "nv"},
)
def _choices(tree, x, y, w, down, size, smaller, larger, chosen, lifted):
    for k in range(tree.nv):
        a, b = ld(x, k), ld(y, k)
        st(down, k, floor(a))
        st(size, k, fabs(a))
        st(smaller, k, minimum(a, b))
        st(larger, k, maximum(a, b))
        st(chosen, k, select(less(a, b), a + 1.0, b * 2.0))
        st(lifted, k, lift(0.25, a))


def batch(function: Algorithm, dtype: Any, *columns: np.ndarray) -> tuple[np.ndarray, ...]:
    """Through packets: all rows at once."""
    answer = function.call(MODEL, tuple(column.astype(dtype) for column in columns))
    return answer if isinstance(answer, tuple) else (answer,)


def one_by_one(function: Algorithm, *columns: np.ndarray) -> tuple[np.ndarray, ...]:
    """Single calls, a row each."""
    rows = [batch(function, np.float64, *row) for row in zip(*columns, strict=True)]
    return tuple(np.array(part) for part in zip(*rows, strict=True))


def interpreted(function: Algorithm, *columns: np.ndarray) -> tuple[np.ndarray, ...]:
    rows = [interpret(function, MODEL, [x.ravel().tolist() for x in row]) for row in zip(*columns, strict=True)]
    return tuple(np.array(part, dtype=float) for part in zip(*rows, strict=True))


WAYS: dict[str, tuple[Any, Callable[..., tuple[np.ndarray, ...]]]] = {
    "one": (np.float64, one_by_one),
    "packets": (np.float64, lambda function, *columns: batch(function, np.float64, *columns)),
    "packets, single": (np.float32, lambda function, *columns: batch(function, np.float32, *columns)),
    "interpreted": (np.float64, interpreted),
}
each_way = pytest.mark.parametrize("way", WAYS)


def rows(points: np.ndarray, dtype: Any) -> np.ndarray:
    """Numbers of this precision in rows of the model's length, in double precision; filled up with the first."""
    points = points.astype(dtype).astype(np.float64).ravel()
    return np.append(points, np.full(-len(points) % LENGTH, points[0])).reshape(-1, LENGTH)


def worst(found: np.ndarray, exact: Callable[..., Any], dtype: Any, *columns: np.ndarray) -> tuple[float, Any]:
    """The largest error in units in the last place of the exact value, and where it is."""
    finest = float(np.finfo(dtype).smallest_subnormal)
    limit, at = 0.0, None
    with mpmath.workdps(60):
        for value, *point in zip(found.ravel().tolist(), *(c.ravel().tolist() for c in columns), strict=True):
            right = exact(*map(mpmath.mpf, point))
            near = abs(float(right))
            unit = max(float(np.spacing(dtype(near))) if near < float(np.finfo(dtype).max) else math.inf, finest)
            error = float(abs(mpmath.mpf(value) - right) / unit) if math.isfinite(value) else math.inf
            if error > limit:
                limit, at = error, point
    return limit, at


def within(found: np.ndarray, exact: Callable[..., Any], slack: np.ndarray, x: np.ndarray) -> np.ndarray:
    """What was found, moved towards the exact values by no more than the slack."""
    right = np.vectorize(lambda point: float(exact(mpmath.mpf(point))))(x)
    return right + np.sign(found - right) * np.maximum(np.abs(found - right) - slack, 0.0)


def last_angle(dtype: Any) -> float:
    return Number(8 * np.dtype(dtype).itemsize).largest_angle


def angles(dtype: Any) -> np.ndarray:
    """Up to 1e5, and to the last one: everywhere, close to multiples of pi / 4, very small, and zero."""
    rng = np.random.default_rng(0)
    last = last_angle(dtype)
    smallest = float(np.finfo(dtype).tiny)
    multiples = np.unique(np.concatenate([np.arange(-40, 41), rng.integers(-127323, 127324, 1500)])) * (np.pi / 4)
    near = multiples.astype(dtype)
    return np.concatenate(
        [
            rng.uniform(-1e5, 1e5, 3000),
            rng.uniform(0.9, 1.0, 300) * last,
            [last, -last],
            rng.uniform(-10.0, 10.0, 3000),
            rng.choice([-1.0, 1.0], 1000) * 10.0 ** rng.uniform(-30, 5, 1000),
            near,
            np.nextafter(near, dtype(np.inf)),
            np.nextafter(near, dtype(-np.inf)),
            [0.0, -0.0, smallest, -smallest, smallest / 4, float(np.finfo(dtype).smallest_subnormal), 1e5, -1e5],
        ]
    )


@each_way
def test_sincos(way: str, record_property: Callable[..., None]) -> None:
    dtype, call = WAYS[way]
    x = rows(angles(dtype), dtype)
    sine, cosine = call(_sincos, x)
    unfused = dtype is np.float32 and target().cpu == "x86-64-v2"  # what scalar.py says of it
    slack = np.where(np.abs(x) > 1e4, 2e-6, 2e-11) * unfused
    for name, found, exact in (("sin", sine, mpmath.sin), ("cos", cosine, mpmath.cos)):
        limit, at = worst(within(found, exact, slack, x) if unfused else found, exact, dtype, x)
        record_property(f"{name}, {way}", limit)
        assert limit <= ULPS, f"{name}({at}): {limit:.3g} units in the last place"


@each_way
def test_sincos_of_larger_angles_is_nan(way: str) -> None:
    dtype, call = WAYS[way]
    last = dtype(last_angle(dtype))
    beyond = np.array([np.nextafter(last, dtype(np.inf)), 2 * last, 1e7, 1e15, 3e15, 1e30, np.finfo(dtype).max])
    x = rows(np.concatenate([beyond, -beyond]), dtype)
    for found in call(_sincos, x):
        assert np.isnan(found).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(), (40,)], ids=str)
def test_configurations_with_larger_angles_are_refused(dtype: Any, shape: tuple[int, ...]) -> None:
    arm = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    q, v = np.zeros((*shape, arm.nq), dtype), np.zeros((*shape, arm.nv), dtype)
    last = dtype(last_angle(dtype))
    q[..., 1] = last
    assert np.isfinite(sl.aba(arm, q, v, v)).all()
    wrong = q.reshape(-1, arm.nq)
    wrong[-1, 1] = -np.nextafter(last, dtype(np.inf))
    where = "aba: q[39]" if shape else "aba: q"
    words = f"{where}: the angle of joint 'revolute_2', q[1], is {wrong[-1, 1]:.9g} rad, expected at most {last:g} in "
    for _ in range(2):
        with pytest.raises(ValueError, match=re.escape(words)):
            sl.aba(arm, q, v, v)


@each_way
def test_sine_and_cosine_are_of_unit_length(way: str) -> None:
    dtype, call = WAYS[way]
    x = rows(np.random.default_rng(1).uniform(-1e5, 1e5, 6400), dtype)
    sine, cosine = (part.astype(float) for part in call(_sincos, x))
    assert np.abs(sine**2 + cosine**2 - 1.0).max() <= 4.0 * float(np.finfo(dtype).eps)


def planar_points(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Points (y, x): all directions and sizes, the axes, the diagonals, where the formula changes, and beside them."""
    rng = np.random.default_rng(2)
    ring = rng.uniform(-np.pi, np.pi, 6000)
    size = 10.0 ** rng.uniform(-15, 15, 6000)
    y, x = [size * np.sin(ring)], [size * np.cos(ring)]
    borders = np.arange(16) * (np.pi / 8)  # tan(pi / 8) = 0.4142 is where `octant` folds
    for turn in (-1e-3, -1e-7, 0.0, 1e-7, 1e-3):
        y.append(np.sin(borders + turn))
        x.append(np.cos(borders + turn))
    small, large = float(np.finfo(dtype).smallest_subnormal), float(np.finfo(dtype).max) / 4
    values = [0.0, small, float(np.finfo(dtype).tiny), 1e-10, 1.0, 1e10, large]
    grid = np.array([(a * p, b * q) for a in values for b in values for p in (1, -1) for q in (1, -1) if a or b])
    return np.concatenate([*y, grid[:, 0]]), np.concatenate([*x, grid[:, 1]])


@each_way
def test_atan2(way: str, record_property: Callable[..., None]) -> None:
    dtype, call = WAYS[way]
    y, x = (rows(part, dtype) for part in planar_points(dtype))
    (found,) = call(_atan2, y, x)
    limit, at = worst(found, mpmath.atan2, dtype, y, x)
    record_property(f"atan2, {way}", limit)
    assert limit <= ULPS, f"atan2{tuple(at or ())}: {limit:.3g} units in the last place"


@each_way
def test_atan2_at_the_origin(way: str) -> None:
    dtype, call = WAYS[way]
    zeros = rows(np.zeros(1), dtype)
    (found,) = call(_atan2, zeros, zeros)
    assert not found.any()


@each_way
def test_atan2_turns_back_sincos(way: str) -> None:
    dtype, call = WAYS[way]
    x = rows(np.random.default_rng(3).uniform(-np.pi, np.pi, 640), dtype)
    sine, cosine = call(_sincos, x)
    (found,) = call(_atan2, sine.astype(float), cosine.astype(float))
    assert np.abs(found - x).max() <= 4.0 * float(np.finfo(dtype).eps) * np.pi


@each_way
def test_sqrt(way: str, record_property: Callable[..., None]) -> None:
    dtype, call = WAYS[way]
    rng = np.random.default_rng(4)
    info = np.finfo(dtype)
    exponents = rng.uniform(np.log10(float(info.tiny)), np.log10(float(info.max)) - 0.1, 2000)
    ends = [0.0, 1.0, 4.0, 2.0, float(info.tiny), float(info.smallest_subnormal), float(info.max)]
    x = rows(np.concatenate([10.0**exponents, rng.uniform(0.0, 4.0, 2000), ends]), dtype)
    (found,) = call(_sqrt, x)
    limit, at = worst(found, mpmath.sqrt, dtype, x)
    record_property(f"sqrt, {way}", limit)
    assert limit <= ULPS, f"sqrt{tuple(at or ())}: {limit:.3g} units in the last place"


@each_way
def test_sqrt_of_a_negative_number_is_nan(way: str) -> None:
    dtype, call = WAYS[way]
    (found,) = call(_sqrt, rows(np.array([-1.0, -1e-30]), dtype))
    assert np.isnan(found).all()


@each_way
def test_choices(way: str) -> None:
    dtype, call = WAYS[way]
    rng = np.random.default_rng(5)
    x = rows(np.concatenate([rng.normal(size=500) * 5.0, [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 1e9, -1e9]]), dtype)
    y = rows(np.concatenate([rng.normal(size=500) * 5.0, [0.0, 0.0, 1.0, 2.0, -2.5, -2.5, 1e8, 1e8]]), dtype)
    down, size, smaller, larger, chosen, lifted = call(_choices, x, y)
    a, b = x.astype(dtype), y.astype(dtype)
    assert np.array_equal(down, np.floor(a))
    assert np.array_equal(size, np.abs(a))
    assert np.array_equal(smaller, np.minimum(a, b))
    assert np.array_equal(larger, np.maximum(a, b))
    assert np.array_equal(chosen, np.where(a < b, a + dtype(1.0), b * dtype(2.0)))
    assert (lifted == 0.25).all()


def test_the_measure_can_fail() -> None:
    """An error of a few units in the last place is seen."""
    x = rows(np.linspace(0.1, 3.0, LENGTH), np.float64)
    wrong = np.sin(x) + 3.0 * np.spacing(np.sin(x))
    assert 2.5 < worst(wrong, mpmath.sin, np.float64, x)[0] < 3.6
    wrong[0, 5] = np.nan
    assert worst(wrong, mpmath.sin, np.float64, x)[0] == np.inf


@algorithm(inputs={"x": "nv", "y": "nv"}, outputs={"smaller": "nv", "larger": "nv"})
def _extremes(tree, x, y, w, smaller, larger):
    for k in range(tree.nv):
        a, b = sqrt(ld(x, k)), sqrt(ld(y, k))
        st(smaller, k, minimum(a, b))
        st(larger, k, maximum(a, b))


@pytest.mark.parametrize("shape", [(), (5,)], ids=["one", "packets"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_extremes_keep_nan_wherever_it_stands(shape: tuple[int, ...], dtype: Any) -> None:
    x, y = np.ones((2, *shape, LENGTH), dtype)
    x[..., ::3], y[..., 1::3] = -1.0, -1.0  # whose roots are NaN
    for found in _extremes.call(MODEL, (x, y)):
        np.testing.assert_array_equal(np.isnan(found), (x < 0) | (y < 0))
        assert (found[(x > 0) & (y > 0)] == 1.0).all()


@algorithm(inputs={"top": "2 nv", "bottom": "2 nv", "sign": "2 nv"}, outputs={"size": "nv", "x": "nv", "answer": "nv"})
def _largest(tree, top, bottom, sign, w, size, x, answer):
    """What no input may be, infinite or NaN, is made here: of quotients by 0."""
    for k in range(tree.nv):
        n = k + tree.nv
        a = fabs(ld(top, k) / ld(bottom, k))
        b = fabs(ld(top, n) / ld(bottom, n))
        a, b = select(less(ld(sign, k), 0.0), -a, a), select(less(ld(sign, n), 0.0), -b, b)
        st(size, k, a)
        st(x, k, b)
        st(answer, k, largest(a, b))


def sizes(dtype: Any) -> list[float]:
    info = np.finfo(dtype)
    small, tiny, most = (float(x) for x in (info.smallest_subnormal, info.tiny, info.max))
    return [0.0, small, 3 * small, tiny - small, tiny, 1e-10, 1.0 - float(info.eps), 1.0, 1e10, most]


def check_largest(way: str, pairs: list[tuple[float, float]]) -> None:
    """Of sizes and numbers, which may be infinite, or NaN with either sign."""
    dtype, call = WAYS[way]
    wanted = np.array(pairs).T
    quotients = np.array([
        np.where(np.isfinite(wanted), wanted, np.where(np.isnan(wanted), 0.0, 1.0)),
        np.where(np.isfinite(wanted), 1.0, 0.0),
        np.where(np.signbit(wanted), -1.0, 1.0),
    ])  # fmt: skip
    columns = [np.stack([rows(part, dtype) for part in (size, x)], axis=-2) for size, x in quotients]
    size, x, answer = call(_largest, *columns)
    for found, right in zip((size, x), wanted, strict=True):
        assert np.array_equal(found, rows(right, dtype), equal_nan=True)
        assert np.array_equal(np.signbit(found), np.signbit(rows(right, dtype)))
    assert np.array_equal(answer, np.maximum(size, np.abs(x)), equal_nan=True)


@each_way
def test_largest(way: str) -> None:
    """Of finite numbers: zeros of both signs, numbers too small to be normal, neighbours, the last ones."""
    some = [*sizes(WAYS[way][0]), *np.random.default_rng(6).exponential(size=20).tolist()]
    check_largest(way, [(a, b * sign) for a in some for b in some for sign in (1.0, -1.0)])


compiled = pytest.mark.parametrize("way", [way for way in WAYS if way != "interpreted"])  # Python divides by no 0


@compiled
def test_largest_of_what_is_not_finite(way: str) -> None:
    """NaN of either sign in place of the number; a size has none (packets would lose it)."""
    some, gone = sizes(WAYS[way][0]), [math.inf, math.nan]
    signed = [sign * x for x in (*some, *gone) for sign in (1.0, -1.0)]
    check_largest(way, [(a, b) for a in (*some, *gone) for b in signed if {a, abs(b)} & {*gone} or b != b])
