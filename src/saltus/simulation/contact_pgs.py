"""The contact problem by projected Gauss-Seidel: one row of a joint, one contact after the other, each solved exactly.

    u = G x + g at all times;      for each row or contact in turn its own problem, with all others held

A contact's own problem comes down to one number. Let a = G_nn, h = G_tn / a, and S = G_tt - h G_nt what is left of its
tangents while it stays closed. It is open if its normal rate without impulse, q_n, is not negative. Else it slides with
u_t = -s x_t for some s >= 0, or sticks, s = 0:

    x_t(s) = -(S + s)^-1 (q_t - h q_n),      x_n(s) = -q_n / a - h . x_t(s),      |x_t| = mu x_n  (<= if s = 0)

There always is one: |x_t| - mu x_n is negative for large s, and if it is not for s = 0 changes its sign between: found by
the Illinois rule, in a share from 0 to 1 that stands for s, of which it is almost a linear function. Each sweep costs
O(n^2), and no matrix is factored; where masses differ much, or contacts stand on each other, very many are needed.

Reference: J. Moreau, Numerical aspects of the sweeping process (1999); F. Bertails-Descoubes, F. Cadoux, G. Daviet,
V. Acary, A nonsmooth Newton solver for capturing exact Coulomb friction in fiber assemblies (2011), section 4.
"""

from __future__ import annotations

from saltus.kernel import kernel, ld, less, lift, maximum, select, some, sqrt, zero
from saltus.simulation.contact_law import COULOMB, NOTHING, project, within
from saltus.simulation.contact_newton import find_rates, judge, put_inside
from saltus.simulation.contact_system import three
from saltus.spatial.algebra import Vec3

ROOT_STEPS = 14
"""Steps of the Illinois rule: it gains half as many digits again in each."""

SHARE = 0.5
"""Of 1 / D, for a step of the convex law: entries of D are a third of what a contact's block may have."""

SINGULAR = 1e-12
"""The share of its inertia by which a contact's tangents always move."""


@kernel
def gauss_seidel(w, first, n, law, tolerance, most):
    """Sweeps from `impulse` on, at most so many; how many there were."""
    o, one = zero(w.delassus), lift(1.0, zero(w.delassus))
    count, going = o, one
    for i in range(n):
        w.home[i] = o
    put_inside(w, first, n, law, one)
    for _ in range(most):
        _, left = judge(w, first, n, law, None, o)
        going = select(less(tolerance * tolerance, left), going, o)
        if not some(less(0.5, going)):
            break
        count = count + going
        for i in range(first):
            x = w.impulse[i]
            move(w, n, i, (within(x - w.rate[i] * w.inverse[i], w.lower[i], w.upper[i]) - x) * going)
        for i in range(first, n, 3):
            x, u = three(w.impulse, i), three(w.rate, i)
            if law == COULOMB:
                step = alone(w, n, i, x, u) - x
            else:
                step = project(law, w.friction[i], x - u * (SHARE * w.inverse[i])) - x
            move(w, n, i, step.x * going)
            move(w, n, i + 1, step.y * going)
            move(w, n, i + 2, step.z * going)
    find_rates(w, n)
    return count


@kernel
def move(w, n, i, step):
    w.impulse[i] = w.impulse[i] + step
    for j in range(n):
        w.rate[j] = w.rate[j] + ld(w.delassus, i * n + j) * step


@kernel
def alone(w, n, i, x, u):
    """The impulse of contact i if no other changes."""
    G, mu, o, k = w.delassus, w.friction[i], zero(w.delassus), i * n + i
    a = maximum(ld(G, k), SINGULAR * w.scale[i])
    ny, nz, yy, yz, zz = ld(G, k + 1), ld(G, k + 2), ld(G, k + n + 1), ld(G, k + n + 2), ld(G, k + n + n + 2)
    q = Vec3(
        u.x - (a * x.x + ny * x.y + nz * x.z),
        u.y - (ny * x.x + yy * x.y + yz * x.z),
        u.z - (nz * x.x + yz * x.y + zz * x.z),
    )
    hy, hz = ny / a, nz / a
    least = SINGULAR * w.scale[i]
    syy, syz, szz = maximum(yy - hy * ny, least) + least, yz - hy * nz, maximum(zz - hz * nz, least) + least
    by, bz, normal = q.y - hy * q.x, q.z - hz * q.x, maximum(-q.x, o) / a
    typical = 0.5 * (syy + szz)
    low, high = o, lift(1.0, o)
    y, z = slid(syy, syz, szz, typical, by, bz, low)
    at_low, at_high = sqrt(y * y + z * z) - mu * (normal - hy * y - hz * z), -mu * normal
    sticks, side = less(at_low, o), o
    yh, zh = o, o
    for _ in range(ROOT_STEPS):
        middle = low + (high - low) * within(at_low / (at_low - at_high + NOTHING), o, 1.0 + o)
        ym, zm = slid(syy, syz, szz, typical, by, bz, middle)
        at = sqrt(ym * ym + zm * zm) - mu * (normal - hy * ym - hz * zm)
        above = less(o, at)  # so the root lies beyond
        at_high = select(above, select(less(0.5, side), 0.5 * at_high, at_high), at)
        at_low = select(above, at, select(less(side, -0.5), 0.5 * at_low, at_low))
        side = select(above, 1.0 + o, -1.0 + o)
        low, high = select(above, middle, low), select(above, high, middle)
        yh, zh = select(above, yh, ym), select(above, zh, zm)
    y, z = select(sticks, y, yh), select(sticks, z, zh)
    found = maximum(normal - hy * y - hz * z, o)
    share = within(mu * found / (sqrt(y * y + z * z) + NOTHING), o, 1.0 + o)
    closes = less(q.x, o)
    return Vec3(select(closes, found, o), select(closes, y * share, o), select(closes, z * share, o))


@kernel
def slid(syy, syz, szz, typical, by, bz, share):
    """x_t = -(S + s)^-1 b for s = typical share / (1 - share)"""
    stays = 1.0 - share
    yy, yz, zz = syy * stays + typical * share, syz * stays, szz * stays + typical * share
    factor = stays / (yy * zz - yz * yz)
    return (yz * bz - zz * by) * factor, (yz * by - yy * bz) * factor
