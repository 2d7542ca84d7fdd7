"""LLVM's language, written down: a module of functions, and the code of one function, line by line.

Text and not objects: it is parsed by LLVM itself, and written ten times as fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from saltus.kernel.dual import Dual
from saltus.kernel.quad import Quad
from saltus.kernel.tuples import NUMBER_CLASSES, components, leaf_count
from saltus.kernel.values import INT, VECTOR, Column, Group, Known, Mask, Real, Span, Value, is_vector, literal, whole

if TYPE_CHECKING:
    from saltus.kernel.room import Room

FLAGS = "contract nsz arcp"
"""Never nnan or ninf: NaN must stay visible. Never reassoc: it would undo the argument reduction of sincos."""

INVARIANT = "!invariant.load !0"


class Module:
    """Functions and declarations, in the order in which they were written."""

    def __init__(self, gpu: bool = False, triple: str = "") -> None:
        self.gpu, self.triple = gpu, triple
        self.functions: list[str] = []
        self.declarations: dict[str, str] = {}
        self.rooms: dict[str, Room] = {}
        """Where the first numbers of fields have room, by the names of these (room.py)."""
        self.tables: dict[str, tuple[str, list[Any]]] = {}
        """Constants by name: the type of their words, and what they hold."""
        self.read: set[str] = set()
        """Names of tables that code reads where it runs."""

    def declare(self, name: str, result: str, arguments: Sequence[str]) -> str:
        self.declarations[name] = f"declare {result} @{name}({', '.join(arguments)})"
        return name

    def __str__(self) -> str:
        constants = [table(name, *self.tables[name]) for name in sorted(self.read)]
        return "\n".join([*constants, *self.declarations.values(), *self.functions, "!0 = !{}", ""])


def table(name: str, word: str, values: list[Any]) -> str:
    """The definition of a constant."""
    text = str if word[0] == "i" else partial(literal, ty=Real(64 if word == "double" else 32))
    return f"{name} = internal constant [{len(values)} x {word}] [{', '.join(f'{word} {text(x)}' for x in values)}]"


class Code:
    """The body of one function. Where a block has ended (`open` is false), nothing can be added before another starts."""

    def __init__(self, module: Module) -> None:
        self.module, self.names, self.labels = module, 0, 0
        self.lines: list[str] = []
        self.label, self.open = "entry", True
        self.ends: dict[str, int] = {}
        """Of each block, the line before its last one: room for what has to be done on the way to the next."""

    # ------------------------------------------------------------------------------------------------ lines and blocks

    def op(self, text: str) -> str:
        """An instruction that has a result."""
        name = self.new_name()
        self.lines.append(f"  {name} = {text}")
        return name

    def new_name(self) -> str:
        """Of a value that is still to come."""
        self.names += 1
        return f"%v{self.names}"

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def new_label(self) -> str:
        self.labels += 1
        return f"b{self.labels}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.label, self.open = label, True

    def leave_room(self) -> None:
        self.ends[self.label] = len(self.lines)
        self.lines.append("")

    def jump(self, label: str) -> None:
        self.leave_room()
        self.do(f"br label %{label}")
        self.open = False

    def fork(self, condition: str, yes: str, no: str) -> None:
        self.leave_room()
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")
        self.open = False

    def phi(self, leaf: str, arrivals: Sequence[tuple[str, str]]) -> str:
        """The value that came along: (value, label) of each block that leads here."""
        return self.op(f"phi {leaf} " + ", ".join(f"[{text}, %{label}]" for text, label in arrivals))

    def intrinsic(self, name: str, result: str, arguments: Sequence[tuple[str, str]], flags: str = "") -> str:
        """The value of a function of LLVM's own; arguments are (type, text)."""
        self.module.declare(name, result, [leaf for leaf, _ in arguments])
        return self.op(f"call {flags}{result} @{name}({', '.join(f'{leaf} {text}' for leaf, text in arguments)})")

    # ------------------------------------------------------------------------------------------------ numbers

    def integer(self, value: Any) -> str:
        if isinstance(value, Known):
            return str(int(value.value))
        if value.type == INT:
            return str(value.text)
        return self.op(f"zext i1 {value.text} to i64")

    def calculate(self, instruction: str, a: str | int, b: str | int) -> str:
        """Integers; what is known is worked out here."""
        a, b = str(a), str(b)
        if instruction == "mul" and "1" in (a, b):
            return b if a == "1" else a
        if instruction == "add" and "0" in (a, b):
            return b if a == "0" else a
        if instruction == "mul" and "0" in (a, b):
            return "0"
        if a[0] != "%" and b[0] != "%" and instruction in ("add", "sub", "mul"):
            x, y = int(a), int(b)
            return str({"add": x + y, "sub": x - y, "mul": x * y}[instruction])
        exact = " nsw" if instruction in ("add", "sub", "mul") else ""  # indices are never so large
        return self.op(f"{instruction}{exact} i64 {a}, {b}")

    def real(self, value: Any, ty: Real) -> str:
        """A number, or an integer, as a number of a type: cast to its precision, then to all lanes."""
        if isinstance(value, Known):
            return literal(float(value.value), ty)
        text, own = value.text, value.type
        if own == INT:
            text, own = self.op(f"sitofp i64 {text} to {ty.element}"), Real(ty.bits)
        if own.bits != ty.bits:
            to = Real(ty.bits, own.width).leaves[0]
            text = self.op(f"{'fptrunc' if own.bits > ty.bits else 'fpext'} {own.leaves[0]} {text} to {to}")
        return text if own.width == ty.width else self.spread(text, ty)

    def spread(self, text: str, ty: Real | Mask) -> str:
        """The same number, or condition, in all lanes."""
        (leaf,) = ty.leaves
        first = self.op(f"insertelement {leaf} undef, {ty.element} {text}, i32 0")
        return self.op(f"shufflevector {leaf} {first}, {leaf} undef, <{ty.width} x i32> zeroinitializer")

    def arithmetic(self, instruction: str, a: Any, b: Any, ty: Real) -> Value:
        x, y = self.real(a, ty), self.real(b, ty)
        return Value(ty, self.op(f"{instruction} {FLAGS} {ty.leaves[0]} {x}, {y}"))

    # ------------------------------------------------------------------------------------------------ memory

    def pointer(self, address: str) -> str:
        """To what lies at an address; on a GPU, in the memory that all threads share."""
        if not self.module.gpu:
            return self.op(f"inttoptr i64 {address} to ptr")
        shared = self.op(f"inttoptr i64 {address} to ptr addrspace(1)")
        return self.op(f"addrspacecast ptr addrspace(1) {shared} to ptr")

    def place(self, span: Span, texts: Sequence[str], index: str | int) -> str:
        """The address of the number at an index (in numbers)."""
        words = texts[1] if span.strided else span.number.words
        return self.moved(texts[0], span.word, self.calculate("mul", index, words))

    def moved(self, pointer: str, word: str, count: str | int) -> str:
        return pointer if str(count) == "0" else self.op(f"getelementptr {word}, ptr {pointer}, i64 {count}")

    def within(self, column: Column, index: str) -> str:
        """The index, in numbers, of record number `index` of a field."""
        return self.calculate("add", self.calculate("mul", index, column.spec.record), column.spec.offset)

    def load_real(self, ty: Real, pointer: str, constant: bool = False) -> Value:
        after = f", {INVARIANT}" if constant else ""
        return Value(ty, self.op(f"load {ty.leaves[0]}, ptr {pointer}, align {ty.bits // 8}{after}"))

    def load_number(self, span: Span, texts: Sequence[str], index: str) -> Any:
        number, pointer = span.number, self.place(span, texts, index)
        if number.integer:
            word = self.op(f"load {span.word}, ptr {pointer}, align {number.bits // 8}, {INVARIANT}")
            return Value(INT, word if number.bits == 64 else self.op(f"sext {span.word} {word} to i64"))
        value = self.load_real(Real(number.bits, number.width), pointer, span.constant)
        if not number.slope:
            return value
        slope = self.load_real(Real(number.bits, number.slope), self.moved(pointer, span.word, number.width))
        return Group(Dual, (value, slope))

    def load_integer(self, span: Span, texts: Sequence[str], index: str) -> Value:
        """One that lies where a number could."""
        word = f"i{span.number.bits}"
        text = self.op(f"load {word}, ptr {self.place(span, texts, index)}, align {span.number.bits // 8}")
        return Value(INT, text if word == "i64" else self.op(f"sext {word} {text} to i64"))

    def store_integer(self, span: Span, texts: Sequence[str], index: str, value: Any) -> None:
        bits = span.number.bits
        word, text = f"i{bits}", whole(value.value, bits) if isinstance(value, Known) else self.integer(value)
        if word != "i64" and not isinstance(value, Known):
            text = self.op(f"trunc i64 {text} to {word}")
        self.do(f"store {word} {text}, ptr {self.place(span, texts, index)}, align {span.number.bits // 8}")

    def load(self, span: Span, texts: Sequence[str], index: str, cls: type | None) -> Any:
        """The value of a class whose leaves start at an index."""
        if cls is None:
            return self.load_number(span, texts, index)
        if is_vector(span, cls):
            return self.load_real(VECTOR, self.place(span, texts, index))
        parts = []
        for part in components(cls):
            parts.append(self.load(span, texts, index, part))
            index = self.calculate("add", index, leaf_count(part))
        return Group(cls, tuple(parts))

    def store_real(self, value: Any, ty: Real, pointer: str) -> None:
        self.do(f"store {ty.leaves[0]} {self.real(value, ty)}, ptr {pointer}, align {ty.bits // 8}")

    def store_number(self, span: Span, texts: Sequence[str], index: str, value: Any) -> None:
        number, pointer = span.number, self.place(span, texts, index)
        if number.integer:
            self.do(f"store {span.word} {self.integer(value)}, ptr {pointer}, align {number.bits // 8}")
            return
        parts = value.parts if isinstance(value, Group) else (value, Known(0.0))
        for part, width in zip(parts, (number.width, number.slope), strict=True):
            if width:
                self.store_real(part, Real(number.bits, width), pointer)
                pointer = self.moved(pointer, span.word, width)

    def store(self, span: Span, texts: Sequence[str], index: str, value: Any) -> str:
        """Write all leaves from an index on; returns the index after them."""
        if value.type == VECTOR and is_vector(span, Quad):
            self.store_real(value, VECTOR, self.place(span, texts, index))
            return self.calculate("add", index, 4)
        if isinstance(value, Group) and value.cls not in NUMBER_CLASSES:
            for part in value.parts:
                index = self.store(span, texts, index, part)
            return index
        self.store_number(span, texts, index, value)
        return self.calculate("add", index, 1)
