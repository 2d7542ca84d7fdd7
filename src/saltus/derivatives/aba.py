"""Analytical derivatives of forward dynamics, through those of inverse dynamics and the inverse inertia matrix.

    da/dq = -M^-1 dtau/dq,      da/dv = -M^-1 dtau/dv,      da/dtau = M^-1           (tau = rnea(q, v, a), a held)

Derivatives of inverse dynamics O(n d), the inverse O(n^2 d), the products O(n^3).

Reference: J. Carpentier, N. Mansard, Analytical derivatives of rigid body dynamics algorithms (2018), section V.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.derivatives.modes import jacobian, register
from saltus.derivatives.rnea import rnea_derivatives
from saltus.derivatives.sweep import AXES, BODIES, sweep_back, sweep_out
from saltus.dynamics.aba import aba
from saltus.dynamics.ltl import factor, invert
from saltus.dynamics.panel import clear, multiply
from saltus.kernel import Layout, Quad
from saltus.model.model import Model
from saltus.model.tree import algorithm


class ABADerivatives(NamedTuple):
    """Of the accelerations of `aba`, each (..., nv, nv), one column a direction."""

    da_dq: Array  # along the tangent of `integrate`
    da_dv: Array
    da_dtau: Array  # the inverse of the inertia matrix


@algorithm(
    inputs={"q": "nq", "v": "nv", "a": "nv", "forces": "nj 6 optional"},
    outputs={"da_dq": "nv nv", "da_dv": "nv nv", "da_dtau": "nv nv"},
    work=Layout(nj=BODIES, nv={**AXES, "pivot": None, "panel": Quad}, nvv={"M": None}),
    inverts_inertia=True,
)
def _aba_derivatives(tree, q, v, a, forces, w, da_dq, da_dv, da_dtau):
    nv = tree.nv
    clear(da_dq, nv * nv)
    clear(da_dv, nv * nv)
    sweep_out(tree, q, v, a, forces, w)
    sweep_back(tree, w, w.M, da_dq, da_dv)
    factor(tree.above, nv, w.M, w.pivot)
    invert(tree.above, nv, w.M, w.pivot, w.panel, da_dtau)
    multiply(-1.0, da_dtau, nv, nv, da_dq, nv, w.panel, da_dq)
    multiply(-1.0, da_dtau, nv, nv, da_dv, nv, w.panel, da_dv)


def _solve_coupled(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, forces: ArrayLike | None = None
) -> tuple[Array, Array, Array]:
    """With mimic joints the inertia matrix is not that of a tree."""
    dq, dv, M = rnea_derivatives(model, q, v, a, forces)
    inverse = np.linalg.inv(M)
    return -inverse @ dq, -inverse @ dv, inverse  # type: ignore[return-value]


_aba_derivatives.when_coupled = _solve_coupled


def aba_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    forces: ArrayLike | None = None,
    mode: str = "analytical",
    *,
    out: ABADerivatives | None = None,
    on_invalid: OnInvalid = "raise",
) -> ABADerivatives:
    """How the accelerations of `aba` change with `q` (..., nq), `v` and `tau` (..., nv).

    `forces` as in `aba`; mode: "analytical", "ad", "fd" or "fdc" (see `jacobian`); out: an earlier result, whose memory an
    analytical one takes.

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> q, v, tau, h = arm.neutral(), np.ones(3), np.ones(3), 1e-6
    >>> D = sl.aba_derivatives(arm, q, v, tau)
    >>> slope = (sl.aba(arm, q, v + [h, 0, 0], tau) - sl.aba(arm, q, v - [h, 0, 0], tau)) / (2 * h)
    >>> bool(np.allclose(D.da_dv[:, 0], slope))
    True
    """
    if mode != "analytical":
        given = (q, v, tau) if forces is None else (q, v, tau, forces)
        return ABADerivatives(*jacobian(aba, model, given, mode, on_invalid=on_invalid)[:3])
    a = aba(model, q, v, tau, forces, on_invalid=on_invalid)
    inputs = (q, v, a) if forces is None else (q, v, a, forces)
    return ABADerivatives(*_aba_derivatives.call(model, inputs, out and tuple(out), on_invalid))


register(aba, aba_derivatives)
