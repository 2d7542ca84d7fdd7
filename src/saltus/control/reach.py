"""Steps of inverse kinematics: kernels on the rows of tasks.

    level by level:    min 1/2 |R dq - e|^2_W + rho/2 |dq - s|^2_D      over dq that leave the levels above as they are

is solved in the proximal form, whose matrix has the size of the rows (they are few):

    (R D^-1 R^T + rho W^-1) y = e - R dq,      dq += D^-1 R^T y

D is diagonal. The posture of the lowest level is the metric: its weights are D, and its way to go is s. So a posture costs
next to nothing, whatever its size. Where a level has postures and others, rho is 1 and weights decide between them. A joint
at its limit that is pushed against it has D^-1 = 0 for as long as it is. Rows of a level that is done become orthonormal in
the metric, and are taken out of those below: a lower level cannot move them at all.

The damping rho goes with the squares of what the level and those above miss: steps are short while targets are far, or out
of reach, and convergence is quadratic where they are not.

| code | what | shape |
|---|---|---|
| `R`, `error` | rows of tasks and what they miss (task_rows.py); rows are overwritten | ntr nv, ntr |
| `loose` | 1, or 0 for what its limit holds | nv |
| `ease` | D^-1 | nv |
| `step`, `push` | dq, and R^T y, the forces of the rows | nv |
| `gram`, `y` | of a level | ndense ndense, ndense |
| `caution`, `damped` | by how much more each level is damped; the largest rho | nlevel, 1 |

References: J. Carpentier, R. Budhiraja, N. Mansard, Proximal and sparse resolution of constrained dynamic equations (2021),
section IV-F: a diagonal metric in the place of the inertia matrix; T. Sugihara, Solvability-unconcerned inverse kinematics
by the Levenberg-Marquardt method (2011), for the damping.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saltus.constraints.dense import factor_block, solve_block
from saltus.constraints.system import AXES
from saltus.control.task_rows import ROWS, collect_momenta, fill_tasks, place_task_bodies
from saltus.control.task_tables import MOMENTUM, TASKS, TaskSet, named
from saltus.control.tasks import PostureTask
from saltus.kernel import (
    Layout,
    Part,
    Tables,
    fabs,
    kernel,
    ld,
    less,
    lift,
    maximum,
    minimum,
    select,
    sqrt,
    st,
    zero,
)
from saltus.model.joints import JointKind
from saltus.model.tree import CONFIGURATIONS, INERTIAS, TREE, extent
from saltus.spatial.algebra import SE3
from saltus.spatial.inertia import Rigid

DAMPING = 0.1
"""rho, by the squares of what is missed."""

LONGEST = 1.0
"""No degree of freedom moves further in one step [rad, m]."""

UNPOSED = 0.1
"""The metric, by the largest weight of a posture, of degrees of freedom that are none of it: it decides how steps lead to a
solution, not to which."""

AT_LIMIT = 1e-9
"""So near to it is at a limit [rad, m]."""

SMALLEST = 1e-30

ENDLESS = 1e30
"""Stands for no limit."""

STRAIGHT = {JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.TRANSLATION}
"""Joints whose degrees of freedom are coordinates, which may have limits."""


def dense_rows(tasks: TaskSet) -> list[slice]:
    """Of every level, the rows that are no posture of the lowest one."""
    found = list(tasks.levels)
    last = [tasks.rows[task.name].start for task in tasks.tasks if is_metric(tasks, task)]
    if last:
        found[-1] = slice(found[-1].start, min(last))
    return found


def is_metric(tasks: TaskSet, task: Any) -> bool:
    """Whether it is a posture of the lowest level."""
    return isinstance(task, PostureTask) and task.priority == tasks.tasks[-1].priority


def moved_dofs(tasks: TaskSet) -> list[int]:
    """The degrees of freedom that tasks move."""
    found = {
        k
        for body in tasks.bodies()
        for k in range(tasks.joints[body].iv, tasks.joints[body].iv + tasks.joints[body].nv)
    }
    return sorted(found.union(*(tasks.row_list(task) for task in tasks.tasks if isinstance(task, PostureTask))))


def measure(problem: Any) -> dict[str, int]:
    tasks: TaskSet = problem.task_set
    dofs, levels = moved_dofs(tasks), len(tasks.levels)
    most = max(1, *(rows.stop - rows.start for rows in dense_rows(tasks)))
    joints = {j for j, joint in enumerate(tasks.joints) if set(dofs) & set(range(joint.iv, joint.iv + joint.nv))}
    return {
        "nmoved": len(dofs),
        "nstepped": len(joints),
        "ndense": most,
        "ngram": most**2,
        "nstep": tasks.nv,
        "nstill": tasks.nv,
        "nrecord": 6 + 2 * levels,
    }


def fill(problem: Any, ints: Any, reals: Any) -> None:
    tasks: TaskSet = problem.task_set
    model, dofs, dense = tasks.model, moved_dofs(tasks), dense_rows(tasks)
    for n, k in enumerate(dofs):
        ints.moved_dof[n] = k
    stepped = 0
    for j, joint in enumerate(tasks.joints):
        own = range(joint.iv, joint.iv + joint.nv)
        if set(dofs) & set(own):
            ints.stepped_joint[stepped], stepped = j, stepped + 1
        base = joint.parent == 0 and joint.kind in (JointKind.FREE_FLYER, JointKind.PLANAR)
        for k in own:
            reach = 0.0 if base else 1.0 if joint.kind in (JointKind.PRISMATIC, JointKind.TRANSLATION) else np.pi
            ints.coordinate[k], reals.low[k], reals.high[k] = -1, -ENDLESS, ENDLESS
            reals.sample_low[k], reals.sample_high[k] = -reach, reach
            if joint.kind in STRAIGHT:
                c = ints.coordinate[k] = joint.iq + k - joint.iv
                low, high = model.lower_position_limit[c], model.upper_position_limit[c]
                reals.low[k], reals.high[k] = max(low, -ENDLESS), min(high, ENDLESS)
                if high - low < 100.0 * reach:
                    reals.sample_low[k], reals.sample_high[k], ints.bounded[k] = low, high, 1
    for k, share in zip(dofs, spread(len(dofs)), strict=True):
        reals.spread[k] = share
    for level, rows in enumerate(dense):
        ints.dense_end[level] = rows.stop
    last = tasks.levels[-1]
    ints.mixed[0] = dense[-1].stop < last.stop and dense[-1].start < dense[-1].stop
    ints.posed[0] = dense[-1].stop < last.stop
    for task in tasks.tasks:
        for r, weight in enumerate(tasks.gains[task.name][2], tasks.rows[task.name].start):
            reals.task_share[r] = 1.0 / max(weight, 1e-12)
    metric = np.zeros(tasks.nv)
    for task in tasks.tasks:
        if is_metric(tasks, task):
            np.add.at(metric, tasks.row_list(task), tasks.gains[task.name][2])
    scale = 1.0 if ints.mixed[0] or not metric.any() else 1.0 / metric.max()
    reals.metric_scale[0] = scale
    unposed = UNPOSED * scale * metric.max() if metric.any() else 1.0
    for k, weight in enumerate((scale * metric).tolist()):
        reals.metric[k] = weight or unposed


def spread(count: int) -> list[float]:
    """Of a sequence of points that fill a cube of so many dimensions evenly, how far each lies from the one before."""
    root = 2.0
    for _ in range(64):
        root = (1.0 + root) ** (1.0 / (count + 1))
    return [(root ** -(k + 1)) % 1.0 for k in range(count)]


REACH = Part(
    ("nmoved", "nstepped", "ndense", "ngram", "nstep", "nstill", "nrecord"),
    Layout(
        one=named("mixed", "posed"),
        nmoved=named("moved_dof"),
        nstepped=named("stepped_joint"),
        nlevel=named("dense_end"),
        nv=named("coordinate", "bounded"),
    ),
    Layout(
        one=named("metric_scale"),
        nv=named("metric", "low", "high", "sample_low", "sample_high", "spread"),
        ntr=named("task_share"),
    ),
    measure,
    fill,
)
"""Degrees of freedom that tasks move, joints that have some, rows of the largest level but for a posture in the metric, and
their square. `mixed`: in the lowest level there are a posture and others; `posed`: there is a posture. `dense_end`: where
rows of a level end, but for these. `coordinate`: in q, of a degree of freedom that may have limits, else -1; starts lie
between `sample_low` and `sample_high`: coordinates where it is `bounded`, else steps from the first one. `task_share`: 1 /
weight. `metric`, `metric_scale`: D, and by what it has the posture's weights."""

