"""How a robot answers to torques and forces, by the sparse factors of its inertia matrix.

    a = V (z, 1),    z = (u, f),    M a = rest + S u + J_c^T f + J_h^T l,    J_h a = goal_h

for torques u of motors and forces f of contacts. Columns of V are solutions with the factors of M = U D U^T, four at a
time; bilateral constraints are taken out of them by the factors of their small Delassus matrix. What rows of tasks and
contacts see of it are rows of one tall matrix. Rows of Jacobians are mostly zeros: products go by lists of what is not,
three rows at a time.

| code | what | shape |
|---|---|---|
| `response` | V, `rest` in the column behind padded(n) | nv row, row = padded(n) + 4 |
| `pivot` | D^-1 | nv |
| `J`, `tied`, `dual` | J_h; M^-1 J_h^T; J_h M^-1 J_h^T, then its factors | nm nv, nv mh, nm mh, mh = padded(nm) |
| `pulls` | J_h V, less goals | nm row |
| `stacked` | W (R V) and sqrt(w_s) (J_c V), less goals in the last column | (ntr + 3 mc) row |
| `moved` | degrees of freedom where some rows are not zero | nv |
"""

from __future__ import annotations

from saltus.constraints.dense import factor_block, solve_block
from saltus.constraints.system import aim_rows
from saltus.kernel import Quad, fabs, four, kernel, ld, less, quad, some, sqrt, st, tail, zero

RESPONSES: dict[str, dict[str, type | None]] = {
    "nmv": {"J": None},
    "nm": {"aim": None, "none": None, "scale": None, "answers": Quad},
    "mhm": {"dual": None},
    "mhv": {"tied": None},
    "mhr": {"pulls": None},
    "mvr": {"response": None},
    "mbr": {"stacked": None},
}  # fmt: skip
"""What there is to work with, beside `pivot` and `moved`."""


@kernel
def respond(tree, w, first, row):
    """V = M^-1 (S, J_c^T, rest)."""
    nv, V, o = tree.nv, w.response, zero(w.M)
    for k in range(nv):
        w.pivot[k] = 1.0 / w.pivot[k]
        for j in range(0, row, 4):
            st(V, k * row + j, quad(V, o, o, o, o))
        for r in range(3 * tree.mc):
            st(V, k * row + tree.mm + r, ld(w.push_rows, r * nv + k))
        st(V, k * row + first, w.rest[k])
    for m in range(tree.mm):
        st(V, tree.motor[m] * row + m, 1.0)
    solve_columns(tree, w, V, row)


@kernel
def solve_columns(tree, w, V, row):
    """M^-1 of a matrix (nv, row), in its place, four columns at a time."""
    for j in range(0, row, 4):
        solve_upper(tree.above, tree.nv, w.M, V, j, row)
        solve_lower(tree.above, tree.nv, w.M, w.pivot, V, j, row)


@kernel
def solve_upper(above, n, U, V, j, row):
    """U^-1 of four columns. Two rows, if one follows the other, are taken out of those above them at once; none are, if they
    are zero, as most are of forces on a limb."""
    k = n - 1
    while k >= 0:
        up, x = above[k], ld(V, k * row + j, Quad)
        if up == k - 1 and up >= 0:
            m = up
            y = ld(V, m * row + j, Quad) - x * ld(U, m * n + k)
            st(V, m * row + j, y)
            up = above[m]
            if is_something(x * x + y * y):
                while up >= 0:
                    rest = ld(V, up * row + j, Quad) - x * ld(U, up * n + k)
                    st(V, up * row + j, rest - y * ld(U, up * n + m))
                    up = above[up]
            k = m - 1
        else:
            if is_something(x * x):
                while up >= 0:
                    st(V, up * row + j, ld(V, up * row + j, Quad) - x * ld(U, up * n + k))
                    up = above[up]
            k = k - 1


@kernel
def is_something(squares):
    a, b, c, d = four(squares)
    return some(less(0.0 * a, (a + b) + (c + d)))


@kernel
def solve_lower(above, n, U, inverse, V, j, row):
    """(U D)^-T of four columns, two rows at once, if one follows the other."""
    k = 0
    while k < n:
        m = min(k + 1, n - 1)
        x, i = ld(V, k * row + j, Quad) * inverse[k], above[k]
        if m > k and above[m] == k:
            y = ld(V, m * row + j, Quad) * inverse[m]
            while i >= 0:
                there = ld(V, i * row + j, Quad)
                x, y = x - there * ld(U, i * n + k), y - there * ld(U, i * n + m)
                i = above[i]
            st(V, k * row + j, x)
            st(V, m * row + j, y - x * ld(U, k * n + m))
            k = m + 1
        else:
            while i >= 0:
                x = x - ld(V, i * row + j, Quad) * ld(U, i * n + k)
                i = above[i]
            st(V, k * row + j, x)
            k = k + 1


