"""Jacobians of `integrate` and `difference`, along the manifold.

    d(q (+) v) / dq = Ad(exp v)^-1,   d(q (+) v) / dv = J_r(v)                    in the tangent at q (+) v
    d(q1 (-) q0) / dq1 = J_r(v)^-1,   d(q1 (-) q0) / dq0 = -J_r(v)^-1 Ad(exp v)^-1,   v = q1 (-) q0

Block diagonal, one block a joint, with J_r the right Jacobian of the joint's group (see spatial/lie.py); blocks of joints
that add are the identity.
"""

from __future__ import annotations

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.kernel import Layout, kernel, ld, lift, sincos, st
from saltus.model.joint_kernels import FREE_FLYER, PLANAR, SPHERICAL
from saltus.model.manifold import difference_joint, on_free_joints
from saltus.model.model import Model
from saltus.model.tree import algorithm
from saltus.spatial.algebra import Mat3, Motion, Vec2, Vec3, skew, transpose
from saltus.spatial.lie import (
    Mat6,
    angular,
    cotangent_term,
    exp_quaternion,
    exp_translation,
    right_jacobian,
    right_jacobian_inverse,
    right_jacobian_inverse_se3,
    right_jacobian_se3,
)
from saltus.spatial.quaternion import rotation


@kernel
def store_block(J, nv, k, l, A):
    """J[k : k + 3, l : l + 3] = A"""
    st(J, k * nv + l, Vec3(A.xx, A.xy, A.xz))
    st(J, (k + 1) * nv + l, Vec3(A.yx, A.yy, A.yz))
    st(J, (k + 2) * nv + l, Vec3(A.zx, A.zy, A.zz))


@kernel
def store_mat6(J, nv, k, M):
    store_block(J, nv, k, k, M.A)
    store_block(J, nv, k, k + 3, M.B)
    store_block(J, nv, k + 3, k, M.C)
    store_block(J, nv, k + 3, k + 3, M.D)


@kernel
def back_se3(m):
    """Ad(exp m)^-1: motions seen from the frame that exp(m) leads to."""
    Rt = transpose(rotation(exp_quaternion(m.ang)))
    return Mat6(Rt, Rt @ skew(exp_translation(m)) * -1.0, Rt * 0.0, Rt)


@kernel
def back_plane(x, y, angle):
    """Ad(exp)^-1 of SE(2): the same, for the components x, y and angle."""
    f = angular(angle * angle)
    s, c = sincos(angle)
    k = f.a * angle
    p = Vec2(f.sinc * x - k * y, k * x + f.sinc * y)
    o = lift(0.0, angle)
    return Mat3(c, s, s * p.x - c * p.y, -s, c, c * p.x + s * p.y, o, o, o + 1.0)


@kernel
def right_jacobian_plane(x, y, angle):
    f = angular(angle * angle)
    k, b, o = f.a * angle, f.b * angle, lift(0.0, angle)
    return Mat3(f.sinc, k, b * x - f.a * y, -k, f.sinc, f.a * x + b * y, o, o, o + 1.0)


@kernel
def right_jacobian_inverse_plane(x, y, angle):
    """[[A, c], [0, 1]]^-1 = [[A^-1, -A^-1 c], [0, 1]]"""
    f = angular(angle * angle)
    b = f.b * angle
    c = Vec2(b * x - f.a * y, f.a * x + b * y)
    k, h, o = 1.0 - angle * angle * cotangent_term(angle * angle), 0.5 * angle, lift(0.0, angle)
    return Mat3(k, -h, h * c.y - k * c.x, h, k, -(h * c.x + k * c.y), o, o, o + 1.0)


@kernel
def scaled6(a, s):
    return Mat6(a.A * s, a.B * s, a.C * s, a.D * s)


@kernel
def product6(a, b):
    """The product of two block upper triangular matrices."""
    return Mat6(a.A @ b.A, a.A @ b.B + a.B @ b.D, a.C, a.D @ b.D)


