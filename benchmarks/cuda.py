"""Throughput on a GPU against the size of the batch, on CuPy arrays in both layouts and precisions.

    python -m benchmarks.cuda [--robots solo12] [--algorithms aba,crba] [--specialised] [--quick] [--output FILE]

CUDA events are set around a graph of ten launches one after the other: the device's own time. What a launch takes from
Python is reported apart (`launch`), and limits small batches. Layout `samples` is an array (B, n) as NumPy
makes it, `numbers` the transpose of an array (n, B), in which neighbouring threads read neighbouring words. Errors are
relative, of the first samples, against the processor in double precision; of all results, the first one counts.

`constrained_aba` is timed on the constraints that `CONSTRAINED` names, with default settings: it iterates until they are
met, and only samples whose status is CONVERGED count, in throughput and errors. Its derivatives are in double precision,
as `ConstrainedDynamics.derivatives` computes them whatever it is given.

With `--specialised`, robots have code of their own, and humanoids stand on two soles.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import cupy
import numpy as np

import saltus as sl
from benchmarks.algorithms import ALGORITHMS, Row, first, make_inputs
from benchmarks.contacts import Case, relative_errors
from benchmarks.measure import circumstances, wall_time, write
from benchmarks.robots import ROBOTS, chosen, saltus_model
from saltus.derivatives.constrained import _constrained_derivatives

BATCHES = (1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 17, 1 << 18)
LARGEST = {
    "aba": 1 << 18, "rnea": 1 << 18, "crba": 1 << 16, "centroidal_momentum_matrix": 1 << 18, "constrained_aba": 1 << 17,
    "constrained_derivatives": 1 << 15,
}  # fmt: skip
"""The algorithms, and the largest batch of each: matrices (nv, nv) fill the memory."""
CONSTRAINED = {"solo12": "F3^4", "anymal": "F3^4", "talos38": "F6^2 H6^2", "talos50": "F6^2 H6^2"}
"""What of a robot is held."""
STANDING = CONSTRAINED | {"talos38": "F6^2", "talos50": "F6^2"}
"""What of a specialised one."""
HELD = ("constrained_aba", "constrained_derivatives")
DEFAULT_ROBOTS = "solo12,anymal,g1,talos38,talos50"
LAYOUTS = ("samples", "numbers")
LAUNCHES, CHECKED = 10, 256


def on_device(array: Any, layout: str, dtype: Any) -> Any:
    """A copy of an array (B, ...) on the GPU."""
    if layout == "samples":
        return cupy.asarray(np.ascontiguousarray(array, dtype))
    return cupy.moveaxis(cupy.asarray(np.ascontiguousarray(np.moveaxis(array, 0, -1), dtype)), -1, 0)


def empty_like(array: Any, count: int, layout: str, dtype: Any) -> Any:
    """Room for `count` results like those in an array (B, ...)."""
    own = array.shape[1:]
    if layout == "samples":
        return cupy.empty((count, *own), dtype)
    return cupy.moveaxis(cupy.empty((*own, count), dtype), -1, 0)


def time_launches(call: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """The best time of a launch [s], on the device and in Python."""
    start, end, best = cupy.cuda.Event(), cupy.cuda.Event(), float("inf")
    call()
    cupy.cuda.Device().synchronize()
    before = perf_counter()
    for _ in range(LAUNCHES):
        call()
    python = (perf_counter() - before) / LAUNCHES
    with cupy.cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        for _ in range(LAUNCHES):
            call()
        graph = stream.end_capture()
        for _ in range(repeats):
            start.record()
            graph.launch()
            end.record()
            end.synchronize()
            best = min(best, cupy.cuda.get_elapsed_time(start, end) * 1e-3 / LAUNCHES)
    return best, python


def constrained_row(robot: str, derivatives: bool, specialised: bool) -> Row:
    """Constrained dynamics of a robot as a row of the table: accelerations, forces and report by q, v and tau; or all their
    derivatives as well, which then come first."""
    case = Case(robot, (STANDING if specialised else CONSTRAINED)[robot])
    dynamics = sl.ConstrainedDynamics(case.model, case.constraints)
    if specialised:
        dynamics = sl.specialise(dynamics)

    def call(model: sl.Model, q: Any, v: Any, tau: Any, out: Any = None) -> Any:
        active, target, start, rows = dynamics._defaults(q, v, tau)
        problem, rest = dynamics.problem_in(q.dtype), () if specialised else (active, target, start)
        solved = dynamics._run(problem, (q, v, tau, *rest), out and out[-3:])  # type: ignore[call-arg]
        if not derivatives:
            return solved
        inputs = (q, v, *solved[:2], active, rows)
        return (*_constrained_derivatives.call(problem, inputs, out and out[:-3]), *solved)

    return Row(call, "q v tau")


def reference(row: Row, robot: str, inputs: dict[str, Any], dtype: str) -> tuple[Any, ...]:
    """What the processor finds in double precision, for inputs rounded to a type of number."""
    rounded = (value.astype(dtype).astype(np.float64) for value in row.choose(inputs))
    result = row.call(saltus_model(robot), *rounded)
    return result if isinstance(result, tuple) else (result,)


def measure(
    row: Row, model: sl.Model, inputs: dict[str, Any], right: tuple[Any, ...], dtype: Any, layout: str, repeats: int
) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """One point of a curve, and what was found there."""
    count = len(inputs["q"])
    given = [on_device(value, layout, dtype) for value in row.choose(inputs)]
    out = tuple(empty_like(each, count, layout, dtype) for each in right)
    call = partial(row.call, model, *given, out=out if len(out) > 1 else out[0])
    first_call, _ = wall_time(lambda: (call(), cupy.cuda.Device().synchronize()))
    seconds, python = time_launches(call, repeats)
    error = np.abs(cupy.asnumpy(out[0][: len(right[0])]) - right[0]).max() / np.abs(right[0]).max()
    point = {
        "batch": count,
        "first_call_s": first_call,
        "seconds": seconds,
        "launch_us": python * 1e6,
        "million_per_s": count / seconds * 1e-6,
        "error": float(error),
    }
    return point, out


def of_converged(point: dict[str, Any], out: tuple[Any, ...], right: tuple[Any, ...]) -> dict[str, Any]:
    """The same point of constrained dynamics, whose last result is a report: only samples that are CONVERGED count."""
    report, count = cupy.asnumpy(out[-1]), len(right[0])
    there = report[:, 4] == sl.Status.CONVERGED
    known = there[:count] & (right[-1][:, 4] == sl.Status.CONVERGED)
    errors = relative_errors(cupy.asnumpy(out[0][:count]).reshape(count, -1), right[0].reshape(count, -1))
    return point | {
        "million_per_s": point["million_per_s"] * float(there.mean()),
        "error": float(errors[known].max(initial=0.0)),
        "converged": float(there.mean()),
        "iterations": float(report[:, 0].mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Throughput on a GPU against the size of the batch.")
    parser.add_argument("--robots", default=DEFAULT_ROBOTS, help="comma-separated: " + ", ".join(ROBOTS))
    parser.add_argument("--algorithms", default="", help="comma-separated: " + ", ".join(LARGEST))
    parser.add_argument("--specialised", action="store_true", help="robots with code of their own")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="to see that it works: one robot, small batches")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    batches: tuple[int, ...] = BATCHES
    if options.quick:
        options.repeats, batches = 2, BATCHES[:2]
        options.robots = "solo12" if options.robots == DEFAULT_ROBOTS else options.robots
    names = chosen(options.algorithms, LARGEST)

    device = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
    result = circumstances("benchmarks.cuda", "cupy-cuda13x") | {"device": device, "rows": []}
    print(f"{device}; {LAUNCHES} launches, best of {options.repeats}\n")
    labels = f"{'robot':11}{'algorithm':28}{'type':8}{'layout':8}{'batch':>8}"
    print(f"{labels}{'M/s':>9}{'launch us':>11}{'error':>10}{'first s':>9}{'converged':>11}{'iterations':>12}")
    for robot in chosen(options.robots, ROBOTS):
        model = sl.specialise(saltus_model(robot)) if options.specialised else saltus_model(robot)
        many = make_inputs(model, batches[-1], "q v a tau")
        for name in names:
            if name in HELD and robot not in CONSTRAINED:
                continue
            held = name in HELD and constrained_row(robot, name == "constrained_derivatives", options.specialised)
            row = held or ALGORITHMS[name]
            types = ("float64",) if name == "constrained_derivatives" else ("float64", "float32")
            right = {dtype: reference(row, robot, first(many, CHECKED), dtype) for dtype in types}
            points = [(d, l, b) for d in types for l in LAYOUTS for b in batches if b <= LARGEST[name]]
            for dtype, layout, batch in points:
                inputs = {key: value[:batch] for key, value in many.items()}
                point, out = measure(row, model, inputs, right[dtype], np.dtype(dtype), layout, options.repeats)
                if name in HELD:
                    point = of_converged(point, out, right[dtype])
                solved = f"{point['converged']:11.1%}{point['iterations']:12.1f}" if name in HELD else ""
                result["rows"].append({"robot": robot, "algorithm": name, "dtype": dtype, "layout": layout, **point})
                print(
                    f"{ROBOTS[robot].title:11}{name:28}{dtype:8}{layout:8}{batch:8}{point['million_per_s']:9.1f}"
                    f"{point['launch_us']:11.1f}{point['error']:10.1e}{point['first_call_s']:9.2f}{solved}",
                    flush=True,
                )
                del out
                cupy.get_default_memory_pool().free_all_blocks()
    if options.output or not (options.quick or options.algorithms or options.robots != DEFAULT_ROBOTS):
        kind = "specialised-" if options.specialised else "cuda-"
        write(result, options.output, kind + device.lower().removeprefix("nvidia ").replace(" ", "-") + ".json")


if __name__ == "__main__":
    main()
