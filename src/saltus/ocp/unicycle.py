"""A unicycle that drives to the origin: the smallest problem that is not linear, as Crocoddyl has it.

    x = (x, y, theta), u = (v, omega):  x' = x + h (v cos theta, v sin theta, omega),  l = 1/2 (|w_x x|^2 + |w_u u|^2)

A node's row of data is (h, w_x, w_u).
"""

from __future__ import annotations

import numpy as np

from saltus.arrays import Array, ArrayLike
from saltus.kernel import kernel, ld, sincos, st
from saltus.ocp.forward import Node, node_algorithms, reach_of_vector
from saltus.ocp.horizon import HORIZON_TABLES
from saltus.ocp.problem import Expansion
from saltus.ocp.vector_problem import VectorProblem, add, subtract


@kernel
def final(tree, x, data, w):
    weight = ld(data, 1)
    return 0.5 * weight * weight * (ld(x, 0) * ld(x, 0) + ld(x, 1) * ld(x, 1) + ld(x, 2) * ld(x, 2))


@kernel
def step(tree, t, x, u, data, w, next, kept):
    h, weight = ld(data, 0), ld(data, 2)
    s, c = sincos(ld(x, 2))
    cost = final(tree, x, data, w) + 0.5 * weight * weight * (ld(u, 0) * ld(u, 0) + ld(u, 1) * ld(u, 1))
    st(next, 0, ld(x, 0) + h * ld(u, 0) * c)
    st(next, 1, ld(x, 1) + h * ld(u, 0) * s)
    st(next, 2, ld(x, 2) + h * ld(u, 1))
    return cost


class Unicycle(VectorProblem):
    """T steps of `dt` from `x0` (..., 3) on.

    >>> from saltus.ocp.fddp import FDDP
    >>> result = FDDP(Unicycle([-1.0, -1.0, 1.0], T=20)).solve()
    >>> str(result.status), float(round(result.cost, 6))
    ('solved', 249.560898)
    """

    algorithms = node_algorithms("unicycle", HORIZON_TABLES, Node(step, final, add, subtract, reach_of_vector))

    def __init__(
        self,
        x0: ArrayLike,
        T: int,
        dt: float = 0.1,
        weights: tuple[float, float] = (10.0, 1.0),
        u_lower: ArrayLike | None = None,
        u_upper: ArrayLike | None = None,
    ) -> None:
        self.dt, self.weights = dt, weights
        super().__init__(x0, T, 2, np.tile([dt, *weights], (T + 1, 1)), u_lower, u_upper)

    def calc_diff(self, xs: Array, us: Array, out: Expansion | None = None) -> Expansion:
        """In closed form."""
        lead, T, h = xs.shape[:-2], self.T, self.dt
        wx, wu = (weight**2 for weight in self.weights)
        s, c, v = np.sin(xs[..., :-1, 2]), np.cos(xs[..., :-1, 2]), us[..., 0]
        Fx, Fu = np.tile(np.eye(3), (*lead, T, 1, 1)), np.zeros((*lead, T, 3, 2))
        Fx[..., 0, 2], Fx[..., 1, 2] = -h * v * s, h * v * c
        Fu[..., 0, 0], Fu[..., 1, 0], Fu[..., 2, 1] = h * c, h * s, h
        Lxx, Luu = np.tile(wx * np.eye(3), (*lead, T + 1, 1, 1)), np.tile(wu * np.eye(2), (*lead, T, 1, 1))
        return Expansion(Fx, Fu, wx * xs, wu * us, Lxx, np.zeros((*lead, T, 3, 2)), Luu)
