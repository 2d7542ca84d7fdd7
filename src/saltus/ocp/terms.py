"""Terms of a cost: what a motion should do, declared by plain data.

    cost of a node = dt sum_terms weight_t activation(residual_t(q, v, u, f))      (without dt at impacts and at the end)

`term_tables.py` makes a list of terms a table for kernels. Weights and references here are those of all nodes, unless a
problem is given others for single ones.

| term | residual | reference |
|---|---|---|
| `State` | difference(x_ref, x) | a state (nq + nv) |
| `Control` | u - u_ref | (nu) |
| `FramePlacement` | log6(X_ref^-1 X), in the frame | a pose |
| `FrameTranslation`, `FrameRotation` | p - p_ref; log3(R_ref^T R) | a position; a rotation |
| `FrameVelocity`, `FrameLinearVelocity` | v - v_ref, along `axes` | (6), (3) |
| `CenterOfMass` | c - c_ref | (3) |
| `CentroidalMomentum` | h - h_ref, linear first | (6) |
| `ContactForce`, `Impulse` | f - f_ref on the body that is held | as many as the contact has rows |
| `FrictionCone` | facets A f, normal force last; or abs(f_t) - friction f_n, and f_n | |
| `WrenchCone`, `CenterOfPressure` | A f of a surface, by its half sizes | |
| `Distance` | between the surfaces of two capsules, negative if they overlap | |
| `Own`, `OwnFunction` | what a kernel of the user's writes, or what a function in Python returns | any numbers |

Conventions are Crocoddyl's, so that weights can be taken over: residuals, rows of cones, bounds of barriers.

Reference: R. Budhiraja, Multi-body locomotion (2019), table 4.2; C. Mastalli et al., Crocoddyl (2020).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from saltus.arrays import Array, ArrayLike
from saltus.model.checks import ModelError, checked_name, finite, rigid_placement, whole_number
from saltus.ocp.activations import Activation, Barrier, Quadratic

Axes: TypeAlias = Literal["local", "world", "local_world_aligned"]

(
    STATE, CONTROL, PLACEMENT, TRANSLATION, ROTATION, VELOCITY, CENTER, MOMENTUM, FORCE, CONE, DISTANCE, OWN, FUNCTION,
) = range(13)  # fmt: skip
"""Kinds of terms, as kernels know them: by the six numbers that their rows are taken of."""

LINEAR, ANGULAR, ALL = np.eye(6)[:3], np.eye(6)[3:], np.eye(6)


@dataclass(frozen=True, kw_only=True)
class Term:
    """What all terms have: a weight, an activation, a reference for nodes that get none of their own, and a name."""

    weight: float = 1.0
    activation: Activation = field(default_factory=Quadratic)
    reference: Any = None
    name: str = ""

    kind: ClassVar[int]
    needs_control: ClassVar[bool] = False
    needs_force: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.default_name())
        checked_name(self.name, f"a {type(self).__name__}")
        object.__setattr__(self, "weight", number(self.weight, f"term {self.name!r}: weight"))

    def default_name(self) -> str:
        first = next((getattr(self, name) for name in ("frame", "contact") if hasattr(self, name)), None)
        own = type(self).__name__
        return own if first is None else f"{first} {own}"


@dataclass(frozen=True, kw_only=True)
class State(Term):
    """The state goes to another one: rows are those of the tangent, positions before velocities.

    >>> State(weight=10.0, activation=Quadratic(weights=1.0)).name
    'State'
    """

    kind: ClassVar[int] = STATE


@dataclass(frozen=True, kw_only=True)
class Control(Term):
    """Controls go to others, by default to zero."""

    kind: ClassVar[int] = CONTROL
    needs_control: ClassVar[bool] = True


@dataclass(frozen=True)
class _FrameTerm(Term):
    frame: str


@dataclass(frozen=True)
class FramePlacement(_FrameTerm):
    """A frame of the model goes to a pose in the world: (4, 4), or a rotation and a position.

    >>> FramePlacement("tool", weight=100.0).name
    'tool FramePlacement'
    """

    kind: ClassVar[int] = PLACEMENT


@dataclass(frozen=True)
class FrameTranslation(_FrameTerm):
    """The origin of a frame goes to a position in the world [m]; rows are along the world's axes."""

    kind: ClassVar[int] = TRANSLATION


@dataclass(frozen=True)
class FrameRotation(_FrameTerm):
    """A frame turns to an orientation (3, 3)."""

    kind: ClassVar[int] = ROTATION


@dataclass(frozen=True)
class FrameVelocity(_FrameTerm):
    """The velocity of a frame, linear then angular, in its own axes ("local"), along the world's axes about the frame's
    origin ("local_world_aligned"), or about the world's ("world"). By default it should be zero."""

    axes: Axes = "local"
    kind: ClassVar[int] = VELOCITY

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.axes not in get_args(Axes):
            raise ModelError(f"term {self.name!r}: axes are {self.axes!r}, expected one of {', '.join(get_args(Axes))}")


