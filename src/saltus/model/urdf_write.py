"""Robots as URDF files: trees of revolute, continuous, prismatic, planar and floating joints.

- One link for each joint, with all that was merged into its body. Other bodies and frames become links of no mass, on
  fixed joints.
- A free flyer that carries the whole robot becomes the root link, as `load_urdf(..., floating_base=True)` reads it.
- A name that something else has already gets an underscore: URDF has one space of names for links, one for joints.
- Actuators become transmissions.
- URDF has no place for gravity, armature, springs, loops, limits of actuators other than those of their joints, reference
  configurations, limits of planar and floating joints, ellipsoids, or meshes that are not in the file's folder or package
  (see `mesh_paths`). What there is of them is logged as a warning.
"""

from __future__ import annotations

import logging
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from saltus.model.checks import Array, ModelError
from saltus.model.frames import FrameKind
from saltus.model.joints import JointKind
from saltus.model.loops import Actuator
from saltus.model.mesh_paths import home_of
from saltus.model.model import Model
from saltus.model.parameters import refuse_several
from saltus.model.placements import placement, rpy_from_rotation
from saltus.model.shapes import Shape
from saltus.model.urdf import KINDS
from saltus.model.urdf_shapes import SIZE_ATTRIBUTES
from saltus.model.urdf_transmissions import COMMANDS

TYPES = {kind: name for name, kind in KINDS.items()}
STANDARD_GRAVITY = (0.0, 0.0, -9.81)

_logger = logging.getLogger(__name__)


