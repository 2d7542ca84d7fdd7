"""Costs of nodes: one kernel that walks the terms, one that expands them to second order.

    l = scale sum_terms weight sum_rows w_r phi(n_r . b),    g = sum_r w_r phi' n_r,    H = sum_r w_r phi'' n_r n_r'
    L_z += weight scale B' g,      L_zz += weight scale B' H B                                with B = db/dz, z = (dx, du)

Gauss-Newton: second derivatives of b are left out. Forces enter by B, which has b_f f_z. States and controls have B of their
own: the identity but for joints that turn. Terms that weigh nothing in all lanes are passed over, as are barriers that
nothing touches.

| paper | code | what | shape |
|---|---|---|---|
| l_x, l_u | `gradient` | | nall = 2 nv + nu |
| l_xx, l_xu, l_uu | `hessian` | lower triangle | nall nall |
| g_x, g_u | `columns` | of one term (residuals.py) | |
| l_lambda, l_lambda lambda | `g`, `H` | of six numbers of a term | 6, 6 6 |

Reference: R. Budhiraja, Multi-body locomotion (2019), equation 3.19.
"""

from __future__ import annotations

from saltus.kernel import fabs, kernel, ld, less, maximum, select, some, st, tail, zero
from saltus.model.joint_kernels import FREE_FLYER, PLANAR, SPHERICAL
from saltus.model.manifold import difference_joint
from saltus.model.manifold_jacobians import right_jacobian_inverse_plane
from saltus.ocp.activations import Activated, activate
from saltus.ocp.residuals import SLOPES, VALUES, fill_columns, measure
from saltus.ocp.terms import CONTROL, OWN, STATE
from saltus.spatial.algebra import Force, Mat3, Motion, Sym3, Vec3, dot, power
from saltus.spatial.inertia import Sym6, scaled
from saltus.spatial.lie import right_jacobian_inverse, right_jacobian_inverse_se3

FELT = 1e-300
"""What is less is no slope."""

COSTS = VALUES.extended(napart={"apart": None}, nown={"own_rows": None})
EXPANSION = SLOPES.extended(nall={"gradient": None}, nhh={"hessian": None})


@kernel
def cost_of_terms(tree, q, v, u, forces, weights, references, w, own):
    """What a node costs, but for its scale, once bodies are placed. `own`: the kernels of the user's terms."""
    total = zero(weights)
    for t in range(tree.nterm):
        weight = ld(weights, t)
        if some(less(0.0 * weight, weight)):
            total = total + weight * cost_of(tree, t, q, v, u, forces, references, w, own)
    return total


@kernel
def cost_of(tree, t, q, v, u, forces, references, w, own):
    total, kind, first = zero(references), tree.term_activation[t], tree.term_first[t]
    if tree.term_kind[t] >= OWN:  # functions in Python are dealt with there
        if tree.term_kind[t] == OWN and len(own) > 0:
            measure_own(tree, t, q, v, u, references, w, own)
            for r in range(first, tree.term_end[t]):
                total = total + row_cost(tree, kind, r, w.own_rows[r - first]).value
        return total
    if tree.term_kind[t] == STATE:
        goal = tail(references, tree.term_at[t])
        for i in range(1, tree.nj):
            difference_joint(tree, i, goal, q, w.apart)
        for k in range(tree.nv):
            total = total + row_cost(tree, kind, first + k, ld(w.apart, k)).value
            rate = ld(v, k) - ld(goal, tree.nq + k)
            total = total + row_cost(tree, kind, first + tree.nv + k, rate).value
        return total
    if tree.term_kind[t] == CONTROL:
        for m in range(tree.nact):
            total = total + row_cost(tree, kind, first + m, ld(u, m) - ld(references, tree.term_at[t] + m)).value
        return total
    b = measure(tree, t, forces, references, w)
    for r in range(first, tree.term_end[t]):
        total = total + row_cost(tree, kind, r, along(tree.row_normal[r], b)).value
    return total


@kernel
def measure_own(tree, t, q, v, u, references, w, own):
    """What the user's kernel of a term writes."""
    goal = tail(references, max(tree.term_at[t], 0))
    for n, residual in own:
        if tree.term_own[t] == n:
            residual(tree, q, v, u, goal, w.own_rows)


