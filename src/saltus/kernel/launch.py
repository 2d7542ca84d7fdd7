"""Batches: user arrays with any leading axes, dealt out as packets to threads.

What follows from the shapes and types of the inputs alone is worked out once and kept as a `Plan`, so that a call in a loop
costs a few microseconds on top of the kernels.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from saltus.arrays import on_gpu, real_numbers
from saltus.kernel.lending import LINE, scratch
from saltus.kernel.memory import META, SIZE, STAGE, STRIDE
from saltus.kernel.number import F64, Number
from saltus.kernel.poison import fill, poison
from saltus.kernel.sloped import CARRIERS
from saltus.kernel.target import packet
from saltus.kernel.threads import deal, entry

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm, Spec

DECLINED = -1
"""What the builtin for one sample answers if it cannot take its arguments."""

MANY_PLANS = 1000
"""A caller whose batches have another size each time must not fill the memory."""

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)

Arrays: TypeAlias = Sequence[NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Plan:
    """How a call with inputs of given shapes and types is carried out."""

    leading: tuple[int, ...]
    count: int
    number: Number
    dtype: Any
    expanded: tuple[tuple[int, ...] | None, ...]  # the shape that an input must be broadcast to, or None
    shapes: tuple[tuple[int, ...], ...]  # of the outputs
    meta: NDArray[np.int64]
    words: int  # of stage and workspace
    work: int  # numbers of the workspace of one sample
    paces: list[float] = field(default_factory=list)  # how long a sample takes (threads.py)


def launch(algorithm: Algorithm, model: Any, inputs: Sequence[Any], out: Any) -> Any:
    """The long way: convert, check, broadcast, run, and explain what was wrong."""
    for value in inputs[int(algorithm.varies) :]:  # what varies goes where the user's are
        if on_gpu(value):
            from saltus.kernel import cuda

            return cuda.launch(algorithm, model, inputs, out, value)
    check_count(algorithm, inputs)
    if any(value.__class__ in CARRIERS for value in inputs):
        from saltus.kernel.forward import carry

        return carry(algorithm, model, completed(algorithm, model, inputs))
    if algorithm.filled(model).handle is None:
        return coupled(algorithm, model, completed(algorithm, model, inputs), out)
    arrays = convert(algorithm, inputs)
    key = (algorithm, *[(array.shape, array.dtype.char) for array in arrays])
    plans = algorithm.filled(model).plans
    plan = plans.get(key)
    if plan is None:
        if len(plans) > MANY_PLANS:
            plans.clear()
        plan = plans[key] = make_plan(algorithm, model, arrays)
    outputs = results(algorithm, plan.shapes, plan.dtype, out)
    if plan.leading or plan.dtype == SINGLE:
        run_batch(algorithm, model, plan, arrays, outputs)
        algorithm.prepare(model, len(inputs), plan.number)
    else:
        run_one(algorithm, model, plan, arrays, outputs)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def run_one(algorithm: Algorithm, model: Any, plan: Plan, inputs: Arrays, outputs: Arrays) -> None:
    """Run one sample the short way, now that the inputs are what it takes, or at least without packets."""
    given = tuple(np.asarray(x, order="C") for x in apart(inputs, outputs))
    plain = tuple(output.view(np.ndarray) for output in outputs)
    function = algorithm.prepare(model, len(inputs))
    status = function(given, plain[0] if len(plain) == 1 else plain) if function else DECLINED
    if status.__class__ is int and status == DECLINED:
        status = run_large(algorithm, model, plan, given, plain)
    if status.__class__ is int and status != 0:
        refuse(algorithm, model, given, outputs, F64)


def run_large(algorithm: Algorithm, model: Any, plan: Plan, inputs: Arrays, outputs: Arrays) -> int:
    """One sample of a model that is too large for the stack. As a packet it would take the memory of a whole one."""
    poison(outputs)
    for spec, output in zip(algorithm.outputs, outputs, strict=True):
        if spec.zeroed:
            output[...] = 0.0
    pointers, tables = addresses(algorithm, inputs, outputs), algorithm.filled(model)
    function = entry(algorithm, F64, len(inputs), "one")
    memory = scratch(plan.work + 1, DOUBLE)
    return int(function(*map(address, (tables.handle, pointers, plan.meta, memory))))


def run_batch(algorithm: Algorithm, model: Any, plan: Plan, inputs: Arrays, outputs: Arrays) -> None:
    if plan.count == 0:
        return
    given = apart(inputs, outputs)
    flat = [
        np.ascontiguousarray(array if shape is None else np.broadcast_to(array, shape))
        for array, shape in zip(given, plan.expanded, strict=True)
    ]
    poison(outputs)
    pointers, tables, meta = addresses(algorithm, flat, outputs), algorithm.filled(model), plan.meta
    if not all(output.flags.c_contiguous for output in outputs):
        meta = meta.copy()
        first = len(algorithm.inputs)
        meta[first:-1, STRIDE] = [step(*each) for each in zip(algorithm.outputs, outputs, strict=True)]
    function = entry(algorithm, plan.number, len(inputs), "many")
    # What threads work on stays alive with their work, even if an interrupt ends the call before them.
    kept = (tables.handle, pointers, meta, flat, outputs, tables)
    there = tuple(map(address, kept[:3]))

    def work(start: int, stop: int, kept: object = kept) -> int:
        return int(function(*there, address(scratch(plan.words, plan.dtype)), start, stop))

    if any(deal(work, plan.count, plan.number.width, plan.paces)):
        refuse(algorithm, model, given, outputs, plan.number)


def apart(inputs: Arrays, outputs: Arrays) -> list[NDArray[Any]]:
    """The inputs aligned, and none in the memory of an output: it is read after others are written."""
    return [
        value.copy() if not value.flags.aligned or any(np.may_share_memory(value, x) for x in outputs) else value
        for value in inputs
    ]


def refuse(algorithm: Algorithm, model: Any, inputs: Arrays, outputs: Arrays, number: Number) -> NoReturn:
    """Say which input the kernels refused; what they made of it stays in no output."""
    fill(outputs)
    raise ValueError(explain(algorithm, model, inputs, number))


def addresses(algorithm: Algorithm, inputs: Arrays, outputs: Arrays) -> NDArray[np.int64]:
    """The table `pointers`: of all inputs, 0 where one is absent, then of all outputs."""
    absent = [0] * (len(algorithm.inputs) - len(inputs))
    return np.array([*map(address, inputs), *absent, *map(address, outputs)], np.int64)


def aligned(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """A new array that starts at a cache line: packets are written to it in half the time."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(min(size + LINE, sys.maxsize), np.uint8)  # more cannot be counted, and not be had either
    start = -address(memory) % LINE
    return memory[start : start + size].view(dtype).reshape(shape)  # type: ignore[no-any-return]


