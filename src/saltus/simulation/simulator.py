"""Simulation of robots that touch the world: push, slip, fall, and get up.

A `Simulator` is a robot, a terrain, and what holds the robot together; `step` and `rollout` move it (contact_step.py says how).
Any number of steps of a whole batch of robots is one native call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike, OnInvalid, real_numbers
from saltus.collision.queries import Contacts, find_contacts
from saltus.collision.scene import Scene
from saltus.collision.terrain import PIECES, Terrain
from saltus.constraints.constraint import Constraint
from saltus.constraints.report import Status
from saltus.kernel.marking import check_choice
from saltus.model.model import Model
from saltus.simulation.commands import OverTime, PDTargets
from saltus.simulation.contact_derivatives import difference_step, differentiate_step
from saltus.simulation.contact_law import CONVEX, COULOMB
from saltus.simulation.contact_problem import METHODS
from saltus.simulation.contact_step import _contact_steps
from saltus.simulation.driven import Function, lost, standing_in
from saltus.simulation.rollout import Interrupted, RolloutError
from saltus.simulation.simulated import SimulatedModel
from saltus.simulation.step_derivatives import StepDerivatives
from saltus.simulation.task_space import motors_of

LAWS = {"coulomb": COULOMB, "convex": CONVEX}

TOLERANCE = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-5}
"""Of the natural map of the contact problem [m/s, rad/s]."""

LEAST_ALPHA = 1e-12
"""With which Newton's steps begin, by typical entries of the Delassus matrix."""

ROUNDS = 30
"""Of ADMM, where Newton's steps find no way."""

AT_ONCE = 2000
"""Steps of all robots in one call, as long as one robot has a few: Ctrl-C is heard soon."""


class Push(NamedTuple):
    """A force (3,) along the world's axes [N] on a point of a frame's body, from a time on for so long [s]."""

    frame: str | int
    force: ArrayLike
    start: float = 0.0
    duration: float = np.inf


@dataclass(frozen=True, eq=False)
class Motion:
    """Robots over time: states, and what acted on the way to each; rows of time behind the leading axes (...).

    Row 0 is the state at the start. Forces are those of the last step before a state.
    """

    simulator: Simulator
    t: Array  # (T,) [s]
    q: Array  # (..., T, nq)
    v: Array  # (..., T, nv)
    tau: Array  # (..., T, nv) of the motors [N m, N]
    impulses: (
        Array  # (..., T, nx) of loops, dry friction, limits along their rows; of contacts along the world's axes [N s]
    )
    report: (
        Array  # (..., T, 7) steps of Newton's method, rounds of ADMM, residuals, worst row, status since the last row
    )
    friction: Array  # (...) by what all coefficients were multiplied
    pushes: tuple[Push, ...]  # that acted on the way

    @property
    def period(self) -> float:
        """Time between rows [s]."""
        return float(self.t[1] - self.t[0]) if len(self.t) > 1 else self.simulator.dt

    @property
    def status(self) -> Any:
        """(..., T) of `Status`, the worst since the row before."""
        return self.report[..., 6].astype(int)

    @property
    def residuals(self) -> Array:
        """(..., T, 3) the worst since the row before: natural map and dual [m/s], complementarity [J]."""
        return self.report[..., 2:5]

    @property
    def contact_forces(self) -> Array:
        """(..., T, nslot, 3) on the first body of each possible contact, along the world's axes [N]."""
        x = self.impulses[..., self.simulator.held :]
        return np.asarray(x.reshape(*x.shape[:-1], -1, 3) / self.simulator.dt)

    @property
    def touching(self) -> Any:
        """(..., T, nslot) which contacts carry a force."""
        return (self.contact_forces**2).sum(axis=-1) > 0.0

    @property
    def fallen(self) -> Any:
        """(..., T), whether the body of the robot's base touches the terrain, or has before."""
        bodies = self.simulator.slot_bodies
        return np.maximum.accumulate(
            self.touching[..., (bodies[:, 0] == 1) & (bodies[:, 1] == 0)].any(axis=-1), axis=-1
        )

    @property
    def finished(self) -> Any:
        """(...), whether each robot has reached the end: its last state is finite."""
        return ~lost(self.q[..., -1, :], self.v[..., -1, :])


