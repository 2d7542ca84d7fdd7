"""Models with joints locked, and models joined: against Pinocchio, and against the robots that they are made of."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import saltus as sl
from benchmarks.robots import pinocchio_model, saltus_model
from saltus.collision.scene import candidate_pairs
from tests.closeness import assert_close
from tests.model.test_mimic import MODEL as GRIPPER


def configuration(model: sl.Model, seed: int = 1) -> Any:
    return sl.random_configuration(model, seed)


def part(model: sl.Model, name: str, q: Any) -> Any:
    joint = model.joints[model.joint_index(name)]
    return q[joint.iq : joint.iq + joint.nq]


def assert_same(ours: sl.Model, theirs: pin.Model) -> None:
    """Names, frames, limits and dynamics of a model are those of one of Pinocchio's."""
    data, rng = theirs.createData(), np.random.default_rng(0)
    q, (v, tau) = configuration(ours), rng.normal(size=(2, ours.nv))
    assert [joint.name for joint in ours.joints] == list(theirs.names)
    assert_close(sl.crba(ours, q), pin.crba(theirs, data, q), 1e-12)
    assert_close(sl.rnea(ours, q, v, tau), pin.rnea(theirs, data, q, v, tau), 1e-12)
    limits = ("lower_position_limit", "upper_position_limit", "velocity_limit", "effort_limit", "armature")
    right = (theirs.lowerPositionLimit, theirs.upperPositionLimit, theirs.velocityLimit, theirs.effortLimit)
    for name, value in zip(limits, (*right, theirs.armature), strict=True):
        np.testing.assert_array_equal(getattr(ours, name), value)
    assert len(ours.frames) == theirs.nframes
    pin.framesForwardKinematics(theirs, data, q)
    for frame, place in zip(ours.frames, sl.frame_placements(ours, q), strict=True):
        index = theirs.getFrameId(frame.name, pin.FrameType.values[int(frame.kind)])
        assert index < theirs.nframes and theirs.frames[index].parentJoint == frame.joint
        assert_close(place, data.oMf[index].homogeneous, 1e-12, 1.0)


@pytest.mark.parametrize("robot", ["panda", "solo12", "talos38"])
def test_reduced_against_pinocchio(robot: str) -> None:
    model, peer = saltus_model(robot), pinocchio_model(robot)
    q, chosen = configuration(model), [3, 5, 6, model.njoints - 1]
    ours = sl.reduce_model(model, {model.joints[i].name: part(model, model.joints[i].name, q) for i in chosen})
    assert_same(ours, pin.buildReducedModel(peer, chosen, q))


@pytest.mark.parametrize("frame", ["base_link", "arm_left_5_link", "universe"])
def test_joined_against_pinocchio(frame: str) -> None:
    base, arm, place = saltus_model("talos38"), saltus_model("panda"), sl.exp6([0.3, -0.2, 0.5, 1.0, -0.4, 0.2])
    peer = pinocchio_model("talos38")
    right = pin.appendModel(peer, pinocchio_model("panda"), peer.getFrameId(frame), pin.SE3(place))
    assert_same(sl.join_models(base, arm, frame, place), right)


@pytest.mark.parametrize("seed", range(6))
def test_a_locked_joint_does_not_move(seed: int) -> None:
    """Of trees with all kinds of joints: inertias and torques are those of the whole robot whose locked joints are still."""
    model = sl.random_model(seed=seed, bodies=9)
    q, rng = configuration(model, seed), np.random.default_rng(seed)
    locked = sorted(rng.choice(np.arange(1, model.njoints), 4, replace=False).tolist())
    names = {model.joints[i].name for i in locked}
    reduced = sl.reduce_model(model, {name: part(model, name, q) for name in names})
    free = [joint for joint in model.joints[1:] if joint.name not in names]
    iq = [k for joint in free for k in range(joint.iq, joint.iq + joint.nq)]
    iv = [k for joint in free for k in range(joint.iv, joint.iv + joint.nv)]
    v, a = np.zeros((2, model.nv))
    v[iv], a[iv] = rng.normal(size=(2, len(iv)))
    M = sl.crba(model, q)
    assert_close(sl.crba(reduced, q[iq]), M[np.ix_(iv, iv)], 1e-12, np.abs(M).max())
    tau = sl.rnea(model, q, v, a)
    assert_close(sl.rnea(reduced, q[iq], v[iv], a[iv]), tau[iv], 1e-11, np.abs(tau).max())
    assert_close(sl.frame_placements(reduced, q[iq]), sl.frame_placements(model, q), 1e-12)


def shape_places(model: sl.Model, q: Any) -> Any:
    placements = sl.joint_placements(model, q)
    return np.array([placements[shape.joint] @ shape.placement for shape in (*model.shapes, *model.colliders)])


