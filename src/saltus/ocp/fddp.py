"""Feasibility-driven differential dynamic programming: gaps between nodes are closed as far as steps are long.

    x_{t+1}' = f_t(x_t', u_t') (+) (a - 1) gap_{t+1},    Delta J(a) = a (d_0 + a d_1 / 2)
    d_0 = sum Q_u'k - V_x'f + dv,   d_1 = sum -k'Q_uu k + f'V_xx f - 2 dv,   dv = -sum f'V_xx (x (-) x')

It may start anywhere: states need not be a rollout. The cost may grow while gaps close, up to twice of what is expected.

Reference: C. Mastalli et al., Crocoddyl (2020), section III.C and equations 14 to 17; as in Crocoddyl 3.2.0's SolverFDDP.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saltus.arrays import Array
from saltus.ocp.ddp import RiccatiSolver
from saltus.ocp.problem import Trial


class FDDP(RiccatiSolver):
    """Feasibility-driven differential dynamic programming."""

    def gaps_to_keep(self) -> Array:
        return self.iterate.gaps

    def improvements(self, trial: Trial, sound: Any) -> Array:
        """(2, A, ...), see above: it depends on where candidates are."""
        found = self.outcome()
        d = np.empty((2, *trial.costs.shape))
        d[0], d[1] = found.report[..., 2], found.report[..., 3]
        if not self.iterate.feasible.all():
            there = np.where(sound[..., None, None], trial.xs, self.xs)
            back = self.problem.difference(there, np.broadcast_to(self.xs, there.shape))
            dv = np.einsum("...ti,a...ti->a...", found.Vf, back)
            d[0] -= dv
            d[1] += 2 * dv
        return d

    def acceptable(self, d: Array, expected: Array, gained: Array) -> Any:
        options = self.options
        downhill = (np.abs(d[0]) < options.th_grad) | (gained > options.th_acceptstep * expected)
        return np.where(expected >= 0, downhill, gained > options.th_acceptnegstep * expected)

    def advance(self, length: Array, trial: Trial) -> tuple[Array, Any]:
        old = self.iterate
        return (1.0 - length)[..., None, None] * old.gaps, old.feasible | (length == 1)
