"""Rounds of unrolled loops in the order in which they are needed.

A kernel sweeps over all joints to the leaves, then over all of them back. Unrolled, what the first sweep found of every
limb would have to be kept until the second one comes by. So a round is put off until another one needs what it gives: one
limb after the other goes out and back, and fewer numbers wait in registers, or in memory for want of them. What a round can
do without the others of its loop, and what leaves fewer numbers than it takes, is done as soon as these are there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

NAMES = re.compile(r"%[\w.]+")
DEFINED = re.compile(r"  (%[\w.]+) = ")
PLACE = re.compile(r"  (%[\w.]+) = getelementptr (\w+), ptr (\S+), i64 (\S+)$")
ACCESS = re.compile(r"(load|store) .*ptr (\S+?),")
FIXED = re.compile(r"\w.*:$|  br |  ret |  unreachable|.* = phi |.* call .*\bptr\b")
"""Lines that stay where they are: all others between two of them may change places."""

Lines = Sequence[str]
Place = tuple[str, int | None]
"""Memory that lies apart from others, and how many bytes behind its start; None: not known."""

BYTES = {"double": 8, "float": 4, "i64": 8, "i32": 4, "i8": 1}


class Part(NamedTuple):
    """Lines that stay together. `eager`: they are to be done as soon as they can be."""

    lines: Lines
    eager: bool = False


def as_needed(lines: Lines, rounds: Sequence[tuple[int, int]]) -> list[str]:
    """Lines of a function; of each round the first of its lines, and the one after its last, in order."""
    fixed = [k for k, line in enumerate(lines) if FIXED.match(line)]
    places, ends, result = places_of(lines), dict(rounds), list[str]()
    for before, after in pairwise([-1, *fixed, len(lines)]):
        pieces, k = list[tuple[bool, Lines]](), before + 1
        while k < after:
            end = ends.get(k, k)
            is_round = k < end <= after
            pieces.append((is_round, lines[k : end if is_round else k + 1]))
            k += len(pieces[-1][1])
        parts = list[Part]()
        for is_loop, group in groupby(pieces, lambda piece: piece[0]):
            some = [piece for _, piece in group]
            parts += divided(some) if is_loop else map(Part, some)
        result += [line for part in in_order(parts, places) for line in part.lines]
        result += lines[after : after + 1]
    return result


def divided(loop: Sequence[Lines]) -> Iterator[Part]:
    """The rounds of a loop, apart from what each can do without the others and leaves fewer numbers than it takes."""
    gives = [{made[1] for made in map(DEFINED.match, lines) if made} for lines in loop]
    for k, lines in enumerate(loop):
        waiting, alone = set[str]().union(*gives[:k], *gives[k + 1 :]), list[str]()
        for line in lines:
            if not (ACCESS.search(line) or PLACE.match(line)) and waiting.isdisjoint(NAMES.findall(line)):
                alone.append(line)
            elif made := DEFINED.match(line):
                waiting.add(made[1])
        left = list(lines)
        for some in connected(alone):
            rest = [line for line in left if line not in some]
            own = set(filter(None, map(name_of, some)))
            taken, given = names_in(some) - own, names_in(rest) & own
            if 0 < len(given) < len(taken):
                left = rest
                yield Part(some, eager=True)
        yield Part(left)


def connected(lines: Lines) -> list[list[str]]:
    """Lines that follow from each other, by and by."""
    groups: dict[str, list[int]] = {}
    for k, line in enumerate(lines):
        others = {id(group): group for group in map(groups.get, NAMES.findall(line)) if group is not None}
        group = sorted({k}.union(*others.values()))
        groups.update((name, group) for name in (name_of(lines[j]) for j in group) if name)
    return [[lines[j] for j in group] for group in {id(group): group for group in groups.values()}.values()]


def name_of(line: str) -> str | None:
    made = DEFINED.match(line)
    return made[1] if made else None


def names_in(lines: Lines) -> set[str]:
    return {name for line in lines for name in NAMES.findall(line)}


def in_order(parts: Sequence[Part], places: dict[str, Place]) -> Iterator[Part]:
    """Each part after those that it needs: first of these the one which, with all that it needs, is the longest."""
    if all(len(part.lines) == 1 for part in parts):
        yield from parts
        return
    needs = needs_of(parts, places)
    closure, users = [0] * len(parts), [list[int]() for _ in parts]
    for k, others in enumerate(needs):
        closure[k] = 1 << k
        for other in others:
            closure[k] |= closure[other]
            users[other].append(k)
    done = [False] * len(parts)
    for last in range(len(parts)):
        way = [] if users[last] else [last]
        while way:
            k = way[-1]
            left = [other for other in needs[k] if not done[other]]
            if left:
                way.append(max(left, key=lambda other: (closure[other].bit_count(), -other)))
                continue
            way.pop()
            ready = [k, *(user for user in users[k] if parts[user].eager)]
            for each in ready:
                if not done[each] and all(done[other] for other in needs[each]):
                    done[each] = True
                    yield parts[each]


def needs_of(parts: Sequence[Part], places: dict[str, Place]) -> list[set[int]]:
    """Of each part, those that it needs: what it reads they give, or they come by the same place in memory."""
    given: dict[str, int] = {}
    written: dict[str, list[tuple[int | None, int]]] = {}
    read: dict[str, list[tuple[int | None, int]]] = {}
    result = []
    for k, part in enumerate(parts):
        found = set[int]()
        for line in part.lines:
            found.update(given[name] for name in NAMES.findall(line) if name in given)
            if access := ACCESS.search(line):
                what, pointer = access.groups()
                memory, where = places.get(pointer, (pointer, 0))
                for kind in (written,) if what == "load" else (written, read):
                    found.update(
                        other for place, other in kind.get(memory, ()) if where is None or place in (where, None)
                    )
                (read if what == "load" else written).setdefault(memory, []).append((where, k))
            if name := name_of(line):
                given[name] = k
        result.append(found - {k})
    return result


def places_of(lines: Lines) -> dict[str, Place]:
    """Where each pointer leads that is made from another one."""
    found: dict[str, Place] = {}
    for line in lines:
        if made := PLACE.match(line):
            name, word, pointer, index = made.groups()
            memory, start = found.get(pointer, (pointer, 0))
            found[name] = memory, start + BYTES[word] * int(index) if start is not None and index[0] != "%" else None
    return found
