"""Exponential and logarithm of SO(3), SE(3) and SE(2) with their Jacobians, against matrix exponentials of 50 digits, at all
angles that are special: zero, tiny, where a series takes over, near pi, beyond.
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import saltus as sl
from saltus.kernel import Dual
from saltus.spatial.algebra import Motion, Quat, Vec2, Vec3
from saltus.spatial.lie import (
    angular,
    cotangent_term,
    coupling_terms,
    exp_plane,
    exp_quaternion,
    exp_translation,
    left_jacobian,
    left_jacobian_inverse,
    log_plane,
    log_pose,
    log_quaternion,
    right_jacobian,
    right_jacobian_inverse,
    right_jacobian_inverse_se3,
    right_jacobian_se3,
    unit,
)
from saltus.spatial.quaternion import conjugate, rotation
from tests.closeness import assert_close
from tests.generators import random_state
from tests.spatial.dense import array, expm, inverse, make, phi, random_rotation, skew

PI = float(np.pi)
SHORT = [0.0, 1e-300, 1e-160, 1e-12, 1e-8, 1e-4, 0.01, 0.0199, 0.0201, 0.5, 0.999, 1.0, 1.001, 2.0, 3.0]
NEAR_PI = [PI - 1e-4, PI - 1e-9, PI - 1e-15]
BEYOND = [PI, PI + 1e-9, 4.0, 6.2, 2 * PI, 10.0]
short = pytest.mark.parametrize("angle", SHORT + NEAR_PI)
every = pytest.mark.parametrize("angle", SHORT + NEAR_PI + BEYOND)


def directions(count: int = 4) -> list[np.ndarray]:
    """Unit vectors: random ones, and an axis."""
    rng = np.random.default_rng(1)
    random = rng.normal(size=(count - 1, 3))
    return [*(random / np.linalg.norm(random, axis=1, keepdims=True)), np.array([0.0, 0.0, 1.0])]


def hat(m: np.ndarray) -> np.ndarray:
    """The 4x4 matrix of a motion."""
    return np.block([[skew(m[3:]), m[:3, None]], [np.zeros((1, 4))]])


def ad(m: np.ndarray) -> np.ndarray:
    return np.block([[skew(m[3:]), skew(m[:3])], [np.zeros((3, 3)), skew(m[3:])]])


def motions(angle: float) -> list[np.ndarray]:
    rng = np.random.default_rng(2)
    return [np.concatenate([rng.normal(size=3), angle * axis]) for axis in directions()]


# --- functions of the angle ---
def sinc(t: mpmath.mpf) -> mpmath.mpf:
    return mpmath.sin(t) / t


FUNCTIONS: dict[str, tuple[Callable[[float], float], Callable[[mpmath.mpf], mpmath.mpf], float, float]] = {
    "sinc": (lambda s: angular(s).sinc, sinc, 1.0, 1e-15),
    "a": (lambda s: angular(s).a, lambda t: (1 - mpmath.cos(t)) / t**2, 0.5, 2e-15),
    "b": (lambda s: angular(s).b, lambda t: (t - mpmath.sin(t)) / t**3, 1 / 6, 2e-15),
    "cotangent_term": (
        cotangent_term, lambda t: 1 / t**2 - (1 + mpmath.cos(t)) / (2 * t * mpmath.sin(t)), 1 / 12, 1e-14,
    ),
    "coupling d": (lambda s: coupling_terms(s)[0], lambda t: (t**2 / 2 + mpmath.cos(t) - 1) / t**4, 1 / 24, 2e-14),
    "coupling e": (
        lambda s: coupling_terms(s)[1],
        lambda t: ((t**2 / 2 + mpmath.cos(t) - 1) / t**4 - 3 * (mpmath.sin(t) - t + t**3 / 6) / t**5) / 2,
        1 / 120, 4e-14,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_the_angle(name: str) -> None:
    """Errors relative to the value at zero, over 0 < t < 3.14, dense around t = 1, where series and closed form meet."""
    ours, right, at_zero, tolerance = FUNCTIONS[name]
    assert ours(0.0) == pytest.approx(at_zero, rel=1e-15)
    t = np.concatenate(
        [10.0 ** np.linspace(-20, -1, 60), np.linspace(0.1, 3.14, 200), 1.0 + np.linspace(-1e-6, 1e-6, 21)]
    )
    with mpmath.workdps(150):
        for square in (t * t).tolist():
            expected = right(mpmath.sqrt(mpmath.mpf(square)))
            assert abs(ours(square) - expected) <= tolerance * at_zero, f"{name} at t^2 = {square}"


# --- SO(3) ---
@every
def test_exponential_of_rotations(angle: float) -> None:
    for axis in directions():
        w = angle * axis
        quaternion = exp_quaternion(make(Vec3, w))
        assert abs(np.linalg.norm(array(quaternion)) - 1.0) <= 1e-15
        assert_close(array(rotation(quaternion)), expm(skew(w)), 2e-15)


@every
def test_jacobians_of_rotations(angle: float) -> None:
    for axis in directions():
        w = angle * axis
        assert_close(array(left_jacobian(make(Vec3, w))), phi(skew(w)), 4e-15)
        assert_close(array(right_jacobian(make(Vec3, w))), phi(-skew(w)), 4e-15)


@short
def test_inverse_jacobians_of_rotations(angle: float) -> None:
    for axis in directions():
        w = angle * axis
        assert_close(array(left_jacobian_inverse(make(Vec3, w))), inverse(phi(skew(w))), 1e-14)
        assert_close(array(right_jacobian_inverse(make(Vec3, w))), inverse(phi(-skew(w))), 1e-14)


@short
def test_logarithm_of_rotations(angle: float) -> None:
    """Relative to the angle, however small: also log(exp(1e-12 n)) has all its digits."""
    for axis in directions():
        w = angle * axis
        quaternion = exp_quaternion(make(Vec3, w))
        assert_close(array(log_quaternion(quaternion)), w, 2e-15)
        opposite = make(Quat, -array(quaternion))  # the same rotation
        assert_close(array(log_quaternion(opposite)), w, 2e-15)


def test_logarithm_at_pi() -> None:
    """Two answers are right, n pi and -n pi; both lead back."""
    ball = sl.random_model(seed=1, bodies=1, kinds=["spherical"])
    for axis in directions():
        half_turn = np.array([*axis, 0.0])
        compiled = sl.difference(ball, [0.0, 0.0, 0.0, 1.0], half_turn)
        for w in (array(log_quaternion(make(Quat, half_turn))), compiled):
            assert_close(np.linalg.norm(w), PI, 1e-15)
            assert_close(np.abs(w @ axis), PI, 1e-15)


@given(st.integers(0, 2**32), st.floats(0.0, 3.14))
def test_rotations_are_a_group(seed: int, angle: float) -> None:
    rng = np.random.default_rng(seed)
    a, axis = random_rotation(rng), rng.normal(size=3)
    w = angle * axis / np.linalg.norm(axis)
    assert_close(array(exp_quaternion(log_quaternion(a))), array(a) * np.sign(a.w), 2e-15)
    assert_close(array(log_quaternion(exp_quaternion(make(Vec3, w)))), w, 4e-15, scale=max(angle, 1e-280))
    assert_close(array(conjugate(exp_quaternion(make(Vec3, w)))), array(exp_quaternion(make(Vec3, -w))), 1e-15)
    assert_close(array(unit(make(Quat, array(a) * (1.0 + 1e-7)))), array(a), 1e-13)


# --- SE(3) ---
@every
def test_exponential_of_placements(angle: float) -> None:
    for m in motions(angle):
        X, motion = expm(hat(m)), make(Motion, m)
        assert_close(array(rotation(exp_quaternion(motion.ang))), X[:3, :3], 2e-15)
        assert_close(array(exp_translation(motion)), X[:3, 3], 4e-15, scale=float(np.linalg.norm(m[:3])))


@short
def test_logarithm_of_placements(angle: float) -> None:
    for m in motions(angle):
        motion = make(Motion, m)
        log = log_pose(exp_quaternion(motion.ang), exp_translation(motion))
        assert_close(array(log.ang), m[3:], 2e-15)
        assert_close(array(log.lin), m[:3], 1e-14)


@every
def test_jacobian_of_placements(angle: float) -> None:
    for m in motions(angle):
        assert_close(array(right_jacobian_se3(make(Motion, m))), phi(-ad(m)), 1e-14)


@short
def test_inverse_jacobian_of_placements(angle: float) -> None:
    for m in motions(angle):
        assert_close(array(right_jacobian_inverse_se3(make(Motion, m))), inverse(phi(-ad(m))), 2e-14)


# --- SE(2) ---
@every
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_exponential_in_the_plane(angle: float, sign: float) -> None:
    x, y, turn = 0.7, -1.3, sign * angle
    X = expm(np.array([[0.0, -turn, x], [turn, 0.0, y], [0.0, 0.0, 0.0]]))
    p, (c, s) = exp_plane(x, y, turn)
    assert_close([*p], X[:2, 2], 4e-15, scale=1.5)
    assert_close([c, s], X[:2, 0], 2e-15)


@short
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_logarithm_in_the_plane(angle: float, sign: float) -> None:
    x, y, turn = 0.7, -1.3, sign * angle
    p, way = exp_plane(x, y, turn)
    found = log_plane(Vec2(*p), Vec2(*way))
    assert_close([found.x, found.y], [x, y], 1e-14)
    assert_close(found.z, turn, 2e-15)


# --- slopes at the special angles, by dual numbers: nothing may be infinite or NaN there ---
@every
def test_slopes_are_finite(angle: float) -> None:
    for m in motions(angle):
        slope = np.random.default_rng(3).normal(size=6)
        dual = [Dual(float(x), float(d)) for x, d in zip(m, slope, strict=True)]
        motion = Motion(Vec3(*dual[:3]), Vec3(*dual[3:]))
        X = [*exp_quaternion(motion.ang), *exp_translation(motion)]
        assert np.isfinite([x.slope for x in X]).all()
        # d exp(m) = exp(m) J_r(m) d: the local velocity of the placement is J_r(m) times the slope
        R = array(rotation(Quat(*(x.value for x in X[:4]))))
        velocity = R.T @ np.array([x.slope for x in X[4:]])
        assert_close(velocity, (array(right_jacobian_se3(make(Motion, m))) @ slope)[:3], 1e-13, scale=10.0)


@short
def test_slopes_of_the_logarithm_are_finite(angle: float) -> None:
    for m in motions(angle):
        motion = make(Motion, m)
        a, p = exp_quaternion(motion.ang), exp_translation(motion)
        slope = np.random.default_rng(4).normal(size=3)  # turned on at a local rate
        rate = array(a * Quat(*(0.5 * slope).tolist(), 0.0))
        dual = Quat(*(Dual(x, float(d)) for x, d in zip(a, rate, strict=True)))
        log = log_pose(dual, Vec3(*(Dual(x, 0.0) for x in p)))
        found = np.array([x.slope for x in log.ang])
        right = array(right_jacobian_inverse(motion.ang)) @ slope
        assert np.isfinite([x.slope for x in log.lin]).all()
        assert_close(found, right, 1e-6 if angle > 3.1 else 1e-12)


# --- the same through the compiled functions of models ---
GROUPS = ["continuous", "planar", "spherical", "free_flyer"]


@pytest.mark.parametrize("kind", GROUPS)
@pytest.mark.parametrize("samples", [None, 5])
@short
def test_steps_of_joints(kind: str, samples: int | None, angle: float) -> None:
    """difference is the inverse of integrate, at all special angles, for one sample and for packets."""
    model = sl.random_model(seed=1, bodies=1, kinds=[kind])
    s = random_state(model, 1, () if samples is None else samples)
    v = s.v.copy()
    turning = {"continuous": slice(0, 1), "planar": slice(2, 3), "spherical": slice(0, 3), "free_flyer": slice(3, 6)}[
        kind
    ]
    v[..., turning] *= angle / np.linalg.norm(v[..., turning], axis=-1, keepdims=True)
    back = sl.difference(model, s.q, sl.integrate(model, s.q, v))
    assert_close(back, v, 1e-14, scale=max(1.0, float(np.abs(v).max())))


@given(st.integers(0, 2**32), st.integers(1, 6), st.floats(0.0, 0.9))
def test_steps_along_the_manifold(seed: int, bodies: int, share: float) -> None:
    model = sl.random_model(seed, bodies)
    s = random_state(model, seed)
    v = sl.difference(model, s.q, s.q1)
    assert_close(sl.difference(model, s.q, sl.integrate(model, s.q, v)), v, 1e-12)
    assert sl.distance(model, s.q, sl.integrate(model, s.q, v)) == pytest.approx(np.linalg.norm(v), rel=1e-12)
    assert sl.distance(model, sl.integrate(model, s.q, v), s.q1) <= 1e-13 * (1.0 + np.abs(s.q).max())
    assert_close(sl.difference(model, s.q1, s.q), -v, 1e-12)  # back by the same way
    between = sl.interpolate(model, s.q, s.q1, share)
    assert sl.distance(model, s.q, between) == pytest.approx(share * np.linalg.norm(v), rel=1e-10, abs=1e-13)
    assert sl.distance(model, between, s.q1) == pytest.approx((1 - share) * np.linalg.norm(v), rel=1e-10)
    for q in (between, sl.integrate(model, s.q, v)):
        for joint in model.joints[1:]:
            part = joint.kind.unit_coordinates
            if part.stop:
                assert np.linalg.norm(q[joint.iq + part.start : joint.iq + part.stop]) == pytest.approx(1.0, abs=1e-15)


def test_many_steps_stay_on_the_manifold() -> None:
    model = sl.random_model(seed=5, bodies=4, kinds=GROUPS)
    q, v = model.neutral(), np.full(model.nv, 1e-3)
    for _ in range(20_000):
        q = sl.integrate(model, q, v)
    for joint in model.joints[1:]:
        part = joint.kind.unit_coordinates
        assert abs(np.linalg.norm(q[joint.iq + part.start : joint.iq + part.stop]) - 1.0) <= 4e-16


@given(st.integers(0, 2**32), st.integers(1, 5))
def test_jacobians_against_finite_differences(seed: int, bodies: int) -> None:
    model = sl.random_model(seed, bodies)
    s, h = random_state(model, seed), 1e-6
    steps = h * np.eye(model.nv)
    dq, dv = sl.integrate_jacobians(model, s.q, s.v)
    end = sl.integrate(model, s.q, s.v)

    def change(ahead: np.ndarray, behind: np.ndarray) -> np.ndarray:
        """Central differences, one row a direction, in the tangent at `end`."""
        return (sl.difference(model, end, ahead) - sl.difference(model, end, behind)).T / (2 * h)

    moved = [sl.integrate(model, sl.integrate(model, s.q, sign * steps), s.v) for sign in (1, -1)]
    assert_close(dq, change(*moved), 1e-7)
    assert_close(dv, change(*(sl.integrate(model, s.q, s.v + sign * steps) for sign in (1, -1))), 1e-7)
    d0, d1 = sl.difference_jacobians(model, s.q, s.q1)
    ahead, behind = (sl.difference(model, sl.integrate(model, s.q, sign * steps), s.q1) for sign in (1, -1))
    assert_close(d0, (ahead - behind).T / (2 * h), 1e-7)
    ahead, behind = (sl.difference(model, s.q, sl.integrate(model, s.q1, sign * steps)) for sign in (1, -1))
    assert_close(d1, (ahead - behind).T / (2 * h), 1e-7)
