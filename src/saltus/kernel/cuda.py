"""The same kernels on a GPU: one thread a sample, on arrays that are there already.

Inputs are anything with `__cuda_array_interface__` (CuPy, PyTorch, JAX), of one precision; results are arrays of CuPy or
PyTorch like them, or our own, on the same device. A launch is asynchronous, on the stream that the library works on, so
inputs are not checked for NaN, which stays visible in the results. What follows from how the arrays lie is worked out once
and kept as a `Plan`.

No more threads are started than the device holds at a time, and each goes on to its next sample (gpu_entry.py), so that the
workspace stays small enough for the cache. It is the library's own memory: given back to it with the call, or, if the launch
becomes part of a graph, kept as long as the model. Samples may lie in any order (`(B, n)` or the transpose of `(n, B)`); the
latter is read faster.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from saltus.arrays import on_gpu, real_numbers
from saltus.kernel import driver, native
from saltus.kernel.gpu_arrays import INTERFACE, Form, Library, contiguous, device_of, library_of, to_device
from saltus.kernel.gpu_entry import places_of
from saltus.kernel.launch import MANY_PLANS, check_count, leading_shape
from saltus.kernel.memory import META, SIZE, STAGE, STEP, STRIDE
from saltus.kernel.number import F32, F64, Number
from saltus.kernel.poison import POISONED, poison
from saltus.kernel.room import BLOCK, size
from saltus.kernel.tables import Filled

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm, Spec

ROUNDS, SMALL, OWN = ((4, 128), (3, 168)), (1, 255), ((2, 255), (4, 128))
"""Blocks that a multiprocessor runs at a time, and the registers that leaves a thread. Measured on an H200: sixteen warps
hide more latency than twelve, unless their code keeps more than `SPILLED` bytes out of registers, and twenty have too few. A
batch that leaves each with four can have all registers, and so has code for one robot, whose workspace they are; but where
it is so `LONG`, in lines of PTX, that it leaves the cache of instructions, more warps have to wait for these, unless more
than `MOST_KEPT` bytes are to be kept."""

LONG, MOST_KEPT = 14_000, 3000
SPILLED = 256

MOST_OWN = 1 << 16
"""Bytes of a workspace that code of one robot has to itself, at most: the driver holds as many for every thread that there
may be, and refuses more than half a megabyte. Beyond, code for all robots has it in memory of the launch's own."""

NAN = 0xFF
"""A byte; words of such bytes are NaN."""

LARGE = 256
"""Numbers of the results of a sample from which on they are made in the workspace, if samples lie one after the other."""

WORK, COUNT, NUMBERS, TABLE = range(4)
"""The words that a launch comes with (gpu_entry.py)."""


@dataclass(eq=False)
class Plan:
    """How arrays that lie in given ways are launched on a device."""

    device: driver.Device
    shapes: list[tuple[int, ...]]  # of the outputs
    zeroed: list[int]  # of these
    reach: list[tuple[int, int]]  # of all arguments: the first byte and the one after the last, from the address on
    work: int  # bytes of the workspace
    launch: driver.Launch | None  # None: there are no samples
    places: list[int]  # in its words, of the addresses of the arguments and of the workspace
    kept: list[Any]  # what graphs work with
    apart: list[int] = field(default_factory=list)  # addresses of the last call with outputs given


