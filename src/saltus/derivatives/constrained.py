"""Analytical derivatives of constrained dynamics: accelerations and forces, exact also where constraints are redundant.

    M a - J^T f = tau - b,   J a = goal        =>       d[a; f] = -[[A, T], [N, G]] [d(rnea - J^T f); d(rows - goal)]

The right side is differentiated with a and f held, by spatial algebra, O(n d) (sweep.py, constraint_rows.py); the blocks are
those of the inverse of the whole matrix, found once for all directions. With Z = J M^-1 and the Delassus matrix Z J^T,

    G = Delassus^-1,      N = -G Z,      T = -N^T = M^-1 J^T G,      A = M^-1 - Z^T G Z

Redundant rows make the Delassus matrix singular. G is then what the proximal method makes of it: the sum over its iterations
P + R P + R^2 P + ... with P = (Delassus + mu)^-1 and R = P mu. Forces go to the least ones, accelerations do not depend on
mu. The directions in which forces push against each other turn with q, and the least forces with them (`turn_redundancy`).
After one iteration (methods `soft`) G = P is exact. O(n^3 + n^2 m + m^3).

Where rows contradict each other as soon as q, v or a target changes, forces that push against each other have no derivative
(they grow with every iteration); what they do together, J^T df, has, and accelerations have.

| paper | code | what | shape |
|---|---|---|---|
| K^-1 | `da_dtau`, `da_dtarget`, `df_dtau`, `df_dtarget` | A, T, N, G | |
| dM a + db - dJ^T f | in `da_dq`, `da_dv` | before they become derivatives of a | nv nv |
| dJ a + d gamma | in `df_dq`, `df_dv` | likewise | nm nv |
| J, J M^-1 | `J`, `Z` | | nm nv |

References: M. Kudruss, P. Manns, C. Kirches, Efficient derivative evaluation for rigid-body dynamics (2019), proposition 3
and algorithm 4; R. Budhiraja, Multi-body locomotion (2019), equation 3.16.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.constraints.constraint import Constraint
from saltus.constraints.dense import factor_block, invert_block
from saltus.constraints.dynamics import ConstrainedDynamics, Solution
from saltus.constraints.precision import in_double, is_single
from saltus.constraints.report import void
from saltus.constraints.tables import INFLUENCES, MOVERS, constrained
from saltus.derivatives.constraint_rows import (
    LIVE,
    REDUNDANT,
    add_rows,
    differentiate_rows,
    find_live,
    first_of,
    frames_of,
    measure_rows,
    rate_slopes,
    spread_columns,
    spread_matrix,
    turn_forces,
)
from saltus.derivatives.modes import jacobian, register
from saltus.derivatives.sweep import AXES, BODIES, sweep_back, sweep_out, sweep_out_from
from saltus.dynamics.ltl import factor, invert
from saltus.dynamics.panel import (
    add_product,
    add_sparse,
    clear,
    empty_tile,
    load_panel,
    load_sparse,
    load_tile,
    multiply,
    store_tile,
)
from saltus.kernel import Layout, Quad, fabs, kernel, ld, less, lift, maximum, minimum, select, some, st, zero
from saltus.model.joint_kernels import lift_vec
from saltus.spatial.algebra import Motion, Vec3, cross_motion

STILL = 1e-14
"""What may be left out of G, relative to it."""

DAMPED = 1e-5
"""Where rows are redundant, mu is raised to this much of the largest diagonal entry: the sum is the same, but the part of G
that redundant rows make large, k / mu, takes fewer digits away."""

MOST_DOUBLINGS = 12

WORK = Layout(
    nj=BODIES,
    nv={**AXES, "pivot": None, "panel": Quad},
    nvv={"M": None},
    nmv={"J": None, "Z": None},
    nmm={"P": None, "power": None},
    nm={"scale": None, "rows_panel": Quad, "felt": int},
).extended(**LIVE.groups)


@kernel
def damp(tree, scale, w):
    """P = Delassus + mu scale, factored; returns the least part of a row's diagonal entry that elimination leaves."""
    m = w.live_rows[0]
    least = lift(1.0, zero(w.P))
    for r in range(m):
        for s in range(r):
            st(w.P, r * m + s, ld(w.power, r * m + s))
        st(w.P, r * m + r, ld(w.power, r * m + r) + tree.mu[w.live_row[r]] * scale)
    factor_block(w.P, w.scale, m, 0, m)
    for r in range(m):
        diagonal = ld(w.power, r * m + r) + tree.mu[w.live_row[r]] * scale
        least = minimum(least, 1.0 / (ld(w.scale, r) * diagonal))
    return least


