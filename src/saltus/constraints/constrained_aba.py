"""Constrained forward dynamics by the constrained articulated body algorithm.

    min_a  1/2 |a - a_free|_M^2   subject to   K_c a_c = k_c

The augmented Lagrangian absorbs a constraint into the inertia and the force of the body it holds, which leaves the
articulated body algorithm as it is: three sweeps for the first iteration. A further one changes forces only, so it sends the
differences through two short sweeps over the bodies that support constraints. O(n + m). Where the parent is the body just
before, its quantities are still at hand and do not go through memory, as in aba.py.

| paper | code | what | frame |
|---|---|---|---|
| K_i^T R_E^-1 K_i | `stiffness` | what a constraint adds to the inertia of its body, constant there | body |
| k_i | `goal` | acceleration asked of frame A, gravity taken as an acceleration of the world | A |
| lambda_i | `-push` | multiplier; `push` is the force that acts on the body | A |
| K_i a_i - k_i | `miss` | what is left of the constraint | A |
| H_i^A, f_i^A | `I`, `-f` | articulated inertia and force | body |
| D_i^-1 | `inverse` | of a degree of freedom's pivot | |
| Delta f_i | `-f` in `push_back` | change of force between two iterations | body |
| nu-dot_i | `joint`, then `a` | accelerations of the joints; GPUs write results once, as their rows lie apart | |
| | `light`, `bias` | inertia and bias force of a body with all that hangs on it and supports no constraint | body |

Reference: A. Sathya, J. Carpentier, Constrained articulated body dynamics algorithms, algorithms 1 to 3; 1 / mu stands
for its mu. Here, the second and further iterations send differences of accelerations outwards, too; and the second
looks at what the equations of motion themselves leave, since inertias as large as 1 / mu leave errors of that size
times those of rounding. Loops: loop_aba.py.
"""

from __future__ import annotations

from saltus.constraints.measure import contact_goal, largest_row, load_rows, store_rows, weighted
from saltus.constraints.tables import constrained
from saltus.kernel import Layout, kernel, ld, less, lift, minimum, select, some, st, zero
from saltus.model.joint_kernels import add_along, add_motion, carried, component, joint_placement, joint_turn
from saltus.spatial.algebra import (
    SE3,
    Force,
    Mat3,
    Motion,
    Vec2,
    Vec3,
    act_force,
    act_inv,
    cross_force,
    power,
    turn_back,
)
from saltus.spatial.inertia import Sym6, act_sym6, add_rigid, as_sym6, column, scaled, without

WORK = Layout(
    nj={"turn": Vec2, "velocity": Motion, "fall": Vec3, "inertia": Sym6, "force": Force, "acceleration": Motion,
        "change": Motion, "place": SE3, "light": Sym6, "bias": Force},
    nv={"gain": Force, "rate": None, "inverse": None, "joint": None},
    nc={"goal": Motion, "push": Force, "miss": Motion},
)  # fmt: skip


@constrained(
    inputs={"q": "nq", "v": "nv", "tau": "nv", "active": "nc", "target": "nm", "start": "nm"},
    outputs={"a": "nv", "forces": "nm", "report": "3"},
    work=WORK,
    inverts_inertia=True,
)
def _constrained_aba(tree, q, v, tau, active, target, start, w, a, forces, report):
    o = zero(q)
    place_and_aim(tree, q, v, active, target, start, w)
    collect(tree, q, v, tau, active, w)
    residual, change = roll_out(tree, q, v, active, w), lift(1e300, o)

    tolerance, count, going = tree.tolerance[0], o + 1.0, less(tree.tolerance[0], residual)
    for n in range(1, tree.most_iterations[0]):
        if some(going):
            alive = select(going, lift(1.0, o), o)
            push_back(tree, q, tau, n == 1, alive, w)
            newer, moved = pass_on(tree, q, active, w)
            residual, change = select(going, newer, residual), select(going, moved, change)
            count = count + alive
            going = less(tolerance, minimum(residual, change))
    finish(tree, q, v, w)
    for k in range(tree.nv):
        st(a, k, w.joint[k])
    for c in range(tree.nc):  # the multipliers that belong to these accelerations
        store_rows(tree, c, w.push[c] - weighted(tree, c, w.miss[c], lift(1.0, o)), forces)
    st(report, 0, count)
    st(report, 1, residual)
    st(report, 2, change)


