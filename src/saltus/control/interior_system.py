"""The matrix of Newton's step, and what of it stays the same.

    | U    R |     U: loose variables, which no end or cone holds so far: they are eliminated once,
    | R'   B |     K = B - R' U^-1 R, to whose diagonal each iteration adds what barriers ask for

| code | what | shape |
|---|---|---|
| `seated`, `seat` | the variable of a row, and the other way; loose ones first, `ahead` of them, rows of F last | N |
| `system` | factors of (U R), ahead rows; behind them those of K with barriers | ahead N, (N - ahead)^2 |
| `settled` | K | (N - ahead)^2 |
| `seating` | a right side, in this order | N |
"""

from __future__ import annotations

from saltus.control.cholesky import factor, solve_lower, solve_upper, take_out
from saltus.control.cones import barrier_axes, barrier_block
from saltus.control.interior_program import INVERSE, SCALED, SEATING, add, vector
from saltus.kernel import Quad, fabs, kernel, ld, less, lift, maximum, quad, select, some, st, tail, zero
from saltus.spatial.algebra import Mat3, Vec3, transpose, turn_back

HELD = 1e25
"""On the diagonal, of a variable that cannot move."""

LEAST = 1e-14
"""The share of its diagonal entry below which a pivot is rounding."""

SOFT = 1e-10
"""Of an equality: the share by which it may give way in one iteration."""

POOR = 1e-4
"""The share of its diagonal entry below which a pivot is too little to be eliminated by for good."""

NEXT_TO_NOTHING = 1e-29
"""A pivot that is nothing."""


@kernel
def settle(p, n, nf, first, size):
    """Eliminates loose variables; those by which that would be poor are loose no more. How many rows they are, and the
    matrix in all."""
    ahead, width = 0, 0
    poor = True
    while poor:
        ahead, width = take_seats(p, n, nf, first, size)
        for k in range(ahead):
            fill_row(p, tail(p.system, k * width), p.seated[k], k, n, nf, first, width, 0)
        factor(p.system, ahead, ahead, width, vector(p, INVERSE, size), LEAST, vector(p, SCALED, size))
        poor = has_poor(p, first, size, ahead)
    fill_behind(p, n, nf, first, ahead, width)
    take_out(p.settled, width - ahead, p.system, ahead, width, vector(p, INVERSE, size), vector(p, SCALED, size))
    return ahead, width


@kernel
def take_seats(p, n, nf, first, size):
    """Loose variables first, as many as fill quads; loose rows last, where no matrix is. How many, and its rows."""
    count = 0
    for j in range(n):
        if p.loose[j] > 0:
            p.seated[count] = j
            count = count + 1
    ahead = count // 4 * 4
    for j in range(n):
        if p.loose[j] <= 0:
            p.seated[count] = j
            count = count + 1
    for j in range(n, first):
        p.seated[j] = j
    count = first + 0
    for j in range(first, first + nf):
        if p.loose[j] <= 0:
            p.seated[count] = j
            count = count + 1
    width = (count + 3) // 4 * 4
    for j in range(first, size):
        if j >= first + nf or p.loose[j] > 0:
            p.seated[count] = j
            count = count + 1
    for k in range(size):
        p.seat[p.seated[k]] = k
    return ahead, width


