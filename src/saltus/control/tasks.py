"""Tasks: what a robot should do with its centre of mass, its frames, its joints and its momentum.

    acceleration wanted = kp error + kd rate error + feed-forward,      cost = 1/2 weight (what is missed)^2

A task is plain data. Gains and weights are one number for all its rows, or one a row. Tasks of priority 1 have what those of
priority 0 leave, and so on; within a priority, weights decide. `task_tables.py` makes a list of them a table for kernels.

| task | rows | error | along |
|---|---|---|---|
| `CenterOfMassTask` | as many axes as named | position [m] | the world's axes |
| `FrameTask` | axes of the position, then those of the orientation | position [m], rotation vector [rad] | the world's axes, or its own |
| `PostureTask` | degrees of freedom of the joints named | `difference` to a configuration [rad, m] | joints |
| `MomentumTask` | as many axes as named | none: only its rate is wanted, the angular momentum [kg m^2/s] | the world's axes |
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from saltus.arrays import ArrayLike
from saltus.model.checks import ModelError, checked_name, not_negative, whole_number

Numbers: TypeAlias = float | Sequence[float]
"""One for all rows of a task, or one a row."""

KP, KD = 100.0, 20.0
"""Gains that are critically damped, of a tenth of a second."""

Reference: TypeAlias = Literal["local_world_aligned", "local"]


@dataclass(frozen=True, kw_only=True)
class CenterOfMassTask:
    """The centre of mass goes to a position in the world [m].

    axes: which of x, y and z.

    >>> CenterOfMassTask(kp=(50, 50, 80), kd=10, weight=10).rows
    3
    """

    axes: str = "xyz"
    kp: Numbers = KP  # [1/s^2]
    kd: Numbers = KD  # [1/s]
    weight: Numbers = 1.0
    priority: int = 0
    name: str = "com"

    def __post_init__(self) -> None:
        check_axes(self, "axes", self.axes, may_be_empty=False)
        check_task(self, self.rows)

    @property
    def rows(self) -> int:
        return len(self.axes)


@dataclass(frozen=True)
class FrameTask:
    """A frame of the model goes to a pose, a position or an orientation in the world.

    frame: its name; the task has the same name unless it is given one.
    position, orientation: which of their axes count, as "xyz", "z" or "".
    reference: "local_world_aligned", along the world's axes, or "local", along those of the frame.

    Errors of an orientation are rotation vectors. With one axis left out, they are those of the shortest turn to where only
    a turn about it is missing; with one alone, of the turn about that, and the others should be near.

    A gripper that points somewhere, its turn about its own z left free:

    >>> FrameTask("tool", orientation="xy", reference="local").rows
    5
    """

    frame: str
    position: str = "xyz"
    orientation: str = "xyz"
    reference: Reference = "local_world_aligned"
    kp: Numbers = KP  # [1/s^2]
    kd: Numbers = KD  # [1/s]
    weight: Numbers = 1.0
    priority: int = 0
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.frame, str):
            raise TypeError(f"FrameTask: the frame is {self.frame!r}, expected its name")
        object.__setattr__(self, "name", self.name or self.frame)
        check_axes(self, "position", self.position)
        check_axes(self, "orientation", self.orientation)
        if not self.rows:
            raise ModelError(f"task {self.name!r}: position and orientation are empty, expected an axis of one of them")
        check_task(self, self.rows)
        if self.reference not in ("local_world_aligned", "local"):
            raise ModelError(
                f"task {self.name!r}: reference is {self.reference!r}, expected 'local_world_aligned' or 'local'"
            )

    @property
    def rows(self) -> int:
        return len(self.position) + len(self.orientation)


@dataclass(frozen=True, kw_only=True)
class PostureTask:
    """Joints go to those of a configuration.

    joints: their names; by default all but a floating base.

    >>> PostureTask(joints=("knee", "ankle"), kp=20, kd=5, weight=1e-3, priority=1).joints
    ('knee', 'ankle')
    """

    joints: Sequence[str] | None = None
    kp: Numbers = KP  # [1/s^2]
    kd: Numbers = KD  # [1/s]
    weight: Numbers = 1.0
    priority: int = 0
    name: str = "posture"

    def __post_init__(self) -> None:
        check_task(self, None)
        if self.joints is not None:
            names = () if isinstance(self.joints, str) else tuple(self.joints)
            if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
                raise ModelError(f"task {self.name!r}: joints are {self.joints!r}, expected names, each once")
            object.__setattr__(self, "joints", names)


@dataclass(frozen=True, kw_only=True)
class MomentumTask:
    """The angular momentum about the centre of mass goes to a value [kg m^2/s]: its rate to kd (wanted - there is).

    >>> MomentumTask(axes="xy", kd=5).rows
    2
    """

    axes: str = "xyz"
    kd: Numbers = KD  # [1/s]
    weight: Numbers = 1.0
    priority: int = 0
    name: str = "momentum"

    def __post_init__(self) -> None:
        check_axes(self, "axes", self.axes, may_be_empty=False)
        check_task(self, self.rows)

    @property
    def rows(self) -> int:
        return len(self.axes)


AnyTask: TypeAlias = CenterOfMassTask | FrameTask | PostureTask | MomentumTask


def check_axes(task: Any, what: str, axes: Any, may_be_empty: bool = True) -> None:
    good = isinstance(axes, str) and set(axes) <= set("xyz") and len(set(axes)) == len(axes)
    if not good or not (axes or may_be_empty):
        raise ModelError(f"task {task.name!r}: {what} is {axes!r}, expected some of x, y and z, as 'xyz' or 'z'")


def check_task(task: Any, rows: int | None) -> None:
    """Name, priority, gains and weights, which become tuples where they are not one number."""
    checked_name(task.name, f"a {type(task).__name__}")
    priority = whole_number(task.priority, f"priority of task {task.name!r}")
    if priority < 0:
        raise ModelError(f"priority of task {task.name!r} is {priority}, expected 0 or more")
    object.__setattr__(task, "priority", priority)
    for name in ("kp", "kd", "weight"):
        if hasattr(task, name):
            object.__setattr__(task, name, checked_numbers(getattr(task, name), rows, f"{name} of task {task.name!r}"))
    if not np.any(task.weight):
        raise ModelError(f"task {task.name!r}: weight is {task.weight}, expected more than 0 of a row at least")


def checked_numbers(value: ArrayLike, rows: int | None, what: str) -> Numbers:
    array = not_negative(value, np.size(value) if rows is None else rows, what)
    return float(array[0]) if np.ndim(value) == 0 else tuple(array.tolist())
