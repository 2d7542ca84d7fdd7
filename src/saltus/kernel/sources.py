"""Where kernels come from: their syntax trees, and what they take from around them; and a digest of all that."""

from __future__ import annotations

import ast
import builtins
import functools
import hashlib
import types
from collections.abc import Callable, Iterator
from typing import Any

from saltus.kernel.texts import text_of
from saltus.kernel.tuples import DEFINITIONS, components, is_kernel


class KernelError(TypeError):
    """A kernel says something that the language has not."""


@functools.cache
def _parsed(file: str, lines: tuple[str, ...]) -> dict[tuple[int, str], ast.FunctionDef]:
    """The functions of a text, by the line of their first decorator, or def, and name."""
    found = {}
    for node in ast.walk(ast.parse("".join(lines), file)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            found[first, node.name] = node
    return found


@functools.cache
def syntax_of(function: Callable[..., Any]) -> tuple[ast.FunctionDef, str]:
    """The syntax tree of a function, and the file it is in."""
    code = function.__code__
    lines = text_of(function)
    if not lines:
        raise KernelError(
            f"{code.co_filename}:{code.co_firstlineno}: kernel {code.co_name}: Python kept no text of it, expected one from "
            f"a file, a notebook or an interactive session"
        )
    node = _parsed(code.co_filename, tuple(lines)).get((code.co_firstlineno, code.co_name))
    if node is None:
        raise KernelError(
            f"{code.co_filename}:{code.co_firstlineno}: kernel {code.co_name}: the file was changed since"
        )
    return node, code.co_filename


def names_of(function: Callable[..., Any]) -> dict[str, Any]:
    """What a function sees around it."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}


def kernels_of(function: Callable[..., Any], known: frozenset[Any] = frozenset()) -> frozenset[Any]:
    """A kernel and all that it calls, and they call, by name."""
    known |= {function}
    outside = names_of(function)
    for chain in _dumped(function)[1]:
        found, _ = _followed(outside, chain)
        if is_kernel(found) and found not in known:
            known = kernels_of(found, known)
    return known


# ---------------------------------------------------------------------------------------------------- what code depends on


def digest(functions: tuple[Callable[..., Any], ...], *more: str) -> str:
    """Of the syntax trees of kernels, of all that they name, and of the definitions of operators for what they may have."""
    seen: dict[int, int] = {}
    total = hashlib.sha256()
    for function in functions:
        for text in _described(function, seen):
            total.update(text.encode())
    for function in _definitions(seen):
        for text in _described(function, seen):
            total.update(text.encode())
    for text in more:
        total.update(text.encode())
    return total.hexdigest()


@functools.cache
def _dumped(function: Callable[..., Any]) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """The syntax tree in words, and the dotted names in it."""
    node, _ = syntax_of(function)
    own = {each.arg for each in node.args.args}
    chains = set()
    for each in ast.walk(node):
        chain: list[str] = []
        while isinstance(each, ast.Attribute):
            chain.insert(0, each.attr)
            each = each.value
        if isinstance(each, ast.Name) and each.id not in own:
            chains.add((each.id, *chain))
    return _words([node.args, node.body]), tuple(sorted(chains))


SILENT = {"ctx", "kind", "type_comment"}


def _words(node: Any) -> str:
    """A syntax tree in words that are the same for every version of Python; what is not there, and strings that stand by
    themselves, are left out."""
    if isinstance(node, list):
        return f"[{','.join(_words(each) for each in node if not _is_text(each))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    parts = ((name, getattr(node, name)) for name in node._fields if name not in SILENT)
    return f"{type(node).__name__}({','.join(f'{n}={_words(x)}' for n, x in parts if x is not None and x != [])})"


def _is_text(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _described(value: Any, seen: dict[int, int]) -> Iterator[str]:
    """Words that differ where compiled code may."""
    if isinstance(value, (int, float, str, bytes, type(None))):
        yield f"{type(value).__name__} {value!r}"
    elif isinstance(value, tuple):
        yield f"{type(value).__name__}("
        for part in value:
            yield from _described(part, seen)
    elif id(value) in seen:
        yield f"again {seen[id(value)]}"
    elif isinstance(value, type):
        seen[id(value)] = len(seen)
        yield value.__qualname__
        if issubclass(value, tuple) and hasattr(value, "_fields"):
            yield str(value._fields)
            for part in components(value) if value.__annotations__ else ():
                yield from _described(part, seen)
    elif isinstance(value, types.FunctionType):
        seen[id(value)] = len(seen)
        yield f"{value.__qualname__}"
        if is_kernel(value):
            text, chains = _dumped(value)
            yield text
            outside = names_of(value)
            for chain in chains:
                found, there = _followed(outside, chain)
                if there:
                    yield f"{chain}:"
                    yield from _described(found, seen)
    else:
        yield type(value).__name__


def _definitions(seen: dict[int, int]) -> list[Callable[..., Any]]:
    """Of operators and elementary functions: those of this package, and those for classes that were seen."""
    return [
        each.function for group in DEFINITIONS.values() for each in group
        if is_kernel(each.function)
        and (each.function.__module__.startswith("saltus.") or any(id(cls) in seen for cls in each.operands))
    ]  # fmt: skip


def _followed(outside: dict[str, Any], chain: tuple[str, ...]) -> tuple[Any, bool]:
    """What a dotted name stands for, as far as it can be followed."""
    if chain[0] in outside:
        value = outside[chain[0]]
    elif hasattr(builtins, chain[0]):
        return chain[0], True
    else:
        return None, False  # a variable
    for name in chain[1:]:
        if not hasattr(value, name):
            break
        value = getattr(value, name)
    return value, True
