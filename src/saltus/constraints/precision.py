"""Single and double precision: which arrays are which, and what is computed in double for arrays that are single."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

SINGLE = np.dtype(np.float32)


def is_single(array: Any) -> bool:
    """Whether an array, on a processor or a GPU, is of single precision."""
    interface = getattr(array, "__cuda_array_interface__", None)
    return (getattr(array, "dtype", None) if interface is None else np.dtype(interface["typestr"])) == SINGLE


def in_double(function: Callable[..., Any], *inputs: Any) -> Any:
    """What a function returns for inputs of single precision, computed in double."""
    return _single(function(*(cast(x, np.float64) if is_single(x) else x for x in inputs)))


def _single(result: Any) -> Any:
    """A result with its arrays in single precision."""
    if is_dataclass(result):
        return replace(result, **{each.name: _single(getattr(result, each.name)) for each in fields(result)})  # type: ignore[type-var]
    if hasattr(result, "_fields"):
        return type(result)(*map(_single, result))
    return cast(result, np.float32) if hasattr(result, "dtype") else result


def cast(array: Any, dtype: Any) -> Any:
    """An array of NumPy, CuPy or PyTorch in another precision."""
    if hasattr(array, "astype"):
        return array.astype(dtype)
    if hasattr(array, "double"):
        return array.double() if dtype == np.float64 else array.float()
    raise TypeError(
        f"a {type(array).__name__} of single precision cannot be turned into double, in which this is computed: expected "
        "NumPy, CuPy or PyTorch arrays, or float64"
    )
