"""An astronaut in free space turns once about, by circles that the legs draw: the reorientation of Budhiraja's thesis.

Without contacts and without gravity nothing changes the angular momentum, which is zero from the start:

    A_b(q) v_b + A_j(q) v_j = 0    hence    v_b = -A_b^-1 A_j v_j

How joints move decides how the trunk turns, and a closed path of the joints leaves it turned: `circling` integrates this, as
a start for the solver, which then finds torques that do it, with the least effort and the whole turn in the end. Steps are
of RK4, as semi-implicit ones would change the momentum by what they are wrong, and solvers make use of that.

Departure from the thesis: the start is not at rest, and legs stay within what hips can do; there they spin as wheels do.

Reference: R. Budhiraja, Multi-body locomotion (2019), section 3.4.2; Y. Nakamura, R. Mukherjee (1990) on free-flying robots.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saltus.arrays import Array
from saltus.dynamics.centroidal import centroidal_momentum_matrix
from saltus.dynamics.rnea import rnea
from saltus.model.builder import ModelBuilder
from saltus.model.manifold import integrate
from saltus.model.model import Model
from saltus.ocp.activations import Quadratic
from saltus.ocp.exercise import Exercise
from saltus.ocp.fddp import FDDP
from saltus.ocp.gaits import ease, limits
from saltus.ocp.phases import Phase
from saltus.ocp.shooting_problem import ShootingProblem
from saltus.ocp.terms import Control, State

HIPS = 0, 1, 4, 5
"""Pitch and roll of the left one and of the right one, among the joints."""


class TurnWeights(NamedTuple):
    """On the way, and at the end."""

    legs: float = 10.0  # their circles, and how fast they go
    limits: float = 1e3
    control: float = 1e-3
    upright: float = 1e4
    rest: float = 1e3


class Limb(NamedTuple):
    """A straight limb that hangs from a ball joint of two axes; of the left side."""

    name: str
    place: tuple[float, float, float]  # m
    mass: float  # kg
    length: float  # m
    radius: float  # m
    lower: tuple[float, float]  # of pitch and roll, outwards positive [rad]
    upper: tuple[float, float]
    effort: float  # N m


LEG = Limb("hip", (0.0, 0.1, 0.0), 15.0, 0.9, 0.07, (-2.0, -0.8), (0.8, 0.8), 150.0)
ARM = Limb("shoulder", (0.0, 0.23, 0.5), 5.0, 0.65, 0.045, (-3.0, -0.3), (1.0, 2.6), 60.0)
SUIT, VISOR = (0.88, 0.88, 0.9, 1.0), (0.95, 0.62, 0.15, 1.0)


def astronaut_model() -> Model:
    """A trunk with two arms and two legs, 80 kg, nothing below it."""
    builder = ModelBuilder("astronaut", gravity=(0.0, 0.0, 0.0))
    trunk = builder.add_joint("trunk", "free_flyer")
    builder.add_body(trunk, 40.0, (0.0, 0.0, 0.3), np.diag([1.6, 1.6, 0.8]))
    builder.add_shape(trunk, "capsule", (0.16, 0.3), at(0.0, 0.0, 0.25), color=SUIT)
    builder.add_shape(trunk, "box", (0.16, 0.34, 0.5), at(-0.2, 0.0, 0.3), color=SUIT)
    builder.add_shape(trunk, "sphere", (0.15,), at(0.0, 0.0, 0.72), color=SUIT)
    builder.add_shape(trunk, "sphere", (0.12,), at(0.06, 0.0, 0.72), color=VISOR)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        for limb in (LEG, ARM):
            add_limb(builder, trunk, f"{side}_{limb.name}", limb, sign)
    return builder.build()


def add_limb(builder: ModelBuilder, trunk: int, name: str, limb: Limb, sign: float) -> None:
    x, y, z = limb.place
    roll = sorted((sign * limb.lower[1], sign * limb.upper[1]))
    given: dict[str, Any] = {"effort_limit": limb.effort, "velocity_limit": 8.0}
    pitched = builder.add_joint(
        f"{name}_pitch", "revolute", trunk, at(x, sign * y, z), (0, 1, 0), lower=limb.lower[0], upper=limb.upper[0], **given
    )  # fmt: skip
    joint = builder.add_joint(
        f"{name}_roll", "revolute", pitched, axis=(1, 0, 0), lower=roll[0], upper=roll[1], **given
    )
    across = limb.mass * (limb.length**2 / 12.0 + limb.radius**2 / 4.0)
    middle = at(0.0, 0.0, -limb.length / 2.0)
    builder.add_body(joint, limb.mass, middle[:3, 3], np.diag([across, across, limb.mass * limb.radius**2 / 2.0]))
    builder.add_shape(joint, "capsule", (limb.radius, limb.length - 2.0 * limb.radius), middle, color=SUIT)


def at(x: float, y: float, z: float) -> Array:
    """(4, 4), moved and not turned."""
    place = np.eye(4)
    place[:3, 3] = x, y, z
    return place


class Circling(NamedTuple):
    """A motion without momentum, at all nodes."""

    xs: Array  # (T + 1, nx)
    us: Array  # (T, nu)


def circling(robot: Model, circles: int, width: float, nodes: int, dt: float) -> Circling:
    """The legs, side by side, swing so far out [rad] and draw circles; the trunk turns the other way."""
    share = np.linspace(0.0, 1.0, nodes + 1)
    out = width * ease(np.minimum(1.0, 4.0 * np.minimum(share, 1.0 - share)))
    angle = 2.0 * np.pi * circles * share
    q = np.tile(robot.neutral(), (nodes + 1, 1))
    for hip, along in zip(HIPS, (np.cos, np.sin, np.cos, np.sin), strict=True):
        q[:, 7 + hip] = out * along(angle)
    joints = q[:, 7:]
    v = without_momentum(robot, q, np.gradient(joints, dt, axis=0))
    v[0] = v[-1] = 0.0
    between = np.concatenate([q[1:, :7], 0.5 * (joints[1:] + joints[:-1])], axis=1)
    steps = dt * without_momentum(robot, between, np.diff(joints, axis=0) / dt)
    for t in range(nodes):
        q[t + 1, :7] = integrate(robot, q[t], steps[t])[:7]
    tau = rnea(robot, q, v, np.gradient(v, dt, axis=0))
    return Circling(np.concatenate([q, v], axis=1), tau[:-1, 6:])


def without_momentum(robot: Model, q: Array, joint_velocities: Array) -> Array:
    """(..., nv) with these velocities of joints (..., nv - 6)."""
    A = centroidal_momentum_matrix(robot, q)
    momentum = A[..., 6:] @ joint_velocities[..., None]
    base = -np.linalg.solve(A[..., :6], momentum)[..., 0]
    return np.concatenate([base, joint_velocities], axis=-1)


def astronaut(
    circles: int = 5,
    width: float = 0.81,
    *,
    seconds: float = 10.0,
    dt: float = 0.01,
    weights: TurnWeights | None = None,
) -> Exercise:
    """Once about the long axis, and at rest as before.

    circles: of the legs, and how far they swing out [rad], roughly as much as a whole turn takes: the solver does the rest.
    """
    robot, weights = astronaut_model(), weights or TurnWeights()
    nodes, joints = round(seconds / dt), robot.nv - 6
    start = circling(robot, circles, width, nodes, dt)
    x0 = start.xs[0]
    legs = Quadratic([*[0.0] * 6, *[1.0] * joints, *[0.0] * 6, *[1.0] * joints])
    terms = [
        State(reference=start.xs[:-1], weight=weights.legs, activation=legs, name="legs"),
        Control(weight=weights.control),
        State(reference=x0, weight=weights.limits, activation=limits(robot, x0), name="limits"),
    ]
    final = [
        State(reference=x0, weight=weights.upright, activation=Quadratic(rows(robot, 3, 6)), name="upright"),
        State(reference=x0, weight=weights.rest, activation=Quadratic(rows(robot, 6, 2 * robot.nv)), name="rest"),
    ]
    problem = ShootingProblem(robot, x0, [Phase(nodes=nodes, terms=terms)], [], final, dt=dt, integrator="rk4")
    return Exercise("astronaut turns about", problem, *start, FDDP)


def rows(robot: Model, first: int, stop: int) -> Array:
    """Which of a tangent count."""
    chosen = np.zeros(2 * robot.nv)
    chosen[first:stop] = 1.0
    return chosen
