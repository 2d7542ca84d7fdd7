"""Between the kernels' named tuples and arrays."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

from saltus.kernel.memory import ld, leaves
from saltus.spatial.algebra import SE3, Mat3, Motion, Quat, Sym3, Vec3
from saltus.spatial.inertia import Rigid, Sym6
from saltus.spatial.lie import Mat6
from saltus.spatial.quaternion import rotation


def make(cls: Any, numbers: Any) -> Any:
    """A tuple from its numbers, in the order of memory; plain floats."""
    return ld([float(x) for x in np.ravel(np.asarray(numbers, float))], 0, cls)


def array(value: Any) -> np.ndarray:
    """A tuple as the array that it stands for: vectors, 3x3, 4x4 and 6x6 matrices."""
    if isinstance(value, Mat3):
        return np.array(value, float).reshape(3, 3)
    if isinstance(value, Sym3):
        return np.array(value, float)[[0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(3, 3)
    if isinstance(value, SE3):
        return np.block([[array(value.R), array(value.p)[:, None]], [np.zeros((1, 3)), 1.0]])
    if isinstance(value, Mat6):
        return np.block([[array(value.A), array(value.B)], [array(value.C), array(value.D)]])
    if isinstance(value, Sym6):
        return np.block([[array(value.A), array(value.B)], [array(value.B).T, array(value.C)]])
    if isinstance(value, Rigid):
        h = skew(array(value.h))
        return np.block([[value.m * np.eye(3), -h], [h, array(value.J)]])
    return np.array(leaves(value), float)


def skew(u: Any) -> np.ndarray:
    x, y, z = (float(c) for c in u)
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def random_rotation(rng: np.random.Generator) -> Quat:
    q = rng.normal(size=4)
    return make(Quat, q / np.linalg.norm(q))


def random_placement(rng: np.random.Generator) -> SE3:
    return SE3(rotation(random_rotation(rng)), make(Vec3, rng.normal(size=3)))


def random_motion(rng: np.random.Generator) -> Motion:
    return make(Motion, rng.normal(size=6))


# --- matrices of 50 digits ---
DIGITS = 50


def exact(matrix: np.ndarray) -> mpmath.matrix:
    return mpmath.matrix(np.asarray(matrix, float).tolist())


def expm(matrix: np.ndarray) -> np.ndarray:
    """The exponential of a matrix, computed with 50 digits."""
    with mpmath.workdps(DIGITS):
        return np.array(mpmath.expm(exact(matrix)).tolist(), float)


def phi(matrix: np.ndarray) -> np.ndarray:
    """The integral of exp(s matrix) over s from 0 to 1, computed with 50 digits."""
    n = len(matrix)
    both = np.block([[matrix, np.eye(n)], [np.zeros((n, 2 * n))]])
    return expm(both)[:n, n:]


def inverse(matrix: np.ndarray) -> np.ndarray:
    with mpmath.workdps(DIGITS):
        return np.array((exact(matrix) ** -1).tolist(), float)
