"""Robots dropped on stairs in random poses, motors holding on weakly: nothing falls through, and nothing is lost."""

from __future__ import annotations

import numpy as np
import pytest

import saltus as sl

FLOOR = sl.Ground(friction=0.7)


def stairs(x: float) -> list[sl.Ground | sl.Stairs]:
    """Five steps up from x on; robots fall from over the last one."""
    return [FLOOR, sl.Stairs(start=(x, 0, 0), steps=5, height=0.12, depth=0.3, width=4.0)]


TOP = 0.6
AT_REST = 0.1  # m/s, rad/s


def poses(sim: sl.Simulator, count: int, seed: int) -> np.ndarray:
    """(count, nq) that touch nothing; of robots with loops these are closed, of floating ones bodies are over the stairs."""
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


def drop(name: str, count: int, seconds: float) -> tuple[sl.Simulator, sl.Motion]:
    robot = sl.load_robot(name)
    sim = sl.Simulator(
        robot, stairs(0.3 if name == "arm" else -0.6), constraints=sl.model_loops(robot) if robot.loops else ()
    )
    q = poses(sim, count, seed=0)
    targets = sl.PDTargets(q, 40.0, 2.0)
    return sim, sim.rollout(q, np.zeros((count, robot.nv)), targets, duration=seconds, every=100, on_invalid="mark")


def check(sim: sl.Simulator, motion: sl.Motion) -> None:
    assert motion.finished.all() and np.isfinite(motion.report).all()
    assert set(np.unique(motion.status)) <= {int(x) for x in sl.Status} - {int(sl.Status.INVALID)}
    assert (motion.status == 0).mean() > 0.5
    deepest = sim.contacts(motion.q[:, 1:]).gap.min(axis=-1)
    resting = np.abs(motion.v[:, 1:]).max(axis=-1) < AT_REST
    assert resting[:, -1].mean() > 0.25  # so that there is something to look at
    assert deepest[resting].min() > -1e-3


def test_a_quadruped_falls_down_stairs() -> None:
    sim, motion = drop("quadruped", 16, 2.0)
    check(sim, motion)
    assert (motion.contact_forces[:, -1].any(axis=-1).sum(axis=-1) >= 1).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, count",
    [("quadruped", 64), ("arm", 64), ("planar_human", 64), ("humanoid", 16), ("humanoid_hands", 8), ("biped", 16)],
)
def test_shipped_robots_fall_down_stairs(name: str, count: int) -> None:
    """Of some a thousand were measured."""
    check(*drop(name, count, 2.5))
