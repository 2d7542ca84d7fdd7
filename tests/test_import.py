"""`import saltus` is light: what is dear to import is imported where it is used."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ("casadi", "lxml", "matplotlib", "mujoco", "rich", "scipy", "trimesh", "typer", "viser")


def test_nothing_heavy_is_imported() -> None:
    code = f"import json, sys, saltus; print(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
