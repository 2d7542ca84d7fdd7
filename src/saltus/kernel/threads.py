"""Threads, their memory, and the compiled functions that they run."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from saltus.kernel import native
from saltus.kernel.lending import GRAIN, get_threads
from saltus.kernel.number import Number

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm


@functools.lru_cache(maxsize=1)  # the threads of another number end when nobody uses them any more
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="saltus")


# A forked process has none of its parent's threads: it makes new ones. And it must not be forked while another thread
# compiles, for nobody would be there to release the compiler's lock.
os.register_at_fork(before=native._lock.acquire, after_in_parent=native._lock.release)
os.register_at_fork(after_in_child=native._lock.release)
os.register_at_fork(after_in_child=_pool.cache_clear)


@functools.cache
def entry(algorithm: Algorithm, number: Number, given: int, form: str) -> Any:
    kind = native.MANY if form in ("many", native.PUSH) else native.RUN
    return kind(native.address(algorithm, number, algorithm.present(given), form))


def deal(work: Callable[[int, int], int], count: int, width: int) -> list[int]:
    """Run work(start, stop) over all samples, in as many threads as are worth it."""
    packets = -(-count // width)
    threads = max(1, min(get_threads(), packets // GRAIN))
    if threads == 1:
        return [work(0, count)]
    share = -(-packets // threads) * width
    ranges = [(start, min(start + share, count)) for start in range(0, count, share)]
    tasks: list[Future[int]] = []
    try:
        pool = _pool(get_threads())
        tasks.extend(pool.submit(work, *each) for each in ranges[1:])
        return [work(*ranges[0]), *(task.result() for task in tasks)]
    except RuntimeError:  # no thread to be had: there are too many, or the process is about to end
        return [work(0, count)]
    finally:
        wait(tasks)  # an interrupt must not leave threads behind that still write the results
