"""The same kernels on a GPU: one thread a sample, on arrays that are there already.

Inputs are anything with `__cuda_array_interface__` (CuPy, PyTorch, Numba), of one precision; results are arrays of the same
library on the same device. A launch is asynchronous, so inputs are not checked for NaN, which stays visible in the results.

Threads keep their workspace in device memory, number by number, so that neighbouring threads touch neighbouring words; no
more threads are started than the device holds at a time, and each goes on to its next sample, so that the workspace stays
small enough for the cache. Samples may lie in any order (`(B, n)` or the transpose of `(n, B)`); the latter is read faster.
Large results in the former order, which kernels go over more than once, are made in the workspace and copied once.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import cuda
from numba.core import types

from saltus.kernel.launch import META, SIZE, STEP, STRIDE, check_count, leading_shape
from saltus.kernel.lower_entries import Parts, compiled
from saltus.kernel.lower_memory import SpanType, span_at
from saltus.kernel.memory import ld, st
from saltus.kernel.native import announced
from saltus.kernel.number import F32, F64, INT32, INT64, Number
from saltus.kernel.poison import poison
from saltus.kernel.tuples import kernel

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm, Spec

BLOCK = 128

ROUNDS = ((1, 255), (3, 168), (4, 128))
"""Blocks that a multiprocessor runs at a time, and the registers that leaves a thread. Measured on an H200: twelve warps
hide more latency than eight with all the registers they like. Sixteen are slower, but not by as much as a second round. A
batch that leaves each with four can have all registers."""

USUAL = ROUNDS[1]

LARGE = 256
"""Numbers of the results of a sample from which on they are made in the workspace, if samples lie one after the other."""


@kernel
def copy(source, target, count):
    """Four numbers under way at a time: memory is far."""
    n = 0
    while n + 4 <= count:
        a, b, c, d = ld(source, n), ld(source, n + 1), ld(source, n + 2), ld(source, n + 3)
        st(target, n, a)
        st(target, n + 1, b)
        st(target, n + 2, c)
        st(target, n + 3, d)
        n += 4
    while n < count:
        st(target, n, ld(source, n))
        n += 1


def gpu_entry(algorithm: Algorithm, number: Number, given: int) -> tuple[Any, Any]:
    """The function that a GPU thread runs; all arguments are addresses or counts."""
    parts = Parts(algorithm, number, algorithm.present(given), "strided")
    tree_of, view_of, inputs_of, outputs_of, call = parts.tree, parts.view, parts.inputs, parts.outputs, parts.kernel
    ints_at, reals_at = span_at(SpanType(INT32, constant=True)), span_at(SpanType(number.plain, constant=True))
    table_at, work_at, word = span_at(SpanType(INT64)), span_at(SpanType(number, strided=True)), number.bits // 8
    first, end, take_along = len(algorithm.inputs), len(algorithm.arguments), compiled(copy)

    def run(ints, reals, pointers, meta, work, threads, count, made, made_layout, staged):
        index = cuda.grid(1)
        table, layout = table_at(pointers, 1), table_at(meta, 1)
        numbers = ints_at(ints, 1)
        memory = work_at(work + index * word, threads)
        tree, view = tree_of(numbers, (numbers, reals_at(reals, 1))), view_of(numbers, (memory,))
        for sample in range(index, count, threads):
            place = sample if staged == 0 else index
            outputs = outputs_of(table_at(made, 1), table_at(made_layout, 1), memory, place)
            call(tree, *(inputs_of(table, layout, memory, sample) + (view,) + outputs))
            if staged != 0:
                for k in range(first, end):
                    source = work_at(table_at(made, 1)[k] + index * word, threads)
                    target = work_at(table[k] + sample * layout[META * k + STRIDE] * word, layout[META * k + STEP])
                    take_along(source, target, layout[META * k + SIZE])

    return run, types.void(*[types.int64] * 10)


def round_of(count: int, processors: int) -> tuple[int, int]:
    """Of `ROUNDS`, the first that takes so many samples at a time; the usual one if there are too many for each."""
    return next((each for each in ROUNDS if count <= processors * each[0] * BLOCK), USUAL)


@functools.cache
def gpu_function(algorithm: Algorithm, number: Number, given: int, registers: int = USUAL[1]) -> Any:
    with announced(f"compiling {algorithm.name} for {number.name} on the GPU (once a process)"):
        function, signature = gpu_entry(algorithm, number, given)
        return cuda.jit(signature, max_registers=registers)(function)


def compile_ptx(algorithm: Algorithm, number: Number, given: int, capability: tuple[int, int] = (9, 0)) -> str:
    """The PTX of an algorithm; works on a machine without a GPU."""
    import numba.cuda.dispatcher as dispatcher

    class Device:
        compute_capability = capability

    current, dispatcher.get_current_device = dispatcher.get_current_device, lambda: Device
    try:
        ptx, _ = cuda.compile_ptx(*gpu_entry(algorithm, number, given), cc=capability)
    finally:
        dispatcher.get_current_device = current
    return str(ptx)


class DeviceArray:
    """Address, shape and strides (in words) of a CUDA array, whatever library it is of."""

    def __init__(self, name: str, spec: Spec, array: Any) -> None:
        try:
            interface = array.__cuda_array_interface__
        except AttributeError:
            raise TypeError(
                f"{name}: {spec.name} is a {type(array).__name__}, expected a CUDA array like the others"
            ) from None
        self.shape, self.dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
        self.ndim, self.address = len(self.shape), interface["data"][0]
        strides = interface.get("strides")
        if strides is None:
            strides = np.cumprod([1, *self.shape[:0:-1]])[::-1] * self.dtype.itemsize
        self.strides = tuple(int(s) // self.dtype.itemsize for s in strides)

    def overlaps(self, other: DeviceArray) -> bool:
        """Whether the memory from the first to the last number of both has anything in common."""
        (low, high), (other_low, other_high) = self.extent(), other.extent()
        return low < other_high and other_low < high

    def extent(self) -> tuple[int, int]:
        """The addresses of the first byte, and of the one after the last."""
        if 0 in self.shape:
            return self.address, self.address
        reach = [(n - 1) * s * self.dtype.itemsize for n, s in zip(self.shape, self.strides, strict=True)]
        low = self.address + sum(r for r in reach if r < 0)
        return low, self.address + sum(r for r in reach if r > 0) + self.dtype.itemsize

    def flat(self, first: int, last: int) -> int | None:
        """The stride of axes first ... last - 1 taken as one, or None if they are not evenly spaced."""
        axes = [(n, s) for n, s in zip(self.shape[first:last], self.strides[first:last], strict=True) if n > 1]
        even = all(s == n1 * s1 for (_, s), (n1, s1) in pairwise(axes))
        return (axes[-1][1] if axes else 0) if even else None


def to_device(array: Any) -> Any:
    """A copy of a NumPy array on the current device."""
    return cuda.to_device(array)


def launch(algorithm: Algorithm, model: Any, inputs: Sequence[Any], out: Any) -> Any:
    """Run on the GPU that holds the inputs."""
    check_count(algorithm, inputs)
    reals = [x for x, spec in zip(inputs, algorithm.inputs, strict=False) if not spec.integer]
    arrays = [
        np.ascontiguousarray(x, np.int32) if spec.integer else DeviceArray(algorithm.name, spec, x)
        for x, spec in zip(inputs, algorithm.inputs, strict=False)
    ]
    dtypes = {a.dtype for a in arrays if isinstance(a, DeviceArray)}
    if len(dtypes) > 1 or not dtypes <= {np.dtype(np.float64), np.dtype(np.float32)}:
        found = ", ".join(sorted(map(str, dtypes)))
        raise TypeError(f"{algorithm.name}: CUDA inputs are {found}, expected all float64 or all float32")
    number = F64 if dtypes == {np.dtype(np.float64)} else F32
    sizes = algorithm.sizes(model.tables, arrays)
    leading = leading_shape(algorithm, arrays, sizes)
    outputs = make_outputs(algorithm, arrays, reals[0], leading, sizes, out)
    memory = device_memory(model.tables, number)
    table, meta = describe(algorithm, arrays, outputs, leading, sizes, memory)
    count = int(np.prod(leading, dtype=np.int64))
    if count:
        blocks, registers = round_of(count, memory.processors)
        threads = min(-(-count // BLOCK) * BLOCK, memory.processors * blocks * BLOCK)
        own = algorithm.work.length(sizes) + 1
        lengths = [int(np.prod(spec.resolve(sizes), dtype=np.int64)) for spec in algorithm.outputs]
        staged = is_staged(algorithm, outputs, lengths)
        work = memory.workspace(own + sum(lengths) if staged else own, threads)
        made = describe_stage(algorithm, own, lengths, work, threads, memory) if staged else (table, meta)
        function = gpu_function(algorithm, number, len(inputs), registers)
        function[threads // BLOCK, BLOCK](
            memory.ints, memory.reals, table, meta, work, threads, count, *made, int(staged)
        )  # fmt: skip
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def is_staged(algorithm: Algorithm, outputs: Sequence[Any], lengths: list[int]) -> bool:
    """Whether results are made in the workspace: large ones, written in full, whose samples lie one after the other."""
    if sum(lengths) < LARGE or any(spec.zeroed for spec in algorithm.outputs):
        return False
    largest = int(np.argmax(lengths))
    return DeviceArray(algorithm.name, algorithm.outputs[largest], outputs[largest]).strides[-1] == 1


def describe_stage(
    algorithm: Algorithm, start: int, lengths: list[int], work: int, threads: int, memory: DeviceMemory
) -> tuple[int, int]:
    """The tables `pointers` and `meta` of results in the workspace, behind the kernel's own numbers."""
    first, total = len(algorithm.inputs), len(algorithm.arguments)
    pointers, meta = np.zeros(total, np.int64), np.zeros((total + 1, META), np.int64)
    meta[first:total, STRIDE], meta[first:total, STEP] = 1, threads
    offsets = start + np.cumsum([0, *lengths[:-1]])
    pointers[first:] = work + offsets * threads * memory.word.itemsize
    return memory.description(pointers), memory.description(meta)


