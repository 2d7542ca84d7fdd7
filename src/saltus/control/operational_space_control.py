"""Whole-body control: torques by which a robot on contacts does what its tasks ask for, as well as can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike, OnInvalid, on_gpu
from saltus.constraints.constraint import Constraint
from saltus.constraints.precision import in_double, is_single
from saltus.constraints.report import whole
from saltus.constraints.scale import typical_delassus
from saltus.control.checks import checked_count, checked_positive
from saltus.control.control_tables import ContactPoint, ControlledModel, Settings
from saltus.control.deadline import allowance
from saltus.control.quadratic_program import EMPTY, NOT_FINITE, QPStatus, holds
from saltus.control.task_tables import TaskSet, as_task_set
from saltus.control.tasks import AnyTask, CenterOfMassTask, FrameTask, MomentumTask, PostureTask
from saltus.control.whole_body import OUTSIDE, _whole_body
from saltus.kernel.gpu_arrays import to_device
from saltus.model.checks import ModelError, finite, not_negative, unit_vector
from saltus.model.joints import JointKind
from saltus.model.model import Model
from saltus.model.motors import checked_motors, motors_of
from saltus.model.parameters import refuse_several

TOLERANCE = 1e-8
"""Of what is left of slopes and gap, as shares."""

MAX_ITERATIONS = 40

HELD_BACK = 0.999
"""A torque beyond this share of its limit is at it."""


class Command(NamedTuple):
    """What a controller answers."""

    tau: Array
    """(..., nv) torques [N m, N]; zero where there is no motor."""
    a: Array
    """(..., nv) accelerations that they lead to, if contacts do as they should [m/s^2, rad/s^2]."""
    forces: Array
    """(..., nc, 3) of contacts, along their tangents and normal [N]."""
    slack: Array
    """(..., nc, 3) accelerations of contact points beyond what was asked of them [m/s^2]."""
    missed: Array
    """(..., ntr) by how much tasks miss the accelerations that are wanted, by the rows of `TaskSet.rows`."""
    beyond: Array
    """(..., number of limited joints) accelerations beyond those with which joints keep their limits."""
    grip: Array
    """(..., nc) the share of its friction cone that each force takes: 1 at the edge."""
    report: Array
    """(..., 5): what the other attributes are made of."""

    @property
    def status(self) -> Any:
        """(...) of `QPStatus`; one state's is a member."""
        status = self.report[..., 1]
        if isinstance(status, np.ndarray | np.floating):
            status = np.where(np.isnan(status), NOT_FINITE, status)
        return QPStatus(int(status)) if status.ndim == 0 else whole(status)

    @property
    def iterations(self) -> Any:
        """(...) of the interior point method, of all levels."""
        found = self.report[..., 0]
        return whole(np.nan_to_num(found) if isinstance(found, np.ndarray | np.floating) else found)


