"""The texts of kernels: those of the moment when Python made the functions.

`kernel` keeps a hold of them, so that an edit while a process runs changes nothing there. Notebooks and interactive sessions
put theirs where Python looks for them.
"""

from __future__ import annotations

import linecache
import os
import stat
from collections.abc import Callable
from typing import Any

_texts: dict[str, list[str]] = {}
"""By the name of a file: its lines, as they were when the first kernel was made of them."""


def text_of(function: Callable[..., Any]) -> list[str]:
    """The lines of the file that a function is of, as they were when this was asked first; empty if Python has none."""
    file = function.__code__.co_filename
    if file not in _texts:
        _texts[file] = linecache.getlines(file, function.__globals__) or _standard_input(file)
    return _texts[file]


def _standard_input(file: str) -> list[str]:
    """What a script was read from, if that can be read again."""
    if file != "<stdin>" or not stat.S_ISREG(os.fstat(0).st_mode):
        return []
    return os.pread(0, os.fstat(0).st_size, 0).decode().splitlines(keepends=True)