def make_outputs(
    algorithm: Algorithm, inputs: Sequence[Any], like: Any, leading: tuple[int, ...], sizes: dict[str, int], out: Any
) -> list[Any]:
    """Result arrays of the library that `like`, the first input, is of; zero where a kernel writes only part of them."""
    dtype = DeviceArray(algorithm.name, algorithm.inputs[0], like).dtype
    shapes = [leading + spec.resolve(sizes) for spec in algorithm.outputs]
    if out is not None:
        given = [out] if len(shapes) == 1 else list(out)
        others = [(spec, x) for spec, x in zip(algorithm.inputs, inputs, strict=False) if isinstance(x, DeviceArray)]
        for spec, shape, array in zip(algorithm.outputs, shapes, given, strict=True):
            found, where = DeviceArray(algorithm.name, spec, array), f"{algorithm.name}: out for {spec.name}"
            if (found.shape, found.dtype) != (shape, dtype):
                raise ValueError(f"{where} is {found.dtype} {found.shape}, expected {dtype} {shape}")
            for other, value in others:
                if found.overlaps(value):
                    raise ValueError(f"{where} lies in the memory of {other.name}, expected memory of its own")
            others.append((spec, found))
        for spec, array in zip(algorithm.outputs, given, strict=True):
            poison([array])
            if spec.zeroed:
                array[...] = 0
        return given
    made = [new_array(like, shape, spec.zeroed) for spec, shape in zip(algorithm.outputs, shapes, strict=True)]
    poison([array for spec, array in zip(algorithm.outputs, made, strict=True) if not spec.zeroed])
    return made


