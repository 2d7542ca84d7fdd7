"""What other machines will see: the tests that rounding and lanes could spoil, for narrower processors and other kernels of
OpenBLAS's (which NumPy's truths come from). What the machine at hand cannot run is said, and passed over.

    python -m tools.targets [processes [name ...]]      all, or those of these names: x86-64-v2, Haswell ...
"""

from __future__ import annotations

import os
import subprocess
import sys

from saltus.kernel.target import LEVELS, lacking

TESTS = [
    "tests/kernel/test_scalar.py",
    "tests/dynamics/test_against_oracle.py",
    "tests/constraints/test_against_pinocchio.py",
    "tests/derivatives/test_rnea.py",
    "tests/derivatives/test_aba.py",
]
"""Those that compare numbers with truths, of few kernels: each target has to compile its own."""

RUNS = [
    *(({"SALTUS_TARGET": level}, level) for level in LEVELS),
    ({"OPENBLAS_CORETYPE": "Haswell"}, "x86-64-v3"),
    ({"OPENBLAS_CORETYPE": "SkylakeX"}, "x86-64-v4"),
]
"""What is set, and the level that a machine needs for it."""


def main(processes: str = "2", *names: str) -> int:
    failed = []
    for setting, level in RUNS:
        if names and not set(names) & set(setting.values()):
            continue
        name = " ".join(f"{key}={value}" for key, value in setting.items())
        if missing := lacking(level):
            print(f"{name}: passed over, this machine lacks {', '.join(missing)}", flush=True)
            continue
        print(f"{name}:", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-n", processes, "--dist", "worksteal", "-m", "not slow"]
        if subprocess.run([*command, *TESTS], env={**os.environ, **setting}, check=False).returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
