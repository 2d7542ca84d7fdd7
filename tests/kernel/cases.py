"""Inputs for any declared algorithm, made from its declaration: for tests that go through all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.dynamics.rnea import _rnea
from saltus.kernel import ALGORITHMS, Algorithm
from tests.closeness import with_rounding

LAYERS = ("saltus.model.", "saltus.dynamics.", "saltus.derivatives.")
PACKAGE = [x for x in ALGORITHMS if x.kernel.__module__.startswith(LAYERS) and x.tables is _rnea.tables]
"""The package's algorithms on models, without those that tests declare; those on constrained models: tests/constraints."""

VARIANTS = [(algorithm, given) for algorithm in PACKAGE for given in algorithm.variants()]
"""Every algorithm with every number of inputs that it takes."""

NAMES = [f"{algorithm.name}-{given}" for algorithm, given in VARIANTS]

PRECISIONS = [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)]
"""Single precision is compiled for `make slow` alone."""

SOLVERS = {"aba", "aba_derivatives", "minverse", "ltl_solve", "ltl_solve_upper", "ltl_solve_lower", "ltl"}
"""Algorithms whose rounding errors grow with the condition number of the inertia matrix."""


def all_kinds() -> sl.Model:
    """A tree with every kind of joint, of a well-conditioned inertia matrix, as single precision needs it."""
    model = sl.random_model(seed=21, bodies=10)
    assert {joint.kind for joint in model.joints} == set(sl.JointKind)
    return model.replace(armature=np.full(model.nv, 1.0), gravity=np.array([1.0, -2.0, -9.0]))


def random_inputs(
    algorithm: Algorithm, given: int, model: sl.Model, seed: int, leading: tuple[int, ...] = ()
) -> list[Any]:
    """Float64 arrays with these leading axes; integers have none."""
    rng = np.random.default_rng(seed)
    inputs: list[Any] = []
    for spec in algorithm.inputs[:given]:
        if spec.integer:
            assert spec.name == "which"
            inputs.append(np.array([0, len(model.frames) - 1, 2], np.int32))
        elif spec.configuration:
            inputs.append(sl.random_configuration(model, rng, leading))
        elif spec.name in ("M", "U", "D"):
            M = sl.crba(model, sl.random_configuration(model, rng, leading))
            factors = sl.ltl(model, M)
            inputs.append({"M": M, "U": factors.U, "D": factors.D}[spec.name])
        else:
            inputs.append(rng.normal(size=leading + spec.resolve(algorithm.sizes(model, inputs))))
    return inputs


def single_tolerance(model: sl.Model) -> float:
    """For single precision, of what may solve with the inertia matrix of this model."""
    condition = np.linalg.cond(sl.crba(model, sl.random_configuration(model, 0, 20))).max()
    return float(with_rounding(0.0, condition, 4.0, np.float32))


def run(algorithm: Algorithm, model: sl.Model, inputs: list[Any], out: Any = None) -> tuple[Any, ...]:
    """The results, always as a tuple."""
    answer = algorithm.call(model, tuple(inputs), out)
    return answer if isinstance(answer, tuple) else (answer,)


def sample(algorithm: Algorithm, inputs: list[Any], index: tuple[int, ...]) -> list[Any]:
    """One sample of a batch whose inputs all have the same leading axes."""
    pairs = zip(algorithm.inputs, inputs, strict=False)
    return [value if spec.integer else np.array(value[index]) for spec, value in pairs]
