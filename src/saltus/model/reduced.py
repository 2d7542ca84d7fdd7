"""Models with some joints locked: the bodies that these carry become part of those before them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from saltus.model.checks import Array, ModelError, finite
from saltus.model.frames import FrameKind
from saltus.model.joints import Joint, JointKind
from saltus.model.merging import placed, told_by_shape, with_load
from saltus.model.model import PER_COORDINATE, PER_DOF, UNIT_TOLERANCE, Model
from saltus.model.parameters import refuse_several
from saltus.model.placements import placement, rotation_from_quaternion
from saltus.spatial.exponentials import exp3


def reduce_model(model: Model, locked: Mapping[str, ArrayLike]) -> Model:
    """The robot with some of its joints locked, as a model that no longer has them.

    locked: for each joint by its name the angle [rad] or displacement [m] it stays at, or its part of q (nq,); joints that
        mimic it stay where it puts them.

    Joints keep their order, and all frames, shapes and poses stay; a locked joint's frame is of kind FIXED_JOINT, as in
    Pinocchio's `buildReducedModel`. Actuators of locked joints go, and loops between what has become one body. As in every
    model, shapes of one body, or of bodies next to each other, are not tested for collisions.

    >>> import numpy as np, saltus as sl
    >>> arm = sl.load_robot("arm")
    >>> names = [joint.name for joint in arm.joints[1:]]
    >>> short = sl.reduce_model(arm, {names[2]: 0.3, names[4]: -0.5})
    >>> short.nv, bool(np.isclose(short.total_mass, arm.total_mass))
    (5, True)
    """
    if not isinstance(model, Model):
        raise TypeError(f"reduce_model: the model is a {type(model).__name__}, expected a saltus.Model")
    refuse_several(model, "reduce_model")
    stays = _configurations(model, locked)
    joints, carrier, place = [model.joints[0]], [0], [np.eye(4)]
    for joint in model.joints[1:]:
        host, at = carrier[joint.parent], place[joint.parent] @ joint.placement
        if joint.name in stays:
            at = at @ _moved(joint, stays[joint.name])
            joints[host] = with_load(joints[host], joint, at)
        else:
            joints.append(replace(joint, parent=host, placement=at))
            host, at = len(joints) - 1, np.eye(4)
        carrier.append(host)
        place.append(at)

    frames = tuple(
        replace(
            frame, joint=carrier[frame.joint], placement=place[frame.joint] @ frame.placement,
            kind=FrameKind.FIXED_JOINT if frame.kind == FrameKind.JOINT and frame.name in stays else frame.kind,
        )
        for frame in model.frames
    )  # fmt: skip
    body = {frame.name: frame.joint for frame in frames}
    q, v = (_own(model, stays, start) for start in ("q", "v"))
    colliders, apart = told_by_shape(model)
    return model.replace(
        joints=numbered(joints),
        frames=frames,
        **{name: getattr(model, name)[q] for name in PER_COORDINATE},
        **{name: getattr(model, name)[v] for name in PER_DOF},
        reference_configurations={name: pose[q] for name, pose in model.reference_configurations.items()},
        loops=tuple(loop for loop in model.loops if body[loop.frame_a] != body[loop.frame_b]),
        actuators=tuple(actuator for actuator in model.actuators if actuator.joint not in stays),
        shapes=placed(model.shapes, carrier, place),
        colliders=placed(colliders, carrier, place),
        apart=apart,
    )


def numbered(joints: list[Joint]) -> tuple[Joint, ...]:
    """The joints of a model, each with its places in q and v; those of a mimic joint are its primary's."""
    places, iq, iv = {}, 0, 0
    for joint in joints[1:]:
        places[joint.name] = iq, iv
        iq, iv = iq + joint.nq, iv + joint.nv
    found = [joints[0]]
    for joint in joints[1:]:
        iq, iv = places[joint.mimic.primary if joint.mimic else joint.name]
        found.append(replace(joint, iq=iq, iv=iv))
    return tuple(found)


def _own(model: Model, stays: Mapping[str, Array], which: str) -> list[int]:
    """The indices into q, or into v, that stay."""
    found: list[int] = []
    for joint in model.joints[1:]:
        start, count = (joint.iq, joint.nq) if which == "q" else (joint.iv, joint.nv)
        found += range(start, start + count) if joint.name not in stays else ()
    return found


def _configurations(model: Model, locked: Mapping[str, ArrayLike]) -> dict[str, Array]:
    """Where all joints that are locked stay: (nq,) of each, by its name."""
    if not isinstance(locked, Mapping):
        raise TypeError(f"reduce_model: locked is {locked!r}, expected a mapping of joints' names to angles")
    found = {}
    for name, value in locked.items():
        joint = model.joints[model.joint_index(name)]
        if joint.kind == JointKind.UNIVERSE:
            raise ModelError("reduce_model: the universe cannot be locked, it does not move")
        if joint.mimic:
            raise ModelError(f"reduce_model: joint {name!r} follows {joint.mimic.primary!r}; lock that one")
        found[joint.name] = _configuration(joint, value)
    for joint in model.joints[1:]:
        if joint.mimic and joint.mimic.primary in found:
            primary = found[joint.mimic.primary]
            angle = np.arctan2(primary[1], primary[0]) if primary.size == 2 else primary[0]
            found[joint.name] = _configuration(joint, joint.mimic.ratio * angle + joint.mimic.offset)
    return found


def _configuration(joint: Joint, value: ArrayLike) -> Array:
    """The part of q (nq,) of a joint, from that or from its angle."""
    what = f"reduce_model: the place of joint {joint.name!r}"
    if joint.kind.has_axis and np.ndim(value) == 0:
        angle = float(finite(value, (), what))
        return np.array([np.cos(angle), np.sin(angle)] if joint.kind == JointKind.CONTINUOUS else [angle])
    q = finite(value, (joint.kind.nq,), what)
    unit = q[joint.kind.unit_coordinates]
    if unit.size and abs(unit @ unit - 1.0) > UNIT_TOLERANCE:
        raise ModelError(f"{what} is {q.tolist()}, expected {unit.tolist()} to have length 1")
    return q


def _moved(joint: Joint, q: Array) -> Array:
    """What a joint at q (nq,) adds to its placement (4, 4)."""
    if joint.kind == JointKind.REVOLUTE:
        return placement(exp3(joint.axis * q[0]))
    if joint.kind == JointKind.CONTINUOUS:
        return placement(exp3(joint.axis * np.arctan2(q[1], q[0])))
    if joint.kind == JointKind.PRISMATIC:
        return placement(np.eye(3), joint.axis * q[0])
    if joint.kind == JointKind.PLANAR:
        return placement(exp3([0.0, 0.0, np.arctan2(q[3], q[2])]), [q[0], q[1], 0.0])
    if joint.kind == JointKind.SPHERICAL:
        return placement(rotation_from_quaternion(q))
    if joint.kind == JointKind.TRANSLATION:
        return placement(np.eye(3), q)
    return placement(rotation_from_quaternion(q[3:]), q[:3])
