"""The operational-space inertia matrix and the Delassus matrix by any method: as matrices, as factors, as products."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.constraints.nodes import Plan
from saltus.constraints.osim import AT_ONCE, BY_FACTORS, _osim
from saltus.constraints.osim_base import _osim_base, _osim_base_times
from saltus.constraints.osim_ltl import _osim_ltl
from saltus.constraints.tables import ConstrainedModel
from saltus.kernel import Algorithm


class Method(NamedTuple):
    """An algorithm, and what it is asked for each of the two matrices; None: it does not give that one."""

    algorithm: Algorithm
    delassus: Plan | None
    osim: Plan


OSIM_METHODS = {
    "ltl": Method(_osim_ltl, Plan(), Plan(answer=BY_FACTORS)),
    "pv": Method(_osim, Plan(), Plan(answer=BY_FACTORS)),
    "efpa": Method(_osim, Plan(every_body=True), Plan(every_body=True, answer=BY_FACTORS)),
    "pv_r": Method(_osim, Plan(branches=True), Plan(branches=True, answer=BY_FACTORS)),
    "pv_f": Method(_osim_base, None, Plan(branches=True, base=True, answer=BY_FACTORS)),
    "caba": Method(_osim, None, Plan(branches=True, augmented=True, answer=AT_ONCE)),
    "caba_f": Method(_osim_base, None, Plan(branches=True, base=True, augmented=True, answer=AT_ONCE)),
}
"""By the names of the literature; `ltl` is the one that takes loops."""

RESPONSES = {"delassus": Plan(), "osim": Plan(augmented=True)}


@dataclass(frozen=True, eq=False)
class FactoredOSIM:
    """osim = B - Z C Z^T, B (..., nm, nm) block-diagonal, Z (..., nm, 6), C (..., 6, 6): products cost the blocks."""

    problem: ConstrainedModel
    B: Array
    Z: Array
    C: Array

    def times(self, x: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Array:
        """osim x, for x (..., nm)"""
        return _osim_base_times.call(self.problem, (self.B, self.Z, self.C, x), None, on_invalid)

    @cached_property
    def matrix(self) -> Array:
        """(..., nm, nm)"""
        return np.asarray(self.B - self.Z @ self.C @ np.swapaxes(self.Z, -1, -2))
