"""Rollouts: the motion of a robot, or of a batch of robots, from a state on.

    dq/dt = v,      dv/dt = aba(q, v, tau(t, q, v) - damping v)

The tree moves freely: there are no contacts, the joints' limits do not hold it, and loops stay open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from saltus.arrays import Array, ArrayLike
from saltus.dynamics.aba import aba
from saltus.model.model import Model
from saltus.simulation.steps import METHODS, Acceleration, Method

Controller = Callable[[float, Array, Array], ArrayLike]
"""tau(t, q, v): torques (..., nv) for the time [s] and the state (..., nq), (..., nv)."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States over time, with the leading axes (...) of the batch in front of that of time."""

    t: Array  # (T,) [s]
    q: Array  # (..., T, nq)
    v: Array  # (..., T, nv)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a rollout. `trajectory` holds the states until then."""

    def __init__(self, trajectory: Trajectory) -> None:
        super().__init__(f"rollout: interrupted at {trajectory.t[-1]:g} s")
        self.trajectory = trajectory


class RolloutError(ValueError):
    """A rollout that could not go on: numbers have grown beyond all limits, or a controller has raised a ValueError.

    `trajectory` holds the states until then.
    """

    def __init__(self, trajectory: Trajectory, dt: float, cause: ValueError) -> None:
        super().__init__(
            f"rollout: could not go on after {trajectory.t[-1]:g} s: {cause}; if the motion diverges, a dt smaller than "
            f"{dt:g} s may help"
        )
        self.trajectory = trajectory


def rollout(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | Controller | None = None,
    *,
    duration: float,
    dt: float = 1e-3,
    method: Method = "rk4",
    damping: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Trajectory:
    """The states at 0, dt, 2 dt ... duration [s] of the motion that begins at `q` (..., nq), `v` (..., nv).

    tau: torques (..., nv) [N m, N] that stay the same, or a function tau(t, q, v) that gives them; by default none.
    dt: the step [s]; the duration is rounded to a whole number of them.
    method: "rk4" (fourth order) or "semi_implicit_euler" (first order, a quarter of the work).
    damping: whether the joints are damped as the model's `damping` says. Dry friction is left out.
    progress: is called as progress(steps done, steps in all) after every step.

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
    """
    if method not in METHODS:
        raise ValueError(f"rollout: method is {method!r}, expected one of {', '.join(map(repr, METHODS))}")
    if not (np.isfinite(dt) and dt > 0):
        raise ValueError(f"rollout: dt is {dt}, expected a positive time in seconds")
    if not (np.isfinite(duration) and duration >= 0):
        raise ValueError(f"rollout: duration is {duration}, expected a time in seconds, not negative")
    torques: Any = tau if callable(tau) else np.zeros(model.nv, np.float32) if tau is None else np.asarray(tau)
    arrays = {"q": np.asarray(q), "v": np.asarray(v)} | ({} if callable(torques) else {"tau": torques})
    leading = _leading(model, arrays)
    real = np.result_type(np.float32, *arrays.values())
    q, v = (np.broadcast_to(arrays[name].astype(real), (*leading, arrays[name].shape[-1])) for name in ("q", "v"))

    steps = round(duration / dt)
    t = dt * np.arange(steps + 1, dtype=np.float64)
    qs, vs = (np.empty((*x.shape[:-1], steps + 1, x.shape[-1]), real) for x in (q, v))
    acceleration, step = _dynamics(model, torques, real, damping), METHODS[method]
    acceleration(0.0, q, v)  # complains of what is wrong with the arguments
    qs[..., 0, :], vs[..., 0, :] = q, v
    done = 0
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            for done in range(steps):
                q, v = step(model, acceleration, t[done], q, v, dt)
                if not (np.isfinite(q).all() and np.isfinite(v).all()):
                    raise ValueError("q and v are no longer finite")
                qs[..., done + 1, :], vs[..., done + 1, :] = q, v
                if progress is not None:
                    progress(done + 1, steps)
    except KeyboardInterrupt:
        raise Interrupted(_until(done, t, qs, vs)) from None
    except ValueError as cause:
        raise RolloutError(_until(done, t, qs, vs), dt, cause) from cause
    return Trajectory(t, qs, vs)


def _dynamics(model: Model, torques: Any, real: Any, damping: bool) -> Acceleration:
    """a(t, q, v)"""
    resistance = model.damping.astype(real)

    def acceleration(t: float, q: Array, v: Array) -> Array:
        tau = np.asarray(torques(t, q, v) if callable(torques) else torques, real)
        return aba(model, q, v, tau - resistance * v if damping else tau)

    return acceleration


def _leading(model: Model, arrays: dict[str, Any]) -> tuple[int, ...]:
    """The leading axes of all, once the last ones are what the model wants."""
    for name, array in arrays.items():
        size = model.nq if name == "q" else model.nv
        if array.ndim == 0 or array.shape[-1] != size:
            raise ValueError(f"rollout: {name} has shape {array.shape}, expected (..., {size})")
    try:
        return np.broadcast_shapes(*(array.shape[:-1] for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"rollout: the leading axes of {shapes} do not go together") from None


def _until(done: int, t: Array, q: Array, v: Array) -> Trajectory:
    return Trajectory(t[: done + 1], q[..., : done + 1, :], v[..., : done + 1, :])
