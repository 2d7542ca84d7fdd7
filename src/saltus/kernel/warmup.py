"""Compile all algorithms ahead of their first use, several processes at a time.

    python -m saltus.kernel.warmup [processes [double]]

A process keeps to one number type as long as it can: kernels that several algorithms share are then compiled once.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue

from saltus.kernel import native
from saltus.kernel.algorithm import ALGORITHMS, Algorithm
from saltus.kernel.number import F64, Number
from saltus.kernel.target import packet

Progress = Callable[[int, int, str], None]
"""progress(functions done, functions in all, what was done last)"""

_reports: list[SimpleQueue[str | None]] = []
"""Where a worker process tells what it has done; it has one."""


PARTS = 2
"""Into which the functions of a number type are divided, so that no processor idles while another does the last type."""


def jobs(single: bool = True) -> list[tuple[Number, str]]:
    """What is compiled: calls of one sample, and packets of double and, if wanted, single precision."""
    return [(packet(64), "many"), *([(packet(32), "many")] if single else []), (F64, "one")]


def functions(number: Number) -> list[tuple[Algorithm, int]]:
    """Every algorithm, in all its variants; in single precision only without what is optional, which is rarely asked for."""
    import saltus  # noqa: F401  (declares the algorithms)

    most = 1 if number.bits == 32 else None
    return [(algorithm, given) for algorithm in ALGORITHMS for given in algorithm.variants()[:most]]


def warmup(
    processes: int | None = None, progress: Progress = lambda done, total, name: None, single: bool = True
) -> None:
    """Fill the cache of compiled code. A function that is in it already takes no time.

    Stopped by Ctrl-C, it keeps what is compiled: the next time, it goes on from there.
    """
    context = get_context("spawn")
    names = context.SimpleQueue()
    numbers, done = jobs(single), 0
    total = sum(len(functions(number)) for number, _ in numbers)
    with ProcessPoolExecutor(processes or os.cpu_count(), context, _start, (names,)) as pool:
        tasks = [pool.submit(_compile_part, *numbers[job], part) for job, part in order(len(numbers))]
        for task in tasks:
            task.add_done_callback(lambda _: names.put(None))  # well or badly: then there is no more to wait for
        for _ in tasks:
            while (name := names.get()) is not None:
                done += 1
                progress(done, total, name)
        for task in tasks:
            task.result()


def order(types: int) -> list[tuple[int, int]]:
    """Number types and parts, two types at a time: a process then goes on with the type that it has begun with."""
    return sorted(product(range(types), range(PARTS)), key=lambda task: (task[0] // PARTS, task[1], task[0]))


def _start(names: SimpleQueue[str | None]) -> None:
    """In a new worker process."""
    _reports.append(names)
    os.environ["SALTUS_QUIET"] = "1"  # the parent tells of it
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a traceback
    gc.freeze()
    gc.set_threshold(200_000, 20, 20)  # Numba makes many objects, and few cycles


def _compile_part(number: Number, form: str, part: int) -> None:
    """In a worker process: compile a part of everything for one number type."""
    for algorithm, given in functions(number)[part::PARTS]:
        native.prepare(algorithm, number, algorithm.present(given), form)
        _reports[0].put(f"{algorithm.name} for {number.name}")


def print_progress(done: int, total: int, name: str) -> None:
    """One line that changes on a terminal, a line for every tenth elsewhere."""
    if sys.stdout.isatty():
        print(f"\r\033[Kcompiled {done} of {total}: {name}", end="\n" if done == total else "", flush=True)
    elif done == total or done * 10 // total > (done - 1) * 10 // total:
        print(f"compiled {done} of {total} functions", flush=True)


if __name__ == "__main__":
    warmup(int(sys.argv[1]) if len(sys.argv) > 1 else None, print_progress, single=sys.argv[2:] != ["double"])
