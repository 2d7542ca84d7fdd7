"""All methods of constrained dynamics against dense least squares, on robots, random trees and hard cases."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.constraints.dynamics import METHODS, TREES_ONLY
from saltus.constraints.scale import typical_delassus
from tests.closeness import with_rounding
from tests.constraints import truth

TOLERANCE = 1e-9
METHOD_NAMES = sorted(METHODS)
each_method = pytest.mark.parametrize("method", METHOD_NAMES)
KERNELS = sorted(set(METHODS) - {"kkt"})
each_loop_method = pytest.mark.parametrize("method", sorted(set(METHODS) - TREES_ONLY))


def robot_contacts() -> dict[str, tuple[sl.Model, list[sl.Constraint]]]:
    quadruped, humanoid = sl.load_robot("quadruped"), sl.load_robot("humanoid")
    feet, hands = (sl.robot_frames("humanoid").feet, sl.robot_frames("humanoid").hands)
    return {
        "quadruped 1x3": (quadruped, [sl.Contact(quadruped, "LF_FOOT", 3)]),
        "quadruped 4x3": (quadruped, [sl.Contact(quadruped, f, 3) for f in sl.robot_frames("quadruped").feet]),
        "humanoid 2x6": (humanoid, [sl.Contact(humanoid, f, 6) for f in feet]),
        "humanoid 2x6 2x3": (
            humanoid, [*(sl.Contact(humanoid, f, 6, kd=2.0) for f in feet), *(sl.Contact(humanoid, f, 3) for f in hands)]
        ),
    }  # fmt: skip


CONTACTS = robot_contacts()
each_contact_set = pytest.mark.parametrize("name", list(CONTACTS))


def states(model: sl.Model, count: int, seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    q = sl.random_configuration(model, seed, count)
    return q, rng.normal(size=(count, model.nv)), 10.0 * rng.normal(size=(count, model.nv))


def close(x: Any, y: Any, tolerance: float, scale: float | None = None) -> None:
    size = np.abs(y).max() if scale is None else scale
    assert np.abs(x - y).max() <= tolerance * size, np.abs(x - y).max() / size


@each_contact_set
@each_method
def test_contacts_against_dense(name: str, method: str) -> None:
    model, contacts = CONTACTS[name]
    dynamics = sl.ConstrainedDynamics(model, contacts, method)
    q, v, tau = states(model, 21, 1)
    solution = dynamics.solve(q, v, tau)
    assert (solution.status == sl.Status.CONVERGED).all()
    for k in range(len(q)):
        a, forces, J = truth.solve(model, contacts, q[k], v[k], tau[k])
        close(solution.a[k], a, TOLERANCE)
        M = sl.crba(model, q[k])
        condition = np.linalg.cond(J @ np.linalg.solve(M, J.T))
        close(solution.forces[k], forces, max(TOLERANCE, 1e-13 * condition))


@each_contact_set
@each_method
def test_lanes_equal_single_calls(name: str, method: str) -> None:
    model, contacts = CONTACTS[name]
    dynamics = sl.ConstrainedDynamics(model, contacts, method, mu=1e-4, most_iterations=3, tolerance=0.0)
    q, v, tau = states(model, 11, 2)
    batch = dynamics.solve(q, v, tau)
    for k in range(len(q)):
        one = dynamics.solve(q[k], v[k], tau[k])
        close(one.a, batch.a[k], 1e-11)
        close(one.forces, batch.forces[k], 1e-10)
        assert one.iterations == batch.iterations[k]


@pytest.mark.slow
@each_contact_set
@pytest.mark.parametrize("method", KERNELS)
def test_single_precision(name: str, method: str) -> None:
    """Against double precision on the same inputs; mu is such that single precision can bear it."""
    model, contacts = CONTACTS[name]
    dynamics = sl.ConstrainedDynamics(model, contacts, method, mu=1e-2, most_iterations=3, tolerance=0.0)
    q, v, tau = (x.astype(np.float32) for x in states(model, 17, 8))
    single, double = dynamics.solve(q, v, tau), dynamics.solve(*(x.astype(np.float64) for x in (q, v, tau)))
    assert single.a.dtype == np.float32
    condition = np.linalg.cond(sl.crba(model, q.astype(np.float64))).max()
    close(single.a, double.a, with_rounding(0.0, condition, real=np.float32))


@pytest.mark.parametrize("method", KERNELS)
def test_threads_and_leading_axes(method: str) -> None:
    model, contacts = CONTACTS["quadruped 4x3"]
    dynamics = sl.ConstrainedDynamics(model, contacts, method)
    q, v, tau = (x.reshape(2, 150, -1) for x in states(model, 300, 9))
    before = sl.get_threads()
    try:
        sl.set_threads(1)
        alone = dynamics.solve(q, v, tau[0, 0])
        sl.set_threads(2)
        together = dynamics.solve(q, v, tau[0, 0])
    finally:
        sl.set_threads(before)
    assert alone.a.shape == (2, 150, model.nv) and alone.forces.shape == (2, 150, 12) and alone.status.shape == (2, 150)
    assert np.array_equal(alone.a, together.a) and np.array_equal(alone.forces, together.forces)


@each_method
def test_masks_switch_contacts(method: str) -> None:
    """Every sample has its own active contacts; what is off has no force, and none at all is the free motion."""
    model, contacts = CONTACTS["quadruped 4x3"]
    dynamics = sl.ConstrainedDynamics(model, contacts, method)
    q, v, tau = states(model, 16, 3)
    active = np.array([[(k >> c) & 1 for c in range(4)] for k in range(16)], float)
    solution = dynamics.solve(q, v, tau, active)
    for k in range(16):
        a, _, _ = truth.solve(model, contacts, q[k], v[k], tau[k], active[k])
        close(solution.a[k], a, TOLERANCE)
        assert not solution.forces[k][np.repeat(active[k], 3) == 0].any()
    close(solution.a[0], sl.aba(model, q[0], v[0], tau[0]), 1e-12)


@each_method
def test_targets_gains_and_weights(method: str) -> None:
    model = sl.load_robot("quadruped")
    q, v, tau = states(model, 5, 4)
    anchor = np.eye(4)
    anchor[:3, 3] = 0.1, -0.2, 0.3
    contacts = [
        sl.Contact(model, "LF_FOOT", 3, kp=30.0, kd=7.0, anchor=anchor),
        sl.Contact(model, "RH_FOOT", 3, kd=3.0, weight=[1, 2, 3, 1, 1, 1]),
    ]
    target = np.random.default_rng(0).normal(size=(5, 6))
    solution = sl.ConstrainedDynamics(model, contacts, method).solve(q, v, tau, target=target)
    for k in range(5):
        a, forces, _ = truth.solve(model, contacts, q[k], v[k], tau[k], target=target[k])
        close(solution.a[k], a, TOLERANCE)
        close(solution.forces[k], forces, 1e-8)


@each_method
def test_six_times_the_same_contact(method: str) -> None:
    """Redundant constraints: the accelerations of one contact, and forces that add up to its force."""
    model = sl.load_robot("humanoid")
    sole = sl.robot_frames("humanoid").feet[0]
    q, v, tau = states(model, 9, 5)
    single = sl.ConstrainedDynamics(model, [sl.Contact(model, sole, 6)], "kkt").solve(q, v, tau)
    many = sl.ConstrainedDynamics(model, [sl.Contact(model, sole, 6) for _ in range(6)], method).solve(q, v, tau)
    assert (many.status == sl.Status.CONVERGED).all()
    close(many.a, single.a, TOLERANCE)
    close(many.forces.reshape(9, 6, 6).sum(1), single.forces, 1e-8)


@each_method
def test_contradictory_contacts(method: str) -> None:
    """Two contacts at one point that ask for different accelerations: the mean is closest to both."""
    model = sl.load_robot("quadruped")
    contacts = [sl.Contact(model, "LF_FOOT", 3), sl.Contact(model, "LF_FOOT", 3)]
    q, v, tau = states(model, 4, 6)
    target = np.tile([1.0, 0.0, 0.0, -1.0, 2.0, 0.0], (4, 1))
    solution = sl.ConstrainedDynamics(model, contacts, method).solve(q, v, tau, target=target)
    mean = np.tile([0.0, 1.0, 0.0], (4, 1))
    expected = sl.ConstrainedDynamics(model, contacts[:1], "kkt").solve(q, v, tau, target=mean)
    close(solution.a, expected.a, 1e-8)
    # Forces that grow by 1 / mu make rows accelerate by 1 / 1e-7, and all but 1 of that cancels: 16 units of the last place.
    large = np.abs(solution.forces).max(-1) * typical_delassus(model, contacts)
    assert (np.abs(solution.residual - 1.0) < 1e-8 + 16 * np.finfo(float).eps * large).all()
    if method != "kkt":
        assert (solution.status == sl.Status.LEAST_SQUARES).all()
    assert np.isfinite(solution.forces).all()


@pytest.mark.parametrize("dim", [3, 5, 6])
@each_loop_method
def test_loops_against_dense(method: str, dim: int) -> None:
    model = sl.load_robot("humanoid")
    left, right = sl.robot_frames("humanoid").hands
    loops = [
        sl.LoopClosure(model, left, right, dim, kp=5.0, kd=2.0),
        sl.Contact(model, sl.robot_frames("humanoid").feet[0], 6),
        sl.LoopClosure(model, right, "left_sole", rows=(1, 3, 5)),
        sl.JointLock(model, model.joints[-1].name),
    ]
    q, v, tau = states(model, 9, 7)
    solution = sl.ConstrainedDynamics(model, loops, method).solve(q, v, tau)
    for k in range(len(q)):
        a, _, _ = truth.solve(model, loops, q[k], v[k], tau[k])
        close(solution.a[k], a, TOLERANCE)


@pytest.mark.parametrize("seed", range(12))
@each_method
def test_random_trees(method: str, seed: int) -> None:
    model = sl.random_model(seed=seed, bodies=3 + 2 * seed)
    rng = np.random.default_rng(seed)
    moving = [k for k, frame in enumerate(model.frames) if frame.joint > 0]
    constraints = [sl.Contact(model, int(frame), int(rng.choice([3, 6]))) for frame in rng.choice(moving, 2)]
    q, v, tau = states(model, 5, seed)
    solution = sl.ConstrainedDynamics(model, constraints, method, mu=1e-5, most_iterations=200).solve(q, v, tau)
    for k in range(len(q)):
        a, _, J = truth.solve(model, constraints, q[k], v[k], tau[k])
        close(J @ solution.a[k], J @ a, 1e-8, 1.0 + np.abs(a).max())


def test_errors() -> None:
    model = sl.load_robot("humanoid")
    left, right = sl.robot_frames("humanoid").hands
    with pytest.raises(sl.ModelError, match="unknown method 'magic', expected one of"):
        sl.ConstrainedDynamics(model, [], "magic")
    with pytest.raises(sl.ModelError, match="'prox_pv' is for contacts; .* ties two bodies"):
        sl.ConstrainedDynamics(model, [sl.LoopClosure(model, left, right)], "prox_pv")
    with pytest.raises(sl.ModelError, match=r"its dim is 4, expected 3 \(point\) or 6"):
        sl.Contact(model, left, 4)
    with pytest.raises(sl.ModelError, match="kp is 1.0, but no anchor"):
        sl.Contact(model, left, 3, kp=1.0)
    with pytest.raises(sl.ModelError, match="both frames are on the same body"):
        sl.LoopClosure(model, left, left)
    with pytest.raises(sl.ModelError, match="no frame 'left_hnad'; did you mean"):
        sl.Contact(model, "left_hnad")
    with pytest.raises(sl.ModelError, match="expected different ones of 0 to 5"):
        sl.LoopClosure(model, left, right, rows=(0, 0))
    with pytest.raises(ValueError, match=r"active has shape \(3,\)"):
        sl.ConstrainedDynamics(model, [sl.Contact(model, left)]).solve(*(x[0] for x in states(model, 1, 0)), np.ones(3))


def test_it_can_be_pickled() -> None:
    model = sl.load_robot("quadruped")
    feet = [sl.Contact(model, foot, kd=2.0) for foot in sl.robot_frames("quadruped").feet]
    dynamics = sl.ConstrainedDynamics(model, feet, "prox_ltl", mu=1e-5, tolerance=1e-7, most_iterations=7)
    inputs = (model.neutral(), *np.ones((2, model.nv)))
    copy = pickle.loads(pickle.dumps(dynamics))
    assert all(map(np.array_equal, dynamics.solve(*inputs), copy.solve(*inputs))) and copy.tolerance == 1e-7
