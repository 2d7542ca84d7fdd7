"""The way of one call from the interpreter into native code: about 0.1 us.

`wrapper` writes, as LLVM code, a function of CPython's METH_FASTCALL convention. It looks into the NumPy arrays that it
is given (class, type, number of axes, contiguity, length: nothing is assumed), fills the tables `pointers` and `meta`,
takes the workspace from its stack, makes the results if the caller gave none, calls `one`, and returns the result, or a
tuple of them. It returns an integer instead if an argument is not what it can take, or if an input is refused; the caller
then goes the long way, which also finds the words for errors. Where CPython or NumPy fail, for want of memory, it releases
what it has made and returns NULL: the exception is theirs.

    arguments from Python: the tuple of the inputs that are there, and None, or the output, or the tuple of outputs

The function belongs to one model: what CPython hands over as its `self` has the model's handle (tables.py) behind what the
wrapper compares with.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from saltus.kernel.memory import META, ONE, STAGE, STRIDE
from saltus.kernel.number import Number

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm, Spec

# struct PyArrayObject of NumPy's C interface (the same in NumPy 1 and 2), 64-bit CPython
TYPE, DATA, NDIM, SHAPE, DTYPE, FLAGS = 8, 16, 24, 32, 56, 64
LENGTH, ITEMS = 16, 24  # of a tuple
FLOAT = 16  # the number of a float
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400

STACK_LIMIT = 131_072
"""Longest workspace on the stack, in numbers (1 MiB); longer ones go the long way."""

I8, I32, I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
POINTER = I8.as_pointer()


NEW_ARRAY = 94
"""Place of PyArray_NewFromDescr in NumPy's table of C functions; PyArray_Empty takes 2 ns more."""

KNOWN = 9
"""How many words `constants` are."""


