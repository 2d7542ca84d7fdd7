"""What a robot's file says beyond the tree: loops that close it, and actuators that move it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from saltus.model.checks import ModelError, checked_name, read_only

DIMENSIONS = {3: "point", 5: "hinge", 6: "weld"}
Command = Literal["effort", "position", "velocity", "other"]


@dataclass(frozen=True)
class Loop:
    """Two frames that stay together: their origins (3), also their z axes (5), or all of them (6).

    The dynamics of the tree know nothing of it; constraints are made from it.

    >>> Loop("rod", "rod_tip", "rod_anchor", dim=3)
    Loop(name='rod', frame_a='rod_tip', frame_b='rod_anchor', dim=3)
    """

    name: str
    frame_a: str
    frame_b: str
    dim: int

    def __post_init__(self) -> None:
        for name in (self.frame_a, self.frame_b):
            checked_name(name, f"a frame of loop {self.name!r}")
        if self.dim not in DIMENSIONS:
            expected = ", ".join(f"{dim} ({name})" for dim, name in DIMENSIONS.items())
            raise ModelError(f"loop {self.name!r}: its dim is {self.dim}, expected {expected}")


@dataclass(frozen=True)
class Actuator:
    """A motor: its effort times `gear` acts on a joint that has one degree of freedom.

    >>> motor = Actuator("knee_motor", "knee", gear=50.0, lower=-4.0, upper=4.0)
    >>> motor.most
    200.0
    """

    name: str
    joint: str
    gear: float = 1.0
    lower: float = -np.inf  # of the motor's effort [N m, N]
    upper: float = np.inf
    command: Command = "effort"
    """What it is told: an effort, or a position or velocity that its own controller follows (which is left out here)."""

    def __post_init__(self) -> None:
        checked_name(self.joint, f"the joint of actuator {self.name!r}")
        for name in ("gear", "lower", "upper"):
            value = read_only(getattr(self, name), (), f"{name} of actuator {self.name!r}")
            object.__setattr__(self, name, float(value))
        if not (np.isfinite(self.gear) and self.lower <= self.upper):
            raise ModelError(
                f"actuator {self.name!r}: gear {self.gear}, effort from {self.lower} to {self.upper}; "
                "expected a finite gear and limits in order"
            )
        if self.command not in get_args(Command):
            expected = ", ".join(map(repr, get_args(Command)))
            raise ModelError(f"actuator {self.name!r}: its command is {self.command!r}, expected one of {expected}")

    @property
    def most(self) -> float:
        """The largest effort that it can have on its joint [N m, N]."""
        return abs(self.gear) * max(abs(self.lower), abs(self.upper)) if self.gear else 0.0
