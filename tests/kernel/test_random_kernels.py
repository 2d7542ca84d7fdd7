"""Random kernels, which no one has thought of, compute what Python does."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some_of

from tests.kernel.language import INTEGERS, MODEL, MODULE, WIDTH, interpreted, load

HELPERS = """
class Pair(NamedTuple):
    a: Scalar
    b: Scalar

@kernel
def wrapped(x):
    return x - 64.0 * floor(x * 0.015625)

@kernel
def stepped(x, k):
    if k < 0:
        return x
    for m in range(3):
        if m == k:
            return x + m
        x = wrapped(x - 1.0)
    return 2.0
"""


class Writer:
    """Writes a random kernel. Its numbers are whole and small, so that every order of rounding gives the same."""

    def __init__(self, draw: Callable[..., Any]) -> None:
        self.draw, self.indices, self.lines = draw, list[str](), list[str]()

    def pick(self, *choices: Any) -> Any:
        return self.draw(some_of.sampled_from(choices))

    def integer(self, depth: int = 2) -> str:
        if depth == 0:
            return self.pick(
                "i", "j", "k", "n[1]", "n[4]", "w.count[0]", "w.count[i % 6]", "-3", "0", "1", "2", "7", *self.indices
            )
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        divisor = self.pick("2", "-3", "7", f"({b} * {b} + 1)", f"(-2 - {b} * {b})")
        return self.pick(a, f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"-{a}", f"({a} // {divisor})",
                         f"({a} % {divisor})", f"min({a}, {b})", f"max({a}, {b})",
                         f"({a} if {self.condition(depth - 1)} else {b})")  # fmt: skip

    def condition(self, depth: int = 2) -> str:
        a, b, c = (self.integer(0) for _ in range(3))
        how, other = self.pick("<", "<=", ">", ">=", "==", "!="), self.pick("<", "!=")
        plain = [f"{a} {how} {b}", f"{a} {how} {b} {other} {c}", f"(0 <= {a} < 6 and n[{a}] {how} {b})", f"{a} % 2"]
        if depth == 0:
            return self.pick(*plain)
        one, two = self.condition(depth - 1), self.condition(depth - 1)
        return self.pick(*plain, f"(not {one})", f"({one} and {two})", f"({one} or {two})")

    def number(self, depth: int = 2) -> str:
        if depth == 0:
            return self.pick("x", "z", "p.a", "p.b", "v[0]", "v[3]", "2.0", "-1.0", "0.0", "3")
        a, b = self.number(depth - 1), self.number(depth - 1)
        return self.pick(a, f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"-{a}", f"({a} + {self.integer(1)})",
                         f"select(less({a}, {b}), {b}, 2.0)", f"minimum({a}, {b})", f"stepped({a}, {self.integer(0)})",
                         f"({a} if {self.condition(1)} else {b})")  # fmt: skip

    def line(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def block(self, indent: int, loops: int = 0) -> None:
        for _ in range(self.pick(1, 2, 3)):
            self.statement(indent, loops)

    def statement(self, indent: int, loops: int) -> None:
        kinds = ["integer", "integer", "number", "number", "pair", "swap", "element", "kept"]
        if indent < 5:
            kinds += ["if", "if", "for", "while", "forever", "tuple"]
        if loops:
            kinds += ["leave", "leave"]
        kind, counter = self.pick(*kinds), f"c{len(self.lines)}"
        if kind == "integer":
            self.line(indent, f"{self.pick('i', 'j', 'k')} = {self.integer()} % 41 - 20")
        elif kind == "number":
            self.line(indent, f"{self.pick('x', 'z')} = wrapped({self.number()})")
        elif kind == "pair":
            self.line(indent, f"p = Pair(wrapped({self.number()}), p.a)")
        elif kind == "swap":
            self.line(indent, self.pick("i, j = j, k", "x, z = z, x", "i, x = -i, wrapped(x + i)"))
        elif kind == "element":
            self.line(indent, f"y[{self.pick('0', '1', 'i % 6')}] += wrapped({self.number(1)})")
        elif kind == "kept":
            what = self.pick(f"= {self.integer()} % 41 - 20", f"= {self.integer(1)} < j", "%= 3", "+= j % 3")
            self.line(indent, f"w.count[{self.pick('0', '1', 'i % 6')}] {what}")
        elif kind == "leave":
            self.line(indent, f"if {self.condition()}:")
            self.line(indent + 1, self.pick("break", "continue", "return"))
        elif kind == "if":
            self.line(indent, f"if {self.condition()}:")
            self.block(indent + 1, loops)
            for word in self.pick((), ("else",), ("elif", "else"), ("elif",)):
                self.line(indent, "else:" if word == "else" else f"elif {self.condition()}:")
                self.block(indent + 1, loops)
        elif kind == "for":
            ends = self.pick("3", "i % 4", "1, 4", "j % 3, 4", "4, k % 3, -1", "3, -2, -2", "0, 5, 2 if i > 0 else -1")
            self.line(indent, f"for {counter} in range({ends}):")
            self.indices.append(counter)
            self.block(indent + 1, loops + 1)
            self.indices.pop()
        elif kind == "tuple":
            self.line(indent, f"for {counter}, x in (({self.integer(0)}, 2.0), (i, {self.number(0)})):")
            self.block(indent + 1, loops + 1)
        else:
            self.line(indent, f"{counter} = 0")
            self.line(indent, f"while {self.condition()} and {counter} < 4:" if kind == "while" else "while True:")
            self.line(indent + 1, f"{counter} += 1")
            if kind == "forever":
                self.line(indent + 1, f"if {counter} > 3 or {self.condition(1)}:")
                self.line(indent + 2, "break")
            self.block(indent + 1, loops + 1)


@some_of.composite
def random_kernels(draw: Any) -> str:
    writer = Writer(draw)
    writer.line(1, "for m in range(12):")
    writer.line(2, "y[m] = 0.0")
    writer.line(1, "for m in range(6):")
    writer.line(2, "w.count[m] = n[m]")
    writer.line(1, "i, j, k, x, z, p = 1, n[0], n[2], v[1], zero(v), Pair(v[2], 1.0)")
    writer.block(1)
    writer.line(1, "st(y, 6, (i, j + w.count[0], k - 7 * w.count[1], x, z + w.count[5], p.a - 100.0 * p.b))")
    return "\n".join(writer.lines)


COUNTER = itertools.count()


@settings(max_examples=20)
@given(body=random_kernels())
def test_random_kernels(body: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    name = f"_random{next(COUNTER)}"
    folder = tmp_path_factory.mktemp("random")
    random = load(folder, name, f"{MODULE}{HELPERS}@declared\ndef {name}(tree, n, v, w, y):\n{body}\n")
    v = np.random.default_rng(1).integers(-9, 10, (WIDTH + 1, 6)).astype(float)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SALTUS_CACHE_DIR", str(folder))
        for n in INTEGERS:
            right = [interpreted(random, n, row.tolist()) for row in v]
            assert random.call(MODEL, (n, v[0])).tolist() == right[0]
            assert random.call(MODEL, (n, v)).tolist() == right
