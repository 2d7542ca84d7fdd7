"""Frames: named places on the bodies of a model (links, joints, tool tips, soles, sensors)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from saltus.model.checks import Array, finite
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
        object.__setattr__(self, "placement", finite(self.placement, (4, 4), f"placement of frame {self.name!r}"))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return rebuilt(self)
