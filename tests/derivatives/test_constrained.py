"""Derivatives of constrained dynamics: every robot and contact set against dual numbers and Pinocchio; every method.

States are those of tests/constraints/test_against_pinocchio.py, 20 instead of 1000 a case: a derivative has nv times as many
numbers as a solution, and what is wrong in a formula is wrong at every state. Since derivatives hold the inverse of the
Delassus matrix twice, its least eigenvalue is asked to be 1e-5 of the largest, instead of 1e-6.

Where forces are not unique, there are as many right answers as ways to share them: Pinocchio's depends on mu, and forces
that push against each other have no derivative along directions in which rows come to contradict each other. So these sets
are compared with dual numbers only, to 1e-7: accelerations, and the torques J^T df that forces make together.

Worst errors: 1e-9 or less where forces are unique, 3e-9 where they are not, 7e-8 of iCub, by its conditioning.

Pinocchio 4.1.0 is wrong about the loop of the four-bar linkage, by 80 % (`four_bar:L`, by q; its rows are redundant).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.constraints.dynamics import METHODS, SOFT, TREES_ONLY
from tests.constraints import truth
from tests.derivatives.constrained import (
    BY_STATE,
    EVERYTHING,
    OF_ACCELERATIONS,
    compare_with_dual_numbers,
    converged,
    misses,
    misses_in_torques,
    on_dual_numbers,
    states,
)

pytest.importorskip("pinocchio")

from benchmarks.contacts import LIMBS, Case
from benchmarks.derivatives import FIELDS, differentiate
from benchmarks.peer_constraints import ConstrainedPeer
from benchmarks.robots import pinocchio_model
from tests.closeness import with_rounding
from tests.constraints.test_against_pinocchio import CASES, ILL_CONDITIONED, good_states, random_states

TOLERANCE, REDUNDANT = 1e-9, 1e-7
SEEDS = [0, 1, 5, 7, 9, 10, 14, 17]
"""Of trees on which a contact and a loop are not redundant."""


def of_pinocchio(robot: str, held: list[sl.Constraint], inputs: Any) -> dict[str, Any]:
    """Its derivatives hold mu of the last factorisation, so that is chosen small."""
    peer = ConstrainedPeer(pinocchio_model(robot), held)
    settings, found = peer.settings(1e-13, 1e-8, 200), []
    for each in zip(*inputs, strict=True):
        data = differentiate(peer, *each, settings)
        found.append({name: getattr(data, theirs).copy() for name, theirs in FIELDS.items()})
    return {name: np.array([each[name] for each in found]) for name in FIELDS}


def natural_sizes(model: sl.Model, q: Any) -> dict[str, Any]:
    """Arms that are held at all their joints have no acceleration that torques change: zero but for rounding."""
    return {"da_dtau": np.abs(sl.minverse(model, q)).max((-1, -2))}


@pytest.mark.parametrize("name", list(CASES))
def test_random_states(name: str) -> None:
    case = CASES[name]
    model, held = case.model, case.constraints
    inputs, unique = good_states(model, held, 20, 1e-5)
    dynamics, least = converged(model, held), natural_sizes(model, inputs[0])
    # Slopes of iterations over rows that share a force lose as many digits as mu costs: more than the default leaves here.
    steady = dynamics if unique else converged(model, held, mu=dynamics.mu)
    D, exact = dynamics.derivatives(*inputs), on_dual_numbers(steady, *inputs)
    tolerance = np.full(20, TOLERANCE if unique else REDUNDANT)
    if case.robot in ILL_CONDITIONED:
        tolerance = with_rounding(tolerance, np.linalg.cond(sl.crba(model, inputs[0])))
    if unique:
        found = misses(D, exact, EVERYTHING, tolerance, least)
        found += [
            f"Pinocchio's {line}"
            for line in misses(D, of_pinocchio(case.robot, held, inputs), BY_STATE, tolerance, least)
        ]
    else:
        found = misses(D, exact, OF_ACCELERATIONS, tolerance, least)
        found += misses_in_torques(model, held, inputs[0], D, exact, tolerance)
    assert not found, "\n".join(["", *found])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["constrained_aba", "prox_ltl"])
@pytest.mark.parametrize("name", list(CASES))
def test_along_all_directions(name: str, method: str) -> None:
    """Slopes along unit directions are columns of the matrices."""
    case = CASES[name]
    model, held = case.model, case.constraints
    inputs, unique = good_states(model, held, 20, 1e-5)
    dynamics, least = converged(model, held, method), natural_sizes(model, inputs[0])
    D = dynamics.derivatives(*inputs)
    tolerance = np.full(20, TOLERANCE if unique else REDUNDANT)
    if case.robot in ILL_CONDITIONED:
        tolerance = with_rounding(tolerance, np.linalg.cond(sl.crba(model, inputs[0])))
    columns: dict[str, Any] = {}
    for k, by in enumerate(("q", "v", "tau")):
        directions = [np.eye(model.nv)[None].repeat(20, 0) if n == k else None for n in range(3)]
        _, slopes = sl.jvp(sl.ConstrainedDynamics.solve, dynamics, inputs, tuple(directions), "analytical")
        columns |= {f"d{out}_d{by}": np.swapaxes(slope, -1, -2) for out, slope in zip("af", slopes, strict=True)}
    found = misses(D, columns, BY_STATE, tolerance, least)
    assert not found, "\n".join(["", *found])


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
def test_weighted_sums(name: str) -> None:
    """Gradients of sums are sums of rows. An arm whose joints are all held, and held again, is nearly singular, too:
    `vjp` does not raise mu there, as `derivatives` does, and has 1.1e-7 at one state of 20."""
    case = CASES[name]
    model, held = case.model, case.constraints
    inputs, unique = good_states(model, held, 20, 1e-5)
    dynamics, rng = converged(model, held), np.random.default_rng(0)
    weights = rng.normal(size=(20, model.nv)), rng.normal(size=(20, dynamics.problem.nm)) * unique
    D, (_, gradients) = dynamics.derivatives(*inputs), sl.vjp(sl.ConstrainedDynamics.solve, dynamics, inputs, weights)
    tolerance = np.full(20, TOLERANCE if unique else REDUNDANT) * (2 if name == "arm:H6H6H3H3" else 1)
    if case.robot in ILL_CONDITIONED:
        tolerance = with_rounding(tolerance, np.linalg.cond(sl.crba(model, inputs[0])))
    for gradient, by in zip(gradients, ("q", "v", "tau"), strict=True):
        rows = [np.einsum("bi,bij->bj", w, getattr(D, f"d{out}_d{by}")) for out, w in zip("af", weights, strict=True)]
        off = np.abs(gradient - sum(rows)).max(-1) / np.abs(rows).max((0, -1))
        assert (off <= tolerance).all(), f"by {by}: {off.max():.1e}"


@pytest.mark.parametrize("dim", [3, 6])
def test_tied_hands(dim: int) -> None:
    """Two bodies far apart in the tree, tied as a point and as a weld, on two feet; Pinocchio agrees about such loops."""
    case = Case("talos38", "F6^2")
    model = case.model
    held = [*case.constraints, sl.LoopClosure(model, *LIMBS["talos38"]["H"], dim)]
    inputs = random_states(model, 10, seed=1)
    D = compare_with_dual_numbers(converged(model, held), inputs, EVERYTHING, TOLERANCE)
    found = misses(D, of_pinocchio("talos38", held, inputs), BY_STATE, TOLERANCE)
    assert not found, "\n".join(["", *found])


def quadruped() -> tuple[sl.Model, list[sl.Constraint]]:
    """Contacts of both kinds, with gains and weights."""
    model, feet, anchor = sl.load_robot("quadruped"), sl.robot_frames("quadruped").feet, np.eye(4)
    anchor[:3, :3], anchor[:3, 3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]], (0.1, -0.2, 0.3)
    return model, [
        sl.Contact(model, feet[0], 3, kp=30.0, kd=7.0, anchor=anchor),
        sl.Contact(model, feet[3], 3, kd=3.0, weight=[1, 2, 3, 1, 1, 1]),
        sl.Contact(model, feet[1], 6, kp=20.0, kd=4.0, anchor=anchor),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("method", sorted(set(METHODS) - {"kkt"}))
def test_every_method(method: str) -> None:
    """Its own solution on dual numbers, from forces to start from and with accelerations asked for."""
    model, held = quadruped()
    rng = np.random.default_rng(0)
    target, start = rng.normal(size=(5, 12)), 100.0 * rng.normal(size=(5, 12))
    dynamics = converged(model, held, method)
    compare_with_dual_numbers(dynamics, states(model, 5, 4), EVERYTHING, TOLERANCE, target=target, start=start)


def test_dense_method() -> None:
    """Dual numbers do not pass through NumPy's decompositions, so `kkt` is compared with those of another method."""
    model, held = quadruped()
    inputs = states(model, 5, 4)
    D, right = converged(model, held, "kkt").derivatives(*inputs), on_dual_numbers(converged(model, held), *inputs)
    assert not misses(D, right, EVERYTHING, TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("mu", [1e-1, 1e-3])
@pytest.mark.parametrize("method", sorted(SOFT))
def test_soft_constraints(method: str, mu: float) -> None:
    """Their first iteration is what they are: with a mu so large that a derivative without it would be wrong."""
    model, held = quadruped()
    rng, inputs = np.random.default_rng(0), states(model, 5, 4)
    target, start = rng.normal(size=(5, 12)), 100.0 * rng.normal(size=(5, 12))
    D = compare_with_dual_numbers(
        converged(model, held, method, mu=mu), inputs, EVERYTHING, TOLERANCE, target=target, start=start
    )
    stiff = converged(model, held).derivatives(*inputs, target=target)
    assert np.abs(D.da_dq - stiff.da_dq).max() > 1e-4 * np.abs(stiff.da_dq).max()


@pytest.mark.parametrize("mu", [1e-1, 1e-3])
def test_soft_loops_that_are_redundant(mu: float) -> None:
    model, held = humanoid_loops(6)
    compare_with_dual_numbers(converged(model, held, "soft", mu=mu), states(model, 4, 7), EVERYTHING, TOLERANCE)


def humanoid_loops(dim: int) -> tuple[sl.Model, list[sl.Constraint]]:
    """Loops of every kind, with gains, a contact, and a joint that is locked by six rows of which five are redundant."""
    model, names = sl.load_robot("humanoid"), sl.robot_frames("humanoid")
    (left, right), (left_hand, right_hand) = names.feet, names.hands
    return model, [
        sl.LoopClosure(model, left_hand, right_hand, dim, kp=5.0, kd=2.0),
        sl.Contact(model, left, 6, kd=1.0),
        sl.LoopClosure(model, right_hand, right, rows=(1, 3, 5), kd=1.5),
        sl.JointLock(model, model.joints[4].name, kp=3.0, kd=1.0),
    ]


@pytest.mark.parametrize("dim", [3, 5, 6])
@pytest.mark.parametrize("method", sorted(set(METHODS) - TREES_ONLY - {"kkt"}))
def test_loops(method: str, dim: int) -> None:
    """The locked joint's five rows of zeros leave forces as they are: derivatives by their targets have no size."""
    model, held = humanoid_loops(dim)
    names = [*OF_ACCELERATIONS, "df_dq", "df_dv", "df_dtau"]
    compare_with_dual_numbers(converged(model, held, method), states(model, 5, 7), names, TOLERANCE)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_trees(seed: int) -> None:
    """All kinds of joints, a contact and a loop; states that are all but singular are left out."""
    model = sl.random_model(seed=seed, bodies=14 + seed % 8)
    moving = [k for k, frame in enumerate(model.frames) if frame.joint > 4]
    contact, a, b = (int(k) for k in np.random.default_rng(seed).choice(moving, 3, replace=False))
    held = [sl.Contact(model, contact, kd=1.0), sl.LoopClosure(model, a, b, (3, 5, 6)[seed % 3], kp=2.0)]
    q, v, tau = states(model, 20, seed)
    _, _, eigenvalues = truth.delassus_inverse(sl.crba(model, q), truth.jacobian(model, held, q))
    regular = eigenvalues[:, 0] > 1e-4 * eigenvalues[:, -1]
    assert regular.any()
    inputs = q[regular], v[regular], tau[regular]
    least = natural_sizes(model, inputs[0])
    compare_with_dual_numbers(converged(model, held), inputs, EVERYTHING, TOLERANCE, least)
