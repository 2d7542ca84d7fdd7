"""The URDF files of example-robot-data, and small ones written for a test."""

from __future__ import annotations

from pathlib import Path

import pinocchio

# Pinocchio and the robots are installed under the same cmeel.prefix.
PREFIX = next(parent for parent in Path(pinocchio.__file__).parents if parent.name == "cmeel.prefix")
ROBOTS = PREFIX / "share" / "example-robot-data" / "robots"
ALL = sorted(path.relative_to(ROBOTS).as_posix() for path in ROBOTS.rglob("*.urdf"))
MALFORMED = {
    "falcon_description/urdf/falcon.urdf": "child link 'Z_propeller' does not exist",
    "ur_description/urdf/ur3.urdf": "<robot> has no attribute 'name'",
}
LOADABLE = [name for name in ALL if name not in MALFORMED]

INERTIAL = (
    '<inertial><origin xyz="0.1 -0.2 0.3" rpy="0.3 0.2 -0.1"/><mass value="1.5"/>'
    '<inertia ixx="0.2" ixy="0.01" ixz="-0.02" iyy="0.3" iyz="0.03" izz="0.25"/></inertial>'
)
LIMIT = '<limit lower="-1" upper="2" effort="3" velocity="4"/>'
ORIGIN = '<origin xyz="0.4 0.5 -0.6" rpy="0.7 -0.8 0.9"/>'


def link(name: str, inside: str = INERTIAL) -> str:
    return f'<link name="{name}">{inside}</link>'


def joint(name: str, parent: str, child: str, kind: str = "revolute", inside: str = ORIGIN + LIMIT) -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>'


def robot(*elements: str) -> str:
    return '<robot name="test">' + "".join(elements) + "</robot>"


def write(directory: Path, text: str) -> Path:
    path = directory / "robot.urdf"
    path.write_text(text, encoding="utf-8")
    return path
