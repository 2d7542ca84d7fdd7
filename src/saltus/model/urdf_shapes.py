"""The shapes of a URDF file: its visuals, or its collision shapes if it has no visual at all. Meshes are not opened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from saltus.model.builder import ModelBuilder
from saltus.model.checks import Array
from saltus.model.mesh_paths import mesh_path
from saltus.model.placements import placement, rotation_from_rpy

SIZE_ATTRIBUTES = {
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "mesh": ("scale",),
}


@dataclass(frozen=True)
class LinkShape:
    """A shape, placed (4, 4) in the frame of its link."""

    name: str
    kind: str
    size: Array
    placement: Array
    color: Array | None
    path: str

    def add_to(self, builder: ModelBuilder, joint: int, link: Array) -> None:
        """Fixes it to a joint, in whose frame the link has this placement."""
        color = {} if self.color is None else {"color": self.color}
        where = link @ self.placement
        builder.add_shape(joint, self.kind, self.size, where, path=self.path, name=self.name, **color)


def link_shapes(robot: Any, file: Path) -> dict[str, list[LinkShape]]:
    """By the names of the links. `robot`: the checked element of `urdf_xml`."""
    colors = {
        material.get("name"): material.find("color")
        for material in reversed(list(robot.iter("material")))  # the first of a name counts
        if material.find("color") is not None
    }
    tag = "visual" if robot.find("link/visual") is not None else "collision"
    return {
        link.get("name"): [shape for element in link.findall(tag) for shape in _shapes(element, link, colors, file)]
        for link in robot.findall("link")
    }


def _shapes(element: Any, link: Any, colors: dict[str, Any], file: Path) -> Iterator[LinkShape]:
    """The shapes of a `<visual>` or `<collision>`: one, but for a mesh that is left out or an unknown geometry."""
    name = element.get("name") or link.get("name")
    for geometry in element.findall("geometry/*")[:1]:
        kind = geometry.tag
        path: str | None = ""
        if kind == "mesh":
            path = mesh_path(file, geometry.get("filename"), f"link {link.get('name')!r}")
        if path is None:
            continue
        words = [geometry.get(attribute, "1 1 1") for attribute in SIZE_ATTRIBUTES[kind]]
        size = np.array(" ".join(words).split(), float)
        yield LinkShape(name, kind, size, _origin(element), _color(element.find("material"), colors), path)


def _origin(element: Any) -> Array:
    origin = element.find("origin")
    if origin is None:
        return np.eye(4)
    xyz, rpy = (np.array(origin.get(name, "0 0 0").split(), float) for name in ("xyz", "rpy"))
    return placement(rotation_from_rpy(rpy), xyz)


def _color(material: Any, colors: dict[str, Any]) -> Array | None:
    if material is None:
        return None
    color = material.find("color")
    if color is None:
        color = colors.get(material.get("name"))
    return None if color is None else np.array(color.get("rgba").split(), float)