@kernel
def sum_iterations(tree, w, G):
    """G from the lower triangle of the Delassus matrix, in `power`: P + R P + R^2 P + ..., twice as many terms each time.

    Returns 1 where rows are redundant, else 0; `power` is then the projection on what pushes against itself.
    """
    m, o = w.live_rows[0], zero(G)
    one = lift(1.0, o)
    scale, largest = one, o
    redundant = less(damp(tree, one, w), REDUNDANT)
    if tree.most_iterations[0] > 1:
        if some(redundant):
            for r in range(m):
                largest = maximum(largest, ld(w.power, r * m + r) * (DAMPED / tree.mu[w.live_row[r]]))
            scale = select(redundant, maximum(one, largest), one)
            damp(tree, scale, w)
    invert_block(w.P, w.scale, m, 0, m)
    for i in range(m):
        for j in range(i + 1):
            entry = ld(w.P, i * m + j)
            st(G, i * m + j, entry)
            st(G, j * m + i, entry)
            st(w.power, i * m + j, entry * tree.mu[w.live_row[j]] * scale)
            st(w.power, j * m + i, entry * tree.mu[w.live_row[i]] * scale)
    if tree.most_iterations[0] > 1:
        going = less(-1.0, o)
        for _ in range(MOST_DOUBLINGS):
            if some(going):
                add_terms(m, select(going, one, o), w, G)
                change = square_power(m, going, w)
                going = less(STILL, change * change * change * change)
        add_terms(m, one, w, G)
        if some(redundant):
            for _ in range(3):
                square_power(m, redundant, w)
    return select(redundant, one, o)


@kernel
def add_terms(nm, alive, w, G):
    """G = G + R^k G, in lanes that are alive."""
    for j in range(0, nm, 4):
        load_panel(G, nm, nm, j, alive, w.rows_panel)
        for i in range(0, nm, 3):
            store_tile(
                G, nm, nm, i, j, add_product(load_tile(G, nm, nm, i, j), w.power, nm, 1, i, nm, w.rows_panel, nm)
            )


@kernel
def square_power(nm, going, w):
    """R^k becomes R^2k; returns its largest change, which tells the size of what is not zero or one in it."""
    multiply(1.0, w.power, nm, nm, w.power, nm, w.rows_panel, w.P)
    change = zero(w.P)
    for k in range(nm * nm):
        before, after = ld(w.power, k), ld(w.P, k)
        change = maximum(change, fabs(after - before))
        st(w.power, k, select(going, after, before))
    return select(going, change, change * 0.0)


