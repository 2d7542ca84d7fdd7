"""Dynamics and their derivatives together, beside Pinocchio: free (ABA), constrained, impacts.

    python -m benchmarks.derivatives [--cases solo12:F3^4] [--quick] [--output FILE]

| column | what it is |
|---|---|
| pin, one | one call from Python for everything: accelerations, forces and their derivatives by q, v and tau |
| f64 | time a sample of a batch of 64 on one thread, into the memory of an earlier result, as Pinocchio does |
| x | how many times faster than `pin` |
| error | of all derivatives in f64, relative to the largest entry of each, against Pinocchio's |

Constrained dynamics iterate three times in both, at mu = 1e-5 for the times; errors are of converged solutions.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl
from benchmarks.contacts import CASES, Case, states
from benchmarks.measure import Timed, best_times, circumstances, write
from benchmarks.peer_constraints import VERSION, ConstrainedPeer, pin
from benchmarks.robots import chosen, pinocchio_model

BATCH, ITERATIONS, MU = 64, 3, 1e-5
WANTED = {"solo12:F3^4": (1.5, 5.0), "talos38:F6^2": (1.5, 5.0)}
"""How many times faster than Pinocchio the issue asks for: one call, packets."""

FIELDS = {
    "da_dq": "ddq_dq", "da_dv": "ddq_dv", "da_dtau": "ddq_dtau",
    "df_dq": "dlambda_dq", "df_dv": "dlambda_dv", "df_dtau": "dlambda_dtau",
}  # fmt: skip


def differentiate(peer: ConstrainedPeer, q: Any, v: Any, tau: Any, settings: Any) -> Any:
    """Pinocchio's accelerations, forces and derivatives; they are in its data."""
    peer.solve(q, v, tau, settings)
    pin.computeConstraintDynamicsDerivatives(peer.model, peer.data, peer.models, peer.datas, settings)
    return peer.data


def largest_error(dynamics: sl.ConstrainedDynamics, peer: ConstrainedPeer, many: dict[str, Any]) -> float:
    """Of all derivatives of all samples."""
    ours, worst = dynamics.derivatives(**many), 0.0
    settings = peer.settings(1e-13, 1e-8, 100)
    for k, each in enumerate(zip(*many.values(), strict=True)):
        data = differentiate(peer, *each, settings)
        for name, theirs in FIELDS.items():
            right = getattr(data, theirs)
            worst = max(worst, float(np.abs(getattr(ours, name)[k] - right).max() / np.abs(right).max()))
    return worst


def measure(case: Case, repeats: int, seconds: float) -> dict[str, Any]:
    many = states(case.model, BATCH)
    one = {name: np.ascontiguousarray(value[0]) for name, value in many.items()}
    peer = ConstrainedPeer(pinocchio_model(case.robot), case.constraints)
    dynamics = sl.ConstrainedDynamics(case.model, case.constraints, mu=MU, tolerance=0.0, most_iterations=ITERATIONS)
    exact = sl.ConstrainedDynamics(case.model, case.constraints, tolerance=1e-12)
    free, model = peer.model.createData(), case.model
    kept = (
        dynamics.derivatives(**many),
        sl.aba_derivatives(model, *many.values()),
        sl.rnea_derivatives(model, *many.values()),
    )
    alone = partial(sl.set_threads, 1)
    calls = {
        "pin": Timed(partial(differentiate, peer, **one, settings=peer.settings(0.0, MU, ITERATIONS))),
        "one": Timed(partial(dynamics.derivatives, **one)),
        "f64": Timed(partial(dynamics.derivatives, **many, out=kept[0]), alone),
        "pin aba": Timed(partial(pin.computeABADerivatives, peer.model, free, *one.values())),
        "aba one": Timed(partial(sl.aba_derivatives, model, *one.values())),
        "aba f64": Timed(partial(sl.aba_derivatives, model, *many.values(), out=kept[1]), alone),
        "pin rnea": Timed(partial(pin.computeRNEADerivatives, peer.model, free, *one.values())),
        "rnea one": Timed(partial(sl.rnea_derivatives, model, *one.values())),
        "rnea f64": Timed(partial(sl.rnea_derivatives, model, *many.values(), out=kept[2]), alone),
    }
    times = best_times(calls, repeats, seconds)
    us = {name: 1e6 * time / (BATCH if name.endswith("f64") else 1) for name, time in times.items()}
    return {
        "case": case.name,
        "nv": case.model.nv,
        "nm": sum(constraint.dim for constraint in case.constraints),
        "wanted": WANTED.get(case.name),
        "us": us,
        "ratio": {form: us["pin"] / us[form] for form in ("one", "f64")},
        "error": largest_error(exact, peer, many),
    }


def line(found: dict[str, Any]) -> str:
    us, ratio = found["us"], found["ratio"]
    text = f"{CASES[found['case']].title:22}{found['nv']:4}{found['nm']:4}"
    text += (
        f"{us['pin']:8.1f}{us['one']:8.1f}{ratio['one']:7.2f}{us['f64']:8.2f}{ratio['f64']:7.2f}{found['error']:9.0e}"
    )
    for name in ("aba", "rnea"):
        text += f"{us[f'pin {name}']:9.1f}{us[f'{name} one']:8.1f}{us[f'{name} f64']:8.2f}"
    if found["wanted"]:
        met = all(ratio[form] >= x for form, x in zip(("one", "f64"), found["wanted"], strict=True))
        text += f"  wanted {found['wanted'][0]:g} x, {found['wanted'][1]:g} x: {'met' if met else 'MISSED'}"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description="Dynamics and their derivatives, beside Pinocchio.")
    parser.add_argument("--cases", default="", help="comma-separated: " + ", ".join(CASES))
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--milliseconds", type=float, default=4.0, help="that a call is timed for in each repeat")
    parser.add_argument("--quick", action="store_true", help="to see that it works: the figures mean nothing")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    if options.quick:
        options.repeats, options.milliseconds = 2, 0.2
    result = circumstances("benchmarks.derivatives")
    result["versions"]["pin"] = VERSION
    result |= {"batch": BATCH, "iterations": ITERATIONS, "mu": MU, "rows": []}
    machine = result["machine"]
    print(f"{machine['model']}, {machine['vectors']}; pin {VERSION}; {ITERATIONS} iterations, mu = {MU:g}\n")
    labels = f"{'case':22}{'nv':>4}{'nm':>4}{'pin':>8}{'one':>8}{'x':>7}{'f64':>8}{'x':>7}{'error':>9}"
    print(labels + "".join(f"{f'pin {x}':>9}{'one':>8}{'f64':>8}" for x in ("aba", "rnea")) + "   [us; us a sample]")
    for name in chosen(options.cases, CASES):
        found = measure(CASES[name], options.repeats, options.milliseconds * 1e-3)
        result["rows"].append(found)
        print(line(found), flush=True)
    if options.output or not (options.quick or options.cases):
        write(result, options.output, f"derivatives-{machine['name']}.json")


if __name__ == "__main__":
    main()
