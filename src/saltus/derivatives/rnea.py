"""Analytical derivatives of inverse dynamics and of nonlinear effects, O(n d) for depth d: sweep.py has the equations."""

from __future__ import annotations

from typing import NamedTuple

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.derivatives.modes import jacobian, register
from saltus.derivatives.sweep import AXES, BODIES, sweep_back, sweep_out
from saltus.dynamics.rnea import nonlinear_effects, rnea
from saltus.kernel import Layout, kernel, ld, st
from saltus.model.model import Model
from saltus.model.tree import algorithm


class RNEADerivatives(NamedTuple):
    """Of the torques of `rnea`, each (..., nv, nv), one column a direction."""

    dtau_dq: Array  # along the tangent of `integrate`
    dtau_dv: Array
    dtau_da: Array  # the inertia matrix


@kernel
def fill_lower(tree, M):
    """The lower triangle from the upper one, where the tree has entries."""
    for k in range(tree.nv):
        j = tree.above[k]
        while j >= 0:
            st(M, k * tree.nv + j, ld(M, j * tree.nv + k))
            j = tree.above[j]


@algorithm(
    inputs={"q": "nq", "v": "nv", "a": "nv", "forces": "nj 6 optional"},
    outputs={"dtau_dq": "nv nv zeroed", "dtau_dv": "nv nv zeroed", "dtau_da": "nv nv zeroed"},
    work=Layout(nj=BODIES, nv=AXES),
)
def _rnea_derivatives(tree, q, v, a, forces, w, dtau_dq, dtau_dv, dtau_da):
    sweep_out(tree, q, v, a, forces, w)
    sweep_back(tree, w, dtau_da, dtau_dq, dtau_dv)
    fill_lower(tree, dtau_da)


@algorithm(
    inputs={"q": "nq", "v": "nv", "forces": "nj 6 optional"},
    outputs={"dtau_dq": "nv nv zeroed", "dtau_dv": "nv nv zeroed"},
    work=Layout(nj=BODIES, nv=AXES, nvv={"M": None}),
)
def _nonlinear_effects_derivatives(tree, q, v, forces, w, dtau_dq, dtau_dv):
    sweep_out(tree, q, v, None, forces, w)
    sweep_back(tree, w, w.M, dtau_dq, dtau_dv)


def rnea_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    forces: ArrayLike | None = None,
    mode: str = "analytical",
    *,
    out: RNEADerivatives | None = None,
    on_invalid: OnInvalid = "raise",
) -> RNEADerivatives:
    """How the torques of `rnea` change with `q` (..., nq), `v` and `a` (..., nv).

    `forces` as in `rnea`; mode: "analytical", "ad", "fd" or "fdc" (see `jacobian`); out: an earlier result, whose memory an
    analytical one takes.

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> q, v, a, h = arm.neutral(), np.ones(3), np.ones(3), 1e-6
    >>> D = sl.rnea_derivatives(arm, q, v, a)
    >>> slope = (sl.rnea(arm, q, v + [h, 0, 0], a) - sl.rnea(arm, q, v - [h, 0, 0], a)) / (2 * h)
    >>> bool(np.allclose(D.dtau_dv[:, 0], slope))
    True
    """
    inputs = (q, v, a) if forces is None else (q, v, a, forces)
    if mode != "analytical":
        return RNEADerivatives(*jacobian(rnea, model, inputs, mode, on_invalid=on_invalid)[:3])
    return RNEADerivatives(*_rnea_derivatives.call(model, inputs, out and tuple(out), on_invalid))


def nonlinear_effects_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    forces: ArrayLike | None = None,
    mode: str = "analytical",
    *,
    on_invalid: OnInvalid = "raise",
) -> tuple[Array, Array]:
    """How the torques of `nonlinear_effects` change with `q` (..., nq) and `v` (..., nv): (dtau_dq, dtau_dv),
    each (..., nv, nv).

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> dtau_dq, dtau_dv = sl.nonlinear_effects_derivatives(arm, arm.neutral(), np.zeros(3))
    >>> dtau_dv.any()
    np.False_
    """
    inputs = (q, v) if forces is None else (q, v, forces)
    if mode != "analytical":
        return jacobian(nonlinear_effects, model, inputs, mode, on_invalid=on_invalid)[:2]
    dtau_dq, dtau_dv = _nonlinear_effects_derivatives.call(model, inputs, None, on_invalid)
    return dtau_dq, dtau_dv


register(rnea, rnea_derivatives)
register(nonlinear_effects, nonlinear_effects_derivatives)
