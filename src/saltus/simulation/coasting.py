"""Joints that turn while they travel, over one step: what nothing pushes goes straight on.

    u = v + h (a + w x v),      p+ = p + h R u,      R+ = R exp(h w),      v+ = exp(-h w) u

The linear velocity of a free flyer is told along axes that turn with the body. Within a step, u is told along those at its
start: spinning bodies then keep their momentum to rounding, wheels and balls roll along straight lines. Explicit steps of
v along a screw let a body that spins at w gain h w^2 / 2 of its speed each second, and push it off its way.
"""

from __future__ import annotations

from saltus.kernel import kernel, ld, sincos, st
from saltus.model.joint_kernels import FREE_FLYER, PLANAR
from saltus.simulation.contact_system import set_three, three
from saltus.spatial.algebra import Motion, Vec2, Vec3, cross, turn_back
from saltus.spatial.lie import exp_quaternion, left_jacobian_inverse, log_plane
from saltus.spatial.quaternion import rotation


@kernel
def coast(tree, v, h, speed):
    """Adds h w x v."""
    for i in range(1, tree.nj):
        kind, iv = tree.kind[i], tree.iv[i]
        if kind == FREE_FLYER:
            m = ld(v, iv, Motion)
            set_three(speed, iv, three(speed, iv) + cross(m.ang, m.lin) * h)
        elif kind == PLANAR:
            turn = h * ld(v, iv + 2)
            speed[iv] = speed[iv] - turn * ld(v, iv + 1)
            speed[iv + 1] = speed[iv + 1] + turn * ld(v, iv)


@kernel
def find_way(tree, i, speed, h, way):
    """`way` with q+ = q (+) way, of joint i, that goes at `speed`."""
    kind, iv = tree.kind[i], tree.iv[i]
    if kind == FREE_FLYER:
        turn = three(speed, iv + 3) * h
        st(way, iv, Motion(left_jacobian_inverse(turn) @ (three(speed, iv) * h), turn))
    elif kind == PLANAR:
        s, c = sincos(speed[iv + 2] * h)
        st(way, iv, log_plane(Vec2(speed[iv] * h, speed[iv + 1] * h), Vec2(c, s)))
    else:
        for k in range(iv, tree.end[i]):
            st(way, k, speed[k] * h)


@kernel
def turn_along(tree, i, speed, mean, h, v):
    """v+ of joint i, at u in `speed`, where the way there was gone at `mean`."""
    kind, iv = tree.kind[i], tree.iv[i]
    if kind == FREE_FLYER:
        turn = rotation(exp_quaternion(three(mean, iv + 3) * h))
        st(v, iv, Motion(turn_back(turn, three(speed, iv)), turn_back(turn, three(speed, iv + 3))))
    elif kind == PLANAR:
        x, y, w = speed[iv], speed[iv + 1], speed[iv + 2]
        s, c = sincos(mean[iv + 2] * h)
        st(v, iv, Vec3(c * x + s * y, c * y - s * x, w))
    else:
        for k in range(iv, tree.end[i]):
            st(v, k, speed[k])
