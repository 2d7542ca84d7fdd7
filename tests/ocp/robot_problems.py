"""Robots with contacts and one term of every kind, at random states."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import saltus as sl
from saltus.ocp.activations import Barrier, Huber, LogBarrier, Quadratic, SmoothAbs
from saltus.ocp.phases import ImpactPhase, Phase
from saltus.ocp.shooting_problem import ShootingProblem
from saltus.ocp.terms import (
    Capsule,
    CenterOfMass,
    CenterOfPressure,
    CentroidalMomentum,
    ContactForce,
    Control,
    Distance,
    FrameLinearVelocity,
    FramePlacement,
    FrameRotation,
    FrameTranslation,
    FrameVelocity,
    FrictionCone,
    Impulse,
    State,
    Term,
    WrenchCone,
)

ROBOTS = (
    "quadruped", "humanoid", "humanoid_hands", "biped", "arm", "double_pendulum", "cartpole", "planar_human", "four_bar",
    "random 6", "random 0",
)  # fmt: skip
"""All that are shipped, and trees with joints of all kinds."""


class Case(NamedTuple):
    """A problem of three nodes: dynamics, an impact, and the end."""

    problem: ShootingProblem
    xs: Any
    us: Any


def tip_of(robot: sl.Model) -> str:
    return robot.frames[-1].name


def constraints_of(name: str, robot: sl.Model) -> list[Any]:
    if name == "four_bar":
        return sl.model_loops(robot, kd=3.0)
    if name in ("double_pendulum", "cartpole"):
        return []
    if name == "arm" or name.startswith("random"):
        return [sl.Contact(robot, tip_of(robot), name="tip", kd=7.0)]
    if name == "planar_human":  # whose feet cannot move sideways
        return [sl.Contact(robot, "heel", rows=(0, 2), kd=7.0)]
    flat = name.startswith("humanoid") or name == "biped"
    feet = sl.robot_frames(name).feet
    if flat:
        return [sl.Contact(robot, feet[0], dim=6, kd=5.0), sl.Contact(robot, feet[1], dim=3, kd=5.0)]
    return [sl.Contact(robot, foot, kd=50.0) for foot in feet]


def terms_of(robot: sl.Model, constraints: list[Any], rng: np.random.Generator, nu: int) -> list[Term]:
    """Every kind, with every activation."""
    rows = 2 * robot.nv
    frame = tip_of(robot)
    other = robot.frames[len(robot.frames) // 2].name
    pose = np.eye(4)
    pose[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    pose[:3, :3] *= np.sign(np.linalg.det(pose[:3, :3]))
    pose[:3, 3] = rng.normal(size=3)
    x = np.concatenate([sl.random_configuration(robot, rng), rng.normal(size=robot.nv)])
    terms: list[Term] = [
        State(reference=x, activation=Quadratic(rng.uniform(0.1, 2.0, rows))),
        State(reference=x, activation=Barrier(-0.3, 0.4, beta=0.8), name="bounds"),
        State(reference=x, activation=LogBarrier(-2.0, 2.5, delta=0.3), name="log"),
        Control(reference=rng.normal(size=nu), activation=SmoothAbs(0.3)),
        FramePlacement(frame, reference=pose, activation=Huber(0.5)),
        FrameTranslation(frame, reference=pose[:3, 3], activation=SmoothAbs(0.1)),
        FrameRotation(frame, reference=pose[:3, :3], activation=Quadratic((1.0, 2.0, 0.5))),
        FrameLinearVelocity(frame, reference=rng.normal(size=3), axes="local"),
        CenterOfMass(reference=rng.normal(size=3)),
        CentroidalMomentum(reference=rng.normal(size=6)),
        Distance(Capsule(frame, 0.2, 0.05), Capsule(other, 0.3, 0.04), margin=3.0),
    ]
    terms += [
        FrameVelocity(frame, axes=axes, reference=rng.normal(size=6), name=axes)  # type: ignore[arg-type]
        for axes in ("local", "world", "local_world_aligned")
    ]
    for contact in constraints:
        name = contact.name
        terms += [
            ContactForce(name, reference=rng.normal(size=contact.dim)),
            ContactForce(name, axes="local_world_aligned", name=f"{name} aligned"),
            Impulse(name, reference=rng.normal(size=contact.dim)),
        ]
        if contact.joint_b == 0:
            terms += [
                FrictionCone(name, friction=0.6, least=1.0, most=5.0),
                FrictionCone(name, friction=0.6, facets=0, axes="local", smooth=0.1, name=f"{name} full"),
                WrenchCone(name, friction=0.5, box=(0.2, 0.1)),
                CenterOfPressure(name, box=(0.2, 0.1)),
            ]
    return terms


def case(name: str, seed: int = 0, method: str | None = None) -> Case:
    rng = np.random.default_rng(seed)
    tree = name.startswith("random")
    robot = sl.random_model(seed=int(name.split()[1]), bodies=9) if tree else sl.load_robot(name)
    constraints = constraints_of(name, robot)
    motors = sl.motors_of(robot) or list(range(robot.nv))
    terms = terms_of(robot, constraints, rng, len(motors))
    names = [constraint.name for constraint in constraints]
    here = [term for term in terms if not isinstance(term, Impulse)]
    strike = [term for term in terms if not term.needs_control]
    end = [term for term in terms if not term.needs_control and not term.needs_force]
    phases = [Phase(names, nodes=1, terms=here, dt=0.05), ImpactPhase(names, terms=strike)]
    x0 = np.concatenate([sl.random_configuration(robot, rng), rng.normal(size=robot.nv)])
    problem = ShootingProblem(
        robot, x0, phases, (), end, constraints=constraints, motors=motors, method=method or "constrained_aba"
    )
    q = sl.random_configuration(robot, rng, 3)
    xs = np.concatenate([q, rng.normal(size=(3, robot.nv))], axis=-1)
    return Case(problem, xs, rng.normal(size=(2, problem.nu)))
