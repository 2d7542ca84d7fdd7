"""A quadruped thrown into a free tumble: what is conserved, and how fast the dynamics run.

    python examples/tumble.py            prints two tables and writes demo/tumble.png

The robot flies for five seconds under gravity, its joints free, integrated by the fourth-order Runge-Kutta-Munthe-Kaas
method: within a step the configuration is q0 (+) x, and the tangent vector x, an ordinary vector, follows

    dx/dt = J(x)^-1 v,      dv/dt = aba(q0 (+) x, v, 0),

J the right Jacobian of the exponential map; without it the order would be two. Energy and the angular momentum about the
centre of mass must stay as they were, and the linear momentum must change by m g t; the method knows of none of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import saltus as sl

Array = NDArray[np.float64]

DURATION = 5.0  # s
STEP = 1e-3  # s
PICTURE = Path(__file__).parents[1] / "demo" / "tumble.png"


def quadruped() -> sl.Model:
    """Solo12, if the package example-robot-data is installed, else a robot of the same build."""
    for folder in map(Path, sys.path):
        file = folder / "cmeel.prefix/share/example-robot-data/robots/solo_description/robots/solo12.urdf"
        if file.exists():
            return sl.load_urdf(file, floating_base=True)
    return boxes_on_legs()


def boxes_on_legs() -> sl.Model:
    """A trunk with four legs of three joints, 2.5 kg."""
    builder = sl.ModelBuilder("quadruped")
    trunk = builder.add_joint("root_joint", "free_flyer")
    builder.add_body(trunk, 1.2, inertia=np.diag([0.005, 0.014, 0.018]))
    for name, x, y in (("FL", 0.19, 0.1), ("FR", 0.19, -0.1), ("HL", -0.19, 0.1), ("HR", -0.19, -0.1)):
        hip = builder.add_joint(f"{name}_HAA", "revolute", trunk, moved(x, y, 0.0), axis=(1, 0, 0))
        builder.add_body(hip, 0.15, inertia=np.diag([1e-4, 1e-4, 1e-4]))
        upper = builder.add_joint(f"{name}_HFE", "revolute", hip, moved(0.0, np.copysign(0.04, y), 0.0), axis=(0, 1, 0))
        builder.add_body(upper, 0.14, com=(0, 0, -0.08), inertia=np.diag([4e-4, 4e-4, 4e-5]))
        lower = builder.add_joint(f"{name}_KFE", "revolute", upper, moved(0.0, 0.0, -0.16), axis=(0, 1, 0))
        builder.add_body(lower, 0.04, com=(0, 0, -0.08), inertia=np.diag([1e-4, 1e-4, 1e-5]))
    return builder.build()


def moved(x: float, y: float, z: float) -> Array:
    placement = np.eye(4)
    placement[:3, 3] = x, y, z
    return placement


def rates(robot: sl.Model, start: Array, x: Array, v: Array) -> tuple[Array, Array]:
    """dx/dt and dv/dt at the configuration start (+) x."""
    q = sl.integrate(robot, start, x)
    _, inverse_jacobian = sl.difference_jacobians(robot, start, q)
    return inverse_jacobian @ v, sl.aba(robot, q, v, np.zeros(robot.nv))


def step(robot: sl.Model, q: Array, v: Array, h: float) -> tuple[Array, Array]:
    """One step of fourth order: Runge-Kutta's, on the tangent vector x and on v."""
    x1, v1 = rates(robot, q, np.zeros(robot.nv), v)
    x2, v2 = rates(robot, q, h / 2 * x1, v + h / 2 * v1)
    x3, v3 = rates(robot, q, h / 2 * x2, v + h / 2 * v2)
    x4, v4 = rates(robot, q, h * x3, v + h * v3)
    return sl.integrate(robot, q, h / 6 * (x1 + 2 * x2 + 2 * x3 + x4)), v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)


