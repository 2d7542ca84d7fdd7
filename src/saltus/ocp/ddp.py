"""Differential dynamic programming: Newton's method whose iterates are rollouts.

    u_t' = u_t - a k_t - K_t (x_t' (-) x_t),    x_{t+1}' = f_t(x_t', u_t')

Gains come from one backward pass (riccati.py), candidates of all step lengths from one forward pass (forward.py). A start
with gaps is taken, and the gaps count in the backward pass; the first rollout closes them.

Reference: D. Mayne (1966); Y. Tassa, T. Erez, E. Todorov (2012); as in Crocoddyl 3.2.0's SolverDDP.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from saltus.arrays import Array
from saltus.ocp.euler_structure import _euler_backward, _euler_box_backward
from saltus.ocp.horizon import Horizon
from saltus.ocp.problem import Expansion, OCPResult, Trial
from saltus.ocp.riccati import _backward, _box_backward
from saltus.ocp.solver import Direction, Solver, anyone, refuse_bad_bounds
from saltus.ocp.vector_problem import FREE

BACKWARD = {False: _backward, True: _box_backward}
EULER_BACKWARD = {False: _euler_backward, True: _euler_box_backward}
"""By whether controls are bounded."""


def pair(report: Array) -> Array:
    """(..., 2) as (2, ...), in memory of its own."""
    return report.copy() if report.ndim == 1 else np.moveaxis(report, -1, 0).copy()


class RiccatiSolver(Solver):
    """Solvers whose direction is that of a backward pass."""

    boxed = False
    """Whether controls stay within `u_lower` and `u_upper`."""

    direction: Direction | None = None
    last: Direction | None = None
    """That of the solution before, whose memory is its result's."""
    horizon: Horizon | None = None

    def set_candidate(self, *arguments: Any, **named: Any) -> None:
        if self.boxed:
            refuse_bad_bounds(self)
        super().set_candidate(*arguments, **named)
        self.last, self.direction = self.direction, None

    def take_memory(self, result: OCPResult | None) -> None:
        """See Solver."""
        last, self.last = self.last, None
        if result is not None and last is not None and last.K is result.K and last.K.shape[:-3] == self.batch:
            for array in last:
                array.fill(0.0)  # there is no direction yet
            self.direction = last

    def compute_direction(self, recalculate: bool = True) -> Any:
        """See Solver; gains are in `direction`."""
        if recalculate or self.expansion is None:
            self.expansion = self.problem.calc_diff(self.xs, self.us, self.expansion, **self.known())
        self.direction = Direction(*self.backward())
        nodes = self.direction.report[..., 4].astype(int)
        failed = nodes >= 0
        if anyone(self.running & failed):
            lost = self.set_aside(self.expansion)
            nodes = np.where(lost >= 0, lost, nodes)
            failed = nodes >= 0
        if anyone(failed):
            for array in self.direction:
                array[nodes >= 0] = 0.0  # what is left there may be anything, and rollouts take numbers alone
        return nodes

    def backward(self) -> tuple[Array, ...]:
        """The backward pass on what `expansion` is now."""
        nodes, problem = cast(Expansion, self.expansion), self.problem
        euler = nodes.euler
        regularisation = np.empty((*self.batch, 2))
        regularisation[..., 0], regularisation[..., 1] = self.preg, self.dreg
        inputs: Any = (*nodes[:7], self.iterate.gaps, self.controlled, regularisation)
        if self.boxed:
            inputs += self.room()
        algorithm, blocks = BACKWARD[self.boxed], () if euler is None else euler.blocks
        if euler is not None:
            algorithm = EULER_BACKWARD[self.boxed]
            inputs += (euler.A, euler.B, euler.h, euler.steps)
        if self.horizon is None or self.horizon.blocks != blocks:
            self.horizon = Horizon(problem.T, problem.nx, problem.ndx, problem.nu, blocks=blocks)
        found: tuple[Array, ...] = algorithm.call(self.horizon, inputs, self.direction and tuple(self.direction))
        return found

    def bounded(self) -> Any:
        """(...) whether bounds of controls hold."""
        return self.boxed

    def room(self) -> tuple[Array, Array]:
        """How far controls may go down and up."""
        problem, us, hold = self.problem, self.us, np.asarray(self.bounded())[..., None, None]
        below, above = np.where(hold, problem.u_lower - us, -FREE), np.where(hold, problem.u_upper - us, FREE)
        return np.clip(below, -FREE, FREE), np.clip(above, -FREE, FREE)

    def roll(self, lengths: Array) -> Trial:
        """See Solver."""
        found = self.outcome()
        inputs = self.xs, self.us, self.gaps_to_keep(), found.K, found.k, lengths, self.bounded()
        return self.problem.forward(*inputs, **self.known())

    def known(self) -> dict[str, Any]:
        """What the problem said of the iterate beside, for a problem that says so."""
        return {} if self.iterate.values is None else {"values": self.iterate.values}

    def gaps_to_keep(self) -> Array:
        """Of which a rollout keeps 1 - a."""
        raise NotImplementedError

    def outcome(self) -> Direction:
        """See Solver."""
        if self.direction is None:
            problem, n, m = self.problem, self.problem.ndx, self.problem.nu
            shapes = (
                (problem.T, m, n),
                (problem.T, m),
                (problem.T, m),
                (problem.T + 1, n),
                (problem.T + 1, n, n),
                (problem.T + 1, n),
                (5,),
            )
            return Direction(*(np.zeros((*self.batch, *shape)) for shape in shapes))
        return self.direction


class DDP(RiccatiSolver):
    """Differential dynamic programming."""

    def gaps_to_keep(self) -> Array:
        return np.zeros_like(self.iterate.gaps)

    def improvements(self, found: Trial, sound: Any) -> Array:
        """(2, ...): controls alone."""
        return pair(self.outcome().report[..., :2])

    def acceptable(self, d: Array, expected: Array, gained: Array) -> Any:
        options = self.options
        enough = (abs(d[0]) < options.th_grad) | ~self.iterate.feasible | (gained > options.th_acceptstep * expected)
        return (expected >= 0) & enough

    def advance(self, length: Array, found: Trial) -> tuple[Array, Any]:
        return np.zeros_like(self.iterate.gaps), self.all_of(True)
