"""Every kernel compiles for CUDA, also on a machine without a GPU; on one with a GPU, it agrees with the CPU."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.dynamics.ltl import _minverse
from saltus.kernel import ALGORITHMS, F32, F64, Algorithm, Number, cuda, driver, largest, ld, room, st, zero
from saltus.kernel.compile import llvm
from saltus.kernel.cuda import compile_ptx
from saltus.kernel.gpu_arrays import Form, contiguous, to_device
from saltus.kernel.gpu_entry import places_of
from saltus.kernel.native import GPU
from saltus.kernel.sources import kernels_of
from saltus.kernel.target import target_machine, target_of
from saltus.model.tree import algorithm as declared
from tests.kernel.cases import NAMES, SOLVERS, VARIANTS, all_kinds, random_inputs, single_tolerance

OURS = [algorithm for algorithm in ALGORITHMS if algorithm.kernel.__module__.startswith("saltus.")]
ABA, RNEA = (next(x for x in OURS if x.name == name and x.general is x) for name in ("aba", "rnea"))


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


@pytest.mark.parametrize("algorithm", ENOUGH, ids=[a.name for a in ENOUGH])
def test_compiles_to_ptx(algorithm: Algorithm) -> None:
    """One entry; all memory is that of all threads, and nothing is left to call or to keep on a stack."""
    ptx = compile_ptx(algorithm, F64, len(algorithm.inputs))
    assert ptx.count(".visible .entry kernel(") == 1
    assert not re.search(r"\.local\b|\bld\.b64|\bst\.b|\bcall\b|\.extern", ptx)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ENOUGH, ids=[a.name for a in ENOUGH])
def test_single_precision_stays_single(algorithm: Algorithm) -> None:
    """A float literal or table entry must not promote the arithmetic, in any kernel."""
    ptx = compile_ptx(algorithm, F32, len(algorithm.inputs))
    assert "fma.rn.f32" in ptx or "mul" in ptx
    assert ".f64" not in "".join(line for line in ptx.splitlines() if "fma" in line or "mul.rn" in line)


@declared(inputs={"v": "nv"}, outputs={"size": "nv", "quotient": "nv"})
def _sizes(tree, v, w, size, quotient):
    found = zero(v)
    for k in range(tree.nv):
        found = largest(found, ld(v, k))
        st(size, k, found)
        st(quotient, k, 1.5 / ld(v, k))


@pytest.mark.parametrize("number", [F64, F32], ids=["f64", "f32"])
def test_the_largest_size_is_one_of_integers(number: Number) -> None:
    """The larger one of two bit patterns, without a comparison of numbers."""
    ptx = compile_ptx(_sizes, number, 1)
    assert f"max.s{number.bits}" in ptx
    assert not re.search(r"(max|setp\.\w+|selp)\.f", ptx)


def test_quotients() -> None:
    """In single precision the quick ones, in double those that are rounded right; other code is as it was."""
    double, single = (compile_ptx(_sizes, number, 1) for number in (F64, F32))
    assert "div.rn.f64" in double or "rcp.rn.f64" in double
    assert re.search(r"(div\.full|rcp\.approx)(\.ftz)?\.f32", single) and ".rn.f32" not in single
    quotient = "define float @f(float %a, float %b) {\n  %c = fdiv float %a, %b\n  ret float %c\n}"
    assert "div.rn.f32" in target_machine(target_of(GPU)).emit_assembly(llvm.parse_assembly(quotient))


def test_compiled_once(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """PTX is announced and kept as other code is."""
    monkeypatch.delenv("SALTUS_QUIET", raising=False)
    monkeypatch.setenv("SALTUS_CACHE_DIR", str(tmp_path))
    first = compile_ptx(ABA, F64, 3)
    assert re.fullmatch(
        r"saltus: compiling aba for f64 on GPUs \(first use; kept in .*\) ... [0-9.]+ s\n", capfd.readouterr().err
    )
    assert compile_ptx(ABA, F64, 3) == first
    assert not capfd.readouterr().err
    assert [file.suffix for file in tmp_path.iterdir()] == [".ptx"]


class Pretended:
    """What a library tells of an array on a GPU."""

    def __init__(self, shape: tuple[int, ...], dtype: str = "<f8", address: int = 1 << 20) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.__cuda_array_interface__ = {"shape": shape, "typestr": dtype, "data": (address, False), "strides": None}

    def __setitem__(self, place: Any, value: float) -> None:
        """There is no memory to poison."""


class Launched:
    """What a driver would be told: it stands for a GPU with two processors."""

    ordinal, processors, room = 0, 2, 232_448

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.words: list[int] = []
        monkeypatch.setattr(driver, "device", lambda ordinal: self)
        monkeypatch.setattr(driver, "device_of", lambda address: self)
        monkeypatch.setattr(driver, "is_capturing", lambda stream: False)
        monkeypatch.setattr(driver, "call", lambda *_: None)
        monkeypatch.setattr(driver, "Launch", lambda function, *given: self.take(*given))
        monkeypatch.setattr(driver, "Memory", lambda shape, dtype, content=None: Pretended(shape, np.dtype(dtype).str))
        monkeypatch.setattr(Pretended, "address", 1 << 40, raising=False)
        monkeypatch.setattr(driver, "spilled", lambda function: 0)
        monkeypatch.setattr(cuda, "gpu_function", lambda *_: None)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def take(self, blocks: int, threads: int, words: Any, shared: int) -> Launched:
        self.blocks, self.words, self.shared = blocks, list(words), shared
        return self

    def start(self, stream: int, places: list[int], values: list[int]) -> None:
        for place, value in zip(places, values, strict=True):
            self.words[place] = value


def test_what_is_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses, sizes and strides of all arguments; an input of one sample serves all."""
    launched, model = Launched(monkeypatch), sl.random_model(seed=3, bodies=4)
    nq, nv = model.nq, model.nv
    q, v, tau = Pretended((1000, nq), address=1 << 21), Pretended((nv,), address=1 << 22), Pretended((1000, nv))
    out = Pretended((1000, nv), address=1 << 23)
    assert sl.aba(model, q, v, tau, out=out) is out
    table = launched.words[cuda.TABLE :]
    total = len(ABA.arguments)
    assert table[:3] == [1 << 21, 1 << 22, 1 << 20]
    assert table[total - 1] == 1 << 23
    places = places_of(ABA)
    rows = np.reshape(table[places.meta : places.staged], (total, 4))[:, :3].tolist()
    assert rows == [[nq, nq, 1], [nv, 0, 1], [nv, nv, 1], *[[0, 0, 0]] * (total - 4), [nv, nv, 1]]
    assert launched.words[cuda.COUNT] == 1000
    assert launched.blocks == 2 * 4  # as many as the device holds
    assert table[places.staged] == 0
    assert table[places.sizes : places.sizes + 3] == [model.njoints, nq, nv]


