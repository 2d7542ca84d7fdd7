"""One row of the tables: what is called, and what its exception is and says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tests.kernel.cases import all_kinds

MODEL = all_kinds()
NQ, NV = MODEL.nq, MODEL.nv
Q, V = MODEL.neutral(), np.zeros(NV)


class Case(NamedTuple):
    call: Callable[[], Any]
    message: str
    kind: type[Exception] = ValueError


def changed(array: Any, place: Any, value: Any) -> Any:
    array = np.array(array)
    array[place] = value
    return array
