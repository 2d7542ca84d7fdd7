"""Arrays that carry their slopes through a public function, NumPy's operations around the kernels included.

    Sloped(value (...), slopes (directions, ...))

Algorithms that are given one run on dual numbers (forward.py) and return some; sums, products and the few other operations
that public functions do beside follow the rules of differentiation. What has no rule here raises a TypeError: nothing is
ever silently taken for constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

    def __array_function__(self, function: Any, kinds: Any, operands: Any, options: Any) -> Any:
        rule = FUNCTIONS.get(function)
        if rule is None:
            raise TypeError(f"derivatives do not pass through numpy.{function.__name__}: no rule is known for it")
        return rule(*operands, **options)

    def max(self, axis: int, initial: float) -> Sloped:
        """The largest entry along an axis, and how that one changes."""
        if self.shape[axis] == 0:
            return Sloped(self.value.max(axis, initial=initial), self.slopes.sum(axis))
        place = np.expand_dims(self.value.argmax(axis), axis)
        slopes = np.take_along_axis(self.slopes, np.broadcast_to(place, (len(self.slopes), *place.shape)), axis)
        return Sloped(self.value.max(axis, initial=initial), slopes.squeeze(axis))


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
    np.absolute: lambda result, values, slopes: np.sign(values[0]) * slopes[0],
}
"""Of NumPy's operations: (result, operands, slopes of the operands) -> slopes of the result."""


def _apart(array: Any, like: Sloped) -> tuple[Array, Array]:
    """Value and slopes of an array, which may have none."""
    if isinstance(array, Sloped):
        return array.value, array.slopes
    return array, np.zeros((len(like.slopes), *array.shape))


def _joined(function: Any) -> Any:
    """The rule of a function that puts arrays side by side, along an axis counted from the last."""

    def rule(arrays: Sequence[Any], axis: int) -> Sloped:
        like = next(array for array in arrays if isinstance(array, Sloped))
        values, slopes = zip(*(_apart(array, like) for array in arrays), strict=True)
        return Sloped(function(values, axis), function(slopes, axis))

    return rule


def _einsum(subscripts: str, A: Any, x: Any) -> Sloped:
    like = A if isinstance(A, Sloped) else x
    (A, dA), (x, dx) = _apart(A, like), _apart(x, like)
    return Sloped(np.einsum(subscripts, A, x), np.einsum(subscripts, dA, x) + np.einsum(subscripts, A, dx))


def _solve(M: Any, B: Any) -> Sloped:
    """dX = M^-1 (dB - dM X)"""
    like = M if isinstance(M, Sloped) else B
    (M, dM), (B, dB) = _apart(M, like), _apart(B, like)
    X = np.linalg.solve(M, B)
    return Sloped(X, np.linalg.solve(M, dB - dM @ X))


def _pinv(G: Sloped, rtol: float, hermitian: bool) -> Sloped:
    """dP = -P dG P + P P dG (1 - G P) + (1 - P G) dG P P, for symmetric G of constant rank."""
    if not hermitian:
        raise TypeError("derivatives do not pass through numpy.linalg.pinv but of symmetric matrices")
    P: Any = np.linalg.pinv(G.value, rtol=rtol, hermitian=True)
    one = np.eye(G.shape[-1])
    left, right = one - P @ G.value, one - G.value @ P
    return Sloped(P, P @ (P @ G.slopes @ right - G.slopes @ P) + left @ G.slopes @ P @ P)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.concatenate: _joined(np.concatenate),
    np.stack: _joined(np.stack),
    np.swapaxes: lambda x, one, other: Sloped(np.swapaxes(x.value, one, other), np.swapaxes(x.slopes, one, other)),
    np.einsum: _einsum,
    np.linalg.solve: _solve,
    np.linalg.pinv: _pinv,
    np.ones_like: lambda x: np.ones_like(x.value),
    np.zeros_like: lambda x: np.zeros_like(x.value),
}
"""The rules of other functions of NumPy's, called as they are, with axes counted from the last: what dense methods use."""


class Interpreted(np.ndarray):
    """An array of numbers of any kind (dual ones of dual ones, symbols): algorithms that are given one run interpreted."""


def interpreted(numbers: Sequence[Any], shape: tuple[int, ...]) -> Interpreted:
    """Numbers as such an array. One by one: NumPy would take dual numbers, which are tuples, for rows."""
    array = np.empty(len(numbers), object)
    for k, each in enumerate(numbers):
        array[k] = each
    return array.reshape(shape).view(Interpreted)


CARRIERS = (Sloped, Interpreted)
