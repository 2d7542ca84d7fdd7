"""Seeded random trees of all joint kinds, with states: what the algorithms are tested on besides real robots.

The same seed always gives the same trees. Most are small, so that a dense oracle can follow; some have 80 bodies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import saltus as sl

KINDS = [kind.name.lower() for kind in sl.JointKind if kind != sl.JointKind.UNIVERSE]


@dataclass
class State:
    """Inputs of all algorithms, of one sample or with leading axes."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray
    forces: np.ndarray
    q1: np.ndarray
    """Another configuration: q moved by less than pi along every rotation."""

    def map(self, change: object) -> State:
        return State(**{name: change(value) for name, value in vars(self).items()})  # type: ignore[operator]


def random_state(
    model: sl.Model, seed: int, shape: int | tuple[int, ...] = (), speed: float = 1.0, turns: float = 0.0
) -> State:
    """A random state; with velocities about `speed`, and hinges wound up by as many turns."""
    rng = np.random.default_rng(seed)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    q = sl.random_configuration(model, rng, shape)
    for joint in model.joints:
        if joint.kind == sl.JointKind.REVOLUTE and not joint.mimic:
            q[..., joint.iq] += 2.0 * np.pi * np.round(turns * rng.uniform(-1.0, 1.0, shape))
    v, a, tau = rng.normal(size=(3, *shape, model.nv))
    forces = rng.normal(size=(*shape, model.njoints, 6))
    q1 = sl.integrate(model, q, rng.uniform(-1.0, 1.0, (*shape, model.nv)))
    return State(q, speed * v, 5.0 * a, 10.0 * tau, 10.0 * forces, q1)


def reconnected(model: sl.Model, parents: list[int]) -> sl.Model:
    """The same joints and bodies, joint i + 1 now hanging on joint parents[i]."""
    joints = [replace(joint, parent=parent) for joint, parent in zip(model.joints[1:], parents, strict=True)]
    return model.replace(joints=(model.joints[0], *joints))


def chain(model: sl.Model) -> sl.Model:
    return reconnected(model, list(range(model.nb)))


def star(model: sl.Model, arms: int) -> sl.Model:
    """The first body carries this many arms, as far as there are bodies."""
    return reconnected(model, [0] + [max(1, i - arms) for i in range(2, model.nb + 1)])


def breadth_first(model: sl.Model) -> sl.Model:
    """A binary tree numbered level by level: degrees of freedom of a branch do not lie together."""
    return reconnected(model, [i // 2 for i in range(1, model.nb + 1)])


def weighted(model: sl.Model, seed: int, spread: float) -> sl.Model:
    """Masses and inertias scaled body by body, by factors between 1 / spread and spread."""
    factors = spread ** np.random.default_rng(seed).uniform(-1.0, 1.0, model.njoints)
    joints = [
        joint if i == 0 else replace(joint, mass=joint.mass * k, inertia=joint.inertia * k)
        for i, (joint, k) in enumerate(zip(model.joints, factors.tolist(), strict=True))
    ]
    return model.replace(joints=tuple(joints))


def with_armature(model: sl.Model, seed: int) -> sl.Model:
    return model.with_armature(np.random.default_rng(seed).uniform(0.0, 0.5, model.nv))


def tilted(model: sl.Model, seed: int) -> sl.Model:
    return model.replace(gravity=np.random.default_rng(seed).normal(size=3) * 6.0)


def rebuilt(model: sl.Model, root: str | None = None, mimics: dict[int, sl.Mimic] | None = None) -> sl.Model:
    """The same joints and bodies from a builder: all below a root joint of this kind, some made mimic joints."""
    builder = sl.ModelBuilder(model.name, model.gravity)
    shift = 0
    if root is not None:
        builder.add_joint("root", root)
        builder.add_body("root", 3.0, (0.1, -0.05, 0.02), np.diag([0.1, 0.12, 0.15]))
        shift = 1
    for i, joint in enumerate(model.joints[1:], start=1):
        parent, mimic = joint.parent + shift, (mimics or {}).get(i)
        builder.add_joint(joint.name, joint.kind, parent, joint.placement, joint.axis, mimic=mimic)
        builder.add_body(joint.name, joint.mass, joint.com, joint.inertia)
        builder.add_frame(f"tool_{i}", joint.name, joint.placement)
    return builder.build()


def floating_tree(seed: int, bodies: int) -> sl.Model:
    """A random tree on a free-flying base, with a tilted gravity."""
    branches = sl.random_model(seed, max(1, bodies - 1))
    if bodies == 1:
        branches = sl.ModelBuilder("body").build()
    return tilted(rebuilt(branches, "free_flyer"), seed)


def mimic_tree(seed: int, bodies: int) -> sl.Model:
    """A random tree in which about half of the joints with an axis follow another one."""
    rng = np.random.default_rng(seed)
    model = sl.random_model(seed, bodies, ["revolute", "prismatic", "continuous", "spherical", "revolute"])
    turning, straight = [sl.JointKind.CONTINUOUS], [sl.JointKind.REVOLUTE, sl.JointKind.PRISMATIC]
    mimics: dict[int, sl.Mimic] = {}
    for kinds in (turning, straight):
        able = [i for i, joint in enumerate(model.joints) if joint.kind in kinds]
        for i in able[1:]:
            if rng.random() < 0.5:
                free = [k for k in able if k not in mimics and k != i]
                primary = model.joints[free[rng.integers(len(free))]].name
                mimics[i] = sl.Mimic(primary, float(rng.uniform(-2.0, 2.0)), float(rng.normal()))
    followed = {mimic.primary for mimic in mimics.values()}
    mimics = {i: mimic for i, mimic in mimics.items() if model.joints[i].name not in followed}
    return tilted(rebuilt(model, mimics=mimics), seed)


@dataclass
class Tree:
    name: str
    model: sl.Model
    state: State


def make_tree(seed: int, bodies: int) -> Tree:
    """Tree number `seed`: its shape, weights, armature and gravity, and how fast it moves, follow from the number."""
    shapes = {
        "random": lambda model: model,
        "chain": chain,
        "star": lambda model: star(model, 5),
        "levels": breadth_first,
        "bare": lambda model: model,
    }
    shape = list(shapes)[seed % len(shapes)]
    # Trees of one kind of joint now and then: a mistake in one kind then shows up alone.
    kinds = [KINDS[seed // 6 % len(KINDS)]] if seed % 6 == 0 else KINDS
    model = shapes[shape](sl.random_model(seed, bodies, kinds))
    if shape != "bare":
        model = tilted(with_armature(model, seed), seed)
    if seed % 4 == 1:
        model = weighted(model, seed, 10.0)
    speed, turns = (30.0, 10.0) if seed % 3 == 2 else (1.0, 0.0)
    state = random_state(model, seed, speed=speed, turns=turns)
    return Tree(f"{seed}-{shape}-{bodies}", model, state)


def body_counts() -> list[int]:
    """How many bodies each of the 200 trees has: single ones of every kind, many small trees, a few large ones."""
    rng = np.random.default_rng(0)
    single, small = [1] * 20, rng.integers(2, 13, 150).tolist()
    middle, large = rng.integers(13, 40, 25).tolist(), [50, 60, 70, 80, 80]
    return single + small + middle + large


TREES: list[tuple[int, int]] = list(enumerate(body_counts()))
"""Seed and number of bodies of every tree."""
