"""The sparse Cholesky factors of the whole KKT matrix of a constrained robot, and products and solves with them.

    K_mu = [ -mu  J ]  =  U_K D_K U_K^T,      U_K = [ V  K ],      D_K = [ -E    ]
           [ J^T  M ]                               [    U ]             [     D ]

M = U D U^T along the tree, without fill-in; K = J U^-T D^-1, zero where a joint does not move a constraint; V E V^T is
the damped Delassus matrix J M^-1 J^T + mu, dense. Any positive definite M will do that has the sparsity of the tree: a
diagonal one, as in inverse kinematics, in particular. O(n d^2 + m d^2 + m^2 d + m^3) for depth d.

Reference: J. Carpentier, R. Budhiraja, N. Mansard, Proximal and sparse resolution of constrained dynamic equations (2021),
section IV, equation 24 and algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.constraints.tables import MOVERS, ConstrainedModel, constrained
from saltus.dynamics.ltl import copy, factor, multiply_lower, multiply_upper, solve_lower, solve_upper
from saltus.kernel import kernel, ld, st, tail

UPPER, LOWER, SOLVE_UPPER, SOLVE_LOWER, SOLVE = range(5)
"""U x, U^T x, U^-1 x, U^-T x, K_mu^-1 x"""


@constrained(
    MOVERS,
    inputs={"M": "nv nv", "J": "nm nv"},
    outputs={"U": "nv nv zeroed", "D": "nv", "K": "nm nv", "V": "nm nm zeroed", "E": "nm"},
    double_only=True,
)
def _kkt_factor(tree, M, J, w, U, D, K, V, E):
    nv, nm = tree.nv, tree.nm
    for k in range(nv):
        i = k
        while i >= 0:
            st(U, i * nv + k, ld(M, i * nv + k))
            i = tree.above[i]
    factor(tree.above, nv, U, D)
    copy(J, K, nm * nv)
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            row = tail(K, r * nv)
            for n in range(tree.first_mover[c], tree.end_mover[c]):
                k = tree.mover[n]
                i = tree.above[k]
                while i >= 0:  # K D = J U^-T
                    st(row, i, ld(row, i) - ld(U, i * nv + k) * ld(row, k))
                    i = tree.above[i]
                st(row, k, ld(row, k) / ld(D, k))
            for s in range(r + 1):
                total = ld(D, 0) * 0.0
                for n in range(tree.first_mover[c], tree.end_mover[c]):
                    k = tree.mover[n]
                    total = total + ld(row, k) * ld(D, k) * ld(K, s * nv + k)
                st(V, s * nm + r, total)
            st(V, r * nm + r, ld(V, r * nm + r) + tree.mu[r])
    factor(tree.before, nm, V, E)


@constrained(
    MOVERS,
    inputs={"U": "nv nv", "D": "nv", "K": "nm nv", "V": "nm nm", "E": "nm", "product": "1 int", "x": "nv", "y": "nm"},
    outputs={"x_new": "nv", "y_new": "nm"},
    double_only=True,
)
def _kkt_times(tree, U, D, K, V, E, product, x, y, w, x_new, y_new):
    nv, nm, what = tree.nv, tree.nm, product[0]
    copy(x, x_new, nv)
    copy(y, y_new, nm)
    if what == UPPER:
        multiply_upper(tree.before, nm, V, y_new)
        add_joints(tree, K, x_new, 1.0, y_new)
        multiply_upper(tree.above, nv, U, x_new)
    if what == LOWER:
        multiply_lower(tree.above, nv, U, x_new)
        add_rows(tree, K, y_new, 1.0, x_new)
        multiply_lower(tree.before, nm, V, y_new)
    if what == SOLVE_UPPER or what == SOLVE:
        solve_upper(tree.above, nv, U, x_new)
        add_joints(tree, K, x_new, -1.0, y_new)
        solve_upper(tree.before, nm, V, y_new)
    if what == SOLVE:
        for k in range(nv):
            st(x_new, k, ld(x_new, k) / ld(D, k))
        for r in range(nm):
            st(y_new, r, -(ld(y_new, r) / ld(E, r)))
    if what == SOLVE_LOWER or what == SOLVE:
        solve_lower(tree.before, nm, V, y_new)
        add_rows(tree, K, y_new, -1.0, x_new)
        solve_lower(tree.above, nv, U, x_new)


@kernel
def add_joints(tree, K, x, sign, y):
    """y + K x, by its sign."""
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            total = ld(y, r)
            for n in range(tree.first_mover[c], tree.end_mover[c]):
                k = tree.mover[n]
                total = total + ld(K, r * tree.nv + k) * ld(x, k) * sign
            st(y, r, total)


@kernel
def add_rows(tree, K, y, sign, x):
    """x + K^T y, by its sign."""
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            for n in range(tree.first_mover[c], tree.end_mover[c]):
                k = tree.mover[n]
                st(x, k, ld(x, k) + ld(K, r * tree.nv + k) * ld(y, r) * sign)


@dataclass(frozen=True, eq=False)
class KKTFactors:
    """K_mu = U_K D_K U_K^T in blocks (see kkt_factors.py). Products take and give vectors (..., nm + nv), rows first."""

    problem: ConstrainedModel
    U: Array  # (..., nv, nv) unit upper triangular
    D: Array  # (..., nv)
    K: Array  # (..., nm, nv)
    V: Array  # (..., nm, nm) unit upper triangular
    E: Array  # (..., nm)

    def upper(self, x: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Array:
        """U_K x"""
        return self._times(UPPER, x, on_invalid)

    def lower(self, x: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Array:
        """U_K^T x"""
        return self._times(LOWER, x, on_invalid)

    def solve_upper(self, x: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Array:
        """U_K^-1 x"""
        return self._times(SOLVE_UPPER, x, on_invalid)

    def solve_lower(self, x: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Array:
        """U_K^-T x"""
        return self._times(SOLVE_LOWER, x, on_invalid)

    def solve(self, x: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Array:
        """K_mu^-1 x"""
        return self._times(SOLVE, x, on_invalid)

    @property
    def delassus(self) -> Array:
        """J M^-1 J^T (..., nm, nm), from its factors."""
        damped = (self.V * self.E[..., None, :]) @ np.swapaxes(self.V, -1, -2)
        return np.asarray(damped - np.diag(self.problem.mu))

    @property
    def osim(self) -> Array:
        """(J M^-1 J^T + mu)^-1 (..., nm, nm), from its factors."""
        inverse = np.linalg.inv(self.V)
        return np.asarray(np.swapaxes(inverse, -1, -2) @ (inverse / self.E[..., None]))

    def _times(self, product: int, x: ArrayLike, on_invalid: OnInvalid) -> Array:
        nm = self.problem.nm
        x = np.asarray(x)
        blocks: tuple[Any, ...] = (self.U, self.D, self.K, self.V, self.E, np.array([product], np.int32))
        joints, rows = _kkt_times.call(self.problem, (*blocks, x[..., nm:], x[..., :nm]), None, on_invalid)
        return np.concatenate([rows, joints], axis=-1)


def factor_kkt(problem: ConstrainedModel, M: ArrayLike, J: ArrayLike, on_invalid: OnInvalid = "raise") -> KKTFactors:
    return KKTFactors(problem, *_kkt_factor.call(problem, (M, J), None, on_invalid))
