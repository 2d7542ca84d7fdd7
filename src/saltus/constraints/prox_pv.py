"""Constrained forward dynamics by the proximal Popov-Vereshchagin solver.

    (L + mu) step = -l - K a_base - L push,      push <- push + step,      repeated until forces stand still

A sweep to the root, as that of the articulated body algorithm, carries along what a unit force of each row does (K), how the
rows answer each other's forces (L, the Delassus matrix of the limb) and what the free motion leaves of them (l). The dual
problem of size m is then solved by proximal iterations, and a sweep to the leaves gives accelerations. O(n + m^2 d + m^3).

Early elimination: at a free-flyer base L is block-diagonal, one block a limb. It is factored there, block by block, and the
base's acceleration is solved for beside the forces; its inertia never fills the other blocks.

| paper | code | what | frame |
|---|---|---|---|
| K_i^A | `row` | force on body i of a unit force of each row | body |
| L_i^A | `dual`, `diagonal`; `scale` | answer of the rows to each other's forces: upper triangle; the lower one, factors | |
| l_i | `left` | acceleration of each row but for that of body i, less what is asked | |
| lambda | `-lam` | multipliers; `lam` is the force that acts on the body (`push` in the equation) | A |
| H_i^A, f_i^A | `I`, `-f` | articulated inertia and force | body |
| | `acceleration` | of a body, but for `bias`, what it has while no joint accelerates | body |
| S_i^T K_i^AT | `share` | torque of each row's unit force at each degree of freedom | |

Rows are kept in the order of the tree: body i supports those of places `first_under[i]` to `end_under[i]`.

Reference: A. Sathya, J. Carpentier, Constrained articulated body dynamics algorithms, algorithm 4; 1 / mu stands for its mu.
"""

from __future__ import annotations

from saltus.constraints.constrained_aba import as_force, measure_held, place_and_aim
from saltus.constraints.convergence import (
    NOTHING,
    Rows,
    beyond,
    conclude,
    goes_on,
    larger,
    largest_of,
    least_sizes,
    moved_beyond,
    no_rows,
    relative_step,
    rounded,
    select_rows,
    sized,
    tolerated,
)
from saltus.constraints.dense import factor_block, solve_block
from saltus.constraints.measure import load_rows
from saltus.constraints.prox_ltl import ROUNDING, bias
from saltus.constraints.tables import PLACES, constrained
from saltus.kernel import Layout, kernel, largest, ld, less, lift, maximum, select, some, st, zero
from saltus.model.joint_kernels import add_along, component, joint_placement, set_free
from saltus.model.tree import HEAVY
from saltus.spatial.algebra import SE3, Force, Motion, Vec2, Vec3, act_force, act_inv, power
from saltus.spatial.inertia import Sym6, act_sym6, add_rigid, as_sym6, force_of, without

SUMMED = 64.0
"""Rounding units of what forces change of a row, that sweeps may leave of one that is met."""

WORK = Layout(
    nj={"turn": Vec2, "velocity": Motion, "bias": Motion, "fall": Vec3, "inertia": Sym6, "force": Force,
        "acceleration": Motion, "change": Motion, "place": SE3},
    nv={"gain": Force, "rate": None, "inverse": None},
    nc={"goal": Motion, "push": Force, "miss": Motion},
    nm={"row": Force, "left": None, "lam": None, "step": None, "missed": None, "scale": None, "reply": Force,
        "diagonal": None},
    nmv={"share": None},
    nmm={"dual": None},
)  # fmt: skip


