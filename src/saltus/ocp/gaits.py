"""Gaits: which feet swing when, and what that asks of a robot, as phases and terms of a shooting problem.

A stance is followed by a swing, and that by the impact of the feet that have swung, so often as the gait's pattern says:

| gait | feet that swing together, in turn |
|---|---|
| `walk` of four feet | right hind, right front, left hind, left front |
| `trot` | left front and right hind, right front and left hind |
| `pace` | right ones, left ones |
| `bound` | front ones, hind ones |
| `walk` of two feet | right, left |
| `jump` | all, after a push |

The first half of these begin with half a step and the others end with one, so that the robot stands at the end as it did
before, (steps - 1/2) lengths ahead. In the air, feet follow a curve with no velocity at both ends, and the centre of mass
goes as the middle of the feet does, or, where none is on the ground, along a parabola.

Reference: R. Budhiraja, Multi-body locomotion (2019), chapter 4; C. Mastalli et al., Crocoddyl (2020), whose
`SimpleQuadrupedalGaitProblem` and `SimpleBipedGaitProblem` have this structure and, of most terms, these weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike
from saltus.constraints.constraint import Constraint, Contact, LineContact, model_loops
from saltus.dynamics.centroidal import center_of_mass
from saltus.dynamics.frame import frame_placement
from saltus.model.checks import ModelError
from saltus.model.joints import JointKind
from saltus.model.model import Model
from saltus.model.robots import robot_frames
from saltus.ocp.activations import Barrier, Quadratic
from saltus.ocp.exercise import Exercise, from_rest
from saltus.ocp.phases import ImpactPhase, Phase
from saltus.ocp.shooting_problem import ShootingProblem
from saltus.ocp.terms import CenterOfMass, Control, FramePlacement, FrameTranslation, FrictionCone, State, Term, WrenchCone

LF, RF, LH, RH = range(4)
LEFT, RIGHT = range(2)
KD = 50.0
"""Of contacts [1/s]: velocities of feet that stand fade as e^(-KD t)."""


class Weights(NamedTuple):
    """Of all terms of a gait."""

    center: float = 1e6
    aside: float = 0.0  # of the centre of mass, as a share
    foot: float = 1e6
    landing: float = 1e7
    cone: float = 10.0
    bounds: float = 1e3
    control: float = 0.1
    upright: float = 2.5e3
    posture: float = 0.1
    base_velocity: float = 100.0
    joint_velocity: float = 10.0
    settled: float = 100.0
    """By which the last node's is larger."""


class Foot(NamedTuple):
    """A point, a sole (length and width) or an edge (length) [m], at a frame."""

    frame: str
    size: tuple[float, ...] = ()


class Swing(NamedTuple):
    """These feet, by number, go so far ahead [m]; none: they stand."""

    feet: tuple[int, ...]
    length: float = 0.0


@dataclass(frozen=True)
class Gait:
    """A gait of a robot; make one by `walk`, `trot`, `pace`, `bound` or `jump`."""

    title: str
    robot: Model
    feet: tuple[Foot, ...]
    swings: tuple[Swing, ...]
    height: float
    """Of feet that swing; of a jump, how far the centre of mass goes up [m]."""
    stance: float
    """Time [s] before each swing."""
    swing: float
    """Time [s] of each swing."""
    friction: float = 0.7
    weights: Weights = Weights()

    def problem(self, q0: ArrayLike | None = None, dt: float = 1e-2) -> ShootingProblem:
        """From rest at q0 (nq), by default the robot's standing pose."""
        plan = _Plan(self, q0, dt)
        phases = [phase for swing in self.swings for phase in plan.step(swing)]
        phases.append(Phase(plan.names(), duration=max(self.stance, 10 * dt)))
        return ShootingProblem(
            self.robot, plan.x0, phases, plan.running(), plan.final(), dt=dt, constraints=plan.constraints
        )

    def exercise(self, q0: ArrayLike | None = None, dt: float = 1e-2) -> Exercise:
        """The problem, to be started from standing still."""
        return from_rest(f"{self.robot.name} {self.title}", self.problem(q0, dt))


