"""Where meshes are looked for: in the packages that a user names, above the file, in those of ROS; and what is said of
others."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import saltus as sl

ROBOT = """<robot name="r"><link name="base">
  <visual><geometry><mesh filename="{name}"/></geometry></visual></link></robot>"""


@pytest.fixture(autouse=True)
def without_ros(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"):
        monkeypatch.delenv(name, raising=False)


def robot_in(folder: Path, name: str = "package://arm/meshes/link.stl") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "robot.urdf"
    file.write_text(ROBOT.format(name=name))
    return file


def package(folder: Path) -> Path:
    (folder / "meshes").mkdir(parents=True)
    return folder


def found(file: Path, **options: object) -> list[str]:
    return [shape.path for shape in sl.load_urdf(file, **options).shapes]  # type: ignore[arg-type]


def test_packages_that_are_named(tmp_path: Path) -> None:
    """The folder that holds them, or themselves; before what is above the file."""
    file, arm = robot_in(tmp_path / "here"), package(tmp_path / "elsewhere" / "arm")
    assert found(file) == []
    package(tmp_path / "here" / "arm")
    assert found(file) == [str(tmp_path / "here" / "arm" / "meshes" / "link.stl")]
    for folders in ([arm], [tmp_path, str(arm.parent)]):
        assert found(file, package_dirs=folders) == [str(arm / "meshes" / "link.stl")]


def test_packages_of_ros(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, arm = robot_in(tmp_path / "here"), package(tmp_path / "src" / "vendor" / "arm")
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"/nowhere:{tmp_path / 'src'}")  # the package is in a repository there
    assert found(file) == [str(arm / "meshes" / "link.stl")]
    monkeypatch.setenv("ROS_PACKAGE_PATH", "")
    shared = package(tmp_path / "prefix" / "share" / "arm")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "prefix"))
    assert found(file) == [str(shared / "meshes" / "link.stl")]


def test_absolute_paths_into_a_package(tmp_path: Path) -> None:
    arm = package(tmp_path / "elsewhere" / "arm")
    for name in (f"{arm}/meshes/link.stl", f"file://{arm}/meshes/link.stl"):
        file = robot_in(tmp_path / "here", name)
        assert found(file) == []
        assert found(file, package_dirs=[arm]) == [str(arm / "meshes" / "link.stl")]


def test_a_package_is_not_climbed_out_of(tmp_path: Path) -> None:
    arm = package(tmp_path / "elsewhere" / "arm")
    file = robot_in(tmp_path / "here", "package://arm/../../secret.stl")
    with pytest.raises(sl.ModelError, match="climbs out of"):
        sl.load_urdf(file, package_dirs=[arm])


def test_what_is_left_out_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        sl.load_urdf(robot_in(tmp_path))
    assert "link 'base'" in caplog.text and "package_dirs or in ROS_PACKAGE_PATH" in caplog.text
    caplog.clear()
    file = tmp_path / "odd.urdf"
    file.write_text(
        '<robot name="r"><link name="odd"><visual><geometry><torus r="1"/></geometry></visual></link></robot>'
    )
    with caplog.at_level(logging.WARNING):
        assert sl.load_urdf(file).shapes == ()
    assert "link 'odd': a visual is left out" in caplog.text
    file = tmp_path / "odd.sdf"
    file.write_text(
        '<sdf version="1.9"><model name="m"><link name="base"><visual name="odd"><geometry><plane/></geometry></visual>'
        "</link></model></sdf>"
    )
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        assert sl.load_sdf(file).shapes == ()
    assert "link 'base', line 1: <visual> is left out: its geometry is none of box" in caplog.text


def test_folders_that_are_not_there(tmp_path: Path) -> None:
    file = robot_in(tmp_path)
    with pytest.raises(sl.ModelError, match="package_dirs: there is no folder"):
        sl.load_urdf(file, package_dirs=[tmp_path / "none"])
    with pytest.raises(TypeError, match="expected a list of folders"):
        sl.load_urdf(file, package_dirs=str(tmp_path))


def test_models_of_gazebo(tmp_path: Path) -> None:
    arm = package(tmp_path / "elsewhere" / "arm")
    file = tmp_path / "robot.sdf"
    file.write_text(
        '<sdf version="1.9"><model name="m"><link name="base"><visual name="v"><geometry><mesh>'
        "<uri>model://arm/meshes/link.stl</uri></mesh></geometry></visual></link></model></sdf>"
    )
    (shape,) = sl.load_sdf(file, package_dirs=[arm.parent]).shapes
    assert shape.path == str(arm / "meshes" / "link.stl")
