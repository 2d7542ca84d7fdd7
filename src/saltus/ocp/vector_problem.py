"""Problems on vector spaces, whose nodes are kernels: what LQR and the unicycle have in common, and a model for others."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from saltus.arrays import Array, ArrayLike, real_numbers
from saltus.kernel import kernel, ld, st
from saltus.ocp.forward import NodeAlgorithms, roll_out
from saltus.ocp.horizon import Horizon
from saltus.ocp.problem import Expansion, Trial, Values

FREE = 1e30
"""Stands for no bound: kernels are given finite numbers."""


@kernel
def add(tree, x, dx, w, there):
    for i in range(tree.ox):
        st(there, i, ld(x, i) + ld(dx, i))


@kernel
def subtract(tree, a, b, w, dx):
    for i in range(tree.ox):
        st(dx, i, ld(b, i) - ld(a, i))


class VectorProblem:
    """T nodes of one kind on a vector space; `data` (..., T + 1, numbers of a node) is what they bring along."""

    algorithms: NodeAlgorithms
    """Of the class."""

    def __init__(
        self,
        x0: ArrayLike,
        T: int,
        nu: int,
        data: ArrayLike,
        u_lower: ArrayLike | None = None,
        u_upper: ArrayLike | None = None,
    ) -> None:
        self.x0 = finite(x0, "x0")
        self.data = finite(data, "data")
        if T < 1 or self.data.shape[-2] != T + 1:
            raise ValueError(
                f"{type(self).__name__}: T is {T} and data has the shape {self.data.shape}, expected (..., T + 1, n), T > 0"
            )
        self.T, self.nu = T, nu
        self.nx = self.ndx = self.x0.shape[-1]
        self.u_lower = np.full(nu, -np.inf) if u_lower is None else np.broadcast_to(np.asarray(u_lower, float), (nu,))
        self.u_upper = np.full(nu, np.inf) if u_upper is None else np.broadcast_to(np.asarray(u_upper, float), (nu,))
        self.horizon = Horizon(T, self.nx, self.ndx, nu, self.data.shape[-1])

    @property
    def batch(self) -> tuple[int, ...]:
        """Leading axes of what the problem brings."""
        return np.broadcast_shapes(self.x0.shape[:-1], self.data.shape[:-2])

    def integrate(self, x: Array, dx: Array) -> Array:
        """x + dx"""
        return x + dx

    def difference(self, a: Array, b: Array) -> Array:
        """b - a"""
        return b - a

    def calc(self, xs: Array, us: Array) -> Values:
        """All nodes, as one batch."""
        next, costs = self.algorithms.step.call(self.horizon, (xs[..., :-1, :], us, self.data[..., :-1, :]))
        final = self.algorithms.final.call(self.horizon, (xs[..., -1, :], self.data[..., -1, :]))
        return Values(next, np.concatenate([costs[..., 0], final], -1))

    def calc_diff(self, xs: Array, us: Array, out: Expansion | None = None) -> Expansion:
        raise NotImplementedError

    def forward(
        self, xs: Array, us: Array, gaps: Array, K: Array, k: Array, lengths: Array, bounded: Any = False
    ) -> Trial:
        """Rollouts for all `lengths` (A,) at once."""
        inputs = (self.x0, xs, us, gaps, K, k)
        return roll_out(
            self.algorithms.forward, self.horizon, inputs, lengths, control_bounds(self, bounded), self.data
        )


def control_bounds(problem: Any, bounded: Any) -> Array:
    """(..., 2, nu) of numbers, for problems whose bounds hold or not (...)."""
    none = free_controls(problem.nu)
    if bounded is False:
        return none
    own = np.clip(np.stack([problem.u_lower, problem.u_upper]), -FREE, FREE)
    return np.where(np.asarray(bounded)[..., None, None], own, none)


@cache
def free_controls(nu: int) -> Array:
    """(2, nu)"""
    bounds = np.outer([-FREE, FREE], np.ones(nu))
    bounds.flags.writeable = False
    return bounds


def finite(values: ArrayLike, name: str) -> Array:
    """As an array of its own; or it says which number is not finite."""
    array = np.array(real_numbers(values, name), float)
    sound = np.isfinite(array)
    if not sound.all():
        place = tuple(np.argwhere(~sound)[0].tolist())
        raise ValueError(f"{name}[{', '.join(map(str, place))}] is {array[place]}, expected finite numbers")
    return array
