"""Exponential and logarithm of SO(3), SE(3) and SE(2), and their Jacobians; safe at angle zero and near pi.

Rotations are unit quaternions. A tangent vector of SE(3) is a Motion in the local frame, exp(m) the placement reached
after one unit of time at the constant local velocity m; of SE(2), (vx, vy, w) in the local frame.

    exp(w) = cos(t / 2) + w sin(t / 2) / t,   t = |w|                       rotation, as a quaternion
    exp(v, w) = (exp(w), V(w) v),   V(w) = 1 + a w x + b (w x)^2,   a = (1 - cos t) / t^2,   b = (t - sin t) / t^3

The right Jacobian J satisfies exp(m + d) = exp(m) exp(J(m) d) to first order. Functions of the angle are written in t^2,
with a Taylor series where the closed form cancels.

References: J. Sola et al., A micro Lie theory for state estimation in robotics (2018); T. Barfoot, State Estimation for
Robotics (2017), 7.83 to 7.95, for the Jacobian of SE(3).
"""

from __future__ import annotations

from typing import NamedTuple

from saltus.kernel import Scalar, atan2, kernel, less, lift, select, sincos, sqrt
from saltus.spatial.algebra import Mat3, Motion, Quat, Vec2, Vec3, cross, dot, skew

TINY = 1e-300
"""Keeps a square root away from zero, where its slope is infinite; far below what a series needs."""


class Mat6(NamedTuple):
    """A 6x6 matrix in blocks, linear part first: [[A, B], [C, D]]."""

    A: Mat3
    B: Mat3
    C: Mat3
    D: Mat3


class Angular(NamedTuple):
    """Functions of an angle t: sin t / t, (1 - cos t) / t^2, (t - sin t) / t^3; and of its half h: sin h / h, cos h."""

    sinc: Scalar
    a: Scalar
    b: Scalar
    half_sinc: Scalar
    half_cosine: Scalar


@kernel
def angular(square):
    """The functions of an angle, from its square: all of one sine and cosine, those of the half. Series up to t = 1, where
    the closed forms have lost a digit."""
    near, t, z = less(square, 1.0), sqrt(square + TINY), 0.25 * square
    s, c = sincos(0.5 * t)
    half = 1.0 - z * (1.0 / 6.0 - z * (1.0 / 120.0 - z * (1.0 / 5040.0 - z * (1.0 / 362880.0 - z * (1.0 / 39916800.0 - z * (
        1.0 / 6227020800.0 - z * (1.0 / 1307674368000.0)))))))  # fmt: skip
    half = select(near, half, 2.0 * s / t)
    sinc = half * c
    b = 1.0 / 6.0 - square * (1.0 / 120.0 - square * (1.0 / 5040.0 - square * (1.0 / 362880.0 - square * (
        1.0 / 39916800.0 - square * (1.0 / 6227020800.0 - square * (1.0 / 1307674368000.0 - square * (
        1.0 / 355687428096000.0)))))))  # fmt: skip
    return Angular(sinc, 0.5 * half * half, select(near, b, (1.0 - sinc) / (t * t)), half, c)


@kernel
def cotangent_term(square):
    """c(t) = 1 / t^2 - (1 + cos t) / (2 t sin t): the factor of (w x)^2 in the inverse of V. At pi it is 1 / pi^2."""
    h = 0.5 * sqrt(square + TINY)
    s, c = sincos(h)
    return from_half(square, h * c / s)


@kernel
def from_half(t2, ratio):
    """The same, if h cot h of the half h of the angle is at hand."""
    series = 1.0 / 12.0 + t2 * (1.0 / 720.0 + t2 * (1.0 / 30240.0 + t2 * (1.0 / 1209600.0 + t2 * (1.0 / 47900160.0 + t2 * (
        691.0 / 1307674368000.0 + t2 * (1.0 / 74724249600.0 + t2 * (3617.0 / 10670622842880000.0
        + t2 * (43867.0 / 5109094217170944000.0 + t2 * (174611.0 / 8.028576626982912e20
        + t2 * (854513.0 / 1.5511210043330986e23))))))))))  # fmt: skip
    return select(less(t2, 1.0), series, (1.0 - ratio) / (t2 + TINY))


@kernel
def exp_quaternion(w):
    """The unit quaternion of a rotation vector."""
    f = angular(dot(w, w))
    k = 0.5 * f.half_sinc
    return Quat(w.x * k, w.y * k, w.z * k, f.half_cosine)


@kernel
def log_quaternion(a):
    """The rotation vector, of length at most pi, of a unit quaternion."""
    w, _ = log_and_ratio(a)
    return w


@kernel
def log_and_ratio(a):
    """The rotation vector of a unit quaternion, and h cot h of its half length h, if that is not small."""
    sign = select(less(a.w, 0.0), a.w * 0.0 - 1.0, a.w * 0.0 + 1.0)
    w, v = a.w * sign, Vec3(a.x * sign, a.y * sign, a.z * sign)
    square = dot(v, v)
    near = less(square, 1e-4)
    sine = sqrt(select(near, square * 0.0 + 1.0, square))
    far = atan2(sine, w) / sine
    secant = 1.0 / select(near, w, w * 0.0 + 1.0)
    r = square * (secant * secant)
    series = secant * (1.0 - r * (1.0 / 3.0 - r * (0.2 - r * (1.0 / 7.0 - r * (1.0 / 9.0 - r * (1.0 / 11.0))))))
    return v * (2.0 * select(near, series, far)), w * far


