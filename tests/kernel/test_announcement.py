"""Compiling is never a silent wait: what is said of it, where, and when nothing is."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from saltus.kernel import warmup
from tests.test_cache import RUN, write

LINE = r"saltus: compiling scale for f64 \(first use; kept in {}\) \.\.\. \d+\.\d s\n"


def run_small(folder: Path, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process that runs an algorithm of its own, and so compiles it."""
    code = f"import sys\nsys.dont_write_bytecode = True\nsys.path.insert(0, {str(folder)!r})\n{RUN}"
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300,
        env=os.environ | {"PYTHONPATH": paths, "SALTUS_CACHE_DIR": str(cache)} | environment,
    )  # fmt: skip


def test_the_first_use_is_announced_and_the_second_is_silent(tmp_path: Path) -> None:
    write(tmp_path / "source", 3.0)
    cache = tmp_path / "cache"
    first, second = (run_small(tmp_path / "source", cache) for _ in range(2))
    assert re.fullmatch(LINE.format(re.escape(str(cache))), first.stderr)
    assert first.stdout.startswith("[3.0, 3.0]")  # nothing more there: programs and doctests read it
    assert second.stderr == ""


def test_the_home_folder_is_written_short(tmp_path: Path) -> None:
    write(tmp_path / "source", 3.0)
    done = run_small(tmp_path / "source", tmp_path / ".cache" / "saltus", HOME=str(tmp_path))
    assert re.fullmatch(LINE.format("~/.cache/saltus"), done.stderr)


def test_a_cache_that_cannot_be_written_is_not_announced(tmp_path: Path) -> None:
    write(tmp_path / "source", 3.0)
    (tmp_path / "file").write_text("no folder")
    done = run_small(tmp_path / "source", tmp_path / "file" / "cache")
    assert re.fullmatch(LINE.format("memory alone"), done.stderr)


@pytest.mark.parametrize(("value", "silent"), [("1", True), ("0", False), ("", False)])
def test_it_can_be_told_to_be_quiet(tmp_path: Path, value: str, silent: bool) -> None:
    write(tmp_path / "source", 3.0)
    assert (run_small(tmp_path / "source", tmp_path / "cache", SALTUS_QUIET=value).stderr == "") == silent


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's algorithms only: other tests in this process declare some of their own, which workers do not know."""
    known = [algorithm for algorithm in warmup.ALGORITHMS if algorithm.kernel.__module__.startswith("saltus.")]
    monkeypatch.setattr(warmup, "ALGORITHMS", known)


@pytest.mark.slow
@pytest.mark.usefixtures("package")
def test_warming_up_tells_of_every_function() -> None:
    told: list[tuple[int, int, str]] = []
    warmup.warmup(2, lambda *each: told.append(each), ("one", "many"))
    names = [job.name for job in warmup.jobs(("one", "many"))]
    total = len(names)
    assert [done for done, _, _ in told] == list(range(1, total + 1))
    assert {of for _, of, _ in told} == {total}
    assert sorted(name for _, _, name in told) == sorted(names)


@pytest.mark.slow
@pytest.mark.usefixtures("package")
def test_warming_up_on_the_command_line(capfd: pytest.CaptureFixture[str]) -> None:
    warmup.warmup(2, warmup.print_progress, ("one", "many"))
    lines = capfd.readouterr().out.splitlines()
    total = len(warmup.jobs(("one", "many")))
    assert len(lines) == 10 and lines[-1] == f"compiled {total} of {total} functions"


@pytest.mark.slow
def test_an_interrupted_warm_up_keeps_what_is_compiled(tmp_path: Path) -> None:
    paths = os.pathsep.join(path for path in sys.path if path)
    process = subprocess.Popen(
        [sys.executable, "-c", "from saltus.cli import app; app()", "warmup", "--jobs", "1"],
        env=os.environ | {"PYTHONPATH": paths, "SALTUS_CACHE_DIR": str(tmp_path)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        end = time.monotonic() + 120
        while not list(tmp_path.glob("*.o")):
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, error = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130 and not error
    assert list(tmp_path.glob("*.o"))
