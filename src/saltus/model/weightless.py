"""Which degrees of freedom have no inertia in any configuration, so that nothing can divide by it.

A joint that carries no mass, a point mass on its axis, two hinges on one axis with no mass in between, seven joints that
move a single body: the inertia matrix is singular whatever q is. Degrees of freedom are eliminated from the leaves to the
root, as the articulated body algorithm does, in a few random configurations; where in all of them no more than rounding is
left of a pivot, there is no inertia. Joints whose own body has inertia along all their axes are fine wherever they are, for
what they carry only adds to it: most robots need no elimination.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from saltus.model.checks import Array
from saltus.model.joints import Joint
from saltus.model.tree import AXES

if TYPE_CHECKING:
    from saltus.model.model import Model

SAMPLES = 3

ROUNDING = 1e-12
"""A pivot below this part of what it is the sum or difference of counts as zero."""


def find_weightless(model: Model) -> tuple[int, ...]:
    """The degrees of freedom whose pivots are zero."""
    tree = model.coupling.tree if model.coupling else model
    bodies = [spatial_inertia(joint) for joint in tree.joints]
    axes = [motion_axes(joint) for joint in tree.joints]
    doubtful = [i for i in range(1, tree.njoints) if not _is_heavy(tree, i, bodies[i], axes[i])]
    if not doubtful:
        return ()
    x = np.random.default_rng(0).uniform(-2.0, 2.0, (SAMPLES, model.nv))
    steps = _tree_steps(model, x) if model.coupling else x
    to_child = [_transform(joint, S, steps) for joint, S in zip(tree.joints, axes, strict=True)]
    if model.coupling:
        pivots, scales = _coupled_pivots(model, bodies, axes, to_child)
    else:
        pivots, scales = _pivots(tree, bodies, axes, to_child, doubtful)
    return tuple(np.flatnonzero((np.abs(pivots) <= ROUNDING * scales).all(0)).tolist())


def motion_axes(joint: Joint) -> Array:
    """The motions (6, nv) of a joint, linear first, in its frame."""
    if joint.kind.has_axis:
        turns = AXES[joint.kind] == (5,)
        return np.concatenate([np.zeros(3), joint.axis] if turns else [joint.axis, np.zeros(3)])[:, None]
    return np.eye(6)[:, list(AXES.get(joint.kind, ()))]


def spatial_inertia(joint: Joint) -> Array:
    """(6, 6) of a joint's own body about its origin, linear first."""
    skew = _skew(joint.com)
    inertia = np.zeros((6, 6))
    inertia[:3, :3] = joint.mass * np.eye(3)
    inertia[3:, :3] = joint.mass * skew
    inertia[:3, 3:] = -inertia[3:, :3]
    inertia[3:, 3:] = joint.inertia - joint.mass * skew @ skew
    return inertia


def _is_heavy(tree: Model, i: int, body: Array, S: Array) -> bool:
    """Whether the body of joint i alone, or armature, leaves no pivot at zero."""
    joint = tree.joints[i]
    own = S.T @ body @ S + np.diag(tree.armature[joint.iv : joint.iv + joint.kind.nv])
    scale = np.sqrt(_scales(body, S))
    if not (scale > 0).all():
        return bool((np.linalg.eigvalsh(own) > 0).all())
    return bool(np.linalg.eigvalsh(own / np.outer(scale, scale))[0] > ROUNDING)


def _scales(inertia: Array, S: Array) -> Array:
    """(..., nv) the size of what the inertia along each axis is made of."""
    linear, angular = (np.linalg.norm(inertia[..., part, part], axis=(-2, -1)) for part in (slice(3), slice(3, 6)))
    turns = np.abs(S[3:]).sum(0) > 0
    return np.asarray(np.where(turns, angular[..., None], linear[..., None]))


