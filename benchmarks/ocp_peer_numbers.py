"""Crocoddyl's gaits as numbers, and values of their nodes, for where it is not; run in its environment (`ocp_peer.py`):

    FOLDER/bin/python -m benchmarks.ocp_peer_numbers tests/ocp [--problems walk,trot] [--everywhere]

| file | what |
|---|---|
| `crocoddyl_<robot>.json` | the robot's joints, masses and feet |
| `crocoddyl_<problem>.json` | terms and nodes (`ocp_problems.py` says what they mean), first guess, optimum, log |
| `crocoddyl_<problem>_values.json` | nodes at random states: costs, forces, next states, derivatives times a vector |
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.ocp_peer import (
    GAITS,
    ROBOTS,
    STOP,
    first_guess,
    numbers,
    robot_of,
    shooting_problem,
    solved,
    standing,
)

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


# --- problems as numbers ---
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
    parser.add_argument("folder", type=Path)
    parser.add_argument("--problems", default=",".join(GAITS))
    parser.add_argument("--everywhere", action="store_true", help="values of all nodes, with residuals")
    given = parser.parse_args()
    for name in given.problems.split(","):
        dump(name, given.folder, given.everywhere)


if __name__ == "__main__":
    main()
