"""Makes the pictures of the README and the documentation: `python -m tools.pictures` writes them to docs/figures, or those
that are named: `python -m tools.pictures pile`.

They are replay files (`sl.view.save_replay`), opened in a headless Chromium and looked at from a good place; and plots.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import saltus as sl
from examples import balance, constrained, pile, slip, staircase, trot, walk
from tests.view.browser import launched, opened

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
PREPARE = """
([direction, distance, target]) => {
  for (const part of document.querySelectorAll("header, #extras, #player")) part.hidden = true;
  world.traverse((object) => {
    if (!skins.some((skin) => skin.material === object.material)) return;
    Object.assign(object.material, { opacity: 1, transparent: false, depthWrite: true });
    object.castShadow = true;
  });
  const away = camera.position.distanceTo(middle) * distance;
  if (target) controls.target.set(...target);
  camera.position.copy(new THREE.Vector3(...direction).setLength(away).add(controls.target));
  controls.update();
  paint();
}
"""
"""No controls, all robots solid, the camera at its place."""


def tumble() -> dict[str, Any]:
    """A quadruped thrown into a somersault, at seven times of its flight."""
    robot = sl.load_robot("quadruped")
    q, v = robot.reference_configurations["standing"].copy(), np.zeros(robot.nv)
    v[:6] = 7.0, 0.0, 4.6, 0.0, 8.9, 0.0
    damping = np.r_[np.zeros(6), np.full(robot.nv - 6, 2.0)]
    path = [q]
    for _ in range(930):
        v = v + 1e-3 * sl.aba(robot, q, v, -damping * v)
        q = sl.integrate(robot, q, 1e-3 * v)
        path.append(q)
    return {"model": robot, "q": np.array(path)[::155][:, None], "layout": "overlay"}


def standing() -> dict[str, Any]:
    """A humanoid on its soles, each of which carries half of its weight."""
    robot = sl.load_robot("humanoid")
    forces = np.tile([0.0, 0.0, -0.5 * robot.total_mass * robot.gravity[2]], (2, 1))
    return {
        "model": robot,
        "q": robot.reference_configurations["standing"],
        "contacts": sl.robot_frames("humanoid").feet,
        "forces": forces,
        "friction": 0.7,
    }


def swaying() -> dict[str, Any]:
    """A biped with closed loops in its legs, its centre of mass led over the left foot."""
    scene = constrained.SCENES["biped_sway"]()
    motion = constrained.simulate(scene, 2.5)
    forces = constrained.contact_forces(scene, motion)
    return {"model": scene.robot, "q": motion.q[-1], "contacts": scene.contacts, "forces": forces[-1], "friction": 0.7}


def pushed() -> dict[str, Any]:
    """A quadruped on ice before the push and at two times after it, and the one on stone at the end."""
    motion = slip.slip()
    rows = np.searchsorted(motion.t, [0.99, 1.66, 2.7])
    q = np.concatenate([motion.q[0, rows], motion.q[1, -1:]])
    return {"model": motion.simulator.model, "q": q[:, None], "terrain": slip.world(), "layout": "overlay"}


def tumbling() -> dict[str, Any]:
    """A humanoid at five times of its way down the stairs."""
    motion = staircase.tumble()
    q = motion.q[np.searchsorted(motion.t, [0.0, 0.75, 1.4, 2.4, 3.6])]
    return {"model": motion.simulator.model, "q": q[:, None], "terrain": staircase.world(), "layout": "overlay"}


def piled() -> dict[str, Any]:
    motion = pile.pile()
    return {"model": motion.simulator.model, "q": motion.q[-1], "terrain": pile.tray()}


def walking(name: str, seconds: float, speed: float) -> dict[str, Any]:
    """A biped at five times of its walk."""
    motion, _ = walk.walk(name, seconds, speed)
    q = motion.q[np.searchsorted(motion.t, np.linspace(0.4 * seconds, seconds, 5))]
    return {"model": motion.simulator.model, "q": q[:, None], "terrain": sl.Ground(), "layout": "overlay"}


def trotting() -> dict[str, Any]:
    """A quadruped at four times of its trot."""
    motion, _ = trot.trot(6.0, speed=0.8)
    q = motion.q[np.searchsorted(motion.t, [1.9, 3.2, 4.5, 5.8])]
    return {"model": motion.simulator.model, "q": q[:, None], "terrain": sl.Ground(), "layout": "overlay"}


def on_one_foot() -> dict[str, Any]:
    """A humanoid on its left foot, with the forces that its controller wants there."""
    motion, brain = balance.balance("one_foot", 5.0)
    command = brain.record.commands[-1]
    forces = np.array([command.forces[:4].sum(axis=0)])
    robot = motion.simulator.model
    return {
        "model": robot,
        "q": motion.q[-1],
        "contacts": ["left_sole"],
        "forces": forces,
        "friction": balance.FRICTION,
    }


def jumping() -> dict[str, Any]:
    """A quadruped's jump at five times, the last before and the first after it among them."""
    exercise = sl.gaits.jump(sl.load_robot("quadruped"), length=0.6, height=0.2).exercise()
    problem = exercise.problem
    rows = [0, 24, 50, 62, problem.T]
    q = exercise.solve().xs[rows, : problem.nq]
    q[:, 0] += 0.45 * np.arange(len(rows))  # further apart than they are
    return {"model": problem.model, "q": q[:, None], "terrain": sl.Ground(), "layout": "overlay"}


