"""One robot compiled by itself: the same walk, with the model's tables known.

What is read of a table at a known index is known. Loops whose index reaches into tables are unrolled, branches on what they
hold are taken here, and products with 0 and 1 are gone; the others stay. Kernels are walked where they are called, with
what is known of their arguments. Each field of the workspace is memory of the function's own: what was written to it last is
remembered along the way (`CELLS`), and LLVM makes registers of it wherever all indices are known.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from saltus.kernel.expressions import OPERATORS
from saltus.kernel.limbs import side_by_side
from saltus.kernel.order import as_needed
from saltus.kernel.room import BLOCK
from saltus.kernel.tuples import NUMBER_CLASSES, is_rolled
from saltus.kernel.values import INT, Column, Group, Known, Real, Span, Value, is_integer, kind_of
from saltus.kernel.walk import Loop, Walk, quoted

CELLS = "(cells)"  # not the name of a variable
"""Where an environment keeps the numbers that are in memory of the function's own, by address and index."""

Ways = Sequence[tuple[str, dict[str, Any]]]


class Evaluation(Walk):
    """One function for values of which some are known."""

    keeps = True

    def __init__(self, compiler: Any, function: Any, types: tuple[Any, ...]) -> None:
        super().__init__(compiler, function, types)
        self.env[CELLS] = {}
        self.spans: list[tuple[int, int]] = []
        """The lines of each round of loops that were unrolled, but for loops within others."""
        self.ends_at: list[tuple[int, dict[str, Any]]] = []
        """Of each `return`, the line where its jump belongs, and the environment it leaves."""

    # ------------------------------------------------------------------------------------------------ calls

    def call(self, function: Any, values: Sequence[Any]) -> Any:
        if all(map(in_registers, values)):
            return super().call(function, values)
        inner = Evaluation(self.compiler, function, ())
        inner.rolled = self.rolled or is_rolled(function)
        return inner.within_caller(self, values)

    def within_caller(self, caller: Evaluation, values: Sequence[Any]) -> Any:
        """The function's code, there where it is called."""
        self.env = dict(zip(self.parameters(len(values)), values, strict=True)) | {CELLS: caller.env[CELLS]}
        self.inlined = True
        self.take_over(caller)
        self.body()
        result = self.result()
        caller.take_over(self)
        caller.env[CELLS] = self.env[CELLS]
        return result

    inlined = rolled = False

    def take_over(self, other: Evaluation) -> None:
        """Go on writing where the other stopped."""
        self.lines, self.names, self.labels, self.spans = other.lines, other.names, other.labels, other.spans
        self.label, self.open, self.ends = other.label, other.open, other.ends

    def end(self, value: Any) -> None:
        if not self.inlined:
            super().end(value)
            return
        self.returned.append((self.label, value))
        self.leave_room()
        self.lines.append("")  # the jump to where all returns meet, if there are several
        self.ends_at.append((len(self.lines) - 1, self.env))
        self.open = False

    def result(self) -> Any:
        self.open = True
        if len(self.returned) == 1 and self.returned[0][0] == self.label:
            self.env = self.ends_at[0][1]
            return self.returned[0][1]
        after = self.new_label()
        for line, _ in self.ends_at:
            self.lines[line] = f"  br label %{after}"
        self.start(after)
        self.env = {CELLS: self.shared([env for _, env in self.ends_at])}
        return self.answer()

    # ------------------------------------------------------------------------------------------------ loops

    def count(self, node: ast.For, ends: list[Any]) -> None:
        known = all(isinstance(end, Known) and is_integer(end) for end in ends)
        if known and not self.rolled and self.reaches_tables(node):
            self.unroll_limbs(node, list(map(Known, range(*(end.value for end in ends)))))
        else:
            super().count(node, ends)

    rounds: list[int] | None = None
    """The lines where those of the loop begin that is being unrolled."""

    def begin_round(self) -> None:
        if self.rounds is not None:
            self.rounds.append(len(self.lines))

    def unroll_limbs(self, node: ast.For, parts: Sequence[Any]) -> None:
        """A loop over joints: what it does alike for several limbs is done for all of them at a time."""
        if not self.compiler.limbs:
            outer, self.rounds = self.rounds, []
            self.unroll(node, parts)
            self.note_spans()
            self.rounds = outer
            return
        self.compiler.limbs, label, self.rounds = False, self.label, []  # not the loops within
        self.unroll(node, parts)
        self.compiler.limbs, starts, self.rounds = True, self.rounds, None
        if starts and self.label == label and self.open:
            ends = [*starts[1:], len(self.lines)]
            rounds = [list(filter(None, self.lines[a:b])) for a, b in zip(starts, ends, strict=True)]
            self.lines[starts[0] :] = side_by_side(rounds, self)

    def note_spans(self) -> None:
        """Where the rounds are of the loop just unrolled; what was there before was part of it, or is gone."""
        starts = [*(self.rounds or ()), len(self.lines)]
        while self.spans and self.spans[-1][1] > starts[0]:
            self.spans.pop()
        self.spans += pairwise(starts)

    def arranged(self) -> Sequence[str]:
        return list(filter(None, as_needed(self.lines, self.spans) if self.module.gpu else self.lines))

    def widened(self, name: str, width: int) -> str:
        """The name of a function of numbers, or one of LLVM's, for so many lanes."""
        if name.startswith("llvm."):
            wide, many = f"{name.removesuffix('.f64')}.v{width}f64", f"<{width} x double>"
            count = self.module.declarations[name].count("double") - 1
            return self.module.declare(wide, many, [many] * count)
        function, types = next(key for key, made in self.compiler.made.items() if quoted(made.name) == name)
        return quoted(self.compiler.function(function, tuple(Real(ty.bits, width) for ty in types)).name)

    def reaches_tables(self, loop: ast.For) -> bool:
        """Whether its index is used where there is memory with fields."""
        names = {node.id for each in loop.body for node in ast.walk(each) if isinstance(node, ast.Name)}
        index = loop.target.id if isinstance(loop.target, ast.Name) else None
        return index in names and any(is_table(self.env.get(name)) for name in names)

    def do_While(self, node: ast.While) -> None:
        """As long as the condition is known, round by round."""
        while not (self.rolled or isinstance(node.test, ast.Constant)):
            lines, label = len(self.lines), self.label
            condition = self.condition(node.test)
            if not isinstance(condition, bool):
                del self.lines[lines:]
                self.label = label
                break
            if not condition:
                return
            loop = Loop(self.new_label(), self.new_label(), [], [])
            self.loops.append(loop)
            self.block(node.body)
            self.loops.pop()
            self.gather(loop.again, loop.continued)
            if loop.broken and self.open:
                self.refuse(node, "leaves by break a loop whose condition is known, under one that is not")
            self.gather(loop.after, loop.broken)
            if loop.broken or not self.open:
                return
        super().do_While(node)

    def attempt(
        self, changed: list[str], begin: Callable[[], bool | str], body: Callable[[], None], again: Callable[[], None]
    ) -> dict[str, Any]:
        self.env = self.env | {CELLS: {}}  # a later round finds what an earlier one wrote
        return super().attempt(changed, begin, body, again)

    # ------------------------------------------------------------------------------------------------ memory

    def copied(self, env: dict[str, Any]) -> dict[str, Any]:
        return env | {CELLS: dict(env[CELLS])}

    def meet(self, arrivals: Ways) -> dict[str, Any]:
        cells = self.shared([env for _, env in arrivals])
        named = [(label, {name: x for name, x in env.items() if name != CELLS}) for label, env in arrivals]
        met = dict(named[0][1]) if len(named) == 1 else super().meet(named)
        return met | {CELLS: cells}

    def shared(self, ways: Sequence[dict[str, Any]]) -> dict[Any, Any]:
        """What all environments remember alike."""
        first, *others = (env[CELLS] for env in ways)
        return {place: x for place, x in first.items() if all(cells.get(place) is x for cells in others)}

    def junction(self, settles: bool, conditions: Sequence[Callable[[], bool | str]]) -> bool | str:
        before = self.copied(self.env)
        found = super().junction(settles, conditions)
        if not isinstance(found, bool) and len(conditions) > 1:
            self.env[CELLS] = self.shared([before, self.env])
        return found

    def load_number(self, span: Span, texts: Sequence[str], index: str) -> Any:
        if index[0] == "%":
            self.module.read.update(self.module.tables.keys() & {texts[0]})
            return super().load_number(span, texts, index)
        if texts[0] in self.module.tables:
            return Known(self.module.tables[texts[0]][1][int(index)])
        if not span.own:
            return super().load_number(span, texts, index)
        if near := self.room_for(span, texts, index):
            return Value(Real(span.number.bits), self.op(f"load volatile {span.word}, ptr {near}, align 8"))
        cells, place = self.env[CELLS], (texts[0], int(index))
        if place not in cells:
            cells[place] = super().load_number(span, texts, index)
        return cells[place]

    def store_number(self, span: Span, texts: Sequence[str], index: str, value: Any) -> None:
        if span.own and (near := self.room_for(span, texts, index)):
            self.store_real(value, Real(span.number.bits), near)
            return
        super().store_number(span, texts, index, value)
        if not span.own:
            return
        cells = self.env[CELLS]
        if index[0] == "%":
            self.forget(texts[0])
        else:
            cells[texts[0], int(index)] = value

    def room_for(self, span: Span, texts: Sequence[str], index: str) -> str | None:
        """The address near a GPU's thread where a number waits; None if it has none."""
        room = self.module.rooms.get(texts[0])
        return self.moved(room.pointer, span.word, int(index) * BLOCK) if room and room.has(index) else None

    def forget(self, memory: str) -> None:
        cells = self.env[CELLS]
        self.env[CELLS] = {place: x for place, x in cells.items() if place[0] != memory}

    # ------------------------------------------------------------------------------------------------ numbers

    def kept(self, value: Any) -> Any:
        return value

    def operate(self, node: ast.BinOp, a: Any, b: Any) -> Any:
        short = self.shortened(OPERATORS.get(type(node.op), (None,))[0], a, b)
        return super().operate(node, a, b) if short is None else short

    def shortened(self, op: Any, a: Any, b: Any) -> Any:
        """Sums with 0 and products with 0, 1 and -1; None if it is none of them."""
        x, y = factor(a), factor(b)
        if (x is None) == (y is None) or not (is_number(a) and is_number(b)):
            return None
        if op is operator.add:
            return b if x == 0 else a if y == 0 else None
        if op is operator.sub:
            return a if y == 0 else self.negative(b) if x == 0 else None
        if op is operator.mul:
            known, other = (x, b) if y is None else (y, a)
            return Known(0.0) if known == 0 else other if known == 1 else self.negative(other) if known == -1 else None
        if op is operator.truediv:
            return Known(0.0) if x == 0 else a if y == 1 else None
        return None

    def negative(self, value: Any) -> Any:
        return self.signed(value) if isinstance(value, Value) else None


def factor(x: Any) -> float | None:
    """The number that a literal is."""
    return float(x.value) if isinstance(x, Known) and kind_of(x) in (int, float) else None


def is_number(x: Any) -> bool:
    """A number, not an integer that is computed."""
    if isinstance(x, Group):
        return x.cls in NUMBER_CLASSES
    return isinstance(x, Known) or (x.type != INT and isinstance(x.type, Real))


def in_registers(x: Any) -> bool:
    """Whether there is nothing known of a value, and no memory behind it."""
    if isinstance(x, Group):
        return all(map(in_registers, x.parts))
    return isinstance(x, Value) and not isinstance(x.type, (Span, Column))


def is_table(x: Any) -> bool:
    return isinstance(x, Group) and any(isinstance(part.type, Column) for part in x.parts)
