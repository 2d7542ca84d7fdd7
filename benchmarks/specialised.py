"""Robots compiled by themselves, beside the code for all robots and Pinocchio: one call, and packets on one core.

    python -m benchmarks.specialised [--robots solo12,talos38] [--algorithms aba,constrained] [--quick] [--output FILE]

| column | what it is |
|---|---|
| compile | time to compile for one robot [s]: one call, f64 packets |
| pin, one | one call from Python, contiguous float64 arrays in |
| f64, f32 | time a sample of a batch on one thread |
| x pin, x all | how many times faster than `pin`, and than the code for all robots |
| error | largest relative difference to the code for all robots: f64, f32 |

Constrained dynamics iterate as in benchmarks/constrained.py; samples on which somebody does not get there are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl
from benchmarks.algorithms import ALGORITHMS, first, make_inputs
from benchmarks.constrained import BATCH, MOST_ITERATIONS, PEER_MU, TOLERANCE, one_by_one
from benchmarks.contacts import CASES, Case, Problem
from benchmarks.cpu import batch_call
from benchmarks.measure import Timed, best_times, circumstances, wall_time, write
from benchmarks.peer import VERSION, Peer
from benchmarks.peer_constraints import ConstrainedPeer
from benchmarks.robots import ROBOTS, chosen, pinocchio_model, saltus_model, title

ROWS = [
    "aba", "rnea", "nonlinear_effects", "gravity", "crba", "centroidal_momentum_matrix", "joint_placements",
    "joint_velocities", "joint_accelerations", "forward_kinematics", "frame_placements", "center_of_mass",
    "centroidal_momentum", "kinetic_energy", "potential_energy", "integrate", "difference", "interpolate",
]  # fmt: skip
"""What has code of a robot's own."""
HELD = [CASES[name] for name in ("solo12:F3^4", "anymal:F3^4", "talos38:F6^2", "talos50:F6^2") if name in CASES]
CONSTRAINED = "constrained"
FORMS = ("one", "f64", "f32")


def arrays(result: Any) -> list[Any]:
    return [np.asarray(x) for x in (result if isinstance(result, tuple) else (result,))]


def difference(ours: Any, theirs: Any) -> float:
    """Relative to the largest number of each array."""
    pairs = zip(arrays(ours), arrays(theirs), strict=True)
    return max(float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-300)) for a, b in pairs)


def compared(
    title: str, what: str, calls: dict[str, Timed], samples: dict[str, int], compiled: tuple[float, float],
    errors: tuple[float, float], options: argparse.Namespace,
) -> dict[str, Any]:  # fmt: skip
    """A row from calls named "pin", "one", "f64", "f32" (for this robot alone) and "one, all" ... (for all)."""
    times = best_times(calls, options.repeats, 1e-3 * options.milliseconds)
    us = {name: 1e6 * time / samples.get(name.split(",")[0], 1) for name, time in times.items()}
    row = {
        "robot": title, "what": what, "compile_s": compiled, "us": us, "errors": errors,
        "pin": {form: us["pin"] / us[form] for form in FORMS},
        "all": {form: us[f"{form}, all"] / us[form] for form in FORMS},
    }  # fmt: skip
    cells = "".join(f"{us[f]:9.3f}{row['pin'][f]:7.1f}{row['all'][f]:6.2f}" for f in FORMS)
    print(
        f"{title:12}{what:28}{compiled[0]:6.2f}{compiled[1]:6.2f}{us['pin']:9.2f}{cells}{errors[0]:9.0e}{errors[1]:8.0e}",
        flush=True,
    )
    return row


