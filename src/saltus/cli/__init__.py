"""The command `saltus`: robots to look into, to look at, to set in motion; and how fast this machine computes them."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from saltus.cli.bench import bench
from saltus.cli.console import ERROR
from saltus.cli.info import info
from saltus.cli.robots import robots
from saltus.cli.simulate import simulate
from saltus.cli.solve import solve
from saltus.cli.view import view
from saltus.cli.warmup import warmup

INTRODUCTION = """Dynamics of robots that touch the world.

ROBOT is everywhere a file (.urdf, .xml of MuJoCo, .sdf), or the name of a
robot that is already here.

[bold]The first five minutes:[/bold]

  [cyan]saltus robots[/cyan]                     which robots are here
  [cyan]saltus info quadruped[/cyan]             its joints, masses and limits
  [cyan]saltus view humanoid[/cyan]              look at it in the browser
  [cyan]saltus simulate quadruped --view[/cyan]  throw it into the air
  [cyan]saltus solve cartpole --view[/cyan]     find out how it swings up
  [cyan]saltus bench arm[/cyan]                  how fast this machine computes it

Functions are compiled when they are first used, for some seconds, and kept;
[cyan]saltus warmup[/cyan] does it ahead.
"""


class Group(TyperGroup):
    """The commands, of which an error is one line, not a traceback."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except (ValueError, OSError) as error:
            if ctx.params.get("debug"):
                raise
            ERROR.print(f"[bold red]error:[/bold red] [red]{_escaped(error)}[/red]", soft_wrap=True, highlight=False)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


def _escaped(error: Exception) -> str:
    from rich.markup import escape

    return escape(str(error))


def _show_version(wanted: bool) -> None:
    if wanted:
        from saltus import __version__

        typer.echo(f"saltus {__version__}")
        raise typer.Exit


def main(
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None: ...


app = typer.Typer(
    name="saltus", cls=Group, help=INTRODUCTION, rich_markup_mode="rich", no_args_is_help=True,
    pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
app.callback()(main)
for command in (robots, info, view, simulate, solve, bench, warmup):
    app.command()(command)
