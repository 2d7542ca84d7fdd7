"""Constrained forward dynamics by the augmented Lagrangian on the augmented inertia matrix.

    (M + J^T W J) step = rest + J^T (forces - W (J a - goal)) - M a,    a <- a + step,    forces <- forces - W (J a - goal)

with W = 1 / mu.

The matrix comes from the composite rigid body algorithm on bodies whose inertias the contacts were added to; rows of loops
and users are added to it one by one. It has the sparsity of a tree (with loops, that of the tree which joins what they tie),
so it is factored once without fill-in, and no matrix of size m is formed. O(n d^2 + m d) for depth d.

Steps are the paper's but for rounding: each looks at what the equation of motion itself leaves, with the plain M.
Factors of a matrix as large as 1 / mu would leave errors of that size times those of rounding, which steps then take
away.

| paper | code | what | shape |
|---|---|---|---|
| M_mu | `M`, `pivot` | augmented inertia matrix, then its factors U and D^-1, in place: upper triangle | nv nv, nv |
| M | `M`, `diagonal` | plain inertia matrix: lower triangle, and diagonal | nv nv, nv |
| tau - b | `rest` | forces that are left for accelerations | nv |
| lambda | `-push` | multipliers | nm |
| J a + gamma - a_c^* | `miss` | what is left of the constraints | nm |

Reference: A. Sathya, J. Carpentier, Constrained articulated body dynamics algorithms, equations 15, 16, 24.
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
    no_rows,
    relative_step,
    remaining,
    rounded,
    select_rows,
    sized,
)
from saltus.constraints.system import AXES, BODIES, aim_rows, distant, move_bodies, take_rows
from saltus.constraints.tables import MOVERS, constrained
from saltus.dynamics.ltl import factor, solve_lower, solve_upper
from saltus.kernel import Layout, fabs, kernel, largest, ld, less, lift, maximum, select, some, st, zero
from saltus.spatial.algebra import Force, Vec3, power
from saltus.spatial.inertia import Sym6, act_sym6, as_sym6, scaled

WORK = Layout(
    nj={**BODIES, "heavy": Sym6},
    nv={**AXES, "pivot": None, "diagonal": None, "rest": None, "step": None},
    nvv={"M": None},
    nmv={"J": None},
    nm={"goal": None, "push": None, "miss": None},
)


@constrained(
    MOVERS,
    inputs={"q": "nq", "v": "nv", "tau": "nv", "active": "nc", "target": "nm", "start": "nm", "rows": "nu nv"},
    outputs={"a": "nv", "forces": "nm", "report": "5"},
    work=WORK,
    inverts_inertia=True,
    double_only=True,
)
def _prox_ltls(tree, q, v, tau, active, target, start, rows, w, a, forces, report):
    nv, o = tree.nv, zero(q)
    move_bodies(tree, q, v, w)
    aim_rows(tree, active, target, w, w.J, w.goal)
    take_rows(tree, active, target, rows, w.J, w.goal)
    collect_augmented(tree, active, tau, w)
    add_loops(tree, w)
    factor(tree.joined, nv, w.M, w.pivot)
    lost = turn_pivots_over(tree, w) * tree.rounding[0]

    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            w.push[r] = ld(start, r) * ld(active, c)
            w.miss[r] = -w.goal[r]  # as long as nothing accelerates
    for k in range(nv):
        st(a, k, o)
    residual, change, count, near, going = no_rows(o), no_rows(o), o, o, less(-1.0, o)
    step, before = lift(1e300, o), lift(1e300, o)
    for _ in range(tree.most_iterations[0]):
        if not some(going):
            break
        alive = select(going, lift(1.0, o), o)
        find_step(tree, w, a)
        solve_upper(tree.joined, nv, w.M, w.step)
        for k in range(nv):
            w.step[k] = w.step[k] * w.pivot[k]
        solve_lower(tree.joined, nv, w.M, w.step)
        stepped, near = take_step(tree, alive, least_sizes(tree, o), w.step, a)
        newer, moved = measure(tree, w)
        for r in range(tree.nm):
            w.push[r] = w.push[r] - w.miss[r] * alive / tree.mu[r]
        residual, change = select_rows(going, newer, residual), select_rows(going, moved, change)
        before, step, count = select(going, step, before), select(going, stepped, step), count + alive
        going = goes_on(tree, residual, change, step, before, limit(tree, near))
    for r in range(tree.nm):
        st(forces, r, w.push[r])
    step = maximum(step, unbalanced(tree, w, a))
    residual, error = larger(residual, rounded(tree, near)), maximum(remaining(tree, step, before), lost)
    conclude(tree, count, residual, change, error, limit(tree, near), report)


@kernel
def take_step(tree, alive, sizes, step, a):
    """a + step; returns the largest entry of the step by the size of accelerations, and that of joints which move a
    constraint; `sizes` are the least there are."""
    for k in range(tree.nv):
        change = ld(step, k) * alive
        joint = ld(a, k) + change
        st(step, k, change)
        st(a, k, joint)
        sizes = sized(tree, k, change, joint, sizes)
    return relative_step(sizes), sizes.near


@kernel
def collect_augmented(tree, active, tau, w):
    """To the root: the augmented inertia matrix, but for loops, the plain one, and tau - b; in `step` what is `distant`."""
    o, nv = zero(tau), tree.nv
    for i in range(tree.nj):
        w.heavy[i] = as_sym6(w.composite[i], o)
    for c in range(tree.nc):
        body = tree.body_a[c]
        if tree.body_b[c] == 0:
            added = scaled(act_sym6(w.place[body], tree.stiffness[c]), ld(active, c))
            w.heavy[body] = w.heavy[body] + added
    w.force[0] = Force(Vec3(o, o, o), Vec3(o, o, o))
    for i in range(tree.nj - 1, 0, -1):
        heavy, plain, force, parent = w.heavy[i], w.composite[i], w.force[i], tree.parent[i]
        w.heavy[parent], w.force[parent] = w.heavy[parent] + heavy, w.force[parent] + force
        w.composite[parent] = w.composite[parent] + plain
        for k in range(tree.iv[i], tree.end[i]):
            axis, j = w.axis[k], tree.joined[k]
            momentum, light = heavy @ axis, plain @ axis
            w.rest[k] = ld(tau, k) - power(axis, force)
            w.diagonal[k], w.step[k] = power(axis, light) + tree.armature[k], distant(plain, axis)
            while j >= 0:
                st(w.M, j * nv + k, 0.0)
                j = tree.joined[j]
            st(w.M, k * nv + k, power(axis, momentum) + tree.armature[k])
            j = tree.above[k]
            while j >= 0:
                st(w.M, j * nv + k, power(w.axis[j], momentum))
                st(w.M, k * nv + j, power(w.axis[j], light))
                j = tree.above[j]


@kernel
def find_step(tree, w, a):
    """What is left of the equation of motion, under forces that answer to what is left of the constraints."""
    for k in range(tree.nv):
        w.step[k] = w.rest[k]
    subtract_inertia(tree, w, a)
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            add_row(tree, c, r, w.push[r] - w.miss[r] / tree.mu[r], w, w.step)


@kernel
def unbalanced(tree, w, a):
    """What forces leave of the equations of motion, by the largest part of these: a matrix as large as 1 / mu makes small
    steps of much that is left."""
    size = left = zero(a)
    for k in range(tree.nv):
        w.step[k] = left
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            add_row(tree, c, r, w.push[r], w, w.step)
    for k in range(tree.nv):
        size = largest(largest(size, w.step[k]), w.rest[k])
        w.step[k] = w.step[k] + w.rest[k]
    subtract_inertia(tree, w, a)
    for k in range(tree.nv):
        left = largest(left, w.step[k])
    return left / (size + NOTHING)


@kernel
def turn_pivots_over(tree, w):
    """Pivots become their inverses. Returns how many times larger than inertias what is `distant` of them is: than those
    that accelerations feel under the constraints, and those that forces move."""
    lost = zero(w.pivot)
    for k in range(tree.nv):
        inverse = 1.0 / w.pivot[k]
        lost, w.pivot[k] = lost + w.step[k] * (fabs(inverse) + fabs(1.0 / w.diagonal[k])), inverse
    return lost


@kernel
def subtract_inertia(tree, w, a):
    """step - M a"""
    nv = tree.nv
    for k in range(nv):
        w.step[k] = w.step[k] - w.diagonal[k] * ld(a, k)
        j = tree.above[k]
        while j >= 0:
            entry = ld(w.M, k * nv + j)
            w.step[k] = w.step[k] - entry * ld(a, j)
            w.step[j] = w.step[j] - entry * ld(a, k)
            j = tree.above[j]


@kernel
def add_loops(tree, w):
    """M + J^T W J for the rows of loops, and for those given by users."""
    nv = tree.nv
    for c in range(tree.nc):
        if tree.body_b[c] > 0 or tree.given[c] >= 0:
            for r in range(tree.first_row[c], tree.end_row[c]):
                for n in range(tree.first_mover[c], tree.end_mover[c]):
                    k = tree.mover[n]
                    entry = ld(w.J, r * nv + k) / tree.mu[r]
                    for m in range(n, tree.end_mover[c]):
                        i = tree.mover[m]
                        st(w.M, i * nv + k, ld(w.M, i * nv + k) + ld(w.J, r * nv + i) * entry)


@kernel
def add_row(tree, c, r, force, w, x):
    """x + J^T force, for one row."""
    for n in range(tree.first_mover[c], tree.end_mover[c]):
        k = tree.mover[n]
        st(x, k, ld(x, k) + ld(w.J, r * tree.nv + k) * force)


@kernel
def measure(tree, w):
    """What the step leaves of the constraints: miss + J step, not J a - goal, whose rounding errors forces would show times
    1 / mu. Returns its largest entry, and the largest change of one."""
    residual = change = no_rows(zero(w.step))
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            moved = zero(w.step)
            for n in range(tree.first_mover[c], tree.end_mover[c]):
                k = tree.mover[n]
                moved = moved + ld(w.J, r * tree.nv + k) * w.step[k]
            miss = w.miss[r] + moved
            axis = tree.row_axis[r]
            residual, change = largest_of(residual, axis, miss), largest_of(change, axis, moved)
            w.miss[r] = miss
    return residual, change
