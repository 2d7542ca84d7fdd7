"""How inertias change as bodies move, and what that asks of forces: the elementary operations of analytical derivatives.

With momentum (p, L) = I v of a body, or of several that move apart, all about one fixed point along the world's axes,

    d(I a + v x* I v) = I da + B dv - ...,      B m = v x* I m - I (v x m) + m x* I v = (2 w x p, I' w + w x L),   w = m.ang

where I' is the rate of the rotational inertia. B has no columns for linear motion and adds up over bodies as I does: 12
numbers stand for the 36 of the matrix in the literature (B in Singh, Russell, Wensing 2022, equation 11, twice ours).
"""

from __future__ import annotations

from saltus.kernel import kernel
from saltus.spatial.algebra import Force, Sym3, cross, dot


@kernel
def inertia_rate(body, v):
    """The rate of the rotational inertia about the origin (Sym3), of a body (Rigid) that moves at v."""
    J, h, w = body.J, body.h, v.ang
    along = 2.0 * dot(v.lin, h)
    x, y, z = v.lin.x, v.lin.y, v.lin.z
    return Sym3(
        2.0 * (w.y * J.xz - w.z * J.xy - h.x * x) + along,
        w.y * J.yz - w.z * J.yy + w.z * J.xx - w.x * J.xz - h.x * y - h.y * x,
        w.y * J.zz - w.z * J.yz + w.x * J.xy - w.y * J.xx - h.x * z - h.z * x,
        2.0 * (w.z * J.xy - w.x * J.yz - h.y * y) + along,
        w.z * J.xz - w.x * J.zz + w.x * J.yy - w.y * J.xy - h.y * z - h.z * y,
        2.0 * (w.x * J.yz - w.y * J.xz - h.z * z) + along,
    )


@kernel
def coriolis(momentum, rate, w):
    """B m, by the angular part w of m."""
    return Force(cross(w, momentum.lin) * 2.0, rate @ w + cross(w, momentum.ang))


@kernel
def coriolis_back(momentum, rate, m):
    """The angular part of B^T m; the linear one is zero."""
    return cross(momentum.lin, m.lin) * 2.0 + rate @ m.ang + cross(momentum.ang, m.ang)
