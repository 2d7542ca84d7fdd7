"""An oracle that computes nothing twice within a case: the same kinematics are asked for by every function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from tests import oracles

REMEMBERED = ("placements", "_jacobians", "_local", "mass_matrix", "difference")


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[Any, tuple[Any, Any]] = {}

    def recall(model: Any, *arguments: Any) -> Any:
        key = (id(model), *(None if x is None else np.asarray(x).tobytes() for x in arguments))
        if key not in known:
            known[key] = model, function(model, *arguments)  # the model too: another one may get its id
        return known[key][1]

    return recall


@contextmanager
def quick_oracle() -> Iterator[None]:
    with patch.multiple(oracles, **{name: remembered(getattr(oracles, name)) for name in REMEMBERED}):
        yield
