"""The page of the documentation on lifting, and its figures, from `results/lifting.json`.

    python -m benchmarks.plot_lifting [--results FOLDER] [--docs FOLDER]

Writes `docs/lifting.md`, `docs/figures/lifting.png` and `docs/figures/lifting-convergence.png`. No figure on the page is
written by hand.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lifting import LOADS, MODES, TOLERANCES
from benchmarks.measure import RESULTS
from benchmarks.plot import circumstances, number, plt, save, table
from examples.human import human
from examples.lifting import HASTE, WEIGHT, draw

STYLES = {
    "analytical": {"color": "#2f6fb7", "linewidth": 2.5},
    "ad": {"color": "#e08a1e", "linewidth": 1.2, "linestyle": "--"},
    "fd": {"color": "#c0504d", "linewidth": 1.2},
}
SHOWN = 60
"""Iterations in the figure: what comes after is more of the same."""

PAGE = """# Lifting a weight

<!-- Made by `python -m benchmarks.plot_lifting` from benchmarks/results; do not edit. -->

A human of eight degrees of freedom in the sagittal plane bends down, takes a weight, and lifts it: optimal control with two
phases, after section 4.3 of *Efficient derivative evaluation for rigid-body dynamics based on recursive algorithms subject
to kinematic and loop constraints* (DR).

![The human at six times of each phase](figures/lifting.png)

```sh
python -m examples.lifting --load 10    # needs casadi
```

The pelvis floats, and the soles are held on the ground by a constraint, so accelerations come from
`ConstrainedDynamics.solve`, and their derivatives from `ConstrainedDynamics.derivatives`. Forces on the soles come along;
they may push only, so their derivatives are needed, too. The effort is minimised, and the time:

    minimise     sum over both phases of  T int_0^1 ({haste:g} + |tau / limit|^2) ds
    subject to   dq/ds = T v,   dv/ds = T a(q, v, tau),   heel(q, v, tau) >= 0,   toe(q, v, tau) >= 0,
                 limits of joints and torques, the hand in front of the legs,
                 standing -> hand at the weight, at rest -> standing, with the weight at the elbow's height

All states and torques are unknowns at once ({unknowns} with {intervals} intervals a phase; Hermite-Simpson collocation), and
IPOPT is the solver. All nodes of a phase are one batch of `saltus`. `examples/human.py` is the human, `examples/lifting.py`
the programme, `examples/interior_point.py` the way to IPOPT, for any programme whose functions are Python's.

## Exact derivatives, or differences

{circumstances}
Three weights. All runs of a weight have the same start, and differ by the mode of the dynamics' derivatives alone. Second
derivatives are central differences of first ones in all of them, with a step of 1e-2: wide enough for first ones that are
differences themselves. Forward differences are taken of one input at a time, with the step that fits it. IPOPT's own
tolerance is 1e-8.

{table}
The error is the largest entry of the gradient of the Lagrangian, unscaled, by exact derivatives in all rows. Times [s] are
of one run, all in all. In short:

{verdict}

![Distance to the last iterate against the iteration](figures/lifting-convergence.png)

As DR Fig. 3: the distance of each iterate to the last one of its own run, to a tolerance of {tightest:.0e}.
"""


def verdict(rows: list[dict[str, Any]]) -> str:
    """What the table says, from its numbers."""
    by = {(row["load"], row["tolerance"], row["mode"]): row for row in rows}
    lines = []
    for tolerance in TOLERANCES:
        exact = [by[load, tolerance, MODES[0]] for load in LOADS]
        rough = [by[load, tolerance, "fd"] for load in LOADS]
        counts = ", ".join(str(row["iterations"]) for row in exact)
        others = ", ".join(str(row["iterations"]) if row["solved"] else "not reached" for row in rough)
        lines.append(
            f"- tolerance {tolerance:.0e}: {counts} iterations with exact derivatives; {others} with differences"
        )
    return "\n".join(lines)


def rows_of(rows: list[dict[str, Any]]) -> list[list[str]]:
    return [
        [
            f"{row['load']:g} kg, {row['tolerance']:.0e}, `{row['mode']}`",
            str(row["iterations"]) if row["solved"] else f"not reached, {row['iterations']}",
            f"{row['error']:.0e}", f"{row['cost']:.6f}", number(row["seconds"]),
        ]
        for row in rows
    ]  # fmt: skip


def plot_convergence(rows: list[dict[str, Any]], file: Path) -> None:
    figure, panels = plt.subplots(1, len(LOADS), figsize=(13, 4.2), sharey=True, layout="constrained")
    for axes, load in zip(panels, LOADS, strict=True):
        for row in rows:
            if row["load"] == load and "distances" in row:
                distances = np.array(row["distances"][:-1])  # the last one is zero
                label = f"{row['mode']}: {row['iterations'] if row['solved'] else 'not reached'}"
                axes.semilogy(distances[: SHOWN + 1], label=label, marker=".", markersize=4.0, **STYLES[row["mode"]])
        axes.set(title=f"{load:g} kg", xlabel="iteration k", xlim=(0, SHOWN))
        axes.legend(title="iterations", frameon=False)
        axes.grid(True, linewidth=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("$|x_k - x^*|$")
    save(figure, file)


def plot_motion(row: dict[str, Any], file: Path) -> None:
    figure, panels = plt.subplots(1, 2, figsize=(13, 3.4), sharey=True, layout="constrained")
    for axes, q, T, weight, name in zip(
        panels, row["motion"], row["durations"], (WEIGHT, None), ("bending", "lifting"), strict=True
    ):
        draw(axes, human(row["load"]), np.array(q), weight)
        axes.set_title(f"{name} ({row['load']:g} kg), {T:.2f} s")
    panels[1].set_ylabel("")
    save(figure, file)


def main() -> None:
    parser = argparse.ArgumentParser(description="The page on lifting, and its figures.")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--docs", type=Path, default=Path(__file__).parents[1] / "docs")
    options = parser.parse_args()
    result = json.loads((options.results / "lifting.json").read_text())
    rows = result["rows"]
    plot_convergence(rows, options.docs / "figures" / "lifting-convergence.png")
    heaviest = next(row for row in reversed(rows) if "motion" in row)
    plot_motion(heaviest, options.docs / "figures" / "lifting.png")
    page = PAGE.format(
        unknowns=result["unknowns"],
        intervals=result["intervals"],
        circumstances=circumstances(result),
        table=table(["weight, tolerance, mode", "iterations", "error", "cost", "time"], rows_of(rows)),
        verdict=verdict(rows),
        tightest=TOLERANCES[-1],
        haste=HASTE,
    )
    (options.docs / "lifting.md").write_text(page)
    print(f"wrote {options.docs / 'lifting.md'}")


if __name__ == "__main__":
    main()
