"""The Delassus matrix and the operational-space inertia matrix by every method: CA Table III, PS Figs. 6 and 7.

    python -m benchmarks.osim [--cases talos38:F6^2H6^2] [--methods ltl,caba] [--quick] [--output FILE]

| matrix | ours | Pinocchio's |
|---|---|---|
| delassus | J M^-1 J^T | `computeDelassusMatrix`; `cholesky`: the factors of the KKT matrix, and the matrix from them |
| osim | (J M^-1 J^T + mu)^-1 | `cholesky` likewise; `computeDampedDelassusMatrixInverse` |

Ratios are to the faster one of those that are right: from Python, `computeDampedDelassusMatrixInverse` of Pinocchio 4.1.0
answers with 1 / mu on the diagonal, since what it needs to be told of the constraints before cannot be called. Methods that
give factors are timed as they are (`caba_f`, `pv_f`), without the product of the factors. Times are of one call and of a
sample of a batch of 64 on one thread. Errors are relative to NumPy's inverse of Pinocchio's Delassus matrix.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl
from benchmarks.contacts import FAMILIES, SEQUENCES, Case, states
from benchmarks.measure import Timed, best_times, circumstances, write
from benchmarks.peer_constraints import VERSION, ConstrainedPeer
from benchmarks.robots import chosen, pinocchio_model
from saltus.constraints.dynamics import OSIM_METHODS

BATCH, MU = 64, 1e-5
CASES = {case.name: case for case in (*SEQUENCES, *FAMILIES)}
FACTORED = {"pv_f", "caba_f"}
RIGHT = 1e-6  # relative error


def ours(dynamics: sl.ConstrainedDynamics, matrix: str, method: str) -> Callable[..., Any]:
    """A function of q."""
    if matrix == "delassus":
        return partial(dynamics.delassus, method=method)
    return partial(dynamics.osim_factors if method in FACTORED else dynamics.osim, method=method)


def able(matrix: str, methods: list[str]) -> list[str]:
    return [name for name in methods if matrix == "osim" or OSIM_METHODS[name].delassus is not None]


def theirs(peer: ConstrainedPeer, matrix: str) -> dict[str, Callable[..., Any]]:
    """Functions of q."""
    if matrix == "delassus":
        return {"delassus": peer.delassus, "cholesky": partial(peer.by_cholesky, mu=0.0, inverse=False)}
    return {
        "damped inverse": partial(peer.damped_inverse, mu=MU),
        "cholesky": partial(peer.by_cholesky, mu=MU, inverse=True),
    }


def relative_error(matrix: Any, right: Any) -> float:
    matrix = getattr(matrix, "matrix", matrix)  # of factors
    size = np.abs(right).max((-2, -1))
    return float((np.abs(matrix - right).max((-2, -1)) / size).max())


def measure(case: Case, matrix: str, methods: list[str], repeats: int, seconds: float) -> dict[str, Any]:
    """One case and matrix: times [us] and errors of all."""
    model, held = case.model, case.constraints
    q = states(model, BATCH)["q"]
    one = np.ascontiguousarray(q[0])
    dynamics = sl.ConstrainedDynamics(model, held, mu=MU)
    peer = ConstrainedPeer(pinocchio_model(case.robot), held)
    nm = sum(constraint.dim for constraint in held)
    right = np.array([peer.delassus(each).copy() for each in q])
    if matrix == "osim":
        right = np.linalg.inv(right + MU * np.eye(nm))
    peers, functions = theirs(peer, matrix), {name: ours(dynamics, matrix, name) for name in able(matrix, methods)}
    calls = {name: Timed(partial(call, one)) for name, call in peers.items()}
    for name, call in functions.items():
        calls[f"{name}, one"] = Timed(partial(call, one))
        calls[f"{name}, f64"] = Timed(partial(call, q), partial(sl.set_threads, 1))
    times = best_times(calls, repeats, seconds)
    us = {name: 1e6 * time / (BATCH if name.endswith("f64") else 1) for name, time in times.items()}
    errors = {name: relative_error(call(one), right[0]) for name, call in peers.items()}
    best = min(us[name] for name in peers if errors[name] < RIGHT)
    return {
        "case": case.name,
        "matrix": matrix,
        "nv": model.nv,
        "nm": nm,
        "us": {name: us[name] for name in peers},
        "error": errors,
        "methods": [
            {
                "method": name,
                "us": {form: us[f"{name}, {form}"] for form in ("one", "f64")},
                "ratio": {form: best / us[f"{name}, {form}"] for form in ("one", "f64")},
                "error": relative_error(call(q), right),
            }
            for name, call in functions.items()
        ],
    }


def lines(found: dict[str, Any]) -> list[str]:
    """A case as rows of text."""
    title = f"{CASES[found['case']].title:22}{found['nv']:4}{found['nm']:4}  {found['matrix']:9}"
    peers = ", ".join(f"{name} {time:.2f} us (error {found['error'][name]:.0e})" for name, time in found["us"].items())
    text = [f"{title}pin: {peers}"]
    for row in found["methods"]:
        cells = "".join(f"{row['us'][form]:8.2f}{row['ratio'][form]:7.2f}" for form in ("one", "f64"))
        text.append(f"{title}{row['method']:8}{cells}{row['error']:9.0e}")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description="Delassus and operational-space inertia matrices, beside Pinocchio's.")
    parser.add_argument("--cases", default="", help="comma-separated: " + ", ".join(CASES))
    parser.add_argument("--methods", default="", help="comma-separated: " + ", ".join(OSIM_METHODS))
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--milliseconds", type=float, default=4.0, help="that a call is timed for in each repeat")
    parser.add_argument("--quick", action="store_true", help="to see that it works: the figures mean nothing")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    if options.quick:
        options.repeats, options.milliseconds = 2, 0.2
    methods = chosen(options.methods, OSIM_METHODS)

    result = circumstances("benchmarks.osim")
    result["versions"]["pin"] = VERSION
    result |= {"batch": BATCH, "mu": MU, "rows": []}
    machine = result["machine"]
    print(f"{machine['model']}, {machine['vectors']}; pin {VERSION}; mu = {MU:g}\n")
    print(f"{'case':22}{'nv':>4}{'nm':>4}  {'matrix':9}{'method':8}{'one':>8}{'x':>7}{'f64':>8}{'x':>7}{'error':>9}")
    for name in chosen(options.cases, CASES):
        for matrix in ("delassus", "osim"):
            found = measure(CASES[name], matrix, methods, options.repeats, options.milliseconds * 1e-3)
            result["rows"].append(found)
            print("\n".join(lines(found)), flush=True)
    if options.output or not (options.quick or options.cases or options.methods):
        write(result, options.output, f"osim-{machine['name']}.json")


if __name__ == "__main__":
    main()
