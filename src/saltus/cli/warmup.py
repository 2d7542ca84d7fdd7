"""`saltus warmup`: functions compiled ahead."""

from __future__ import annotations

from time import perf_counter
from typing import Annotated

import typer

from saltus.cli.console import OUT, progress_bar
from saltus.kernel.native import cache_folder, can_keep


def warmup(
    functions: Annotated[list[str] | None, typer.Argument(help="Names such as aba; by default all there are.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes at a time; by default one a core.", min=1)] = None,
) -> None:
    """Compile functions ahead of their first use.

    In every form: for one robot, for batches in double and single precision,
    for derivatives along directions, and for a GPU where there is one. What a wheel has brought along, or
    is compiled already, takes no time. Ctrl-C loses nothing: the next time,
    it goes on from there.
    """
    from saltus.kernel import driver
    from saltus.kernel.target import target
    from saltus.kernel.warmup import FORMS, GPU_FORMS, print_progress
    from saltus.kernel.warmup import jobs as jobs_of
    from saltus.kernel.warmup import warmup as compile_all

    names = functions or []
    try:
        forms = FORMS + (GPU_FORMS if driver.is_there() else ())
        counts = {form: len(jobs_of([form], names)) for form in forms}
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    OUT.print(
        f"{sum(counts.values())} functions for {target().name}: {counts['one']} for one robot, {counts['many']} and "
        f"{counts['single']} for batches in double and single precision, {counts['slopes']} for slopes"
        + (f", {counts['gpu']} for GPUs" if "gpu" in counts else ""),
        soft_wrap=True,
    )
    begin = perf_counter()
    with progress_bar() as bar:
        task = bar.add_task("compiling", total=None)

        def show(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=f"compiled {name:<40}")

        compile_all(jobs, print_progress if bar.disable else show, forms, names)
    if not can_keep():
        raise ValueError(f"{cache_folder()} cannot be written: nothing is kept; SALTUS_CACHE_DIR names another folder")
    OUT.print(f"all are ready in {cache_folder()} ({perf_counter() - begin:.1f} s)", soft_wrap=True)
