"""Constrained forward dynamics by dense linear algebra, for truth and for small problems.

    M a = rest + J^T forces,      J a = goal      in the least-squares sense, weighted by 1 / mu

Redundant rows share forces so that their weighted norm is least; contradictory ones are missed by as little as can be.
Eigenvalues of the Delassus matrix below `RANK` of the largest, or of a typical entry, count as zero, a choice that the
proximal methods do not have to make.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saltus.arrays import Array
from saltus.constraints.report import Status
from saltus.constraints.system import _constrained_system
from saltus.constraints.tables import ConstrainedModel

RANK = 1e-11

SUMMED = 64.0
"""Rounding units of what is summed in a row of J a, that may be left of a constraint that is met."""


MOST_LOST = 1e-2
"""Part of the inertia matrix that rounding may take: beyond, it may be singular, and results are NaN."""


def solve_kkt(problem: ConstrainedModel, inputs: tuple[Any, ...]) -> tuple[Array, Array, Array]:
    """(a, forces, report) for inputs (q, v, tau, active, target, start, rows), as the kernels of other methods do."""
    problem.refuse_weightless("kkt")
    q, v, tau, active, target, _, rows = inputs
    M, rest, J, goal, lost = _constrained_system.call(problem, (q, v, tau, active, target, rows))
    scale, lost = 1.0 / np.sqrt(problem.mu), plain(lost)[..., 0]
    hopeless = ~(np.finfo(np.float64).eps * lost <= MOST_LOST)
    if hopeless.any():  # solved for something, as others are beside them
        M = M * ~hopeless[..., None, None] + np.eye(problem.nv) * hopeless[..., None, None]
    answers = np.linalg.solve(M, np.concatenate([rest[..., None], np.swapaxes(J, -1, -2)], -1))
    free, response = answers[..., 0], answers[..., 1:] * scale
    J, goal = J * scale[:, None], goal * scale
    delassus = J @ response
    delassus = 0.5 * (delassus + np.swapaxes(delassus, -1, -2))  # so that rows alike stay so
    inverse = np.linalg.pinv(delassus, rtol=rank_of(problem, delassus), hermitian=True)
    forces = _times(inverse, goal - _times(J, free))
    a = free + _times(response, forces)  # a small sum of large ones: what rounding has left of both equations, in turn
    left = np.linalg.solve(M, (rest + _times(np.swapaxes(J, -1, -2), forces) - _times(M, a))[..., None])[..., 0]
    more = _times(inverse, goal - _times(J, a + left))
    a, forces = a + left + _times(response, more), forces + more
    on = np.repeat(active, [constraint.dim for constraint in problem.constraints], axis=-1)
    report = report_on(problem, plain(J), plain(goal), plain(a), plain(left), lost, scale)
    if hopeless.any():
        a, on = a * np.where(hopeless, np.nan, 1.0)[..., None], on * np.where(hopeless, np.nan, 1.0)[..., None]
    return a, forces * scale * on, report


def report_on(
    problem: ConstrainedModel, J: Array, goal: Array, a: Array, left: Array, lost: Array, scale: Array
) -> Array:
    """How it ended, as `conclude` has it (convergence.py); `left` is what accelerations were corrected by in the end, `lost`
    how many times its rounding M has lost."""
    missed = np.abs(_times(J, a) - goal) / scale
    size = np.abs(a).max(-1, initial=np.abs(problem.model.gravity).max())
    imbalance = np.abs(left).max(-1, initial=0.0) / np.maximum(size, np.finfo(size.dtype).tiny)
    imbalance = np.maximum(imbalance, problem.rounding * lost)
    summed, met = _times(np.abs(J), np.abs(a)) / scale, np.ones(size.shape, bool)
    turning = np.array([axis > 2 and not c.dofs for c in problem.constraints for axis in c.rows], bool)
    for kind in (turning, ~turning):  # in their own units
        most = SUMMED * problem.rounding * summed[..., kind].max(-1, initial=0.0)
        met &= missed[..., kind].max(-1, initial=0.0) <= np.maximum(problem.tolerance, most)
    residual = missed.max(-1, initial=0.0)
    status = np.where(met, int(Status.CONVERGED), int(Status.LEAST_SQUARES))
    status = np.where(imbalance <= problem.settled, status, int(Status.INACCURATE))  # also if something is NaN
    zero = np.zeros_like(residual)
    return np.stack([zero + 1, residual, zero, imbalance, status], -1)


def plain(array: Any) -> Array:
    """An array without the slopes that it may carry."""
    values: Array = getattr(array, "value", array)
    return values


def rank_of(problem: ConstrainedModel, delassus: Any) -> Array:
    """(...), which part of its largest eigenvalue counts as zero: all, where only rounding moves the rows."""
    matrix = plain(delassus)
    largest = np.linalg.norm(matrix, 2, (-2, -1)) if problem.nm else np.zeros(matrix.shape[:-2])
    typical = problem.typical / problem.mu.min(initial=np.inf)
    most = 2.0 * typical  # so that it is more than all, and rounding does not decide
    return RANK * np.maximum(1.0, most / np.maximum(largest, RANK * typical + np.finfo(np.float64).tiny))


def _times(A: Array, x: Array) -> Array:
    return np.einsum("...ij,...j", A, x)
