"""How the methods' times grow with the robot: CA Fig. 3.

    python -m benchmarks.scaling [--methods constrained_aba] [--quick] [--output FILE]

Chains of 10 to 100 links whose end is held as a surface, and binary trees of up to 200 links, each branch of which has three
links before it splits, whose leaves are all held as points. Joints are revolute, about x, y and z in turn. The time of one
call and of a sample of a batch of 64 on one thread, for one iteration and for three; Pinocchio's beside it.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl
from benchmarks.contacts import for_contacts, states
from benchmarks.measure import Timed, best_times, circumstances, write
from benchmarks.peer_constraints import VERSION, ConstrainedPeer
from benchmarks.robots import as_pinocchio, chosen

BATCH, MU, ITERATIONS = 64, 1e-5, (1, 3)
SIZES = {"chain": (10, 20, 30, 40, 50, 60, 80, 100), "tree": (9, 21, 45, 70, 100, 150, 200)}
"""Links. A tree of 3 (2^k - 1) of them is complete; others lack some of the last."""
GROWTH = {"chain": (50, 100), "tree": (100, 200)}
MOST_GROWTH = 2.2  # of constrained_aba in packets, when the number of links doubles
AXES = np.eye(3)
OFFSET = np.eye(4)
OFFSET[2, 3] = 0.1


def add_link(builder: sl.ModelBuilder, index: int, parent: str) -> str:
    """One more link, a rod of 10 cm and 0.5 kg; its name."""
    name = f"link_{index}"
    builder.add_joint(name, "revolute", parent, placement=OFFSET, axis=AXES[index % 3])
    builder.add_body(name, 0.5, com=[0.0, 0.0, 0.05], inertia=np.diag([5e-4, 5e-4, 1e-4]))
    return name


def chain(links: int) -> tuple[sl.Model, list[sl.Constraint]]:
    builder, name = sl.ModelBuilder(f"chain_{links}"), "universe"
    for index in range(links):
        name = add_link(builder, index, name)
    builder.add_frame("end", name, OFFSET)
    model = builder.build()
    return model, [sl.Contact(model, "end", 6)]


def tree(links: int) -> tuple[sl.Model, list[sl.Constraint]]:
    """Branch k splits into branches 2 k + 1 and 2 k + 2."""
    builder = sl.ModelBuilder(f"tree_{links}")
    lengths = [min(3, links - start) for start in range(0, links, 3)]
    ends: list[str] = []

    def grow(branch: int, parent: str) -> None:
        for step in range(lengths[branch]):
            parent = add_link(builder, 3 * branch + step, parent)
        further = [child for child in (2 * branch + 1, 2 * branch + 2) if child < len(lengths)]
        for child in further:
            grow(child, parent)
        if not further:
            ends.append(f"end_{branch}")
            builder.add_frame(ends[-1], parent, OFFSET)

    grow(0, "universe")
    model = builder.build()
    return model, [sl.Contact(model, end, 3) for end in ends]


SHAPES = {"chain": chain, "tree": tree}


def measure(shape: str, links: int, methods: list[str], repeats: int, seconds: float) -> list[dict[str, Any]]:
    """Rows for one and for three iterations: times [us] of all methods, and of Pinocchio."""
    model, held = SHAPES[shape](links)
    many = states(model, BATCH)
    one = {name: np.ascontiguousarray(value[0]) for name, value in many.items()}
    peer, rows = ConstrainedPeer(as_pinocchio(model), held), []
    for iterations in ITERATIONS:
        calls = {"pin": Timed(partial(peer.solve, **one, settings=peer.settings(0.0, MU, iterations)))}
        for method in methods:
            dynamics = sl.ConstrainedDynamics(model, held, method, mu=MU, tolerance=0.0, most_iterations=iterations)
            calls[f"{method}, one"] = Timed(partial(dynamics.solve, **one))
            calls[f"{method}, f64"] = Timed(partial(dynamics.solve, **many), partial(sl.set_threads, 1))
        times = best_times(calls, repeats, seconds)
        us = {name: 1e6 * time / (BATCH if name.endswith("f64") else 1) for name, time in times.items()}
        nm = sum(constraint.dim for constraint in held)
        rows.append({"shape": shape, "links": links, "nm": nm, "iterations": iterations, "us": us})
    return rows


def growth(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many times longer twice the links take, by shape, iterations, and call."""
    by = {(row["shape"], row["links"], row["iterations"]): row["us"] for row in rows}
    found = []
    for shape, (less, more) in GROWTH.items():
        for iterations in ITERATIONS:
            if (shape, less, iterations) in by and (shape, more, iterations) in by:
                small, large = by[shape, less, iterations], by[shape, more, iterations]
                times = {name: large[name] / small[name] for name in small}
                found.append({"shape": shape, "links": [less, more], "iterations": iterations, "times": times})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="How the methods' times grow with the robot, beside Pinocchio's.")
    known = for_contacts()
    parser.add_argument("--methods", default="", help="comma-separated: " + ", ".join(known))
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--milliseconds", type=float, default=4.0, help="that a call is timed for in each repeat")
    parser.add_argument("--quick", action="store_true", help="to see that it works: the figures mean nothing")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    sizes = SIZES
    if options.quick:
        options.repeats, options.milliseconds, sizes = 2, 0.2, GROWTH
    methods = chosen(options.methods, known)

    result = circumstances("benchmarks.scaling")
    result["versions"]["pin"] = VERSION
    result |= {"batch": BATCH, "mu": MU, "methods": methods, "rows": []}
    machine = result["machine"]
    print(f"{machine['model']}, {machine['vectors']}; pin {VERSION}; us of one call / of a sample in f64\n")
    print(f"{'shape':7}{'links':>6}{'nm':>5}{'its':>4}{'pin':>10}" + "".join(f"{method:>20}" for method in methods))
    for shape, every in sizes.items():
        for links in every:
            for row in measure(shape, links, methods, options.repeats, options.milliseconds * 1e-3):
                result["rows"].append(row)
                us, cells = row["us"], f"{shape:7}{links:6}{row['nm']:5}{row['iterations']:4}{row['us']['pin']:10.1f}"
                for method in methods:
                    pair = f"{us[f'{method}, one']:.1f} / {us[f'{method}, f64']:.2f}"
                    cells += f"{pair:>20}"
                print(cells, flush=True)
    result["growth"] = growth(result["rows"])
    for each in result["growth"]:
        print(
            f"\n{each['shape']}, {each['iterations']} iterations, {each['links'][1]} links against {each['links'][0]}:"
        )
        for name, times in each["times"].items():
            wanted = f"  (at most {MOST_GROWTH} x wanted)" if name == "constrained_aba, f64" else ""
            print(f"  {name:24}{times:6.2f} x{wanted}")
    if options.output or not (options.quick or options.methods):
        write(result, options.output, f"scaling-{machine['name']}.json")


if __name__ == "__main__":
    main()
