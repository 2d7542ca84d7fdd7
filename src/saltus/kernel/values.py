"""What kernels compute with while they are compiled: types of values, and values as the text of LLVM's language.

| value | what it is | in LLVM |
|---|---|---|
| `Value` of `Real(bits, width)` | a number, or one in each lane | float, double, or a vector of them |
| `Value` of `INT` | an integer: an index, a count | i64 |
| `Value` of `BOOL` | the outcome of a comparison of integers | i1 |
| `Value` of `Mask(width)` | the outcome of a comparison of numbers | i1, or a vector of them |
| `Value` of `Span` | an array of numbers of unknown length | its address; on a GPU also its stride |
| `Value` of `Column` | a field of a layout: `w.velocity` | likewise |
| `Group` | a tuple of values, named or not | its parts: LLVM sees no tuple but where a function returns one |
| `Known` | what Python knows: a literal, None, a class, a function, a module | nothing |
"""

from __future__ import annotations

import ctypes
import struct
import types
from dataclasses import dataclass
from typing import Any

import numpy as np

from saltus.kernel.dual import Dual
from saltus.kernel.memory import FieldSpec
from saltus.kernel.number import F64, Number
from saltus.kernel.quad import Quad
from saltus.kernel.tuples import NUMBER_CLASSES


class RefusedError(Exception):
    """A value is not what is needed. Who knows the place in the kernel makes a KernelError of it."""


@dataclass(frozen=True)
class Real:
    """A number in a register: precision and lanes."""

    bits: int
    width: int = 1

    @property
    def element(self) -> str:
        return "double" if self.bits == 64 else "float"

    @property
    def leaves(self) -> tuple[str, ...]:
        return (self.element if self.width == 1 else f"<{self.width} x {self.element}>",)

    def __str__(self) -> str:
        return f"a number ({Number(self.bits, self.width).name})"


class Vector(Real):
    """A quad, where numbers are words that lie side by side: for kernels no number, as elsewhere it is a tuple."""

    def __str__(self) -> str:
        return "a Quad"


@dataclass(frozen=True)
class Integer:
    leaves = parameters = ("i64",)

    def __str__(self) -> str:
        return "an integer"


@dataclass(frozen=True)
class Boolean:
    leaves = ("i1",)

    def __str__(self) -> str:
        return "a condition"


@dataclass(frozen=True)
class Mask:
    """Not a Boolean, even with one lane: what is refused for packets is refused for one sample, too."""

    width: int
    element = "i1"

    @property
    def leaves(self) -> tuple[str, ...]:
        return ("i1" if self.width == 1 else f"<{self.width} x i1>",)

    def __str__(self) -> str:
        return "a comparison of numbers"


