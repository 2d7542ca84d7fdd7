"""One robot compiled by itself: its topology, placements and masses are constants of the code (kernel/evaluation.py)."""

from __future__ import annotations

from typing import TypeVar

from saltus.constraints.dynamics import ConstrainedDynamics
from saltus.model import Model

Robot = TypeVar("Robot", Model, ConstrainedDynamics)


def specialise(robot: Robot) -> Robot:
    """The same robot with code of its own: a model, or constrained dynamics.

    It takes the place of the other everywhere. Algorithms that go over the joints once (kinematics, `rnea`, `aba`, `crba`,
    momenta and energies, `integrate`; constrained dynamics by articulated bodies, `impact`) are compiled for this robot when
    they are first called, in a second or so, which a line on the standard error says, and kept in the cache by the model's
    content; `aba` then takes half of the time, others gain less. What is not named here, and all of it for robots so large
    that it would not pay, runs the code for all robots. Results agree to rounding.

    >>> import numpy as np, saltus as sl
    >>> robot = sl.load_robot("double_pendulum")
    >>> own = sl.specialise(robot)
    >>> own
    Model('double_pendulum', nq=2, nv=2, njoints=3, nframes=8, specialised)
    >>> q, v, tau = robot.neutral(), np.ones(2), np.zeros(2)
    >>> bool(np.allclose(sl.aba(own, q, v, tau), sl.aba(robot, q, v, tau), rtol=1e-13))
    True
    """
    if isinstance(robot, ConstrainedDynamics):
        make, (model, *rest) = robot.__reduce__()
        made: Robot = make(specialise(model), *rest)
        return made
    if not isinstance(robot, Model):
        raise TypeError(f"specialise: expected a Model or ConstrainedDynamics, got {type(robot).__name__}")
    return robot if robot.specialised else robot.replace(specialised=True)
