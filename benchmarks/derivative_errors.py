"""How exact derivatives are: DR Fig. 1, against Lagrange's equations differentiated symbolically.

    python -m benchmarks.derivative_errors [--quick] [--output FILE]

DR is M. Kudruss, P. Manns, C. Kirches, *Efficient derivative evaluation for rigid-body dynamics based on recursive
algorithms subject to kinematic and loop constraints* (2019). A cart-pendulum in minimal coordinates and with constraints
(cart_pendulum.py), 10 000 uniform samples of all inputs in [-pi, pi], three times as many random directions as there are
degrees of freedom. The error of a sample is the largest of all entries of its slopes, relative to the largest slope (to 1
if that is less).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl
from benchmarks.cart_pendulum import Case, cases, exact_slopes
from benchmarks.measure import circumstances, write
from saltus.arrays import Array

MODES = ("fd", "fdc", "ad", "analytical")
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def errors(case: Case, samples: int) -> dict[str, Array]:
    """Of each mode that the function has, (samples,)."""
    rng = np.random.default_rng(0)
    model = case.model if isinstance(case.model, sl.Model) else case.model.model
    inputs = tuple(rng.uniform(-np.pi, np.pi, (3, samples, model.nv))[: case.given])
    directions = tuple(rng.normal(size=(3, samples, 3 * model.nv, model.nv))[: case.given])
    exact = exact_slopes(case, inputs, directions)
    scale, found = np.maximum(np.abs(exact).max((1, 2)), 1.0), {}
    for mode in MODES:
        try:
            _, slopes = sl.jvp(case.function, case.model, inputs, directions, mode=mode)
        except ValueError as error:
            print(f"  {error}")
            continue
        parts = slopes if isinstance(slopes, tuple) else (slopes,)
        ours = np.concatenate([part.reshape(*part.shape[:2], -1) for part in parts], -1)
        found[mode] = np.abs(ours - exact).max((1, 2)) / scale
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="How exact derivatives are.")
    parser.add_argument("--quick", action="store_true", help="to see that it works: few samples")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    samples = 200 if options.quick else 10_000
    rows: list[dict[str, Any]] = []
    for constrained in (False, True):
        model = "with constraints" if constrained else "in minimal coordinates"
        print(f"\ncart-pendulum {model}, {samples} samples: median (largest) error")
        for case in cases(constrained):
            found = errors(case, samples)
            quantiles = {mode: np.quantile(each, QUANTILES).tolist() for mode, each in found.items()}
            rows.append({"model": model, "algorithm": case.name, "quantiles": quantiles})
            print(f"{case.name:30}" + "".join(f"{mode:>12}{q[3]:8.0e} ({q[-1]:.0e})" for mode, q in quantiles.items()))
    result = circumstances("benchmarks.derivative_errors", "casadi")
    if options.output or not options.quick:
        write(
            result | {"samples": samples, "quantiles": QUANTILES, "rows": rows},
            options.output,
            "derivative-errors.json",
        )


if __name__ == "__main__":
    main()
