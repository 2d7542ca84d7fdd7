"""`saltus bench`: how fast this machine computes a robot. Figures against peers are `python -m benchmarks`'s."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from saltus.cli.console import OUT, FloatingOption, RobotArgument, load, print_whole, progress_bar
from saltus.dynamics.aba import aba
from saltus.dynamics.centroidal import center_of_mass
from saltus.dynamics.crba import crba
from saltus.dynamics.kinematics import joint_placements
from saltus.dynamics.ltl import minverse
from saltus.dynamics.rnea import rnea
from saltus.kernel.lending import get_threads, set_threads
from saltus.model import Model
from saltus.model.manifold import integrate, random_configuration

FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "aba": (aba, "q v tau"),
    "rnea": (rnea, "q v tau"),
    "crba": (crba, "q"),
    "minverse": (minverse, "q"),
    "center_of_mass": (center_of_mass, "q"),
    "joint_placements": (joint_placements, "q"),
    "integrate": (integrate, "q v"),
}
"""What is measured, and its inputs."""

REALS = {"f64": np.float64, "f32": np.float32}


def bench(
    robot: RobotArgument = "quadruped",
    batch: Annotated[int, typer.Option(help="Robots in a batch.", min=1)] = 4096,
    seconds: Annotated[float, typer.Option(help="Time for each figure.", min=0.0)] = 0.2,
    floating: FloatingOption = None,
) -> None:
    """Measure how fast this machine computes a robot, alone and in batches.

    A quick look: the best of several repeats, with whatever else the machine
    does at the time. Functions that are not compiled yet are compiled first.

    Examples:

      [cyan]saltus bench[/cyan]
      [cyan]saltus bench humanoid --batch 1024[/cyan]
    """
    model = load(robot, floating)
    threads = get_threads()
    columns = [(name, real, count) for count in dict.fromkeys((1, threads)) for name, real in REALS.items()]
    OUT.print(
        f"[bold]{model.name}[/bold], {model.nv} degrees of freedom: "
        f"one call in µs, batches of {batch} in millions a second\n",
        highlight=False, soft_wrap=True,
    )  # fmt: skip
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("function", no_wrap=True)
    table.add_column("one call", justify="right", no_wrap=True)
    for name, _, count in columns:
        table.add_column(f"{name}\n{count} thread{'s' * (count > 1)}", justify="right", no_wrap=True)
    inputs = _inputs(model, batch)
    with progress_bar() as bar:
        task = bar.add_task("", total=len(FUNCTIONS) * (1 + len(columns)))
        try:
            for name, (function, arguments) in FUNCTIONS.items():
                given = [inputs[argument] for argument in arguments.split()]
                bar.update(task, description=f"measuring {name:<28}")
                row = [f"{1e6 * _best(model, function, [array[0] for array in given], seconds):.2f}"]
                bar.advance(task)
                for _, real, count in columns:
                    set_threads(count)
                    each = _best(model, function, [array.astype(real) for array in given], seconds) / batch
                    row.append(f"{1e-6 / each:.2f}")
                    bar.advance(task)
                table.add_row(f"[cyan]{name}[/cyan]", *row)
        finally:
            set_threads(threads)
    print_whole(table)


def _inputs(model: Model, batch: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    v, tau = rng.normal(size=(2, batch, model.nv))
    return {"q": random_configuration(model, seed=0, shape=batch), "v": v, "tau": tau}


def _best(model: Model, function: Callable[..., Any], inputs: list[Any], seconds: float) -> float:
    """The best time [s] of a call, after one that compiles."""
    function(model, *inputs)
    best, end = np.inf, perf_counter() + seconds
    while (now := perf_counter()) < end or not np.isfinite(best):
        count = 0
        while (spent := perf_counter() - now) < min(0.01, seconds / 5) or count == 0:
            function(model, *inputs)
            count += 1
        best = min(best, spent / count)
    return best
