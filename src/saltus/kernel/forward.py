"""Directional derivatives: an algorithm run on dual numbers, as many directions at a time as a register has lanes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from saltus.kernel.directional import Directional
from saltus.kernel.interpret import interpret
from saltus.kernel.launch import address, check_count, convert, explain, leading_shape, not_finite
from saltus.kernel.lending import scratch
from saltus.kernel.memory import META, STAGE
from saltus.kernel.native import PUSH
from saltus.kernel.number import F64, Number
from saltus.kernel.poison import poison
from saltus.kernel.pushcall import lane_choices
from saltus.kernel.sloped import Interpreted, Sloped, interpreted
from saltus.kernel.threads import deal, entry

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm

Array = NDArray[np.float64]


def lanes_for(directions: int) -> int:
    """How many directions go through a kernel at a time, of so many."""
    choices = lane_choices()
    return next((lanes for lanes in choices if lanes >= directions), choices[-1])


def push_forward(
    algorithm: Algorithm, model: Any, inputs: Sequence[Any], slopes: Sequence[Any]
) -> tuple[list[Array], list[Array]]:
    """The outputs (..., *shape), and their slopes (..., directions, *shape) along given directions of the inputs.

    `slopes` holds, for each input of shape s, an array (..., directions, *s), or None where the input stays as it is. Slopes
    of a configuration are those of its coordinates.
    """
    if model.varied and algorithm.reads_varied and not algorithm.varies:
        raise TypeError(
            f"{algorithm.name}: dual numbers are for one robot, expected a model that `vary_inertia` has not varied; "
            "analytical derivatives take both"
        )
    check_count(algorithm, inputs)
    if algorithm.inverts_inertia and model.weightless:
        model.refuse_weightless(algorithm.name)
    values = convert(algorithm, inputs)
    values = [
        x if spec.integer else np.asarray(x, np.float64) for spec, x in zip(algorithm.inputs, values, strict=False)
    ]
    if model.coupling is not None:
        raise TypeError(f"{algorithm.name}: a model with mimic joints has no dual numbers, expected mode 'fd' or 'fdc'")
    sizes = algorithm.sizes(model, values)
    own = [spec.resolve(sizes) for spec in algorithm.arguments]
    leading = leading_shape(algorithm, values, sizes)
    tangents = [algorithm.tangent(spec).resolve(sizes) for spec in algorithm.arguments]
    directions = _directions(algorithm, slopes, tangents)
    outputs = [np.empty((*leading, *shape)) for shape in own[len(algorithm.inputs) :]]
    changes = [np.empty((*leading, directions, *shape)) for shape in own[len(algorithm.inputs) :]]
    poison([*outputs, *changes])
    number = Number(64, 1, lanes_for(directions))

    total = len(algorithm.arguments)
    meta = np.zeros((2 * total + 1, META), np.int64)
    kept: list[tuple[Any, Any]] = []  # the arrays, alive as long as a thread's work on them
    stage = 0
    for k, (spec, shape) in enumerate(zip(algorithm.inputs, own, strict=False)):
        meta[[k, total + 1 + k], STAGE] = stage
        if k >= len(values):
            kept.append((None, None))
        elif spec.integer:
            kept.append((np.ascontiguousarray(values[k]), None))
        else:
            value, stride = _in_order(values[k], leading, shape)
            slope, along, slope_stride = slopes[k], math.prod(tangents[k]), 0
            if slope is not None:
                slope, slope_stride = _in_order(slope, leading, (directions, *tangents[k]))
            kept.append((value, slope))
            meta[k], meta[total + 1 + k] = (math.prod(shape), stride, 0, stage), (along, slope_stride, along, stage)
            stage += along
    for k, pair in enumerate(zip(outputs, changes, strict=True), len(algorithm.inputs)):
        size = math.prod(own[k])
        meta[k], meta[total + 1 + k] = (size, size, 0, stage), (size, directions * size, size, stage)
        kept.append(pair)
        stage += size
    if isinstance(algorithm, Directional):
        behind = (stage + algorithm.slopes.length(sizes) + 1) * number.slope
        words = behind + algorithm.work.length(sizes) + 1
    else:
        words = behind = (stage + algorithm.work.length(sizes) + 1) * number.words
    meta[total] = directions, 0, behind, stage
    function, tables = entry(algorithm, number, len(values), PUSH), algorithm.filled(model)

    def work(start: int, stop: int) -> int:
        memory = scratch(words, np.float64)
        places = [[0 if array is None else address(array) for array in column] for column in zip(*kept, strict=True)]
        pointers = np.array([*places[0], address(memory), *places[1]], np.int64)
        return int(function(*map(address, (tables.handle, pointers, meta, memory)), start, stop))

    count = math.prod(leading)
    if count and any(deal(work, count, 1)):
        raise ValueError(_explain(algorithm, model, values, slopes))
    algorithm.prepare_push(len(values), number.slope)
    return outputs, changes


def _directions(algorithm: Algorithm, slopes: Sequence[Any], own: Sequence[tuple[int, ...]]) -> int:
    """How many there are; each input's slopes must have as many."""
    found = 0
    for spec, slope, shape in zip(algorithm.inputs, slopes, own, strict=False):
        if slope is None:
            continue
        split = slope.ndim - len(shape)
        if split < 1 or slope.shape[split:] != shape or found not in (0, slope.shape[split - 1]):
            expected = ", ".join(map(str, ("...", found or "directions", *shape)))
            raise ValueError(
                f"{algorithm.name}: the slopes of {spec.name} have shape {slope.shape}, expected ({expected})"
            )
        found = slope.shape[split - 1]
    return found


