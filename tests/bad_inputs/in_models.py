"""Models that cannot be: built by hand, changed by `replace`, made at random, asked for by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import saltus as sl
from tests.bad_inputs.case import MODEL, NQ, Case, V, changed


def built(*steps: Callable[[sl.ModelBuilder], Any]) -> Callable[[], Any]:
    """Builds a model with a hinge `a` that carries a body, after these steps."""

    def call() -> Any:
        builder = sl.ModelBuilder("test")
        builder.add_joint("a", "revolute")
        builder.add_body("a", 1.0)
        for step in steps:
            step(builder)
        return builder.build()

    return call


def body(*arguments: Any, **settings: Any) -> Callable[[], Any]:
    return built(lambda builder: builder.add_body("a", *arguments, **settings))


def hinge(**settings: Any) -> Callable[[], Any]:
    return built(lambda b: b.add_joint("b", "revolute", "a", **settings), lambda b: b.add_body("b", 1.0))


def with_joint(**changes: Any) -> Callable[[], Any]:
    """The model with some fields of its first joint changed."""
    return lambda: MODEL.replace(
        joints=(MODEL.joints[0], dataclasses.replace(MODEL.joints[1], **changes), *MODEL.joints[2:])
    )


def refused(call: Callable[[], Any], message: str, kind: type[Exception] = sl.ModelError) -> Case:
    return Case(call, message, kind)


IN_MODELS = {
    "name of a model": refused(lambda: sl.ModelBuilder(5), "the name of a model is 5, expected a text"),
    "name of a joint": refused(
        built(lambda b: b.add_joint(5, "revolute")), "the name of a joint is 5, expected a text"
    ),
    "empty name": refused(
        built(lambda b: b.add_joint("", "revolute")), "the name of a joint is '', expected a text that is"
    ),
    "joint twice": refused(
        built(lambda b: b.add_joint("a", "revolute")), "joint 'a': its name is that of another joint"
    ),
    "kind": refused(
        built(lambda b: b.add_joint("b", "hinge")), "unknown joint kind 'hinge', expected one of revolute, cont"
    ),
    "number of a kind": refused(built(lambda b: b.add_joint("b", 99)), "unknown joint kind 99, expected a JointKind"),
    "no kind": refused(built(lambda b: b.add_joint("b", None)), "unknown joint kind None, expected a JointKind"),
    "another universe": refused(
        built(lambda b: b.add_joint("b", "universe")), "there is only one universe; expected a kind"
    ),
    "unknown parent": refused(
        built(lambda b: b.add_joint("b", "revolute", "x")), "joint 'b': there is no joint 'x' yet"
    ),
    "parent too high": refused(
        built(lambda b: b.add_joint("b", "revolute", 7)), "there is no joint 7 yet, expected 0 to 1"
    ),
    "half a parent": refused(
        built(lambda b: b.add_joint("b", "revolute", 0.5)), "carries it is 0.5, expected a whole number"
    ),
    "no parent": refused(
        built(lambda b: b.add_joint("b", "revolute", None)), "carries it is None, expected a whole number"
    ),
    "placement (3, 3)": refused(
        hinge(placement=np.eye(3)), r"placement of joint 'b' has shape \(3, 3\), expected \(4, 4\)"
    ),
    "reflection": refused(
        hinge(placement=np.diag([1, 1, -1, 1])), "rotation of placement of joint 'b' is a reflection"
    ),
    "scaled rotation": refused(hinge(placement=np.diag([2, 2, 2, 1])), "placement of joint 'b' is not orthonormal"),
    "last row": refused(
        hinge(placement=np.ones((4, 4))), r"placement of joint 'b' has the last row .* expected \[0, 0, 0, 1\]"
    ),
    "ragged placement": refused(hinge(placement=[[1], [1, 2]]), "placement of joint 'b' is not an array of numbers"),
    "complex placement": refused(hinge(placement=np.eye(4) + 0j), "placement of joint 'b' is not .* but of complex128"),
    "zero axis": refused(hinge(axis=(0, 0, 0)), "axis of joint 'b' is .* expected a direction, not zero"),
    "NaN axis": refused(hinge(axis=(0, 0, np.nan)), "axis of joint 'b' contains NaN"),
    "axis in a plane": refused(hinge(axis=(0, 1)), r"axis of joint 'b' has shape \(2,\), expected \(3,\)"),
    "limits the wrong way round": refused(
        hinge(lower=1, upper=0), r"lower limit \[1.0\] is above its upper limit \[0.0\]"
    ),
    "lower limit of infinity": refused(
        hinge(lower=np.inf), r"limits are \[inf\] and \[inf\], which leaves it no position"
    ),
    "two limits": refused(hinge(lower=[1, 2]), r"lower limit of joint 'b' has shape \(2,\), expected \(1,\)"),
    "limit as text": refused(hinge(upper="far"), "upper limit of joint 'b' is not an array of numbers, but of <U3"),
    "ragged limit": refused(hinge(upper=[[1], [1, 2]]), "upper limit of joint 'b' is not an array of numbers"),
    "negative velocity limit": refused(
        hinge(velocity_limit=-1), r"velocity_limit of joint 'b' is \[-1.0\], expected nothing neg"
    ),
    "NaN armature": refused(hinge(armature=np.nan), r"armature of joint 'b' contains NaN: \[nan\]"),
    "infinite armature": refused(hinge(armature=np.inf), r"armature of joint 'b' contains an infinity: \[inf\]"),
    "mimic as text": refused(hinge(mimic="a"), "joint 'b': its mimic is 'a', expected a Mimic"),
    "mimic of nothing": refused(hinge(mimic=sl.Mimic("x")), "joint 'b': it mimics 'x', but there is no such joint"),
    "mimic of itself": refused(hinge(mimic=sl.Mimic("b")), "joint 'b': it mimics itself, by way of b"),
    "mimics of each other": refused(
        built(*(lambda b, n=n, p=p: b.add_joint(n, "revolute", mimic=sl.Mimic(p)) for n, p in ("bc", "cd", "db"))),
        "joint 'b': it mimics itself, by way of b, c, d",
    ),
    "NaN ratio": refused(lambda: sl.Mimic("a", np.nan), "ratio of the mimic of 'a' contains NaN"),
    "mimic with limits": refused(
        hinge(mimic=sl.Mimic("a"), lower=0), "it mimics 'a', so it has no limits or armature of its own"
    ),
    "negative mass": refused(body(-1.0), "body 'a_body_2': its mass is -1.0, expected no negative number"),
    "no mass at a tip": refused(
        built(lambda b: b.add_joint("b", "revolute", "a"), lambda b: b.add_body("b", 0.0)),
        "joint 'b': neither it nor any joint after it has mass; add a body or an armature",
    ),
    "NaN mass": refused(body(np.nan), "mass of body 'a_body_2' contains NaN"),
    "infinite mass": refused(body(np.inf), "mass of body 'a_body_2' contains an infinity"),
    "mass as text": refused(body("1"), "mass of body 'a_body_2' is not an array of numbers, but of <U1"),
    "no mass at all": refused(body(None), "mass of body 'a_body_2' is not an array of numbers, but of object"),
    "two masses": refused(body([1, 2]), r"mass of body 'a_body_2' has shape \(2,\), expected \(\)"),
    "triangle inequality": refused(
        body(1.0, inertia=np.diag([1, 1, 3])), r"inertias \[1, 1, 3\] violate the triangle ineq"
    ),
    "negative inertia": refused(body(1.0, inertia=np.diag([1, 1, -1])), r"inertias \[-1, 1, 1\] are not all positive"),
    "asymmetric inertia": refused(
        body(1.0, inertia=np.triu(np.ones((3, 3)))), "body 'a_body_2': its inertia is not symmetric"
    ),
    "inertia without mass": refused(body(0.0, inertia=np.eye(3)), "body 'a_body_2': it has inertia but no mass"),
    "inertia (3,)": refused(body(1.0, inertia=[1, 1, 1]), r"inertia of body .* has shape \(3,\), expected \(3, 3\)"),
    "body on nothing": refused(
        built(lambda b: b.add_body("x", 1.0)), "a body: there is no joint 'x' yet; add it first"
    ),
    "body twice": refused(body(1.0, name="a_body"), "frame 'a_body': its name is that of another BODY frame"),
    "kind of a frame": refused(
        built(lambda b: b.add_frame("f", "a", kind="OP")), "kind of frame 'f' is 'OP', expected a FrameKi"
    ),
    "parent of a frame": refused(
        built(lambda b: b.add_frame("f", "a", parent=99)), "'f': there is no frame 99, expected 0 to"
    ),
    "reference of another size": refused(
        built(lambda b: b.add_reference("home", [1, 2])),
        r"reference configuration 'home' has shape \(2,\), expected \(1,\)",
    ),
    "loop of nothing": refused(built(lambda b: b.add_loop("l", "a", "x", 3)), "model 'test' has no frame 'x'"),
    "loop of dim 4": refused(
        built(lambda b: b.add_loop("l", "a", "a", 4)), r"loop 'l': its dim is 4, expected 3 \(point\), 5"
    ),
    "actuator of nothing": refused(built(lambda b: b.add_actuator("m", "x")), "model 'test' has no joint 'x'"),
    "actuator's limits": refused(
        built(lambda b: b.add_actuator("m", "a", lower=1, upper=0)), "effort from 1.0 to 0.0; expected"
    ),
    "actuator's gear": refused(
        built(lambda b: b.add_actuator("m", "a", gear="2")), "gear of actuator 'm' is not an array of nu"
    ),
    "kind of a shape": refused(
        built(lambda b: b.add_shape("a", "cone", [1])), "its kind is 'cone', expected one of box, sphere"
    ),
    "negative radius": refused(
        built(lambda b: b.add_shape("a", "sphere", [-1])), r"size is \[-1.0\], expected positive numbers"
    ),
    "color as text": refused(
        built(lambda b: b.add_shape("a", "sphere", [1], color="red")), "color of shape '' is not an array"
    ),
    "shapes that are none": refused(
        built(lambda b: b.add_shapes("a", [5])), "a shape is 5, expected a Shape", TypeError
    ),
    "gravity as a number": refused(
        lambda: sl.ModelBuilder("b", gravity=9.81), r"gravity has shape \(\), expected \(3,\)"
    ),
    # replace
    "unknown field": refused(
        lambda: MODEL.replace(gravitiy=1), "no field 'gravitiy'; did you mean 'gravity'", TypeError
    ),
    "field far from any": refused(
        lambda: MODEL.replace(xyzzy=1), "no field 'xyzzy'; expected one of name, joints", TypeError
    ),
    "joints as a number": refused(
        lambda: MODEL.replace(joints=5), "joints is 5, expected a sequence of Joint", TypeError
    ),
    "joints of numbers": refused(lambda: MODEL.replace(joints=[1]), r"joints\[0\] is 1, expected a Joint", TypeError),
    "frames of texts": refused(lambda: MODEL.replace(frames=["a"]), r"frames\[0\] is 'a', expected a Frame", TypeError),
    "no universe": refused(lambda: MODEL.replace(joints=MODEL.joints[1:]), r"joints\[0\] must be the universe"),
    "frame twice": refused(
        lambda: MODEL.replace(frames=(*MODEL.frames, MODEL.frames[-1])), "there are two OP frames 'frame_10'"
    ),
    "same names": refused(with_joint(name=MODEL.joints[2].name), f"there are two joints '{MODEL.joints[2].name}'"),
    "frame on nothing": refused(
        lambda: MODEL.replace(frames=(*MODEL.frames, sl.Frame("f", 99, np.eye(4)))),
        "'f': joint 99 or frame 0 does not exist",
    ),
    "gravity of NaN": refused(lambda: MODEL.replace(gravity=(0, 0, np.nan)), "gravity contains NaN"),
    "negative armature": refused(
        lambda: MODEL.with_armature(changed(V, 7, -1)), r"armature is -1.0 at \[7\], expected nothing neg"
    ),
    "limits crossed": refused(
        lambda: MODEL.replace(lower_position_limit=MODEL.upper_position_limit + 1),
        f"joint '{MODEL.joints[1].name}': its lower position limit .* at q.0., leave no room; expected the lower one",
    ),
    "references that are none": refused(
        lambda: MODEL.replace(reference_configurations=5), "is 5, expected a mapping", TypeError
    ),
    "reference off the circle": refused(
        lambda: MODEL.replace(reference_configurations={"home": np.zeros(NQ)}),
        "'home': its part of joint .* expected length 1",
    ),
    "negative mass of a joint": refused(with_joint(mass=-1.0), "mass of joint .* is -1.0, expected no negative number"),
    "parent after the joint": refused(with_joint(parent=5), "its parent is 5, expected an index from 0 to 0"),
    "rotation of zeros": refused(
        with_joint(placement=np.diag([0, 0, 0, 1])), "placement of joint .* is not orthonormal"
    ),
    "axis of length 2": refused(with_joint(axis=(0, 0, 2)), "axis of joint .* expected one of length 1"),
    "inertia of a joint": refused(with_joint(inertia=np.triu(np.ones((3, 3)))), "inertia of joint .* is not symmetric"),
    "place in q": refused(with_joint(iq=3), "iq, iv are 3, 0, expected 0, 0"),
    "placement of a frame": refused(
        lambda: sl.Frame("f", 1, np.ones((4, 4))), "placement of frame 'f' has the last row"
    ),
    # Random models, robots by name
    "no bodies": refused(
        lambda: sl.random_model(0, 0), "a random model of 0 bodies and 7 joint kinds: at least one of each"
    ),
    "half a body": refused(lambda: sl.random_model(0, 2.5), "random_model: bodies is 2.5, expected a whole number"),
    "kinds as text": refused(
        lambda: sl.random_model(0, 3, "revolute"), "kinds is 'revolute', expected a list", TypeError
    ),
    "kinds of universe": refused(
        lambda: sl.random_model(0, 3, ["universe"]), "only one universe; expected a kind that moves"
    ),
    "seed as text": refused(lambda: sl.random_model("a", 3), "random_model: seed is 'a', expected a whole number"),
    "seed below 0": refused(lambda: sl.random_model(-1, 3), "random_model: seed is -1, expected no negative number"),
    "robot": refused(lambda: sl.load_robot("quadrupd"), "there is no robot 'quadrupd'; did you mean 'quadruped'?"),
    "robot far from any": refused(
        lambda: sl.load_robot("xyzzy"), "there is no robot 'xyzzy'; known are quadruped, humanoid"
    ),
    "path for a robot": refused(lambda: sl.load_robot("../../x"), "there is no robot '../../x'"),
    "number for a robot": refused(lambda: sl.load_robot(5), "expected the name of a robot, got 5", TypeError),
    "frames of no robot": refused(lambda: sl.robot_frames("xyzzy"), "there is no robot 'xyzzy'"),
}
