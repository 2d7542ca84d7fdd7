"""Constrained dynamics by every method, beside Pinocchio and SciPy: PS Figs. 4, 5 and 8, CA Table II and Fig. 2.

    python -m benchmarks.constrained [--cases solo12:F3^4] [--methods constrained_aba] [--quick] [--output FILE]

All iterate until at most `TOLERANCE` is left of the constraints, ours with default settings, Pinocchio with the mu of its
examples. Only samples on which everybody gets there are timed, the same for all.

| column | what it is |
|---|---|
| pin, one | one call from Python, contiguous float64 arrays in; `pin.constraintDynamics`; mean over the samples |
| f64, f32 | time a sample of the batch on one thread; in f32 by those that are CONVERGED |
| x | how many times faster than `pin` |
| iterations | mean, of `pin` and ours |
| reached | how many samples of a batch of 256 get there: `pin`, ours; in f32, how many of those timed are CONVERGED |
| error | of accelerations, relative, against the dense KKT system in f64: median (largest); for f32, of CONVERGED ones |

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
from benchmarks.contacts import CASES, Case, Problem, iterating, relative_errors
from benchmarks.measure import Timed, best_times, circumstances, write
from benchmarks.peer_constraints import VERSION, ConstrainedPeer
from benchmarks.robots import chosen, pinocchio_model
from saltus.arrays import Array
from saltus.constraints.dynamics import METHODS
from saltus.constraints.system import _constrained_system

BATCH, MOST_ITERATIONS = 256, 50
TOLERANCE = 1e-9
"""On the largest row of what is left of the constraints [m/s^2, rad/s^2]."""
PEER_MU = {"pin": 1e-10, "lcaba": 1e-6}
"""Of Pinocchio's examples; `lcaba` loses digits to one so small, about 1e-15 / mu."""


def factorisations(dynamics: sl.ConstrainedDynamics, one: dict[str, Array]) -> dict[str, Callable[[], Any]]:
    """SciPy's factorisations at a sample; none on a machine without SciPy."""
    try:
        from scipy.linalg import cho_factor, cho_solve, ldl, lu_factor, lu_solve
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import splu
    except ModuleNotFoundError:
        return {}
    nc, nm, mu = dynamics.problem.nc, dynamics.problem.nm, dynamics.mu
    inputs = (one["q"], one["v"], one["tau"], np.ones(nc), np.zeros(nm), np.zeros((0, dynamics.model.nv)))
    M, rest, J, goal, _ = _constrained_system.call(dynamics.problem, inputs)
    kkt, right = np.block([[M, J.T], [J, -mu * np.eye(nm)]]), np.concatenate([rest, goal])
    sparse = csc_array(kkt)
    augmented, pushed = M + J.T @ J / mu, rest + J.T @ goal / mu

    return {
        "dense LDL": lambda: ldl(kkt, check_finite=False),
        "dense LU": lambda: lu_solve(lu_factor(kkt, check_finite=False), right, check_finite=False),
        "dense Cholesky": lambda: cho_solve(cho_factor(augmented, check_finite=False), pushed, check_finite=False),
        "sparse LU": lambda: splu(sparse).solve(right),
    }


def one_by_one(call: Callable[..., Any], samples: list[tuple[Any, ...]]) -> Timed:
    """A call for each sample."""

    def run() -> None:
        for sample in samples:
            call(*sample)

    return Timed(run)


def outcome(there: Array, counted: Array, iterations: Array, errors: Array) -> dict[str, Any]:
    """How many samples got there; of those that count, the mean of iterations, and errors. None counts, or some do."""
    if not counted.any():
        return {"reached": int(there.sum()), "iterations": None, "median": None, "largest": None}
    return {
        "reached": int(there.sum()),
        "iterations": float(iterations[counted].mean()),
        "median": float(np.median(errors[counted])),
        "largest": float(errors[counted].max()),
    }


