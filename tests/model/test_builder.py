"""`ModelBuilder` and `Model`: against Pinocchio's own building functions, and their errors."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from saltus.model import FrameKind, JointKind, Mimic, Model, ModelBuilder, ModelError

BOX = np.diag([0.02, 0.03, 0.04])
MOVING = [kind for kind in JointKind if kind != JointKind.UNIVERSE]


def shifted(x: float, y: float, z: float, angle: float = 0.0) -> np.ndarray:
    placement = np.eye(4)
    placement[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    placement[:3, 3] = x, y, z
    return placement


def peer_joint(kind: JointKind, axis: np.ndarray) -> Any:
    return {
        JointKind.REVOLUTE: lambda: pin.JointModelRevoluteUnaligned(axis),
        JointKind.CONTINUOUS: pin.JointModelRUBZ,
        JointKind.PRISMATIC: lambda: pin.JointModelPrismaticUnaligned(axis),
        JointKind.PLANAR: pin.JointModelPlanar,
        JointKind.SPHERICAL: pin.JointModelSpherical,
        JointKind.TRANSLATION: pin.JointModelTranslation,
        JointKind.FREE_FLYER: pin.JointModelFreeFlyer,
    }[kind]()


def test_same_as_pinocchios_builder() -> None:
    """One joint of every kind in a branching tree, two bodies on each, against addJoint and appendBodyToJoint."""
    rng = np.random.default_rng(0)
    builder, peer = ModelBuilder("zoo"), pin.Model()
    for index, kind in enumerate(MOVING):
        parent, axis = index // 2, rng.normal(size=3)
        at = shifted(*rng.normal(size=3), angle=rng.normal())
        assert builder.add_joint(kind.name, kind, parent, at, axis) == index + 1
        peer.addJoint(parent, peer_joint(kind, axis / np.linalg.norm(axis)), pin.SE3(at), kind.name)
        peer.addJointFrame(index + 1, -1)
        for body in ("first", "second"):
            mass, com, at = rng.uniform(0.1, 2), rng.normal(size=3), shifted(*rng.normal(size=3), angle=rng.normal())
            name = f"{kind.name} {body}"
            frame = builder.add_body(kind.name, mass, com, BOX, at, name)
            peer.appendBodyToJoint(index + 1, pin.Inertia(mass, com, BOX), pin.SE3(at))
            assert frame == peer.addBodyFrame(name, index + 1, pin.SE3(at), -1)
    model = builder.build()
    assert (model.nq, model.nv, model.nb) == (peer.nq, peer.nv, len(MOVING))
    for ours, theirs, placement, inertia in zip(
        model.joints, peer.joints, peer.jointPlacements, peer.inertias, strict=True
    ):
        assert (ours.iq, ours.iv) == (theirs.idx_q, theirs.idx_v)
        np.testing.assert_allclose(ours.placement, placement.homogeneous, atol=1e-14)
        np.testing.assert_allclose(ours.mass, inertia.mass, rtol=1e-14)
        np.testing.assert_allclose(ours.com, inertia.lever, atol=1e-14)
        np.testing.assert_allclose(ours.inertia, inertia.inertia, atol=1e-13)
    for frame, theirs in zip(model.frames, peer.frames, strict=True):
        assert (frame.name, frame.joint, frame.parent) == (theirs.name, theirs.parentJoint, theirs.parentFrame)
        assert frame.kind == int(theirs.type)
    np.testing.assert_array_equal(model.neutral(), pin.neutral(peer))


@pytest.mark.parametrize("kind", MOVING)
def test_kinds(kind: JointKind) -> None:
    theirs = peer_joint(kind, np.array([0.0, 0.0, 1.0]))
    assert (kind.nq, kind.nv) == (theirs.nq, theirs.nv)
    assert JointKind.of(kind.name.lower()) is kind is JointKind.of(kind)
    builder = ModelBuilder()
    builder.add_joint("j", kind, axis=(0, 3, 4))
    builder.add_body("j", 1.0)
    model = builder.build()
    assert model.joints[1].axis.tolist() == ([0, 0.6, 0.8] if kind.has_axis else [0, 0, 1])
    unit = model.neutral()[kind.unit_coordinates]
    assert np.linalg.norm(unit) == (1.0 if unit.size else 0.0)
    assert (model.upper_position_limit[kind.unit_coordinates] == 1.01).all()
    assert np.isinf(np.delete(model.lower_position_limit, kind.unit_coordinates)).all()
    assert np.isinf(model.velocity_limit).all() and np.isinf(model.effort_limit).all()


def pendulum() -> ModelBuilder:
    builder = ModelBuilder("pendulum")
    builder.add_joint(
        "hinge", "revolute", lower=-1, upper=2, velocity_limit=3, effort_limit=4, armature=5, friction=6, damping=7
    )
    builder.add_body("hinge", 1.0, inertia=BOX, name="rod")
    builder.add_frame("tip", "hinge", shifted(0, 0, 1))
    return builder


def test_fields() -> None:
    builder = pendulum()
    builder.add_reference("up", [1.5])
    model = builder.build()
    values = [
        model.lower_position_limit, model.upper_position_limit, model.velocity_limit,
        model.effort_limit, model.armature, model.friction, model.damping,
    ]  # fmt: skip
    assert [value.tolist() for value in values] == [[-1], [2], [3], [4], [5], [6], [7]]
    assert model.gravity.tolist() == [0, 0, -9.81]
    assert model.reference_configurations["up"].tolist() == [1.5]
    assert [(frame.name, frame.kind, frame.parent) for frame in model.frames[1:]] == [
        ("hinge", FrameKind.JOINT, 0), ("rod", FrameKind.BODY, 1), ("tip", FrameKind.OP, 1),
    ]  # fmt: skip
    assert model.frames[3].placement[2, 3] == 1
    assert repr(model) == "Model('pendulum', nq=1, nv=1, njoints=2, nframes=4)"


def test_models_are_frozen_and_copy_what_they_are_given() -> None:
    builder, placement = pendulum(), np.eye(4)
    builder.add_frame("mine", "hinge", placement)
    model = builder.build()
    placement[0, 3] = 9
    assert model.frames[-1].placement[0, 3] == 0
    with pytest.raises(AttributeError):
        model.name = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        model.reference_configurations["down"] = np.zeros(1)  # type: ignore[index]
    for array in (model.armature, model.gravity, model.joints[1].placement, model.frames[1].placement):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    model.neutral()[0] = 1  # always a new one
    assert model.neutral()[0] == 0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies(copied: Callable[[Model], Model]) -> None:
    builder = pendulum()
    builder.add_reference("up", [1.5])
    model = builder.build()
    other = copied(model)
    assert repr(other) == repr(model) and other.joints[1].name == "hinge"
    np.testing.assert_array_equal(other.joints[1].inertia, model.joints[1].inertia)
    assert other.reference_configurations["up"].tolist() == [1.5]
    assert not other.joints[1].inertia.flags.writeable and not other.damping.flags.writeable


def test_replace() -> None:
    model = pendulum().build()
    assert model.with_armature(0.5).armature.tolist() == [0.5]
    assert model.armature.tolist() == [5]
    assert model.replace(name="other").name == "other"
    with pytest.raises(ModelError, match=r"damping has shape \(2,\), expected \(1,\)"):
        model.replace(damping=[1, 2])
    with pytest.raises(ModelError, match="armature is .* negative"):
        model.with_armature(-1)
    with pytest.raises(ModelError, match=r"joint 'hinge': its lower position limit .* at q\[0\]"):
        model.replace(lower_position_limit=[3])
    with pytest.raises(ModelError, match="gravity contains NaN"):
        model.replace(gravity=[0, 0, np.nan])


def test_indices() -> None:
    builder = pendulum()
    builder.add_frame("hinge", "hinge")
    model = builder.build()
    assert model.joint_index("hinge") == model.joint_index(1) == 1
    assert model.frame_index("tip") == model.frame_index(3) == 3
    assert model.frame_index("hinge", FrameKind.JOINT) == 1
    with pytest.raises(ModelError, match="has no joint 'hingw'; did you mean 'hinge'"):
        model.joint_index("hingw")
    with pytest.raises(ModelError, match="has no frame 'xyz'; it has universe"):
        model.frame_index("xyz")
    with pytest.raises(ModelError, match="has no frame 5; its indices run from 0 to 4"):
        model.frame_index(5)
    with pytest.raises(ModelError, match="'hinge' exists as JOINT, OP; give one"):
        model.frame_index("hinge")


def test_mimic() -> None:
    builder = ModelBuilder()
    for name, mimic in (("a", Mimic("c", 2.0, 1.0)), ("b", None), ("c", None), ("d", Mimic("a", -1.0, 0.5))):
        builder.add_joint(name, "prismatic", mimic=mimic)
        builder.add_body(name, 1.0)
    model = builder.build()
    assert (model.nq, model.nv, model.lower_position_limit.shape) == (2, 2, (2,))
    assert [(joint.iq, joint.iv, joint.nq) for joint in model.joints[1:]] == [
        (1, 1, 0),
        (0, 0, 1),
        (1, 1, 1),
        (1, 1, 0),
    ]
    assert model.joints[4].mimic == Mimic("c", -2.0, -0.5)
    with pytest.raises(ModelError, match="'e': it mimics 'b', so it has no limits"):
        builder.add_joint("e", "revolute", mimic=Mimic("b"), upper=1)


def test_bodies_without_names_get_one() -> None:
    builder = ModelBuilder()
    builder.add_joint("j", "revolute")
    for _ in range(3):
        builder.add_body("j", 1.0)
    assert [frame.name for frame in builder.build().frames[2:]] == ["j_body", "j_body_2", "j_body_3"]


REFLECTION = np.diag([1.0, 1.0, -1.0, 1.0])
MISTAKES: dict[str, tuple[Callable[[ModelBuilder], Any], str]] = {
    "joint twice": (lambda b: b.add_joint("hinge", "revolute"), "'hinge': its name is that of another joint"),
    "no name": (lambda b: b.add_joint("", "revolute"), "the name of a joint is ''"),
    "universe": (lambda b: b.add_joint("u", "universe"), "only one universe"),
    "unknown kind": (lambda b: b.add_joint("j", "hinge"), "unknown joint kind 'hinge', expected one of revolute"),
    "unknown parent": (lambda b: b.add_joint("j", "planar", "nobody"), "joint 'j': there is no joint 'nobody'"),
    "parent too high": (lambda b: b.add_joint("j", "planar", 2), "there is no joint 2 yet, expected 0 to 1"),
    "scaled placement": (
        lambda b: b.add_joint("j", "planar", placement=np.diag([2, 1, 1, 1])),
        "rotation of placement of joint 'j' is not orthonormal",
    ),
    "reflection": (lambda b: b.add_frame("f", 1, REFLECTION), "placement of frame 'f' is a reflection"),
    "last row": (lambda b: b.add_frame("f", 1, np.eye(4) + np.eye(4)[3]), "last row"),
    "placement's shape": (lambda b: b.add_frame("f", 1, np.eye(3)), r"shape \(3, 3\), expected \(4, 4\)"),
    "zero axis": (lambda b: b.add_joint("j", "revolute", axis=(0, 0, 0)), "axis of joint 'j' is .* not zero"),
    "infinite axis": (lambda b: b.add_joint("j", "revolute", axis=(np.inf, 0, 0)), "axis of joint 'j' contains an inf"),
    "limits crossed": (lambda b: b.add_joint("j", "revolute", lower=1, upper=0), "lower limit .* above its upper"),
    "NaN limit": (lambda b: b.add_joint("j", "revolute", lower=np.nan), "lower limit of joint 'j' contains NaN"),
    "limit's shape": (lambda b: b.add_joint("j", "planar", lower=[0, 0]), r"shape \(2,\), expected \(4,\)"),
    "negative armature": (lambda b: b.add_joint("j", "revolute", armature=-1), "armature of joint 'j' is .* negative"),
    "negative mass": (lambda b: b.add_body("hinge", -1.0, name="b"), "body 'b': its mass is -1.0"),
    "infinite mass": (lambda b: b.add_body("hinge", np.inf), "mass of body 'hinge_body' contains an infinity"),
    "mass that is no number": (lambda b: b.add_body("hinge", "heavy"), "mass of body .* is not an array of numbers"),
    "NaN com": (lambda b: b.add_body("hinge", 1.0, (0, 0, np.nan)), "com of body 'hinge_body' contains NaN"),
    "body of no joint": (lambda b: b.add_body("nobody", 1.0), "there is no joint 'nobody'"),
    "not symmetric": (lambda b: b.add_body(1, 1.0, inertia=BOX + 0.01 * np.eye(3, k=1)), "not symmetric"),
    "triangle": (lambda b: b.add_body(1, 1.0, inertia=np.diag([1, 1, 3])), "violate the triangle inequality"),
    "not positive": (lambda b: b.add_body(1, 1.0, inertia=np.diag([-1, 1, 1])), "not all positive"),
    "inertia without mass": (lambda b: b.add_body(1, 0.0, inertia=BOX), "inertia but no mass"),
    "body twice": (lambda b: b.add_body("hinge", 1.0, name="rod"), "'rod': its name is that of another BODY frame"),
    "frame twice": (lambda b: b.add_frame("tip", "hinge"), "'tip': its name is that of another OP frame"),
    "frame of no frame": (lambda b: b.add_frame("f", "hinge", parent=9), "there is no frame 9, expected 0 to 3"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(case: str) -> None:
    mistake, message = MISTAKES[case]
    builder = pendulum()
    with pytest.raises(ModelError, match=message):
        mistake(builder)
    # A refused call leaves nothing behind.
    assert repr(builder.build()) == "Model('pendulum', nq=1, nv=1, njoints=2, nframes=4)"


def test_mistakes_found_by_build() -> None:
    builder = pendulum()
    builder.add_joint("loose", "revolute", "hinge")
    builder.add_joint("tip", "revolute", "loose")
    with pytest.raises(ModelError, match="joint 'loose': neither it nor any joint after it has mass"):
        builder.build()
    builder.add_body("tip", 0.1)
    assert builder.build().nv == 3
    builder.add_reference("bad", [0.0])
    with pytest.raises(ModelError, match=r"reference configuration 'bad' has shape \(1,\), expected \(3,\)"):
        builder.build()


def test_massless_tips_that_are_fine() -> None:
    builder = pendulum()
    builder.add_joint("rotor", "revolute", "hinge", armature=0.1)
    builder.add_joint("follower", "revolute", "hinge", mimic=Mimic("hinge"))
    assert builder.build().nv == 2
    loose = ModelBuilder(physical=False)
    loose.add_joint("j", "revolute")
    assert loose.build().total_mass == 0


def test_an_empty_model() -> None:
    model = ModelBuilder().build()
    assert (model.nq, model.nv, model.nb, model.total_mass, model.neutral().shape) == (0, 0, 0, 0.0, (0,))