class _Plan:
    """Where feet are while the phases of a gait are made."""

    def __init__(self, gait: Gait, q0: ArrayLike | None, dt: float) -> None:
        robot, self.gait, self.dt = gait.robot, gait, dt
        q = np.asarray(robot.reference_configurations["standing"] if q0 is None else q0, float)
        self.x0 = np.concatenate([q, np.zeros(robot.nv)])
        self.contacts = [contacts_of(robot, foot) for foot in gait.feet]
        self.loops = model_loops(robot, kd=KD)
        self.constraints = [*self.loops, *(each for foot in self.contacts for each in foot)]
        self.placed = np.array([frame_placement(robot, q, foot.frame) for foot in gait.feet])
        self.lead = center_of_mass(robot, q) - self.middle
        self.moved = 0.0

    @property
    def middle(self) -> Array:
        """(3,) of the feet."""
        center: Array = self.placed[:, :3, 3].mean(axis=0)
        return center

    def names(self, without: Sequence[int] = ()) -> list[str]:
        """Of the contacts that hold while some feet swing."""
        feet = [foot for k, foot in enumerate(self.contacts) if k not in without]
        return [each.name for each in [*self.loops, *(contact for foot in feet for contact in foot)]]

    def step(self, swing: Swing) -> list[Phase | ImpactPhase]:
        """Stance, swing and impact; feet are then where they came down."""
        gait, weights, before = self.gait, self.gait.weights, self.middle
        nodes = round(gait.swing / self.dt)
        share = np.arange(1, nodes + 1)[:, None] / nodes
        jumps, terms, landed = len(swing.feet) == len(gait.feet), [], []
        for k in swing.feet:
            way = np.tile(self.placed[k], (nodes, 1, 1))
            way[:, :3, 3] += ahead(share, swing.length, 0.0 if jumps else gait.height)
            self.placed[k] = way[-1]
            if not jumps:
                terms.append(self.track(k, way, weights.foot))
            landed.append(self.track(k, way[-1], weights.landing))
        rise = 4.0 * share * (1.0 - share) * gait.height if jumps else 0.0 * share
        smooth = share if jumps else ease(share)
        way = before + self.lead + smooth * (self.middle - before) + rise * (0.0, 0.0, 1.0)
        terms.append(self.center(way))
        return [
            Phase(self.names(), duration=gait.stance),
            Phase(self.names(swing.feet), nodes=nodes, terms=terms),
            ImpactPhase(self.names(), [*landed, self.state("struck", 1.0)]),
        ]

    def center(self, way: Array) -> Term:
        weights = self.gait.weights
        return CenterOfMass(reference=way, weight=weights.center, activation=Quadratic((1.0, weights.aside, 1.0)))

    def track(self, k: int, way: Array, weight: float) -> Term:
        """A foot is there: as a point, or turned as it stood as well."""
        foot = self.gait.feet[k]
        if foot.size:
            return FramePlacement(foot.frame, reference=way, weight=weight)
        return FrameTranslation(foot.frame, reference=way[..., :3, 3], weight=weight)

    def running(self) -> list[Term]:
        """Terms of all phases."""
        gait, weights = self.gait, self.gait.weights
        cones = [cone(foot, each, gait) for foot, all in zip(gait.feet, self.contacts, strict=True) for each in all]
        bounds = State(reference=self.x0, weight=weights.bounds, activation=limits(gait.robot, self.x0), name="bounds")
        return [*cones, Control(weight=weights.control), self.state("State", 1.0), bounds]

    def final(self) -> list[Term]:
        """At rest, as before, where the feet now are."""
        last = [self.track(k, self.placed[k], self.gait.weights.foot) for k in range(len(self.placed))]
        return [*last, self.center(self.middle + self.lead), self.state("settled", self.gait.weights.settled)]

    def state(self, name: str, weight: float) -> Term:
        """The trunk is upright, joints are as in the beginning, all is at rest; wherever the robot is."""
        w, joints = self.gait.weights, self.gait.robot.nv - 6
        rows = [
            *[0.0] * 3, *[w.upright] * 3, *[w.posture] * joints, *[w.base_velocity] * 6, *[w.joint_velocity] * joints
        ]  # fmt: skip
        return State(reference=self.x0, weight=weight, activation=Quadratic(rows), name=name)


def ease(share: Array) -> Array:
    """From 0 to 1 with no velocity and acceleration at both ends.

    >>> ease(np.array([0.0, 0.5, 1.0]))
    array([0. , 0.5, 1. ])
    """
    eased: Array = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
    return eased


