"""Residuals of all terms but the user's own, and what each of them costs: to look at, to plot, and to say which term is to
blame; and how rows of all terms are activated."""

from __future__ import annotations

from saltus.constraints.tables import CONSTRAINTS
from saltus.kernel import Tables, declare, kernel, ld, st, tail, zero
from saltus.model.manifold import difference_joint
from saltus.model.tree import CONFIGURATIONS, INERTIAS, TREE, extent
from saltus.ocp.costs import COSTS, along, cost_of, row_cost
from saltus.ocp.residuals import measure, move_for_terms
from saltus.ocp.term_tables import DATA, TERMS
from saltus.ocp.terms import CONTROL, OWN, STATE


@kernel
def store_residuals(tree, t, q, v, u, forces, references, w, residuals):
    first = tree.term_first[t]
    if tree.term_kind[t] == STATE:
        goal = tail(references, tree.term_at[t])
        for i in range(1, tree.nj):
            difference_joint(tree, i, goal, q, w.apart)
        for k in range(tree.nv):
            st(residuals, first + k, ld(w.apart, k))
            st(residuals, first + tree.nv + k, ld(v, k) - ld(goal, tree.nq + k))
    elif tree.term_kind[t] == CONTROL:
        for m in range(tree.nact):
            st(residuals, first + m, ld(u, m) - ld(references, tree.term_at[t] + m))
    elif tree.term_kind[t] < OWN:
        b = measure(tree, t, forces, references, w)
        for r in range(first, tree.term_end[t]):
            st(residuals, r, along(tree.row_normal[r], b) + zero(references))


@declare(
    Tables([TREE, CONSTRAINTS, TERMS], CONFIGURATIONS, extent, INERTIAS),
    inputs={"q": "nq", "v": "nv", "u": "nact", "forces": "nm", "data": "ndata"},
    outputs={"residuals": "nrow", "costs": "nterm"},
    work=COSTS,
    double_only=True,
    sloped=False,
)
def _term_values(tree, q, v, u, forces, data, w, residuals, costs):
    weights, references = tail(data, DATA + tree.nc), tail(data, DATA + tree.nc + tree.nterm)
    move_for_terms(tree, q, v, w)
    for t in range(tree.nterm):
        store_residuals(tree, t, q, v, u, forces, references, w, residuals)
        st(costs, t, ld(data, 1) * ld(weights, t) * cost_of(tree, t, q, v, u, forces, references, w, ()))


@declare(
    Tables([TREE, CONSTRAINTS, TERMS], CONFIGURATIONS, extent, INERTIAS),
    inputs={"residuals": "nrow"},
    outputs={"values": "nrow", "slopes": "nrow", "curves": "nrow"},
    double_only=True,
    sloped=False,
)
def _row_costs(tree, residuals, w, values, slopes, curves):
    for t in range(tree.nterm):
        for r in range(tree.term_first[t], tree.term_end[t]):
            a = row_cost(tree, tree.term_activation[t], r, ld(residuals, r))
            st(values, r, a.value)
            st(slopes, r, a.slope)
            st(curves, r, a.curve)
