"""The way of one call from the interpreter into native code: about 0.1 us.

`Wrapper` writes, as LLVM code, a function of CPython's METH_FASTCALL convention. It looks into the NumPy arrays that it
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
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from saltus.kernel.memory import META, ONE, STAGE, STRIDE, Layout
from saltus.kernel.number import Number

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm, Spec

# struct PyArrayObject of NumPy's C interface (the same in NumPy 1 and 2), 64-bit CPython
TYPE, DATA, NDIM, SHAPE, DTYPE, FLAGS = 8, 16, 24, 32, 56, 64
LENGTH, ITEMS = 16, 24  # of a tuple
FLOAT = 16  # the number of a float
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400

STACK_LIMIT = 16_384
"""Longest workspace on the stack, in numbers (128 KiB): threads may have little of it. Longer ones lie on the heap."""

ALIGNED_TO = 64

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


def word(k: int) -> Any:
    return ir.Constant(I64, k)


class Wrapper:
    """The wrapper of one algorithm for one sample, for a given set of arguments: loads at constant offsets, and guards that
    leave for `declined`."""

    leading: tuple[str, ...] = ()
    """Axes in front of the declared shapes."""
    expected = 2
    """Arguments from Python."""

    def __init__(
        self, algorithm: Algorithm, present: tuple[bool, ...], inner: str, symbol: str, number: Number
    ) -> None:
        self.algorithm, self.present, self.inner, self.number = algorithm, present, inner, number
        self.module = ir.Module()
        self.function = ir.Function(self.module, ir.FunctionType(POINTER, [POINTER, POINTER, I64]), symbol)
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.declined = self.function.append_basic_block("declined")
        self.equal(self.function.args[2], word(self.expected))
        known = self.load(self.function.args[0], DATA, POINTER)
        self.array_type, double, single, self.int32, self.int64, self.new_array, *classes = (
            self.load(known, 8 * k, I64) for k in range(KNOWN)
        )
        self.tuple_type, self.none, self.float_type = classes
        self.handle = self.builder.gep(known, [word(8 * KNOWN)])
        self.real = double if number.bits == 64 else single

    def text(self) -> str:
        """All of it, as LLVM code."""
        self.write()
        self.builder.position_at_end(self.declined)
        self.builder.ret(self.integer(word(-1)))
        return str(self.module)

    def write(self) -> None:
        builder, algorithm = self.builder, self.algorithm
        self.find_sizes()
        count = len(algorithm.arguments)
        self.pointers = builder.alloca(I64, size=count)
        self.meta = builder.alloca(I64, size=(count + 1) * META)
        inputs = self.items(self.argument(0), sum(self.present[: len(algorithm.inputs)]))
        self.read: list[tuple[Any, Any]] = []
        for k, spec in enumerate(algorithm.inputs):
            data, length = ir.Constant(POINTER, None), word(0)
            if self.present[k]:
                plain = not self.axes(spec) and self.number.bits == 64
                data = self.number_at(inputs[k]) if plain else self.taken(inputs[k], spec)
                length = self.length(spec)
                self.read.append((data, length))
            self.note(k, data, word(0) if spec.integer else length)
        memory = [self.handle, self.pointers, self.meta, self.workspace()]
        out = self.argument(1)
        with builder.if_else(builder.icmp_signed("==", builder.ptrtoint(out, I64), self.none)) as (new, old):
            with new:
                self.finish(memory, self.make_results(), fresh=True)
            with old:
                self.finish(memory, self.take_results(out), fresh=False)
        builder.unreachable()

    def load(self, base: Any, offset: int, ty: ir.Type) -> Any:
        place = self.builder.gep(base, [word(offset)])
        return self.builder.load(self.builder.bitcast(place, ty.as_pointer()))

    def put(self, table: Any, k: int, value: Any) -> None:
        self.builder.store(value, self.builder.gep(table, [word(k)]))

    def call(self, *arguments: Any) -> Any:
        """The status of the function that is wrapped."""
        given = [self.builder.bitcast(each, POINTER) if each.type.is_pointer else each for each in arguments]
        return self.builder.call(self.external(self.inner, I64, *(each.type for each in given)), given)

    def require(self, condition: Any) -> None:
        proceed = self.function.append_basic_block()
        self.builder.cbranch(condition, proceed, self.declined)
        self.builder.position_at_end(proceed)

    def equal(self, a: Any, b: Any) -> None:
        self.require(self.builder.icmp_signed("==", a, b))

    def external(self, name: str, result: ir.Type, *arguments: ir.Type, variadic: bool = False) -> ir.Function:
        """A function from elsewhere, declared once."""
        ty = ir.FunctionType(result, arguments, var_arg=variadic)
        return self.module.globals.get(name) or ir.Function(self.module, ty, name)

    def argument(self, position: int) -> Any:
        return self.load(self.function.args[1], 8 * position, POINTER)

    def items(self, place: Any, count: int) -> list[Any]:
        """The items of a tuple that must have so many."""
        self.equal(self.load(place, TYPE, I64), self.tuple_type)
        self.equal(self.load(place, LENGTH, I64), word(count))
        return [self.load(place, ITEMS + 8 * k, POINTER) for k in range(count)]

    def check_array(self, place: Any, dtype: Any, written: bool = False) -> None:
        """Guard against what is no array of this type with its numbers one after the other."""
        flags = ir.Constant(I32, C_CONTIGUOUS | ALIGNED | (WRITEABLE if written else 0))
        self.equal(self.load(place, TYPE, I64), self.array_type)
        self.equal(self.load(place, DTYPE, I64), dtype)
        self.equal(self.builder.and_(self.load(place, FLAGS, I32), flags), flags)

    def array(self, place: Any, dtype: Any, axes: int, written: bool = False) -> Any:
        """Data pointer of an array, checked but for its lengths."""
        self.check_array(place, dtype, written)
        self.equal(self.load(place, NDIM, I32), ir.Constant(I32, axes))
        return self.load(place, DATA, POINTER)

    def check_lengths(self, axes: tuple[str | int, ...], shape: Any) -> None:
        """Guard each axis; a size that is not the model's is set by the first argument that has it."""
        for axis, name in enumerate(axes):
            found = self.load(shape, 8 * axis, I64)
            if isinstance(name, int) or name in self.lengths:
                self.equal(found, self.size(name))
            else:
                self.lengths[name] = found

    def taken(self, place: Any, spec: Spec, written: bool = False) -> Any:
        """Data pointer of an array that is what an argument is declared to be."""
        axes = self.axes(spec)
        data = self.array(place, self.int32 if spec.integer else self.real, len(axes), written)
        self.check_lengths(axes, self.load(place, SHAPE, POINTER))
        return data

    def number_at(self, place: Any) -> Any:
        """Data pointer of a float, or of an array without axes."""
        builder = self.builder
        with builder.if_else(builder.icmp_signed("==", self.load(place, TYPE, I64), self.float_type)) as (plain, other):
            with plain:
                value, plain_end = builder.gep(place, [word(FLOAT)]), builder.block
            with other:
                data, other_end = self.array(place, self.real, 0), builder.block
        found = builder.phi(POINTER)
        found.add_incoming(value, plain_end)
        found.add_incoming(data, other_end)
        return found

    def find_sizes(self) -> None:
        self.lengths = {name: self.load(self.handle, 8 * k, I64) for k, name in enumerate(self.algorithm.tables.sizes)}
        self.lengths[ONE] = word(1)

    def size(self, name: str | int) -> Any:
        return word(name) if isinstance(name, int) else self.lengths[name]

    def axes(self, spec: Spec) -> tuple[str | int, ...]:
        return spec.shape if spec.integer else self.leading + spec.shape

    def length(self, spec: Spec) -> Any:
        """How many numbers a sample has."""
        return functools.reduce(self.builder.mul, map(self.size, spec.shape), word(1))

    def numbers_of(self, layout: Layout) -> Any:
        """How many numbers a memory of this layout holds, and one more."""
        numbers: Any = word(1)
        for group, record in layout.records.items():
            numbers = self.builder.add(numbers, self.builder.mul(self.lengths[group], word(record)))
        return numbers

    def bytes_of(self, length: Any) -> Any:
        return self.builder.mul(length, word(self.number.bits // 8))

    def extent(self, length: Any) -> Any:
        """Bytes of an array with so many numbers a sample."""
        return self.bytes_of(length)

    def on_stack(self, words: Any, limit: int) -> Any:
        """Memory for so many words."""
        self.require(self.builder.icmp_signed("<=", words, word(limit)))
        work = self.builder.alloca(ir.DoubleType(), size=words)
        work.align = 64
        return work

    def workspace(self) -> Any:
        self.words = self.numbers_of(self.algorithm.work)
        self.short = self.builder.icmp_signed("<=", self.words, word(STACK_LIMIT))
        return self.on_stack(self.builder.select(self.short, self.words, word(1)), STACK_LIMIT)

    def note(self, k: int, data: Any, length: Any) -> None:
        """Enter argument k, with so many numbers a sample, into the tables."""
        self.put(self.pointers, k, self.builder.ptrtoint(data, I64))
        self.put(self.meta, k * META, length)

    def make_results(self) -> list[Any]:
        made = list[Any]()
        for k, spec in enumerate(self.algorithm.outputs, len(self.algorithm.inputs)):
            axes = self.axes(spec)
            new = self.make_array(ir.Constant(I32, len(axes)), self.shape_of(map(self.size, axes)))
            self.guard(new, made)
            made.append(new)
            self.note_result(k, spec, self.load(new, DATA, POINTER))
        return made

    def shape_of(self, lengths: Iterable[Any]) -> Any:
        known = list(lengths)
        shape = self.builder.alloca(I64, size=max(len(known), 1))
        for axis, length in enumerate(known):
            self.put(shape, axis, length)
        return self.builder.bitcast(shape, POINTER)

    def make_array(self, axes: Any, shape: Any) -> Any:
        """A new array, its numbers not set; NULL if it could not be made."""
        builder, none, zero = self.builder, ir.Constant(POINTER, None), ir.Constant(I32, 0)
        dtype = builder.inttoptr(self.real, POINTER)
        self.retain(dtype)  # the new array takes it
        arguments = [builder.inttoptr(self.array_type, POINTER), dtype, axes, shape, none, none, zero, none]
        maker = ir.FunctionType(POINTER, [each.type for each in arguments]).as_pointer()
        return builder.call(builder.inttoptr(self.new_array, maker), arguments)

    def take_results(self, out: Any) -> list[Any]:
        count, others = len(self.algorithm.outputs), list(self.read)
        given = [out] if count == 1 else self.items(out, count)
        for k, (spec, place) in enumerate(zip(self.algorithm.outputs, given, strict=True), len(self.algorithm.inputs)):
            data, length = self.taken(place, spec, written=True), self.length(spec)
            self.keep_apart(data, length, others)
            others.append((data, length))
            self.note_result(k, spec, data)
        return given

    def keep_apart(self, data: Any, length: Any, others: list[tuple[Any, Any]]) -> None:
        """Guard against an output that overlaps an input, for kernels write before they have read all, or another output."""
        builder = self.builder
        start, end = builder.ptrtoint(data, I64), builder.ptrtoint(builder.gep(data, [self.extent(length)]), I64)
        for other, other_length in others:
            first = builder.ptrtoint(other, I64)
            last = builder.ptrtoint(builder.gep(other, [self.extent(other_length)]), I64)
            before, after = builder.icmp_unsigned("<=", end, first), builder.icmp_unsigned("<=", last, start)
            self.require(builder.or_(before, after))

    def note_result(self, k: int, spec: Spec, data: Any) -> None:
        length = self.length(spec)
        self.note(k, data, length)
        if spec.zeroed and not self.leading:
            fill = self.module.declare_intrinsic("llvm.memset", [POINTER, I64])
            no = ir.Constant(ir.IntType(1), 0)
            self.builder.call(fill, [data, ir.Constant(I8, 0), self.bytes_of(length), no])

    def execute(self, memory: list[Any]) -> Any:
        """The status: of the call, or -1 where there is no memory."""
        builder = self.builder
        with builder.if_else(self.short) as (on_stack, on_heap):
            with on_stack:
                found = [(self.call(*memory), builder.block)]
            with on_heap:
                size = builder.add(builder.mul(self.words, word(8)), word(ALIGNED_TO))
                heap = builder.call(self.external("malloc", POINTER, I64), [size])
                lacking = builder.icmp_signed("==", builder.ptrtoint(heap, I64), word(0))
                with builder.if_else(lacking, likely=False) as (none, some):
                    with none:
                        inner = [(word(-1), builder.block)]
                    with some:
                        start = builder.and_(
                            builder.add(builder.ptrtoint(heap, I64), word(ALIGNED_TO - 1)), word(-ALIGNED_TO)
                        )
                        inner.append((self.call(*memory[:-1], builder.inttoptr(start, POINTER)), builder.block))
                        builder.call(self.external("free", ir.VoidType(), POINTER), [heap])
                found.append((self.met(inner), builder.block))
        return self.met(found)

    def met(self, ways: list[tuple[Any, Any]]) -> Any:
        """The number that comes along whichever way."""
        joined = self.builder.phi(I64)
        for value, block in ways:
            joined.add_incoming(value, block)
        return joined

    def finish(self, memory: list[Any], results: list[Any], fresh: bool) -> None:
        """Run, and return the results (new references), or the status if it is not 0."""
        own = results if fresh else []
        self.succeed(self.execute(memory), own)
        if len(results) > 1:
            answer = self.packed(results)
            self.release(own)
        else:
            (answer,) = results
            if not fresh:
                self.retain(answer)
        self.builder.ret(answer)

    def succeed(self, status: Any, held: list[Any]) -> None:
        """Let go of what is held and return the status, if it is not 0."""
        with self.builder.if_then(self.builder.icmp_signed("!=", status, word(0))):
            self.release(held)
            self.builder.ret(self.integer(status))

    def guard(self, made: Any, held: list[Any]) -> None:
        """If an object could not be made, let go of what is held, and leave with the exception that is set."""
        builder = self.builder
        with builder.if_then(builder.icmp_signed("==", builder.ptrtoint(made, I64), word(0)), likely=False):
            self.release(held)
            builder.ret(ir.Constant(POINTER, None))

    def retain(self, each: Any) -> None:
        self.builder.call(self.external("Py_IncRef", ir.VoidType(), POINTER), [each])

    def release(self, objects: list[Any]) -> None:
        for each in objects:
            self.builder.call(self.external("Py_DecRef", ir.VoidType(), POINTER), [each])

    def packed(self, parts: list[Any]) -> Any:
        """A tuple of these, which has references of its own; NULL if it could not be made."""
        pack = self.external("PyTuple_Pack", POINTER, I64, variadic=True)
        return self.builder.call(pack, [word(len(parts)), *parts])

    def integer(self, value: Any) -> Any:
        return self.builder.call(self.external("PyLong_FromLong", POINTER, I64), [value])


class BatchWrapper(Wrapper):
    """The wrapper for a batch with one leading axis, around `many`.

    A third argument lends the thread's memory: an array of its address, its length in bytes, and how many samples are
    worth a call of this kind (more are better dealt out to threads).
    """

    leading = ("batch",)
    expected = 3

    def write(self) -> None:
        self.stages: list[Any] = [word(0)]
        """Where each argument is packed."""
        super().write()

    def note(self, k: int, data: Any, length: Any) -> None:
        super().note(k, data, length)
        self.put(self.meta, k * META + STRIDE, length)
        self.put(self.meta, k * META + STAGE, self.stages[k])
        self.stages[k + 1 :] = [self.builder.add(self.stages[k], length)]

    def extent(self, length: Any) -> Any:
        return self.bytes_of(self.builder.mul(length, self.lengths["batch"]))

    def workspace(self) -> Any:
        builder, lent = self.builder, self.array(self.argument(2), self.int64, 1)
        address, length_lent, limit = (self.load(lent, 8 * k, ty) for k, ty in enumerate((POINTER, I64, I64)))
        self.require(builder.icmp_signed("<=", self.lengths["batch"], limit))
        needed = builder.add(self.stages[-1], self.numbers_of(self.algorithm.work))
        for spec in self.algorithm.outputs:
            needed = builder.add(needed, self.length(spec))
        size = builder.mul(self.bytes_of(needed), word(self.number.width))
        self.require(builder.icmp_signed("<=", size, length_lent))
        return address

    def execute(self, memory: list[Any]) -> Any:
        """Note where the workspace begins, and run without the interpreter's lock."""
        self.put(self.meta, len(self.algorithm.arguments) * META + STAGE, self.stages[-1])
        state = self.builder.call(self.external("PyEval_SaveThread", POINTER), [])
        status = self.call(*memory, word(0), self.lengths["batch"])
        self.builder.call(self.external("PyEval_RestoreThread", ir.VoidType(), POINTER), [state])
        return status


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
