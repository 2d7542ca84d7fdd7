"""Analytical derivatives of a frame's velocity and acceleration.

Everything is seen from the frame, and found on the way from it to the root, O(d) for depth d. For a degree of freedom k of
body i, let below be the velocity that joint i and those below it give the frame, rise what they add to its acceleration
(both as in dynamics/frame.py), and above = v - below the velocity of i's parent. A displacement along k takes the frame
along, so that nothing changes but what comes from above:

    dv/dq_k = above x S_k                                               dv/dv_k = S_k
    da/dq_k = (a - rise) x S_k + above x (S_k x below)                  da/dv_k = (above - below') x S_k        da/da_k = S_k

with below' that of the joints below i alone. An observer in the world sees the frame move along S_k in addition, so that
S_k x v and S_k x a are added; to one that moves along, but does not turn, the angular part of S_k alone counts.

| paper | code | what | frame |
|---|---|---|---|
| S_k | column k of `J` | motion along degree of freedom k | local, in the end as the reference says |
| v, a | `velocity`, `acceleration` | of the frame, spatial, without gravity | local |

Reference: J. Carpentier, N. Mansard, Analytical derivatives of rigid body dynamics algorithms (2018), section III; there
from the root to the leaves. For "local_world_aligned", Pinocchio holds the point still that v and a are about; here it moves
along with the frame, as it does in `frame_velocity` and `frame_acceleration`, whose derivatives these are.
"""

from __future__ import annotations

from typing import NamedTuple

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.derivatives.modes import jacobian, register
from saltus.dynamics.frame import (
    FRAME,
    LOCAL,
    WORLD,
    axis_seen_in,
    frame_acceleration,
    frame_velocity,
    load_column,
    seen,
    select,
    selected_body,
    selected_placement,
    step_up,
    store_column,
)
from saltus.kernel import kernel, ld, zero
from saltus.model.model import Model
from saltus.model.tree import algorithm
from saltus.spatial.algebra import Motion, Vec3, cross, cross_motion


class FrameVelocityDerivatives(NamedTuple):
    """Of `frame_velocity`, each (..., 6, nv), one column a direction. `dv_dv` is the frame's Jacobian."""

    dv_dq: Array  # along the tangent of `integrate`
    dv_dv: Array


class FrameAccelerationDerivatives(NamedTuple):
    """Of `frame_acceleration`, each (..., 6, nv), one column a direction. `da_da` is the frame's Jacobian."""

    da_dq: Array  # along the tangent of `integrate`
    da_dv: Array
    da_da: Array


@kernel
def fill_local_jacobian(tree, which, q, J):
    """The frame's local Jacobian; returns its placement in the world."""
    i = selected_body(tree, which)
    X = selected_placement(tree, which, zero(q))
    while i > 0:
        for k in range(tree.iv[i], tree.end[i]):
            store_column(J, tree.nv, k, axis_seen_in(X, tree.axis[k]))
        X = step_up(tree, i, q, X)
        i = tree.parent[i]
    return X


@kernel
def joint_share(tree, i, J, x):
    """What joint i adds to J x."""
    o = zero(J)
    share = Motion(Vec3(o, o, o), Vec3(o, o, o))
    for k in range(tree.iv[i], tree.end[i]):
        share = share + load_column(J, tree.nv, k) * ld(x, k)
    return share


@kernel
def motion_of(tree, body, J, v, a):
    """Velocity and acceleration of the frame; a may be None, which stands for zero."""
    o = zero(J)
    below = Motion(Vec3(o, o, o), Vec3(o, o, o))
    rise, i = below, body
    while i > 0:
        turning = joint_share(tree, i, J, v)
        rise = rise + cross_motion(turning, below)
        if a is not None:
            rise = rise + joint_share(tree, i, J, a)
        below = below + turning
        i = tree.parent[i]
    return below, rise


@kernel
def displaced(axis, m, reference):
    """How a constant local motion m changes for an observer in the world as its frame moves along an axis."""
    if reference == WORLD:
        return cross_motion(axis, m)
    return Motion(cross(axis.ang, m.lin), cross(axis.ang, m.ang))


@algorithm(inputs={"which": "3 int", "q": "nq", "v": "nv"}, outputs={"dv_dq": "6 nv zeroed", "dv_dv": "6 nv zeroed"})
def _frame_velocity_derivatives(tree, which, q, v, w, dv_dq, dv_dv):
    nv, reference, i = tree.nv, which[2], selected_body(tree, which)
    X = fill_local_jacobian(tree, which, q, dv_dv)
    velocity, _ = motion_of(tree, i, dv_dv, v, None)
    above = velocity
    while i > 0:
        above = above - joint_share(tree, i, dv_dv, v)
        for k in range(tree.iv[i], tree.end[i]):
            axis = load_column(dv_dv, nv, k)
            along_q = cross_motion(above, axis)
            if reference != LOCAL:
                along_q = along_q + displaced(axis, velocity, reference)
            store_column(dv_dq, nv, k, seen(X, along_q, reference))
            store_column(dv_dv, nv, k, seen(X, axis, reference))
        i = tree.parent[i]