@dataclass(frozen=True)
class Span:
    """An array of numbers of unknown length. `strided`: the numbers of a sample lie apart, as on a GPU. `constant`: nobody
    writes to it while a kernel runs. `half`: a symmetric matrix of which the lower triangle is kept. `held`: so many
    numbers, which come with a call of an entry point instead of their address. `own`: memory that nobody else sees."""

    number: Number
    strided: bool = False
    constant: bool = False
    half: bool = False
    held: int = 0
    own: bool = False

    @property
    def word(self) -> str:
        return f"i{self.number.bits}" if self.number.integer else Real(self.number.bits).element

    @property
    def leaves(self) -> tuple[str, ...]:
        return ("ptr", "i64") if self.strided else ("ptr",)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The same as `leaves`, of an entry point."""
        return (f'ptr byval([{self.held} x {self.word}]) align 8 "nvvm.grid_constant"',) if self.held else self.leaves

    @property
    def span(self) -> Span:
        return self

    def __str__(self) -> str:
        return "an array"


@dataclass(frozen=True)
class Column:
    """A field of a layout: the span from the beginning of its group on, the class of its elements, and where they lie."""

    span: Span
    spec: FieldSpec

    @property
    def leaves(self) -> tuple[str, ...]:
        return self.span.leaves

    def __str__(self) -> str:
        return "a field"


@dataclass(frozen=True)
class Record:
    """The type of a tuple, of a class or plain."""

    cls: type | None
    parts: tuple[Any, ...]

    @property
    def leaves(self) -> tuple[str, ...]:
        return tuple(leaf for part in self.parts for leaf in part.leaves)

    def __str__(self) -> str:
        if self.cls is not None:
            return f"a {self.cls.__name__}"
        found = f"({', '.join(map(str, self.parts))})" if len(self.parts) < 4 else f"of {len(self.parts)}"
        return f"a tuple {found}"


class Known:
    """A value, and its own type."""

    leaves = ()
    texts = ()

    def __init__(self, value: Any) -> None:
        self.value = value

    @property
    def type(self) -> Known:
        return self

    @property
    def _key(self) -> Any:
        return type(self.value), repr(self.value) if isinstance(self.value, PLAIN) else id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and (self.value is other.value or self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        if isinstance(self.value, PLAIN):
            return repr(self.value)
        kind = next((word for cls, word in KINDS.items() if isinstance(self.value, cls)), None)
        return f"{kind} {self.value.__name__}" if kind else f"a {type(self.value).__name__}"


PLAIN = (int, float, complex, str, bytes, type(None), type(...))
KINDS = {type: "the class", types.ModuleType: "the module", types.FunctionType: "the function",
         types.BuiltinFunctionType: "the function", np.ufunc: "the function"}  # fmt: skip


class Value:
    """LLVM values by name: one, or two for a span with a stride."""

    __slots__ = ("texts", "type")

    def __init__(self, ty: Any, *texts: str) -> None:
        self.type, self.texts = ty, texts

    @property
    def text(self) -> str:
        return self.texts[0]


class Group:
    """A tuple of values."""

    __slots__ = ("cls", "parts")

    def __init__(self, cls: type | None, parts: tuple[Any, ...]) -> None:
        self.cls, self.parts = cls, parts

    @property
    def type(self) -> Record:
        return Record(self.cls, tuple(part.type for part in self.parts))

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(text for part in self.parts for text in part.texts)


INT, BOOL, VECTOR = Integer(), Boolean(), Vector(64, 4)


def known(value: Any) -> Any:
    """A value of Python's: tuples are groups, and numbers of NumPy are Python's."""
    if isinstance(value, tuple):
        return Group(None if type(value) is tuple else type(value), tuple(map(known, value)))
    return Known(value.item() if isinstance(value, np.generic) else value)


def is_integer(x: Any) -> bool:
    return isinstance(x.value, int) if isinstance(x, Known) else x.type in (INT, BOOL)


def is_plain(x: Any) -> bool:
    """Whether it is a number, or an integer, that is in a register or known."""
    return kind_of(x) in (int, float) if isinstance(x, Known) else x.type == INT or type(x.type) is Real


def rebuilt(ty: Any, texts: list[str]) -> Any:
    """A value of this type from its LLVM values, taken from the front of the list."""
    if isinstance(ty, Known):
        return ty
    if isinstance(ty, Record):
        return Group(ty.cls, tuple(rebuilt(part, texts) for part in ty.parts))
    count = len(ty.leaves)
    value = Value(ty, *texts[:count])
    del texts[:count]
    return value


def register_type(number: Number) -> Any:
    """What a number is in registers."""
    if number.integer:
        return INT
    if number.slope:
        return Record(Dual, (Real(number.bits, number.width), Real(number.bits, number.slope)))
    return Real(number.bits, number.width)


def is_vector(span: Span, cls: type | None) -> bool:
    """Whether values of this class are one vector register there."""
    return cls is Quad and span.number == F64 and not span.strided


def whole(x: int, bits: int = 64) -> str:
    """An integer as LLVM writes it."""
    if not -(2 ** (bits - 1)) <= x < 2 ** (bits - 1):
        raise RefusedError(f"the integer {x} does not fit into {bits} bits")
    return str(int(x))


def literal(x: float, ty: Real) -> str:
    """A number as LLVM writes it, exactly, in all lanes."""
    try:
        x = float(x)
    except OverflowError:
        raise RefusedError(f"the integer {x} is larger than any number") from None
    if ty.bits == 32:
        x = ctypes.c_float(x).value
    text = f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"
    return text if ty.width == 1 else f"<{', '.join([f'{ty.element} {text}'] * ty.width)}>"


def common_type(types: set[Any], bits: int) -> Any:
    """What values of these types can all be, or None: an integer any number, a number one of more lanes, or a dual one; a
    condition a comparison of numbers."""
    if len(types) == 1:
        return next(iter(types))
    solid = {ty for ty in types if not isinstance(ty, Known)}
    kinds = {kind_of(ty) for ty in types if isinstance(ty, Known)}
    if not solid:
        return register_of(kinds, bits)
    if kinds <= {int, float} and all(ty == INT or is_number(ty) for ty in solid):
        numbers = solid - {INT} or ({Real(bits)} if float in kinds else {INT})
        widest = max(numbers, key=lambda ty: (len(ty.leaves), getattr(ty, "width", 0)))
        return widest if all(fits(ty, widest) for ty in solid) else None
    if all(isinstance(ty, Record) for ty in types) and len({(ty.cls, len(ty.parts)) for ty in types}) == 1:
        columns = zip(*(ty.parts for ty in types), strict=True)
        parts = tuple(common_type(set(column), bits) for column in columns)
        return None if None in parts else Record(next(iter(types)).cls, parts)
    if kinds <= {bool} and all(ty == BOOL or isinstance(ty, Mask) for ty in solid):
        return max(solid, key=lambda ty: ty.width if isinstance(ty, Mask) else 0)
    return None


def register_of(kinds: set[type], bits: int) -> Any:
    """What literals of these kinds are in a register; None if they are no numbers."""
    return BOOL if kinds == {bool} else INT if kinds <= {int, bool} else Real(bits) if kinds <= {int, float} else None


def is_number(ty: Any) -> bool:
    return type(ty) is Real or (isinstance(ty, Record) and ty.cls in NUMBER_CLASSES)


def fits(ty: Any, other: Any) -> bool:
    """Whether an integer, or a number of one type, can become one of another."""
    if INT in (ty, other) or isinstance(ty, Record):
        return ty in (INT, other)
    if isinstance(other, Record):
        return fits(ty, other.parts[0])
    return bool(ty.bits == other.bits and ty.width in (1, other.width))


def kind_of(x: Known) -> type:
    return next((kind for kind in (bool, int, float) if isinstance(x.value, kind)), type(x.value))


def settled(value: Known, ty: Any) -> tuple[str, ...]:
    """The LLVM values of a literal as one of a type that it can have."""
    if isinstance(ty, Record):  # a dual number that does not change
        return settled(value, ty.parts[0]) + settled(Known(0.0), ty.parts[1])
    if isinstance(ty, Real):
        return (literal(value.value, ty),)
    if isinstance(ty, Mask) and ty.width > 1:
        return (f"<{', '.join([f'i1 {str(value.value).lower()}'] * ty.width)}>",)
    return (str(value.value).lower(),) if ty == BOOL or isinstance(ty, Mask) else (whole(value.value),)
