"""What optimal control has found, as pictures show it: configurations, contacts and forces of a result."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from saltus.dynamics.kinematics import joint_placements
from saltus.model.checks import Array
from saltus.ocp.problem import OCPResult
from saltus.ocp.shooting_problem import ShootingProblem
from saltus.ocp.terms import FrictionCone
from saltus.view.contacts import Contacts


class Plan(NamedTuple):
    """A result at the times of its nodes, without impacts, which take no time."""

    t: Array  # (N,) [s], 0 at first
    q: Array  # (..., N, nq)
    contacts: Contacts  # leading axes (..., N); of the last node, forces are those of the one before


def plan_of(problem: ShootingProblem, result: OCPResult) -> Plan:
    """The configurations and contacts of a result."""
    check_result(problem, result)
    ends = np.concatenate([[0.0], np.cumsum(first_row(problem.dt)[:-1])])
    kept = np.flatnonzero(np.append(problem.controlled, 1.0))
    acting = np.append(kept[:-1], kept[-2:-1] if len(kept) > 1 else kept)
    q = result.xs[..., : problem.nq]
    contacts = contacts_of_nodes(problem, q, result)
    points = contacts.points[..., kept, :, :]
    return Plan(ends[kept], q[..., kept, :], replace(nodes_of(contacts, acting), points=points))


def nodes_of(contacts: Contacts, rows: Any) -> Contacts:
    """Those of some nodes."""
    flat = {name: getattr(contacts, name)[..., rows, :] for name in ("active", "friction", "carrying")}
    deep = {name: getattr(contacts, name)[..., rows, :, :] for name in ("points", "forces", "normals")}
    return Contacts(contacts.names, **flat, **deep)


def contacts_at(plan: Plan, rows: Any) -> Contacts:
    """Those of some nodes, with the axis of robots that scenes have."""
    found = nodes_of(plan.contacts, rows)
    if found.active.ndim > 2:
        return found
    return replace(
        found, **{each.name: getattr(found, each.name)[None] for each in fields(found) if each.name != "names"}
    )


def contacts_of_nodes(problem: ShootingProblem, q: Array, result: OCPResult) -> Contacts:
    """Of all nodes, in the world; at impacts, forces are impulses."""
    forces, lead = problem.calc_nodes(result.xs, result.us).forces, q.shape[:-1]
    cones = {term.contact: term for term in problem.terms.terms if isinstance(term, FrictionCone)}
    ends = np.cumsum([0, *(constraint.dim for constraint in problem.dynamics.constraints)])
    held = [k for k, each in enumerate(problem.dynamics.constraints) if each.joint_b == 0 and not each.dofs]
    count, placements = len(held), joint_placements(problem.model, q)
    points, pushes, normals = np.zeros((3, *lead, count, 3))
    friction, active = np.zeros((*lead, count)), np.zeros((*lead, count), bool)
    for i, k in enumerate(held):
        constraint = problem.dynamics.constraints[k]
        frame = placements[..., constraint.joint_a, :, :] @ constraint.placement_a
        R, force = frame[..., :3, :3], np.zeros((*lead, 6))
        force[..., list(constraint.rows)] = forces[..., ends[k] : ends[k + 1]]
        points[..., i, :], pushes[..., i, :] = frame[..., :3, 3], (R @ force[..., :3, None])[..., 0]
        active[..., i], normals[..., i, 2] = problem.active[..., k] > 0, 1.0
        cone = cones.get(constraint.name)
        if cone is not None:
            friction[..., i], up = cone.friction, cone.turn[:, 2]
            normals[..., i, :] = R @ up if cone.axes == "local" else up
    names = tuple(problem.dynamics.constraints[k].name for k in held)
    return Contacts(names, points, active, np.where(active[..., None], pushes, 0.0), normals, friction, active)


def first_row(array: Array) -> Array:
    """Of one problem of a batch."""
    flat: Array = array.reshape(-1, array.shape[-1])[0]
    return flat


def check_result(problem: Any, result: Any) -> None:
    """Complains of what does not belong together."""
    if not isinstance(problem, ShootingProblem) or not isinstance(result, OCPResult):
        given = f"{type(problem).__name__} and {type(result).__name__}"
        raise TypeError(f"what was given is a {given}, expected a ShootingProblem and an OCPResult")
    shape = (problem.T + 1, problem.nx)
    if result.xs.shape[-2:] != shape:
        raise ValueError(
            f"xs of the result has shape {result.xs.shape}, expected (..., {shape[0]}, {shape[1]}) of the problem"
        )
