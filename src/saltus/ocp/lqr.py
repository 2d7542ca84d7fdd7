"""Linear quadratic problems, time-varying: for tests, and where nothing else is needed.

    x_{t+1} = A_t x_t + B_t u_t + f_t,  l_t = 1/2 x'Q_t x + x'N_t u + 1/2 u'R_t u + q_t'x + r_t'u,  l_T = 1/2 x'Q_T x + q_T'x

A node's row of data is (A, B, f, Q, N, R, q, r), one after the other. Reference: R. Bellman (1957).
"""

from __future__ import annotations

import numpy as np

from saltus.arrays import Array, ArrayLike
from saltus.kernel import kernel, ld, st, tail, zero
from saltus.ocp.forward import Node, node_algorithms, reach_of_vector
from saltus.ocp.horizon import HORIZON_TABLES
from saltus.ocp.problem import Expansion
from saltus.ocp.vector_problem import VectorProblem, add, subtract


@kernel
def bilinear(x, M, y, rows, columns):
    """x'M y"""
    found = zero(x)
    for i in range(rows):
        for j in range(columns):
            found = found + ld(x, i) * ld(M, i * columns + j) * ld(y, j)
    return found


@kernel
def step(tree, t, x, u, data, w, next, kept):
    n, m = tree.ox, tree.ou
    B, f = tail(data, n * n), tail(data, n * n + n * m)
    for i in range(n):
        to = ld(f, i)
        for j in range(n):
            to = to + ld(data, i * n + j) * ld(x, j)
        for j in range(m):
            to = to + ld(B, i * m + j) * ld(u, j)
        st(next, i, to)
    Q = tail(f, n)
    N, R = tail(Q, n * n), tail(Q, n * n + n * m)
    q = tail(R, m * m)
    cost = 0.5 * bilinear(x, Q, x, n, n) + bilinear(x, N, u, n, m) + 0.5 * bilinear(u, R, u, m, m)
    for i in range(n):
        cost = cost + ld(q, i) * ld(x, i)
    for i in range(m):
        cost = cost + ld(q, n + i) * ld(u, i)
    return cost


@kernel
def final(tree, x, data, w):
    n, m = tree.ox, tree.ou
    Q = tail(data, n * n + n * m + n)
    q = tail(Q, n * n + n * m + m * m)
    cost = 0.5 * bilinear(x, Q, x, n, n)
    for i in range(n):
        cost = cost + ld(q, i) * ld(x, i)
    return cost


class LQR(VectorProblem):
    """A linear quadratic problem: arrays over nodes, (T, ...) or (T + 1, ...) for Q and q.

    >>> import numpy as np
    >>> from saltus.ocp.ddp import DDP
    >>> A, B = np.eye(1)[None], np.ones((1, 1, 1))
    >>> problem = LQR([1.0], A, B, Q=np.ones((2, 1, 1)), R=np.ones((1, 1, 1)))
    >>> DDP(problem).solve().us.round(9)
    array([[-0.5]])
    """

    algorithms = node_algorithms("lqr", HORIZON_TABLES, Node(step, final, add, subtract, reach_of_vector))

    def __init__(
        self,
        x0: ArrayLike,
        A: ArrayLike,
        B: ArrayLike,
        Q: ArrayLike,
        R: ArrayLike,
        N: ArrayLike | None = None,
        f: ArrayLike | None = None,
        q: ArrayLike | None = None,
        r: ArrayLike | None = None,
        u_lower: ArrayLike | None = None,
        u_upper: ArrayLike | None = None,
    ) -> None:
        A, B, Q, R = (np.asarray(array, float) for array in (A, B, Q, R))
        batch, (T, n, m) = B.shape[:-3], B.shape[-3:]
        none = np.zeros
        parts = {
            "A": (A, (T, n, n)), "B": (B, (T, n, m)), "f": (none((T, n)) if f is None else f, (T, n)),
            "Q": (Q, (T + 1, n, n)),
            "N": (none((T, n, m)) if N is None else N, (T, n, m)), "R": (R, (T, m, m)),
            "q": (none((T + 1, n)) if q is None else q, (T + 1, n)), "r": (none((T, m)) if r is None else r, (T, m)),
        }  # fmt: skip
        rows = []
        for name, (value, shape) in parts.items():
            array = np.asarray(value, float)
            if array.shape[array.ndim - len(shape) :] != shape:
                raise ValueError(
                    f"LQR: {name} has the shape {array.shape}, expected (..., {', '.join(map(str, shape))})"
                )
            flat = array.reshape(*array.shape[: array.ndim - len(shape)], shape[0], -1)
            row = np.zeros((*np.broadcast_shapes(batch, flat.shape[:-2]), T + 1, flat.shape[-1]))
            row[..., : shape[0], :] = flat
            rows.append(row)
        self.parts = {name: np.asarray(value, float) for name, (value, _) in parts.items()}
        super().__init__(x0, T, m, np.concatenate(rows, -1), u_lower, u_upper)

    def calc_diff(self, xs: Array, us: Array, out: Expansion | None = None) -> Expansion:
        """The slopes at xs, us; all else is given."""
        A, B, _, Q, N, R, q, r = self.parts.values()
        lead = np.broadcast_shapes(xs.shape[:-2], self.data.shape[:-2])

        def spread(array: Array, axes: int) -> Array:
            return np.broadcast_to(array, (*lead, *array.shape[array.ndim - axes :]))

        Lx = np.einsum("...ij,...j->...i", Q, xs) + q
        Lx[..., :-1, :] += np.einsum("...ij,...j->...i", N, us)
        Lu = np.einsum("...ij,...j->...i", R, us) + np.einsum("...ji,...j->...i", N, xs[..., :-1, :]) + r
        return Expansion(spread(A, 3), spread(B, 3), Lx, Lu, spread(Q, 3), spread(N, 3), spread(R, 3))


def random_lqr(T: int, nx: int, nu: int, seed: int = 0, shape: tuple[int, ...] = (), bound: float | None = None) -> LQR:
    """A problem with any numbers, stable enough to be solved, and convex; `bound`: of all controls."""
    draw = np.random.default_rng(seed)
    A = 0.9 * np.eye(nx) + 0.3 * draw.normal(size=(*shape, T, nx, nx)) / np.sqrt(nx)
    B = draw.normal(size=(*shape, T, nx, nu)) / np.sqrt(nx)
    half = draw.normal(size=(*shape, T + 1, nx + nu, nx + nu)) / np.sqrt(nx + nu)
    H = half @ half.swapaxes(-1, -2) + 0.1 * np.eye(nx + nu)
    return LQR(
        draw.normal(size=(*shape, nx)), A, B, H[..., :nx, :nx], H[..., :-1, nx:, nx:], H[..., :-1, :nx, nx:],
        draw.normal(size=(*shape, T, nx)), draw.normal(size=(*shape, T + 1, nx)), draw.normal(size=(*shape, T, nu)),
        None if bound is None else -bound, bound,
    )  # fmt: skip
