"""The dense NumPy truth: rigid-body dynamics by definition, slow and obvious, one sample at a time.

No recursion but down the tree for placements and Jacobians: all else is a sum over bodies of dense matrices,

    M = sum_i J_i' I_i J_i + diag(armature),    b = sum_i J_i' (I_i (dJ_i v - g_i) + v_i x* I_i v_i),

with J_i, I_i, v_i, g_i in the local frame of joint i. Conventions are Pinocchio's: spatial vectors linear first,
references "local", "world" (at the world's origin) and "local_world_aligned" (at the frame's origin, world's axes).
A `joint` is an index, a `frame` an index or a name. Joint 0, the universe, never moves; what is fixed to it is no
part of mass, centre of mass, momentum or energy. X: placement of a frame (4, 4), S: motion subspace of a joint
(6, nv_j), constant in the moved joint frame for every kind, I: spatial inertia at the joint frame's origin (6, 6).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from saltus.model.joints import Joint, JointKind
from saltus.model.model import Model

Array = NDArray[np.float64]
Reference = Literal["local", "world", "local_world_aligned"]


# --- spatial algebra ---
def skew(u: ArrayLike) -> Array:
    """Cross product matrix: skew(u) @ w = u x w."""
    x, y, z = np.asarray(u, float)
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def placement_of(rotation: ArrayLike, translation: ArrayLike) -> Array:
    return np.block([[np.asarray(rotation, float), np.reshape(translation, (3, 1))], [np.zeros((1, 3)), 1.0]])


def shift(translation: ArrayLike) -> Array:
    return placement_of(np.eye(3), translation)


def inverse(X: Array) -> Array:
    return placement_of(X[:3, :3].T, -X[:3, :3].T @ X[:3, 3])


def Ad(X: Array) -> Array:
    """Adjoint (6, 6): a motion of X's frame, as seen from the frame in which X is given. Forces: Ad(inverse(X)).T."""
    R, p = X[:3, :3], X[:3, 3]
    return np.block([[R, skew(p) @ R], [np.zeros((3, 3)), R]])


def ad(m: Array) -> Array:
    """Motion cross product (6, 6): ad(m) @ n = m x n. That of forces is -ad(m).T."""
    return np.block([[skew(m[3:]), skew(m[:3])], [np.zeros((3, 3)), skew(m[3:])]])


def spatial_inertia(joint: Joint) -> Array:
    """(6, 6), of all that moves with the joint, at the joint frame's origin."""
    m, c = joint.mass, skew(joint.com)
    return np.block([[m * np.eye(3), -m * c], [m * c, joint.inertia - m * c @ c]])


# --- joints ---
def joint_coordinates(model: Model, joint: Joint, q: Array) -> Array:
    """The joint's own part of q; for a mimic joint the scalar that its primary imposes."""
    if joint.mimic is None:
        return np.asarray(q, float)[joint.iq : joint.iq + joint.kind.nq]
    primary = model.joints[model.joint_index(joint.mimic.primary)]
    coordinates = joint_coordinates(model, primary, q)
    scalar = np.arctan2(coordinates[1], coordinates[0]) if coordinates.size == 2 else coordinates[0]
    imposed = joint.mimic.ratio * scalar + joint.mimic.offset
    return np.array([np.cos(imposed), np.sin(imposed)] if joint.kind == JointKind.CONTINUOUS else [imposed])


def joint_motion(kind: JointKind, axis: Array, c: Array) -> Array:
    """Placement (4, 4) of the moved joint frame in the joint frame at rest, c being the joint's part of q."""
    turn, p = Rotation.identity(), np.zeros(3)
    if kind == JointKind.REVOLUTE:
        turn = Rotation.from_rotvec(c[0] * axis)
    elif kind == JointKind.CONTINUOUS:
        turn = Rotation.from_rotvec(np.arctan2(c[1], c[0]) * axis)
    elif kind == JointKind.PRISMATIC:
        p = c[0] * axis
    elif kind == JointKind.PLANAR:
        turn, p = Rotation.from_rotvec([0.0, 0.0, np.arctan2(c[3], c[2])]), np.array([c[0], c[1], 0.0])
    elif kind == JointKind.SPHERICAL:
        turn = Rotation.from_quat(c)
    elif kind == JointKind.TRANSLATION:
        p = c
    elif kind == JointKind.FREE_FLYER:
        turn, p = Rotation.from_quat(c[3:]), c[:3]
    elif kind != JointKind.UNIVERSE:
        raise ValueError(f"the oracle knows no joint of kind {kind!r}")
    return placement_of(turn.as_matrix(), p)


def joint_subspace(model: Model, joint: Joint) -> Array:
    """S (6, nv_j): the joint's velocity in its moved frame is S @ v_j; a mimic's S is scaled by its ratio."""
    linear, angular = np.eye(6)[:, :3], np.eye(6)[:, 3:]
    S = {
        JointKind.UNIVERSE: np.zeros((6, 0)),
        JointKind.REVOLUTE: angular @ joint.axis[:, None],
        JointKind.CONTINUOUS: angular @ joint.axis[:, None],
        JointKind.PRISMATIC: linear @ joint.axis[:, None],
        JointKind.PLANAR: np.eye(6)[:, [0, 1, 5]],
        JointKind.SPHERICAL: angular,
        JointKind.TRANSLATION: linear,
        JointKind.FREE_FLYER: np.eye(6),
    }[joint.kind]
    while joint.mimic is not None:  # a mimic of a mimic: the ratios multiply
        S = joint.mimic.ratio * S
        joint = model.joints[model.joint_index(joint.mimic.primary)]
    return S


def joint_transforms(model: Model, q: Array) -> Array:
    """X_parent_joint (njoints, 4, 4): placement @ motion(q)."""
    return np.array([j.placement @ joint_motion(j.kind, j.axis, joint_coordinates(model, j, q)) for j in model.joints])


def placements(model: Model, q: Array) -> Array:
    """X_world_joint (njoints, 4, 4)."""
    X = joint_transforms(model, q)
    for i, joint in enumerate(model.joints[1:], start=1):
        X[i] = X[joint.parent] @ X[i]
    return X


# --- Jacobians and their time derivatives ---
def _jacobians(model: Model, q: Array, v: Array | None = None) -> tuple[Array, Array, Array, Array]:
    """World placements X, world Jacobians J (njoints, 6, nv) of the joints, dJ/dt along v, world velocities J v."""
    v = np.zeros(model.nv) if v is None else np.asarray(v, float)
    X, velocity = placements(model, q), np.zeros((model.njoints, 6))
    J, dJ = np.zeros((2, model.njoints, 6, model.nv))
    for i, joint in enumerate(model.joints[1:], start=1):
        S = Ad(X[i]) @ joint_subspace(model, joint)
        columns = slice(joint.iv, joint.iv + S.shape[1])
        J[i], dJ[i] = J[joint.parent], dJ[joint.parent]  # a body moves with all its ancestors' joints and its own
        J[i][:, columns] += S  # += and not =: the columns of a mimic joint may be an ancestor's too
        velocity[i] = J[i] @ v
        dJ[i][:, columns] += ad(velocity[i]) @ S  # S is constant in the joint's frame, which moves with velocity[i]
    return X, J, dJ, velocity


def _seen_from(X: Array, reference: Reference) -> Array:
    """The frame in which the motions of a frame placed at X are expressed."""
    return {"world": np.eye(4), "local": X, "local_world_aligned": shift(X[:3, 3])}[reference]


def _re_expressed(X: Array, J: Array, dJ: Array, velocity: Array, reference: Reference) -> tuple[Array, Array]:
    """World J, dJ of a frame placed at X (moving with the world velocity) in the reference; its motion counts in dJ."""
    moving = velocity if reference == "local" else np.zeros(6)  # the velocity of what the reference is fixed to
    if reference == "local_world_aligned":
        moving[:3] = velocity[:3] + np.cross(velocity[3:], X[:3, 3])
    A = Ad(inverse(_seen_from(X, reference)))
    return A @ J, A @ (dJ - ad(moving) @ J)