@kernel
def invert_system(tree, w, da_dtau, da_dtarget, df_dtau, df_dtarget):
    """The four blocks of the inverse, from the upper triangle of M and from J; returns 1 if rows are redundant, else 0."""
    nv, m = tree.nv, w.live_rows[0]
    factor(tree.above, nv, w.M, w.pivot)
    invert(tree.above, nv, w.M, w.pivot, w.panel, da_dtau)
    if m == 0:
        return zero(da_dtau)
    for j in range(0, nv, 4):  # Z = J M^-1
        load_panel(da_dtau, nv, nv, j, 1.0, w.panel)
        for n in range(w.lives[0]):
            c = w.live[n]
            first = w.row_place[tree.first_row[c]]
            end = first + tree.end_row[c] - tree.first_row[c]
            for r in range(first, end, 3):
                movers, last = tree.first_mover[c], tree.end_mover[c]
                tile = add_sparse(empty_tile(da_dtau), w.J, nv, r, end, w.panel, tree.mover, movers, last)
                store_tile(w.Z, nv, end, r, j, tile)
    for s in range(m):  # the lower triangle of the Delassus matrix Z J^T
        c = tree.row_owner[w.live_row[s]]
        for r in range(s, m):
            total = zero(da_dtau)
            for n in range(tree.first_mover[c], tree.end_mover[c]):
                k = tree.mover[n]
                total = total + ld(w.Z, r * nv + k) * ld(w.J, s * nv + k)
            st(w.power, r * m + s, total)
    loose = sum_iterations(tree, w, df_dtarget)
    multiply(-1.0, df_dtarget, m, m, w.Z, nv, w.rows_panel, df_dtau)
    for j in range(0, nv, 4):
        load_panel(df_dtau, nv, m, j, 1.0, w.rows_panel)
        for i in range(0, nv, 3):
            tile = add_product(load_tile(da_dtau, nv, nv, i, j), w.Z, 1, nv, i, nv, w.rows_panel, m)
            store_tile(da_dtau, nv, nv, i, j, tile)
    for r in range(m):
        for k in range(nv):
            st(da_dtarget, k * m + r, -ld(df_dtau, r * nv + k))
    return loose


@kernel
def list_felt(tree, p, w):
    """Which live rows the p-th four degrees of freedom change; their count."""
    count = 0
    for n in range(tree.first_felt[p], tree.end_felt[p]):
        place = w.row_place[tree.listed[n]]
        if place >= 0:
            w.felt[count] = place
            count += 1
    return count


@kernel
def apply_inverse(tree, w, da_dtau, da_dtarget, df_dtau, df_dtarget, da, df):
    """[da; df] = -[[A, T], [N, G]] [da; df], the right side zero but where the tree and the constraints have entries."""
    nv, m = tree.nv, w.live_rows[0]
    for j in range(0, nv, 4):
        p = j // 4
        first, end = tree.first_touched[p], tree.end_touched[p]
        rows = list_felt(tree, p, w)
        load_sparse(da, nv, j, -1.0, w.panel, tree.listed, first, end)
        load_sparse(df, nv, j, -1.0, w.rows_panel, w.felt, 0, rows)
        for i in range(0, nv, 3):
            tile = add_sparse(empty_tile(da), da_dtau, nv, i, nv, w.panel, tree.listed, first, end)
            tile = add_sparse(tile, da_dtarget, m, i, nv, w.rows_panel, w.felt, 0, rows)
            store_tile(da, nv, nv, i, j, tile)
        for i in range(0, m, 3):
            tile = add_sparse(empty_tile(da), df_dtau, nv, i, m, w.panel, tree.listed, first, end)
            tile = add_sparse(tile, df_dtarget, m, i, m, w.rows_panel, w.felt, 0, rows)
            store_tile(df, nv, m, i, j, tile)


