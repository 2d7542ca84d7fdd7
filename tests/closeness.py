"""How tests compare numbers: by the largest difference, relative to the largest entry of what is right.

No two ways to solve equations agree to more digits than their condition number leaves, and which digits they lose is up to
the processor and the library of linear algebra at hand. So a tolerance is a constant where nothing is solved, and
`with_rounding(constant, condition)` where something is: never a number that one machine happened to meet.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def error(ours: Any, right: Any, scale: float | None = None) -> float:
    """max |ours - right| / scale, by default the largest entry of what is right. NaN where one of them is NaN."""
    ours, right = np.asarray(ours, float), np.asarray(right, float)
    assert ours.shape == right.shape, f"shape {ours.shape}, expected {right.shape}"
    scale = float(np.abs(right).max(initial=0.0)) if scale is None else scale
    difference = float(np.abs(ours - right).max(initial=0.0))
    return difference if difference == 0.0 else difference / scale if scale else np.inf


def with_rounding(tolerance: Any, condition: Any, factor: float = 1.0, real: Any = np.float64) -> Any:
    """The tolerance, or what rounding may do: `factor` times the rounding unit of `real` times the condition number.

    Both may be arrays, of one number a sample. The factor stands for the rounding errors that add up; it is 1 where
    condition numbers overestimate them, as they mostly do, and a few where not.
    """
    largest = np.maximum(tolerance, factor * float(np.finfo(real).eps) * np.asarray(condition, float))
    return largest if largest.ndim else float(largest)


def assert_close(ours: Any, right: Any, tolerance: float, scale: float | None = None, what: str = "") -> None:
    """Arrays, or tuples of them one by one. A NaN is never close to anything."""
    if isinstance(right, tuple):
        assert isinstance(ours, tuple) and len(ours) == len(right), f"{what}: expected {len(right)} results"
        for k, (one, other) in enumerate(zip(ours, right, strict=True)):
            assert_close(one, other, tolerance, scale, f"{what}[{k}]")
        return
    found = error(ours, right, scale)
    assert found <= tolerance, f"{what}: relative error {found:.3g}, at most {tolerance:.3g} allowed"
