"""Files of compiled code in a wheel: what is put in comes out, and what is in them can be called."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from saltus.kernel import packs, warmup

CODES = {f"one f64 {layer}": {f"{layer}-{n}": bytes([n]) * (n + 1) for n in range(9)} for layer in ("dynamics", "ocp")}


@pytest.mark.parametrize("longest", [1, 10, 1000])
def test_what_is_put_in_comes_out(longest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "FOLDER", tmp_path)
    monkeypatch.setattr(packs, "LONGEST", longest)
    packs.write(tmp_path / "level.pack", CODES)
    for members in CODES.values():
        for symbol, code in members.items():
            assert packs.find("level", symbol) == code
    assert packs.find("level", "dynamics-9") is None
    assert packs.find("other", "dynamics-1") is None


def test_a_damaged_group_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "FOLDER", tmp_path)
    file = tmp_path / "level.pack"
    packs.write(file, CODES)
    file.write_bytes(file.read_bytes()[:-10])
    assert packs.find("level", "dynamics-1") == CODES["one f64 dynamics"]["dynamics-1"]
    assert packs.find("level", "ocp-1") is None


def test_slopes_that_nobody_asks_for_are_not_compiled_ahead() -> None:
    names = {form: {job.algorithm.name for job in warmup.jobs([form])} for form in ("one", "slopes")}
    assert {"aba", "constrained_aba", "task_velocities"} <= names["slopes"]
    assert names["slopes"] - names["one"] == {"contact_velocities"}  # whose values nobody asks for by themselves
    unasked = {"contact_steps", "whole_body", "reduced_program", "inverse_kinematics", "rnea_vjp", "lqr_forward"}
    assert unasked <= names["one"] and unasked.isdisjoint(names["slopes"])


def test_the_clock_compiles_for_processors_of_others(tmp_path: Path) -> None:
    """LLVM reads no assembly language but that of the machine at hand, and ends the process."""
    code = f"""
from pathlib import Path
from saltus.kernel.warmup import write_packs
if __name__ == "__main__":
    write_packs(Path({str(tmp_path)!r}), ["aarch64", "x86-64-v3"], 1, names=["clock"])
"""
    file = tmp_path / "write.py"
    file.write_text(code)
    paths = {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "SALTUS_CACHE_DIR": str(tmp_path / "cache"),
    }
    subprocess.run([sys.executable, file], env=os.environ | paths, check=True, capture_output=True, timeout=300)
    assert {each.name for each in tmp_path.glob("*.pack")} == {"aarch64.pack", "x86-64-v3.pack"}
