"""Kernels run as the Python functions that they are, on numbers of any kind: symbols, counters, fractions, dual numbers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from saltus.kernel.scalar import atan2, fabs, floor, select, sincos, some, sqrt
from saltus.kernel.tables import views
from saltus.kernel.tuples import DEFINITIONS, defines

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm


def interpret(algorithm: Algorithm, model: Any, inputs: Sequence[Any]) -> list[NDArray[Any]]:
    """The outputs for one sample, as arrays of objects. Inputs are sequences of numbers, flattened; None if absent."""
    sizes, tables = algorithm.sizes(model, inputs), algorithm.tables
    tree = tables.view_class(*(sizes[name] for name in tables.sizes), *views(algorithm.filled(model)))
    given = [*inputs, *[None] * (len(algorithm.inputs) - len(inputs))]
    work = algorithm.work.view(np.zeros(algorithm.work.length(sizes), object), sizes)
    shapes = [spec.resolve(sizes) for spec in algorithm.outputs]
    outputs = [np.full(int(np.prod(shape)), 0.0, object) for shape in shapes]
    algorithm.kernel(tree, *given, work, *outputs)
    return [output.reshape(shape) for output, shape in zip(outputs, shapes, strict=True)]


class Counted:
    """A number that counts what is done with it. Products and sums by constants count like all others."""

    def __init__(self, value: float, counts: dict[str, int]) -> None:
        self.value, self.counts = value, counts

    def _binary(self, name: str, op: Any, other: Any, swapped: bool = False) -> Any:
        self.counts[name] = self.counts.get(name, 0) + 1
        a, b = self.value, other.value if isinstance(other, Counted) else other
        result = op(b, a) if swapped else op(a, b)
        return Counted(result, self.counts) if name != "comparison" else result

    # fmt: off
    def __add__(self, b: Any) -> Any: return self._binary("sum", operator.add, b)
    def __radd__(self, b: Any) -> Any: return self._binary("sum", operator.add, b)
    def __sub__(self, b: Any) -> Any: return self._binary("sum", operator.sub, b)
    def __rsub__(self, b: Any) -> Any: return self._binary("sum", operator.sub, b, swapped=True)
    def __mul__(self, b: Any) -> Any: return self._binary("product", operator.mul, b)
    def __rmul__(self, b: Any) -> Any: return self._binary("product", operator.mul, b)
    def __truediv__(self, b: Any) -> Any: return self._binary("quotient", operator.truediv, b)
    def __rtruediv__(self, b: Any) -> Any: return self._binary("quotient", operator.truediv, b, swapped=True)
    def __lt__(self, b: Any) -> Any: return self._binary("comparison", operator.lt, b)
    def __gt__(self, b: Any) -> Any: return self._binary("comparison", operator.gt, b)
    def __neg__(self) -> Any: return Counted(-self.value, self.counts)
    # fmt: on


@defines(sqrt, Counted)
def _(x: Counted) -> Counted:
    x.counts["root"] = x.counts.get("root", 0) + 1
    return Counted(sqrt(float(x.value)), x.counts)


@defines(floor, Counted)
def _(x: Counted) -> Counted:
    return Counted(floor(float(x.value)), x.counts)


@defines(fabs, Counted)
def _(x: Counted) -> Counted:
    return Counted(abs(x.value), x.counts)


def count_operations(algorithm: Algorithm, model: Any, inputs: Sequence[Any]) -> dict[str, int]:
    """How many sums, products, quotients, roots and comparisons the algorithm does on one sample (NumPy inputs)."""
    counts: dict[str, int] = {}
    numbers = [
        np.asarray(value).tolist() if spec.integer else [Counted(float(x), counts) for x in np.ravel(value)]
        for spec, value in zip(algorithm.inputs, inputs, strict=False)
    ]
    interpret(algorithm, model, numbers)
    return counts


def _know_casadi(casadi: Any) -> None:
    """Rules for symbols, once casadi is there."""
    if any(definition.operands == (casadi.SX,) for definition in DEFINITIONS.get(sqrt, ())):
        return
    for function, rule in ((sqrt, casadi.sqrt), (floor, casadi.floor), (fabs, casadi.fabs)):
        defines(function, casadi.SX)(rule)
    defines(sincos, casadi.SX)(lambda x: (casadi.sin(x), casadi.cos(x)))
    defines(atan2, casadi.SX, None)(casadi.atan2)
    defines(atan2, None, casadi.SX)(casadi.atan2)
    defines(select, casadi.SX, None, None)(casadi.if_else)
    defines(some, casadi.SX)(lambda condition: True)  # iterations go on to their end: no symbol is known to be done


def casadi_function(algorithm: Algorithm, model: Any, given: int | None = None) -> Any:
    """The algorithm on one model as a `casadi.Function`, inputs and outputs by their names, arrays flattened row by row."""
    import casadi

    _know_casadi(casadi)
    sizes = algorithm.sizes(model, ())
    specs = algorithm.inputs[: given or algorithm.variants()[0]]
    symbols = [casadi.SX.sym(spec.name, int(np.prod(spec.resolve(sizes)))) for spec in specs]
    outputs = interpret(algorithm, model, [casadi.vertsplit(symbol) for symbol in symbols])
    vectors = [casadi.vertcat(*output.ravel().tolist()) for output in outputs]
    names = [spec.name for spec in specs], [spec.name for spec in algorithm.outputs]
    return casadi.Function(algorithm.name, symbols, vectors, *names)
