"""Figures and the page of the documentation on derivatives, from the files in `results/`.

    python -m benchmarks.plot_derivatives [--results FOLDER] [--docs FOLDER]

Writes `docs/benchmarks-derivatives.md` and `docs/figures/*.png`. Nothing on the page is written by hand; what has not been
measured is named.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import RESULTS
from benchmarks.plot import circumstances, number, plt, save, table
from benchmarks.plot_constraints import plain, title

COLOURS = {"fd": "#8c96a8", "fdc": "#e08a1e", "ad": "#2f6fb7", "analytical": "#5b9a4b"}
FLOOR = 1e-18
"""Where errors of exactly zero are drawn."""

INTRODUCTION = """# Benchmarks of derivatives

<!-- Made by `python -m benchmarks.plot_derivatives` from benchmarks/results; do not edit. -->

Modes: `fd` and `fdc`, forward and central differences; `ad`, the kernels run on dual numbers; `analytical`. DR is the paper
*Efficient derivative evaluation for rigid-body dynamics based on recursive algorithms subject to kinematic and loop
constraints*.
"""

Result = dict[str, Any]


# ---------------------------------------------------------------------------------------------------------------- errors


def errors_section(result: Result, figures: Path) -> str:
    picture = figures / "derivative-errors.png"
    plot_errors(result["rows"], picture)
    modes = list(COLOURS)
    lines = [
        [
            f"{row['algorithm']}, {row['model']}",
            *(f"{q[3]:.0e} ({q[-1]:.0e})" if (q := row["quantiles"].get(mode)) else "" for mode in modes),
        ]
        for row in result["rows"]
    ]
    text = f"## Errors\n\n{circumstances(result)}\n"
    text += f"![errors by algorithm and mode](figures/{picture.name})\n\n"
    text += (
        f"DR Fig. 1: a cart-pendulum, {result['samples']} uniform random states and inputs in [-pi, pi], directions three "
        "times as many as degrees of freedom, against derivatives that CasADi takes of Lagrange's equations. The error of a "
        "sample is the largest of all entries of its slopes, relative to the largest slope; median (largest). In the "
        "figure, boxes hold half of the samples, whiskers nine tenths, dots are the largest.\n\n"
    )
    return text + table(["algorithm, cart-pendulum", *modes], lines)


def plot_errors(rows: list[Result], file: Path) -> None:
    models = list(dict.fromkeys(row["model"] for row in rows))
    counts = [sum(row["model"] == model for row in rows) for model in models]
    figure, panels = plt.subplots(
        1, len(models), figsize=(14, 5), sharey=True, layout="constrained", width_ratios=counts
    )
    for panel, model in zip(panels, models, strict=True):
        of = [row for row in rows if row["model"] == model]
        for place, row in enumerate(of):
            for k, mode in enumerate(COLOURS):
                if mode not in row["quantiles"]:
                    continue
                _, low, first, median, third, high, most = np.maximum(row["quantiles"][mode], FLOOR)
                box = {"med": median, "q1": first, "q3": third, "whislo": low, "whishi": high, "fliers": [most]}
                panel.bxp(
                    [box], positions=[place + 0.2 * (k - 1.5)], widths=0.16, patch_artist=True, manage_ticks=False,
                    boxprops={"facecolor": COLOURS[mode], "linewidth": 0.6}, medianprops={"color": "black"},
                    flierprops={"marker": ".", "markersize": 4, "markerfacecolor": COLOURS[mode], "markeredgewidth": 0},
                )  # fmt: skip
        panel.set_yscale("log")
        panel.set_xticks(range(len(of)), [row["algorithm"].replace(", ", ",\n") for row in of], fontsize=9)
        panel.set_title(f"cart-pendulum {model}", fontsize=11)
        plain(panel)
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour, label=mode) for mode, colour in COLOURS.items()]
    figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=9)
    panels[0].set_ylabel("relative error")
    save(figure, file)


# ---------------------------------------------------------------------------------------------------------------- effort


def effort_section(result: Result, figures: Path) -> str:
    machine, directions = result["machine"], result["directions"]
    picture = figures / f"derivative-effort-{machine['name']}.png"
    plot_effort(result, f"{machine['model']}, {machine['vectors']}", picture)
    lines = []
    for row in result["rows"]:
        one = row["evaluation"]
        over = [p for p, time in zip(directions, row["us"]["ad"], strict=True) if time > (1 + 1.5 * p) * one]
        triples = zip(directions, row["us"]["analytical"], row["us"]["fd"], strict=True)
        above = [p for p, ours, other in triples if ours > min(other, (1 + p) * one)]
        costs = [row["us"][mode][directions.index(p)] for mode in ("ad", "analytical") for p in (1, 8, 30)]
        lines.append([
            row["algorithm"], number(one), *(number(cost / one) for cost in costs), number(row["jacobian"] / one),
            ", ".join(map(str, over)) or "nowhere", ", ".join(map(str, above)) or "nowhere",
        ])  # fmt: skip
    text = f"## Effort: {machine['model']}, {machine['vectors']}\n\n{circumstances(result)}\n"
    text += f"![evaluations that derivatives cost](figures/{picture.name})\n\n"
    text += (
        f"DR Fig. 2: a pendulum of {result['links']} links, one call with one sample. What `sl.jvp` costs along so many "
        "directions of all inputs, in evaluations of the function itself. Dashed: 1 + 1.5 p, what theory expects of `ad` at "
        "most; dotted: 1 + p, forward differences by a loop over evaluations.\n\n"
    )
    header = ["algorithm", "us an evaluation", "`ad`, p = 1", "8", "30", "analytical, p = 1", "8", "30", "whole Jacobian",
              "`ad` above 1 + 1.5 p", "analytical above `fd` or 1 + p"]  # fmt: skip
    return text + table(header, lines)


def plot_effort(result: Result, heading: str, file: Path) -> None:
    directions = np.array(result["directions"])
    figure, panels = plt.subplots(2, 3, figsize=(14, 8), sharex=True, layout="constrained")
    for panel, row in zip(panels.ravel(), result["rows"], strict=True):
        for mode, times in row["us"].items():
            panel.plot(
                directions,
                np.array(times) / row["evaluation"],
                color=COLOURS[mode],
                marker="o",
                markersize=3,
                label=mode,
            )
        panel.plot(directions, 1 + 1.5 * directions, "--", color="black", linewidth=0.8, label="1 + 1.5 p")
        panel.plot(directions, 1 + directions, ":", color="black", linewidth=0.8, label="1 + p")
        panel.set_yscale("log")
        panel.set_title(row["algorithm"], fontsize=11)
        plain(panel)
    for panel in panels[-1]:
        panel.set_xlabel("directions p")
    for panel in panels[:, 0]:
        panel.set_ylabel("evaluations")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=9)
    figure.suptitle(heading, fontsize=12)
    save(figure, file)


# ----------------------------------------------------------------------------------------------------------------- speed


def speed_section(result: Result, figures: Path) -> str:
    machine = result["machine"]
    lines = []
    for row in result["rows"]:
        us, ratio = row["us"], row["ratio"]
        cells = [number(us["pin"]), number(us["one"]), number(ratio["one"]), number(us["f64"]), number(ratio["f64"])]
        free = [number(us[f"pin {name}"] / us[f"{name} {form}"]) for name in ("aba", "rnea") for form in ("one", "f64")]
        lines.append([title(row["case"]), *cells, f"{row['error']:.0e}", *free])
    text = (
        f"## Dynamics and derivatives together: {machine['model']}, {machine['vectors']}\n\n{circumstances(result)}\n"
    )
    text += (
        "Accelerations, forces, and how both change with q, v and tau, against `pin.constraintDynamics` and "
        f"`pin.computeConstraintDynamicsDerivatives`, {result['iterations']} iterations; times in us, of packets per sample "
        f"of a batch of {result['batch']} on one core; x: how many times faster. The error is relative to the largest "
        "entry of each matrix, against Pinocchio's, of converged solutions; four-bar's loop is planar, so that one of "
        "its three rows is redundant, and Pinocchio has none to compare with (ours agrees with dual numbers: "
        "`tests/derivatives`). Behind it, how many times faster `aba_derivatives` and `rnea_derivatives` are.\n\n"
    )
    header = [
        "case",
        "pin",
        "one call",
        "x",
        "packets f64",
        "x",
        "error",
        "ABA, one",
        "packets",
        "RNEA, one",
        "packets",
    ]
    return text + table(header, lines)


def graphics_section(result: Result, figures: Path) -> str:
    lines = [
        [
            row["robot"],
            row["dtype"],
            row["layout"],
            str(row["batch"]),
            number(row["million_per_s"]),
            f"{row['error']:.0e}",
        ]
        for row in result["rows"]
        if row["algorithm"] == "constrained_derivatives"
    ]
    text = f"## Dynamics and derivatives together: {result['device']}\n\n{circumstances(result)}\n"
    text += "Four feet of Solo12, soles and hands of Talos (38); millions of samples a second.\n\n"
    return text + table(["robot", "type", "layout", "batch", "M/s", "error"], lines)


# ------------------------------------------------------------------------------------------------------------------ page


SECTIONS: dict[str, Callable[[Result, Path], str]] = {
    "derivatives": speed_section,
    "gpu-derivatives": graphics_section,
    "derivative-errors": errors_section,
    "derivative-effort": effort_section,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Figures and the page on derivatives, from all results.")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--docs", type=Path, default=Path(__file__).parents[1] / "docs")
    options = parser.parse_args()
    page, texts = options.docs / "benchmarks-derivatives.md", [INTRODUCTION]
    for kind, section in SECTIONS.items():
        files = sorted({*options.results.glob(f"{kind}-*.json"), *options.results.glob(f"{kind}.json")})
        texts += [section(json.loads(file.read_text()), options.docs / "figures") for file in files]
        if not files:
            module = kind.replace("-", "_")
            texts.append(f"## Not measured yet: {kind}\n\n```sh\npython -m benchmarks.{module}\n```\n")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(texts))
    print(f"wrote {page}")


if __name__ == "__main__":
    main()
