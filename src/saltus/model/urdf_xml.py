"""The XML of a URDF file, every number checked before it is used.

Of the elements only those a `Model` needs are kept; mesh files are not looked for. What is kept is checked against the
tables below, with its line in the error.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saltus.model.checks import Array, ModelError
from saltus.model.joints import Mimic
from saltus.model.placements import placement, rotation_from_rpy
from saltus.model.safe_xml import numbers_in, read_xml, tag_of
from saltus.model.urdf_transmissions import Transmission, read_transmissions

XACRO = "ros.org/wiki/xacro}"
"""In the names of macros that must be expanded first: what they would add cannot be left out."""

KEPT = {
    "robot": ("link", "joint", "material"),
    "link": ("inertial", "visual", "collision"),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
    "visual": ("origin", "geometry", "material"),
    "collision": ("origin", "geometry"),
    "geometry": ("box", "sphere", "cylinder", "capsule", "mesh"),
    "material": ("color",),
}
REQUIRED_ELEMENTS = {"inertial": ("mass", "inertia"), "joint": ("parent", "child"), "visual": ("geometry",)}
MOMENTS = ("xx", "xy", "xz", "yy", "yz", "zz")
REQUIRED_ATTRIBUTES = {
    "robot": ("name",),
    "link": ("name",),
    "joint": ("name", "type"),
    "parent": ("link",),
    "child": ("link",),
    "mass": ("value",),
    "inertia": tuple(f"i{axes}" for axes in MOMENTS),
    "axis": ("xyz",),
    "limit": ("effort", "velocity"),
    "mimic": ("joint",),
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "mesh": ("filename",),
    "color": ("rgba",),
}
NUMBERS = {  # how many each attribute holds
    "origin": {"xyz": 3, "rpy": 3},
    "axis": {"xyz": 3},
    "mass": {"value": 1},
    "inertia": dict.fromkeys((f"i{axes}" for axes in MOMENTS), 1),
    "limit": dict.fromkeys(("lower", "upper", "effort", "velocity"), 1),
    "dynamics": dict.fromkeys(("damping", "friction"), 1),
    "mimic": dict.fromkeys(("multiplier", "offset"), 1),
    "box": {"size": 3},
    "sphere": {"radius": 1},
    "cylinder": {"radius": 1, "length": 1},
    "capsule": {"radius": 1, "length": 1},
    "mesh": {"scale": 3},
    "color": {"rgba": 4},
}


def read_urdf(path: Path) -> tuple[Any, list[Transmission]]:
    """The file's `<robot>` element, with what is kept of it, and its transmissions; all numbers finite (limits may be
    infinite)."""
    from lxml import etree  # type: ignore[import-untyped]

    root = read_xml(path, "robot", "a URDF")
    macro = next((element for element in root.iter() if isinstance(element.tag, str) and XACRO in element.tag), None)
    if macro is not None:
        where = f"{path}: line {macro.sourceline}: <{macro.prefix}:{etree.QName(macro).localname}>"
        raise ModelError(
            f"{where} is a macro of xacro, expected plain URDF: `xacro {path.name} > expanded.urdf` makes it"
        )
    return _checked_copy(root, f"{path}:", etree.Element), read_transmissions(root, f"{path}:")


class Inertial(NamedTuple):
    mass: float  # [kg]
    inertia: Array  # (3, 3) about the origin, along its axes [kg m^2]
    origin: Array  # (4, 4) in the link


class Link(NamedTuple):
    name: str
    inertial: Inertial | None


class UrdfJoint(NamedTuple):
    name: str
    type: str
    parent: str
    child: str
    origin: Array  # (4, 4) in the parent link
    axis: Array  # (3,)
    limit: dict[str, float] | None  # effort and velocity, lower and upper where they are given
    dynamics: dict[str, float]  # damping and friction, where they are given
    mimic: Mimic | None


class Robot(NamedTuple):
    name: str
    links: list[Link]
    joints: list[UrdfJoint]


def links_and_joints(robot: Any) -> Robot:
    """Of the checked element of a robot."""
    links = [Link(link.get("name"), _inertial(link.find("inertial"))) for link in robot.findall("link")]
    return Robot(robot.get("name"), links, [_joint(joint) for joint in robot.findall("joint")])


def origin_of(element: Any) -> Array:
    """The placement (4, 4) by the `<origin>` of an element."""
    origin = element.find("origin")
    if origin is None:
        return np.eye(4)
    xyz, rpy = (np.array(origin.get(name, "0 0 0").split(), float) for name in ("xyz", "rpy"))
    return placement(rotation_from_rpy(rpy), xyz)


def _inertial(element: Any) -> Inertial | None:
    if element is None:
        return None
    xx, xy, xz, yy, yz, zz = (float(element.find("inertia").get(f"i{axes}")) for axes in MOMENTS)
    return Inertial(
        float(element.find("mass").get("value")),
        np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]),
        origin_of(element),
    )


def _joint(element: Any) -> UrdfJoint:
    axis, mimic = element.find("axis"), element.find("mimic")
    limit, dynamics = (_numbers(element.find(tag)) for tag in ("limit", "dynamics"))
    if mimic is not None:
        mimic = Mimic(mimic.get("joint"), float(mimic.get("multiplier", 1.0)), float(mimic.get("offset", 0.0)))
    return UrdfJoint(
        element.get("name"),
        element.get("type"),
        element.find("parent").get("link"),
        element.find("child").get("link"),
        origin_of(element),
        np.array([1.0, 0.0, 0.0]) if axis is None else np.array(axis.get("xyz").split(), float),
        limit,
        dynamics or {},
        mimic,
    )


def _numbers(element: Any) -> dict[str, float] | None:
    """The attributes of an element that are numbers."""
    if element is None:
        return None
    return {name: float(element.get(name)) for name in NUMBERS[element.tag] if element.get(name) is not None}


def _checked_copy(element: Any, where: str, new_element: Any) -> Any:
    """The element without what is not kept; `where` names the file and the link or joint it belongs to."""
    tag = tag_of(element)
    line = f"{where} line {element.sourceline}: <{tag}>"
    attributes = dict(element.attrib)
    for name in REQUIRED_ATTRIBUTES.get(tag, ()):
        if not attributes.get(name, "").strip():
            raise ModelError(f"{line} has no attribute {name!r}")
    for name, count in NUMBERS.get(tag, {}).items():
        if name in attributes and not _holds_numbers(attributes[name], count, infinite=tag == "limit"):
            expected = "a finite number" if count == 1 else f"{count} finite numbers"
            raise ModelError(f"{line} has {name}={attributes[name]!r}, expected {expected}")
    if "quat_xyzw" in attributes:  # of URDF 1.2
        raise ModelError(f"{line} has a quat_xyzw, which is not supported; write it as rpy")

    copy = new_element(tag, attributes)
    if tag in ("link", "joint"):
        where = f"{where} {tag} {attributes['name']!r},"
    for child in element:
        if tag_of(child) in KEPT.get(tag, ()):
            copy.append(_checked_copy(child, where, new_element))
    for name in REQUIRED_ELEMENTS.get(tag, ()):
        if copy.find(name) is None:
            raise ModelError(f"{where} line {element.sourceline}: <{tag}> has no <{name}>")
    return copy


def _holds_numbers(text: str, count: int, *, infinite: bool) -> bool:
    values = numbers_in(text)
    return values is not None and len(values) == count and (infinite or all(map(math.isfinite, values)))