def address(array: NDArray[Any]) -> int:
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def make_plan(algorithm: Algorithm, model: Any, arrays: Arrays) -> Plan:
    sizes = algorithm.sizes(model, arrays)
    leading = leading_shape(algorithm, arrays, sizes)
    dtype = number_type(arrays)
    number = packet(8 * dtype.itemsize)
    total, first = len(algorithm.arguments), len(algorithm.inputs)
    meta = np.zeros((total + 1, META), np.int64)
    expanded: list[tuple[int, ...] | None] = []
    stage = 0
    for k, spec in enumerate(algorithm.arguments):
        meta[k, STAGE] = stage
        if spec.integer:
            expanded.append(None)
        elif k < len(arrays) or k >= first:
            own = spec.resolve(sizes)
            numbers = math.prod(own)
            one = k < first and arrays[k].size == numbers and arrays[k].shape != (*leading, *own)
            meta[k, SIZE], meta[k, STRIDE] = numbers, 0 if one else numbers
            stage += numbers
            if k < first:
                expanded.append(None if one or arrays[k].shape == (*leading, *own) else (*leading, *own))
    meta[total, STAGE] = stage
    work = algorithm.work.length(sizes)
    shapes = tuple(leading + spec.resolve(sizes) for spec in algorithm.outputs)
    words = (stage + work + 1) * number.words
    return Plan(leading, math.prod(leading), number, dtype, tuple(expanded[: len(arrays)]), shapes, meta, words, work)


def coupled(algorithm: Algorithm, model: Any, inputs: Sequence[Any], out: Any) -> Any:
    """For models with mimic joints: checked here, where their own coordinates are known, and run on their tree."""
    arrays = convert(algorithm, inputs)
    own = {"nq": model.nq, "nv": model.nv, "nvv": model.nv**2}
    leading_shape(algorithm, arrays, algorithm.sizes(model, arrays) | own)
    dtype = number_type(arrays)
    if words := not_finite(algorithm, arrays):
        raise ValueError(words)
    try:
        answer = model.coupling.run(algorithm, model, tuple(arrays))
    except ValueError:
        if words := not_allowed(algorithm, model, arrays, packet(8 * dtype.itemsize)):
            raise ValueError(words) from None
        raise
    answers = [np.asarray(x, dtype) for x in ([answer] if len(algorithm.outputs) == 1 else answer)]
    outputs = answers if out is None else results(algorithm, [x.shape for x in answers], dtype, out)
    for output, value in zip(outputs, answers, strict=True):
        output[...] = value
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def completed(algorithm: Algorithm, model: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """With the defaults of what was left out."""
    sizes, left = algorithm.sizes(model, inputs), algorithm.inputs[len(inputs) :]
    return *inputs, *(np.full(spec.resolve(sizes), spec.default) for spec in left if spec.default is not None)


def check_count(algorithm: Algorithm, inputs: Sequence[Any]) -> None:
    if not algorithm.required <= len(inputs) <= len(algorithm.inputs):
        names = ", ".join(spec.name for spec in algorithm.inputs)
        raise TypeError(f"{algorithm.name}: expected the inputs {names}, got {len(inputs)} of them")
    for k, value in enumerate(inputs):
        if value is None:
            names = ", ".join(spec.name for spec in algorithm.inputs)
            raise TypeError(
                f"{algorithm.name}: {algorithm.inputs[k].name} is None, expected an array: the inputs are {names}"
            )


def convert(algorithm: Algorithm, inputs: Sequence[Any]) -> list[NDArray[Any]]:
    """The inputs as arrays of the number type in use: float32 if all are, else float64."""
    arrays = []
    for spec, value in zip(algorithm.inputs, inputs, strict=False):
        if type(value) is np.ndarray and value.dtype == DOUBLE and not spec.integer:
            arrays.append(value)
            continue
        array = real_numbers(value, f"{algorithm.name}: {spec.name}")
        if not (spec.integer or array.dtype == SINGLE):
            with np.errstate(over="ignore"):  # what becomes infinite is refused
                array = array.astype(DOUBLE)
        arrays.append(np.ascontiguousarray(array, dtype=np.int32) if spec.integer else array)
    if any(a.dtype == SINGLE for a in arrays) and any(a.dtype == DOUBLE for a in arrays):
        arrays = [np.asarray(a, DOUBLE) if a.dtype == SINGLE else a for a in arrays]
    return arrays


def number_type(arrays: Arrays) -> Any:
    """The type of the results, given the converted inputs."""
    return SINGLE if any(a.dtype == SINGLE for a in arrays) else DOUBLE


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
                f"{algorithm.name}: {spec.name} has shape {tuple(array.shape)}, expected ({expected}), the model's ({named})"
            )
        shapes.append(() if spec.integer else tuple(array.shape[:split]))
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        given = ", ".join(f"{s.name} {shape}" for s, shape in zip(algorithm.inputs, shapes, strict=False))
        raise ValueError(f"{algorithm.name}: the leading axes do not broadcast together: {given}") from None


