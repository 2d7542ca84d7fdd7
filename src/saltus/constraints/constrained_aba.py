"""Constrained forward dynamics by the constrained articulated body algorithm.

    min_a  1/2 |a - a_free|_M^2   subject to   K_c a_c = k_c

The augmented Lagrangian absorbs a constraint into the inertia and the force of the body it holds, which leaves the
articulated body algorithm as it is: three sweeps for the first iteration. A further one changes forces only, so it sends
what is left of the equations of motion through two short sweeps over the bodies that support constraints. O(n + m). Where
the parent is the body just before, its quantities are still at hand and do not go through memory, as in aba.py.

| paper | code | what | frame |
|---|---|---|---|
| K_i^T R_E^-1 K_i | `stiffness` | what a constraint adds to the inertia of its body, constant there | body |
| k_i | `goal` | acceleration asked of frame A, gravity taken as an acceleration of the world | A |
| lambda_i | `-push` | multiplier; `push` is the force that acts on the body | A |
| K_i a_i - k_i | `miss` | what is left of the constraint | A |
| H_i^A, f_i^A | `I`, `-f` | articulated inertia and force | body |
| D_i^-1 | `inverse` | of a degree of freedom's pivot | |
| Delta f_i | `-f` in `push_back` | what is left of the equations of motion under the new forces | body |
| a_i | `bias` + `acceleration` | of body i: what it is while no joint accelerates, and the rest (aba.py) | body |
| nu-dot_i | `joint`, then `a` | accelerations of the joints; GPUs write results once, as their rows lie apart | |
| | `light` | inertia of a body with all that hangs on it and supports no constraint | body |
| | `needed` | the force that these need: first their bias, without acceleration, then for the one they have | body |

Reference: A. Sathya, J. Carpentier, Constrained articulated body dynamics algorithms, algorithms 1 to 3; 1 / mu stands
for its mu. Here, further iterations send steps of accelerations outwards, and look at what the equations of motion
themselves leave: inertias as large as 1 / mu leave errors of that size times those of rounding, which the next step takes
away and shows (convergence.py). Loops: loop_aba.py.
"""

from __future__ import annotations

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
from saltus.constraints.measure import contact_goal, largest_row, load_rows, store_rows, weighted
from saltus.constraints.tables import SUPPORTS, constrained
from saltus.kernel import Layout, kernel, ld, lift, select, some, st, zero
from saltus.model.joint_kernels import add_along, add_motion, carried, component, joint_placement, joint_turn, set_free
from saltus.model.tree import HEAVY
from saltus.spatial.algebra import (
    SE3,
    Force,
    Mat3,
    Motion,
    Vec2,
    Vec3,
    act_force,
    act_inv,
    power,
    turn_back,
)
from saltus.spatial.inertia import Sym6, act_sym6, add_rigid, as_sym6, force_of, scaled

WORK = Layout(
    nj={"turn": Vec2, "velocity": Motion, "bias": Motion, "fall": Vec3, "inertia": Sym6, "force": Force,
        "acceleration": Motion, "change": Motion, "place": SE3, "light": Sym6, "needed": Force},
    nv={"gain": Force, "rate": None, "inverse": None, "joint": None},
    nc={"goal": Motion, "push": Force, "miss": Motion},
)  # fmt: skip


