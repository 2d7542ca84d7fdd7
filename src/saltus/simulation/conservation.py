"""What a free motion must leave as it was, and how far it is from that.

    T + V,      p - m g t,      L

Energy with that of springs, linear momentum less what gravity has given it, angular momentum about the centre of mass.
Momenta are conserved only by robots whose base is free. No method of integration here knows of any of them: their drift
measures its error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saltus.arrays import Array
from saltus.dynamics.centroidal import centroidal_momentum
from saltus.dynamics.energy import kinetic_energy, potential_energy
from saltus.dynamics.passive import elastic_energy
from saltus.model.joints import JointKind
from saltus.model.model import Model
from saltus.model.parameters import inertial_parameters, over_time
from saltus.simulation.rollout import Trajectory


@dataclass(frozen=True, eq=False)
class Drift:
    """How far a conserved quantity has drifted from its value at the start."""

    name: str
    unit: str
    absolute: Array  # (..., T) in that unit
    size: Array  # (...) the largest that there was of it

    @property
    def relative(self) -> Array:
        """(..., T) by the size; NaN where there was nothing of it."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(self.size[..., None] > 0, self.absolute / self.size[..., None], np.nan))


def conservation_drift(model: Model, trajectory: Trajectory) -> list[Drift]:
    """Drifts of energy and, if a free flyer carries the robot, of linear and angular momentum, on a motion without torques.

    Constraints do no work; but contacts give momentum, as loops do not. Switching on takes energy. Drifts are NaN where a
    robot is lost.

    The size of the energy is the largest kinetic energy; with a free base, that of the tumble alone, without that of the
    flight of the centre of mass, which would make any drift look small.

    >>> import saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=5, kinds=["revolute"])
    >>> swing = sl.rollout(robot, robot.neutral(), np.ones(robot.nv), duration=0.1)
    >>> [energy] = conservation_drift(robot, swing)
    >>> energy.name, bool(energy.relative.max() < 1e-6)
    ('energy', True)
    """
    t, q, v, model = trajectory.t, trajectory.q, trajectory.v, over_time(model)
    mass = inertial_parameters(model)[..., 0].sum(axis=-1)
    kinetic = np.asarray(kinetic_energy(model, q, v, on_invalid="mark"))
    energy = kinetic + np.asarray(potential_energy(model, q, on_invalid="mark"))
    if model.stiffness.any():
        energy = energy + np.asarray(elastic_energy(model, q, on_invalid="mark"))
    if not _floats(model):
        return [_drift("energy", "J", energy[..., None], kinetic)]
    momentum = centroidal_momentum(model, q, v, on_invalid="mark")
    flight = (momentum[..., :3] ** 2).sum(axis=-1) / (2 * mass)
    linear = momentum[..., :3] - mass[..., None] * t[:, None] * model.gravity
    return [
        _drift("energy", "J", energy[..., None], np.maximum(kinetic - flight, 1e-9 * kinetic)),  # not only rounding
        _drift("linear momentum", "kg m/s", linear, np.linalg.norm(momentum[..., :3], axis=-1)),
        _drift("angular momentum", "kg m²/s", momentum[..., 3:], np.linalg.norm(momentum[..., 3:], axis=-1)),
    ]


def _drift(name: str, unit: str, values: Array, sizes: Array) -> Drift:
    """From values (..., T, n) and their sizes (..., T)."""
    return Drift(name, unit, np.linalg.norm(values - values[..., :1, :], axis=-1), np.fmax.reduce(sizes, axis=-1))


def _floats(model: Model) -> bool:
    """Whether nothing but a free flyer holds the robot to the world."""
    return [joint.kind for joint in model.joints if joint.parent == 0] == [JointKind.FREE_FLYER]