def measure(case: Case, methods: list[str], repeats: int, seconds: float) -> dict[str, Any] | None:
    """One case: the peers' times [us] and what they reach, and a row for every method; None if on every sample somebody
    leaves more of the constraints than the tolerance."""
    problem = Problem(case, BATCH)
    model, held = problem.model, problem.held
    dynamics = {m: sl.ConstrainedDynamics(model, held, m, None, TOLERANCE, MOST_ITERATIONS) for m in [*methods, "kkt"]}
    right = dynamics["kkt"].solve(**problem.states).a
    peer = ConstrainedPeer(pinocchio_model(case.robot), held)
    solvers = {"pin": peer.solve}
    if case.has_loops:
        peer.order_for_lcaba()
        solvers["lcaba"] = peer.lcaba
    settings = {name: peer.until(TOLERANCE, PEER_MU[name], MOST_ITERATIONS) for name in solvers}

    a, iterations, there = {}, {}, {}
    for name, solver in solvers.items():
        a[name], iterations[name] = peer.iterations_all(solver, **problem.states, settings=settings[name])
        there[name] = problem.left(a[name]) <= TOLERANCE
    for method in methods:
        solution = dynamics[method].solve(**problem.states)
        a[method], iterations[method] = solution.a, solution.iterations
        there[method] = (solution.status == sl.Status.CONVERGED) & (problem.left(solution.a) <= TOLERANCE)
    timed = np.logical_and.reduce([there[name] for name in ("pin", *methods)])
    if not timed.any():
        return None
    outcomes = {name: outcome(there[name], timed, iterations[name], relative_errors(a[name], right)) for name in there}

    many = {name: value[timed] for name, value in problem.states.items()}
    single = {name: value.astype(np.float32) for name, value in many.items()}
    rounded = dynamics["kkt"].solve(*(value.astype(np.float64) for value in single.values())).a
    samples, alone = list(zip(*many.values(), strict=True)), partial(sl.set_threads, 1)
    calls = {
        name: one_by_one(solver, [(*each, settings[name]) for each in samples]) for name, solver in solvers.items()
    }
    coarse = {}
    for method in methods:
        solve = dynamics[method].solve
        calls[f"{method}, one"] = one_by_one(solve, samples)
        calls[f"{method}, f64"] = Timed(partial(solve, **many), alone)
        calls[f"{method}, f32"] = Timed(partial(solve, **single), alone)
        solution = solve(**single)
        converged = solution.status == sl.Status.CONVERGED
        errors = relative_errors(solution.a, rounded)
        coarse[method] = outcome(converged, converged, solution.iterations, errors)
    dense = factorisations(dynamics[methods[0]], dict(zip(many, samples[0], strict=True)))
    times = best_times(calls | {name: Timed(call) for name, call in dense.items()}, repeats, seconds)

    peers = {name: 1e6 * times[name] / len(samples) for name in solvers}
    rows = []
    for method in methods:
        counts = {"one": len(samples), "f64": len(samples), "f32": coarse[method]["reached"]}
        us = {form: 1e6 * times[f"{method}, {form}"] / count if count else None for form, count in counts.items()}
        ratio = {form: time and peers["pin"] / time for form, time in us.items()}
        rows.append({"method": method, "us": us, "ratio": ratio, "f64": outcomes[method], "f32": coarse[method]})
    return {
        "case": case.name,
        "nv": model.nv,
        "nm": dynamics["kkt"].problem.nm,
        "mu": {name: dynamics["kkt"].mu_in(name) for name in ("float64", "float32")},
        "wanted": case.wanted,
        "timed": len(samples),
        "singular": int((~timed & ~problem.regular).sum()),
        "us": peers | {name: 1e6 * times[name] for name in dense},
        "peers": {name: outcomes[name] for name in solvers},
        "methods": rows,
    }


def cell(value: float | None, form: str) -> str:
    """A number, or a dash of the same width if no sample counted."""
    return format("-", ">" + form[: form.index(".")]) if value is None else format(value, form)


def lines(found: dict[str, Any]) -> list[str]:
    """A case as rows of text."""
    case, text = CASES[found["case"]], []
    for row in found["methods"]:
        peer, ours, coarse = found["peers"]["pin"], row["f64"], row["f32"]
        cells = f"{case.title:22}{found['nv']:4}{found['nm']:4}  {row['method']:17}{found['us']['pin']:8.2f}"
        cells += "".join(
            cell(row["us"][form], "8.2f") + cell(row["ratio"][form], "7.2f") for form in ("one", "f64", "f32")
        )
        cells += f"{peer['iterations']:7.2f}{ours['iterations']:6.2f}" + cell(coarse["iterations"], "6.2f")
        cells += f"{peer['reached']:6}{ours['reached']:5}{found['timed']:5}{coarse['reached']:5}"
        cells += "".join(cell(x["median"], "7.0e") + cell(x["largest"], "7.0e") for x in (peer, ours, coarse))
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
    result |= {"batch": BATCH, "tolerance": TOLERANCE, "peer_mu": PEER_MU, "rows": []}
    machine = result["machine"]
    print(f"{machine['model']}, {machine['vectors']}; pin {VERSION}; until {TOLERANCE:g} is left of the constraints\n")
    print(
        f"{'case':22}{'nv':>4}{'nm':>4}  {'method':17}{'pin':>8}{'one':>8}{'x':>7}{'f64':>8}{'x':>7}{'f32':>8}{'x':>7}"
        f"{'iterations':>19}{'reached':>11}{'timed, f32':>10}{'error: pin':>14}{'f64':>14}{'f32':>14}   [us; us a sample]"
    )
    for name in chosen(options.cases, CASES):
        able = [method for method in iterating(CASES[name]) if method in methods]
        if not able:
            continue
        found = measure(CASES[name], able, options.repeats, options.milliseconds * 1e-3)
        if found is None:
            print(f"{name}: left out, somebody misses the tolerance on every sample", flush=True)
            continue
        result["rows"].append(found)
        print("\n".join(lines(found)), flush=True)
    whole = not (options.quick or options.cases or options.methods)
    if whole or options.output:
        write(result, options.output, f"constrained-{machine['name']}.json")


if __name__ == "__main__":
    main()
