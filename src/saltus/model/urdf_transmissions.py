"""The `<transmission>` elements of a URDF file: which joints have motors, and by which gears.

| in the file | here |
|---|---|
| one joint, one actuator | an `Actuator`, whose gear is `mechanicalReduction` |
| several of them, as a differential has | an `Actuator` of gear 1 for each joint: its effort is counted there |
| interfaces for effort, position or velocity | what it is told |
| no interface but that of the joint's state | none: nothing drives that joint |

The effort limit of a joint, divided by the gear, is that of its actuator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from saltus.model.checks import ModelError
from saltus.model.safe_xml import numbers_in, tag_of

COMMANDS = {
    "EffortJointInterface": "effort",
    "PositionJointInterface": "position",
    "VelocityJointInterface": "velocity",
}
STATE = "JointStateInterface"


@dataclass(frozen=True)
class Transmission:
    name: str  # of the actuator
    joint: str
    gear: float
    command: str


def read_transmissions(robot: Any, where: str) -> list[Transmission]:
    """Those of a file's `<robot>` element; `where` names the file."""
    return [each for element in _all(robot, "transmission") for each in _transmissions(element, where)]


def _transmissions(element: Any, where: str) -> list[Transmission]:
    joints, actuators = (_all(element, tag) for tag in ("joint", "actuator"))
    name = element.get("name", "")
    for part in joints:
        if not part.get("name", "").strip():
            raise ModelError(f"{where} line {part.sourceline}: <joint> of a <transmission> has no attribute 'name'")
    command = _command(element)
    if command is None:
        return []
    if len(joints) != 1 or len(actuators) != 1:
        return [Transmission(f"{name}_{joint.get('name')}", joint.get("name"), 1.0, command) for joint in joints]
    joint = joints[0].get("name")
    reductions = [*_all(actuators[0], "mechanicalReduction"), *_all(element, "mechanicalReduction")]
    gear = _reduction(reductions[0], where) if reductions else 1.0
    return [Transmission(actuators[0].get("name") or name or joint, joint, gear, command)]


def _command(element: Any) -> str | None:
    """What a transmission is told; None if it only tells."""
    interfaces = [
        (each.text or "").strip().rpartition("/")[2] for each in element.iter() if tag_of(each) == "hardwareInterface"
    ]
    if interfaces and set(interfaces) == {STATE}:
        return None
    if not interfaces:
        return "effort"
    return next((command for interface, command in COMMANDS.items() if interface in interfaces), "other")


def _reduction(element: Any, where: str) -> float:
    values = numbers_in(element.text or "")
    if values is None or len(values) != 1 or not math.isfinite(values[0]) or values[0] == 0.0:
        text = (element.text or "").strip()
        raise ModelError(
            f"{where} line {element.sourceline}: <mechanicalReduction> is {text!r}, expected a finite number other than 0"
        )
    return values[0]


def _all(element: Any, tag: str) -> list[Any]:
    return [child for child in element if tag_of(child) == tag]
