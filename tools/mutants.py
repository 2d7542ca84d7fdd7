"""Whether the tests would notice: `python -m tools.mutants [PATTERN] [--jobs N]`.

Every mutation of tools/mutations.py is made alone, in a temporary copy of the tree, and the tests that it names must fail.
They are all run once without any mutation first, since tests that fail anyhow notice nothing. Prints a line a mutation, and
exits with 1 if one lives, if its text is not found exactly once, or if its tests do not even start.

PATTERN chooses mutations whose file, or what they do, contains it. The tree itself is never touched; compiled kernels go to
the cache that tests use.
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

from tools.mutations import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 600.0
"""Seconds. A mutation that takes its tests so long has been noticed."""

OUTCOMES = {0: "LIVES", 1: "killed"}
"""By pytest's exit status; any other says that the tests did not run."""


def flaw(mutation: Mutation, root: Path) -> str | None:
    """What is wrong with a mutation of the tree at `root`; None if it can be made."""
    file = root / mutation.file
    if not file.is_file():
        return f"there is no file {mutation.file}"
    found = file.read_text().count(mutation.text)
    if found != 1:
        return f"its text is found {found} times in {mutation.file}, expected once: {mutation.text!r}"
    missing = [test for test in mutation.tests.split() if not (root / test.partition("::")[0]).exists()]
    return f"there is no test {missing[0]}" if missing else None


def copy_tree(root: Path, to: Path) -> None:
    """What git knows of the tree at `root`, or would add to it."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        check=True,
        capture_output=True,
    ).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (root / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name)


def run_tests(tree: Path, tests: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """pytest's exit status, 1 if it ran out of time, and its output."""
    paths = os.pathsep.join([str(tree / "src"), str(tree), environment.get("PYTHONPATH", "")])
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "--no-header",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        *tests,
    ]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False,
            timeout=LONGEST,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 1, f"no end after {LONGEST:g} s"
    return done.returncode, done.stdout + done.stderr


def try_out(mutation: Mutation, tree: Path, environment: dict[str, str]) -> str:
    """Make a mutation in a copy of the tree, run its tests, and undo it: what came of it."""
    file = tree / mutation.file
    before = file.read_text()
    file.write_text(before.replace(mutation.text, mutation.replacement))
    try:
        status, output = run_tests(tree, mutation.tests.split(), environment)
    finally:
        file.write_text(before)
    return OUTCOMES.get(status) or f"NOT TESTED: {(output.strip().splitlines() or ['no output'])[-1]}"


def main(chosen: list[Mutation], root: Path, jobs: int) -> int:
    """Try all of them, in so many copies of the tree at once; 0 if every one is killed."""
    if not chosen:
        print("no mutation matches")
        return 1
    flaws = [f"{mutation.what}: {wrong}" for mutation in chosen if (wrong := flaw(mutation, root))]
    if flaws:
        print("\n".join(flaws))
        return 1
    environment = {"SALTUS_CACHE_DIR": str(root / ".cache" / "saltus"), **os.environ}
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        trees: queue.Queue[Path] = queue.Queue()
        for job in range(jobs):
            tree = Path(place) / str(job)
            copy_tree(root, tree)
            trees.put(tree)
        every = list(dict.fromkeys(test for mutation in chosen for test in mutation.tests.split()))
        status, output = run_tests(tree, every, environment)
        if status:
            print(f"{output}\nthese tests fail without any mutation")
            return 1

        def attempt(mutation: Mutation) -> bool:
            tree, begin = trees.get(), perf_counter()
            try:
                outcome = try_out(mutation, tree, environment)
            finally:
                trees.put(tree)
            spent = perf_counter() - begin
            print(f"{outcome:<8} {spent:5.0f} s  {mutation.file:<42} {mutation.what}", flush=True)
            return outcome == OUTCOMES[1]

        with ThreadPoolExecutor(jobs) as pool:
            killed = list(pool.map(attempt, chosen))
    print(f"{sum(killed)} of {len(killed)} killed")
    return 0 if all(killed) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("pattern", nargs="?", default="", help="part of a file's name, or of what a mutation does")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    arguments = parser.parse_args()
    matching = [each for each in MUTATIONS if arguments.pattern in f"{each.file} {each.what}"]
    sys.exit(main(matching, ROOT, max(1, arguments.jobs)))