def test_code_for_one_robot_has_all_registers_and_no_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    launched, model = Launched(monkeypatch), sl.specialise(sl.load_robot("arm"))
    chosen: list[tuple[Any, ...]] = []
    monkeypatch.setattr(cuda, "gpu_function", lambda *given: chosen.append(given))
    sl.aba(model, Pretended((1000, model.nq)), Pretended((1000, model.nv)), Pretended((1000, model.nv)))
    (algorithm, *_, registers, _), numbers = chosen[-1], launched.words[cuda.NUMBERS]
    assert algorithm.known is not None and registers == 255 and numbers == 1
    assert launched.blocks == 2 * cuda.OWN[0][0]


def test_what_waits_has_room_near_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """In double precision, as much as fits; the workspace itself stays as it is."""
    launched, robot = Launched(monkeypatch), sl.specialise(sl.load_robot("quadruped"))
    chosen: list[tuple[Any, ...]] = []
    monkeypatch.setattr(cuda, "gpu_function", lambda *given: chosen.append(given))
    dynamics = sl.ConstrainedDynamics(robot, [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet])
    for dtype, loads in (("<f8", True), ("<f4", False)):
        dynamics.solve(*(Pretended((1000, n), dtype) for n in (robot.nq, robot.nv, robot.nv)))
        algorithm, number, given, *_ = chosen[-1]
        assert launched.shared == room.size(algorithm, number) <= room.BYTES
        assert ("ld.volatile.shared" in cuda.compile_ptx(algorithm, number, given)) == loads == (launched.shared > 0)