@kernel
def place_and_aim(tree, q, v, active, target, start, w):
    """To the leaves: velocities, and what the constraints ask for."""
    o, g = zero(q), tree.gravity[0]
    none, one = Vec3(o, o, o), lift(1.0, o)
    velocity, fall = Motion(none, none), Vec3(o + g.x, o + g.y, o + g.z)
    X0 = SE3(Mat3(one, o, o, o, one, o, o, o, one), none)
    w.velocity[0], w.fall[0], w.acceleration[0] = velocity, fall, Motion(-fall, none)
    w.change[0], w.place[0] = velocity, X0
    for i in range(1, tree.nj):
        turn = joint_turn(tree, i, q)
        X = joint_placement(tree, i, q, turn)
        if tree.parent[i] != i - 1:
            velocity, fall = w.velocity[tree.parent[i]], w.fall[tree.parent[i]]
        velocity = add_motion(tree, i, act_inv(X, velocity), v)
        fall = turn_back(X.R, fall)
        w.turn[i], w.velocity[i] = turn, velocity
        if tree.fork[i]:
            w.fall[i] = fall
        if tree.pulled[0]:
            X0 = w.place[tree.parent[i]] @ X
            w.place[i] = X0
        c = tree.held[i]
        while c >= 0:
            w.goal[c] = contact_goal(tree, c, load_rows(tree, c, target, o), velocity, fall, X0)
            w.push[c] = as_force(load_rows(tree, c, start, o)) * ld(active, c)
            c = tree.next_held[c]


@kernel
def as_force(m):
    return Force(m.lin, m.ang)


@kernel
def collect(tree, q, v, tau, active, w):
    """To the root: articulated inertias and bias forces, with those of the constraints."""
    o = zero(q)
    none, empty = Force(Vec3(o, o, o), Vec3(o, o, o)), as_sym6(tree.inertia[0], o)
    I, f = empty, none
    for i in range(tree.nj - 1, 0, -1):
        body, parent, velocity = tree.inertia[i], tree.parent[i], w.velocity[i]
        if tree.supports[i]:
            I, f = with_constraints(tree, i, I, f, active, w)
        else:
            if tree.leaf[i]:
                I, f = as_sym6(body, o), none
            else:
                if tree.parent[i + 1] != i:
                    I, f = w.inertia[i], w.force[i]
                I = add_rigid(I, body)
            f = f + cross_force(velocity, body @ velocity)
        for k in range(tree.end[i] - 1, tree.iv[i] - 1, -1):
            axis = tree.axis[k]
            u = column(I, axis)
            inverse = 1.0 / (component(u, axis) + tree.armature[k])
            gain, torque = u * inverse, ld(tau, k) - component(f, axis)
            I, f = without(I, u, gain), f + gain * torque
            w.gain[k], w.rate[k], w.inverse[k] = gain, inverse * torque, inverse
        if parent > 0:
            X = joint_placement(tree, i, q, w.turn[i])
            I, f = act_sym6(X, I), act_force(X, f + I @ carried(tree, i, velocity, v))
            if tree.supports[parent] and not tree.supports[i]:
                if not tree.last_end[i]:
                    I, f = I + w.light[parent], f + w.bias[parent]
                w.light[parent], w.bias[parent] = I, f
            else:
                if not (tree.last_held[i] or (tree.last_end[i] and not tree.supports[i])):
                    I, f = I + w.inertia[parent], f + w.force[parent]
                if parent != i - 1:
                    w.inertia[parent], w.force[parent] = I, f


@kernel
def with_constraints(tree, i, I, f, active, w):
    """Inertia and bias force of a body that supports constraints, by those of its children that do (at hand if `near`)."""
    body, velocity = tree.inertia[i], w.velocity[i]
    own, bias = as_sym6(body, velocity.lin.x), cross_force(velocity, body @ velocity)
    if tree.ends[i]:
        own, bias = add_rigid(w.light[i], body), bias + w.bias[i]
        w.light[i] = own
    w.bias[i] = bias
    if not tree.inner[i]:
        I, f = own, bias
    else:
        if not tree.near[i]:
            I, f = w.inertia[i], w.force[i]
        I, f = I + own, f + bias
    c = tree.held[i]
    while c >= 0:
        on = ld(active, c)
        I = I + scaled(tree.stiffness[c], on)
        f = f - act_force(tree.place_a[c], weighted(tree, c, w.goal[c], on) + w.push[c])
        c = tree.next_held[c]
    return I, f