def _pair(
    model: Model, q: Array, v: Array | None, place: tuple[int, Array], reference: Reference
) -> tuple[Array, Array]:
    """J and dJ/dt of a frame, given by its joint and its placement in the joint's frame."""
    (joint, offset), (X, J, dJ, velocity) = place, _jacobians(model, q, v)
    return _re_expressed(X[joint] @ offset, J[joint], dJ[joint], velocity[joint], reference)


def _frame(model: Model, frame: int | str) -> tuple[int, Array]:
    f = model.frames[model.frame_index(frame)]
    return f.joint, f.placement


def joint_jacobian(model: Model, q: Array, joint: int, reference: Reference = "local") -> Array:
    """(6, nv): J @ v is the joint's velocity in the reference."""
    return _pair(model, q, None, (joint, np.eye(4)), reference)[0]


def jacobian_dot(model: Model, q: Array, v: Array, joint: int, reference: Reference = "local") -> Array:
    """(6, nv): the exact time derivative of joint_jacobian along v."""
    return _pair(model, q, v, (joint, np.eye(4)), reference)[1]


def frame_jacobian(model: Model, q: Array, frame: int | str, reference: Reference = "local") -> Array:
    return _pair(model, q, None, _frame(model, frame), reference)[0]


def frame_jacobian_dot(model: Model, q: Array, v: Array, frame: int | str, reference: Reference = "local") -> Array:
    return _pair(model, q, v, _frame(model, frame), reference)[1]


def _local(model: Model, q: Array, v: Array | None = None) -> tuple[Array, Array, Array, Array]:
    """World placements, local J and dJ/dt (njoints, 6, nv), inertias (njoints, 6, 6). The universe's J is zero."""
    X, J, dJ, velocity = _jacobians(model, q, v)
    pairs = [_re_expressed(X[i], J[i], dJ[i], velocity[i], "local") for i in range(model.njoints)]
    inertias = np.array([spatial_inertia(joint) for joint in model.joints])
    return X, np.array([J for J, _ in pairs]), np.array([dJ for _, dJ in pairs]), inertias


# --- kinematics ---
def velocities(model: Model, q: Array, v: Array) -> Array:
    """Spatial velocities (njoints, 6), each in its joint's local frame."""
    return _local(model, q)[1] @ v


def accelerations(model: Model, q: Array, v: Array, a: Array) -> Array:
    """Spatial accelerations (njoints, 6), each in its joint's local frame, without gravity."""
    _, J, dJ, _ = _local(model, q, v)
    return J @ a + dJ @ v


def frame_placement(model: Model, q: Array, frame: int | str) -> Array:
    joint, offset = _frame(model, frame)
    return placements(model, q)[joint] @ offset


def frame_velocity(model: Model, q: Array, v: Array, frame: int | str, reference: Reference = "local") -> Array:
    """(6,), as pin.getFrameVelocity."""
    return frame_jacobian(model, q, frame, reference) @ v


def frame_acceleration(
    model: Model, q: Array, v: Array, a: Array, frame: int | str, reference: Reference = "local"
) -> Array:
    """Spatial (not classical) acceleration (6,), as pin.getFrameAcceleration: the world's, expressed in the reference.

    In "local_world_aligned" it is not d/dt of frame_velocity, which would count the moving origin too.
    """
    X, J, dJ, _ = _jacobians(model, q, v)
    joint, offset = _frame(model, frame)
    return Ad(inverse(_seen_from(X[joint] @ offset, reference))) @ (J[joint] @ a + dJ[joint] @ v)


# --- dynamics ---
def mass_matrix(model: Model, q: Array) -> Array:
    """M (nv, nv) = sum_i J_i' I_i J_i, plus the armature on the diagonal."""
    _, J, _, inertias = _local(model, q)
    return np.einsum("ika,ikl,ilb->ab", J, inertias, J, optimize=True) + np.diag(model.armature)


def mass_matrix_inverse(model: Model, q: Array) -> Array:
    return np.linalg.inv(mass_matrix(model, q))


