"""Reads the XML of robot files, which come from anywhere: nothing is expanded, and no other file is opened.

Entities are refused where they are declared, before anything could expand them, and so are more attributes of an element,
or elements in elements, than any robot has: some of what reads them takes the square of their number in time. Elements of
other namespaces are not the format's own and have no tag.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any
from xml.parsers import expat

from saltus.model.checks import ModelError

MOST_ATTRIBUTES = 1000
"""Of one element."""
DEEPEST = 1000
"""How many elements may be around one. MuJoCo reads half of that."""

NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|INF)")
"""What robot formats call a number. Python's `float` takes more: underscores, digits of all scripts, `Infinity`."""


def robot_file(path: str | os.PathLike[str], what: str) -> Path:
    """The path of a file that a user names; `what` names the format in errors."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"expected the path of {what} file, got {path!r}")
    if isinstance(path, str) and path.lstrip()[:1] in ("", "<"):
        raise ModelError(f"expected the path of {what} file, got {path[:40]!r}{' ...' if len(path) > 40 else ''}")
    file = Path(path)
    _refuse_what_is_no_file(file, what)
    return file


def read_xml(path: Path, root_tag: str, what: str) -> Any:
    """The root element (lxml's) of a file; `root_tag`: what it must be, if not empty; `what` names the format in errors."""
    from lxml import etree  # type: ignore[import-untyped]

    _refuse_what_is_no_file(path, what)
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    if not text.strip():
        raise ModelError(f"{path} is empty, expected {what} file")
    try:
        _refuse_excess(path, text)
        # With that out of the way, deep nesting is all that `huge_tree` allows: chains of bodies in MJCF.
        parser = etree.XMLParser(
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            remove_comments=True,
            remove_pis=True,
            huge_tree=True,
        )
        root = etree.fromstring(text, parser)
    except (expat.ExpatError, etree.XMLSyntaxError, ValueError, LookupError) as error:  # the last: unknown encodings
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{path}: not well-formed XML: {error}") from None
    if root_tag and tag_of(root) != root_tag:
        raise ModelError(f"{path}: its root element is <{root.tag}>, expected <{root_tag}>")
    return root


def _refuse_what_is_no_file(path: Path, what: str) -> None:
    """Pipes are welcome; devices may have no end."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:  # a ValueError: a path that no file can have
        raise ModelError(f"{path}: cannot be read: {getattr(error, 'strerror', error)}") from None
    for found, name in ((stat.S_ISDIR, "directory"), (stat.S_ISCHR, "device"), (stat.S_ISBLK, "device")):
        if found(mode):
            raise ModelError(f"{path} is a {name}, expected {what} file")


def _refuse_excess(path: Path, text: bytes) -> None:
    """Entities, and more attributes or levels than the limits."""
    parser, depth = expat.ParserCreate(), 0

    def refuse(*_: object) -> None:
        raise ModelError(f"{path}: declares XML entities, which are refused")

    def enter(tag: str, attributes: list[str]) -> None:
        nonlocal depth
        depth += 1
        where = f"{path}: line {parser.CurrentLineNumber}: <{tag[:40]}>"
        if len(attributes) > 2 * MOST_ATTRIBUTES:
            raise ModelError(f"{where} has {len(attributes) // 2} attributes, expected at most {MOST_ATTRIBUTES}")
        if depth > DEEPEST:
            raise ModelError(f"{where} is nested too deep, expected at most {DEEPEST} levels")

    def leave(tag: str) -> None:
        nonlocal depth
        depth -= 1

    parser.ordered_attributes = True  # names and values in turn, also of those that have defaults
    parser.EntityDeclHandler, parser.StartElementHandler, parser.EndElementHandler = refuse, enter, leave
    parser.Parse(text, True)


def tag_of(element: Any) -> str:
    """The element's name without a default namespace; empty for `<prefix:name>`, which is not the format's own."""
    if element.prefix is not None or not isinstance(element.tag, str):
        return ""
    return str(element.tag.rpartition("}")[2])


def numbers_in(text: str) -> list[float] | None:
    """The numbers of an attribute or element, plain decimal ones or `inf`; None if it holds anything else.

    >>> numbers_in("0 -1e3 inf"), numbers_in("0,5"), numbers_in("nan"), numbers_in("1_0")
    ([0.0, -1000.0, inf], None, None, None)
    """
    words = text.split()
    return [float(word) for word in words] if text.isascii() and all(map(NUMBER.fullmatch, words)) else None
