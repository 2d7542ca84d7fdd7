"""Threads that share a batch, and the compiled functions that they run.

How long a sample takes is known from the batch before, or from the first packets. If what there is to do is worth waking
others, it is handed out to them in chunks, as each gets free. Between batches helpers watch a word for as long as waking one
takes, some 100 us, of which the caller spends two; then they sleep, each on a lock of its own.
"""

from __future__ import annotations

import functools
import operator
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count as counting
from typing import TYPE_CHECKING, Any

import numpy as np

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


LOOKS = 4000
"""Of a thread at a word, before it goes to sleep: 70 to 150 us, by how long a processor pauses."""

WATCH = """
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
declare void @{pause}

define ptr @"saltus.watch"(ptr %array, ptr %nothing) {{
entry:
  %place = getelementptr i8, ptr %array, i64 {data}
  %word = load ptr, ptr %place
  %thread = call ptr @PyEval_SaveThread()
  br label %look
look:
  %k = phi i64 [0, %entry], [%next, %wait]
  %now = load atomic i64, ptr %word acquire, align 8
  %still = icmp eq i64 %now, 0
  %left = icmp ult i64 %k, {looks}
  %stay = and i1 %still, %left
  br i1 %stay, label %wait, label %end
wait:
  call void @{call}
  %next = add i64 %k, 1
  br label %look
end:
  call void @PyEval_RestoreThread(ptr %thread)
  call void @Py_IncRef(ptr inttoptr (i64 {none} to ptr))
  ret ptr inttoptr (i64 {none} to ptr)
}}
"""
PAUSES = {
    "x86_64": ("llvm.x86.sse2.pause()", "llvm.x86.sse2.pause()"),
    "aarch64": ("llvm.aarch64.hint(i32)", "llvm.aarch64.hint(i32 1)"),
}

METH_NOARGS = 4


class Signal:
    """A word that one thread sets, and another one may `watch` for a while until it is, the interpreter free meanwhile."""

    def __init__(self) -> None:
        self.word = np.zeros(1, np.int64)
        self.watch: Callable[[], object] = _watcher()(self.word)

    def set(self, value: int) -> None:
        self.word[0] = value


@functools.cache
def _watcher() -> Callable[[Any], Callable[[], object]]:
    """Of an array, the builtin that looks at its first word until it is not 0, or `LOOKS` times."""
    from saltus.kernel import fastcall

    if not (fastcall.layout_is_known() and platform.machine() in PAUSES):
        return lambda array: lambda: None
    pause, call = PAUSES[platform.machine()]
    code = WATCH.format(pause=pause, call=call, data=fastcall.DATA, looks=LOOKS, none=id(None))
    return functools.partial(fastcall.bound, fastcall.method(native.link(code, "saltus.watch"), "watch", METH_NOARGS))


class Helper(threading.Thread):
    """A thread that is given something to do: `work` is set, `done` cleared, `begin` released, and then `called` set."""

    def __init__(self, number: int) -> None:
        super().__init__(name=f"saltus_{number}", daemon=True)
        self.begin, self.done = threading.Lock(), threading.Event()
        self.called, self.ended = Signal(), Signal()
        self.begin.acquire()
        self.work: Callable[[], None] | None = None  # None: it ends

    def run(self) -> None:
        while True:
            self.called.watch()
            self.begin.acquire()
            work, self.work = self.work, None
            if work is None:
                return
            work()
            del work  # what it worked on is not kept until the next time
            self.called.set(0)
            self.done.set()
            self.ended.set(1)


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
    stopped, failed = list[bool](), list[BaseException]()

    def timed(start: int, stop: int) -> None:
        begin = time.perf_counter()
        found.append(work(start, stop))
        spent = max(time.perf_counter() - begin, 1e-9) / (stop - start)
        paces[:] = [min(spent, *paces)] if paces else [spent]

    def share(chunk: int, numbers: Iterator[int]) -> None:
        """Takes chunks as long as there are any."""
        try:
            while not stopped and (start := first + chunk * next(numbers)) < count:
                timed(start, min(start + chunk, count))
        except BaseException as error:
            stopped.append(True)
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
            helper.ended.set(0)
        busy = list[tuple[Helper, None]]()
        try:
            # One call into C: an interrupt comes before or after it, when `busy` has those that were woken.
            busy.extend(zip(helpers, map(RELEASE, [helper.begin for helper in helpers]), strict=True))
            for helper in helpers:
                helper.called.set(1)
            mine()
        finally:
            while True:  # an interrupt must not leave threads behind that still write the results
                try:
                    stopped.append(True)
                    for helper, _ in busy:
                        helper.ended.watch()
                        helper.done.wait()
                    break
                except KeyboardInterrupt as error:
                    failed.append(error)
    if failed:
        raise failed[0]
    return found
