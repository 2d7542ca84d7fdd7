"""Rollouts on a GPU: all steps of all robots in one launch, on arrays of CuPy or PyTorch.

Of free robots, by semi-implicit Euler, under torques that are known ahead (stepping.py). In memory the axis of the robots is
the last one, so that neighbouring threads read and write neighbouring numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saltus.arrays import on_gpu
from saltus.constraints.report import Status
from saltus.kernel.gpu_arrays import library_of, moved
from saltus.model.manifold import difference
from saltus.model.model import Model
from saltus.simulation.commands import OverTime, PDTargets
from saltus.simulation.stepping import _steps, _steps_along, _steps_towards


def roll_out(model: Model, q: Any, v: Any, tau: Any, steps: int, dt: float, damping: bool) -> tuple[Any, ...]:
    """What a trajectory records (rollout.py) but for the time: q, v, tau, forces, masks and status."""
    like = q if on_gpu(q) else v

    def there(x: Any) -> Any:
        return moved(x, like)

    def each(x: Any) -> Any:
        """A number for each degree of freedom."""
        return there(x if np.ndim(x) else np.full(model.nv, x))

    q, v, leading = there(q), there(v), tuple(like.shape[:-1])
    if len(leading) > 1 or any(tuple(x.shape[:-1]) != leading for x in (q, v)):
        raise ValueError(
            f"rollout: q has shape {tuple(q.shape)} and v {tuple(v.shape)}, expected one axis for robots, or none, on "
            "a GPU"
        )
    qs, vs = (room(like, leading, steps + 1, size) for size in (model.nq, model.nv))
    qs[..., 0, :], vs[..., 0, :] = q, v
    taus = room(like, leading, steps + 1, model.nv)
    resistance = there(model.damping if damping else np.zeros(model.nv))
    state = (np.full(max(steps, 1), steps, np.int32), q, v, resistance, there(np.array([dt])))
    out = (qs[..., 1:, :], vs[..., 1:, :])
    if isinstance(tau, OverTime):
        rows = there(tau.values)
        run(_steps_along, model, steps, (*state, rows), out)
        taus[..., :-1, :], taus[..., -1, :] = rows, rows[..., -1, :]
    elif isinstance(tau, PDTargets):
        rows, gains = there(tau.targets), [each(x) for x in (tau.tau, tau.kp, tau.kd)]
        run(_steps_towards, model, steps, (*state, *gains, rows), out)
        goals = room(like, leading, steps + 1, model.nq)
        goals[..., :-1, :], goals[..., -1, :] = rows, rows[..., -1, :]
        ahead = difference(model, qs.reshape(-1, model.nq), goals.reshape(-1, model.nq)).reshape(taus.shape)
        ahead_by, kp, kd = (x[..., None, :] for x in gains)
        taus[...] = ahead_by + kp * ahead - kd * vs
    else:
        constant = each(0.0 if tau is None else tau)
        run(_steps, model, steps, (*state, constant), out)
        taus[...] = constant[..., None, :]
    size = qs.sum(-1) + vs.sum(-1)
    lost = size - size != 0.0  # what is not finite leaves NaN
    return qs, vs, taus, taus[..., :0], taus[..., :0], lost * int(Status.INVALID)


def run(algorithm: Any, model: Model, steps: int, inputs: tuple[Any, ...], out: tuple[Any, ...]) -> None:
    if steps:
        algorithm.call(model, inputs, out)


def room(like: Any, leading: tuple[int, ...], rows: int, size: int) -> Any:
    """(..., rows, size), the leading axis last in memory."""
    made = library_of(like.__class__).empty(like, (rows, size, *leading))
    return made.swapaxes(0, 2).swapaxes(1, 2) if leading else made
