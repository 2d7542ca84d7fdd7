"""The quadruped trots in the contact simulator, and is pushed aside on the way.

    python examples/trot.py                 what happened, a picture and a replay in the folder `demo`
    python examples/trot.py --speed 0.8     faster; 0 trots on the spot

Two feet carry at a time, those of a diagonal. Where the others come down again is half a step ahead of the hips, and further
out where the robot is too fast: what a spring-loaded leg does (M. Raibert, Legged robots that balance, 1986). A whole-body
controller does the rest every millisecond.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import saltus as sl
from examples.gaits import GRAVITY, Record, swing

Array = NDArray[np.float64]

PERIOD = 1e-3  # s between commands
FRICTION = 0.7
STEP, SHARED = 0.3, 0.08  # s that a diagonal carries, of which it shares at either end
CLEARANCE = 0.08  # m
GATHERING, STANDING = 1.5, 0.5  # s to come up to speed, and before
PUSH, WHEN = 0.3, 4.0  # m/s, s
LEVEL = np.eye(3)


def controller(robot: sl.Model, copies: int = 1) -> sl.OperationalSpaceControl:
    """`copies`: of each contact point."""
    feet = sl.robot_frames("quadruped").feet
    tasks = [
        sl.CenterOfMassTask(kp=(20, 20, 100), kd=(8, 8, 20), weight=10),
        sl.FrameTask("base", position="", kp=150, kd=25, weight=2),
        *(sl.FrameTask(foot, orientation="", kp=400, kd=40, weight=2) for foot in feet),
    ]
    return sl.OperationalSpaceControl(
        robot, tasks, [foot for foot in feet for _ in range(copies)], friction=0.9 * FRICTION
    )


class Trot:
    """From time and state to torques: `speed` (2,) along x and y [m/s]."""

    def __init__(self, speed: tuple[float, float], step: float = STEP, shared: float = SHARED) -> None:
        self.step, self.shared = step, shared  # s
        self.robot, self.feet = sl.load_robot("quadruped"), sl.robot_frames("quadruped").feet
        self.control = controller(self.robot)
        self.record, self.speed = Record(self.control), np.array(speed)
        self.q = self.robot.reference_configurations["standing"]
        self.center = sl.center_of_mass(self.robot, self.q)
        self.places = np.array(self.positions(self.q))
        self.hips = self.places - self.center  # where feet are about the centre of mass
        self.start, self.wanted, self.loads = self.places.copy(), self.center.copy(), np.ones(4)

    def positions(self, q: Array) -> list[Array]:
        return [sl.frame_placement(self.robot, q, foot)[:3, 3] for foot in self.feet]

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        robot, since = self.robot, t - STANDING + 0.5 * PERIOD
        center, places = sl.center_of_mass(robot, q), self.positions(q)
        velocity = sl.centroidal_momentum(robot, q, v)[:3] / robot.total_mass
        speed = self.speed * np.clip(since / GATHERING, 0.0, 1.0)
        self.wanted[:2] += PERIOD * speed
        self.wanted[:2] = center[:2] + np.clip(self.wanted[:2] - center[:2], -0.1, 0.1)
        step, into = divmod(since, self.step)
        down = np.ones(4)
        targets = dict(zip(self.feet, places, strict=True))
        if since >= 0:
            moving = (1, 2) if int(step) % 2 else (0, 3)  # left front with right hind, and the others
            if into < self.shared:
                self.start[list(moving)] = [places[k] for k in moving]
                down[list(moving)] = 0.0 if into > 0 else 1.0
            else:
                share = (into - self.shared) / (self.step - self.shared)
                down[list(moving)] = 0.0
                for k in moving:
                    ahead = 0.5 * self.step * velocity[:2] + np.sqrt(center[2] / GRAVITY) * 0.5 * (velocity[:2] - speed)
                    end = np.array(
                        [
                            *(center[:2] + self.hips[k, :2] + ahead + velocity[:2] * (self.step - into)),
                            self.places[k, 2],
                        ]
                    )
                    way = swing(self.start[k], end, CLEARANCE, share, self.step - self.shared)
                    rates = np.zeros((2, 6))
                    rates[:, :3] = way.velocity, way.acceleration
                    targets[self.feet[k]] = sl.Target(way.position, *rates)
        self.loads = sl.ramped(self.loads, down, PERIOD, self.shared)
        com = sl.Target(self.wanted, np.array([*speed, 0.0]))
        return self.record.keep(t, self.control(q, v, com=com, base=LEVEL, active=self.loads, **targets))


def trot(seconds: float = 10.0, speed: float = 0.5, push: float = PUSH) -> tuple[sl.Motion, Trot]:
    """`push`: an impulse to the side as a share of the mass [m/s], during 0.1 s."""
    brain = Trot((speed, 0.0))
    sim = sl.Simulator(brain.robot, sl.Ground(friction=FRICTION))
    pushes = [sl.Push("base", (0.0, push * brain.robot.total_mass / 0.1, 0.0), start=WHEN, duration=0.1)]
    motion = sim.rollout(
        brain.q, np.zeros(brain.robot.nv), brain, duration=seconds, every=20, control_period=PERIOD, pushes=pushes
    )
    return motion, brain


def main(seconds: float, speed: float, push: float, folder: Path, view: bool) -> None:
    folder.mkdir(exist_ok=True)
    motion, brain = trot(seconds, speed, push)
    end, settled = motion.q[-1, :2], motion.t >= min(STANDING + GATHERING, seconds / 2)
    status = brain.record.all("status")
    print(
        f"quadruped: {'falls' if motion.fallen.any() else 'trots'} {end[0]:.2f} m in {seconds:g} s "
        f"({np.ptp(motion.q[settled, 0]) / np.ptp(motion.t[settled]):.2f} m/s), pushed "
        f"{np.abs(motion.q[:, 1]).max():.2f} m aside, {abs(end[1]):.2f} m in the end; {(status == 0).mean():.2%} of "
        f"{len(status)} commands solved, torques up to {np.abs(brain.record.torques).max():.0%} of their limits"
    )
    brain.record.draw(folder / "trot.png", 3.0, 5.0)
    print(f"wrote {sl.view.save_replay(folder / 'trot.html', motion, title='Trot')}")
    if view:
        with sl.view.show(motion, play=True) as viewer:
            input(f"open {viewer.url} in a browser; Enter ends ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A quadruped trots.")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--speed", type=float, default=0.5, help="[m/s]")
    parser.add_argument("--push", type=float, default=PUSH, help="aside, a share of the mass [m/s]")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where files go")
    parser.add_argument("--view", action="store_true", help="open the viewer")
    main(**vars(parser.parse_args()))
