"""Simulation on a GPU, as on the processor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.kernel import driver

needs_gpu = pytest.mark.skipif(not driver.available(), reason="no GPU")


@needs_gpu
@pytest.mark.parametrize("specialised", [False, True])
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_rollouts(library: str, specialised: bool) -> None:
    there: Any = pytest.importorskip(library).asarray
    on = {"device": "cuda"} if library == "torch" else {}
    robot = sl.load_robot("quadruped")
    robot = sl.specialise(robot) if specialised else robot
    sim, rng = sl.Simulator(robot, sl.Ground(friction=0.7)), np.random.default_rng(0)
    standing = robot.reference_configurations["standing"]
    q, v = np.tile(standing, (100, 1)), 0.1 * rng.normal(size=(100, robot.nv))
    q[:, 2] += 0.01
    targets = np.tile(standing, (100, 2, 1))
    targets[..., 7:] += 0.1 * rng.normal(size=(100, 2, 12))
    for every, commands in (
        (1, (None, rng.normal(size=robot.nv))),
        (10, (sl.OverTime(rng.normal(size=(100, 20, robot.nv))), sl.PDTargets(targets, 100.0, 3.0))),
    ):
        for tau in commands:
            moved = tau
            if isinstance(tau, sl.PDTargets):
                moved = sl.PDTargets(there(targets, **on), 100.0, 3.0)
            elif isinstance(tau, sl.OverTime):
                moved = sl.OverTime(there(tau.values, **on))
            elif tau is not None:
                moved = there(tau, **on)
            right = sim.rollout(q, v, tau, duration=0.02, every=every)
            found = sim.rollout(there(q, **on), there(v, **on), moved, duration=0.02, every=every)
            for name in ("q", "v", "tau", "report"):
                ours, wanted = getattr(found, name), getattr(right, name)
                ours = ours.cpu().numpy() if library == "torch" else ours.get()
                assert ours.shape == wanted.shape
                if name != "report":
                    assert np.abs(ours - wanted).max() <= 1e-5 * max(np.abs(wanted).max(), 1.0)
            assert (ours[..., 6] == 0).all()
