"""The CUDA driver, by ctypes: what there is of it here is what launching kernels takes.

Work goes to the context that CuPy, PyTorch and CUDA's runtime share, the primary one of a device.
"""

from __future__ import annotations

import ctypes
import functools
import math
import sys
import threading
from collections.abc import Sequence
from ctypes import byref, c_int, c_int64, c_size_t, c_uint, c_void_p
from typing import Any

import numpy as np

PROCESSORS = 16
"""Attribute of a device: its multiprocessors."""

ROOM = 97
"""Attribute of a device: bytes that the threads of a block can share at most."""

ORDINAL = 9
"""Attribute of an address: the number of its device."""

LOCAL_SIZE = 3
"""Attribute of a function: bytes of memory that a thread has to itself."""

SHARED_SIZE = 8
"""Attribute of a function: bytes of memory that a block's threads share, beyond what its code names, at most."""

REGISTERS, LOG, LOG_SIZE = 0, 5, 6
"""Options of loading a module: the most registers of a thread, and where to write what is wrong with it."""

BUFFER, BUFFER_SIZE, END = 1, 2, 0
"""The words of a launch before the address of all arguments, that of their length in bytes, and the end."""


class CudaError(RuntimeError):
    """The driver refused something, or is not there."""


@functools.cache
def driver() -> Any:
    """The driver's library."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError:
        raise CudaError(f"no driver for GPUs of NVIDIA ({name}) is to be found") from None
    library.cuLaunchKernel.argtypes = [c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p]
    library.cuMemAlloc_v2.argtypes = [c_void_p, c_size_t]
    library.cuMemFree_v2.argtypes = [c_void_p]
    library.cuMemcpyHtoD_v2.argtypes = library.cuMemcpyDtoH_v2.argtypes = [c_void_p, c_void_p, c_size_t]
    library.cuStreamIsCapturing.argtypes = [c_void_p, c_void_p]
    library.cuPointerGetAttribute.argtypes = [c_void_p, c_int, c_void_p]
    library.cuCtxPushCurrent_v2.argtypes = library.cuStreamSynchronize.argtypes = [c_void_p]
    library.cuMemsetD8Async.argtypes = [c_void_p, ctypes.c_ubyte, c_size_t, c_void_p]
    _check(library, library.cuInit(0), "starting the driver")
    return library


def is_there() -> bool:
    """Whether this machine has a GPU."""
    try:
        device(0)
    except CudaError:
        return False
    return True


def _check(library: Any, result: int, what: str) -> None:
    if result:
        name = ctypes.c_char_p()
        library.cuGetErrorName(result, byref(name))
        raise CudaError(f"{what}: {name.value.decode() if name.value else f'error {result}'}")


def call(name: str, *arguments: Any) -> None:
    library = driver()
    _check(library, getattr(library, name)(*arguments), name)


def asked(name: str, *arguments: Any) -> int:
    """An integer that the driver tells."""
    value = c_int()
    call(name, byref(value), *arguments)
    return value.value


class Device:
    """A GPU and its primary context."""

    def __init__(self, ordinal: int) -> None:
        handle, self.context, self.ordinal = asked("cuDeviceGet", ordinal), c_void_p(), ordinal
        call("cuDevicePrimaryCtxRetain", byref(self.context), handle)
        self.library, self.processors = driver(), asked("cuDeviceGetAttribute", PROCESSORS, handle)
        self.room = asked("cuDeviceGetAttribute", ROOM, handle)

    def __enter__(self) -> None:
        """Its context for this thread, until it is left."""
        if self.library.cuCtxPushCurrent_v2(self.context):
            call("cuCtxPushCurrent_v2", self.context)  # says what is wrong

    def __exit__(self, *_: object) -> None:
        self.library.cuCtxPopCurrent_v2(byref(c_void_p()))


@functools.cache
def device(ordinal: int) -> Device:
    return Device(ordinal)


def spilled(function: c_void_p) -> int:
    """Bytes that a thread of a function keeps in memory, for want of registers."""
    return asked("cuFuncGetAttribute", LOCAL_SIZE, function)


def device_of(address: int) -> Device:
    """The GPU that an address belongs to; that of an empty array, the first."""
    return device(asked("cuPointerGetAttribute", ORDINAL, address) if address else 0)


class Memory:
    """An array on the current device: for tables, and as a result where the library is not known here. NumPy can copy it
    (`np.asarray`), and it is given back with the object."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, content: Any = None) -> None:
        self.shape, self.dtype, address = shape, np.dtype(dtype), c_void_p()
        self.how, self.nbytes = (shape, self.dtype), math.prod(shape) * self.dtype.itemsize
        self.ordinal = asked("cuCtxGetDevice")
        self.device = device(self.ordinal)
        call("cuMemAlloc_v2", byref(address), max(self.nbytes, 1))
        self.address = address.value or 0
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": self.dtype.str, "data": (self.address, False), "version": 3,
        }  # fmt: skip
        if content is not None:
            self[...] = content

    def lie_as(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        """Look at it as an array of another shape, by its strides in words, for kernels."""
        self.how = (shape, self.dtype, strides)  # type: ignore[assignment]
        steps = tuple(step * self.dtype.itemsize for step in strides)
        self.__cuda_array_interface__ |= {"shape": shape, "strides": steps}

    def __getitem__(self, place: Any) -> Any:
        """A part of it, copied to NumPy."""
        return np.asarray(self)[place]

    def __setitem__(self, place: Any, content: Any) -> None:
        """All of it."""
        if place is not ...:
            raise TypeError(f"an array of saltus on a GPU is written as a whole, array[...] = x, not at {place}")
        array = np.ascontiguousarray(np.broadcast_to(np.asarray(content, self.dtype), self.shape))
        with self.device:
            call("cuMemcpyHtoD_v2", self.address, array.ctypes.data, self.nbytes)
            call("cuStreamSynchronize", None)  # streams that do not wait for others may read it at once

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = np.empty(self.shape, self.dtype)
        with self.device:
            call("cuCtxSynchronize")  # whatever stream it is made on
            call("cuMemcpyDtoH_v2", array.ctypes.data, self.address, self.nbytes)
        return array if dtype is None else array.astype(dtype)

    def __reduce__(self) -> Any:
        raise TypeError("an array of saltus on a GPU cannot be copied or pickled, expected np.asarray(array)")

    def __del__(self) -> None:
        if getattr(self, "address", 0) and not self.device.library.cuCtxPushCurrent_v2(self.device.context):
            self.device.library.cuMemFree_v2(self.address)
            self.device.__exit__()


def load(code: bytes, symbol: str, registers: int) -> c_void_p:
    """A function of PTX, made into the current device's code with at most so many registers a thread."""
    module, function, log = c_void_p(), c_void_p(), ctypes.create_string_buffer(8192)
    options = (c_int * 3)(REGISTERS, LOG, LOG_SIZE)
    values = (c_void_p * 3)(registers, ctypes.addressof(log), len(log))
    library, text = driver(), ctypes.create_string_buffer(code)
    result = library.cuModuleLoadDataEx(byref(module), text, 3, options, values)
    if result:
        _check(library, result, f"loading PTX{': ' if log.value else ''}{log.value.decode(errors='replace')}")
    call("cuModuleGetFunction", byref(function), module, symbol.encode())
    return function


class Launch:
    """A kernel with its arguments, one 64-bit word after the other, ready to be started any number of times."""

    def __init__(self, function: c_void_p, blocks: int, threads: int, words: Any, shared: int = 0) -> None:
        self.function, self.grid = function, (blocks, 1, 1, threads, 1, 1, shared)
        if shared:
            call("cuFuncSetAttribute", function, SHARED_SIZE, shared)
        self.words = (c_int64 * len(words))(*map(int, words))
        self.size, self.lock = c_size_t(ctypes.sizeof(self.words)), threading.Lock()
        self.extra = (c_void_p * 5)(
            BUFFER, ctypes.addressof(self.words), BUFFER_SIZE, ctypes.addressof(self.size), END
        )  # fmt: skip

    def start(self, stream: int, places: Sequence[int], values: Sequence[int]) -> None:
        """With these values in places among the words: the driver takes them before it returns."""
        library, words = driver(), self.words
        with self.lock:
            for place, value in zip(places, values, strict=True):
                words[place] = value
            result = library.cuLaunchKernel(self.function, *self.grid, stream, None, self.extra)
        if result:
            _check(library, result, "cuLaunchKernel")


def is_capturing(stream: int) -> bool:
    """Whether what is started on a stream becomes part of a graph."""
    status, library = c_int(), driver()
    _check(library, library.cuStreamIsCapturing(stream, byref(status)), "cuStreamIsCapturing")
    return status.value != 0
