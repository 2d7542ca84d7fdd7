"""Batches against single calls, for every algorithm: lanes, ragged ends, broadcasting, precisions, threads, layouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.kernel import Algorithm
from saltus.kernel.target import packet
from tests.closeness import assert_close, with_rounding
from tests.kernel.cases import NAMES, PRECISIONS, SOLVERS, VARIANTS, all_kinds, random_inputs, run, sample

WIDTH = packet(64).width
MODEL = all_kinds()
each_variant = pytest.mark.parametrize(("algorithm", "given"), VARIANTS, ids=NAMES)


@pytest.fixture
def threads() -> Iterator[None]:
    before = sl.get_threads()
    yield
    sl.set_threads(before)


def assert_equal(ours: tuple[Any, ...], right: tuple[Any, ...]) -> None:
    """Bit by bit."""
    assert len(ours) == len(right)
    for one, other in zip(ours, right, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        assert np.array_equal(one, other)


def assert_rows_close(
    algorithm: Algorithm, batch: tuple[Any, ...], inputs: list[Any], tolerance: float = 1e-12
) -> None:
    """Every sample of a batch against its single call."""
    leading = batch[0].shape[: batch[0].ndim - len(algorithm.outputs[0].shape)]
    for index in np.ndindex(leading):
        single = run(algorithm, MODEL, sample(algorithm, inputs, index))
        for spec, one, other in zip(algorithm.outputs, batch, single, strict=True):
            assert_close(one[index], other, tolerance, what=f"{spec.name}{list(index)}")


@each_variant
def test_every_lane_and_every_ragged_end(algorithm: Algorithm, given: int) -> None:
    longest = 2 * WIDTH + 1
    inputs = random_inputs(algorithm, given, MODEL, 1, (longest,))
    whole = run(algorithm, MODEL, inputs)
    assert_rows_close(algorithm, whole, inputs)
    for size in range(1, longest):
        part = [x if spec.integer else x[:size] for spec, x in zip(algorithm.inputs, inputs, strict=False)]
        assert_equal(run(algorithm, MODEL, part), tuple(result[:size] for result in whole))


@each_variant
def test_a_sample_does_not_depend_on_its_lane(algorithm: Algorithm, given: int) -> None:
    inputs = random_inputs(algorithm, given, MODEL, 2, (2 * WIDTH,))
    order = np.random.default_rng(0).permutation(2 * WIDTH)
    mixed = [x if spec.integer else x[order] for spec, x in zip(algorithm.inputs, inputs, strict=False)]
    whole = run(algorithm, MODEL, inputs)
    assert_equal(run(algorithm, MODEL, mixed), tuple(result[order] for result in whole))


@pytest.mark.slow
@each_variant
def test_single_precision(algorithm: Algorithm, given: int) -> None:
    """Against double precision on the same inputs; what solves may lose what the condition number takes."""
    count = 2 * packet(32).width + 1
    inputs = random_inputs(algorithm, given, MODEL, 3, (count,))
    singles = [x if x.dtype == np.int32 else x.astype(np.float32) for x in inputs]
    doubles = [x if x.dtype == np.int32 else x.astype(np.float64) for x in singles]
    tolerance = 1e-5
    if algorithm.name in SOLVERS:
        condition = np.linalg.cond(sl.crba(MODEL, sl.random_configuration(MODEL, 0, 20))).max()
        tolerance = with_rounding(tolerance, condition, real=np.float32)
    ours, right = run(algorithm, MODEL, singles), run(algorithm, MODEL, doubles)
    for spec, one, other in zip(algorithm.outputs, ours, right, strict=True):
        assert one.dtype == np.float32 and other.dtype == np.float64
        assert_close(one, other, tolerance, what=spec.name)


@pytest.mark.slow
@each_variant
def test_one_sample_in_single_precision(algorithm: Algorithm, given: int) -> None:
    inputs = random_inputs(algorithm, given, MODEL, 4)
    singles = [x if x.dtype == np.int32 else x.astype(np.float32) for x in inputs]
    batch = [x if x.dtype == np.int32 else x[None] for x in singles]
    one, many = run(algorithm, MODEL, singles), run(algorithm, MODEL, batch)
    assert_equal(one, tuple(result[0] for result in many))
    assert all(result.dtype == np.float32 for result in one)


@each_variant
def test_threads_change_nothing(algorithm: Algorithm, given: int, threads: None) -> None:
    inputs = random_inputs(algorithm, given, MODEL, 5, (3 * 16 * 3 * WIDTH + 1,))
    sl.set_threads(1)
    alone = run(algorithm, MODEL, inputs)
    for count in (2, 3):
        sl.set_threads(count)
        assert_equal(run(algorithm, MODEL, inputs), alone)


@each_variant
def test_broadcasting(algorithm: Algorithm, given: int) -> None:
    """Leading axes (3, 1), (5,), (), (3, 5), one after the other for the inputs."""
    shapes = [(3, 1), (5,), (), (3, 5)]
    inputs: list[Any] = []
    full: list[Any] = []
    reals = 0
    for k, spec in enumerate(algorithm.inputs[:given]):
        shape = () if spec.integer else shapes[reals % len(shapes)]
        reals += not spec.integer
        value = random_inputs(algorithm, given, MODEL, 10 + k, shape)[k]
        inputs.append(value)
        own = spec.resolve(algorithm.sizes(MODEL, full))
        full.append(value if spec.integer else np.broadcast_to(value, (3, 5, *own)))
    result = run(algorithm, MODEL, inputs)
    leading = np.broadcast_shapes(*shapes[: min(reals, 4)])
    expected = run(algorithm, MODEL, [x if x.dtype == np.int32 else np.ascontiguousarray(x) for x in full])
    for spec, one, other in zip(algorithm.outputs, result, expected, strict=True):
        own = one.ndim - len(spec.shape)
        assert one.shape[:own] == leading
        assert np.array_equal(np.broadcast_to(one, other.shape), other)
    assert_rows_close(algorithm, expected, full)


def awkward(x: np.ndarray) -> list[np.ndarray]:
    """The same numbers, laid out in other ways."""
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]))
    wide[..., ::2] = x
    padded = np.full((2 * x.shape[0], *x.shape[1:]), np.nan)  # a stray read would be noticed
    padded[::2] = x
    turned = np.ascontiguousarray(x[::-1])
    shifted = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float64).reshape(x.shape)
    shifted[...] = x
    read_only = x.copy()
    read_only.setflags(write=False)
    return [np.asfortranarray(x), wide[..., ::2], padded[::2], turned[::-1], shifted, read_only]


@each_variant
def test_memory_layout_of_inputs(algorithm: Algorithm, given: int) -> None:
    inputs = random_inputs(algorithm, given, MODEL, 6, (WIDTH + 1,))
    right = run(algorithm, MODEL, inputs)
    first = run(algorithm, MODEL, sample(algorithm, inputs, (0,)))
    ways = [[x] * 6 if x.dtype == np.int32 else awkward(x) for x in inputs]
    for way in zip(*ways, strict=True):
        assert_equal(run(algorithm, MODEL, list(way)), right)
        single = run(algorithm, MODEL, [x if x.dtype == np.int32 else x[0] for x in way])
        for one, other in zip(single, first, strict=True):  # what is not aligned goes through packets: rounding differs
            assert_close(one, other, 1e-12)


@each_variant
def test_inputs_are_left_alone(algorithm: Algorithm, given: int) -> None:
    for leading in ((), (WIDTH + 1,)):
        inputs = random_inputs(algorithm, given, MODEL, 6, leading)
        before = [x.copy() for x in inputs]
        run(algorithm, MODEL, inputs)
        assert all(np.array_equal(x, y) for x, y in zip(inputs, before, strict=True))


@each_variant
def test_lists(algorithm: Algorithm, given: int) -> None:
    for leading in ((), (WIDTH + 1,)):
        inputs = random_inputs(algorithm, given, MODEL, 7, leading)
        assert_equal(run(algorithm, MODEL, [x.tolist() for x in inputs]), run(algorithm, MODEL, inputs))


@each_variant
@pytest.mark.parametrize("leading", [(), (1,), (2, WIDTH + 1)], ids=str)
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_out(algorithm: Algorithm, given: int, leading: tuple[int, ...], dtype: Any) -> None:
    """The caller's arrays are filled and returned, whatever they held before."""
    inputs = [x if x.dtype == np.int32 else x.astype(dtype) for x in random_inputs(algorithm, given, MODEL, 8, leading)]
    right = run(algorithm, MODEL, inputs)
    out = tuple(np.full_like(result, np.nan) for result in right)
    for _ in range(2):  # the second call finds everything prepared
        answer = algorithm.call(MODEL, tuple(inputs), out if len(out) > 1 else out[0])
        answers = answer if isinstance(answer, tuple) else (answer,)
        assert len(answers) == len(out) and all(one is other for one, other in zip(answers, out, strict=True))
        assert_equal(out, right)


