"""Inverse kinematics: configurations in which tasks are met, within the joints' limits.

    q = q (+) dq,      dq level by level as in reach.py,      until all that is missed is below the tolerance

Steps of a damped Gauss-Newton method on the manifold. Far targets may have ways to them that end at limits or at poses in
which arms are stretched: what gets stuck starts again, from points that fill the box of the limits evenly, each search the
same ones. What no start reaches goes on from the best of them until nothing moves any more.

All of it is one kernel, where lanes of a packet search together. In large batches, calls are cut short and go on with those
samples that are not done: packets of them are full again. A sample's search is the same, whichever way it is run.

| `record` | what |
|---|---|
| 0, 1 | the start, counted from 0; its steps so far |
| 2, 3 | what the best has missed, squared, or less than 0 if it has met the first level; how far the last step went |
| 4, 5 | status, or `GOING`, or `AGAIN`, from elsewhere; steps in all |
| 6 ... | of each level, how much more its steps are damped; then, what it and those above missed before |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike, OnInvalid, on_gpu, real_numbers
from saltus.constraints.report import whole
from saltus.control.checks import checked_count, checked_positive
from saltus.control.reach import REACH_TABLES, REACH_WORK, evaluate, find_step
from saltus.control.task_tables import FRAME, TaskSet, as_task_set
from saltus.control.tasks import AnyTask
from saltus.kernel import declare, fabs, floor, kernel, ld, less, lift, maximum, minimum, select, some, st, zero
from saltus.kernel.gpu_arrays import moved
from saltus.model.checks import ROTATION_TOLERANCE
from saltus.model.manifold import step_joint
from saltus.model.model import Model
from saltus.model.parameters import refuse_several
from saltus.spatial.algebra import SE3, Vec3, cross, dot, transpose


class Reach(IntEnum):
    """How a search of inverse kinematics ended."""

    SOLVED = 0  # every task is met to the tolerance
    PARTLY = 1  # those of the first priority are met; lower ones are as near as these allow
    STALLED = 2  # nothing moves any more, and no start did better: out of reach, against limits, or against each other
    MAX_ITERATIONS = 3  # neither, after all steps that were allowed: who stretches to what is out of reach may creep
    NOT_FINITE = 4  # the inputs held a NaN, or what is no rotation (`on_invalid="mark"`)

    def __str__(self) -> str:
        return self.name

    def __format__(self, form: str) -> str:
        return format(self.name, form)


SOLVED, PARTLY, STALLED, MAX_ITERATIONS, NOT_FINITE = (float(each) for each in Reach)
GOING, AGAIN = -1.0, -2.0

FAR = 1e3
"""Stands for the step before the first one."""

SLOW, PATIENCE = 0.98, 10
"""After so many steps, a start must make less of what it misses, squared, by each step, or another one is tried."""

LESS, MORE, LEAST, MOST = 0.7, 3.0, 1e-2, 1e4
"""By how much damping changes where a step has made it better or worse, and where that ends."""

WORSE, NEAR = 1.0001, 1e-3
"""By so much more levels above must miss, and so much at least, before a posture is damped for it."""

LOWER = 1e-4
"""What a level counts, beside the one above, where the best is chosen among those that meet the first."""

KEPT = 6
"""Numbers of a record before those of the levels."""

START = (0.0, 0.0, 1e30, FAR, GOING, 0.0)
"""How a record begins, before those of the levels."""

RESTARTS, POLISH = 100, 4
"""How often stuck searches start again; and so many times as many steps has the best of them at the end."""

FLOOR, RANK = {"d": 1e-12, "f": 1e-6}, {"d": 1e-20, "f": 1e-10}
"""By the type of numbers: the least damping, and the square of the share of a row below which the rest of it is rounding."""

CHUNKS, FEW, ENDLESSLY = 12, 8, 2**30
"""Steps of a batch, after which what is done makes room."""


@declare(
    REACH_TABLES,
    inputs={
        "options": "3 int", "limits": "3", "references": "nref", "q0": "nq", "q_in": "nq", "best_in": "nq",
        "carried_in": "2 nv", "record_in": "nrecord",
    },
    outputs={"q": "nq", "best": "nq", "carried": "2 nv", "record": "nrecord", "error": "ntr"},
    work=REACH_WORK,
    sloped=False,
)  # fmt: skip
def _inverse_kinematics(
    tree, options, limits, references, q0, q_in, best_in, carried_in, record_in, w, q, best, carried, record, error
):
    """`options`: steps of a start, starts after the first, steps in this call; `limits`: tolerance, floor, rank."""
    for c in range(tree.nq):
        st(q, c, ld(q_in, c))
        st(best, c, ld(best_in, c))
    for k in range(tree.nv):
        w.loose[k], w.last_step[k] = ld(carried_in, k), ld(carried_in, tree.nv + k)
        st(w.step, k, 0.0)
    for n in range(tree.nrecord):
        st(record, n, ld(record_in, n))
    keep_within(tree, q)
    refuse_rotations(tree, references, record)
    count = 0
    while True:
        evaluate(tree, q, references, w)
        judge(tree, options, ld(limits, 0), w, q, best, record)
        if count >= options[2] or not some(less(ld(record, 4), -0.5)):
            break
        for level in range(tree.nlevel):
            w.caution[level] = ld(record, KEPT + level)
        length, along = find_step(tree, q, ld(limits, 1), ld(limits, 2), w)
        take_step(tree, options[1], q0, length, along, w, q, best, record)
        count += 1
    evaluate(tree, q, references, w)
    for r in range(tree.ntr):
        st(error, r, w.error[r])
    for k in range(tree.nv):
        st(carried, k, w.loose[k])
        st(carried, tree.nv + k, w.last_step[k])


@kernel
def move(tree, step, q):
    """q = q (+) step"""
    for n in range(tree.nstepped):
        step_joint(tree, tree.stepped_joint[n], q, step, 1.0, q)
    for n in range(tree.nmoved):
        keep_degree_within(tree, q, tree.moved_dof[n])


@kernel
def keep_within(tree, q):
    """Also what no task moves."""
    for k in range(tree.nv):
        keep_degree_within(tree, q, k)


@kernel
def keep_degree_within(tree, q, k):
    c = tree.coordinate[k]
    if c >= 0:
        st(q, c, minimum(maximum(ld(q, c), tree.low[k] + zero(q)), tree.high[k] + zero(q)))


@kernel
def refuse_rotations(tree, references, record):
    """Searches for what is no rotation are over before they begin."""
    o = zero(record)
    off = o
    for t in range(tree.nt):
        if tree.task_kind[t] == FRAME and tree.task_turns[t] > 0:
            R = ld(references, tree.task_at[t], SE3).R
            S = R @ transpose(R)
            off = maximum(off, maximum(fabs(S.xx - 1.0), maximum(fabs(S.yy - 1.0), fabs(S.zz - 1.0))))
            off = maximum(off, maximum(fabs(S.xy), maximum(fabs(S.xz), fabs(S.yz))))
            x, y, z = Vec3(R.xx, R.xy, R.xz), Vec3(R.yx, R.yy, R.yz), Vec3(R.zx, R.zy, R.zz)
            off = maximum(off, -dot(x, cross(y, z)))
    st(record, 4, select(less(ROTATION_TOLERANCE + o, off), NOT_FINITE + o, ld(record, 4)))


@kernel
def flag(condition, like):
    """1 where a condition holds, else 0."""
    return select(condition, lift(1.0, like), lift(0.0, like))


@kernel
def judge(tree, options, tolerance, w, q, best, record):
    """The status of each lane, and the best so far, which becomes q where the search has failed."""
    o = zero(record)
    start, status = ld(record, 0), ld(record, 4)
    first, below, allowed = w.missed[0], o, tolerance * tolerance
    worst, share = first, 1.0
    for level in range(1, tree.nlevel):
        worst, below, share = maximum(worst, w.missed[level]), below + share * w.missed[level], LOWER * share
    active, solved, met = flag(less(status, -0.5), o), flag(less(worst, allowed), o), flag(less(first, allowed), o)
    last = flag(less(options[1] + 0.5 if options[1] > 0 else -0.5, start), o)
    steps = 1.0 * options[0] * (1.0 + (POLISH - 1.0) * last if options[1] > 0 else 1.0 + o)
    still, spent = flag(less(ld(record, 3), tolerance), o), flag(less(steps - 0.5, ld(record, 1)), o)
    slow = o
    if tree.nlevel == 1:
        slow = flag(less(SLOW * ld(record, KEPT + 1), first), o) * flag(less(PATIENCE - 0.5, ld(record, 1)), o)
        slow = slow * (1.0 - last)
    over = active * (1.0 - solved) * maximum(maximum(still, slow), spent)
    score, worth = first, over
    if tree.nlevel > 1:  # what lower levels do on their way may cost higher ones for a while
        score, worth = select(less(0.5, met), -1.0 / (1.0 + below), first), active
    better = worth * flag(less(score, ld(record, 2)), o)
    best_score = select(less(0.5, better), score, ld(record, 2))
    was_met = flag(less(best_score, o), o)
    failed = still * STALLED + (1.0 - still) * MAX_ITERATIONS
    missed = last * failed + (1.0 - last) * AGAIN
    missed = was_met * MAX_ITERATIONS + (1.0 - was_met) * missed
    ended = met * (still * PARTLY + (1.0 - still) * MAX_ITERATIONS) + (1.0 - met) * missed
    lost = over * maximum(last, was_met) * (1.0 - met * still)
    for c in range(tree.nq):
        st(best, c, select(less(0.5, better), ld(q, c), ld(best, c)))
        st(q, c, select(less(0.5, lost), ld(best, c), ld(q, c)))
    st(record, 2, best_score)
    verdict = select(less(0.5, solved), SOLVED + o, select(less(0.5, over), ended, GOING + o))
    st(record, 4, select(less(0.5, active), verdict, status))


@kernel
def take_step(tree, restarts, q0, length, along, w, q, best, record):
    """q (+) step, where lanes are not done; those that start anew go from q0 to a point of the box, at last to the best."""
    o = zero(record)
    active, anew = flag(less(ld(record, 4), -0.5), o), flag(less(ld(record, 4), 0.5 * (GOING + AGAIN)), o)
    start = ld(record, 0) + anew
    from_best = anew * flag(less(restarts + 0.5, start), o)
    for n in range(tree.nmoved):
        k = tree.moved_dof[n]
        x, c = 0.5 + start * tree.spread[k], tree.coordinate[k]
        step = tree.sample_low[k] + (x - floor(x)) * (tree.sample_high[k] - tree.sample_low[k])
        if tree.bounded[k]:
            step = step - minimum(maximum(ld(q0, c), tree.low[k] + o), tree.high[k] + o)
        step = select(less(0.5, anew), step * (1.0 - from_best), ld(w.step, k))
        st(w.step, k, select(less(0.5, active), step, o))
        w.loose[k] = select(less(0.5, anew), lift(1.0, o), w.loose[k])
        w.last_step[k] = select(less(0.5, active), select(less(0.5, anew), o, step), w.last_step[k])
    for c in range(tree.nq):
        place = select(less(0.5, from_best), ld(best, c), ld(q0, c))
        st(q, c, select(less(0.5, anew), place, ld(q, c)))
    if some(less(0.5, anew)):
        keep_within(tree, q)
    move(tree, w.step, q)
    st(record, 0, start)
    st(record, 1, (ld(record, 1) + active) * (1.0 - anew))
    st(record, 3, select(less(0.5, anew), lift(FAR, o), select(less(0.5, active), length, ld(record, 3))))
    st(record, 4, select(less(0.5, active), GOING + o, ld(record, 4)))
    st(record, 5, ld(record, 5) + active)
    now = above = above_before = o
    for level in range(tree.nlevel):
        now = now + w.missed[level]
        at, before = KEPT + level, KEPT + tree.nlevel + level
        caution, earlier = w.caution[level], ld(record, before)
        closer = flag(less(now, earlier), o)
        if level == tree.nlevel - 1 and tree.posed[0]:  # a posture may turn back, or pull at what is out of reach
            closer = flag(less(-along, o), o) * flag(less(above, WORSE * above_before + NEAR * NEAR), o)
        caution = select(less(0.5, closer), maximum(LESS * caution, LEAST + o), minimum(MORE * caution, MOST + o))
        st(record, at, select(less(0.5, anew), 1.0 + o, caution))
        st(record, before, select(less(0.5, anew), 1e30 + o, now))
        above, above_before = now, earlier


class Reached(NamedTuple):
    """What inverse kinematics found."""

    q: Array
    """(..., nq); where there is no solution, the nearest configuration that was found."""
    error: Array
    """(..., ntr) what rows miss, reference less value, as in `TaskSet.rows`."""
    record: Array
    tasks: TaskSet
    tolerance: float

    @property
    def status(self) -> Any:
        """(...) of `Reach`; one sample's is a member."""
        status = self.record[..., 4]
        if isinstance(status, np.ndarray | np.floating):
            status = np.where(np.isnan(status), NOT_FINITE, status)
        return Reach(int(status)) if status.ndim == 0 else whole(status)

    @property
    def met(self) -> Any:
        """(...) whether the tasks of the first priority are met to the tolerance, whatever the status."""
        rows = [r for r, weight in self.tasks.first_rows if weight > 0]
        near = (self.error[..., rows] ** 2).sum(-1) <= self.tolerance**2
        return near & (self.record[..., 4] != NOT_FINITE)

    @property
    def errors(self) -> dict[str, Any]:
        """By the tasks' names, the length (...) of what each misses [m and rad]."""
        return {name: (self.error[..., rows] ** 2).sum(-1) ** 0.5 for name, rows in self.tasks.rows.items()}

    @property
    def iterations(self) -> Any:
        """(...) steps, of all starts; 0 where inputs were not valid."""
        return whole(without_nan(self.record[..., 5]))

    @property
    def starts(self) -> Any:
        """(...) how often the search began; 0 where inputs were not valid."""
        return whole(without_nan(self.record[..., 0] + 1.0))


