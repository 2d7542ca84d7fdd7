"""Activations: what a residual costs, and the slope and curvature of that.

    cost = sum_i w_i phi(r_i),      slope phi'(r),      curvature phi''(r)

Every activation is separable, and symmetric or bounded on two sides; an integer says which. No kernel branches on a number.

| activation | phi(r) | parameters of a row |
|---|---|---|
| `Quadratic` | r^2 / 2 | |
| `Barrier` | (r - low)^2 / 2 below low, (r - high)^2 / 2 above high, else 0 | low, high |
| `SmoothAbs` | sqrt(eps + r^2) | eps |
| `Huber` | r^2 / 2 up to delta, then delta (abs r - delta / 2) | delta |
| `LogBarrier` | -log(r - low) - log(high - r); nearer to a bound than delta, a parabola | low, high, delta |

References: R. Budhiraja, Multi-body locomotion (2019), table 4.1; C. Mastalli et al., Crocoddyl (2020), whose `beta` narrows
bounds about their middle; C. Feller, C. Ebenbauer, Relaxed logarithmic barrier function based MPC (2017), for the parabola.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from saltus.arrays import Array, ArrayLike
from saltus.kernel import Scalar, fabs, kernel, less, select, sqrt
from saltus.model.checks import ModelError, not_negative, spread

QUADRATIC, BARRIER, SMOOTH_ABS, HUBER, LOG_BARRIER = range(5)

BOUNDLESS = 1e30
"""Bounds beyond this are none."""

SQRT2 = math.sqrt(2.0)
LOG2 = math.log(2.0)
DOUBLINGS = tuple((float(n), 2.0**n, 2.0**-n) for n in (64, 32, 16, 8, 4, 2, 1))


class Activated(NamedTuple):
    value: Scalar
    slope: Scalar
    curve: Scalar


@dataclass(frozen=True)
class Quadratic:
    """r^2 / 2, a row times its weight.

    >>> Quadratic(weights=(1.0, 0.0, 4.0)).kind
    0
    """

    weights: ArrayLike = 1.0
    kind: ClassVar[int] = QUADRATIC


@dataclass(frozen=True)
class Barrier:
    """Nothing between two bounds, and half the square of what goes beyond them.

    beta: by how much the bounds are narrowed about their middle, where both are finite: 1 leaves them as they are.
    """

    lower: ArrayLike = -math.inf
    upper: ArrayLike = math.inf
    beta: float = 1.0
    weights: ArrayLike = 1.0
    kind: ClassVar[int] = BARRIER


@dataclass(frozen=True)
class SmoothAbs:
    """sqrt(eps + r^2): as the absolute value, but smooth where that has its corner."""

    eps: float = 1.0
    weights: ArrayLike = 1.0
    kind: ClassVar[int] = SMOOTH_ABS


@dataclass(frozen=True)
class Huber:
    """A parabola up to delta, and straight on from there: what is far off pulls no harder."""

    delta: float = 1.0
    weights: ArrayLike = 1.0
    kind: ClassVar[int] = HUBER


@dataclass(frozen=True)
class LogBarrier:
    """-log of the distance to bounds; from delta on, and beyond the bound, a parabola, so that every residual has a cost."""

    lower: ArrayLike = -math.inf
    upper: ArrayLike = math.inf
    delta: float = 1e-2
    weights: ArrayLike = 1.0
    kind: ClassVar[int] = LOG_BARRIER


Activation: TypeAlias = Quadratic | Barrier | SmoothAbs | Huber | LogBarrier


class Rows(NamedTuple):
    """What kernels see of an activation, a number each row."""

    kind: int
    weight: Array
    low: Array
    high: Array
    size: Array  # eps or delta


def activation_rows(activation: Activation, count: int, what: str) -> Rows:
    """The parameters of an activation of so many rows.

    >>> activation_rows(Barrier(-1.0, 3.0, beta=0.5), 2, "a term").high
    array([2., 2.])
    """
    if not isinstance(activation, Activation):
        raise ModelError(f"{what}: its activation is {activation!r}, expected Quadratic, Barrier, SmoothAbs, Huber ...")
    weight = not_negative(activation.weights, count, f"{what}: weights of its activation")
    low, high, size = np.full(count, -BOUNDLESS), np.full(count, BOUNDLESS), np.ones(count)
    if isinstance(activation, Barrier | LogBarrier):
        low = np.maximum(spread(activation.lower, count, f"{what}: lower bound"), -BOUNDLESS)
        high = np.minimum(spread(activation.upper, count, f"{what}: upper bound"), BOUNDLESS)
        if (low > high).any():
            raise ModelError(f"{what}: bounds are {low.tolist()} and {high.tolist()}, expected none below the other")
    if isinstance(activation, Barrier):
        if not (isinstance(activation.beta, int | float | np.number) and 0.0 <= activation.beta <= 1.0):
            raise ModelError(f"{what}: beta is {activation.beta}, expected 0 to 1")
        both = (low > -BOUNDLESS) & (high < BOUNDLESS)
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        low = np.where(both, middle - activation.beta * half, low)
        high = np.where(both, middle + activation.beta * half, high)
    for name in ("eps", "delta"):
        given = getattr(activation, name, 1.0)
        if not (isinstance(given, int | float | np.number) and 0.0 < given < math.inf):
            raise ModelError(f"{what}: {name} is {given}, expected a positive number")
        if hasattr(activation, name):
            size = np.full(count, float(given))
    return Rows(activation.kind, weight, low, high, size)


@kernel
def activate(kind, r, low, high, size):
    """phi, phi', phi'' of a residual."""
    o = r * 0.0
    one = o + 1.0
    if kind == BARRIER:
        under, over = r - low, r - high
        below, above = less(under, o), less(o, over)
        out = select(below, under, select(above, over, o))
        return Activated(0.5 * out * out, out, select(below, one, select(above, one, o)))
    if kind == SMOOTH_ABS:
        a = sqrt(size + r * r)
        slope = r / a
        return Activated(a, slope, size / (a * a * a))
    if kind == HUBER:
        far = less(size + o, fabs(r))
        edge = select(less(r, o), o - size, o + size)
        value = select(far, edge * (r - 0.5 * edge), 0.5 * r * r)
        return Activated(value, select(far, edge, r), select(far, o, one))
    if kind == LOG_BARRIER:
        left, right = barrier(r - low, size), barrier(high - r, size)
        return Activated(left.value + right.value, left.slope - right.slope, left.curve + right.curve)
    return Activated(0.5 * r * r, r, one)


