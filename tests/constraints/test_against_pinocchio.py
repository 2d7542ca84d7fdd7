"""All methods against Pinocchio and against dense least squares: every robot, 1 to 6 constraints, 1000 states each.

A state is random. Where constraints are redundant by their number, velocities are taken that they allow, since others would
contradict them. States that are all but singular are replaced by others: the methods gain a factor mu / (mu + eigenvalue) an
iteration, and dense matrices lose as many digits as the condition number has. Singular ones have tests of their own, below.

iCub has a joint that moves next to nothing (the condition number of its inertia matrix is up to 3e12), so that no two
algorithms agree to more than the rounding unit times this number: there, this is what is asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.constraints.dynamics import METHODS, TREES_ONLY
from tests.closeness import with_rounding
from tests.constraints import truth

pytest.importorskip("pinocchio")

from benchmarks.contacts import LIMBS, Case, constraints
from benchmarks.peer_constraints import ConstrainedPeer
from benchmarks.robots import pinocchio_model

TOLERANCE, SAMPLES = 1e-9, 1000
LEAST_EIGENVALUE, LEAST_RATIO = 1e-5, 1e-6
"""Of the Delassus matrix of a state that is not singular: the least eigenvalue but zero, and its ratio to the largest."""
ILL_CONDITIONED = {"icub"}
ROUNDINGS = 4.0
"""Rounding units that `kkt` may be off by, times what its matrices make of them: it solves once, and does not iterate."""

RELAXED = {"soft", "pv_soft"}  # they stop after the first iteration
EXACT = sorted(set(METHODS) - RELAXED)
each_method = pytest.mark.parametrize("method", EXACT)

QUADRUPED = ("B6", "F3^2", "F3^3", "F3^4", "F3^4 B3", "F3^4 K3^2")
HUMANOID = ("F6", "F6^2", "F6^2 H3", "F6^2 H6^2", "F6^2 H3^2 E3", "F3^2 H3^2 E3^2", "F6 F3 H6 H3 E3^2")
HELD: dict[str, tuple[str, ...]] = {
    "ur5": ("H3", "H6", "H3 H3", "H3 H3 H3", "H3 H3 H3 H3 H3 H3"),
    "arm": ("H3", "H6", "H6 H3", "H6 H6 H3 H3", "H3 H3 H3 H3 H3 H3"),
    "solo12": QUADRUPED,
    "anymal": QUADRUPED,
    "icub": HUMANOID,
    "talos38": HUMANOID,
    "talos50": HUMANOID,
    "humanoid_hands": ("F6", "F6^2", "F6^2 H3", "F6^2 H6^2", "F3^2 E3^2 T3", "F6^2 T3^4"),
    "four_bar": ("L",),
    "biped": ("L", "L F3^2"),
}
CASES = {case.name: case for case in (Case(robot, held) for robot, every in HELD.items() for held in every)}


def relative(x: Any, right: Any) -> Any:
    """The largest difference of each sample, relative to its largest entry."""
    return np.abs(x - right).max(-1) / np.abs(right).max(-1)


def misses(x: Any, right: Any, tolerance: Any, what: str) -> list[str]:
    """A line on the samples that are not close, if there are any."""
    errors = relative(x, right)
    missed = ~(errors <= tolerance)  # true of NaN
    if not missed.any():
        return []
    return [f"{what}: {missed.sum()} of {len(errors)} samples miss, the worst error is {errors[missed].max():.1e}"]


def close(x: Any, right: Any, tolerance: Any, what: str) -> None:
    assert not misses(x, right, tolerance, what), misses(x, right, tolerance, what)[0]


def random_states(model: sl.Model, count: int, seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    v, tau = rng.normal(size=(2, count, model.nv))
    return sl.random_configuration(model, rng, count), v, 10.0 * tau


def solve(model: sl.Model, held: list[sl.Constraint], method: str, inputs: tuple[Any, ...], **more: Any) -> sl.Solution:
    """To the last digit, for as long as it takes."""
    dynamics = sl.ConstrainedDynamics(model, held, method, tolerance=1e-12, most_iterations=200)
    return dynamics.solve(*inputs, **more)


def good_states(
    model: sl.Model, held: list[sl.Constraint], count: int = SAMPLES, least_ratio: float = LEAST_RATIO
) -> tuple[tuple[Any, Any, Any], bool]:
    """States that are not singular and do not contradict the constraints, and whether forces are unique there."""
    q, v, tau = random_states(model, count + max(10, count // 10), seed=0)
    J = truth.jacobian(model, held, q)
    response, inverse, eigenvalues = truth.delassus_inverse(sl.crba(model, q), J)
    largest = eigenvalues[:, -1]
    found = eigenvalues > truth.RANK * largest[:, None]
    least = np.where(found, eigenvalues, np.inf).min(-1)
    regular = least > np.maximum(LEAST_EIGENVALUE, least_ratio * largest)
    unique = bool(found[regular].all())
    if not unique:
        v = v - truth.times(response, truth.times(inverse, truth.times(J, v)))
    assert regular.sum() >= count
    return (q[regular][:count], v[regular][:count], tau[regular][:count]), unique


def cancellation(model: sl.Model, held: list[sl.Constraint], inputs: tuple[Any, Any, Any], a: Any) -> Any:
    """By how much relative errors of the free motion can grow on the way to accelerations `a`: forces take over the
    condition number of the Delassus matrix, and what they do all but undoes the free motion."""
    q, _, _ = inputs
    _, _, eigenvalues = truth.delassus_inverse(sl.crba(model, q), truth.jacobian(model, held, q))
    found = eigenvalues > truth.RANK * eigenvalues[:, -1:]
    condition = eigenvalues[:, -1] / np.where(found, eigenvalues, np.inf).min(-1)
    return condition * np.abs(sl.aba(model, *inputs)).max(-1) / np.abs(a).max(-1)


@pytest.mark.parametrize("name", list(CASES))
def test_random_states(name: str) -> None:
    """All methods in one test, since what is right takes longer to find than their answers."""
    case = CASES[name]
    model, held = case.model, case.constraints
    inputs, unique = good_states(model, held)
    peer = ConstrainedPeer(pinocchio_model(case.robot), held)
    right = {
        "dense": truth.solve(model, held, *inputs)[:2],
        "pin": peer.solve_all(*inputs, peer.settings(1e-12, 1e-6, 100)),
    }
    tolerance = np.full(SAMPLES, TOLERANCE)
    if case.robot in ILL_CONDITIONED:
        tolerance = with_rounding(TOLERANCE, np.linalg.cond(sl.crba(model, inputs[0])))
    once = np.maximum(
        tolerance, with_rounding(TOLERANCE, cancellation(model, held, inputs, right["dense"][0]), ROUNDINGS)
    )
    found = []
    for method in EXACT:
        if case.has_loops and method in TREES_ONLY:
            continue
        solution = solve(model, held, method, inputs)
        for other, (a, forces) in right.items():
            found += misses(solution.a, a, once if method == "kkt" else tolerance, f"{method}, a against {other}")
            if unique:
                found += misses(solution.forces, forces, tolerance, f"{method}, forces against {other}")
    assert not found, "\n".join(["", *found])


@pytest.mark.parametrize("dim", [3, 6])
@each_method
def test_tied_hands(dim: int, method: str) -> None:
    """Two bodies far apart in the tree, tied as a point and as a weld, on two feet."""
    if method in TREES_ONLY:
        pytest.skip("for contacts only")
    case = Case("talos38", "F6^2")
    model, (left, right) = case.model, LIMBS["talos38"]["H"]
    held = [*case.constraints, sl.LoopClosure(model, left, right, dim)]
    inputs = random_states(model, 50, seed=1)
    peer = ConstrainedPeer(pinocchio_model("talos38"), held)
    a, forces = peer.solve_all(*inputs, peer.settings(1e-12, 1e-6, 100))
    solution = solve(model, held, method, inputs)
    close(solution.a, a, TOLERANCE, "accelerations")
    close(solution.forces, forces, TOLERANCE, "forces")


# ----------------------------------------------------------------------------------------------------------- hard cases


def rest_states(model: sl.Model, held: list[sl.Constraint], count: int, q: Any = None) -> tuple[Any, Any, Any]:
    """States in which the constraints are met: velocities are such that they stay so."""
    free, v, tau = random_states(model, count, seed=2)
    q = free if q is None else np.tile(q, (count, 1))
    J = truth.jacobian(model, held, q)
    response, inverse, _ = truth.delassus_inverse(sl.crba(model, q), J)
    return q, v - truth.times(response, truth.times(inverse, truth.times(J, v))), tau


def check_least_squares(
    model: sl.Model, held: list[sl.Constraint], method: str, inputs: Any, target: Any = None
) -> sl.Solution:
    """As users would call it: where constraints contradict each other, forces grow with every further iteration."""
    solution = sl.ConstrainedDynamics(model, held, method).solve(*inputs, target=target)
    a, _, _ = truth.solve(model, held, *inputs, target=target)
    assert np.isfinite(solution.a).all() and np.isfinite(solution.forces).all() and np.isfinite(solution.report).all()
    close(solution.a, a, TOLERANCE, "accelerations")
    return solution


@each_method
def test_six_duplicated_contacts(method: str) -> None:
    """PS V-F: both feet and the left hand of Talos, each twice."""
    case = Case("talos38", "F6^2 H6 F6^2 H6")
    model, held = case.model, case.constraints
    inputs = rest_states(model, held, 100)
    solution = solve(model, held, method, inputs)
    assert np.isfinite(solution.forces).all()
    assert solution.residual.max() <= TOLERANCE
    close(solution.a, truth.solve(model, held[:3], *inputs)[0], TOLERANCE, "accelerations against contacts held once")
    once = solution.forces[:, :18] + solution.forces[:, 18:]
    close(once, truth.solve(model, held[:3], *inputs)[1], TOLERANCE, "their forces")


@pytest.mark.parametrize(
    "robot, held", [("talos38", "F6^2"), ("talos50", "F6^2 H6^2"), ("anymal", "F3^4"), ("arm", "H6")]
)
@each_method
def test_singular_poses(robot: str, held: str, method: str) -> None:
    """Straight legs and arms, at rest: the constraints can be met, though forces along the limbs have no unique size."""
    case = Case(robot, held)
    model, contacts = case.model, case.constraints
    q, _, tau = rest_states(model, contacts, 50, model.neutral())
    inputs = q, np.zeros_like(tau), tau
    solution = check_least_squares(model, contacts, method, inputs)
    size = np.abs(solution.a).max() if method == "kkt" else 1.0  # it does not iterate until a residual is small
    assert solution.residual.max() <= TOLERANCE * size


@each_method
def test_moving_through_a_singular_pose(method: str) -> None:
    """Straight legs that turn: no acceleration of the joints holds the feet, but one comes closest."""
    case = Case("anymal", "F3^4")
    model, held = case.model, case.constraints
    _, v, tau = random_states(model, 50, seed=3)
    inputs = np.tile(model.neutral(), (50, 1)), v, tau
    check_least_squares(model, held, method, inputs)


@each_method
def test_contacts_on_one_body(method: str) -> None:
    """A sole held by four points, and as a surface and by its point: as if held as a surface."""
    model = Case("talos38", "F6").model
    corners = [
        sl.Constraint("corner", sole.joint, sole.placement @ offset(x, y), 0, np.eye(4), (0, 1, 2), True)
        for sole in (model.frames[model.frame_index("left_sole_link")],)
        for x in (-0.1, 0.1)
        for y in (-0.05, 0.05)
    ]
    surface = constraints(model, LIMBS["talos38"], "F6")
    inputs = rest_states(model, surface, 100)
    right = truth.solve(model, surface, *inputs)[0]
    for held in (corners, constraints(model, LIMBS["talos38"], "F6 F3")):
        solution = solve(model, held, method, inputs)
        assert solution.residual.max() <= TOLERANCE
        close(solution.a, right, TOLERANCE, "accelerations")


def offset(x: float, y: float) -> Any:
    X = np.eye(4)
    X[:2, 3] = x, y
    return X


@pytest.mark.parametrize("held", ["F6^2 F6^2", "F6^2 H6 F3^2", "F6 F6 F6 F6 F6 F6"])
@each_method
def test_contradictory_contacts(held: str, method: str) -> None:
    """The same limbs are asked for different accelerations."""
    case = Case("talos38", held)
    model, contacts = case.model, case.constraints
    inputs = random_states(model, 50, seed=4)
    target = np.random.default_rng(5).normal(size=(50, sum(contact.dim for contact in contacts)))
    solution = check_least_squares(model, contacts, method, inputs, target)
    assert (solution.status == sl.Status.LEAST_SQUARES).all()
