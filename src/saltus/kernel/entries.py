"""Entry points: what is compiled around a kernel, so that calling an algorithm needs no code of its own.

    one (handle, pointers, meta, work)                 one sample, arrays used in place
    many(handle, pointers, meta, work, start, stop)    samples start ... stop - 1, packed into lanes

`handle` has the model's tables (tables.py), `pointers` the address of each array argument, `meta` describes it (see `META`).
Both return a status: 0, or the sum of `NOT_FINITE`, `NOT_UNIT` and `TOO_FAR` if an input holds NaN or infinity, or a
configuration a quaternion (or a cosine and sine) that is not of unit length, or an angle beyond those that `sincos` takes.
They are kernels themselves, made for each algorithm: what a closure holds is known, and loops over it are unrolled. Those of
derivatives are in push.py and push_along.py, that of GPUs in gpu_entry.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from saltus.kernel.memory import META, ONE, SIZE, STAGE, STEP, STRIDE, FieldSpec, Layout, records, tail
from saltus.kernel.number import INT32, INT64, Number
from saltus.kernel.primitives import Primitive
from saltus.kernel.scalar import less, some
from saltus.kernel.transfer import clear, holds_non_finite, pack, unpack, unpack_symmetric
from saltus.kernel.tuples import kernel, leaf_count
from saltus.kernel.values import INT, Column, Group, Known, Span, Value

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm
    from saltus.kernel.expressions import Expressions
    from saltus.kernel.tables import Filled

NOT_FINITE, NOT_UNIT, TOO_FAR = 1, 2, 4

INTS, TABLE = Span(INT32, constant=True), Span(INT64)


class Entry(NamedTuple):
    """A function that is compiled, and the types of its arguments."""

    function: Callable[..., Any]
    types: tuple[Any, ...]


def make_tree(algorithm: Algorithm, number: Number, sizes: int = 0, groups: int | None = None) -> Primitive:
    """(words) -> what a kernel sees of a model: among the words, the sizes, and the addresses of groups; by default as a
    handle has them (tables.py)."""
    tables, spans = algorithm.tables, (INTS, Span(number.plain, constant=True))
    if groups is None:
        groups = len(tables.sizes) + (tables.groups if number.bits == 32 else 0)
    if algorithm.known:
        return known_tree(algorithm.known, spans)

    @Primitive
    def tree(walk: Expressions, words: Any) -> Any:
        def word(k: int) -> Any:
            return walk.load_number(TABLE, words.texts, str(k))

        parts, place = [word(sizes + k) for k in range(len(tables.sizes))], groups
        for k, layout in enumerate(tables.layouts):
            starts = {}
            for group in layout.records:
                starts[group], place = walk.pointer(walk.integer(word(place))), place + 1
            parts += [Value(Column(spans[k % 2], spec), starts[spec.group]) for spec in layout.fields.values()]
        return Group(tables.view_class, tuple(parts))

    return tree


def known_tree(filled: Filled, spans: tuple[Span, Span]) -> Primitive:
    """The same for one model: its tables are constants of the code."""

    @Primitive
    def tree(walk: Expressions, words: Any) -> Any:
        tables = filled.tables
        parts: list[Any] = [Known(filled.sizes[name]) for name in tables.sizes]
        for k, (layout, values) in enumerate(zip(tables.layouts, filled.values(), strict=True)):
            span = spans[k % 2]
            for group, start in layout.bases(filled.sizes).items():
                end = start + layout.records[group] * records(group, filled.sizes)
                walk.module.tables[f"@{group}.{k}"] = (span.word, values[start:end])
            parts += [Value(Column(span, spec), f"@{spec.group}.{k}") for spec in layout.fields.values()]
        return Group(tables.view_class, tuple(parts))

    return tree


def make_view(algorithm: Algorithm, layout: Layout) -> Primitive:
    """(words of a handle, span) -> the named tuple of the fields of a workspace."""
    tables = algorithm.tables
    if algorithm.known:
        return own_view(layout, algorithm.known.sizes)

    @Primitive
    def view(walk: Expressions, words: Any, span: Any) -> Any:
        starts, start = {}, "0"
        for group, record in layout.records.items():
            size = "1" if group == ONE else walk.integer(
                walk.load_number(TABLE, words.texts, str(tables.sizes.index(group)))
            )  # fmt: skip
            starts[group] = start
            start = walk.calculate("add", start, walk.calculate("mul", size, record))
        parts = [
            Value(Column(span.type, spec), walk.place(span.type, span.texts, starts[spec.group]), *span.texts[1:])
            for spec in layout.fields.values()
        ]
        return Group(layout.view_class, tuple(parts))

    return view


def own_view(layout: Layout, sizes: Mapping[str, int]) -> Primitive:
    """The same for one model: each field has memory of the function's own, which becomes registers where it can."""

    @Primitive
    def view(walk: Expressions, words: Any, span: Any) -> Any:
        ty = Span(span.type.number, own=True)
        parts = []
        for spec in layout.fields.values():
            numbers = leaf_count(spec.cls)
            words = numbers * records(spec.group, sizes) * ty.number.words
            memory = walk.op(f"alloca [{words} x {ty.word}], align 64")
            parts.append(Value(Column(ty, spec._replace(offset=0, record=numbers)), memory))
        return Group(layout.view_class, tuple(parts))

    return view


