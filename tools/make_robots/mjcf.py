"""The robots as MJCF: for tests against MuJoCo, not shipped."""

from __future__ import annotations

import math
from dataclasses import replace
from xml.etree.ElementTree import Element, SubElement

from tools.make_robots.parts import COLORS, Joint, Link, Robot, Solid, Triple, rotation_of
from tools.make_robots.poses import Pose
from tools.make_robots.xml_text import document, numbers, pose_numbers

STIFF = {"solref": "0.005 1", "solimp": "0.99 0.999 0.001"}  # MuJoCo's defaults let loops give way by a centimetre


def mjcf(robot: Robot, pose: Pose) -> str:
    root = Element("mujoco", model=robot.name)
    SubElement(root, "compiler", angle="radian")
    bodies = {"": SubElement(root, "worldbody")}
    for link in robot.links.values():
        bodies[link.name] = _add_link(bodies[link.parent], link, free=robot.floating and not link.parent)
    equality = SubElement(root, "equality")
    for name, loop in robot.loops.items():
        bodies_of_loop = {"body1": loop.child, "body2": loop.parent}
        SubElement(equality, "connect", name=name, anchor=numbers(*loop.on_child), **bodies_of_loop, **STIFF)
    actuators = SubElement(root, "actuator")
    for joint in robot.joints:
        if joint.effort:
            reach = numbers(-joint.effort, joint.effort)
            SubElement(actuators, "motor", name=f"{joint.name}_motor", joint=joint.name, ctrlrange=reach)
    keyframe = SubElement(root, "keyframe")
    qpos = [*pose.base, 1, 0, 0, 0] if robot.floating else []
    qpos += [pose.angles.get(joint.name, 0.0) for joint in _depth_first(robot)]
    SubElement(keyframe, "key", name="standing", qpos=pose_numbers(*qpos))
    return document(root)


def _add_link(parent: Element, link: Link, free: bool) -> Element:
    """Adds a body, or a site if it has no mass; returns what the next links hang on."""
    place = {"pos": numbers(*link.xyz)}
    if any(link.rpy):
        place["xyaxes"] = _axes(link.rpy)
    if not link.mass:
        SubElement(parent, "site", name=link.name, **place)
        return parent  # nothing hangs on a frame, but for that at the origin of the world
    body = SubElement(parent, "body", name=link.name, **place)
    if free:
        SubElement(body, "freejoint", name="root_joint")
    for joint in link.joints:
        _add_joint(body, joint)
    full = _exact(*(link.moments[name] for name in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")))
    SubElement(body, "inertial", pos=numbers(*link.com), mass=numbers(link.mass), fullinertia=full)
    for solid in link.solids:
        _add_geom(body, solid)
    for solid in link.hidden:
        geom = _add_geom(body, replace(solid, touches=True))
        geom.set("group", "3")
        geom.set("mass", "0")
    return body


def _add_joint(body: Element, joint: Joint) -> None:
    kind = "slide" if joint.kind == "prismatic" else "hinge"
    element = SubElement(body, "joint", name=joint.name, type=kind, axis=numbers(*joint.axis))
    if math.isfinite(joint.upper):
        element.set("range", numbers(joint.lower, joint.upper))
    if joint.effort:
        element.set("actuatorfrcrange", numbers(-joint.effort, joint.effort))


def _add_geom(body: Element, solid: Solid) -> Element:
    """What touches does so with the world only."""
    # MuJoCo measures from the centre to the surface, along all but the radius.
    size = [side / 2.0 for side in solid.size] if solid.kind == "box" else [solid.size[0]]
    if solid.kind in ("cylinder", "capsule"):
        size.append(solid.size[1] / 2.0)
    geom = SubElement(body, "geom", type=solid.kind, size=numbers(*size), pos=numbers(*solid.xyz))
    if any(solid.rpy):
        geom.set("xyaxes", _axes(solid.rpy))
    geom.set("rgba", numbers(*COLORS[solid.color], 1.0))
    geom.set("contype", "1" if solid.touches else "0")
    geom.set("conaffinity", "0")
    return geom


def _axes(rpy: Triple) -> str:
    """The axes x and y of a rotation."""
    return _exact(*rotation_of(rpy)[:, :2].T.ravel())


def _exact(*values: float) -> str:
    """All digits, of what turns: MuJoCo takes frames for the same that differ by less than 1e-10."""
    return " ".join(repr(float(value)) for value in values)


def _depth_first(robot: Robot) -> list[Joint]:
    """The joints in the order of MuJoCo's qpos."""
    below: dict[str, list[Link]] = {}
    for link in robot.links.values():
        below.setdefault(link.parent, []).append(link)
    joints: list[Joint] = []
    stack = list(below[""])
    while stack:
        link = stack.pop(0)
        joints += link.joints
        stack = below.get(link.name, []) + stack
    return joints
