"""The Coriolis matrix: of all that factor what velocities do, the one that goes with the inertia matrix.

    C(q, v) v = b(q, v) - g(q),      dM/dt - 2 C = -(dM/dt - 2 C)^T

    C_kl = s_k^T (I_b ds_l + B_b s_l),   b the outer one of the bodies that k and l move; I_b, B_b of all that it carries

One sweep to the leaves, one back, O(n d) for depth d, as in `crba`: everything along the world's axes, about a point that
stays where the origin of body 1 is now, so that B adds up like inertias. With momentum (p, L) = I v of a body there,

    B = 1/2 (v x* I - I v x + (I v) x*') = [[0, -p x], [0, (dJ/dt - L x) / 2]]      f x*' m = m x* f

| paper | code | what |
|---|---|---|
| s_k, ds_k | `axis`, `rate` | motion along degree of freedom k, and how it changes as its body moves |
| I_i^C | `composite` | inertia of body i and all that it carries |
| B_i^C | `swing` | the same sum of B: p, L and dJ/dt |

Reference: S. Echeandia, P. M. Wensing, Numerical methods to compute the Coriolis matrix and Christoffel symbols for
rigid-body systems (2021), algorithm 1; it is the one that Pinocchio computes.
"""

from __future__ import annotations

import operator
from typing import NamedTuple

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.dynamics.crba import place_world
from saltus.kernel import Layout, defines, kernel, ld, st, zero
from saltus.model.joint_kernels import axis_seen_from, placed_after
from saltus.model.model import Model
from saltus.model.tree import LIGHT, algorithm
from saltus.spatial.algebra import SE3, Force, Mat3, Motion, Sym3, Vec3, cross, cross_motion, dot, power, skew
from saltus.spatial.inertia import Rigid


class Swing(NamedTuple):
    """B of a body, or of several: the momentum p, L, and how the rotational inertia changes."""

    momentum: Force
    turning: Sym3


@defines(operator.add, Swing, Swing)
def _(a, b):
    return Swing(a.momentum + b.momentum, a.turning + b.turning)


@kernel
def swing_of(body, velocity):
    """Of one body that moves at this velocity."""
    v, h, J = velocity.lin, body.h, body.J
    S = skew(velocity.ang) @ Mat3(J.xx, J.xy, J.xz, J.xy, J.yy, J.yz, J.xz, J.yz, J.zz)
    d = 2.0 * dot(v, h)
    turning = Sym3(
        2.0 * (S.xx - v.x * h.x) + d, S.xy + S.yx - v.x * h.y - v.y * h.x, S.xz + S.zx - v.x * h.z - v.z * h.x,
        2.0 * (S.yy - v.y * h.y) + d, S.yz + S.zy - v.y * h.z - v.z * h.y,
        2.0 * (S.zz - v.z * h.z) + d,
    )  # fmt: skip
    return Swing(body @ velocity, turning)


@kernel
def applied(B, m):
    """B m"""
    p, L, w = B.momentum.lin, B.momentum.ang, m.ang
    return Force(cross(w, p), (B.turning @ w - cross(L, w)) * 0.5)


@kernel
def applied_transposed(B, m):
    """B^T m"""
    p, L = B.momentum.lin, B.momentum.ang
    return Force(p * 0.0, cross(p, m.lin) + (B.turning @ m.ang + cross(L, m.ang)) * 0.5)


WORK = Layout(
    nj={"place": SE3, "velocity": Motion, "composite": Rigid, "swing": Swing}, nv={"axis": Motion, "rate": Motion}
)


@algorithm(inputs={"q": "nq", "v": "nv"}, outputs={"C": "nv nv zeroed"}, work=WORK, own_code=LIGHT)
def _coriolis_matrix(tree, q, v, w, C):
    o, nv = zero(q), tree.nv
    w.place[0], w.velocity[0] = place_world(tree, q), Motion(Vec3(o, o, o), Vec3(o, o, o))
    for i in range(1, tree.nj):  # to the leaves: bodies, their velocities, axes and how these change
        X, velocity = placed_after(tree, i, q, w.place[tree.parent[i]]), w.velocity[tree.parent[i]]
        for k in range(tree.iv[i], tree.end[i]):
            axis = axis_seen_from(X, tree.axis[k])
            w.axis[k] = axis
            velocity = velocity + axis * ld(v, k)
        for k in range(tree.iv[i], tree.end[i]):
            w.rate[k] = cross_motion(velocity, w.axis[k])
        body = X @ tree.solid[i]
        w.place[i], w.velocity[i], w.composite[i], w.swing[i] = X, velocity, body, swing_of(body, velocity)

    for i in range(tree.nj - 1, 0, -1):  # to the root: what each body carries, and rows and columns of C
        I, B, parent = w.composite[i], w.swing[i], tree.parent[i]
        for k in range(tree.iv[i], tree.end[i]):
            axis = w.axis[k]
            outer, inner, back = I @ w.rate[k] + applied(B, axis), I @ axis, applied_transposed(B, axis)
            st(C, k * nv + k, power(axis, outer))
            j = tree.above[k]
            while j >= 0:
                st(C, j * nv + k, power(w.axis[j], outer))
                st(C, k * nv + j, power(w.rate[j], inner) + power(w.axis[j], back))
                j = tree.above[j]
        if parent > 0:
            w.composite[parent], w.swing[parent] = w.composite[parent] + I, w.swing[parent] + B


def coriolis_matrix(
    model: Model, q: ArrayLike, v: ArrayLike, *, out: Array | None = None, on_invalid: OnInvalid = "raise"
) -> Array:
    """The Coriolis matrix C (..., nv, nv) at `q` (..., nq) and `v` (..., nv): `C @ v` is what velocities alone ask of the
    joints, `nonlinear_effects` less `gravity`, and dM/dt - 2 C is skew-symmetric.

    >>> import numpy as np, saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3)
    >>> q, v = robot.neutral(), np.ones(robot.nv)
    >>> torques = sl.nonlinear_effects(robot, q, v) - sl.gravity(robot, q)
    >>> bool(np.allclose(sl.coriolis_matrix(robot, q, v) @ v, torques))
    True
    """
    return _coriolis_matrix.call(model, (q, v), out, on_invalid)
