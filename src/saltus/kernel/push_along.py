"""Directional derivatives in native code by the slopes that an algorithm has of its own: see directional.py and push.py.

Values are read and written where the user has them. The stage holds slopes alone, as many side by side as there are lanes;
behind it and the workspace of slopes, from word STEP of the row between on, lies the workspace of values.
"""

from __future__ import annotations

from saltus.kernel.directional import Directional
from saltus.kernel.entries import NOT_FINITE, Argument, Entry, Parts, make_arguments, make_view
from saltus.kernel.memory import META, SIZE, STAGE, STEP, STRIDE, tail
from saltus.kernel.number import F64, Number
from saltus.kernel.push import place_slopes, plain, take
from saltus.kernel.transfer import clear, holds_non_finite
from saltus.kernel.values import INT, Span


def along_entry(algorithm: Directional, number: Number, present: tuple[bool, ...]) -> Entry:
    count, total, lanes = len(algorithm.inputs), len(algorithm.arguments), number.slope
    parts, slope = Parts(algorithm, F64, present, "direct"), Span(Number(number.bits, lanes))
    slopes = [
        Argument(total + 1 + k, slope, "staged") if here and not spec.integer else None
        for k, (spec, here) in enumerate(zip(algorithm.arguments, present, strict=True))
    ]
    slopes_in, slopes_out = make_arguments(slopes[:count]), make_arguments(slopes[count:])
    slopes_view, along = make_view(algorithm, algorithm.slopes), algorithm.along
    changing = tuple(k for k, a in enumerate(slopes[:count]) if a)
    results = tuple(range(count, total))
    zeroed = tuple(k for k, spec in enumerate(algorithm.outputs, count) if spec.zeroed)

    def push(handle, pointers, meta, work, start, stop):
        tree = parts.tree(handle)
        directions, memory, status = meta[META * total + SIZE], pointers[total], 0
        w = parts.view(handle, plain(memory + 8 * meta[META * total + STEP]))
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
            status |= parts.refusal(tree, parts.configurations(pointers, meta, work, sample))
            inputs, outputs = parts.inputs(pointers, meta, work, sample), parts.outputs(pointers, meta, work, sample)
            parts.run(tree, *inputs, w, *outputs)
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

    return Entry(push, (*parts.types[:3], slope, INT, INT))
