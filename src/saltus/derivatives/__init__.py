"""Derivatives of the algorithms, in four modes: analytical, algorithmic (`ad`), and finite differences (`fd`, `fdc`)."""

from saltus.derivatives.aba import ABADerivatives, aba_derivatives
from saltus.derivatives.centroidal import (
    CenterOfMassDerivatives,
    CentroidalMomentumDerivatives,
    center_of_mass_derivatives,
    centroidal_momentum_derivatives,
)
from saltus.derivatives.constrained import ConstrainedDerivatives
from saltus.derivatives.crba import crba_derivatives
from saltus.derivatives.frame import (
    FrameAccelerationDerivatives,
    FrameVelocityDerivatives,
    frame_acceleration_derivatives,
    frame_velocity_derivatives,
)
from saltus.derivatives.rnea import RNEADerivatives, rnea_derivatives

__all__ = [
    "ABADerivatives",
    "CenterOfMassDerivatives",
    "CentroidalMomentumDerivatives",
    "ConstrainedDerivatives",
    "FrameAccelerationDerivatives",
    "FrameVelocityDerivatives",
    "RNEADerivatives",
    "aba_derivatives",
    "center_of_mass_derivatives",
    "centroidal_momentum_derivatives",
    "crba_derivatives",
    "frame_acceleration_derivatives",
    "frame_velocity_derivatives",
    "rnea_derivatives",
]
