"""Analytical derivatives of constrained dynamics along directions: the factors serve once more, no matrix is formed.

    M a' - J^T f' = tau' - d (rnea(q, v, a) - J^T f) (q', v'),      J a' = target' - d rows(q, v, a) (q', v')

The method that the user chose solves for a and f. The slopes of what is left of both equations, a and f held, come by the
sweeps of along.py: a contact's force turns along with its body, so that it is an external force there, and its rows are
motions of the body seen from its frame A. Then the system is solved as in prox_ltl.py, whose factors of M and of the
Delassus matrix it takes; for other methods they are made here, once a sample.

    rows = A^-1 (a + g) + kd A^-1 v - kp gap,      (A^-1 m)' = A^-1 m' + ...,  gap' = -J_r^-1(-gap) A^-1 e

| paper | code | what | frame |
|---|---|---|---|
| e_i | `shift` of the slopes | displacement of body i | body |
| g | `fall` | gravity | body |

Contacts alone: constraints between two bodies, rows of users, and rows that are redundant (`least`, the least pivot by what
it was, says so) go by the full Jacobian, constrained.py. O(n d^2 + m d^2 + m^2 d + m^3) a sample, O(n d + m d + m^2) a
direction.

References: along.py; section 3.3 there, proposition 3: slopes of the solution of a linear system.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from saltus.arrays import Array
from saltus.constraints.constrained_aba import WORK as CABA_WORK
from saltus.constraints.constrained_aba import _constrained_aba
from saltus.constraints.dense import factor_block
from saltus.constraints.dynamics import ConstrainedDynamics, Solution
from saltus.constraints.measure import load_rows, separation, store_rows
from saltus.constraints.prox_ltl import SETTLED, _prox_ltl, accelerate, converge, free, project
from saltus.constraints.prox_ltl import WORK as LTL_WORK
from saltus.constraints.report import Status
from saltus.constraints.system import point_rows
from saltus.constraints.tables import MOVERS, SUPPORTS, tables
from saltus.derivatives.along import SLOPES, move_along, transmit_along
from saltus.derivatives.constraint_rows import REDUNDANT
from saltus.dynamics.crba import join_bodies
from saltus.dynamics.ltl import factor
from saltus.dynamics.rnea import transmit
from saltus.kernel import kernel, ld, lift, minimum, st, zero
from saltus.kernel.directional import Directional, directional
from saltus.kernel.forward import push_forward
from saltus.model.joint_kernels import add_motion, axis_seen_from, carried, joint_placement, joint_turn
from saltus.spatial.algebra import (
    SE3,
    Force,
    Mat3,
    Motion,
    Sym3,
    Vec2,
    Vec3,
    act_force,
    act_inv,
    cross,
    inverse,
    turn_back,
)
from saltus.spatial.inertia import Rigid, force_of
from saltus.spatial.lie import right_jacobian_inverse_se3

ROWS = SLOPES.extended(nj={"shift": Motion}, nv={"rest": None}, nm=dict.fromkeys(("goal", "push", "step", "miss")))
PLACES: dict[str, dict[str, type | None]] = {
    "nj": {"turn": Vec2, "velocity": Motion, "acceleration": Motion, "force": Force, "fall": Vec3, "stand": SE3,
           "load": Force, "least": None},
    "nc": {"gap": Motion},
}  # fmt: skip
FACTORS: dict[str, dict[str, type | None]] = {
    "nj": {"place": SE3, "composite": Rigid},
    "nv": {"axis": Motion, "pivot": None, "scaled": None},
    "nvv": {"M": None},
    "nmv": {"J": None},
    "nmm": {"delassus": None},
    "nm": {"scale": None},
}


class Factors(NamedTuple):
    """What `project` of prox_ltl.py takes."""

    M: Any
    inverse: Any
    J: Any
    delassus: Any
    scaled: Any


class System(NamedTuple):
    """What the kernels of prox_ltl.py take: factors, which are values, and what they are applied to, values or slopes."""

    M: Any
    inverse: Any
    J: Any
    delassus: Any
    scale: Any
    scaled: Any
    rest: Any
    goal: Any
    push: Any
    step: Any
    miss: Any


@kernel
def turn_bodies(tree, q, v, w):
    """To the leaves: velocities, for methods that have them elsewhere."""
    o = zero(q)
    velocity = Motion(Vec3(o, o, o), Vec3(o, o, o))
    w.velocity[0] = velocity
    for i in range(1, tree.nj):
        turn = joint_turn(tree, i, q)
        if tree.parent[i] != i - 1:
            velocity = w.velocity[tree.parent[i]]
        velocity = add_motion(tree, i, act_inv(joint_placement(tree, i, q, turn), velocity), v)
        w.turn[i], w.velocity[i] = turn, velocity


@kernel
def rise(tree, q, v, a, w):
    """To the leaves: gravity, accelerations, the forces that they need, and where placements count, those."""
    o, g = zero(q), tree.gravity[0]
    none, one = Vec3(o, o, o), lift(1.0, o)
    fall = Vec3(o + g.x, o + g.y, o + g.z)
    acceleration = Motion(-fall, none)
    w.fall[0], w.acceleration[0] = fall, acceleration
    w.stand[0] = SE3(Mat3(one, o, o, o, one, o, o, o, one), none)
    for i in range(1, tree.nj):
        parent, velocity = tree.parent[i], w.velocity[i]
        X = joint_placement(tree, i, q, w.turn[i])
        if parent != i - 1:
            fall, acceleration = w.fall[parent], w.acceleration[parent]
        fall = turn_back(X.R, fall)
        acceleration = add_motion(tree, i, act_inv(X, acceleration), a) + carried(tree, i, velocity, v)
        w.fall[i], w.acceleration[i] = fall, acceleration
        w.force[i] = force_of(tree.inertia[i], velocity, acceleration)
        if tree.pulled[0]:
            w.stand[i] = w.stand[parent] @ X


@kernel
def hang(tree, q, v, a, forces, w):
    """The forces that bodies need and transmit, those of the contacts on them; and how far contacts are off."""
    o = zero(q)
    rise(tree, q, v, a, w)
    for c in range(tree.nc):
        i, m = tree.body_a[c], load_rows(tree, c, forces, o)
        w.force[i] = w.force[i] - act_force(tree.place_a[c], Force(m.lin, m.ang))
        if tree.pulled[0]:
            w.gap[c] = separation(tree, c, inverse(w.stand[i] @ tree.place_a[c]) @ tree.place_b[c])
    transmit(tree, q, w, None, w.load)


@kernel
def weigh_pivots(tree, w, pivot):
    """The least part of a row's diagonal entry that elimination leaves."""
    nv, o = tree.nv, zero(w.scale)
    least = lift(1.0, o)
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            diagonal = lift(tree.mu[r], o)
            for n in range(tree.first_mover[c], tree.end_mover[c]):
                entry = ld(w.J, r * nv + tree.mover[n])
                diagonal = diagonal + entry * entry * ld(pivot, tree.mover[n])
            least = minimum(least, 1.0 / (ld(w.scale, r) * diagonal))
    w.least[0] = least


