"""Directional derivatives: an algorithm run on dual numbers, as many directions at a time as a register has lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from saltus.kernel.launch import META, SIZE, leading_shape
from saltus.kernel.lending import scratch
from saltus.kernel.number import Number
from saltus.kernel.target import packet
from saltus.kernel.threads import entry

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm

Array = NDArray[np.float64]


def push_forward(
    algorithm: Algorithm, model: Any, inputs: Sequence[Any], slopes: Sequence[Any]
) -> tuple[list[Array], list[Array]]:
    """The outputs for one sample, and their slopes along given directions of the inputs.

    `slopes` holds, for each input of shape s, an array (directions, *s), or None where the input stays as it is; each output
    of shape s comes with slopes (directions, *s). Slopes of a configuration are those of its coordinates.
    """
    values = [
        np.asarray(x, np.int32 if spec.integer else np.float64)
        for spec, x in zip(algorithm.inputs, inputs, strict=False)
    ]
    sizes = algorithm.sizes(model.tables, values)
    if leading_shape(algorithm, values, sizes) != ():
        raise ValueError(f"{algorithm.name}: derivatives take one sample at a time")
    directions = next(len(s) for s in slopes if s is not None)
    lanes = packet(64).width
    outputs = [np.empty(spec.resolve(sizes)) for spec in algorithm.outputs]
    changes = [np.empty((directions, *output.shape)) for output in outputs]
    for first in range(0, directions, lanes):
        part = slice(first, min(first + lanes, directions))
        chunk = [None if s is None else np.asarray(s, np.float64)[part] for s in slopes]
        for k, dual in enumerate(_run(algorithm, model, values, chunk, sizes, lanes)):
            outputs[k][...] = dual[:, 0].reshape(outputs[k].shape)
            changes[k][part] = dual[:, 1 : 1 + part.stop - part.start].T.reshape(changes[k][part].shape)
    return outputs, changes


def _run(
    algorithm: Algorithm, model: Any, values: list[Any], slopes: list[Any], sizes: dict[str, int], lanes: int
) -> list[Array]:
    """The outputs, each as an array (numbers, 1 + lanes) of values and slopes."""
    number = Number(64, 1, lanes)
    arrays = []
    for spec, value, slope in zip(algorithm.inputs, values, slopes, strict=False):
        if spec.integer:
            arrays.append(np.ascontiguousarray(value))
            continue
        dual = np.zeros((value.size, 1 + lanes))
        dual[:, 0] = value.ravel()
        if slope is not None:
            dual[:, 1 : 1 + len(slope)] = slope.reshape(len(slope), -1).T
        arrays.append(dual)
    results = [np.zeros((int(np.prod(spec.resolve(sizes))), 1 + lanes)) for spec in algorithm.outputs]
    padding = [None] * (len(algorithm.inputs) - len(arrays))
    addresses = np.array([0 if a is None else a.ctypes.data for a in [*arrays, *padding, *results]], np.int64)
    meta = np.zeros((len(addresses) + 1, META), np.int64)
    for k, (spec, array) in enumerate(zip(algorithm.inputs, arrays, strict=False)):
        meta[k, SIZE] = 0 if spec.integer else len(array)
    work = scratch((algorithm.work.length(sizes) + 1) * number.words, np.float64)
    tables = model.tables
    run = entry(algorithm, number, len(arrays), "run")
    run(tables.ints.ctypes.data, tables.reals.ctypes.data, addresses.ctypes.data, meta.ctypes.data, work.ctypes.data)
    return results
