"""Crocoddyl's gaits, run by Crocoddyl: the peer and the oracle of optimal control.

Crocoddyl does not live beside the Pinocchio of our tests, so this is a script in an environment of its own, that reads
nothing of saltus and writes JSON:

    python benchmarks/ocp_peer.py --make FOLDER              # the environment, once
    FOLDER/bin/python benchmarks/ocp_peer.py --output FILE   # solve and time: costs, iterations, times, log, trajectories
    FOLDER/bin/python benchmarks/ocp_peer.py --dump FOLDER   # the problems as numbers, and values at a few states

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
RESIDUALS = {
    "ResidualModelState": "state",
    "ResidualModelControl": "control",
    "ResidualModelCoMPosition": "com_position",
    "ResidualModelFrameTranslation": "frame_translation",
    "ResidualModelFramePlacement": "frame_placement",
    "ResidualModelContactFrictionCone": "friction_cone",
    "ResidualModelContactWrenchCone": "wrench_cone",
}
TRACKING = ("com_position", "frame_translation", "frame_placement")
"""Residuals whose reference changes from node to node; the others have theirs once."""
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
    numbers = deepcopy(GAITS[name])  # the jump writes into its length
    make = numbers.pop("make")
    return getattr(gait(model, *ROBOTS[robot_of(name)]["feet"]), make)(x0, **numbers)


def first_guess(problem: Any) -> tuple[list[Any], list[Any]]:
    return [problem.x0] * (problem.T + 1), list(problem.quasiStatic([problem.x0] * problem.T))


def solver_of(name: str, problem: Any) -> Any:
    import crocoddyl

    solver = crocoddyl.SolverFDDP(problem)
    solver.th_stop = STOP.get(name, solver.th_stop)
    return solver


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


# --- problems as numbers ---
def numbers(value: Any) -> Any:
    """Arrays and lists of them as lists; no bound is null."""
    if isinstance(value, (int, float)):
        return value if abs(value) < LARGE else None
    return [numbers(entry) for entry in (value.tolist() if hasattr(value, "tolist") else value)]


def placement(X: Any) -> list[float]:
    """Translation, and rotation by rows."""
    result: list[float] = X.translation.tolist() + X.rotation.ravel().tolist()
    return result


def robot_numbers(name: str) -> dict[str, Any]:
    """A tree of a free flyer and revolute joints about x, y or z."""
    model, x0 = standing(name)
    joints = []
    for k in range(1, model.njoints):
        joint, body = model.joints[k], model.inertias[k]
        at, v = model.jointPlacements[k], slice(joint.idx_v, joint.idx_v + joint.nv)
        joints.append(
            {
                "name": model.names[k],
                "kind": joint.shortname().removeprefix("JointModel"),
                "parent": model.parents[k],
                "placement": placement(at),
                "mass": body.mass,
                "com": body.lever.tolist(),
                "inertia": body.inertia.ravel().tolist(),
                "armature": model.armature[v].tolist(),
                "lower": model.lowerPositionLimit[joint.idx_q : joint.idx_q + joint.nq].tolist(),
                "upper": model.upperPositionLimit[joint.idx_q : joint.idx_q + joint.nq].tolist(),
                "velocity_limit": numbers(model.velocityLimit[v]),
                "effort_limit": numbers(model.effortLimit[v]),
            }
        )
    frames = []
    for foot in ROBOTS[robot_of(name)]["feet"]:
        frame = model.frames[model.getFrameId(foot)]
        frames.append({"name": foot, "joint": frame.parentJoint, "placement": placement(frame.placement)})
    gravity = model.gravity.linear.tolist()
    return {"robot": robot_of(name), "gravity": gravity, "standing": x0[: model.nq].tolist(), "joints": joints,
            "frames": frames}  # fmt: skip


def is_impact(node: Any) -> bool:
    return hasattr(node, "impulses")


def costs_of(node: Any) -> dict[str, Any]:
    """Cost items by name, models or data."""
    owner = node if hasattr(node, "costs") else node.differential
    result: dict[str, Any] = owner.costs.costs.todict()
    return result


def contacts_of(node: Any) -> dict[str, Any]:
    """Contacts or impulses of a node's model, by the frame's name."""
    items = node.impulses.impulses if is_impact(node) else node.differential.contacts.contacts
    return {name.rsplit("_", 1)[0]: item for name, item in items.todict().items()}


def term_numbers(name: str, cost: Any, frames: Any) -> tuple[dict[str, Any], list[float]]:
    """What a term is, and its reference."""
    residual, activation = cost.residual, cost.activation
    kind, shape = RESIDUALS[type(residual).__name__], type(activation).__name__.removeprefix("ActivationModel")
    term: dict[str, Any] = {"name": name, "residual": kind}
    if hasattr(residual, "id"):
        term["frame"] = frames[residual.id].name
    reference = residual.reference
    if kind.endswith("cone"):
        term["matrix"], reference = numbers(reference.A), []
    elif kind == "frame_placement":
        reference = placement(reference)
    else:
        reference = numbers(reference)
    if shape == "Quad":
        term["activation"] = "quadratic"
    elif shape == "WeightedQuad":
        term["activation"], term["weights"] = "weighted", numbers(activation.weights)
    elif shape == "QuadraticBarrier":
        term["activation"] = "barrier"
        term["lower"], term["upper"] = numbers(activation.bounds.lb), numbers(activation.bounds.ub)
    else:
        raise ValueError(f"cost {name!r}: an activation of kind {shape}")
    if kind not in TRACKING:
        term["reference"], reference = reference, []
    return term, reference


def problem_numbers(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """The problem, and what solving it gave."""
    problem = shooting_problem(name)
    terms: list[dict[str, Any]] = []
    nodes = []
    for node in [*problem.runningModels, problem.terminalModel]:
        frames, listed = node.state.pinocchio.frames, []
        for key, item in costs_of(node).items():
            term, reference = term_numbers(key, item.cost, frames)
            if term not in terms:
                terms.append(term)
            listed.append([terms.index(term), item.weight, reference])
        nodes.append([0.0 if is_impact(node) else node.dt, int(is_impact(node)), list(contacts_of(node)), listed])
    first = next(node for node in problem.runningModels if not is_impact(node) and contacts_of(node))
    gains = {tuple(item.contact.gains.tolist()) for item in contacts_of(first).values()}
    (pair,) = gains
    us0 = found["us0"]
    rows = [list(row) for row in dict.fromkeys(map(tuple, us0))]
    return {
        "problem": name,
        "robot": robot_of(name),
        "by": "Crocoddyl 3.2.0",
        "x0": numbers(problem.x0),
        "controls": max(node.nu for node in problem.runningModels),
        "contact_size": 6 if robot_of(name) == "talos_legs" else 3,
        "contact_gains": list(pair),
        "stop": STOP.get(name, 1e-9),
        "terms": terms,
        "nodes": nodes,
        "us0": {"rows": rows, "of_node": [rows.index(row) for row in us0]},
        "found": {key: found[key] for key in ("converged", "cost", "iterations", "log")} | {"last": found["xs"][-1]},
    }


# --- values of nodes ---
def sample(problem: Any, seed: int) -> tuple[list[Any], list[Any], list[Any]]:
    """Random states, as steps from x0, and controls around those that stand still; numbers of few digits.

    A joint is beyond its limit, one too fast upwards and one downwards, so that barriers are awake.
    """
    import numpy as np

    rng, state = np.random.default_rng(seed), problem.runningModels[0].state
    spread = np.r_[np.full(state.nv, 0.2), np.full(state.nv, 0.5)]
    beyond = np.zeros(state.ndx)
    beyond[[8, state.nv + 7, -1]] = 12.0, 20.0, -20.0
    steps = [(beyond + spread * rng.normal(size=state.ndx)).round(4) for _ in range(problem.T + 1)]
    us = [(u + 10.0 * rng.normal(size=u.size)).round(3) for u in first_guess(problem)[1]]
    return steps, [state.integrate(problem.x0, step) for step in steps], us


def node_values(problem: Any, t: int, along: Callable[[int], Any]) -> dict[str, Any]:
    """What `calc` and `calcDiff` left of a node: derivatives as products with a vector, `along`."""
    last = t == problem.T
    model = problem.terminalModel if last else problem.runningModels[t]
    data = problem.terminalData if last else problem.runningDatas[t]
    d, e = along(model.state.ndx), along(model.nu)
    terms = {
        key: {"residual": numbers(item.residual.r), "cost": item.activation.a_value}
        for key, item in costs_of(data).items()
    }
    values: dict[str, Any] = {"node": t, "cost": data.cost, "terms": terms, "Lx": data.Lx, "Lxx_d": data.Lxx @ d}
    if not last:
        multibody = data.multibody if is_impact(model) else data.differential.multibody
        items = multibody.impulses.impulses if is_impact(model) else multibody.contacts.contacts
        size = 6 if robot_has_soles(model) else 3
        values |= {"next": data.xnext, "Fx_d": data.Fx @ d}
        values["forces"] = {
            key.rsplit("_", 1)[0]: item.f.vector[:size].tolist() for key, item in items.todict().items()
        }
        if model.nu:
            values |= {"Lu": data.Lu, "Luu_e": data.Luu @ e, "Lxu_e": data.Lxu @ e, "Fu_e": data.Fu @ e}
    return {key: value.tolist() if hasattr(value, "tolist") else value for key, value in values.items()}


def robot_has_soles(model: Any) -> bool:
    return bool(model.state.pinocchio.existFrame("right_sole_link"))


def some_nodes(problem: Any) -> list[int]:
    """The first node of each sort: other contacts, other terms, an impact; and the last."""
    sorts: dict[Any, int] = {}
    for t, node in enumerate(problem.runningModels):
        sorts.setdefault((is_impact(node), len(contacts_of(node)), len(costs_of(node))), t)
    return [*sorts.values(), problem.T]


def sampled(name: str, seed: int, everywhere: bool) -> dict[str, Any]:
    """Values at random states and controls, of some nodes or of all."""
    import numpy as np

    problem = shooting_problem(name)
    steps, xs, us = sample(problem, seed)
    problem.calc(xs, us)
    problem.calcDiff(xs, us)
    nodes = list(range(problem.T + 1)) if everywhere else some_nodes(problem)
    rows = []
    for t in nodes:
        row = {"step": steps[t].tolist(), "u": us[t].tolist() if t < problem.T else []}
        row |= node_values(problem, t, lambda size: np.linspace(-1.0, 1.0, size))
        if not everywhere:
            row["terms"] = {key: term["cost"] for key, term in row["terms"].items()}
        rows.append(row)
    return {"problem": name, "seed": seed, "nodes": rows}


def compact(value: Any, digits: int | None, depth: int = 2) -> str:
    """JSON, one row a line: containers are broken into lines down to this depth. Digits: of numbers, all if None."""
    if isinstance(value, dict) and depth > 0:
        rows = [f"{json.dumps(key)}: {compact(entry, digits, depth - 1)}" for key, entry in value.items()]
        return "{\n" + ",\n".join(rows) + "\n}"
    if isinstance(value, list) and depth > 0 and value and isinstance(value[0], (list, dict)):
        return "[\n" + ",\n".join(compact(entry, digits, 0) for entry in value) + "\n]"
    return json.dumps(shortened(value, digits), separators=(",", ":"))


def shortened(value: Any, digits: int | None) -> Any:
    if isinstance(value, dict):
        return {key: shortened(entry, digits) for key, entry in value.items()}
    if isinstance(value, list):
        return [shortened(entry, digits) for entry in value]
    if isinstance(value, float):
        short = value if digits is None else float(f"{value:.{digits}g}")
        return int(short) if short.is_integer() and abs(short) < 1e6 else short
    return value


def dump(name: str, folder: Path, everywhere: bool) -> None:
    """The problem, its robot, and values at a few states: tests read them where Crocoddyl is not."""
    folder.mkdir(parents=True, exist_ok=True)
    digits = None if everywhere else 14
    (folder / f"crocoddyl_{robot_of(name)}.json").write_text(compact(robot_numbers(name), None) + "\n")
    (folder / f"crocoddyl_{name}.json").write_text(compact(problem_numbers(name, solved(name)), None, 1) + "\n")
    (folder / f"crocoddyl_{name}_values.json").write_text(compact(sampled(name, 0, everywhere), digits) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--make", type=Path, metavar="FOLDER", help="make the environment that has Crocoddyl")
    parser.add_argument("--problems", default=",".join(GAITS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path, default=None, metavar="FILE", help="solve and time, write here")
    parser.add_argument("--dump", type=Path, default=None, metavar="FOLDER", help="write problems as numbers")
    parser.add_argument("--everywhere", action="store_true", help="with --dump: values of all nodes, with residuals")
    given = parser.parse_args()
    if given.make:
        print(environment(given.make))
        return
    result: dict[str, Any] = {}
    for name in given.problems.split(","):
        if given.dump:
            dump(name, given.dump, given.everywhere)
            continue
        found = solved(name)
        result[name] = {"robot": robot_of(name), **found, "times": timed(name, found, given.repeats)}
        times = result[name]["times"]
        print(
            f"{name:<11} {found['nodes']:>4} nodes  cost {found['cost']:.9g}  {found['iterations']} iterations  "
            f"{1e3 * times['solve']:.1f} ms, {1e3 * times['iteration']:.2f} ms an iteration",
            file=sys.stderr, flush=True,
        )  # fmt: skip
    if not given.dump:
        text = json.dumps(result) + "\n"
        _ = given.output.write_text(text) if given.output else sys.stdout.write(text)


if __name__ == "__main__":
    main()
