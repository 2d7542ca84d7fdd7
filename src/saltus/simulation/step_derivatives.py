"""How a step in time changes with the state it starts from and with the torques: its linearisation.

    (dq', dv') = A (dq, dv) + B dtau          dq along the tangent at q, dq' along that at q'

The chain rule along the steps of steps.py, with the derivatives of accelerations and of the manifold's maps, at all samples
of a batch at once. For a stage of `rk4`, at q (+) x and v,

    d(q (+) x) = Ad(exp x)^-1 dq + J(x) dx        d(dx/dt) = J(x)^-1 dv + d(J(x)^-1 v)/dx dx        d(dv/dt) = da

The one second derivative is that of a polynomial. With X = ad_x, of a turn by the angle sqrt(t), X (X^2 + t)^2 = 0, so that

    J(x)^-1 = 1 + X / 2 + (c - t c') X^2 - c' X^4,      c(t) = (1 - sqrt(t) / 2 cot(sqrt(t) / 2)) / t

on SE(3), and on SE(2) and SO(3) within it.

| paper | code | shape |
|---|---|---|
| q (+) x, v | `here`, `v` | nq, nv |
| d . / d(q, v, tau) | `dx`, `dv`, `dhere` | nv 3nv, one column a direction |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike
from saltus.constraints.dynamics import ConstrainedDynamics
from saltus.derivatives.aba import _aba_derivatives
from saltus.dynamics.aba import aba
from saltus.dynamics.passive import passive_torques
from saltus.kernel import kernel, ld, less, select, sincos, sqrt, st, zero
from saltus.model.joint_kernels import FREE_FLYER, PLANAR, SPHERICAL, add_along, component, joint_motion
from saltus.model.manifold import integrate, on_free_joints
from saltus.model.manifold_jacobians import integrate_jacobians
from saltus.model.model import Model
from saltus.model.tree import algorithm
from saltus.simulation.steps import METHODS, Method
from saltus.spatial.algebra import Motion, Vec3, cross_motion, dot

SERIES = (
    854513.0 / 1.5511210043330986e23, 174611.0 / 8.028576626982912e20, 43867.0 / 5109094217170944000.0,
    3617.0 / 10670622842880000.0, 1.0 / 74724249600.0, 691.0 / 1307674368000.0, 1.0 / 47900160.0, 1.0 / 1209600.0,
    1.0 / 30240.0, 1.0 / 720.0, 1.0 / 12.0,
)  # fmt: skip
"""Of c(t) in powers of t, the highest first."""


@kernel
def cotangent_slopes(t):
    """c(t) = (1 - k) / t, k = sqrt(t) / 2 cot(sqrt(t) / 2), and its first two derivatives; k' = (k - k^2 - t / 4) / 2 t."""
    near = less(t, 1.0)
    small, far = select(near, t, t * 0.0), select(near, t * 0.0 + 1.0, t)
    c, first, second = small * 0.0, small * 0.0, small * 0.0
    for coefficient in SERIES:
        second = second * small + 2.0 * first
        first = first * small + c
        c = c * small + coefficient
    half = 0.5 * sqrt(far)
    sine, cosine = sincos(half)
    k = half * cosine / sine
    dk = (k - k * k - 0.25 * far) / (2.0 * far)
    ddk = (dk - 2.0 * k * dk - 0.25) / (2.0 * far) - dk / far
    far_c = (1.0 - k) / far
    far_first = -(dk + far_c) / far
    far_second = -(ddk + 2.0 * far_first) / far
    return select(near, c, far_c), select(near, first, far_first), select(near, second, far_second)


