"""Backward passes over steps of semi-implicit Euler, whose structure leaves half of the products.

    dv' = G dz,  z = (u, q, v);    dq' = A dq + B dv'    so that    F = [ A E' + B G ;  G ],    E' z = q

A and B are block diagonal: but for joints whose configurations are no vectors (free flyers, spherical ones), A is the
identity and B is h times it. With V in blocks of q and v,

    F'V F = G'(S G + N'E') + E (N G + A'V_qq A E'),    R = [B' I] V = [R_q R_v],   S = R_q B + R_v,   N' = R_q A

and F'V_x = G'(B'V_q + V_v) + E A'V_q. S is symmetric. The large products are with (nv, 2 nv + nu), not with (2 nv,
2 nv + nu), and of F only its lower rows, G, are read. Impacts are such steps, of no duration; nodes that are none (RK4) go
the general way.

| symbol | code | shape (rows of `our` numbers) |
|---|---|---|
| G | lower half of `dynamics` | nv W |
| R, later V_qq A | `halves`, from 0 on | nv our |
| S, N' | `halves`, behind that | nv our each |
| A, B | `A`, `B`: only the blocks that are not the identity | T, sum of squares |

Departure from the peers: Crocoddyl multiplies dense matrices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from saltus.kernel import Layout, Part, Quad, Tables, declare, four, kernel, ld, quad, st, tail, zero
from saltus.model.tree import CONFIGURATIONS
from saltus.ocp.horizon import HORIZON, quads
from saltus.ocp.products import add_multiple, add_square, block, copy_row, multiply
from saltus.ocp.riccati import (
    ANSWER,
    BOUNDS,
    EXPANSION,
    NODES,
    WORK,
    Products,
    dense_product,
    dense_slope,
    make_backward,
)


def measure_blocks(horizon: Any) -> Mapping[str, int]:
    """How many joints have blocks, the numbers in these, and in the matrices of `halves`."""
    numbers = sum(size**2 for _, size in horizon.blocks)
    matrices = 3 * (horizon.ndx // 2 + 4) * quads(horizon.ndx)
    return {"obn": len(horizon.blocks), "obb": numbers, "oes": matrices + 2 * 48 * len(horizon.blocks)}


def fill_blocks(horizon: Any, ints: Any, reals: Any) -> None:
    place = 0
    for k, (first, size) in enumerate(horizon.blocks):
        ints.block_first[k], ints.block_size[k], ints.block_place[k] = first, size, place
        place += size**2


BLOCKS = Part(
    ("obn", "obb", "oes"),
    Layout(obn={"block_first": None, "block_size": None, "block_place": None}),
    Layout(),
    measure_blocks,
    fill_blocks,
)
EULER_TABLES = Tables([HORIZON, BLOCKS], CONFIGURATIONS)

EULER = {"A": "ot obb", "B": "ot obb", "h": "ot", "steps": "ot int"}
EULER_WORK = WORK.extended(oes={"halves": None})


@kernel
def spread_blocks(tree, t, A, wide):
    """The blocks of node t with rows of eight numbers: no joint has more than six degrees of freedom."""
    for k in range(tree.obn):
        size, there = tree.block_size[k], t * tree.obb + tree.block_place[k]
        for i in range(size):
            copy_row(A, there + i * size, wide, (6 * k + i) * 8, size, 8, None)


@kernel
def blocks_by_column(tree, source, start, wide, target, place, added, from_there):
    """target row = source row times the blocks in `wide` where there are any, plus the row of `added` if there is one."""
    o = zero(target)
    for k in range(tree.obn):
        first, size = tree.block_first[k], tree.block_size[k]
        left = right = quad(target, o, o, o, o)
        for i in range(size):
            x = ld(source, start + first + i)
            left = left + ld(wide, (6 * k + i) * 8, Quad) * x
            right = right + ld(wide, (6 * k + i) * 8 + 4, Quad) * x
        for j, x in ((0, four(left)), (4, four(right))):
            for i, y in ((0, x[0]), (1, x[1]), (2, x[2]), (3, x[3])):
                if j + i < size:
                    there = first + j + i
                    target[place + there] = y if added is None else y + ld(added, from_there + there)


@kernel
def find_halves(tree, t, V, B, h, wide_A, wide_B, R, S, N):
    """R, S and N'; V has rows of `our` numbers, as they have."""
    n, nr = tree.on, tree.our
    nv, step = n // 2, ld(h, t)
    for i in range(nv):
        for j in range(0, nr, 4):
            st(R, i * nr + j, ld(V, (nv + i) * nr + j, Quad) + ld(V, i * nr + j, Quad) * step)
    for k in range(tree.obn):
        first, size, there = tree.block_first[k], tree.block_size[k], t * tree.obb + tree.block_place[k]
        for i in range(size):
            row = (first + i) * nr
            copy_row(V, (nv + first + i) * nr, R, row, nr, nr, None)
            for j in range(size):
                add_multiple(tail(R, row), V, (first + j) * nr, ld(B, there + j * size + i), nr)
    for i in range(nv):
        row = i * nr
        for j in range(0, nv // 4 * 4, 4):
            x = ld(R, row + j, Quad)
            st(N, row + j, x)
            st(S, row + j, ld(R, row + nv + j, Quad) + x * step)
        for j in range(nv // 4 * 4, nv):
            N[row + j] = ld(R, row + j)
            S[row + j] = ld(R, row + nv + j) + ld(R, row + j) * step
        for j in range(nv, min(nr, nv + 4)):
            S[row + j] = N[row + j] = zero(R)  # whatever is left there may be subnormal, and slow
        blocks_by_column(tree, R, row, wide_A, N, row, None, 0)
        blocks_by_column(tree, R, row, wide_B, S, row, R, row + nv)


@kernel
def add_configurations(tree, t, V, A, wide_A, U, H):
    """Adds A'V_qq A to the rows and columns of q; U: workspace."""
    nv, nr, mr, width = tree.on // 2, tree.our, tree.om, tree.ow
    for i in range(nv):
        copy_row(V, i * nr, U, i * nr, nv, nv, None)
        blocks_by_column(tree, V, i * nr, wide_A, U, i * nr, None, 0)
    for i in range(nv):
        add_row(U, i * nr, H, (mr + i) * width + mr, nv, 1.0)
    for k in range(tree.obn):
        first, size, there = tree.block_first[k], tree.block_size[k], t * tree.obb + tree.block_place[k]
        for i in range(size):
            row = (mr + first + i) * width + mr
            add_row(U, (first + i) * nr, H, row, nv, -1.0)
            for j in range(size):
                add_row(U, (first + j) * nr, H, row, nv, ld(A, there + j * size + i))


@kernel
def add_row(x, start, y, place, n, factor):
    """n numbers of y += factor x."""
    whole = n // 4 * 4
    for j in range(0, whole, 4):
        st(y, place + j, ld(y, place + j, Quad) + ld(x, start + j, Quad) * factor)
    for j in range(whole, n):
        y[place + j] += ld(x, start + j) * factor


@kernel
def euler_product(tree, t, w, extra):
    """What `dense_product` does, by the structure of the step."""
    A, B, h, steps = extra
    if steps[t] == 0:
        dense_product(tree, t, w, None)
    else:
        nv, nr, mr, width = tree.on // 2, tree.our, tree.om, tree.ow
        V, P, H, G = tail(w.value, 0), tail(w.carried, 0), tail(w.hessian, 0), tail(w.dynamics, nv * width)
        size = (nv + 4) * nr
        R, S, N = tail(w.halves, 0), tail(w.halves, size), tail(w.halves, 2 * size)
        wide_A, wide_B = tail(w.halves, 3 * size), tail(w.halves, 3 * size + 48 * tree.obn)
        spread_blocks(tree, t, A, wide_A)
        spread_blocks(tree, t, B, wide_B)
        find_halves(tree, t, V, B, h, wide_A, wide_B, R, S, N)
        multiply(S, nr, G, width, nv, nv, P, width)
        for i in range(nv):
            add_row(N, i * nr, P, i * width + mr, nv, 1.0)
        add_square(G, width, P, width, 0, mr + nr, nv, H, width)
        for i in range(0, nv, 4):
            for j in range((mr + i) // 8 * 8, width, 8):
                block(N, nr, G, width, nv, tail(H, mr * width), width, i, j, True)
        add_configurations(tree, t, V, A, wide_A, R, H)


@kernel
def lower_rows(tree, t, extra):
    return 0 if extra[3][t] == 0 else tree.on // 2


@kernel
def euler_slope(tree, t, Vx, g, w, extra):
    """G'(B'V_q + V_v) + E A'V_q"""
    A, B, h, steps = extra
    if steps[t] == 0:
        dense_slope(tree, t, Vx, g, w, None)
    else:
        nv, mr, width = tree.on // 2, tree.om, tree.ow
        G, y, z, there, o = (
            tail(w.dynamics, nv * width),
            tail(w.halves, 0),
            tail(w.halves, nv),
            2 * nv * (t + 1),
            zero(Vx),
        )
        for i in range(nv):
            along = ld(Vx, there + i)
            y[i], z[i] = ld(Vx, there + nv + i) + along * ld(h, t), along
        for k in range(tree.obn):
            first, size, place = tree.block_first[k], tree.block_size[k], t * tree.obb + tree.block_place[k]
            for i in range(size):
                x, turned = ld(Vx, there + nv + first + i), o
                for j in range(size):
                    along = ld(Vx, there + first + j)
                    x, turned = x + along * ld(B, place + j * size + i), turned + along * ld(A, place + j * size + i)
                y[first + i], z[first + i] = x, turned
        for i in range(nv):
            add_multiple(g, G, i * width, ld(y, i), width)
            g[mr + i] += ld(z, i)


STEPS = Products(lower_rows, euler_slope, euler_product)
_euler, _euler_boxed = make_backward(False, STEPS), make_backward(True, STEPS)


@declare(
    EULER_TABLES,
    inputs=EXPANSION | EULER,
    outputs=ANSWER,
    work=EULER_WORK,
    double_only=True,
    sloped=False,
    unchecked=NODES,
)
def _euler_backward(
    tree, Fx, Fu, Lx, Lu, Lxx, Lxu, Luu, gaps, controlled, regularisation, A, B, h, steps, w,
    K, k, Qu, Vx, Vxx, Vf, report,
):  # fmt: skip
    _euler(
        tree, Fx, Fu, Lx, Lu, Lxx, Lxu, Luu, gaps, controlled, regularisation, None, None, (A, B, h, steps), w,
        K, k, Qu, Vx, Vxx, Vf, report,
    )  # fmt: skip


@declare(
    EULER_TABLES,
    inputs=EXPANSION | BOUNDS | EULER,
    outputs=ANSWER,
    work=EULER_WORK,
    double_only=True,
    sloped=False,
    unchecked=NODES,
)
def _euler_box_backward(
    tree, Fx, Fu, Lx, Lu, Lxx, Lxu, Luu, gaps, controlled, regularisation, below, above, A, B, h, steps, w,
    K, k, Qu, Vx, Vxx, Vf, report,
):  # fmt: skip
    _euler_boxed(
        tree, Fx, Fu, Lx, Lu, Lxx, Lxu, Luu, gaps, controlled, regularisation, below, above, (A, B, h, steps), w,
        K, k, Qu, Vx, Vxx, Vf, report,
    )  # fmt: skip
