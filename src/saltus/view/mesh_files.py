"""Mesh files, read by trimesh: triangles in parts of one colour each.

A part with a texture has the mean of it, where the texture is on the part. A texture of a COLLADA file (.dae) that leads
nowhere, as many do, would cost the parts that wear it: it is replaced by a colour before trimesh reads the file.

Formats that are made to hold materials (COLLADA, glTF) say how their parts look, whatever the file of the robot says, as
RViz has it; of the others, which may have a colour by accident, it is the other way round.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saltus.model.checks import Array
from saltus.model.mesh_paths import home_of
from saltus.model.safe_xml import read_xml
from saltus.model.shapes import DEFAULT_COLOR

CREASE = np.radians(30.0)  # edges sharper than this are drawn sharp
WITH_MATERIALS = (".dae", ".gltf", ".glb")
GREY = (0.5, 0.5, 0.5)  # of a texture of which nothing is known


class Mesh(NamedTuple):
    """Triangles in the frame of their shape."""

    vertices: Array  # (V, 3) [m]
    faces: NDArray[np.int64]  # (F, 3)


class Part(NamedTuple):
    mesh: Mesh
    color: Array  # (4,) red, green, blue, opacity
    decided: bool  # whether it has this colour, whatever the robot's file says


def read_mesh(path: str) -> tuple[list[Part], str]:
    """The parts of a mesh file, and what of it could not be read; that is empty if all could.

    Whatever a mesh reader may stumble over, a picture is no reason to fail.
    """
    import trimesh

    file, flaw, expected = Path(path), "", 1
    if not file.is_file():
        return [], "there is no such file"
    try:
        if file.suffix.lower() == ".dae":
            text, expected = _without_broken_textures(file)
            resolver = trimesh.resolvers.FilePathResolver(path)
            scene = trimesh.load_scene(io.BytesIO(text), file_type="dae", resolver=resolver)
        else:
            scene = trimesh.load_scene(path)
        parts: list[Any] = [part for part in scene.dump() if isinstance(part, trimesh.Trimesh) and len(part.faces)]
        decides = file.suffix.lower() in WITH_MATERIALS
        found = [Part(creased(part), _color(part), decides and part.visual.defined) for part in parts]
    except Exception as error:
        return [], str(error) or type(error).__name__
    if not found:
        flaw = "there are no triangles in it"
    elif len(found) < expected:
        flaw = f"only {len(found)} of its {expected} parts"
    return found, flaw


def creased(mesh: Any) -> Mesh:
    """Faces that meet smoothly, directly or over others, are a patch; each patch gets vertices of its own."""
    from scipy.sparse import coo_array  # type: ignore[import-untyped]
    from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]

    faces = np.asarray(mesh.faces, dtype=np.int64)
    smooth = mesh.face_adjacency[mesh.face_adjacency_angles < CREASE]
    links = coo_array((np.ones(len(smooth)), smooth.T), shape=(len(faces), len(faces)))
    _, patch = connected_components(links, directed=False)
    corners = faces + len(mesh.vertices) * patch.astype(np.int64)[:, None]
    kept, renumbered = np.unique(corners, return_inverse=True)
    return Mesh(np.asarray(mesh.vertices, dtype=np.float64)[kept % len(mesh.vertices)], renumbered.reshape(-1, 3))


def _color(part: Any) -> Array:
    visual = part.visual
    if not visual.defined:
        return np.array(DEFAULT_COLOR)
    material = getattr(visual, "material", None)
    color = np.asarray(visual.main_color if material is None else material.main_color, dtype=np.float64)[:4] / 255.0
    texture = getattr(material, "baseColorTexture", None) or getattr(material, "image", None)
    if texture is not None:
        color = np.array([*_mean(texture, getattr(visual, "uv", None)), color[3]])
    return color


def _mean(image: Any, uv: Array | None = None) -> Array:
    """The mean colour (3,) of an image, there where the corners of a mesh are in it."""
    pixels = np.asarray(image.convert("RGB"), dtype=np.float64) / 255.0
    if uv is None or not len(uv):
        return np.asarray(pixels.mean(axis=(0, 1)))
    height, width = pixels.shape[:2]
    columns, rows = (uv[:, 0] % 1.0) * (width - 1), (1.0 - uv[:, 1] % 1.0) * (height - 1)
    return np.asarray(pixels[rows.round().astype(int), columns.round().astype(int)].mean(axis=0))


# ---------------------------------------------------------------------------------------------------------- COLLADA files


def _without_broken_textures(file: Path) -> tuple[bytes, int]:
    """A COLLADA file with colours instead of textures that lead nowhere, and how many geometries its scene has."""
    from lxml import etree  # type: ignore[import-untyped]

    root = read_xml(file, "COLLADA", "a COLLADA")
    space = f"{{{etree.QName(root).namespace}}}"
    images = {image.get("id"): image.findtext(f"{space}init_from") or "" for image in root.iter(f"{space}image")}
    for effect in root.iter(f"{space}effect"):
        parameters = {each.get("sid"): each for each in effect.iter(f"{space}newparam")}

        def source(name: str, kind: str, tag: str, parameters: Any = parameters) -> str:
            """What a parameter of the effect refers to; empty if there is none of this kind."""
            return (name in parameters and parameters[name].findtext(f"{space}{kind}/{space}{tag}")) or ""

        for texture in list(effect.iter(f"{space}texture")):
            if source(source(texture.get("texture", ""), "sampler2D", "source"), "surface", "init_from") not in images:
                color = etree.SubElement(texture.getparent(), f"{space}color")
                color.text = " ".join(f"{part:.4f}" for part in (*_lost_color(file, texture, images, source), 1.0))
                texture.getparent().replace(texture, color)
        for name, parameter in parameters.items():  # which no texture may use now
            if (
                source(name, "sampler2D", "source")
                and source(source(name, "sampler2D", "source"), "surface", "init_from") not in images
            ):
                parameter.getparent().remove(parameter)
    count = sum(1 for _ in root.iter(f"{space}instance_geometry"))
    return etree.tostring(root), count


def _lost_color(file: Path, texture: Any, images: dict[str, str], source: Callable[..., str]) -> Any:
    """That of the image which is most likely meant: texture, sampler or surface often have its name."""
    from PIL import Image

    name = texture.get("texture", "")
    for guess in (name, source(name, "sampler2D", "source"), source(name, "surface", "init_from")):
        for suffix in ("", "-sampler", "-surface"):
            image = (file.parent / images.get(guess.removesuffix(suffix), "")).resolve()
            if image.is_file() and image.is_relative_to(home_of(file)):
                with Image.open(image) as opened:
                    return _mean(opened)
    return GREY
