"""The damped operational-space inertia matrix of a floating robot, in factors: what its limbs do, and what their base adds.

    osim = B - Z C Z^T      B block-diagonal, a block a limb;   Z (m, 6);   C (6, 6)

Seen from a base that stands still, limbs do not know of each other. With L the Delassus matrix then, K what unit forces
of the rows do to the base, and H its articulated inertia,

    pv_f:    B = (L + mu)^-1,    Z = B K,    C = (H + K^T Z)^-1
    caba_f:  B = W - W L W,      Z = W K,    C = H^-1              on inertias that the constraints are added to

so that a product with a vector costs the blocks and 12 m, and the whole matrix need not be made. O(n) and the blocks.

Reference: A. Sathya, J. Carpentier, Constrained articulated body dynamics algorithms, section VI-B, equation 41.
"""

from __future__ import annotations

from saltus.constraints.dense import factor_block, invert_block, solve_block
from saltus.constraints.osim import AT_ONCE, begin, collect, complement, damp, free_joint, meet
from saltus.constraints.osim import WORK as OSIM_WORK
from saltus.constraints.tables import NODES, PLACES, constrained
from saltus.kernel import kernel, ld, st, zero
from saltus.model.joint_kernels import component
from saltus.spatial.algebra import Force, Vec3
from saltus.spatial.inertia import column, without

WORK = OSIM_WORK.extended(nm={"reply": Force})


@constrained(
    PLACES,
    NODES,
    inputs={"q": "nq", "active": "nc"},
    outputs={"B": "nm nm zeroed", "Z": "nm 6", "C": "6 6"},
    work=WORK,
    inverts_inertia=True,
    double_only=True,
)
def _osim_base(tree, q, active, w, B, Z, C):
    o, base, nm = zero(q), tree.base[0], tree.nm
    begin(tree, active, w)
    collect(tree, q, active, base, w)
    meet(tree, base, w)
    for p in range(nm):
        w.reply[p] = Force(Vec3(o, o, o), Vec3(o, o, o))
    if base > 0:
        for p in range(tree.first_under[base], tree.end_under[base]):
            w.reply[p] = w.row[p]
    if tree.answer[0] == AT_ONCE:
        for p in range(nm):
            w.reply[p] = w.reply[p] * (1.0 / tree.mu[tree.row_at[p]])
    else:
        damp(tree, w)
    first = 0
    while first < nm:
        end = tree.block_end[first]
        if tree.answer[0] == AT_ONCE:
            complement(tree, first, end, w)
        else:
            factor_block(w.dual, w.scale, nm, first, end)
            solve_block(w.dual, w.scale, nm, first, end, w.reply)
            invert_block(w.dual, w.scale, nm, first, end)
        first = end
    move_base(tree, o, w)
    write(tree, base, o, w, B, Z, C)


@kernel
def move_base(tree, o, w):
    """How the base answers forces, those of the rows included if they were not added to inertias."""
    base = tree.base[0]
    if base > 0:
        I = w.inertia[base]
        if tree.answer[0] != AT_ONCE:
            for p in range(tree.first_under[base], tree.end_under[base]):
                I = without(I, w.row[p] * -1.0, w.reply[p])
        free_joint(tree, base, I, w)


@kernel
def write(tree, base, o, w, B, Z, C):
    nm, first = tree.nm, 0
    while first < nm:
        end = tree.block_end[first]
        for p in range(first, end):
            for s in range(first, p + 1):
                i, j, entry = tree.row_at[p], tree.row_at[s], ld(w.dual, p * nm + s)
                st(B, i * nm + j, entry)
                st(B, j * nm + i, entry)
        first = end
    for p in range(nm):
        st(Z, 6 * tree.row_at[p], w.reply[p])
    for k in range(6):
        st(C, 6 * k, Force(Vec3(o, o, o), Vec3(o, o, o)))
        if base > 0:
            st(C, 6 * k, column(w.reach[base], k))


@constrained(PLACES, inputs={"B": "nm nm", "Z": "nm 6", "C": "6 6", "x": "nm"}, outputs={"y": "nm"})
def _osim_base_times(tree, B, Z, C, x, w, y):
    o, nm = zero(x), tree.nm
    f = Force(Vec3(o, o, o), Vec3(o, o, o))
    for r in range(nm):
        f = f + ld(Z, 6 * r, Force) * ld(x, r)
    motion = Force(Vec3(o, o, o), Vec3(o, o, o))
    for k in range(6):
        motion = motion + ld(C, 6 * k, Force) * component(f, k)
    first = 0
    while first < nm:
        end = tree.block_end[first]
        for p in range(first, end):
            i = tree.row_at[p]
            total = o
            for k in range(6):
                total = total - ld(Z, 6 * i + k) * component(motion, k)
            for s in range(first, end):
                j = tree.row_at[s]
                total = total + ld(B, i * nm + j) * ld(x, j)
            st(y, i, total)
        first = end
