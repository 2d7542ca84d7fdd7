"""Vector-Jacobian products by name of the function, without its Jacobian (pull_back.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from saltus.arrays import Array, ArrayLike
from saltus.derivatives.pull_back import _aba_vjp, _forces_vjp, _nonlinear_effects_vjp, _rnea_vjp
from saltus.dynamics.aba import aba
from saltus.dynamics.kinematics import joint_velocities
from saltus.dynamics.rnea import nonlinear_effects, rnea

Rule = Callable[[Any, Sequence[ArrayLike], Any], tuple[Any, tuple[Array, ...]]]
"""(model, inputs, weights) -> outputs, and one gradient an input."""


def _rnea(model: Any, inputs: Sequence[ArrayLike], weights: ArrayLike) -> tuple[Array, tuple[Array, ...]]:
    q, v, a, *forces = inputs
    tau, *gradients = _rnea_vjp.call(model, (q, v, a, weights, *forces))
    return tau, (*gradients, *(_forces_vjp.call(model, (q, weights, tau)) for _ in forces))


def _nonlinear_effects(model: Any, inputs: Sequence[ArrayLike], weights: ArrayLike) -> tuple[Array, tuple[Array, ...]]:
    q, v, *forces = inputs
    tau, *gradients = _nonlinear_effects_vjp.call(model, (q, v, weights, *forces))
    return tau, (*gradients, *(_forces_vjp.call(model, (q, weights, tau)) for _ in forces))


def _aba(model: Any, inputs: Sequence[ArrayLike], weights: ArrayLike) -> tuple[Array, tuple[Array, ...]]:
    q, v, tau, *forces = inputs
    a, *gradients = _aba_vjp.call(model, (q, v, tau, weights, *forces))
    return a, (*gradients, *(joint_velocities(model, q, gradients[2]) for _ in forces))


RULES: dict[Callable[..., Any], Rule] = {rnea: _rnea, nonlinear_effects: _nonlinear_effects, aba: _aba}


def vjp(
    function: Callable[..., Any], model: Any, inputs: Sequence[ArrayLike], weights: Any
) -> tuple[Any, tuple[Array, ...]]:
    """The outputs of `function(model, *inputs)`, and the gradients of their sum weighted by `weights`: one array an input,
    each (..., nv) for configurations (along the tangent of `integrate`) as for velocities, torques and the like, and of the
    shape of external forces for these.

    weights: of the shape of the outputs (a tuple if there are several). Leading axes broadcast as in the function itself.

    Two sweeps over the robot, whatever its size, for `rnea`, `nonlinear_effects` and `aba`.

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> q, v, tau, weights = arm.neutral(), np.ones(3), np.zeros(3), np.array([1.0, 0.0, 2.0])
    >>> a, (dq, dv, dtau) = sl.vjp(sl.aba, arm, (q, v, tau), weights)
    >>> bool(np.allclose(dtau, weights @ sl.minverse(arm, q)))
    True
    """
    rule = RULES.get(function)
    if rule is None:
        known = ", ".join(sorted(each.__name__ for each in RULES))
        raise ValueError(f"vjp: the function is {function!r}, expected one of {known}")
    return rule(model, inputs, weights)
