"""Derivatives of every term and of the nodes of robots, against dual numbers."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import saltus as sl
from saltus.derivatives.forward import coordinate_rates
from saltus.ocp.activations import activate
from saltus.ocp.node_derivatives import _expand_nodes
from saltus.ocp.term_values import _term_values
from tests.ocp.robot_problems import ROBOTS, Case, case

CLOSE = 1e-9

case_of = cache(case)


class Truth(NamedTuple):
    """Of one node: where it leads, its residuals, and how they change with (q, v, u), by dual numbers."""

    next_q: Any
    next_q_rates: Any
    next_v_slopes: Any
    residuals: Any
    slopes: Any


def truth(made: Case, node: int) -> Truth:
    problem, model = made.problem, made.problem.problem
    nq = problem.nq
    q, v = made.xs[node, :nq], made.xs[node, nq:]
    u = made.us[node] if node < problem.T else np.zeros(problem.nu)
    data = problem.data[node]

    def move(model: Any, q: Any, v: Any, controls: Any) -> Any:
        return problem.kernels.calc.call(model, (q, v, controls, data))

    def measure(model: Any, q: Any, v: Any, controls: Any, held: Any) -> Any:
        return _term_values.call(model, (q, v, controls, held, data))

    next_q, _, _, _, forces, _ = move(model, q, v, u)
    moved = sl.jacobian(move, model, (q, v, u))
    q_rates, v_slopes, f_slopes = (np.concatenate([moved[k][out] for k in range(3)], axis=-1) for out in (0, 1, 4))
    residuals, _ = measure(model, q, v, u, forces)
    by = sl.jacobian(measure, model, (q, v, u, forces))
    slopes = np.concatenate([by[k][0] for k in range(3)], axis=-1) + by[3][0] @ f_slopes
    return Truth(next_q, q_rates, v_slopes, residuals, slopes)


def close(a: Any, b: Any) -> None:
    scale = 1.0 + np.abs(b).max(initial=0.0)
    assert np.abs(a - b).max(initial=0.0) < CLOSE * scale, np.abs(a - b).max() / scale


@pytest.mark.parametrize("node", [0, 1, 2], ids=["dynamics", "impact", "end"])
@pytest.mark.parametrize("robot", ROBOTS)
def test_terms_against_dual_numbers(robot: str, node: int) -> None:
    """Each term by itself: gradients, and Gauss-Newton Hessians."""
    made = case_of(robot)
    problem, there = made.problem, truth(made, node)
    n, names = problem.ndx, list(problem.terms.places)
    q, v = made.xs[node, : problem.nq], made.xs[node, problem.nq :]
    u = made.us[node] if node < problem.T else np.zeros(problem.nu)
    values = problem.calc_nodes(made.xs, made.us)
    data = np.tile(problem.data[node], (len(names), 1))
    first = 3 + problem.nc
    weights = data[:, first : first + len(names)]
    counts = weights[0] > 0
    weights[...] = np.diag(np.where(counts, 0.7, 0.0))
    inputs = (made.xs[node], u, values.a[node], values.forces[node], data)
    _, _, Lx, Lu, Lxx, Lxu, Luu, _, _ = _expand_nodes.call(problem.problem, inputs)
    _, costs = _term_values.call(problem.problem, (q, v, u, values.forces[node], data))
    assert counts.sum() > 5
    for k, name in enumerate(names):
        if not counts[k]:
            continue
        rows, table = problem.terms.rows[name], problem.terms.activations[k]
        r, R = there.residuals[rows], there.slopes[rows]
        found = [activate(table.kind, *each) for each in zip(r, table.low, table.high, table.size, strict=True)]
        scale = 0.7 * data[0, 1]
        value, slope, curve = (scale * table.weight * np.array(column) for column in zip(*found, strict=True))
        gradient, hessian = R.T @ slope, R.T @ (curve[:, None] * R)
        close(costs[k, k], value.sum())
        close(Lx[k], gradient[:n])
        close(Lxx[k], hessian[:n, :n])
        if node == 0:
            close(Lu[k], gradient[n:])
            close(Lxu[k], hessian[:n, n:])
            close(Luu[k], hessian[n:, n:])


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("node", [0, 1], ids=["dynamics", "impact"])
def test_dynamics_against_dual_numbers(robot: str, node: int) -> None:
    made = case_of(robot)
    problem, there = made.problem, truth(made, node)
    nv = problem.nv
    E = problem.calc_diff(made.xs, made.us)
    F = np.concatenate([E.Fx[node], E.Fu[node]], axis=-1)
    close(F[nv:], there.next_v_slopes)
    rates = coordinate_rates(problem.model, np.tile(there.next_q, (F.shape[-1], 1)), np.ascontiguousarray(F[:nv].T)).T
    close(rates, there.next_q_rates)
