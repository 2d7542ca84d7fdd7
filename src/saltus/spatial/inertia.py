"""Inertia in its forms, each the cheapest for what it is used for.

| form | numbers | use |
|---|---|---|
| mass, centre of mass, rotational inertia there | 10 | what files and users give (`Joint.mass`, `.com`, `.inertia`) |
| `Solid`: mass, centre of mass c, rotational inertia there as k 1 + a a^T - b b^T | 11 | kernels: turns cheaply |
| `Rigid`: mass m, first moment h = m c, rotational inertia about the origin | 10 | kernels: adds up over bodies |
| `Sym6`: symmetric 6x6 | 21 | articulated bodies: what is left once joints move freely |

    I = [[m 1, -h x], [h x, J]]  (Rigid)        I = [[A, B], [B^T, C]]  (Sym6)        linear part first
"""

from __future__ import annotations

import operator
from typing import NamedTuple

from saltus.kernel import Scalar, defines, kernel, lift
from saltus.spatial.algebra import SE3, Force, Mat3, Motion, Sym3, Vec3, cross, dot, turn_back


class Solid(NamedTuple):
    m: Scalar
    c: Vec3
    k: Scalar
    a: Vec3
    b: Vec3


class Rigid(NamedTuple):
    m: Scalar
    h: Vec3
    J: Sym3


class Sym6(NamedTuple):
    A: Sym3
    B: Mat3
    C: Sym3


# fmt: off
@defines(operator.add, Rigid, Rigid)
def _(a, b): return Rigid(a.m + b.m, a.h + b.h, a.J + b.J)
@defines(operator.add, Sym6, Sym6)
def _(a, b): return Sym6(a.A + b.A, a.B + b.B, a.C + b.C)
@defines(operator.matmul, Rigid, Motion)
def _(I, v): return Force(v.lin * I.m - cross(I.h, v.ang), I.J @ v.ang + cross(I.h, v.lin))
@defines(operator.matmul, Sym6, Motion)
def _(I, v): return Force(I.A @ v.lin + I.B @ v.ang, turn_back(I.B, v.lin) + I.C @ v.ang)
# fmt: on


@kernel
def force_of(I, v, a):
    """I a + v x* I v: what moves a rigid body, by the acceleration u of its origin as one sees it from outside.

    Of v x* I v the moment is w x J w + h x (w x v), by Jacobi's identity. So v x m v, which is nothing, is not computed: far
    from what it turns about, the moment of a small body would be lost in its rounding.
    """
    w, h = v.ang, I.h
    u = a.lin + cross(w, v.lin)
    return Force(u * I.m + cross(a.ang, h) + cross(w, cross(w, h)), I.J @ a.ang + cross(w, I.J @ w) + cross(h, u))


@kernel
def force_along(I, v, dv, da):
    """The slope of `force_of` along changes of velocity and acceleration."""
    w, dw, h = v.ang, dv.ang, I.h
    du = da.lin + cross(dw, v.lin) + cross(w, dv.lin)
    return Force(
        du * I.m + cross(da.ang, h) + cross(dw, cross(w, h)) + cross(w, cross(dw, h)),
        I.J @ da.ang + cross(dw, I.J @ w) + cross(w, I.J @ dw) + cross(h, du),
    )


@kernel
def rotate_sym(R, S):
    """R S R^T"""
    a = S @ Vec3(R.xx, R.xy, R.xz)
    b = S @ Vec3(R.yx, R.yy, R.yz)
    c = S @ Vec3(R.zx, R.zy, R.zz)
    x, y, z = Vec3(R.xx, R.xy, R.xz), Vec3(R.yx, R.yy, R.yz), Vec3(R.zx, R.zy, R.zz)
    return Sym3(dot(x, a), dot(y, a), dot(z, a), dot(y, b), dot(z, b), dot(z, c))


