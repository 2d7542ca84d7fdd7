"""Number types and elementary functions for Numba: what a scalar of a kernel becomes in native code.

| number type | Numba type | in memory |
|---|---|---|
| float64 | `float64` | 1 x float64 |
| `Packet(f64xW)`, `Packet(f32xW)` | `PacketType`, one LLVM vector | W lanes |
| float32 on a GPU | `Packet(f32x1)`: a literal must not promote it to float64 | 1 x float32 |
| `Dual` | named tuple of value and slope, each one of the above | value, then slope |

Everything is an `overload` over an `intrinsic`: the CUDA target sees those, and no other kind of registration.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, overload, register_model

from saltus.kernel import scalar
from saltus.kernel.tuples import DEFINITIONS, NUMBER_CLASSES

FASTMATH = {"contract", "nsz", "arcp"}
"""Never nnan or ninf: NaN must stay visible. Never reassoc: it would undo the argument reduction of sincos."""

FLAGS = tuple(FASTMATH)
OPTIONS = {
    "fastmath": FASTMATH,
    "error_model": "numpy",
    "boundscheck": False,
    "no_cpython_wrapper": True,  # nobody calls a kernel by itself
    "no_cfunc_wrapper": True,
}


class PacketType(types.Type):
    """`width` lanes of float64 or float32 in one vector register; width 1 is a plain scalar."""

    def __init__(self, bits: int, width: int) -> None:
        self.bits, self.width = bits, width
        super().__init__(name=f"Packet(f{bits}x{width})")

    @property
    def element(self) -> ir.Type:
        return ir.DoubleType() if self.bits == 64 else ir.FloatType()

    @property
    def llvm(self) -> ir.Type:
        return self.element if self.width == 1 else ir.VectorType(self.element, self.width)


class MaskType(types.Type):
    """The outcome of a comparison of packets, lane by lane."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"Mask(x{width})")

    @property
    def llvm(self) -> ir.Type:
        return ir.IntType(1) if self.width == 1 else ir.VectorType(ir.IntType(1), self.width)


@register_model(PacketType)
@register_model(MaskType)
class VectorModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, fe_type.llvm)


def is_plain(ty: Any) -> bool:
    return isinstance(ty, (PacketType, types.Float, types.Integer))


def tuple_class(ty: Any) -> type | None:
    return ty.instance_class if isinstance(ty, (types.NamedTuple, types.NamedUniTuple)) else None


def is_number(ty: Any) -> bool:
    return not isinstance(ty, types.BaseTuple) or tuple_class(ty) in NUMBER_CLASSES


def packet_of(*tys: Any) -> PacketType | None:
    """The widest packet among these types, if all are plain numbers and one is a packet."""
    packets = [ty for ty in tys if isinstance(ty, PacketType)]
    return max(packets, key=lambda ty: ty.width) if packets and all(map(is_plain, tys)) else None


def widen(context: Any, builder: Any, value: Any, ty: Any, out: PacketType) -> Any:
    """A value of a plain type as a packet: cast to its precision, then to all lanes."""
    if isinstance(ty, PacketType):
        if ty.width == out.width:
            return value
    else:
        value = context.cast(builder, value, ty, types.float64 if out.bits == 64 else types.float32)
    if out.width == 1:
        return value
    undefined = ir.Constant(out.llvm, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), out.width), [0] * out.width)
    return builder.shuffle_vector(first, undefined, lanes)


def _binary(instruction: str) -> Any:
    @intrinsic
    def op(typingctx, a, b):
        out = packet_of(a, b)

        def codegen(context, builder, sig, args):
            x, y = (widen(context, builder, value, ty, out) for value, ty in zip(args, sig.args, strict=True))
            return getattr(builder, instruction)(x, y, flags=FLAGS)

        return out(a, b), codegen

    return op


@intrinsic
def _less(typingctx, a, b):
    packet = packet_of(a, b)

    def codegen(context, builder, sig, args):
        x, y = (widen(context, builder, value, ty, packet) for value, ty in zip(args, sig.args, strict=True))
        return builder.fcmp_ordered("<", x, y)

    return MaskType(packet.width)(a, b), codegen


def _unary(name: str) -> Any:
    """An LLVM intrinsic on packets."""

    @intrinsic
    def op(typingctx, a):
        def codegen(context, builder, sig, args):
            suffix = f"v{a.width}f{a.bits}" if a.width > 1 else f"f{a.bits}"
            signature = ir.FunctionType(a.llvm, [a.llvm])
            return builder.call(
                cgutils.get_or_insert_function(builder.module, signature, f"llvm.{name}.{suffix}"), args
            )

        return a(a), codegen

    return op


@intrinsic
def _negative(typingctx, a):
    def codegen(context, builder, sig, args):
        zero = ir.Constant(a.llvm, -0.0 if a.width == 1 else [-0.0] * a.width)
        return builder.fsub(zero, args[0], flags=FLAGS)  # the CUDA compiler does not know fneg

    return a(a), codegen


@intrinsic
def _blend(typingctx, mask, a, b):
    out = packet_of(a, b)

    def codegen(context, builder, sig, args):
        x, y = (widen(context, builder, value, ty, out) for value, ty in zip(args[1:], sig.args[1:], strict=True))
        return builder.select(args[0], x, y)

    return out(mask, a, b), codegen


@intrinsic
def _widened(typingctx, x, like):
    def codegen(context, builder, sig, args):
        return widen(context, builder, args[0], sig.args[0], like)

    return like(x, like), codegen


