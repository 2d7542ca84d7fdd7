"""States, and the manifolds that they lie on: vectors, and configurations with velocities.

    integrate(x, dx) = x (+) dx,      difference(a, b) = b (-) a,  so that  a (+) (b (-) a) = b

| state | x | tangent dx |
|---|---|---|
| `VectorState` | n numbers | n |
| `MultibodyState` | q (nq), v (nv) | along the manifold of q (nv), of v (nv) |

Jacobians are in the tangents at the result of `integrate`, and at a and b, as Crocoddyl's `Jintegrate` and `Jdiff`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from saltus.arrays import Array
from saltus.model.manifold import difference, integrate, random_configuration
from saltus.model.manifold_jacobians import difference_jacobians, integrate_jacobians
from saltus.model.model import Model


class StateJacobians(NamedTuple):
    """By the first argument and by the second, both (..., ndx, ndx)."""

    first: Array
    second: Array


@dataclass(frozen=True)
class VectorState:
    """Vectors of n numbers.

    >>> state = VectorState(2)
    >>> state.difference(np.array([1.0, 2.0]), np.array([3.0, 5.0]))
    array([2., 3.])
    """

    n: int

    @property
    def nx(self) -> int:
        return self.n

    @property
    def ndx(self) -> int:
        return self.n

    def zero(self) -> Array:
        return np.zeros(self.n)

    def random(self, seed: int | np.random.Generator) -> Array:
        return np.random.default_rng(seed).normal(size=self.n)

    def integrate(self, x: Array, dx: Array) -> Array:
        return x + dx

    def difference(self, a: Array, b: Array) -> Array:
        return b - a

    def integrate_jacobians(self, x: Array, dx: Array) -> StateJacobians:
        one = np.broadcast_to(np.eye(self.n), (*np.broadcast_shapes(x.shape, dx.shape), self.n))
        return StateJacobians(one, one)

    def difference_jacobians(self, a: Array, b: Array) -> StateJacobians:
        one = self.integrate_jacobians(a, b).first
        return StateJacobians(-one, one)


@dataclass(frozen=True)
class MultibodyState:
    """Configurations and velocities of a robot.

    >>> import saltus as sl
    >>> state = MultibodyState(sl.load_robot("quadruped"))
    >>> state.nx, state.ndx
    (37, 36)
    >>> a, b = state.random(0), state.random(1)
    >>> again = state.integrate(a, state.difference(a, b))
    >>> bool(np.allclose(state.difference(again, b), 0.0))
    True
    """

    model: Model

    @property
    def nx(self) -> int:
        return self.model.nq + self.model.nv

    @property
    def ndx(self) -> int:
        return 2 * self.model.nv

    def zero(self) -> Array:
        """At neutral, and at rest."""
        return np.concatenate([self.model.neutral(), np.zeros(self.model.nv)])

    def random(self, seed: int | np.random.Generator) -> Array:
        rng = np.random.default_rng(seed)
        return np.concatenate([random_configuration(self.model, rng), rng.normal(size=self.model.nv)])

    def integrate(self, x: Array, dx: Array) -> Array:
        nq, nv = self.model.nq, self.model.nv
        q = integrate(self.model, x[..., :nq], dx[..., :nv])
        return np.concatenate([q, x[..., nq:] + dx[..., nv:]], axis=-1)

    def difference(self, a: Array, b: Array) -> Array:
        nq = self.model.nq
        return np.concatenate([difference(self.model, a[..., :nq], b[..., :nq]), b[..., nq:] - a[..., nq:]], axis=-1)

    def integrate_jacobians(self, x: Array, dx: Array) -> StateJacobians:
        nq, nv = self.model.nq, self.model.nv
        by_q, by_v = integrate_jacobians(self.model, x[..., :nq], dx[..., :nv])
        return StateJacobians(self._whole(by_q, 1.0), self._whole(by_v, 1.0))

    def difference_jacobians(self, a: Array, b: Array) -> StateJacobians:
        nq = self.model.nq
        by_a, by_b = difference_jacobians(self.model, a[..., :nq], b[..., :nq])
        return StateJacobians(self._whole(by_a, -1.0), self._whole(by_b, 1.0))

    def _whole(self, block: Array, sign: float) -> Array:
        """With that of velocities, which are vectors."""
        nv = self.model.nv
        J = np.zeros((*block.shape[:-2], 2 * nv, 2 * nv))
        J[..., :nv, :nv] = block
        J[..., nv:, nv:] = sign * np.eye(nv)
        return J
