"""Equal limbs side by side: rounds of an unrolled loop that say the same of different numbers become vector instructions.

A quadruped's loop over its joints, unrolled, has the base and then the same three rounds for each leg. What the legs' rounds
have in common, line by line, is computed for all legs at a time, one in each lane; what they have not, as before. So a
single call of a robot with limbs has the use of the processor's vectors, too (a packet needs all lanes for its samples).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from saltus.kernel.order import ACCESS, NAMES, Place, places_of

if TYPE_CHECKING:
    from saltus.kernel.evaluation import Evaluation

ARITHMETIC = re.compile(
    r"  (%\w+) = ((?:fadd|fsub|fmul|fdiv|fneg|fcmp \w+)(?: contract nsz arcp)?) double (\S+?)(?:, (\S+))?$"
)
SELECT = re.compile(r"  (%\w+) = (select) i1 (\S+), double (\S+), double (\S+)$")
CALL = re.compile(
    r"  (%\w+) = call ((?:nsz )?)(double|\{double, double\}) @(\S+?)\(double (\S+?)(?:, double (\S+))?\)$"
)
EXTRACT = re.compile(r"  (%\w+) = extractvalue \{double, double\} (\S+), (\d)$")
VARYING = re.compile(r"%\w+|\b0x[0-9A-F]+|\b\d+\b")

LEAST_LANES, MOST_LANES = 3, 8
"""Two limbs side by side gain nothing: what has to be brought together and taken apart takes as long."""
SHARED = 0.6
"""Of a round's lines, how many at least must be the same as in another."""
BOUND = 0.25
"""Of a limb's lines, how many at most may wait for other limbs."""


class Line(NamedTuple):
    """An instruction on numbers."""

    name: str
    what: str
    """The operation; for calls the function; for parts of a pair which."""
    operands: tuple[str, ...]


def parsed(text: str) -> Line | None:
    """None if it is no instruction on numbers."""
    if found := ARITHMETIC.match(text) or SELECT.match(text):
        name, what, *operands = found.groups()
        return Line(name, what, tuple(x for x in operands if x is not None))
    if found := CALL.match(text):
        name, flags, back, function, *operands = found.groups()
        kind = "pair" if back[0] == "{" else "call"
        return Line(name, f"{kind} {flags}{function}", tuple(x for x in operands if x is not None))
    if found := EXTRACT.match(text):
        return Line(found[1], f"part {found[3]}", (found[2],))
    return None


class _UnavailableError(Exception):
    """A round needs what another one has yet to compute."""


class Lanes:
    """The lines of equal limbs as one."""

    def __init__(self, width: int, group: Sequence[Sequence[str]], walk: Evaluation) -> None:
        self.width, self.walk = width, walk
        self.lines: list[str] = []
        self.pending = {line.split(" = ")[0].strip() for lines in group for line in lines if " = " in line}
        """Names that the limbs have still to define."""
        self.vectors: dict[tuple[str, ...], str] = {}
        """Those that are together in a vector, by its lanes."""
        self.pairs: dict[tuple[str, ...], str] = {}
        self.deferred: list[str] = []
        """Instructions on numbers that need what another limb has yet to give, as the largest of something over all limbs
        does: they come last."""

    def one_by_one(self, texts: Sequence[str]) -> None:
        for text in texts:
            if self.is_early(text):
                if parsed(text) is None:
                    raise _UnavailableError
                self.deferred.append(text)
            else:
                self.pending.discard(text.partition(" = ")[0].strip())
                self.lines.append(text)

    def is_early(self, text: str) -> bool:
        _, _, rest = text.rpartition(" = ")
        return any(each in self.pending for each in NAMES.findall(rest))

    def finish(self) -> None:
        """What was deferred."""
        while self.deferred:
            left, self.deferred = self.deferred, []
            self.one_by_one(left)
            if len(self.deferred) == len(left):
                raise _UnavailableError

    def side_by_side(self, texts: Sequence[str]) -> None:
        """The same line of all limbs."""
        lines = [line for line in map(parsed, texts) if line is not None]
        if len(lines) == len(texts) and len({line.what for line in lines}) == 1:
            try:
                self.together([*lines, *[lines[0]] * (self.width - len(lines))])
                return
            except _UnavailableError:
                pass
        self.one_by_one(texts)

    def together(self, lines: Sequence[Line]) -> None:
        """One instruction for all lanes; each number keeps its name, for whoever needs it alone."""
        what, width = lines[0].what, self.width
        many, names = f"<{width} x double>", tuple(line.name for line in lines)
        result, element = self.walk.new_name(), "i1" if what.startswith("fcmp") else "double"
        if what.startswith("part"):
            pair = self.pairs.get(tuple(line.operands[0] for line in lines))
            if pair is None:
                raise _UnavailableError
            self.lines.append(f"  {result} = extractvalue {{{many}, {many}}} {pair}, {what[5:]}")
        else:
            columns = list(zip(*(line.operands for line in lines), strict=True))
            if what == "select":
                condition, *values = (self.vector(x, "double" if k else "i1") for k, x in enumerate(columns))
                self.lines.append(
                    f"  {result} = select <{width} x i1> {condition}, {many} {values[0]}, {many} {values[1]}"
                )
            elif what[:5] in ("call ", "pair "):
                arguments = ", ".join(f"{many} {self.vector(x)}" for x in columns)
                kind, *flags, function = what.split()
                back = many if kind == "call" else f"{{{many}, {many}}}"
                wide = self.walk.widened(function, width)
                self.lines.append(f"  {result} = {' '.join(['call', *flags, back])} @{wide}({arguments})")
            else:
                self.lines.append(f"  {result} = {what} {many} {', '.join(map(self.vector, columns))}")
        if what.startswith("pair"):
            self.pairs[names] = result  # what is not taken of it for all lanes cannot be taken
            return
        self.pending.difference_update(names)
        self.vectors[names] = result
        lanes = f"<{width} x {element}> {result}"
        for lane, name in enumerate(dict.fromkeys(names)):
            self.lines.append(f"  {name} = extractelement {lanes}, i32 {lane}")

    def vector(self, names: tuple[str, ...], element: str = "double") -> str:
        if names in self.vectors:
            return self.vectors[names]
        if any(name in self.pending for name in names):
            raise _UnavailableError
        many, text = f"<{self.width} x {element}>", "undef"
        if not any(name[0] == "%" for name in names):
            return f"<{', '.join(f'{element} {name}' for name in names)}>"
        for lane, name in enumerate(names):
            new = self.walk.new_name()
            self.lines.append(f"  {new} = insertelement {many} {text}, {element} {name}, i32 {lane}")
            text = new
        self.vectors[names] = text
        return text


