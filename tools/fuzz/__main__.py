"""Command line: cases of all kinds in turn until the time is over; each failure with the command that shows it again."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator

import numpy as np

from tools.fuzz import constrained, free, matrices, rollouts, slopes
from tools.fuzz.memory import quick_oracle

KINDS: dict[str, Callable[[np.random.Generator], Iterator[str]]] = {
    "free": free.check,
    "constrained": constrained.check,
    "matrices": matrices.check,
    "slopes": slopes.check,
    "rollouts": rollouts.check,
}


def complaints(kind: str, seed: int) -> list[str]:
    """What is wrong with one case; an exception is a complaint like others."""
    try:
        with np.errstate(all="ignore"), quick_oracle(), warnings.catch_warnings(action="ignore"):
            return list(KINDS[kind](np.random.default_rng(seed)))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)
        lines = [f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in where[1:]]
        return [f"{type(error).__name__}: {error} ({' > '.join(lines)})"]


def run(seconds: float, seed: int, kinds: list[str], cases: int | None = None) -> dict[str, tuple[int, int]]:
    """Cases and failures of each kind; failures are printed as they come."""
    print(f"fuzz: seed {seed}, {seconds:g} s, kinds {', '.join(kinds)}", flush=True)
    rng, end = np.random.default_rng(seed), time.monotonic() + seconds
    counts = dict.fromkeys(kinds, (0, 0))
    done = 0
    while time.monotonic() < end and (cases is None or done < cases):
        kind = kinds[done % len(kinds)]
        each = int(rng.integers(2**40))
        wrong, done = complaints(kind, each), done + 1
        counts[kind] = (counts[kind][0] + 1, counts[kind][1] + bool(wrong))
        if wrong:
            print(f"FAILED: python -m tools.fuzz --only {kind} --case {each}", *wrong, sep="\n    ", flush=True)
    if constrained.tally:
        print("fuzz: samples by status:", ", ".join(f"{n} {what}" for what, n in sorted(constrained.tally.items())))
    for kind, (total, failed) in counts.items():
        print(f"fuzz: {total} cases of {kind}, {failed} failed", flush=True)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser("python -m tools.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None, help="of the whole run; a new one by default")
    parser.add_argument("--only", choices=list(KINDS), action="append", help="these kinds of cases only")
    parser.add_argument("--case", type=int, default=None, help="one case, by its own seed")
    given = parser.parse_args()
    kinds = given.only or list(KINDS)
    if given.case is not None:
        wrong = [text for kind in kinds for text in complaints(kind, given.case)]
        print(*(wrong or ["nothing wrong"]), sep="\n")
        return bool(wrong)
    seed = time.time_ns() % 2**40 if given.seed is None else given.seed
    return any(failed for _, failed in run(given.seconds, seed, kinds).values())


if __name__ == "__main__":
    sys.exit(main())