def flight(robot: sl.Model, q: Array, v: Array, duration: float, h: float) -> Iterator[tuple[Array, Array]]:
    """The states after 0, 1, 2 ... steps."""
    yield q, v
    for _ in range(round(duration / h)):
        q, v = step(robot, q, v, h)
        yield q, v


def throw(robot: sl.Model) -> tuple[Array, Array]:
    """Legs half bent, thrown up and forward, spinning about all axes, with the legs swinging."""
    q, v = robot.neutral(), np.zeros(robot.nv)
    q[7:] = np.tile([0.1, 0.6, -1.2], 4)
    v[:6] = 1.0, 0.3, 20.0, 3.0, 5.0, 2.0
    v[6:] = np.random.default_rng(1).uniform(-2.0, 2.0, robot.nv - 6)
    return q, v


def drifts(robot: sl.Model, t: Array, q: Array, v: Array) -> dict[str, Array]:
    """How far each conserved quantity is from its value at the start, relative to its size then; for the energy, to that of
    the tumble alone: the kinetic energy less that of the flight of the centre of mass."""
    kinetic, momentum = sl.kinetic_energy(robot, q, v), sl.centroidal_momentum(robot, q, v)
    energy = kinetic + sl.potential_energy(robot, q)
    linear = momentum[:, :3] - robot.total_mass * t[:, None] * robot.gravity
    angular = momentum[:, 3:]
    tumble = kinetic[0] - linear[0] @ linear[0] / (2 * robot.total_mass)
    return {
        "energy": abs(energy - energy[0]) / tumble,
        "linear momentum": np.linalg.norm(linear - linear[0], axis=1) / np.linalg.norm(linear[0]),
        "angular momentum": np.linalg.norm(angular - angular[0], axis=1) / np.linalg.norm(angular[0]),
    }


def observed_order(robot: sl.Model, q: Array, v: Array) -> float:
    """From the change of the last configuration when the step is halved, and halved again."""
    last = [list(flight(robot, q, v, 0.4, h))[-1][0] for h in (4e-3, 2e-3, 1e-3)]
    return float(np.log2(sl.distance(robot, last[0], last[1]) / sl.distance(robot, last[1], last[2])))


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


def draw(t: Array, q: Array, drift: dict[str, Array], file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained", width_ratios=(1.15, 1))
    for (name, values), colour in zip(drift.items(), ("tab:blue", "tab:orange", "tab:green"), strict=True):
        left.semilogy(t[1:], np.maximum(values[1:], 1e-17), label=name, color=colour, linewidth=1)
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
    file.parent.mkdir(exist_ok=True)
    figure.savefig(file, dpi=130)


def main() -> None:
    robot = quadruped()
    q0, v0 = throw(robot)
    step(robot, q0, v0, STEP)  # compiles what is not in the cache
    start = time.perf_counter()
    states = list(flight(robot, q0, v0, DURATION, STEP))
    spent = time.perf_counter() - start
    q, v = map(np.array, zip(*states, strict=True))
    t = STEP * np.arange(len(q), dtype=np.float64)
    drift = drifts(robot, t, q, v)

    print(f"{robot.name}: {robot.nv} degrees of freedom, {robot.total_mass:.2f} kg, {DURATION:g} s of free tumble")
    order = observed_order(robot, q0, v0)
    print(f"{len(q) - 1} steps of {1e3 * STEP:g} ms in {spent:.2f} s; observed order {order:.2f}\n")
    print(f"{'conserved':<20}{'largest relative drift':>24}")
    for name, values in drift.items():
        print(f"{name:<20}{values.max():>24.1e}")
    print(f"\n{'forward dynamics (aba)':<34}{'robots per second':>18}{'ratio':>8}")
    rows = throughput(robot)
    for name, rate in rows:
        print(f"{name:<34}{rate:>18,.0f}{rate / rows[0][1]:>8.1f}")
    draw(t, q, drift, PICTURE)
    print(f"\nwrote {PICTURE}")


if __name__ == "__main__":
    main()
