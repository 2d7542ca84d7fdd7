"""How the solution of an optimal control problem ended."""

from __future__ import annotations

from enum import IntEnum


class OCPStatus(IntEnum):
    """How the solution of an optimal control problem ended; a batch has an array of their numbers."""

    SOLVED = 0  # the stopping criterion is below the threshold, and there are no gaps
    MAX_ITERATIONS = 1  # it is not, after the most iterations allowed
    REGULARISATION = 2  # no direction or no step is good enough even with the largest regularisation
    NOT_FINITE = 3  # the derivatives of a node hold NaN or infinity
    INTERRUPTED = 4  # Ctrl-C: the result is the last iterate

    def __str__(self) -> str:
        return self.name.lower()

    def __format__(self, form: str) -> str:  # not that of a number: an f-string has the name, too
        return format(str(self), form)
