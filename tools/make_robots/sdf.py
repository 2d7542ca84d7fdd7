"""Robots with loops as SDF: a loop is closed by a ball joint, whose child has another joint already.

Actuators are not part of the format: what is not driven has an effort limit of zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement

from tools.make_robots.parts import COLORS, Joint, Link, Loop, Robot, Solid
from tools.make_robots.xml_text import document, numbers

SIZES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length")}


def sdf(robot: Robot) -> str:
    root = Element("sdf", version="1.9")
    model = SubElement(root, "model", name=robot.name)
    for link in robot.links.values():
        if link.mass:
            _add_link(model, link)
        else:
            frame = SubElement(model, "frame", name=link.name, attached_to=link.parent)
            _add(frame, "pose", *link.xyz, *link.rpy)
    for link in robot.links.values():
        if link.joints:
            _add_joint(model, link)
        elif not link.parent and not robot.floating:
            _add_ends(SubElement(model, "joint", name=f"{link.name}_fixed", type="fixed"), "world", link.name)
    for name, loop in robot.loops.items():
        _add_loop(model, name, loop)
    return document(root)


def _add(parent: Element, tag: str, *values: float) -> Element:
    element = SubElement(parent, tag)
    element.text = numbers(*values)
    return element


def _add_link(model: Element, link: Link) -> None:
    element = SubElement(model, "link", name=link.name)
    pose = _add(element, "pose", *link.xyz, *link.rpy)
    if link.parent:
        pose.set("relative_to", link.parent)
    inertial = SubElement(element, "inertial")
    _add(inertial, "pose", *link.com, 0, 0, 0)
    _add(inertial, "mass", link.mass)
    inertia = SubElement(inertial, "inertia")
    for name, moment in link.moments.items():
        _add(inertia, name, moment)
    for number, solid in enumerate(link.solids, start=1):
        visual = SubElement(element, "visual", name=f"{link.name}_{number}")
        _add_geometry(visual, solid)
        material = SubElement(visual, "material")
        for light in ("ambient", "diffuse"):
            _add(material, light, *COLORS[solid.color], 1.0)
    for number, solid in enumerate(link.colliders, start=1):
        _add_geometry(SubElement(element, "collision", name=f"{link.name}_{number}"), solid)


def _add_geometry(element: Element, solid: Solid) -> None:
    _add(element, "pose", *solid.xyz, *solid.rpy)
    shape = SubElement(SubElement(element, "geometry"), solid.kind)
    names = SIZES[solid.kind]
    for name, values in zip(names, [solid.size] if len(names) == 1 else [[each] for each in solid.size], strict=True):
        _add(shape, name, *values)


def _add_joint(model: Element, link: Link) -> None:
    first = link.joints[0]
    element = SubElement(model, "joint", name=first.name, type=_kind(link.joints))
    _add_ends(element, link.parent, link.name)
    for tag, joint in zip(("axis", "axis2"), link.joints, strict=False):
        axis = SubElement(element, tag)
        _add(axis, "xyz", *joint.axis)
        limit = SubElement(axis, "limit")
        for name in ("lower", "upper", "effort", "velocity"):
            if math.isfinite(getattr(joint, name)):
                _add(limit, name, getattr(joint, name))


def _kind(joints: Sequence[Joint]) -> str:
    """Two hinges at one place are a universal joint, which has one name."""
    if len(joints) == 2:
        assert joints[1].name == f"{joints[0].name}_2" and {joint.kind for joint in joints} == {"revolute"}
        return "universal"
    (joint,) = joints
    return joint.kind if math.isfinite(joint.upper) else "continuous"


def _add_ends(joint: Element, parent: str, child: str) -> None:
    for role, link in (("parent", parent), ("child", child)):
        SubElement(joint, role).text = link


def _add_loop(model: Element, name: str, loop: Loop) -> None:
    element = SubElement(model, "joint", name=name, type="ball")
    _add(element, "pose", *loop.on_child, 0, 0, 0)  # in the child
    _add_ends(element, loop.parent, loop.child)
