"""Derivatives of constrained dynamics for every kind of constraint and input: gains, masks, rows, shapes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import saltus as sl
from tests.closeness import assert_close, with_rounding
from tests.derivatives.constrained import (
    BY_STATE,
    EVERYTHING,
    OF_ACCELERATIONS,
    compare_with_dual_numbers,
    converged,
    states,
)
from tests.derivatives.test_constrained import humanoid_loops, quadruped
from tests.generators import mimic_tree

TOLERANCE = 1e-9


def with_gains(held: list[sl.Constraint], c: int, kp: float, kd: float) -> list[sl.Constraint]:
    """Those of constraint c changed by so much."""
    changed = replace(held[c], kp=held[c].kp + kp, kd=held[c].kd + kd)
    return [changed if k == c else each for k, each in enumerate(held)]


@pytest.mark.parametrize("name", ["contacts", "loops 3", "loops 5", "loops 6"])
def test_by_gains(name: str) -> None:
    """Solutions are linear in the gains, so that differences of any length are exact."""
    model, held = quadruped() if name == "contacts" else humanoid_loops(int(name[-1]))
    inputs = states(model, 4, 1)
    D = converged(model, held).derivatives(*inputs)
    assert D.da_dkp.shape == D.da_dkd.shape == (4, model.nv, len(held))
    for c in range(len(held)):
        for gain, kp, kd in (("kp", 1.0, 0.0), ("kd", 0.0, 1.0)):
            if gain == "kp" and held[c].joint_b == 0 and held[c].kp == 0.0:
                continue  # a contact without anchor
            here, there = (converged(model, with_gains(held, c, *by)).solve(*inputs) for by in ((0.0, 0.0), (kp, kd)))
            assert_close(getattr(D, f"da_d{gain}")[..., c], there.a - here.a, 1e-8, what=f"{gain} of {held[c].name}")
            ours, right = getattr(D, f"df_d{gain}")[..., c], there.forces - here.forces
            assert_close(ours, right, 1e-8, float(np.abs(here.forces).max()), f"forces, {gain} of {held[c].name}")


def test_masks() -> None:
    """Every sample of a batch has its own active contacts; none at all is the free robot."""
    model, held = quadruped()
    inputs = states(model, 8, 4)
    active = np.array([[(k >> c) & 1 for c in range(3)] for k in range(8)], float)
    D = compare_with_dual_numbers(converged(model, held), inputs, BY_STATE, TOLERANCE, active=active)
    free = sl.aba_derivatives(model, *(x[0] for x in inputs))
    assert_close((D.da_dq[0], D.da_dv[0], D.da_dtau[0]), tuple(free), 1e-11)
    off = np.repeat(active, [3, 3, 6], axis=1) == 0
    for name in ("df_dq", "df_dv", "df_dtau"):
        assert not getattr(D, name)[off].any()
    assert not np.swapaxes(D.da_dtarget, 1, 2)[off].any()


def test_external_forces() -> None:
    model, held = quadruped()
    external = 20.0 * np.random.default_rng(0).normal(size=(5, model.njoints, 6))
    compare_with_dual_numbers(converged(model, held), states(model, 5, 4), EVERYTHING, TOLERANCE, external=external)


def test_rows_of_contacts() -> None:
    """A skate, and rows in an order of their own."""
    model, feet = sl.load_robot("quadruped"), sl.robot_frames("quadruped").feet
    held = [sl.Contact(model, feet[0], rows=(1,), kd=3.0), sl.Contact(model, feet[3], rows=(5, 0, 2))]
    compare_with_dual_numbers(converged(model, held), states(model, 5, 4), EVERYTHING, TOLERANCE)


@pytest.mark.parametrize("dofs", [None, [8, 11, 14]])
@pytest.mark.parametrize("method", ["prox_ltl", "prox_ltls"])
def test_rows_of_users(method: str, dofs: Any) -> None:
    """Between contacts, and switched off; they count as constant."""
    model, feet = sl.load_robot("quadruped"), sl.robot_frames("quadruped").feet
    rows = np.zeros((2, model.nv))
    rows[0, [8, 11, 14]], rows[1, [8, 14]] = (0.5, 0.5, -1.0), (1.0, 3.0)
    held = [sl.Contact(model, feet[0]), sl.UserRows(model, 2, dofs), sl.Contact(model, feet[3], 6)]
    active, target = np.ones((5, 3)), np.random.default_rng(0).normal(size=(5, 11))
    active[2, 1] = 0.0
    more = {"active": active, "target": target, "rows": rows}
    D = compare_with_dual_numbers(converged(model, held, method), states(model, 5, 4), BY_STATE, TOLERANCE, **more)
    assert not D.df_dq[2, 3:5].any() and not D.gap[:, 3:5].any() and not D.rate[:, 3:5].any()


def test_edges() -> None:
    """Two points of one body: one of six rows is redundant."""
    model, (left, right) = sl.load_robot("humanoid"), sl.robot_frames("humanoid").feet
    held = [*sl.LineContact(model, left, 0.2), sl.Contact(model, right, 6)]
    q, v, tau = states(model, 5, 7)
    names = [*OF_ACCELERATIONS, "df_dq", "df_dtau"]
    compare_with_dual_numbers(converged(model, held), (q, 0.0 * v, tau), names, 1e-7)


def test_a_constraint_turned_by_half_a_turn() -> None:
    """Its placement has no unique error, but no gain asks for one; another constraint's gain does."""
    model, feet = sl.load_robot("quadruped"), sl.robot_frames("quadruped").feet
    q, v, tau = (x[0] for x in states(model, 1, 4))
    anchor = sl.frame_placement(model, q, feet[0]) @ np.diag([1.0, -1.0, -1.0, 1.0])
    held = [sl.Contact(model, feet[0], 6, anchor=anchor), sl.Contact(model, feet[1], kp=2.0, anchor=np.eye(4))]
    compare_with_dual_numbers(converged(model, held), (q, v, tau), EVERYTHING, TOLERANCE)


