"""What kernels see of the terms of a problem: tables that one kernel walks.

A row of a term is an activation of n . b, with six numbers b that its kind says (the error of a frame, a force ...) and a
constant direction n: a unit vector, a facet of a cone. States and controls have their own rows, one a degree of freedom or
motor. Numbers that differ from node to node stand in one array a node:

    data = [dt, scale, impact, active (nc), weights (nterm), references (nref)]

| code | what |
|---|---|
| `term_kind`, `term_activation` | which of terms.py, activations.py |
| `term_first` to `term_end` | rows; `term_at`: where its references are |
| `term_first_column` to `term_end_column` | in `column`: which of (q, v, u) its six numbers depend on, in their order |
| `term_body`, `term_place`, `term_half` | of a frame, or of a capsule's middle and half its length; `.._b`: of the other |
| `term_contact`, `term_axes` | which constraint, and along whose axes |
| `row_normal`, `row_weight`, `row_low`, `row_high`, `row_size` | n, and what activations.py asks for |
| `motor` | degrees of freedom that controls drive |
| `term_bodies` | bodies that terms look at, parents first; `term_masses`, `term_speeds`: whether they ask for these |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from saltus.arrays import Array, ArrayLike, real_numbers
from saltus.constraints.tables import ConstrainedModel
from saltus.control.task_tables import pose_numbers
from saltus.control.tasks import FrameTask
from saltus.dynamics.frame import REFERENCES
from saltus.kernel import Layout, Part
from saltus.model.checks import ModelError
from saltus.model.joints import JointKind
from saltus.model.model import Model
from saltus.model.tree import canonical_rotation, se3, seen_from
from saltus.ocp.activations import Rows, activation_rows
from saltus.ocp.terms import (
    ALL,
    ANGULAR,
    CENTER,
    CONE,
    CONTROL,
    DISTANCE,
    FORCE,
    FUNCTION,
    LINEAR,
    MOMENTUM,
    OWN,
    PLACEMENT,
    ROTATION,
    STATE,
    TRANSLATION,
    VELOCITY,
    CenterOfPressure,
    FrameLinearVelocity,
    FrictionCone,
    Own,
    OwnFunction,
    Term,
)
from saltus.spatial.algebra import SE3, Motion, Vec3

DATA, REPORT = 3, 5
"""Numbers of a node in front of its masks, and of a report."""


class TermSet:
    """Terms of a robot under constraints, and what moves it, as tables."""

    def __init__(self, dynamics: Any, terms: Sequence[Term], motors: Sequence[int]) -> None:
        self.dynamics, self.model, self.terms, self.motors = dynamics, dynamics.model, tuple(terms), tuple(motors)
        self.contacts = [constraint.name for constraint in dynamics.constraints]
        names = [term.name for term in self.terms]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ModelError(f"terms: {twice[0]!r} names two of them, expected names of their own")
        self.directions = [self._directions(term) for term in self.terms]
        self.activations: list[Rows] = [
            activation_rows(term.activation, len(rows), f"term {term.name!r}")
            for term, rows in zip(self.terms, self.directions, strict=True)
        ]
        sizes = [self.reference_size(term) for term in self.terms]
        starts = np.cumsum([0, *sizes]).tolist()
        self.places = {n: slice(a, b) for n, a, b in zip(names, starts[:-1], starts[1:], strict=True)}
        counts = np.cumsum([0, *map(len, self.directions)]).tolist()
        self.rows = {n: slice(a, b) for n, a, b in zip(names, counts[:-1], counts[1:], strict=True)}
        self.columns = [self._columns(term) for term in self.terms]
        nv, nterm, nref = self.model.nv, len(self.terms), starts[-1]
        self.sizes = {
            "nterm": nterm, "nrow": counts[-1], "nref": nref, "ncol": sum(map(len, self.columns)),
            "ntb": len(self.bodies), "nact": len(self.motors), "ndata": DATA + len(self.contacts) + nterm + nref,
            "nx": self.model.nq + nv, "ndx": 2 * nv, "nall": 2 * nv + len(self.motors),
            "nhh": (2 * nv + len(self.motors)) ** 2, "nrep": REPORT, "napart": nv, "nslide": nv,
            "nrkq": self.model.nq, "nrkv": nv,
            "nown": max([0, *(term.size for term in self.own)]), "nturn": sum(size**2 for _, size in self.turns),
        }  # fmt: skip

    def index(self, name: str) -> int:
        """Which term has this name."""
        for k, term in enumerate(self.terms):
            if term.name == name:
                return k
        raise ModelError(f"terms: there is none named {name!r}, expected one of {', '.join(self.places)}")

    def contact(self, term: Any) -> int:
        if term.contact not in self.contacts:
            known = ", ".join(self.contacts) or "none, as there are no contacts"
            raise ModelError(f"term {term.name!r}: unknown contact {term.contact!r}, expected one of {known}")
        place: int = self.contacts.index(term.contact)
        return place

    def frame(self, name: str, term: Term) -> int:
        try:
            index: int = self.model.frame_index(name)
        except ModelError as error:
            raise ModelError(f"term {term.name!r}: {error}") from None
        return index

    def _directions(self, term: Term) -> Array:
        """(rows, 6); of states and controls as many rows of zeros."""
        if term.kind == STATE:
            return np.zeros((2 * self.model.nv, 6))
        if term.kind == CONTROL:
            return np.zeros((len(self.motors), 6))
        if isinstance(term, Own | OwnFunction):
            return np.zeros((term.size, 6))
        if isinstance(term, FrictionCone | CenterOfPressure):
            if kind_of(term) == CONE:
                return LINEAR[:2]
            return term.matrix()
        if term.kind == FORCE:
            return ALL[list(self.dynamics.constraints[self.contact(term)].rows)]
        if term.kind in (TRANSLATION, CENTER) or isinstance(term, FrameLinearVelocity):
            return LINEAR
        if term.kind == DISTANCE:
            return LINEAR[:1]
        return ANGULAR if term.kind == ROTATION else ALL

    def reference_size(self, term: Term) -> int:
        own = {
            STATE: self.model.nq + self.model.nv, CONTROL: len(self.motors), PLACEMENT: 12, TRANSLATION: 3, ROTATION: 9,
            VELOCITY: 6, CENTER: 3, MOMENTUM: 6, FORCE: 6, CONE: 0, DISTANCE: 0,
        }  # fmt: skip
        if isinstance(term, Own | OwnFunction):
            return 0 if term.reference is None else int(np.shape(term.reference)[-1])
        return 0 if isinstance(term, FrictionCone | CenterOfPressure) else own[term.kind]

    def _columns(self, term: Term) -> list[int]:
        nv, nu = self.model.nv, len(self.motors)
        if term.kind in (STATE, CONTROL, OWN, FUNCTION):
            return []
        if term.kind in (PLACEMENT, TRANSLATION, ROTATION, VELOCITY, DISTANCE):
            chain = sorted({k for body in self.bodies_of(term) for k in chain_of(self.model, body)})
            return chain + [nv + k for k in chain] if term.kind == VELOCITY else chain
        return list(range({CENTER: nv, MOMENTUM: 2 * nv}.get(term.kind, 2 * nv + nu)))

    def bodies_of(self, term: Any) -> list[int]:
        """Those whose placement a term asks for; of momentum and centre of mass: none, as all count."""
        if term.kind == DISTANCE:
            frames = [term.first.frame, term.second.frame]
        elif hasattr(term, "frame"):
            frames = [term.frame]
        else:
            return [self.dynamics.constraints[self.contact(term)].joint_a] if hasattr(term, "contact") else []
        return [self.model.frames[self.frame(name, term)].joint for name in frames]

    @property
    def bodies(self) -> list[int]:
        found = set(range(1, self.model.njoints)) if self.masses else set()
        for term in self.terms:
            for body in self.bodies_of(term):
                while body > 0:
                    found.add(body)
                    body = self.model.joints[body].parent
        return sorted(found)

    @property
    def turns(self) -> list[tuple[int, int]]:
        """Joints whose configurations are no vectors: first degree of freedom, and how many."""
        kinds = (JointKind.FREE_FLYER, JointKind.SPHERICAL, JointKind.PLANAR)
        return [(joint.iv, joint.nv) for joint in self.model.joints[1:] if joint.kind in kinds]

    @property
    def own(self) -> list[Own]:
        """Terms with kernels of the user's."""
        return [term for term in self.terms if isinstance(term, Own)]

    @property
    def states(self) -> dict[str, slice]:
        """Where references are states, by the names of terms."""
        return {term.name: self.places[term.name] for term in self.terms if term.kind == STATE}

    @property
    def masses(self) -> bool:
        return any(term.kind in (CENTER, MOMENTUM) for term in self.terms)

    def fill(self, ints: Any, reals: Any) -> None:
        model = self.model
        turned = [canonical_rotation(joint.kind, joint.axis) for joint in model.joints]
        ints.term_masses[0] = self.masses
        ints.term_speeds[0] = any(term.kind in (VELOCITY, MOMENTUM) for term in self.terms)
        ints.term_spins[0] = any(term.kind == MOMENTUM for term in self.terms)
        for k, body in enumerate(self.bodies):
            ints.term_bodies[k] = body
        for m, dof in enumerate(self.motors):
            ints.motor[m] = dof
        place = 0
        for i, joint in enumerate(model.joints):
            turns = (joint.iv, joint.nv) in self.turns
            ints.turn_at[i] = place if turns else -1
            place += joint.nv**2 if turns else 0
        columns = 0
        for k, term in enumerate(self.terms):
            kind, rows = kind_of(term), self.rows[term.name]
            ints.term_kind[k], ints.term_activation[k] = kind, self.activations[k].kind
            ints.term_first[k], ints.term_end[k] = rows.start, rows.stop
            ints.term_at[k] = self.places[term.name].start if self.reference_size(term) else -1
            ints.term_linear[k] = not self.directions[k][:, 3:].any()
            ints.term_own[k] = self.own.index(term) if isinstance(term, Own) else -1
            ints.term_axes[k] = REFERENCES[getattr(term, "axes", "local")]
            ints.term_first_column[k], ints.term_end_column[k] = columns, columns + len(self.columns[k])
            for column in self.columns[k]:
                ints.column[columns], columns = column, columns + 1
            if hasattr(term, "contact"):
                c = self.contact(term)
                constraint = self.dynamics.constraints[c]
                ints.term_contact[k], ints.term_body[k] = c, constraint.joint_a
            if isinstance(term, FrictionCone):
                reals.term_friction[k], reals.term_smooth[k] = term.friction, term.smooth
                reals.term_normal[k] = Vec3(*term.turn[:, 2].tolist())
            frames = [(getattr(term, "frame", None), 0.0)]
            if kind == DISTANCE:
                frames = [(capsule.frame, capsule.length) for capsule in (term.first, term.second)]  # type: ignore[attr-defined]
                reals.term_radii[k] = term.first.radius + term.second.radius  # type: ignore[attr-defined]
            for (name, length), suffix in zip(frames, ("", "_b"), strict=False):
                if name is not None:
                    frame = model.frames[self.frame(name, term)]
                    getattr(ints, f"term_body{suffix}")[k] = frame.joint
                    place = seen_from(turned[frame.joint], frame.placement, np.eye(3))
                    getattr(reals, f"term_place{suffix}")[k] = se3(place)
                    getattr(reals, f"term_half{suffix}")[k] = 0.5 * length
            for r, direction in enumerate(self.directions[k].tolist(), rows.start):
                reals.row_normal[r] = Motion(Vec3(*direction[:3]), Vec3(*direction[3:]))
            for name, values in zip(("weight", "low", "high", "size"), self.activations[k][1:], strict=True):
                field = getattr(reals, f"row_{name}")
                for r, value in enumerate(values.tolist(), rows.start):
                    field[r] = value

    def pack(self, term: Term, value: ArrayLike | None, where: str = "") -> Array:
        """A reference (..., size) as kernels have it; None: zero, neutral, the world's frame."""
        what = f"reference of term {term.name!r}{where}"
        size, model = self.reference_size(term), self.model
        if size == 0:
            if value is not None:
                raise ModelError(f"{what} is {value!r}, expected none: a {type(term).__name__} has no reference")
            return np.zeros(0)
        if value is None:
            if term.kind in (PLACEMENT, TRANSLATION, ROTATION, CENTER):
                raise ModelError(f"{what} is not given, expected one")
            packed = np.zeros(size)
            if term.kind == STATE:
                packed[: model.nq] = model.neutral()
            return packed
        if term.kind in (PLACEMENT, ROTATION):
            axes = ("xyz", "xyz") if term.kind == PLACEMENT else ("", "xyz")
            refuse_nan(value, what)
            return pose_numbers(value, FrameTask("frame", *axes), what)[..., :size]
        array = real_numbers(value, what).astype(float)
        wanted = size
        if term.kind == FORCE:
            wanted = len(self.dynamics.constraints[self.contact(term)].rows)
        elif isinstance(term, FrameLinearVelocity):
            wanted = 3
        if array.shape[-1:] != (wanted,):
            raise ModelError(f"{what} has shape {array.shape}, expected (..., {wanted})")
        refuse_nan(array, what)
        if term.kind == STATE:
            self.check_configuration(array, what)
        if wanted == size:
            return array
        packed = np.zeros((*array.shape[:-1], size))
        packed[..., list(np.flatnonzero(self.directions[self.index(term.name)].any(axis=0)))] = array
        return packed

    def idle(self, term: Term) -> Array:
        """A reference that is valid, for nodes where a term does not count."""
        packed = np.zeros(self.reference_size(term))
        if term.kind in (PLACEMENT, ROTATION):
            packed[:9] = np.eye(3).ravel()
        elif term.kind == STATE:
            packed[: self.model.nq] = self.model.neutral()
        return packed

    def check_configuration(self, x: Array, what: str) -> None:
        for joint in self.model.joints[1:]:
            part = joint.kind.unit_coordinates
            if part.stop and not joint.mimic:
                norm = np.linalg.norm(x[..., joint.iq + part.start : joint.iq + part.stop], axis=-1)
                if (np.abs(norm - 1.0) > 1e-6).any():
                    raise ModelError(
                        f"{what}: joint {joint.name!r} has coordinates of norm {norm.ravel()[0]:.9g}, expected 1"
                    )


