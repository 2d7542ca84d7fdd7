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


PIECE = 256
"""Bits. Wider stores to memory that is not aligned straddle cache lines, which costs more than it brings."""


def store_in_pieces(builder: Any, row: Any, number: Any, pointer: Any) -> None:
    count = min(PIECE // number.bits, number.width)
    for first in range(0, number.width, count):
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), count), list(range(first, first + count)))
        piece = builder.shuffle_vector(row, row, lanes)
        place = builder.gep(pointer, [ir.Constant(I64, first)])
        store = builder.store(piece, builder.bitcast(place, piece.type.as_pointer()))
        store.align = number.bits // 8


@intrinsic
def scatter_block(typingctx, packed, column, base, sample, stride):
    """user[sample : sample + width, column : column + width] = packed[column : column + width]^T"""
    number = packed.number

    def codegen(context, builder, sig, args):
        span, column, base, sample, stride = args
        rows = []
        for k in range(number.width):
            index = builder.add(column, ir.Constant(I64, k))
            rows.append(load_packet(builder, number.bits, number.width, address(builder, packed, span, index)))
        for lane, row in enumerate(transposed(builder, rows)):
            index = builder.add(sample, ir.Constant(I64, lane))
            store_in_pieces(builder, row, number, _corner(builder, packed.word, base, index, stride, column))
        return context.get_dummy_value()

    return types.void(packed, *[types.int64] * 4), codegen


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
