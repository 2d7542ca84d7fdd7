"""What kernels see of a constrained model: the tree, and its constraints in the canonical frames of their bodies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from saltus.constraints.constraint import Constraint
from saltus.constraints.nodes import NOTHING, Places, Plan, find_nodes
from saltus.constraints.scale import levers, reaches
from saltus.constraints.ties import find_ties
from saltus.kernel import Layout, declare
from saltus.model.checks import Array, ModelError
from saltus.model.model import Model
from saltus.model.tree import INTS, REALS, Extension, TreeTables, canonical_rotation, se3, seen_from, tables
from saltus.spatial.algebra import SE3, Force, Mat3, Motion, Sym3, Vec3, act_force
from saltus.spatial.inertia import Sym6

CONSTRAINT_INTS: Layout = INTS.extended(
    one=dict.fromkeys(("most_iterations", "pulled", "base", "augmented", "answer", "passives")),
    nj=dict.fromkeys(("held", "supports", "inner", "near", "last_held", "fork_held", "ends", "last_end",
                      "first_under", "end_under", "node", "node_above", "first_at",
                      "first_tie", "end_tie", "first_gain", "first_pair")),
    nv=dict.fromkeys(("joined", "passive", "first_touched", "end_touched", "first_felt", "end_felt")),
    nc=dict.fromkeys(("body_a", "body_b", "point", "next_held", "first_row", "end_row", "first_mover", "end_mover",
                      "tie", "swapped", "given")),
    nm=dict.fromkeys(("row_axis", "before", "row_at", "holder", "block_end")),
    ns=dict.fromkeys(("mover", "listed")),
    nk=dict.fromkeys(("group",)),
    nt=dict.fromkeys(("tied", "moved", "turned_over")),
    np=dict.fromkeys(("pair",)),
)  # fmt: skip
"""`pulled`: a constraint has a gain on its placement. `held`: the first constraint whose frame A is on this body, or -1;
`next_held`: the next one there. `row_axis`: which of the six rows it is; `before`: the row before it, the tree along
which a dense matrix is factored. `mover`: the degrees of freedom that move body a or b of a constraint, from the leaves
to the root. `joined`: as `above`, in the tree along which a matrix can be factored that ties the bodies of each loop.
`listed`: for the p-th four degrees of freedom, from `first_touched[p]` to `end_touched[p]` those whose torques they change
(derivatives), and from `first_felt[p]` to `end_felt[p]` the rows. `given`: the first of the user's rows that the constraint
has, or -1. `passive`: the degrees of freedom without actuators, `passives` many, for inverse dynamics.

`supports`: the body moves a constrained one. Of its children only those that do: `inner`, there are some; `near`, the
body just after is one; `fork_held`, one is not the body just after; `last_held`, it is the last one of its parent.
`ends`: a child does not; `last_end`: it is the last such of its parent.

