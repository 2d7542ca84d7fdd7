"""Timing, and what a result must say of how it came about."""

from __future__ import annotations

import datetime
import gc
import json
import os
import platform
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import repeat
from pathlib import Path
from time import perf_counter
from typing import Any

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Timed:
    """A call to be timed, and what must be done before it."""

    call: Callable[[], Any]
    before: Callable[[], Any] = lambda: None


def best_times(calls: dict[str, Timed], repeats: int, seconds: float) -> dict[str, float]:
    """The best time [s] of each call: the least of several repeats, in each of which all calls are timed for so long.

    The calls take turns within a repeat, so that what else the machine does disturbs all of them alike.
    """
    loops = {name: 1 for name in calls}
    best = {name: float("inf") for name in calls}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(repeats):
            for name, timed in calls.items():
                timed.before()
                timed.call()
                spent = _loop(timed.call, loops[name])
                while spent < 0.5 * seconds:  # in the first repeat: find how many calls fill the time
                    loops[name] *= 2 if spent < 0.1 * seconds else max(2, round(seconds / spent))
                    spent = _loop(timed.call, loops[name])
                best[name] = min(best[name], spent / loops[name])
    finally:
        if collecting:
            gc.enable()
    return best


def _loop(call: Callable[[], Any], count: int) -> float:
    start = perf_counter()
    for _ in repeat(None, count):
        call()
    return perf_counter() - start


def wall_time(call: Callable[[], Any]) -> tuple[float, Any]:
    """The time [s] that one call takes, and its result."""
    start = perf_counter()
    result = call()
    return perf_counter() - start, result


def processor() -> dict[str, Any]:
    """The processor's name, the vectors it has, how many of it there are, and all that as a part of a file's name."""
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    found = re.search(r"model name\s*:\s*(.*)", text)
    model = found[1].strip() if found else platform.processor() or platform.machine()
    vectors = next((name for name in ("avx512f", "avx2", "avx") if f" {name} " in text), "sse2").removesuffix("f")
    plain = re.sub(r"\((R|TM)\)|CPU|Processor|@.*|\d+-Core", "", model)
    return {
        "model": model,
        "vectors": vectors,
        "cores": os.cpu_count(),
        "name": "-".join(re.findall(r"[a-z0-9]+", plain.lower())) + f"-{vectors}",
    }


def versions(*packages: str) -> dict[str, str]:
    """Versions of what was measured and of what it stands on."""
    found = {"python": platform.python_version()}
    for package in ("saltus", "numpy", "llvmlite", *packages):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = getattr(sys.modules.get(package), "__version__", "?")
    return found


def circumstances(module: str, *packages: str) -> dict[str, Any]:
    """What every file of results starts with."""
    given = re.sub(r"--output[ =]\S+", "", " ".join(sys.argv[1:]))
    return {
        "command": f"python -m {module} {given}".strip(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": processor(),
        "versions": versions(*packages),
    }


def write(result: dict[str, Any], output: Path | None, name: str) -> None:
    """Write to the file asked for; to one of this name in the folder asked for, or in `results/`."""
    file = RESULTS / name if output is None else output / name if output.is_dir() else output
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(lines_of(result))
    print(f"\nwrote {file}")


def lines_of(result: dict[str, Any]) -> str:
    """JSON in which each row has a line of its own, so that a changed figure is a changed line."""
    entries = (f"{json.dumps(key)}: {_rows(value)}" for key, value in result.items())
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _rows(value: Any) -> str:
    """What stands for a value: a line for each row, if it is a list or a dictionary of rows."""
    if isinstance(value, list) and any(isinstance(row, dict | list) for row in value):
        return "[\n" + ",\n".join(json.dumps(row) for row in value) + "\n]"
    if isinstance(value, dict) and any(isinstance(row, dict | list) for row in value.values()):
        return "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(row)}" for key, row in value.items()) + "\n}"
    return json.dumps(value)
