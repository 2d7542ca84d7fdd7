"""The links, joints and frames of an SDF file, all poses resolved to the frame of the model.

- A link's pose is relative to the model, a joint's to its child link, unless `relative_to` names another frame; `frame`,
  as it was called up to version 1.6, means the same. Angles may be in degrees, rotations quaternions, as the pose says.
- A joint's axis is in the joint's frame, unless `expressed_in` names another; in the model's before version 1.5, or where
  `use_parent_model_frame` says so.
- A link without `<inertial>` has a mass of 1 kg and an inertia of 1 kg m^2, as the specification says.

Reference: sdformat.org, "Pose frame semantics" and the specifications 1.4 to 1.11.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from saltus.model.checks import Array, ModelError, refuse_negative_moments
from saltus.model.placements import placement, rotation_from_quaternion, rotation_from_rpy
from saltus.model.safe_xml import numbers_in

MODEL, WORLD = "__model__", "world"
GEARBOX = "gearbox"
UNLIMITED = 1e16  # what the specification writes for a limit that there is not


@dataclass(frozen=True, eq=False)
class SdfLink:
    name: str
    pose: Array  # (4, 4) in the model
    mass: float
    com: Array  # (3,) in the link
    inertia: Array  # (3, 3) about the com, along the link's axes
    element: Any


@dataclass(frozen=True, eq=False)
class SdfJoint:
    name: str
    kind: str
    parent: str
    child: str
    pose: Array  # (4, 4) in the model
    axes: list[dict[str, Any]]  # one, or two for universal joints: `axis` (3,) in the joint's frame, limits, dynamics
    springs: bool
    gear: tuple[str, float] | None  # of a gearbox: its body of reference, and the ratio


@dataclass(frozen=True, eq=False)
class SdfModel:
    name: str
    pose: Array  # (4, 4) in the world
    static: bool
    gravity: Array | None
    links: dict[str, SdfLink]
    joints: dict[str, SdfJoint]  # in the order of the file
    frames: dict[str, tuple[str, Array]]  # the link each is attached to, and its pose in the model


def read_model(root: Any) -> SdfModel:
    """The one model in an `<sdf>` element."""
    version = _version(root)
    models = root.findall("model") + root.findall("world/model")
    if len(models) != 1:
        raise ModelError(f"it has {len(models)} models, expected one")
    model = models[0]
    for tag in ("model", "include"):
        if model.find(tag) is not None:
            raise ModelError(f"{located(model.find(tag))}: models in models are not supported")
    poses = _Poses(model)
    gravity = root.find("world/gravity")
    own_pose = pose_of(model)
    if model.get("placement_frame"):
        own_pose = own_pose @ np.linalg.inv(poses.of(model.get("placement_frame"), located(model)))
    return SdfModel(
        name=named(model),
        pose=own_pose,
        static=_text(model, "static").lower() in ("1", "true"),
        gravity=None if gravity is None else numbers(gravity, 3),
        links={link.get("name"): _link(link, poses) for link in model.findall("link")},
        joints={joint.get("name"): _joint(joint, poses, version) for joint in model.findall("joint")},
        frames={
            frame.get("name"): (poses.link_of(frame.get("name"), located(frame)), poses.of(frame.get("name"), ""))
            for frame in model.findall("frame")
        },
    )


class _Poses:
    """The poses (4, 4), in the model, of all that has a name."""

    def __init__(self, model: Any) -> None:
        self.elements = {}
        self.resolved = {MODEL: np.eye(4)}
        self.attached: dict[str, str] = {}
        for tag in ("joint", "frame", "link"):  # where names are shared, as old versions allow, links come first
            seen = set()
            for element in model.findall(tag):
                name = named(element)
                if name in seen or name in (MODEL, WORLD):
                    raise ModelError(f"{located(element)}: there is another {tag} {name!r}")
                seen.add(name)
                self.elements[name] = element

    def of(self, name: str, where: str) -> Array:
        """By following from frame to frame; chains may be as long as the robot."""
        waiting: dict[str, None] = {}  # a set that keeps the order
        while name not in self.resolved:
            if name not in self.elements:
                raise ModelError(f"{where}: there is no frame {name!r}")
            if name in waiting:
                raise ModelError(
                    f"{where}: the poses of {', '.join(map(repr, list(waiting)[:5]))} are relative to each other"
                )
            waiting[name] = None
            where, name = located(self.elements[name]), self._reference(self.elements[name])
        for each in reversed(waiting):
            self.resolved[each] = self.resolved[name] @ pose_of(self.elements[each])
            name = each
        return self.resolved[name]

    def of_element(self, element: Any) -> Array:
        """Of a link or joint, whoever else has its name."""
        if self.elements[element.get("name")] is element:
            return self.of(element.get("name"), located(element))
        return self.of(self._reference(element), located(element)) @ pose_of(element)

    def link_of(self, name: str, where: str) -> str:
        """The link that a frame is attached to; a link itself. Each is looked for once."""
        passed: dict[str, None] = {}
        while name in self.elements and self.elements[name].tag != "link" and name not in passed:
            passed[name] = None
            if name in self.attached:
                name = self.attached[name]
            else:
                element = self.elements[name]
                attached = _text(element, "child") if element.tag == "joint" else element.get("attached_to")
                name = attached or self._first_link
        if name not in self.elements or name in passed:
            raise ModelError(f"{where}: there is no link {name!r}")
        self.attached |= dict.fromkeys(passed, name)
        return name

    @cached_property
    def _first_link(self) -> str:
        return next((name for name, element in self.elements.items() if element.tag == "link"), "")

    @staticmethod
    def _reference(element: Any) -> str:
        defaults = {"joint": _text(element, "child"), "frame": element.get("attached_to")}
        return str(referred(element.find("pose")) or defaults.get(element.tag) or MODEL)


def _link(element: Any, poses: _Poses) -> SdfLink:
    inertial = element.find("inertial")
    mass, com, inertia = 1.0, np.zeros(3), np.eye(3)
    if inertial is not None:
        if inertial.get("auto", "").lower() in ("1", "true"):
            raise ModelError(f"{located(inertial)}: an inertia that follows from shapes is not supported")
        at = pose_in_link(inertial)
        mass, com = number(inertial, "mass", 1.0), at[:3, 3]
        entries = inertial.find("inertia")
        if entries is not None:
            xx, yy, zz = (number(entries, name, 1.0) for name in ("ixx", "iyy", "izz"))
            xy, xz, yz = (number(entries, name, 0.0) for name in ("ixy", "ixz", "iyz"))
            inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            refuse_negative_moments(mass, inertia, located(entries))
        inertia = at[:3, :3] @ inertia @ at[:3, :3].T
    return SdfLink(element.get("name"), poses.of_element(element), mass, com, inertia, element)


def _joint(element: Any, poses: _Poses, version: tuple[int, ...]) -> SdfJoint:
    where, kind = located(element), element.get("type", "")
    ends = {}
    for role in ("parent", "child"):
        name = _text(element, role)
        if not name:
            raise ModelError(f"{where} has no <{role}>")
        ends[role] = name if name == WORLD else poses.link_of(name, f"{where}, <{role}>")
    if ends["child"] == WORLD:
        raise ModelError(f"{where}: its child is the world; expected a link")
    pose = poses.of_element(element)
    axes = [_axis(axis, pose, poses, version) for tag in ("axis", "axis2") for axis in element.findall(tag)]
    springs = any(number(dynamics, "spring_stiffness", 0.0) != 0.0 for dynamics in element.iter("dynamics"))
    gear = None
    if kind == GEARBOX and element.find("gearbox_reference_body") is not None:
        gear = _text(element, "gearbox_reference_body"), number(element, "gearbox_ratio", 1.0)
    return SdfJoint(element.get("name"), kind, ends["parent"], ends["child"], pose, axes, springs, gear)


def _axis(element: Any, pose: Array, poses: _Poses, version: tuple[int, ...]) -> dict[str, Any]:
    """An axis in its joint's frame, with limits and dynamics, as arguments of `ModelBuilder.add_joint`."""
    xyz = element.find("xyz")
    axis = np.array([0.0, 0.0, 1.0]) if xyz is None else numbers(xyz, 3)
    expressed_in = "" if xyz is None else xyz.get("expressed_in", "")
    if version < (1, 5) or _text(element, "use_parent_model_frame").lower() in ("1", "true"):
        expressed_in = MODEL
    if expressed_in:
        axis = pose[:3, :3].T @ poses.of(expressed_in, located(element))[:3, :3] @ axis
    result: dict[str, Any] = {"axis": axis}
    limit, dynamics = element.find("limit"), element.find("dynamics")
    if limit is not None:
        for ours, name, default in (("lower", "lower", -math.inf), ("upper", "upper", math.inf)):
            value = number(limit, name, default, infinite=True)
            result[ours] = value if abs(value) < UNLIMITED else math.copysign(math.inf, value)
        for name in ("effort", "velocity"):
            value = number(limit, name, -1.0, infinite=True)
            result[f"{name}_limit"] = value if 0.0 <= value < UNLIMITED else math.inf  # a negative one is none
    if dynamics is not None:
        dynamic = {name: name for name in ("damping", "friction", "spring_reference")} | {
            "stiffness": "spring_stiffness"
        }
        result |= {ours: number(dynamics, name, 0.0) for ours, name in dynamic.items()}
    return result


