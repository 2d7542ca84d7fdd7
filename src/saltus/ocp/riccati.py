"""The backward pass of differential dynamic programming, over the whole horizon in one call.

    min_u  Q_t(x, u) = l_t + V_{t+1}(f_t),    V_T = l_T,    V_t(x) = min_u Q_t(x, u)

to second order, with gaps f_{t+1} between f_t(x_t, u_t) and x_{t+1}. For t = T - 1 ... 0, with z = (u, x) and F = [F_u F_x]:

    Q_zz = L_zz + F' V_xx F,  Q_z = L_z + F' (V_x + V_xx f_{t+1}),  Q_uu += regularisation
    [k K] = Q_uu^-1 [Q_u Q_ux],  V_xx = Q_xx - Q_xu K,  V_x = Q_x - Q_xu k,  V_xx += regularisation

All of Q_zz is one symmetric product; of symmetric matrices the upper triangle is computed. Q_uu = V'D^-1 V is factored
beside Q_ux, so that the factor's rows go through both: with Y = (V'D^-1)^-1 Q_ux, Q_xu K = Y'D^-1 Y. O((n + m)^3) a node.
Where controls are bounded, k is that of the quadratic program with bounds (box_qp.py), and K is 0 of what is held.

| paper | code | shape (rows of numbers) |
|---|---|---|
| [F_u F_x], V_xx [F_u F_x] | `dynamics`, `carried` | n W, our W |
| Q_zz, then V, Y, V_xx | `hessian` | (om + our) W |
| Q_z | `slope` | W |
| V_xx, f | `value`, `gap` | our our, our |
| V_xx f | output `Vf`, for the expected improvement | n |

`report`: sum Q_u'k and -sum k'Q_uu k; d_g and d_q, the same with what gaps add, -V_x'f and f'V_xx f; the first node, coming
from behind, whose Q_uu is not positive definite, or whose V is not finite; -1 if there is none.

Reference: C. Mastalli et al., Crocoddyl (2020), equations 8 to 13. Departure: V_x is that of the k that is used, also where
controls are at their bounds; Crocoddyl's leaves out those that are held.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from saltus.control.cholesky import dot, factor, solve_lower, solve_upper
from saltus.kernel import Layout, Quad, declare, fabs, kernel, ld, less, lift, maximum, select, some, st, tail, zero
from saltus.ocp.box_qp import HUGE, POSITIVE, hold, solve_box
from saltus.ocp.horizon import HORIZON_TABLES
from saltus.ocp.products import add_multiple, add_square, copy_row, multiply

EXPANSION = {
    "Fx": "ot on on", "Fu": "ot on ou", "Lx": "op on", "Lu": "ot ou", "Lxx": "op on on", "Lxu": "ot on ou",
    "Luu": "ot ou ou", "gaps": "op on", "controlled": "ot", "regularisation": "2",
}  # fmt: skip
"""Inputs. `controlled`: 0 of nodes whose controls do nothing; `regularisation`: of states, of controls."""

NODES = 7
"""So many inputs are derivatives of nodes: much to read. What is not finite in them comes out in V, and is blamed."""

BOUNDS = {"below": "ot ou", "above": "ot ou"}
"""How far controls may go; numbers up to 1e30."""

ANSWER = {
    "K": "ot ou on", "k": "ot ou", "Qu": "ot ou", "Vx": "op on", "Vxx": "op on on", "Vf": "op on", "report": "5",
}  # fmt: skip

WORK = Layout(
    ofw={"dynamics": None},
    ofp={"carried": None},
    ohw={"hessian": None},
    ovv={"value": None},
    ovs={"vectors": None},
    omm={"small": None},
)
SLOPE, GAP, PUSHED, INVERSE, FEED, HELD, DOWNHILL, NEWTON, LOWER, UPPER, WANTED, SCALED = range(12)


@kernel
def vector(tree, w, k):
    return tail(w.vectors, k * tree.ow)


@kernel
def gather(tree, t, first, Fx, Fu, Lx, Lu, Lxx, Lxu, Luu, controlled, w):
    """[F_u F_x] from row `first` on, L_zz and L_z of node t in rows of quads."""
    n, m, nr, mr, width = tree.on, tree.ou, tree.our, tree.om, tree.ow
    F, H, g, o = tail(w.dynamics, 0), tail(w.hessian, 0), vector(tree, w, SLOPE), zero(Fx)
    acts = ld(controlled, t)
    for i in range(first, n):
        copy_row(Fu, (t * n + i) * m, F, i * width, m, mr, acts)
        copy_row(Fx, (t * n + i) * n, F, i * width + mr, n, width - mr, None)
    for i in range(n):
        copy_row(Lxx, (t * n + i) * n, H, (mr + i) * width + mr, n, width - mr, None)
        copy_row(Lxx, 0, H, (mr + i) * width + mr // 8 * 8, 0, mr % 8, None)  # what blocks reach beyond the diagonal
    for i in range(mr + n, mr + nr):
        copy_row(Fx, 0, H, i * width, 0, width, None)
    for i in range(mr):
        here = i * width
        if i < m:
            copy_row(Luu, (t * m + i) * m, H, here, m, mr, acts)
            for j in range(n):
                H[here + mr + j] = ld(Lxu, (t * n + j) * m + i) * acts
            for j in range(mr + n, width):
                H[here + j] = o
            H[here + i] += 1.0 - acts
        else:
            copy_row(Fx, 0, H, here, 0, width, None)
            H[here + i] = lift(1.0, o)
    copy_row(Lu, t * m, g, 0, m, mr, acts)
    copy_row(Lx, t * n, g, mr, n, width - mr, None)


@kernel
def eliminate(tree, w, failed, t):
    """The factor of Q_uu with Q_ux beside it; the node where it was not positive definite."""
    m, mr, width = tree.ou, tree.om, tree.ow
    H = tail(w.hessian, 0)
    factor(H, mr, mr, width, vector(tree, w, INVERSE), 0.0, vector(tree, w, SCALED))
    for i in range(m):
        blame = select(less(POSITIVE, ld(H, i * width + i)), failed, 1.0 * t)
        failed = select(less(failed, 0.0), blame, failed)
    return failed


@kernel
def take_away(tree, w):
    """V_xx = Q_xx - Q_xu K in the place of Q_xx; then K in the place of Q_ux."""
    m, nr, mr, width = tree.ou, tree.our, tree.om, tree.ow
    H, scaled, inverse = tail(w.hessian, 0), tail(w.carried, 0), vector(tree, w, INVERSE)
    for i in range(m):
        copy_row(H, i * width, scaled, i * width, width, width, -ld(inverse, i))
    add_square(H, width, scaled, width, mr, mr + nr, m, H, width)
    behind = mr + nr // 8 * 8  # eight columns at a time; four, if that is what is left
    for j in range(mr, behind, 8):
        for i in range(m - 1, -1, -1):
            x, y = ld(H, i * width + j, Quad), ld(H, i * width + j + 4, Quad)
            for k in range(i + 1, m):
                share = ld(H, i * width + k)
                x, y = x - ld(H, k * width + j, Quad) * share, y - ld(H, k * width + j + 4, Quad) * share
            st(H, i * width + j, x * ld(inverse, i))
            st(H, i * width + j + 4, y * ld(inverse, i))
    for j in range(behind, mr + nr, 4):
        for i in range(m - 1, -1, -1):
            z = ld(H, i * width + j, Quad)
            for k in range(i + 1, m):
                z = z - ld(H, k * width + j, Quad) * ld(H, i * width + k)
            st(H, i * width + j, z * ld(inverse, i))


@kernel
def keep_value(tree, t, H, start, row, preg, g, gaps, Vx, Vxx, Vf, w):
    """V_xx with its lower triangle and the regularisation, V_xx f, and V_x + V_xx f; returns f' V_x and f' V_xx f, and the
    largest of what tells that something is not finite."""
    n, nr = tree.on, tree.our
    V, f, push, o = tail(w.value, 0), vector(tree, w, GAP), vector(tree, w, PUSHED), zero(H)
    for i in range(n):
        copy_row(H, start + i * row + i, V, i * nr + i, n - i, nr - i, None)
        V[i * nr + i] += preg
        for j in range(i + 1, n):
            V[j * nr + i] = ld(V, i * nr + j)
    for i in range(n):
        copy_row(V, i * nr, Vxx, (t * n + i) * n, n, n, None)
    copy_row(gaps, t * n, f, 0, n, nr, None)
    copy_row(gaps, 0, push, 0, 0, nr, None)
    apart, largest_part = o, o
    for k in range(n):
        apart = maximum(apart, fabs(ld(f, k)))
    if some(less(0.0 * apart, apart)):
        for k in range(n):
            add_multiple(push, V, k * nr, ld(f, k), nr)
    for i in range(n):
        x = ld(g, i) + ld(push, i)
        g[i] = x
        Vx[t * n + i] = x
        Vf[t * n + i] = ld(push, i)
        largest_part = maximum(largest_part, maximum(fabs(x), fabs(ld(V, i * nr + i))))
    return dot(f, g, nr), dot(f, push, nr), largest_part


class Products(NamedTuple):
    """How dynamics enter, by the node t and what an algorithm knows of it beside Fx and Fu (`extra`)."""

    first: Callable[..., Any]
    """(tree, t, extra) -> the first row of F that is needed."""
    slope: Callable[..., Any]
    """(tree, t, Vx, g, w, extra): g += F' V_x of node t + 1."""
    curvature: Callable[..., Any]
    """(tree, t, w, extra): `hessian` += F' V_xx F."""


