"""Inverse kinematics: targets in and out of reach, limits, priorities, floating bases, batches; motions of second order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import least_squares

import saltus as sl
from saltus import Reach
from saltus.kernel import driver
from tests.model.robots import ROBOTS

TALOS = ROBOTS / "talos_data" / "robots" / "talos_reduced.urdf"
PANDA = ROBOTS / "panda_description" / "urdf" / "panda.urdf"
HAND = "gripper_left_fingertip_1_link"
TOLERANCE = 1e-6


@pytest.fixture(scope="module")
def arm() -> sl.Model:
    return sl.load_robot("arm")


@pytest.fixture(scope="module")
def panda() -> sl.Model:
    return sl.load_urdf(PANDA)


@pytest.fixture(scope="module")
def talos() -> sl.Model:
    return sl.load_robot("talos")


def inside(model: sl.Model, q: np.ndarray) -> bool:
    return bool(((q >= model.lower_position_limit) & (q <= model.upper_position_limit)).all())


def null_space(rows: np.ndarray) -> np.ndarray:
    """The projection on it; rows that depend on others have singular values of rounding."""
    return np.eye(rows.shape[-1]) - np.linalg.pinv(rows, rcond=1e-8) @ rows


def free_dofs(model: sl.Model, q: np.ndarray) -> np.ndarray:
    """Those that no limit holds."""
    free = np.ones(model.nv)
    for joint in model.joints[1:]:
        if joint.nq == joint.nv:
            at = slice(joint.iq, joint.iq + joint.nq)
            low, high = model.lower_position_limit[at], model.upper_position_limit[at]
            free[joint.iv : joint.iv + joint.nv] = (q[at] > low + 1e-9) & (q[at] < high - 1e-9)
    return free


@pytest.mark.parametrize(("urdf", "frame"), [(PANDA, "panda_hand_tcp"), (TALOS, HAND)], ids=["panda", "talos"])
def test_targets_in_reach_are_reached_as_pinocchio_sees_it(urdf: Any, frame: str) -> None:
    model, peer = sl.load_urdf(urdf), pin.buildModelFromUrdf(str(urdf))
    data, index = peer.createData(), peer.getFrameId(frame)
    poses = sl.frame_placements(model, sl.random_configuration(model, 0, 300))[:, model.frame_index(frame)]
    found = sl.inverse_kinematics(model, [sl.FrameTask(frame)], {frame: poses})
    missed = []
    for q, pose in zip(found.q, poses, strict=True):
        assert inside(model, q)
        pin.framesForwardKinematics(peer, data, q)
        there = data.oMf[index]
        missed.append(np.linalg.norm(there.translation - pose[:3, 3]))
        missed[-1] = np.hypot(missed[-1], np.linalg.norm(pin.log3(there.rotation.T @ pose[:3, :3])))
    reached = np.array(missed) <= 1.001 * TOLERANCE
    assert (reached == (found.status == int(Reach.SOLVED))).all()
    assert reached.mean() >= 0.99
    np.testing.assert_allclose(found.errors[frame], missed, atol=1e-9)


def test_far_targets_are_approached_and_not_called_reached() -> None:
    """A chain of two links reaches the point of its circle that is nearest, stretched out."""
    model = sl.load_robot("double_pendulum")
    tip = model.frames[-1].name
    tasks = sl.TaskSet(model, [sl.FrameTask(tip, orientation="")])
    around = np.linspace(0.0, 2 * np.pi, 9)[:-1]
    q = sl.random_configuration(model, 0, 500)
    places = sl.frame_placements(model, q)[:, -1, :3, 3]
    base = sl.joint_placements(model, model.neutral())[1][:3, 3]
    plane = np.linalg.svd(places - places.mean(axis=0))[2][:2]
    targets = base + 50.0 * (np.cos(around)[:, None] * plane[0] + np.sin(around)[:, None] * plane[1])
    found = sl.inverse_kinematics(model, tasks, {tip: targets}, restarts=5)
    assert (found.status == int(Reach.STALLED)).all() and not found.met.any()
    rows = sl.task_rows(tasks, found.q, np.zeros(model.nv), tasks.references(**{tip: targets}))
    gradient = np.einsum("bij,bi->bj", rows.R, rows.error)
    for i, at in enumerate(found.q):
        assert np.abs(gradient[i] * free_dofs(model, at)).max() < 1e-4  # of 50 m times its arm


def test_targets_at_limits_are_reached_within_them(arm: sl.Model) -> None:
    rng = np.random.default_rng(1)
    q = sl.random_configuration(arm, rng, 40)
    low, high = arm.lower_position_limit, arm.upper_position_limit
    held = rng.integers(0, 3, q.shape)
    q = np.where(held == 1, low, np.where(held == 2, high, q))
    poses = sl.frame_placements(arm, q)[:, arm.frame_index("tool")]
    found = sl.inverse_kinematics(arm, [sl.FrameTask("tool")], {"tool": poses})
    assert inside(arm, found.q)
    there = sl.frame_placements(arm, found.q)[:, arm.frame_index("tool")]
    reached = np.abs(there - poses).max(axis=(1, 2)) < TOLERANCE
    assert reached.mean() >= 0.95  # a corner of the box may be the only solution
    assert reached[found.met].all()


def whole_body(talos: sl.Model) -> sl.TaskSet:
    """Both feet and the ground point of the centre of mass first, then a hand, then the posture."""
    return sl.TaskSet(
        talos,
        [
            sl.FrameTask("left_sole_link"),
            sl.FrameTask("right_sole_link"),
            sl.CenterOfMassTask(axes="xy"),
            sl.FrameTask(HAND, orientation="", priority=1),
            sl.PostureTask(priority=2),
        ],
    )


def test_lower_priorities_leave_higher_ones_alone(talos: sl.Model) -> None:
    """A humanoid on both feet, whose hand may be out of reach: whatever the hand wants, feet stay; it does what feet leave,
    and the posture what both leave (that the gradients of lower levels vanish in the null spaces of higher ones says so)."""
    tasks, q0 = whole_body(talos), talos.reference_configurations["half_sitting"]
    hand = sl.frame_placement(talos, q0, HAND)[:3, 3]
    targets = hand + np.random.default_rng(2).uniform(-0.4, 0.4, (32, 3))
    targets[:4, 0] += 3.0
    references = tasks.references(q0, **{HAND: targets})
    found = sl.inverse_kinematics(talos, tasks, references, q0, max_iterations=500)
    assert (found.status[4:] == int(Reach.PARTLY)).all() and found.met[4:].all()
    for name in ("left_sole_link", "right_sole_link", "com"):
        assert found.errors[name].max() <= TOLERANCE
    assert (found.errors[HAND][:4] > 1.0).all() and np.median(found.errors[HAND]) < TOLERANCE
    rows = sl.task_rows(tasks, found.q, np.zeros(talos.nv), references)
    feet, arm, posture = tasks.levels
    for i in np.flatnonzero(found.status == int(Reach.PARTLY)):
        q = found.q[i]
        R, error = rows.R[i] * free_dofs(talos, q), rows.error[i]
        below_feet, below_arm = null_space(R[feet]), null_space(R[: arm.stop])
        assert np.abs(below_feet @ R[arm].T @ error[arm]).max() < 1e-3 * max(1.0, np.linalg.norm(error[arm]))
        assert np.abs(below_arm @ R[posture].T @ error[posture]).max() < 1e-3


def test_the_first_of_two_contradictory_tasks_is_met(arm: sl.Model) -> None:
    here, there = sl.frame_placements(arm, sl.random_configuration(arm, 3, 2))[:, arm.frame_index("tool"), :3, 3]
    first = sl.FrameTask("tool", orientation="", name="first")
    second = sl.FrameTask("tool", orientation="", name="second", priority=1)
    found = sl.inverse_kinematics(arm, [second, first], {"first": here, "second": there})
    assert found.status is Reach.PARTLY and found.met
    assert found.errors["first"] <= TOLERANCE
    np.testing.assert_allclose(found.errors["second"], np.linalg.norm(there - here), atol=2 * TOLERANCE)


def test_weights_decide_within_a_priority(arm: sl.Model) -> None:
    """No general solver finds less of the weighted squares nearby."""
    rng = np.random.default_rng(4)
    q0 = np.array([0.3, 0.4, -0.2, 1.4, 0.3, 1.5, 0.1])
    weights = {"tool": 3.0, "posture": 0.2}
    tasks = sl.TaskSet(
        arm, [sl.FrameTask("tool", orientation="", weight=weights["tool"]), sl.PostureTask(weight=weights["posture"])]
    )
    place = sl.frame_placement(arm, q0, "tool")[:3, 3] + rng.uniform(-0.2, 0.2, 3)
    found = sl.inverse_kinematics(arm, tasks, tasks.references(q0, tool=place), q0)

    def residuals(q: np.ndarray) -> np.ndarray:
        missed = sl.frame_placement(arm, q, "tool")[:3, 3] - place
        return np.r_[np.sqrt(weights["tool"]) * missed, np.sqrt(weights["posture"]) * (q - q0)]

    best = least_squares(residuals, q0, xtol=1e-15, ftol=1e-15, gtol=1e-15)
    np.testing.assert_allclose(found.q, best.x, atol=1e-5)
    assert found.status is Reach.STALLED and not found.met  # neither of them is met


def test_searches_begin_within_limits(arm: sl.Model) -> None:
    """However far outside they are told to: what starts anew as well."""
    pose = sl.frame_placement(arm, np.array([0.3, 0.4, -0.2, 1.4, 0.3, 1.5, 0.1]), "tool")
    outside = arm.upper_position_limit + np.array([[0.0], [10.0], [100.0]])
    found = sl.inverse_kinematics(arm, [sl.FrameTask("tool")], {"tool": pose}, outside)
    assert found.met.all() and all(inside(arm, q) for q in found.q)


def test_what_no_task_moves_stays() -> None:
    fixed = sl.load_urdf(TALOS)
    q0 = sl.random_configuration(fixed, 5)
    pose = sl.frame_placement(fixed, sl.random_configuration(fixed, 6), HAND)
    found = sl.inverse_kinematics(fixed, [sl.FrameTask(HAND)], {HAND: pose}, q0)
    legs = [joint.iq for joint in fixed.joints[1:] if "leg" in joint.name or "right" in joint.name]
    assert found.status is Reach.SOLVED and (found.q[legs] == q0[legs]).all()


def test_postures_centres_of_mass_and_momenta(talos: sl.Model) -> None:
    """Each alone: a posture is taken in a few steps; momenta say nothing of configurations."""
    q = sl.random_configuration(talos, 12)
    q[:7] = talos.neutral()[:7]
    posture = sl.inverse_kinematics(talos, [sl.PostureTask()], {"posture": q})
    assert posture.status is Reach.SOLVED and posture.iterations <= 10
    np.testing.assert_allclose(posture.q, q, atol=TOLERANCE)
    tasks = [sl.CenterOfMassTask(), sl.FrameTask("left_sole_link"), sl.MomentumTask()]
    center = sl.center_of_mass(talos, q) + np.array([0.3, 0.1, -0.05])
    found = sl.inverse_kinematics(talos, tasks, sl.TaskSet(talos, tasks).references(q, com=center))
    assert found.status is Reach.SOLVED
    np.testing.assert_allclose(sl.center_of_mass(talos, found.q), center, atol=TOLERANCE)


def test_a_batch_is_what_its_samples_are(panda: sl.Model) -> None:
    """Bit for bit, however many there are: what is done makes room for others, and changes none of them."""
    frame = "panda_hand_tcp"
    tasks = sl.TaskSet(panda, [sl.FrameTask(frame)])
    poses = sl.frame_placements(panda, sl.random_configuration(panda, 7, 120))[:, panda.frame_index(frame)]
    references = tasks.references(**{frame: poses})
    many = sl.inverse_kinematics(panda, tasks, references)
    few = sl.inverse_kinematics(panda, tasks, references[50:53])
    assert (many.q[50:53] == few.q).all() and (many.iterations[50:53] == few.iterations).all()
    shaped = sl.inverse_kinematics(panda, tasks, references.reshape(4, 30, -1))
    assert (shaped.q.reshape(120, -1) == many.q).all() and shaped.status.shape == (4, 30)
    single = sl.inverse_kinematics(panda, tasks, references[0])
    assert isinstance(single.status, Reach) and single.status is Reach.SOLVED
    assert single.q.shape == (panda.nq,) and single.iterations.shape == ()


def test_near_targets_are_reached_nearby(panda: sl.Model) -> None:
    """From each other sample's solution, one start is enough, as in a loop of a controller."""
    frame = "panda_hand_tcp"
    middle = 0.5 * (panda.lower_position_limit + panda.upper_position_limit)
    rng = np.random.default_rng(8)
    q = middle + rng.uniform(-0.1, 0.1, (64, panda.nq)) * (np.arange(panda.nq) < 7)
    poses = sl.frame_placements(panda, q)[:, panda.frame_index(frame)]
    found = sl.inverse_kinematics(panda, [sl.FrameTask(frame)], {frame: poses}, middle, restarts=0)
    assert (found.status == int(Reach.SOLVED)).all() and (found.starts == 1).all()
    assert np.abs(found.q - middle).max() < 1.0


