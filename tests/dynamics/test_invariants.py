"""What mechanics says, whatever the numbers: energy, momentum, symmetry, invariance; on random trees.

Time derivatives are central differences along the motion, which is why some tolerances are 1e-6.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import saltus as sl
from tests import oracles
from tests.closeness import assert_close
from tests.generators import State, floating_tree, random_state, tilted, with_armature

H = 1e-5
seeds, sizes = st.integers(0, 2**32), st.integers(1, 8)


def robot(seed: int, bodies: int) -> tuple[sl.Model, State]:
    model = tilted(with_armature(sl.random_model(seed, bodies), seed), seed)
    return model, random_state(model, seed)


def along(model: sl.Model, s: State, function: object) -> np.ndarray:
    """d/dt of function(q, v) as the robot moves with velocity v and acceleration a."""
    ahead, behind = (
        function(sl.integrate(model, s.q, sign * H * s.v), s.v + sign * H * s.a)  # type: ignore[operator]
        for sign in (1.0, -1.0)
    )
    return np.asarray((ahead - behind) / (2.0 * H))


@given(seeds, sizes)
def test_energy(seed: int, bodies: int) -> None:
    """dT/dt = v (tau - gravity), d(T + V)/dt = v tau."""
    model, s = robot(seed, bodies)
    s.a = sl.aba(model, s.q, s.v, s.tau)
    kinetic = along(model, s, lambda q, v: sl.kinetic_energy(model, q, v))
    potential = along(model, s, lambda q, v: sl.potential_energy(model, q))
    scale = np.abs(s.v) @ np.abs(s.tau) + abs(float(kinetic)) + float(sl.kinetic_energy(model, s.q, s.v))
    assert_close(kinetic, s.v @ (s.tau - sl.gravity(model, s.q)), 1e-6, scale)
    assert_close(kinetic + potential, s.v @ s.tau, 1e-6, scale)


@given(seeds, sizes)
def test_kinetic_energy_is_a_quadratic_form(seed: int, bodies: int) -> None:
    model, s = robot(seed, bodies)
    assert_close(sl.kinetic_energy(model, s.q, s.v), 0.5 * s.v @ sl.crba(model, s.q) @ s.v, 1e-12)


@given(seeds, sizes)
def test_gravity_is_the_slope_of_the_potential(seed: int, bodies: int) -> None:
    model, s = robot(seed, bodies)
    steps = H * np.eye(model.nv)
    ahead, behind = (sl.potential_energy(model, sl.integrate(model, s.q, sign * steps)) for sign in (1.0, -1.0))
    size = model.total_mass * float(np.linalg.norm(model.gravity))
    assert_close(sl.gravity(model, s.q), (ahead - behind) / (2.0 * H), 1e-8, size)


@given(seeds, sizes)
def test_inertia_matrix(seed: int, bodies: int) -> None:
    """Symmetric (exactly), positive definite, and minverse its inverse."""
    model, s = robot(seed, bodies)
    M, inverse = sl.crba(model, s.q), sl.minverse(model, s.q)
    assert np.array_equal(M, M.T)
    assert np.linalg.eigvalsh(M).min() > 0.0
    assert_close(inverse, inverse.T, 1e-12)
    assert_close(M @ inverse, np.eye(model.nv), 1e-9)


@given(seeds, sizes)
def test_forward_and_inverse_dynamics(seed: int, bodies: int) -> None:
    model, s = robot(seed, bodies)
    assert_close(sl.aba(model, s.q, s.v, sl.rnea(model, s.q, s.v, s.a, s.forces), s.forces), s.a, 1e-9)
    a = sl.aba(model, s.q, s.v, s.tau)
    assert_close(sl.rnea(model, s.q, s.v, a), s.tau, 1e-9, float(np.abs(sl.crba(model, s.q)).max() * np.abs(a).max()))
    b = sl.nonlinear_effects(model, s.q, s.v)
    assert_close(sl.rnea(model, s.q, s.v, s.a), sl.crba(model, s.q) @ s.a + b, 1e-11)


@given(seeds, sizes)
def test_velocity_forces_do_no_work_beyond_the_change_of_inertia(seed: int, bodies: int) -> None:
    """v (C v) = 1/2 v dM/dt v."""
    model, s = robot(seed, bodies)
    rate = along(model, s, lambda q, v: sl.crba(model, q))
    work = s.v @ (sl.nonlinear_effects(model, s.q, s.v) - sl.gravity(model, s.q))
    size = float(np.abs(rate).max(initial=1.0)) * float(s.v @ s.v)
    assert_close(work, 0.5 * s.v @ rate @ s.v, 1e-7, size)


@given(seeds, sizes)
def test_external_forces_act_through_jacobians(seed: int, bodies: int) -> None:
    model, s = robot(seed, bodies)
    torque = sum(sl.joint_jacobian(model, s.q, i).T @ s.forces[i] for i in range(1, model.njoints))
    tau, without = sl.rnea(model, s.q, s.v, s.a, s.forces), sl.rnea(model, s.q, s.v, s.a)
    assert_close(without - tau, torque, 1e-10, float(np.abs(without).max()))
    other = s.forces.copy()
    other[0] = 1e6  # a force on the universe does nothing
    assert np.array_equal(sl.rnea(model, s.q, s.v, s.a, other), tau)
    assert np.array_equal(sl.aba(model, s.q, s.v, s.tau, other), sl.aba(model, s.q, s.v, s.tau, s.forces))


@given(seeds, sizes)
def test_momentum(seed: int, bodies: int) -> None:
    """h = A v, its linear part the mass times the velocity of the centre of mass, dh = A a + drift, both by differences."""
    model, s = robot(seed, bodies)
    h = sl.centroidal_momentum(model, s.q, s.v)
    A = sl.centroidal_momentum_matrix(model, s.q)
    position, velocity, acceleration = sl.center_of_mass(model, s.q, s.v, s.a)
    size = float(np.abs(A).max() * np.abs(s.v).max())
    assert_close(h, A @ s.v, 1e-12, size)
    assert_close(h[:3], model.total_mass * velocity, 1e-12, size)
    assert_close(velocity, along(model, s, lambda q, v: sl.center_of_mass(model, q)), 1e-7, size)
    rate = sl.centroidal_momentum_rate(model, s.q, s.v, s.a)
    size = float(np.abs(rate).max()) + size
    assert_close(rate, A @ s.a + sl.centroidal_momentum_drift(model, s.q, s.v), 1e-12, size)
    assert_close(rate, along(model, s, lambda q, v: sl.centroidal_momentum(model, q, v)), 1e-6, size)
    assert_close(rate[:3], model.total_mass * acceleration, 1e-12, size)
    assert_close(position, sl.center_of_mass(model, s.q), 1e-13)


@given(seeds, sizes)
def test_nothing_inside_moves_a_floating_robot(seed: int, bodies: int) -> None:
    """Torques at the joints change neither the fall of the centre of mass nor the angular momentum about it."""
    model = floating_tree(seed, bodies)
    s = random_state(model, seed)
    tau = np.concatenate([np.zeros(6), s.tau[6:]])
    rate = sl.centroidal_momentum_rate(model, s.q, s.v, sl.aba(model, s.q, s.v, tau))
    fall = model.total_mass * model.gravity
    assert_close(rate, [*fall, 0.0, 0.0, 0.0], 1e-9, float(np.abs(tau).max() + np.abs(fall).max() + s.v @ s.v))


@given(seeds, sizes)
def test_the_world_has_no_special_place_or_direction(seed: int, bodies: int) -> None:
    """A robot turned and moved with its gravity accelerates as before, seen from its base."""
    model = floating_tree(seed, bodies)
    s, rng = random_state(model, seed), np.random.default_rng(seed)
    turn, shift = Rotation.random(rng=rng), rng.normal(size=3) * 10.0
    moved = s.q.copy()
    moved[:3] = turn.apply(s.q[:3]) + shift
    moved[3:7] = (turn * Rotation.from_quat(s.q[3:7])).as_quat()
    turned = model.replace(gravity=turn.apply(model.gravity.copy()))
    for function in (sl.aba, sl.rnea):
        assert_close(function(turned, moved, s.v, s.tau), function(model, s.q, s.v, s.tau), 1e-10)
    assert_close(sl.crba(turned, moved), sl.crba(model, s.q), 1e-12)
    assert_close(sl.kinetic_energy(turned, moved, s.v), sl.kinetic_energy(model, s.q, s.v), 1e-12)
    assert_close(sl.center_of_mass(turned, moved), turn.apply(sl.center_of_mass(model, s.q)) + shift, 1e-13)
    h = sl.centroidal_momentum(model, s.q, s.v)
    expected = [*turn.apply(h[:3]), *turn.apply(h[3:])]
    assert_close(sl.centroidal_momentum(turned, moved, s.v), expected, 1e-12, float(np.abs(h).max() + 10.0))


def log6(X: np.ndarray) -> np.ndarray:
    """The small motion of a placement near the identity."""
    turn = Rotation.from_matrix(X[:3, :3]).as_rotvec()
    return np.concatenate([X[:3, 3] - 0.5 * np.cross(turn, X[:3, 3]), turn])


@given(seeds, sizes)
def test_jacobians_are_the_slopes_of_placements(seed: int, bodies: int) -> None:
    model, s = robot(seed, bodies)
    frame = len(model.frames) - 1
    X = sl.frame_placement(model, s.q, frame)
    steps = H * np.eye(model.nv)
    ahead, behind = (sl.frame_placement(model, sl.integrate(model, s.q, sign * steps), frame) for sign in (1.0, -1.0))
    local = np.array(
        [log6(np.linalg.inv(X) @ A) - log6(np.linalg.inv(X) @ B) for A, B in zip(ahead, behind, strict=True)]
    )
    J = sl.frame_jacobian(model, s.q, frame)
    assert_close(J, local.T / (2.0 * H), 1e-8, max(1.0, float(np.abs(J).max())))
    assert_close(sl.frame_jacobian(model, s.q, frame, "world"), oracles.Ad(X) @ J, 1e-12, 10.0)
    turn = np.kron(np.eye(2), X[:3, :3])
    assert_close(sl.frame_jacobian(model, s.q, frame, "local_world_aligned"), turn @ J, 1e-13, 10.0)


@pytest.mark.parametrize("reference", ["local", "world", "local_world_aligned"])
@given(seeds, sizes)
def test_time_derivatives_of_jacobians(reference: str, seed: int, bodies: int) -> None:
    model, s = robot(seed, bodies)
    frame = len(model.frames) - 1
    J, dJ = sl.frame_jacobian_dot(model, s.q, s.v, frame, reference)
    central = along(model, s, lambda q, v: sl.frame_jacobian(model, q, frame, reference))
    assert_close(J, sl.frame_jacobian(model, s.q, frame, reference), 1e-13)
    assert_close(dJ, central, 1e-7, max(1.0, float(np.abs(dJ).max()), float(s.v @ s.v)))
    velocity = sl.frame_velocity(model, s.q, s.v, frame, reference)
    assert_close(velocity, J @ s.v, 1e-12, max(1.0, float(np.abs(velocity).max())))
    if reference != "local_world_aligned":  # there, Pinocchio's acceleration leaves out the motion of the origin
        acceleration = sl.frame_acceleration(model, s.q, s.v, s.a, frame, reference)
        assert_close(acceleration, J @ s.a + dJ @ s.v, 1e-11)


@given(seeds, sizes)
def test_frames_move_with_their_joints(seed: int, bodies: int) -> None:
    model, s = robot(seed, bodies)
    X, V, A = sl.forward_kinematics(model, s.q, s.v, s.a)
    frames = sl.frame_placements(model, s.q)
    for k, frame in enumerate(model.frames):
        assert_close(frames[k], X[frame.joint] @ frame.placement, 1e-13)
        assert_close(sl.frame_placement(model, s.q, k), frames[k], 1e-13)
    k = len(model.frames) - 1
    back = np.linalg.inv(oracles.Ad(model.frames[k].placement))
    joint = model.frames[k].joint
    assert_close(sl.frame_velocity(model, s.q, s.v, k), back @ V[joint], 1e-11)
    assert_close(sl.frame_acceleration(model, s.q, s.v, s.a, k), back @ A[joint], 1e-11)


@given(seeds, st.integers(2, 8))
def test_factors(seed: int, bodies: int) -> None:
    model, s = robot(seed, bodies)
    M = sl.crba(model, s.q)
    f = sl.ltl(model, M)
    assert_close(f.U @ np.diag(f.D) @ f.U.T, M, 1e-13)
    assert (f.D > 0.0).all()
    x = s.tau
    assert_close(f.solve_upper(f.upper(x)), x, 1e-11)
    assert_close(f.solve_lower(f.lower(x)), x, 1e-11)
    assert_close(M @ f.solve(x), x, 1e-9)
    assert_close(f.upper(f.D * f.lower(x)), M @ x, 1e-12)


@pytest.mark.slow
def test_a_tumble_conserves_energy_and_momentum() -> None:
    """Two seconds of free flight by small steps: the integrator's error shrinks as it should, nothing drifts away."""
    model = floating_tree(3, 5)
    s = random_state(model, 3)
    drifts = []
    for steps in (1000, 2000):
        q, v, dt = s.q, s.v, 2.0 / steps
        before = sl.kinetic_energy(model, q, v) + sl.potential_energy(model, q)
        for _ in range(steps):
            middle_v = v + 0.5 * dt * sl.aba(model, q, v, np.zeros(model.nv))
            middle_q = sl.integrate(model, q, 0.5 * dt * v)
            v = v + dt * sl.aba(model, middle_q, middle_v, np.zeros(model.nv))
            q = sl.integrate(model, q, dt * middle_v)
        drifts.append(abs(sl.kinetic_energy(model, q, v) + sl.potential_energy(model, q) - before))
        size = float(sl.kinetic_energy(model, q, v))
    assert drifts[1] < 1e-3 * size
    assert drifts[1] < 0.4 * drifts[0]  # second order
