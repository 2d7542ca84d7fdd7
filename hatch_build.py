"""What `python -m build` does beside packing files: compile every function for the processors that people have.

SALTUS_WHEEL_LEVELS and SALTUS_WHEEL_FUNCTIONS restrict it to some levels (src/saltus/kernel/target.py), and to algorithms of
some names; an editable install compiles nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LEVELS = "x86-64-v4 x86-64-v3 aarch64 nvptx"

WRITE = """
import os, sys
from pathlib import Path
from saltus.kernel.warmup import print_progress, write_packs
levels, names = (os.environ.get(f"SALTUS_WHEEL_{what}", "").split() for what in ("LEVELS", "FUNCTIONS"))
if __name__ == "__main__":
    write_packs(Path(sys.argv[1]), levels, progress=print_progress, names=names)
"""


class CompiledCode(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        self.folder = tempfile.TemporaryDirectory()
        script, packs = f"{self.folder.name}/write.py", f"{self.folder.name}/compiled"
        with open(script, "w") as stream:
            stream.write(WRITE)
        levels = os.environ.get("SALTUS_WHEEL_LEVELS", LEVELS)
        settings = {"PYTHONPATH": f"{self.root}/src", "SALTUS_WHEEL_LEVELS": levels}
        subprocess.run([sys.executable, script, packs], env=os.environ | settings, check=True)
        build_data["force_include"][packs] = "saltus/compiled"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()
