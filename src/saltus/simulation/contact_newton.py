"""The contact problem by a proximal point method, each of whose problems is solved by a semismooth Newton method.

    x = P(x - r u),      u = G x + g + alpha D (x - home)                      D: typical entries of the diagonal of G

Contacts that are more than needed make G singular, and sliding ones spoil its symmetry: far from the solution Newton's steps
may then lead anywhere. With enough of alpha they do not. A problem that is solved gives the next one its `home` and a
tenth of its alpha, which ends at what keeps the matrix from being singular; one that is not gives it more. Mostly the
first one is solved, in as many steps as it takes to find which contacts stick, slide and are open. Steps are
shortened until what the map leaves (`judge`) has become less.

    (1 - Q + Q r (G + alpha D)) dx = P(tau) - x,      tau = x - r u,      r = 1 / ((1 + alpha) D)

| code | what | shape |
|---|---|---|
| `delassus`, `free` | G and g: rates of the rows by impulses, and without any | n n, n |
| `impulse`, `rate` | x and G x + g | n |
| `step`, `change` | dx and G dx | n |
| `home`, `home_rate` | where the proximal point method stands, and G x + g there | n |
| `scale` | D, the same for the three rows of a contact | n |
| `system` | the matrix, then its factors | n n |

O(n^3) a step. No pivots are looked for: where contacts stick the matrix is one of inertias, and a sliding contact's
normal row comes before its tangents.

Reference: V. Acary, M. Bremond, O. Huber, On solving contact problems with Coulomb friction: formulations and numerical
comparisons (2018), sections 4 and 5.
"""

from __future__ import annotations

from saltus.kernel import kernel, largest, ld, less, lift, maximum, minimum, select, some, st, zero
from saltus.simulation.contact_law import is_within, project, slope, within
from saltus.spatial.algebra import Vec3

TRIED_AGAIN = 1e-4
"""The least alpha after a failure."""

MORE, LESS = 30.0, 0.1
"""By how much alpha changes."""

PATIENCE = 12.0
"""Newton's steps for one problem."""

SHORTEST = 5
"""So often a step is halved."""

ENOUGH = 0.02
"""The share of what was left by which a step has to make it less."""


