"""Shapes: what the bodies of a robot look like, and what they touch the world with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from saltus.model.checks import Array, ModelError, finite, rigid_placement, whole_number
from saltus.model.joints import rebuilt

SIZES = {"box": 3, "sphere": 1, "cylinder": 2, "capsule": 2, "ellipsoid": 3, "mesh": 3}
"""How many sizes each kind has. Box: sides along x, y, z; sphere: radius; cylinder and capsule: radius and length of the
straight part, along z; ellipsoid: half-axes; mesh: scale along x, y, z. All in metres but for the scale."""

DEFAULT_COLOR = (0.7, 0.7, 0.75, 1.0)


@dataclass(frozen=True, eq=False)
class Shape:
    """A shape fixed to the body of a joint.

    >>> import numpy as np
    >>> Shape("sole", 2, "box", (0.2, 0.1, 0.02), placement=np.eye(4))
    Shape(name='sole', joint=2, kind='box', size=array([0.2 , 0.1 , 0.02]), path='')
    """

    name: str
    joint: int  # index of the joint whose body carries it; 0 is the world
    kind: str  # one of SIZES
    size: Array  # (SIZES[kind],)
    placement: Array = field(repr=False)  # (4, 4) in that joint's frame [m]
    color: Array = field(repr=False, default_factory=lambda: np.array(DEFAULT_COLOR))  # (4,) r, g, b, opacity
    path: str = ""  # of a mesh file
    frame: str = field(default="", repr=False)  # the link or body of the file that it belongs to, where that is known
    friction: float | None = field(
        default=None, repr=False
    )  # of a collision shape; None: that of what it touches counts

    def __post_init__(self) -> None:
        where = f"shape {self.name!r}"
        object.__setattr__(self, "joint", whole_number(self.joint, f"joint of {where}"))
        if self.kind not in tuple(SIZES):
            raise ModelError(f"{where}: its kind is {self.kind!r}, expected one of {', '.join(SIZES)}")
        object.__setattr__(self, "size", finite(self.size, (SIZES[self.kind],), f"size of {where}"))
        object.__setattr__(self, "placement", rigid_placement(self.placement, f"placement of {where}"))
        object.__setattr__(self, "color", finite(self.color, (4,), f"color of {where}"))
        if self.kind != "mesh" and (self.size <= 0).any():
            raise ModelError(f"{where}: its size is {self.size.tolist()}, expected positive numbers")
        if (self.kind == "mesh") != bool(self.path):
            raise ModelError(f"{where}: a mesh needs a path, and nothing else has one")
        if self.friction is not None:
            friction = float(finite(self.friction, (), f"friction of {where}"))
            if friction < 0:
                raise ModelError(f"{where}: its friction is {friction}, expected no negative number")
            object.__setattr__(self, "friction", friction)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return rebuilt(self)
