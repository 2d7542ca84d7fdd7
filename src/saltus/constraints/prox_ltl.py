"""Constrained forward dynamics by a proximal method on the sparse Cholesky factors of the whole KKT matrix.

    [ -mu   J  ] [ -forces ]   [ goal - mu forces_before ]
    [ J^T   M  ] [    a    ] = [          rest           ]          repeated until forces stand still

The matrix is factored from its end: M as U D U^T along the tree, then J becomes J U^-T row by row, without fill-in but for
what moves a constraint's bodies, then the Delassus matrix J M^-1 J^T + mu is left, dense, and factored in turn. That is done
once; an iteration is two triangular solves of size m. O(n d^2 + m d^2 + m^2 d + m^3) for depth d.

| paper | code | what | shape |
|---|---|---|---|
| U_M, D_M^-1 | `M`, `inverse` | factors of the inertia matrix, in place | nv nv, nv |
| J U^-T | `J` | in place | nm nv |
| Lambda_mu^-1 | `delassus`, `scale` | damped Delassus matrix, then its factors L and D, in place | nm nm, nm |
| a_free | `rest` | U^-1 (tau - b), then accelerations | nv |
| lambda | `-push` | multipliers | nm |

Reference: J. Carpentier, R. Budhiraja, N. Mansard, Proximal and sparse resolution of constrained dynamic equations (2021),
sections III and IV, algorithm 1.
"""

from __future__ import annotations

from saltus.constraints.dense import factor_block, solve_block
from saltus.constraints.system import AXES, BODIES, aim_rows, collect_bodies, move_bodies, take_rows
from saltus.constraints.tables import constrained
from saltus.dynamics.ltl import factor, solve_lower, solve_upper
from saltus.kernel import Layout, fabs, kernel, ld, less, lift, maximum, minimum, select, some, st, zero

ROUNDING = 2e-15
"""Of the solution of a dense system, by its condition. Contradictory constraints are left with the same at every iteration,
but for what rounding changes of it."""

SETTLED = 1e-12
"""What `converge` may leave of rows that are not redundant, relative to what they ask: what is nearly so needs digits."""

WORK = Layout(
    nj=BODIES,
    nv={**AXES, "rest": None, "inverse": None, "scaled": None},
    nvv={"M": None},
    nmv={"J": None},
    nmm={"delassus": None},
    nm={"goal": None, "push": None, "scale": None, "step": None, "miss": None},
)


@constrained(
    inputs={"q": "nq", "v": "nv", "tau": "nv", "active": "nc", "target": "nm", "start": "nm", "rows": "nu nv"},
    outputs={"a": "nv", "forces": "nm", "report": "3"},
    work=WORK,
    inverts_inertia=True,
)
def _prox_ltl(tree, q, v, tau, active, target, start, rows, w, a, forces, report):
    move_bodies(tree, q, v, w)
    collect_bodies(tree, q, tau, w, w.M, w.rest)
    aim_rows(tree, active, target, w, w.J, w.goal)
    take_rows(tree, active, target, rows, w.J, w.goal)
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            st(w.push, r, ld(start, r) * ld(active, c))
    settle(tree, w, a, forces, report)


@kernel
def settle(tree, w, a, forces, report):
    """Accelerations and forces of the system M, rest, J, goal, from the forces in `push` on, and how the iteration ended."""
    nv, o = tree.nv, zero(a)
    factor(tree.above, nv, w.M, w.inverse)
    project(tree, w)
    noise = o
    for r in range(tree.nm):
        noise = maximum(noise, ld(w.delassus, r * tree.nm + r) * (ROUNDING / tree.mu[r]))
    factor_block(w.delassus, w.scale, tree.nm, 0, tree.nm)

    for r in range(tree.nm):
        st(w.miss, r, lift(1e300, o))
    residual, change, count, going = o, o, o, less(-1.0, o)
    for _ in range(tree.most_iterations[0]):
        if some(going):
            alive = select(going, lift(1.0, o), o)
            newer, moved = iterate(tree, alive, w)
            moved = maximum(o, moved - noise * newer)
            residual, change = select(going, newer, residual), select(going, moved, change)
            count = count + alive
            going = less(tree.tolerance[0], minimum(residual, change))

    accelerate(tree, w, a, forces)
    st(report, 0, count)
    st(report, 1, residual)
    st(report, 2, change)


@kernel
def accelerate(tree, w, a, forces):
    """The forces that were found, in `push`, and the accelerations that they leave, a = M^-1 (rest + J^T forces)."""
    nv = tree.nv
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            push = ld(w.push, r)
            st(forces, r, push)
            for n in range(tree.first_mover[c], tree.end_mover[c]):
                k = tree.mover[n]
                st(w.rest, k, ld(w.rest, k) + ld(w.J, r * nv + k) * push)
    for k in range(nv):
        st(a, k, ld(w.rest, k) * ld(w.inverse, k))
    solve_lower(tree.above, nv, w.M, a)


@kernel
def project(tree, w):
    """J becomes J U^-T, rest becomes U^-1 rest, goal what the free motion leaves of it; and the damped Delassus matrix."""
    nv, nm = tree.nv, tree.nm
    for k in range(nv):
        w.inverse[k] = 1.0 / w.inverse[k]
    solve_upper(tree.above, nv, w.M, w.rest)
    for c in range(tree.nc):
        first, end = tree.first_mover[c], tree.end_mover[c]
        for r in range(tree.first_row[c], tree.end_row[c]):
            row, left = r * nv, ld(w.goal, r)
            for n in range(first, end):
                k = tree.mover[n]
                entry, i = ld(w.J, row + k), tree.above[k]
                while i >= 0:
                    st(w.J, row + i, ld(w.J, row + i) - ld(w.M, i * nv + k) * entry)
                    i = tree.above[i]
                scaled = entry * ld(w.inverse, k)
                left = left - scaled * ld(w.rest, k)
                st(w.scaled, k, scaled)
            st(w.goal, r, left)
            for s in range(r + 1):
                total = zero(w.goal)
                for n in range(first, end):
                    k = tree.mover[n]
                    total = total + ld(w.scaled, k) * ld(w.J, s * nv + k)
                st(w.delassus, r * nm + s, total)
            st(w.delassus, r * nm + r, ld(w.delassus, r * nm + r) + tree.mu[r])


@kernel
def iterate(tree, alive, w):
    """One step of the proximal method; what it leaves of the constraints is mu times the step."""
    residual = change = zero(w.goal)
    for r in range(tree.nm):
        st(w.step, r, ld(w.goal, r) + tree.mu[r] * ld(w.push, r))
    solve_block(w.delassus, w.scale, tree.nm, 0, tree.nm, w.step)
    for r in range(tree.nm):
        step = (ld(w.step, r) - ld(w.push, r)) * alive
        miss = tree.mu[r] * step
        residual = maximum(residual, fabs(miss))
        change = maximum(change, fabs(miss - ld(w.miss, r)))
        st(w.miss, r, miss)
        st(w.push, r, ld(w.push, r) + step)
    return residual, change


@kernel
def converge(tree, still, w):
    """Forces for what `goal` asks, in `push`, iterated until what is left of it stands still, by its size."""
    o = zero(w.goal)
    size, going = o, less(-1.0, o)
    for r in range(tree.nm):
        size = maximum(size, fabs(ld(w.goal, r)))
        st(w.push, r, o)
        st(w.miss, r, lift(1e300, o))
    for _ in range(tree.most_iterations[0]):
        if some(going):
            _, change = iterate(tree, select(going, lift(1.0, o), o), w)
            going = less(still * size, change)
