"""Dense products inside kernels, four rows by eight columns at a time.

    C[i ... i+3, j ... j+7] (+)= sum_k A[k, i ... i+3]' B[k, j ... j+7]

All products of a backward pass are of this form: V F with V symmetric, F'(V F), and the square that is taken away by
the gains. Eight quads are kept in registers, and each number that is loaded is used four or eight times. Rows are padded: to
multiples of four in A, of eight in B and C.
"""

from __future__ import annotations

from saltus.kernel import Quad, kernel, ld, quad, st, zero


@kernel
def block(A, a, B, b, count, C, c, i, j, adds):
    """One block of C, whose rows have c numbers. `adds`: to what is there."""
    if adds:
        p, r = ld(C, i * c + j, Quad), ld(C, (i + 1) * c + j, Quad)
        s, t = ld(C, (i + 2) * c + j, Quad), ld(C, (i + 3) * c + j, Quad)
        e, f = ld(C, i * c + j + 4, Quad), ld(C, (i + 1) * c + j + 4, Quad)
        g, h = ld(C, (i + 2) * c + j + 4, Quad), ld(C, (i + 3) * c + j + 4, Quad)
    else:
        o = zero(C)
        none = quad(C, o, o, o, o)
        p, r, s, t, e, f, g, h = none, none, none, none, none, none, none, none
    for k in range(count):
        x, y = ld(B, k * b + j, Quad), ld(B, k * b + j + 4, Quad)
        one, two, three, four = ld(A, k * a + i), ld(A, k * a + i + 1), ld(A, k * a + i + 2), ld(A, k * a + i + 3)
        p, e = p + x * one, e + y * one
        r, f = r + x * two, f + y * two
        s, g = s + x * three, g + y * three
        t, h = t + x * four, h + y * four
    st(C, i * c + j, p)
    st(C, i * c + j + 4, e)
    st(C, (i + 1) * c + j, r)
    st(C, (i + 1) * c + j + 4, f)
    st(C, (i + 2) * c + j, s)
    st(C, (i + 2) * c + j + 4, g)
    st(C, (i + 3) * c + j, t)
    st(C, (i + 3) * c + j + 4, h)


@kernel
def multiply(A, a, B, b, rows, count, C, c):
    """C = A' B; `rows` of C, its columns are those of B."""
    for i in range(0, rows, 4):
        for j in range(0, b, 8):
            block(A, a, B, b, count, C, c, i, j, False)


@kernel
def add_square(A, a, B, b, first, rows, count, C, c):
    """C += A' B where that is symmetric: the upper triangle, from row and column `first` on (a multiple of four)."""
    for i in range(first, rows, 4):
        for j in range(i // 8 * 8, b, 8):
            block(A, a, B, b, count, C, c, i, j, True)


@kernel
def copy_row(source, start, target, place, n, padded, factor):
    """n numbers from `start` on times a factor, unless that is None, and zeros up to `padded`."""
    whole = n // 4 * 4
    for j in range(0, whole, 4):
        x = ld(source, start + j, Quad)
        st(target, place + j, x if factor is None else x * factor)
    for j in range(whole, n):
        y = ld(source, start + j)
        target[place + j] = y if factor is None else y * factor
    for j in range(n, padded):
        target[place + j] = zero(target)


@kernel
def add_multiple(y, x, place, factor, n):
    """y += factor x[place ...], n a multiple of four."""
    for j in range(0, n, 4):
        st(y, j, ld(y, j, Quad) + ld(x, place + j, Quad) * factor)
