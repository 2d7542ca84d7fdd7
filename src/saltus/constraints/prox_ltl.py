"""Constrained forward dynamics by a proximal method on the sparse Cholesky factors of the whole KKT matrix.

    [ -mu   J  ] [ -forces ]   [ goal - mu forces_before ]
    [ J^T   M  ] [    a    ] = [          rest           ]          repeated until forces stand still

The matrix is factored from its end: M as U D U^T along the tree, then J becomes J U^-T row by row, without fill-in but for
what moves a constraint's bodies, then the Delassus matrix J M^-1 J^T + mu is left, dense, and factored in turn. That is done
once; an iteration solves with these factors for what accelerations and forces still leave of the two equations, with the
plain M and J, so that it takes away what rounding left of them, and shows it (convergence.py).
O(n d^2 + m d^2 + m^2 d + m^3) for depth d, O(n d + m d + m^2) an iteration.

| paper | code | what | shape |
|---|---|---|---|
| U_M, D_M^-1 | `M`, `inverse` | factors of the inertia matrix, in place: upper triangle | nv nv, nv |
| M | `M`, `diagonal` | plain inertia matrix: lower triangle, and diagonal | nv nv, nv |
| J U^-T; J | `J`; `plain` | in place; as it was | nm nv |
| Lambda_mu^-1 | `delassus`, `scale` | damped Delassus matrix, then its factors L and D, in place | nm nm, nm |
| tau - b | `rest` | forces that are left for accelerations | nv |
| lambda | `-push` | multipliers | nm |
| | `far` | what distance adds to inertias, and rounds (system.py) | nv |
| | `left`, `miss` | what is left of the two equations; `left` becomes the step of accelerations | nv, nm |

Reference: J. Carpentier, R. Budhiraja, N. Mansard, Proximal and sparse resolution of constrained dynamic equations (2021),
sections III and IV, algorithm 1.
"""

from __future__ import annotations

from saltus.constraints.convergence import (
    NOTHING,
    conclude,
    goes_on,
    larger,
    largest_of,
    least_sizes,
    limit,
    moved_beyond,
    no_rows,
    remaining,
    rounded,
    select_rows,
)
from saltus.constraints.dense import factor_block, solve_block
from saltus.constraints.prox_ltls import take_step
from saltus.constraints.system import AXES, BODIES, aim_rows, collect_bodies, lost_to_distance, move_bodies, take_rows
from saltus.constraints.tables import MOVERS, constrained
from saltus.dynamics.ltl import factor, solve_lower, solve_upper
from saltus.kernel import Layout, kernel, largest, ld, less, lift, maximum, select, some, st, zero

ROUNDING = 2e-15
"""Of the solution of a dense system, by its condition. Contradictory constraints are left with the same at every iteration,
but for what rounding changes of it."""

SETTLED = 1e-12
"""What `converge` may leave of rows that are not redundant, relative to what they ask: what is nearly so needs digits."""

WORK = Layout(
    nj=BODIES,
    nv={**AXES, "rest": None, "inverse": None, "scaled": None, "diagonal": None, "left": None, "far": None},
    nvv={"M": None},
    nmv={"J": None, "plain": None},
    nmm={"delassus": None},
    nm={"goal": None, "push": None, "scale": None, "step": None, "miss": None},
)


@constrained(
    MOVERS,
    inputs={"q": "nq", "v": "nv", "tau": "nv", "active": "nc", "target": "nm", "start": "nm", "rows": "nu nv"},
    outputs={"a": "nv", "forces": "nm", "report": "5"},
    work=WORK,
    inverts_inertia=True,
    double_only=True,
)
def _prox_ltl(tree, q, v, tau, active, target, start, rows, w, a, forces, report):
    move_bodies(tree, q, v, w)
    collect_bodies(tree, q, tau, w, w.M, w.rest, w.far)
    aim_rows(tree, active, target, w, w.J, w.goal)
    take_rows(tree, active, target, rows, w.J, w.goal)
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            st(w.push, r, ld(start, r) * ld(active, c))
    settle(tree, least_sizes(tree, zero(q)), w, a, forces, report)


