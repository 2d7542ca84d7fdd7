"""Constrained forward dynamics by a constrained articulated body algorithm that knows loops.

    min_a  1/2 |a - a_free|_M^2   subject to   K_a a_a - K_b a_b = goal,  for every constraint between bodies a and b

The augmented Lagrangian adds a constraint to the inertias of both its bodies, and ties them: a 6x6 matrix that maps
motions of one to forces on the other. Eliminating a joint then takes a rank-one matrix out of the inertias of its body
and of all that are tied to it, and out of the ties among them; its parent takes over the ties. A body far from all
loops has none, so the sweeps are those of constrained_aba.py there. O(n + m) as long as few loops overlap; ties are
found beforehand (ties.py).

Inertias are eliminated once. An iteration then finds what accelerations leave of the equations of motion, under forces
that answer to what they leave of the constraints, sends that to the root, and steps back to the leaves: as in
prox_ltls.py, rounding errors of inertias as large as 1 / mu are taken away by the next step.

| paper | code | what | frame |
|---|---|---|---|
| K_a, K_b | `place_a`, `seen` | how a constraint sees motions of its two bodies | A |
| H_i^A | `inertia` | articulated inertia | body |
| f_i^A | `-force` | what is left of the equations of motion | body |
| a_i | `acceleration`, `change` | spatial acceleration, gravity taken as one of the world; and a step of it | body |
| | `tie` | motions of the earlier body to forces on the later one | bodies |
| D_i^-1 | `inverse` | of a degree of freedom's pivot | |
| | `gain`, `tie_gain` | column of the inertia, and rows of the ties, by the pivot | body, tied body |
| lambda_i | `-push` | multiplier; `push` is the force on body a, its opposite acts on body b | A |
| | `miss` | what is left of a constraint | A |

Reference: A. Sathya, J. Carpentier, Constrained articulated body dynamics algorithms, for trees (algorithms 1 to 3); the
elimination of tied bodies is the sparse Cholesky factorisation of the same problem in maximal coordinates, in the order of
the tree. A contact is a constraint whose body b is the world.
"""

from __future__ import annotations

from saltus.constraints.constrained_aba import as_force
from saltus.constraints.convergence import (
    conclude,
    goes_on,
    larger,
    least_sizes,
    limit,
    no_rows,
    relative_step,
    remaining,
    rounded,
    select_rows,
    sized,
)
from saltus.constraints.measure import largest_row, load_rows, separation, store_rows, weighted
from saltus.constraints.six import Six, act_six, less_product, row, symmetric_part, transposed
from saltus.constraints.tables import SUPPORTS, TIES, constrained
from saltus.kernel import Layout, kernel, ld, less, lift, select, some, st, zero
from saltus.model.joint_kernels import add_along, add_motion, carried, component, joint_placement, joint_turn, set_free
from saltus.model.tree import HEAVY
from saltus.spatial.algebra import (
    SE3,
    Force,
    Mat3,
    Motion,
    Vec2,
    Vec3,
    act,
    act_force,
    act_force_inv,
    act_inv,
    cross,
    cross_motion,
    inverse,
    power,
)
from saltus.spatial.inertia import Sym6, act_sym6, as_sym6, column, force_of, scaled, without

WORK = Layout(
    nj={"turn": Vec2, "velocity": Motion, "place": SE3, "inertia": Sym6, "force": Force, "acceleration": Motion,
        "change": Motion},
    nv={"gain": Force, "rate": None, "inverse": None},
    nc={"seen": SE3, "goal": Motion, "push": Force, "miss": Motion},
    nt={"tie": Six},
    nd={"tie_gain": Force},
)  # fmt: skip


@constrained(
    SUPPORTS,
    TIES,
    inputs={"q": "nq", "v": "nv", "tau": "nv", "active": "nc =1", "target": "nm =0", "start": "nm =0"},
    outputs={"a": "nv", "forces": "nm", "report": "5"},
    work=WORK,
    inverts_inertia=True,
    own_code=HEAVY,
)
def _loop_aba(tree, q, v, tau, active, target, start, w, a, forces, report):
    o = zero(q)
    move_bodies(tree, q, v, w)
    aim(tree, active, target, start, w)
    tie_bodies(tree, active, w)
    eliminate(tree, q, w)
    for k in range(tree.nv):
        st(a, k, o)
    for c in range(tree.nc):
        w.miss[c] = (seen_motion(tree, c, w.acceleration, w) - w.goal[c]) * ld(active, c)
    residual, change, count, near, going = no_rows(o), no_rows(o), o, o, less(-1.0, o)
    step, before = lift(1e300, o), lift(1e300, o)
    for _ in range(tree.most_iterations[0]):
        if not some(going):
            break
        alive = select(going, lift(1.0, o), o)
        push_back(tree, q, tau, alive, w, a)
        stepped, near = take_step(tree, q, w, a)
        newer, moved = measure(tree, active, alive, w)
        residual, change = select_rows(going, newer, residual), select_rows(going, moved, change)
        before, step, count = select(going, step, before), select(going, stepped, step), count + alive
        going = goes_on(tree, residual, change, step, before, limit(tree, near))
    for c in range(tree.nc):
        store_rows(tree, c, w.push[c], forces)
    residual, error = larger(residual, rounded(tree, near)), remaining(tree, step, before)
    conclude(tree, count, residual, change, error, limit(tree, near), report)