@constrained(
    PLACES,
    inputs={"q": "nq", "v": "nv", "tau": "nv", "active": "nc =1", "target": "nm =0", "start": "nm =0"},
    outputs={"a": "nv", "forces": "nm", "report": "5"},
    work=WORK,
    inverts_inertia=True,
    own_code=HEAVY,
    double_only=True,
)
def _prox_pv(tree, q, v, tau, active, target, start, w, a, forces, report):
    o = zero(q)
    place_and_aim(tree, q, v, active, target, start, w)
    begin_rows(tree, active, start, w)
    collect_rows(tree, q, tau, w)
    noise = factor_dual(tree, o, w)
    asked = no_rows(o)
    for p in range(tree.nm):
        asked = largest_of(asked, tree.row_axis[tree.row_at[p]], w.left[p])
    asked = Rows(asked.lin * tree.rounding[0], asked.ang * tree.rounding[0])
    most = tolerated(tree, asked)
    residual, change, count, going = no_rows(o), no_rows(o), o, less(-1.0, o)
    before = step = lift(1e300, o)
    for _ in range(tree.most_iterations[0]):
        if not some(going):
            break
        alive = select(going, lift(1.0, o), o)
        newer, moved, stepped = iterate(tree, tau, alive, w)
        moved = moved_beyond(noise, newer, moved)
        stepped = select(less(o, beyond(newer, most)), o, stepped)  # as long as they are missed, that decides
        residual, change = select_rows(going, newer, residual), select_rows(going, moved, change)
        before, step, count = select(going, step, before), select(going, stepped, step), count + alive
        going = goes_on(tree, residual, change, step, before, most)
    roll_out(tree, q, w, a)
    for p in range(tree.nm):
        st(forces, tree.row_at[p], w.lam[p])
    residual = check_rows(tree, active, forces, w)
    step, near = check_balance(tree, q, tau, a, w)
    step = maximum(step, bias(tree, noise, residual, near))
    left = larger(rounded(tree, near), asked)
    most = tolerated(tree, Rows(left.lin * SUMMED, left.ang * SUMMED))
    conclude(tree, count, residual, change, step, most, report)


@kernel
def begin_rows(tree, active, start, w):
    """Each row as a force on the body it holds, and what is asked of it."""
    o = zero(start)
    for p in range(tree.nm):
        c, r = tree.holder[p], tree.row_at[p]
        on = ld(active, c)
        w.row[p] = tree.row_force[p] * on
        w.left[p] = -(component(w.goal[c], tree.row_axis[r]) * on)
        w.lam[p], w.missed[p] = ld(start, r) * on, lift(1e300, o)
        for s in range(p + 1):
            st(w.dual, p * tree.nm + s, o)
        st(w.dual, p * tree.nm + p, lift(tree.mu[r], o))


@kernel
def collect_rows(tree, q, tau, w):
    """To the root: articulated inertias and bias forces, and the rows."""
    o = zero(q)
    I, f = as_sym6(tree.inertia[0], o), Force(Vec3(o, o, o), Vec3(o, o, o))
    for i in range(tree.nj - 1, 0, -1):
        body, parent = tree.inertia[i], tree.parent[i]
        if tree.leaf[i]:
            I, f = as_sym6(body, o), Force(Vec3(o, o, o), Vec3(o, o, o))
        else:
            if tree.parent[i + 1] != i:
                I, f = w.inertia[i], w.force[i]
            I = add_rigid(I, body)
        f = f + force_of(body, w.velocity[i], w.bias[i])
        if i == tree.base[0]:  # its joint is eliminated beside the forces
            w.inertia[i], w.force[i] = I, f
            w.acceleration[i] = w.acceleration[0]
        else:
            for k in range(tree.end[i] - 1, tree.iv[i] - 1, -1):
                axis = tree.axis[k]
                gain, inverse, I = set_free(tree, k, I)
                torque = ld(tau, k) - component(f, axis)
                f = f + gain * torque
                w.gain[k], w.rate[k], w.inverse[k] = gain, inverse * torque, inverse
                free_rows(tree, i, k, gain, inverse, inverse * torque, w)
            X = joint_placement(tree, i, q, w.turn[i])
            for p in range(tree.first_under[i], tree.end_under[i]):
                w.row[p] = act_force(X, w.row[p])
            if parent > 0:
                I, f = act_sym6(X, I), act_force(X, f)
                if not tree.last_child[i]:
                    I, f = I + w.inertia[parent], f + w.force[parent]
                if parent != i - 1:
                    w.inertia[parent], w.force[parent] = I, f


