"""Derivatives of inverse dynamics and of nonlinear effects: against dual numbers, Pinocchio, and closed forms.

Worst errors, relative to the largest entry (or 1e-3 of the inertia matrix's, where all is zero but for rounding): 8e-15
against dual numbers, 5e-15 against Pinocchio.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from tests.closeness import assert_close
from tests.derivatives.forward import ERRORS
from tests.dynamics.test_against_pinocchio import full, load, pin_forces
from tests.generators import TREES, floating_tree, make_tree, mimic_tree, random_state
from tests.model.robots import LOADABLE

pin = pytest.importorskip("pinocchio")

TOLERANCE = 1e-9


def no_less(right: Any, size: float) -> float:
    """What errors are relative to: the largest entry, or the natural size where all is zero but for rounding."""
    return max(float(np.abs(right).max(initial=0.0)), size)


def compare_all(ours: Any, right: Any, least: float, what: str) -> None:
    for k, (one, other) in enumerate(zip(ours, right, strict=True)):
        assert_close(one, other, TOLERANCE, no_less(other, least), f"{what}[{k}]")


@pytest.mark.parametrize(("seed", "bodies"), TREES[::4] + TREES[-1:])
def test_against_dual_numbers(seed: int, bodies: int) -> None:
    tree = make_tree(seed, bodies)
    model, s = tree.model, tree.state
    least = 1e-3 * float(np.abs(sl.crba(model, s.q)).max())
    for inputs in ((s.q, s.v, s.a), (s.q, s.v, s.a, s.forces)):
        right = sl.rnea_derivatives(model, *inputs, mode="ad")
        compare_all(sl.rnea_derivatives(model, *inputs), right, least, "rnea")
        without = (*inputs[:2], *inputs[3:])
        right = sl.nonlinear_effects_derivatives(model, *without, mode="ad")
        compare_all(sl.nonlinear_effects_derivatives(model, *without), right, least, "nonlinear effects")


@pytest.mark.parametrize("variant", ["fixed", "geared"])
@pytest.mark.parametrize("name", LOADABLE)
def test_against_pinocchio(name: str, variant: str) -> None:
    r = load(name, variant)
    model, s, nv = r.model, r.states, r.model.nv
    plain, pushed = sl.rnea_derivatives(model, s.q, s.v, s.a), sl.rnea_derivatives(model, s.q, s.v, s.a, s.forces)
    effects = sl.nonlinear_effects_derivatives(model, s.q, s.v)
    assert plain.dtau_dq.shape == effects[0].shape == (len(s.q), nv, nv)
    least = 1e-3 * float(np.abs(sl.crba(model, s.q)).max(initial=0.0))
    for k in range(len(s.q) if nv else 0):  # Pinocchio has no derivatives of what does not move
        x = s.sample(k)
        for ours, more in ((plain, ()), (pushed, (pin_forces(x),))):
            dq, dv, M = (part.copy() for part in pin.computeRNEADerivatives(r.peer, r.data, x.q, x.v, x.a, *more))
            compare_all([part[k] for part in ours], (dq, dv, full(M)), least, "rnea")
        right = [part.copy() for part in pin.computeRNEADerivatives(r.peer, r.data, x.q, x.v, 0.0 * x.a)]
        compare_all([part[k] for part in effects], right[:2], least, "nonlinear effects")


@pytest.mark.parametrize("mode", ERRORS)
def test_other_modes(mode: str) -> None:
    model = floating_tree(seed=5, bodies=6)
    s = random_state(model, 1, 3)
    right = sl.rnea_derivatives(model, s.q, s.v, s.a, s.forces)
    assert_close(sl.rnea_derivatives(model, s.q, s.v, s.a, s.forces, mode), right, ERRORS[mode])
    right = sl.nonlinear_effects_derivatives(model, s.q, s.v, s.forces)
    assert_close(tuple(sl.nonlinear_effects_derivatives(model, s.q, s.v, s.forces, mode)), right, ERRORS[mode])


def test_mimic_joints_against_central_differences() -> None:
    model = mimic_tree(seed=2, bodies=8)
    assert model.coupling is not None
    s = random_state(model, 1, 3)
    found = sl.rnea_derivatives(model, s.q, s.v, s.a, s.forces)
    assert_close(found, sl.rnea_derivatives(model, s.q, s.v, s.a, s.forces, "fdc"), 1e-8)
    assert_close(found.dtau_da, sl.crba(model, s.q), 1e-12)


def test_an_oscillating_pendulum() -> None:
    """Closed form: tau = (I + m l^2) a + m g l sin(q)."""
    mass, length, inertia = 1.5, 0.7, 0.2
    builder = sl.ModelBuilder("pendulum")
    builder.add_joint("hinge", "revolute", axis=[0, 1, 0])
    builder.add_body("hinge", mass, com=[0, 0, -length], inertia=inertia * np.eye(3))
    model, q = builder.build(), np.linspace(-3, 3, 7)[:, None]
    D = sl.rnea_derivatives(model, q, 2.0 + q, 3.0 * q)
    gravity = abs(model.gravity[2])
    assert_close(D.dtau_dq[:, 0], mass * gravity * length * np.cos(q), 1e-14)
    assert_close(D.dtau_da[:, 0], np.full((7, 1), inertia + mass * length**2), 1e-14)
    assert np.abs(D.dtau_dv).max() < 1e-14


@pytest.mark.slow
def test_leading_axes_and_precisions() -> None:
    """(T, B, nv) with what is the same for all given once; single precision in and out."""
    model = sl.load_robot("quadruped")
    s = random_state(model, 2, (3, 5))
    whole = sl.rnea_derivatives(model, s.q, s.v[:, :1], s.a[0, 0])
    assert whole.dtau_dq.shape == (3, 5, model.nv, model.nv)
    one = sl.rnea_derivatives(model, s.q[2, 4], s.v[2, 0], s.a[0, 0])
    assert_close(tuple(part[2, 4] for part in whole), tuple(one), 1e-12)
    singles = [x.astype(np.float32) for x in (s.q, s.v, s.a)]
    ours = sl.rnea_derivatives(model, *singles)
    right = sl.rnea_derivatives(model, *(x.astype(float) for x in singles))
    assert all(part.dtype == np.float32 for part in ours)
    assert_close(tuple(ours), tuple(right), 1e-5)


def test_errors() -> None:
    model = sl.load_robot("quadruped")
    q, v = model.neutral(), np.zeros(model.nv)
    with pytest.raises(ValueError, match=r"rnea_derivatives: v has shape \(3,\)"):
        sl.rnea_derivatives(model, q, np.zeros(3), v)
    with pytest.raises(ValueError, match=r"rnea_derivatives: a\[2\] is nan, expected finite numbers"):
        sl.rnea_derivatives(model, q, v, np.where(np.arange(model.nv) == 2, np.nan, 0.0))
    with pytest.raises(ValueError, match="mode is 'exact', expected one of"):
        sl.rnea_derivatives(model, q, v, v, mode="exact")
    with pytest.raises(ValueError, match="mode is 'exact', expected one of"):
        sl.nonlinear_effects_derivatives(model, q, v, mode="exact")
