"""The rows of tasks: Jacobian, what is missed, and the accelerations that are wanted.

    R a = goal,      goal = kp error + kd rate error + feed-forward - drift,      drift = dR/dt v

Everything is expressed along the world's axes about the origin of the first body, as in constraints/system.py, whose sweeps
may have been done already: a controller places bodies once, and then calls `collect_momenta` and `fill_tasks`. A row of a
frame is the power of a unit force on it along the degrees of freedom between it and the root; one of a posture has a single
entry, 1; those of the centre of mass and of momentum are momenta of what each degree of freedom carries.

| code | what | shape |
|---|---|---|
| `R` | Jacobian of all rows, zero where nothing moves them | ntr nv |
| `error`, `rate_error` | reference less value; rotations by the logarithm | ntr |
| `rate`, `row_drift`, `goal` | R v, dR/dt v (of rows along a frame's own axes: as if these stood still), goal | ntr |
| `bend` | of a posture: `difference` to what is wanted | nv |
| `momentum` | of all that a degree of freedom carries, at unit rate | nv |
| `origin`, `center`, `mass` | of the first body in the world; of all that moves, from there | |

Reference: B. Acosta, FCCQP (2024), equation 10, for the commands.
"""

from __future__ import annotations

from typing import NamedTuple

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.constraints.system import AXES, BODIES, direction, move_bodies, point_acceleration, unit_force
from saltus.control.task_tables import CENTER, FRAME, POSTURE, TASKS, TaskSet
from saltus.dynamics.crba import collect
from saltus.kernel import Layout, Tables, declare, kernel, ld, less, lift, select, sqrt, st, tail, zero
from saltus.model.joint_kernels import axis_seen_from, component, joint_placement, lift_vec, placed_after
from saltus.model.manifold import difference_joint
from saltus.model.tree import CONFIGURATIONS, INERTIAS, TREE, extent
from saltus.spatial.algebra import SE3, Force, Mat3, Quat, Sym3, Vec2, Vec3, cross, dot, power, transpose
from saltus.spatial.inertia import Rigid
from saltus.spatial.lie import log_quaternion
from saltus.spatial.quaternion import conjugate

NOTHING = 1e-30

TASK_TABLES = Tables([TREE, TASKS], CONFIGURATIONS, extent, INERTIAS)

ROWS = Layout(
    one={"origin": Vec3, "center": Vec3, "mass": None, "center_drift": Vec3, "spin_drift": Vec3},
    nv={"momentum": Force},
    nq={"bend": None},
    ntr={"error": None, "rate": None, "rate_error": None, "row_drift": None, "goal": None},
    ntrv={"R": None},
)
"""What `fill_tasks` works with, beside `place`, `velocity`, `drift` and `axis` of constraints/system.py."""

WORK = ROWS.extended(nj=BODIES, nv=AXES)


@kernel
def first_origin(tree, q):
    """The origin of body 1 in the world, which does not depend on its turn."""
    o = zero(q)
    if tree.nj > 1:
        return joint_placement(tree, 1, q, Vec2(lift(1.0, o), o)).p
    return Vec3(o, o, o)


@kernel
def place_task_bodies(tree, q, w):
    """To the leaves: placements and axes of what moves the tasks, and where it counts inertias."""
    o = zero(q)
    none, one = Vec3(o, o, o), lift(1.0, o)
    w.origin[0] = first_origin(tree, q)
    w.place[0] = SE3(Mat3(one, o, o, o, one, o, o, o, one), -w.origin[0])
    w.composite[0] = Rigid(o, none, Sym3(o, o, o, o, o, o))
    for n in range(tree.ntb):
        i = tree.task_bodies[n]
        X = placed_after(tree, i, q, w.place[tree.parent[i]])
        w.place[i] = X
        if tree.task_masses[0]:
            w.composite[i] = X @ tree.solid[i]
        for k in range(tree.iv[i], tree.end[i]):
            w.axis[k] = axis_seen_from(X, tree.axis[k])


@kernel
def collect_momenta(tree, v, w):
    """To the root, once bodies are placed: `momentum`, mass and centre. Where v is not None, forces of bodies add up to
    those of all that they carry, and there are `center_drift` and `spin_drift`."""
    o = zero(w.bend)
    none = Vec3(o, o, o)
    total = Rigid(o, none, Sym3(o, o, o, o, o, o))
    if v is not None:
        w.force[0] = Force(none, none)
    for i in range(tree.nj - 1, 0, -1):
        total = collect(tree, i, total, w)
        for k in range(tree.iv[i], tree.end[i]):
            w.momentum[k] = total @ w.axis[k]
        if v is not None:
            w.force[tree.parent[i]] = w.force[tree.parent[i]] + w.force[i]
    total = total + w.composite[0]
    share = 1.0 / select(less(o, total.m), total.m, lift(1.0, o))
    center = total.h * share
    w.mass[0], w.center[0] = total.m, center
    if v is not None:
        force = w.force[0]
        w.center_drift[0] = force.lin * share + lift_vec(tree.gravity[0], o)
        w.spin_drift[0] = force.ang - cross(center, force.lin)


