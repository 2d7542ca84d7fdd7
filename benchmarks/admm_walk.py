"""The paper's algorithm in the paper's setting: Cassie walks, and each command is a QP that `method="admm"` solves, too.

    python -m benchmarks.admm_walk [--seconds 10] [--quick] [--output FILE]

    minimise |R a - goal|_W^2 + w_u |u|^2 + w_a |a|^2 + w_f |f|^2 + w_s |e|^2    over accelerations a, torques u, forces l of
    M a = rest + S u + J_h'l + J_c'f,   J_h a = goal_h,   J_c a + e = goal_c      loops and springs, f of contacts, slacks e
    f in their friction cones, u within limits

is FCCQP's equation 10, of states, references and contacts as they come in the simulated walk of examples/walk.py, every
millisecond. Contacts are those of feet that bear; a foot in the air has neither forces nor slacks. Each QP is started from
the answer to the one before, has the iterations and the tolerance of table 1, and its torques are compared with those of the
interior point method.

| column | what it is |
|---|---|
| solved | of the QPs: all residuals within the tolerance |
| median, 99 %, worst | over QPs: the largest difference of a torque, as a share of the largest torque of the exact solution |
| of limits | the worst one: the largest difference of a torque, as a share of its motor's limit |
| equalities | what is left of them at the worst of all iterates, as a share of what they are made of |

Reference: B. Acosta, FCCQP: A whole-body QP with full friction cone constraints (2024), section 4, table 1.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import saltus as sl
from benchmarks.measure import circumstances, write
from examples.walk import FRICTION, PERIOD, TRUSTED, Walk, cassie
from saltus.arrays import Array
from saltus.constraints.system import aim_rows, move_bodies
from saltus.control.control_tables import CONTROL_TABLES
from saltus.control.task_rows import fill_tasks, first_origin
from saltus.control.whole_body import WORK, collect_all, fill_contacts
from saltus.kernel import declare, ld, st, zero
from tests.control.whole_body_qps import Problem

SPEED = (0.3, 0.0)  # m/s
BEARS = 1e-3  # how much of a contact must hold
WEIGHTS = {"a": 1e-8, "u": 1e-6, "l": 1e-8, "f": 1e-8, "e": 80.0}
MOST = 15
ITERATES = (0, 1, 2, 5, 10, 15)
CHUNK = 250


@declare(
    CONTROL_TABLES,
    inputs={"q": "nq", "v": "nv", "references": "nref", "held": "nc"},
    outputs={
        "M": "nv nv zeroed", "rest": "nv", "R": "ntr nv", "goal": "ntr", "weight": "ntr",
        "J_c": "mc 3 nv", "goal_c": "mc 3", "J_h": "nm nv", "goal_h": "nm",
    },
    work=WORK,
)  # fmt: skip
def _terms(tree, q, v, references, held, w, M, rest, R, goal, weight, J_c, goal_c, J_h, goal_h):  # type: ignore[no-untyped-def]
    """Of the equation above, as the controller has them."""
    nv = tree.nv
    w.origin[0] = first_origin(tree, q)
    move_bodies(tree, q, v, w)
    collect_all(tree, q, v, w)
    fill_tasks(tree, q, v, references, w)
    fill_contacts(tree, w)
    for r in range(tree.nm):
        w.none[r] = zero(q)
    aim_rows(tree, held, w.none, w, w.J, w.aim)
    for k in range(nv):
        st(rest, k, w.rest[k])
        j = k + 0
        while j >= 0:
            st(M, j * nv + k, ld(w.M, j * nv + k))
            st(M, k * nv + j, ld(w.M, j * nv + k))
            j = tree.above[j]
        for r in range(tree.ntr):
            st(R, r * nv + k, ld(w.R, r * nv + k))
        for r in range(3 * tree.mc):
            st(J_c, r * nv + k, ld(w.push_rows, r * nv + k))
        for r in range(tree.nm):
            st(J_h, r * nv + k, ld(w.J, r * nv + k))
    for r in range(tree.ntr):
        st(goal, r, w.goal[r])
        st(weight, r, tree.task_weight[r] + zero(q))
    for r in range(3 * tree.mc):
        st(goal_c, r, w.push_goal[r])
    for r in range(tree.nm):
        st(goal_h, r, w.aim[r])


class Listener:
    """In the place of a controller; keeps what it was asked."""

    def __init__(self, control: sl.OperationalSpaceControl) -> None:
        self.control = control
        self.asked: list[tuple[Array, ...]] = []

    def __call__(self, q: Array, v: Array, active: Array, **targets: Any) -> sl.Command:
        references = self.control.tasks.references(q, **targets)
        self.asked.append((q.copy(), v.copy(), references, active.copy()))
        return self.control(q, v, references, active=active)


def walk(seconds: float) -> Listener:
    walker = cassie()
    robot, brain = walker.robot, Walk(walker, SPEED)
    listener = Listener(brain.control)
    brain.control = listener  # type: ignore[assignment]
    sim = sl.Simulator(robot, sl.Ground(friction=FRICTION), constraints=sl.model_loops(robot))
    q = robot.reference_configurations["standing"]
    motion = sim.rollout(q, np.zeros(robot.nv), brain, duration=walker.standing + seconds, every=100, control_period=PERIOD)
    if motion.fallen.any():
        raise RuntimeError("Cassie falls")
    return listener


class Places(NamedTuple):
    """Of variables in x."""

    a: Array
    u: Array
    l: Array  # noqa: E741
    f: Array
    e: Array


def places(control: sl.OperationalSpaceControl) -> Places:
    forces = 3 * len(control.points)
    sizes = control.model.nv, len(control.motors), control.problem.nm, forces, forces
    return Places(*np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1]))


def programs(control: sl.OperationalSpaceControl, asked: list[tuple[Array, ...]]) -> Problem:
    q, v, references, active = (np.array(each) for each in zip(*asked, strict=True))
    M, rest, R, goal, weight, J_c, goal_c, J_h, goal_h = _terms.call(
        control.problem, (q, v, references, np.ones(control.problem.nc))
    )
    nv, motors, at = control.model.nv, list(control.motors), places(control)
    count, n, m = len(q), at.e[-1] + 1, nv + len(at.l) + len(at.e)
    bears = (active > BEARS)[..., None]
    J_c = (J_c * bears[..., None]).reshape(count, -1, nv)
    A, b = np.zeros((count, m, n)), np.zeros((count, m))
    A[:, :nv, at.a], A[:, motors, at.u] = M, -1.0
    A[:, :nv, at.l], A[:, :nv, at.f] = -np.swapaxes(J_h, 1, 2), -np.swapaxes(J_c, 1, 2)
    loops, contacts = np.arange(nv, nv + len(at.l)), np.arange(nv + len(at.l), m)
    A[:, loops[0] : contacts[0], at.a], A[:, contacts[0] :, at.a] = J_h, J_c
    A[:, contacts, at.e] = 1.0
    b[:, :nv], b[:, loops], b[:, contacts] = rest, goal_h, (goal_c * bears).reshape(count, -1)
    Q, c = np.zeros((count, n, n)), np.zeros((count, n))
    Q[:, :nv, :nv] = 2.0 * np.einsum("kri,kr,krj->kij", R, weight, R)
    c[:, :nv] = -2.0 * np.einsum("kri,kr,kr->ki", R, weight, goal)
    for name, each in WEIGHTS.items():
        which = getattr(at, name)
        Q[:, which, which] += 2.0 * each
    upper = np.full((count, n), np.inf)
    upper[:, at.u] = control.model.effort_limit[motors]
    return Problem(Q, c, A, b, at.f.reshape(-1, 3), np.full((count, len(control.points)), TRUSTED), -upper, upper)


def solve(problem: Problem, **options: Any) -> sl.QPSolution:
    Q, c, A, b, cones, friction, lower, upper = problem
    return sl.fccqp(Q, c, A, b, tuple(map(tuple, cones.tolist())), friction, lower, upper, **options)
