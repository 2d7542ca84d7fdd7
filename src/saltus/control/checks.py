"""What calls of control are given beside arrays, checked: how many, and how much."""

from __future__ import annotations

import math
import operator
from typing import Any

MOST = 2**31 - 1
"""Kernels count no further; who asks for more has as many."""


def checked_count(value: Any, what: str) -> int:
    """A whole number, 0 or more.

    >>> checked_count(10**12, "restarts") == MOST
    True
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is {value!r}, expected a whole number") from None
    if number < 0:
        raise ValueError(f"{what} is {number}, expected 0 or more")
    return min(number, MOST)


def checked_positive(value: Any, what: str, unit: str = "", kind: type[ValueError] = ValueError) -> float:
    """A finite number, more than 0."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{what} is {value!r}, expected a number") from None
    if not 0 < number < math.inf:
        raise kind(f"{what} is {value}, expected a finite number, more than 0{unit}")
    return number
