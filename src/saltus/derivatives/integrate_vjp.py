"""Vector-Jacobian products of steps along the manifold, joint by joint.

    q' = q (+) v,      L = w . q'      weights on the coordinates of q', of which those that leave the manifold do not count

Along the tangent at q', where dq'/dt = E(q') v, L changes by g = E^T w; then dL/dq = Ad(exp v)^-T g and dL/dv = J_r(v)^T g
(manifold_jacobians.py). O(n).
"""

from __future__ import annotations

from saltus.kernel import kernel, ld, st
from saltus.model.joint_kernels import CONTINUOUS, FREE_FLYER, PLANAR, SPHERICAL
from saltus.model.manifold import on_free_joints, step_joint
from saltus.model.manifold_jacobians import back_plane, back_se3, right_jacobian_plane
from saltus.model.tree import algorithm
from saltus.spatial.algebra import Motion, Quat, Vec2, Vec3, turn_back
from saltus.spatial.lie import exp_quaternion, right_jacobian, right_jacobian_se3
from saltus.spatial.quaternion import conjugate, rotation


@kernel
def turning(a, weights):
    """What weights on the quaternion a feel of a turn: E^T w."""
    g = conjugate(a) * weights
    return Vec3(0.5 * g.x, 0.5 * g.y, 0.5 * g.z)


@kernel
def circling(turn, weights):
    """What weights on a cosine and sine feel of a turn."""
    return turn.x * weights.y - turn.y * weights.x


@kernel
def transposed(M, g):
    """M^T g, of a matrix whose lower left block is zero."""
    return Motion(turn_back(M.A, g.lin), turn_back(M.B, g.lin) + turn_back(M.D, g.ang))


@algorithm(
    inputs={"q": "nq", "v": "nv", "weights": "nq 1"}, outputs={"result": "nq", "dq": "nv", "dv": "nv"}, sloped=False
)
def _integrate_vjp(tree, q, v, weights, w, result, dq, dv):
    """Weights have an axis more: they are no configuration, and not checked as one."""
    for i in range(1, tree.nj):
        step_joint(tree, i, q, v, 1.0, result)
        kind, iq, iv = tree.kind[i], tree.iq[i], tree.iv[i]
        if kind == FREE_FLYER:
            m, a = ld(v, iv, Motion), ld(result, iq + 3, Quat)
            g = Motion(turn_back(rotation(a), ld(weights, iq, Vec3)), turning(a, ld(weights, iq + 3, Quat)))
            st(dq, iv, transposed(back_se3(m), g))
            st(dv, iv, transposed(right_jacobian_se3(m), g))
        elif kind == SPHERICAL:
            x = ld(v, iv, Vec3)
            g = turning(ld(result, iq, Quat), ld(weights, iq, Quat))
            st(dq, iv, rotation(exp_quaternion(x)) @ g)
            st(dv, iv, turn_back(right_jacobian(x), g))
        elif kind == PLANAR:
            x, turn, along = ld(v, iv, Vec3), ld(result, iq + 2, Vec2), ld(weights, iq, Vec2)
            g = Vec3(
                turn.x * along.x + turn.y * along.y,
                turn.x * along.y - turn.y * along.x,
                circling(turn, ld(weights, iq + 2, Vec2)),
            )
            st(dq, iv, turn_back(back_plane(x.x, x.y, x.z), g))
            st(dv, iv, turn_back(right_jacobian_plane(x.x, x.y, x.z), g))
        elif kind == CONTINUOUS:
            g = circling(ld(result, iq, Vec2), ld(weights, iq, Vec2))
            st(dq, iv, g)
            st(dv, iv, g)
        else:
            for k in range(tree.end[i] - iv):
                st(dq, iv + k, ld(weights, iq + k))
                st(dv, iv + k, ld(weights, iq + k))


on_free_joints(_integrate_vjp)
