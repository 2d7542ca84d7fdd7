"""Compiled code that a wheel brings along: for each level of processors one file, `compiled/x86-64-v4.pack`.

    magic, length of the index, the index (JSON: symbol -> place, length), object files, each compressed by itself

Symbols are keys of the cache (native.py), so that code is found if it is what would be compiled, and not otherwise.
"""

from __future__ import annotations

import functools
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MAGIC = b"saltus-1"
FOLDER = Path(__file__).parent.parent / "compiled"


def write(file: Path, codes: Mapping[str, bytes]) -> None:
    """All object files of a level, by symbol."""
    index, place, packed = {}, 0, []
    for symbol, code in sorted(codes.items()):
        packed.append(zlib.compress(code, 9))
        index[symbol] = place, len(packed[-1])
        place += len(packed[-1])
    head = json.dumps(index, separators=(",", ":")).encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join([MAGIC, len(head).to_bytes(8, "little"), head, *packed]))


@functools.cache
def _index(file: Path) -> tuple[int, Mapping[str, Any]]:
    """Where the codes begin, and where each is from there on."""
    try:
        with file.open("rb") as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                return 0, {}
            length = int.from_bytes(stream.read(8), "little")
            return len(MAGIC) + 8 + length, json.loads(stream.read(length))
    except (OSError, ValueError):
        return 0, {}


def find(level: str, symbol: str) -> bytes | None:
    """The object file of a symbol, or None."""
    file = FOLDER / f"{level}.pack"
    start, index = _index(file)
    if symbol not in index:
        return None
    place, length = index[symbol]
    try:
        with file.open("rb") as stream:
            stream.seek(start + place)
            return zlib.decompress(stream.read(length))
    except (OSError, zlib.error):  # damaged
        return None
