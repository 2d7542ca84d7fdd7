"""Analytical derivatives of the centre of mass and of the centroidal momentum, each with its velocity or rate.

    h = sum_j I_j v_j,      dh/dt = sum_j (I_j a_j + v_j x* I_j v_j)

First about a fixed point, where sweep.py's sums over all that body i carries say how both change with a degree of freedom k
of it; then about the centre of mass, which moves along. O(n).

    dh/dq_k = S_k x* h_i + I_i psi'_k                                   dh/dv_k = I_i S_k
    d(dh/dt)/dq_k = S_k x* F_i + I_i psi''_k + B_i psi'_k               d(dh/dt)/dv_k = I_i y'_k + B_i S_k

The sums take gravity as an acceleration of the world. That adds a constant to dh/dt, which acts at the centre of mass: no
derivative knows of it. The linear parts, over the mass, are those of the centre of mass, since m c' = h_lin.

| paper | code | what | frame |
|---|---|---|---|
| S_k, psi'_k, psi''_k, y'_k | `axis`, `psi_dot`, `psi_ddot`, `upsilon_dot` | see sweep.py | world axes, origin of body 1 |
| I_i, h_i, B_i, F_i | `composite`, `momentum`, `rate`, `force` | of body i and all that it carries | same |

References: those of sweep.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.derivatives.modes import jacobian, register
from saltus.derivatives.rate import coriolis
from saltus.derivatives.sweep import AXES, BODIES, sweep_out
from saltus.dynamics.centroidal import (
    _centroidal_momentum,
    center_of_mass,
    center_or_origin,
    centroidal_momentum,
    centroidal_momentum_rate,
)
from saltus.dynamics.frame import store_column
from saltus.kernel import Layout, kernel, st
from saltus.model.model import Model
from saltus.model.tree import algorithm
from saltus.spatial.algebra import Force, cross, cross_force


class CenterOfMassDerivatives(NamedTuple):
    """Of position, velocity and acceleration of the centre of mass, each (..., 3, nv), one column a direction.

    `dposition_dq`, `dvelocity_dv` and `dacceleration_da` are equal: the Jacobian.
    """

    dposition_dq: Array  # along the tangent of `integrate`, as all with respect to q
    dvelocity_dq: Array
    dvelocity_dv: Array
    dacceleration_dq: Array
    dacceleration_dv: Array
    dacceleration_da: Array


class CentroidalMomentumDerivatives(NamedTuple):
    """Of the momentum h about the centre of mass, and of its rate, each (..., 6, nv), one column a direction.

    `dh_dv` and `drate_da` are equal: the centroidal momentum matrix.
    """

    dh_dq: Array  # along the tangent of `integrate`, as all with respect to q
    dh_dv: Array
    drate_dq: Array
    drate_dv: Array
    drate_da: Array


@kernel
def gather(tree, q, v, a, w):
    """To the leaves and back: inertia, momentum, its rate, and force of what each body carries, and of all at body 0."""
    sweep_out(tree, q, v, a, None, w)
    for i in range(tree.nj - 1, 0, -1):
        parent = tree.parent[i]
        w.composite[parent] = w.composite[parent] + w.composite[i]
        w.momentum[parent] = w.momentum[parent] + w.momentum[i]
        w.rate[parent] = w.rate[parent] + w.rate[i]
        w.force[parent] = w.force[parent] + w.force[i]


@kernel
def slopes(tree, k, w):
    """About the fixed point, dh/dq_k, dh/dv_k, and of the rate / dq_k, / dv_k."""
    i, axis = tree.body[k], w.axis[k]
    composite, momentum, rate = w.composite[i], w.momentum[i], w.rate[i]
    return (
        cross_force(axis, momentum) + composite @ w.psi_dot[k],
        composite @ axis,
        cross_force(axis, w.force[i]) + composite @ w.psi_ddot[k] + coriolis(momentum, rate, w.psi_dot[k].ang),
        composite @ w.upsilon_dot[k] + coriolis(momentum, rate, axis.ang),
    )


@kernel
def about(center, f):
    """A force about the origin, moved to this point."""
    return Force(f.lin, f.ang - cross(center, f.lin))


@kernel
def about_moving(center, f, shift, total):
    """The slope f of a force `total`, as the point that it is moved to shifts."""
    return Force(f.lin, f.ang - cross(center, f.lin) - cross(shift, total.lin))


@algorithm(
    inputs={"q": "nq", "v": "nv", "a": "nv"},
    outputs={"dh_dq": "6 nv", "dh_dv": "6 nv", "drate_dq": "6 nv", "drate_dv": "6 nv", "drate_da": "6 nv"},
    work=Layout(nj=BODIES, nv=AXES),
)
def _centroidal_momentum_derivatives(tree, q, v, a, w, dh_dq, dh_dv, drate_dq, drate_dv, drate_da):
    gather(tree, q, v, a, w)
    mass, nv = w.composite[0].m, tree.nv
    center = center_or_origin(w.composite[0].h, mass)
    for k in range(nv):
        along_q, along_v, rate_q, rate_v = slopes(tree, k, w)
        shift = center_or_origin(along_v.lin, mass)
        store_column(dh_dq, nv, k, about_moving(center, along_q, shift, w.momentum[0]))
        store_column(dh_dv, nv, k, about(center, along_v))
        store_column(drate_dq, nv, k, about_moving(center, rate_q, shift, w.force[0]))
        store_column(drate_dv, nv, k, about(center, rate_v))
        store_column(drate_da, nv, k, about(center, along_v))


@kernel
def store_column3(J, nv, k, x):
    st(J, k, x.x)
    st(J, nv + k, x.y)
    st(J, 2 * nv + k, x.z)


@algorithm(
    inputs={"q": "nq", "v": "nv", "a": "nv"},
    outputs={
        "dposition_dq": "3 nv", "dvelocity_dq": "3 nv", "dvelocity_dv": "3 nv",
        "dacceleration_dq": "3 nv", "dacceleration_dv": "3 nv", "dacceleration_da": "3 nv",
    },
    work=Layout(nj=BODIES, nv=AXES),
)  # fmt: skip
def _center_of_mass_derivatives(
    tree, q, v, a, w, dposition_dq, dvelocity_dq, dvelocity_dv, dacceleration_dq, dacceleration_dv, dacceleration_da
):
    gather(tree, q, v, a, w)
    nv, per_mass = tree.nv, 1.0 / w.composite[0].m
    for k in range(nv):
        along_q, along_v, rate_q, rate_v = slopes(tree, k, w)
        store_column3(dposition_dq, nv, k, along_v.lin * per_mass)
        store_column3(dvelocity_dq, nv, k, along_q.lin * per_mass)
        store_column3(dvelocity_dv, nv, k, along_v.lin * per_mass)
        store_column3(dacceleration_dq, nv, k, rate_q.lin * per_mass)
        store_column3(dacceleration_dv, nv, k, rate_v.lin * per_mass)
        store_column3(dacceleration_da, nv, k, along_v.lin * per_mass)


def center_of_mass_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, mode: str = "analytical", *, on_invalid: OnInvalid = "raise"
) -> CenterOfMassDerivatives:
    """How position, velocity and acceleration of the centre of mass change with `q` (..., nq), `v` and `a` (..., nv).

    mode: "analytical", "ad", "fd" or "fdc" (see `jacobian`).

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> q, v, a, dq, h = arm.neutral(), np.ones(3), np.zeros(3), np.array([0.3, -0.2, 0.5]), 1e-6
    >>> D = sl.center_of_mass_derivatives(arm, q, v, a)
    >>> ahead, behind = (sl.center_of_mass(arm, q + e * dq, v, a)[2] for e in (h, -h))
    >>> bool(np.allclose(D.dacceleration_dq @ dq, (ahead - behind) / (2 * h)))
    True
    """
    if mode != "analytical":
        along_q, along_v, along_a = jacobian(center_of_mass, model, (q, v, a), mode, on_invalid=on_invalid)
        return CenterOfMassDerivatives(along_q[0], along_q[1], along_v[1], along_q[2], along_v[2], along_a[2])
    return CenterOfMassDerivatives(*_center_of_mass_derivatives.call(model, (q, v, a), None, on_invalid))


def _momentum_and_rate(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> tuple[Array, Array]:
    """Both with the leading axes of all inputs."""
    _, momentum, rate = _centroidal_momentum.call(model, (q, v, a))
    return momentum, rate


def centroidal_momentum_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, mode: str = "analytical", *, on_invalid: OnInvalid = "raise"
) -> CentroidalMomentumDerivatives:
    """How `centroidal_momentum` and `centroidal_momentum_rate` change with `q` (..., nq), `v` and `a` (..., nv).

    mode: "analytical", "ad", "fd" or "fdc" (see `jacobian`).

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> q, v, a, dq, h = arm.neutral(), np.ones(3), np.zeros(3), np.array([0.3, -0.2, 0.5]), 1e-6
    >>> D = sl.centroidal_momentum_derivatives(arm, q, v, a)
    >>> ahead, behind = (sl.centroidal_momentum_rate(arm, q + e * dq, v, a) for e in (h, -h))
    >>> bool(np.allclose(D.drate_dq @ dq, (ahead - behind) / (2 * h)))
    True
    """
    if mode != "analytical":
        along_q, along_v, along_a = jacobian(_momentum_and_rate, model, (q, v, a), mode, on_invalid=on_invalid)
        return CentroidalMomentumDerivatives(along_q[0], along_v[0], along_q[1], along_v[1], along_a[1])
    return CentroidalMomentumDerivatives(*_centroidal_momentum_derivatives.call(model, (q, v, a), None, on_invalid))


register(centroidal_momentum, lambda model, q, v: centroidal_momentum_derivatives(model, q, v, np.zeros(model.nv))[:2])
register(centroidal_momentum_rate, lambda model, q, v, a: centroidal_momentum_derivatives(model, q, v, a)[2:])
