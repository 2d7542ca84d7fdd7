"""What kernels see of a model: a tree of bodies in canonical frames, one part of their tables (kernel/tables.py).

A canonical frame is a joint frame turned so that the axis of a revolute or prismatic joint is z. Kernels then have one
case for each of them and no multiplication by zero. The motion subspace S of every joint is a set of unit vectors of
its canonical frame: degree of freedom k moves its body along `tree.axis[k]` (0 to 5, linear first).

Body 0 is the universe; a body's parent comes before it. `turned[i]` is the rotation from the canonical frame of body i to
its joint frame, the one that users see.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from saltus.kernel import Configurations, Filled, Layout, Number, Part, Tables, Varied, declare
from saltus.model.checks import ModelError
from saltus.model.joint_kernels import defects
from saltus.model.joints import Joint, JointKind
from saltus.spatial.algebra import SE3, Mat3, Sym3, Vec3, transpose
from saltus.spatial.inertia import Rigid, Solid

if TYPE_CHECKING:
    from saltus.model.model import Model

SIZES = ("nj", "nq", "nv", "nf", "nvv")
"""Numbers of joints (with the universe), coordinates, degrees of freedom, frames, and entries of a matrix (nv, nv)."""

INTS = Layout(
    nj=dict.fromkeys(("parent", "kind", "iq", "iv", "end", "leaf", "fork", "last_child", "renamed", "turned_back")),
    nv=dict.fromkeys(("axis", "body", "above")),
    nf={"frame_body": None},
)
"""`end`: one past the last degree of freedom. `fork`: a child is not the body just after. `last_child`: of its parent, so
the first one met on the way to the root. `renamed`: which of the parent's axes x, y, z (0 to 2) lies along x, if the others
follow in turn; else -1. `turned_back`: the same for a joint's frame seen from the canonical one. `above`: the degree of
freedom that comes before this one on the way from the root, or -1."""

REALS = Layout(
    one={"gravity": Vec3},
    nj={"placement": SE3, "inertia": Rigid, "solid": Solid, "turned": Mat3},
    nv=dict.fromkeys(("armature", "damping", "spring", "rest")),
    nf={"frame_placement": SE3},
)

AXES = {
    JointKind.REVOLUTE: (5,),
    JointKind.CONTINUOUS: (5,),
    JointKind.PRISMATIC: (2,),
    JointKind.PLANAR: (0, 1, 5),
    JointKind.SPHERICAL: (3, 4, 5),
    JointKind.TRANSLATION: (0, 1, 2),
    JointKind.FREE_FLYER: (0, 1, 2, 3, 4, 5),
}
"""The axes of its frame along which a joint moves."""


MOST_DOFS = 46_340
"""Above, the entries of the inertia matrix cannot be counted by 32 bits."""


def measure(model: Model) -> dict[str, int]:
    if model.nv > MOST_DOFS:
        raise ModelError(f"model {model.name!r} has {model.nv} degrees of freedom, expected at most {MOST_DOFS}")
    return {"nj": len(model.joints), "nq": model.nq, "nv": model.nv, "nf": len(model.frames), "nvv": model.nv**2}


def fill(model: Model, ints: Any, reals: Any) -> None:
    fill_ints(ints, model)
    fill_reals(reals, model)
    for i in range(len(model.joints)):
        ints.renamed[i] = renamed(reals.placement[i].R)
        ints.turned_back[i] = renamed(transpose(reals.turned[i]))  # type: ignore[no-untyped-call]


def fill_ints(table: Any, model: Model) -> None:
    last_dof = [-1] * model.njoints
    children: dict[int, int] = {}
    for i, joint in enumerate(model.joints):
        table.parent[i], table.kind[i], table.leaf[i] = joint.parent, int(joint.kind), 1
        table.iq[i], table.iv[i], table.end[i] = joint.iq, joint.iv, joint.iv
        if i == 0:
            continue
        children[joint.parent] = i
        table.leaf[joint.parent] = 0
        table.fork[joint.parent] |= joint.parent != i - 1
        above = last_dof[joint.parent]
        for k, axis in enumerate(AXES[joint.kind], joint.iv):
            table.axis[k], table.body[k], table.above[k] = axis, i, above
            above = k
        last_dof[i], table.end[i] = above, joint.iv + joint.nv
    for child in children.values():
        table.last_child[child] = 1
    for k, frame in enumerate(model.frames):
        table.frame_body[k] = frame.joint


def fill_reals(table: Any, model: Model) -> None:
    table.gravity[0] = Vec3(*model.gravity)
    turned = [canonical_rotation(joint.kind, joint.axis) for joint in model.joints]
    for i, joint in enumerate(model.joints):
        table.placement[i] = se3(seen_from(turned[max(joint.parent, 0)], joint.placement, turned[i]))
        table.turned[i] = Mat3(*turned[i].ravel())
        com = turned[i].T @ joint.com
        about_com = turned[i].T @ joint.inertia @ turned[i]
        moment = about_com + joint.mass * (com @ com * np.eye(3) - np.outer(com, com))
        table.inertia[i] = Rigid(joint.mass, Vec3(*(joint.mass * com)), Sym3(*moment[np.triu_indices(3)]))
        table.solid[i] = solid(joint.mass, com, about_com)
    for name, values in (
        ("armature", model.armature),
        ("damping", model.damping),
        ("spring", model.stiffness),
        ("rest", model.spring_reference),
    ):
        column = getattr(table, name)
        for k, value in enumerate(values):
            column[k] = value
    for k, frame in enumerate(model.frames):
        table.frame_placement[k] = se3(seen_from(turned[frame.joint], frame.placement, np.eye(3)))


def solid(mass: float, com: NDArray[np.float64], inertia: NDArray[np.float64]) -> Solid:
    """A body of this mass and rotational inertia (3, 3) about its centre of mass."""
    (low, middle, high), axes = np.linalg.eigh(inertia)
    a, b = np.sqrt(high - middle) * axes[:, 2], np.sqrt(middle - low) * axes[:, 0]
    return Solid(mass, Vec3(*com), middle, Vec3(*a), Vec3(*b))


TURNS = [tuple(np.roll(np.eye(3), first, axis=0).ravel().tolist()) for first in range(3)]


def renamed(R: Mat3) -> int:
    """Which axis of the parent lies along x of a frame turned by R, if R only renames axes in turn; else -1."""
    return next((first for first, turn in enumerate(TURNS) if turn == R), -1)


def se3(matrix: NDArray[np.float64]) -> SE3:
    return SE3(Mat3(*matrix[:3, :3].ravel()), Vec3(*matrix[:3, 3]))


ROUNDED = 2.0 * float(np.finfo(np.float64).eps)
"""What rounding makes of a 0 or 1 in a rotation: the cosine of a right angle is 6e-17. Kernels spare what is 0."""


def seen_from(parent: NDArray[np.float64], placement: NDArray[np.float64], child: NDArray[np.float64]) -> Any:
    """A placement between joint frames as one between their canonical frames."""
    result = np.eye(4)
    R = result[:3, :3] = parent.T @ placement[:3, :3] @ child
    along = np.round(R)
    result[:3, :3] = np.where(np.abs(R - along) < ROUNDED, along, R)
    result[:3, 3] = parent.T @ placement[:3, 3]
    return result


def canonical_rotation(kind: JointKind, axis: NDArray[np.float64]) -> NDArray[np.float64]:
    """A rotation that takes z to the joint's axis; where that is x, y or z it renames axes in turn, free of rounding."""
    if kind not in (JointKind.REVOLUTE, JointKind.CONTINUOUS, JointKind.PRISMATIC):
        return np.eye(3)
    smallest = np.eye(3)[(int(np.argmax(np.abs(axis))) + 2) % 3]
    x = cross(smallest, axis)
    x /= np.linalg.norm(x)
    return np.column_stack([x, cross(axis, x), axis])


