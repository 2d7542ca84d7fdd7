"""All algorithms on constrained models in every form: interpreted, symbols, counts, packets, singles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.constraints.constrained_aba import _constrained_aba
from saltus.constraints.nodes import Plan
from saltus.constraints.osim import AT_ONCE, _osim
from saltus.constraints.osim_base import _osim_base, _osim_base_times
from saltus.constraints.prox_pv import _prox_pv
from saltus.constraints.response import _response
from saltus.constraints.tables import ConstrainedModel
from saltus.kernel import ALGORITHMS, Algorithm
from saltus.kernel.interpret import casadi_function, count_operations, interpret
from saltus.model.coupled_tables import COUPLED
from tests.closeness import assert_close
from tests.kernel.cases import all_kinds, run, sample, single_tolerance

HOMES = "saltus.constraints."
CONSTRAINED = [x for x in ALGORITHMS if x.kernel.__module__.startswith(HOMES) and COUPLED not in x.tables.parts]
"""Those for robots with mimic joints: test_coupled.py."""

each_algorithm = pytest.mark.parametrize("algorithm", CONSTRAINED, ids=lambda algorithm: algorithm.name)
CONTACTS_ONLY = {_constrained_aba, _prox_pv, _osim, _osim_base, _osim_base_times, _response}


def problem(algorithm: Algorithm, iterations: int = 3) -> ConstrainedModel:
    """Contacts, a loop, and rows of the user's, as far as the algorithm takes them, on a tree of all kinds of joints; single
    precision bears this mu."""
    model = all_kinds()
    a, b, c = (
        k for k, frame in enumerate(model.frames) if frame.joint in (3, 6, 10) and frame.kind == sl.FrameKind.JOINT
    )
    constraints = [sl.Contact(model, a, kd=2.0), sl.Contact(model, b, 6)]
    if algorithm not in CONTACTS_ONLY:
        constraints += [sl.LoopClosure(model, c, b, 5)]
        if "rows" in {spec.name for spec in algorithm.inputs}:
            constraints += [sl.UserRows(model, 2, [1, 4, 7])]
    else:
        constraints += [sl.Contact(model, c)]
    plan = Plan(branches=True, base=True, augmented=True, answer=AT_ONCE)
    return ConstrainedModel(model, constraints, 1e-1, 0.0, iterations, plan, passive=[0, 3, 5])


def random_inputs(algorithm: Algorithm, seed: int, leading: tuple[int, ...] = ()) -> list[Any]:
    constrained = problem(algorithm)
    rng, sizes = np.random.default_rng(seed), algorithm.filled(constrained).sizes
    inputs: list[Any] = []
    for spec in algorithm.inputs:
        shape = leading + spec.resolve(sizes)
        if spec.integer:
            inputs.append(np.array([seed % 5], np.int32))
        elif spec.configuration:
            inputs.append(sl.random_configuration(constrained.model, rng, leading))
        elif spec.name == "active":
            inputs.append(rng.integers(0, 2, size=shape).astype(float))
        elif spec.name in "M":
            inputs.append(sl.crba(constrained.model, sl.random_configuration(constrained.model, rng, leading)))
        elif spec.name in "UV":
            inputs.append(np.eye(shape[-1]) + 0.1 * np.triu(rng.normal(size=shape), 1))
        else:
            inputs.append(
                rng.uniform(0.5, 1.0, size=shape) if spec.name in "restitution D E" else rng.normal(size=shape)
            )
    return inputs


@each_algorithm
def test_interpreted_as_compiled(algorithm: Algorithm) -> None:
    inputs = random_inputs(algorithm, 1)
    results = interpret(algorithm, problem(algorithm), [x.ravel().tolist() for x in inputs])
    for spec, one, other in zip(algorithm.outputs, results, run(algorithm, problem(algorithm), inputs), strict=True):
        assert_close(one.astype(float), other, 1e-11, what=spec.name)


@each_algorithm
def test_lanes_equal_single_calls(algorithm: Algorithm) -> None:
    inputs = random_inputs(algorithm, 2, (19,))
    batch = run(algorithm, problem(algorithm), inputs)
    assert batch[0].any()
    for k in range(19):
        single = run(algorithm, problem(algorithm), sample(algorithm, inputs, (k,)))
        for spec, one, other in zip(algorithm.outputs, batch, single, strict=True):
            assert_close(one[k], other, 1e-10, what=f"{spec.name}[{k}]")


@pytest.mark.slow
@each_algorithm
def test_single_precision(algorithm: Algorithm) -> None:
    singles = [x if x.dtype == np.int32 else x.astype(np.float32) for x in random_inputs(algorithm, 3, (19,))]
    doubles = [x if x.dtype == np.int32 else x.astype(float) for x in singles]
    ours, right = run(algorithm, problem(algorithm), singles), run(algorithm, problem(algorithm), doubles)
    for spec, one, other in zip(algorithm.outputs[:2], ours, right, strict=False):
        assert one.dtype == np.float32
        assert_close(one, other, single_tolerance(all_kinds()), what=spec.name)


@pytest.mark.parametrize(
    "algorithm",
    [x for x in CONSTRAINED if not any(spec.integer for spec in x.inputs)],
    ids=lambda algorithm: algorithm.name,
)
def test_symbols(algorithm: Algorithm) -> None:
    function = casadi_function(algorithm, problem(algorithm))
    inputs = random_inputs(algorithm, 4)
    symbolic = function.call([x.ravel() for x in inputs])
    for spec, one, other in zip(algorithm.outputs, symbolic, run(algorithm, problem(algorithm), inputs), strict=True):
        assert_close(np.array(one).reshape(other.shape), other, 1e-10, what=spec.name)


@each_algorithm
def test_counts(algorithm: Algorithm) -> None:
    """Operations grow with iterations, where there are any, by the same amount each."""
    inputs = random_inputs(algorithm, 5)
    names = [spec.name for spec in algorithm.inputs]
    if "active" in names:
        inputs[names.index("active")][:] = 1.0
    counts = [count_operations(algorithm, problem(algorithm, k), inputs)["product"] for k in (2, 3, 4)]
    assert counts[0] > 0 and counts[1] - counts[0] == counts[2] - counts[1]
    assert (counts[1] > counts[0]) == ("report" in {spec.name for spec in algorithm.outputs})
