"""The classical Runge-Kutta step of a robot's node, of four stages; impacts and costs included.

    y_1 = x,   y_i = x (+) c_i dt k_{i-1},   k_i = (v_i, a(y_i, u)),   c = (0, 1/2, 1/2, 1)
    x' = x (+) dt sum b_i k_i,   l = sum b_i l(y_i, u),   b = (1/6, 1/3, 1/3, 1/6)

    dk_i = [[0, 1], [a_q, a_v]] dy_i + (0, a_u du),   dy_i = J_1 dx + c_i dt J_2 dk_{i-1}

with J_1, J_2 the Jacobians of x (+) dx. Forces, accelerations and reports that are handed out are those of the first
stage. At an impact all stages are that impact.

Reference: C. Mastalli et al., Crocoddyl (2020), `IntegratedActionModelRK4`, whose costs are integrated so, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from saltus.arrays import Array
from saltus.kernel import kernel, ld, less, select, st, zero
from saltus.model.manifold import step_joint
from saltus.ocp.states import MultibodyState

SHARES, AHEAD = (1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0), (0.0, 0.5, 0.5, 1.0)

OWN = {
    "nrkq": {"stage_q": None},
    "nrkv": {"stage_v": None},
    "nv": {"stage_a": None, "sum_q": None, "sum_v": None},
    "nm": {"stage_forces": None},
    "nrep": {"stage_report": None},
}


def make_rk4(advance: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of a node of four stages, by that of a step of semi-implicit Euler: what that says of its start."""

    @kernel
    def advance_rk4(tree, q, v, u, data, start, w, next_q, next_v, a, forces, report):
        nv, o = tree.nv, zero(data)
        dt, impact, total = ld(data, 0), less(0.5 + o, ld(data, 2)), o
        for i in range(tree.nq):
            w.stage_q[i] = ld(q, i)
        for k in range(nv):
            w.stage_v[k] = ld(v, k)
            w.sum_q[k], w.sum_v[k] = o, o
        for stage in range(4):
            cost = advance(
                tree, w.stage_q, w.stage_v, u, data, start, w, next_q, next_v, w.stage_a, w.stage_forces, w.stage_report
            )
            share = 1.0 / 6.0 if stage == 0 or stage == 3 else 1.0 / 3.0
            ahead = 1.0 if stage == 2 else 0.5
            total = total + share * cost
            if stage == 0:
                for k in range(nv):
                    st(a, k, w.stage_a[k])
                for r in range(tree.nm):
                    st(forces, r, w.stage_forces[r])
                for r in range(tree.nrep):
                    st(report, r, w.stage_report[r])
            for k in range(nv):
                rate, rise = w.stage_v[k], w.stage_a[k]
                w.sum_q[k] = w.sum_q[k] + share * rate
                w.sum_v[k] = w.sum_v[k] + share * rise
                w.slide[k] = select(impact, o, rate * (dt * ahead))
                w.stage_v[k] = ld(v, k) + select(impact, o, rise * (dt * ahead))
            for i in range(1, tree.nj):
                step_joint(tree, i, q, w.slide, 1.0, w.stage_q)
        for k in range(nv):
            w.slide[k] = w.sum_q[k] * dt
            st(next_v, k, select(impact, ld(next_v, k), ld(v, k) + w.sum_v[k] * dt))
        for i in range(1, tree.nj):
            step_joint(tree, i, q, w.slide, 1.0, next_q)
        return total

    return advance_rk4


class Stage(NamedTuple):
    """What a stage is at its state, and how that changes."""

    rate: Array  # (..., ndx) k = (v, a)
    Fx: Array  # of a step of one second: its lower half is (a_q, 1 + a_v)
    Fu: Array
    Lx: Array
    Lu: Array
    Lxx: Array
    Lxu: Array
    Luu: Array


class Step(NamedTuple):
    """Derivatives of whole steps."""

    Fx: Array
    Fu: Array
    Lx: Array
    Lu: Array
    Lxx: Array
    Lxu: Array
    Luu: Array


def transpose(matrix: Array) -> Array:
    return np.swapaxes(matrix, -1, -2)


def chain(state: MultibodyState, x: Array, dt: Array, stage_at: Callable[[Array], Stage], nu: int) -> Step:
    """The derivatives of steps from x (..., nx), of durations dt (...), by those of their stages."""
    n, nv, lead = state.ndx, state.ndx // 2, np.broadcast_shapes(x.shape[:-1], dt.shape)
    step, total = dt[..., None, None], list[Any]([0.0] * 5)
    k, k_x, k_u = np.zeros((*lead, n)), np.zeros((*lead, n, n)), np.zeros((*lead, n, nu))
    sum_k, sum_x, sum_u = np.zeros_like(k), np.zeros_like(k_x), np.zeros_like(k_u)
    for c, b in zip(AHEAD, SHARES, strict=True):
        slide = c * dt[..., None] * k
        J = state.integrate_jacobians(x, slide)
        y_x, y_u = J.first + c * step * (J.second @ k_x), c * step * (J.second @ k_u)
        at = stage_at(state.integrate(x, slide))
        K = at.Fx.copy()
        K[..., :nv, :] = 0.0
        K[..., :nv, nv:] = np.eye(nv)
        K[..., nv:, nv:] -= np.eye(nv)
        k, k_x, k_u = at.rate, K @ y_x, K @ y_u
        k_u[..., nv:, :] += at.Fu[..., nv:, :]
        sum_k, sum_x, sum_u = sum_k + b * k, sum_x + b * k_x, sum_u + b * k_u
        across = transpose(y_u) @ at.Lxu
        parts = (
            (transpose(y_x) @ at.Lx[..., None])[..., 0],
            at.Lu + (transpose(y_u) @ at.Lx[..., None])[..., 0],
            transpose(y_x) @ at.Lxx @ y_x,
            transpose(y_x) @ (at.Lxx @ y_u + at.Lxu),
            at.Luu + transpose(y_u) @ at.Lxx @ y_u + across + transpose(across),
        )
        total = [old + b * new for old, new in zip(total, parts, strict=True)]
    J = state.integrate_jacobians(x, dt[..., None] * sum_k)
    return Step(J.first + step * (J.second @ sum_x), step * (J.second @ sum_u), *total)
