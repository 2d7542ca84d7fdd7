"""Memory for Numba: spans (arrays of numbers), fields (typed columns of a layout), and the moves of lanes.

A span is an address, and on a GPU a stride as well: there the numbers of one sample lie a batch apart, so that
neighbouring threads read neighbouring words.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, models, overload, register_model

from saltus.kernel import memory
from saltus.kernel.dual import Dual
from saltus.kernel.lower import OPTIONS, PacketType, is_number, tuple_class, widen
from saltus.kernel.number import F64, Number
from saltus.kernel.quad import Quad, four, quad
from saltus.kernel.tuples import components, leaf_count

I64 = ir.IntType(64)

META = 4
"""Entries a kernel argument has in the table `meta`: how many numbers a sample has, how many words samples lie apart,
how many words the numbers of a sample lie apart, and where in the stage its numbers are packed."""
SIZE, STRIDE, STEP, STAGE = range(META)


def number_type(number: Number) -> Any:
    """The Numba type of a number in a register."""
    if number.integer:
        return types.int64
    if number.slope:
        value, slope = number_type(Number(number.bits, number.width)), number_type(Number(number.bits, number.slope))
        return types.NamedUniTuple(value, 2, Dual) if value == slope else types.NamedTuple((value, slope), Dual)
    return types.float64 if number == F64 else PacketType(number.bits, number.width)


class SpanType(types.Type):
    """An array of numbers of unknown length.

    `constant`: nobody writes to it while a kernel runs. `half`: a symmetric matrix of which the lower triangle is kept.
    """

    def __init__(self, number: Number, strided: bool = False, constant: bool = False, half: bool = False) -> None:
        self.number, self.strided, self.constant, self.half = number, strided, constant, half
        super().__init__(name=f"Span({number.name}, {strided=}, {constant=}, {half=})")

    @property
    def word(self) -> ir.Type:
        if self.number.integer:
            return ir.IntType(self.number.bits)
        return PacketType(self.number.bits, 1).llvm


class FieldType(SpanType):
    """A field of a layout: a span, the class of its elements, and where they lie."""

    def __init__(self, span: SpanType, spec: memory.FieldSpec) -> None:
        super().__init__(span.number, span.strided, span.constant)
        self.spec, self.span = spec, span
        cls = "scalar" if spec.cls is None else spec.cls.__name__
        self.name = f"Field({span.name}, {cls}, {spec.offset}, {spec.record})"


@register_model(SpanType)
@register_model(FieldType)
class SpanModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: SpanType) -> None:
        pointer = fe_type.word.as_pointer()
        super().__init__(dmm, fe_type, ir.LiteralStructType([pointer, I64]) if fe_type.strided else pointer)


def make_span(builder: Any, ty: SpanType, pointer: Any, stride: Any = None) -> Any:
    if not ty.strided:
        return pointer
    pair = ir.Constant(ir.LiteralStructType([ty.word.as_pointer(), I64]), ir.Undefined)
    return builder.insert_value(builder.insert_value(pair, pointer, 0), stride, 1)


def address(builder: Any, ty: SpanType, span: Any, index: Any) -> Any:
    """The address of the number at an index (in numbers)."""
    if ty.strided:
        return builder.gep(builder.extract_value(span, 0), [builder.mul(index, builder.extract_value(span, 1))])
    words = ty.number.words
    return builder.gep(span, [builder.mul(index, ir.Constant(I64, words)) if words > 1 else index])


def load_packet(builder: Any, bits: int, width: int, pointer: Any, constant: bool = False) -> Any:
    ty = PacketType(bits, width)
    value = builder.load(pointer if width == 1 else builder.bitcast(pointer, ty.llvm.as_pointer()))
    value.align = bits // 8
    if constant:
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


def load_number(context: Any, builder: Any, ty: SpanType, span: Any, index: Any) -> Any:
    number, pointer = ty.number, address(builder, ty, span, index)
    if number.integer:
        value = builder.load(pointer)
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return value if number.bits == 64 else builder.sext(value, I64)
    value = load_packet(builder, number.bits, number.width, pointer, ty.constant)
    if not number.slope:
        return value
    slope = builder.gep(pointer, [ir.Constant(I64, number.width)])
    parts = [value, load_packet(builder, number.bits, number.slope, slope)]
    return context.make_tuple(builder, number_type(number), parts)


def store_packet(builder: Any, width: int, value: Any, pointer: Any) -> None:
    store = builder.store(value, pointer if width == 1 else builder.bitcast(pointer, value.type.as_pointer()))
    store.align = 8 if "double" in str(value.type) else 4


def store_number(context: Any, builder: Any, ty: SpanType, span: Any, index: Any, value: Any, value_ty: Any) -> None:
    number, pointer = ty.number, address(builder, ty, span, index)
    parts, tys = [value], [value_ty]
    if number.slope:
        if tuple_class(value_ty) is Dual:
            parts, tys = [builder.extract_value(value, k) for k in (0, 1)], list(value_ty.types)
        else:
            parts, tys = [value, ir.Constant(ir.DoubleType(), 0.0)], [value_ty, types.float64]
    for part, part_ty, width in zip(parts, tys, (number.width, number.slope), strict=False):
        packet = PacketType(number.bits, width)
        store_packet(builder, width, widen(context, builder, part, part_ty, packet), pointer)
        pointer = builder.gep(pointer, [ir.Constant(I64, width)])


VECTOR = PacketType(64, 4)
"""A quad, where numbers are words that lie side by side: not on a GPU."""


def is_vector(ty: SpanType, cls: type | None) -> bool:
    return cls is Quad and ty.number == F64 and not ty.strided


def value_type(cls: type | None, leaf: Any) -> Any:
    """The Numba type of a tuple class whose leaves are all of one type."""
    if cls is None:
        return leaf
    parts = [value_type(part, leaf) for part in components(cls)]
    if all(part == parts[0] for part in parts):
        return types.NamedUniTuple(parts[0], len(parts), cls)
    return types.NamedTuple(tuple(parts), cls)


def offset_by(builder: Any, index: Any, k: int) -> Any:
    return builder.add(index, ir.Constant(I64, k)) if k else index


def load_value(context: Any, builder: Any, ty: SpanType, cls: type | None, span: Any, index: Any) -> Any:
    if cls is None:
        return load_number(context, builder, ty, span, index)
    if is_vector(ty, cls):
        return load_packet(builder, 64, 4, address(builder, ty, span, index))
    values, k = [], 0
    for part in components(cls):
        values.append(load_value(context, builder, ty, part, span, offset_by(builder, index, k)))
        k += leaf_count(part)
    return context.make_tuple(builder, value_type(cls, number_type(ty.number)), values)


def store_value(context: Any, builder: Any, ty: SpanType, span: Any, index: Any, value: Any, value_ty: Any) -> Any:
    """Store all leaves from an index on; returns the index after them."""
    if value_ty == VECTOR and is_vector(ty, Quad):
        store_packet(builder, 4, value, address(builder, ty, span, index))
        return offset_by(builder, index, 4)
    if is_number(value_ty):
        store_number(context, builder, ty, span, index, value, value_ty)
        return offset_by(builder, index, 1)
    for k, part_ty in enumerate(value_ty.types):
        index = store_value(context, builder, ty, span, index, builder.extract_value(value, k), part_ty)
    return index


def element_type(ty: SpanType, cls: type | None) -> Any:
    return VECTOR if is_vector(ty, cls) else value_type(cls, number_type(ty.number))


@intrinsic
def _load(typingctx, span, i):
    def codegen(context, builder, sig, args):
        return load_number(context, builder, span, args[0], args[1])

    return element_type(span, None)(span, types.int64), codegen


@intrinsic
def _load_as(typingctx, span, i, cls):
    wanted = cls.instance_class

    def codegen(context, builder, sig, args):
        return load_value(context, builder, span, wanted, args[0], args[1])

    return element_type(span, wanted)(span, types.int64, cls), codegen


@intrinsic
def _store(typingctx, span, i, value):
    def codegen(context, builder, sig, args):
        store_value(context, builder, span, args[0], args[1], args[2], value)
        return context.get_dummy_value()

    return types.void(span, types.int64, value), codegen


@intrinsic
def _zero(typingctx, span):
    out = number_type(span.number)

    def codegen(context, builder, sig, args):
        return ir.Constant(context.get_value_type(out), None)

    return out(span), codegen


@intrinsic
def _get_field(typingctx, field, i):
    spec = field.spec

    def codegen(context, builder, sig, args):
        index = builder.mul(args[1], ir.Constant(I64, spec.record))
        return load_value(context, builder, field, spec.cls, args[0], offset_by(builder, index, spec.offset))

    return element_type(field, spec.cls)(field, types.int64), codegen


@intrinsic
def _set_field(typingctx, field, i, value):
    spec = field.spec

    def codegen(context, builder, sig, args):
        index = builder.mul(args[1], ir.Constant(I64, spec.record))
        store_value(context, builder, field, args[0], offset_by(builder, index, spec.offset), args[2], value)
        return context.get_dummy_value()

    return types.void(field, types.int64, value), codegen


def is_flat(span: SpanType) -> bool:
    """Whether number i of a span lies i places from its start: a plain array, or a field that has its group to itself."""
    return not isinstance(span, FieldType) or span.spec.record == 1


@overload(memory.ld, jit_options=OPTIONS)
def _ld(array, i, cls=None):
    if isinstance(array, SpanType):
        if isinstance(cls, types.NamedTupleClass) and is_flat(array):
            return lambda array, i, cls=None: _load_as(array, i, cls)
        if isinstance(array, FieldType):
            return lambda array, i, cls=None: _get_field(array, i)
        return lambda array, i, cls=None: _load(array, i)
    return None


@overload(memory.st, jit_options=OPTIONS)
def _st(array, i, value):
    if isinstance(array, FieldType) and not is_flat(array):
        return lambda array, i, value: _set_field(array, i, value)
    return (lambda array, i, value: _store(array, i, value)) if isinstance(array, SpanType) else None


@overload(memory.st_symmetric, jit_options=OPTIONS)
def _st_symmetric(array, n, i, j, value):
    if isinstance(array, SpanType) and array.half:
        return lambda array, n, i, j, value: _store(array, i * n + j, value)

    def both(array, n, i, j, value):
        memory.st(array, i * n + j, value)
        memory.st(array, j * n + i, value)

    return both if isinstance(array, SpanType) else None


@overload(memory.zero, jit_options=OPTIONS)
def _zero_overload(array):
    return (lambda array: _zero(array)) if isinstance(array, SpanType) else None


@overload(operator.getitem, jit_options=OPTIONS)
def _getitem(field, i):
    if isinstance(field, FieldType):
        return lambda field, i: _get_field(field, i)
    return (lambda field, i: _load(field, i)) if isinstance(field, SpanType) else None


@overload(operator.setitem, jit_options=OPTIONS)
def _setitem(field, i, value):
    if isinstance(field, FieldType):
        return lambda field, i, value: _set_field(field, i, value)
    return (lambda field, i, value: _store(field, i, value)) if isinstance(field, SpanType) else None


def make_view(cls: Any, *layouts: memory.Layout, sizes: bool = False) -> Any:
    """An intrinsic (ints, span of each layout ...) -> named tuple `cls` of the sizes (if wanted) and all fields."""

    @intrinsic
    def view(typingctx, ints, spans):
        fields = [
            FieldType(span, spec) for layout, span in zip(layouts, spans.types, strict=True)
            for spec in layout.fields.values()
        ]  # fmt: skip
        head = [types.int64] * len(memory.SIZES) if sizes else []
        out = types.NamedTuple((*head, *fields), cls)

        def codegen(context, builder, sig, args):
            def size(name: str) -> Any:
                if name == memory.ONE:
                    return ir.Constant(I64, 1)
                return load_number(context, builder, ints, args[0], ir.Constant(I64, memory.SIZES.index(name)))

            values = [size(name) for name in memory.SIZES] if sizes else []
            for k, layout in enumerate(layouts):
                span, ty = builder.extract_value(args[1], k), spans.types[k]
                start, starts = ir.Constant(I64, memory.HEADER if ty.number.integer else 0), {}
                for group, record in layout.records.items():
                    starts[group] = start
                    start = builder.add(start, builder.mul(size(group), ir.Constant(I64, record)))
                for spec in layout.fields.values():
                    pointer = address(builder, ty, span, starts[spec.group])
                    stride = builder.extract_value(span, 1) if ty.strided else None
                    values.append(make_span(builder, ty, pointer, stride))
            return context.make_tuple(builder, out, values)

        return out(ints, spans), codegen

    return view


class Argument(NamedTuple):
    """What a kernel's array argument is compiled as: its span type, and whether it has one entry a sample."""

    span: SpanType
    per_sample: bool


