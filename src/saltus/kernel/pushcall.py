"""The way of one call from the interpreter into `push`: one sample, directions as they are given. See fastcall.py.

    arguments from Python: the model's handle, the tuple of inputs, the tuple of their slopes (arrays, or None)
    answer: (outputs, slopes), each an array or a tuple of them; an integer if it cannot take its arguments

Slopes have the shape of their input (one direction), or that with one axis in front (several); those of the outputs follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from saltus.kernel.directional import Directional
from saltus.kernel.fastcall import (
    ALIGNED,
    C_CONTIGUOUS,
    DATA,
    DTYPE,
    FLAGS,
    I32,
    I64,
    NDIM,
    POINTER,
    SHAPE,
    TYPE,
    _Wrapper,
)
from saltus.kernel.memory import META, ONE, STAGE, STEP, STRIDE, Layout
from saltus.kernel.number import Number
from saltus.kernel.target import packet

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm, Spec

STACK_LIMIT = 32_768
"""Longest memory on the stack, in words (256 KiB)."""


def lane_choices() -> list[int]:
    """How many directions may go through a kernel at a time: few cost less than a full register of them."""
    width = packet(64).width
    return sorted({1, min(4, width), width})


def number(k: int) -> Any:
    return ir.Constant(I64, k)


class _PushWrapper(_Wrapper):
    """The wrapper of one algorithm, for slopes of one width."""

    parameters = (POINTER,) * 4 + (I64,) * 2
    expected = 3

    def write(self) -> str:
        builder, algorithm, total = self.builder, self.algorithm, len(self.algorithm.arguments)
        handle, _ = self.array(self.argument(0), self.int64, 1)
        self.lengths = {name: self.load(handle, 8 * k, I64) for k, name in enumerate(self.algorithm.tables.sizes)}
        self.lengths[ONE] = ir.Constant(I64, 1)
        sizes = dict(self.lengths)
        self.pointers = builder.alloca(I64, size=2 * total + 1)
        self.meta = builder.alloca(I64, size=(2 * total + 1) * META)
        self.ahead, self.directions = builder.alloca(I64), builder.alloca(I64)  # axes for directions, and how many
        builder.store(number(-1), self.ahead)
        given = sum(self.present[: len(algorithm.inputs)])
        values, slopes = self.items(self.argument(1), given), self.items(self.argument(2), given)
        stage: Any = number(0)
        for k, spec in enumerate(algorithm.inputs):
            data, length, slope, along = ir.Constant(POINTER, None), number(0), number(0), number(0)
            if self.present[k]:
                data, shape = self.array(values[k], self.int32 if spec.integer else self.real, len(spec.shape))
                length = self.check_shape(spec.shape, shape)
                if spec.integer:
                    slope, length = self.no_slope(slopes[k]), number(0)
                else:
                    tangent = algorithm.tangent(spec)
                    slope, along = self.slope(slopes[k], tangent), self.length(tangent)
            stage = self.enter(k, builder.ptrtoint(data, I64), slope, length, along, stage)

        ahead, count = builder.load(self.ahead), builder.load(self.directions)
        self.require(builder.icmp_signed(">=", ahead, number(0)))
        choices = lane_choices()
        place = choices.index(self.number.slope)
        if place > 0:
            self.require(builder.icmp_signed(">", count, number(choices[place - 1])))
        if place < len(choices) - 1:
            self.require(builder.icmp_signed("<=", count, number(choices[place])))
        lengths = [self.length(spec) for spec in algorithm.outputs]
        own = isinstance(algorithm, Directional)
        behind = self.extent_of(algorithm.slopes if isinstance(algorithm, Directional) else algorithm.work, sizes)
        for length in (stage, *lengths):
            behind = builder.add(behind, length)
        behind = builder.mul(behind, number(self.number.slope if own else self.number.words))
        words = builder.add(behind, self.extent_of(algorithm.work, sizes)) if own else behind
        self.require(builder.icmp_signed("<=", words, number(STACK_LIMIT)))
        work = builder.alloca(ir.DoubleType(), size=words)
        work.align = 64

        results, changes = list[Any](), list[Any]()
        for k, (spec, length) in enumerate(zip(algorithm.outputs, lengths, strict=True), len(algorithm.inputs)):
            for made, axes in ((results, number(0)), (changes, ahead)):
                new = self.new(spec, axes, count)
                self.guard(new, [*results, *changes])
                made.append(new)
            here, slope = (builder.ptrtoint(self.load(new[-1], DATA, POINTER), I64) for new in (results, changes))
            stage = self.enter(k, here, slope, length, length, stage)
        self.put(self.pointers, total, builder.ptrtoint(work, I64))
        self.put(self.meta, total * META, count)
        self.put(self.meta, total * META + STAGE, stage)
        self.put(self.meta, total * META + STEP, behind)
        memory = [handle, *(builder.bitcast(m, POINTER) for m in (self.pointers, self.meta, work))]
        self.answer(builder.call(self.run, [*memory, number(0), number(1)]), results, changes)
        builder.position_at_end(self.declined)
        builder.ret(self.integer(number(-1)))
        return str(self.module)

    def put(self, table: Any, k: int, value: Any) -> None:
        self.builder.store(value, self.builder.gep(table, [number(k)]))

    def extent_of(self, layout: Layout, sizes: Mapping[str, Any]) -> Any:
        """How many numbers a memory of this layout holds, and one more."""
        needed: Any = number(1)
        for group, record in layout.records.items():
            needed = self.builder.add(needed, self.builder.mul(sizes[group], number(record)))
        return needed

    def enter(self, k: int, data: Any, slope: Any, length: Any, along: Any, stage: Any) -> Any:
        """Argument k into the tables, of so many numbers and so many slopes; returns where the next one is staged."""
        total, row = len(self.algorithm.arguments), k * META
        other = row + (total + 1) * META
        self.put(self.pointers, k, data)
        self.put(self.pointers, total + 1 + k, slope)
        for table, size in ((row, length), (other, along)):
            self.put(self.meta, table, size)
            self.put(self.meta, table + STRIDE, number(0))  # one sample
            self.put(self.meta, table + STEP, size)
            self.put(self.meta, table + STAGE, stage)
        return self.builder.add(stage, along)

    def is_none(self, place: Any) -> Any:
        return self.builder.icmp_signed("==", self.builder.ptrtoint(place, I64), self.none)

    def no_slope(self, place: Any) -> Any:
        self.require(self.is_none(place))
        return number(0)

    def slope(self, place: Any, spec: Spec) -> Any:
        """The address of an input's slopes, 0 for None; all that are there must have as many directions."""
        builder = self.builder
        found = builder.alloca(I64)
        builder.store(number(0), found)
        with builder.if_then(builder.not_(self.is_none(place))):
            flags = ir.Constant(I32, C_CONTIGUOUS | ALIGNED)
            self.equal(self.load(place, TYPE, I64), self.array_type)
            self.equal(self.load(place, DTYPE, I64), self.real)
            self.equal(builder.and_(self.load(place, FLAGS, I32), flags), flags)
            ahead = builder.sub(builder.sext(self.load(place, NDIM, I32), I64), number(len(spec.shape)))
            self.require(builder.icmp_unsigned("<=", ahead, number(1)))
            several = builder.icmp_signed("==", ahead, number(1))
            shape = self.load(place, SHAPE, POINTER)
            own = builder.gep(shape, [builder.mul(ahead, number(8))])
            first = builder.load(builder.bitcast(builder.select(several, shape, self.one()), I64.as_pointer()))
            self.check_shape(spec.shape, own)
            with builder.if_else(builder.icmp_signed("<", builder.load(self.ahead), number(0))) as (new, old):
                with new:
                    builder.store(ahead, self.ahead)
                    builder.store(first, self.directions)
                with old:
                    self.equal(ahead, builder.load(self.ahead))
                    self.equal(first, builder.load(self.directions))
            builder.store(builder.ptrtoint(self.load(place, DATA, POINTER), I64), found)
        return builder.load(found)

    def one(self) -> Any:
        """The address of the number 1: what stands for the length of an axis that is not there."""
        place = self.builder.alloca(I64)
        self.builder.store(number(1), place)
        return self.builder.bitcast(place, POINTER)

    def axis_length(self, size: str | int) -> Any:
        return number(size) if isinstance(size, int) else self.lengths[size]

    def length(self, spec: Spec) -> Any:
        length: Any = number(1)
        for size in spec.shape:
            length = self.builder.mul(length, self.axis_length(size))
        return length

    def new(self, spec: Spec, ahead: Any, count: Any) -> Any:
        """A new array of an output's shape, with the axis for directions if `ahead` is 1."""
        builder, axes = self.builder, len(spec.shape)
        shape = builder.alloca(I64, size=axes + 1)
        for axis, size in enumerate((count, *map(self.axis_length, spec.shape))):
            self.put(shape, axis, size)
        first = builder.gep(shape, [builder.sub(number(1), ahead)])
        return self.make_array(builder.trunc(builder.add(ahead, number(axes)), I32), first)

    def answer(self, status: Any, results: list[Any], changes: list[Any]) -> None:
        builder = self.builder
        with builder.if_then(builder.icmp_signed("!=", status, number(0))):
            self.release([*results, *changes])
            builder.ret(self.integer(status))
        outputs = self.together(results, held=changes)
        slopes = self.together(changes, held=[outputs])
        builder.ret(self.together([outputs, slopes], held=[]))

    def together(self, parts: list[Any], held: list[Any]) -> Any:
        """One array, or a tuple that takes over several; `held` is let go of if it cannot be made."""
        if len(parts) == 1:
            return parts[0]
        made = self.packed(parts)
        self.release(parts)
        self.guard(made, held)
        return made


def wrapper(algorithm: Algorithm, present: tuple[bool, ...], inner: str, symbol: str, number: Number) -> str:
    """LLVM code of the wrapper `symbol` around the function `inner`, a `push`."""
    return _PushWrapper(algorithm, present, inner, symbol, number).write()
