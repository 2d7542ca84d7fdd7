"""Makes the robots that saltus ships: `python -m tools.make_robots` writes their files to src/saltus/model/robots."""

from __future__ import annotations

from pathlib import Path

from tools.make_robots.biped import biped
from tools.make_robots.human import planar_human
from tools.make_robots.humanoid import humanoid, humanoid_hands
from tools.make_robots.machines import arm, cartpole, double_pendulum, four_bar
from tools.make_robots.mjcf import mjcf
from tools.make_robots.quadruped import quadruped
from tools.make_robots.sdf import sdf
from tools.make_robots.urdf import srdf, urdf

FOLDER = Path(__file__).parents[2] / "src" / "saltus" / "model" / "robots"
MAKERS = (quadruped, humanoid, humanoid_hands, biped, arm, double_pendulum, cartpole, planar_human, four_bar)


def files() -> dict[str, str]:
    """The text of every file that is shipped, by its name: URDF, SDF where there are loops, and the poses as SRDF."""
    texts = {}
    for make in MAKERS:
        robot, pose = make()
        kind, write = ("sdf", sdf) if robot.loops else ("urdf", urdf)
        texts[f"{robot.name}.{kind}"] = write(robot)
        texts[f"{robot.name}.srdf"] = srdf(robot, pose)
    return texts


def mjcf_texts() -> dict[str, str]:
    """The same robots as MJCF, by their names, to be compared with."""
    return {robot.name: mjcf(robot, pose) for robot, pose in (make() for make in MAKERS)}
