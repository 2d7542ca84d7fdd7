"""Derivatives of steps in time against central differences of the steps themselves, along the manifold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import saltus as sl
from saltus.derivatives.forward import coordinate_rates
from saltus.kernel.forward import push_forward
from saltus.simulation.step_derivatives import _tangent_rate
from saltus.simulation.steps import METHODS
from tests.closeness import assert_close, with_rounding
from tests.generators import floating_tree, mimic_tree, random_state
from tests.kernel.cases import all_kinds

Robot = sl.Model | sl.ConstrainedDynamics


def standing() -> Robot:
    robot = sl.load_robot("quadruped")
    return sl.ConstrainedDynamics(robot, [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet])


def four_bar() -> Robot:
    linkage = sl.load_robot("four_bar")
    return sl.ConstrainedDynamics(linkage, sl.model_loops(linkage), method="prox_ltl")


ROBOTS: dict[str, Callable[[], Robot]] = {
    "all kinds": all_kinds,
    "floating": lambda: floating_tree(3, 6),
    "mimic joints": lambda: mimic_tree(3, 8),
    "standing": standing,
    "four_bar": four_bar,
}

each_method = pytest.mark.parametrize("method", METHODS)


def model_of(robot: Robot) -> sl.Model:
    return robot.model if isinstance(robot, sl.ConstrainedDynamics) else robot


def stepped(
    robot: Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray, h: float, method: str
) -> tuple[np.ndarray, ...]:
    """One step, by the functions that `rollout` uses."""

    def acceleration(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return sl.aba(robot, q, v, tau) if isinstance(robot, sl.Model) else robot.solve(q, v, tau).a

    return METHODS[method](model_of(robot), acceleration, 0.0, q, v, acceleration(0.0, q, v), h)


def by_differences(
    robot: Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray, h: float, method: str, eps: float = 1e-5
) -> np.ndarray:
    """d(q', v') / d(q, v, tau) (2 nv, 3 nv), all directions as one batch."""
    model = model_of(robot)
    dq, dv, dtau = np.moveaxis((eps * np.eye(3 * model.nv)).reshape(-1, 3, model.nv), 1, 0)
    q0, _ = stepped(robot, q, v, tau, h, method)
    ends = []
    for sign in (1.0, -1.0):
        q1, v1 = stepped(robot, sl.integrate(model, q, sign * dq), v + sign * dv, tau + sign * dtau, h, method)
        ends.append(np.concatenate([sl.difference(model, q0, q1), v1], axis=-1))
    return ((ends[0] - ends[1]) / (2 * eps)).T


@each_method
@pytest.mark.parametrize("name", ROBOTS)
def test_against_differences(name: str, method: str) -> None:
    robot = ROBOTS[name]()
    model = model_of(robot)
    state, h = random_state(model, 3), 0.05
    q = state.q if isinstance(robot, sl.Model) else model.reference_configurations.get("standing", model.neutral())
    step = sl.step_derivatives(robot, q, state.v, state.tau, h, method)
    q1, v1 = stepped(robot, q, state.v, state.tau, h, method)
    assert_close(step.q, q1, 1e-12)
    assert_close(step.v, v1, 1e-9)
    expected = by_differences(robot, q, state.v, state.tau, h, method)
    assert_close(step.A, expected[:, : 2 * model.nv], 1e-7)
    assert_close(step.B, expected[:, 2 * model.nv :], 1e-7)


@each_method
@pytest.mark.parametrize("name", ["all kinds", "floating"])
def test_against_duals(name: str, method: str) -> None:
    """The whole step run on dual numbers, its slopes in coordinates brought to the tangent at its end."""
    robot, h = ROBOTS[name](), 0.05
    model = model_of(robot)
    state, nv = random_state(model, 8), model.nv

    def step(model: sl.Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, ...]:
        return stepped(model, q, v, tau, h, method)

    D = sl.step_derivatives(model, state.q, state.v, state.tau, h, method)
    slopes = sl.jacobian(step, model, (state.q, state.v, state.tau), mode="ad")
    to_tangent = np.linalg.pinv(coordinate_rates(model, np.tile(D.q, (nv, 1)), np.eye(nv)).T)
    expected = np.block([[to_tangent @ by[0] for by in slopes], [by[1] for by in slopes]])
    assert_close(D.A, expected[:, : 2 * nv], 1e-12)
    assert_close(D.B, expected[:, 2 * nv :], 1e-12)


@each_method
def test_horizon(method: str) -> None:
    """The steps of a horizon at once are those one by one; inputs without the axis of the horizon count for all steps."""
    model = floating_tree(3, 6)
    state = random_state(model, 4, (11,))
    whole = sl.step_derivatives(model, state.q, state.v, state.tau[0], 1e-2, method)
    assert whole.A.shape == (11, 2 * model.nv, 2 * model.nv) and whole.B.shape == (11, 2 * model.nv, model.nv)
    for k in range(11):
        one = sl.step_derivatives(model, state.q[k], state.v[k], state.tau[0], 1e-2, method)
        for many, single in zip(whole, one, strict=True):
            assert_close(many[k], single, 1e-10)


def test_masks() -> None:
    """Without active constraints a robot moves freely."""
    robot = standing()
    model = model_of(robot)
    state = random_state(model, 5)
    one = sl.step_derivatives(robot, state.q, state.v, state.tau, 1e-2, active=np.zeros(4))
    other = sl.step_derivatives(model, state.q, state.v, state.tau, 1e-2)
    assert_close(one.A, other.A, 1e-9)
    assert_close(one.B, other.B, 1e-9)


@pytest.mark.parametrize("size", [0.0, 1e-5, 0.5, 1.7])
def test_rate_of_tangent_vectors(size: float) -> None:
    """Its derivatives are those of the kernel run on dual numbers, and it is the rate by `difference`."""
    model, rng = all_kinds(), np.random.default_rng(6)
    x, v = size * rng.uniform(-1.0, 1.0, model.nv), rng.normal(size=model.nv)
    (rate, along_x, along_v), (slopes_x, _, _) = push_forward(_tangent_rate, model, (x, v), (np.eye(model.nv), None))
    assert_close(along_x, slopes_x.T, 1e-13, 1.0)
    assert_close(along_v @ v, rate, 1e-14)
    q = model.neutral()
    _, along_q = sl.difference_jacobians(model, q, sl.integrate(model, q, x))
    assert_close(along_v, along_q, 1e-12)


@pytest.mark.slow
def test_single_precision() -> None:
    model = floating_tree(3, 6)
    state = random_state(model, 7)
    singles = [x.astype(np.float32) for x in (state.q, state.v, state.tau)]
    step = sl.step_derivatives(model, *singles, 1e-2)
    assert {x.dtype for x in step} == {np.dtype(np.float32)}
    doubles = [x.astype(np.float64) for x in singles]
    condition = np.linalg.cond(sl.crba(model, doubles[0]))
    assert_close(
        tuple(step), tuple(sl.step_derivatives(model, *doubles, 1e-2)), with_rounding(0.0, condition, real=np.float32)
    )


def test_refusals() -> None:
    model = all_kinds()
    q, v = model.neutral(), np.zeros(model.nv)
    with pytest.raises(ValueError, match="step_derivatives: method is 'euler', expected one of 'rk4'"):
        sl.step_derivatives(model, q, v, v, 1e-2, "euler")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="step_derivatives: active is for constraints"):
        sl.step_derivatives(model, q, v, v, 1e-2, active=np.ones(1))
