"""What the shipped robots are made of: links of solid primitives, hung on joints, and where they are in a pose.

A link's mass is spread evenly over the volume of its solids, and its inertia is that of these solids: what is drawn is
what moves. Metres, kilograms, radians; x forward, y to the left, z up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

Triple = tuple[float, float, float]
ZERO: Triple = (0.0, 0.0, 0.0)
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)

COLORS = {
    "graphite": (0.25, 0.27, 0.31),
    "rubber": (0.13, 0.13, 0.14),
    "silver": (0.72, 0.75, 0.79),
    "cream": (0.93, 0.91, 0.86),
    "teal": (0.09, 0.52, 0.56),
    "orange": (0.95, 0.53, 0.13),
    "skin": (0.90, 0.70, 0.57),
    "denim": (0.22, 0.33, 0.55),
}


@dataclass(frozen=True)
class Solid:
    """A primitive with its centre at `xyz` in its link. What touches the world is a collider as well as drawn."""

    kind: str  # box: sides; sphere: radius; cylinder, capsule: radius, length of the straight part along z
    size: tuple[float, ...]
    xyz: Triple = ZERO
    rpy: Triple = ZERO
    color: str = "silver"
    touches: bool = False

    @property
    def volume(self) -> float:
        if self.kind == "box":
            return math.prod(self.size)
        ball = 4.0 / 3.0 * math.pi * self.size[0] ** 3
        if self.kind == "sphere":
            return ball
        tube = math.pi * self.size[0] ** 2 * self.size[1]
        return tube if self.kind == "cylinder" else tube + ball

    def inertia(self, mass: float) -> np.ndarray:
        """About its centre, along the axes of its link (3, 3)."""
        rotation = rotation_of(self.rpy)
        return rotation @ np.diag(self._principal(mass)) @ rotation.T

    def _principal(self, mass: float) -> Sequence[float]:
        if self.kind == "box":
            a, b, c = (side**2 for side in self.size)
            return mass / 12.0 * (b + c), mass / 12.0 * (a + c), mass / 12.0 * (a + b)
        r = self.size[0]
        if self.kind == "sphere":
            return [0.4 * mass * r**2] * 3
        length = self.size[1]
        if self.kind == "cylinder":
            across = mass * (3.0 * r**2 + length**2) / 12.0
            return across, across, mass * r**2 / 2.0
        tube = mass * length / (length + 4.0 / 3.0 * r)
        caps = mass - tube
        across = tube * (length**2 / 12.0 + r**2 / 4.0) + caps * (0.4 * r**2 + length**2 / 4.0 + 0.375 * length * r)
        return across, across, tube * r**2 / 2.0 + 0.4 * caps * r**2


def box(size: Triple, xyz: Triple = ZERO, color: str = "silver", rpy: Triple = ZERO, touches: bool = False) -> Solid:
    return Solid("box", size, xyz, rpy, color, touches)


def ball(radius: float, xyz: Triple = ZERO, color: str = "graphite", touches: bool = False) -> Solid:
    return Solid("sphere", (radius,), xyz, ZERO, color, touches)


def bar(
    start: Triple, end: Triple, radius: float, color: str = "silver", kind: str = "capsule", touches: bool = False
) -> Solid:
    """A capsule (or a cylinder) whose straight part runs from one point to another."""
    along = np.subtract(end, start)
    length = float(np.linalg.norm(along))
    x, y, z = (along / length).tolist()
    middle = tuple(((np.add(start, end)) / 2.0).tolist())
    return Solid(kind, (radius, length), middle, (-math.asin(y), math.atan2(x, z), 0.0), color, touches)


def motor(radius: float, width: float, axis: Triple, xyz: Triple = ZERO, color: str = "graphite") -> Solid:
    """The drum of a drive, about the axis that it turns."""
    half = np.multiply(axis, width / 2.0)
    start, end = (tuple(np.add(xyz, side).tolist()) for side in (-half, half))
    return bar(start, end, radius, color, "cylinder")


def pillow(size: Triple, xyz: Triple = ZERO, color: str = "silver") -> list[Solid]:
    """A slab of this size along x, y, z whose edge, around its thinnest side, is round: bars, and a box between them."""
    thin = int(np.argmin(size))
    radius = size[thin] / 2.0
    reach = np.array(size) / 2.0 - radius
    u, v = (reach * axis for k, axis in enumerate(np.eye(3)) if k != thin)
    corners = [tuple((xyz + a * u + b * v).tolist()) for a, b in ((1, 1), (-1, 1), (-1, -1), (1, -1))]
    sides = [bar(corners[k - 1], corners[k], radius, color) for k in range(4)]
    inner = 2.0 * reach
    inner[thin] = size[thin]
    return [box(tuple(inner.tolist()), xyz, color), *sides]


@dataclass(frozen=True)
class Joint:
    """A joint of one degree of freedom. With effort 0 nothing drives it."""

    name: str
    axis: Triple
    lower: float
    upper: float
    effort: float
    velocity: float
    kind: str = "revolute"


@dataclass(frozen=True)
class Link:
    """A link, fixed to its parent or hung on it by joints, one after the other. Its frame is where they are."""

    name: str
    parent: str  # "" for the root
    xyz: Triple
    rpy: Triple
    joints: tuple[Joint, ...]
    mass: float
    solids: tuple[Solid, ...]
    hidden: tuple[Solid, ...] = ()  # colliders that are not drawn

    @property
    def colliders(self) -> tuple[Solid, ...]:
        return (*(solid for solid in self.solids if solid.touches), *self.hidden)

    def masses(self) -> list[float]:
        volume = sum(solid.volume for solid in self.solids)
        return [self.mass * solid.volume / volume for solid in self.solids]

    @cached_property
    def com(self) -> np.ndarray:
        if not self.mass:
            return np.zeros(3)
        return np.array(self.masses()) @ np.array([solid.xyz for solid in self.solids]) / self.mass

    @cached_property
    def inertia(self) -> np.ndarray:
        """About its centre of mass, along its axes (3, 3)."""
        total = np.zeros((3, 3))
        for solid, mass in zip(self.solids, self.masses(), strict=True):
            offset = np.subtract(solid.xyz, self.com)
            total += solid.inertia(mass) + mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
        return total

    @property
    def moments(self) -> dict[str, float]:
        """The inertia's entries, by the names that URDF and SDF have for them."""
        return {f"i{'xyz'[i]}{'xyz'[j]}": float(self.inertia[i, j]) for i in range(3) for j in range(i, 3)}