@kernel
def fill_tasks(tree, q, v, references, w):
    """R and `error`; where v is not None, also `rate`, `rate_error`, `row_drift` and `goal`."""
    for t in range(tree.nt):
        if tree.task_kind[t] == FRAME:
            fill_frame(tree, t, v, references, w)
        elif tree.task_kind[t] == POSTURE:
            fill_posture(tree, t, q, v, references, w)
        else:
            fill_centroidal(tree, t, v, references, w)


@kernel
def clear_row(tree, r, w):
    for k in range(tree.nv):
        st(w.R, r * tree.nv + k, 0.0)


@kernel
def aim_row(tree, r, rate, drift, wanted_rate, wanted, w):
    """What follows from rates, once there is the row's error."""
    missed = wanted_rate - rate
    w.rate[r], w.rate_error[r], w.row_drift[r] = rate, missed, drift
    w.goal[r] = tree.task_kp[r] * w.error[r] + tree.task_kd[r] * missed + wanted - drift


@kernel
def fill_frame(tree, t, v, references, w):
    body, local = tree.task_body[t], tree.task_local[t]
    rate_at, acceleration_at = tree.task_rate_at[t], tree.task_acceleration_at[t]
    X = w.place[body] @ tree.task_place[t]
    goal = ld(references, tree.task_at[t], SE3)
    there = goal.p - w.origin[0]
    away, turn = there - X.p, turn_to(tree, t, X, goal.R)
    for r in range(tree.task_first[t], tree.task_end[t]):
        axis = tree.task_axis[r]
        d = task_direction(tree, t, X, axis)
        p = X.p
        if local and axis < 3:  # axes turn, and what they see of the goal with them: as its place on the body moves
            p = there
        push = unit_force(d, p, axis)
        clear_row(tree, r, w)
        k = tree.end[body] - 1 if body > 0 else -1
        while k >= 0:
            st(w.R, r * tree.nv + k, power(w.axis[k], push))
            k = tree.above[k]
        w.error[r] = dot(d, away if axis < 3 else turn)
        if v is not None:
            velocity, drift, shift = w.velocity[body], w.drift[body], 0 if axis < 3 else 3
            speed, turning = velocity.lin + cross(velocity.ang, p), point_acceleration(velocity, drift, p)
            if axis >= 3:
                speed, turning = velocity.ang, drift.ang
            wanted_rate, wanted = ld(references, rate_at + shift, Vec3), ld(references, acceleration_at + shift, Vec3)
            missed = wanted_rate - speed
            aim = dot(d, wanted)
            if local:
                aim = aim - dot(d, cross(velocity.ang, missed)) * (2.0 if axis < 3 else 1.0)
            if axis >= 3 and tree.task_turns[t] == 2:
                n = task_direction(tree, t, X, tree.task_lone[t])
                spin = dot(n, missed) * dot(cross(n, d), missed)
                aim = aim - spin if local else aim + spin
            aim_row(tree, r, dot(d, speed), dot(d, turning), dot(d, wanted_rate), aim, w)


@kernel
def turn_to(tree, t, X, R):
    """The rotation vector to a goal; where an axis is free, without the turn about it; or, if one counts, of that alone."""
    E = quaternion(R @ transpose(X.R))
    if tree.task_turns[t] == 1 or tree.task_turns[t] == 2:
        n = task_direction(tree, t, X, tree.task_lone[t])
        along = dot(n, Vec3(E.x, E.y, E.z))
        size = along * along + E.w * E.w
        across = less(size, NOTHING)  # half a turn about an axis across n: without one about n
        k = select(across, 0.0 * size, 1.0 / sqrt(size + NOTHING))
        twist = Quat(n.x * along * k, n.y * along * k, n.z * along * k, select(across, 1.0 + size, E.w * k))
        if tree.task_turns[t] == 1:
            E = twist
        elif tree.task_local[t]:
            E = E * conjugate(twist)
        else:
            E = conjugate(twist) * E
    return log_quaternion(E)


@kernel
def task_direction(tree, t, X, axis):
    """The direction of a row: of the frame's axes, or of the world's."""
    if tree.task_local[t]:
        return direction(X.R, axis)
    o = X.p.x * 0.0
    one = o + 1.0
    return direction(Mat3(one, o, o, o, one, o, o, o, one), axis)


@kernel
def quaternion(R):
    """The unit quaternion of a rotation matrix: of the four ways to take it, that which divides by the most."""
    a, b, c, d = (
        1.0 + R.xx + R.yy + R.zz,
        1.0 + R.xx - R.yy - R.zz,
        1.0 - R.xx + R.yy - R.zz,
        1.0 - R.xx - R.yy + R.zz,
    )
    x, y, z = R.zy - R.yz, R.xz - R.zx, R.yx - R.xy
    xy, yz, zx = R.xy + R.yx, R.yz + R.zy, R.zx + R.xz
    most, best = Quat(x, y, z, a), a
    most, best = choose(less(best, b), Quat(b, xy, zx, x), most), select(less(best, b), b, best)
    most, best = choose(less(best, c), Quat(xy, c, yz, y), most), select(less(best, c), c, best)
    most, best = choose(less(best, d), Quat(zx, yz, d, z), most), select(less(best, d), d, best)
    k = 0.5 / sqrt(best)
    return Quat(most.x * k, most.y * k, most.z * k, most.w * k)