def new_array(like: Any, shape: tuple[int, ...], zeroed: bool) -> Any:
    """An array of the same library, on the same device."""
    library = type(like).__module__.partition(".")[0]
    if library == "torch":
        import torch

        return torch.zeros(shape, dtype=like.dtype, device=like.device)
    if library == "cupy":
        import cupy

        return cupy.zeros(shape, like.dtype) if zeroed else cupy.empty(shape, like.dtype)
    return cuda.to_device(np.zeros(shape, like.dtype)) if zeroed else cuda.device_array(shape, like.dtype)


class DeviceMemory:
    """A model's tables, the workspaces, and the descriptions of past calls, on a device."""

    def __init__(self, tables: Any, number: Number) -> None:
        self.keep = [cuda.to_device(tables.ints), cuda.to_device(tables.reals if number.bits == 64 else tables.reals32)]
        self.ints, self.reals = (array.__cuda_array_interface__["data"][0] for array in self.keep)
        self.word = np.dtype(f"f{number.bits // 8}")
        self.processors = cuda.get_current_device().MULTIPROCESSOR_COUNT
        self.works: dict[int, Any] = {}
        self.descriptions: dict[bytes, Any] = {}

    def workspace(self, numbers: int, threads: int) -> int:
        """The address of so many numbers for each thread, kept for later calls."""
        if numbers not in self.works or self.works[numbers].size < numbers * threads:
            self.works[numbers] = cuda.device_array(numbers * threads, self.word)
        poison([self.works[numbers]])
        return int(self.works[numbers].__cuda_array_interface__["data"][0])

    def description(self, words: Any) -> int:
        """The address of a small table on the device; calls with the same arrays find theirs there already."""
        key = words.tobytes()
        if key not in self.descriptions:
            if len(self.descriptions) > 256:
                self.descriptions.clear()
            self.descriptions[key] = cuda.to_device(words)
        return int(self.descriptions[key].__cuda_array_interface__["data"][0])


