"""The sparse factorisation of the joint-space inertia matrix, and products and solves with its factors.

    M = U D U^T,   U unit upper triangular with U_ij = 0 unless i is above j in the tree, D diagonal

An entry of U is not zero only where M's is: the factorisation creates no fill-in. O(n d^2) to factor and O(n d) a
product, for depth d.

Reference: R. Featherstone, Rigid Body Dynamics Algorithms (2008), table 6.3 (there M = L^T D L, L = U^T).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.dynamics.crba import COMPOSITE, crba, inertia_matrix
from saltus.kernel import Layout, Quad, four, kernel, ld, lift, quad, st, st_symmetric, zero
from saltus.model.model import Model
from saltus.model.tree import algorithm

RANK = 1e-12
"""Pivots of joints without inertia, by the largest entry of M's diagonal: below, they are rounding."""


@kernel
def factor(above, n, U, D):
    """In place: U holds a matrix (n, n) of the sparsity of the tree that `above` gives, its upper triangle is overwritten; D
    receives the pivots.

    The way to the root is long to walk: on each, two pivots k and m, if one follows the other, are taken out of two columns.
    """
    k = n - 1
    while k >= 0:
        m, up = k, above[k]
        pivot = ld(U, k * n + k)
        inverse = 1.0 / pivot
        last = inverse * 0.0
        if up == k - 1 and up >= 0:
            m, up, ratio = up, above[up], ld(U, up * n + k) * inverse
            second, j = ld(U, m * n + m) - ratio * ld(U, m * n + k), up
            while j >= 0:
                st(U, j * n + m, ld(U, j * n + m) - ratio * ld(U, j * n + k))
                j = above[j]
            st(U, m * n + k, ratio)
            st(U, m * n + m, 1.0)
            st(D, m, second)
            last = 1.0 / second
        st(D, k, pivot)
        st(U, k * n + k, 1.0)
        i = up
        while i >= 0:
            h, x, y = above[i], ld(U, i * n + k), ld(U, i * n + m)
            a, b, up = x * inverse, y * last, h
            st(U, i * n + i, ld(U, i * n + i) - a * x - b * y)
            if h >= 0:
                c, d, j = ld(U, h * n + k) * inverse, ld(U, h * n + m) * last, h
                while j >= 0:
                    x, y = ld(U, j * n + k), ld(U, j * n + m)
                    st(U, j * n + i, ld(U, j * n + i) - a * x - b * y)
                    st(U, j * n + h, ld(U, j * n + h) - c * x - d * y)
                    j = above[j]
                st(U, h * n + m, d)
                st(U, h * n + k, c)
                up = above[h]
            st(U, i * n + m, b)
            st(U, i * n + k, a)
            i = up
        k = m - 1


@kernel
def multiply_upper(above, n, U, x):
    """x = U x"""
    for k in range(n):
        i = above[k]
        while i >= 0:
            st(x, i, ld(x, i) + ld(U, i * n + k) * ld(x, k))
            i = above[i]


@kernel
def multiply_lower(above, n, U, x):
    """x = U^T x"""
    for k in range(n - 1, -1, -1):
        i, total = above[k], ld(x, k)
        while i >= 0:
            total = total + ld(U, i * n + k) * ld(x, i)
            i = above[i]
        st(x, k, total)


@kernel
def solve_upper(above, n, U, x):
    """x = U^-1 x, numbers or quads."""
    for k in range(n - 1, -1, -1):
        entry, i = x[k], above[k]
        while i >= 0:
            x[i] = x[i] - entry * ld(U, i * n + k)
            i = above[i]


@kernel
def solve_lower(above, n, U, x):
    """x = U^-T x, numbers or quads."""
    for k in range(n):
        x[k] = solved_row(above, n, U, x, k)


@kernel
def solved_row(above, n, U, x, k):
    """Number k of U^-T x, if x holds it up to there."""
    total, last = x[k], above[k]
    if last >= 0:
        i = above[last]
        while i >= 0:
            total = total - x[i] * ld(U, i * n + k)
            i = above[i]
        total = total - x[last] * ld(U, last * n + k)  # at the end, for it was found just now
    return total


@kernel
def copy(source, target, count):
    for k in range(count):
        st(target, k, ld(source, k))


@algorithm(inputs={"M": "nv nv"}, outputs={"U": "nv nv zeroed", "D": "nv"})
def _ltl(tree, M, w, U, D):
    for k in range(tree.nv):
        i = k
        while i >= 0:
            st(U, i * tree.nv + k, ld(M, i * tree.nv + k))
            i = tree.above[i]
    factor(tree.above, tree.nv, U, D)


@algorithm(inputs={"U": "nv nv", "x": "nv"}, outputs={"y": "nv"})
def _ltl_multiply_upper(tree, U, x, w, y):
    copy(x, y, tree.nv)
    multiply_upper(tree.above, tree.nv, U, y)


@algorithm(inputs={"U": "nv nv", "x": "nv"}, outputs={"y": "nv"})
def _ltl_multiply_lower(tree, U, x, w, y):
    copy(x, y, tree.nv)
    multiply_lower(tree.above, tree.nv, U, y)


@algorithm(inputs={"U": "nv nv", "x": "nv"}, outputs={"y": "nv"})
def _ltl_solve_upper(tree, U, x, w, y):
    copy(x, y, tree.nv)
    solve_upper(tree.above, tree.nv, U, y)


