"""Crocoddyl's gaits, run by Crocoddyl: the peer and the oracle of optimal control.

Crocoddyl does not live beside the Pinocchio of our tests, so this runs in an environment of its own, reads nothing
of saltus and writes JSON:

    python -m benchmarks.ocp_peer --make FOLDER              # the environment, once
    FOLDER/bin/python -m benchmarks.ocp_peer --output FILE   # solve and time: costs, iterations, times, log, trajectories

`SimpleQuadrupedalGaitProblem` and `SimpleBipedGaitProblem` are those of its package, with the numbers of its examples
`quadrupedal_gaits_fwddyn.py` and `bipedal_gaits_fwddyn.py`; but each gait starts from the standing pose, not where the last
one ended. What the files of `--dump` hold is said in `ocp_problems.py`, which reads them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import venv
from collections.abc import Callable
from copy import deepcopy
from itertools import repeat
from pathlib import Path
from time import perf_counter
from typing import Any

PACKAGES = ("crocoddyl==3.2.0", "pin==3.9.0", "example-robot-data<5", "cmeel-urdfdom<5", "cmeel-tinyxml2<11")

STEPS = {"timeStep": 1e-2, "stepKnots": 25}
GAITS: dict[str, dict[str, Any]] = {
    "walk": {"make": "createWalkingProblem", "stepLength": 0.25, "stepHeight": 0.15, **STEPS, "supportKnots": 2},
    "trot": {"make": "createTrottingProblem", "stepLength": 0.15, "stepHeight": 0.1, **STEPS, "supportKnots": 2},
    "pace": {"make": "createPacingProblem", "stepLength": 0.15, "stepHeight": 0.1, **STEPS, "supportKnots": 5},
    "bound": {"make": "createBoundingProblem", "stepLength": 0.15, "stepHeight": 0.1, **STEPS, "supportKnots": 5},
    "jump": {
        "make": "createJumpingProblem", "jumpHeight": 0.15, "jumpLength": [0.0, 0.3, 0.0], "timeStep": 1e-2,
        "groundKnots": 10, "flyingKnots": 20,
    },
    "biped_walk": {
        "make": "createWalkingProblem", "stepLength": 0.6, "stepHeight": 0.1, "timeStep": 0.03, "stepKnots": 15,
        "supportKnots": 4,
    },
}  # fmt: skip
STOP = {"biped_walk": 1e-7}
"""The solver's threshold, where the example has its own."""
MOST_ITERATIONS = 100

