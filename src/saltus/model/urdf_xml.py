"""Reads the XML of a URDF file: safely, and with every number checked before it is used.

Robot files come from anywhere. Entities are refused, so nothing is expanded and no other file is opened; of the
elements only those a `Model` needs are kept, so no mesh is looked for. What is kept is checked against the tables
below, with its line in the error, and then parsed by yourdfpy.
"""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

from saltus.model.checks import ModelError

KEPT = {
    "robot": ("link", "joint"),
    "link": ("inertial",),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
}
REQUIRED_ELEMENTS = {"inertial": ("mass", "inertia"), "joint": ("parent", "child")}
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
}
NUMBERS = {  # how many each attribute holds
    "origin": {"xyz": 3, "rpy": 3},
    "axis": {"xyz": 3},
    "mass": {"value": 1},
    "inertia": dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), 1),
    "limit": dict.fromkeys(("lower", "upper", "effort", "velocity"), 1),
    "dynamics": dict.fromkeys(("damping", "friction"), 1),
    "mimic": dict.fromkeys(("multiplier", "offset"), 1),
}


def read_robot(path: Path) -> Any:
    """The file's links and joints as a `yourdfpy.Robot`, all numbers finite (limits may be infinite)."""
    # yourdfpy brings trimesh with it: `import saltus` shall not wait for that.
    import yourdfpy  # type: ignore[import-untyped]
    from lxml import etree  # type: ignore[import-untyped]

    if path.is_dir():
        raise ModelError(f"{path} is a directory, expected a URDF file")
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    if not text.strip():
        raise ModelError(f"{path} is empty, expected a URDF file")
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(text, parser)
    except etree.XMLSyntaxError as error:
        raise ModelError(f"{path}: not well-formed XML: {error}") from None
    dtd = root.getroottree().docinfo.internalDTD
    if dtd is not None and any(True for _ in dtd.iterentities()):
        raise ModelError(f"{path}: declares XML entities, which are refused")
    if _tag(root) != "robot":
        raise ModelError(f"{path}: its root element is <{root.tag}>, expected <robot>")

    kept = _checked_copy(root, f"{path}:", etree.Element)
    stream = io.BytesIO(etree.tostring(kept))
    return yourdfpy.URDF.load(
        stream, build_scene_graph=False, build_collision_scene_graph=False, load_meshes=False
    ).robot


def _checked_copy(element: Any, where: str, new_element: Any) -> Any:
    """The element without what is not kept; `where` names the file and the link or joint it belongs to."""
    tag = _tag(element)
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
        if _tag(child) in KEPT.get(tag, ()):
            copy.append(_checked_copy(child, where, new_element))
    for name in REQUIRED_ELEMENTS.get(tag, ()):
        if copy.find(name) is None:
            raise ModelError(f"{where} line {element.sourceline}: <{tag}> has no <{name}>")
    return copy


def _tag(element: Any) -> str:
    """The element's name without a default namespace; empty for `<prefix:name>`, which is not URDF's own."""
    if element.prefix is not None or not isinstance(element.tag, str):
        return ""
    return element.tag.rpartition("}")[2]


def _holds_numbers(text: str, count: int, *, infinite: bool) -> bool:
    try:
        values = [float(word) for word in text.split()]
    except ValueError:
        return False
    usable = all(not math.isnan(value) and (infinite or not math.isinf(value)) for value in values)
    return usable and len(values) == count