def without_nan(count: Any) -> Any:
    return count if on_gpu(count) else np.nan_to_num(count)


def inverse_kinematics(
    robot: Model,
    tasks: TaskSet | Sequence[AnyTask],
    references: ArrayLike | Mapping[str, Any],
    q0: ArrayLike | None = None,
    *,
    tolerance: float = 1e-6,
    max_iterations: int = 60,
    restarts: int | None = None,
    on_invalid: OnInvalid = "raise",
) -> Reached:
    """Configurations in which tasks are met, within the joints' position limits.

    references: (..., nref) from `TaskSet.references`; or by the tasks' names, what they should reach.
    q0: (..., nq) where to start; the neutral configuration unless given. What no task moves stays as it is there, or as near
        as limits allow.
    tolerance: a priority is met if the root of the sum of squares of what its rows miss [m, rad] is no larger.
    max_iterations: of each start.
    restarts: how often to start from elsewhere what got stuck; 100, or none where the first priority has a posture, which
        there is a compromise with.

    Leading axes are broadcast: one pose, or ten thousand.

    >>> import numpy as np, saltus as sl
    >>> arm = sl.load_robot("arm")
    >>> there = sl.frame_placement(arm, sl.random_configuration(arm, seed=0), "tool")
    >>> found = sl.inverse_kinematics(arm, [sl.FrameTask("tool")], {"tool": there})
    >>> found.status, bool(np.allclose(sl.frame_placement(arm, found.q, "tool"), there, atol=1e-6))
    (<Reach.SOLVED: 0>, True)
    """
    refuse_several(robot, "inverse_kinematics")
    tasks = as_task_set(robot, tasks)
    q0 = robot.neutral() if q0 is None else q0
    if isinstance(references, Mapping):
        references = tasks.references(q0, **references)
    if restarts is None:
        restarts = 0 if tasks.compromising else RESTARTS
    search = Search(
        tasks,
        checked_positive(tolerance, "inverse_kinematics: tolerance"),
        checked_count(max_iterations, "inverse_kinematics: max_iterations"),
        checked_count(restarts, "inverse_kinematics: restarts"),
        on_invalid,
    )
    if on_gpu(references) or on_gpu(q0):
        return search.on_gpu(references, q0)
    references, q0 = floating(references, "references"), floating(q0, "q0")
    for name, array, size in (("references", references, tasks.sizes["nref"]), ("q0", q0, robot.nq)):
        if array.shape[-1:] != (size,):
            raise ValueError(f"inverse_kinematics: {name} has shape {array.shape}, expected (..., {size})")
    leading = np.broadcast_shapes(references.shape[:-1], q0.shape[:-1])
    if not leading:
        return search.checked(search.all_at_once(references, q0), references)
    flat = [np.broadcast_to(x, (*leading, x.shape[-1])).reshape(-1, x.shape[-1]) for x in (references, q0)]
    found = search.checked(search.in_turns(*flat), flat[0])
    arrays = {name: getattr(found, name) for name in ("q", "error", "record")}
    return found._replace(**{name: array.reshape(*leading, array.shape[-1]) for name, array in arrays.items()})


