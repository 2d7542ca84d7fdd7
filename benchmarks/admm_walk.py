"""The paper's algorithm in the paper's setting: Cassie walks, and each command is a QP that `method="admm"` solves, too.

    python -m benchmarks.admm_walk [--seconds 3] [--quick] [--output FILE]

    minimise |R a - goal|_W^2 + w_a |a|^2 + w_u |u|^2 + w_f |(l, f)|^2 + w_e |e|^2
    M a = rest + S u + J_h'l + J_c'f,    J_h a = goal_h,    J_c a + e = goal_c,    f in friction cones,  u within limits

is FCCQP's equation 10: accelerations a, torques u, forces l of loops and locked springs, f of contacts, slacks e; of states
and references as they come every millisecond in a simulated walk. Contacts are those of feet that bear: a foot in the air
has neither forces nor slacks. Each QP is started from the answer to the one before; its torques are compared with those of
the interior point method. Weights and gains are those of the paper's controller, but for the damping of the swing foot: 10
instead of 1, with which our Cassie falls.

| setting | rho, tolerance, iterations | weights of a, u, l, f |
|---|---|---|
| table 1 | 5e-5, 1e-4, 15 | the paper's |
| heavier | the same | a hundred times as much |
| and longer | 5e-5, 1e-4, 100 | the same |
| patient | 5e-6, 1e-6, 1000 | the paper's |

| column | what it is |
|---|---|
| solved | of the QPs: all residuals, as shares, within the tolerance |
| within 1 %, median, 99 %, worst | over QPs: the largest difference of a torque, as a share of the largest exact one |
| single, double | medians with one foot and both on the ground |
| equalities | what is left of them at the worst of all iterates, as a share of what they are made of |

rho draws x to where it was also along forces and torques that hardly cost anything, such as those of one foot against the
other: with the paper's weights it is 25 times what these cost, and 15 iterations get nowhere near.

Reference: B. Acosta, FCCQP: A whole-body QP with full friction cone constraints (2024), section 4, table 1.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import saltus as sl
from benchmarks.measure import circumstances, write
from examples.walk import FRICTION, PERIOD, SIDES, Walk, Walker, cassie
from saltus.arrays import Array
from saltus.constraints.system import aim_rows, move_bodies
from saltus.control.control_tables import CONTROL_TABLES
from saltus.control.task_rows import fill_tasks, first_origin
from saltus.control.whole_body import WORK, collect_all, fill_contacts
from saltus.kernel import declare, ld, st, zero
from tests.control.whole_body_qps import Problem

SINGLE, DOUBLE = 0.3, 0.1  # s on one foot, on both
SPEED = (0.3, 0.0)  # m/s
BEARS = 1e-3  # how much of a contact must hold
WEIGHTS = {"a": 1e-8, "u": 1e-6, "l": 1e-8, "f": 1e-8}
SLACK = 80.0
TABLE = {"rho": 5e-5, "tolerance": 1e-4, "max_iterations": 15}
SETTINGS: dict[str, tuple[float, dict[str, Any]]] = {
    "table 1": (1.0, TABLE),
    "heavier": (100.0, TABLE),
    "and longer": (100.0, TABLE | {"max_iterations": 100}),
    "patient": (1.0, {"rho": 5e-6, "tolerance": 1e-6, "max_iterations": 1000}),
}
ITERATES = tuple(range(16))
CHUNK = 250


def controller(walker: Walker, swings: str) -> sl.OperationalSpaceControl:
    """While the foot of a side swings, or none."""
    robot, foot = walker.robot, f"{swings}_sole"
    tasks: list[Any] = [
        sl.CenterOfMassTask(axes="z", kp=50, kd=5, weight=10),
        sl.FrameTask("pelvis", position="", kp=(200, 200, 0), kd=(10, 10, 4), weight=(2, 4, 0.02)),
    ]
    if swings:
        tasks += [
            sl.FrameTask(foot, orientation="", kp=(150, 150, 200), kd=10, weight=4, name="foot"),
            sl.FrameTask(foot, position="", orientation="y", reference="local", kp=1500, kd=10, weight=1, name="toe"),
            sl.PostureTask(joints=(f"{swings}-yaw-op",), kp=40, kd=1, weight=0.1),
        ]
    ends = [(x, 0.0, 0.0) for x in (-walker.half_foot, walker.half_foot)]
    springs = [sl.JointLock(robot, joint.name) for joint in robot.joints[2:] if robot.stiffness[joint.iv] > 0]
    return sl.OperationalSpaceControl(
        robot, tasks, [(f"{side}_sole", end) for side in SIDES for end in ends], [*sl.model_loops(robot), *springs],
        friction=FRICTION, slack_weight=SLACK, force_weight=WEIGHTS["f"], torque_weight=WEIGHTS["u"],
    )  # fmt: skip


class Asked(NamedTuple):
    """What a controller was asked."""

    swings: str
    q: Array
    v: Array
    references: Array
    active: Array


class PaperControl:
    """In the place of the example's controller; keeps what it was asked."""

    def __init__(self, walker: Walker) -> None:
        self.controls = {swings: controller(walker, swings) for swings in ("", *SIDES)}
        self.posture = walker.robot.reference_configurations["standing"]
        self.asked: list[Asked] = []

    def __call__(self, q: Array, v: Array, active: Array, com: Array, pelvis: Array, **feet: Any) -> sl.Command:
        swings = next((side for k, side in enumerate(SIDES) if active[2 * k] <= BEARS), "")
        targets: dict[str, Any] = {"com": com, "pelvis": pelvis}
        if swings:
            targets |= {"foot": feet[f"{swings}_sole"], "toe": feet[f"{swings}_sole_turn"], "posture": self.posture}
        control = self.controls[swings]
        references = control.tasks.references(q, **targets)
        self.asked.append(Asked(swings, q.copy(), v.copy(), references, active.copy()))
        return control(q, v, references, active=active)


