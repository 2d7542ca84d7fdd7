"""`saltus simulate --terrain`: a robot dropped on the ground, on stairs, on a ramp or on rough terrain, and pushed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from time import perf_counter

import numpy as np
from rich.table import Table

from saltus.arrays import Array
from saltus.cli.console import OUT, print_whole, progress_bar
from saltus.collision.queries import find_contacts
from saltus.collision.scene import Scene
from saltus.collision.terrain import Ground, HeightField, Ramp, Stairs, Terrain
from saltus.constraints.constraint import model_loops
from saltus.constraints.report import Status
from saltus.model import JointKind, Model, ModelError
from saltus.simulation import Interrupted, Motion, PDTargets, Push, RolloutError, Simulator

FAR_ABOVE = 5.0  # m, higher than any of these terrains
RECORDED = 5e-3  # s between the states that are recorded


class Place(StrEnum):
    """Each with its middle, from where a robot falls, at the origin."""

    flat = "flat"
    stairs = "stairs"
    ramp = "ramp"
    rough = "rough"


def terrain_of(place: Place, friction: float, seed: int) -> Terrain:
    ground = Ground(friction=friction)
    if place is Place.stairs:
        flight = Stairs(start=np.array([1.2, 0.0, 0.0]), steps=8, height=0.12, depth=0.3, yaw=np.pi, friction=friction)
        return Terrain((ground, flight))
    if place is Place.ramp:
        slope = Ramp(start=np.array([1.5, 0.0, 0.0]), length=3.0, height=1.0, yaw=np.pi, friction=friction)
        return Terrain((ground, slope))
    if place is Place.rough:
        heights = np.random.default_rng(seed).uniform(0.0, 0.1, (21, 21))
        return Terrain((ground, HeightField(heights, cell=0.2, origin=np.array([-2.0, -2.0, 0.0]), friction=friction)))
    return Terrain((ground,))


def push_of(text: str) -> Push:
    """FRAME fx fy fz [start [duration]], as on the command line."""
    frame, *numbers = text.split()
    try:
        x, y, z, *when = map(float, numbers)
        return Push(frame, (x, y, z), *when)
    except (ValueError, TypeError):
        expected = "a frame, three numbers [N], and from when on and for how long [s]: 'base 0 80 0 1 0.2'"
        raise ValueError(f"--push is {text!r}, expected {expected}") from None


def dropped(model: Model, terrain: Terrain, q: Array, drop: float) -> Array:
    """The configuration whose base is so far above where the robot would touch the terrain."""
    free = [joint for joint in model.joints if joint.kind is JointKind.FREE_FLYER and joint.parent == 0]
    if not free:
        raise ModelError(f"model {model.name!r} has no free base to drop it with: leave --drop out")
    scene = Scene(model, terrain, self_collision=False, margin=10.0 * FAR_ABOVE)
    q = q.copy()
    height = free[0].iq + 2
    q[height] += FAR_ABOVE
    for _ in range(100):  # down by as much as there certainly is room
        gap = float(find_contacts(scene, None, q).gap.min(initial=np.inf))
        if not 1e-6 < gap < np.inf:
            break
        q[height] -= gap
    q[height] += drop
    return q


def moved(
    sim: Simulator, q: Array, gains: tuple[float, float] | None, pushes: Sequence[Push], seconds: float
) -> tuple[Motion, Interrupted | RolloutError | None, float]:
    """The motion, or what there is of it, and then why there is no more; and how long it took."""
    model, every = sim.model, max(1, round(RECORDED / sim.dt))
    held = None if gains is None else PDTargets(q, *gains)
    v = np.zeros(model.nv)
    sim.step(q, v, held, pushes=pushes)  # compiles what is not in the cache
    begin = perf_counter()
    with progress_bar() as bar:
        task = bar.add_task(f"{model.name}: {seconds:g} s", total=None)
        try:
            motion = sim.rollout(
                q, v, held, duration=sim.dt * every * round(seconds / (sim.dt * every)), every=every, pushes=pushes,
                progress=lambda done, steps: bar.update(task, completed=done, total=steps),
            )  # fmt: skip
        except (Interrupted, RolloutError) as end:
            return end.trajectory, end, perf_counter() - begin
    return motion, None, perf_counter() - begin


def report(motion: Motion, place: str, spent: float) -> None:
    sim = motion.simulator
    steps = round(motion.t[-1] / sim.dt)
    rate = f", {steps / spent:,.0f} a second" if steps else ""
    OUT.print(
        f"[bold]{sim.model.name}[/bold] (terrain: {place}): {motion.t[-1]:g} s, {steps} steps in {spent:.2f} s{rate}\n",
        highlight=False,
    )
    counts = Counter(motion.status[1:].tolist())
    falls = motion.t[motion.fallen]
    depth = np.maximum(0.0, -sim.contacts(motion.q).gap.min(axis=-1, initial=np.inf)).max()
    table = Table(box=None, padding=(0, 3, 0, 0), show_header=False)
    for name, value in (
        (
            "status",
            ", ".join(
                f"{Status(status).name} {count / len(motion.t[1:]):.1%}" for status, count in sorted(counts.items())
            ),
        ),
        ("fall", f"at {falls[0]:.2f} s" if len(falls) else "none"),
        ("deepest penetration", f"{1e3 * depth:.2g} mm"),
        ("contacts at a time", f"at most {motion.touching.sum(axis=-1).max()}"),
        ("largest residual", f"{motion.residuals[1:, 0].max(initial=0.0):.1e} m/s"),
    ):
        table.add_row(name, value)
    print_whole(table)


def simulator_of(model: Model, terrain: Terrain, dt: float) -> Simulator:
    """With loops closed."""
    if not model.colliders:
        raise ModelError(f"model {model.name!r} has no collision shapes: nothing of it can touch a terrain")
    return Simulator(model, terrain, constraints=model_loops(model) if model.loops else (), dt=dt)
