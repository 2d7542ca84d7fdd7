"""Shipped robots dropped on stairs in random poses, motors holding on weakly: what is lost, unsolved, or sinks in.

    python -m benchmarks.drops [--robots humanoid,cassie] [--count 1000] [--output FILE]

Robots that a file of results has already, dropped as often, are not dropped again: a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import saltus as sl
from benchmarks.measure import RESULTS, circumstances, write
from tests.simulation.dropping import EVERY, depths_at_rest, drop, over_stairs, poses

ROBOTS = "quadruped,arm,planar_human,humanoid,humanoid_hands,biped,cassie"
SEED = 0
DEEP = 1e-3
"""What robots at rest may not sink in by [m]."""


def found(name: str, count: int, seconds: float, at_once: int) -> dict[str, Any]:
    """What becomes of so many drops of a robot, and which of them are odd, as numbers among poses."""
    start, sim = perf_counter(), over_stairs(name)
    q = poses(sim, count, SEED)
    status, depths, finite, odd = [], [], [], []
    for first in range(0, count, at_once):
        some = q[first : first + at_once]
        motion = drop(sim, some[0] if at_once == 1 else some, seconds)
        rows = len(some), -1
        status.append(motion.status[..., 1:].reshape(rows))
        depths.append(depths_at_rest(sim, motion).reshape(rows))
        finite.append(np.isfinite(motion.q).all(axis=(-2, -1)).reshape(-1))
        deep = np.nan_to_num(depths[-1], nan=-1.0)
        for k, row in zip(*np.nonzero((status[-1] != 0) | (deep > DEEP)), strict=True):
            report = motion.report.reshape(len(some), -1, 7)[k, row + 1]
            odd.append({
                "drop": first + int(k), "time": (int(row) + 1) * EVERY * sim.dt, "report": [float(x) for x in report],
                "depth": float(depths[-1][k, row]),
            })  # fmt: skip
        print(f"\r{name}: {first + len(some)} of {count}, {len(odd)} odd", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    statuses, deepest = np.concatenate(status), np.concatenate(depths)
    rests = np.isfinite(deepest)
    return {
        "robot": name, "drops": count, "seconds": seconds, "finite": int(np.concatenate(finite).sum()),
        "statuses": {s.name: int((statuses == s).any(axis=-1).sum()) for s in sl.Status if s != sl.Status.CONVERGED},
        "at rest": int(rests.any(axis=-1).sum()), "at rest at last": int(rests[:, -1].sum()),
        "deepest": float(np.nanmax(deepest)) if rests.any() else None, "odd": odd, "took": perf_counter() - start,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Robots dropped on stairs.")
    parser.add_argument("--robots", default=ROBOTS)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=2.5, help="how long each falls and rests")
    parser.add_argument("--at-once", type=int, default=40, help="robots in one call")
    parser.add_argument("--output", type=Path, help="file")
    options = parser.parse_args()
    result: dict[str, Any] = circumstances("benchmarks.drops") | {"rows": []}
    name = f"drops-{result['machine']['name']}.json"
    output = options.output or RESULTS / name
    before = json.loads(output.read_text())["rows"] if output.exists() else []
    result["rows"] = before
    sl.set_threads(1)
    for robot in options.robots.split(","):
        if not any(row["robot"] == robot and row["drops"] >= options.count for row in result["rows"]):
            row = found(robot, options.count, options.seconds, options.at_once)
            result["rows"] = [other for other in result["rows"] if other["robot"] != robot] + [row]
            write(result, output, name)
        [row] = [row for row in result["rows"] if row["robot"] == robot]
        deepest = "none" if row["deepest"] is None else f"{row['deepest']:.1e} m"
        print(
            f"{robot}: {row['drops']} drops, {row['finite']} finite, statuses {row['statuses']}, deepest at rest "
            f"{deepest}, at rest {row['at rest']}, at last {row['at rest at last']}, {row['took']:.0f} s"
        )


if __name__ == "__main__":
    main()
