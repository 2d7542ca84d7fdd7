"""Derivatives of the centre of mass and of the centroidal momentum: against dual numbers, Pinocchio, and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import saltus as sl
from saltus.dynamics.centroidal import _centroidal_momentum
from tests.closeness import assert_close
from tests.derivatives.forward import ERRORS, exact_jacobians
from tests.dynamics.test_against_pinocchio import SINGULAR, load
from tests.generators import TREES, State, chain, floating_tree, make_tree, mimic_tree, random_state
from tests.model.robots import LOADABLE

pin = pytest.importorskip("pinocchio")


def compare_with_dual_numbers(model: sl.Model, s: State) -> None:
    (com_q, h_q, rate_q), (_, h_v, rate_v), (_, _, rate_a) = exact_jacobians(_centroidal_momentum, model, s.q, s.v, s.a)
    m, speed = model.total_mass, max(1.0, float(np.abs(s.v).max()))
    right = (h_q, h_v, rate_q, rate_v, rate_a)
    for ours, exact in zip(sl.centroidal_momentum_derivatives(model, s.q, s.v, s.a), right, strict=True):
        assert_close(ours, exact, 1e-12, max(m * speed, np.abs(exact).max()))
    right = (com_q, h_q[:3] / m, h_v[:3] / m, rate_q[:3] / m, rate_v[:3] / m, rate_a[:3] / m)
    for ours, exact in zip(sl.center_of_mass_derivatives(model, s.q, s.v, s.a), right, strict=True):
        assert_close(ours, exact, 1e-12, max(speed, np.abs(exact).max()))


@pytest.mark.parametrize(("seed", "bodies"), TREES[::4] + TREES[-1:])
def test_against_dual_numbers(seed: int, bodies: int) -> None:
    tree = make_tree(seed, bodies)
    compare_with_dual_numbers(tree.model, tree.state)


def test_a_long_chain() -> None:
    model = chain(sl.random_model(seed=9, bodies=100))
    compare_with_dual_numbers(model, random_state(model, 1))


@pytest.mark.parametrize("name", LOADABLE)
def test_against_pinocchio(name: str) -> None:
    r = load(name, "geared")
    h = sl.centroidal_momentum_derivatives(r.model, r.states.q, r.states.v, r.states.a)
    c = sl.center_of_mass_derivatives(r.model, r.states.q, r.states.v, r.states.a)
    for k in range(len(r.states.q)):
        s = r.states.sample(k)
        right = pin.computeCentroidalDynamicsDerivatives(r.peer, r.data, s.q, s.v, s.a)
        for ours, theirs in zip((h.dh_dq, h.drate_dq, h.drate_dv, h.drate_da), right, strict=True):
            assert_close(ours[k], theirs, 1e-11, max(r.model.total_mass, np.abs(theirs).max()))
        pin.computeAllTerms(r.peer, r.data, s.q, s.v)
        theirs = pin.getCenterOfMassVelocityDerivatives(r.peer, r.data)
        known = np.isfinite(theirs)  # there, tips without mass have no centre
        assert known.all() or name in SINGULAR
        assert_close(c.dvelocity_dq[k][known], theirs[known], 1e-11, max(1.0, np.abs(theirs[known]).max()))


def test_matrices_that_have_functions_of_their_own() -> None:
    model = sl.load_robot("humanoid")
    s = random_state(model, 0, 3)
    h = sl.centroidal_momentum_derivatives(model, s.q, s.v, s.a)
    c = sl.center_of_mass_derivatives(model, s.q, s.v, s.a)
    A, J = sl.centroidal_momentum_matrix(model, s.q), sl.center_of_mass_jacobian(model, s.q)
    assert_close((h.dh_dv, h.drate_da), (A, A), 1e-13)
    assert_close((c.dposition_dq, c.dvelocity_dv, c.dacceleration_da), (J, J, J), 1e-13)


@pytest.mark.parametrize("mode", ERRORS)
def test_other_modes(mode: str) -> None:
    model = floating_tree(seed=5, bodies=6)
    s = random_state(model, 1, 3)
    of_com = sl.center_of_mass_derivatives(model, s.q, s.v, s.a)
    of_h = sl.centroidal_momentum_derivatives(model, s.q, s.v, s.a)
    assert_close(sl.center_of_mass_derivatives(model, s.q, s.v, s.a, mode), of_com, ERRORS[mode])
    assert_close(sl.centroidal_momentum_derivatives(model, s.q, s.v, s.a, mode), of_h, ERRORS[mode])
    found = sl.jacobian(sl.centroidal_momentum, model, (s.q, s.v), "analytical")
    assert_close(found + sl.jacobian(sl.centroidal_momentum_rate, model, (s.q, s.v, s.a), "analytical"), of_h, 1e-14)


def test_mimic_joints_against_central_differences() -> None:
    model, h = mimic_tree(seed=2, bodies=8), 1e-5
    s, steps = random_state(model, 1), h * np.eye(model.nv)
    ahead, behind = (
        sl.centroidal_momentum_rate(model, sl.integrate(model, s.q, sign * steps), s.v, s.a) for sign in (1.0, -1.0)
    )
    D = sl.centroidal_momentum_derivatives(model, s.q, s.v, s.a)
    assert_close(D.drate_dq, (ahead - behind).T / (2.0 * h), 1e-8)


def test_a_single_rigid_body() -> None:
    """Its momentum does not depend on where it is, and turns along with it."""
    model = floating_tree(seed=5, bodies=1)
    s = random_state(model, 0)
    D = sl.centroidal_momentum_derivatives(model, s.q, s.v, s.a)
    R = sl.frame_placement(model, s.q, "root")[:3, :3]
    for slopes, total in (
        (D.dh_dq, sl.centroidal_momentum(model, s.q, s.v)),
        (D.drate_dq, sl.centroidal_momentum_rate(model, s.q, s.v, s.a)),
    ):
        turned = [np.cross(R.T, part).T for part in (total[:3], total[3:])]
        assert_close(slopes, np.hstack([np.zeros((6, 3)), np.concatenate(turned)]), 1e-13)


def test_at_rest() -> None:
    model = sl.load_robot("humanoid")
    s = random_state(model, 0)
    rest = 0.0 * s.v
    D = sl.centroidal_momentum_derivatives(model, s.q, rest, s.a)
    assert not D.dh_dq.any() and not D.drate_dv.any() and D.drate_dq.any()


def test_gravity_does_not_matter() -> None:
    model = floating_tree(seed=5, bodies=6)
    s = random_state(model, 0)
    strong = model.replace(gravity=np.array([100.0, -200.0, 300.0]))
    for one, other in zip(
        sl.centroidal_momentum_derivatives(model, s.q, s.v, s.a),
        sl.centroidal_momentum_derivatives(strong, s.q, s.v, s.a),
        strict=True,
    ):
        assert_close(one, other, 1e-11)


def test_nothing_has_mass() -> None:
    """No centre of mass, and no momentum."""
    builder = sl.ModelBuilder("weightless")
    builder.add_joint("hinge", "revolute", armature=1.0)
    model = builder.build()
    assert model.total_mass == 0.0
    q = v = a = np.ones(1)
    assert all(np.isnan(part).all() for part in sl.center_of_mass_derivatives(model, q, v, a))
    assert not any(part.any() for part in sl.centroidal_momentum_derivatives(model, q, v, a))
