"""What the words of the kernel language become: memory, comparisons, elementary functions."""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from saltus.kernel import memory, scalar
from saltus.kernel.number import F32
from saltus.kernel.quad import Quad, four, quad
from saltus.kernel.tuples import NUMBER_CLASSES, components
from saltus.kernel.values import (
    BOOL,
    INT,
    VECTOR,
    Column,
    Group,
    Known,
    Mask,
    Real,
    RefusedError,
    Span,
    Value,
    is_integer,
    is_plain,
    is_vector,
    rebuilt,
    register_type,
)

if TYPE_CHECKING:
    from saltus.kernel.expressions import Expressions

Emit = Callable[..., Any]

PRIMITIVES: dict[Any, Emit] = {}
"""What writes a function's code, instead of its body: (walk, *values) -> value; NotImplemented: look for a definition."""


class Primitive:
    """A function of entries (entries.py) that writes code."""

    def __init__(self, emit: Emit) -> None:
        self.emit, self.__name__ = emit, emit.__name__


def primitive(function: Any) -> Callable[[Emit], Emit]:
    def register(emit: Emit) -> Emit:
        PRIMITIVES[function] = emit
        return emit

    return register


def of_numbers(function: Any, evaluate: Callable[..., Any]) -> Callable[[Emit], Emit]:
    """The same for plain numbers, as texts of one type: (walk, type, *texts) -> value. `evaluate`: what literals give."""

    def register(emit: Emit) -> Emit:
        @primitive(function)
        def emit_numbers(walk: Expressions, *values: Any) -> Any:
            ty = wider(walk, *values)
            if ty is None:
                return NotImplemented
            if walk.keeps and all(isinstance(x, Known) for x in values):
                found = evaluate(*(x.value for x in values))
                return Known(found if isinstance(found, bool) else float(found))
            return emit(walk, ty, *(walk.real(x, ty) for x in values))

        return emit

    return register


def apply(walk: Expressions, function: Any, values: Sequence[Any]) -> Any:
    """What a function gives that code is written for; NotImplemented: look for a definition."""
    if isinstance(function, Primitive):
        return function.emit(walk, *values)
    if not isinstance(function, Hashable) or function not in PRIMITIVES:
        return NotImplemented
    least, most = arity(function)
    if not least <= len(values) <= most:
        expected = f"{least}" if least == most else f"{least} or {most}"
        raise RefusedError(f"found {len(values)} arguments, expected {expected}")
    return PRIMITIVES[function](walk, *values)


@functools.cache
def arity(function: Any) -> tuple[int, int]:
    """The least and the largest number of arguments."""
    if function in (min, max):
        return 2, 2
    parameters = inspect.signature(function).parameters.values()
    return sum(each.default is each.empty for each in parameters), len(parameters)


def wider(walk: Expressions, *values: Any) -> Real | None:
    """The widest number type among plain numbers; None if one is no plain number."""
    if not all(map(is_plain, values)):
        return None
    types = [x.type for x in values if isinstance(x.type, Real)]
    return max(types, key=lambda ty: ty.width) if types else Real(walk.bits)


# ---------------------------------------------------------------------------------------------------- memory


def array(value: Any) -> Any:
    """The type of an array or a field."""
    if not isinstance(value.type, (Span, Column)):
        raise RefusedError(f"expected an array, found {value.type}")
    return value.type


def writable(value: Any) -> Any:
    """The same, of what is no part of the model."""
    ty = array(value)
    if ty.span.constant:
        raise RefusedError("writes to what is constant: the model, or an input of integers")
    return ty


def integer_of(walk: Expressions, value: Any, what: str = "an integer") -> str:
    if not is_integer(value):
        raise RefusedError(f"expected {what}, found {value.type}")
    return walk.integer(value)


def index_of(walk: Expressions, value: Any) -> str:
    if isinstance(value, Known) and is_integer(value) and value.value < 0:
        raise RefusedError(f"the index {value}, expected one from 0 on: arrays do not know where they end")
    return integer_of(walk, value, "an integer as the index")


def is_flat(ty: Any) -> bool:
    """Whether number i lies i places from the start: a plain array, or a field of numbers that has its group to itself."""
    return not isinstance(ty, Column) or (ty.spec.record == 1 and ty.spec.cls is not int)


def one_of(cls: type | None) -> str:
    """What an element of a field is."""
    return "a number" if cls is None else "an integer" if cls is int else f"a {cls.__name__}"


def all_of(field: Column) -> str:
    cls = field.spec.cls
    return "numbers" if cls is None else "integers" if cls is int else cls.__name__


