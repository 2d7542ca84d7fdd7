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

STEPS, RISE, TREAD = 8, 0.16, 0.3  # m
NUDGE = sl.Push("pelvis", (150.0, 0.0, 0.0), start=0.2, duration=0.25)  # N


def world() -> sl.Terrain:
    """A floor, and stairs that lead down along x from the origin."""
    stairs = sl.Stairs(
        start=(STEPS * TREAD, 0, 0), steps=STEPS, height=RISE, depth=TREAD, width=2.4, yaw=np.pi, friction=0.6
    )
    return sl.Terrain([sl.Ground(friction=0.6), stairs])


def tumble(seconds: float = 4.0) -> sl.Motion:
    robot = sl.load_robot("humanoid")
    standing = robot.reference_configurations["standing"]
    q = standing.copy()
    q[:3] += 0.15, 0.0, STEPS * RISE  # on the uppermost step
    weak = sl.PDTargets(standing, kp=20.0, kd=2.0)
    return sl.Simulator(robot, world()).rollout(q, np.zeros(robot.nv), weak, duration=seconds, every=5, pushes=[NUDGE])


def main(folder: Path, view: bool) -> None:
    motion = tumble()
    heights = sl.center_of_mass(motion.simulator.model, motion.q)[:, 2]
    deepest = -motion.simulator.contacts(motion.q).gap.min()
    hits = motion.t[motion.fallen]
    print(f"the centre of mass falls by {heights[0] - heights[-1]:.2f} m; the pelvis touches a step at {hits[0]:.2f} s")
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
