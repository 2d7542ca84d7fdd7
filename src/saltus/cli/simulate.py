"""`saltus simulate`: a robot thrown into the air, or let swing; or dropped on a terrain."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from saltus.arrays import Array
from saltus.cli.console import OUT, FloatingOption, PoseOption, RobotArgument, load, pose_of, print_whole, progress_bar
from saltus.cli.contacts import Place, dropped, moved, push_of, report, simulator_of, terrain_of
from saltus.cli.view import PortOption, SaveOption, serve, write
from saltus.collision.terrain import FRICTION
from saltus.dynamics.kinematics import joint_placements
from saltus.model import JointKind, Model
from saltus.simulation import Interrupted, Motion, RolloutError, Trajectory, conservation_drift, rollout
from saltus.simulation.steps import Method

FRAMES_PER_SECOND = 50  # of what is shown and saved


def simulate(
    robot: RobotArgument,
    seconds: Annotated[float, typer.Option(help="How long.", min=0.0)] = 3.0,
    dt: Annotated[float, typer.Option(help="The step, in seconds.")] = 1e-3,
    method: Annotated[
        Method | None, typer.Option(help="How to integrate a free motion: rk4, or this.", show_default="rk4")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the random velocities at the start, or of rough terrain.", min=0)] = 0,
    terrain: Annotated[Place | None, typer.Option(help="Simulate contacts with it.", show_default=False)] = None,
    drop: Annotated[
        float | None, typer.Option(help="How high above the terrain it starts, in metres.", min=0.0, show_default="0")
    ] = None,
    push: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'FRAME FX FY FZ START DURATION'",
            help="A force in N, and times in s; more than one may be given.",
            show_default=False,
        ),
    ] = None,
    friction: Annotated[
        float | None, typer.Option(help="Coefficient, of the terrain.", min=0.0, show_default="0.8")
    ] = None,
    pd: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="KP KD", help="Motors hold the pose with these gains; without, there are none.", show_default=False
        ),
    ] = None,
    pose: PoseOption = None,
    save: SaveOption = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw the energies over time.", show_default=False)
    ] = None,
    view: Annotated[bool, typer.Option("--view", help="Show the motion in the browser, until Ctrl-C.")] = False,
    port: PortOption = 8080,
    floating: FloatingOption = None,
) -> None:
    """Let a robot move freely under gravity, or on a terrain.

    Without --terrain it starts with random velocities; if its base is free, it
    is thrown up and comes back to its height at the end. The joints are free:
    no motors, no contacts, no limits, loops open. Told is how well energy is
    kept.

    With --terrain it starts at rest, touches the terrain and itself, limits
    hold and loops are closed. Told is what the solver of contacts says,
    whether the robot fell, and how deep it ever was in something.

    Ctrl-C ends the computation early; what is done by then is reported, drawn
    and saved.

    Examples:

      [cyan]saltus simulate quadruped --view[/cyan]
      [cyan]saltus simulate double_pendulum --seconds 20 --plot energy.png[/cyan]
      [cyan]saltus simulate humanoid --save tumble.html --seed 3[/cyan]
      [cyan]saltus simulate arm --dt 1e-4 --method semi_implicit_euler[/cyan]
      [cyan]saltus simulate humanoid --terrain stairs --drop 0.3 --view[/cyan]
      [cyan]saltus simulate quadruped --terrain flat --pd 200 5 --push "base 0 150 0 1 0.2" --save push.html[/cyan]
    """
    model = load(robot, floating)
    q = pose_of(model, pose)
    motion: Trajectory | Motion
    if terrain is not None:
        if method is not None:
            raise ValueError("--method is for free motions; a simulation with contacts has a method of its own")
        world = terrain_of(terrain, FRICTION if friction is None else friction, seed)
        pushes = [push_of(text) for text in push or ()]
        sim = simulator_of(model, world, dt)
        if drop is not None or model.joints[1].kind is JointKind.FREE_FLYER:
            q = dropped(model, world, q, drop or 0.0)
        motion, end, spent = moved(sim, q, pd, pushes, seconds)
        report(motion, terrain.value, spent)
        drawn: tuple[Any, ...] = (motion,)
        frames: dict[str, Any] = {"dt": 1 / FRAMES_PER_SECOND}
    else:
        given = {"--drop": drop, "--push": push, "--friction": friction, "--pd": pd}
        if any(value is not None for value in given.values()):
            first = next(name for name, value in given.items() if value is not None)
            raise ValueError(f"{first} is for simulations with contacts: say on which --terrain")
        q, v = start(model, q, seconds, seed)
        begin = perf_counter()
        motion, end = _moved(model, q, v, seconds, dt, method or "rk4")
        _report(model, motion, method or "rk4", perf_counter() - begin)
        every = max(1, round(1 / (FRAMES_PER_SECOND * dt)))
        drawn, frames = (model, motion.q[::every]), {"dt": every * dt}
    if save:
        write(save, *drawn, **frames)
    if plot:
        from saltus.view import plot_energy

        plot_energy(model, motion.t, motion.q, motion.v).savefig(plot, dpi=130)
        OUT.print(f"wrote {plot}", soft_wrap=True)
    if view:
        from saltus.view import show

        serve(show(*drawn, **frames, port=port, play=True))
    if end is not None:
        raise end


def start(model: Model, q: Array, seconds: float, seed: int) -> tuple[Array, Array]:
    """The state of a robot that is just thrown: free bases fly up for half of the time."""
    v = np.random.default_rng(seed).uniform(-2.0, 2.0, model.nv)
    turns = joint_placements(model, q)[:, :3, :3]
    for joint, turn in zip(model.joints[1:], turns[1:], strict=True):
        if joint.kind == JointKind.FREE_FLYER and joint.parent == 0:
            v[joint.iv : joint.iv + 3] = turn.T @ (-model.gravity * seconds / 2)
    return q, v


def _moved(
    model: Model, q: Array, v: Array, seconds: float, dt: float, method: Method
) -> tuple[Trajectory, Interrupted | RolloutError | None]:
    """The motion, or what there is of it, and then why there is no more."""
    with progress_bar() as bar:
        task = bar.add_task(f"{model.name}: {seconds:g} s of free motion", total=None)
        try:
            motion = rollout(
                model, q, v, duration=seconds, dt=dt, method=method,
                progress=lambda done, steps: bar.update(task, completed=done, total=steps),
            )  # fmt: skip
        except (Interrupted, RolloutError) as end:
            return end.trajectory, end
    return motion, None


def _report(model: Model, motion: Trajectory, method: str, spent: float) -> None:
    steps = len(motion.t) - 1
    OUT.print(
        f"[bold]{model.name}[/bold]: {motion.t[-1]:g} s of free motion, {steps} steps of {method} in {spent:.2f} s\n",
        highlight=False,
    )
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("conserved")
    for title in ("largest drift", "relative"):
        table.add_column(title, justify="right")
    for drift in conservation_drift(model, motion):
        share = drift.relative.max()
        table.add_row(
            drift.name, f"{drift.absolute.max():.1e} {drift.unit}", f"{share:.1e}" if np.isfinite(share) else "-"
        )
    print_whole(table)