def cross(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """The cross product of two vectors (3,); NumPy's takes its time for so few numbers."""
    (a0, a1, a2), (b0, b1, b2) = a.tolist(), b.tolist()
    return np.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])


def unit_parts(model: Model) -> Iterator[tuple[Joint, slice]]:
    """The joints with coordinates that must be of unit length, and where in q those are; mimic joints have none."""
    for joint in model.joints[1:]:
        unit = joint.kind.unit_coordinates
        if unit.stop and not joint.mimic:
            yield joint, slice(joint.iq + unit.start, joint.iq + unit.stop)


def angles(model: Model) -> Iterator[Joint]:
    """The joints with an angle among their coordinates that sine and cosine are taken of; mimic joints have none."""
    return (joint for joint in model.joints[1:] if joint.kind is JointKind.REVOLUTE and not joint.mimic)


UNIT_SHARE = 0.999
"""Of the tolerance on unit length, in words: the kernels' own rounding may differ."""


def explain(model: Model, q: NDArray[np.float64], number: Number) -> tuple[tuple[int, ...], str] | None:
    """The first configuration of q (..., nq) with a part that is not of unit length, or an angle larger than `sincos` takes
    in numbers of this type, and which; None if there is none."""
    found = []
    for joint in angles(model):
        wrong = np.argwhere(np.abs(q[..., joint.iq]) > number.largest_angle)
        if len(wrong):
            place = tuple(wrong[0].tolist())
            angle = f"the angle of joint {joint.name!r}, q[{joint.iq}], is {q[place][joint.iq]:.9g} rad"
            found.append((place, f"{angle}, expected at most {number.largest_angle:g} in {number.bits} bits"))
    for joint, part in unit_parts(model):
        norms = np.linalg.norm(q[..., part], axis=-1)
        wrong = np.argwhere(np.abs(norms * norms - 1.0) > UNIT_SHARE * number.unit_tolerance)
        if len(wrong):
            place = tuple(wrong[0].tolist())
            what = "quaternion" if part.stop - part.start == 4 else "cosine and sine"
            where = f"joint {joint.name!r}, q[{part.start}:{part.stop}]"
            found.append((place, f"the {what} of {where}, has norm {float(norms[place]):.9g}, expected 1"))
    return min(found, key=lambda each: each[0], default=None)


