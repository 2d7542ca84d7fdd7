"""`load_urdf` against Pinocchio: every robot of example-robot-data, joint by joint and frame by frame."""

from __future__ import annotations

import logging
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from saltus.model import FrameKind, JointKind, Mimic, Model, ModelError, load_urdf
from tests.model.robots import ALL, LIMIT, LOADABLE, ORIGIN, ROBOTS, joint, link, robot, write

KINDS = {
    "JointModelR": JointKind.REVOLUTE,
    "JointModelRevolute": JointKind.REVOLUTE,
    "JointModelRUB": JointKind.CONTINUOUS,
    "JointModelRevoluteUnbounded": JointKind.CONTINUOUS,
    "JointModelP": JointKind.PRISMATIC,
    "JointModelPrismatic": JointKind.PRISMATIC,
    "JointModelPlanar": JointKind.PLANAR,
    "JointModelFreeFlyer": JointKind.FREE_FLYER,
}
FRAME_KINDS = {
    pin.FrameType.OP_FRAME: FrameKind.OP,
    pin.FrameType.JOINT: FrameKind.JOINT,
    pin.FrameType.FIXED_JOINT: FrameKind.FIXED_JOINT,
    pin.FrameType.BODY: FrameKind.BODY,
}


def peer_of(path: Path | str, floating_base: bool = False, mimic: bool = False) -> Any:
    if floating_base:
        return pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer(), mimic=mimic)
    return pin.buildModelFromUrdf(str(path), mimic=mimic)