def results(algorithm: Algorithm, shapes: Sequence[tuple[int, ...]], dtype: Any, out: Any) -> list[NDArray[Any]]:
    """The output arrays: new ones, or the caller's after a check."""
    if out is None:
        return [aligned(shape, dtype) for shape in shapes]
    given = [out] if len(shapes) == 1 else list(out)
    for spec, shape, array in zip(algorithm.outputs, shapes, given, strict=True):
        where = f"{algorithm.name}: out for {spec.name}"
        if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
            found = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            raise ValueError(f"{where} is {found}, expected {dtype} {shape}")
        if not array.flags.writeable:
            raise ValueError(f"{where} is read-only, expected an array that can be written")
        if not array.flags.aligned or not step(spec, array):
            raise ValueError(
                f"{where} has strides {array.strides}, expected aligned samples, evenly spaced, without gaps"
            )
    for (one, array), (other, second) in combinations(zip(algorithm.outputs, given, strict=True), 2):
        if np.may_share_memory(array, second):
            raise ValueError(
                f"{algorithm.name}: out for {other.name} lies in the memory of {one.name}, expected memory of its own"
            )
    return given


def step(spec: Spec, array: NDArray[Any]) -> int:
    """How many numbers further each sample of an output begins, at least as many as it has; 0 if they do not lie so."""
    words, split = [stride // array.itemsize for stride in array.strides], array.ndim - len(spec.shape)
    size = math.prod(array.shape[split:])
    between = evenly(array.shape[:split], words[:split], alone=size)
    within = evenly(array.shape[split:], words[split:], alone=1)
    if array.size == 0:
        return 1
    return 0 if between is None or between < size or within != 1 else between


def evenly(shape: Sequence[int], strides: Sequence[int], alone: int) -> int | None:
    """The stride of several axes taken as one, `alone` if there is nothing to step over; None if they lie unevenly."""
    axes = [(n, stride) for n, stride in zip(shape, strides, strict=True) if n > 1]
    even = all(stride == n * inner for (_, stride), (n, inner) in pairwise(axes))
    return (axes[-1][1] if axes else alone) if even else None


def explain(algorithm: Algorithm, model: Any, inputs: Arrays, number: Number) -> str:
    """Which number of which input the kernels refused."""
    words = not_finite(algorithm, inputs) or not_allowed(algorithm, model, inputs, number)
    if not words:
        raise AssertionError(
            "a kernel refused its inputs, yet they are finite, of unit length, and no angle is too large"
        )
    return words


def not_finite(algorithm: Algorithm, inputs: Arrays) -> str:
    """The first NaN or infinity among the inputs, in words; empty if there is none."""
    for spec, array in zip(algorithm.inputs, inputs, strict=False):
        wrong = np.argwhere(~np.isfinite(array))
        if len(wrong):
            place = tuple(wrong[0].tolist())
            return f"{algorithm.name}: {spec.name}{indexed(place)} is {array[place]}, expected finite numbers"
    return ""


def not_allowed(algorithm: Algorithm, model: Any, inputs: Arrays, number: Number) -> str:
    """The first configuration with a part that is not of unit length, or an angle too large, in words; empty if none is."""
    for spec, array in zip(algorithm.inputs, inputs, strict=False):
        found = algorithm.tables.configurations.explain(model, array, number) if spec.configuration else None
        if found:
            place, words = found
            return f"{algorithm.name}: {spec.name}{indexed(place)}: {words}"
    return ""


def indexed(place: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, place))}]" if place else ""
