"""Bending and lifting, optimised with exact derivatives and with differences: DR section 4.3 and Fig. 3.

    python -m benchmarks.lifting [--quick] [--output FILE]

The nonlinear programme of `examples/lifting.py` for three weights, solved by IPOPT from the same start to three tolerances.
Only the mode of the dynamics' derivatives differs between runs. IPOPT's own tolerance is 1e-8; the others are there to show
from where on the error of differences counts. A run that did not get there says so.

What is written: of every run its iterations, IPOPT's verdict, cost, time, and the optimality error by exact derivatives; of
those to the tightest tolerance the distance of all iterates to the last one (self-convergence), and the motion.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import circumstances, write
from examples.interior_point import Optimum, minimise
from examples.lifting import Lifting, Q
from saltus.arrays import Array

LOADS = 5.0, 10.0, 15.0  # kg
MODES = "analytical", "ad", "fd"
TOLERANCES = 1e-6, 1e-8, 1e-10
INTERVALS, MOST = 16, 200
SOLVED = "Solve_Succeeded"


def optimality_error(programme: Lifting, found: Optimum) -> float:
    """The largest entry of the gradient of the Lagrangian, unscaled."""
    slope = programme.gradient(found.x) + found.multipliers @ programme.jacobian(found.x) + found.bound_multipliers
    return float(np.abs(slope).max())


def self_convergence(iterates: Array) -> list[float]:
    """Distance of each iterate to the last one, in the unknowns' units."""
    distances: list[float] = np.linalg.norm(iterates - iterates[-1], axis=-1).tolist()
    return distances


def run(load: float, mode: str, tolerance: float, intervals: int, most: int) -> dict[str, Any]:
    programme, exact = Lifting(load, mode, intervals), Lifting(load, "analytical", intervals)
    found = minimise(programme, programme.guess(), tolerance, most)
    row = {
        "load": load, "mode": mode, "tolerance": tolerance, "iterations": found.iterations, "status": found.status,
        "solved": found.status == SOLVED, "error": optimality_error(exact, found), "cost": programme.cost(found.x),
        "durations": found.x[-2:].tolist(), "seconds": found.seconds,
    }  # fmt: skip
    if tolerance == TOLERANCES[-1]:
        row["distances"] = self_convergence(found.iterates)
        if mode == MODES[0]:
            row["motion"] = [z[:, Q].round(6).tolist() for _, z, _ in programme.parts(found.x)]
    return row


def plain(status: str) -> str:
    """IPOPT's verdict in words."""
    return status.replace("_", " ").lower()


def warm_up() -> None:
    """Compiles what is not in the cache."""
    for mode in MODES:
        programme = Lifting(LOADS[0], mode, intervals=2)
        minimise(programme, programme.guess(), most_iterations=1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Lifting a weight: iterations with exact derivatives and with differences."
    )
    parser.add_argument("--quick", action="store_true", help="to see that it works: few intervals and iterations")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    intervals, most = (4, 40) if options.quick else (INTERVALS, MOST)
    warm_up()
    size = len(Lifting(LOADS[0], intervals=intervals).lower)
    result = circumstances("benchmarks.lifting", "casadi", "scipy")
    result |= {"intervals": intervals, "unknowns": size, "most_iterations": most, "rows": []}
    print(f"{intervals} intervals a phase, {size} unknowns")
    print(f"{'load':>8}{'tolerance':>11}  {'mode':12}{'iterations':>10}{'error':>10}{'cost':>12}{'time':>9}")
    for load in LOADS:
        for tolerance in TOLERANCES:
            for mode in MODES:
                row = run(load, mode, tolerance, intervals, most)
                result["rows"].append(row)
                verdict = "" if row["solved"] else f"  not reached: {plain(row['status'])}"
                told = f"{load:5.0f} kg{tolerance:11.0e}  {mode:12}{row['iterations']:10}{row['error']:10.0e}"
                print(f"{told}{row['cost']:12.6f}{row['seconds']:7.1f} s{verdict}", flush=True)
    if options.output or not options.quick:
        write(result, options.output, "lifting.json")


if __name__ == "__main__":
    main()
