"""The kernel language: a compiled kernel does what Python says it does, for one sample, packets of both precisions and dual
numbers; and what the language has not is refused by its place and by name.

The kernels of the first part are interpreted beside. They take integers `n`, which are the same in all lanes, and numbers
`v`; `y` is 0 before.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import operator
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some_of

import saltus as sl
from saltus.kernel import (
    ALGORITHMS,
    Algorithm,
    Dual,
    Layout,
    Scalar,
    defines,
    fabs,
    floor,
    kernel,
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
from saltus.kernel.compile import assembly
from saltus.kernel.forward import push_forward
from saltus.kernel.interpret import interpret
from saltus.kernel.sources import KernelError
from saltus.kernel.target import packet
from saltus.kernel.tuples import DEFINITIONS
from saltus.model.tree import algorithm
from saltus.spatial.algebra import Vec3

MODEL = sl.random_model(seed=0, bodies=6, kinds=["revolute"])
WIDTH = packet(64).width
INTEGERS = [
    np.array(row, np.int32)
    for row in ((3, -2, 0, 5, 7, -7), (0, 0, 0, 0, 0, 0), (-5, 3, 2, 1, -1, 4), (1, 2, 3, 4, 5, 6))
]
NUMBERS = np.random.default_rng(0).normal(size=(2 * WIDTH + 3, 6))

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


def interpreted(case: Algorithm, n: np.ndarray, v: Any) -> list[Any]:
    (result,) = interpret(case, MODEL, [n.tolist(), v])
    return result.tolist()


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


# ---------------------------------------------------------------------------------------------------- random kernels

MODULE = """
import math
from typing import NamedTuple
import numpy as np
from saltus.kernel import *
from saltus.model.tree import algorithm
from saltus.spatial.algebra import Vec3

declared = algorithm(
    inputs={"n": "6 int", "v": "6"}, outputs={"y": "12"}, work=Layout(nv={"memory": None, "point": Vec3})
)
"""


def load(folder: Path, name: str, text: str) -> Algorithm:
    """The algorithm `name` of a module: kernels must be in files."""
    file = folder / f"{name}.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    del ALGORITHMS[-1]
    found: Algorithm = getattr(module, name)
    return found


HELPERS = """
class Pair(NamedTuple):
    a: Scalar
    b: Scalar

@kernel
def wrapped(x):
    return x - 64.0 * floor(x * 0.015625)

@kernel
def stepped(x, k):
    if k < 0:
        return x
    for m in range(3):
        if m == k:
            return x + m
        x = wrapped(x - 1.0)
    return 2.0
