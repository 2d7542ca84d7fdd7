"""The contact problem by the alternating direction method of multipliers, on the damped Delassus matrix.

    (G + (rho + eta) D) x = rho D z + y + eta D x - g - s,      z = P(x - y / (rho D)),      y = y - rho D (x - z)

x meets the equations of motion, z the cones, and y, the rate that belongs to them, pulls both together. s is de Saxce's
correction mu |u_t| of normal rates, taken from the last y. One factorisation serves all iterations with the same rho;
D makes typical entries of G one, as preconditioner. An iteration costs O(n^2), and each leaves a share of the error that
depends on rho and on the spectrum of G: it gets near the solution of problems in which Newton's method finds no way.

| code | what | shape |
|---|---|---|
| `step` | x | n |
| `split` | z | n |
| `dual` | y | n |
| `system`, `pivot` | factors of the damped matrix | n n, n |

Reference: J. Carpentier, Q. Le Lidec, L. Montaut, From compliant to rigid contact simulation: a unified and efficient
approach (2024), algorithm 2.
"""

from __future__ import annotations

from saltus.constraints.dense import factor_block, solve_block
from saltus.kernel import kernel, ld, less, select, sqrt, st
from saltus.simulation.contact_law import CONVEX, COULOMB, project, within
from saltus.simulation.contact_system import set_three, three

PROXIMAL = 1e-6
"""eta"""

DAMPINGS = (1.0, 0.1, 0.01, 0.3, 0.03)
"""rho in turn."""


@kernel
def damping(turn):
    rho = DAMPINGS[0]
    for k in (1, 2, 3, 4):
        rho = DAMPINGS[k] if turn % 5 == k else rho
    return rho


@kernel
def begin_splitting(w, n):
    for i in range(n):
        w.split[i], w.dual[i], w.before[i] = w.impulse[i], w.rate[i], w.impulse[i]


@kernel
def admm(w, first, n, law, turn, iterations, going):
    """So many iterations from where the last ones have led; then `impulse` is z, where a lane is `going` (1 or 0)."""
    rho = damping(turn)
    for i in range(n):
        for j in range(i + 1):
            st(w.system, i * n + j, ld(w.delassus, i * n + j))
        st(w.system, i * n + i, ld(w.system, i * n + i) + (rho + PROXIMAL) * w.scale[i])
    factor_block(w.system, w.pivot, n, 0, n)
    for _ in range(iterations):
        iterate(w, first, n, law, rho)
    for i in range(n):
        w.impulse[i] = select(less(0.5, going), w.split[i], w.impulse[i])


@kernel
def iterate(w, first, n, law, rho):
    for i in range(n):
        pull = w.scale[i] * (rho * w.split[i] + PROXIMAL * w.before[i])
        w.step[i] = pull + w.dual[i] - w.free[i]
    if law == COULOMB:
        for i in range(first, n, 3):
            slip = three(w.dual, i)
            w.step[i] = w.step[i] - w.friction[i] * sqrt(slip.y * slip.y + slip.z * slip.z)
    solve_block(w.system, w.pivot, n, 0, n, w.step)
    for i in range(first):
        x, y, damping = w.step[i], w.dual[i], rho * w.scale[i]
        z = within(x - y * (w.inverse[i] / rho), w.lower[i], w.upper[i])
        w.before[i], w.split[i], w.dual[i] = x, z, y - (x - z) * damping
    for i in range(first, n, 3):
        x, y, damping = three(w.step, i), three(w.dual, i), rho * w.scale[i]
        z = project(CONVEX, w.friction[i], x - y * (w.inverse[i] / rho))
        set_three(w.before, i, x)
        set_three(w.split, i, z)
        set_three(w.dual, i, y - (x - z) * damping)
