"""What the joints do, in canonical frames: placements, and products with the motion subspace S and its transpose.

Kernels branch on the kind of joint. A revolute or prismatic joint touches one axis, so it has short forms of everything;
the others go through their axes one by one.
"""

from __future__ import annotations

from saltus.kernel import fabs, is_zero, kernel, ld, less, lift, select, sincos, st, zero
from saltus.spatial.algebra import SE3, Force, Mat3, Motion, Quat, Vec2, Vec3, cross, cross_motion, transpose
from saltus.spatial.inertia import column, without, without_axis
from saltus.spatial.quaternion import rotation

UNIVERSE, REVOLUTE, CONTINUOUS, PRISMATIC, PLANAR, SPHERICAL, TRANSLATION, FREE_FLYER = range(8)


@kernel
def joint_turn(tree, i, q):
    """Cosine and sine of the angle of joint i about z, the part of a placement that is dear to compute."""
    kind, iq = tree.kind[i], tree.iq[i]
    if kind == REVOLUTE:
        s, c = sincos(ld(q, iq))
        return Vec2(c, s)
    if kind == CONTINUOUS:
        return ld(q, iq, Vec2)
    if kind == PLANAR:
        return ld(q, iq + 2, Vec2)
    return Vec2(lift(1.0, zero(q)), zero(q))


@kernel
def joint_placement(tree, i, q, turn):
    """The placement of body i in its parent."""
    P, kind, iq = tree.placement[i], tree.kind[i], tree.iq[i]
    if kind <= PLANAR:
        R = turned_about_z(P.R, turn)
        p = lift_vec(P.p, turn.x)
        if kind == PRISMATIC:
            p = P.p + Vec3(P.R.xz, P.R.yz, P.R.zz) * ld(q, iq)
        if kind == PLANAR:
            p = P.p + Vec3(P.R.xx, P.R.yx, P.R.zx) * ld(q, iq) + Vec3(P.R.xy, P.R.yy, P.R.zy) * ld(q, iq + 1)
        return SE3(R, p)
    if kind == SPHERICAL:
        return SE3(P.R @ rotation(ld(q, iq, Quat)), lift_vec(P.p, turn.x))
    if kind == TRANSLATION:
        return SE3(turned_about_z(P.R, turn), P.p + P.R @ ld(q, iq, Vec3))
    return SE3(P.R @ rotation(ld(q, iq + 3, Quat)), P.p + P.R @ ld(q, iq, Vec3))


@kernel
def placed_after(tree, i, q, X):
    """The placement of body i if that of its parent is X.

    Most joints of most robots are mounted along the axes of their parent. A rotation that only renames axes costs nothing,
    which spares two thirds of the product.
    """
    turn, first = joint_turn(tree, i, q), tree.renamed[i]
    if first < 0 or tree.kind[i] > CONTINUOUS:
        return X @ joint_placement(tree, i, q, turn)
    return SE3(turned_about_z(with_axes_from(first, X.R), turn), X.R @ tree.placement[i].p + X.p)


@kernel
def with_axes_from(first, R):
    """R, times a rotation that only renames axes: `first` becomes x, and the others follow in turn."""
    if first == 1:
        return Mat3(R.xy, R.xz, R.xx, R.yy, R.yz, R.yx, R.zy, R.zz, R.zx)
    if first == 2:
        return Mat3(R.xz, R.xx, R.xy, R.yz, R.yx, R.yy, R.zz, R.zx, R.zy)
    return R


@kernel
def joint_rotation(tree, i, R):
    """The rotation of a joint's frame, if that of its body's canonical frame is R."""
    first = tree.turned_back[i]
    return with_axes_from(first, R) if first >= 0 else R @ transpose(tree.turned[i])


@kernel
def lift_vec(a, like):
    return Vec3(lift(a.x, like), lift(a.y, like), lift(a.z, like))


@kernel
def turned_about_z(P, turn):
    c, s = turn.x, turn.y
    return Mat3(
        P.xx * c + P.xy * s, P.xy * c - P.xx * s, lift(P.xz, c),
        P.yx * c + P.yy * s, P.yy * c - P.yx * s, lift(P.yz, c),
        P.zx * c + P.zy * s, P.zy * c - P.zx * s, lift(P.zz, c),
    )  # fmt: skip


@kernel
def joint_motion(tree, i, x):
    """S x: the motion of body i relative to its parent, at joint rates x."""
    kind, iv, o = tree.kind[i], tree.iv[i], zero(x)
    none = Vec3(o, o, o)
    if kind <= CONTINUOUS:
        return Motion(none, Vec3(o, o, ld(x, iv)))
    if kind == PRISMATIC:
        return Motion(Vec3(o, o, ld(x, iv)), none)
    if kind == PLANAR:
        return Motion(Vec3(ld(x, iv), ld(x, iv + 1), o), Vec3(o, o, ld(x, iv + 2)))
    if kind == SPHERICAL:
        return Motion(none, ld(x, iv, Vec3))
    if kind == TRANSLATION:
        return Motion(ld(x, iv, Vec3), none)
    return ld(x, iv, Motion)


@kernel
def add_motion(tree, i, m, x):
    """m + S x"""
    kind, iv = tree.kind[i], tree.iv[i]
    if kind <= CONTINUOUS:
        return Motion(m.lin, Vec3(m.ang.x, m.ang.y, m.ang.z + ld(x, iv)))
    if kind == PRISMATIC:
        return Motion(Vec3(m.lin.x, m.lin.y, m.lin.z + ld(x, iv)), m.ang)
    return m + joint_motion(tree, i, x)