@kernel
def place_turned(tree, q, w):
    """As `place_bodies` in crba.py, where cosines and sines are at hand; all placements are kept."""
    o = zero(q)
    none, one = Vec3(o, o, o), lift(1.0, o)
    origin = joint_placement(tree, 1, q, Vec2(one, o)).p
    X = SE3(Mat3(one, o, o, o, one, o, o, o, one), -origin)
    w.place[0], w.composite[0] = X, Rigid(o, none, Sym3(o, o, o, o, o, o))
    for i in range(1, tree.nj):
        if tree.parent[i] != i - 1:
            X = w.place[tree.parent[i]]
        X = X @ joint_placement(tree, i, q, w.turn[i])
        w.place[i], w.composite[i] = X, X @ tree.solid[i]
        for k in range(tree.iv[i], tree.end[i]):
            w.axis[k] = axis_seen_from(X, tree.axis[k])


@kernel
def factor_system(tree, q, active, w):
    """M and J become their factors, as `settle` in prox_ltl.py has them."""
    place_turned(tree, q, w)
    join_bodies(tree, w, w.M)
    point_rows(tree, active, w, w.J)
    factor(tree.above, tree.nv, w.M, w.pivot)
    project(tree, Factors(w.M, w.pivot, w.J, w.delassus, w.scaled))
    factor_block(w.delassus, w.scale, tree.nm, 0, tree.nm)


