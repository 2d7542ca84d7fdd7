"""Whatever NumPy takes for an array: the answer is that for clean copies, sample by sample, or a ValueError or TypeError.

Clean copies are contiguous, of float64, or of float32 where all inputs are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import saltus as sl
from tests.kernel.cases import all_kinds

MODEL = all_kinds()
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "aba": (lambda *x, **out: sl.aba(MODEL, *x, **out), ("nq", "nv", "nv")),
    "rnea": (lambda *x, **out: sl.rnea(MODEL, *x, **out), ("nq", "nv", "nv")),
    "crba": (lambda *x, **out: sl.crba(MODEL, *x, **out), ("nq",)),
    "integrate": (lambda *x, **out: sl.integrate(MODEL, *x, **out), ("nq", "nv")),
    "frame_jacobian": (lambda *x, **out: sl.frame_jacobian(MODEL, *x, "frame_1", "world", **out), ("nq",)),
}
SPECIAL = [np.nan, np.inf, -np.inf, 1e308, -1e200, 1e-310, 5e-324, -0.0, 0.0, 1.0, 1e9, 123456789.0]
LEADING = [(), (1,), (3,), (0,), (9,), (2, 3), (2, 1), (1, 3), (17,), (300,)]


def strided(array: Any) -> Any:
    """Every other number of a wider array."""
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


def unaligned(array: Any) -> Any:
    memory = np.zeros(array.nbytes + 1, np.uint8)[1:]
    result = memory.view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


FORMS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda x: x,
    "list": lambda x: x.tolist(),
    "column-major": np.asfortranarray,
    "strided": strided,
    "unaligned": unaligned,
    "backwards": lambda x: x[..., ::-1].copy()[..., ::-1],
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
    "broadcast": lambda x: np.broadcast_to(x, x.shape),
    "masked, with no mask": np.ma.array,
    "objects": lambda x: x.astype(object),
}
TYPES = ["f8", "f8", "f8", "f4", "f2", "g", ">f8", ">f4", "i8", "i2", "u1", "?", "c16", "U3"]


@st.composite
def arrays(draw: Any, size: str) -> Any:
    """Of about the right shape, now and then of a wrong one, with now and then a special number."""
    leading = draw(st.sampled_from(LEADING))
    width = getattr(MODEL, size) + draw(st.sampled_from([0] * 12 + [1, -1]))
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    if size == "nq" and width == MODEL.nq:
        array = sl.random_configuration(MODEL, rng, leading)
    else:
        array = rng.normal(size=(*leading, width))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        if array.size:
            array.flat[draw(st.integers(0, array.size - 1))] = draw(st.sampled_from(SPECIAL))
    kind = draw(st.sampled_from(TYPES))
    with np.errstate(all="ignore"):
        array = array.astype(kind)
    return FORMS[draw(st.sampled_from(list(FORMS)))](array)


@st.composite
def calls(draw: Any) -> tuple[str, list[Any]]:
    name = draw(st.sampled_from(list(FUNCTIONS)))
    return name, [draw(arrays(size)) for size in FUNCTIONS[name][1]]


def sample_by_sample(function: Callable[..., Any], inputs: list[Any], dtype: Any) -> Any:
    """The right answer: one call for each sample, on contiguous arrays."""
    clean = [np.array(x, dtype) for x in inputs]
    leading = np.broadcast_shapes(*(x.shape[:-1] for x in clean))
    wide = [np.broadcast_to(x, (*leading, x.shape[-1])) for x in clean]
    return leading, {index: function(*(np.ascontiguousarray(x[index]) for x in wide)) for index in np.ndindex(leading)}


@settings(max_examples=400)
@given(call=calls())
def test_right_or_refused(call: tuple[str, list[Any]]) -> None:
    name, inputs = call
    function, _ = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        try:
            answer = function(*inputs)
        except (TypeError, ValueError) as error:
            assert str(error).startswith(f"{name}: ")
            return
        dtype = np.float32 if all(getattr(x, "dtype", None) == np.float32 for x in inputs) else np.float64
        leading, right = sample_by_sample(function, inputs, dtype)
    assert answer.dtype == dtype and answer.shape[: len(leading)] == leading
    for index, expected in right.items():
        assert same(answer[index], expected), f"{name}{index}: {answer[index]} is not {expected}"


def same(a: Any, b: Any) -> bool:
    """Up to the rounding by which packets and one sample differ; where numbers overflow, both do."""
    fine = np.isfinite(a) & np.isfinite(b)
    scale = np.abs(b[fine]).max(initial=0.0)
    return bool((np.isfinite(a) == np.isfinite(b)).all() and (np.abs(a[fine] - b[fine]) <= 1e-9 * scale).all())


@settings(max_examples=100)
@given(call=calls(), seed=st.integers(0, 9))
def test_out_is_filled_or_refused(call: tuple[str, list[Any]], seed: int) -> None:
    """An `out` of the wrong kind is refused; one of the right kind holds what is returned without it, and is returned."""
    name, inputs = call
    function, _ = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        try:
            right = function(*inputs)
        except (TypeError, ValueError):
            return
        rng = np.random.default_rng(seed)
        out = rng.normal(size=right.shape).astype(right.dtype)
        assert function(*inputs, out=out) is out
        assert np.array_equal(out, right, equal_nan=True)
        for wrong in (
            out.astype("f4" if out.dtype == "f8" else "f8"),
            np.zeros((*out.shape, 1), out.dtype),
            out.tolist(),
        ):
            try:
                function(*inputs, out=wrong)
            except ValueError as error:
                assert str(error).startswith(f"{name}: out for ")
            else:
                raise AssertionError("a wrong out was taken")


@settings(max_examples=60)
@given(rows=st.integers(1, 200), shift=st.integers(-3, 3), columns=st.integers(0, 3), given_v=st.booleans())
def test_out_in_the_memory_of_an_input(rows: int, shift: int, columns: int, given_v: bool) -> None:
    """In place, a few rows or numbers further, or on the rows of an input that all samples share."""
    nv = MODEL.nv
    rng = np.random.default_rng(rows)
    memory = rng.normal(size=(rows + 6) * nv + 3)
    start = 3 * nv
    taken = memory[start : start + rows * nv].reshape(rows, nv)
    first = start + shift * nv + (columns if shift < 3 else 0)
    out = memory[first : first + rows * nv].reshape(rows, nv)
    q, other = sl.random_configuration(MODEL, rows, rows), rng.normal(size=(rows, nv))
    inputs = (q, taken, other) if given_v else (q, other, taken[0])
    right = sl.rnea(MODEL, *(x.copy() for x in inputs))
    assert sl.rnea(MODEL, *inputs, out=out) is out
    assert np.array_equal(out, right)
