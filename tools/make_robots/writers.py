"""The robots as text: URDF with its poses as SRDF, or MJCF where there are loops."""

from __future__ import annotations

import math
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from tools.make_robots.parts import COLORS, Joint, Link, Robot, Solid, bar, rotation_of
from tools.make_robots.poses import Pose

NOTE = "Made by `python -m tools.make_robots`; change it there."

STIFF = {"solref": "0.005 1", "solimp": "0.99 0.999 0.001"}  # MuJoCo's defaults let loops give way by a centimetre


def numbers(*values: float) -> str:
    """Ten digits: more than matter, and too few for the rounding of different machines to show."""
    return " ".join(f"{round(value, 14) + 0.0:.10g}" for value in values)


def pose_numbers(*values: float) -> str:
    """Twelve decimals: loops close to 1e-11."""
    return " ".join(f"{round(value, 12) + 0.0:.12g}" for value in values)


def document(root: Element) -> str:
    indent(root)
    return f"<!-- {NOTE} -->\n{tostring(root, encoding='unicode')}\n"


# ----------------------------------------------------------------------------------------------------------------- URDF


def urdf(robot: Robot) -> str:
    root = Element("robot", name=robot.name)
    for link in robot.links.values():
        _urdf_link(root, link)
    for link in robot.links.values():
        if link.parent:
            _urdf_joint(root, link)
    return document(root)


def _urdf_link(root: Element, link: Link) -> None:
    element = SubElement(root, "link", name=link.name)
    if link.mass:
        inertial = SubElement(element, "inertial")
        SubElement(inertial, "origin", xyz=numbers(*link.com))
        SubElement(inertial, "mass", value=numbers(link.mass))
        names = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
        SubElement(inertial, "inertia", {name: numbers(link.inertia[index]) for name, index in names.items()})
    for solid in link.solids:
        for piece in _without_capsules(solid):
            visual = SubElement(element, "visual")
            _urdf_geometry(visual, piece)
            material = SubElement(visual, "material", name=piece.color)
            SubElement(material, "color", rgba=numbers(*COLORS[piece.color], 1.0))
        if solid.touches:
            _urdf_geometry(SubElement(element, "collision"), solid)


def _without_capsules(solid: Solid) -> list[Solid]:
    """URDF has no capsules: a cylinder with two balls looks the same."""
    if solid.kind != "capsule":
        return [solid]
    radius, length = solid.size
    half = rotation_of(solid.rpy)[:, 2] * length / 2.0
    ends = [tuple((np.array(solid.xyz) + side).tolist()) for side in (-half, half)]
    tube = bar(ends[0], ends[1], radius, solid.color, "cylinder")
    return [tube, *(Solid("sphere", (radius,), end, color=solid.color) for end in ends)]


def _urdf_geometry(element: Element, solid: Solid) -> None:
    SubElement(element, "origin", xyz=numbers(*solid.xyz), rpy=numbers(*solid.rpy))
    geometry = SubElement(element, "geometry")
    if solid.kind == "box":
        SubElement(geometry, "box", size=numbers(*solid.size))
    elif solid.kind == "sphere":
        SubElement(geometry, "sphere", radius=numbers(*solid.size))
    else:
        SubElement(geometry, "cylinder", radius=numbers(solid.size[0]), length=numbers(solid.size[1]))


def _urdf_joint(root: Element, link: Link) -> None:
    joint = link.joints[0] if link.joints else None
    kind, name = (joint.kind, joint.name) if joint else ("fixed", f"{link.name}_fixed")
    element = SubElement(root, "joint", name=name, type=kind)
    SubElement(element, "origin", xyz=numbers(*link.xyz), rpy=numbers(*link.rpy))
    SubElement(element, "parent", link=link.parent)
    SubElement(element, "child", link=link.name)
    if joint:
        SubElement(element, "axis", xyz=numbers(*joint.axis))
        limits = {key: numbers(getattr(joint, key)) for key in ("lower", "upper", "effort", "velocity")}
        SubElement(element, "limit", limits)


