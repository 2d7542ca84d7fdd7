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
from typing import Any, NamedTuple, TypeAlias

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
from saltus.ocp.box_fddp import BoxFDDP
from saltus.ocp.exercise import Exercise, from_rest
from saltus.ocp.phases import ImpactPhase, Phase
from saltus.ocp.shooting_problem import ShootingProblem
from saltus.ocp.solver import Solver
from saltus.ocp.terms import (
    CenterOfMass,
    Control,
    FramePlacement,
    FrameTranslation,
    FrictionCone,
    State,
    Term,
    WrenchCone,
)

LF, RF, LH, RH = range(4)
LEFT, RIGHT = range(2)
BIPED = (RIGHT,), (LEFT,)
WALK, TROT, PACE, BOUND = ((RH,), (RF,), (LH,), (LF,)), ((LF, RH), (RF, LH)), ((RF, RH), (LF, LH)), ((LF, RF), (LH, RH))

KD = 50.0
"""Of contacts [1/s]: velocities of feet that stand fade as e^(-KD t)."""
SETTLING = 0.1
"""Time after the last step [s]."""
SOLE = 0.2, 0.1
"""Of feet of bipeds, where nothing else is said [m]."""


class Weights(NamedTuple):
    """Of all terms of a gait. Forces and torques count as shares of the robot's weight [1, m]."""

    center: float = 1e6
    foot: float = 1e6
    landing: float = 1e7
    cone: float = 1e6
    bounds: float = 1e3
    control: float = 1e4
    upright: float = 2.5e3
    posture: float = 1.0
    base_velocity: float = 100.0
    joint_velocity: float = 10.0
    settled: float = 100.0
    """How many times those of posture and velocities count at the end."""


USUAL = Weights()


class Foot(NamedTuple):
    """A frame, and the length and width of the sole, the length of the edge, or nothing, a point, that it stands on [m]."""

    frame: str
    size: tuple[float, ...] = ()


class Swing(NamedTuple):
    """These feet, by number, go so far ahead [m]."""

    feet: tuple[int, ...]
    length: float


@dataclass(frozen=True)
class Gait:
    """What a robot's feet are to do; made by `walk`, `trot`, `pace`, `bound` and `jump`."""

    title: str
    robot: Model
    feet: tuple[Foot, ...]
    swings: tuple[Swing, ...]
    height: float
    """Of feet that swing; or, if all do, how far the centre of mass goes up [m]."""
    stance: float
    """Time before each swing [s]."""
    swing: float
    """Time of each [s]."""
    friction: float = 0.7
    weights: Weights = USUAL
    solver: type[Solver] = BoxFDDP

    def problem(self, q0: ArrayLike | None = None, dt: float = 1e-2) -> ShootingProblem:
        """From rest at q0 (nq), by default the robot's standing pose."""
        plan = _Plan(self, q0, dt)
        phases = [phase for swing in self.swings for phase in plan.step(swing)]
        phases.append(Phase(plan.names(), duration=SETTLING))
        return ShootingProblem(
            self.robot, plan.x0, phases, plan.running(), plan.final(), dt=dt, constraints=plan.constraints
        )

    def exercise(self, q0: ArrayLike | None = None, dt: float = 1e-2) -> Exercise:
        """The problem, to be started from standing still."""
        return from_rest(f"{self.robot.name} {self.title}", self.problem(q0, dt), self.solver)


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
        """How far it sways is the robot's affair."""
        return CenterOfMass(reference=way, weight=self.gait.weights.center, activation=Quadratic((1.0, 0.0, 1.0)))

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
        return [*cones, Control(weight=weights.control / weight_of(gait.robot) ** 2), self.state("State", 1.0), bounds]

    def final(self) -> list[Term]:
        """At rest, as before, where the feet now are."""
        last = [self.track(k, self.placed[k], self.gait.weights.foot) for k in range(len(self.placed))]
        center = CenterOfMass(reference=self.middle + self.lead, weight=self.gait.weights.center, name="settled center")
        return [*last, center, self.state("settled", self.gait.weights.settled)]

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
    weight = gait.weights.cone / weight_of(gait.robot) ** 2
    given: dict[str, Any] = {"friction": gait.friction, "weight": weight, "axes": "local_world_aligned"}
    if len(foot.size) == 2:
        return WrenchCone(contact.name, box=(foot.size[0], foot.size[1]), **given)
    return FrictionCone(contact.name, **given)


def weight_of(robot: Model) -> float:
    """Its mass times gravity [N]."""
    return float(robot.total_mass * np.linalg.norm(robot.gravity))


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


def feet_of(robot: Model, feet: Sequence[str | Foot] | None, counts: Sequence[int]) -> tuple[Foot, ...]:
    """Those that are given, or else known of the robot: left before right, front before hind; of two feet as soles."""
    where = f"gait of {robot.name!r}"
    if feet is None:
        try:
            feet = left_before_right(robot, robot_frames(robot.name).feet)
        except ModelError:
            raise ModelError(f"{where}: no robot of this name is known, expected its feet to be given") from None
    if len(feet) not in counts:
        raise ModelError(f"{where}: it has {len(feet)} feet, expected {' or '.join(map(str, counts))}")
    if robot.joints[1].kind is not JointKind.FREE_FLYER:
        raise ModelError(f"{where}: its first joint is {robot.joints[1].kind.name}, expected a free flyer")
    if weight_of(robot) == 0.0:
        raise ModelError(f"{where}: there is no gravity, expected some")
    size = SOLE if len(feet) == 2 else ()
    return tuple(foot if isinstance(foot, Foot) else Foot(foot, size) for foot in feet)