def launch(algorithm: Algorithm, model: Any, inputs: Sequence[Any], out: Any, like: Any) -> Any:
    """Run on the GPU that holds `like`, one of the inputs."""
    library = library_of(like.__class__)
    if algorithm.numbers:
        inputs = [number_there(algorithm, k, x, like) if k in algorithm.numbers else x for k, x in enumerate(inputs)]
    outputs = [] if out is None else [out] if len(algorithm.outputs) == 1 else list(out)
    found, addresses, integers = [algorithm, library.device(like), len(inputs)], list[Any](), algorithm.integers
    for k, x in enumerate((*inputs, *outputs)):
        if k in integers and k < len(inputs):
            found.append(seen_integers(x))
            continue
        address, how = library_of(x.__class__).seen(x)
        found.append(how)
        addresses.append(address)
    plans, key = algorithm.filled(model).plans, tuple(found)
    plan = plans.get(key)
    if plan is None:
        if len(plans) > MANY_PLANS:
            plans.clear()
        plan = plans.setdefault(key, make_plan(algorithm, model, inputs, outputs, key))
    with plan.device:
        if not outputs:
            outputs = [library.empty(like, shape) for shape in plan.shapes]
            addresses += map(library.address, outputs)
        elif addresses != plan.apart:
            check_apart(algorithm, plan, addresses)
            plan.apart = addresses
        if plan.launch is not None:
            run(plan, plan.launch, library, like, inputs, outputs, addresses)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def run(
    plan: Plan, prepared: driver.Launch, library: Library, like: Any, inputs: Sequence[Any], outputs: Sequence[Any],
    addresses: list[int],
) -> None:  # fmt: skip
    poison(outputs)
    for k in plan.zeroed:
        outputs[k][...] = 0
    stream = library.stream(like)
    work, address = library.scratch(like, plan.work)
    if POISONED:
        driver.call("cuMemsetD8Async", address, NAN, plan.work, stream)
    if driver.is_capturing(stream):
        plan.kept.append((work, [x for x in inputs if isinstance(x, driver.Memory)]))
    prepared.start(stream, plan.places, [*addresses, address])


def number_there(algorithm: Algorithm, k: int, x: Any, like: Any) -> Any:
    """An input that has one number a sample, which users may have at hand beside arrays on a GPU: there as well."""
    if on_gpu(x):
        return x
    numbers = real_numbers(x, f"{algorithm.name}: {algorithm.inputs[k].name}")
    return to_device(numbers.astype(f"f{like.dtype.itemsize}"), like)


def seen_integers(x: Any) -> Any:
    """What a plan depends on of an array of integers: all of it."""
    array = np.asarray(x, np.int32)
    return array.shape, tuple(array.ravel().tolist())


def form_of(algorithm: Algorithm, spec: Spec, x: Any, how: Any) -> Any:
    """The form of an argument; of integers, these."""
    if spec.integer:
        return np.asarray(x, np.int32)
    if getattr(x, "requires_grad", False):
        raise TypeError(
            f"{algorithm.name}: {spec.name} requires a gradient, expected a tensor that does not (`x.detach()`), or a "
            "function made by `torch_function`"
        )
    if not on_gpu(x):
        raise TypeError(f"{algorithm.name}: {spec.name} is a {type(x).__name__}, expected a CUDA array like the others")
    return library_of(x.__class__).form(how)


def check_apart(algorithm: Algorithm, plan: Plan, addresses: Sequence[int]) -> None:
    """No output lies in the memory of another argument, of which they are the last."""
    count = len(plan.shapes)
    ranges = [(address + low, address + high) for address, (low, high) in zip(addresses, plan.reach, strict=True)]
    for k in range(len(ranges) - count, len(ranges)):
        low, high = ranges[k]
        for j in range(k):
            if low < ranges[j][1] and ranges[j][0] < high:
                names = [spec.name for spec in algorithm.arguments if not spec.integer]
                names = names[: len(ranges) - count] + names[-count:]  # without those that are not given
                raise ValueError(
                    f"{algorithm.name}: out for {names[k]} lies in the memory of {names[j]}, expected memory of its own"
                )