def floating(value: ArrayLike, what: str) -> Array:
    """Numbers of single or double precision."""
    array = real_numbers(value, what)
    return array if array.dtype.char in "fd" else array.astype(float)


class Search(NamedTuple):
    """What one call is asked for."""

    tasks: TaskSet
    tolerance: float
    max_iterations: int
    restarts: int
    on_invalid: OnInvalid

    def call(self, references: Any, q0: Any, state: Sequence[Any], steps: int) -> tuple[Any, ...]:
        single = str(q0.dtype).endswith("float32") and str(references.dtype).endswith("float32")
        letter = "f" if single else "d"
        options = np.array([self.max_iterations, self.restarts, steps], np.int32)
        limits = np.array([self.tolerance, FLOOR[letter], RANK[letter]], letter)
        if on_gpu(q0):
            limits = moved(limits, q0)
        found: tuple[Any, ...] = _inverse_kinematics.call(
            self.tasks, (options, limits, references, q0, *state), None, self.on_invalid
        )
        return found

    def checked(self, found: Reached, references: Array) -> Reached:
        """What was found, unless a reference is no rotation: then that is said, or results are NaN."""
        wrong = found.record[..., 4] == NOT_FINITE
        if wrong.any():
            if self.on_invalid == "raise":
                self.tasks.refuse_rotations(references, "inverse_kinematics: references")
            for array in (found.q, found.error, found.record):
                array[wrong] = np.nan
        return found

    def beginning(self, q0: Array) -> list[Any]:
        levels = len(self.tasks.levels)
        record = np.array((*START, *[1.0] * levels, *[1e30] * levels), q0.dtype)
        carried = np.repeat(np.array([[1.0], [0.0]], q0.dtype), self.tasks.nv, axis=1)
        return [q0, q0, carried, record]

    def all_at_once(self, references: Array, q0: Array) -> Reached:
        q, _, _, record, error = self.call(references, q0, self.beginning(q0), ENDLESSLY)
        return Reached(q, error, record, self.tasks, self.tolerance)

    def in_turns(self, references: Array, q0: Array) -> Reached:
        """A batch with one leading axis: some steps of all, of what is not done, and so on."""
        *state, error = self.call(references, q0, self.beginning(q0), CHUNKS)
        q, _, _, record = state
        left = np.flatnonzero(record[:, 4] < 0)
        going = [x[left] for x in state]
        while left.size:
            *going, last = self.call(references[left], q0[left], going, CHUNKS if left.size > FEW else ENDLESSLY)
            done = going[3][:, 4] >= 0
            for found, part in ((q, going[0]), (record, going[3]), (error, last)):
                found[left[done]] = part[done]
            left, going = left[~done], [x[~done] for x in going]
        return Reached(q, error, record, self.tasks, self.tolerance)

    def on_gpu(self, references: Any, q0: Any) -> Reached:
        like = references if on_gpu(references) else q0
        references, q0 = moved(references, like), moved(q0, like)
        state = [q0, q0, *(moved(x, like) for x in self.beginning(np.zeros(1))[2:])]
        q, _, _, record, error = self.call(references, q0, state, ENDLESSLY)
        return Reached(q, error, record, self.tasks, self.tolerance)