def test_samples_that_are_not_finite_are_marked(arm: sl.Model) -> None:
    tasks = sl.TaskSet(arm, [sl.FrameTask("tool")])
    poses = sl.frame_placements(arm, sl.random_configuration(arm, 9, 20))[:, arm.frame_index("tool")]
    references = tasks.references(tool=poses)
    good = sl.inverse_kinematics(arm, tasks, references)
    references[3, 10] = np.nan
    with pytest.raises(ValueError, match=r"references\[3, 10\] is nan, expected finite numbers"):
        sl.inverse_kinematics(arm, tasks, references)
    found = sl.inverse_kinematics(arm, tasks, references, on_invalid="mark")
    assert found.status[3] == int(Reach.NOT_FINITE) and np.isnan(found.q[3]).all() and not found.met[3]
    others = np.arange(20) != 3
    assert (found.q[others] == good.q[others]).all()


def test_what_is_no_rotation(arm: sl.Model) -> None:
    """In an array as in a mapping; marked, others of a batch are found."""
    tasks = sl.TaskSet(arm, [sl.FrameTask("tool")])
    q = sl.random_configuration(arm, 3, 12)
    given = tasks.references(q)
    wrong = given.copy()
    for sample, R in ((2, np.zeros((3, 3))), (5, np.diag([1.0, 1.0, -1.0])), (7, 1.5 * np.eye(3))):
        wrong[sample, :9] = R.ravel()
        with pytest.raises(sl.ModelError, match="references of 'tool': a rotation is not one"):
            sl.inverse_kinematics(arm, tasks, wrong[sample])
    with pytest.raises(sl.ModelError, match="references of 'tool': a rotation is not one"):
        sl.inverse_kinematics(arm, tasks, wrong)
    found = sl.inverse_kinematics(arm, tasks, wrong, on_invalid="mark")
    bad = np.isin(np.arange(12), [2, 5, 7])
    assert (
        (found.status[bad] == int(Reach.NOT_FINITE)).all() and np.isnan(found.q[bad]).all() and not found.met[bad].any()
    )
    assert (found.q[~bad] == sl.inverse_kinematics(arm, tasks, given).q[~bad]).all()