def walk(seconds: float) -> PaperControl:
    walker = replace(cassie(), single=SINGLE, double=DOUBLE)
    robot, brain, control = walker.robot, Walk(walker, SPEED), PaperControl(walker)
    brain.control = control  # type: ignore[assignment]
    sim = sl.Simulator(robot, sl.Ground(friction=FRICTION), constraints=sl.model_loops(robot))
    q, duration = robot.reference_configurations["standing"], walker.standing + seconds
    motion = sim.rollout(q, np.zeros(robot.nv), brain, duration=duration, every=100, control_period=PERIOD)
    if motion.fallen.any():
        raise RuntimeError("Cassie falls")
    return control


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


class Places(NamedTuple):
    """Of variables in x."""

    a: Array
    u: Array
    l: Array
    f: Array
    e: Array


def places(control: sl.OperationalSpaceControl) -> Places:
    forces = 3 * len(control.points)
    sizes = control.model.nv, len(control.motors), control.problem.nm, forces, forces
    return Places(*np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1]))


def programs(control: sl.OperationalSpaceControl, asked: list[Asked], heavier: float) -> Problem:
    """(10a) to (10f). `heavier`: how much more than the paper's the weights of all but tasks and slacks are."""
    q, v, references, active = (np.array([getattr(each, name) for each in asked]) for name in Asked._fields[1:])
    M, rest, R, goal, weight, J_c, goal_c, J_h, goal_h = _terms.call(
        control.problem, (q, v, references, np.ones(control.problem.nc))
    )
    nv, motors, at = control.model.nv, list(control.motors), places(control)
    count, n, m = len(q), at.e[-1] + 1, nv + len(at.l) + len(at.e)
    bears = (active > BEARS)[..., None]
    J_c, goal_c = (J_c * bears[..., None]).reshape(count, -1, nv), (goal_c * bears).reshape(count, -1)
    A = np.zeros((count, m, n))
    A[:, :nv, at.a], A[:, motors, at.u] = M, -1.0
    A[:, :nv, at.l], A[:, :nv, at.f] = -np.swapaxes(J_h, 1, 2), -np.swapaxes(J_c, 1, 2)
    A[:, nv:, at.a] = np.concatenate([J_h, J_c], 1)
    A[:, np.arange(m - len(at.e), m), at.e] = 1.0
    Q, c = np.zeros((count, n, n)), np.zeros((count, n))
    Q[:, :nv, :nv] = 2.0 * np.einsum("kri,kr,krj->kij", R, weight, R)
    c[:, :nv] = -2.0 * np.einsum("kri,kr,kr->ki", R, weight, goal)
    weights = {name: heavier * each for name, each in WEIGHTS.items()} | {"e": SLACK}
    for name, each in weights.items():
        which = getattr(at, name)
        Q[:, which, which] += 2.0 * each
    upper = np.full((count, n), np.inf)
    upper[:, at.u] = control.model.effort_limit[motors]
    friction = np.full((count, len(control.points)), FRICTION)
    return Problem(Q, c, A, np.concatenate([rest, goal_h, goal_c], 1), at.f.reshape(-1, 3), friction, -upper, upper)


