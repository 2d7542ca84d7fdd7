"""The way of one call from the interpreter into `push`: one sample, directions as they are given. See fastcall.py.

    arguments from Python: the model's handle, the tuple of inputs, the tuple of their slopes (arrays, or None)
    answer: (outputs, slopes), each an array or a tuple of them; an integer if it cannot take its arguments

Slopes have the shape of their input (one direction), or that with one axis in front (several); those of the outputs follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

from saltus.kernel.directional import Directional
from saltus.kernel.fastcall import DATA, I32, I64, NDIM, POINTER, SHAPE, Wrapper, word
from saltus.kernel.memory import META, SIZE, STAGE, STEP, STRIDE
from saltus.kernel.target import packet

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Spec

STACK_LIMIT = 32_768
"""Longest memory on the stack, in words (256 KiB)."""


def lane_choices() -> list[int]:
    """How many directions may go through a kernel at a time: few cost less than a full register of them."""
    width = packet(64).width
    return sorted({1, min(4, width), width})


class PushWrapper(Wrapper):
    """The wrapper of one algorithm, for slopes of one width."""

    expected = 3

    def write(self) -> None:
        builder, algorithm, total = self.builder, self.algorithm, len(self.algorithm.arguments)
        self.handle = self.array(self.argument(0), self.int64, 1)
        self.find_sizes()
        self.pointers = builder.alloca(I64, size=2 * total + 1)
        self.meta = builder.alloca(I64, size=(2 * total + 1) * META)
        self.ahead, self.directions = builder.alloca(I64), builder.alloca(I64)  # axes for directions, and how many
        builder.store(word(-1), self.ahead)
        given = sum(self.present[: len(algorithm.inputs)])
        values, slopes = self.items(self.argument(1), given), self.items(self.argument(2), given)
        self.stage: Any = word(0)
        for k, spec in enumerate(algorithm.inputs):
            data, length, slope, along = ir.Constant(POINTER, None), word(0), word(0), word(0)
            if self.present[k]:
                data = self.taken(values[k], spec)
                if spec.integer:
                    self.require(self.is_none(slopes[k]))
                else:
                    tangent = algorithm.tangent(spec)
                    length, slope, along = self.length(spec), self.slope(slopes[k], tangent), self.length(tangent)
            self.enter(k, data, slope, length, along)

        ahead, count = builder.load(self.ahead), builder.load(self.directions)
        self.require(builder.icmp_signed(">=", ahead, word(0)))
        choices = lane_choices()
        place = choices.index(self.number.slope)
        if place > 0:
            self.require(builder.icmp_signed(">", count, word(choices[place - 1])))
        if place < len(choices) - 1:
            self.require(builder.icmp_signed("<=", count, word(choices[place])))
        own = isinstance(algorithm, Directional)
        behind = self.numbers_of(algorithm.slopes if isinstance(algorithm, Directional) else algorithm.work)
        for length in (self.stage, *map(self.length, algorithm.outputs)):
            behind = builder.add(behind, length)
        behind = builder.mul(behind, word(self.number.slope if own else self.number.words))
        work = self.on_stack(builder.add(behind, self.numbers_of(algorithm.work)) if own else behind, STACK_LIMIT)

        results, changes = list[Any](), list[Any]()
        for k, spec in enumerate(algorithm.outputs, len(algorithm.inputs)):
            for made, axes in ((results, word(0)), (changes, ahead)):
                new = self.new(spec, axes, count)
                self.guard(new, [*results, *changes])
                made.append(new)
            here, slope = (self.load(new[-1], DATA, POINTER) for new in (results, changes))
            length = self.length(spec)
            self.enter(k, here, builder.ptrtoint(slope, I64), length, length)
        self.put(self.pointers, total, builder.ptrtoint(work, I64))
        self.put(self.meta, total * META, count)
        self.put(self.meta, total * META + STAGE, self.stage)
        self.put(self.meta, total * META + STEP, behind)
        status = self.call(self.handle, self.pointers, self.meta, work, word(0), word(1))
        self.succeed(status, [*results, *changes])
        outputs = self.together(results, held=changes)
        slopes_made = self.together(changes, held=[outputs])
        builder.ret(self.together([outputs, slopes_made], held=[]))

    def enter(self, k: int, data: Any, slope: Any, length: Any, along: Any) -> None:
        """Argument k into the tables, of so many numbers and so many slopes."""
        other = len(self.algorithm.arguments) + 1 + k
        self.put(self.pointers, k, self.builder.ptrtoint(data, I64))
        self.put(self.pointers, other, slope)
        for row, size in ((k, length), (other, along)):
            for entry, value in ((SIZE, size), (STRIDE, word(0)), (STEP, size), (STAGE, self.stage)):  # one sample
                self.put(self.meta, row * META + entry, value)
        self.stage = self.builder.add(self.stage, along)

    def is_none(self, place: Any) -> Any:
        return self.builder.icmp_signed("==", self.builder.ptrtoint(place, I64), self.none)

    def slope(self, place: Any, spec: Spec) -> Any:
        """The address of an input's slopes, 0 for None; all that are there must have as many directions."""
        builder = self.builder
        found = builder.alloca(I64)
        builder.store(word(0), found)
        with builder.if_then(builder.not_(self.is_none(place))):
            self.check_array(place, self.real)
            ahead = builder.sub(builder.sext(self.load(place, NDIM, I32), I64), word(len(spec.shape)))
            self.require(builder.icmp_unsigned("<=", ahead, word(1)))
            shape = self.load(place, SHAPE, POINTER)
            several = builder.select(builder.icmp_signed("==", ahead, word(1)), shape, self.shape_of([word(1)]))
            directions = self.load(several, 0, I64)
            self.check_lengths(spec.shape, builder.gep(shape, [builder.mul(ahead, word(8))]))
            with builder.if_else(builder.icmp_signed("<", builder.load(self.ahead), word(0))) as (new, old):
                with new:
                    builder.store(ahead, self.ahead)
                    builder.store(directions, self.directions)
                with old:
                    self.equal(ahead, builder.load(self.ahead))
                    self.equal(directions, builder.load(self.directions))
            builder.store(builder.ptrtoint(self.load(place, DATA, POINTER), I64), found)
        return builder.load(found)

    def new(self, spec: Spec, ahead: Any, count: Any) -> Any:
        """A new array of an output's shape, with the axis for directions if `ahead` is 1."""
        builder, shape = self.builder, self.shape_of([count, *map(self.size, spec.shape)])
        first = builder.gep(shape, [builder.mul(builder.sub(word(1), ahead), word(8))])
        return self.make_array(builder.trunc(builder.add(ahead, word(len(spec.shape))), I32), first)

    def together(self, parts: list[Any], held: list[Any]) -> Any:
        """One array, or a tuple that takes over several; `held` is let go of if it cannot be made."""
        if len(parts) == 1:
            return parts[0]
        made = self.packed(parts)
        self.release(parts)
        self.guard(made, held)
        return made
