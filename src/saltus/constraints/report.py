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
    INVALID = 3  # the inputs held a NaN, or what else cannot be: nothing was computed (`on_invalid="mark"`)


def iterations_of(report: Array) -> Array:
    return np.where(np.isnan(report[..., 0]), 0, report[..., 0]).astype(int)


def residual_of(report: Array) -> Array:
    return report[..., 1]


def status_of(report: Array, tolerance: float) -> Array:
    still = np.where(report[..., 2] <= tolerance, Status.LEAST_SQUARES, Status.STOPPED)
    ended = np.where(report[..., 1] <= tolerance, Status.CONVERGED, still)
    return np.where(np.isnan(report[..., 0]), Status.INVALID, ended)


class Reported:
    """What a result says about its iteration."""

    report: Array
    tolerance: float

    @property
    def iterations(self) -> Array:
        """(...)"""
        return iterations_of(self.report)

    @property
    def residual(self) -> Array:
        """(...), the largest row that is left of what was asked for, in its units."""
        return residual_of(self.report)

    @property
    def status(self) -> Array:
        """(...) of `Status`."""
        return status_of(self.report, self.tolerance)