@kernel
def move_bodies(tree, q, v, w):
    """To the leaves: placements about the origin of the first body, velocities, accelerations while joints have none."""
    o, g = zero(q), tree.gravity[0]
    none, one = Vec3(o, o, o), lift(1.0, o)
    X0 = SE3(Mat3(one, o, o, o, one, o, o, o, one), none)
    if tree.nj > 1:
        X0 = SE3(X0.R, -joint_placement(tree, 1, q, Vec2(one, o)).p)
    w.place[0], w.velocity[0], w.change[0] = X0, Motion(none, none), Motion(none, none)
    w.acceleration[0] = Motion(Vec3(o - g.x, o - g.y, o - g.z), none)
    for i in range(1, tree.nj):
        turn, parent = joint_turn(tree, i, q), tree.parent[i]
        X = joint_placement(tree, i, q, turn)
        velocity = add_motion(tree, i, act_inv(X, w.velocity[parent]), v)
        w.acceleration[i] = act_inv(X, w.acceleration[parent]) + carried(tree, i, velocity, v)
        w.turn[i], w.velocity[i], w.inertia[i] = turn, velocity, as_sym6(tree.inertia[i], o)
        if tree.supports[i]:
            w.place[i] = w.place[parent] @ X


@kernel
def aim(tree, active, target, start, w):
    """How each constraint sees its bodies, and what it asks of those that move."""
    o = zero(active)
    for c in range(tree.nc):
        a, b, P = tree.body_a[c], tree.body_b[c], tree.place_a[c]
        A, B = w.place[a] @ P, w.place[b] @ tree.place_b[c]
        seen = inverse(A) @ w.place[b]
        va = act_inv(P, w.velocity[a])
        if tree.point[c]:  # body b at the origin of B
            seen = SE3(seen.R, -(seen.R @ tree.place_b[c].p))
            vb = act_inv(tree.place_b[c], w.velocity[b])
            turning = seen.R @ (tree.place_b[c].R @ cross(vb.ang, vb.lin))
            drift = Motion(cross(va.ang, va.lin) - turning, Vec3(o, o, o))
        else:
            drift = cross_motion(va, act(seen, w.velocity[b]))
        rate = va - act(seen, w.velocity[b])
        goal = load_rows(tree, c, target, o) - rate * tree.kd[c] - drift
        if tree.pulled[0]:
            goal = goal + separation(tree, c, inverse(A) @ B) * tree.kp[c]
        if b == 0:
            goal = goal + act(seen, w.acceleration[0])
        if a == 0:
            goal = goal - act_inv(P, w.acceleration[0])
        w.seen[c], w.goal[c] = seen, goal
        w.push[c] = as_force(load_rows(tree, c, start, o)) * ld(active, c)


@kernel
def tie_bodies(tree, active, w):
    """Add the constraints to the inertias of their bodies, and tie these."""
    o = zero(active)
    none = Force(Vec3(o, o, o), Vec3(o, o, o))
    for t in range(tree.nt):
        w.tie[t] = Six(none, none, none, none, none, none)
    for c in range(tree.nc):
        a, on = tree.body_a[c], ld(active, c)
        w.inertia[a] = w.inertia[a] + scaled(tree.stiffness[c], on)
        if tree.body_b[c] > 0:
            tie_rows(tree, c, on, w)


@kernel
def tie_rows(tree, c, on, w):
    """The inertia that a constraint adds to body b, and the tie with body a."""
    o, b = zero(w.rate), tree.body_b[c]
    for r in range(tree.first_row[c], tree.end_row[c]):
        unit = as_force(add_along(Motion(Vec3(o, o, o), Vec3(o, o, o)), tree.row_axis[r], lift(1.0, o)))
        on_a, on_b, weight = act_force(tree.place_a[c], unit), act_force_inv(w.seen[c], unit), on / tree.mu[r]
        w.inertia[b] = without(w.inertia[b], on_b, on_b * -weight)
        t = tree.tie[c]
        if t >= 0:
            if tree.swapped[c]:
                w.tie[t] = less_product(w.tie[t], on_b * weight, on_a)
            else:
                w.tie[t] = less_product(w.tie[t], on_a * weight, on_b)


@kernel
def eliminate(tree, q, w):
    """To the root: joints are eliminated, from inertias and ties."""
    for i in range(tree.nj - 1, 0, -1):
        parent, I = tree.parent[i], w.inertia[i]
        for k in range(tree.end[i] - 1, tree.iv[i] - 1, -1):
            u = column(I, tree.axis[k])
            gain, inverse, I = set_free(tree, k, I)
            w.gain[k], w.inverse[k] = gain, inverse
            free_ties(tree, i, k, u, inverse, w)
        if parent > 0:
            X = joint_placement(tree, i, q, w.turn[i])
            w.inertia[parent] = w.inertia[parent] + act_sym6(X, I)
            for t in range(tree.first_tie[i], tree.end_tie[i]):
                take_over(tree, t, parent, act_six(X, w.tie[t]), w)


