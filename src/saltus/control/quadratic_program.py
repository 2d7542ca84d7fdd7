"""Whole-body quadratic programs as arrays: what kernels are given, what they answer, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from saltus.arrays import Array
from saltus.constraints.report import whole
from saltus.control.elimination import reduction_sizes
from saltus.control.interior_program import program_sizes
from saltus.kernel import Layout, Part, Tables
from saltus.kernel.tables import Filled, FilledPart
from saltus.model.tree import CONFIGURATIONS

SOLVED, MAX_ITERATIONS, DEADLINE, INFEASIBLE, NOT_FINITE, NOT_CONVEX, EMPTY = range(7)


class QPStatus(IntEnum):
    """How the solution of a quadratic program ended."""

    SOLVED = SOLVED  # residuals of the point that is returned are within the tolerance
    MAX_ITERATIONS = MAX_ITERATIONS  # they are not, after the most iterations allowed, or where rounding allows no less
    DEADLINE = DEADLINE  # time was up before
    INFEASIBLE = INFEASIBLE  # equalities contradict each other, bounds or cones
    NOT_FINITE = NOT_FINITE  # the inputs held a NaN: nothing was computed
    NOT_CONVEX = NOT_CONVEX  # costs bend down along what equalities leave: no point that is found need be the least

    def __str__(self) -> str:
        return self.name.lower()

    def __format__(self, form: str) -> str:  # not that of a number: an f-string has the name, too
        return format(str(self), form)


class QPResiduals(NamedTuple):
    """What is left at the point that is returned, the worst of all rows, in the units of the problem."""

    primal: Array
    """(...) of A x - b, and beyond bounds."""
    dual: Array
    """(...) of Q x + c + A'y + z."""
    gap: Array
    """(...) work of multipliers, as a share of the cost: by so much it may be too large."""
    cone: Array
    """(...) of |(fx, fy)| - mu fz; 0 inside."""


class QPSolution(NamedTuple):
    """The solution of quadratic programs (`fccqp`)."""

    x: Array
    """(..., n)"""
    y: Array
    """(..., m) multipliers of A x = b: Q x + c + A'y + z = 0."""
    z: Array
    """(..., n) multipliers of bounds and cones, in their normal cone at x."""
    report: Array
    """(..., 6): what the other attributes are made of."""

    @property
    def status(self) -> Any:
        """(...) of `QPStatus`; one problem's is a member."""
        status = self.report[..., 1]
        if isinstance(status, np.ndarray | np.floating):
            status = np.where(np.isnan(status), NOT_FINITE, status)
        return QPStatus(int(status)) if status.ndim == 0 else whole(status)

    @property
    def iterations(self) -> Any:
        """(...)"""
        found = self.report[..., 0]
        if isinstance(found, np.ndarray | np.floating):
            found = np.nan_to_num(found)
        return whole(found)

    @property
    def residuals(self) -> QPResiduals:
        return QPResiduals(*(self.report[..., k] for k in range(2, 6)))


def holds(report: Any, status: int) -> bool:
    """Whether one of the samples ended so; False for those on a GPU, which nobody waits for."""
    if report.ndim == 1:
        return bool(report[1] == status)
    return report.__class__ is np.ndarray and bool((report[..., 1] == status).any())


class Size:
    """What stands in the place of a model for programs of one size; cones: where fx, fy and fz of each are in x."""

    specialised = varied = weightless = False
    coupling = None

    def __init__(self, variables: int, equalities: int, cones: Sequence[Sequence[int]] = ()) -> None:
        self.name = f"{variables} variables, {equalities} equalities and {len(cones)} cones"
        self.variables, self.equalities, self.cones = variables, equalities, cones
        self.filled: dict[Tables, Filled] = {}
        self.quick: dict[Any, Any] = {}
        self.parts: dict[Part, FilledPart] = {}


def measure(size: Size) -> Mapping[str, int]:
    n, m, k = size.variables, size.equalities, len(size.cones)
    system = -(-n // 4) * 4 + -(-m // 4) * 4
    more = {"s3": 3 * k, "sn_bent": n, "sn_pulled": n, "sn_split": n, "sn_z": n}
    more |= {"ss": system, "ss_right": system, "ss4": 4 * system, "ss2": system**2}
    return {"sn": n, "sm": m, "sk": k, **more, **program_sizes(n, m, k), **reduction_sizes(n, m)}


def fill(size: Size, ints: Any, reals: Any) -> None:
    for k, place in enumerate(place for cone in size.cones for place in cone):
        ints.cone[k] = place


PLAIN = Part(tuple(measure(Size(1, 1))), Layout(s3={"cone": None}), Layout(), measure, fill)
TABLES = Tables([PLAIN], CONFIGURATIONS)

PROBLEM = {
    "options": "2 int", "Q": "sn sn", "c": "sn", "A": "sm sn", "b": "sm", "friction": "sk",
    "lower": "sn", "upper": "sn", "limits": "1",
}  # fmt: skip
"""The inputs of kernels. `options`: the most iterations, and how many ticks of the clock / 1024 they may take (0: endless);
`limits`: the tolerance."""
