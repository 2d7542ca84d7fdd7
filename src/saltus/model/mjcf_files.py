"""What an MJCF file may make MuJoCo do: checked before MuJoCo sees it.

MuJoCo's parser opens the files it is told of, and makes as many bodies, pixels and numbers as it is told to. So all files
that are included are read here first, safely: every path must stay in the folder of the main file (or its package, see
`mesh_paths`), numbers must be finite but for ranges, and nothing may be repeated beyond all measure.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, NamedTuple

from saltus.model.checks import ModelError
from saltus.model.mesh_paths import home_of, inside
from saltus.model.safe_xml import numbers_in, read_xml, tag_of

REPEATED = 100_000
"""How often `count` attributes may repeat a thing, those of the elements around it multiplied."""
SIDE = 16_384
"""Of images and height fields, and numbers of user data for each body."""
UNWANTED = re.compile(r"[+-]?(?:nan(?:\(.*)?|infinity|0x[0-9a-f.]+(?:p[+-]?[0-9]+)?)", re.IGNORECASE)
"""What C, and so MuJoCo, takes for numbers beside those of `numbers_in`: none of them would be checked."""
SIDES = ("nrow", "ncol", "width", "height")
FOLDERS = ("assetdir", "meshdir", "texturedir")


class Part(NamedTuple):
    """One of the files that make up a model."""

    path: Path
    folder: Path  # what its names are relative to: where the main file is, or the model that is attached
    root: Any


def check_files(file: Path) -> None:
    """A `ModelError` says which file is not one that MuJoCo may read, and where."""
    home = home_of(file)
    parts = _all_parts(file, home)
    folders = _asset_folders(parts)
    for part in parts:
        for element in part.root.iter():
            where = f"{part.path}: line {element.sourceline}: <{tag_of(element)}>"
            for name, value in element.attrib.items():
                if name.startswith("file"):
                    for folder in folders["texture" if tag_of(element) == "texture" else "mesh"]:
                        _inside(home, part.folder / folder, value, where)
                elif name in FOLDERS:
                    _inside(home, part.folder, value, where)
                else:
                    _check_value(element, name, value, where)


def _all_parts(file: Path, home: Path) -> list[Part]:
    """The file, those that it includes, and the models that it attaches."""
    parts: dict[Path, Part] = {}
    found = [(file, file.absolute().parent, "mujoco")]
    while found:
        path, folder, tag = found.pop()
        if path in parts:
            continue
        parts[path] = part = Part(path, folder, read_xml(path, tag, "an MJCF"))
        for element in part.root.iter("include", "model"):
            if name := element.get("file"):
                other = _inside(home, folder, name, f"{path}: line {element.sourceline}: <{element.tag}>")
                if element.tag == "include":
                    found.append((other, folder, ""))
                elif other.suffix.lower() == ".xml":
                    found.append((other, other.parent, "mujoco"))
    return list(parts.values())


def _asset_folders(parts: list[Part]) -> dict[str, list[str]]:
    """Where meshes and textures may be looked for."""
    compilers = [element for part in parts for element in part.root.iter("compiler")]
    return {
        kind: [found for each in compilers for name in ("assetdir", f"{kind}dir") if (found := each.get(name))] or ["."]
        for kind in ("mesh", "texture")
    }


def _inside(home: Path, folder: Path, name: str, where: str) -> Path:
    if "://" in name or "\0" in name:
        raise ModelError(f"{where}: the path {name!r} is not that of a file")
    return inside(home, folder, name, where)


def _check_value(element: Any, name: str, value: str, where: str) -> None:
    if name == "name":
        return
    numbers = numbers_in(value) or []
    if any(map(UNWANTED.fullmatch, value.split())):
        raise ModelError(f"{where} has {name}={value!r}, expected plain decimal numbers")
    if "range" not in name and any(map(math.isinf, numbers)):
        raise ModelError(f"{where} has {name}={value!r}, expected finite numbers")
    if name == "count":
        around = [numbers_in(each.get("count", "")) or [] for each in element.iterancestors()]
        if math.prod(max(abs(number), 1.0) for each in [numbers, *around] for number in each) > REPEATED:
            raise ModelError(f"{where} has {name}={value!r}, more than {REPEATED} in all")
    large = name in SIDES or name.startswith("nuser_")
    if large and any(number > SIDE for number in numbers):
        raise ModelError(f"{where} has {name}={value!r}, expected at most {SIDE}")