@each_variant
@pytest.mark.parametrize("leading", [(), (WIDTH + 1,)], ids=str)
def test_wrong_out(algorithm: Algorithm, given: int, leading: tuple[int, ...]) -> None:
    inputs = random_inputs(algorithm, given, MODEL, 9, leading)
    right = run(algorithm, MODEL, inputs)
    name = algorithm.outputs[0].name
    last = right[0].shape[-1] if right[0].shape else 1
    wide = np.zeros((*right[0].shape[:-1], 2 * last))
    read_only = np.zeros_like(right[0])
    read_only.setflags(write=False)
    wrong = [
        np.zeros((2, *right[0].shape)),
        np.zeros(right[0].size + 1),
        right[0].astype(np.float32),
        right[0].astype(complex),
        right[0].tolist(),
        wide[..., ::2] if last > 1 and algorithm.outputs[0].shape else read_only,
        read_only,
    ]
    for first in wrong:
        out = first if len(right) == 1 else (first, *right[1:])
        with pytest.raises(ValueError, match=rf"{algorithm.name}: out for {name} "):
            algorithm.call(MODEL, tuple(inputs), out)


@pytest.mark.parametrize("leading", [(), (WIDTH + 1,)], ids=str)
def test_wrong_number_of_outs(leading: tuple[int, ...]) -> None:
    algorithm = next(a for a, _ in VARIANTS if a.name == "integrate_jacobians")
    inputs = random_inputs(algorithm, 2, MODEL, 9, leading)
    first, second = run(algorithm, MODEL, inputs)
    for out in ((first,), (first, second, first.copy())):
        with pytest.raises((ValueError, TypeError), match="out|argument"):
            algorithm.call(MODEL, tuple(inputs), out)