def test_devices_with_less_room_have_code_without(monkeypatch: pytest.MonkeyPatch) -> None:
    launched, robot = Launched(monkeypatch), sl.specialise(sl.load_robot("quadruped"))
    launched.room = 48 << 10
    chosen: list[tuple[Any, ...]] = []
    monkeypatch.setattr(cuda, "gpu_function", lambda *given: chosen.append(given))
    dynamics = sl.ConstrainedDynamics(robot, [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet])
    dynamics.solve(*(Pretended((1000, n)) for n in (robot.nq, robot.nv, robot.nv)))
    assert launched.shared == 0 and ".shared" not in cuda.compile_ptx(*chosen[-1][:3])


def test_large_workspaces_are_the_launches_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code for one robot would have them in memory that the driver holds for every thread there may be."""
    launched, model = Launched(monkeypatch), sl.specialise(sl.load_robot("arm"))
    monkeypatch.setattr(cuda, "MOST_OWN", 1000)
    sl.aba(model, Pretended((1000, model.nq)), Pretended((1000, model.nv)), Pretended((1000, model.nv)))
    assert launched.words[cuda.NUMBERS] == ABA.work.length(ABA.filled(model).sizes) + 1


@pytest.mark.parametrize(("lines", "kept", "rule"), [(100, 5000, 0), (10**5, 100, 1), (10**5, 5000, 0)])
def test_long_code_for_one_robot_has_more_warps(
    lines: int, kept: int, rule: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it waits for its instructions; not if it keeps much out of registers."""
    launched, model = Launched(monkeypatch), sl.specialise(sl.load_robot("arm"))
    monkeypatch.setattr(driver, "spilled", lambda function: kept)
    monkeypatch.setattr(cuda, "length", lambda *_: lines)
    sl.aba(model, Pretended((1000, model.nq)), Pretended((1000, model.nv)), Pretended((1000, model.nv)))
    assert launched.blocks == 2 * cuda.OWN[rule][0]


def test_integers_are_part_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """However they come: another frame is another launch."""
    from saltus.dynamics.frame import _frame_placement

    launched, model = Launched(monkeypatch), sl.random_model(seed=3, bodies=4)
    q, place = Pretended((10, model.nq)), cuda.TABLE + places_of(_frame_placement).meta
    for which in ([1, 5, 0], np.array([1, 6, 0]), [1, 7, 0]):
        _frame_placement.call(model, (which, q))
        assert np.array(launched.words[place : place + 2]).view(np.int32)[:3].tolist() == list(which)


def test_counts_are_any_number_of_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollout has one for each of its steps, all the same; those of which more than the first are read come whole."""
    from saltus.simulation.stepping import _steps

    Launched(monkeypatch)
    model = sl.random_model(seed=3, bodies=4)
    q, v, acting, dt = (Pretended((10, n)) for n in (model.nq, model.nv, 2, 1))
    _steps.call(model, (np.full(1000, 1000), q, v, acting, dt, v))
    with pytest.raises(ValueError, match="has 9 integers, expected at most 8"):
        _steps.call(model, (np.arange(9), q, v, acting, dt, v))


def test_results_without_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    Launched(monkeypatch)
    robot = sl.random_model(seed=3, bodies=4)
    q, v = Pretended((10, robot.nq)), Pretended((10, robot.nv))
    assert sl.ConstrainedDynamics(robot, []).solve(q, v, v).forces.shape == (10, 0)


def test_devices_fill_each_part_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads at once, two algorithms: plans hold addresses, which must stay."""
    Launched(monkeypatch)
    made, start = [], threading.Barrier(2)

    def slow_copy(shape: tuple[int, ...], dtype: Any, content: Any = None) -> Pretended:
        if content is not None:
            made.append(Pretended(shape, np.dtype(dtype).str))
            if len(made) <= 2:
                start.wait(timeout=30)  # both are here
        return Pretended(shape, np.dtype(dtype).str)

    monkeypatch.setattr(driver, "Memory", slow_copy)
    model = sl.random_model(seed=3, bodies=4)
    with ThreadPoolExecutor(2) as pool:
        device: Any = driver.device(0)
        one, other = pool.map(lambda x: cuda.device_tables(x.filled(model), F64, device), (ABA, RNEA))
    assert len(made) == 4 and all(a is b for a, b in zip(one, other, strict=True))


