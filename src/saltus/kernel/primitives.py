"""What the words of the kernel language become: memory, comparisons, elementary functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from saltus.kernel import memory, scalar
from saltus.kernel.number import F32
from saltus.kernel.quad import Quad, four, quad
from saltus.kernel.values import (
    BOOL,
    INT,
    VECTOR,
    Column,
    Group,
    Known,
    Mask,
    Real,
    Span,
    Value,
    is_vector,
    rebuilt,
    register_type,
)

if TYPE_CHECKING:
    from saltus.kernel.expressions import Expressions

Emit = Callable[..., Any]

PRIMITIVES: dict[Any, Emit] = {}
"""What writes a function's code, instead of its body: (walk, *values) -> value; NotImplemented: look for a definition."""


class RefusedError(Exception):
    """A primitive cannot take its arguments."""


class Primitive:
    """A function of entries (entries.py) that writes code."""

    def __init__(self, emit: Emit) -> None:
        self.emit, self.__name__ = emit, emit.__name__


def primitive(*functions: Any) -> Callable[[Emit], Emit]:
    def register(emit: Emit) -> Emit:
        for function in functions:
            PRIMITIVES[function] = emit
        return emit

    return register


def find(function: Any) -> Emit | None:
    if isinstance(function, Primitive):
        return function.emit
    try:
        return PRIMITIVES.get(function)
    except TypeError:  # what cannot be looked up
        return None


def is_plain(x: Any) -> bool:
    if isinstance(x, Known):
        return isinstance(x.value, (int, float))
    return x.type == INT or isinstance(x.type, Real)


def wider(*values: Any) -> Real | None:
    """The widest number type among plain numbers; None if one is no plain number."""
    if not all(map(is_plain, values)):
        return None
    types = [x.type for x in values if isinstance(x, Value) and isinstance(x.type, Real)]
    return max(types, key=lambda ty: ty.width) if types else Real(64)


# ---------------------------------------------------------------------------------------------------- memory


def array(value: Any) -> Any:
    """The type of an array or a field."""
    if not isinstance(value.type, (Span, Column)):
        raise RefusedError(f"expected an array, found {value.type}")
    return value.type


def index_of(walk: Expressions, value: Any) -> str:
    known = isinstance(value, Known) and isinstance(value.value, int)
    if not known and value.type not in (INT, BOOL):
        raise RefusedError(f"expected an integer as an index, found {value.type}")
    return walk.integer(value)


def is_flat(ty: Any) -> bool:
    """Whether number i lies i places from the start: a plain array, or a field that has its group to itself."""
    return not isinstance(ty, Column) or ty.spec.record == 1


def load_at(walk: Expressions, owner: Any, index: Any) -> Any:
    ty, i = array(owner), index_of(walk, index)
    if isinstance(ty, Column):
        return walk.load(ty.span, owner.texts, walk.within(ty, i), ty.spec.cls)
    return walk.load_number(ty, owner.texts, i)


def store_at(walk: Expressions, owner: Any, index: Any, value: Any) -> None:
    ty, i = array(owner), index_of(walk, index)
    walk.store(ty.span, owner.texts, walk.within(ty, i) if isinstance(ty, Column) else i, value)


@primitive(memory.ld)
def _ld(walk: Expressions, owner: Any, index: Any, cls: Any = None) -> Any:
    ty = array(owner)
    if cls is not None and is_flat(ty):
        return walk.load(ty.span, owner.texts, index_of(walk, index), cls.value)
    return load_at(walk, owner, index)


@primitive(memory.st)
def _st(walk: Expressions, owner: Any, index: Any, value: Any) -> Any:
    ty = array(owner)
    if is_flat(ty):
        walk.store(ty.span, owner.texts, index_of(walk, index), value)
    else:
        store_at(walk, owner, index, value)
    return Known(None)


@primitive(memory.st_symmetric)
def _st_symmetric(walk: Expressions, owner: Any, n: Any, i: Any, j: Any, value: Any) -> Any:
    ty = array(owner)
    size, row, column = (index_of(walk, x) for x in (n, i, j))
    places = [(row, column)] if ty.span.half else [(row, column), (column, row)]
    for a, b in places:
        walk.store(ty.span, owner.texts, walk.calculate("add", walk.calculate("mul", a, size), b), value)
    return Known(None)


@primitive(memory.zero)
def _zero(walk: Expressions, owner: Any) -> Any:
    ty = register_type(array(owner).span.number)
    return rebuilt(ty, ["zeroinitializer" if leaf[0] == "<" else "0.0" for leaf in ty.leaves])


@primitive(memory.tail)
def _tail(walk: Expressions, owner: Any, start: Any) -> Any:
    ty = array(owner)
    place = walk.place(ty.span, owner.texts, index_of(walk, start))
    return Value(ty.span, place, *owner.texts[1:])


@primitive(quad)
def _quad(walk: Expressions, owner: Any, *values: Any) -> Any:
    if not is_vector(array(owner).span, Quad):
        return Group(Quad, tuple(map(walk.solid, values)))
    text = "undef"
    for k, value in enumerate(values):
        text = walk.op(f"insertelement {VECTOR.leaves[0]} {text}, double {walk.real(value, Real(64))}, i32 {k}")
    return Value(VECTOR, text)


