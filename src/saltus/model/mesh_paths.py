"""Where the mesh files of a robot are. They are never opened here, and what a robot file names never leads elsewhere.

A robot's home is its package: the nearest folder above the file that holds a `package.xml` (ROS) or a `model.config`
(Gazebo), or the file's own folder. A relative name may go up and down inside that. `package://name/rest` and
`model://name/rest` mean the folder `name` that is, or lies in, a folder above the file.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from saltus.model.checks import ModelError

MARKERS = ("package.xml", "model.config")

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


def mesh_path(file: Path, name: str, where: str) -> str | None:
    """The path of the mesh that a robot file calls `name`, whether or not there is such a file.

    None, and a warning, for what has no place below: unknown packages, absolute paths to elsewhere, other addresses.
    A `ModelError` for a path that climbs out of the package or folder it starts in.
    """
    if "\0" in name or not name.strip():
        raise ModelError(f"{where}: the path {name!r} is not one")
    home = home_of(file)
    scheme, separator, rest = name.partition("://")
    if not separator:
        if not os.path.isabs(name) or Path(os.path.normpath(name)).is_relative_to(home):
            return str(inside(home, file.absolute().parent, name, where))
        why = f"it is not in {home}"
    elif scheme in ("package", "model"):
        package, _, below = rest.lstrip("/").partition("/")
        folder = _package_folder(file, package)
        if folder is not None:
            return str(inside(folder, folder, below, where))
        why = f"there is no folder {package!r} above the file"
    else:
        why = "expected a path or package://"
    _logger.warning("%s: the mesh %r is left out: %s", where, name, why)
    return None


def _package_folder(file: Path, package: str) -> Path | None:
    if package in ("", ".", ".."):
        return None
    for folder in file.absolute().parents:
        if folder.name == package:
            return folder
        if (folder / package).is_dir():
            return folder / package
    return None