@kernel
def free_rows(tree, i, k, gain, inverse, rate, w):
    """Degree of freedom k moves freely under the rows that body i supports."""
    for p in range(tree.first_under[i], tree.end_under[i]):
        row = w.row[p]
        share = component(row, tree.axis[k])
        st(w.share, p * tree.nv + k, share)
        w.row[p], w.left[p] = row - gain * share, w.left[p] + share * rate
        answer = share * inverse
        for s in range(tree.first_under[i], p + 1):
            entry = p * tree.nm + s
            st(w.dual, entry, ld(w.dual, entry) + answer * ld(w.share, s * tree.nv + k))


@kernel
def factor_dual(tree, o, w):
    """Factor L + mu block by block, in the lower triangle; the upper one keeps L. At a base, add to its inertia what forces
    of the rows answer to its motion. Returns what rounding does to the solution of the dense systems."""
    first, base, noise = 0, tree.base[0], o
    for p in range(tree.nm):
        diagonal, mu = ld(w.dual, p * tree.nm + p), tree.mu[tree.row_at[p]]
        w.diagonal[p], noise = diagonal - mu, maximum(noise, diagonal * (ROUNDING / mu))
        for s in range(p):
            st(w.dual, s * tree.nm + p, ld(w.dual, p * tree.nm + s))
    while first < tree.nm:
        factor_block(w.dual, w.scale, tree.nm, first, tree.block_end[first])
        first = tree.block_end[first]
    if base > 0:
        first, end = tree.first_under[base], tree.end_under[base]
        for p in range(first, end):
            w.reply[p] = w.row[p]
        while first < end:
            solve_block(w.dual, w.scale, tree.nm, first, tree.block_end[first], w.reply)
            first = tree.block_end[first]
        I = w.inertia[base]
        for p in range(tree.first_under[base], end):
            reply = w.reply[p]
            I = without(I, w.row[p] * -1.0, reply)
        for k in range(tree.end[base] - 1, tree.iv[base] - 1, -1):
            w.gain[k], w.inverse[k], I = set_free(tree, k, I)
    return noise


@kernel
def iterate(tree, tau, alive, w):
    """One step of the proximal method, from what forces and the base's acceleration leave; it leaves mu times the step.
    Returns that, its change, and the largest step of a force by their size: a small mu meets constraints before it."""
    residual = change = no_rows(zero(tau))
    stepped = size = zero(tau)
    first, base = 0, tree.base[0]
    while first < tree.nm:
        end = tree.block_end[first]
        find_left(tree, first, end, w)
        first = end
    first = 0
    while first < tree.nm:
        solve_block(w.dual, w.scale, tree.nm, first, tree.block_end[first], w.step)
        first = tree.block_end[first]
    if base > 0:
        move_base(tree, base, tau, alive, w)
    for p in range(tree.nm):
        step = w.step[p] * alive
        miss = step * tree.mu[tree.row_at[p]]
        axis = tree.row_axis[tree.row_at[p]]
        residual, change = largest_of(residual, axis, miss), largest_of(change, axis, miss - w.missed[p])
        w.missed[p], w.lam[p] = miss, w.lam[p] + step
        stepped, size = largest(stepped, step), largest(size, w.lam[p])
    return residual, change, stepped / (size + NOTHING)


@kernel
def find_left(tree, first, end, w):
    """What is left of the rows of a block: -l - K a_base - L push."""
    nm, base = tree.nm, tree.base[0]
    for p in range(first, end):
        left = -w.left[p] - w.diagonal[p] * w.lam[p]
        if base > 0 and tree.first_under[base] <= p and p < tree.end_under[base]:
            left = left - power(w.acceleration[base], w.row[p])
        for s in range(first, p):
            left = left - ld(w.dual, s * nm + p) * w.lam[s]
        for s in range(p + 1, end):
            left = left - ld(w.dual, p * nm + s) * w.lam[s]
        w.step[p] = left


