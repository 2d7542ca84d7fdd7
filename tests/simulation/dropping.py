"""Shipped robots over stairs, in random poses that touch nothing."""

from __future__ import annotations

import numpy as np

import saltus as sl

FLOOR = sl.Ground(friction=0.7)
TOP = 0.6
AT_REST = 0.1  # m/s, rad/s
EVERY = 100
"""Steps between two states that are looked at."""


def stairs(x: float) -> list[sl.Ground | sl.Stairs]:
    """Five steps up from x on; robots fall from over the last one."""
    return [FLOOR, sl.Stairs(start=(x, 0, 0), steps=5, height=0.12, depth=0.3, width=4.0)]


def over_stairs(name: str) -> sl.Simulator:
    robot = sl.load_robot(name)
    return sl.Simulator(
        robot, stairs(0.3 if name == "arm" else -0.6), constraints=sl.model_loops(robot) if robot.loops else ()
    )


def poses(sim: sl.Simulator, count: int, seed: int) -> np.ndarray:
    """(count, nq) that touch nothing; loops are closed, and floating robots over the stairs."""
    robot, rng = sim.model, np.random.default_rng(seed)
    floor = sl.Scene(robot, sl.Ground(), self_collision=False, margin=50.0)
    base = robot.joints[1].kind.name

    def draw(count: int) -> np.ndarray:
        q = sl.random_configuration(robot, rng, count)
        if robot.loops:
            q[:, 7:] = robot.reference_configurations["standing"][7:]
        if base == "FREE_FLYER":
            q[:, :2], height = rng.uniform(-1, 1, (count, 2)), 2
        elif robot.name == "planar_human":
            height = 1
        else:
            return q
        q[:, height] = 0.0
        low = sl.find_contacts(floor, None, q).gap.min(axis=-1)
        q[:, height] = TOP + rng.uniform(0.05, 0.3, count) - low
        return q

    q = draw(count)
    for _ in range(300):
        inside = sim.contacts(q).gap.min(axis=-1) < 0
        if not inside.any():
            return q
        q[inside] = draw(int(inside.sum()))
    raise AssertionError("no pose is free")


def drop(sim: sl.Simulator, q: np.ndarray, seconds: float) -> sl.Motion:
    """From `q` (..., nq), motors holding on weakly."""
    targets = sl.PDTargets(q, 40.0, 2.0)
    return sim.rollout(q, np.zeros(sim.model.nv), targets, duration=seconds, every=EVERY, on_invalid="mark")


def depths_at_rest(sim: sl.Simulator, motion: sl.Motion) -> np.ndarray:
    """The deepest penetration [m] in each state but the first (..., T - 1); NaN where a robot moves."""
    deepest = -sim.contacts(motion.q[..., 1:, :]).gap.min(axis=-1)
    return np.where(np.abs(motion.v[..., 1:, :]).max(axis=-1) < AT_REST, deepest, np.nan)
