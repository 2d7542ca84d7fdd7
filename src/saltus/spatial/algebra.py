"""Vectors, matrices and spatial quantities as named tuples, with each operator defined once.

Conventions are Pinocchio's: spatial vectors have the linear part first; `SE3` X = (R, p) is the placement of a child
frame in its parent, x_parent = R x_child + p; `act` takes a quantity from the child frame to the parent, `act_inv` back.
"""

from __future__ import annotations

import operator
from typing import NamedTuple

from saltus.kernel import Scalar, defines, kernel


class Vec2(NamedTuple):
    x: Scalar
    y: Scalar


class Vec3(NamedTuple):
    x: Scalar
    y: Scalar
    z: Scalar


class Mat3(NamedTuple):
    xx: Scalar
    xy: Scalar
    xz: Scalar
    yx: Scalar
    yy: Scalar
    yz: Scalar
    zx: Scalar
    zy: Scalar
    zz: Scalar


class Sym3(NamedTuple):
    xx: Scalar
    xy: Scalar
    xz: Scalar
    yy: Scalar
    yz: Scalar
    zz: Scalar


class Quat(NamedTuple):
    x: Scalar
    y: Scalar
    z: Scalar
    w: Scalar


class Motion(NamedTuple):
    lin: Vec3
    ang: Vec3


class Force(NamedTuple):
    lin: Vec3
    ang: Vec3


class SE3(NamedTuple):
    R: Mat3
    p: Vec3


# fmt: off
@defines(operator.add, Vec3, Vec3)
def _(a, b): return Vec3(a.x + b.x, a.y + b.y, a.z + b.z)
@defines(operator.sub, Vec3, Vec3)
def _(a, b): return Vec3(a.x - b.x, a.y - b.y, a.z - b.z)
@defines(operator.neg, Vec3)
def _(a): return Vec3(-a.x, -a.y, -a.z)
@defines(operator.mul, Vec3, None)
def _(a, s): return Vec3(a.x * s, a.y * s, a.z * s)

@defines(operator.add, Mat3, Mat3)
def _(a, b): return Mat3(a.xx + b.xx, a.xy + b.xy, a.xz + b.xz, a.yx + b.yx, a.yy + b.yy, a.yz + b.yz, a.zx + b.zx, a.zy + b.zy, a.zz + b.zz)
@defines(operator.sub, Mat3, Mat3)
def _(a, b): return Mat3(a.xx - b.xx, a.xy - b.xy, a.xz - b.xz, a.yx - b.yx, a.yy - b.yy, a.yz - b.yz, a.zx - b.zx, a.zy - b.zy, a.zz - b.zz)
@defines(operator.mul, Mat3, None)
def _(a, s): return Mat3(a.xx * s, a.xy * s, a.xz * s, a.yx * s, a.yy * s, a.yz * s, a.zx * s, a.zy * s, a.zz * s)
@defines(operator.matmul, Mat3, Vec3)
def _(a, b): return Vec3(a.xx * b.x + a.xy * b.y + a.xz * b.z, a.yx * b.x + a.yy * b.y + a.yz * b.z, a.zx * b.x + a.zy * b.y + a.zz * b.z)
@defines(operator.matmul, Mat3, Mat3)
def _(a, b):
    return Mat3(a.xx * b.xx + a.xy * b.yx + a.xz * b.zx, a.xx * b.xy + a.xy * b.yy + a.xz * b.zy, a.xx * b.xz + a.xy * b.yz + a.xz * b.zz,
                a.yx * b.xx + a.yy * b.yx + a.yz * b.zx, a.yx * b.xy + a.yy * b.yy + a.yz * b.zy, a.yx * b.xz + a.yy * b.yz + a.yz * b.zz,
                a.zx * b.xx + a.zy * b.yx + a.zz * b.zx, a.zx * b.xy + a.zy * b.yy + a.zz * b.zy, a.zx * b.xz + a.zy * b.yz + a.zz * b.zz)