class OperationalSpaceControl:
    """Torques for tasks, within limits and friction cones.

    model: the robot.
    tasks: a list of tasks, or a `TaskSet` of the model.
    contacts: points that can push: names of frames whose origins they are, or (frame, place) with a place (3,) in the frame
        [m], or (frame, place, normal) with the normal (3,) of the ground there; upwards by default.
    constraints: bilateral ones that always hold: `model_loops(model)`, `JointLock`.
    friction: of all contacts, or one each; calls may give others.
    motors: degrees of freedom; by default `motors_of(model)`. Torques are kept within `model.effort_limit`.
    limited: names of joints that keep their limits of position and speed; by default all that have any and have one axis.
    slack_weight: of what contacts miss, against tasks; contacts are soft.
    force_weight, torque_weight: of squares of forces (less those wanted) and torques.
    contact_damping: how fast contact points come to rest [1/s].
    horizon, braking: after so long, a few periods of control [s], joints can stop before their limits, with decelerations of
        so much [rad/s^2, m/s^2].

    A quadruped that stands, and is to rise:

    >>> import numpy as np, saltus as sl
    >>> robot = sl.load_robot("quadruped")
    >>> tasks = [sl.CenterOfMassTask(weight=10), sl.PostureTask(weight=0.1)]
    >>> control = sl.OperationalSpaceControl(robot, tasks, sl.robot_frames("quadruped").feet)
    >>> q, v = robot.reference_configurations["standing"], np.zeros(robot.nv)
    >>> here = sl.center_of_mass(robot, q)
    >>> command = control(q, v, com=here + [0, 0, 0.01])
    >>> str(command.status), bool(command.forces[:, 2].sum() > 9.81 * robot.total_mass)
    ('solved', True)
    """

    def __init__(
        self,
        model: Model,
        tasks: TaskSet | Sequence[AnyTask],
        contacts: Sequence[Any] = (),
        constraints: Sequence[Constraint] = (),
        *,
        friction: ArrayLike = 0.6,
        motors: Sequence[int] | None = None,
        limited: Sequence[str] | None = None,
        slack_weight: float = 1e3,
        force_weight: float = 1e-5,
        torque_weight: float = 1e-6,
        contact_damping: float = 10.0,
        horizon: float = 0.01,
        braking: float = 200.0,
    ) -> None:
        refuse_several(model, "OperationalSpaceControl")
        self.model, self.tasks = model, as_task_set(model, tasks)
        if isinstance(contacts, str):
            raise ModelError(f"OperationalSpaceControl: contacts are {contacts!r}, expected a list of them")
        self.points = tuple(contact_point(model, contact) for contact in contacts)
        self.names = tuple(model.frames[point.frame].name for point in self.points)
        self.motors = tuple(
            motors_of(model) if motors is None else checked_motors(model, motors, "OperationalSpaceControl")
        )
        given = Settings(slack_weight, force_weight, torque_weight, contact_damping, horizon, braking)
        what = "OperationalSpaceControl: "
        settings = Settings(
            *(checked_positive(value, what + name, kind=ModelError) for name, value in given._asdict().items())
        )
        for constraint in constraints:
            if not isinstance(constraint, Constraint):
                raise TypeError(
                    f"OperationalSpaceControl: a constraint is {constraint!r}, expected a list of those that "
                    "model_loops and JointLock make"
                )
            constraint.check_model(model)
            if constraint.dofs:
                raise ModelError(
                    f"OperationalSpaceControl: {constraint.name!r} has rows of its own, which it cannot hold"
                )
        constraints = [thinned(model, constraint) for constraint in constraints]
        locked = {model.joints[c.joint_a].iv for c in constraints if is_lock(model, c)}
        dofs = [k for k in limited_dofs(model, limited) if k not in locked]
        self.limited = tuple(joint.name for joint in model.joints for k in dofs if joint.iv == k and joint.nv == 1)
        typical = typical_delassus(model, tuple(constraints)) if constraints else 1.0
        self.problem = ControlledModel(
            model, self.tasks, constraints, self.motors, self.points, settings, dofs, typical
        )
        count = len(self.points)
        self.friction = not_negative(friction, count, "OperationalSpaceControl: friction")
        self._usual = np.ones(count), self.friction, np.zeros((count, 3)), np.ones(self.problem.nc)
        self._options: dict[Any, tuple[Any, Any]] = {}

    def __call__(
        self,
        q: ArrayLike,
        v: ArrayLike,
        references: ArrayLike | None = None,
        *,
        active: ArrayLike | None = None,
        friction: ArrayLike | None = None,
        wanted: ArrayLike | None = None,
        tolerance: float | None = None,
        max_iterations: int = MAX_ITERATIONS,
        max_time: float | None = None,
        on_invalid: OnInvalid = "mark",
        **targets: Any,
    ) -> Command:
        """Torques at `q` (..., nq), `v` (..., nv).

        references: (..., nref) from `tasks.references`; or `targets` by the tasks' names, all others staying where they are.
        active: (..., nc), how much of each contact holds, 0 to 1 (`ramped`): in between it bears no more than
            active^2 / (1 - active^4) times the robot's weight, so that forces come and go smoothly. All by default.
        friction: (..., nc). wanted: (..., nc, 3) forces [N], to which `force_weight` draws.
        tolerance: of the solution. max_time: [s].
        Numbers of single precision are computed in double: weights differ by more than they tell apart.
        on_invalid: "mark" for NaN and the status `not_finite` where inputs are not valid, or "raise".
        """
        if references is None:
            references = self.tasks.references(q, **targets)
        elif targets:
            raise ValueError(f"OperationalSpaceControl: references as well as targets of {', '.join(targets)}")
        if is_single(q) and is_single(v):

            def again(q: Any, v: Any, references: Any, active: Any, friction: Any, wanted: Any) -> Command:
                return self(
                    q, v, references, active=active, friction=friction, wanted=wanted, tolerance=tolerance,
                    max_iterations=max_iterations, max_time=max_time, on_invalid=on_invalid,
                )  # fmt: skip

            command: Command = in_double(self.model, again, q, v, references, active, friction, wanted)
            return command
        options, limits = self._chosen(tolerance, max_iterations, max_time)
        usual = zip((active, friction, wanted, None), self._usual, strict=True)
        rest: list[Any] = [*(default if value is None else value for value, default in usual), limits]
        if on_gpu(q):
            rest = [x if on_gpu(x) else to_device(np.asarray(x, float), q) for x in rest]
            on_invalid = "raise"
        inputs = (q, v, references, *rest[:4], options, rest[4])
        try:  # what is valid takes the shortest way
            found = _whole_body.call(self.problem, inputs, None, "raise" if on_invalid == "mark" else on_invalid)
        except ValueError:
            found = _whole_body.call(self.problem, inputs, None, on_invalid)
        command = Command(*found)
        if holds(command.report, EMPTY):
            refuse_values(*(np.asarray(x, float) for x in rest[:2]))
        return command

    def _chosen(self, tolerance: float | None, most: int, max_time: float | None) -> tuple[Any, Array]:
        key = tolerance, most, max_time
        found = self._options.get(key)
        if found is None:
            steps = checked_count(most, "OperationalSpaceControl: max_iterations")
            ticks = 0
            if max_time is not None:
                ticks = allowance(checked_positive(max_time, "OperationalSpaceControl: max_time", " [s]"))
            if tolerance is None:
                tolerance = TOLERANCE
            limits = np.array([checked_positive(tolerance, "OperationalSpaceControl: tolerance")])
            found = self._options[key] = np.array([steps, ticks], np.int32), limits
        return found

    def culprits(self, command: Command, share: float = 0.05) -> list[str]:
        """What one command could not do, and why, in words: tasks and the most that a row of them misses, the worst first,
        if that is more than `share` [m/s^2, rad/s^2]; contacts at their cones, or that give way; motors and joints at their
        limits.

        >>> import numpy as np, saltus as sl
        >>> robot = sl.load_robot("quadruped")
        >>> control = sl.OperationalSpaceControl(robot, [sl.CenterOfMassTask()], sl.robot_frames("quadruped").feet)
        >>> q, v = robot.reference_configurations["standing"], np.zeros(robot.nv)
        >>> control.culprits(control(q, v, com=sl.center_of_mass(robot, q) + [0.2, 0, 0]))[0]
        "task 'com' misses 10.4 m/s^2"
        """
        if command.tau.ndim != 1:
            raise ValueError(
                f"culprits: the command is one of {command.tau.shape[:-1]} states, expected one state's: "
                "Command(*(x[k] for x in command))"
            )
        if command.status == QPStatus.NOT_FINITE:
            return ["the state or what is asked for is not finite"]
        found: list[tuple[float, str]] = []
        limit = self.model.effort_limit
        for task in self.tasks.tasks:
            off = float(np.abs(command.missed[self.tasks.rows[task.name]]).max())
            if off > share:
                found.append((off, f"task {task.name!r} misses {off:.3g} {unit_of(task)}"))
        words = [text for _, text in sorted(found, reverse=True)]
        for c, name in enumerate(self.names):
            if command.grip[c] > HELD_BACK:
                words.append(f"contact {name!r} is at its friction cone")
            slack = float(np.linalg.norm(command.slack[c]))
            if slack > 1.0:
                words.append(f"contact {name!r} gives way by {slack:.3g} m/s^2")
        for k in self.motors:
            if np.abs(command.tau[k]) > HELD_BACK * limit[k]:
                words.append(f"motor {joint_at(self.model, k)!r} is at its limit of {limit[k]:.3g} N m")
        for name, off in zip(self.limited, command.beyond, strict=True):
            if np.abs(off) > share:
                words.append(f"joint {name!r} cannot keep its limits, by {abs(off):.3g} rad/s^2")
        return words


