"""What a process loads, and the cache of compiled code: found again, keyed on the sources, never trusted blindly."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import warnings
from pathlib import Path
from typing import IO

import pytest

from saltus.kernel import native
from tests.kernel.test_memory import in_new_process

COMPILER = "saltus.kernel.walk"
HEAVY = [COMPILER, "matplotlib", "casadi", "pinocchio", "trimesh", "scipy.spatial"]


def loaded(code: str, **environment: str) -> set[str]:
    """Which of the heavy modules a script has loaded in the end."""
    script = f"{code}\nimport sys\nprint('LOADED', *(name for name in {HEAVY} if name in sys.modules))"
    last = in_new_process(script, **environment).strip().splitlines()[-1]
    assert last.startswith("LOADED")
    return set(last.split()[1:])


def test_importing_is_light() -> None:
    assert not loaded("import saltus")


def test_the_test_sees_a_heavy_import() -> None:
    assert loaded("import matplotlib") == {"matplotlib"}


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
print(_scale.call(model, (np.ones(2),)).tolist(), "saltus.kernel.walk" in sys.modules)
"""


def write(folder: Path, factor: float) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "helper.py").write_text(HELPER.format(factor=factor))
    (folder / "small.py").write_text(SMALL.format(helper="helper"))


def run_small(folder: Path, cache: Path, before: str = "") -> str:
    code = f"import sys\nsys.dont_write_bytecode = True\nsys.path.insert(0, {str(folder)!r})\n{before}\n{RUN}"
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


LISTEN = """
import warnings
heard = []
warnings.showwarning = lambda message, *rest: heard.append(str(message))
"""
posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes are those of POSIX")


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    """Neither loaded from nor written to, and it says so, once, with what it found and what it expected."""
    source, cache = tmp_path / "source", tmp_path / "cache"
    write(source, 3.0)
    assert run_small(source, cache) == "[3.0, 3.0] True"
    (file,) = cache.iterdir()
    content, written = file.read_bytes(), file.stat().st_mtime_ns
    cache.chmod(mode)
    again = "_scale.call(model, (np.ones((4, 2)),))\nprint(len(heard), *heard)"
    code = f"{LISTEN}\nimport sys\nsys.path.insert(0, {str(source)!r})\n{RUN}\n{again}"
    compiled, said = in_new_process(code, SALTUS_CACHE_DIR=str(cache)).strip().split("\n")
    assert compiled == "[3.0, 3.0] True"
    assert said.startswith(f"1 saltus: {cache} is not used as a cache") and f"mode {mode:04o}, expected" in said
    assert [file] == list(cache.iterdir()) and (file.read_bytes(), file.stat().st_mtime_ns) == (content, written)
    cache.chmod(0o755)
    assert run_small(source, cache) == "[3.0, 3.0] False"


@posix
def test_a_file_that_others_can_write_is_compiled_anew(tmp_path: Path) -> None:
    source, cache = tmp_path / "source", tmp_path / "cache"
    write(source, 3.0)
    run_small(source, cache)
    (file,) = cache.iterdir()
    file.chmod(0o666)
    assert run_small(source, cache) == "[3.0, 3.0] True"
    assert run_small(source, cache) == "[3.0, 3.0] False" and stat.S_IMODE(file.stat().st_mode) == 0o600


@posix
def test_whose_folders_and_files_are_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """By kind, mode and owner; `me` is neither root nor the other one."""
    me, other = 1000, 1001
    monkeypatch.setattr(os, "geteuid", lambda: me)
    table = {
        (stat.S_IFDIR | 0o700, me): True,
        (stat.S_IFDIR | 0o755, me): True,
        (stat.S_IFDIR | 0o755, 0): True,  # what the system has installed
        (stat.S_IFDIR | 0o755, other): False,
        (stat.S_IFDIR | 0o700, other): False,
        (stat.S_IFDIR | 0o775, me): False,
        (stat.S_IFDIR | 0o1777, 0): True,  # like /tmp: what is ours there nobody else can replace
        (stat.S_IFDIR | 0o1777, other): False,
        (stat.S_IFREG | 0o600, me): True,
        (stat.S_IFREG | 0o644, 0): True,
        (stat.S_IFREG | 0o644, other): False,
        (stat.S_IFREG | 0o664, me): False,
        (stat.S_IFREG | 0o1666, me): False,  # the sticky bit of a file says nothing
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for (mode, owner), expected in table.items():
            status = os.stat_result((mode, 1, 1, 1, owner, owner, 0, 0, 0, 0))
            assert native.is_trusted(Path(f"/{mode:o}/{owner}"), status) == expected, f"{mode:o} of {owner}"


@posix
def test_a_new_folder_is_for_its_user_alone(tmp_path: Path) -> None:
    source, cache = tmp_path / "source", tmp_path / "deep" / "cache"
    write(source, 3.0)
    run_small(source, cache, before="import os\nos.umask(0)")
    (file,) = cache.iterdir()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (cache, file)] == [0o700, 0o600]


@posix
def test_a_full_disk_leaves_no_drafts(tmp_path: Path) -> None:
    """Files can have a thousand bytes and no more: what is longer is cut, and the write fails."""
    source, cache = tmp_path / "source", tmp_path / "cache"
    write(source, 3.0)
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    assert run_small(source, cache, before=full) == "[3.0, 3.0] True"
    assert cache.is_dir() and list(cache.iterdir()) == []
    assert run_small(source, cache) == "[3.0, 3.0] True"


def test_drafts_of_killed_processes_are_cleared(tmp_path: Path) -> None:
    source, cache = tmp_path / "source", tmp_path / "cache"
    write(source, 3.0)
    cache.mkdir(mode=0o700)
    old, new = cache / "aba-f64.abc.draft", cache / "crba-f64.def.draft"
    for draft in (old, new):
        draft.write_bytes(b"half")
    os.utime(old, (0, 0))
    run_small(source, cache)
    assert not old.exists() and new.exists()


def test_an_edit_while_a_process_runs(tmp_path: Path) -> None:
    """The process has old functions: what it compiles must not be found under the key of the new sources."""
    source, cache = tmp_path / "source", tmp_path / "cache"
    write(source, 3.0)
    edited = HELPER.format(factor=5.0)
    edit = f"import small\nfrom pathlib import Path\nPath({str(source / 'helper.py')!r}).write_text({edited!r})"
    run_small(source, cache, before=edit)
    assert run_small(source, cache).startswith("[5.0, 5.0]")


CLOSURES = """
from saltus.kernel import ld, st
from saltus.model.tree import algorithm

def make(factor):
    @algorithm(inputs={"v": "nv"}, outputs={"y": "nv"})
    def _scale(tree, v, w, y):
        for k in range(tree.nv):
            st(y, k, factor * ld(v, k))
    return _scale
"""


def test_closures_are_kernels_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text(CLOSURES)
    run = RUN.replace("import _scale", "import make").replace("print(_scale", "print(make(float(sys.argv[1]))")
    code = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n{run}"
    for factor in ("2.0", "3.0"):
        printed = in_new_process(code, factor, SALTUS_CACHE_DIR=str(tmp_path / "cache"))
        assert printed.startswith(f"[{factor}, {factor}]")


def test_the_cache_follows_attributes_of_modules(tmp_path: Path) -> None:
    source, cache = tmp_path / "source", tmp_path / "cache"
    source.mkdir()
    code = SMALL.format(helper="helper").replace("from helper import scaled", "import helper")
    (source / "small.py").write_text(code.replace("scaled(", "helper.FACTOR * ("))
    for factor in (3.0, 5.0):
        (source / "helper.py").write_text(f"FACTOR = {factor}")
        assert run_small(source, cache).startswith(f"[{factor}, {factor}]")


OF_NO_FILE = SMALL.replace("from {helper} import scaled", "").format().replace("scaled(", "3.0 * (") + RUN.replace(
    "from small import _scale\n", ""
)


NOTEBOOK = """
import linecache
name, code = "<ipython-input-1-0123456789ab>", {code!r}
linecache.cache[name] = len(code), None, code.splitlines(keepends=True), name  # as IPython does
exec(compile(code, name, "exec"))
"""


@pytest.mark.parametrize("origin", ["standard input", "notebook"])
def test_kernels_without_a_file(tmp_path: Path, origin: str) -> None:
    """Standard input is a file here: what came through a pipe nobody can read again."""
    (tmp_path / "script").write_text(OF_NO_FILE if origin == "standard input" else NOTEBOOK.format(code=OF_NO_FILE))
    finished = run_script(tmp_path, (tmp_path / "script").open())
    assert finished.stdout.startswith("[3.0, 3.0]"), finished.stderr[-500:]


def test_a_kernel_that_came_through_a_pipe(tmp_path: Path) -> None:
    finished = run_script(tmp_path, None, OF_NO_FILE)
    assert "<stdin>:6: kernel _scale: Python kept no text of it, expected one from a file" in finished.stderr


def run_script(cache: Path, stream: IO[str] | None, text: str | None = None) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run(
        [sys.executable, "-"], stdin=stream, input=text, capture_output=True, text=True, timeout=300, check=False,
        env=os.environ | {"PYTHONPATH": paths, "SALTUS_CACHE_DIR": str(cache / "cache")},
    )  # fmt: skip
