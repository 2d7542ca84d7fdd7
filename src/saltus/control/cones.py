"""Friction cones in an interior point method, and projections on them.

    s = (mu f_z, f_x, f_y) in the second-order cone,      s_0 >= |(s_1, s_2)|

A pair of interior points s and z (of a force and of its multiplier) has one scaling W, symmetric, with W z = W^-1 s =
lambda:

    W = eta (w_0, w_1^T; w_1, I + w_1 w_1^T / (1 + w_0)),      W^-2 = eta^-2 (2 (J w)(J w)^T - J),      J = diag(1, -1, -1)

The product of the cone's algebra: u o v = (u . v, u_0 v_1 + v_0 u_1), with the identity e = (1, 0, 0).

Reference: L. Vandenberghe, The CVXOPT linear and quadratic cone program solvers (2010), sections 4 and 5; the projection:
B. Acosta, FCCQP (2024), equation 8, here right also where f_z = 0 and the tangents are not, and between limits of f_z.
"""

from __future__ import annotations

from typing import NamedTuple

from saltus.kernel import Scalar, kernel, less, lift, maximum, minimum, select, sqrt
from saltus.spatial.algebra import Mat3, Sym3, Vec3

NOTHING = 1e-30
"""Added to lengths by which is divided."""


class Scaling(NamedTuple):
    w: Vec3
    eta: Scalar


@kernel
def minkowski(x, y):
    return x.x * y.x - x.y * y.y - x.z * y.z


@kernel
def root(x, unit):
    """sqrt(x^T J x), of a point in the cone that is no nearer to its edge than rounding lets see."""
    across = sqrt(x.y * x.y + x.z * x.z)
    return sqrt(maximum(x.x - across, unit * x.x + NOTHING) * (x.x + across))


@kernel
def scaling(s, z, unit):
    a, b = root(s, unit), root(z, unit)
    inverse_a, inverse_b = 1.0 / a, 1.0 / b
    p, q = s * inverse_a, z * inverse_b
    gamma = 0.5 / sqrt(0.5 * (1.0 + p.x * q.x + p.y * q.y + p.z * q.z))
    return Scaling(Vec3((p.x + q.x) * gamma, (p.y - q.y) * gamma, (p.z - q.z) * gamma), sqrt(a * inverse_b))


@kernel
def scaled(W, x):
    """W x"""
    w = W.w
    across = w.y * x.y + w.z * x.z
    along = x.x + across / (1.0 + w.x)
    return Vec3(w.x * x.x + across, x.y + w.y * along, x.z + w.z * along) * W.eta


@kernel
def unscaled(W, x):
    """W^-1 x"""
    return scaled(Scaling(Vec3(W.w.x, -W.w.y, -W.w.z), 1.0 / W.eta), x)


@kernel
def circle(x, y):
    """x o y"""
    return Vec3(x.x * y.x + x.y * y.y + x.z * y.z, x.x * y.y + y.x * x.y, x.x * y.z + y.x * x.z)


class Inverse(NamedTuple):
    """What is divided by of a point x inside the cone: x = direction / per, direction^T J direction = 1."""

    direction: Vec3
    per: Scalar
    per_first: Scalar


@kernel
def inverted(x, unit):
    per = 1.0 / root(x, unit)
    return Inverse(x * per, per, 1.0 / (x.x + NOTHING))


@kernel
def circle_solved(x, inverse, y):
    """The u with x o u = y."""
    along = minkowski(inverse.direction, y) * inverse.per
    return Vec3(along, (y.y - along * x.y) * inverse.per_first, (y.z - along * x.z) * inverse.per_first)


@kernel
def way_out(inverse, dx):
    """1 / t, for the t at which x + t dx leaves the cone; 0 or less if it does not."""
    u, per = inverse.direction, inverse.per
    rho = minkowski(u, dx) * per
    along = (dx.x * per + rho) / (1.0 + u.x)
    y, z = dx.y * per - along * u.y, dx.z * per - along * u.z
    return sqrt(y * y + z * z) - rho


@kernel
def barrier_block(mu, W):
    """W^-2 as seen by (f_x, f_y, f_z)."""
    w, k = W.w, 1.0 / (W.eta * W.eta)
    k2, m = 2.0 * k, mu * k
    a = -2.0 * m * w.x
    return Sym3(
        k2 * w.y * w.y + k, k2 * w.y * w.z, a * w.y,
        k2 * w.z * w.z + k, a * w.z,
        mu * m * (2.0 * w.x * w.x - 1.0),
    )  # fmt: skip


@kernel
def barrier_axes(mu, W, is_open, held):
    """Axes of a force, as rows: along the cone's edge, around the cone, and across the edge, which is the one way in which
    the barrier is steep; and W^-2 along them. Where f_z is held the last is its axis, where the cone is shut all are as they
    were."""
    w, k, one = W.w, is_open / (W.eta * W.eta), lift(1.0, mu)
    around, along = sqrt(w.y * w.y + w.z * w.z), mu * w.x
    steep = around * around + along * along
    turned = less(NOTHING, around * is_open)
    x, y = select(turned, -w.y / (around + NOTHING), one), select(turned, -w.z / (around + NOTHING), one * 0.0)
    level = select(less(0.5, is_open), held, one)
    per = 1.0 / sqrt(steep + NOTHING)
    sine, cosine = around * per * (1.0 - level), select(less(0.5, level), one, along * per)
    axes = Mat3(cosine * x, cosine * y, -sine, -y, x, 0.0 * one, sine * x, sine * y, cosine)
    free = less(level, 0.5)
    block = Sym3(
        k * select(free, mu * mu * per * per, 2.0 * around * around + 1.0), 0.0 * one,
        k * select(free, (1.0 + mu * mu) * sine * cosine, 2.0 * around * along),
        k, 0.0 * one,
        k * select(free, 2.0 * steep + sine * sine - mu * mu * cosine * cosine, 2.0 * along * along - mu * mu),
    )  # fmt: skip
    return axes, block


@kernel
def projected(mu, low, high, f):
    """The force that is nearest to f = (f_x, f_y, f_z) in the cone, and with f_z between limits."""
    length = sqrt(f.x * f.x + f.y * f.y)
    edge = (f.z + mu * length) / (1.0 + mu * mu)
    z = minimum(maximum(select(less(mu * f.z, length), edge, f.z), maximum(low, lift(0.0, length))), high)
    share = minimum(mu * z / (length + NOTHING), lift(1.0, length))
    return Vec3(f.x * share, f.y * share, z)
