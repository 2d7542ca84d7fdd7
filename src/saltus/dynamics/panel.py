"""Products of dense matrices inside kernels, four columns at a time.

Columns j to j + 3 of the right factor are copied to a panel, which stays in the nearest cache (and may so be overwritten by
the product); three rows of the left factor go over it at once, so that twelve sums stay in registers. At the edges the last
row and the last column are taken again: no kernel has two cases.
"""

from __future__ import annotations

from typing import NamedTuple

from saltus.kernel import Quad, four, kernel, ld, quad, st, zero


class Tile(NamedTuple):
    """Three rows of four."""

    a: Quad
    b: Quad
    c: Quad


@kernel
def clear(matrix, count):
    for k in range(count):
        st(matrix, k, 0.0)


@kernel
def load_row(matrix, n, i, j):
    """Columns j to j + 3 of row i of a matrix with rows of n numbers."""
    last, start = n - 1, i * n
    return quad(
        matrix,
        ld(matrix, start + j),
        ld(matrix, start + min(j + 1, last)),
        ld(matrix, start + min(j + 2, last)),
        ld(matrix, start + min(j + 3, last)),
    )


@kernel
def load_panel(matrix, n, rows, j, sign, panel):
    """Columns j to j + 3 of a matrix, times a sign."""
    for i in range(rows):
        panel[i] = load_row(matrix, n, i, j) * sign


@kernel
def load_sparse(matrix, n, j, sign, panel, listed, first, end):
    """The rows listed of the same."""
    for place in range(first, end):
        i = listed[place]
        panel[i] = load_row(matrix, n, i, j) * sign


@kernel
def empty_tile(matrix):
    o = zero(matrix)
    none = quad(matrix, o, o, o, o)
    return Tile(none, none, none)


@kernel
def add_product(tile, A, down, across, i, rows, panel, inner):
    """The tile, plus rows i to i + 2 of A times the panel; A has its entry (i, k) at i * down + k * across."""
    a, b, c = tile.a, tile.b, tile.c
    first, second, third = i * down, min(i + 1, rows - 1) * down, min(i + 2, rows - 1) * down
    for k in range(inner):
        x, step = panel[k], k * across
        a = a + x * ld(A, first + step)
        b = b + x * ld(A, second + step)
        c = c + x * ld(A, third + step)
    return Tile(a, b, c)


@kernel
def add_sparse(tile, A, n, i, rows, panel, listed, first, end):
    """The same for a panel of which only the rows `listed` from `first` to `end` are not zero; A has rows of n numbers."""
    a, b, c = tile.a, tile.b, tile.c
    one, two, three = i * n, min(i + 1, rows - 1) * n, min(i + 2, rows - 1) * n
    for place in range(first, end):
        k = listed[place]
        x = panel[k]
        a = a + x * ld(A, one + k)
        b = b + x * ld(A, two + k)
        c = c + x * ld(A, three + k)
    return Tile(a, b, c)


@kernel
def load_tile(matrix, n, rows, i, j):
    """Rows i to i + 2 of columns j to j + 3."""
    second, third = min(i + 1, rows - 1), min(i + 2, rows - 1)
    return Tile(load_row(matrix, n, i, j), load_row(matrix, n, second, j), load_row(matrix, n, third, j))


@kernel
def store_row(matrix, n, i, j, row):
    last, start = n - 1, i * n
    a, b, c, d = four(row)
    st(matrix, start + j, a)
    st(matrix, start + min(j + 1, last), b)
    st(matrix, start + min(j + 2, last), c)
    st(matrix, start + min(j + 3, last), d)


@kernel
def store_tile(matrix, n, rows, i, j, tile):
    store_row(matrix, n, i, j, tile.a)
    store_row(matrix, n, min(i + 1, rows - 1), j, tile.b)
    store_row(matrix, n, min(i + 2, rows - 1), j, tile.c)


@kernel
def multiply(sign, A, rows, inner, B, columns, panel, C):
    """C = sign A B, with rows of A of `inner` numbers; C may be B if A is square."""
    for j in range(0, columns, 4):
        load_panel(B, columns, inner, j, sign, panel)
        for i in range(0, rows, 3):
            tile = add_product(empty_tile(C), A, inner, 1, i, rows, panel, inner)
            store_tile(C, columns, rows, i, j, tile)
