"""Task-space inverse dynamics against dense matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl
from tests.constraints import truth


def quadruped() -> tuple[sl.ConstrainedDynamics, Any, Any]:
    model = sl.load_robot("quadruped")
    feet = [sl.Contact(model, foot, 3) for foot in sl.robot_frames("quadruped").feet]
    q, v = model.reference_configurations["standing"], 0.1 * np.random.default_rng(0).normal(size=model.nv)
    return sl.ConstrainedDynamics(model, feet), q, v


def biped() -> tuple[sl.ConstrainedDynamics, Any, Any]:
    model = sl.load_robot("biped")
    feet = [sl.Contact(model, foot, 6) for foot in sl.robot_frames("biped").feet]
    q, v = model.reference_configurations["standing"], np.zeros(model.nv)
    return sl.ConstrainedDynamics(model, [*sl.model_loops(model), *feet], "prox_ltl"), q, v


@pytest.mark.parametrize("make", [quadruped, biped])
def test_the_centre_of_mass_moves_as_wanted_by_motors_alone(make: Any) -> None:
    dynamics, q, v = make()
    model, wanted = dynamics.model, np.array([0.5, -0.3, 0.2])
    tau = sl.task_torques(dynamics, q, v, [sl.center_of_mass_task(model, q, v, wanted)])
    assert not tau[[k for k in range(model.nv) if k < 6 or model.effort_limit[k] == 0]].any()
    a, _, _ = truth.solve(model, list(dynamics.constraints), q, v, tau)
    h = 1e-4  # the centre of mass along a motion with these accelerations
    path = [sl.center_of_mass(model, sl.integrate(model, q, s * v + s * s / 2 * a)) for s in (-h, 0.0, h)]
    np.testing.assert_allclose((path[2] - 2 * path[1] + path[0]) / h**2, wanted, atol=1e-4)


def test_redundant_contacts_share_the_least_forces() -> None:
    """Among all torques that give these accelerations, those of least forces: from the null space of dense matrices."""
    dynamics, q, _ = quadruped()
    model, v = dynamics.model, np.zeros(dynamics.model.nv)
    rng = np.random.default_rng(1)
    _, _, J = truth.solve(model, list(dynamics.constraints), q, v, v)
    a = (np.eye(model.nv) - np.linalg.pinv(J) @ J) @ rng.normal(size=model.nv)  # accelerations that contacts allow
    tau = sl.task_torques(dynamics, q, v, [sl.Task(np.eye(model.nv), a)])
    solution = dynamics.solve(q, v, tau)
    np.testing.assert_allclose(solution.a, a, atol=1e-5)
    base = (sl.crba(model, q) @ a + sl.nonlinear_effects(model, q, v))[:6]  # all that forces must carry
    np.testing.assert_allclose(solution.forces, np.linalg.pinv(J[:, :6].T) @ base, atol=1e-2)


def test_weights_decide_between_tasks_that_disagree() -> None:
    dynamics, q, v = quadruped()
    model = dynamics.model
    J = sl.center_of_mass_jacobian(model, q)
    up, down = (sl.center_of_mass_task(model, q, v, [0, 0, z], weight) for z, weight in ((1.0, 2.0), (-1.0, 1.0)))
    a = dynamics.solve(q, v, sl.task_torques(dynamics, q, v, [up, down])).a
    drift = sl.centroidal_momentum_drift(model, q, v)[:3] / model.total_mass
    np.testing.assert_allclose(J @ a + drift, [0, 0, (4 * 1.0 - 1.0) / 5], atol=1e-5)


def test_batches_masks_and_a_choice_of_motors() -> None:
    dynamics, q, _ = quadruped()
    model, v = dynamics.model, 0.1 * np.random.default_rng(2).normal(size=(4, 18))
    active = np.array([[1, 1, 1, 1], [1, 1, 1, 0], [0, 1, 1, 0], [1, 0, 1, 1]])
    motors = range(8, 18)
    posture = np.eye(model.nv)[6:]

    def tasks(v: Any) -> list[sl.Task]:
        return [sl.center_of_mass_task(model, q, v, np.zeros(3)), sl.Task(posture, -v[..., 6:], 0.1)]

    batch = sl.task_torques(dynamics, q, v, tasks(v), motors=motors, active=active)
    assert batch.shape == (4, 18) and not batch[:, :8].any()
    for k in range(4):
        alone = sl.task_torques(dynamics, q, v[k], tasks(v[k]), motors=motors, active=active[k])
        np.testing.assert_allclose(batch[k], alone, rtol=1e-6, atol=1e-6)