def _pivots(
    tree: Model, bodies: list[Array], axes: list[Array], to_child: list[Array], doubtful: list[int]
) -> tuple[Array, Array]:
    """Pivots (SAMPLES, nv) and their scales, by articulated inertias; only of joints that are doubtful or carried by one."""
    concerned = np.zeros(tree.njoints, bool)
    concerned[doubtful] = True
    for i in range(1, tree.njoints):
        concerned[i] |= concerned[tree.joints[i].parent]
    pivots, scales = np.ones((SAMPLES, tree.nv)), np.zeros((SAMPLES, tree.nv))
    carried: dict[int, tuple[Array, Array]] = {}  # articulated and composite inertias of children, until they are used
    for i in range(tree.njoints - 1, 0, -1):
        if not concerned[i]:
            continue
        joint, S, X = tree.joints[i], axes[i], to_child[i]
        free, whole = (bodies[i] + part for part in carried.pop(i, (np.zeros((SAMPLES, 6, 6)),) * 2))
        scales[:, joint.iv : joint.iv + joint.nv] = _scales(whole, S)
        for n in range(joint.nv - 1, -1, -1):
            k, u = joint.iv + n, free @ S[:, n]
            pivots[:, k] = u @ S[:, n] + tree.armature[k]
            if (np.abs(pivots[:, k]) > ROUNDING * scales[:, k]).all():
                free = free - u[:, :, None] * u[:, None, :] / pivots[:, k, None, None]
        above = carried.get(joint.parent, (0.0, 0.0))
        back = np.swapaxes(X, -1, -2)
        carried[joint.parent] = above[0] + back @ free @ X, above[1] + back @ whole @ X
    return pivots, scales


def _coupled_pivots(model: Model, bodies: list[Array], axes: list[Array], to_child: list[Array]) -> tuple[Array, Array]:
    """The same where mimic joints tie the tree's joints: by its dense inertia matrix."""
    assert model.coupling
    tree, G = model.coupling.tree, model.coupling.G
    jacobians = [np.zeros((SAMPLES, 6, tree.nv))]
    M, scales = np.zeros((SAMPLES, model.nv, model.nv)), np.zeros((SAMPLES, model.nv))
    for i, joint in enumerate(tree.joints[1:], start=1):
        J = to_child[i] @ jacobians[joint.parent]
        J[..., joint.iv : joint.iv + joint.nv] = axes[i]
        jacobians.append(J)
        own = J @ G
        M += np.swapaxes(own, -1, -2) @ bodies[i] @ own
        for part in (slice(3), slice(3, 6)):
            scales += np.linalg.norm(bodies[i][part, part]) * (own[:, part] ** 2).sum(-2)
    M += np.diag(model.armature)
    pivots = np.zeros_like(scales)
    for k in range(model.nv - 1, -1, -1):
        pivots[:, k] = M[:, k, k]
        if (np.abs(pivots[:, k]) > ROUNDING * scales[:, k]).all():
            M -= M[:, :, k, None] * M[:, k, None, :] / pivots[:, k, None, None]
    return pivots, scales


def _tree_steps(model: Model, x: Array) -> Array:
    """Steps (SAMPLES, nv) of the model from its neutral configuration as those of its tree."""
    assert model.coupling
    offsets = [[joint.mimic.offset] if joint.mimic else [0.0] * joint.nv for joint in model.joints[1:]]
    return np.asarray(x @ model.coupling.G.T + np.concatenate(offsets))


def _transform(joint: Joint, S: Array, steps: Array) -> Array:
    """(SAMPLES, 6, 6) from motions of the parent to those of the joint's body, moved by its part of `steps`."""
    twists = steps[:, joint.iv : joint.iv + joint.kind.nv] @ S.T
    X = np.zeros((len(steps), 6, 6))
    for sample, twist in enumerate(twists):
        R = joint.placement[:3, :3] @ _rotation(twist[3:])
        p = joint.placement[:3, :3] @ twist[:3] + joint.placement[:3, 3]
        X[sample, :3, :3] = X[sample, 3:, 3:] = R.T
        X[sample, :3, 3:] = -R.T @ _skew(p)
    return X


def _rotation(w: Array) -> Array:
    """exp(w) (3, 3)"""
    angle = float(np.sqrt(w @ w))
    if angle == 0.0:
        return np.eye(3)
    skew = _skew(w / angle)
    return np.asarray(np.eye(3) + np.sin(angle) * skew + (1.0 - np.cos(angle)) * skew @ skew)


def _skew(p: Array) -> Array:
    x, y, z = p.tolist()
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
