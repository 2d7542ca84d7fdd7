"""What a user of optimal control waits for in a process whose cache of compiled code is filled: the first `solve`.

    python -m benchmarks.ocp_startup [--motions cartpole,trot] [--repeats 3]

Every figure comes from a process of its own, which unpickles a problem and its start, and solves it twice. The first process
fills the cache and is not counted; the best of the others is. `cpu` is the processor's time, which other programs hardly
change. An error if the compiler is loaded.
"""

from __future__ import annotations

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

LIMIT = 1.0  # s


def child(file: Path) -> None:
    """In the new process."""
    import saltus  # noqa: F401

    problem, xs, us, solver = pickle.loads(file.read_bytes())
    made, times = solver(problem), []
    for _ in range(2):
        begin, spent = perf_counter(), process_time()
        made.solve(xs, us)
        times.append({"wall": perf_counter() - begin, "cpu": process_time() - spent})
    print(json.dumps({"first": times[0], "second": times[1], "compiler": "saltus.kernel.walk" in sys.modules}))


def main() -> None:
    parser = argparse.ArgumentParser(description="The first solution in a new process, with a filled cache.")
    parser.add_argument("--motions", help="names, with commas between; by default all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(Path(options.child))
        return

    from saltus.ocp.motions import MOTIONS

    print(f"{'solve [s]':20}{'first':>8}{'cpu':>8}{'second':>8}{'cpu':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.motions.split(",") if options.motions else MOTIONS:
            exercise, file = MOTIONS[name](), Path(folder) / f"{name}.pkl"
            file.write_bytes(pickle.dumps((exercise.problem, exercise.xs, exercise.us, exercise.solver)))
            runs: list[dict[str, Any]] = []
            for _ in range(options.repeats + 1):
                command = [sys.executable, "-m", "benchmarks.ocp_startup", "--child", str(file)]
                runs.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
            best = [
                min(run[turn][kind] for run in runs[1:]) for turn in ("first", "second") for kind in ("wall", "cpu")
            ]
            late = "" if best[0] - best[2] < LIMIT else f"  later than {LIMIT} s"
            print(f"{name:20}" + "".join(f"{time:8.3f}" for time in best) + late, flush=True)
            if any(run["compiler"] for run in runs[1:]):
                sys.exit(f"{name}: the compiler was loaded")


if __name__ == "__main__":
    main()
