"""Four neighbours in memory, added and scaled at once: what dense products inside kernels are made of.

In native code for one sample a quad is one vector register; for every other number type, four numbers.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from saltus.kernel.tuples import Scalar, defines


class Quad(NamedTuple):
    a: Scalar
    b: Scalar
    c: Scalar
    d: Scalar


# fmt: off
@defines(operator.add, Quad, Quad)
def _(x, y): return Quad(x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d)
@defines(operator.sub, Quad, Quad)
def _(x, y): return Quad(x.a - y.a, x.b - y.b, x.c - y.c, x.d - y.d)
@defines(operator.mul, Quad, None)
def _(x, s): return Quad(x.a * s, x.b * s, x.c * s, x.d * s)
@defines(operator.mul, Quad, Quad)
def _(x, y): return Quad(x.a * y.a, x.b * y.b, x.c * y.c, x.d * y.d)
# fmt: on


def quad(array: Any, a: Scalar, b: Scalar, c: Scalar, d: Scalar) -> Any:
    """Four numbers as a quad, of the number type of an array."""
    return Quad(a, b, c, d)


def four(x: Any) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """The numbers of a quad."""
    return x.a, x.b, x.c, x.d