ROBOTS = {
    "anymal": {"standing": "standing", "feet": ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT")},
    "talos_legs": {"standing": "half_sitting", "feet": ("right_sole_link", "left_sole_link")},
}
LARGE = 1e300


# --- the environment ---
def environment(folder: Path) -> Path:
    """The Python of Crocoddyl's environment, made if it is not there: a minute and 900 MB."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    known = subprocess.run([python, "-c", "import crocoddyl, example_robot_data"], capture_output=True, check=False)
    if known.returncode:
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python


def command(python: Path, module: str, *arguments: Any) -> None:
    """Run one of the two modules in the environment."""
    line = [python, "-m", f"benchmarks.{module}", *map(str, arguments)]
    done = subprocess.run(line, check=False, cwd=Path(__file__).parents[1], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{module} in {python.parents[1]}: {done.stderr[-2000:]}")


# --- the problems ---
def robot_of(name: str) -> str:
    return "talos_legs" if name.startswith("biped") else "anymal"


def standing(name: str) -> tuple[Any, Any]:
    """The robot's model and the state it starts from."""
    import example_robot_data
    import numpy as np

    model = example_robot_data.load(robot_of(name)).model
    pose = model.referenceConfigurations[str(ROBOTS[robot_of(name)]["standing"])]
    return model, np.concatenate([pose, np.zeros(model.nv)])


def shooting_problem(name: str) -> Any:
    from crocoddyl.utils.biped import SimpleBipedGaitProblem
    from crocoddyl.utils.quadruped import SimpleQuadrupedalGaitProblem

    model, x0 = standing(name)
    gait = SimpleBipedGaitProblem if robot_of(name) == "talos_legs" else SimpleQuadrupedalGaitProblem
    sizes = deepcopy(GAITS[name])  # the jump writes into its length
    make = sizes.pop("make")
    return getattr(gait(model, *ROBOTS[robot_of(name)]["feet"]), make)(x0, **sizes)


def first_guess(problem: Any) -> tuple[list[Any], list[Any]]:
    return [problem.x0] * (problem.T + 1), list(problem.quasiStatic([problem.x0] * problem.T))


def solver_of(name: str, problem: Any) -> Any:
    import crocoddyl

    solver = crocoddyl.SolverFDDP(problem)
    solver.th_stop = STOP.get(name, solver.th_stop)
    return solver


def numbers(value: Any) -> Any:
    """Arrays and lists of them as lists; no bound is null."""
    if isinstance(value, (int, float)):
        return value if abs(value) < LARGE else None
    return [numbers(entry) for entry in (value.tolist() if hasattr(value, "tolist") else value)]


# --- solving and timing ---
def solved(name: str) -> dict[str, Any]:
    """The solution and how it came about; `steps` of an iteration were tried from 1 down by halves."""
    import crocoddyl

    problem = shooting_problem(name)
    xs, us = first_guess(problem)
    solver, log = solver_of(name, problem), crocoddyl.CallbackLogger()
    solver.setCallbacks([log])
    converged = solver.solve(xs, us, MOST_ITERATIONS, False)
    columns = {
        "cost": log.costs, "stop": log.stops, "grad": log.grads, "preg": log.pregs, "dreg": log.dregs,
        "step": log.steps, "gap": log.ffeass,
    }  # fmt: skip
    return {
        "converged": converged,
        "cost": solver.cost,
        "stop": solver.stop,
        "iterations": len(log.costs),
        "nodes": problem.T,
        "log": {key: list(map(float, values)) for key, values in columns.items()},
        "us0": numbers(us),
        "xs": numbers(solver.xs),
        "us": numbers(solver.us),
    }


def best_times(calls: dict[str, Callable[[], Any]], repeats: int, seconds: float) -> dict[str, float]:
    """The least time [s] of each call; they take turns."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(repeats):
        for name, call in calls.items():
            call()
            loops = max(1, round(seconds / max(best[name], 1e-3))) if best[name] < seconds else 1
            start = perf_counter()
            for _ in repeat(None, loops):
                call()
            best[name] = min(best[name], (perf_counter() - start) / loops)
    return best


def timed(name: str, found: dict[str, Any], repeats: int, seconds: float = 0.05) -> dict[str, Any]:
    """Times [s] of a whole solve, of an iteration of it, and of its parts at the solution; and the shares of the parts."""
    problem = shooting_problem(name)
    solver, around = solver_of(name, problem), solver_of(name, shooting_problem(name))
    xs0, us0 = first_guess(problem)
    around.solve(xs0, us0, MOST_ITERATIONS, False)
    xs, us = around.xs, around.us
    around.computeDirection(True)
    calls = {
        "solve": lambda: solver.solve(xs0, us0, MOST_ITERATIONS, False),
        "calc": lambda: around.problem.calc(xs, us),
        "calc_diff": lambda: around.problem.calcDiff(xs, us),
        "backward": around.backwardPass,
        "forward": lambda: around.tryStep(1.0),
    }
    best = best_times(calls, repeats, seconds)
    solve = best.pop("solve")
    iteration = solve / found["iterations"]
    tries = sum(tried(step) for step in found["log"]["step"]) / found["iterations"]
    spent = {"calc_diff": best["calc_diff"], "backward": best["backward"], "forward": tries * best["forward"]}
    return {
        "solve": solve,
        "iteration": iteration,
        "parts": best,
        "tries": tries,
        "shares": {key: value / iteration for key, value in spent.items()},
    }


def tried(step: float) -> int:
    """How many step lengths the line search took to come to this one."""
    count = 1
    while step < 1.0:
        step, count = 2.0 * step, count + 1
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--make", type=Path, metavar="FOLDER", help="make the environment that has Crocoddyl")
    parser.add_argument("--problems", default=",".join(GAITS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path, default=None, metavar="FILE", help="solve and time, write here")
    given = parser.parse_args()
    if given.make:
        print(environment(given.make))
        return
    result: dict[str, Any] = {}
    for name in given.problems.split(","):
        found = solved(name)
        result[name] = {"robot": robot_of(name), **found, "times": timed(name, found, given.repeats)}
        times = result[name]["times"]
        print(
            f"{name:<11} {found['nodes']:>4} nodes  cost {found['cost']:.9g}  {found['iterations']} iterations  "
            f"{1e3 * times['solve']:.1f} ms, {1e3 * times['iteration']:.2f} ms an iteration",
            file=sys.stderr, flush=True,
        )  # fmt: skip
    text = json.dumps(result) + "\n"
    _ = given.output.write_text(text) if given.output else sys.stdout.write(text)


if __name__ == "__main__":
    main()
