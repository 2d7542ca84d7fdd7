"""Constrained dynamics by every method, beside Pinocchio and SciPy: PS Figs. 4, 5 and 8, CA Table II and Fig. 2.

    python -m benchmarks.constrained [--cases solo12:F3^4] [--methods constrained_aba] [--quick] [--output FILE]

All iterate three times, whatever is left of the constraints.

| column | what it is |
|---|---|
| pin, one | one call from Python, contiguous float64 arrays in; `pin.constraintDynamics` |
| f64, f32 | time a sample of a batch of 256 on one thread |
| x | how many times faster than `pin` |
| error | of accelerations in f64, relative, against Pinocchio's after as many iterations as it needs; in f32 beside it |

For loops, `pin.lcaba` stands beside. SciPy factors and solves once with a matrix that is made elsewhere: the dense KKT
matrix (LU; LDL^T without the solve), the dense M + J^T J / mu (Cholesky), the sparse KKT matrix (LU).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl
from benchmarks.contacts import CASES, Case, iterating, largest_difference, states
from benchmarks.measure import Timed, best_times, circumstances, write
from benchmarks.peer_constraints import VERSION, ConstrainedPeer
from benchmarks.robots import chosen, pinocchio_model
from saltus.arrays import Array
from saltus.constraints.dynamics import METHODS
from saltus.constraints.system import _constrained_system

BATCH, ITERATIONS = 256, 3
MU, MU_SINGLE = 1e-5, 1e-2
"""Single precision cannot bear the smaller one."""


def factorisations(dynamics: sl.ConstrainedDynamics, one: dict[str, Array]) -> dict[str, Callable[[], Any]]:
    """SciPy's factorisations at a sample; none on a machine without SciPy."""
    try:
        from scipy.linalg import cho_factor, cho_solve, ldl, lu_factor, lu_solve
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import splu
    except ModuleNotFoundError:
        return {}
    nc, nm = len(dynamics.constraints), sum(constraint.dim for constraint in dynamics.constraints)
    inputs = (one["q"], one["v"], one["tau"], np.ones(nc), np.zeros(nm), np.zeros((0, dynamics.model.nv)))
    M, rest, J, goal = _constrained_system.call(dynamics.problem, inputs)
    kkt, right = np.block([[M, J.T], [J, -MU * np.eye(nm)]]), np.concatenate([rest, goal])
    sparse = csc_array(kkt)
    augmented, pushed = M + J.T @ J / MU, rest + J.T @ goal / MU

    return {
        "dense LDL": lambda: ldl(kkt, check_finite=False),
        "dense LU": lambda: lu_solve(lu_factor(kkt, check_finite=False), right, check_finite=False),
        "dense Cholesky": lambda: cho_solve(cho_factor(augmented, check_finite=False), pushed, check_finite=False),
        "sparse LU": lambda: splu(sparse).solve(right),
    }


