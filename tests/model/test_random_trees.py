"""Random models: possible ones, with all that algorithms must cope with, and the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from saltus.model import FrameKind, JointKind, ModelError, random_model


@pytest.mark.parametrize("seed", range(8))
def test_random_models(seed: int) -> None:
    model, again = random_model(seed, 20), random_model(seed, 20)
    assert model.nb == 20 and len({joint.kind for joint in model.joints}) > 3
    assert any(frame.kind == FrameKind.OP for frame in model.frames)
    for ours, theirs in zip(model.joints, again.joints, strict=True):
        assert (ours.name, ours.parent) == (theirs.name, theirs.parent)
        np.testing.assert_array_equal(ours.inertia, theirs.inertia)
    for joint in model.joints[1:]:
        first, second, third = np.linalg.eigvalsh(joint.inertia)
        assert first > 0 and first + second > third and joint.mass > 0
    assert np.isfinite([*model.lower_position_limit, *model.velocity_limit, *model.effort_limit]).all()
    parents = [joint.parent for joint in model.joints[1:]]
    assert len(set(parents)) < len(parents)  # it branches


def test_random_models_of_chosen_kinds() -> None:
    model = random_model(3, 30, [JointKind.SPHERICAL, "prismatic"])
    assert {joint.kind for joint in model.joints[1:]} == {JointKind.SPHERICAL, JointKind.PRISMATIC}
    with pytest.raises(ModelError, match="at least one"):
        random_model(3, 0)