def _body_forces(model: Model, q: Array, v: Array, a: Array, gravity: ArrayLike) -> tuple[Array, Array, Array]:
    """World placements, local J, and the force (njoints, 6) that each body needs to move so, in its local frame."""
    X, J, dJ, inertias = _local(model, q, v)
    forces = np.zeros((model.njoints, 6))
    for i in range(1, model.njoints):
        velocity = J[i] @ v
        falling = np.concatenate([X[i, :3, :3].T @ np.asarray(gravity, float), np.zeros(3)])
        forces[i] = inertias[i] @ (J[i] @ a + dJ[i] @ v - falling) - ad(velocity).T @ (inertias[i] @ velocity)
    return X, J, forces


def external_torque(model: Model, q: Array, fext: Array) -> Array:
    """sum_i J_i' f_i (nv,) of forces (njoints, 6) that act on the bodies, in their local joint frames."""
    return np.einsum("ika,ik->a", _local(model, q)[1], fext)


def inverse_dynamics(model: Model, q: Array, v: Array, a: Array, fext: Array | None = None) -> Array:
    """tau (nv,) = M a + b - sum_i J_i' f_i, as pin.rnea."""
    _, J, forces = _body_forces(model, q, v, a, model.gravity)
    tau = np.einsum("ika,ik->a", J, forces) + model.armature * a
    return tau if fext is None else tau - external_torque(model, q, fext)


def bias(model: Model, q: Array, v: Array) -> Array:
    """b (nv,), the nonlinear effects: Coriolis, centrifugal, gravity."""
    return inverse_dynamics(model, q, v, np.zeros(model.nv))


def gravity_torque(model: Model, q: Array) -> Array:
    return bias(model, q, np.zeros(model.nv))


def forward_dynamics(model: Model, q: Array, v: Array, tau: Array, fext: Array | None = None) -> Array:
    """a (nv,), as pin.aba."""
    external = 0.0 if fext is None else external_torque(model, q, fext)
    return np.linalg.solve(mass_matrix(model, q), tau - bias(model, q, v) + external)


# --- centre of mass, momentum, energy ---
def total_mass(model: Model) -> float:
    return sum(joint.mass for joint in model.joints[1:])


def _body_centers(model: Model, X: Array) -> Array:
    """The bodies' centres of mass (njoints, 3) in the world."""
    return np.array([(X[i] @ np.append(joint.com, 1.0))[:3] for i, joint in enumerate(model.joints)])


def center_of_mass(model: Model, q: Array, v: Array | None = None, a: Array | None = None) -> tuple[Array, ...]:
    """Always a tuple: position (3,) in the world; given v, velocity too; given v and a, acceleration too."""
    centers = _body_centers(model, placements(model, q))
    moment = sum(joint.mass * c for joint, c in zip(model.joints[1:], centers[1:], strict=True))
    result: tuple[Array, ...] = (moment / total_mass(model),)
    if v is not None:
        result += (com_jacobian(model, q) @ v,)
        if a is not None:
            result += (centroidal_momentum_time_variation(model, q, v, a)[:3] / total_mass(model),)
    return result


def com_jacobian(model: Model, q: Array) -> Array:
    """(3, nv): the mass-weighted mean of the Jacobians of the bodies' centres of mass."""
    X, J, _, _ = _jacobians(model, q)
    at = [shift(c) for c in _body_centers(model, X)]
    return sum(joint.mass * Ad(inverse(at[i]))[:3] @ J[i] for i, joint in enumerate(model.joints)) / total_mass(model)


def _forces_to_centroid(X: Array, com: Array) -> Array:
    """(njoints, 6, 6): forces of the frames X, expressed at the centre of mass with the world's axes."""
    return np.array([Ad(inverse(shift(-com) @ X_i)).T for X_i in X])


def centroidal_momentum_matrix(model: Model, q: Array) -> Array:
    """Ag (6, nv), at the centre of mass with the world's axes, as pin.ccrba."""
    X, J, _, inertias = _local(model, q)
    return np.einsum("ikl,ilm,ima->ka", _forces_to_centroid(X, center_of_mass(model, q)[0]), inertias, J)


def centroidal_momentum(model: Model, q: Array, v: Array) -> Array:
    return centroidal_momentum_matrix(model, q) @ v


