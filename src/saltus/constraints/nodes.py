"""Rows of contacts in the order of the tree, and the nodes at which OSIM algorithms turn rows into unit forces (osim.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from saltus.constraints.constraint import Constraint
from saltus.model.joints import JointKind
from saltus.model.model import Model


class Plan(NamedTuple):
    """What an algorithm of the OSIM family does; by default none of it."""

    every_body: bool = False  # is a node, if it supports rows
    branches: bool = False  # are nodes, where rows meet and become more than six
    base: bool = False  # is a node, whose joint is dealt with apart
    augmented: bool = False  # inertias have the constraints added to them
    answer: int = 0


class Places:
    """Rows in the order in which the tree is walked depth first, so that each body supports those of a range of places."""

    def __init__(self, model: Model, constraints: Sequence[Constraint]) -> None:
        children: dict[int, list[int]] = {}
        for i, joint in enumerate(model.joints[1:], 1):
            children.setdefault(joint.parent, []).append(i)
        self.rows: list[tuple[int, int]] = []  # constraint, and which of its rows
        self.first_under, self.end_under = [0] * model.njoints, [0] * model.njoints
        visits = [(0, False)]
        while visits:  # without recursion: chains may be long
            body, done = visits.pop()
            if done:
                self.end_under[body] = len(self.rows)
                continue
            self.first_under[body] = len(self.rows)
            visits += [(body, True), *((child, False) for child in reversed(children.get(body, [])))]
            for c, constraint in enumerate(constraints):
                if constraint.joint_a == body:
                    self.rows += [(c, k) for k in range(constraint.dim)]
        roots = children.get(0, [])
        self.base = next((i for i in roots if model.joints[i].kind is JointKind.FREE_FLYER and self.count(i)), 0)
        self.block_end = list(range(1, len(self.rows) + 1))
        for i in [i for i in roots if i != self.base] + (children.get(self.base, []) if self.base else []):
            for p in range(self.first_under[i], self.end_under[i]):
                self.block_end[p] = self.end_under[i]

    def count(self, body: int) -> int:
        """How many rows the body supports."""
        return self.end_under[body] - self.first_under[body]


class Nodes(NamedTuple):
    """Tables of a plan: see tables.py."""

    node: list[int]
    node_above: list[int]
    first_at: list[int]
    group: list[int]


def find_nodes(model: Model, places: Places, plan: Plan) -> Nodes:
    """`node[i]`: the node whose unit forces pass body i, or 0 if rows do. `node_above[i]`: the next one towards the root.
    Node i has a list of the rows that it supports from `first_at[i]` on; `group`: how many rows of this list, from its
    start, do not meet the row at an earlier node."""
    parents = [joint.parent for joint in model.joints]
    most_below, chosen = [0] * model.njoints, []
    for i in range(model.njoints - 1, 0, -1):
        many = plan.branches and places.count(i) > max(6, most_below[i])
        if places.count(i) and (plan.every_body or many or (plan.base and i == places.base)):
            chosen.append(i)
        most_below[parents[i]] = max(most_below[parents[i]], places.count(i))
    node, above = [0] * model.njoints, [0] * model.njoints
    for i in chosen:
        node[i], j = i, parents[i]
        while j > 0 and j not in chosen:
            node[j], j = i, parents[j]
        above[i] = j
    first_at: list[int] = [0] * model.njoints
    group: list[int] = []
    for i in reversed(chosen):
        first_at[i], first = len(group), places.first_under[i]
        inner = [j for j in chosen if above[j] == i]
        for p in range(first, places.end_under[i]):
            start = (places.first_under[j] for j in inner if places.first_under[j] <= p < places.end_under[j])
            group.append(next(start, p + 1) - first)
    return Nodes(node, above, first_at, group)
