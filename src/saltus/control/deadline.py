"""How long seconds are by the clock that kernels see (`ticks`)."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np

from saltus.control.quadratic_program import TABLES, Size
from saltus.kernel import Layout, declare, st, ticks

PERIOD = 0.005
"""For which the clock is watched [s]."""

LONGEST = 2**31 - 1


@declare(TABLES, inputs={}, outputs={"high": "1", "low": "1"}, work=Layout(one={"now": None}), sloped=False)
def _clock(tree: Any, w: Any, high: Any, low: Any) -> None:
    """In two numbers, of which each is exact."""
    now = ticks()
    st(high, 0, 1.0 * (now // 1048576))
    st(low, 0, 1.0 * (now % 1048576))


def read_clock() -> tuple[float, float]:
    """Ticks, and seconds of Python's clock."""
    high, low = _clock.call(Size(1, 0), ())
    return float(high[0] * 1048576 + low[0]), time.perf_counter()


@cache
def rate() -> float:
    """Ticks a second."""
    begun, then = read_clock()
    time.sleep(PERIOD)
    ended, now = read_clock()
    return (ended - begun) / (now - then)


def allowance(seconds: float) -> int:
    """So long, in 1024 ticks; at least one."""
    return int(np.clip(seconds * rate() / 1024, 1, LONGEST))