def ramped(loads: ArrayLike, active: ArrayLike, step: float, duration: float) -> Array:
    """How much contacts hold, a step [s] later, on the way to `active` (..., nc): from 0 to 1 they take a duration [s].

    >>> ramped([0.0, 1.0, 1.0], [1, 0, 1], step=0.01, duration=0.1)
    array([0.1, 0.9, 1. ])
    """
    most = checked_positive(step, "ramped: step", " [s]") / checked_positive(duration, "ramped: duration", " [s]")
    loads = np.asarray(loads, float)
    return np.asarray(loads + np.clip(np.asarray(active, float) - loads, -most, most))


def unit_of(task: AnyTask) -> str:
    """Of what a task misses."""
    if isinstance(task, MomentumTask):
        return "N m"
    turns = isinstance(task, PostureTask) or (isinstance(task, FrameTask) and task.orientation)
    moves = isinstance(task, CenterOfMassTask) or (isinstance(task, FrameTask) and task.position)
    return " or ".join(["m/s^2"] * bool(moves) + ["rad/s^2"] * bool(turns))


def joint_at(model: Model, dof: int) -> str:
    return next(joint.name for joint in model.joints if joint.iv <= dof < joint.iv + joint.nv)


def refuse_values(active: Array, friction: Array) -> None:
    """Say what no contact can have; nothing, if it is so of states that are not finite."""
    wrong = (active < -OUTSIDE) | (active > 1 + OUTSIDE)
    if wrong.any():
        raise ValueError(f"OperationalSpaceControl: active has the entry {active[wrong].flat[0]:g}, expected 0 to 1")
    if (friction < 0).any():
        raise ValueError(
            f"OperationalSpaceControl: friction has the entry {friction[friction < 0].flat[0]:g}, expected 0 or more"
        )


