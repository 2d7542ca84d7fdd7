"""`SALTUS_POISON=1`: before a kernel runs, its results and its workspace hold NaN, so that what it leaves unwritten shows.

Calls then go the long way only, which fills them, one packet at a time: slow, and for tests.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

POISONED = os.environ.get("SALTUS_POISON", "") not in ("", "0")


def poison(arrays: Sequence[Any]) -> None:
    """NaN into arrays of reals, of NumPy's or on a device, if that is asked for."""
    if POISONED:
        fill(arrays)


def fill(arrays: Sequence[Any]) -> None:
    """NaN into arrays of reals."""
    for array in arrays:
        array[...] = math.nan
