"""Derivatives of any function of the package, in four modes under one interface.

| mode | how | error | cost, directions p |
|---|---|---|---|
| `analytical` | slopes of its own (along.py), or its Jacobian (`REGISTERED`) | rounding | below 1 + p runs, or all at once |
| `ad` | its kernels run on dual numbers (forward.py) | rounding | 1 + 1.5 p runs at most |
| `fdc` | central differences on the manifold (finite.py) | about 1e-9 | 1 + 2 p runs, as one batch |
| `fd` | forward differences on the manifold (finite.py) | about 1e-7 | 1 + p runs, as one batch |

Reference: M. Kudruss, P. Manns, C. Kirches, Efficient derivative evaluation for rigid-body dynamics based on recursive
algorithms subject to kinematic and loop constraints (2019).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.constraints.dynamics import ConstrainedDynamics
from saltus.derivatives.along import ALONG
from saltus.derivatives.constrained_along import solve_along, solve_along_at_once
from saltus.derivatives.finite import difference_quotients
from saltus.derivatives.forward import DIRECT, pushed, pushed_at_once
from saltus.derivatives.problem import Problem, arrays_of, marked, problem, spread
from saltus.kernel.forward import push_forward
from saltus.model.model import Model

SOLVE = ConstrainedDynamics.solve
MODES = ("analytical", "ad", "fd", "fdc")

REGISTERED: dict[Callable[..., Any], Callable[..., Any]] = {}
"""The analytical derivative of each function that has one: see `register`."""


def register(function: Callable[..., Any], derivative: Callable[..., Any]) -> None:
    """Make `derivative(model, *inputs)` the analytical mode of `function(model, *inputs)`.

    It returns what `jacobian` does: one entry an input, d output / d input (..., *output, nv), or the tuple of those of all
    outputs. Inputs past its entries, and those whose entry is None, have no analytical derivative.
    """
    REGISTERED[function] = derivative


def jvp(
    function: Callable[..., Any],
    model: Any,
    inputs: Sequence[ArrayLike],
    directions: Sequence[ArrayLike | None],
    mode: str = "ad",
) -> tuple[Any, Any]:
    """The outputs of `function(model, *inputs)`, and their slopes as the inputs change along `directions`.

    directions: one an input, (..., nv) or (..., p, nv) with `...` the leading axes of the inputs, and p directions at once;
        None for an input that does not change. Configurations change along the tangent of `integrate`.
    mode: "ad", "fd", "fdc", or "analytical" where the function has such a derivative.

    Returns (outputs, slopes), slopes (..., *output) or (..., p, *output); a tuple of them if there are several outputs.
    For constrained dynamics, the function is `ConstrainedDynamics.solve` and the model the object.

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> q, v, tau = arm.neutral(), np.ones(3), np.zeros(3)
    >>> a, slope = sl.jvp(sl.aba, arm, (q, v, tau), (None, None, [1.0, 0.0, 0.0]))
    >>> bool(np.allclose(slope, sl.minverse(arm, q)[:, 0]))
    True
    """
    if mode == "ad":
        algorithm = DIRECT.get(function)
        if algorithm is not None and model.__class__ is Model and model.nq == model.nv and not model.weightless:
            answer = algorithm.quick_push(algorithm.filled(model).handle, inputs, directions)
            if answer.__class__ is tuple:
                return answer
            answer = algorithm.push(model, inputs, directions)  # type: ignore[arg-type]  # what it cannot take it declines
            if answer.__class__ is tuple:
                return answer
        else:
            answer = pushed_at_once(function, model, inputs, directions)
            if answer is not None:
                return answer
    if mode == "analytical":
        if model.__class__ is ConstrainedDynamics:
            answer = solve_along_at_once(model, inputs, directions) if function is SOLVE else None
            if answer is not None:
                return answer
        elif (algorithm := ALONG.get(function)) is not None and model.__class__ is Model and not model.weightless:
            answer = algorithm.quick_push(algorithm.filled(model).handle, inputs, directions)
            if answer.__class__ is tuple:
                return answer
            answer = algorithm.push(model, inputs, directions)  # type: ignore[arg-type]
            if answer.__class__ is tuple:
                return answer
    task = problem(function, model, inputs)
    found, many = spread(task, directions)
    outputs, slopes = _slopes(task, found, mode)
    axis = len(task.leading)
    if not many:
        slopes = tuple(slope[(slice(None),) * axis + (0,)] for slope in slopes)
    return outputs, slopes if isinstance(outputs, tuple) or len(slopes) > 1 else slopes[0]


def jacobian(
    function: Callable[..., Any],
    model: Any,
    inputs: Sequence[ArrayLike],
    mode: str = "ad",
    *,
    on_invalid: OnInvalid = "raise",
) -> tuple[Any, ...]:
    """How the outputs of `function(model, *inputs)` change with each input.

    mode: "ad", "fd", "fdc", or "analytical" where the function has such a derivative.

    Returns one entry an input: (..., *output, nv), a column for each direction (the tangent of `integrate` for a
    configuration), or a tuple of such if there are several outputs; None for inputs that do not change, like frames.

    >>> import numpy as np, saltus as sl
    >>> arm = sl.random_model(seed=0, bodies=3, kinds=["revolute"])
    >>> da_dq, da_dv, da_dtau = sl.jacobian(sl.aba, arm, (arm.neutral(), np.ones(3), np.zeros(3)))
    >>> bool(np.allclose(da_dtau, sl.minverse(arm, arm.neutral())))
    True
    """
    if on_invalid != "raise":
        return marked(lambda valid: jacobian(function, model, valid, mode), function, model, inputs, on_invalid)
    if mode == "analytical":
        return _analytical(function, model, inputs)
    task = problem(function, model, inputs)
    if not task.arrays:
        raise ValueError(f"{task.name}: none of the inputs can change")
    sizes = {k: int(np.prod(x.tangent, dtype=np.int64)) for k, x in task.arrays.items()}
    rank, total = len(task.leading), sum(sizes.values())
    directions, start = {}, 0
    for k, x in task.arrays.items():
        block = np.zeros((total, sizes[k]))
        block[start : start + sizes[k]] = np.eye(sizes[k])
        directions[k] = block.reshape(*[1] * rank, total, *x.tangent)
        start += sizes[k]
    _, slopes = _slopes(task, directions, mode)
    entries: list[Any] = [None] * len(task.inputs)
    columns, start = [np.moveaxis(slope, rank, -1) for slope in slopes], 0
    for k, x in task.arrays.items():
        parts = tuple(
            np.ascontiguousarray(column[..., start : start + sizes[k]]).reshape(*column.shape[:-1], *x.tangent)
            for column in columns
        )
        entries[k] = parts if len(parts) > 1 else parts[0]
        start += sizes[k]
    return tuple(entries)


def _slopes(task: Problem, directions: dict[int, Array], mode: str) -> tuple[Any, tuple[Array, ...]]:
    if mode == "ad":
        given = tuple(directions.get(k) for k in range(len(task.inputs)))
        answer = None if task.leading else pushed_at_once(task.function, task.model, task.inputs, given)
        if answer is None:
            return pushed(task, directions)
        return answer[0], answer[1] if isinstance(answer[1], tuple) else (answer[1],)
    if mode in ("fd", "fdc"):
        return difference_quotients(task, directions, mode)
    if mode == "analytical":
        return _contracted(task, directions)
    raise ValueError(f"{task.name}: mode is {mode!r}, expected one of {', '.join(map(repr, MODES))}")


def _analytical(function: Callable[..., Any], model: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
    derivative = REGISTERED.get(function)
    if derivative is None:
        raise ValueError(
            f"{function.__name__}: has no analytical derivative, expected one of the modes 'ad', 'fd', 'fdc'"
        )
    entries = tuple(derivative(model, *inputs))
    return entries + (None,) * (len(inputs) - len(entries))


def _contracted(task: Problem, directions: dict[int, Array]) -> tuple[Any, tuple[Array, ...]]:
    """By slopes that the function has of its own, or the full Jacobians times the directions."""
    if task.function is SOLVE:
        answer = solve_along(task.model, task.inputs, directions)
        if answer is not None:
            return answer
    algorithm = ALONG.get(task.function)
    if algorithm is not None and task.tree.coupling is None:
        given = [directions.get(k) for k in range(len(task.inputs))]
        found, changes = push_forward(algorithm, task.tree, task.inputs, given)
        return found[0], tuple(changes)
    entries = _analytical(task.function, task.model, task.inputs)
    outputs = task.function(task.model, *task.inputs)
    rank, slopes = len(task.leading), []
    for n, output in enumerate(arrays_of(outputs, task.name)):
        own = output.shape[rank:]
        total: Any = 0.0
        for k, direction in directions.items():
            x, entry = task.arrays[k], entries[k]
            if entry is None:
                raise ValueError(f"{task.name}: has no analytical derivative with respect to {x.name}")
            J = entry[n] if isinstance(entry, tuple) else entry
            flat = direction.reshape(*direction.shape[: direction.ndim - len(x.tangent)], -1)
            total = total + flat @ np.swapaxes(J.reshape(*task.leading, -1, flat.shape[-1]), -1, -2)
        slopes.append(total.reshape(*total.shape[:-1], *own))
    return outputs, tuple(slopes)