@constrained(
    SUPPORTS,
    inputs={"q": "nq", "v": "nv", "tau": "nv", "active": "nc =1", "target": "nm =0", "start": "nm =0"},
    outputs={"a": "nv", "forces": "nm", "report": "5"},
    work=WORK,
    inverts_inertia=True,
    own_code=HEAVY,
    waiting="needed turn joint",
)
def _constrained_aba(tree, q, v, tau, active, target, start, w, a, forces, report):
    o = zero(q)
    place_and_aim(tree, q, v, active, target, start, w)
    collect(tree, q, tau, active, w)
    residual, near = roll_out(tree, q, active, w)
    step, before, change, count = o + 1.0, lift(1e300, o), no_rows(lift(1e300, o)), o + 1.0
    going = goes_on(tree, residual, change, step, before, limit(tree, near))
    for _ in range(1, tree.most_iterations[0]):
        if not some(going):
            break
        alive = select(going, lift(1.0, o), o)
        push_back(tree, q, tau, alive, w)
        newer, moved, stepped, near = pass_on(tree, q, active, w)
        residual, change = select_rows(going, newer, residual), select_rows(going, moved, change)
        before, step, count = select(going, step, before), select(going, stepped, step), count + alive
        going = goes_on(tree, residual, change, step, before, limit(tree, near))
    finish(tree, q, w)
    for k in range(tree.nv):
        st(a, k, w.joint[k])
    for c in range(tree.nc):  # the multipliers that belong to these accelerations
        store_rows(tree, c, w.push[c] - weighted(tree, c, w.miss[c], lift(1.0, o)), forces)
    residual, error = larger(residual, rounded(tree, near)), remaining(tree, step, before)
    conclude(tree, count, residual, change, error, limit(tree, near), report)


@kernel
def place_and_aim(tree, q, v, active, target, start, w):
    """To the leaves: velocities, accelerations while joints have none, and what the constraints ask for beyond these."""
    o, g = zero(q), tree.gravity[0]
    none, one = Vec3(o, o, o), lift(1.0, o)
    velocity, fall = Motion(none, none), Vec3(o + g.x, o + g.y, o + g.z)
    bias, X0 = Motion(-fall, none), SE3(Mat3(one, o, o, o, one, o, o, o, one), none)
    w.velocity[0], w.bias[0], w.fall[0], w.place[0] = velocity, bias, fall, X0
    w.acceleration[0] = w.change[0] = velocity
    aim_held(tree, 0, active, target, start, velocity, bias, fall, X0, w)
    for i in range(1, tree.nj):
        turn = joint_turn(tree, i, q)
        X = joint_placement(tree, i, q, turn)
        if tree.parent[i] != i - 1:
            velocity, bias, fall = w.velocity[tree.parent[i]], w.bias[tree.parent[i]], w.fall[tree.parent[i]]
        velocity = add_motion(tree, i, act_inv(X, velocity), v)
        bias = act_inv(X, bias) + carried(tree, i, velocity, v)
        fall = turn_back(X.R, fall)
        w.turn[i], w.velocity[i], w.bias[i] = turn, velocity, bias
        if tree.fork[i]:
            w.fall[i] = fall
        if tree.pulled[0]:
            X0 = w.place[tree.parent[i]] @ X
            w.place[i] = X0
        aim_held(tree, i, active, target, start, velocity, bias, fall, X0, w)


@kernel
def aim_held(tree, i, active, target, start, velocity, bias, fall, X0, w):
    """What the contacts that body i has ask for, and the forces that they start from."""
    o, c = zero(start), tree.held[i]
    while c >= 0:
        goal = contact_goal(tree, c, load_rows(tree, c, target, o), velocity, fall, X0)
        w.goal[c] = goal - act_inv(tree.place_a[c], bias)
        w.push[c] = as_force(load_rows(tree, c, start, o)) * ld(active, c)
        c = tree.next_held[c]


@kernel
def as_force(m):
    return Force(m.lin, m.ang)