@kernel
def turn_redundancy(tree, loose, forces, active, w, da_dtarget, df_dq):
    """To df/dq, where rows are redundant: least forces f stay in the range of J, which turns with q. What pushes against
    itself changes by its projection of dJ x / mu, with M x = J^T G mu f."""
    nv, m, o = tree.nv, w.live_rows[0], zero(df_dq)
    w.acceleration[0] = Motion(Vec3(o, o, o), Vec3(o, o, o))
    for i in range(1, tree.nj):
        moving = w.acceleration[tree.parent[i]]
        for k in range(tree.iv[i], tree.end[i]):
            slide = o
            for n in range(m):
                r = w.live_row[n]
                slide = slide + ld(da_dtarget, k * m + n) * (tree.mu[r] * ld(forces, r))
            moving = moving + w.axis[k] * slide
        w.acceleration[i] = moving
    clear(w.Z, m * nv)
    for n in range(w.lives[0]):
        c = w.live[n]
        if tree.given[c] >= 0:
            continue
        pair, on, vb = frames_of(tree, c, w), ld(active, c), w.acceleration[tree.body_b[c]]
        for side in range(2):
            k = first_of(tree, c, side)
            while k >= 0:
                psi = cross_motion(w.acceleration[tree.parent[tree.body[k]]], w.axis[k])
                rows = rate_slopes(tree, c, w.axis[k], psi, vb, side == 0, pair)
                add_rows(tree, c, k, rows, on * (1.0 - 2.0 * side), w, w.Z)
                k = tree.above[k]
    for j in range(0, nv, 4):
        load_panel(w.Z, nv, m, j, loose, w.rows_panel)
        for r in range(m):
            w.rows_panel[r] = w.rows_panel[r] * (1.0 / tree.mu[w.live_row[r]])
        for i in range(0, m, 3):
            tile = add_product(load_tile(df_dq, nv, m, i, j), w.power, m, 1, i, m, w.rows_panel, m)
            store_tile(df_dq, nv, m, i, j, tile)


@kernel
def aim_targets(tree, active, da_dtarget, df_dtarget):
    """A target counts as much as its constraint is active."""
    nv, nm = tree.nv, tree.nm
    for c in range(tree.nc):
        on = ld(active, c)
        for r in range(tree.first_row[c], tree.end_row[c]):
            for k in range(nv):
                st(da_dtarget, k * nm + r, ld(da_dtarget, k * nm + r) * on)
            for s in range(nm):
                st(df_dtarget, s * nm + r, ld(df_dtarget, s * nm + r) * on)


@kernel
def begin(tree, rising, q, v, a, forces, active, rows, external, w, da_dq, da_dv, df_dq, df_dv):
    """Sweeps to the leaves, in a world that accelerates so, and differentiates the rows of live constraints."""
    nv = tree.nv
    find_live(tree, active, w)
    clear(da_dq, nv * nv)
    clear(da_dv, nv * nv)
    clear(df_dq, w.live_rows[0] * nv)
    clear(df_dv, w.live_rows[0] * nv)
    sweep_out_from(tree, rising, q, v, a, external, w)
    differentiate_rows(tree, forces, active, rows, w, w.J, df_dq, df_dv)


@kernel
def finish(tree, forces, active, w, da_dq, da_dv, da_dtau, da_dtarget, df_dq, df_dv, df_dtau, df_dtarget):
    """Sweeps to the root, and solves. Rows, and columns of targets, are those of live constraints."""
    sweep_back(tree, w, w.M, da_dq, da_dv)
    turn_forces(tree, forces, active, w, da_dq)
    loose = invert_system(tree, w, da_dtau, da_dtarget, df_dtau, df_dtarget)
    apply_inverse(tree, w, da_dtau, da_dtarget, df_dtau, df_dtarget, da_dq, df_dq)
    apply_inverse(tree, w, da_dtau, da_dtarget, df_dtau, df_dtarget, da_dv, df_dv)
    if tree.most_iterations[0] > 1 and some(less(0.5, loose)):
        turn_redundancy(tree, loose, forces, active, w, da_dtarget, df_dq)


