"""Kernels are plain functions over named tuples; this file marks them and collects what is defined on the tuples.

A kernel is written once. Called from Python it runs as it stands, on whatever numbers it is given (floats, dual
numbers, casadi.SX ...); `walk.py` turns the same function into native code. Operators of the tuple classes
(`Vec3 + Vec3`, `Mat3 @ Vec3` ...) are plain functions too: `defines` makes each of them the Python method and
puts it into `DEFINITIONS`, where the compiler finds it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeGuard, TypeVar, get_type_hints

from saltus.kernel.texts import text_of

Scalar: TypeAlias = Any
"""One number: a float, a packet, a dual number, a symbol. The leaf of every tuple class."""

Function = TypeVar("Function", bound=Callable[..., Any])

_MARK, _ROLLED = "__saltus_kernel__", "__saltus_rolled__"


def kernel(function: Function) -> Function:
    """Mark a function as a kernel: it may be called from other kernels and compiled for every number type."""
    setattr(function, _MARK, True)
    text_of(function)  # as it is now
    return function


def rolled(function: Function) -> Function:
    """Mark a kernel whose loops stay loops in code for one robot: what it does depends on numbers more than on the robot."""
    setattr(function, _ROLLED, True)
    return function


def is_rolled(function: object) -> bool:
    return getattr(function, _ROLLED, False) is True


def is_kernel(candidate: object) -> TypeGuard[Callable[..., Any]]:
    return getattr(candidate, _MARK, False) is True


@functools.cache
def components(cls: type) -> list[type | None]:
    """The classes of a tuple class's fields in order; None stands for a scalar."""
    return [None if hint is Any else hint for hint in get_type_hints(cls).values()]


def leaf_count(cls: type | None) -> int:
    """How many numbers a value of this class holds; an integer takes the place of one."""
    return 1 if cls in (None, int) else sum(leaf_count(part) for part in components(cls))


def holds_numbers(cls: type | None) -> bool:
    """Whether it stands for a number, or is a class of tuples of such, and nothing else."""
    return cls is None or (issubclass(cls, tuple) and bool(parts := components(cls)) and all(map(holds_numbers, parts)))


class Definition(NamedTuple):
    operands: tuple[type | None, ...]
    function: Callable[..., Any]


DEFINITIONS: dict[Callable[..., Any], list[Definition]] = {}
"""Operator or elementary function -> its definitions, one for each combination of operand classes."""

NUMBER_CLASSES: list[type] = []
"""Tuple classes that count as scalars (Dual)."""

_OPERATORS = (operator.add, operator.sub, operator.mul, operator.truediv, operator.matmul, operator.neg)


def is_scalar(value: object) -> bool:
    return not isinstance(value, tuple) or type(value) in NUMBER_CLASSES


def lookup(op: Callable[..., Any], values: tuple[Any, ...]) -> Callable[..., Any] | None:
    """The definition of `op` for these operands, or None."""
    for operands, function in DEFINITIONS.get(op, ()):
        if len(operands) == len(values) and all(
            is_scalar(v) if cls is None else isinstance(v, cls) for v, cls in zip(values, operands, strict=True)
        ):
            return function
    return None


def defines(op: Callable[..., Any], *operands: type | None) -> Callable[[Function], Function]:
    """Define an operator, or an elementary function, for operands of these classes (None: any scalar); for tuples, by a
    kernel."""

    def register(function: Function) -> Function:
        if all(cls is None or issubclass(cls, tuple) for cls in operands):
            kernel(function)
        known = DEFINITIONS.setdefault(op, [])
        known.append(Definition(operands, function))
        known.sort(key=lambda definition: definition.operands.count(None))  # what is said of a class goes first
        if op in _OPERATORS:
            if operands[0] is None:
                setattr(operands[1], f"__r{op.__name__}__", lambda b, a: _apply(op, a, b))
            else:
                setattr(operands[0], f"__{op.__name__}__", lambda *values: _apply(op, *values))
        return function

    return register


def _apply(op: Callable[..., Any], *values: Any) -> Any:
    function = lookup(op, values)
    return NotImplemented if function is None else function(*values)
