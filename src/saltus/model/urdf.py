"""Robots from URDF files, joint by joint as Pinocchio loads them.

- Joints come in depth-first order, the children of a link by the names of their joints.
- Links behind fixed joints are merged into the joint that moves them; the fixed joint and the link become frames.
- `continuous` joints have a cosine and a sine in q; `planar` joints move in their frame's xy plane whatever their
  axis says; `floating` joints are free flyers.
- Transmissions are actuators.
- Limits are stored as Pinocchio stores them: 1.01 for cosines, sines and quaternions, infinity or (for the floating
  base) the largest float where there is none.
"""

from __future__ import annotations

import logging
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from saltus.model.builder import ModelBuilder
from saltus.model.checks import Array, ModelError, inertia_flaw, refuse_negative_moments
from saltus.model.frames import FrameKind
from saltus.model.joints import JointKind
from saltus.model.mesh_paths import Folders, mesh_finder
from saltus.model.model import Model
from saltus.model.safe_xml import robot_file
from saltus.model.shapes import Shape
from saltus.model.urdf_shapes import link_colliders, link_shapes
from saltus.model.urdf_transmissions import Transmission
from saltus.model.urdf_xml import Link, Robot, UrdfJoint, links_and_joints, read_urdf

ROOT_JOINT = "root_joint"
KINDS = {
    "revolute": JointKind.REVOLUTE,
    "continuous": JointKind.CONTINUOUS,
    "prismatic": JointKind.PRISMATIC,
    "planar": JointKind.PLANAR,
    "floating": JointKind.FREE_FLYER,
}

_logger = logging.getLogger(__name__)


def load_urdf(
    path: str | os.PathLike[str], floating_base: bool = False, mimic: bool = False, package_dirs: Folders = ()
) -> Model:
    """The robot that a URDF file describes; a `ModelError` says what is wrong with the file.

    floating_base: the root link moves freely, on a free flyer named `root_joint`, instead of being fixed to the world.
    mimic: joints with a `<mimic>` element follow their primary and have no place in q and v; otherwise they are
        joints like any other.
    package_dirs: folders that are packages or hold some, where meshes of `package://name/...` are looked for first; then
        in the folders above the file, and in those of `ROS_PACKAGE_PATH`.

    Its visuals are kept as shapes, its collision shapes if it has no visual at all; these are colliders as well. Meshes are
    not opened: a path may lead to no file, which the viewer says, but not out of a package or folder. Negative masses and
    moments of inertia are refused; other inertias that no body can have are kept, as many files have them, and logged.

    >>> import tempfile
    >>> text = '''<robot name="pendulum"><link name="base"/>
    ...   <link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
    ...     <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.01"/></inertial></link>
    ...   <joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint>
    ... </robot>'''
    >>> with tempfile.NamedTemporaryFile("w", suffix=".urdf") as file:
    ...     _ = file.write(text)
    ...     file.flush()
    ...     load_urdf(file.name)
    Model('pendulum', nq=2, nv=1, njoints=2, nframes=4)
    """
    file = robot_file(path, "a URDF")
    find = mesh_finder(file, package_dirs)
    element, transmissions = read_urdf(file)
    robot = links_and_joints(element)
    try:
        root, joints_below = _tree(robot)
        shapes, colliders = link_shapes(element, find), link_colliders(element, find)
        builder = _built(robot, root, joints_below, shapes, colliders, floating_base, mimic)
        _add_motors(builder, robot, transmissions, mimic, file)
        return builder.build()
    except ModelError as error:
        raise ModelError(f"{file}: {error}") from None


def _tree(robot: Robot) -> tuple[str, dict[str, list[UrdfJoint]]]:
    """The root link's name, and for every link the joints below it by name; checks that links form one tree."""
    joints_below: dict[str, list[UrdfJoint]] = {}
    for link in robot.links:
        if link.name in joints_below:
            raise ModelError(f"there are two links {link.name!r}")
        joints_below[link.name] = []
    if not joints_below:
        raise ModelError("there is no link")
    parent_joint: dict[str, str] = {}
    names = set()
    for joint in sorted(robot.joints, key=lambda each: str(each.name)):
        if joint.name in names:
            raise ModelError(f"there are two joints {joint.name!r}")
        names.add(joint.name)
        for role, end in (("parent", joint.parent), ("child", joint.child)):
            if end not in joints_below:
                raise ModelError(f"joint {joint.name!r}: its {role} link {end!r} does not exist")
        if joint.child in parent_joint:
            both = f"{parent_joint[joint.child]!r} and {joint.name!r}"
            raise ModelError(f"link {joint.child!r} is the child of two joints, {both}; expected a tree")
        parent_joint[joint.child] = joint.name
        joints_below[joint.parent].append(joint)
    roots = [link for link in joints_below if link not in parent_joint]
    if len(roots) > 1:
        raise ModelError(f"there are {len(roots)} root links, expected one: {', '.join(roots[:5])}")
    # With every link but one below exactly one joint, what is not below the root hangs in a cycle.
    reached = set(roots)
    stack = list(roots)
    while stack:
        children = [joint.child for joint in joints_below[stack.pop()]]
        reached.update(children)
        stack += children
    if len(reached) < len(joints_below):
        lost = [link for link in joints_below if link not in reached]
        raise ModelError(f"these links form a cycle, or hang below one: {', '.join(lost[:5])}")
    return roots[0], joints_below


