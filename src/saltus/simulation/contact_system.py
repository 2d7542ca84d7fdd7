"""The linear system of a step of Newton's method on a contact problem, and of a step along a path.

    (1 - (1 - a) Q (1 - G / D)) dx = P(tau) - x,      tau = (1 - a) (x - u / D) + a home

Rows with Q = 0, open contacts and joints at an end, have dx = P - x. Only the others, those that are listed, stand in the
system, close together, with right sides behind their columns. In packets a row is listed if it is so in any lane.

O(n^3). No pivots are looked for: where contacts stick the matrix is one of inertias, and a sliding contact's normal row
comes before its tangents. If nothing slides in any lane, Q holds ones and zeros, and the system, rows times D, is symmetric:
its upper half is enough,

    (a D + (1 - a) G) dx = D (P(tau) - x),      dx = P(tau) - x where a lane has Q = 0.

| code | what | shape |
|---|---|---|
| `slope` | rows of Q; of a joint's row, the first number | n 3 |
| `moves` | 1 where Q is not zero, else 0 | n |
| `listed` | rows in the system | n |
| `fixed` | rows whose steps are known, and not zero | n |
| `system` | the matrix and right sides, rows of `stride(n)` | nrs |
| `step`, `along` | the solutions | n |
"""

from __future__ import annotations

from saltus.kernel import Quad, kernel, ld, less, lift, quad, select, some, sqrt, st, zero
from saltus.simulation.contact_law import COULOMB, is_within, project, slope, within
from saltus.spatial.algebra import Mat3, Vec3


@kernel
def stride(n):
    """Numbers in a row of the system: n, and two right sides, in quads."""
    return (n + 5) // 4 * 4


@kernel
def three(x, i):
    return Vec3(ld(x, i), ld(x, i + 1), ld(x, i + 2))


@kernel
def set_three(x, i, value):
    x[i], x[i + 1], x[i + 2] = value.x, value.y, value.z


@kernel
def assemble(w, first, n, law, a, along):
    """The system of a step; how many rows it has, and 1 if it is symmetric, else 0. `step` of all others is known then.

    `along`: also the right side of the path's direction, dx by 1 - a."""
    joints = list_joints(w, first, a, along)
    m, symmetric = list_contacts(w, first, n, law, a, along, joints)
    fixed = list_fixed(w, n, m, symmetric)
    row, share = stride(n), 1.0 - a
    if symmetric == 1:
        for p in range(m):
            fill_symmetric(w, n, row, p, m, fixed, share, along)
    else:
        for p in range(joints):
            fill_joint(w, n, row, p, m, fixed, share, along)
        for p in range(joints, m, 3):
            fill_contact(w, n, row, p, m, fixed, share, along)
    return m, symmetric


@kernel
def list_joints(w, first, a, along):
    """Looks at rows of joints; how many are listed."""
    o = zero(w.delassus)
    m = 0
    for i in range(first):
        x = w.impulse[i]
        tau = x - w.rate[i] * w.inverse[i]
        mixed = tau + a * (w.home[i] - tau)
        moves = is_within(mixed, w.lower[i], w.upper[i])
        w.step[i], w.slope[i], w.moves[i] = within(mixed, w.lower[i], w.upper[i]) - x, Vec3(moves, o, o), moves
        if along:
            w.along[i] = moves * (tau - w.home[i])
        if some(less(0.5, moves)):
            w.listed[m] = i
            m = m + 1
    return m


@kernel
def list_contacts(w, first, n, law, a, along, m):
    """The same for contacts, behind m rows; and 1 if none of them slides, else 0."""
    o, one, symmetric = zero(w.delassus), lift(1.0, zero(w.delassus)), 1
    for i in range(first, n, 3):
        x, mu = three(w.impulse, i), w.friction[i]
        tau = x - three(w.rate, i) * w.inverse[i]
        away = three(w.home, i) - tau
        mixed = tau + away * a
        set_three(w.step, i, project(law, mu, mixed) - x)
        if along:
            set_three(w.along, i, Vec3(o, o, o))
        if law == COULOMB:
            pushes = mixed.x
        else:
            pushes = mixed.x + mu * sqrt(mixed.y * mixed.y + mixed.z * mixed.z)
        moves = select(less(o, pushes), one, o)
        set_three(w.moves, i, Vec3(moves, moves, moves))
        if some(less(o, pushes)):
            Q = slope(law, mu, mixed)
            if some(less(Q.xx + Q.yy + Q.zz, 2.5 * moves)):  # 3 where it sticks, 2 at most where it slides
                symmetric = 0
            w.slope[i], w.slope[i + 1] = Vec3(Q.xx, Q.xy, Q.xz), Vec3(Q.yx, Q.yy, Q.yz)
            w.slope[i + 2] = Vec3(Q.zx, Q.zy, Q.zz)
            if along:
                set_three(w.along, i, Q @ away * -1.0)
            w.listed[m], w.listed[m + 1], w.listed[m + 2] = i, i + 1, i + 2
            m = m + 3
    return m, symmetric


