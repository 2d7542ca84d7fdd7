"""What float32 reaches: constrained dynamics in single precision against double, by default settings.

    python -m benchmarks.precision [--cuda] [--robots NAMES] [--states 1000]

Every robot of the benchmarks with its sets of constraints, and every robot that saltus ships, held by its feet (or hands, or
last frame) and its loops; random states, rounded to float32 before either sees them. An error is the largest of an
acceleration, by the largest acceleration or that of gravity; where double precision has not converged itself, at singular
poses, there is no truth and no error. `--cuda` runs them on a GPU, by CuPy.
"""

from __future__ import annotations

import argparse
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl
from benchmarks.contacts import CASES, relative_errors, states
from benchmarks.measure import circumstances, write
from benchmarks.robots import OWN, saltus_model
from saltus.constraints.dynamics import METHODS, TREES_ONLY

WANTED = 1e-4
_model = cache(saltus_model)


def problems() -> dict[str, tuple[sl.Model, list[sl.Constraint]]]:
    found = {name: (case.model, case.constraints) for name, case in CASES.items()}
    for name in OWN:
        model, frames = _model(name), sl.robot_frames(name)
        limbs = frames.feet or frames.hands or ([] if model.loops else [model.frames[-1].name])
        dim = 6 if len(limbs) <= 2 and model.nv >= 6 else 3
        held = [sl.Contact(model, limb, dim) for limb in limbs]
        found[f"{name}, shipped"] = model, [*held, *sl.model_loops(model)]
    return found


def methods(constraints: list[sl.Constraint], on_gpu: bool) -> list[str]:
    loops = any(constraint.joint_b > 0 for constraint in constraints)
    return [m for m in METHODS if not (loops and m in TREES_ONLY) and not (on_gpu and m == "kkt")]


def measure(model: sl.Model, constraints: list[sl.Constraint], count: int, on_gpu: bool) -> list[dict[str, Any]]:
    single = [x.astype(np.float32) for x in states(model, count).values()]
    double = [x.astype(np.float64) for x in single]
    right = sl.ConstrainedDynamics(model, constraints, "loop_aba", tolerance=1e-12).solve(*double)
    known = right.status == sl.Status.CONVERGED
    given = single
    if on_gpu:
        import cupy

        given = [cupy.asarray(x) for x in single]
    rows = []
    for method in methods(constraints, on_gpu):
        solution = sl.ConstrainedDynamics(model, constraints, method).solve(*given)
        a, report = (x.get() if on_gpu else x for x in (solution.a, solution.report))
        status = report[:, 4].astype(int)
        error = relative_errors(a, right.a)
        converged = known & (status == sl.Status.CONVERGED)
        rows.append(
            {
                "method": method,
                "iterations": float(report[:, 0].mean()),
                "statuses": np.bincount(status, minlength=len(sl.Status)).tolist(),
                "known": int(known.sum()),
                "median": float(np.median(error[known])) if known.any() else None,
                "largest_converged": float(error[converged].max(initial=0.0)),
                "wrong": int((error[converged] > WANTED).sum()),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--robots", default="", help="comma-separated beginnings of names")
    parser.add_argument("--states", type=int, default=1000)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    result = circumstances("benchmarks.precision") | {"states": options.states, "rows": []}
    if options.cuda:
        import cupy

        result["device"] = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
    print(f"{'problem':26}{'method':17}{'iterations':>11}{'median':>9}{'largest':>9}{'wrong':>7}   statuses")
    for name, (model, constraints) in problems().items():
        if not name.startswith(tuple(options.robots.split(","))):
            continue
        for row in measure(model, constraints, options.states, options.cuda):
            result["rows"].append({"problem": name} | row)
            print(f"{name:26}{row['method']:17}{row['iterations']:11.1f}{row['median'] or np.nan:9.0e}"
                  f"{row['largest_converged']:9.0e}{row['wrong']:7}   {row['statuses']}", flush=True)  # fmt: skip
    wrong = sum(row["wrong"] for row in result["rows"])
    print(f"\n{wrong} samples are CONVERGED and off by more than {WANTED:g}")
    machine = "h200" if options.cuda else result["machine"]["name"]
    if not options.robots or options.output:
        write(result, options.output, f"precision-{machine}.json")


if __name__ == "__main__":
    main()
