"""The shapes of a URDF file: its visuals, or its collision shapes if it has no visual at all; and its colliders. Meshes are
not opened."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from saltus.model.checks import Array
from saltus.model.mesh_paths import FindMesh
from saltus.model.shapes import DEFAULT_COLOR, Shape
from saltus.model.urdf_xml import origin_of

SAME = 1e-6
"""How far a ball may be off the end of a cylinder, and its radius off that one's, for both to be parts of a capsule [m]."""

_logger = logging.getLogger(__name__)

SIZE_ATTRIBUTES = {
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "mesh": ("scale",),
}
KINDS = ", ".join(SIZE_ATTRIBUTES)


def link_shapes(robot: Any, find: FindMesh) -> dict[str, list[Shape]]:
    """By the names of the links, each shape placed in its link. `robot`: the checked element of `urdf_xml`."""
    colors = {
        material.get("name"): material.find("color")
        for material in reversed(list(robot.iter("material")))  # the first of a name counts
        if material.find("color") is not None
    }
    tag = "visual" if robot.find("link/visual") is not None else "collision"
    return {
        link.get("name"): [shape for element in link.findall(tag) for shape in _shapes(element, link, colors, find)]
        for link in robot.findall("link")
    }


def link_colliders(robot: Any, find: FindMesh) -> dict[str, list[Shape]]:
    """By the names of the links, their collision shapes; a cylinder with a ball at either end is a capsule."""
    return {
        link.get("name"): _with_capsules(
            [
                replace(shape, frame=link.get("name"), color=np.array(DEFAULT_COLOR))
                for element in link.findall("collision")
                for shape in _shapes(element, link, {}, find)
            ]
        )
        for link in robot.findall("link")
    }


def _with_capsules(shapes: list[Shape]) -> list[Shape]:
    kept = list(shapes)
    for shape in shapes:
        if shape.kind == "cylinder":
            radius, length = shape.size
            ends = [shape.placement[:3, 3] + side * length / 2.0 * shape.placement[:3, 2] for side in (-1.0, 1.0)]
            balls = [
                ball
                for end in ends
                for ball in kept
                if ball.kind == "sphere"
                and abs(ball.size[0] - radius) < SAME
                and np.linalg.norm(ball.placement[:3, 3] - end) < SAME
            ]
            if len(balls) == len(ends):
                kept = [each for each in kept if all(each is not ball for ball in balls)]
                kept[kept.index(shape)] = replace(shape, kind="capsule")
    return kept


def _shapes(element: Any, link: Any, colors: dict[str, Any], find: FindMesh) -> Iterator[Shape]:
    """The shapes of a `<visual>` or `<collision>`: one, but for a mesh that is left out or an unknown geometry."""
    name = element.get("name") or link.get("name")
    geometries = element.findall("geometry/*")[:1]
    if not geometries:
        _logger.warning("link %r: a %s is left out: its geometry is none of %s", link.get("name"), element.tag, KINDS)
    for geometry in geometries:
        kind = geometry.tag
        path: str | None = ""
        if kind == "mesh":
            path = find(geometry.get("filename"), f"link {link.get('name')!r}")
        if path is None:
            continue
        words = [geometry.get(attribute, "1 1 1") for attribute in SIZE_ATTRIBUTES[kind]]
        size = np.array(" ".join(words).split(), float)
        yield Shape(name, 0, kind, size, origin_of(element), _color(element.find("material"), colors), path)


def _color(material: Any, colors: dict[str, Any]) -> Array:
    color = None
    if material is not None:
        color = material.find("color")
        color = colors.get(material.get("name")) if color is None else color
    return np.array(DEFAULT_COLOR if color is None else color.get("rgba").split(), float)
