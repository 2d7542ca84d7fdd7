"""A thousand slightly different robots: `aba` with inertial parameters of each sample's own, against the same without.

    python -m benchmarks.varied [--robots solo12,talos38] [--cuda] [--quick] [--output FILE]

Packets on one thread; with `--cuda` on a GPU, numbers before samples. `x`: how many times longer it takes.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl
from benchmarks.algorithms import make_inputs
from benchmarks.measure import Timed, best_times, circumstances, write
from benchmarks.robots import saltus_model, title

BATCH, BATCH_ON_GPU = 1024, 1 << 17


def on_processor(models: dict[str, sl.Model], inputs: list[Any], repeats: int) -> dict[str, float]:
    """Times a sample [s]."""
    out = np.empty_like(inputs[1])
    calls = {name: Timed(partial(sl.aba, model, *inputs, out=out)) for name, model in models.items()}
    return {name: time / len(out) for name, time in best_times(calls, repeats, 1e-3).items()}


def on_gpu(models: dict[str, sl.Model], inputs: list[Any], repeats: int) -> dict[str, float]:
    from benchmarks.cuda import empty_like, on_device, time_launches

    there = [on_device(x, "numbers", x.dtype) for x in inputs]
    out = empty_like(inputs[1], len(inputs[1]), "numbers", inputs[1].dtype)
    return {
        name: time_launches(partial(sl.aba, model, *there, out=out), repeats)[0] / len(out)
        for name, model in models.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Inertial parameters of each sample's own.")
    parser.add_argument("--robots", default="solo12,panda,talos38")
    parser.add_argument("--cuda", action="store_true", help="on a GPU")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="to see that it works: the figures mean nothing")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    result = circumstances("benchmarks.varied") | {"rows": []}
    measure, batch = (on_gpu, BATCH_ON_GPU) if options.cuda else (on_processor, BATCH)
    print(
        f"{'robot':12}{'type':9}{'alike':>10}{'varied':>10}{'x':>7}{'own code: alike':>18}{'varied':>10}{'x':>7}   [ns]"
    )
    sl.set_threads(1)
    for robot in options.robots.split(","):
        model = saltus_model(robot)
        shares = np.random.default_rng(0).uniform(0.5, 2.0, size=(batch, model.nb, 1))
        varied = sl.vary_inertia(model, shares * sl.inertial_parameters(model))
        models = {
            "alike": model,
            "varied": varied,
            "own alike": sl.specialise(model),
            "own varied": sl.specialise(varied),
        }
        inputs = make_inputs(model, batch, "q v tau")
        for dtype in (np.float64, np.float32):
            given = [inputs[name].astype(dtype) for name in ("q", "v", "tau")]
            times = measure(models, given, 2 if options.quick else options.repeats)
            ns = {name: 1e9 * time for name, time in times.items()}
            result["rows"].append({"robot": robot, "type": np.dtype(dtype).name, "batch": batch, "ns": ns})
            print(
                f"{title(robot):12}{np.dtype(dtype).name:9}{ns['alike']:10.2f}{ns['varied']:10.2f}"
                f"{ns['varied'] / ns['alike']:7.2f}{ns['own alike']:18.2f}{ns['own varied']:10.2f}"
                f"{ns['own varied'] / ns['own alike']:7.2f}",
                flush=True,
            )
    if options.output or not options.quick:
        write(result, options.output, f"varied-{'h200' if options.cuda else result['machine']['name']}.json")


if __name__ == "__main__":
    main()
