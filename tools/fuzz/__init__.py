"""Random robots, constraints and arrays through every public function, against dense NumPy: `python -m tools.fuzz`.

A case is made from one number, its seed, and checks what must hold of a few calls. Truth is `tests/oracles.py`, which shares
no code with the kernels. Errors are measured in the robot's own units (`robots.Units`), norm by norm, and may be a stated
factor of what rounding does: machine epsilon times the size of what was added up, times a condition number where something
is inverted. Where that bound says nothing any more, only shapes, types and NaN are looked at.
"""

import os

# Matrices here are small: threads of BLAS would only wait for each other. To be said before NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
