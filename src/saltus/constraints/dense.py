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
