"""The first five minutes: a quadruped thrown into a free tumble, then standing still, on paper and on a page.

    python examples/tumble.py            two tables, a picture, two replay files, and the viewer
    python examples/tumble.py --no-view  the same without the viewer

The robot flies for five seconds under gravity, its joints free. Energy and the angular momentum about the centre of mass
must stay as they were, and the linear momentum must change by m g t; the method of integration knows of none of them.

Files go to the folder `demo`. The viewer opens if somebody sits at a terminal, and waits for him.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import saltus as sl

Array = NDArray[np.float64]

STEP = 1e-3  # s
FRAME = 0.02  # s between the pictures of a replay
FRICTION = 0.7


def throw(robot: sl.Model) -> tuple[Array, Array]:
    """From where it stands, thrown up and forward, to be back in five seconds, spinning, with the legs swinging."""
    q, v = robot.reference_configurations["standing"], np.zeros(robot.nv)
    v[:6] = 1.0, 0.3, 24.5, 3.0, 5.0, 2.0
    v[6:] = np.random.default_rng(1).uniform(-2.0, 2.0, robot.nv - 6)
    return q, v


def observed_order(robot: sl.Model, q: Array, v: Array) -> float:
    """From the change of the last configuration when the step is halved, and halved again."""
    last = [sl.rollout(robot, q, v, duration=0.4, dt=dt).q[-1] for dt in (2e-3, 1e-3, 5e-4)]
    return float(np.log2(sl.distance(robot, last[0], last[1]) / sl.distance(robot, last[1], last[2])))


def standing(robot: sl.Model) -> dict[str, Any]:
    """What to show of a robot that stands: its pose, its feet, and forces straight up that carry it without turning it."""
    q, feet = robot.reference_configurations["standing"], sl.robot_frames("quadruped").feet
    lever = np.array([sl.frame_placement(robot, q, foot)[:2, 3] for foot in feet]) - sl.center_of_mass(robot, q)[:2]
    balance = np.vstack([np.ones(len(feet)), lever.T])  # the sum of the forces, and their moments
    weight = -robot.total_mass * robot.gravity[2]
    forces = np.zeros((len(feet), 3))
    forces[:, 2] = np.linalg.lstsq(balance, np.array([weight, 0.0, 0.0]))[0]
    return {"q": q, "contacts": feet, "forces": forces, "friction": FRICTION}


def seconds_per_call(call: Callable[[], object]) -> float:
    """The best of many repeats, after the call that compiles."""
    call()
    best = np.inf
    for _ in range(30):
        count, start = 0, time.perf_counter()
        while (spent := time.perf_counter() - start) < 0.01:
            call()
            count += 1
        best = min(best, spent / count)
    return best


def throughput(robot: sl.Model) -> list[tuple[str, float]]:
    """Forward dynamics per second: of one robot a call, and of 4096 robots a call."""
    q, v, tau = *throw(robot), np.zeros(robot.nv)
    many = 4096
    qs, vs, taus = np.tile(q, (many, 1)), np.tile(v, (many, 1)), np.zeros((many, robot.nv))
    rows = [("one robot a call", 1 / seconds_per_call(lambda: sl.aba(robot, q, v, tau)))]
    threads = sl.get_threads()
    for real in (np.float64, np.float32):
        batch = [array.astype(real) for array in (qs, vs, taus)]
        for count in dict.fromkeys((1, threads)):
            sl.set_threads(count)
            each = seconds_per_call(lambda batch=batch: sl.aba(robot, *batch)) / many  # type: ignore[misc]
            rows.append((f"{many} a call, {real.__name__}, {count} thread{'s' * (count > 1)}", 1 / each))
    sl.set_threads(threads)
    return rows


def draw(flight: sl.Trajectory, drifts: list[sl.Drift], file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    t, q = flight.t, flight.q
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained", width_ratios=(1.15, 1))
    for drift, colour in zip(drifts, ("tab:blue", "tab:orange", "tab:green"), strict=True):
        left.semilogy(t[1:], np.maximum(drift.relative[1:], 1e-17), label=drift.name, color=colour, linewidth=1)
    left.set(xlabel="time [s]", ylabel="relative drift", title="what should be conserved", xlim=(0, t[-1]))
    left.grid(alpha=0.3)
    left.legend(loc="lower right")

    right.plot(q[:, 0], q[:, 2], color="0.6", linewidth=1, zorder=1)
    every = slice(0, None, max(1, len(t) // 25))
    points = right.scatter(q[every, 0], q[every, 2], c=t[every], s=14, cmap="viridis", zorder=2)
    x, y, z, w = q[every, 3:7].T
    forward = np.stack([1 - 2 * (y * y + z * z), 2 * (x * z - w * y)])  # the trunk's x axis in the plane of the picture
    right.quiver(q[every, 0], q[every, 2], *forward, color="tab:red", width=3e-3, scale=18, zorder=3)
    right.set(xlabel="x [m]", ylabel="z [m]", title="path of the trunk, and where its nose points")
    right.grid(alpha=0.3)
    figure.colorbar(points, ax=right, label="time [s]")
    figure.savefig(file, dpi=130)


def show(robot: sl.Model, tumble: Array) -> None:
    """The viewer: first the tumble, then the robot on its feet."""
    with sl.view.show(robot, tumble, FRAME, play=True) as viewer:
        print(f"\nopen {viewer.url} in a browser: the tumble, over and over")
        input("Enter: stand still ")
        viewer.update(**standing(robot))
        input("Enter: end ")


def main(seconds: float, folder: Path, view: bool) -> None:
    robot = sl.load_robot("quadruped")
    q, v = throw(robot)
    sl.rollout(robot, q, v, duration=STEP, dt=STEP)  # compiles what is not in the cache
    start = time.perf_counter()
    flight = sl.rollout(robot, q, v, duration=seconds, dt=STEP)
    spent = time.perf_counter() - start
    drifts = sl.conservation_drift(robot, flight)

    print(f"{robot.name}: {robot.nv} degrees of freedom, {robot.total_mass:.2f} kg, {seconds:g} s of free tumble")
    order = observed_order(robot, q, v)
    print(f"{len(flight.t) - 1} steps of {1e3 * STEP:g} ms in {spent:.2f} s; observed order {order:.2f}")
    print(f"\n{'conserved':<20}{'largest relative drift':>24}")
    for drift in drifts:
        print(f"{drift.name:<20}{drift.relative.max():>24.1e}")
    rows = throughput(robot)
    print(f"\n{'forward dynamics (aba)':<34}{'robots per second':>18}{'ratio':>8}")
    for name, rate in rows:
        print(f"{name:<34}{rate:>18,.0f}{rate / rows[0][1]:>8.1f}")

    tumble = flight.q[:: round(FRAME / STEP)]
    folder.mkdir(exist_ok=True)
    draw(flight, drifts, folder / "tumble.png")
    sl.view.save_replay(folder / "tumble.html", robot, tumble, FRAME, title="tumble")
    sl.view.save_replay(folder / "standing.html", robot, **standing(robot), title="standing")
    print(f"\nin {folder}: tumble.png, tumble.html and standing.html; the last two open in any browser")
    if view:
        show(robot, tumble)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A quadruped tumbles, then stands.")
    parser.add_argument("--seconds", type=float, default=5.0, help="of the tumble")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where files go")
    parser.add_argument("--no-view", action="store_true", help="do not open the viewer")
    arguments = parser.parse_args()
    somebody_is_there = sys.stdin.isatty() and sys.stdout.isatty()
    main(arguments.seconds, arguments.folder, somebody_is_there and not arguments.no_view)
