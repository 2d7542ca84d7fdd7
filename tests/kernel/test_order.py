"""Rounds of loops that change places compute what they did: random code, run line by line before and after, and kernels of
one robot for the CPU, with its rounds as GPUs have them."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some_of

import saltus as sl
from saltus.kernel.evaluation import Evaluation
from saltus.kernel.order import as_needed

CELLS = 5
"""Numbers in each memory."""

MEMORIES = ("%a", "%b", "%w.1")
INDICES = {"%n0": 0, "%n1": 1, "%n2": 3}
NUMBERS = ("%x", "%y")

# ---------------------------------------------------------------------------------------------------- what code does


def run(lines: Sequence[str]) -> tuple[dict[tuple[str, int], int], dict[str, Any]]:
    """Memory and all names, at the end. What an operation gives is a hash of what it takes: no mistake cancels another."""
    memory = {(name, 8 * k): hash((name, k)) for name in MEMORIES for k in range(CELLS)}
    names: dict[str, Any] = {name: (name, 0) for name in MEMORIES}
    names |= INDICES | {name: hash(name) for name in NUMBERS}

    def value(text: str) -> Any:
        return names[text] if text[0] == "%" else int(text)

    def step(line: str) -> None:
        if line.startswith("  store"):
            what, pointer = re.findall(r"%[\w.]+", line)
            memory[names[pointer]] = names[what]
        elif line.startswith("  call void"):
            base = names[re.findall(r"%[\w.]+", line)[0]][0]
            memory.update({place: hash((x, "changed")) for place, x in memory.items() if place[0] == base})
        elif made := re.match(r"  (\S+) = (.*)", line):
            name, text = made.groups()
            assert name not in names, f"{name} is defined twice"
            operands = re.findall(r"%[\w.]+|-?\b\d+$", text)
            if text.startswith("getelementptr"):
                base, start = value(operands[0])
                names[name] = base, start + {"double": 8, "i8": 1}[text.split()[1].rstrip(",")] * value(operands[1])
            elif text.startswith("load"):
                names[name] = memory[names[operands[0]]]
            elif "i64" in text:
                names[name] = value(operands[0]) + value(operands[1])
            else:
                names[name] = hash((text.split()[0], *map(value, operands)))

    for line in "\n".join(lines).split("\n"):
        step(line)
    return memory, names


def blocks(lines: Sequence[str]) -> list[Counter[str]]:
    """What stands between labels, jumps and calls that come by memory, which are blocks of their own."""
    found = [Counter[str]()]
    for line in lines:
        if re.match(r"\w+:|  br|.* = phi|  call void", line):
            found += [Counter([line]), Counter()]
        else:
            found[-1][line] += 1
    return found


def agrees(lines: Sequence[str], rounds: Sequence[tuple[int, int]]) -> list[str]:
    result = as_needed(lines, rounds)
    assert blocks(result) == blocks(lines)
    assert run(result) == run(lines)
    return result


# ---------------------------------------------------------------------------------------------------- random code


class Code:
    """Random code, as the compiler writes it: rounds of loops, single lines and jumps."""

    def __init__(self, random: Random) -> None:
        self.random, self.lines, self.rounds, self.count = random, list[str](), list[tuple[int, int]](), 0
        self.pointers = {name: 0 for name in MEMORIES}  # where they lead
        self.numbers = list(NUMBERS)
        self.indices = dict(INDICES)
        self.labels = ["entry"]

    def name(self) -> str:
        self.count += 1
        return f"%{self.count}"

    def number(self) -> str:
        """Mostly one of the last."""
        last = self.numbers[-6:] if self.random.random() < 0.7 else self.numbers
        return self.random.choice(last)

    def add_pointer(self) -> None:
        base, new = self.random.choice(list(self.pointers)), self.name()
        fitting = [name for name, k in self.indices.items() if 0 <= self.pointers[base] + k < CELLS]
        if fitting and self.random.random() < 0.4:
            index = self.random.choice(fitting)
            step, text = self.indices[index], f"double, ptr {base}, i64 {index}"
        else:
            step = self.random.randrange(CELLS) - self.pointers[base]
            text = self.random.choice([f"double, ptr {base}, i64 {step}", f"i8, ptr {base}, i64 {8 * step}"])
        self.lines.append(f"  {new} = getelementptr {text}")
        self.pointers[new] = self.pointers[base] + step

    def add_line(self) -> None:
        kind = self.random.choice(["place", "load", "load", "store", "store", "sum", "sum", "sum", "index", "nothing"])
        pointer = self.random.choice(list(self.pointers))
        if kind == "place":
            self.add_pointer()
        elif kind == "load":
            self.numbers.append(self.name())
            after = self.random.choice(["", ", !invariant.load !0"]) if pointer == "%b" else ""
            self.lines.append(f"  {self.numbers[-1]} = load double, ptr {pointer}, align 8{after}")
        elif kind == "store":
            self.lines.append(f"  store double {self.number()}, ptr {pointer}, align 8")
        elif kind == "sum":
            operands = ", ".join(self.number() for _ in range(self.random.randint(1, 3)))
            self.numbers.append(self.name())
            self.lines.append(f"  {self.numbers[-1]} = fadd contract nsz arcp double {operands}")
        elif kind == "index":
            name, k = self.random.choice(list(self.indices.items()))
            new = self.name()
            self.lines.append(f"  {new} = add nsw i64 {name}, {1 - k}")
            self.indices[new] = 1
        else:
            self.lines.append("")  # the compiler leaves room

    def add_jump(self) -> None:
        label = f"l{len(self.labels)}"
        if self.random.random() < 0.3:
            self.lines.append(f"  call void @f(ptr {self.random.choice(MEMORIES)})")
            return
        a, b = self.number(), self.number()
        self.lines += [f"  br label %{label}", f"{label}:"]
        if self.random.random() < 0.5:
            self.numbers.append(self.name())
            self.lines.append(f"  {self.numbers[-1]} = phi double [{a}], [{b}]")
        self.labels.append(label)

    def write(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            for _ in range(self.random.randint(0, 4)):
                self.add_line()
            for _ in range(self.random.randint(0, 5)):
                start = len(self.lines)
                for _ in range(self.random.randint(0, 9)):
                    self.add_line()
                if self.random.random() < 0.1:
                    self.add_jump()
                self.rounds.append((start, len(self.lines)))
            if self.random.random() < 0.3:
                self.add_jump()


@settings(max_examples=400)
@given(random=some_of.randoms(use_true_random=False))
def test_random_code(random: Random) -> None:
    code = Code(random)
    code.write()
    agrees(code.lines, code.rounds)


def test_long_random_code() -> None:
    """Also that there is something to see: most of it changes places."""
    moved = 0
    for seed in range(150):
        code = Code(Random(seed))
        for _ in range(8):
            code.write()
        moved += agrees(code.lines, code.rounds) != code.lines
    assert moved > 75


# ---------------------------------------------------------------------------------------------------- known code


def written(*rounds: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Lines and rounds, from a text each."""
    lines, places = list[str](), list[tuple[int, int]]()
    for text in rounds:
        start = len(lines)
        lines += [f"  {line.strip()}" for line in text.strip().split("\n")]
        places.append((start, len(lines)))
    return lines, places


