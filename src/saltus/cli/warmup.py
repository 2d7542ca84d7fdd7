"""`saltus warmup`: everything compiled ahead."""

from __future__ import annotations

from time import perf_counter
from typing import Annotated

import typer

from saltus.cli.console import OUT, progress_bar
from saltus.kernel.native import cache_folder


def warmup(
    jobs: Annotated[int | None, typer.Option(help="Processes at a time; by default one a core.", min=1)] = None,
) -> None:
    """Compile all functions ahead of their first use.

    For calls of one robot, and for batches in double and single precision. It
    takes some minutes, once for each machine and version; what is compiled
    already takes no time. Ctrl-C loses nothing: the next time, it goes on
    from there.
    """
    from saltus.kernel.warmup import print_progress
    from saltus.kernel.warmup import warmup as compile_all

    begin = perf_counter()
    with progress_bar() as bar:
        task = bar.add_task("compiling", total=None)

        def show(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=f"compiled {name:<40}")

        compile_all(jobs, print_progress if bar.disable else show)
    OUT.print(f"all functions are ready in {cache_folder()} ({perf_counter() - begin:.1f} s)", soft_wrap=True)