def span_at(ty: Span) -> Primitive:
    """(address) -> span"""

    @Primitive
    def at(walk: Expressions, base: Any) -> Any:
        return Value(ty, walk.pointer(walk.integer(base)))

    return at


class Argument(NamedTuple):
    """An array argument of a kernel: its number, and what it is compiled as."""

    k: int
    span: Span
    where: Literal["given", "staged", "meta"]
    """At the address given, plus the sample's share; in the stage; or, integers, in the row of `meta` itself."""


def make_arguments(arguments: Sequence[Argument | float | None]) -> Primitive:
    """(pointers, meta, stage, sample) -> the spans of a kernel's arguments; None where one is absent, or the number that all
    of it is. Arguments that are the same for all samples have the stride 0."""

    @Primitive
    def spans(walk: Expressions, pointers: Any, meta: Any, stage: Any, sample: Any) -> Any:
        def entry(table: Any, k: int) -> str:
            return walk.integer(walk.load_number(TABLE, table.texts, str(k)))

        found: list[Any] = []
        for argument in arguments:
            if not isinstance(argument, Argument):
                found.append(Known(argument))
                continue
            k, span, where = argument
            if where == "staged":
                place = walk.place(span, stage.texts, entry(meta, META * k + STAGE))
                found.append(Value(span, place, *stage.texts[1:]))
                continue
            if where == "meta":
                found.append(Value(span, walk.place(TABLE, meta.texts, META * k)))
                continue
            place = walk.pointer(entry(pointers, k))
            if not (isinstance(sample, Known) and sample.value == 0):
                place = walk.moved(
                    place, span.word, walk.calculate("mul", walk.integer(sample), entry(meta, META * k + STRIDE))
                )
            found.append(Value(span, place, *([entry(meta, META * k + STEP)] if span.strided else [])))
        return Group(None, tuple(found))

    return spans


class Parts:
    """The pieces from which the entry points of one algorithm are made, for a number type and a set of arguments.

    `source`: where the numbers of a sample are: "direct", at the address given; "staged", packed in the stage; "strided", at
    the address plus the sample's share, a stride apart (GPU), outputs in the stage by choice.
    """

    def __init__(self, algorithm: Algorithm, number: Number, present: tuple[bool, ...], source: str) -> None:
        strided, staged = source == "strided", source == "staged"
        self.work = Span(number, strided)
        arguments = [
            spec.default if not here
            else Argument(k, INTS, "meta" if strided else "given") if spec.integer
            else Argument(k, Span(number, strided, half=spec.symmetric and staged), "staged" if staged else "given")
            for k, (spec, here) in enumerate(zip(algorithm.arguments, present, strict=True))
        ]  # fmt: skip
        count = len(algorithm.inputs)
        self.tree, self.view = make_tree(algorithm, number), make_view(algorithm, algorithm.work)
        self.inputs, self.outputs = make_arguments(arguments[:count]), make_arguments(arguments[count:])
        made = [a._replace(where="staged") for a in arguments[count:] if isinstance(a, Argument)]
        self.made = make_arguments(made)
        turned = [
            a if spec.configuration else None for a, spec in zip(arguments[:count], algorithm.inputs, strict=True)
        ]
        self.configurations = make_arguments(turned)
        self.refusal = make_refusal(algorithm, number, present)
        self.types = (TABLE, TABLE, TABLE, self.work)
        self.run = make_run(algorithm)


