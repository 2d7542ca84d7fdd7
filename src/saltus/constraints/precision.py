"""Single and double precision: which arrays are which, and what is computed in double for arrays that are single."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from saltus.kernel import F32
from saltus.model.model import Model
from saltus.model.tree import unit_parts

SINGLE = np.dtype(np.float32)


def is_single(array: Any) -> bool:
    """Whether an array, on a processor or a GPU, is of single precision."""
    dtype = getattr(array, "dtype", None)
    return dtype == SINGLE if isinstance(dtype, np.dtype) else str(dtype) == "torch.float32"


def in_double(model: Model, function: Callable[..., Any], q: Any, *inputs: Any) -> Any:
    """What a function returns for a configuration and other inputs of single precision, computed in double."""
    given = (cast(x, np.float64) if is_single(x) else x for x in inputs)
    return _single(function(_of_unit_length(model, cast(q, np.float64)), *given))


def _of_unit_length(model: Model, q: Any) -> Any:
    """Quaternions, cosines and sines are 1e-7 off after single precision, and robots with links nearly without inertia make
    much of that. What is further off than is allowed stays so."""
    for _, part in unit_parts(model) if q.shape else ():
        square = (q[..., part] ** 2).sum(-1)[..., None]
        near = (abs(square - 1.0) < F32.unit_tolerance) * 1.0
        q[..., part] *= (square * near + (1.0 - near)) ** -0.5
    return q


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