def left_before_right(robot: Model, feet: Sequence[str]) -> list[str]:
    """Feet by where they stand: front before hind, if there are four, and left before right.

    >>> import saltus as sl
    >>> left_before_right(sl.load_robot("quadruped"), ["RH_FOOT", "RF_FOOT", "LH_FOOT", "LF_FOOT"])
    ['LF_FOOT', 'RF_FOOT', 'LH_FOOT', 'RH_FOOT']
    """
    q = robot.reference_configurations.get("standing", robot.neutral())
    places = [frame_placement(robot, q, foot)[:3, 3] for foot in feet]
    forward = sorted(range(len(feet)), key=lambda k: -places[k][0]) if len(feet) == 4 else range(len(feet))
    pairs = [forward[k : k + 2] for k in range(0, len(feet), 2)]
    return [feet[k] for pair in pairs for k in sorted(pair, key=lambda k: -places[k][1])]


def strides(groups: Sequence[Sequence[int]], steps: int, length: float) -> tuple[Swing, ...]:
    """Each group in turn, `steps` times; the first half of them begin, the others end with half a step.

    >>> [swing.length for swing in strides([[0], [1]], 2, 0.4)]
    [0.2, 0.4, 0.4, 0.2]
    """
    if steps < 1:
        raise ModelError(f"gait: {steps} steps, expected one at least")
    half = len(groups) // 2
    return tuple(
        Swing(tuple(group), length * (0.5 if n == (0 if k < half else steps - 1) else 1.0))
        for n in range(steps)
        for k, group in enumerate(groups)
    )


Feet: TypeAlias = Sequence[str | Foot] | None


def walk(
    robot: Model, steps: int = 2, length: float = 0.25, height: float = 0.15, *, feet: Feet = None, **options: Any
) -> Gait:
    """One foot after the other, of four or of two.

    steps: of each foot. length, height: of a step [m]; backwards if negative.
    feet: left before right, front before hind, frames or `Foot`; by default those that `robot_frames` knows. Of two feet,
        frames are soles, of four points.
    options: `stance`, `swing`, `friction`, `weights`, `solver` of `Gait`.

    >>> import saltus as sl
    >>> problem = sl.gaits.walk(sl.load_robot("quadruped"), steps=1).problem(dt=0.02)
    >>> xs = np.tile(problem.x0, (problem.T + 1, 1))
    >>> str(sl.FDDP(problem).solve(xs, problem.quasi_static(xs)).status)
    'solved'
    """
    own = feet_of(robot, feet, (2, 4))
    pattern, times = (BIPED, (0.12, 0.45)) if len(own) == 2 else (WALK, (0.02, 0.25))
    return strided("walks", robot, own, pattern, times, steps, length, height, **options)


def trot(
    robot: Model, steps: int = 2, length: float = 0.2, height: float = 0.1, *, feet: Feet = None, **options: Any
) -> Gait:
    """Two feet across from each other together. For what is given, see `walk`."""
    own = feet_of(robot, feet, (4,))
    return strided("trots", robot, own, TROT, (0.05, 0.25), steps, length, height, **options)


def pace(
    robot: Model, steps: int = 2, length: float = 0.15, height: float = 0.1, *, feet: Feet = None, **options: Any
) -> Gait:
    """The feet of one side together. For what is given, see `walk`."""
    own = feet_of(robot, feet, (4,))
    return strided("paces", robot, own, PACE, (0.05, 0.25), steps, length, height, **options)


def bound(
    robot: Model, steps: int = 2, length: float = 0.15, height: float = 0.1, *, feet: Feet = None, **options: Any
) -> Gait:
    """Front feet together, then hind feet. For what is given, see `walk`."""
    own = feet_of(robot, feet, (4,))
    return strided("bounds", robot, own, BOUND, (0.05, 0.25), steps, length, height, **options)


def jump(robot: Model, length: float = 0.3, height: float = 0.15, *, feet: Feet = None, **options: Any) -> Gait:
    """All feet together, after a push: the centre of mass goes up by `height` [m] in the air, which says for how long.

    For the rest, see `walk`.
    """
    own = feet_of(robot, feet, (2, 4))
    if not height > 0.0:
        raise ModelError(f"gait of {robot.name!r}: its height is {height}, expected a jump of more than 0 m")
    flight = 2.0 * np.sqrt(2.0 * height / weight_of(robot) * robot.total_mass)
    swings = (Swing(tuple(range(len(own))), length),)
    given: dict[str, Any] = {"stance": 0.3, "swing": float(flight)} | options
    return Gait("jumps", robot, own, swings, height, **given)


def strided(
    title: str,
    robot: Model,
    feet: tuple[Foot, ...],
    groups: Sequence[Sequence[int]],
    times: tuple[float, float],
    steps: int,
    length: float,
    height: float,
    **options: Any,
) -> Gait:
    """A gait of strides; `times` of stance and swing."""
    given: dict[str, Any] = {"stance": times[0], "swing": times[1]} | options
    return Gait(title, robot, feet, strides(groups, steps, length), height, **given)