@kernel
def accelerate(tree, i, q, v, before, w):
    """The acceleration of body i, and of its joint, by that of its parent."""
    X = joint_placement(tree, i, q, w.turn[i])
    acceleration = act_inv(X, before) + carried(tree, i, w.velocity[i], v)
    for k in range(tree.iv[i], tree.end[i]):
        rate = w.rate[k] - power(acceleration, w.gain[k])
        w.joint[k] = rate
        acceleration = add_along(acceleration, tree.axis[k], rate)
    return acceleration


@kernel
def roll_out(tree, q, v, active, w):
    """To the leaves, over the bodies that support constraints: accelerations; returns what is left of the constraints."""
    residual, acceleration = zero(q), w.acceleration[0]
    for i in range(1, tree.nj):
        if tree.supports[i]:
            if tree.parent[i] != i - 1:
                acceleration = w.acceleration[tree.parent[i]]
            acceleration = accelerate(tree, i, q, v, acceleration, w)
            w.acceleration[i] = acceleration
            c = tree.held[i]
            while c >= 0:
                miss = (act_inv(tree.place_a[c], acceleration) - w.goal[c]) * ld(active, c)
                w.miss[c], residual = miss, largest_row(tree, c, miss, residual)
                c = tree.next_held[c]
    return residual


@kernel
def push_back(tree, q, tau, whole, alive, w):
    """To the root: forces follow what is left of the constraints, and their changes reach all supporting joints; or the
    whole of what is left of the equations of motion does."""
    o = zero(q)
    none = Force(Vec3(o, o, o), Vec3(o, o, o))
    f = none
    for i in range(tree.nj - 1, 0, -1):
        if tree.supports[i]:
            if not tree.inner[i]:
                f = none
            elif not tree.near[i]:
                f = w.force[i]
            if whole:
                f = f + unbalanced(tree, i, w)
            c = tree.held[i]
            while c >= 0:
                step = weighted(tree, c, w.miss[c], alive)
                w.push[c] = w.push[c] - step
                push = step - w.push[c] if whole else step
                f = f + act_force(tree.place_a[c], push)
                c = tree.next_held[c]
            for k in range(tree.end[i] - 1, tree.iv[i] - 1, -1):
                torque = component(f, tree.axis[k])
                if whole:
                    torque = (torque + tree.armature[k] * w.joint[k] - ld(tau, k)) * alive
                f = f - w.gain[k] * torque
                w.rate[k] = -(w.inverse[k] * torque)
            parent = tree.parent[i]
            if parent > 0:
                f = act_force(joint_placement(tree, i, q, w.turn[i]), f)
                if not tree.last_held[i]:
                    f = f + w.force[parent]
                if parent != i - 1:
                    w.force[parent] = f


@kernel
def unbalanced(tree, i, w):
    """The force that body i, and what hangs on it, needs for its acceleration."""
    if tree.ends[i]:
        return w.light[i] @ w.acceleration[i] + w.bias[i]
    return tree.inertia[i] @ w.acceleration[i] + w.bias[i]


@kernel
def pass_on(tree, q, active, w):
    """To the leaves: changes of accelerations; returns what is left of the constraints, and how much of it changed."""
    residual = largest = zero(q)
    change = w.change[0]
    for i in range(1, tree.nj):
        if tree.supports[i]:
            if tree.parent[i] != i - 1:
                change = w.change[tree.parent[i]]
            change = act_inv(joint_placement(tree, i, q, w.turn[i]), change)
            for k in range(tree.iv[i], tree.end[i]):
                rate = w.rate[k] - power(change, w.gain[k])
                w.joint[k] = w.joint[k] + rate
                change = add_along(change, tree.axis[k], rate)
            if tree.fork_held[i]:
                w.change[i] = change
            if tree.ends[i]:
                w.acceleration[i] = w.acceleration[i] + change
            c = tree.held[i]
            while c >= 0:
                step = act_inv(tree.place_a[c], change) * ld(active, c)
                miss = w.miss[c] + step
                w.miss[c], residual = miss, largest_row(tree, c, miss, residual)
                largest = largest_row(tree, c, step, largest)
                c = tree.next_held[c]
    return residual, largest


@kernel
def finish(tree, q, v, w):
    """To the leaves, over the bodies that support nothing."""
    acceleration = w.acceleration[0]
    for i in range(1, tree.nj):
        if not tree.supports[i]:
            parent = tree.parent[i]
            if parent != i - 1 or tree.supports[parent]:
                acceleration = w.acceleration[parent]
            acceleration = accelerate(tree, i, q, v, acceleration, w)
            if not tree.leaf[i]:
                w.acceleration[i] = acceleration