"""


class Writer:
    """Writes a random kernel. Its numbers are whole and small, so that every order of rounding gives the same."""

    def __init__(self, draw: Callable[..., Any]) -> None:
        self.draw, self.indices, self.lines = draw, list[str](), list[str]()

    def pick(self, *choices: Any) -> Any:
        return self.draw(some_of.sampled_from(choices))

    def integer(self, depth: int = 2) -> str:
        if depth == 0:
            return self.pick("i", "j", "k", "n[1]", "n[4]", "-3", "0", "1", "2", "7", *self.indices)
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        divisor = self.pick("2", "-3", "7", f"({b} * {b} + 1)", f"(-2 - {b} * {b})")
        return self.pick(a, f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"-{a}", f"({a} // {divisor})",
                         f"({a} % {divisor})", f"min({a}, {b})", f"max({a}, {b})",
                         f"({a} if {self.condition(depth - 1)} else {b})")  # fmt: skip

    def condition(self, depth: int = 2) -> str:
        a, b, c = (self.integer(0) for _ in range(3))
        how, other = self.pick("<", "<=", ">", ">=", "==", "!="), self.pick("<", "!=")
        plain = [f"{a} {how} {b}", f"{a} {how} {b} {other} {c}", f"(0 <= {a} < 6 and n[{a}] {how} {b})", f"{a} % 2"]
        if depth == 0:
            return self.pick(*plain)
        one, two = self.condition(depth - 1), self.condition(depth - 1)
        return self.pick(*plain, f"(not {one})", f"({one} and {two})", f"({one} or {two})")

    def number(self, depth: int = 2) -> str:
        if depth == 0:
            return self.pick("x", "z", "p.a", "p.b", "v[0]", "v[3]", "2.0", "-1.0", "0.0", "3")
        a, b = self.number(depth - 1), self.number(depth - 1)
        return self.pick(a, f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"-{a}", f"({a} + {self.integer(1)})",
                         f"select(less({a}, {b}), {b}, 2.0)", f"minimum({a}, {b})", f"stepped({a}, {self.integer(0)})",
                         f"({a} if {self.condition(1)} else {b})")  # fmt: skip

    def line(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def block(self, indent: int, loops: int = 0) -> None:
        for _ in range(self.pick(1, 2, 3)):
            self.statement(indent, loops)

    def statement(self, indent: int, loops: int) -> None:
        kinds = ["integer", "integer", "number", "number", "pair", "swap", "element"]
        if indent < 5:
            kinds += ["if", "if", "for", "while", "forever", "tuple"]
        if loops:
            kinds += ["leave", "leave"]
        kind, counter = self.pick(*kinds), f"c{len(self.lines)}"
        if kind == "integer":
            self.line(indent, f"{self.pick('i', 'j', 'k')} = {self.integer()} % 41 - 20")
        elif kind == "number":
            self.line(indent, f"{self.pick('x', 'z')} = wrapped({self.number()})")
        elif kind == "pair":
            self.line(indent, f"p = Pair(wrapped({self.number()}), p.a)")
        elif kind == "swap":
            self.line(indent, self.pick("i, j = j, k", "x, z = z, x", "i, x = -i, wrapped(x + i)"))
        elif kind == "element":
            self.line(indent, f"y[{self.pick('0', '1', 'i % 6')}] += wrapped({self.number(1)})")
        elif kind == "leave":
            self.line(indent, f"if {self.condition()}:")
            self.line(indent + 1, self.pick("break", "continue", "return"))
        elif kind == "if":
            self.line(indent, f"if {self.condition()}:")
            self.block(indent + 1, loops)
            for word in self.pick((), ("else",), ("elif", "else"), ("elif",)):
                self.line(indent, "else:" if word == "else" else f"elif {self.condition()}:")
                self.block(indent + 1, loops)
        elif kind == "for":
            ends = self.pick("3", "i % 4", "1, 4", "j % 3, 4", "4, k % 3, -1", "3, -2, -2", "0, 5, 2 if i > 0 else -1")
            self.line(indent, f"for {counter} in range({ends}):")
            self.indices.append(counter)
            self.block(indent + 1, loops + 1)
            self.indices.pop()
        elif kind == "tuple":
            self.line(indent, f"for {counter}, x in (({self.integer(0)}, 2.0), (i, {self.number(0)})):")
            self.block(indent + 1, loops + 1)
        else:
            self.line(indent, f"{counter} = 0")
            self.line(indent, f"while {self.condition()} and {counter} < 4:" if kind == "while" else "while True:")
            self.line(indent + 1, f"{counter} += 1")
            if kind == "forever":
                self.line(indent + 1, f"if {counter} > 3 or {self.condition(1)}:")
                self.line(indent + 2, "break")
            self.block(indent + 1, loops + 1)


@some_of.composite
def random_kernels(draw: Any) -> str:
    writer = Writer(draw)
    writer.line(1, "for m in range(12):")
    writer.line(2, "y[m] = 0.0")
    writer.line(1, "i, j, k, x, z, p = 1, n[0], n[2], v[1], zero(v), Pair(v[2], 1.0)")
    writer.block(1)
    writer.line(1, "st(y, 6, (i, j, k, x, z, p.a - 100.0 * p.b))")
    return "\n".join(writer.lines)


COUNTER = itertools.count()


@settings(max_examples=20)
@given(body=random_kernels())
def test_random_kernels(body: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    name = f"_random{next(COUNTER)}"
    folder = tmp_path_factory.mktemp("random")
    random = load(folder, name, f"{MODULE}{HELPERS}@declared\ndef {name}(tree, n, v, w, y):\n{body}\n")
    v = np.random.default_rng(1).integers(-9, 10, (WIDTH + 1, 6)).astype(float)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SALTUS_CACHE_DIR", str(folder))
        for n in INTEGERS:
            right = [interpreted(random, n, row.tolist()) for row in v]
            assert random.call(MODEL, (n, v[0])).tolist() == right[0]
            assert random.call(MODEL, (n, v)).tolist() == right


# ---------------------------------------------------------------------------------------------------- what is refused

NAMES = """
SCALE, LIST, TABLE = 2.0, [1, 2], np.zeros(3)

class Pair(NamedTuple):
    a: Scalar
    b: Scalar