@kernel
def act_solid(X, I):
    """The inertia of a body seen from the parent of its frame, about the parent's origin.

    The middle one of three principal inertias, k, leaves two directions a, b to turn: 30 products instead of R J R^T's 45.
    """
    a, b, c = X.R @ I.a, X.R @ I.b, X.R @ I.c + X.p
    h = c * I.m
    k = dot(h, c) + I.k
    return Rigid(
        I.m, h,
        Sym3(
            k + a.x * a.x - b.x * b.x - h.x * c.x, a.x * a.y - b.x * b.y - h.x * c.y, a.x * a.z - b.x * b.z - h.x * c.z,
            k + a.y * a.y - b.y * b.y - h.y * c.y, a.y * a.z - b.y * b.z - h.y * c.z,
            k + a.z * a.z - b.z * b.z - h.z * c.z,
        ),
    )  # fmt: skip


@kernel
def act_rigid(X, I):
    """The same of an inertia about the origin of its own frame."""
    h, p, m = X.R @ I.h, X.p, I.m
    H = p * m + h  # the first moment about the parent's origin
    k = dot(p, h) + dot(p, H)
    J = rotate_sym(X.R, I.J)
    return Rigid(
        m, H,
        Sym3(
            J.xx + k - h.x * p.x - p.x * H.x, J.xy - h.x * p.y - p.x * H.y, J.xz - h.x * p.z - p.x * H.z,
            J.yy + k - h.y * p.y - p.y * H.y, J.yz - h.y * p.z - p.y * H.z,
            J.zz + k - h.z * p.z - p.z * H.z,
        ),
    )  # fmt: skip


# fmt: off
@defines(operator.matmul, SE3, Solid)
def _(X, I): return act_solid(X, I)
@defines(operator.matmul, SE3, Rigid)
def _(X, I): return act_rigid(X, I)
# fmt: on


@kernel
def as_sym6(I, like):
    """A rigid inertia as a symmetric 6x6, in the number type of `like`."""
    zero, h = lift(0.0, like), I.h
    x, y, z, m = lift(h.x, like), lift(h.y, like), lift(h.z, like), lift(I.m, like)
    J = Sym3(
        lift(I.J.xx, like),
        lift(I.J.xy, like),
        lift(I.J.xz, like),
        lift(I.J.yy, like),
        lift(I.J.yz, like),
        lift(I.J.zz, like),
    )
    return Sym6(Sym3(m, zero, zero, m, zero, m), Mat3(zero, z, -y, -z, zero, x, y, -x, zero), J)


@kernel
def add_rigid(S, I):
    """Sym6 + Rigid"""
    A, B, C, h = S.A, S.B, S.C, I.h
    return Sym6(
        Sym3(A.xx + I.m, A.xy, A.xz, A.yy + I.m, A.yz, A.zz + I.m),
        Mat3(B.xx, B.xy + h.z, B.xz - h.y, B.yx - h.z, B.yy, B.yz + h.x, B.zx + h.y, B.zy - h.x, B.zz),
        C + I.J,
    )


@kernel
def act_sym6(X, I):
    """A symmetric inertia of the child frame, seen from the parent: X^* I X^-1."""
    A, C, B, p = rotate_sym(X.R, I.A), rotate_sym(X.R, I.C), (X.R @ I.B), X.p
    x, y, z = Vec3(X.R.xx, X.R.xy, X.R.xz), Vec3(X.R.yx, X.R.yy, X.R.yz), Vec3(X.R.zx, X.R.zy, X.R.zz)
    bx, by, bz = Vec3(B.xx, B.xy, B.xz), Vec3(B.yx, B.yy, B.yz), Vec3(B.zx, B.zy, B.zz)
    r0, r1, r2 = (
        Vec3(dot(bx, x), dot(bx, y), dot(bx, z)),
        Vec3(dot(by, x), dot(by, y), dot(by, z)),
        Vec3(dot(bz, x), dot(bz, y), dot(bz, z)),
    )
    s0 = r0 - cross(Vec3(A.xx, A.xy, A.xz), p)
    s1 = r1 - cross(Vec3(A.xy, A.yy, A.yz), p)
    s2 = r2 - cross(Vec3(A.xz, A.yz, A.zz), p)
    b0, b1, b2 = cross(Vec3(r0.x, r1.x, r2.x), p), cross(Vec3(r0.y, r1.y, r2.y), p), cross(Vec3(r0.z, r1.z, r2.z), p)
    c0, c1, c2 = cross(p, Vec3(s0.x, s1.x, s2.x)), cross(p, Vec3(s0.y, s1.y, s2.y)), cross(p, Vec3(s0.z, s1.z, s2.z))
    return Sym6(
        A,
        Mat3(s0.x, s0.y, s0.z, s1.x, s1.y, s1.z, s2.x, s2.y, s2.z),
        Sym3(C.xx - b0.x + c0.x, C.xy - b0.y + c1.x, C.xz - b0.z + c2.x,
             C.yy - b1.y + c1.y, C.yz - b1.z + c2.y, C.zz - b2.z + c2.z),
    )  # fmt: skip


