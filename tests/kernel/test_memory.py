"""Memory: steady-state calls keep none, layouts do not overlap, models travel between processes, threads do not meet."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.kernel import ALGORITHMS, Algorithm, Layout, kernel, ld, st, within, zero
from saltus.kernel.poison import POISONED
from saltus.kernel.target import packet
from saltus.spatial.algebra import Motion, Vec3
from tests.generators import random_state
from tests.kernel.cases import NAMES, PRECISIONS, VARIANTS, all_kinds, random_inputs, run

MODEL = all_kinds()
WIDTH = packet(64).width


def in_new_process(code: str, *arguments: str, **environment: str) -> str:
    """What a script prints in a process of its own, which must end well."""
    paths = os.pathsep.join(path for path in sys.path if path)
    finished = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | {"PYTHONPATH": paths} | environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, f"exit status {finished.returncode}: {finished.stderr[-2000:]}"
    return finished.stdout


short_way = pytest.mark.skipif(POISONED, reason="the short way, which takes no memory, is closed under SALTUS_POISON")


def kept(work: Callable[[], object], calls: int) -> int:
    """Bytes that Python has allocated, and not given back, after these calls; the measure itself allocates nothing.

    The least of three rounds: a table of the interpreter's may grow once, a leak shows in all of them.
    """
    levels = np.zeros(4, np.int64)
    for _ in repeat(None, 10):
        work()
    gc.freeze()  # what is there already need not be looked at again
    tracemalloc.start()
    try:
        for k in range(4):
            for _ in repeat(None, calls if k else 10):
                work()
            gc.collect()
            levels[k] = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        gc.unfreeze()
    return int(np.diff(levels).min())


def test_the_measure_sees_what_is_kept() -> None:
    assert kept(lambda: None, 1000) == 0
    store: list[bytes] = []
    assert kept(lambda: store.append(bytes(100)), 100) > 10_000


@short_way
@pytest.mark.parametrize(("algorithm", "given"), VARIANTS, ids=NAMES)
@pytest.mark.parametrize("leading", [(), (WIDTH + 1,), (2, 50 * WIDTH)], ids=str)
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_steady_state_keeps_no_memory(algorithm: Algorithm, given: int, leading: tuple[int, ...], dtype: Any) -> None:
    """What Python has allocated before and after many calls with `out=` is the same to the byte."""
    inputs = tuple(
        x if x.dtype == np.int32 else x.astype(dtype) for x in random_inputs(algorithm, given, MODEL, 1, leading)
    )
    results = run(algorithm, MODEL, list(inputs))
    out = results if len(results) > 1 else results[0]
    assert kept(lambda: algorithm.call(MODEL, inputs, out), 400 if not leading else 20) == 0


@short_way
@pytest.mark.parametrize("leading", [(), (7,)], ids=str)
def test_results_are_given_back(leading: tuple[int, ...]) -> None:
    """Without `out=` every call makes a new result, which goes when nobody holds it."""
    s = random_state(MODEL, 1, leading)
    first, second = (sl.aba(MODEL, s.q, s.v, s.tau) for _ in range(2))
    assert not np.shares_memory(first, second) and np.array_equal(first, second)
    assert kept(lambda: sl.aba(MODEL, s.q, s.v, s.tau), 1000) == 0
    assert kept(lambda: sl.integrate_jacobians(MODEL, s.q, s.v), 1000) == 0


@short_way
def test_refused_calls_give_everything_back() -> None:
    q, v, bad = MODEL.neutral(), np.zeros(MODEL.nv), np.full(MODEL.nv, np.nan)

    def refused() -> None:
        try:
            sl.aba(MODEL, q, v, bad)
        except ValueError:
            return
        raise AssertionError("NaN was accepted")

    references = sys.getrefcount(bad)
    assert kept(refused, 200) == 0
    assert sys.getrefcount(bad) == references


def test_references_are_counted_right() -> None:
    """Inputs and given outputs have as many references after a thousand calls as before."""
    s = random_state(MODEL, 2)
    out = np.zeros(MODEL.nv)
    pair = (np.zeros((MODEL.nv, MODEL.nv)), np.zeros((MODEL.nv, MODEL.nv)))
    algorithm = next(algorithm for algorithm, _ in VARIANTS if algorithm.name == "integrate_jacobians")
    held = [s.q, s.v, s.tau, out, *pair, algorithm.filled(MODEL).handle]
    before = [sys.getrefcount(x) for x in held]
    for _ in range(1000):
        sl.aba(MODEL, s.q, s.v, s.tau, out=out)
        algorithm.call(MODEL, (s.q, s.v), pair)
    assert [sys.getrefcount(x) for x in held] == before


# --- layouts ---
def test_layout_offsets() -> None:
    layout = Layout(one={"gravity": Vec3}, nj={"velocity": Motion, "mass": None}, nv={"bias": None, "axis": Vec3})
    sizes = {"one": 1, "nj": 4, "nv": 5}
    assert layout.records == {"one": 3, "nj": 7, "nv": 4}
    assert layout.bases(sizes) == {"one": 0, "nj": 3, "nv": 31}
    assert layout.length(sizes) == 3 + 4 * 7 + 5 * 4
    assert {name: spec.offset for name, spec in layout.fields.items()} == {
        "gravity": 0, "velocity": 0, "mass": 6, "bias": 0, "axis": 1,
    }  # fmt: skip


def test_layout_fields_do_not_overlap() -> None:
    """Every number of the memory belongs to one field of one record."""
    layout = Layout(nj={"velocity": Motion, "mass": None, "place": Vec3}, nv={"bias": None})
    sizes = {"nj": 3, "nv": 4}
    memory = np.zeros(2 + layout.length(sizes))
    view = layout.view(memory, sizes, start=2)
    written = 0.0
    for i in range(3):
        view.velocity[i] = Motion(Vec3(*(written + np.arange(1, 4))), Vec3(*(written + np.arange(4, 7))))
        view.mass[i] = written + 7.0
        view.place[i] = Vec3(*(written + np.arange(8, 11)))
        written += 10.0
    for k in range(4):
        written += 1.0
        view.bias[k] = written
    assert sorted(memory[2:]) == list(range(1, layout.length(sizes) + 1))
    assert not memory[:2].any()
    assert view.velocity[2] == Motion(Vec3(21.0, 22.0, 23.0), Vec3(24.0, 25.0, 26.0))
    assert view.mass[1] == 17.0 and view.bias[3] == written


def test_a_layout_names_its_fields_once() -> None:
    with pytest.raises(ValueError):
        Layout(nj={"velocity": Motion}, nv={"velocity": None})


# --- processes ---
def test_pickled_model_in_another_process(tmp_path: Path) -> None:
    s = random_state(MODEL, 3, 5)
    right = sl.aba(MODEL, s.q, s.v, s.tau)
    (tmp_path / "case").write_bytes(pickle.dumps((MODEL, s.q, s.v, s.tau)))
    code = (
        "import pickle, sys, saltus as sl\n"
        "model, q, v, tau = pickle.load(open(sys.argv[1], 'rb'))\n"
        "pickle.dump((sl.aba(model, q, v, tau), sl.aba(model, q[0], v[0], tau[0])), open(sys.argv[2], 'wb'))\n"
    )
    in_new_process(code, str(tmp_path / "case"), str(tmp_path / "answer"))
    batch, one = pickle.loads((tmp_path / "answer").read_bytes())
    assert np.array_equal(batch, right)
    assert np.array_equal(one, sl.aba(MODEL, s.q[0], s.v[0], s.tau[0]))


def test_a_copy_of_a_model_that_was_used() -> None:
    """Tables hold addresses: they must not travel with a copy."""
    s = random_state(MODEL, 4)
    right = sl.aba(MODEL, s.q, s.v, s.tau)
    copy = pickle.loads(pickle.dumps(MODEL))
    assert not copy.filled and not copy.parts
    assert np.array_equal(sl.aba(copy, s.q, s.v, s.tau), right)
    heavier = MODEL.replace(gravity=2.0 * MODEL.gravity)
    assert not np.allclose(sl.gravity(heavier, s.q), sl.gravity(MODEL, s.q))
    assert np.allclose(sl.gravity(heavier, s.q), 2.0 * sl.gravity(MODEL, s.q))


FORK = """
import os, sys, numpy as np, saltus as sl
sl.set_threads(2)
model = sl.random_model(seed=21, bodies=10)
q = sl.random_configuration(model, 0, 4000)
right = sl.crba(model, q)  # the pool of threads is there now
child = os.fork()
if child == 0:
    good = np.array_equal(sl.crba(model, q), right) and np.array_equal(sl.crba(model, q[:3]), right[:3])
    sl.crba(model, q[0])
    os._exit(0 if good else 1)
