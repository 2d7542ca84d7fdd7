"""The examples of contact simulation: what they show is so, and their files are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saltus as sl
from examples import pile, slip, staircase


def test_who_stands_on_ice_slips() -> None:
    motion = slip.slip()
    assert (motion.status == sl.Status.CONVERGED).all() and not motion.fallen.any()
    assert motion.simulator.contacts(motion.q).gap.min() > -1e-3
    before = int(np.searchsorted(motion.t, slip.PUSHED))
    gone = motion.q[..., 0] - motion.q[:, before, None, 0]
    assert np.abs(motion.v[:, before]).max() < 0.2  # both stood
    assert gone[0].max() > 1.0 > 0.3 > gone[1].max()
    force, carried = motion.contact_forces[:, before], 9.81 * motion.simulator.model.total_mass
    np.testing.assert_allclose(force[..., 2].sum(axis=-1), carried, rtol=0.1)
    for robot, friction, until in ((0, 0.03, 1.2), (1, 0.8, 4.0)):  # till it has left the ice
        forces = motion.contact_forces[robot, motion.t < until]
        assert (np.linalg.norm(forces[..., :2], axis=-1) <= friction * forces[..., 2] + 1e-3).all()


def test_a_humanoid_falls_down_the_stairs() -> None:
    motion = staircase.tumble()
    assert motion.status.max() <= sl.Status.INACCURATE
    assert motion.simulator.contacts(motion.q).gap.min() > -1e-3
    model = motion.simulator.model
    center = sl.center_of_mass(model, motion.q)
    assert center[0, 2] > 2.0 and center[-1, 2] < 0.8 and center[-1, 0] > 1.2  # most of the way down
    lower, upper = model.lower_position_limit, model.upper_position_limit
    assert (motion.q >= lower - 1e-3)[:, 7:].all() and (motion.q <= upper + 1e-3)[:, 7:].all()


def test_a_small_pile_comes_to_rest() -> None:
    count = 12
    motion = pile.pile(count)
    assert motion.status.max() <= sl.Status.INACCURATE
    assert motion.simulator.contacts(motion.q[-1]).gap.min() > -1e-3
    assert (np.abs(motion.q[-1].reshape(count, 7)[:, :2]) < 0.5 * pile.SIDE).all()  # in the tray
    energy = sl.kinetic_energy(motion.simulator.model, motion.q, motion.v)
    assert energy[-1] < 0.05 * energy.max()


@pytest.mark.parametrize("example", [slip, staircase, pile])
def test_an_example_tells_and_writes(example: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = {"count": 6} if example is pile else {}
    example.main(**arguments, folder=tmp_path / "demo", view=False)
    told = capsys.readouterr().out.splitlines()
    (file,) = (tmp_path / "demo").glob("*.html")
    assert told[-1] == f"wrote {file}" and len(told) >= 3
    assert '"surfaces":[{' in file.read_text(encoding="utf-8")