@kernel
def settle(tree, least, w, a, forces, report):
    """Accelerations and forces of the system M, rest, J, goal, from the forces in `push` on, and how the iteration ended.
    `least`: what accelerations count as no smaller than."""
    o = zero(a)
    keep_plain(tree, w)
    factor(tree.above, tree.nv, w.M, w.inverse)
    project(tree, w)
    noise = o
    for r in range(tree.nm):
        noise = maximum(noise, ld(w.delassus, r * tree.nm + r) * (ROUNDING / tree.mu[r]))
        st(w.miss, r, ld(w.goal, r))  # as long as nothing accelerates
    factor_block(w.delassus, w.scale, tree.nm, 0, tree.nm)
    for k in range(tree.nv):
        st(a, k, o)

    residual, change, count, near, going = no_rows(o), no_rows(o), o, o, less(-1.0, o)
    step, before = lift(1e300, o), lift(1e300, o)
    for _ in range(tree.most_iterations[0]):
        if not some(going):
            break
        alive = select(going, lift(1.0, o), o)
        find_step(tree, alive, w, a)
        stepped, near = take_step(tree, alive, least, w.left, a)
        newer, moved = measure(tree, w)
        moved = moved_beyond(noise, newer, moved)
        residual, change = select_rows(going, newer, residual), select_rows(going, moved, change)
        before, step, count = select(going, step, before), select(going, stepped, step), count + alive
        going = goes_on(tree, residual, change, step, before, limit(tree, near))
    for r in range(tree.nm):
        st(forces, r, ld(w.push, r))
    lost = lost_to_distance(w.far, w.inverse, tree.nv) * tree.rounding[0]
    error = maximum(maximum(remaining(tree, step, before), lost), bias(tree, noise, residual, near))
    residual = larger(residual, rounded(tree, near))
    conclude(tree, count, residual, change, error, limit(tree, near), report)


@kernel
def bias(tree, noise, residual, near):
    """How far off accelerations are, by their size, where constraints contradict each other: what is left of these is the
    same at every iteration, and so are the forces that answer it, with the rounding of a dense system: no step shows it."""
    left = rounded(tree, near)
    missed = maximum(residual.lin / (left.lin + NOTHING), residual.ang / (left.ang + NOTHING))
    return missed * noise * (tree.rounding[0] * (tree.rounding[0] / ROUNDING))


@kernel
def keep_plain(tree, w):
    """M and J as they are, beside those that become factors."""
    nv = tree.nv
    for k in range(nv):
        w.diagonal[k] = ld(w.M, k * nv + k)
        j = tree.above[k]
        while j >= 0:
            st(w.M, k * nv + j, ld(w.M, j * nv + k))
            j = tree.above[j]
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            for n in range(tree.first_mover[c], tree.end_mover[c]):
                k = tree.mover[n]
                st(w.plain, r * nv + k, ld(w.J, r * nv + k))


@kernel
def find_step(tree, alive, w, a):
    """What is left of the equations of motion becomes the step of accelerations that answers it, and what is left of the
    constraints; forces take theirs."""
    nv, nm = tree.nv, tree.nm
    find_left(tree, w, a)
    solve_upper(tree.above, nv, w.M, w.left)
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            step = ld(w.miss, r)
            for n in range(tree.first_mover[c], tree.end_mover[c]):
                k = tree.mover[n]
                step = step - ld(w.J, r * nv + k) * ld(w.inverse, k) * w.left[k]
            st(w.step, r, step)
    solve_block(w.delassus, w.scale, nm, 0, nm, w.step)
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            step = ld(w.step, r)
            st(w.push, r, ld(w.push, r) + step * alive)
            for n in range(tree.first_mover[c], tree.end_mover[c]):
                k = tree.mover[n]
                w.left[k] = w.left[k] + ld(w.J, r * nv + k) * step
    for k in range(nv):
        w.left[k] = w.left[k] * ld(w.inverse, k)
    solve_lower(tree.above, nv, w.M, w.left)


