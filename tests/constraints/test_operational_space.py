"""The OSIM family, factors of the KKT matrix, and soft methods, against dense matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.constraints.operational_space import OSIM_METHODS
from tests.constraints import truth

TOLERANCE = 1e-9
COUNT = 7


def robots() -> dict[str, tuple[sl.Model, list[sl.Constraint]]]:
    quadruped, humanoid, arm = (sl.load_robot(name) for name in ("quadruped", "humanoid", "arm"))
    feet, hands = sl.robot_frames("humanoid").feet, sl.robot_frames("humanoid").hands
    tree = sl.random_model(seed=4, bodies=25)
    moving = [k for k, frame in enumerate(tree.frames) if frame.joint > 0]
    spread = np.random.default_rng(4).choice(moving, 5, replace=False)
    return {
        "quadruped 4x3": (quadruped, [sl.Contact(quadruped, f, 3) for f in sl.robot_frames("quadruped").feet]),
        "humanoid 4x6": (humanoid, [sl.Contact(humanoid, f, 6) for f in hands + feet]),  # not in the order of the tree
        "humanoid one foot twice": (
            humanoid, [*(sl.Contact(humanoid, feet[0], d) for d in (6, 3)), sl.Contact(humanoid, hands[1], 3)]
        ),
        "arm 1x6": (arm, [sl.Contact(arm, "tool", 6)]),
        "base itself": (quadruped, [sl.Contact(quadruped, quadruped.joints[1].name, 6), sl.Contact(quadruped, "LF_FOOT")]),
        "random tree": (tree, [sl.Contact(tree, int(f), 6 if k % 2 else 3) for k, f in enumerate(spread)]),
        "weights": (arm, [sl.Contact(arm, "tool", 6, weight=[1, 2, 3, 4, 5, 6])]),
    }  # fmt: skip


ROBOTS = robots()
each_robot = pytest.mark.parametrize("name", list(ROBOTS))


def dense(model: sl.Model, constraints: list[sl.Constraint], q: Any, active: Any = None) -> tuple[Any, Any]:
    """Delassus matrix and J of one configuration."""
    still = np.zeros(model.nv)
    _, _, J = truth.solve(model, constraints, q, still, still, active)
    return J @ np.linalg.solve(sl.crba(model, q), J.T), J


def damping(dynamics: sl.ConstrainedDynamics) -> Any:
    return np.diag(np.concatenate([dynamics.mu * x.weight[list(x.rows)] for x in dynamics.constraints]))


def close(x: Any, y: Any, tolerance: float = TOLERANCE) -> None:
    assert np.abs(x - y).max() <= tolerance * np.abs(y).max(), np.abs(x - y).max() / np.abs(y).max()


@each_robot
def test_matrices_of_all_methods(name: str) -> None:
    model, constraints = ROBOTS[name]
    dynamics = sl.ConstrainedDynamics(model, constraints, mu=1e-4)
    q = sl.random_configuration(model, 1, COUNT)
    active = np.random.default_rng(1).integers(0, 2, size=(COUNT, len(constraints))).astype(float)
    active[0] = 1.0
    x = np.random.default_rng(2).normal(size=(COUNT, sum(c.dim for c in constraints)))
    right = np.stack([dense(model, constraints, *pair)[0] for pair in zip(q, active, strict=True)])
    inverse = np.linalg.inv(right + damping(dynamics))
    for method, description in OSIM_METHODS.items():
        if description.delassus is not None:
            close(dynamics.delassus(q, active, method), right)
        close(dynamics.osim(q, active, method), inverse)
    for method in ("pv_f", "caba_f"):
        close(dynamics.osim_factors(q, active, method).times(x), np.einsum("bij,bj->bi", inverse, x))
    close(dynamics.delassus_times(q, x, active), np.einsum("bij,bj->bi", right, x))
    close(dynamics.osim_times(q, x, active), np.einsum("bij,bj->bi", inverse, x))
    close(dynamics.osim(q[0]), inverse[0])  # one call, all active


def test_blocks_of_limbs() -> None:
    """Seen from the base, legs do not know of each other; products cost four blocks instead of the matrix."""
    model, constraints = ROBOTS["quadruped 4x3"]
    factors = sl.ConstrainedDynamics(model, constraints).osim_factors(sl.random_configuration(model, 0))
    blocks = factors.B.reshape(4, 3, 4, 3).any(axis=(1, 3))
    assert np.array_equal(blocks, np.eye(4, dtype=bool))


def looped() -> tuple[sl.Model, list[sl.Constraint]]:
    model = sl.load_robot("biped")
    return model, sl.model_loops(model) + [sl.Contact(model, f, 6) for f in sl.robot_frames("biped").feet]


def test_loops_go_by_ltl() -> None:
    model, constraints = looped()
    dynamics = sl.ConstrainedDynamics(model, constraints, "prox_ltl", mu=1e-4)
    q = sl.random_configuration(model, 3)
    right, _ = dense(model, constraints, q)
    close(dynamics.delassus(q), right)
    close(dynamics.osim(q), np.linalg.inv(right + damping(dynamics)), 1e-8)
    with pytest.raises(sl.ModelError, match="'caba' is for contacts; .* ties two bodies, expected 'ltl'"):
        dynamics.osim(q, method="caba")
    with pytest.raises(sl.ModelError, match="osim_times is for contacts"):
        dynamics.osim_times(q, np.zeros(1))


def test_unknown_methods() -> None:
    model, constraints = ROBOTS["arm 1x6"]
    dynamics = sl.ConstrainedDynamics(model, constraints)
    with pytest.raises(sl.ModelError, match="unknown method 'caba', expected one of ltl, pv, efpa, pv_r"):
        dynamics.delassus(model.neutral(), method="caba")
    with pytest.raises(sl.ModelError, match="unknown method 'ltl', expected one of pv_f, caba_f"):
        dynamics.osim_factors(model.neutral(), method="ltl")


@pytest.mark.parametrize("diagonal", [False, True], ids=["inertia", "diagonal"])
def test_kkt_factors(diagonal: bool) -> None:
    """Of the inertia matrix, and of any other with the tree's sparsity, as PS IV-F has it."""
    model, constraints = looped()
    dynamics = sl.ConstrainedDynamics(model, constraints, "prox_ltl", mu=1e-3)
    rng = np.random.default_rng(5)
    q = sl.random_configuration(model, 5)
    M = np.diag(rng.uniform(1.0, 2.0, model.nv)) if diagonal else sl.crba(model, q)
    _, J = dense(model, constraints, q)
    factors = dynamics.factor(q, M=M if diagonal else None)
    nm = len(J)
    U = np.block([[factors.V, factors.K], [np.zeros((model.nv, nm)), factors.U]])
    D = np.concatenate([-factors.E, factors.D])
    right = np.block([[-damping(dynamics), J], [J.T, M]])
    close(U * D @ U.T, right, 1e-13)
    assert np.array_equal(U, np.triu(U)) and (np.diag(U) == 1).all() and (factors.E > 0).all()
    x = rng.normal(size=(3, nm + model.nv))
    close(factors.upper(x), x @ U.T)
    close(factors.lower(x), x @ U)
    close(factors.upper(factors.solve_upper(x)), x)
    close(factors.lower(factors.solve_lower(x)), x)
    close(factors.solve(x) @ right, x)
    delassus = J @ np.linalg.solve(M, J.T)
    close(factors.delassus, delassus)
    close(factors.osim, np.linalg.inv(delassus + damping(dynamics)), 1e-8)


@pytest.mark.parametrize("method", ["soft", "pv_soft"])
def test_soft_is_a_spring(method: str) -> None:
    """min 1/2 |a - a_free|_M^2 + 1/2 |J a - goal|_R^-1^2, R = mu: MuJoCo's relaxation, one solve of an augmented system."""
    model, constraints = ROBOTS["quadruped 4x3"]
    dynamics = sl.ConstrainedDynamics(model, constraints, method, mu=1e-2)
    rng = np.random.default_rng(6)
    q, v, tau = sl.random_configuration(model, 6), rng.normal(size=model.nv), rng.normal(size=model.nv)
    _, _, J = truth.solve(model, constraints, q, v, tau)
    goal = -np.concatenate([truth.rows_of(model, c, q, v)[1] for c in constraints])
    M, rest = sl.crba(model, q), tau - sl.nonlinear_effects(model, q, v)
    a = np.linalg.solve(M + J.T @ J / 1e-2, rest + J.T @ goal / 1e-2)
    solution = dynamics.solve(q, v, tau)
    close(solution.a, a)
    close(solution.forces, (goal - J @ a) / 1e-2, 1e-8)
    assert solution.iterations == 1
