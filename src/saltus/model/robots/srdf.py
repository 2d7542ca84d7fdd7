"""Robots' poses from SRDF files, the `<group_state>` elements, read as Pinocchio reads them; and `<disable_collisions>`, the
pairs of links that are kept apart."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from saltus.model.checks import Array, ModelError
from saltus.model.joints import Joint, JointKind
from saltus.model.model import Model
from saltus.model.safe_xml import numbers_in, read_xml, robot_file, tag_of


def load_srdf(model: Model, path: str | os.PathLike[str]) -> Model:
    """The same model with what an SRDF file says: its poses among the reference configurations, and pairs of links that it
    disables collisions of among those kept `apart`; a `ModelError` says what is wrong with the file.

    >>> import tempfile
    >>> from saltus.model import random_model
    >>> text = '<robot name="r"><disable_collisions link1="a" link2="b" reason="Never"/></robot>'
    >>> with tempfile.NamedTemporaryFile("w", suffix=".srdf") as file:
    ...     _ = file.write(text)
    ...     file.flush()
    ...     load_srdf(random_model(seed=0, bodies=3), file.name).apart
    (('a', 'b'),)
    """
    file = robot_file(path, "an SRDF")
    poses = dict(model.reference_configurations) | read_poses(file, model)
    return model.replace(reference_configurations=poses, apart=(*model.apart, *read_apart(file)))


def read_poses(path: Path, model: Model) -> dict[str, Array]:
    """The configurations (nq,) that an SRDF file names.

    Joints that a pose does not mention are neutral; those that the model does not have are passed over, since one
    file serves several variants of a robot. Quaternions, cosines and sines are normalised.
    """
    root = read_xml(path, "robot", "an SRDF")
    joints = {joint.name: joint for joint in model.joints if joint.nq}
    poses = {}
    for state in root:
        if tag_of(state) == "group_state":
            name = state.get("name", "")
            try:
                poses[name] = _pose(state, model.neutral(), joints)
            except ModelError as error:
                raise ModelError(f"{path}: pose {name!r}: {error}") from None
    return poses


def read_apart(path: Path) -> list[tuple[str, str]]:
    """The pairs of links between which an SRDF file looks for no collisions."""
    root = read_xml(path, "robot", "an SRDF")
    pairs = []
    for element in root:
        if tag_of(element) == "disable_collisions":
            one, other = element.get("link1", ""), element.get("link2", "")
            if not (one and other):
                raise ModelError(f"{path}: line {element.sourceline}: <disable_collisions> lacks link1 or link2")
            pairs.append((one, other))
    return pairs


def _pose(state: Any, q: Array, joints: dict[str, Joint]) -> Array:
    for element in state:
        joint = joints.get(element.get("name", ""))
        if tag_of(element) == "joint" and joint is not None:
            q[joint.iq : joint.iq + joint.nq] = _coordinates(joint, element.get("value", ""))
    return q


def _coordinates(joint: Joint, text: str) -> Array:
    values = numbers_in(text) or []
    if joint.kind == JointKind.CONTINUOUS and len(values) == 1:  # the angle, which may be written instead
        values = [math.cos(values[0]), math.sin(values[0])]
    coordinates = np.array(values)
    unit = coordinates[joint.kind.unit_coordinates]  # a view: the quaternion, or cosine and sine
    length = np.linalg.norm(unit) if unit.size else 1.0
    if len(values) != joint.nq or not np.isfinite(values).all() or not 0.0 < length < math.inf:
        expected = "a finite number" if joint.nq == 1 else f"{joint.nq} finite numbers, rotations of length 1"
        raise ModelError(f"joint {joint.name!r} has the value {text!r}, expected {expected}")
    unit /= length
    return coordinates
