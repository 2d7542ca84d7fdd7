"""Two numbers of a problem that say what a number type can do with it, found once, by dense NumPy.

How large the entries of a Delassus matrix are, from the masses at hand: what a proximal `mu` is measured by.

    exp mean log (J M^-1 J^T)_rr      over the rows r that anything moves, all joints at zero

A number that is right within a few powers of ten will do: convergence wants `mu` far below the eigenvalues of the matrix,
rounding wants it far above the last digits of its entries.

And how much larger errors of a model's own numbers become on their way into accelerations:

    max M_kk / D_k,      M = U D U^T      over degrees of freedom k, at some configurations

the inertia that a joint feels while all others hold still, by that which it feels while those after it move freely. It is
below 200 for most robots. Where links nearly without inertia carry others, it may be thousands and more: then the rounding
of the model to single precision alone spoils accelerations, and no iteration can see that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saltus.arrays import Array
from saltus.constraints.constraint import Constraint
from saltus.dynamics.crba import crba
from saltus.model.manifold import random_configuration
from saltus.model.model import Model
from saltus.model.parameters import VariedModel
from saltus.model.tree import AXES, canonical_rotation, cross

NEGLIGIBLE = 1e-9
"""Entries below so much of the largest, of rows that the constraints have or not, are of rows that only rounding moves."""


def typical_delassus(model: Model, constraints: Sequence[Constraint]) -> float:
    """A typical entry of the Delassus matrix's diagonal [1/kg, 1/(kg m^2)]; 1 if nothing moves.

    >>> import saltus as sl
    >>> builder = sl.ModelBuilder("brick")
    >>> body = builder.add_joint("root", "free_flyer")
    >>> _ = builder.add_body(body, mass=4.0, inertia=np.eye(3))
    >>> brick = builder.build()
    >>> round(typical_delassus(brick, [sl.Contact(brick, "root", 3)]), 9)
    0.25
    """
    placements, motions = _at_zero(model)
    M = np.diag(np.array(model.armature, float))
    for joint, X, J in zip(model.joints[1:], placements[1:], motions[1:], strict=True):
        c = X[:3, :3] @ joint.com + X[:3, 3]
        lin, ang = J[:3] + np.cross(J[3:], c, axis=0), J[3:]
        M += joint.mass * lin.T @ lin + ang.T @ (X[:3, :3] @ joint.inertia @ X[:3, :3].T) @ ang
    with np.errstate(all="ignore"):
        inverse = np.linalg.pinv(M, hermitian=True)
    own, every = [np.empty(0)], [np.zeros(1)]
    for constraint in constraints:
        rows = _rows(model, constraint, placements, motions)
        entries = np.einsum("ij,jk,ik->i", rows, inverse, rows)
        own.append(entries if constraint.dofs else entries[list(constraint.rows)])
        every.append(entries)
    largest = np.concatenate(every).max()
    entries = np.concatenate(own)
    entries = entries[entries > NEGLIGIBLE * largest]
    if len(entries):
        return float(np.exp(np.log(entries).mean()))
    return float(largest) if largest > 0 else 1.0


def _at_zero(model: Model) -> tuple[list[Array], list[Array]]:
    """Placements (4, 4) of the joints, and how their bodies move (6, nv), in the world and about its origin, all joints at
    zero."""
    placements, motions = [np.eye(4)], [np.zeros((6, model.nv))]
    for joint in model.joints[1:]:
        X, J = placements[joint.parent] @ joint.placement, motions[joint.parent].copy()
        R = X[:3, :3] @ canonical_rotation(joint.kind, joint.axis)
        for k, axis in enumerate(AXES[joint.kind], joint.iv):
            along = R[:, axis % 3]
            J[:, k] = [*along, 0, 0, 0] if axis < 3 else [*cross(X[:3, 3], along), *along]
        placements.append(X)
        motions.append(J)
    return placements, motions


def _rows(model: Model, constraint: Constraint, placements: Sequence[Array], motions: Sequence[Array]) -> Array:
    """All six rows (6, nv) of frame A, as body a moves relative to body b; of a user's constraint, one for each dof."""
    if constraint.dofs:
        return np.eye(model.nv)[list(constraint.dofs)]
    A = placements[constraint.joint_a] @ constraint.placement_a
    J = motions[constraint.joint_a] - motions[constraint.joint_b]
    at_frame = np.concatenate([J[:3] + np.cross(J[3:], A[:3, 3], axis=0), J[3:]])
    return np.concatenate([A[:3, :3].T @ at_frame[:3], A[:3, :3].T @ at_frame[3:]])


def levers(model: Model, constraints: Sequence[Constraint]) -> Array:
    """How far one unit of each degree of freedom (nv,) moves a constraint at most [m]: 1 for those that slide, and of users'
    rows; for those that turn the distance to a frame that is held, all joints at zero, and where it may not turn the size of
    the robot; 0 if it moves none."""
    placements, motions = _at_zero(model)
    turns = np.zeros(model.nv, bool)
    origins = np.zeros((model.nv, 3))
    for joint, X in zip(model.joints[1:], placements[1:], strict=True):
        for k, axis in enumerate(AXES[joint.kind], joint.iv):
            turns[k], origins[k] = axis >= 3, X[:3, 3]
    found, size = np.zeros(model.nv), robot_size(model)
    for constraint in constraints:
        movers = np.abs(motions[constraint.joint_a] - motions[constraint.joint_b]).max(0) > 0
        if constraint.dofs:
            found[list(constraint.dofs)] = 1.0
            continue
        A = placements[constraint.joint_a] @ constraint.placement_a
        linear, angular = min(constraint.rows) < 3, max(constraint.rows) >= 3
        ways = np.where(turns, np.linalg.norm(origins - A[:3, 3], axis=1), 1.0) * linear
        found = np.maximum(found, movers * np.maximum(ways, (turns & angular) * size))
    return found


def reaches(model: Model) -> Array:
    """What makes one unit of each degree of freedom (nv,) comparable to those of others [m]: 1 for those that slide; for
    those that turn, the size of the robot."""
    size = robot_size(model)
    return np.array([1.0 if axis < 3 else size for joint in model.joints[1:] for axis in AXES[joint.kind]])


def robot_size(model: Model) -> float:
    """The largest distance from a robot's first joint to another, or to a centre of mass, or a radius of gyration, all
    joints at zero [m]; 1 if it has none."""
    placements, _ = _at_zero(model)
    origin, far = placements[min(1, model.njoints - 1)][:3, 3], [0.0]
    for joint, X in zip(model.joints[1:], placements[1:], strict=True):
        center = X[:3, :3] @ joint.com + X[:3, 3]
        far += [float(np.linalg.norm(point - origin)) for point in (X[:3, 3], center)]
        if joint.mass > 0:
            far.append(float(np.sqrt(max(np.trace(joint.inertia), 0.0) / joint.mass)))
    return max(far) or 1.0


SAMPLES = 64


def amplification(model: Model) -> float:
    """The largest M_kk / D_k at some configurations; infinite if something moves without inertia."""
    model = model.nominal if isinstance(model, VariedModel) else model
    M = crba(model, random_configuration(model, 0, SAMPLES))
    try:
        pivots = np.diagonal(np.linalg.cholesky(M[:, ::-1, ::-1]), axis1=1, axis2=2)[:, ::-1] ** 2
    except np.linalg.LinAlgError:
        return np.inf
    return float((np.diagonal(M, axis1=1, axis2=2) / pivots).max(initial=1.0))
