"""What a simulator says: of one step, and of motions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike
from saltus.collision.queries import Contacts
from saltus.constraints.report import Status
from saltus.dynamics.frame import frame_placement, frame_velocity
from saltus.simulation.driven import lost

if TYPE_CHECKING:
    from saltus.simulation.simulator import Simulator


class Push(NamedTuple):
    """A force (3,) along the world's axes [N] on a point of a frame's body, from a time on for so long [s]."""

    frame: str | int
    force: ArrayLike
    start: float = 0.0
    duration: float = np.inf


class Reported:
    """What a step, or a motion, says of its contact problems, and what carries forces."""

    simulator: Simulator
    touch: Array
    report: Array

    @property
    def status(self) -> Any:
        """(...) of `Status`; one sample's is a member. Of motions (..., T), the worst since the row before."""
        said = self.report[..., 6]
        status = np.where(np.isnan(said), int(Status.INVALID), said).astype(int)
        return Status(int(status)) if status.ndim == 0 else status

    @property
    def residuals(self) -> Array:
        """(..., 3) natural map and dual [m/s, rad/s], complementarity [J]; of motions the worst since the row before."""
        return self.report[..., 2:5]

    @cached_property
    def contact_forces(self) -> Array:
        """(..., nslot, 3) on the first body of each possible contact, along the world's axes [N]."""
        sim, count = self.simulator, int(np.prod(self.touch.shape[:-2]))
        found = self.touch.reshape(count, *self.touch.shape[-2:])
        forces = np.zeros((len(found), len(sim.scene.slots), 3), found.dtype)
        place, entry = np.nonzero(found[..., 0] >= 0)
        forces[place, found[place, entry, 0].astype(int)] = found[place, entry, 1:] / sim.dt
        return forces.reshape(*self.touch.shape[:-2], *forces.shape[1:])

    @property
    def touching(self) -> Any:
        """(..., nslot) which contacts carry a force."""
        return self.contact_forces.any(axis=-1)


@dataclass(frozen=True, eq=False)
class Motion(Reported):
    """Robots over time: states, and what acted on the way to each; rows of time behind the leading axes (...).

    Row 0 is the state at the start. Forces are those of the last step before a state. It may be the `start` of what comes
    after. Where frames are, `frame_placement(model, motion.q, frame)` tells.
    """

    simulator: Simulator
    t: Array  # (T,) [s]
    q: Array  # (..., T, nq)
    v: Array  # (..., T, nv)
    tau: Array  # (..., T, nv) of the motors [N m, N]
    held: Array  # (..., T, nheld) impulses of loops, dry friction and limits, along their rows [N s, N m s]
    touch: Array  # (..., T, most_contacts, 4) contacts: which, or -1, and its impulse along the world's axes [N s]
    report: (
        Array  # (..., T, 7) steps of Newton's method, its new starts, residuals, worst row, status since the last row
    )
    friction: Array  # (...) by what all coefficients were multiplied
    pushes: tuple[Push, ...]  # that acted on the way

    @property
    def period(self) -> float:
        """Time between rows [s]."""
        return float(self.t[1] - self.t[0]) if len(self.t) > 1 else self.simulator.dt

    @property
    def ending(self) -> tuple[Array, Array]:
        """`held` and `touch` at the end."""
        return self.held[..., -1, :], self.touch[..., -1, :, :]

    @property
    def fallen(self) -> Any:
        """(..., T), whether the robot lies, or has lain before: the terrain carries a body that others hang on, and not only
        feet and hands."""
        sim = self.simulator
        inner = {joint.parent for joint in sim.model.joints} - {-1, 0}
        lying = np.isin(sim.slot_bodies[:, 0], list(inner)) & (sim.slot_bodies[:, 1] == 0)
        return np.maximum.accumulate(self.touching[..., lying].any(axis=-1), axis=-1)

    def gyroscope(self, frame: str | int) -> Array:
        """(..., T, 3) the angular velocity of a frame, along its axes [rad/s]."""
        return np.asarray(frame_velocity(self.simulator.model, self.q, self.v, frame)[..., 3:])

    def accelerometer(self, frame: str | int) -> Array:
        """(..., T, 3) what an accelerometer at a frame says, along its axes: acceleration less gravity, on average since the
        row before [m/s^2]. At rest it shows upwards; the first row is NaN.

        >>> import saltus as sl
        >>> robot = sl.load_robot("quadruped")
        >>> q = robot.reference_configurations["standing"]
        >>> fall = sl.Simulator(robot).rollout(q, np.zeros(robot.nv), duration=0.002)
        >>> bool(np.abs(fall.accelerometer("base")[1:]).max() < 1e-9)
        True
        """
        model = self.simulator.model
        speed = frame_velocity(model, self.q, self.v, frame, "local_world_aligned")[..., :3]
        felt = np.full_like(speed, np.nan)
        felt[..., 1:, :] = np.diff(speed, axis=-2) / np.diff(self.t)[:, None] - model.gravity
        turned = frame_placement(model, self.q, frame)[..., :3, :3]
        return np.asarray(np.einsum("...ji,...j->...i", turned, felt).astype(self.v.dtype))

    @property
    def finished(self) -> Any:
        """(...), whether each robot has reached the end: its last state is finite."""
        return ~lost(self.q[..., -1, :], self.v[..., -1, :])


@dataclass(frozen=True, eq=False)
class Step(Reported):
    """What one step leads to, each with the leading axes of the inputs. It may be the `start` of the next one."""

    simulator: Simulator
    start: Array  # (..., nq) where it began
    q: Array  # (..., nq)
    v: Array  # (..., nv)
    tau: Array  # (..., nv) of the motors [N m, N]
    held: Array  # (..., nheld) impulses, as those of a `Motion`
    touch: Array  # (..., most_contacts, 4)
    report: Array  # (..., 7)

    @property
    def ending(self) -> tuple[Array, Array]:
        """`held` and `touch`."""
        return self.held, self.touch

    @cached_property
    def contacts(self) -> Contacts:
        """At the start of the step."""
        return self.simulator.contacts(self.start)