def test_large_results_are_staged(monkeypatch: pytest.MonkeyPatch) -> None:
    launched, model = Launched(monkeypatch), sl.random_model(seed=3, bodies=30)
    sl.minverse(model, Pretended((10, model.nq)))
    assert launched.words[cuda.TABLE + places_of(_minverse).staged] == 1


@pytest.mark.parametrize(
    ("out", "message", "kind"),
    [
        (Pretended((3, 3)), r"out for tau is float64 \(3, 3\), expected float64 \(4, 3\)", ValueError),
        (Pretended((4, 3), "<f4", 0), r"out for tau is float32 \(4, 3\), expected float64 \(4, 3\)", ValueError),
        (Pretended((4, 3)), "out for tau lies in the memory of v, expected memory of its own", ValueError),
        (Pretended((4, 3), address=(1 << 20) - 88), "out for tau lies in the memory of v", ValueError),
        (np.zeros((4, 3)), "tau is a ndarray, expected a CUDA array like the others", TypeError),
    ],
)
def test_wrong_outputs(monkeypatch: pytest.MonkeyPatch, out: Any, message: str, kind: type[Exception]) -> None:
    Launched(monkeypatch)
    builder = sl.ModelBuilder("chain")
    for name in "abc":
        builder.add_joint(name, "revolute")
        builder.add_body(name, 1.0)
    q, v, a = Pretended((4, 3), address=1 << 30), Pretended((4, 3)), Pretended((4, 3), address=1 << 30)
    with pytest.raises(kind, match=message):
        sl.rnea(builder.build(), q, v, a, out=out)


def test_samples_of_results_lie_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or threads would write over each other's."""
    Launched(monkeypatch)
    model = sl.random_model(seed=3, bodies=4, kinds=["revolute"])
    q, out = Pretended((10, 4)), Pretended((10, 4), address=1 << 30)
    for strides in ((0, 8), (8, 8), (32, 0), (24, 8)):
        out.__cuda_array_interface__["strides"] = strides
        with pytest.raises(ValueError, match="out for tau has strides .*: expected samples in memory of their own"):
            sl.gravity(model, q, out=out)
    for strides in ((32, 8), (8, 80), (-32, 8), (64, 16)):
        out.__cuda_array_interface__["strides"] = strides
        sl.gravity(model, q, out=out)
    assert cuda.lie_apart(0, 1, 5, 1) and cuda.lie_apart(3, 0, 1, 7)
    assert not cuda.lie_apart(0, 0, 5, 1) and not cuda.lie_apart(0, 1, 1, 7)


def test_wrong_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    Launched(monkeypatch)
    model = sl.random_model(seed=3, bodies=4)
    q, v = Pretended((10, model.nq)), Pretended((10, model.nv), "<f4")
    with pytest.raises(TypeError, match="^aba: CUDA inputs are float32, float64, expected all float64 or all float32"):
        sl.aba(model, q, v, v)
    with pytest.raises(TypeError, match="^aba: tau is a list, expected a CUDA array like the others"):
        sl.aba(model, q, q, [1.0])
    with pytest.raises(ValueError, match=r"^aba: v has shape \(10, [0-9]+\), expected"):
        sl.aba(model, q, q, q)
    uneven = Pretended((2, 5, model.nq))
    uneven.__cuda_array_interface__["strides"] = (8000, 80, 8)
    with pytest.raises(ValueError, match="must lie evenly; broadcast it to"):
        sl.gravity(model, uneven)


def test_what_stays_on_the_cpu_of_mimic_joints(monkeypatch: pytest.MonkeyPatch) -> None:
    Launched(monkeypatch)
    builder = sl.ModelBuilder("pair")
    for name, mimic in (("a", None), ("b", sl.Mimic("a"))):
        builder.add_joint(name, "revolute", mimic=mimic)
        builder.add_body(name, 1.0)
    with pytest.raises(
        TypeError, match="^joint_placements: models with mimic joints run on the CPU, expected NumPy arrays"
    ):
        sl.joint_placements(builder.build(), Pretended((1,)))


