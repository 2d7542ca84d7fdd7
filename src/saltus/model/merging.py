"""What it takes to make one model of parts of others: bodies merged into one, shapes that stay told apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from saltus.model.checks import Array
from saltus.model.joints import Joint
from saltus.model.shapes import Shape

if TYPE_CHECKING:
    from saltus.model.model import Model

Body = tuple[float, Array, Array]
"""Mass [kg], centre of mass (3,) [m], and inertia (3, 3) about it [kg m^2]."""


def merged(one: Body, other: Body) -> Body:
    """Two bodies in the same frame as one: inertias are moved to the common centre of mass by the parallel axis theorem."""
    (m, c, I), (n, d, J) = one, other
    total = m + n
    if total == 0.0:
        return total, c, I + J
    return total, (m * c + n * d) / total, I + J + (m * n / total) * _point_inertia(c - d)


def _point_inertia(offset: Array) -> Array:
    """Inertia (3, 3) about the origin of a unit point mass at this offset (3,)."""
    return np.eye(3) * (offset @ offset) - np.outer(offset, offset)


def with_load(joint: Joint, load: Joint, placement: Array) -> Joint:
    """A joint whose body carries that of another one, the frame of which is at a placement (4, 4) in its own."""
    R, p = placement[:3, :3], placement[:3, 3]
    body = load.mass, R @ load.com + p, R @ load.inertia @ R.T
    mass, com, inertia = merged((joint.mass, joint.com, joint.inertia), body)
    return replace(joint, mass=mass, com=com, inertia=inertia)


def placed(shapes: Iterable[Shape], joint: list[int], placement: list[Array]) -> tuple[Shape, ...]:
    """Shapes on other joints: for each joint by its index, the one that carries them now, and where in its frame."""
    return tuple(replace(x, joint=joint[x.joint], placement=placement[x.joint] @ x.placement) for x in shapes)


def told_by_shape(model: Model) -> tuple[tuple[Shape, ...], tuple[tuple[str, str], ...]]:
    """Colliders, and pairs of them that are kept apart, which name no joint: what that carries is about to change."""
    names = {name for pair in model.apart for name in pair} & {joint.name for joint in model.joints}
    colliders, of_joint = [], {name: set[str]() for name in names}
    for shape in model.colliders:
        joint = model.joints[shape.joint].name
        if joint in names:
            shape = replace(shape, frame=shape.frame or shape.name or f"{joint}_collider")
            of_joint[joint].add(shape.frame)
        for name in names & {shape.name, shape.frame}:
            of_joint[name].add(name)
        colliders.append(shape)
    pairs = [(x, y) for a, b in model.apart for x in sorted(of_joint.get(a, {a})) for y in sorted(of_joint.get(b, {b}))]
    return tuple(colliders), tuple(dict.fromkeys(pairs))
