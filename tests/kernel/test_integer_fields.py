"""Integers in workspaces: right in every form of code, and no number takes their place."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import saltus as sl
from saltus.kernel import F32, F64, Layout, Part, Scalar
from saltus.kernel.compile import assembly
from saltus.kernel.cuda import compile_ptx
from saltus.kernel.interpret import interpret
from saltus.kernel.sources import KernelError
from saltus.kernel.target import packet
from tests.kernel.integer_fields import INTEGERS, MODEL, SHAPES, _ranked, is_right, numbers, right, slopes_are_right
from tests.kernel.language import MODULE, load
from tests.kernel.processes import fresh

each_integers = pytest.mark.parametrize("n", INTEGERS, ids=str)
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


@each_integers
@each_shape
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_compiled(n: np.ndarray, shape: tuple[int, ...], dtype: Any) -> None:
    """One sample, and packets; in single precision integers have half the room."""
    assert is_right(MODEL, n, numbers(shape, dtype))


@each_integers
def test_interpreted(n: np.ndarray) -> None:
    v = numbers((6,))
    found = interpret(_ranked, MODEL, [n.tolist(), v.tolist()])
    assert all(np.array_equal(a.astype(float), b) for a, b in zip(found, right(n, v, 7), strict=True))


@each_integers
@each_shape
def test_beside_dual_numbers(n: np.ndarray, shape: tuple[int, ...]) -> None:
    assert slopes_are_right(n, shape)


@each_integers
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_in_code_for_one_robot(n: np.ndarray, dtype: Any) -> None:
    own = sl.specialise(MODEL)
    assert all(is_right(own, n, numbers(shape, dtype)) for shape in SHAPES)


@pytest.mark.parametrize("number", [F64, F32], ids=lambda number: number.name)
def test_on_gpus(number: Any) -> None:
    """They are loaded and stored as integers of a number's size, and go through no number."""
    ptx = compile_ptx(_ranked, number, 2)
    assert ptx.count(".visible .entry kernel(") == 1
    text = assembly(_ranked, number, _ranked.present(2), "gpu", "ranked")
    assert f"store i{number.bits} " in text and f"load i{number.bits}, ptr" in text and "fptosi" not in text


def test_they_take_the_place_of_one_number_in_each_lane() -> None:
    """So that they lie in a workspace of numbers, whatever these are; they are written once for all lanes."""
    layout = Layout(nv={"place": int, "value": None})
    assert layout.length({"nv": 5}) == 10
    text = assembly(_ranked, packet(64), _ranked.present(2), "many", "ranked")
    assert "store i64 " in text and f"store <{packet(64).width} x i64>" not in text


def test_those_that_are_too_large_for_single_precision(tmp_path: Path) -> None:
    """Known ones are refused; others wrap, as the language's page says."""
    body = "    w.count[0] = {}\n    st(y, 0, 1.0 * w.count[0])"
    known = load(tmp_path, "_known", f"{MODULE}@declared\ndef _known(tree, n, v, w, y):\n{body.format(2**31)}\n")
    wraps = load(tmp_path, "_wraps", f"{MODULE}@declared\ndef _wraps(tree, n, v, w, y):\n{body.format('n[0] + 1')}\n")
    n, v = np.full(6, 2**31 - 1, np.int32), np.zeros((3, 6), np.float32)
    with pytest.raises(KernelError, match=f"the integer {2**31} does not fit into 32 bits"):
        known.call(MODEL, (n, v))
    assert (wraps.call(MODEL, (n, v))[:, 0] == -(2.0**31)).all()
    for case in (known, wraps):
        assert (case.call(MODEL, (n, v.astype(float)))[:, 0] == 2.0**31).all()


def test_with_poisoned_memory() -> None:
    """What they read they have written."""
    code = "import runpy; runpy.run_module('tests.kernel.integer_fields', run_name='__main__')"
    assert set(fresh(code, SALTUS_POISON="1").split()) == {"True"}


class Counted(NamedTuple):
    value: Scalar
    count: int


@pytest.mark.parametrize("cls", [float, bool, Counted, list], ids=lambda cls: cls.__name__)
def test_other_classes_are_refused(cls: Any) -> None:
    """A field of them would have no room, or be read as something else."""
    with pytest.raises(TypeError, match=f"Layout: the field 'x' is of class {cls.__name__}, expected"):
        Layout(nv={"x": cls})


def test_not_in_tables() -> None:
    """What a model fills is made of numbers, or of integers in a table of their own."""
    for ints, reals in ((Layout(), Layout(nj={"count": int})), (Layout(nj={"count": int}), Layout())):
        with pytest.raises(TypeError, match="Part: the field 'count' is of class int, expected"):
            Part((), ints, reals, lambda model: {}, lambda model, ints, reals: None)
