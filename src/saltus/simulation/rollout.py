"""Rollouts: the motion of a robot, or of a batch of robots, from a state on.

    dq/dt = v,      dv/dt = aba(q, v, tau(t, q, v) + stiffness (rest - q) - damping v)

The tree moves freely, loops open; with `ConstrainedDynamics` in the place of the model, its constraints hold:

    dq/dt = v,      M dv/dt + b = tau + J^T forces,      J dv/dt = goal

The joints' limits do not hold the robot, and contacts hold it both ways: which of them do is the caller's to say.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saltus.arrays import Array, ArrayLike, OnInvalid, on_gpu
from saltus.constraints.dynamics import ConstrainedDynamics
from saltus.constraints.report import Status
from saltus.kernel.marking import check_choice
from saltus.model.manifold import integrate
from saltus.model.model import Model
from saltus.model.parameters import VariedModel
from saltus.simulation.commands import Command, OverTime, PDTargets
from saltus.simulation.driven import Driven, Function, lost, standing_in
from saltus.simulation.gpu_rollout import roll_out
from saltus.simulation.steps import METHODS, Method

LEAST_AT_ONCE, AT_ONCE = 32, 4096
"""Steps of one call, each and of all robots together: enough for the call to cost nothing, and few enough to stay in the
cache; and Ctrl-C is heard soon."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States over time, and what acted on them, with the leading axes (...) of the batch in front of that of time.

    Without constraints nm and nc are 0. Where a contact switches on, the state is that after its impact.
    """

    t: Array  # (T,) [s]
    q: Array  # (..., T, nq)
    v: Array  # (..., T, nv)
    tau: Array  # (..., T, nv) torques of the controller [N m, N]
    forces: Array  # (..., T, nm) of the constraints [N, N m]
    active: Array  # (..., T, nc) which of them hold, 1 or 0
    status: NDArray[
        np.int64
    ]  # (..., T) of `Status`: the solver's worst in the step from there on, CONVERGED without one;
    # INVALID where the robot is lost, or where nothing could be solved

    @property
    def finished(self) -> NDArray[np.bool_]:
        """(...), whether each robot has reached the end: its last state is finite."""
        return ~lost(self.q[..., -1, :], self.v[..., -1, :])

    @property
    def worst_status(self) -> NDArray[np.int64]:
        """(...) of `Status`: of each robot, the worst over time."""
        return np.asarray(self.status.max(axis=-1))


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a rollout. `trajectory` holds the states until then."""

    def __init__(self, trajectory: Any) -> None:
        super().__init__(f"rollout: interrupted at {trajectory.t[-1]:g} s")
        self.trajectory = trajectory


class RolloutError(ValueError):
    """A rollout that could not go on: numbers have grown beyond all limits, or a controller has raised a ValueError.

    `trajectory` holds the states until then; torques and forces that are not known at the last of them are NaN.
    """

    def __init__(self, trajectory: Any, dt: float, cause: ValueError) -> None:
        super().__init__(
            f"rollout: could not go on after {trajectory.t[-1]:g} s: {cause}; if the motion diverges, a dt smaller than "
            f"{dt:g} s may help"
        )
        self.trajectory = trajectory


