"""Steps of RK4: against NumPy's arithmetic of the same stages, and their derivatives against differences."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.ocp.phases import ImpactPhase, Phase
from saltus.ocp.shooting_problem import ShootingProblem
from saltus.ocp.terms import Control, FrameTranslation, FrictionCone, OwnFunction, State

FOOT = "LF_FOOT"


def hop(integrator: str = "rk4", **more: Any) -> ShootingProblem:
    robot = sl.load_robot("quadruped")
    x0 = np.concatenate([robot.reference_configurations["standing"], np.zeros(robot.nv)])
    reach = FrameTranslation("RF_FOOT", reference=[0.3, 0.1, 0.2], weight=3.0)
    terms = [State(reference=x0), Control(weight=0.1), FrictionCone(FOOT, weight=0.01), reach]
    phases = [Phase(nodes=2), ImpactPhase([FOOT]), Phase([FOOT], nodes=2)]
    contacts = [sl.Contact(robot, FOOT, kd=5.0)]
    return ShootingProblem(
        robot, x0, phases, terms, [State(reference=x0)], dt=0.05, constraints=contacts, integrator=integrator, **more
    )


def somewhere(problem: ShootingProblem) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    xs = problem.integrate(np.tile(problem.x0, (problem.T + 1, 1)), 0.2 * rng.normal(size=(problem.T + 1, problem.ndx)))
    return xs, rng.normal(size=(problem.T, problem.nu))


def test_steps_are_those_of_four_stages() -> None:
    problem, euler = hop(), hop("euler")
    xs, us = somewhere(problem)
    dt, values = problem.dt[:-1, None], problem.calc(xs, us)
    total, costs, k = 0.0, 0.0, np.zeros((problem.T, problem.ndx))
    for c, b in zip((0.0, 0.5, 0.5, 1.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6), strict=True):
        y = problem.integrate(xs[:-1], c * dt * k)
        at = euler.calc_nodes(np.concatenate([y, xs[-1:]]), us)
        k = np.concatenate([y[:, problem.nq :], at.a[:-1]], axis=-1)
        total, costs = total + b * k, costs + b * at.costs
    running = problem.controlled > 0
    assert np.abs(problem.difference(problem.integrate(xs[:-1], dt * total), values.next))[running].max() < 1e-10
    there = euler.calc(xs, us)
    assert np.abs(values.next - there.next)[~running].max() < 1e-12
    assert np.allclose(np.where([*running, False], costs, there.costs), values.costs, rtol=1e-10)


def test_derivatives() -> None:
    problem, h = hop(), 1e-5
    xs, us = somewhere(problem)
    E, n = problem.calc_diff(xs, us), problem.ndx
    assert E.euler is not None and not E.euler.steps.any()
    there = problem.calc(xs, us)
    for k, step in enumerate(h * np.eye(n + problem.nu)):
        ends = []
        for s in (1.0, -1.0):
            x = problem.integrate(xs, np.tile(s * step[:n], (problem.T + 1, 1)))
            at = problem.calc(x, us + s * step[n:])
            ends.append((problem.difference(there.next, at.next), at.costs))
        F, L = ((one - other) / (2 * h) for one, other in zip(*ends, strict=True))
        found = (E.Fx[:, :, k], E.Lx[:, k]) if k < n else (E.Fu[:, :, k - n], np.append(E.Lu[:, k - n], 0.0))
        assert np.abs(F - found[0]).max() < 1e-6 * max(1.0, np.abs(F).max())
        assert np.abs(L - found[1]).max() < 1e-6 * max(1.0, np.abs(L).max())


def test_curvature_where_residuals_are_linear() -> None:
    """Of controls alone, whose cost is b' u'u / 2 dt in all stages."""
    problem = hop()
    problem.weights[:-1] = 0.0
    problem.set_weight("Control", 0.1)
    xs, us = somewhere(problem)
    E = problem.calc_diff(xs, us)
    assert np.allclose(E.Luu[0], 0.05 * 0.1 * np.eye(problem.nu)) and not E.Lxx[0].any()


def test_rollouts_and_pickling() -> None:
    problem = hop()
    us = 0.1 * somewhere(problem)[1]
    xs = problem.rollout(us)
    assert np.abs(problem.difference(xs[1:], problem.calc(xs, us).next)).max() < 1e-9
    again = pickle.loads(pickle.dumps(problem))
    assert again.integrator == "rk4" and np.array_equal(again.rollout(us), xs)


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(sl.ModelError, match="unknown integrator 'heun', expected one of euler, rk4"):
        hop("heun")
    robot = sl.load_robot("arm")
    own = OwnFunction(lambda xs, us, references: xs[..., :1], 1, name="mine")
    with pytest.raises(sl.ModelError, match="term 'mine': functions in Python know no stages of RK4"):
        ShootingProblem(robot, np.zeros(14), [Phase(nodes=1)], [own], [own], integrator="rk4")
