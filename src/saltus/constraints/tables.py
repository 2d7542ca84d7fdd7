"""What kernels see of a constrained model: the tree, and its constraints in the canonical frames of their bodies.

Every algorithm reads the parts `TREE` and `CONSTRAINTS`, and those that it names: `MOVERS`, `SUPPORTS`, `PLACES`, `NODES`,
`TIES`, `INFLUENCES`, `PASSIVE`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from saltus.constraints.constraint import Constraint
from saltus.constraints.nodes import NOTHING, Nodes, Places, Plan, find_nodes
from saltus.constraints.scale import levers, reaches, robot_size
from saltus.constraints.ties import Ties, find_ties
from saltus.kernel import Algorithm, Layout, Part, Tables, declare
from saltus.kernel.tables import FilledPart, filled_part
from saltus.model.checks import Array, ModelError
from saltus.model.model import Model
from saltus.model.parameters import VariedModel
from saltus.model.tree import CONFIGURATIONS, INERTIAS, TREE, canonical_rotation, extent, se3, seen_from
from saltus.spatial.algebra import SE3, Force, Mat3, Motion, Sym3, Vec3, act_force
from saltus.spatial.inertia import Sym6

EPSILONS = 1.0
"""What rounding leaves of a constraint, in units of the last place of the largest acceleration."""

SETTLED = {np.dtype(np.float64): 1e-7, np.dtype(np.float32): 4e-6}
"""The last change of accelerations, by their size, that counts as none."""


LEFT = 0.1
"""Of a step that a small mu leaves, how much counts as left at least, however fast steps shrink; otherwise all of it."""


class ConstrainedCoupling(NamedTuple):
    """Of a robot with mimic joints: the tree that kernels see, beside what couples its joints (coupled.py)."""

    tree: Model

    def run(self, algorithm: Algorithm, problem: Any, inputs: tuple[Any, ...]) -> Any:
        raise ModelError(
            f"{algorithm.name}: model {problem.name!r} has mimic joints, with which this cannot be computed yet; `solve` by "
            "prox_ltl or kkt and `impact` can"
        )


class ConstrainedModel:
    """A model with constraints, as algorithms take one: in the place of a `Model`; and what they are solved to, in a number
    type; not `reliable`: no step is small enough to believe it. Where it is `thorough`, every body counts as one that
    supports constraints: then iterations look at all of them."""

    def __init__(
        self,
        model: Model,
        constraints: Sequence[Constraint],
        mu: float,
        tolerance: float = 0.0,
        most_iterations: int = 1,
        plan: Plan = NOTHING,
        passive: Sequence[int] = (),
        dtype: Any = np.float64,
        reliable: bool = True,
        typical: float = 0.0,
        absorbed: float = 1.0,
        thorough: bool = False,
    ) -> None:
        self.robot, self.constraints = model, tuple(constraints)
        self.coupling = ConstrainedCoupling(model.coupling.tree) if model.coupling else None
        self.model = model.coupling.tree if model.coupling else model
        self.name, self.joints, self.frames, self.nq, self.nv = (
            model.name,
            model.joints,
            model.frames,
            model.nq,
            model.nv,
        )
        self.specialised, self.varied = model.specialised, model.varied
        if isinstance(model, VariedModel):
            self.inertias_for, self.leading = model.inertias_for, model.leading
        self.weightless, self.refuse_weightless = model.weightless, model.refuse_weightless
        self.typical = typical  # entry of the Delassus matrix
        self.absorbed = absorbed  # of mu: that with which constraints become part of inertias
        self.left = LEFT if absorbed < 1.0 else 1.0
        self.plan, self.passive, self.thorough = plan, passive, thorough
        self.tolerance, self.most_iterations = tolerance, most_iterations
        self.rounding = EPSILONS * float(np.finfo(dtype).eps)
        self.settled = SETTLED[np.dtype(dtype)] if reliable else -1.0
        if not tolerance:  # all iterations
            self.rounding = self.settled = 0.0
        self.mu = mu * np.concatenate([np.empty(0), *(x.weight[list(x.rows)] for x in self.constraints)])  # of each row
        self.nc, self.nm = len(self.constraints), sum(constraint.dim for constraint in self.constraints)
        self.nu = sum(constraint.dim for constraint in self.constraints if constraint.dofs)
        self.filled: dict[Tables, Any] = {}
        self.quick: dict[Any, Any] = {}
        self.parts: dict[Part, FilledPart] = {TREE: filled_part(TREE, self.model, TREE.measure(self.model))}

    @cached_property
    def movers(self) -> list[list[int]]:
        """Of each constraint, the degrees of freedom that move it."""
        return [moving(self.model, constraint) for constraint in self.constraints]

    @cached_property
    def supporting(self) -> list[bool]:
        """Whether each body moves a constrained one."""
        found = [False, *[self.thorough] * (len(self.joints) - 1)]
        for constraint in self.constraints:
            for body in (constraint.joint_a, constraint.joint_b):
                while body > 0:
                    found[body], body = True, self.joints[body].parent
        return found

    @cached_property
    def places(self) -> Places:
        return Places(self.model, self.constraints)

    @cached_property
    def nodes(self) -> Nodes:
        return find_nodes(self.model, self.places, self.plan)

    @cached_property
    def ties(self) -> Ties:
        return find_ties(self.model, self.constraints)

    @cached_property
    def influences(self) -> tuple[list[list[int]], list[list[int]]]:
        return influences(self.model, self.constraints, self.movers)


def named(*names: str) -> dict[str, type | None]:
    """Fields of one number each."""
    return dict.fromkeys(names)


def fill_field(field: Any, values: Sequence[float]) -> None:
    for k, value in enumerate(values):
        field[k] = value


# ---------------------------------------------------------------------------------------------------- all constraints


def measure_constraints(problem: ConstrainedModel) -> Mapping[str, int]:
    nm, nv = problem.nm, problem.model.nv
    return {"nc": problem.nc, "nm": nm, "nmv": nm * nv, "nmm": nm**2, "nu": problem.nu}


def fill_constraints(problem: ConstrainedModel, ints: Any, reals: Any) -> None:
    model, mu = problem.model, iter(problem.mu.tolist())
    ints.most_iterations[0], reals.tolerance[0] = problem.most_iterations, problem.tolerance
    reals.rounding[0], reals.settled[0], reals.left[0] = problem.rounding, problem.settled, problem.left
    kinds = {axis < 3 or bool(constraint.dofs) for constraint in problem.constraints for axis in constraint.rows}
    reals.along[0] = problem.rounding if True in kinds else 0.0
    reals.about[0] = problem.rounding / robot_size(model) if False in kinds else 0.0
    fill_field(reals.lever, levers(model, problem.constraints).tolist())
    fill_field(reals.reach, reaches(model).tolist())
    turned = [canonical_rotation(joint.kind, joint.axis) for joint in model.joints]
    for i in range(model.njoints):
        ints.held[i] = -1
    row = given = 0
    for c, constraint in enumerate(problem.constraints):
        a, b, weight = constraint.joint_a, constraint.joint_b, np.zeros(6)
        ints.body_a[c], ints.body_b[c], ints.point[c] = a, b, constraint.point
        ints.next_held[c], ints.held[a] = ints.held[a], c
        ints.pulled[0] |= constraint.kp > 0
        ints.first_row[c], ints.end_row[c] = row, row + constraint.dim
        for axis in constraint.rows:
            ints.row_axis[row], ints.before[row], reals.mu[row] = 0 if constraint.dofs else axis, row - 1, next(mu)
            ints.row_owner[row] = c
            weight[axis], row = 0.0 if constraint.dofs else 1.0 / (problem.absorbed * reals.mu[row]), row + 1
        ints.given[c] = given if constraint.dofs else -1
        given += constraint.dim if constraint.dofs else 0
        place = seen_from(turned[a], constraint.placement_a, np.eye(3))
        reals.place_a[c] = se3(place)
        reals.place_b[c] = se3(seen_from(turned[b], constraint.placement_b, np.eye(3)))
        reals.weight[c] = Motion(Vec3(*weight[:3]), Vec3(*weight[3:]))
        reals.stiffness[c] = stiffness(place, weight)
        reals.kp[c], reals.kd[c] = constraint.kp, constraint.kd


CONSTRAINTS = Part(
    ("nc", "nm", "nmv", "nmm", "nu"),
    Layout(
        one=named("most_iterations", "pulled"),
        nj=named("held"),
        nc=named("body_a", "body_b", "point", "next_held", "first_row", "end_row", "given"),
        nm=named("row_axis", "row_owner", "before"),
    ),
    Layout(
        one=named("tolerance", "rounding", "along", "about", "settled", "left"),
        nv=named("lever", "reach"),
        nc={"place_a": SE3, "place_b": SE3, "weight": Motion, "stiffness": Sym6, "kp": None, "kd": None},
        nm=named("mu"),
    ),
    measure_constraints,
    fill_constraints,
)
"""Numbers of constraints, their rows, entries of matrices (nm, nv) and (nm, nm), and of rows that users give.