@kernel
def aim_along(tree, active, dtarget, w, d):
    """Slopes of what the rows ask of the accelerations."""
    o = zero(dtarget)
    for c in range(tree.nc):
        i, P = tree.body_a[c], tree.place_a[c]
        shift, slope, speed = act_inv(P, d.shift[i]), act_inv(P, d.velocity[i]), act_inv(P, w.velocity[i])
        rows = act_inv(P, d.acceleration[i]) + slope * tree.kd[c]
        lin, ang = rows.lin + cross(turn_back(P.R, w.fall[i]), shift.ang), rows.ang
        if tree.point[c]:
            lin = lin + cross(slope.ang, speed.lin) + cross(speed.ang, slope.lin)
        if tree.pulled[0]:
            gap = w.gap[c]
            if tree.point[c]:
                lin = lin + (shift.lin - cross(gap.lin, shift.ang)) * tree.kp[c]
            else:
                J = right_jacobian_inverse_se3(-gap)
                lin = lin + (J.A @ shift.lin + J.B @ shift.ang) * tree.kp[c]
                ang = ang + J.D @ shift.ang * tree.kp[c]
        goal = (load_rows(tree, c, dtarget, o) - Motion(lin, ang)) * ld(active, c)
        store_rows(tree, c, goal, d.goal)


@kernel
def settle_along(tree, q, v, a, active, dq, dv, dtau, dtarget, pivot, w, d, da, dforces, dreport):
    """The slopes of accelerations and forces, by the factors in `w`, whose inverse pivots of M are `pivot`. A report has no
    slopes: what stands there tells whether rows are redundant."""
    nv, o = tree.nv, zero(dq)
    move_along(tree, q, v, a, dq, dv, None, None, d.shift, w, d)
    aim_along(tree, active, dtarget, w, d)
    transmit_along(tree, q, dq, None, w, d, d.rest)
    for k in range(nv):
        d.rest[k] = ld(dtau, k) - d.rest[k]
    system = System(w.M, pivot, w.J, w.delassus, w.scale, w.scaled, d.rest, d.goal, d.push, d.step, d.miss)
    free(tree, system)
    converge(tree, lift(SETTLED, o), system)
    accelerate(tree, system, da, dforces)
    for k in range(5):
        st(dreport, k, lift(w.least[0], o))


caba, ltl = _constrained_aba.kernel, _prox_ltl.kernel


@kernel
def solve_caba(tree, q, v, tau, active, target, start, w, a, forces, report):
    caba(tree, q, v, tau, active, target, start, w, a, forces, report)
    hang(tree, q, v, a, forces, w)
    factor_system(tree, q, active, w)
    weigh_pivots(tree, w, w.pivot)


@directional(
    _constrained_aba, ROWS, solve_caba, CABA_WORK.extended(**FACTORS).extended(**PLACES), tables(SUPPORTS, MOVERS)
)
def _constrained_aba_along(
    tree, q, v, tau, active, target, start, dq, dv, dtau, dactive, dtarget, dstart, w, d,
    a, forces, report, da, dforces, dreport,
):  # fmt: skip
    settle_along(tree, q, v, a, active, dq, dv, dtau, dtarget, w.pivot, w, d, da, dforces, dreport)


