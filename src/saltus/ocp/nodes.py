"""What a node of a robot does: contact dynamics or an impact, a step of semi-implicit Euler, and its cost.

    M a + b = S' u + J' f,   J a = goal           v' = v + dt a,           q' = q (+) dt v'
    M (v' - v) = J' f,       J v' = 0             v' at an impact,         q' = q

Kinds of nodes are data: kernels do both where lanes differ. Contacts are masks, so that every node has its own.
One source serves batches of nodes (`calc`), rollouts of horizons (forward.py) and dual numbers; derivatives are in
node_derivatives.py.

| code | what | shape |
|---|---|---|
| `data` | of a node: term_tables.py | ndata |
| `a`, `forces` | accelerations, at an impact the jump of velocities; forces, or impulses | nv, nm |
| `slide` | dt v', the step along the manifold | nv |

References: R. Budhiraja, Multi-body locomotion (2019), equations 3.13 to 3.17; C. Mastalli et al., Crocoddyl (2020).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias

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
from saltus.constraints.tables import CONSTRAINTS, MOVERS, PLACES, SUPPORTS, TIES
from saltus.kernel import (
    Algorithm,
    Layout,
    Part,
    Tables,
    declare,
    kernel,
    largest,
    ld,
    less,
    select,
    some,
    st,
    tail,
    within,
    zero,
)
from saltus.kernel.number import F64
from saltus.model.manifold import difference_joint, step_joint
from saltus.model.tree import CONFIGURATIONS, INERTIAS, TREE, extent
from saltus.ocp.box_qp import HUGE
from saltus.ocp.costs import COSTS, cost_of_terms
from saltus.ocp.residuals import move_for_terms
from saltus.ocp.runge_kutta import OWN as RK4
from saltus.ocp.runge_kutta import make_rk4
from saltus.ocp.term_tables import DATA, TERMS

LARGEST_ANGLE, defects = F64.largest_angle, CONFIGURATIONS.defects

Own: TypeAlias = tuple[tuple[int, Callable[..., Any]], ...]
"""Kernels of the user's terms, numbered."""


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
def reach_of_state(tree, x):
    """By `HUGE` of all numbers, and of configurations by the largest angle as well."""
    _, angle = defects(tree, x)
    far = zero(x)
    for i in range(tree.nq + tree.nv):
        far = largest(far, ld(x, i))
    return largest(far * (1.0 / HUGE), angle * (1.0 / LARGEST_ANGLE))


@kernel
def difference_state(tree, a, b, w, dx):
    """b (-) a"""
    nq, nv = tree.nq, tree.nv
    for i in range(1, tree.nj):
        difference_joint(tree, i, a, b, dx)
    for k in range(nv):
        st(dx, nv + k, ld(b, nq + k) - ld(a, nq + k))


def make_final(own: Own) -> Callable[..., Any]:
    """The kernel of the terminal node."""

    @kernel
    def final(tree, x, data, w):
        """What its state costs."""
        q, v = tail(x, 0), tail(x, tree.nq)
        weights, references = tail(data, DATA + tree.nc), tail(data, DATA + tree.nc + tree.nterm)
        move_for_terms(tree, q, v, w)
        return ld(data, 1) * cost_of_terms(tree, q, v, data, data, weights, references, w, own)

    return final


def make_advance(solver: Solver, own: Own) -> Callable[..., Any]:
    """The kernel of a node whose dynamics are solved so."""
    solve, takes_rows = solver.kernel, solver.takes_rows

    @kernel
    def advance(tree, q, v, u, data, start, w, next_q, next_v, a, forces, report):
        """Writes where the node leads, its accelerations and forces; returns what it costs. `start`: forces to begin with,
        or None."""
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
            inner, begin = within(w, "s_"), w.none if start is None else start
            if takes_rows:
                solve(tree, q, v, w.tau, active, w.none, begin, w.none, inner, a, forces, report)
            else:
                solve(tree, q, v, w.tau, active, w.none, begin, inner, a, forces, report)
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
        return ld(data, 1) * cost_of_terms(tree, q, v, u, forces, weights, references, w, own)

    return advance


_strike = _impact.kernel


def make_step(advance: Callable[..., Any]) -> Callable[..., Any]:
    """The same as forward.py wants it."""

    @kernel
    def step(tree, t, x, u, data, w, next, kept):
        v, next_v = tail(x, tree.nq), tail(next, tree.nq)
        if kept is None:
            return advance(tree, x, v, u, data, None, w, next, next_v, w.a_, w.forces_, w.report_)
        a, forces, start = kept
        a, forces, start = tail(a, t * tree.nv), tail(forces, t * tree.nm), tail(start, t * tree.nm)
        return advance(tree, x, v, u, data, start, w, next, next_v, a, forces, w.report_)

    return step


class NodeKernels(NamedTuple):
    """What a method of constrained dynamics makes of nodes."""

    calc: Algorithm
    """(q, v, u, data) -> next_q, next_v, cost, a, forces, report"""
    step: Callable[..., Any]
    final: Callable[..., Any]
    tables: Tables
    work: Layout
    """For these, `integrate_state`, `difference_state` (forward.py)."""


@cache
def node_kernels(method: str, own: Own = (), rk4: bool = False, *more: Part) -> NodeKernels:
    """By the method's name, with kernels of the user's; `more`: parts that rollouts read as well."""
    solver = SOLVERS[method]
    advance = make_advance(solver, own)
    work = COSTS.extended(**solver.work.prefixed("s_")).extended(**PROX_LTL.prefixed("i_")).extended(**OWN)
    if rk4:
        advance, work = make_rk4(advance), work.extended(**RK4)
    parts = [TREE, CONSTRAINTS, MOVERS, *solver.reads, TERMS]
    own_tables, tables = (Tables(each, CONFIGURATIONS, extent, INERTIAS) for each in (parts, [*parts, *more]))

    @kernel
    def calc_nodes(tree, q, v, u, data, w, next_q, next_v, cost, a, forces, report):
        st(cost, 0, advance(tree, q, v, u, data, None, w, next_q, next_v, a, forces, report))

    calc_nodes.__name__ = f"calc_nodes_{method}{'_rk4' * rk4}"
    calc = declare(
        own_tables,
        inputs={"q": "nq", "v": "nv", "u": "nact", "data": "ndata"},
        outputs={"next_q": "nq", "next_v": "nv", "cost": "1", "a": "nv", "forces": "nm", "report": "5"},
        work=work,
        inverts_inertia=True,
        double_only=True,
        sloped=False,
    )(calc_nodes)
    rolling = work.extended(nv={"a_": None}, nm={"forces_": None}, nrep={"report_": None})
    return NodeKernels(calc, make_step(advance), make_final(own), tables, rolling)