@kernel
def along(n, b):
    """n . b"""
    return power(b, Force(n.lin, n.ang))


@kernel
def row_cost(tree, kind, r, x):
    a, weight = activate(kind, x, tree.row_low[r], tree.row_high[r], tree.row_size[r]), tree.row_weight[r]
    return Activated(a.value * weight, a.slope * weight, a.curve * weight)


@kernel
def expand_terms(tree, q, v, u, forces, f_q, f_v, f_u, scale, weights, references, w):
    """`gradient` and `hessian`, once derivatives/sweep.py has been out and back; returns the cost. Not of users' terms."""
    o = zero(weights)
    for i in range(tree.nall):
        st(w.gradient, i, o)
        for j in range(i + 1):
            st(w.hessian, i * tree.nall + j, o)
    total = o
    for t in range(tree.nterm):
        weight = ld(weights, t) * scale
        if some(less(0.0 * weight, weight)):
            if tree.term_kind[t] == STATE:
                total = total + weight * expand_state(tree, t, q, v, weight, references, w)
            elif tree.term_kind[t] == CONTROL:
                total = total + weight * expand_control(tree, t, u, weight, references, w)
            elif tree.term_kind[t] < OWN:
                b = measure(tree, t, forces, references, w)
                cost, g, H, felt = weigh(tree, t, b)
                total = total + weight * cost
                if some(less(0.5, select(less(felt, FELT), o, o + 1.0))):  # or not finite
                    count = fill_columns(tree, t, forces, references, f_q, f_v, f_u, w)
                    if tree.term_linear[t]:
                        add_linear_block(tree, count, g.lin * weight, H.A * weight, w)
                    else:
                        add_block(tree, count, g * weight, scaled(H, weight), w)
    return total


@kernel
def weigh(tree, t, b):
    """What six numbers cost, how that changes with them, and the largest slope or curvature: none within bounds."""
    o = b.lin.x * 0.0
    none = Vec3(o, o, o)
    cost, g, H, felt = o, Force(none, none), no_curve(o), o
    for r in range(tree.term_first[t], tree.term_end[t]):
        n = tree.row_normal[r]
        a = row_cost(tree, tree.term_activation[t], r, along(n, b))
        cost = cost + a.value
        g = g + Force(n.lin, n.ang) * a.slope
        H = H + outer(n, a.curve)
        felt = maximum(felt, maximum(fabs(a.slope), fabs(a.curve)))
    return cost, g, H, felt


@kernel
def no_curve(o):
    return Sym6(Sym3(o, o, o, o, o, o), Mat3(o, o, o, o, o, o, o, o, o), Sym3(o, o, o, o, o, o))


@kernel
def outer(n, s):
    """s n n'"""
    a, b = n.lin * s, n.ang * s
    x, y = n.lin, n.ang
    return Sym6(
        Sym3(a.x * x.x, a.x * x.y, a.x * x.z, a.y * x.y, a.y * x.z, a.z * x.z),
        Mat3(a.x * y.x, a.x * y.y, a.x * y.z, a.y * y.x, a.y * y.y, a.y * y.z, a.z * y.x, a.z * y.y, a.z * y.z),
        Sym3(b.x * y.x, b.x * y.y, b.x * y.z, b.y * y.y, b.y * y.z, b.z * y.z),
    )


@kernel
def add_block(tree, count, g, H, w):
    """B' g and B' H B, B the first columns of `columns`, which stand at `spot`, in growing order."""
    for n in range(count):
        c, i = w.columns[n], w.spot[n]
        push, row = H @ c, i * tree.nall
        st(w.gradient, i, ld(w.gradient, i) + power(c, g))
        for m in range(n + 1):
            j = row + w.spot[m]
            st(w.hessian, j, ld(w.hessian, j) + power(w.columns[m], push))


@kernel
def add_linear_block(tree, count, g, H, w):
    """The same where only the first three of six numbers count."""
    for n in range(count):
        c, i = w.columns[n].lin, w.spot[n]
        push, row = H @ c, i * tree.nall
        st(w.gradient, i, ld(w.gradient, i) + dot(c, g))
        for m in range(n + 1):
            j = row + w.spot[m]
            st(w.hessian, j, ld(w.hessian, j) + dot(w.columns[m].lin, push))


