"""Makes the robots that saltus ships: `python -m tools.make_robots` writes their files to src/saltus/model/robots."""

from __future__ import annotations

from pathlib import Path

from tools.make_robots.biped import biped
from tools.make_robots.human import planar_human
from tools.make_robots.humanoid import humanoid, humanoid_hands
from tools.make_robots.machines import arm, cartpole, double_pendulum, four_bar
from tools.make_robots.quadruped import quadruped
from tools.make_robots.writers import mjcf, srdf, urdf

FOLDER = Path(__file__).parents[2] / "src" / "saltus" / "model" / "robots"
MAKERS = (quadruped, humanoid, humanoid_hands, biped, arm, double_pendulum, cartpole, planar_human, four_bar)


def files() -> dict[str, str]:
    """The text of every file, by its name."""
    texts = {}
    for make in MAKERS:
        robot, pose = make()
        if robot.loops:
            texts[f"{robot.name}.xml"] = mjcf(robot, pose)
        else:
            texts[f"{robot.name}.urdf"] = urdf(robot)
            texts[f"{robot.name}.srdf"] = srdf(robot, pose)
    return texts
