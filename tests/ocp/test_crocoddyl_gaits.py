"""Our shooting problems and solvers on Crocoddyl's gaits: its values, derivatives, iterations and optima."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.ocp_problems import FOLDER, NAMES
from benchmarks.ocp_terms import gait_terms, shooting_problem
from saltus.ocp.fddp import FDDP
from tests.closeness import assert_close, error
from tests.ocp.test_gait_oracle import along, sampled

METHODS = ("constrained_aba", "prox_ltl")
IMPACTS = 1e-9
"""Crocoddyl adds 1e-12 to the Delassus matrix of an impact."""
ITERATES = 1e-6
"""Costs of iterates agree to 1e-8: what impacts differ by, times how fast costs of 1e7 change."""


@pytest.mark.parametrize("name", ["trot", "biped_walk"])
def test_cones_have_the_same_rows(name: str) -> None:
    gait = sampled(name, FOLDER).problem
    for ours, theirs in zip(gait_terms(gait).terms, gait.terms, strict=True):
        if theirs.matrix is not None:
            assert_close(ours.matrix()[:, : theirs.matrix.shape[1]], theirs.matrix, 1e-15, what=theirs.name)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES)
def test_values_and_derivatives(name: str, method: str) -> None:
    given = sampled(name, FOLDER)
    gait, T = given.problem, given.problem.T
    problem = shooting_problem(gait, method)
    xs, us = gait.xs0.copy(), gait.us0.copy()
    xs[given.nodes], us[given.nodes[given.nodes < T]] = given.xs, given.us[given.nodes < T]
    values, expansion = problem.calc(xs, us), problem.calc_diff(xs, us)
    d, e = along(problem.ndx), along(problem.nu)
    for t, row in zip(given.nodes, given.said, strict=True):
        ours = {"cost": values.costs[t], "Lx": expansion.Lx[t], "Lxx_d": expansion.Lxx[t] @ d}
        if t < T:
            ours |= {"next": values.next[t], "Fx_d": expansion.Fx[t] @ d}
        if "Lu" in row:
            ours |= {"Lu": expansion.Lu[t], "Luu_e": expansion.Luu[t] @ e}
            ours |= {"Lxu_e": expansion.Lxu[t] @ e, "Fu_e": expansion.Fu[t] @ e}
        assert ours.keys() <= row.keys()
        for key, found in ours.items():
            right = np.array(row[key])
            scale = max(1.0, float(np.abs(right).max()))
            tolerance = IMPACTS if gait.impact[t] else 1e-10
            assert error(found, right, scale) < tolerance, f"{name}, node {t}: {key}"


@pytest.mark.parametrize("name", NAMES)
def test_fddp_goes_the_same_way(name: str) -> None:
    """The same step lengths, costs and optimum, iteration by iteration."""
    gait = sampled(name, FOLDER).problem
    result = FDDP(shooting_problem(gait), th_stop=gait.stop).solve(gait.xs0, gait.us0)
    log = gait.found["log"]
    assert str(result.status) == "solved" and result.iterations == gait.found["iterations"]
    assert np.array_equal(result.log.step, log["step"])
    assert np.array_equal(result.log.preg, log["preg"])
    assert np.abs(result.log.cost / np.array(log["cost"]) - 1.0).max() < ITERATES
    assert_close(result.cost, gait.found["cost"], 1e-10)
    assert_close(result.xs[-1], np.array(gait.found["last"]), 1e-7)
