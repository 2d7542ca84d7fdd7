"""Dense symmetric systems inside kernels, by rows of quads.

    K = V^T D^-1 V,      V upper triangular, D its diagonal

K has n rows of `row` numbers, n and `row` multiples of four, of which only those from the diagonal on are looked at; V takes
their place. `inverse` receives D^-1. K may be quasidefinite: positive first, then negative. A pivot that is less than
rounding leaves of its row is held up by that much, so that what K does not see hardly moves. O(n^3 / 6), four pivots at a
time: a row then goes through memory a quarter as often."""

from __future__ import annotations

from saltus.kernel import Quad, fabs, four, kernel, ld, maximum, minimum, quad, st, zero


@kernel
def padded(n):
    """Numbers in a row of quads."""
    return (n + 3) // 4 * 4


@kernel
def factor(K, n, turn, row, inverse, least):
    """In place. From row `turn` on pivots are negative. `least`: the share of its diagonal entry below which a pivot is
    rounding."""
    for k in range(0, n, 4):
        a, b, c, d = k * row, (k + 1) * row, (k + 2) * row, (k + 3) * row
        floors = ld(K, a + k), ld(K, b + k + 1), ld(K, c + k + 2), ld(K, d + k + 3)
        take_pivot(K, row, k, turn, inverse, floors[0], least)
        take_row(K, row, k, k + 1, inverse)
        take_pivot(K, row, k + 1, turn, inverse, floors[1], least)
        take_row(K, row, k, k + 2, inverse)
        take_row(K, row, k + 1, k + 2, inverse)
        take_pivot(K, row, k + 2, turn, inverse, floors[2], least)
        take_row(K, row, k, k + 3, inverse)
        take_row(K, row, k + 1, k + 3, inverse)
        take_row(K, row, k + 2, k + 3, inverse)
        take_pivot(K, row, k + 3, turn, inverse, floors[3], least)
        p, q, r, s = ld(inverse, k), ld(inverse, k + 1), ld(inverse, k + 2), ld(inverse, k + 3)
        for i in range(k + 4, n, 2):
            here, there = i * row, (i + 1) * row
            e, f, g, h = ld(K, a + i) * p, ld(K, b + i) * q, ld(K, c + i) * r, ld(K, d + i) * s
            t, u, v, w = ld(K, a + i + 1) * p, ld(K, b + i + 1) * q, ld(K, c + i + 1) * r, ld(K, d + i + 1) * s
            for j in range(i // 4 * 4, row, 4):
                A, B, C, D = ld(K, a + j, Quad), ld(K, b + j, Quad), ld(K, c + j, Quad), ld(K, d + j, Quad)
                st(K, here + j, ld(K, here + j, Quad) - A * e - B * f - C * g - D * h)
                st(K, there + j, ld(K, there + j, Quad) - A * t - B * u - C * v - D * w)


@kernel
def take_pivot(K, row, k, turn, inverse, diagonal, least):
    pivot, floor = ld(K, k * row + k), fabs(diagonal) * least + 1e-30
    if k < turn:
        pivot = maximum(pivot, floor)
    else:
        pivot = minimum(pivot, -floor)
    st(K, k * row + k, pivot)
    st(inverse, k, 1.0 / pivot)


@kernel
def take_row(K, row, k, i, inverse):
    """Row i without column k."""
    ratio = ld(K, k * row + i) * ld(inverse, k)
    for j in range(i // 4 * 4, row, 4):
        st(K, i * row + j, ld(K, i * row + j, Quad) - ld(K, k * row + j, Quad) * ratio)


@kernel
def solve_lower(V, n, row, inverse, x):
    """x = (V^T D^-1)^-1 x"""
    for k in range(0, n, 4):
        a, b, c, d = k * row, (k + 1) * row, (k + 2) * row, (k + 3) * row
        p = ld(x, k)
        e = p * ld(inverse, k)
        q = ld(x, k + 1) - ld(V, a + k + 1) * e
        f = q * ld(inverse, k + 1)
        r = ld(x, k + 2) - ld(V, a + k + 2) * e - ld(V, b + k + 2) * f
        g = r * ld(inverse, k + 2)
        s = ld(x, k + 3) - ld(V, a + k + 3) * e - ld(V, b + k + 3) * f - ld(V, c + k + 3) * g
        h = s * ld(inverse, k + 3)
        x[k + 1], x[k + 2], x[k + 3] = q, r, s
        for j in range(k + 4, n, 4):
            rest = ld(x, j, Quad) - ld(V, a + j, Quad) * e - ld(V, b + j, Quad) * f
            st(x, j, rest - ld(V, c + j, Quad) * g - ld(V, d + j, Quad) * h)


@kernel
def solve_upper(V, n, row, inverse, x):
    """x = V^-1 x"""
    o = zero(V)
    for k in range(n - 4, -1, -4):
        a, b, c, d = k * row, (k + 1) * row, (k + 2) * row, (k + 3) * row
        none = quad(V, o, o, o, o)
        A, B, C, D = none, none, none, none
        for j in range(k + 4, n, 4):
            X = ld(x, j, Quad)
            A, B = A + ld(V, a + j, Quad) * X, B + ld(V, b + j, Quad) * X
            C, D = C + ld(V, c + j, Quad) * X, D + ld(V, d + j, Quad) * X
        s = (ld(x, k + 3) - total(D)) * ld(inverse, k + 3)
        r = (ld(x, k + 2) - total(C) - ld(V, c + k + 3) * s) * ld(inverse, k + 2)
        q = (ld(x, k + 1) - total(B) - ld(V, b + k + 2) * r - ld(V, b + k + 3) * s) * ld(inverse, k + 1)
        p = ld(x, k) - total(A) - ld(V, a + k + 1) * q - ld(V, a + k + 2) * r - ld(V, a + k + 3) * s
        x[k], x[k + 1], x[k + 2], x[k + 3] = p * ld(inverse, k), q, r, s


@kernel
def total(x):
    a, b, c, d = four(x)
    return (a + b) + (c + d)


@kernel
def dot(x, y, n):
    """Of two arrays of n numbers, n a multiple of four."""
    o = zero(x)
    found = quad(x, o, o, o, o)
    for j in range(0, n, 4):
        found = found + ld(x, j, Quad) * ld(y, j, Quad)
    return total(found)
