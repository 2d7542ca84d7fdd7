"""Wrong inputs: the exception's class, and that its message names the function, the input and the place."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.kernel import Algorithm
from saltus.kernel.target import packet
from tests.closeness import assert_close
from tests.kernel.cases import NAMES, PRECISIONS, VARIANTS, all_kinds, random_inputs, run

MODEL = all_kinds()
WIDTH = packet(64).width
each_variant = pytest.mark.parametrize(("algorithm", "given"), VARIANTS, ids=NAMES)
Q, V = MODEL.neutral(), np.zeros(MODEL.nv)


def refused(algorithm: Algorithm, inputs: list[Any], words: str, kind: type[Exception] = ValueError) -> None:
    """Twice: the second time everything is prepared."""
    for _ in range(2):
        with pytest.raises(kind, match=rf"^{algorithm.name}: {words}"):
            algorithm.call(MODEL, tuple(inputs))


@each_variant
@pytest.mark.parametrize("leading", [(), (WIDTH + 1,)], ids=str)
def test_wrong_shape(algorithm: Algorithm, given: int, leading: tuple[int, ...]) -> None:
    inputs = random_inputs(algorithm, given, MODEL, 1, leading)
    run(algorithm, MODEL, inputs)
    for k, spec in enumerate(algorithm.inputs[:given]):
        if not spec.shape:  # axes that a number has are leading ones
            continue
        own = inputs[k].shape[inputs[k].ndim - len(spec.shape) :]
        longer = np.zeros((*inputs[k].shape[:-1], own[-1] + 1), inputs[k].dtype)
        shorter = np.ascontiguousarray(inputs[k][..., :-1])
        number = np.zeros((), inputs[k].dtype)
        for wrong in (longer, shorter) if spec.integer else (longer, shorter, number):
            shape = re.escape(str(wrong.shape))
            expected = re.escape(", ".join(map(str, own)))
            refused(
                algorithm, [*inputs[:k], wrong, *inputs[k + 1 :]],
                rf"{spec.name} has shape {shape}, expected \((\.\.\., )?{expected}\)",
            )  # fmt: skip


def test_leading_axes_that_do_not_fit() -> None:
    with pytest.raises(
        ValueError, match=r"rnea: the leading axes do not broadcast together: q \(3,\), v \(4,\), a \(\)"
    ):
        sl.rnea(MODEL, np.tile(Q, (3, 1)), np.zeros((4, MODEL.nv)), V)


@each_variant
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_not_finite(algorithm: Algorithm, given: int, value: float, dtype: Any) -> None:
    """In the first, a middle and the last number of every input, in one sample and in some lane of a batch."""
    for leading in ((), (2 * WIDTH + 1,), (2, 3)):
        good = [
            x if x.dtype == np.int32 else x.astype(dtype) for x in random_inputs(algorithm, given, MODEL, 2, leading)
        ]
        for k, spec in enumerate(algorithm.inputs[:given]):
            if spec.integer:
                continue
            for place in (0, good[k].size // 2, good[k].size - 1):
                bad = good[k].copy()
                bad.flat[place] = value
                index = ", ".join(map(str, np.unravel_index(place, bad.shape)))
                where = re.escape(f"{spec.name}[{index}]" if bad.shape else spec.name)
                refused(algorithm, [*good[:k], bad, *good[k + 1 :]], f"{where} is {value}, expected finite")
        run(algorithm, MODEL, good)  # and it goes on


def test_not_finite_in_any_lane() -> None:
    for lane in range(2 * WIDTH + 1):
        v = np.zeros((2 * WIDTH + 1, MODEL.nv))
        v[lane, 3] = np.nan
        with pytest.raises(ValueError, match=rf"joint_velocities: v\[{lane}, 3\] is nan"):
            sl.joint_velocities(MODEL, Q, v)


def test_not_finite_among_threads() -> None:
    before = sl.get_threads()
    sl.set_threads(2)
    try:
        v = np.zeros((200 * WIDTH, MODEL.nv))
        v[150 * WIDTH, 1] = np.inf
        with pytest.raises(ValueError, match=rf"joint_velocities: v\[{150 * WIDTH}, 1\] is inf"):
            sl.joint_velocities(MODEL, Q, v)
    finally:
        sl.set_threads(before)


UNIT_JOINTS = [joint for joint in MODEL.joints[1:] if joint.kind.unit_coordinates.stop]


@pytest.mark.parametrize("joint", UNIT_JOINTS, ids=lambda joint: joint.name)
@pytest.mark.parametrize("scale", [0.0, 0.999, 1.001, 2.0, -3.0])
def test_not_of_unit_length(joint: sl.Joint, scale: float) -> None:
    unit = joint.kind.unit_coordinates
    part = slice(joint.iq + unit.start, joint.iq + unit.stop)
    what = "quaternion" if unit.stop - unit.start == 4 else "cosine and sine"
    words = rf"the {what} of joint '{joint.name}', q\[{part.start}:{part.stop}\], has norm {abs(scale):.9g}, expected 1"
    bad = sl.random_configuration(MODEL, 3)
    bad[part] *= scale
    with pytest.raises(ValueError, match=rf"^crba: q: {words}"):
        sl.crba(MODEL, bad)
    for lane in (0, WIDTH - 1, 2 * WIDTH):
        batch = sl.random_configuration(MODEL, 4, 2 * WIDTH + 1)
        batch[lane, part] *= scale
        with pytest.raises(ValueError, match=rf"^crba: q\[{lane}\]: the {what} of joint '{joint.name}'"):
            sl.crba(MODEL, batch)
    pair = sl.random_configuration(MODEL, 5, (2, 3))
    pair[1, 2, part] *= scale
    with pytest.raises(ValueError, match=rf"^difference: q1\[1, 2\]: the {what} of joint '{joint.name}'"):
        sl.difference(MODEL, Q, pair)


def test_nearly_of_unit_length_is_accepted() -> None:
    q = sl.random_configuration(MODEL, 3)
    right = sl.crba(MODEL, q)
    for joint in UNIT_JOINTS:
        unit = joint.kind.unit_coordinates
        q[joint.iq + unit.start : joint.iq + unit.stop] *= 1.0 + 1e-8
    assert_close(sl.crba(MODEL, q), right, 1e-6)
    assert_close(sl.crba(MODEL, q.astype(np.float32)), right, 1e-5)


def test_single_precision_names_the_right_sample() -> None:
    """Its tolerance is wider: what is just off by rounding is not to blame."""
    joint = UNIT_JOINTS[0]
    part = slice(joint.iq + joint.kind.unit_coordinates.start, joint.iq + joint.kind.unit_coordinates.stop)
    q = sl.random_configuration(MODEL, 3, 5).astype(np.float32)
    q[1, part] *= np.float32(1.0 + 1e-4)
    sl.crba(MODEL, q)
    q[3, part] *= np.float32(1.1)
    with pytest.raises(ValueError, match=r"^crba: q\[3\]: "):
        sl.crba(MODEL, q)


@pytest.mark.parametrize(
    "wrong", ["hello", object(), {"a": 1}, None, [[1.0], [2.0, 3.0]], Q + 1j, np.array(["x"] * MODEL.nq)],
    ids=["text", "object", "dict", "none", "ragged", "complex", "texts"],
)  # fmt: skip
def test_not_numbers(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"^crba: q is (not an array of numbers|None, expected an array)"):
        sl.crba(MODEL, wrong)


@each_variant
def test_wrong_number_of_inputs(algorithm: Algorithm, given: int) -> None:
    inputs = random_inputs(algorithm, given, MODEL, 6)
    names = ", ".join(spec.name for spec in algorithm.inputs)
    for count in {0, algorithm.variants()[0] - 1, len(algorithm.inputs) + 1}:
        wrong = (inputs * 3)[:count]
        refused(algorithm, wrong, rf"expected the inputs {names}, got {count} of them", TypeError)


def test_missing_arguments() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        sl.rnea(MODEL, Q, V)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="rnea: a is None, expected an array: the inputs are q, v, a, forces"):
        sl.rnea(MODEL, Q, V, None)


def test_unknown_frame_and_joint() -> None:
    name = MODEL.frames[-1].name
    for call in (
        lambda frame: sl.frame_placement(MODEL, Q, frame),
        lambda frame: sl.frame_velocity(MODEL, Q, V, frame),
        lambda frame: sl.frame_acceleration(MODEL, Q, V, V, frame),
        lambda frame: sl.frame_jacobian(MODEL, Q, frame),
        lambda frame: sl.frame_jacobian_dot(MODEL, Q, V, frame),
    ):
        with pytest.raises(sl.ModelError, match=rf"has no frame '{name}x'; did you mean '{name}'"):
            call(name + "x")
        for index in (-1, len(MODEL.frames)):
            with pytest.raises(sl.ModelError, match=rf"has no frame {index}; its indices run from 0 to"):
                call(index)
        call(name)
    for call in (
        lambda joint: sl.joint_jacobian(MODEL, Q, joint),
        lambda joint: sl.joint_jacobian_dot(MODEL, Q, V, joint),
    ):
        with pytest.raises(sl.ModelError, match="has no joint 'elbow'; "):
            call("elbow")
        for index in (-1, MODEL.njoints):
            with pytest.raises(sl.ModelError, match=rf"has no joint {index}; its indices run from 0 to"):
                call(index)
        call(MODEL.joints[1].name)


@pytest.mark.parametrize("reference", ["LOCAL", "global", "", "local_world", None, 0])
def test_unknown_reference(reference: Any) -> None:
    for call in (
        lambda: sl.frame_velocity(MODEL, Q, V, 1, reference),
        lambda: sl.frame_acceleration(MODEL, Q, V, V, 1, reference),
        lambda: sl.frame_jacobian(MODEL, Q, 1, reference),
        lambda: sl.frame_jacobian_dot(MODEL, Q, V, 1, reference),
        lambda: sl.joint_jacobian(MODEL, Q, 1, reference),
        lambda: sl.joint_jacobian_dot(MODEL, Q, V, 1, reference),
    ):
        with pytest.raises(
            ValueError, match=rf"reference is {reference!r}, expected one of 'local', 'world', 'local_world"
        ):
            call()


@pytest.mark.parametrize("index", [1.5, "1", (1,), None])
def test_index_of_another_kind(index: Any) -> None:
    """Never taken for a frame silently."""
    with pytest.raises((TypeError, ValueError)):
        sl.frame_placement(MODEL, Q, index)


@pytest.mark.parametrize("count", [0, -1])
def test_number_of_threads(count: int) -> None:
    with pytest.raises(ValueError, match=f"set_threads: expected a positive number of threads, .* got {count}"):
        sl.set_threads(count)
