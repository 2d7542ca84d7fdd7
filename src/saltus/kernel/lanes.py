"""Moves between user arrays, one sample after the other, and packets, one lane a sample; and the check for NaN.

    rows (samples) x n   <->   n x lanes

Blocks of `width` samples by `width` numbers are transposed in registers, by log2(width) rounds of shuffles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from saltus.kernel.primitives import Primitive
from saltus.kernel.values import BOOL, Known, Real, Span, Value

if TYPE_CHECKING:
    from saltus.kernel.expressions import Expressions

AHEAD = 128
"""Bytes. So far ahead in each row, cache lines are fetched for writing: stores retire in order, and as many rows as there
are lanes are more than what processors foresee by themselves. Without it a store costs twice as much (measured)."""


def transposed(walk: Expressions, ty: Real, rows: list[str]) -> list[str]:
    """The transpose of a square block, given as vectors: each round swaps off-diagonal blocks of twice the size."""
    width, rows, (leaf,) = ty.width, list(rows), ty.leaves
    step = 1
    while step < width:
        upper = [lane if not lane & step else width + lane - step for lane in range(width)]
        lower = [lane + step if not lane & step else width + lane for lane in range(width)]
        for i in range(width):
            if not i & step:
                a, b = rows[i], rows[i + step]
                for k, mask in ((i, upper), (i + step, lower)):
                    order = ", ".join(f"i32 {lane}" for lane in mask)
                    rows[k] = walk.op(f"shufflevector {leaf} {a}, {leaf} {b}, <{width} x i32> <{order}>")
        step *= 2
    return rows


def packet_of(packed: Any) -> tuple[Span, Real]:
    span = packed.type.span
    return span, Real(span.number.bits, span.number.width)


def user_row(walk: Expressions, span: Span, base: str, row: str, stride: str, column: str) -> str:
    """The address of user[row, column], from the user array's address as an integer."""
    pointer = walk.op(f"inttoptr i64 {base} to ptr")
    return walk.moved(pointer, span.word, walk.calculate("add", walk.calculate("mul", row, stride), column))


@Primitive
def gather_block(walk: Expressions, packed: Any, *where: Any) -> Any:
    """packed[column : column + width] = user[sample : sample + width, column : column + width]^T"""
    (span, ty), (column, base, sample, stride) = packet_of(packed), map(walk.integer, where)
    rows = []
    for lane in range(ty.width):
        pointer = user_row(walk, span, base, walk.calculate("add", sample, lane), stride, column)
        rows.append(walk.load_real(ty, pointer).text)
    for k, row in enumerate(transposed(walk, ty, rows)):
        walk.store_real(Value(ty, row), ty, walk.place(span, packed.texts, walk.calculate("add", column, k)))
    return Known(None)


def scatter(walk: Expressions, packed: Any, sources: list[str], user: Callable[[int], str]) -> Any:
    """The numbers at the indices `sources` of a packed span, side by side into the rows of all lanes' samples.

    `user` gives the address of the first of them in the row of a lane.
    """
    span, ty = packet_of(packed)
    for lane in range(ty.width):
        walk.module.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
        ahead = walk.moved(user(lane), "i8", AHEAD)
        walk.do(f"call void @llvm.prefetch.p0(ptr {ahead}, i32 1, i32 3, i32 1)")  # to write, into all caches, data
    rows = [walk.load_real(ty, walk.place(span, packed.texts, k)).text for k in sources]
    for lane, row in enumerate(transposed(walk, ty, rows)):
        walk.store_real(Value(ty, row), ty, user(lane))
    return Known(None)


def user_rows(walk: Expressions, span: Span, base: str, sample: str, stride: str, column: str) -> Callable[[int], str]:
    return lambda lane: user_row(walk, span, base, walk.calculate("add", sample, lane), stride, column)


@Primitive
def scatter_run(walk: Expressions, packed: Any, *where: Any) -> Any:
    """user[sample + lane, column + i] = packed[source + i step][lane], i = 0 ... width - 1"""
    (span, ty), (source, step, column, base, sample, stride) = packet_of(packed), map(walk.integer, where)
    sources = [walk.calculate("add", source, walk.calculate("mul", step, i)) for i in range(ty.width)]
    return scatter(walk, packed, sources, user_rows(walk, span, base, sample, stride, column))


@Primitive
def scatter_diagonal(walk: Expressions, packed: Any, *where: Any) -> Any:
    """The same for a piece of row `row` of a symmetric matrix, from a column on, across the diagonal."""
    (span, ty), (row, column, n, base, sample, stride) = packet_of(packed), map(walk.integer, where)
    sources = []
    for i in range(ty.width):
        here = walk.calculate("add", column, i)
        below = walk.op(f"icmp sle i64 {here}, {row}")
        outer, inner = (walk.op(f"select i1 {below}, i64 {a}, i64 {b}") for a, b in ((row, here), (here, row)))
        sources.append(walk.calculate("add", walk.calculate("mul", outer, n), inner))
    place = walk.calculate("add", walk.calculate("mul", row, n), column)
    return scatter(walk, packed, sources, user_rows(walk, span, base, sample, stride, place))


def one_lane(walk: Expressions, span: Span, packed: Any, column: str, lane: str) -> str:
    return walk.moved(walk.place(span, packed.texts, column), span.word, lane)


@Primitive
def gather_lane(walk: Expressions, packed: Any, *where: Any) -> Any:
    """packed[column][lane] = user[sample, column]"""
    (span, ty), (column, lane, base, sample, stride) = packet_of(packed), map(walk.integer, where)
    value = walk.load_real(Real(ty.bits), user_row(walk, span, base, sample, stride, column))
    walk.store_real(value, value.type, one_lane(walk, span, packed, column, lane))
    return Known(None)


@Primitive
def scatter_lane(walk: Expressions, packed: Any, *where: Any) -> Any:
    """user[sample, column] = packed[column][lane]"""
    (span, ty), (column, lane, base, sample, stride) = packet_of(packed), map(walk.integer, where)
    value = walk.load_real(Real(ty.bits), one_lane(walk, span, packed, column, lane))
    walk.store_real(value, value.type, user_row(walk, span, base, sample, stride, column))
    return Known(None)


@Primitive
def not_finite(walk: Expressions, array: Any, index: Any, count: Known) -> Any:
    """Whether a lane of so many numbers from `index` on is NaN or infinite: all exponent bits set."""
    span = array.type.span
    bits, lanes = span.number.bits, span.number.words * count.value
    word, exponent = f"i{bits}", 0x7FF << 52 if bits == 64 else 0xFF << 23
    vector = word if lanes == 1 else f"<{lanes} x {word}>"
    mask = str(exponent) if lanes == 1 else f"<{', '.join([f'{word} {exponent}'] * lanes)}>"
    pointer = walk.place(span, array.texts, walk.integer(index))
    value = walk.op(f"load {vector}, ptr {pointer}, align {bits // 8}")
    found = walk.op(f"icmp eq {vector} {walk.op(f'and {vector} {value}, {mask}')}, {mask}")
    if lanes > 1:
        found = walk.op(f"bitcast <{lanes} x i1> {found} to i{lanes}")
        found = walk.op(f"icmp ne i{lanes} {found}, 0")
    return Value(BOOL, found)
