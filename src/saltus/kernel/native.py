"""Compiled code on disk and in memory: found in the package (packs.py) or in the cache, or compiled and put there, then
linked into the process.

The cache is keyed on what is compiled (syntax trees, and what they name: see sources.py), on the compiler and on the
processor. Code runs as the user does: a cache that others can write is neither read nor written.

Compiling takes seconds, so it says what it does, in one line on the standard error, unless `SALTUS_QUIET` is set:

    saltus: compiling aba for f64x8 (first use; kept in ~/.cache/saltus) ... 3.2 s
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import stat
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import saltus.kernel
from saltus.kernel import packs
from saltus.kernel.number import Number
from saltus.kernel.sources import digest

if TYPE_CHECKING:
    from saltus.kernel.algorithm import Algorithm
    from saltus.kernel.target import Target

_lock = threading.RLock()
HERE = Path(saltus.kernel.__file__).parent

CODE = (
    "algorithm",
    "assembly",
    "compile",
    "directional",
    "dual",
    "entries",
    "evaluation",
    "expressions",
    "fastcall",
    "gpu_entry",
    "lanes",
    "limbs",
    "memory",
    "number",
    "order",
    "primitives",
    "push",
    "push_along",
    "pushcall",
    "quad",
    "room",
    "scalar",
    "tables",
    "target",
    "transfer",
    "tuples",
    "values",
    "walk",
)
"""The files of this package that have a say in what code comes out of a kernel."""

PUSH, GPU = "push", "gpu"
"""The forms of derivatives, and of GPUs."""

DIGEST = 32
"""Bytes of the digest that stands before the code in a file of the cache."""

DRAFT, STALE = ".draft", 3600.0
"""The ending of files that are being written, and the age [s] from which on nobody is writing them any more."""

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

_refused: set[Path] = set()
"""Folders and files that were found not to be trusted, and said to be."""

KERNEL = "kernel"
"""The symbol of every function for GPUs."""

CALL: Literal[".call"] = ".call"
"""What the symbol of a wrapper for the interpreter has behind that of the function it wraps."""


def cache_folder() -> Path:
    """Where object files are kept: `SALTUS_CACHE_DIR`, or the user's cache folder."""
    chosen = os.environ.get("SALTUS_CACHE_DIR")
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "saltus"


def can_keep() -> bool:
    """Whether something can be written to the cache's folder, or it made."""
    folder = cache_folder().absolute()
    there = next(each for each in (folder, *folder.parents) if each.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


@functools.cache
def _environment(made_for: Target) -> str:
    """What every compiled function depends on: the processor, and the compiler."""
    total = hashlib.sha256(f"{made_for.cpu} {made_for.features}".encode())
    for name in CODE:
        total.update((HERE / f"{name}.py").read_bytes())
    return total.hexdigest()


def _key(algorithm: Algorithm, number: Number, present: tuple[bool, ...], form: str) -> str:
    from saltus.kernel.target import target_of

    kernels = (*algorithm.kernels, algorithm.tables.configurations.defects)
    bits = "".join("01"[here] for here in present)
    known = algorithm.known.digest if algorithm.known else ""
    sources = digest(kernels, _environment(target_of(form)), algorithm.signature, known)
    return f"{algorithm.name}-{number.name}-{form}-{bits}-{sources[:20]}"


@functools.cache
def _engine() -> Any:
    import llvmlite.binding as llvm

    from saltus.kernel.target import target, target_machine

    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine(target()))


def prepare(algorithm: Algorithm, number: Number, present: tuple[bool, ...], form: str) -> tuple[str, bytes]:
    """The symbol and the object file of a function: one that came with the package, or from the cache, or compiled now."""
    from saltus.kernel.target import target_of

    symbol = _key(algorithm, number, present, form)
    code = packs.find(target_of(form).name, symbol)
    if code is not None:
        return symbol, code
    file = cache_folder() / f"{symbol}.{'ptx' if form == GPU else 'o'}"
    trusted = is_trusted(file.parent)
    code = _kept(file) if trusted else None
    if code is None:
        place = _short(file.parent) if trusted and can_keep() else "memory alone"
        with announced(
            f"compiling {algorithm.name} for {number.name}{' on GPUs' if form == GPU else ''} (first use; kept in {place})"
        ):
            from saltus.kernel.compile import emit

            code = emit(algorithm, number, present, form, symbol)
            _keep(file, code)
    return symbol, code


