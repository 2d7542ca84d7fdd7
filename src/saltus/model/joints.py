"""Joints: what kinds there are, and one joint of a model together with the body it carries.

| kind | q | v (in the joint's own frame) |
|---|---|---|
| REVOLUTE | angle | angular velocity about the axis |
| CONTINUOUS | cos, sin of the angle | angular velocity about the axis |
| PRISMATIC | displacement | velocity along the axis |
| PLANAR | x, y, cos, sin | vx, vy, wz |
| SPHERICAL | quaternion x y z w | angular velocity |
| TRANSLATION | x, y, z | linear velocity |
| FREE_FLYER | position, quaternion x y z w | linear, then angular velocity |

All of it as in Pinocchio. Metres, radians, kilograms, seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np

from saltus.model.checks import (
    INERTIA_TOLERANCE,
    ROTATION_TOLERANCE,
    Array,
    ModelError,
    checked_name,
    finite,
    rigid_placement,
    whole_number,
)


class JointKind(IntEnum):
    """The kind of a joint.

    >>> JointKind.CONTINUOUS.nq, JointKind.CONTINUOUS.nv
    (2, 1)
    >>> JointKind.of("free_flyer")
    <JointKind.FREE_FLYER: 7>
    """

    UNIVERSE = 0
    REVOLUTE = 1
    CONTINUOUS = 2
    PRISMATIC = 3
    PLANAR = 4
    SPHERICAL = 5
    TRANSLATION = 6
    FREE_FLYER = 7

    @property
    def nq(self) -> int:
        """How many numbers of q it has."""
        return len(_NEUTRAL[self])

    @property
    def nv(self) -> int:
        """How many degrees of freedom it has: its numbers of v."""
        return _NV[self]

    @property
    def neutral(self) -> tuple[float, ...]:
        """Its q (nq numbers) when the joint does not move its body at all."""
        return _NEUTRAL[self]

    @property
    def has_axis(self) -> bool:
        """Whether it turns about, or slides along, an axis of its own."""
        return self in (JointKind.REVOLUTE, JointKind.CONTINUOUS, JointKind.PRISMATIC)

    @property
    def unit_coordinates(self) -> slice:
        """Which of its q form a vector of length 1: the quaternion, or cos and sin."""
        return _UNIT_COORDINATES.get(self, slice(0, 0))

    @classmethod
    def of(cls, kind: JointKind | str) -> JointKind:
        """The kind itself, or that of this lower-case name."""
        if isinstance(kind, cls):
            return kind
        names = [member.name.lower() for member in cls]
        if isinstance(kind, str):
            if kind not in names:
                raise ModelError(f"unknown joint kind {kind!r}, expected one of {', '.join(names[1:])}")
            return cls(names.index(kind))
        try:
            return cls(kind)
        except ValueError:
            raise ModelError(f"unknown joint kind {kind!r}, expected a JointKind or its name") from None


_NEUTRAL: dict[JointKind, tuple[float, ...]] = {
    JointKind.UNIVERSE: (),
    JointKind.REVOLUTE: (0.0,),
    JointKind.CONTINUOUS: (1.0, 0.0),
    JointKind.PRISMATIC: (0.0,),
    JointKind.PLANAR: (0.0, 0.0, 1.0, 0.0),
    JointKind.SPHERICAL: (0.0, 0.0, 0.0, 1.0),
    JointKind.TRANSLATION: (0.0, 0.0, 0.0),
    JointKind.FREE_FLYER: (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
}
_NV: dict[JointKind, int] = {
    JointKind.UNIVERSE: 0,
    JointKind.REVOLUTE: 1,
    JointKind.CONTINUOUS: 1,
    JointKind.PRISMATIC: 1,
    JointKind.PLANAR: 3,
    JointKind.SPHERICAL: 3,
    JointKind.TRANSLATION: 3,
    JointKind.FREE_FLYER: 6,
}
_UNIT_COORDINATES: dict[JointKind, slice] = {
    JointKind.CONTINUOUS: slice(0, 2),
    JointKind.PLANAR: slice(2, 4),
    JointKind.SPHERICAL: slice(0, 4),
    JointKind.FREE_FLYER: slice(3, 7),
}


SPRING_KINDS = (JointKind.REVOLUTE, JointKind.PRISMATIC)
"""Joints that may have a spring: one number says how far it is bent, turns counted."""


@dataclass(frozen=True)
class Mimic:
    """A joint's motion follows another's: q = ratio * q[primary] + offset, v = ratio * v[primary].

    For two continuous joints q means the angle, not its cosine and sine.
    """

    primary: str
    ratio: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        checked_name(self.primary, "the joint that is mimicked")
        for name in ("ratio", "offset"):
            value = finite(getattr(self, name), (), f"{name} of the mimic of {self.primary!r}")
            object.__setattr__(self, name, float(value))


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint and the body it moves, all links that are fixed to each other merged into one.

    Its arrays are read-only copies of what was given.

    >>> import numpy as np
    >>> joint = Joint("hip", JointKind.REVOLUTE, parent=0, placement=np.eye(4), axis=np.array([0, 0, 1]),
    ...               mass=2.0, com=np.zeros(3), inertia=np.eye(3), iq=0, iv=0)
    >>> joint.nq, joint.com
    (1, array([0., 0., 0.]))
    """

    name: str
    kind: JointKind
    parent: int  # index of the parent joint, always smaller; -1 for the universe
    placement: Array = field(repr=False)  # (4, 4) of the joint frame in the parent's joint frame, at neutral [m]
    axis: Array = field(repr=False)  # (3,) unit axis in the joint frame; (0, 0, 1) for kinds without one
    mass: float  # of all that moves with this joint [kg]
    com: Array = field(repr=False)  # (3,) centre of mass in the joint frame [m]
    inertia: Array = field(repr=False)  # (3, 3) about the centre of mass, along the joint frame's axes [kg m^2]
    iq: int  # where its numbers begin in q; -1 for the universe, the primary's for a mimic joint
    iv: int  # likewise in v
    mimic: Mimic | None = None  # its primary has q and v of its own: chains of mimics are resolved

    def __post_init__(self) -> None:
        where = f"joint {checked_name(self.name, 'a joint')!r}"
        set_ = partial(object.__setattr__, self)
        set_("kind", JointKind.of(self.kind))
        for name in ("parent", "iq", "iv"):
            set_(name, whole_number(getattr(self, name), f"{name} of {where}"))
        set_("placement", rigid_placement(self.placement, f"placement of {where}"))
        set_("axis", finite(self.axis, (3,), f"axis of {where}"))
        set_("mass", float(finite(self.mass, (), f"mass of {where}")))
        set_("com", finite(self.com, (3,), f"com of {where}"))
        set_("inertia", finite(self.inertia, (3, 3), f"inertia of {where}"))
        if self.kind.has_axis and abs(float(np.linalg.norm(self.axis)) - 1.0) > ROTATION_TOLERANCE:
            raise ModelError(f"axis of {where} is {self.axis.tolist()}, expected one of length 1")
        if self.mass < 0:
            raise ModelError(f"mass of {where} is {self.mass}, expected no negative number")
        if np.abs(self.inertia - self.inertia.T).max() > INERTIA_TOLERANCE * np.abs(self.inertia).max():
            raise ModelError(f"inertia of {where} is not symmetric: {self.inertia.tolist()}")
        if not isinstance(self.mimic, Mimic | None):
            raise ModelError(f"mimic of {where} is {self.mimic!r}, expected a Mimic or None")

    @property
    def nq(self) -> int:
        """How many numbers of the model's q are its own: none if it mimics another joint."""
        return 0 if self.mimic else self.kind.nq

    @property
    def nv(self) -> int:
        """How many numbers of the model's v are its own: none if it mimics another joint."""
        return 0 if self.mimic else self.kind.nv

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return rebuilt(self)


def rebuilt(record: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """How to pickle a frozen dataclass: call it again, since pickled arrays come back writable."""
    return type(record), tuple(getattr(record, each.name) for each in fields(record))
