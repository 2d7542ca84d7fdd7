"""From a kernel and a number type to native code: the front end writes LLVM's language, LLVM optimises, an object file
comes out, or PTX for GPUs. It defines the symbol given, and with CALL behind it a wrapper for the interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm

from saltus.kernel.directional import Directional
from saltus.kernel.entries import Entry, many_entry, one_entry
from saltus.kernel.evaluation import Evaluation
from saltus.kernel.fastcall import BatchWrapper, Wrapper
from saltus.kernel.gpu_entry import gpu_entry
from saltus.kernel.native import CALL, GPU, KERNEL, PUSH
from saltus.kernel.number import Number
from saltus.kernel.push import push_entry
from saltus.kernel.push_along import along_entry
from saltus.kernel.pushcall import PushWrapper
from saltus.kernel.target import target_machine, target_of
from saltus.kernel.walk import Compiler, Walk

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm

OPTIONS = {
    "one": (("-disable-lsr", "true", "false"),),
    GPU: (("-disable-lsr", "true", "false"), ("-nvptx-prec-divf32", "1", "2")),
}
"""Of LLVM's writing of code for a form, and what they are elsewhere. Addresses that run along with a loop take registers,
which are few on GPUs; calls of one sample gain nothing by them (packets 6 %, measured), and most of the time of long
kernels goes into finding them. On GPUs, single-precision quotients off by two units in the last place take a fifth of the
time of those that are rounded right."""

LEVEL, LEVEL_OF_SLOPES = 2, 3
"""Of LLVM's optimiser: for dual numbers a higher one, by which they run 5 % faster (measured)."""


def entry_of(algorithm: Algorithm, number: Number, present: tuple[bool, ...], form: str) -> Entry:
    if form == PUSH:
        along = isinstance(algorithm, Directional)
        return along_entry(algorithm, number, present) if along else push_entry(algorithm, number, present)  # type: ignore[arg-type]
    return {"one": one_entry, "many": many_entry, GPU: gpu_entry}[form](algorithm, number, present)


def assembly(algorithm: Algorithm, number: Number, present: tuple[bool, ...], form: str, symbol: str) -> str:
    """LLVM's language, before it is optimised."""
    entry = entry_of(algorithm, number, present, form)
    compiler = Compiler(form == GPU, Evaluation if algorithm.known else Walk, target_of(form).triple)
    compiler.limbs = form == "one"
    compiler.entry(entry.function, entry.types, symbol)
    return str(compiler.module)


def emit(algorithm: Algorithm, number: Number, present: tuple[bool, ...], form: str, symbol: str) -> bytes:
    machine = target_machine(target_of(form))
    if form == GPU:
        return ptx(assembly(algorithm, number, present, form, KERNEL), machine)
    module = llvm.parse_assembly(assembly(algorithm, number, present, form, symbol))
    wrapper = PushWrapper if form == PUSH else Wrapper if form == "one" else BatchWrapper
    module.link_in(llvm.parse_assembly(wrapper(algorithm, present, symbol, symbol + CALL, number).text()))
    if (
        form != PUSH
    ):  # it stays one function, wherever it is called from, so that all ways to call it give the same bits
        module.get_function(symbol).add_function_attribute("noinline")
    optimise(module, machine, LEVEL_OF_SLOPES if form == PUSH else LEVEL)
    with options(form):
        return bytes(machine.emit_object(module))


def ptx(text: str, machine: Any) -> bytes:
    """NVIDIA's assembly language. Names of functions may be less there: all are called `KERNEL`."""
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    optimise(module, machine, LEVEL)
    with options(GPU):
        return str(machine.emit_assembly(module)).encode()


@contextmanager
def options(form: str) -> Iterator[None]:
    """LLVM has them once for a process."""
    chosen = OPTIONS.get(form, ())
    for name, here, _ in chosen:
        llvm.set_option("saltus", f"{name}={here}")
    try:
        yield
    finally:
        for name, _, elsewhere in chosen:
            llvm.set_option("saltus", f"{name}={elsewhere}")


def optimise(module: Any, machine: Any, level: int) -> None:
    """All kernels become one function with the entry: tuples then live in registers. Unrolled loops would be a tenth of all
    code, and processors gain nothing by them (measured)."""
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = tuning.slp_vectorization = False
    tuning.loop_unrolling = "nvptx" in machine.triple
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
