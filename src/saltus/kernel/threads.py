"""Threads, their memory, and the compiled functions that they run."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from saltus.kernel import native
from saltus.kernel.number import Number

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm

GRAIN = 16
"""Packets that a thread gets at least: below, waking it costs more than it brings."""

_settings = {"threads": os.cpu_count() or 1}


def set_threads(count: int) -> None:
    """How many threads batches are dealt out to; at first, as many as the machine has processors.

    >>> set_threads(2)
    """
    if count < 1:
        raise ValueError(f"set_threads: expected a positive number of threads, got {count}")
    _settings["threads"] = count
    _pool.cache_clear()


def get_threads() -> int:
    """How many threads batches are dealt out to."""
    return _settings["threads"]


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(get_threads(), thread_name_prefix="saltus")


os.register_at_fork(after_in_child=_pool.cache_clear)

_scratch = threading.local()


def scratch(words: int, dtype: Any) -> NDArray[Any]:
    """This thread's memory for stage and workspace, aligned to a cache line; it grows and is used again."""
    size = words * np.dtype(dtype).itemsize
    memory = getattr(_scratch, "memory", None)
    if memory is None or memory.nbytes < size:
        raw = np.empty(size + 64, np.uint8)
        start = -raw.ctypes.data % 64
        memory = _scratch.memory = raw[start : start + size]
    return memory[:size].view(dtype)  # type: ignore[no-any-return]


@functools.cache
def entry(algorithm: Algorithm, number: Number, given: int, form: str) -> Any:
    kind = native.MANY if form == "many" else native.RUN
    return kind(native.address(algorithm, number, algorithm.present(given), form))


def deal(work: Callable[[int, int], int], count: int, width: int) -> list[int]:
    """Run work(start, stop) over all samples, in as many threads as are worth it."""
    packets = -(-count // width)
    threads = max(1, min(get_threads(), packets // GRAIN))
    if threads == 1:
        return [work(0, count)]
    share = -(-packets // threads) * width
    ranges = [(start, min(start + share, count)) for start in range(0, count, share)]
    tasks = [_pool().submit(work, *each) for each in ranges[1:]]
    return [work(*ranges[0]), *(task.result() for task in tasks)]