@kernel
def choose(condition, a, b):
    return Quat(
        select(condition, a.x, b.x),
        select(condition, a.y, b.y),
        select(condition, a.z, b.z),
        select(condition, a.w, b.w),
    )


@kernel
def fill_posture(tree, t, q, v, references, w):
    goal = tail(references, tree.task_at[t])
    for r in range(tree.task_first[t], tree.task_end[t]):
        k = tree.task_dof[r]
        if k == tree.iv[tree.body[k]]:
            difference_joint(tree, tree.body[k], q, goal, w.bend)
        clear_row(tree, r, w)
        st(w.R, r * tree.nv + k, 1.0)
        w.error[r] = w.bend[k]
        if v is not None:
            wanted_rate = ld(references, tree.task_rate_at[t] + k)
            wanted = ld(references, tree.task_acceleration_at[t] + k)
            aim_row(tree, r, ld(v, k), zero(v), wanted_rate, wanted, w)


@kernel
def fill_centroidal(tree, t, v, references, w):
    nv, center, about = tree.nv, w.center[0], tree.task_kind[t] == CENTER
    for r in range(tree.task_first[t], tree.task_end[t]):
        axis = tree.task_axis[r]
        rate = zero(w.bend)
        for k in range(nv):
            h = w.momentum[k]
            entry = (
                component(h, axis) / w.mass[0] if about else component(Force(h.lin, h.ang - cross(center, h.lin)), axis)
            )
            st(w.R, r * nv + k, entry)
            if v is not None:
                rate = rate + entry * ld(v, k)
        w.error[r] = zero(w.bend)
        if about:
            away = ld(references, tree.task_at[t], Vec3) - w.origin[0] - center
            w.error[r] = component(Force(away, away), axis)
        if v is not None:
            first = tree.task_rate_at[t] + axis % 3
            drift = component(Force(w.center_drift[0], w.spin_drift[0]), axis)
            aim_row(
                tree, r, rate, drift, ld(references, first), ld(references, tree.task_acceleration_at[t] + axis % 3), w
            )


@kernel
def sweep_tasks(tree, q, v, references, w):
    """All of it, from a state."""
    w.origin[0] = first_origin(tree, q)
    move_bodies(tree, q, v, w)
    if tree.task_masses[0]:
        collect_momenta(tree, v, w)
    fill_tasks(tree, q, v, references, w)


@declare(
    TASK_TABLES,
    inputs={"q": "nq", "v": "nv", "references": "nref"},
    outputs={"R": "ntr nv", "error": "ntr", "rate_error": "ntr", "drift": "ntr", "goal": "ntr"},
    work=WORK,
    sloped=False,
)
def _task_rows(tree, q, v, references, w, R, error, rate_error, drift, goal):
    sweep_tasks(tree, q, v, references, w)
    for r in range(tree.ntr):
        st(error, r, w.error[r])
        st(rate_error, r, w.rate_error[r])
        st(drift, r, w.row_drift[r])
        st(goal, r, w.goal[r])
        for k in range(tree.nv):
            st(R, r * tree.nv + k, ld(w.R, r * tree.nv + k))


class TaskRows(NamedTuple):
    """The rows of tasks at a state, in the order of `TaskSet.rows`."""

    R: Array
    """(..., ntr, nv) Jacobian: rates are R v, accelerations R a + drift."""
    error: Array
    """(..., ntr) reference less value."""
    rate_error: Array
    """(..., ntr)"""
    drift: Array
    """(..., ntr) accelerations while no joint accelerates."""
    goal: Array
    """(..., ntr) what R a should be: kp error + kd rate_error + feed-forward - drift."""


def task_rows(
    tasks: TaskSet, q: ArrayLike, v: ArrayLike, references: ArrayLike, *, on_invalid: OnInvalid = "raise"
) -> TaskRows:
    """The rows of tasks at `q` (..., nq), `v` (..., nv), for `references` (..., nref) from `TaskSet.references`.

    >>> import numpy as np, saltus as sl
    >>> arm = sl.load_robot("arm")
    >>> tasks = sl.TaskSet(arm, [sl.FrameTask("tool", orientation="", kp=100)])
    >>> q = arm.neutral()
    >>> up = sl.frame_placement(arm, q, "tool")[:3, 3] + [0, 0, 0.1]
    >>> rows = sl.task_rows(tasks, q, np.zeros(arm.nv), tasks.references(tool=up))
    >>> rows.R.shape, rows.goal.round(6) + 0.0
    ((3, 7), array([ 0.,  0., 10.]))
    """
    return TaskRows(*_task_rows.call(tasks, (q, v, references), None, on_invalid))
