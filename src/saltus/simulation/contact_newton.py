"""The contact problem by a proximal point method, each of whose problems is solved by a semismooth Newton method.

    x = P((1 - a) (x - u / D) + a home),      u = G x + g                        D: typical entries of the diagonal of G

That is the contact problem, pulled towards `home` by a share a of the diagonal. Contacts that are more than needed make G
singular, and sliding ones spoil its symmetry: far from the solution Newton's steps may then lead anywhere. With enough of a
they do not. A problem that is solved gives the next one its `home` and a tenth of its a, which ends at what keeps the matrix
from being singular; one that is not gives it more. Mostly the first one is solved, in as many steps as it takes to find
which contacts stick, slide and are open. Steps are shortened until what the map leaves (`judge`) has become less.

| code | what | shape |
|---|---|---|
| `delassus`, `free` | G and g: rates of the rows by impulses, and without any | n n, n |
| `impulse`, `rate` | x and G x + g | n |
| `step`, `change` | dx and G dx | n |
| `home`, `home_rate` | where the proximal point method stands, and G x + g there | n |
| `scale`, `inverse` | D, the same for the three rows of a contact, and 1 / D | n |

A step solves one linear system (contact_system.py), O(n^3) for the n rows that hold.

Reference: V. Acary, M. Bremond, O. Huber, On solving contact problems with Coulomb friction: formulations and numerical
comparisons (2018), sections 4 and 5.
"""

from __future__ import annotations

from saltus.kernel import Quad, four, kernel, ld, less, lift, maximum, minimum, quad, select, some, sqrt, zero
from saltus.simulation.contact_law import project, within
from saltus.simulation.contact_system import assemble, eliminate, set_three, three
from saltus.spatial.algebra import Vec3

TRIED_AGAIN = 1e-2
"""The least a after a failure."""

MORE, LESS, MOST = 30.0, 0.1, 0.99
"""By how much a changes, and where it ends."""

SHORTEST = 5
"""So often a step is halved."""

ENOUGH = 0.02
"""The share of what was left by which a step has to make it less."""

NEAR = 0.1
"""The share of the tolerance at which a proximal problem is solved."""


@kernel
def respond(w, n, x, y):
    """y = G x, four rows at a time, where there are four: G is symmetric."""
    G, o = w.delassus, zero(w.delassus)
    if n < 4:
        for i in range(n):
            total = o
            for j in range(n):
                total = total + ld(G, i * n + j) * ld(x, j)
            y[i] = total
    else:
        for q in range(0, n, 4):
            i, sums = min(q, n - 4), quad(G, o, o, o, o)
            for j in range(n):
                sums = sums + ld(G, j * n + i, Quad) * ld(x, j)
            y[i], y[i + 1], y[i + 2], y[i + 3] = four(sums)


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
        inverse = 1.0 / scale
        set_three(w.scale, i, Vec3(scale, scale, scale))
        set_three(w.inverse, i, Vec3(inverse, inverse, inverse))
    find_rates(w, n)


@kernel
def find_rates(w, n):
    respond(w, n, w.impulse, w.rate)
    for i in range(n):
        w.rate[i] = w.rate[i] + w.free[i]


@kernel
def put_inside(w, first, n, law, chosen):
    """Impulses onto their intervals and cones, where a lane is chosen (1 or 0), and all rates."""
    for i in range(first):
        x = w.impulse[i]
        w.impulse[i] = select(less(0.5, chosen), within(x, w.lower[i], w.upper[i]), x)
    for i in range(first, n, 3):
        x = three(w.impulse, i)
        set_three(w.impulse, i, choose(less(0.5, chosen), project(law, w.friction[i], x), x))
    find_rates(w, n)


@kernel
def choose(condition, x, y):
    return Vec3(select(condition, x.x, y.x), select(condition, x.y, y.y), select(condition, x.z, y.z))


