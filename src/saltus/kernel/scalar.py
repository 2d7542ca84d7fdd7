"""Elementary functions for every number type, without a branch on a number's value.

The body of each function is what a plain number gets when a kernel runs interpreted; `primitives.py` maps the primitive
ones to single instructions and compiles the others from the kernels below. Other number classes (Dual, casadi.SX, an
operation counter) add their own rules with `defines(sqrt, Dual)`.

Accuracy: 2 units in the last place; `atan2` everywhere, `sincos` for |x| <= 1e6 in double and 1e5 in single precision.
Beyond, where the reduction of the argument loses digits, `sincos` is NaN. Without fused multiply-add (x86-64-v2, or
interpreted) it is 2.5 units in double precision; in single 2 units or 2e-11, and 2e-6 from |x| = 1e4 on, where angles
are 1e-3 apart.

References: W. J. Cody, W. Waite, Software Manual for the Elementary Functions (1980): argument reduction;
fdlibm `k_sin.c`, `k_cos.c` and Cephes `sinf.c`, `atan.c`, `atanf.c`: the minimax polynomials.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from typing import Any

from saltus.kernel.number import F32, F64
from saltus.kernel.tuples import Function, Scalar, kernel, lookup

LARGEST_DOUBLE, LARGEST_SINGLE = F64.largest_angle, F32.largest_angle
"""Angles whose quarter turns can be counted and taken off exactly."""

NOTHING = math.nan

ELEMENTARY: list[Callable[..., Any]] = []


def elementary(plain: Function) -> Function:
    """An elementary function: by the rule that is defined for the classes of its arguments, or else by its body."""

    @functools.wraps(plain)
    def dispatch(*values: Scalar) -> Scalar:
        rule = None if all(type(value) is float for value in values) else lookup(dispatch, values)
        return plain(*values) if rule is None else rule(*values)

    ELEMENTARY.append(dispatch)
    return dispatch  # type: ignore[return-value]


@elementary
def sqrt(x: Scalar) -> Scalar:
    return math.sqrt(x) if x >= 0.0 else math.nan


@elementary
def floor(x: Scalar) -> Scalar:
    return float(math.floor(x))


@elementary
def fabs(x: Scalar) -> Scalar:
    return abs(x)


@elementary
def less(x: Scalar, y: Scalar) -> Any:
    """x < y, for `select`. (Not the operator: compiled dual numbers are tuples, which have an order of their own.)"""
    return x < y


@elementary
def select(condition: Any, x: Scalar, y: Scalar) -> Scalar:
    """x where the condition holds, y elsewhere; both are always computed."""
    return x if condition else y


@elementary
def some(condition: Any) -> bool:
    """Whether a condition holds in any lane: what an iteration that all lanes share goes on for."""
    return bool(condition)


@elementary
def is_zero(x: Scalar) -> bool:
    """Whether a number is known to be 0 where code is compiled for one robot, so that what it spoils can be spared; False
    where that is not known: a condition for `if`."""
    return isinstance(x, (int, float)) and x == 0.0


def ticks() -> int:
    """What a clock of the machine shows, which runs on at some rate: for what must end in time."""
    return time.perf_counter_ns()


@elementary
def lift(x: Scalar, like: Scalar) -> Scalar:
    """The constant x as a number of the type of `like`; tuples leaf by leaf."""
    return x


@kernel
def minimum(x, y):
    return select(less(x, y), x, y)


@kernel
def maximum(x, y):
    """NaN if one of them is; compiled, for plain numbers."""
    return select(less(y, x), x, y)


@kernel
def largest(size, x):
    """The larger one of a size, which has no sign (0, or what this gave), and |x|; NaN if one of them is."""
    return maximum(size, fabs(x))


@elementary
def sincos(x: Scalar) -> tuple[Scalar, Scalar]:
    """(sin x, cos x); NaN for |x| beyond `Number.largest_angle`."""
    return sincos_double(x)


@elementary
def atan2(y: Scalar, x: Scalar) -> Scalar:
    """The angle of the point (x, y), in [-pi, pi]; 0 at the origin."""
    return atan2_double(y, x)


@kernel
def quadrant_rotation(k, s, c):
    """(sin, cos) of k quarter turns and an angle whose sine and cosine are s and c."""
    quadrant = k - 4.0 * floor(k * 0.25)
    odd = less(0.5, quadrant - 2.0 * floor(quadrant * 0.5))
    a = select(odd, c, s)
    b = select(odd, s, c)
    return select(less(1.5, quadrant), -a, a), select(less(fabs(quadrant - 1.5), 1.0), -b, b)


@kernel
def sincos_double(x):
    k = floor(x * 0.6366197723675814 + 0.5)
    r = ((x - k * 1.57079632673412561417) - k * 6.07710050630396597660e-11) - k * 2.02226624879595063154e-21
    r = select(less(LARGEST_DOUBLE, fabs(x)), lift(NOTHING, r), r)
    z = r * r
    s = r + r * z * (
        -1.66666666666666324348e-01
        + z * (8.33333333332248946124e-03
        + z * (-1.98412698298579493134e-04
        + z * (2.75573137070700676789e-06
        + z * (-2.50507602534068634195e-08
        + z * 1.58969099521155010221e-10))))
    )  # fmt: skip
    c = (1.0 - 0.5 * z) + z * z * (
        4.16666666666666019037e-02
        + z * (-1.38888888888741095749e-03
        + z * (2.48015872894767294178e-05
        + z * (-2.75573143513906633035e-07
        + z * (2.08757232129817482790e-09
        - z * 1.13596475577881948265e-11))))
    )  # fmt: skip
    return quadrant_rotation(k, s, c)


@kernel
def sincos_single(x):
    k = floor(x * 0.63661975 + 0.5)
    r = (((x - k * 1.5703125) - k * 4.8375129699707031e-4) - k * 7.5497899548918821e-8) + k * 1.7151245100058819e-15
    r = select(less(LARGEST_SINGLE, fabs(x)), lift(NOTHING, r), r)
    z = r * r
    s = r + r * z * (-1.6666654611e-1 + z * (8.3321608736e-3 - z * 1.9515295891e-4))
    c = (1.0 - 0.5 * z) + z * z * (4.166664568298827e-2 + z * (-1.388731625493765e-3 + z * 2.443315711809948e-5))
    return quadrant_rotation(k, s, c)


@kernel
def octant(y, x):
    """The ratio t and offset, in eighths of a turn, with atan2(|y|, |x|) = +-(offset * pi / 4 + atan t), |t| <= 0.42."""
    a, b = fabs(y), fabs(x)
    steep = less(b, a)
    low, high = select(steep, b, a), select(steep, a, b)
    middle = less(0.41421356237309503 * high, low)
    top = select(middle, low - high, low)
    bottom = select(middle, low + high, high)
    t = top / select(less(0.0, bottom), bottom, lift(1.0, bottom))
    return t, middle, steep


@kernel
def unfold(angle, half, half_tail, quarter, quarter_tail, middle, steep, y, x):
    """Undo the folding of `octant`. The constants are pi/2 and pi/4, each with its rounding error."""
    angle = select(middle, quarter + (angle + quarter_tail), angle)
    angle = select(steep, half - (angle - half_tail), angle)
    angle = select(less(x, 0.0), 2.0 * half - (angle - 2.0 * half_tail), angle)
    return select(less(y, 0.0), -angle, angle)


@kernel
def atan2_double(y, x):
    t, middle, steep = octant(y, x)
    z = t * t
    p = z * (-6.485021904942025371773e1
        + z * (-1.228866684490136173410e2
        + z * (-7.500855792314704667340e1
        + z * (-1.615753718733365076637e1
        + z * -8.750608600031904122785e-1))))  # fmt: skip
    q = (1.945506571482613964425e2
        + z * (4.853903996359136964868e2
        + z * (4.328810604912902668951e2
        + z * (1.650270098316988542046e2
        + z * (2.485846490142306297962e1 + z)))))  # fmt: skip
    angle = t + t * (p / q)
    return unfold(angle, 1.5707963267948966, 6.123233995736766e-17, 0.7853981633974483, 3.061616997868383e-17,
                  middle, steep, y, x)  # fmt: skip


@kernel
def atan2_single(y, x):
    t, middle, steep = octant(y, x)
    z = t * t
    angle = t + t * z * (-3.33329491539e-1 + z * (1.99777106478e-1 + z * (-1.38776856032e-1 + z * 8.05374449538e-2)))
    return unfold(angle, 1.5707964, -4.371139e-08, 0.7853982, -2.1855695e-08, middle, steep, y, x)
