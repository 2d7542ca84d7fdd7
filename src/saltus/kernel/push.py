"""Directional derivatives in native code: an algorithm run on dual numbers, over samples and over chunks of directions.

    push(handle, pointers, meta, work, start, stop)      samples start ... stop - 1, each along all directions

The tables are those of `many` (see entries.py), with a second row for each argument: `pointers[total + 1 + j]` holds the
slopes of argument j (0: it is constant), `meta` how far apart those of two samples (STRIDE) and two directions (STEP) lie.
The row between, number `total`, has the number of directions (SIZE), where the workspace begins (STAGE), and, in
`pointers`, the address of the stage. Slopes that an algorithm has of its own: push_along.py.
"""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING

from saltus.kernel.entries import NOT_FINITE, Entry, Parts, span_at
from saltus.kernel.memory import META, SIZE, STAGE, STEP, STRIDE, ld, st, tail
from saltus.kernel.number import F64, Number
from saltus.kernel.transfer import clear, holds_non_finite
from saltus.kernel.tuples import kernel
from saltus.kernel.values import INT, Span

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm

plain = span_at(Span(F64))


@kernel
def place_values(stage, count, words, base):
    """Of one sample, into the first word of each number of the stage."""
    values = plain(base)
    for k in range(count):
        st(stage, k * words, ld(values, k))


@kernel
def place_slopes(stage, count, words, skipped, base, step, there):
    """Along `there` directions from `base` on, into all words but the first ones; zero in lanes past the last."""
    slopes = plain(base)
    for lane in range(words - skipped):
        if lane < there:
            for k in range(count):
                st(stage, k * words + skipped + lane, ld(slopes, lane * step + k))
        else:
            for k in range(count):
                st(stage, k * words + skipped + lane, 0.0)


@kernel
def take(stage, count, words, word, base, symmetric):
    """One word of each number of the stage; of a symmetric matrix, the stage has the lower triangle alone."""
    target = plain(base)
    if symmetric:
        n = isqrt(count)
        for row in range(n):
            for column in range(row + 1):
                value = ld(stage, (row * n + column) * words + word)
                st(target, row * n + column, value)
                st(target, column * n + row, value)
    else:
        for k in range(count):
            st(target, k, ld(stage, k * words + word))


def push_entry(algorithm: Algorithm, number: Number, present: tuple[bool, ...]) -> Entry:
    parts = Parts(algorithm, number, present, "staged")
    count, total, lanes, words = len(algorithm.inputs), len(algorithm.arguments), number.slope, number.words
    outputs = tuple((k, spec.zeroed, spec.symmetric) for k, spec in enumerate(algorithm.outputs, count))

    def push(handle, pointers, meta, work, start, stop):
        tree = parts.tree(handle)
        view = parts.view(handle, tail(work, meta[META * total + STAGE]))
        directions, memory = meta[META * total + SIZE], pointers[total]
        for j, zeroed, symmetric in outputs:
            if zeroed:
                clear(tail(work, meta[META * j + STAGE]), meta[META * j + SIZE], symmetric)
        status = 0
        for sample in range(start, stop):
            for j in range(count):
                row = META * j
                stage = plain(memory + 8 * words * meta[row + STAGE])
                place_values(stage, meta[row + SIZE], words, pointers[j] + 8 * sample * meta[row + STRIDE])
            for first in range(0, max(directions, 1), lanes):  # without directions, values are wanted all the same
                there = min(lanes, directions - first)
                for j in range(count):
                    row, other = META * j, META * (total + 1 + j)
                    stage = plain(memory + 8 * words * meta[row + STAGE])
                    base, step = pointers[total + 1 + j], meta[other + STEP]
                    base += 8 * (sample * meta[other + STRIDE] + first * step)
                    given = there if pointers[total + 1 + j] != 0 else 0
                    place_slopes(stage, meta[row + SIZE], words, 1, base, step, given)
                    if holds_non_finite(tail(work, meta[row + STAGE]), meta[row + SIZE]):
                        status |= NOT_FINITE
                if first == 0:
                    status |= parts.refusal(tree, parts.configurations(pointers, meta, work, 0))
                parts.run(tree, *parts.inputs(pointers, meta, work, 0), view, *parts.outputs(pointers, meta, work, 0))
                for j, _, symmetric in outputs:
                    row, other = META * j, META * (total + 1 + j)
                    stage, size = plain(memory + 8 * words * meta[row + STAGE]), meta[row + SIZE]
                    if first == 0:
                        take(stage, size, words, 0, pointers[j] + 8 * sample * meta[row + STRIDE], symmetric)
                    base = pointers[total + 1 + j] + 8 * sample * meta[other + STRIDE]
                    for lane in range(there):
                        take(stage, size, words, 1 + lane, base + 8 * (first + lane) * meta[other + STEP], symmetric)
        return status

    return Entry(push, (*parts.types, INT, INT))