REACH_TABLES = Tables([TREE, TASKS, REACH], CONFIGURATIONS, extent, INERTIAS)

REACH_WORK = ROWS.extended(
    one={"damped": None},
    nj={"place": SE3, "composite": Rigid},
    nv=AXES | {"loose": None, "ease": None, "push": None, "pull": None, "level_push": None, "last_step": None},
    nstep={"step": None},
    ndense={"y": None, "inverse": None},
    ngram={"gram": None},
    ntr={"size": None, "rest": None},
    nlevel={"missed": None, "caution": None},
)


@kernel
def evaluate(tree, q, references, w):
    """Rows at q; `missed`: of each level, the square of what it misses."""
    place_task_bodies(tree, q, w)
    if tree.task_masses[0]:
        collect_momenta(tree, None, w)
    fill_tasks(tree, q, None, references, w)
    for t in range(tree.nt):
        if tree.task_kind[t] == MOMENTUM:  # it is a rate: configurations have none
            for r in range(tree.task_first[t], tree.task_end[t]):
                scale_row(tree, r, 0.0, w)
    for level in range(tree.nlevel):
        total = zero(w.gram)
        for r in range(tree.level_first[level], tree.level_end[level]):
            error = select(less(zero(w.gram), tree.task_weight[r]), w.error[r], zero(w.gram))
            total = total + error * error
        w.missed[level] = total