@kernel
def fill_behind(p, n, nf, first, ahead, width):
    """What K would be without loose variables: rows of F have nothing but what equalities may give way by."""
    S, o, row = p.settled, zero(p.settled), width - ahead
    for k in range(ahead, n):
        fill_row(p, tail(S, (k - ahead) * row), p.seated[k], k, n, nf, first, width, ahead)
    for i in range(n - ahead, row):
        for j in range(i // 4 * 4, row, 4):
            st(S, i * row + j, quad(S, o, o, o, o))
    for k in range(n, first):
        st(S, (k - ahead) * (row + 1), 1.0)
    for k in range(first, width):
        j, give = p.seated[k], o
        if is_row(p, j, nf, first):
            for i in range(n):
                along = ld(p.general, (j - first) * first + i) * (1.0 - p.held[i])
                give = give + along * along / maximum(ld(p.hessian, i * first + i), lift(1e-30, o))
            soft = select(less(o, give), -SOFT * give - p.give[j] - 1e-30, -lift(1.0, o))
            st(S, (k - ahead) * (row + 1), select(less(0.5, p.held[j]), soft, o))
        else:
            st(S, (k - ahead) * (row + 1), -1.0)


@kernel
def is_row(p, j, nf, first):
    """Whether it is a row of F that is not loose."""
    return j < first + nf and p.loose[j] <= 0


@kernel
def fill_row(p, row, i, k, n, nf, first, width, ahead):
    """Row k, of variable i, from its diagonal on."""
    H, o, e = tail(p.hessian, i * first), zero(p.system), k // 4 * 4
    while e < n:
        if e + 3 < n and is_run(p, e):
            st(row, e - ahead, ld(H, p.seated[e], Quad))
            e = e + 4
        else:
            st(row, e - ahead, ld(H, p.seated[e]))
            e = e + 1
    for e in range(n, first):
        st(row, e - ahead, o)
    for e in range(first, width):
        j = p.seated[e]
        st(row, e - ahead, ld(p.general, (j - first) * first + i) * (1.0 - p.held[i]) if is_row(p, j, nf, first) else o)


@kernel
def is_run(p, k):
    j = p.seated[k]
    return p.seated[k + 1] == j + 1 and p.seated[k + 2] == j + 2 and p.seated[k + 3] == j + 3


@kernel
def has_poor(p, first, size, ahead):
    """Whether a pivot is next to nothing beside its diagonal entry, in some lane: such variables are loose no more."""
    found = False
    for k in range(ahead):
        i = p.seated[k]
        least = POOR * fabs(ld(p.hessian, i * (first + 1))) + NEXT_TO_NOTHING
        good = less(least * ld(vector(p, INVERSE, size), k), lift(1.0, least))
        if some(less(select(good, lift(1.0, least), 0.0 * least), 0.5)):
            p.loose[i] = 0
            found = True
    return found


@kernel
def assemble(p, n, nc, first, size, ahead, width, nb, added, alone, turned):
    """The matrix and its factors. `alone`: without inequalities, but with `added` on the diagonal. `turned`: forces along
    the axes of their barriers."""
    row, o = width - ahead, zero(p.system)
    K = tail(p.system, ahead * width)
    for i in range(row):
        for j in range(i // 4 * 4, row, 4):
            st(K, i * row + j, ld(p.settled, i * row + j, Quad))
    if alone:
        for i in range(n - ahead):
            add(K, i * (row + 1), added)
    for k in range(nb):
        j = p.bounded[k]
        below, above, held = p.below[j], p.above[j], p.held[j]
        if alone:
            stiff = o
        else:
            stiff = below * below * p.inside[j] + above * above * p.outside[j]
        at = (p.seat[j] - ahead) * (row + 1)
        if j < first:
            add(K, at, stiff + held * HELD)
        else:
            add(K, at, select(less(0.5, held), o, -1.0 / maximum(stiff, lift(1e-25, o)) - p.give[j]))
    for c in range(nc):
        a, b, z = p.seat[p.fx[c]] - ahead, p.seat[p.fy[c]] - ahead, p.seat[p.fz[c]] - ahead
        if turned > 0:
            turn_block(p, K, c, a, b, z, row)
        elif not alone:
            B, is_open = barrier_block(p.mu[c], p.scaling[c]), p.open[c]
            add(K, a * row + a, B.xx * is_open)
            add(K, b * row + b, B.yy * is_open)
            add(K, z * row + z, B.zz * is_open)
            add(K, min(a, b) * row + max(a, b), B.xy * is_open)
            add(K, min(a, z) * row + max(a, z), B.xz * is_open)
            add(K, min(b, z) * row + max(b, z), B.yz * is_open)
    factor(K, row, first - ahead, row, tail(p.vector, INVERSE * size + ahead), LEAST, vector(p, SCALED, size))


@kernel
def turn_block(p, K, c, a, b, z, row):
    """A force's rows and columns along its axes, and its barrier: beside that, little is left of what H knows of the other
    axes unless they are those of the system."""
    R, B = barrier_axes(p.mu[c], p.scaling[c], p.open[c], p.held[p.fz[c]])
    p.axes[c] = R
    for j in range(row):
        if j != a and j != b and j != z:
            k, e, i = upper_place(a, j, row), upper_place(b, j, row), upper_place(z, j, row)
            found = R @ Vec3(ld(K, k), ld(K, e), ld(K, i))
            st(K, k, found.x)
            st(K, e, found.y)
            st(K, i, found.z)
    ab, az, bz = ld(K, upper_place(a, b, row)), ld(K, upper_place(a, z, row)), ld(K, upper_place(b, z, row))
    aa, bb, zz = ld(K, a * row + a), ld(K, b * row + b), ld(K, z * row + z)
    M = R @ Mat3(aa, ab, az, ab, bb, bz, az, bz, zz) @ transpose(R)
    st(K, a * row + a, M.xx + B.xx)
    st(K, b * row + b, M.yy + B.yy)
    st(K, z * row + z, M.zz + B.zz)
    st(K, upper_place(a, b, row), M.xy + B.xy)
    st(K, upper_place(a, z, row), M.xz + B.xz)
    st(K, upper_place(b, z, row), M.yz + B.yz)


@kernel
def upper_place(i, j, row):
    return min(i, j) * row + max(i, j)


@kernel
def turn_forces(p, nc, x, back):
    """Forces in x, which has the order of the matrix, along the axes of their barriers; or `back`."""
    for c in range(nc):
        a, b, z, R = p.seat[p.fx[c]], p.seat[p.fy[c]], p.seat[p.fz[c]], p.axes[c]
        f = Vec3(ld(x, a), ld(x, b), ld(x, z))
        f = turn_back(R, f) if back else R @ f
        x[a], x[b], x[z] = f.x, f.y, f.z


@kernel
def solve_ahead(p, size, ahead, width, d):
    """Takes a right side d to its seats, and loose variables out of it."""
    x = vector(p, SEATING, size)
    for k in range(width):
        x[k] = ld(d, p.seated[k])
    solve_lower(p.system, ahead, width, width, vector(p, INVERSE, size), x)


@kernel
def solve_behind(p, nc, size, ahead, width, x, turned):
    """Those that are not loose, in x by their seats."""
    behind, rest = width - ahead, tail(x, ahead)
    K, inverse = tail(p.system, ahead * width), tail(p.vector, INVERSE * size + ahead)
    if turned > 0:
        turn_forces(p, nc, x, False)
    solve_lower(K, behind, behind, behind, inverse, rest)
    solve_upper(K, behind, behind, behind, inverse, rest)
    if turned > 0:
        turn_forces(p, nc, x, True)


@kernel
def solve_loose(p, size, ahead, width, d):
    """Loose variables in d, by all others, which are in their seats."""
    x = vector(p, SEATING, size)
    solve_upper(p.system, ahead, width, width, vector(p, INVERSE, size), x)
    for k in range(ahead):
        d[p.seated[k]] = ld(x, k)


@kernel
def solve(p, nc, size, ahead, width, d):
    x = vector(p, SEATING, size)
    solve_ahead(p, size, ahead, width, d)
    solve_behind(p, nc, size, ahead, width, x, 0)
    for k in range(ahead, width):
        d[p.seated[k]] = ld(x, k)
    solve_loose(p, size, ahead, width, d)


@kernel
def follow_forces(p, first, size, ahead, width, d):
    """Loose variables in d where the others in d make costs least; of nothing else."""
    x = vector(p, SEATING, size)
    for k in range(width):
        x[k] = ld(d, p.seated[k]) if ahead <= k < first else zero(d)
    solve_loose(p, size, ahead, width, d)
