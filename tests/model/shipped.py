"""The shipped robots as MJCF, which are not shipped: for MuJoCo."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tools.make_robots import mjcf_texts

_texts = cache(mjcf_texts)


def mjcf_file(name: str, folder: Path) -> Path:
    path = folder / f"{name}.xml"
    path.write_text(_texts()[name], encoding="utf-8")
    return path
