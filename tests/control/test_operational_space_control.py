"""`OperationalSpaceControl` against the same program written down densely, and solved by Clarabel: accelerations, torques,
forces of contacts and of loops are all variables there."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import saltus as sl
from examples.walk import WALKERS, controller
from saltus.arrays import Array
from saltus.control.operational_space_control import contact_point, limited_dofs
from tests.control.qp_truth import conic
from tests.control.whole_body_qps import Problem, point_rows

OPTIMAL = 1e-7  # of costs: by how much they may be above Clarabel's
LIMIT_WEIGHT = 1e6  # of what limited joints miss
NORMALS = [0.2, -0.1, 1.0], [0.0, 0.0, 1.0], [0.0, 0.3, 1.0], [-0.2, 0.2, 1.0]


class Case(NamedTuple):
    """A controller, and what the oracle must be told again."""

    control: sl.OperationalSpaceControl
    points: list[tuple[str, Array, Array]]  # frame, place, axes
    bilateral: list[sl.Constraint]


def tasks(model: sl.Model, base: str, levels: tuple[int, int, int] = (0, 0, 0)) -> list[Any]:
    return [
        sl.CenterOfMassTask(kp=50, kd=10, weight=(10, 5, 10), priority=levels[0]),
        sl.FrameTask(base, position="", kp=100, kd=20, weight=2, priority=levels[1]),
        sl.MomentumTask(axes="z", kd=2, weight=0.1, priority=levels[1]),
        sl.PostureTask(kp=30, kd=5, weight=0.1, priority=levels[2]),
    ]


def axes(normal: Array) -> Array:
    """Two tangents and the normal, as the controller has them: columns."""
    return contact_point(sl.load_robot("quadruped"), ("base", None, normal)).axes


@cache
def case(name: str, levels: tuple[int, int, int] = (0, 0, 0), **options: Any) -> Case:
    if name in WALKERS:
        walker = WALKERS[name]()
        control = controller(walker, "z")
        springs = [joint.name for joint in walker.robot.joints[2:] if walker.robot.stiffness[joint.iv] > 0]
        bilateral = [*sl.model_loops(walker.robot), *(sl.JointLock(walker.robot, joint) for joint in springs)]
        ends = [np.array([x, 0.0, 0.0]) for x in (-walker.half_foot, walker.half_foot)]
        points = [(f"{side}_sole", end, np.eye(3)) for side in ("left", "right") for end in ends]
        return Case(control, points, bilateral)
    model, feet = sl.load_robot(name), sl.robot_frames(name).feet
    if name == "quadruped":
        points = [(foot, np.zeros(3), normal) for foot, normal in zip(feet, NORMALS, strict=True)]
        base = "base"
    else:
        corners = [np.array([x, y, 0.0]) for x in (-0.09, 0.15) for y in (-0.05, 0.05)]
        points = [(foot, corner, [0.0, 0.0, 1.0]) for foot in feet for corner in corners]
        base = "chest"
    control = sl.OperationalSpaceControl(model, tasks(model, base, levels), points, **options)
    return Case(control, [(frame, place, axes(np.array(normal))) for frame, place, normal in points], [])


def states(found: Case, count: int, seed: int, speed: float) -> tuple[Array, Array]:
    """About standing; loops stay closed where there are any, and move as they can."""
    model, rng = found.control.model, np.random.default_rng(seed)
    q = np.tile(model.reference_configurations["standing"], (count, 1))
    v = speed * rng.normal(size=(count, model.nv))
    if not found.bilateral:
        return sl.integrate(model, q, 0.1 * rng.normal(size=(count, model.nv))), v
    J = loops(found, q, v)[0]
    return q, v - np.einsum("bij,bj->bi", np.linalg.pinv(J, rcond=1e-9) @ J, v)


def loops(found: Case, q: Array, v: Array) -> tuple[Array, Array]:
    """J (B, nh, nv) and dJ/dt v of loops and locked joints."""
    model, J, drift = found.control.model, [], []
    for loop in model.loops if found.bilateral else ():
        rows = [point_rows(model, q, v, frame, np.zeros(3)) for frame in (loop.frame_a, loop.frame_b)]
        J.append(rows[0][0] - rows[1][0])
        drift.append(rows[0][1] - rows[1][1])
    locked = np.flatnonzero(model.stiffness > 0)
    J.append(np.tile(np.eye(model.nv)[locked], (len(q), 1, 1)))
    drift.append(np.zeros((len(q), len(locked))))
    return np.concatenate(J, 1), np.concatenate(drift, 1)


def contacts(found: Case, q: Array, v: Array) -> tuple[Array, Array, Array]:
    """J (B, 3 nc, nv), dJ/dt v and J v, along tangents and normals."""
    model, J, drift = found.control.model, [], []
    for frame, place, turn in found.points:
        rows, there = point_rows(model, q, v, frame, place)
        J.append(turn.T @ rows)
        drift.append(there @ turn)
    J = np.concatenate(J, 1)
    return J, np.concatenate(drift, 1), np.einsum("bij,bj->bi", J, v)


def stopping(control: sl.OperationalSpaceControl, q: Array, v: Array) -> tuple[Array, Array, Array]:
    """Degrees of freedom of joints that keep limits, and the accelerations (B, k) that they may have."""
    model, settings = control.model, control.problem.settings
    h, b = settings.horizon, settings.braking
    dofs = np.array(control.problem.limited, int)
    at = np.array([joint.iq for k in dofs for joint in model.joints if joint.iv == k and joint.nv == 1], int)
    speed, fastest = v[:, dofs], model.velocity_limit[dofs]

    def towards(room: Array, speed: Array) -> Array:
        way = np.maximum((b * h / 2) ** 2 + 2 * b * (room - h * speed / 2), 0.0)
        return np.minimum(np.sqrt(way) - b * h / 2, fastest)

    high = (towards(model.upper_position_limit[at] - q[:, at], speed) - speed) / h
    low = -(towards(q[:, at] - model.lower_position_limit[at], -speed) + speed) / h
    return dofs, np.minimum(low, 2 * b), np.maximum(high, -2 * b)


def program(
    found: Case, q: Array, v: Array, references: Array, active: Array, wanted: Array, level: slice | None = None
) -> tuple[list[Problem], dict[str, Array]]:
    """Of each state: minimise over a, u, f, l, and y, what limited joints' accelerations are moved to, to be within limits.
    Also the rows of tasks. `level`: its rows alone."""
    control, model = found.control, found.control.model
    settings, motors = control.problem.settings, list(control.motors)
    J, drift, rate = contacts(found, q, v)
    H, turn = loops(found, q, v)
    rows = sl.task_rows(control.tasks, q, v, references)
    weight = np.concatenate([
        np.broadcast_to(task.weight, (control.tasks.rows[task.name].stop - control.tasks.rows[task.name].start,))
        for task in control.tasks.tasks
    ])  # fmt: skip
    inertia, bias = sl.crba(model, q), sl.nonlinear_effects(model, q, v)
    rest = sl.passive_torques(model, q) - model.damping * v - bias
    dofs, low, high = stopping(control, q, v)
    sizes = [model.nv, len(motors), J.shape[1], H.shape[1], len(dofs)]
    a, u, f, l, y = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    problems = []
    goals = -settings.contact_damping * rate - drift
    mass = model.total_mass * np.linalg.norm(model.gravity)
    for k in range(len(q)):
        Q, c = np.zeros((sum(sizes),) * 2), np.zeros(sum(sizes))

        def ask(where: Array, rows: Array, goal: Array, weight: Array, Q: Array = Q, c: Array = c) -> None:
            Q[np.ix_(where, where)] += rows.T * weight @ rows
            c[where] -= rows.T * weight @ goal

        chosen = slice(None) if level is None else level
        ask(a, rows.R[k][chosen], rows.goal[k][chosen], weight[chosen])
        ask(a, J[k], goals[k], settings.slack_weight * np.repeat(active[k], 3))
        ask(u, np.eye(len(u)), np.zeros(len(u)), np.full(len(u), settings.torque_weight))
        ask(f, np.eye(len(f)), wanted[k].ravel(), np.full(len(f), settings.force_weight))
        pick = np.hstack([np.eye(model.nv)[dofs], -np.eye(len(dofs))])
        ask(np.r_[a, y], pick, np.zeros(len(dofs)), np.full(len(dofs), LIMIT_WEIGHT))
        A = np.zeros((model.nv + sizes[3], sum(sizes)))
        A[: model.nv, a], A[: model.nv, f], A[: model.nv, l] = inertia[k], -J[k].T, -H[k].T
        A[motors, u] = -1.0
        A[model.nv :, a] = H[k]
        b = np.r_[rest[k], -turn[k]]
        lower, upper = np.full(sum(sizes), -np.inf), np.full(sum(sizes), np.inf)
        lower[u], upper[u] = -model.effort_limit[motors], model.effort_limit[motors]
        upper[f[2::3]] = np.where(
            active[k] < 1.0, mass * active[k] ** 2 / np.maximum(1.0 - active[k] ** 4, 1e-9), np.inf
        )
        lower[y], upper[y] = low[k], high[k]
        problems.append(Problem(Q, c, A, b, f.reshape(-1, 3), control.friction, lower, upper))
    parts = {"a": a, "u": u, "f": f}
    parts |= {"inertia": inertia, "rest": rest, "J": J, "H": H, "turn": turn, "R": rows.R, "root": np.sqrt(weight)}
    return problems, parts


def references(found: Case, q: Array, rng: np.random.Generator, size: float) -> Array:
    """Targets that are some way off."""
    control = found.control
    about = sl.integrate(control.model, q, size * rng.normal(size=(len(q), control.model.nv)))
    given = control.tasks.references(about)
    for place in control.tasks.places.values():
        given[:, place.acceleration] += 3.0 * size * rng.normal(size=given[:, place.acceleration].shape)
    return given


def check(found: Case, q: Array, v: Array, given: Array, active: Array, wanted: Array | None = None) -> sl.Command:
    """The controller's answers against the oracle's; the commands."""
    wanted = np.zeros((*active.shape, 3)) if wanted is None else wanted
    command = found.control(q, v, given, active=active, wanted=wanted)
    problems, parts = program(found, q, v, given, active, wanted)
    motors = list(found.control.motors)
    assert (command.status == sl.QPStatus.SOLVED).all()
    M, H = parts["inertia"], parts["H"]
    moved = np.einsum("bij,bj->bi", M, command.a) - np.einsum(
        "bji,bj->bi", parts["J"], command.forces.reshape(len(q), -1)
    )
    left = moved - parts["rest"] - command.tau
    if H.shape[1]:  # what is left is what loops do
        free = np.eye(M.shape[-1]) - np.swapaxes(H, 1, 2) @ np.linalg.pinv(np.swapaxes(H, 1, 2), rcond=1e-10)
        left = np.einsum("bij,bj->bi", free, left)
        closed = np.einsum("bij,bj->bi", H, command.a) + parts["turn"]
        assert np.abs(closed).max() < 1e-9 * max(1.0, np.abs(command.a).max())
    assert np.abs(left).max() < 1e-9 * max(np.abs(moved).max(), np.abs(command.tau).max())
    for k, problem in enumerate(problems):
        truth = conic(problem)
        mine = cost(problem, parts, command.a[k], command.tau[k][motors], command.forces[k])
        best = cost(problem, parts, *(truth.x[parts[x]] for x in "auf"))
        room = OPTIMAL * (1.0 + abs(best))
        assert mine <= best + room, (k, mine, best)
        apart = parts["root"] * (parts["R"][k] @ (command.a[k] - truth.x[parts["a"]]))
        assert np.linalg.norm(apart) < 2.0 * np.sqrt(2.0 * room)  # the cost is so much convex
    return command


def cost(problem: Problem, parts: dict[str, Array], a: Array, u: Array, f: Array) -> float:
    """With y where it is best."""
    x = np.zeros(len(problem.c))
    x[parts["a"]], x[parts["u"]], x[parts["f"]] = a, u, f.ravel()
    limited = np.flatnonzero(np.isfinite(problem.lower) & np.isfinite(problem.upper))
    for k in limited[limited > parts["f"][-1]]:
        along = problem.Q[k, parts["a"]]
        x[k] = np.clip(-(along @ a) / problem.Q[k, k], problem.lower[k], problem.upper[k]) if problem.Q[k, k] else 0.0
    return float(x @ (0.5 * problem.Q @ x + problem.c))


@pytest.mark.parametrize("name", ["quadruped", "humanoid", "biped", "cassie"])
def test_commands_are_those_of_the_dense_program(name: str) -> None:
    """Random states and targets, mild and wild: friction, torques and joints at their limits; contacts in part."""
    found = case(name)
    rng = np.random.default_rng(3)
    count = len(found.points)
    for size, speed in ((0.02, 0.1), (0.3, 0.5)):
        q, v = states(found, 4, 5, speed)
        active = rng.choice([0.0, 0.3, 1.0, 1.0], (4, count))
        active[0] = 1.0
        check(found, q, v, references(found, q, rng, size), active)


def test_limits_and_edges_are_hit() -> None:
    """What is asked is too much: the torques of weak motors, and friction."""
    model = sl.load_robot("quadruped")
    weak = model.replace(effort_limit=np.where(np.isfinite(model.effort_limit), 0.3 * model.effort_limit, np.inf))
    points = [(foot, np.zeros(3), [0.0, 0.0, 1.0]) for foot in sl.robot_frames("quadruped").feet]
    control = sl.OperationalSpaceControl(weak, tasks(weak, "base"), points, friction=0.3)
    found = Case(control, [(frame, place, np.eye(3)) for frame, place, _ in points], [])
    q, v = states(found, 1, 0, 0.0)
    center = sl.center_of_mass(weak, q)
    given = control.tasks.references(q, com=center + np.array([0.3, 0.1, 0.3]))
    command = check(found, q, v, given, np.ones((1, 4)))
    motors = list(control.motors)
    assert (np.abs(command.tau[:, motors]) <= weak.effort_limit[motors]).all()
    force = command.forces[0]
    assert (np.hypot(force[:, 0], force[:, 1]) <= 0.3 * force[:, 2] + 1e-9).all()
    words = " ".join(control.culprits(sl.Command(*(x[0] for x in command))))
    assert "task 'com' misses" in words and "is at its limit" in words and "friction cone" in words


def test_forces_that_are_wanted() -> None:
    """Of all that do the same, those nearest to what is wanted."""
    found = case("humanoid")
    q, v = states(found, 1, 1, 0.0)
    wanted = np.zeros((1, 8, 3))
    wanted[:, :4, 2] = 200.0
    given = found.control.tasks.references(q)
    plain = found.control(q, v, given)
    pulled = check(found, q, v, given, np.ones((1, 8)), wanted)
    assert pulled.forces[0, :4, 2].sum() > plain.forces[0, :4, 2].sum() + 1.0
    np.testing.assert_allclose(pulled.forces[0, :, 2].sum(), plain.forces[0, :, 2].sum(), rtol=1e-2)


@pytest.mark.parametrize("levels", [(0, 0, 1), (0, 1, 2)])
def test_a_lower_priority_never_disturbs(levels: tuple[int, int, int]) -> None:
    """What the first priority reaches by itself it reaches with others below, whatever these ask for."""
    found, alone = case("quadruped", levels), case("quadruped", (0, 0, 0))
    first = [task for task in found.control.tasks.tasks if task.priority == 0]
    points = [(frame, place, turn[:, 2]) for frame, place, turn in found.points]
    only = sl.OperationalSpaceControl(found.control.model, first, points)
    q, v = states(found, 3, 2, 0.2)
    center = sl.center_of_mass(found.control.model, q)
    far = sl.integrate(found.control.model, q, np.full(found.control.model.nv, 0.3))
    targets = {"com": center + np.array([0.02, 0.01, 0.02])}
    command = found.control(q, v, found.control.tasks.references(q, posture=far, **targets))
    by_itself = only(q, v, only.tasks.references(q, **targets))
    assert (command.status == 0).all() and (by_itself.status == 0).all()
    rows = slice(0, only.tasks.sizes["ntr"])
    scale = 1.0 + np.abs(by_itself.missed).max()
    np.testing.assert_allclose(command.missed[:, rows], by_itself.missed, atol=1e-5 * scale)
    np.testing.assert_allclose(command.slack, by_itself.slack, atol=1e-5 * (1.0 + np.abs(by_itself.slack).max()))
    weighed = alone.control(q, v, alone.control.tasks.references(q, posture=far, **targets))
    assert np.abs(weighed.missed[:, :3]).max() > 10 * np.abs(by_itself.missed[:, :3]).max()  # weights alone do disturb


def test_a_joint_stops_before_its_limit() -> None:
    """A task drives it against the limit, at its largest speed, with torques held for two milliseconds."""
    arm = sl.load_robot("arm")
    control = sl.OperationalSpaceControl(arm, [sl.PostureTask(kp=400, kd=10)])
    joint = next(joint for joint in arm.joints[1:] if joint.nv == 1)
    q, v, dt = arm.neutral(), np.zeros(arm.nv), 2e-3
    target = q.copy()
    target[joint.iq] = arm.upper_position_limit[joint.iq] + 1.0
    furthest, fastest = -np.inf, 0.0
    given = control.tasks.references(posture=target)
    for _ in range(1500):
        tau = control(q, v, given).tau
        a = sl.aba(arm, q, v, tau)
        v = v + dt * a
        q = sl.integrate(arm, q, dt * v)
        furthest, fastest = max(furthest, q[joint.iq]), max(fastest, v[joint.iv])
    limit = arm.upper_position_limit[joint.iq]
    assert limit - 0.01 < furthest < limit + 1e-3
    assert 0.5 < fastest < arm.velocity_limit[joint.iv] * 1.001


@pytest.mark.parametrize("name", ["quadruped", "cassie"])
def test_batches_are_singles(name: str) -> None:
    found = case(name)
    q, v = states(found, 11, 4, 0.3)
    given = references(found, q, np.random.default_rng(0), 0.1)
    active = np.random.default_rng(1).choice([0.0, 0.3, 1.0], (11, len(found.points)))
    together = found.control(q, v, given, active=active)
    for k in range(11):
        alone = found.control(q[k], v[k], given[k], active=active[k])
        assert together.status[k] == alone.status == sl.QPStatus.SOLVED
        scale = 1.0 + np.abs(alone.a).max()
        np.testing.assert_allclose(together.missed[k], alone.missed, atol=1e-4 * scale)
        np.testing.assert_allclose(together.tau[k], alone.tau, atol=0.05 + 1e-3 * np.abs(alone.tau).max())


def test_limits_hold_whatever_the_acceleration() -> None:
    """Joints that no task holds fly; and who stands beside has no part in it."""
    found, free = case("humanoid"), [sl.CenterOfMassTask(weight=10), sl.FrameTask("chest", position="", weight=2)]
    points = [(frame, place, [0.0, 0.0, 1.0]) for frame, place, _ in found.points]
    control = sl.OperationalSpaceControl(found.control.model, free, points)
    q, v = states(Case(control, found.points, []), 6, 1, 2.0)
    given = references(Case(control, found.points, []), q, np.random.default_rng(2), 0.02)
    together = control(q, v, given)
    assert (together.status == sl.QPStatus.SOLVED).all() and np.abs(together.beyond).max() < 1e-3
    for k in range(6):
        alone = control(q[k], v[k], given[k])
        np.testing.assert_allclose(together.tau[k], alone.tau, atol=1e-3 * np.abs(alone.tau).max())
        np.testing.assert_allclose(together.a[k], alone.a, atol=1e-3 * np.abs(alone.a).max())
    check(Case(control, found.points, []), q[:2], v[:2], given[:2], np.ones((2, len(points))))


def test_limits_hold_on_all_levels() -> None:
    """A posture below drives joints against limits that nothing comes near above; in two states of four."""
    model = sl.load_robot("quadruped")
    strong = model.replace(effort_limit=np.minimum(10.0 * np.minimum(model.effort_limit, 1e6), 1e6))
    tasks = [sl.FrameTask("base", position=""), sl.PostureTask(kp=400, kd=20, priority=1)]
    control = sl.OperationalSpaceControl(strong, tasks, motors=range(6, 18))
    rng = np.random.default_rng(0)
    q, v = np.tile(model.reference_configurations["standing"], (4, 1)), 0.1 * rng.normal(size=(4, model.nv))
    away = np.array([4.0, 0.02, 4.0, 0.02])[:, None] * rng.normal(size=(4, model.nv))
    away[:, :6] = 0.0
    given = control.tasks.references(q, posture=sl.integrate(strong, q, away))
    together = control(q, v, given)
    assert (together.status == sl.QPStatus.SOLVED).all() and np.abs(together.beyond).max() < 0.01
    for k in range(4):
        alone = control(q[k], v[k], given[k])
        np.testing.assert_allclose(together.tau[k], alone.tau, atol=1e-6 * np.abs(alone.tau).max())


def test_culprits_are_those_of_the_call() -> None:
    """By the friction that it was given; and one state's."""
    model = sl.load_robot("quadruped")
    control = sl.OperationalSpaceControl(model, [sl.CenterOfMassTask(weight=10)], sl.robot_frames("quadruped").feet)
    q, v = np.tile(model.reference_configurations["standing"], (2, 1)), np.zeros((2, model.nv))
    far = sl.center_of_mass(model, q) + np.array([0.5, 0.0, 0.0])
    slippery = control(q, v, com=far, friction=np.full(4, 0.2))
    words = control.culprits(sl.Command(*(x[0] for x in slippery)))
    assert sum("friction cone" in each for each in words) == 4
    assert np.abs(slippery.grip - 1.0).max() < 1e-3
    with pytest.raises(ValueError, match=r"the command is one of \(2,\) states, expected one"):
        control.culprits(slippery)


