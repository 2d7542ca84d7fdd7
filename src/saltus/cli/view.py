"""`saltus view`: a robot in the browser, or as a file."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from saltus.cli.console import OUT, FloatingOption, PoseOption, RobotArgument, load, pose_of
from saltus.view import Viewer, save_picture, save_replay, save_video, show
from saltus.view.recording import PICTURES, VIDEOS

SaveOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write a page that any browser opens, without a server (.html), a picture (.png) or a video (.mp4, .gif).",
        show_default=False,
    ),
]
PortOption: TypeAlias = Annotated[
    int, typer.Option(help="Where the viewer listens; if it is taken, the next free one.")
]


def view(
    robot: RobotArgument,
    pose: PoseOption = None,
    save: SaveOption = None,
    port: PortOption = 8080,
    floating: FloatingOption = None,
) -> None:
    """Show a robot in the browser, until Ctrl-C.

    The page is for this machine only: it listens on the loopback address.

    Examples:

      [cyan]saltus view humanoid[/cyan]
      [cyan]saltus view my_robot.urdf --floating --pose neutral[/cyan]
      [cyan]saltus view biped --save biped.html[/cyan]  a file to send to somebody
      [cyan]saltus view quadruped --save quadruped.png[/cyan]
    """
    model = load(robot, floating)
    q = pose_of(model, pose)
    if save:
        write(save, model, q)
    else:
        serve(show(model, q, port=port))


def write(file: Path, *drawn: Any, **frames: Any) -> None:
    """What the file's name says: a page, a picture or a video."""
    ending = file.suffix.lower()
    save: Any = save_picture if ending in PICTURES else save_video if ending in VIDEOS else save_replay
    OUT.print(f"wrote {save(file, *drawn, **frames)}", soft_wrap=True)


def serve(viewer: Viewer) -> None:
    """Keep a viewer open until Ctrl-C."""
    with viewer:
        OUT.print(f"[bold]{viewer.url}[/bold]  in your browser; Ctrl-C ends it", soft_wrap=True)
        OUT.file.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            OUT.print()