def test_leading_axes() -> None:
    """(T, B, nv), with what is the same for all given once; each sample as its single call."""
    model, held = quadruped()
    q, v, tau = (x.reshape(3, 5, -1) for x in states(model, 15, 2))
    active = np.random.default_rng(0).integers(0, 2, (5, 3)).astype(float)
    dynamics = converged(model, held)
    D = dynamics.derivatives(q, v[:, :1], tau[0, 0], active)
    assert D.da_dq.shape == (3, 5, 18, 18) and D.df_dtarget.shape == (3, 5, 12, 12) and D.da_dkp.shape == (3, 5, 18, 3)
    one = dynamics.derivatives(q[2, 4], v[2, 0], tau[0, 0], active[4])
    for name in EVERYTHING:
        assert_close(getattr(D, name)[2, 4], getattr(one, name), 1e-10, what=name)
    assert one.da_dq.shape == (18, 18) and one.df_dkd.shape == (12, 3)


@pytest.mark.slow
def test_single_precision() -> None:
    """Against double precision on the same inputs, with a mu that single precision bears."""
    model, held = quadruped()
    dynamics = sl.ConstrainedDynamics(model, held, "soft", mu=1e-1)
    singles = [x.astype(np.float32) for x in states(model, 9, 3)]
    ours, right = dynamics.derivatives(*singles), dynamics.derivatives(*(x.astype(float) for x in singles))
    condition = np.linalg.cond(sl.crba(model, singles[0].astype(float))).max()
    for name in EVERYTHING:
        assert getattr(ours, name).dtype == np.float32
        assert_close(
            getattr(ours, name), getattr(right, name), with_rounding(0.0, condition, real=np.float32), what=name
        )


def test_nothing_is_held() -> None:
    model = sl.load_robot("quadruped")
    inputs = states(model, 3, 1)
    D = sl.ConstrainedDynamics(model, []).derivatives(*inputs)
    assert_close((D.da_dq, D.da_dv, D.da_dtau), tuple(sl.aba_derivatives(model, *inputs)), 1e-11)
    assert D.df_dq.shape == (3, 0, model.nv)


def test_errors() -> None:
    model, held = quadruped()
    dynamics, q, v = sl.ConstrainedDynamics(model, held), model.neutral(), np.zeros(model.nv)
    with pytest.raises(ValueError, match="mode is 'exact', expected one of"):
        dynamics.derivatives(q, v, v, mode="exact")
    with pytest.raises(ValueError, match=r"v has shape \(3,\)"):
        dynamics.derivatives(q, np.zeros(3), v)
    with pytest.raises(ValueError, match=r"active has shape \(2,\)"):
        dynamics.derivatives(q, v, v, np.ones(2))
    with pytest.raises(ValueError, match=r"target has shape \(2,\)"):
        dynamics.derivatives(q, v, v, target=np.ones(2))
    with pytest.raises(ValueError, match=r"tau\[1\] is nan"):
        dynamics.derivatives(q, v, np.where(np.arange(model.nv) == 1, np.nan, 0.0))
    with pytest.raises(sl.ModelError, match="knows no mimic joints"):
        sl.ConstrainedDynamics(mimic_tree(seed=2, bodies=8), [])
