"""Robots from SDF files, those with closed loops too.

A link that is the child of several joints closes a loop. One of these joints is in the tree, the others become `Loop`s:
two frames at the joint's place, one on either body, that stay together as a point (ball), a hinge about their z axes
(revolute), or a weld (fixed). Which one is in the tree: it grows from the root, at each step by the joint that comes first
in the file among those that reach a new link; but a link that some joint of another type reaches, which could not close a
loop, waits for that one as long as the tree can grow elsewhere. Joints are numbered depth first, children as in the file.

- `revolute` and `continuous` joints have their angle as q; `universal` and `revolute2` joints become two revolute ones,
  the second called `<name>_2`, with a body of no mass in between.
- Links behind fixed joints are merged into the joint that moves them; the fixed joint and the link become frames.
- A gearbox is the motor of the joint between its body of reference and its child. That its shaft turns with that joint,
  and springs of balls and of joints that close loops, have no counterpart: this is logged as a warning.
"""

from __future__ import annotations

import heapq
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from saltus.model.builder import ModelBuilder
from saltus.model.checks import Array, ModelError, inertia_flaw, unit_vector
from saltus.model.frames import FrameKind
from saltus.model.joints import JointKind
from saltus.model.mesh_paths import FindMesh, Folders, mesh_finder
from saltus.model.model import Model
from saltus.model.placements import inverse, placement
from saltus.model.safe_xml import read_xml, robot_file
from saltus.model.sdf_xml import GEARBOX, WORLD, SdfJoint, SdfLink, SdfModel, located, numbers, pose_in_link, read_model
from saltus.model.shapes import DEFAULT_COLOR, Shape
from saltus.model.urdf import add_floating_base

