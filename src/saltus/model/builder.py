"""Models built joint by joint.

Bodies fixed to the same joint are merged into one, as Pinocchio merges them: masses add, the common centre of mass
is their weighted mean, and inertias are moved there by the parallel axis theorem.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from saltus.model.checks import (
    Array,
    ModelError,
    checked_name,
    finite,
    finite_each,
    inertia_flaw,
    not_negative,
    rigid_placement,
    spread,
    unit_vector,
    whole_number,
)
from saltus.model.frames import Frame, FrameKind
from saltus.model.joints import Joint, JointKind, Mimic
from saltus.model.loops import Actuator, Loop
from saltus.model.merging import merged
from saltus.model.model import PER_DOF, Model
from saltus.model.shapes import DEFAULT_COLOR, Shape

UNIT_LIMIT = 1.01  # Pinocchio's bound on cosines, sines and quaternions: it never binds
ROUNDING = 1e-12  # a limit that is divided by a gear and multiplied again stays as it was
_IDENTITY = np.eye(4)


@dataclass
class _Draft:
    """A joint under construction, with the bodies merged so far."""

    name: str
    kind: JointKind
    parent: int
    placement: Array
    axis: Array
    mimic: Mimic | None
    frame: int
    lower: Array = field(default_factory=lambda: np.empty(0))
    upper: Array = field(default_factory=lambda: np.empty(0))
    per_dof: dict[str, Array] = field(default_factory=dict)  # the model's arrays (nv,): this joint's part
    mass: float = 0.0
    com: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))

    def merge(self, mass: float, com: Array, inertia: Array) -> None:
        self.mass, self.com, self.inertia = merged((self.mass, self.com, self.inertia), (mass, com, inertia))


class ModelBuilder:
    """Builds a `Model` from joints, bodies and frames, in the order in which they are added.

    With `physical=False` it accepts inertias that no body can have and moving tips without mass, as robot files
    in the wild contain them. Numbers must be finite and masses not negative in any case.

    >>> builder = ModelBuilder("arm")
    >>> shoulder = builder.add_joint("shoulder", "revolute", axis=(0, 1, 0), lower=-2.0, upper=2.0)
    >>> _ = builder.add_body(shoulder, mass=1.5, com=(0.2, 0, 0), inertia=np.diag([0.01, 0.02, 0.02]), name="arm")
    >>> tip = np.eye(4)
    >>> tip[0, 3] = 0.4
    >>> _ = builder.add_frame("tip", "shoulder", tip)
    >>> builder.build()
    Model('arm', nq=1, nv=1, njoints=2, nframes=4)
    """

    def __init__(self, name: str = "robot", gravity: ArrayLike = (0.0, 0.0, -9.81), *, physical: bool = True) -> None:
        self._name = checked_name(name, "a model")
        self._gravity = finite(gravity, (3,), "gravity")
        self._physical = physical
        axis = np.array([0.0, 0.0, 1.0])
        self._drafts = [_Draft("universe", JointKind.UNIVERSE, -1, _IDENTITY, axis, None, frame=0)]
        self._indices = {"universe": 0}
        self._frames = [Frame("universe", 0, _IDENTITY, FrameKind.FIXED_JOINT, 0)]
        self._frame_names = {("universe", FrameKind.FIXED_JOINT)}
        self._last_numbers: dict[str, int] = {}  # of frames whose name was taken
        self._references: dict[str, Any] = {}
        self._loops: list[Loop] = []
        self._actuators: list[Actuator] = []
        self._shapes: list[Shape] = []
        self._colliders: list[Shape] = []
        self._apart: list[tuple[str, str]] = []

    def add_joint(
        self,
        name: str,
        kind: JointKind | str,
        parent: str | int = "universe",
        placement: ArrayLike = _IDENTITY,
        axis: ArrayLike = (0.0, 0.0, 1.0),
        *,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        velocity_limit: ArrayLike | None = None,
        effort_limit: ArrayLike | None = None,
        armature: ArrayLike = 0.0,
        friction: ArrayLike = 0.0,
        damping: ArrayLike = 0.0,
        stiffness: ArrayLike = 0.0,
        spring_reference: ArrayLike = 0.0,
        mimic: Mimic | None = None,
        parent_frame: int | None = None,
    ) -> int:
        """Adds a joint and its frame; returns the joint's index.

        kind: a `JointKind` or its lower-case name.
        placement: (4, 4) of the joint in the parent joint's frame [m].
        axis: (3,) in the joint's frame, of any length; only for revolute, continuous and prismatic joints.
        lower, upper: position limits, one number or (nq,) [rad, m]; none by default.
        velocity_limit, effort_limit, armature, friction, damping: one number or (nv,); no limit by default.
        stiffness, spring_reference: of a spring on a revolute or prismatic joint, and where it is at rest
            [N m/rad, N/m; rad, m].
        mimic: the joint follows another one, added before or later. It has no limits or armature of its own.
        parent_frame: index of the frame it is attached to, by default that of the parent joint.
        """
        where = f"joint {checked_name(name, 'a joint')!r}"
        kind = JointKind.of(kind)
        if kind == JointKind.UNIVERSE:
            raise ModelError(f"{where}: there is only one universe; expected a kind that moves")
        if name in self._indices:
            raise ModelError(f"{where}: its name is that of another joint")
        parent = self._joint(parent, where)
        draft = _Draft(
            name,
            kind,
            parent,
            rigid_placement(placement, f"placement of {where}"),
            unit_vector(axis if kind.has_axis else (0.0, 0.0, 1.0), f"axis of {where}"),
            mimic,
            frame=len(self._frames),
        )
        per_dof = {
            "velocity_limit": np.inf if velocity_limit is None else velocity_limit,
            "effort_limit": np.inf if effort_limit is None else effort_limit,
            "armature": armature,
            "friction": friction,
            "damping": damping,
            "stiffness": stiffness,
        }
        if mimic is None:
            draft.lower, draft.upper = _position_limits(kind, lower, upper, where)
            draft.per_dof = {
                key: not_negative(value, kind.nv, f"{key} of {where}", infinite=key.endswith("limit"))
                for key, value in per_dof.items()
            }
            what = f"spring_reference of {where}"
            draft.per_dof["spring_reference"] = finite_each(spring_reference, kind.nv, what)
        else:
            _check_mimic(kind, mimic, where)
            limits = (lower, upper, velocity_limit, effort_limit)
            if any(value is not None for value in limits) or any(map(np.any, (armature, friction, damping, stiffness))):
                raise ModelError(f"{where}: it mimics {mimic.primary!r}, so it has no limits or armature of its own")
        before = self._drafts[parent].frame if parent_frame is None else parent_frame
        self._append_frame(name, len(self._drafts), _IDENTITY, FrameKind.JOINT, before)
        self._indices[name] = len(self._drafts)
        self._drafts.append(draft)
        return self._indices[name]

    def add_body(
        self,
        joint: str | int,
        mass: float,
        com: ArrayLike = (0.0, 0.0, 0.0),
        inertia: ArrayLike = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        placement: ArrayLike = _IDENTITY,
        name: str | None = None,
        *,
        parent_frame: int | None = None,
    ) -> int:
        """Fixes a body to a joint, together with those already there; returns the index of the body's frame.

        mass [kg]; com (3,) [m] and inertia (3, 3) about the com [kg m^2], both in the body's frame.
        placement: (4, 4) of the body's frame in the joint's frame [m].
        name: of the body's frame, by default the joint's with `_body` appended.
        parent_frame: index of the frame the body is attached to, by default that of the joint.
        """
        index = self._joint(joint, "a body")
        draft = self._drafts[index]
        name = self._free_name(f"{draft.name}_body", FrameKind.BODY) if name is None else name
        where = f"body {name!r}"
        matrix = rigid_placement(placement, f"placement of {where}")
        center = finite(com, (3,), f"com of {where}")
        tensor = finite(inertia, (3, 3), f"inertia of {where}")
        mass = float(finite(mass, (), f"mass of {where}"))
        if mass < 0:
            raise ModelError(f"{where}: its mass is {mass}, expected no negative number")
        flaw = inertia_flaw(mass, tensor) if self._physical else None
        if flaw:
            raise ModelError(f"{where}: {flaw}")
        frame = self._append_frame(name, index, matrix, FrameKind.BODY, parent_frame)
        rotation = matrix[:3, :3]
        draft.merge(mass, rotation @ center + matrix[:3, 3], rotation @ tensor @ rotation.T)
        return frame

    def add_frame(
        self,
        name: str,
        joint: str | int,
        placement: ArrayLike = _IDENTITY,
        kind: FrameKind = FrameKind.OP,
        *,
        parent: int | None = None,
    ) -> int:
        """Adds a named frame at this placement (4, 4) in the joint's frame; returns its index."""
        return self._append_frame(name, self._joint(joint, f"frame {name!r}"), placement, kind, parent)

    def add_reference(self, name: str, q: ArrayLike) -> None:
        """Stores a configuration (nq,) under a name; its size is checked by `build`."""
        self._references[checked_name(name, "a reference configuration")] = q

    def add_loop(self, name: str, frame_a: str, frame_b: str, dim: int) -> None:
        """Closes a loop: two frames stay together, as a point (dim 3), a hinge about z (5) or a weld (6)."""
        self._loops.append(Loop(name, frame_a, frame_b, dim))

    def close_loop(
        self,
        name: str,
        joint_a: str | int,
        placement_a: ArrayLike,
        joint_b: str | int,
        placement_b: ArrayLike,
        dim: int,
    ) -> None:
        """Like `add_loop`, with frames `<name>_a` and `<name>_b` made for it at placements (4, 4) in two joints' frames."""
        names = []
        for side, joint, placement in (("a", joint_a, placement_a), ("b", joint_b, placement_b)):
            names.append(f"{name}_{side}")
            while any((names[-1], kind) in self._frame_names for kind in FrameKind):
                names[-1] += "_"
            self.add_frame(names[-1], joint, placement)
        self.add_loop(name, names[0], names[1], dim)

    def add_actuator(
        self,
        name: str,
        joint: str,
        gear: float = 1.0,
        lower: float = -np.inf,
        upper: float = np.inf,
        command: str = "effort",
    ) -> None:
        """Adds a motor whose effort, from `lower` to `upper`, times `gear` acts on a joint [N m, N]; see `Actuator`.

        What the actuators of a joint can do together limits its effort.
        """
        self._actuators.append(Actuator(name, joint, gear, lower, upper, command))  # type: ignore[arg-type]

    def add_shape(
        self,
        joint: str | int,
        kind: str,
        size: ArrayLike,
        placement: ArrayLike = _IDENTITY,
        *,
        color: ArrayLike = DEFAULT_COLOR,
        path: str = "",
        name: str = "",
    ) -> None:
        """Fixes a shape (see `Shape`) at this placement (4, 4) in a joint's frame."""
        index = self._joint(joint, "a shape")
        self._shapes.append(Shape(name, index, kind, size, placement, color, path))  # type: ignore[arg-type]

    def add_shapes(self, joint: str | int, shapes: Iterable[Shape], placement: ArrayLike = _IDENTITY) -> None:
        """Fixes shapes to a joint that are placed in a frame, itself at this placement (4, 4) in the joint's frame."""
        self._shapes += self._placed(joint, shapes, placement)

    def add_collider(
        self,
        joint: str | int,
        kind: str,
        size: ArrayLike,
        placement: ArrayLike = _IDENTITY,
        *,
        friction: float | None = None,
        path: str = "",
        name: str = "",
        frame: str = "",
    ) -> None:
        """Fixes a collision shape (see `Shape`) at this placement (4, 4) in a joint's frame; of a mesh the hull counts.

        friction: coefficient, by default that of whatever it touches. frame: the link or body whose it is, by its name.
        """
        index = self._joint(joint, "a collider")
        shape = Shape(name, index, kind, size, placement, path=path, frame=frame, friction=friction)  # type: ignore[arg-type]
        self._colliders.append(shape)

    def add_colliders(self, joint: str | int, shapes: Iterable[Shape], placement: ArrayLike = _IDENTITY) -> None:
        """Like `add_shapes`, for collision shapes."""
        self._colliders += self._placed(joint, shapes, placement)

    def keep_apart(self, one: str, other: str) -> None:
        """No collision is looked for between two colliders, or all those of two frames or joints, by their names."""
        self._apart.append((one, other))

    def _placed(self, joint: str | int, shapes: Iterable[Shape], placement: ArrayLike) -> list[Shape]:
        index = self._joint(joint, "a shape")
        matrix, placed = rigid_placement(placement, "placement of shapes"), []
        for shape in shapes:
            if not isinstance(shape, Shape):
                raise TypeError(f"a shape is {shape!r}, expected a Shape")
            placed.append(replace(shape, joint=index, placement=matrix @ shape.placement))
        return placed

    def build(self) -> Model:
        """The model of all that was added so far. The builder may go on."""
        joints = self._numbered_joints()
        if self._physical:
            self._check_moved_masses(joints)
        own = [draft for draft in self._drafts[1:] if draft.mimic is None]
        per_dof: dict[str, Any] = {
            key: np.concatenate([np.empty(0), *(draft.per_dof[key] for draft in own)]) for key in PER_DOF
        }
        self._limit_to_actuators(per_dof["effort_limit"], joints)
        return Model(
            name=self._name,
            joints=tuple(joints),
            frames=tuple(self._frames),
            lower_position_limit=np.concatenate([np.empty(0), *(draft.lower for draft in own)]),
            upper_position_limit=np.concatenate([np.empty(0), *(draft.upper for draft in own)]),
            gravity=self._gravity,
            reference_configurations=self._references,
            loops=tuple(self._loops),
            actuators=tuple(self._actuators),
            shapes=tuple(self._shapes),
            colliders=tuple(self._colliders),
            apart=tuple(self._apart),
            **per_dof,
        )

    def _limit_to_actuators(self, effort_limit: Array, joints: list[Joint]) -> None:
        """The effort limits (nv,) of joints that have actuators: no more than these can do."""
        most: dict[str, float] = {}
        for actuator in self._actuators:
            most[actuator.joint] = most.get(actuator.joint, 0.0) + actuator.most
        for joint in joints:
            if joint.name in most and joint.nv == 1 and most[joint.name] < effort_limit[joint.iv] * (1.0 - ROUNDING):
                effort_limit[joint.iv] = most[joint.name]

    def _joint(self, joint: str | int, where: str) -> int:
        """Index of a joint added before."""
        if isinstance(joint, str):
            if joint not in self._indices:
                raise ModelError(f"{where}: there is no joint {joint!r} yet; add it first")
            return self._indices[joint]
        index = whole_number(joint, f"{where}: the joint that carries it")
        if not 0 <= index < len(self._drafts):
            raise ModelError(f"{where}: there is no joint {index} yet, expected 0 to {len(self._drafts) - 1}")
        return index

    def _free_name(self, stem: str, kind: FrameKind) -> str:
        name, count = stem, self._last_numbers.get(stem, 1)
        while (name, kind) in self._frame_names:
            count += 1
            name = f"{stem}_{count}"
        self._last_numbers[stem] = count
        return name

    def _append_frame(self, name: str, joint: int, placement: Any, kind: FrameKind, parent: int | None) -> int:
        frame = Frame(name, joint, placement, kind, self._drafts[joint].frame if parent is None else parent)
        if (name, frame.kind) in self._frame_names:
            raise ModelError(f"frame {name!r}: its name is that of another {frame.kind.name} frame")
        if not 0 <= frame.parent < len(self._frames):
            raise ModelError(f"frame {name!r}: there is no frame {parent}, expected 0 to {len(self._frames) - 1}")
        self._frame_names.add((name, frame.kind))
        self._frames.append(frame)
        return len(self._frames) - 1

    def _numbered_joints(self) -> list[Joint]:
        """The joints with their places in q and v; those of a mimic joint are its primary's."""
        starts, iq, iv = [(-1, -1)], 0, 0
        for draft in self._drafts[1:]:
            starts.append((iq, iv))
            if draft.mimic is None:
                iq, iv = iq + draft.kind.nq, iv + draft.kind.nv
        joints, mimics = [], self._resolved_mimics()
        for draft, start in zip(self._drafts, starts, strict=True):
            mimic = mimics.get(draft.name)
            iq, iv = starts[self._indices[mimic.primary]] if mimic else start
            joints.append(
                Joint(
                    draft.name, draft.kind, draft.parent, draft.placement, draft.axis,
                    draft.mass, draft.com, draft.inertia, iq, iv, mimic,
                )
            )  # fmt: skip
        return joints

    def _resolved_mimics(self) -> dict[str, Mimic]:
        """Of every joint that follows another one: that with q and v of its own at the end of the chain."""
        resolved: dict[str, Mimic] = {}
        for start in self._drafts:
            chain: dict[str, Mimic] = {}  # from here to a joint that is free or resolved
            draft = start
            while draft.mimic is not None and draft.name not in resolved:
                if draft.name in chain:
                    raise ModelError(f"joint {start.name!r}: it mimics itself, by way of {', '.join(sorted(chain))}")
                chain[draft.name] = draft.mimic
                draft = self._primary(draft, draft.mimic)
            for name, mimic in reversed(chain.items()):
                further = resolved.get(mimic.primary)
                if further is not None:
                    offset = mimic.ratio * further.offset + mimic.offset
                    mimic = Mimic(further.primary, mimic.ratio * further.ratio, offset)
                resolved[name] = mimic
        return resolved

    def _primary(self, draft: _Draft, mimic: Mimic) -> _Draft:
        if mimic.primary not in self._indices:
            raise ModelError(f"joint {draft.name!r}: it mimics {mimic.primary!r}, but there is no such joint")
        primary = self._drafts[self._indices[mimic.primary]]
        if primary.kind.nv != 1 or primary.kind.nq != draft.kind.nq:
            raise ModelError(
                f"joint {draft.name!r} ({draft.kind.name}) cannot mimic {primary.name!r} ({primary.kind.name}): "
                "expected both continuous, or both revolute or prismatic"
            )
        return primary

    def _check_moved_masses(self, joints: list[Joint]) -> None:
        """A joint that moves no mass (and has no armature) would make the mass matrix singular."""
        moved = np.array([joint.mass for joint in joints])
        for index in range(len(joints) - 1, 0, -1):
            moved[joints[index].parent] += moved[index]
        for joint, mass in zip(joints, moved.copy(), strict=True):
            if joint.mimic:
                moved[self._indices[joint.mimic.primary]] += mass
        for joint, draft, mass in zip(joints[1:], self._drafts[1:], moved[1:], strict=True):
            if mass == 0 and not joint.mimic and (draft.per_dof["armature"] == 0).any():
                raise ModelError(
                    f"joint {joint.name!r}: neither it nor any joint after it has mass; add a body or an armature"
                )


def _position_limits(
    kind: JointKind, lower: ArrayLike | None, upper: ArrayLike | None, where: str
) -> tuple[Array, Array]:
    bound = np.full(kind.nq, np.inf)
    bound[kind.unit_coordinates] = UNIT_LIMIT
    low = spread(-bound if lower is None else lower, kind.nq, f"lower limit of {where}")
    high = spread(bound if upper is None else upper, kind.nq, f"upper limit of {where}")
    if np.isposinf(low).any() or np.isneginf(high).any():
        raise ModelError(f"{where}: its limits are {low.tolist()} and {high.tolist()}, which leaves it no position")
    if (low > high).any():
        raise ModelError(f"{where}: its lower limit {low.tolist()} is above its upper limit {high.tolist()}")
    return low, high


def _check_mimic(kind: JointKind, mimic: Mimic, where: str) -> None:
    if not isinstance(mimic, Mimic):
        raise ModelError(f"{where}: its mimic is {mimic!r}, expected a Mimic")
    if not kind.has_axis:
        raise ModelError(f"{where}: a {kind.name} joint cannot mimic another, only one with an axis can")