def test_what_else_a_robot_has_stays() -> None:
    model = sl.load_robot("humanoid_hands")
    name, q = model.joints[9].name, model.reference_configurations["standing"]
    reduced = sl.reduce_model(model, {name: 0.3})
    whole, start = q.copy(), model.joints[9].iq
    whole[start] = 0.3
    own = np.delete(whole, start)
    assert_close(shape_places(reduced, own), shape_places(model, whole), 1e-12)
    assert_close(reduced.reference_configurations["standing"], np.delete(q, start), 0.0)
    assert {x.joint for x in model.actuators} - {x.joint for x in reduced.actuators} <= {name}
    assert np.array_equal(reduced.armature, np.delete(model.armature, model.joints[9].iv))
    again = pickle.loads(pickle.dumps(reduced))
    v = np.ones(reduced.nv)
    assert np.array_equal(sl.rnea(again, own, v, v), sl.rnea(reduced, own, v, v))


def test_joints_that_follow_a_locked_one_are_locked() -> None:
    q = configuration(GRIPPER)
    locked = {"finger": part(GRIPPER, "finger", q), "spinner": np.arctan2(*part(GRIPPER, "spinner", q)[::-1])}
    reduced = sl.reduce_model(GRIPPER, locked)
    assert [joint.name for joint in reduced.joints[1:]] == ["palm", "slide"]
    own = np.r_[q[:7], q[-1]]
    assert_close(sl.frame_placements(reduced, own), sl.frame_placements(GRIPPER, q), 1e-12)
    follows = sl.reduce_model(GRIPPER, {"slide": 0.2, "palm": q[:7]})
    assert [joint.name for joint in follows.joints if joint.mimic] == ["follower", "tip", "gear"]
    whole = np.r_[q[:-1], 0.2]
    assert_close(sl.frame_placements(follows, q[7:-1]), sl.frame_placements(GRIPPER, whole), 1e-12)


def test_loops_of_one_body_go() -> None:
    bar = sl.load_robot("four_bar")
    first, *others = (joint.name for joint in bar.joints[1:])
    assert sl.reduce_model(bar, {first: 0.1}).loops == bar.loops
    assert sl.reduce_model(bar, dict.fromkeys((first, *others), 0.1)).loops == ()


@pytest.mark.parametrize("kind", ["reduced", "joined"])
def test_written_as_urdf(kind: str, tmp_path: Path) -> None:
    arm, base = sl.load_robot("arm").with_armature(0.0), sl.random_model(seed=4, bodies=4, kinds=["revolute"])
    base = base.with_armature(0.0)
    if kind == "reduced":
        model = sl.reduce_model(arm, {arm.joints[4].name: 0.7, arm.joints[7].name: -0.2})
    else:
        model = sl.join_models(base, arm, base.frames[-1].name, prefix="arm_")
    sl.save_urdf(model, tmp_path / "robot.urdf")
    again = sl.load_urdf(tmp_path / "robot.urdf")
    order = [again.joint_index(joint.name) - 1 for joint in model.joints[1:]]
    q = configuration(model)
    theirs = np.empty(model.nq)
    theirs[order] = q
    assert_close(sl.crba(again, theirs)[np.ix_(order, order)], sl.crba(model, q), 1e-12)
    frame = model.frames[-1].name
    kind_of = model.frames[-1].kind
    there = sl.frame_placement(again, theirs, again.frame_index(frame, kind_of))
    assert_close(there, sl.frame_placement(model, q, len(model.frames) - 1), 1e-12)


def test_two_arms_on_a_base() -> None:
    base, arm = sl.load_robot("quadruped"), sl.load_robot("arm")
    q = base.reference_configurations["standing"]
    one = sl.join_models(base, arm, base.frames[-1].name, prefix="left_")
    two = sl.join_models(one, arm, "universe", sl.exp6([1.0, 0, 0, 0, 0, 0.5]), prefix="right_")
    assert two.nv == base.nv + 2 * arm.nv and set(two.reference_configurations) >= {"standing"}
    assert [x.joint for x in two.actuators if x.joint.startswith("left_")] == [f"left_{x.joint}" for x in arm.actuators]
    assert len(two.shapes) == len(base.shapes) + 2 * len(arm.shapes)
    pose = two.reference_configurations["standing"]
    assert_close(np.sort(pose), np.sort(np.r_[q, *[arm.reference_configurations["standing"]] * 2]), 0.0)
    frames = len(base.frames)
    assert_close(sl.frame_placements(two, pose)[:frames], sl.frame_placements(base, q), 1e-12)
    assert pickle.loads(pickle.dumps(two)).joints[-1].name.startswith("right_")


