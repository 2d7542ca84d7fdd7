"""Dense symmetric systems inside kernels, by rows of quads.

    K = V^T D^-1 V,      V upper triangular, D its diagonal

K has n rows of `row` numbers, n and `row` multiples of four, of which only those from the diagonal on are looked at; V takes
their place, and D^-1 V below the diagonal that of its tiles of four by four. `inverse` receives D^-1. K may be
quasidefinite: positive first, then negative. A pivot that is less than rounding leaves of its row is held up by that much,
so that what K does not see hardly moves.

Four rows at a time: all that rows above take from a tile of four by four is summed up in registers, and each number of V is
written once. O(n^3 / 6).
"""

from __future__ import annotations

from saltus.kernel import Quad, fabs, four, kernel, ld, maximum, minimum, quad, st, zero


@kernel
def padded(n):
    """Numbers in a row of quads."""
    return (n + 3) // 4 * 4


@kernel
def factor(K, n, turn, row, inverse, least, scaled):
    """In place. From row `turn` on pivots are negative. `least`: the share of its diagonal entry below which a pivot is
    rounding. `scaled`: room for 4 n numbers, V^T D^-1 of the rows at hand."""
    for i in range(0, n, 4):
        for k in range(i):
            st(scaled, 4 * k, ld(K, k * row + i, Quad) * ld(inverse, k))
        P, Q, R, S = less_above(K, row, i, i, scaled)
        (a, ab, ac, ad), (_, b, bc, bd), (_, _, c, cd), (_, _, _, d) = four(P), four(Q), four(R), four(S)
        floor = fabs(b) * least, fabs(c) * least, fabs(d) * least
        a = held_up(a, fabs(a) * least, i < turn)
        p = 1.0 / a
        e, f, g = ab * p, ac * p, ad * p
        b, bc, bd = b - ab * e, bc - ac * e, bd - ad * e
        b = held_up(b, floor[0], i + 1 < turn)
        q = 1.0 / b
        h, m = bc * q, bd * q
        c, cd = c - ac * f - bc * h, cd - ad * f - bd * h
        c = held_up(c, floor[1], i + 2 < turn)
        r = 1.0 / c
        t = cd * r
        d = held_up(d - ad * g - bd * m - cd * t, floor[2], i + 3 < turn)
        st(inverse, i, quad(K, p, q, r, 1.0 / d))
        st(K, i * row + i, quad(K, a, ab, ac, ad))
        st(K, (i + 1) * row + i, quad(K, e, b, bc, bd))
        st(K, (i + 2) * row + i, quad(K, f, h, c, cd))
        st(K, (i + 3) * row + i, quad(K, g, m, t, d))
        for j in range(i + 4, row, 4):
            P, Q, R, S = less_above(K, row, i, j, scaled)
            Q = Q - P * e
            R = R - P * f - Q * h
            S = S - P * g - Q * m - R * t
            st(K, i * row + j, P)
            st(K, (i + 1) * row + j, Q)
            st(K, (i + 2) * row + j, R)
            st(K, (i + 3) * row + j, S)


@kernel
def less_above(K, row, i, j, scaled):
    """Four rows from row i on, columns j to j + 3, without what rows above take from them."""
    P, Q = ld(K, i * row + j, Quad), ld(K, (i + 1) * row + j, Quad)
    R, S = ld(K, (i + 2) * row + j, Quad), ld(K, (i + 3) * row + j, Quad)
    for k in range(i):
        x = ld(K, k * row + j, Quad)
        P, Q = P - x * ld(scaled, 4 * k), Q - x * ld(scaled, 4 * k + 1)
        R, S = R - x * ld(scaled, 4 * k + 2), S - x * ld(scaled, 4 * k + 3)
    return P, Q, R, S


@kernel
def take_out(S, n, K, begin, row, inverse, scaled):
    """S, n rows, less what the first `begin` rows of K, factored, take from those behind them."""
    for i in range(0, n, 4):
        for k in range(begin):
            st(scaled, 4 * k, ld(K, k * row + begin + i, Quad) * ld(inverse, k))
        for j in range(i, n, 4):
            P, Q = ld(S, i * n + j, Quad), ld(S, (i + 1) * n + j, Quad)
            R, T = ld(S, (i + 2) * n + j, Quad), ld(S, (i + 3) * n + j, Quad)
            for k in range(begin):
                x = ld(K, k * row + begin + j, Quad)
                P, Q = P - x * ld(scaled, 4 * k), Q - x * ld(scaled, 4 * k + 1)
                R, T = R - x * ld(scaled, 4 * k + 2), T - x * ld(scaled, 4 * k + 3)
            st(S, i * n + j, P)
            st(S, (i + 1) * n + j, Q)
            st(S, (i + 2) * n + j, R)
            st(S, (i + 3) * n + j, T)


@kernel
def held_up(pivot, floor, positive):
    """A pivot that is at least so far from zero."""
    return maximum(pivot, floor + 1e-30) if positive else minimum(pivot, -(floor + 1e-30))


@kernel
def solve_lower(V, n, end, row, inverse, x):
    """x = (V^T D^-1)^-1 x; of n rows only, what is left of others up to `end`"""
    for k in range(0, n, 4):
        a, b, c, d = k * row, (k + 1) * row, (k + 2) * row, (k + 3) * row
        p = ld(x, k)
        q = ld(x, k + 1) - ld(V, b + k) * p
        r = ld(x, k + 2) - ld(V, c + k) * p - ld(V, c + k + 1) * q
        s = ld(x, k + 3) - ld(V, d + k) * p - ld(V, d + k + 1) * q - ld(V, d + k + 2) * r
        x[k + 1], x[k + 2], x[k + 3] = q, r, s
        e, f, g, h = p * ld(inverse, k), q * ld(inverse, k + 1), r * ld(inverse, k + 2), s * ld(inverse, k + 3)
        for j in range(k + 4, end, 4):
            rest = ld(x, j, Quad) - ld(V, a + j, Quad) * e - ld(V, b + j, Quad) * f
            st(x, j, rest - ld(V, c + j, Quad) * g - ld(V, d + j, Quad) * h)


@kernel
def solve_upper(V, n, end, row, inverse, x):
    """x = V^-1 x; of n rows, by others up to `end`"""
    o = zero(V)
    for k in range(n - 4, -1, -4):
        a, b, c, d = k * row, (k + 1) * row, (k + 2) * row, (k + 3) * row
        none = quad(V, o, o, o, o)
        A, B, C, D = none, none, none, none
        for j in range(k + 4, end, 4):
            X = ld(x, j, Quad)
            A, B = A + ld(V, a + j, Quad) * X, B + ld(V, b + j, Quad) * X
            C, D = C + ld(V, c + j, Quad) * X, D + ld(V, d + j, Quad) * X
        p, q = (ld(x, k) - total(A)) * ld(inverse, k), (ld(x, k + 1) - total(B)) * ld(inverse, k + 1)
        r, s = (ld(x, k + 2) - total(C)) * ld(inverse, k + 2), (ld(x, k + 3) - total(D)) * ld(inverse, k + 3)
        r = r - ld(V, d + k + 2) * s
        q = q - ld(V, d + k + 1) * s - ld(V, c + k + 1) * r
        x[k], x[k + 1] = p - ld(V, d + k) * s - ld(V, c + k) * r - ld(V, b + k) * q, q
        x[k + 2], x[k + 3] = r, s


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


@kernel
def along(x, y, n):
    """x . y, of any number of numbers."""
    end = n // 4 * 4
    found = dot(x, y, end)
    for j in range(end, n):
        found = found + ld(x, j) * ld(y, j)
    return found
