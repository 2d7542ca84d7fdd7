"""What is left of the constraints after each iteration: CA Fig. 4, PS Fig. 2, and all cases after three.

    python -m benchmarks.convergence [--quick] [--output FILE]

| part | what | states |
|---|---|---|
| redundant | Talos, `F6^2 H6 E3`, mu = 1e-6, iterations 1 to 10, every method | 1000, at allowed velocities |
| rate | Talos, `F6^2 H6^2`, mu from 1e-1 to 1e-9, iterations 1 to 10, every method | 100 |
| default | every case, each method's own mu, three iterations | 1000, less those that are nearly singular |

What is left is the largest entry of |J a - goal|, from J and goal and not from what a method says of itself. A state is
nearly singular if an eigenvalue of its Delassus matrix is below 1e-3 of a typical entry, 1e4 times the default mu; one that
is zero in all states does not count.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl
from benchmarks.contacts import CASES, Case, Problem, iterating
from benchmarks.measure import circumstances, write
from saltus.arrays import Array

REDUNDANT, REDUNDANT_MU = Case("talos38", "F6^2 H6 E3"), 1e-6
RATE, RATES = Case("talos38", "F6^2 H6^2"), (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
ITERATIONS = range(1, 11)
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
WANTED = 1e-9


def left(problem: Problem, method: str, iterations: int, mu: float | None = None) -> Array:
    """(B,) of the constraints, after so many iterations."""
    dynamics = sl.ConstrainedDynamics(
        problem.model, problem.held, method, mu, tolerance=0.0, most_iterations=iterations
    )
    return problem.left(dynamics.solve(**problem.states).a)


def redundant(count: int) -> list[dict[str, Any]]:
    problem, rows = Problem(REDUNDANT, count), []
    for method in iterating(REDUNDANT):
        every = [left(problem, method, k, REDUNDANT_MU) for k in ITERATIONS]
        rows.append({"method": method, "quantiles": [np.quantile(each, QUANTILES).tolist() for each in every]})
    return rows


def rate(count: int) -> list[dict[str, Any]]:
    problem, rows = Problem(RATE, count), []
    for method in iterating(RATE):
        for mu in RATES:
            every = [left(problem, method, k, mu) for k in ITERATIONS]
            rows.append({"method": method, "mu": mu, "median": [float(np.median(each)) for each in every]})
    return rows


def default(count: int) -> list[dict[str, Any]]:
    rows = []
    for case in CASES.values():
        problem = Problem(case, count)
        for method in iterating(case):
            after = left(problem, method, 3)[problem.regular]
            rows.append(
                {
                    "case": case.name,
                    "method": method,
                    "mu": sl.ConstrainedDynamics(case.model, case.constraints, method).mu,
                    "states": len(after),
                    "least_eigenvalue": float(problem.least[problem.regular].min()),
                    "median": float(np.median(after)),
                    "largest": float(after.max()),
                    "missed": int((after > WANTED).sum()),
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="What is left of the constraints after each iteration.")
    parser.add_argument("--quick", action="store_true", help="to see that it works: few states")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    many, few = (50, 10) if options.quick else (1000, 100)
    result = circumstances("benchmarks.convergence") | {"quantiles": QUANTILES, "wanted": WANTED}

    result["redundant"] = {"case": REDUNDANT.name, "mu": REDUNDANT_MU, "states": many, "rows": redundant(many)}
    print(f"{REDUNDANT.title}, mu = {REDUNDANT_MU:g}, {many} states: median (largest) of what is left")
    print(f"{'iterations':17}" + "".join(f"{k:>18}" for k in ITERATIONS))
    for row in result["redundant"]["rows"]:
        print(f"{row['method']:17}" + "".join(f"{q[3]:9.0e} ({q[-1]:.0e})" for q in row["quantiles"]))

    result["rate"] = {"case": RATE.name, "states": few, "rows": rate(few)}
    print(f"\n{RATE.title}, {few} states: median of what is left")
    print(f"{'method':17}{'mu':>8}" + "".join(f"{k:>8}" for k in ITERATIONS))
    for row in result["rate"]["rows"]:
        print(f"{row['method']:17}{row['mu']:8.0e}" + "".join(f"{each:8.0e}" for each in row["median"]))

    result["default"] = default(many)
    print(f"\nafter three iterations, each method's mu: states that are left with more than {WANTED:g}")
    print(f"{'case':22}{'method':17}{'mu':>8}{'states':>8}{'least':>9}{'median':>9}{'largest':>9}{'missed':>8}")
    for row in result["default"]:
        print(
            f"{CASES[row['case']].title:22}{row['method']:17}{row['mu']:8.0e}{row['states']:8}{row['least_eigenvalue']:9.0e}"
            f"{row['median']:9.0e}{row['largest']:9.0e}{row['missed']:8}"
        )
    if options.output or not options.quick:
        write(result, options.output, "convergence.json")


if __name__ == "__main__":
    main()
