"""Constrained dynamics of robots with mimic joints: against the dense system of Pinocchio's matrices, and the oracle's."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import saltus as sl
from tests.closeness import assert_close, with_rounding
from tests.model.hands import HANDS, load_hands, random_coupled, system_in_pinocchio
from tests.model.test_mimic import MODEL

METHODS = ["prox_ltl", "kkt"]


def solved(M: Any, rest: Any, J: Any, goal: Any) -> tuple[Any, Any, float]:
    """Accelerations and forces of rows that do not depend on each other, and the condition of the system."""
    system = np.block([[M, -J.T], [J, np.zeros((len(J), len(J)))]])
    x = np.linalg.solve(system, np.r_[rest, goal])
    return x[: len(M)], x[len(M) :], float(np.linalg.cond(system))


def state(model: sl.Model, *shape: int) -> tuple[Any, ...]:
    q, rng = sl.random_configuration(model, 1, shape), np.random.default_rng(2)
    return q, *rng.normal(size=(2, *shape, model.nv))


def on_a_limb(frame: sl.Frame, model: sl.Model) -> bool:
    """A body at the end of a limb with at least six joints."""
    joint, count = frame.joint, 0
    while joint > 0:
        joint, count = model.joints[joint].parent, count + 1
    leaf = all(x.parent != frame.joint for x in model.joints)
    return leaf and count >= 6 and frame.kind == sl.FrameKind.BODY


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("path", HANDS, ids=lambda path: path.rpartition("/")[2][:-5])
def test_hands_against_pinocchio(path: str, method: str) -> None:
    model = load_hands(path)
    q, v, tau = state(model)
    limbs = [frame for frame in model.frames if on_a_limb(frame, model)]
    fingertip = next(frame for frame in reversed(limbs) if model.joints[frame.joint].mimic)
    frames = [fingertip.name, limbs[0].name]
    dynamics = sl.ConstrainedDynamics(model, [sl.Contact(model, x) for x in frames], method, tolerance=1e-12)
    M, b, J, drift = system_in_pinocchio(path, model, q, v, frames)
    kept = np.abs(J).max(axis=1) > 0
    a, forces, condition = solved(M, tau - b, J[kept], -drift[kept])
    solution = dynamics.solve(q, v, tau)
    assert solution.status == sl.Status.CONVERGED
    assert_close(solution.a, a, with_rounding(1e-10, condition, 10.0))
    assert_close(solution.forces[kept], forces, with_rounding(1e-10, condition, 10.0))


COUPLED = [model for model in map(random_coupled, range(40)) if model.coupling and model.nv > 4]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", COUPLED, ids=lambda model: model.name)
def test_any_tree(model: sl.Model, method: str) -> None:
    """A row of the user's beside a contact: groups of joints within each other, across branches, closed at the world."""
    q, v, tau = state(model)
    frame, rows = model.joints[-1].name + "_body", np.random.default_rng(5).normal(size=(1, model.nv))
    constraints = [sl.Contact(model, frame, rows=(0,)), sl.UserRows(model, 1)]
    J = np.concatenate([sl.frame_jacobian(model, q, frame)[:1], rows])
    goal = np.r_[-sl.frame_acceleration(model, q, v, np.zeros(model.nv), frame)[0], 0.3]
    moves = np.abs(J).max(axis=1) > 1e-9  # a ball joint, where it is, moves its own origin nowhere
    J, goal = J[moves], goal[moves]
    M, rest = sl.crba(model, q), tau - sl.nonlinear_effects(model, q, v)
    a, _, condition = solved(M, rest, J, goal)
    dynamics = sl.ConstrainedDynamics(model, constraints, method, tolerance=1e-12)
    solution = dynamics.solve(q, v, tau, target=[0.0, 0.3], rows=rows)
    assert solution.status == sl.Status.CONVERGED
    assert_close(solution.a, a, with_rounding(1e-9, condition, 10.0))


