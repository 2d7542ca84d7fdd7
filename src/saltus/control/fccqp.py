"""Quadratic programs of whole-body control, with friction cones as they are: for those who have matrices.

| `method` | |
|---|---|
| `interior_point` | equalities are eliminated, then a primal-dual interior point method (reduced_program.py) |
| `admm` | the reference's algorithm 1: all iterates meet equalities, and come nearer to cones and bounds (admm.py) |

Reference: B. Acosta, FCCQP: A whole-body QP with full friction cone constraints (2024).
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike, on_gpu, real_numbers
from saltus.constraints.precision import cast, is_single
from saltus.control.admm import _admm
from saltus.control.checks import checked_count, checked_positive
from saltus.control.convexity import EVEN
from saltus.control.deadline import allowance
from saltus.control.quadratic_program import EMPTY, PROBLEM, QPSolution, Size, holds
from saltus.control.reduced_program import _reduced_program
from saltus.kernel.gpu_arrays import to_device

DOUBLE = np.dtype(np.float64)

METHODS = {"interior_point": _reduced_program, "admm": _admm}

TOLERANCE, ROUNDED = {"interior_point": 1e-9, "admm": 1e-4}, 1e-5
"""Of residuals, each as a share of the largest term of its equation; at least that of what is given in single precision."""

MAX_ITERATIONS = {"interior_point": 60, "admm": 15}

RHO = 5e-5
"""With the tolerance and the iterations of `admm`, the reference's table 1."""

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
    frictions: Array | None


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
    method: Literal["interior_point", "admm"] = "interior_point",
    rho: float = RHO,
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
    x, y, z: (..., n), (..., m), (..., n), of something similar to start from, as far as it is better than nothing;
        y follows from the others.
    rho: of the method `admm`: how strongly x is drawn to a copy of it that lies within cones and bounds, in units of Q.
    tolerance: of residuals, as shares of the largest term of their equations; 1e-9, of programs in single precision 1e-5, by
        `admm` 1e-4.
    max_iterations: 60; by `admm` 15.
    max_time: [s]; what there is by then is returned. Of a batch, each packet may take so long.

    Leading axes of all are broadcast. Programs of single precision are solved in double, and their solutions rounded.

    The force that is nearest to (3, 4, 1) in a cone:

    >>> import numpy as np, saltus as sl
    >>> s = sl.fccqp(np.eye(3), [-3.0, -4.0, -1.0], np.zeros((0, 3)), [], cones=[(0, 1, 2)], friction=0.5)
    >>> str(s.status), s.x.round(6)
    ('solved', array([0.84, 1.12, 2.8 ]))
    """
    given: Any = Q, c, A, b
    if not (Q.__class__ is c.__class__ is A.__class__ is b.__class__ is np.ndarray) or not (
        Q.dtype is c.dtype is A.dtype is b.dtype is DOUBLE
    ):
        if not on_gpu(Q):
            given = [real_numbers(value, f"fccqp: {name}") for name, value in zip("QcAb", given, strict=True)]
        if all(map(is_single, given)):
            again = partial(
                fccqp, cones=cones, friction=friction, lower=lower, upper=upper, x=x, y=y, z=z, method=method, rho=rho,
                tolerance=max(ROUNDED, TOLERANCE.get(method, ROUNDED)) if tolerance is None else tolerance,
                max_iterations=max_iterations, max_time=max_time,
            )  # fmt: skip
            return QPSolution(*(cast(found, np.float32) for found in again(*(cast(x, np.float64) for x in given))))
        Q, c, A, b = (cast(value, np.float64) for value in given)
    ready = prepared(
        c.shape[-1] if c.ndim else -1, b.shape[-1] if b.ndim else -1, listed(cones), method, rho, tolerance,
        max_iterations, max_time, float(friction) if is_one_number(friction) else None,
    )  # fmt: skip
    if on_gpu(Q):
        there: list[Any] = [x if x is None else to_device(x, Q) for x in ready[3:]]
        ready = Prepared(*ready[:3], *there)
    low = ready.lowest if lower is None else bounds(lower, "lower", np.maximum, LOWEST, c)
    high = ready.highest if upper is None else bounds(upper, "upper", np.minimum, HIGHEST, c)
    mu = ready.frictions if ready.frictions is not None else like(friction, "friction", c)
    inputs: tuple[Any, ...] = (ready.options, Q, c, A, b, mu, low, high, ready.limits)
    if x is not None or y is not None or z is not None:
        inputs = (*inputs, *start(x, y, z, c, b))
    solve = METHODS[method]
    try:
        found = solve.call(ready.size, inputs)
    except ValueError:
        refuse_shapes(ready.size, dict(zip(NAMES, (Q, c, A, b, mu, low, high), strict=True)))
        found = solve.call(ready.size, inputs, None, "mark")
    if holds(found[3], EMPTY):
        refuse_values(
            ready.cones, np.asarray(mu), np.asarray(low), np.asarray(high), np.asarray(Q), float(ready.limits[0])
        )
    return QPSolution(*found)


def like(value: ArrayLike, name: str, array: Array) -> Array:
    """Numbers of the same type, on the same device."""
    if (value.__class__ is np.ndarray and value.dtype is DOUBLE) or (on_gpu(value) and not is_single(value)):
        found: Array = value
        return found
    return cast(value if on_gpu(value) else real_numbers(value, f"fccqp: {name}"), np.float64)  # type: ignore[no-any-return]


def bounds(value: ArrayLike, name: str, nearer: Any, end: float, array: Array) -> Array:
    value = like(value, name, array)
    found: Array = value if on_gpu(value) else nearer(value, end)
    return found


def start(x: ArrayLike | None, y: ArrayLike | None, z: ArrayLike | None, c: Array, b: Array) -> tuple[Array, ...]:
    for name, value, size in (("x", x, c.shape[-1]), ("y", y, b.shape[-1]), ("z", z, c.shape[-1])):
        if value is not None and np.shape(value)[-1:] != (size,):
            raise ValueError(f"fccqp: {name} has the shape {np.shape(value)}, expected (..., {size})")
    if x is None and z is None:
        return ()
    none = np.zeros(c.shape[-1])
    return none if x is None else like(x, "x", c), none if z is None else like(z, "z", c)


def is_one_number(value: Any) -> bool:
    return isinstance(value, float | int | np.integer | np.floating) or (
        isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "fiu"
    )


def listed(cones: ArrayLike) -> tuple[Any, ...]:
    """As a key; those who call often give a tuple of tuples."""
    if isinstance(cones, tuple):
        try:
            hash(cones)
            return cones
        except TypeError:
            pass
    array = real_numbers(cones, "fccqp: cones")
    return tuple(map(tuple, array.tolist())) if array.ndim == 2 else tuple(array.ravel().tolist())


def checked_cones(cones: tuple[Any, ...], n: int) -> tuple[tuple[int, int, int], ...]:
    array = real_numbers(cones, "fccqp: cones") if cones else np.zeros((0, 3))
    if array.ndim != 2 or array.shape[-1] != 3 or (array % 1 != 0).any():
        raise ValueError(f"fccqp: cones are {cones}, expected (nc, 3) of whole numbers")
    places = array.ravel().tolist()
    if len(set(places)) < len(places) or not all(0 <= k < n for k in places):
        raise ValueError(f"fccqp: cones are {cones}, expected (nc, 3) different variables, from 0 to {n - 1}")
    return tuple((int(a), int(b), int(c)) for a, b, c in array)


@lru_cache(1024)
def prepared(
    n: int,
    m: int,
    cones: tuple[Any, ...],
    method: str,
    rho: float,
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
    rho = checked_positive(rho, "fccqp: rho")
    tolerance = TOLERANCE[method] if tolerance is None else checked_positive(tolerance, "fccqp: tolerance")
    most = MAX_ITERATIONS[method] if max_iterations is None else checked_count(max_iterations, "fccqp: max_iterations")
    ticks = 0 if max_time is None else allowance(checked_positive(max_time, "fccqp: max_time", " [s]"))
    cones = checked_cones(cones, n)
    return Prepared(
        Size(n, m, cones),
        np.array(cones, np.int32).reshape(-1, 3),
        np.array([most, ticks], np.int32),
        np.array([tolerance, *([rho] if method == "admm" else [])]),
        np.full(n, LOWEST),
        np.full(n, HIGHEST),
        None if friction is None else np.full(len(cones), friction),
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


def refuse_values(cones: Array, friction: Array, lower: Array, upper: Array, Q: Array, tolerance: float) -> None:
    """Say what no problem can have; nothing, if it is so of samples that are not finite."""
    sizes = np.abs(np.diagonal(Q, axis1=-2, axis2=-1))
    skew = np.abs(Q - np.swapaxes(Q, -1, -2)) > max(tolerance, EVEN) * (sizes[..., None] + sizes[..., None, :])
    if skew.any():
        place = tuple(np.argwhere(skew)[0].tolist())
        *sample, i, j = place
        other = (*sample, j, i)
        raise ValueError(
            f"fccqp: Q is not symmetric: Q{list(place)} is {Q[place]}, Q{list(other)} is {Q[other]}, expected x'Qx by a "
            "symmetric Q, as (Q + Q') / 2"
        )
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
