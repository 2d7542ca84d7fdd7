"""Results of optimal control as pictures: contacts and forces in the world, frames in time, plots, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.ocp.terms import Control, FrictionCone, State
from saltus.view import plot_controls, plot_costs, plot_forces, plot_gaps
from saltus.view.plans import plan_of

ROBOT = sl.load_robot("quadruped")
FEET = sl.robot_frames("quadruped").feet


@pytest.fixture(scope="module")
def solved() -> tuple[sl.ShootingProblem, sl.OCPResult]:
    """It stands, lifts a foot and puts it down."""
    x0 = np.concatenate([ROBOT.reference_configurations["standing"], np.zeros(ROBOT.nv)])
    phases = [
        sl.Phase(FEET, nodes=4),
        sl.Phase(FEET[1:], nodes=3),
        sl.ImpactPhase(FEET),
        sl.Phase(FEET, nodes=3, dt=0.02),
    ]
    terms = [State(reference=x0), Control(weight=1e-3), *(FrictionCone(foot, weight=0.1) for foot in FEET)]
    contacts = [sl.Contact(ROBOT, foot, kd=50.0) for foot in FEET]
    problem = sl.ShootingProblem(ROBOT, x0, phases, terms, [State(reference=x0)], constraints=contacts)
    xs = np.tile(x0, (problem.T + 1, 1))
    return problem, sl.FDDP(problem).solve(xs, problem.quasi_static(xs), max_iterations=5)


def test_forces_in_the_world(solved: Any) -> None:
    """They bear the robot: the momentum of the centre changes as they and gravity say."""
    problem, result = solved
    plan = plan_of(problem, result)
    assert np.allclose(plan.t, [*np.arange(8) * 0.01, 0.09, 0.11, 0.13]) and plan.contacts.names == tuple(FEET)
    assert plan.contacts.active.tolist()[5] == [False, True, True, True] and not plan.contacts.forces[5, 0].any()
    q, v = result.xs[:, : ROBOT.nq], result.xs[:, ROBOT.nq :]
    a = problem.calc_nodes(result.xs, result.us).a
    for row, node in [(0, 0), (5, 5), (9, 10)]:
        rate = sl.centroidal_momentum_rate(ROBOT, q[node], v[node], a[node])[:3]
        weight = ROBOT.total_mass * ROBOT.gravity
        assert np.allclose(plan.contacts.forces[row].sum(0) + weight, rate, atol=1e-6)
    assert np.allclose(plan.contacts.points[0, 0], sl.frame_placement(ROBOT, q[0], FEET[0])[:3, 3])
    assert (plan.contacts.friction == 0.7).all() and np.allclose(plan.contacts.normals, [0, 0, 1])


def test_replays(solved: Any, tmp_path: Path) -> None:
    problem, result = solved
    scene = sl.view.describe(problem, result, dt=0.01)
    assert scene.frames == 14 and scene.extras[1] == "contact forces" and scene.title == "quadruped"
    many = result._replace(xs=np.stack([result.xs] * 3), us=np.stack([result.us] * 3))
    assert sl.view.describe(problem, many, layout="overlay").robots == 3
    page = sl.view.save_replay(tmp_path / "page.html", problem, result)
    assert "0.12 s · 7 frames" in page.read_text(encoding="utf-8")
    with sl.view.show(problem, result) as viewer:
        assert viewer.url.startswith("http://")


def test_plots(solved: Any) -> None:
    problem, result = solved
    assert len(plot_forces(problem, result).axes) == 4 and len(plot_controls(problem, result).axes) == 12
    line = plot_forces(problem, result).axes[0].lines[0]
    plan = plan_of(problem, result)
    drawn = np.asarray(line.get_ydata())
    assert np.isnan(drawn[7]) and np.allclose(np.delete(drawn, 7), plan.contacts.forces[:-1, 0, 2])
    assert np.array_equal(
        np.isnan(np.asarray(plot_controls(problem, result).axes[0].lines[0].get_ydata())), np.arange(11) == 7
    )
    labels = [text.get_text() for text in plot_costs(problem, result).legends[0].get_texts()]
    assert labels[0] in ("State", "Control") and set(labels) == set(problem.terms.places)
    assert len(plot_gaps(problem, result).axes[1].lines[0].get_xdata()) == result.iterations


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda problem, result: plot_costs(problem.model, result), "a Model and OCPResult, expected a ShootingProblem"),
        (lambda problem, result: plot_gaps(problem, result.xs), "a ShootingProblem and ndarray, expected"),
        (lambda problem, result: plot_gaps(problem, result._replace(xs=result.xs[1:])), "xs of the result has shape"),
        (lambda problem, result: plot_gaps(problem, result._replace(xs=result.xs[None])), "expected that of one problem"),
        (lambda problem, result: sl.view.describe(problem, result, contacts=FEET), "a result has its contacts and forces"),
        (lambda problem, result: sl.view.describe(problem), "a ShootingProblem and NoneType"),
    ],
)  # fmt: skip
def test_what_does_not_go_together(solved: Any, draw: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        draw(*solved)


def test_nothing_to_plot() -> None:
    robot = sl.load_robot("double_pendulum")
    problem = sl.ShootingProblem(robot, np.zeros(4), [sl.Phase(nodes=2)], [State()], [State()], motors=[])
    result = sl.FDDP(problem).solve()
    for plot, words in ((plot_forces, "no contacts"), (plot_controls, "no controls")):
        with pytest.raises(ValueError, match=re.escape(words)):
            plot(problem, result)