FOOT = sl.Contact(MODEL, "slide")


@pytest.mark.parametrize("method", METHODS)
def test_forms(method: str) -> None:
    """Batches, masks, marks, single precision, external forces, copies."""
    dynamics = sl.ConstrainedDynamics(MODEL, [FOOT], method)
    q, v, tau = state(MODEL, 9)
    many = dynamics.solve(q, v, tau)
    for k in range(9):
        assert_close(dynamics.solve(q[k], v[k], tau[k]).a, many.a[k], 1e-9)
    assert_close(dynamics.solve(q, v, tau, active=[0.0]).a, sl.aba(MODEL, q, v, tau), 1e-9)
    single = dynamics.solve(*(x.astype(np.float32) for x in (q, v, tau)))
    assert single.a.dtype == np.float32
    assert_close(single.a, many.a, 1e-3)
    pushed = np.random.default_rng(3).normal(size=(MODEL.njoints, 6))
    held = dynamics.solve(q, v, tau, external=pushed)
    right = dynamics.solve(q, v, tau + sl.gravity(MODEL, q) - sl.gravity(MODEL, q, pushed))
    assert_close(held.a, right.a, 1e-9)
    again = pickle.loads(pickle.dumps(dynamics)).solve(q, v, tau)
    assert np.array_equal(again.a, many.a)
    q[3, 3:7] *= 2.0
    marked = dynamics.solve(q, v, tau, on_invalid="mark")
    assert marked.status[3] == sl.Status.INVALID and np.isnan(marked.a[3]).all()
    assert_close(np.delete(marked.a, 3, 0), np.delete(many.a, 3, 0), 1e-9)


def test_impact() -> None:
    """What strikes stops, what is given back is given back, and momentum changes by impulses alone."""
    q, v, _ = state(MODEL)
    J = sl.frame_jacobian(MODEL, q, "slide")[:3]
    for restitution in (0.0, 0.4):
        after = sl.ConstrainedDynamics(MODEL, [FOOT], "prox_ltl", tolerance=1e-12).impact(q, v, restitution=restitution)
        assert after.status == sl.Status.CONVERGED
        assert_close(J @ after.v, -restitution * J @ v, 1e-9, np.abs(v).max())
        M = sl.crba(MODEL, q)
        assert_close(M @ (after.v - v), J.T @ after.impulses, 1e-9)


def test_rollout() -> None:
    """The held point stays."""
    q, v, _ = state(MODEL)
    dynamics = sl.ConstrainedDynamics(MODEL, [FOOT], "prox_ltl")
    v = dynamics.impact(q, v).v
    run = sl.rollout(dynamics, q, v, duration=0.02, dt=1e-3)
    way = sl.frame_placement(MODEL, run.q[-1], "slide")[:3, 3] - sl.frame_placement(MODEL, q, "slide")[:3, 3]
    free = sl.rollout(MODEL, q, v, duration=0.02, dt=1e-3)
    fell = sl.frame_placement(MODEL, free.q[-1], "slide")[:3, 3] - sl.frame_placement(MODEL, q, "slide")[:3, 3]
    assert np.abs(way).max() < 1e-3 * np.abs(fell).max()


def test_what_cannot_be_had_is_refused_by_name() -> None:
    with pytest.raises(
        sl.ModelError, match="'constrained_aba' knows no mimic joints, .* expected one of kkt, prox_ltl"
    ):
        sl.ConstrainedDynamics(MODEL, [FOOT])
    dynamics = sl.ConstrainedDynamics(MODEL, [FOOT], "prox_ltl")
    q, v, tau = state(MODEL)
    for call in (lambda: dynamics.derivatives(q, v, tau), lambda: dynamics.delassus(q),
                 lambda: dynamics.inverse_dynamics(q, v, tau)):  # fmt: skip
        with pytest.raises(sl.ModelError, match="'gripper' has mimic joints, with which this cannot be computed yet"):
            call()
