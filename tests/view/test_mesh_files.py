"""Mesh files with materials, with textures, and with textures that lead nowhere."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import trimesh
from PIL import Image

import saltus as sl
from saltus.view.mesh_files import GREY, read_mesh
from saltus.view.solids import solids_of

RED = (0.8, 0.1, 0.1)
COLLADA = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset><up_axis>Z_UP</up_axis></asset>
<library_images><image id="skin" name="skin"><init_from>{image}</init_from></image></library_images>
<library_effects><effect id="e"><profile_COMMON>
  <newparam sid="skin-surface"><surface type="2D"><init_from>skin</init_from></surface></newparam>
  <newparam sid="skin-sampler"><sampler2D><source>{surface}</source></sampler2D></newparam>
  <technique sid="common"><phong><diffuse><texture texture="{texture}" texcoord="UV"/></diffuse></phong></technique>
</profile_COMMON></effect></library_effects>
<library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
<library_geometries><geometry id="g"><mesh>
  <source id="p"><float_array id="pa" count="12">0 0 0 1 0 0 0 1 0 0 0 1</float_array><technique_common>
    <accessor source="#pa" count="4" stride="3"><param name="X" type="float"/><param name="Y" type="float"/>
    <param name="Z" type="float"/></accessor></technique_common></source>
  <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
  <triangles count="4" material="s">
    <input semantic="VERTEX" source="#v" offset="0"/><p>0 2 1 0 1 3 0 3 2 1 2 3</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="vs"><node id="n"><instance_geometry url="#g"><bind_material><technique_common>
  <instance_material symbol="s" target="#m"/></technique_common></bind_material></instance_geometry></node></visual_scene>
</library_visual_scenes><scene><instance_visual_scene url="#vs"/></scene></COLLADA>"""


def collada(
    folder: Path, image: str = "skin.png", surface: str = "skin-surface", texture: str = "skin-sampler"
) -> Path:
    file = folder / "tetrahedron.dae"
    file.write_text(COLLADA.format(image=image, surface=surface, texture=texture))
    Image.fromarray(np.full((4, 4, 3), np.rint(255 * np.array(RED)), np.uint8)).save(folder / "skin.png")
    return file


@pytest.mark.parametrize(
    ("changes", "color"),
    [
        ({}, RED),
        ({"surface": "lost-surface"}, RED),  # the sampler has the image's name
        ({"texture": "skin"}, RED),
        ({"texture": "lost"}, GREY),
        ({"surface": "lost-surface", "texture": "skin"}, RED),  # as ANYmal's foot
    ],
)
def test_a_broken_texture_costs_a_colour_not_the_shape(tmp_path: Path, changes: dict[str, str], color: tuple) -> None:
    (part,), flaw = read_mesh(str(collada(tmp_path, **changes)))
    assert flaw == "" and part.decided
    assert part.mesh.faces.shape == (4, 3)
    np.testing.assert_allclose(part.color, (*color, 1.0), atol=0.01)


def test_an_image_is_not_looked_for_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    collada(tmp_path)
    (part,), _ = read_mesh(str(collada(tmp_path / "in", "../skin.png", "lost")))
    np.testing.assert_allclose(part.color[:3], GREY, atol=0.01)


def test_a_colour_of_the_robot_is_for_parts_that_have_none(tmp_path: Path) -> None:
    box = trimesh.creation.box()
    box.export(tmp_path / "box.stl")
    builder = sl.ModelBuilder("two")
    for file in (tmp_path / "box.stl", collada(tmp_path)):
        builder.add_shape(0, "mesh", (1, 1, 1), path=str(file), color=(0, 0, 1, 1))
    plain, dressed = solids_of(builder.build())
    assert plain.shape.color.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(dressed.shape.color[:3], RED, atol=0.01)


def test_flaws_are_named_with_what_they_belong_to(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "broken.dae").write_text("<COLLADA")
    (tmp_path / "empty.obj").write_text("v 0 0 0")
    builder = sl.ModelBuilder("flawed")
    for name, file in (("shank", "broken.dae"), ("foot", "empty.obj"), ("hip", "none.stl")):
        builder.add_shape(0, "mesh", (1, 1, 1), path=str(tmp_path / file), name=name)
    with caplog.at_level(logging.WARNING):
        solids_of(builder.build())
    (record,) = caplog.records
    text = record.getMessage()
    for name, file in (("shank", "broken.dae"), ("foot", "empty.obj"), ("hip", "none.stl")):
        assert f"{file} of '{name}'" in text