def close(ours: Any, theirs: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def kind_and_axis(peer_joint: Any, q: Any) -> tuple[JointKind, Any]:
    """Pinocchio has a type of its own for each of x, y, z and for other axes; q is the configuration of the whole robot."""
    name = peer_joint.shortname()
    if name.endswith("Unaligned"):
        data = peer_joint.createData()
        peer_joint.calc(data, q)
        kind = KINDS[name.removesuffix("Unaligned")]
        linear, angular = np.split(data.S.ravel(), 2)
        return kind, linear if kind == JointKind.PRISMATIC else angular
    if name[-1] in "XYZ":
        return KINDS[name[:-1]], np.eye(3)["XYZ".index(name[-1])]
    return KINDS[name], np.array([0, 0, 1])


def assert_same(model: Model, peer: Any) -> None:
    assert (model.name, model.nq, model.nv, model.njoints) == (peer.name, peer.nq, peer.nv, peer.njoints)
    assert [each.name for each in model.joints] == list(peer.names)
    assert [each.parent for each in model.joints[1:]] == list(peer.parents)[1:]
    for ours, theirs in zip(model.joints, peer.joints, strict=True):
        assert (ours.iq, ours.iv) == (theirs.idx_q, theirs.idx_v)
    for ours, theirs in zip(model.joints[1:], list(peer.joints)[1:], strict=True):
        assert (ours.nq, ours.nv) == (theirs.nq, theirs.nv)
        if theirs.shortname() == "JointModelMimic":
            assert ours.mimic
        else:
            kind, axis = kind_and_axis(theirs, pin.neutral(peer))
            assert ours.kind == kind and ours.mimic is None
            close(ours.axis, axis)
    for ours, placement, inertia in zip(model.joints, peer.jointPlacements, peer.inertias, strict=True):
        close(ours.placement, placement.homogeneous)
        close(ours.mass, inertia.mass)
        close(ours.com, inertia.lever)
        close(ours.inertia, inertia.inertia)

    assert [each.name for each in model.frames] == [each.name for each in peer.frames]
    for ours, theirs in zip(model.frames, peer.frames, strict=True):
        assert ours.kind == FRAME_KINDS[theirs.type]
        assert (ours.joint, ours.parent) == (theirs.parentJoint, theirs.parentFrame)
        close(ours.placement, theirs.placement.homogeneous)

    for ours_array, theirs_array in [
        (model.lower_position_limit, peer.lowerPositionLimit),
        (model.upper_position_limit, peer.upperPositionLimit),
        (model.velocity_limit, peer.velocityLimit),
        (model.effort_limit, peer.effortLimit),
        (model.friction, peer.friction),
        (model.damping, peer.damping),
        (model.armature, peer.armature),
        (model.gravity, peer.gravity.linear),
    ]:
        np.testing.assert_array_equal(ours_array, theirs_array)
    np.testing.assert_array_equal(model.neutral(), pin.neutral(peer))
    close(model.total_mass, pin.computeTotalMass(peer), 1e-10)


def test_all_robots_are_there() -> None:
    assert (len(ALL), len(LOADABLE)) == (77, 75)


@pytest.mark.parametrize("floating_base", [False, True], ids=["fixed", "floating"])
@pytest.mark.parametrize("name", LOADABLE)
def test_same_as_pinocchio(name: str, floating_base: bool) -> None:
    path = ROBOTS / name
    assert_same(load_urdf(path, floating_base=floating_base), peer_of(path, floating_base))


MIMICKING = [name for name in LOADABLE if "<mimic" in (ROBOTS / name).read_text(encoding="utf-8")]
NO_SUCH_PRIMARY = "alex_description/urdf/alex_psyonic_hands.urdf"
# Pinocchio refuses a mimic joint whose primary comes later in the tree; we do not.
REFUSED_BY_PINOCCHIO = {
    "romeo_description/urdf/romeo.urdf",
    "talos_data/robots/talos_full_v2.urdf",
    "talos_data/robots/talos_full_v2_box.urdf",
}


def test_mimic_of_a_joint_that_does_not_exist() -> None:
    with pytest.raises(ModelError, match=r"alex_psyonic.*'Left_index_q2': it mimics 'index_q1', but there is no such"):
        load_urdf(ROBOTS / NO_SUCH_PRIMARY, mimic=True)


@pytest.mark.parametrize("name", [name for name in MIMICKING if name != NO_SUCH_PRIMARY])
def test_mimic_joints(name: str) -> None:
    path = ROBOTS / name
    model = load_urdf(path, mimic=True)
    plain = load_urdf(path)
    assert [each.name for each in model.joints] == [each.name for each in plain.joints]
    following = [each for each in model.joints if each.mimic]
    assert model.nv == plain.nv - len(following)
    for each in following:
        primary = model.joints[model.joint_index(each.mimic.primary)]
        assert primary.mimic is None and (each.iq, each.iv) == (primary.iq, primary.iv)
    if name in REFUSED_BY_PINOCCHIO:
        with pytest.raises(ValueError, match="mimic"):
            peer_of(path, mimic=True)
        return
    peer = peer_of(path, mimic=True)
    assert_same(model, peer)
    for ours, theirs in zip(model.joints, peer.joints, strict=True):
        if ours.mimic:
            follower = theirs.extract()
            assert (ours.mimic.ratio, ours.mimic.offset) == (follower.scaling, follower.offset)


@pytest.mark.parametrize("floating_base", [False, True])
@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic", "planar", "floating", "fixed"])
@pytest.mark.parametrize("axis", ["", '<axis xyz="0 0 -2"/>', '<axis xyz="1 2 3"/>'])
def test_every_joint_type(tmp_path: Path, kind: str, axis: str, floating_base: bool) -> None:
    """Twice the type in a row, one below a fixed joint, with and without dynamics."""
    dynamics = '<dynamics damping="0.5" friction="0.25"/>' if axis else '<dynamics damping="0.5"/>'
    text = robot(
        *(link(name) for name in ("root", "a", "b", "c")),
        joint("z_fixed", "root", "a", "fixed", ORIGIN),
        joint("first", "a", "b", kind, axis + LIMIT + dynamics),
        joint("second", "b", "c", kind, ORIGIN + axis + LIMIT),
    )
    path = write(tmp_path, text)
    assert_same(load_urdf(path, floating_base=floating_base), peer_of(path, floating_base))


def test_joint_order_is_by_name(tmp_path: Path) -> None:
    names = ["j2", "J1", "j10", "_x", "é", "~", "0"]
    parents = ["root", "root", "j2", "j2", "root", "J1", "root"]
    text = robot(
        link("root"),
        *(link(name) for name in names),
        *(joint(name, parent, name) for name, parent in zip(names, parents, strict=True)),
    )
    path = write(tmp_path, text)
    model = load_urdf(path)
    assert [each.name for each in model.joints[1:]] == ["0", "J1", "~", "j2", "_x", "j10", "é"]
    assert_same(model, peer_of(path))


def test_massless_links_and_bad_inertias_load(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    impossible = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="9"/></inertial>'
    text = robot(
        link("a", ""), link("b", ""), link("c", impossible), joint("j", "a", "b"), joint("k", "a", "c", "fixed")
    )
    path = write(tmp_path, text)
    with caplog.at_level(logging.WARNING, logger="saltus.model.urdf"):  # which benchmarks turn down
        assert_same(load_urdf(path), peer_of(path))
    assert "link 'c'" in caplog.text and "triangle" in caplog.text


def test_limits_may_be_infinite(tmp_path: Path) -> None:
    endless = '<limit lower="-inf" upper="inf" effort="inf" velocity="inf"/>'
    model = load_urdf(write(tmp_path, robot(link("a"), link("b"), joint("j", "a", "b", inside=endless))))
    assert model.upper_position_limit == model.velocity_limit == np.inf == -model.lower_position_limit


def test_mimic_chains_and_later_primaries(tmp_path: Path) -> None:
    text = robot(
        *(link(name) for name in "abcd"),
        joint("j1", "a", "b", inside=LIMIT + '<mimic joint="j2" multiplier="2" offset="0.5"/>'),
        joint("j2", "a", "c", inside=LIMIT + '<mimic joint="j3" multiplier="-3" offset="0.25"/>'),
        joint("j3", "a", "d"),
    )
    path = write(tmp_path, text)
    model = load_urdf(path, mimic=True)
    assert [each.mimic for each in model.joints[1:]] == [Mimic("j3", -6.0, 1.0), Mimic("j3", -3.0, 0.25), None]
    assert (model.nq, model.nv) == (1, 1)
    assert load_urdf(path).nv == 3


def test_comments_and_other_namespaces_are_skipped(tmp_path: Path) -> None:
    text = robot("<!-- <link name='x'/> -->", link("a", "<!-- none -->"), link("b"), "<gazebo><joint/></gazebo>")
    text = text.replace("</robot>", joint("j", "a", "b") + "<x:link/></robot>").replace(
        "<robot", '<?xml version="1.0"?><robot xmlns:x="http://x"'
    )
    path = write(tmp_path, text)
    assert_same(load_urdf(str(path)), peer_of(path))


def test_pickles() -> None:
    model = load_urdf(ROBOTS / "solo_description/robots/solo12.urdf", floating_base=True)
    model.neutral(), model.joint_index("root_joint")  # fill the caches
    copy = pickle.loads(pickle.dumps(model))
    assert_same(copy, peer_of(ROBOTS / "solo_description/robots/solo12.urdf", True))
    for array in (copy.armature, copy.gravity, copy.joints[1].com, copy.frames[1].placement):
        assert not array.flags.writeable


@pytest.mark.parametrize("kind", ["revolute", "fixed"])
def test_a_chain_of_ten_thousand_links(tmp_path: Path, kind: str) -> None:
    count = 10_000
    step = '<origin xyz="0 0 0.01" rpy="0.01 0 0"/>'
    text = robot(
        *(link(f"link{index}") for index in range(count)),
        *(joint(f"joint{index}", f"link{index - 1}", f"link{index}", kind, step + LIMIT) for index in range(1, count)),
    )
    path = write(tmp_path, text)
    start = time.process_time()
    model = load_urdf(path)
    assert time.process_time() - start < 60  # linear in the links: seconds, even on a busy machine
    assert len(model.frames) == 2 * count
    assert model.nv == (count - 1 if kind == "revolute" else 0)
    assert model.frames[-1].name == f"link{count - 1}"
