"""Rounds of unrolled loops in the order in which they are needed.

A kernel sweeps over all joints to the leaves, then over all of them back. Unrolled, what the first sweep found of every
limb would have to be kept until the second one comes by. So a round is put off until another one needs what it gives: one
limb after the other goes out and back, and fewer numbers wait in registers, or in memory for want of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

NAMES = re.compile(r"%[\w.]+")
DEFINED = re.compile(r"  (%[\w.]+) = ")
PLACE = re.compile(r"  (%[\w.]+) = getelementptr (\w+), ptr (\S+), i64 (\S+)$")
ACCESS = re.compile(r"(load|store) .*ptr (\S+?),")
FIXED = re.compile(r"\w.*:$|  br |  ret |  unreachable|.* = phi |.* call .*\bptr\b")
"""Lines that stay where they are: all others between two of them may change places."""

Place = tuple[str, int | None]
"""Memory that lies apart from others, and how many bytes behind its start; None: not known."""

BYTES = {"double": 8, "float": 4, "i64": 8, "i32": 4, "i8": 1}


def as_needed(lines: Sequence[str], rounds: Sequence[tuple[int, int]]) -> list[str]:
    """Lines of a function; of each round the first of its lines, and the one after its last, in order."""
    fixed = [k for k, line in enumerate(lines) if FIXED.match(line)]
    starts = {first: end for first, end in rounds}
    places = places_of(lines)
    result: list[str] = []
    for before, after in pairwise([-1, *fixed, len(lines)]):
        parts: list[Sequence[str]] = []
        k = before + 1
        while k < after:
            end = starts.get(k, k + 1)
            end = end if k < end <= after else k + 1
            parts.append(lines[k:end])
            k = end
        result += [line for part in in_order(parts, places) for line in part]
        result += lines[after : after + 1]
    return result


def in_order(parts: Sequence[Sequence[str]], places: dict[str, Place]) -> Iterator[Sequence[str]]:
    """Each part after those that it needs: first of these the one which, with all that it needs, is the longest."""
    if all(len(part) == 1 for part in parts):
        yield from parts
        return
    needs = needs_of(parts, places)
    closure, used = [0] * len(parts), set[int]()
    for k, others in enumerate(needs):
        used |= others
        closure[k] = 1 << k
        for other in others:
            closure[k] |= closure[other]
    done = [False] * len(parts)
    for last in range(len(parts)):
        way = [] if last in used else [last]
        while way:
            k = way[-1]
            left = [other for other in needs[k] if not done[other]]
            if left:
                way.append(max(left, key=lambda other: (closure[other].bit_count(), -other)))
                continue
            way.pop()
            if not done[k]:
                done[k] = True
                yield parts[k]


def needs_of(parts: Sequence[Sequence[str]], places: dict[str, Place]) -> list[set[int]]:
    """Of each part, those that it needs: what it reads they give, or they come by the same place in memory."""
    given: dict[str, int] = {}
    written: dict[str, list[tuple[int | None, int]]] = {}
    read: dict[str, list[tuple[int | None, int]]] = {}
    result = []
    for k, part in enumerate(parts):
        found = set[int]()
        for line in part:
            found.update(given[name] for name in NAMES.findall(line) if name in given)
            if access := ACCESS.search(line):
                what, pointer = access.groups()
                memory, where = places.get(pointer, (pointer, 0))
                for kind in (written,) if what == "load" else (written, read):
                    found.update(
                        other for place, other in kind.get(memory, ()) if where is None or place in (where, None)
                    )
                (read if what == "load" else written).setdefault(memory, []).append((where, k))
            if made := DEFINED.match(line):
                given[made[1]] = k
        result.append(found - {k})
    return result


def places_of(lines: Sequence[str]) -> dict[str, Place]:
    """Where each pointer leads that is made from another one."""
    found: dict[str, Place] = {}
    for line in lines:
        if made := PLACE.match(line):
            name, word, pointer, index = made.groups()
            memory, start = found.get(pointer, (pointer, 0))
            known = start is not None and index[0] != "%"
            found[name] = memory, start + BYTES[word] * int(index) if known else None  # type: ignore[operator]
    return found
