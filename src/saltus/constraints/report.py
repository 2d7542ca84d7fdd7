"""How an iteration ended, for everything that is computed by one."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from saltus.arrays import Array


class Status(IntEnum):
    """How an iteration ended."""

    CONVERGED = 0  # all constraints are met to the tolerance
    LEAST_SQUARES = (
        1  # they contradict each other: accelerations do not change any more, and miss them as little as can be
    )
    STOPPED = 2  # after the most iterations allowed


class Reported:
    """What a result says about its iteration."""

    report: Array
    tolerance: float

    @property
    def iterations(self) -> Array:
        """(...)"""
        return self.report[..., 0].astype(int)

    @property
    def residual(self) -> Array:
        """(...), the largest row that is left of what was asked for, in its units."""
        return self.report[..., 1]

    @property
    def status(self) -> Array:
        """(...) of `Status`."""
        still = np.where(self.report[..., 2] <= self.tolerance, Status.LEAST_SQUARES, Status.STOPPED)
        return np.where(self.residual <= self.tolerance, Status.CONVERGED, still)