@kernel
def collect(tree, q, tau, active, w):
    """To the root: articulated inertias and bias forces, with those of the constraints."""
    o = zero(q)
    none, empty = Force(Vec3(o, o, o), Vec3(o, o, o)), as_sym6(tree.inertia[0], o)
    I, f = empty, none
    for i in range(tree.nj - 1, 0, -1):
        body, parent, turn = tree.inertia[i], tree.parent[i], w.turn[i]
        if tree.supports[i]:
            I, f = with_constraints(tree, i, I, f, active, w)
        else:
            if tree.leaf[i]:
                I, f = as_sym6(body, o), none
            else:
                if tree.parent[i + 1] != i:
                    I, f = w.inertia[i], w.force[i]
                I = add_rigid(I, body)
            f = f + force_of(body, w.velocity[i], w.bias[i])
        for k in range(tree.end[i] - 1, tree.iv[i] - 1, -1):
            axis = tree.axis[k]
            gain, inverse, I = set_free(tree, k, I)
            torque = ld(tau, k) - component(f, axis)
            f = f + gain * torque
            w.gain[k], w.rate[k], w.inverse[k] = gain, inverse * torque, inverse
        if parent > 0:
            X = joint_placement(tree, i, q, turn)
            I, f = act_sym6(X, I), act_force(X, f)
            if tree.supports[parent] and not tree.supports[i]:
                if not tree.last_end[i]:
                    I, f = I + w.light[parent], f + w.needed[parent]
                w.light[parent], w.needed[parent] = I, f
            else:
                if not (tree.last_held[i] or (tree.last_end[i] and not tree.supports[i])):
                    I, f = I + w.inertia[parent], f + w.force[parent]
                if parent != i - 1:
                    w.inertia[parent], w.force[parent] = I, f


@kernel
def with_constraints(tree, i, I, f, active, w):
    """Inertia and bias force of a body that supports constraints, by those of its children that do (at hand if `near`)."""
    body = tree.inertia[i]
    needed = force_of(body, w.velocity[i], w.bias[i])
    own = as_sym6(body, needed.lin.x)
    if tree.ends[i]:
        own, needed = add_rigid(w.light[i], body), needed + w.needed[i]
        w.light[i] = own
    w.needed[i] = needed
    if not tree.inner[i]:
        I, f = own, needed
    else:
        if not tree.near[i]:
            I, f = w.inertia[i], w.force[i]
        I, f = I + own, f + needed
    c = tree.held[i]
    while c >= 0:
        on = ld(active, c)
        I = I + scaled(tree.stiffness[c], on)
        f = f - act_force(tree.place_a[c], weighted(tree, c, w.goal[c], on) + w.push[c])
        c = tree.next_held[c]
    return I, f


@kernel
def accelerate(tree, i, q, before, w):
    """The acceleration of body i, and of its joint, by that of its parent."""
    acceleration = act_inv(joint_placement(tree, i, q, w.turn[i]), before)
    for k in range(tree.iv[i], tree.end[i]):
        rate = w.rate[k] - power(acceleration, w.gain[k])
        w.joint[k] = rate
        acceleration = add_along(acceleration, tree.axis[k], rate)
    return acceleration


@kernel
def roll_out(tree, q, active, w):
    """To the leaves, over the bodies that support constraints: accelerations; returns what is left of the constraints, and
    the largest acceleration of a joint that moves one."""
    residual, sizes, acceleration = no_rows(zero(q)), least_sizes(tree, zero(q)), w.acceleration[0]
    residual = measure_held(tree, 0, acceleration, active, residual, w)
    for i in range(1, tree.nj):
        if tree.supports[i]:
            if tree.parent[i] != i - 1:
                acceleration = w.acceleration[tree.parent[i]]
            acceleration = accelerate(tree, i, q, acceleration, w)
            w.acceleration[i], w.needed[i] = acceleration, w.needed[i] + push_for(tree, i, acceleration, w)
            residual = measure_held(tree, i, acceleration, active, residual, w)
            for k in range(tree.iv[i], tree.end[i]):
                sizes = sized(tree, k, w.joint[k], w.joint[k], sizes)
    return residual, sizes.near


@kernel
def measure_held(tree, i, acceleration, active, residual, w):
    """What the acceleration of body i leaves of the contacts that it has; returns the largest rows of it, and of others."""
    c = tree.held[i]
    while c >= 0:
        miss = (act_inv(tree.place_a[c], acceleration) - w.goal[c]) * ld(active, c)
        w.miss[c], residual = miss, largest_row(tree, c, miss, residual)
        c = tree.next_held[c]
    return residual


