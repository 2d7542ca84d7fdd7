"""How kernels reach memory: flat arrays of numbers, and tables with named, typed fields.

`ld` and `st` read and write a number, or a whole tuple, of an array. A `Layout` lists fields by name and class, in
groups that have one record a joint, a degree of freedom ...; offsets follow from it. A view of an array by a layout is
a named tuple of fields: `w.velocity[i]` is a `Motion`. Compiled, fields are addresses with constant offsets.

How many records a group has is a size of the model, by its name (tables.py).
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from saltus.kernel.tuples import Scalar, components, holds_numbers, is_scalar, leaf_count

ONE = "one"
"""The group of a layout that has one record."""

META = 4
"""Entries that an argument of a kernel has in the table `meta` of an entry point (entries.py): how many numbers a sample
has, how many words samples lie apart, how many words its numbers lie apart, and where in the stage they are."""
SIZE, STRIDE, STEP, STAGE = range(META)


def ld(array: Any, i: int, cls: type | None = None) -> Any:
    """The number at index i of an array; with a tuple class, the value whose leaves start there."""
    if cls is None:
        return array[i]
    if cls is int:
        return int(array[i])
    parts, values = components(cls), []
    for part in parts:
        values.append(ld(array, i, part))
        i += leaf_count(part)
    return cls(*values)


def st(array: Any, i: int, value: Any) -> None:
    """Write a number, or all leaves of a tuple, from index i on."""
    for k, leaf in enumerate(leaves(value)):
        array[i + k] = leaf


def st_symmetric(array: Any, n: int, i: int, j: int, value: Scalar) -> None:
    """Write entries (i, j) and (j, i), i >= j, of a symmetric matrix with rows of n numbers."""
    array[i * n + j] = array[j * n + i] = value


def zero(array: Any) -> Scalar:
    """The number 0 in the array's number type."""
    return 0.0


def tail(array: Any, start: int) -> Any:
    """The array from an index on, or the field, if it has its group to itself."""
    return array.array[array.start + start :] if isinstance(array, Field) else array[start:]


def within(view: Any, prefix: str) -> Any:
    """The fields of a view whose names begin so, without that: the workspace of one algorithm in that of another."""
    names = [name for name in view._fields if name.startswith(prefix)]
    return view_class_of(tuple(name.removeprefix(prefix) for name in names))(*(getattr(view, name) for name in names))


def overlaid(view: Any, prefix: str) -> Any:
    """A view and, by the rest of their names, its fields whose names begin so, in the place of those that have that name."""
    fields = view._asdict()
    fields |= {name.removeprefix(prefix): field for name, field in fields.items() if name.startswith(prefix)}
    return view_class_of(tuple(fields))(*fields.values())


@cache
def view_class_of(names: tuple[str, ...]) -> Any:
    return namedtuple("View", names)


def leaves(value: Any) -> list[Any]:
    """The numbers of a tuple, in the order of memory."""
    return [value] if is_scalar(value) else [leaf for part in value for leaf in leaves(part)]


class FieldSpec(NamedTuple):
    cls: type | None
    offset: int
    record: int
    group: str


class Layout:
    """Records of named, typed fields: `Layout(nj={"velocity": Motion}, nv={"bias": None})`.

    A group is named by the size that counts its records. The class None stands for one number; int, in workspaces, for an
    integer that lies where a number could, and is the same in all lanes.
    """

    def __init__(self, **groups: Mapping[str, type | None]) -> None:
        self.records = {group: sum(map(leaf_count, fields.values())) for group, fields in groups.items()}
        self.fields: dict[str, FieldSpec] = {}
        for group, fields in groups.items():
            offset = 0
            for name, cls in fields.items():
                if name in self.fields:
                    raise ValueError(
                        f"Layout: the field {name!r} is named twice, in {self.fields[name].group} and {group}"
                    )
                if cls is not None and cls is not int and not holds_numbers(cls):
                    raise TypeError(
                        f"Layout: the field {name!r} is of class {cls.__name__}, expected None (a number), int (an "
                        "integer), or a class of tuples of numbers"
                    )
                self.fields[name] = FieldSpec(cls, offset, self.records[group], group)
                offset += leaf_count(cls)
        self.view_class: Any = namedtuple("View", list(self.fields))  # type: ignore[misc]

    @property
    def groups(self) -> dict[str, dict[str, type | None]]:
        """The fields of each group, and their classes."""
        found: dict[str, dict[str, type | None]] = {}
        for name, spec in self.fields.items():
            found.setdefault(spec.group, {})[name] = spec.cls
        return found

    def extended(self, **groups: Mapping[str, type | None]) -> Layout:
        """The same layout with more fields."""
        mine = self.groups
        return Layout(**mine | {group: {**mine.get(group, {}), **fields} for group, fields in groups.items()})

    def prefixed(self, prefix: str) -> dict[str, dict[str, type | None]]:
        """The fields of each group by longer names, which `within` takes off again."""
        return {group: {prefix + name: cls for name, cls in fields.items()} for group, fields in self.groups.items()}

    def length(self, sizes: Mapping[str, int]) -> int:
        """How many numbers a memory of this layout holds."""
        return sum(record * records(group, sizes) for group, record in self.records.items())

    def bases(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Where each group starts."""
        starts, start = {}, 0
        for group, record in self.records.items():
            starts[group] = start
            start += record * records(group, sizes)
        return starts

    def view(self, array: Any, sizes: Mapping[str, int], start: int = 0) -> Any:
        """The fields of an array, for interpreted runs and for filling tables."""
        bases = self.bases(sizes)
        return self.view_class(
            *(Field(array, start + bases[spec.group] + spec.offset, spec) for spec in self.fields.values())
        )


def records(group: str, sizes: Mapping[str, int]) -> int:
    """How many a group has."""
    return 1 if group == ONE else sizes[group]


class Field:
    """One field of all records of a memory, interpreted."""

    def __init__(self, array: Any, start: int, spec: FieldSpec) -> None:
        self.array, self.start, self.cls, self.record = array, start, spec.cls, spec.record

    def __getitem__(self, i: int) -> Any:
        return ld(self.array, self.start + i * self.record, self.cls)

    def __setitem__(self, i: int, value: Any) -> None:
        st(self.array, self.start + i * self.record, value)
