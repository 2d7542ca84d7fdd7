"""Batches: user arrays with any leading axes, dealt out as packets to threads.

What follows from the shapes and types of the inputs alone is worked out once and kept as a `Plan`, so that a call in a loop
costs a few microseconds on top of the kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from saltus.kernel.lending import LINE, scratch
from saltus.kernel.number import Number
from saltus.kernel.target import packet
from saltus.kernel.threads import deal, entry

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm

META, SIZE, STRIDE, STEP, STAGE = 4, 0, 1, 2, 3
"""The table `meta` (see lower_memory.py)."""

MANY_PLANS = 1000
"""A caller whose batches have another size each time must not fill the memory."""

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)


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


def launch(algorithm: Algorithm, model: Any, inputs: Sequence[Any], out: Any) -> Any:
    """The long way: convert, check, broadcast, run, and explain what was wrong."""
    check_count(algorithm, inputs)
    if model.coupling is not None:
        return coupled(algorithm, model, inputs, out)
    if any(hasattr(value, "__cuda_array_interface__") for value in inputs):
        from saltus.kernel.cuda import launch as launch_cuda

        return launch_cuda(algorithm, model, inputs, out)
    arrays = convert(algorithm, inputs)
    key = (algorithm, *[(array.shape, array.dtype.char) for array in arrays])
    plans = model.tables.plans
    plan = plans.get(key)
    if plan is None:
        if len(plans) > MANY_PLANS:
            plans.clear()
        plan = plans[key] = make_plan(algorithm, model, arrays)
    outputs = results(algorithm, plan, out)
    if plan.leading or plan.dtype == SINGLE or not run_one(algorithm, model, arrays, outputs):
        run_batch(algorithm, model, plan, arrays, outputs)
        algorithm.prepare_batch(len(inputs), plan.number.bits)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def run_one(algorithm: Algorithm, model: Any, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]]) -> bool:
    """Run one sample the short way, now that the inputs are what it takes; False if it cannot."""
    function = algorithm.prepare_one(len(inputs))
    given = tuple(
        value.copy() if any(np.may_share_memory(value, output) for output in outputs) else np.ascontiguousarray(value)
        for value in inputs
    )
    out = outputs[0] if len(outputs) == 1 else tuple(outputs)
    return function is not None and function(model.handle, given, out).__class__ is not int


def run_batch(
    algorithm: Algorithm, model: Any, plan: Plan, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]]
) -> None:
    if plan.count == 0:
        return
    flat = [
        np.ascontiguousarray(array if shape is None else np.broadcast_to(array, shape))
        for array, shape in zip(inputs, plan.expanded, strict=True)
    ]
    absent = [0] * (len(algorithm.inputs) - len(flat))
    pointers = np.array([*map(address, flat), *absent, *map(address, outputs)], np.int64)
    function = entry(algorithm, plan.number, len(inputs), "many")
    tables = model.tables
    fixed = (
        address(tables.ints), address(tables.reals if plan.dtype == DOUBLE else tables.reals32), address(pointers),
        address(plan.meta),
    )  # fmt: skip

    def work(start: int, stop: int) -> int:
        return int(function(*fixed, address(scratch(plan.words, plan.dtype)), start, stop))

    if any(deal(work, plan.count, plan.number.width)):
        raise ValueError(explain(algorithm, model, inputs, plan.number))


def aligned(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """A new array that starts at a cache line: packets are written to it in half the time."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = np.empty(size + LINE, np.uint8)
    start = -address(memory) % LINE
    return memory[start : start + size].view(dtype).reshape(shape)  # type: ignore[no-any-return]


