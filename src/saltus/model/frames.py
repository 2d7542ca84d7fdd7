"""Frames: named places on the bodies of a model (links, joints, tool tips, soles, sensors)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from saltus.model.checks import Array, ModelError, checked_name, rigid_placement, whole_number
from saltus.model.joints import rebuilt


class FrameKind(IntEnum):
    """What a frame stands for, numbered as Pinocchio's `FrameType`.

    Two frames may have the same name if they are of different kinds: URDF files often name a joint like its link.
    """

    OP = 1  # an operational frame: added by the user
    JOINT = 2
    FIXED_JOINT = 4
    BODY = 8
    SENSOR = 16


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame fixed to the body of a joint. Its placement is a read-only copy of what was given.

    >>> import numpy as np
    >>> Frame("tool", joint=3, placement=np.eye(4), kind=FrameKind.OP, parent=7)
    Frame(name='tool', joint=3, kind=<FrameKind.OP: 1>, parent=7)
    """

    name: str
    joint: int  # index of the joint whose body carries it
    placement: Array = field(repr=False)  # (4, 4) in that joint's frame [m]
    kind: FrameKind = FrameKind.OP
    parent: int = 0  # index of the frame it was attached to

    def __post_init__(self) -> None:
        where = f"frame {checked_name(self.name, 'a frame')!r}"
        if self.kind not in tuple(FrameKind):
            raise ModelError(f"kind of {where} is {self.kind!r}, expected a FrameKind")
        object.__setattr__(self, "kind", FrameKind(self.kind))
        for name in ("joint", "parent"):
            object.__setattr__(self, name, whole_number(getattr(self, name), f"{name} of {where}"))
        object.__setattr__(self, "placement", rigid_placement(self.placement, f"placement of {where}"))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return rebuilt(self)