@kernel
def carried(tree, i, m, x):
    """m x S x: how fast the motion S x changes when the frame of body i moves along at m."""
    kind, iv, o = tree.kind[i], tree.iv[i], zero(x)
    if kind <= CONTINUOUS:
        rate = ld(x, iv)
        return Motion(Vec3(m.lin.y * rate, -(m.lin.x * rate), o), Vec3(m.ang.y * rate, -(m.ang.x * rate), o))
    if kind == PRISMATIC:
        rate = ld(x, iv)
        return Motion(Vec3(m.ang.y * rate, -(m.ang.x * rate), o), Vec3(o, o, o))
    return cross_motion(m, joint_motion(tree, i, x))


@kernel
def component(f, axis):
    """Component `axis` (0 to 5, linear first) of a motion or force."""
    if axis == 5:
        return f.ang.z
    if axis == 2:
        return f.lin.z
    if axis == 0:
        return f.lin.x
    if axis == 1:
        return f.lin.y
    if axis == 3:
        return f.ang.x
    return f.ang.y


@kernel
def add_along(m, axis, x):
    """A motion with x added to its component `axis`."""
    if axis == 5:
        return Motion(m.lin, Vec3(m.ang.x, m.ang.y, m.ang.z + x))
    if axis == 2:
        return Motion(Vec3(m.lin.x, m.lin.y, m.lin.z + x), m.ang)
    if axis == 0:
        return Motion(Vec3(m.lin.x + x, m.lin.y, m.lin.z), m.ang)
    if axis == 1:
        return Motion(Vec3(m.lin.x, m.lin.y + x, m.lin.z), m.ang)
    if axis == 3:
        return Motion(m.lin, Vec3(m.ang.x + x, m.ang.y, m.ang.z))
    return Motion(m.lin, Vec3(m.ang.x, m.ang.y + x, m.ang.z))


@kernel
def set_free(tree, k, I):
    """Degree of freedom k moves freely: its gain u / d, the inverse pivot 1 / d, and what is left of I, I - u u^T / d.

    Without armature the gain is 1 along the axis itself, of which nothing is left: code for one robot need not compute it.
    """
    axis, armature = tree.axis[k], tree.armature[k]
    u = column(I, axis)
    inverse = 1.0 / (component(u, axis) + armature)
    gain = u * inverse
    left = without(I, u, gain)
    if is_zero(armature):
        return with_component(gain, axis, 1.0), inverse, without_axis(left, axis)
    return gain, inverse, left


@kernel
def with_component(f, axis, x):
    """A force whose component `axis` (0 to 5, linear first), which is known, is x."""
    return Force(
        Vec3(x if axis == 0 else f.lin.x, x if axis == 1 else f.lin.y, x if axis == 2 else f.lin.z),
        Vec3(x if axis == 3 else f.ang.x, x if axis == 4 else f.ang.y, x if axis == 5 else f.ang.z),
    )


@kernel
def project(tree, i, f, tau):
    """tau = S^T f, in the places of joint i."""
    for k in range(tree.iv[i], tree.end[i]):
        st(tau, k, component(f, tree.axis[k]))


@kernel
def defects(tree, q):
    """How far the worst quaternion, or pair of cosine and sine, of q is from unit length: | |x|^2 - 1 |; and the largest
    angle whose sine is to be taken."""
    worst, angle = zero(q), zero(q)
    for i in range(1, tree.nj):
        worst, angle = joint_defects(tree.kind[i], tree.iq[i], q, worst, angle)
    return worst, angle


@kernel
def joint_defects(kind, iq, q, worst, angle):
    """The same, of one joint and those before it."""
    if kind == REVOLUTE:
        angle = larger(fabs(ld(q, iq)), angle)
    elif kind == FREE_FLYER:
        worst = larger(off_unit(ld(q, iq + 3, Quat)), worst)
    elif kind == SPHERICAL:
        worst = larger(off_unit(ld(q, iq, Quat)), worst)
    elif kind == CONTINUOUS:
        turn = ld(q, iq, Vec2)
        worst = larger(fabs(turn.x * turn.x + turn.y * turn.y - 1.0), worst)
    elif kind == PLANAR:
        turn = ld(q, iq + 2, Vec2)
        worst = larger(fabs(turn.x * turn.x + turn.y * turn.y - 1.0), worst)
    return worst, angle


@kernel
def larger(x, y):
    """The larger one, y if x is NaN, which is looked for elsewhere: `maximum` would keep it, and is dear in a chain."""
    return select(less(y, x), x, y)


@kernel
def off_unit(a):
    return fabs(a.x * a.x + a.y * a.y + a.z * a.z + a.w * a.w - 1.0)


@kernel
def axis_seen_from(X, axis):
    """The unit motion along `axis` (0 to 5, linear first) of a frame placed at X."""
    R, p = X.R, X.p
    if axis == 5:
        z = Vec3(R.xz, R.yz, R.zz)
        return Motion(cross(p, z), z)
    if axis == 4:
        y = Vec3(R.xy, R.yy, R.zy)
        return Motion(cross(p, y), y)
    if axis == 3:
        x = Vec3(R.xx, R.yx, R.zx)
        return Motion(cross(p, x), x)
    none = p * 0.0
    if axis == 2:
        return Motion(Vec3(R.xz, R.yz, R.zz), none)
    if axis == 1:
        return Motion(Vec3(R.xy, R.yy, R.zy), none)
    return Motion(Vec3(R.xx, R.yx, R.zx), none)