@kernel
def judge(w, first, n, law, t, a):
    """Of x + t dx: the sum of squares of what the map leaves, as velocities, and the square of the worst contact or row.
    None stands for t = 0."""
    squares = worst = zero(w.delassus)
    for i in range(first):
        x, u = w.impulse[i], w.rate[i]
        if t is not None:
            x, u = x + t * w.step[i], u + t * w.change[i]
        tau = x - u * w.inverse[i]
        left = (x - within(tau + a * (w.home[i] - tau), w.lower[i], w.upper[i])) * w.scale[i]
        squares, worst = squares + left * left, maximum(worst, left * left)
    for i in range(first, n, 3):
        x, u = three(w.impulse, i), three(w.rate, i)
        if t is not None:
            x, u = x + three(w.step, i) * t, u + three(w.change, i) * t
        tau = x - u * w.inverse[i]
        left = (x - project(law, w.friction[i], tau + (three(w.home, i) - tau) * a)) * w.scale[i]
        square = left.x * left.x + left.y * left.y + left.z * left.z
        squares, worst = squares + square, maximum(worst, square)
    return squares, worst


@kernel
def shorten(w, first, n, law, a, squares):
    """How much of the step is taken, per lane, what it leaves (`judge`), and whether that is less."""
    one, o = lift(1.0, squares), lift(0.0, squares)
    t, best, least, looking = one, o, lift(1e300, squares), one
    best_worst = least
    for _ in range(SHORTEST + 1):
        found, worst = judge(w, first, n, law, t, a)
        better = less(found, least)
        best, least, best_worst = (
            select(better, t, best),
            select(better, found, least),
            select(better, worst, best_worst),
        )
        looking = select(less(found, squares * (1.0 - ENOUGH * t)), o, looking)
        if not some(less(0.5, looking)):
            break
        t = select(less(0.5, looking), 0.5 * t, t)
    return best, least, best_worst, less(least, squares * (1.0 - 1e-6))


@kernel
def newton(w, first, n, law, tolerance, least, most, going):
    """From `impulse` on, where a lane is `going` (1 or 0): as many steps as it takes, at most `most`. Returns how many, and
    what the map leaves. `least`: the a to begin with."""
    o, one = zero(w.delassus), lift(1.0, zero(w.delassus))
    goal = tolerance * tolerance + o
    near = goal * (NEAR * NEAR)
    a, count, found_way = least + o, o, one
    for i in range(n):
        w.home[i], w.home_rate[i] = w.impulse[i], w.rate[i]
    squares, left = judge(w, first, n, law, None, a)
    inner, going = left, select(less(left, lift(1e300, o)), going, o)
    for _ in range(most):
        if some(less(inner, goal)):
            put_inside(w, first, n, law, select(less(inner, goal), going, o))
            _, left = judge(w, first, n, law, None, o)
            going = select(less(goal, left), going, o)
            if some(less(0.5, going)):
                squares, inner = judge(w, first, n, law, None, a)
        if not some(less(0.5, going)):
            break
        # The proximal problem is solved, or given up.
        solved = select(less(inner, near), going, o)
        lost = going * (1.0 - found_way) * (1.0 - solved)
        if some(less(0.5, solved + lost)):
            move_home(w, n, solved, lost)
            a = select(less(0.5, solved), maximum(a * LESS, least + o), a)
            a = select(less(0.5, lost), minimum(maximum(a * MORE, lift(TRIED_AGAIN, o)), MOST * one), a)
            squares, inner = judge(w, first, n, law, None, a)
        m, symmetric = assemble(w, first, n, law, a, False)
        eliminate(w, n, m, symmetric, False)
        respond(w, n, w.step, w.change)
        t, found, worst, better = shorten(w, first, n, law, a, squares)
        taken = less(o, select(better, t, o) * going)
        for i in range(n):  # a step that is not taken may be NaN
            x, u = w.impulse[i], w.rate[i]
            w.impulse[i], w.rate[i] = select(taken, x + t * w.step[i], x), select(taken, u + t * w.change[i], u)
        squares, inner = select(taken, found, squares), select(taken, worst, inner)
        count, found_way = count + going, select(better, one, o)
    if some(less(0.5, going)):
        put_inside(w, first, n, law, going)
        _, left = judge(w, first, n, law, None, o)
    return count, sqrt(left)


@kernel
def move_home(w, n, solved, lost):
    """Home to where the iteration stands, or the iteration back home."""
    for i in range(n):
        x, u, home, rate = w.impulse[i], w.rate[i], w.home[i], w.home_rate[i]
        w.home[i], w.home_rate[i] = select(less(0.5, solved), x, home), select(less(0.5, solved), u, rate)
        w.impulse[i], w.rate[i] = select(less(0.5, lost), home, x), select(less(0.5, lost), rate, u)
