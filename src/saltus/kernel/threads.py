"""Threads that share a batch, and the compiled functions that they run.

How long a sample takes is known from the batch before, or from the first packets. If what there is to do is worth waking
others, it is handed out to them in chunks, as each gets free. Helpers sleep between batches, each on a lock of its own: one
is awake after some 100 us, of which the caller spends two.
"""

from __future__ import annotations

import functools
import operator
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count as counting
from typing import TYPE_CHECKING, Any

from saltus.kernel import native
from saltus.kernel.lending import get_threads
from saltus.kernel.number import Number
from saltus.kernel.poison import POISONED

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm

FIRST = 1 if POISONED else 16
"""Packets that the caller does before it looks for help."""

WORTH = 400e-6
"""Seconds of work for which a helper is worth waking."""

CHUNK, ALONE = (0.0, 0.0) if POISONED else (200e-6, 25e-3)
"""Seconds of work at a time, at most: with helpers, and alone. Between chunks a thread looks whether it shall stop, so that
Ctrl-C need not wait for a whole batch; and under SALTUS_POISON, each packet finds its memory full of NaN."""

RELEASE = operator.methodcaller("release")

SHARES = 4
"""Chunks that each thread should get at least, so that all end at about the same time."""


class Helper(threading.Thread):
    """A thread that sleeps until it is given something to do: `work` is set, `done` cleared, `begin` released."""

    def __init__(self, number: int) -> None:
        super().__init__(name=f"saltus_{number}", daemon=True)
        self.begin, self.done = threading.Lock(), threading.Event()
        self.begin.acquire()
        self.work: Callable[[], None] | None = None  # None: it ends

    def run(self) -> None:
        while True:
            self.begin.acquire()
            work, self.work = self.work, None
            if work is None:
                return
            work()
            del work  # what it worked on is not kept until the next time
            self.done.set()


class Team:
    """The helpers there are. One batch has them at a time: another one, of another thread of the user's, goes alone."""

    def __init__(self) -> None:
        self.taken, self.helpers = threading.Lock(), list[Helper]()

    @contextmanager
    def lent(self, wanted: int) -> Iterator[list[Helper]]:
        """Up to so many helpers."""
        if wanted < 1 or not self.taken.acquire(blocking=False):
            yield []
            return
        try:
            while len(self.helpers) > get_threads() - 1:
                last = self.helpers.pop()
                last.work = None
                last.begin.release()
            try:
                while len(self.helpers) < wanted:
                    helper = Helper(len(self.helpers))
                    helper.start()
                    self.helpers.append(helper)
            except RuntimeError:  # no thread to be had: there are too many, or the process is about to end
                pass
            yield self.helpers[:wanted]
        finally:
            self.taken.release()

    def forget(self) -> None:
        """A forked process has none of its parent's threads."""
        self.__init__()  # type: ignore[misc]


_team = Team()


# A process must not be forked while another thread compiles, for nobody would be there to release the compiler's lock.
os.register_at_fork(before=native._lock.acquire, after_in_parent=native._lock.release)
os.register_at_fork(after_in_child=native._lock.release)
os.register_at_fork(after_in_child=_team.forget)


@functools.cache
def entry(algorithm: Algorithm, number: Number, given: int, form: str) -> Any:
    kind = native.ONE if form == "one" else native.MANY
    return kind(native.address(algorithm, number, algorithm.present(given), form))


def deal(work: Callable[[int, int], int], count: int, width: int, paces: list[float] | None = None) -> list[int]:
    """Run work(start, stop) over all samples, in as many threads as are worth it; what it answered.

    paces: the least time [s] that a sample of such batches took, if any did; and it is noted there.
    """
    paces, found, first = [] if paces is None else paces, list[int](), 0
    stopped, failed = threading.Event(), list[BaseException]()

    def timed(start: int, stop: int) -> None:
        begin = time.perf_counter()
        found.append(work(start, stop))
        spent = max(time.perf_counter() - begin, 1e-9) / (stop - start)
        paces[:] = [min(spent, *paces)] if paces else [spent]

    def share(chunk: int, numbers: Iterator[int]) -> None:
        """Takes chunks as long as there are any."""
        try:
            while not stopped.is_set() and (start := first + chunk * next(numbers)) < count:
                timed(start, min(start + chunk, count))
        except BaseException as error:
            stopped.set()
            failed.append(error)

    if not paces or paces[0] * count < WORTH:
        first = min(count, FIRST * width)
        timed(0, first)
    pace, left = paces[0], count - first
    with _team.lent(min(get_threads() - 1, int(pace * left / WORTH))) as helpers:
        seconds = min(CHUNK, pace * left / (SHARES * (len(helpers) + 1))) if helpers else ALONE
        mine = functools.partial(share, width * max(1, int(seconds / (pace * width))), counting())
        for helper in helpers:
            helper.work = mine
            helper.done.clear()
        busy = list[tuple[Helper, None]]()
        try:
            # One call into C: an interrupt comes before or after it, when `busy` has those that were woken.
            busy.extend(zip(helpers, map(RELEASE, [helper.begin for helper in helpers]), strict=True))
            mine()
        finally:
            while True:  # an interrupt must not leave threads behind that still write the results
                try:
                    stopped.set()
                    for helper, _ in busy:
                        helper.done.wait()
                    break
                except KeyboardInterrupt as error:
                    failed.append(error)
    if failed:
        raise failed[0]
    return found