@algorithm(inputs={"U": "nv nv", "x": "nv"}, outputs={"y": "nv"})
def _ltl_solve_lower(tree, U, x, w, y):
    copy(x, y, tree.nv)
    solve_lower(tree.above, tree.nv, U, y)


@kernel
def solve(above, n, U, D, x):
    """x = M^-1 x"""
    solve_upper(above, n, U, x)
    for k in range(n):
        st(x, k, ld(x, k) / ld(D, k))
    solve_lower(above, n, U, x)


@algorithm(inputs={"U": "nv nv", "D": "nv", "x": "nv"}, outputs={"y": "nv"})
def _ltl_solve(tree, U, D, x, w, y):
    copy(x, y, tree.nv)
    solve(tree.above, tree.nv, U, D, y)


@kernel
def invert(above, n, U, D, panel, inverse):
    """The inverse, both triangles, of the matrix with factors U and D; `panel` holds n quads."""
    o = zero(inverse)
    none, one = quad(inverse, o, o, o, o), lift(1.0, o)
    for j in range(0, n, 4):  # four columns at a time, down to the diagonal
        for k in range(min(j + 4, n)):
            panel[k] = none
        second, third, last = min(j + 1, n - 1), min(j + 2, n - 1), min(j + 3, n - 1)
        panel[j] = quad(inverse, one, o, o, o)
        panel[second] = panel[second] + quad(inverse, o, one, o, o)
        panel[third] = panel[third] + quad(inverse, o, o, one, o)
        panel[last] = panel[last] + quad(inverse, o, o, o, one)
        chain = above[second] == j and above[third] == second and above[last] == third
        k = last
        while k >= 0:  # D^-1 U^-1; zero after the last column, and beside a chain of columns
            entry, i = panel[k], above[k]
            while i >= 0:
                panel[i] = panel[i] - entry * ld(U, i * n + k)
                i = above[i]
            panel[k] = entry * (1.0 / ld(D, k))
            k = above[k] if chain else k - 1
        for k in range(last + 1):
            row = solved_row(above, n, U, panel, k)
            panel[k] = row
            a, b, c, d = four(row)
            st_symmetric(inverse, n, max(j, k), min(j, k), a)
            st_symmetric(inverse, n, max(second, k), min(second, k), b)
            st_symmetric(inverse, n, max(third, k), min(third, k), c)
            st_symmetric(inverse, n, last, k, d)


@algorithm(
    inputs={"q": "nq"},
    outputs={"inverse": "nv nv symmetric"},
    work=Layout(nj=COMPOSITE["nj"], nv=COMPOSITE["nv"] | {"pivot": None, "panel": Quad}, nvv={"factor": None}),
    inverts_inertia=True,
)
def _minverse(tree, q, w, inverse):
    inertia_matrix(tree, q, w, w.factor)
    factor(tree.above, tree.nv, w.factor, w.pivot)
    invert(tree.above, tree.nv, w.factor, w.pivot, w.panel, inverse)


_minverse.when_coupled = lambda model, q: np.linalg.inv(crba(model, q))


@dataclass(eq=False)  # not frozen: that takes longer than to factor a small robot's matrix
class LTL:
    """M = U D U^T: `U` (..., nv, nv) and `D` (..., nv), with products and solves for x (..., nv)."""

    model: Model
    U: Array
    D: Array

    def upper(self, x: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Array:
        """U x"""
        return _ltl_multiply_upper.call(self.model, (self.U, x), None, on_invalid)

    def lower(self, x: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Array:
        """U^T x"""
        return _ltl_multiply_lower.call(self.model, (self.U, x), None, on_invalid)

    def solve_upper(self, x: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Array:
        """U^-1 x"""
        return _ltl_solve_upper.call(self.model, (self.U, x), None, on_invalid)

    def solve_lower(self, x: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Array:
        """U^-T x"""
        return _ltl_solve_lower.call(self.model, (self.U, x), None, on_invalid)

    def solve(self, x: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Array:
        """M^-1 x"""
        return _ltl_solve.call(self.model, (self.U, self.D, x), None, on_invalid)


def ltl(model: Model, M: ArrayLike, *, on_invalid: OnInvalid = "raise") -> LTL:
    """Factor a symmetric positive definite M (..., nv, nv) that has the sparsity of the model's inertia matrix.

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=4, kinds=["revolute"])
    >>> M, x = sl.crba(arm, arm.neutral()), np.arange(4.0)
    >>> bool(np.allclose(M @ sl.ltl(arm, M).solve(x), x))
    True
    """
    U, D = _ltl.call(model, (M,), None, on_invalid)
    if model.weightless and isinstance(D, np.ndarray):  # M need not be the inertia matrix: look at what came out
        pivots = D[..., model.weightless]
        if (pivots <= RANK * np.abs(np.diagonal(M, axis1=-2, axis2=-1)).max(-1, keepdims=True)).any():
            model.refuse_weightless("ltl")
    return LTL(model, U, D)


def minverse(model: Model, q: ArrayLike, *, out: Array | None = None, on_invalid: OnInvalid = "raise") -> Array:
    """The inverse (..., nv, nv) of the joint-space inertia matrix at `q` (..., nq).

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=4, kinds=["revolute"])
    >>> q = arm.neutral()
    >>> bool(np.allclose(sl.minverse(arm, q) @ sl.crba(arm, q), np.eye(4)))
    True
    """
    return _minverse.call(model, (q,), out, on_invalid)
