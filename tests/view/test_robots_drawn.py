"""Every robot of example-robot-data as its file has it: what is drawn of its links, against Pinocchio's visuals."""

from __future__ import annotations

import logging
import sys
from collections import defaultdict
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pinocchio as pin
import pytest
from lxml import etree

import saltus as sl
from saltus.model.robots import _examples_folder
from saltus.model.robots.table import EXAMPLES, SHIPPED
from saltus.view.solids import half_extents, solids_of

pytestmark = pytest.mark.slow
Box: TypeAlias = tuple[np.ndarray, np.ndarray]
FOLDER = _examples_folder() or Path(sys.prefix)
NAMES = [name for name in sl.robot_names() if name not in SHIPPED and EXAMPLES[name].file.endswith(".urdf")]


@pytest.mark.parametrize("name", NAMES)
def test_every_visual_is_drawn_where_pinocchio_has_it(name: str, caplog: pytest.LogCaptureFixture) -> None:
    file = FOLDER / EXAMPLES[name].file
    with caplog.at_level(logging.WARNING):
        robot = sl.load_urdf(file)
        solids = solids_of(robot)
    visuals = [visual for visual in etree.parse(str(file)).iter("visual")]
    drawn: dict[int, list[Box]] = defaultdict(list)
    placements = sl.joint_placements(robot, robot.neutral())
    for shape in robot.shapes:
        parts = [s for s in solids if s.shape.name == shape.name and np.array_equal(s.shape.placement, shape.placement)]
        assert parts or repr(shape.name) in caplog.text, f"{shape.name} is not drawn, and no warning says so"
        if parts:
            low, high = _around([(m - half, m + half) for m, half in (half_extents(part, np.eye(3)) for part in parts)])
            drawn[shape.joint].append(_turned(low, high, placements[shape.joint] @ shape.placement))
    if not visuals:
        return  # collision shapes, or a skeleton
    assert len(robot.shapes) + caplog.text.count("is left out") >= len(visuals)
    model = pin.buildModelFromUrdf(str(file))
    geometry = pin.buildGeomFromUrdf(model, str(file), pin.GeometryType.VISUAL, package_dirs=[str(FOLDER.parents[1])])
    data, visual = model.createData(), geometry.createData()
    pin.updateGeometryPlacements(model, data, geometry, visual, pin.neutral(model))
    boxes: dict[int, list[Box]] = defaultdict(list)
    for index, each in enumerate(geometry.geometryObjects):
        each.geometry.computeLocalAABB()
        box = each.geometry.aabb_local
        boxes[each.parentJoint].append(_turned(box.min_, box.max_, visual.oMg[index].homogeneous))
    assert set(boxes) == set(drawn)
    for joint, found in boxes.items():
        for ours, theirs in zip(_around(drawn[joint]), _around(found), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=2e-3, err_msg=model.names[joint])


def _turned(low: np.ndarray, high: np.ndarray, X: np.ndarray) -> Box:
    """A box along the world's axes around one that is placed somewhere."""
    at, half = X[:3, :3] @ (low + high) / 2 + X[:3, 3], abs(X[:3, :3]) @ (high - low) / 2
    return at - half, at + half


def _around(boxes: list[Box]) -> Box:
    return np.min([low for low, _ in boxes], axis=0), np.max([high for _, high in boxes], axis=0)