@kernel
def find_left(tree, w, a):
    """rest + J^T push - M a"""
    nv = tree.nv
    for k in range(nv):
        w.left[k] = w.rest[k] - w.diagonal[k] * ld(a, k)
    for k in range(nv):
        j = tree.above[k]
        while j >= 0:
            entry = ld(w.M, k * nv + j)
            w.left[k] = w.left[k] - entry * ld(a, j)
            w.left[j] = w.left[j] - entry * ld(a, k)
            j = tree.above[j]
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            for n in range(tree.first_mover[c], tree.end_mover[c]):
                k = tree.mover[n]
                w.left[k] = w.left[k] + ld(w.plain, r * nv + k) * ld(w.push, r)


@kernel
def measure(tree, w):
    """What the step leaves of the constraints, by its own changes: rounding errors of J a - goal would show in forces, times
    1 / mu. Returns its largest entry, and the largest change of one."""
    residual = change = no_rows(zero(w.step))
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            moved = zero(w.step)
            for n in range(tree.first_mover[c], tree.end_mover[c]):
                k = tree.mover[n]
                moved = moved + ld(w.plain, r * tree.nv + k) * w.left[k]
            miss = ld(w.miss, r) - moved
            axis = tree.row_axis[r]
            residual, change = largest_of(residual, axis, miss), largest_of(change, axis, moved)
            st(w.miss, r, miss)
    return residual, change


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
    """J becomes J U^-T, pivots their inverses; and the damped Delassus matrix."""
    nv, nm = tree.nv, tree.nm
    for k in range(nv):
        w.inverse[k] = 1.0 / w.inverse[k]
    for c in range(tree.nc):
        first, end = tree.first_mover[c], tree.end_mover[c]
        for r in range(tree.first_row[c], tree.end_row[c]):
            row = r * nv
            for n in range(first, end):
                k = tree.mover[n]
                entry, i = ld(w.J, row + k), tree.above[k]
                while i >= 0:
                    st(w.J, row + i, ld(w.J, row + i) - ld(w.M, i * nv + k) * entry)
                    i = tree.above[i]
                st(w.scaled, k, entry * ld(w.inverse, k))
            for s in range(r + 1):
                total = zero(w.delassus)
                for n in range(first, end):
                    k = tree.mover[n]
                    total = total + ld(w.scaled, k) * ld(w.J, s * nv + k)
                st(w.delassus, r * nm + s, total)
            st(w.delassus, r * nm + r, ld(w.delassus, r * nm + r) + tree.mu[r])


@kernel
def free(tree, w):
    """rest becomes U^-1 rest, goal what the free motion leaves of it."""
    nv = tree.nv
    solve_upper(tree.above, nv, w.M, w.rest)
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            left = ld(w.goal, r)
            for n in range(tree.first_mover[c], tree.end_mover[c]):
                k = tree.mover[n]
                left = left - ld(w.rest, k) * (ld(w.J, r * nv + k) * ld(w.inverse, k))
            st(w.goal, r, left)


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
        residual = largest(residual, miss)
        change = largest(change, miss - ld(w.miss, r))
        st(w.miss, r, miss)
        st(w.push, r, ld(w.push, r) + step)
    return residual, change


@kernel
def converge(tree, still, w):
    """Forces for what `goal` asks, in `push`, iterated until what is left of it stands still, by its size."""
    o = zero(w.goal)
    size, going = o, less(-1.0, o)
    for r in range(tree.nm):
        size = largest(size, ld(w.goal, r))
        st(w.push, r, o)
        st(w.miss, r, lift(1e300, o))
    for _ in range(tree.most_iterations[0]):
        if not some(going):
            break
        _, change = iterate(tree, select(going, lift(1.0, o), o), w)
        going = less(still * size, change)
