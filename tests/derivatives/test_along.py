"""Analytical derivatives along directions, by recursions of their own, against dual numbers and full Jacobians."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.derivatives.along import ALONG
from saltus.derivatives.constrained_along import solve_along
from saltus.kernel.directional import DIRECTIONAL
from tests.closeness import assert_close, with_rounding
from tests.derivatives.constrained import converged
from tests.generators import mimic_tree

SOLVE = sl.ConstrainedDynamics.solve
TREES = {
    "all kinds": sl.random_model(seed=3, bodies=9),
    "one body": sl.random_model(seed=7, bodies=1, kinds=["free_flyer"]),
    "many branches": sl.random_model(seed=2, bodies=30),
    "arms": sl.random_model(seed=1, bodies=12, kinds=["revolute", "prismatic", "continuous"]),
}
GIVEN = {"aba": 3, "crba": 1, "nonlinear_effects": 2, "rnea": 3}
ROBOT = sl.load_robot("quadruped")
FEET = sl.robot_frames("quadruped").feet
RNG = np.random.default_rng(0)
Q = sl.integrate(ROBOT, ROBOT.reference_configurations["standing"], 0.1 * RNG.normal(size=(3, ROBOT.nv)))
V, TAU = RNG.normal(size=(2, 3, ROBOT.nv))


def test_all_functions_are_here() -> None:
    assert {function.__name__ for function in ALONG} == set(GIVEN)
    assert {algorithm.name for algorithm in DIRECTIONAL} == {*GIVEN, "constrained_aba", "prox_ltl"}


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.slow), 6])
@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize(
    "name", ["aba", "rnea", *(pytest.param(x, marks=pytest.mark.slow) for x in ("crba", "nonlinear_effects"))]
)
def test_against_dual_numbers(name: str, tree: str, count: int) -> None:
    model, function, rng = TREES[tree], getattr(sl, name), np.random.default_rng(count)
    inputs = (sl.random_configuration(model, rng, 5), *rng.normal(size=(2, 5, model.nv)))[: GIVEN[name]]
    directions = tuple(rng.normal(size=(len(inputs), 5, count, model.nv)))
    value, right = sl.jvp(function, model, inputs, directions, "ad")
    again, ours = sl.jvp(function, model, inputs, directions, "analytical")
    condition = np.linalg.cond(sl.crba(model, inputs[0])).max() if name == "aba" else 1.0
    assert_close(again, value, with_rounding(1e-13, condition))
    scale = max(float(np.abs(x).max()) for x in (right, value))  # the matrix of one free body has no slope
    assert_close(ours, right, with_rounding(1e-13, condition), scale)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rnea", "aba", "nonlinear_effects"])
def test_external_forces_and_their_slopes(name: str) -> None:
    model, function = TREES["all kinds"], getattr(sl, name)
    inputs = [sl.random_configuration(model, 1, 4), *RNG.normal(size=(GIVEN[name] - 1, 4, model.nv))]
    inputs.append(RNG.normal(size=(4, model.njoints, 6)))
    directions = [RNG.normal(size=(4, 3, model.nv)) for _ in inputs[:-1]]
    for along_forces in (None, RNG.normal(size=(4, 3, model.njoints, 6))):
        given = (tuple(inputs), (*directions, along_forces))
        assert_close(*(sl.jvp(function, model, *given, mode)[1] for mode in ("analytical", "ad")), 1e-11)


def test_one_sample_is_one_of_a_batch() -> None:
    """By the short way, and by the long one before it; along one direction and along several, of some inputs."""
    model = TREES["all kinds"]
    inputs = (sl.random_configuration(model, 1, 4), *RNG.normal(size=(2, 4, model.nv)))
    for shape in ((), (2,), (9,)):
        directions = (RNG.normal(size=(4, *shape, model.nv)), None, RNG.normal(size=(4, *shape, model.nv)))
        values, slopes = sl.jvp(sl.aba, model, inputs, directions, "analytical")
        for k in range(4):
            one = tuple(None if d is None else d[k] for d in directions)
            for _ in range(2):
                value, slope = sl.jvp(sl.aba, model, tuple(x[k] for x in inputs), one, "analytical")
                assert np.array_equal(value, values[k]) and np.array_equal(slope, slopes[k])


def test_kernels_run_as_they_stand() -> None:
    """Interpreted, on Python's numbers."""
    from saltus.kernel.tables import views

    model, algorithm = TREES["all kinds"], ALONG[sl.aba]
    q, v, tau = sl.random_configuration(model, 1), *RNG.normal(size=(2, model.nv))
    slopes = RNG.normal(size=(3, model.nv))
    filled, declared = algorithm.filled(model), algorithm.tables
    sizes = filled.sizes
    tree = declared.view_class(*(sizes[name] for name in declared.sizes), *views(filled))
    w, d = (layout.view(np.zeros(layout.length(sizes), object), sizes) for layout in (algorithm.work, algorithm.slopes))
    a, da = np.zeros((2, model.nv), object)
    algorithm.kernel(tree, q, v, tau, None, w, a)
    algorithm.along(tree, q, v, tau, None, *slopes, None, w, d, a, da)
    value, slope = sl.jvp(sl.aba, model, (q, v, tau), tuple(slopes), "analytical")
    assert_close(a.astype(float), value, 1e-13)
    assert_close(da.astype(float), slope, 1e-12)