@kernel
def respond(w, n, x, y):
    """y = G x, three rows at a time, where there are three."""
    G = w.delassus
    for i in range(n // 3):
        a = b = c = zero(G)
        for j in range(n):
            entry, k = ld(x, j), 3 * i * n + j
            a, b, c = a + ld(G, k) * entry, b + ld(G, k + n) * entry, c + ld(G, k + n + n) * entry
        y[3 * i], y[3 * i + 1], y[3 * i + 2] = a, b, c
    for i in range(3 * (n // 3), n):
        total = zero(G)
        for j in range(n):
            total = total + ld(G, i * n + j) * ld(x, j)
        y[i] = total


@kernel
def three(x, i):
    return Vec3(ld(x, i), ld(x, i + 1), ld(x, i + 2))


@kernel
def set_three(x, i, value):
    x[i], x[i + 1], x[i + 2] = value.x, value.y, value.z


@kernel
def begin(w, first, n):
    """Scales, and rates under the impulses at hand."""
    most = zero(w.delassus)
    for i in range(n):
        most = maximum(most, ld(w.delassus, i * n + i))
    least = most * 1e-12 + 1e-30  # of rows that nothing moves
    for i in range(first):
        scale = maximum(ld(w.delassus, i * n + i), least)
        w.scale[i], w.inverse[i] = scale, 1.0 / scale
    for i in range(first, n, 3):
        trace = ld(w.delassus, i * n + i) + ld(w.delassus, (i + 1) * n + i + 1) + ld(w.delassus, (i + 2) * n + i + 2)
        scale = maximum(trace * (1.0 / 3.0), least)
        set_three(w.scale, i, Vec3(scale, scale, scale))
        w.inverse[i] = 1.0 / scale
    find_rates(w, n)


@kernel
def find_rates(w, n):
    respond(w, n, w.impulse, w.rate)
    for i in range(n):
        w.rate[i] = w.rate[i] + w.free[i]


@kernel
def judge(w, first, n, law, t, alpha):
    """Of x + t dx: the sum of squares of what the map leaves, as velocities, and the largest entry."""
    squares = worst = zero(w.delassus)
    less_steep = 1.0 / (1.0 + alpha)
    for i in range(first):
        x, pull = w.impulse[i] + t * w.step[i], alpha * w.scale[i]
        u = w.rate[i] + t * w.change[i] + pull * (x - w.home[i])
        tau = x - u * (w.inverse[i] * less_steep)
        left = (x - within(tau, w.lower[i], w.upper[i])) * w.scale[i]
        squares, worst = squares + left * left, largest(worst, left)
    for i in range(first, n, 3):
        x, pull = three(w.impulse, i) + three(w.step, i) * t, alpha * w.scale[i]
        u = three(w.rate, i) + three(w.change, i) * t + (x - three(w.home, i)) * pull
        tau = x - u * (w.inverse[i] * less_steep)
        left = (x - project(law, w.friction[i], tau)) * w.scale[i]
        squares = squares + left.x * left.x + left.y * left.y + left.z * left.z
        worst = largest(largest(largest(worst, left.x), left.y), left.z)
    return squares, worst


@kernel
def assemble(w, first, n, law, alpha):
    """The system of a step, and its right side in `step`."""
    G, A, less_steep = w.delassus, w.system, 1.0 / (1.0 + alpha)
    for i in range(first):
        x, r = w.impulse[i], w.inverse[i] * less_steep
        tau = x - (w.rate[i] + alpha * w.scale[i] * (x - w.home[i])) * r
        moves = is_within(tau, w.lower[i], w.upper[i])
        for j in range(n):
            st(A, i * n + j, moves * r * ld(G, i * n + j))
        st(A, i * n + i, ld(A, i * n + i) + moves * alpha * less_steep + (1.0 - moves))
        w.step[i] = within(tau, w.lower[i], w.upper[i]) - x
    for i in range(first, n, 3):
        x, r, mu = three(w.impulse, i), w.inverse[i] * less_steep, w.friction[i]
        tau = x - (three(w.rate, i) + (x - three(w.home, i)) * (alpha * w.scale[i])) * r
        Q = slope(law, mu, tau)
        R = Q * r
        for j in range(n):
            k = i * n + j
            column = R @ Vec3(ld(G, k), ld(G, k + n), ld(G, k + n + n))
            st(A, k, column.x)
            st(A, k + n, column.y)
            st(A, k + n + n, column.z)
        add_block(A, i * n + i, n, Q, alpha * less_steep - 1.0)
        set_three(w.step, i, project(law, mu, tau) - x)


@kernel
def add_block(A, k, n, Q, factor):
    """1 + factor Q onto a block of the diagonal."""
    st(A, k, ld(A, k) + factor * Q.xx + 1.0)
    st(A, k + 1, ld(A, k + 1) + factor * Q.xy)
    st(A, k + 2, ld(A, k + 2) + factor * Q.xz)
    k = k + n
    st(A, k, ld(A, k) + factor * Q.yx)
    st(A, k + 1, ld(A, k + 1) + factor * Q.yy + 1.0)
    st(A, k + 2, ld(A, k + 2) + factor * Q.yz)
    k = k + n
    st(A, k, ld(A, k) + factor * Q.zx)
    st(A, k + 1, ld(A, k + 1) + factor * Q.zy)
    st(A, k + 2, ld(A, k + 2) + factor * Q.zz + 1.0)


@kernel
def eliminate(A, n, x):
    """x = A^-1 x by Gauss; A is lost."""
    for k in range(n):
        inverse, pivot = 1.0 / ld(A, k * n + k), ld(x, k)
        st(A, k * n + k, inverse)
        for i in range(k + 1, n):
            ratio = ld(A, i * n + k) * inverse
            for j in range(k + 1, n):
                st(A, i * n + j, ld(A, i * n + j) - ratio * ld(A, k * n + j))
            x[i] = ld(x, i) - ratio * pivot
    for i in range(n - 1, -1, -1):
        total = ld(x, i)
        for j in range(i + 1, n):
            total = total - ld(A, i * n + j) * ld(x, j)
        x[i] = total * ld(A, i * n + i)


@kernel
def shorten(w, first, n, law, alpha, squares):
    """How much of the step is taken, per lane, and whether that leaves less."""
    one, o = lift(1.0, squares), lift(0.0, squares)
    t, best, least, looking = one, o, lift(1e300, squares), one
    for _ in range(SHORTEST + 1):
        found, _ = judge(w, first, n, law, t, alpha)
        better = less(found, least)
        best, least = select(better, t, best), select(better, found, least)
        looking = select(less(found, squares * (1.0 - ENOUGH * t)), o, looking)
        if not some(less(0.5, looking)):
            break
        t = select(less(0.5, looking), 0.5 * t, t)
    return best, less(least, squares * (1.0 - 1e-6))


@kernel
def newton(w, first, n, law, tolerance, least, most, going):
    """From `impulse` on, where a lane is `going` (1 or 0): as many steps as it takes, at most `most`. Returns how many, and
    what the map leaves. `least`: the alpha to begin with."""
    o, one = zero(w.delassus), lift(1.0, zero(w.delassus))
    alpha, tries, count, left = least + o, o, o, o
    for i in range(n):
        w.home[i], w.home_rate[i] = w.impulse[i], w.rate[i]
    for _ in range(most):
        for i in range(n):
            w.step[i], w.change[i] = o, o
        _, worst = judge(w, first, n, law, o, o)
        left = select(less(0.5, going), worst, left)
        going = select(less(tolerance, worst), going, o)
        if not some(less(0.5, going)):
            break
        squares, _ = judge(w, first, n, law, o, alpha)
        assemble(w, first, n, law, alpha)
        eliminate(w.system, n, w.step)
        respond(w, n, w.step, w.change)
        t, better = shorten(w, first, n, law, alpha, squares)
        taken = less(o, select(better, t, o) * going)
        for i in range(n):  # a step that is not taken may be NaN
            x, u = w.impulse[i], w.rate[i]
            w.impulse[i], w.rate[i] = select(taken, x + t * w.step[i], x), select(taken, u + t * w.change[i], u)
        count, tries = count + going, tries + going
        for i in range(n):
            w.step[i], w.change[i] = o, o
        _, inner = judge(w, first, n, law, o, alpha)
        # The problem is solved, or given up.
        solved = select(less(inner, 0.1 * tolerance), going, o)
        lost = select(better, select(less(PATIENCE, tries), going, o), going) * (1.0 - solved)
        if some(less(0.5, solved + lost)):
            move_home(w, n, solved, lost)
        tries = select(less(0.5, solved + lost), o, tries)
        alpha = select(less(0.5, solved), maximum(alpha * LESS, least + o), alpha)
        alpha = select(less(0.5, lost), minimum(maximum(alpha * MORE, lift(TRIED_AGAIN, o)), 100.0 * one), alpha)
    return count, left


@kernel
def move_home(w, n, solved, lost):
    """Home to where the iteration stands, or the iteration back home."""
    for i in range(n):
        x, u, home, rate = w.impulse[i], w.rate[i], w.home[i], w.home_rate[i]
        w.home[i], w.home_rate[i] = select(less(0.5, solved), x, home), select(less(0.5, solved), u, rate)
        w.impulse[i], w.rate[i] = select(less(0.5, lost), home, x), select(less(0.5, lost), rate, u)
