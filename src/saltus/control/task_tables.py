"""What kernels see of a list of tasks, and how references are packed for them.

Any list of tasks runs in the same compiled kernels: `TASKS` is a part of what they see, of whatever has a `task_set`. Tasks
stand in the order of their priority, postures last, so that the rows of a level are together.

References of a task lie one after the other: the value wanted, its rate, its acceleration.

| task | value | rate, acceleration |
|---|---|---|
| `CenterOfMassTask` | position (3) | (3) each, along the world's axes |
| `FrameTask` | rotation matrix by rows (9), position (3) | (6) each: of its origin, then angular, along the world's axes |
| `PostureTask` | configuration (nq) | (nv) each |
| `MomentumTask` | | angular momentum (3), its rate (3) |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike, real_numbers
from saltus.control.tasks import AnyTask, CenterOfMassTask, FrameTask, MomentumTask, PostureTask
from saltus.derivatives.forward import coordinate_rates
from saltus.dynamics.centroidal import center_of_mass
from saltus.dynamics.kinematics import frame_placements
from saltus.kernel import Layout, Part
from saltus.kernel.tables import FilledPart, filled_part
from saltus.model.checks import ROTATION_TOLERANCE, ModelError, not_negative
from saltus.model.joints import JointKind
from saltus.model.model import Model
from saltus.model.parameters import VariedModel
from saltus.model.tree import TREE, canonical_rotation, se3, seen_from
from saltus.spatial.algebra import SE3

CENTER, FRAME, POSTURE, MOMENTUM = range(4)
KINDS = {CenterOfMassTask: CENTER, FrameTask: FRAME, PostureTask: POSTURE, MomentumTask: MOMENTUM}
AXES = "xyz"


class Target(NamedTuple):
    """What a task should reach, and how fast it then moves: rates and accelerations are zero unless they are given."""

    value: Any = None
    """Of a centre of mass (..., 3); of a frame (..., 4, 4), or rotation (..., 3, 3) and position (..., 3); of a posture
    (..., nq). None: as it is in the configuration that stands for the rest."""
    rate: Any = None
    """(..., 3); of a frame (..., 6), linear first, or (..., 3) of the part that the task is about; (..., nv); of a momentum
    (..., 3), its value."""
    acceleration: Any = None
    """The same of how the rate changes."""


class Place(NamedTuple):
    """Where the references of a task are among those of all."""

    value: slice
    rate: slice
    acceleration: slice


class TaskSet:
    """The tasks of a robot, compiled to tables: where it stands in the place of a model, kernels see both.

    >>> import saltus as sl
    >>> arm = sl.load_robot("arm")
    >>> tasks = sl.TaskSet(arm, [sl.FrameTask("tool"), sl.PostureTask(weight=0.1, priority=1)])
    >>> tasks.rows["posture"], len(tasks.levels)
    (slice(6, 13, None), 2)
    """

    def __init__(self, model: Model, tasks: Sequence[AnyTask]) -> None:
        if model.coupling is not None:
            raise ModelError(f"model {model.name!r} has mimic joints, which tasks cannot move yet")
        for task in tasks:
            if type(task) not in KINDS:
                raise TypeError(f"a task is {task!r}, expected one of {', '.join(kind.__name__ for kind in KINDS)}")
        self.model, self.tasks = model, tuple(sorted(tasks, key=order))
        names = [task.name for task in self.tasks]
        if not names or len(set(names)) < len(names):
            raise ModelError(f"the tasks are called {names}, expected at least one, and names that differ")
        self.name, self.joints, self.frames, self.nq, self.nv, self.coupling = (
            model.name, model.joints, model.frames, model.nq, model.nv, None,
        )  # fmt: skip
        self.specialised, self.varied = model.specialised, model.varied
        if isinstance(model, VariedModel):
            self.inertias_for, self.leading = model.inertias_for, model.leading
        self.filled: dict[Any, Any] = {}
        self.quick: dict[Any, Any] = {}
        self.parts: dict[Any, FilledPart] = {TREE: filled_part(TREE, model, TREE.measure(model))}
        self.task_frames = {
            task.name: model.frame_index(task.frame) for task in self.tasks if isinstance(task, FrameTask)
        }
        self.needs_masses = any(isinstance(task, CenterOfMassTask | MomentumTask) for task in self.tasks)
        if self.needs_masses and not model.total_mass > 0:
            raise ModelError(f"model {model.name!r} has no mass, and so no centre of mass that a task could move")
        for task in self.tasks:
            if not self.row_list(task):
                raise ModelError(f"task {task.name!r}: its joints have no degrees of freedom, expected one at least")
        starts = np.cumsum([0, *(len(self.row_list(task)) for task in self.tasks)]).tolist()
        self.rows = {name: slice(*ends) for name, ends in zip(names, pairwise(starts), strict=True)}
        """Of each task, by name: its rows."""
        self.places: dict[str, Place] = {}
        """Of each task, by name: its references."""
        start = 0
        for task in self.tasks:
            size, rate = self.reference_sizes(task)
            ends = start, start + size, start + size + rate, start + size + 2 * rate
            self.places[task.name] = Place(*(slice(a, b) for a, b in pairwise(ends)))
            start = ends[-1]
        self.gains = {task.name: gains_of(task, self.rows[task.name]) for task in self.tasks}
        """Of each task, by name: kp, kd and weight of its rows."""
        priorities = [task.priority for task in self.tasks for _ in self.row_list(task)]
        self.levels = [
            slice(priorities.index(p), starts[-1] - priorities[::-1].index(p)) for p in sorted(set(priorities))
        ]
        """The rows of each priority that there is."""
        bodies = self.bodies()
        nt, ntr, nv = len(names), starts[-1], model.nv
        self.sizes = {
            "nt": nt, "ntr": ntr, "ntrv": ntr * nv, "nref": start, "nlevel": len(self.levels), "ntb": len(bodies),
        }  # fmt: skip

    @property
    def task_set(self) -> TaskSet:
        return self

    @property
    def first_rows(self) -> list[tuple[int, float]]:
        """Rows of the first priority, and their weights."""
        weights = [weight for task in self.tasks for weight in self.gains[task.name][2]]
        return list(enumerate(weights))[self.levels[0]]

    @property
    def compromising(self) -> bool:
        """Whether the first priority has a posture among others: then none of them is met to the last digit."""
        first = [isinstance(task, PostureTask) for task in self.tasks if task.priority == self.tasks[0].priority]
        return any(first) and not all(first)

    def row_list(self, task: AnyTask) -> list[int]:
        """Of each row, its axis (0 to 5, linear first), or its degree of freedom if it is one of a posture."""
        if isinstance(task, PostureTask):
            return [k for joint in self.posture_joints(task) for k in range(joint.iv, joint.iv + joint.nv)]
        if isinstance(task, FrameTask):
            return [AXES.index(x) for x in task.position] + [3 + AXES.index(x) for x in task.orientation]
        return [AXES.index(x) + 3 * isinstance(task, MomentumTask) for x in task.axes]

    def posture_joints(self, task: PostureTask) -> list[Any]:
        if task.joints is not None:
            return [self.joints[i] for i in sorted(self.model.joint_index(name) for name in task.joints)]
        base = JointKind.FREE_FLYER, JointKind.PLANAR
        return [joint for joint in self.joints[1:] if not (joint.parent == 0 and joint.kind in base)]

    def reference_sizes(self, task: AnyTask) -> tuple[int, int]:
        """How many numbers the value has that is wanted, and its rate."""
        if isinstance(task, PostureTask):
            return self.nq, self.nv
        return {CENTER: (3, 3), FRAME: (12, 6), MOMENTUM: (0, 3)}[KINDS[type(task)]]

    def bodies(self) -> list[int]:
        """Those that move what the tasks are about, parents first."""
        if self.needs_masses:
            return list(range(1, len(self.joints)))
        found: set[int] = set()
        for index in self.task_frames.values():
            body = self.frames[index].joint
            while body > 0:
                found.add(body)
                body = self.joints[body].parent
        return sorted(found)

    def fill(self, ints: Any, reals: Any) -> None:
        turned = [canonical_rotation(joint.kind, joint.axis) for joint in self.joints]
        ints.task_masses[0] = self.needs_masses
        for n, body in enumerate(self.bodies()):
            ints.task_bodies[n] = body
        for n, level in enumerate(self.levels):
            ints.level_first[n], ints.level_end[n] = level.start, level.stop
        for t, task in enumerate(self.tasks):
            rows, place = self.rows[task.name], self.places[task.name]
            ints.task_kind[t], ints.task_first[t], ints.task_end[t] = KINDS[type(task)], rows.start, rows.stop
            ints.task_at[t], ints.task_rate_at[t] = place.value.start, place.rate.start
            ints.task_acceleration_at[t] = place.acceleration.start
            if isinstance(task, FrameTask):
                frame = self.frames[self.task_frames[task.name]]
                ints.task_body[t], ints.task_local[t] = frame.joint, task.reference == "local"
                turns = [AXES.index(x) for x in task.orientation]
                lone = turns if len(turns) == 1 else [axis for axis in range(3) if axis not in turns]
                ints.task_turns[t], ints.task_lone[t] = len(turns), 3 + lone[0] if len(lone) == 1 else 3
                reals.task_place[t] = se3(seen_from(turned[frame.joint], frame.placement, np.eye(3)))
            columns = self.row_list(task), *self.gains[task.name]
            for r, (axis, kp, kd, weight) in enumerate(zip(*columns, strict=True), rows.start):
                posture = isinstance(task, PostureTask)
                ints.task_axis[r], ints.task_dof[r] = (0, axis) if posture else (axis, -1)
                reals.task_kp[r], reals.task_kd[r], reals.task_weight[r] = kp, kd, weight

    def references(self, q: ArrayLike | None = None, **targets: Any) -> Array:
        """The references (..., nref) of all tasks, as kernels take them.

        targets: by the tasks' names, what they should reach: a `Target`, or its value alone (of a momentum, its rate).
        q: (..., nq), a configuration; tasks without a target stay where they are in it, at rest.

        >>> import numpy as np, saltus as sl
        >>> arm = sl.load_robot("arm")
        >>> tasks = sl.TaskSet(arm, [sl.FrameTask("tool", orientation=""), sl.PostureTask(priority=1)])
        >>> tasks.references(arm.neutral(), tool=[0.4, 0.1, 0.5]).shape
        (45,)
        """
        for name in targets:
            if name not in self.places:
                raise ModelError(f"references: there is no task {name!r}, expected one of {', '.join(self.places)}")
        missing = [task.name for task in self.tasks if task.name not in targets and not isinstance(task, MomentumTask)]
        if missing and q is None:
            raise ModelError(f"references: no target of {', '.join(missing)}, expected one, or q to stay in")
        pieces = [
            piece for task in self.tasks for piece in self._pieces(task, q, as_target(task, targets.get(task.name)))
        ]
        leading = np.broadcast_shapes(*(values.shape[:-1] for _, values in pieces))
        packed = np.zeros((*leading, self.sizes["nref"]))
        for where, values in pieces:
            packed[..., where] = values
        return packed

    def refuse_rotations(self, references: Array, what: str) -> None:
        """A `ModelError` if what stands for a rotation in references (..., nref) is none."""
        for task in self.tasks:
            if isinstance(task, FrameTask) and task.orientation:
                R = references[..., self.places[task.name].value][..., :9]
                refuse_no_rotation(R.reshape(*R.shape[:-1], 3, 3), f"{what} of {task.name!r}")

    def reference_rates(self, references: Array) -> Array:
        """How fast references (..., nref) change: values by their rates, rates by their accelerations, those not at all."""
        changes = np.zeros_like(references)
        for task in self.tasks:
            value, rate, acceleration = self.places[task.name]
            speed = references[..., rate]
            changes[..., rate] = references[..., acceleration]
            if isinstance(task, CenterOfMassTask):
                changes[..., value] = speed
            elif isinstance(task, FrameTask):
                R = references[..., value][..., :9].reshape(*references.shape[:-1], 3, 3)
                turned = np.cross(speed[..., None, 3:], R, axisb=-2, axisc=-2)
                changes[..., value] = np.concatenate([turned.reshape(*turned.shape[:-2], 9), speed[..., :3]], axis=-1)
            elif isinstance(task, PostureTask):
                changes[..., value] = coordinate_rates(self.model, references[..., value], speed)
        return changes

    def _pieces(self, task: AnyTask, q: ArrayLike | None, target: Target) -> Iterator[tuple[slice, Array]]:
        place, what = self.places[task.name], f"references: {task.name}"
        if not isinstance(task, MomentumTask):
            value = self._current(task, q) if target.value is None else target.value
            if isinstance(task, FrameTask):
                yield place.value, pose_numbers(value, task, what)
            else:
                yield place.value, numbers(value, place.value.stop - place.value.start, what)
        for where, given, which in (
            (place.rate, target.rate, "rate"),
            (place.acceleration, target.acceleration, "acceleration"),
        ):
            if given is not None:
                if isinstance(task, FrameTask):
                    given = whole_motion(given, task)
                yield where, numbers(given, where.stop - where.start, f"{what}, {which}")

    def _current(self, task: AnyTask, q: ArrayLike | None) -> Any:
        """What a task is about, where it is at q."""
        if q is None:
            raise ModelError(f"references: {task.name!r} has no value, expected one, or q to stay in")
        if isinstance(task, PostureTask):
            return q
        if isinstance(task, CenterOfMassTask):
            return center_of_mass(self.model, q)
        return self._placements(q)[..., self.task_frames[task.name], :, :]

    def _placements(self, q: ArrayLike) -> Array:
        return np.asarray(frame_placements(self.model, q))


def order(task: AnyTask) -> tuple[int, bool]:
    """By priority; postures last."""
    return task.priority, isinstance(task, PostureTask)


def gains_of(task: AnyTask, rows: slice) -> list[list[float]]:
    return [
        not_negative(getattr(task, name, 0.0), rows.stop - rows.start, f"{name} of task {task.name!r}").tolist()
        for name in ("kp", "kd", "weight")
    ]


def as_target(task: AnyTask, given: Any) -> Target:
    if isinstance(given, Target):
        return given
    return Target(rate=given) if isinstance(task, MomentumTask) else Target(given)


def numbers(value: ArrayLike, size: int, what: str) -> Array:
    array = real_numbers(value, what).astype(float)
    if array.shape[-1:] != (size,):
        raise ModelError(f"{what} has shape {array.shape}, expected (..., {size})")
    return array


def whole_motion(value: Any, task: FrameTask) -> Any:
    """A rate (..., 3) of a frame that only has a position, or an orientation, as one of both."""
    array = np.asarray(value)
    if array.shape[-1:] != (3,) or (task.position and task.orientation):
        return value
    none = np.zeros_like(array)
    return np.concatenate([array, none] if task.position else [none, array], axis=-1)


def pose_numbers(value: Any, task: FrameTask, what: str) -> Array:
    """(..., 12): a rotation by rows and a position, of a pose, or of the part that the task is about."""
    shape: tuple[int, ...]
    if isinstance(value, tuple) and len(value) == 2:
        R, p = (real_numbers(part, what).astype(float) for part in value)
    else:
        array = real_numbers(value, what).astype(float)
        R, p = np.eye(3), np.zeros(3)
        if array.shape[-2:] == (4, 4):
            R, p = array[..., :3, :3], array[..., :3, 3]
        elif array.shape[-2:] == (3, 3) and not task.position:
            R = array
        elif array.shape[-1:] == (3,) and not task.orientation:
            p = array
        else:
            shape = array.shape
            part = ", (..., 3)" * (not task.orientation) + ", (..., 3, 3)" * (not task.position)
            raise ModelError(f"{what} has shape {shape}, expected (..., 4, 4), rotation and position{part}")
    if R.shape[-2:] != (3, 3) or p.shape[-1:] != (3,):
        raise ModelError(
            f"{what}: rotation and position have shapes {R.shape} and {p.shape}, expected (..., 3, 3), (..., 3)"
        )
    refuse_no_rotation(R, what)
    leading = np.broadcast_shapes(R.shape[:-2], p.shape[:-1])
    flat = np.broadcast_to(R.reshape(*R.shape[:-2], 9), (*leading, 9))
    return np.concatenate([flat, np.broadcast_to(p, (*leading, 3))], axis=-1)


def refuse_no_rotation(R: Array, what: str) -> None:
    off = np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3))
    x, y, z = np.moveaxis(R, -2, 0)
    mirrored = (np.cross(x, y) * z).sum(-1) < 0
    if (off > ROTATION_TOLERANCE).any() or mirrored.any():
        raise ModelError(f"{what}: a rotation is not one: R R^T is off by {off.max():.1e}, or it is a reflection")


def as_task_set(model: Model, tasks: TaskSet | Sequence[AnyTask]) -> TaskSet:
    """A list of tasks compiled, or what was compiled for this model."""
    if not isinstance(tasks, TaskSet):
        return TaskSet(model, tasks)
    if tasks.model is not model:
        raise ModelError(f"the tasks are those of another model, {tasks.name!r}, expected {model.name!r}")
    return tasks


def named(*names: str) -> Mapping[str, type | None]:
    return dict.fromkeys(names)


TASKS = Part(
    ("nt", "ntr", "ntrv", "nref", "nlevel", "ntb"),
    Layout(
        one=named("task_masses"),
        nt=named(
            "task_kind", "task_first", "task_end", "task_at", "task_rate_at", "task_acceleration_at", "task_body",
            "task_local", "task_turns", "task_lone",
        ),
        ntr=named("task_axis", "task_dof"),
        nlevel=named("level_first", "level_end"),
        ntb=named("task_bodies"),
    ),
    Layout(nt={"task_place": SE3}, ntr=named("task_kp", "task_kd", "task_weight")),
    lambda problem: problem.task_set.sizes,
    lambda problem, ints, reals: problem.task_set.fill(ints, reals),
)  # fmt: skip
"""Numbers of tasks, rows, entries of a matrix (ntr, nv), reference numbers, priorities, and bodies that tasks look at.

`task_masses`: a task is about the centre of mass or momentum, so all bodies count. `task_first` to `task_end`: rows of a
task; `task_at`, `task_rate_at`, `task_acceleration_at`: where its references are. `task_body`, `task_place`: of a frame, in
the canonical frame of its body; `task_local`: its rows are along its own axes; `task_turns`: how many axes of its
orientation count, `task_lone`: the one that does, or does not. `task_axis`: of a row, which of six; `task_dof`: the degree
of freedom that a row of a posture is, else -1. `level_first` to `level_end`: rows of a priority. `task_bodies`: parents
first."""