def make_run(algorithm: Algorithm) -> Any:
    """The kernel; or one that takes what varies as its first input, and sees it in the place of the model's fields."""
    if not algorithm.varies:
        return algorithm.kernel
    fields = algorithm.tables.varied.fields  # type: ignore[union-attr]

    @Primitive
    def run(walk: Expressions, tree: Any, varied: Any, *rest: Any) -> Any:
        def column(cls: type) -> Any:
            return Value(Column(varied.type, FieldSpec(cls, 0, leaf_count(cls), ONE)), *varied.texts)

        parts = [
            column(fields[name]) if name in fields else part
            for name, part in zip(tree.cls._fields, tree.parts, strict=True)
        ]
        return walk.call(algorithm.kernel, [Group(tree.cls, tuple(parts)), *rest])

    return run


def make_refusal(algorithm: Algorithm, number: Number, present: tuple[bool, ...]) -> Callable[..., Any]:
    """A kernel (tree, configurations or None ...) -> the sum of NOT_UNIT and TOO_FAR, if one of them is refused so."""
    tolerance, largest, defects = number.unit_tolerance, number.largest_angle, algorithm.tables.configurations.defects
    there = tuple(k for k, spec in enumerate(algorithm.inputs) if spec.configuration and present[k])

    @kernel
    def refusal(tree, configurations):
        status = 0
        for k in there:
            off_unit, angle = defects(tree, configurations[k])
            if some(less(tolerance, off_unit)):
                status |= NOT_UNIT
            if some(less(largest, angle)):
                status |= TOO_FAR
        return status

    return refusal


def unlooked(algorithm: Algorithm) -> int:
    """How many of the first inputs are not looked through for NaN: what varies was when the model was made."""
    return int(algorithm.varies) or algorithm.unchecked


def one_entry(algorithm: Algorithm, number: Number, present: tuple[bool, ...]) -> Entry:
    parts = Parts(algorithm, number, present, "direct")
    at, count, checked = span_at(Span(number)), len(algorithm.inputs), unlooked(algorithm)

    def one(handle, pointers, meta, work):
        tree = parts.tree(handle)
        status = 0
        for j in range(checked, count):
            if holds_non_finite(at(pointers[j]), meta[META * j + SIZE]):
                status = NOT_FINITE
        status |= parts.refusal(tree, parts.configurations(pointers, meta, work, 0))
        inputs, outputs = parts.inputs(pointers, meta, work, 0), parts.outputs(pointers, meta, work, 0)
        parts.run(tree, *inputs, parts.view(handle, work), *outputs)
        return status

    return Entry(one, parts.types)


def many_entry(algorithm: Algorithm, number: Number, present: tuple[bool, ...]) -> Entry:
    parts = Parts(algorithm, number, present, "staged")
    count, total, width = len(algorithm.inputs), len(algorithm.arguments), number.width
    checked = unlooked(algorithm)
    outputs = tuple((k, spec.zeroed, spec.symmetric) for k, spec in enumerate(algorithm.outputs, count))

    def many(handle, pointers, meta, work, start, stop):
        tree = parts.tree(handle)
        view = parts.view(handle, tail(work, meta[META * total + STAGE]))
        for j, zeroed, symmetric in outputs:
            if zeroed:
                clear(tail(work, meta[META * j + STAGE]), meta[META * j + SIZE], symmetric)
        status = 0
        for sample in range(start, stop, width):
            for j in range(count):
                size = meta[META * j + SIZE]
                packed = tail(work, meta[META * j + STAGE])
                pack(packed, size, width, pointers[j], sample, stop, meta[META * j + STRIDE])
                if j >= checked and holds_non_finite(packed, size):
                    status |= NOT_FINITE
            status |= parts.refusal(tree, parts.configurations(pointers, meta, work, 0))
            parts.run(tree, *parts.inputs(pointers, meta, work, 0), view, *parts.outputs(pointers, meta, work, 0))
            for j, _, symmetric in outputs:
                packed = tail(work, meta[META * j + STAGE])
                size, stride = meta[META * j + SIZE], meta[META * j + STRIDE]
                if symmetric:
                    unpack_symmetric(packed, size, width, pointers[j], sample, stop, stride)
                else:
                    unpack(packed, size, width, pointers[j], sample, stop, stride)
        return status

    return Entry(many, (*parts.types, INT, INT))
