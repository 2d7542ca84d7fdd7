"""Where memory ends, every way to call raises MemoryError, lets go of what it has made, and works again later."""

from __future__ import annotations

import numpy as np
import pytest

import saltus as sl
from tests.kernel.processes import fresh

ARM = sl.random_model(seed=0, bodies=3, kinds=["revolute"])

SHORT_WAYS = """
import gc, resource, sys
from pathlib import Path
import numpy as np, saltus as sl

sl.set_threads(1)
chain = sl.random_model(seed=0, bodies=200, kinds=["revolute"])
short = sl.random_model(seed=0, bodies=30, kinds=["revolute"])
matrix = 8 * chain.nv**2
q, many, along = chain.neutral(), np.tile(chain.neutral(), (200, 1)), np.ones((500, short.nv))
calls = {
    "one sample": lambda: sl.crba(chain, q),
    "a batch": lambda: sl.crba(chain, many),
    "directions": lambda: sl.jvp(sl.crba, short, (short.neutral(),), (along,)),
}
right = {name: call() for name, call in calls.items()}  # now there are short ways
for call in calls.values():
    call()  # by these: the stack is as deep as they need, which cannot grow once memory is short

def size():
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

def same(answer, expected):
    return answer.__class__ is expected.__class__ and all(map(np.array_equal, answer, expected))

def blocks():
    held = []
    while True:
        try:
            held.append(np.empty(matrix * 3 // 4, np.uint8))
        except MemoryError:
            return held

limit = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (size() + (32 << 20), limit[1]))
for free in (False, True):
    room = np.empty(3 * matrix, np.uint8)
    held = blocks()
    if free:
        del room  # one matrix can be had, and no array of many
    gc.collect()
    for name, call in calls.items():
        if free and name == "one sample":
            continue
        types, before = sys.getrefcount(np.dtype(np.float64)), size()
        for _ in range(100):
            try:
                call()
            except MemoryError:
                pass
            else:
                sys.exit(f"{name}: no MemoryError")
        gc.collect()
        assert size() - before < 65536, (name, size() - before)
        assert abs(sys.getrefcount(np.dtype(np.float64)) - types) < 5, name
    if free:
        assert np.array_equal(sl.crba(chain, q), right["one sample"])
    del held
resource.setrlimit(resource.RLIMIT_AS, limit)
for name, call in calls.items():
    assert same(call(), right[name]), name
print("done")
"""


def test_short_ways() -> None:
    assert fresh(SHORT_WAYS, SALTUS_POISON="") == "done\n"


@pytest.mark.parametrize("count", [200_000_000_000, 2**56])
def test_long_way(count: int) -> None:
    """Results that no machine has, and whose bytes 64 bits cannot count."""
    q = np.broadcast_to(ARM.neutral(), (count, ARM.nq))
    v = np.broadcast_to(np.zeros(ARM.nv), (count, ARM.nv))
    with pytest.raises(MemoryError):
        sl.crba(ARM, q)
    with pytest.raises(MemoryError):
        sl.aba(ARM, q, v, v)
    with pytest.raises((MemoryError, ValueError), match=r"[Uu]nable to allocate|too big"):
        sl.jvp(sl.crba, ARM, (q,), (v,))
