"""Derivatives of the algorithms, in four modes: analytical, algorithmic (`ad`), and finite differences (`fd`, `fdc`)."""

from saltus.derivatives.aba import ABADerivatives, aba_derivatives
from saltus.derivatives.constrained import ConstrainedDerivatives
from saltus.derivatives.rnea import RNEADerivatives, rnea_derivatives

__all__ = ["ABADerivatives", "ConstrainedDerivatives", "RNEADerivatives", "aba_derivatives", "rnea_derivatives"]
