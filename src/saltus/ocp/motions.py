"""Motions that are worth a name: problems of optimal control, from where to start, and what to solve them with.

| name | what |
|---|---|
| `reach` | an arm brings its tool to a place, in a given orientation |
| `double_pendulum`, `cartpole` | swing up, from hanging to upright, with motors that are too weak to lift |
| `astronaut` | turns once about in free space, without momentum (astronaut.py) |
| `walk`, `trot`, `pace`, `bound`, `jump`, `biped_walk` | of the shipped quadruped and humanoid (gaits.py) |

An `Exercise` has all that a solver needs:

    sl.FDDP(exercise.problem).solve(exercise.xs, exercise.us)

Weights stand in one place each, a named tuple that a function takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from saltus.arrays import ArrayLike
from saltus.dynamics.frame import frame_placement
from saltus.model.model import Model
from saltus.model.robots import load_robot
from saltus.ocp.activations import Quadratic
from saltus.ocp.astronaut import astronaut
from saltus.ocp.box_fddp import BoxFDDP
from saltus.ocp.exercise import Exercise, from_rest
from saltus.ocp.gaits import Gait, bound, jump, pace, trot, walk
from saltus.ocp.phases import Phase
from saltus.ocp.shooting_problem import ShootingProblem
from saltus.ocp.terms import Control, FramePlacement, FrameTranslation, State


class SwingUpWeights(NamedTuple):
    """Of what happens on the way, and of the end."""

    tip: float = 1.0  # below its highest place
    control: float = 0.1
    near: float = 0.01  # of the end, and at rest
    end: float = 1e3


def swing_up(
    robot: Model, up: ArrayLike, *, seconds: float = 2.0, dt: float = 0.02, weights: SwingUpWeights | None = None
) -> Exercise:
    """From hanging at rest to rest at `up` (nq), where the frame `tip` is highest. The start leads straight there."""
    weights = weights or SwingUpWeights()
    start, end = np.zeros((2, robot.nq + robot.nv))
    end[: robot.nq] = up
    highest = frame_placement(robot, end[: robot.nq], "tip")[:3, 3]
    terms = [
        FrameTranslation("tip", reference=highest, weight=weights.tip),
        Control(weight=weights.control),
        State(reference=end, weight=weights.near, name="near"),
    ]
    nodes = round(seconds / dt)
    final = [State(reference=end, weight=weights.end, name="end")]
    problem = ShootingProblem(robot, start, [Phase(nodes=nodes)], terms, final, dt=dt)
    xs = np.linspace(start, end, nodes + 1)
    return Exercise(f"{robot.name} swings up", problem, xs, np.zeros((nodes, problem.nu)), BoxFDDP)


def double_pendulum() -> Exercise:
    """Both joints have motors."""
    return swing_up(load_robot("double_pendulum"), [np.pi, 0.0])


def cartpole() -> Exercise:
    """The cart has a motor, the pole has none."""
    weights = SwingUpWeights(tip=10.0, control=0.01, near=0.1)
    return swing_up(load_robot("cartpole"), [0.0, np.pi], weights=weights)


class ReachWeights(NamedTuple):
    """Of what happens on the way, and of the end."""

    control: float = 1e-3
    posture: float = 1e-2
    still: float = 1e-1
    place: float = 1e4
    rest: float = 1e2


TARGET = ((1.0, 0.0, 0.0, 0.45), (0.0, -1.0, 0.0, -0.3), (0.0, 0.0, -1.0, 0.4), (0.0, 0.0, 0.0, 1.0))
"""In front of the arm, to its right, the tool pointing down."""


def reach(
    robot: Model | None = None,
    frame: str = "tool",
    target: ArrayLike = TARGET,
    *,
    seconds: float = 1.5,
    dt: float = 0.02,
    weights: ReachWeights | None = None,
) -> Exercise:
    """A frame comes to a pose (4, 4) in the world, and to rest there."""
    robot, weights = robot or load_robot("arm"), weights or ReachWeights()
    start = np.concatenate([robot.reference_configurations["standing"], np.zeros(robot.nv)])
    nodes, moving = round(seconds / dt), np.repeat([0.0, 1.0], robot.nv)
    terms = [
        Control(weight=weights.control),
        State(reference=start, weight=weights.posture, name="posture", activation=Quadratic(1.0 - moving)),
        State(reference=start, weight=weights.still, name="still", activation=Quadratic(moving)),
    ]
    final = [
        FramePlacement(frame, reference=target, weight=weights.place),
        State(reference=start, weight=weights.rest, name="rest", activation=Quadratic(moving)),
    ]
    problem = ShootingProblem(robot, start, [Phase(nodes=nodes)], terms, final, dt=dt)
    return from_rest(f"{robot.name} reaches", problem)


def gait(make: Callable[[Model], Gait], usual: str) -> Callable[..., Exercise]:
    """A gait as it is by default, of a robot or the usual one."""

    def found(robot: Model | None = None) -> Exercise:
        return make(robot or load_robot(usual)).exercise()

    return found


MOTIONS: dict[str, Callable[..., Exercise]] = {
    "reach": reach,
    "double_pendulum": double_pendulum,
    "cartpole": cartpole,
    "astronaut": astronaut,
    "walk": gait(walk, "quadruped"),
    "trot": gait(trot, "quadruped"),
    "pace": gait(pace, "quadruped"),
    "bound": gait(bound, "quadruped"),
    "jump": gait(jump, "quadruped"),
    "biped_walk": gait(walk, "humanoid"),
}
"""All of them, by name; some take another robot."""
