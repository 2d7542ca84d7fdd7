"""Wrong inputs and outputs of algorithms, wrong frames, wrong numbers of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

import saltus as sl
from tests.bad_inputs.case import MODEL, NQ, NV, Case, Q, V, changed

FREE = next(joint for joint in MODEL.joints if joint.kind == sl.JointKind.FREE_FLYER)
TURN = next(joint for joint in MODEL.joints if joint.kind == sl.JointKind.CONTINUOUS)


def follower() -> sl.Model:
    """Two hinges, the second of which mimics the first."""
    builder = sl.ModelBuilder("follower")
    builder.add_joint("a", "continuous")
    builder.add_body("a", 1.0, (0.1, 0, 0), np.eye(3))
    builder.add_joint("b", "continuous", "a", mimic=sl.Mimic("a", 2.0))
    builder.add_body("b", 1.0, (0.1, 0, 0), np.eye(3))
    return builder.build()


MIMIC = follower()


class Unreadable:
    """Like a PyTorch tensor that requires a gradient."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("call detach first")


def read_only_array() -> Any:
    array = np.zeros((NV, NV))
    array.setflags(write=False)
    return array


def unaligned_array() -> Any:
    return np.frombuffer(bytearray(8 * NV * NV + 1), np.uint8)[1:].view(np.float64).reshape(NV, NV)