def free(robot: str, name: str, options: argparse.Namespace) -> dict[str, Any]:
    row, model, peer = ALGORITHMS[name], saltus_model(robot), Peer(robot)
    models = {"": sl.specialise(model), ", all": model}
    many = make_inputs(model, row.batch, row.inputs)
    given = {"one": first(many), "f64": many, "f32": first(many, row.batch, np.float32)}

    def call(form: str, which: str) -> Callable[[], Any]:
        if form == "one":
            return partial(row.call, models[which], *row.choose(given[form]))
        return batch_call(row, models[which], given[form])

    compiled = tuple(wall_time(call(form, ""))[0] for form in ("one", "f64"))
    errors = tuple(difference(call(form, "")(), call(form, ", all")()) for form in ("f64", "f32"))
    alone = partial(sl.set_threads, 1)
    calls = {form + which: Timed(call(form, which), alone) for form in FORMS for which in models}
    calls["pin"] = Timed(peer.call(name, row, given["one"]))
    samples = {"f64": row.batch, "f32": row.batch}
    return compared(ROBOTS[robot].title, name, calls, samples, compiled, errors, options)  # type: ignore[arg-type]


def held(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    problem = Problem(case, BATCH)
    dynamics = {
        which: sl.ConstrainedDynamics(model, problem.held, "constrained_aba", None, TOLERANCE, MOST_ITERATIONS)
        for which, model in (("", sl.specialise(problem.model)), (", all", problem.model))
    }
    peer = ConstrainedPeer(pinocchio_model(case.robot), problem.held)
    settings = peer.until(TOLERANCE, PEER_MU["pin"], MOST_ITERATIONS)
    a, _ = peer.iterations_all(peer.solve, **problem.states, settings=settings)
    states = list(problem.states.values())
    compiled = (
        wall_time(lambda: dynamics[""].solve(*(x[0] for x in states)))[0],
        wall_time(lambda: dynamics[""].solve(*states))[0],
    )
    right, ours = (dynamics[which].solve(*states) for which in (", all", ""))
    there = (problem.left(a) <= TOLERANCE) & (right.status == int(sl.Status.CONVERGED))
    many = {name: value[there] for name, value in problem.states.items()}
    single = {name: value.astype(np.float32) for name, value in many.items()}
    coarse = [d.solve(**single).a for d in dynamics.values()]
    errors = difference(ours.a[there], right.a[there]), difference(*coarse)
    samples, alone = list(zip(*many.values(), strict=True)), partial(sl.set_threads, 1)
    calls = {"pin": one_by_one(peer.solve, [(*each, settings) for each in samples])}
    for which, each in dynamics.items():
        calls[f"one{which}"] = one_by_one(each.solve, samples)
        calls[f"f64{which}"] = Timed(partial(each.solve, **many), alone)
        calls[f"f32{which}"] = Timed(partial(each.solve, **single), alone)
    counts = dict.fromkeys(("pin", *FORMS), len(samples))
    return compared(title(case.robot), f"constrained {case.held}", calls, counts, compiled, errors, options)


def main() -> None:
    parser = argparse.ArgumentParser(description="Robots compiled by themselves.")
    parser.add_argument("--robots", default="", help="comma-separated: " + ", ".join(ROBOTS))
    parser.add_argument("--algorithms", default="", help="comma-separated: " + ", ".join([*ROWS, CONSTRAINED]))
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--milliseconds", type=float, default=4.0, help="that a call is timed for in each repeat")
    parser.add_argument("--quick", action="store_true", help="to see that it works: the figures mean nothing")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    if options.quick:
        options.repeats, options.milliseconds = 2, 0.2
    robots, names = chosen(options.robots, ROBOTS), chosen(options.algorithms, [*ROWS, CONSTRAINED])
    result = circumstances("benchmarks.specialised") | {"rows": []}
    result["versions"]["pin"] = VERSION
    columns = "".join(f"{form:>9}{'x pin':>7}{'x all':>6}" for form in FORMS)
    print(f"{'robot':12}{'':28}{'compile':>12}{'pin':>9}{columns}{'error':>17}   [us]")
    for robot in robots:
        result["rows"] += [free(robot, name, options) for name in names if name != CONSTRAINED]
        if CONSTRAINED in names:
            result["rows"] += [held(case, options) for case in HELD if case.robot == robot]
    if not (options.robots or options.algorithms or options.quick) or options.output:
        write(result, options.output, f"specialised-{result['machine']['name']}.json")


if __name__ == "__main__":
    main()
