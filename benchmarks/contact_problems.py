"""Contact problems of stacked cubes, beside the ADMM solver of Pinocchio.

    python -m benchmarks.contact_problems [--cases "one cube"] [--quick] [--output FILE]

Cubes of 1 m with four points below each; friction 0.5; the impulses of one step of 1 ms against gravity. Both are given the
dense Delassus matrix, begin from nothing and end at 1e-9: ours by its natural map, Pinocchio by its own measures, absolute.
Its other settings are as they come, but for the rule that adapts its penalty: all four are tried.

| column | what it is |
|---|---|
| pin | one call of `ADMMConstraintSolver.solve` with its usual rule, and its iterations; a star: not converged |
| best | the same with the fastest rule |
| one | one call of `sl.solve_contacts`, with Newton's steps and new starts |
| x | how many times faster that is than `pin`, and than `best` |
| f64 | a problem of a batch of 256, with more or less gravity, on one thread |
| left | the natural map of what `pin` and ours return, measured by NumPy [m/s] |
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl
from benchmarks.measure import Timed, best_times, circumstances, write
from benchmarks.peer_constraints import VERSION, pin
from benchmarks.robots import chosen
from saltus.arrays import Array

STACKS = {
    "one cube": [1.0],
    "two cubes": [1.0] * 2,
    "ten cubes": [1.0] * 10,
    "1 kg under 1000 kg": [1.0, 1000.0],
    "1 : 10 : ... : 10^4": [1.0, 10.0, 100.0, 1000.0, 10000.0],
}
"""Masses from the ground up [kg]."""

FRICTION, STEP, TOLERANCE, BATCH = 0.5, 1e-3, 1e-9, 256
MOST_ITERATIONS = 2000
RULES = ("OSQP", "SPECTRAL", "LINEAR", "CONSTANT")
"""Of Pinocchio's, the usual one first."""


def stack(masses: list[float]) -> tuple[Array, Array, Array]:
    """G, g and friction of cubes on each other; two tangents and the normal of each point."""
    count = len(masses)
    J, inverse = np.zeros((12 * count, 6 * count)), np.zeros(6 * count)
    for k, mass in enumerate(masses):
        inverse[6 * k : 6 * k + 6] = [1 / mass] * 3 + [6 / mass] * 3
        corners = [(x, y) for x in (-0.5, 0.5) for y in (-0.5, 0.5)]
        for corner, (x, y) in enumerate(corners):
            row = 12 * k + 3 * corner
            for body, z, sign in ((k, -0.5, 1.0), (k - 1, 0.5, -1.0)):
                if body >= 0:
                    turn = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
                    J[row : row + 3, 6 * body : 6 * body + 6] = sign * np.hstack([np.eye(3), turn])
    v = np.tile([0, 0, -9.81 * STEP, 0, 0, 0], count)
    return J @ (inverse[:, None] * J.T), J @ v, np.full(4 * count, FRICTION)


class Peer:
    """Pinocchio's solver for one problem."""

    def __init__(self, G: Array, g: Array, friction: Array, rule: str) -> None:
        model = pin.Model()
        joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "cube")
        data = model.createData()
        self.models, self.datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
        for mu in friction:
            contact = pin.PointContactConstraintModel(model, 0, pin.SE3.Identity(), joint, pin.SE3.Identity())
            contact.setFriction(mu)
            self.models.append(pin.ConstraintModel(contact))
            self.datas.append(self.models[len(self.models) - 1].createData())
        pin.forwardKinematics(model, data, pin.neutral(model))
        self.delassus, self.g, self.size = pin.DelassusOperatorDense(G), g, len(g)
        self.solver, self.settings = pin.ADMMConstraintSolver(self.size), pin.ADMMSolverSettings()
        self.settings.absolute_feasibility_tol = self.settings.absolute_complementarity_tol = TOLERANCE
        self.settings.relative_feasibility_tol = self.settings.relative_complementarity_tol = 0.0
        self.settings.max_iterations = MOST_ITERATIONS
        self.settings.admm_update_rule = getattr(pin.ADMMUpdateRule, rule)
        self.result = pin.ADMMSolverResult()
        self.model, self.data = model, data

    def solve(self) -> None:
        self.result.reset()
        self.solver.reset()
        self.solver.solve(self.delassus, self.g, self.models, self.datas, self.settings, self.result)


