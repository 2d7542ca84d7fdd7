"""What solvers of optimal control know of a problem, and what they answer.

    minimise  sum_t l_t(x_t, u_t) + l_T(x_T)    subject to    x_0 given,  x_{t+1} = f_t(x_t, u_t)

States lie on a manifold: `integrate` adds a tangent, `difference(a, b)` is the tangent that leads from a to b. Nodes are an
axis of all arrays, the last but those of one node; problems of a batch are axes before it.

| symbol | field | shape |
|---|---|---|
| f_t(x_t, u_t) | `Values.next` | (..., T, nx) |
| l_t, l_T | `Values.costs` | (..., T + 1) |
| f_x, f_u | `Expansion.Fx`, `.Fu` | (..., T, ndx, ndx), (..., T, ndx, nu) |
| l_x, l_u, l_xx, l_xu, l_uu | `.Lx .Lu .Lxx .Lxu .Luu` | those of states with the terminal node, (..., T + 1, ndx) ... |
| gap of node t | `gaps` | (..., T + 1, ndx): x_0 (-) x_0', and f_t(x_t, u_t) (-) x_{t+1} |

Reference: C. Mastalli et al., Crocoddyl: an efficient and versatile framework for multi-contact optimal control (2020).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from saltus.arrays import Array
from saltus.ocp.status import OCPStatus


class Values(NamedTuple):
    """What all nodes do."""

    next: Array
    """(..., T, nx) the states that they lead to."""
    costs: Array
    """(..., T + 1)"""
    values: Any = None
    """What else is known, a named tuple of arrays: `calc_diff` and `forward` are given it back, as `values`."""


class EulerSteps(NamedTuple):
    """Nodes that are steps of semi-implicit Euler: dq' = A dq + B dv', and dv' as Fx and Fu have it (euler_structure.py)."""

    blocks: tuple[tuple[int, int], ...]
    """First degree of freedom and size of the joints whose blocks of A are not identities, and of B not h times that."""
    A: Array
    """(..., T, sum of squared sizes): their blocks, one after the other, row by row."""
    B: Array
    h: Array
    """(..., T) the time steps."""
    steps: Any
    """(T,) of integers: 1 where a node is such a step (also an impact, with h = 0), 0 of others, which may be anything."""


class Expansion(NamedTuple):
    """The derivatives of all nodes."""

    Fx: Array
    Fu: Array
    Lx: Array
    Lu: Array
    Lxx: Array
    Lxu: Array
    Luu: Array
    euler: EulerSteps | None = None
    """What is known of Fx and Fu, see euler_structure.py."""


class Trial(NamedTuple):
    """Rollouts with A step lengths."""

    xs: Array
    """(A, ..., T + 1, nx)"""
    us: Array
    """(A, ..., T, nu)"""
    costs: Array
    """(A, ...); not finite if the rollout is lost."""
    values: Any = None
    """What else rollouts know, as `Values.values`, with the axis A in front."""


class OptimalControlProblem(Protocol):
    """What a solver needs. Attributes beyond these may be there: `controlled` (T,), 0 where controls do nothing (impacts);
    `batch`, leading axes of what the problem brings, if those are not x0's; `blame(xs, us, node)`, what may be wrong with a
    node at states (T + 1, nx) and controls (T, nu), in words: which term."""

    nx: int
    ndx: int
    nu: int
    T: int

    @property
    def x0(self) -> Array:
        """(..., nx)"""

    @property
    def u_lower(self) -> Array:
        """(nu,) bounds that the Box solvers keep; -inf where there is none."""

    @property
    def u_upper(self) -> Array:
        """(nu,)"""

    def integrate(self, x: Array, dx: Array) -> Array:
        """x (+) dx"""

    def difference(self, a: Array, b: Array) -> Array:
        """b (-) a: `integrate(a, difference(a, b))` is b."""

    def calc(self, xs: Array, us: Array) -> Values: ...

    def calc_diff(self, xs: Array, us: Array, out: Expansion | None = None) -> Expansion:
        """`out`: an earlier result, whose memory this one may take."""

    def forward(
        self, xs: Array, us: Array, gaps: Array, K: Array, k: Array, lengths: Array, bounded: Any = False
    ) -> Trial:
        """For all step lengths a in `lengths` (A,), u_t' = u_t - a k_t - K_t (x_t' (-) x_t), `bounded` (...): within bounds;
        x_0' = x_0 (+) (a - 1) gap_0, x_{t+1}' = f_t(x_t', u_t') (+) (a - 1) gap_{t+1}."""


class Log(NamedTuple):
    """What happened: one entry an iteration, an array (iterations,) or (iterations, ...) for a batch."""

    cost: Array
    """After the iteration."""
    stop: Array
    """What the stopping criterion was."""
    grad: Array
    """|d_1|, the slope of the expected improvement."""
    preg: Array
    """Regularisation of states, and of controls."""
    dreg: Array
    step: Array
    """The step length."""
    ffeas: Array
    """The largest gap before the iteration."""
    expected: Array
    """The improvement of the cost that was expected, and the one that came."""
    gained: Array

    HEADER = "iter     cost         stop         grad         xreg         ureg       step    ||ffeas||"  # type: ignore[misc]

    def __str__(self) -> str:
        """The table that peers print."""
        lines = [self.HEADER]
        for i in range(len(self.cost)):
            lines += [log_line(i, *(float(np.asarray(column[i]).ravel()[0]) for column in self[:7]))]
        return "\n".join(lines)


def log_line(
    iteration: int, cost: float, stop: float, grad: float, preg: float, dreg: float, step: float, ffeas: float
) -> str:
    """One iteration, in the widths of the header.

    >>> log_line(3, 249.56, 1e-10, 2e-10, 1e-9, 1e-9, 1.0, 0.0)
    '   3  2.49560e+02  1.00000e-10  2.00000e-10  1.00000e-09  1.00000e-09  1.0000  0.00000e+00'
    """
    return (
        f"{iteration:4d}  {cost:.5e}  {stop:.5e}  {grad:.5e}  {preg:.5e}  {dreg:.5e}  {step:.4f}  {ffeas:.5e}"
    )  # fmt: skip


class OCPResult(NamedTuple):
    """The last iterate, and how it came about."""

    xs: Array
    """(..., T + 1, nx)"""
    us: Array
    """(..., T, nu)"""
    cost: Any
    """(...)"""
    iterations: Any
    """(...)"""
    status: Any
    """(...) of `OCPStatus`; one problem's is a member."""
    culprit: Any
    """(...) the node to blame if it failed, else -1; also -1 if there were only a few iterations (solver.py)."""
    reason: str
    """Why it stopped, in words, if it failed (of a batch, the first that did)."""
    gaps: Array
    """(..., T + 1, ndx)"""
    K: Array
    """(..., T, nu, ndx) feedback gains: u = us - K (x (-) xs)."""
    k: Array
    """(..., T, nu)"""
    Vx: Array
    """(..., T + 1, ndx) slope and curvature of the value function."""
    Vxx: Array
    log: Log

    @property
    def solved(self) -> bool:
        """Whether all of them are."""
        return bool(np.all(np.asarray(self.status) == OCPStatus.SOLVED))