@dataclass(frozen=True, eq=False)
class Step:
    """What one step leads to, each with the leading axes of the inputs."""

    q: Array  # (..., nq)
    v: Array  # (..., nv)
    tau: Array  # (..., nv) of the motors [N m, N]
    impulses: Array  # (..., nx) as those of a `Motion`; the next step may start from them
    report: Array  # (..., 7)
    contacts: Contacts  # at the start of the step

    @property
    def status(self) -> Any:
        """(...) of `Status`; one sample's is a member."""
        status = self.report[..., 6].astype(int)
        return Status(int(status)) if status.ndim == 0 else status

    @property
    def residuals(self) -> Array:
        """(..., 3) natural map and dual [m/s], complementarity [J]."""
        return self.report[..., 2:5]


class Simulator:
    """A robot in a world, with a time step.

    robot: a model; with code of its own if it is specialised.
    terrain: a `Terrain`, or pieces of one; None for empty space.
    constraints: loops (`LoopClosure`, `JointLock`) and contacts that hold both ways.
    dt: the time step [s].
    method: "admm" (Newton's method, and ADMM where it finds no way) or "pgs" (projected Gauss-Seidel).
    law: "coulomb", or "convex": what slides lifts off, as in MuJoCo.
    tolerance: of residuals [m/s]; by default 1e-8, in single precision 1e-5.
    self_collision: whether the robot's bodies touch each other.
    most_contacts: how many hold at a time, at most; by default as many as there may be, up to 32. Where more are near, the
        status says STOPPED.
    compliance: of contacts [m/N].
    passive: whether springs and dampers of joints act as the model says.

    Limits of joints hold, dry friction of joints acts, and bodies touch the terrain and each other as the model's
    `colliders` say.

    >>> import saltus as sl
    >>> robot = sl.load_robot("quadruped")
    >>> sim = sl.Simulator(robot, sl.Ground(friction=0.8))
    >>> q, v = robot.reference_configurations["standing"], np.zeros(robot.nv)
    >>> motion = sim.rollout(q, v, sl.PDTargets(q, kp=200.0, kd=5.0), duration=0.2)
    >>> motion.q.shape, bool(motion.fallen.any()), int(motion.status.max())
    ((201, 19), False, 0)
    >>> bool(abs(motion.contact_forces[-1, :, 2].sum() - 9.81 * robot.total_mass) < 30.0)
    True
    """

    def __init__(
        self,
        robot: Model,
        terrain: Terrain | PIECES | Iterable[PIECES] | None = None,
        *,
        constraints: Sequence[Constraint] = (),
        dt: float = 1e-3,
        method: Literal["admm", "pgs"] = "admm",
        law: Literal["coulomb", "convex"] = "coulomb",
        tolerance: float | None = None,
        self_collision: bool = True,
        most_contacts: int | None = None,
        compliance: float = 0.0,
        passive: bool = True,
    ) -> None:
        if not (np.isfinite(dt) and dt > 0):
            raise ValueError(f"Simulator: dt is {dt}, expected a positive time in seconds")
        if method not in METHODS or law not in LAWS:
            raise ValueError(
                f"Simulator: method is {method!r} and law {law!r}, expected one of {', '.join(METHODS)}, and of "
                f"{', '.join(LAWS)}"
            )
        for name, value in (("tolerance", tolerance), ("compliance", compliance)):
            if value is not None and not (np.isfinite(value) and value >= 0):
                raise ValueError(f"Simulator: {name} is {value}, expected a number, not negative")
        self.model, self.dt, self.method, self.law, self.tolerance = robot, float(dt), method, law, tolerance
        self.scene = Scene(robot, terrain, self_collision)
        slots = len(self.scene.slots)
        self.most_contacts = min(slots, 32) if most_contacts is None else int(most_contacts)
        if not 0 <= self.most_contacts <= slots:
            raise ValueError(
                f"Simulator: most_contacts is {most_contacts}, expected 0 to {slots}, the possible contacts"
            )
        self.constraints, self.compliance, self.passive = tuple(constraints), float(compliance), bool(passive)
        self.self_collision = self_collision
        self.problem = SimulatedModel(robot, self.constraints, self.scene, self.most_contacts)
        self.held = self.problem.nm + len(self.problem.rubbing) + len(self.problem.limited)
        """Rows of loops, dry friction and limits: where those of contacts begin among impulses."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        given = {name: getattr(self, name) for name in (
            "constraints", "dt", "method", "law", "tolerance", "self_collision", "most_contacts", "compliance", "passive",
        )}  # fmt: skip
        return _remade, (self.model, self.scene.terrain, given)

    @cached_property
    def slot_bodies(self) -> Any:
        """(nslot, 2) the joints of the two bodies of each possible contact; 0 is the terrain."""
        from saltus.collision.tables import COLLISIONS
        from saltus.kernel.tables import filled_part

        part = filled_part(COLLISIONS, self.scene, COLLISIONS.measure(self.scene))
        view = COLLISIONS.ints.view(part.ints, COLLISIONS.measure(self.scene))
        return np.array([[view.slot_a[s], view.slot_b[s]] for s in range(len(self.scene.slots))], int).reshape(-1, 2)

    def contacts(self, q: ArrayLike) -> Contacts:
        """Which contacts there are in configurations `q` (..., nq), forces apart."""
        return find_contacts(self.scene, None, q)

    def step(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike | PDTargets | None = None,
        *,
        friction: ArrayLike = 1.0,
        pushes: Sequence[Push] = (),
        start: ArrayLike | None = None,
        on_invalid: OnInvalid = "raise",
    ) -> Step:
        """One step from `q` (..., nq), `v` (..., nv) on.

        tau: torques (..., nv) [N m, N], or `PDTargets` of (..., nq).
        friction: (...) by what all coefficients of friction are multiplied.
        start: impulses (..., nx) of the step before: the solver then needs fewer steps.

        >>> import saltus as sl
        >>> robot = sl.load_robot("quadruped")
        >>> sim = sl.Simulator(robot, sl.Ground())
        >>> after = sim.step(robot.reference_configurations["standing"], np.zeros(robot.nv))
        >>> after.status, after.v.shape
        (<Status.CONVERGED: 0>, (18,))
        """
        job = self._job(q, v, tau, 1, 1, friction, pushes, start)
        check_choice(on_invalid, "step")
        results = _contact_steps.call(self.problem, tuple(job.inputs(0, 1, *job.state).values()), None, on_invalid)
        return Step(*(x[..., 0, :] for x in results), self.contacts(job.state[0]))

    def step_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike | PDTargets | None = None,
        *,
        friction: ArrayLike = 1.0,
        pushes: Sequence[Push] = (),
        start: ArrayLike | None = None,
        mode: Literal["analytical", "fdc"] = "analytical",
    ) -> StepDerivatives:
        """How a step changes: `.A` (..., 2 nv, 2 nv) with the state, (dq, dv) before, and `.B` (..., 2 nv, nv) with torques.

        Contacts stay as they are: what sticks, slides or is open does so on both sides. Where that changes, there is no
        derivative, and that of one side is given. `mode`: "analytical" solves the linearised contact problem, exact to
        rounding; "fdc" takes central differences of steps, as one batch.

        >>> import saltus as sl
        >>> robot = sl.load_robot("quadruped")
        >>> sim = sl.Simulator(robot, sl.Ground())
        >>> D = sim.step_derivatives(robot.reference_configurations["standing"], np.zeros(robot.nv))
        >>> D.A.shape, D.B.shape
        ((36, 36), (36, 18))
        """
        if mode not in ("analytical", "fdc"):
            raise ValueError(f"step_derivatives: mode is {mode!r}, expected 'analytical' or 'fdc'")
        job = self._job(q, v, tau, 1, 1, friction, pushes, start)
        given = job.inputs(0, 1, *job.state)
        given |= {name: given[name][..., 0, :] for name in ("tau", "target", "kp", "kd") if name in given}
        if mode == "fdc":
            return difference_step(self, job.state, given["tau"], tau, friction, pushes)
        impulses = _contact_steps.call(self.problem, tuple(job.inputs(0, 1, *job.state).values()))[3][..., 0, :]
        given |= {"plan": given["plan"][[2, 5]], "push": given["push"][0], "impulses": impulses}
        return differentiate_step(self.problem, self.dt, given)

    def rollout(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike | OverTime | PDTargets | Function | None = None,
        *,
        duration: float,
        every: int = 1,
        control_period: float | None = None,
        friction: ArrayLike = 1.0,
        pushes: Sequence[Push] = (),
        start: ArrayLike | None = None,
        progress: Callable[[int, int], None] | None = None,
        on_invalid: OnInvalid = "raise",
    ) -> Motion:
        """The motion from `q` (..., nq), `v` (..., nv) on, for a duration [s].

        tau: torques (..., nv) that stay the same; `OverTime` or `PDTargets`, with a row for each step or for every so many
            (PD targets may stay the same as well: (..., nq)); or a function tau(t, q, v) of the whole batch, whose torques
            are held for the control period [s].
        every: how many steps are between two states that are recorded.
        pushes: forces on bodies.
        friction, start: as in `step`.
        progress: is called as progress(steps done, steps in all).
        on_invalid: "raise", or "mark": robots whose states are not finite are lost, with NaN recorded and the status
            INVALID, and the others go on.

        PD control acts on motors (`motors_of`) unless its gains are given joint by joint, within the model's effort limits.
        Ctrl-C raises `Interrupted`, and a motion that cannot go on `RolloutError`; both have the motion until then.
        """
        steps = round(duration / self.dt) if np.isfinite(duration) else -1
        if steps < 0:
            raise ValueError(f"rollout: duration is {duration}, expected a time in seconds, not negative")
        if every < 1 or steps % every:
            raise ValueError(f"rollout: every is {every}, expected a divisor of the number of steps, {steps}")
        check_choice(on_invalid, "rollout")
        if callable(tau):
            held = round((control_period or self.dt) / self.dt)
            if held < 1 or abs(held * self.dt - (control_period or self.dt)) > 1e-6 * self.dt:
                raise ValueError(
                    f"rollout: control_period is {control_period}, expected a multiple of dt, {self.dt:g} s"
                )
            if held % every and every % held:
                raise ValueError(
                    f"rollout: every is {every}, expected a divisor of the {held} steps of a control period"
                )
        else:
            held = 0
        job = self._job(q, v, None if callable(tau) else tau, steps, every, friction, pushes, start)
        return job.run(self, tau if callable(tau) else None, held, progress, on_invalid)

    def _job(
        self, q: ArrayLike, v: ArrayLike, tau: Any, steps: int, every: int, friction: ArrayLike, pushes: Sequence[Push],
        start: ArrayLike | None,
    ) -> Job:  # fmt: skip
        return Job(self, q, v, tau, steps, every, friction, pushes, start)


def _remade(model: Model, terrain: Terrain, given: dict[str, Any]) -> Simulator:
    return Simulator(model, terrain, **given)


class Job:
    """What one call of `step` or `rollout` is asked for, as arrays; states and impulses go along."""

    def __init__(
        self, sim: Simulator, q: ArrayLike, v: ArrayLike, tau: Any, steps: int, every: int, friction: ArrayLike,
        pushes: Sequence[Push], start: ArrayLike | None,
    ) -> None:  # fmt: skip
        model, self.sim, self.steps, self.every = sim.model, sim, steps, every
        nx = sim.held + 3 * len(sim.scene.slots)
        arrays = {"q": real_numbers(q, "q"), "v": real_numbers(v, "v")}
        arrays["start"] = np.zeros(nx, np.float32) if start is None else real_numbers(start, "start")
        for name, size in (("q", model.nq), ("v", model.nv), ("start", nx)):
            if arrays[name].shape[-1:] != (size,):
                raise ValueError(f"rollout: {name} has shape {arrays[name].shape}, expected (..., {size})")
        factor = real_numbers(friction, "friction")
        if not (factor >= 0).all():
            raise ValueError(f"rollout: friction is {friction}, expected factors, not negative")
        command = _command(model, tau, steps)
        given = (*arrays.values(), *command.arrays)
        self.real: Any = np.result_type(np.float32, *(x.dtype for x in given if x.dtype.kind == "f"))
        leading = np.broadcast_shapes(
            *(x.shape[:-1] for x in arrays.values()), factor.shape, *(x.shape[:-2] for x in command.arrays)
        )
        self.leading = leading
        self.state = [np.broadcast_to(x, (*leading, x.shape[-1])).astype(self.real) for x in arrays.values()]
        self.surface = np.empty((*leading, 2), self.real)
        self.surface[..., 0], self.surface[..., 1] = factor, sim.compliance
        self.command = [x.astype(self.real) for x in command.arrays]
        self.hold = max(1, steps // max(1, self.command[0].shape[-2]))
        self.effort = (model.effort_limit if command.towards else np.full(model.nv, np.inf)).astype(self.real)
        self.effort[~np.isfinite(self.effort)] = np.finfo(self.real).max / 4
        self.acting = np.full(2, float(sim.passive), self.real)
        self.given_pushes = tuple(pushes)
        self.pushes = [_located(model, push) for push in pushes]
        tolerance = TOLERANCE[np.dtype(self.real)] if sim.tolerance is None else sim.tolerance
        self.tolerance = np.array([tolerance, LEAST_ALPHA], self.real)

    def inputs(self, first: int, steps: int, q: Array, v: Array, start: Array) -> dict[str, Any]:
        """Of the kernel, by name and in its order, for steps from `first` on."""
        sim, hold, every = self.sim, self.hold, min(self.every, steps)
        commands = self.command
        if commands[0].shape[-2] == 1:  # one for all steps
            hold = steps
        else:
            while first % hold or steps % hold:  # a part of a tick
                commands = [np.repeat(x, hold, axis=-2) for x in commands]
                hold = 1
            commands = [x[..., first // hold : (first + steps) // hold, :] for x in commands]
        ticks = commands[0].shape[-2]
        if self.pushes:
            commands = [np.repeat(x, steps // ticks, axis=-2) for x in commands]
            ticks, hold = steps, 1
        plan = np.array([hold, every, LAWS[sim.law], METHODS[sim.method], ROUNDS, len(self.pushes)], np.int32)
        rows = np.full(max(1, steps // every), steps // every, np.int32)
        bodies = np.array([body for body, *_ in self.pushes], np.int32)
        at = np.array([at for _, at, *_ in self.pushes], self.real).reshape(-1, 3)
        times = sim.dt * (first + np.arange(ticks) * hold)
        forces = np.zeros((ticks, len(self.pushes), 3), self.real)
        for n, (_, _, force, begin, end) in enumerate(self.pushes):
            forces[(times >= begin - 1e-9) & (times < end - 1e-9), n] = force
        return {
            "plan": plan, "clock": np.zeros(ticks, np.int32), "record": rows, "pushed": bodies, "q": q, "v": v, "start": start,
            "dt": np.array([sim.dt], self.real), "tolerance": self.tolerance, "surface": self.surface,
            "acting": self.acting, "effort": self.effort, "at": at, "push": forces,
            **dict(zip(("tau", "target", "kp", "kd"), commands, strict=False)),
        }  # fmt: skip

    def run(
        self, sim: Simulator, controller: Function | None, held: int, progress: Any, on_invalid: OnInvalid
    ) -> Motion:
        rows = self.steps // self.every + 1
        model, every = sim.model, self.every
        nx = self.state[2].shape[-1]
        sizes = (model.nq, model.nv, model.nv, nx, 7)
        whole = [np.full((*self.leading, rows, size), np.nan, self.real) for size in sizes]
        t = sim.dt * every * np.arange(rows, dtype=np.float64)
        gone = lost(self.state[0], self.state[1])
        if on_invalid == "raise" and gone.any():
            raise ValueError("rollout: q or v hold a NaN or an infinity, expected finite numbers")
        q, v, start = self.state
        for array, first in zip(whole, (q, v, np.zeros(()), start, np.zeros(())), strict=True):
            array[..., 0, :] = first
        robots = int(np.prod(self.leading))
        at_once = max(every, held, AT_ONCE // max(1, min(robots, 64)) // every * every)
        given = self.surface[..., 0], self.given_pushes
        done = 0

        def until() -> Motion:
            n = done // every + 1
            return Motion(sim, t[:n], *(x[..., :n, :] for x in whole), *given)

        try:
            while done < self.steps and not (gone.all() and gone.size):
                q, v = standing_in(model, gone, q, v)
                start = np.where(gone[..., None], 0.0, start).astype(self.real)
                n = min(held or at_once, self.steps - done)
                if controller is not None:
                    self.command[0] = np.asarray(controller(done * sim.dt, q, v), self.real)[..., None, :]
                part = max(1, n // every)
                span = slice(done // every + 1, done // every + 1 + part)
                results = _contact_steps.call(sim.problem, tuple(self.inputs(done, n, q, v, start).values()))
                done += n
                for array, result in zip(whole, results, strict=True):
                    array[..., span, :] = result
                q, v, start = (results[k][..., -1, :].copy() for k in (0, 1, 3))
                now = lost(q, v)
                if now.any() and on_invalid == "raise":
                    bad = lost(results[0], results[1]).reshape(-1, part).any(axis=0)
                    done -= (part - int(np.argmax(bad))) * every
                    raise ValueError("q and v are no longer finite")
                gone = gone | now
                for array in whole:
                    array[..., span, :][gone] = np.nan
                whole[4][..., span, 6][gone] = int(Status.INVALID)
                if progress is not None:
                    progress(done, self.steps)
        except KeyboardInterrupt:
            raise Interrupted(until()) from None
        except ValueError as cause:
            raise RolloutError(until(), sim.dt, cause) from cause
        whole[4][..., done // every + 1 :, 6] = int(Status.INVALID)
        return Motion(sim, t, *whole, *given)


class Command(NamedTuple):
    """Rows (..., ticks, n) of torques, and of targets and gains if motors go towards targets."""

    arrays: tuple[Any, ...]
    towards: bool


def _command(model: Model, tau: Any, steps: int) -> Command:
    nv = model.nv
    if isinstance(tau, PDTargets):
        targets = real_numbers(tau.targets, "targets")
        rows = targets[..., None, :] if targets.ndim == 1 or targets.shape[-2] not in _divisors(steps) else targets
        if rows.shape[-1] != model.nq:
            raise ValueError(f"rollout: the targets have shape {targets.shape}, expected (..., {model.nq})")
        ticks = rows.shape[-2]
        gains = [_gains(model, x, name, rows.ndim, ticks) for name, x in (("kp", tau.kp), ("kd", tau.kd))]
        added = real_numbers(tau.tau, "tau of the targets")
        added = np.broadcast_to(added, (*added.shape[:-1], nv) if added.ndim else (nv,))[..., None, :]
        return Command((np.broadcast_to(added, (*added.shape[:-2], ticks, nv)), rows, *gains), True)
    if isinstance(tau, OverTime):
        values = real_numbers(tau.values, "the values of tau")
        if values.ndim < 2 or values.shape[-1] != nv or values.shape[-2] not in _divisors(steps):
            raise ValueError(
                f"rollout: the values of tau have shape {values.shape}, expected (..., {steps}, {nv}), a row for each step "
                "or for every so many"
            )
        return Command((values,), False)
    values = np.zeros(nv, np.float32) if tau is None else real_numbers(tau, "tau")
    if values.shape[-1:] != (nv,):
        raise ValueError(f"rollout: tau has shape {values.shape}, expected (..., {nv})")
    return Command((values[..., None, :],), False)


def _divisors(steps: int) -> set[int]:
    return {n for n in range(1, steps + 1) if steps % n == 0}


def _gains(model: Model, values: ArrayLike, name: str, ndim: int, ticks: int) -> Any:
    """(..., ticks, nv); a number is that of all motors."""
    array, nv = real_numbers(values, name), model.nv
    if not (array >= 0).all():
        raise ValueError(f"rollout: {name} of the targets is {values}, expected no negative numbers")
    if array.ndim == 0:
        number, array = array, np.zeros(nv, np.result_type(array, np.float32))
        array[motors_of(model)] = number
    if array.shape[-1] != nv:
        raise ValueError(f"rollout: {name} of the targets has shape {array.shape}, expected (..., {nv})")
    if array.ndim == ndim and array.shape[-2] == ticks:
        return array
    return np.broadcast_to(array[..., None, :], (*array.shape[:-1], ticks, nv))


def _located(model: Model, push: Push) -> tuple[int, Array, Array, float, float]:
    """The body, the point in its canonical frame, the force, and from when to when."""
    from saltus.model.tree import canonical_rotation

    frame = model.frames[model.frame_index(push.frame)]
    joint = model.joints[frame.joint]
    force = real_numbers(push.force, "the force of a push")
    if force.shape != (3,) or not np.isfinite(force).all():
        raise ValueError(f"rollout: the force of a push is {push.force}, expected three finite numbers")
    if not (np.isfinite(push.start) and push.duration >= 0):
        raise ValueError(
            f"rollout: a push starts at {push.start} s for {push.duration} s, expected times, not negative"
        )
    at = canonical_rotation(joint.kind, joint.axis).T @ frame.placement[:3, 3]
    return frame.joint, at, force, push.start, push.start + push.duration
