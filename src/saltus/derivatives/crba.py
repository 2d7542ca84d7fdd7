"""Analytical derivatives of the joint-space inertia matrix.

    M_lk = S_l . I_b S_k,   l on body a, k on body b, a at or above b, I_b the inertia of all that b carries

A degree of freedom j displaces all that it carries as one rigid body. With c the body of j, that changes

    dM_lk/dq_j = S_l . (S_j x* I_b S_k)                      a above c, c at or above b: the momentum turns, S_l does not
    dM_lk/dq_j = S_l . (S_j x* I_c - I_c S_j x) S_k          b above c: the inertia of what c carries moves
    dM_lk/dq_j = 0                                           otherwise: all three turn together, or none does

Axes and composite inertias come from the sweeps of crba.py; every chain of three bodies is then visited once, O(n d^2) for
depth d, which is the number of entries. The matrix of the second line is the rate of I_c at velocity S_j: an inertia
without mass, so that `Rigid` holds it.

| paper | code | what | frame |
|---|---|---|---|
| S_k | `axis` | motion along degree of freedom k | world axes, origin of body 1 |
| I_b | `composite` | inertia of body b and all that it carries | same |

Reference: M. Kudruss, P. Manns, C. Kirches, Efficient derivative evaluation for rigid-body dynamics based on recursive
algorithms subject to kinematic and loop constraints (2019), algorithm 3, there between neighbouring bodies' frames and along
given directions.
"""

from __future__ import annotations

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.derivatives.modes import jacobian, register
from saltus.derivatives.rate import inertia_rate
from saltus.dynamics.crba import COMPOSITE, collect, crba, place_bodies
from saltus.kernel import Layout, kernel, st, zero
from saltus.model.model import Model
from saltus.model.tree import algorithm
from saltus.spatial.algebra import Sym3, Vec3, cross, cross_force, power
from saltus.spatial.inertia import Rigid


@kernel
def moved(composite, axis):
    """The rate of an inertia that moves along an axis."""
    m, h = composite.m, composite.h
    return Rigid(m * 0.0, axis.lin * m + cross(axis.ang, h), inertia_rate(composite, axis))


@kernel
def store_both(dM, nv, l, k, j, value):
    """Entries (l, k) and (k, l) of dM/dq_j."""
    st(dM, (l * nv + k) * nv + j, value)
    st(dM, (k * nv + l) * nv + j, value)


@algorithm(inputs={"q": "nq"}, outputs={"dM": "nv nv nv zeroed"}, work=Layout(**COMPOSITE))
def _crba_derivatives(tree, q, w, dM):
    place_bodies(tree, q, w)
    nv, o = tree.nv, zero(q)
    composite = Rigid(o, Vec3(o, o, o), Sym3(o, o, o, o, o, o))
    w.composite[0] = composite
    for i in range(tree.nj - 1, 0, -1):
        composite = collect(tree, i, composite, w)
        for k in range(tree.iv[i], tree.end[i]):  # column k, as all degrees of freedom that carry body i turn it
            momentum = composite @ w.axis[k]
            j = tree.end[i] - 1
            while j >= 0:
                force = cross_force(w.axis[j], momentum)
                l = tree.above[tree.iv[tree.body[j]]]
                while l >= 0:
                    store_both(dM, nv, l, k, j, power(w.axis[l], force))
                    l = tree.above[l]
                j = tree.above[j]
        for j in range(tree.iv[i], tree.end[i]):  # direction j, for all pairs of degrees of freedom above body i
            rate = moved(composite, w.axis[j])
            k = tree.above[tree.iv[i]]
            while k >= 0:
                momentum = rate @ w.axis[k]
                l = k
                while l >= 0:
                    store_both(dM, nv, l, k, j, power(w.axis[l], momentum))
                    l = tree.above[l]
                k = tree.above[k]


def crba_derivatives(model: Model, q: ArrayLike, mode: str = "analytical", *, on_invalid: OnInvalid = "raise") -> Array:
    """How the inertia matrix changes with `q` (..., nq): dM_dq (..., nv, nv, nv), its last axis the direction in the tangent
    of `integrate`.

    mode: "analytical", "ad", "fd" or "fdc" (see `jacobian`).

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> q, dq, h = arm.neutral(), np.array([0.3, -0.2, 0.5]), 1e-6
    >>> slope = (sl.crba(arm, q + h * dq) - sl.crba(arm, q - h * dq)) / (2 * h)
    >>> bool(np.allclose(sl.crba_derivatives(arm, q) @ dq, slope))
    True
    """
    dM: Array = (
        _crba_derivatives.call(model, (q,), None, on_invalid)
        if mode == "analytical"
        else jacobian(crba, model, (q,), mode, on_invalid=on_invalid)[0]
    )
    return dM


register(crba, lambda model, q: (crba_derivatives(model, q),))
