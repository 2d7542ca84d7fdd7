"""Optimal control: FDDP on Crocoddyl's own gaits, from the standing pose, by saltus and by Crocoddyl.

    python -m benchmarks.ocp [--problems walk,trot] [--peer FOLDER | --no-peer] [--quick]

Crocoddyl runs in an environment of its own, in FOLDER, which is made if it is not there (`ocp_peer.py`); problems, first
guesses and thresholds are the same numbers (`ocp_problems.py`). One thread; both solve a problem right after each other.
Rows are of one problem and one library:

| column | what |
|---|---|
| `cost`, `iterations` | of the solution; an iteration is a direction and a line search |
| `solve`, `iteration` | time [s] of all, and of that by the number of iterations |
| `calc`, `calc_diff`, `backward`, `forward` | time [s] of each part at the solution; `forward`: one step length |
| `tries` | step lengths tried an iteration |
| `shares` | of an iteration's time; what is left is line search, log and gaps |

Derivatives of both need what `calc` or a rollout left. Where saltus tries all step lengths at once, `tries` is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl
from benchmarks import ocp_peer
from benchmarks.measure import Timed, best_times, circumstances, write
from benchmarks.ocp_problems import NAMES, GaitProblem, load_problem
from benchmarks.ocp_terms import shooting_problem
from benchmarks.robots import chosen
from saltus.ocp.fddp import FDDP

PEER = Path(os.environ.get("SALTUS_OCP_PEER", Path(__file__).parents[1] / ".cache" / "crocoddyl"))
PARTS = ("calc", "calc_diff", "backward", "forward")
ASKED = {"iteration": 5.0, "calc_diff": 8.0, "backward": 2.0}
"""How many times as fast as the peer."""
SAME_COST, SAME_ITERATIONS = 1e-6, 1


def crocoddyl(name: str, python: Path, repeats: int) -> dict[str, Any]:
    """A row, from a process of the peer's."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        ocp_peer.command(python, "ocp_peer", "--problems", name, "--repeats", repeats, "--output", file)
        found = json.loads(file.read_text())[name]
    times = found["times"]
    return {
        "problem": name,
        "robot": found["robot"],
        "by": "crocoddyl",
        "nodes": found["nodes"],
        "status": "solved" if found["converged"] else "not converged",
        "cost": found["cost"],
        "iterations": found["iterations"],
        **{key: times[key] for key in ("solve", "iteration", "tries", "shares")},
        **times["parts"],
        "log": found["log"],
    }


def saltus(gait: GaitProblem, repeats: int, seconds: float) -> dict[str, Any]:
    """A row of ours."""
    problem = shooting_problem(gait)
    solver, around = FDDP(problem, th_stop=gait.stop), FDDP(problem, th_stop=gait.stop)
    result = around.solve(gait.xs0, gait.us0, max_iterations=ocp_peer.MOST_ITERATIONS)
    around.set_candidate(result.xs, result.us)
    around.compute_direction()
    values = problem.calc(result.xs, result.us).values
    best = best_times(
        {
            "solve": Timed(lambda: solver.solve(gait.xs0, gait.us0, max_iterations=ocp_peer.MOST_ITERATIONS)),
            "calc": Timed(lambda: problem.calc(result.xs, result.us)),
            "calc_diff": Timed(lambda: problem.calc_diff(result.xs, result.us, around.expansion, values)),
            "backward": Timed(lambda: around.compute_direction(False)),
            "forward": Timed(lambda: around.try_step(1.0)),
        },
        repeats, seconds,
    )  # fmt: skip
    iteration = best["solve"] / result.iterations
    return {
        "problem": gait.name,
        "robot": gait.robot,
        "by": "saltus",
        "nodes": gait.T,
        "status": str(result.status),
        "cost": result.cost,
        "iterations": result.iterations,
        "iteration": iteration,
        "tries": 1.0,
        "shares": {part: best[part] / iteration for part in PARTS[1:]},
        **best,
        "log": {key: np.asarray(values).tolist() for key, values in result.log._asdict().items()},
    }


def peer_python(folder: Path) -> Path | None:
    """Crocoddyl's Python; none where it cannot be installed."""
    try:
        return ocp_peer.environment(folder)
    except subprocess.CalledProcessError as error:
        print(f"no Crocoddyl in {folder}, and it cannot be installed there: {error}")
        return None


def line(row: dict[str, Any]) -> str:
    times = "".join(f"{1e3 * row[key]:>10.3f}" for key in ("solve", "iteration", *PARTS))
    return f"{row['problem']:<11}{row['by']:<11}{row['nodes']:>5}{row['cost']:>16.9g}{row['iterations']:>5}{times}"


def ratios(ours: dict[str, Any], peer: dict[str, Any]) -> dict[str, Any]:
    """How many times as fast we are, and whether it is the same solution."""
    apart = abs(ours["cost"] - peer["cost"]) / abs(peer["cost"])
    same = apart <= SAME_COST and abs(ours["iterations"] - peer["iterations"]) <= SAME_ITERATIONS
    return {
        "problem": ours["problem"],
        "cost_apart": apart,
        "iterations_apart": ours["iterations"] - peer["iterations"],
        "same": same,
        "times_as_fast": {key: peer[key] / ours[key] for key in ("solve", "iteration", *PARTS)},
    }


def print_ratios(found: dict[str, Any]) -> None:
    fast = found["times_as_fast"]
    cells = "".join(f"{f'{fast[key]:.1f} x':>10}" for key in ("solve", "iteration", *PARTS))
    print(f"{'':<11}{'ratio':<11}{'':>5}{found['cost_apart']:>16.1e}{found['iterations_apart']:>+5}{cells}", flush=True)
    missed = [f"{key} {fast[key]:.1f} x, asked {asked:.0f} x" for key, asked in ASKED.items() if fast[key] < asked]
    missed += [] if found["same"] else ["another solution or another way to it"]
    if missed:
        print(f"{'':<11}missed: {'; '.join(missed)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--problems", default=",".join(NAMES))
    parser.add_argument("--peer", type=Path, default=PEER, metavar="FOLDER", help="the environment of Crocoddyl")
    parser.add_argument("--no-peer", action="store_true", help="saltus alone")
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--output", type=Path, default=None)
    given = parser.parse_args()
    repeats, seconds = (3, 0.05) if given.quick else (10, 0.2)
    python = None if given.no_peer else peer_python(given.peer)
    sl.set_threads(1)
    result: dict[str, Any] = circumstances("benchmarks.ocp") | {"peer": ocp_peer.PACKAGES[0], "unit": "s"}
    result |= {"rows": [], "ratios": []}
    times = "".join(f"{key:>10}" for key in ("solve", "iteration", *PARTS))
    print(f"{'problem':<11}{'by':<11}{'nodes':>5}{'cost':>16}{'it.':>5}{times}   [ms]")
    for name in chosen(given.problems, NAMES):
        rows = [saltus(load_problem(name), repeats, seconds)]
        rows += [] if python is None else [crocoddyl(name, python, repeats)]
        for row in rows:
            print(line(row), flush=True)
        if len(rows) == 2:
            result["ratios"].append(ratios(*rows))
            print_ratios(result["ratios"][-1])
        result["rows"] += rows
    write(result, given.output, f"ocp-{result['machine']['name']}.json")


if __name__ == "__main__":
    main()
