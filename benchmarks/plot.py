"""Figures and the page of the documentation, from the files in `results/`.

    python -m benchmarks.plot [--results FOLDER] [--docs FOLDER]

Writes `docs/benchmarks.md` and `docs/figures/*.png`. Nothing on the page is written by hand.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import LogFormatter

from benchmarks.measure import RESULTS
from benchmarks.robots import ROBOTS

MAIN = {
    "aba": "ABA",
    "rnea": "RNEA",
    "crba": "CRBA",
    "centroidal_momentum_matrix": "centroidal momentum matrix",
}
ON_GPU = MAIN | {"constrained_aba": "constrained ABA", "constrained_derivatives": "constrained derivatives"}
FORMS = {
    "one": "one call",
    "f64": "packets f64, a core",
    "f32": "packets f32, a core",
    "threads": "packets f64, all cores",
}
COLOURS = {"one": "#8c96a8", "f64": "#2f6fb7", "f32": "#e08a1e"}

INTRODUCTION = """# Benchmarks

<!-- Made by `python -m benchmarks.plot` from benchmarks/results; do not edit. -->

Ours and the peer's on the same machine, in the same process, on the same inputs, taking turns; the best of several
repeats; compilation apart. A ratio is the peer's time over ours: above 1, ours is faster.
"""


# -------------------------------------------------------------------------------------------------------------- tables


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, numbers to the right."""
    rule = [":--" if k == 0 else "--:" for k in range(len(header))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, rule, *rows)) + "\n"


def number(value: float | None) -> str:
    """Three digits that count."""
    if value is None:
        return "-"
    return (
        f"{value:.0f}"
        if value >= 100
        else f"{value:.1f}"
        if value >= 10
        else f"{value:.2f}"
        if value >= 1
        else f"{value:.3f}"
    )


