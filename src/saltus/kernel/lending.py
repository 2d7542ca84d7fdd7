"""What a thread has of its own: memory for stage and workspace. And how many threads batches are dealt out to."""

from __future__ import annotations

import math
import operator
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saltus.kernel.poison import poison

LINE = 64
"""Bytes of a cache line."""

AT_ONCE = 1024
"""Samples of a batch that the caller's thread does in one go: a longer one goes in chunks, between which Ctrl-C is heard,
and others may help."""

MOST_THREADS = 1024
"""More would cost more than they bring on any machine, and may not be there to be had."""

QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Where Linux says how much time [us] in how long a period the processes of a container have; or max."""


def available() -> int:
    """The processors that this process may use."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        time, period = QUOTA.read_text().split()
        return max(1, min(allowed, math.ceil(int(time) / int(period))))
    except (OSError, ValueError):  # there is no such file, or no limit
        return allowed


_settings = {"threads": available()}


def set_threads(count: int) -> None:
    """How many threads batches are dealt out to; at first, as many as there are processors for this
    process: its affinity and the quota of its container count.

    >>> set_threads(2)
    """
    try:
        threads = operator.index(count)
    except TypeError:
        raise TypeError(f"set_threads: expected a number of threads, got {count!r}") from None
    if not 1 <= threads <= MOST_THREADS:
        raise ValueError(f"set_threads: expected a positive number of threads, at most {MOST_THREADS}, got {threads}")
    _settings["threads"] = threads


def get_threads() -> int:
    """How many threads batches are dealt out to."""
    return _settings["threads"]


class _Own(threading.local):
    """A thread's memory, and what is told of it to compiled code: its address, its length in bytes, a batch's limit."""

    def __init__(self) -> None:
        self.memory = np.empty(0, np.uint8)
        self.lent = np.array([0, 0, AT_ONCE])


_own = _Own()


def scratch(words: int, dtype: Any) -> NDArray[Any]:
    """This thread's memory, aligned to a cache line; it grows and is used again."""
    size = words * np.dtype(dtype).itemsize
    if _own.memory.nbytes < size:
        raw = np.empty(size + LINE, np.uint8)
        start = -raw.ctypes.data % LINE
        _own.memory = raw[start : start + size]
        _own.lent[:2] = _own.memory.ctypes.data, size
    memory: NDArray[Any] = _own.memory[:size].view(dtype)
    poison([memory])
    return memory


def lend() -> NDArray[np.int64]:
    """This thread's memory as compiled code is told of it."""
    return _own.lent