@algorithm(inputs={"q": "nq", "v": "nv"}, outputs={"dq": "nv nv zeroed", "dv": "nv nv zeroed"})
def _integrate_jacobians(tree, q, v, w, dq, dv):
    nv = tree.nv
    for i in range(1, tree.nj):
        kind, iv = tree.kind[i], tree.iv[i]
        if kind == FREE_FLYER:
            m = ld(v, iv, Motion)
            store_mat6(dq, nv, iv, back_se3(m))
            store_mat6(dv, nv, iv, right_jacobian_se3(m))
        elif kind == SPHERICAL:
            x = ld(v, iv, Vec3)
            store_block(dq, nv, iv, iv, transpose(rotation(exp_quaternion(x))))
            store_block(dv, nv, iv, iv, right_jacobian(x))
        elif kind == PLANAR:
            x = ld(v, iv, Vec3)
            store_block(dq, nv, iv, iv, back_plane(x.x, x.y, x.z))
            store_block(dv, nv, iv, iv, right_jacobian_plane(x.x, x.y, x.z))
        else:
            for k in range(iv, tree.end[i]):
                st(dq, k * nv + k, 1.0)
                st(dv, k * nv + k, 1.0)


@algorithm(
    inputs={"q0": "nq", "q1": "nq"}, outputs={"d0": "nv nv zeroed", "d1": "nv nv zeroed"}, work=Layout(nv={"v": None})
)
def _difference_jacobians(tree, q0, q1, w, d0, d1):
    nv = tree.nv
    for i in range(1, tree.nj):
        kind, iv = tree.kind[i], tree.iv[i]
        difference_joint(tree, i, q0, q1, w.v)
        if kind == FREE_FLYER:
            m = ld(w.v, iv, Motion)
            J = right_jacobian_inverse_se3(m)
            store_mat6(d0, nv, iv, scaled6(product6(J, back_se3(m)), -1.0))
            store_mat6(d1, nv, iv, J)
        elif kind == SPHERICAL:
            x = ld(w.v, iv, Vec3)
            J = right_jacobian_inverse(x)
            store_block(d0, nv, iv, iv, J @ transpose(rotation(exp_quaternion(x))) * -1.0)
            store_block(d1, nv, iv, iv, J)
        elif kind == PLANAR:
            x = ld(w.v, iv, Vec3)
            J = right_jacobian_inverse_plane(x.x, x.y, x.z)
            store_block(d0, nv, iv, iv, J @ back_plane(x.x, x.y, x.z) * -1.0)
            store_block(d1, nv, iv, iv, J)
        else:
            for k in range(iv, tree.end[i]):
                st(d0, k * nv + k, -1.0)
                st(d1, k * nv + k, 1.0)


on_free_joints(_integrate_jacobians)
on_free_joints(_difference_jacobians)


def integrate_jacobians(
    model: Model, q: ArrayLike, v: ArrayLike, *, on_invalid: OnInvalid = "raise"
) -> tuple[Array, Array]:
    """d integrate(q, v) / dq and / dv, both (..., nv, nv), for `q` (..., nq) and `v` (..., nv).

    >>> import numpy as np, saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=2, kinds=["revolute"])
    >>> dq, dv = sl.integrate_jacobians(robot, robot.neutral(), np.ones(2))
    >>> bool(np.array_equal(dq, np.eye(2)) and np.array_equal(dv, np.eye(2)))
    True
    """
    dq, dv = _integrate_jacobians.call(model, (q, v), None, on_invalid)
    return dq, dv


def difference_jacobians(
    model: Model, q0: ArrayLike, q1: ArrayLike, *, on_invalid: OnInvalid = "raise"
) -> tuple[Array, Array]:
    """d difference(q0, q1) / dq0 and / dq1, both (..., nv, nv), for `q0` and `q1` (..., nq).

    >>> import numpy as np, saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=2, kinds=["revolute"])
    >>> d0, d1 = sl.difference_jacobians(robot, np.zeros(2), np.ones(2))
    >>> bool(np.array_equal(d0, -np.eye(2)) and np.array_equal(d1, np.eye(2)))
    True
    """
    d0, d1 = _difference_jacobians.call(model, (q0, q1), None, on_invalid)
    return d0, d1
