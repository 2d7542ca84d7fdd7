"""Cassie and the shipped biped walk for a minute, on feet that are lines, in the contact simulator.

    python examples/walk.py                       both robots: what happened, pictures and replays in the folder `demo`
    python examples/walk.py biped --speed 0.5     one of them, faster
    python examples/walk.py cassie --push 0.3     pushed aside by its mass times 0.3 m/s after five seconds

Every millisecond a whole-body controller keeps height and attitude, and moves the foot in the air to where the divergent
part of a linear inverted pendulum asks for it. Nothing else balances the robot. Loops are closed, Cassie's springs act (the
controller takes them for locked), contacts push only, and forces go from foot to foot by ramps.

Reference: B. Acosta, FCCQP (2024), section 4.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import saltus as sl
from examples.gaits import Pendulum, Record, swing

Array = NDArray[np.float64]

PERIOD = 1e-3  # s between commands
SIDES = "left", "right"
FRICTION, TRUSTED = 0.6, 0.5
"""Of the ground, and what the controller takes it for."""
CASSIE_FOOT = np.array(
    [(0.090, 0.0, 0.0), (-0.048, 0.115, 0.0)]
)  # ends of the cylinder's lowest line, heel and toe [m]
LEVEL = np.eye(3)


@dataclass(frozen=True)
class Walker:
    """A robot whose feet are lines, along x of the frames `left_sole` and `right_sole`, and how it walks."""

    robot: sl.Model
    half_foot: float  # m
    single: float = 0.22  # s on one foot
    double: float = 0.06  # s on both
    clearance: float = 0.12  # m
    standing: float = 1.5  # s before the first step
    gathering: float = 2.0  # s to come up to speed
    homing: float = 0.6  # 1/s, how fast it comes back to where it should be

    @property
    def step(self) -> float:
        """Time of one [s]."""
        return self.single + self.double


def cassie() -> Walker:
    robot = sl.load_robot("cassie")
    q, frames = robot.reference_configurations["standing"], list(robot.frames)
    for side in SIDES:
        index = robot.frame_index(f"{side}-foot")
        R = sl.frame_placement(robot, q, index)[:3, :3]
        ahead = R @ (CASSIE_FOOT[1] - CASSIE_FOOT[0])
        along = ahead / np.linalg.norm(ahead)
        sole = np.eye(4)
        sole[:3, :3] = R.T @ np.column_stack([along, np.cross([0.0, 0.0, 1.0], along), [0.0, 0.0, 1.0]])
        sole[:3, 3] = CASSIE_FOOT.mean(axis=0)
        place = frames[index].placement @ sole
        frames.append(sl.Frame(f"{side}_sole", frames[index].joint, place, sl.FrameKind.OP, index))
    length = float(np.linalg.norm(CASSIE_FOOT[1] - CASSIE_FOOT[0]))
    return Walker(robot.replace(frames=tuple(frames)), length / 2)


def biped() -> Walker:
    return Walker(sl.load_robot("biped"), 0.09)


WALKERS = {"cassie": cassie, "biped": biped}


def controller(walker: Walker, axes: str, robot: sl.Model | None = None, copies: int = 1) -> sl.OperationalSpaceControl:
    """Weights and gains in the manner of the paper's section 4. `axes`: of the centre of mass, those that are controlled.
    `robot`: what the controller takes it for. `copies`: of each contact point."""
    robot, feet = robot or walker.robot, [f"{side}_sole" for side in SIDES]
    tasks = [
        sl.CenterOfMassTask(axes=axes, kp=50, kd=10, weight=10),
        sl.FrameTask("pelvis", position="", kp=200, kd=20, weight=(2, 4, 2)),
        *(sl.FrameTask(foot, orientation="", kp=200, kd=20, weight=4) for foot in feet),
        *(
            sl.FrameTask(
                foot,
                position="",
                orientation="yz",
                reference="local",
                kp=(400, 100),
                kd=20,
                weight=(1, 0.5),
                name=f"{foot}_turn",
            )
            for foot in feet
        ),
    ]
    ends = [(x, 0.0, 0.0) for x in (-walker.half_foot, walker.half_foot)]
    springs = [sl.JointLock(robot, joint.name) for joint in robot.joints[2:] if robot.stiffness[joint.iv] > 0]
    return sl.OperationalSpaceControl(
        robot,
        tasks,
        [(foot, end) for foot in feet for end in ends for _ in range(copies)],
        [*sl.model_loops(robot), *springs],
        friction=TRUSTED,
        slack_weight=80.0,
    )


class Walk:
    """From time and state to torques: `speed` (2,) along x and y [m/s]."""

    def __init__(self, walker: Walker, speed: tuple[float, float]) -> None:
        self.walker, self.robot, self.speed = walker, walker.robot, np.array(speed)
        self.control, self.stand = controller(walker, "z"), controller(walker, "xyz")
        self.record = Record(self.control)
        q = self.robot.reference_configurations["standing"]
        soles, center = self.soles(q), sl.center_of_mass(self.robot, q)
        self.height = float(center[2])
        self.pendulum = Pendulum(self.height, walker.step, float(soles[0][1] - soles[1][1]))
        self.middle = center
        self.wanted = center[:2].copy()  # where the robot should be
        self.first = np.array([center[0], soles[0][1] - self.pendulum.sway, center[2]])  # before the first step
        self.start = soles  # where feet left the ground
        self.loads = np.ones(4)

    def soles(self, q: Array) -> list[Array]:
        return [sl.frame_placement(self.robot, q, f"{side}_sole")[:3, 3] for side in SIDES]

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        walker, robot = self.walker, self.robot
        if t < walker.standing:
            share = min(1.0, 1.5 * t / walker.standing)
            com = self.middle + share * share * (3.0 - 2.0 * share) * (self.first - self.middle)
            return self.record.keep(t, self.stand(q, v, com=com, pelvis=LEVEL))
        t, begun = t - walker.standing, t
        step, since = divmod(t + 0.5 * PERIOD, walker.step)
        stance = int(step) % 2
        other = 1 - stance
        center, soles = sl.center_of_mass(robot, q), self.soles(q)
        velocity = sl.centroidal_momentum(robot, q, v)[:3] / robot.total_mass
        speed = self.speed * min(1.0, t / walker.gathering)
        self.wanted = self.wanted + speed * PERIOD
        speed = speed + np.clip(walker.homing * (self.wanted - center[:2]), -0.3, 0.3)
        targets: dict[str, Any] = {f"{side}_sole": sole for side, sole in zip(SIDES, soles, strict=True)}
        targets |= {f"{side}_sole_turn": LEVEL for side in SIDES}
        if since < walker.double:
            self.start[other] = soles[other]
        else:
            left = walker.step + 0.5 * walker.double - since
            xi, side = self.pendulum.divergent(center, velocity), 1.0 - 2.0 * other
            foothold = self.pendulum.foothold(xi, soles[stance][:2], left, side, speed)
            away = foothold - soles[stance][:2]
            away = np.array([np.clip(away[0], -0.5, 0.5), side * np.clip(side * away[1], 0.08, 0.65)])
            end = np.array([*(soles[stance][:2] + away), 0.0])
            way = swing(
                self.start[other], end, walker.clearance, (since - walker.double) / walker.single, walker.single
            )
            rates = np.zeros((2, 6))
            rates[:, :3] = way.velocity, way.acceleration
            targets[f"{SIDES[other]}_sole"] = sl.Target(way.position, *rates)
        down = np.repeat([stance == 0, stance == 1], 2)
        self.loads = sl.ramped(self.loads, down, PERIOD, walker.double)
        com = np.array([*center[:2], self.height])
        return self.record.keep(begun, self.control(q, v, com=com, pelvis=LEVEL, active=self.loads, **targets))


def walk(
    name: str, seconds: float = 60.0, speed: float = 0.3, push: float = 0.0, when: float = 5.0
) -> tuple[sl.Motion, Walk]:
    """`push`: an impulse to the side as a share of the mass [m/s], during 0.1 s."""
    walker = WALKERS[name]()
    robot, brain = walker.robot, Walk(walker, (speed, 0.0))
    sim = sl.Simulator(robot, sl.Ground(friction=FRICTION), constraints=sl.model_loops(robot))
    pushes = [sl.Push("pelvis", (0.0, push * robot.total_mass / 0.1, 0.0), start=when, duration=0.1)] if push else []
    q = robot.reference_configurations["standing"]
    motion = sim.rollout(q, np.zeros(robot.nv), brain, duration=seconds, every=20, control_period=PERIOD, pushes=pushes)
    return motion, brain


def main(names: list[str], seconds: float, speed: float, push: float, folder: Path, view: bool) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        motion, brain = walk(name, seconds, speed, push)
        end, settled = motion.q[-1, :2], motion.t >= min(5.0, seconds / 2)
        mean = np.ptp(motion.q[settled, 0]) / np.ptp(motion.t[settled])
        status = brain.record.all("status")
        print(
            f"{name}: {'falls' if motion.fallen.any() else 'walks'} {end[0]:.2f} m in {seconds:g} s ({mean:.2f} m/s), "
            f"{abs(end[1]):.2f} m aside; {(status == 0).mean():.2%} of {len(status)} commands solved, torques up to "
            f"{np.abs(brain.record.torques).max():.0%} of their limits"
        )
        brain.record.draw(folder / f"walk_{name}.png", seconds - 2.0, seconds)
        print(f"wrote {sl.view.save_replay(folder / f'walk_{name}.html', motion, title=f'{name} walks')}")
        if view:
            with sl.view.show(motion, play=True) as viewer:
                input(f"open {viewer.url} in a browser; Enter ends ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Bipeds walk.")
    parser.add_argument("names", nargs="*", default=list(WALKERS), help=f"of {', '.join(WALKERS)}")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--speed", type=float, default=0.3, help="[m/s]")
    parser.add_argument("--push", type=float, default=0.0, help="aside, a share of the mass [m/s]")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where files go")
    parser.add_argument("--view", action="store_true", help="open the viewer")
    main(**vars(parser.parse_args()))