@dataclass(frozen=True)
class Loop:
    """A point of one link that stays at a point of another, as in a ball joint."""

    parent: str
    child: str
    on_parent: Triple
    on_child: Triple

    def gap(self, places: dict[str, np.ndarray]) -> np.ndarray:
        """From one point to the other (3,), with the links at these placements (4, 4)."""
        return (places[self.child] @ [*self.on_child, 1.0] - places[self.parent] @ [*self.on_parent, 1.0])[:3]


@dataclass
class Robot:
    """A tree of links, and its loops."""

    name: str
    floating: bool = False
    links: dict[str, Link] = field(default_factory=dict)
    loops: dict[str, Loop] = field(default_factory=dict)
    apart: list[tuple[str, str]] = field(default_factory=list)  # links that never touch, or always

    def add(
        self,
        name: str,
        parent: str = "",
        xyz: Triple = ZERO,
        joint: Joint | Sequence[Joint] = (),
        mass: float = 0.0,
        solids: Sequence[Solid] = (),
        rpy: Triple = ZERO,
        hidden: Sequence[Solid] = (),
    ) -> str:
        """Adds a link; returns its name. One without mass is a frame."""
        joints = (joint,) if isinstance(joint, Joint) else tuple(joint)
        assert name not in self.links and (parent in self.links) == bool(parent)
        assert bool(mass) == bool(solids), name
        self.links[name] = Link(name, parent, xyz, rpy, joints, mass, tuple(solids), tuple(hidden))
        return name

    def close(self, name: str, parent: str, child: str, at: Triple) -> None:
        """Closes a loop: a point of the child stays where it is on the parent while all joints are at zero."""
        places = self.placements({})
        x, y, z, _ = (np.linalg.inv(places[parent]) @ places[child] @ [*at, 1.0]).tolist()
        self.loops[name] = Loop(parent, child, (x, y, z), at)

    @property
    def joints(self) -> list[Joint]:
        return [joint for link in self.links.values() for joint in link.joints]

    def placements(self, angles: dict[str, float], base: Triple = ZERO) -> dict[str, np.ndarray]:
        """Where the links are (4, 4), with the root at `base`; joints that are not named are at zero."""
        places: dict[str, np.ndarray] = {}
        for link in self.links.values():
            place = places[link.parent] if link.parent else placement(base)
            place = place @ placement(link.xyz, rotation_of(link.rpy))
            for joint in link.joints:
                value = angles.get(joint.name, 0.0)
                if joint.kind == "prismatic":
                    place = place @ placement(tuple(np.multiply(joint.axis, value).tolist()))
                else:
                    place = place @ placement(ZERO, rotation_about(joint.axis, value))
            places[link.name] = place
        return places

    def center_of_mass(self, places: dict[str, np.ndarray]) -> np.ndarray:
        moments = [link.mass * (places[link.name] @ [*link.com, 1.0])[:3] for link in self.links.values()]
        return np.sum(moments, axis=0) / sum(link.mass for link in self.links.values())


def placement(xyz: Triple, rotation: np.ndarray | None = None) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, 3] = xyz
    if rotation is not None:
        matrix[:3, :3] = rotation
    return matrix


def rotation_about(axis: Triple, angle: float) -> np.ndarray:
    """Rodrigues' formula; the axis has length 1."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + math.sin(angle) * K + (1.0 - math.cos(angle)) * K @ K


def rotation_of(rpy: Triple) -> np.ndarray:
    """URDF's roll, pitch and yaw: about the fixed axes x, y, z, in this order."""
    roll, pitch, yaw = rpy
    return rotation_about(Z, yaw) @ rotation_about(Y, pitch) @ rotation_about(X, roll)


def mirrored(point: Triple, side: float) -> Triple:
    """The point of the left side (side 1) or its mirror image on the right (side -1)."""
    return point[0], side * point[1], point[2]
