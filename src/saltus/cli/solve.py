"""`saltus solve`: motions found by optimal control."""

from __future__ import annotations

import difflib
import inspect
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal, TypeAlias

import typer

from saltus.cli.console import OUT, FloatingOption, load
from saltus.cli.view import PortOption, SaveOption, serve
from saltus.model import ModelError
from saltus.ocp.box_ddp import BoxDDP
from saltus.ocp.box_fddp import BoxFDDP
from saltus.ocp.ddp import DDP
from saltus.ocp.exercise import Exercise
from saltus.ocp.fddp import FDDP
from saltus.ocp.motions import MOTIONS
from saltus.ocp.problem import OCPResult
from saltus.ocp.status import OCPStatus

FRAMES_PER_SECOND = 50  # of what is shown and saved
SOLVERS = {"ddp": DDP, "fddp": FDDP, "boxddp": BoxDDP, "boxfddp": BoxFDDP}
SolverName: TypeAlias = Literal["ddp", "fddp", "boxddp", "boxfddp"]


def _completed(typed: str) -> list[str]:
    return [name for name in MOTIONS if name.startswith(typed)]


def solve(
    problem: Annotated[
        str,
        typer.Argument(
            metavar="PROBLEM",
            help=f"One of {', '.join(MOTIONS)}.",
            autocompletion=_completed,
            show_default=False,
        ),
    ],
    robot: Annotated[
        str | None, typer.Option(metavar="ROBOT", help="Another one than usual: a file, or a name.", show_default=False)
    ] = None,
    iterations: Annotated[int, typer.Option(help="The most that are made.", min=0)] = 100,
    solver: Annotated[
        SolverName | None, typer.Option(help="By default what suits the problem.", show_default=False)
    ] = None,
    save: SaveOption = None,
    plots: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Draw costs, gaps, controls and contact forces there.", show_default=False),
    ] = None,
    view: Annotated[bool, typer.Option("--view", help="Show the motion in the browser, until Ctrl-C.")] = False,
    port: PortOption = 8080,
    floating: FloatingOption = None,
) -> None:
    """Find a motion by optimal control.

    A line is printed as each iteration ends. Ctrl-C ends them: the last
    iterate is reported, drawn and saved. The exit status is 1 where it has
    not converged, 130 after Ctrl-C.

    Examples:

      [cyan]saltus solve jump --save jump.html --plots plots[/cyan]
      [cyan]saltus solve trot --iterations 20 --view[/cyan]
      [cyan]saltus solve cartpole --solver boxddp[/cyan]
    """
    exercise = exercise_of(problem, robot, floating)
    OUT.print(
        f"[bold]{exercise.title}[/bold]: {exercise.problem.T} nodes, {exercise.problem.nu} controls", highlight=False
    )
    begin = perf_counter()
    made = (exercise.solver if solver is None else SOLVERS[solver])(exercise.problem)
    result = made.solve(exercise.xs, exercise.us, max_iterations=iterations, verbose=True)
    report(result, perf_counter() - begin)
    frames: dict[str, Any] = {"dt": 1 / FRAMES_PER_SECOND, "title": exercise.title}
    if plots:
        draw(exercise, result, plots)
    if save:
        from saltus.view import save_replay

        OUT.print(f"wrote {save_replay(save, exercise.problem, result, **frames)}", soft_wrap=True)
    if view:
        from saltus.view import show

        serve(show(exercise.problem, result, **frames, port=port, play=True))
    if result.status != OCPStatus.SOLVED:
        raise typer.Exit(130 if result.status == OCPStatus.INTERRUPTED else 1)


def exercise_of(name: str, robot: str | None, floating: bool | None) -> Exercise:
    """The motion of a name, with another robot if one is given."""
    if name not in MOTIONS:
        near = difflib.get_close_matches(name, MOTIONS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(MOTIONS)}"
        raise ModelError(f"there is no problem {name!r}; {hint}")
    make = MOTIONS[name]
    if robot is None:
        if floating is not None:
            raise ModelError("--floating and --fixed are for the file of a --robot")
        return make()
    if "robot" not in inspect.signature(make).parameters:
        raise ModelError(f"the problem {name!r} has a robot of its own, expected no --robot")
    return make(robot=load(robot, floating))


def report(result: OCPResult, seconds: float) -> None:
    """How it ended."""
    OUT.print(
        f"\n{result.status} after {result.iterations} iterations in {seconds:.2f} s, cost {result.cost:.6g}",
        highlight=False,
    )
    if result.reason:
        OUT.print(result.reason, soft_wrap=True, highlight=False, markup=False)


def draw(exercise: Exercise, result: OCPResult, folder: Path) -> None:
    """All plots that there are, as files."""
    from saltus.view import plot_controls, plot_costs, plot_forces, plot_gaps

    makers = {"costs": plot_costs, "gaps": plot_gaps}
    if exercise.problem.nu:
        makers["controls"] = plot_controls
    if exercise.problem.nc:
        makers["forces"] = plot_forces
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in makers.items():
        file = folder / f"{name}.png"
        make(exercise.problem, result).savefig(file, dpi=130)
        OUT.print(f"wrote {file}", soft_wrap=True)
