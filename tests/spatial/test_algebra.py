"""The spatial algebra against dense matrices, and its identities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from saltus.model.tree import solid
from saltus.spatial.algebra import (
    SE3,
    Force,
    Mat3,
    Motion,
    Quat,
    Sym3,
    Vec3,
    act,
    act_force,
    act_force_inv,
    act_inv,
    cross,
    cross_force,
    cross_motion,
    dot,
    inverse,
    power,
    skew,
    transpose,
    turn_back,
)
from saltus.spatial.inertia import (
    Rigid,
    Solid,
    Sym6,
    act_solid,
    act_sym6,
    add_rigid,
    as_sym6,
    column,
    force_along,
    force_of,
    rotate_sym,
    without,
    without_axis,
)
from saltus.spatial.quaternion import conjugate, rotation
from tests import oracles
from tests.closeness import assert_close
from tests.spatial.dense import array, make, random_motion, random_placement, random_rotation

TOLERANCE = 1e-14
seeds = given(st.integers(0, 2**32))


def random_rigid(rng: np.random.Generator) -> Rigid:
    """Of a body with mass m, centre c and a possible rotational inertia there."""
    m, c, points = rng.uniform(0.1, 5.0), rng.normal(size=3), rng.normal(size=(4, 3))
    central = sum(p @ p * np.eye(3) - np.outer(p, p) for p in points)
    J = central + m * (c @ c * np.eye(3) - np.outer(c, c))
    return Rigid(m, make(Vec3, m * c), make(Sym3, J[np.triu_indices(3)]))


def random_sym6(rng: np.random.Generator) -> Sym6:
    A = rng.normal(size=(6, 6))
    return sym6(A @ A.T)


def sym6(M: np.ndarray) -> Sym6:
    upper = np.triu_indices(3)
    return Sym6(make(Sym3, M[:3, :3][upper]), make(Mat3, M[:3, 3:]), make(Sym3, M[3:, 3:][upper]))


@seeds
def test_vectors_and_matrices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = make(Vec3, rng.normal(size=3)), make(Vec3, rng.normal(size=3))
    A, B = make(Mat3, rng.normal(size=9)), make(Mat3, rng.normal(size=9))
    S, T = make(Sym3, rng.normal(size=6)), make(Sym3, rng.normal(size=6))
    x, y, X, Y, P, Q = map(array, (a, b, A, B, S, T))
    for ours, right in [
        (a + b, x + y), (a - b, x - y), (-a, -x), (a * 2.5, 2.5 * x),
        (A + B, X + Y), (A - B, X - Y), (A * 2.5, 2.5 * X), (A @ a, X @ x), (A @ B, X @ Y),
        (S + T, P + Q), (S - T, P - Q), (S * 2.5, 2.5 * P), (S @ a, P @ x),
        (transpose(A), X.T), (turn_back(A, a), X.T @ x), (cross(a, b), np.cross(x, y)), (skew(a) @ b, np.cross(x, y)),
        (rotate_sym(A, S), X @ P @ X.T),
    ]:  # fmt: skip
        assert_close(array(ours), right, TOLERANCE, scale=10.0)
    assert dot(a, b) == pytest.approx(x @ y, abs=1e-14)


@seeds
def test_quaternions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = random_rotation(rng), random_rotation(rng)
    p, q = Rotation.from_quat(array(a)), Rotation.from_quat(array(b))
    assert_close(array(rotation(a)), p.as_matrix(), TOLERANCE)
    assert_close(array(rotation(a * b)), (p * q).as_matrix(), TOLERANCE)
    assert_close(array(rotation(conjugate(a))), p.as_matrix().T, TOLERANCE)
    assert_close(array(a * conjugate(a)), [0.0, 0.0, 0.0, 1.0], TOLERANCE)
    assert isinstance(a * b, Quat)


@seeds
def test_actions_are_the_adjoint(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, m, f = random_placement(rng), random_motion(rng), make(Force, rng.normal(size=6))
    A = oracles.Ad(array(X))
    back = np.linalg.inv(A)
    assert_close(array(act(X, m)), A @ array(m), TOLERANCE)
    assert_close(array(act_inv(X, m)), back @ array(m), 1e-13)
    assert_close(array(act_force(X, f)), back.T @ array(f), 1e-13)
    assert_close(array(act_force_inv(X, f)), A.T @ array(f), TOLERANCE)
    assert isinstance(act(X, m), Motion) and isinstance(act_force(X, f), Force)


@seeds
def test_actions_are_a_group(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, Y, m, f = random_placement(rng), random_placement(rng), random_motion(rng), make(Force, rng.normal(size=6))
    x = make(Vec3, rng.normal(size=3))
    assert_close(array(X @ Y), array(X) @ array(Y), TOLERANCE)
    assert_close(array((X @ Y) @ x), array(X @ (Y @ x)), TOLERANCE)
    assert_close(array(X @ inverse(X)), np.eye(4), TOLERANCE)
    assert_close(array(act(X @ Y, m)), array(act(X, act(Y, m))), TOLERANCE)
    assert_close(array(act_force(X @ Y, f)), array(act_force(X, act_force(Y, f))), TOLERANCE)
    assert_close(array(act_inv(X, act(X, m))), array(m), 1e-13)
    assert_close(array(act_force_inv(X, act_force(X, f))), array(f), 1e-13)
    assert_close(array(act(inverse(X), m)), array(act_inv(X, m)), 1e-13)


@seeds
def test_power_does_not_depend_on_the_frame(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, m, f = random_placement(rng), random_motion(rng), make(Force, rng.normal(size=6))
    assert power(m, f) == pytest.approx(array(m) @ array(f), abs=1e-14)
    assert power(act(X, m), act_force(X, f)) == pytest.approx(power(m, f), abs=1e-12)


@seeds
def test_cross_products(seed: int) -> None:
    rng = np.random.default_rng(seed)
    u, v, w = (random_motion(rng) for _ in range(3))
    X, f = random_placement(rng), make(Force, rng.normal(size=6))
    assert_close(array(cross_motion(u, v)), oracles.ad(array(u)) @ array(v), TOLERANCE)
    assert_close(array(cross_force(u, f)), -oracles.ad(array(u)).T @ array(f), TOLERANCE)
    assert_close(array(cross_motion(u, v)), -array(cross_motion(v, u)), TOLERANCE)
    jacobi = (
        cross_motion(u, cross_motion(v, w)) + cross_motion(v, cross_motion(w, u)) + cross_motion(w, cross_motion(u, v))
    )
    assert_close(array(jacobi), np.zeros(6), 1e-13, scale=10.0)
    assert power(cross_motion(u, v), f) == pytest.approx(-power(v, cross_force(u, f)), abs=1e-12)
    assert_close(array(act(X, cross_motion(u, v))), array(cross_motion(act(X, u), act(X, v))), 1e-12, scale=10.0)


@seeds
def test_inertia_forms_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    I, K, v, S = random_rigid(rng), random_rigid(rng), random_motion(rng), random_sym6(rng)
    dense = array(I)
    assert np.allclose(dense, dense.T) and np.linalg.eigvalsh(dense).min() > 0.0
    assert_close(array(I @ v), dense @ array(v), TOLERANCE)
    assert_close(array(as_sym6(I, 0.0)), dense, TOLERANCE)
    assert_close(array(as_sym6(I, 0.0) @ v), dense @ array(v), TOLERANCE)
    assert_close(array(S @ v), array(S) @ array(v), TOLERANCE)
    assert_close(array(I + K), dense + array(K), TOLERANCE)
    assert_close(array(S + as_sym6(I, 0.0)), array(S) + dense, TOLERANCE)
    assert_close(array(add_rigid(S, I)), array(S) + dense, TOLERANCE)
    assert isinstance(I @ v, Force) and isinstance(S @ v, Force)


@seeds
def test_force_that_moves_a_body(seed: int) -> None:
    """I a + v x* I v; of a still body I a; and what is left of accelerations of a frame that is seen to stand still."""
    rng = np.random.default_rng(seed)
    I, v, a, u = random_rigid(rng), random_motion(rng), random_motion(rng), random_motion(rng)
    dense, none = array(I), make(Motion, np.zeros(6))
    right = dense @ array(a) - oracles.ad(array(v)).T @ dense @ array(v)
    assert isinstance(force_of(I, v, a), Force)
    assert_close(array(force_of(I, v, a)), right, 1e-13)
    assert_close(array(force_of(I, v, none)), array(cross_force(v, I @ v)), 1e-13)
    assert_close(array(force_of(I, none, a)), array(I @ a), TOLERANCE)
    assert power(v, force_of(I, v, none)) == pytest.approx(0.0, abs=1e-11 * abs(right).max())
    # what is of first order in changes u of v: half of what u and -u make
    slope = (array(force_of(I, v + u, a)) - array(force_of(I, v - u, a))) / 2.0
    assert_close(array(force_along(I, v, u, none)), slope, 1e-13)
    assert_close(array(force_along(I, v, none, a)), array(I @ a), TOLERANCE)


def as_solid(I: Rigid) -> Solid:
    """A rigid inertia by its centre of mass and the inertia there."""
    com = array(I.h) / I.m
    return solid(I.m, com, array(I.J) - I.m * (com @ com * np.eye(3) - np.outer(com, com)))


@seeds
def test_inertia_seen_from_another_frame(seed: int) -> None:
    """X^* I X^-1 in all forms; the kinetic energy stays the same."""
    rng = np.random.default_rng(seed)
    I, S, v, X = random_rigid(rng), random_sym6(rng), random_motion(rng), random_placement(rng)
    A = np.linalg.inv(oracles.Ad(array(X)))
    assert_close(array(act_solid(X, as_solid(I))), A.T @ array(I) @ A, 1e-13)
    assert_close(array(act_sym6(X, as_sym6(I, 0.0))), A.T @ array(I) @ A, 1e-13)
    assert_close(array(act_sym6(X, S)), A.T @ array(S) @ A, 1e-13)
    moved = act(X, v)
    assert power(moved, act_solid(X, as_solid(I)) @ moved) == pytest.approx(power(v, I @ v), rel=1e-11)


@seeds
def test_elimination_of_an_axis(seed: int) -> None:
    """I - u u^T / d has no inertia along the axis, and is what is left of a body that moves freely along it."""
    rng = np.random.default_rng(seed)
    S = random_sym6(rng)
    for axis in range(6):
        u = column(S, axis)
        assert_close(array(u), array(S)[:, axis], TOLERANCE)
        inverse_pivot = 1.0 / float(array(u)[axis])
        rest = array(without(S, u, u * inverse_pivot))
        assert_close(rest, array(S) - np.outer(array(u), array(u)) * inverse_pivot, 1e-13)
        assert_close(rest[axis], np.zeros(6), 1e-13, scale=float(np.abs(array(S)).max()))


@seeds
def test_nothing_along_an_axis(seed: int) -> None:
    """Row and column are exactly 0, all else is untouched."""
    S = random_sym6(np.random.default_rng(seed))
    for axis in range(6):
        right = array(S)
        right[axis], right[:, axis] = 0.0, 0.0
        assert np.array_equal(array(without_axis(S, axis)), right)


def test_placement_of_points() -> None:
    """x_parent = R x_child + p, by hand: a quarter turn about z, and a step along x."""
    quarter = Quat(0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))
    X = SE3(rotation(quarter), Vec3(1.0, 0.0, 0.0))
    assert_close(array(X @ Vec3(1.0, 0.0, 0.0)), [1.0, 1.0, 0.0], 1e-15)
    # turning about the child's origin moves the parent's point there
    assert_close(
        array(act(X, Motion(Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 1.0)))), [0.0, -1.0, 0.0, 0.0, 0.0, 1.0], 1e-15
    )
    # a force along y at the child has a moment about the parent
    assert_close(
        array(act_force(X, Force(Vec3(1.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0)))), [0.0, 1.0, 0.0, 0.0, 0.0, 1.0], 1e-15
    )