@kernel
def barrier(z, size):
    """-log z, continued by a parabola below `size`; nothing for a bound that is none."""
    o = z * 0.0
    near, none = less(z, size + o), less(0.5 * BOUNDLESS + o, z)
    held = select(near, size + o, select(none, o + 1.0, z))
    inverse = 1.0 / held
    off = (held - z) * inverse
    slope, curve = -inverse, inverse * inverse
    value = select(near, off + 0.5 * off * off, o) - logarithm(held)
    slope = select(near, slope * (1.0 + off), slope)
    return Activated(select(none, o, value), select(none, o, slope), select(none, o, curve))


@kernel
def logarithm(x):
    """log x, for x from 2^-127 to 2^127: powers of two taken off, then the series of 2 artanh of (m - 1) / (m + 1)."""
    o = x * 0.0
    m, n = x, o
    for count, high, low in DOUBLINGS:
        big, small = less(high + o, m), less(m, low + o)
        m = select(big, m * low, select(small, m * high, m))
        n = select(big, n + count, select(small, n - count, n))
    big, small = less(SQRT2 + o, m), less(m, 1.0 / SQRT2 + o)
    m = select(big, m * 0.5, select(small, m * 2.0, m))
    n = select(big, n + 1.0, select(small, n - 1.0, n))
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = o
    for k in (21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1):
        series = series * z + 1.0 / k
    return n * LOG2 + 2.0 * s * series
