"""Leading axes broadcast as NumPy's do, in every output of every function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from tests.test_marking import FUNCTIONS, OTHERS, ROBOT, arrays_in, names_of

LEADING = {"q": (2, 1), "q0": (2, 1), "q1": (3,), "v": (3,), "a": (2, 3), "tau": (1, 1)}
SIZES = dict.fromkeys(("q", "q0", "q1"), ROBOT.nq)


def inputs(names: list[str]) -> list[Any]:
    rng = np.random.default_rng(0)
    made = []
    for name in names:
        if name in OTHERS:
            made.append(OTHERS[name])
        elif name in SIZES:
            made.append(sl.random_configuration(ROBOT, seed=1, shape=LEADING[name]))
        else:
            made.append(rng.normal(size=(*LEADING[name], ROBOT.nv)))
    return made


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_outputs_have_all_leading_axes(name: str) -> None:
    names = names_of(getattr(sl, name))
    expected = np.broadcast_shapes(*(LEADING[each] for each in names if each not in OTHERS))
    found = arrays_in(getattr(sl, name)(ROBOT, *inputs(names)))
    assert found and {array.shape[: len(expected)] for array in found} == {expected}


@pytest.mark.parametrize("mode", ["ad", "fdc"])
def test_centroidal_momentum_derivatives_in_other_modes(mode: str) -> None:
    """The momentum does not depend on accelerations, and has their leading axes all the same."""
    q, v, a = ROBOT.neutral(), np.ones(ROBOT.nv), np.zeros((4, ROBOT.nv))
    exact = sl.centroidal_momentum_derivatives(ROBOT, q, v, a)
    for x, y in zip(sl.centroidal_momentum_derivatives(ROBOT, q, v, a, mode), exact, strict=True):
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, atol=1e-6)


@pytest.mark.parametrize("many", ["q", "v", "a"])
def test_forward_kinematics(many: str) -> None:
    """Whichever of the inputs brings the leading axes; all results can be written, and are what they are one by one."""
    given = dict(zip("qva", inputs(["q", "v", "a"]), strict=True))
    q, v, a = (x if name == many else x.reshape(-1, x.shape[-1])[0] for name, x in given.items())
    for count in (2, 3) if many != "a" else (3,):
        results = sl.forward_kinematics(ROBOT, *(q, v, a)[:count])
        alone = (
            sl.joint_placements(ROBOT, q),
            sl.joint_velocities(ROBOT, q, v),
            sl.joint_accelerations(ROBOT, q, v, a),
        )
        for found, expected in zip(results, alone[:count], strict=True):
            assert found.shape == (*LEADING[many], *expected.shape[-(found.ndim - len(LEADING[many])) :])
            assert found.flags.writeable
            np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), atol=1e-12)


def test_without_velocities_or_accelerations() -> None:
    q, v, _ = inputs(["q", "v", "a"])
    (placements,) = sl.forward_kinematics(ROBOT, q)
    assert placements.shape == (2, 1, ROBOT.njoints, 4, 4)
    assert [x.shape[:2] for x in sl.forward_kinematics(ROBOT, q, v)] == [(2, 3)] * 2
