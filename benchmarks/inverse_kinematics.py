"""Inverse kinematics of random targets, beside pink with DAQP.

    python -m benchmarks.inverse_kinematics [--robots arm,panda] [--quick] [--output FILE]

A hand goes to poses that it has in random configurations within the limits: 10 000 for ours, some hundred for the peers;
times are means over poses, of the best of several repeats. All begin at the middle of the limits, and start again from
random configurations (each its own) where they are stuck; what counts as reached is what Pinocchio says of the configuration
that is returned: position and rotation vector together no longer than 1e-6. One thread.

pink is given the hand's chain alone, other joints locked, with its limits of configurations; its damping is the best of
four, its steps of a start the best of three, found on other targets. `daqp` is the same loop without pink: Pinocchio's
kinematics and Jacobian of the error, and DAQP, called from Python.

| column | what it is |
|---|---|
| reached | the share of targets, with restarts; and from the first start |
| pose | the mean time per pose [us] of batches of 10 000, float64 |
| one | the mean time of one call per pose [us] |
| x | how many times faster a batch is, than `pink` and than `daqp` |
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import daqp
import numpy as np
import pink
from pink.limits import ConfigurationLimit
from pink.tasks import FrameTask

import saltus as sl
from benchmarks.measure import circumstances, wall_time, write
from benchmarks.robots import ROBOTS, chosen, import_pinocchio, urdf
from saltus.arrays import Array

pin = import_pinocchio()

HANDS = {
    "arm": ("arm", "tool"),
    "panda": ("panda", "panda_hand_tcp"),
    "talos, left": ("talos38", "gripper_left_base_link"),
    "talos, right": ("talos38", "gripper_right_base_link"),
}
TOLERANCE, STARTS = 1e-6, 100
DAMPINGS, STEPS = (1e-8, 1e-4, 1e-2, 1e-1), (20, 50, 100)


class Chain:
    """The joints that move a hand, in Pinocchio; the others stay where they are at `q0`."""

    def __init__(self, file: Path, frame: str) -> None:
        whole = pin.buildModelFromUrdf(str(file))
        self.q0 = middle(whole)
        moving, joint = set[int](), whole.frames[whole.getFrameId(frame)].parentJoint
        while joint > 0:
            moving.add(joint)
            joint = whole.parents[joint]
        locked = [joint for joint in range(1, whole.njoints) if joint not in moving]
        self.model = pin.buildReducedModel(whole, locked, self.q0) if locked else whole
        self.places = [whole.joints[joint].idx_q for joint in sorted(moving)]
        self.frame, self.index, self.data = frame, self.model.getFrameId(frame), self.model.createData()
        self.low, self.high = self.model.lowerPositionLimit, self.model.upperPositionLimit
        self.start = self.q0[self.places]

    def missed(self, q: Array, pose: Any) -> float:
        pin.framesForwardKinematics(self.model, self.data, q)
        there = self.data.oMf[self.index]
        turn = pin.log3(there.rotation.T @ pose.rotation)
        return float(np.sqrt(np.sum((there.translation - pose.translation) ** 2) + turn @ turn))

    def starts(self, seed: int) -> Iterator[Array]:
        rng = np.random.default_rng(seed)
        yield self.start
        for _ in range(STARTS):
            yield rng.uniform(self.low, self.high)


def file_of(name: str, folder: str) -> Path:
    """The URDF file that all load, with a fixed base."""
    if name in ROBOTS:
        return urdf(ROBOTS[name])
    file = Path(folder) / f"{name}.urdf"
    sl.save_urdf(sl.load_robot(name), file)
    return file


def middle(model: Any) -> Array:
    return 0.5 * (np.maximum(model.lowerPositionLimit, -np.pi) + np.minimum(model.upperPositionLimit, np.pi))


def by_pink(chain: Chain, damping: float) -> Callable[[Any, Array, int], Array]:
    """(pose, start, most steps) -> where a start ends."""
    task = FrameTask(chain.frame, position_cost=1.0, orientation_cost=1.0, lm_damping=damping)
    limits = [ConfigurationLimit(chain.model, config_limit_gain=1.0)]

    def search(pose: Any, start: Array, steps: int) -> Array:
        configuration = pink.Configuration(chain.model, chain.data, start)
        task.set_target(pose)
        for _ in range(steps):
            if np.linalg.norm(task.compute_error(configuration)) < 0.5 * TOLERANCE:
                break
            velocity = pink.solve_ik(
                configuration, [task], 1.0, solver="daqp", damping=1e-12, limits=limits, safety_break=False
            )
            configuration.integrate_inplace(velocity, 1.0)
        return configuration.q

    return search


def by_daqp(chain: Chain, damping: float) -> Callable[[Any, Array, int], Array]:
    """The same steps, without what pink and qpsolvers put around them."""
    model, data, size = chain.model, chain.data, chain.model.nv
    none, sense = np.zeros((0, size)), np.zeros(size, np.int32)

    def search(pose: Any, start: Array, steps: int) -> Array:
        q = start
        for _ in range(steps):
            pin.computeJointJacobians(model, data, q)
            away = pin.updateFramePlacement(model, data, chain.index).actInv(pose)
            error = pin.log6(away).vector
            if error @ error < 0.25 * TOLERANCE**2:
                break
            J = -pin.Jlog6(away.inverse()) @ pin.getFrameJacobian(model, data, chain.index, pin.LOCAL)
            H = J.T @ J + (1e-12 + damping * (error @ error)) * np.eye(size)
            step, _, flag, _ = daqp.solve(H, J.T @ error, none, chain.high - q, chain.low - q, sense)
            if flag < 0:
                break
            q = pin.integrate(model, q, step)
        return q

    return search


def search_all(chain: Chain, search: Any, poses: list[Any], steps: int, starts: int) -> tuple[float, float]:
    """The share of poses that are reached, and the mean time of one [s]."""

    def run() -> int:
        reached = 0
        for seed, pose in enumerate(poses):
            for start, _ in zip(chain.starts(seed), range(starts), strict=False):
                q = search(pose, start, steps)
                if chain.missed(q, pose) < TOLERANCE:
                    reached += 1
                    break
        return reached

    seconds, reached = wall_time(run)
    return reached / len(poses), seconds / len(poses)


def best_peer(chain: Chain, make: Any, poses: list[Any], count: int, repeats: int) -> dict[str, Any]:
    """With the settings that take the least time for a few other poses."""
    few = poses[count : count + max(10, count // 10)]
    tried = {
        (damping, steps): search_all(chain, make(chain, damping), few, steps, STARTS + 1)
        for damping in DAMPINGS
        for steps in STEPS
    }
    damping, steps = min(tried, key=lambda each: (-round(tried[each][0], 2), tried[each][1]))
    search = make(chain, damping)
    first, _ = search_all(chain, search, poses[:count], steps, 1)
    runs = [search_all(chain, search, poses[:count], steps, STARTS + 1) for _ in range(repeats)]
    reached, seconds = runs[0][0], min(seconds for _, seconds in runs)
    return {"reached": reached, "first": first, "pose": seconds, "damping": damping, "steps": steps, "poses": count}


def measure(robot: str, count: int, peers: int, repeats: int) -> dict[str, Any]:
    name, frame = HANDS[robot]
    with TemporaryDirectory() as folder:
        file = file_of(name, folder)
        chain, model = Chain(file, frame), sl.load_urdf(file)
    tasks = sl.TaskSet(model, [sl.FrameTask(frame)])
    q0 = np.array(chain.q0)
    rng = np.random.default_rng(0)
    targets = np.tile(q0, (count + 2 * peers, 1))
    targets[:, chain.places] = rng.uniform(chain.low, chain.high, (len(targets), len(chain.places)))
    placements = sl.frame_placements(model, targets)[:, model.frame_index(frame)]
    poses = [pin.SE3(X) for X in placements[count:]]
    references = tasks.references(**{frame: placements[:count]})
    found = sl.inverse_kinematics(model, tasks, references, q0, tolerance=TOLERANCE)
    first = sl.inverse_kinematics(model, tasks, references, q0, tolerance=TOLERANCE, restarts=0)
    batch = (
        min(wall_time(lambda: sl.inverse_kinematics(model, tasks, references, q0))[0] for _ in range(repeats)) / count
    )

    def one_by_one() -> None:
        for each in references[:peers]:
            sl.inverse_kinematics(model, tasks, each, q0)

    one_by_one()
    one = min(wall_time(one_by_one)[0] for _ in range(repeats)) / peers

    def reached(q: Array) -> float:
        hits = [
            chain.missed(each[chain.places], pin.SE3(X)) < 1.001 * TOLERANCE
            for each, X in zip(q, placements[:count], strict=True)
        ]
        return float(np.mean(hits))

    ours = {
        "reached": reached(found.q), "first": reached(first.q), "pose": batch, "one": one,
        "iterations": float(found.iterations.mean()), "starts": float(found.starts.mean()), "poses": count,
    }  # fmt: skip
    inside = (found.q[:, chain.places] >= chain.low) & (found.q[:, chain.places] <= chain.high)
    return {
        "dofs": len(chain.places), "within_limits": bool(inside.all()), "saltus": ours,
        "pink": best_peer(chain, by_pink, poses, peers, repeats), "daqp": best_peer(chain, by_daqp, poses, peers, repeats),
    }  # fmt: skip


def line(robot: str, row: dict[str, Any]) -> str:
    ours, text = row["saltus"], f"{robot:14}{row['dofs']:5}"
    for who in ("saltus", "pink", "daqp"):
        text += f"{100 * row[who]['reached']:8.2f} ({100 * row[who]['first']:2.0f}){row[who]['pose'] * 1e6:10.1f}"
    faster = [row[who]["pose"] / ours["pose"] for who in ("pink", "daqp")]
    return f"{text}{ours['one'] * 1e6:8.1f}{faster[0]:8.0f}{faster[1]:8.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Inverse kinematics of random targets, beside pink with DAQP.")
    parser.add_argument("--robots", default="", help="comma-separated: " + "; ".join(HANDS))
    parser.add_argument("--poses", type=int, default=10_000)
    parser.add_argument("--peers", type=int, default=300, help="poses that peers are given")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="to see that it works: the figures mean nothing")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    if options.quick:
        options.poses, options.peers, options.repeats = 100, 5, 1
    sl.set_threads(1)

    result = circumstances("benchmarks.inverse_kinematics", "pin", "pin-pink", "daqp", "qpsolvers")
    result |= {"tolerance": TOLERANCE, "rows": {}}
    machine = result["machine"]
    print(f"{machine['model']}, {machine['vectors']}; shares in percent, times per pose in microseconds\n")
    print(
        f"{'':14}{'dofs':>5}{'saltus':>13}{'pose':>10}{'pink':>13}{'pose':>10}{'daqp':>13}{'pose':>10}{'one':>8}{'x':>8}{'x':>8}"
    )
    for robot in chosen(options.robots, HANDS):
        found = measure(robot, options.poses, options.peers, options.repeats)
        result["rows"][robot] = found
        print(line(robot, found), flush=True)
    if options.output or not (options.quick or options.robots):
        write(result, options.output, f"inverse-kinematics-{machine['name']}.json")


if __name__ == "__main__":
    main()
