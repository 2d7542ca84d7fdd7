"""Compiled code that a wheel brings along: for each level of processors one file, `compiled/x86-64-v4.pack`.

    magic, length of the index, the index (JSON), groups of object files, each compressed as one
    index: group -> (place, length, {symbol: (place, length) within it, uncompressed})

The functions of an algorithm are a group: they resemble each other, and are used together. Symbols are keys of the cache
(native.py), so that code is found if it is what would be compiled, and not otherwise.
"""

from __future__ import annotations

import functools
import json
import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MAGIC = b"saltus-1"
FOLDER = Path(__file__).parent.parent / "compiled"


def write(file: Path, codes: Mapping[str, bytes]) -> None:
    """All object files of a level, by symbol."""
    groups: dict[str, dict[str, bytes]] = {}
    for symbol, code in sorted(codes.items()):
        groups.setdefault(group_of(symbol), {})[symbol] = code
    index, packed = {}, b""
    for name, members in groups.items():
        places, start = {}, 0
        for symbol, code in members.items():
            places[symbol] = start, len(code)
            start += len(code)
        whole = lzma.compress(b"".join(members.values()), preset=9)
        index[name] = len(packed), len(whole), places
        packed += whole
    head = json.dumps(index, separators=(",", ":")).encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join([MAGIC, len(head).to_bytes(8, "little"), head, packed]))


def group_of(symbol: str) -> str:
    """The name of the algorithm."""
    return symbol.partition("-")[0]


@functools.cache
def _index(file: Path) -> tuple[int, Mapping[str, Any]]:
    """Where the groups begin, and where each is from there on."""
    try:
        with file.open("rb") as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                return 0, {}
            length = int.from_bytes(stream.read(8), "little")
            return len(MAGIC) + 8 + length, json.loads(stream.read(length))
    except (OSError, ValueError):
        return 0, {}


@functools.lru_cache(maxsize=2)  # calls for one sample and for batches come one after the other
def _group(file: Path, place: int, length: int) -> bytes:
    with file.open("rb") as stream:
        stream.seek(place)
        return lzma.decompress(stream.read(length))


def find(level: str, symbol: str) -> bytes | None:
    """The object file of a symbol, or None."""
    file = FOLDER / f"{level}.pack"
    start, index = _index(file)
    place, length, places = index.get(group_of(symbol), (0, 0, {}))
    if symbol not in places:
        return None
    first, count = places[symbol]
    try:
        return _group(file, start + place, length)[first : first + count]
    except (OSError, lzma.LZMAError):  # damaged
        return None
