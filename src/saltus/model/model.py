"""The model of a robot: a frozen tree of joints and bodies, with frames and limits, in Pinocchio's conventions."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from saltus.model.checks import Array, ModelError, checked_name, finite, finite_each, not_negative, read_only
from saltus.model.frames import Frame, FrameKind
from saltus.model.joints import SPRING_KINDS, Joint, JointKind, rebuilt
from saltus.model.loops import Actuator, Loop
from saltus.model.shapes import Shape

if TYPE_CHECKING:
    from saltus.model.coupling import Coupling


PER_COORDINATE = ("lower_position_limit", "upper_position_limit")
PER_DOF = ("velocity_limit", "effort_limit", "armature", "friction", "damping", "stiffness", "spring_reference")
"""Fields with a number for each coordinate, and for each degree of freedom."""

UNIT_TOLERANCE = 1e-6  # of the squared length of quaternions, cosines and sines: what the algorithms accept


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A robot. It never changes: arrays and mappings are read-only, `replace` gives a new one.

    Make one with `load_urdf` or `ModelBuilder`.

    >>> from saltus.model import ModelBuilder
    >>> builder = ModelBuilder("pendulum")
    >>> hinge = builder.add_joint("hinge", "revolute", axis=(0, 1, 0))
    >>> _ = builder.add_body(hinge, mass=1.0, com=(0, 0, -0.5))
    >>> model = builder.build()
    >>> model
    Model('pendulum', nq=1, nv=1, njoints=2, nframes=3)
    >>> model.joint_index("hinge"), model.neutral()
    (1, array([0.]))
    """

    name: str
    joints: tuple[Joint, ...]  # joints[0] is the universe; parents come before children
    frames: tuple[Frame, ...]  # frames[0] is the universe
    lower_position_limit: Array  # (nq,) [rad, m]; infinite where there is none
    upper_position_limit: Array  # (nq,)
    velocity_limit: Array  # (nv,) [rad/s, m/s], on the absolute value
    effort_limit: Array  # (nv,) [N m, N], on the absolute value
    armature: Array  # (nv,) inertia of the rotors, seen at the joint [kg m^2, kg]
    friction: Array  # (nv,) dry friction [N m, N]
    damping: Array  # (nv,) viscous friction [N m s/rad, N s/m]
    stiffness: Array = field(default_factory=lambda: np.zeros(()))  # (nv,) of springs [N m/rad, N/m]
    spring_reference: Array = field(default_factory=lambda: np.zeros(()))  # (nv,) where they are at rest [rad, m]
    gravity: Array = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))  # (3,) in the world [m/s^2]
    reference_configurations: Mapping[str, Array] = field(default_factory=dict)  # name: (nq,)
    loops: tuple[Loop, ...] = ()  # what the file closes; the tree's dynamics know nothing of them
    actuators: tuple[Actuator, ...] = ()
    shapes: tuple[Shape, ...] = ()  # for pictures
    colliders: tuple[Shape, ...] = ()  # what its bodies touch the world and each other with
    apart: tuple[tuple[str, str], ...] = ()  # pairs that are never tested: names of colliders, their frames or joints
    specialised: bool = False  # whether algorithms run code of its own: see `specialise`

    varied: ClassVar[bool] = False
    """Whether it stands for robots that differ in their inertias: see `vary_inertia`."""

    def __post_init__(self) -> None:
        checked_name(self.name, "a model")
        parts = {"joints": Joint, "frames": Frame, "loops": Loop, "actuators": Actuator}
        parts |= {"shapes": Shape, "colliders": Shape}
        for name, kind in parts.items():
            self._set(name, _all_of(kind, getattr(self, name), name))
        _check_tree(self.joints, self.frames)
        self._check_parts()
        for name in ("lower_position_limit", "upper_position_limit"):
            self._set(name, read_only(getattr(self, name), (self.nq,), name))
        for name in ("velocity_limit", "effort_limit"):
            self._set(name, not_negative(getattr(self, name), self.nv, name, infinite=True))
        for name in ("armature", "friction", "damping", "stiffness"):
            self._set(name, not_negative(getattr(self, name), self.nv, name))
        self._check_springs()
        self._set("gravity", finite(self.gravity, (3,), "gravity"))
        self._set("reference_configurations", MappingProxyType(self._checked_references()))
        lower, upper = self.lower_position_limit, self.upper_position_limit
        wrong = np.flatnonzero((lower > upper) | np.isposinf(lower) | np.isneginf(upper))
        if wrong.size:
            k = int(wrong[0])
            raise ModelError(
                f"{self._owner_of(k)}: its lower position limit {lower[k]} and its upper one {upper[k]}, at q[{k}], "
                "leave no room; expected the lower one to be below"
            )

    def _checked_references(self) -> dict[str, Array]:
        if not isinstance(self.reference_configurations, Mapping):
            raise TypeError(
                f"reference_configurations is {self.reference_configurations!r}, expected a mapping of names"
            )
        references = {}
        for name, q in self.reference_configurations.items():
            what = f"reference configuration {name!r}"
            references[name] = finite(q, (self.nq,), what)
            for joint in self.joints:
                part = joint.kind.unit_coordinates
                unit = references[name][joint.iq + part.start : joint.iq + part.stop]
                if unit.size and abs(unit @ unit - 1.0) > UNIT_TOLERANCE:
                    raise ModelError(f"{what}: its part of joint {joint.name!r} is {unit.tolist()}, expected length 1")
        return references

    def _owner_of(self, k: int) -> str:
        """The joint that q[k] belongs to."""
        joint = next(joint for joint in self.joints if 0 <= k - joint.iq < joint.nq)
        return f"joint {joint.name!r}"

    def _check_springs(self) -> None:
        """A spring needs one coordinate that says how far it is bent."""
        self._set("spring_reference", finite_each(self.spring_reference, self.nv, "spring_reference"))
        for joint in self.joints[1:]:
            if joint.kind not in SPRING_KINDS and self.stiffness[joint.iv : joint.iv + joint.nv].any():
                raise ModelError(
                    f"joint {joint.name!r} is {joint.kind.name} and has a stiffness, expected one with a single coordinate: "
                    "REVOLUTE or PRISMATIC"
                )

    def _check_parts(self) -> None:
        """Loops, actuators and shapes must be about frames and joints that there are."""
        for loop in self.loops:
            for frame in (loop.frame_a, loop.frame_b):
                self.frame_index(frame)
        for actuator in self.actuators:
            if self.joints[self.joint_index(actuator.joint)].nv != 1:
                raise ModelError(
                    f"actuator {actuator.name!r}: joint {actuator.joint!r} has not one degree of freedom of its own"
                )
        for shape in (*self.shapes, *self.colliders):
            self._checked_index("joint", shape.joint, self.njoints)
        self._set("apart", _pairs_of_names(self.apart))

    @cached_property
    def nq(self) -> int:
        """Size of a configuration q."""
        return sum(joint.nq for joint in self.joints)

    @cached_property
    def nv(self) -> int:
        """Size of a velocity v: the degrees of freedom."""
        return sum(joint.nv for joint in self.joints)

    @property
    def njoints(self) -> int:
        """How many joints, the universe among them."""
        return len(self.joints)

    @property
    def nb(self) -> int:
        """How many moving bodies: the joints without the universe."""
        return len(self.joints) - 1

    @cached_property
    def total_mass(self) -> float:
        """Mass of all that moves [kg]; what is fixed to the world does not count."""
        return float(sum(joint.mass for joint in self.joints[1:]))

    def joint_index(self, joint: str | int) -> int:
        """Index of the joint of this name. An index is checked and returned."""
        if isinstance(joint, str):
            if joint not in self._joint_indices:
                raise ModelError(_unknown("joint", joint, self._joint_indices, self.name))
            return self._joint_indices[joint]
        return self._checked_index("joint", joint, self.njoints)

    def frame_index(self, frame: str | int, kind: FrameKind | None = None) -> int:
        """Index of the frame of this name (and kind, where frames of several kinds share it).

        An index is checked and returned.
        """
        if not isinstance(frame, str):
            return self._checked_index("frame", frame, len(self.frames))
        if frame not in self._frame_indices:
            raise ModelError(_unknown("frame", frame, self._frame_indices, self.name))
        named = self._frame_indices[frame]
        found = [index for index in named if kind is None or self.frames[index].kind == kind]
        if len(found) == 1:
            return found[0]
        kinds = ", ".join(self.frames[index].kind.name for index in named)
        raise ModelError(f"model {self.name!r}: frame {frame!r} exists as {kinds}; give one of these as kind")

    def neutral(self) -> Array:
        """The configuration (nq,) in which no joint moves its body: zeros, unit quaternions.

        Always a new array.
        """
        return np.array([value for joint in self.joints if not joint.mimic for value in joint.kind.neutral])

    def replace(self, **changes: Any) -> Model:
        """The same model with other values for some of its fields.

        >>> from saltus.model import random_model
        >>> random_model(seed=1, bodies=3).replace(gravity=(0, 0, -1.62)).gravity
        array([ 0.  ,  0.  , -1.62])
        """
        names = [each.name for each in fields(self)]
        for name in changes:
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(names)}"
                raise TypeError(f"a Model has no field {name!r}; {hint}")
        return replace(self, **changes)

    def with_armature(self, armature: ArrayLike) -> Model:
        """The same model with this armature: one number for all degrees of freedom, or (nv,) [kg m^2, kg]."""
        return replace(self, armature=not_negative(armature, self.nv, "armature"))

    def __repr__(self) -> str:
        sizes = f"nq={self.nq}, nv={self.nv}, njoints={self.njoints}, nframes={len(self.frames)}"
        return f"Model({self.name!r}, {sizes}{', specialised' if self.specialised else ''})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        call, values = rebuilt(self)
        return call, tuple(dict(value) if isinstance(value, MappingProxyType) else value for value in values)

    @cached_property
    def filled(self) -> dict[Any, Any]:
        """The tables that kernels see of the model, as they are asked for (kernel/tables.py)."""
        found: dict[Any, Any] = self.__dict__.setdefault("filled", {})  # another thread may have been faster
        return found

    @cached_property
    def quick(self) -> dict[Any, Any]:
        """By algorithm, the shortest way to call it with one sample, for each number of inputs (kernel/front.py)."""
        found: dict[Any, Any] = self.__dict__.setdefault("quick", {})
        return found

    @cached_property
    def parts(self) -> dict[Any, Any]:
        """The parts of these tables, each filled once."""
        found: dict[Any, Any] = self.__dict__.setdefault("parts", {})
        return found

    @cached_property
    def coupling(self) -> Coupling | None:
        """What ties mimic joints to those they follow; None if there are none."""
        from saltus.model.coupling import couple

        return couple(self)

    @cached_property
    def weightless(self) -> tuple[int, ...]:
        """The degrees of freedom that have no inertia in any configuration: where there are some, nothing can be divided by
        the inertia matrix, as forward dynamics do.

        >>> from saltus.model import ModelBuilder
        >>> builder = ModelBuilder("rod", physical=False)
        >>> _ = builder.add_body(builder.add_joint("hinge", "revolute", axis=(1, 0, 0)), mass=1.0, com=(0.5, 0, 0))
        >>> rod = builder.build()
        >>> rod.weightless, rod.with_armature(0.01).weightless
        ((0,), ())
        """
        from saltus.model.weightless import find_weightless

        return find_weightless(self)

    def refuse_weightless(self, algorithm: str) -> None:
        """Raises what an algorithm that divides by inertias answers to joints that have none."""
        if self.weightless:
            at = set(self.weightless)
            names = [x.name for x in self.joints[1:] if at & set(range(x.iv, x.iv + x.nv))]
            more = f" and {len(names) - 8} more" if len(names) > 8 else ""
            raise ModelError(
                f"{algorithm}: model {self.name!r} has joints without inertia, which no torque can accelerate: "
                f"{', '.join(map(repr, names[:8]))}{more}; expected a mass or inertia that moves with each. Give them one, "
                "an armature (`with_armature`; their degrees of freedom are `weightless`), or fixed joints in their place"
            )

    @cached_property
    def selections(self) -> dict[Any, Array]:
        """Frames and joints that were asked for, as the kernels are told of them."""
        return {}

    @cached_property
    def _joint_indices(self) -> dict[str, int]:
        return {joint.name: index for index, joint in enumerate(self.joints)}

    @cached_property
    def _frame_indices(self) -> dict[str, list[int]]:
        indices: dict[str, list[int]] = {}
        for index, frame in enumerate(self.frames):
            indices.setdefault(frame.name, []).append(index)
        return indices

    def _checked_index(self, what: str, index: int, count: int) -> int:
        try:
            index = operator.index(index)
        except TypeError:
            raise TypeError(f"model {self.name!r}: {index!r} is no {what}; expected its name or its index") from None
        if not 0 <= index < count:
            raise ModelError(f"model {self.name!r} has no {what} {index}; its indices run from 0 to {count - 1}")
        return index

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


