"""The joint-space inertia matrix by the composite rigid body algorithm.

    M_kl = s_k^T I_b s_l,   b the outer one of the bodies that k and l move, I_b the inertia of all that it carries

One sweep to the leaves, one back, O(n d) for depth d. Everything is expressed along the world's axes, about the origin of
the first body: composite inertias then add up without a transformation, and an entry of M is one scalar product.

| paper | code | what | frame |
|---|---|---|---|
| X_0i | `place` | placement of body i | world axes, origin of body 1 |
| s_k | `axis` | motion along degree of freedom k | same |
| I_i^c | `composite` | inertia of body i and all that it carries | same |

Reference: R. Featherstone, Rigid Body Dynamics Algorithms (2008), table 6.2; the world-frame form is Pinocchio's.
"""

from __future__ import annotations

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.dynamics.kinematics import at_origin
from saltus.kernel import Layout, kernel, st_symmetric, zero
from saltus.model.joint_kernels import axis_seen_from, joint_placement, placed_after
from saltus.model.model import Model
from saltus.model.tree import LIGHT, algorithm
from saltus.spatial.algebra import SE3, Motion, Sym3, Vec2, Vec3, power
from saltus.spatial.inertia import Rigid

COMPOSITE: dict[str, dict[str, type | None]] = {"nj": {"place": SE3, "composite": Rigid}, "nv": {"axis": Motion}}


@kernel
def place_world(tree, q):
    """Along the world's axes, about the origin of body 1, which does not depend on its turn."""
    X = at_origin(q)
    if tree.nj > 1:
        X = SE3(X.R, -joint_placement(tree, 1, q, Vec2(X.R.xx, X.R.xy)).p)
    return X


@kernel
def place_bodies(tree, q, w):
    """To the leaves: fill `axis`, and `composite` with each body's own inertia; returns the sum over all bodies."""
    o, X = zero(q), place_world(tree, q)
    w.place[0] = X
    mass, moment = o, Vec3(o, o, o)
    for i in range(1, tree.nj):
        if tree.parent[i] != i - 1:  # otherwise the parent is the body just before, still at hand
            X = w.place[tree.parent[i]]
        X = placed_after(tree, i, q, X)
        body = X @ tree.solid[i]
        mass, moment = mass + body.m, moment + body.h
        w.composite[i] = body
        if tree.fork[i]:
            w.place[i] = X
        for k in range(tree.iv[i], tree.end[i]):
            w.axis[k] = axis_seen_from(X, tree.axis[k])
    return mass, moment


@kernel
def collect(tree, i, below, w):
    """On the way to the root: the inertia of body i and all that it carries; `below` is that of body i + 1."""
    composite = w.composite[i]
    if not tree.leaf[i] and tree.parent[i + 1] == i:
        composite = composite + below
    parent = tree.parent[i]
    if parent != i - 1:
        w.composite[parent] = w.composite[parent] + composite
    return composite


@kernel
def inertia_matrix(tree, q, w, M):
    """All entries of M that are not zero by the structure of the tree."""
    place_bodies(tree, q, w)
    join_bodies(tree, w, M)


@kernel
def join_bodies(tree, w, M):
    """To the root, once bodies are placed: the entries of M."""
    nv, o = tree.nv, zero(M)
    composite = Rigid(o, Vec3(o, o, o), Sym3(o, o, o, o, o, o))
    w.composite[0] = composite
    for i in range(tree.nj - 1, 0, -1):
        composite = collect(tree, i, composite, w)
        for k in range(tree.iv[i], tree.end[i]):
            force = composite @ w.axis[k]
            st_symmetric(M, nv, k, k, power(w.axis[k], force) + tree.armature[k])
            j = tree.above[k]
            while j >= 0:
                st_symmetric(M, nv, k, j, power(w.axis[j], force))
                j = tree.above[j]


@algorithm(inputs={"q": "nq"}, outputs={"M": "nv nv symmetric zeroed"}, work=Layout(**COMPOSITE), own_code=LIGHT)
def _crba(tree, q, w, M):
    inertia_matrix(tree, q, w, M)


def crba(model: Model, q: ArrayLike, *, out: Array | None = None, on_invalid: OnInvalid = "raise") -> Array:
    """The joint-space inertia matrix (..., nv, nv) at `q` (..., nq), both triangles filled, armature included.

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=4, kinds=["revolute"])
    >>> M = sl.crba(arm, arm.neutral())
    >>> M.shape, bool(np.linalg.eigvalsh(M).min() > 0)
    ((4, 4), True)
    """
    return _crba.call(model, (q,), out, on_invalid)
