"""Quadratic programs of whole-body control, with friction cones as they are: for those who have matrices.

| `method` | |
|---|---|
| `interior_point` | equalities are eliminated, then a primal-dual interior point method (reduced_program.py) |

Reference: B. Acosta, FCCQP: A whole-body QP with full friction cone constraints (2024).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike, on_gpu, real_numbers
from saltus.control.deadline import allowance
from saltus.control.quadratic_program import EMPTY, PROBLEM, QPSolution, Size
from saltus.control.reduced_program import _reduced_program
from saltus.kernel.gpu_arrays import to_device

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)

METHODS = {"interior_point": _reduced_program}

TOLERANCE = {"d": 1e-9, "f": 1e-4}
"""Of residuals, each as a share of the largest term of its equation, by the type of numbers."""

MAX_ITERATIONS = {"interior_point": 60}

LOWEST, HIGHEST = -1e30, 1e30
"""Stand for infinity: kernels are given finite numbers."""

NAMES = [name for name in PROBLEM if name not in ("options", "limits")]


class Prepared(NamedTuple):
    """What follows from sizes and choices."""

    size: Size
    cones: Any
    options: Any
    limits: Array
    lowest: Array
    highest: Array
    frictions: Array


def fccqp(
    Q: ArrayLike,
    c: ArrayLike,
    A: ArrayLike,
    b: ArrayLike,
    cones: ArrayLike = (),
    friction: ArrayLike = 0.6,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    *,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    z: ArrayLike | None = None,
    method: Literal["interior_point"] = "interior_point",
    tolerance: float | None = None,
    max_iterations: int | None = None,
    max_time: float | None = None,
) -> QPSolution:
    """The x that makes 1/2 x'Qx + c'x least, where A x = b, forces are in their friction cones and lower <= x <= upper.

    Q (..., n, n) is symmetric, positive definite at least where A x = 0 and nothing is bounded; c (..., n), A (..., m, n),
    b (..., m). Rows of A may depend on each other.

    cones: (nc, 3), which of the variables are fx, fy and the normal force fz of each contact.
    friction: mu of all contacts, or (..., nc): sqrt(fx^2 + fy^2) <= mu fz.
    lower, upper: (..., n); none by default. Those of fz are limits of normal forces (both 0: no contact); fx, fy have none.
    x, y, z: (..., n), (..., m), (..., n), a solution of something similar to start from.
    tolerance: of residuals, as shares of the largest term of their equations; 1e-9, in single precision 1e-4.
    max_time: [s]; what there is by then is returned. Of a batch, each packet may take so long.

    Leading axes of all are broadcast. The force that is nearest to (3, 4, 1) in a cone:

    >>> import numpy as np, saltus as sl
    >>> s = sl.fccqp(np.eye(3), [-3.0, -4.0, -1.0], np.zeros((0, 3)), [], cones=[(0, 1, 2)], friction=0.5)
    >>> str(s.status), s.x.round(6)
    ('solved', array([0.84, 1.12, 2.8 ]))
    """
    given = Q, c, A, b
    if not (Q.__class__ is c.__class__ is A.__class__ is b.__class__ is np.ndarray) or not (
        Q.dtype is c.dtype is A.dtype is b.dtype is DOUBLE
    ):
        if not on_gpu(Q):
            given = as_numbers(given)
        Q, c, A, b = given
    ready = prepared(
        c.shape[-1] if c.ndim else -1, b.shape[-1] if b.ndim else -1, listed(cones), number_letter(c), method, tolerance,
        max_iterations, max_time, float(friction) if isinstance(friction, float | int) else None,
    )  # fmt: skip
    if on_gpu(Q):
        ready = ready._replace(**{
            name: to_device(getattr(ready, name), Q)
            for name in ("limits", "lowest", "highest", "frictions") if getattr(ready, name) is not None
        })  # fmt: skip
    low = ready.lowest if lower is None else bounds(lower, "lower", np.maximum, LOWEST, c)
    high = ready.highest if upper is None else bounds(upper, "upper", np.minimum, HIGHEST, c)
    mu = ready.frictions if ready.frictions is not None else like(friction, "friction", c)
    inputs = (ready.options, Q, c, A, b, mu, low, high, ready.limits)
    if x is not None or z is not None:
        inputs = (*inputs, *start(x, y, z, c, b))
    solve = METHODS[method]
    try:
        found = solve.call(ready.size, inputs)
    except ValueError:
        refuse_shapes(ready.size, dict(zip(NAMES, (Q, c, A, b, mu, low, high), strict=True)))
        found = solve.call(ready.size, inputs, None, "mark")
    report = found[3]
    if (
        (report[1] == EMPTY)
        if report.ndim == 1
        else (report.__class__ is np.ndarray and (report[..., 1] == EMPTY).any())
    ):
        refuse_values(ready.cones, np.asarray(mu), np.asarray(low), np.asarray(high))
    return QPSolution(*found)


def number_letter(array: Any) -> str:
    return "f" if str(array.dtype).endswith("float32") else "d"


def as_numbers(given: Sequence[ArrayLike]) -> Any:
    arrays = [real_numbers(value, f"fccqp: {name}") for name, value in zip("QcAb", given, strict=True)]
    dtype = SINGLE if all(array.dtype == SINGLE for array in arrays) else DOUBLE
    return [array.astype(dtype, copy=False) for array in arrays]


def like(value: ArrayLike, name: str, array: Array) -> Array:
    """Numbers of the same type, on the same device."""
    if (value.__class__ is np.ndarray and value.dtype is array.dtype) or on_gpu(value):
        return value
    return real_numbers(value, f"fccqp: {name}").astype(array.dtype)


def bounds(value: ArrayLike, name: str, nearer: Any, end: float, array: Array) -> Array:
    value = like(value, name, array)
    return value if on_gpu(value) else nearer(value, end)  # type: ignore[no-any-return]


def start(x: ArrayLike | None, y: ArrayLike | None, z: ArrayLike | None, c: Array, b: Array) -> tuple[Array, Array]:
    for name, value, size in (("x", x, c.shape[-1]), ("y", y, b.shape[-1]), ("z", z, c.shape[-1])):
        if value is not None and np.shape(value)[-1:] != (size,):
            raise ValueError(f"fccqp: {name} has the shape {np.shape(value)}, expected (..., {size})")
    none = np.zeros(c.shape[-1], c.dtype.char)
    return none if x is None else like(x, "x", c), none if z is None else like(z, "z", c)


def listed(cones: ArrayLike) -> tuple[tuple[int, ...], ...]:
    """As a key; those who call often give a tuple of tuples."""
    if cones.__class__ is tuple:
        return cones  # type: ignore[no-any-return]
    array = np.asarray(cones)
    if array.size and (array.ndim != 2 or array.shape[-1] != 3 or array.dtype.kind not in "iu"):
        raise ValueError(f"fccqp: cones have the shape {array.shape} of {array.dtype}, expected (nc, 3) of integers")
    return tuple(map(tuple, array.tolist()))


@lru_cache(1024)
def prepared(
    n: int,
    m: int,
    cones: tuple[tuple[int, ...], ...],
    letter: str,
    method: str,
    tolerance: float | None,
    max_iterations: int | None,
    max_time: float | None,
    friction: float | None,
) -> Prepared:
    if n < 1 or m < 0:
        raise ValueError(
            f"fccqp: c and b have {max(n, 0)} and {max(m, 0)} entries, expected (..., n) and (..., m), n > 0"
        )
    if method not in METHODS:
        raise ValueError(f"fccqp: method is {method!r}, expected one of {', '.join(map(repr, METHODS))}")
    if tolerance is not None and not tolerance > 0:
        raise ValueError(f"fccqp: tolerance is {tolerance}, expected more than 0")
    if max_iterations is not None and max_iterations < 0:
        raise ValueError(f"fccqp: max_iterations is {max_iterations}, expected 0 or more")
    if max_time is not None and not max_time > 0:
        raise ValueError(f"fccqp: max_time is {max_time}, expected more than 0 [s]")
    places = [k for cone in cones for k in cone]
    if any(len(cone) != 3 for cone in cones) or len(set(places)) < len(places) or not all(0 <= k < n for k in places):
        raise ValueError(f"fccqp: cones are {cones}, expected (nc, 3) different variables, from 0 to {n - 1}")
    most = MAX_ITERATIONS[method] if max_iterations is None else max_iterations
    return Prepared(
        Size(n, m, cones),
        np.array(cones, np.int32).reshape(-1, 3),
        np.array([most, 0 if max_time is None else allowance(max_time)], np.int32),
        np.array([TOLERANCE[letter] if tolerance is None else tolerance], letter),
        np.full(n, LOWEST, letter),
        np.full(n, HIGHEST, letter),
        None if friction is None else np.full(len(cones), friction, letter),
    )  # fmt: skip


def refuse_shapes(size: Size, arrays: dict[str, Any]) -> None:
    """Say which array does not fit; nothing, if that is not why it was refused."""
    n, m, k = size.variables, size.equalities, len(size.cones)
    expected = {"Q": (n, n), "c": (n,), "A": (m, n), "b": (m,), "friction": (k,), "lower": (n,), "upper": (n,)}
    for name, array in arrays.items():
        shape = expected[name]
        if np.shape(array)[-len(shape) :] != shape:
            words = ", ".join(map(str, shape))
            raise ValueError(f"fccqp: {name} has the shape {np.shape(array)}, expected (..., {words})") from None


def refuse_values(cones: Array, friction: Array, lower: Array, upper: Array) -> None:
    """Say what no problem can have; nothing, if it is so of samples that are not finite."""
    if (friction < 0).any():
        raise ValueError(f"fccqp: friction has the entry {friction[friction < 0].flat[0]:g}, expected 0 or more")
    if (lower > upper).any():
        place = tuple(np.argwhere(lower > upper)[0].tolist())
        raise ValueError(f"fccqp: lower lies above upper, first at {place}")
    tangents, normals = cones[:, :2].ravel(), cones[:, 2]
    for name, beyond in (("lower", lower[..., tangents] > LOWEST), ("upper", upper[..., tangents] < HIGHEST)):
        if beyond.any():
            raise ValueError(
                f"fccqp: {name} bounds the tangential force of a cone, expected limits of its normal force alone"
            )
    if (upper[..., normals] < 0).any():
        raise ValueError("fccqp: upper is negative for the normal force of a cone, expected 0 or more")


__all__ = ["fccqp"]