@defines(operator.add, Sym3, Sym3)
def _(a, b): return Sym3(a.xx + b.xx, a.xy + b.xy, a.xz + b.xz, a.yy + b.yy, a.yz + b.yz, a.zz + b.zz)
@defines(operator.sub, Sym3, Sym3)
def _(a, b): return Sym3(a.xx - b.xx, a.xy - b.xy, a.xz - b.xz, a.yy - b.yy, a.yz - b.yz, a.zz - b.zz)
@defines(operator.mul, Sym3, None)
def _(a, s): return Sym3(a.xx * s, a.xy * s, a.xz * s, a.yy * s, a.yz * s, a.zz * s)
@defines(operator.matmul, Sym3, Vec3)
def _(a, b): return Vec3(a.xx * b.x + a.xy * b.y + a.xz * b.z, a.xy * b.x + a.yy * b.y + a.yz * b.z, a.xz * b.x + a.yz * b.y + a.zz * b.z)

@defines(operator.add, Motion, Motion)
def _(a, b): return Motion(a.lin + b.lin, a.ang + b.ang)
@defines(operator.sub, Motion, Motion)
def _(a, b): return Motion(a.lin - b.lin, a.ang - b.ang)
@defines(operator.neg, Motion)
def _(a): return Motion(-a.lin, -a.ang)
@defines(operator.mul, Motion, None)
def _(a, s): return Motion(a.lin * s, a.ang * s)
@defines(operator.add, Force, Force)
def _(a, b): return Force(a.lin + b.lin, a.ang + b.ang)
@defines(operator.sub, Force, Force)
def _(a, b): return Force(a.lin - b.lin, a.ang - b.ang)
@defines(operator.mul, Force, None)
def _(a, s): return Force(a.lin * s, a.ang * s)

@defines(operator.matmul, SE3, SE3)
def _(a, b): return SE3(a.R @ b.R, a.R @ b.p + a.p)
@defines(operator.matmul, SE3, Vec3)
def _(a, x): return a.R @ x + a.p


@kernel
def transpose(a): return Mat3(a.xx, a.yx, a.zx, a.xy, a.yy, a.zy, a.xz, a.yz, a.zz)
@kernel
def turn_back(R, x):
    """R^T x"""
    return Vec3(R.xx * x.x + R.yx * x.y + R.zx * x.z, R.xy * x.x + R.yy * x.y + R.zy * x.z, R.xz * x.x + R.yz * x.y + R.zz * x.z)
@kernel
def cross(a, b): return Vec3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)
@kernel
def dot(a, b): return a.x * b.x + a.y * b.y + a.z * b.z
@kernel
def power(m, f):
    """The power of a force along a motion."""
    return dot(m.lin, f.lin) + dot(m.ang, f.ang)
@kernel
def skew(a):
    """The matrix of the cross product: skew(a) @ b = cross(a, b)."""
    zero = a.x * 0.0
    return Mat3(zero, -a.z, a.y, a.z, zero, -a.x, -a.y, a.x, zero)
@kernel
def inverse(X): return SE3(transpose(X.R), -turn_back(X.R, X.p))
# fmt: on


@kernel
def act(X, m):
    """A motion of the child frame, seen from the parent."""
    ang = X.R @ m.ang
    return Motion(X.R @ m.lin + cross(X.p, ang), ang)


@kernel
def act_inv(X, m):
    return Motion(turn_back(X.R, m.lin - cross(X.p, m.ang)), turn_back(X.R, m.ang))


@kernel
def act_force(X, f):
    """A force on the child frame, seen from the parent."""
    lin = X.R @ f.lin
    return Force(lin, X.R @ f.ang + cross(X.p, lin))


@kernel
def act_force_inv(X, f):
    return Force(turn_back(X.R, f.lin), turn_back(X.R, f.ang - cross(X.p, f.lin)))


@kernel
def cross_motion(v, m):
    """v x m: how fast m changes when it is carried along at velocity v."""
    return Motion(cross(v.ang, m.lin) + cross(v.lin, m.ang), cross(v.ang, m.ang))


@kernel
def cross_force(v, f):
    """v x* f: how fast a force (or momentum) changes when it is carried along at velocity v."""
    return Force(cross(v.ang, f.lin), cross(v.ang, f.ang) + cross(v.lin, f.lin))