def address(array: NDArray[Any]) -> int:
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def make_plan(algorithm: Algorithm, model: Any, arrays: Sequence[NDArray[Any]]) -> Plan:
    sizes = algorithm.sizes(model.tables, arrays)
    leading = leading_shape(algorithm, arrays, sizes)
    dtype = SINGLE if any(a.dtype == SINGLE for a in arrays) else DOUBLE
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
            numbers = int(np.prod(own, dtype=np.int64))
            one = k < first and arrays[k].size == numbers and arrays[k].shape != (*leading, *own)
            meta[k, SIZE], meta[k, STRIDE] = numbers, 0 if one else numbers
            stage += numbers
            if k < first:
                expanded.append(None if one or arrays[k].shape == (*leading, *own) else (*leading, *own))
    meta[total, STAGE] = stage
    words = (stage + algorithm.work.length(sizes) + 1) * number.words
    shapes = tuple(leading + spec.resolve(sizes) for spec in algorithm.outputs)
    return Plan(
        leading,
        int(np.prod(leading, dtype=np.int64)),
        number,
        dtype,
        tuple(expanded[: len(arrays)]),
        shapes,
        meta,
        words,
    )


def coupled(algorithm: Algorithm, model: Any, inputs: Sequence[Any], out: Any) -> Any:
    """For models with mimic joints."""
    answer = model.coupling.run(algorithm, model, tuple(inputs))
    if out is None:
        return answer
    for target, value in zip(
        [out] if len(algorithm.outputs) == 1 else out, [answer] if len(algorithm.outputs) == 1 else answer, strict=True
    ):
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
        if type(value) is np.ndarray and value.dtype == DOUBLE and not spec.integer:
            arrays.append(value)
            continue
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise TypeError(f"{algorithm.name}: {spec.name} is not an array of numbers ({error})") from None
        if array.dtype.kind not in "fiub":
            raise TypeError(f"{algorithm.name}: {spec.name} is not an array of numbers, but of {array.dtype}")
        if not (spec.integer or array.dtype == SINGLE):
            array = array.astype(DOUBLE)
        arrays.append(np.ascontiguousarray(array, dtype=np.int32) if spec.integer else array)
    if any(a.dtype == SINGLE for a in arrays) and any(a.dtype == DOUBLE for a in arrays):
        arrays = [np.asarray(a, DOUBLE) if a.dtype == SINGLE else a for a in arrays]
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
                f"{algorithm.name}: {spec.name} has shape {tuple(array.shape)}, expected ({expected}), the model's ({named})"
            )
        shapes.append(() if spec.integer else tuple(array.shape[:split]))
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        given = ", ".join(f"{s.name} {shape}" for s, shape in zip(algorithm.inputs, shapes, strict=False))
        raise ValueError(f"{algorithm.name}: the leading axes do not broadcast together: {given}") from None


def results(algorithm: Algorithm, plan: Plan, out: Any) -> list[NDArray[Any]]:
    """The output arrays: new ones, or the caller's after a check."""
    if out is None:
        return [aligned(shape, plan.dtype) for shape in plan.shapes]
    given = [out] if len(plan.shapes) == 1 else list(out)
    for spec, shape, array in zip(algorithm.outputs, plan.shapes, given, strict=True):
        if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != plan.dtype:
            found = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            raise ValueError(f"{algorithm.name}: out for {spec.name} is {found}, expected {plan.dtype} {shape}")
        if not (array.flags.c_contiguous and array.flags.writeable):
            raise ValueError(f"{algorithm.name}: out for {spec.name} must be contiguous and writeable")
    return given


def explain(algorithm: Algorithm, model: Any, inputs: Sequence[NDArray[Any]], number: Number) -> str:
    """Which number of which input the kernels refused."""
    given = list(zip(algorithm.inputs, inputs, strict=False))
    for spec, array in given:
        if not spec.integer and not np.isfinite(array).all():
            place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            index = ", ".join(map(str, place))
            return f"{algorithm.name}: {spec.name}[{index}] is {array[place]}, expected finite numbers"
    tolerance = 0.999 * number.unit_tolerance  # the kernels' own rounding may differ
    for spec, array in given:
        for place in np.ndindex(array.shape[:-1]) if spec.configuration else ():
            words = algorithm.tables.explain(model, array[place], tolerance)
            if words:
                index = f"[{', '.join(map(str, place))}]" if place else ""
                return f"{algorithm.name}: {spec.name}{index}: {words}"
    raise AssertionError("a kernel refused its inputs, yet they are finite and of unit length")