def not_allowed(model: Model, q: NDArray[np.float64], number: Number) -> NDArray[np.bool_]:
    """Which configurations of q (..., nq) have a part that is not of unit length, or too large an angle."""
    wrong = np.zeros(q.shape[:-1], bool)
    for joint in angles(model):
        wrong |= np.abs(q[..., joint.iq]) > number.largest_angle
    for _, part in unit_parts(model):
        wrong |= np.abs((q[..., part] ** 2).sum(axis=-1) - 1.0) > UNIT_SHARE * number.unit_tolerance
    return wrong


def neutral(model: Model) -> NDArray[np.float64]:
    """The configuration (nq,) in which no joint moves its body."""
    own: Model = getattr(model, "model", model)  # that of a model with constraints
    return own.neutral()


DENSE = 4
"""Joints that one counts for whose frame is not along the axes of its parent's: no product is spared there."""

LIGHT, HEAVY = 90, 250
"""Extents up to which code for one robot is faster than that for all, or as fast: for algorithms that do little for each
joint, and for those that do much (`python -m benchmarks.specialised`; docs/specialised.md)."""


def extent(filled: Filled) -> int:
    """The number of joints, dense ones counted `DENSE` times."""
    renamed = INTS.view(filled.parts[0].ints, filled.sizes).renamed
    return sum(1 if renamed[i] >= 0 else DENSE for i in range(1, filled.sizes["nj"]))


CONFIGURATIONS = Configurations(defects, explain, not_allowed, neutral)
TREE = Part(SIZES, INTS, REALS, measure, fill, of_tree=True)
INERTIAS = Varied("inertias", "nj 10", {"inertia": Rigid, "solid": Rigid})
TABLES = Tables([TREE], CONFIGURATIONS, extent, INERTIAS)
algorithm = partial(declare, TABLES)
"""The decorator of every algorithm on models: @algorithm(inputs={...}, outputs={...}, work=Layout(...))."""
