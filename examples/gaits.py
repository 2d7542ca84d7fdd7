"""What walking examples share: legs that take turns, feet that swing, footsteps of a linear inverted pendulum."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import saltus as sl

Array = NDArray[np.float64]

GRAVITY = 9.81  # m/s^2


class Swing(NamedTuple):
    """Where a foot that swings should be, and how it moves there."""

    position: Array  # (3,) m
    velocity: Array  # (3,) m/s
    acceleration: Array  # (3,) m/s^2


def swing(start: Array, end: Array, height: float, share: float, duration: float) -> Swing:
    """From `start` to `end` (3,), over `height`, after a share (0 to 1) of its duration [s].

    Smoothly, at rest at both ends: along the ground by 10 s^3 - 15 s^4 + 6 s^5, and up and down by 64 s^3 (1 - s)^3.
    """
    s = min(max(share, 0.0), 1.0)
    along = np.array([s**3 * (10 - 15 * s + 6 * s**2), 30 * s**2 * (1 - s) ** 2, 60 * s * (1 - s) * (1 - 2 * s)])
    hump = s * (1 - s)
    slope, bend = 1 - 2 * s, -2.0
    up = 64 * np.array([hump**3, 3 * hump**2 * slope, 6 * hump * slope**2 + 3 * hump**2 * bend])
    rates = np.array([1.0, 1.0 / duration, 1.0 / duration**2])
    way = np.outer(along * rates, end - start)
    way[:, 2] += height * up * rates
    return Swing(start + way[0], way[1], way[2])


@dataclass(frozen=True)
class Pendulum:
    """Footsteps by which a linear inverted pendulum goes on as wanted: x'' = w^2 (x - p), p where it stands.

    Its divergent part xi = x + x'/w runs away from p by e^(w t). A step that puts the foot where xi will be, less what xi
    has to run away by until the next step, brings back any motion at once.
    """

    height: float  # m
    period: float  # s, of a step
    width: float  # m, from foot to foot

    @property
    def rate(self) -> float:
        return float(np.sqrt(GRAVITY / self.height))

    @property
    def growth(self) -> float:
        """Of the divergent part, in a step."""
        return float(np.exp(self.rate * self.period))

    @property
    def sway(self) -> float:
        """How far inside of a foot the divergent part is when the foot takes over, in a walk straight ahead [m]."""
        return self.width / (self.growth + 1.0)

    def divergent(self, center: Array, velocity: Array) -> Array:
        return np.asarray((center + velocity / self.rate)[..., :2])

    def foothold(self, xi: Array, stance: Array, left: float, side: float, speed: Array) -> Array:
        """(2,) where the foot of a side (+1 left, -1 right) goes, `left` [s] before it takes over from the one at `stance`
        (2,), along the way in which the robot looks; `speed` (2,) is wanted [m/s]."""
        there = stance + (xi - stance) * np.exp(self.rate * left)
        offset = speed * self.period / (self.growth - 1.0)
        offset[1] -= side * self.sway
        return np.asarray(there - offset)


class Record:
    """What a controller commanded over time, for pictures."""

    def __init__(self, control: sl.OperationalSpaceControl) -> None:
        self.control = control
        self.t: list[float] = []
        self.commands: list[sl.Command] = []

    def keep(self, t: float, command: sl.Command) -> Array:
        """Its torques."""
        self.t.append(t)
        self.commands.append(command)
        return command.tau

    def all(self, name: str) -> Array:
        """(T, ...) of what commands have."""
        return np.array([getattr(command, name) for command in self.commands])

    @property
    def torques(self) -> Array:
        """(T, motors) as shares of their limits."""
        motors = list(self.control.motors)
        return np.asarray(self.all("tau")[:, motors] / self.control.model.effort_limit[motors])

    @property
    def cones(self) -> Array:
        """(T, nc) how far forces are on the way to the edge of their cones, 1; 0 where there is no force."""
        forces = self.all("forces")
        most = self.control.friction * forces[..., 2]
        return np.where(most > 1.0, np.linalg.norm(forces[..., :2], axis=-1) / np.maximum(most, 1.0), 0.0)

    def draw(self, file: Path, first: float = 0.0, last: float = np.inf) -> None:
        """Torques, normal forces and cones between two times [s]."""
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        t = np.array(self.t)
        shown = (t >= first) & (t <= last)
        figure, axes = plt.subplots(3, 1, figsize=(9, 7), sharex=True, layout="constrained")
        for axis, values, what in (
            (axes[0], self.torques, "torque / limit"),
            (axes[1], self.all("forces")[..., 2], "normal force [N]"),
            (axes[2], self.cones, "tangential / friction x normal"),
        ):
            axis.plot(t[shown], values[shown], linewidth=0.8)
            axis.set(ylabel=what)
            axis.grid(alpha=0.3)
        axes[1].legend([name.replace("_", " ") for name in self.control.names], fontsize=7, ncols=4)
        axes[2].set(xlabel="time [s]", ylim=(0.0, 1.05))
        figure.savefig(file, dpi=130)
        plt.close(figure)
