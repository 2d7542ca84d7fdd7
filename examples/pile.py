"""Fifty balls and rods fall into a tray and come to rest as a pile.

    python examples/pile.py             what became of them, and a replay in the folder `demo`
    python examples/pile.py --bodies 20 --view

They are one model, free flyers side by side, with 1225 pairs that may touch. A step solves all contacts of the pile at once;
its cost grows with the cube of how many hold.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import saltus as sl

RADIUS, ROD, MASS = 0.1, (0.07, 0.24), 1.0  # m; radius and length of its straight part; kg
SIDE, WALL, THICK = 1.2, 0.3, 0.08  # of the tray [m]
COLORS = ((0.85, 0.37, 0.13, 1.0), (0.16, 0.47, 0.55, 1.0), (0.93, 0.72, 0.25, 1.0), (0.78, 0.79, 0.82, 1.0))
DT = 4e-3  # s


def bodies(count: int) -> sl.Model:
    """Balls, and a rod for every third of them."""
    builder = sl.ModelBuilder("pile")
    for k in range(count):
        joint = builder.add_joint(f"body_{k}", "free_flyer")
        if k % 3:
            kind, size, inertia = "sphere", (RADIUS,), 0.4 * MASS * RADIUS**2 * np.eye(3)
        else:  # nearly that of a cylinder
            along, across = 0.5 * ROD[0] ** 2, 0.25 * ROD[0] ** 2 + (ROD[1] + ROD[0]) ** 2 / 12.0
            kind, size, inertia = "capsule", ROD, MASS * np.diag([across, across, along])
        builder.add_body(joint, MASS, inertia=inertia)
        builder.add_shape(joint, kind, size, color=COLORS[k % 4])
        builder.add_collider(joint, kind, size)
    return builder.build()


def tray() -> sl.Terrain:
    """A floor with four walls."""
    half, walls = 0.5 * (SIDE + THICK), []
    for x, y in ((half, 0.0), (-half, 0.0), (0.0, half), (0.0, -half)):
        place = np.eye(4)
        place[:3, 3] = x, y, 0.5 * WALL
        size = (THICK, SIDE + 2.0 * THICK, WALL) if x else (SIDE, THICK, WALL)
        walls.append(sl.Box(size, place, friction=0.5))
    return sl.Terrain([sl.Ground(friction=0.5), *walls])


def scattered(count: int) -> np.ndarray:
    """(7 count,) over the tray, nine in a layer, turned at random."""
    rng = np.random.default_rng(0)
    layer, place = np.divmod(np.arange(count), 9)
    cell = SIDE / 3.2
    x, y = cell * (place % 3 - 1), cell * (place // 3 - 1)
    positions = np.stack([x, y, 0.3 + 0.42 * layer], axis=-1) + rng.uniform(-0.04, 0.04, (count, 3))
    turns = rng.normal(size=(count, 4))
    return np.concatenate([positions, turns / np.linalg.norm(turns, axis=-1, keepdims=True)], axis=-1).ravel()


def pile(count: int = 50, seconds: float = 1.6) -> sl.Motion:
    robot = bodies(count)
    simulator = sl.Simulator(robot, tray(), dt=DT, most_contacts=5 * count)
    return simulator.rollout(scattered(count), np.zeros(robot.nv), duration=seconds, every=5)


def main(count: int, folder: Path, view: bool) -> None:
    motion = pile(count)
    contacts, speeds = motion.simulator.contacts(motion.q[-1]), motion.v[-1].reshape(count, 6)[:, :3]
    load = motion.contact_forces[-1, motion.simulator.slot_bodies[:, 1] == 0, 2].sum()
    print(
        f"{count} bodies, {motion.touching[-1].sum()} contacts at the end, the deepest {-1e3 * contacts.gap.min():.2g} mm"
    )
    print(f"the fastest moves at {np.linalg.norm(speeds, axis=-1).max():.2g} m/s; the tray carries {load:.1f} N")
    print(f"worst status {sl.Status(motion.status.max()).name}, largest residual {motion.residuals.max():.1e} m/s")
    folder.mkdir(exist_ok=True)
    print(f"wrote {sl.view.save_replay(folder / 'pile.html', motion, title=f'{count} bodies')}")
    if view:
        with sl.view.show(motion, play=True) as viewer:
            input(f"open {viewer.url} in a browser; Enter ends ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Balls and rods fall into a tray.")
    parser.add_argument("--bodies", dest="count", type=int, default=50, help="how many")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where the replay goes")
    parser.add_argument("--view", action="store_true", help="open the viewer")
    main(**vars(parser.parse_args()))
