"""Task-space inverse dynamics: the torques of the motors that make a constrained robot move as wanted.

    min  |W (J a - goal)|^2 + a little (|forces of contacts|^2 + |u|^2)      over u

Accelerations a and the constraints' forces are affine in the torques u of the motors, so one batch of constrained forward
dynamics gives both: without torques, and under a unit of each, springs acting as in `rollout`. Constraints are respected
whatever the tasks ask for; what has no motor, a free base and passive joints, gets no torque. Where torques could push
contacts against each other without moving anything, they push the least.

| symbol | code | what | shape |
|---|---|---|---|
| u | `u` | torques of the motors | nu |
| J a, forces | `effects` | without torques, and under a unit of each | k + nm, nu + 1 times |
| W J, W goal | `J`, `goal` | tasks, one below the other, weighted | k nv, k |

Cost: nu + 1 constrained forward dynamics, and a least-squares problem of nu unknowns.

Reference: J. Carpentier, R. Budhiraja, N. Mansard, Proximal and sparse resolution of constrained dynamic equations (2021),
section V-E, where a reference of the centre of mass is followed this way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike
from saltus.constraints.dynamics import ConstrainedDynamics
from saltus.dynamics.centroidal import center_of_mass_jacobian, centroidal_momentum_drift
from saltus.dynamics.passive import passive_torques
from saltus.model.joints import JointKind
from saltus.model.model import Model
from saltus.model.parameters import refuse_several

LESS_FORCE, LESS_TORQUE = 1e-5, 1e-7
"""Weights of forces and torques, against those of accelerations: they decide between torques that do the same."""


class Task(NamedTuple):
    """Accelerations that are wanted, J a = goal."""

    J: Array  # (..., k, nv)
    goal: Array  # (..., k) what is wanted, less what there is at a = 0
    weight: float = 1.0  # of its errors against those of other tasks


def center_of_mass_task(model: Model, q: ArrayLike, v: ArrayLike, wanted: ArrayLike, weight: float = 1.0) -> Task:
    """The centre of mass accelerates as `wanted` (..., 3) [m/s^2]."""
    refuse_several(model, "center_of_mass_task")
    drift = np.asarray(centroidal_momentum_drift(model, q, v))[..., :3] / model.total_mass
    return Task(np.asarray(center_of_mass_jacobian(model, q)), np.asarray(wanted) - drift, weight)


def motors_of(model: Model) -> list[int]:
    """The degrees of freedom that have a motor, in their order:

    - those that an actuator drives, and those whose effort limit is finite (URDF files often have transmissions for a part
      of the robot only, as that of an arm which a quadruped carries);
    - where there are none of either, all joints with an axis and without a spring;
    - never those with an effort limit of zero, an actuator of gear zero, or of a free base.

    >>> import saltus as sl
    >>> four_bar = sl.load_robot("four_bar")
    >>> four_bar.effort_limit, sl.motors_of(four_bar)
    (array([10.,  0.,  0.]), [0])
    """
    base, limit = {JointKind.FREE_FLYER, JointKind.PLANAR}, model.effort_limit
    driven = {actuator.joint for actuator in model.actuators if actuator.gear}
    own = [joint for joint in model.joints[1:] if not (joint.parent == 0 and joint.kind in base)]
    named = [
        k
        for joint in own
        for k in range(joint.iv, joint.iv + joint.nv)
        if limit[k] > 0 and (joint.name in driven or np.isfinite(limit[k]))
    ]
    if named or model.actuators:
        return named
    single = [joint.iv for joint in own if joint.nv and joint.kind.has_axis]
    return [k for k in single if limit[k] > 0 and model.stiffness[k] == 0]


def task_torques(
    dynamics: ConstrainedDynamics,
    q: ArrayLike,
    v: ArrayLike,
    tasks: Sequence[Task],
    *,
    motors: Sequence[int] | None = None,
    active: ArrayLike | None = None,
) -> Array:
    """Torques (..., nv) [N m, N] at `q` (..., nq), `v` (..., nv) by which accelerations are as near to the tasks as can be.

    motors: the degrees of freedom that may have torques; by default `motors_of(model)`.
    active: (..., nc), as in `ConstrainedDynamics.solve`.

    >>> import saltus as sl
    >>> robot = sl.load_robot("quadruped")
    >>> feet = [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet]
    >>> dynamics = sl.ConstrainedDynamics(robot, feet)
    >>> q, v = robot.reference_configurations["standing"], np.zeros(robot.nv)
    >>> up = sl.center_of_mass_task(robot, q, v, [0.0, 0.0, 1.0])
    >>> a = dynamics.solve(q, v, sl.task_torques(dynamics, q, v, [up])).a
    >>> (sl.center_of_mass_jacobian(robot, q) @ a).round(6) + 0.0
    array([0., 0., 1.])
    """
    refuse_several(dynamics, "task_torques")
    model = dynamics.model
    chosen = motors_of(model) if motors is None else list(motors)
    q, v = np.asarray(q, float)[..., None, :], np.asarray(v, float)[..., None, :]
    trials = np.zeros((len(chosen) + 1, model.nv))
    trials[np.arange(1, len(trials)), chosen] = 1.0
    mask = None if active is None else np.asarray(active, float)[..., None, :]
    if model.stiffness.any():
        trials = trials + passive_torques(model, q)
    solution = dynamics.solve(q, v, trials, mask)  # (..., nu + 1, nv) and (..., nu + 1, nm)
    J = _stacked([task.weight * task.J for task in tasks], -2)
    goal = _stacked([task.weight * task.goal for task in tasks], -1)
    contact = [constraint.joint_b == 0 for constraint in dynamics.constraints for _ in constraint.rows]
    effects = np.concatenate([solution.a @ np.swapaxes(J, -1, -2), LESS_FORCE * solution.forces[..., contact]], axis=-1)
    response = np.swapaxes(effects[..., 1:, :] - effects[..., :1, :], -1, -2)
    left = _stacked([goal, np.zeros(sum(contact))], -1) - effects[..., 0, :]
    back = np.swapaxes(response, -1, -2)
    normal = back @ response + LESS_TORQUE**2 * np.eye(len(chosen))
    tau = np.zeros((*left.shape[:-1], model.nv))
    tau[..., chosen] = np.linalg.solve(normal, back @ left[..., None])[..., 0]
    return tau


def _stacked(parts: Sequence[Array], axis: int) -> Array:
    """One after the other along an axis counted from the last, leading axes before it broadcast."""
    leading = np.broadcast_shapes(*(part.shape[:axis] for part in parts))
    return np.concatenate([np.broadcast_to(part, (*leading, *part.shape[axis:])) for part in parts], axis=axis)
