"""Arrays that carry their slopes through a public function, NumPy's operations around the kernels included.

    Sloped(value (...), slopes (directions, ...))

Algorithms that are given one run on dual numbers (forward.py) and return some; sums, products and the few other operations
that public functions do beside follow the rules of differentiation. What has no rule here raises a TypeError: nothing is
ever silently taken for constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Sloped(NDArrayOperatorsMixin):
    """An array and its slopes, the directions in front."""

    def __init__(self, value: Array, slopes: Array) -> None:
        self.value = value
        self.slopes = np.broadcast_to(_lined_up(slopes, value.ndim), (len(slopes), *value.shape))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def dtype(self) -> Any:
        return self.value.dtype

    def __getitem__(self, key: Any) -> Sloped:
        rest = key if isinstance(key, tuple) else (key,)
        return Sloped(self.value[key], self.slopes[(slice(None), *rest)])

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("derivatives do not pass here: no rule is known for what NumPy does with this array")

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        rule = RULES.get(ufunc)
        if rule is None or method != "__call__" or options:
            raise TypeError(f"derivatives do not pass through numpy.{ufunc.__name__}: no rule is known for it")
        values = [x.value if isinstance(x, Sloped) else np.asarray(x) for x in operands]
        result = ufunc(*values)
        ndim = max(value.ndim for value in values)
        slopes = [_lined_up(x.slopes, ndim) if isinstance(x, Sloped) else 0.0 for x in operands]
        return Sloped(result, rule(result, values, slopes))


def _lined_up(slopes: Array, ndim: int) -> Array:
    """Slopes of an array that is broadcast to so many axes: those to come stand after the directions."""
    return slopes.reshape(len(slopes), *[1] * (ndim + 1 - slopes.ndim), *slopes.shape[1:])


def _product(result: Array, values: Any, slopes: Any) -> Any:
    (x, y), (dx, dy) = values, slopes
    return dx * y + x * dy


def _quotient(result: Array, values: Any, slopes: Any) -> Any:
    return (slopes[0] - result * slopes[1]) / values[1]


def _matrix_product(result: Array, values: Any, slopes: Any) -> Any:
    (x, y), (dx, dy) = values, slopes
    left = dx @ y if isinstance(dx, np.ndarray) else 0.0
    return left + (x @ dy if isinstance(dy, np.ndarray) else 0.0)


RULES: dict[Any, Callable[[Array, Any, Any], Any]] = {
    np.add: lambda result, values, slopes: slopes[0] + slopes[1],
    np.subtract: lambda result, values, slopes: slopes[0] - slopes[1],
    np.negative: lambda result, values, slopes: -slopes[0],
    np.multiply: _product,
    np.true_divide: _quotient,
    np.matmul: _matrix_product,
}
"""Of NumPy's functions: (result, operands, slopes of the operands) -> slopes of the result."""