def circumstances(result: dict[str, Any]) -> str:
    machine = result["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items() if version != "?")
    where = f"{machine['model']}, {machine['vectors']}, {machine['cores']} cores"
    return f"```sh\n{result['command']}\n```\n\n{result['date']}; {where}; {versions}.\n"


def batch_name(batch: int) -> str:
    return f"{batch // 1024} k" if batch >= 1024 else str(batch)


def robots_of(rows: list[dict[str, Any]]) -> list[str]:
    present = {row["robot"] for row in rows}
    return [name for name in ROBOTS if name in present]


# ------------------------------------------------------------------------------------------------------------ processor


def processor_section(result: dict[str, Any], figures: Path) -> str:
    rows = result["rows"]
    by = {(row["robot"], row["algorithm"]): row for row in rows}
    robots, algorithms = robots_of(rows), list(dict.fromkeys(row["algorithm"] for row in rows))
    machine = result["machine"]
    picture = figures / f"ratios-{machine['name']}.png"
    plot_ratios(by, robots, f"{machine['model']}, {machine['vectors']}", picture)

    def times(row: dict[str, Any]) -> list[str]:
        cells = [f"{number(row['us'].get(form))} ({number(row['ratio'].get(form))} x)" for form in FORMS]
        return [f"{row['peak_share']:.0%}" if c == "peak" else c for c in (number(row["us"]["pin"]), *cells, "peak")]

    main = [
        [ROBOTS[robot].title, title, str(by[robot, name]["batch"]), *times(by[robot, name])]
        for name, title in MAIN.items()
        for robot in robots
        if (robot, name) in by
    ]
    ratios = [
        [
            f"`{name}`",
            str(next(row["batch"] for row in rows if row["algorithm"] == name)),
            *(three(by, r, name) for r in robots),
        ]
        for name in algorithms
    ]
    compiled = {name: times for name, times in result["first_call_s"].items() if times["compiled"]}
    text = f"## {machine['model']}, {machine['vectors']}\n\n{circumstances(result)}\n"
    text += f"![times faster than Pinocchio](figures/{picture.name})\n\n"
    text += (
        f"Microseconds a call, or a sample of a batch, and how many times faster than `pin` {result['versions']['pin']}. "
        f"The last column is the share of a core's arithmetic peak, {result['peak_gflops']:.1f} GFLOP/s as measured, "
        f"that packets in f64 reach. {result['threads']} threads.\n\n"
    )
    text += table(["robot", "algorithm", "batch", "pin", *FORMS.values(), "peak"], main)
    text += "\nTimes faster than `pin`, all algorithms: one call / packets f64 / packets f32, on one core.\n\n"
    text += table(["algorithm", "batch", *(ROBOTS[robot].title for robot in robots)], ratios)
    if compiled:
        text += "\nThe first call, with compilation [s]:\n\n"
        text += table(
            ["algorithm", "one call", "packets f64", "packets f32"],
            [[f"`{name}`", *(f"{t[form]:.1f}" for form in ("one", "f64", "f32"))] for name, t in compiled.items()],
        )
    return text


def three(by: dict[tuple[str, str], Any], robot: str, name: str) -> str:
    if (robot, name) not in by:
        return "-"
    ratio = by[robot, name]["ratio"]
    return " / ".join(f"{ratio[form]:.1f}" if form in ratio else "-" for form in ("one", "f64", "f32"))


def plot_ratios(by: dict[tuple[str, str], Any], robots: list[str], title: str, file: Path) -> None:
    """Bars for every robot: how many times faster than the peer."""
    figure, panels = plt.subplots(2, 2, figsize=(13, 7.5), sharex=True, layout="constrained")
    places, width = np.arange(len(robots)), 0.27
    for panel, (name, label) in zip(panels.flat, MAIN.items(), strict=True):
        for k, (form, colour) in enumerate(COLOURS.items()):
            heights = [by[r, name]["ratio"].get(form, np.nan) if (r, name) in by else np.nan for r in robots]
            bars = panel.bar(places + (k - 1) * width, heights, width, color=colour, label=FORMS[form])
            words = ["" if np.isnan(height) else f"{height:.1f}" for height in heights]
            panel.bar_label(bars, words, fontsize=7, padding=1)
        panel.axhline(1.0, color="black", linewidth=0.8, linestyle="--")
        panel.set_title(label, fontsize=11)
        panel.set_xticks(places, [ROBOTS[robot].title.replace(" ", "\n") for robot in robots], fontsize=9)
        panel.set_ylabel("times faster than pin")
        panel.spines[["top", "right"]].set_visible(False)
        panel.margins(y=0.1)
    panels[0, 0].legend(frameon=False, fontsize=9, ncols=3, loc="upper left", bbox_to_anchor=(0.0, 1.0))
    panels[0, 0].margins(y=0.25)
    figure.suptitle(f"saltus beside Pinocchio, {title} (dashed: as fast)", fontsize=12)
    save(figure, file)


# -------------------------------------------------------------------------------------------------------------- startup


def startup_section(result: dict[str, Any]) -> str:
    spent = ", ".join(f"{name} {seconds:.3f} s" for name, seconds in result["import_s"].items())
    text = f"## The first call of a process\n\n{circumstances(result)}\n"
    text += (
        f"With a filled cache, {ROBOTS[result['robot']].title}, a new process for every figure. Import: {spent}.\n\n"
    )
    return text + table(
        ["first call [s]", "one call", "packets f64", "packets f32"],
        [
            [f"`{r['algorithm']}`", *(f"{r['first_call_s'][form]:.3f}" for form in ("one", "f64", "f32"))]
            for r in result["rows"]
        ],
    )


# ------------------------------------------------------------------------------------------------------------------ GPU


def cuda_section(result: dict[str, Any], figures: Path) -> str:
    rows = result["rows"]
    curves: dict[tuple[str, str, str, str], dict[int, dict[str, Any]]] = {}
    for row in rows:
        curves.setdefault((row["robot"], row["algorithm"], row["dtype"], row["layout"]), {})[row["batch"]] = row
    batches = sorted({row["batch"] for row in rows})
    picture = figures / f"cuda-{result['device'].lower().replace(' ', '-')}.png"
    plot_throughput(curves, robots_of(rows), result["device"], picture)
    lines = []
    for (robot, name, dtype, layout), curve in curves.items():
        speeds = [number(curve[batch]["million_per_s"]) if batch in curve else "" for batch in batches]
        launch, error = min(p["launch_us"] for p in curve.values()), max(p["error"] for p in curve.values())
        kind = f"{ON_GPU[name]}, {dtype}, {'(B, n)' if layout == 'samples' else '(n, B).T'}"
        largest = curve[max(curve)]
        solved = f"{largest['converged']:.1%}, {largest['iterations']:.1f}" if "converged" in largest else ""
        lines.append([ROBOTS[robot].title, kind, *speeds, f"{launch:.0f}", f"{error:.0e}", solved])
    text = f"## {result['device']}\n\n{circumstances(result)}\n"
    text += f"![throughput against the size of the batch](figures/{picture.name})\n\n"
    text += (
        "Million samples a second by the size of the batch, for arrays (B, n) and for transposes of arrays (n, B), which "
        "are read faster; the time that Python takes to launch [us]; the relative error against the processor in f64. "
        "Constrained dynamics iterate to the default tolerance at the default mu: only samples whose status is CONVERGED "
        "count, and the last column has their share and the mean of all iterations.\n\n"
    )
    head = ["robot", "algorithm, type, layout", *map(batch_name, batches), "launch", "error", "converged, iterations"]
    return text + table(head, lines)


def plot_throughput(
    curves: dict[tuple[str, str, str, str], dict[int, dict[str, Any]]], robots: list[str], device: str, file: Path
) -> None:
    """Samples a second against the size of the batch, arrays in the faster layout."""
    shown = {name: label for name, label in ON_GPU.items() if any(curve[1] == name for curve in curves)}
    columns = -(-len(shown) // 2)
    figure, panels = plt.subplots(
        2, columns, figsize=(6 * columns, 8), sharex=True, layout="constrained", squeeze=False
    )
    for spare in panels.flat[len(shown) :]:
        spare.set_axis_off()
    colours = dict(zip(robots, plt.get_cmap("viridis")(np.linspace(0.0, 0.88, len(robots))), strict=True))
    for panel, (name, label) in zip(panels.flat, shown.items(), strict=False):
        for (robot, algorithm, dtype, layout), curve in curves.items():
            if algorithm == name and layout == "numbers":
                batches = sorted(curve)
                style = {"linestyle": "-", "marker": "o"} if dtype == "float64" else {"linestyle": "--", "marker": "^"}
                label_of = f"{ROBOTS[robot].title}, {dtype}"
                speeds = [curve[batch]["million_per_s"] for batch in batches]
                panel.plot(batches, speeds, color=colours[robot], markersize=4, linewidth=1.4, label=label_of, **style)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        ticks = sorted({batch for curve in curves.values() for batch in curve})
        panel.set_xticks(ticks, [batch_name(batch) for batch in ticks])
        panel.yaxis.set_major_formatter(LogFormatter())  # plain numbers
        panel.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.5)))
        panel.set_title(label, fontsize=11)
        panel.grid(True, which="both", linewidth=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    for panel in panels[:, 0]:
        panel.set_ylabel("million samples a second")
    for panel in panels[1]:
        panel.set_xlabel("samples in the batch")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=9)
    figure.suptitle(f"{device}, arrays (n, B).T; solid: float64, dashed: float32", fontsize=12)
    save(figure, file)


# ----------------------------------------------------------------------------------------------------------------- page


def save(figure: Any, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130)
    plt.close(figure)
    print(f"wrote {file}")


def load(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in sorted(folder.glob(f"{kind}-*.json"))]


def main() -> None:
    parser = argparse.ArgumentParser(description="Figures and the page of the documentation, from all results.")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--docs", type=Path, default=Path(__file__).parents[1] / "docs")
    options = parser.parse_args()
    figures, page = options.docs / "figures", options.docs / "benchmarks.md"
    sections = [INTRODUCTION]
    sections += [processor_section(result, figures) for result in load(options.results, "cpu")]
    sections += [cuda_section(result, figures) for result in load(options.results, "cuda")]
    sections += [startup_section(result) for result in load(options.results, "startup")]
    if len(sections) == 1:
        raise SystemExit(f"there are no results in {options.results}: run python -m benchmarks.cpu first")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(sections))
    print(f"wrote {page}")


if __name__ == "__main__":
    main()
