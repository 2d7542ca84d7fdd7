"""The table of algorithms: what is called, with which inputs, on batches of what size.

Batches have 1024 samples; those of a matrix (nv, nv) or (6, nv), or of one for every joint or frame, have 64 (a horizon's
worth), so that the results of the batch stay in the cache, as the single result of the peer does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

import saltus as sl
from saltus.arrays import Array, ArrayLike
from saltus.kernel import Algorithm
from saltus.kernel.interpret import count_operations

VECTORS, MATRICES = 1024, 64


@dataclass(frozen=True)
class Row:
    """A function `call(model, *inputs)`, its inputs by name, and the size of its batches."""

    call: Callable[..., Any]
    inputs: str
    batch: int = VECTORS

    @property
    def takes_out(self) -> bool:
        return "out" in inspect.signature(self.call).parameters

    def choose(self, inputs: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(inputs[name] for name in self.inputs.split())


def factor_and_solve(model: sl.Model, M: ArrayLike, x: ArrayLike) -> Array:
    return sl.ltl(model, M).solve(x)


ALGORITHMS = {
    "aba": Row(sl.aba, "q v tau"),
    "rnea": Row(sl.rnea, "q v a"),
    "crba": Row(sl.crba, "q", MATRICES),
    "centroidal_momentum_matrix": Row(sl.centroidal_momentum_matrix, "q", MATRICES),
    "nonlinear_effects": Row(sl.nonlinear_effects, "q v"),
    "gravity": Row(sl.gravity, "q"),
    "minverse": Row(sl.minverse, "q", MATRICES),
    "ltl": Row(factor_and_solve, "M tau", MATRICES),
    "joint_placements": Row(sl.joint_placements, "q", MATRICES),
    "joint_velocities": Row(sl.joint_velocities, "q v"),
    "joint_accelerations": Row(sl.joint_accelerations, "q v a"),
    "forward_kinematics": Row(sl.forward_kinematics, "q v a", MATRICES),
    "frame_placements": Row(sl.frame_placements, "q", MATRICES),
    "frame_placement": Row(sl.frame_placement, "q frame"),
    "frame_velocity": Row(sl.frame_velocity, "q v frame"),
    "frame_acceleration": Row(sl.frame_acceleration, "q v a frame"),
    "frame_jacobian": Row(sl.frame_jacobian, "q frame", MATRICES),
    "frame_jacobian_dot": Row(sl.frame_jacobian_dot, "q v frame", MATRICES),
    "joint_jacobian": Row(sl.joint_jacobian, "q joint", MATRICES),
    "joint_jacobian_dot": Row(sl.joint_jacobian_dot, "q v joint", MATRICES),
    "center_of_mass": Row(sl.center_of_mass, "q"),
    "center_of_mass_velocity": Row(sl.center_of_mass, "q v"),
    "center_of_mass_acceleration": Row(sl.center_of_mass, "q v a"),
    "center_of_mass_jacobian": Row(sl.center_of_mass_jacobian, "q", MATRICES),
    "centroidal_momentum": Row(sl.centroidal_momentum, "q v"),
    "centroidal_momentum_rate": Row(sl.centroidal_momentum_rate, "q v a"),
    "centroidal_momentum_drift": Row(sl.centroidal_momentum_drift, "q v"),
    "kinetic_energy": Row(sl.kinetic_energy, "q v"),
    "potential_energy": Row(sl.potential_energy, "q"),
    "integrate": Row(sl.integrate, "q v"),
    "difference": Row(sl.difference, "q q1"),
    "interpolate": Row(sl.interpolate, "q q1 u"),
    "distance": Row(sl.distance, "q q1"),
    "integrate_jacobians": Row(sl.integrate_jacobians, "q v", MATRICES),
    "difference_jacobians": Row(sl.difference_jacobians, "q q1", MATRICES),
}


def deepest_joint(model: sl.Model) -> int:
    """The joint with most others above it, the last one if there are several: a hand or a foot."""
    depth = [0]
    for joint in model.joints[1:]:
        depth.append(depth[joint.parent] + 1)
    return max(range(model.njoints), key=lambda i: (depth[i], i))


def make_inputs(model: sl.Model, count: int, names: str, seed: int = 0) -> dict[str, Any]:
    """The inputs asked for, `count` samples of each, seeded; a frame and a joint are the same for all."""
    joint = deepest_joint(model)

    def q(stream: int) -> Array:
        return sl.random_configuration(model, np.random.default_rng([seed, stream]), count)

    def tangent(stream: int) -> Array:
        return np.random.default_rng([seed, stream]).normal(size=(count, model.nv))

    make: dict[str, Callable[[], Any]] = {
        "q": lambda: q(0),
        "q1": lambda: q(1),
        "v": lambda: tangent(2),
        "a": lambda: tangent(3),
        "tau": lambda: tangent(4),
        "u": lambda: np.random.default_rng([seed, 5]).uniform(size=count),
        "M": lambda: sl.crba(model, q(0)),
        "joint": lambda: joint,
        "frame": lambda: max(k for k, frame in enumerate(model.frames) if frame.joint == joint),
    }
    return {name: make[name]() for name in names.split()}


def first(inputs: dict[str, Any], count: int | None = None, dtype: Any = np.float64) -> dict[str, Any]:
    """The first so many samples in one precision; with no count, one sample without a batch axis."""

    def cut(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        if count:
            return np.ascontiguousarray(value[:count], dtype)
        return np.array(value[0], dtype) if value.ndim > 1 else float(value[0])

    return {name: cut(value) for name, value in inputs.items()}


def operations(row: Row, model: sl.Model, one_sample: dict[str, Any]) -> dict[str, int]:
    """Sums, products, quotients and roots of one call of a row."""
    return counted(partial(row.call, model, *row.choose(one_sample)))


def counted(function: Callable[[], Any]) -> dict[str, int]:
    """Sums, products, quotients and roots of a function of one sample, from interpreted runs of the kernels it launches."""
    counts: dict[str, int] = {}
    plain = Algorithm.call

    def call(self: Algorithm, model: Any, inputs: tuple[Any, ...], *rest: Any) -> Any:
        for kind, number in count_operations(self, model, inputs).items():
            counts[kind] = counts.get(kind, 0) + number
        return plain(self, model, inputs, *rest)

    with patch.object(Algorithm, "call", call):
        function()
    return {kind: counts.get(kind, 0) for kind in ("sum", "product", "quotient", "root")}
