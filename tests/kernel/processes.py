"""What could hang or crash runs in a process of its own, with a time limit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT = 240
"""Seconds after which a process is taken for one that hangs, on a busy machine."""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A new interpreter that runs this code."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **environment},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def fresh(code: str, **environment: str) -> str:
    """What a new interpreter prints that runs this code."""
    done = run(code, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout
