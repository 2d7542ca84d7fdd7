"""`saltus info`: what a robot is made of."""

from __future__ import annotations

from collections import Counter

import numpy as np
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from saltus.cli.console import FloatingOption, RobotArgument, load, print_whole
from saltus.model import Joint, JointKind, Model, RobotFrames, robot_frames, robot_names
from saltus.model.loops import DIMENSIONS

AXES = {(1, 0, 0): "x", (0, 1, 0): "y", (0, 0, 1): "z", (-1, 0, 0): "-x", (0, -1, 0): "-y", (0, 0, -1): "-z"}


def info(robot: RobotArgument, floating: FloatingOption = None) -> None:
    """Show what a robot is made of: joints, masses, limits, loops, motors, poses.

    Examples:

      [cyan]saltus info quadruped[/cyan]
      [cyan]saltus info my_robot.urdf --floating[/cyan]
    """
    model = load(robot, floating)
    print_whole(_tree(model))
    print_whole("")
    print_whole(_summary(model, robot))


def _tree(model: Model) -> Tree:
    root = Tree(f"[bold]{escape(model.name)}[/bold]", guide_style="dim")
    branches = [root]
    for joint in model.joints[1:]:
        branches.append(branches[joint.parent].add(_described(model, joint)))
    return root


def _described(model: Model, joint: Joint) -> str:
    """One joint and the body it moves, in one line."""
    kind = joint.kind.name.lower()
    if joint.kind.has_axis:
        axis = joint.axis
        kind += " " + AXES.get(tuple(axis.round(6).tolist()), f"({', '.join(f'{part:.3g}' for part in axis)})")
    parts = [f"[cyan]{escape(joint.name)}[/cyan]", kind, f"[green]{joint.mass:.3g} kg[/green]", *_limits(model, joint)]
    if joint.mimic:
        parts.append(f"follows {escape(joint.mimic.primary)} x {joint.mimic.ratio:g} + {joint.mimic.offset:g}")
    return "  ".join(parts)


def _limits(model: Model, joint: Joint) -> list[str]:
    """Position, velocity and effort limits of a joint that has one degree of freedom."""
    if joint.nv != 1:
        return []
    length = joint.kind == JointKind.PRISMATIC
    limits = []
    if joint.nq == 1:
        low, high = model.lower_position_limit[joint.iq], model.upper_position_limit[joint.iq]
        if np.isfinite([low, high]).any():
            limits.append(f"{low:.3g} ... {high:.3g} {'m' if length else 'rad'}")
    for limit, unit in ((model.velocity_limit, ("rad/s", "m/s")), (model.effort_limit, ("N m", "N"))):
        if np.isfinite(limit[joint.iv]):
            limits.append(f"{limit[joint.iv]:.3g} {unit[length]}")
    return [f"[dim]{limit}[/dim]" for limit in limits]


def _summary(model: Model, robot: str) -> Table:
    named = robot_frames(robot) if robot in robot_names() else RobotFrames((), ())
    kinds = Counter(frame.kind.name.lower().replace("_", " ") for frame in model.frames)
    rows = {
        "sizes": f"nq = {model.nq}, nv = {model.nv}",
        "joints": f"{model.nb}",
        "total mass": f"{model.total_mass:.4g} kg",
        "frames": f"{len(model.frames)} ({', '.join(f'{count} {kind}' for kind, count in kinds.items())})",
        "feet": ", ".join(named.feet),
        "hands": ", ".join(named.hands),
        "loops": ", ".join(
            f"{loop.name} ({DIMENSIONS[loop.dim]}: {loop.frame_a} = {loop.frame_b})" for loop in model.loops
        ),
        "actuators": ", ".join(actuator.name for actuator in model.actuators),
        "poses": ", ".join(model.reference_configurations),
        "shapes": f"{len(model.shapes)}",
    }
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, value in rows.items():
        if value:
            table.add_row(name, escape(value))
    return table
