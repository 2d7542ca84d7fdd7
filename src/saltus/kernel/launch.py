"""Batches: user arrays with any leading axes, dealt out as packets to threads."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from saltus.kernel import native
from saltus.kernel.number import Number
from saltus.kernel.target import packet

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm, Spec

META, SIZE, STRIDE, STEP, STAGE = 4, 0, 1, 2, 3
GRAIN = 16
"""Packets that a thread gets at least: below, waking it costs more than it brings."""

_settings = {"threads": os.cpu_count() or 1}


def set_threads(count: int) -> None:
    """How many threads batches are dealt out to; at first, as many as the machine has processors.

    >>> set_threads(2)
    """
    if count < 1:
        raise ValueError(f"set_threads: expected a positive number of threads, got {count}")
    _settings["threads"] = count
    _pool.cache_clear()


def get_threads() -> int:
    """How many threads batches are dealt out to."""
    return _settings["threads"]


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(get_threads(), thread_name_prefix="saltus")


os.register_at_fork(after_in_child=_pool.cache_clear)

_scratch = threading.local()


def scratch(words: int, dtype: Any) -> NDArray[Any]:
    """This thread's memory for stage and workspace, aligned to a cache line; it grows and is used again."""
    size = words * np.dtype(dtype).itemsize
    memory = getattr(_scratch, "memory", None)
    if memory is None or memory.nbytes < size:
        raw = np.empty(size + 64, np.uint8)
        start = -raw.ctypes.data % 64
        memory = _scratch.memory = raw[start : start + size]
    return memory[:size].view(dtype)  # type: ignore[no-any-return]


@functools.cache
def entry(algorithm: Algorithm, number: Number, given: int, form: str) -> Any:
    kind = native.MANY if form == "many" else native.RUN
    return kind(native.address(algorithm, number, algorithm.present(given), form))


def launch(algorithm: Algorithm, model: Any, inputs: Sequence[Any], out: Any) -> Any:
    """The long way: convert, check, broadcast, run, and explain what was wrong."""
    check_count(algorithm, inputs)
    if model.coupling is not None:
        return coupled(algorithm, model, inputs, out)
    if any(hasattr(value, "__cuda_array_interface__") for value in inputs):
        from saltus.kernel.cuda import launch as launch_cuda

        return launch_cuda(algorithm, model, inputs, out)
    arrays = convert(algorithm, inputs)
    sizes = algorithm.sizes(model.tables, arrays)
    leading = leading_shape(algorithm, arrays, sizes)
    dtype = np.float32 if any(a.dtype == np.float32 for a in arrays) else np.float64
    outputs = results(algorithm, sizes, leading, dtype, out)
    if leading or dtype == np.float32 or not run_one(algorithm, model, arrays, outputs):
        run_batch(algorithm, model, arrays, outputs, sizes, leading, packet(8 * np.dtype(dtype).itemsize))
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def run_one(algorithm: Algorithm, model: Any, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]]) -> bool:
    """Run one sample the short way, now that the inputs are what it takes; False if it cannot."""
    function = algorithm.prepare_one(len(inputs))
    return function is not None and function(model.handle, *map(np.ascontiguousarray, inputs), *outputs).__class__ is not int


def coupled(algorithm: Algorithm, model: Any, inputs: Sequence[Any], out: Any) -> Any:
    """For models with mimic joints."""
    answer = model.coupling.run(algorithm, model, tuple(inputs))
    if out is None:
        return answer
    for target, value in zip([out] if len(algorithm.outputs) == 1 else out, [answer] if len(algorithm.outputs) == 1 else answer, strict=True):
        target[...] = value
    return out


def check_count(algorithm: Algorithm, inputs: Sequence[Any]) -> None:
    if len(inputs) not in algorithm.variants() or any(value is None for value in inputs):
        names = ", ".join(spec.name for spec in algorithm.inputs)
        raise TypeError(f"{algorithm.name}: expected the inputs {names}, got {len(inputs)} of them")