@kernel
def find_step(tree, q, floor, rank, w):
    """`step` from the rows at q, within the limits. Returns how far it would go without damping: the degree of freedom
    that moves the most, 1 or more where limits hold others than before; and its product with the last step, which is
    negative where it turns back."""
    solve_levels(tree, tree.nlevel, tree.posed[0], floor, rank, w)
    longest, along = stay_within(tree, q, w)
    return longest * (1.0 + w.damped[0]), along


@kernel
def solve_levels(tree, levels, posed, floor, rank, w):
    """`step`, and `push`, from the rows and `error` of so many levels; `posed`: whether the posture in the metric pulls."""
    last, missed = tree.nlevel - 1, zero(w.gram)
    begin_step(tree, floor, w)
    for level in range(levels):
        first, end = tree.level_first[level], tree.dense_end[level]
        missed = missed + damping_of(tree, level, w)
        if level == last and posed:
            add_posture(tree, first, end, w)
        if level > 0:
            drop_dependent(tree, first, end, rank, w)
        if level == last and tree.mixed[0]:
            solve_level(tree, first, end, lift(1.0, missed), w)
        else:
            rho = w.caution[level] * missed
            w.damped[0] = maximum(w.damped[0], rho)
            solve_level(tree, first, end, floor + rho, w)
        if level < last:
            free_below(tree, first, end, rank, w)


@kernel
def damping_of(tree, level, w):
    """What the weighted squares of a level's errors call for, but for those of a posture in the metric."""
    total = zero(w.gram)
    for r in range(tree.level_first[level], tree.dense_end[level]):
        total = total + tree.task_weight[r] * w.error[r] * w.error[r]
    return 0.5 * DAMPING * total


@kernel
def begin_step(tree, floor, w):
    """The metric, and what pulls the posture; sizes of rows in the metric."""
    o, last = zero(w.gram), tree.nlevel - 1
    for n in range(tree.nmoved):
        k = tree.moved_dof[n]
        w.pull[k], w.push[k] = o, o
        st(w.step, k, o)
    missed = o
    for level in range(tree.nlevel):
        missed = missed + damping_of(tree, level, w)
    for r in range(tree.dense_end[last], tree.level_end[last]):
        k, force = tree.task_dof[r], tree.task_weight[r] * tree.metric_scale[0] * w.error[r]
        w.pull[k] = w.pull[k] + force
        missed = missed + 0.5 * DAMPING * force * w.error[r]
    rho = w.caution[last] * missed
    least = floor + rho if tree.mixed[0] else o
    share = 1.0 if tree.mixed[0] else 1.0 / (1.0 + rho)
    w.damped[0] = rho if tree.posed[0] and not tree.mixed[0] else o
    for n in range(tree.nmoved):
        k = tree.moved_dof[n]
        w.ease[k] = w.loose[k] / (tree.metric[k] + least)
        w.pull[k] = w.pull[k] * share
    for r in range(tree.dense_end[last]):
        w.rest[r] = w.error[r]
        w.size[r] = row_product(tree, r, r, w)


@kernel
def add_posture(tree, first, end, w):
    """The way of the posture, as far as it leaves the rows before `first` as they are, which are orthonormal."""
    nv = tree.nv
    for r in range(first):
        along = zero(w.gram)
        for n in range(tree.nmoved):
            k = tree.moved_dof[n]
            along = along + ld(w.R, r * nv + k) * w.ease[k] * w.pull[k]
        for n in range(tree.nmoved):
            k = tree.moved_dof[n]
            w.pull[k] = w.pull[k] - along * ld(w.R, r * nv + k)
    apply_push(tree, w.pull, first, end, w)


