"""Differential dynamic programming: Newton's method whose iterates are rollouts.

    u_t' = u_t - a k_t - K_t (x_t' (-) x_t),    x_{t+1}' = f_t(x_t', u_t')

Gains come from one backward pass (riccati.py), candidates of all step lengths from one forward pass (forward.py). A start with
gaps is taken, and the gaps count in the backward pass; the first rollout closes them.

Reference: D. Mayne (1966); Y. Tassa, T. Erez, E. Todorov (2012); as in Crocoddyl 3.2.0's SolverDDP.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saltus.arrays import Array
from saltus.ocp.horizon import Horizon
from saltus.ocp.problem import Expansion, Trial
from saltus.ocp.riccati import _backward, _box_backward
from saltus.ocp.solver import Direction, Solver
from saltus.ocp.status import OCPStatus
from saltus.ocp.vector_problem import FREE


class RiccatiSolver(Solver):
    """Solvers whose direction is that of a backward pass."""

    boxed = False
    """Whether controls stay within `u_lower` and `u_upper`."""

    direction: Direction | None = None

    def set_candidate(self, *arguments: Any, **named: Any) -> None:
        super().set_candidate(*arguments, **named)
        problem = self.problem
        self.horizon = Horizon(problem.T, problem.nx, problem.ndx, problem.nu)
        self.direction = None
        if self.boxed:
            wrong = np.flatnonzero(~(problem.u_lower <= problem.u_upper))
            if len(wrong):
                raise ValueError(f"{type(self).__name__}: u_lower lies above u_upper, first at control {wrong[0]}")

    def compute_direction(self, recalculate: bool = True) -> Array:
        """See Solver; gains are in `direction`."""
        if recalculate or self.expansion is None:
            self.expansion = self.problem.calc_diff(self.xs, self.us)
        inputs = (self.iterate.gaps, self.controlled, np.stack([self.preg, self.dreg], -1))
        algorithm = _box_backward if self.boxed else _backward
        if self.boxed:
            inputs += self.room()
        try:
            found = algorithm.call(self.horizon, (*self.expansion, *inputs), self.direction)
        except ValueError:
            lost = self.set_aside(self.expansion)
            found = algorithm.call(self.horizon, (*self.expansion, *inputs), self.direction)
            found[6][..., 4] = np.where(lost >= 0, -1, found[6][..., 4])
        self.direction = Direction(*found)
        return np.asarray(self.direction.report[..., 4]).astype(int)

    def set_aside(self, expansion: Expansion) -> Array:
        """Problems whose derivatives are not finite are done; others go on. (...) the node to blame, or -1."""
        T = self.problem.T
        bad = np.zeros((*self.batch, T + 1), bool)
        for array in expansion:
            own = ~np.isfinite(array).all(tuple(range(len(self.batch) + 1, array.ndim)))
            bad[..., : own.shape[-1]] |= own
        lost = np.where(bad.any(-1), bad.argmax(-1), -1)
        if not bad.any():
            raise AssertionError("a kernel refused derivatives, yet they are finite")
        self.expansion = Expansion(*(np.nan_to_num(array, posinf=0.0, neginf=0.0) for array in expansion))
        self.lost = np.where(lost >= 0, lost, getattr(self, "lost", np.full(self.batch, -1)))
        if not hasattr(self, "running"):
            raise ValueError(f"{type(self).__name__}: the derivatives of node {lost.max()} are not finite")
        self.end(lost >= 0, OCPStatus.NOT_FINITE)
        return lost

    def room(self) -> tuple[Array, Array]:
        """How far controls may go down and up; while there are gaps, anywhere."""
        problem, us = self.problem, self.us
        free = ~np.asarray(self.iterate.feasible)[..., None, None]
        low = np.clip(np.where(free, -FREE, problem.u_lower - us), -FREE, FREE)
        return low, np.clip(np.where(free, FREE, problem.u_upper - us), -FREE, FREE)

    def roll(self, lengths: Array) -> Trial:
        """See Solver."""
        found = self.outcome()
        return self.problem.forward(self.xs, self.us, self.gaps_to_keep(), found.K, found.k, lengths, self.boxed)

    def gaps_to_keep(self) -> Array:
        """Of which a rollout keeps 1 - a."""
        raise NotImplementedError

    def outcome(self) -> Direction:
        """See Solver."""
        if self.direction is None:
            problem, n, m = self.problem, self.problem.ndx, self.problem.nu
            shapes = (problem.T, m, n), (problem.T, m), (problem.T, m), (problem.T + 1, n), (problem.T + 1, n, n), (problem.T + 1, n), (5,)
            return Direction(*(np.zeros((*self.batch, *shape)) for shape in shapes))
        return self.direction


class DDP(RiccatiSolver):
    """Differential dynamic programming."""

    def gaps_to_keep(self) -> Array:
        return np.zeros_like(self.iterate.gaps)

    def improvements(self, trial: Trial, sound: Array) -> Array:
        """(2, A, ...): controls alone."""
        report = self.outcome().report
        return np.stack([np.broadcast_to(report[..., i], trial.costs.shape) for i in range(2)])

    def acceptable(self, d: Array, expected: Array, gained: Array) -> Array:
        options = self.options
        enough = (np.abs(d[0]) < options.th_grad) | ~self.iterate.feasible | (gained > options.th_acceptstep * expected)
        return (expected >= 0) & enough

    def advance(self, length: Array, trial: Trial) -> tuple[Array, Array]:
        return np.zeros_like(self.iterate.gaps), np.ones(self.batch, bool)
