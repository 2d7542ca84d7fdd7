"""Problems and truths that tests of solvers share."""

from __future__ import annotations

from typing import Any

import numpy as np

from saltus.ocp.lqr import LQR, random_lqr
from saltus.ocp.unicycle import Unicycle


def unicycle(T: int = 20, **bounds: Any) -> Unicycle:
    return Unicycle([-1.0, -1.0, 1.0], T, **bounds)


PROBLEMS = {
    "unicycle": unicycle(),
    "one": random_lqr(1, 1, 1),
    "odd": random_lqr(7, 5, 3, seed=1),
    "wide": random_lqr(5, 3, 9, seed=2),
    "even": random_lqr(6, 8, 4, seed=3),
    "quadruped": random_lqr(10, 36, 12, seed=4),
}


def start(problem: Any, seed: int = 0) -> tuple[Any, Any]:
    """States with gaps, and controls."""
    draw = np.random.default_rng(seed)
    lead = np.broadcast_shapes(problem.x0.shape[:-1], problem.data.shape[:-2])
    return draw.normal(size=(*lead, problem.T + 1, problem.nx)), draw.normal(size=(*lead, problem.T, problem.nu))


def linear_step(solver: Any) -> tuple[Any, Any]:
    """dx and du of a full step along a backward pass, to first order."""
    gains, nodes, gaps = solver.direction, solver.expansion, solver.iterate.gaps
    dx, du = [gaps[0]], []
    for t in range(len(nodes.Fx)):
        du.append(-gains.k[t] - gains.K[t] @ dx[t])
        dx.append(nodes.Fx[t] @ dx[t] + nodes.Fu[t] @ du[t] + gaps[t + 1])
    return np.array(dx), np.array(du)


def riccati(nodes: Any, gaps: Any, preg: float, dreg: float) -> tuple[Any, ...]:
    """K, k, Vx, Vxx of a backward pass in NumPy."""
    T, n, m = nodes.Fu.shape
    Vxx, K, k = [nodes.Lxx[T] + preg * np.eye(n)], [], []
    Vx = [nodes.Lx[T] + Vxx[0] @ gaps[T]]
    for t in reversed(range(T)):
        F = np.concatenate([nodes.Fu[t], nodes.Fx[t]], 1)
        L = np.block([[nodes.Luu[t], nodes.Lxu[t].T], [nodes.Lxu[t], nodes.Lxx[t]]])
        Q, q = L + F.T @ Vxx[-1] @ F, np.concatenate([nodes.Lu[t], nodes.Lx[t]]) + F.T @ Vx[-1]
        Quu = Q[:m, :m] + dreg * np.eye(m)
        K.append(np.linalg.solve(Quu, Q[:m, m:]))
        k.append(np.linalg.solve(Quu, q[:m]))
        Vxx.append(Q[m:, m:] - Q[m:, :m] @ K[-1] + preg * np.eye(n))
        Vx.append(q[m:] - Q[m:, :m] @ k[-1] + Vxx[-1] @ gaps[t])
    return tuple(np.array(x[::-1]) for x in (K, k, Vx, Vxx))


def difficult() -> LQR:
    """A problem with a node whose Q_uu is not positive definite."""
    problem = random_lqr(6, 4, 2, seed=5)
    R = problem.parts["R"].copy()
    R[3] = -1e3 * np.eye(2)
    return LQR(problem.x0, problem.parts["A"], problem.parts["B"], problem.parts["Q"], R)
