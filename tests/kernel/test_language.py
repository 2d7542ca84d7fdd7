"""The kernel language: a compiled kernel does what Python says it does, for one sample, packets of both precisions and dual
numbers.

The kernels are interpreted beside. They take integers `n`, which are the same in all lanes, and numbers `v`; `y` is 0
before.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from saltus.kernel import (
    Algorithm,
    Dual,
    Layout,
    Scalar,
    defines,
    fabs,
    floor,
    kernel,
    largest,
    ld,
    less,
    lift,
    maximum,
    minimum,
    select,
    some,
    sqrt,
    st,
    tail,
    zero,
)
from saltus.kernel.forward import push_forward
from saltus.kernel.tuples import DEFINITIONS
from saltus.model.tree import algorithm
from saltus.spatial.algebra import Vec3
from tests.kernel.language import INTEGERS, MODEL, NUMBERS, interpreted

declared = algorithm(
    inputs={"n": "6 int", "v": "6"}, outputs={"y": "12"}, work=Layout(nv={"memory": None, "point": Vec3})
)
CASES: list[Algorithm] = []


def case(function: Callable[..., Any]) -> Callable[..., Any]:
    body = kernel(function)

    def run(tree, n, v, w, y):
        for k in range(12):
            y[k] = 0.0
        body(tree, n, v, w, y)

    run.__name__ = function.__name__
    CASES.append(declared(run))
    return function


# ---------------------------------------------------------------------------------------------------- loops


@case
def _nested_loops(tree, n, v, w, y):
    for i in range(3):
        total = zero(v)
        for j in range(i, 6):
            for k in range(j):
                total = total + (k - i) * ld(v, j)
        st(y, i, total)


@case
def _ranges(tree, n, v, w, y):
    ends = (6, 0, -2)
    for k in range(4):
        y[0] += k * ld(v, k)
    for k in range(n[0], n[3]):
        y[1] += 1.0 + k
    for k in range(n[3], n[0], -1):
        y[2] += 1.0 + k
    for k in range(-3, 9, 4):
        y[3] += k * k
    for k in range(5, -6, -3):
        y[4] += 10 * k
    for k in range(*ends):
        y[5] += ld(v, k - 1)
    for step in (n[2] + 2, -n[4] - 8):  # whether they go up or down is not known
        for k in range(n[1], n[5], step):
            y[6] += k + 0.5


@case
def _index_bound_again(tree, n, v, w, y):
    for k in range(4):
        k = 2 * k + 1
        st(y, k, ld(v, 0) + k)


@case
def _loops_that_do_not_run(tree, n, v, w, y):
    x, count = ld(v, 0), 7
    for k in range(0):
        x, count = x * 2.0, count + k
    for k in range(3, n[2] - 20):
        x, count = x * 3.0, count + k
    for k in range(5, 5, -1):
        count = k
    while n[0] > 1000:
        count = 0
    while False:
        count = "nothing of this is compiled" + 1
    for _ in ():
        count = "nor of this" + 1
    st(y, 0, x)
    st(y, 1, count)


@case
def _break_and_continue(tree, n, v, w, y):
    found, odd = -1, 0
    for k in range(6):
        if n[k] % 2:
            odd += 1
            continue
        if n[k] > 1:
            found = k
            break
        st(y, k, ld(v, k))
    st(y, 6, found)
    st(y, 7, odd)


@case
def _while_loops(tree, n, v, w, y):
    k, steps, x = n[3] * 7 + 1, 0, zero(v)
    while k != 1 and steps < 40:
        j = 0
        while j < 3:
            x, j = x + ld(v, j) / (j + 1.0), j + 1
        k = k // 2 if k % 2 == 0 else 3 * k + 1
        steps += 1
    while k:
        k = 0
    st(y, 0, steps)
    st(y, 1, x)
    st(y, 2, k)


@case
def _while_true(tree, n, v, w, y):
    """What it binds is bound after it: it ends by `break` alone."""
    k = 0
    while True:
        x = ld(v, k) + k
        if n[k] < 0 or k == 5:
            break
        k = k + 1
    st(y, 0, x)
    while True:
        if k > 100:
            st(y, 1, k)
            return
        k = k * 2 + 1


@case
def _unrolled(tree, n, v, w, y):
    """Loops over tuples: `break` and `continue` depend on what is known, and on what is not."""
    total, last = zero(v), 0
    for k, factor, function in ((0, 2.0, fabs), (3, 0.5, floor), (4, -1.0, sqrt), (5, 1, twice)):
        last = k
        if n[k] == 0:
            continue
        if factor == -1.0:
            continue
        if n[k] > 6:
            total = total - 1.0
            break
        total = total + factor * function(ld(v, k))
    st(y, 0, total)
    st(y, 1, last + k)
    for array in (v, tail(v, 3)):
        y[2] += array[0] + ld(array, 1)
    for k in (1, 2, 3):
        st(y, 4, k)
        break
    st(y, 3, k)


@case
def _unrolled_within_loops(tree, n, v, w, y):
    for i in range(6):
        for j in (1, 2, 3):
            if n[i] == j:
                break
            for k in range(j):
                if k == n[i] - 4:
                    continue
                y[i] += k + ld(v, j)
            if i == 4:
                return


@case
def _carried(tree, n, v, w, y):
    """Numbers, integers, conditions, tuples with and without names, those within others."""
    a, b, x, even = 0, 1, ld(v, 0), True
    p, pair, nested = Vec3(ld(v, 0), ld(v, 1), ld(v, 2)), (0, 1), (1, (ld(v, 4), 2))
    for k in range(5):
        a, b = b, a + b
        x, even = 0.5 * x - b, not even
        p = Vec3(p.y, p.z, p.x + x)
        pair = pair[1], pair[0] + pair[1]
        nested = nested[1][1] + k, (nested[1][0] * 0.5, nested[0])
    st(y, 0, (a, b, x, p))
    st(y, 6, (*pair, nested, 1 if even else 2))


@case
def _sums_from_literals(tree, n, v, w, y):
    """A literal becomes what is added to it: a number, in all lanes, with a slope."""
    total, count, p, t = 0.0, 0, Vec3(0.0, 0.0, 1.0), (0, 5)
    for k in range(4):
        for _ in range(2):
            total = total + ld(v, k)
        if n[k] > 0:
            count = count + 0.5 * ld(v, k)
        p = Vec3(p.y, p.z, p.x + ld(v, k))
        t = (t[1], t[0] + k)
    st(y, 0, (total, count, p, *t))
    scale = tree.armature[0]
    for k in range(n[0]):
        scale = scale * ld(v, k)
    st(y, 7, scale)
    x, z, t = 0, 0.5, (0, 0.5)
    for _ in range(3):
        x, z, t = z, x, (t[1], t[0])
    st(y, 8, (x, z, *t))


@case
def _bound_with_another_type(tree, n, v, w, y):
    """In a loop, what a round does not read of the last one may change its type."""
    x = 3
    st(y, 0, x)
    x = ld(v, 1)
    st(y, 1, x)
    x = Vec3(x, 2.0 * x, 3.0 * x)
    st(y, 2, x)
    x = None
    for k in range(3):
        x = n[k]
        y[5] += x
        x = ld(v, k)
        y[6] += x
        x = (x, k)
        y[7] += x[0] * x[1]
    a = b = 1
    for _ in range(2):
        a, b = 0.5, ld(v, 0)
        for _ in range(2):
            a = a + 1.0
        st(y, 8, a + b)


@case
def _deep(tree, n, v, w, y):
    count, x = 0, zero(v)
    for i in range(2):
        for j in range(i, 4):
            if n[i + j] > 0:
                k = 0
                while k < 3:
                    k += 1
                    for f in (1, 2):
                        if n[k] < f:
                            if k == 1:
                                continue
                            elif k == 2 and j > 1:
                                break
                        else:
                            for m in range(k):
                                if m + f == n[j]:
                                    x = x - ld(v, m)
                                    break
                                x = x + (f if m else 0.25) * ld(v, k)
                        count = count + 1
                    if count > 60:
                        break
            elif n[i + j] < -6:
                st(y, 2, x)
                return
    st(y, 0, count)
    st(y, 1, x)


# ---------------------------------------------------------------------------------------------------- branches


@case
def _both_branches(tree, n, v, w, y):
    if n[0] > 0:
        a, k, p = ld(v, 0), 1, Vec3(ld(v, 1), ld(v, 2), ld(v, 3))
        only_here = 1.0
        st(y, 0, only_here)
    elif n[0] < 0:
        a, k, p = 2.0, n[1], Vec3(ld(v, 1), ld(v, 2), zero(v))
    else:
        a, k, p = n[3], -1, Vec3(ld(v, 5), n[4], ld(v, 3))
        pass
    only_here = k
    st(y, 1, (a, k, p, only_here))


@case
def _choices(tree, n, v, w, y):
    st(y, 0, ld(v, 0) if n[0] > 0 else 1.5)
    st(y, 1, 1 if n[0] > 0 else 2.5 if n[0] < 0 else ld(v, 1))
    st(y, 2, (ld(v, 2), 1) if n[1] == 3 else (2.0, n[2]))
    st(y, 4, n[3] if True else "never asked for" + 1)
    st(y, 5, (1 if n[0] == 3 else 2) + (ld(v, 0) if n[0] else ld(v, 1)))
    p = Vec3(ld(v, 0), ld(v, 1), ld(v, 2)) if n[0] > 0 else Vec3(zero(v), 2.0 * ld(v, 1), ld(v, 2))
    st(y, 6, p)


@case
def _comparisons(tree, n, v, w, y):
    a, b, c = n[0], n[1], n[2]
    if a < b <= c:
        y[0] += 1.0
    if a > b >= c != 5:
        y[1] += 1.0
    if -3 < a < 4 > b == b:
        y[2] += 1.0
    if (not (a == b) and not c) or (a != 3 and (b > 0 or c > 0)):
        y[3] += 1.0
    if not a:
        y[4] += 1.0
    if 2 < 3 < a:
        y[5] += 1.0
    if 1 < 0 < "not looked at" + 1:
        y[6] += 1.0


@case
def _conditions_as_values(tree, n, v, w, y):
    up, down, known = n[0] > n[1], n[0] < n[1], True
    both, either, neither = up and down, up or down, not (up or down)
    st(y, 0, up + 2 * down)
    st(y, 2, 1 if (up | both) and known else 0)
    st(y, 3, 1 if up & either or neither else 0)
    st(y, 4, n[2] if up == either else n[3])
    st(y, 5, select(up, ld(v, 0), ld(v, 1)))
    for _ in range(2):
        up = up and n[3] > 2
    st(y, 6, 1 if up else 0)


@case
def _what_stands_behind(tree, n, v, w, y):
    """An index that is far outside is not read, nor is None."""
    far, absent = 1_000_000_000 * (n[4] + 1), None
    if 0 <= far < 6 and n[far] > 0:
        y[0] += 1.0
    if far < 0 or far >= 6 or ld(v, far) is None:
        y[1] += 1.0
    if 0 <= far < n[far if far < 6 else 0] < n[far]:
        y[2] += 1.0
    if absent is not None and absent[0] > 0:
        y[3] += 1.0
    if n[0] > 0 and absent is not None and absent[0] > 0:
        y[4] += 1.0
    for k in range(-2, 9):
        if 0 <= k and (k < 5 and n[k + 1] > n[k]):
            y[5] += 1.0
    inside = far < 6 and n[far] > 0
    st(y, 6, 1 if inside else 0)
    st(y, 7, n[far] if far < 6 else -1)


@kernel
def first_above(n, x, limit):
    """Returns from everywhere."""
    if limit < -4:
        return -1, x
    for k in range(6):
        for j in (0, 1):
            if n[k] + j > limit:
                return k, x * j
        if n[k] == limit:
            return 10, 2.0 * x
    while limit > 5:
        if n[0] > limit:
            limit -= 1
        else:
            return limit, 1.0
    return -2, 0


@case
def _early_returns(tree, n, v, w, y):
    for k in range(6):
        place, x = first_above(n, ld(v, k), n[k])
        st(y, 2 * k, place)
        st(y, 2 * k + 1, x)
        if place == 10:
            return
    return


# ---------------------------------------------------------------------------------------------------- integers and numbers


@case
def _integers(tree, n, v, w, y):
    a, b = n[0], n[1]
    st(y, 0, -a * b + a - 3)
    st(y, 1, (a & 6) | (b & 1))
    st(y, 2, min(a, b) + 10 * max(b, 2) + min(3, 4))
    st(y, 3, math.isqrt(a * a + 1) + math.isqrt(17) + len((1, 2, 3)))
    big = 4_000_000_000_000_000_000
    st(y, 4, (a + big) - (big - 1))
    a += 2
    a *= 3
    a -= b
    a //= 4
    a %= 5
    a |= 8
    a &= 11
    st(y, 5, a)
    st(y, 6, True + a)
    st(y, 7, -(1 - a) // -3)


@declared
def DIVIDED(tree, n, v, w, y):
    st(y, 0, (n[0] // n[1], n[0] % n[1], n[0] // 3, n[0] % -3, 7 // n[1], -7 % n[1]))


@case
def _integers_and_numbers(tree, n, v, w, y):
    x, k = ld(v, 0), n[0]
    st(y, 0, k * x + x * k - k + x - 2)
    st(y, 1, x / 3 + k / 2.0 + 1 / (x * x + 1))
    st(y, 2, (k + 0.5) * (k - 1))
    st(y, 3, -x - -k)
    st(y, 4, 7 // 2 + 7 / 2 + 7 % 4)
    st(y, 5, select(less(x, k), k, x) + sqrt(k * k) + fabs(-3))
    st(y, 6, minimum(x, 0.25) + maximum(k, x) + lift(k, x) + floor(x))
    x += k
    x *= 2
    x /= 4
    x -= 1
    st(y, 7, x)


@case
def _largest_of_some(tree, n, v, w, y):
    """Numbers, integers and literals, on either side; all of a sum, as of a row that is to vanish."""
    size = zero(v)
    for k in range(6):
        size = largest(size, ld(v, k))
        st(y, k, size)
    st(y, 6, largest(0.25, ld(v, 0)) + largest(fabs(ld(v, 1)), -0.25))
    st(y, 7, largest(fabs(ld(v, 2)), n[0]) + largest(n[0] * n[0], ld(v, 3)))
    st(y, 8, largest(0.5, -2.0) + largest(3, -2) + largest(n[1] * n[1], n[2]))


@case
def _literals(tree, n, v, w, y):
    st(y, 0, (0.1, 1e300, -1e-300, 1e400, -math.inf, math.nan, 5, 9007199254740992))
    st(y, 8, 0.1 * ld(v, 0) + 1e-9)
    x = zero(v)
    for _ in range(10):
        x = x + 0.1
    st(y, 9, x)


@case
def _chosen_literals(tree, n, v, w, y):
    """A choice between literals is a number like others: one that lanes may disagree about."""
    sign, step = select(less(ld(v, 0), 0.0), -1.0, 1.0), select(less(ld(v, 0), ld(v, 1)), 1, 0)
    total = sign if n[0] > 0 else ld(v, 2)
    for _ in range(3):
        total = 0.5 * total + sign * step
    st(y, 0, (sign, step, total))


@case
def _iteration(tree, n, v, w, y):
    """It goes on until all lanes are done; those that are stay as they are."""
    x, count = fabs(ld(v, 0)), 0
    while some(less(x, 10.0)) and count < 50:
        x = select(less(x, 10.0), 1.5 * x + 0.1, x)
        count += 1
    st(y, 0, x)
    if some(True) and some(n[0] > 2):
        st(y, 1, x)


# ---------------------------------------------------------------------------------------------------- tuples and memory


class Pair(NamedTuple):
    a: Scalar
    b: Scalar


class Box(NamedTuple):
    low: Pair
    high: Pair


def define_pairs() -> None:
    # fmt: off
    @defines(operator.add, Pair, Pair)
    def _(p, q): return Pair(p.a + q.a, p.b + q.b)
    @defines(operator.sub, Pair, Pair)
    def _(p, q): return p + -q
    @defines(operator.neg, Pair)
    def _(p): return Pair(-p.a, -p.b)
    @defines(operator.mul, Pair, None)
    def _(p, s): return Pair(p.a * s, p.b * s)
    @defines(operator.mul, None, Pair)
    def _(s, p): return p * s
    @defines(operator.matmul, Pair, Pair)
    def _(p, q): return p.a * q.a + p.b * q.b
    # fmt: on


@pytest.fixture(scope="module", autouse=True)
def definitions() -> Iterator[None]:
    """Those of this file, while its tests run: the keys of all compiled code depend on what is defined."""
    before = {op: list(known) for op, known in DEFINITIONS.items()}
    define_pairs()
    yield
    for op, known in before.items():
        DEFINITIONS[op][:] = known


UNIT = Pair(1.0, 0.0)


@case
def _definitions(tree, n, v, w, y):
    p, q = Pair(ld(v, 0), ld(v, 1)), ld(v, 2, Pair)
    p += q
    st(y, 0, 2.0 * p - q * n[0] + -p * (p @ q))
    st(y, 2, Box(p, UNIT))
    st(y, 6, UNIT + p)
    st(y, 8, p @ UNIT)
    st(y, 9, UNIT @ UNIT + UNIT.a)
    q = UNIT if n[0] > 0 else q
    st(y, 10, q.b * UNIT)


@case
def _tuples(tree, n, v, w, y):
    t = (ld(v, 0), n[0]) + (1.5,) + ()  # noqa: RUF005
    (a, b), c = (t[0], t[-2]), t[2]
    st(y, 0, (a, b, c, len(t)))
    box = Box(Pair(a, b), Pair(*(c, a)))
    st(y, 4, (box.low.b, box[1][0], *box.high))
    st(y, 8, added(*(t[0], b), c))
    i = j = n[2]
    i, j = j + 1, i + 2
    st(y, 9, i - 10 * j)
    if t and not ():
        st(y, 10, 1.0)


@case
def _memory(tree, n, v, w, y):
    for k in range(tree.nv):
        w.memory[k] = ld(v, k)
        w.point[k] = Vec3(ld(v, k), zero(v), 1.0)
    for k in range(1, tree.nv):
        w.memory[k] += w.memory[k - 1] * k
        p = w.point[k]
        w.point[k], w.point[k - 1] = w.point[k - 1], Vec3(p.z, p.x, w.memory[k])
        y[k] += 1.0
        y[k] *= n[0]
        y[k - 1], y[k] = y[k], y[k - 1]
    y[8] = w.memory[5]
    st(y, 9, w.point[4])
    st(tail(y, 6), 1, ld(tail(v, 2), 3))


# ---------------------------------------------------------------------------------------------------- functions


SCALE = np.float64(0.75)
COUNT = np.int64(3)
FACTORS = (1.0, -2.0, 0.5)


@kernel
def twice(x):
    return 2 * x


@kernel
def added(a, b, c):
    return a + b + c


@kernel
def power(x, k):
    """Literals are known, so this has an end."""
    if k == 0:
        return 1.0
    return x * power(x, k - 1)


@kernel
def shifted(x, by, /, function):
    x = x if by is None else x + by
    if function is None:
        return x
    return function(x)


@kernel
def remember(y, k, x):
    st(y, k, x)


def make_polynomial(coefficients: tuple[float, ...], inner: Any, kind: str) -> Any:
    count = len(coefficients)

    @kernel
    def polynomial(x):
        """Closures are known: the loop is unrolled, and one branch is there."""
        total = 0.0
        for c in coefficients:
            total = total * x + c
        if kind == "inner":
            total = inner(total)
        return total if count < 5 else "never asked for" + 1

    return polynomial


cubic, linear = make_polynomial((1.0, 0.0, -2.0, 1.0), None, "none"), make_polynomial((2.0, 1.0), twice, "inner")


@case
def _functions(tree, n, v, w, y):
    x = ld(v, 0)
    st(y, 0, cubic(x) + linear(x))
    st(y, 1, power(x, 3) + power(2.0, 2))
    st(y, 2, shifted(x, None, None) + shifted(x, 1.0, twice) + shifted(n[0], n[1], sqrt_of_square))
    nothing = remember(y, 3, math.pi + np.pi * SCALE * COUNT)
    if nothing is None:
        st(y, 4, FACTORS[1] * FACTORS[-1] * len(FACTORS))
    function = twice if FACTORS[0] == 1.0 else None
    st(y, 5, function(x) + added(*FACTORS) + added(x, *(1, n[0])))
    sum, max = x, twice(x)  # names of Python's own may be bound
    st(y, 6, sum + max)


@kernel
def sqrt_of_square(x):
    return sqrt(x * x)


# ---------------------------------------------------------------------------------------------------- in every form


def agree(ours: Any, right: Any, tolerance: float) -> None:
    np.testing.assert_allclose(np.asarray(ours, float), np.asarray(right, float), tolerance, tolerance)


each_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@each_case
def test_one_sample(case: Algorithm) -> None:
    for n in INTEGERS:
        for v in NUMBERS[:3]:
            agree(case.call(MODEL, (n, v)), interpreted(case, n, v.tolist()), 1e-13)


@each_case
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_packets(case: Algorithm, dtype: Any) -> None:
    tolerance = 1e-13 if dtype is np.float64 else 2e-5
    for n in INTEGERS:
        v = NUMBERS.astype(dtype)
        with np.errstate(over="ignore"):  # literals that are infinite in single precision
            right = np.array([interpreted(case, n, row.tolist()) for row in v]).astype(dtype)
        agree(case.call(MODEL, (n, v)), right, tolerance)


@each_case
def test_dual_numbers(case: Algorithm) -> None:
    v, slopes = NUMBERS[0], NUMBERS[1:4]
    for n in INTEGERS:
        (values,), (changes,) = push_forward(case, MODEL, (n, v), (None, slopes))
        for slope, change in zip(slopes, changes, strict=True):
            right = [
                x if isinstance(x, Dual) else Dual(x, 0.0)
                for x in interpreted(case, n, list(map(Dual, v.tolist(), slope.tolist())))
            ]
            agree(values, [x.value for x in right], 1e-13)
            agree(change, [x.slope for x in right], 1e-13)


def test_whole_quotients() -> None:
    """Rounded down, as Python has them, whatever the signs."""
    values = [-(2**31), -8, -7, -3, -1, 1, 2, 3, 7, 2**31 - 1]
    for a, b in itertools.product([0, *values], values):
        n = np.array([a, b, 0, 0, 0, 0], np.int32)
        found = DIVIDED.call(MODEL, (n, NUMBERS[0]))
        assert found[:6].tolist() == [a // b, a % b, a // 3, a % -3, 7 // b, -7 % b], (a, b)


def test_literals_in_single_precision() -> None:
    """Rounded once, to the nearest; a sum of them has the rounding errors of single precision, not of double."""
    literals = next(case for case in CASES if case.name == "literals")
    found = literals.call(MODEL, (INTEGERS[0], np.zeros((1, 6), np.float32)))[0]
    total = np.float32(0.0)
    for _ in range(10):
        total += np.float32(0.1)
    assert found[0] == np.float32(0.1) and found[1] == found[3] == np.inf and found[4] == -np.inf and np.isnan(found[5])
    assert found[9] == total != np.float32(1.0)
