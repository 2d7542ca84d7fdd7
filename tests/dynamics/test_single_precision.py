"""Every algorithm in single precision against double precision on the same inputs, on robots: numbers, not types alone."""

from __future__ import annotations

import numpy as np
import pytest

import saltus as sl
from tests.closeness import assert_close, with_rounding
from tests.dynamics.test_against_oracle import SIZES, SOLVERS, TABLE, leaves
from tests.generators import random_state
from tests.kernel.cases import all_kinds

pytestmark = pytest.mark.slow

ROBOTS = {
    "all kinds": all_kinds(),
    "arm": sl.load_robot("arm"),
    "quadruped": sl.load_robot("quadruped"),
}
SWEEP, SOLUTION = 32.0, 4.0
"""Rounding units that a sweep over a robot may add up, relative to the largest entry of what it finds; and, times the
condition number of the inertia matrix, what solves with it."""


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("algorithm", TABLE)
def test_against_double_precision(algorithm: str, name: str) -> None:
    model = ROBOTS[name]
    singles = random_state(model, 1, 19).map(lambda x: x.astype(np.float32))
    doubles = singles.map(lambda x: x.astype(np.float64))
    tolerance = with_rounding(0.0, SWEEP, real=np.float32)
    if algorithm in SOLVERS:
        tolerance = with_rounding(tolerance, np.linalg.cond(sl.crba(model, doubles.q)).max(), SOLUTION, np.float32)
    ours, _ = TABLE[algorithm]
    for single, double in zip(leaves(ours(model, singles)), leaves(ours(model, doubles)), strict=True):
        assert single.dtype == np.float32 or algorithm == "interpolate"  # its share, 0.3, is a double
        scale = max(float(np.abs(double).max()), SIZES[algorithm](model, doubles) if algorithm in SIZES else 0.0)
        assert_close(single, double, tolerance, scale)
