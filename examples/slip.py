"""Two quadrupeds are dropped, stand by their motors, and are pushed from behind: one stands on stone, the other on ice.

    python examples/slip.py          a line for each robot, and a replay in the folder `demo`
    python examples/slip.py --view   and the viewer

Both are one batch: two initial states, one call. The one on ice slides until its feet meet the stone where the ice ends.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import saltus as sl

DROP, PUSHED = 0.3, 1.0  # m, s
PUSH = sl.Push("base", (200.0, 0.0, 0.0), start=PUSHED, duration=0.15)  # N
LANES = {"ice": 0.0, "stone": -1.4}  # y [m]


def world() -> sl.Terrain:
    sheet = np.eye(4)
    sheet[:3, 3] = 0.6, 0.0, -0.009
    return sl.Terrain([sl.Ground(friction=0.8), sl.Box((2.4, 1.4, 0.02), sheet, friction=0.03)])


def slip(seconds: float = 4.0) -> sl.Motion:
    """(2, T, ...) on ice, and on stone."""
    robot = sl.load_robot("quadruped")
    standing = robot.reference_configurations["standing"]
    q = np.tile(standing, (len(LANES), 1))
    q[:, 1] = list(LANES.values())
    q[:, 2] += DROP
    hold = sl.PDTargets(standing, kp=120.0, kd=4.0)
    simulator = sl.Simulator(robot, world())
    return simulator.rollout(q, np.zeros(robot.nv), hold, duration=seconds, every=5, pushes=[PUSH])


def main(folder: Path, view: bool) -> None:
    motion = slip()
    before = int(np.searchsorted(motion.t, PUSHED))
    for k, name in enumerate(LANES):
        gone = motion.q[k, :, 0] - motion.q[k, before, 0]
        fell = "falls" if motion.fallen[k].any() else "stands"
        print(
            f"on {name:<6} pushed {gone.max():.2f} m ahead; {fell}; worst status {sl.Status(motion.status[k].max()).name}"
        )
    folder.mkdir(exist_ok=True)
    file = sl.view.save_replay(folder / "slip.html", motion, layout="overlay", title="Pushed, on ice and on stone")
    print(f"wrote {file}")
    if view:
        with sl.view.show(motion, layout="overlay", play=True) as viewer:
            input(f"open {viewer.url} in a browser; Enter ends ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Quadrupeds are pushed, on ice and on stone.")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where the replay goes")
    parser.add_argument("--view", action="store_true", help="open the viewer")
    main(**vars(parser.parse_args()))