def make_arguments(kinds: tuple[Argument | None, ...], first: int, source: str) -> Any:
    """An intrinsic (pointers, meta, stage, sample) -> the spans of a kernel's arguments, from number `first` on.

    Where the numbers of a sample lie depends on `source`: "direct", at the address given; "staged", packed in the stage
    at the offset given in meta; "strided", at the address plus the sample's share, a stride apart (GPU). None: absent.
    """

    @intrinsic
    def arguments(typingctx, pointers, meta, stage, sample):
        out = types.Tuple([types.none if kind is None else kind.span for kind in kinds])

        def codegen(context, builder, sig, args):
            def entry(table: int, k: int) -> Any:
                return load_number(context, builder, sig.args[table], args[table], ir.Constant(I64, k))

            values = []
            for k, kind in enumerate(kinds, first):
                if kind is None:
                    values.append(context.get_dummy_value())
                    continue
                if source == "staged" and kind.per_sample:
                    values.append(address(builder, kind.span, args[2], entry(1, META * k + STAGE)))
                    continue
                pointer, stride = builder.inttoptr(entry(0, k), kind.span.word.as_pointer()), None
                if kind.span.strided:
                    pointer = builder.gep(pointer, [builder.mul(args[3], entry(1, META * k + STRIDE))])
                    stride = entry(1, META * k + STEP)
                values.append(make_span(builder, kind.span, pointer, stride))
            return context.make_tuple(builder, out, values)

        return out(pointers, meta, stage, types.int64), codegen

    return arguments


