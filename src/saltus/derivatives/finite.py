"""Finite differences on the manifold, forward and central: all perturbed inputs are one batch.

    f' ~ (f(x + h d) - f(x)) / h                      error O(h) + O(eps / h),    h = eps^(1/2)
    f' ~ (f(x + h d) - f(x - h d)) / (2 h)            error O(h^2) + O(eps / h),  h = eps^(1/3)

x + h d is a step of `integrate` for configurations. The step h |d| grows with the largest number among the inputs that
change, if that is above one: less would drown in its rounding.
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
    h = steps(task, directions, STEPS[mode])
    signs = (0.0, 1.0) if mode == "fd" else (0.0, 1.0, -1.0)
    count = h.shape[-1]
    inputs = list(task.inputs)
    for k, x in task.arrays.items():
        inputs[k] = x.value if not x.leading else np.expand_dims(x.value, len(x.leading))
        if k in directions:
            step = _times(h, directions[k], len(x.tangent))
            axis = step.ndim - 1 - len(x.tangent)
            around = np.concatenate([np.take(step, [0], axis) * 0.0, *(sign * step for sign in signs[1:])], axis)
            inputs[k] = integrate(task.tree, inputs[k], around) if x.configuration else inputs[k] + around
    for k, given in enumerate(inputs):
        if k not in task.arrays and isinstance(given, np.ndarray) and given.ndim > 1:  # masks of each sample
            inputs[k] = np.expand_dims(given, len(task.leading))
    axis = len(task.leading)
    result = task.function(task.model, *inputs)
    slopes = []
    for output in arrays_of(result, task.name):
        here, ahead = np.take(output, [0], axis), np.take(output, range(1, 1 + count), axis)
        behind, length = here, h
        if mode == "fdc":
            behind, length = np.take(output, range(1 + count, 1 + 2 * count), axis), 2.0 * h
        slopes.append((ahead - behind) / length.reshape(*length.shape, *[1] * (output.ndim - axis - 1)))
    return mapped(lambda output: np.take(output, 0, axis), result), tuple(slopes)


def steps(task: Problem, directions: dict[int, Array], step: float) -> Array:
    """h (..., directions), each so that h times the longest entry of the direction is the step, scaled as the inputs are."""
    length, size = np.zeros(()), np.ones(())
    for k, direction in directions.items():
        x = task.arrays[k]
        own = np.abs(direction).max(_all_axes(x.tangent), initial=0.0)
        largest = np.abs(x.value).max(_all_axes(x.own), initial=0.0)[..., None]
        length, size = np.maximum(length, own), np.maximum(size, np.where(own > 0, largest, 1.0))
    h = step * size / np.where(length > 0, length, 1.0)
    return np.broadcast_to(h, (*task.leading, h.shape[-1]))


def _all_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(range(-len(shape), 0))


def _times(h: Array, direction: Array, axes: int) -> Array:
    return h.reshape(*h.shape, *[1] * axes) * direction
