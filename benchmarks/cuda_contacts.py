"""Robots that touch the ground on a GPU: steps a second, and how many contact problems were solved.

    python -m benchmarks.cuda_contacts [--model FILE] [--robots 131072] [--quick] [--output FILE]

Quadrupeds under random PD targets, with self-collision, in float32, specialised; all steps are one launch, and are timed as
a whole. `--model`: a pickled model (`python -m benchmarks.robots --pickle`), where files cannot be read.
"""

from __future__ import annotations

import argparse
import pickle
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl
from benchmarks.measure import circumstances, write

ROWS = (True, 8), (False, 8)
"""Whether the robot has code of its own, and how many contacts may hold: the driver makes code for a minute in the last."""

STEPS, SETTLE = 100, 300
SPREAD = 0.3
"""Of the targets about the standing pose [rad]."""


def measured(sim: sl.Simulator, count: int, dtype: Any, repeats: int) -> dict[str, Any]:
    import cupy

    robot, rng = sim.model, np.random.default_rng(0)
    standing = robot.reference_configurations["standing"]
    targets = np.tile(standing, (count, 4, 1))
    targets[..., 7:] += SPREAD * rng.normal(size=(count, 4, robot.nq - 7))
    there = cupy.asarray(np.ascontiguousarray(targets.transpose(1, 2, 0)), dtype)  # robots lie side by side
    pull = sl.PDTargets(there.transpose(2, 0, 1), kp=100.0, kd=3.0)
    q = cupy.asarray(np.tile(standing, (count, 1)), dtype)
    v = cupy.zeros((count, robot.nv), dtype)
    before = sim.rollout(q, v, pull, duration=SETTLE * sim.dt, every=SETTLE)
    q, v = before.q[:, -1].copy(), before.v[:, -1].copy()
    best, begin, end = float("inf"), cupy.cuda.Event(), cupy.cuda.Event()
    for _ in range(repeats):
        begin.record()
        motion = sim.rollout(q, v, pull, duration=STEPS * sim.dt, every=STEPS, start=before)
        end.record()
        end.synchronize()
        best = min(best, 1e-3 * cupy.cuda.get_elapsed_time(begin, end))
    every = sim.rollout(q[:4096], v[:4096], sl.PDTargets(pull.targets[:4096], 100.0, 3.0), duration=STEPS * sim.dt)
    status, touching = every.report[:, 1:, 6].get(), (every.touch[:, 1:, :, 0] >= 0).sum(-1).get()
    return {
        "robots": count, "steps": STEPS, "rate": count * STEPS / best, "converged": float((status == 0).mean()),
        "converged throughout": float((motion.report[:, -1, 6].get() == 0).mean()),
        "finite": float(np.isfinite(motion.q[:, -1].get()).all(axis=-1).mean()), "contacts": float(touching.mean()),
        "newton": float(every.report[:, 1:, 0].mean()),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Robots that touch the ground, on a GPU.")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--robots", type=int, default=1 << 17)
    parser.add_argument("--quick", action="store_true", help="to see that it works: the figures mean nothing")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    robot = pickle.loads(options.model.read_bytes()) if options.model else sl.load_robot("quadruped")
    result = circumstances("benchmarks.cuda_contacts") | {"rows": []}
    for own, most in ROWS:
        model = sl.specialise(robot) if own else robot
        sim = sl.Simulator(model, sl.Ground(friction=0.7), dt=2e-3, most_contacts=most)
        row = measured(sim, 4096 if options.quick else options.robots, np.float32, 1 if options.quick else 5)
        row |= {"specialised": own, "most_contacts": most}
        result["rows"].append(row)
        print({name: float(f"{x:.4g}") if isinstance(x, float) else x for name, x in row.items()}, flush=True)
        write(result, options.output, "contacts-gpu.json")


if __name__ == "__main__":
    main()