@kernel
def list_fixed(w, n, m, symmetric):
    """Rows whose steps are known, and not zero: those that are not in the system, and, of a symmetric one's, those that are
    not in all lanes. How many there are."""
    count, k = 0, 0
    for i in range(n):
        step = (1.0 - w.moves[i]) * w.step[i]
        if k < m and w.listed[k] == i:
            k = k + 1
            if symmetric == 0:
                step = zero(w.step)
        if some(less(0.0, step * step)):
            w.fixed[count] = i
            count = count + 1
    return count


@kernel
def fill_symmetric(w, n, row, p, m, fixed, share, along):
    """Row p of a symmetric system, from its diagonal on."""
    G, A, i, total = w.delassus, w.system, w.listed[p], zero(w.delassus)
    D, pull = w.scale[i], share * w.moves[i]
    if m > 3 and w.listed[m - 1] - w.listed[0] == m - 1:  # as they lie, four at a time
        for q in range(p // 4 * 4, m, 4):
            k = min(q, m - 4)
            j = w.listed[0] + k
            move = quad(G, w.moves[j], w.moves[j + 1], w.moves[j + 2], w.moves[j + 3])
            st(A, p * row + k, ld(G, i * n + j, Quad) * move * pull)
    else:
        for q in range(p, m):
            j = w.listed[q]
            st(A, p * row + q, pull * w.moves[j] * ld(G, i * n + j))
    st(A, p * row + p, ld(A, p * row + p) + D * (1.0 - pull))
    for q in range(fixed):
        j = w.fixed[q]
        total = total + ld(G, i * n + j) * ((1.0 - w.moves[j]) * w.step[j])
    set_right(w, p, row, m, D * w.step[i] - pull * total, i, along)
    if along:
        st(A, p * row + m + 1, D * w.along[i])


@kernel
def fill_joint(w, n, row, p, m, fixed, share, along):
    """Row p of the system."""
    G, A, i, total = w.delassus, w.system, w.listed[p], zero(w.delassus)
    factor = share * w.slope[i].x
    pull = factor * w.inverse[i]
    for q in range(m):
        st(A, p * row + q, pull * ld(G, i * n + w.listed[q]))
    st(A, p * row + p, ld(A, p * row + p) + 1.0 - factor)
    for q in range(fixed):
        j = w.fixed[q]
        total = total + ld(G, i * n + j) * w.step[j]
    set_right(w, p, row, m, w.step[i] - pull * total, i, along)


@kernel
def fill_contact(w, n, row, p, m, fixed, share, along):
    """Rows p, p + 1, p + 2 of the system."""
    G, A, i, k, total = w.delassus, w.system, w.listed[p], p * row, zero(w.delassus)
    x, y, z = w.slope[i], w.slope[i + 1], w.slope[i + 2]
    Q = Mat3(x.x, x.y, x.z, y.x, y.y, y.z, z.x, z.y, z.z) * share
    R = Q * w.inverse[i]
    if m == n and n > 3:  # as they lie, four at a time
        for q in range(0, n, 4):
            j = min(q, n - 4)
            a, b, c = ld(G, i * n + j, Quad), ld(G, i * n + n + j, Quad), ld(G, i * n + n + n + j, Quad)
            st(A, k + j, a * R.xx + b * R.xy + c * R.xz)
            st(A, k + j + row, a * R.yx + b * R.yy + c * R.yz)
            st(A, k + j + row + row, a * R.zx + b * R.zy + c * R.zz)
    else:
        for q in range(m):
            column = R @ ld(G, w.listed[q] * n + i, Vec3)
            st(A, k + q, column.x)
            st(A, k + q + row, column.y)
            st(A, k + q + row + row, column.z)
    take_off(A, k + p, Vec3(Q.xx - 1.0, Q.xy, Q.xz))
    take_off(A, k + p + row, Vec3(Q.yx, Q.yy - 1.0, Q.yz))
    take_off(A, k + p + row + row, Vec3(Q.zx, Q.zy, Q.zz - 1.0))
    others = Vec3(total, total, total)
    for q in range(fixed):
        j = w.fixed[q]
        others = others + ld(G, j * n + i, Vec3) * w.step[j]
    right = three(w.step, i) - R @ others
    set_right(w, p, row, m, right.x, i, along)
    set_right(w, p + 1, row, m, right.y, i + 1, along)
    set_right(w, p + 2, row, m, right.z, i + 2, along)


@kernel
def take_off(A, k, x):
    st(A, k, ld(A, k) - x.x)
    st(A, k + 1, ld(A, k + 1) - x.y)
    st(A, k + 2, ld(A, k + 2) - x.z)


@kernel
def set_right(w, p, row, m, right, i, along):
    """The right sides of row p of the system, row i of the problem, and zeros to the end of a quad."""
    k = p * row + m
    for q in range(k, p * row + (m + 5) // 4 * 4):
        st(w.system, q, 0.0)
    st(w.system, k, right)
    if along:
        st(w.system, k + 1, w.along[i])


@kernel
def eliminate(w, n, m, symmetric, along):
    """The system's solution, by Gauss, into `step` (and `along`); the sign of its determinant, 0 if it has none.

    Three columns at a time: a row goes through memory a third as often."""
    A, row = w.system, stride(n)
    end = (m + 5) // 4 * 4 if along else (m + 4) // 4 * 4
    alone, sign = m % 3, lift(1.0, zero(A))
    if alone == 1:
        sign = take_columns(A, row, 0, (0,), m, symmetric, sign, end)
    elif alone == 2:
        sign = take_columns(A, row, 0, (0, 1), m, symmetric, sign, end)
    for k in range(alone, m, 3):
        sign = take_columns(A, row, k, (0, 1, 2), m, symmetric, sign, end)
    put_back(w, row, m, m, w.step)
    if along:
        put_back(w, row, m, m + 1, w.along)
    return sign


@kernel
def take_columns(A, row, k, columns, m, symmetric, sign, end):
    """All rows without columns k, k + 1 ...; the sign of the determinant up to these."""
    inverses, count = (), len(columns)
    for c in columns:
        for d in columns:
            if d < c:
                take_row(A, row, k + c, k + d, k, symmetric, end)
        sign = take_pivot(A, row, k + c, sign)
        inverses = (*inverses, ld(A, (k + c) * row + k + c))
    for i in range(k + count, m):
        ratios, here = (), i if symmetric == 1 else k + count
        for c in columns:
            if symmetric == 1:
                x = ld(A, (k + c) * row + i)
            else:
                x = ld(A, i * row + k + c)
                for d in columns:
                    if d < c:
                        x = x - ratios[d] * ld(A, (k + d) * row + k + c)
            ratios = (*ratios, x * inverses[c])
        for j in range(here // 4 * 4, end, 4):
            rest = ld(A, i * row + j, Quad)
            for c in columns:
                rest = rest - ld(A, (k + c) * row + j, Quad) * ratios[c]
            st(A, i * row + j, rest)
    return sign


@kernel
def take_pivot(A, row, k, sign):
    """Inverts a pivot in its place; the sign of the determinant up to it."""
    pivot = ld(A, k * row + k)
    st(A, k * row + k, 1.0 / pivot)
    return select(less(pivot, 0.0), -sign, select(less(0.0, pivot), sign, 0.0 * sign))


@kernel
def take_row(A, row, i, k, here, symmetric, end):
    """Row i without column k, from a place on."""
    ratio = (ld(A, k * row + i) if symmetric == 1 else ld(A, i * row + k)) * ld(A, k * row + k)
    for j in range(here // 4 * 4, end, 4):
        st(A, i * row + j, ld(A, i * row + j, Quad) - ld(A, k * row + j, Quad) * ratio)


@kernel
def put_back(w, row, m, column, x):
    """The solution for the right side in a column."""
    A = w.system
    for k in range(m - 1, -1, -1):
        found = ld(A, k * row + column) * ld(A, k * row + k)
        x[w.listed[k]] = found
        for i in range(k):
            st(A, i * row + column, ld(A, i * row + column) - ld(A, i * row + k) * found)