@constrained(
    MOVERS, INFLUENCES,
    inputs={"q": "nq", "v": "nv", "a": "nv", "forces": "nm", "active": "nc", "rows": "nu nv", "external": "nj 6 optional"},
    outputs={
        "da_dq": "nv nv", "da_dv": "nv nv", "da_dtau": "nv nv", "da_dtarget": "nv nm",
        "df_dq": "nm nv", "df_dv": "nm nv", "df_dtau": "nm nv", "df_dtarget": "nm nm",
        "gap": "nm", "rate": "nm",
    },
    work=WORK,
    inverts_inertia=True,
    double_only=True,
)  # fmt: skip
def _constrained_derivatives(
    tree, q, v, a, forces, active, rows, external, w,
    da_dq, da_dv, da_dtau, da_dtarget, df_dq, df_dv, df_dtau, df_dtarget, gap, rate,
):  # fmt: skip
    nv, nm, rising = tree.nv, tree.nm, lift_vec(tree.gravity[0] * -1.0, zero(q))
    begin(tree, rising, q, v, a, forces, active, rows, external, w, da_dq, da_dv, df_dq, df_dv)
    measure_rows(tree, w, gap, rate)
    finish(tree, forces, active, w, da_dq, da_dv, da_dtau, da_dtarget, df_dq, df_dv, df_dtau, df_dtarget)
    for matrix in (df_dq, df_dv, df_dtau):
        spread_matrix(tree, w, matrix, nv)
    spread_columns(tree, w, da_dtarget, nv)
    spread_columns(tree, w, df_dtarget, w.live_rows[0])
    spread_matrix(tree, w, df_dtarget, nm)
    aim_targets(tree, active, da_dtarget, df_dtarget)


@constrained(
    MOVERS,
    inputs={"q": "nq", "v": "nv", "a": "nv", "active": "nc", "rows": "nu nv"},
    outputs={"dq": "nm nv", "dv": "nm nv", "da": "nm nv"},
    work=Layout(nj=BODIES, nv=AXES, nm={"none": None}).extended(**LIVE.groups),
)
def _constraint_acceleration_derivatives(tree, q, v, a, active, rows, w, dq, dv, da):
    for r in range(tree.nm):
        st(w.none, r, 0.0)
    clear(dq, tree.nm * tree.nv)
    clear(dv, tree.nm * tree.nv)
    find_live(tree, None, w)
    sweep_out(tree, q, v, a, None, w)
    differentiate_rows(tree, w.none, active, rows, w, da, dq, dv)


class ConstraintAccelerationDerivatives(NamedTuple):
    """Of what constraints compare with their targets (nm), each (..., nm, nv); the last axis is the direction."""

    dacceleration_dq: Array  # along the tangent of `integrate`
    dacceleration_dv: Array
    dacceleration_da: Array  # the Jacobian J


def differentiate_accelerations(
    dynamics: ConstrainedDynamics,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    active: ArrayLike | None,
    rows: ArrayLike | None,
    mode: str,
    on_invalid: OnInvalid,
) -> ConstraintAccelerationDerivatives:
    """What `ConstrainedDynamics.constraint_acceleration_derivatives` does."""
    if mode != "analytical":
        function, inputs = ConstrainedDynamics.constraint_accelerations, (q, v, a, active, rows)
        entries = jacobian(function, dynamics, inputs, mode, on_invalid=on_invalid)
        return ConstraintAccelerationDerivatives(*entries[:3])
    held, given = dynamics._held(q, v, active, rows)
    return ConstraintAccelerationDerivatives(
        *_constraint_acceleration_derivatives.call(dynamics.problem, (q, v, a, held, given), None, on_invalid)
    )


