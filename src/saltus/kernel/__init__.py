"""Number types, the marks of a kernel, and the ways of running one. See docs/new-algorithm.md."""

from saltus.kernel.algorithm import ALGORITHMS, Algorithm, Spec, declare
from saltus.kernel.dual import Dual
from saltus.kernel.memory import ONE, Layout, ld, overlaid, st, st_symmetric, tail, within, zero
from saltus.kernel.number import F32, F64, Number
from saltus.kernel.quad import Quad, four, quad
from saltus.kernel.scalar import (
    atan2,
    fabs,
    floor,
    is_zero,
    largest,
    less,
    lift,
    maximum,
    minimum,
    select,
    sincos,
    some,
    sqrt,
    ticks,
)
from saltus.kernel.tables import Configurations, Filled, Part, Tables, Varied
from saltus.kernel.tuples import Scalar, defines, kernel, rolled

__all__ = [
    "ALGORITHMS",
    "F32",
    "F64",
    "ONE",
    "Algorithm",
    "Configurations",
    "Dual",
    "Filled",
    "Layout",
    "Number",
    "Part",
    "Quad",
    "Scalar",
    "Spec",
    "Tables",
    "Varied",
    "atan2",
    "declare",
    "defines",
    "fabs",
    "floor",
    "four",
    "is_zero",
    "kernel",
    "largest",
    "ld",
    "less",
    "lift",
    "maximum",
    "minimum",
    "overlaid",
    "quad",
    "rolled",
    "select",
    "sincos",
    "some",
    "sqrt",
    "st",
    "st_symmetric",
    "tail",
    "ticks",
    "within",
    "zero",
]
