"""A humanoid keeps its balance in the contact simulator: waving, pushed aside, on one foot for a minute, with a load.

    python examples/balance.py                 all four: what happened, pictures and replays in the folder `demo`
    python examples/balance.py one_foot        one of them

Tasks are the centre of mass, the attitude of pelvis and chest, both feet, a hand that waves, angular momentum and a posture;
the four corners of each sole push. Every two milliseconds they become torques. The controller knows nothing of pushes and of
the load, which hangs on both hands.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import saltus as sl
from examples.gaits import Record, swing

Array = NDArray[np.float64]

PERIOD = 2e-3  # s between commands
FRICTION = 0.7
SOLES = "left_sole", "right_sole"
LEVEL = np.eye(3)
LOAD = 10.0  # kg
PUSH, WHEN = 0.3, 2.0  # m/s, s


def corners(robot: sl.Model, sole: str) -> list[tuple[float, ...]]:
    """Of the box under a foot, in the frame of its sole [m]."""
    frame = robot.frames[robot.frame_index(sole)]
    box = next(shape for shape in robot.colliders if shape.joint == frame.joint and shape.kind == "box")
    place = np.linalg.inv(frame.placement) @ box.placement
    half = 0.5 * box.size
    return [tuple((place @ [x * half[0], y * half[1], -half[2], 1.0])[:3]) for x in (1, -1) for y in (1, -1)]


def controller(robot: sl.Model) -> sl.OperationalSpaceControl:
    tasks = [
        sl.CenterOfMassTask(kp=40, kd=12, weight=10),
        sl.FrameTask("pelvis", position="", weight=2),
        sl.FrameTask("chest", position="", weight=2),
        *(sl.FrameTask(sole, weight=4) for sole in SOLES),
        sl.FrameTask("right_hand", orientation="", weight=1),
        sl.MomentumTask(kd=5, weight=0.01),
        sl.PostureTask(kp=50, kd=14, weight=0.05),
    ]
    points = [(sole, place) for sole in SOLES for place in corners(robot, sole)]
    return sl.OperationalSpaceControl(robot, tasks, points, friction=0.9 * FRICTION)


Story = Callable[["Balance", float], tuple[dict[str, Any], Array]]
"""From time to targets, and which of the two feet are to carry."""


class Balance:
    """From time and state to torques, by a story."""

    def __init__(self, story: Story) -> None:
        self.robot = sl.load_robot("humanoid")
        self.control = controller(self.robot)
        self.record = Record(self.control)
        self.story, self.loads = story, np.ones(8)
        self.q = self.robot.reference_configurations["standing"]
        self.center = sl.center_of_mass(self.robot, self.q)
        self.soles = [sl.frame_placement(self.robot, self.q, sole) for sole in SOLES]
        self.hand = sl.frame_placement(self.robot, self.q, "right_hand")[:3, 3]

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        targets, carrying = self.story(self, t)
        self.loads = sl.ramped(self.loads, np.repeat(carrying, 4), PERIOD, 0.2)
        stay = {"com": self.center, "pelvis": LEVEL, "chest": LEVEL, "right_hand": self.hand, "posture": self.q}
        stay |= dict(zip(SOLES, self.soles, strict=True))
        return self.record.keep(t, self.control(q, v, active=self.loads, **stay | targets))


def wave(balance: Balance, t: float) -> tuple[dict[str, Any], Array]:
    """The right hand goes up and waves."""
    up = swing(balance.hand, balance.hand + np.array([0.1, -0.15, 0.7]), 0.0, (t - 0.5) / 1.5, 1.5)
    w, size = 2.0 * np.pi, 0.15 * min(max(t - 2.0, 0.0), 1.0)  # once a second
    beat = np.array([np.sin(w * t), w * np.cos(w * t), -w * w * np.sin(w * t)])[:, None] * [0.0, size, 0.0]
    target = sl.Target(
        up.position + beat[0], np.r_[up.velocity + beat[1], 0, 0, 0], np.r_[up.acceleration + beat[2], 0, 0, 0]
    )
    return {"right_hand": target}, np.ones(2)


def stand(balance: Balance, t: float) -> tuple[dict[str, Any], Array]:
    return {}, np.ones(2)


def one_foot(balance: Balance, t: float) -> tuple[dict[str, Any], Array]:
    """Over to the left foot, and the right one goes up."""
    there = np.array([*balance.soles[0][:2, 3] + [0.03, 0.0], balance.center[2]])
    shift = swing(balance.center, there, 0.0, t / 2.0, 2.0)
    foot = balance.soles[1].copy()
    lift = swing(foot[:3, 3], foot[:3, 3] + [0.05, 0.0, 0.2], 0.0, (t - 2.5) / 1.0, 1.0)
    foot[:3, 3] = lift.position
    return {"com": sl.Target(shift.position, shift.velocity, shift.acceleration), "right_sole": foot}, np.array(
        [1.0, t < 2.2]
    )


@dataclass(frozen=True)
class Scene:
    story: Story
    seconds: float
    pushes: tuple[sl.Push, ...] = ()


def scenes() -> dict[str, Scene]:
    mass = sl.load_robot("humanoid").total_mass
    aside = sl.Push("chest", (0.0, PUSH * mass / 0.1, 0.0), start=WHEN, duration=0.1)
    load = [sl.Push(f"{side}_hand", (0.0, 0.0, -9.81 * LOAD / 2), start=1.0) for side in ("left", "right")]
    return {
        "wave": Scene(wave, 8.0),
        "pushed": Scene(stand, 6.0, (aside,)),
        "one_foot": Scene(one_foot, 60.0),
        "load": Scene(stand, 8.0, tuple(load)),
    }


def balance(name: str, seconds: float | None = None) -> tuple[sl.Motion, Balance]:
    scene = scenes()[name]
    brain = Balance(scene.story)
    sim = sl.Simulator(brain.robot, sl.Ground(friction=FRICTION))
    motion = sim.rollout(
        brain.q, np.zeros(brain.robot.nv), brain, duration=seconds or scene.seconds, every=20, control_period=PERIOD,
        pushes=scene.pushes,
    )  # fmt: skip
    return motion, brain


def main(names: list[str], folder: Path, view: bool) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        motion, brain = balance(name)
        center = sl.center_of_mass(brain.robot, motion.q)
        status = brain.record.all("status")
        print(
            f"{name}: {'falls' if motion.fallen.any() else 'stands'} for {motion.t[-1]:g} s, its centre of mass goes "
            f"{1e2 * np.ptp(center[:, 0]):.1f} cm ahead or back, {1e2 * np.ptp(center[:, 1]):.1f} cm aside; "
            f"{(status == 0).mean():.2%} of {len(status)} commands solved, torques up to "
            f"{np.abs(brain.record.torques).max():.0%} of their limits"
        )
        brain.record.draw(folder / f"balance_{name}.png", 0.0, 8.0)
        title = name.replace("_", " ")
        print(f"wrote {sl.view.save_replay(folder / f'balance_{name}.html', motion, title=title)}")
        if view:
            with sl.view.show(motion, play=True) as viewer:
                input(f"open {viewer.url} in a browser; Enter ends ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A humanoid keeps its balance.")
    parser.add_argument("names", nargs="*", default=list(scenes()), help=f"of {', '.join(scenes())}")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where files go")
    parser.add_argument("--view", action="store_true", help="open the viewer")
    main(**vars(parser.parse_args()))
