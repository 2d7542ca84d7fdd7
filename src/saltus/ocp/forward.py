"""Rollouts of whole horizons in one call, and all nodes as one batch: made of what a node does.

    x_0' = x_0 (+) (a - 1) gap_0,    x_{t+1}' = f_t(x_t', u_t') (+) (a - 1) gap_{t+1},
    u_t' = u_t - a k_t - K_t (x_t' (-) x_t)

A problem says what one node does by five kernels. `node_algorithms` puts them into a loop over nodes, which runs for all
step lengths a at once, as lanes of a packet, and makes of the same kernels what batches of nodes need.

| kernel | what it does |
|---|---|
| `step(tree, t, x, u, data, w, next, kept)` | writes f(x, u) into `next` from place 0 on; returns the cost |
| `final(tree, x, data, w)` | returns the cost of the terminal node |
| `integrate(tree, x, dx, w, there)` | writes x (+) dx; `there` may be `x` |
| `difference(tree, a, b, w, dx)` | writes b (-) a |
| `reach(tree, x)` | returns the largest number of a state, by what is too large for one |

`data` is the row of a node, `od` numbers: references, weights, masks of contacts. x, u, dx, next are arrays from place 0 on.
`kept`: None, or of all nodes what derivatives need again (`KEPT`), of which `step` writes that of node t, and the forces of
contacts to start from. A rollout that leaves the states that there are is lost: it costs infinitely much.
What lanes do may not depend on the node but through `data`: in `calc`, lanes are nodes. Sizes are those of horizon.py, which
the tables bring along (`HORIZON`, or a part of the same sizes).

Reference: C. Mastalli et al., Crocoddyl (2020), equations 14 and 15.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from saltus.arrays import Array
from saltus.control.cholesky import total
from saltus.kernel import (
    Algorithm,
    Layout,
    Quad,
    Tables,
    declare,
    kernel,
    largest,
    ld,
    less,
    maximum,
    minimum,
    quad,
    select,
    st,
    tail,
    zero,
)
from saltus.ocp.box_qp import HUGE
from saltus.ocp.problem import Trial

FORWARD = {
    "x0": "ox", "xs": "op ox", "us": "ot ou", "gaps": "op on", "K": "ot ou on", "k": "ot ou", "length": "1",
    "bounds": "2 ou", "data": "op od",
}  # fmt: skip
"""Inputs of a forward kernel. `bounds`: lower and upper ones of controls, up to 1e30."""

KEPT = {"a": "op nv", "forces": "op nm"}
"""What rollouts of robots answer beside; 0 at the last node. They take forces as well, as a start: with
those of the iterate, contact dynamics take a tenth less of a rollout (measured)."""


class Motion(NamedTuple):
    """Accelerations (jumps, at impacts) and forces (impulses) of rollouts."""

    a: Array  # (..., T + 1, nv)
    forces: Array  # (..., T + 1, nm)


class Node(NamedTuple):
    """What one node does; see above."""

    step: Callable[..., Any]
    final: Callable[..., Any]
    integrate: Callable[..., Any]
    difference: Callable[..., Any]
    reach: Callable[..., Any]


class NodeAlgorithms(NamedTuple):
    """For batches of nodes, and for horizons."""

    step: Algorithm
    """(x, u, data) -> next, cost"""
    final: Algorithm
    """(x, data) -> cost"""
    integrate: Algorithm
    """(x, dx) -> x (+) dx"""
    difference: Algorithm
    """(a, b) -> b (-) a"""
    forward: Algorithm
    """What `FORWARD` lists -> xs, us, cost, and what `KEPT` lists"""


INFINITE = float("inf")


@kernel
def reach_of_vector(tree, x):
    far = zero(x)
    for i in range(tree.ox):
        far = largest(far, ld(x, i))
    return far * (1.0 / HUGE)


@kernel
def product_of_row(K, start, dx, n):
    """One row of K times dx: four partial sums."""
    o = zero(dx)
    whole = n // 4 * 4
    found, rest = quad(dx, o, o, o, o), o
    for j in range(0, whole, 4):
        found = found + ld(K, start + j, Quad) * ld(dx, j, Quad)
    for j in range(whole, n):
        rest = rest + ld(K, start + j) * ld(dx, j)
    return total(found) + rest


@kernel
def copy(source, start, target, place, n):
    for j in range(n):
        target[place + j] = ld(source, start + j)


def roll_out(algorithm: Algorithm, model: Any, inputs: tuple[Array, ...], lengths: Array, *rest: Array) -> Trial:
    """Rollouts for all `lengths` (A,); `inputs`: x0, xs, us, gaps, K, k; `rest`: bounds, data, and forces to start from if
    they are kept. One length of one problem needs no packet."""
    if len(lengths) == 1:
        found = [array[None] for array in algorithm.call(model, (*inputs, lengths, *rest))]
    else:
        x0, xs = inputs[:2]
        batch = np.broadcast_shapes(xs.shape[:-2], x0.shape[:-1], rest[1].shape[:-2])
        spread = lengths.reshape(-1, *(1,) * len(batch), 1)
        found = algorithm.call(model, (*inputs, spread, *rest))
    xs_try, us_try, cost, *kept = found
    return Trial(xs_try, us_try, cost[..., 0], Motion(*kept) if kept else None)


def node_algorithms(
    name: str,
    tables: Tables,
    node: Node,
    work: Layout | None = None,
    inverts_inertia: bool = False,
    keeps: bool = False,
) -> NodeAlgorithms:
    """All algorithms of a problem, by the kernels of a node; `work` is the workspace that these use; `keeps`: what `KEPT`
    lists."""
    step, final, integrate, difference, reach = node
    layout = Layout(one={}) if work is None else work
    rolling = layout.extended(orx={"state_": None}, orn={"tangent_": None}, oru={"control_": None})

    @kernel
    def step_node(tree, x, u, data, w, next, cost):
        st(cost, 0, step(tree, 0, x, u, data, w, next, None))

    @kernel
    def final_node(tree, x, data, w, cost):
        st(cost, 0, final(tree, x, data, w))

    @kernel
    def integrate_node(tree, x, dx, w, there):
        integrate(tree, x, dx, w, there)

    @kernel
    def difference_node(tree, a, b, w, dx):
        difference(tree, a, b, w, dx)

    @kernel
    def roll(tree, x0, xs, us, gaps, K, k, length, bounds, data, w, xs_try, us_try, cost, kept):
        nx, n, m, last = tree.ox, tree.on, tree.ou, tree.ot
        dx, u, x = tail(w.tangent_, 0), tail(w.control_, 0), tail(w.state_, 0)
        a = ld(length, 0)
        sum_of_costs, far = zero(x0), zero(x0)
        copy(x0, 0, x, 0, nx)
        for t in range(last):
            here = tail(xs_try, t * nx)
            for i in range(n):
                dx[i] = ld(gaps, t * n + i) * (a - 1.0)
            integrate(tree, x, dx, w, here)
            far = largest(far, reach(tree, here))
            difference(tree, tail(xs, t * nx), here, w, dx)
            for i in range(m):
                place = t * m + i
                to = ld(us, place) - a * ld(k, place) - product_of_row(K, place * n, dx, n)
                u[i] = minimum(maximum(to, ld(bounds, i)), ld(bounds, m + i))
            copy(u, 0, us_try, t * m, m)
            sum_of_costs = sum_of_costs + step(tree, t, here, u, tail(data, t * tree.od), w, x, kept)
        end = tail(xs_try, last * nx)
        for i in range(n):
            dx[i] = ld(gaps, last * n + i) * (a - 1.0)
        integrate(tree, x, dx, w, end)
        far = largest(far, reach(tree, end))
        sum_of_costs = sum_of_costs + final(tree, end, tail(data, last * tree.od), w)
        st(cost, 0, select(less(far, 1.0), sum_of_costs, zero(x0) + INFINITE))

    @kernel
    def forward(tree, x0, xs, us, gaps, K, k, length, bounds, data, w, xs_try, us_try, cost):
        roll(tree, x0, xs, us, gaps, K, k, length, bounds, data, w, xs_try, us_try, cost, None)

    @kernel
    def forward_keeping(tree, x0, xs, us, gaps, K, k, length, bounds, data, start, w, xs_try, us_try, cost, a, forces):
        roll(tree, x0, xs, us, gaps, K, k, length, bounds, data, w, xs_try, us_try, cost, (a, forces, start))
        for i in range(tree.nv):
            a[tree.ot * tree.nv + i] = zero(x0)
        for r in range(tree.nm):
            forces[tree.ot * tree.nm + r] = zero(x0)

    def declared(made: Any, suffix: str, inputs: dict[str, str], outputs: dict[str, str], work: Layout) -> Algorithm:
        made.__name__ = f"{name}_{suffix}"
        return declare(tables, inputs, outputs, work, inverts_inertia, double_only=True, sloped=False)(made)

    return NodeAlgorithms(
        declared(step_node, "step", {"x": "ox", "u": "ou", "data": "od"}, {"next": "ox", "cost": "1"}, layout),
        declared(final_node, "final", {"x": "ox", "data": "od"}, {"cost": "1"}, layout),
        declared(integrate_node, "integrate", {"x": "ox", "dx": "on"}, {"there": "ox"}, layout),
        declared(difference_node, "difference", {"a": "ox", "b": "ox"}, {"dx": "on"}, layout),
        declared(
            forward_keeping if keeps else forward, "forward", FORWARD | ({"start": "op nm"} if keeps else {}),
            {"xs_try": "op ox", "us_try": "ot ou", "cost": "1"} | (KEPT if keeps else {}), rolling,
        ),
    )  # fmt: skip