@kernel
def list_moved(J, r, s, t, nv, w):
    """Lists the degrees of freedom where one of three rows of J is not zero; how many."""
    count = 0
    for k in range(nv):
        if some(less(0.0 * ld(J, k), fabs(ld(J, r * nv + k)) + fabs(ld(J, s * nv + k)) + fabs(ld(J, t * nv + k)))):
            w.moved[count] = k
            count = count + 1
    return count


@kernel
def multiply_rows(J, V, B, begin, end, nv, row, w):
    """Rows `begin` to `end` of B = J V, V (nv, row)."""
    for r in range(begin, end, 3):
        s, t = min(r + 1, end - 1), min(r + 2, end - 1)
        count, o = list_moved(J, r, s, t, nv, w), zero(V)
        for j in range(0, row, 4):
            none = quad(V, o, o, o, o)
            P, Q, R = none, none, none
            for n in range(count):
                k = w.moved[n]
                x = ld(V, k * row + j, Quad)
                P, Q, R = P + x * ld(J, r * nv + k), Q + x * ld(J, s * nv + k), R + x * ld(J, t * nv + k)
            st(B, r * row + j, P)
            st(B, s * row + j, Q)
            st(B, t * row + j, R)


@kernel
def hold(tree, held, w, first, row):
    """V less what bilateral constraints keep from moving. Their forces are found twice: the second time with what the
    damping `mu` has left."""
    nv, nm, width, o = tree.nv, tree.nm, tree.mh, zero(w.M)
    for r in range(nm):
        w.none[r] = o
    aim_rows(tree, held, w.none, w, w.J, w.aim)
    for k in range(nv):
        for r in range(width):
            st(w.tied, k * width + r, ld(w.J, r * nv + k) if r < nm else o)
    solve_columns(tree, w, w.tied, width)
    multiply_rows(w.J, w.tied, w.dual, 0, nm, nv, width, w)
    multiply_rows(w.J, w.response, w.pulls, 0, nm, nv, row, w)
    for r in range(nm):
        st(w.dual, r * width + r, ld(w.dual, r * width + r) + tree.mu[r])
        st(w.pulls, r * row + first, ld(w.pulls, r * row + first) - w.aim[r])
    factor_block(w.dual, w.scale, width, 0, nm)
    for j in range(0, row, 4):
        for r in range(nm):
            w.answers[r] = ld(w.pulls, r * row + j, Quad)
        solve_block(w.dual, w.scale, width, 0, nm, w.answers)
        for r in range(nm):
            w.answers[r] = ld(w.pulls, r * row + j, Quad) + w.answers[r] * tree.mu[r]
        solve_block(w.dual, w.scale, width, 0, nm, w.answers)
        for k in range(0, nv, 4):
            take_out(
                w.response, w.tied, w, j, row, width, nm, k, min(k + 1, nv - 1), min(k + 2, nv - 1), min(k + 3, nv - 1)
            )


@kernel
def take_out(V, T, w, j, row, width, nm, a, b, c, d):
    """T `answers` from four rows of V."""
    P, Q = ld(V, a * row + j, Quad), ld(V, b * row + j, Quad)
    R, S = ld(V, c * row + j, Quad), ld(V, d * row + j, Quad)
    for r in range(nm):
        x = w.answers[r]
        P, Q = P - x * ld(T, a * width + r), Q - x * ld(T, b * width + r)
        R, S = R - x * ld(T, c * width + r), S - x * ld(T, d * width + r)
    st(V, a * row + j, P)
    st(V, b * row + j, Q)
    st(V, c * row + j, R)
    st(V, d * row + j, S)


@kernel
def stack(tree, active, w, first, row):
    """Rows of tasks, then of contacts, weighted."""
    nv, V, B = tree.nv, w.response, w.stacked
    for t in range(tree.nt):
        begin, end = tree.task_first[t], tree.task_end[t]
        if tree.task_dof[begin] >= 0:
            for r in range(begin, end):
                for j in range(0, row, 4):
                    st(B, r * row + j, ld(V, tree.task_dof[r] * row + j, Quad))
        else:
            multiply_rows(w.R, V, B, begin, end, nv, row, w)
    multiply_rows(w.push_rows, V, tail(B, tree.ntr * row), 0, 3 * tree.mc, nv, row, w)
    for r in range(tree.ntr):
        weigh(B, r, sqrt(tree.task_weight[r] + zero(V)), w.goal[r], first, row)
    for r in range(3 * tree.mc):
        weigh(B, tree.ntr + r, sqrt(tree.slack_weight[0] * ld(active, r // 3)), w.push_goal[r], first, row)


@kernel
def weigh(B, r, root, goal, first, row):
    st(B, r * row + first, ld(B, r * row + first) - goal)
    for j in range(0, row, 4):
        st(B, r * row + j, ld(B, r * row + j, Quad) * root)
