"""Operation counts from interpreted runs: the bars of CA Figs. 1 and 5, for our robots.

    python -m benchmarks.operations [--cases solo12:F3^4] [--quick] [--output FILE]

Sums, products, quotients and roots on one state, of constrained dynamics with one iteration and with three, and of the
operational-space inertia matrix. A product by a constant counts like any other; branches on the model cost nothing.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import saltus as sl
from benchmarks.algorithms import counted
from benchmarks.contacts import CASES, LOOPS, Case, iterating, states
from benchmarks.measure import circumstances, write
from benchmarks.robots import chosen
from saltus.constraints.dynamics import METHODS, OSIM_METHODS

COUNTED = (
    "arm:H3", "arm:H6", "solo12:F3^2", "solo12:F3^4", "talos38:F6^2", "talos38:F6^2H6^2", "talos50:F6^2H6^2",
    "humanoid_hands:F6^2", "humanoid_hands:F6^2T3^10", *(case.name for case in LOOPS),
)  # fmt: skip
ITERATIONS = (1, 3)


def dynamics_counts(case: Case) -> list[dict[str, Any]]:
    """Operations of every method, by the number of iterations."""
    model, held, rows = case.model, case.constraints, []
    one = {name: value[0] for name, value in states(model, 1).items()}
    for method in iterating(case):
        counts = {}
        for iterations in ITERATIONS:
            dynamics = sl.ConstrainedDynamics(model, held, method, mu=1e-5, tolerance=0.0, most_iterations=iterations)
            counts[str(iterations)] = counted(partial(run_again, dynamics, one))
        rows.append({"method": method, "operations": counts})
    return rows


def run_again(dynamics: sl.ConstrainedDynamics, one: dict[str, Any]) -> Any:
    """`solve`, by way of the algorithm's own `call`, which the counter stands in for."""
    algorithm = METHODS[dynamics.method].__self__  # type: ignore[attr-defined]
    return algorithm.call(dynamics.problem, (*one.values(), *dynamics._one))


def osim_counts(case: Case) -> list[dict[str, Any]]:
    """Operations of every method for the damped matrix, or its factors."""
    q = states(case.model, 1)["q"][0]
    dynamics, rows = sl.ConstrainedDynamics(case.model, case.constraints), []
    for method in OSIM_METHODS:
        call = dynamics.osim_factors if method.endswith("_f") else dynamics.osim
        rows.append({"method": method, "operations": counted(partial(call, q, method=method))})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Operation counts from interpreted runs.")
    parser.add_argument("--cases", default=",".join(COUNTED), help="comma-separated: " + ", ".join(CASES))
    parser.add_argument("--quick", action="store_true", help="to see that it works: one small case")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    if options.quick:
        options.cases = "solo12:F3^4"
    result = circumstances("benchmarks.operations") | {"dynamics": [], "osim": []}
    print(f"{'case':22}{'nv':>4}{'nm':>4}  {'method':17}{'one iteration':>14}{'three':>9}{'a further one':>15}")
    for name in chosen(options.cases, CASES):
        case = CASES[name]
        size = {"case": name, "nv": case.model.nv, "nm": sum(constraint.dim for constraint in case.constraints)}
        label = f"{case.title:22}{size['nv']:4}{size['nm']:4}  "
        found = dynamics_counts(case)
        result["dynamics"].append(size | {"methods": found})
        for row in found:
            first, third = (sum(row["operations"][str(k)].values()) for k in ITERATIONS)
            print(f"{label}{row['method']:17}{first:14}{third:9}{(third - first) // 2:15}", flush=True)
        if not case.has_loops:
            matrices = osim_counts(case)
            result["osim"].append(size | {"methods": matrices})
            cells = ", ".join(f"{row['method']} {sum(row['operations'].values())}" for row in matrices)
            print(f"{label}osim: {cells}", flush=True)
    if options.output or options.cases == ",".join(COUNTED):
        write(result, options.output, "operations.json")


if __name__ == "__main__":
    main()
