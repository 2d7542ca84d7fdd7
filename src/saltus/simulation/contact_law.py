"""What impulses of contacts may be, and the map whose zeros solve the contact problem.

    x = P(x - r u),      u = G x + g

A row of a joint (a limit, dry friction, a loop) has an interval: P clamps. A contact has three rows, normal and two
tangents, and one of two laws, tau = (n, t) being what is projected and mu its coefficient of friction:

    Coulomb   P = (max(n, 0), t held to the disc of radius mu max(n, 0))        sliding and sticking as they are
    convex    P = the nearest point of the cone |t| <= mu n                     MuJoCo's relaxation: what slides lifts off

Zeros of the first map are those of the complementarity problem with de Saxce's correction, and it has no corner where a
sliding contact stands; those of the second minimise 1/2 x^T G x + g^T x over the cones. `project` gives P, `slope` its
derivative Q, an element of the generalised Jacobian where it has a corner.

Reference: P. Alart, A. Curnier, A mixed formulation for frictional contact problems prone to Newton like solution methods
(1991); V. Acary, M. Bremond, O. Huber, On solving contact problems with Coulomb friction (2018), section 4.
"""

from __future__ import annotations

from saltus.kernel import kernel, less, lift, maximum, minimum, select, sqrt
from saltus.spatial.algebra import Mat3, Vec3

COULOMB, CONVEX = 0, 1
"""Laws of contact."""

NOTHING = 1e-30
"""Beside a length, lest it be divided by zero."""


@kernel
def within(x, lower, upper):
    """The nearest number of an interval."""
    return minimum(maximum(x, lower), upper)


@kernel
def is_within(x, lower, upper):
    """1 if a number lies inside the interval, where it may move, else 0."""
    o, one = lift(0.0, x), lift(1.0, x)
    return select(less(lower, x), select(less(x, upper), one, o), o)


@kernel
def project(law, mu, x):
    """P of a contact."""
    length = sqrt(x.y * x.y + x.z * x.z)
    if law == COULOMB:
        normal = maximum(x.x, lift(0.0, x.x))
        share = minimum(mu * normal / (length + NOTHING), lift(1.0, length))
        return Vec3(normal, x.y * share, x.z * share)
    normal = maximum((x.x + mu * length) / (1.0 + mu * mu), lift(0.0, length))
    share = mu * normal / (length + NOTHING)
    inside = less(mu * x.x, length)
    return Vec3(
        select(less(length, mu * x.x), x.x, normal),
        select(inside, x.y * share, x.y),
        select(inside, x.z * share, x.z),
    )


@kernel
def slope(law, mu, x):
    """Q of a contact."""
    o, one = lift(0.0, x.x), lift(1.0, x.x)
    length = sqrt(x.y * x.y + x.z * x.z)
    y, z = x.y / (length + NOTHING), x.z / (length + NOTHING)
    if law == COULOMB:
        pushes = select(less(o, x.x), one, o)
        sticks = select(less(length, mu * x.x), one, o)  # and pushes
        slides = pushes - sticks
        turn = slides * mu * x.x / (length + NOTHING)
        along, yy, yz, zz = slides * mu, turn * z * z + sticks, -turn * y * z, turn * y * y + sticks
        return Mat3(pushes, o, o, along * y, yy, yz, along * z, yz, zz)
    sticks = select(less(length, mu * x.x), one, o)
    slides = select(less(o, x.x + mu * length), one - sticks, o)
    share = slides / (1.0 + mu * mu)
    normal = x.x + mu * length
    turn, along = share * mu * normal / (length + NOTHING), share * mu
    across = along * mu
    yy, yz, zz = across * y * y + turn * z * z, (across - turn) * y * z, across * z * z + turn * y * y
    return Mat3(
        share + sticks, along * y, along * z,
        along * y, yy + sticks, yz,
        along * z, yz, zz + sticks,
    )  # fmt: skip