def test_numbers_of_all_kinds(arm: sl.Model) -> None:
    """Integers, none at all, more steps than kernels count; and counts of what was not valid."""
    tasks = sl.TaskSet(arm, [sl.FrameTask("tool")])
    pose = sl.frame_placement(arm, np.full(7, 0.4), "tool")
    assert sl.inverse_kinematics(arm, tasks, {"tool": pose}, [0, 0, 0, 1, 0, 1, 0], restarts=10**12).met
    none = sl.inverse_kinematics(arm, tasks, {"tool": np.zeros((0, 4, 4))})
    assert none.q.shape == (0, 7) and none.met.shape == (0,)
    marked = sl.inverse_kinematics(arm, tasks, np.full((2, 24), np.nan), on_invalid="mark")
    assert marked.iterations.tolist() == marked.starts.tolist() == [0, 0]


def test_limits_of_what_no_task_moves(arm: sl.Model) -> None:
    """And of what is never tried: it is the nearest within them."""
    outside = arm.upper_position_limit + 0.3
    tasks = [sl.PostureTask(joints=(arm.joints[1].name,))]
    for steps in (0, 60):
        found = sl.inverse_kinematics(arm, tasks, {"posture": np.zeros(7)}, outside, max_iterations=steps, restarts=2)
        assert (found.q <= arm.upper_position_limit).all()
        assert (found.q[1:] == arm.upper_position_limit[1:]).all()