@kernel
def solve_ltl(tree, q, v, tau, active, target, start, rows, w, a, forces, report):
    ltl(tree, q, v, tau, active, target, start, rows, w, a, forces, report)
    turn_bodies(tree, q, v, w)
    hang(tree, q, v, a, forces, w)
    weigh_pivots(tree, w, w.inverse)


@directional(_prox_ltl, ROWS, solve_ltl, LTL_WORK.extended(**PLACES))
def _prox_ltl_along(
    tree, q, v, tau, active, target, start, rows, dq, dv, dtau, dactive, dtarget, dstart, drows, w, d,
    a, forces, report, da, dforces, dreport,
):  # fmt: skip
    settle_along(tree, q, v, a, active, dq, dv, dtau, dtarget, w.inverse, w, d, da, dforces, dreport)


SLOPED = {_constrained_aba: _constrained_aba_along, _prox_ltl: _prox_ltl_along}
"""The algorithms of the methods that have slopes of their own."""


class Way(NamedTuple):
    """How slopes are found: by which algorithm (None: by the full Jacobian), with what behind q, v and tau."""

    algorithm: Directional | None
    handle: Any
    rest: tuple[Any, ...]
    still: tuple[None, ...]


def way_of(dynamics: ConstrainedDynamics) -> Way:
    if dynamics._way is None:
        able = not (dynamics._loops or dynamics.problem.nu or dynamics.model.weightless or dynamics.model.varied)
        algorithm = SLOPED.get(getattr(dynamics._run, "__self__", None)) if able else None  # type: ignore[arg-type]
        handle = algorithm and algorithm.filled(dynamics.problem).handle
        dynamics._way = Way(algorithm, handle, dynamics._one, (None,) * len(dynamics._one))
    return dynamics._way


def solve_along_at_once(dynamics: ConstrainedDynamics, inputs: Any, directions: Any) -> tuple[Solution, Any] | None:
    """(solution, slopes of accelerations and forces) for one sample of arrays as kernels take them; None if it cannot be."""
    algorithm, handle, rest, still = dynamics._way or way_of(dynamics)
    if algorithm is None or inputs.__class__ is not tuple or directions.__class__ is not tuple:
        return None
    answer = algorithm.quick_push(handle, inputs + rest, directions + still)
    if answer.__class__ is not tuple:
        answer = algorithm.push(dynamics.problem, inputs + rest, directions + still)
        if answer.__class__ is not tuple:
            return None
    (a, forces, report), (da, dforces, dreport) = answer
    if dreport.item(0) < REDUNDANT or report.item(4) == Status.LEAST_SQUARES:
        return None
    return Solution(a, forces, report), (da, dforces)


def solve_along(
    dynamics: ConstrainedDynamics, inputs: Sequence[Any], directions: Mapping[int, Array]
) -> tuple[Solution, tuple[Array, Array]] | None:
    """The same for any number of samples; inputs and directions, by position, are those of `solve`."""
    algorithm = way_of(dynamics).algorithm
    given = [*inputs, *[None] * (8 - len(inputs))]
    if algorithm is None or not (given[6] is given[7] is None):  # external forces, rows of users
        return None
    rest = [default if x is None else x for x, default in zip(given[3:6], dynamics._all, strict=False)]
    rest += dynamics._all[3 : len(dynamics._one)]
    slopes = [directions.get(k) for k in range(3 + len(rest))]
    outputs, changes = push_forward(algorithm, dynamics.problem, (*given[:3], *rest), slopes)
    a, forces, report = outputs
    da, dforces, least = changes
    if (least < REDUNDANT).any() or (report[..., 4] == int(Status.LEAST_SQUARES)).any():
        return None
    return Solution(a, forces, report), (da, dforces)