@kernel
def apply_push(tree, force, first, end, w):
    """Adds to the step what forces do, and takes it from what rows have left to do."""
    nv = tree.nv
    for n in range(tree.nmoved):
        k = tree.moved_dof[n]
        w.push[k] = w.push[k] + force[k]
        st(w.step, k, ld(w.step, k) + w.ease[k] * force[k])
    for r in range(first, end):
        done = zero(w.gram)
        for n in range(tree.nmoved):
            k = tree.moved_dof[n]
            done = done + ld(w.R, r * nv + k) * w.ease[k] * force[k]
        w.rest[r] = w.rest[r] - done


@kernel
def row_product(tree, r, s, w):
    """Of two rows in the metric."""
    total, nv = zero(w.gram), tree.nv
    for n in range(tree.nmoved):
        k = tree.moved_dof[n]
        total = total + ld(w.R, r * nv + k) * w.ease[k] * ld(w.R, s * nv + k)
    return total


@kernel
def scale_row(tree, r, factor, w):
    for n in range(tree.nmoved):
        at = r * tree.nv + tree.moved_dof[n]
        st(w.R, at, ld(w.R, at) * factor)


@kernel
def drop_dependent(tree, first, end, rank, w):
    """Rows of which those above have left nothing but rounding become zero."""
    for r in range(first, end):
        scale_row(tree, r, select(less(row_product(tree, r, r, w), rank * w.size[r]), zero(w.gram), 1.0), w)


@kernel
def solve_level(tree, first, end, rho, w):
    nv, size = tree.nv, end - first
    for r in range(first, end):
        w.y[r - first] = w.rest[r]
        at = (r - first) * size
        for s in range(first, r + 1):
            st(w.gram, at + s - first, row_product(tree, r, s, w))
        st(w.gram, at + r - first, ld(w.gram, at + r - first) + rho * tree.task_share[r])
    factor_block(w.gram, w.inverse, size, 0, size)
    solve_block(w.gram, w.inverse, size, 0, size, w.y)
    if size > 0:
        for n in range(tree.nmoved):
            k = tree.moved_dof[n]
            total = zero(w.gram)
            for r in range(first, end):
                total = total + ld(w.R, r * nv + k) * w.y[r - first]
            w.level_push[k] = total
        apply_push(tree, w.level_push, end, tree.dense_end[tree.nlevel - 1], w)


@kernel
def free_below(tree, first, end, rank, w):
    """Rows of a level become orthonormal in the metric, and all rows after them lose what they have along them."""
    nv, o = tree.nv, zero(w.gram)
    for r in range(first, end):
        square = row_product(tree, r, r, w)
        some_left = less(rank * w.size[r] + SMALLEST, square)
        scale_row(tree, r, select(some_left, 1.0 / sqrt(square + SMALLEST), o), w)
        for s in range(r + 1, tree.dense_end[tree.nlevel - 1]):
            along = row_product(tree, r, s, w)
            for n in range(tree.nmoved):
                k = tree.moved_dof[n]
                st(w.R, s * nv + k, ld(w.R, s * nv + k) - along * ld(w.R, r * nv + k))


@kernel
def stay_within(tree, q, w):
    """Shortens `step`, all of it if it is long, and what would pass a limit; and finds what its limit holds next time."""
    o, longest, along = zero(w.gram), zero(w.gram), zero(w.gram)
    for n in range(tree.nmoved):
        longest = maximum(longest, fabs(ld(w.step, tree.moved_dof[n])))
    share = LONGEST / maximum(longest, lift(LONGEST, o))
    longest = o
    for n in range(tree.nmoved):
        k = tree.moved_dof[n]
        step, c = ld(w.step, k) * share, tree.coordinate[k]
        if c >= 0:
            down, up = tree.low[k] - ld(q, c), tree.high[k] - ld(q, c)
            step = minimum(maximum(step, down), up)
            against_high = select(less(up - AT_LIMIT, step), maximum(w.push[k], o), o)
            against_low = select(less(step, down + AT_LIMIT), maximum(-w.push[k], o), o)
            loose = select(less(o, against_high + against_low), o, 1.0)
            longest = maximum(longest, fabs(loose - w.loose[k]))
            w.loose[k] = loose
        st(w.step, k, step)
        longest, along = maximum(longest, fabs(step)), along + step * w.last_step[k]
    return longest, along
