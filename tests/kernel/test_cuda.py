"""Every kernel compiles for CUDA, also on a machine without a GPU; on one with a GPU, it agrees with the CPU."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.kernel import ALGORITHMS, F32, F64, Algorithm
from saltus.kernel.cuda import DeviceArray, compile_ptx, gpu_function, make_outputs
from saltus.kernel.sources import kernels_of

OURS = [algorithm for algorithm in ALGORITHMS if algorithm.kernel.__module__.startswith("saltus.")]


def called(algorithm: Algorithm) -> set[Any]:
    """An algorithm's kernel, unless it is a few lines that only call others, those that it calls, and so on."""
    kernels = kernels_of(algorithm.kernel)
    short = len(algorithm.kernel.__code__.co_code) < 300  # bytes
    return kernels - {algorithm.kernel} if short else kernels


def enough() -> list[Algorithm]:
    """Algorithms that between them call every kernel, the ones first that call most of what is left."""
    left, chosen = set().union(*map(called, OURS)), []
    while left:
        chosen.append(max(OURS, key=lambda algorithm: len(called(algorithm) & left)))
        left -= called(chosen[-1])
    return chosen


ENOUGH = enough()


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ENOUGH, ids=[a.name for a in ENOUGH])
def test_compiles_to_ptx(algorithm: Algorithm) -> None:
    assert ".visible .entry" in compile_ptx(algorithm, F64, len(algorithm.inputs))


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ENOUGH, ids=[a.name for a in ENOUGH])
def test_single_precision_stays_single(algorithm: Algorithm) -> None:
    """A float literal or table entry must not promote the arithmetic, in any kernel."""
    ptx = compile_ptx(algorithm, F32, len(algorithm.inputs))
    assert ".visible .entry" in ptx
    assert ".f64" not in "".join(line for line in ptx.splitlines() if "fma" in line or "mul.rn" in line)


def test_compiling_for_a_gpu_is_announced(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Without a GPU: what would compile for one stands in."""
    monkeypatch.delenv("SALTUS_QUIET", raising=False)
    monkeypatch.setattr("saltus.kernel.cuda.cuda.jit", lambda *_, **__: lambda function: function)
    aba = next(algorithm for algorithm in OURS if algorithm.name == "aba")
    gpu_function.__wrapped__(aba, F64, 3)
    assert re.fullmatch(
        r"saltus: compiling aba for f64 on the GPU \(once a process\) ... [0-9.]+ s\n", capfd.readouterr().err
    )


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


class Pretended:
    """What a library tells of an array on a GPU."""

    def __init__(self, shape: tuple[int, ...], dtype: str = "<f8", address: int = 1 << 20) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.__cuda_array_interface__ = {"shape": shape, "typestr": dtype, "data": (address, False), "strides": None}

    def __setitem__(self, place: Any, value: float) -> None:
        """There is no memory to poison."""


@pytest.mark.parametrize(
    ("out", "message", "kind"),
    [
        (Pretended((4, 3), address=0), None, None),
        (Pretended((3, 3)), r"out for tau is float64 \(3, 3\), expected float64 \(4, 3\)", ValueError),
        (Pretended((4, 3), "<f4", 0), r"out for tau is float32 \(4, 3\), expected float64 \(4, 3\)", ValueError),
        (Pretended((4, 3)), "out for tau lies in the memory of v, expected memory of its own", ValueError),
        (Pretended((4, 3), address=(1 << 20) - 88), "out for tau lies in the memory of v", ValueError),
        (np.zeros((4, 3)), "tau is a ndarray, expected a CUDA array like the others", TypeError),
    ],
)
def test_wrong_outputs(out: Any, message: str | None, kind: type[Exception] | None) -> None:
    """Found before anything runs, so also on a machine without a GPU."""
    algorithm = next(each for each in OURS if each.name == "rnea")
    given = [Pretended((4, 3), address=1 << 30), Pretended((4, 3)), Pretended((4, 3), address=1 << 30)]
    inputs = [DeviceArray("rnea", spec, x) for spec, x in zip(algorithm.inputs, given, strict=False)]

    def check() -> Any:
        return make_outputs(algorithm, inputs, given[0], (4,), {"nv": 3}, out)

    if kind is None:
        assert check() == [out]
    else:
        with pytest.raises(kind, match=message):
            check()


def test_mimic_joints_stay_on_the_cpu() -> None:
    builder = sl.ModelBuilder("pair")
    for name, mimic in (("a", None), ("b", sl.Mimic("a"))):
        builder.add_joint(name, "revolute", mimic=mimic)
        builder.add_body(name, 1.0)
    with pytest.raises(TypeError, match="^crba: models with mimic joints run on the CPU, expected NumPy arrays"):
        sl.crba(builder.build(), Pretended((1,)))
