"""The command line: what it prints, writes and refuses, in this process and, once for each way out, in one of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import saltus as sl
from saltus.cli import app
from tests.view.browser import launched, opened, settled

COMMANDS = ("robots", "info", "view", "simulate", "solve", "bench", "warmup")
ROD = """<robot name="rod"><link name="base"/><link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
  <inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
  <limit lower="-1" upper="2" velocity="3" effort="40"/></joint></robot>"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def printed(*arguments: str) -> str:
    """What a command prints, which must end well."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


# Whoever is started in the background of a shell has Ctrl-C ignored, and so have those that they start.
STARTED = """
from signal import SIGINT, default_int_handler, signal
signal(SIGINT, default_int_handler)
from saltus.cli import app
app()
"""


def started(*arguments: str) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", STARTED, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )  # fmt: skip


def test_version_and_help() -> None:
    assert printed("--version") == f"saltus {sl.__version__}\n"
    text = printed("--help")
    assert all(re.search(rf"^│ {command} ", text, re.MULTILINE) for command in COMMANDS)
    assert "saltus simulate quadruped --view" in text


@pytest.mark.parametrize("command", ["info", "view", "simulate", "solve", "bench"])
def test_the_help_of_a_command_has_examples(command: str) -> None:
    assert f"saltus {command} " in printed(command, "--help").split("Examples:")[1]


def test_robots_lists_all() -> None:
    assert set(sl.robot_names()) <= set(printed("robots").split())


@pytest.mark.parametrize("name", ["quadruped", "biped", "humanoid_hands", "cartpole"])
def test_info_tells_of_every_joint(name: str) -> None:
    robot, text = sl.load_robot(name), printed("info", name)
    lines = text.splitlines()
    for joint in robot.joints[1:]:
        (line,) = [line for line in lines if re.search(rf"─ {joint.name}  ", line)]
        assert joint.kind.name.lower() in line and f"{joint.mass:.3g} kg" in line
        depth, above = 0, joint
        while above.parent:
            above, depth = robot.joints[above.parent], depth + 1
        assert line.index(joint.name) == 4 * (depth + 1)
    assert f"nq = {robot.nq}, nv = {robot.nv}" in text and f"{robot.total_mass:.4g} kg" in text
    for loop in robot.loops:
        assert f"{loop.name} (point: {loop.frame_a} = {loop.frame_b})" in text
    for name in (*robot.reference_configurations, *(actuator.name for actuator in robot.actuators)):
        assert name in text


def test_info_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rod.urdf"
    file.write_text(ROD)
    assert "hinge  revolute y  2 kg  -1 ... 2 rad  3 rad/s  40 N m" in printed("info", str(file))
    assert "root_joint  free_flyer  0 kg" in printed("info", str(file), "--floating")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "quadrupd"], "there is no robot 'quadrupd'; did you mean 'quadruped'?"),
        (["info", "nowhere.urdf"], "nowhere.urdf: cannot be read"),
        (["info", "README.md"], "the file's name ends in '.md', expected one of .urdf, .xml, .mjcf, .sdf"),
        (["info", "arm", "--floating"], "--floating and --fixed are for files; 'arm' has the base it has"),
        (["info", "four_bar.xml", "--fixed"], "an MJCF file says itself whether the base moves freely"),
        (["view", "arm", "--pose", "standin"], "model 'arm' has no pose 'standin'; did you mean 'standing'?"),
        (
            ["view", "arm", "--save", "/nowhere/arm.html"],
            "/nowhere/arm.html: cannot be written: No such file or directory",
        ),
        (["view", "arm", "--save", "arm.txt"], "arm.txt: a replay is an HTML file, expected a name that ends in .html"),
        (
            ["view", "arm", "--save", "/nowhere/arm.png"],
            "/nowhere/arm.png: cannot be written: there is no folder /nowhere",
        ),
        (["simulate", "arm", "--dt", "0"], "dt is 0.0, expected a positive time in seconds"),
        (["simulate", "arm", "--dt", "0.5"], "could not go on after"),
        (["simulate", "arm", "--drop", "0.5"], "--drop is for simulations with contacts: say on which --terrain"),
        (["simulate", "arm", "--terrain", "flat", "--drop", "0.5"], "model 'arm' has no free base to drop it with"),
        (["simulate", "quadruped", "--terrain", "flat", "--method", "rk4"], "--method is for free motions"),
        (
            ["simulate", "quadruped", "--terrain", "flat", "--push", "base 0 80"],
            "--push is 'base 0 80', expected a frame",
        ),
        (["simulate", "quadruped", "--terrain", "flat", "--push", "bas 0 8 0"], "'bas'"),
        (["solve", "cartpol"], "there is no problem 'cartpol'; did you mean 'cartpole'?"),
        (["solve", "cartpole", "--robot", "arm"], "the problem 'cartpole' has a robot of its own, expected no --robot"),
        (["solve", "reach", "--robot", "nobody"], "there is no robot 'nobody'"),
        (["solve", "reach", "--floating"], "--floating and --fixed are for the file of a --robot"),
    ],
)
def test_an_error_is_one_line(arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    result = run(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr and result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    with pytest.raises((ValueError, OSError), match=re.escape(message)):
        CliRunner().invoke(app, ["--debug", *arguments], catch_exceptions=False)


def test_what_simulate_does_unless_told_otherwise() -> None:
    assert "cartpole: 3 s of free motion, 300 steps of rk4" in printed("simulate", "cartpole", "--dt", "0.01")
    assert "cartpole: 0.1 s of free motion, 100 steps" in printed("simulate", "cartpole", "--seconds", "0.1")


@pytest.mark.parametrize(
    ("arguments", "robot", "batch", "seconds"),
    [([], "quadruped", 4096, 0.2), (["arm", "--batch", "7", "--seconds", "0.5"], "arm", 7, 0.5)],
)
def test_what_bench_measures(
    arguments: list[str], robot: str, batch: int, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = []

    def best(model: sl.Model, function: Callable[..., Any], inputs: list[Any], time: float) -> float:
        measured.append((model.name, function.__name__, inputs[0].shape[:-1], time))
        return 1e-6

    monkeypatch.setattr(sys.modules["saltus.cli.bench"], "_best", best)  # the package has its command of that name
    assert f"{robot}, " in (text := printed("bench", *arguments)) and f"batches of {batch} in" in text
    assert {name for name, *_ in measured} == {robot} and {time for *_, time in measured} == {seconds}
    assert {shape for _, _, shape, _ in measured} == {(), (batch,)}
    assert "aba" in {name for _, name, *_ in measured}


def test_a_wrong_option_is_a_matter_of_usage() -> None:
    assert run("simulate", "arm", "--method", "leapfrog").exit_code == 2
    assert run("dance").exit_code == 2


def test_view_saves_a_page(tmp_path: Path) -> None:
    page = tmp_path / "arm.html"
    assert printed("view", "arm", "--pose", "neutral", "--save", str(page)) == f"wrote {page}\n"
    assert "<title>arm</title>" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_names_of_files_say_what_is_saved(tmp_path: Path) -> None:
    picture, video = tmp_path / "arm.png", tmp_path / "arm.gif"
    assert printed("view", "arm", "--save", str(picture)) == f"wrote {picture}\n"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"wrote {video}" in printed("simulate", "arm", "--seconds", "0.1", "--save", str(video))
    assert video.read_bytes().startswith(b"GIF")


def test_simulate_reports_draws_and_saves(tmp_path: Path) -> None:
    page, picture = tmp_path / "fall.html", tmp_path / "energy.png"
    text = printed("simulate", "quadruped", "--seconds", "0.5", "--save", str(page), "--plot", str(picture))
    assert "0.5 s of free motion, 500 steps of rk4" in text
    for name in ("energy", "linear momentum", "angular momentum"):
        (drift,) = re.findall(rf"^{name} .* (\S+)\s*$", text, re.MULTILINE)
        assert 0 < float(drift) < 1e-8
    assert "0.50 s · 26 frames" in page.read_text(encoding="utf-8")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_simulate_depends_on_seed_pose_and_method() -> None:
    def drift(*options: str) -> str:
        return printed("simulate", "arm", "--seconds", "0.3", *options).splitlines()[-1]

    first = drift()
    assert drift() == first
    others = [drift("--seed", "1"), drift("--pose", "neutral"), drift("--method", "semi_implicit_euler")]
    assert len({first, *others}) == 4
    assert float(others[2].split()[-1]) > 1e3 * float(first.split()[-1])


@pytest.mark.parametrize("terrain", ["flat", "stairs", "ramp", "rough"])
def test_simulate_drops_a_robot_on_a_terrain(terrain: str, tmp_path: Path) -> None:
    page = tmp_path / "drop.html"
    text = printed(
        "simulate", "quadruped", "--terrain", terrain, "--drop", "0.1", "--seconds", "0.5", "--save", str(page)
    )
    assert f"quadruped (terrain: {terrain}): 0.5 s, 500 steps" in text
    told = dict(re.findall(r"^(status|fall|deepest penetration|contacts at a time) {2,}(.*?) *$", text, re.MULTILINE))
    assert told["status"] == "CONVERGED 100.0%" and float(told["deepest penetration"].split()[0]) < 1.0
    assert told["contacts at a time"] != "at most 0"
    assert "0.50 s · 26 frames" in page.read_text(encoding="utf-8")


def test_what_cannot_touch_is_not_simulated_on_a_terrain(tmp_path: Path) -> None:
    file = tmp_path / "rod.urdf"
    file.write_text(ROD)
    assert "has no collision shapes" in run("simulate", str(file), "--terrain", "flat").stderr


def test_simulate_with_motors_and_pushes() -> None:
    """Stiff legs carry a humanoid on the corners of its soles, till it is pushed up; limp it falls."""

    def told(*options: str, seconds: str = "3") -> dict[str, str]:
        text = printed("simulate", "humanoid", "--terrain", "flat", "--seconds", seconds, *options)
        return dict(re.findall(r"^(fall|contacts at a time) {2,}(.*?) *$", text, re.MULTILINE))

    stiff = ("--pd", "2000", "50")
    assert told(*stiff) == {"fall": "none", "contacts at a time": "at most 8"}
    assert told()["fall"].startswith("at ")
    off = told(*stiff, "--push", "pelvis 0 0 1500", "--push", "pelvis 9 0 0 0.1 0.2", seconds="0.1")
    assert off["contacts at a time"] == "at most 0"


def test_solve_prints_draws_and_saves(tmp_path: Path) -> None:
    page, plots = tmp_path / "swing.html", tmp_path / "plots"
    text = printed("solve", "cartpole", "--save", str(page), "--plots", str(plots))
    lines = [line for line in text.splitlines() if not line.startswith("saltus: compiling")]
    assert lines[0].startswith("cartpole swings up: 100 nodes, 1 controls")
    assert lines[1].split()[:3] == ["iter", "cost", "stop"]
    (iterations,) = re.findall(r"^solved after (\d+) iterations in .* s, cost ", text, re.MULTILINE)
    assert sum(bool(re.match(r" *\d+  ", line)) for line in lines) == int(iterations)
    assert {file.name for file in plots.iterdir()} == {"costs.png", "gaps.png", "controls.png"}
    assert all((plots / name).read_bytes().startswith(b"\x89PNG") for name in ("costs.png", "gaps.png"))
    assert "2.00 s · 101 frames" in page.read_text(encoding="utf-8")


def test_solve_says_what_is_left() -> None:
    result = run("solve", "cartpole", "--iterations", "11", "--solver", "fddp")
    assert result.exit_code == 1 and "max_iterations after 11 iterations" in result.output
    assert re.search(
        r"not converged after 11 iterations; .*node \d+ costs most; term '.*' costs most there", result.output
    )
    assert run("solve", "cartpole", "--solver", "simplex").exit_code == 2


def test_ctrl_c_in_solve_keeps_the_last_iterate(tmp_path: Path) -> None:
    page = tmp_path / "swing.html"
    process = started("solve", "cartpole", "--solver", "fddp", "--save", str(page))
    assert process.stdout is not None
    try:
        assert any(re.match(r" *1  ", line) for line in process.stdout)  # two iterations are done
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=60)
    finally:
        process.kill()
    assert not error and page.exists()
    assert (process.returncode, "interrupted after" in output) in ((130, True), (0, False))  # if it was quicker


@pytest.mark.slow
def test_bench_measures_every_function() -> None:
    threads = sl.get_threads()
    lines = printed("bench", "double_pendulum", "--batch", "64", "--seconds", "0.001").splitlines()
    assert "2 degrees of freedom" in lines[0] and sl.get_threads() == threads
    figures = {line.split()[0]: [float(figure) for figure in line.split()[1:]] for line in lines[4:]}
    assert {"aba", "rnea", "crba", "minverse", "integrate"} <= set(figures)
    assert all(len(row) == 1 + 2 * len({1, threads}) and min(row) > 0 for row in figures.values())


@pytest.mark.slow
def test_view_serves_a_page_until_ctrl_c() -> None:
    process = started("simulate", "double_pendulum", "--seconds", "1", "--view", "--port", "8190")
    assert process.stdout is not None
    try:
        url = next(found[0] for line in process.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
        with launched() as browser, opened(browser, url) as page:
            page.get_by_text("time [s]").wait_for()
            page.get_by_label("play").click()  # it runs; now it stops
            settled(page)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0 and not error


@pytest.mark.slow
def test_ctrl_c_in_a_simulation_reports_what_there_is() -> None:
    process = started("simulate", "double_pendulum", "--seconds", "10000", "--dt", "1e-3")
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=25)  # on a busy machine it takes its time to begin
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130 and not error
    assert "of free motion" in output and re.search(r"^energy .* J", output, re.MULTILINE)


def test_a_real_process() -> None:
    process = started("info", "no_such_robot")
    output, error = process.communicate(timeout=60)
    assert (process.returncode, output) == (1, "") and error.startswith("error: there is no robot 'no_such_robot'")
