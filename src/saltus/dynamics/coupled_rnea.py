"""Inverse dynamics and the inertia matrix of robots with mimic joints: those of their tree, contracted.

tau = G^T tau_tree(G q + g, G v, G a),      M = G^T M_tree G
"""

from __future__ import annotations

from saltus.dynamics.crba import COMPOSITE, _crba, collect, place_bodies
from saltus.dynamics.rnea import WORK, _gravity, _nonlinear_effects, _rnea, newton_euler
from saltus.kernel import Layout, kernel, ld, st, zero
from saltus.model.coupled_tables import contract, coupled_algorithm, expand, expand_configuration
from saltus.model.tree import LIGHT
from saltus.spatial.algebra import Sym3, Vec3, power
from saltus.spatial.inertia import Rigid

WHOLE = WORK.extended(nq={"q": None}, tree_v={"v": None}, tree_a={"a": None}, nv={"tau": None})


@coupled_algorithm(
    inputs={"q": "free_nq", "v": "free_nv", "a": "free_nv", "forces": "nj 6 optional"},
    outputs={"tau": "free_nv"},
    work=WHOLE,
    own_code=LIGHT,
)
def _coupled_rnea(tree, q, v, a, forces, w, tau):
    expand_configuration(tree, q, w.q)
    expand(tree, v, w.v)
    expand(tree, a, w.a)
    newton_euler(tree, w.q, w.v, w.a, forces, w, w.tau, None)
    contract(tree, w.tau, tau)


@coupled_algorithm(
    inputs={"q": "free_nq", "v": "free_nv", "forces": "nj 6 optional"},
    outputs={"tau": "free_nv"},
    work=WHOLE,
    own_code=LIGHT,
)
def _coupled_nonlinear_effects(tree, q, v, forces, w, tau):
    expand_configuration(tree, q, w.q)
    expand(tree, v, w.v)
    newton_euler(tree, w.q, w.v, None, forces, w, w.tau, None)
    contract(tree, w.tau, tau)


@coupled_algorithm(
    inputs={"q": "free_nq", "forces": "nj 6 optional"}, outputs={"tau": "free_nv"}, work=WHOLE, own_code=LIGHT
)
def _coupled_gravity(tree, q, forces, w, tau):
    expand_configuration(tree, q, w.q)
    newton_euler(tree, w.q, None, None, forces, w, w.tau, None)
    contract(tree, w.tau, tau)


@coupled_algorithm(
    inputs={"q": "free_nq"},
    outputs={"M": "free_nv free_nv"},
    work=Layout(nq={"q": None}, **COMPOSITE),
    own_code=LIGHT,
)
def _coupled_crba(tree, q, w, M):
    expand_configuration(tree, q, w.q)
    place_bodies(tree, w.q, w)
    o = zero(q)
    composite = Rigid(o, Vec3(o, o, o), Sym3(o, o, o, o, o, o))
    w.composite[0] = composite
    for k in range(tree.free_nv * tree.free_nv):  # what is added to is not `zeroed` for each sample
        st(M, k, o)
    for i in range(tree.nj - 1, 0, -1):
        composite = collect(tree, i, composite, w)
        for k in range(tree.iv[i], tree.end[i]):
            force, a, r = composite @ w.axis[k], tree.free[k], tree.ratio[k]
            add(M, tree.free_nv, a, a, r * r * (power(w.axis[k], force) + tree.armature[k]))
            j = tree.above[k]
            while j >= 0:
                entry = r * tree.ratio[j] * power(w.axis[j], force)
                add(M, tree.free_nv, a, tree.free[j], entry)
                add(M, tree.free_nv, tree.free[j], a, entry)
                j = tree.above[j]


@kernel
def add(M, n, i, j, value):
    st(M, i * n + j, ld(M, i * n + j) + value)


_rnea.take_for_coupled(_coupled_rnea)
_nonlinear_effects.take_for_coupled(_coupled_nonlinear_effects)
_gravity.take_for_coupled(_coupled_gravity)
_crba.take_for_coupled(_coupled_crba)
