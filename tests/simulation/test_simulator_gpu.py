"""Simulation on a GPU, as on the processor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.kernel import cuda, driver
from saltus.simulation import gpu_simulation
from saltus.simulation.contact_step import _contact_steps

needs_gpu = pytest.mark.skipif(not driver.is_there(), reason="needs a GPU")


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


class Host:
    """Stands for a library of arrays."""

    @staticmethod
    def empty(like: Any, shape: Any) -> Any:
        return np.empty(shape, like.dtype)


class Checked:
    """Stands for the kernel: what a launch would be told of its integers."""

    @staticmethod
    def call(problem: Any, inputs: Any, out: Any) -> None:
        for k in _contact_steps.integers:
            cuda.describe(_contact_steps, _contact_steps.inputs[k], inputs[k], ())
        _contact_steps.call(problem, inputs, out)


@pytest.mark.parametrize("robots", [None, 5])
@pytest.mark.parametrize("which", range(4))
def test_how_arrays_are_laid_out(robots: int | None, which: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done around the launch, with NumPy's arrays in the place of a GPU's."""
    monkeypatch.setattr(gpu_simulation, "moved", lambda x, like: np.asarray(x, like.dtype))
    monkeypatch.setattr(gpu_simulation, "library_of", lambda kind: Host)
    monkeypatch.setattr(gpu_simulation, "_contact_steps", Checked)
    laid_out = gpu_simulation._room

    def as_numpy_has_it(like: Any, rows: int, shape: tuple[int, ...]) -> Any:
        room = laid_out(like, rows, shape)
        assert not many or room.strides[0] == room.itemsize  # robots lie side by side
        return np.empty(room.shape)

    monkeypatch.setattr(gpu_simulation, "_room", as_numpy_has_it)
    robot = sl.load_robot("quadruped")
    sim, rng, steps = sl.Simulator(robot, sl.Ground(friction=0.7)), np.random.default_rng(0), 20
    many = () if robots is None else (robots,)
    standing = robot.reference_configurations["standing"]
    q, v = np.tile(standing, (*many, 1)), 0.1 * rng.normal(size=(*many, robot.nv))
    targets = np.tile(standing, (*many, 4, 1))
    tau = (
        None,
        rng.normal(size=robot.nv),
        sl.OverTime(rng.normal(size=(*many, 10, robot.nv))),
        sl.PDTargets(targets, 99.0, 3.0),
    )
    friction = 1.0 if robots is None else np.linspace(0.1, 1.0, robots)
    start = sim.rollout(q, v, duration=0.005)
    right = sim.rollout(q, v, tau[which], duration=steps * 1e-3, every=2, friction=friction, start=start)
    found = gpu_simulation.roll_out(sim, q, v, tau[which], steps, 2, friction, start)
    for name in ("t", "q", "v", "tau", "held", "touch", "report"):
        ours, wanted = getattr(found, name)[..., :], getattr(right, name)
        assert ours.shape == wanted.shape
        assert np.abs(ours - wanted).max(initial=0.0) < 1e-9
