"""The whole-body QPs of tests/control/whole_body_qps.py as a controller has them: states and commands, not matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

import saltus as sl
from saltus.arrays import Array
from tests.control.qp_truth import largest, nearest, objective
from tests.control.whole_body_qps import (
    FAMILIES,
    Problem,
    Weights,
    contact_points,
    random_commands,
    random_states,
    robot_of,
)

BASE = {"anymal": "base", "talos": "base_link"}
UNHURRIED = 1e-9
"""Contacts are asked not to accelerate, and hardly for more [1/s]."""
EXACT = 1e-10


class Structured:
    """Torques for the first problems of a family."""

    def __init__(self, name: str, count: int, tolerance: float) -> None:
        robot, weights, rng = robot_of(name), Weights(), np.random.default_rng(0)
        robot = robot.replace(damping=np.zeros(robot.nv))
        self.q, self.v = random_states(robot, rng, count, 0.1, 0.3)
        commands = random_commands(name, rng, count, FAMILIES[name])
        tasks = [
            sl.CenterOfMassTask(weight=weights.center, kp=0, kd=0),
            sl.FrameTask(BASE[name], position="", weight=weights.base, kp=0, kd=0, name="base"),
            sl.PostureTask(weight=weights.posture, kp=0, kd=0),
        ]
        self.control = sl.OperationalSpaceControl(
            robot, tasks, contact_points(name), limited=(), slack_weight=weights.slack, force_weight=weights.force,
            torque_weight=weights.torque, contact_damping=UNHURRIED,
        )  # fmt: skip
        turn = sl.frame_placement(robot, self.q, BASE[name])[..., :3, :3]
        posture = np.zeros_like(self.v)
        posture[:, list(self.control.motors)] = commands["posture"]
        self.references = self.control.tasks.references(
            self.q,
            com=sl.Target(acceleration=commands["center"]),
            base=sl.Target(acceleration=np.einsum("kij,kj->ki", turn, commands["base"])),
            posture=sl.Target(acceleration=posture),
        )
        self.tolerance = tolerance

    def solve(self, k: Any) -> sl.Command:
        return self.control(self.q[k], self.v[k], self.references[k], tolerance=self.tolerance)

    def left(self, problems: Problem) -> Array:
        """Of each: what is left of equalities and cones, or by how much its costs are more than the least."""
        found = self.solve(slice(None))
        axes = np.array([point.axes for point in self.control.points])
        forces, slack = (np.einsum("cij,kcj->kci", axes, each) for each in (found.forces, -found.slack))
        motors, count = list(self.control.motors), len(self.q)
        parts = found.a, found.tau[:, motors], forces.reshape(count, -1), slack.reshape(count, -1)
        Q, c, A, b, cones, friction, lower, upper = problems
        least = sl.fccqp(Q, c, A, b, cones=cones, friction=friction, lower=lower, upper=upper, tolerance=EXACT).x
        off = []
        for k, x in enumerate(np.concatenate(parts, 1)):
            inside = nearest(problems[k], x, np.zeros_like(x), False)[0]
            more = objective(problems[k], x) - objective(problems[k], least[k])
            off.append(max(largest(A[k] @ x - b[k]), largest(x - inside), abs(more)))
        return np.array(off)
