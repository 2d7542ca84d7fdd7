"""The number types by name, precision and lanes: what a kernel is compiled for."""

from __future__ import annotations

from typing import NamedTuple


class Number(NamedTuple):
    """A number type: precision, lanes of the value, lanes of the slope (0: not a dual number); or an integer."""

    bits: int
    width: int = 1
    slope: int = 0
    integer: bool = False

    @property
    def words(self) -> int:
        """Machine words that a number takes in memory."""
        return self.width + self.slope

    @property
    def plain(self) -> Number:
        """The type of a constant beside numbers of this type."""
        return Number(self.bits)

    @property
    def unit_tolerance(self) -> float:
        """How far from 1 the squared length of a quaternion may be."""
        return 1e-6 if self.bits == 64 else 1e-3

    @property
    def largest_angle(self) -> float:
        """Up to which `sincos` is exact, in rad: beyond, it is NaN, and a configuration is refused (see scalar.py)."""
        return 1e6 if self.bits == 64 else 1e5

    @property
    def name(self) -> str:
        lanes = f"x{self.width}" if self.width > 1 else ""
        return ("i" if self.integer else "f") + f"{self.bits}{lanes}" + (f"d{self.slope}" if self.slope else "")


F64, F32, INT32, INT64 = Number(64), Number(32), Number(32, integer=True), Number(64, integer=True)
