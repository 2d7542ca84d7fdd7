"""What kernels see of a robot with mimic joints: its tree, in which all joints are free, and how the model's coordinates
make that move (coupling.py).

Joints that move together, a primary and those that follow it, are a *group*, moved by the primary's coordinate. On the way
from the leaves to the root a group is *open* at a body if some of its joints are among those that the body carries, and not
all: each open group has a *slot* there. It closes at the body that carries them all: right after that joint's own motion, if
the joint is one of them, else before it, or at the universe.

| sizes | |
|---|---|
| `free_nq`, `free_nv` | coordinates and degrees of freedom of the model |
| `tree_v`, `tree_a` | degrees of freedom of the tree: arrays of so many numbers |
| `n_groups`, `n_slots` | groups, slots |
| `n_pairs`, `n_couples`, `n_others` | at a body: pairs of slots; of a slot and a freedom; of one that closes and another |
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from saltus.kernel import Configurations, Layout, Part, Tables, atan2, declare, kernel, ld, sincos, st, zero
from saltus.model.joint_kernels import CONTINUOUS, joint_defects
from saltus.model.tree import TREE, explain, extent, not_allowed
from saltus.spatial.algebra import Vec2

if TYPE_CHECKING:
    from saltus.model.model import Model

INTS = Layout(
    nj=dict.fromkeys(("first_q", "width", "follows", "first_slot", "slots", "first_pair")),
    nv=dict.fromkeys(("free", "slot", "closes", "first_couple")),
    n_slots=dict.fromkeys(("upper", "group", "closed_first", "first_other")),
)
"""`first_q`: the first coordinate of a joint, its primary's if it follows one; `width`: how many it has; `free`: the model's
degree of freedom that moves one of the tree. `slot`: of its group, or -1; `closes`: the group closes with it. `upper`: the
slot of the group at the parent, or -1; `closed_first`: the group closes before the joint's own motion."""

REALS = Layout(nj={"offset": None}, nv={"ratio": None})


class Slots:
    """Where groups are open."""

    def __init__(self, model: Model) -> None:
        parents = [joint.parent for joint in model.joints]
        primaries = sorted({model.joint_index(joint.mimic.primary) for joint in model.joints if joint.mimic})
        self.groups = [
            {i}
            | {k for k, joint in enumerate(model.joints) if joint.mimic and model.joint_index(joint.mimic.primary) == i}
            for i in primaries
        ]
        carried = [[0] * len(self.groups) for _ in parents]  # joints of each group that a body carries, with its own
        for g, members in enumerate(self.groups):
            for i in members:
                carried[i][g] += 1
        for i in range(len(parents) - 1, 0, -1):
            for g in range(len(self.groups)):
                carried[parents[i]][g] += carried[i][g]
        children = [[k for k, parent in enumerate(parents) if parent == i and k > 0] for i in range(len(parents))]
        whole = [len(members) for members in self.groups]
        closed_below = [[any(carried[k][g] == whole[g] for k in children[i]) for g in range(len(whole))]
                        for i in range(len(parents))]  # fmt: skip
        self.of_body = [
            [g for g in range(len(whole)) if carried[i][g] and not closed_below[i][g]] for i in range(len(parents))
        ]
        """Of each body, the groups that have a slot there."""
        self.closing = [{g for g in each if carried[i][g] == whole[g]} for i, each in enumerate(self.of_body)]
        self.first = [0]
        for each in self.of_body:
            self.first.append(self.first[-1] + len(each))

    def at(self, body: int, group: int) -> int:
        """The slot of a group at a body."""
        return self.first[body] + self.of_body[body].index(group)

    @property
    def sizes(self) -> dict[str, int]:
        counts = [len(each) for each in self.of_body]
        others = sum(len(closing) * n for closing, n in zip(self.closing, counts, strict=True))
        return {
            "n_groups": len(self.groups),
            "n_slots": sum(counts),
            "n_pairs": sum(n * n for n in counts),
            "n_others": others,
        }


def couples(model: Model, slots: Slots) -> int:
    return sum(joint.kind.nv * len(each) for joint, each in zip(model.joints, slots.of_body, strict=True))