@primitive(four)
def _four(walk: Expressions, x: Any) -> Any:
    if isinstance(x, Group):
        return Group(None, x.parts)
    (leaf,) = VECTOR.leaves
    return Group(None, tuple(Value(Real(64), walk.op(f"extractelement {leaf} {x.text}, i32 {k}")) for k in range(4)))


# ---------------------------------------------------------------------------------------------------- numbers


@primitive(scalar.less)
def _less(walk: Expressions, a: Any, b: Any) -> Any:
    ty = wider(a, b)
    if ty is None:
        return NotImplemented
    return Value(Mask(ty.width), walk.op(f"fcmp olt {ty.leaves[0]} {walk.real(a, ty)}, {walk.real(b, ty)}"))


@primitive(scalar.select)
def _select(walk: Expressions, condition: Any, a: Any, b: Any) -> Any:
    ty = wider(a, b)
    if ty is None:
        return NotImplemented
    if isinstance(condition, Known):
        return Value(ty, walk.real(a if condition.value else b, ty))
    if not isinstance(condition.type, Mask):
        raise RefusedError(f"expected a condition, found {condition.type}")
    x, y, (leaf,), (mask,) = walk.real(a, ty), walk.real(b, ty), ty.leaves, condition.type.leaves
    return Value(ty, walk.op(f"select {mask} {condition.text}, {leaf} {x}, {leaf} {y}"))


@primitive(scalar.some)
def _some(walk: Expressions, condition: Any) -> Any:
    if isinstance(condition, Known):
        return condition
    if not isinstance(condition.type, Mask):
        raise RefusedError(f"expected a condition, found {condition.type}")
    return any_lane(walk, condition)


def any_lane(walk: Expressions, condition: Any) -> Any:
    width = condition.type.width
    if width == 1:
        return condition
    bits = walk.op(f"bitcast {condition.type.leaves[0]} {condition.text} to i{width}")
    return Value(BOOL, walk.op(f"icmp ne i{width} {bits}, 0"))


@primitive(scalar.lift)
def _lift(walk: Expressions, x: Any, like: Any) -> Any:
    if isinstance(like, Group) or isinstance(x, Group):
        return NotImplemented
    if isinstance(like, Known):
        return x
    if not (isinstance(like.type, Real) and is_plain(x)):
        raise RefusedError(f"{x.type} as {like.type}")
    return Value(like.type, walk.real(x, like.type))


def _by_intrinsic(name: str) -> Emit:
    def emit(walk: Expressions, x: Any) -> Any:
        if isinstance(x, Group):
            return NotImplemented
        if isinstance(x, Known) or not isinstance(x.type, Real):
            x = Value(Real(64), walk.real(x, Real(64)))
        ty = x.type
        suffix = f"v{ty.width}f{ty.bits}" if ty.width > 1 else f"f{ty.bits}"
        return Value(ty, walk.intrinsic(f"llvm.{name}.{suffix}", ty.leaves[0], [(ty.leaves[0], x.text)]))

    return emit


for _function in (scalar.sqrt, scalar.floor, scalar.fabs):
    PRIMITIVES[_function] = _by_intrinsic(_function.__name__)


def _by_precision(single: Any, double: Any) -> Emit:
    def emit(walk: Expressions, *values: Any) -> Any:
        ty = wider(*values)
        if ty is None:
            return NotImplemented
        return walk.call(single if ty.bits == F32.bits else double, list(values))

    return emit


PRIMITIVES[scalar.sincos] = _by_precision(scalar.sincos_single, scalar.sincos_double)
PRIMITIVES[scalar.atan2] = _by_precision(scalar.atan2_single, scalar.atan2_double)


# ---------------------------------------------------------------------------------------------------- integers


def _extreme(sign: str, known: Callable[..., Any]) -> Emit:
    def emit(walk: Expressions, a: Any, b: Any) -> Any:
        if isinstance(a, Known) and isinstance(b, Known):
            return Known(known(a.value, b.value))
        x, y = index_of(walk, a), index_of(walk, b)
        return Value(INT, walk.op(f"select i1 {walk.op(f'icmp {sign} i64 {x}, {y}')}, i64 {x}, i64 {y}"))

    return emit


PRIMITIVES[min], PRIMITIVES[max] = _extreme("slt", min), _extreme("sgt", max)


@primitive(len)
def _len(walk: Expressions, x: Any) -> Any:
    return Known(len(x.parts) if isinstance(x, Group) else len(x.value))


@primitive(math.isqrt)
def _isqrt(walk: Expressions, x: Any) -> Any:
    if isinstance(x, Known):
        return Known(math.isqrt(x.value))
    real = walk.op(f"sitofp i64 {x.text} to double")
    root = walk.intrinsic("llvm.sqrt.f64", "double", [("double", real)])
    return Value(INT, walk.op(f"fptosi double {root} to i64"))
