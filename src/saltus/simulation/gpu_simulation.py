"""Simulation on a GPU: all steps of all robots in one launch, on arrays of CuPy or PyTorch.

As rollouts there (gpu_rollout.py): the axis of the robots is the last one in memory, and what is recorded stays on the
device. Robots that are lost have the status INVALID.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from saltus.arrays import on_gpu
from saltus.kernel.gpu_arrays import library_of, moved
from saltus.simulation.commands import OverTime, PDTargets
from saltus.simulation.contact_step import _contact_steps
from saltus.simulation.job import gains_of, limits, no_gains
from saltus.simulation.motion import Motion, Step

if TYPE_CHECKING:
    from saltus.simulation.simulator import Simulator


def roll_out(
    sim: Simulator, q: Any, v: Any, tau: Any, steps: int, every: int, friction: Any, start: Step | Motion | None
) -> Motion:
    """The motion of robots (robots, nq), (robots, nv), or of one, under what is known ahead."""
    like = q if on_gpu(q) else v
    model, problem, rows = sim.model, sim.problem, steps // every
    real = np.dtype(str(like.dtype).removeprefix("torch."))

    def there(x: Any) -> Any:
        return moved(x, like)

    q, v, leading = there(q), there(v), tuple(like.shape[:-1])
    if len(leading) > 1 or any(tuple(x.shape[:-1]) != leading for x in (q, v)):
        raise ValueError(
            f"rollout: q has shape {tuple(q.shape)} and v {tuple(v.shape)}, expected one axis for robots, or none, on a GPU"
        )
    commands = [there(x) for x in _commands(sim, tau, steps, bool(leading))]
    ticks = commands[0].shape[-2]
    if steps % ticks:
        raise ValueError(f"rollout: a command has {ticks} rows, expected a divisor of the number of steps, {steps}")
    settings, factor = (
        there(sim.settings(real)),
        there(np.asarray(friction, real)) if not on_gpu(friction) else friction,
    )
    if factor.ndim or friction != 1.0:
        settings = settings + there(np.eye(7, dtype=real)[3]) * (factor[..., None] - 1.0)
    held, touch = (there(x) for x in (sim.nothing if start is None else start).ending)
    effort = model.effort_limit if isinstance(tau, PDTargets) else np.full(model.nv, np.inf)
    whole: list[Any] = [
        _room(like, rows + 1, shape)
        for shape in ((model.nq,), (model.nv,), (model.nv,), (problem.nheld,), (sim.most_contacts, 4), (7,))
    ]
    for array, begin in zip(whole, (q, v, 0.0, held, touch, 0.0), strict=True):
        array[(slice(None),) * len(leading) + (0,)] = begin
    out = tuple(array[(slice(None),) * len(leading) + (slice(1, None),)] for array in whole)
    if rows:
        plan = np.array([*sim.plan, steps // ticks, every, 0], np.int32)
        sizes = np.zeros(ticks, np.int32), np.full(rows, rows, np.int32), np.zeros(0, np.int32)
        nothing = there(np.zeros((0, 3), real)), there(np.zeros((ticks, 0, 3), real))
        state = q, v, held, touch, settings, there(limits(effort, real))
        _contact_steps.call(problem, (plan, *sizes, *state, *nothing, *commands), out)
    t = sim.dt * every * np.arange(rows + 1, dtype=np.float64)
    acted: Any = factor, ()
    return Motion(sim, t, *whole, *acted)


def _room(like: Any, rows: int, shape: tuple[int, ...]) -> Any:
    """An array (robots, rows, *shape) whose robots lie side by side."""
    leading = tuple(like.shape[:-1])
    array = library_of(like.__class__).empty(like, (rows, *shape, *leading))
    for k in range(array.ndim - 1 if leading else 0):  # the last axis goes to the front
        array = array.swapaxes(k, array.ndim - 1)
    return array


def _commands(sim: Simulator, tau: Any, steps: int, many: bool) -> list[Any]:
    """Rows (..., ticks, n) of torques, and of targets and gains if motors go towards targets."""
    nv = sim.model.nv
    if isinstance(tau, PDTargets):
        targets: Any = tau.targets
        targets = targets[None] if targets.ndim == 1 else targets
        ticks = targets.shape[-2]
        gains = [gains_of(sim.model, x, name, 2, ticks) for name, x in (("kp", tau.kp), ("kd", tau.kd))]
        added = np.broadcast_to(np.asarray(tau.tau, float), (nv,))
        return [np.broadcast_to(added, (ticks, nv)).copy(), *(x.copy() for x in gains), targets]
    if isinstance(tau, OverTime):
        values: Any = tau.values
        return [values, *no_gains(values)]
    if tau is None:
        return [np.zeros((1, nv)), *no_gains(np.zeros((1, nv)))]
    rows = tau[:, None, :] if tau.ndim == 2 and many else tau[None]
    return [rows, *no_gains(rows)]