@algorithm(
    inputs={"which": "3 int", "q": "nq", "v": "nv", "a": "nv"},
    outputs={"da_dq": "6 nv zeroed", "da_dv": "6 nv zeroed", "da_da": "6 nv zeroed"},
)
def _frame_acceleration_derivatives(tree, which, q, v, a, w, da_dq, da_dv, da_da):
    nv, reference, i, o = tree.nv, which[2], selected_body(tree, which), zero(q)
    X = fill_local_jacobian(tree, which, q, da_da)
    velocity, acceleration = motion_of(tree, i, da_da, v, a)
    below = Motion(Vec3(o, o, o), Vec3(o, o, o))
    rise = below
    while i > 0:
        turning, under = joint_share(tree, i, da_da, v), below
        rise = rise + cross_motion(turning, below) + joint_share(tree, i, da_da, a)
        below = below + turning
        above = velocity - below
        for k in range(tree.iv[i], tree.end[i]):
            axis = load_column(da_da, nv, k)
            along_q = cross_motion(acceleration - rise, axis) + cross_motion(above, cross_motion(axis, below))
            along_v = cross_motion(above - under, axis)
            if reference != LOCAL:
                along_q = along_q + displaced(axis, acceleration, reference)
            store_column(da_dq, nv, k, seen(X, along_q, reference))
            store_column(da_dv, nv, k, seen(X, along_v, reference))
            store_column(da_da, nv, k, seen(X, axis, reference))
        i = tree.parent[i]


def frame_velocity_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    frame: str | int,
    reference: str = "local",
    mode: str = "analytical",
    *,
    on_invalid: OnInvalid = "raise",
) -> FrameVelocityDerivatives:
    """How the velocity of a frame, by name or index, changes with `q` (..., nq) and `v` (..., nv).

    mode: "analytical", "ad", "fd" or "fdc" (see `jacobian`).

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> q, v, dq, h = arm.neutral(), np.ones(3), np.array([0.3, -0.2, 0.5]), 1e-6
    >>> D = sl.frame_velocity_derivatives(arm, q, v, 3)
    >>> slope = (sl.frame_velocity(arm, q + h * dq, v, 3) - sl.frame_velocity(arm, q - h * dq, v, 3)) / (2 * h)
    >>> bool(np.allclose(D.dv_dq @ dq, slope))
    True
    """
    if mode != "analytical":
        return FrameVelocityDerivatives(
            *jacobian(frame_velocity, model, (q, v, frame, reference), mode, on_invalid=on_invalid)[:2]
        )
    chosen = select(model, FRAME, frame, reference)
    return FrameVelocityDerivatives(*_frame_velocity_derivatives.call(model, (chosen, q, v), None, on_invalid))


def frame_acceleration_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    frame: str | int,
    reference: str = "local",
    mode: str = "analytical",
    *,
    on_invalid: OnInvalid = "raise",
) -> FrameAccelerationDerivatives:
    """How the spatial acceleration of a frame, by name or index, changes with `q` (..., nq), `v` and `a` (..., nv).

    mode: "analytical", "ad", "fd" or "fdc" (see `jacobian`).

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> q, v, a, dv, h = arm.neutral(), np.ones(3), np.zeros(3), np.array([0.3, -0.2, 0.5]), 1e-6
    >>> D = sl.frame_acceleration_derivatives(arm, q, v, a, 3)
    >>> ahead, behind = (sl.frame_acceleration(arm, q, v + e * dv, a, 3) for e in (h, -h))
    >>> bool(np.allclose(D.da_dv @ dv, (ahead - behind) / (2 * h)))
    True
    """
    if mode != "analytical":
        return FrameAccelerationDerivatives(
            *jacobian(frame_acceleration, model, (q, v, a, frame, reference), mode, on_invalid=on_invalid)[:3]
        )
    chosen = select(model, FRAME, frame, reference)
    return FrameAccelerationDerivatives(
        *_frame_acceleration_derivatives.call(model, (chosen, q, v, a), None, on_invalid)
    )


register(frame_velocity, frame_velocity_derivatives)
register(frame_acceleration, frame_acceleration_derivatives)
