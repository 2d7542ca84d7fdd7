"""`Algorithm.call` as a builtin (front.py): what it takes, what it leaves to the method, and models that come and go."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import saltus as sl
from saltus.dynamics.rnea import _rnea
from saltus.kernel import Algorithm, Layout, ld, st, st_symmetric
from saltus.kernel.fastcall import layout_is_known
from saltus.kernel.front import NOTES
from saltus.kernel.poison import POISONED
from saltus.model.manifold import _interpolate
from saltus.model.tree import algorithm
from tests.kernel.cases import all_kinds

MODEL = all_kinds()
Q, V, A = MODEL.neutral(), np.ones(MODEL.nv), np.ones(MODEL.nv)

needs_builtins = pytest.mark.skipif(not layout_is_known() or POISONED, reason="there are no builtins")


@needs_builtins
def test_the_method_is_there_for_what_the_builtin_does_not_take() -> None:
    right = sl.rnea(MODEL, Q, V, A)
    assert Algorithm.call is not Algorithm.long_call
    by_name = _rnea.call(MODEL, inputs=(Q, V, A), out=None, on_invalid="raise")
    spelt = _rnea.call(MODEL, (Q, V, A), None, "".join(["ra", "ise"]))
    for found in (
        by_name, spelt, _rnea.call(MODEL, (Q, V, A)), _rnea.long_call(MODEL, (Q, V, A)),
        _rnea.call(MODEL, (Q, V, A), None, "mark"), _rnea.call(MODEL, [Q, V, A], None, "raise"),
        sl.rnea(MODEL, Q.tolist(), V, A),
    ):  # fmt: skip
        assert np.array_equal(found, right)
    out = np.empty(MODEL.nv)
    assert sl.rnea(MODEL, Q, V, A, out=out) is out and np.array_equal(out, right)


@needs_builtins
def test_every_number_of_inputs_has_its_builtin(monkeypatch: pytest.MonkeyPatch) -> None:
    model, forces = all_kinds(), np.zeros((MODEL.njoints, 6))
    calls = ((Q, V, A), (Q, V, A, forces))
    right = [[sl.rnea(model, *inputs) for inputs in calls] for _ in range(2)][-1]
    monkeypatch.setattr(Algorithm, "long_call", None)
    for _ in range(2):
        for inputs, other in zip(calls, right, strict=True):
            assert np.array_equal(sl.rnea(model, *inputs), other)


@needs_builtins
def test_errors_are_those_of_the_method() -> None:
    for _ in range(2):
        with pytest.raises(TypeError, match="the model is a int, expected a saltus.Model"):
            _rnea.call(3, (Q, V, A), None, "raise")
        with pytest.raises(ValueError, match="on_invalid is 'skip'"):
            _rnea.call(MODEL, (Q, V, A), None, "skip")
        with pytest.raises(ValueError, match="v has shape"):
            _rnea.call(MODEL, (Q, V[1:], A), None, "raise")
        with pytest.raises(TypeError):
            _rnea.call(MODEL)


@needs_builtins
def test_models_that_come_and_go() -> None:
    """New models come to lie where others were: what was noted of those must not serve these."""
    places = set()
    for seed in range(200):
        arm = sl.random_model(seed=seed, bodies=3, kinds=["revolute"])
        q, v = sl.random_configuration(arm, seed), np.ones(3)
        found = [sl.rnea(arm, q, v, v) for _ in range(3)]
        assert np.allclose(found[-1], sl.crba(arm, q) @ v + sl.nonlinear_effects(arm, q, v), rtol=1e-9)
        places.add(id(arm))
    assert len(places) < 200
    del arm
    gc.collect()
    assert not NOTES.any()


def test_a_number_may_be_a_float() -> None:
    q = sl.random_configuration(MODEL, 1)
    right = _interpolate.call(MODEL, (Q, q, np.array(0.3)))
    for u in (0.3, np.float64(0.3), np.array(0.3)):
        for _ in range(3):
            assert np.array_equal(sl.interpolate(MODEL, Q, q, u), right)
    assert np.array_equal(sl.interpolate(MODEL, Q, q, 1), sl.interpolate(MODEL, Q, q, 1.0))
    with pytest.raises(ValueError, match="interpolate: u is nan, expected finite"):
        sl.interpolate(MODEL, Q, q, float("nan"))


@algorithm(inputs={"v": "nv"}, outputs={"M": "nv nv", "rest": "nv nv"}, work=Layout(nvv={"other": None, "M": None}))
def _outer(tree, v, w, M, rest):
    """v v^T, by way of a field that shares its group with another one."""
    n = tree.nv
    for k in range(n * n):
        w.other[k] = 7.0
    for i in range(n):
        for j in range(i + 1):
            st_symmetric(w.M, n, i, j, ld(v, i) * ld(v, j))
    for k in range(n * n):
        st(M, k, w.M[k])
        st(rest, k, w.other[k])


def test_symmetric_entries_of_a_field_among_others() -> None:
    v = np.arange(1.0, MODEL.nv + 1)
    for given in (v, np.tile(v, (3, 1))):
        M, rest = _outer.call(MODEL, (given,))
        assert np.array_equal(M, given[..., :, None] * given[..., None, :]) and (rest == 7.0).all()
