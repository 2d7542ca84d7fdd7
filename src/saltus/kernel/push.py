"""Directional derivatives in native code: an algorithm run on dual numbers, over samples and over chunks of directions.

    push(ints, reals, pointers, meta, work, start, stop)      samples start ... stop - 1, each along all directions

The tables are those of `many` (see compile.py), with a second row for each argument: `pointers[total + 1 + j]` holds the
slopes of argument j (0: it is constant), `meta` how far apart those of two samples (STRIDE) and two directions (STEP) lie.
The row between, number `total`, has the number of directions (SIZE), where the workspace begins (STAGE), and, in
`pointers`, the address of the stage. Slopes that an algorithm has of its own: push_along.py.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
from numba import njit
from numba.core import types
from numba.core.ccallback import CFunc
from numba.core.compiler_lock import global_compiler_lock

from saltus.kernel import pushcall
from saltus.kernel.compile import NOT_FINITE, Parts, only_lowered, refusal_test
from saltus.kernel.directional import Directional
from saltus.kernel.lower import OPTIONS
from saltus.kernel.lower_memory import META, SIZE, STAGE, STEP, STRIDE, SpanType, shifted, span_at
from saltus.kernel.memory import ld, st
from saltus.kernel.native import CALL
from saltus.kernel.number import F64, Number
from saltus.kernel.target import target_machine
from saltus.kernel.transfer import clear, holds_non_finite

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm

LEVEL = 3
"""Of LLVM's optimiser: above that of other code, for dual numbers run 5 % faster by it (measured)."""

plain = span_at(SpanType(F64))


@njit(**OPTIONS)
def place_values(stage, count, words, base):
    """Of one sample, into the first word of each number of the stage."""
    values = plain(base, 1)
    for k in range(count):
        st(stage, k * words, ld(values, k))


@njit(**OPTIONS)
def place_slopes(stage, count, words, skipped, base, step, there):
    """Along `there` directions from `base` on, into all words but the first ones; zero in lanes past the last."""
    slopes = plain(base, 1)
    for lane in range(words - skipped):
        if lane < there:
            for k in range(count):
                st(stage, k * words + skipped + lane, ld(slopes, lane * step + k))
        else:
            for k in range(count):
                st(stage, k * words + skipped + lane, 0.0)


@njit(**OPTIONS)
def take(stage, count, words, word, base, symmetric):
    """One word of each number of the stage; of a symmetric matrix, the stage has the lower triangle alone."""
    target = plain(base, 1)
    if symmetric:
        n = int(math.sqrt(count))
        for row in range(n):
            for column in range(row + 1):
                value = ld(stage, (row * n + column) * words + word)
                st(target, row * n + column, value)
                st(target, column * n + row, value)
    else:
        for k in range(count):
            st(target, k, ld(stage, k * words + word))


def push_entry(algorithm: Algorithm, number: Number, present: tuple[bool, ...]) -> tuple[Any, Any]:
    parts = Parts(algorithm, number, present, "staged")
    tree_of, view_of, inputs_of, outputs_of = parts.tree, parts.view, parts.inputs, parts.outputs
    configurations_of, kernel = parts.configurations, parts.kernel
    refusal = refusal_test(algorithm, parts.defects, number)
    count, total, lanes, words = len(algorithm.inputs), len(algorithm.arguments), number.slope, number.words
    zeroed, symmetric = (tuple(getattr(o, flag) for o in algorithm.outputs) for flag in ("zeroed", "symmetric"))

    def push(ints, reals, pointers, meta, work, start, stop):
        tree = tree_of(ints, (ints, reals))
        view = view_of(ints, (shifted(work, meta[META * total + STAGE]),))
        directions, memory = meta[META * total + SIZE], pointers[total]
        for j in range(count, total):
            if zeroed[j - count]:
                clear(shifted(work, meta[META * j + STAGE]), meta[META * j + SIZE], symmetric[j - count])
        status = 0
        for sample in range(start, stop):
            for j in range(count):
                row = META * j
                stage = plain(memory + 8 * words * meta[row + STAGE], 1)
                place_values(stage, meta[row + SIZE], words, pointers[j] + 8 * sample * meta[row + STRIDE])
            for first in range(0, max(directions, 1), lanes):  # without directions, values are wanted all the same
                there = min(lanes, directions - first)
                for j in range(count):
                    row, other = META * j, META * (total + 1 + j)
                    stage = plain(memory + 8 * words * meta[row + STAGE], 1)
                    base, step = pointers[total + 1 + j], meta[other + STEP]
                    base += 8 * (sample * meta[other + STRIDE] + first * step)
                    given = there if pointers[total + 1 + j] != 0 else 0
                    place_slopes(stage, meta[row + SIZE], words, 1, base, step, given)
                    if holds_non_finite(shifted(work, meta[row + STAGE]), meta[row + SIZE]):
                        status |= NOT_FINITE
                if first == 0:
                    status |= refusal(tree, configurations_of(pointers, meta, work, 0))
                kernel(tree, *(inputs_of(pointers, meta, work, 0) + (view,) + outputs_of(pointers, meta, work, 0)))
                for j in range(count, total):
                    row, other = META * j, META * (total + 1 + j)
                    stage, size = plain(memory + 8 * words * meta[row + STAGE], 1), meta[row + SIZE]
                    half = symmetric[j - count]
                    if first == 0:
                        take(stage, size, words, 0, pointers[j] + 8 * sample * meta[row + STRIDE], half)
                    base = pointers[total + 1 + j] + 8 * sample * meta[other + STRIDE]
                    for lane in range(there):
                        take(stage, size, words, 1 + lane, base + 8 * (first + lane) * meta[other + STEP], half)
        return status

    addresses = parts.addresses
    return push, types.int64(parts.ints, parts.reals, addresses, addresses, parts.work, types.int64, types.int64)


def emit(algorithm: Algorithm, number: Number, present: tuple[bool, ...], form: str, symbol: str) -> bytes:
    """As compile.py's: the object file defines `push`, and with CALL behind it a wrapper for the interpreter."""
    if isinstance(algorithm, Directional):
        from saltus.kernel.push_along import along_entry

        function, signature = along_entry(algorithm, number, present)
    else:
        function, signature = push_entry(algorithm, number, present)
    callback = CFunc(function, (signature.args, signature.return_type), locals={}, options=dict(OPTIONS))
    with global_compiler_lock, only_lowered():
        result = callback._compile_uncached()
        result.library.finalize()
    module = llvm.parse_assembly(result.library.get_llvm_str().replace("noinline", "alwaysinline"))
    module.get_function(result.fndesc.llvm_cfunc_wrapper_name).name = symbol
    module.link_in(llvm.parse_assembly(pushcall.wrapper(algorithm, present, symbol, symbol + CALL, number)))
    machine, keep = target_machine(), {symbol, symbol + CALL}
    for value in [*module.functions, *module.global_variables]:
        if not value.is_declaration and value.name not in keep:
            value.linkage = llvm.Linkage.internal
    for inner in module.functions:
        if not inner.is_declaration and inner.name not in keep:
            inner.add_function_attribute("alwaysinline")
    tuning = llvm.create_pipeline_tuning_options(speed_level=LEVEL)
    tuning.loop_vectorization = tuning.slp_vectorization = False
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
    return machine.emit_object(module)