@intrinsic
def shifted(typingctx, span, k):
    """The span that starts k numbers further on."""

    def codegen(context, builder, sig, args):
        stride = builder.extract_value(args[0], 1) if span.strided else None
        return make_span(builder, span, address(builder, span, args[0], args[1]), stride)

    return span(span, types.int64), codegen


@overload(memory.tail, jit_options=OPTIONS)
def _tail(array, start):
    return (lambda array, start: shifted(array, start)) if isinstance(array, SpanType) else None


@intrinsic
def _gathered(typingctx, a, b, c, d):
    def codegen(context, builder, sig, args):
        vector = ir.Constant(VECTOR.llvm, ir.Undefined)
        for k, value in enumerate(args):
            vector = builder.insert_element(vector, value, ir.Constant(ir.IntType(32), k))
        return vector

    return VECTOR(a, b, c, d), codegen


@intrinsic
def _scattered(typingctx, x):
    out = types.UniTuple(types.float64, 4)

    def codegen(context, builder, sig, args):
        parts = [builder.extract_element(args[0], ir.Constant(ir.IntType(32), k)) for k in range(4)]
        return context.make_tuple(builder, out, parts)

    return out(x), codegen


@overload(quad, jit_options=OPTIONS)
def _quad(array, a, b, c, d):
    if is_vector(array, Quad):
        return lambda array, a, b, c, d: _gathered(a, b, c, d)
    return lambda array, a, b, c, d: Quad(a, b, c, d)


@overload(four, jit_options=OPTIONS)
def _four(x):
    if x == VECTOR:
        return lambda x: _scattered(x)
    return lambda x: (x.a, x.b, x.c, x.d)


def span_at(ty: SpanType) -> Any:
    """An intrinsic (address, stride) -> span."""

    @intrinsic
    def at(typingctx, base, stride):
        def codegen(context, builder, sig, args):
            return make_span(builder, ty, builder.inttoptr(args[0], ty.word.as_pointer()), args[1])

        return ty(types.int64, types.int64), codegen

    return at
