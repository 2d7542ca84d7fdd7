"""Arrays on a GPU, of whatever library: where they are, how they lie, and new ones like them.

Everything with `__cuda_array_interface__` will do. CuPy and PyTorch are asked in their own ways, which take a tenth of the
time, and make the results; for others, results are arrays of our own (driver.py).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from saltus.kernel import driver
from saltus.kernel.launch import evenly

INTERFACE = "__cuda_array_interface__"


class Form(NamedTuple):
    """Shape, strides in words, and type of an array."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def reach(self) -> tuple[int, int]:
        """From the address of the array, the first byte and the one after the last."""
        if 0 in self.shape:
            return 0, 0
        ends = [(n - 1) * s * self.dtype.itemsize for n, s in zip(self.shape, self.strides, strict=True)]
        return sum(end for end in ends if end < 0), sum(end for end in ends if end > 0) + self.dtype.itemsize

    def flat(self, first: int, last: int) -> int | None:
        """The stride of axes first ... last - 1 taken as one, or None if they are not evenly spaced."""
        return evenly(self.shape[first:last], self.strides[first:last], alone=0)


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in words, of an array whose numbers lie one after the other."""
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))


class Library(NamedTuple):
    """How arrays of a library are asked, and made."""

    seen: Callable[[Any], tuple[int | None, Any]]
    """Address, and what tells how the array lies, equal for arrays that lie alike; None and why, if it cannot be taken."""
    form: Callable[[Any], Form]
    """Of the latter, the form."""
    address: Callable[[Any], int]
    """Of an array that the library has made."""
    device: Callable[[Any], int]
    """The number of the GPU that an array is on."""
    stream: Callable[[Any], int]
    """The queue that the library's work stands in, where an array is."""
    empty: Callable[[Any, tuple[int, ...]], Any]
    """A new array of the same type on the same device."""
    scratch: Callable[[Any, int], tuple[Any, int]]
    """So many bytes there: what holds them, and their address."""


@functools.cache
def library_of(cls: type) -> Library:
    """The library of a class of arrays."""
    makers = {"cupy": _cupy, "torch": _torch, "saltus": _ours}
    modules = [base.__module__.partition(".")[0] for base in cls.__mro__]
    return next((makers[name] for name in modules if name in makers), _any)()


def device_of(x: Any) -> int:
    """The number of the GPU that an array is on."""
    return library_of(x.__class__).device(x)


def to_device(array: Any, like: Any, turned: bool = False) -> driver.Memory:
    """A copy of a NumPy array, on the device of another; `turned`: its first axis lies closest, as threads read it best."""
    with driver.device(device_of(like)):
        if not turned:
            return driver.Memory(array.shape, array.dtype, array)
        behind = np.moveaxis(array, 0, -1)
        memory, strides = driver.Memory(behind.shape, array.dtype, behind), contiguous(behind.shape)
        memory.lie_as(array.shape, (strides[-1], *strides[:-1]))
        return memory


def moved(array: Any, like: Any) -> Any:
    """An array of the library, type and device of another: one that is there already as it is, others copied."""
    if getattr(array, INTERFACE, None) is not None:
        return array
    if library_name(like) == "cupy":
        import cupy

        with like.device:
            return cupy.asarray(array, like.dtype)
    if library_name(like) == "torch":
        import torch

        return torch.tensor(array, dtype=like.dtype, device=like.device)
    raise TypeError(f"expected an array of CuPy or PyTorch, found a {type(like).__name__}")


def library_name(x: Any) -> str:
    return type(x).__module__.partition(".")[0]


def _cupy() -> Library:
    import cupy

    return Library(
        seen=lambda x: (x.data.ptr, (x.shape, x.strides, x.dtype)),
        form=lambda seen: Form(seen[0], tuple(s // seen[2].itemsize for s in seen[1]), seen[2]),
        address=lambda x: x.data.ptr,
        device=lambda x: x.device.id,
        stream=lambda x: cupy.cuda.get_current_stream().ptr,
        empty=lambda like, shape: cupy.ndarray(shape, like.dtype),
        scratch=lambda like, size: ((memory := cupy.cuda.alloc(size)), memory.ptr),
    )


def _torch() -> Library:
    import torch

    return Library(
        seen=lambda x: (
            (x.data_ptr(), (x.shape, x.stride(), x.dtype)) if x.is_cuda and not x.requires_grad else (None, "refused")
        ),
        form=lambda seen: Form(tuple(seen[0]), seen[1], np.dtype(getattr(np, str(seen[2])[6:], object))),
        address=lambda x: x.data_ptr(),
        device=lambda x: x.get_device(),
        stream=lambda x: torch.cuda.current_stream(x.device).cuda_stream,
        empty=lambda like, shape: torch.empty(shape, dtype=like.dtype, device=like.device),
        scratch=lambda like, size: (
            (memory := torch.empty(size, dtype=torch.uint8, device=like.device)),
            memory.data_ptr(),
        ),
    )


def _ours() -> Library:
    return _any()._replace(
        seen=lambda x: (x.address, x.how),
        form=lambda how: Form(how[0], how[2] if len(how) > 2 else contiguous(how[0]), how[1]),
        device=lambda x: x.ordinal,
    )


def _any() -> Library:
    def seen(x: Any) -> tuple[int | None, Any]:
        found = getattr(x, INTERFACE, None)
        if found is None:
            return None, "refused"
        strides = found.get("strides")
        return found["data"][0], (tuple(found["shape"]), None if strides is None else tuple(strides), found["typestr"])

    def form(seen: Any) -> Form:
        shape, strides, dtype = seen[0], seen[1], np.dtype(seen[2])
        words = contiguous(shape) if strides is None else tuple(s // dtype.itemsize for s in strides)
        return Form(shape, words, dtype)

    def empty(like: Any, shape: tuple[int, ...]) -> driver.Memory:
        return driver.Memory(shape, getattr(like, INTERFACE)["typestr"])

    def scratch(like: Any, size: int) -> tuple[Any, int]:
        memory = driver.Memory((size,), np.uint8)
        return memory, memory.address

    return Library(
        seen=seen,
        form=form,
        address=lambda x: x.address,
        device=lambda x: driver.device_of(getattr(x, INTERFACE)["data"][0]).ordinal,
        stream=lambda x: getattr(x, INTERFACE).get("stream") or 0,
        empty=empty,
        scratch=scratch,
    )
