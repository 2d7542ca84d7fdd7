"""Every algorithm against the dense oracle, on 200 random trees of all joint kinds, to a relative error of 1e-10; what
solves with the inertia matrix, to twice the rounding unit times its condition number (up to 4e6) where that is more.

Each runs on one sample, and on a batch of one, which takes the way through packets. An error is relative to the largest
entry of the oracle's result, or to the natural size of the quantity (`SIZES`) where that result is zero but for rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
from scipy.linalg import block_diag, expm

import saltus as sl
from tests import oracles
from tests.closeness import assert_close, with_rounding
from tests.generators import TREES, State, make_tree, mimic_tree, random_state

TOLERANCE = 1e-10
REFERENCES = ("local", "world", "local_world_aligned")


# --- what the oracle does not have, made of what it has ---
def factors(M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """U, D with M = U D U^T, by Cholesky's factorisation of M with its order reversed."""
    L = np.linalg.cholesky(M[::-1, ::-1])
    roots = np.diag(L)
    return (L / roots)[::-1, ::-1], roots[::-1] ** 2


def group_maps(model: sl.Model, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ad(exp v)^-1 and the right Jacobian, the integral of exp(-s ad v) over s from 0 to 1, of all joints (nv, nv)."""
    back, right = [], []
    for joint in (joint for joint in model.joints[1:] if not joint.mimic):
        S = oracles.joint_subspace(model, joint)
        if joint.kind not in (sl.JointKind.PLANAR, sl.JointKind.SPHERICAL, sl.JointKind.FREE_FLYER):
            back.append(np.eye(joint.nv))  # the other joints add: their group is commutative
            right.append(np.eye(joint.nv))
            continue
        twist = -oracles.ad(S @ v[joint.iv : joint.iv + joint.nv])
        both = expm(np.block([[twist, np.eye(6)], [np.zeros((6, 12))]]))
        back.append(S.T @ both[:6, :6] @ S)
        right.append(S.T @ both[:6, 6:] @ S)
    return block_diag(*back), block_diag(*right)


def difference_jacobians(model: sl.Model, s: State) -> tuple[np.ndarray, np.ndarray]:
    back, right = group_maps(model, oracles.difference(model, s.q, s.q1))
    inverse = np.linalg.inv(right)
    return -inverse @ back, inverse


def sampled(model: sl.Model, count: int) -> list[int]:
    """The last frame or joint, and for small models one in the middle."""
    return [count - 1] if model.nb > 30 else sorted({count // 2, count - 1})


def at_frames(function: Callable[..., Any]) -> Callable[[sl.Model, State], Any]:
    """A function of a frame and a reference, for some frames and all references."""
    return lambda m, s: tuple(function(m, s, f, ref) for f in sampled(m, len(m.frames)) for ref in REFERENCES)


def at_joints(function: Callable[..., Any]) -> Callable[[sl.Model, State], Any]:
    return lambda m, s: tuple(function(m, s, i, ref) for i in sampled(m, m.njoints) for ref in REFERENCES)


def ltl(method: str) -> Callable[[sl.Model, State], Any]:
    return lambda m, s: getattr(sl.ltl(m, sl.crba(m, s.q)), method)(s.tau)


def upper(m: sl.Model, s: State) -> np.ndarray:
    return factors(oracles.mass_matrix(m, s.q))[0]


TABLE: dict[str, tuple[Callable[[sl.Model, State], Any], Callable[[sl.Model, State], Any]]] = {
    "joint_placements": (lambda m, s: sl.joint_placements(m, s.q), lambda m, s: oracles.placements(m, s.q)),
    "frame_placements": (
        lambda m, s: sl.frame_placements(m, s.q),
        lambda m, s: np.array([oracles.placements(m, s.q)[f.joint] @ f.placement for f in m.frames]),
    ),
    "joint_velocities": (lambda m, s: sl.joint_velocities(m, s.q, s.v), lambda m, s: oracles.velocities(m, s.q, s.v)),
    "joint_accelerations": (
        lambda m, s: sl.joint_accelerations(m, s.q, s.v, s.a),
        lambda m, s: oracles.accelerations(m, s.q, s.v, s.a),
    ),
    "forward_kinematics": (
        lambda m, s: sl.forward_kinematics(m, s.q, s.v, s.a),
        lambda m, s: (
            oracles.placements(m, s.q), oracles.velocities(m, s.q, s.v), oracles.accelerations(m, s.q, s.v, s.a),
        ),
    ),
    "forward_kinematics without a": (
        lambda m, s: sl.forward_kinematics(m, s.q, s.v),
        lambda m, s: (oracles.placements(m, s.q), oracles.velocities(m, s.q, s.v)),
    ),
    "forward_kinematics without v": (
        lambda m, s: sl.forward_kinematics(m, s.q),
        lambda m, s: (oracles.placements(m, s.q),),
    ),
    "frame_placement": (
        lambda m, s: tuple(sl.frame_placement(m, s.q, f) for f in sampled(m, len(m.frames))),
        lambda m, s: tuple(oracles.frame_placement(m, s.q, f) for f in sampled(m, len(m.frames))),
    ),
    "frame_velocity": (
        at_frames(lambda m, s, f, ref: sl.frame_velocity(m, s.q, s.v, f, ref)),
        at_frames(lambda m, s, f, ref: oracles.frame_velocity(m, s.q, s.v, f, ref)),
    ),
    "frame_acceleration": (
        at_frames(lambda m, s, f, ref: sl.frame_acceleration(m, s.q, s.v, s.a, f, ref)),
        at_frames(lambda m, s, f, ref: oracles.frame_acceleration(m, s.q, s.v, s.a, f, ref)),
    ),
    "frame_jacobian": (
        at_frames(lambda m, s, f, ref: sl.frame_jacobian(m, s.q, f, ref)),
        at_frames(lambda m, s, f, ref: oracles.frame_jacobian(m, s.q, f, ref)),
    ),
    "frame_jacobian_dot": (
        at_frames(lambda m, s, f, ref: sl.frame_jacobian_dot(m, s.q, s.v, f, ref)),
        at_frames(lambda m, s, f, ref: (
            oracles.frame_jacobian(m, s.q, f, ref), oracles.frame_jacobian_dot(m, s.q, s.v, f, ref))),
    ),
    "joint_jacobian": (
        at_joints(lambda m, s, i, ref: sl.joint_jacobian(m, s.q, i, ref)),
        at_joints(lambda m, s, i, ref: oracles.joint_jacobian(m, s.q, i, ref)),
    ),
    "joint_jacobian_dot": (
        at_joints(lambda m, s, i, ref: sl.joint_jacobian_dot(m, s.q, s.v, i, ref)),
        at_joints(lambda m, s, i, ref: (
            oracles.joint_jacobian(m, s.q, i, ref), oracles.jacobian_dot(m, s.q, s.v, i, ref))),
    ),
    "rnea": (
        lambda m, s: sl.rnea(m, s.q, s.v, s.a),
        lambda m, s: oracles.inverse_dynamics(m, s.q, s.v, s.a),
    ),
    "rnea with forces": (
        lambda m, s: sl.rnea(m, s.q, s.v, s.a, s.forces),
        lambda m, s: oracles.inverse_dynamics(m, s.q, s.v, s.a, s.forces),
    ),
    "nonlinear_effects": (
        lambda m, s: sl.nonlinear_effects(m, s.q, s.v),
        lambda m, s: oracles.bias(m, s.q, s.v),
    ),
    "nonlinear_effects with forces": (
        lambda m, s: sl.nonlinear_effects(m, s.q, s.v, s.forces),
        lambda m, s: oracles.inverse_dynamics(m, s.q, s.v, 0.0 * s.a, s.forces),
    ),
    "gravity": (lambda m, s: sl.gravity(m, s.q), lambda m, s: oracles.gravity_torque(m, s.q)),
    "gravity with forces": (
        lambda m, s: sl.gravity(m, s.q, s.forces),
        lambda m, s: oracles.inverse_dynamics(m, s.q, 0.0 * s.v, 0.0 * s.a, s.forces),
    ),
    "crba": (lambda m, s: sl.crba(m, s.q), lambda m, s: oracles.mass_matrix(m, s.q)),
    "minverse": (lambda m, s: sl.minverse(m, s.q), lambda m, s: oracles.mass_matrix_inverse(m, s.q)),
    "aba": (
        lambda m, s: sl.aba(m, s.q, s.v, s.tau),
        lambda m, s: oracles.forward_dynamics(m, s.q, s.v, s.tau),
    ),
    "aba with forces": (
        lambda m, s: sl.aba(m, s.q, s.v, s.tau, s.forces),
        lambda m, s: oracles.forward_dynamics(m, s.q, s.v, s.tau, s.forces),
    ),
    "ltl": (
        lambda m, s: attrgetter("U", "D")(sl.ltl(m, sl.crba(m, s.q))),
        lambda m, s: factors(oracles.mass_matrix(m, s.q)),
    ),
    "ltl upper": (ltl("upper"), lambda m, s: upper(m, s) @ s.tau),
    "ltl lower": (ltl("lower"), lambda m, s: upper(m, s).T @ s.tau),
    "ltl solve_upper": (ltl("solve_upper"), lambda m, s: np.linalg.solve(upper(m, s), s.tau)),
    "ltl solve_lower": (ltl("solve_lower"), lambda m, s: np.linalg.solve(upper(m, s).T, s.tau)),
    "ltl solve": (ltl("solve"), lambda m, s: np.linalg.solve(oracles.mass_matrix(m, s.q), s.tau)),
    "center_of_mass": (lambda m, s: sl.center_of_mass(m, s.q), lambda m, s: oracles.center_of_mass(m, s.q)[0]),
    "center_of_mass with v": (
        lambda m, s: sl.center_of_mass(m, s.q, s.v),
        lambda m, s: oracles.center_of_mass(m, s.q, s.v),
    ),
    "center_of_mass with a": (
        lambda m, s: sl.center_of_mass(m, s.q, s.v, s.a),
        lambda m, s: oracles.center_of_mass(m, s.q, s.v, s.a),
    ),
    "center_of_mass_jacobian": (
        lambda m, s: sl.center_of_mass_jacobian(m, s.q),
        lambda m, s: oracles.com_jacobian(m, s.q),
    ),
    "centroidal_momentum_matrix": (
        lambda m, s: sl.centroidal_momentum_matrix(m, s.q),
        lambda m, s: oracles.centroidal_momentum_matrix(m, s.q),
    ),
    "centroidal_momentum": (
        lambda m, s: sl.centroidal_momentum(m, s.q, s.v),
        lambda m, s: oracles.centroidal_momentum(m, s.q, s.v),
    ),
    "centroidal_momentum_drift": (
        lambda m, s: sl.centroidal_momentum_drift(m, s.q, s.v),
        lambda m, s: oracles.centroidal_momentum_drift(m, s.q, s.v),
    ),
    "centroidal_momentum_rate": (
        lambda m, s: sl.centroidal_momentum_rate(m, s.q, s.v, s.a),
        lambda m, s: oracles.centroidal_momentum_time_variation(m, s.q, s.v, s.a),
    ),
    "kinetic_energy": (
        lambda m, s: sl.kinetic_energy(m, s.q, s.v),
        lambda m, s: oracles.kinetic_energy(m, s.q, s.v),
    ),
    "potential_energy": (lambda m, s: sl.potential_energy(m, s.q), lambda m, s: oracles.potential_energy(m, s.q)),
    "integrate": (lambda m, s: sl.integrate(m, s.q, s.v), lambda m, s: oracles.integrate(m, s.q, s.v)),
    "difference": (lambda m, s: sl.difference(m, s.q, s.q1), lambda m, s: oracles.difference(m, s.q, s.q1)),
    "interpolate": (
        lambda m, s: sl.interpolate(m, s.q, s.q1, 0.3),
        lambda m, s: oracles.integrate(m, s.q, 0.3 * oracles.difference(m, s.q, s.q1)),
    ),
    "distance": (
        lambda m, s: sl.distance(m, s.q, s.q1),
        lambda m, s: np.linalg.norm(oracles.difference(m, s.q, s.q1)),
    ),
    "integrate_jacobians": (lambda m, s: sl.integrate_jacobians(m, s.q, s.v), lambda m, s: group_maps(m, s.v)),
    "difference_jacobians": (lambda m, s: sl.difference_jacobians(m, s.q, s.q1), difference_jacobians),
}  # fmt: skip

SIZES: dict[str, Callable[[sl.Model, State], float]] = {
    "frame_jacobian_dot": lambda m, s: 1.0,
    "joint_jacobian_dot": lambda m, s: 1.0,
    "centroidal_momentum_drift": lambda m, s: m.total_mass,
}


SOLVERS = {"minverse", "aba", "aba with forces", *(name for name in TABLE if name.startswith("ltl"))}
ROUNDINGS = 2.0


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which computes nothing twice."""
    known: dict[Any, Any] = {}

    def recall(model: sl.Model, *arguments: Any) -> Any:
        key = (id(model), *(None if x is None else np.asarray(x).tobytes() for x in arguments))
        if key not in known:
            known[key] = function(model, *arguments)
        return known[key]

    return recall


@pytest.fixture(autouse=True)
def quick_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("placements", "_jacobians", "_local", "mass_matrix", "difference"):
        monkeypatch.setattr(oracles, name, remembered(getattr(oracles, name)))


def leaves(result: Any) -> list[np.ndarray]:
    return [leaf for part in result for leaf in leaves(part)] if isinstance(result, tuple) else [np.asarray(result)]


def failures_of(m: sl.Model, s: State, name: str, algorithms: list[str]) -> list[str]:
    """What went wrong, on one sample and on a batch of one, in words."""
    batch = s.map(lambda x: x[None])
    failures = []
    for algorithm in algorithms:
        ours, theirs = TABLE[algorithm]
        least = SIZES[algorithm](m, s) if algorithm in SIZES else 0.0
        tolerance = TOLERANCE
        if algorithm in SOLVERS and m.nv:
            tolerance = with_rounding(TOLERANCE, np.linalg.cond(oracles.mass_matrix(m, s.q)), ROUNDINGS)
        results = leaves(ours(m, s)), leaves(ours(m, batch)), leaves(theirs(m, s))
        for one, packed, right in zip(*results, strict=True):
            scale = max(float(np.abs(right).max(initial=0.0)), least)
            try:
                assert_close(one, right, tolerance, scale, f"{name}: {algorithm}")
                assert_close(packed, right[None], tolerance, scale, f"{name}: {algorithm}, batch")
            except AssertionError as error:
                failures.append(str(error).splitlines()[0])
    return failures


@pytest.mark.parametrize(("seed", "bodies"), TREES)
def test_all_algorithms(seed: int, bodies: int) -> None:
    tree = make_tree(seed, bodies)
    assert not failures_of(tree.model, tree.state, tree.name, list(TABLE))


NOT_WITH_MIMICS = {algorithm for algorithm in TABLE if algorithm.startswith("ltl")}
"""Mimic joints destroy the sparsity that the factorisation lives on: it refuses such models."""


@pytest.mark.parametrize(("seed", "bodies"), [(seed, 2 + seed % 14) for seed in range(40)])
def test_mimic_joints(seed: int, bodies: int) -> None:
    model = mimic_tree(seed, bodies)
    state = random_state(model, seed)
    assert not failures_of(model, state, model.name, [name for name in TABLE if name not in NOT_WITH_MIMICS])
    if any(joint.mimic for joint in model.joints):
        with pytest.raises(ValueError, match=r"ltl: M .*mimic"):
            sl.ltl(model, sl.crba(model, state.q))


@pytest.mark.parametrize(("seed", "bodies"), TREES[::10])
def test_structural_zeros(seed: int, bodies: int) -> None:
    """Entries of M, and of U, between degrees of freedom of different branches are exactly zero."""
    tree = make_tree(seed, bodies)
    m, s = tree.model, tree.state
    ancestors = [{0}]
    for i, joint in enumerate(m.joints[1:], start=1):
        ancestors.append(ancestors[joint.parent] | {i})
    body = [i for i, joint in enumerate(m.joints) for _ in range(joint.nv)]
    related = np.array([[a in ancestors[b] or b in ancestors[a] for b in body] for a in body])
    M = sl.crba(m, s.q)
    factors = sl.ltl(m, M)
    assert not M[~related].any()
    assert not factors.U[~related].any()
    assert not np.tril(factors.U, -1).any()
    assert (np.diag(factors.U) == 1.0).all()


REGRESSORS = {f"{what}_regressor" for what in ("torque", "kinetic_energy", "potential_energy", "centroidal_momentum")}
NOT_ALGORITHMS = {"LTL", "random_configuration", "coriolis_matrix", "passive_torques", "elastic_energy", *REGRESSORS}
"""The last ones: test_coriolis.py, test_passive.py, test_regressor.py."""


def test_table_is_complete() -> None:
    """A new public function of these layers needs an entry here."""
    homes = ("saltus.dynamics.", "saltus.model.manifold")
    public = {name for name in sl.__all__ if getattr(getattr(sl, name), "__module__", "").startswith(homes)}
    assert len(public) > 30
    assert public - NOT_ALGORITHMS == {algorithm.split()[0] for algorithm in TABLE}


def test_most_mimic_trees_have_mimics() -> None:
    assert sum(any(joint.mimic for joint in mimic_tree(seed, 2 + seed % 14).joints) for seed in range(40)) > 25
