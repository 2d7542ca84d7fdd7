"""Forward algorithmic differentiation: the function run on arrays that carry their slopes, its kernels on dual numbers.

    y + y' e = f(x + x' e),    e^2 = 0

Exact up to rounding. One run takes as many directions as a register has lanes, and costs about three runs of the function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saltus.arrays import Array
from saltus.constraints.dynamics import ConstrainedDynamics, Solution
from saltus.derivatives.problem import Problem, arrays_of, mapped
from saltus.dynamics.aba import _aba, aba
from saltus.dynamics.centroidal import _centroidal_momentum_matrix, centroidal_momentum_matrix
from saltus.dynamics.crba import _crba, crba
from saltus.dynamics.ltl import _minverse, minverse
from saltus.dynamics.rnea import _gravity, _nonlinear_effects, _rnea, gravity, nonlinear_effects, rnea
from saltus.kernel import ld, st
from saltus.kernel.sloped import Sloped
from saltus.model.joint_kernels import CONTINUOUS, FREE_FLYER, PLANAR, SPHERICAL
from saltus.model.manifold import on_free_joints
from saltus.model.model import Model
from saltus.model.tree import algorithm
from saltus.spatial.algebra import Quat, Vec2, Vec3
from saltus.spatial.quaternion import rotation


@algorithm(inputs={"q": "nq", "v": "nv"}, outputs={"rates": "nq"})
def _coordinate_rates(tree, q, v, w, rates):
    """How fast the coordinates change that move along the tangent vector v."""
    for i in range(1, tree.nj):
        kind, iq, iv = tree.kind[i], tree.iq[i], tree.iv[i]
        if kind == FREE_FLYER:
            a, turning = ld(q, iq + 3, Quat), ld(v, iv + 3, Vec3)
            st(rates, iq, rotation(a) @ ld(v, iv, Vec3))
            st(rates, iq + 3, a * Quat(0.5 * turning.x, 0.5 * turning.y, 0.5 * turning.z, 0.0 * turning.x))
        elif kind == SPHERICAL:
            a, turning = ld(q, iq, Quat), ld(v, iv, Vec3)
            st(rates, iq, a * Quat(0.5 * turning.x, 0.5 * turning.y, 0.5 * turning.z, 0.0 * turning.x))
        elif kind == CONTINUOUS:
            turn = ld(q, iq, Vec2)
            st(rates, iq, Vec2(-turn.y * ld(v, iv), turn.x * ld(v, iv)))
        elif kind == PLANAR:
            turn, x, y = ld(q, iq + 2, Vec2), ld(v, iv), ld(v, iv + 1)
            st(rates, iq, Vec2(turn.x * x - turn.y * y, turn.y * x + turn.x * y))
            st(rates, iq + 2, Vec2(-turn.y * ld(v, iv + 2), turn.x * ld(v, iv + 2)))
        else:
            for k in range(tree.end[i] - iv):
                st(rates, iq + k, ld(v, iv + k))


on_free_joints(_coordinate_rates)


def coordinate_rates(model: Model, q: Array, v: Array) -> Array:
    """The rates (..., nq) of the coordinates `q` (..., nq) of a robot that moves at `v` (..., nv)."""
    return v if model.nq == model.nv else _coordinate_rates.call(model, (q, v))


def pushed(task: Problem, directions: dict[int, Array]) -> tuple[Any, tuple[Array, ...]]:
    """The outputs, and their slopes (..., directions, *shape) along directions (..., directions, *tangent)."""
    inputs = list(task.inputs)
    for k, slope in directions.items():
        x = task.arrays[k]
        axis = slope.ndim - 1 - len(x.tangent)
        if x.configuration:
            slope = coordinate_rates(task.tree, np.expand_dims(x.value, len(x.leading)), slope)
        value = np.broadcast_to(x.value, np.broadcast_shapes(x.value.shape, slope.shape[:axis] + x.own))
        inputs[k] = Sloped(value, np.moveaxis(slope, slope.ndim - 1 - len(x.own), 0))
    result = task.function(task.model, *inputs)
    count, rank = next(iter(inputs[k].slopes.shape[0] for k in directions)), len(task.leading)
    slopes = [
        np.moveaxis(output.slopes, 0, rank) if isinstance(output, Sloped) else _still(output, rank, count)
        for output in arrays_of(result, task.name)
    ]
    return mapped(lambda output: output.value if isinstance(output, Sloped) else output, result), tuple(slopes)


DIRECT = {
    aba: _aba, crba: _crba, gravity: _gravity, minverse: _minverse, nonlinear_effects: _nonlinear_effects, rnea: _rnea,
    centroidal_momentum_matrix: _centroidal_momentum_matrix,
}  # fmt: skip
"""Functions that do nothing but call their algorithm, the configuration first."""


def pushed_at_once(function: Any, model: Any, inputs: Any, directions: Any) -> tuple[Any, Any] | None:
    """(outputs, slopes) by the shortest way, for one sample of arrays as kernels take them; None if that cannot be."""
    algorithm = DIRECT.get(function)
    if algorithm is not None and model.__class__ is Model:
        answer = algorithm.push(model, inputs, _along_coordinates(model, inputs, directions))
        return answer if answer.__class__ is tuple else None
    if function is ConstrainedDynamics.solve and model.__class__ is ConstrainedDynamics and len(inputs) == 3:
        algorithm, rest = getattr(model._run, "__self__", None), model._one
        if algorithm is None or model.problem.nu or inputs.__class__ is not tuple:
            return None
        slopes = _along_coordinates(model.model, inputs, directions) + (None,) * len(rest)
        answer = algorithm.push(model.problem, inputs + rest, slopes)
        if answer.__class__ is tuple:
            (a, forces, report), changes = answer
            return Solution(a, forces, report), changes[:2]
    return None


def _along_coordinates(model: Model, inputs: Any, directions: Any) -> tuple[Any, ...]:
    """The directions of one sample, that of the configuration (which comes first) along its coordinates; empty if they are
    not such, which nobody takes."""
    if directions.__class__ is not tuple or len(directions) != len(inputs):
        return ()
    if model.nq == model.nv or directions[0] is None:
        return directions
    q, dq = inputs[0], directions[0]
    if not (q.__class__ is dq.__class__ is np.ndarray and q.shape == (model.nq,) and dq.shape[-1:] == (model.nv,)):
        return ()
    if dq.ndim == 2:
        q = np.tile(q, (len(dq), 1))
    return _coordinate_rates.call(model, (q, dq)), *directions[1:]


def _still(output: Array, rank: int, count: int) -> Array:
    """The slopes of an output that depends on nothing that changes."""
    return np.zeros((*output.shape[:rank], count, *output.shape[rank:]))
