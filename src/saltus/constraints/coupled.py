"""Constrained dynamics of robots with mimic joints, v_tree = G v: the system of their tree, contracted.

    M = G^T M_tree G,      rest = G^T rest_tree,      J = J_tree G

A dense M of n coordinates has entries that are not zero where the tree's joints move each other, whichever coordinates move
those, and is factored along the tree that its elimination needs (`free_above`). All else is that of prox_ltl.py, impact.py
and system.py, which see the fields `free_...` of the tables in the place of the tree's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from saltus.arrays import Array
from saltus.constraints.convergence import Sizes, least_sizes, sized
from saltus.constraints.prox_ltl import settle
from saltus.constraints.scale import levers, reaches
from saltus.constraints.system import AXES, BODIES, aim_rows, collect_bodies, lost_to_distance, move_bodies, take_rows
from saltus.constraints.tables import CONSTRAINTS, ConstrainedModel, fill_field, moving, named
from saltus.dynamics.ltl import factor
from saltus.kernel import Layout, Part, Tables, declare, fabs, kernel, ld, overlaid, st, zero
from saltus.model.coupled_tables import CONFIGURATIONS, COUPLED, contract, expand, expand_configuration
from saltus.model.tree import TREE, extent


class Free:
    """What moves a robot's constraints, by its own coordinates."""

    def __init__(self, problem: ConstrainedModel) -> None:
        coupling = problem.robot.coupling
        assert coupling is not None
        own, tree = np.abs(coupling.G).argmax(axis=1), coupling.tree
        above: list[set[int]] = [set() for _ in range(problem.nv)]
        chains: list[set[int]] = [set()]  # of each body, the coordinates of all joints that carry it, with its own
        for joint in tree.joints[1:]:
            dofs = own[joint.iv : joint.iv + joint.nv].tolist()
            chains.append(chains[joint.parent] | set(dofs))
            for k in dofs:
                for i in chains[-1] - {k}:
                    above[max(i, k)].add(min(i, k))
        self.above = [-1] * problem.nv
        for k in range(problem.nv - 1, -1, -1):
            if above[k]:
                self.above[k] = parent = max(above[k])
                above[parent] |= above[k] - {parent}
        self.movers = [self.closed(x.dofs or own[moving(tree, x)].tolist()) for x in problem.constraints]
        held = [constraint for constraint in problem.constraints if not constraint.dofs]
        self.levers, self.reaches = (self.largest(coupling.G, x) for x in (levers(tree, held), reaches(tree)))
        for constraint in problem.constraints:
            self.levers[list(constraint.dofs)] = np.maximum(self.levers[list(constraint.dofs)], 1.0)

    def closed(self, dofs: list[int] | tuple[int, ...]) -> list[int]:
        """These and all above them, the last one first."""
        found: set[int] = set()
        for k in dofs:
            while k >= 0:
                found.add(k)
                k = self.above[k]
        return sorted(found, reverse=True)

    @staticmethod
    def largest(G: Array, of_tree: Array) -> Array:
        found: Array = (np.abs(G) * of_tree[:, None]).max(axis=0, initial=0.0)
        return found


def measure(problem: ConstrainedModel) -> Mapping[str, int]:
    nv = problem.nv
    return {"free_nvv": nv**2, "free_nmv": problem.nm * nv, "free_ns": sum(map(len, Free(problem).movers))}


def fill(problem: ConstrainedModel, ints: Any, reals: Any) -> None:
    free, start = Free(problem), 0
    fill_field(ints.free_above, free.above)
    fill_field(reals.free_lever, free.levers.tolist())
    fill_field(reals.free_reach, free.reaches.tolist())
    for c, dofs in enumerate(free.movers):
        ints.free_first_mover[c], ints.free_end_mover[c] = start, start + len(dofs)
        for k in dofs:
            ints.free_mover[start], start = k, start + 1


FREE = Part(
    ("free_nvv", "free_nmv", "free_ns"),
    Layout(free_nv=named("free_above"), nc=named("free_first_mover", "free_end_mover"), free_ns=named("free_mover")),
    Layout(free_nv=named("free_lever", "free_reach")),
    measure,
    fill,
)
"""As `above`, `mover`, `lever` ... for the coordinates of a model with mimic joints."""

coupled_constrained = Tables([TREE, CONSTRAINTS, COUPLED, FREE], CONFIGURATIONS, extent)

WORK = Layout(
    nq={"whole_q": None},
    nj=BODIES,
    nv={**AXES, "whole_v": None, "whole_tau": None, "whole_rest": None, "whole_far": None},
    nvv={"whole_M": None},
    nmv={"whole_J": None},
    free_nv=named("rest", "inverse", "scaled", "diagonal", "left", "far"),
    free_nvv={"M": None},
    free_nmv={"J": None, "plain": None},
    nmm={"delassus": None},
    nm=named("goal", "push", "scale", "step", "miss"),
)


