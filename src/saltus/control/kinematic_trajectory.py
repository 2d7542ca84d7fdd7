"""Inverse kinematics of second order: configurations, velocities and accelerations that follow references over time.

    dq/dt = v(q, t),      v: level by level, min |R v - rate - gain error|^2_W      (reach.py)

v is a smooth function of q and the references, so accelerations are its derivative along the motion, by dual numbers: they
hold what null spaces do as they turn, which the accelerations of least length would not. Where tasks are met they satisfy
R a = acceleration - dR/dt v.

From one time to the next, q follows v by the trapezoidal rule from a prediction by the last two velocities, so it is off by
the square of the step, and then goes back onto the tasks by steps of least length. All times and robots are one call, the
accelerations another.

Reference: L. Saab et al., Dynamic whole-body motion generation under rigid contacts and other unilateral constraints (2013),
for hierarchies of tasks at this level.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike, real_numbers
from saltus.constraints.system import BODIES, move_bodies
from saltus.control.checks import checked_positive
from saltus.control.inverse_kinematics import FLOOR, RANK, inverse_kinematics, move
from saltus.control.reach import AT_LIMIT, REACH_TABLES, REACH_WORK, damping_of, evaluate, solve_levels, stay_within
from saltus.control.task_rows import collect_momenta, fill_tasks, first_origin
from saltus.control.task_tables import TaskSet, as_task_set
from saltus.control.tasks import AnyTask
from saltus.derivatives.forward import coordinate_rates
from saltus.kernel import declare, kernel, ld, less, lift, maximum, select, some, st, tail, zero
from saltus.kernel.forward import push_forward
from saltus.model.model import Model
from saltus.model.parameters import refuse_several

OUT_OF_REACH = 10.0
"""How much rates are damped where positions are missed, by the damping of steps: there is none where they are not."""

CORRECTIONS = 2
"""Steps back onto the tasks."""

PASSES = 4
"""So often joints may be found that are at their limits and would go beyond."""

WORK = REACH_WORK.extended(nj=BODIES, nstill={"still": None})


@kernel
def find_rates(tree, q, still, references, gain, floor, rank, w):
    """`step` becomes the velocity at q; `still` (nv): zeros."""
    o, nv = zero(w.gram), tree.nv
    w.origin[0] = first_origin(tree, q)
    for k in range(nv):
        w.loose[k] = lift(1.0, o)
    for level in range(tree.nlevel):
        w.caution[level] = o
    for _ in range(PASSES):
        move_bodies(tree, q, still, w)
        if tree.task_masses[0]:
            collect_momenta(tree, still, w)
        fill_tasks(tree, q, still, references, w)
        damping = floor + zero(w.gram)
        for level in range(tree.nlevel):
            damping = damping + OUT_OF_REACH * damping_of(tree, level, w)
        for r in range(tree.ntr):
            w.error[r] = w.rate_error[r] + gain * w.error[r]
        solve_levels(tree, tree.nlevel, tree.posed[0], damping, rank, w)
        if not some(less(0.5, leave_limits(tree, q, w))):
            break


@kernel
def leave_limits(tree, q, w):
    """Holds what is at its limit and would go beyond; 1 if there was any."""
    o = zero(w.gram)
    found = o
    for n in range(tree.nmoved):
        k = tree.moved_dof[n]
        c = tree.coordinate[k]
        if c >= 0:
            rate = ld(w.step, k)
            beyond = select(less(tree.high[k] - AT_LIMIT, ld(q, c)), maximum(rate, o), o)
            beyond = beyond + select(less(ld(q, c), tree.low[k] + AT_LIMIT), maximum(-rate, o), o)
            hold = select(less(o, beyond), lift(1.0, o), o)
            found = maximum(found, hold)
            w.loose[k] = w.loose[k] * (1.0 - hold)
    return found


@declare(
    REACH_TABLES,
    inputs={"limits": "4", "references": "nref", "q": "nq"},
    outputs={"v": "nv"},
    work=WORK,
)
def _task_velocities(tree, limits, references, q, w, v):
    """`limits`: gain, floor, rank, and the step, which does not count here."""
    for k in range(tree.nv):
        st(v, k, 0.0)
    find_rates(tree, q, v, references, ld(limits, 0), ld(limits, 1), ld(limits, 2), w)
    for n in range(tree.nmoved):
        k = tree.moved_dof[n]
        st(v, k, ld(w.step, k))


@declare(
    REACH_TABLES,
    inputs={"clock": "ticks int", "limits": "4", "references": "ticks nref", "q0": "nq"},
    outputs={"q": "ticks nq", "v": "ticks nv", "error": "ticks ntr"},
    work=WORK,
    sloped=False,
)
def _kinematic_trajectory(tree, clock, limits, references, q0, w, q, v, error):
    """`clock`: the number of ticks, for each."""
    gain, floor, rank, dt, nv = ld(limits, 0), ld(limits, 1), ld(limits, 2), ld(limits, 3), tree.nv
    for k in range(nv):
        st(w.still, k, 0.0)
    for tick in range(clock[0]):
        here, wanted, rates = tail(q, tick * tree.nq), tail(references, tick * tree.nref), tail(v, tick * nv)
        before, last, older = (
            tail(q, max(tick - 1, 0) * tree.nq),
            tail(v, max(tick - 1, 0) * nv),
            tail(v, max(tick - 2, 0) * nv),
        )
        for stage in range(2):  # predicted, corrected
            if tick == 0:
                for c in range(tree.nq):
                    st(here, c, ld(q0, c))
            else:
                for k in range(nv):
                    x, y = (
                        (1.5 * ld(last, k), -0.5 * ld(older, k))
                        if stage == 0
                        else (0.5 * ld(last, k), 0.5 * ld(rates, k))
                    )
                    st(w.still, k, dt * (x + y))
                for c in range(tree.nq):
                    st(here, c, ld(before, c))
                move(tree, w.still, here)
                for k in range(nv):
                    st(w.still, k, 0.0)
                if stage == 1:
                    for _ in range(CORRECTIONS):
                        correct(tree, here, wanted, floor, rank, w)
            find_rates(tree, here, w.still, wanted, gain, floor, rank, w)
            for k in range(nv):
                st(rates, k, 0.0)
            for n in range(tree.nmoved):
                st(rates, tree.moved_dof[n], ld(w.step, tree.moved_dof[n]))
        evaluate(tree, here, wanted, w)
        for r in range(tree.ntr):
            st(error, tick * tree.ntr + r, w.error[r])


@kernel
def correct(tree, q, references, floor, rank, w):
    """A step back onto the tasks, but for postures in the metric and what there is a compromise with."""
    evaluate(tree, q, references, w)
    for level in range(tree.nlevel):
        w.caution[level] = lift(1.0, zero(w.gram))
    solve_levels(tree, tree.nlevel - tree.mixed[0], 0, floor, rank, w)
    stay_within(tree, q, w)
    move(tree, w.step, q)


class KinematicTrajectory(NamedTuple):
    """A motion that follows references, with the leading axes (...) of the batch in front of that of time."""

    t: Array
    """(T,) [s]"""
    q: Array
    """(..., T, nq)"""
    v: Array
    """(..., T, nv)"""
    a: Array
    """(..., T, nv) the derivative of v along the motion."""
    error: Array
    """(..., T, ntr) what rows miss, reference less value, as in `TaskSet.rows`."""
    tasks: TaskSet

    @property
    def errors(self) -> dict[str, Array]:
        """By the tasks' names, the length (..., T) of what each misses [m and rad]."""
        return {name: np.linalg.norm(self.error[..., rows], axis=-1) for name, rows in self.tasks.rows.items()}