def pose_of(element: Any) -> Array:
    """The `<pose>` (4, 4) of an element, relative to whatever it is relative to."""
    pose = element.find("pose")
    if pose is None or not (pose.text or "").strip():
        return np.eye(4)
    if pose.get("rotation_format") == "quat_xyzw":
        values = numbers(pose, 7)
        if not np.any(values[3:]):
            raise ModelError(f"{located(pose)} has a quaternion of zeros")
        return placement(rotation_from_quaternion(values[3:]), values[:3])
    values = numbers(pose, 6)
    angles = np.radians(values[3:]) if pose.get("degrees", "").lower() in ("1", "true") else values[3:]
    return placement(rotation_from_rpy(angles), values[:3])


def pose_in_link(element: Any) -> Array:
    """The `<pose>` (4, 4) of a part of a link, which must be relative to that link."""
    reference = referred(element.find("pose"))
    if reference not in ("", element.getparent().get("name")):
        raise ModelError(
            f"{located(element)}: a pose relative to {reference!r} is not supported here, only to the link"
        )
    return pose_of(element)


def referred(pose: Any) -> str:
    """The frame that a `<pose>` says it is relative to; empty if it says nothing."""
    return "" if pose is None else str(pose.get("relative_to") or pose.get("frame") or "").strip()


