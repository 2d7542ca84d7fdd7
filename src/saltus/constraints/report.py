"""How an iteration ended, for everything that is computed by one."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

import numpy as np

from saltus.arrays import Array, on_gpu
from saltus.kernel.driver import Memory


class Status(IntEnum):
    """How an iteration ended.

    NumPy should be given `int(Status.X)`: it looks for attributes of a member, and loses a Ctrl-C that comes meanwhile.
    """

    CONVERGED = 0  # all constraints are met to the tolerance, and so are the equations of motion
    LEAST_SQUARES = (
        1  # they contradict each other: accelerations do not change any more, and miss them as little as can be
    )
    STOPPED = 2  # after the most iterations allowed
    INACCURATE = 3  # rounding keeps accelerations from settling: `imbalance` says how far off they may be
    INVALID = 4  # the inputs held a NaN, or what else cannot be: nothing was computed (`on_invalid="mark"`)

    def __str__(self) -> str:
        return self.name

    def __format__(self, form: str) -> str:  # not that of a number: an f-string has the name, too
        return format(self.name, form)


def void(report: Any, results: Iterable[Any]) -> None:
    """Overwrite with NaN what constraints that contradict each other leave without meaning."""
    contradictory = int(Status.LEAST_SQUARES)  # no member of an enumeration: CuPy has none
    if report.__class__ is np.ndarray and not (report[..., 4] == contradictory).any():
        return
    copied = isinstance(report, Memory)  # cannot be compared or masked where it is
    where = (np.asarray(report) if copied else report)[..., 4] == contradictory
    for result in results:
        values = np.asarray(result) if copied else result
        values[where] = np.nan
        if copied:
            result[...] = values


def whole(numbers: Any) -> Any:
    """An array of integers, of NumPy's, CuPy's or PyTorch's."""
    return numbers.astype(int) if hasattr(numbers, "astype") else numbers.long()


class Reported:
    """What a result says about its iteration, by the numbers that `conclude` writes (convergence.py)."""

    report: Array

    @property
    def iterations(self) -> Array:
        """(...), 0 where the inputs were not valid."""
        count = self.report[..., 0]
        return whole(count if on_gpu(count) else np.nan_to_num(count))

    @property
    def residual(self) -> Array:
        """(...), the largest row that is left of what was asked for, in its units."""
        return self.report[..., 1]

    @property
    def imbalance(self) -> Array:
        """(...), what is left of the equations of motion, or was rounded in their matrices: how far these errors move what
        was found, by its largest entry."""
        return self.report[..., 3]

    @property
    def status(self) -> Any:
        """(...) of `Status`; one sample's is a member."""
        status = self.report[..., 4]
        if isinstance(status, np.ndarray | np.floating):
            status = np.where(np.isnan(status), int(Status.INVALID), status)
        return Status(int(status)) if status.ndim == 0 else whole(status)
