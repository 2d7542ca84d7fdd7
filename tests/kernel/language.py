"""What the tests of the kernel language share: a model, integers and numbers, and kernels written to files."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl
from saltus.kernel import (
    ALGORITHMS,
    Algorithm,
)
from saltus.kernel.interpret import interpret
from saltus.kernel.target import packet

MODEL = sl.random_model(seed=0, bodies=6, kinds=["revolute"])
WIDTH = packet(64).width
INTEGERS = [
    np.array(row, np.int32)
    for row in ((3, -2, 0, 5, 7, -7), (0, 0, 0, 0, 0, 0), (-5, 3, 2, 1, -1, 4), (1, 2, 3, 4, 5, 6))
]
NUMBERS = np.random.default_rng(0).normal(size=(2 * WIDTH + 3, 6))


def interpreted(case: Algorithm, n: np.ndarray, v: Any) -> list[Any]:
    (result,) = interpret(case, MODEL, [n.tolist(), v])
    return result.tolist()


MODULE = """
import math
from typing import NamedTuple
import numpy as np
from saltus.kernel import *
from saltus.model.tree import algorithm
from saltus.spatial.algebra import Vec3

declared = algorithm(
    inputs={"n": "6 int", "v": "6"}, outputs={"y": "12"}, work=Layout(nv={"memory": None, "point": Vec3, "count": int})
)
"""


def load(folder: Path, name: str, text: str) -> Algorithm:
    """The algorithm `name` of a module: kernels must be in files."""
    file = folder / f"{name}.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    del ALGORITHMS[-1]
    found: Algorithm = getattr(module, name)
    return found
