"""`save_urdf`, then `load_urdf`: the same dynamics, limits, frames and shapes."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import saltus as sl
from tests.closeness import assert_close
from tests.generators import mimic_tree, rebuilt
from tests.model.robots import ROBOTS

ROBOT_FILES = [
    "solo_description/robots/solo12.urdf",
    "talos_data/robots/talos_full_v2.urdf",
    "panda_description/urdf/panda.urdf",
    "pr2_description/urdf/pr2.urdf",
    "kinova_description/robots/kinova.urdf",
    "double_pendulum_description/urdf/double_pendulum.urdf",
]
KINDS = ["revolute", "continuous", "prismatic", "planar", "free_flyer"]


def columns(model: sl.Model, other: sl.Model, size: str) -> np.ndarray:
    """For every coordinate of the other model, the index of the same in this one: joints by name."""
    start = {"nq": "iq", "nv": "iv"}[size]
    own = {joint.name: joint for joint in model.joints}
    return np.array([
        getattr(own[joint.name], start) + k for joint in other.joints for k in range(getattr(joint, size))
    ], int)  # fmt: skip


def assert_same(model: sl.Model, back: sl.Model) -> None:
    """Up to the order of joints."""
    assert {joint.name for joint in back.joints} == {joint.name for joint in model.joints}
    iq, iv = columns(model, back, "nq"), columns(model, back, "nv")
    rng = np.random.default_rng(0)
    for _ in range(2):
        q, (v, tau) = sl.random_configuration(model, rng), rng.normal(size=(2, model.nv))
        assert_close(sl.crba(back, q[iq]), sl.crba(model, q)[np.ix_(iv, iv)], 1e-12)
        ours, theirs = sl.nonlinear_effects(back, q[iq], v[iv]), sl.nonlinear_effects(model, q, v)
        assert_close(ours, theirs[iv], 1e-12)
        assert_close(sl.rnea(back, q[iq], v[iv], tau[iv]), sl.rnea(model, q, v, tau)[iv], 1e-12)
        for frame in model.frames[1:]:
            if frame.kind in (sl.FrameKind.BODY, sl.FrameKind.OP):
                there = sl.frame_placement(back, q[iq], back.frame_index(frame.name, sl.FrameKind.BODY))
                assert_close(there, sl.frame_placement(model, q, model.frame_index(frame.name, frame.kind)), 1e-12)
    for joint in back.joints[1:]:
        if joint.kind.has_axis and not joint.mimic:
            same = model.joints[model.joint_index(joint.name)]
            for name in ("velocity_limit", "effort_limit", "damping", "friction"):
                assert getattr(back, name)[joint.iv] == getattr(model, name)[same.iv]
            if joint.kind != sl.JointKind.CONTINUOUS:
                assert back.lower_position_limit[joint.iq] == model.lower_position_limit[same.iq]
                assert back.upper_position_limit[joint.iq] == model.upper_position_limit[same.iq]


@pytest.mark.parametrize("floating_base", [False, True])
@pytest.mark.parametrize("name", ROBOT_FILES)
def test_robots(tmp_path: Path, name: str, floating_base: bool) -> None:
    model = sl.load_urdf(ROBOTS / name, floating_base=floating_base)
    sl.save_urdf(model, tmp_path / "robot.urdf")
    back = sl.load_urdf(tmp_path / "robot.urdf", floating_base=floating_base)
    assert [joint.name for joint in back.joints] == [joint.name for joint in model.joints]
    assert {(frame.name, frame.kind) for frame in back.frames} == {(frame.name, frame.kind) for frame in model.frames}
    assert_same(model, back)


@pytest.mark.parametrize("seed", range(8))
def test_random_trees(tmp_path: Path, seed: int) -> None:
    model = sl.random_model(seed, 12, KINDS)
    # URDF has no limits for planar and floating joints; these come back without.
    sl.save_urdf(model, tmp_path / "robot.urdf")
    assert_same(model, sl.load_urdf(tmp_path / "robot.urdf"))


@pytest.mark.parametrize("seed", range(3))
def test_a_free_flyer_becomes_the_root_link(tmp_path: Path, seed: int) -> None:
    branches = rebuilt(sl.random_model(seed, 6, ["revolute", "prismatic"]), "free_flyer")
    joints = tuple(each for each in branches.joints)
    names = ("universe", "root_joint", *(each.name for each in joints[2:]))
    from dataclasses import replace

    model = branches.replace(joints=tuple(replace(each, name=name) for each, name in zip(joints, names, strict=True)))
    sl.save_urdf(model, tmp_path / "robot.urdf")
    assert_same(model, sl.load_urdf(tmp_path / "robot.urdf", floating_base=True))


def test_mimic_joints(tmp_path: Path) -> None:
    model = mimic_tree(4, 8)
    while any(joint.kind not in (1, 2, 3) for joint in model.joints[1:]):
        model = mimic_tree(4, model.nb - 1)
    sl.save_urdf(model, tmp_path / "robot.urdf")
    back = sl.load_urdf(tmp_path / "robot.urdf", mimic=True).replace(gravity=model.gravity)
    assert any(joint.mimic for joint in back.joints) and back.nv == model.nv
    assert_same(model, back)


def test_pinocchio_reads_it(tmp_path: Path) -> None:
    model = sl.load_urdf(ROBOTS / "solo_description/robots/solo12.urdf", floating_base=True)
    sl.save_urdf(model, tmp_path / "robot.urdf")
    peer = pin.buildModelFromUrdf(str(tmp_path / "robot.urdf"), pin.JointModelFreeFlyer())
    q = sl.random_configuration(model, 0)
    M = pin.crba(peer, peer.createData(), q)
    assert_close(sl.crba(model, q), np.triu(M) + np.triu(M, 1).T, 1e-12)


def test_shapes(tmp_path: Path) -> None:
    builder = sl.ModelBuilder("shapes")
    arm = builder.add_joint("j", "revolute", lower=-1, upper=1)
    builder.add_body(arm, 1.0, inertia=np.eye(3))
    turned = np.eye(4)
    turned[:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    builder.add_shape(arm, "box", (1, 2, 3), turned, color=(1, 0, 0, 0.5), name="box")
    builder.add_shape(arm, "sphere", (1,))
    builder.add_shape(0, "cylinder", (1, 2))
    builder.add_shape(0, "capsule", (1, 2))
    builder.add_shape(arm, "mesh", (1, 1, 2), path=str(tmp_path / "meshes/x.stl"))
    model = builder.build()
    sl.save_urdf(model, tmp_path / "robot.urdf")
    back = sl.load_urdf(tmp_path / "robot.urdf")

    def described(shapes: tuple[sl.Shape, ...]) -> list[tuple]:
        return sorted((s.kind, s.joint, s.size.tolist(), s.placement.round(12).tolist(), s.color.tolist(), s.path)
                      for s in shapes)  # fmt: skip

    assert described(back.shapes) == described(model.shapes)


def test_shared_names_get_an_underscore(tmp_path: Path) -> None:
    builder = sl.ModelBuilder("names")
    arm = builder.add_joint("arm", "revolute", lower=-1, upper=1)
    builder.add_body(arm, 1.0, inertia=np.eye(3), name="arm")
    builder.add_frame("arm", arm, np.eye(4))
    builder.add_frame("arm_fixed", arm, np.eye(4), sl.FrameKind.FIXED_JOINT)
    sl.save_urdf(builder.build(), tmp_path / "robot.urdf")
    names = {(frame.name, frame.kind.name) for frame in sl.load_urdf(tmp_path / "robot.urdf").frames}
    assert {("arm", "BODY"), ("arm_", "BODY"), ("arm_fixed", "FIXED_JOINT"), ("arm_fixed_", "FIXED_JOINT")} <= names


@pytest.mark.parametrize("kind", ["spherical", "translation"])
def test_kinds_that_urdf_does_not_have(tmp_path: Path, kind: str) -> None:
    model = sl.random_model(0, 2, [kind])
    with pytest.raises(sl.ModelError, match=f"joint '{kind}_1' is {kind.upper()}, which URDF does not have"):
        sl.save_urdf(model, tmp_path / "robot.urdf")


def test_what_is_lost_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = sl.random_model(0, 2, ["revolute"]).with_armature(0.1).replace(gravity=(0, 0, -1))
    ellipsoid, mesh = (sl.Shape("s", 1, "ellipsoid", (1, 1, 1), np.eye(4)),
                       sl.Shape("m", 1, "mesh", (1, 1, 1), np.eye(4), path="/elsewhere/x.stl"))  # fmt: skip
    with caplog.at_level(logging.WARNING):
        sl.save_urdf(model.replace(shapes=(ellipsoid, mesh)), tmp_path / "robot.urdf")
    for what in ("armature", "gravity", "ellipsoids, or meshes elsewhere"):
        assert caplog.text.count(f"URDF has no place for {what}") == 1
    assert sl.load_urdf(tmp_path / "robot.urdf").shapes == ()


def test_bad_paths_and_names(tmp_path: Path) -> None:
    model = sl.random_model(0, 1, ["revolute"])
    with pytest.raises(sl.ModelError, match="cannot be written: No such file"):
        sl.save_urdf(model, tmp_path / "nowhere" / "robot.urdf")
    with pytest.raises(sl.ModelError, match="cannot be written"):
        sl.save_urdf(model.replace(name="a\0b"), tmp_path / "robot.urdf")
