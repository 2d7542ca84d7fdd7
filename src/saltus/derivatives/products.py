"""Vector-Jacobian products of the package's functions, without their Jacobians where there is a rule (pull_back.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saltus.arrays import Array, ArrayLike, on_gpu, real_numbers
from saltus.constraints.dynamics import ConstrainedDynamics, Solution
from saltus.constraints.impact import Impact
from saltus.constraints.report import void
from saltus.derivatives.constrained_vjp import _constrained_vjp, _impact_vjp
from saltus.derivatives.integrate_vjp import _integrate_vjp
from saltus.derivatives.modes import REGISTERED, jacobian
from saltus.derivatives.problem import arrays_of, problem
from saltus.derivatives.pull_back import _aba_vjp, _forces_vjp, _nonlinear_effects_vjp, _rnea_vjp
from saltus.dynamics.aba import aba
from saltus.dynamics.kinematics import joint_velocities
from saltus.dynamics.rnea import nonlinear_effects, rnea
from saltus.model.manifold import integrate

Rule = Callable[[Any, Sequence[ArrayLike], Any], tuple[Any, tuple[Array | None, ...]]]
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


def _solve(dynamics: Any, inputs: Sequence[Any], weights: Any) -> tuple[Solution, tuple[Array | None, ...]]:
    rest: list[Any] = [None] * (8 - len(inputs))
    q, v, tau, active, target, _, external, rows = [*inputs, *rest]
    solution = dynamics.solve(*inputs)
    everything, _, _, none = dynamics._defaults(q, v, tau)
    held = (everything if active is None else active, none if rows is None else rows)
    given = (q, v, solution.a, solution.forces, *held, *_both(dynamics, weights))
    answers = _constrained_vjp.call(dynamics.problem, given if external is None else (*given, external))
    void(solution.report, answers)
    dq, dv, dtau, dtarget = answers
    dexternal = None if external is None else joint_velocities(dynamics.model, q, dtau)
    whole = (dq, dv, dtau, None, None if target is None else dtarget, None, dexternal, None)
    return solution, whole[: len(inputs)]


def _impact(dynamics: Any, inputs: Sequence[Any], weights: Any) -> tuple[Impact, tuple[Array | None, ...]]:
    rest: list[Any] = [None, 0.0, None][len(inputs) - 2 :]
    q, v, active, restitution, rows = [*inputs, *rest]
    impact = dynamics.impact(*inputs)
    held = dynamics._impact_inputs(q, v, active, restitution, rows)
    given = (q, v, impact.v, impact.impulses, *held, *_both(dynamics, weights))
    dq, dv = _impact_vjp.call(dynamics.problem, given)
    void(impact.report, (dq, dv))
    return impact, (dq, dv, None, None, None)[: len(inputs)]


def _both(dynamics: Any, weights: Any) -> tuple[ArrayLike, ArrayLike]:
    """The weights of motions and of forces; None stands for zero."""
    try:
        of_motions, of_forces = weights
    except (TypeError, ValueError):
        raise ValueError(
            "vjp: expected two weights, of motions (..., nv) and of forces (..., nm); one may be None"
        ) from None
    return (
        np.zeros(dynamics.model.nv) if of_motions is None else of_motions,
        np.zeros(dynamics.problem.nm) if of_forces is None else of_forces,
    )


def _integrate(model: Any, inputs: Sequence[ArrayLike], weights: ArrayLike) -> tuple[Array, tuple[Array, ...]]:
    wide = weights[..., None] if on_gpu(weights) else real_numbers(weights, "integrate: weights")[..., None]
    result, dq, dv = _integrate_vjp.call(model, (*inputs, wide))
    return result, (dq, dv)


RULES: dict[Callable[..., Any], Rule] = {
    rnea: _rnea,
    nonlinear_effects: _nonlinear_effects,
    aba: _aba,
    integrate: _integrate,
    ConstrainedDynamics.solve: _solve,
    ConstrainedDynamics.impact: _impact,
}


def _contracted(
    function: Callable[..., Any], model: Any, inputs: Sequence[ArrayLike], weights: Any
) -> tuple[Any, tuple[Array | None, ...]]:
    """For functions without a rule of their own: by the Jacobian, analytical where there is one for all inputs."""
    task = problem(function, model, inputs)
    outputs, entries = function(model, *inputs), tuple[Any, ...]()
    if function in REGISTERED:
        entries = jacobian(function, model, inputs, "analytical")
    if not entries or any(entries[k] is None for k in task.arrays):
        entries = jacobian(function, model, inputs, "ad")
    arrays = arrays_of(outputs, task.name)
    given = weights if isinstance(weights, tuple) else (weights,)
    if len(given) != len(arrays):
        raise ValueError(f"{task.name}: {len(given)} weights for {len(arrays)} outputs, expected one for each")
    gradients: list[Array | None] = []
    for k, entry in enumerate(entries):
        if entry is None:
            gradients.append(None)
            continue
        total: Any = 0.0
        for output, weight, J in zip(arrays, given, entry if isinstance(entry, tuple) else (entry,), strict=True):
            own = output.shape[len(task.leading) :]
            weight = real_numbers(weight, f"{task.name}: weights")
            rows = weight.reshape(*weight.shape[: weight.ndim - len(own)], 1, -1)
            total = total + rows @ J.reshape(*task.leading, rows.shape[-1], -1)
        gradients.append(total.reshape(*total.shape[:-2], *task.arrays[k].tangent))
    return outputs, tuple(gradients)


def vjp(
    function: Callable[..., Any], model: Any, inputs: Sequence[ArrayLike], weights: Any
) -> tuple[Any, tuple[Array | None, ...]]:
    """The outputs of `function(model, *inputs)`, and the gradients of their sum weighted by `weights`: one array an input,
    (..., nv) for configurations, along the tangent of `integrate`, and of the input's shape for others; None for those that
    do not change, like frames.

    weights: of the shape of the output, or a tuple if there are several. Leading axes broadcast as in the function itself.

    `rnea`, `nonlinear_effects`, `aba` and `integrate` take a sweep or two over the robot, `ConstrainedDynamics.solve` and
    `.impact` one solution more (the object stands for the model, and weights are of motions and of forces): no Jacobian is
    formed. Of other functions it is, analytically if they have such a derivative, else by the mode "ad".

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> q, v, tau, weights = arm.neutral(), np.ones(3), np.zeros(3), np.array([1.0, 0.0, 2.0])
    >>> a, (dq, dv, dtau) = sl.vjp(sl.aba, arm, (q, v, tau), weights)
    >>> bool(np.allclose(dtau, weights @ sl.minverse(arm, q)))
    True
    """
    rule = RULES.get(function)
    return _contracted(function, model, inputs, weights) if rule is None else rule(model, inputs, weights)