def kind_of(term: Term) -> int:
    """As kernels know it: the full cone is a kind of its own."""
    return CONE if type(term) is FrictionCone and term.facets == 0 else term.kind


def refuse_nan(value: Any, what: str) -> None:
    parts = value if isinstance(value, tuple) else (value,)
    for part in parts:
        array = np.asarray(part, float)
        if not np.isfinite(array).all():
            place = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
            raise ModelError(f"{what} is {array[place]} at {list(place)}, expected finite numbers")


def chain_of(model: Model, body: int) -> Iterator[int]:
    """The degrees of freedom that move a body."""
    while body > 0:
        joint = model.joints[body]
        yield from range(joint.iv, joint.iv + joint.nv)
        body = joint.parent


class NodeModel(ConstrainedModel):
    """A robot with contacts, motors and terms, as algorithms take one."""

    def __init__(self, dynamics: Any, terms: TermSet) -> None:
        problem = dynamics.problem
        super().__init__(
            dynamics.model, dynamics.constraints, dynamics.mu, dynamics.tolerance, problem.most_iterations,
            reliable=problem.settled > 0, typical=problem.typical,
        )  # fmt: skip
        self.term_set = terms


def named(*names: str) -> dict[str, type | None]:
    return dict.fromkeys(names)


TERMS = Part(
    ("nterm", "nrow", "nref", "ncol", "ntb", "nact", "ndata", "nx", "ndx", "nall", "nhh", "nrep",
     "napart", "nslide", "nturn", "nown", "nrkq", "nrkv"),
    Layout(
        one=named("term_masses", "term_speeds", "term_spins"),
        nterm=named(
            "term_kind", "term_activation", "term_first", "term_end", "term_at", "term_axes", "term_first_column",
            "term_end_column", "term_contact", "term_body", "term_body_b", "term_own", "term_linear",
        ),
        ncol=named("column"),
        nact=named("motor"),
        ntb=named("term_bodies"),
        nj=named("turn_at"),
    ),
    Layout(
        nterm={
            "term_place": SE3, "term_place_b": SE3, "term_half": None, "term_half_b": None, "term_radii": None,
            "term_friction": None, "term_smooth": None, "term_normal": Vec3,
        },
        nrow={"row_normal": Motion, "row_weight": None, "row_low": None, "row_high": None, "row_size": None},
    ),
    lambda problem: problem.term_set.sizes,
    lambda problem, ints, reals: problem.term_set.fill(ints, reals),
)  # fmt: skip
"""Numbers of terms, rows, reference numbers, columns, bodies, motors, numbers of a node, and of (x), (dx), (dx, u);
`napart`, `nslide`, `nrkv` are nv, `nrkq` is nq, for workspaces that lie in one piece; `nturn`: numbers in the blocks of
joints that turn, which begin at `turn_at` (-1: none)."""