@kernel
def assemble(tree, q, v, tau, active, target, rows, w):
    """M (its upper triangle), rest, far, J and goal of the model, from those of its tree."""
    expand_configuration(tree, q, w.whole_q)
    expand(tree, v, w.whole_v)
    for k in range(tree.nv):
        st(w.whole_tau, k, zero(q) if tree.follows[tree.body[k]] else ld(tau, tree.free[k]))
    move_bodies(tree, w.whole_q, w.whole_v, w)
    collect_bodies(tree, w.whole_q, w.whole_tau, w, w.whole_M, w.whole_rest, w.whole_far)
    aim_rows(tree, active, target, w, w.whole_J, w.goal)
    contract(tree, w.whole_rest, w.rest)
    contract_inertia(tree, w)
    contract_rows(tree, w)
    take_rows(overlaid(tree, "free_"), active, target, rows, w.J, w.goal)


@kernel
def contract_inertia(tree, w):
    """M and, as sizes, what distance adds to it."""
    o, n = zero(w.M), tree.free_nv
    for k in range(n * n):
        st(w.M, k, o)
    for k in range(n):
        w.far[k] = o
    for k in range(tree.nv):
        a, r = tree.free[k], tree.ratio[k]
        add(w.M, a * n + a, r * r * ld(w.whole_M, k * tree.nv + k))
        w.far[a] = w.far[a] + r * r * w.whole_far[k]
        j = tree.above[k]
        while j >= 0:
            b, entry = tree.free[j], r * tree.ratio[j] * ld(w.whole_M, j * tree.nv + k)
            if a == b:
                add(w.M, a * n + a, 2.0 * entry)
                w.far[a] = w.far[a] + 2.0 * fabs(entry)
            else:
                add(w.M, min(a, b) * n + max(a, b), entry)
            j = tree.above[j]


@kernel
def contract_rows(tree, w):
    for c in range(tree.nc):
        if tree.given[c] < 0:
            for r in range(tree.first_row[c], tree.end_row[c]):
                for k in range(tree.free_nv):
                    st(w.J, r * tree.free_nv + k, 0.0)
                for k in range(tree.nv):
                    add(w.J, r * tree.free_nv + tree.free[k], tree.ratio[k] * ld(w.whole_J, r * tree.nv + k))


@kernel
def add(x, k, value):
    st(x, k, ld(x, k) + value)


SYSTEM = {"q": "free_nq", "v": "free_nv", "tau": "free_nv", "active": "nc", "target": "nm"}


@declare(
    coupled_constrained,
    inputs={**SYSTEM, "start": "nm", "rows": "nu free_nv"},
    outputs={"a": "free_nv", "forces": "nm", "report": "5"},
    work=WORK,
    inverts_inertia=True,
    double_only=True,
)
def _coupled_prox_ltl(tree, q, v, tau, active, target, start, rows, w, a, forces, report):
    assemble(tree, q, v, tau, active, target, rows, w)
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            st(w.push, r, ld(start, r) * ld(active, c))
    settle(overlaid(tree, "free_"), least_sizes(tree, zero(q)), w, a, forces, report)


@declare(
    coupled_constrained,
    inputs={**SYSTEM, "rows": "nu free_nv"},
    outputs={"M": "free_nv free_nv", "rest": "free_nv", "J": "nm free_nv", "goal": "nm", "lost": "1"},
    work=WORK,
)
def _coupled_system(tree, q, v, tau, active, target, rows, w, M, rest, J, goal, lost):
    assemble(tree, q, v, tau, active, target, rows, w)
    n = tree.free_nv
    for k in range(n):
        st(rest, k, w.rest[k])
        for j in range(k + 1):
            st(M, k * n + j, ld(w.M, j * n + k))
            st(M, j * n + k, ld(w.M, j * n + k))
    for k in range(tree.nm * n):
        st(J, k, w.J[k])
    for r in range(tree.nm):
        st(goal, r, w.goal[r])
    factor(tree.free_above, n, w.M, w.inverse)
    for k in range(n):
        w.inverse[k] = 1.0 / w.inverse[k]
    st(lost, 0, lost_to_distance(w.far, w.inverse, n))


@declare(
    coupled_constrained,
    inputs={"q": "free_nq", "v": "free_nv", "active": "nc", "restitution": "nc", "rows": "nu free_nv"},
    outputs={"after": "free_nv", "impulses": "nm", "report": "5"},
    work=WORK,
    inverts_inertia=True,
    double_only=True,
)
def _coupled_impact(tree, q, v, active, restitution, rows, w, after, impulses, report):
    o, free = zero(q), overlaid(tree, "free_")
    for r in range(tree.nm):
        w.push[r] = o
    assemble(tree, q, v, v, active, w.push, rows, w)
    sizes = Sizes(o, o, o, o)
    for k in range(free.nv):  # in no time, only impulses count
        w.rest[k] = o
        sizes = sized(free, k, o, ld(v, k), sizes)
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            speed = o
            for k in range(free.nv):
                speed = speed + ld(w.J, r * free.nv + k) * ld(v, k)
            w.goal[r] = -(1.0 + ld(restitution, c)) * speed
    settle(free, sizes, w, after, impulses, report)
    for k in range(free.nv):
        st(after, k, ld(after, k) + ld(v, k))
