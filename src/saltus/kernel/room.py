"""Room for numbers near a GPU's threads: its shared memory, of which each thread takes a part of its own.

Code of one robot has its workspace in registers. What these cannot hold goes to memory that is far, and comes back, which is
most of the time of a kernel that keeps three hundred numbers between its sweeps. So numbers of the fields that an algorithm
says are `waiting` have a place in shared memory instead: as many as fit beside each other, number by number, so that
neighbouring threads touch neighbouring words. They are read from there whenever they are asked for: LLVM and ptxas would
keep them otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from saltus.kernel.memory import records
from saltus.kernel.number import F64, Number
from saltus.kernel.tuples import leaf_count

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm
    from saltus.kernel.expressions import Expressions

BLOCK = 128
"""Threads of a block."""

BYTES = 113 << 10
"""Of a block, where a multiprocessor runs two at a time."""

NAME = "room"


class Room(NamedTuple):
    """The first numbers of a field, so many, from an address on."""

    pointer: str
    length: int

    def has(self, index: str) -> bool:
        if index[0] == "%":
            raise ValueError("a field that waits near a GPU's threads is read or written at an index that is not known")
        return int(index) < self.length


def fields(algorithm: Algorithm, number: Number) -> Iterator[tuple[str, int]]:
    """The fields that wait, and how many of their numbers have room. In single precision registers hold twice as
    many, and it is slower (measured)."""
    if algorithm.known is None or number != F64:
        return
    left = BYTES // (8 * BLOCK)
    for name in algorithm.waiting:
        spec = algorithm.work.fields[name]
        count = min(left, leaf_count(spec.cls) * records(spec.group, algorithm.known.sizes))
        left -= count
        yield name, count


def size(algorithm: Algorithm, number: Number) -> int:
    """Bytes of a block."""
    return sum(count for _, count in fields(algorithm, number)) * 8 * BLOCK


def make_room(walk: Expressions, algorithm: Algorithm, number: Number, view: Any) -> Any:
    """The view of a workspace, whose fields have room from now on."""
    if not size(algorithm, number):
        return view
    walk.module.declarations[NAME] = f"@{NAME} = external addrspace(3) global [0 x double], align 16"
    thread = walk.op(f"zext i32 {walk.intrinsic('llvm.nvvm.read.ptx.sreg.tid.x', 'i32', [])} to i64")
    start = walk.moved(walk.op(f"addrspacecast ptr addrspace(3) @{NAME} to ptr"), "double", thread)
    for name, count in fields(algorithm, number):
        field = view.parts[list(algorithm.work.fields).index(name)]
        walk.module.rooms[field.text] = Room(start, count)
        start = walk.moved(start, "double", count * BLOCK)
    return view