def kinematic_trajectory(
    robot: Model,
    tasks: TaskSet | Sequence[AnyTask],
    references: ArrayLike,
    q0: ArrayLike,
    *,
    dt: float,
    gain: float = 10.0,
) -> KinematicTrajectory:
    """The motion that follows references over time: positions, velocities and accelerations that belong together.

    references: (..., T, nref) from `TaskSet.references`, with rates and accelerations (`Target`), a row every `dt` [s].
    q0: (..., nq) where to begin; from there, the configuration that meets the first references is looked for.
    gain: how fast what is missed is made up for [1/s], postures for the most part: what can be met is met.

    What no task says, moves as little as it can, weighted by the posture of the lowest priority if there is one.

    >>> import numpy as np, saltus as sl
    >>> arm = sl.load_robot("arm")
    >>> tasks = sl.TaskSet(arm, [sl.FrameTask("tool", orientation="")])
    >>> q0, t = np.full(arm.nv, 0.7), np.linspace(0.0, 1.0, 101)[:, None]
    >>> start, way = sl.frame_placement(arm, q0, "tool")[:3, 3], np.array([-0.1, 0.0, 0.05])
    >>> up = sl.Target(start + way * np.sin(t), way * np.cos(t), -way * np.sin(t))
    >>> motion = sl.kinematic_trajectory(arm, tasks, tasks.references(tool=up), q0, dt=0.01)
    >>> bool(np.abs(np.gradient(motion.v, 0.01, axis=0) - motion.a)[1:-1].max() < 1e-3)
    True
    """
    refuse_several(robot, "kinematic_trajectory")
    tasks = as_task_set(robot, tasks)
    references, q0 = real_numbers(references, "references").astype(float), real_numbers(q0, "q0").astype(float)
    if references.ndim < 2 or references.shape[-1] != tasks.sizes["nref"] or references.shape[-2] < 1:
        raise ValueError(
            f"kinematic_trajectory: references have shape {references.shape}, "
            f"expected (..., T, {tasks.sizes['nref']}), T > 0"
        )
    tasks.refuse_rotations(references, "kinematic_trajectory: references")
    dt = checked_positive(dt, "kinematic_trajectory: dt", " [s]")
    if not gain >= 0:
        raise ValueError(f"kinematic_trajectory: gain is {gain}, expected 0 or more")
    begin = inverse_kinematics(robot, tasks, references[..., 0, :], q0, restarts=0)
    ticks = references.shape[-2]
    clock, limits = np.full(ticks, ticks, np.int32), np.array([gain, FLOOR["d"], RANK["d"], dt])
    q, v, error = _kinematic_trajectory.call(tasks, (clock, limits, references, begin.q))
    along = (None, tasks.reference_rates(references)[..., None, :], coordinate_rates(robot, q, v)[..., None, :])
    _, (a,) = push_forward(_task_velocities, tasks, (limits, references, q), along)
    return KinematicTrajectory(dt * np.arange(ticks), q, v, a[..., 0, :], error, tasks)
