"""Plots of what optimal control has found, by matplotlib: costs by terms, gaps, controls, contact forces.

Every function takes a `ShootingProblem` and one result of it, and returns the `Figure`. Impacts take no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from saltus.model.checks import Array
from saltus.ocp.problem import OCPResult
from saltus.ocp.shooting_problem import ShootingProblem
from saltus.view.plans import check_result, contacts_of_nodes, first_row
from saltus.view.plots import LIMIT, _panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW_TERMS = 9
"""So many are named; what is left is one area."""


def plot_costs(problem: ShootingProblem, result: OCPResult) -> Figure:
    """What each term costs at each node, one upon the other, and the cost over iterations.

    >>> import saltus as sl
    >>> from saltus.ocp.motions import MOTIONS
    >>> exercise = MOTIONS["double_pendulum"]()
    >>> figure = plot_costs(exercise.problem, exercise.solve(max_iterations=2))
    >>> [axis.get_ylabel() for axis in figure.axes]
    ['cost of nodes', 'cost']
    """
    _times_of(problem, result)
    found = problem.term_values(result.xs, result.us).costs
    order = sorted(found, key=lambda name: -float(np.abs(found[name]).sum()))
    layers = {name: found[name] for name in order[:FEW_TERMS]}
    if order[FEW_TERMS:]:
        layers["others"] = np.sum([found[name] for name in order[FEW_TERMS:]], axis=0)
    figure, (axis, progress) = _panels(2, 1, size=(8.0, 3.4), share=False)
    axis.stackplot(np.arange(problem.T + 1), *layers.values(), labels=list(layers), step="mid")
    axis.set(ylabel="cost of nodes", xlabel="node", title=problem.model.name)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize="small")
    _over_iterations(progress, result.log.cost, "cost")
    return figure


def plot_gaps(problem: ShootingProblem, result: OCPResult) -> Figure:
    """How far each state is from where the node before leads to, positions and velocities, and how the largest gap closed.

    >>> import saltus as sl
    >>> from saltus.ocp.motions import MOTIONS
    >>> exercise = MOTIONS["double_pendulum"]()
    >>> figure = plot_gaps(exercise.problem, exercise.solve(max_iterations=2))
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['of positions', 'of velocities']
    """
    t, nv = _times_of(problem, result), problem.nv
    figure, (axis, progress) = _panels(2, 1, size=(8.0, 3.0), share=False)
    axis.plot(t, np.abs(result.gaps[:, :nv]).max(-1), label="of positions")
    axis.plot(t, np.abs(result.gaps[:, nv:]).max(-1), label="of velocities")
    axis.set(ylabel="largest gap [m, rad, /s]", xlabel="time [s]", title=problem.model.name)
    axis.legend()
    _over_iterations(progress, result.log.ffeas, "largest gap before")
    return figure


def plot_controls(problem: ShootingProblem, result: OCPResult) -> Figure:
    """The controls over time, a panel each, with `u_lower` and `u_upper` as dashed lines.

    >>> import saltus as sl
    >>> from saltus.ocp.motions import MOTIONS
    >>> exercise = MOTIONS["double_pendulum"]()
    >>> len(plot_controls(exercise.problem, exercise.solve(max_iterations=2)).axes)
    2
    """
    t, model = _times_of(problem, result), problem.model
    if not problem.nu:
        raise ValueError("there is nothing to plot: the problem has no controls")
    us = np.where(problem.controlled[:, None] > 0, result.us, np.nan)
    figure, axes = _panels(problem.nu, min(3, problem.nu))
    for m, (axis, dof) in enumerate(zip(axes, problem.terms.motors, strict=True)):
        joint = next(joint for joint in model.joints if joint.iv <= dof < joint.iv + joint.nv)
        axis.step(t[:-1], us[:, m], where="post")
        for bound in (problem.u_lower[m], problem.u_upper[m]):
            if np.isfinite(bound):
                axis.axhline(bound, **LIMIT)
        axis.set(title=joint.name, ylabel="control [N m, N]")
        axis.title.set_fontsize("medium")
    return figure


def plot_forces(problem: ShootingProblem, result: OCPResult) -> Figure:
    """Normal and tangential forces of contacts [N] over time, a panel each; dashed, what friction allows, where a cone
    asks for it.

    >>> import saltus as sl
    >>> robot = sl.load_robot("quadruped")
    >>> x0 = np.concatenate([robot.reference_configurations["standing"], np.zeros(robot.nv)])
    >>> feet = sl.robot_frames("quadruped").feet
    >>> terms = [sl.terms.State(reference=x0), sl.terms.Control(), *(sl.terms.FrictionCone(foot) for foot in feet)]
    >>> contacts = [sl.Contact(robot, foot) for foot in feet]
    >>> final = [sl.terms.State(reference=x0)]
    >>> problem = sl.ShootingProblem(robot, x0, [sl.Phase(feet, nodes=3)], terms, final, constraints=contacts)
    >>> len(plot_forces(problem, sl.FDDP(problem).solve(max_iterations=1)).axes)
    4
    """
    t = _times_of(problem, result)
    contacts = contacts_of_nodes(problem, result.xs[..., : problem.nq], result)
    if not contacts.names:
        raise ValueError("there is nothing to plot: the problem has no contacts")
    up = (contacts.forces * contacts.normals).sum(-1)
    aside = np.linalg.norm(contacts.forces - up[..., None] * contacts.normals, axis=-1)
    running = first_row(problem.controlled[None]) > 0  # impulses are none of forces
    figure, axes = _panels(len(contacts.names), min(2, len(contacts.names)), size=(5.5, 2.6))
    for k, (axis, name) in enumerate(zip(axes, contacts.names, strict=True)):
        for values, label, style in (
            (up, "normal", {}),
            (aside, "tangential", {}),
            (contacts.friction * up, "friction limit", LIMIT),
        ):
            if label != "friction limit" or contacts.friction[..., k].any():
                axis.step(t[:-1], np.where(running, values[:-1, k], np.nan), where="post", label=label, **style)
        axis.set(title=name, ylabel="force [N]")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def _times_of(problem: ShootingProblem, result: OCPResult) -> Array:
    """When nodes begin (T + 1,) [s], of one problem."""
    check_result(problem, result)
    if result.xs.ndim != 2:
        raise ValueError(f"the result is of a batch, {result.xs.shape[:-2]}, expected that of one problem")
    return np.concatenate([[0.0], np.cumsum(first_row(problem.dt)[:-1])])


def _over_iterations(axis: Any, values: Array, name: str) -> None:
    """On a logarithmic scale, where there is no zero."""
    axis.plot(np.arange(1, len(values) + 1), values, "o-", markersize=3)
    if len(values) and (values > 0).all():
        axis.set_yscale("log")
    axis.set(ylabel=name, xlabel="iteration")
