"""Dense symmetric matrices inside kernels: blocks on the diagonal of one that is stored row by row.

    A = L D L^T,      L with a unit diagonal

A block is that of rows and columns `first` to `end` of a matrix with rows of n numbers. Only lower triangles are looked at.
"""

from __future__ import annotations

from saltus.kernel import kernel, ld, st


@kernel
def factor_block(A, D, n, first, end):
    """In place: the lower triangle of the block becomes that of L; D receives the inverses of the pivots."""
    for k in range(first, end):
        inverse = 1.0 / ld(A, k * n + k)
        st(D, k, inverse)
        for i in range(k + 1, end):
            ratio = ld(A, i * n + k) * inverse
            for j in range(k + 1, i + 1):
                st(A, i * n + j, ld(A, i * n + j) - ratio * ld(A, j * n + k))
        for i in range(k + 1, end):
            st(A, i * n + k, ld(A, i * n + k) * inverse)


@kernel
def solve_block(L, D, n, first, end, x):
    """x = A^-1 x, in the places of the block; x is a field of a workspace, of numbers or of anything that adds and scales."""
    for i in range(first, end):
        total = x[i]
        for j in range(first, i):
            total = total - x[j] * ld(L, i * n + j)
        x[i] = total
    for i in range(end - 1, first - 1, -1):
        total = x[i] * ld(D, i)
        for j in range(i + 1, end):
            total = total - x[j] * ld(L, j * n + i)
        x[i] = total


@kernel
def invert_block(A, D, n, first, end):
    """In place: factors L and D become the lower triangle of the inverse."""
    for i in range(first, end):  # L^-1
        for j in range(first, i):
            total = ld(A, i * n + j)
            for k in range(j + 1, i):
                total = total + ld(A, i * n + k) * ld(A, k * n + j)
            st(A, i * n + j, -total)
    for j in range(first, end):  # L^-T D^-1 L^-1, column by column: what is overwritten is not needed any more
        for i in range(j, end):
            total = ld(A, i * n + j) * ld(D, i) if i > j else ld(D, i)
            for k in range(i + 1, end):
                total = total + ld(A, k * n + i) * ld(D, k) * ld(A, k * n + j)
            st(A, i * n + j, total)