@kernel
def left_jacobian(w):
    """V(w) = 1 + a w x + b (w x)^2, which is also the left Jacobian of SO(3)."""
    f = angular(dot(w, w))
    W = skew(w)
    return identity_plus(W * f.a + (W @ W) * f.b)


@kernel
def right_jacobian(w):
    """The right Jacobian of SO(3): V(-w)."""
    return left_jacobian(-w)


@kernel
def left_jacobian_inverse(w):
    """V(w)^-1 = 1 - w x / 2 + c (w x)^2"""
    W = skew(w)
    return identity_plus(W * -0.5 + (W @ W) * cotangent_term(dot(w, w)))


@kernel
def right_jacobian_inverse(w):
    return left_jacobian_inverse(-w)


@kernel
def identity_plus(A):
    return Mat3(1.0 + A.xx, A.xy, A.xz, A.yx, 1.0 + A.yy, A.yz, A.zx, A.zy, 1.0 + A.zz)


@kernel
def exp_translation(m):
    """The translation of exp(m): V(w) v, without forming V."""
    f = angular(dot(m.ang, m.ang))
    c = cross(m.ang, m.lin)
    return m.lin + c * f.a + cross(m.ang, c) * f.b


@kernel
def log_pose(a, p):
    """The motion whose exponential is the rotation a (a unit quaternion) and the translation p."""
    w, ratio = log_and_ratio(a)
    c = cross(w, p)
    return Motion(p - c * 0.5 + cross(w, c) * from_half(dot(w, w), ratio), w)


@kernel
def log6(X):
    """The motion that takes the parent's frame to the placement X in unit time, for turns of less than half a circle."""
    R, p = X.R, X.p
    sine = Vec3(0.5 * (R.zy - R.yz), 0.5 * (R.xz - R.zx), 0.5 * (R.yx - R.xy))
    square = dot(sine, sine)
    small = less(square, 1e-10)
    size = sqrt(select(small, lift(1.0, square), square))
    ratio = select(small, 1.0 + square * (1.0 / 6.0), atan2(size, 0.5 * (R.xx + R.yy + R.zz - 1.0)) / size)
    angle = sine * ratio
    return Motion(left_jacobian_inverse(angle) @ p, angle)


@kernel
def coupling(v, w):
    """Q(v, w), the upper right block of the left Jacobian of SE(3) (Barfoot 7.86)."""
    f = angular(dot(w, w))
    P, W = skew(v), skew(w)
    d, e = coupling_terms(dot(w, w))
    WP, PW = W @ P, P @ W
    WPW = WP @ W
    return P * 0.5 + (WP + PW + WPW) * f.b + (W @ WP + PW @ W - WPW * 3.0) * d + (WPW @ W + W @ WPW) * e


@kernel
def coupling_terms(square):
    """(t^2 / 2 + cos t - 1) / t^4 and half of ((t^2 / 2 + cos t - 1) / t^4 - 3 (sin t - t + t^3 / 6) / t^5)."""
    near = less(square, 1.0)
    t2 = select(near, square, square * 0.0)
    far = select(near, square * 0.0 + 1.0, square)
    t = sqrt(far)
    s, c = sincos(t)
    d_series = (1.0 - t2 / 30.0 * (1.0 - t2 / 56.0 * (1.0 - t2 / 90.0 * (1.0 - t2 / 132.0 * (1.0 - t2 / 182.0 * (
        1.0 - t2 / 240.0)))))) / 24.0  # fmt: skip
    g_series = (1.0 - t2 / 42.0 * (1.0 - t2 / 72.0 * (1.0 - t2 / 110.0 * (1.0 - t2 / 156.0 * (1.0 - t2 / 210.0 * (
        1.0 - t2 / 272.0)))))) / 120.0  # fmt: skip
    d = select(near, d_series, (0.5 * far + c - 1.0) / (far * far))
    g = select(near, g_series, (s - t + far * t / 6.0) / (far * far * t))
    return d, 0.5 * (d - 3.0 * g)


@kernel
def right_jacobian_se3(m):
    """The right Jacobian of SE(3): the left one at -m."""
    J = right_jacobian(m.ang)
    return Mat6(J, coupling(-m.lin, -m.ang), J * 0.0, J)


@kernel
def right_jacobian_inverse_se3(m):
    J = right_jacobian_inverse(m.ang)
    return Mat6(J, J @ coupling(-m.lin, -m.ang) @ J * -1.0, J * 0.0, J)


@kernel
def exp_plane(x, y, angle):
    """The pose (position, cosine and sine) reached from the identity of SE(2) at local velocity (x, y, angle)."""
    f = angular(angle * angle)
    s, c = sincos(angle)
    k = f.a * angle
    return Vec2(f.sinc * x - k * y, k * x + f.sinc * y), Vec2(c, s)


@kernel
def log_plane(p, turn):
    """The local velocity (x, y, angle) of SE(2) that reaches the position p with cosine and sine `turn`."""
    angle = atan2(turn.y, turn.x)
    k = 1.0 - angle * angle * cotangent_term(angle * angle)
    return Vec3(k * p.x + 0.5 * angle * p.y, k * p.y - 0.5 * angle * p.x, angle)


@kernel
def unit(a):
    """A quaternion of unit length, from one that is nearly so."""
    k = 1.5 - 0.5 * (a.x * a.x + a.y * a.y + a.z * a.z + a.w * a.w)
    return Quat(a.x * k, a.y * k, a.z * k, a.w * k)