@kernel
def move_base(tree, base, tau, alive, w):
    """The step of the base's acceleration under that of the forces, and the latter as it takes them."""
    o = zero(tau)
    first, end = tree.first_under[base], tree.end_under[base]
    motion, step = w.acceleration[base], Motion(Vec3(o, o, o), Vec3(o, o, o))
    f = w.force[base] + w.inertia[base] @ motion
    for p in range(first, end):
        f = f - w.row[p] * (w.lam[p] + w.step[p])
    for k in range(tree.end[base] - 1, tree.iv[base] - 1, -1):
        axis = tree.axis[k]
        torque = ld(tau, k) - tree.armature[k] * component(motion, axis) - component(f, axis)
        f = f + w.gain[k] * torque
        w.rate[k] = w.inverse[k] * torque
    for k in range(tree.iv[base], tree.end[base]):
        step = add_along(step, tree.axis[k], w.rate[k] - power(step, w.gain[k]))
    for p in range(first, end):
        w.step[p] = w.step[p] - power(step, w.reply[p])
    w.acceleration[base] = motion + step * alive


@kernel
def roll_out(tree, q, w, a):
    """To the leaves: accelerations under the forces of the constraints."""
    for i in range(1, tree.nj):
        if i == tree.base[0]:
            for k in range(tree.iv[i], tree.end[i]):
                st(a, k, component(w.acceleration[i], tree.axis[k]))
        else:
            X = joint_placement(tree, i, q, w.turn[i])
            acceleration = act_inv(X, w.acceleration[tree.parent[i]])
            for k in range(tree.iv[i], tree.end[i]):
                torque = zero(q)
                for p in range(tree.first_under[i], tree.end_under[i]):
                    torque = torque + ld(w.share, p * tree.nv + k) * w.lam[p]
                rate = w.rate[k] + w.inverse[k] * torque - power(acceleration, w.gain[k])
                st(a, k, rate)
                acceleration = add_along(acceleration, tree.axis[k], rate)
            w.acceleration[i] = acceleration


@kernel
def check_rows(tree, active, forces, w):
    """What accelerations truly leave of the constraints."""
    o = zero(active)
    residual = no_rows(o)
    for c in range(tree.nc):
        w.push[c] = as_force(load_rows(tree, c, forces, o))
    for i in range(tree.nj):
        residual = measure_held(tree, i, w.acceleration[i], active, residual, w)
    return residual


@kernel
def check_balance(tree, q, tau, a, w):
    """What is left of the equations of motion: the largest step of accelerations that would answer it, by their size; and
    that of joints which move a constraint."""
    o = zero(q)
    for i in range(1, tree.nj):
        w.force[i] = force_of(tree.inertia[i], w.velocity[i], w.bias[i] + w.acceleration[i])
        c = tree.held[i]
        while c >= 0:
            w.force[i] = w.force[i] - act_force(tree.place_a[c], w.push[c])
            c = tree.next_held[c]
    for i in range(tree.nj - 1, 0, -1):
        f, parent = w.force[i], tree.parent[i]
        for k in range(tree.end[i] - 1, tree.iv[i] - 1, -1):
            torque = ld(tau, k) - tree.armature[k] * ld(a, k) - component(f, tree.axis[k])
            f = f + w.gain[k] * torque
            w.rate[k] = w.inverse[k] * torque
        if parent > 0:
            w.force[parent] = w.force[parent] + act_force(joint_placement(tree, i, q, w.turn[i]), f)
    sizes = least_sizes(tree, o)
    w.change[0] = Motion(Vec3(o, o, o), Vec3(o, o, o))
    for i in range(1, tree.nj):
        change = act_inv(joint_placement(tree, i, q, w.turn[i]), w.change[tree.parent[i]])
        for k in range(tree.iv[i], tree.end[i]):
            rate = w.rate[k] - power(change, w.gain[k])
            sizes, change = sized(tree, k, rate, ld(a, k), sizes), add_along(change, tree.axis[k], rate)
        w.change[i] = change
    return relative_step(sizes), sizes.near
