"""Directional derivatives in native code by the slopes that an algorithm has of its own: see directional.py and push.py.

Values are read and written where the user has them. The stage holds slopes alone, as many side by side as there are lanes;
behind it and the workspace of slopes, from word STEP of the row between on, lies the workspace of values.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from saltus.kernel.compile import NOT_FINITE, compiled, refusal_test
from saltus.kernel.directional import Directional
from saltus.kernel.lower import register
from saltus.kernel.lower_memory import (
    I64,
    META,
    SIZE,
    STAGE,
    STEP,
    STRIDE,
    Argument,
    SpanType,
    load_number,
    make_arguments,
    make_view,
    shifted,
)
from saltus.kernel.number import F64, INT32, INT64, Number
from saltus.kernel.push import place_slopes, plain, take
from saltus.kernel.transfer import clear, holds_non_finite


def make_spans(kinds: tuple[SpanType | None, ...], first: int) -> Any:
    """As `make_arguments`, of the numbers of one sample where the user has them, of a batch."""

    @intrinsic
    def spans(typingctx, pointers, meta, stage, sample):
        out = types.Tuple([types.none if kind is None else kind for kind in kinds])

        def codegen(context, builder, sig, args):
            def entry(table: int, k: int) -> Any:
                return load_number(context, builder, sig.args[table], args[table], ir.Constant(I64, k))

            values = []
            for k, kind in enumerate(kinds, first):
                if kind is None:
                    values.append(context.get_dummy_value())
                else:
                    place = builder.inttoptr(entry(0, k), kind.word.as_pointer())
                    values.append(builder.gep(place, [builder.mul(args[3], entry(1, META * k + STRIDE))]))
            return context.make_tuple(builder, out, values)

        return out(pointers, meta, stage, types.int64), codegen

    return spans


def along_entry(algorithm: Directional, number: Number, present: tuple[bool, ...]) -> tuple[Any, Any]:
    register()
    tables, count, total, lanes = algorithm.tables, len(algorithm.inputs), len(algorithm.arguments), number.slope
    value, slope = SpanType(F64), SpanType(Number(number.bits, lanes))
    integers = SpanType(INT32, constant=True)
    kinds = tuple(
        (integers if spec.integer else value) if here else None
        for spec, here in zip(algorithm.arguments, present, strict=True)
    )
    slopes = tuple(Argument(slope, True) if kind is value else None for kind in kinds)
    inputs_of, outputs_of = make_spans(kinds[:count], 0), make_spans(kinds[count:], count)
    turned = tuple(kind if spec.configuration else None for spec, kind in zip(algorithm.inputs, kinds, strict=False))
    configurations_of = make_spans(turned, 0)
    slopes_in = make_arguments(slopes[:count], total + 1, "staged")
    slopes_out = make_arguments(slopes[count:], total + 1 + count, "staged")
    tree_of = make_view(tables.view_class, tables.ints, tables.reals, sizes=True)
    values_view = make_view(algorithm.work.view_class, algorithm.work)
    slopes_view = make_view(algorithm.slopes.view_class, algorithm.slopes)
    prepare, along = compiled(algorithm.kernel), compiled(algorithm.along)
    refusal = refusal_test(algorithm, compiled(tables.defects), F64)
    zeroed = tuple(spec.zeroed for spec in algorithm.outputs)
    changing = tuple(kind is value for kind in kinds[:count])

    def push(ints, reals, pointers, meta, work, start, stop):
        tree = tree_of(ints, (ints, reals))
        directions, memory, status = meta[META * total + SIZE], pointers[total], 0
        w = values_view(ints, (plain(memory + 8 * meta[META * total + STEP], 1),))
        d = slopes_view(ints, (shifted(work, meta[META * total + STAGE]),))
        for j in range(count, total):
            if zeroed[j - count]:
                other = META * (total + 1 + j)
                clear(shifted(work, meta[other + STAGE]), meta[other + SIZE], False)
        for sample in range(start, stop):
            for j in range(count):
                base = pointers[j] + 8 * sample * meta[META * j + STRIDE]
                if changing[j] and holds_non_finite(plain(base, 1), meta[META * j + SIZE]):
                    status |= NOT_FINITE
            for j in range(count, total):
                if zeroed[j - count]:
                    clear(plain(pointers[j] + 8 * sample * meta[META * j + STRIDE], 1), meta[META * j + SIZE], False)
            status |= refusal(tree, configurations_of(pointers, meta, work, sample))
            values, results = inputs_of(pointers, meta, work, sample), outputs_of(pointers, meta, work, sample)
            prepare(tree, *(values + (w,) + results))
            for first in range(0, directions, lanes):
                there = min(lanes, directions - first)
                for j in range(count):
                    if changing[j]:
                        other = META * (total + 1 + j)
                        size, step = meta[other + SIZE], meta[other + STEP]
                        stage = plain(memory + 8 * lanes * meta[other + STAGE], 1)
                        base = pointers[total + 1 + j] + 8 * (sample * meta[other + STRIDE] + first * step)
                        given = there if pointers[total + 1 + j] != 0 else 0
                        place_slopes(stage, size, lanes, 0, base, step, given)
                        if holds_non_finite(stage, lanes * size):
                            status |= NOT_FINITE
                changes = slopes_in(pointers, meta, work, 0), slopes_out(pointers, meta, work, 0)
                along(tree, *(values + changes[0] + (w, d) + results + changes[1]))
                for j in range(count, total):
                    other = META * (total + 1 + j)
                    stage, size = plain(memory + 8 * lanes * meta[other + STAGE], 1), meta[other + SIZE]
                    base = pointers[total + 1 + j] + 8 * sample * meta[other + STRIDE]
                    for lane in range(there):
                        take(stage, size, lanes, lane, base + 8 * (first + lane) * meta[other + STEP], False)
        return status

    ints, addresses = integers, SpanType(INT64)
    reals = SpanType(number.plain, constant=True)
    return push, types.int64(ints, reals, addresses, addresses, slope, types.int64, types.int64)
