"""Directional derivatives in native code by the slopes that an algorithm has of its own: see directional.py and push.py.

Values are read and written where the user has them. The stage holds slopes alone, as many side by side as there are lanes;
behind it and the workspace of slopes, from word STEP of the row between on, lies the workspace of values.
"""

from __future__ import annotations

from saltus.kernel.directional import Directional
from saltus.kernel.entries import (
    INTS,
    NOT_FINITE,
    TABLE,
    Argument,
    Entry,
    make_arguments,
    make_refusal,
    make_tree,
    make_view,
)
from saltus.kernel.memory import META, SIZE, STAGE, STEP, STRIDE, tail
from saltus.kernel.number import F64, Number
from saltus.kernel.push import place_slopes, plain, take
from saltus.kernel.transfer import clear, holds_non_finite
from saltus.kernel.values import INT, Span


def along_entry(algorithm: Directional, number: Number, present: tuple[bool, ...]) -> Entry:
    count, total, lanes = len(algorithm.inputs), len(algorithm.arguments), number.slope
    slope = Span(Number(number.bits, lanes))
    values = [
        Argument(k, INTS if spec.integer else Span(F64), "given") if here else None
        for k, (spec, here) in enumerate(zip(algorithm.arguments, present, strict=True))
    ]
    slopes = [Argument(total + 1 + a.k, slope, "staged") if a and a.span is not INTS else None for a in values]
    inputs_of, outputs_of = make_arguments(values[:count]), make_arguments(values[count:])
    slopes_in, slopes_out = make_arguments(slopes[:count]), make_arguments(slopes[count:])
    turned = [a if spec.configuration else None for a, spec in zip(values[:count], algorithm.inputs, strict=True)]
    configurations_of, refusal = make_arguments(turned), make_refusal(algorithm, F64, present)
    tree_of = make_tree(algorithm, number)
    values_view, slopes_view = (make_view(algorithm, layout) for layout in (algorithm.work, algorithm.slopes))
    prepare, along = algorithm.kernel, algorithm.along
    changing = tuple(k for k, a in enumerate(slopes[:count]) if a)
    results = tuple(range(count, total))
    zeroed = tuple(k for k, spec in enumerate(algorithm.outputs, count) if spec.zeroed)

    def push(handle, pointers, meta, work, start, stop):
        tree = tree_of(handle)
        directions, memory, status = meta[META * total + SIZE], pointers[total], 0
        w = values_view(handle, plain(memory + 8 * meta[META * total + STEP]))
        d = slopes_view(handle, tail(work, meta[META * total + STAGE]))
        for j in zeroed:
            other = META * (total + 1 + j)
            clear(tail(work, meta[other + STAGE]), meta[other + SIZE], False)
        for sample in range(start, stop):
            for j in changing:
                base = pointers[j] + 8 * sample * meta[META * j + STRIDE]
                if holds_non_finite(plain(base), meta[META * j + SIZE]):
                    status |= NOT_FINITE
            for j in zeroed:
                clear(plain(pointers[j] + 8 * sample * meta[META * j + STRIDE]), meta[META * j + SIZE], False)
            status |= refusal(tree, configurations_of(pointers, meta, work, sample))
            inputs, outputs = inputs_of(pointers, meta, work, sample), outputs_of(pointers, meta, work, sample)
            prepare(tree, *inputs, w, *outputs)
            for first in range(0, directions, lanes):
                there = min(lanes, directions - first)
                for j in changing:
                    other = META * (total + 1 + j)
                    size, step = meta[other + SIZE], meta[other + STEP]
                    stage = plain(memory + 8 * lanes * meta[other + STAGE])
                    base = pointers[total + 1 + j] + 8 * (sample * meta[other + STRIDE] + first * step)
                    given = there if pointers[total + 1 + j] != 0 else 0
                    place_slopes(stage, size, lanes, 0, base, step, given)
                    if holds_non_finite(stage, lanes * size):
                        status |= NOT_FINITE
                dinputs, doutputs = slopes_in(pointers, meta, work, 0), slopes_out(pointers, meta, work, 0)
                along(tree, *inputs, *dinputs, w, d, *outputs, *doutputs)
                for j in results:
                    other = META * (total + 1 + j)
                    stage, size = plain(memory + 8 * lanes * meta[other + STAGE]), meta[other + SIZE]
                    base = pointers[total + 1 + j] + 8 * sample * meta[other + STRIDE]
                    for lane in range(there):
                        take(stage, size, lanes, lane, base + 8 * (first + lane) * meta[other + STEP], False)
        return status

    return Entry(push, (TABLE, TABLE, TABLE, slope, INT, INT))
