"""Jacobians of states against differences, and that steps lead where they should."""

from __future__ import annotations

import numpy as np
import pytest

import saltus as sl
from saltus.ocp.states import MultibodyState, VectorState

STATES = {
    "vector": VectorState(5),
    "quadruped": MultibodyState(sl.load_robot("quadruped")),
    "all joints": MultibodyState(sl.random_model(seed=0, bodies=9)),
}


@pytest.mark.parametrize("name", STATES)
def test_jacobians(name: str) -> None:
    state, h, rng = STATES[name], 1e-6, np.random.default_rng(2)
    a, b = state.random(0), state.random(1)
    dx = 0.5 * rng.normal(size=state.ndx)
    steps = h * np.eye(state.ndx)
    again = state.integrate(a, state.difference(a, b))  # but for the signs of quaternions
    assert np.abs(state.difference(again, b)).max() < 1e-9
    there, J = state.integrate(a, dx), state.integrate_jacobians(a, dx)
    D = state.difference_jacobians(a, b)

    def slopes(function):  # type: ignore[no-untyped-def]
        return np.stack([(function(step) - function(-step)) / (2 * h) for step in steps], axis=-1)

    from_there = lambda x: state.difference(there, x)  # noqa: E731
    assert np.allclose(J.first, slopes(lambda s: from_there(state.integrate(state.integrate(a, s), dx))), atol=1e-7)
    assert np.allclose(J.second, slopes(lambda s: from_there(state.integrate(a, dx + s))), atol=1e-7)
    assert np.allclose(D.first, slopes(lambda s: state.difference(state.integrate(a, s), b)), atol=1e-7)
    assert np.allclose(D.second, slopes(lambda s: state.difference(a, state.integrate(b, s))), atol=1e-7)


def test_sizes_of_a_batch() -> None:
    state = STATES["quadruped"]
    xs = np.stack([state.random(seed) for seed in range(3)])
    assert state.difference(xs[:, None], xs).shape == (3, 3, 36)
    assert state.integrate_jacobians(xs, np.zeros((3, 36))).first.shape == (3, 36, 36)
    assert VectorState(2).difference_jacobians(np.zeros((4, 2)), np.ones(2)).first.shape == (4, 2, 2)
