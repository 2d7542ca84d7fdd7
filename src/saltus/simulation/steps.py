"""One step in time along the manifold of configurations.

    dq/dt = v,      dv/dt = a(t, q, v)

| method | order | what |
|---|---|---|
| `rk4` | 4 | Runge-Kutta-Munthe-Kaas |
| `semi_implicit_euler` | 1 | v first, then q by the new v: cheap, and energy does not drift away at small steps |

Within a step of `rk4` the configuration is q0 (+) x, and the tangent vector x, an ordinary vector, follows

    dx/dt = J(x)^-1 v,      dv/dt = a(t, q0 (+) x, v),

J the right Jacobian of the exponential map; without it the order would be two.

Reference: H. Munthe-Kaas, High order Runge-Kutta methods on manifolds, Applied Numerical Mathematics 29 (1999).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from saltus.arrays import Array, OnInvalid
from saltus.model.manifold import integrate
from saltus.model.manifold_jacobians import difference_jacobians
from saltus.model.model import Model

Acceleration = Callable[[float, Array, Array], Array]
"""a(t, q, v) (..., nv)"""

Step = Callable[[Model, Acceleration, float, Array, Array, Array, float, OnInvalid], tuple[Array, Array]]
"""(model, acceleration, t, q, v, a, h, on_invalid) -> q and v after the time h; a is the acceleration at t."""


def semi_implicit_euler(
    model: Model, acceleration: Acceleration, t: float, q: Array, v: Array, a: Array, h: float, on_invalid: OnInvalid
) -> tuple[Array, Array]:
    v = v + h * a
    return integrate(model, q, h * v, on_invalid=on_invalid), v


def rk4(
    model: Model, acceleration: Acceleration, t: float, q: Array, v: Array, a: Array, h: float, on_invalid: OnInvalid
) -> tuple[Array, Array]:
    def moved(x: Array) -> Array:
        return integrate(model, q, x, on_invalid=on_invalid)

    def rates(t: float, x: Array, v: Array) -> tuple[Array, Array]:
        """dx/dt and dv/dt at q (+) x."""
        here = moved(x)
        _, inverse_jacobian = difference_jacobians(model, q, here, on_invalid=on_invalid)
        return (inverse_jacobian @ v[..., None])[..., 0], acceleration(t, here, v)

    x1, v1 = v, a  # J(0) is the identity
    x2, v2 = rates(t + h / 2, h / 2 * x1, v + h / 2 * v1)
    x3, v3 = rates(t + h / 2, h / 2 * x2, v + h / 2 * v2)
    x4, v4 = rates(t + h, h * x3, v + h * v3)
    return moved(h / 6 * (x1 + 2 * x2 + 2 * x3 + x4)), v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)


Method = Literal["rk4", "semi_implicit_euler"]
METHODS: dict[str, Step] = {"rk4": rk4, "semi_implicit_euler": semi_implicit_euler}