KINDS = {
    "revolute": JointKind.REVOLUTE,
    "continuous": JointKind.REVOLUTE,
    "prismatic": JointKind.PRISMATIC,
    "universal": JointKind.REVOLUTE,
    "revolute2": JointKind.REVOLUTE,
    "ball": JointKind.SPHERICAL,
}
ONE_AXIS = ("revolute", "continuous", "prismatic")
TWO_AXES = ("universal", "revolute2")
LOOP_DIMENSIONS = {"ball": 3, "revolute": 5, "continuous": 5, "fixed": 6}
SIZES = {
    "box": (("size", 3),),
    "sphere": (("radius", 1),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
    "ellipsoid": (("radii", 3),),
}

_logger = logging.getLogger(__name__)


def load_sdf(path: str | os.PathLike[str], floating_base: bool = True, package_dirs: Folders = ()) -> Model:
    """The robot that an SDF file describes; a `ModelError` says what is wrong with the file.

    floating_base: as SDF has it, a root link that no joint ties to the world moves freely, on a free flyer named
        `root_joint`, unless the model is static. Otherwise it is fixed to the world.
    package_dirs: where meshes of `model://name/...` are looked for first, as `load_urdf` has it.

    The pose that the file gives to all is the reference configuration `initial`. Visuals are kept as shapes, collision
    shapes if there is no visual at all; these are colliders as well. Meshes are not opened.

    >>> import tempfile
    >>> text = '''<sdf version="1.9"><model name="pendulum">
    ...   <link name="rod"><pose>0 0 1 0 0 0</pose>
    ...     <inertial><pose>0 0 -0.5 0 0 0</pose><mass>1</mass></inertial></link>
    ...   <joint name="hinge" type="revolute"><parent>world</parent><child>rod</child><axis><xyz>0 1 0</xyz></axis></joint>
    ... </model></sdf>'''
    >>> with tempfile.NamedTemporaryFile("w", suffix=".sdf") as file:
    ...     _ = file.write(text)
    ...     file.flush()
    ...     load_sdf(file.name)
    Model('pendulum', nq=1, nv=1, njoints=2, nframes=3)
    """
    return load_changed(path, floating_base, lambda sdf: sdf, package_dirs)


def load_changed(
    path: str | os.PathLike[str],
    floating_base: bool,
    change: Callable[[SdfModel], SdfModel],
    package_dirs: Folders = (),
) -> Model:
    """As `load_sdf`, of what a change makes of the file."""
    file = robot_file(path, "an SDF")
    find = mesh_finder(file, package_dirs)
    root = read_xml(file, "sdf", "an SDF")
    try:
        sdf = change(read_model(root))
        return _build(sdf, file, find, floating_base and not sdf.static)
    except ModelError as error:
        raise ModelError(f"{file}: {error}") from None


@dataclass
class _Places:
    """Where things are on the model that is being built: the joint that moves each link, and where the joints are."""

    model: Array  # (4, 4) pose of the model in the world
    mover: dict[str, int]
    zero: list[Array]  # (4, 4) pose of each joint in the world while no joint moves

    def on(self, link: str, pose: Array) -> tuple[int, Array]:
        """The joint that moves a link, and a pose in the model as a placement there."""
        mover = self.mover[link]
        return mover, inverse(self.zero[mover]) @ self.model @ pose


def _build(sdf: SdfModel, file: Path, find: FindMesh, floating_base: bool) -> Model:
    for joint in sdf.joints.values():
        if joint.kind not in (*KINDS, "fixed", GEARBOX):
            known = ", ".join([*KINDS, "fixed"])
            raise ModelError(f"joint {joint.name!r} has the type {joint.kind!r}, expected one of {known}")
    root, tree, closing = _spanning_tree(sdf)
    builder = ModelBuilder(sdf.name, physical=False, **({} if sdf.gravity is None else {"gravity": sdf.gravity}))
    floating_base = floating_base and root != WORLD
    places = _Places(sdf.pose, {WORLD: 0}, [np.eye(4)])
    if floating_base:
        add_floating_base(builder)
        places.zero.append(sdf.pose @ sdf.links[root].pose)
    _add_tree(builder, sdf, root, tree, places)
    for name, (link, pose) in sdf.frames.items():
        builder.add_frame(name, *places.on(link, pose))
    shapes = _link_shapes(sdf, find)
    for name in sdf.links:
        mover, placed = places.on(name, sdf.links[name].pose)
        builder.add_shapes(mover, shapes[name], placed)
        builder.add_colliders(mover, _link_colliders(sdf.links[name], find), placed)
    for joint in closing:
        if joint.kind in LOOP_DIMENSIONS:
            pose = joint.pose @ placement(_turned_to_z(joint))
            ends = places.on(joint.parent, pose), places.on(joint.child, pose)
            builder.close_loop(joint.name, *ends[0], *ends[1], LOOP_DIMENSIONS[joint.kind])
    _add_motors(builder, sdf, tree)
    _warn_of_losses(sdf, closing, file)
    model = builder.build()
    initial = model.neutral()
    if floating_base:
        from scipy.spatial.transform import Rotation  # type: ignore[import-untyped]

        base = places.zero[1]
        initial[:7] = [*base[:3, 3], *Rotation.from_matrix(base[:3, :3]).as_quat()]
    return model.replace(reference_configurations={"initial": initial})


def _add_tree(
    builder: ModelBuilder, sdf: SdfModel, root: str, tree: dict[str, list[SdfJoint]], places: _Places
) -> None:
    """Adds the links and the joints between them, depth first; keeps `places`."""
    if root != WORLD:
        places.mover[root] = len(places.zero) - 1
        _add_link(builder, sdf.links[root], places, None)
    stack = tree.get(root, [])[::-1]
    while stack:
        joint = stack.pop()
        (mover, at), frame = places.on(joint.parent, joint.pose), None
        if joint.kind == "fixed":
            frame = builder.add_frame(joint.name, mover, at, FrameKind.FIXED_JOINT)
        else:
            for name, settings in _joints_of(joint):
                mover, at = builder.add_joint(name, KINDS[joint.kind], mover, at, **settings), np.eye(4)
                places.zero.append(sdf.pose @ joint.pose)
        places.mover[joint.child] = mover
        _add_link(builder, sdf.links[joint.child], places, frame)
        stack += tree.get(joint.child, [])[::-1]


def _spanning_tree(sdf: SdfModel) -> tuple[str, dict[str, list[SdfJoint]], list[SdfJoint]]:
    """The root, the tree's joints below each link, and the joints that close loops; all in the order of the file."""
    joints = [joint for joint in sdf.joints.values() if joint.kind != GEARBOX]
    children = {joint.child for joint in joints}
    roots = [link for link in sdf.links if link not in children]
    if any(joint.parent == WORLD for joint in joints):
        roots.insert(0, WORLD)
    if not sdf.links:
        raise ModelError("there is no link")
    if len(roots) != 1:
        found = f"{len(roots)} roots, {', '.join(roots[:5])}" if roots else "no root: the links form a cycle"
        raise ModelError(f"there are {found}; expected one link, or the world, that is the child of no joint")
    below: dict[str, list[int]] = {}
    must_be_in_tree = {joint.child for joint in joints if joint.kind not in LOOP_DIMENSIONS}
    for index, joint in enumerate(joints):
        below.setdefault(joint.parent, []).append(index)

    def candidates(link: str) -> list[tuple[bool, int]]:
        return [
            (joints[index].kind in LOOP_DIMENSIONS and joints[index].child in must_be_in_tree, index)
            for index in below.get(link, [])
        ]

    reached, chosen, heap = {roots[0]}, set(), candidates(roots[0])
    heapq.heapify(heap)
    while heap:
        _, index = heapq.heappop(heap)
        child = joints[index].child
        if child not in reached:
            reached.add(child)
            chosen.add(index)
            for candidate in candidates(child):
                heapq.heappush(heap, candidate)
    lost = [link for link in sdf.links if link not in reached]
    if lost:
        raise ModelError(f"these links form a cycle, or hang below one: {', '.join(lost[:5])}")
    tree: dict[str, list[SdfJoint]] = {}
    for index in sorted(chosen):
        tree.setdefault(joints[index].parent, []).append(joints[index])
    return roots[0], tree, [joint for index, joint in enumerate(joints) if index not in chosen]


def _joints_of(joint: SdfJoint) -> list[tuple[str, dict[str, Any]]]:
    """Names and settings of the joints, one or two, that a joint of the file becomes."""
    if joint.kind == "ball":
        return [(joint.name, {})]
    count = 2 if joint.kind in TWO_AXES else 1
    endless = {"lower": -np.inf, "upper": np.inf} if joint.kind == "continuous" else {}
    if len(joint.axes) != count:
        raise ModelError(f"joint {joint.name!r} is {joint.kind} but has {len(joint.axes)} axes, expected {count}")
    return [(name, axis | endless) for name, axis in zip([joint.name, f"{joint.name}_2"], joint.axes, strict=False)]


def _add_motors(builder: ModelBuilder, sdf: SdfModel, tree: dict[str, list[SdfJoint]]) -> None:
    """The gearboxes. What comes out of one turns by -ratio times what goes in, so that efforts are divided by that."""
    single = {joint.child: joint for below in tree.values() for joint in below if joint.kind in ONE_AXIS}
    for gearbox in sdf.joints.values():
        if gearbox.gear and gearbox.gear[1] and gearbox.child in single:
            (body, ratio), joint = gearbox.gear, single[gearbox.child]
            if joint.parent == body:
                builder.add_actuator(gearbox.name, joint.name, -1.0 / ratio)


def _turned_to_z(joint: SdfJoint) -> Array:
    """The rotation (3, 3) that takes z to the axis of a joint that closes a loop."""
    from saltus.model.tree import canonical_rotation

    if LOOP_DIMENSIONS[joint.kind] != 5:
        return np.eye(3)
    ((_, settings),) = _joints_of(joint)
    return canonical_rotation(JointKind.REVOLUTE, unit_vector(settings["axis"], f"axis of joint {joint.name!r}"))


def _add_link(builder: ModelBuilder, link: SdfLink, places: _Places, parent_frame: int | None) -> None:
    flaw = inertia_flaw(link.mass, link.inertia)
    if flaw:
        _logger.warning("link %r: %s", link.name, flaw)
    joint, at = places.on(link.name, link.pose)
    builder.add_body(joint, link.mass, link.com, link.inertia, at, link.name, parent_frame=parent_frame)


def _link_shapes(sdf: SdfModel, find: FindMesh) -> dict[str, list[Shape]]:
    """Visuals, or collision shapes if there is no visual at all; placed in their links."""
    links = [link.element for link in sdf.links.values()]
    tag = "visual" if any(link.find("visual") is not None for link in links) else "collision"
    return {
        link.get("name"): [shape for element in link.findall(tag) if (shape := _shape(element, find))] for link in links
    }


def _link_colliders(link: SdfLink, find: FindMesh) -> list[Shape]:
    """Its collision shapes, placed in it, with the friction that the file gives their surfaces."""
    found = []
    for element in link.element.findall("collision"):
        shape, mu = _shape(element, find), element.find("surface/friction/ode/mu")
        if shape is not None:
            friction = None if mu is None else float(numbers(mu, 1)[0])
            found.append(replace(shape, frame=link.name, friction=friction))
    return found


def _shape(element: Any, find: FindMesh) -> Shape | None:
    for geometry in element.findall("geometry/*"):
        path: str | None = ""
        if geometry.tag == "mesh":
            path = find((geometry.findtext("uri") or "").strip(), located(element))
            scale = geometry.find("scale")
            size = np.ones(3) if scale is None else numbers(scale, 3)
        elif geometry.tag in SIZES:
            parts = [(geometry.find(name), count, name) for name, count in SIZES[geometry.tag]]
            for part, _, name in parts:
                if part is None:
                    raise ModelError(f"{located(geometry)} has no <{name}>")
            size = np.concatenate([numbers(part, count) for part, count, _ in parts])
        else:
            continue
        color = _color(element, "diffuse") or _color(element, "ambient") or DEFAULT_COLOR
        if path is not None:
            name = element.get("name") or element.getparent().get("name")
            return Shape(name, 0, geometry.tag, size, pose_in_link(element), np.array(color), path)
        return None
    if element.find("geometry/empty") is None:
        _logger.warning("%s is left out: its geometry is none of %s", located(element), ", ".join([*SIZES, "mesh"]))
    return None


def _color(element: Any, tag: str) -> tuple[float, ...] | None:
    """Three or four numbers, the last one being the opacity."""
    color = element.find(f"material/{tag}")
    if color is None:
        return None
    count = len((color.text or "").split())
    values = numbers(color, 4 if count != 3 else 3)
    return (*values, 1.0)[:4]


def _warn_of_losses(sdf: SdfModel, closing: list[SdfJoint], file: Path) -> None:
    joints, cut = sdf.joints.values(), {joint.name for joint in closing}
    lost = {
        "loops closed by another joint than ball, revolute or fixed": [
            joint.name for joint in closing if joint.kind not in LOOP_DIMENSIONS
        ],
        "shafts that gearboxes turn": [joint.name for joint in joints if joint.kind == GEARBOX],
        "springs of balls and of joints that close loops": [
            joint.name for joint in joints if joint.springs and (joint.name in cut or joint.kind == "ball")
        ],
    }
    for what, which in lost.items():
        if which:
            _logger.warning("%s: there is no counterpart for %s: %s", file, what, ", ".join(which))
