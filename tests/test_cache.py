"""What a process loads, and the cache of compiled code: found again, keyed on the sources, never trusted blindly."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.kernel.test_memory import in_new_process

HEAVY = ["numba", "matplotlib", "yourdfpy", "casadi", "pinocchio", "trimesh", "scipy.spatial"]


def loaded(code: str, **environment: str) -> set[str]:
    """Which of the heavy modules a script has loaded in the end."""
    script = f"{code}\nimport sys\nprint('LOADED', *(name for name in {HEAVY} if name in sys.modules))"
    last = in_new_process(script, **environment).strip().splitlines()[-1]
    assert last.startswith("LOADED")
    return set(last.split()[1:])


def test_importing_is_light() -> None:
    assert not loaded("import saltus")


def test_the_test_sees_a_heavy_import() -> None:
    assert loaded("import numba") == {"numba"}


CALLS = """
import numpy as np, saltus as sl
model = sl.random_model(seed=0, bodies=3)
q, v = model.neutral(), np.zeros(model.nv)
many = np.tile(q, (20, 1))
for configuration in (q, many, many.astype(np.float32)):
    sl.aba(model, configuration, v.astype(configuration.dtype), v.astype(configuration.dtype))
    sl.crba(model, configuration)
    sl.frame_jacobian(model, configuration, 1, "world")
sl.rnea(model, q, v, v), sl.minverse(model, q), sl.integrate(model, q, v), sl.center_of_mass(model, q, v, v)
"""


def test_a_second_process_does_not_compile() -> None:
    in_new_process(CALLS)
    assert not loaded(CALLS)


SMALL = """
from saltus.kernel import kernel, ld, st
from saltus.model.tree import algorithm
from {helper} import scaled

@algorithm(inputs={{"v": "nv"}}, outputs={{"y": "nv"}})
def _scale(tree, v, w, y):
    for k in range(tree.nv):
        st(y, k, scaled(ld(v, k)))
"""
HELPER = """
from saltus.kernel import kernel

@kernel
def scaled(x):
    return x * {factor}
"""
RUN = """
import sys, numpy as np, saltus as sl
from small import _scale
model = sl.random_model(seed=0, bodies=2, kinds=["revolute"])
print(_scale.call(model, (np.ones(2),)).tolist(), "numba" in sys.modules)
"""


def write(folder: Path, factor: float) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "helper.py").write_text(HELPER.format(factor=factor))
    (folder / "small.py").write_text(SMALL.format(helper="helper"))


def run_small(folder: Path, cache: Path) -> str:
    code = f"import sys\nsys.dont_write_bytecode = True\nsys.path.insert(0, {str(folder)!r})\n{RUN}"
    return in_new_process(code, SALTUS_CACHE_DIR=str(cache)).strip()


def test_the_cache_follows_the_sources(tmp_path: Path) -> None:
    """Compiled once, found by the next process, compiled again when a kernel that it calls has changed, in another file."""
    source, cache = tmp_path / "source", tmp_path / "cache"
    write(source, 3.0)
    assert run_small(source, cache) == "[3.0, 3.0] True"
    files = sorted(cache.iterdir())
    assert [file.suffix for file in files] == [".o"] and files[0].name.startswith("scale-f64-one-")
    assert run_small(source, cache) == "[3.0, 3.0] False"
    write(source, 5.0)
    assert run_small(source, cache) == "[5.0, 5.0] True"
    assert len(list(cache.iterdir())) == 2
    write(source, 3.0)
    assert run_small(source, cache) == "[3.0, 3.0] False"


def test_the_cache_follows_constants(tmp_path: Path) -> None:
    """A number that a kernel has from another file, in which there is no kernel."""
    source, cache = tmp_path / "source", tmp_path / "cache"
    source.mkdir()
    code = SMALL.format(helper="helper").replace("import scaled", "import FACTOR").replace("scaled(", "FACTOR * (")
    (source / "small.py").write_text(code)
    for factor in (3.0, 5.0):
        (source / "helper.py").write_text(f"FACTOR = {factor}")
        assert run_small(source, cache) == f"[{factor}, {factor}] True"


@pytest.mark.parametrize("damage", ["empty", "cut", "garbage"])
def test_a_damaged_file_is_compiled_again(tmp_path: Path, damage: str) -> None:
    """A full disk or a killed process must not take later processes down."""
    source, cache = tmp_path / "source", tmp_path / "cache"
    write(source, 3.0)
    run_small(source, cache)
    (file,) = cache.iterdir()
    code = file.read_bytes()
    file.write_bytes({"empty": b"", "cut": code[: len(code) // 2], "garbage": b"no object file" * 50}[damage])
    assert run_small(source, cache) == "[3.0, 3.0] True"
    assert run_small(source, cache) == "[3.0, 3.0] False"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="needs a folder that cannot be written")
def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    source, cache = tmp_path / "source", tmp_path / "cache"
    write(source, 3.0)
    cache.mkdir(mode=0o500)
    assert run_small(source, cache) == "[3.0, 3.0] True"


def test_a_cache_that_is_no_folder(tmp_path: Path) -> None:
    source, cache = tmp_path / "source", tmp_path / "cache"
    write(source, 3.0)
    cache.write_text("a file in the way")
    assert run_small(source, cache) == "[3.0, 3.0] True"
