"""Free robots over time: steps a second of `rollout` by semi-implicit Euler, one thread, constant torques.

    python -m benchmarks.rollouts [--robots quadruped] [--cuda] [--quick] [--output FILE]

With `--cuda` on a GPU, in float32: all steps are one launch, and everything that a trajectory records is counted in.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np

import saltus as sl
from benchmarks.measure import Timed, best_times, circumstances, write
from benchmarks.robots import saltus_model, title

STEPS = {1: 1000, 16: 1000, 1000: 200}
"""By how many robots there are."""
STEPS_ON_GPU = {1 << 14: 100, 1 << 17: 100}


def steps_on_gpu(model: sl.Model, count: int, steps: int, repeats: int) -> float:
    """Time of a rollout [s]."""
    import cupy

    from benchmarks.cuda import on_device

    q, v = sl.random_configuration(model, 0, count), np.random.default_rng(0).normal(size=(count, model.nv))
    there = [on_device(x, "numbers", np.float32) for x in (q, v)]

    def call() -> None:
        sl.rollout(model, *there, duration=steps * 1e-3, method="semi_implicit_euler")

    start, end, best = cupy.cuda.Event(), cupy.cuda.Event(), float("inf")
    for _ in range(repeats):
        start.record()
        call()
        end.record()
        end.synchronize()
        best = min(best, 1e-3 * cupy.cuda.get_elapsed_time(start, end))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description="Free robots over time.")
    parser.add_argument("--robots", default="quadruped")
    parser.add_argument("--cuda", action="store_true", help="on a GPU")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="to see that it works: the figures mean nothing")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    result = circumstances("benchmarks.rollouts") | {"rows": []}
    print(f"{'robot':14}{'robots':>8}{'steps':>7}{'for all':>10}{'its own':>10}   [M steps/s]")
    sl.set_threads(1)
    for robot in options.robots.split(","):
        models = {"all": saltus_model(robot)}
        models["own"] = sl.specialise(models["all"])
        repeats = 2 if options.quick else options.repeats
        for count, steps in (STEPS_ON_GPU if options.cuda else STEPS).items():
            q = sl.random_configuration(models["all"], 0, count)
            v = np.random.default_rng(0).normal(size=(count, models["all"].nv))
            given = {"duration": steps * 1e-3, "method": "semi_implicit_euler"}
            calls = {name: Timed(partial(sl.rollout, model, q, v, **given)) for name, model in models.items()}  # type: ignore[arg-type]
            if options.cuda:
                times = {name: steps_on_gpu(model, count, steps, repeats) for name, model in models.items()}
            else:
                times = best_times(calls, repeats, 1e-3)
            rates = {name: 1e-6 * count * steps / time for name, time in times.items()}
            result["rows"].append({"robot": robot, "count": count, "steps": steps, "million_steps_per_s": rates})
            print(f"{title(robot):14}{count:8}{steps:7}{rates['all']:10.2f}{rates['own']:10.2f}", flush=True)
    if options.output or not options.quick:
        where = "h200" if options.cuda else result["machine"]["name"]
        write(result, options.output, f"rollouts-{where}.json")


if __name__ == "__main__":
    main()