def turning() -> dict[str, Any]:
    """An astronaut at six times of the turn, side by side."""
    exercise = sl.motions.MOTIONS["astronaut"]()
    problem = exercise.problem
    q = exercise.solve().xs[:: problem.T // 5, : problem.nq]
    q[:, 1] += 1.3 * np.arange(len(q))
    return {"model": problem.model, "q": q[:, None], "layout": "overlay"}


def draw_walk(file: Path) -> None:
    """Torques, forces and cones of the last two seconds of Cassie's walk."""
    _, brain = walk.walk("cassie", 8.0, 0.4)
    brain.record.draw(file, 6.0, 8.0)


class Picture(NamedTuple):
    scene: Callable[[], dict[str, Any]]
    size: tuple[int, int]  # pixels
    direction: tuple[float, float, float]  # to the camera
    distance: float  # relative to the replay's own
    target: tuple[float, float, float] | None = None  # what it looks at, if not the middle of all


PICTURES = {
    "tumble": Picture(tumble, (1200, 460), (0.05, -1.0, 0.2), 0.42),
    "standing": Picture(standing, (900, 560), (1.0, -0.7, 0.3), 0.95),
    "swaying": Picture(swaying, (900, 560), (1.0, -0.7, 0.25), 0.95),
    "slip": Picture(pushed, (1200, 460), (0.3, -1.0, 0.5), 0.52, (0.7, -0.5, 0.2)),
    "staircase": Picture(tumbling, (1200, 620), (0.7, -1.0, 0.3), 0.78, (1.0, 0.0, 1.05)),
    "walk-cassie": Picture(partial(walking, "cassie", 8.0, 0.4), (1200, 460), (0.4, -1.0, 0.2), 0.6),
    "walk-biped": Picture(partial(walking, "biped", 8.0, 0.5), (1200, 460), (0.4, -1.0, 0.2), 0.6),
    "trot": Picture(trotting, (1200, 460), (0.3, -1.0, 0.4), 0.6),
    "one-foot": Picture(on_one_foot, (900, 560), (1.0, -0.5, 0.2), 0.95),
    "jump": Picture(jumping, (1200, 460), (0.15, -1.0, 0.2), 0.42),
    "astronaut": Picture(turning, (1200, 400), (1.0, 0.0, 0.1), 0.36),
    "pile": Picture(piled, (900, 560), (0.75, -1.0, 0.75), 0.8, (0.0, 0.0, 0.15)),
}

PLOTS = {"walk-cassie-forces": draw_walk}


def main(names: Sequence[str]) -> None:
    for name in names or PLOTS:
        if name in PLOTS:
            PLOTS[name](FIGURES / f"{name}.png")
            print(f"wrote {FIGURES / name}.png")
    with tempfile.TemporaryDirectory() as folder, launched() as browser:
        for name in [name for name in names if name not in PLOTS] if names else PICTURES:
            scene, (width, height), *camera = PICTURES[name]
            file = sl.view.save_replay(Path(folder) / f"{name}.html", **scene())
            with opened(browser, file.as_uri(), {"width": width, "height": height}) as page:
                page.evaluate(PREPARE, camera)
                page.wait_for_timeout(2000)
                page.screenshot(path=FIGURES / f"{name}.png")
            print(f"wrote {FIGURES / name}.png: {(FIGURES / f'{name}.png').stat().st_size // 1000} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