def make_backward(boxed, products):
    """The kernel of a backward pass."""
    first_row, add_slope, add_curvature = products

    @kernel
    def backward(
        tree, Fx, Fu, Lx, Lu, Lxx, Lxu, Luu, gaps, controlled, regularisation, below, above, extra, w,
        K, k, Qu, Vx, Vxx, Vf, report,
    ):  # fmt: skip
        n, m, nr, mr, width = tree.on, tree.ou, tree.our, tree.om, tree.ow
        o, last = zero(Fx), tree.ot
        preg, dreg = ld(regularisation, 0), ld(regularisation, 1)
        H, g, feed = tail(w.hessian, 0), vector(tree, w, SLOPE), vector(tree, w, FEED)
        gx, inverse = tail(g, mr), vector(tree, w, INVERSE)
        failed = lift(-1.0, o)
        copy_row(Lx, last * n, g, mr, n, width - mr, None)
        first, second, size = keep_value(
            tree, last, tail(Lxx, last * n * n), 0, n, preg, gx, gaps, Vx, Vxx, Vf, w
        )  # fmt: skip
        linear, quadratic, gap_linear, gap_quadratic = o, o, -first, second
        failed = select(less(size, HUGE), failed, 1.0 * last)
        for t in range(last - 1, -1, -1):
            if not some(less(failed, 0.0)):
                break
            gather(tree, t, first_row(tree, t, extra), Fx, Fu, Lx, Lu, Lxx, Lxu, Luu, controlled, w)
            add_slope(tree, t, Vx, g, w, extra)
            add_curvature(tree, t, w, extra)
            for i in range(m):
                H[i * width + i] += dreg
            if boxed:
                held, wanted, downhill = vector(tree, w, HELD), vector(tree, w, WANTED), vector(tree, w, DOWNHILL)
                copy_row(below, t * m, vector(tree, w, LOWER), 0, m, mr, None)
                copy_row(above, t * m, vector(tree, w, UPPER), 0, m, mr, None)
                bad = solve_box(
                    H, width, g, vector(tree, w, LOWER), vector(tree, w, UPPER), mr, wanted,
                    tail(w.small, 0), tail(w.small, mr * mr), inverse, downhill, vector(tree, w, NEWTON), held,
                    vector(tree, w, SCALED),
                )  # fmt: skip
                failed = select(less(failed, 0.0), select(less(0.5, bad), 1.0 * t, failed), failed)
                curve = o
                for i in range(m):
                    x = ld(wanted, i)
                    feed[i] = -x
                    Qu[t * m + i] = ld(g, i) * (1.0 - ld(held, i))
                    linear, curve = linear - ld(g, i) * x, curve + x * (ld(downhill, i) - ld(g, i))
                    add_multiple(gx, H, i * width + mr, x, nr)
                quadratic = quadratic - curve
                hold(H, width, mr, held, H, width)
                for i in range(m):
                    copy_row(H, i * width + mr, H, i * width + mr, nr, nr, 1.0 - ld(held, i))
                failed = eliminate(tree, w, failed, t)
            else:
                copy_row(g, 0, feed, 0, mr, mr, None)
                failed = eliminate(tree, w, failed, t)
                solve_lower(H, mr, mr, width, inverse, feed)
                for i in range(m):
                    add_multiple(gx, H, i * width + mr, -ld(feed, i) * ld(inverse, i), nr)
                solve_upper(H, mr, mr, width, inverse, feed)
                gain = o
                for i in range(m):
                    Qu[t * m + i] = ld(g, i)
                    gain = gain + ld(g, i) * ld(feed, i)
                linear, quadratic = linear + gain, quadratic - gain
            take_away(tree, w)
            for i in range(m):
                k[t * m + i] = ld(feed, i)
                copy_row(H, i * width + mr, K, (t * m + i) * n, n, n, None)
            first, second, size = keep_value(
                tree, t, H, mr * width + mr, width, preg, gx, gaps, Vx, Vxx, Vf, w
            )  # fmt: skip
            gap_linear, gap_quadratic = gap_linear - first, gap_quadratic + second
            failed = select(less(failed, 0.0), select(less(size, HUGE), failed, 1.0 * t), failed)
        report[0], report[1], report[4] = linear, quadratic, failed
        report[2], report[3] = linear + gap_linear, quadratic + gap_quadratic

    return backward


