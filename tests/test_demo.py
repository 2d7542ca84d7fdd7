"""`make demo`, as a person at a terminal sees it: iterations, files, and a page on which the robot jumps, then stands."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.view.browser import LARGE, differing, is_drawn, launched, opened, picture, wait_until

DEMO = Path(__file__).parents[1] / "examples" / "jump.py"
FILES = {"jump.html", "jump-costs.png", "jump-gaps.png", "jump-controls.png", "jump-forces.png"}


def run_demo(folder: Path, **streams: int) -> subprocess.Popen[bytes]:
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, str(DEMO), "--folder", str(folder)]
    return subprocess.Popen(command, env=os.environ | {"PYTHONPATH": paths}, **streams)


class Terminal:
    """The other end of a terminal."""

    def __init__(self, end: int) -> None:
        self._end, self._seen = end, ""

    def read_until(self, pattern: str) -> str:
        """What the pattern finds, once it does."""
        while not (found := re.search(pattern, self._seen)):
            self._seen += os.read(self._end, 4096).decode()
        return found[0]

    def press_enter(self) -> None:
        os.write(self._end, b"\n")


@contextmanager
def at_a_terminal(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Terminal]]:
    end, other = pty.openpty()
    process = run_demo(folder, stdin=other, stdout=other, stderr=other)
    os.close(other)
    try:
        yield process, Terminal(end)
    finally:
        process.kill()
        process.wait()
        os.close(end)


@pytest.mark.slow
def test_the_page_opens_and_moves_and_then_stands_still(tmp_path: Path) -> None:
    with at_a_terminal(tmp_path) as (process, terminal), launched() as browser:
        url = terminal.read_until(r"http://127\.0\.0\.1:\d+")
        with opened(browser, url, LARGE) as page:
            page.get_by_text("time [s]").wait_for()
            wait_until(page, is_drawn)
            pictures = [picture(page) for _ in range(4)]  # each takes a while
            assert all(map(is_drawn, pictures))  # the robot, wherever it flies: the floor alone has too few colours
            assert all(differing(*pair) > 0.02 for pair in pairwise(pictures))
            terminal.read_until("Enter: stand still")
            terminal.press_enter()
            terminal.read_until("Enter: end")

            def rests(standing: np.ndarray) -> bool:
                """For a second: a busy machine may not draw for a while, and then go on."""
                page.wait_for_timeout(1000)
                return is_drawn(standing) and differing(standing, picture(page)) < 1e-3

            wait_until(page, rests)
            page.get_by_text("time [s]").wait_for(state="hidden")
        terminal.press_enter()
        assert process.wait(timeout=30) == 0


def test_without_a_terminal_it_ends_by_itself(tmp_path: Path) -> None:
    process = run_demo(tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    output = process.communicate(timeout=300)[0].decode()
    assert process.returncode == 0
    assert "http://" not in output
    costs = [float(cost) for cost in re.findall(r"^ +\d+ +([\d.]+) +\S+ +\S+ +[\d.]+$", output, re.MULTILINE)]
    (count,) = re.findall(r"^solved after (\d+) iterations", output, re.MULTILINE)
    assert len(costs) == int(count) < 40 and costs[-1] < 0.1 * costs[0]
    (up,) = re.findall(r"centre of mass, up +([\d.]+) m", output)
    assert float(up) == pytest.approx(0.15, abs=0.01)
    (share,) = re.findall(r"largest torque +(\d+)% of the limit", output)
    assert int(share) <= 100
    assert {file.name for file in tmp_path.iterdir()} == FILES
