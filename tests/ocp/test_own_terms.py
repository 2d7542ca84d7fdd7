"""Residuals of users: kernels, with and without slopes of their own, and plain functions."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.kernel import kernel, ld, sincos, st
from saltus.ocp.activations import Huber, SmoothAbs
from saltus.ocp.phases import ImpactPhase, Phase
from saltus.ocp.shooting_problem import ShootingProblem
from saltus.ocp.terms import Control, Own, OwnFunction, State

FOOT = "LF_FOOT"


@kernel
def power_of_motor(tree, q, v, u, reference, rows):  # type: ignore[no-untyped-def]
    """The power of the first motor, less a goal, and the height of the base above another."""
    st(rows, 0, ld(u, 0) * ld(v, tree.motor[0]) - ld(reference, 0))
    s, _ = sincos(ld(q, 2) - ld(reference, 1))
    st(rows, 1, s)


@kernel
def rates(tree, q, v, u, reference, rows):  # type: ignore[no-untyped-def]
    for k in range(3):
        st(rows, k, ld(v, k) * ld(v, k))


@kernel
def rates_slopes(tree, q, v, u, reference, R):  # type: ignore[no-untyped-def]
    for k in range(3):
        st(R, k * tree.nall + tree.nv + k, 2.0 * ld(v, k))


def power_in_python(xs: Any, us: Any, references: Any) -> Any:
    power = us[..., 0] * xs[..., 19 + 6] - references[..., 0]
    return np.stack([power, np.sin(xs[..., 2] - references[..., 1])], axis=-1)


def rates_in_python(xs: Any, us: Any, references: Any) -> Any:
    return xs[..., 19:22] ** 2


def problem_with(*terms: Any) -> ShootingProblem:
    robot = sl.load_robot("quadruped")
    x0 = np.concatenate([robot.reference_configurations["standing"], np.zeros(robot.nv)])
    anywhere = [term for term in terms if not term.needs_control]
    phases = [Phase([FOOT], nodes=3), ImpactPhase([FOOT], anywhere), Phase([FOOT], nodes=2)]
    regular = [State(reference=x0, weight=1e-3), Control(weight=1e-2)]
    return ShootingProblem(
        robot, x0, phases, [*regular, *terms], [State(reference=x0), *anywhere],
        constraints=[sl.Contact(robot, FOOT)],
    )  # fmt: skip


KERNELS = (
    Own(power_of_motor, 2, reference=[0.3, 0.2], controls=True, weight=2.0, activation=SmoothAbs(0.1), name="power"),
    Own(rates, 3, weight=0.5, activation=Huber(0.3), name="rates"),
)
WITH_SLOPES = (KERNELS[0], Own(rates, 3, rates_slopes, weight=0.5, activation=Huber(0.3), name="rates"))
FUNCTIONS = (
    OwnFunction(
        power_in_python, 2, reference=[0.3, 0.2], controls=True, weight=2.0, activation=SmoothAbs(0.1), name="power"
    ),
    OwnFunction(rates_in_python, 3, weight=0.5, activation=Huber(0.3), name="rates"),
)  # fmt: skip


def somewhere(problem: ShootingProblem) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    xs = problem.integrate(np.tile(problem.x0, (problem.T + 1, 1)), 0.3 * rng.normal(size=(problem.T + 1, problem.ndx)))
    return xs, rng.normal(size=(problem.T, problem.nu))


@pytest.mark.parametrize(("terms", "close"), [(WITH_SLOPES, 1e-12), (FUNCTIONS, 1e-8)], ids=["slopes", "functions"])
def test_kernels_and_functions_are_the_same(terms: Any, close: float) -> None:
    one, two = problem_with(*KERNELS), problem_with(*terms)
    xs, us = somewhere(one)
    assert np.allclose(one.calc(xs, us).costs, two.calc(xs, us).costs, rtol=1e-13)
    for a, b in zip(one.calc_diff(xs, us)[:7], two.calc_diff(xs, us)[:7], strict=True):
        assert np.abs(a - b).max() < close * max(1.0, np.abs(a).max())
    gaps, K = np.zeros((one.T + 1, one.ndx)), np.zeros((one.T, one.nu, one.ndx))
    lengths = np.array([1.0, 0.5])
    trials = [problem.forward(xs, us, gaps, K, us, lengths).costs for problem in (one, two)]
    assert np.allclose(trials[0], trials[1], rtol=1e-12)


def test_gradient_is_that_of_costs() -> None:
    problem, h = problem_with(*KERNELS), 1e-6
    xs, us = somewhere(problem)
    E = problem.calc_diff(xs, us)
    dx, du = np.random.default_rng(1).normal(size=(problem.T + 1, problem.ndx)), np.ones((problem.T, problem.nu))
    ends = [problem.calc(problem.integrate(xs, s * h * dx), us + s * h * du).costs for s in (1.0, -1.0)]
    slope = (E.Lx * dx).sum(-1)
    slope[:-1] += (E.Lu * du).sum(-1)
    assert np.allclose((ends[0] - ends[1]) / (2 * h), slope, rtol=1e-6, atol=1e-6)


def test_costs_add_up_and_pickle() -> None:
    problem = problem_with(*KERNELS, *(OwnFunction(rates_in_python, 3, name="more"),))
    xs, us = somewhere(problem)
    costs = problem.calc(xs, us).costs
    assert np.allclose(sum(problem.term_values(xs, us).costs.values()), costs, rtol=1e-12)
    assert np.array_equal(pickle.loads(pickle.dumps(problem)).calc(xs, us).costs, costs)


def test_wrong_shapes_are_named() -> None:
    problem = problem_with(OwnFunction(rates_in_python, 2, name="rates"))
    with pytest.raises(
        sl.ModelError, match=r"term 'rates': its function returns the shape \(7, 3\), expected \(7, 2\)"
    ):
        problem.calc(*somewhere(problem))