def is_of(value: Any, cls: type | None) -> bool:
    """Whether a value is of a class of tuples, or a number, or an integer."""
    if cls is None:
        return is_plain(value) or (isinstance(value, Group) and value.cls in NUMBER_CLASSES)
    if cls is int:
        return is_integer(value)
    if isinstance(value, Group):
        return value.cls is cls and all(map(is_of, value.parts, components(cls)))
    return cls is Quad and value.type == VECTOR


def load_at(walk: Expressions, owner: Any, index: Any) -> Any:
    ty, i = array(owner), index_of(walk, index)
    if not isinstance(ty, Column):
        return walk.load_number(ty, owner.texts, i)
    if ty.spec.cls is int:
        return walk.load_integer(ty.span, owner.texts, walk.within(ty, i))
    return walk.load(ty.span, owner.texts, walk.within(ty, i), ty.spec.cls)


def store_at(walk: Expressions, owner: Any, index: Any, value: Any) -> None:
    ty, i = writable(owner), index_of(walk, index)
    cls = ty.spec.cls if isinstance(ty, Column) else None
    if not is_of(value, cls):
        same = isinstance(value, Group) and value.cls is cls
        found = f"{value.type} of {', '.join(str(part.type) for part in value.parts)}" if same else value.type
        raise RefusedError(f"writes {found}, expected {one_of(cls)}")
    if cls is int:
        walk.store_integer(ty.span, owner.texts, walk.within(ty, i), value)
        return
    walk.store(ty.span, owner.texts, walk.within(ty, i) if isinstance(ty, Column) else i, value)


def is_left_out(owner: Any) -> bool:
    """Whether it stands for an input that is not there, all of whose numbers are this one."""
    return isinstance(owner, Known) and isinstance(owner.value, float)


@primitive(memory.ld)
def _ld(walk: Expressions, owner: Any, index: Any, cls: Any = None) -> Any:
    if walk.keeps and is_left_out(owner):
        return owner
    ty = array(owner)
    if cls is None or cls == Known(None):
        return load_at(walk, owner, index)
    if not (isinstance(cls, Known) and isinstance(cls.value, type) and hasattr(cls.value, "_fields")):
        raise RefusedError(f"expected a class of tuples, found {cls.type}")
    if not is_flat(ty):
        raise RefusedError(f"a field of {all_of(ty)} has no other class")
    return walk.load(ty.span, owner.texts, index_of(walk, index), cls.value)


@primitive(memory.st)
def _st(walk: Expressions, owner: Any, index: Any, value: Any) -> Any:
    ty = writable(owner)
    if is_flat(ty):
        walk.store(ty.span, owner.texts, index_of(walk, index), value)
    else:
        store_at(walk, owner, index, value)
    return Known(None)


@primitive(memory.st_symmetric)
def _st_symmetric(walk: Expressions, owner: Any, n: Any, i: Any, j: Any, value: Any) -> Any:
    ty = writable(owner)
    if isinstance(ty, Column) and ty.spec.cls is not None:
        raise RefusedError(f"expected an array or a field of numbers, found one of {all_of(ty)}")
    if not is_of(value, None):
        raise RefusedError(f"expected a number, found {value.type}")
    size, row, column = (index_of(walk, x) for x in (n, i, j))
    places = [(row, column)] if ty.span.half else [(row, column), (column, row)]
    for a, b in places:
        place = walk.calculate("add", walk.calculate("mul", a, size), b)
        walk.store(ty.span, owner.texts, walk.within(ty, place) if isinstance(ty, Column) else place, value)
    return Known(None)


@primitive(memory.zero)
def _zero(walk: Expressions, owner: Any) -> Any:
    if walk.keeps and is_left_out(owner):
        return Known(0.0)
    ty = array(owner)
    number = ty.span.number
    if number.integer or (isinstance(ty, Column) and ty.spec.cls is int):
        raise RefusedError("expected an array of numbers, found one of integers")
    if walk.keeps:
        return Known(0.0)
    ty = register_type(number)
    return rebuilt(ty, ["zeroinitializer" if leaf[0] == "<" else "0.0" for leaf in ty.leaves])


@primitive(memory.within)
def _within(walk: Expressions, view: Any, prefix: Any) -> Any:
    names = [name for name in view.cls._fields if name.startswith(prefix.value)]
    cls = memory.view_class_of(tuple(name.removeprefix(prefix.value) for name in names))
    return Group(cls, tuple(view.parts[view.cls._fields.index(name)] for name in names))


@primitive(memory.overlaid)
def _overlaid(walk: Expressions, view: Any, prefix: Any) -> Any:
    parts = dict(zip(view.cls._fields, view.parts, strict=True))
    parts |= {name.removeprefix(prefix.value): part for name, part in parts.items() if name.startswith(prefix.value)}
    return Group(memory.view_class_of(tuple(parts)), tuple(parts.values()))