def contact_point(model: Model, contact: Any) -> ContactPoint:
    parts = tuple(contact) if isinstance(contact, tuple | list) else (contact,)
    if not 1 <= len(parts) <= 3:
        raise ModelError(
            f"OperationalSpaceControl: a contact is {contact!r}, expected a frame, or (frame, place, normal)"
        )
    frame, place, normal = (*parts, None, None)[:3]
    what = f"OperationalSpaceControl: a contact is {contact!r}: its"
    place = finite((0.0, 0.0, 0.0) if place is None else place, (3,), f"{what} place")
    normal = unit_vector((0.0, 0.0, 1.0) if normal is None else normal, f"{what} normal")
    side = np.eye(3)[int(np.argmin(np.abs(normal)))]
    along = np.cross(normal, np.cross(side, normal)) if normal[2] != 1.0 else np.array([1.0, 0.0, 0.0])
    along = along / np.linalg.norm(along)
    return ContactPoint(model.frame_index(frame), place, np.column_stack([along, np.cross(normal, along), normal]))


def is_lock(model: Model, constraint: Constraint) -> bool:
    """Whether it holds a joint of one axis."""
    joint = model.joints[constraint.joint_a]
    return joint.nv == 1 and constraint.joint_b == joint.parent


def thinned(model: Model, constraint: Constraint) -> Constraint:
    """A locked joint of one axis needs one row, about it or along it."""
    if not is_lock(model, constraint):
        return constraint
    joint = model.joints[constraint.joint_a]
    axis = int(np.argmax(np.abs(joint.axis))) + 3 * (joint.kind is not JointKind.PRISMATIC)
    return replace(constraint, rows=(axis,))


def limited_dofs(model: Model, names: Sequence[str] | None) -> list[int]:
    chosen = [joint for joint in model.joints[1:] if joint.nv == joint.nq == 1]
    if names is not None:
        indices = {model.joint_index(name) for name in names}
        chosen = [joint for i, joint in enumerate(model.joints) if i in indices and joint.nv == joint.nq == 1]
    return [
        joint.iv
        for joint in chosen
        if np.isfinite([model.lower_position_limit[joint.iq], model.upper_position_limit[joint.iq]]).any()
        or np.isfinite(model.velocity_limit[joint.iv])
    ]
