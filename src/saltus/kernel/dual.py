"""Dual numbers: a value and its slope along one direction, or along a packet of directions.

    (x + x' e) (y + y' e) = x y + (x' y + x y') e,    e^2 = 0        (forward algorithmic differentiation)

`Dual` is one more number type of the kernels. The slope may be a packet, so that one run differentiates along several
directions; value or slope may themselves be dual (second order).
"""

from __future__ import annotations

import operator
from typing import NamedTuple

from saltus.kernel.scalar import atan2, fabs, floor, less, lift, select, sincos, sqrt
from saltus.kernel.tuples import NUMBER_CLASSES, Scalar, defines


class Dual(NamedTuple):
    value: Scalar
    slope: Scalar


NUMBER_CLASSES.append(Dual)


# fmt: off
@defines(operator.add, Dual, Dual)
def _(a, b): return Dual(a.value + b.value, a.slope + b.slope)
@defines(operator.add, Dual, None)
def _(a, b): return Dual(a.value + b, a.slope)
@defines(operator.add, None, Dual)
def _(a, b): return Dual(a + b.value, b.slope)
@defines(operator.sub, Dual, Dual)
def _(a, b): return Dual(a.value - b.value, a.slope - b.slope)
@defines(operator.sub, Dual, None)
def _(a, b): return Dual(a.value - b, a.slope)
@defines(operator.sub, None, Dual)
def _(a, b): return Dual(a - b.value, -b.slope)
@defines(operator.neg, Dual)
def _(a): return Dual(-a.value, -a.slope)
@defines(operator.mul, Dual, Dual)
def _(a, b): return Dual(a.value * b.value, a.slope * b.value + b.slope * a.value)
@defines(operator.mul, Dual, None)
def _(a, b): return Dual(a.value * b, a.slope * b)
@defines(operator.mul, None, Dual)
def _(a, b): return Dual(a * b.value, b.slope * a)
@defines(operator.truediv, Dual, None)
def _(a, b): return Dual(a.value / b, a.slope / b)
@defines(less, Dual, Dual)
def _(a, b): return less(a.value, b.value)
@defines(less, Dual, None)
def _(a, b): return less(a.value, b)
@defines(less, None, Dual)
def _(a, b): return less(a, b.value)
# fmt: on


@defines(operator.truediv, Dual, Dual)
def _(a, b):
    ratio = a.value / b.value
    return Dual(ratio, (a.slope - b.slope * ratio) / b.value)


@defines(operator.truediv, None, Dual)
def _(a, b):
    ratio = a / b.value
    return Dual(ratio, -b.slope * (ratio / b.value))


@defines(sqrt, Dual)
def _(a):
    root = sqrt(a.value)
    return Dual(root, a.slope * (0.5 / root))


@defines(floor, Dual)
def _(a):
    return Dual(floor(a.value), a.slope * 0.0)


@defines(fabs, Dual)
def _(a):
    return Dual(fabs(a.value), select(less(a.value, 0.0), -a.slope, a.slope))


@defines(sincos, Dual)
def _(a):
    s, c = sincos(a.value)
    return Dual(s, a.slope * c), Dual(c, -(a.slope * s))


@defines(atan2, Dual, Dual)
def _(y, x):
    square = x.value * x.value + y.value * y.value
    return Dual(atan2(y.value, x.value), (y.slope * x.value - x.slope * y.value) / square)


@defines(select, None, Dual, Dual)
def _(condition, a, b):
    return Dual(select(condition, a.value, b.value), select(condition, a.slope, b.slope))


@defines(select, None, Dual, None)
def _(condition, a, b):
    return Dual(select(condition, a.value, b), select(condition, a.slope, a.slope * 0.0))


@defines(select, None, None, Dual)
def _(condition, a, b):
    return Dual(select(condition, a, b.value), select(condition, b.slope * 0.0, b.slope))


@defines(lift, Dual, Dual)
def _(x, like):
    return x


@defines(lift, None, Dual)
def _(x, like):
    return Dual(lift(x, like.value), lift(0.0, like.slope))
