"""A humanoid is nudged at the top of a staircase, its motors too weak to hold it, and falls all the way down.

    python examples/staircase.py          what happened, and a replay in the folder `demo`
    python examples/staircase.py --view   and the viewer

Head, trunk, arms and legs touch the steps, the floor and each other; joints stop at their limits.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import saltus as sl

STEPS, RISE, TREAD, WIDTH = 8, 0.16, 0.3, 2.4  # m
FRICTION = 0.4
NUDGE = sl.Push("pelvis", (250.0, 60.0, 0.0), start=0.2, duration=0.25)  # N


def world() -> sl.Terrain:
    """A floor, a landing, and stairs that lead down from it along x."""
    middle = np.eye(4)
    middle[:3, 3] = -0.75, 0.0, 0.5 * STEPS * RISE
    landing = sl.Box((1.5, WIDTH, STEPS * RISE), middle, friction=FRICTION)
    foot = (STEPS * TREAD, 0.0, 0.0)
    stairs = sl.Stairs(foot, STEPS, RISE, TREAD, WIDTH, yaw=np.pi, friction=FRICTION)
    return sl.Terrain([sl.Ground(friction=FRICTION), landing, stairs])


def tumble(seconds: float = 4.0) -> sl.Motion:
    robot = sl.load_robot("humanoid")
    standing = robot.reference_configurations["standing"]
    q = standing.copy()
    q[2] += STEPS * RISE  # at the edge of the landing
    weak = sl.PDTargets(standing, kp=40.0, kd=3.0)
    simulator = sl.Simulator(robot, world())
    return simulator.rollout(q, np.zeros(robot.nv), weak, duration=seconds, every=5, pushes=[NUDGE])


def main(folder: Path, view: bool) -> None:
    motion = tumble()
    simulator = motion.simulator
    height = sl.center_of_mass(simulator.model, motion.q)[:, 2]
    deepest = -simulator.contacts(motion.q).gap.min()
    print(f"the centre of mass falls by {height[0] - height[-1]:.2f} m")
    print(f"at most {motion.touching.sum(axis=-1).max()} contacts at a time, never deeper than {1e3 * deepest:.2g} mm")
    folder.mkdir(exist_ok=True)
    print(f"wrote {sl.view.save_replay(folder / 'staircase.html', motion, title='Down the stairs')}")
    if view:
        with sl.view.show(motion, play=True) as viewer:
            input(f"open {viewer.url} in a browser; Enter ends ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A humanoid falls down a staircase.")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where the replay goes")
    parser.add_argument("--view", action="store_true", help="open the viewer")
    main(**vars(parser.parse_args()))