def unmarked(x):
    return x

"""

ERRORS: dict[str, tuple[str, str]] = {
    # What numbers do not do: lanes may disagree.
    "less_by_sign": (
        "if ld(v, 0) < 0.0: #!\n    pass",
        r"compares a number .* with 0.0, expected integers; numbers have `less`",
    ),
    "equal_by_sign": ("x = ld(v, 0) == ld(v, 1) #!", "compares a number .* with a number .*, expected integers"),
    "number_with_integer": ("if ld(v, 0) > n[0]: #!\n    pass", "compares a number .* with an integer"),
    "number_as_condition": (
        "if ld(v, 0): #!\n    pass",
        "a number .* as a condition, expected integers; numbers have `select` and `some`",
    ),
    "less_as_condition": (
        "if less(ld(v, 0), 0.0): #!\n    pass",
        "a comparison of numbers as a condition, expected integers; .* `some`",
    ),
    "while_on_numbers": (
        "x = ld(v, 0)\nwhile less(x, 9.0): #!\n    x = x + 1.0",
        "a comparison of numbers as a condition",
    ),
    "not_of_a_number": ("x = not ld(v, 0) #!", "a number .* as a condition"),
    "or_of_integers": (
        "k = n[0] or 5 #!",
        "an integer as an operand of a logical operator whose value is kept, expected a condition",
    ),
    "condition_as_number": ("st(y, 0, n[0] < 3) #!", "st: expected a number, found a condition"),
    "is_with_a_number": (
        "if n[0] is n[1]: #!\n    pass",
        "asks whether an integer is an integer, expected None on one side",
    ),
    "membership": ("if n[0] in (1, 2): #!\n    pass", "the language has no operator in"),
    "none_is_less": ("if None < 3: #!\n    pass", "'<' not supported between instances of 'NoneType' and 'int'"),
    # What Python has and the language has not.
    "list_comprehension": ("x = [k for k in range(3)] #!", "the language has no list comprehension"),
    "generator": ("x = sum(k for k in range(3)) #!", "the language has no generator"),
    "set_comprehension": ("x = {k for k in range(3)} #!", "the language has no set comprehension"),
    "dict_comprehension": ("x = {k: k for k in range(3)} #!", "the language has no dictionary comprehension"),
    "list": ("x = [1, 2] #!", "the language has no list"),
    "dictionary": ("x = {1: 2} #!", "the language has no dictionary"),
    "set": ("for k in {1, 2}: #!\n    pass", "the language has no set"),
    "lambda": ("f = lambda x: x #!", "the language has no lambda"),
    "try": ("try: #!\n    st(y, 0, 1.0)\nexcept ValueError:\n    pass", "the language has no try"),
    "raise": ("raise ValueError #!", "the language has no raise"),
    "assert": ("assert n[0] > 0 #!", "the language has no assert"),
    "with": ("with open('f'): #!\n    pass", "the language has no with"),
    "del": ("x = 1\ndel x #!", "the language has no del"),
    "global": ("global LIST #!\nLIST = 1", "the language has no global"),
    "import": ("import os #!", "the language has no import"),
    "from_import": ("from os import path #!", "the language has no import"),
    "function_within": (
        "def f(x): #!\n    return x\nst(y, 0, f(1.0))",
        "the language has no function within a function",
    ),
    "nonlocal": ("def f(): #!\n    nonlocal n", "the language has no function within a function"),
    "class_within": ("class A: #!\n    pass", "the language has no class"),
    "match": ("match n[0]: #!\n    case 1:\n        pass", "the language has no match"),
    "walrus": ("if (k := n[0]) > 1: #!\n    pass", "the language has no assignment within an expression"),
    "annotation": ("x: float = 1.0 #!", "the language has no annotated assignment"),
    "yield": ("yield 1 #!", "the language has no yield"),
    "yield_from": ("yield from (1, 2) #!", "the language has no yield"),
    "formatted_string": ("x = f'{n[0]}' #!", "the language has no formatted string"),
    "else_of_for": ("for k in range(3): #!\n    pass\nelse:\n    pass", "the language has no else of a loop"),
    "else_of_while": ("while n[0] > 9: #!\n    pass\nelse:\n    pass", "the language has no else of a loop"),
    "power": ("x = ld(v, 0) ** 2 #!", r"the language has no power \*\*"),
    "shift": ("k = n[0] << 2 #!", "the language has no operator <<"),
    "exclusive_or": ("k = n[0] ^ 2 #!", r"the language has no operator \^"),
    "plus_sign": ("x = +ld(v, 0) #!", r"the language has no sign \+"),
    "complement": ("k = ~n[0] #!", "the language has no operator ~"),
    "slice": ("x = v[1:3] #!", "the language has no slice"),
    "slice_of_a_tuple": ("x = (1, 2, 3)[1:] #!", "the language has no slice"),
    "starred_target": (
        "a, *b = (1, 2, 3) #!",
        "the language has no star on the left of =, expected names or elements of arrays",
    ),
    "attribute_target": ("w.memory = 1.0 #!", "the language has no attribute on the left of ="),
    "list_target": ("[a, b] = (1, 2) #!", "the language has no list on the left of ="),
    # Arithmetic.
    "quotient_of_integers": (
        "k = n[0] / 2 #!",
        "the language has no quotient of integers; // rounds down, and `1.0 \\* k` is a number",
    ),
    "remainder_of_numbers": ("x = ld(v, 0) % 2 #!", "the language has no remainder of a number .* and 2"),
    "whole_quotient_of_numbers": ("x = 2 // ld(v, 0) #!", "the language has no whole quotient of 2 and a number"),
    "matrix_product_of_numbers": (
        "x = ld(v, 0) @ ld(v, 1) #!",
        "the language has no matrix product of a number .* and a number",
    ),
    "bits_of_numbers": ("x = ld(v, 0) | 1 #!", r"the language has no operator \| of a number .* and 1"),
    "division_by_zero": ("k = n[0] // 0 #!", "integer division by zero"),
    "known_division_by_zero": ("x = 1.0 / 0 #!", "(float )?division by zero"),
    "sum_with_none": ("x = ld(v, 0) + None #!", "the language has no sum of a number .* and None"),
    "sum_with_text": ("x = ld(v, 0) + 'a' #!", "the language has no sum of a number .* and 'a'"),
    "sum_of_what_is_known": ("x = 1 + 'a' #!", "unsupported operand type"),
    "sum_with_an_array": ("x = v + 1.0 #!", "the language has no sum of an array and 1.0"),
    "sum_with_a_function": (
        "x = 2 * ld(v, 0) + sqrt #!",
        "the language has no sum of a number .* and the function sqrt",
    ),
    "negative_none": ("x = -None #!", "the language has no sign - of None"),
    "negative_condition": ("x = -(n[0] < 1) #!", "the language has no sign - of a condition"),
    "operator_that_is_not_defined": ("p = Vec3(ld(v, 0), 0.0, 0.0) + 1.0 #!", r"add is not defined for a Vec3, 1.0"),
    "tuple_times_number": ("p = (ld(v, 0), 1) * 2 #!", "mul is not defined for a tuple \\(a number .*, 1\\), 2"),
    "vector_with_none": ("p = None * Vec3(ld(v, 0), 0.0, 0.0) #!", "mul is not defined for None, a Vec3"),
    "integer_too_large": (
        "k = n[0] + 99999999999999999999 #!",
        "the integer 99999999999999999999 does not fit into 64 bits",
    ),
    "literal_too_large": (f"x = ld(v, 0) * 1{'0' * 400} #!", "the integer 10+ is larger than any number"),
    # Names.
    "undefined": ("x = velocty #!", "velocty is not bound"),
    "bound_on_one_way": ("if n[0] > 0:\n    x = 1.0\nst(y, 0, x) #!", "x is not bound on every way that leads here"),
    "bound_in_a_loop": (
        "for k in range(n[0]):\n    x = 1.0\nst(y, 0, x) #!",
        "x is not bound on every way that leads here",
    ),
    "bound_later": ("st(y, 0, SCALE) #!\nSCALE = 2.0", "SCALE is not bound"),
    "bound_where_nobody_goes": ("if False:\n    sum = 1.0\nst(y, 0, sum) #!", "sum is not bound"),
    "index_after_the_loop": ("for k in range(3):\n    pass\nst(y, 0, k) #!", "k is the index of a loop that has ended"),
    "two_types": (
        "if n[0] > 0:\n    x = 1\nelse:\n    x = Vec3(0.0, 0.0, 0.0)\nst(y, 0, x) #!",
        "x is 1 or a Vec3, depending on the way taken",
    ),
    "two_lengths": (
        "t = (1, 2) if n[0] > 0 else (1, 2, 3) #!",
        "the choice is a tuple \\(1, 2\\) or a tuple \\(1, 2, 3\\), depending on the way taken",
    ),
    "choice_of_functions": (
        "f = sqrt if n[0] > 0 else fabs #!",
        "the choice is the function fabs or the function sqrt, depending on the way taken",
    ),
    "type_that_changes": (
        "k = n[0]\nfor _ in range(3):\n    k = (k, 1) #!",
        r"k is an integer before the loop, and at its end a tuple \(an integer, 1\)",
    ),
    "type_that_changes_behind": (
        "x = n[0]\nfor i in range(2):\n    for k in range(2):\n        x = x + 1 #!\n    st(y, i, x)\n    x = Pair(x, 1)",
        "x is an integer before the loop, and at its end a Pair",
    ),
    "type_that_changes_after_branches": (
        "x = n[0]\nfor i in range(2):\n    if n[1] > 0:\n        x = 5\n    st(y, i, x) #!\n    x = Vec3(0.0, 0.0, 0.0)",
        "x is an integer before the loop, and at its end a Vec3",
    ),
    "type_that_changes_on_one_way": (
        "x = n[0]\nfor i in range(2):\n    st(y, i, x) #!\n    if n[1] > 0:\n        x = None",
        "x is an integer before the loop, and at its end None or an integer, depending on the way taken",
    ),
    "integer_that_becomes_a_number": (
        "k = n[0]\nfor _ in range(3):\n    st(y, n[k], 1.0) #!\n    k = 0.5 * k",
        "a number .* as an index, expected an integer",
    ),
    "none_that_changes": (
        "x = None\nfor k in range(3):\n    if x is not None: #!\n        st(y, 0, x)\n    x = ld(v, k)",
        "x is None before the loop, and at its end a number .*",
    ),
    # Tuples.
    "too_few_names": ("a, b = (1, 2, 3) #!", "unpacks 3 values into 2 names"),
    "too_many_names": ("a, b, c = Vec3(0.0, 0.0, 0.0), 1 #!", "unpacks 2 values into 3 names"),
    "unpacked_number": ("a, b = ld(v, 0) #!", "expected a tuple, found a number"),
    "starred_array": ("x = maximum(*v) #!", "expected a tuple, found an array"),
    "variable_index_of_a_tuple": (
        "t = (1, 2)\nst(y, 0, t[n[0]]) #!",
        "an integer as the index of a tuple \\(1, 2\\), expected a literal within it",
    ),
    "index_beyond_a_tuple": ("x = (1, 2)[2] #!", "2 as the index of a tuple \\(1, 2\\), expected a literal within it"),
    "attribute_of_a_tuple": ("x = Vec3(0.0, 0.0, 0.0).w #!", "a Vec3 has no attribute w"),
    "method_of_a_tuple": ("x = Vec3(0.0, 0.0, 0.0)._replace(x=1.0) #!", "a Vec3 has no attribute _replace"),
    "attribute_of_a_field": ("x = w.memry[0] #!", "a View has no attribute memry"),
    "attribute_of_an_array": ("k = v.shape #!", "an array has no attribute shape"),
    "attribute_of_a_module": ("x = math.tau2 #!", "the module math has no attribute tau2"),
    "parts_of_a_class": ("p = Vec3(0.0, 0.0) #!", "Vec3 has 3 parts, found 2"),
    "tuple_as_condition": ("if Vec3(0.0, 0.0, 0.0): #!\n    pass", "a Vec3 as a condition"),
    "tuples_compared": (
        "if (n[0], 1) == (1, 1): #!\n    pass",
        "compares a tuple \\(an integer, 1\\) with a tuple \\(1, 1\\), expected integers",
    ),
    # Memory.
    "index_by_a_number": ("x = v[1.0] #!", "1.0 as an index, expected an integer"),
    "index_by_a_variable_number": ("x = ld(v, ld(v, 0)) #!", "ld: expected an integer as the index, found a number"),
    "two_indices": ("x = v[0, 1] #!", "a tuple \\(0, 1\\) as an index, expected an integer"),
    "negative_index": ("x = v[-1] #!", "the index -1, expected one from 0 on: arrays do not know where they end"),
    "index_of_a_number": ("x = ld(v, 0)[0] #!", "a number .* has no elements, expected an array, a field or a tuple"),
    "index_of_a_list": ("x = LIST[0] #!", "a list has no elements, expected an array, a field or a tuple"),
    "index_of_a_table": ("x = TABLE[n[0]] #!", "a ndarray has no elements"),
    "none_as_array": ("x = ld(None, 0) #!", "ld: expected an array, found None"),
    "class_that_is_none": ("x = ld(v, 0, n[0]) #!", "ld: expected a class of tuples, found an integer"),
    "class_of_python": ("x = ld(v, 0, float) #!", "ld: expected a class of tuples, found the class float"),
    "class_of_a_field": ("x = ld(w.point, 0, Pair) #!", "ld: a field of Vec3 has no other class"),
    "few_arguments_of_ld": ("x = ld(v) #!", "ld: found 1 arguments, expected 2 or 3"),
    "many_arguments_of_ld": ("x = ld(v, 0, Vec3, 1) #!", "ld: found 4 arguments, expected 2 or 3"),
    "few_arguments_of_st": ("st(y, 0) #!", "st: found 2 arguments, expected 3"),
    "text_in_memory": ("st(y, 0, 'a') #!", "st: expected a number, found 'a'"),
    "none_in_memory": ("st(y, 0, (1.0, None)) #!", "st: expected a number, found None"),
    "array_in_memory": ("st(y, 0, v) #!", "st: expected a number, found an array"),
    "another_class_in_a_field": ("w.point[0] = Pair(1.0, 2.0) #!", "writes a Pair, expected a Vec3"),
    "number_in_a_field_of_tuples": ("w.point[0] = 1.0 #!", "writes 1.0, expected a Vec3"),
    "number_in_a_field_by_st": ("st(w.point, 0, ld(v, 0)) #!", "st: writes a number .*, expected a Vec3"),
    "tuple_in_a_field_of_numbers": ("w.memory[0] = Pair(1.0, 2.0) #!", "writes a Pair, expected a number"),
    "tuple_of_wrong_parts": (
        "w.point[0] = Vec3(Pair(1.0, 2.0), 3.0, 4.0) #!",
        "writes a Vec3 of a Pair, a number .*, a number .*, expected a Vec3",
    ),
    "tuple_in_an_array": ("y[0] = Pair(1.0, 2.0) #!", "writes a Pair, expected a number"),
    "writes_to_the_model": ("tree.parent[0] = 1 #!", "writes to what is constant: the model, or an input of integers"),
    "writes_to_integers": ("n[0] += 1 #!", "writes to what is constant"),
    "writes_to_a_tuple": ("t = (1, 2)\nt[0] = 3 #!", "changes a tuple \\(1, 2\\), expected an array or a field"),
    "zero_of_integers": ("k = zero(n) #!", "zero: expected an array of numbers, found one of integers"),
    "zero_of_a_number": ("k = zero(1.0) #!", "zero: expected an array, found 1.0"),
    "tail_of_a_field": ("x = tail(w.point, 1) #!", "tail: expected an array, found a field"),
    "symmetric_tuple": (
        "st_symmetric(y, 3, 1, 0, (1.0, 2.0)) #!",
        "st_symmetric: expected a number, found a tuple \\(1.0, 2.0\\)",
    ),
    # Calls.
    "numpy": (
        "x = np.sin(ld(v, 0)) #!",
        "calls np.sin, which is no kernel, expected one, or a function of saltus.kernel",
    ),
    "math": ("x = math.sin(ld(v, 0)) #!", "calls math.sin, which is no kernel"),
    "print": ("print(n[0]) #!", "calls print, which is no kernel"),
    "abs": ("x = abs(ld(v, 0)) #!", "calls abs, which is no kernel"),
    "float": ("x = float(n[0]) #!", "calls float, which is no kernel"),
    "enumerate": ("for k, x in enumerate((1, 2)): #!\n    pass", "calls enumerate, which is no kernel"),
    "not_marked": ("x = unmarked(1.0) #!", "calls unmarked, which is no kernel"),
    "list_called": ("x = LIST(1) #!", "calls LIST, which is no kernel"),
    "number_called": ("x = ld(v, 0)\nx(1) #!", "calls a number .*, expected a function"),
    "by_name": ("st(y, 0, value=1.0) #!", "the language has no arguments by name"),
    "dictionary_of_arguments": ("st(y, 0, **{}) #!", "the language has no arguments by name"),
    "sqrt_of_an_array": ("x = sqrt(v) #!", "sqrt is not defined for an array"),
    "sqrt_of_a_condition": ("x = sqrt(n[0] < 1) #!", "sqrt is not defined for a condition"),
    "sqrt_of_two": ("x = sqrt(1.0, 2.0) #!", "sqrt: found 2 arguments, expected 1"),
    "sincos_of_two": ("x = sincos(1.0, 2.0) #!", "sincos: found 2 arguments, expected 1"),
    "less_of_tuples": ("x = less((1, n[0]), 2) #!", "less is not defined for a tuple \\(1, an integer\\), 2"),
    "select_by_an_integer": ("x = select(n[0], 1.0, 2.0) #!", "select: expected a condition, found an integer"),
    "select_by_a_number": ("x = select(ld(v, 0), 1.0, 2.0) #!", "select: expected a condition, found a number"),
    "select_of_two": ("x = select(less(ld(v, 0), 0.0), 1.0) #!", "select: found 2 arguments, expected 3"),
    "select_of_tuples": (
        "x = select(less(ld(v, 0), 0.0), (1, 2), (1, n[0])) #!",
        "select is not defined for a comparison of numbers, a tuple \\(1, 2\\), a tuple \\(1, an integer\\)",
    ),
    "some_of_a_number": ("x = some(ld(v, 0)) #!", "some: expected a condition, found a number"),
    "lift_of_none": ("x = lift(None, ld(v, 0)) #!", "lift: expected numbers, found None and a number"),
    "min_of_numbers": ("x = min(ld(v, 0), 1) #!", r"min: expected integers \(numbers have `minimum`\), found a number"),
    "min_of_three": ("x = min(1, 2, n[0]) #!", "min: found 3 arguments, expected 2"),
    "min_of_nothing": ("x = min(None, 1) #!", "min: expected integers .*, found None"),
    "length_of_an_array": ("x = len(v) #!", "len: expected a tuple, found an array"),
    "root_of_a_number": ("x = math.isqrt(ld(v, 0)) #!", "math.isqrt: expected an integer, found a number"),
    "root_of_a_negative": ("x = math.isqrt(-4) #!", "math.isqrt: expected an integer from 0 on, found -4"),
    "four_of_a_number": ("x = four(ld(v, 0)) #!", "four: expected a Quad, found a number"),
    # Loops.
    "range_of_numbers": ("for k in range(2.0): #!\n    pass", "a range takes one to three integers"),
    "range_of_variable_numbers": ("for k in range(ld(v, 0)): #!\n    pass", "a range takes one to three integers"),
    "range_of_nothing": ("for k in range(): #!\n    pass", "a range takes one to three integers"),
    "range_of_four": ("for k in range(1, 2, 3, 4): #!\n    pass", "a range takes one to three integers"),
    "range_by_name": ("for k in range(stop=3): #!\n    pass", "the language has no arguments by name"),
    "step_zero": ("for k in range(0, 3, 0): #!\n    pass", "the step of a range is 0"),
    "step_false": ("for k in range(0, 3, False): #!\n    pass", "the step of a range is 0"),
    "two_indices_of_a_range": ("for i, k in range(3): #!\n    pass", "a loop over a range has one name"),
    "range_as_a_value": ("x = range(3) #!", "calls range, which is no kernel"),
    "over_a_list": ("for x in [1, 2]: #!\n    pass", "the language has no list"),
    "over_a_known_list": ("for x in LIST: #!\n    pass", "expected a tuple, found a list"),
    "over_an_array": ("for x in v: #!\n    pass", "expected a tuple, found an array"),
    "over_an_integer": ("for x in n[0]: #!\n    pass", "expected a tuple, found an integer"),
    # Functions.
    "keyword_only": (
        "@kernel\ndef helper(x, *, y): #!\n    return x\n---\nhelper(1.0)",
        r"has parameters with \*, \*\* or defaults, expected plain ones",
    ),
    "defaults": ("@kernel\ndef helper(x, y=1.0): #!\n    return x\n---\nhelper(1.0)", "has parameters with"),
    "any_number_of_arguments": ("@kernel\ndef helper(*x): #!\n    return x\n---\nhelper(1.0)", "has parameters with"),
    "arguments_by_any_name": ("@kernel\ndef helper(**x): #!\n    return 1.0\n---\nhelper()", "has parameters with"),
    "few_arguments": (
        "@kernel\ndef helper(x, z): #!\n    return x\n---\nhelper(1.0)",
        "is called with 1 arguments, expected 2",
    ),
    "many_arguments": (
        "@kernel\ndef helper(x): #!\n    return x\n---\nhelper(1.0, *(2, 3))",
        "is called with 3 arguments, expected 1",
    ),
    "recursion": (
        "@kernel\ndef helper(x): #!\n    return helper(x) + 1\n---\nst(y, 0, helper(n[0]))",
        "calls itself, directly or through others",
    ),
    "recursion_in_a_round": (
        "@kernel\ndef helper(x): #!\n    return other(x)\n@kernel\ndef other(x):\n    return helper(x)\n---\n"
        "st(y, 0, helper(n[0]))",
        "calls itself, directly or through others",
    ),
    "recursion_without_end": (
        "@kernel\ndef helper(k): #!\n    return helper(k + 1)\n---\nst(y, 0, helper(0))",
        "calls itself with ever new literals, or is nested too deeply",
    ),
    "returns_two_things": (
        "@kernel\ndef helper(k): #!\n    if k > 0:\n        return 1.0\n    return (1, 2)\n---\nhelper(n[0])",
        "returns 1.0 or a tuple \\(1, 2\\), depending on the way taken",
    ),
    "returns_or_not": (
        "@kernel\ndef helper(k): #!\n    if k > 0:\n        return 1.0\n---\nst(y, 0, helper(n[0]))",
        "returns 1.0 or None, depending on the way taken",
    ),
    "wrapped": (
        "def logged(f):\n    def wrapper(*args): #!\n        return f(*args)\n    return wrapper\n"
        "@kernel\n@logged\ndef helper(x):\n    return x\n---\nhelper(1.0)",
        "has parameters with",
    ),
    "none_in_a_sum": (
        "@kernel\ndef helper(x):\n    return x + 1.0 #!\n---\nst(y, 0, helper(None))",
        "unsupported operand type.*NoneType",
    ),
}
"""By name: the body of a kernel, after others that it calls (---), with a mark at the line to blame; what is said of it."""


@pytest.mark.parametrize("name", ERRORS)
def test_refused(name: str, tmp_path: Path) -> None:
    """For one sample and for packets; the message has the file, the line and the kernel."""
    code, words = ERRORS[name]
    before, _, body = code.rpartition("---\n")
    header = f"@declared\ndef _{name}(tree, n, v, w, y):\n"
    text = MODULE + NAMES + before + header + textwrap.indent(body, "    ") + "\n"
    line = text[: text.index("#!")].count("\n") + 1
    blamed = f"_{name}" if "#!" in body else re.findall(r"def (\w+)", before[: before.index("#!")])[-1]
    place = re.escape(f"{tmp_path / f'_{name}.py'}:{line}: kernel {blamed}: ")
    wrong = load(tmp_path, f"_{name}", text)
    for _ in range(2):
        with pytest.raises(KernelError, match=f"^{place}{words}"):
            wrong.call(MODEL, (INTEGERS[0], NUMBERS[0]))
    with pytest.raises(KernelError, match=f"^{place}{words}"):
        assembly(wrong, packet(64), wrong.present(2), "many", "symbol")


WAY = """
@kernel
def inner(x):
    return x < 1.0  # 1

@defines(operator.add, Pair, Pair)
def _(p, q):
    return inner(p.a)  # 2

@kernel
def outer(x):
    p = Pair(x, x)
    return p + p  # 3

@declared
def _way(tree, n, v, w, y):
    for k in range(3):
        st(y, k, outer(
            ld(v, k)))  # 4
"""


def test_the_way_to_an_error(tmp_path: Path) -> None:
    """From where it is to the algorithm, through operators and loops; of a call of many lines, the first."""
    text = MODULE + "import operator\n" + NAMES + WAY
    file, lines = tmp_path / "_way.py", text.splitlines()
    inner, plus, outer, way = ((next(k for k, line in enumerate(lines, 1) if f"# {n}" in line)) for n in (1, 2, 3, 4))
    with pytest.raises(KernelError, match=f"^{re.escape(str(file))}:{inner}: kernel inner: compares") as caught:
        load(tmp_path, "_way", text).call(MODEL, (INTEGERS[0], NUMBERS[0]))
    told = [
        f"called from {file}:{line}: kernel {name}" for line, name in ((plus, "_"), (outer, "outer"), (way - 1, "_way"))
    ]
    assert caught.value.__notes__[:3] == told and len(caught.value.__notes__) == 4
