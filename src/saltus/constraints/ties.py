"""Ties between bodies that loops make, and those that eliminating joints makes of them (loop_aba.py).

Joints are eliminated from the last body to the first. A body that goes ties those it was tied to among each other, and to its
parent: which of them is known beforehand, from the tree and the constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from saltus.constraints.constraint import Constraint
from saltus.model.model import Model


class Ties(NamedTuple):
    """Ties of body i with those before it are `first_tie[i]` to `end_tie[i]`, `tied` the other one, in ascending order.

    moved: the tie of the parent with the other one, which takes this one over when body i goes; -1 if that is the parent, or
    the parent is the world. turned_over: of the two the other one is the later.
    pair: from `first_pair[i]` on, of each two that body i is tied to, their tie: (1, 0), (2, 0), (2, 1), (3, 0) ...
    tie, swapped: of each constraint; body a is the earlier one. -1 if one of them is the world.
    gains: how many degrees of freedom times ties there are; those of body i begin at `first_gain[i]`.
    """

    first_tie: list[int]
    end_tie: list[int]
    tied: list[int]
    moved: list[int]
    turned_over: list[int]
    first_pair: list[int]
    pair: list[int]
    first_gain: list[int]
    gains: int
    tie: list[int]
    swapped: list[int]


def find_ties(model: Model, constraints: Sequence[Constraint]) -> Ties:
    parents = [joint.parent for joint in model.joints]
    others: list[set[int]] = [set() for _ in parents]  # of each body, those before it that it is tied to when it goes
    for constraint in constraints:
        low, high = sorted((constraint.joint_a, constraint.joint_b))
        if 0 < low < high:
            others[high].add(low)
    for i in range(len(parents) - 1, 0, -1):
        for low, high in combinations(sorted(others[i] | {parents[i]}), 2):
            if others[i] and low > 0:
                others[high].add(low)
    index = {(i, j): t for t, (i, j) in enumerate((i, j) for i, each in enumerate(others) for j in sorted(each))}
    first_tie, first_pair, first_gain, pair, gains, start = [], [], [], [], 0, 0
    for i, each in enumerate(others):
        first_tie.append(start)
        first_pair.append(len(pair))
        first_gain.append(gains)
        start += len(each)
        gains += len(each) * model.joints[i].nv
        ordered = sorted(each)
        pair += [index[high, low] for n, high in enumerate(ordered) for low in ordered[:n]]
    moved = [
        index[max(parents[i], j), min(parents[i], j)] if 0 < parents[i] != j else -1 for i, j in index
    ]
    pairs = [sorted((x.joint_a, x.joint_b)) for x in constraints]
    return Ties(
        first_tie=first_tie,
        end_tie=[*first_tie[1:], start],
        tied=[j for _, j in index],
        moved=moved,
        turned_over=[int(parents[i] < j) for i, j in index],
        first_pair=first_pair,
        pair=pair,
        first_gain=first_gain,
        gains=gains,
        tie=[index.get((high, low), -1) for low, high in pairs],
        swapped=[int(x.joint_a < x.joint_b) for x in constraints],
    )
