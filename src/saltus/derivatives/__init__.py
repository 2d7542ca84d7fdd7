"""Derivatives of the algorithms, in four modes: analytical, algorithmic (`ad`), and finite differences (`fd`, `fdc`)."""

from saltus.derivatives.products import vjp
from saltus.derivatives.rnea import RNEADerivatives, rnea_derivatives

__all__ = ["RNEADerivatives", "rnea_derivatives", "vjp"]
