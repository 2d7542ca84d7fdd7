"""What torques do over time, where it is known ahead: a row for each step. Between them, torques and targets are held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saltus.arrays import Array
from saltus.model.manifold import difference
from saltus.model.model import Model
from saltus.simulation.stepping import _steps, _steps_along, _steps_towards


@dataclass(frozen=True, eq=False)
class OverTime:
    """Torques (..., steps, nv) [N m, N]: row k acts from step k to the next.

    >>> import numpy as np, saltus as sl
    >>> robot = sl.load_robot("double_pendulum")
    >>> push = np.zeros((100, 2))
    >>> push[:20, 0] = 1.0  # for 20 ms
    >>> swing = sl.rollout(robot, robot.neutral(), np.zeros(2), sl.OverTime(push), duration=0.1)
    >>> swing.tau[[0, 19, 20], 0]
    array([1., 1., 0.])
    """

    values: ArrayLike


@dataclass(frozen=True, eq=False)
class PDTargets:
    """Torques that pull joints towards targets: tau + kp (target (-) q) - kd v.

    targets: configurations (..., steps, nq).
    kp, kd: gains (..., nv), or a number for all [N m/rad, N m s/rad].
    tau: torques (..., nv) that are added [N m, N].

    >>> import numpy as np, saltus as sl
    >>> robot = sl.load_robot("double_pendulum")
    >>> raised = np.tile([0.5, 0.2], (2000, 1))
    >>> pull = sl.PDTargets(raised, kp=50.0, kd=5.0, tau=sl.gravity(robot, raised[0]))
    >>> motion = sl.rollout(robot, robot.neutral(), np.zeros(2), pull, duration=2)
    >>> motion.q[-1].round(3)
    array([0.5, 0.2])
    """

    targets: ArrayLike
    kp: ArrayLike
    kd: ArrayLike
    tau: ArrayLike = 0.0


class Command:
    """The torques of a rollout, row by row, for a model, a number of steps and a type of numbers."""

    row = 0
    """The step at hand."""

    def __init__(self, given: OverTime | PDTargets | Array, model: Model, steps: int, real: Any) -> None:
        self.model, self.given, self.real = model, given, real
        if isinstance(given, OverTime):
            self.rows = _rows(given.values, steps, model.nv, "the values of tau", real)
        elif isinstance(given, PDTargets):
            self.rows = _rows(given.targets, steps, model.nq, "the targets", real)
            difference(model, model.neutral().astype(real), self.rows)  # complains of what is no configuration
            self.gains = [
                _gains(x, model.nv, name, real) for name, x in (("kp", given.kp), ("kd", given.kd), ("tau", given.tau))
            ]

    @property
    def leading(self) -> tuple[int, ...]:
        """The axes of the batch."""
        if isinstance(self.given, PDTargets):
            return np.broadcast_shapes(self.rows.shape[:-2], *(x.shape[:-1] for x in self.gains))
        return self.rows.shape[:-2] if isinstance(self.given, OverTime) else self.given.shape[:-1]

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        """In the step at hand."""
        if not isinstance(self.given, (OverTime, PDTargets)):
            return self.given
        if not self.rows.shape[-2]:  # no step: nothing is asked for
            return np.zeros(self.model.nv, self.real)
        row = self.rows[..., min(self.row, self.rows.shape[-2] - 1), :]
        return row if isinstance(self.given, OverTime) else self.towards(row, q, v)

    def towards(self, target: Array, q: Array, v: Array) -> Array:
        kp, kd, tau = self.gains
        return tau + kp * difference(self.model, q, target) - kd * v

    def at(self, first: int, q: Array, v: Array) -> Array:
        """(..., n, nv) at the states (..., n, nq), (..., n, nv) of the steps from `first` on."""
        if not isinstance(self.given, (OverTime, PDTargets)):
            return self.given[..., None, :]
        last = self.rows.shape[-2] - 1
        rows = self.rows[..., np.minimum(np.arange(first, first + q.shape[-2]), last), :]
        if isinstance(self.given, OverTime):
            return rows
        kp, kd, tau = (x[..., None, :] for x in self.gains)
        return tau + kp * difference(self.model, q, rows) - kd * v

    def stepper(self, acting: Sequence[bool], dt: float) -> Callable[[int, int, Array, Array, tuple[Array, ...]], None]:
        """(first, n, q, v, out): the states (..., n, nq), (..., n, nv) after each of n steps, in one call, and whether they
        are lost (..., n). `acting`: whether springs act, and dampers."""
        h, passive = np.array([dt], self.real), np.array(acting, self.real)

        def run(first: int, n: int, q: Array, v: Array, out: tuple[Array, ...]) -> None:
            clock = np.zeros(n, np.int32)
            clock[0] = n
            state: tuple[Any, ...] = (clock, q, v, passive, h)
            if isinstance(self.given, OverTime):
                _steps_along.call(self.model, (*state, self.rows[..., first : first + n, :]), out)
            elif isinstance(self.given, PDTargets):
                kp, kd, tau = self.gains
                rows = self.rows[..., first : first + n, :]
                _steps_towards.call(self.model, (*state, tau, kp, kd, rows), out)
            else:
                _steps.call(self.model, (*state, self.given), out)

        return run


def _rows(values: ArrayLike, steps: int, size: int, what: str, real: Any) -> NDArray[Any]:
    array = np.asarray(values, real)
    if array.ndim < 2 or array.shape[-2:] != (steps, size):
        raise ValueError(
            f"rollout: {what} have shape {array.shape}, expected (..., {steps}, {size}), a row for each step"
        )
    return array


def _gains(values: ArrayLike, nv: int, name: str, real: Any) -> NDArray[Any]:
    array = np.asarray(values, real)
    if array.ndim and array.shape[-1] != nv:
        raise ValueError(f"rollout: {name} of the targets has shape {array.shape}, expected (..., {nv})")
    return np.broadcast_to(array, (nv,)) if array.ndim == 0 else array