`pulled`: a constraint has a gain on its placement. `held`: the first constraint whose frame A is on this body, or -1;
`next_held`: the next one there. `given`: the first of the user's rows that the constraint has, or -1. `row_axis`: which of
the six rows it is; `row_owner`: of which constraint; `before`: the row before it, the tree along which a dense matrix is
factored.

`lever`: how far a degree of freedom moves constraints; `reach`: and the robot (scale.py). `tolerance`, `rounding`,
`settled`, `left`: convergence.py; `along`, `about`: what rounding leaves of rows along an axis, and about one, by the
largest acceleration that moves them. `mu`: of each row. `weight`: 1 / (absorbed mu) of each of the six, 0 where a
constraint has no such row. `stiffness`: K^T diag(weight) K in the frame of body a."""


# ---------------------------------------------------------------------------------------------------- what moves them


def fill_movers(problem: ConstrainedModel, ints: Any, reals: Any) -> None:
    start = 0
    for c, dofs in enumerate(problem.movers):
        ints.first_mover[c], ints.end_mover[c] = start, start + len(dofs)
        for k in dofs:
            ints.mover[start], start = k, start + 1
    fill_field(ints.joined, elimination_tree(problem.model, problem.constraints, problem.movers))


MOVERS = Part(
    ("ns",),
    Layout(nv=named("joined"), nc=named("first_mover", "end_mover"), ns=named("mover")),
    Layout(),
    lambda problem: {"ns": sum(map(len, problem.movers))},
    fill_movers,
)
"""`mover`: the degrees of freedom that move body a or b of a constraint, from the leaves to the root. `joined`: as `above`,
in the tree along which a matrix can be factored that ties the bodies of each loop."""


def fill_supports(problem: ConstrainedModel, ints: Any, reals: Any) -> None:
    supports = problem.supporting
    parents = [joint.parent for joint in problem.joints]
    fill_field(ints.supports, supports)
    for i in range(1, len(parents)):
        parent = parents[i]
        if supports[i]:
            ints.inner[parent] = 1
            ints.near[parent] |= parent == i - 1
            ints.fork_held[parent] |= parent != i - 1
        else:
            ints.ends[parent] = 1
    for kind, field in ((True, ints.last_held), (False, ints.last_end)):
        last = {parents[i]: i for i in range(1, len(parents)) if supports[i] == kind}
        for i in last.values():
            field[i] = 1


SUPPORTS = Part(
    (),
    Layout(nj=named("supports", "inner", "near", "last_held", "fork_held", "ends", "last_end")),
    Layout(),
    lambda problem: {},
    fill_supports,
)
"""`supports`: the body moves a constrained one. Of its children only those that do: `inner`, there are some; `near`, the
body just after is one; `fork_held`, one is not the body just after; `last_held`, it is the last one of its parent.
`ends`: a child does not; `last_end`: it is the last such of its parent."""


# ---------------------------------------------------------------------------------------------------- of single methods


def fill_places(problem: ConstrainedModel, ints: Any, reals: Any) -> None:
    places, turned = problem.places, {}
    ints.base[0] = places.base
    first = np.cumsum([0, *(constraint.dim for constraint in problem.constraints)]).tolist()
    for p, (c, k) in enumerate(places.rows):
        constraint = problem.constraints[c]
        if c not in turned:
            joint = problem.joints[constraint.joint_a]
            rotation = canonical_rotation(joint.kind, joint.axis)
            turned[c] = se3(seen_from(rotation, constraint.placement_a, np.eye(3)))
        ints.row_at[p], ints.holder[p], ints.block_end[p] = first[c] + k, c, places.block_end[p]
        reals.row_force[p] = act_force(turned[c], unit(0 if constraint.dofs else constraint.rows[k]))
    fill_field(ints.first_under, places.first_under)
    fill_field(ints.end_under, places.end_under)


PLACES = Part(
    (),
    Layout(one=named("base"), nj=named("first_under", "end_under"), nm=named("row_at", "holder", "block_end")),
    Layout(nm={"row_force": Force}),
    lambda problem: {},
    fill_places,
)
"""Rows in the order of the tree: `row_at[p]` is the p-th row, of constraint `holder[p]`, `row_force` its unit force on body
a; body i supports those of places `first_under[i]` to `end_under[i]`. `base`: the body of a free flyer that supports some,
or 0. Rows of places p to `block_end[p]` are those of the same limb of the base (of the same tree, if there is no base)."""


def fill_nodes(problem: ConstrainedModel, ints: Any, reals: Any) -> None:
    ints.augmented[0], ints.answer[0] = problem.plan.augmented, problem.plan.answer
    for name, values in problem.nodes._asdict().items():
        fill_field(getattr(ints, name), values)


NODES = Part(
    ("nk",),
    Layout(one=named("augmented", "answer"), nj=named("node", "node_above", "first_at"), nk=named("group")),
    Layout(),
    lambda problem: {"nk": len(problem.nodes.group)},
    fill_nodes,
)
"""Rows at the nodes that they pass (osim): nodes.py."""


def fill_ties(problem: ConstrainedModel, ints: Any, reals: Any) -> None:
    for name, values in problem.ties._asdict().items():
        if name != "gains":
            fill_field(getattr(ints, name), values)


TIES = Part(
    ("nt", "nd", "np"),
    Layout(
        nj=named("first_tie", "end_tie", "first_gain", "first_pair"),
        nc=named("tie", "swapped"),
        nt=named("tied", "moved", "turned_over"),
        np=named("pair"),
    ),
    Layout(),
    lambda problem: {"nt": len(problem.ties.tied), "nd": problem.ties.gains, "np": len(problem.ties.pair)},
    fill_ties,
)
"""Ties between bodies, degrees of freedom seen through them, and pairs of them (loop_aba): ties.py."""


def fill_influences(problem: ConstrainedModel, ints: Any, reals: Any) -> None:
    start, (touched, felt) = 0, problem.influences
    for firsts, ends, lists in (
        (ints.first_touched, ints.end_touched, touched),
        (ints.first_felt, ints.end_felt, felt),
    ):
        for p, each in enumerate(lists):
            firsts[p], ends[p] = start, start + len(each)
            for k in each:
                ints.listed[start], start = k, start + 1


INFLUENCES = Part(
    ("nl",),
    Layout(nv=named("first_touched", "end_touched", "first_felt", "end_felt"), nl=named("listed")),
    Layout(),
    lambda problem: {"nl": sum(len(each) for lists in problem.influences for each in lists)},
    fill_influences,
)
"""`listed`: for the p-th four degrees of freedom, from `first_touched[p]` to `end_touched[p]` those whose torques they
change (derivatives), and from `first_felt[p]` to `end_felt[p]` the rows."""


def fill_passive(problem: ConstrainedModel, ints: Any, reals: Any) -> None:
    ints.passives[0] = len(problem.passive)
    fill_field(ints.passive, problem.passive)


PASSIVE = Part((), Layout(one=named("passives"), nv=named("passive")), Layout(), lambda problem: {}, fill_passive)
"""`passive`: the degrees of freedom without actuators, `passives` many, for inverse dynamics."""


@cache
def tables(*reads: Part) -> Tables:
    return Tables([TREE, CONSTRAINTS, *reads], CONFIGURATIONS, extent, INERTIAS)


def constrained(*reads: Part, **declaration: Any) -> Callable[[Callable[..., Any]], Algorithm]:
    """The decorator of every algorithm on constrained models, by the parts that it reads."""
    return declare(tables(*reads), **declaration)


# ---------------------------------------------------------------------------------------------------- how they are found


def moving(model: Model, constraint: Constraint) -> list[int]:
    """The degrees of freedom that move body a or b, or those of given rows and all that move them; the last one first."""
    dofs: set[int] = set()
    bodies = {
        i for i, joint in enumerate(model.joints) if set(constraint.dofs) & set(range(joint.iv, joint.iv + joint.nv))
    }
    for body in (constraint.joint_a, constraint.joint_b, *bodies):
        while body > 0:
            joint = model.joints[body]
            dofs.update(range(joint.iv, joint.iv + joint.nv))
            body = joint.parent
    return sorted(dofs, reverse=True)


def influences(
    model: Model, constraints: Sequence[Constraint], movers: Sequence[Sequence[int]]
) -> tuple[list[list[int]], list[list[int]]]:
    """For every four degrees of freedom in turn: those whose torques change with them, accelerations and forces of
    constraints held, and the rows that do."""
    related: list[set[int]] = [set() for _ in range(model.nv)]
    for joint in model.joints[1:]:
        chain, above = set(range(joint.iv, joint.iv + joint.nv)), joint.parent
        while above > 0:
            other = model.joints[above]
            chain |= set(range(other.iv, other.iv + other.nv))
            above = other.parent
        for k in range(joint.iv, joint.iv + joint.nv):
            related[k] |= chain
            for j in chain:
                related[j].add(k)
    rows: list[set[int]] = [set() for _ in range(model.nv)]
    start = 0
    for constraint, dofs in zip(constraints, movers, strict=True):
        for k in dofs:
            rows[k] |= set(range(start, start + constraint.dim))
            if constraint.joint_b > 0:  # forces on body b turn with what carries a
                related[k] |= set(dofs)
        start += constraint.dim
    fours = [slice(j, j + 4) for j in range(0, model.nv, 4)]
    return [sorted(set().union(*related[four])) for four in fours], [sorted(set().union(*rows[four])) for four in fours]


def elimination_tree(model: Model, constraints: Sequence[Constraint], movers: Sequence[Sequence[int]]) -> list[int]:
    """For every degree of freedom the last one before it that its elimination touches, if loops tie all that move them, and
    given rows all that they touch."""
    nv, touched = model.nv, list[set[int]]()
    last: dict[int, set[int]] = {0: set()}  # of each body, all degrees of freedom from the root up to its own
    for i, joint in enumerate(model.joints[1:], 1):
        last[i] = set(last[joint.parent])
        for k in range(joint.iv, joint.iv + joint.nv):
            touched.append(set(last[i]))
            last[i].add(k)
    for constraint, dofs in zip(constraints, movers, strict=True):
        if constraint.joint_b > 0 or constraint.dofs:
            for k in dofs:
                touched[k] |= {i for i in dofs if i < k}
    parents = [-1] * nv
    for k in range(nv - 1, -1, -1):
        if touched[k]:
            parents[k] = max(touched[k])
            touched[parents[k]] |= touched[k] - {parents[k]}
    return parents


def unit(axis: int) -> Force:
    """The force of size one along an axis of its frame (0 to 5, linear first)."""
    e = np.eye(6)[axis].tolist()
    return Force(Vec3(*e[:3]), Vec3(*e[3:]))


def stiffness(place: Array, weight: Array) -> Sym6:
    """K^T diag(weight) K, K the motion of a frame by that of its body."""
    R, p = place[:3, :3], place[:3, 3]
    K = np.zeros((6, 6))
    K[:3, :3] = K[3:, 3:] = R.T
    K[:3, 3:] = -R.T @ np.array([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])
    full = K.T @ (weight[:, None] * K)
    upper = np.triu_indices(3)
    return Sym6(Sym3(*full[:3, :3][upper]), Mat3(*full[:3, 3:].ravel()), Sym3(*full[3:, 3:][upper]))