def test_a_load_in_the_hand() -> None:
    arm, builder = sl.load_robot("arm"), sl.ModelBuilder("load")
    builder.add_body("universe", mass=2.0, com=(0.0, 0.1, 0.2), inertia=0.01 * np.eye(3), name="box")
    builder.add_collider("universe", "box", (0.1, 0.1, 0.4))
    hand, place = arm.frames[-1].name, sl.exp6([0.0, 0.0, 0.1, 0.3, 0.0, 0.0])
    loaded = sl.join_models(arm, builder.build(), hand, place)
    q = configuration(arm)
    more = sl.rnea(loaded, q, *np.zeros((2, 7))) - sl.rnea(arm, q, *np.zeros((2, 7)))
    lever = place @ [0.0, 0.1, 0.2, 1.0]
    J = sl.frame_jacobian(arm, q, hand, "local_world_aligned")
    offset = sl.frame_placement(arm, q, hand)[:3, :3] @ lever[:3]
    force = np.array([0.0, 0.0, 2.0 * 9.81])
    assert_close(more, J.T @ np.r_[force, np.cross(offset, force)], 1e-12, 1.0)
    assert len(loaded.colliders) == len(arm.colliders) + 1


def with_colliders() -> sl.Model:
    """Two fingers on a palm, and a pair of joints, and one of shapes, that are kept apart."""
    builder = sl.ModelBuilder("hand")
    palm = builder.add_joint("palm", "free_flyer")
    for name, parent in (("a", palm), ("b", palm), ("a2", "a"), ("b2", "b")):
        builder.add_joint(name, "revolute", parent)
    for joint, frame in (("palm", ""), ("a", ""), ("b", "b_link"), ("a2", "a2_link"), ("b2", "")):
        builder.add_body(joint, 1.0, inertia=np.eye(3))
        builder.add_collider(joint, "sphere", (0.1,), frame=frame)
    builder.keep_apart("palm", "a2")
    builder.keep_apart("a", "b2")
    return builder.build()


def test_pairs_that_are_kept_apart() -> None:
    """By the joint that carried them, which may be another one now; and no other pair."""
    hand = with_colliders()
    pairs = set(candidate_pairs(hand))
    assert (0, 3) not in pairs and (1, 4) not in pairs and (1, 2) in pairs and (3, 4) in pairs
    locked = sl.reduce_model(hand, {"b": 0.3})  # its shape is one of the palm's
    now = set(candidate_pairs(locked))
    assert (0, 3) not in now and (1, 4) not in now and (2, 3) in now and (3, 4) in now
    both = sl.join_models(hand, hand, "b2", prefix="other_")
    again = {(i, j) for i, j in candidate_pairs(both) if j < 5}
    assert again == pairs
    others = {(i - 5, j - 5) for i, j in candidate_pairs(both) if i >= 5}
    assert others >= pairs - {(0, 1), (0, 2)} and not others & {(0, 3), (1, 4)}


ARM = sl.load_robot("arm")
FIRST = ARM.joints[1].name
WRONG: dict[str, tuple[Callable[[], Any], str, type[Exception]]] = {
    "no mapping": (lambda: sl.reduce_model(ARM, [FIRST]), "locked is .*, expected a mapping of", TypeError),
    "unknown": (lambda: sl.reduce_model(ARM, {"elbw": 0.0}), "has no joint 'elbw'", ValueError),
    "universe": (lambda: sl.reduce_model(ARM, {"universe": 0.0}), "universe cannot be locked", ValueError),
    "NaN": (lambda: sl.reduce_model(ARM, {FIRST: np.nan}), f"the place of joint '{FIRST}' contains NaN", ValueError),
    "too many": (lambda: sl.reduce_model(ARM, {FIRST: [0.0, 1.0]}), r"has shape \(2,\), expected \(1,\)", ValueError),
    "not unit": (lambda: sl.reduce_model(GRIPPER, {"palm": np.ones(7)}), "to have length 1", ValueError),
    "follower": (lambda: sl.reduce_model(GRIPPER, {"tip": 0.0}), "'tip' follows 'finger'; lock that one", ValueError),
    "no model": (lambda: sl.reduce_model("arm", {}), "model is a str, expected a saltus.Model", TypeError),
    "same names": (lambda: sl.join_models(ARM, ARM, ARM.frames[-1].name), "both models have a joint", ValueError),
    "no frame": (lambda: sl.join_models(ARM, GRIPPER, "hnd"), "has no frame 'hnd'", ValueError),
    "no placement": (lambda: sl.join_models(ARM, GRIPPER, 0, np.eye(3)), r"has shape \(3, 3\), expected", ValueError),
    "joined to none": (lambda: sl.join_models(ARM, None, 0), "model is a NoneType, expected a saltus", TypeError),
    "no prefix": (lambda: sl.join_models(ARM, ARM, 0, prefix=3), "prefix is 3, expected a text", TypeError),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(name: str) -> None:
    call, words, kind = WRONG[name]
    with pytest.raises(kind, match=words):
        call()
