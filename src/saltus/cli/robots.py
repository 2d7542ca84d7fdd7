"""`saltus robots`: which robots have a name here."""

from __future__ import annotations

from rich.columns import Columns

from saltus.cli.console import OUT
from saltus.model import robot_names
from saltus.model.robots.table import SHIPPED


def robots() -> None:
    """List the robots that can be called by name.

    Those that come with saltus, and, where the package [bold]example-robot-data[/bold] is installed
    ([cyan]pip install example-robot-data[/cyan]), some fifty real ones.
    """
    others = [name for name in robot_names() if name not in SHIPPED]
    for source, names in (("saltus", list(SHIPPED)), ("example-robot-data", others)):
        if names:
            OUT.print(f"[bold]from {source}[/bold]")
            OUT.print(Columns([f"[cyan]{name}[/cyan]" for name in names], column_first=True, padding=(0, 3)))
            OUT.print()
    if not others:
        OUT.print("[dim]some fifty more: pip install example-robot-data[/dim]")