@algorithm(inputs={"x": "nv", "v": "nv"}, outputs={"rate": "nv", "along_x": "nv nv zeroed", "along_v": "nv nv zeroed"})
def _tangent_rate(tree, x, v, w, rate, along_x, along_v):
    """J(x)^-1 v, the rate of the tangent vector x of a robot that moves at v, and its derivatives."""
    nv, o = tree.nv, zero(x)
    still = Motion(Vec3(o, o, o), Vec3(o, o, o))
    for i in range(1, tree.nj):
        kind = tree.kind[i]
        if kind == FREE_FLYER or kind == SPHERICAL or kind == PLANAR:
            m, u = joint_motion(tree, i, x), joint_motion(tree, i, v)
            t = dot(m.ang, m.ang)
            c, dc, ddc = cotangent_slopes(t)
            two, four = c - t * dc, -dc  # by t they change by -t ddc, -ddc
            u1 = cross_motion(m, u)
            u2 = cross_motion(m, u1)
            u3 = cross_motion(m, u2)
            u4 = cross_motion(m, u3)
            turning = (u2 * t + u4) * (-2.0 * ddc)
            whole = u + u1 * 0.5 + u2 * two + u4 * four
            for k in range(tree.iv[i], tree.end[i]):
                st(rate, k, component(whole, tree.axis[k]))
                e = add_along(still, tree.axis[k], 1.0)
                d1 = cross_motion(e, u)
                d2 = cross_motion(e, u1) + cross_motion(m, d1)
                d3 = cross_motion(e, u2) + cross_motion(m, d2)
                d4 = cross_motion(e, u3) + cross_motion(m, d3)
                e1 = cross_motion(m, e)
                e2 = cross_motion(m, e1)
                e4 = cross_motion(m, cross_motion(m, e2))
                by_x = d1 * 0.5 + d2 * two + d4 * four + turning * dot(m.ang, e.ang)
                by_v = e + e1 * 0.5 + e2 * two + e4 * four
                for l in range(tree.iv[i], tree.end[i]):
                    st(along_x, l * nv + k, component(by_x, tree.axis[l]))
                    st(along_v, l * nv + k, component(by_v, tree.axis[l]))
        else:
            for k in range(tree.iv[i], tree.end[i]):
                st(rate, k, ld(v, k))
                st(along_v, k * nv + k, 1.0)


on_free_joints(_tangent_rate)


class StepDerivatives(NamedTuple):
    """The state after a step, and how it changes."""

    q: Array  # (..., nq)
    v: Array  # (..., nv)
    A: Array  # (..., 2 nv, 2 nv) with the state, (dq, dv) before
    B: Array  # (..., 2 nv, nv) with the torques


Slopes = Callable[[Array, Array, Array, Array], tuple[Array, Array]]
"""(q, v, dq, dv) -> accelerations a (..., nv) and da (..., nv, 3 nv), for dq and dv (..., nv, 3 nv)."""


def differentiated(
    robot: Model | ConstrainedDynamics, tau: Array, active: ArrayLike | None, springs: bool, damping: bool
) -> Slopes:
    """The accelerations of a robot under torques that stay and those of springs and dampers, and their derivatives."""
    model = robot.model if isinstance(robot, ConstrainedDynamics) else robot
    stiffness, resistance = (model.stiffness * springs).astype(tau.dtype), (model.damping * damping).astype(tau.dtype)

    def accelerations(q: Array, v: Array, dq: Array, dv: Array) -> tuple[Array, Array]:
        total = tau - resistance * v
        if stiffness.any():
            total = total + passive_torques(model, q)
        if isinstance(robot, ConstrainedDynamics):
            D = robot.derivatives(q, v, total, active)
            a, along_q, along_v, along_tau = D.solution.a, D.da_dq, D.da_dv, D.da_dtau
        else:
            a = aba(robot, q, v, total)
            along_q, along_v, along_tau = _aba_derivatives.call(robot, (q, v, a))
        along_q, along_v = along_q - along_tau * stiffness, along_v - along_tau * resistance
        da = along_q @ dq + along_v @ dv
        da[..., 2 * v.shape[-1] :] += along_tau
        return a, da

    return accelerations


