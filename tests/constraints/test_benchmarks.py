"""What the benchmark of constrained dynamics times was solved by both libraries, and its table says where it was not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("pinocchio")

from benchmarks.constrained import BATCH, MOST_ITERATIONS, PEER_MU, TOLERANCE, measure
from benchmarks.contacts import CASES, Problem
from benchmarks.peer_constraints import ConstrainedPeer
from benchmarks.plot_methods import MISSED, timing_line
from benchmarks.robots import pinocchio_model

WRIST = CASES["ur5:H6"]
"""As many rows as joints, so that some states are nearly singular: three iterations at mu = 1e-5 are wrong by 1e+00."""


def test_both_libraries_solve_what_is_timed() -> None:
    found = measure(WRIST, ["constrained_aba"], repeats=1, seconds=1e-5)
    (row,) = found["methods"]
    assert 0.97 * BATCH <= found["timed"] <= min(found["peers"]["pin"]["reached"], row["f64"]["reached"])
    for outcome in (found["peers"]["pin"], row["f64"]):
        assert outcome["median"] < 1e-11 and outcome["largest"] < 1e-6
        assert 1.0 <= outcome["iterations"] < 6.0


def test_pinocchio_stops_where_the_constraints_are_met() -> None:
    problem = Problem(CASES["solo12:F3^4"], 32)
    peer = ConstrainedPeer(pinocchio_model("solo12"), problem.held)
    settings = peer.until(TOLERANCE, PEER_MU["pin"], MOST_ITERATIONS)
    a, iterations = peer.iterations_all(peer.solve, **problem.states, settings=settings)
    assert problem.left(a).max() <= TOLERANCE
    assert iterations.max() <= 3  # and does not go on until its forces stand still


def outcome(reached: int) -> dict[str, Any]:
    return {"reached": reached, "iterations": 2.0, "median": 1e-14, "largest": 1e-12}


@pytest.mark.parametrize("pin, double, marked", [(BATCH, BATCH, False), (BATCH - 1, BATCH, True), (BATCH, 9, True)])
def test_rows_that_miss_the_tolerance_are_marked(pin: int, double: int, marked: bool) -> None:
    times = {"one": 2.0, "f64": 0.5, "f32": 0.25}
    ratio = {form: 4.0 / time for form, time in times.items()}
    row = {"method": "prox_pv", "us": times, "ratio": ratio, "f64": outcome(double), "f32": outcome(min(pin, double))}
    found = {"case": WRIST.name, "nv": 6, "nm": 6, "wanted": None, "timed": min(pin, double), "us": {"pin": 4.0}}
    name, *_ = cells = timing_line(found | {"peers": {"pin": outcome(pin)}}, row, BATCH)
    assert (MISSED in name) == marked
    assert cells[5] == "0.250 (16.0 x)"

    row["us"], row["f32"] = times | {"f32": None}, outcome(0) | dict.fromkeys(("iterations", "median", "largest"))
    assert timing_line(found | {"peers": {"pin": outcome(pin)}}, row, BATCH)[5] == MISSED


def test_states_that_are_nearly_singular_are_known() -> None:
    problem = Problem(WRIST, BATCH)
    smallest = np.linalg.svd(problem.J, compute_uv=False).min(-1)
    assert smallest[problem.regular].min() > smallest.min()
    assert 0 < problem.regular.sum() < BATCH
