"""Kernels for numba-cuda: until GPUs are run by the CUDA driver itself, as processors are by the front end (walk.py)."""

from __future__ import annotations

import types as pytypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numba import njit

from saltus.kernel.lower import OPTIONS, register
from saltus.kernel.lower_memory import Argument, SpanType, make_arguments, make_view
from saltus.kernel.number import INT32, INT64, Number
from saltus.kernel.tuples import is_kernel

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm

_twins: dict[Any, Any] = {}
_compiled: dict[Any, Any] = {}


def twin(function: Callable[..., Any]) -> Any:
    """The same function with every kernel that it calls replaced by that kernel's compiled form."""
    if function not in _twins:
        scope = dict(function.__globals__)
        _twins[function] = pytypes.FunctionType(
            function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
        )
        for name in function.__code__.co_names:
            if is_kernel(scope.get(name)):
                scope[name] = compiled(scope[name])
    return _twins[function]


def compiled(function: Callable[..., Any]) -> Any:
    """The Numba dispatcher of a kernel."""
    if function not in _compiled:
        _compiled[function] = njit(**OPTIONS)(twin(function))
    return _compiled[function]


class Parts:
    """The pieces from which the entry points of one algorithm are made, for a number type and a set of arguments."""

    def __init__(self, algorithm: Algorithm, number: Number, present: tuple[bool, ...], source: str) -> None:
        register()
        strided = source == "strided"
        self.ints, self.addresses = SpanType(INT32, constant=True), SpanType(INT64)
        self.reals, self.work = SpanType(number.plain, constant=True), SpanType(number, strided)
        arguments = [
            Argument(SpanType(INT32, constant=True), False) if spec.integer
            else Argument(SpanType(number, strided, half=spec.symmetric and source == "staged"), True)
            for spec in algorithm.arguments
        ]  # fmt: skip
        kinds = tuple(a if here else None for a, here in zip(arguments, present, strict=True))
        count = len(algorithm.inputs)
        tables = algorithm.tables
        self.tree = make_view(tables.view_class, tables.ints, tables.reals, sizes=True)
        self.view = make_view(algorithm.work.view_class, algorithm.work)
        self.inputs = make_arguments(kinds[:count], 0, source)
        self.outputs = make_arguments(kinds[count:], count, source)
        self.kernel = compiled(algorithm.kernel)
