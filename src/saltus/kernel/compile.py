"""From a kernel and a number type to native code: Numba types and lowers, LLVM optimises, the object file is kept.

Every algorithm is compiled into functions of one signature, so that calling them needs no code of its own:

    one (ints, reals, pointers, meta, work)                 one sample, arrays used in place
    many(ints, reals, pointers, meta, work, start, stop)    samples start ... stop - 1, packed into lanes

`pointers` holds the address of each array argument, `meta` describes it (see `lower_memory.META`). Both return a status:
0, or the sum of `NOT_FINITE`, `NOT_UNIT` and `TOO_FAR` if an input holds NaN or infinity, or a configuration a quaternion
(or a cosine and sine) that is not of unit length, or an angle beyond those that `sincos` takes.
"""

from __future__ import annotations

import types as pytypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import llvmlite.binding as llvm
from numba import njit
from numba.core import types
from numba.core.ccallback import CFunc
from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary, JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUContext
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.extending import intrinsic

from saltus.kernel import fastcall
from saltus.kernel.lower import OPTIONS, register
from saltus.kernel.lower_memory import (
    META,
    SIZE,
    STAGE,
    STRIDE,
    Argument,
    SpanType,
    make_arguments,
    make_view,
    shifted,
    span_at,
)
from saltus.kernel.native import CALL
from saltus.kernel.number import INT32, INT64, Number
from saltus.kernel.scalar import less, some
from saltus.kernel.target import target_machine
from saltus.kernel.transfer import clear, holds_non_finite, pack, sender
from saltus.kernel.tuples import is_kernel

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm

NOT_FINITE, NOT_UNIT, TOO_FAR = 1, 2, 4

_twins: dict[Any, Any] = {}
_compiled: dict[Any, Any] = {}


def twin(function: Callable[..., Any]) -> Any:
    """The same function with every kernel that it calls replaced by that kernel's compiled form."""
    if function not in _twins:
        scope = dict(function.__globals__)
        _twins[function] = pytypes.FunctionType(
            function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
        )
        for name in function.__code__.co_names:
            if is_kernel(scope.get(name)):
                scope[name] = compiled(scope[name])
    return _twins[function]


def compiled(function: Callable[..., Any]) -> Any:
    """The Numba dispatcher of a kernel."""
    if function not in _compiled:
        _compiled[function] = njit(**OPTIONS)(twin(function))
    return _compiled[function]


class Parts:
    """The pieces from which the entry points of one algorithm are made, for a number type and a set of arguments."""

    def __init__(self, algorithm: Algorithm, number: Number, present: tuple[bool, ...], source: str) -> None:
        register()
        strided = source == "strided"
        self.ints, self.addresses = SpanType(INT32, constant=True), SpanType(INT64)
        self.reals, self.work = SpanType(number.plain, constant=True), SpanType(number, strided)
        arguments = [
            Argument(SpanType(INT32, constant=True), False) if spec.integer
            else Argument(SpanType(number, strided, half=spec.symmetric and source == "staged"), True)
            for spec in algorithm.arguments
        ]  # fmt: skip
        kinds = tuple(a if here else None for a, here in zip(arguments, present, strict=True))
        count = len(algorithm.inputs)
        tables = algorithm.tables
        self.tree = make_view(tables.view_class, tables.ints, tables.reals, sizes=True)
        self.view = make_view(algorithm.work.view_class, algorithm.work)
        self.inputs = make_arguments(kinds[:count], 0, source)
        self.outputs = make_arguments(kinds[count:], count, source)
        self.kernel = compiled(algorithm.kernel)
        self.defects = compiled(tables.defects)
        self.configurations = make_arguments(
            tuple(k if spec.configuration else None for k, spec in zip(kinds[:count], algorithm.inputs, strict=True)),
            0, source,
        )  # fmt: skip


def one_entry(algorithm: Algorithm, number: Number, present: tuple[bool, ...]) -> tuple[Any, Any]:
    parts = Parts(algorithm, number, present, "direct")
    tree_of, view_of, inputs_of, outputs_of = parts.tree, parts.view, parts.inputs, parts.outputs
    configurations_of, kernel = parts.configurations, parts.kernel
    refusal = refusal_test(algorithm, parts.defects, number)
    at, count = span_at(SpanType(number)), len(algorithm.inputs)

    def one(ints, reals, pointers, meta, work):
        tree = tree_of(ints, (ints, reals))
        status = 0
        for j in range(count):
            if holds_non_finite(at(pointers[j], 1), meta[META * j + SIZE]):
                status = NOT_FINITE
        status |= refusal(tree, configurations_of(pointers, meta, work, 0))
        kernel(
            tree,
            *(inputs_of(pointers, meta, work, 0) + (view_of(ints, (work,)),) + outputs_of(pointers, meta, work, 0)),
        )
        return status

    return one, types.int64(parts.ints, parts.reals, parts.addresses, parts.addresses, parts.work)


