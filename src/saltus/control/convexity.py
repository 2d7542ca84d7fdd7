"""Whether costs 1/2 x'Qx are what programs may have: of a symmetric Q, and nowhere bent down."""

from __future__ import annotations

from saltus.kernel import fabs, kernel, ld, less, lift, maximum, select, zero

EVEN = 1e-9
"""The share of their diagonal ones by which entries of a symmetric matrix may differ, at least."""


@kernel
def skewness(Q, n, i, j, tolerance):
    """More than 0 where two entries differ by more than this share of their diagonal ones."""
    share = maximum(tolerance, lift(EVEN, tolerance))
    sizes = fabs(ld(Q, i * n + i)) + fabs(ld(Q, j * n + j))
    return fabs(ld(Q, i * n + j) - ld(Q, j * n + i)) - share * sizes


@kernel
def bends_down(inverse, n, added):
    """1 where a matrix is not even definite with what is `added` to its diagonal: pivots, of which this has the `inverse`,
    would be no less than that."""
    o = zero(inverse)
    found = o
    for i in range(n):
        found = select(less(1.0, 0.5 * fabs(added) * ld(inverse, i)), lift(1.0, o), found)
    return found
