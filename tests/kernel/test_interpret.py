"""Kernels as plain Python: interpreted runs of every algorithm against the compiled ones; symbols, and counts."""

from __future__ import annotations

import numpy as np
import pytest

from saltus.kernel import Algorithm
from saltus.kernel.interpret import casadi_function, count_operations, interpret
from tests.closeness import assert_close
from tests.kernel.cases import NAMES, VARIANTS, all_kinds, random_inputs, run

MODEL = all_kinds()
each_variant = pytest.mark.parametrize(("algorithm", "given"), VARIANTS, ids=NAMES)


@each_variant
def test_interpreted_as_compiled(algorithm: Algorithm, given: int) -> None:
    inputs = random_inputs(algorithm, given, MODEL, 1)
    results = interpret(algorithm, MODEL, [x.ravel().tolist() for x in inputs])
    for spec, one, other in zip(algorithm.outputs, results, run(algorithm, MODEL, inputs), strict=True):
        assert_close(one.astype(float), other, 1e-12, what=spec.name)


@pytest.mark.parametrize("name", ["rnea", "aba", "crba", "integrate", "difference"])
def test_symbols(name: str) -> None:
    pytest.importorskip("casadi")
    algorithm = next(algorithm for algorithm, _ in VARIANTS if algorithm.name == name)
    given = algorithm.variants()[0]
    function = casadi_function(algorithm, MODEL)
    for seed in range(3):
        inputs = random_inputs(algorithm, given, MODEL, seed)
        (right,) = run(algorithm, MODEL, inputs)
        assert_close(np.array(function(*inputs)).reshape(right.shape), right, 1e-11)


def test_counts_grow_with_the_tree() -> None:
    import saltus as sl

    algorithm = next(algorithm for algorithm, _ in VARIANTS if algorithm.name == "rnea")
    counts = []
    for bodies in (5, 10):
        model = sl.random_model(seed=1, bodies=bodies, kinds=["revolute"])
        counts.append(count_operations(algorithm, model, random_inputs(algorithm, 3, model, 0)))
    assert all(counts[0][name] > 0 for name in ("sum", "product"))
    assert 1.8 < counts[1]["product"] / counts[0]["product"] < 2.5  # O(n)
