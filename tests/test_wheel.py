"""A wheel as users get it: built, installed into an environment of its own, used without compiling anything."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from saltus.kernel.target import LEVELS, lacking

ROOT = Path(__file__).parent.parent
LEVEL = next(level for level in LEVELS if not lacking(level))
FUNCTIONS = "aba crba constrained_aba constrained_derivatives coordinate_rates"

USE = """
import time; start = time.perf_counter()
import sys, numpy as np, saltus as sl
assert "site-packages" not in sl.__file__ or {where!r} in sl.__file__, sl.__file__
robot = sl.load_robot("quadruped")
q, v = robot.neutral(), np.zeros(robot.nv)
M, a = sl.crba(robot, q), sl.aba(robot, q, v, v)
assert np.allclose(M @ a, -sl.crba(robot, q) @ np.eye(robot.nv)[2] * 9.81)
many = sl.aba(robot, np.tile(q, (20, 1)), v, v)
assert np.array_equal(many, np.tile(a, (20, 1))) or np.allclose(many, a)
dynamics = sl.ConstrainedDynamics(robot, [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet])
assert np.isfinite(dynamics.derivatives(q, v, v).da_dq).all()
values, slopes = sl.jvp(sl.aba, robot, (q, v, v), (v + 1.0, v, v), "ad")
print("walk" if "saltus.kernel.walk" in sys.modules else "no compiler")
"""


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel in it; what it depends on is this one's."""
    folder = tmp_path_factory.mktemp("wheel")
    settings = {"SALTUS_WHEEL_LEVELS": f"{LEVEL} aarch64", "SALTUS_WHEEL_FUNCTIONS": FUNCTIONS}
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, env=os.environ | settings, check=True, capture_output=True)
    (wheel,) = folder.glob("saltus-*.whl")
    venv.create(folder / "env", with_pip=True)
    subprocess.run([folder / "env/bin/pip", "install", "--quiet", "--no-deps", wheel], check=True)
    return folder / "env"


def run(environment: Path, code: str, cache: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    cache.mkdir(exist_ok=True)
    paths = {"PYTHONPATH": sysconfig.get_path("purelib"), "SALTUS_CACHE_DIR": str(cache), "SALTUS_POISON": ""}
    return subprocess.run(
        [environment / "bin/python", "-c", code], env=os.environ | paths | settings, capture_output=True, text=True,
        timeout=300, check=False, cwd=cache,
    )  # fmt: skip


@pytest.mark.slow
def test_nothing_is_compiled(environment: Path, tmp_path: Path) -> None:
    finished = run(environment, USE.format(where=str(environment)), tmp_path / "cache")
    assert (finished.stdout, finished.stderr) == ("no compiler\n", "")
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.slow
def test_what_the_wheel_has_not_is_compiled(environment: Path, tmp_path: Path) -> None:
    """For another processor than those of the wheel, or a function that is not in it."""
    code = "import numpy as np, saltus as sl\nrobot = sl.load_robot('arm')\nprint(sl.gravity(robot, robot.neutral()).shape)"
    finished = run(environment, code, tmp_path / "cache")
    assert "compiling gravity for f64" in finished.stderr and finished.stdout == "(7,)\n", finished.stderr
    finished = run(environment, USE.format(where=str(environment)), tmp_path / "cache", SALTUS_TARGET="native")
    assert "compiling aba for f64" in finished.stderr and finished.stdout == "walk\n", finished.stderr


@pytest.mark.slow
def test_a_damaged_pack_is_none(environment: Path, tmp_path: Path) -> None:
    (pack,) = environment.glob(f"lib/python*/site-packages/saltus/compiled/{LEVEL}.pack")
    content = pack.read_bytes()
    pack.write_bytes(b"garbage" + content)
    try:
        finished = run(environment, USE.format(where=str(environment)), tmp_path / "cache")
    finally:
        pack.write_bytes(content)
    assert "compiling aba" in finished.stderr and finished.stdout == "walk\n"
