"""The page on constrained dynamics: what the methods take for one tolerance, and what float32 reaches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contacts import CASES, Case
from benchmarks.convergence import RATE, REDUNDANT
from benchmarks.plot import circumstances, number, plt, save, table
from benchmarks.precision import WANTED

COLOURS = {
    "constrained_aba": "#2f6fb7", "loop_aba": "#6fa8dc", "prox_ltl": "#e08a1e", "prox_ltls": "#c0504d",
    "prox_pv": "#5b9a4b", "pin": "#8c96a8", "ltl": "#e08a1e", "efpa": "#c0504d", "pv": "#5b9a4b", "pv_r": "#3f7f5f",
    "pv_f": "#9bbb59", "caba": "#2f6fb7", "caba_f": "#6fa8dc",
}  # fmt: skip

Result = dict[str, Any]
MISSED = "†"


def title(name: str) -> str:
    """A case as in the tables, with code marks around the notation."""
    known = {case.name: case for case in (*CASES.values(), REDUNDANT, RATE)}
    case: Case = known[name]
    return f"{case.title.removesuffix(case.held)}`{case.held}`"


def plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(True, which="major", linewidth=0.3)


# ------------------------------------------------------------------------------------------------------------- timings


def errors(outcome: Result) -> str:
    """Median (largest); a dash if no sample counted."""
    return "-" if outcome["median"] is None else f"{outcome['median']:.0e} ({outcome['largest']:.0e})"


def mean(outcome: Result) -> str:
    """Of the iterations."""
    return "-" if outcome["iterations"] is None else f"{outcome['iterations']:.1f}"


def timing_line(found: Result, row: Result, batch: int) -> list[str]:
    """A method on a case: times, what was wanted, and what both libraries reached."""
    pin, double, single = found["peers"]["pin"], row["f64"], row["f32"]
    counted = [form for form in ("one", "f64", "f32") if row["us"][form] is not None]
    times = {form: f"{number(row['us'][form])} ({number(row['ratio'][form])} x)" for form in counted}
    if single["reached"] < found["timed"]:
        times["f32"] = f"{times.get('f32', '')} {MISSED}".strip()
    asked, judged = found["wanted"] if row["method"] == "constrained_aba" else None, ""
    if asked:
        met = all(row["ratio"][form] >= x for form, x in zip(("one", "f64"), asked, strict=True))
        judged = f"{asked[0]:g} x, {asked[1]:g} x: {'met' if met else 'missed'}"
    mark = f" {MISSED}" if min(pin["reached"], double["reached"]) < batch else ""
    return [
        f"{title(found['case'])}, {row['method']}{mark}",
        f"{found['nv']}, {found['nm']}",
        number(found["us"]["pin"]),
        *times.values(),
        judged,
        f"{mean(pin)}, {mean(double)}, {mean(single)}",
        f"{pin['reached']}, {double['reached']}; {single['reached']} of {found['timed']}",
        *map(errors, (pin, double, single)),
    ]


def constrained_section(result: Result, figures: Path) -> str:
    machine, rows, batch = result["machine"], result["rows"], result["batch"]
    picture = figures / f"constrained-{machine['name']}.png"
    plot_ratios(rows, f"{machine['model']}, {machine['vectors']}", picture)
    lines = [timing_line(found, row, batch) for found in rows for row in found["methods"]]
    dense = [name for name in rows[0]["us"] if name not in rows[0]["peers"]]
    peers = []
    for found in rows:
        lcaba = found["peers"].get("lcaba")
        cells = [number(found["us"]["lcaba"]), f"{lcaba['reached']}", errors(lcaba)] if lcaba else ["", "", ""]
        times = (found["us"][name] for name in dense)
        peers.append([title(found["case"]), number(found["us"]["pin"]), *cells, *map(number, times)])
    short = [found for found in rows if found["timed"] < batch]
    singular, out = sum(found["singular"] for found in short), sum(batch - found["timed"] for found in short)
    text = f"## Constrained dynamics: {machine['model']}, {machine['vectors']}\n\n{circumstances(result)}\n"
    text += f"![times faster than Pinocchio](figures/{picture.name})\n\n"
    text += (
        f"PS Figs. 4, 5 and 8, CA Table II and Fig. 2. Both libraries iterate until at most {result['tolerance']:g} m/s^2 "
        "(rad/s^2) is left of every row of the constraints: ours with default settings, `pin.constraintDynamics` with mu = "
        f"{result['peer_mu']['pin']:g}, that of its examples. Timed are the same samples on both sides, those of a batch of "
        f"{batch} random ones on which both libraries, by all methods, get there. Left out in all cases together: {out}, "
        f"of which {singular} nearly singular. How to read a row:\n\n"
        "- *pin*, *one call*: microseconds a call, the mean over these samples; *f64*, *f32*: a sample of a batch of them, "
        "on one core; in brackets how many times faster than `pin`. In f32 a time is by the samples whose status is "
        "CONVERGED, the others count for nothing; `prox_ltl`, `prox_ltls` and `prox_pv` compute in f64 there.\n"
        "- *wanted*: what the project set itself for one call and for packets.\n"
        "- *iterations*: their mean, `pin`, f64, f32.\n"
        f"- *reached*: on how many of {batch} samples `pin` and ours in f64 get there; how many of those timed are "
        f"CONVERGED in f32. {MISSED} marks what did not get there on some.\n"
        "- *errors* are of accelerations, relative, against a dense solution of the KKT system in f64: median (largest).\n\n"
    )
    columns = ["case, method", "nv, nm", "pin", "one call", "f64", "f32", "wanted", "iterations", "reached"]
    text += table([*columns, "error pin", "error f64", "error f32"], lines)
    text += (
        f"\nThe peers [us]: `pin.lcaba` for loops, at mu = {result['peer_mu']['lcaba']:g}, on how many samples it gets "
        "there and its errors; SciPy's factorisations of matrices that were made before, with one solve but for LDL.\n\n"
    )
    return text + table(["case", "constraintDynamics", "lcaba", "reached", "error", *dense], peers)


def plot_ratios(rows: list[Result], heading: str, file: Path) -> None:
    """Bars for every case and method: how many times faster than Pinocchio."""
    methods = list(dict.fromkeys(row["method"] for found in rows for row in found["methods"]))
    figure, panels = plt.subplots(2, 1, figsize=(15, 9), sharex=True, layout="constrained")
    places, width = np.arange(len(rows)), 0.84 / len(methods)
    for panel, (form, label) in zip(panels, (("one", "one call"), ("f64", "packets f64, a core")), strict=True):
        for k, method in enumerate(methods):
            by = [{row["method"]: row["ratio"][form] for row in found["methods"]} for found in rows]
            heights = [each.get(method, np.nan) for each in by]
            panel.bar(
                places + (k - len(methods) / 2 + 0.5) * width, heights, width, color=COLOURS[method], label=method
            )
        panel.axhline(1.0, color="black", linewidth=0.8, linestyle="--")
        panel.set_ylabel(f"times faster than pin, {label}")
        panel.set_xticks(places, [CASES[found["case"]].title for found in rows], rotation=60, ha="right", fontsize=8)
        plain(panel)
    panels[0].margins(y=0.2)
    panels[0].legend(frameon=False, fontsize=9, ncols=len(methods), loc="upper left")
    figure.suptitle(f"constrained dynamics beside Pinocchio, {heading} (dashed: as fast)", fontsize=12)
    save(figure, file)


# ----------------------------------------------------------------------------------------------------------- precision


def precision_section(result: Result, figures: Path) -> str:
    by: dict[str, list[Result]] = {}
    for row in result["rows"]:
        by.setdefault(row["problem"], []).append(row)
    methods = list(dict.fromkeys(row["method"] for row in result["rows"]))
    lines = []
    for problem, rows in by.items():
        found = {row["method"]: precision_cell(row, result["states"]) for row in rows}
        wrong = sum(row["wrong"] for row in rows)
        name = title(problem) if problem in CASES else problem
        lines.append([name, str(rows[0]["known"]), *(found.get(method, "") for method in methods), str(wrong)])
    where = result.get("device") or f"{result['machine']['model']}, {result['machine']['vectors']}"
    text = f"## What float32 reaches: {where}\n\n{circumstances(result)}\n"
    text += (
        f"Constrained dynamics of float32 arrays by default settings, {result['states']} random states of every problem: "
        "the share of samples with status CONVERGED, and the largest error of an acceleration among these (relative to the "
        "largest acceleration or that of gravity, against float64 on the same inputs). How to read it: a sample that is "
        f"CONVERGED is right to {WANTED:g}, of any other one the status says why it may not be; *wrong* counts the samples "
        "that break this promise, and must be 0. *known* are the samples on which float64 has converged to "
        "1e-12, the only ones that errors are known of. A row's promise is empty where no sample is CONVERGED "
        f"({MISSED}). Only `constrained_aba` and `loop_aba` compute in float32; `prox_ltl`, `prox_ltls`, `prox_pv` and "
        "`kkt` turn such arrays into float64.\n\n"
    )
    return text + table(["problem", "known", *(f"`{method}`" for method in methods), "wrong"], lines)


def precision_cell(row: Result, states: int) -> str:
    """The share that is CONVERGED, and its largest error."""
    share = row["statuses"][0] / states
    return f"{share:.1%}, {row['largest_converged']:.0e}" if share else f"0 % {MISSED}"