@intrinsic
def _fabs(typingctx, a):
    def codegen(context, builder, sig, args):
        word = ir.IntType(a.bits)
        bits = word if a.width == 1 else ir.VectorType(word, a.width)
        rest = (1 << (a.bits - 1)) - 1
        mask = ir.Constant(bits, rest if a.width == 1 else [rest] * a.width)
        return builder.bitcast(builder.and_(builder.bitcast(args[0], bits), mask), a.llvm)  # no fabs in single for CUDA

    return a(a), codegen


_sqrt, _floor = _unary("sqrt"), _unary("floor")

_OPERATORS = {
    operator.add: _binary("fadd"),
    operator.sub: _binary("fsub"),
    operator.mul: _binary("fmul"),
    operator.truediv: _binary("fdiv"),
}


def _overload_packets(operator_: Any, op: Any) -> None:
    @overload(operator_, jit_options=OPTIONS)
    def impl(a, b):
        return (lambda a, b: op(a, b)) if packet_of(a, b) is not None else None


for _operator, _op in _OPERATORS.items():
    _overload_packets(_operator, _op)


@overload(operator.neg, jit_options=OPTIONS)
def _neg_overload(a):
    return (lambda a: _negative(a)) if isinstance(a, PacketType) else None


def _defined(op: Any, tys: tuple[Any, ...]) -> Any:
    """The definition of `op` for operands of these Numba types, ready to be compiled; or None."""
    from saltus.kernel.lower_entries import twin

    for operands, function in DEFINITIONS.get(op, ()):
        if len(operands) == len(tys) and all(
            is_number(ty) if cls is None else tuple_class(ty) is cls for ty, cls in zip(tys, operands, strict=True)
        ):
            return twin(function)
    return None


def _overload_unary(function: Any, plain: Any) -> None:
    @overload(function, jit_options=OPTIONS)
    def impl(a):
        if tuple_class(a) is None and plain is not None and is_plain(a):
            return plain(a)
        return _renamed(_defined(function, (a,)), "a")


def _overload_definitions(op: Any) -> None:
    arity = len(DEFINITIONS[op][0].operands)
    if arity == 1:

        @overload(op, jit_options=OPTIONS)
        def unary(a):
            return _renamed(_defined(op, (a,)), "a") if tuple_class(a) else None

    else:

        @overload(op, jit_options=OPTIONS)
        def binary(a, b):
            return _renamed(_defined(op, (a, b)), "a", "b") if tuple_class(a) or tuple_class(b) else None


def _renamed(function: Any, *names: str) -> Any:
    """An overload's implementation must name its arguments as the overload does."""
    if function is None:
        return None
    code = function.__code__
    count = code.co_argcount
    renamed = code.replace(co_varnames=names + code.co_varnames[count:])
    return type(function)(renamed, function.__globals__, function.__name__)


_overload_unary(scalar.sqrt, lambda a: (lambda a: _sqrt(a)) if isinstance(a, PacketType) else (lambda a: math.sqrt(a)))
_overload_unary(
    scalar.floor, lambda a: (lambda a: _floor(a)) if isinstance(a, PacketType) else (lambda a: math.floor(a) * 1.0)
)
_overload_unary(scalar.fabs, lambda a: (lambda a: _fabs(a)) if isinstance(a, PacketType) else (lambda a: abs(a)))


def _in_precision(ty: Any, single: Any, double: Any) -> Any:
    from saltus.kernel.lower_entries import twin

    return twin(single if isinstance(ty, PacketType) and ty.bits == 32 else double)


_overload_unary(scalar.sincos, lambda a: _renamed(_in_precision(a, scalar.sincos_single, scalar.sincos_double), "a"))


@overload(scalar.atan2, jit_options=OPTIONS)
def _atan2_overload(y, x):
    if is_plain(y) and is_plain(x):
        return _in_precision(packet_of(y, x), scalar.atan2_single, scalar.atan2_double)
    return _renamed(_defined(scalar.atan2, (y, x)), "y", "x")


@overload(scalar.less, jit_options=OPTIONS)
def _less_overload(x, y):
    if packet_of(x, y) is not None:
        return lambda x, y: _less(x, y)
    if is_plain(x) and is_plain(y):
        return lambda x, y: x < y
    return _renamed(_defined(scalar.less, (x, y)), "x", "y")


@overload(scalar.select, jit_options=OPTIONS)
def _select_overload(condition, x, y):
    if isinstance(condition, MaskType) and is_plain(x) and is_plain(y):
        return lambda condition, x, y: _blend(condition, x, y)
    if is_plain(x) and is_plain(y):
        return lambda condition, x, y: x if condition else y
    return _renamed(_defined(scalar.select, (condition, x, y)), "condition", "x", "y")


@intrinsic
def _any_lane(typingctx, mask):
    def codegen(context, builder, sig, args):
        bits = builder.bitcast(args[0], ir.IntType(mask.width))
        return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    return types.boolean(mask), codegen


@overload(scalar.some, jit_options=OPTIONS)
def _some_overload(condition):
    if isinstance(condition, MaskType):
        return lambda condition: _any_lane(condition)
    return (lambda condition: condition) if isinstance(condition, types.Boolean) else None


@overload(scalar.lift, jit_options=OPTIONS)
def _lift_overload(x, like):
    if isinstance(like, PacketType):
        return lambda x, like: _widened(x, like)
    if isinstance(like, types.Float):
        return lambda x, like: 1.0 * x
    return _renamed(_defined(scalar.lift, (x, like)), "x", "like")


def register() -> None:
    """Make the operators of all tuple classes known to Numba; call it once they are all imported."""
    for op in DEFINITIONS:
        if op not in _registered and op not in scalar.ELEMENTARY:
            _registered.add(op)
            _overload_definitions(op)


_registered: set[Any] = set()