def robot_of(model: Any) -> Model:
    """The robot itself, where it is one with constraints."""
    robot: Model = getattr(model, "robot", model)
    return robot


def measure(model: Any) -> Mapping[str, int]:
    model = robot_of(model)
    slots, nv = Slots(model), sum(joint.kind.nv for joint in model.joints)
    sizes = {"free_nq": model.nq, "free_nv": model.nv, "tree_v": nv, "tree_a": nv}
    return sizes | slots.sizes | {"n_couples": couples(model, slots)}


def fill(model: Any, ints: Any, reals: Any) -> None:
    model = robot_of(model)
    slots = Slots(model)
    pair = couple = other = k = 0
    for i, joint in enumerate(model.joints):
        groups = slots.of_body[i]
        ints.first_q[i], ints.width[i], ints.follows[i] = joint.iq, joint.kind.nq, joint.mimic is not None
        ints.first_slot[i], ints.slots[i], ints.first_pair[i] = slots.first[i], len(groups), pair
        pair += len(groups) ** 2
        reals.offset[i] = joint.mimic.offset if joint.mimic else 0.0
        own = next((g for g, members in enumerate(slots.groups) if i in members), None)
        for s, g in enumerate(groups, slots.first[i]):
            closes = g in slots.closing[i]
            ints.group[s], ints.first_other[s] = g, other
            ints.upper[s] = -1 if closes else slots.at(joint.parent, g)
            ints.closed_first[s] = closes and g != own
            other += len(groups) if closes else 0
        for n in range(joint.kind.nv):
            ints.free[k], reals.ratio[k] = joint.iv + n, joint.mimic.ratio if joint.mimic else 1.0
            ints.slot[k] = -1 if own is None else slots.at(i, own)
            ints.closes[k] = own is not None and own in slots.closing[i]
            ints.first_couple[k] = couple
            couple, k = couple + len(groups), k + 1


@kernel
def free_defects(tree, q):
    """As `defects`, of the coordinates that a model with mimic joints has."""
    worst, angle = zero(q), zero(q)
    for i in range(1, tree.nj):
        if not tree.follows[i]:
            worst, angle = joint_defects(tree.kind[i], tree.first_q[i], q, worst, angle)
    return worst, angle


@kernel
def expand_configuration(tree, q, whole):
    """The configuration of the tree, from the model's."""
    for i in range(1, tree.nj):
        first, iq = tree.first_q[i], tree.iq[i]
        if not tree.follows[i]:
            for k in range(tree.width[i]):
                st(whole, iq + k, ld(q, first + k))
        elif tree.kind[i] == CONTINUOUS:
            s, c = sincos(tree.ratio[tree.iv[i]] * atan2(ld(q, first + 1), ld(q, first)) + tree.offset[i])
            st(whole, iq, Vec2(c, s))
        else:
            st(whole, iq, tree.ratio[tree.iv[i]] * ld(q, first) + tree.offset[i])


@kernel
def expand(tree, v, whole):
    """The motion of the tree, from the model's: G v."""
    for k in range(tree.nv):
        st(whole, k, tree.ratio[k] * ld(v, tree.free[k]))


@kernel
def contract(tree, whole, tau):
    """The torques of the model, from those of the tree: G^T tau."""
    for k in range(tree.free_nv):
        st(tau, k, zero(tau))
    for k in range(tree.nv):
        st(tau, tree.free[k], ld(tau, tree.free[k]) + tree.ratio[k] * ld(whole, k))


SIZES = ("free_nq", "free_nv", "tree_v", "tree_a", "n_groups", "n_slots", "n_pairs", "n_couples", "n_others")
COUPLED = Part(SIZES, INTS, REALS, measure, fill, couples=True)
CONFIGURATIONS = Configurations(free_defects, explain, not_allowed, lambda model: robot_of(model).neutral())
TABLES = Tables([TREE, COUPLED], CONFIGURATIONS, extent)
coupled_algorithm = partial(declare, TABLES)
"""The decorator of what stands in the place of an algorithm for models with mimic joints (`Algorithm.coupled`)."""
