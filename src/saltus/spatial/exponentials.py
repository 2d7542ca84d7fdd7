"""Exponential and logarithm of SO(3) and SE(3) and their Jacobians, on arrays: rotations (3, 3), placements (4, 4).

    exp3(w) turns by |w| about w,      exp6(m) is the placement reached after unit time at the constant local velocity m

    exp(x + d) = exp(x) exp(Jexp(x) d),      log(exp(x) exp(d)) = x + Jlog(exp(x)) d,      to first order

The kernels are those of lie.py, the conventions Pinocchio's: motions linear first, derivatives in the local frame. What is
turned or placed is checked as configurations of robots are: rotations must be orthonormal, and turn to the right.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saltus.arrays import Array, ArrayLike, OnInvalid, on_gpu, real_numbers
from saltus.kernel import (
    Algorithm,
    Configurations,
    Filled,
    Layout,
    Number,
    Part,
    Tables,
    declare,
    fabs,
    kernel,
    ld,
    less,
    maximum,
    select,
    sqrt,
    st,
    zero,
)
from saltus.spatial.algebra import Mat3, Motion, Quat, Vec3, cross, dot
from saltus.spatial.lie import (
    exp_quaternion,
    exp_translation,
    log_pose,
    log_quaternion,
    right_jacobian,
    right_jacobian_inverse,
    right_jacobian_inverse_se3,
    right_jacobian_se3,
    unit,
)
from saltus.spatial.quaternion import rotation


class Element:
    """What stands in the place of a model: vectors or matrices of so many numbers."""

    specialised = varied = weightless = False
    coupling = None

    def __init__(self, what: str, shape: tuple[int, ...]) -> None:
        self.name, self.shape, self.size = what, shape, int(np.prod(shape))
        self.filled: dict[Tables, Filled] = {}
        self.quick: dict[Any, Any] = {}
        self.parts: dict[Part, Any] = {}

    def neutral(self) -> NDArray[np.float64]:
        return np.eye(self.shape[0]).ravel() if len(self.shape) == 2 else np.zeros(self.size)


VECTOR, MOTION = Element("rotation vector", (3,)), Element("motion", (6,))
ROTATION, PLACEMENT = Element("rotation", (3, 3)), Element("placement", (4, 4))


@kernel
def defects(element, x):
    """How far a matrix is from a rotation or placement; the angle of a vector."""
    o = zero(x)
    if element.nq == VECTOR.size:
        return o, norm(ld(x, 0, Vec3))
    if element.nq == MOTION.size:
        return o, norm(ld(x, 3, Vec3))
    if element.nq == ROTATION.size:
        return off_rotation(ld(x, 0, Mat3)), o
    below = maximum(maximum(fabs(ld(x, 12)), fabs(ld(x, 13))), maximum(fabs(ld(x, 14)), fabs(ld(x, 15) - 1.0)))
    return maximum(off_rotation(turned(x)), below), o


@kernel
def norm(a):
    return sqrt(dot(a, a))


@kernel
def off_rotation(R):
    """The largest entry of R R^T - 1, and how far a determinant is from 1: that of a reflection is -1."""
    x, y, z = Vec3(R.xx, R.xy, R.xz), Vec3(R.yx, R.yy, R.yz), Vec3(R.zx, R.zy, R.zz)
    lengths = maximum(maximum(fabs(dot(x, x) - 1.0), fabs(dot(y, y) - 1.0)), fabs(dot(z, z) - 1.0))
    angles = maximum(maximum(fabs(dot(x, y)), fabs(dot(y, z))), fabs(dot(z, x)))
    return maximum(maximum(lengths, angles), 0.5 * fabs(dot(cross(x, y), z) - 1.0))


def flaws(element: Element, x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The same of arrays (..., size)."""
    x = np.asarray(x, np.float64)
    if element.size in (VECTOR.size, MOTION.size):
        return np.zeros(x.shape[:-1]), np.linalg.norm(x[..., -3:], axis=-1)
    matrix = x.reshape(*x.shape[:-1], *element.shape)
    R, below = matrix[..., :3, :3], np.abs(matrix[..., 3:, :] - np.eye(4)[3]) if element is PLACEMENT else 0.0
    product = np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)).max(axis=(-2, -1))
    product = np.maximum(product, 0.5 * np.abs(np.linalg.det(R) - 1.0))
    return np.maximum(product, np.max(below, axis=(-2, -1)) if element is PLACEMENT else 0.0), np.zeros(x.shape[:-1])


SHARE = 0.999
"""Of tolerances, in words: the kernels' own rounding may differ."""


def not_allowed(element: Element, x: NDArray[Any], number: Number) -> NDArray[np.bool_]:
    off, angle = flaws(element, x)
    return np.asarray((off > SHARE * number.unit_tolerance) | (angle > SHARE * number.largest_angle))