@kernel
def add_row(tree, i, a, weight, w):
    """A residual that is itself number i of z."""
    place = i * tree.nall + i
    st(w.gradient, i, ld(w.gradient, i) + a.slope * weight)
    st(w.hessian, place, ld(w.hessian, place) + a.curve * weight)


@kernel
def expand_control(tree, t, u, weight, references, w):
    total, kind = zero(references), tree.term_activation[t]
    for m in range(tree.nact):
        a = row_cost(tree, kind, tree.term_first[t] + m, ld(u, m) - ld(references, tree.term_at[t] + m))
        total = total + a.value
        add_row(tree, 2 * tree.nv + m, a, weight, w)
    return total


@kernel
def expand_state(tree, t, q, v, weight, references, w):
    total, nv, act, first = zero(references), tree.nv, tree.term_activation[t], tree.term_first[t]
    goal = tail(references, tree.term_at[t])
    for i in range(1, tree.nj):
        difference_joint(tree, i, goal, q, w.apart)
        kind, iv = tree.kind[i], tree.iv[i]
        if kind == FREE_FLYER or kind == SPHERICAL or kind == PLANAR:
            total = total + expand_turn(tree, i, act, first, weight, w)
        else:
            for k in range(iv, tree.end[i]):
                a = row_cost(tree, act, first + k, ld(w.apart, k))
                total = total + a.value
                add_row(tree, k, a, weight, w)
    for k in range(nv):
        a = row_cost(tree, act, first + nv + k, ld(v, k) - ld(goal, tree.nq + k))
        total = total + a.value
        add_row(tree, nv + k, a, weight, w)
    return total


@kernel
def expand_turn(tree, i, act, first, weight, w):
    """Of a joint that turns: rows of the tangent, by the inverse of the right Jacobian."""
    iv, o = tree.iv[i], zero(w.apart)
    none = Vec3(o, o, o)
    total, g, H = o, Force(none, none), no_curve(o)
    for k in range(iv, tree.end[i]):
        a = row_cost(tree, act, first + k, ld(w.apart, k))
        n = unit_row(k - iv, o)
        total, g, H = total + a.value, g + Force(n.lin, n.ang) * a.slope, H + outer(n, a.curve)
        w.spot[k - iv] = k
    if tree.kind[i] == FREE_FLYER:
        J = right_jacobian_inverse_se3(ld(w.apart, iv, Motion))
        store_columns(J.A, J.C, 0, w)
        store_columns(J.B, J.D, 3, w)
    elif tree.kind[i] == SPHERICAL:
        J = right_jacobian_inverse(ld(w.apart, iv, Vec3))
        store_columns(J, J * 0.0, 0, w)
    else:
        x = ld(w.apart, iv, Vec3)
        J = right_jacobian_inverse_plane(x.x, x.y, x.z)
        store_columns(J, J * 0.0, 0, w)
    add_block(tree, tree.end[i] - iv, g * weight, scaled(H, weight), w)
    return total


@kernel
def unit_row(k, o):
    one = o + 1.0
    if k == 0:
        return Motion(Vec3(one, o, o), Vec3(o, o, o))
    if k == 1:
        return Motion(Vec3(o, one, o), Vec3(o, o, o))
    if k == 2:
        return Motion(Vec3(o, o, one), Vec3(o, o, o))
    if k == 3:
        return Motion(Vec3(o, o, o), Vec3(one, o, o))
    if k == 4:
        return Motion(Vec3(o, o, o), Vec3(o, one, o))
    return Motion(Vec3(o, o, o), Vec3(o, o, one))


@kernel
def store_columns(upper, lower, first, w):
    """Columns of a matrix of two blocks."""
    w.columns[first] = Motion(Vec3(upper.xx, upper.yx, upper.zx), Vec3(lower.xx, lower.yx, lower.zx))
    w.columns[first + 1] = Motion(Vec3(upper.xy, upper.yy, upper.zy), Vec3(lower.xy, lower.yy, lower.zy))
    w.columns[first + 2] = Motion(Vec3(upper.xz, upper.yz, upper.zz), Vec3(lower.xz, lower.yz, lower.zz))