def many_entry(algorithm: Algorithm, number: Number, present: tuple[bool, ...]) -> tuple[Any, Any]:
    parts = Parts(algorithm, number, present, "staged")
    tree_of, view_of, inputs_of, outputs_of = parts.tree, parts.view, parts.inputs, parts.outputs
    configurations_of, kernel = parts.configurations, parts.kernel
    refusal = refusal_test(algorithm, parts.defects, number)
    count, total, width = len(algorithm.inputs), len(algorithm.arguments), number.width
    zeroed, symmetric = (tuple(getattr(o, flag) for o in algorithm.outputs) for flag in ("zeroed", "symmetric"))
    send = sender(symmetric)

    def many(ints, reals, pointers, meta, work, start, stop):
        tree = tree_of(ints, (ints, reals))
        view = view_of(ints, (shifted(work, meta[META * total + STAGE]),))
        for j in range(count, total):
            if zeroed[j - count]:
                clear(shifted(work, meta[META * j + STAGE]), meta[META * j + SIZE], symmetric[j - count])
        status = 0
        for sample in range(start, stop, width):
            for j in range(count):
                size = meta[META * j + SIZE]
                packed = shifted(work, meta[META * j + STAGE])
                pack(packed, size, width, pointers[j], sample, stop, meta[META * j + STRIDE])
                if holds_non_finite(packed, size):
                    status |= NOT_FINITE
            status |= refusal(tree, configurations_of(pointers, meta, work, 0))
            kernel(tree, *(inputs_of(pointers, meta, work, 0) + (view,) + outputs_of(pointers, meta, work, 0)))
            for j in range(count, total):
                packed = shifted(work, meta[META * j + STAGE])
                size, stride = meta[META * j + SIZE], meta[META * j + STRIDE]
                send(j - count, packed, size, width, pointers[j], sample, stop, stride)
        return status

    addresses = parts.addresses
    return many, types.int64(parts.ints, parts.reals, addresses, addresses, parts.work, types.int64, types.int64)


def refusal_test(algorithm: Algorithm, defects: Any, number: Number) -> Any:
    """A function (tree, configurations or None ...) -> the sum of NOT_UNIT and TOO_FAR, if one of them is refused so."""
    tolerance, largest = number.unit_tolerance, number.largest_angle
    if not any(spec.configuration for spec in algorithm.inputs):
        return njit(**OPTIONS)(lambda tree, configurations: 0)

    @njit(**OPTIONS)
    def test(tree, configurations):
        status = 0
        for q in literal_spans(configurations):
            off_unit, angle = defects(tree, q)
            if some(less(tolerance, off_unit)):
                status |= NOT_UNIT
            if some(less(largest, angle)):
                status |= TOO_FAR
        return status

    return test


@intrinsic
def literal_spans(typingctx, spans):
    """The spans of a tuple that are there, as a uniform tuple."""
    there = [k for k, ty in enumerate(spans.types) if isinstance(ty, SpanType)]
    out = types.UniTuple(spans.types[there[0]], len(there))

    def codegen(context, builder, sig, args):
        return context.make_tuple(builder, out, [builder.extract_value(args[0], k) for k in there])

    return out(spans), codegen


ENTRIES = {"one": one_entry, "many": many_entry}


def emit(algorithm: Algorithm, number: Number, present: tuple[bool, ...], form: str, symbol: str) -> bytes:
    """Compile; the object file defines the symbol given, and with CALL behind it a wrapper for the interpreter."""
    function, signature = ENTRIES[form](algorithm, number, present)
    callback = CFunc(function, (signature.args, signature.return_type), locals={}, options=dict(OPTIONS))
    with global_compiler_lock, only_lowered():
        result = callback._compile_uncached()
        result.library.finalize()
    # Numba's way in from C keeps the function out of line; inside, LLVM sees that it never fails.
    module = llvm.parse_assembly(result.library.get_llvm_str().replace("noinline", "alwaysinline"))
    module.get_function(result.fndesc.llvm_cfunc_wrapper_name).name = symbol
    module.link_in(llvm.parse_assembly(fastcall.wrapper(algorithm, present, symbol, symbol + CALL, number)))
    machine = target_machine()
    optimise(module, machine, symbol)
    needed = [f.name for f in module.functions if f.is_declaration and f.name.lower().startswith(("numba", "nrt"))]
    if needed:  # another process, without Numba, would crash
        raise RuntimeError(f"{algorithm.name} for {number.name} calls {', '.join(needed)}, expected nothing of Numba's")
    return machine.emit_object(module)


@contextmanager
def only_lowered() -> Iterator[None]:
    """Numba makes machine code of every function that it compiles, and optimises each. Ours become one function, which is
    optimised once: meanwhile it does neither, and takes half the time. Hold its lock: others must not compile so."""
    rtsys.initialize(cpu_target.target_context)  # its own runtime needs machine code

    def nothing(*arguments: Any) -> None:
        return None

    def entry(*arguments: Any) -> Any:
        return object().__dir__  # a builtin like no other: callers find the function by it, and never run it

    with (
        patch.object(JITCPUCodegen, "_add_module", nothing),
        patch.object(JITCodeLibrary, "_finalize_specific", nothing),
        patch.object(CPUCodeLibrary, "_optimize_final_module", nothing),
        patch.object(CPUCodeLibrary, "_optimize_functions", nothing),
        patch.object(CPUContext, "get_executable", entry),
    ):
        yield


def optimise(module: Any, machine: Any, symbol: str) -> None:
    """Make one function of all, `symbol`: tuples then live in registers, and nothing but it and its wrapper is visible from
    outside. It stays one, wherever it is called from, so that all ways to call it give the same bits."""
    visible = {symbol, symbol + CALL}
    for value in [*module.functions, *module.global_variables]:
        if not value.is_declaration and value.name not in visible:
            value.linkage = llvm.Linkage.internal
    module.get_function(symbol).add_function_attribute("noinline")
    for function in module.functions:
        if not function.is_declaration and function.name not in visible:
            function.add_function_attribute("alwaysinline")
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_vectorization = tuning.slp_vectorization = False
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
