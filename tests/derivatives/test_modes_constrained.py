"""The modes on constrained dynamics and impacts, and all of them against closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from tests.closeness import assert_close

ROBOT = sl.load_robot("quadruped")
FEET = [sl.Contact(ROBOT, foot) for foot in sl.robot_frames("quadruped").feet]
RNG = np.random.default_rng(0)
Q = sl.integrate(ROBOT, ROBOT.reference_configurations["standing"], 0.1 * RNG.normal(size=(2, ROBOT.nv)))
V, TAU = RNG.normal(size=(2, 2, ROBOT.nv))
SOLVE, IMPACT = sl.ConstrainedDynamics.solve, sl.ConstrainedDynamics.impact

METHODS = [
    "constrained_aba",
    "prox_ltl",
    pytest.param("prox_ltls", marks=pytest.mark.slow),
    pytest.param("prox_pv", marks=pytest.mark.slow),
    pytest.param("loop_aba", marks=pytest.mark.slow),
    "kkt",
]


def parts(jacobians: tuple[Any, ...]) -> list[Any]:
    return [x for entry in jacobians if entry is not None for x in (entry if isinstance(entry, tuple) else (entry,))]


def agree(function: Any, dynamics: Any, inputs: tuple[Any, ...]) -> None:
    exact = parts(sl.jacobian(function, dynamics, inputs))
    for mode, tolerance in (("fd", 1e-6), ("fdc", 1e-8)):
        for ours, right in zip(parts(sl.jacobian(function, dynamics, inputs, mode)), exact, strict=True):
            assert_close(ours, right, tolerance, max(1.0, float(np.abs(right).max())), mode)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_differences_agree_with_dual_numbers(method: str) -> None:
    agree(SOLVE, sl.ConstrainedDynamics(ROBOT, FEET, method), (Q, V, TAU))


def test_impacts() -> None:
    agree(IMPACT, sl.ConstrainedDynamics(ROBOT, FEET), (Q, V))


def test_targets_masks_and_external_forces() -> None:
    """Masks stay; a target is an input like others; external forces go through several algorithms and NumPy's sums."""
    dynamics = sl.ConstrainedDynamics(ROBOT, FEET, "prox_ltl")
    active, target = np.array([[1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0]]), RNG.normal(size=12)
    external = RNG.normal(size=(ROBOT.njoints, 6))
    inputs = (Q, V, TAU, active, target, None, external)
    agree(SOLVE, dynamics, inputs)
    found = sl.jacobian(SOLVE, dynamics, inputs)
    assert found[3] is None and found[5] is None and found[4][0].shape == (2, ROBOT.nv, 12)
    assert found[6][0].shape == (2, ROBOT.nv, ROBOT.njoints, 6)


def test_what_analytical_derivatives_leave_out_is_named() -> None:
    dynamics, target = sl.ConstrainedDynamics(ROBOT, FEET, "kkt"), np.ones(12)
    inputs = (Q[0], V[0], TAU[0], np.ones(4), target)
    with pytest.raises(ValueError, match="solve: has no analytical derivative with respect to target"):
        sl.jvp(SOLVE, dynamics, inputs, (None, None, None, None, target), "analytical")


@pytest.mark.slow
@pytest.mark.parametrize("count", [None, 3])
def test_short_and_long_way_give_the_same_numbers(count: int | None) -> None:
    dynamics = sl.ConstrainedDynamics(ROBOT, FEET, "prox_ltl")
    inputs = (Q[0], V[0], TAU[0])
    directions = tuple(RNG.normal(size=(3, ROBOT.nv) if count is None else (3, count, ROBOT.nv)))
    solution, right = sl.jvp(SOLVE, dynamics, list(inputs), list(directions))
    for _ in range(2):
        again, ours = sl.jvp(SOLVE, dynamics, inputs, directions)
        assert isinstance(again, sl.Solution) and np.array_equal(again.report, solution.report)
        assert all(map(np.array_equal, ours, right)) and len(ours) == len(right) == 2


@pytest.mark.slow
def test_against_closed_forms() -> None:
    """Of a cart-pendulum, from Lagrange's equations."""
    pytest.importorskip("casadi")
    from benchmarks.cart_pendulum import cases
    from benchmarks.derivative_errors import errors

    bounds = {"fd": 1e-5, "fdc": 1e-8, "ad": 1e-12, "analytical": 1e-12}
    for case in [*cases(constrained=False), *cases(constrained=True)]:
        found = errors(case, 40)
        assert {"fd", "fdc", "ad"} <= set(found)
        for mode, worst in found.items():
            assert worst.max() < bounds[mode], f"{case.name}, {mode}: {worst.max():.1e}"


@pytest.mark.parametrize("name, given", [("rnea", 3), ("aba", 3), ("crba", 1), ("center_of_mass", 2)])
def test_second_derivatives(name: str, given: int) -> None:
    """Symmetric; and the mean of both orders of differentiation, on the manifold, by central differences of `ad`."""
    function, h = getattr(sl, name), 1e-5
    model = sl.random_model(seed=3, bodies=6)
    rng = np.random.default_rng(4)
    inputs = (sl.random_configuration(model, rng), *rng.normal(size=(2, model.nv)))[:given]
    one, two = (tuple(each) for each in rng.normal(size=(2, given, model.nv)))

    def slopes(along: Any, moved: Any, step: float) -> Any:
        shifted = [x + step * d for x, d in zip(inputs[1:], moved[1:], strict=True)]
        found = sl.jvp(function, model, (sl.integrate(model, inputs[0], step * moved[0]), *shifted), along)[1]
        return found if isinstance(found, tuple) else (found,)

    def central(along: Any, moved: Any) -> Any:
        pairs = zip(slopes(along, moved, h), slopes(along, moved, -h), strict=True)
        return [(ahead - behind) / (2 * h) for ahead, behind in pairs]

    ours = sl.second_directional(function, model, inputs, one, two)
    swapped = sl.second_directional(function, model, inputs, two, one)
    ours, swapped = (x if isinstance(x, tuple) else (x,) for x in (ours, swapped))
    for x, y, a, b in zip(ours, swapped, central(one, two), central(two, one), strict=True):
        assert_close(x, y, 1e-13, max(1.0, float(np.abs(x).max())))
        assert_close(x, 0.5 * (a + b), 1e-7, max(1.0, float(np.abs(x).max())))
