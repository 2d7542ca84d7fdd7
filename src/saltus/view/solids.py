"""What is drawn of a robot: its shapes, the meshes that some of them name, or a skeleton if it has none.

A solid is a shape of one colour. A mesh file of several colours becomes several solids.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from saltus.model.checks import Array
from saltus.model.joints import JointKind
from saltus.model.model import Model
from saltus.model.shapes import DEFAULT_COLOR, Shape
from saltus.view.mesh_files import Mesh, Part, creased, read_mesh

LINK_COLOR = (0.42, 0.50, 0.60, 1.0)
JOINT_COLOR = (0.93, 0.49, 0.19, 1.0)

logger = logging.getLogger(__name__)


class Solid(NamedTuple):
    shape: Shape
    mesh: Mesh | None  # for shapes of kind mesh


def solids_of(model: Model) -> tuple[Solid, ...]:
    """The shapes of a model with their meshes; its skeleton if nothing of it can be drawn.

    What of its mesh files cannot be read is left out, and named in one warning with the links that it belongs to.

    >>> import saltus as sl
    >>> builder = sl.ModelBuilder("pendulum")
    >>> hinge = builder.add_joint("hinge", "revolute", axis=(0, 1, 0))
    >>> _ = builder.add_body(hinge, mass=1.0, com=(0, 0, -0.5))
    >>> [solid.shape.kind for solid in solids_of(builder.build())]
    ['sphere', 'capsule']
    """
    solids: list[Solid] = []
    files: dict[str, list[Part]] = {}  # each is read once, however many shapes it is for
    flaws: dict[str, str] = {}  # of files
    for shape in model.shapes:
        if shape.kind != "mesh":
            solids.append(Solid(shape, None))
            continue
        if shape.path not in files:
            files[shape.path], flaw = read_mesh(shape.path)
            if flaw:
                flaws[shape.path] = flaw
        solids.extend(_solid(shape, part) for part in files[shape.path])
    if flaws:
        named = [f"{path} of {_carriers(model, path)} ({flaw})" for path, flaw in flaws.items()]
        logger.warning(
            "model %r: %d of its mesh files cannot be read as they are: %s", model.name, len(named), "; ".join(named)
        )
    return tuple(solids) or tuple(Solid(shape, None) for shape in skeleton(model))


def skeleton(model: Model) -> tuple[Shape, ...]:
    """Spheres at the joints, and capsules from a joint to those it carries; at a tip, to what is farthest of its frames
    and the centre of mass."""
    tips = set(range(1, model.njoints)) - {joint.parent for joint in model.joints}
    links = [(joint.parent, joint.placement[:3, 3]) for joint in model.joints[1:] if joint.kind != JointKind.FREE_FLYER]
    for tip in sorted(tips):
        ends = [model.joints[tip].com, *(frame.placement[:3, 3] for frame in model.frames if frame.joint == tip)]
        links.append((tip, max(ends, key=lambda end: float(np.linalg.norm(end)))))
    links = [(index, end) for index, end in links if np.linalg.norm(end) > 1e-6]
    lengths = [float(np.linalg.norm(end)) for _, end in links]
    radius = 0.06 * float(np.median(lengths)) if lengths else 0.02
    balls = [
        Shape(joint.name, index, "sphere", np.array([1.5 * radius]), np.eye(4), np.array(JOINT_COLOR))
        for index, joint in enumerate(model.joints[1:], start=1)
    ]
    bars = [
        Shape("", index, "capsule", np.array([radius, length]), _along(end), np.array(LINK_COLOR))
        for (index, end), length in zip(links, lengths, strict=True)
    ]
    return (*balls, *bars)


def triangulated(solid: Solid) -> Mesh:
    """The triangles of any solid, its vertices doubled along sharp edges.

    >>> box = Shape("", 0, "box", (0.2, 0.1, 0.02), placement=np.eye(4))
    >>> triangulated(Solid(box, None)).faces.shape
    (12, 3)
    """
    from trimesh import creation

    shape = solid.shape
    if solid.mesh is not None:
        return solid.mesh
    if shape.kind == "box":
        return creased(creation.box(extents=shape.size))
    if shape.kind == "cylinder":
        return creased(creation.cylinder(radius=shape.size[0], height=shape.size[1], sections=48))
    if shape.kind == "capsule":
        capsule = creation.capsule(radius=shape.size[0], height=shape.size[1], count=[32, 32])
        return Mesh(np.asarray(capsule.vertices) - [0, 0, capsule.bounds.mean(axis=0)[2]], np.asarray(capsule.faces))
    ball = creation.uv_sphere(radius=1.0, count=[24, 32])
    return Mesh(np.asarray(ball.vertices) * shape.size, np.asarray(ball.faces))


def half_extents(solid: Solid, rotation: Array) -> tuple[Array, Array]:
    """The middle (3,) of a solid in its shape's frame, and half its extents (..., 3) along the world's axes, turned by
    `rotation` (..., 3, 3)."""
    size, along, origin = solid.shape.size, rotation[..., 2], np.zeros(3)
    if solid.mesh is not None:
        low, high = solid.mesh.vertices.min(axis=0), solid.mesh.vertices.max(axis=0)
        return (low + high) / 2, abs(rotation) @ ((high - low) / 2)
    match solid.shape.kind:
        case "box":
            return origin, abs(rotation) @ (size / 2)
        case "cylinder":
            return origin, abs(along) * size[1] / 2 + size[0] * np.sqrt(np.maximum(1 - along**2, 0))
        case "capsule":
            return origin, abs(along) * size[1] / 2 + size[0]
        case _:  # ellipsoid, sphere
            return origin, np.sqrt(rotation**2 @ np.broadcast_to(size, 3) ** 2)


def _carriers(model: Model, path: str) -> str:
    """The names of the shapes, mostly those of links, that a mesh file is for."""
    return ", ".join(dict.fromkeys(repr(shape.name) for shape in model.shapes if shape.path == path))


def _solid(shape: Shape, part: Part) -> Solid:
    """A part of a mesh file, scaled as the shape says, in its own colour if that counts, or the shape was given none."""
    mesh, color, decided = part
    faces = mesh.faces[:, ::-1] if np.prod(shape.size) < 0 else mesh.faces  # a mirror turns triangles inside out
    own = decided or np.allclose(shape.color, DEFAULT_COLOR)
    return Solid(replace(shape, color=color if own else shape.color), Mesh(mesh.vertices * shape.size, faces))


def _along(end: Array) -> Array:
    """The placement (4, 4) of a capsule from the origin to `end` (3,)."""
    z = end / np.linalg.norm(end)
    x = np.cross(z, np.eye(3)[np.argmin(abs(z))])
    x /= np.linalg.norm(x)
    placement = np.eye(4)
    placement[:3, :3] = np.stack([x, np.cross(z, x), z], axis=1)
    placement[:3, 3] = end / 2
    return placement
