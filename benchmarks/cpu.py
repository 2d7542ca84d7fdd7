"""Every algorithm on the processor, beside Pinocchio's: one call, and packets on one core and on all.

    python -m benchmarks.cpu [--robots solo12,ur5] [--algorithms aba,rnea] [--quick] [--output FILE]

| column | what it is |
|---|---|
| pin, one | one call from Python, contiguous float64 arrays in |
| f64, f32 | time a sample of a batch on one thread, user arrays in and out (into `out=` where the function has it) |
| threads | the same in float64 on all threads, each with a batch of its own (at least 256) |
| x | how many times faster than `pin` |
| peak | share of the core's arithmetic peak (peak.py) that the f64 packets reach; an interpreted run counts operations |

A run of all robots and algorithms is kept in `results/`; any other is printed only, unless an output is named.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl
from benchmarks.algorithms import ALGORITHMS, Row, first, make_inputs, operations
from benchmarks.measure import Timed, best_times, circumstances, wall_time, write
from benchmarks.peak import peak_flops
from benchmarks.peer import VERSION, Peer, as_arrays
from benchmarks.robots import ROBOTS, chosen, saltus_model
from saltus.kernel.native import cache_folder

THREADS: int = sl.get_threads()
TOLERANCE = 1e-8  # of the agreement with the peer; the tests ask for much more


def threaded_batch(row: Row) -> int:
    """A batch for every thread, and enough for them to be worth waking."""
    return THREADS * max(row.batch, 256)


def batch_call(row: Row, model: sl.Model, inputs: dict[str, Any]) -> Callable[[], Any]:
    """The call of a batch into arrays that are there already, if the function takes them."""
    call = partial(row.call, model, *row.choose(inputs))
    return partial(call, out=call()) if row.takes_out else call


def disagreement(ours: Any, theirs: Any) -> float | None:
    """The largest relative difference of two results, None if the peer returned nothing."""
    errors = [
        float(np.abs(np.reshape(mine, other.shape) - other).max() / max(np.abs(other).max(), 1e-9))
        for mine, other in zip(ours if isinstance(ours, tuple) else (ours,), as_arrays(theirs), strict=False)
    ]
    return max(errors, default=None)


def first_calls(row: Row, model: sl.Model) -> dict[str, Any]:
    """How long the first call in each form takes [s], and how many functions the cache had to gain for it."""
    inputs = make_inputs(model, row.batch, row.inputs)
    forms = {"one": first(inputs), "f64": inputs, "f32": first(inputs, row.batch, np.float32)}

    def compiled() -> int:
        return sum(1 for _ in cache_folder().glob("*.o"))

    before = compiled()
    times = {form: wall_time(partial(row.call, model, *row.choose(given)))[0] for form, given in forms.items()}
    return times | {"compiled": compiled() - before}


def measure(name: str, model: sl.Model, peer: Peer, peak: float, repeats: int, seconds: float) -> dict[str, Any]:
    """One line of the table: times in microseconds, ratios to the peer."""
    row = ALGORITHMS[name]
    many = make_inputs(model, threaded_batch(row), row.inputs)
    one = first(many)
    ours, theirs = partial(row.call, model, *row.choose(one)), peer.call(name, row, one)
    single, double = (batch_call(row, model, first(many, row.batch, d)) for d in (np.float32, np.float64))
    alone, together = partial(sl.set_threads, 1), partial(sl.set_threads, THREADS)
    calls = {
        "pin": Timed(theirs),
        "one": Timed(ours),
        "f64": Timed(double, alone),
        "f32": Timed(single, alone),
        "threads": Timed(batch_call(row, model, many), together),
    }
    result = single()
    if (result[0] if isinstance(result, tuple) else result).dtype != np.float32:
        del calls["f32"]  # not computed in single precision
    error = disagreement(ours(), theirs())
    times = best_times(calls, repeats, seconds)
    samples = {"f64": row.batch, "f32": row.batch, "threads": len(many[row.inputs.split()[0]])}
    us = {form: 1e6 * time / samples.get(form, 1) for form, time in times.items()}
    counts = operations(row, model, one)
    return {
        "algorithm": name,
        "batch": row.batch,
        "threads_batch": samples["threads"],
        "out": row.takes_out,
        "us": us,
        "ratio": {form: us["pin"] / time for form, time in us.items() if form != "pin"},
        "operations": counts,
        "peak_share": sum(counts.values()) / (us["f64"] * 1e-6) / peak,
        "error": error,
    }


def heading() -> str:
    return (
        f"{'robot':11}{'algorithm':28}{'batch':>6}{'pin':>9}{'one':>9}{'x':>7}{'f64':>9}{'x':>7}{'f32':>9}{'x':>7}"
        f"{'threads':>9}{'x':>7}{'peak':>6}   [us; us a sample]"
    )


def line(row: dict[str, Any]) -> str:
    """A row of the table as text."""
    cells = f"{ROBOTS[row['robot']].title:11}{row['algorithm']:28}{row['batch']:6}{row['us']['pin']:9.2f}"
    for form in ("one", "f64", "f32", "threads"):
        known = form in row["us"]
        cells += f"{row['us'][form]:9.3f}{row['ratio'][form]:7.2f}" if known else f"{'-':>9}{'-':>7}"
    return cells + f"{row['peak_share']:6.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Every algorithm on the processor, beside Pinocchio's.")
    parser.add_argument("--robots", default="", help="comma-separated: " + ", ".join(ROBOTS))
    parser.add_argument("--algorithms", default="", help="comma-separated: " + ", ".join(ALGORITHMS))
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--milliseconds", type=float, default=4.0, help="that a call is timed for in each repeat")
    parser.add_argument("--quick", action="store_true", help="to see that it works: the figures mean nothing")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    if options.quick:
        options.repeats, options.milliseconds = 2, 0.2
    robots, names = chosen(options.robots, ROBOTS), chosen(options.algorithms, ALGORITHMS)

    peak = peak_flops()
    result = circumstances("benchmarks.cpu") | {"peak_gflops": peak / 1e9, "threads": THREADS}
    result["versions"]["pin"] = VERSION
    result |= {"repeats": options.repeats, "milliseconds": options.milliseconds, "first_call_s": {}, "rows": []}
    machine = result["machine"]
    print(f"{machine['model']}, {machine['vectors']}, {THREADS} threads; pin {VERSION}")
    print(f"arithmetic peak of a core: {peak / 1e9:.1f} GFLOP/s\n")

    model = saltus_model(robots[0])
    print(f"{'first call [s]':28}{'one':>8}{'f64':>8}{'f32':>8}{'compiled':>10}")
    for name in names:
        times = result["first_call_s"][name] = first_calls(ALGORITHMS[name], model)
        print(f"{name:28}{times['one']:8.3f}{times['f64']:8.3f}{times['f32']:8.3f}{times['compiled']:10}", flush=True)

    print("\n" + heading())
    for robot in robots:
        model, peer = saltus_model(robot), Peer(robot)
        size: dict[str, Any] = {"robot": robot, "nq": model.nq, "nv": model.nv}
        for name in names:
            row = size | measure(name, model, peer, peak, options.repeats, options.milliseconds * 1e-3)
            result["rows"].append(row)
            print(line(row), flush=True)
            if row["error"] is not None and row["error"] > TOLERANCE:
                print(f"  differs from the peer by {row['error']:.1e}")
    whole = not (options.quick or options.robots or options.algorithms)
    if whole or options.output:
        write(result, options.output, f"cpu-{machine['name']}.json")


if __name__ == "__main__":
    main()
