"""Contacts in pictures from constraints, with the forces that dynamics or a rollout say: along the axes of their frames,
rows one constraint after the other, as `Solution` and `Trajectory` have them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from saltus.constraints.constraint import Constraint
from saltus.constraints.dynamics import ConstrainedDynamics, Solution
from saltus.dynamics.kinematics import joint_placements
from saltus.model.checks import Array
from saltus.model.model import Model
from saltus.view.contacts import Contacts, filled


def constraints_in(contacts: Any) -> list[Constraint]:
    """The constraints of dynamics, or of a list in which there may be lists, as `SurfaceContact` makes them; none for other
    things, as names of frames."""
    if isinstance(contacts, ConstrainedDynamics):
        return list(contacts.constraints)
    if isinstance(contacts, str) or not isinstance(contacts, Iterable):
        return [contacts] if isinstance(contacts, Constraint) else []
    return [constraint for each in contacts for constraint in constraints_in(each)]


def held_contacts(
    model: Model,
    q: Array,
    constraints: list[Constraint],
    *,
    forces: ArrayLike | Solution | None = None,
    active: ArrayLike | None = None,
    friction: ArrayLike = 0.0,
) -> Contacts:
    """What constraints hold at `q` (..., nq), in the order given but for rows of users, which are nowhere.

    forces: (..., nm) as a `Solution` or a `Trajectory` has them, or the `Solution`.
    active: (..., nc) which hold; by default all.
    friction: one coefficient or (nc,); loops have no cones.

    >>> import saltus as sl
    >>> robot = sl.load_robot("quadruped")
    >>> feet = [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet]
    >>> q, zero = robot.reference_configurations["standing"], np.zeros(robot.nv)
    >>> solution = sl.ConstrainedDynamics(robot, feet).solve(q, zero, zero)
    >>> held_contacts(robot, q, feet, forces=solution).forces.shape
    (4, 3)
    """
    for constraint in constraints:
        constraint.check_model(model)
    if isinstance(forces, Solution):
        forces = forces.forces
    lead, count = q.shape[:-1], len(constraints)
    rows = sum(constraint.dim for constraint in constraints)
    values = filled(0.0 if forces is None else forces, (*lead, rows), "forces")
    holds = np.ones((*lead, count), bool) if active is None else filled(active, (*lead, count), "active") != 0
    cones = filled(friction, (*lead, count), "friction")
    placements = joint_placements(model, q)
    begins = np.cumsum([0, *(constraint.dim for constraint in constraints)])
    drawn = [k for k, constraint in enumerate(constraints) if not constraint.dofs]
    points, pushes, normals = (np.zeros((*lead, len(drawn), 3)) for _ in range(3))
    for place, k in enumerate(drawn):
        constraint = constraints[k]
        frame = placements[..., constraint.joint_a, :, :] @ constraint.placement_a
        along = np.zeros((*lead, 6))
        along[..., list(constraint.rows)] = values[..., begins[k] : begins[k + 1]]
        points[..., place, :] = frame[..., :3, 3]
        pushes[..., place, :] = np.einsum("...ij,...j->...i", frame[..., :3, :3], along[..., :3])
        normals[..., place, :] = constraint.placement_b[:3, 2] if constraint.joint_b == 0 else (0.0, 0.0, 1.0)
    holds, carries = holds[..., drawn], np.array([constraints[k].joint_b == 0 for k in drawn], bool)
    return Contacts(
        tuple(constraints[k].name for k in drawn),
        points,
        holds,
        np.where(holds[..., None], pushes, 0.0),
        normals,
        np.where(carries, cones[..., drawn], 0.0),
        holds & carries,
    )
