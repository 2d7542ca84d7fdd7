"""Whole samples on their way between user arrays and packets, and what is checked and cleared there."""

from __future__ import annotations

from math import isqrt

from saltus.kernel.lanes import gather_block, gather_lane, not_finite, scatter_diagonal, scatter_lane, scatter_run
from saltus.kernel.memory import ld, st
from saltus.kernel.tuples import kernel

TOGETHER = 8
"""Numbers that are looked at in one go."""


@kernel
def holds_non_finite(span, count):
    found, whole = 0, count - count % TOGETHER
    for k in range(0, whole, TOGETHER):
        found |= not_finite(span, k, TOGETHER)
    for k in range(whole, count):
        found |= not_finite(span, k, 1)
    return found


@kernel
def pack(packed, count, width, base, sample, stop, stride):
    """Lanes of the samples from `sample` on; lanes past the last one repeat it."""
    if sample + width <= stop and count >= width:
        for column in range(0, count - width + 1, width):
            gather_block(packed, column, base, sample, stride)
        if count % width:
            gather_block(packed, count - width, base, sample, stride)
    else:
        for lane in range(width):
            for column in range(count):
                gather_lane(packed, column, lane, base, min(sample + lane, stop - 1), stride)


@kernel
def unpack(packed, count, width, base, sample, stop, stride):
    """The lanes of the samples from `sample` on, into their rows of the user's array."""
    if sample + width <= stop and count >= width:
        for first in range(0, count, width):
            column = min(first, count - width)
            scatter_run(packed, column, 1, column, base, sample, stride)
    else:
        for lane in range(min(width, stop - sample)):
            for column in range(count):
                scatter_lane(packed, column, lane, base, sample + lane, stride)


@kernel
def unpack_symmetric(packed, count, width, base, sample, stop, stride):
    """The same for a matrix of which only the lower triangle is packed: half the memory to go through."""
    n = isqrt(count)
    if sample + width <= stop and n >= width:
        for row in range(n):
            for first in range(0, n, width):
                column = min(first, n - width)
                if column + width <= row + 1:
                    scatter_run(packed, row * n + column, 1, row * n + column, base, sample, stride)
                elif column > row:
                    scatter_run(packed, column * n + row, n, row * n + column, base, sample, stride)
                else:
                    scatter_diagonal(packed, row, column, n, base, sample, stride)
    else:
        for row in range(n):
            for column in range(row):
                st(packed, column * n + row, ld(packed, row * n + column))
        unpack(packed, count, width, base, sample, stop, stride)


@kernel
def clear(packed, count, symmetric):
    n = isqrt(count) if symmetric else 1
    for row in range(n):
        for column in range(row + 1 if symmetric else count):
            st(packed, row * n + column, 0.0)
