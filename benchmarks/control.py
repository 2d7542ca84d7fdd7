"""Operational space control: from (q, v, references) to torques in one call, and packets of robots on one core.

    python -m benchmarks.control [--robots quadruped,talos] [--quick] [--output FILE]

The quadruped stands on four points, Talos and the humanoid on two soles of four points each, Cassie and the biped on two
lines, their loops closed. States and references are random, about standing. Times are a call from Python, in microseconds:
the mean over states of the best of several calls each, and of packets a robot's share of the best batch, by the processor's
time.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import saltus as sl
from benchmarks.measure import circumstances, write
from examples.walk import WALKERS, controller

STATES, PACKET = 50, 64
ASKED = {"quadruped": 40.0, "talos": 150.0}  # microseconds
SOLE = {"talos": (0.1, 0.06), "humanoid": (0.125, 0.055)}  # halves of length and width [m]
BASE = {"quadruped": "base", "talos": "base_link", "humanoid": "pelvis"}


def control_of(name: str) -> sl.OperationalSpaceControl:
    if name in WALKERS:
        return controller(WALKERS[name](), "xyz")
    robot, feet = sl.load_robot(name), sl.robot_frames(name).feet
    tasks = [
        sl.CenterOfMassTask(weight=10),
        sl.FrameTask(BASE[name], position="", weight=4),
        sl.PostureTask(weight=0.1),
    ]
    corners = [(x, y, 0.0) for x in (1, -1) for y in (1, -1)] if name in SOLE else [(0.0, 0.0, 0.0)]
    scale = np.array([*SOLE.get(name, (1.0, 1.0)), 1.0])
    return sl.OperationalSpaceControl(robot, tasks, [(foot, scale * corner) for foot in feet for corner in corners])


def states(control: sl.OperationalSpaceControl, count: int) -> tuple[Any, Any, Any]:
    """Random states about standing, and references a little apart from them."""
    model, rng = control.model, np.random.default_rng(0)
    standing = np.tile(model.reference_configurations["standing"], (count, 1))
    if model.loops:
        q, v = standing, np.zeros((count, model.nv))
    else:
        q = sl.integrate(model, standing, 0.05 * rng.normal(size=(count, model.nv)))
        v = 0.2 * rng.normal(size=(count, model.nv))
    references = control.tasks.references(standing)
    for place in control.tasks.places.values():
        references[:, place.acceleration] = rng.normal(size=references[:, place.acceleration].shape)
    return q, v, references


def measure(name: str, repeats: int) -> dict[str, Any]:
    control = control_of(name)
    one, many = states(control, STATES), states(control, PACKET)
    answers = [control(*(x[k] for x in one)) for k in range(STATES)]
    threads = sl.get_threads()
    sl.set_threads(1)
    each, batch = np.full(STATES, np.inf), np.inf
    try:
        for _ in range(repeats):
            for k in range(STATES):
                state = one[0][k], one[1][k], one[2][k]
                start = perf_counter()
                control(*state)
                each[k] = min(each[k], perf_counter() - start)
            start = process_time()
            control(*many)
            batch = min(batch, process_time() - start)
    finally:
        sl.set_threads(threads)
    return {
        "nv": control.model.nv,
        "motors": len(control.motors),
        "contacts": len(control.points),
        "one": 1e6 * float(each.mean()),
        "packets": 1e6 * batch / PACKET,
        "iterations": float(np.mean([answer.iterations for answer in answers])),
        "solved": float(np.mean([answer.status == 0 for answer in answers])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Operational space control: from a state to torques.")
    parser.add_argument("--robots", default="quadruped,humanoid,talos,biped,cassie")
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--output", type=Path, default=None)
    arguments = parser.parse_args()
    repeats = 10 if arguments.quick else 100
    result: dict[str, Any] = circumstances("benchmarks.control") | {"unit": "us", "robots": {}}
    print(
        f"{'robot':<12}{'nv':>4}{'contacts':>10}{'one call':>10}{'asked':>8}"
        f"{'packets, each':>15}{'iterations':>12}{'solved':>8}"
    )
    for name in arguments.robots.split(","):
        found = result["robots"][name] = measure(name, repeats)
        asked = f"{ASKED[name]:.0f}" if name in ASKED else ""
        print(
            f"{name:<12}{found['nv']:>4}{found['contacts']:>10}{found['one']:>10.1f}{asked:>8}{found['packets']:>15.1f}"
            f"{found['iterations']:>12.1f}{found['solved']:>8.0%}",
            flush=True,
        )
    write(result, arguments.output, f"control-{result['machine']['name']}.json")


if __name__ == "__main__":
    main()
