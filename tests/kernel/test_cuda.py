"""Every algorithm compiles for CUDA, also on a machine without a GPU; on one with a GPU, it agrees with the CPU."""

from __future__ import annotations

import numpy as np
import pytest

import saltus as sl
from saltus.kernel import ALGORITHMS, F32, F64, Algorithm, Number
from saltus.kernel.cuda import compile_ptx

OURS = [algorithm for algorithm in ALGORITHMS if algorithm.kernel.__module__.startswith("saltus.")]


@pytest.mark.slow
@pytest.mark.parametrize("number", [F64, F32], ids=["double", "single"])
@pytest.mark.parametrize("algorithm", OURS, ids=[a.name for a in OURS])
def test_compiles_to_ptx(algorithm: Algorithm, number: Number) -> None:
    for given in algorithm.variants():
        ptx = compile_ptx(algorithm, number, given)
        assert ".visible .entry" in ptx
        if number == F32:  # a float literal or table entry must not promote the arithmetic
            assert ".f64" not in "".join(line for line in ptx.splitlines() if "fma" in line or "mul.rn" in line)


def has_gpu() -> bool:
    from numba import cuda

    return bool(cuda.is_available())


@pytest.mark.skipif(not has_gpu(), reason="needs a GPU")
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 1e-4)])
def test_agrees_with_the_cpu(dtype: type, tolerance: float) -> None:
    from numba import cuda

    model = sl.random_model(seed=3, bodies=12)
    rng = np.random.default_rng(0)
    q = sl.random_configuration(model, 0, 1000)
    v, tau = rng.normal(size=(2, 1000, model.nv))
    for function, inputs in ((sl.aba, (q, v, tau)), (sl.rnea, (q, v, tau)), (sl.crba, (q,))):
        expected = function(model, *inputs)
        found = function(model, *(cuda.to_device(x.astype(dtype)) for x in inputs)).copy_to_host()
        assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()