def test_single_precision() -> None:
    found = case("quadruped")
    q, v = states(found, 3, 6, 0.1)
    given = references(found, q, np.random.default_rng(0), 0.02)
    single = found.control(*(x.astype(np.float32) for x in (q, v, given)))
    assert single.tau.dtype == np.float32 and (single.status == 0).all()
    problems, parts = program(found, q, v, given, np.ones((3, 4)), np.zeros((3, 4, 3)))
    for k, problem in enumerate(problems):
        mine = cost(problem, parts, single.a[k], single.tau[k][list(found.control.motors)], single.forces[k])
        best = conic(problem).objective
        assert mine < best + 1e-3 * abs(best)


def test_what_is_not_finite() -> None:
    """Its status says so, and others in the batch go on."""
    found = case("quadruped")
    q, v = states(found, 3, 7, 0.1)
    given = found.control.tasks.references(q)
    right = found.control(q, v, given)
    v[1, 4] = np.nan
    found_wrong = found.control(q, v, given)
    assert found_wrong.status.tolist() == [0, int(sl.QPStatus.NOT_FINITE), 0]
    np.testing.assert_array_equal(found_wrong.tau[[0, 2]], right.tau[[0, 2]])
    assert found.control.culprits(sl.Command(*(x[1] for x in found_wrong))) == [
        "the state or what is asked for is not finite"
    ]
    with pytest.raises(ValueError, match="v"):
        found.control(q, v, given, on_invalid="raise")