def test_forms() -> None:
    assert contiguous((4, 3, 2)) == (6, 2, 1)
    form = Form((4, 3, 2), (6, 2, 1), np.dtype(np.float64))
    assert (form.flat(0, 1), form.flat(1, 3), form.flat(0, 3)) == (6, 1, 1)
    assert Form((4, 3, 2), (12, 2, 1), np.dtype(np.float64)).flat(0, 2) is None
    assert Form((4, 3), (-3, 1), np.dtype(np.float32)).reach() == (-36, 12)
    assert Form((0, 3), (3, 1), np.dtype(np.float32)).reach() == (0, 0)


# ---------------------------------------------------------------------------------------------------- with a GPU


needs_gpu = pytest.mark.skipif(not driver.is_there(), reason="needs a GPU")


@needs_gpu
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("algorithm", "given"), VARIANTS, ids=NAMES)
def test_agrees_with_the_cpu(algorithm: Algorithm, given: int, dtype: type) -> None:
    """All algorithms, in both orders of memory; more samples than one round takes."""
    cupy = pytest.importorskip("cupy")
    model, count = all_kinds(), 70_001 if algorithm in (ABA, RNEA) else 301
    inputs = [
        x if x.dtype == np.int32 else x.astype(dtype) for x in random_inputs(algorithm, given, model, 0, (count,))
    ]
    expected = algorithm.call(model, tuple(inputs))
    expected = expected if isinstance(expected, tuple) else (expected,)
    exact = 1e-11 if algorithm.name in SOLVERS else 1e-12
    tolerance = exact if dtype == np.float64 else single_tolerance(model) if algorithm.name in SOLVERS else 1e-4
    for transposed in (False, True):
        there = [x if x.dtype == np.int32 else cupy.asarray(x) for x in inputs]
        if transposed:
            there = [x if x.dtype == np.int32 else cupy.moveaxis(cupy.ascontiguousarray(cupy.moveaxis(x, 0, -1)), -1, 0)
                     for x in there]  # fmt: skip
        found = algorithm.call(model, tuple(there))
        for ours, right in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
            assert np.abs(cupy.asnumpy(ours) - right).max() <= tolerance * max(np.abs(right).max(), 1e-3)


def test_what_varies_compiles() -> None:
    """Inertias are an input then, wherever a kernel reads those of the model."""
    for algorithm in (ABA, _minverse):
        ptx = compile_ptx(algorithm.varied, F64, len(algorithm.varied.inputs))
        assert ptx.count(".visible .entry kernel(") == 1 and not re.search(r"\.local\b|\bcall\b|\.extern", ptx)


@needs_gpu
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_robots_that_differ(library: str, dtype: type) -> None:
    there = pytest.importorskip(library).asarray
    on = {"device": "cuda"} if library == "torch" else {}
    model, rng, count = sl.load_robot("quadruped"), np.random.default_rng(0), 1001
    parameters = sl.inertial_parameters(model) * rng.uniform(0.5, 2.0, size=(count, model.nb, 1))
    inputs = [
        x.astype(dtype) for x in (sl.random_configuration(model, 0, count), *rng.normal(size=(2, count, model.nv)))
    ]
    on_gpu = [there(x, **on) for x in inputs]
    feet = [sl.Contact(model, foot) for foot in sl.robot_frames("quadruped").feet]
    for robots in (sl.vary_inertia(model, parameters), sl.specialise(sl.vary_inertia(model, parameters))):
        for call, names in (
            (sl.aba, 3),
            (sl.crba, 1),
            (lambda *x: sl.ConstrainedDynamics(x[0], feet).solve(*x[1:]).a, 3),
        ):
            right, found = call(robots, *inputs[:names]), call(robots, *on_gpu[:names])
            assert type(found).__module__.startswith(library)
            found = found.cpu().numpy() if library == "torch" else found.get()
            assert np.abs(found - right).max() <= (1e-9 if dtype == np.float64 else 1e-3) * np.abs(right).max()