@dataclass(frozen=True)
class FrameLinearVelocity(FrameVelocity):
    """The linear part of `FrameVelocity` alone."""


@dataclass(frozen=True, kw_only=True)
class CenterOfMass(Term):
    """The centre of mass goes to a position in the world [m]."""

    kind: ClassVar[int] = CENTER


@dataclass(frozen=True, kw_only=True)
class CentroidalMomentum(Term):
    """The momentum about the centre of mass, linear [kg m/s] then angular [kg m^2/s], goes to a value, by default zero."""

    kind: ClassVar[int] = MOMENTUM


@dataclass(frozen=True)
class _ContactTerm(Term):
    contact: str
    axes: Axes = field(default="local", kw_only=True)
    kind: ClassVar[int] = FORCE
    needs_force: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.axes not in ("local", "local_world_aligned"):
            raise ModelError(f"term {self.name!r}: axes are {self.axes!r}, expected 'local' or 'local_world_aligned'")


@dataclass(frozen=True)
class ContactForce(_ContactTerm):
    """The force of a contact on the body that it holds, along the contact's own axes or the world's, goes to a value."""


@dataclass(frozen=True)
class Impulse(_ContactTerm):
    """The same of the impulse, at nodes that are impacts."""


@dataclass(frozen=True)
class FrictionCone(_ContactTerm):
    """The force of a contact stays in its friction cone, and its normal part between `least` and `most` [N].

    facets: of the pyramid that stands for the cone, an even number; 0 for the full cone.
    inner: whether the pyramid is inside the cone, or around it.
    surface: (3, 3), whose third column is the normal, in the axes of the force, by default the world's.
    smooth: rounds the tip of the full cone [N].

    >>> FrictionCone("LF_FOOT", friction=0.7).matrix().round(1).tolist()[0][:3]
    [1.0, 0.0, -0.7]
    """

    friction: float = 0.7
    facets: int = 4
    inner: bool = False
    surface: ArrayLike | None = None
    least: float = 0.0
    most: float = math.inf
    smooth: float = 1e-3
    axes: Axes = field(default="local_world_aligned", kw_only=True)
    activation: Activation | None = field(default=None, kw_only=True)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        where = f"term {self.name!r}"
        number(self.friction, f"{where}: friction", positive=True)
        number(self.smooth, f"{where}: smooth", positive=True)
        facets = whole_number(self.facets, f"{where}: its number of facets")
        if facets % 2 or facets < 0 or facets == 2:
            raise ModelError(
                f"{where}: it has {facets} facets, expected an even number from 4 on, or 0 for the full cone"
            )
        number(self.least, f"{where}: least")
        if not (isinstance(self.most, Real) and self.least <= self.most):
            raise ModelError(f"{where}: most is {self.most!r}, expected a number not below least, {self.least}")
        checked_surface(self.surface, where)
        if self.activation is None:
            object.__setattr__(self, "activation", self.bounds())

    @property
    def turn(self) -> Array:
        return np.eye(3) if self.surface is None else np.asarray(self.surface, float)

    @property
    def slope(self) -> float:
        """The friction of facets."""
        return self.friction * (math.cos(math.pi / self.facets) if self.inner and self.facets else 1.0)

    def matrix(self) -> Array:
        """(facets + 1, 6) rows of the residual, by the force."""
        angles = 2.0 * np.pi / self.facets * np.arange(self.facets // 2)
        rows = [
            (side * math.cos(angle), side * math.sin(angle), -self.slope) for angle in angles for side in (1.0, -1.0)
        ]
        return np.hstack([np.array([*rows, (0.0, 0.0, 1.0)]) @ self.turn.T, np.zeros((self.facets + 1, 3))])

    def bounds(self) -> Barrier:
        count = self.facets or 1
        return Barrier([*[-math.inf] * count, self.least], [*[0.0] * count, self.most])


@dataclass(frozen=True)
class CenterOfPressure(_ContactTerm):
    """The centre of pressure of a surface contact stays in a box [m] about the contact's origin, as four bounds on its
    force and moment."""

    box: tuple[float, float] = (0.1, 0.1)
    surface: ArrayLike | None = None
    activation: Activation | None = field(default=None, kw_only=True)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_box(self.box, f"term {self.name!r}")
        checked_surface(self.surface, f"term {self.name!r}")
        if self.activation is None:
            object.__setattr__(self, "activation", Barrier([-math.inf] * 4, [0.0] * 4))

    def matrix(self) -> Array:
        """(4, 6)"""
        return pressure_rows(np.eye(3) if self.surface is None else np.asarray(self.surface, float), self.box)


@dataclass(frozen=True)
class WrenchCone(FrictionCone):
    """The wrench of a surface contact stays in its cone: friction, centre of pressure, and moments about the normal that
    friction bears."""

    box: tuple[float, float] = (0.1, 0.1)
    axes: Axes = field(default="local", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_box(self.box, f"term {self.name!r}")
        if self.facets == 0:
            raise ModelError(f"term {self.name!r}: facets are 0, expected a pyramid of an even number of them")

    def matrix(self) -> Array:
        """(facets + 13, 6)"""
        R, mu, (length, width) = self.turn, self.slope, (0.5 * self.box[0], 0.5 * self.box[1])
        least = []
        for x, y in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            force = R @ (x * width, y * length, -mu * (length + width))
            least.append(np.hstack([force, R @ (-x * mu, -y * mu, -1.0)]))
        yaw = np.array(least)
        return np.vstack([super().matrix(), pressure_rows(R, self.box), yaw, yaw * np.repeat([1.0, -1.0], 3)])

    def bounds(self) -> Barrier:
        n = self.facets
        lower, upper = np.full(n + 13, -math.inf), np.zeros(n + 13)
        lower[n], upper[n] = self.least, self.most
        return Barrier(lower.tolist(), upper.tolist())


def number(value: Any, what: str, positive: bool = False) -> float:
    """One finite number that is not negative."""
    real = isinstance(value, Real) or (isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "fiu")
    if real:
        found = float(value)
        if math.isfinite(found) and (found > 0.0 if positive else found >= 0.0):
            return found
    raise ModelError(f"{what} is {value!r}, expected {'a positive number' if positive else 'a number, not negative'}")


def checked_surface(surface: ArrayLike | None, where: str) -> None:
    """A rotation (3, 3), or none."""
    if surface is not None:
        whole = np.eye(4)
        whole[:3, :3] = finite(surface, (3, 3), f"{where}: surface")
        rigid_placement(whole, f"{where}: surface")


def checked_box(box: Sequence[float], where: str) -> None:
    if len(box) != 2 or not (0.0 < min(box) and max(box) < math.inf):
        raise ModelError(f"{where}: box is {box}, expected two positive sizes")


def pressure_rows(R: Array, box: tuple[float, float]) -> Array:
    """(4, 6): the moments about both axes of a surface, less what its normal force bears within the box."""
    rows = []
    for axis, half in ((0, 0.5 * box[1]), (1, 0.5 * box[0])):
        rows += [np.hstack([-half * R[:, 2], side * R[:, axis]]) for side in (1.0, -1.0)]
    return np.array(rows)


@dataclass(frozen=True)
class Capsule:
    """A rounded stick along z of a frame, its middle at the origin: how long it is without its caps, and its radius [m]."""

    frame: str
    length: float
    radius: float

    def __post_init__(self) -> None:
        number(self.length, f"capsule of {self.frame!r}: length")
        number(self.radius, f"capsule of {self.frame!r}: radius")


@dataclass(frozen=True)
class Distance(Term):
    """Two capsules stay apart: by default half the square of what their distance falls short of `margin` [m]."""

    first: Capsule
    second: Capsule
    margin: float = 0.0
    activation: Activation | None = field(default=None, kw_only=True)  # type: ignore[assignment]
    kind: ClassVar[int] = DISTANCE

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.activation is None:
            object.__setattr__(self, "activation", Barrier(lower=self.margin))

    def default_name(self) -> str:
        return f"{self.first.frame}-{self.second.frame} Distance"


@dataclass(frozen=True)
class _OwnTerm(Term):
    residual: Callable[..., Any]
    size: int
    derivative: Callable[..., Any] | None = None
    controls: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        size = whole_number(self.size, f"term {self.name!r}: its number of rows")
        if not callable(self.residual) or size < 1:
            raise ModelError(f"term {self.name!r}: expected a function, and how many rows it has, more than none")
        if self.reference is not None and np.ndim(self.reference) == 0:
            raise ModelError(f"term {self.name!r}: its reference is {self.reference!r}, expected an array")

    @property
    def needs_control(self) -> bool:  # type: ignore[override]
        return self.controls


@dataclass(frozen=True)
class Own(_OwnTerm):
    """A residual of the user's: a kernel that writes `size` numbers, compiled with the rest.

    residual: kernel (tree, q, v, u, reference, rows), which writes rows 0 to size - 1 by `st`.
    derivative: kernel (tree, q, v, u, reference, R) that writes the matrix R (size, 2 nv + nu) of its slopes, which is zero
        before; by default they are found by dual numbers.
    controls: whether it looks at u, so that it cannot count at impacts and at the end.
    reference: numbers that it is given, by default none.

    >>> from saltus.kernel import kernel, ld, st
    >>> @kernel
    ... def slow(tree, q, v, u, reference, rows):
    ...     st(rows, 0, ld(v, 0) * ld(v, 1))
    >>> Own(slow, 1, name="slow").size
    1
    """

    kind: ClassVar[int] = OWN


@dataclass(frozen=True)
class OwnFunction(_OwnTerm):
    """A residual in plain Python, for all nodes at once: it is slower than a kernel, and called a few times an iteration.

    residual: function (xs, us, references) of arrays (..., T + 1, nx), (..., T + 1, nu) and (..., T + 1, n), that returns
        (..., T + 1, size); a node's rows depend on its own state and controls alone, which at the last are zero.
    derivative: function of the same that returns (..., T + 1, size, 2 nv + nu); by default central differences.
    """

    kind: ClassVar[int] = FUNCTION
