"""Contact problems of stacked cubes, beside the ADMM solver of Pinocchio.

    python -m benchmarks.contact_problems [--cases "one cube"] [--quick] [--output FILE]

Cubes of 1 m with four points below each; friction 0.5; what impulses of one step of 1 ms against gravity must be. Both are given
the dense Delassus matrix, begin from nothing, and end at 1e-9: ours by its natural map and Pinocchio by its own measures,
absolute, its other settings being as they come, but for the update rule, of which the faster is shown. `left` is the
natural map of what each returns, measured by NumPy.

| column | what it is |
|---|---|
| pin | one call of `ADMMConstraintSolver.solve`; its iterations |
| one | one call of `sl.solve_contacts`; Newton's steps, new starts |
| x | how many times faster than `pin` |
| f64 | a problem of a batch of 1024, on one thread |
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

FRICTION, STEP, TOLERANCE, BATCH = 0.5, 1e-3, 1e-9, 1024
MOST_ITERATIONS = 2000
"""Of Pinocchio's."""


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
    share = np.minimum(1.0, friction[:, None] * normal / np.maximum(np.linalg.norm(tau[:, :2], axis=1, keepdims=True), 1e-300))
    return float(np.linalg.norm(D * (x - np.hstack([tau[:, :2] * share, normal])), axis=1).max())
