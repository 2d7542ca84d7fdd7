"""The scenes of `examples/constrained.py`: they hold their constraints, follow their references, and stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saltus as sl
from examples import constrained

MOST = 1e-4  # m


def gaps(model: sl.Model, q: Any) -> Any:
    """How far each loop of points is open over time (T, loops) [m], from where its frames are."""
    ends = [[sl.frame_placement(model, q, frame)[:, :3, 3] for frame in (x.frame_a, x.frame_b)] for x in model.loops]
    return np.stack([np.linalg.norm(a - b, axis=-1) for a, b in ends], axis=-1)


pytestmark = pytest.mark.slow  # ten seconds of motion each


def test_a_linkage_swings_for_ten_seconds_and_loses_nothing() -> None:
    scene = constrained.SCENES["four_bar"]()
    motion = constrained.simulate(scene, 10.0)
    (energy,) = sl.conservation_drift(scene.robot, motion)
    assert energy.relative.max() < 1e-3
    assert gaps(scene.robot, motion.q).max() < MOST
    assert np.ptp(motion.q[:, 0]) > 1.0 and energy.size > 0.5  # J: it does swing


def test_cassie_stands_for_ten_seconds_and_keeps_its_loops() -> None:
    scene = constrained.SCENES["cassie"]()
    assert sum(constraint.dim for constraint in scene.dynamics.constraints) == 24
    motion = constrained.simulate(scene, 10.0)
    assert motion.t[-1] == pytest.approx(10.0)
    assert gaps(scene.robot, motion.q).max() < MOST
    feet = np.stack([sl.frame_placement(scene.robot, motion.q, foot)[:, :3, 3] for foot in scene.contacts], axis=1)
    assert np.linalg.norm(feet - feet[0], axis=-1).max() < MOST
    moved, _ = constrained.tracking(scene, motion)
    assert 1e-3 < np.abs(moved).max() < 1e-2 and np.abs(moved[-1]).max() < 1e-4  # pushed, and back
    assert constrained.contact_forces(scene, motion)[..., 2].min() > 0  # nothing holds the feet down
    springs = [joint.iq for joint in scene.robot.joints[2:] if scene.robot.stiffness[joint.iv]]
    assert 1e-3 < np.ptp(motion.q[:, springs], axis=0).min() < 0.05


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("four_bar_driven", 3),
        ("quadruped", 12),
        ("anymal", 12),
        ("humanoid", 24),
        ("talos", 24),
        ("biped_sway", 24),
        ("cassie_sway", 48),
    ],
)
def test_the_centre_of_mass_follows_and_constraints_hold(name: str, rows: int) -> None:
    scene = constrained.SCENES[name]()
    assert sum(constraint.dim for constraint in scene.dynamics.constraints) == rows
    motion = constrained.simulate(scene, 1.5)
    moved, wanted = constrained.tracking(scene, motion)
    axes = list(scene.axes)
    assert np.ptp(moved[:, axes], axis=0).max() > 0.03 and np.abs(moved - wanted)[:, axes].max() < 2e-3
    for drift in sl.constraint_drift(scene.dynamics, motion):
        assert drift.absolute.max() < MOST, drift.name


def test_without_its_controller_a_biped_falls() -> None:
    scene = constrained.SCENES["biped"]()
    fall = sl.rollout(scene.dynamics, scene.q, np.zeros(scene.robot.nv), duration=0.3)
    assert sl.center_of_mass(scene.robot, fall.q)[-1, 2] < sl.center_of_mass(scene.robot, scene.q)[2] - 0.05


def test_the_example_writes_a_replay_and_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    constrained.main(["four_bar", "biped"], 0.1, tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {
        f"{n}.{e}" for n in ("four_bar", "biped") for e in ("html", "png")
    }
    said = capsys.readouterr().out
    assert "four_bar" in said and "energy drifts by" in said and "off at most" in said
