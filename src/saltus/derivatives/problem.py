"""What is differentiated: a function of the package, its inputs, and directions along which they change, in one form.

A function `f(model, *inputs)` is looked at by the names of its parameters: `q`, `q0` and `q1` are configurations, which
change along their tangent (nv); frames, joints, masks and the like do not change; of the rest, each has as many axes of its
own as `AXES` says, and leading axes in front of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from saltus.arrays import Array, on_gpu, real_numbers
from saltus.kernel.algorithm import Spec
from saltus.kernel.marking import check_choice, mark, repaired
from saltus.kernel.sloped import Sloped
from saltus.model.model import Model
from saltus.model.tree import TABLES

CONFIGURATIONS = {"q", "q0", "q1"}
FIXED = {"frame", "joint", "reference", "active", "start", "restitution", "rows"}
"""Parameters along which there is no derivative."""
MASKS = {"active": 1, "start": 1, "rows": 2}
"""Of those, the ones that are arrays with leading axes of their own, and how many axes are not leading."""
AXES = {"forces": 2, "external": 2, "M": 2, "u": 0}
"""Axes that an input has of its own; those that are not here have one."""


class Input(NamedTuple):
    """One input that is an array."""

    name: str
    value: Array  # (..., *own)
    own: tuple[int, ...]
    tangent: tuple[int, ...]  # shape of a direction: (nv,) for a configuration
    leading: tuple[int, ...]
    configuration: bool


class Problem(NamedTuple):
    """A function at one point, or at a batch of them."""

    function: Callable[..., Any]
    model: Any  # what the function is given: a model, or the dynamics of a constrained one
    tree: Model
    inputs: tuple[Any, ...]  # as given
    arrays: dict[int, Input]  # those that may change, by position
    leading: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.function.__name__


@cache
def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the inputs of a function, the model or object before them left out."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(p.name for p in inspect.signature(function).parameters.values() if p.kind in kinds)[1:]


def problem(function: Callable[..., Any], model: Any, inputs: Sequence[Any]) -> Problem:
    """The inputs looked at; raises what names the input that cannot be differentiated."""
    names, tree = parameters(function), model if isinstance(model, Model) else getattr(model, "model", None)
    if not isinstance(tree, Model):
        raise TypeError(
            f"{function.__name__}: the model is a {type(model).__name__}, expected a saltus.Model or ConstrainedDynamics"
        )
    if tree.varied:
        raise TypeError(
            f"{function.__name__}: slopes and products are for one robot, expected a model that `vary_inertia` has not "
            "varied; Jacobians in the mode 'analytical' take both"
        )
    if len(inputs) > len(names):
        raise TypeError(f"{function.__name__}: expected the inputs {', '.join(names)}, got {len(inputs)} of them")
    arrays = {}
    for k, (name, given) in enumerate(zip(names, inputs, strict=False)):
        if given is None or name in FIXED:
            continue
        value = real_numbers(given, f"{function.__name__}: {name}").astype(np.float64, copy=False)
        split = value.ndim - AXES.get(name, 1)
        if split < 0:
            raise ValueError(
                f"{function.__name__}: {name} has shape {value.shape}, expected at least {-split} more axes"
            )
        own = value.shape[split:]
        turning = name in CONFIGURATIONS
        arrays[k] = Input(name, value, own, (tree.nv,) if turning else own, value.shape[:split], turning)
    try:
        leading = np.broadcast_shapes(*(x.leading for x in arrays.values()))
    except ValueError:
        given = ", ".join(f"{x.name} {x.leading}" for x in arrays.values())
        raise ValueError(f"{function.__name__}: the leading axes do not broadcast together: {given}") from None
    return Problem(function, model, tree, tuple(inputs), arrays, leading)


def marked(
    run: Callable[[Sequence[Any]], Any],
    function: Callable[..., Any],
    model: Any,
    inputs: Sequence[Any],
    on_invalid: str,
) -> Any:
    """What `run(inputs)` answers, with NaN in all of its arrays for samples whose inputs are not valid."""
    check_choice(on_invalid, function.__name__)
    task = problem(function, model, inputs)
    names = parameters(function)
    looked_at = {k: (Spec(x.name, ("nq",) if x.configuration else x.own), x.value) for k, x in task.arrays.items()}
    for k, given in enumerate(inputs):
        if names[k] in MASKS and given is not None:
            value = real_numbers(given, f"{task.name}: {names[k]}")
            looked_at[k] = (Spec(names[k], value.shape[value.ndim - MASKS[names[k]] :]), value)
    specs, arrays = zip(*looked_at.values(), strict=True)
    valid, wrong = repaired(TABLES.configurations, task.tree, specs, arrays)
    replaced = dict(zip(looked_at, valid, strict=True))
    answer = run([replaced.get(k, given) for k, given in enumerate(inputs)])
    return mark(answer, np.broadcast_to(wrong, task.leading)) if wrong.any() else answer


def spread(task: Problem, directions: Sequence[Any]) -> tuple[dict[int, Array], bool]:
    """The directions of each input that has some, as arrays (..., directions, *tangent), and whether there are several."""
    if len(directions) != len(task.inputs):
        raise ValueError(
            f"{task.name}: {len(directions)} directions for {len(task.inputs)} inputs, expected one for each"
        )
    found = {}
    for k, given in enumerate(directions):
        if given is None:
            continue
        if k not in task.arrays:
            raise ValueError(
                f"{task.name}: {parameters(task.function)[k]} has a direction, expected None: it does not change"
            )
        x = task.arrays[k]
        slope = real_numbers(given, f"{task.name}: the direction of {x.name}").astype(np.float64, copy=False)
        split = slope.ndim - len(x.tangent)
        if split < 0 or slope.shape[split:] != x.tangent:
            expected = ", ".join(map(str, ("...", *x.tangent)))
            raise ValueError(f"{task.name}: the direction of {x.name} has shape {slope.shape}, expected ({expected})")
        found[k] = slope
    if not found:
        raise ValueError(f"{task.name}: no input has a direction, expected one at least")
    rank = len(task.leading)
    leading = {k: slope.shape[: slope.ndim - len(task.arrays[k].tangent)] for k, slope in found.items()}
    many = any(len(shape) > rank for shape in leading.values())
    if not many:
        found = {k: np.expand_dims(slope, len(leading[k])) for k, slope in found.items()}
    try:
        most = np.broadcast_shapes(*leading.values(), (*task.leading, 1) if many else task.leading)
        fits = most[: len(task.leading)] == task.leading and len(most) == rank + many
    except ValueError:
        fits = False
    if not fits:
        given = ", ".join(f"{task.arrays[k].name} {shape}" for k, shape in leading.items())
        raise ValueError(
            f"{task.name}: the directions' leading axes, {given}, do not fit those of the inputs, {task.leading}, "
            "with or without one axis for directions behind"
        )
    count = most[-1] if many else 1
    return {k: _as_many(slope, count, len(task.arrays[k].tangent)) for k, slope in found.items()}, many


def _as_many(slope: Array, count: int, axes: int) -> Array:
    """One direction (..., 1, *tangent), or one without that axis, as so many."""
    before, own = slope.shape[: slope.ndim - axes], slope.shape[slope.ndim - axes :]
    if before[-1:] == (count,):
        return slope
    return np.broadcast_to(slope, (*before[:-1], count, *own))


def arrays_of(result: Any, name: str) -> tuple[Any, ...]:
    """The arrays of what a function returns that have derivatives: reports of solvers have none."""
    kind = type(result).__name__
    if _is_array(result):
        return (result,)
    if is_dataclass(result) or hasattr(result, "_fields"):
        names = list(getattr(result, "_fields", None) or (field.name for field in fields(result)))
        if "report" in names:
            names = names[: names.index("report")]
        result = tuple(getattr(result, each) for each in names)
    if isinstance(result, tuple) and all(map(_is_array, result)):
        return result
    raise TypeError(f"{name}: returns a {kind}, which has no derivative, expected arrays")


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray | Sloped | np.floating) or on_gpu(x)


def mapped(change: Callable[[Any], Any], result: Any) -> Any:
    """What a function returned, with each of its arrays changed."""
    if isinstance(result, np.ndarray | Sloped):
        return change(result)
    if isinstance(result, tuple):
        parts = [mapped(change, part) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if is_dataclass(result):
        return replace(result, **{f.name: mapped(change, getattr(result, f.name)) for f in fields(result)})  # type: ignore[type-var]
    return result