@each_variant
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_no_samples(algorithm: Algorithm, given: int, dtype: Any) -> None:
    one = random_inputs(algorithm, given, MODEL, 10)
    sizes = algorithm.sizes(MODEL, one)
    for leading in ((0,), (3, 0, 2)):
        empty = [x if x.dtype == np.int32 else np.zeros((*leading, *x.shape), dtype) for x in one]
        for spec, result in zip(algorithm.outputs, run(algorithm, MODEL, empty), strict=True):
            assert result.shape == leading + spec.resolve(sizes) and result.dtype == dtype


def test_mixed_precision_is_double() -> None:
    q, v, a = random_inputs(next(x for x, _ in VARIANTS if x.name == "rnea"), 3, MODEL, 11, (3,))
    mixed = sl.rnea(MODEL, q, v.astype(np.float32), a)
    assert mixed.dtype == np.float64
    assert np.array_equal(mixed, sl.rnea(MODEL, q, v.astype(np.float32).astype(float), a))


def test_whole_numbers() -> None:
    q, zeros = MODEL.neutral(), np.zeros(MODEL.nv, int)
    right = sl.rnea(MODEL, q, np.zeros(MODEL.nv), np.ones(MODEL.nv))
    for kind in (int, bool, np.int8, np.uint64, np.float16):
        ones = np.ones(MODEL.nv, kind)
        assert np.array_equal(sl.rnea(MODEL, q, zeros, ones), right)


def test_public_functions_broadcast() -> None:
    """The shapes of the documentation: (nv,), (B, nv), (T, 1, nv)."""
    rng = np.random.default_rng(12)
    q = sl.random_configuration(MODEL, rng, (3, 1))
    v, a = rng.normal(size=(5, MODEL.nv)), rng.normal(size=MODEL.nv)
    tau = sl.rnea(MODEL, q, v, a)
    assert tau.shape == (3, 5, MODEL.nv)
    for t in range(3):
        for b in range(5):
            assert_close(tau[t, b], sl.rnea(MODEL, q[t, 0], v[b], a), 1e-12)
    assert sl.kinetic_energy(MODEL, q, v).shape == (3, 5)
    assert sl.frame_jacobian(MODEL, q, 2, "world").shape == (3, 1, 6, MODEL.nv)
    assert sl.interpolate(MODEL, q[0, 0], q[1, 0], np.linspace(0, 1, 7)).shape == (7, MODEL.nq)
    position, velocity = sl.center_of_mass(MODEL, q, v)
    assert position.shape == velocity.shape == (3, 5, 3)
    solved = sl.ltl(MODEL, sl.crba(MODEL, q)).solve(v)
    assert solved.shape == (3, 5, MODEL.nv)
    assert_close(solved[2, 4], np.linalg.solve(sl.crba(MODEL, q[2, 0]), v[4]), 1e-10)


@each_variant
@pytest.mark.parametrize("leading", [(), (2 * WIDTH + 1,)], ids=str)
def test_out_may_be_an_input(algorithm: Algorithm, given: int, leading: tuple[int, ...]) -> None:
    """The right answer or an error, never a wrong answer."""
    inputs = random_inputs(algorithm, given, MODEL, 13, leading)
    right = run(algorithm, MODEL, inputs)
    for k, spec in enumerate(algorithm.inputs[:given]):
        for j, result in enumerate(right):
            if spec.integer or inputs[k].shape != result.shape:
                continue
            own, out = [x.copy() for x in inputs], [np.empty_like(x) for x in right]
            out[j] = own[k]
            try:
                answer = run(algorithm, MODEL, own, tuple(out) if len(out) > 1 else out[0])
            except ValueError as error:
                assert spec.name in str(error)
                continue
            for one, other in zip(answer, right, strict=True):
                assert_close(one, other, 1e-12, what=f"out for {algorithm.outputs[j].name} is {spec.name}")