Rows in the order of the tree: `row_at[p]` is the p-th row, of constraint `holder[p]`; body i supports those of places
`first_under[i]` to `end_under[i]`. `base`: the body of a free flyer that supports some, or 0. Rows of places p to
`block_end[p]` are those of the same limb of the base (of the same tree, if there is no base). Nodes: nodes.py; ties:
ties.py."""

CONSTRAINT_REALS: Layout = REALS.extended(
    one=dict.fromkeys(("tolerance", "rounding", "settled")),
    nv={"lever": None, "reach": None},
    nc={"place_a": SE3, "place_b": SE3, "weight": Motion, "stiffness": Sym6, "kp": None, "kd": None},
    nm={"mu": None, "row_force": Force},
)
"""`lever`: how far a degree of freedom moves constraints; `reach`: and the robot (scale.py). `tolerance`, `rounding`,
`settled`: convergence.py. `mu`: of each row. `row_force`: of the row at each place, its unit force on body a. `weight`:
1 / mu of each of the six, 0 where a constraint has no such row. `stiffness`: K^T diag(weight) K in the frame of body a."""

constrained = partial(declare, tables(CONSTRAINT_INTS, CONSTRAINT_REALS))
"""The decorator of every algorithm on constrained models."""


EPSILONS = 1.0
"""What rounding leaves of a constraint, in units of the last place of the largest acceleration."""

SETTLED = {np.dtype(np.float64): 1e-7, np.dtype(np.float32): 4e-6}
"""The last change of accelerations, by their size, that counts as none."""


class ConstrainedModel:
    """A model with constraints, as algorithms take one: in the place of a `Model`; and what they are solved to, in a number
    type; not `reliable`: no step is small enough to believe it. In single precision every body counts as one that supports
    constraints: then iterations look at all of them, as rounding may have spoilt any."""

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
    ) -> None:
        if model.coupling is not None:
            raise ModelError(f"model {model.name!r} has mimic joints, which cannot be constrained yet")
        self.model, self.constraints, self.coupling = model, tuple(constraints), None
        self.joints, self.weightless, self.refuse_weightless = model.joints, model.weightless, model.refuse_weightless
        self.typical = typical  # entry of the Delassus matrix
        self.tolerance, self.most_iterations, thorough = tolerance, most_iterations, np.dtype(dtype) == np.float32
        self.rounding = EPSILONS * float(np.finfo(dtype).eps)
        self.settled = SETTLED[np.dtype(dtype)] if reliable else -1.0
        if not tolerance:  # all iterations
            self.rounding = self.settled = 0.0
        self.mu = mu * np.concatenate([np.empty(0), *(x.weight[list(x.rows)] for x in self.constraints)])  # of each row
        self.nc, self.nm = len(self.constraints), sum(constraint.dim for constraint in self.constraints)
        self.nu = sum(constraint.dim for constraint in self.constraints if constraint.dofs)
        movers = [moving(model, constraint) for constraint in self.constraints]
        places = Places(model, self.constraints)
        nodes = find_nodes(model, places, plan)
        ties = find_ties(model, self.constraints)
        touched, felt = influences(model, self.constraints, movers)
        sizes = {
            "nk": len(nodes.group),
            "nt": len(ties.tied),
            "nd": ties.gains,
            "np": len(ties.pair),
            "ns": max(sum(map(len, movers)), sum(map(len, touched)) + sum(map(len, felt))),
            "nc": self.nc,
            "nm": self.nm,
            "nmv": self.nm * model.nv,
            "nmm": self.nm**2,
            "nu": self.nu,
        }

        def fill(ints: Any, reals: Any) -> None:
            ints.most_iterations[0], reals.tolerance[0] = most_iterations, tolerance
            reals.rounding[0], reals.settled[0] = self.rounding, self.settled
            ints.passives[0] = len(passive)
            for n, k in enumerate(passive):
                ints.passive[n] = k
            fill_constraints(ints, reals, model, self.constraints, mu)
            fill_supports(ints, model, thorough)
            ints.base[0], ints.augmented[0], ints.answer[0] = places.base, plan.augmented, plan.answer
            for p, (c, k) in enumerate(places.rows):
                ints.row_at[p], ints.holder[p], ints.block_end[p] = ints.first_row[c] + k, c, places.block_end[p]
                reals.row_force[p] = act_force(reals.place_a[c], unit(ints.row_axis[ints.first_row[c] + k]))
            for name in ("first_under", "end_under"):
                fill_field(getattr(ints, name), getattr(places, name))
            for name, values in {**nodes._asdict(), **ties._asdict()}.items():
                if name != "gains":
                    fill_field(getattr(ints, name), values)
            for k, above in enumerate(elimination_tree(ints.above, model.nv, self.constraints, movers)):
                ints.joined[k] = above
            start = 0
            for c, dofs in enumerate(movers):
                ints.first_mover[c], ints.end_mover[c] = start, start + len(dofs)
                for k in dofs:
                    ints.mover[start], start = k, start + 1
            for name, values in (("lever", levers(model, self.constraints)), ("reach", reaches(model))):
                fill_field(getattr(reals, name), values.tolist())
            start = 0
            for firsts, ends, lists in (
                (ints.first_touched, ints.end_touched, touched),
                (ints.first_felt, ints.end_felt, felt),
            ):
                for p, each in enumerate(lists):
                    firsts[p], ends[p] = start, start + len(each)
                    for k in each:
                        ints.listed[start], start = k, start + 1

        self.tables = TreeTables(model, Extension(CONSTRAINT_INTS, CONSTRAINT_REALS, sizes, fill))
        self.handle = self.tables.handle


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


def elimination_tree(
    above: Any, nv: int, constraints: Sequence[Constraint], movers: Sequence[Sequence[int]]
) -> list[int]:
    """For every degree of freedom the last one before it that its elimination touches, if loops tie all that move them, and
    given rows all that they touch."""
    touched: list[set[int]] = []
    for k in range(nv):
        before = int(above[k])
        touched.append(set() if before < 0 else touched[before] | {before})
    touched = [set(each) for each in touched]
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


def fill_constraints(ints: Any, reals: Any, model: Model, constraints: Sequence[Constraint], mu: float) -> None:
    turned = [canonical_rotation(joint.kind, joint.axis) for joint in model.joints]
    for i in range(model.njoints):
        ints.held[i] = -1
    row = given = 0
    for c, constraint in enumerate(constraints):
        a, b = constraint.joint_a, constraint.joint_b
        ints.body_a[c], ints.body_b[c], ints.point[c] = a, b, constraint.point
        ints.next_held[c], ints.held[a] = ints.held[a], c
        ints.pulled[0] |= constraint.kp > 0
        ints.first_row[c], ints.end_row[c] = row, row + constraint.dim
        for axis in constraint.rows:
            ints.row_axis[row], ints.before[row] = 0 if constraint.dofs else axis, row - 1
            reals.mu[row] = mu * constraint.weight[axis]
            row += 1
        ints.given[c] = given if constraint.dofs else -1
        given += constraint.dim if constraint.dofs else 0
        for body in (a, b):
            while body > 0:
                ints.supports[body], body = 1, model.joints[body].parent
        place = seen_from(turned[a], constraint.placement_a, np.eye(3))
        reals.place_a[c] = se3(place)
        reals.place_b[c] = se3(seen_from(turned[b], constraint.placement_b, np.eye(3)))
        weight = np.zeros(6)
        if not constraint.dofs:
            weight[list(constraint.rows)] = 1.0 / (mu * constraint.weight[list(constraint.rows)])
        reals.weight[c] = Motion(Vec3(*weight[:3]), Vec3(*weight[3:]))
        reals.stiffness[c] = stiffness(place, weight)
        reals.kp[c], reals.kd[c] = constraint.kp, constraint.kd


def fill_supports(ints: Any, model: Model, thorough: bool) -> None:
    for i in range(1, model.njoints):
        ints.supports[i] |= thorough
    for i in range(1, model.njoints):
        parent = model.joints[i].parent
        if ints.supports[i]:
            ints.inner[parent] = 1
            ints.near[parent] |= parent == i - 1
            ints.fork_held[parent] |= parent != i - 1
        else:
            ints.ends[parent] = 1
    for supports, field in ((1, ints.last_held), (0, ints.last_end)):
        last = {model.joints[i].parent: i for i in range(1, model.njoints) if ints.supports[i] == supports}
        for i in last.values():
            field[i] = 1


def fill_field(field: Any, values: Sequence[float]) -> None:
    for k, value in enumerate(values):
        field[k] = value


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