SUM = "{} = fadd contract nsz arcp double {}"
STORE, LOAD = "store double {}, ptr {}, align 8", "{} = load double, ptr {}, align 8"
PLACE = "{} = getelementptr double, ptr {}, i64 {}"

CONFLICTS: dict[str, tuple[str, str]] = {
    "written, then read": (STORE.format("%x", "%a"), LOAD.format("%1", "%a")),
    "read, then written": (LOAD.format("%1", "%a"), STORE.format("%x", "%a")),
    "written twice": (STORE.format("%x", "%a"), STORE.format("%y", "%a")),
    "two pointers to one place": (
        PLACE.format("%p", "%a", 2) + "\n" + STORE.format("%x", "%p"),
        PLACE.format("%q", "%a", 2) + "\n" + LOAD.format("%1", "%q"),
    ),
    "by way of another place, and in bytes": (
        PLACE.format("%p", "%a", 1) + "\n" + PLACE.format("%q", "%p", 1) + "\n" + STORE.format("%x", "%q"),
        "%r = getelementptr i8, ptr %a, i64 16\n" + LOAD.format("%1", "%r"),
    ),
    "written somewhere": (
        PLACE.format("%p", "%a", "%n1") + "\n" + STORE.format("%x", "%p"),
        PLACE.format("%q", "%a", 1) + "\n" + LOAD.format("%1", "%q"),
    ),
    "read somewhere": (
        PLACE.format("%p", "%a", 1) + "\n" + STORE.format("%x", "%p"),
        PLACE.format("%q", "%a", "%n1") + "\n" + LOAD.format("%1", "%q"),
    ),
    "read somewhere, then written": (
        PLACE.format("%p", "%a", "%n1") + "\n" + LOAD.format("%1", "%p"),
        PLACE.format("%q", "%a", 1) + "\n" + STORE.format("%x", "%q"),
    ),
    "behind somewhere": (
        PLACE.format("%p", "%a", "%n0") + "\n" + PLACE.format("%q", "%p", 1) + "\n" + STORE.format("%x", "%q"),
        PLACE.format("%r", "%a", 1) + "\n" + LOAD.format("%1", "%r"),
    ),
}


