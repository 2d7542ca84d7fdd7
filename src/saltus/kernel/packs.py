"""Compiled code that a wheel brings along: for each level of processors one file, `compiled/x86-64-v4.pack`.

    magic, length of the index, the index (JSON), groups of object files, each compressed as one
    index: groups: (place, length) of each; symbols: symbol -> (group, place, length) within it, uncompressed

Functions that resemble each other, and are used together, are a group (warmup.py says which), as long as it does not take
long to unpack. Symbols are keys of the cache (native.py), so that code is found if it is what would be compiled, and not
otherwise.
"""

from __future__ import annotations

import functools
import json
import lzma
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

MAGIC = b"saltus-2"
FOLDER = Path(__file__).parent.parent / "compiled"
NOTHING: Mapping[str, Any] = {"groups": [], "symbols": {}}


LONGEST = 2_000_000
"""Bytes of a group: 30 ms to unpack."""

FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9, "lc": 4, "pb": 0}]
"""Machine code has no alignment to speak of, and much that hangs on the byte before."""


def write(file: Path, kinds: Mapping[str, Mapping[str, bytes]]) -> None:
    """All object files of a level, by symbol; those of a kind resemble each other."""
    groups, symbols, packed = list[tuple[int, int]](), dict[str, tuple[int, int, int]](), b""
    for kind in sorted(kinds):
        for members in _parts(kinds[kind]):
            start = 0
            for symbol, code in members:
                symbols[symbol] = len(groups), start, len(code)
                start += len(code)
            whole = lzma.compress(b"".join(code for _, code in members), filters=FILTERS)
            groups.append((len(packed), len(whole)))
            packed += whole
    head = json.dumps({"groups": groups, "symbols": symbols}, separators=(",", ":")).encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join([MAGIC, len(head).to_bytes(8, "little"), head, packed]))


def _parts(codes: Mapping[str, bytes]) -> Iterator[list[tuple[str, bytes]]]:
    """All of a kind, in groups that are not too long."""
    part, length = list[tuple[str, bytes]](), 0
    for symbol, code in sorted(codes.items()):
        if part and length + len(code) > LONGEST:
            yield part
            part, length = [], 0
        part.append((symbol, code))
        length += len(code)
    if part:
        yield part


@functools.cache
def _index(file: Path) -> tuple[int, Mapping[str, Any]]:
    """Where the groups begin, and what is in them."""
    try:
        with file.open("rb") as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                return 0, NOTHING
            length = int.from_bytes(stream.read(8), "little")
            return len(MAGIC) + 8 + length, json.loads(stream.read(length))
    except (OSError, ValueError):
        return 0, NOTHING


@functools.lru_cache(maxsize=8)  # a few MB: what is called first in a program is of a few kinds
def _group(file: Path, place: int, length: int) -> bytes:
    with file.open("rb") as stream:
        stream.seek(place)
        return lzma.decompress(stream.read(length))


def find(level: str, symbol: str) -> bytes | None:
    """The object file of a symbol, or None."""
    file = FOLDER / f"{level}.pack"
    start, index = _index(file)
    if symbol not in index["symbols"]:
        return None
    group, first, count = index["symbols"][symbol]
    place, length = index["groups"][group]
    try:
        return _group(file, start + place, length)[first : first + count]
    except (OSError, lzma.LZMAError):  # damaged
        return None