def test_nothing_holds_it() -> None:
    """Without contacts the robot falls, and joints do what their task asks for."""
    found = case("quadruped")
    q, v = states(found, 1, 8, 0.0)
    command = check(found, q, v, found.control.tasks.references(q), np.zeros((1, 4)))
    assert not command.forces.any()
    J = sl.center_of_mass_jacobian(found.control.model, q)
    np.testing.assert_allclose(J[0] @ command.a[0], [0, 0, -9.81], atol=1e-6)


def test_nothing_to_push_with() -> None:
    """Robots without motors, or whose motors have no torque, fall; so do those of an empty batch, all none of them."""
    robot, feet = sl.load_robot("quadruped"), sl.robot_frames("quadruped").feet
    q, v = robot.reference_configurations["standing"], np.zeros(robot.nv)
    tasks = [sl.CenterOfMassTask(weight=10), sl.PostureTask(weight=0.1)]
    weak = robot.replace(effort_limit=np.zeros(robot.nv))
    for model, motors in ((robot, []), (weak, None)):
        for contacts in ((), feet):
            command = sl.OperationalSpaceControl(model, tasks, contacts, motors=motors)(q, v)
            assert command.status == sl.QPStatus.SOLVED and not command.tau.any() and np.isfinite(command.a).all()
    none = sl.OperationalSpaceControl(robot, tasks, feet)(np.zeros((0, robot.nq)), np.zeros((0, robot.nv)))
    assert none.tau.shape == (0, robot.nv) and none.status.shape == (0,)


def test_what_is_wrong_is_named() -> None:
    model = sl.load_robot("quadruped")
    with pytest.raises(sl.ModelError, match="slack_weight"):
        sl.OperationalSpaceControl(model, [sl.CenterOfMassTask()], slack_weight=0.0)
    with pytest.raises(sl.ModelError, match="friction"):
        sl.OperationalSpaceControl(model, [sl.CenterOfMassTask()], ["LF_FOOT"], friction=-1.0)
    with pytest.raises(sl.ModelError, match="a contact is"):
        sl.OperationalSpaceControl(model, [sl.CenterOfMassTask()], [("LF_FOOT", (0.0, 0.0))])
    control = sl.OperationalSpaceControl(model, [sl.CenterOfMassTask()])
    q = model.reference_configurations["standing"]
    with pytest.raises(ValueError, match="references as well as targets"):
        control(q, np.zeros(18), control.tasks.references(q), com=np.zeros(3))
    assert set(control.limited) == {model.joints[k].name for k in range(2, model.njoints)}
    assert len(limited_dofs(model, ["LF_HAA"])) == 1
