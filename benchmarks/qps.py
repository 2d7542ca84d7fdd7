"""Whole-body QPs: `sl.fccqp` beside six solvers, one thread, all as accurate.

    python -m benchmarks.qps [--families anymal,talos] [--solvers DAQP,Clarabel] [--quick] [--output FILE]

Inverse dynamics of ANYmal on four points and Talos on eight (tests/control/whole_body_qps.py); each solver by what makes it
fastest (qp_peers.py). A solver is given the loosest tolerance with which the points that it returns pass, or as many as with
any: primal and dual residual and gap, absolute, measured by NumPy, below 1e-6; that is qpbenchmark's rule. The time of a
problem is the best of several calls that hand over all data, factor and solve.

| column | what it is |
|---|---|
| cone | what the solver has for one: a pyramid of four sides lies in its cone |
| from | nothing, or the solution of 1 ms earlier |
| passed | of the problems, at 1e-3, 1e-6 and 1e-9 |
| median, 99.9 % | over problems [µs] |
| x | how many times faster than the best median of peers that start from the same, and of which 98 % pass |

`fccqp f64` are packets: a problem's share of batches of so many on one thread. `structured` is the controller that knows
where the matrices come from (structured_qps.py): its time is from states and commands to torques, dynamics counted, which
are given to all others; what passed is seen from its accelerations, torques and forces, and their costs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import saltus as sl
from benchmarks.measure import circumstances, write
from benchmarks.qp_peers import OURS, PEERS
from benchmarks.robots import chosen
from benchmarks.structured_qps import Structured
from saltus.arrays import Array
from tests.control.qp_truth import missed
from tests.control.whole_body_qps import FAMILIES, Problem, family

PASSES = (1e-3, 1e-6, 1e-9)
TOLERANCES = (1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
TRIED, ENOUGH = 50, 0.98
BATCH = 64
STEP = 1e-3
"""By which a problem is later than the one from whose solution it is started [s]."""


def measure(solver: Any, problems: Problem, earlier: Problem | None, count: int, repeats: int) -> tuple[Array, Array]:
    """The time [s] of each problem and the worst that is left of its conditions."""
    times, left = np.full(count, np.inf), np.empty(count)
    for k in range(count):
        for _ in range(repeats):
            if earlier is not None:
                solver.load(earlier[k])
                solver.solve()
            solver.load(problems[k])
            start = perf_counter()
            solver.solve()
            times[k] = min(times[k], perf_counter() - start)
        left[k] = max(missed(problems[k], *solver.point(), pyramid=solver.pyramid)[0])
    return times, left


def compare(kind: Any, problems: Problem, earlier: Problem | None, repeats: int) -> dict[str, Any]:
    """One solver on one family, with the loosest tolerance with which about as many pass as with any."""
    count, warm = len(problems.c), earlier is not None
    shares: dict[float, float] = {}
    for tolerance in TOLERANCES:
        left = measure(kind(problems, tolerance, warm), problems, earlier, min(TRIED, count), 1)[1]
        shares[tolerance] = float((left < PASSES[1]).mean())
    tolerance = next(each for each in TOLERANCES if shares[each] >= max(shares.values()) - 0.02)
    times, left = measure(kind(problems, tolerance, warm), problems, earlier, count, repeats)
    return summary("earlier" if warm else "nothing", tolerance, left, times, "pyramid" if kind.pyramid else "cone")


def packets(problems: Problem, tolerance: float, repeats: int) -> dict[str, Any]:
    Q, c, A, b, cones, friction, lower, upper = problems

    def solve(part: slice) -> Any:
        return sl.fccqp(
            Q[part], c[part], A[part], b[part], cones=cones, friction=friction[part], lower=lower[part],
            upper=upper[part], tolerance=tolerance,
        )  # fmt: skip

    found = solve(slice(None))
    left = np.array([max(missed(problems[k], found.x[k], found.y[k], found.z[k])[0]) for k in range(len(c))])
    return summary("nothing", tolerance, left, batch_times(solve, len(c), repeats))


def batch_times(solve: Callable[[slice], Any], count: int, repeats: int) -> Array:
    """A problem's share [s] of each batch of so many; of the processor's time, as others may want it meanwhile."""
    parts = [slice(k, k + BATCH) for k in range(0, max(count - BATCH, 0) + 1, BATCH)]
    times = np.full(len(parts), np.inf)
    for k, part in enumerate(parts):
        for _ in range(repeats):
            start = process_time()
            solve(part)
            times[k] = min(times[k], (process_time() - start) / min(BATCH, count))
    return times


def structured(name: str, problems: Problem, tolerance: float, repeats: int) -> list[dict[str, Any]]:
    """One call, and packets."""
    solver = Structured(name, len(problems.c), tolerance)
    left, times = solver.left(problems), np.full(len(problems.c), np.inf)
    for k in range(len(times)):
        for _ in range(repeats):
            start = perf_counter()
            solver.solve(k)
            times[k] = min(times[k], perf_counter() - start)
    one = summary("nothing", tolerance, left, times) | {"solver": "structured"}
    return [
        one,
        summary("nothing", tolerance, left, batch_times(solver.solve, len(times), repeats))
        | {"solver": "structured f64"},
    ]


def summary(start: str, tolerance: float, left: Array, times: Array, cone: str = "cone") -> dict[str, Any]:
    return {
        "cone": cone,
        "from": start,
        "tolerance": tolerance,
        "passed": [float((left < each).mean()) for each in PASSES],
        "median": float(np.median(times)),
        "99.9 %": float(np.quantile(times, 0.999)),
    }


def line(name: str, row: dict[str, Any]) -> str:
    """A line of the table; times in microseconds."""
    passed = " ".join(f"{100 * share:5.1f}" for share in row["passed"])
    times = f"{1e6 * row['median']:9.1f}{1e6 * row['99.9 %']:9.1f}"
    ratio = f"{row['x']:7.2f}" if "x" in row else ""
    return f"{name:14}{row['cone']:9}{row['from']:9}{row['tolerance']:7.0e}   {passed}{times}{ratio}"


def of_family(name: str, solvers: dict[str, Any], count: int, repeats: int, show: Callable[[str], None]) -> list[Any]:
    problems, earlier = family(name, count), family(name, count, later=-STEP)
    rows, best = [], {"nothing": np.inf, "earlier": np.inf}
    for solver, kind in solvers.items():
        for start in (None, earlier) if kind.warm else (None,):
            row = {"family": name, "solver": solver} | compare(kind, problems, start, repeats)
            if solver in PEERS and row["passed"][1] >= ENOUGH:
                best[row["from"]] = min(best[row["from"]], row["median"])
            elif solver in OURS:
                row["x"] = best[row["from"]] / row["median"]
            rows.append(row)
            show(line(solver, row))
            if solver == "fccqp" and start is None:
                more = [packets(problems, row["tolerance"], repeats) | {"solver": "fccqp f64"}]
                for each in [*more, *structured(name, problems, row["tolerance"], repeats)]:
                    rows.append(each | {"family": name, "x": best["nothing"] / each["median"]})
                    show(line(rows[-1]["solver"], rows[-1]))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Whole-body QPs, beside other solvers.")
    every = PEERS | OURS
    parser.add_argument("--families", default="", help="comma-separated: " + ", ".join(FAMILIES))
    parser.add_argument("--solvers", default="", help="comma-separated: " + ", ".join(every))
    parser.add_argument("--count", type=int, default=1000, help="of problems of a family")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="to see that it works: the figures mean nothing")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    if options.quick:
        options.count, options.repeats = 10, 1
    sl.set_threads(1)

    result = circumstances("benchmarks.qps", "daqp", "proxsuite", "piqp", "osqp", "clarabel", "qoco")
    result |= {"count": options.count, "passes": PASSES, "rows": []}
    machine = result["machine"]
    print(f"{machine['model']}, {machine['vectors']}; times in microseconds")
    solvers = {name: every[name] for name in chosen(options.solvers, every)}
    for name in chosen(options.families, FAMILIES):
        head = f"{'cone':9}{'from':9}{'tol.':>7}   {'passed':17}{'median':>9}{'99.9 %':>9}{'x':>7}"
        print(f"\n{name:14}{head}", flush=True)
        show = lambda text: print(text, flush=True)  # noqa: E731
        result["rows"] += of_family(name, solvers, options.count, options.repeats, show)
    if options.output or not (options.quick or options.solvers or options.families):
        write(result, options.output, f"qps-{machine['name']}.json")


if __name__ == "__main__":
    main()
