"""Compile ahead of first use, several processes at a time: into the cache, or into files that a wheel brings along.

python -m saltus.kernel.warmup [processes [form ...]]      see FORMS
"""

from __future__ import annotations

import os
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from saltus.kernel import native, packs, target
from saltus.kernel.algorithm import ALGORITHMS, Algorithm
from saltus.kernel.directional import DIRECTIONAL
from saltus.kernel.number import F32, F64, Number
from saltus.kernel.pushcall import lane_choices

Progress = Callable[[int, int, str], None]
"""progress(functions done, functions in all, what was done last)"""

FORMS = ("one", "many", "single", "slopes")
"""Calls of one sample; batches; batches in single precision; derivatives along directions. And for GPUs:"""
GPU_FORMS = ("gpu",)


class Job(NamedTuple):
    """One function to compile: an algorithm by its place, how many inputs it is given, the number type, and the form."""

    place: int
    given: int
    number: Number
    form: str

    @property
    def algorithm(self) -> Algorithm:
        return everything()[self.place]

    @property
    def name(self) -> str:
        return f"{self.algorithm.name} for {self.number.name}"

    @property
    def kind(self) -> str:
        """Functions of one form and one layer resemble each other, and are used together."""
        return f"{self.form} {self.number.name} {self.algorithm.kernel.__module__.split('.')[1]}"


def everything() -> list[Algorithm]:
    import saltus  # noqa: F401  (declares the algorithms)

    return [*ALGORITHMS, *DIRECTIONAL]


def jobs(forms: Sequence[str] = FORMS, names: Sequence[str] = ()) -> list[Job]:
    """All functions of some forms; of all algorithms, or of those of some names."""
    known = {algorithm.name for algorithm in everything()}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"no function is called {unknown[0]}, expected some of {', '.join(sorted(known))}")
    numbers = {
        "one": [(F64, "one")],
        "many": [(target.packet(64), "many")],
        "single": [(target.packet(32), "many")],
        "slopes": [(Number(64, 1, lanes), native.PUSH) for lanes in lane_choices()],
        "gpu": [(F64, native.GPU), (F32, native.GPU)],
    }
    return [
        Job(place, given, number, form)
        for kind in forms
        for number, form in numbers[kind]
        for place, algorithm in enumerate(everything())
        if not names or algorithm.name in names
        if (algorithm.sloped if form == native.PUSH else place < len(ALGORITHMS) and algorithm.valued)
        if number.bits == F64.bits or not algorithm.double_only
        for given in algorithm.variants()
        if given or form == "one"  # what has no inputs has no batches
    ]


def warmup(
    processes: int | None = None,
    progress: Progress = lambda done, total, name: None,
    forms: Sequence[str] = FORMS,
    names: Sequence[str] = (),
) -> None:
    """Fill the cache of compiled code. A function that is there already takes no time.

    Stopped by Ctrl-C, it keeps what is compiled: the next time, it goes on from there.
    """
    _deal(jobs(forms, names), processes, progress, "")


def write_packs(
    folder: Path, levels: Sequence[str], processes: int | None = None,
    progress: Progress = lambda done, total, name: None, names: Sequence[str] = (),
) -> None:  # fmt: skip
    """Everything compiled for levels of processors, or for GPUs, whether this machine is one or not, in a file for each."""
    for level in levels:
        forms = GPU_FORMS if level == target.GPU.name else FORMS
        if forms is FORMS:
            target.force(level)
        packs.write(folder / f"{level}.pack", _deal(jobs(forms, names), processes, progress, level))


def _deal(tasks: Sequence[Job], processes: int | None, progress: Progress, level: str) -> dict[str, dict[str, bytes]]:
    """Object files by symbol, of each kind by itself, by several processes; for the machine at hand if no level is named."""
    found = defaultdict[str, dict[str, bytes]](dict)
    with ProcessPoolExecutor(processes or os.cpu_count(), get_context("spawn"), _start, (level,)) as pool:
        running = {pool.submit(_compile, job): job for job in tasks}
        for done, each in enumerate(as_completed(running), 1):
            job = running[each]
            symbol, code = each.result()
            found[job.kind][symbol] = code
            progress(done, len(running), job.name)
    return found


def _start(level: str) -> None:
    """In a new worker process."""
    os.environ["SALTUS_QUIET"] = "1"  # the parent tells of it
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a traceback
    if level in target.LEVELS:
        target.force(level)


def _compile(job: Job) -> tuple[str, bytes]:
    """In a worker process."""
    return native.prepare(job.algorithm, job.number, job.algorithm.present(job.given), job.form)


def print_progress(done: int, total: int, name: str) -> None:
    """One line that changes on a terminal, a line for every tenth elsewhere."""
    if sys.stdout.isatty():
        print(f"\r\033[Kcompiled {done} of {total}: {name}", end="\n" if done == total else "", flush=True)
    elif done == total or done * 10 // total > (done - 1) * 10 // total:
        print(f"compiled {done} of {total} functions", flush=True)


if __name__ == "__main__":
    warmup(int(sys.argv[1]) if len(sys.argv) > 1 else None, print_progress, sys.argv[2:] or FORMS)
