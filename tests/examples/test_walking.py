"""The examples of whole-body control: robots stand, trot and walk, pushed or not, and what their controllers command is
within limits; files are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saltus as sl
from examples import balance, trot, walk
from examples.gaits import GRAVITY, Pendulum, Record, swing


def holds(motion: sl.Motion, record: Record, friction: float) -> None:
    """Nobody falls, and what is commanded is within limits and cones."""
    control, forces = record.control, record.all("forces")
    assert not motion.fallen.any() and motion.status.max() <= sl.Status.INACCURATE
    assert np.abs(record.torques).max() <= 1.0 + 1e-9
    assert (np.linalg.norm(forces[..., :2], axis=-1) <= friction * forces[..., 2] + 1e-6).all()
    assert not np.delete(record.all("tau"), control.motors, axis=-1).any()
    assert set(record.all("status").tolist()) <= {sl.QPStatus.SOLVED, sl.QPStatus.MAX_ITERATIONS}


def test_a_foot_swings_smoothly() -> None:
    """From start to end, over the height half-way, with rates that are those of its positions."""
    start, end, h = np.zeros(3), np.array([0.3, 0.1, 0.05]), 1e-5
    for share in (0.0, 0.2, 0.5, 0.9, 1.0):
        before, here, after = (swing(start, end, 0.1, share + shift / 0.4, 0.4) for shift in (-h, 0.0, h))
        if 0.0 < share < 1.0:
            np.testing.assert_allclose(here.velocity, (after.position - before.position) / (2 * h), atol=1e-6)
            np.testing.assert_allclose(here.acceleration, (after.velocity - before.velocity) / (2 * h), atol=1e-4)
        else:
            np.testing.assert_allclose([here.velocity, here.acceleration], 0.0, atol=1e-9)
            np.testing.assert_allclose(here.position, end if share else start)
    assert swing(start, start, 0.1, 0.5, 0.4).position[2] == pytest.approx(0.1)


def test_footsteps_of_a_pendulum_bring_back_any_motion() -> None:
    """The pendulum itself, from a push on: speed and width of its steps are those wanted after one step."""
    gait = Pendulum(height=0.8, period=0.3, width=0.2)
    speed, foot, side = np.array([0.4, 0.0]), np.array([0.0, 0.1]), -1.0
    x, v = np.zeros(2), np.array([0.1, -0.2])
    feet, w = [foot], gait.rate
    assert w == pytest.approx(np.sqrt(GRAVITY / 0.8))
    for _ in range(12):
        following = gait.foothold(gait.divergent(x, v), foot, gait.period, side, speed)
        c, s = np.cosh(w * gait.period), np.sinh(w * gait.period)
        x, v = foot + c * (x - foot) + s * v / w, w * s * (x - foot) + c * v
        foot, side = following, -side
        feet.append(foot)
    steps = np.diff(feet[4:], axis=0)
    np.testing.assert_allclose(steps[:, 0], speed[0] * gait.period, atol=1e-2)
    np.testing.assert_allclose(np.abs(steps[:, 1]), gait.width, atol=1e-2)


def test_the_quadruped_trots_and_is_pushed() -> None:
    motion, brain = trot.trot(6.0, speed=0.5)
    holds(motion, brain.record, brain.control.friction.max())
    assert motion.q[-1, 0] > 2.0 and abs(motion.q[-1, 1]) < 0.1 < 1.5 * np.abs(motion.q[:, 1]).max()
    assert np.ptp(motion.q[:, 2]) < 0.05
    both = (motion.contact_forces[..., 2] > 0).sum(axis=-1)
    assert {2, 4} <= set(both.tolist())


def test_it_trots_on_the_spot() -> None:
    motion, brain = trot.trot(3.0, speed=0.0, push=0.0)
    holds(motion, brain.record, brain.control.friction.max())
    assert np.abs(motion.q[:, :2]).max() < 0.05


@pytest.mark.parametrize("name", ["wave", "pushed", "load"])
def test_the_humanoid_balances(name: str) -> None:
    motion, brain = balance.balance(name, 4.0)
    holds(motion, brain.record, brain.control.friction.max())
    center = sl.center_of_mass(brain.robot, motion.q)
    assert np.abs(center - center[0]).max() < 0.05
    soles = np.array([sl.frame_placement(brain.robot, motion.q, sole)[:, :3, 3] for sole in balance.SOLES])
    assert np.abs(soles - soles[:, :1]).max() < 0.02  # without a step
    if name == "wave":
        hand = sl.frame_placement(brain.robot, motion.q, "right_hand")[:, :3, 3]
        assert hand[-1, 2] - hand[0, 2] > 0.6 and np.ptp(hand[motion.t > 3.0, 1]) > 0.2
    if name == "load":
        carried = motion.contact_forces[-1, :, 2].sum() - 9.81 * brain.robot.total_mass
        assert carried == pytest.approx(9.81 * balance.LOAD, rel=0.05)


@pytest.mark.slow
def test_it_stands_on_one_foot_for_a_minute() -> None:
    motion, brain = balance.balance("one_foot")
    holds(motion, brain.record, brain.control.friction.max())
    late = motion.t > 5.0
    foot = sl.frame_placement(brain.robot, motion.q, "right_sole")[late, :3, 3]
    assert motion.t[-1] == 60.0 and foot[:, 2].min() > 0.15
    center = sl.center_of_mass(brain.robot, motion.q)[late]
    assert np.ptp(center, axis=0).max() < 5e-3


def gaps(robot: sl.Model, motion: sl.Motion) -> float:
    ends = [[sl.frame_placement(robot, motion.q, x)[..., :3, 3] for x in (z.frame_a, z.frame_b)] for z in robot.loops]
    return max(float(np.linalg.norm(a - b, axis=-1).max()) for a, b in ends)


@pytest.mark.parametrize("name", walk.WALKERS)
def test_bipeds_stand_and_walk(name: str) -> None:
    motion, brain = walk.walk(name, 8.0, speed=0.4)
    holds(motion, brain.record, brain.control.friction.max())
    robot, standing = brain.robot, motion.t < brain.walker.standing
    assert gaps(robot, motion) < 1e-4
    assert np.abs(motion.q[standing, 0] - motion.q[0, 0]).max() < 0.02
    walked = motion.t > brain.walker.standing + brain.walker.gathering
    assert np.ptp(motion.q[walked, 0]) / np.ptp(motion.t[walked]) > 0.3
    assert np.abs(motion.q[:, 1]).max() < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("name", walk.WALKERS)
def test_bipeds_walk_for_a_minute(name: str) -> None:
    motion, brain = walk.walk(name, 60.0, speed=0.4)
    holds(motion, brain.record, brain.control.friction.max())
    assert motion.t[-1] == 60.0 and motion.q[-1, 0] > 0.3 * 58.0 and np.abs(motion.q[:, 1]).max() < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("push", [0.3, -0.3])
def test_a_biped_recovers_from_pushes(push: float) -> None:
    """0.3 m/s times its mass aside: within three steps its feet are as far apart as before."""
    motion, brain = walk.walk("biped", 9.0, speed=0.3, push=push)
    holds(motion, brain.record, brain.control.friction.max())
    feet = [sl.frame_placement(brain.robot, motion.q, f"{side}_sole")[:, 1, 3] for side in walk.SIDES]
    apart = feet[0] - feet[1]
    calm = motion.t > 5.1 + 3 * brain.walker.step + 0.1
    assert np.abs(apart[calm] - brain.pendulum.width).max() < 0.15 < np.abs(apart - brain.pendulum.width).max() + 0.1


@pytest.mark.parametrize(("example", "arguments"), [
    (trot, {"seconds": 0.6, "speed": 0.3, "push": 0.0}),
    (balance, {"names": ["load"]}),
    (walk, {"names": ["biped"], "seconds": 2.0, "speed": 0.2, "push": 0.0}),
])  # fmt: skip
def test_an_example_tells_and_writes(
    example: Any, arguments: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example.main(**arguments, folder=tmp_path / "demo", view=False)
    told = capsys.readouterr().out.splitlines()
    (file,) = (tmp_path / "demo").glob("*.html")
    (picture,) = (tmp_path / "demo").glob("*.png")
    assert told[-1] == f"wrote {file}" and len(told) == 2 and picture.stat().st_size > 10_000
