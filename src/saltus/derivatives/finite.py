"""Finite differences on the manifold, forward and central: all perturbed inputs are one batch.

    f' ~ (f(x + h d) - f(x)) / h                      error O(h) + O(eps / h),    h = eps^(1/2)
    f' ~ (f(x + h d) - f(x - h d)) / (2 h)            error O(h^2) + O(eps / h),  h = eps^(1/3)

x + h d is a step of `integrate` for configurations. The step h |d| grows with the largest number among the inputs that
change along d, if that is above one: less would drown in its rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saltus.arrays import Array
from saltus.derivatives.problem import Problem, arrays_of, mapped
from saltus.model.manifold import integrate

EPS = float(np.finfo(np.float64).eps)
STEPS = {"fd": EPS ** (1 / 2), "fdc": EPS ** (1 / 3)}


def difference_quotients(task: Problem, directions: dict[int, Array], mode: str) -> tuple[Any, tuple[Array, ...]]:
    """The outputs, and their slopes (..., directions, *shape) along directions (..., directions, *tangent)."""
    h, rank = steps(task, directions, STEPS[mode]), len(task.leading)
    count = h.shape[-1]
    size = 1 + count if mode == "fd" else 1 + 2 * count  # here, ahead, behind
    inputs = [_for_all(given, k, task, size) for k, given in enumerate(task.inputs)]
    for k, direction in directions.items():
        x = task.arrays[k]
        step = h.reshape(*h.shape, *[1] * len(x.tangent)) * direction
        around = np.zeros((*step.shape[:rank], size, *x.tangent))
        around[_part(rank, 1, 1 + count)] = step
        around[_part(rank, 1 + count, size)] = -step if mode == "fdc" else 0.0
        turning = x.configuration and task.tree.nq != task.tree.nv
        inputs[k] = integrate(task.tree, inputs[k], around) if turning else inputs[k] + around
    result = task.function(task.model, *inputs)
    slopes = []
    for output in arrays_of(result, task.name):
        ahead, length = output[_part(rank, 1, 1 + count)], h if mode == "fd" else 2.0 * h
        behind = output[_part(rank, 0, 1)] if mode == "fd" else output[_part(rank, 1 + count, size)]
        slopes.append((ahead - behind) / length.reshape(*length.shape, *[1] * (output.ndim - rank - 1)))
    return mapped(lambda output: output[(slice(None),) * rank + (0,)], result), tuple(slopes)


def _part(rank: int, start: int, stop: int) -> tuple[slice, ...]:
    """Samples start ... stop - 1 of those around each point."""
    return (*[slice(None)] * rank, slice(start, stop))


def _for_all(given: Any, k: int, task: Problem, size: int) -> Any:
    """An input that is the same for all samples around a point: with an axis for them, which one point alone fills."""
    x = task.arrays.get(k)
    if x is None:
        several = isinstance(given, np.ndarray) and given.ndim > 1  # a mask for each point
        return np.expand_dims(given, len(task.leading)) if several else given
    if task.leading:
        return np.expand_dims(x.value, len(x.leading)) if x.leading else x.value
    full = np.empty((size, *x.own))
    full[:] = x.value
    return full


def steps(task: Problem, directions: dict[int, Array], step: float) -> Array:
    """h (..., directions), each so that h times the longest entry of the direction is the step, scaled as the inputs are."""
    length: Any = 0.0
    size: Any = 1.0
    for k, direction in directions.items():
        x = task.arrays[k]
        longest = np.abs(direction).max(_last_axes(x.tangent), initial=0.0)
        largest = np.abs(x.value).max(_last_axes(x.own), initial=0.0)[..., None]
        length, size = np.maximum(length, longest), np.maximum(size, np.where(longest > 0, largest, 1.0))
    h = step * size / np.where(length > 0, length, 1.0)
    return h if h.shape[:-1] == task.leading else np.broadcast_to(h, (*task.leading, h.shape[-1]))


def _last_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(range(-len(shape), 0))
