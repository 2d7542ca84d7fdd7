"""Robots dropped on stairs in random poses, motors holding on weakly: nothing falls through, and nothing is lost."""

from __future__ import annotations

import numpy as np
import pytest

import saltus as sl
from tests.simulation.dropping import depths_at_rest, drop, over_stairs, poses


def dropped(name: str, count: int, seconds: float) -> tuple[sl.Simulator, sl.Motion]:
    sim = over_stairs(name)
    return sim, drop(sim, poses(sim, count, seed=0), seconds)


def check(sim: sl.Simulator, motion: sl.Motion) -> None:
    assert motion.finished.all() and np.isfinite(motion.report).all()
    assert (motion.status == sl.Status.CONVERGED).all() and motion.report[..., 2:5].max() < 1e-6
    depths = depths_at_rest(sim, motion)
    assert np.isfinite(depths[:, -1]).mean() > 0.25  # so that there is something to look at
    assert np.nanmax(depths) < 1e-3


def test_a_quadruped_falls_down_stairs() -> None:
    sim, motion = dropped("quadruped", 16, 2.0)
    check(sim, motion)
    assert (motion.contact_forces[:, -1].any(axis=-1).sum(axis=-1) >= 1).all()


@pytest.mark.parametrize("name", ["quadruped", "humanoid"])
def test_together_as_alone(name: str) -> None:
    """The robots of a packet have rows in common, and each its own contacts in them."""
    sim, motion = dropped(name, 8, 1.5)
    q, v = (x[:, 5:].reshape(-1, x.shape[-1]) for x in (motion.q, motion.v))
    together, alone = sim.step(q, v), [sim.step(*state) for state in zip(q, v, strict=True)]
    assert (together.status == sl.Status.CONVERGED).all()
    listed = together.touch[..., 0]
    assert (np.sort(listed) == np.sort([step.touch[:, 0] for step in alone])).all()
    assert np.nonzero((listed >= 0).any(axis=0))[0].max() < 1.5 * (listed >= 0).sum(axis=-1).max()
    assert np.abs(together.v - [step.v for step in alone]).max() < 1e-5  # what is wedged hardly resists
    assert (together.touching == [step.touching for step in alone]).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, count",
    [("quadruped", 64), ("arm", 64), ("planar_human", 64), ("humanoid", 16), ("humanoid_hands", 8), ("biped", 16)],
)
def test_shipped_robots_fall_down_stairs(name: str, count: int) -> None:
    """Of some a thousand were measured."""
    check(*dropped(name, count, 2.5))
