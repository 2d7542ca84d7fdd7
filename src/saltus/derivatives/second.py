"""Second derivatives along two directions, by dual numbers of dual numbers: for checking, not for speed.

    d^2 f(x + s d1 + t d2) / ds dt   at s = t = 0,      x = (x + d1 e1) + (d2) e2,    e1^2 = e2^2 = 0

Configurations step by `integrate`, itself carried along, so that the curvature of the manifold is accounted for, exactly.
The kernels run interpreted: some milliseconds a call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saltus.arrays import ArrayLike
from saltus.derivatives.problem import arrays_of, problem, spread
from saltus.kernel import Dual
from saltus.kernel.sloped import interpreted
from saltus.model.manifold import integrate


def second_directional(
    function: Callable[..., Any],
    model: Any,
    inputs: Sequence[ArrayLike],
    first: Sequence[ArrayLike | None],
    second: Sequence[ArrayLike | None],
) -> Any:
    """The second derivative of `function(model, *inputs)`, one sample, along `first` and `second`: both one direction (nv,)
    an input, or None where it does not change. Returns an array of the output's shape, or a tuple if there are several.

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> q, v, d1, d2 = arm.neutral(), np.ones(3), np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    >>> slope = sl.second_directional(sl.kinetic_energy, arm, (q, v), (None, d1), (None, d2))
    >>> bool(np.allclose(slope, sl.crba(arm, q)[0, 1]))
    True
    """
    task = problem(function, model, inputs)
    if task.leading:
        raise ValueError(f"{task.name}: the inputs have leading axes {task.leading}, expected one sample")
    slopes = []
    for directions in (first, second):
        found, many = spread(task, directions)
        if many:
            raise ValueError(f"{task.name}: several directions are given, expected one an input")
        slopes.append(found)
    carried = list(task.inputs)
    for k, x in task.arrays.items():
        d1, d2 = (found[k][0].ravel() if k in found else np.zeros(int(np.prod(x.tangent))) for found in slopes)
        start = np.zeros(d1.size) if x.configuration else x.value.ravel()
        rows = zip(start.tolist(), d1.tolist(), d2.tolist(), strict=True)
        numbers = interpreted([Dual(Dual(value, one), Dual(two, 0.0)) for value, one, two in rows], x.tangent)
        carried[k] = integrate(task.tree, x.value, numbers) if x.configuration else numbers
    parts = tuple(_mixed(output) for output in arrays_of(task.function(task.model, *carried), task.name))
    return parts if len(parts) > 1 else parts[0]


def _mixed(output: Any) -> Any:
    """What stands at e1 e2; zero where a number does not depend on what changes."""
    flat = np.asarray(output).ravel()
    numbers = [each.slope.slope if isinstance(each, Dual) and isinstance(each.slope, Dual) else 0.0 for each in flat]
    return np.array(numbers).reshape(output.shape)