@primitive(memory.tail)
def _tail(walk: Expressions, owner: Any, start: Any) -> Any:
    ty = array(owner)
    if not is_flat(ty):
        raise RefusedError(f"expected an array, or a field of numbers that has its group to itself, found {ty}")
    return Value(ty.span, walk.place(ty.span, owner.texts, index_of(walk, start)), *owner.texts[1:])


@primitive(quad)
def _quad(walk: Expressions, owner: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    for value in (a, b, c, d):
        if not is_of(value, None):
            raise RefusedError(f"expected numbers, found {value.type}")
    if not is_vector(array(owner).span, Quad):
        return Group(Quad, tuple(map(walk.solid, (a, b, c, d))))
    text = "undef"
    for k, value in enumerate((a, b, c, d)):
        text = walk.op(f"insertelement {VECTOR.leaves[0]} {text}, double {walk.real(value, Real(64))}, i32 {k}")
    return Value(VECTOR, text)


@primitive(four)
def _four(walk: Expressions, x: Any) -> Any:
    if not is_of(x, Quad):
        raise RefusedError(f"expected a Quad, found {x.type}")
    if isinstance(x, Group):
        return Group(None, x.parts)
    (leaf,) = VECTOR.leaves
    return Group(None, tuple(Value(Real(64), walk.op(f"extractelement {leaf} {x.text}, i32 {k}")) for k in range(4)))


# ---------------------------------------------------------------------------------------------------- numbers


@of_numbers(scalar.less, operator.lt)
def _less(walk: Expressions, ty: Real, a: str, b: str) -> Any:
    return Value(Mask(ty.width), walk.op(f"fcmp olt {ty.leaves[0]} {a}, {b}"))


def checked(condition: Any) -> Any:
    """What `select` and `some` take."""
    fits = isinstance(condition.value, bool) if isinstance(condition, Known) else (
        condition.type == BOOL or isinstance(condition.type, Mask)
    )  # fmt: skip
    if not fits:
        raise RefusedError(f"expected a condition, found {condition.type}")
    return condition


@primitive(scalar.select)
def _select(walk: Expressions, condition: Any, a: Any, b: Any) -> Any:
    ty = wider(walk, a, b)
    if ty is None:
        return NotImplemented
    if isinstance(checked(condition), Known):
        chosen = a if condition.value else b
        return chosen if walk.keeps else Value(ty, walk.real(chosen, ty))
    if isinstance(condition.type, Mask):  # both choices may be the same in all lanes
        ty = Real(ty.bits, max(ty.width, condition.type.width))
    x, y, (leaf,), (mask,) = walk.real(a, ty), walk.real(b, ty), ty.leaves, condition.type.leaves
    return Value(ty, walk.op(f"select {mask} {condition.text}, {leaf} {x}, {leaf} {y}"))


@primitive(scalar.some)
def _some(walk: Expressions, condition: Any) -> Any:
    if isinstance(checked(condition), Known) or condition.type == BOOL:
        return condition
    width = condition.type.width
    if width == 1:
        return Value(BOOL, condition.text)
    bits = walk.op(f"bitcast {condition.type.leaves[0]} {condition.text} to i{width}")
    return Value(BOOL, walk.op(f"icmp ne i{width} {bits}, 0"))


@primitive(scalar.is_zero)
def _is_zero(walk: Expressions, x: Any) -> Any:
    if not is_of(x, None):
        raise RefusedError(f"expected a number, found {x.type}")
    return Known(walk.keeps and isinstance(x, Known) and x.value == 0)


@primitive(scalar.ticks)
def _ticks(walk: Expressions) -> Any:
    if walk.module.gpu:
        return Value(INT, walk.intrinsic("llvm.nvvm.read.ptx.sreg.globaltimer", "i64", []))
    if walk.module.triple.startswith("aarch64"):  # programs may not read its count of cycles
        walk.module.declare("llvm.read_volatile_register.i64", "i64", ["metadata"])
        return Value(INT, walk.op('call i64 @llvm.read_volatile_register.i64(metadata !{!"cntvct_el0"})'))
    return Value(INT, walk.intrinsic("llvm.readcyclecounter", "i64", []))


@primitive(scalar.lift)
def _lift(walk: Expressions, x: Any, like: Any) -> Any:
    if (isinstance(like, Known) and is_plain(like) and is_of(x, None)) or (walk.keeps and isinstance(x, Known)):
        return x
    if isinstance(like, Group) or isinstance(x, Group):
        return NotImplemented
    if not (is_plain(x) and is_plain(like)):
        raise RefusedError(f"expected numbers, found {x.type} and {like.type}")
    return x if like.type == INT else Value(like.type, walk.real(x, like.type))


def on_registers(walk: Expressions, name: str, ty: Real, *texts: str, flags: str = "") -> Value:
    """The value of a function of LLVM's on numbers of a type."""
    (leaf,), lanes = ty.leaves, f"v{ty.width}" if ty.width > 1 else ""
    return Value(ty, walk.intrinsic(f"llvm.{name}.{lanes}f{ty.bits}", leaf, [(leaf, text) for text in texts], flags))


def _by_intrinsic(function: Any, evaluate: Callable[[float], Any]) -> None:
    @of_numbers(function, evaluate)
    def emit(walk: Expressions, ty: Real, x: str) -> Any:
        return on_registers(walk, function.__name__, ty, x)


_by_intrinsic(scalar.sqrt, np.sqrt)
_by_intrinsic(scalar.floor, np.floor)
_by_intrinsic(scalar.fabs, abs)


def _by_extreme(function: Any, compare: str, evaluate: Callable[[float, float], Any]) -> None:
    """The larger or smaller of two numbers; unlike comparisons, these keep NaN. The sign of zero may be either."""

    @of_numbers(function, evaluate)
    def emit(walk: Expressions, ty: Real, a: str, b: str) -> Any:
        if not walk.module.gpu:
            return on_registers(walk, function.__name__, ty, a, b, flags="nsz ")
        # LLVM's own takes thrice the instructions there.
        first, missing = walk.op(f"fcmp {compare} {ty.element} {a}, {b}"), walk.op(f"fcmp uno {ty.element} {a}, {a}")
        chosen = walk.op(f"or i1 {first}, {missing}")
        return Value(ty, walk.op(f"select i1 {chosen}, {ty.element} {a}, {ty.element} {b}"))


_by_extreme(scalar.minimum, "olt", np.minimum)
_by_extreme(scalar.maximum, "ogt", np.maximum)


@of_numbers(scalar.largest, lambda size, x: np.maximum(size, abs(x)))
def _largest(walk: Expressions, ty: Real, size: str, x: str) -> Any:
    """The bits of numbers without sign are in their order, NaN behind all others."""
    found = on_registers(walk, "fabs", ty, x).text
    if ty.width == 1 and not walk.module.gpu:  # integers have registers of their own there
        return on_registers(walk, "maximum", ty, size, found, flags="nsz ")
    (leaf,), one = ty.leaves, f"i{ty.bits}"
    word, lanes = (f"<{ty.width} x {one}>", f"v{ty.width}") if ty.width > 1 else (one, "")
    bits = [(word, walk.op(f"bitcast {leaf} {text} to {word}")) for text in (size, found)]
    larger = walk.intrinsic(f"llvm.smax.{lanes}{one}", word, bits)
    return Value(ty, walk.op(f"bitcast {word} {larger} to {leaf}"))


def _by_precision(single: Any, double: Any) -> Emit:
    def emit(walk: Expressions, *values: Any) -> Any:
        ty = wider(walk, *values)
        return NotImplemented if ty is None else walk.call(single if ty.bits == F32.bits else double, values)

    return emit


PRIMITIVES[scalar.sincos] = _by_precision(scalar.sincos_single, scalar.sincos_double)
PRIMITIVES[scalar.atan2] = _by_precision(scalar.atan2_single, scalar.atan2_double)


# ---------------------------------------------------------------------------------------------------- integers


def _extreme(sign: str, known: Callable[..., Any], numbers: Any) -> Emit:
    def emit(walk: Expressions, a: Any, b: Any) -> Any:
        if is_plain(a) and is_plain(b) and isinstance(a, Known) and isinstance(b, Known):
            return Known(known(a.value, b.value))
        wanted = f"integers (numbers have `{numbers.__name__}`)"
        x, y = integer_of(walk, a, wanted), integer_of(walk, b, wanted)
        return Value(INT, walk.op(f"select i1 {walk.op(f'icmp {sign} i64 {x}, {y}')}, i64 {x}, i64 {y}"))

    return emit


PRIMITIVES[min] = _extreme("slt", min, scalar.minimum)
PRIMITIVES[max] = _extreme("sgt", max, scalar.maximum)


@primitive(len)
def _len(walk: Expressions, x: Any) -> Any:
    if not isinstance(x, Group):
        raise RefusedError(f"expected a tuple, found {x.type}")
    return Known(len(x.parts))


@primitive(math.isqrt)
def _isqrt(walk: Expressions, x: Any) -> Any:
    whole = integer_of(walk, x)
    if isinstance(x, Known):
        if x.value < 0:
            raise RefusedError(f"expected an integer from 0 on, found {x}")
        return Known(math.isqrt(x.value))
    real = walk.op(f"sitofp i64 {whole} to double")
    root = walk.intrinsic("llvm.sqrt.f64", "double", [("double", real)])
    return Value(INT, walk.op(f"fptosi double {root} to i64"))