def save_urdf(model: Model, path: str | os.PathLike[str]) -> None:
    """Writes a tree as a URDF file, numbers with all their digits; a `ModelError` says what URDF cannot hold.

    `load_urdf` gives it back with the same dynamics, its joints in the order of their names as always.

    >>> import tempfile
    >>> from saltus.model import load_urdf, random_model
    >>> model = random_model(seed=3, bodies=4, kinds=["revolute", "prismatic"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_urdf(model, f"{folder}/robot.urdf")
    ...     abs(load_urdf(f"{folder}/robot.urdf").total_mass - model.total_mass) < 1e-12
    True
    """
    from lxml import etree  # type: ignore[import-untyped]

    if not isinstance(model, Model):
        raise TypeError(f"save_urdf: the model is a {type(model).__name__}, expected a saltus.Model")
    refuse_several(model, "save_urdf")
    file = Path(path)
    for joint in model.joints[1:]:
        if joint.kind not in TYPES:
            raise ModelError(f"joint {joint.name!r} is {joint.kind.name}, which URDF does not have")
    _warn_of_losses(model, file)
    try:
        robot = _Writer(model, file, etree.SubElement).written(etree.Element("robot", name=model.name))
        file.write_bytes(etree.tostring(robot, pretty_print=True, xml_declaration=True, encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"{file}: cannot be written: {error.strerror}") from None
    except ValueError as error:  # a name with characters that XML does not have
        raise ModelError(f"{file}: cannot be written: {error}") from None


class _Writer:
    """One model on its way into one file."""

    def __init__(self, model: Model, file: Path, add: Any) -> None:
        self.model, self.file, self.add = model, file, add
        self.root = 1 if _carried_by_a_free_flyer(model) else 0
        self.link_names: set[str] = set()
        self.joint_names = {joint.name for joint in model.joints}
        # A body that lies in its joint's frame gives the joint's link its name.
        bodies = {
            frame.joint: index
            for index, frame in reversed(list(enumerate(model.frames)))
            if frame.kind == FrameKind.BODY and np.array_equal(frame.placement, np.eye(4))
        }
        self.own_frames = set(bodies.values())
        self.links = [
            _free(model.frames[bodies[index]].name if index in bodies else f"{joint.name}_link", self.link_names)
            for index, joint in enumerate(model.joints)
        ]

    def written(self, robot: Any) -> Any:
        for index in range(self.root, self.model.njoints):
            self.write_link(robot, index)
        for index in range(self.root + 1, self.model.njoints):
            self.write_joint(robot, index)
        self.write_frames(robot)
        for actuator in filter(_has_a_gear, self.model.actuators):
            self.write_transmission(robot, actuator)
        return robot

    def write_link(self, robot: Any, index: int) -> None:
        joint = self.model.joints[index]
        link = self.add(robot, "link", name=self.links[index])
        if joint.mass or np.any(joint.inertia):
            inertial = self.add(link, "inertial")
            self.write_origin(inertial, placement(np.eye(3), joint.com))
            self.add(inertial, "mass", value=_text(joint.mass))
            entries = {f"i{'xyz'[i]}{'xyz'[j]}": _text(joint.inertia[i, j]) for i in range(3) for j in range(i, 3)}
            self.add(inertial, "inertia", **entries)
        for tag, shapes in (("visual", self.model.shapes), ("collision", self.model.colliders)):
            for shape in shapes:
                if shape.joint == index:
                    self.write_shape(link, tag, shape)

    def write_shape(self, link: Any, tag: str, shape: Shape) -> None:
        if not _can_be_written(shape, self.file):
            return
        element = self.add(link, tag, **({"name": shape.name} if shape.name else {}))
        self.write_origin(element, shape.placement)
        attributes = SIZE_ATTRIBUTES[shape.kind]
        sizes = [shape.size] if len(attributes) == 1 else shape.size
        geometry = self.add(self.add(element, "geometry"), shape.kind)
        for attribute, size in zip(attributes, sizes, strict=True):
            geometry.set(attribute, _text(size))
        if shape.kind == "mesh":
            geometry.set("filename", os.path.relpath(shape.path, self.file.absolute().parent))
        if tag == "visual":
            self.add(
                self.add(element, "material", name=f"color_{_text(shape.color)}"), "color", rgba=_text(shape.color)
            )

    def write_joint(self, robot: Any, index: int) -> None:
        model, joint = self.model, self.model.joints[index]
        element = self.connect(
            robot, joint.name, TYPES[joint.kind], self.links[joint.parent], self.links[index], joint.placement
        )
        if not joint.kind.has_axis:
            return
        self.add(element, "axis", xyz=_text(joint.axis))
        if joint.mimic:
            mimic = joint.mimic
            self.add(element, "mimic", joint=mimic.primary, multiplier=_text(mimic.ratio), offset=_text(mimic.offset))
            self.add(element, "limit", lower="-inf", upper="inf", effort="inf", velocity="inf")
            return
        limits = {"effort": model.effort_limit[joint.iv], "velocity": model.velocity_limit[joint.iv]}
        if joint.kind != JointKind.CONTINUOUS:
            limits |= {"lower": model.lower_position_limit[joint.iq], "upper": model.upper_position_limit[joint.iq]}
        self.add(element, "limit", **{name: _text(value) for name, value in limits.items()})
        dynamics = {"damping": model.damping[joint.iv], "friction": model.friction[joint.iv]}
        if any(dynamics.values()):
            self.add(element, "dynamics", **{name: _text(value) for name, value in dynamics.items()})

    def write_transmission(self, robot: Any, actuator: Actuator) -> None:
        element = self.add(robot, "transmission", name=f"{actuator.name}_transmission")
        self.add(element, "type").text = "transmission_interface/SimpleTransmission"
        joint = self.add(element, "joint", name=actuator.joint)
        interface = next((name for name, command in COMMANDS.items() if command == actuator.command), "")
        self.add(joint, "hardwareInterface").text = f"hardware_interface/{interface}"
        motor = self.add(element, "actuator", name=actuator.name)
        self.add(motor, "mechanicalReduction").text = _text(actuator.gear)

    def write_frames(self, robot: Any) -> None:
        """A fixed joint and the body on it, where the model has both as frames, are written as the pair they were."""
        frames, fixed_names = self.model.frames, {}
        for index, frame in enumerate(frames):
            if frame.kind == FrameKind.FIXED_JOINT and index > 0:
                fixed_names[index] = frame.name
        for index, frame in enumerate(frames):
            if index == 0 or index in self.own_frames or frame.kind in (FrameKind.JOINT, FrameKind.FIXED_JOINT):
                continue
            fixed = fixed_names.pop(frame.parent, f"{frame.name}_fixed")
            self.write_frame(robot, fixed, frame.name, frame.joint, frame.placement)
        for index, name in fixed_names.items():
            self.write_frame(robot, name, f"{name}_link", frames[index].joint, frames[index].placement)

    def write_frame(self, robot: Any, joint: str, link: str, mover: int, at: Array) -> None:
        child = _free(link, self.link_names)
        self.add(robot, "link", name=child)
        self.connect(robot, _free(joint, self.joint_names), "fixed", self.links[mover], child, at)

    def connect(self, robot: Any, name: str, kind: str, parent: str, child: str, at: Array) -> Any:
        element = self.add(robot, "joint", name=name, type=kind)
        self.write_origin(element, at)
        self.add(element, "parent", link=parent)
        self.add(element, "child", link=child)
        return element

    def write_origin(self, element: Any, at: Array) -> None:
        self.add(element, "origin", xyz=_text(at[:3, 3]), rpy=_text(rpy_from_rotation(at[:3, :3])))


def _carried_by_a_free_flyer(model: Model) -> bool:
    """All of it, with nothing at the world."""
    carriers = [joint.parent for joint in model.joints[2:]]
    carriers += [frame.joint for frame in model.frames[1:]] + [
        shape.joint for shape in (*model.shapes, *model.colliders)
    ]
    if model.nb == 0 or model.joints[0].mass != 0.0 or 0 in carriers:
        return False
    carrier = model.joints[1]
    return carrier.kind == JointKind.FREE_FLYER and np.array_equal(carrier.placement, np.eye(4))


def _warn_of_losses(model: Model, file: Path) -> None:
    lost = {
        "gravity": not np.array_equal(model.gravity, STANDARD_GRAVITY),
        "armature": model.armature.any(),
        "springs": model.stiffness.any(),
        "loops": model.loops,
        "actuators of gear 0": not all(map(_has_a_gear, model.actuators)),
        "limits of actuators other than their joints'": not all(_as_its_joint(model, each) for each in model.actuators),
        "reference configurations": model.reference_configurations,
        "ellipsoids, or meshes elsewhere": not all(
            _can_be_written(shape, file) for shape in (*model.shapes, *model.colliders)
        ),
        "frictions of colliders, or pairs that never touch": model.apart
        or any(shape.friction is not None for shape in model.colliders),
    }
    for what in (name for name, there in lost.items() if there):
        _logger.warning("%s: URDF has no place for %s", file, what)


def _has_a_gear(actuator: Actuator) -> bool:
    return actuator.gear != 0.0


def _as_its_joint(model: Model, actuator: Actuator) -> bool:
    """Whether an actuator can do what its joint's effort limit says, both ways."""
    limit = model.effort_limit[model.joints[model.joint_index(actuator.joint)].iv]
    return -actuator.lower == actuator.upper and math.isclose(actuator.most, limit, rel_tol=1e-12)


def _can_be_written(shape: Shape, file: Path) -> bool:
    """Not an ellipsoid; and a mesh must be where `load_urdf` will accept it."""
    elsewhere = shape.kind == "mesh" and not Path(os.path.normpath(shape.path)).is_relative_to(home_of(file))
    return shape.kind in SIZE_ATTRIBUTES and not elsewhere


def _free(name: str, taken: set[str]) -> str:
    """The name, with as many underscores as it takes to be the only one."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _text(numbers: Any) -> str:
    return " ".join(repr(float(number)) for number in np.atleast_1d(numbers))