def srdf(robot: Robot, pose: Pose) -> str:
    root = Element("robot", name=robot.name)
    group = SubElement(root, "group", name="all")
    state = SubElement(root, "group_state", name="standing", group="all")
    values = {"root_joint": pose_numbers(*pose.base, 0, 0, 0, 1)} if robot.floating else {}
    values |= {joint.name: pose_numbers(pose.angles.get(joint.name, 0.0)) for joint in robot.joints}
    for name, value in values.items():
        SubElement(group, "joint", name=name)
        SubElement(state, "joint", name=name, value=value)
    return document(root)


# ----------------------------------------------------------------------------------------------------------------- MJCF


def mjcf(robot: Robot, pose: Pose) -> str:
    root = Element("mujoco", model=robot.name)
    SubElement(root, "compiler", angle="radian")
    bodies = {"": SubElement(root, "worldbody")}
    for link in robot.links.values():
        bodies[link.name] = _mjcf_link(bodies[link.parent], link, free=robot.floating and not link.parent)
    equality = SubElement(root, "equality")
    for name, (site_a, site_b) in robot.loops.items():
        SubElement(equality, "connect", name=name, site1=site_a, site2=site_b, **STIFF)
    actuators = SubElement(root, "actuator")
    for joint in robot.joints:
        if joint.effort:
            gear = robot.gears.get(joint.name, 1.0)
            reach = numbers(-joint.effort / gear, joint.effort / gear)
            SubElement(
                actuators, "motor", name=f"{joint.name}_motor", joint=joint.name, gear=numbers(gear), ctrlrange=reach
            )
    keyframe = SubElement(root, "keyframe")
    qpos = [*pose.base, 1, 0, 0, 0] if robot.floating else []
    qpos += [pose.angles.get(joint.name, 0.0) for joint in _depth_first(robot)]
    SubElement(keyframe, "key", name="standing", qpos=pose_numbers(*qpos))
    return document(root)


def _mjcf_link(parent: Element, link: Link, free: bool) -> Element:
    place = {"pos": numbers(*link.xyz)}
    if any(link.rpy):
        place["xyaxes"] = numbers(*rotation_of(link.rpy)[:, :2].T.ravel())
    if not link.mass:
        return SubElement(parent, "site", name=link.name, **place)
    body = SubElement(parent, "body", name=link.name, **place)
    if free:
        SubElement(body, "freejoint", name="root_joint")
    for joint in link.joints:
        _mjcf_joint(body, joint)
    full = numbers(*(link.inertia[index] for index in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))))
    SubElement(body, "inertial", pos=numbers(*link.com), mass=numbers(link.mass), fullinertia=full)
    for solid in link.solids:
        _mjcf_geom(body, solid)
    return body


def _mjcf_joint(body: Element, joint: Joint) -> None:
    kind = "slide" if joint.kind == "prismatic" else "hinge"
    element = SubElement(body, "joint", name=joint.name, type=kind, axis=numbers(*joint.axis))
    if joint.upper < math.inf:
        element.set("range", numbers(joint.lower, joint.upper))
    if joint.armature:
        element.set("armature", numbers(joint.armature))
    if joint.effort:
        element.set("actuatorfrcrange", numbers(-joint.effort, joint.effort))


def _mjcf_geom(body: Element, solid: Solid) -> None:
    # MuJoCo measures from the centre to the surface, along all but the radius.
    size = [side / 2.0 for side in solid.size] if solid.kind == "box" else [solid.size[0]]
    if solid.kind in ("cylinder", "capsule"):
        size.append(solid.size[1] / 2.0)
    geom = SubElement(body, "geom", type=solid.kind, size=numbers(*size), pos=numbers(*solid.xyz))
    if any(solid.rpy):
        geom.set("xyaxes", numbers(*rotation_of(solid.rpy)[:, :2].T.ravel()))
    geom.set("rgba", numbers(*COLORS[solid.color], 1.0))
    if not solid.touches:
        geom.set("contype", "0")
        geom.set("conaffinity", "0")


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
