"""What kernels compute with while they are compiled: types of values, and values as the text of LLVM's language.

| value | what it is | in LLVM |
|---|---|---|
| `Value` of `Real(bits, width)` | a number, or one in each lane | float, double, or a vector of them |
| `Value` of `INT` | an integer: an index, a count | i64 |
| `Value` of `Mask(width)` | the outcome of a comparison | i1, or a vector of them |
| `Value` of `Span` | an array of numbers of unknown length | its address; on a GPU also its stride |
| `Value` of `Column` | a field of a layout: `w.velocity` | likewise |
| `Group` | a tuple of values, named or not | its parts: LLVM sees no tuple but where a function returns one |
| `Known` | what Python knows: a literal, None, a class, a function, a module, a tuple of such | nothing |
"""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass
from typing import Any

from saltus.kernel.dual import Dual
from saltus.kernel.memory import FieldSpec
from saltus.kernel.number import F64, Number
from saltus.kernel.quad import Quad
from saltus.kernel.tuples import components


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


@dataclass(frozen=True)
class Integer:
    leaves = ("i64",)

    def __str__(self) -> str:
        return "an integer"


@dataclass(frozen=True)
class Mask:
    width: int

    @property
    def leaves(self) -> tuple[str, ...]:
        return ("i1" if self.width == 1 else f"<{self.width} x i1>",)

    def __str__(self) -> str:
        return "a condition"


@dataclass(frozen=True)
class Span:
    """An array of numbers of unknown length. `strided`: the numbers of a sample lie apart, as on a GPU. `constant`: nobody
    writes to it while a kernel runs. `half`: a symmetric matrix of which the lower triangle is kept."""

    number: Number
    strided: bool = False
    constant: bool = False
    half: bool = False

    @property
    def word(self) -> str:
        return f"i{self.number.bits}" if self.number.integer else Real(self.number.bits).element

    @property
    def leaves(self) -> tuple[str, ...]:
        return ("ptr", "i64") if self.strided else ("ptr",)

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
        return f"a tuple of {len(self.parts)}" if self.cls is None else f"a {self.cls.__name__}"


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
        plain = isinstance(self.value, (int, float, str, bytes, tuple, type(None)))
        return type(self.value), repr(self.value) if plain else id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and (self.value is other.value or self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        return repr(self.value)


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


INT, BOOL, VECTOR = Integer(), Mask(1), Real(64, 4)
"""The last: a quad, where numbers are words that lie side by side."""


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


def element_type(span: Span, cls: type | None) -> Any:
    """The type of what is read of a span as a value of a class; None stands for a number."""
    if cls is None:
        return register_type(span.number)
    if is_vector(span, cls):
        return VECTOR
    return Record(cls, tuple(element_type(span, part) for part in components(cls)))


def literal(x: float, ty: Real) -> str:
    """A number as LLVM writes it, exactly, in all lanes."""
    if ty.bits == 32:
        x = ctypes.c_float(x).value
    text = f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"
    return text if ty.width == 1 else f"<{', '.join([f'{ty.element} {text}'] * ty.width)}>"


def common_type(types: set[Any]) -> Any:
    """What values of these types, literals among them, can all be; or None."""
    solid = {ty for ty in types if not isinstance(ty, Known)}
    kinds = {type(ty.value) for ty in types if isinstance(ty, Known)}
    if len(solid) > 1:
        return None
    if not solid:
        return BOOL if kinds == {bool} else INT if kinds <= {int, bool} else Real(64) if kinds <= {int, float} else None
    (ty,) = solid
    able: set[type] = {int, float} if isinstance(ty, Real) else {int} if ty == INT else {bool} if ty == BOOL else set()
    return ty if kinds <= able else None


def settled(value: Any, ty: Any) -> tuple[str, ...]:
    """The LLVM values of a value as one of a type that it can have."""
    if not isinstance(value, Known):
        texts: tuple[str, ...] = value.texts
        return texts
    if isinstance(ty, Real):
        return (literal(float(value.value), ty),)
    return (str(value.value).lower(),) if ty == BOOL else (str(int(value.value)),)