def device_memory(tables: Any, number: Number) -> DeviceMemory:
    key = (cuda.get_current_device().id, number)
    if key not in tables.devices:
        tables.devices[key] = DeviceMemory(tables, number)
    return tables.devices[key]


def describe(
    algorithm: Algorithm, inputs: Sequence[Any], outputs: Sequence[Any], leading: tuple[int, ...],
    sizes: dict[str, int], memory: DeviceMemory,
) -> tuple[int, int]:  # fmt: skip
    """Addresses of the tables `pointers` and `meta` of this call, on the device."""
    total, first = len(algorithm.arguments), len(algorithm.inputs)
    pointers, meta = np.zeros(total, np.int64), np.zeros((total + 1, META), np.int64)
    for k, spec in enumerate(algorithm.arguments):
        if k < first and k >= len(inputs):
            continue
        if spec.integer:
            pointers[k] = memory.description(inputs[k])
            continue
        array = inputs[k] if k < first else DeviceArray(algorithm.name, spec, outputs[k - first])
        split = array.ndim - len(spec.shape)
        step, stride = array.flat(split, array.ndim), array.flat(0, split)
        if array.shape[:split] != leading and int(np.prod(array.shape[:split])) != 1:
            stride = None
        if step is None or stride is None:
            raise ValueError(
                f"{algorithm.name}: {spec.name} has shape {array.shape} and strides {array.strides}: on a GPU, samples and "
                f"their numbers must lie evenly; broadcast it to {leading} and make it contiguous"
            )
        pointers[k] = array.address
        meta[k, SIZE] = int(np.prod(spec.resolve(sizes), dtype=np.int64))
        meta[k, STRIDE], meta[k, STEP] = (stride if array.shape[:split] == leading else 0), step
    return memory.description(pointers), memory.description(meta)
