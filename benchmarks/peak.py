"""The arithmetic peak of one core, measured: multiply-adds that depend on nothing but themselves, on packets.

Ten chains keep two units busy at a latency of four or five cycles. No algorithm can beat it: on most processors,
2 units x lanes x 2 operations x clock.
"""

from __future__ import annotations

import numpy as np

import saltus as sl
from benchmarks.measure import Timed, best_times
from saltus.kernel import ld, st
from saltus.kernel.target import packet
from saltus.model.tree import algorithm

STEPS, CHAINS = 10_000, 10


@algorithm(inputs={"x": "2"}, outputs={"y": "1"})
def _multiply_add(tree, x, w, y):
    a, b = ld(x, 0), ld(x, 1)
    s0, s1, s2, s3, s4 = a, a + 0.1, a + 0.2, a + 0.3, a + 0.4
    s5, s6, s7, s8, s9 = b, b + 0.1, b + 0.2, b + 0.3, b + 0.4
    for _ in range(STEPS):
        s0, s1, s2, s3, s4 = s0 * a + b, s1 * a + b, s2 * a + b, s3 * a + b, s4 * a + b
        s5, s6, s7, s8, s9 = s5 * a + b, s6 * a + b, s7 * a + b, s8 * a + b, s9 * a + b
    st(y, 0, (s0 + s1 + s2 + s3 + s4) + (s5 + s6 + s7 + s8 + s9))


def peak_flops(repeats: int = 20) -> float:
    """Operations a second that one core does in double precision."""
    model = sl.random_model(seed=0, bodies=1)
    x = np.tile([0.5, 1.0], (16 * packet(64).width, 1))
    threads = sl.get_threads()
    sl.set_threads(1)
    seconds = best_times({"peak": Timed(lambda: _multiply_add.call(model, (x,)))}, repeats, 5e-3)["peak"]
    sl.set_threads(threads)
    return len(x) * STEPS * CHAINS * 2 / seconds
