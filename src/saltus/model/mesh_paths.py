"""Where the mesh files of a robot are. They are never opened here, and what a robot file names never leads elsewhere.

A robot's home is its package: the nearest folder above the file that holds a `package.xml` (ROS) or a `model.config`
(Gazebo), or the file's own folder. A relative name may go up and down inside that. `package://name/rest` and
`model://name/rest` mean a folder `name`, the first there is of: that in, or among, the `package_dirs` which the user gives;
that which is, or lies in, a folder above the file; that of a package which ROS knows (`ROS_PACKAGE_PATH` and, of ROS 2,
`AMENT_PREFIX_PATH`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

from saltus.model.checks import ModelError

MARKERS = ("package.xml", "model.config")

Folders: TypeAlias = Iterable[str | os.PathLike[str]]
FindMesh: TypeAlias = Callable[[str, str], str | None]
"""From what a file calls a mesh, and where it does, for complaints, to the mesh's path; None if it has no place."""

_logger = logging.getLogger(__name__)


def home_of(file: Path) -> Path:
    """The folder that a robot file's relative names must stay in."""
    folders = file.absolute().parents
    return next((folder for folder in folders if any((folder / each).is_file() for each in MARKERS)), folders[0])


def inside(home: Path, folder: Path, name: str, where: str) -> Path:
    """`name` seen from `folder`, which must not lead out of `home`."""
    path = Path(os.path.normpath(folder / name))
    if not path.is_relative_to(home):
        raise ModelError(f"{where}: the path {name!r} climbs out of {home}; expected a file inside")
    return path


def mesh_finder(file: Path, package_dirs: Folders) -> FindMesh:
    """Finds the meshes of a robot file; `package_dirs`: folders that are packages or hold some."""
    if isinstance(package_dirs, str | os.PathLike):
        raise TypeError(f"package_dirs is {package_dirs!r}, expected a list of folders")
    folders = [Path(folder).absolute() for folder in package_dirs]
    for folder in folders:
        if not folder.is_dir():
            raise ModelError(f"package_dirs: there is no folder {folder}")
    return partial(_mesh_path, file, folders)


def _mesh_path(file: Path, packages: list[Path], name: str, where: str) -> str | None:
    """The path of the mesh that a robot file calls `name`, whether or not there is such a file.

    None, and a warning, for what has no place below: unknown packages, absolute paths to elsewhere, other addresses.
    A `ModelError` for a path that climbs out of the package or folder it starts in.
    """
    if "\0" in name or not name.strip():
        raise ModelError(f"{where}: the path {name!r} is not one")
    scheme, separator, rest = name.partition("://")
    if not separator or scheme == "file":
        path = name if not separator else rest
        homes = [home_of(file), *packages]
        if not os.path.isabs(path):
            return str(inside(homes[0], file.absolute().parent, path, where))
        if any(Path(os.path.normpath(path)).is_relative_to(home) for home in homes):
            return os.path.normpath(path)
        why = f"it is not in {homes[0]}"
    elif scheme in ("package", "model"):
        package, _, below = rest.lstrip("/").partition("/")
        folder = _package_folder(file, packages, package)
        if folder is not None:
            return str(inside(folder, folder, below, where))
        why = f"there is no folder {package!r} above the file, in package_dirs or in ROS_PACKAGE_PATH"
    else:
        why = "expected a path or package://"
    _logger.warning("%s: the mesh %r is left out: %s", where, name, why)
    return None


def _package_folder(file: Path, packages: list[Path], package: str) -> Path | None:
    if package in ("", ".", ".."):
        return None
    for folder in (*packages, *file.absolute().parents, *_folders_of_ros()):
        if folder.name == package:
            return folder
        if (folder / package).is_dir():
            return folder / package
    return None


def _folders_of_ros() -> Iterator[Path]:
    """Those that hold packages, and the folders in them: a workspace keeps packages in repositories."""
    for folder in filter(None, os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)):
        yield Path(folder)
        if Path(folder).is_dir():
            yield from (each for each in sorted(Path(folder).iterdir()) if each.is_dir())
    for prefix in filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
        yield Path(prefix) / "share"