def measure(case: Case, methods: list[str], repeats: int, seconds: float) -> dict[str, Any]:
    """One case: the peers' times [us], and a row for every method."""
    model, held = case.model, case.constraints
    many = states(model, BATCH)
    one = {name: np.ascontiguousarray(value[0]) for name, value in many.items()}
    single = {name: value.astype(np.float32) for name, value in many.items()}
    peer = ConstrainedPeer(pinocchio_model(case.robot), held)
    right = peer.solve_all(**many, settings=peer.settings(1e-13, MU, 200))[0]
    settings = peer.settings(0.0, MU, ITERATIONS)
    alone = partial(sl.set_threads, 1)

    def prepared(method: str, mu: float) -> sl.ConstrainedDynamics:
        return sl.ConstrainedDynamics(model, held, method, mu=mu, tolerance=0.0, most_iterations=ITERATIONS)

    calls = {"pin": Timed(partial(peer.solve, **one, settings=settings))}
    errors: dict[str, dict[str, float]] = {
        "pin": {"f64": largest_difference(peer.solve_all(**many, settings=settings)[0], right)}
    }
    if case.has_loops:
        peer.order_for_lcaba()
        calls["lcaba"] = Timed(partial(peer.lcaba, **one, settings=settings))
        found = np.array([peer.lcaba(*each, settings).copy() for each in zip(*many.values(), strict=True)])
        errors["lcaba"] = {"f64": largest_difference(found, right)}
    for method in methods:
        double, coarse = prepared(method, MU), prepared(method, MU_SINGLE)
        calls[f"{method}, one"] = Timed(partial(double.solve, **one))
        calls[f"{method}, f64"] = Timed(partial(double.solve, **many), alone)
        calls[f"{method}, f32"] = Timed(partial(coarse.solve, **single), alone)
        solution = double.solve(**many)
        errors[method] = {"f64": largest_difference(solution.a, right), "residual": float(solution.residual.max())}
        errors[method]["f32"] = largest_difference(coarse.solve(**single).a, right)
    dense = factorisations(prepared(methods[0], MU), one)
    calls |= {name: Timed(call) for name, call in dense.items()}

    times = best_times(calls, repeats, seconds)
    us = {name: 1e6 * time / (BATCH if name.endswith(("f64", "f32")) else 1) for name, time in times.items()}
    peers = {name: us[name] for name in ("pin", "lcaba", *dense) if name in us}
    rows = []
    for method in methods:
        own = {form: us[f"{method}, {form}"] for form in ("one", "f64", "f32")}
        ratio = {form: us["pin"] / time for form, time in own.items()}
        rows.append({"method": method, "us": own, "ratio": ratio, "error": errors[method]})
    return {
        "case": case.name,
        "nv": model.nv,
        "nm": sum(constraint.dim for constraint in held),
        "wanted": case.wanted,
        "us": peers,
        "error": {name: errors[name]["f64"] for name in ("pin", "lcaba") if name in errors},
        "methods": rows,
    }


def lines(found: dict[str, Any]) -> list[str]:
    """A case as rows of text."""
    case, text = CASES[found["case"]], []
    for row in found["methods"]:
        cells = f"{case.title:22}{found['nv']:4}{found['nm']:4}  {row['method']:17}{found['us']['pin']:8.2f}"
        cells += "".join(f"{row['us'][form]:8.2f}{row['ratio'][form]:7.2f}" for form in ("one", "f64", "f32"))
        cells += f"{row['error']['f64']:9.0e}{row['error']['f32']:8.0e}"
        if case.wanted and row["method"] == "constrained_aba":
            met = all(row["ratio"][form] >= x for form, x in zip(("one", "f64"), case.wanted, strict=True))
            cells += f"  wanted {case.wanted[0]:g} x, {case.wanted[1]:g} x: {'met' if met else 'MISSED'}"
        text.append(cells)
    others = {name: time for name, time in found["us"].items() if name != "pin"}
    text.append(" " * 32 + ", ".join(f"{name} {time:.1f} us" for name, time in others.items()))
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description="Constrained dynamics by every method, beside Pinocchio and SciPy.")
    parser.add_argument("--cases", default="", help="comma-separated: " + ", ".join(CASES))
    parser.add_argument("--methods", default="", help="comma-separated: " + ", ".join(METHODS))
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--milliseconds", type=float, default=4.0, help="that a call is timed for in each repeat")
    parser.add_argument("--quick", action="store_true", help="to see that it works: the figures mean nothing")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    if options.quick:
        options.repeats, options.milliseconds = 2, 0.2
    methods = chosen(options.methods, METHODS)

    result = circumstances("benchmarks.constrained", "scipy")
    result["versions"]["pin"] = VERSION
    result |= {"batch": BATCH, "iterations": ITERATIONS, "mu": MU, "mu_single": MU_SINGLE, "rows": []}
    machine = result["machine"]
    print(f"{machine['model']}, {machine['vectors']}; pin {VERSION}; {ITERATIONS} iterations, mu = {MU:g}\n")
    print(
        f"{'case':22}{'nv':>4}{'nm':>4}  {'method':17}{'pin':>8}{'one':>8}{'x':>7}{'f64':>8}{'x':>7}{'f32':>8}{'x':>7}"
        f"{'error':>9}{'f32':>8}   [us; us a sample]"
    )
    for name in chosen(options.cases, CASES):
        able = [method for method in iterating(CASES[name]) if method in methods]
        if not able:
            continue
        found = measure(CASES[name], able, options.repeats, options.milliseconds * 1e-3)
        result["rows"].append(found)
        print("\n".join(lines(found)), flush=True)
    whole = not (options.quick or options.cases or options.methods)
    if whole or options.output:
        write(result, options.output, f"constrained-{machine['name']}.json")


if __name__ == "__main__":
    main()