def _in_order(array: Any, leading: tuple[int, ...], shape: tuple[int, ...]) -> tuple[Array, int]:
    """The array with its samples one after the other, and how far apart: 0 if there is one for all."""
    size, ahead = math.prod(shape), array.ndim - len(shape)
    lengths, strides = array.shape[:ahead], array.strides[:ahead]
    if all(length == 1 or (length and stride == 0) for length, stride in zip(lengths, strides, strict=True)):
        return np.ascontiguousarray(array[(0,) * ahead]), 0
    return np.ascontiguousarray(np.broadcast_to(array, (*leading, *shape))), size


def _explain(algorithm: Algorithm, model: Any, values: Sequence[Any], slopes: Sequence[Any]) -> str:
    there = [np.zeros(0) if slope is None else slope for slope in slopes]
    words = not_finite(algorithm, values) or not_finite(algorithm, there).replace(": ", ": the slope of ", 1)
    return words or explain(algorithm, model, values, F64)


def carry(algorithm: Algorithm, model: Any, inputs: Sequence[Any]) -> Any:
    """The same for arrays that carry their slopes; the outputs do, too. Other numbers are carried by interpreted kernels."""
    if any(value.__class__ is Interpreted for value in inputs):
        return _interpret(algorithm, model, inputs)
    values = [x.value if x.__class__ is Sloped else x for x in inputs]
    slopes = [_moved_in(x.slopes, spec) if x.__class__ is Sloped else None
              for spec, x in zip(algorithm.inputs, inputs, strict=False)]  # fmt: skip
    outputs, changes = push_forward(algorithm, model, values, slopes)
    sloped = [
        Sloped(output, np.moveaxis(change, -1 - len(spec.shape), 0))
        for spec, output, change in zip(algorithm.outputs, outputs, changes, strict=True)
    ]
    return sloped[0] if len(sloped) == 1 else tuple(sloped)


def _moved_in(slopes: Array, spec: Any) -> Array:
    """The directions from the front to before the sample's own axes."""
    return np.moveaxis(slopes, 0, slopes.ndim - 1 - len(spec.shape))


def _interpret(algorithm: Algorithm, model: Any, inputs: Sequence[Any]) -> Any:
    if model.coupling is not None:
        raise TypeError(f"{algorithm.name}: a model with mimic joints cannot be interpreted")
    sizes = algorithm.sizes(model, inputs)
    if leading_shape(algorithm, [np.asarray(value) for value in inputs], sizes):
        raise ValueError(f"{algorithm.name}: interpreted kernels take one sample at a time")
    outputs = interpret(algorithm, model, [np.asarray(value).ravel().tolist() for value in inputs])
    arrays = [interpreted(output.ravel().tolist(), output.shape) for output in outputs]
    return arrays[0] if len(arrays) == 1 else tuple(arrays)
