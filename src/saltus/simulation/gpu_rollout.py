"""Rollouts on a GPU: all steps of all robots in one launch, on arrays of CuPy or PyTorch.

Of free robots, by semi-implicit Euler, under torques that are known ahead (stepping.py). In memory the axis of the robots is
the last one, so that neighbouring threads read and write neighbouring numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saltus.arrays import on_gpu
from saltus.constraints.report import Status
from saltus.kernel.gpu_arrays import library_of, moved
from saltus.model.manifold import difference
from saltus.model.model import Model
from saltus.simulation.commands import OverTime, PDTargets
from saltus.simulation.stepping import _steps, _steps_along, _steps_towards


def roll_out(model: Model, q: Any, v: Any, tau: Any, steps: int, dt: float, acting: Sequence[bool]) -> tuple[Any, ...]:
    """What a trajectory records (rollout.py) but for the time: q, v, tau, forces, masks and status. `acting`: whether
    springs act, and dampers."""
    like = q if on_gpu(q) else v
    if not steps and isinstance(tau, OverTime | PDTargets):
        tau = None  # nothing is asked for

    def there(x: Any) -> Any:
        return moved(x, like)

    def each(x: Any) -> Any:
        """A number for each degree of freedom."""
        return there(x if np.ndim(x) else np.full(model.nv, x))

    q, v, leading = there(q), there(v), tuple(like.shape[:-1])
    if len(leading) > 1 or any(tuple(x.shape[:-1]) != leading for x in (q, v)):
        raise ValueError(
            f"rollout: q has shape {tuple(q.shape)} and v {tuple(v.shape)}, expected one axis for robots, or none, on a GPU"
        )

    def room(*own: int) -> Any:
        return library_of(like.__class__).empty(like, (*own, *leading))

    def behind(x: Any, own: int) -> Any:
        """As an array lies whose robots come last, if it has as many axes of its own."""
        if x.ndim == own:
            return x[..., None] if leading else x
        return first_to_last(x)

    places, speeds, torques, flags = (room(steps + 1, n) for n in (model.nq, model.nv, model.nv, 1))
    size = q.sum(-1) + v.sum(-1)
    places[0], speeds[0], flags[0] = behind(q, 1), behind(v, 1), (size - size != 0.0) * 1.0  # NaN if it is not finite
    qs, vs, taus, lost = (last_to_first(x) if leading else x for x in (places, speeds, torques, flags))
    passive = there(np.array(acting, np.float64))
    state = (np.full(max(steps, 1), steps, np.int32), q, v, passive, there(np.array([dt])))
    out = (qs[..., 1:, :], vs[..., 1:, :], lost[..., 1:, 0])
    if isinstance(tau, OverTime):
        rows = there(tau.values)
        run(_steps_along, model, steps, (*state, rows), out)
        torques[:-1], torques[-1] = behind(rows, 2), behind(rows[..., -1, :], 1)
    elif isinstance(tau, PDTargets):
        rows, (constant, kp, kd) = there(tau.targets), [each(x) for x in (tau.tau, tau.kp, tau.kd)]
        run(_steps_towards, model, steps, (*state, constant, kp, kd, rows), out)
        goals = room(steps + 1, model.nq)
        goals[:-1], goals[-1] = behind(rows, 2), behind(rows[..., -1, :], 1)
        wanted = (last_to_first(goals) if leading else goals).reshape(-1, model.nq)
        ahead = difference(model, qs.reshape(-1, model.nq), wanted).reshape(vs.shape)
        taus[...] = constant[..., None, :] + kp[..., None, :] * ahead - kd[..., None, :] * vs
    else:
        constant = each(0.0 if tau is None else tau)
        run(_steps, model, steps, (*state, constant), out)
        torques[...] = behind(constant, 1)
    nothing = taus[..., :0]
    return qs, vs, taus, nothing, nothing, (lost[..., 0] != 0.0) * int(Status.INVALID)


def run(algorithm: Any, model: Model, steps: int, inputs: tuple[Any, ...], out: tuple[Any, ...]) -> None:
    if steps:
        algorithm.call(model, inputs, out)


def last_to_first(x: Any) -> Any:
    """(time, numbers, robots) as (robots, time, numbers)"""
    return x.swapaxes(0, 2).swapaxes(1, 2)


def first_to_last(x: Any) -> Any:
    """(robots, numbers) or (robots, time, numbers), the robots behind"""
    return x.swapaxes(0, 1) if x.ndim == 2 else x.swapaxes(0, 2).swapaxes(0, 1)
