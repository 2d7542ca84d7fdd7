"""Products of dense matrices inside kernels, four columns at a time.

Columns j to j + 3 of the right factor are copied to a panel, which stays in the nearest cache (and may so be overwritten by
the product); two rows of the left factor go over it at once, so that eight sums stay in registers. At the edges the last row and the last column are taken again: no kernel has two cases.
"""

from __future__ import annotations

from typing import NamedTuple

from saltus.kernel import Scalar, kernel, ld, st, zero


class Row(NamedTuple):
    """Four neighbours in a row."""

    a: Scalar
    b: Scalar
    c: Scalar
    d: Scalar


class Tile(NamedTuple):
    """Two rows of four."""

    a: Row
    b: Row


@kernel
def add_scaled(x, y, s):
    """x + y s"""
    return Row(x.a + y.a * s, x.b + y.b * s, x.c + y.c * s, x.d + y.d * s)


@kernel
def load_row(matrix, n, i, j):
    """Columns j to j + 3 of row i of a matrix with rows of n numbers."""
    last, start = n - 1, i * n
    return Row(
        ld(matrix, start + j),
        ld(matrix, start + min(j + 1, last)),
        ld(matrix, start + min(j + 2, last)),
        ld(matrix, start + min(j + 3, last)),
    )


@kernel
def load_panel(matrix, n, rows, j, sign, panel):
    """Columns j to j + 3 of a matrix, times a sign."""
    for i in range(rows):
        x = load_row(matrix, n, i, j)
        panel[i] = Row(x.a * sign, x.b * sign, x.c * sign, x.d * sign)


@kernel
def empty_tile(o):
    none = Row(o, o, o, o)
    return Tile(none, none)


@kernel
def add_product(tile, A, down, across, i, rows, panel, inner):
    """The tile, plus rows i and i + 1 of A times the panel; A has its entry (i, k) at i * down + k * across."""
    a, b = tile.a, tile.b
    first, second = i * down, min(i + 1, rows - 1) * down
    for k in range(inner):
        x, step = panel[k], k * across
        a = add_scaled(a, x, ld(A, first + step))
        b = add_scaled(b, x, ld(A, second + step))
    return Tile(a, b)


@kernel
def load_tile(matrix, n, rows, i, j):
    """Rows i and i + 1 of columns j to j + 3."""
    return Tile(load_row(matrix, n, i, j), load_row(matrix, n, min(i + 1, rows - 1), j))


@kernel
def store_row(matrix, n, i, j, row):
    last, start = n - 1, i * n
    st(matrix, start + j, row.a)
    st(matrix, start + min(j + 1, last), row.b)
    st(matrix, start + min(j + 2, last), row.c)
    st(matrix, start + min(j + 3, last), row.d)


@kernel
def store_tile(matrix, n, rows, i, j, tile):
    store_row(matrix, n, i, j, tile.a)
    store_row(matrix, n, min(i + 1, rows - 1), j, tile.b)


@kernel
def multiply(sign, A, rows, inner, B, columns, panel, C):
    """C = sign A B, with rows of A of `inner` numbers; C may be B if A is square."""
    for j in range(0, columns, 4):
        load_panel(B, columns, inner, j, sign, panel)
        for i in range(0, rows, 2):
            tile = add_product(empty_tile(zero(C)), A, inner, 1, i, rows, panel, inner)
            store_tile(C, columns, rows, i, j, tile)