_, status = os.waitpid(child, 0)
assert np.array_equal(sl.crba(model, q), right)
print(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_calls_after_fork() -> None:
    assert in_new_process(FORK).strip() == "0"


USE = """
import numpy as np, saltus as sl
model = sl.random_model(seed=0, bodies=2)
q, v = model.neutral(), np.zeros(model.nv)
for _ in range(3):
    sl.aba(model, q, v, v)
    sl.aba(model, q, np.tile(v, (9, 1)), v)
"""


def test_a_process_ends_cleanly() -> None:
    """Also if freed memory is overwritten at once, so that nothing freed too early goes unnoticed."""
    in_new_process(USE)
    in_new_process(USE, PYTHONMALLOC="malloc", MALLOC_PERTURB_="255")


# --- threads of the user ---
def test_two_threads_on_one_model() -> None:
    """Single calls and batches at the same time, on a model that both are the first to use."""
    model = pickle.loads(pickle.dumps(MODEL))
    s = random_state(MODEL, 5, 300)
    right = sl.aba(MODEL, s.q, s.v, s.tau)
    start = threading.Barrier(4)

    def single(first: int) -> bool:
        start.wait()
        ours = [sl.aba(model, s.q[k], s.v[k], s.tau[k]) for k in range(first, 300, 2)]
        return bool(np.allclose(ours, right[first::2], rtol=0.0, atol=1e-10 * np.abs(right).max()))

    def batch(part: slice) -> bool:
        start.wait()
        return all(np.array_equal(sl.aba(model, s.q[part], s.v[part], s.tau[part]), right[part]) for _ in range(50))

    with ThreadPoolExecutor(4) as pool:
        tasks = [pool.submit(single, k) for k in (0, 1)]
        tasks += [pool.submit(batch, part) for part in (slice(None), slice(7, 120))]
        assert all(task.result(timeout=120) for task in tasks)


def test_a_workspace_of_one_record() -> None:
    """The group `one`, in every way to call."""
    from saltus.model.tree import algorithm

    @algorithm(inputs={"v": "nv"}, outputs={"total": "1"}, work=Layout(one={"sum": None}))
    def total(tree, v, w, total):  # type: ignore[no-untyped-def]
        w.sum[0] = zero(v)
        for k in range(tree.nv):
            w.sum[0] = w.sum[0] + ld(v, k)
        st(total, 0, w.sum[0])

    ALGORITHMS.remove(total)
    v = np.random.default_rng(0).normal(size=(20, MODEL.nv))
    assert np.allclose(total.call(MODEL, (v[0],)), v[0].sum())
    assert np.allclose(total.call(MODEL, (v,))[:, 0], v.sum(1))


def test_a_workspace_within_another() -> None:
    """Names that both have do not meet: interpreted, for one sample, and for batches."""
    from saltus.model.tree import algorithm

    inner = Layout(nv={"kept": None}, one={"sum": Vec3})
    work = Layout(nv={"sum": None}).extended(**inner.prefixed("i_"))

    @kernel
    def collect(tree, v, w):  # type: ignore[no-untyped-def]
        w.sum[0] = Vec3(zero(v), zero(v), zero(v))
        for k in range(tree.nv):
            w.kept[k] = 2.0 * ld(v, k)
            w.sum[0] = w.sum[0] + Vec3(w.kept[k], zero(v), zero(v))
        return w.sum[0].x

    @algorithm(inputs={"v": "nv"}, outputs={"total": "1"}, work=work)
    def total(tree, v, w, total):  # type: ignore[no-untyped-def]
        for k in range(tree.nv):
            w.sum[k] = 3.0 * ld(v, k)
        twice = collect(tree, v, within(w, "i_"))
        st(total, 0, w.sum[0] + twice + within(w, "i_").kept[0])

    ALGORITHMS.remove(total)
    v = np.random.default_rng(0).normal(size=(20, MODEL.nv))
    right = 5.0 * v[:, 0] + 2.0 * v.sum(1)
    assert np.allclose(total.call(MODEL, (v[0],)), right[0])
    assert np.allclose(total.call(MODEL, (v,))[:, 0], right)
    numbers = [0.0] * work.length({"nv": MODEL.nv})
    found, tree = [0.0], type("Tree", (), {"nv": MODEL.nv})
    total.kernel(tree, v[0].tolist(), work.view(numbers, {"nv": MODEL.nv}), found)
    assert np.allclose(found, right[0])