def explain(element: Element, x: NDArray[Any], number: Number) -> tuple[tuple[int, ...], str] | None:
    wrong = np.argwhere(not_allowed(element, x, number))
    if not len(wrong):
        return None
    place = tuple(wrong[0].tolist())
    off, angle = (float(each[place]) for each in flaws(element, x))
    if angle:
        return place, f"its angle is {angle:.9g} rad, expected at most {number.largest_angle:g} in {number.bits} bits"
    what = "the last row of a placement is 0, 0, 0, 1, and " if element is PLACEMENT else ""
    return place, f"off by {off:.3g}, expected a {element.name}: {what}R R^T = 1 with determinant 1"


def measure(element: Element) -> dict[str, int]:
    return {"nq": element.size}


PART = Part(("nq",), Layout(), Layout(), measure, lambda element, ints, reals: None)
TABLES = Tables([PART], Configurations(defects, explain, not_allowed, Element.neutral))
algorithm = partial(declare, TABLES, work=Layout())


@kernel
def turned(x):
    """The rotation of a placement."""
    return Mat3(ld(x, 0), ld(x, 1), ld(x, 2), ld(x, 4), ld(x, 5), ld(x, 6), ld(x, 8), ld(x, 9), ld(x, 10))


@kernel
def quaternion_of(R):
    """The unit quaternion of a rotation, found from the largest of its numbers: right up to turns by pi."""
    w = Quat(R.zy - R.yz, R.xz - R.zx, R.yx - R.xy, 1.0 + R.xx + R.yy + R.zz)
    x = Quat(1.0 + R.xx - R.yy - R.zz, R.yx + R.xy, R.xz + R.zx, R.zy - R.yz)
    y = Quat(R.yx + R.xy, 1.0 - R.xx + R.yy - R.zz, R.zy + R.yz, R.xz - R.zx)
    z = Quat(R.xz + R.zx, R.zy + R.yz, 1.0 - R.xx - R.yy + R.zz, R.yx - R.xy)
    first, along_x = larger(w, w.w, x, x.x)
    second, along_y = larger(y, y.y, z, z.z)
    best, square = larger(first, along_x, second, along_y)
    k = 0.5 / sqrt(square)
    return unit(Quat(best.x * k, best.y * k, best.z * k, best.w * k))


@kernel
def larger(a, size_a, b, size_b):
    """Whichever is larger, and its size."""
    flip = less(size_a, size_b)
    chosen = Quat(select(flip, b.x, a.x), select(flip, b.y, a.y), select(flip, b.z, a.z), select(flip, b.w, a.w))
    return chosen, select(flip, size_b, size_a)


@kernel
def log_of(x):
    """The motion whose exponential is a placement."""
    return log_pose(quaternion_of(turned(x)), Vec3(ld(x, 3), ld(x, 7), ld(x, 11)))


@kernel
def store(J, row, column, A):
    """A as a block of a matrix (6, 6)."""
    st(J, 6 * row + column, Vec3(A.xx, A.xy, A.xz))
    st(J, 6 * (row + 1) + column, Vec3(A.yx, A.yy, A.yz))
    st(J, 6 * (row + 2) + column, Vec3(A.zx, A.zy, A.zz))


@kernel
def store_blocks(J, M):
    store(J, 0, 0, M.A)
    store(J, 0, 3, M.B)
    store(J, 3, 0, M.C)
    store(J, 3, 3, M.D)


@algorithm(inputs={"w": "nq"}, outputs={"R": "3 3"})
def _exp3(element, w, work, R):
    st(R, 0, rotation(exp_quaternion(ld(w, 0, Vec3))))


@algorithm(inputs={"R": "nq"}, outputs={"w": "3"})
def _log3(element, R, work, w):
    st(w, 0, log_quaternion(quaternion_of(ld(R, 0, Mat3))))


@algorithm(inputs={"w": "nq"}, outputs={"J": "3 3"})
def _Jexp3(element, w, work, J):
    st(J, 0, right_jacobian(ld(w, 0, Vec3)))


@algorithm(inputs={"R": "nq"}, outputs={"J": "3 3"})
def _Jlog3(element, R, work, J):
    st(J, 0, right_jacobian_inverse(log_quaternion(quaternion_of(ld(R, 0, Mat3)))))


@algorithm(inputs={"m": "nq"}, outputs={"X": "4 4"})
def _exp6(element, m, work, X):
    motion = ld(m, 0, Motion)
    R, p = rotation(exp_quaternion(motion.ang)), exp_translation(motion)
    st(X, 0, (R.xx, R.xy, R.xz, p.x, R.yx, R.yy, R.yz, p.y, R.zx, R.zy, R.zz, p.z, 0.0, 0.0, 0.0, 1.0))


@algorithm(inputs={"X": "nq"}, outputs={"m": "6"})
def _log6(element, X, work, m):
    st(m, 0, log_of(X))


@algorithm(inputs={"m": "nq"}, outputs={"J": "6 6"})
def _Jexp6(element, m, work, J):
    store_blocks(J, right_jacobian_se3(ld(m, 0, Motion)))


@algorithm(inputs={"X": "nq"}, outputs={"J": "6 6"})
def _Jlog6(element, X, work, J):
    store_blocks(J, right_jacobian_inverse_se3(log_of(X)))


