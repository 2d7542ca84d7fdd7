"""What a model's numbers must satisfy, and the error raised when they do not.

Every message names the thing that is wrong, where it is, and what was expected.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saltus.arrays import real_numbers

Array = NDArray[np.float64]

ROTATION_TOLERANCE = 1e-6  # largest entry of R R^T - 1; rotations written with float32 pass
INERTIA_TOLERANCE = 1e-6  # relative to the largest principal inertia; files round to a few digits
NEGLIGIBLE = (
    1e-12  # inertia by mass [m^2], that of a thousandth of a millimetre: programs write such for zero, of any sign
)


class ModelError(ValueError):
    """A robot model, or the file that describes it, is not valid."""


def read_only(value: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    """A read-only float64 copy of `value`, which must have this shape and hold no NaN.

    >>> read_only([0, 0, 1], (3,), "the axis")
    array([0., 0., 1.])
    """
    try:
        array = np.array(real_numbers(value, what), dtype=np.float64, order="C")
    except TypeError as error:
        raise ModelError(f"{error}; expected numbers of shape {shape}") from None
    if array.shape != shape:
        raise ModelError(f"{what} has shape {array.shape}, expected {shape}")
    if any(map(math.isnan, array.flat)):  # for a few numbers faster than NumPy
        raise ModelError(f"{what} contains NaN: {shown(array, np.isnan(array))}")
    array.setflags(write=False)
    return array


def finite(value: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    """Like `read_only`, and infinities are refused too."""
    array = read_only(value, shape, what)
    if any(map(math.isinf, array.flat)):
        raise ModelError(f"{what} contains an infinity: {shown(array, np.isinf(array))}")
    return array


def not_negative(value: ArrayLike, size: int, what: str, *, infinite: bool = False) -> Array:
    """One number for all, or `size` of them, none negative; as a read-only array (size,)."""
    array = spread(value, size, what)
    if (array < 0).any():
        raise ModelError(f"{what} is {shown(array, array < 0)}, expected nothing negative")
    if not infinite and np.isinf(array).any():
        raise ModelError(f"{what} contains an infinity: {shown(array, np.isinf(array))}")
    return array


def finite_each(value: ArrayLike, size: int, what: str) -> Array:
    """One finite number for all, or `size` of them; as a read-only array (size,)."""
    array = spread(value, size, what)
    if np.isinf(array).any():
        raise ModelError(f"{what} contains an infinity: {shown(array, np.isinf(array))}")
    return array


def spread(value: Any, size: int, what: str) -> Array:
    """One number for all, or `size` of them; as a read-only array (size,)."""
    if np.isscalar(value) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return read_only([value] * size, (size,), what)  # type: ignore[arg-type]
    return read_only(value, (size,), what)


def shown(array: Array, wrong: NDArray[np.bool_]) -> str:
    """A small array whole; of a large one, the first number that is wrong, and where it is."""
    if array.size <= 16:
        return str(array.tolist())
    place = tuple(np.argwhere(wrong)[0].tolist())
    return f"{array[place]} at {list(place)}"


def whole_number(value: Any, what: str) -> int:
    """An integer, of Python's or NumPy's."""
    try:
        return operator.index(value)
    except TypeError:
        raise ModelError(f"{what} is {value!r}, expected a whole number") from None


def checked_name(name: Any, what: str) -> str:
    """A name, which is a text, and not empty."""
    if not isinstance(name, str) or not name:
        raise ModelError(f"the name of {what} is {name!r}, expected a text that is not empty")
    return name


def rigid_placement(value: ArrayLike, what: str) -> Array:
    """A homogeneous matrix (4, 4) of a proper rotation and a translation [m]."""
    matrix = finite(value, (4, 4), what)
    if matrix[3].tolist() != [0.0, 0.0, 0.0, 1.0]:
        raise ModelError(f"{what} has the last row {matrix[3].tolist()}, expected [0, 0, 0, 1]")
    (a, b, c, _), (d, e, f, _), (g, h, i, _), _ = matrix.tolist()  # for so few numbers faster than NumPy
    products = (a * a + b * b + c * c - 1.0, d * d + e * e + f * f - 1.0, g * g + h * h + i * i - 1.0,
                a * d + b * e + c * f, a * g + b * h + c * i, d * g + e * h + f * i)  # fmt: skip
    error = max(map(abs, products))
    if error > ROTATION_TOLERANCE:
        raise ModelError(f"the rotation of {what} is not orthonormal (R R^T is off by {error:.1e})")
    if a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g) < 0:
        raise ModelError(f"the rotation of {what} is a reflection (its determinant is -1)")
    return matrix


def unit_vector(value: ArrayLike, what: str) -> Array:
    """`value` (3,) scaled to length 1."""
    vector = finite(value, (3,), what)
    largest = float(np.abs(vector).max())
    if largest < 1e-12:
        raise ModelError(f"{what} is {vector.tolist()}, expected a direction, not zero")
    vector = vector / max(largest, 1.0)  # the square of a huge number is none
    return read_only(vector / np.linalg.norm(vector), (3,), what)


def refuse_negative_moments(mass: float, inertia: Array, where: str) -> None:
    """A `ModelError` if the diagonal of an inertia (3, 3) [kg m^2], as a file has it, is negative by more than rounding."""
    moments = np.diagonal(inertia)
    if (moments < -NEGLIGIBLE * mass).any():
        raise ModelError(f"{where}: its moments of inertia are {moments.tolist()}, expected none negative")


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
