"""The first five minutes: a quadruped's jump, found from standing still by optimal control, as plots and on a page.

    python examples/jump.py                  iterations as they come, what the jump is like, plots, a replay, the viewer
    python examples/jump.py --no-view        the same without the viewer
    python examples/jump.py --length 0.5     further

Nothing says how to jump: only which feet touch when, where they come down, and how high the centre of mass goes. Motors keep
to their limits. Files go to the folder `demo`. The viewer opens if somebody sits at a terminal, and waits for him.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import saltus as sl

FRAME = 0.02  # s between the pictures of a replay
OUT = Console(highlight=False)
PLOTS = {
    "costs": sl.view.plot_costs,
    "gaps": sl.view.plot_gaps,
    "controls": sl.view.plot_controls,
    "forces": sl.view.plot_forces,
}


def show_iteration(solver: Any) -> None:
    """A line, as soon as it is done."""
    gap, length = np.abs(solver.iterate.gaps).max(), float(solver.length)
    colour = "green" if length > 0.5 else "yellow"
    row = f"{solver.iteration:4d} {float(solver.cost):15.5f} {float(solver.stop):14.2e} {gap:12.1e}"
    OUT.print(f"{row} [{colour}]{length:8.3f}[/]")


def solve(exercise: sl.Exercise) -> sl.OCPResult:
    """From standing still."""
    problem = exercise.problem
    OUT.print(
        f"[bold]{exercise.title}[/bold]: {problem.T} nodes, {problem.nu} motors, {len(problem.terms.terms)} terms"
    )
    OUT.print(f"[dim]{'iter':>4} {'cost':>15} {'to be gained':>14} {'gap':>12} {'step':>8}[/]")
    solver = exercise.solver(problem, callbacks=[show_iteration])
    start = time.perf_counter()
    result = solver.solve(exercise.xs, exercise.us)
    OUT.print(f"{result.status} after {result.iterations} iterations in {time.perf_counter() - start:.2f} s\n")
    return result


def measures(gait: sl.gaits.Gait, problem: sl.ShootingProblem, result: sl.OCPResult) -> dict[str, str]:
    """What the jump is like."""
    robot, q = gait.robot, result.xs[:, : gait.robot.nq]
    center = sl.center_of_mass(robot, q)
    feet = np.array([sl.frame_placement(robot, q, foot.frame)[:, :3, 3] for foot in gait.feet])
    forces = problem.calc_nodes(result.xs, result.us).forces[:-1].reshape(problem.T, -1, 3)[problem.controlled > 0]
    standing = feet[:, 0]
    missed = np.linalg.norm(feet[:, -1] - standing - [gait.swings[0].length, 0.0, 0.0], axis=-1).max()
    return {
        "centre of mass, up": f"{center[:, 2].max() - center[0, 2]:.3f} m",
        "feet, up": f"{feet[:, :, 2].min(axis=0).max() - standing[:, 2].min():.3f} m",
        "feet, ahead": f"{(feet[:, -1] - standing)[:, 0].mean():.3f} m",
        "feet miss their places by": f"{1e3 * missed:.2f} mm",
        "largest torque": f"{(np.abs(result.us) / problem.u_upper).max():.0%} of the limit",
        "largest force of a foot": f"{forces[..., 2].max() / (9.81 * robot.total_mass):.2f} weights",
    }


def main(length: float, height: float, folder: Path, view: bool) -> None:
    gait = sl.gaits.jump(sl.load_robot("quadruped"), length, height)
    exercise = gait.exercise()
    problem, result = exercise.problem, solve(exercise)

    table = Table("the jump", "", box=None, show_edge=False, header_style="bold")
    for row in measures(gait, problem, result).items():
        table.add_row(*row)
    OUT.print(table)

    folder.mkdir(exist_ok=True)
    for name, plot in PLOTS.items():
        plot(problem, result).savefig(folder / f"jump-{name}.png", dpi=130)
    sl.view.save_replay(folder / "jump.html", problem, result, dt=FRAME, title=exercise.title)
    OUT.print(f"\nin {folder}: jump.html, which any browser opens, and plots of {', '.join(PLOTS)}")
    if view:
        with sl.view.show(problem, result, dt=FRAME, play=True) as viewer:
            print(f"\nopen {viewer.url} in a browser: the jump, over and over")
            input("Enter: stand still ")
            viewer.update(gait.robot.reference_configurations["standing"])
            input("Enter: end ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A quadruped jumps.")
    parser.add_argument("--length", type=float, default=0.3, help="[m]")
    parser.add_argument("--height", type=float, default=0.15, help="of the centre of mass [m]")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where files go")
    parser.add_argument("--no-view", action="store_true", help="do not open the viewer")
    arguments = parser.parse_args()
    somebody_is_there = sys.stdin.isatty() and sys.stdout.isatty()
    main(arguments.length, arguments.height, arguments.folder, somebody_is_there and not arguments.no_view)
