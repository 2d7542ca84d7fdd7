"""Arrays as users have them: of any leading shape, number type, memory layout and byte order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from saltus.arrays import Array

LEADING: list[tuple[int, ...]] = [
    (),
    (),
    (),
    (0,),
    (1,),
    (3,),
    (5,),
    (9,),
    (2, 3),
    (3, 2, 1),
    (1, 1),
    (0, 4),
    (17,),
    (40,),
]


def random_leading(rng: np.random.Generator) -> tuple[int, ...]:
    return LEADING[rng.integers(len(LEADING))]


def narrowed(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to this one: the same, or with axes of one sample, or without its first axes."""
    if rng.random() < 0.6:
        return shape
    ones = tuple(1 if rng.random() < 0.5 else n for n in shape)
    return ones[rng.integers(len(shape) + 1) :]


def strided(array: Array) -> Array:
    wide = np.full((*array.shape[:-1], 2 * array.shape[-1]), np.nan, array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


def unaligned(array: Array) -> Array:
    memory = np.zeros(array.nbytes + 1, np.uint8)[1:]
    result = memory.view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


def read_only(array: Array) -> Array:
    array = array.copy()
    array.flags.writeable = False
    return array


FORMS: dict[str, Callable[[Array], Any]] = {
    "as it is": lambda x: x,
    "list": lambda x: x.tolist(),
    "column-major": np.asfortranarray,
    "strided": strided,
    "unaligned": unaligned,
    "backwards": lambda x: x[..., ::-1].copy()[..., ::-1],
    "samples backwards": lambda x: x[::-1].copy()[::-1],
    "read-only": read_only,
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
}
READ_AS_DOUBLE = {"list", "big-endian"}


def random_form(rng: np.random.Generator, array: Array) -> str:
    """Lists have no empty axes; single precision stays so: a quaternion of length 1 to seven digits is none in double."""
    able = set(FORMS) - (READ_AS_DOUBLE if array.dtype == "f4" else {"list"} if array.size == 0 else set())
    return "as it is" if rng.random() < 0.5 else sorted(able)[rng.integers(len(able))]