def convert(algorithm: Algorithm, inputs: Sequence[Any]) -> list[NDArray[Any]]:
    """The inputs as arrays of the number type in use: float32 if all are, else float64."""
    arrays = []
    for spec, value in zip(algorithm.inputs, inputs, strict=False):
        try:
            array = np.asarray(value)
            if not (spec.integer or array.dtype == np.float32):
                array = np.asarray(array, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{algorithm.name}: {spec.name} is not an array of numbers ({error})") from None
        arrays.append(np.ascontiguousarray(array, dtype=np.int32) if spec.integer else array)
    reals = [a for a, spec in zip(arrays, algorithm.inputs, strict=False) if not spec.integer]
    if any(a.dtype == np.float64 for a in reals):
        arrays = [a if a.dtype == np.int32 else np.asarray(a, np.float64) for a in arrays]
    return arrays


def leading_shape(algorithm: Algorithm, arrays: Sequence[Any], sizes: dict[str, int]) -> tuple[int, ...]:
    """The shape of the batch: what stands before the declared shapes, broadcast as NumPy does."""
    shapes = []
    for spec, array in zip(algorithm.inputs, arrays, strict=False):
        wanted = spec.resolve(sizes)
        split = array.ndim - len(wanted)
        if split < 0 or tuple(array.shape[split:]) != wanted:
            expected = ", ".join(map(str, ("...", *wanted) if not spec.integer else wanted))
            named = ", ".join(map(str, spec.shape))
            raise ValueError(
                f"{algorithm.name}: {spec.name} has shape {tuple(array.shape)}, expected ({expected}): ({named}) of the model"
            )
        shapes.append(() if spec.integer else tuple(array.shape[:split]))
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        given = ", ".join(f"{s.name} {shape}" for s, shape in zip(algorithm.inputs, shapes, strict=False))
        raise ValueError(f"{algorithm.name}: the leading axes do not broadcast together: {given}") from None


def results(
    algorithm: Algorithm, sizes: dict[str, int], leading: tuple[int, ...], dtype: Any, out: Any
) -> list[NDArray[Any]]:
    """The output arrays: new ones, or the caller's after a check."""
    shapes = [leading + spec.resolve(sizes) for spec in algorithm.outputs]
    if out is None:
        return [np.empty(shape, dtype) for shape in shapes]
    given = [out] if len(shapes) == 1 else list(out)
    for spec, shape, array in zip(algorithm.outputs, shapes, given, strict=True):
        if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
            found = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            raise ValueError(f"{algorithm.name}: out for {spec.name} is {found}, expected {np.dtype(dtype)} {shape}")
        if not (array.flags.c_contiguous and array.flags.writeable):
            raise ValueError(f"{algorithm.name}: out for {spec.name} must be contiguous and writeable")
    return given


def sample_strides(arrays: Sequence[Any], specs: Sequence[Spec], leading: tuple[int, ...]) -> tuple[list[Any], list[int]]:
    """The arrays laid out as (samples, numbers), with the distance between samples: 0 where one serves all."""
    flat, strides = [], []
    for spec, array in zip(specs, arrays, strict=False):
        own = len(spec.shape)
        numbers = int(np.prod(array.shape[array.ndim - own :], dtype=np.int64))
        one = spec.integer or array.size == numbers
        if not one and array.shape[: array.ndim - own] != leading:
            array = np.broadcast_to(array, leading + array.shape[array.ndim - own :])
        flat.append(np.ascontiguousarray(array))
        strides.append(0 if one else numbers)
    return flat, strides


def run_batch(
    algorithm: Algorithm,
    model: Any,
    inputs: Sequence[NDArray[Any]],
    outputs: Sequence[NDArray[Any]],
    sizes: dict[str, int],
    leading: tuple[int, ...],
    number: Number,
) -> None:
    count = int(np.prod(leading, dtype=np.int64))
    if count == 0:
        return
    tables, total = model.tables, len(algorithm.arguments)
    flat, strides = sample_strides(inputs, algorithm.inputs, leading)
    pointers = np.zeros(total, np.int64)
    meta = np.zeros((total + 1, META), np.int64)
    first = len(algorithm.inputs)
    stage = 0
    for k, spec in enumerate(algorithm.arguments):
        meta[k, STAGE] = stage
        array = outputs[k - first] if k >= first else flat[k] if k < len(flat) else None
        if array is None:
            continue
        pointers[k] = array.ctypes.data
        if not spec.integer:
            meta[k, SIZE] = int(np.prod(spec.resolve(sizes), dtype=np.int64))
            meta[k, STRIDE] = meta[k, SIZE] if k >= first else strides[k]
            stage += int(meta[k, SIZE])
    meta[total, STAGE] = stage
    words = (stage + algorithm.work.length(sizes) + 1) * number.words
    function = entry(algorithm, number, len(inputs), "many")
    dtype = np.float64 if number.bits == 64 else np.float32
    reals = tables.reals if number.bits == 64 else tables.reals32

    def work(start: int, stop: int) -> int:
        memory = scratch(words, dtype)
        return int(
            function(
                tables.ints.ctypes.data, reals.ctypes.data, pointers.ctypes.data, meta.ctypes.data, memory.ctypes.data,
                start, stop,
            )
        )  # fmt: skip

    status = 0
    for part in deal(work, count, number.width):
        status |= part
    if status:
        raise ValueError(explain(algorithm, model, inputs))


def deal(work: Any, count: int, width: int) -> list[int]:
    """Run work(start, stop) over all samples, in as many threads as are worth it."""
    packets = -(-count // width)
    threads = max(1, min(get_threads(), packets // GRAIN))
    if threads == 1:
        return [work(0, count)]
    share = -(-packets // threads) * width
    ranges = [(start, min(start + share, count)) for start in range(0, count, share)]
    tasks = [_pool().submit(work, *each) for each in ranges[1:]]
    return [work(*ranges[0]), *(task.result() for task in tasks)]


def explain(algorithm: Algorithm, model: Any, inputs: Sequence[NDArray[Any]]) -> str:
    """Which number of which input the kernels refused."""
    for spec, array in zip(algorithm.inputs, inputs, strict=False):
        if not spec.integer and not np.isfinite(array).all():
            place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            index = ", ".join(map(str, place))
            return f"{algorithm.name}: {spec.name}[{index}] is {array[place]}, expected finite numbers"
    for spec, array in zip(algorithm.inputs, inputs, strict=False):
        if spec.configuration:
            for place in np.ndindex(array.shape[:-1]):
                words = algorithm.tables.explain(model, array[place])
                if words:
                    index = f"[{', '.join(map(str, place))}]" if place else ""
                    return f"{algorithm.name}: {spec.name}{index}: {words}"
    raise AssertionError("a kernel refused its inputs, yet they are finite and of unit length")


