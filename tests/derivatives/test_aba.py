"""Derivatives of forward dynamics: against dual numbers, Pinocchio, and the inverse inertia matrix.

Worst errors, relative to the largest entry (or 1e-3 of the inverse inertia matrix's): 8e-11 against dual numbers (a chain of
60 joints of all kinds, whose inertia matrix has a condition number of 2e6), 2e-11 against Pinocchio,
but for what its condition number makes of rounding: 7e-9 for iCub.
"""

from __future__ import annotations

import numpy as np
import pytest

import saltus as sl
from tests.closeness import assert_close, with_rounding
from tests.derivatives.forward import ERRORS
from tests.derivatives.test_rnea import TOLERANCE, compare_all, no_less
from tests.dynamics.test_against_pinocchio import ROUNDINGS, SINGULAR, full, load, pin_forces
from tests.generators import TREES, floating_tree, make_tree, mimic_tree, random_state
from tests.model.robots import LOADABLE

pin = pytest.importorskip("pinocchio")


@pytest.mark.parametrize(("seed", "bodies"), TREES[::4] + TREES[-1:])
def test_against_dual_numbers(seed: int, bodies: int) -> None:
    tree = make_tree(seed, bodies)
    model, s = tree.model, tree.state
    least = 1e-3 * float(np.abs(sl.minverse(model, s.q)).max())
    for inputs in ((s.q, s.v, s.tau), (s.q, s.v, s.tau, s.forces)):
        right = sl.aba_derivatives(model, *inputs, mode="ad")
        compare_all(sl.aba_derivatives(model, *inputs), right, least, "aba")


@pytest.mark.parametrize("variant", ["fixed", "free", "geared"])
@pytest.mark.parametrize("name", LOADABLE)
def test_against_pinocchio(name: str, variant: str) -> None:
    if name in SINGULAR and variant != "geared":
        pytest.skip("joints without inertia have no accelerations: tests/dynamics/test_weightless.py")
    r = load(name, variant)
    model, s, nv = r.model, r.states, r.model.nv
    plain, pushed = sl.aba_derivatives(model, s.q, s.v, s.tau), sl.aba_derivatives(model, s.q, s.v, s.tau, s.forces)
    assert plain.da_dq.shape == (len(s.q), nv, nv)
    tolerance, least = TOLERANCE, 1e-3 * float(np.abs(plain.da_dtau).max(initial=0.0))
    if nv:
        tolerance = with_rounding(tolerance, np.linalg.cond(sl.crba(model, s.q)).max(), ROUNDINGS)
    for k in range(len(s.q) if nv else 0):  # Pinocchio has no derivatives of what does not move
        x = s.sample(k)
        for ours, more in ((plain, ()), (pushed, (pin_forces(x),))):
            dq, dv, inverse = (
                part.copy() for part in pin.computeABADerivatives(r.peer, r.data, x.q, x.v, x.tau, *more)
            )
            for one, other in zip(ours, (dq, dv, full(inverse)), strict=True):
                assert_close(one[k], other, tolerance, no_less(other, least), f"sample {k}")


@pytest.mark.parametrize("mode", ERRORS)
def test_other_modes(mode: str) -> None:
    model = floating_tree(seed=5, bodies=6)
    s = random_state(model, 1, 3)
    tau, forces = 0.1 * s.tau, 0.1 * s.forces  # steps of differences grow with the largest input
    right = sl.aba_derivatives(model, s.q, s.v, tau, forces)
    assert_close(sl.aba_derivatives(model, s.q, s.v, tau, forces, mode), right, ERRORS[mode])


def test_mimic_joints_against_central_differences() -> None:
    model = mimic_tree(seed=2, bodies=8)
    s = random_state(model, 1, 3)
    tau, forces = 0.1 * s.tau, 0.1 * s.forces
    found = sl.aba_derivatives(model, s.q, s.v, tau, forces)
    assert_close(found, sl.aba_derivatives(model, s.q, s.v, tau, forces, "fdc"), 1e-8)
    assert_close(found.da_dtau, np.linalg.inv(sl.crba(model, s.q)), 1e-12)


def test_forward_undoes_inverse() -> None:
    """Where both are at the same accelerations: dtau/dq + M da/dq = 0, dtau/dv + M da/dv = 0, M da/dtau = 1."""
    model = sl.load_robot("humanoid")
    s = random_state(model, 3, 5)
    a = sl.aba(model, s.q, s.v, s.tau, s.forces)
    D, inverse = sl.aba_derivatives(model, s.q, s.v, s.tau, s.forces), sl.rnea_derivatives(model, s.q, s.v, a, s.forces)
    M = sl.crba(model, s.q)
    assert_close(M @ D.da_dq, -inverse.dtau_dq, 1e-11)
    assert_close(M @ D.da_dv, -inverse.dtau_dv, 1e-11)
    assert_close(M @ D.da_dtau, np.broadcast_to(np.eye(model.nv), M.shape), 1e-11)


@pytest.mark.slow
def test_leading_axes_and_precisions() -> None:
    """(T, B, nv) with what is the same for all given once; single precision in and out, as far as conditioning lets it."""
    model = sl.load_robot("quadruped")
    s = random_state(model, 2, (3, 5))
    whole = sl.aba_derivatives(model, s.q, s.v[:, :1], s.tau[0, 0])
    assert whole.da_dq.shape == (3, 5, model.nv, model.nv)
    one = sl.aba_derivatives(model, s.q[2, 4], s.v[2, 0], s.tau[0, 0])
    assert_close(tuple(part[2, 4] for part in whole), tuple(one), 1e-12)
    singles = [x.astype(np.float32) for x in (s.q, s.v, s.tau)]
    ours = sl.aba_derivatives(model, *singles)
    right = sl.aba_derivatives(model, *(x.astype(float) for x in singles))
    assert all(part.dtype == np.float32 for part in ours)
    condition = np.linalg.cond(sl.crba(model, s.q)).max()
    assert_close(tuple(ours), tuple(right), with_rounding(0.0, condition, real=np.float32))


def test_errors() -> None:
    model = sl.load_robot("quadruped")
    q, v = model.neutral(), np.zeros(model.nv)
    with pytest.raises(ValueError, match=r"tau has shape \(3,\)"):
        sl.aba_derivatives(model, q, v, np.zeros(3))
    with pytest.raises(ValueError, match="mode is 'exact', expected one of"):
        sl.aba_derivatives(model, q, v, v, mode="exact")
