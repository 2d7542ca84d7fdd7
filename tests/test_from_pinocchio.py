"""The page for those who come from Pinocchio: every row of its tables runs in both libraries, and they agree."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
import pinocchio.visualize  # the page names it
import pytest

import saltus as sl
from tests.closeness import assert_close
from tests.model.robots import ROBOTS

PAGE = (Path(__file__).parents[1] / "docs" / "from-pinocchio.md").read_text(encoding="utf-8")
COMPARED, NAMED = PAGE.split("## Side by side")[1].split("## Names without numbers to compare")
TALOS = ROBOTS / "talos_data/robots/talos_reduced.urdf"
TOLERANCE = 1e-11


class Row(NamedTuple):
    """The code of a row, statement by statement; the last is an expression."""

    pinocchio: list[str]
    saltus: list[str]


def rows(text: str) -> list[Row]:
    cells = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `")]
    return [Row(*(re.findall(r"`([^`]+)`", cell) for cell in row[:2])) for row in cells]


ROWS = rows(COMPARED)


@pytest.fixture
def names() -> dict[str, Any]:
    """What the page's code may speak of."""
    model = pin.buildModelFromUrdf(str(TALOS), pin.JointModelFreeFlyer())
    robot = sl.load_urdf(TALOS, floating_base=True)
    rng = np.random.default_rng(0)
    q, q1 = sl.random_configuration(robot, rng, 2)
    v, a, tau = rng.normal(size=(3, robot.nv))
    forces = rng.normal(size=(robot.njoints, 6))
    pin_forces = pin.StdVec_Force()
    pin_forces.extend([pin.Force(force) for force in forces])
    frame, joint = "gripper_left_base_link", "arm_left_5_joint"
    return {
        "pin": pin, "sl": sl, "np": np, "path": str(TALOS), "model": model, "data": model.createData(), "robot": robot,
        "q": q, "q1": q1, "v": v, "a": a, "tau": tau, "forces": forces, "pin_forces": pin_forces,
        "frame": frame, "joint": joint, "f": model.getFrameId(frame), "i": model.getJointId(joint),
    }  # fmt: skip


def outcome(code: list[str], names: dict[str, Any]) -> Any:
    for statement in code[:-1]:
        exec(statement, names)
    return eval(code[-1], names)


def leaves(value: Any) -> list[Any]:
    """Numbers as arrays, names as strings; of models what says that they are the same."""
    if isinstance(value, pin.Model):
        return leaves([value.nq, value.nv, *value.names, *(frame.name for frame in value.frames)])
    if isinstance(value, sl.Model):
        joints, frames = [j.name for j in value.joints], [f.name for f in value.frames]
        return leaves([value.nq, value.nv, *joints, *frames])
    if isinstance(value, pin.SE3):
        return [value.homogeneous]
    if isinstance(value, (pin.Motion, pin.Force)):
        return [value.vector]
    if isinstance(value, (str, float, int)):
        return [value]
    if isinstance(value, np.ndarray) and value.ndim < 3:
        return [value]
    return [leaf for part in value for leaf in leaves(part)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.saltus[-1])
def test_both_cells_agree(row: Row, names: dict[str, Any]) -> None:
    theirs, ours = leaves(outcome(row.pinocchio, names)), leaves(outcome(row.saltus, names))
    assert len(theirs) == len(ours) > 0
    for right, found in zip(theirs, ours, strict=True):
        if isinstance(right, str):
            assert found == right
        else:
            finite = np.isfinite(right)  # limits may be infinite, in both
            assert np.array_equal(np.asarray(found)[~finite], np.asarray(right)[~finite])
            assert_close(np.asarray(found)[finite], np.asarray(right)[finite], TOLERANCE)


def test_names_without_numbers_are_there() -> None:
    named = rows(NAMED)
    assert len(named) >= 10
    for name in re.findall(r"`((?:pin|sl)\.[\w.]+)`", NAMED):
        library, _, path = name.partition(".")
        thing = {"pin": pin, "sl": sl}[library]
        for part in path.split("."):
            assert hasattr(thing, part), name
            thing = getattr(thing, part)


def test_every_public_name_is_on_the_page() -> None:
    assert len(ROWS) >= 55
    told = set(re.findall(r"\bsl\.(\w+)", COMPARED + NAMED))
    assert told == set(sl.__all__)
