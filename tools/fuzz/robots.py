"""Random robots of any size and weight, with states, and the units in which their numbers are about one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

import saltus as sl
from saltus.arrays import Array
from tests.generators import (
    KINDS,
    breadth_first,
    chain,
    floating_tree,
    mimic_tree,
    star,
    tilted,
    weighted,
    with_armature,
)

LINEAR = {  # degrees of freedom that are lengths, by kind of joint; their coordinates come first as well
    sl.JointKind.PRISMATIC: 1,
    sl.JointKind.PLANAR: 2,
    sl.JointKind.TRANSLATION: 3,
    sl.JointKind.FREE_FLYER: 3,
}


@dataclass(frozen=True)
class Units:
    """Of a robot whose masses are about `mass` kg, and whose links are about `length` m; times are seconds."""

    model: sl.Model
    mass: float
    length: float

    def _lengths(self, size: int, starts: str) -> Array:
        """(size,): the exponents of the length in the entries of q or v."""
        exponents = np.zeros(size)
        for joint in (joint for joint in self.model.joints if joint.nv):
            start = getattr(joint, starts)
            exponents[start : start + LINEAR.get(joint.kind, 0)] = 1.0
        return exponents

    @cached_property
    def q(self) -> Array:
        return self.length ** self._lengths(self.model.nq, "iq")

    @cached_property
    def v(self) -> Array:
        return self.length ** self._lengths(self.model.nv, "iv")

    @cached_property
    def tau(self) -> Array:
        return self.mass * self.length**2 / self.v

    @property
    def motion(self) -> Array:
        return self.length ** np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])

    @property
    def wrench(self) -> Array:
        return self.mass * self.length**2 / self.motion

    @property
    def placement(self) -> Array:
        unit = np.ones((4, 4))
        unit[:3, 3] = self.length
        return unit

    @property
    def inertia(self) -> Array:
        return np.outer(self.wrench, 1.0 / self.motion)

    @property
    def M(self) -> Array:
        return np.outer(self.tau, 1.0 / self.v)

    @property
    def J(self) -> Array:
        return np.outer(self.motion, 1.0 / self.v)


def scaled(model: sl.Model, mass: float, length: float) -> tuple[sl.Model, Units]:
    """The same robot, so many times as heavy and as long; gravity is as it was."""
    units = Units(model, mass, length)

    def longer(placement: Array) -> Array:
        return placement * units.placement

    joints = []
    for joint in model.joints:
        mimic = joint.mimic
        if mimic is not None:
            own, primary = (length ** min(1, LINEAR.get(kind, 0)) for kind in (
                joint.kind, model.joints[model.joint_index(mimic.primary)].kind))  # fmt: skip
            mimic = sl.Mimic(mimic.primary, mimic.ratio * own / primary, mimic.offset * own)
        joints.append(
            replace(
                joint, placement=longer(joint.placement), com=joint.com * length, mass=joint.mass * mass,
                inertia=joint.inertia * mass * length**2, mimic=mimic,
            )
        )  # fmt: skip
    larger = model.replace(
        joints=tuple(joints),
        frames=tuple(replace(frame, placement=longer(frame.placement)) for frame in model.frames),
        armature=model.armature * np.diag(units.M),
        lower_position_limit=model.lower_position_limit * units.q,
        upper_position_limit=model.upper_position_limit * units.q,
    )
    return larger, Units(larger, mass, length)


def random_base(rng: np.random.Generator, most: int, mimics: bool) -> sl.Model:
    """A tree of at most so many joints: any kinds, or one; fixed or floating; a chain, a star, or branches; mimic joints."""
    seed, bodies = int(rng.integers(2**31)), int(min(rng.integers(1, most + 1), rng.integers(1, most + 1)))
    if mimics and rng.random() < 0.1:
        return mimic_tree(seed, bodies + 1)
    if rng.random() < 0.35:
        model = floating_tree(seed, bodies)
    else:
        kinds = [KINDS[rng.integers(len(KINDS))]] if rng.random() < 0.25 else KINDS
        model = sl.random_model(seed, bodies, kinds)
    shape = rng.integers(6)
    if shape == 0:
        model = chain(model)
    elif shape == 1:
        model = star(model, int(rng.integers(1, 6)))
    elif shape == 2:
        model = breadth_first(model)
    if rng.random() < 0.5:
        model = with_armature(model, seed)
    if rng.random() < 0.3:
        model = weighted(model, seed, float(rng.choice([3.0, 30.0])))
    return tilted(model, seed) if rng.random() < 0.5 else model


def random_robot(rng: np.random.Generator, most: int, mimics: bool = False) -> tuple[sl.Model, Units]:
    """A random tree, half of the time much lighter, heavier, smaller or larger than usual robots."""
    model = random_base(rng, most, mimics)
    if rng.random() < 0.5:
        return scaled(model, 1.0, 1.0)
    return scaled(model, 10.0 ** rng.uniform(-9, 9), 10.0 ** rng.uniform(-3, 3))


def random_q(rng: np.random.Generator, units: Units, shape: tuple[int, ...] = ()) -> Array:
    """Within limits; now and then exactly at neutral, where many robots are singular."""
    if rng.random() < 0.1:
        return np.broadcast_to(units.model.neutral(), (*shape, units.model.nq)).copy()
    return sl.random_configuration(units.model, rng, shape)


def gravity_size(units: Units) -> float:
    return float(np.abs(units.model.gravity).max()) / units.length