@kernel
def push_back(tree, q, tau, alive, w):
    """To the root: forces follow what is left of the constraints; what these and accelerations leave of the equations of
    motion reaches all supporting joints."""
    o = zero(q)
    f = Force(Vec3(o, o, o), Vec3(o, o, o))
    for i in range(tree.nj - 1, 0, -1):
        if tree.supports[i]:
            turn, needed = w.turn[i], w.needed[i]  # memory is far from GPUs: it is asked early
            if not tree.inner[i]:
                f = needed
            elif tree.near[i]:
                f = f + needed
            else:
                f = w.force[i] + needed
            f = push_held(tree, i, f, alive, w)
            for k in range(tree.end[i] - 1, tree.iv[i] - 1, -1):
                torque = component(f, tree.axis[k]) + tree.armature[k] * w.joint[k] - ld(tau, k)
                f = f - w.gain[k] * torque
                w.rate[k] = -(w.inverse[k] * torque * alive)
            parent = tree.parent[i]
            if parent > 0:
                f = act_force(joint_placement(tree, i, q, turn), f)
                if not tree.last_held[i]:
                    f = f + w.force[parent]
                if parent != i - 1:
                    w.force[parent] = f
    push_held(tree, 0, f, alive, w)


@kernel
def push_held(tree, i, f, alive, w):
    """Forces of the contacts that body i has follow what is left of them; returns f with them."""
    c = tree.held[i]
    while c >= 0:
        step = weighted(tree, c, w.miss[c], alive)
        w.push[c] = w.push[c] - step
        f = f - act_force(tree.place_a[c], w.push[c] - step)
        c = tree.next_held[c]
    return f


@kernel
def push_for(tree, i, acceleration, w):
    """The force that accelerates body i, and what hangs on it."""
    if tree.ends[i]:
        return w.light[i] @ acceleration
    return tree.inertia[i] @ acceleration


@kernel
def pass_on(tree, q, active, w):
    """To the leaves: steps of accelerations; returns what they leave of the constraints, how much of it changed, the largest
    step by the size of accelerations, and that of joints which move a constraint."""
    residual = largest = no_rows(zero(q))
    sizes, change = least_sizes(tree, zero(q)), w.change[0]
    residual, largest = change_held(tree, 0, change, active, residual, largest, w)
    for i in range(1, tree.nj):
        if tree.supports[i]:
            turn, needed = w.turn[i], w.needed[i]
            if tree.parent[i] != i - 1:
                change = w.change[tree.parent[i]]
            change = act_inv(joint_placement(tree, i, q, turn), change)
            for k in range(tree.iv[i], tree.end[i]):
                rate = w.rate[k] - power(change, w.gain[k])
                joint = w.joint[k] + rate
                w.joint[k], change = joint, add_along(change, tree.axis[k], rate)
                sizes = sized(tree, k, rate, joint, sizes)
            if tree.fork_held[i]:
                w.change[i] = change
            w.needed[i] = needed + push_for(tree, i, change, w)
            if tree.ends[i]:
                w.acceleration[i] = w.acceleration[i] + change
            residual, largest = change_held(tree, i, change, active, residual, largest, w)
    return residual, largest, relative_step(sizes), sizes.near


@kernel
def change_held(tree, i, change, active, residual, largest, w):
    """The same of the contacts that body i has, by a step of its acceleration; returns the largest rows, and changes."""
    c = tree.held[i]
    while c >= 0:
        moved = act_inv(tree.place_a[c], change) * ld(active, c)
        miss = w.miss[c] + moved
        w.miss[c], residual = miss, largest_row(tree, c, miss, residual)
        largest = largest_row(tree, c, moved, largest)
        c = tree.next_held[c]
    return residual, largest


@kernel
def finish(tree, q, w):
    """To the leaves, over the bodies that support nothing."""
    acceleration = w.acceleration[0]
    for i in range(1, tree.nj):
        if not tree.supports[i]:
            parent = tree.parent[i]
            if parent != i - 1 or tree.supports[parent]:
                acceleration = w.acceleration[parent]
            acceleration = accelerate(tree, i, q, acceleration, w)
            if not tree.leaf[i]:
                w.acceleration[i] = acceleration