@kernel
def without(I, u, k):
    """I - k u^T, for k parallel to u: what is left of I once it may move freely along one axis."""
    A, B, C = I.A, I.B, I.C
    a, b, x, y = u.lin, u.ang, k.lin, k.ang
    return Sym6(
        Sym3(A.xx - x.x * a.x, A.xy - x.x * a.y, A.xz - x.x * a.z, A.yy - x.y * a.y, A.yz - x.y * a.z, A.zz - x.z * a.z),
        Mat3(B.xx - x.x * b.x, B.xy - x.x * b.y, B.xz - x.x * b.z, B.yx - x.y * b.x, B.yy - x.y * b.y, B.yz - x.y * b.z,
             B.zx - x.z * b.x, B.zy - x.z * b.y, B.zz - x.z * b.z),
        Sym3(C.xx - y.x * b.x, C.xy - y.x * b.y, C.xz - y.x * b.z, C.yy - y.y * b.y, C.yz - y.y * b.z, C.zz - y.z * b.z),
    )  # fmt: skip


@kernel
def without_axis(I, axis):
    """I with nothing along an axis (0 to 5, linear first), which is known."""
    A, B, C = I.A, I.B, I.C
    return Sym6(
        Sym3(but(A.xx, axis, 0, 0), but(A.xy, axis, 0, 1), but(A.xz, axis, 0, 2),
             but(A.yy, axis, 1, 1), but(A.yz, axis, 1, 2), but(A.zz, axis, 2, 2)),
        Mat3(but(B.xx, axis, 0, 3), but(B.xy, axis, 0, 4), but(B.xz, axis, 0, 5),
             but(B.yx, axis, 1, 3), but(B.yy, axis, 1, 4), but(B.yz, axis, 1, 5),
             but(B.zx, axis, 2, 3), but(B.zy, axis, 2, 4), but(B.zz, axis, 2, 5)),
        Sym3(but(C.xx, axis, 3, 3), but(C.xy, axis, 3, 4), but(C.xz, axis, 3, 5),
             but(C.yy, axis, 4, 4), but(C.yz, axis, 4, 5), but(C.zz, axis, 5, 5)),
    )  # fmt: skip


@kernel
def but(x, axis, row, column):
    """0 in the row and column of an axis, elsewhere x."""
    if axis == row or axis == column:
        return 0.0
    return x


@kernel
def scaled(I, s):
    """A symmetric inertia times a number."""
    return Sym6(I.A * s, I.B * s, I.C * s)


@kernel
def column(I, axis):
    """Column `axis` (0 to 5, linear first) of a symmetric inertia."""
    A, B, C = I.A, I.B, I.C
    if axis == 5:
        return Force(Vec3(B.xz, B.yz, B.zz), Vec3(C.xz, C.yz, C.zz))
    if axis == 4:
        return Force(Vec3(B.xy, B.yy, B.zy), Vec3(C.xy, C.yy, C.yz))
    if axis == 3:
        return Force(Vec3(B.xx, B.yx, B.zx), Vec3(C.xx, C.xy, C.xz))
    if axis == 2:
        return Force(Vec3(A.xz, A.yz, A.zz), Vec3(B.zx, B.zy, B.zz))
    if axis == 1:
        return Force(Vec3(A.xy, A.yy, A.yz), Vec3(B.yx, B.yy, B.yz))
    return Force(Vec3(A.xx, A.xy, A.xz), Vec3(B.xx, B.xy, B.xz))
