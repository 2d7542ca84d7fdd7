"""What kernels see of a model: tables of integers and reals with named, typed fields, in parts that layers declare.

A part brings sizes (how many records its groups have, see memory.py), two layouts, and how both are found for a model. An
algorithm names the parts that its kernels read; they see them as one named tuple, sizes first. The parts of a model are
filled on first use, once, whatever algorithms read them.

    handle: the sizes; the addresses of the groups of all parts' integers and reals; the same with reals in single precision
"""

from __future__ import annotations

import hashlib
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saltus.kernel.memory import Layout
from saltus.kernel.number import INT32, Number


@dataclass(frozen=True, eq=False)
class Part:
    """A piece of what kernels see."""

    sizes: tuple[str, ...]
    ints: Layout
    reals: Layout
    measure: Callable[[Any], Mapping[str, int]]
    """(model) -> the sizes by name."""
    fill: Callable[[Any, Any, Any], None]
    """(model, view of the integers, view of the reals): writes what is not zero."""
    of_tree: bool = False
    """Whether, of a model with mimic joints, it is that of its tree."""
    couples: bool = False
    """Whether it tells kernels how the coordinates of such a model move its tree."""

    def __post_init__(self) -> None:
        for name, spec in (self.ints.fields | self.reals.fields).items():
            if spec.cls is int:
                raise TypeError(f"Part: the field {name!r} is of class int, expected None: all of `ints` are integers")


class Configurations(NamedTuple):
    """How configurations are checked."""

    defects: Callable[..., Any]
    """Kernel (tree, q) -> how far the worst joint of q is from unit length, and the largest angle."""
    explain: Callable[[Any, NDArray[Any], Number], tuple[tuple[int, ...], str] | None]
    """(model, configurations (..., nq), number type) -> the first one with a joint further off, or turned further, than is
    allowed for numbers of this type, and which, in words; or None."""
    not_allowed: Callable[[Any, NDArray[Any], Number], NDArray[np.bool_]]
    """(model, configurations (..., nq), number type) -> which of them (...) have such a joint."""
    neutral: Callable[[Any], NDArray[np.float64]]
    """(model) -> a configuration (nq,) that is valid."""


class Varied(NamedTuple):
    """What may differ from sample to sample of a batch, in the place of fields of a table."""

    name: str
    """Of the input that brings it."""
    shape: str
    fields: Mapping[str, type]
    """Those that it stands for, and the class that their elements are then of."""


class Tables:
    """The parts that an algorithm reads."""

    def __init__(
        self,
        parts: Sequence[Part],
        configurations: Configurations,
        extent: Callable[[Filled], int] = lambda filled: 0,
        varied: Varied | None = None,
    ) -> None:
        self.parts, self.configurations, self.varied = tuple(parts), configurations, varied
        self.extent = extent
        """(filled) -> how much code a loop over a model's joints becomes if it is unrolled."""
        self.sizes = tuple(name for part in parts for name in part.sizes)
        self.layouts = [layout for part in parts for layout in (part.ints, part.reals)]
        """Integers and reals of each part in turn."""
        fields = [name for layout in self.layouts for name in layout.fields]
        self.view_class: Any = namedtuple("Tree", [*self.sizes, *fields])  # type: ignore[misc]
        self.signature = f"{self.sizes}{[layout.fields for layout in self.layouts]}"
        """What compiled code depends on."""

    @property
    def groups(self) -> int:
        """Groups of all layouts: addresses in a handle, for one number type."""
        return sum(len(layout.records) for layout in self.layouts)


class Filled:
    """The tables of one model, in memory."""

    def __init__(self, tables: Tables, model: Any) -> None:
        tree = model.coupling.tree if model.coupling else model
        sources = [(part, tree if part.of_tree else model) for part in tables.parts]
        self.tables, self.sizes = tables, dict[str, int]()
        for part, source in sources:
            self.sizes |= part.measure(source)
        self.parts = [source.parts.get(part) or filled_part(part, source, self.sizes) for part, source in sources]
        self.plans: dict[Any, Any] = {}
        self.ways: dict[Any, dict[Number, Any]] = {}
        """By algorithm and number of inputs: builtins for one sample and for batches, by number type (fastcall.py)."""
        self.special: dict[Any, Any] | None = {} if model.specialised else None
        """Of a model with code of its own: by algorithm, that which runs in its place."""
        self.kept: list[Any] = []
        """What graphs of a GPU work with: it stays as long as the model."""
        words = [self.sizes[name] for name in tables.sizes]
        for bits in (64, 32):
            words += self.addresses([array.ctypes.data for part in self.parts for array in part.arrays(bits)], bits)
        handle = np.array(words, np.int64)
        handle.setflags(write=False)
        self.handle: Any = None if model.coupling and not any(part.couples for part in tables.parts) else handle
        """What kernels are called with; None if that is not enough, because of mimic joints that they do not know of."""

    @cached_property
    def digest(self) -> str:
        """What code for these tables alone depends on."""
        total = hashlib.sha256(str(sorted(self.sizes.items())).encode())
        for part in self.parts:
            total.update(part.ints.tobytes() + part.reals.tobytes())
        return total.hexdigest()

    def values(self) -> Iterator[list[Any]]:
        """What the integers and reals of all parts are, in turn."""
        for part in self.parts:
            yield part.ints.tolist()
            yield part.reals.tolist()

    def addresses(self, starts: Sequence[int], bits: int) -> list[int]:
        """Of all groups, where the arrays of integers and reals begin at `starts`."""
        found = []
        for k, (layout, start) in enumerate(zip(self.tables.layouts, starts, strict=True)):
            word = (bits if k % 2 else INT32.bits) // 8
            found += [start + word * base for base in layout.bases(self.sizes).values()]
        return found


class FilledPart:
    """A part of one model: its integers, and its reals in both precisions."""

    def __init__(self, part: Part, model: Any, sizes: Mapping[str, int]) -> None:
        self.ints, self.reals = np.zeros(part.ints.length(sizes), np.int32), np.zeros(part.reals.length(sizes))
        part.fill(model, part.ints.view(self.ints, sizes), part.reals.view(self.reals, sizes))
        self.reals32 = self.reals.astype(np.float32)
        for array in (self.ints, self.reals, self.reals32):
            array.setflags(write=False)
        self.devices: dict[Any, Any] = {}
        """Copies on GPUs."""

    def arrays(self, bits: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Integers, and reals of a precision."""
        return self.ints, self.reals if bits == 64 else self.reals32


def filled_part(part: Part, model: Any, sizes: Mapping[str, int]) -> FilledPart:
    # Two threads may both get here: what the first has made stays, for handles hold its addresses.
    made: FilledPart = model.parts.setdefault(part, FilledPart(part, model, sizes))
    return made


def views(filled: Filled) -> Iterator[Any]:
    """All fields of interpreted kernels."""
    for layout, values in zip(filled.tables.layouts, filled.values(), strict=True):
        yield from layout.view(values, filled.sizes)
