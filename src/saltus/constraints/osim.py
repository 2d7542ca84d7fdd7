"""The Delassus matrix of contacts and the damped operational-space inertia matrix, by sweeps along the tree.

    Delassus = J M^-1 J^T,      osim = (Delassus + mu)^-1 = W - W J (M + J^T W J)^-1 J^T W,      W = 1 / mu

A sweep to the root finds articulated inertias and sends forces along: what a unit force on one body does to another,
and how joints answer on the way. There are two ways to send them. *Rows* of constraints go as they are, and each joint
adds its part of the matrix: m d of them, m^2 d parts. From a *node* on, the six unit forces of that body go instead,
however many rows there are above; a sweep back then finds how each node answers forces on it (`reach`), and each pair
of rows meets at the last node that both pass. Where nodes are makes the method:

| method | nodes | complexity |
|---|---|---|
| `pv` | none | n + m^2 d |
| `efpa` | every body that supports rows | n + m d + m^2 |
| `pv_r` | bodies where rows meet and become more than six | n + m^2 |
| `caba` | the same, on inertias that the constraints are added to: the inverse without factors | n + m^2 |

| paper | code | what | frame |
|---|---|---|---|
| H_i^A | `I` | articulated inertia | body |
| jP_i | `sent` | forces on body j of the unit forces on node i, six columns | body j |
| 0Omega_i | `reach` | motion of node i by a force on it; on the way to the root, by the joints up to the next node | node |
| jK_i | `row`; `at` | force on body j of a unit force of a row; the same at each node on its way | body j |
| L_0^A | `dual` | the matrix, rows in the order of the tree | |

Reference: A. Sathya, J. Carpentier, Constrained articulated body dynamics algorithms, algorithm 5 and section VI; P.
Wensing, R. Featherstone, D. Orin, A reduced-order recursive algorithm for the computation of the operational-space
inertia matrix (2012). Here, limbs with at most six rows send these rows instead of six unit forces.
"""

from __future__ import annotations

from saltus.constraints.dense import factor_block, invert_block
from saltus.constraints.six import Six, act_six, apply, less_product, row
from saltus.constraints.tables import NODES, PLACES, constrained
from saltus.kernel import Layout, kernel, ld, lift, st, st_symmetric, zero
from saltus.model.joint_kernels import component, joint_placement, joint_turn, set_free
from saltus.spatial.algebra import Force, Mat3, Motion, Sym3, Vec3, act_force, power
from saltus.spatial.inertia import Sym6, act_sym6, add_rigid, as_sym6, scaled, without

DELASSUS, BY_FACTORS, AT_ONCE = 0, 1, 2
"""What is asked for: the matrix itself; the inverse of the damped one, by factoring it; the same from augmented inertias."""

WORK = Layout(
    nj={"inertia": Sym6, "sent": Six, "reach": Sym6},
    nm={"row": Force, "share": None, "scale": None},
    nk={"at": Force},
    nmm={"dual": None},
)


@constrained(
    PLACES,
    NODES,
    inputs={"q": "nq", "active": "nc"},
    outputs={"matrix": "nm nm symmetric"},
    work=WORK,
    inverts_inertia=True,
    double_only=True,
)
def _osim(tree, q, active, w, matrix):
    begin(tree, active, w)
    collect(tree, q, active, 0, w)
    meet(tree, 0, w)
    answer(tree, w, matrix)


@kernel
def begin(tree, active, w):
    o = zero(active)
    for p in range(tree.nm):
        w.row[p] = tree.row_force[p] * ld(active, tree.holder[p])
        for s in range(p + 1):
            st(w.dual, p * tree.nm + s, o)


@kernel
def collect(tree, q, active, stop, w):
    """To the root: articulated inertias, rows and unit forces; not through the joint of body `stop`."""
    o = zero(q)
    I = as_sym6(tree.inertia[0], o)
    for i in range(tree.nj - 1, 0, -1):
        body, parent, supported = tree.inertia[i], tree.parent[i], tree.first_under[i] < tree.end_under[i]
        if tree.leaf[i]:
            I = as_sym6(body, o)
        else:
            if tree.parent[i + 1] != i:
                I = w.inertia[i]
            I = add_rigid(I, body)
        if tree.augmented[0]:
            c = tree.held[i]
            while c >= 0:
                I = I + scaled(tree.stiffness[c], ld(active, c))
                c = tree.next_held[c]
        if tree.node[i] == i:
            begin_node(tree, i, o, w)
        if i == stop:
            w.inertia[i] = I
        else:
            I = free_joint(tree, i, I, w)
        if parent > 0:
            X = joint_placement(tree, i, q, joint_turn(tree, i, q))
            I = act_sym6(X, I)
            if not tree.last_child[i]:
                I = I + w.inertia[parent]
            if parent != i - 1:
                w.inertia[parent] = I
            if supported:
                if tree.node[i] > 0:
                    carry_units(tree, i, X, w)
                else:
                    for p in range(tree.first_under[i], tree.end_under[i]):
                        w.row[p] = act_force(X, w.row[p])


@kernel
def free_joint(tree, i, I, w):
    """The inertia that is left once joint i moves freely, under all that is sent through it."""
    for k in range(tree.end[i] - 1, tree.iv[i] - 1, -1):
        gain, inverse, I = set_free(tree, k, I)
        if tree.first_under[i] < tree.end_under[i]:
            if tree.node[i] > 0:
                free_units(tree, tree.node[i], k, gain, inverse, w)
            else:
                free_rows(tree, i, k, gain, inverse, w)
    return I


