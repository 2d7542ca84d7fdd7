"""The robots as URDF, and their standing poses as SRDF."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement

import numpy as np

from tools.make_robots.parts import COLORS, ZERO, Joint, Link, Robot, Solid, Triple, bar, rotation_of
from tools.make_robots.poses import Pose
from tools.make_robots.xml_text import document, numbers, pose_numbers


def urdf(robot: Robot) -> str:
    root = Element("robot", name=robot.name)
    for link in robot.links.values():
        for joint in link.joints[:-1]:
            SubElement(root, "link", name=_between(joint))
        _add_link(root, link)
    for link in robot.links.values():
        if link.parent:
            _add_joints(root, link)
    return document(root)


def _add_link(root: Element, link: Link) -> None:
    element = SubElement(root, "link", name=link.name)
    if link.mass:
        inertial = SubElement(element, "inertial")
        SubElement(inertial, "origin", xyz=numbers(*link.com))
        SubElement(inertial, "mass", value=numbers(link.mass))
        SubElement(inertial, "inertia", {name: numbers(value) for name, value in link.moments.items()})
    for solid in link.solids:
        for piece in _without_capsules(solid):
            visual = SubElement(element, "visual")
            _add_geometry(visual, piece)
            material = SubElement(visual, "material", name=piece.color)
            SubElement(material, "color", rgba=numbers(*COLORS[piece.color], 1.0))
    for solid in link.colliders:
        for piece in _without_capsules(solid):
            _add_geometry(SubElement(element, "collision"), piece)


def _without_capsules(solid: Solid) -> list[Solid]:
    """URDF has no capsules: a cylinder with two balls looks the same, and `load_urdf` knows it for one."""
    if solid.kind != "capsule":
        return [solid]
    radius, length = solid.size
    half = rotation_of(solid.rpy)[:, 2] * length / 2.0
    ends = [tuple((np.array(solid.xyz) + side).tolist()) for side in (-half, half)]
    tube = bar(ends[0], ends[1], radius, solid.color, "cylinder")
    return [tube, *(Solid("sphere", (radius,), end, color=solid.color) for end in ends)]


def _add_geometry(element: Element, solid: Solid) -> None:
    SubElement(element, "origin", xyz=numbers(*solid.xyz), rpy=numbers(*solid.rpy))
    geometry = SubElement(element, "geometry")
    if solid.kind == "box":
        SubElement(geometry, "box", size=numbers(*solid.size))
    elif solid.kind == "sphere":
        SubElement(geometry, "sphere", radius=numbers(*solid.size))
    else:
        SubElement(geometry, "cylinder", radius=numbers(solid.size[0]), length=numbers(solid.size[1]))


def _add_joints(root: Element, link: Link) -> None:
    """One after the other, with links of no mass in between."""
    if not link.joints:
        _add_joint(root, f"{link.name}_fixed", "fixed", link.parent, link.name, link.xyz, link.rpy)
    parent, xyz, rpy = link.parent, link.xyz, link.rpy
    for joint in link.joints:
        child = link.name if joint is link.joints[-1] else _between(joint)
        element = _add_joint(root, joint.name, joint.kind, parent, child, xyz, rpy)
        SubElement(element, "axis", xyz=numbers(*joint.axis))
        limits = {key: numbers(getattr(joint, key)) for key in ("lower", "upper", "effort", "velocity")}
        SubElement(element, "limit", limits)
        parent, xyz, rpy = child, ZERO, ZERO


def _add_joint(root: Element, name: str, kind: str, parent: str, child: str, xyz: Triple, rpy: Triple) -> Element:
    element = SubElement(root, "joint", name=name, type=kind)
    SubElement(element, "origin", xyz=numbers(*xyz), rpy=numbers(*rpy))
    SubElement(element, "parent", link=parent)
    SubElement(element, "child", link=child)
    return element


def _between(joint: Joint) -> str:
    """The link that a joint moves, if another joint follows at the same place."""
    return f"{joint.name}_link"


def srdf(robot: Robot, pose: Pose) -> str:
    root = Element("robot", name=robot.name)
    group = SubElement(root, "group", name="all")
    state = SubElement(root, "group_state", name="standing", group="all")
    values = {"root_joint": pose_numbers(*pose.base, 0, 0, 0, 1)} if robot.floating else {}
    values |= {joint.name: pose_numbers(pose.angles.get(joint.name, 0.0)) for joint in robot.joints}
    for name, value in values.items():
        SubElement(group, "joint", name=name)
        SubElement(state, "joint", name=name, value=value)
    for one, other in robot.apart:
        SubElement(root, "disable_collisions", link1=one, link2=other, reason="Never")
    return document(root)
