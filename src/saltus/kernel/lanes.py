"""Moves between user arrays, one sample after the other, and packets, one lane a sample; and the check for NaN.

    rows (samples) x n   <->   n x lanes

Blocks of `width` samples by `width` numbers are transposed in registers, by log2(width) rounds of shuffles.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from saltus.kernel.lower_memory import I64, SpanType, address, load_packet, store_packet


def transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """The transpose of a square block, given as vectors: each round swaps off-diagonal blocks of twice the size."""
    width, rows = len(rows), list(rows)
    step = 1
    while step < width:
        upper = [lane if not lane & step else width + lane - step for lane in range(width)]
        lower = [lane + step if not lane & step else width + lane for lane in range(width)]
        for i in range(width):
            if not i & step:
                a, b = rows[i], rows[i + step]
                rows[i], rows[i + step] = (
                    builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), width), mask))
                    for mask in (upper, lower)
                )
        step *= 2
    return rows


def _corner(builder: Any, word: Any, base: Any, row: Any, stride: Any, column: Any) -> Any:
    """The address of user[row, column], from the user array's address as an integer."""
    pointer = builder.inttoptr(base, word.as_pointer())
    return builder.gep(pointer, [builder.add(builder.mul(row, stride), column)])


@intrinsic
def gather_block(typingctx, packed, column, base, sample, stride):
    """packed[column : column + width] = user[sample : sample + width, column : column + width]^T"""
    number = packed.number

    def codegen(context, builder, sig, args):
        span, column, base, sample, stride = args
        rows = []
        for lane in range(number.width):
            row = builder.add(sample, ir.Constant(I64, lane))
            pointer = _corner(builder, packed.word, base, row, stride, column)
            rows.append(load_packet(builder, number.bits, number.width, pointer))
        for k, row in enumerate(transposed(builder, rows)):
            index = builder.add(column, ir.Constant(I64, k))
            store_packet(builder, number.width, row, address(builder, packed, span, index))
        return context.get_dummy_value()

    return types.void(packed, *[types.int64] * 4), codegen


AHEAD = 128
"""Bytes. So far ahead in each row, cache lines are fetched for writing: stores retire in order, and as many rows as there
are lanes are more than what processors foresee by themselves. Without it a store costs twice as much (measured)."""


def fetch_for_writing(builder: Any, pointer: Any) -> None:
    byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
    prefetch = builder.module.declare_intrinsic(
        "llvm.prefetch", (byte,), ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
    )
    place = builder.gep(builder.bitcast(pointer, byte), [_index(AHEAD)])
    write, everywhere, data = (ir.Constant(flag, k) for k in (1, 3, 1))
    builder.call(prefetch, [place, write, everywhere, data])


def scatter(builder: Any, packed: SpanType, span: Any, sources: list[Any], user: Any) -> None:
    """The numbers at the indices `sources` of a packed span, side by side into the rows of all lanes' samples.

    `user` gives the address of the first of them in the row of a lane.
    """
    number = packed.number
    for lane in range(number.width):
        fetch_for_writing(builder, user(lane))
    rows = [load_packet(builder, number.bits, number.width, address(builder, packed, span, k)) for k in sources]
    for lane, row in enumerate(transposed(builder, rows)):
        store_packet(builder, number.width, row, user(lane))


def _index(k: int) -> Any:
    return ir.Constant(I64, k)


def _user_rows(builder: Any, packed: SpanType, base: Any, sample: Any, stride: Any, column: Any) -> Any:
    return lambda lane: _corner(builder, packed.word, base, builder.add(sample, _index(lane)), stride, column)


@intrinsic
def scatter_run(typingctx, packed, source, step, column, base, sample, stride):
    """user[sample + lane, column + i] = packed[source + i step][lane], i = 0 ... width - 1"""

    def codegen(context, builder, sig, args):
        span, source, step, column, base, sample, stride = args
        sources = [builder.add(source, builder.mul(step, _index(i))) for i in range(packed.number.width)]
        scatter(builder, packed, span, sources, _user_rows(builder, packed, base, sample, stride, column))
        return context.get_dummy_value()

    return types.void(packed, *[types.int64] * 6), codegen


@intrinsic
def scatter_diagonal(typingctx, packed, row, column, n, base, sample, stride):
    """The same for a piece of row `row` of a symmetric matrix, from a column on, across the diagonal."""

    def codegen(context, builder, sig, args):
        span, row, column, n, base, sample, stride = args
        sources = []
        for i in range(packed.number.width):
            here = builder.add(column, _index(i))
            below = builder.icmp_signed("<=", here, row)
            outer, inner = builder.select(below, row, here), builder.select(below, here, row)
            sources.append(builder.add(builder.mul(outer, n), inner))
        place = builder.add(builder.mul(row, n), column)
        scatter(builder, packed, span, sources, _user_rows(builder, packed, base, sample, stride, place))
        return context.get_dummy_value()

    return types.void(packed, *[types.int64] * 6), codegen


def _lane(builder: Any, packed: SpanType, span: Any, column: Any, lane: Any) -> Any:
    return builder.gep(address(builder, packed, span, column), [lane])


@intrinsic
def gather_lane(typingctx, packed, column, lane, base, sample, stride):
    """packed[column][lane] = user[sample, column]"""

    def codegen(context, builder, sig, args):
        span, column, lane, base, sample, stride = args
        value = builder.load(_corner(builder, packed.word, base, sample, stride, column))
        builder.store(value, _lane(builder, packed, span, column, lane))
        return context.get_dummy_value()

    return types.void(packed, *[types.int64] * 5), codegen


@intrinsic
def scatter_lane(typingctx, packed, column, lane, base, sample, stride):
    """user[sample, column] = packed[column][lane]"""

    def codegen(context, builder, sig, args):
        span, column, lane, base, sample, stride = args
        value = builder.load(_lane(builder, packed, span, column, lane))
        builder.store(value, _corner(builder, packed.word, base, sample, stride, column))
        return context.get_dummy_value()

    return types.void(packed, *[types.int64] * 5), codegen


@intrinsic
def not_finite(typingctx, span, i):
    """Whether a lane of number i is NaN or infinite: all exponent bits set."""
    number = span.number

    def codegen(context, builder, sig, args):
        bits, lanes = number.bits, number.words
        word = ir.IntType(bits)
        vector = word if lanes == 1 else ir.VectorType(word, lanes)
        exponent = 0x7FF << 52 if bits == 64 else 0xFF << 23
        mask = ir.Constant(vector, exponent if lanes == 1 else [exponent] * lanes)
        value = builder.load(builder.bitcast(address(builder, span, args[0], args[1]), vector.as_pointer()))
        value.align = bits // 8
        found = builder.icmp_unsigned("==", builder.and_(value, mask), mask)
        if lanes > 1:
            found = builder.bitcast(found, ir.IntType(lanes))
            found = builder.icmp_unsigned("!=", found, ir.Constant(found.type, 0))
        return found

    return types.boolean(span, types.int64), codegen