def make_plan(algorithm: Algorithm, model: Any, given: Sequence[Any], out: Sequence[Any], key: tuple[Any, ...]) -> Plan:
    check_count(algorithm, given)
    if algorithm.filled(model).handle is None:
        raise TypeError(f"{algorithm.name}: models with mimic joints run on the CPU, expected NumPy arrays")
    specs = [*algorithm.inputs[: len(given)], *(algorithm.outputs if out else ())]
    forms = [form_of(algorithm, *each) for each in zip(specs, (*given, *out), key[3:], strict=True)]
    inputs, outputs = forms[: len(given)], forms[len(given) :]
    for spec, x, form in zip(specs, (*given, *out), forms, strict=True):
        if not spec.integer and device_of(x) != key[1] and 0 not in form.shape:
            raise ValueError(
                f"{algorithm.name}: {spec.name} is on GPU {device_of(x)}, expected {key[1]} like the others"
            )
    for spec, x in zip(algorithm.outputs, out, strict=bool(out)):
        if getattr(x, INTERFACE)["data"][1]:
            raise ValueError(f"{algorithm.name}: out for {spec.name} is read-only, expected one that can be written")
    dtypes = {form.dtype for form in inputs if isinstance(form, Form)}
    if len(dtypes) > 1 or not dtypes <= {np.dtype(np.float64), np.dtype(np.float32)}:
        found = ", ".join(sorted(map(str, dtypes)))
        raise TypeError(f"{algorithm.name}: CUDA inputs are {found}, expected all float64 or all float32")
    (dtype,) = dtypes
    number = F64 if dtype == np.float64 else F32
    sizes, filled = algorithm.sizes(model, inputs), algorithm.filled(model)
    large = algorithm.known and algorithm.work.length(sizes) * dtype.itemsize > MOST_OWN
    if large and not algorithm.varies and len(given) >= algorithm.general.required:
        algorithm = algorithm.general
    if size(algorithm, number) > driver.device(key[1]).room:
        algorithm = without_room(algorithm)
    leading = leading_shape(algorithm, inputs, sizes)
    shapes = [leading + spec.resolve(sizes) for spec in algorithm.outputs]
    for spec, shape, form in zip(algorithm.outputs, shapes, outputs, strict=bool(outputs)):
        if (form.shape, form.dtype) != (shape, dtype):
            raise ValueError(
                f"{algorithm.name}: out for {spec.name} is {form.dtype} {form.shape}, expected {dtype} {shape}"
            )
    outputs = outputs or [Form(shape, contiguous(shape), dtype) for shape in shapes]
    count, total, first = math.prod(leading), len(algorithm.arguments), len(algorithm.inputs)
    places = places_of(algorithm)
    words = np.zeros(TABLE + places.length, np.int64)
    table = words[TABLE:]
    meta = table[places.meta : places.staged].reshape(total, META)
    arguments = {**dict(enumerate(inputs)), **dict(enumerate(outputs, first))}
    for k, form in arguments.items():
        meta[k] = describe(algorithm, algorithm.arguments[k], form, leading)
        if k >= first and not lie_apart(int(meta[k, STRIDE]), int(meta[k, STEP]), int(meta[k, SIZE]), count):
            raise ValueError(
                f"{algorithm.name}: out for {algorithm.arguments[k].name} has strides {form.strides}: expected samples in "
                "memory of their own"
            )
    own = 1 if algorithm.known else algorithm.work.length(sizes) + 1
    if is_staged(algorithm, outputs, meta[first:, SIZE]):
        meta[first:, STAGE] = own + np.cumsum([0, *meta[first:-1, SIZE]])
        own, table[places.staged] = own + meta[first:, SIZE].sum(), 1
    device = driver.device(key[1])
    table[places.sizes : places.groups] = [sizes[name] for name in algorithm.tables.sizes]
    copies = device_tables(filled, number, device)
    table[places.groups : places.work] = filled.addresses([copy.address for copy in copies], number.bits)
    bases = algorithm.work.bases(sizes).values()
    table[places.work :] = [start * BLOCK * dtype.itemsize for start in bases]
    words[[COUNT, NUMBERS]] = count, own
    prepared, blocks = None, 0
    if count:
        function, most = chosen(algorithm, number, len(given), count, device)
        blocks = min(-(-count // BLOCK), device.processors * most)
        prepared = driver.Launch(function, blocks, BLOCK, words, size(algorithm, number))
    there = {k: form for k, form in arguments.items() if isinstance(form, Form)}
    return Plan(
        device=device,
        shapes=shapes,
        zeroed=[k for k, spec in enumerate(algorithm.outputs) if spec.zeroed],
        reach=[form.reach() for form in there.values()],
        work=int(own) * BLOCK * blocks * dtype.itemsize,
        launch=prepared,
        places=[*(TABLE + k for k in there), WORK],
        kept=filled.kept,
    )


@functools.cache
def without_room(algorithm: Algorithm) -> Algorithm:
    """The same for devices whose blocks share less memory."""
    made = copy(algorithm)
    made.waiting, made.signature = (), f"{algorithm.signature} without room"
    return made


def describe(algorithm: Algorithm, spec: Spec, form: Any, leading: tuple[int, ...]) -> Any:
    """An argument's row of `meta`: size, and strides of samples and numbers; or the integers."""
    if spec.integer:
        if np.size(form) > 2 * META and np.ptp(form):  # of counts, all the same, kernels read the first
            raise ValueError(
                f"{algorithm.name}: {spec.name} has {np.size(form)} integers, expected at most {2 * META} on a GPU, "
                "where they come with the launch"
            )
        return np.resize(np.append(form, np.zeros(2 * META, np.int32)), 2 * META).view(np.int64)
    split = len(form.shape) - len(spec.shape)
    step, stride = form.flat(split, len(form.shape)), form.flat(0, split)
    alike = form.shape[:split] == leading
    if not alike and math.prod(form.shape[:split]) != 1:
        stride = None
    if step is None or stride is None:
        raise ValueError(
            f"{algorithm.name}: {spec.name} has shape {form.shape} and strides {form.strides}: on a GPU, samples and "
            f"their numbers must lie evenly; broadcast it to {leading} and make it contiguous"
        )
    return math.prod(form.shape[split:]), stride if alike else 0, step, 0


def lie_apart(stride: int, step: int, size: int, count: int) -> bool:
    """Whether no two numbers of any samples are the same word: each sample lies before the next, or each number."""
    stride, step = abs(stride), abs(step)
    if count <= 1 or size <= 1:
        return (size <= 1 or step > 0) and (count <= 1 or size == 0 or stride > 0)
    return stride > step * (size - 1) >= 1 or step > stride * (count - 1) >= 1


def is_staged(algorithm: Algorithm, outputs: Sequence[Form], lengths: Any) -> bool:
    """Whether results are made in the workspace: large ones, written in full, whose samples lie one after the other."""
    if algorithm.known or lengths.sum() < LARGE or any(spec.zeroed for spec in algorithm.outputs):
        return False
    return outputs[int(np.argmax(lengths))].strides[-1] == 1


def chosen(algorithm: Algorithm, number: Number, given: int, count: int, device: driver.Device) -> tuple[Any, int]:
    """The function for so many samples, and how many of its blocks a multiprocessor runs at a time."""
    if count <= device.processors * SMALL[0] * BLOCK:
        return gpu_function(algorithm, number, given, SMALL[1], device.ordinal), SMALL[0]
    (blocks, registers), fewer = OWN if algorithm.known else ROUNDS
    function = gpu_function(algorithm, number, given, registers, device.ordinal)
    with device:
        spilled = driver.spilled(function)
    if algorithm.known:
        others = spilled < MOST_KEPT and length(algorithm, number, given) > LONG
    else:
        others = spilled > SPILLED
    if others:
        blocks, registers = fewer
        function = gpu_function(algorithm, number, given, registers, device.ordinal)
    return function, blocks


@functools.cache
def gpu_function(algorithm: Algorithm, number: Number, given: int, registers: int, ordinal: int) -> Any:
    """A function on a device."""
    code = compile_ptx(algorithm, number, given).encode()
    with driver.device(ordinal):
        return driver.load(code, native.KERNEL, registers)


def compile_ptx(algorithm: Algorithm, number: Number, given: int) -> str:
    """The PTX of an algorithm; works on a machine without a GPU."""
    with native._lock:
        return native.prepare(algorithm, number, algorithm.present(given), native.GPU)[1].decode()


@functools.cache
def length(algorithm: Algorithm, number: Number, given: int) -> int:
    """Lines of PTX."""
    return compile_ptx(algorithm, number, given).count("\n")


def device_tables(filled: Filled, number: Number, device: driver.Device) -> list[driver.Memory]:
    """The integers and reals of all parts, on a device."""
    copies: list[driver.Memory] = []
    for part in filled.parts:
        key = (device.ordinal, number.bits)
        if key not in part.devices:
            with device:
                made = [driver.Memory(array.shape, array.dtype, array) for array in part.arrays(number.bits)]
            part.devices.setdefault(key, made)  # another thread may have been faster: plans hold these addresses
        copies += part.devices[key]
    return copies
