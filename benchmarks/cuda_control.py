"""Whole-body control on a GPU: commands a second, from states and references to torques, and how many were solved.

    python -m benchmarks.cuda_control [--model FILE ...] [--robots 131072] [--quick] [--output FILE]

Cassie (ten motors, four closed loops, four points of contact) and the quadruped, in random states about standing; what is
timed is all of it: kinematics, dynamics, tasks, the program, to 1e-4. `--model`: pickled models
(`python -m benchmarks.robots --pickle`), where files cannot be read.
"""

from __future__ import annotations

import argparse
import pickle
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl
from benchmarks.measure import circumstances, write

TOLERANCE = 1e-4
SPREAD, SPEED = 0.1, 0.3
"""Of the base and of velocities [m, rad; m/s, rad/s]."""

FEET = {"cassie": [(foot, [x, x, 0.0]) for foot in ("left-foot", "right-foot") for x in (0.06, -0.06)]}
"""Where a foot without a frame on its sole touches the ground [m]."""


def controller(robot: sl.Model) -> sl.OperationalSpaceControl:
    if robot.name == "cassie":
        pelvis = sl.FrameTask("pelvis", position="", weight=4.0, kp=200.0, kd=10.0)
        center = sl.CenterOfMassTask(weight=10.0, kp=50.0, kd=5.0)
        tasks: list[Any] = [center, pelvis, sl.PostureTask(weight=1e-2, kp=20.0, kd=5.0)]
        return sl.OperationalSpaceControl(robot, tasks, FEET["cassie"], sl.model_loops(robot), limited=())
    feet = sl.robot_frames(robot.name).feet
    return sl.OperationalSpaceControl(robot, [sl.CenterOfMassTask(weight=10.0), sl.PostureTask(weight=0.1)], feet)


def measured(control: sl.OperationalSpaceControl, count: int, dtype: Any, repeats: int) -> dict[str, Any]:
    import cupy

    robot, rng = control.model, np.random.default_rng(0)
    standing = robot.reference_configurations["standing"]
    change, v = np.zeros((count, robot.nv)), SPEED * rng.normal(size=(count, robot.nv))
    change[:, :6] = SPREAD * rng.normal(size=(count, 6))
    q = sl.integrate(robot, np.tile(standing, (count, 1)), change)
    references = np.tile(control.tasks.references(standing), (count, 1))
    given = [cupy.asarray(x, dtype) for x in (q, v, references)]
    best, begin, end = float("inf"), cupy.cuda.Event(), cupy.cuda.Event()
    for _ in range(repeats + 1):
        begin.record()
        command = control(*given, tolerance=TOLERANCE)
        end.record()
        end.synchronize()
        best = min(best, 1e-3 * cupy.cuda.get_elapsed_time(begin, end))
    status, iterations = command.report[:, 1].get(), command.report[:, 0].get()
    return {
        "robot": robot.name, "dtype": np.dtype(dtype).name, "robots": count, "rate": count / best,
        "solved": float((status == 0).mean()), "iterations": float(iterations.mean()), "most": float(iterations.max()),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Whole-body control, on a GPU.")
    parser.add_argument("--model", type=Path, nargs="*")
    parser.add_argument("--robots", type=int, default=1 << 17)
    parser.add_argument("--quick", action="store_true", help="to see that it works: the figures mean nothing")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    robots = [pickle.loads(file.read_bytes()) for file in options.model or ()]
    result = circumstances("benchmarks.cuda_control") | {"rows": []}
    for robot in robots or [sl.load_robot(name) for name in ("cassie", "quadruped")]:
        control = controller(robot)
        for dtype in (np.float64, np.float32):
            row = measured(control, 4096 if options.quick else options.robots, dtype, 1 if options.quick else 5)
            result["rows"].append(row)
            print(", ".join(f"{name} {x:.4g}" if isinstance(x, float) else str(x) for name, x in row.items()))
    write(result, options.output, "control-gpu.json")


if __name__ == "__main__":
    main()
