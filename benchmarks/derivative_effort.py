"""What directional derivatives cost, in evaluations of the function itself: DR Fig. 2, a pendulum of ten links.

    python -m benchmarks.derivative_effort [--quick] [--output FILE]

DR: see derivative_errors.py. Everything is one call of a public function with one sample: `sl.aba(...)` and its like for an
evaluation, `sl.jvp(...)` for the derivative along 1 to 30 directions of all inputs. The tip of the pendulum is held as a
point in its plane for constrained dynamics. `jacobian` is the analytical derivative alone: all directions that there are,
without products.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl
from benchmarks.measure import Timed, best_times, circumstances, write

LINKS, MODES, MOST = 10, ("fd", "fdc", "ad", "analytical"), 30


def pendulum() -> Any:
    builder, parent, placement = sl.ModelBuilder("pendulum"), 0, np.eye(4)
    for k in range(LINKS):
        parent = builder.add_joint(f"joint {k}", "revolute", parent=parent, axis=(0, 1, 0), placement=placement)
        builder.add_body(parent, mass=1.0, com=(0.0, 0.0, -0.5), inertia=np.diag([0.1, 0.1, 0.01]))
        placement = np.eye(4)
        placement[2, 3] = -1.0
    builder.add_frame("tip", parent, placement)
    return builder.build()


def functions(model: Any) -> dict[str, tuple[Callable[..., Any], Any, int]]:
    """(function, model, number of inputs) by the paper's names."""
    held = [sl.Contact(model, "tip", rows=(0, 2))]
    solve = sl.ConstrainedDynamics.solve
    return {
        "CRBA": (sl.crba, model, 1),
        "NEFF": (sl.nonlinear_effects, model, 2),
        "RNEA": (sl.rnea, model, 3),
        "ABA": (sl.aba, model, 3),
        "constrained, constrained_aba": (solve, sl.ConstrainedDynamics(model, held, "constrained_aba"), 3),
        "constrained, prox_ltl": (solve, sl.ConstrainedDynamics(model, held, "prox_ltl"), 3),
    }


def measured(name: str, directions: list[int], repeats: int, seconds: float) -> dict[str, Any]:
    """Times [us] of an evaluation and of each mode, for so many directions."""
    model, rng = pendulum(), np.random.default_rng(0)
    function, target, given = functions(model)[name]
    inputs = tuple(rng.uniform(-np.pi, np.pi, (3, LINKS))[:given])
    calls = {"evaluation": Timed(lambda: function(target, *inputs))}
    for p in directions:
        slopes = tuple(rng.normal(size=(3, LINKS) if p == 1 else (3, p, LINKS))[:given])
        for mode in MODES:
            calls[f"{mode} {p}"] = Timed(lambda s=slopes, m=mode: sl.jvp(function, target, inputs, s, mode=m))
    calls["jacobian"] = Timed(lambda: sl.jacobian(function, target, inputs, mode="analytical"))
    times = {call: 1e6 * time for call, time in best_times(calls, repeats, seconds).items()}
    modes = {mode: [times[f"{mode} {p}"] for p in directions] for mode in MODES}
    return {"algorithm": name, "evaluation": times["evaluation"], "us": modes, "jacobian": times["jacobian"]}


def main() -> None:
    parser = argparse.ArgumentParser(description="What directional derivatives cost.")
    parser.add_argument("--quick", action="store_true", help="to see that it works: few directions, short")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    directions = [1, 2, 5] if options.quick else [*range(1, 13), 14, 16, 17, 20, 24, 25, MOST]
    repeats, seconds = (3, 0.001) if options.quick else (15, 0.004)
    rows = []
    for name in functions(pendulum()):
        row = measured(name, directions, repeats, seconds)
        rows.append(row)
        print(f"\n{name}: {row['evaluation']:.2f} us an evaluation; evaluations that derivatives cost")
        print(f"{'directions':12}" + "".join(f"{p:7}" for p in directions))
        for mode, times in row["us"].items():
            print(f"{mode:12}" + "".join(f"{time / row['evaluation']:7.1f}" for time in times))
        over = [
            p for p, time in zip(directions, row["us"]["ad"], strict=True) if time > (1 + 1.5 * p) * row["evaluation"]
        ]
        print(f"ad above 1 + 1.5 p at: {over or 'none'}")
        triples = zip(directions, row["us"]["analytical"], row["us"]["fd"], strict=True)
        above = [p for p, ours, other in triples if ours > min(other, (1 + p) * row["evaluation"])]
        print(f"analytical above fd, or above 1 + p, at: {above or 'none'}")
        print(f"the whole analytical Jacobian: {row['jacobian'] / row['evaluation']:.1f}")
    result = circumstances("benchmarks.derivative_effort") | {"links": LINKS, "directions": directions, "rows": rows}
    if options.output or not options.quick:
        write(result, options.output, f"derivative-effort-{result['machine']['name']}.json")


if __name__ == "__main__":
    main()