class ConstrainedDerivatives(NamedTuple):
    """Of the accelerations a (nv) and the forces f (nm) of constrained dynamics; the last axis is the direction.

    Where constraints contradict each other (the solution's status is LEAST_SQUARES), analytical derivatives are NaN.
    """

    solution: Solution
    constraints: tuple[Constraint, ...]
    da_dq: Array  # (..., nv, nv), along the tangent of `integrate`
    da_dv: Array  # (..., nv, nv)
    da_dtau: Array  # (..., nv, nv)
    da_dtarget: Array  # (..., nv, nm)
    df_dq: Array  # (..., nm, nv)
    df_dv: Array  # (..., nm, nv)
    df_dtau: Array  # (..., nm, nv)
    df_dtarget: Array  # (..., nm, nm)
    gap: Array  # (..., nm) that Baumgarte's kp multiplies [m, rad]
    rate: Array  # (..., nm) that kd multiplies [m/s, rad/s]

    @property
    def status(self) -> Any:
        """(...) of `Status`, the solution's: derivatives are exact where it is CONVERGED."""
        return self.solution.status

    @property
    def owner(self) -> Array:
        """(nm, nc), 1 where the row is one of the constraint."""
        return np.repeat(np.eye(len(self.constraints)), [each.dim for each in self.constraints], axis=0)

    @property
    def da_dkp(self) -> Array:
        """(..., nv, nc)"""
        return (self.da_dtarget * self.gap[..., None, :]) @ self.owner

    @property
    def da_dkd(self) -> Array:
        """(..., nv, nc)"""
        return -(self.da_dtarget * self.rate[..., None, :]) @ self.owner

    @property
    def df_dkp(self) -> Array:
        """(..., nm, nc)"""
        return (self.df_dtarget * self.gap[..., None, :]) @ self.owner

    @property
    def df_dkd(self) -> Array:
        """(..., nm, nc)"""
        return -(self.df_dtarget * self.rate[..., None, :]) @ self.owner


def differentiate(
    dynamics: ConstrainedDynamics,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    active: ArrayLike | None,
    target: ArrayLike | None,
    start: ArrayLike | None,
    external: ArrayLike | None,
    rows: ArrayLike | None,
    mode: str,
    out: ConstrainedDerivatives | None,
    on_invalid: OnInvalid,
) -> ConstrainedDerivatives:
    """What `ConstrainedDynamics.derivatives` does."""
    if all(map(is_single, (q, v, tau))):  # matrices of inertias take more digits
        found: ConstrainedDerivatives = in_double(
            dynamics.model, partial(dynamics.derivatives, on_invalid=on_invalid),
            q, v, tau, active, target, start, external, rows, mode,
        )  # fmt: skip
        if out is not None:
            for array, value in zip(out[2:], found[2:], strict=True):
                array[...] = value
        return found if out is None else ConstrainedDerivatives(*found[:2], *out[2:])
    solution = dynamics.solve(q, v, tau, active, target, start, external, rows, on_invalid=on_invalid)
    everything, _, _, given = dynamics._defaults(q, v, tau)
    inputs = (
        q, v, solution.a, solution.forces, everything if active is None else active, given if rows is None else rows,
    )  # fmt: skip
    if external is not None:
        inputs = (*inputs, external)  # type: ignore[assignment]
    answers = _constrained_derivatives.call(dynamics.problem, inputs, out and tuple(out[2:]), on_invalid)
    void(solution.report, answers)
    found = ConstrainedDerivatives(solution, dynamics.constraints, *answers)
    if mode == "analytical":
        return found
    goal = np.zeros(dynamics.problem.nm) if target is None else target
    whole = (q, v, tau, active, goal, start, external, rows)
    entries = jacobian(ConstrainedDynamics.solve, dynamics, whole, mode, on_invalid=on_invalid)
    names = {"q": 0, "v": 1, "tau": 2, "target": 4}
    slopes = {f"d{out}_d{name}": entries[k][n] for name, k in names.items() for n, out in enumerate("af")}
    return found._replace(**slopes)


def _by_state(dynamics: ConstrainedDynamics, *inputs: ArrayLike) -> tuple[tuple[Array, Array], ...]:
    """Of accelerations and forces, an entry for each of q, v and tau."""
    D = dynamics.derivatives(*inputs)
    return (D.da_dq, D.df_dq), (D.da_dv, D.df_dv), (D.da_dtau, D.df_dtau)


register(ConstrainedDynamics.solve, _by_state)
register(ConstrainedDynamics.constraint_accelerations, ConstrainedDynamics.constraint_acceleration_derivatives)
