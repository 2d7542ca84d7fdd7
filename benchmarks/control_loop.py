"""A controller in the loop of the simulator, harassed: does it answer every time, and smoothly?

    python -m benchmarks.control_loop [--steps 100000] [--output FILE]

The biped and Cassie walk by turns, ten seconds each. Feet come and go three times a second; every contact point is there
twice; motors have four fifths of their torque; pushes come from all sides; and one state in a thousand has a NaN, after which
torques stay as they were. Where a foot comes or goes, the controller is asked once more with the contacts as they were a
millisecond before: by how much torques differ is the jump.
"""

from __future__ import annotations

import argparse
import resource
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import saltus as sl
from benchmarks.measure import circumstances, write
from examples.walk import FRICTION, PERIOD, WALKERS, Walk, controller

Array = NDArray[np.float64]

ROUND = 10_000  # steps of a walk
EVERY = 1000  # steps between states that are not finite
WEAKER = 0.8
HARD = 0.15  # m/s, of pushes
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


def pushes(rng: np.random.Generator, robot: sl.Model) -> list[sl.Push]:
    """From all sides, about one in two seconds."""
    found = []
    for start in np.arange(2.5, ROUND * PERIOD, 2.0):
        angle, size = rng.uniform(0, 2 * np.pi), rng.uniform(0.3, 1.0) * HARD * robot.total_mass / 0.1
        force = (size * np.cos(angle), size * np.sin(angle), 0.0)
        found.append(sl.Push("pelvis", force, start=float(start + rng.uniform(0, 1)), duration=0.1))
    return found


def one_round(name: str, seed: int, steps: int) -> tuple[Harassed, bool]:
    walker = WALKERS[name]()
    robot, brain = walker.robot, Walk(walker, (0.4, 0.0))
    weak = robot.replace(effort_limit=WEAKER * robot.effort_limit)
    harassed = Harassed(controller(walker, "z", weak, copies=2))
    brain.control = brain.stand = brain.record = harassed  # type: ignore[assignment]
    sim = sl.Simulator(robot, sl.Ground(friction=FRICTION), constraints=sl.model_loops(robot))
    q = robot.reference_configurations["standing"]
    motion = sim.rollout(
        q, np.zeros(robot.nv), brain, duration=steps * PERIOD, every=20, control_period=PERIOD,
        pushes=pushes(np.random.default_rng(seed), robot),
    )  # fmt: skip
    return harassed, bool(motion.fallen.any())


def loop(steps: int) -> dict[str, Any]:
    """What came back of so many solves in a row, and how much memory there was in between [MB]."""
    status: Counter[str] = Counter()
    jump = seconds = 0.0
    limited = falls = done = 0
    memory: list[float] = []
    while done < steps:
        count = min(ROUND, steps - done)
        harassed, fell = one_round(list(WALKERS)[done // ROUND % 2], done // ROUND, count)
        status += harassed.status
        jump, seconds, limited = max(jump, harassed.jump), seconds + harassed.seconds, limited + harassed.limited
        falls, done = falls + fell, done + count
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return {
        "solves": done, "status": dict(status), "jump": jump, "at_limit": limited / done, "falls": falls,
        "microseconds": 1e6 * seconds / done, "memory": memory,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="A controller in the loop, harassed.")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--output", type=Path, default=None)
    arguments = parser.parse_args()
    found = loop(arguments.steps)
    print(f"{found['solves']} solves: " + ", ".join(f"{count} {name.lower()}" for name, count in found["status"].items()))
    print(f"a motor at its limit in {found['at_limit']:.1%} of them; {found['falls']} falls")
    print(f"largest jump of a torque where contacts change: {found['jump']:.2%} of its limit")
    print(f"{found['microseconds']:.0f} us each; memory after each round: {', '.join(f'{m:.0f}' for m in found['memory'])} MB")
    write(circumstances("benchmarks.control_loop") | found, arguments.output, "control-loop.json")


if __name__ == "__main__":
    main()