def natural_map(G: Array, g: Array, friction: Array, impulses: Array) -> float:
    """|D (x - P(x - u / D))| of the worst contact."""
    x, u = impulses.reshape(-1, 3), (G @ impulses + g).reshape(-1, 3)
    D = np.diag(G).reshape(-1, 3).mean(axis=1, keepdims=True)
    tau = x - u / D
    normal = np.maximum(tau[:, 2:], 0.0)
    length = np.maximum(np.linalg.norm(tau[:, :2], axis=1, keepdims=True), 1e-300)
    share = np.minimum(1.0, friction[:, None] * normal / length)
    return float(np.linalg.norm(D * (x - np.hstack([tau[:, :2] * share, normal])), axis=1).max())


def measure(masses: list[float], repeats: int, seconds: float) -> dict[str, Any]:
    G, g, friction = stack(masses)
    peers = {rule: Peer(G, g, friction, rule) for rule in RULES}
    more = g * np.random.default_rng(0).uniform(0.5, 2.0, (BATCH, 1))
    calls = {rule: Timed(peer.solve) for rule, peer in peers.items()}
    calls["one"] = Timed(lambda: sl.solve_contacts(G, g, friction))
    calls["batch"] = Timed(lambda: sl.solve_contacts(G, more, friction))
    times = best_times(calls, repeats, seconds)
    found = sl.solve_contacts(G, g, friction)
    peer = peers[RULES[0]]
    return {
        "rows": len(g),
        "times": times,
        "iterations": {rule: peer.result.iterations for rule, peer in peers.items()},
        "converged": {rule: bool(peer.result.converged) for rule, peer in peers.items()},
        "steps": int(found.iterations),
        "turns": int(found.turns),
        "status": str(found.status),
        "left": natural_map(G, g, friction, peer.result.retrieveConstraintImpulses()),
        "left_ours": natural_map(G, g, friction, found.impulses),
    }


def line(name: str, row: dict[str, Any]) -> str:
    times, usual = row["times"], RULES[0]
    best = min((rule for rule in RULES if row["converged"][rule]), key=lambda rule: times[rule], default=usual)
    pin_time = f"{times[usual] * 1e6:9.1f} ({row['iterations'][usual]}{'' if row['converged'][usual] else '*'})"
    one = f"{times['one'] * 1e6:8.1f} ({row['steps']}, {row['turns']})"
    return (
        f"{name:22}{row['rows']:5}{pin_time:>18}{times[best] * 1e6:9.1f}{one:>17}{times[usual] / times['one']:7.1f}"
        f"{times[best] / times['one']:7.1f}{times['batch'] * 1e6 / BATCH:9.2f}{row['left']:9.0e}{row['left_ours']:9.0e}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Contact problems of stacked cubes, beside Pinocchio's ADMM.")
    parser.add_argument("--cases", default="", help="comma-separated: " + ", ".join(STACKS))
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--milliseconds", type=float, default=5.0, help="that a call is timed for in each repeat")
    parser.add_argument("--quick", action="store_true", help="to see that it works: the figures mean nothing")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    if options.quick:
        options.repeats, options.milliseconds = 2, 0.2
    sl.set_threads(1)

    result = circumstances("benchmarks.contact_problems")
    result["versions"]["pin"] = VERSION
    result |= {"batch": BATCH, "tolerance": TOLERANCE, "rows": {}}
    machine = result["machine"]
    print(f"{machine['model']}, {machine['vectors']}; pin {VERSION}; times in microseconds\n")
    print(
        f"{'case':22}{'rows':>5}{'pin':>18}{'best':>9}{'one':>17}{'x':>7}{'x best':>7}{'f64':>9}{'left':>9}{'ours':>9}"
    )
    for name in chosen(options.cases, STACKS):
        found = measure(STACKS[name], options.repeats, options.milliseconds * 1e-3)
        result["rows"][name] = found
        print(line(name, found), flush=True)
    if options.output or not (options.quick or options.cases):
        write(result, options.output, f"contact-problems-{machine['name']}.json")


if __name__ == "__main__":
    main()
