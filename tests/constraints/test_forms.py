"""The algorithms that assemble constraints' rows in every form: interpreted, symbols, counts, packets, singles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.constraints.impact import _impact
from saltus.constraints.inverse_dynamics import _inverse_dynamics
from saltus.constraints.prox_ltl import _prox_ltl
from saltus.constraints.prox_ltls import _prox_ltls
from saltus.constraints.system import _constrained_system
from saltus.constraints.tables import ConstrainedModel
from saltus.kernel import Algorithm, defines, some
from saltus.kernel.interpret import casadi_function, count_operations, interpret
from saltus.kernel.tuples import DEFINITIONS
from tests.closeness import assert_close
from tests.kernel.cases import all_kinds, run, sample

ALGORITHMS = [_impact, _inverse_dynamics, _prox_ltl, _prox_ltls, _constrained_system]
each_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.name)


def problem(iterations: int = 3) -> ConstrainedModel:
    """A contact, a loop, and rows of the user's, on a tree of all kinds of joints; single precision bears this mu."""
    model = all_kinds()
    a, b, c = (
        k for k, frame in enumerate(model.frames) if frame.joint in (3, 6, 10) and frame.kind == sl.FrameKind.JOINT
    )
    constraints = [sl.Contact(model, a, kd=2.0), sl.UserRows(model, 2, [1, 4, 7]), sl.LoopClosure(model, c, b, 5)]
    return ConstrainedModel(model, constraints, 1e-1, 0.0, iterations, passive=[0, 3, 5])


PROBLEM = problem()


def random_inputs(algorithm: Algorithm, seed: int, leading: tuple[int, ...] = ()) -> list[Any]:
    rng, sizes = np.random.default_rng(seed), PROBLEM.tables.sizes
    inputs: list[Any] = []
    for spec in algorithm.inputs:
        shape = leading + spec.resolve(sizes)
        if spec.configuration:
            inputs.append(sl.random_configuration(PROBLEM.model, rng, leading))
        elif spec.name == "active":
            inputs.append(rng.integers(0, 2, size=shape).astype(float))
        else:
            inputs.append(rng.uniform(size=shape) if spec.name == "restitution" else rng.normal(size=shape))
    return inputs


@each_algorithm
def test_interpreted_as_compiled(algorithm: Algorithm) -> None:
    inputs = random_inputs(algorithm, 1)
    results = interpret(algorithm, PROBLEM, [x.ravel().tolist() for x in inputs])
    for spec, one, other in zip(algorithm.outputs, results, run(algorithm, PROBLEM, inputs), strict=True):
        assert_close(one.astype(float), other, 1e-11, what=spec.name)


@each_algorithm
def test_lanes_equal_single_calls(algorithm: Algorithm) -> None:
    inputs = random_inputs(algorithm, 2, (19,))
    batch = run(algorithm, PROBLEM, inputs)
    assert all(result.any() for result in batch)
    for k in range(19):
        single = run(algorithm, PROBLEM, sample(algorithm, inputs, (k,)))
        for spec, one, other in zip(algorithm.outputs, batch, single, strict=True):
            assert_close(one[k], other, 1e-10, what=f"{spec.name}[{k}]")


@pytest.mark.parametrize("algorithm", [_impact, _inverse_dynamics], ids=lambda algorithm: algorithm.name)
def test_single_precision(algorithm: Algorithm) -> None:
    singles = [x.astype(np.float32) for x in random_inputs(algorithm, 3, (19,))]
    ours, right = run(algorithm, PROBLEM, singles), run(algorithm, PROBLEM, [x.astype(float) for x in singles])
    for spec, one, other in zip(algorithm.outputs[:2], ours, right, strict=False):
        assert one.dtype == np.float32
        assert_close(one, other, 2e-3, what=spec.name)


@pytest.fixture
def symbols_iterate() -> Iterator[None]:
    """An iteration on symbols goes on to its end: no lane of them is ever known to be done."""
    casadi = pytest.importorskip("casadi")
    defines(some, casadi.SX)(lambda condition: True)
    yield
    DEFINITIONS[some] = [each for each in DEFINITIONS[some] if each.operands != (casadi.SX,)]


@each_algorithm
def test_symbols(algorithm: Algorithm, symbols_iterate: None) -> None:
    function = casadi_function(algorithm, PROBLEM)
    inputs = random_inputs(algorithm, 4)
    symbolic = function(*(x.ravel() for x in inputs))
    for spec, one, other in zip(algorithm.outputs, symbolic, run(algorithm, PROBLEM, inputs), strict=True):
        assert_close(np.array(one).reshape(other.shape), other, 1e-10, what=spec.name)


@each_algorithm
def test_counts(algorithm: Algorithm) -> None:
    """Operations grow with iterations, where there are any, by the same amount each."""
    inputs = random_inputs(algorithm, 5)
    inputs[[spec.name for spec in algorithm.inputs].index("active")][:] = 1.0
    one, two, three = (count_operations(algorithm, problem(k), inputs)["product"] for k in (1, 2, 3))
    assert one > 100 and two - one == three - two
    assert (two > one) == (algorithm is not _constrained_system)
