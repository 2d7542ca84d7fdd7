"""Visuals as shapes, and the paths of meshes: found in packages, never outside."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import saltus as sl
from tests.closeness import assert_close
from tests.model.robots import LIMIT, LOADABLE, ORIGIN, PREFIX, ROBOTS, joint, link, robot, write


def visual(geometry: str, inside: str = "", tag: str = "visual") -> str:
    return f"<{tag}>{inside}<geometry>{geometry}</geometry></{tag}>"


def mesh(name: str) -> str:
    return visual(f'<mesh filename="{name}"/>')


BOX = '<box size="1 2 3"/>'


def test_primitives_colours_and_places(tmp_path: Path) -> None:
    text = robot(
        '<material name="red"><color rgba="1 0 0 1"/></material>',
        link("a", visual(BOX, ORIGIN + '<material name="red"/>') + visual('<sphere radius="0.5"/>')),
        link(
            "b", visual('<cylinder radius="1" length="2"/>', '<material name=""><color rgba="0 1 0 0.5"/></material>')
        ),
        link("c", visual('<capsule radius="1" length="2"/>', '<material name="unknown"/>')),
        joint("j", "a", "b"),
        joint("k", "b", "c", "fixed"),
    )
    model = sl.load_urdf(write(tmp_path, text))
    assert [(shape.name, shape.kind, shape.joint, shape.size.tolist()) for shape in model.shapes] == [
        ("a", "box", 0, [1, 2, 3]), ("a", "sphere", 0, [0.5]), ("b", "cylinder", 1, [1, 2]), ("c", "capsule", 1, [1, 2]),
    ]  # fmt: skip
    colors = [shape.color.tolist() for shape in model.shapes]
    assert colors == [[1, 0, 0, 1], [0.7, 0.7, 0.75, 1], [0, 1, 0, 0.5], [0.7, 0.7, 0.75, 1]]
    turn = pin.rpy.rpyToMatrix(0.7, -0.8, 0.9)
    expected = pin.SE3(turn, np.array([0.4, 0.5, -0.6])).homogeneous
    assert_close(model.shapes[0].placement, expected, 1e-12)
    assert_close(model.shapes[3].placement, expected, 1e-12)


def test_collision_shapes_only_without_visuals(tmp_path: Path) -> None:
    collision = visual(BOX, tag="collision")
    only = sl.load_urdf(write(tmp_path, robot(link("a", collision), link("b", ""), joint("j", "a", "b"))))
    assert [shape.kind for shape in only.shapes] == ["box"]
    both = sl.load_urdf(write(tmp_path, robot(link("a", collision), link("b", mesh("x.stl")), joint("j", "a", "b"))))
    assert [(shape.kind, shape.path) for shape in both.shapes] == [("mesh", str(tmp_path / "x.stl"))]


@pytest.mark.parametrize("name", ["ur_description/urdf/ur5_robot.urdf", "talos_data/robots/talos_reduced.urdf",
                                  "solo_description/robots/solo12.urdf", "b1_description/urdf/b1.urdf"])  # fmt: skip
def test_same_as_pinocchio(name: str) -> None:
    path = ROBOTS / name
    model = sl.load_urdf(path)
    peer = pin.buildModelFromUrdf(str(path))
    visuals = pin.buildGeomFromUrdf(peer, str(path), pin.GeometryType.VISUAL, package_dirs=[str(PREFIX / "share")])

    def ours(joint: int) -> list[np.ndarray]:
        return [shape.placement for shape in model.shapes if shape.joint == joint]

    assert len(model.shapes) == visuals.ngeoms
    for index in range(peer.njoints):
        theirs = [each.placement.homogeneous for each in visuals.geometryObjects if each.parentJoint == index]
        assert len(theirs) == len(ours(index))
        for placement in theirs:  # they are in another order where fixed links are merged
            assert min(np.abs(placement - other).max() for other in ours(index)) < 1e-12


def test_every_mesh_of_every_robot_is_found() -> None:
    paths = {shape.path for name in LOADABLE for shape in sl.load_urdf(ROBOTS / name).shapes if shape.path}
    assert len(paths) > 500 and all(Path(path).is_file() for path in paths)


def package(folder: Path) -> Path:
    """A robot in `robots/pkg/urdf`."""
    (folder / "robots/pkg/urdf").mkdir(parents=True)
    (folder / "robots/pkg/package.xml").write_text("<package/>")
    return folder / "robots/pkg/urdf"


ALLOWED = {
    "x.stl": "robots/pkg/urdf/x.stl",
    "../meshes/x.stl": "robots/pkg/meshes/x.stl",
    "package://pkg/meshes/x.stl": "robots/pkg/meshes/x.stl",
    "package://pkg/a/../x.stl": "robots/pkg/x.stl",
    "package:///pkg/x.stl": "robots/pkg/x.stl",
    "model://robots/pkg/x.stl": "robots/pkg/x.stl",
    "dir with space/é.stl": "robots/pkg/urdf/dir with space/é.stl",
}


@pytest.mark.parametrize("name", ALLOWED)
def test_paths_inside(tmp_path: Path, name: str) -> None:
    path = write(package(tmp_path), robot(link("a", mesh(name))))
    assert [shape.path for shape in sl.load_urdf(path).shapes] == [str(tmp_path / ALLOWED[name])]


@pytest.mark.parametrize("name", ["../../x.stl", "../../../../../../../../etc/passwd", "package://pkg/../x.stl",
                                  "package://pkg/../../x.stl", "a/../../../x.stl"])  # fmt: skip
def test_paths_that_climb_out(tmp_path: Path, name: str) -> None:
    path = write(package(tmp_path), robot(link("a", mesh(name))))
    with pytest.raises(sl.ModelError, match=r"robot\.urdf: link 'a': the path .* climbs out of .*pkg") as caught:
        sl.load_urdf(path)
    assert name in str(caught.value)


def test_without_a_package_the_folder_is_home(tmp_path: Path) -> None:
    with pytest.raises(sl.ModelError, match="climbs out of"):
        sl.load_urdf(write(tmp_path, robot(link("a", mesh("../x.stl")))))


@pytest.mark.parametrize("name", ["/etc/passwd", "file:///etc/passwd", "http://example.org/x.stl", "package://nowhere/x.stl",
                                  "package://../x.stl", "package://"])  # fmt: skip
def test_paths_to_elsewhere_are_left_out(tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        model = sl.load_urdf(write(tmp_path, robot(link("a", mesh(name) + visual(BOX)))))
    assert [shape.kind for shape in model.shapes] == ["box"]
    assert f"link 'a': the mesh {name!r} is left out" in caplog.text


BROKEN = {
    "flat box": (visual('<box size="1 0 1"/>'), "shape 'a': its size is"),
    "no size": (visual("<box/>"), "<box> has no attribute 'size'"),
    "no filename": (visual("<mesh/>"), "<mesh> has no attribute 'filename'"),
    "colour of three": (visual(BOX, '<material name="m"><color rgba="1 0 0"/></material>'), "rgba='1 0 0', expected 4"),
    "no geometry": ("<visual/>", "<visual> has no <geometry>"),
    "NaN": (visual('<sphere radius="nan"/>'), "radius='nan'"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken(tmp_path: Path, case: str) -> None:
    inside, message = BROKEN[case]
    with pytest.raises(sl.ModelError, match=message):
        sl.load_urdf(write(tmp_path, robot(link("a", inside), link("b"), joint("j", "a", "b", inside=LIMIT))))
