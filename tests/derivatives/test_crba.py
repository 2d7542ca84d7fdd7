"""Derivatives of the inertia matrix: against dual numbers, Pinocchio, Christoffel symbols; zero where all moves as one."""

from __future__ import annotations

import numpy as np
import pytest

import saltus as sl
from saltus.dynamics.crba import _crba
from tests.closeness import assert_close
from tests.derivatives.forward import ERRORS, exact_jacobians
from tests.dynamics.test_against_pinocchio import load
from tests.generators import TREES, floating_tree, make_tree, mimic_tree, random_state
from tests.model.robots import LOADABLE

pin = pytest.importorskip("pinocchio")


@pytest.mark.parametrize(("seed", "bodies"), TREES[::4] + TREES[-1:])
def test_against_dual_numbers(seed: int, bodies: int) -> None:
    tree = make_tree(seed, bodies)
    ((right,),) = exact_jacobians(_crba, tree.model, tree.state.q)
    size = np.abs(sl.crba(tree.model, tree.state.q)).max()
    assert_close(sl.crba_derivatives(tree.model, tree.state.q), right, 1e-12, size)


@pytest.mark.parametrize("name", LOADABLE)
def test_against_pinocchio(name: str) -> None:
    """M a is what inverse dynamics at rest asks for beyond gravity, and Pinocchio has the derivatives of that."""
    r = load(name, "geared")
    ours, rest = sl.crba_derivatives(r.model, r.states.q), np.zeros(r.model.nv)
    assert ours.shape == (len(r.states.q), *[r.model.nv] * 3)
    for q, dM in zip(r.states.q, ours, strict=True):
        weight = pin.computeRNEADerivatives(r.peer, r.data, q, rest, rest)[0].copy()
        columns = [pin.computeRNEADerivatives(r.peer, r.data, q, rest, e)[0] - weight for e in np.eye(r.model.nv)]
        assert_close(dM, np.stack(columns, axis=1), 1e-11, np.abs(sl.crba(r.model, q)).max())


def test_christoffel_symbols_are_the_nonlinear_effects() -> None:
    model = sl.random_model(seed=3, bodies=12, kinds=["revolute", "prismatic"])
    s = random_state(model, 4)
    dM = sl.crba_derivatives(model, s.q)
    forces = np.einsum("ijk,j,k", dM, s.v, s.v) - 0.5 * np.einsum("jki,j,k", dM, s.v, s.v)
    assert_close(forces, sl.nonlinear_effects(model, s.q, s.v) - sl.gravity(model, s.q), 1e-12)


@pytest.mark.parametrize("mode", ERRORS)
def test_other_modes(mode: str) -> None:
    model = floating_tree(seed=5, bodies=6)
    q = random_state(model, 1, 3).q
    right = sl.crba_derivatives(model, q)
    assert_close(sl.crba_derivatives(model, q, mode), right, ERRORS[mode])
    assert_close(sl.jacobian(sl.crba, model, (q,), "analytical"), (right,), 0.0)


def test_unknown_mode() -> None:
    model = sl.random_model(seed=0, bodies=2)
    with pytest.raises(ValueError, match="mode is 'exact', expected one of 'analytical', 'ad', 'fd', 'fdc'"):
        sl.crba_derivatives(model, model.neutral(), "exact")


def test_mimic_joints_against_central_differences() -> None:
    model, h = mimic_tree(seed=2, bodies=8), 1e-5
    q = random_state(model, 1).q
    steps = h * np.eye(model.nv)
    ahead, behind = (sl.crba(model, sl.integrate(model, q, sign * steps)) for sign in (1.0, -1.0))
    assert_close(sl.crba_derivatives(model, q), np.moveaxis(ahead - behind, 0, -1) / (2.0 * h), 1e-8)


def test_a_single_rigid_body_changes_nothing() -> None:
    model = floating_tree(seed=5, bodies=1)
    assert not sl.crba_derivatives(model, random_state(model, 0).q).any()


def test_the_base_changes_nothing() -> None:
    """However the rest of the robot is posed."""
    model = sl.load_robot("quadruped")
    dM = sl.crba_derivatives(model, random_state(model, 0, 3).q)
    assert not dM[..., :6].any() and dM[..., 6:].any()