@needs_gpu
@pytest.mark.parametrize("specialised", [False, True])
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_rollouts(library: str, specialised: bool) -> None:
    """All commands that are known ahead, robots and one robot, as on the processor; what is refused."""
    there = pytest.importorskip(library).asarray
    on = {"device": "cuda"} if library == "torch" else {}
    model, rng, steps = sl.load_robot("quadruped"), np.random.default_rng(0), 20
    model = sl.specialise(model) if specialised else model
    how: Any = {"duration": steps * 1e-3, "dt": 1e-3, "method": "semi_implicit_euler"}
    q, v = sl.random_configuration(model, 0, 300), rng.normal(size=(300, model.nv))
    targets = np.broadcast_to(model.reference_configurations["standing"], (steps, model.nq)).copy()
    kp = np.r_[np.zeros(6), np.full(12, 20.0)]
    commands = (
        None, np.ones(model.nv), rng.normal(size=(300, model.nv)), sl.OverTime(rng.normal(size=(steps, model.nv))),
        sl.OverTime(rng.normal(size=(300, steps, model.nv))), sl.PDTargets(targets, kp=kp, kd=0.1 * kp),
    )  # fmt: skip
    for tau in commands:
        for at in (slice(None), 3):
            if at == 3 and getattr(getattr(tau, "values", tau), "shape", ())[:1] == (300,):
                continue
            right = sl.rollout(model, q[at], v[at], tau, damping=True, **how)
            found = sl.rollout(model, there(q[at], **on), there(v[at], **on), tau, damping=True, **how)
            for name in ("q", "v", "tau", "forces", "active", "status"):
                ours = getattr(found, name)
                ours, wanted = ours.cpu().numpy() if library == "torch" else ours.get(), getattr(right, name)
                assert ours.shape == wanted.shape
                assert ours.size == 0 or np.abs(ours - wanted).max() <= 1e-7 * max(np.abs(wanted).max(), 1.0)
    still = sl.rollout(model, there(q, **on), there(v, **on), duration=0.0, method="semi_implicit_euler")
    assert tuple(still.q.shape) == (300, 1, model.nq)
    with pytest.raises(TypeError, match="on a GPU robots are free"):
        sl.rollout(model, there(q, **on), there(v, **on), duration=0.1)
    lost = sl.rollout(model, there(q, **on), there(v * np.nan, **on), duration=0.01, method="semi_implicit_euler")
    assert bool((lost.status == int(sl.Status.INVALID)).all())


@needs_gpu
def test_our_own_arrays() -> None:
    """A library that nobody knows: its interface is enough, and results can be copied by NumPy."""
    model = sl.random_model(seed=3, bodies=12)
    q = sl.random_configuration(model, 0, 1000)
    v, tau = np.random.default_rng(0).normal(size=(2, 1000, model.nv))
    like = driver.Memory
    with driver.device(0):
        there = [like(x.shape, x.dtype, x) for x in (q, v, tau)]
    assert np.abs(np.asarray(sl.aba(model, *there)) - sl.aba(model, q, v, tau)).max() < 1e-9
    assert np.asarray(to_device(q, there[0])).tolist() == q.tolist()


@needs_gpu
def test_streams_and_graphs() -> None:
    """Work stands in the library's queue; captured, it runs again on what the arrays hold then."""
    cupy = pytest.importorskip("cupy")
    model = sl.random_model(seed=3, bodies=12)
    q = sl.random_configuration(model, 0, 1000)
    v, tau = np.random.default_rng(0).normal(size=(2, 1000, model.nv))
    there, out = [cupy.asarray(x) for x in (q, v, tau)], cupy.zeros((1000, model.nv))
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        sl.aba(model, *there, out=out)
        stream.synchronize()
        assert np.abs(cupy.asnumpy(out) - sl.aba(model, q, v, tau)).max() < 1e-9
        stream.begin_capture()
        sl.aba(model, *there, out=out)
        graph = stream.end_capture()
        there[2][...] = cupy.asarray(2.0 * tau)
        scribble = [cupy.full(1 << 20, np.nan) for _ in range(8)]  # in memory that the workspace must not have left
        graph.launch(stream)
        stream.synchronize()
        assert all(bool(cupy.isnan(each).all()) for each in scribble)
    assert np.abs(cupy.asnumpy(out) - sl.aba(model, q, v, 2.0 * tau)).max() < 1e-9


