"""What a node of a robot does: contact dynamics or an impact, a step of semi-implicit Euler, and its cost.

    M a + b = S' u + J' f,   J a = goal           v' = v + dt a,           q' = q (+) dt v'
    M (v' - v) = J' f,       J v' = 0             v' at an impact,         q' = q

    x' = f(x, u):  dv' = V (dq, dv, du),   V = dt (a_q, a_v, a_u) + (0, 1, 0), or that of the impact
                   dq' = Q dq + dt R dv',  Q, R the Jacobians of q (+) dt v', block diagonal

Kinds of nodes are data: kernels do both where lanes differ. Contacts are masks, so that every node has its own.
One source serves batches of nodes (`calc`), rollouts of horizons (forward.py) and dual numbers.

| code | what | shape |
|---|---|---|
| `data` | of a node: term_tables.py | ndata |
| `a`, `forces` | accelerations, at an impact the jump of velocities; forces, or impulses | nv, nm |
| `a_q`, `a_v`, `A` | their derivatives by q, v and tau; `f_q`, `f_v`, `N`: those of forces | nv nv; nm nv |
| `slide` | dt v', the step along the manifold | nv |

References: R. Budhiraja, Multi-body locomotion (2019), equations 3.13 to 3.17; C. Mastalli et al., Crocoddyl (2020).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from saltus.constraints.constrained_aba import WORK as CONSTRAINED_ABA
from saltus.constraints.constrained_aba import _constrained_aba
from saltus.constraints.impact import _impact
from saltus.constraints.loop_aba import WORK as LOOP_ABA
from saltus.constraints.loop_aba import _loop_aba
from saltus.constraints.prox_ltl import WORK as PROX_LTL
from saltus.constraints.prox_ltl import _prox_ltl
from saltus.constraints.prox_ltls import WORK as PROX_LTLS
from saltus.constraints.prox_ltls import _prox_ltls
from saltus.constraints.prox_pv import WORK as PROX_PV
from saltus.constraints.prox_pv import _prox_pv
from saltus.constraints.tables import CONSTRAINTS, INFLUENCES, MOVERS, PLACES, SUPPORTS, TIES
from saltus.derivatives.constrained import WORK as DERIVATIVES
from saltus.derivatives.constrained import _constrained_derivatives
from saltus.derivatives.impact import _impact_derivatives
from saltus.kernel import Algorithm, Layout, Part, Tables, declare, kernel, ld, less, select, some, st, tail, within, zero
from saltus.model.joint_kernels import FREE_FLYER, PLANAR, SPHERICAL
from saltus.model.manifold import difference_joint, step_joint
from saltus.model.manifold_jacobians import back_plane, back_se3, right_jacobian_plane
from saltus.model.tree import CONFIGURATIONS, INERTIAS, TREE, extent
from saltus.ocp.costs import COSTS, EXPANSION, cost_of_terms, expand_terms
from saltus.ocp.residuals import collect_for_terms, move_for_terms
from saltus.ocp.term_tables import DATA, TERMS
from saltus.spatial.algebra import Mat3, Motion, Vec3, transpose
from saltus.spatial.lie import Mat6, exp_quaternion, right_jacobian, right_jacobian_se3
from saltus.spatial.quaternion import rotation


class Solver(NamedTuple):
    """A method of constrained dynamics, as kernels call it."""

    kernel: Callable[..., Any]
    work: Layout
    takes_rows: bool
    reads: tuple[Part, ...]


SOLVERS = {
    "constrained_aba": Solver(_constrained_aba.kernel, CONSTRAINED_ABA, False, (SUPPORTS,)),
    "loop_aba": Solver(_loop_aba.kernel, LOOP_ABA, False, (SUPPORTS, TIES)),
    "prox_ltl": Solver(_prox_ltl.kernel, PROX_LTL, True, ()),
    "prox_ltls": Solver(_prox_ltls.kernel, PROX_LTLS, True, ()),
    "prox_pv": Solver(_prox_pv.kernel, PROX_PV, False, (PLACES,)),
}

OWN = {
    "nv": {"tau": None, "jump": None},
    "nslide": {"slide": None},
    "nm": {"none": None, "impulses": None},
    "nc": {"bounce": None},
    "nrep": {"told": None},
}


@kernel
def integrate_state(tree, x, dx, w, there):
    """x (+) dx"""
    nq, nv = tree.nq, tree.nv
    for i in range(1, tree.nj):
        step_joint(tree, i, x, dx, 1.0, there)
    for k in range(nv):
        st(there, nq + k, ld(x, nq + k) + ld(dx, nv + k))


@kernel
def difference_state(tree, a, b, w, dx):
    """b (-) a"""
    nq, nv = tree.nq, tree.nv
    for i in range(1, tree.nj):
        difference_joint(tree, i, a, b, dx)
    for k in range(nv):
        st(dx, nv + k, ld(b, nq + k) - ld(a, nq + k))


@kernel
def final(tree, x, data, w):
    """What the state of the terminal node costs."""
    q, v = tail(x, 0), tail(x, tree.nq)
    weights, references = tail(data, DATA + tree.nc), tail(data, DATA + tree.nc + tree.nterm)
    move_for_terms(tree, q, v, w)
    return ld(data, 1) * cost_of_terms(tree, q, v, data, data, weights, references, w)


def make_advance(solver: Solver) -> Callable[..., Any]:
    """The kernel of a node whose dynamics are solved so."""
    solve, takes_rows = solver.kernel, solver.takes_rows

    @kernel
    def advance(tree, q, v, u, data, w, next_q, next_v, a, forces, report):  # type: ignore[no-untyped-def]
        """Writes where the node leads, its accelerations and forces; returns what it costs."""
        nv, nm, o = tree.nv, tree.nm, zero(data)
        dt, impact, active = ld(data, 0), less(0.5 + o, ld(data, 2)), tail(data, DATA)
        for r in range(nm):
            w.none[r] = o
        for k in range(nv):
            w.tau[k] = o
            st(a, k, o)
        for m in range(tree.nact):
            w.tau[tree.motor[m]] = ld(u, m)
        if some(less(ld(data, 2), 0.5 + o)):
            inner = within(w, "s_")
            if takes_rows:
                solve(tree, q, v, w.tau, active, w.none, w.none, w.none, inner, a, forces, report)
            else:
                solve(tree, q, v, w.tau, active, w.none, w.none, inner, a, forces, report)
        for k in range(nv):
            w.jump[k] = ld(a, k) * dt
        if some(impact):
            for c in range(tree.nc):
                w.bounce[c] = o
            _strike(tree, q, v, active, w.bounce, w.none, within(w, "i_"), w.slide, w.impulses, w.told)
            for k in range(nv):
                jump = w.slide[k] - ld(v, k)
                w.jump[k] = select(impact, jump, w.jump[k])
                st(a, k, select(impact, jump, ld(a, k)))
            for r in range(nm):
                st(forces, r, select(impact, w.impulses[r], ld(forces, r)))
            for r in range(tree.nrep):
                st(report, r, select(impact, w.told[r], ld(report, r)))
        for k in range(nv):
            rate = ld(v, k) + w.jump[k]
            st(next_v, k, rate)
            w.slide[k] = rate * dt
        for i in range(1, tree.nj):
            step_joint(tree, i, q, w.slide, 1.0, next_q)
        weights, references = tail(data, DATA + tree.nc), tail(data, DATA + tree.nc + tree.nterm)
        move_for_terms(tree, q, v, w)
        return ld(data, 1) * cost_of_terms(tree, q, v, u, forces, weights, references, w)

    return advance


_strike = _impact.kernel
_differentiate, _differentiate_impact = _constrained_derivatives.kernel, _impact_derivatives.kernel


def make_step(advance: Callable[..., Any]) -> Callable[..., Any]:
    """The same as forward.py wants it."""

    @kernel
    def step(tree, x, u, data, w, next):  # type: ignore[no-untyped-def]
        v, next_v = tail(x, tree.nq), tail(next, tree.nq)
        return advance(tree, x, v, u, data, w, next, next_v, w.a_, w.forces_, w.report_)

    return step


# ---------------------------------------------------------------------------------------------------- derivatives


@kernel
def differentiate_motion(tree, q, v, a, forces, data, w):
    """How accelerations and forces of a node change, or jumps and impulses."""
    nv, nm, o = tree.nv, tree.nm, zero(data)
    active, impact = tail(data, DATA), less(0.5 + o, ld(data, 2))
    if some(less(ld(data, 2), 0.5 + o)):
        _differentiate(
            tree, q, v, a, forces, active, forces, None, w,
            w.a_q, w.a_v, w.A, w.T, w.f_q, w.f_v, w.N, w.G, w.gap, w.aside,
        )  # fmt: skip
    if some(impact):
        for c in range(tree.nc):
            w.bounce[c] = o
        _differentiate_impact(tree, q, v, a, forces, active, w.bounce, forces, w, w.j_q, w.j_v, w.l_q, w.l_v)
        for k in range(nv):
            for j in range(nv):
                n, same = k * nv + j, 1.0 if j == k else 0.0
                st(w.a_q, n, select(impact, ld(w.j_q, n), ld(w.a_q, n)))
                st(w.a_v, n, select(impact, ld(w.j_v, n) - same, ld(w.a_v, n)))
                st(w.A, n, select(impact, o, ld(w.A, n)))
        for n in range(nm * nv):
            st(w.f_q, n, select(impact, ld(w.l_q, n), ld(w.f_q, n)))
            st(w.f_v, n, select(impact, ld(w.l_v, n), ld(w.f_v, n)))
            st(w.N, n, select(impact, o, ld(w.N, n)))


@kernel
def fill_dynamics(tree, v, a, data, w, Fx, Fu):
    """F_x and F_u: velocities below, configurations above."""
    nv, nu, n, o = tree.nv, tree.nact, 2 * tree.nv, zero(data)
    dt = ld(data, 0)
    share = select(less(0.5 + o, ld(data, 2)), o + 1.0, dt)
    for k in range(nv):
        w.slide[k] = (ld(v, k) + ld(a, k) * share) * dt
        row = (nv + k) * n
        for j in range(nv):
            st(Fx, row + j, ld(w.a_q, k * nv + j) * share)
            st(Fx, row + nv + j, ld(w.a_v, k * nv + j) * share)
        st(Fx, row + nv + k, ld(Fx, row + nv + k) + 1.0)
        for m in range(nu):
            st(Fu, (nv + k) * nu + m, ld(w.A, k * nv + tree.motor[m]) * share)
    for i in range(1, tree.nj):
        kind, iv = tree.kind[i], tree.iv[i]
        if kind == FREE_FLYER:
            m = ld(w.slide, iv, Motion)
            turn_rows(iv, nv, n, dt, right_jacobian_se3(m), back_se3(m), Fx, True)
            turn_rows(iv, nv, nu, dt, right_jacobian_se3(m), None, Fu, True)
        elif kind == SPHERICAL or kind == PLANAR:
            x = ld(w.slide, iv, Vec3)
            if kind == SPHERICAL:
                J, back = right_jacobian(x), transpose(rotation(exp_quaternion(x)))
            else:
                J, back = right_jacobian_plane(x.x, x.y, x.z), back_plane(x.x, x.y, x.z)
            none = J * 0.0
            turn_rows(iv, nv, n, dt, Mat6(J, none, none, none), Mat6(back, none, none, none), Fx, False)
            turn_rows(iv, nv, nu, dt, Mat6(J, none, none, none), None, Fu, False)
        else:
            for k in range(iv, tree.end[i]):
                for j in range(n):
                    st(Fx, k * n + j, ld(Fx, (nv + k) * n + j) * dt)
                st(Fx, k * n + k, ld(Fx, k * n + k) + 1.0)
                for m in range(nu):
                    st(Fu, k * nu + m, ld(Fu, (nv + k) * nu + m) * dt)


@kernel
def turn_rows(iv, nv, n, dt, J, back, F, six):
    """Rows of a joint that turns: dt J times those of its velocities; plus `back`, unless that is None, on its diagonal."""
    o = zero(F)
    for j in range(n):
        below = nv + iv
        lin = Vec3(ld(F, below * n + j), ld(F, (below + 1) * n + j), ld(F, (below + 2) * n + j))
        ang = Vec3(o, o, o)
        if six:
            ang = Vec3(ld(F, (below + 3) * n + j), ld(F, (below + 4) * n + j), ld(F, (below + 5) * n + j))
        top, low = (J.A @ lin + J.B @ ang) * dt, (J.C @ lin + J.D @ ang) * dt
        st(F, iv * n + j, top.x)
        st(F, (iv + 1) * n + j, top.y)
        st(F, (iv + 2) * n + j, top.z)
        if six:
            st(F, (iv + 3) * n + j, low.x)
            st(F, (iv + 4) * n + j, low.y)
            st(F, (iv + 5) * n + j, low.z)
    if back is not None:
        add_to(F, n, iv, iv, back.A)
        if six:
            add_to(F, n, iv, iv + 3, back.B)
            add_to(F, n, iv + 3, iv, back.C)
            add_to(F, n, iv + 3, iv + 3, back.D)


@kernel
def add_to(F, n, i, j, M):
    """F[i : i + 3, j : j + 3] += M"""
    for r, x, y, z in ((0, M.xx, M.xy, M.xz), (1, M.yx, M.yy, M.yz), (2, M.zx, M.zy, M.zz)):
        place = (i + r) * n + j
        st(F, place, ld(F, place) + x)
        st(F, place + 1, ld(F, place + 1) + y)
        st(F, place + 2, ld(F, place + 2) + z)


SLOPES = DERIVATIVES.extended(**EXPANSION.groups).extended(
    nslide={"slide": None},
    nvv={"A": None, "a_q": None, "a_v": None, "j_q": None, "j_v": None},
    nmv={"T": None, "N": None, "f_q": None, "f_v": None, "l_q": None, "l_v": None},
    nmm={"G": None},
    nm={"gap": None, "aside": None},
    nc={"bounce": None},
)

EXPAND = Tables([TREE, CONSTRAINTS, MOVERS, INFLUENCES, TERMS], CONFIGURATIONS, extent, INERTIAS)


@declare(
    EXPAND,
    inputs={"q": "nq", "v": "nv", "u": "nact", "a": "nv", "forces": "nm", "data": "ndata"},
    outputs={
        "Fx": "ndx ndx", "Fu": "ndx nact", "Lx": "ndx", "Lu": "nact", "Lxx": "ndx ndx", "Lxu": "ndx nact",
        "Luu": "nact nact",
    },
    work=SLOPES,
    inverts_inertia=True,
    double_only=True,
)  # fmt: skip
def _expand_nodes(tree, q, v, u, a, forces, data, w, Fx, Fu, Lx, Lu, Lxx, Lxu, Luu):
    n, nu, nall = tree.ndx, tree.nact, tree.nall
    differentiate_motion(tree, q, v, a, forces, data, w)
    fill_dynamics(tree, v, a, data, w, Fx, Fu)
    collect_for_terms(tree, q, w)
    weights, references = tail(data, DATA + tree.nc), tail(data, DATA + tree.nc + tree.nterm)
    expand_terms(tree, q, v, u, forces, w.f_q, w.f_v, w.N, ld(data, 1), weights, references, w)
    for i in range(n):
        st(Lx, i, ld(w.gradient, i))
        for j in range(i + 1):
            entry = ld(w.hessian, i * nall + j)
            st(Lxx, i * n + j, entry)
            st(Lxx, j * n + i, entry)
    for m in range(nu):
        st(Lu, m, ld(w.gradient, n + m))
        row = (n + m) * nall
        for j in range(n):
            st(Lxu, j * nu + m, ld(w.hessian, row + j))
        for l in range(m + 1):
            entry = ld(w.hessian, row + n + l)
            st(Luu, m * nu + l, entry)
            st(Luu, l * nu + m, entry)


class NodeKernels(NamedTuple):
    """What a method of constrained dynamics makes of nodes."""

    calc: Algorithm
    """(q, v, u, data) -> next_q, next_v, cost, a, forces, report"""
    step: Callable[..., Any]
    tables: Tables
    work: Layout
    """For `step`, `final`, `integrate_state`, `difference_state` (forward.py)."""


@cache
def node_kernels(method: str, *more: Part) -> NodeKernels:
    """By the method's name; `more`: parts that the tables have as well."""
    solver = SOLVERS[method]
    advance = make_advance(solver)
    work = COSTS.extended(**solver.work.prefixed("s_")).extended(**PROX_LTL.prefixed("i_")).extended(**OWN)
    tables = Tables([TREE, CONSTRAINTS, MOVERS, *solver.reads, TERMS, *more], CONFIGURATIONS, extent, INERTIAS)

    @kernel
    def calc_nodes(tree, q, v, u, data, w, next_q, next_v, cost, a, forces, report):  # type: ignore[no-untyped-def]
        st(cost, 0, advance(tree, q, v, u, data, w, next_q, next_v, a, forces, report))

    calc_nodes.__name__ = f"calc_nodes_{method}"
    calc = declare(
        tables,
        inputs={"q": "nq", "v": "nv", "u": "nact", "data": "ndata"},
        outputs={"next_q": "nq", "next_v": "nv", "cost": "1", "a": "nv", "forces": "nm", "report": "5"},
        work=work,
        inverts_inertia=True,
        double_only=True,
    )(calc_nodes)
    rolling = work.extended(nv={"a_": None}, nm={"forces_": None}, nrep={"report_": None})
    return NodeKernels(calc, make_step(advance), tables, rolling)