def ahead(share: Array, length: float, height: float) -> Array:
    """(n, 3) the way of a foot at shares (n, 1) of its time."""
    return np.concatenate([length * ease(share), 0.0 * share, height * 64.0 * (share * (1.0 - share)) ** 3], axis=-1)


def contacts_of(robot: Model, foot: Foot) -> list[Constraint]:
    """Of a foot: a point, a sole, or the two ends of an edge."""
    if len(foot.size) == 1:
        return LineContact(robot, foot.frame, foot.size[0], kd=KD)
    return [Contact(robot, foot.frame, 6 if foot.size else 3, kd=KD)]


def cone(foot: Foot, contact: Constraint, gait: Gait) -> Term:
    """The force pushes, and does not slip; a sole does not tip over."""
    given: dict[str, Any] = {"friction": gait.friction, "weight": gait.weights.cone, "axes": "local_world_aligned"}
    if len(foot.size) == 2:
        return WrenchCone(contact.name, box=(foot.size[0], foot.size[1]), **given)
    return FrictionCone(contact.name, **given)


def limits(robot: Model, x0: Array) -> Barrier:
    """Of positions and velocities of joints with an axis, from x0 on."""
    nv = robot.nv
    lower, upper = np.full(2 * nv, -np.inf), np.full(2 * nv, np.inf)
    lower[nv:], upper[nv:] = -robot.velocity_limit, robot.velocity_limit
    for joint in robot.joints[1:]:
        if joint.kind in (JointKind.REVOLUTE, JointKind.PRISMATIC):
            lower[joint.iv] = robot.lower_position_limit[joint.iq] - x0[joint.iq]
            upper[joint.iv] = robot.upper_position_limit[joint.iq] - x0[joint.iq]
    return Barrier(lower, upper)


def feet_of(robot: Model, feet: Sequence[str] | None, size: Sequence[float] | None, count: int | None) -> tuple[Foot, ...]:
    """The named feet, or those known of the robot, left before right, front before hind."""
    names = robot_frames(robot.name).feet if feet is None else tuple(feet)
    if count is not None and len(names) != count:
        raise ModelError(f"gait of {robot.name!r}: its feet are {', '.join(names) or 'none'}, expected {count}")
    if robot.joints[1].kind is not JointKind.FREE_FLYER:
        raise ModelError(f"gait of {robot.name!r}: its base is {robot.joints[1].kind.name}, expected a free flyer")
    if size is None:
        size = SOLE if len(names) == 2 else ()
    return tuple(Foot(name, tuple(size)) for name in names)


SOLE = 0.2, 0.1
"""Of feet of bipeds, if nothing else is said [m]."""


def strides(groups: Sequence[Sequence[int]], steps: int, length: float) -> tuple[Swing, ...]:
    """Each group in turn, `steps` times; the first half of them begin, the others end with half a step."""
    half = len(groups) // 2
    return tuple(
        Swing(tuple(group), length * (0.5 if n == (0 if k < half else steps - 1) else 1.0))
        for n in range(steps)
        for k, group in enumerate(groups)
    )


WALK, TROT, PACE, BOUND = ((RH,), (RF,), (LH,), (LF,)), ((LF, RH), (RF, LH)), ((RF, RH), (LF, LH)), ((LF, RF), (LH, RH))
BIPED = (RIGHT,), (LEFT,)


def walk(
    robot: Model,
    steps: int = 2,
    length: float = 0.25,
    height: float = 0.15,
    *,
    feet: Sequence[str] | None = None,
    size: Sequence[float] | None = None,
    swing: float | None = None,
    stance: float | None = None,
    weights: Weights | None = None,
) -> Gait:
    """One foot after the other, of four or of two.

    >>> import saltus as sl
    >>> problem = sl.gaits.walk(sl.load_robot("quadruped"), steps=1).problem(dt=0.02)
    >>> str(sl.FDDP(problem).solve(us=problem.quasi_static(problem.x0)).status)
    'solved'
    """
    own = feet_of(robot, feet, size, None)
    if len(own) == 2:
        pattern, swing, stance = BIPED, swing or 0.45, stance or 0.12
    else:
        own, pattern, swing, stance = feet_of(robot, feet, size, 4), WALK, swing or 0.25, stance or 0.02
    return Gait("walks", robot, own, strides(pattern, steps, length), height, stance, swing, weights=weights or Weights())