@needs_gpu
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_constrained_dynamics(library: str) -> None:
    """Solutions, their status, and derivatives, which are NaN where constraints contradict each other."""
    there = pytest.importorskip(library).asarray
    on = {"device": "cuda"} if library == "torch" else {}
    robot, rng = sl.load_robot("quadruped"), np.random.default_rng(0)
    feet = [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet]
    q = sl.random_configuration(robot, 0, 100)
    v, tau = rng.normal(size=(2, 100, robot.nv))
    target = np.zeros((100, 24))
    target[::2] = rng.normal(size=(50, 24))  # of each foot twice
    dynamics = sl.ConstrainedDynamics(robot, [*feet, *feet])
    right = dynamics.derivatives(q, v, tau, target=target)
    found = dynamics.derivatives(*(there(x, **on) for x in (q, v, tau)), target=there(target, **on))

    def host(x: Any) -> Any:
        return x.get() if library == "cupy" else x.cpu().numpy()

    assert host(found.solution.status).tolist() == right.solution.status.tolist()
    assert set(right.solution.status) == {sl.Status.CONVERGED, sl.Status.LEAST_SQUARES}
    assert host(found.solution.iterations).min() >= 1
    assert np.isnan(host(found.da_dq)[::2]).all()
    assert np.abs(host(found.da_dq) - right.da_dq)[1::2].max() < 1e-6 * np.abs(right.da_dq[1::2]).max()


@needs_gpu
@pytest.mark.parametrize(("dtype", "tolerance"), [("f8", 1e-10), ("f4", 1e-3)])
@pytest.mark.parametrize("robot", ["quadruped", "humanoid"])
def test_robots_compiled_by_themselves(robot: str, dtype: str, tolerance: float) -> None:
    cupy = pytest.importorskip("cupy")
    model = sl.load_robot(robot)
    own, rng = sl.specialise(model), np.random.default_rng(0)
    q, (v, tau) = (
        sl.random_configuration(model, 0, 700).astype(dtype),
        rng.normal(size=(2, 700, model.nv)).astype(dtype),
    )
    there = [cupy.asarray(x) for x in (q, v, tau)]
    held = sl.ConstrainedDynamics(model, [sl.Contact(model, foot) for foot in sl.robot_frames(robot).feet])
    for found, right in (
        (sl.aba(own, *there), sl.aba(model, q, v, tau)),
        (sl.rnea(own, *there), sl.rnea(model, q, v, tau)),
        (sl.crba(own, there[0]), sl.crba(model, q)),
        (sl.specialise(held).solve(*there).a, held.solve(q, v, tau).a),
    ):
        assert np.abs(found.get() - right).max() < tolerance * np.abs(right).max()


@needs_gpu
def test_a_number_beside_arrays() -> None:
    cupy = pytest.importorskip("cupy")
    model = sl.random_model(seed=3, bodies=6)
    q = sl.random_configuration(model, 0, 100)
    found = sl.interpolate(model, cupy.asarray(q), cupy.asarray(q[::-1].copy()), 0.3)
    assert np.abs(found.get() - sl.interpolate(model, q, q[::-1], 0.3)).max() < 1e-12


@needs_gpu
def test_torch() -> None:
    """Tensors in, tensors out, on the stream of PyTorch; those that require gradients go by `torch_function`."""
    torch = pytest.importorskip("torch")
    model = sl.random_model(seed=3, bodies=12)
    q = sl.random_configuration(model, 0, 1000)
    v, tau = np.random.default_rng(0).normal(size=(2, 1000, model.nv))
    there = [torch.as_tensor(x, device="cuda") for x in (q, v, tau)]
    with torch.cuda.stream(torch.cuda.Stream()):
        found = sl.aba(model, *there)
    torch.cuda.synchronize()
    assert np.abs(found.cpu().numpy() - sl.aba(model, q, v, tau)).max() < 1e-9
    there[2].requires_grad_(True)
    with pytest.raises(TypeError, match="^aba: tau requires a gradient, expected a tensor that does not"):
        sl.aba(model, *there)
    sl.torch_function(sl.aba, model)(*there).sum().backward()
    assert there[2].grad.is_cuda
    right = sl.minverse(model, q).sum(-1)
    assert np.abs(there[2].grad.cpu().numpy() - right).max() < 1e-9 * np.abs(right).max()
