"""All benchmarks that the machine can run, one process after the other, then the figures: `python -m benchmarks`."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec


def has_gpu() -> bool:
    if find_spec("cupy") is None:
        return False
    import cupy

    return bool(cupy.is_available())


def main() -> None:
    constraints = ("constrained", "precision", "osim", "scaling", "convergence", "operations")
    contacts = ("contact_problems", "contact_steps")
    control = ("qps", "admm_walk", "inverse_kinematics", "control", "control_loop", "ocp")
    derivatives = ("derivatives", "derivative_errors", "derivative_effort", "lifting")
    plots = ("plot", "plot_constraints", "plot_derivatives", "plot_lifting")
    gpu = ("cuda",) if has_gpu() else ()
    for module in ("cpu", "startup", *constraints, *contacts, *control, *derivatives, *gpu, *plots):
        print(f"\npython -m benchmarks.{module}\n", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{module}"], check=True)


if __name__ == "__main__":
    main()
