"""The entry point of GPUs: what every thread runs, samples index, index + threads, ...

    gpu(work, count, numbers, table)

`count` samples; `numbers` that a thread has of the workspace. `table` comes with the launch itself, where constants cost no
registers: the addresses of the arguments; their `meta` (memory.py; that of integers holds them); whether results are made in
the workspace; the sizes; the addresses of the groups of the model's tables; where those of the workspace begin, in bytes.

The threads of a block have their workspace in one piece, number by number, so that neighbouring threads touch neighbouring
words, a constant number of words apart. Large results whose samples lie one after the other, which kernels go over more
than once, are made behind it and copied once (`STAGE` says where).
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from saltus.kernel.entries import TABLE, Entry, Parts, make_tree
from saltus.kernel.memory import META, SIZE, ld, st, tail
from saltus.kernel.number import INT64, Number
from saltus.kernel.primitives import Primitive
from saltus.kernel.room import BLOCK, make_room
from saltus.kernel.tuples import kernel
from saltus.kernel.values import INT, Column, Group, Span, Value

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm
    from saltus.kernel.expressions import Expressions


class Places(NamedTuple):
    """Where in the table what begins, and its length."""

    meta: int
    staged: int
    sizes: int
    groups: int
    work: int
    length: int


def places_of(algorithm: Algorithm) -> Places:
    total, tables = len(algorithm.arguments), algorithm.tables
    return Places(*accumulate((total, total * META, 1, len(tables.sizes), tables.groups, len(algorithm.work.records))))


def special(name: str) -> Primitive:
    """() -> a special register of a thread"""

    @Primitive
    def register(walk: Expressions) -> Any:
        small = walk.intrinsic(f"llvm.nvvm.read.ptx.sreg.{name}.x", "i32", [])
        return Value(INT, walk.op(f"zext i32 {small} to i64"))

    return register


block_index, thread_index, block_count = map(special, ("ctaid", "tid", "nctaid"))


@Primitive
def strided(walk: Expressions, span: Any, start: Any) -> Any:
    """From an index on, numbers that lie a block apart."""
    place = walk.place(span.type, span.texts, walk.integer(start))
    return Value(Span(span.type.number, strided=True), place, str(BLOCK))


def make_work(algorithm: Algorithm, first: int) -> Primitive:
    """(table, memory) -> the workspace, whose groups begin where the table says from word `first` on."""
    layout = algorithm.work

    @Primitive
    def view(walk: Expressions, table: Any, memory: Any) -> Any:
        starts = {}
        for k, group in enumerate(layout.records, first):
            start = walk.integer(walk.load_number(TABLE, table.texts, str(k)))
            starts[group] = walk.moved(memory.text, "i8", start)
        parts = [Value(Column(memory.type, x), starts[x.group], *memory.texts[1:]) for x in layout.fields.values()]
        return Group(layout.view_class, tuple(parts))

    return view


def own_work(algorithm: Algorithm, number: Number, view_of: Primitive) -> Primitive:
    """The same for one robot: registers, and what waits has room."""

    @Primitive
    def view(walk: Expressions, table: Any, memory: Any) -> Any:
        return make_room(walk, algorithm, number, view_of.emit(walk, table, memory))

    return view


@kernel
def copy(source, target, count):
    """Four numbers under way at a time: memory is far."""
    n = 0
    while n + 4 <= count:
        a, b, c, d = ld(source, n), ld(source, n + 1), ld(source, n + 2), ld(source, n + 3)
        st(target, n, a)
        st(target, n + 1, b)
        st(target, n + 2, c)
        st(target, n + 3, d)
        n += 4
    while n < count:
        st(target, n, ld(source, n))
        n += 1


def gpu_entry(algorithm: Algorithm, number: Number, present: tuple[bool, ...]) -> Entry:
    parts, places = Parts(algorithm, number, present, "strided"), places_of(algorithm)
    tree_of = make_tree(algorithm, number, places.sizes, places.groups)
    view_of = own_work(algorithm, number, parts.view) if algorithm.known else make_work(algorithm, places.work)
    stages = not algorithm.known
    first, results = len(algorithm.inputs), tuple(range(len(algorithm.outputs)))

    def gpu(work, count, numbers, table):
        block, thread = block_index(), thread_index()
        memory = strided(work, block * numbers * BLOCK + thread)
        tree, view, meta = tree_of(table), view_of(table, memory), tail(table, places.meta)
        staged = table[places.staged] if stages else 0
        for sample in range(block * BLOCK + thread, count, block_count() * BLOCK):
            outputs = parts.outputs(table, meta, memory, sample)
            made = outputs
            if staged:
                made = parts.made(table, meta, memory, sample)
            parts.run(tree, *parts.inputs(table, meta, memory, sample), view, *made)
            if staged:
                for k in results:
                    copy(made[k], outputs[k], meta[META * (first + k) + SIZE])

    return Entry(gpu, (Span(number), INT, INT, Span(INT64, held=places.length)))
