"""Two threads against one: forward dynamics of batches from 64 to 65 536 samples.

    python -m benchmarks.threads [--robots arm,solo12,talos38] [--threads 2] [--quick] [--output FILE]

Both write into `out=`, and take turns. Small batches go by one thread whatever is allowed, and should not suffer from it.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl
from benchmarks.algorithms import ALGORITHMS, first, make_inputs
from benchmarks.cpu import batch_call
from benchmarks.measure import Timed, best_times, circumstances, write
from benchmarks.robots import ROBOTS, SHIPPED, saltus_model, title

BATCHES = tuple(1 << k for k in range(6, 17))
DEFAULT_ROBOTS = "arm,solo12,talos38"


def main() -> None:
    parser = argparse.ArgumentParser(description="Two threads against one.")
    parser.add_argument("--robots", default=DEFAULT_ROBOTS, help="comma-separated: " + ", ".join([*ROBOTS, *SHIPPED]))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--milliseconds", type=float, default=4.0, help="that a call is timed for in each repeat")
    parser.add_argument("--quick", action="store_true", help="to see that it works: the figures mean nothing")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    if options.quick:
        options.repeats, options.milliseconds = 2, 0.2
    result = circumstances("benchmarks.threads") | {"threads": options.threads, "rows": []}
    print(f"{'robot':12}{'type':9}{'batch':>7}{'one thread':>13}{f'{options.threads} threads':>12}{'x':>7}   [us]")
    row = ALGORITHMS["aba"]
    for robot in options.robots.split(","):
        model = saltus_model(robot)
        many = make_inputs(model, BATCHES[-1], row.inputs)
        for dtype in ("float64", "float32"):
            for batch in BATCHES:
                call = batch_call(row, model, first(many, batch, np.dtype(dtype)))
                calls = {str(n): Timed(call, partial(sl.set_threads, n)) for n in (1, options.threads)}
                times = best_times(calls, options.repeats, 1e-3 * options.milliseconds)
                one, several = (1e6 * times[str(n)] for n in (1, options.threads))
                point: dict[str, Any] = {"robot": robot, "dtype": dtype, "batch": batch, "one_us": one}
                result["rows"].append(point | {"threads_us": several, "ratio": one / several})
                print(f"{title(robot):12}{dtype:9}{batch:7}{one:13.1f}{several:12.1f}{one / several:7.2f}", flush=True)
    if options.output or not (options.quick or options.robots != DEFAULT_ROBOTS):
        write(result, options.output, f"threads-{result['machine']['name']}.json")


if __name__ == "__main__":
    main()
