"""What a model's numbers must satisfy, and the error raised when they do not.

Every message names the thing that is wrong, where it is, and what was expected.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

ROTATION_TOLERANCE = 1e-6  # largest entry of R R^T - 1; rotations written with float32 pass
INERTIA_TOLERANCE = 1e-6  # relative to the largest principal inertia; files round to a few digits


class ModelError(ValueError):
    """A robot model, or the file that describes it, is not valid."""


def read_only(value: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    """A read-only float64 copy of `value`, which must have this shape and hold no NaN.

    >>> read_only([0, 0, 1], (3,), "the axis")
    array([0., 0., 1.])
    """
    try:
        array = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ModelError(f"{what} is not an array of numbers of shape {shape}: {error}") from None
    if array.shape != shape:
        raise ModelError(f"{what} has shape {array.shape}, expected {shape}")
    if any(map(math.isnan, array.flat)):  # for a few numbers faster than NumPy
        raise ModelError(f"{what} contains NaN: {array.tolist()}")
    array.setflags(write=False)
    return array


def finite(value: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    """Like `read_only`, and infinities are refused too."""
    array = read_only(value, shape, what)
    if any(map(math.isinf, array.flat)):
        raise ModelError(f"{what} contains an infinity: {array.tolist()}")
    return array


def not_negative(value: ArrayLike, size: int, what: str) -> Array:
    """One number for all, or `size` of them, none negative; as a read-only array (size,)."""
    array = spread(value, size, what)
    if (array < 0).any():
        raise ModelError(f"{what} is {array.tolist()}, expected nothing negative")
    return array


def spread(value: ArrayLike, size: int, what: str) -> Array:
    """One number for all, or `size` of them; as a read-only array (size,)."""
    return read_only(np.full(size, value) if np.ndim(value) == 0 else value, (size,), what)


def rigid_placement(value: ArrayLike, what: str) -> Array:
    """A homogeneous matrix (4, 4) of a proper rotation and a translation [m]."""
    matrix = finite(value, (4, 4), what)
    if matrix[3].tolist() != [0.0, 0.0, 0.0, 1.0]:
        raise ModelError(f"{what} has the last row {matrix[3].tolist()}, expected [0, 0, 0, 1]")
    rotation = matrix[:3, :3]
    error = np.abs(rotation @ rotation.T - np.eye(3)).max()
    if error > ROTATION_TOLERANCE:
        raise ModelError(f"the rotation of {what} is not orthonormal (R R^T is off by {error:.1e})")
    if np.linalg.det(rotation) < 0:
        raise ModelError(f"the rotation of {what} is a reflection (its determinant is -1)")
    return matrix


def unit_vector(value: ArrayLike, what: str) -> Array:
    """`value` (3,) scaled to length 1."""
    vector = finite(value, (3,), what)
    length = float(np.linalg.norm(vector))
    if length < 1e-12:
        raise ModelError(f"{what} is {vector.tolist()}, expected a direction, not zero")
    return read_only(vector / length, (3,), what)


def inertia_flaw(mass: float, inertia: Array) -> str | None:
    """Why no body can have this mass [kg] and rotational inertia (3, 3) [kg m^2]; None if one can.

    >>> inertia_flaw(1.0, np.diag([1.0, 1.0, 3.0]))
    'its principal inertias [1, 1, 3] violate the triangle inequality (two must add up to at least the third)'
    """
    scale = float(np.abs(inertia).max())
    if mass == 0 and scale > 0:
        return "it has inertia but no mass"
    if np.abs(inertia - inertia.T).max() > INERTIA_TOLERANCE * scale:
        return f"its inertia is not symmetric: {inertia.tolist()}"
    principal = np.linalg.eigvalsh(inertia)
    shown = "[" + ", ".join(f"{value:.6g}" for value in principal) + "]"
    slack = INERTIA_TOLERANCE * scale
    if principal[0] < -slack:
        return f"its principal inertias {shown} are not all positive"
    if principal[0] + principal[1] < principal[2] - slack:
        return f"its principal inertias {shown} violate the triangle inequality (two must add up to at least the third)"
    return None