def in_turn(first: str, second: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Two rounds of which the second one is needed before the first."""
    lines, rounds = written(f"{first}\n{SUM.format('%2', '%x')}", f"{second}\n{SUM.format('%3', '%y')}")
    return [*lines, "  " + SUM.format("%4", "%3"), "  " + SUM.format("%5", "%2")], rounds


@pytest.mark.parametrize("name", CONFLICTS)
def test_rounds_that_come_by_the_same_place(name: str) -> None:
    """They stay in their order."""
    one, other = CONFLICTS[name]
    for first, second in ((one, other), (other, one)):
        lines, rounds = in_turn(first, second)
        assert agrees(lines, rounds) == lines


@pytest.mark.parametrize("pointer", ["%b", "%q"])
def test_rounds_that_come_by_different_places(pointer: str) -> None:
    """The one that is needed first goes first."""
    lines, rounds = in_turn(STORE.format("%x", "%a"), f"{PLACE.format('%q', '%a', 1)}\n{LOAD.format('%1', pointer)}")
    assert agrees(lines, rounds) == [*lines[2:6], *lines[:2], lines[6]]


def limb_of(line: str) -> str:
    return re.findall(r"[%.]l(\d)", line)[0]


def double_sweep(limbs: int, depth: int) -> tuple[list[str], list[tuple[int, int]]]:
    """To the leaves and back: what a body's first round finds is kept for its second one."""
    rounds = []
    for limb in range(limbs):
        for k in range(depth):
            own, before = f"%l{limb}.{k}", f"%l{limb}.{k - 1}.a" if k else "%x"
            rounds.append(
                "\n".join([
                    PLACE.format(f"{own}.p", "%a", k), LOAD.format(f"{own}.q", f"{own}.p"),
                    SUM.format(f"{own}.a", f"{own}.q, {before}"), SUM.format(f"{own}.b", f"{own}.q, {own}.a"),
                    SUM.format(f"{own}.c", f"{own}.q, {own}.b"),
                ])
            )  # fmt: skip
    for limb in reversed(range(limbs)):
        for k in reversed(range(depth)):
            own, after = f"%l{limb}.{k}", f", %l{limb}.{k + 1}.f" if k < depth - 1 else ""
            rounds.append(
                "\n".join([
                    SUM.format(f"{own}.e", f"{own}.a, {own}.b, {own}.c{after}"),
                    SUM.format(f"{own}.f", f"{own}.e, {own}.a"),
                ])
            )  # fmt: skip
    lines, places = written(*rounds)
    total = ", ".join(f"%l{limb}.0.f" for limb in range(limbs))
    return [*lines, "  " + SUM.format("%total", total), "  " + STORE.format("%total", "%b")], places


def most_alive(lines: Sequence[str]) -> int:
    """How many numbers at most are still to be used."""
    last = {name: k for k, line in enumerate(lines) for name in re.findall(r"%[\w.]+", line)}
    alive = most = 0
    for k, line in enumerate(lines):
        names = set(re.findall(r"%[\w.]+", line)) - {"%a", "%b", "%x"}
        alive += " = " in line
        most = max(most, alive)
        alive -= sum(last[name] == k for name in names)
    return most


@pytest.mark.parametrize("limbs, depth", [(4, 3), (2, 5), (6, 1)])
def test_a_limb_goes_out_and_back_before_the_next(limbs: int, depth: int) -> None:
    lines, rounds = double_sweep(limbs, depth)
    result = agrees(lines, rounds)
    assert len(list(groupby(map(limb_of, lines[:-2])))) == 2 * limbs - 1
    assert len(list(groupby(map(limb_of, result[:-2])))) == limbs
    assert most_alive(lines) >= 3 * limbs * depth
    assert most_alive(result) <= 3 * depth + limbs + 3


def test_the_longer_of_two_limbs_goes_first() -> None:
    """Less waits for the shorter one."""
    lines, rounds = written(SUM.format("%1", "%x"), SUM.format("%2", "%y"), SUM.format("%3", "%2"))
    lines.append("  " + SUM.format("%4", "%1, %3"))
    joined = [(rounds[0][0], rounds[0][1]), (rounds[1][0], rounds[2][1])]
    assert agrees(lines, joined) == lines  # as long as each other, by rounds
    lines, rounds = written(*(f"{SUM.format(f'%{k}0', of)}\n{SUM.format(f'%{k}', f'%{k}0')}"
                              for k, of in enumerate(("%x", "%y", "%1"))))  # fmt: skip
    lines.append("  " + SUM.format("%4", "%0, %2"))
    assert agrees(lines, rounds) == [*lines[2:6], *lines[:2], lines[6]]


def test_what_leaves_fewer_numbers_than_it_takes_is_done_at_once() -> None:
    """A sum of three numbers, in a round that has to wait for another one of its loop; not one that leaves as many."""
    given = [f"  {SUM.format(f'%{k}', '%x')}" for k in range(4)]
    waits = f"{SUM.format('%12', '%11, %0, %1, %2')}\n{SUM.format('%13', '%12')}"
    for sums, at_once in (("%0, %1, %2", True), ("%0", False)):
        lines, rounds = written(waits, f"{SUM.format('%20', sums)}\n{SUM.format('%21', '%20, %13')}")
        begin = len(given) + 1
        lines = [*given, f"  {SUM.format('%11', '%3')}", *lines, "  " + SUM.format("%22", "%21")]
        result = agrees(lines, [(first + begin, end + begin) for first, end in rounds])
        names = [re.findall(r"%\w+", line)[0] for line in result]
        assert (names.index("%20") < names.index("%12")) == at_once


# ---------------------------------------------------------------------------------------------------- real kernels


@pytest.fixture
def reordered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """The CPU's code has its rounds as GPUs have them; how many lines of each function have changed places."""
    moved: list[int] = []

    def arranged(self: Evaluation) -> list[str]:
        before, after = (list(filter(None, x)) for x in (self.lines, as_needed(self.lines, self.spans)))
        moved.append(sum(map(operator.ne, before, after)))
        assert Counter(before) == Counter(after)
        return after

    monkeypatch.setenv("SALTUS_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(Evaluation, "arranged", arranged)
    return moved


def lighter(model: sl.Model) -> sl.Model:
    """A robot that nobody else has, so that nothing of its code is there already."""
    return model.replace(gravity=(0.125, -0.25, -3.5))


def with_feet(method: str) -> Callable[[sl.Model, Any, Any, Any], Any]:
    def solve(model: sl.Model, *state: Any) -> Any:
        feet = [sl.Contact(model, foot, kd=3.0) for foot in sl.robot_frames("quadruped").feet]
        return sl.ConstrainedDynamics(model, feet, method).solve(*state)[:2]

    return solve


@pytest.mark.parametrize(
    "function",
    [sl.aba, sl.rnea, *map(with_feet, ("constrained_aba", "prox_pv", "loop_aba"))],
    ids=["aba", "rnea", "constrained_aba", "prox_pv", "loop_aba"],
)
def test_kernels_of_one_robot(function: Callable[..., Any], reordered: list[int]) -> None:
    model = lighter(sl.load_robot("quadruped"))
    rng = np.random.default_rng(0)
    q, (v, tau) = sl.random_configuration(model, 0, 9), rng.normal(size=(2, 9, model.nv))
    right = function(model, q, v, tau)
    assert not reordered
    found = function(sl.specialise(model), q, v, tau)
    assert max(reordered) > 100
    for ours, theirs in zip(found, right, strict=True) if isinstance(right, tuple) else [(found, right)]:
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * np.abs(theirs).max())