@pytest.mark.slow
def test_single_precision(panda: sl.Model) -> None:
    frame = "panda_hand_tcp"
    tasks = sl.TaskSet(panda, [sl.FrameTask(frame)])
    poses = sl.frame_placements(panda, sl.random_configuration(panda, 10, 200))[:, panda.frame_index(frame)]
    references = tasks.references(**{frame: poses}).astype(np.float32)
    found = sl.inverse_kinematics(panda, tasks, references, panda.neutral().astype(np.float32), tolerance=1e-4)
    there = sl.frame_placements(panda, found.q.astype(float))[:, panda.frame_index(frame)]
    assert found.q.dtype == np.float32 and found.met.mean() >= 0.99
    assert np.abs(there - poses)[found.met].max() < 2e-4


WRONG = {
    "tolerance": ({"tolerance": 0.0}, "tolerance is 0.0, expected a finite number, more than 0"),
    "endless tolerance": ({"tolerance": np.inf}, "tolerance is inf, expected a finite number"),
    "steps": ({"max_iterations": -1}, "max_iterations is -1, expected 0 or more"),
    "restarts": ({"restarts": -2}, "restarts is -2, expected 0 or more"),
    "start": ({"q0": np.zeros(3)}, "q0 has shape \\(3,\\), expected \\(..., 7\\)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_it_says_what_is_wrong(arm: sl.Model, name: str) -> None:
    options, words = WRONG[name]
    tasks = sl.TaskSet(arm, [sl.FrameTask("tool")])
    with pytest.raises(ValueError, match=words):
        sl.inverse_kinematics(arm, tasks, tasks.references(arm.neutral()), **options)


def test_tasks_of_another_robot_are_refused(arm: sl.Model, panda: sl.Model) -> None:
    with pytest.raises(sl.ModelError, match="those of another model, 'panda', expected 'arm'"):
        sl.inverse_kinematics(arm, sl.TaskSet(panda, [sl.PostureTask()]), {})


# ---------------------------------------------------------------------------------------------------------- second order


def swing(arm: sl.Model, tasks: sl.TaskSet, dt: float, sizes: np.ndarray | float = 1.0) -> tuple[np.ndarray, Any]:
    """References of a tool that swings, and the motion that follows them; `sizes` (...): of its way."""
    q0 = np.array([0.3, 0.4, -0.2, 1.4, 0.3, 1.5, 0.1])
    start = sl.frame_placement(arm, q0, "tool")
    t = np.arange(0.0, 0.6 + 0.5 * dt, dt)[:, None]
    way, axis = np.multiply.outer(sizes, [-0.05, 0.03, 0.04])[..., None, :], np.array([0.3, -0.2, 0.2])
    turns = np.stack([pin.exp3(float(s) * axis) for s in np.sin(2 * t[:, 0])]) @ start[:3, :3]
    still = np.zeros_like(way)
    target = sl.Target(
        (turns, start[:3, 3] + way * np.sin(3 * t)),
        np.concatenate([3 * way * np.cos(3 * t), still + 2 * np.cos(2 * t) * axis], axis=-1),
        np.concatenate([-9 * way * np.sin(3 * t), still - 4 * np.sin(2 * t) * axis], axis=-1),
    )
    references = tasks.references(q0, tool=target)
    return references, sl.kinematic_trajectory(arm, tasks, references, q0, dt=dt)


LISTS = {
    "pose": [sl.FrameTask("tool")],
    "position": [sl.FrameTask("tool", orientation="")],
    "posture below": [sl.FrameTask("tool", orientation="xy", reference="local"), sl.PostureTask(priority=1, weight=0.3)],
    "no momentum": [sl.FrameTask("tool", orientation=""), sl.MomentumTask(axes="xz", priority=1)],
    "posture beside": [sl.FrameTask("tool", orientation=""), sl.PostureTask(weight=0.1)],
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_motions_belong_together(arm: sl.Model, name: str) -> None:
    """Differences of q and v over time are v and a, up to the square of the step: a half of it, a quarter of the error."""
    tasks = sl.TaskSet(arm, LISTS[name])
    off = []
    for dt in (0.02, 0.01, 0.005):
        references, motion = swing(arm, tasks, dt)
        v = (motion.q[2:] - motion.q[:-2]) / (2 * dt)
        a = (motion.v[2:] - motion.v[:-2]) / (2 * dt)
        off.append([np.abs(v - motion.v[1:-1]).max(), np.abs(a - motion.a[1:-1]).max()])
        if name != "posture beside":
            rows = tasks.rows["tool"]
            here = sl.task_rows(tasks, motion.q, motion.v, references)
            assert motion.errors["tool"].max() < TOLERANCE
            assert np.abs(here.rate_error[:, rows]).max() < 20 * TOLERANCE
            feed_forward = here.goal + here.drift - 100.0 * here.error - 20.0 * here.rate_error
            missed = np.einsum("tij,tj->ti", here.R, motion.a) + here.drift - feed_forward
            assert np.abs(missed[:, rows]).max() < 100 * TOLERANCE
    off = np.array(off)
    assert (off[0] < [0.01, 0.05]).all()
    assert (off[:-1] / off[1:] > 3.0).all()


def test_motions_of_many_are_those_of_one(arm: sl.Model) -> None:
    tasks = sl.TaskSet(arm, LISTS["position"])
    sizes = np.linspace(0.2, 1.0, 12)
    _, many = swing(arm, tasks, 0.02, sizes)
    _, one = swing(arm, tasks, 0.02, sizes[3])
    assert many.q.shape == (12, len(many.t), arm.nq)
    for name in ("q", "v", "a"):
        np.testing.assert_allclose(getattr(many, name)[3], getattr(one, name), atol=1e-9)


def test_motions_out_of_reach_stay_finite(arm: sl.Model) -> None:
    tasks = sl.TaskSet(arm, LISTS["position"])
    _, motion = swing(arm, tasks, 0.01, 30.0)
    assert np.isfinite(motion.q).all() and np.isfinite(motion.a).all() and inside(arm, motion.q)
    assert motion.errors["tool"].max() > 0.1


# ------------------------------------------------------------------------------------------------------------------- GPU


@pytest.mark.skipif(not driver.is_there(), reason="needs a GPU")
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_on_a_gpu(panda: sl.Model, library: str) -> None:
    there: Any = pytest.importorskip(library).asarray
    on = {"device": "cuda"} if library == "torch" else {}
    frame = "panda_hand_tcp"
    tasks = sl.TaskSet(panda, [sl.FrameTask(frame)])
    poses = sl.frame_placements(panda, sl.random_configuration(panda, 11, 1000))[:, panda.frame_index(frame)]
    references = tasks.references(**{frame: poses})
    found = sl.inverse_kinematics(panda, tasks, there(references, **on))
    back: Any = found.q.get() if library == "cupy" else found.q.cpu().numpy()
    errors = sl.frame_placements(panda, back)[:, panda.frame_index(frame)] - poses
    assert float(found.met.sum()) >= 990 and (np.abs(errors).max(axis=(1, 2)) < TOLERANCE).mean() >= 0.99