def solve(problem: Problem, **options: Any) -> sl.QPSolution:
    Q, c, A, b, cones, friction, lower, upper = problem
    return sl.fccqp(Q, c, A, b, tuple(map(tuple, cones.tolist())), friction, lower, upper, **options)


def largest_share(problem: Problem, x: Array) -> float:
    """Of equalities, by what they are made of."""
    sides = np.einsum("kmn,kn->km", problem.A, x), problem.b
    made_of = np.maximum(*(np.abs(side).max(1) for side in sides))
    return float((np.abs(sides[0] - sides[1]).max(1) / made_of).max())


def measure(control: PaperControl, heavier: float, options: dict[str, Any]) -> dict[str, Any]:
    """All that the walk has asked, in the order of time; in pieces of one sort each."""
    asked, x, z = control.asked, None, None
    changes = [k for k in range(1, len(asked)) if asked[k].swings != asked[k - 1].swings]
    ends = sorted({0, len(asked), *changes, *range(CHUNK, len(asked), CHUNK)})
    solved, off, both, equalities = [], [], [], 0.0
    for first, last in pairwise(ends):
        kind = control.controls[asked[first].swings]
        problems, u = programs(kind, asked[first:last], heavier), places(kind).u
        exact = solve(problems)
        if (exact.status != int(sl.QPStatus.SOLVED)).any():
            raise RuntimeError("the interior point method does not solve all of them")
        starts = []
        for k in range(last - first):
            start = {} if x is None else {"x": x, "z": z}
            found = solve(problems[k], method="admm", **options, **start)
            starts.append((np.zeros_like(found.x), np.zeros_like(found.z)) if x is None else (x, z))
            x, z = found.x, found.z
            solved.append(found.status == sl.QPStatus.SOLVED)
            off.append(np.abs(x[u] - exact.x[k, u]).max() / np.abs(exact.x[k, u]).max())
            both.append(not asked[first].swings)
        xs, zs = (np.array(each) for each in zip(*starts, strict=True))
        for most in ITERATES:
            iterate = solve(problems, x=xs, z=zs, method="admm", **options | {"max_iterations": most})
            equalities = max(equalities, largest_share(problems, iterate.x))
    shares, doubles = np.array(off), np.array(both)
    return {
        "QPs": len(asked),
        "solved": float(np.mean(solved)),
        "within 1 %": float((shares < 0.01).mean()),
        "median": float(np.median(shares)),
        "99 %": float(np.quantile(shares, 0.99)),
        "worst": float(shares.max()),
        "single": float(np.median(shares[~doubles])),
        "double": float(np.median(shares[doubles])),
        "equalities": equalities,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="The paper's ADMM on the QPs of a walk of Cassie.")
    parser.add_argument("--seconds", type=float, default=3.0, help="of walking")
    parser.add_argument("--quick", action="store_true", help="half a second: the figures mean little")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    result = circumstances("benchmarks.admm_walk") | {"settings": SETTINGS, "weights": WEIGHTS, "rows": {}}
    control = walk(0.5 if options.quick else options.seconds)
    names = ("solved", "within 1 %", "median", "99 %", "worst", "single", "double", "equalities")
    print(f"{len(control.asked)} QPs\n{'':12}" + "".join(f"{name:>12}" for name in names))
    for name, (heavier, chosen) in SETTINGS.items():
        row = result["rows"][name] = measure(control, heavier, chosen)
        shares = "".join(f"{row[each]:12.2%}" for each in names[:-1])
        print(f"{name:12}{shares}{row['equalities']:12.1e}", flush=True)
    if options.output or not options.quick:
        write(result, options.output, f"admm_walk-{result['machine']['name']}.json")


if __name__ == "__main__":
    main()
