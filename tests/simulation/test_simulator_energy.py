"""What contacts do to energy: impulses take it away, and what has come to rest has less than at the start."""

from __future__ import annotations

import numpy as np
import pytest

import saltus as sl
from tests.simulation.bodies import free, pose, world

SIZES = {"sphere": [0.06], "capsule": [0.04, 0.12], "box": [0.14, 0.1, 0.08], "cylinder": [0.05, 0.1]}
PILE = ("sphere", "box", "capsule") * 3
GROUND = sl.Ground(friction=0.5)
SLOPE = sl.Ground(normal=(-0.3, 0.0, 1.0), friction=0.2)
BOUNCY = sl.Ground(friction=0.5, restitution=0.6)
STAIRS = [GROUND, sl.Stairs(start=(-0.3, 0, 0), steps=4, height=0.1, depth=0.2, friction=0.5)]

SCENES = [
    *(((kind,), GROUND) for kind in SIZES), *(((kind,), STAIRS) for kind in SIZES), (PILE, GROUND), (PILE, STAIRS),
    (("box",), SLOPE), (("cylinder",), SLOPE), (("box",), BOUNCY), (("sphere", "capsule") * 3, BOUNCY),
]  # fmt: skip


def dropped(kinds: tuple[str, ...], seed: int) -> tuple[sl.Model, np.ndarray, np.ndarray]:
    """Bodies above the ground and each other, turned and moving at random."""
    rng = np.random.default_rng(seed)
    model = free(*((kind, SIZES[kind]) for kind in kinds), mass=0.7)
    places = [
        pose((*rng.uniform(-0.1, 0.1, 2), 0.6 + 0.25 * n), rng.normal(size=3), rng.uniform(0, 2))
        for n in range(len(kinds))
    ]
    return model, np.concatenate(places), 0.5 * rng.normal(size=model.nv)


def kinetic(model: sl.Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.asarray(sl.kinetic_energy(model, q, v))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kinds, terrain", SCENES)
def test_impulses_take_energy(kinds: tuple[str, ...], terrain: object, seed: int) -> None:
    """Just after impulses, against the same step in empty space. Bodies keep their velocities while they turn (the moments
    of boxes change along the world's axes, not their energy), so that both can be told after the step."""
    model, q, v = dropped(kinds, seed)
    sim, space = sl.Simulator(model, terrain), sl.Simulator(model, self_collision=False)  # type: ignore[arg-type]
    motion = sim.rollout(q, v, duration=2.5)
    before, gaps = motion.q[:-1], sim.contacts(motion.q[:-1]).gap.min(axis=-1)
    freely = space.step(before, motion.v[:-1])
    was, became = kinetic(model, freely.q, freely.v), kinetic(model, motion.q[1:], motion.v[1:])
    hit = motion.touching[1:].any(axis=-1)
    assert (hit & (gaps >= 0)).sum() > 20
    assert (became[hit & (gaps >= 0)] <= was[hit & (gaps >= 0)] * (1 + 1e-9)).all()
    energy = kinetic(model, motion.q, motion.v) + sl.potential_energy(model, motion.q)
    assert (energy[1:] <= energy[0] + 1e-9 * abs(energy[0])).all()  # so what is at rest has less than at the start
    assert motion.status.max() == 0 and -gaps.min() < 1e-3


def test_a_pile_comes_to_rest() -> None:
    """Boxes among balls on a rough floor: at rest, and carried."""
    model, q, v = dropped(("box", "sphere", "box", "capsule", "box"), 3)
    sim = sl.Simulator(model, GROUND)
    damped = model.replace(damping=np.tile([0, 0, 0, 1e-2, 1e-2, 1e-2], 5))
    motion = sl.Simulator(damped, GROUND).rollout(q, v, duration=4.0, every=10)
    assert np.abs(motion.v[-1]).max() < 0.05
    assert abs(motion.contact_forces[-1].sum(axis=0)[2] - 5 * 0.7 * 9.81) < 40.0
    found = sim.contacts(motion.q[-1])
    assert found.gap.min() > -1e-6
    assert sum(not b for (a, b), gap in zip(found.pairs, found.gap, strict=True) if gap < 1e-4) >= 6


def test_what_overlaps_is_pushed_out_gently() -> None:
    """A ball half in the ground: at most at 1 m/s, and it rests on the ground, not above it."""
    ball = free(("sphere", [0.1]))
    motion = sl.Simulator(ball, GROUND).rollout(pose((0, 0, 0.02)), np.zeros(6), duration=1.0)
    assert world(ball, motion)[:, 2].max() < 1.0 + 1e-9
    assert abs(motion.q[-1, 2] - 0.1) < 1e-9 and motion.q[:, 2].max() < 0.16 and motion.status.max() == 0
