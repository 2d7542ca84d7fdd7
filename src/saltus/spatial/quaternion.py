"""Unit quaternions (x, y, z, w) as rotations."""

from __future__ import annotations

import operator

from saltus.kernel import defines, kernel
from saltus.spatial.algebra import Mat3, Quat


@defines(operator.mul, Quat, Quat)
def _(a, b):
    return Quat(
        a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
        a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
        a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w,
        a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z,
    )


@kernel
def conjugate(a):
    return Quat(-a.x, -a.y, -a.z, a.w)


@kernel
def rotation(a):
    """The rotation matrix of a unit quaternion."""
    x, y, z = 2.0 * a.x, 2.0 * a.y, 2.0 * a.z
    xx, xy, xz, yy, yz, zz = a.x * x, a.x * y, a.x * z, a.y * y, a.y * z, a.z * z
    wx, wy, wz = a.w * x, a.w * y, a.w * z
    return Mat3(1.0 - (yy + zz), xy - wz, xz + wy, xy + wz, 1.0 - (xx + zz), yz - wx, xz - wy, yz + wx, 1.0 - (xx + yy))