def centroidal_momentum_time_variation(model: Model, q: Array, v: Array, a: Array) -> Array:
    """dhg/dt (6,) = Ag a + dAg/dt v: the sum of all body forces (without gravity) at the centre of mass.

    That point moves, but along the linear momentum, so its motion changes nothing.
    """
    X, _, forces = _body_forces(model, q, v, a, np.zeros(3))
    return np.einsum("ikl,il->k", _forces_to_centroid(X, center_of_mass(model, q)[0]), forces)


def centroidal_momentum_drift(model: Model, q: Array, v: Array) -> Array:
    """dAg/dt v (6,)."""
    return centroidal_momentum_time_variation(model, q, v, np.zeros(model.nv))


def kinetic_energy(model: Model, q: Array, v: Array) -> float:
    """v' M v / 2, so with the armature's share (which Pinocchio 4.1.0 forgets at unaligned revolute joints)."""
    return 0.5 * float(v @ mass_matrix(model, q) @ v)


def potential_energy(model: Model, q: Array) -> float:
    """Of gravity, zero where the centre of mass is at the world's origin."""
    return -total_mass(model) * float(center_of_mass(model, q)[0] @ model.gravity)


# --- the configuration manifold ---
def _turned(a: Array, w: Array) -> Array:
    """The quaternion (x, y, z, w) a * exp(w), the sign as the product gives it."""
    b = Rotation.from_rotvec(w).as_quat()
    return np.append(a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3]), a[3] * b[3] - a[:3] @ b[:3])


def integrate(model: Model, q: Array, v: Array) -> Array:
    """q (+) v (nq,): each joint moves for one second with its constant local velocity."""
    q, v = np.asarray(q, float), np.asarray(v, float)
    result = np.zeros(model.nq)
    for joint in (j for j in model.joints[1:] if j.mimic is None):
        c, w = q[joint.iq : joint.iq + joint.kind.nq], v[joint.iv : joint.iv + joint.kind.nv]
        if joint.kind == JointKind.CONTINUOUS:
            angle = np.arctan2(c[1], c[0]) + w[0]
            c = np.array([np.cos(angle), np.sin(angle)])
        elif joint.kind == JointKind.SPHERICAL:
            c = _turned(c, w)
        elif joint.kind in (JointKind.PLANAR, JointKind.FREE_FLYER):
            twist = joint_subspace(model, joint) @ w
            hat = np.block([[skew(twist[3:]), twist[:3, None]], [np.zeros((1, 4))]])
            X = joint_motion(joint.kind, joint.axis, c) @ expm(hat)
            if joint.kind == JointKind.PLANAR:
                c = np.array([X[0, 3], X[1, 3], X[0, 0], X[1, 0]])
            else:
                quaternion = _turned(c[3:], twist[3:])
                c = np.append(X[:3, 3], quaternion if quaternion @ c[3:] >= 0 else -quaternion)  # Pinocchio's choice
        else:
            c = c + w
        result[joint.iq : joint.iq + joint.kind.nq] = c
    return result


def difference(model: Model, q0: Array, q1: Array) -> Array:
    """q1 (-) q0 (nv,): the velocity that integrate needs to go from q0 to q1 by the short way."""
    result = np.zeros(model.nv)
    for joint in (j for j in model.joints[1:] if j.mimic is None):
        c0, c1 = joint_coordinates(model, joint, q0), joint_coordinates(model, joint, q1)
        if joint.kind in (JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.TRANSLATION):
            w = c1 - c0
        else:
            X = inverse(joint_motion(joint.kind, joint.axis, c0)) @ joint_motion(joint.kind, joint.axis, c1)
            angular = Rotation.from_matrix(X[:3, :3]).as_rotvec()
            # exp([[skew(w), 1], [0, 0]]) = [[R, V], [0, 1]], and the translation of exp6(u, w) is V u
            V = expm(np.block([[skew(angular), np.eye(3)], [np.zeros((3, 6))]]))[:3, 3:]
            twist = np.concatenate([np.linalg.solve(V, X[:3, 3]), angular])
            w = joint_subspace(model, joint).T @ twist  # its columns are orthonormal
        result[joint.iv : joint.iv + joint.kind.nv] = w
    return result