def _built(
    robot: Robot,
    root: str,
    joints_below: dict[str, list[UrdfJoint]],
    shapes: dict[str, list[Shape]],
    colliders: dict[str, list[Shape]],
    floating_base: bool,
    mimic: bool,
) -> ModelBuilder:
    builder = ModelBuilder(robot.name, physical=False)
    links = {link.name: link for link in robot.links}
    base = 0
    if floating_base:
        base = add_floating_base(builder)
    # Where each link is: the joint that moves it, its placement there, its frame.
    place = {root: (base, np.eye(4), _add_link(builder, links[root], base, np.eye(4), None))}
    stack = list(reversed(joints_below[root]))
    while stack:
        joint = stack.pop()
        mover, placement, above = place[joint.parent]
        frame: int | None = None
        placement = placement @ joint.origin
        if joint.type == "fixed":
            frame = builder.add_frame(joint.name, mover, placement, FrameKind.FIXED_JOINT, parent=above)
        else:
            mover = _add_joint(builder, joint, mover, placement, above, mimic)
            placement = np.eye(4)
        place[joint.child] = (mover, placement, _add_link(builder, links[joint.child], mover, placement, frame))
        stack += reversed(joints_below[joint.child])
    for name, (mover, placement, _) in place.items():
        builder.add_shapes(mover, shapes[name], placement)
        builder.add_colliders(mover, colliders[name], placement)
    return builder


def _add_motors(
    builder: ModelBuilder, robot: Robot, transmissions: list[Transmission], mimic: bool, file: Path
) -> None:
    """The transmissions of joints with an axis; others are passed over, and said if there is no such joint."""
    joints, lost = {joint.name: joint for joint in robot.joints}, []
    for each in transmissions:
        joint = joints.get(each.joint)
        if joint is None:
            lost.append(each.joint)
        elif joint.type in KINDS and KINDS[joint.type].has_axis and not (mimic and joint.mimic is not None):
            most = abs((math.inf if joint.limit is None else joint.limit["effort"]) / each.gear)
            builder.add_actuator(each.name, each.joint, each.gear, -most, most, each.command)
    if lost:
        _logger.warning("%s: transmissions of joints that do not exist: %s", file, ", ".join(lost))


def add_floating_base(builder: ModelBuilder) -> int:
    """Adds the free flyer of a floating base, with Pinocchio's limits; returns its index."""
    most = np.finfo(np.float64).max
    return builder.add_joint(
        ROOT_JOINT, JointKind.FREE_FLYER, lower=-most, upper=most, velocity_limit=most, effort_limit=most
    )


def _add_joint(builder: ModelBuilder, joint: UrdfJoint, parent: int, placement: Array, frame: int, mimic: bool) -> int:
    if joint.type not in KINDS:
        known = ", ".join([*KINDS, "fixed"])
        raise ModelError(f"joint {joint.name!r} has the unknown type {joint.type!r}, expected one of {known}")
    kind = KINDS[joint.type]
    settings: dict[str, Any] = {}
    if mimic and joint.mimic is not None:
        settings["mimic"] = joint.mimic
    elif kind.has_axis:
        settings = _limits(joint, kind)
        settings |= joint.dynamics
    return builder.add_joint(joint.name, kind, parent, placement, joint.axis, parent_frame=frame, **settings)


def _limits(joint: UrdfJoint, kind: JointKind) -> dict[str, float]:
    bounded = kind != JointKind.CONTINUOUS
    if joint.limit is None:
        if bounded:
            raise ModelError(f"joint {joint.name!r} is {joint.type} but has no <limit>")
        return {}
    limits = {"velocity_limit": joint.limit["velocity"], "effort_limit": joint.limit["effort"]}
    if bounded:
        limits |= {"lower": joint.limit.get("lower", 0.0), "upper": joint.limit.get("upper", 0.0)}
    return limits


def _add_link(builder: ModelBuilder, link: Link, joint: int, placement: Array, parent_frame: int | None) -> int:
    """Adds the link's body and frame; returns the frame's index."""
    mass, com, inertia = 0.0, np.zeros(3), np.zeros((3, 3))
    if link.inertial is not None:
        mass, inertia, origin = link.inertial
        refuse_negative_moments(mass, inertia, f"link {link.name!r}")
        rotation, com = origin[:3, :3], origin[:3, 3]
        inertia = rotation @ inertia @ rotation.T
        flaw = inertia_flaw(mass, inertia)
        if flaw:
            _logger.warning("link %r: %s", link.name, flaw)
    return builder.add_body(joint, mass, com, inertia, placement, link.name, parent_frame=parent_frame)