def constants() -> Any:
    """Addresses that the wrapper compares with or calls; they differ from process to process."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    functions = get(np._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]
    new_array = ctypes.c_void_p.from_address(functions + 8 * NEW_ARRAY).value
    dtypes = [id(np.dtype(kind)) for kind in (np.float64, np.float32, np.int32, np.int64)]
    return np.array([id(np.ndarray), *dtypes, new_array, id(tuple), id(None), id(float)], dtype=np.int64)


def layout_is_known() -> bool:
    """Whether an array looks in memory as this file says (it does on CPython with its global lock)."""
    array = np.arange(6.0).reshape(2, 3)

    def at(offset: int, kind: Any) -> int:
        return int(kind.from_address(id(array) + offset).value)

    shape = at(SHAPE, ctypes.c_int64)
    return (
        at(TYPE, ctypes.c_int64) == id(np.ndarray)
        and at(DATA, ctypes.c_int64) == array.ctypes.data
        and at(NDIM, ctypes.c_int32) == 2
        and [ctypes.c_int64.from_address(shape + 8 * k).value for k in range(2)] == [2, 3]
        and at(DTYPE, ctypes.c_int64) == id(np.dtype(np.float64))
        and at(FLAGS, ctypes.c_int32) & (C_CONTIGUOUS | ALIGNED | WRITEABLE) == C_CONTIGUOUS | ALIGNED | WRITEABLE
    )


class _Writer:
    """A small assembler: loads at constant offsets, and guards that leave for `declined`."""

    def __init__(self, function: ir.Function) -> None:
        self.function = function
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.declined = function.append_basic_block("declined")

    def load(self, base: Any, offset: int, ty: ir.Type) -> Any:
        place = self.builder.gep(base, [ir.Constant(I64, offset)])
        return self.builder.load(self.builder.bitcast(place, ty.as_pointer()))

    def require(self, condition: Any) -> None:
        proceed = self.function.append_basic_block()
        self.builder.cbranch(condition, proceed, self.declined)
        self.builder.position_at_end(proceed)

    def equal(self, a: Any, b: Any) -> None:
        self.require(self.builder.icmp_signed("==", a, b))


class _Wrapper(_Writer):
    """The wrapper of one algorithm for one sample, for a given set of arguments."""

    leading: tuple[str, ...] = ()
    """Axes in front of the declared shapes."""
    parameters: tuple[ir.Type, ...] = (POINTER,) * 4
    """Of the function that is called."""
    expected = 2
    """Arguments from Python."""

    def __init__(
        self, algorithm: Algorithm, present: tuple[bool, ...], inner: str, symbol: str, number: Number
    ) -> None:
        self.algorithm, self.present, self.number, self.module = algorithm, present, number, ir.Module()
        super().__init__(ir.Function(self.module, ir.FunctionType(POINTER, [POINTER, POINTER, I64]), symbol))
        self.run = self.external(inner, I64, *self.parameters)
        self.equal(self.function.args[2], ir.Constant(I64, self.expected))
        known = self.load(self.function.args[0], DATA, POINTER)
        self.array_type, double, single, self.int32, self.int64, self.new_array, *classes = (
            self.load(known, 8 * k, I64) for k in range(KNOWN)
        )
        self.tuple_type, self.none, self.float_type = classes
        self.handle = self.builder.gep(known, [ir.Constant(I64, 8 * KNOWN)])
        self.real = double if number.bits == 64 else single

    def external(self, name: str, result: ir.Type, *arguments: ir.Type, variadic: bool = False) -> ir.Function:
        return ir.Function(self.module, ir.FunctionType(result, arguments, var_arg=variadic), name)

    def argument(self, position: int) -> Any:
        return self.load(self.function.args[1], 8 * position, POINTER)

    def items(self, place: Any, count: int) -> list[Any]:
        """The items of a tuple that must have so many."""
        self.equal(self.load(place, TYPE, I64), self.tuple_type)
        self.equal(self.load(place, LENGTH, I64), ir.Constant(I64, count))
        return [self.load(place, ITEMS + 8 * k, POINTER) for k in range(count)]

    def array(self, place: Any, dtype: Any, axes: int, written: bool = False) -> tuple[Any, Any]:
        """Data pointer and shape of an array, checked but for its lengths."""
        flags = ir.Constant(I32, C_CONTIGUOUS | ALIGNED | (WRITEABLE if written else 0))
        self.equal(self.load(place, TYPE, I64), self.array_type)
        self.equal(self.load(place, DTYPE, I64), dtype)
        self.equal(self.load(place, NDIM, I32), ir.Constant(I32, axes))
        self.equal(self.builder.and_(self.load(place, FLAGS, I32), flags), flags)
        return self.load(place, DATA, POINTER), self.load(place, SHAPE, POINTER)

    def number_at(self, place: Any) -> Any:
        """Data pointer of a float, or of an array without axes."""
        builder = self.builder
        with builder.if_else(builder.icmp_signed("==", self.load(place, TYPE, I64), self.float_type)) as (plain, other):
            with plain:
                value, plain_end = builder.gep(place, [ir.Constant(I64, FLOAT)]), builder.block
            with other:
                (data, _), other_end = self.array(place, self.real, 0), builder.block
        found = builder.phi(POINTER)
        found.add_incoming(value, plain_end)
        found.add_incoming(data, other_end)
        return found

    def write(self) -> str:
        builder, algorithm = self.builder, self.algorithm
        self.lengths = {name: self.load(self.handle, 8 * k, I64) for k, name in enumerate(self.algorithm.tables.sizes)}
        self.lengths[ONE] = ir.Constant(I64, 1)
        sizes = dict(self.lengths)
        count, given = len(algorithm.arguments), sum(self.present[: len(algorithm.inputs)])
        self.pointers = builder.alloca(I64, size=count)
        self.meta = builder.alloca(I64, size=(count + 1) * META)
        inputs = self.items(self.argument(0), given)
        self.read: list[tuple[Any, Any]] = []
        for k, spec in enumerate(algorithm.inputs):
            data, length = ir.Constant(POINTER, None), ir.Constant(I64, 0)
            if self.present[k]:
                axes, length = self.axes(spec), ir.Constant(I64, 1)
                if axes or self.number.bits != 64:
                    data, shape = self.array(inputs[k], self.int32 if spec.integer else self.real, len(axes))
                    length = self.check_shape(axes, shape)
                else:
                    data = self.number_at(inputs[k])
                self.read.append((data, length))
            self.note(k, data, ir.Constant(I64, 0) if spec.integer else length)
        self.numbers: Any = ir.Constant(I64, 1)
        for group, record in algorithm.work.records.items():
            self.numbers = builder.add(self.numbers, builder.mul(sizes[group], ir.Constant(I64, record)))
        work = self.workspace()
        memory = [self.handle, *(builder.bitcast(m, POINTER) for m in (self.pointers, self.meta, work))]
        out = self.argument(1)
        with builder.if_else(builder.icmp_signed("==", builder.ptrtoint(out, I64), self.none)) as (new, old):
            with new:
                self.finish(memory, self.make_results(), fresh=True)
            with old:
                self.finish(memory, self.take_results(out), fresh=False)
        builder.unreachable()
        builder.position_at_end(self.declined)
        builder.ret(self.integer(ir.Constant(I64, -1)))
        return str(self.module)

    def axes(self, spec: Spec) -> tuple[str | int, ...]:
        return spec.shape if spec.integer else self.leading + spec.shape

    def workspace(self) -> Any:
        self.require(self.builder.icmp_signed("<=", self.numbers, ir.Constant(I64, STACK_LIMIT)))
        work = self.builder.alloca(ir.DoubleType(), size=self.numbers)
        work.align = 64
        return work

    def call(self, memory: list[Any]) -> Any:
        return self.builder.call(self.run, memory)

    def note(self, k: int, data: Any, length: Any) -> None:
        """Enter argument k, with so many numbers a sample, into the tables."""
        address = self.builder.ptrtoint(data, I64)
        self.builder.store(address, self.builder.gep(self.pointers, [ir.Constant(I64, k)]))
        self.builder.store(length, self.builder.gep(self.meta, [ir.Constant(I64, k * META)]))

    def check_shape(self, axes: tuple[str | int, ...], shape: Any) -> Any:
        """Guard each axis; a size that is not the model's is set by the first argument that has it."""
        length: Any = ir.Constant(I64, 1)
        for axis, name in enumerate(axes):
            found = self.load(shape, 8 * axis, I64)
            if isinstance(name, int):
                self.equal(found, ir.Constant(I64, name))
            elif name in self.lengths:
                self.equal(found, self.lengths[name])
            else:
                self.lengths[name] = found
            if name not in self.leading:
                length = self.builder.mul(length, found)
        return length

    def make_results(self) -> list[Any]:
        builder, made = self.builder, list[Any]()
        for k, spec in enumerate(self.algorithm.outputs, len(self.algorithm.inputs)):
            shape = builder.alloca(I64, size=max(len(self.axes(spec)), 1))
            length: Any = ir.Constant(I64, 1)
            for axis, name in enumerate(self.axes(spec)):
                size = ir.Constant(I64, name) if isinstance(name, int) else self.lengths[name]
                builder.store(size, builder.gep(shape, [ir.Constant(I64, axis)]))
                if name not in self.leading:
                    length = builder.mul(length, size)
            new = self.make_array(ir.Constant(I32, len(self.axes(spec))), shape)
            self.guard(new, made)
            made.append(new)
            self.note_result(k, spec, self.load(new, DATA, POINTER), length)
        return made

    def make_array(self, axes: Any, shape: Any) -> Any:
        """A new array, its numbers not set; NULL if it could not be made."""
        builder, none, zero = self.builder, ir.Constant(POINTER, None), ir.Constant(I32, 0)
        dtype = builder.inttoptr(self.real, POINTER)
        builder.call(self.known("Py_IncRef", ir.VoidType(), POINTER), [dtype])  # the new array takes it
        arguments = [builder.inttoptr(self.array_type, POINTER), dtype, axes, shape, none, none, zero, none]
        maker = ir.FunctionType(POINTER, [each.type for each in arguments]).as_pointer()
        return builder.call(builder.inttoptr(self.new_array, maker), arguments)

    def take_results(self, out: Any) -> list[Any]:
        count = len(self.algorithm.outputs)
        taken, others = [out] if count == 1 else self.items(out, count), list(self.read)
        for k, (spec, place) in enumerate(zip(self.algorithm.outputs, taken, strict=True), len(self.algorithm.inputs)):
            data, shape = self.array(place, self.real, len(self.axes(spec)), written=True)
            length = self.check_shape(self.axes(spec), shape)
            self.keep_apart(data, length, others)
            others.append((data, length))
            self.note_result(k, spec, data, length)
        return taken

    def keep_apart(self, data: Any, length: Any, others: list[tuple[Any, Any]]) -> None:
        """Guard against an output that overlaps an input, for kernels write before they have read all, or another output."""
        builder = self.builder
        start, end = builder.ptrtoint(data, I64), builder.ptrtoint(builder.gep(data, [self.extent(length)]), I64)
        for other, other_length in others:
            first = builder.ptrtoint(other, I64)
            last = builder.ptrtoint(builder.gep(other, [self.extent(other_length)]), I64)
            before, after = builder.icmp_unsigned("<=", end, first), builder.icmp_unsigned("<=", last, start)
            self.require(builder.or_(before, after))

    def extent(self, length: Any) -> Any:
        """Bytes of an array with so many numbers a sample."""
        return self.size(length)

    def size(self, length: Any) -> Any:
        """Bytes of so many numbers."""
        return self.builder.mul(length, ir.Constant(I64, self.number.bits // 8))

    def note_result(self, k: int, spec: Spec, data: Any, length: Any) -> None:
        self.note(k, data, length)
        if spec.zeroed and not self.leading:
            fill = self.module.declare_intrinsic("llvm.memset", [POINTER, I64])
            self.builder.call(fill, [data, ir.Constant(I8, 0), self.size(length), ir.Constant(ir.IntType(1), 0)])

    def known(self, name: str, result: ir.Type, *arguments: ir.Type, variadic: bool = False) -> ir.Function:
        """A function of CPython's, declared once."""
        return self.module.globals.get(name) or self.external(name, result, *arguments, variadic=variadic)

    def guard(self, made: Any, held: list[Any]) -> None:
        """If an object could not be made, let go of what is held, and leave with the exception that is set."""
        builder = self.builder
        with builder.if_then(builder.icmp_signed("==", builder.ptrtoint(made, I64), ir.Constant(I64, 0)), likely=False):
            self.release(held)
            builder.ret(ir.Constant(POINTER, None))

    def release(self, objects: list[Any]) -> None:
        decrease = self.known("Py_DecRef", ir.VoidType(), POINTER)
        for each in objects:
            self.builder.call(decrease, [each])

    def packed(self, parts: list[Any]) -> Any:
        """A tuple of these, which has references of its own; NULL if it could not be made."""
        pack = self.known("PyTuple_Pack", POINTER, I64, variadic=True)
        return self.builder.call(pack, [ir.Constant(I64, len(parts)), *parts])

    def integer(self, value: Any) -> Any:
        return self.builder.call(self.known("PyLong_FromLong", POINTER, I64), [value])

    def finish(self, memory: list[Any], results: list[Any], fresh: bool) -> None:
        """Run, and return the results (new references), or the status if it is not 0."""
        builder = self.builder
        status = self.call(memory)
        own = results if fresh else []
        with builder.if_then(builder.icmp_signed("!=", status, ir.Constant(I64, 0))):
            self.release(own)
            builder.ret(self.integer(status))
        if len(results) == 1:
            if not fresh:
                builder.call(self.known("Py_IncRef", ir.VoidType(), POINTER), results)
            builder.ret(results[0])
        else:
            answer = self.packed(results)
            self.release(own)
            builder.ret(answer)
        builder.position_at_end(self.function.append_basic_block())


class _BatchWrapper(_Wrapper):
    """The wrapper for a batch with one leading axis, around `many`.

    A third argument lends the thread's memory: an array of its address, its length in bytes, and how many samples are
    worth a call of this kind (more are better dealt out to threads).
    """

    leading = ("batch",)
    parameters = (POINTER,) * 4 + (I64,) * 2
    expected = 3

    stage: Any = ir.Constant(I64, 0)
    """Where the next argument is packed."""

    def note(self, k: int, data: Any, length: Any) -> None:
        super().note(k, data, length)
        for entry, value in ((STRIDE, length), (STAGE, self.stage)):
            self.builder.store(value, self.builder.gep(self.meta, [ir.Constant(I64, k * META + entry)]))
        self.stage = self.builder.add(self.stage, length)

    def extent(self, length: Any) -> Any:
        return self.size(self.builder.mul(length, self.lengths["batch"]))

    def workspace(self) -> Any:
        builder = self.builder
        lent, _ = self.array(self.argument(2), self.int64, 1)
        length_lent, limit = self.load(lent, 8, I64), self.load(lent, 16, I64)
        self.require(builder.icmp_signed("<=", self.lengths["batch"], limit))
        needed = builder.add(self.stage, self.numbers)
        for spec in self.algorithm.outputs:
            length: Any = ir.Constant(I64, 1)
            for size in spec.shape:
                length = builder.mul(length, ir.Constant(I64, size) if isinstance(size, int) else self.lengths[size])
            needed = builder.add(needed, length)
        size = builder.mul(self.size(needed), ir.Constant(I64, self.number.width))
        self.require(builder.icmp_signed("<=", size, length_lent))
        self.inputs_end = self.stage
        return self.load(lent, 0, POINTER)

    def make_results(self) -> list[Any]:
        self.stage = self.inputs_end
        return super().make_results()

    def take_results(self, out: Any) -> list[Any]:
        self.stage = self.inputs_end
        return super().take_results(out)

    def call(self, memory: list[Any]) -> Any:
        """Note where the workspace begins, and run without the interpreter's lock."""
        builder, count = self.builder, len(self.algorithm.arguments)
        builder.store(self.stage, builder.gep(self.meta, [ir.Constant(I64, count * META + STAGE)]))
        release = self.known("PyEval_SaveThread", POINTER)
        acquire = self.known("PyEval_RestoreThread", ir.VoidType(), POINTER)
        state = builder.call(release, [])
        status = builder.call(self.run, [*memory, ir.Constant(I64, 0), self.lengths["batch"]])
        builder.call(acquire, [state])
        return status


def wrapper(algorithm: Algorithm, present: tuple[bool, ...], inner: str, symbol: str, number: Number) -> str:
    """LLVM code of the wrapper `symbol` around the function `inner`: `one`, or for a packet `many`."""
    kind = _Wrapper if number.width == 1 else _BatchWrapper
    return kind(algorithm, present, inner, symbol, number).write()


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


METH_FASTCALL, METH_KEYWORDS = 0x80, 0x2


@functools.cache  # for ever: the interpreter looks at it to the very end
def method(address: int, name: str, flags: int = METH_FASTCALL) -> _MethodDef:
    made = _MethodDef(name.encode(), address, flags, None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    return made


def builtin(address: int, name: str, handle: Any = ()) -> Any:
    """The Python function at an address, for the model with this handle."""
    return bound(method(address, name), np.concatenate([constants(), np.asarray(handle, np.int64)]))


def bound(made: _MethodDef, own: Any) -> Any:
    """A builtin that is given an object of its own with every call."""
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return new(ctypes.addressof(made), own, None)