@kernel
def every_row(tree, t, extra):
    return 0


@kernel
def dense_slope(tree, t, Vx, g, w, extra):
    F, n, width = tail(w.dynamics, 0), tree.on, tree.ow
    for i in range(n):
        add_multiple(g, F, i * width, ld(Vx, (t + 1) * n + i), width)


@kernel
def dense_product(tree, t, w, extra):
    """F' V_xx F with V_xx F in between."""
    n, nr, mr, width = tree.on, tree.our, tree.om, tree.ow
    F, V, P = tail(w.dynamics, 0), tail(w.value, 0), tail(w.carried, 0)
    multiply(V, nr, F, width, nr, n, P, width)
    add_square(F, width, P, width, 0, mr + nr, n, tail(w.hessian, 0), width)


DENSE = Products(every_row, dense_slope, dense_product)
_dense, _dense_boxed = make_backward(False, DENSE), make_backward(True, DENSE)


@declare(HORIZON_TABLES, inputs=EXPANSION, outputs=ANSWER, work=WORK, double_only=True, sloped=False, unchecked=NODES)
def _backward(
    tree, Fx, Fu, Lx, Lu, Lxx, Lxu, Luu, gaps, controlled, regularisation, w, K, k, Qu, Vx, Vxx, Vf, report
):  # fmt: skip
    _dense(
        tree, Fx, Fu, Lx, Lu, Lxx, Lxu, Luu, gaps, controlled, regularisation, None, None, None, w,
        K, k, Qu, Vx, Vxx, Vf, report,
    )  # fmt: skip


@declare(
    HORIZON_TABLES,
    inputs=EXPANSION | BOUNDS,
    outputs=ANSWER,
    work=WORK,
    double_only=True,
    sloped=False,
    unchecked=NODES,
)
def _box_backward(
    tree, Fx, Fu, Lx, Lu, Lxx, Lxu, Luu, gaps, controlled, regularisation, below, above, w, K, k, Qu, Vx, Vxx, Vf, report
):  # fmt: skip
    _dense_boxed(
        tree, Fx, Fu, Lx, Lu, Lxx, Lxu, Luu, gaps, controlled, regularisation, below, above, None, w,
        K, k, Qu, Vx, Vxx, Vf, report,
    )  # fmt: skip