def rollout(
    robot: Model | ConstrainedDynamics,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | OverTime | PDTargets | Function | None = None,
    *,
    duration: float,
    dt: float = 1e-3,
    method: Method = "rk4",
    springs: bool = True,
    damping: bool = False,
    active: ArrayLike | Function | None = None,
    control_period: float | None = None,
    disturbance: Function | None = None,
    external: ArrayLike | Function | None = None,
    progress: Callable[[int, int], None] | None = None,
    on_invalid: OnInvalid = "raise",
) -> Trajectory:
    """The states at 0, dt, 2 dt ... duration [s] of the motion that begins at `q` (..., nq), `v` (..., nv).

    robot: a model, which moves freely, or `ConstrainedDynamics`, whose constraints hold it by whichever method they name.
    tau: torques (..., nv) [N m, N] that stay the same; `OverTime`, with a row for each step; `PDTargets` to go to; or a
        function tau(t, q, v) that gives them; by default none.
    dt: the step [s]; the duration is rounded to a whole number of them.
    method: "rk4" (fourth order) or "semi_implicit_euler" (first order, a quarter of the work; of free robots many steps in
        one call, unless a function has to be asked).
    springs: whether the springs of joints act, those of the model's `stiffness`.
    damping: whether the joints are damped as the model's `damping` says. Dry friction is left out.
    active: which constraints hold, 1 or 0: (nc,), or (..., steps + 1, nc) with a row for each step, or a function
        active(t, q, v) that is asked at the beginning of each step; by default all. Where one switches on, velocities
        jump as an impact without rebound makes them. Those that hold from the start do not jump.
    control_period: how long torques are held until `tau` is asked again [s], a multiple of dt; by default it is asked
        whenever the method wants accelerations.
    disturbance: further torques (..., nv) at all times, as a function of (t, q, v): a push.
    external: forces (..., njoints, 6) on each joint's body in its own frame, linear first [N, N m], as in `aba`; or a
        function of (t, q, v).
    progress: is called as progress(steps done, steps in all) after every step.
    on_invalid: "raise", or "mark": a robot whose state is not finite, or not valid from the start, is lost; from there on
        all that is recorded of it is NaN, with the status INVALID, and the others go on. Controllers then see a robot at
        rest in its neutral configuration in its place.

    Where the solver of constraints has not converged, `status` says so, and a RuntimeWarning at the end.

    On a GPU, q and v of CuPy or PyTorch, (robots, ...): all steps of free robots, by "semi_implicit_euler" and under torques
    known ahead, are one launch, and what is recorded is there. A robot that is lost has the status INVALID.

    If all arrays are float32, the motion is computed and recorded in float32. Ctrl-C raises `Interrupted`, which is a
    KeyboardInterrupt, and a motion that cannot go on raises `RolloutError`, which is a ValueError. Nothing is lost: both
    have the states until then as `trajectory`.

    >>> import saltus as sl
    >>> builder = sl.ModelBuilder("ball")
    >>> _ = builder.add_body(builder.add_joint("root", "free_flyer"), mass=1.0, inertia=np.eye(3))
    >>> ball = builder.build()
    >>> fall = sl.rollout(ball, ball.neutral(), np.zeros(6), duration=1.0, dt=0.1)
    >>> fall.q.shape, fall.q[-1, :3].round(3)  # 9.81 / 2 metres lower
    ((11, 7), array([ 0.   ,  0.   , -4.905]))

    >>> linkage = sl.load_robot("four_bar")
    >>> closed = sl.ConstrainedDynamics(linkage, sl.model_loops(linkage), method="prox_ltl")
    >>> swing = sl.rollout(closed, linkage.neutral(), np.zeros(3), duration=0.1)
    >>> swing.forces.shape
    (101, 3)
    """
    if method not in METHODS:
        raise ValueError(f"rollout: method is {method!r}, expected one of {', '.join(map(repr, METHODS))}")
    if not (np.isfinite(dt) and dt > 0):
        raise ValueError(f"rollout: dt is {dt}, expected a positive time in seconds")
    if not (np.isfinite(duration) and duration >= 0):
        raise ValueError(f"rollout: duration is {duration}, expected a time in seconds, not negative")
    steps, held = round(duration / dt), _steps_held(control_period, dt)
    check_choice(on_invalid, "rollout")
    model = robot.model if isinstance(robot, ConstrainedDynamics) else robot
    if on_gpu(q) or on_gpu(v):
        more = any(x is not None for x in (active, control_period, disturbance, external)) or callable(tau)
        if more or model is not robot or method != "semi_implicit_euler":
            raise TypeError(
                "rollout: on a GPU robots are free, steps are of method='semi_implicit_euler', and torques known ahead; "
                "expected no constraints, functions and external forces"
            )
        t = dt * np.arange(steps + 1, dtype=np.float64)
        return Trajectory(t, *roll_out(model, q, v, tau, steps, dt, (springs, damping)))
    ahead = isinstance(tau, OverTime | PDTargets)
    torques: Any = tau if callable(tau) or ahead else np.zeros(model.nv, np.float32) if tau is None else np.asarray(tau)
    masks = _masks(robot, active, steps)
    arrays = {"q": np.asarray(q), "v": np.asarray(v)} | ({} if callable(torques) or ahead else {"tau": torques})
    _refuse_rows(arrays, steps)
    real = np.result_type(np.float32, *arrays.values(), *_numbers(tau))
    command = None if callable(torques) else Command(torques if ahead else torques.astype(real), model, steps, real)
    pushed = () if external is None or callable(external) else _pushed(model, np.asarray(external))
    others = [() if callable(masks) else masks.shape[:-2], command.leading if ahead and command else (), pushed]
    leading = _leading(model, arrays, others)
    q, v = (np.broadcast_to(arrays[name].astype(real), (*leading, arrays[name].shape[-1])) for name in ("q", "v"))

    driven = Driven(
        robot, command if ahead else torques, masks, leading, real, springs, damping, disturbance, external, on_invalid
    )
    step = METHODS[method]
    t = dt * np.arange(steps + 1, dtype=np.float64)
    sizes = (model.nq, model.nv, model.nv, driven.nm, driven.nc)
    empty = _rooms((*leading, steps + 1), sizes, real)
    whole = Trajectory(*[t, *empty, np.empty((*leading, steps + 1), np.int64)])
    known = -1  # the last state of which everything is recorded
    gone = np.zeros(leading, bool)
    if on_invalid == "mark":
        gone |= lost(integrate(model, q, np.zeros(model.nv, real), on_invalid="mark"), v)
        q, v = standing_in(model, gone, q, v)

    def begin(k: int, q: Array, v: Array) -> tuple[Array, Array]:
        """Records state k, and what acts on it from there on; its velocity, after an impact if any, and acceleration."""
        nonlocal known
        driven.status = np.full(leading, int(Status.CONVERGED))
        if command is not None:
            command.row = k
        whole.q[..., k, :], whole.v[..., k, :] = q, v
        whole.v[..., k, :] = v = driven.switch(k, t[k], q, v)
        if held and k % held == 0:
            driven.hold(t[k], q, v)
        a = driven(t[k], q, v)
        whole.tau[..., k, :], whole.forces[..., k, :], whole.active[..., k, :] = (
            driven.tau,
            driven.forces,
            driven.active,
        )
        note(k)
        known = k
        return v, a

    def note(k: int) -> None:
        """Records the status of the step from k on, and that robots which are lost have nothing else to record."""
        whole.status[..., k] = np.where(gone, int(Status.INVALID), driven.status)
        if gone.any():
            for array in (whole.q, whole.v, whole.tau, whole.forces, whole.active):
                array[..., k, :][gone] = np.nan

    try:
        v, a = begin(0, q, v)  # complains of what is wrong with the arguments
    except KeyboardInterrupt:
        whole.q[..., 0, :], whole.v[..., 0, :] = q, v
        raise Interrupted(_until(0, known, whole)) from None
    done, stepper, at_once = 0, None, max(LEAST_AT_ONCE, AT_ONCE // max(1, gone.size))
    plain = external is None and not (held or disturbance or model.coupling)
    if command and model is robot and method == "semi_implicit_euler" and plain:
        stepper = command.stepper((springs, damping), dt)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            while done < steps:
                k = done
                if gone.all() and gone.size:
                    break
                if stepper is not None and not gone.any():
                    n = min(at_once, steps - k)
                    rows = slice(k + 1, k + n + 1)
                    new_q, new_v = whole.q[..., rows, :], whole.v[..., rows, :]
                    flags = np.empty((*leading, n), real)
                    stepper(k, n, q, v, (new_q, new_v, flags))
                    if not flags.any():
                        whole.tau[..., rows, :] = command.at(k + 1, new_q, new_v)  # type: ignore[union-attr]
                        whole.status[..., rows] = int(Status.CONVERGED)
                        q, v = new_q[..., -1, :].copy(), new_v[..., -1, :].copy()
                        known = done = k + n
                        if progress is not None:
                            for passed in range(k + 1, done + 1):
                                progress(passed, steps)
                        continue
                    stepper = None  # a robot gets lost on the way: see when
                    v, a = begin(k, q, v)
                q, v = step(model, driven, t[k], q, v, a, dt, on_invalid)
                note(k)
                if (now := lost(q, v)).any():
                    if on_invalid == "raise":
                        raise ValueError("q and v are no longer finite")
                    gone |= now
                    q, v = standing_in(model, gone, q, v)
                done = k + 1
                v, a = begin(done, q, v)
                if progress is not None:
                    progress(done, steps)
    except KeyboardInterrupt:
        raise Interrupted(_until(done, known, whole)) from None
    except ValueError as cause:
        raise RolloutError(_until(done, known, whole), dt, cause) from cause
    _forget(whole, done + 1, states=True)
    _warn_of(whole)
    return whole


def _rooms(leading: tuple[int, ...], sizes: Sequence[int], real: Any) -> list[Any]:
    """Arrays (..., size) in one piece of memory: a system gives large pieces by large pages, which takes less time."""
    count = math.prod(leading)
    memory = np.empty(count * sum(sizes), real)
    parts = np.split(memory, np.cumsum([count * size for size in sizes])[:-1])
    return [part.reshape(*leading, size) for part, size in zip(parts, sizes, strict=True)]


def _warn_of(motion: Trajectory) -> None:
    """Whoever does not look at the status should know that there is something to see."""
    missed = (motion.status > int(Status.CONVERGED)) & (motion.status < int(Status.INVALID))
    if missed.any():
        first = motion.t[np.argwhere(missed)[:, -1].min()]
        worst = Status(int(motion.status[missed].max())).name
        warnings.warn(
            f"rollout: the solver of constraints did not converge at {missed.sum()} of {missed.size} states, first at "
            f"{first:g} s, its worst status being {worst}; see `status` of the trajectory",
            RuntimeWarning,
            stacklevel=3,
        )


def _steps_held(period: float | None, dt: float) -> int:
    """For how many steps torques are held; 0: for none at all."""
    if period is None:
        return 0
    held = round(period / dt) if np.isfinite(period) else 0
    if held < 1 or abs(period - held * dt) > 1e-6 * dt:
        raise ValueError(f"rollout: control_period is {period}, expected a multiple of dt, {dt:g} s")
    return held


def _masks(robot: Model | ConstrainedDynamics, active: ArrayLike | Function | None, steps: int) -> Any:
    """The function, or an array (..., steps + 1, nc)."""
    if active is not None and not isinstance(robot, ConstrainedDynamics):
        raise ValueError("rollout: active is for constraints, expected ConstrainedDynamics in the place of the model")
    if callable(active):
        return active
    count = len(robot.constraints) if isinstance(robot, ConstrainedDynamics) else 0
    array = np.ones(count) if active is None else np.asarray(active)
    if array.ndim == 0 or array.shape[-1] != count or array.shape[-2:-1] not in ((), (1,), (steps + 1,)):
        raise ValueError(f"rollout: active has shape {array.shape}, expected ({count},) or (..., {steps + 1}, {count})")
    return np.broadcast_to(array, (*array.shape[:-2], steps + 1, count))


def _numbers(tau: Any) -> list[Any]:
    """The arrays of a command, whose types count."""
    given = tau.values if isinstance(tau, OverTime) else tau.targets if isinstance(tau, PDTargets) else None
    return [] if given is None else [np.asarray(given)]


def _pushed(model: Model, external: Any) -> tuple[int, ...]:
    """The leading axes of external forces."""
    if external.shape[-2:] != (model.njoints, 6):
        raise ValueError(f"rollout: external has shape {external.shape}, expected (..., {model.njoints}, 6)")
    return tuple(external.shape[:-2])


def _refuse_rows(arrays: dict[str, Any], steps: int) -> None:
    """One robot, and as many torques as there are steps: it is likely that time is meant."""
    tau = arrays.get("tau")
    if tau is not None and tau.ndim == 2 and len(tau) in (steps, steps + 1) and len(tau) > 1:
        if arrays["q"].ndim == arrays["v"].ndim == 1:
            raise ValueError(
                f"rollout: tau has shape {tau.shape}, which may be {len(tau)} robots or {steps} steps; expected "
                "`OverTime(tau)` for torques along time, or q and v with an axis for the robots"
            )


def _leading(model: Model, arrays: dict[str, Any], others: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The leading axes of all, once the last ones are what the model wants."""
    for name, array in arrays.items():
        size = model.nq if name == "q" else model.nv
        if array.ndim == 0 or array.shape[-1] != size:
            raise ValueError(f"rollout: {name} has shape {array.shape}, expected (..., {size})")
    several = model.leading if isinstance(model, VariedModel) else ()
    try:
        return np.broadcast_shapes(*(array.shape[:-1] for array in arrays.values()), *others, several)
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        named = zip(("active", "tau", "external", "the robots'"), [*others, several], strict=True)
        more = "".join(f", {name} {shape}" for name, shape in named if shape)
        raise ValueError(f"rollout: the leading axes of {shapes}{more} do not go together") from None


def _until(done: int, known: int, whole: Trajectory) -> Trajectory:
    """The states that were reached; what acts on the last one may not be known."""
    if known < done:
        _forget(whole, done)
    over_time: tuple[Any, ...] = (whole.q, whole.v, whole.tau, whole.forces, whole.active)
    kept = [array[..., : done + 1, :] for array in over_time]
    return Trajectory(*[whole.t[: done + 1], *kept, whole.status[..., : done + 1]])


def _forget(whole: Trajectory, first: int, states: bool = False) -> None:
    """Nothing is known from a state on of what acts on it, and, by choice, of the states themselves."""
    for array in (whole.tau, whole.forces, whole.active, *((whole.q, whole.v) if states else ())):
        array[..., first:, :] = np.nan
    whole.status[..., first:] = int(Status.INVALID)
