"""Thousands of calls leave nothing behind, whatever the sizes of their batches."""

from __future__ import annotations

import gc
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saltus as sl

MODEL = sl.random_model(seed=8, bodies=9)
ONE = (MODEL.neutral(), np.ones(MODEL.nv), np.ones(MODEL.nv))


def refused() -> None:
    with pytest.raises(ValueError):
        sl.rnea(MODEL, ONE[0], ONE[1] * np.nan, ONE[2])


def batch(k: int) -> Any:
    return sl.random_configuration(MODEL, 0, 1 + k % 97), np.ones((1 + k % 97, MODEL.nv)), ONE[2]


CALLS: dict[str, Callable[[int], Any]] = {
    "one sample": lambda k: sl.aba(MODEL, *ONE),
    "one sample with out": lambda k: sl.rnea(MODEL, *ONE, out=np.empty(MODEL.nv)),
    "lists": lambda k: sl.rnea(MODEL, *(x.tolist() for x in ONE)),
    "several results": lambda k: sl.frame_jacobian_dot(MODEL, ONE[0], ONE[1], 1 + k % 5),
    "batches": lambda k: sl.aba(MODEL, *batch(k)),
    "batches of single numbers": lambda k: sl.rnea(MODEL, *(np.float32(x) for x in batch(k))),
    "batches in threads": lambda k: sl.rnea(MODEL, np.broadcast_to(ONE[0], (1000 + k % 7, MODEL.nq)), *ONE[1:]),
    "two axes": lambda k: sl.rnea(MODEL, *(x[:, None] for x in batch(k)[:2]), ONE[2]),
    "refused": lambda k: refused(),
    "models": lambda k: sl.gravity(MODEL.replace(gravity=(0, 0, -k)), ONE[0]) if k % 20 == 0 else None,
}


def resident() -> int:
    """Bytes of memory that the process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_nothing_grows(name: str) -> None:
    call, before = CALLS[name], sl.get_threads()
    sl.set_threads(2)
    try:
        for k in range(300):
            call(k)
        gc.collect()
        start = resident()
        for k in range(2000):
            call(k)
        gc.collect()
        assert resident() - start < 3_000_000
        tracemalloc.start()
        kept = []
        for _ in range(4):  # in one of them the interpreter may enlarge a table of its own
            for k in range(97):
                call(k)
            gc.collect()
            kept.append(tracemalloc.get_traced_memory()[0])
        assert np.diff(kept).min() < 2_000, kept
    finally:
        tracemalloc.stop()
        sl.set_threads(before)


def test_plans_do_not_pile_up() -> None:
    """A batch of another size each time, for ever."""
    model = sl.random_model(seed=9, bodies=2, kinds=["revolute"])
    from saltus.dynamics.rnea import _gravity
    from saltus.kernel.launch import MANY_PLANS

    for size in range(1, 2 * MANY_PLANS):
        sl.gravity(model, np.zeros((size, 1, 2)))
    assert len(_gravity.filled(model).plans) <= MANY_PLANS + 1