def call(function: Algorithm, element: Element, given: ArrayLike, out: Array | None, on_invalid: OnInvalid) -> Array:
    """An algorithm on arrays of elements, whose matrices kernels see row by row as vectors."""
    what = f"{function.name}: {function.inputs[0].name}"
    array = given if on_gpu(given) else real_numbers(given, what)
    shape, axes = tuple(array.shape), len(element.shape)
    if shape[len(shape) - axes :] != element.shape:
        expected = ", ".join(map(str, ("...", *element.shape)))
        raise ValueError(f"{what} has shape {shape}, expected ({expected})")
    if axes > 1:
        array = array.reshape(*shape[:-axes], element.size)
    found: Array = function.call(element, (array,), out, on_invalid)
    return found


def exp3(w: ArrayLike, *, out: Array | None = None, on_invalid: OnInvalid = "raise") -> Array:
    """The rotation (..., 3, 3) about `w` (..., 3), by its length [rad].

    >>> import numpy as np, saltus as sl
    >>> sl.exp3([0.0, 0.0, np.pi / 2]).round(6) + 0.0
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    """
    return call(_exp3, VECTOR, w, out, on_invalid)


def log3(R: ArrayLike, *, out: Array | None = None, on_invalid: OnInvalid = "raise") -> Array:
    """The rotation vector (..., 3) [rad], of length at most pi, of the rotation `R` (..., 3, 3).

    >>> import numpy as np, saltus as sl
    >>> sl.log3(np.diag([1.0, -1.0, -1.0])).round(6)
    array([3.141593, 0.      , 0.      ])
    """
    return call(_log3, ROTATION, R, out, on_invalid)


def Jexp3(w: ArrayLike, *, out: Array | None = None, on_invalid: OnInvalid = "raise") -> Array:
    """The Jacobian J (..., 3, 3) of `exp3` at `w` (..., 3): exp3(w + d) = exp3(w) exp3(J d) to first order.

    >>> import numpy as np, saltus as sl
    >>> w, d = np.array([0.3, -1.0, 2.0]), np.array([1e-6, 2e-6, 0.0])
    >>> bool(np.allclose(sl.exp3(w + d), sl.exp3(w) @ sl.exp3(sl.Jexp3(w) @ d), atol=1e-11))
    True
    """
    return call(_Jexp3, VECTOR, w, out, on_invalid)


def Jlog3(R: ArrayLike, *, out: Array | None = None, on_invalid: OnInvalid = "raise") -> Array:
    """The Jacobian J (..., 3, 3) of `log3` at `R` (..., 3, 3): log3(R exp3(d)) = log3(R) + J d to first order.

    >>> import numpy as np, saltus as sl
    >>> w = np.array([0.3, -1.0, 2.0])
    >>> bool(np.allclose(sl.Jlog3(sl.exp3(w)) @ sl.Jexp3(w), np.eye(3)))
    True
    """
    return call(_Jlog3, ROTATION, R, out, on_invalid)


def exp6(m: ArrayLike, *, out: Array | None = None, on_invalid: OnInvalid = "raise") -> Array:
    """The placement (..., 4, 4) [m] reached after unit time at the local velocity `m` (..., 6) [m, rad], linear first.

    >>> import saltus as sl
    >>> sl.exp6([1.0, 2.0, 3.0, 0.0, 0.0, 0.0])
    array([[1., 0., 0., 1.],
           [0., 1., 0., 2.],
           [0., 0., 1., 3.],
           [0., 0., 0., 1.]])
    """
    return call(_exp6, MOTION, m, out, on_invalid)


def log6(X: ArrayLike, *, out: Array | None = None, on_invalid: OnInvalid = "raise") -> Array:
    """The motion (..., 6) [m, rad], linear first, whose exponential is the placement `X` (..., 4, 4); turns of at most pi.

    >>> import numpy as np, saltus as sl
    >>> m = np.array([0.1, -0.2, 0.3, 1.0, -2.0, 0.5])
    >>> bool(np.allclose(sl.log6(sl.exp6(m)), m))
    True
    """
    return call(_log6, PLACEMENT, X, out, on_invalid)


def Jexp6(m: ArrayLike, *, out: Array | None = None, on_invalid: OnInvalid = "raise") -> Array:
    """The Jacobian J (..., 6, 6) of `exp6` at `m` (..., 6): exp6(m + d) = exp6(m) exp6(J d) to first order.

    >>> import numpy as np, saltus as sl
    >>> bool(np.allclose(sl.Jexp6(np.zeros(6)), np.eye(6)))
    True
    """
    return call(_Jexp6, MOTION, m, out, on_invalid)


def Jlog6(X: ArrayLike, *, out: Array | None = None, on_invalid: OnInvalid = "raise") -> Array:
    """The Jacobian J (..., 6, 6) of `log6` at `X` (..., 4, 4): log6(X exp6(d)) = log6(X) + J d to first order.

    >>> import numpy as np, saltus as sl
    >>> m = np.array([0.1, -0.2, 0.3, 1.0, -2.0, 0.5])
    >>> bool(np.allclose(sl.Jlog6(sl.exp6(m)) @ sl.Jexp6(m), np.eye(6)))
    True
    """
    return call(_Jlog6, PLACEMENT, X, out, on_invalid)
