"""Threads, their memory, and the compiled functions that they run."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from saltus.kernel import native
from saltus.kernel.lending import GRAIN, get_threads
from saltus.kernel.number import Number
from saltus.kernel.poison import POISONED

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm


FIRST = 1 if POISONED else 256
"""Packets of a thread's first chunk. A chunk that ends early is followed by one of twice the length."""

EARLY = 0.0 if POISONED else 0.025
"""Seconds. Between chunks a thread looks whether it shall stop, so that Ctrl-C need not wait for a whole batch; and under
SALTUS_POISON, each packet finds its memory full of NaN."""


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
    kind = native.ONE if form == "one" else native.MANY
    return kind(native.address(algorithm, number, algorithm.present(given), form))


def deal(work: Callable[[int, int], int], count: int, width: int) -> list[int]:
    """Run work(start, stop) over all samples, in as many threads as are worth it."""
    packets = -(-count // width)
    threads = max(1, min(get_threads(), packets // GRAIN))
    stopped = threading.Event()

    def chunks(start: int, stop: int) -> int:
        status, length = 0, FIRST * width
        while start < stop and not stopped.is_set():
            end, begin = min(start + length, stop), time.perf_counter()
            status |= work(start, end)
            start = end
            if time.perf_counter() - begin < EARLY:
                length *= 2
        return status

    if threads == 1:
        return [chunks(0, count)]
    share = -(-packets // threads) * width
    ranges = [(start, min(start + share, count)) for start in range(0, count, share)]
    tasks: list[Future[int]] = []
    try:
        pool = _pool(get_threads())
        tasks.extend(pool.submit(chunks, *each) for each in ranges[1:])
        return [chunks(*ranges[0]), *(task.result() for task in tasks)]
    except RuntimeError:  # no thread to be had: there are too many, or the process is about to end
        return [chunks(0, count)]
    finally:
        stopped.set()
        wait(tasks)  # an interrupt must not leave threads behind that still write the results
