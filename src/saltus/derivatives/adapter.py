"""What the adapters to frameworks of automatic differentiation share: functions, and gradients in coordinates.

Frameworks see a configuration as nq ordinary numbers, and want a gradient with as many. A gradient g (nv) along the tangent
fixes it but for the directions that leave the manifold, where a quaternion would change its length and the function is not
defined. There it is zero, which makes it the shortest one, and that of the function of normalised coordinates:

    dq/dt = E(q) v      ->      gradient = E (E^T E)^-1 g,      E^T E = 1, but 1/4 for the turns of quaternions
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saltus.derivatives.forward import coordinate_rates
from saltus.derivatives.problem import AXES, CONFIGURATIONS, arrays_of, parameters
from saltus.derivatives.products import vjp
from saltus.model.joints import JointKind
from saltus.model.model import Model

TURNS = {JointKind.FREE_FLYER: slice(3, 6), JointKind.SPHERICAL: slice(0, 3)}
"""Degrees of freedom, counted from the joint's first, that turn a quaternion."""


def leading_axes(function: Callable[..., Any], place: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Of the input at this place, if that is its shape."""
    return tuple(shape[: len(shape) - AXES.get(parameters(function)[place], 1)])


def outputs_of(function: Callable[..., Any], model: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The arrays that a function returns and that have derivatives."""
    return arrays_of(function(model, *inputs), function.__name__)


def gradients_of(
    function: Callable[..., Any], model: Any, inputs: Sequence[Any], weights: Sequence[Any]
) -> list[Any | None]:
    """The gradients of the outputs, weighted, by all inputs, of their shapes; None for those that have none."""
    _, gradients = vjp(function, model, inputs, weights[0] if len(weights) == 1 else tuple(weights))
    tree = model if isinstance(model, Model) else model.model
    names = parameters(function)
    return [
        coordinate_gradient(tree, q, gradient) if names[place] in CONFIGURATIONS and gradient is not None else gradient
        for place, (q, gradient) in enumerate(zip(inputs, gradients, strict=True))
    ]


def coordinate_gradient(model: Model, q: Any, gradient: Any) -> Any:
    """The shortest gradient (..., nq) in coordinates that gives `gradient` (..., nv) along the tangent."""
    scale = np.ones(model.nv)
    for joint in model.joints:
        if joint.kind in TURNS:
            scale[joint.iv : joint.iv + joint.nv][TURNS[joint.kind]] = 4.0
    if isinstance(gradient, np.ndarray):
        return coordinate_rates(model, q, gradient * scale.astype(gradient.dtype))
    return coordinate_rates(model, q, gradient * gradient.new_tensor(scale))