def _all_of(kind: type[Any], values: Any, what: str) -> tuple[Any, ...]:
    """What should be a sequence of things of one kind, as a tuple of them."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{what} is {values!r}, expected a sequence of {kind.__name__}")
    items = tuple(values)
    for index, item in enumerate(items):
        if not isinstance(item, kind):
            raise TypeError(f"{what}[{index}] is {item!r}, expected a {kind.__name__}")
    return items


def _pairs_of_names(values: Any) -> tuple[tuple[str, str], ...]:
    """What should be pairs of names, as tuples."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"apart is {values!r}, expected pairs of names")
    pairs = []
    for index, pair in enumerate(values):
        names = tuple(pair) if isinstance(pair, Sequence) and not isinstance(pair, str) else ()
        if len(names) != 2 or not all(isinstance(name, str) for name in names):
            raise TypeError(f"apart[{index}] is {pair!r}, expected two names")
        pairs.append((names[0], names[1]))
    return tuple(pairs)


def _check_tree(joints: tuple[Joint, ...], frames: tuple[Frame, ...]) -> None:
    """The invariants that algorithms rely on: an ordered tree, and q and v filled without gaps."""
    if not joints or joints[0].kind != JointKind.UNIVERSE:
        raise ModelError("joints[0] must be the universe")
    by_name = {joint.name: joint for joint in joints}
    if len(by_name) < len(joints):
        raise ModelError(f"there are two joints {_first_repeated(joint.name for joint in joints)!r}")
    iq = iv = 0
    for index, joint in enumerate(joints[1:], start=1):
        where = f"joint {index} {joint.name!r}"
        if joint.kind == JointKind.UNIVERSE or not 0 <= joint.parent < index:
            raise ModelError(f"{where}: its parent is {joint.parent}, expected an index from 0 to {index - 1}")
        expected = (iq, iv)
        if joint.mimic:
            primary = by_name.get(joint.mimic.primary)
            if primary is None or primary.mimic:
                raise ModelError(f"{where}: it mimics {joint.mimic.primary!r}, which has no q and v of its own")
            expected = (primary.iq, primary.iv)
        if (joint.iq, joint.iv) != expected:
            raise ModelError(f"{where}: iq, iv are {joint.iq}, {joint.iv}, expected {expected[0]}, {expected[1]}")
        iq, iv = iq + joint.nq, iv + joint.nv
    if not frames:
        raise ModelError("frames[0] must be the universe")
    repeated = _first_repeated((frame.name, frame.kind) for frame in frames)
    if repeated is not None:
        raise ModelError(
            f"there are two {repeated[1].name} frames {repeated[0]!r}; expected frames of a name to differ in kind"
        )
    for index, frame in enumerate(frames):
        if not (0 <= frame.joint < len(joints) and 0 <= frame.parent < len(frames)):
            raise ModelError(
                f"frame {index} {frame.name!r}: joint {frame.joint} or frame {frame.parent} does not exist"
            )


def _first_repeated(values: Iterable[Any]) -> Any:
    """The first value that has been there before; None if there is none."""
    seen = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def _unknown(what: str, name: str, known: Iterable[str], model: str) -> str:
    near = difflib.get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {', '.join(list(known)[:8])} ..."
    return f"model {model!r} has no {what} {name!r}; {hint}"
