"""A controller in the loop of the simulator, harassed: does it answer every time, and smoothly?

    python -m benchmarks.control_loop [--steps 100000] [--output FILE]

The quadruped trots, the biped and Cassie walk, by turns. Feet come and go three times a second; every contact point
is there twice; motors have four fifths of their torque; pushes come from all sides; and one state in a thousand has a
NaN, after which torques stay as they were. Where a foot comes or goes, the controller is asked once more with the
contacts as they were a command before: by how much torques differ is the jump.
"""

from __future__ import annotations

import argparse
import resource
from collections import Counter
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import saltus as sl
from benchmarks.measure import circumstances, write
from examples import trot
from examples.walk import FRICTION, PERIOD, WALKERS, Walk, controller

Array = NDArray[np.float64]

ROBOTS = "quadruped", "biped", "cassie"
ROUND = 4_000  # steps of a walk
EVERY = 1000  # steps between states that are not finite
WEAKER = 0.8
HARD = 0.1  # m/s, of pushes
AT_LIMIT = 0.999


class Harassed:
    """In the place of a controller and of its record; counts what comes back."""

    def __init__(self, control: sl.OperationalSpaceControl) -> None:
        self.control = control
        self.limit = control.model.effort_limit[list(control.motors)]
        self.status: Counter[str] = Counter()
        self.steps = self.limited = 0
        self.jump = self.seconds = 0.0
        self.before: Array | None = None
        self.tau = np.zeros(control.model.nv)

    def __call__(self, q: Array, v: Array, active: Array | None = None, **targets: Any) -> sl.Command:
        references = self.control.tasks.references(q, **targets)
        active = np.ones(4) if active is None else active
        twice = np.repeat(active, 2)
        self.steps += 1
        if self.steps % EVERY == 0:
            v = v.copy()
            v[self.steps % len(v)] = np.nan
        begun = perf_counter()
        command = self.control(q, v, references, active=twice)
        self.seconds += perf_counter() - begun
        self.status[command.status.name] += 1
        if command.status == sl.QPStatus.NOT_FINITE:
            return command._replace(tau=self.tau)
        motors = list(self.control.motors)
        if self.before is not None and not np.array_equal(self.before, active):
            last = self.control(q, v, references, active=np.repeat(self.before, 2))
            if command.status == last.status == sl.QPStatus.SOLVED:
                self.jump = max(self.jump, float(np.max(np.abs(command.tau - last.tau)[motors] / self.limit)))
        self.limited += bool((np.abs(command.tau[motors]) > AT_LIMIT * self.limit).any())
        self.before, self.tau = active.copy(), command.tau
        return command

    @staticmethod
    def keep(t: float, command: sl.Command) -> Array:
        return command.tau


def pushes(rng: np.random.Generator, robot: sl.Model, seconds: float) -> list[sl.Push]:
    """From all sides, about one in two seconds."""
    found = []
    for start in np.arange(2.5, seconds, 2.0):
        angle, size = rng.uniform(0, 2 * np.pi), rng.uniform(0.3, 1.0) * HARD * robot.total_mass / 0.1
        force = (size * np.cos(angle), size * np.sin(angle), 0.0)
        found.append(sl.Push(robot.joints[1].name, force, start=float(start + rng.uniform(0, 1)), duration=0.1))
    return found


def harassed_robot(name: str) -> tuple[Harassed, Any, sl.Simulator, float]:
    """Its judge, its controller, its world, and the period of its commands [s]."""
    if name in WALKERS:
        walker = replace(WALKERS[name](), single=0.25, double=0.13)
        robot, brain, friction, period = walker.robot, Walk(walker, (0.4, 0.0)), FRICTION, PERIOD
        control = controller(walker, "z", weaker(robot), copies=2)
        brain.stand = Harassed(controller(walker, "xyz", weaker(robot), copies=2))
    else:
        brain, friction, period = trot.Trot((0.5, 0.0), step=0.36, shared=0.14), trot.FRICTION, trot.PERIOD
        robot = brain.robot
        control = trot.controller(weaker(robot), copies=2)
    judge = Harassed(control)
    brain.control = brain.record = judge
    return judge, brain, sl.Simulator(robot, sl.Ground(friction=friction), constraints=sl.model_loops(robot)), period


def weaker(robot: sl.Model) -> sl.Model:
    return robot.replace(effort_limit=WEAKER * robot.effort_limit)


def one_round(name: str, seed: int, steps: int) -> tuple[Harassed, bool]:
    judge, brain, sim, period = harassed_robot(name)
    robot = sim.model
    motion = sim.rollout(
        robot.reference_configurations["standing"], np.zeros(robot.nv), brain, duration=steps * period, every=20,
        control_period=period, pushes=pushes(np.random.default_rng(seed), robot, steps * period),
    )  # fmt: skip
    return judge, bool(motion.fallen.any())


def loop(steps: int) -> dict[str, Any]:
    """What came back of so many solves in a row, and how much memory there was after each walk [MB]."""
    status: Counter[str] = Counter()
    jumps = dict.fromkeys(ROBOTS, 0.0)
    seconds, limited, falls, done, walk = 0.0, 0, 0, 0, 0
    memory: list[float] = []
    while done < steps:
        name = ROBOTS[walk % len(ROBOTS)]
        judge, fell = one_round(name, walk, min(ROUND, steps - done))
        status += judge.status
        jumps[name] = max(jumps[name], judge.jump)
        seconds, limited, falls = seconds + judge.seconds, limited + judge.limited, falls + fell
        done, walk = done + judge.steps, walk + 1
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return {
        "solves": done, "status": dict(status), "jumps": jumps, "at_limit": limited / done, "falls": falls,
        "microseconds": 1e6 * seconds / done, "memory": memory,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="A controller in the loop, harassed.")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--output", type=Path, default=None)
    arguments = parser.parse_args()
    found = loop(arguments.steps)
    print(
        f"{found['solves']} solves: " + ", ".join(f"{count} {name.lower()}" for name, count in found["status"].items())
    )
    print(f"a motor at its limit in {found['at_limit']:.1%} of them; {found['falls']} falls")
    jumps = ", ".join(f"{name} {jump:.1%}" for name, jump in found["jumps"].items())
    print(f"largest jump of a torque where contacts change, of its limit: {jumps}")
    print(
        f"{found['microseconds']:.0f} us each; memory after each walk: {', '.join(f'{m:.0f}' for m in found['memory'])} MB"
    )
    result = circumstances("benchmarks.control_loop") | found
    write(result, arguments.output, f"control-loop-{result['machine']['name']}.json")


if __name__ == "__main__":
    main()
