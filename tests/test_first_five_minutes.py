"""What someone who knows Pinocchio does in the first five minutes, with the README and the page of migration at hand.

Three tasks from that page, as they stand there, each within ten lines, with results that are Pinocchio's.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import saltus as sl
from tests.closeness import assert_close

ROOT = Path(__file__).parents[1]
BEFORE, REST = (ROOT / "docs/from-pinocchio.md").read_text(encoding="utf-8").split("## Three tasks")
SECTION, AFTER = REST.split("## Side by side")
SNIPPETS = dict(
    zip(("jacobian", "inertia", "batch"), re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL), strict=True)
)
TOLERANCE = 1e-10


@pytest.fixture(scope="module")
def peer() -> Any:
    """The same robot in Pinocchio."""
    file = files("saltus.model.robots") / "humanoid.urdf"
    return pin.buildModelFromUrdf(str(file), pin.JointModelFreeFlyer())


def run(task: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(SNIPPETS[task], names)
    return names


def jacobian(model: Any, q: np.ndarray, frame: str, reference: Any) -> np.ndarray:
    data = model.createData()
    J: np.ndarray = pin.computeFrameJacobian(model, data, q, model.getFrameId(frame), reference)
    return J


@pytest.mark.parametrize("task", SNIPPETS)
def test_within_ten_lines(task: str) -> None:
    lines = [line for line in SNIPPETS[task].splitlines() if line.strip()]
    assert 1 <= len(lines) <= 10
    assert max(map(len, lines)) <= 120 and not any(";" in line for line in lines)


@pytest.mark.parametrize("task", SNIPPETS)
def test_every_name_can_be_looked_up(task: str) -> None:
    """In the README, or elsewhere in the page."""
    known = set(re.findall(r"\w+", (ROOT / "README.md").read_text(encoding="utf-8") + BEFORE + AFTER))
    assert set(re.findall(r"\b(?:sl|robot)\.(\w+)", SNIPPETS[task])) <= known


def test_frame_jacobian(peer: Any) -> None:
    names = run("jacobian")
    q = names["robot"].reference_configurations["standing"]
    assert_close(names["J"], jacobian(peer, q, "left_hand", pin.LOCAL_WORLD_ALIGNED), TOLERANCE)


def test_operational_space_inertia(peer: Any) -> None:
    names = run("inertia")
    q = names["robot"].reference_configurations["standing"]
    J = np.concatenate([jacobian(peer, q, hand, pin.LOCAL) for hand in ("left_hand", "right_hand")])
    M = pin.crba(peer, peer.createData(), q)
    right = np.linalg.inv(J @ np.linalg.solve(M, J.T))
    assert names["inertia"].shape == (12, 12)
    assert_close(names["inertia"], right, TOLERANCE)


def test_batch_of_forward_dynamics(peer: Any) -> None:
    names = run("batch")
    data = peer.createData()
    samples = zip(names["q"], names["v"], names["tau"], strict=True)
    right = np.array([pin.aba(peer, data, *sample) for sample in samples])
    assert names["a"].shape == (10_000, sl.load_robot("humanoid").nv)
    assert_close(names["a"], right, TOLERANCE)
