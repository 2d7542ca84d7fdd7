"""Figures and the page of the documentation on constrained dynamics, from the files in `results/`.

    python -m benchmarks.plot_constraints [--results FOLDER] [--docs FOLDER]

Writes `docs/benchmarks-constraints.md` and `docs/figures/*.png`. Nothing on the page is written by hand; what has not been
measured is named.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.contacts import CASES, SINGULAR
from benchmarks.measure import RESULTS
from benchmarks.plot import circumstances, number, plt, save, table
from benchmarks.plot_methods import COLOURS, Result, constrained_section, plain, precision_section, title

INTRODUCTION = """# Benchmarks of constrained dynamics

<!-- Made by `python -m benchmarks.plot_constraints` from benchmarks/results; do not edit. -->

Ours and the peers' on the same machine, in the same process, on the same states, taking turns; the best of several repeats;
compilation apart. A ratio is Pinocchio's time over ours: above 1, ours is faster. `F6^2 H3` is two feet held as surfaces and
one hand held as a point; E are elbows, T finger tips, L the loops of the robot's file. PS and CA are the papers that the
methods come from: *Proximal and sparse resolution of constrained dynamic equations* and *Constrained articulated body
dynamics algorithms*.
"""


# ---------------------------------------------------------------------------------------------------------------- OSIM


def osim_section(result: Result, figures: Path) -> str:
    machine = result["machine"]
    lines = []
    for found in result["rows"]:
        head = [f"{title(found['case'])}, {found['matrix']}", str(found["nv"]), str(found["nm"])]
        for name, time in found["us"].items():
            lines.append([*head, f"`pin`, {name}", number(time), "", f"{found['error'][name]:.0e}"])
        for row in found["methods"]:
            times = [f"{number(row['us'][form])} ({number(row['ratio'][form])} x)" for form in ("one", "f64")]
            lines.append([*head, f"`{row['method']}`", *times, f"{row['error']:.0e}"])
    text = f"## Delassus and OSIM: {machine['model']}, {machine['vectors']}\n\n{circumstances(result)}\n"
    text += (
        f"CA Table III, PS Figs. 6 and 7. Microseconds a call, or a sample of a batch of {result['batch']} on one core, and "
        "how many times faster than the faster one of Pinocchio's functions that are right: `computeDelassusMatrix`, "
        "`computeDampedDelassusMatrixInverse` (which, from Python, answers with 1 / mu on the diagonal) and the Cholesky "
        "factors of the KKT matrix with the matrix from them.\n\n"
    )
    return text + table(["case, matrix", "nv", "nm", "method", "one call", "f64", "error"], lines)


# ------------------------------------------------------------------------------------------------------------- scaling


def scaling_section(result: Result, figures: Path) -> str:
    machine, methods = result["machine"], result["methods"]
    picture = figures / f"scaling-{machine['name']}.png"
    plot_scaling(result["rows"], methods, f"{machine['model']}, {machine['vectors']}", picture)
    lines = [
        [
            f"{each['shape']}, {each['links'][1]} links against {each['links'][0]}, {each['iterations']} iterations",
            f"{each['times']['pin']:.2f}",
            *(f"{each['times'][f'{method}, one']:.2f} / {each['times'][f'{method}, f64']:.2f}" for method in methods),
        ]
        for each in result["growth"]
    ]
    text = f"## Chains and trees: {machine['model']}, {machine['vectors']}\n\n{circumstances(result)}\n"
    text += f"![time against the number of links](figures/{picture.name})\n\n"
    text += (
        "CA Fig. 3. Chains are held at their end as a surface, binary trees at all leaves as points. How many times longer "
        "twice the links take, one call / packets f64; at most 2.2 is wanted of `constrained_aba` in packets.\n\n"
    )
    return text + table(["", "pin", *(f"`{method}`" for method in methods)], lines)


def plot_scaling(rows: list[Result], methods: list[str], heading: str, file: Path) -> None:
    """Time against the number of links."""
    figure, panels = plt.subplots(2, 2, figsize=(12, 8), sharex="col", layout="constrained")
    for column, shape in enumerate(("chain", "tree")):
        for panel, (form, label) in zip(panels[:, column], (("one", "one call"), ("f64", "packets f64")), strict=True):
            for iterations, style in ((1, "--"), (3, "-")):
                of = [row for row in rows if row["shape"] == shape and row["iterations"] == iterations]
                links = [row["links"] for row in of]
                for name in ("pin", *methods):
                    times = [row["us"]["pin" if name == "pin" else f"{name}, {form}"] for row in of]
                    panel.plot(
                        links,
                        times,
                        style,
                        color=COLOURS[name],
                        marker="o",
                        markersize=3,
                        label=f"{name}, {iterations}",
                    )
            panel.set_yscale("log")
            panel.set_title(f"{shape}, {label}", fontsize=11)
            panel.set_ylabel("us")
            plain(panel)
        panels[1, column].set_xlabel("links")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=9)
    figure.suptitle(f"{heading}; solid: 3 iterations, dashed: 1; pin always one call", fontsize=12)
    save(figure, file)


# --------------------------------------------------------------------------------------------------------- convergence


def convergence_section(result: Result, figures: Path) -> str:
    whiskers, rates = figures / "convergence.png", figures / "convergence-rate.png"
    plot_whiskers(result["redundant"], whiskers)
    plot_rates(result["rate"], rates)
    redundant = result["redundant"]
    lines = [
        [f"`{row['method']}`", *(f"{q[3]:.0e} ({q[-1]:.0e})" for q in row["quantiles"])] for row in redundant["rows"]
    ]
    default = [
        [
            f"{title(row['case'])}, {row['method']}",
            f"{row['mu']:.0e}",
            str(row["states"]),
            f"{row['least_eigenvalue']:.0e}",
            f"{row['median']:.0e}",
            f"{row['largest']:.0e}",
            str(row["missed"]),
        ]
        for row in result["default"]
    ]
    text = f"## Convergence\n\n{circumstances(result)}\n"
    text += f"![what is left by iteration](figures/{whiskers.name})\n\n"
    text += (
        f"CA Fig. 4: {title(redundant['case'])}, redundant, {redundant['states']} random states, mu = {redundant['mu']:g}. "
        "Median (largest) of what is left of the constraints after 1, 2 ... iterations.\n\n"
    )
    text += table(["method", *(str(k + 1) for k in range(len(redundant["rows"][0]["quantiles"])))], lines)
    text += f"\n![what is left by mu](figures/{rates.name})\n\n"
    text += f"PS Fig. 2: {title(result['rate']['case'])}, the rate follows mu, down to where rounding ends it.\n\n"
    text += (
        "After three iterations at the default mu: what is left in random states that are not nearly singular (no "
        f"eigenvalue of the Delassus matrix below {SINGULAR:g} of a typical entry, but for those of redundant rows), the "
        f"least eigenvalue among them, by that entry, and how many states are left with more than {result['wanted']:g}.\n\n"
    )
    return text + table(["case, method", "mu", "states", "least eigenvalue", "median", "largest", "missed"], default)


def plot_whiskers(redundant: Result, file: Path) -> None:
    """Boxes for every iteration and method."""
    rows = redundant["rows"]
    figure, axes = plt.subplots(figsize=(12, 5.5), layout="constrained")
    width = 0.8 / len(rows)
    for k, row in enumerate(rows):
        boxes = [
            {"whislo": q[0], "q1": q[2], "med": q[3], "q3": q[4], "whishi": q[-1], "fliers": []}
            for q in np.maximum(row["quantiles"], 1e-17).tolist()
        ]
        places = np.arange(1, len(boxes) + 1) + (k - len(rows) / 2 + 0.5) * width
        colour = COLOURS[row["method"]]
        axes.bxp(
            boxes, places, widths=0.8 * width, showfliers=False, patch_artist=True,
            boxprops={"facecolor": colour, "edgecolor": colour}, medianprops={"color": "white"},
            whiskerprops={"color": colour}, capprops={"color": colour},
        )  # fmt: skip
        axes.plot([], [], color=colour, linewidth=6, label=row["method"])
    axes.set_yscale("log")
    count = len(rows[0]["quantiles"])
    axes.set_xticks(range(1, count + 1), map(str, range(1, count + 1)))
    axes.set_xlabel("iterations")
    axes.set_ylabel("largest row left [m/s^2, rad/s^2]")
    axes.legend(frameon=False)
    plain(axes)
    save(figure, file)


def plot_rates(rate: Result, file: Path) -> None:
    """Median of what is left against the iterations, a line for every mu, a panel for every method."""
    methods = list(dict.fromkeys(row["method"] for row in rate["rows"]))
    figure, panels = plt.subplots(1, len(methods), figsize=(4 * len(methods), 4.5), sharey=True, layout="constrained")
    mus = list(dict.fromkeys(row["mu"] for row in rate["rows"]))
    colours = dict(zip(mus, plt.get_cmap("viridis")(np.linspace(0.0, 0.9, len(mus))), strict=True))
    for panel, method in zip(np.atleast_1d(panels), methods, strict=True):
        for row in (row for row in rate["rows"] if row["method"] == method):
            left = np.maximum(row["median"], 1e-17)
            panel.plot(
                range(1, len(left) + 1),
                left,
                color=colours[row["mu"]],
                marker="o",
                markersize=3,
                label=f"mu = {row['mu']:.0e}",
            )
        panel.set_yscale("log")
        panel.set_title(method, fontsize=11)
        panel.set_xlabel("iterations")
        plain(panel)
    first = np.atleast_1d(panels)[0]
    first.set_ylabel("largest row left [m/s^2, rad/s^2]")
    figure.legend(*first.get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=9)
    save(figure, file)


# ---------------------------------------------------------------------------------------------------------- operations


def operations_section(result: Result, figures: Path) -> str:
    picture = figures / "operations.png"
    plot_operations(result, picture)
    dynamics = [
        [
            f"{title(found['case'])}, {row['method']}",
            str(found["nv"]),
            str(found["nm"]),
            *map(str, first_and_further(row)),
        ]
        for found in result["dynamics"]
        for row in found["methods"]
    ]
    methods = [row["method"] for row in result["osim"][0]["methods"]]
    osim = [
        [title(found["case"]), str(found["nm"]), *(str(sum(row["operations"].values())) for row in found["methods"])]
        for found in result["osim"]
    ]
    text = f"## Operation counts\n\n{circumstances(result)}\n"
    text += f"![operations by method](figures/{picture.name})\n\n"
    text += "CA Fig. 1: operations with one iteration, with three, and of each further one.\n\n"
    text += table(["case, method", "nv", "nm", "one", "three", "a further one"], dynamics)
    text += "\nCA Fig. 5: operations of the damped operational-space inertia matrix, or of its factors (`_f`).\n\n"
    return text + table(["case", "nm", *(f"`{method}`" for method in methods)], osim)


def first_and_further(row: Result) -> tuple[int, int, int]:
    one, three = (sum(row["operations"][key].values()) for key in ("1", "3"))
    return one, three, (three - one) // 2


def plot_operations(result: Result, file: Path) -> None:
    """Bars: the first iteration and two more; below them those of the operational-space inertia matrix."""
    figure, panels = plt.subplots(2, 1, figsize=(14, 9), layout="constrained")
    for panel, kind in zip(panels, ("dynamics", "osim"), strict=True):
        rows = result[kind]
        methods = list(dict.fromkeys(row["method"] for found in rows for row in found["methods"]))
        width = 0.84 / len(methods)
        for k, method in enumerate(methods):
            for place, found in enumerate(rows):
                row = next((row for row in found["methods"] if row["method"] == method), None)
                if row is None:
                    continue
                at = place + (k - len(methods) / 2 + 0.5) * width
                if kind == "osim":
                    panel.bar(at, sum(row["operations"].values()), width, color=COLOURS[method])
                else:
                    one, three, _ = first_and_further(row)
                    panel.bar(at, one, width, color=COLOURS[method])
                    panel.bar(at, three - one, width, bottom=one, color=COLOURS[method], alpha=0.45)
            panel.bar(0, 0, width, color=COLOURS[method], label=method)
        panel.set_xticks(
            range(len(rows)), [CASES[found["case"]].title for found in rows], rotation=30, ha="right", fontsize=9
        )
        panel.set_yscale("log")
        panel.legend(frameon=False, fontsize=9, ncols=len(methods))
        plain(panel)
    panels[0].set_ylabel("operations; light: two further iterations")
    panels[1].set_ylabel("operations, operational-space inertia")
    save(figure, file)


# ---------------------------------------------------------------------------------------------------------------- page


SECTIONS: dict[str, Callable[[Result, Path], str]] = {
    "constrained": constrained_section,
    "precision": precision_section,
    "osim": osim_section,
    "scaling": scaling_section,
    "convergence": convergence_section,
    "operations": operations_section,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Figures and the page on constrained dynamics, from all results.")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--docs", type=Path, default=Path(__file__).parents[1] / "docs")
    options = parser.parse_args()
    page, texts = options.docs / "benchmarks-constraints.md", [INTRODUCTION]
    for kind, section in SECTIONS.items():
        files = sorted({*options.results.glob(f"{kind}-*.json"), *options.results.glob(f"{kind}.json")})
        texts += [section(json.loads(file.read_text()), options.docs / "figures") for file in files]
        if not files:
            texts.append(f"## Not measured yet: {kind}\n\n```sh\npython -m benchmarks.{kind}\n```\n")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(texts))
    print(f"wrote {page}")


if __name__ == "__main__":
    main()
