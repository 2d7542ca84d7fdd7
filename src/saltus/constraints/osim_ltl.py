"""The Delassus matrix and the damped operational-space inertia matrix by the sparse factors of the inertia matrix.

    Delassus = (J U^-T) D^-1 (J U^-T)^T,      M = U D U^T

For contacts and loops alike; the classical way, to which those of osim.py are compared. O(n d^2 + m d^2 + m^2 d), and
m^3 for the inverse.

Reference: R. Featherstone, Exploiting sparsity in operational-space dynamics (2010); J. Carpentier, R. Budhiraja, N.
Mansard, Proximal and sparse resolution of constrained dynamic equations (2021), section IV-E.
"""

from __future__ import annotations

from saltus.constraints.dense import factor_block, invert_block
from saltus.constraints.osim import DELASSUS
from saltus.constraints.system import direction, fill_row, unit_force
from saltus.constraints.tables import MOVERS, NODES, constrained
from saltus.dynamics.crba import collect
from saltus.dynamics.ltl import factor
from saltus.kernel import Layout, kernel, ld, lift, st, st_symmetric, zero
from saltus.model.joint_kernels import axis_seen_from, joint_placement, placed_after
from saltus.spatial.algebra import SE3, Mat3, Motion, Sym3, Vec2, Vec3, power
from saltus.spatial.inertia import Rigid

WORK = Layout(
    nj={"place": SE3, "composite": Rigid},
    nv={"axis": Motion, "inverse": None, "scaled": None},
    nvv={"M": None},
    nmv={"J": None},
    nmm={"dual": None},
    nm={"scale": None},
)


@constrained(
    MOVERS,
    NODES,
    inputs={"q": "nq", "active": "nc"},
    outputs={"matrix": "nm nm symmetric"},
    work=WORK,
    inverts_inertia=True,
    double_only=True,
)
def _osim_ltl(tree, q, active, w, matrix):
    nv, nm = tree.nv, tree.nm
    place_bodies(tree, q, w)
    collect_inertia(tree, q, w)
    factor(tree.above, nv, w.M, w.inverse)
    for k in range(nv):
        w.inverse[k] = 1.0 / w.inverse[k]
    fill_rows(tree, active, w)
    meet_rows(tree, w)
    if tree.answer[0] != DELASSUS:
        for r in range(nm):
            st(w.dual, r * nm + r, ld(w.dual, r * nm + r) + tree.mu[r])
        factor_block(w.dual, w.scale, nm, 0, nm)
        invert_block(w.dual, w.scale, nm, 0, nm)
    for r in range(nm):
        for s in range(r + 1):
            st_symmetric(matrix, nm, r, s, ld(w.dual, r * nm + s))


@kernel
def place_bodies(tree, q, w):
    """To the leaves: placements, axes and inertias, along the world's axes about the origin of the first body."""
    o = zero(q)
    none, one = Vec3(o, o, o), lift(1.0, o)
    X = SE3(Mat3(one, o, o, o, one, o, o, o, one), none)
    if tree.nj > 1:
        X = SE3(X.R, -joint_placement(tree, 1, q, Vec2(one, o)).p)
    w.place[0], w.composite[0] = X, Rigid(o, none, Sym3(o, o, o, o, o, o))
    for i in range(1, tree.nj):
        X = placed_after(tree, i, q, w.place[tree.parent[i]])
        w.place[i], w.composite[i] = X, X @ tree.solid[i]
        for k in range(tree.iv[i], tree.end[i]):
            w.axis[k] = axis_seen_from(X, tree.axis[k])


@kernel
def collect_inertia(tree, q, w):
    """To the root: the upper triangle of the inertia matrix."""
    o, nv = zero(q), tree.nv
    composite = Rigid(o, Vec3(o, o, o), Sym3(o, o, o, o, o, o))
    for i in range(tree.nj - 1, 0, -1):
        composite = collect(tree, i, composite, w)
        for k in range(tree.iv[i], tree.end[i]):
            momentum = composite @ w.axis[k]
            st(w.M, k * nv + k, power(w.axis[k], momentum) + tree.armature[k])
            j = tree.above[k]
            while j >= 0:
                st(w.M, j * nv + k, power(w.axis[j], momentum))
                j = tree.above[j]


@kernel
def fill_rows(tree, active, w):
    """J, zero for constraints that are not active."""
    for c in range(tree.nc):
        a, b, on = tree.body_a[c], tree.body_b[c], ld(active, c)
        A, B = w.place[a] @ tree.place_a[c], w.place[b] @ tree.place_b[c]
        for r in range(tree.first_row[c], tree.end_row[c]):
            axis = tree.row_axis[r]
            d = direction(A.R, axis)
            on_a = unit_force(d, A.p, axis)
            on_b = unit_force(d, B.p, axis) if tree.point[c] else on_a
            fill_row(tree, r, a, b, on_a * on, on_b * on, w, w.J)


@kernel
def meet_rows(tree, w):
    """J becomes J U^-T, and the lower triangle of the Delassus matrix."""
    nv, nm = tree.nv, tree.nm
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            row = r * nv
            for n in range(tree.first_mover[c], tree.end_mover[c]):
                k = tree.mover[n]
                entry, i = ld(w.J, row + k), tree.above[k]
                while i >= 0:
                    st(w.J, row + i, ld(w.J, row + i) - ld(w.M, i * nv + k) * entry)
                    i = tree.above[i]
                st(w.scaled, k, entry * ld(w.inverse, k))
            for s in range(r + 1):
                total = zero(w.scaled)
                for n in range(tree.first_mover[c], tree.end_mover[c]):
                    k = tree.mover[n]
                    total = total + ld(w.scaled, k) * ld(w.J, s * nv + k)
                st(w.dual, r * nm + s, total)