@kernel
def begin_node(tree, i, o, w):
    """Rows end here, and six unit forces begin."""
    one = lift(1.0, o)
    none, x, y, z = Vec3(o, o, o), Vec3(one, o, o), Vec3(o, one, o), Vec3(o, o, one)
    w.sent[i] = Six(Force(x, none), Force(y, none), Force(z, none), Force(none, x), Force(none, y), Force(none, z))
    w.reach[i] = scaled(as_sym6(tree.inertia[0], o), o)
    for p in range(tree.first_under[i], tree.end_under[i]):
        w.at[tree.first_at[i] + p - tree.first_under[i]] = w.row[p]


@kernel
def free_units(tree, node, k, gain, inverse, w):
    """Degree of freedom k moves freely under the unit forces of a node."""
    sent = w.sent[node]
    share = row(sent, tree.axis[k])
    w.sent[node] = less_product(sent, gain, share)
    w.reach[node] = without(w.reach[node], share, share * -inverse)


@kernel
def free_rows(tree, i, k, gain, inverse, w):
    """Degree of freedom k moves freely under the rows that body i supports."""
    for p in range(tree.first_under[i], tree.end_under[i]):
        force = w.row[p]
        share = component(force, tree.axis[k])
        w.row[p], w.share[p] = force - gain * share, share
        part = share * inverse
        for s in range(tree.first_under[i], p + 1):
            entry = p * tree.nm + s
            st(w.dual, entry, ld(w.dual, entry) + part * w.share[s])


@kernel
def carry_units(tree, i, X, w):
    """The unit forces of a node, as forces on the parent of body i; if that is a node, its rows begin with them."""
    node, parent = tree.node[i], tree.parent[i]
    sent = act_six(X, w.sent[node])
    w.sent[node] = sent
    if tree.node[parent] == parent:
        for p in range(tree.first_under[node], tree.end_under[node]):
            w.row[p] = apply(sent, w.at[tree.first_at[node] + p - tree.first_under[node]])


@kernel
def moved(reach, f):
    """The motion of a node by a force on it."""
    return reach @ Motion(f.lin, f.ang)


@kernel
def meet(tree, stop, w):
    """To the leaves: how nodes answer forces if all joints move; rows meet at each. Body `stop` stands still."""
    for i in range(1, tree.nj):
        if tree.node[i] == i and i != stop:
            above = tree.node_above[i]
            if above > 0 and above != stop:
                w.reach[i] = w.reach[i] + congruent(w.reach[above], w.sent[i])
            reach, first = w.reach[i], tree.first_at[i]
            count = tree.end_under[i] - tree.first_under[i]
            for p in range(count):
                motion, entry = moved(reach, w.at[first + p]), (tree.first_under[i] + p) * tree.nm + tree.first_under[i]
                for s in range(min(p + 1, tree.group[first + p])):
                    f = w.at[first + s]
                    st(w.dual, entry + s, ld(w.dual, entry + s) + power(motion, f))


@kernel
def congruent(reach, s):
    """S^T reach S, S the six columns of s."""
    a, b, c = moved(reach, s.a), moved(reach, s.b), moved(reach, s.c)
    d, e, f = moved(reach, s.d), moved(reach, s.e), moved(reach, s.f)
    return Sym6(
        Sym3(power(a, s.a), power(a, s.b), power(a, s.c), power(b, s.b), power(b, s.c), power(c, s.c)),
        Mat3(
            power(a, s.d), power(a, s.e), power(a, s.f), power(b, s.d), power(b, s.e), power(b, s.f),
            power(c, s.d), power(c, s.e), power(c, s.f),
        ),
        Sym3(power(d, s.d), power(d, s.e), power(d, s.f), power(e, s.e), power(e, s.f), power(f, s.f)),
    )  # fmt: skip


@kernel
def answer(tree, w, matrix):
    """The Delassus matrix; or the inverse of the damped one, by its factors, or at once if inertias were augmented."""
    if tree.answer[0] == BY_FACTORS:
        damp(tree, w)
        factor_block(w.dual, w.scale, tree.nm, 0, tree.nm)
        invert_block(w.dual, w.scale, tree.nm, 0, tree.nm)
    if tree.answer[0] == AT_ONCE:
        complement(tree, 0, tree.nm, w)
    for p in range(tree.nm):
        for s in range(p + 1):
            i, j = tree.row_at[p], tree.row_at[s]
            st_symmetric(matrix, tree.nm, max(i, j), min(i, j), ld(w.dual, p * tree.nm + s))


@kernel
def damp(tree, w):
    for p in range(tree.nm):
        entry = p * tree.nm + p
        st(w.dual, entry, ld(w.dual, entry) + tree.mu[tree.row_at[p]])


@kernel
def complement(tree, first, end, w):
    """W - W dual W, in the block of these places."""
    for p in range(first, end):
        weight = 1.0 / tree.mu[tree.row_at[p]]
        for s in range(first, p + 1):
            entry = p * tree.nm + s
            st(w.dual, entry, ld(w.dual, entry) * (-weight / tree.mu[tree.row_at[s]]))
        st(w.dual, p * tree.nm + p, ld(w.dual, p * tree.nm + p) + weight)
