"""Analytical derivatives of impacts: of the velocities after them, and of the impulses.

    M jump - J^T impulses = 0,   J (jump + (1 + e) v) = 0,   v+ = v + jump

It is the problem of constrained.py with the jump in the place of accelerations, at rest and without gravity, and rows that
are rates: those of the velocities jump + (1 + e) v. The same inverse serves, the same lists say what is not zero.

| paper | code | what |
|---|---|---|
| v- , v+ - v- | `velocity`, `acceleration` | of each body, before the impact; and by how much it jumps |
| psi'_k of the two | `psi_dot`, `psi_ddot` | parent's velocity x S_k, and its jump x S_k |

Reference: M. Kudruss, P. Manns, C. Kirches, Efficient derivative evaluation for rigid-body dynamics (2019), section 3.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.constraints.dynamics import ConstrainedDynamics
from saltus.constraints.impact import Impact
from saltus.constraints.precision import in_double, is_single
from saltus.constraints.report import void
from saltus.constraints.system import take_row
from saltus.constraints.tables import INFLUENCES, MOVERS, constrained
from saltus.derivatives.constrained import WORK, apply_inverse, invert_system, turn_redundancy
from saltus.derivatives.constraint_rows import (
    add_rows,
    find_live,
    first_of,
    frames_of,
    load_bodies,
    rate_slopes,
    spread_matrix,
    turn_forces,
)
from saltus.derivatives.modes import jacobian, register
from saltus.derivatives.sweep import sweep_back
from saltus.dynamics.panel import clear
from saltus.kernel import kernel, ld, less, lift, some, st, zero
from saltus.model.joint_kernels import axis_seen_from, joint_placement, placed_after
from saltus.spatial.algebra import SE3, Force, Mat3, Motion, Sym3, Vec2, Vec3, cross_motion
from saltus.spatial.inertia import Rigid


@kernel
def sweep_jump(tree, q, v, jump, w):
    """To the leaves, as `sweep_out`: velocities before, jumps in the place of accelerations, forces I jump, nothing else."""
    o = zero(q)
    none, one = Vec3(o, o, o), lift(1.0, o)
    X = SE3(Mat3(one, o, o, o, one, o, o, o, one), none)
    if tree.nj > 1:
        X = SE3(X.R, -joint_placement(tree, 1, q, Vec2(one, o)).p)
    still = Motion(none, none)
    w.place[0], w.velocity[0], w.acceleration[0], w.force[0] = X, still, still, Force(none, none)
    w.composite[0] = Rigid(o, none, Sym3(o, o, o, o, o, o))
    for i in range(1, tree.nj):
        parent = tree.parent[i]
        X, velocity, rise = placed_after(tree, i, q, w.place[parent]), w.velocity[parent], w.acceleration[parent]
        before, step = velocity, rise
        for k in range(tree.iv[i], tree.end[i]):
            axis = axis_seen_from(X, tree.axis[k])
            w.axis[k], w.upsilon_dot[k] = axis, still
            w.psi_dot[k], w.psi_ddot[k] = cross_motion(before, axis), cross_motion(step, axis)
            velocity, rise = velocity + axis * ld(v, k), rise + axis * ld(jump, k)
        body = X @ tree.solid[i]
        w.place[i], w.velocity[i], w.acceleration[i], w.composite[i] = X, velocity, rise, body
        w.momentum[i], w.rate[i], w.force[i] = Force(none, none), Sym3(o, o, o, o, o, o), body @ rise


@kernel
def differentiate_rates(tree, impulses, active, restitution, rows, w, J, dq):
    """J, and the derivatives of all rates by q; takes the impulses off those of bodies. `rows`: those that users give."""
    for n in range(w.lives[0]):
        c = w.live[n]
        on = ld(active, c)
        if tree.given[c] >= 0:
            for r in range(tree.first_row[c], tree.end_row[c]):
                take_row(tree, c, r, w.row_place[r], rows, on, J)
            continue
        pair, share = frames_of(tree, c, w), 1.0 + ld(restitution, c)
        load_bodies(tree, c, pair, impulses, on, w, J)
        vb = w.acceleration[tree.body_b[c]] + pair.vb * share
        for side in range(2):
            k = first_of(tree, c, side)
            while k >= 0:
                psi = w.psi_ddot[k] + w.psi_dot[k] * share
                slopes = rate_slopes(tree, c, w.axis[k], psi, vb, side == 0, pair)
                add_rows(tree, c, k, slopes, on * (1.0 - 2.0 * side), w, dq)
                k = tree.above[k]


@constrained(
    MOVERS,
    INFLUENCES,
    inputs={"q": "nq", "v": "nv", "jump": "nv", "impulses": "nm", "active": "nc", "restitution": "nc", "rows": "nu nv"},
    outputs={"dv_dq": "nv nv", "dv_dv": "nv nv", "dimpulses_dq": "nm nv", "dimpulses_dv": "nm nv"},
    work=WORK.extended(nvv={"A": None}, nmv={"T": None, "N": None}, nmm={"G": None}),
    inverts_inertia=True,
    double_only=True,
)
def _impact_derivatives(
    tree, q, v, jump, impulses, active, restitution, rows, w, dv_dq, dv_dv, dimpulses_dq, dimpulses_dv
):
    nv = tree.nv
    find_live(tree, active, w)
    clear(dv_dq, nv * nv)
    clear(dimpulses_dq, tree.nm * nv)
    sweep_jump(tree, q, v, jump, w)
    differentiate_rates(tree, impulses, active, restitution, rows, w, w.J, dimpulses_dq)
    sweep_back(tree, w, w.M, dv_dq, dv_dv)
    turn_forces(tree, impulses, active, w, dv_dq)
    clear(dv_dv, nv * nv)
    for n in range(w.live_rows[0]):
        share = 1.0 + ld(restitution, tree.row_owner[w.live_row[n]])
        for k in range(nv):
            st(dimpulses_dv, n * nv + k, share * ld(w.J, n * nv + k))
    loose = invert_system(tree, w, w.A, w.T, w.N, w.G)
    apply_inverse(tree, w, w.A, w.T, w.N, w.G, dv_dq, dimpulses_dq)
    apply_inverse(tree, w, w.A, w.T, w.N, w.G, dv_dv, dimpulses_dv)
    if tree.most_iterations[0] > 1 and some(less(0.5, loose)):
        turn_redundancy(tree, loose, impulses, active, w, w.T, dimpulses_dq)
    spread_matrix(tree, w, dimpulses_dq, nv)
    spread_matrix(tree, w, dimpulses_dv, nv)
    for k in range(nv):
        st(dv_dv, k * nv + k, ld(dv_dv, k * nv + k) + 1.0)


class ImpactDerivatives(NamedTuple):
    """Of the velocities v+ after an impact (nv) and of the impulses (nm); the last axis is the direction.

    Where constraints contradict each other (the impact's status is LEAST_SQUARES), analytical derivatives are NaN.
    """

    impact: Impact
    dv_dq: Array  # (..., nv, nv), along the tangent of `integrate`
    dv_dv: Array  # (..., nv, nv), by the velocities before
    dimpulses_dq: Array  # (..., nm, nv)
    dimpulses_dv: Array  # (..., nm, nv)


def differentiate_impact(
    dynamics: ConstrainedDynamics,
    q: ArrayLike,
    v: ArrayLike,
    active: ArrayLike | None,
    restitution: ArrayLike,
    rows: ArrayLike | None,
    mode: str,
    on_invalid: OnInvalid,
) -> ImpactDerivatives:
    """What `ConstrainedDynamics.impact_derivatives` does."""
    if is_single(q) and is_single(v):  # matrices of inertias take more digits
        derivatives = partial(dynamics.impact_derivatives, on_invalid=on_invalid)
        return in_double(dynamics.model, derivatives, q, v, active, restitution, rows, mode)
    impact = dynamics.impact(q, v, active, restitution, rows, on_invalid=on_invalid)
    if mode != "analytical":
        whole = (q, v, active, restitution, rows)
        entries = jacobian(ConstrainedDynamics.impact, dynamics, whole, mode, on_invalid=on_invalid)
        return ImpactDerivatives(impact, entries[0][0], entries[1][0], entries[0][1], entries[1][1])
    held, share, given = dynamics._impact_inputs(q, v, active, restitution, rows)
    inputs = (q, v, impact.v - v, impact.impulses, held, share, given)
    answers = _impact_derivatives.call(dynamics.problem, inputs, None, on_invalid)
    void(impact.report, answers)
    return ImpactDerivatives(impact, *answers)


def _by_state(dynamics: ConstrainedDynamics, *inputs: ArrayLike) -> tuple[tuple[Array, Array], ...]:
    """Of velocities and impulses, an entry for each of q and v."""
    D = dynamics.impact_derivatives(*inputs)
    return (D.dv_dq, D.dimpulses_dq), (D.dv_dv, D.dimpulses_dv)


register(ConstrainedDynamics.impact, _by_state)
