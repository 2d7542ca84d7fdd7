"""Compile all algorithms ahead of their first use, several processes at a time.

    python -m saltus.kernel.warmup [processes]

One process takes one number type: kernels that several algorithms share are then compiled once.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from saltus.kernel import native
from saltus.kernel.algorithm import ALGORITHMS
from saltus.kernel.number import F64, Number
from saltus.kernel.target import packet


def jobs() -> list[tuple[Number, str]]:
    """What is compiled: calls of one sample, and packets of both precisions."""
    return [(packet(64), "many"), (packet(32), "many"), (F64, "one")]


def compile_all(number: Number, form: str) -> int:
    """Compile every algorithm, in all its variants, for one number type; returns how many functions there are."""
    import saltus  # noqa: F401  (declares the algorithms)

    variants = [(algorithm, given) for algorithm in ALGORITHMS for given in algorithm.variants()]
    for algorithm, given in variants:
        native.prepare(algorithm, number, algorithm.present(given), form)
    return len(variants)


def warmup(processes: int | None = None) -> None:
    """Fill the cache of compiled code. A function that is in it already takes no time."""
    with ProcessPoolExecutor(processes or os.cpu_count(), mp_context=get_context("spawn")) as pool:
        tasks = {pool.submit(compile_all, *job): job for job in jobs()}
        for task in as_completed(tasks):
            number, form = tasks[task]
            print(f"compiled {task.result()} functions: {number.name}, {form}", flush=True)


if __name__ == "__main__":
    warmup(int(sys.argv[1]) if len(sys.argv) > 1 else None)
