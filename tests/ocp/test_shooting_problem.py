"""Shooting problems of robots: one batch whatever nodes do, masks, methods, pickling, and what is refused."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.ocp.activations import Barrier
from saltus.ocp.phases import ImpactPhase, Phase
from saltus.ocp.shooting_problem import ShootingProblem
from saltus.ocp.terms import (
    Control,
    FramePlacement,
    FrameTranslation,
    FrictionCone,
    Impulse,
    State,
)
from tests.ocp.robot_problems import case

FEET = ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT")


def walk(method: str = "constrained_aba") -> ShootingProblem:
    """A step of a quadruped: on four feet, on three, an impact, and on four again."""
    robot = sl.load_robot("quadruped")
    x0 = np.concatenate([robot.reference_configurations["standing"], np.zeros(robot.nv)])
    terms = [State(reference=x0), Control(weight=1e-2), *(FrictionCone(foot, weight=0.1) for foot in FEET)]
    there = np.linspace([0.3, 0.2, 0.05], [0.4, 0.2, 0.0], 5)
    phases = [
        Phase(FEET, duration=0.04),
        Phase(FEET[1:], nodes=5, terms=[FrameTranslation(FEET[0], weight=100.0, reference=there)]),
        ImpactPhase(FEET, terms=[Impulse(FEET[0], weight=1e-2)]),
        Phase(FEET, nodes=3),
    ]
    contacts = [sl.Contact(robot, foot, kd=50.0) for foot in FEET]
    return ShootingProblem(robot, x0, phases, terms, [State(reference=x0)], constraints=contacts, method=method)


def somewhere(problem: ShootingProblem, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    xs = problem.integrate(np.tile(problem.x0, (problem.T + 1, 1)), 0.1 * rng.normal(size=(problem.T + 1, problem.ndx)))
    return xs, rng.normal(size=(problem.T, problem.nu))


def test_arrays_over_nodes() -> None:
    problem = walk()
    assert problem.T == 13 and problem.dt.tolist() == [0.01] * 9 + [0.0] + [0.01] * 3 + [0.0]
    assert problem.controlled.tolist() == [1.0] * 9 + [0.0] + [1.0] * 3
    assert problem.active[:, 0].tolist() == [1.0] * 4 + [0.0] * 5 + [1.0] * 4 + [0.0]
    cone = problem.terms.index(f"{FEET[0]} FrictionCone")
    assert (problem.weights[:, cone] > 0).tolist() == [True] * 4 + [False] * 6 + [True] * 3 + [False]
    assert np.flatnonzero(problem.weights[:, problem.terms.index(f"{FEET[0]} Impulse")]).tolist() == [9]
    place = problem.terms.places[f"{FEET[0]} FrameTranslation"]
    assert np.array_equal(problem.references[8, place], [0.4, 0.2, 0.0])


def test_nodes_of_a_batch_are_those_alone() -> None:
    """Whatever other lanes do: contacts, impacts, the end."""
    problem = walk()
    xs, us = somewhere(problem)
    values = problem.calc_nodes(xs, us)
    E = problem.calc_diff(xs, us, values=values)
    assert (values.report[..., 4] == 0).all()
    for t in range(problem.T):
        alone = problem.kernels.calc.call(problem.problem, (xs[t, :19], xs[t, 19:], us[t], problem.data[t]))
        assert np.allclose(np.concatenate(alone[:2]), values.next[t], rtol=0, atol=1e-10)
        assert alone[2][0] == pytest.approx(values.costs[t], rel=1e-11)
    # All contacts as in the first nodes, by another problem's way: plain constrained dynamics.
    solution = problem.dynamics.solve(xs[:-1, :19], xs[:-1, 19:], torques(problem, us), problem.active[:-1])
    running = problem.controlled > 0
    assert np.abs(solution.a - values.a[:-1])[running].max() < 1e-8
    struck = problem.dynamics.impact(xs[9, :19], xs[9, 19:], problem.active[9])
    assert np.abs(struck.v - values.next[9, 19:]).max() < 1e-10 and np.array_equal(values.next[9, :19], xs[9, :19])
    assert not E.Fu[9].any() and not E.Lu[9].any()


def torques(problem: ShootingProblem, us: Any) -> Any:
    tau = np.zeros((len(us), problem.nv))
    tau[:, list(problem.terms.motors)] = us
    return tau


@pytest.mark.parametrize("method", ["prox_ltl", "prox_ltls", "prox_pv"])
def test_methods_agree(method: str) -> None:
    problem, other = walk(), walk(method)
    xs, us = somewhere(problem)
    one, two = problem.calc(xs, us), other.calc(xs, us)
    assert np.abs(one.next - two.next).max() < 1e-8 and np.abs(one.costs - two.costs).max() < 1e-7 * one.costs.max()


def test_rollouts_are_calc_from_node_to_node() -> None:
    problem = walk()
    us = problem.quasi_static(np.tile(problem.x0, (problem.T + 1, 1)))
    us += 0.1 * np.random.default_rng(0).normal(size=us.shape)
    xs = problem.rollout(us)
    values = problem.calc(xs, us)
    assert np.abs(problem.difference(xs[1:], values.next)).max() < 1e-9
    zero = np.zeros((problem.T + 1, problem.ndx))
    K, k = np.zeros((problem.T, problem.nu, problem.ndx)), np.ones((problem.T, problem.nu))
    trial = problem.forward(xs, us, zero, K, k, np.array([0.0, 0.5, 1.0]))
    assert trial.costs[0] == pytest.approx(values.costs.sum(), rel=1e-9)
    for a, length in enumerate((0.0, 0.5, 1.0)):  # each lane is what it is alone
        assert np.abs(trial.xs[a] - problem.rollout(us - length * k)).max() < 1e-8


def test_standing_still() -> None:
    problem = walk()
    xs = np.tile(problem.x0, (problem.T + 1, 1))
    values = problem.calc_nodes(xs, problem.quasi_static(xs))
    assert np.abs(values.a[:4]).max() < 1e-8


def test_problems_of_a_batch() -> None:
    problem = walk()
    xs, us = somewhere(problem)
    alone = problem.calc(xs, us).costs
    problem.data = np.tile(problem.data, (3, 1, 1))
    problem.set_weight("State", np.array([0.0, 1.0, 2.0])[:, None])
    costs = problem.calc(xs, us).costs
    assert costs.shape == (3, problem.T + 1) and np.allclose(costs[1], alone)
    assert np.allclose(costs[2] - costs[1], costs[1] - costs[0])


def test_pickled() -> None:
    problem = walk()
    problem.set_weight("State", 3.0, slice(2, 5))
    problem.set_reference(f"{FEET[0]} FrameTranslation", [0.1, 0.2, 0.3], 6)
    xs, us = somewhere(problem)
    again = pickle.loads(pickle.dumps(problem))
    for one, two in zip(problem.calc_diff(xs, us)[:7], again.calc_diff(xs, us)[:7], strict=True):
        assert np.array_equal(one, two)
    assert np.array_equal(problem.rollout(us), again.rollout(us))


def test_costs_of_terms_add_up() -> None:
    made = case("arm")
    found = made.problem.term_values(made.xs, made.us)
    assert np.allclose(sum(found.costs.values()), made.problem.calc(made.xs, made.us).costs, rtol=1e-12)
    assert found.residuals["State"].shape == (3, 14)


def test_changes_compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = walk()
    xs, us = somewhere(problem)
    problem.calc_diff(xs, us)
    from saltus.kernel import native

    monkeypatch.setattr(native, "prepare", lambda *arguments: pytest.fail("compiled"))
    other = walk()
    other.active[4:6] = [1, 0, 0, 1]
    other.set_weight("Control", 0.5)
    other.set_reference("State", other.x0)
    other.calc_diff(xs, us)


ARM = "arm"


def of_arm(phases: Any = None, terms: Any = (), final: Any = (), **more: Any) -> ShootingProblem:
    robot = sl.load_robot(ARM)
    phases = [Phase(nodes=3)] if phases is None else phases
    return ShootingProblem(robot, np.zeros(14), phases, terms, final, **more)


STATE = State(reference=np.zeros(14))


def reach(where: Any) -> FrameTranslation:
    return FrameTranslation("tool", reference=where)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"terms": [STATE]}, "node 3 (the last): no term counts there"),
        ({"final": [STATE]}, "node 0: no term counts there"),
        ({"phases": []}, "there is no node"),
        ({"phases": [Phase(nodes=3, dt=0.0)], "terms": [STATE]}, "phase 0, from node 0 on: dt is 0.0"),
        ({"phases": [Phase()], "terms": [STATE]}, "phase 0, from node 0 on: expected either a duration"),
        ({"phases": [Phase(["foot"], nodes=1)], "terms": [STATE]}, "phase 0: unknown contact 'foot', expected one of none"),
        ({"terms": [reach([0.0, np.nan, 0.0])]}, "reference of term 'tool FrameTranslation' at nodes 0 to 2 is nan at [1]"),
        ({"terms": [reach([0.0, 1.0])]}, "has shape (2,), expected (..., 3)"),
        ({"terms": [reach(None)]}, "reference of term 'tool FrameTranslation' at nodes 0 to 2 is not given"),
        ({"terms": [reach(np.zeros((2, 3)))]}, "at nodes 0 to 2 is of 2 nodes"),
        ({"terms": [FrameTranslation("nose", reference=np.zeros(3))]}, "term 'nose FrameTranslation': "),
        ({"terms": [FrictionCone("nose")]}, "term 'nose FrictionCone': unknown contact 'nose'"),
        ({"terms": [STATE], "final": [Control()]}, "node 3, the last: term 'Control' asks for controls or forces"),
        ({"terms": [STATE, State(activation=Barrier(0.0, 1.0))]}, "terms: two have the name 'State'"),
        ({"terms": [FramePlacement("tool", reference=2.0 * np.eye(4))]}, "reference of term 'tool FramePlacement'"),
        ({"terms": ["state"]}, "terms: one is 'state', expected those of saltus.ocp.terms"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(sl.ModelError, match=re.escape(words)):
        of_arm(**arguments)


def test_bad_numbers_are_named() -> None:
    problem = of_arm(terms=[STATE, Control()], final=[STATE])
    with pytest.raises(sl.ModelError, match=re.escape("reference of term 'State' at nodes 2 is inf at [3]")):
        problem.set_reference("State", [0, 0, 0, np.inf, *[0] * 10], 2)
    words = "reference of term 'State' has shape (2, 14): it does not fit (4,) nodes"
    with pytest.raises(sl.ModelError, match=re.escape(words)):
        problem.set_reference("State", np.zeros((2, 14)))
    with pytest.raises(sl.ModelError, match="weight of term 'Control' at nodes 1 is -1.0"):
        problem.set_weight("Control", -1.0, 1)
    with pytest.raises(sl.ModelError, match="there is none named 'nothing', expected one of State, Control"):
        problem.set_weight("nothing", 1.0)
    xs, us = np.zeros((4, 14)), np.zeros((3, 7))
    with pytest.raises(ValueError, match=re.escape("us has shape (4, 7), expected (..., 3, 7)")):
        problem.calc(xs, np.zeros((4, 7)))
    problem.references[2, 5] = np.nan
    with pytest.raises(sl.ModelError, match="node 2: the reference of term 'State' is nan"):
        problem.calc(xs, us)
    problem.references[2, 5], problem.weights[1, 1] = 0.0, np.nan
    with pytest.raises(sl.ModelError, match="node 1: the weight of term 'Control' is nan"):
        problem.calc(xs, us)


def test_terms_to_blame() -> None:
    problem = walk()
    xs, us = somewhere(problem)
    problem.set_weight("LF_FOOT FrameTranslation", 1e6, 6)
    assert problem.blame(xs, us, 6).startswith("term 'LF_FOOT FrameTranslation' costs most there, ")
    assert problem.blame(xs, us * np.inf, 6) == "its state or its controls are not finite"
    problem.weights[6, 0] = np.nan
    assert problem.blame(xs, us, 6) == "node 6: the weight of term 'State' is nan, expected finite numbers"


def test_node_by_node() -> None:
    problem = walk()
    terms = problem.terms
    again = ShootingProblem.of_nodes(
        problem.dynamics, problem.x0, terms.terms, problem.dt[:-1], weights=problem.weights, active=problem.active,
        references={terms.terms[k].name: problem.references[:, terms.places[terms.terms[k].name]] for k in (0, 6)},
    )  # fmt: skip
    xs, us = somewhere(problem)
    assert np.array_equal(again.calc(xs, us).costs, problem.calc(xs, us).costs)
    weights, names = problem.weights.copy(), list(terms.places)
    weights[-1, 1] = 1.0
    references = {names[6]: [0.3, 0.2, 0.0]}
    with pytest.raises(sl.ModelError, match="node 13: term 'Control' counts there, but has not"):
        ShootingProblem.of_nodes(
            problem.dynamics, problem.x0, terms.terms, problem.dt[:-1], weights=weights, references=references
        )