IN_ALGORITHMS = {
    # Shapes
    "q too long": Case(
        lambda: sl.crba(MODEL, np.zeros(NQ + 1)), rf"^crba: q has shape \({NQ + 1},\), expected \(..., {NQ}\)"
    ),
    "q too short": Case(lambda: sl.integrate(MODEL, Q[1:], V), rf"^integrate: q has shape \({NQ - 1},\), expected"),
    "v with nq": Case(lambda: sl.rnea(MODEL, Q, Q, V), rf"^rnea: v has shape \({NQ},\), expected \(..., {NV}\)"),
    "a number": Case(lambda: sl.crba(MODEL, 0.0), r"^crba: q has shape \(\), expected"),
    "an empty list": Case(lambda: sl.crba(MODEL, []), r"^crba: q has shape \(0,\), expected"),
    "a column": Case(lambda: sl.crba(MODEL, Q[:, None]), rf"^crba: q has shape \({NQ}, 1\), expected"),
    "forces of one body": Case(
        lambda: sl.gravity(MODEL, Q, np.zeros(6)), r"^gravity: forces has shape \(6,\), expected"
    ),
    "leading axes": Case(
        lambda: sl.aba(MODEL, np.tile(Q, (3, 1)), np.zeros((2, NV)), V),
        r"^aba: the leading axes do not broadcast together: q \(3,\), v \(2,\), tau \(\)",
    ),
    "an empty batch and another": Case(
        lambda: sl.aba(MODEL, np.zeros((0, NQ)), np.zeros((2, NV)), V), r"do not broadcast together: q \(0,\), v \(2,\)"
    ),
    "interpolation times": Case(
        lambda: sl.interpolate(MODEL, np.tile(Q, (3, 1)), Q, [0.1, 0.2]),
        r"^interpolate: the leading axes do not broadcast",
    ),
    # Types
    "complex": Case(
        lambda: sl.crba(MODEL, Q + 0j), "^crba: q is not an array of numbers, but of complex128", TypeError
    ),
    "text": Case(lambda: sl.aba(MODEL, Q, "fast", V), "^aba: v is not an array of numbers, but of <U4", TypeError),
    "texts of numbers": Case(
        lambda: sl.crba(MODEL, ["0"] * NQ), "^crba: q is not an array of numbers, but of <U1", TypeError
    ),
    "bytes": Case(lambda: sl.crba(MODEL, b"abc"), r"^crba: q is not an array of numbers, but of \|S3", TypeError),
    "ragged": Case(
        lambda: sl.crba(MODEL, [[1.0], [1.0, 2.0]]), "^crba: q is not an array of numbers .*inhomogeneous", TypeError
    ),
    "ragged times": Case(
        lambda: sl.interpolate(MODEL, Q, Q, [[1], [1, 2]]), "^interpolate: u is not an array of num", TypeError
    ),
    "objects": Case(
        lambda: sl.crba(MODEL, Q.astype(object)), "^crba: q is not an array of numbers, but of object", TypeError
    ),
    "huge integers": Case(
        lambda: sl.crba(MODEL, [10**400] * NQ), "^crba: q is not an array of numbers, but of obj", TypeError
    ),
    "dates": Case(lambda: sl.crba(MODEL, np.zeros(NQ, "M8[s]")), "^crba: q is not .* but of datetime64", TypeError),
    "masked": Case(
        lambda: sl.crba(MODEL, np.ma.masked_less(Q, 0.5)), "^crba: q is an array with masked entries", TypeError
    ),
    "not readable": Case(
        lambda: sl.crba(MODEL, Unreadable()), r"^crba: q is not an array .*call detach first", TypeError
    ),
    "None": Case(
        lambda: sl.rnea(MODEL, Q, V, None), "^rnea: a is None, expected an array: the inputs are q, v, a", TypeError
    ),
    "no model": Case(lambda: sl.crba(None, Q), "^crba: the model is a NoneType, expected a saltus.Model", TypeError),
    "name for model": Case(
        lambda: sl.aba("quadruped", Q, V, V), "^aba: the model is a str, expected a saltus", TypeError
    ),
    "model and q swapped": Case(
        lambda: sl.crba(Q, MODEL), "^crba: the model is a ndarray, expected a saltus.M", TypeError
    ),
    "name for model of a frame": Case(
        lambda: sl.frame_jacobian("x", Q, 1), "^the model is a str, expected a saltus", TypeError
    ),
    "too few inputs": Case(lambda: sl.rnea(MODEL, Q, V), "missing 1 required positional argument: 'a'", TypeError),
    # Values
    "NaN": Case(lambda: sl.crba(MODEL, changed(Q, 3, np.nan)), r"^crba: q\[3\] is nan, expected finite numbers"),
    "infinity": Case(
        lambda: sl.rnea(MODEL, Q, V, changed(V, 5, np.inf)), r"^rnea: a\[5\] is inf, expected finite numbers"
    ),
    "NaN in a batch": Case(
        lambda: sl.rnea(MODEL, Q, changed(np.zeros((50, NV)), (33, 2), np.nan), V),
        r"^rnea: v\[33, 2\] is nan, expected finite",
    ),
    "overflow of long doubles": Case(
        lambda: sl.rnea(MODEL, Q, V, np.full(NV, 1e308, np.longdouble) * 1e10), r"^rnea: a\[0\] is inf, expected finite"
    ),
    "NaN time": Case(lambda: sl.interpolate(MODEL, Q, Q, np.nan), "^interpolate: u is nan, expected finite"),
    "quaternion": Case(
        lambda: sl.crba(MODEL, changed(Q, slice(FREE.iq + 3, FREE.iq + 7), 1.0)),
        rf"^crba: q: the quaternion of joint '{FREE.name}', q\[{FREE.iq + 3}:{FREE.iq + 7}\], has norm 2, expected 1",
    ),
    "zero quaternion": Case(
        lambda: sl.integrate(MODEL, np.zeros(NQ), V),
        "^integrate: q: the cosine and sine of joint .* has norm 0, expected 1",
    ),
    "off the circle": Case(
        lambda: sl.frame_jacobian(MODEL, changed(Q, TURN.iq, 0.9), 1),
        rf"^frame_jacobian: q: the cosine and sine of joint '{TURN.name}', .* has norm 0.9, expected 1",
    ),
    "quaternion in a batch": Case(
        lambda: sl.crba(MODEL, changed(np.tile(Q, (4, 9, 1)), (2, 7, FREE.iq + 6), 2.0)),
        rf"^crba: q\[2, 7\]: the quaternion of joint '{FREE.name}', .* has norm 2, expected 1",
    ),
    # Models with mimic joints go another way
    "mimic: q too long": Case(lambda: sl.crba(MIMIC, [1.0, 0, 0]), r"^crba: q has shape \(3,\), expected \(..., 2\)"),
    "mimic: v too long": Case(
        lambda: sl.rnea(MIMIC, [1.0, 0], [0, 0], [0]), r"^rnea: v has shape \(2,\), expected \(..., 1\)"
    ),
    "mimic: tau too long": Case(lambda: sl.aba(MIMIC, [1.0, 0], [0], [0, 0]), r"^aba: tau has shape \(2,\), expected"),
    "mimic: a number": Case(lambda: sl.crba(MIMIC, 0.0), r"^crba: q has shape \(\), expected \(..., 2\)"),
    "mimic: complex": Case(
        lambda: sl.crba(MIMIC, [1 + 0j, 0]), "^crba: q is not an array of numbers, but of comp", TypeError
    ),
    "mimic: NaN": Case(lambda: sl.aba(MIMIC, [1.0, 0], [0], [np.nan]), r"^aba: tau\[0\] is nan, expected finite"),
    "mimic: off the circle": Case(
        lambda: sl.crba(MIMIC, [[1.0, 0], [2.0, 0]]),
        r"^crba: q\[1\]: the cosine and sine of joint 'a', q\[0:2\], has norm 2",
    ),
    "mimic: leading axes": Case(
        lambda: sl.rnea(MIMIC, np.tile([1.0, 0], (3, 1)), np.zeros((2, 1)), [0]),
        r"leading axes do not .* q \(3,\), v \(2,\)",
    ),
    "mimic: out": Case(
        lambda: sl.aba(MIMIC, [1.0, 0], [0], [0], out=np.zeros((3, 1))),
        r"out for a is float64 \(3, 1\), expected float64 \(1,\)",
    ),
    "mimic: factor": Case(
        lambda: sl.ltl(MIMIC, np.eye(1)), "^ltl: M has the tree's sparsity, which mimic joints destroy"
    ),
    # Results
    "out of another shape": Case(
        lambda: sl.crba(MODEL, Q, out=np.zeros(NV)),
        rf"^crba: out for M is float64 \({NV},\), expected float64 \({NV}, {NV}\)",
    ),
    "out without the batch": Case(
        lambda: sl.rnea(MODEL, np.tile(Q, (9, 1)), V, V, out=np.zeros(NV)),
        rf"out for tau .* expected float64 \(9, {NV}\)",
    ),
    "single out": Case(
        lambda: sl.crba(MODEL, Q, out=np.zeros((NV, NV), np.float32)), "out for M is float32 .* expected float64"
    ),
    "integer out": Case(
        lambda: sl.crba(MODEL, Q, out=np.zeros((NV, NV), int)), "out for M is int64 .* expected float64"
    ),
    "swapped bytes": Case(
        lambda: sl.crba(MODEL, Q, out=np.zeros((NV, NV), ">f8")), "out for M is >f8 .* expected float64"
    ),
    "list as out": Case(lambda: sl.crba(MODEL, Q, out=[0.0]), "out for M is list, expected float64"),
    "tuple as out": Case(lambda: sl.crba(MODEL, Q, out=(np.zeros((NV, NV)),)), "out for M is tuple, expected float64"),
    "transposed out": Case(
        lambda: sl.crba(MODEL, Q, out=np.zeros((NV, NV)).T),
        r"out for M has strides .* expected aligned samples, evenly spaced, without gaps",
    ),
    "every other column": Case(
        lambda: sl.rnea(MODEL, np.tile(Q, (9, 1)), V, V, out=np.zeros((9, 2 * NV))[:, ::2]),
        "out for tau has strides .* without gaps",
    ),
    "rows on top of each other": Case(
        lambda: sl.rnea(MODEL, np.tile(Q, (9, 1)), V, V, out=as_strided(np.zeros(9 * NV), (9, NV), (8, 8))),
        "out for tau has strides .* evenly spaced",
    ),
    "rows backwards": Case(
        lambda: sl.rnea(MODEL, np.tile(Q, (9, 1)), V, V, out=np.zeros((9, NV))[::-1]),
        "out for tau has strides .* evenly spaced",
    ),
    "unaligned out": Case(lambda: sl.crba(MODEL, Q, out=unaligned_array()), "out for M has strides .* aligned"),
    "read-only out": Case(
        lambda: sl.crba(MODEL, Q, out=read_only_array()), "out for M is read-only, expected an array"
    ),
    # Frames, joints, references
    "unknown frame": Case(
        lambda: sl.frame_placement(MODEL, Q, "fram_1"), "has no frame 'fram_1'; did you mean 'frame_1'", sl.ModelError
    ),
    "frame far from any": Case(
        lambda: sl.frame_placement(MODEL, Q, "xyzzy"), "has no frame 'xyzzy'; it has uni", sl.ModelError
    ),
    "frame too high": Case(
        lambda: sl.frame_placement(MODEL, Q, 999), "has no frame 999; its indices run from 0", sl.ModelError
    ),
    "negative frame": Case(
        lambda: sl.frame_placement(MODEL, Q, -1), "has no frame -1; its indices run from 0", sl.ModelError
    ),
    "frame and a half": Case(
        lambda: sl.frame_placement(MODEL, Q, 1.5), "1.5 is no frame; expected its name or its", TypeError
    ),
    "frame 1.0": Case(
        lambda: [sl.frame_placement(MODEL, Q, frame) for frame in (1, 1.0)],
        "1.0 is no frame; expected its name",
        TypeError,
    ),
    "several frames": Case(
        lambda: sl.frame_jacobian(MODEL, Q, [1, 2]), r"\[1, 2\] is no frame; expected its name", TypeError
    ),
    "no frame": Case(
        lambda: sl.frame_jacobian(MODEL, Q, None), "None is no frame; expected its name or its index", TypeError
    ),
    "unknown joint": Case(
        lambda: sl.joint_jacobian(MODEL, Q, FREE.name[:-1]),
        f"has no joint .* did you mean '{FREE.name}'",
        sl.ModelError,
    ),
    "Pinocchio's reference": Case(
        lambda: sl.frame_jacobian(MODEL, Q, 1, "LOCAL"),
        "reference is 'LOCAL', expected one of 'local', 'world', 'local_world_",
    ),
    "list of references": Case(
        lambda: sl.frame_jacobian(MODEL, Q, 1, ["local"]), r"reference is \['local'\], expected one of"
    ),
    # Random configurations, threads
    "negative count": Case(
        lambda: sl.random_configuration(MODEL, 0, -1), r"shape is \(-1,\), expected nothing negative"
    ),
    "half a count": Case(
        lambda: sl.random_configuration(MODEL, 0, 1.5), "shape is 1.5, expected a whole number", TypeError
    ),
    "seed": Case(lambda: sl.random_configuration(MODEL, "a"), "seed is 'a', expected a number from 0 on", TypeError),
    "negative seed": Case(lambda: sl.random_configuration(MODEL, -1), "seed is -1, expected a number from 0 on"),
    "no thread": Case(
        lambda: sl.set_threads(0), "^set_threads: expected a positive number of threads, at most 1024, got 0"
    ),
    "half a thread": Case(
        lambda: sl.set_threads(2.5), "^set_threads: expected a number of threads, got 2.5", TypeError
    ),
    "NaN threads": Case(
        lambda: sl.set_threads(np.nan), "^set_threads: expected a number of threads, got nan", TypeError
    ),
    "threads as text": Case(
        lambda: sl.set_threads("2"), "^set_threads: expected a number of threads, got '2'", TypeError
    ),
    "a billion threads": Case(lambda: sl.set_threads(10**9), "^set_threads: expected .* at most 1024, got 1000000000"),
}