def number(element: Any, tag: str, default: float, *, infinite: bool = False) -> float:
    """The number in a child element."""
    child = element.find(tag)
    return default if child is None else float(numbers(child, 1, infinite=infinite)[0])


def numbers(element: Any, count: int, *, infinite: bool = False) -> Array:
    values = numbers_in(element.text or "")
    if values is None or len(values) != count or not (infinite or all(map(math.isfinite, values))):
        expected = "a finite number" if count == 1 else f"{count} finite numbers"
        raise ModelError(f"{located(element)} is {(element.text or '').strip()!r}, expected {expected}")
    return np.array(values)


def named(element: Any) -> str:
    name = element.get("name", "").strip()
    if not name:
        raise ModelError(f"{located(element)} has no attribute 'name'")
    return str(element.get("name"))


def located(element: Any) -> str:
    """Where an element is: its line, and the link or joint it belongs to."""
    owners = [
        each for each in (element, *element.iterancestors()) if each.tag in ("link", "joint") and each.get("name")
    ]
    owner = f"{owners[0].tag} {owners[0].get('name')!r}, " if owners else ""
    return f"{owner}line {element.sourceline}: <{element.tag}>"


def _text(element: Any, tag: str) -> str:
    return (element.findtext(tag) or "").strip()


def _version(root: Any) -> tuple[int, ...]:
    words = root.get("version", "").split(".")
    if not all(re.fullmatch("[0-9]{1,9}", word) for word in words):
        raise ModelError(f"{located(root)} has version={root.get('version', '')!r}, expected one as 1.6")
    return tuple(int(word) for word in words)
