"""All motions that saltus knows by name, found by optimal control one after the other, as a table and as replays.

    python examples/motions.py                       all of them
    python examples/motions.py trot astronaut        some of them
    python examples/motions.py trot --robot anymal   of another robot, where the motion is not bound to one

Files go to the folder `demo`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import saltus as sl

FRAME = 0.02  # s between the pictures of a replay


def found(name: str, robot: str | None) -> tuple[sl.Exercise, sl.OCPResult, float]:
    """A motion, and how long it took [s]."""
    given: dict[str, Any] = {} if robot is None else {"robot": sl.load_robot(robot)}
    exercise = sl.motions.MOTIONS[name](**given)
    start = time.perf_counter()
    return exercise, exercise.solve(), time.perf_counter() - start


def main(names: list[str], robot: str | None, folder: Path) -> None:
    console = Console()
    table = Table("motion", "what", box=None, header_style="bold")
    for title in ("nodes", "iterations", "cost", "seconds", "largest control"):
        table.add_column(title, justify="right")
    table.add_column("status")
    folder.mkdir(exist_ok=True)
    for name in names:
        exercise, result, seconds = found(name, robot)
        problem = exercise.problem
        limit = np.where(problem.u_upper < 1e6, problem.u_upper, np.inf)
        table.add_row(
            name, exercise.title, str(problem.T), str(result.iterations), f"{result.cost:.6g}", f"{seconds:.2f}",
            f"{(np.abs(result.us) / limit).max():.0%} of its limit", str(result.status),
        )  # fmt: skip
        sl.view.save_replay(folder / f"{name}.html", problem, result, dt=FRAME, title=exercise.title)
    console.print(table)
    console.print(f"\nin {folder}: a replay of each")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Motions by optimal control.")
    parser.add_argument(
        "names", nargs="*", default=list(sl.motions.MOTIONS), help=f"of {', '.join(sl.motions.MOTIONS)}"
    )
    parser.add_argument("--robot", help="another one")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where files go")
    main(**vars(parser.parse_args()))