@kernel
def free_ties(tree, i, k, u, inverse, w):
    """Degree of freedom k moves freely: what it takes out of all that body i is tied to."""
    first, gains, pair = tree.first_tie[i], first_gain(tree, i, k), tree.first_pair[i]
    for t in range(first, tree.end_tie[i]):
        j, share = tree.tied[t], row(w.tie[t], tree.axis[k])
        gain = share * inverse
        w.tie_gain[gains + t] = gain
        w.tie[t] = less_product(w.tie[t], u, gain)
        w.inertia[j] = without(w.inertia[j], share, gain)
        for s in range(first, t):
            w.tie[tree.pair[pair]] = less_product(w.tie[tree.pair[pair]], share, w.tie_gain[gains + s])
            pair += 1


@kernel
def first_gain(tree, i, k):
    """Where the gains of degree of freedom k through the ties of body i are, less the number of the first tie."""
    first = tree.first_tie[i]
    return tree.first_gain[i] + (k - tree.iv[i]) * (tree.end_tie[i] - first) - first


@kernel
def take_over(tree, t, parent, tie, w):
    """The parent takes the place of the body that went."""
    if tree.tied[t] == parent:
        w.inertia[parent] = w.inertia[parent] + symmetric_part(tie)
    elif tree.turned_over[t]:
        w.tie[tree.moved[t]] = w.tie[tree.moved[t]] + transposed(tie)
    else:
        w.tie[tree.moved[t]] = w.tie[tree.moved[t]] + tie


@kernel
def seen_motion(tree, c, motions, w):
    """What constraint c sees of the motions of its bodies; the world has none."""
    a, b = tree.body_a[c], tree.body_b[c]
    if a == 0 and b == 0:
        return w.change[0]
    if a == 0:
        return -act(w.seen[c], motions[b])
    if b == 0:
        return act_inv(tree.place_a[c], motions[a])
    return act_inv(tree.place_a[c], motions[a]) - act(w.seen[c], motions[b])


@kernel
def push_back(tree, q, tau, alive, w, a):
    """To the root: what is left of the equations of motion, and the torques that it asks of joints."""
    for i in range(1, tree.nj):
        w.force[i] = force_of(tree.inertia[i], w.velocity[i], w.acceleration[i])
    for c in range(tree.nc):
        i, j, push = tree.body_a[c], tree.body_b[c], w.push[c] - weighted(tree, c, w.miss[c], lift(1.0, alive))
        w.force[i] = w.force[i] - act_force(tree.place_a[c], push)
        w.force[j] = w.force[j] + act_force_inv(w.seen[c], push)
    for i in range(tree.nj - 1, 0, -1):
        f, parent = w.force[i], tree.parent[i]
        for k in range(tree.end[i] - 1, tree.iv[i] - 1, -1):
            torque = ld(tau, k) - tree.armature[k] * ld(a, k) - component(f, tree.axis[k])
            f = f + w.gain[k] * torque
            w.rate[k] = w.inverse[k] * torque * alive
            for t in range(tree.first_tie[i], tree.end_tie[i]):
                j = tree.tied[t]
                w.force[j] = w.force[j] + w.tie_gain[first_gain(tree, i, k) + t] * torque
        if parent > 0:
            w.force[parent] = w.force[parent] + act_force(joint_placement(tree, i, q, w.turn[i]), f)


@kernel
def take_step(tree, q, w, a):
    """To the leaves: steps of accelerations; returns the largest by their size, and that of joints which move
    a constraint."""
    sizes = least_sizes(tree, zero(q))
    for i in range(1, tree.nj):
        change = act_inv(joint_placement(tree, i, q, w.turn[i]), w.change[tree.parent[i]])
        for k in range(tree.iv[i], tree.end[i]):
            rate = w.rate[k] - power(change, w.gain[k])
            for t in range(tree.first_tie[i], tree.end_tie[i]):
                rate = rate - power(w.change[tree.tied[t]], w.tie_gain[first_gain(tree, i, k) + t])
            joint = ld(a, k) + rate
            st(a, k, joint)
            change = add_along(change, tree.axis[k], rate)
            sizes = sized(tree, k, rate, joint, sizes)
        w.change[i], w.acceleration[i] = change, w.acceleration[i] + change
    return relative_step(sizes), sizes.near


@kernel
def measure(tree, active, alive, w):
    """Forces follow what is left of the constraints; returns the largest of it, and of how much it changed."""
    residual = largest = no_rows(zero(active))
    for c in range(tree.nc):
        moved = seen_motion(tree, c, w.change, w) * ld(active, c)
        miss = w.miss[c] + moved
        w.miss[c], w.push[c] = miss, w.push[c] - weighted(tree, c, miss, alive)
        residual, largest = largest_row(tree, c, miss, residual), largest_row(tree, c, moved, largest)
    return residual, largest
