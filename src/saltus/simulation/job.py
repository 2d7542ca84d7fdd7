"""What one call of a simulator is asked for, as arrays, and how it is run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike, OnInvalid, real_numbers
from saltus.constraints.report import Status
from saltus.model.model import Model
from saltus.model.motors import motors_of
from saltus.model.tree import canonical_rotation
from saltus.simulation.commands import OverTime, PDTargets
from saltus.simulation.contact_step import _contact_steps
from saltus.simulation.driven import Function, lost, standing_in
from saltus.simulation.motion import Motion, Push, Step
from saltus.simulation.rollout import Interrupted, RolloutError

if TYPE_CHECKING:
    from saltus.simulation.simulator import Simulator

AT_ONCE = 2000
"""Steps of all robots in one call, as long as one robot has a few: Ctrl-C is heard soon."""


class Job:
    """What one call of `step` or `rollout` is asked for, as arrays; states and impulses go along."""

    def __init__(
        self, sim: Simulator, q: ArrayLike, v: ArrayLike, tau: Any, steps: int, every: int, friction: ArrayLike,
        pushes: Sequence[Push], start: Step | Motion | None,
    ) -> None:  # fmt: skip
        model, self.sim, self.steps, self.every = sim.model, sim, steps, every
        arrays = {"q": real_numbers(q, "q"), "v": real_numbers(v, "v")}
        for name, size in (("q", model.nq), ("v", model.nv)):
            if arrays[name].shape[-1:] != (size,):
                raise ValueError(f"rollout: {name} has shape {arrays[name].shape}, expected (..., {size})")
        if start is not None and not isinstance(start, (Step, Motion)):
            raise TypeError(f"rollout: start is {start!r}, expected a step or a motion")
        held, touch = (sim.nothing if start is None else start).ending
        if held.shape[-1] != sim.problem.nheld or touch.shape[-2] != sim.most_contacts:
            raise ValueError("rollout: start is of another simulator, expected a step or a motion of this one")
        factor = real_numbers(friction, "friction")
        if not (factor >= 0).all():
            raise ValueError(f"rollout: friction is {friction}, expected factors, not negative")
        command = _command(model, tau, steps, max(arrays["q"].ndim, arrays["v"].ndim))
        given = (*arrays.values(), *_arrays(tau))
        self.real: Any = np.result_type(np.float32, *(x.dtype for x in given if x.dtype.kind == "f"))
        leading = np.broadcast_shapes(
            *(x.shape[:-1] for x in (*arrays.values(), held)), factor.shape, *(x.shape[:-2] for x in command.arrays)
        )
        self.leading = leading
        self.state: list[Any] = [
            np.broadcast_to(x, (*leading, *x.shape[x.ndim - own :])).astype(self.real)
            for x, own in ((arrays["q"], 1), (arrays["v"], 1), (held, 1), (touch, 2))
        ]
        """q, v, and impulses to begin with: of joints' rows, and of contacts."""
        self.settings = np.empty((*leading, 7), self.real)
        self.settings[...] = sim.settings(np.dtype(self.real))
        self.settings[..., 3] = factor
        self.command = [x.astype(self.real) for x in command.arrays]
        self.hold = max(1, steps // max(1, self.command[0].shape[-2]))
        self.effort = limits(model.effort_limit if command.towards else np.full(model.nv, np.inf), self.real)
        self.pushes = [_located(model, push) for push in pushes]
        self.acted: Any = np.broadcast_to(factor, leading).astype(self.real), tuple(pushes)

    def inputs(self, first: int, steps: int, q: Array, v: Array, held: Array, touch: Array) -> dict[str, Any]:
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
        plan = np.array([*sim.plan, hold, every, len(self.pushes)], np.int32)
        rows = np.full(max(1, steps // every), steps // every, np.int32)
        bodies = np.array([body for body, *_ in self.pushes], np.int32)
        at = np.array([at for _, at, *_ in self.pushes], self.real).reshape(-1, 3)
        times = sim.dt * (first + np.arange(ticks) * hold)
        forces = np.zeros((ticks, len(self.pushes), 3), self.real)
        for n, (_, _, force, begin, end) in enumerate(self.pushes):
            forces[(times >= begin - 1e-9) & (times < end - 1e-9), n] = force
        return {
            "plan": plan, "clock": np.zeros(ticks, np.int32), "record": rows, "pushed": bodies, "q": q, "v": v, "held": held,
            "touch": touch, "settings": self.settings, "effort": self.effort, "at": at, "push": forces,
            **dict(zip(("tau", "kp", "kd", "target"), commands, strict=False)),
        }  # fmt: skip

    def run(
        self, sim: Simulator, controller: Function | None, held: int, progress: Any, on_invalid: OnInvalid
    ) -> Motion:
        rows = self.steps // self.every + 1
        model, every = sim.model, self.every
        q, v, held_impulses, touch = self.state
        t = sim.dt * every * np.arange(rows, dtype=np.float64)
        gone = lost(q, v)
        if on_invalid == "raise" and gone.any():
            raise ValueError("rollout: q or v hold a NaN or an infinity, expected finite numbers")
        shapes = ((model.nq,), (model.nv,), (model.nv,), held_impulses.shape[-1:], touch.shape[-2:], (7,))
        whole: list[Any] = [np.full((*self.leading, rows, *shape), np.nan, self.real) for shape in shapes]
        rank = len(self.leading)
        first = (slice(None),) * rank + (0,)
        for array, begin in zip(whole, (q, v, np.zeros(()), held_impulses, touch, np.zeros(())), strict=True):
            array[first] = begin
        whole[5][first][gone, 6] = int(Status.INVALID)
        robots = int(np.prod(self.leading))
        at_once = max(every, held, AT_ONCE // max(1, min(robots, 64)) // every * every)
        done = 0

        def until() -> Motion:
            n = done // every + 1
            parts: list[Any] = [x[(slice(None),) * rank + (slice(n),)] for x in whole]
            return Motion(sim, t[:n], *parts, *self.acted)

        try:
            while done < self.steps and not (gone.all() and gone.size):
                q, v = standing_in(model, gone, q, v)
                touch = np.where(gone[..., None, None], np.array([-1.0, 0.0, 0.0, 0.0], self.real), touch)
                held_impulses = np.where(gone[..., None], np.zeros((), self.real), held_impulses)
                n = min(held or at_once, self.steps - done)
                if controller is not None:
                    asked = np.asarray(controller(done * sim.dt, q, v), self.real)
                    if asked.shape[-1:] != (model.nv,):
                        raise ValueError(f"tau(t, q, v) has shape {asked.shape}, expected (..., {model.nv})")
                    self.command[0] = asked[..., None, :]
                part = max(1, n // every)
                span = (slice(None),) * rank + (slice(done // every + 1, done // every + 1 + part),)
                given = self.inputs(done, n, q, v, held_impulses, touch)
                results = _contact_steps.call(sim.problem, tuple(given.values()))
                if done % every:
                    gather_reports(results[5], whole[5][span])
                for array, result in zip(whole, results, strict=True):
                    array[span] = result
                last = (slice(None),) * rank + (-1,)
                q, v, held_impulses, touch = (results[k][last].copy() for k in (0, 1, 3, 4))
                now = lost(q, v)
                if now.any() and on_invalid == "raise":
                    bad = lost(results[0], results[1]).reshape(-1, part).any(axis=0)
                    done += int(np.argmax(bad)) * every
                    raise ValueError("q and v are no longer finite")
                done += n
                gone = gone | now
                for array in whole:
                    array[span][gone] = np.nan
                whole[5][span][gone, :, 6] = int(Status.INVALID)
                if progress is not None:
                    progress(done, self.steps)
        except KeyboardInterrupt:
            raise Interrupted(until()) from None
        except ValueError as cause:
            raise RolloutError(until(), sim.dt, cause) from cause
        whole[5][..., done // every + 1 :, 6] = int(Status.INVALID)
        return Motion(sim, t, *whole, *self.acted)


def gather_reports(report: Array, before: Array) -> None:
    """Adds to what steps say what those before them in the same row said: counts add up, the rest is the worst."""
    worse = before[..., 2] > report[..., 2]
    report[worse, 5] = before[worse, 5]
    report[..., :2] += before[..., :2]
    for k in (2, 3, 4, 6):
        report[..., k] = np.maximum(report[..., k], before[..., k])


class Command(NamedTuple):
    """Rows (..., ticks, n) of torques, and of targets and gains if motors go towards targets."""

    arrays: tuple[Any, ...]
    towards: bool


def _arrays(tau: Any) -> list[Any]:
    """Those of a command: single numbers have no say in the type of numbers."""
    parts = vars(tau).values() if isinstance(tau, PDTargets | OverTime) else (tau,)
    return [np.asarray(part) for part in parts if np.ndim(part)]


def _command(model: Model, tau: Any, steps: int, rank: int) -> Command:
    """`rank`: axes of states. Targets with more have rows of time."""
    nv = model.nv
    if isinstance(tau, PDTargets):
        targets = real_numbers(tau.targets, "targets")
        rows = targets if targets.ndim > rank else targets[..., None, :]
        if rows.shape[-1:] != (model.nq,) or rows.shape[-2] not in _divisors(steps):
            raise ValueError(
                f"rollout: the targets have shape {targets.shape}, expected (..., {model.nq}) with no more axes than states "
                f"have, or (..., {steps}, {model.nq}) with one more, a row for each step or for every so many"
            )
        ticks = rows.shape[-2]
        gains = [gains_of(model, x, name, rows.ndim, ticks) for name, x in (("kp", tau.kp), ("kd", tau.kd))]
        added = real_numbers(tau.tau, "tau of the targets")
        added = np.broadcast_to(added, (*added.shape[:-1], nv) if added.ndim else (nv,))[..., None, :]
        return Command((np.broadcast_to(added, (*added.shape[:-2], ticks, nv)), *gains, rows), True)
    if isinstance(tau, OverTime):
        values = real_numbers(tau.values, "the values of tau")
        if values.ndim < 2 or values.shape[-1] != nv or values.shape[-2] not in _divisors(steps):
            raise ValueError(
                f"rollout: the values of tau have shape {values.shape}, expected (..., {steps}, {nv}), a row for each step "
                "or for every so many"
            )
        return Command((values, *no_gains(values)), False)
    values = np.zeros(nv, np.float32) if tau is None else real_numbers(tau, "tau")
    if values.shape[-1:] != (nv,):
        raise ValueError(f"rollout: tau has shape {values.shape}, expected (..., {nv})")
    values = values[..., None, :]
    return Command((values, *no_gains(values)), False)


def no_gains(rows: Any) -> tuple[Any, Any]:
    """What stands for kp and kd of torques in rows (..., ticks, nv)."""
    none = np.zeros(rows.shape[-2:], np.float32)
    return none, none


def _divisors(steps: int) -> set[int]:
    return {n for n in range(1, steps + 1) if steps % n == 0} | {1}


def gains_of(model: Model, values: ArrayLike, name: str, ndim: int, ticks: int) -> Any:
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
    if not isinstance(push, Push):
        raise TypeError(f"rollout: a push is {push!r}, expected a Push")
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


def limits(values: Array, real: Any) -> Any:
    """Limits of motors (nv,), none being large numbers."""
    return np.minimum(values, float(np.finfo(real).max) / 4.0).astype(real)
