"""What the benchmark of optimal control says of two solutions, and how it counts the steps that were tried."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.ocp import PARTS, ratios
from benchmarks.ocp_peer import tried


def row(cost: float, iterations: int, time: float) -> dict[str, Any]:
    return {"problem": "trot", "cost": cost, "iterations": iterations} | dict.fromkeys(
        ("solve", "iteration", *PARTS), time
    )


@pytest.mark.parametrize(
    ("cost", "iterations", "same"), [(200.0001, 9, True), (200.0, 8, True), (200.1, 8, False), (200.0, 10, False)]
)
def test_same_cost_and_iterations(cost: float, iterations: int, same: bool) -> None:
    found = ratios(row(cost, iterations, 0.5), row(200.0, 8, 2.0))
    assert found["same"] == same
    assert set(found["times_as_fast"].values()) == {4.0}


def test_step_lengths_are_tried_by_halves() -> None:
    assert [tried(step) for step in (1.0, 0.5, 0.0625)] == [1, 2, 5]
