"""Constraints: rows of the relative motion of two frames that are asked to vanish, or rows that the user gives.

| kind | rows of the motion of frame A relative to B, along the axes of A | acceleration |
|---|---|---|
| point (dim 3) | linear, each frame's own origin | classical |
| hinge (dim 5) | linear and angular but for the turn about z of A | spatial |
| weld (dim 6) | linear and angular | spatial |
| rows | any of the six | spatial |

A contact is a constraint whose B is fixed in the world. Conventions are those of Pinocchio's `RigidConstraintModel`, local:

    point:  R_A^T (dv_A/dt - dv_B/dt)            others:  a_A - X_AB a_B + v_A x X_AB v_B   (d/dt of v_A - X_AB v_B)

is to equal a* - kd (relative velocity) - kp (relative placement), Baumgarte's feedback with the gains of the constraint.
Forces act on body a, along the axes of A at its origin; the opposite ones on body b. A row of a contact need not come from a
placement: that frame A, a skate or a wheel, does not slip along its own y is the row (1,), a non-holonomic constraint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from saltus.model.checks import Array, ModelError, finite, rigid_placement
from saltus.model.joints import rebuilt
from saltus.model.model import Model

ROWS = {3: (0, 1, 2), 5: (0, 1, 2, 3, 4), 6: (0, 1, 2, 3, 4, 5)}
"""The rows of each kind by its dimension, linear first."""


@dataclass(frozen=True, eq=False)
class Constraint:
    """Rows of the motion of frame A, on body a, relative to frame B, on body b. Make one by `Contact`, `LoopClosure` ..."""

    name: str
    joint_a: int  # index of the joint whose body carries A
    placement_a: Array = field(repr=False)  # (4, 4) of A in that joint's frame [m]
    joint_b: int  # 0: the world
    placement_b: Array = field(repr=False)  # (4, 4) of B likewise
    rows: tuple[int, ...]  # which of the six, in this order
    point: bool  # own origins, classical acceleration
    kp: float = 0.0  # Baumgarte's gains [1/s^2]
    kd: float = 0.0  # [1/s]
    weight: Array = field(repr=False, default_factory=lambda: np.ones(6))  # (6,) by which mu is multiplied, a row
    dofs: tuple[int, ...] = ()  # that the user's rows touch; none: the rows are those of two frames
    joints: tuple[tuple[int, str], ...] = field(repr=False, default=())  # index and name of those it touches

    def __post_init__(self) -> None:
        where = f"constraint {self.name!r}"
        for name in ("placement_a", "placement_b"):
            object.__setattr__(self, name, rigid_placement(getattr(self, name), f"{name} of {where}"))
        size = len(self.rows) if self.dofs else 6
        weight = finite(np.broadcast_to(np.asarray(self.weight, float), (size,)), (size,), f"weight of {where}")
        if (weight <= 0).any():
            raise ModelError(f"{where}: its weights are {weight.tolist()}, expected positive numbers")
        object.__setattr__(self, "weight", weight)
        if not self.rows or len(set(self.rows)) < len(self.rows) or not set(self.rows) <= set(range(size)):
            raise ModelError(f"{where}: its rows are {self.rows}, expected different ones of 0 to {size - 1}")
        if min(self.kp, self.kd) < 0 or not np.isfinite([self.kp, self.kd]).all():
            raise ModelError(f"{where}: its gains are kp = {self.kp}, kd = {self.kd}, expected no negative numbers")

    @property
    def dim(self) -> int:
        """How many rows it has."""
        return len(self.rows)

    def check_model(self, model: Model) -> None:
        """Complains if the constraint was made for another model."""
        for index, name in self.joints:
            found = model.joints[index].name if index < model.njoints else None
            if found != name:
                raise ModelError(
                    f"constraint {self.name!r} is for joint {index}, {name!r}, of another model, expected one of "
                    f"{model.name!r}, whose joint {index} is {found!r}"
                )

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return rebuilt(self)


def named(model: Model, *joints: int) -> tuple[tuple[int, str], ...]:
    """Joints by index and name, by which a constraint knows its model again."""
    return tuple((index, model.joints[index].name) for index in joints)


def Contact(
    model: Model,
    frame: str | int,
    dim: int = 3,
    *,
    rows: Sequence[int] | None = None,
    anchor: ArrayLike | None = None,
    kp: float = 0.0,
    kd: float = 0.0,
    weight: ArrayLike = 1.0,
    name: str | None = None,
) -> Constraint:
    """A frame of the model that stays where it is in the world: as a point (dim 3) or as a surface (dim 6), or that does not
    move in some `rows` of its velocity (0 to 5, linear first, along its own axes).

    rows: (1,) is a skate or a wheel along x that does not slip sideways. Such rows have no placement, so no `kp`.
    anchor: (4, 4), where the frame belongs [m]; needed if `kp` is not 0.
    kp, kd: Baumgarte's gains on the errors of placement [1/s^2] and velocity [1/s].
    weight: of each row's proximal term, one number or (6,).

    >>> import saltus as sl
    >>> robot = sl.load_robot("quadruped")
    >>> sl.Contact(robot, "LF_FOOT", dim=3).dim
    3
    >>> sl.Contact(robot, "LF_FOOT", rows=(1,)).dim
    1
    """
    index = model.frame_index(frame)
    here = model.frames[index]
    if rows is not None and kp:
        raise ModelError(
            f"contact of frame {here.name!r}: kp is {kp}, but rows of its velocity have no placement to keep"
        )
    if rows is None and dim not in (3, 6):
        raise ModelError(f"contact of frame {here.name!r}: its dim is {dim}, expected 3 (point) or 6 (surface)")
    if kp and anchor is None:
        raise ModelError(f"contact of frame {here.name!r}: kp is {kp}, but no anchor says where the frame belongs")
    return Constraint(
        name or here.name, here.joint, here.placement, 0, np.eye(4) if anchor is None else np.asarray(anchor),
        ROWS[dim] if rows is None else tuple(rows), rows is None and dim == 3, kp, kd, np.asarray(weight),
        joints=named(model, here.joint),
    )  # fmt: skip


def LineContact(
    model: Model,
    frame: str | int,
    length: float | None = None,
    *,
    ends: ArrayLike | None = None,
    anchor: ArrayLike | None = None,
    kp: float = 0.0,
    kd: float = 0.0,
    weight: ArrayLike = 1.0,
    name: str | None = None,
) -> list[Constraint]:
    """An edge that stays where it is in the world: two point contacts, at the ends of a line.

    length: of a line along x of the frame, its origin in the middle [m]; or
    ends: (2, 3), two points in the frame [m].

    The other arguments are those of `Contact`; the anchor is the frame's.

    >>> import saltus as sl
    >>> robot = sl.load_robot("humanoid")
    >>> [contact.name for contact in sl.LineContact(robot, "left_sole", 0.2)]
    ['left_sole 0', 'left_sole 1']
    """
    if (length is None) == (ends is None):
        raise ModelError(f"line contact of frame {frame!r}: expected either a length or two ends")
    points = np.array([[-0.5, 0, 0], [0.5, 0, 0]]) * length if ends is None else np.asarray(ends, float)
    if points.shape != (2, 3):
        raise ModelError(f"line contact of frame {frame!r}: its ends have shape {points.shape}, expected (2, 3)")
    return _contacts_at(model, frame, points, anchor, kp, kd, weight, name)


def SurfaceContact(
    model: Model,
    frame: str | int,
    size: Sequence[float] | None = None,
    *,
    corners: ArrayLike | None = None,
    anchor: ArrayLike | None = None,
    kp: float = 0.0,
    kd: float = 0.0,
    weight: ArrayLike = 1.0,
    name: str | None = None,
) -> list[Constraint]:
    """A surface that stays where it is in the world, as point contacts at its corners: what a `Contact` of dim 6 holds, too,
    with a force at every corner. Of four corners' 12 rows six are redundant, which no method minds.

    size: (2,), of a rectangle along x and y of the frame, its origin in the middle [m]; or
    corners: (k, 3), three points in the frame or more [m].

    The other arguments are those of `Contact`; the anchor is the frame's.

    >>> import saltus as sl
    >>> robot = sl.load_robot("humanoid")
    >>> len(sl.SurfaceContact(robot, "left_sole", (0.2, 0.1)))
    4
    """
    if (size is None) == (corners is None):
        raise ModelError(f"surface contact of frame {frame!r}: expected either a size or corners")
    if size is not None:
        x, y = 0.5 * finite(np.asarray(size, float), (2,), f"size of the surface contact of frame {frame!r}")
        points = np.array([[x, y, 0.0], [-x, y, 0.0], [-x, -y, 0.0], [x, -y, 0.0]])
    else:
        points = np.asarray(corners, float)
    if points.ndim != 2 or points.shape[0] < 3 or points.shape[1] != 3:
        raise ModelError(
            f"surface contact of frame {frame!r}: its corners have shape {points.shape}, expected (>= 3, 3)"
        )
    return _contacts_at(model, frame, points, anchor, kp, kd, weight, name)


def _contacts_at(
    model: Model, frame: str | int, points: Array, anchor: ArrayLike | None, kp: float, kd: float, weight: ArrayLike,
    name: str | None,
) -> list[Constraint]:  # fmt: skip
    """Point contacts of points (k, 3) in a frame."""
    whole = Contact(model, frame, anchor=anchor, kp=kp, kd=kd, weight=weight, name=name)
    contacts = []
    for k, point in enumerate(points):
        offset = np.eye(4)
        offset[:3, 3] = point
        a, b = whole.placement_a @ offset, whole.placement_b @ offset
        contacts.append(replace(whole, name=f"{whole.name} {k}", placement_a=a, placement_b=b))
    return contacts


def UserRows(
    model: Model, count: int, dofs: Sequence[int] | None = None, *, weight: ArrayLike = 1.0, name: str = "rows"
) -> Constraint:
    """`count` rows J a = target that the user gives to each call, for what no frame describes: wheels that roll, gears,
    non-holonomic constraints of any kind.

    J comes as `rows` (..., nu, nv) of `ConstrainedDynamics.solve`, those of all `UserRows` one below the other. Its drift is
    part of `target`: for rows J(q) v = 0, that is -dJ/dt v.

    dofs: the degrees of freedom where rows may differ from zero; all by default. Fewer are faster.
    weight: of each row's proximal term, one number or (count,).

    >>> import numpy as np, saltus as sl
    >>> arm = sl.load_robot("arm")
    >>> gear = sl.ConstrainedDynamics(arm, [sl.UserRows(arm, 1, dofs=[1, 2])], "prox_ltl")
    >>> J = np.zeros((1, arm.nv))
    >>> J[0, 1:3] = 1.0, -2.0  # joint 1 turns twice as fast as joint 2
    >>> solution = gear.solve(arm.neutral(), np.zeros(arm.nv), np.zeros(arm.nv), rows=J)
    >>> bool(abs(solution.a[1] - 2 * solution.a[2]) < 1e-8)
    True
    """
    touched = tuple(range(model.nv)) if dofs is None else tuple(dofs)
    if count < 1:
        raise ModelError(f"constraint {name!r}: its count of rows is {count}, expected one or more")
    if not touched or not set(touched) <= set(range(model.nv)):
        raise ModelError(f"constraint {name!r}: its dofs are {touched}, expected some of 0 to {model.nv - 1}")
    here = np.eye(4)
    joints = [i for i, joint in enumerate(model.joints) if set(touched) & set(range(joint.iv, joint.iv + joint.nv))]
    return Constraint(
        name, 0, here, 0, here, tuple(range(count)), False, 0.0, 0.0, np.asarray(weight), touched, named(model, *joints)
    )


def LoopClosure(
    model: Model,
    frame_a: str | int,
    frame_b: str | int,
    dim: int = 6,
    *,
    rows: Sequence[int] | None = None,
    kp: float = 0.0,
    kd: float = 0.0,
    weight: ArrayLike = 1.0,
    name: str | None = None,
) -> Constraint:
    """Two frames that stay together: as a point (dim 3), a hinge about z of `frame_a` (5), a weld (6), or in any `rows` of
    their relative motion (0 to 5, linear first, along the axes of `frame_a`).

    >>> import saltus as sl
    >>> robot = sl.load_robot("humanoid")
    >>> sl.LoopClosure(robot, "left_hand", "right_hand", dim=6).dim
    6
    """
    a, b = (model.frames[model.frame_index(frame)] for frame in (frame_a, frame_b))
    label = name or f"{a.name}-{b.name}"
    if rows is None and dim not in ROWS:
        raise ModelError(f"loop {label!r}: its dim is {dim}, expected 3 (point), 5 (hinge) or 6 (weld)")
    if a.joint == b.joint:
        raise ModelError(
            f"loop {label!r}: both frames are on the same body, that of joint {model.joints[a.joint].name!r}"
        )
    return Constraint(
        label, a.joint, a.placement, b.joint, b.placement, ROWS[dim] if rows is None else tuple(rows),
        rows is None and dim == 3, kp, kd, np.asarray(weight), joints=named(model, a.joint, b.joint),
    )  # fmt: skip


def JointLock(
    model: Model, joint: str | int, *, kp: float = 0.0, kd: float = 0.0, weight: ArrayLike = 1.0
) -> Constraint:
    """A joint that does not move: its body stays where it is, at neutral, relative to the body before it."""
    index = model.joint_index(joint)
    lock = model.joints[index]
    if index == 0:
        raise ModelError("the universe has no joint to lock")
    return Constraint(
        f"lock of {lock.name}",
        index,
        np.eye(4),
        lock.parent,
        lock.placement,
        ROWS[6],
        False,
        kp,
        kd,
        np.asarray(weight),
        joints=named(model, index, lock.parent),
    )


def model_loops(model: Model, *, kp: float = 0.0, kd: float = 0.0) -> list[Constraint]:
    """The loops that the model's file declares, as constraints.

    >>> import saltus as sl
    >>> [loop.dim for loop in sl.model_loops(sl.load_robot("four_bar"))]
    [3]
    """
    return [LoopClosure(model, x.frame_a, x.frame_b, x.dim, kp=kp, kd=kd, name=x.name) for x in model.loops]