def test_bad_inputs_are_named() -> None:
    model = TREES["all kinds"]
    q, v, tau = sl.random_configuration(model, 1), *RNG.normal(size=(2, model.nv))
    directions = np.ones((3, model.nv))
    for _ in range(2):
        sl.jvp(sl.aba, model, (q, v, tau), tuple(directions), "analytical")
    directions[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"aba: the slope of v\[0, 2\] is nan"):
        sl.jvp(sl.aba, model, (q, v, tau), tuple(directions), "analytical")
    with pytest.raises(ValueError, match=r"aba: v\[2\] is nan"):
        sl.jvp(sl.aba, model, (q, directions[1], tau), tuple(np.ones((3, model.nv))), "analytical")
    with pytest.raises(ValueError, match="unit|quaternion|norm"):
        sl.jvp(sl.aba, model, (2.0 * q, v, tau), tuple(np.ones((3, model.nv))), "analytical")


def test_mimic_joints_go_by_the_jacobian() -> None:
    model = mimic_tree(0, 8)
    inputs = (sl.random_configuration(model, 1), *RNG.normal(size=(2, model.nv)))
    directions = tuple(RNG.normal(size=(3, model.nv)))
    D = sl.aba_derivatives(model, *inputs)
    _, slope = sl.jvp(sl.aba, model, inputs, directions, "analytical")
    assert_close(slope, sum(J @ d for J, d in zip(D, directions, strict=True)), 1e-11)


# ------------------------------------------------------------------------------------------------------------- constrained

ANCHOR = np.array([[0.0, -1.0, 0.0, 0.3], [1.0, 0.0, 0.0, 0.1], [0.0, 0.0, 1.0, -0.2], [0.0, 0.0, 0.0, 1.0]])
HELD: dict[str, list[Any]] = {
    "points": [sl.Contact(ROBOT, foot) for foot in FEET],
    "frame": [sl.Contact(ROBOT, FEET[0], dim=6)],
    "point with gains": [
        sl.Contact(ROBOT, FEET[1], kp=20.0, kd=3.0, anchor=ANCHOR),
        sl.Contact(ROBOT, FEET[2], kd=2.0),
    ],
    "frame with gains": [sl.Contact(ROBOT, FEET[0], dim=6, kp=20.0, kd=3.0, anchor=ANCHOR)],
    "some rows": [sl.Contact(ROBOT, FEET[0], rows=(0, 2)), sl.Contact(ROBOT, FEET[3], rows=(2,))],
}


def agree(dynamics: Any, inputs: tuple[Any, ...], directions: tuple[Any, ...], tolerance: float = 1e-9) -> None:
    solution, right = sl.jvp(SOLVE, dynamics, inputs, directions, "ad")
    again, ours = sl.jvp(SOLVE, dynamics, inputs, directions, "analytical")
    assert_close(again.a, solution.a, 1e-12)
    assert_close(again.forces, solution.forces, 1e-12)
    for one, other in zip(ours, right, strict=True):
        assert_close(one, other, tolerance)


@pytest.mark.parametrize("held", HELD)
@pytest.mark.slow
@pytest.mark.parametrize("method", ["constrained_aba", "prox_ltl"])
def test_constrained_dynamics(method: str, held: str) -> None:
    dynamics = converged(ROBOT, HELD[held], method)
    directions = tuple(RNG.normal(size=(3, 3, 2, ROBOT.nv)))
    assert solve_along(dynamics, (Q, V, TAU), dict(enumerate(directions))) is not None
    agree(dynamics, (Q, V, TAU), directions)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["constrained_aba", "prox_ltl"])
def test_masks_and_targets(method: str) -> None:
    active, target = np.array([[1.0, 0.0, 1.0, 1.0], [1.0] * 4, [0.0] * 4]), RNG.normal(size=12)
    directions = (*RNG.normal(size=(3, 3, 2, ROBOT.nv)), None, RNG.normal(size=(2, 12)))
    agree(converged(ROBOT, HELD["points"], method), (Q, V, TAU, active, target), directions)


@pytest.mark.slow
def test_springs() -> None:
    soft = sl.ConstrainedDynamics(ROBOT, HELD["points"], "pv_soft", mu=1e-3)
    agree(soft, (Q, V, TAU), tuple(RNG.normal(size=(3, 3, 2, ROBOT.nv))))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["constrained_aba", "prox_ltl"])
def test_what_is_redundant_goes_by_the_jacobian(method: str) -> None:
    """One sample by the short way too, once it is made: it looks at pivots."""
    twice = converged(ROBOT, [*HELD["points"], sl.Contact(ROBOT, FEET[0])], method)
    directions = tuple(RNG.normal(size=(3, 3, 2, ROBOT.nv)))
    assert solve_along(twice, (Q, V, TAU), dict(enumerate(directions))) is None
    D = twice.derivatives(Q, V, TAU)
    right = sum(np.einsum("bij,bpj->bpi", J, d) for J, d in zip((D.df_dq, D.df_dv, D.df_dtau), directions, strict=True))
    assert_close(sl.jvp(SOLVE, twice, (Q, V, TAU), directions, "analytical")[1][1], right, 1e-12)
    for _ in range(2):
        one = sl.jvp(SOLVE, twice, (Q[0], V[0], TAU[0]), tuple(d[0] for d in directions), "analytical")
        assert_close(one[1][1], right[0], 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["constrained_aba", "prox_ltl"])
def test_one_constrained_sample_is_one_of_a_batch(method: str) -> None:
    dynamics = converged(ROBOT, HELD["points"], method)
    directions = tuple(RNG.normal(size=(3, 3, 2, ROBOT.nv)))
    solution, slopes = sl.jvp(SOLVE, dynamics, (Q, V, TAU), directions, "analytical")
    for _ in range(2):
        again, ours = sl.jvp(SOLVE, dynamics, (Q[1], V[1], TAU[1]), tuple(d[1] for d in directions), "analytical")
        assert isinstance(again, sl.Solution) and np.array_equal(again.report, solution.report[1])
        assert all(np.array_equal(one, many[1]) for one, many in zip(ours, slopes, strict=True))
