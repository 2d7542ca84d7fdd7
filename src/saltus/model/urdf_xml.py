"""The XML of a URDF file, every number checked before it is used.

Of the elements only those a `Model` needs are kept; mesh files are not looked for. What is kept is checked against the
tables below, with its line in the error. Links and joints are then parsed by yourdfpy.
"""

from __future__ import annotations

import io
import math
from copy import deepcopy
from pathlib import Path
from typing import Any

from saltus.model.checks import ModelError
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
REQUIRED_ATTRIBUTES = {
    "robot": ("name",),
    "link": ("name",),
    "joint": ("name", "type"),
    "parent": ("link",),
    "child": ("link",),
    "mass": ("value",),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
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
    "inertia": dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), 1),
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


def links_and_joints(robot: Any) -> Any:
    """Of the element of a robot, as a `yourdfpy.Robot`."""
    # yourdfpy brings trimesh with it: `import saltus` shall not wait for that.
    import yourdfpy  # type: ignore[import-untyped]
    from lxml import etree

    bare = deepcopy(robot)
    etree.strip_elements(bare, "visual", "collision", "material")
    stream = io.BytesIO(etree.tostring(bare))
    return yourdfpy.URDF.load(
        stream, build_scene_graph=False, build_collision_scene_graph=False, load_meshes=False
    ).robot


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
    if "quat_xyzw" in attributes:  # of URDF 1.2; yourdfpy would ignore it
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