def step_derivatives(
    robot: Model | ConstrainedDynamics,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    dt: float,
    method: Method = "rk4",
    active: ArrayLike | None = None,
    springs: bool = True,
    damping: bool = False,
) -> StepDerivatives:
    """The state after one step of `rollout`, from `q` (..., nq) and `v` (..., nv), under torques `tau` (..., nv) that stay
    for the time `dt` [s], and its derivatives: a whole horizon at once, with its steps as a leading axis.

    robot: a model, or `ConstrainedDynamics`, whose constraints hold it.
    method: "rk4" or "semi_implicit_euler".
    active: which constraints hold (..., nc), all by default.
    springs, damping: whether springs and dampers of the joints act, as in `rollout`.

    Derivatives with respect to and of configurations are along the tangent of `integrate`.

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> q, v, tau, dx = arm.neutral(), np.ones(3), np.zeros(3), 1e-6 * np.arange(6.0)
    >>> step = sl.step_derivatives(arm, q, v, tau, 1e-3)
    >>> moved = sl.step_derivatives(arm, q + dx[:3], v + dx[3:], tau, 1e-3)
    >>> change = np.concatenate([moved.q - step.q, moved.v - step.v])
    >>> bool(np.allclose(change, step.A @ dx, atol=1e-10))
    True
    """
    if method not in METHODS:
        raise ValueError(f"step_derivatives: method is {method!r}, expected one of {', '.join(map(repr, METHODS))}")
    if active is not None and not isinstance(robot, ConstrainedDynamics):
        raise ValueError("step_derivatives: active is for constraints, expected ConstrainedDynamics, not a model")
    model = robot.model if isinstance(robot, ConstrainedDynamics) else robot
    inputs = [np.asarray(x) for x in (q, v, tau)]
    real = np.result_type(np.float32, *inputs)
    leading = np.broadcast_shapes(*(x.shape[:-1] for x in inputs))
    q, v, tau = (np.broadcast_to(x.astype(real), (*leading, x.shape[-1])) for x in inputs)
    step = rk4 if method == "rk4" else semi_implicit_euler
    q, v, dq, dv = step(model, differentiated(robot, tau, active, springs, damping), q, v, dt)
    whole = np.concatenate([dq, dv], axis=-2)
    return StepDerivatives(q, v, whole[..., : 2 * model.nv], whole[..., 2 * model.nv :])


def directions(v: Array) -> tuple[Array, Array]:
    """dq and dv at the beginning of a step, (nv, 3 nv)."""
    whole = np.eye(2 * v.shape[-1], 3 * v.shape[-1], dtype=v.dtype)
    return whole[: v.shape[-1]], whole[v.shape[-1] :]


def semi_implicit_euler(model: Model, accelerations: Slopes, q: Array, v: Array, h: float) -> tuple[Array, ...]:
    dq, dv = directions(v)
    a, da = accelerations(q, v, dq, dv)
    v, dv = v + h * a, dv + h * da
    along_q, along_v = integrate_jacobians(model, q, h * v)
    return integrate(model, q, h * v), v, along_q @ dq + along_v @ (h * dv), dv


def rk4(model: Model, accelerations: Slopes, q: Array, v: Array, h: float) -> tuple[Array, ...]:
    dq, dv = directions(v)

    def moved(x: Array, dx: Array) -> tuple[Array, Array]:
        """q (+) x, and its derivatives."""
        along_q, along_x = integrate_jacobians(model, q, x)
        return integrate(model, q, x), along_q @ dq + along_x @ dx

    def rates(share: float, before: tuple[Array, ...]) -> tuple[Array, ...]:
        """dx/dt, dv/dt, and the derivatives of both, after a share of the step at the rates of the stage before."""
        x, speed, dx, dspeed = (share * h * rate for rate in before)
        speed, dspeed = v + speed, dv + dspeed
        rate, along_x, along_v = _tangent_rate.call(model, (x, speed))
        here, dhere = moved(x, dx)
        a, da = accelerations(here, speed, dhere, dspeed)
        return rate, a, along_x @ dx + along_v @ dspeed, da

    first = rates(0.0, (v, v, dv, dv))
    second = rates(0.5, first)
    third = rates(0.5, second)
    fourth = rates(1.0, third)
    x, speed, dx, dspeed = (
        h / 6 * (a + 2 * b + 2 * c + d) for a, b, c, d in zip(first, second, third, fourth, strict=True)
    )
    here, dhere = moved(x, dx)
    return here, v + speed, dhere, dv + dspeed
