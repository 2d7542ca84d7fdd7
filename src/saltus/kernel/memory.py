"""How kernels reach memory: flat arrays of numbers, and tables with named, typed fields.

`ld` and `st` read and write a number, or a whole tuple, of an array. A `Layout` lists fields by name and class, in
groups that have one record a joint, a degree of freedom ...; offsets follow from it. A view of an array by a layout is
a named tuple of fields: `w.velocity[i]` is a `Motion`. Compiled, fields are addresses with constant offsets.

The first entries of a table of integers are its sizes, in the order of `SIZES`: they say how many records each group
has, for every layout that is used beside it.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saltus.kernel.tuples import Scalar, components, is_scalar, leaf_count

SIZES = ("nj", "nq", "nv", "nf", "nvv", "nc", "nm", "nmv", "nmm", "ns", "nu", "nk", "nt", "nd", "np")
"""Numbers of joints (with the universe), coordinates, degrees of freedom, frames, and entries of a matrix (nv, nv); of
constraints, their rows, entries of matrices (nm, nv) and (nm, nm), and of the lists of what moves each constraint; of rows
that users give; of rows at the nodes that they pass (osim); of ties between bodies, of degrees of freedom seen through
them, and of pairs of them (loop_aba)."""

ONE = "one"
"""The group of a layout that has one record."""

HEADER = 16
"""Length of the header of a table of integers: `SIZES`, and room for those to come."""

META = 4
"""Entries that an argument of a kernel has in the table `meta` of an entry point (entries.py): how many numbers a sample
has, how many words samples lie apart, how many words its numbers lie apart, and where in the stage they are."""
SIZE, STRIDE, STEP, STAGE = range(META)


def ld(array: Any, i: int, cls: type | None = None) -> Any:
    """The number at index i of an array; with a tuple class, the value whose leaves start there."""
    if cls is None:
        return array[i]
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
    """The array from an index on."""
    return array[start:]


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

    A group is named by the size that counts its records; the class None stands for one number.
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
                self.fields[name] = FieldSpec(cls, offset, self.records[group], group)
                offset += leaf_count(cls)
        self.view_class: Any = namedtuple("View", list(self.fields))  # type: ignore[misc]

    def extended(self, **groups: Mapping[str, type | None]) -> Layout:
        """The same layout with more fields."""
        mine: dict[str, dict[str, type | None]] = {}
        for name, spec in self.fields.items():
            mine.setdefault(spec.group, {})[name] = spec.cls
        return Layout(**mine | {group: {**mine.get(group, {}), **fields} for group, fields in groups.items()})

    def length(self, sizes: Mapping[str, int]) -> int:
        """How many numbers a memory of this layout holds."""
        return sum(record * sizes[group] for group, record in self.records.items())

    def bases(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Where each group starts."""
        starts, start = {}, 0
        for group, record in self.records.items():
            starts[group] = start
            start += record * sizes[group]
        return starts

    def view(self, array: Any, sizes: Mapping[str, int], start: int = 0) -> Any:
        """The fields of an array, for interpreted runs and for filling tables."""
        bases = self.bases(sizes)
        return self.view_class(
            *(Field(array, start + bases[spec.group] + spec.offset, spec) for spec in self.fields.values())
        )


class Field:
    """One field of all records of a memory, interpreted."""

    def __init__(self, array: Any, start: int, spec: FieldSpec) -> None:
        self.array, self.start, self.cls, self.record = array, start, spec.cls, spec.record

    def __getitem__(self, i: int) -> Any:
        return ld(self.array, self.start + i * self.record, self.cls)

    def __setitem__(self, i: int, value: Any) -> None:
        st(self.array, self.start + i * self.record, value)


def sizes_of(ints: NDArray[np.int32]) -> dict[str, int]:
    """The sizes in the header of a table of integers."""
    return {**dict(zip(SIZES, ints[: len(SIZES)].tolist(), strict=True)), ONE: 1}
