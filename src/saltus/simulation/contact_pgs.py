"""The contact problem by projected Gauss-Seidel: one row of a joint, one contact after the other.

    x_i = P(x_i - r_i u_i),      u = G x + g at all times

Each sweep costs O(n^2), and no matrix is factored; where masses differ much, or contacts stand on each other, very many
sweeps are needed.

Reference: J. Moreau, Numerical aspects of the sweeping process (1999); E. Todorov, MuJoCo's documentation.
"""

from __future__ import annotations

from saltus.kernel import kernel, ld, less, select, some, zero
from saltus.simulation.contact_law import project, within
from saltus.simulation.contact_newton import judge, three


@kernel
def gauss_seidel(w, first, n, law, tolerance, most, going):
    """Sweeps from `impulse` on, at most so many, where a lane is `going` (1 or 0); how many, and what the map leaves."""
    o = zero(w.delassus)
    count, left = o, o
    for i in range(n):
        w.step[i], w.change[i], w.home[i] = o, o, o
    for _ in range(most):
        _, worst = judge(w, first, n, law, o, o)
        left = select(less(0.5, going), worst, left)
        going = select(less(tolerance, worst), going, o)
        if not some(less(0.5, going)):
            break
        count = count + going
        for i in range(first):
            x = w.impulse[i]
            move(w, n, i, (within(x - w.rate[i] * w.inverse[i], w.lower[i], w.upper[i]) - x) * going)
        for i in range(first, n, 3):
            x = three(w.impulse, i)
            step = (project(law, w.friction[i], x - three(w.rate, i) * w.inverse[i]) - x) * going
            move(w, n, i, step.x)
            move(w, n, i + 1, step.y)
            move(w, n, i + 2, step.z)
    return count, left


@kernel
def move(w, n, i, step):
    w.impulse[i] = w.impulse[i] + step
    for j in range(n):
        w.rate[j] = w.rate[j] + ld(w.delassus, i * n + j) * step
