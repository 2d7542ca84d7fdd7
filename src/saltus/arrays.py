"""The types of public functions' arguments and results, and what is taken for an array of numbers."""

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
"""A NumPy array of float64 (float32 if the inputs are); for CUDA inputs, an array on the same device."""

ArrayLike: TypeAlias = Any
"""What NumPy turns into an array of numbers, or an array with `__cuda_array_interface__`."""

OnInvalid: TypeAlias = Literal["raise", "mark"]
"""What to do with samples whose inputs hold a NaN, an infinity or a configuration that is not of unit length: refuse the
whole batch with a ValueError that names the first of them, or give NaN in all outputs of those samples, and all others what
they would have got without them."""


def real_numbers(value: ArrayLike, what: str) -> NDArray[Any]:
    """`value` as an array of real numbers, of whatever type; a TypeError says what it is instead.

    NumPy itself reads texts as numbers, drops imaginary parts, and forgets what is masked.

    >>> real_numbers([1, 2.5], "q")
    array([1. , 2.5])
    """
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:  # ragged lists; whatever a value's own __array__ may raise
        raise TypeError(f"{what} is not an array of numbers ({error})") from None
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{what} is not an array of numbers, but of {array.dtype}")
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise TypeError(f"{what} is an array with masked entries, expected one without")
    return array


def on_gpu(x: Any) -> bool:
    """Whether something is an array on a GPU.

    >>> on_gpu(np.zeros(3))
    False
    """
    if x.__class__ in (np.ndarray, float):
        return False
    library = x.__class__.__module__  # those whose interface takes long to make are asked otherwise
    if library.startswith("torch"):
        return bool(getattr(x, "is_cuda", False))
    return library.startswith("cupy") or hasattr(x, "__cuda_array_interface__")
