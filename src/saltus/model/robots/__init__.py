"""Robots by name: those that come with saltus and, where example-robot-data is installed, those of that package."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from saltus.model.checks import ModelError
from saltus.model.model import Model
from saltus.model.robots.srdf import load_srdf
from saltus.model.robots.table import EXAMPLES, SHIPPED, Robot
from saltus.model.sdf import load_sdf
from saltus.model.urdf import load_urdf

_FOLDER = Path(__file__).parent


class RobotFrames(NamedTuple):
    """The names of the frames by which a robot touches the world."""

    feet: tuple[str, ...]
    hands: tuple[str, ...]


def load_robot(name: str) -> Model:
    """The robot of this name (see `robot_names`), with `reference_configurations["standing"]` (nq,) among its poses.

    Shipped robots stand with their soles flat at z = 0, the centre of mass over them, loops closed; what no motor drives has
    an effort limit of zero. The others stand as their authors' files say, in neutral where those say nothing, with their
    feet near the ground.

    >>> robot = load_robot("quadruped")
    >>> robot
    Model('quadruped', nq=19, nv=18, njoints=14, nframes=35)
    >>> robot.reference_configurations["standing"][:3].round(2)  # the base [m]
    array([0. , 0. , 0.5])
    """
    folder, robot = _find(name)
    if robot.completed:
        model = robot.completed(folder / robot.file)
    else:
        load = load_sdf if robot.file.endswith(".sdf") else load_urdf
        model = load(folder / robot.file, floating_base=robot.floating_base)
    if robot.srdf:
        model = load_srdf(model, folder / robot.srdf)
    poses = dict(model.reference_configurations)
    standing = np.array(poses[robot.standing]) if robot.standing else model.neutral()
    standing[: len(robot.base)] = robot.base
    return model.replace(reference_configurations=poses | {"standing": standing})


def robot_names() -> tuple[str, ...]:
    """What `load_robot` knows here and now: the shipped robots, then those of example-robot-data if it is installed.

    >>> robot_names()[:5]
    ('quadruped', 'humanoid', 'humanoid_hands', 'biped', 'arm')
    """
    folder = _examples_folder()
    found = [name for name, robot in EXAMPLES.items() if folder and (folder / robot.file).exists()]
    return (*SHIPPED, *found)


def robot_frames(name: str) -> RobotFrames:
    """The frames of a robot's feet and hands, each in the order of the joints that move them: the k-th foot is that of the
    k-th leg in q, v and tau.

    >>> robot_frames("humanoid")
    RobotFrames(feet=('left_sole', 'right_sole'), hands=('left_hand', 'right_hand'))
    """
    _, robot = _find(name)
    return RobotFrames(robot.feet, robot.hands)


def _find(name: str) -> tuple[Path, Robot]:
    """The folder of the robot's files, and its entry in the table."""
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a robot, got {name!r}")
    if name in SHIPPED:
        return _FOLDER, SHIPPED[name]
    folder = _examples_folder()
    if name in EXAMPLES and folder:
        return folder, EXAMPLES[name]
    if name in EXAMPLES:
        raise ModelError(f"robot {name!r} is one of example-robot-data's: pip install example-robot-data")
    near = difflib.get_close_matches(name, [*SHIPPED, *EXAMPLES], n=3)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"known are {', '.join(robot_names())}"
    raise ModelError(f"there is no robot {name!r}; {hint}")


def _examples_folder() -> Path | None:
    """Where pip (below cmeel's prefix) or conda has put example-robot-data's robots; None if it is not installed."""
    prefixes = [*(Path(entry) / "cmeel.prefix" for entry in sys.path), Path(sys.prefix)]
    folders = (prefix / "share" / "example-robot-data" / "robots" for prefix in prefixes)
    return next((folder for folder in folders if folder.is_dir()), None)
