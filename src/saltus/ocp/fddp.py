"""Feasibility-driven differential dynamic programming: gaps between nodes are closed as far as steps are long.

    x_{t+1}' = f_t(x_t', u_t') (+) (a - 1) gap_{t+1},    Delta J(a) = a (d_0 + a d_1 / 2)
    d_0 = sum Q_u'k - V_x'f + dv,   d_1 = sum -k'Q_uu k + f'V_xx f - 2 dv,   dv = -sum f'V_xx (x (-) x')

It may start anywhere: states need not be a rollout. The cost may grow while gaps close, up to twice of what is expected.

Reference: C. Mastalli et al., Crocoddyl (2020), section III.C and equations 14 to 17; as in Crocoddyl 3.2.0's SolverFDDP.
"""

from __future__ import annotations

from typing import Any

from saltus.arrays import Array
from saltus.ocp.ddp import RiccatiSolver, pair
from saltus.ocp.problem import Trial
from saltus.ocp.solver import anyone, choose


class FDDP(RiccatiSolver):
    """Feasibility-driven differential dynamic programming."""

    def gaps_to_keep(self) -> Array:
        return self.iterate.gaps

    def improvements(self, found: Trial, sound: Any) -> Array:
        """(2, ...), see above: it depends on where candidates are."""
        direction = self.outcome()
        d = pair(direction.report[..., 2:4])
        if anyone(~self.iterate.feasible):
            back = self.problem.difference(choose(sound, found.xs, self.xs), self.xs)
            dv = (direction.Vf * back).sum((-1, -2))
            d[0] -= dv
            d[1] += 2 * dv
        return d

    def acceptable(self, d: Array, expected: Array, gained: Array) -> Any:
        options = self.options
        downhill = (abs(d[0]) < options.th_grad) | (gained > options.th_acceptstep * expected)
        return choose(expected >= 0, downhill, gained > options.th_acceptnegstep * expected)

    def advance(self, length: Array, found: Trial) -> tuple[Array, Any]:
        old = self.iterate
        if not anyone(~old.feasible):
            return old.gaps, old.feasible
        return (1.0 - length)[..., None, None] * old.gaps, old.feasible | (length == 1)
