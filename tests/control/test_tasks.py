"""Tasks: rows, errors and drifts against Pinocchio and along the flow; references; what is refused."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

import saltus as sl
from tests.generators import floating_tree, make_tree, random_state
from tests.model.robots import ROBOTS

TALOS = ROBOTS / "talos_data" / "robots" / "talos_reduced.urdf"
LEFT, RIGHT = "arm_left_7_link", "arm_right_7_link"
ROUNDING = 1e-12
"""Of numbers of size 10, after some hundred operations."""


@pytest.fixture(scope="module")
def talos() -> sl.Model:
    return sl.load_urdf(TALOS, floating_base=True)


def every_kind(model: sl.Model, first: str, second: str) -> sl.TaskSet:
    """One of each kind of task."""
    return sl.TaskSet(
        model,
        [
            sl.PostureTask(priority=1, kp=7.0, kd=3.0),
            sl.CenterOfMassTask(kp=(10, 20, 30)),
            sl.FrameTask(first),
            sl.FrameTask(second, position="zx", orientation="y", reference="local", priority=1, name="tilt"),
            sl.MomentumTask(axes="yx"),
        ],
    )


def test_rows_are_pinocchio_s(talos: sl.Model) -> None:
    tasks = every_kind(talos, LEFT, RIGHT)
    rng = np.random.default_rng(0)
    q = sl.random_configuration(talos, rng)
    q_wanted = sl.integrate(talos, q, rng.uniform(-0.5, 0.5, talos.nv))
    v = rng.normal(size=talos.nv)
    found = sl.task_rows(tasks, q, v, tasks.references(q_wanted))

    model = pin.buildModelFromUrdf(str(TALOS), pin.JointModelFreeFlyer())
    data, goal = model.createData(), model.createData()
    pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
    pin.framesForwardKinematics(model, goal, q_wanted)
    pin.centerOfMass(model, goal, q_wanted)
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    pin.computeCentroidalMapTimeVariation(model, data, q, v)
    map_rate, momentum_map = data.dAg @ v, data.Ag.copy()
    com_jacobian = pin.jacobianCenterOfMass(model, data, q).copy()
    left, right = model.getFrameId(LEFT), model.getFrameId(RIGHT)
    R, R_goal = data.oMf[right].rotation, goal.oMf[right].rotation
    shift = [goal.oMf[k].translation - data.oMf[k].translation for k in (left, right)]
    tilt, turn = [2, 0, 4], pin.Quaternion(R.T @ R_goal).coeffs()
    # Along a frame's own axes, rows are those of the point of the body that is where it should go.
    lever = pin.SE3(np.eye(3), R.T @ shift[1]).toActionMatrixInverse()
    tilted = (lever @ pin.getFrameJacobian(model, data, right, pin.LOCAL))[tilt]
    spatial = lever @ pin.getFrameAcceleration(model, data, right, pin.LOCAL).vector
    velocity = lever @ pin.getFrameVelocity(model, data, right, pin.LOCAL).vector
    tilt_drift = (spatial + np.r_[np.cross(velocity[3:], velocity[:3]), np.zeros(3)])[tilt]
    expected = {
        "com": (com_jacobian, goal.com[0] - data.com[0], map_rate[:3] / data.mass[0]),
        LEFT: (
            pin.getFrameJacobian(model, data, left, pin.LOCAL_WORLD_ALIGNED),
            np.r_[shift[0], pin.log3(goal.oMf[left].rotation @ data.oMf[left].rotation.T)],
            pin.getFrameClassicalAcceleration(model, data, left, pin.LOCAL_WORLD_ALIGNED).vector,
        ),
        "tilt": (
            tilted,
            np.r_[R.T @ shift[1], 2.0 * np.arctan2(turn[1], turn[3]) * np.eye(3)[1]][tilt],
            tilt_drift,
        ),
        "posture": (np.eye(model.nv)[6:], pin.difference(model, q, q_wanted)[6:], np.zeros(model.nv - 6)),
        "momentum": (momentum_map[[4, 3]], np.zeros(2), map_rate[[4, 3]]),
    }
    for name, (J, error, drift) in expected.items():
        rows = tasks.rows[name]
        np.testing.assert_allclose(found.R[rows], J, atol=ROUNDING, err_msg=name)
        np.testing.assert_allclose(found.error[rows], error, atol=ROUNDING, err_msg=name)
        np.testing.assert_allclose(found.rate_error[rows], -J @ v, atol=10 * ROUNDING, err_msg=name)
        np.testing.assert_allclose(found.drift[rows], drift, atol=10 * ROUNDING, err_msg=name)


@pytest.mark.parametrize("seed", range(6))
def test_rates_and_drifts_follow_the_flow(seed: int) -> None:
    """On trees of all kinds of joints: errors fall as R v says, and R v changes as the drift says while v stays."""
    model = make_tree(seed, 8).model if seed % 2 else floating_tree(seed, 8)
    frames = [frame.name for frame in model.frames if frame.joint > 0]
    tasks = sl.TaskSet(
        model,
        [sl.CenterOfMassTask(), sl.FrameTask(frames[-1]), sl.MomentumTask(), sl.PostureTask(priority=1)],
    )
    state = random_state(model, seed)
    q, v, h = state.q, 0.5 * state.v, 1e-5
    references = tasks.references(q)
    here, before, after = (sl.task_rows(tasks, sl.integrate(model, q, t * v), v, references) for t in (0.0, -h, h))
    scale = 1.0 + np.abs(here.R).max()
    placed = np.r_[tuple(np.arange(rows.start, rows.stop) for name, rows in tasks.rows.items() if name != "momentum")]
    slope = (before.error - after.error)[placed] / (2 * h)
    np.testing.assert_allclose(slope, (here.R @ v)[placed], atol=1e-8 * scale)
    moved = [slice(r.start, r.stop) for name, r in tasks.rows.items() if name != "posture"]
    for rows in moved:
        slope = (after.R[rows] @ v - before.R[rows] @ v) / (2 * h)
        np.testing.assert_allclose(slope, here.drift[rows], atol=1e-8 * scale)


def test_goals_are_feedback_and_feed_forward(talos: sl.Model) -> None:
    tasks = every_kind(talos, LEFT, RIGHT)
    rng = np.random.default_rng(1)
    q, q_wanted = sl.random_configuration(talos, rng, 2)
    v, size = rng.normal(size=talos.nv), talos.nv
    speeds = {
        "com": (rng.normal(size=3), rng.normal(size=3)),
        LEFT: (rng.normal(size=6), rng.normal(size=6)),
        "posture": (rng.normal(size=size), rng.normal(size=size)),
        "momentum": (rng.normal(size=3), rng.normal(size=3)),
    }
    targets = {name: sl.Target(None, *pair) for name, pair in speeds.items()}
    found = sl.task_rows(tasks, q, v, tasks.references(q_wanted, **targets))
    gains = {
        "com": ([10, 20, 30], 20),
        LEFT: (100, 20),
        "posture": (7, 3),
        "momentum": (0, 20),
    }
    chosen = {"com": [0, 1, 2], LEFT: list(range(6)), "posture": list(range(6, size)), "momentum": [1, 0]}
    for name, (kp, kd) in gains.items():
        rows = tasks.rows[name]
        rate, wanted = (x[chosen[name]] for x in speeds[name]) if name in speeds else (np.zeros(3), np.zeros(3))
        rate_error = rate - found.R[rows] @ v
        goal = np.multiply(kp, found.error[rows]) + np.multiply(kd, rate_error) + wanted - found.drift[rows]
        np.testing.assert_allclose(found.rate_error[rows], rate_error, atol=10 * ROUNDING, err_msg=name)
        np.testing.assert_allclose(found.goal[rows], goal, atol=1e3 * ROUNDING, err_msg=name)


def test_tasks_are_ordered_by_priority_with_postures_last(talos: sl.Model) -> None:
    tasks = every_kind(talos, LEFT, RIGHT)
    assert [task.name for task in tasks.tasks] == ["com", LEFT, "momentum", "tilt", "posture"]
    assert tasks.levels == [slice(0, 11), slice(11, 46)]
    assert list(tasks.rows.values()) == [slice(0, 3), slice(3, 9), slice(9, 11), slice(11, 14), slice(14, 46)]


def test_many_states_are_as_one(talos: sl.Model) -> None:
    tasks = every_kind(talos, LEFT, RIGHT)
    rng = np.random.default_rng(2)
    q, v = sl.random_configuration(talos, rng, 21), rng.normal(size=(21, talos.nv))
    references = tasks.references(sl.random_configuration(talos, rng, 21))
    many = sl.task_rows(tasks, q, v, references)
    for i in (0, 7, 20):
        for found, one in zip(many, sl.task_rows(tasks, q[i], v[i], references[i]), strict=True):
            np.testing.assert_allclose(found[i], one, atol=1e3 * ROUNDING)


@pytest.mark.parametrize("reference", ["local", "local_world_aligned"])
@pytest.mark.parametrize("axes", ["xy", "zx", "z", "xyz"])
def test_errors_along_some_axes_fall_as_their_rows_say(talos: sl.Model, reference: str, axes: str) -> None:
    """However far the turn is about an axis that is left out; and their second derivative is what goals make it."""
    task = sl.FrameTask(LEFT, position=axes, orientation=axes, reference=reference, kp=0.0, kd=0.0)
    tasks = sl.TaskSet(talos, [task])
    rng, h = np.random.default_rng(6), 1e-4
    q, v, a = sl.random_configuration(talos, rng), rng.normal(size=talos.nv), rng.normal(size=talos.nv)
    X, free = sl.frame_placement(talos, q, LEFT), np.array([float(axis not in axes) for axis in "xyz"])
    side = X[:3, :3] if reference == "local" else np.eye(3)
    shift = pin.exp3(side @ free * 1.3) if axes != "z" else np.eye(3)
    goal = (shift @ X[:3, :3], X[:3, 3] + side @ (0.4 * free))
    still = tasks.references(**{LEFT: goal})

    def at(t: float) -> tuple[np.ndarray, np.ndarray]:
        return sl.integrate(talos, q, t * v + 0.5 * t * t * a), v + t * a

    before, here, after = (sl.task_rows(tasks, *at(t), still) for t in (-h, 0.0, h))
    np.testing.assert_allclose(here.error, 0.0, atol=1e-9)
    np.testing.assert_allclose((after.error - before.error) / (2 * h), -here.R @ v, atol=1e-5)
    second = (after.error - 2 * here.error + before.error) / h**2
    np.testing.assert_allclose(second, here.goal - here.R @ a, atol=1e-4)


def test_rotations_are_told_apart_up_to_half_a_turn() -> None:
    """Errors of orientation by the logarithm, however far."""
    builder = sl.ModelBuilder("ball")
    builder.add_body(builder.add_joint("root", "free_flyer"), mass=1.0, inertia=np.eye(3))
    ball = builder.build()
    tasks = sl.TaskSet(ball, [sl.FrameTask("root", position="")])
    rng = np.random.default_rng(3)
    axes = rng.normal(size=(40, 3))
    axes /= np.linalg.norm(axes, axis=-1, keepdims=True)
    turns = axes * np.r_[0.0, 1e-9, 1e-4, np.linspace(0.1, np.pi - 1e-6, 37)][:, None]
    references = tasks.references(root=Rotation.from_rotvec(turns).as_matrix())
    found = sl.task_rows(tasks, ball.neutral(), np.zeros(6), references)
    np.testing.assert_allclose(found.error, turns, atol=1e-9)  # 1e-16 of a rotation matrix is 1e-10 so near to pi


def test_references_take_poses_in_every_form() -> None:
    arm = sl.load_robot("arm")
    q = sl.random_configuration(arm, 4)
    X = sl.frame_placement(arm, q, "tool")
    pose = sl.TaskSet(arm, [sl.FrameTask("tool")])
    expected = pose.references(q)
    for given in (X, (X[:3, :3], X[:3, 3]), sl.Target(X)):
        np.testing.assert_allclose(pose.references(tool=given), expected, atol=ROUNDING)
    point = sl.TaskSet(arm, [sl.FrameTask("tool", orientation="")])
    assert point.references(tool=np.zeros((5, 4, 3))).shape == (5, 4, 24)
    assert point.references(tool=sl.Target(np.zeros(3), [1, 2, 3]))[12:18].tolist() == [1, 2, 3, 0, 0, 0]
    turn = sl.TaskSet(arm, [sl.FrameTask("tool", position="")])
    np.testing.assert_allclose(turn.references(tool=X[:3, :3])[:9], expected[:9], atol=ROUNDING)


def test_rates_of_references_are_those_of_their_numbers(talos: sl.Model) -> None:
    tasks = every_kind(talos, LEFT, RIGHT)
    rng, h = np.random.default_rng(5), 1e-6
    q, v = sl.random_configuration(talos, rng), rng.normal(size=talos.nv)

    def at(t: float) -> np.ndarray:
        here = sl.integrate(talos, q, t * v)
        rates = {
            "com": sl.Target(None, (sl.center_of_mass_jacobian(talos, here) @ v), None),
            LEFT: sl.Target(None, sl.frame_velocity(talos, here, v, LEFT, "local_world_aligned")),
            "posture": sl.Target(None, v),
        }
        return tasks.references(here, **rates)

    slopes, found = (at(h) - at(-h)) / (2 * h), tasks.reference_rates(at(0.0))
    for name in ("com", LEFT, "posture"):
        np.testing.assert_allclose(found[tasks.places[name].value], slopes[tasks.places[name].value], atol=1e-7)


ARM = sl.load_robot("arm")
WRONG_TASKS = {
    "axes": (lambda: sl.CenterOfMassTask(axes="xw"), "axes is 'xw', expected some of x, y and z"),
    "no axes": (lambda: sl.MomentumTask(axes=""), "axes is '', expected some of"),
    "nothing": (lambda: sl.FrameTask("tool", "", ""), "position and orientation are empty"),
    "reference": (lambda: sl.FrameTask("tool", reference="world"), "reference is 'world', expected"),
    "frame": (lambda: sl.FrameTask(3), "the frame is 3, expected its name"),
    "gains": (lambda: sl.FrameTask("tool", orientation="", kp=(1, 2)), "kp of task 'tool' has shape"),
    "negative": (lambda: sl.CenterOfMassTask(kd=-1), "kd of task 'com' is .* expected nothing negative"),
    "weight": (lambda: sl.CenterOfMassTask(weight=0), "weight is 0.0, expected more than 0"),
    "priority": (lambda: sl.CenterOfMassTask(priority=-1), "priority of task 'com' is -1, expected 0 or more"),
    "joints": (lambda: sl.PostureTask(joints="knee"), "joints are 'knee', expected names"),
    "no such frame": (lambda: sl.TaskSet(ARM, [sl.FrameTask("tol")]), "no frame 'tol'; did you mean 'tool'"),
    "no such joint": (lambda: sl.TaskSet(ARM, [sl.PostureTask(joints=["knee"])]), "no joint 'knee'"),
    "posture's gains": (lambda: sl.TaskSet(ARM, [sl.PostureTask(kp=(1, 2))]), "kp of task 'posture' has shape"),
    "same names": (lambda: sl.TaskSet(ARM, [sl.FrameTask("tool"), sl.FrameTask("tool")]), "names that differ"),
    "none": (lambda: sl.TaskSet(ARM, []), "expected at least one"),
    "no task": (lambda: sl.TaskSet(ARM, ["tool"]), "a task is 'tool', expected one of CenterOfMassTask"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_TASKS)
def test_tasks_say_what_is_wrong(name: str) -> None:
    make, words = WRONG_TASKS[name]
    with pytest.raises((sl.ModelError, TypeError), match=words):
        make()


WRONG_REFERENCES = {
    "unknown": ({"hand": np.eye(4)}, "there is no task 'hand', expected one of tool"),
    "missing": ({}, "no target of tool, expected one, or q to stay in"),
    "shape": ({"tool": np.zeros(3)}, "tool has shape \\(3,\\), expected \\(..., 4, 4\\)"),
    "rotation": ({"tool": 2.0 * np.eye(4)}, "a rotation is not one"),
    "reflection": ({"tool": (-np.eye(3), np.zeros(3))}, "it is a reflection"),
    "rate": ({"tool": sl.Target(np.eye(4), np.zeros(3))}, "tool, rate has shape"),
}


@pytest.mark.parametrize("name", WRONG_REFERENCES)
def test_references_say_what_is_wrong(name: str) -> None:
    targets, words = WRONG_REFERENCES[name]
    with pytest.raises(sl.ModelError, match=words):
        sl.TaskSet(ARM, [sl.FrameTask("tool")]).references(**targets)


@pytest.mark.parametrize("reference", ["local", "local_world_aligned"])
def test_an_axis_that_points_the_other_way(reference: str) -> None:
    """Half a turn about an axis across the free one: any such way is as short, and it is one of them."""
    arm = sl.load_robot("arm")
    tasks = sl.TaskSet(arm, [sl.FrameTask("tool", position="", orientation="xy", reference=reference)])
    q = arm.neutral()
    here = sl.frame_placement(arm, q, "tool")
    turned = here[:3, :3] @ np.diag([1.0, -1.0, -1.0])
    goal = (turned if reference == "local" else np.diag([1.0, -1.0, -1.0]) @ here[:3, :3], here[:3, 3])
    rows = sl.task_rows(tasks, np.stack([q, q]), np.zeros((2, arm.nv)), tasks.references(q, tool=goal))
    assert np.allclose(np.linalg.norm(rows.error, axis=-1), np.pi) and np.isfinite(rows.R).all()
