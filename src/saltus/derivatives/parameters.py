"""How accelerations change with the inertial parameters of the bodies.

    M a + b = tau + J^T f,  of which the left side is Y(q, v, a) pi

A change of the parameters asks for torques Y d pi; those that are not given are missing, as if tau had changed by as much:

    da / dpi = -(da / dtau) Y,      df / dpi = -(df / dtau) Y
"""

from __future__ import annotations

from typing import NamedTuple

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.constraints.dynamics import ConstrainedDynamics
from saltus.dynamics.aba import aba
from saltus.dynamics.ltl import minverse
from saltus.dynamics.regressor import torque_regressor
from saltus.model.model import Model


def aba_parameter_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    forces: ArrayLike | None = None,
    *,
    on_invalid: OnInvalid = "raise",
) -> Array:
    """How the accelerations of `aba` change with `inertial_parameters(model).ravel()`: (..., nv, 10 (njoints - 1)).

    Arguments as in `aba`. That of `rnea` is `torque_regressor`.

    >>> import numpy as np, saltus as sl
    >>> arm = sl.load_robot("arm")
    >>> q, v, tau = arm.neutral(), np.ones(arm.nv), np.zeros(arm.nv)
    >>> rates, pi = sl.aba_parameter_derivatives(arm, q, v, tau), sl.inertial_parameters(arm)
    >>> heavier = sl.vary_inertia(arm, pi * (1 + 1e-6))
    >>> change = sl.aba(heavier, q, v, tau) - sl.aba(arm, q, v, tau)
    >>> bool(np.allclose(rates @ (1e-6 * pi.ravel()), change, rtol=1e-4))
    True
    """
    a = aba(model, q, v, tau, forces, on_invalid=on_invalid)
    rates: Array = -minverse(model, q, on_invalid=on_invalid) @ torque_regressor(model, q, v, a, on_invalid=on_invalid)
    return rates


class ParameterDerivatives(NamedTuple):
    """Of constrained dynamics, by the inertial parameters of all bodies."""

    da: Array  # (..., nv, 10 (njoints - 1))
    df: Array  # (..., nm, 10 (njoints - 1))


def differentiate(
    dynamics: ConstrainedDynamics, q: ArrayLike, v: ArrayLike, tau: ArrayLike, active: ArrayLike | None,
    target: ArrayLike | None,
) -> ParameterDerivatives:  # fmt: skip
    D = dynamics.derivatives(q, v, tau, active, target)
    Y = torque_regressor(dynamics.model, q, v, D.solution.a)
    return ParameterDerivatives(-D.da_dtau @ Y, -D.df_dtau @ Y)