def side_by_side(rounds: Sequence[Sequence[str]], walk: Evaluation) -> list[str]:
    """The lines of all rounds of a loop, equal limbs in vectors."""
    kinds = [Counter(VARYING.sub("?", line) for line in lines) for lines in rounds]
    names = [[given_first(line) for line in lines] for lines in rounds]
    result: list[str] = []
    start = 0
    while start < len(rounds):
        for length, count in candidates(kinds, start):
            places = [slice(start + k * length, start + (k + 1) * length) for k in range(count)]
            if not are_apart([names[place] for place in places]):
                continue
            try:
                limbs = [rounds[place] for place in places]
                result += merged(limbs, walk)
                start += length * count
                break
            except _UnavailableError:
                continue
        else:
            result += rounds[start]
            start += 1
    return result


def given_first(line: str) -> list[str]:
    """The name that a line defines, "" if it defines none, and those that it uses."""
    return NAMES.findall(line) if " = " in line else ["", *NAMES.findall(line)]


def candidates(kinds: Sequence[Counter[str]], start: int) -> list[tuple[int, int]]:
    """Lengths and numbers of limbs that may be equal, from a round on; most rounds first, then most limbs."""
    left, found = len(kinds) - start, list[tuple[int, int]]()
    for length in range(1, left // LEAST_LANES + 1):
        count = 1
        while (
            count < MOST_LANES
            and (count + 1) * length <= left
            and all(is_alike(kinds[start + d], kinds[start + count * length + d]) for d in range(length))
        ):
            count += 1
        if count >= LEAST_LANES:
            found.append((length, count))
    return sorted(found, key=lambda each: (each[0] * each[1], each[1]), reverse=True)


def are_apart(limbs: Sequence[Sequence[Sequence[Sequence[str]]]]) -> bool:
    """Whether little of any limb follows from what others give, by the names of each line: else they follow each other."""
    gives = [{line[0] for lines in limb for line in lines} for limb in limbs]
    for k, limb in enumerate(limbs):
        from_others = set[str]().union(*gives[:k], *gives[k + 1 :])
        lines = [line for lines in limb for line in lines]
        bound = 0
        for line in lines:
            if any(name in from_others for name in line[1:]):
                from_others.add(line[0])
                bound += 1
        if bound > BOUND * len(lines):
            return False
    return True


def matching(a: Sequence[str], b: Sequence[str]) -> dict[int, int]:
    """Which lines of one round are lines of another, in the same order."""
    found = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    return {i + k: j + k for i, j, size in found for k in range(size)}


def is_alike(a: Counter[str], b: Counter[str]) -> bool:
    """Whether two rounds have enough kinds of lines in common, in whatever order."""
    return 0 < SHARED * max(a.total(), b.total()) <= (a & b).total()


def merged(limbs: Sequence[Sequence[Sequence[str]]], walk: Evaluation) -> list[str]:
    """The rounds of equal limbs: of each depth, first what they have in common, then the rest of each."""
    width = 1 << (len(limbs) - 1).bit_length()
    lanes = Lanes(width, [lines for limb in limbs for lines in limb], walk)
    for depth in zip(*limbs, strict=True):
        shapes = [[VARYING.sub("?", line) for line in lines] for lines in depth]
        others = [matching(shapes[0], shape) for shape in shapes[1:]]
        done = [0] * len(depth)
        for first in range(len(depth[0])):
            if not all(first in other for other in others):
                continue
            at = [first, *(other[first] for other in others)]
            for lines, start, end in zip(depth, done, at, strict=True):
                lanes.one_by_one(lines[start:end])
            lanes.side_by_side([lines[k] for lines, k in zip(depth, at, strict=True)])
            done = [k + 1 for k in at]
        for lines, start in zip(depth, done, strict=True):
            lanes.one_by_one(lines[start:])
    lanes.finish()
    if accesses(lanes.lines) != accesses([text for limb in limbs for lines in limb for text in lines]):
        raise _UnavailableError
    return lanes.lines


def accesses(lines: Sequence[str]) -> dict[Place, list[str]]:
    """What is read from and written to each place in memory that is written to, in order. One that is not known is any."""
    places, found = places_of(lines), dict[Place, list[str]]()
    for text in lines:
        if access := ACCESS.search(text):
            found.setdefault(places.get(access[2], (access[2], 0)), []).append(text)
    if any(where is None for _, where in found):
        return {("", None): [text for text in lines if ACCESS.search(text)]}
    return {place: texts for place, texts in found.items() if any(text.startswith("  store") for text in texts)}
