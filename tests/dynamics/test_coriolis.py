"""The Coriolis matrix: against Pinocchio, and by what makes it the one that goes with the inertia matrix."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import saltus as sl
from benchmarks.robots import pinocchio_model, saltus_model
from tests.model.test_mimic import MODEL as GRIPPER


@pytest.mark.parametrize("robot", ["panda", "solo12", "talos38"])
def test_against_pinocchio(robot: str) -> None:
    model, peer = saltus_model(robot), pinocchio_model(robot)
    q, v = sl.random_configuration(model, 1), np.random.default_rng(3).normal(size=model.nv)
    right = pin.computeCoriolisMatrix(peer, peer.createData(), q, v)
    np.testing.assert_allclose(sl.coriolis_matrix(model, q, v), right, rtol=0, atol=1e-12 * np.abs(right).max())


MODELS = [sl.random_model(seed=seed, bodies=4 + 2 * seed) for seed in range(5)] + [GRIPPER]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
@pytest.mark.parametrize("shape", [(), (3,), (2, 9)])
def test_it_gives_what_velocities_ask_for(model: sl.Model, shape: tuple[int, ...]) -> None:
    q, v = sl.random_configuration(model, 1, shape), np.random.default_rng(2).normal(size=(*shape, model.nv))
    found = (sl.coriolis_matrix(model, q, v) @ v[..., None])[..., 0]
    right = sl.nonlinear_effects(model, q, v) - sl.gravity(model, q)
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-11 * np.abs(right).max())


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_with_the_rate_of_the_inertia_matrix_it_is_skew(model: sl.Model) -> None:
    """Which torques that velocities ask for do not tell: many matrices give these."""
    q, v = sl.random_configuration(model, 1), np.random.default_rng(2).normal(size=model.nv)
    step = 1e-5
    after, before = (sl.crba(model, sl.integrate(model, q, sign * step * v)) for sign in (1.0, -1.0))
    rate = (after - before) / (2.0 * step)
    C = sl.coriolis_matrix(model, q, v)
    np.testing.assert_allclose(rate, C + C.T, rtol=0, atol=1e-7 * np.abs(C).max())


def test_in_place_and_in_single_precision() -> None:
    model = sl.load_robot("quadruped")
    q, v = sl.random_configuration(model, 1, 5), np.random.default_rng(2).normal(size=(5, model.nv))
    right = sl.coriolis_matrix(model, q, v)
    out = np.full(right.shape, np.nan)
    assert sl.coriolis_matrix(model, q, v, out=out) is out
    np.testing.assert_array_equal(out, right)
    single = sl.coriolis_matrix(model, q.astype(np.float32), v.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, right, rtol=0, atol=1e-5 * np.abs(right).max())