@contextmanager
def announced(work: str) -> Iterator[None]:
    """Say what is being done before it is, and then how long it took: nobody should wonder why nothing happens.

    On the standard error, terminal or not: a notebook shows it, pytest keeps it for failures, a server logs it once.
    """
    quiet = os.environ.get("SALTUS_QUIET", "") not in ("", "0") or sys.stderr is None
    start, result = time.perf_counter(), "stopped"
    if not quiet:
        print(f"saltus: {work} ... ", end="", file=sys.stderr, flush=True)
    try:
        yield
        result = f"{time.perf_counter() - start:.1f} s"
    finally:
        if not quiet:
            print(result, file=sys.stderr, flush=True)


def _short(folder: Path) -> str:
    """The folder's name, with ~ for the user's home."""
    return f"~/{folder.relative_to(Path.home())}" if folder.is_relative_to(Path.home()) else str(folder)


@functools.cache
def _load(algorithm: Algorithm, number: Number, present: tuple[bool, ...], form: str) -> str:
    """Link a compiled function into the process; returns its symbol."""
    import llvmlite.binding as llvm

    symbol, code = prepare(algorithm, number, present, form)
    _engine().add_object_file(llvm.ObjectFileRef.from_data(code))
    _engine().finalize_object()
    return symbol


def address(
    algorithm: Algorithm, number: Number, present: tuple[bool, ...], form: str, suffix: Literal["", ".call"] = ""
) -> int:
    """The address of a compiled function, compiled first if it is not in the cache."""
    with _lock:
        return int(_engine().get_function_address(_load(algorithm, number, present, form) + suffix))


def link(code: str, symbol: str) -> int:
    """The address of a function in LLVM's language, compiled for this process alone."""
    import llvmlite.binding as llvm

    with _lock:
        if not _engine().get_function_address(symbol):
            _engine().add_module(llvm.parse_assembly(code))
            _engine().finalize_object()
        return int(_engine().get_function_address(symbol))


def is_trusted(path: Path, status: os.stat_result | None = None) -> bool:
    """Whether nobody else can have put code there: a folder or file of the cache belongs to this user, or root, and only
    they can write it. In a folder with the sticky bit, others cannot touch what is not theirs. If not, it says so, once."""
    if os.name != "posix":
        return True
    try:
        status = status or path.stat()
    except OSError:
        return True  # what is not there holds nothing
    mode = stat.S_IMODE(status.st_mode)
    sticky = stat.S_ISDIR(status.st_mode) and mode & stat.S_ISVTX
    if status.st_uid in (os.geteuid(), 0) and (sticky or not mode & OTHERS_WRITE):
        return True
    if path not in _refused:
        _refused.add(path)
        warnings.warn(
            f"saltus: {path} is not used as a cache of compiled code: it belongs to user {status.st_uid} with mode "
            f"{mode:04o}, expected one that belongs to this user ({os.geteuid()}) or root and that nobody else can write "
            f"(chmod go-w); code is compiled in every process",
            RuntimeWarning,
            stacklevel=2,
        )
    return False


def _kept(file: Path) -> bytes | None:
    """An object file of the cache; None if it is not there, or damaged, or not to be trusted."""
    try:
        with file.open("rb") as stream:
            if not is_trusted(file, os.fstat(stream.fileno())):
                return None
            content = stream.read()
    except OSError:
        return None
    checked, code = content[:DIGEST], content[DIGEST:]
    return code if hashlib.sha256(code).digest() == checked else None


def _keep(file: Path, code: bytes) -> None:
    """Write in one step, so that another process never reads half a file; a cache that cannot be written is none."""
    folder = file.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_trusted(folder):
            return
        _clear_drafts(folder)
        handle, draft = tempfile.mkstemp(DRAFT, f"{file.stem}.", folder)  # for this user alone
    except OSError:
        return
    with suppress(OSError):
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(hashlib.sha256(code).digest() + code)
            Path(draft).replace(file)
        finally:
            Path(draft).unlink(missing_ok=True)  # a full disk leaves half of it


def _clear_drafts(folder: Path) -> None:
    """Writing one takes no time: those that have been there for long are of processes that were killed."""
    for draft in folder.glob(f"*{DRAFT}"):
        with suppress(OSError):  # another process may do the same
            if time.time() - draft.stat().st_mtime > STALE:
                draft.unlink()


ONE = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4)
MANY = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4, ctypes.c_int64, ctypes.c_int64)
