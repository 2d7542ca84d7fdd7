"""Plots of a motion, by matplotlib: joints against their limits, energy, centre of mass over its support, contact forces
against friction.

Every function returns the `Figure`: show it with `matplotlib.pyplot.show()`, or `figure.savefig(...)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from saltus.arrays import real_numbers
from saltus.dynamics.centroidal import center_of_mass
from saltus.dynamics.energy import kinetic_energy, potential_energy
from saltus.model.checks import Array
from saltus.model.joints import Joint, JointKind
from saltus.model.model import Model
from saltus.model.parameters import refuse_several
from saltus.view.contacts import contacts_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMIT = {"color": "tab:red", "linestyle": "--", "linewidth": 1.0}
AXES = ("x", "y", "z", "about x", "about y", "about z")
COORDINATES = {  # names of what a joint has several of, in q and in v
    JointKind.CONTINUOUS: (("cos", "sin"), ("",)),
    JointKind.PLANAR: (("x", "y", "cos", "sin"), ("x", "y", "about z")),
    JointKind.SPHERICAL: (("qx", "qy", "qz", "qw"), AXES[3:]),
    JointKind.TRANSLATION: (AXES[:3], AXES[:3]),
    JointKind.FREE_FLYER: ((*AXES[:3], "qx", "qy", "qz", "qw"), AXES),
}


def plot_trajectory(
    model: Model,
    t: ArrayLike,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    joints: Sequence[str | int] | None = None,
) -> Figure:
    """Positions `q` (T, nq), velocities `v` (T, nv) and torques `tau` (T, nv) of joints over time `t` (T,) [s], as many of
    them as are given, a panel each, with the model's limits as dashed lines.

    joints: names or indices; by default all.

    >>> import saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=4, kinds=["revolute"])
    >>> t = np.linspace(0, 1, 20)
    >>> q = sl.interpolate(robot, robot.neutral(), sl.random_configuration(robot, seed=1), t)
    >>> figure = plot_trajectory(robot, t, q)
    >>> len(figure.axes)
    4
    """
    t = _times(t)
    if isinstance(joints, str):
        raise TypeError(f"joints is {joints!r}, expected a list of names or indices")
    indices = range(1, model.njoints) if joints is None else [model.joint_index(joint) for joint in joints]
    chosen = [model.joints[index] for index in indices if not model.joints[index].mimic]
    rows = [
        ("position", q, model.nq, "q", (model.lower_position_limit, model.upper_position_limit)),
        ("velocity", v, model.nv, "v", (-model.velocity_limit, model.velocity_limit)),
        ("torque", tau, model.nv, "tau", (-model.effort_limit, model.effort_limit)),
    ]
    given = [
        (what, _rows(values, t, width, name), limits)
        for what, values, width, name, limits in rows
        if values is not None
    ]
    if not given or not chosen:
        raise ValueError("there is nothing to plot: expected q, v or tau, and at least one joint")
    panels = [(joint, *row) for joint in chosen for row in given]
    columns = len(given) if len(given) > 1 else min(4, int(np.ceil(np.sqrt(len(panels)))))
    figure, axes = _panels(len(panels), columns)
    for axis, (joint, what, values, limits) in zip(axes, panels, strict=True):
        _plot_joint(axis, joint, what, t, values, limits)
    return figure


def plot_energy(model: Model, t: ArrayLike, q: ArrayLike, v: ArrayLike) -> Figure:
    """Kinetic, potential and total energy [J] over time `t` (T,) [s] of a motion `q` (T, nq), `v` (T, nv).

    >>> import saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=4)
    >>> figure = plot_energy(robot, [0.0, 1.0], np.tile(robot.neutral(), (2, 1)), np.zeros((2, robot.nv)))
    >>> len(figure.axes[0].lines)
    3
    """
    refuse_several(model, "plot_energy")
    t = _times(t)
    q, v = _rows(q, t, model.nq, "q"), _rows(v, t, model.nv, "v")
    kinetic, potential = kinetic_energy(model, q, v), potential_energy(model, q)
    figure, (axis,) = _panels(1, 1, size=(7.0, 4.0))
    for name, values in (("kinetic", kinetic), ("potential", potential), ("total", kinetic + potential)):
        axis.plot(t, values, label=name, color="black" if name == "total" else None)
    axis.set(ylabel="energy [J]", title=model.name)
    axis.legend()
    return figure


def plot_center_of_mass(
    model: Model, t: ArrayLike, q: ArrayLike, contacts: Sequence[str | int] = (), active: ArrayLike | None = None
) -> Figure:
    """The way of the centre of mass from above for `q` (T, nq), its colour the time `t` (T,) [s], with the support polygons
    of the contact frames that touch (`active` (T, K), by default all); each polygon once, from when it begins.

    >>> import saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=4)
    >>> q = sl.random_configuration(robot, seed=1, shape=5)
    >>> plot_center_of_mass(robot, np.arange(5.0), q, [frame.name for frame in robot.frames[-3:]]).axes[0].get_xlabel()
    'x [m]'
    """
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    t = _times(t)
    q = _rows(q, t, model.nq, "q")
    center = np.asarray(center_of_mass(model, q))
    figure, (axis,) = _panels(1, 1, size=(7.5, 5.5))
    colors, scale = colormaps["viridis"], Normalize(t[0], t[-1])
    if contacts:
        touching = contacts_of(model, q, contacts, active=active)
        begins = np.r_[True, (touching.active[1:] != touching.active[:-1]).any(axis=1)]
        for frame in np.flatnonzero(begins & touching.active.any(axis=1)):
            corners, color = touching.support[frame], colors(scale(t[frame]))
            axis.fill(corners[:, 0], corners[:, 1], facecolor=(*color[:3], 0.15), edgecolor=color, linewidth=1.2)
            axis.plot(corners[:, 0], corners[:, 1], "o", color=color, markersize=4)
    axis.plot(center[:, 0], center[:, 1], color="0.6", linewidth=1.0)
    dots = axis.scatter(center[:, 0], center[:, 1], c=t, s=12, cmap=colors, norm=scale, zorder=3)
    axis.set(xlabel="x [m]", ylabel="y [m]", title=f"{model.name}: centre of mass from above")
    axis.set_aspect("equal", adjustable="datalim")
    figure.colorbar(dots, ax=axis, label="time [s]", location="bottom", aspect=40)
    return figure


def plot_contact_forces(
    t: ArrayLike, forces: ArrayLike, friction: float, names: Sequence[str] | None = None, normal: ArrayLike = (0, 0, 1)
) -> Figure:
    """Normal and tangential contact forces `forces` (T, K, 3) [N] over time `t` (T,) [s], a panel for each contact.

    Dashed: the friction limit, the coefficient times the normal force. Where the tangential force is above it, the contact
    would slip, and the area between is filled.

    >>> figure = plot_contact_forces([0, 1], [[[1.0, 0, 5.0]], [[3.0, 0, 4.0]]], friction=0.5, names=["foot"])
    >>> figure.axes[0].get_title()
    'foot'
    """
    t, pushes = _times(t), real_numbers(forces, "forces").astype(np.float64)
    if pushes.ndim != 3 or pushes.shape[0] != len(t) or pushes.shape[2] != 3 or not pushes.size:
        raise ValueError(f"forces has shape {pushes.shape}, expected ({len(t)}, K, 3)")
    names = [f"contact {k}" for k in range(pushes.shape[1])] if names is None else names
    if len(names) != pushes.shape[1]:
        raise ValueError(f"there are {len(names)} names, expected {pushes.shape[1]}: one for each contact")
    if not np.isfinite(pushes).all():
        raise ValueError("forces contains NaN or an infinity")
    coefficient, up = real_numbers(friction, "friction"), real_numbers(normal, "normal").astype(np.float64)
    if coefficient.ndim or not 0 <= coefficient < np.inf:
        raise ValueError(f"friction is {friction}, expected one coefficient, not negative")
    if up.shape != (3,) or not 0 < np.linalg.norm(up) < np.inf:
        raise ValueError(f"normal is {up.tolist()}, expected a direction of 3 numbers")
    up /= np.linalg.norm(up)
    along = pushes @ up
    across = np.linalg.norm(pushes - along[..., None] * up, axis=-1)
    limit = friction * along
    figure, axes = _panels(len(names), min(2, len(names)), size=(5.5, 2.8))
    for k, (axis, name) in enumerate(zip(axes, names, strict=True)):
        axis.plot(t, along[:, k], label="normal")
        axis.plot(t, across[:, k], label="tangential")
        axis.plot(t, limit[:, k], label=f"friction limit ({friction:g} times normal)", **LIMIT)
        slips = across[:, k] > limit[:, k]
        axis.fill_between(t, limit[:, k], across[:, k], where=slips, color="tab:red", alpha=0.25, interpolate=True)
        axis.set(title=name, ylabel="force [N]")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def _plot_joint(axis: Any, joint: Joint, what: str, t: Array, values: Array, limits: tuple[Array, Array]) -> None:
    position = what == "position"
    part = slice(joint.iq, joint.iq + joint.nq) if position else slice(joint.iv, joint.iv + joint.nv)
    several = COORDINATES.get(joint.kind, (("",), ("",)))[0 if position else 1]
    lines = [axis.plot(t, column, label=name)[0] for column, name in zip(values[:, part].T, several, strict=True)]
    bounds = np.stack([limits[0][part], limits[1][part]], axis=1)
    if position:
        bounds[joint.kind.unit_coordinates] = np.inf  # that of a quaternion never binds
    for line, pair in zip(lines, bounds, strict=True):
        style = LIMIT if len(lines) == 1 else {**LIMIT, "color": line.get_color()}
        for bound in pair[np.isfinite(pair)]:
            axis.axhline(bound, **style)
    axis.set(title=joint.name, ylabel=f"{what} [{_unit(joint.kind, what)}]")
    axis.title.set_fontsize("medium")
    if len(lines) > 1:
        axis.legend(fontsize="x-small", ncols=2)


def _unit(kind: JointKind, what: str) -> str:
    angle, length = {"position": ("rad", "m"), "velocity": ("rad/s", "m/s"), "torque": ("N m", "N")}[what]
    if kind in (JointKind.PRISMATIC, JointKind.TRANSLATION):
        return length
    if kind in (JointKind.PLANAR, JointKind.FREE_FLYER):
        return f"{length}, {angle}" if what != "position" else f"{length}, 1"
    return angle if what != "position" or kind == JointKind.REVOLUTE else "1"


def _panels(
    count: int, columns: int, size: tuple[float, float] = (3.6, 2.2), share: bool = True
) -> tuple[Figure, list[Any]]:
    """A figure of so many panels, which share the time axis or have axes of their own."""
    import matplotlib.pyplot as plt

    rows = -(-count // columns)
    figure, grid = plt.subplots(
        rows,
        columns,
        figsize=(columns * size[0], rows * size[1] + 0.4),
        sharex=share,
        squeeze=False,
        layout="constrained",
    )
    for axis in grid.flat[count:]:
        axis.remove()
    axes = list(grid.flat[:count])
    for index, axis in enumerate(axes):
        axis.grid(alpha=0.3)
        if index + columns >= count:
            axis.set_xlabel("time [s]")
            axis.tick_params(labelbottom=True)
    return figure, axes


def _times(t: ArrayLike) -> Array:
    times = real_numbers(t, "t").astype(np.float64)
    if times.ndim != 1 or not times.size:
        raise ValueError(f"t has shape {times.shape}, expected (T,)")
    if not np.isfinite(times).all():
        raise ValueError("t contains NaN or an infinity")
    return times


def _rows(values: ArrayLike, t: Array, width: int, name: str) -> Array:
    array = real_numbers(values, name).astype(np.float64)
    if array.shape != (len(t), width):
        raise ValueError(f"{name} has shape {array.shape}, expected ({len(t)}, {width})")
    return array
