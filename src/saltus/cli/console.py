"""What the commands share: the console, the argument ROBOT, how a pose is chosen, how progress is shown."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from saltus.arrays import Array
from saltus.model import Model, ModelError, load_mjcf, load_robot, load_sdf, load_urdf, robot_names

OUT, ERROR = Console(), Console(stderr=True)
SUFFIXES = (".urdf", ".xml", ".mjcf", ".sdf")


def _completed(typed: str) -> list[str]:
    return [name for name in robot_names() if name.startswith(typed)]


RobotArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="ROBOT",
        help="A file (.urdf, .xml, .sdf), or one of the names that `saltus robots` lists.",
        autocompletion=_completed,
        show_default=False,
    ),
]
FloatingOption: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--floating/--fixed",
        help="For a file: whether the root link moves freely. By default it does in SDF, does not in URDF; MJCF says so "
        "itself.",
        show_default=False,
    ),
]
PoseOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="A reference configuration, or `neutral`. By default `standing`, or the first there is.",
        show_default=False,
    ),
]


def load(robot: str, floating: bool | None = None) -> Model:
    """The robot of a file or of a name."""
    suffix = Path(robot).suffix.lower()
    if suffix not in SUFFIXES:
        if Path(robot).exists() and robot not in robot_names():
            raise ModelError(f"{robot}: the file's name ends in {suffix!r}, expected one of {', '.join(SUFFIXES)}")
        if floating is not None:
            raise ModelError(f"--floating and --fixed are for files; {robot!r} has the base it has")
        return load_robot(robot)
    base: dict[str, Any] = {} if floating is None else {"floating_base": floating}
    if suffix == ".urdf":
        return load_urdf(robot, **base)
    if suffix == ".sdf":
        return load_sdf(robot, **base)
    if base:
        raise ModelError(f"{robot}: an MJCF file says itself whether the base moves freely (<freejoint/>)")
    return load_mjcf(robot)


def pose_of(model: Model, name: str | None) -> Array:
    """The configuration (nq,) of this name; the standing one, the first one, or the neutral one if no name is given."""
    poses = {**model.reference_configurations, "neutral": model.neutral()}
    if name is None:
        return poses["standing"] if "standing" in poses else next(iter(poses.values()))
    if name not in poses:
        near = difflib.get_close_matches(name, poses, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(poses)}"
        raise ModelError(f"model {model.name!r} has no pose {name!r}; {hint}")
    return poses[name]


def print_whole(renderable: RenderableType) -> None:
    """Print a tree or a table: on a terminal as wide as it is; elsewhere, for programs to read, no line is broken."""
    console = OUT if OUT.is_terminal else Console(width=1000)
    console.print(renderable)


def progress_bar() -> Progress:
    """A bar on the terminal that goes away when it is done."""
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=ERROR, transient=True, disable=not ERROR.is_terminal,
    )  # fmt: skip
