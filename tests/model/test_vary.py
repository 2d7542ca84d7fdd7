"""Batches of robots that differ in their inertias: each sample as by a model of its own, everywhere that takes them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.dynamics.aba import _aba
from saltus.kernel.forward import push_forward
from saltus.model.parameters import rigid, with_parameters

ROBOTS = ("quadruped", "arm", "cartpole", "planar_human")
COUNT = 5

FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "aba": (sl.aba, "q v x"),
    "rnea": (sl.rnea, "q v x"),
    "crba": (sl.crba, "q"),
    "minverse": (sl.minverse, "q"),
    "nonlinear_effects": (sl.nonlinear_effects, "q v"),
    "gravity": (sl.gravity, "q"),
    "kinetic_energy": (sl.kinetic_energy, "q v"),
    "potential_energy": (sl.potential_energy, "q"),
    "center_of_mass": (sl.center_of_mass, "q v x"),
    "center_of_mass_jacobian": (sl.center_of_mass_jacobian, "q"),
    "centroidal_momentum": (sl.centroidal_momentum, "q v"),
    "centroidal_momentum_matrix": (sl.centroidal_momentum_matrix, "q"),
    "aba_derivatives": (sl.aba_derivatives, "q v x"),
    "rnea_derivatives": (sl.rnea_derivatives, "q v x"),
    "crba_derivatives": (sl.crba_derivatives, "q"),
    "joint_placements": (sl.joint_placements, "q"),
    "torque_regressor": (sl.torque_regressor, "q v x"),
    "aba_parameter_derivatives": (sl.aba_parameter_derivatives, "q v x"),
}


def physical(model: sl.Model, count: int, seed: int = 0) -> Any:
    """Parameters of as many robots: other masses, centres of mass and inertias."""
    rng = np.random.default_rng(seed)
    robots = [
        model.replace(joints=(model.joints[0], *(
            replace(joint, mass=joint.mass * rng.uniform(0.5, 2), com=joint.com + 0.05 * rng.normal(size=3),
                    inertia=joint.inertia * rng.uniform(1, 3))
            for joint in model.joints[1:]
        )))
        for _ in range(count)
    ]  # fmt: skip
    return np.array([sl.inertial_parameters(robot) for robot in robots])


def states(model: sl.Model, shape: tuple[int, ...], dtype: Any = np.float64) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    v, x = rng.normal(size=(2, *shape, model.nv)).astype(dtype)
    return {"q": sl.random_configuration(model, seed=2, shape=shape).astype(dtype), "v": v, "x": x}


def assert_same(found: Any, right: list[Any], tolerance: float) -> None:
    """The arrays of a batch, and those of single robots."""
    if isinstance(found, tuple):
        for k, each in enumerate(found):
            if not isinstance(each, tuple):
                assert_same(each, [one[k] for one in right], tolerance)
        return
    wanted = np.array(right)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * max(np.abs(wanted).max(), 1e-9))


@pytest.mark.parametrize("specialised", [False, True], ids=["all", "own"])
@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_robot_has_its_own(name: str, robot: str, specialised: bool) -> None:
    model, (function, inputs) = sl.load_robot(robot), FUNCTIONS[name]
    if specialised and robot != "quadruped":
        pytest.skip("one robot is enough where code is compiled for it")
    parameters, given = physical(model, COUNT), states(model, (COUNT,))
    robots = sl.vary_inertia(model, parameters)
    found = function(sl.specialise(robots) if specialised else robots, *(given[x] for x in inputs.split()))
    right = [
        function(with_parameters(model, parameters[k]), *(given[x][k] for x in inputs.split())) for k in range(COUNT)
    ]
    assert_same(found, right, 1e-10)


def test_shapes_and_types() -> None:
    model = sl.load_robot("quadruped")
    parameters = physical(model, 6).reshape(2, 3, model.nb, 10)
    robots, one = sl.vary_inertia(model, parameters), states(model, ())
    q, v, x = one.values()
    spread = sl.aba(robots, q, v, x)
    assert spread.shape == (2, 3, model.nv)
    np.testing.assert_allclose(spread[1, 2], sl.aba(with_parameters(model, parameters[1, 2]), q, v, x), rtol=1e-10)
    assert sl.aba(robots, *(np.broadcast_to(y, (4, 1, 1, len(y))) for y in (q, v, x))).shape == (4, 2, 3, model.nv)
    single = sl.aba(robots, *(y.astype(np.float32) for y in (q, v, x)))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, spread, rtol=0, atol=1e-4 * np.abs(spread).max())
    same = sl.vary_inertia(model, sl.inertial_parameters(model))
    np.testing.assert_allclose(sl.aba(same, q, v, x), sl.aba(model, q, v, x), rtol=1e-10)
    with pytest.raises(ValueError, match="do not broadcast|leading"):
        sl.aba(robots, np.broadcast_to(q, (5, model.nq)), v, x)
    marked = sl.aba(robots, np.where(np.arange(3)[:, None] == 1, np.nan, q), v, x, on_invalid="mark")
    assert np.isnan(marked[:, 1]).all() and np.isfinite(marked[:, [0, 2]]).all()
    again = pickle.loads(pickle.dumps(robots))
    np.testing.assert_array_equal(sl.inertial_parameters(again), parameters)
    assert "(2, 3) robots" in repr(again) and sl.specialise(robots).specialised
    assert robots.replace(gravity=(0, 0, 0)).leading == (2, 3)


@pytest.mark.parametrize("method", ["constrained_aba", "loop_aba", "prox_ltl", "prox_ltls", "prox_pv", "kkt"])
def test_constrained_dynamics(method: str) -> None:
    model, feet = sl.load_robot("quadruped"), sl.robot_frames("quadruped").feet
    parameters, (q, v, tau) = physical(model, COUNT), states(model, (COUNT,)).values()

    def held(robot: sl.Model) -> sl.ConstrainedDynamics:
        return sl.ConstrainedDynamics(robot, [sl.Contact(robot, foot) for foot in feet], method)

    dynamics = held(sl.vary_inertia(model, parameters))
    single = [held(with_parameters(model, each)) for each in parameters]
    found, right = dynamics.solve(q, v, tau), [one.solve(q[k], v[k], tau[k]) for k, one in enumerate(single)]
    assert (found.status == sl.Status.CONVERGED).all()
    assert_same((found.a, found.forces), [(one.a, one.forces) for one in right], 1e-7)
    D = dynamics.derivatives(q, v, tau)
    rates = [one.derivatives(q[k], v[k], tau[k]) for k, one in enumerate(single)]
    for name in ("da_dq", "da_dv", "da_dtau", "df_dq", "df_dtau"):
        assert_same(getattr(D, name), [getattr(one, name) for one in rates], 1e-6)
    assert_same(dynamics.impact(q, v).v, [one.impact(q[k], v[k]).v for k, one in enumerate(single)], 1e-7)
    own = sl.specialise(dynamics).solve(q, v, tau)
    assert_same(own.a, [one.a for one in right], 1e-7)


def test_rollouts() -> None:
    model = sl.load_robot("quadruped")
    parameters, (q, v, _) = physical(model, COUNT), states(model, ()).values()
    robots = sl.vary_inertia(model, parameters)
    found = sl.rollout(robots, q, v, duration=0.02, dt=0.001)
    assert found.q.shape == (COUNT, 21, model.nq)
    right = [sl.rollout(with_parameters(model, each), q, v, duration=0.02, dt=0.001).q for each in parameters]
    assert_same(found.q, right, 1e-9)
    with pytest.raises(ValueError, match=r"the robots' \(5,\)"):
        sl.rollout(robots, np.broadcast_to(q, (3, model.nq)), v, duration=0.02, dt=0.001)


@pytest.mark.parametrize("robot", ROBOTS)
def test_derivatives_by_parameters_against_dual_numbers(robot: str) -> None:
    model = sl.load_robot(robot)
    q, v, tau = states(model, ()).values()
    parameters = physical(model, 1)[0]
    units = np.eye(parameters.size).reshape(-1, *parameters.shape)
    robots = sl.vary_inertia(model, parameters)
    given = (robots.inertias_for((q,)), q, v, tau)
    _, (right,) = push_forward(_aba.varied, robots, given, (rigid(model, units), None, None, None))
    found = sl.aba_parameter_derivatives(with_parameters(model, parameters), q, v, tau)
    np.testing.assert_allclose(found, right.T, rtol=0, atol=1e-10 * np.abs(right).max())


def test_constrained_derivatives_by_parameters() -> None:
    """Against central differences along changes of all parameters."""
    model, feet = sl.load_robot("quadruped"), sl.robot_frames("quadruped").feet
    q, v, tau = states(model, ()).values()
    parameters, h = physical(model, 1)[0], 1e-5
    change = parameters * np.random.default_rng(3).uniform(-1, 1, size=parameters.shape)

    def solved(step: float) -> sl.Solution:
        robot = sl.vary_inertia(model, parameters + step * h * change)
        return sl.ConstrainedDynamics(robot, [sl.Contact(robot, foot) for foot in feet]).solve(q, v, tau)

    here = sl.vary_inertia(model, parameters)
    D = sl.ConstrainedDynamics(here, [sl.Contact(here, foot) for foot in feet]).parameter_derivatives(q, v, tau)
    for found, name in ((D.da, "a"), (D.df, "forces")):
        right = (getattr(solved(1), name) - getattr(solved(-1), name)) / (2 * h)
        np.testing.assert_allclose(found @ change.ravel(), right, rtol=0, atol=1e-5 * np.abs(right).max())


def with_mimic() -> sl.Model:
    builder = sl.ModelBuilder("fingers")
    one = builder.add_joint("one", "revolute", axis=(0, 1, 0))
    two = builder.add_joint("two", "revolute", axis=(0, 1, 0), mimic=sl.Mimic("one", 1.0, 0.0))
    for joint in (one, two):
        builder.add_body(joint, mass=1.0, com=(0, 0, 0.1), inertia=0.01 * np.eye(3))
    return builder.build()


def test_over_time() -> None:
    """Rollouts towards targets of whatever length, in both precisions, and what is said about them."""
    model = sl.load_robot("quadruped")
    parameters, q = physical(model, COUNT), model.reference_configurations["standing"]
    robots, single = sl.vary_inertia(model, parameters), [with_parameters(model, each) for each in parameters]
    for steps, dtype, method in (
        (COUNT, np.float64, "semi_implicit_euler"),
        (7, np.float32, "semi_implicit_euler"),
        (7, np.float64, "rk4"),
    ):
        pull = sl.PDTargets(np.tile(q, (steps, 1)).astype(dtype), kp=np.r_[np.zeros(6), np.full(12, 20.0)], kd=0.1)
        start, still, how = q.astype(dtype), np.zeros(model.nv, dtype), {"duration": 1e-3 * steps, "method": method}
        found = sl.rollout(robots, start, still, pull, **how)  # type: ignore[arg-type]
        right = [sl.rollout(one, start, still, pull, **how) for one in single]  # type: ignore[arg-type]
        assert found.q.dtype == dtype
        assert_same((found.q, found.tau), [(one.q, one.tau) for one in right], 1e-9 if dtype == np.float64 else 1e-3)
    fall = sl.rollout(robots, q, np.ones(model.nv), duration=1e-3 * (COUNT - 1))
    for k, drift in enumerate(sl.conservation_drift(robots, fall)):
        each = [
            sl.conservation_drift(one, sl.rollout(one, q, np.ones(model.nv), duration=1e-3 * (COUNT - 1)))[k]
            for one in single
        ]
        np.testing.assert_allclose(drift.size, [one.size for one in each], rtol=1e-6)
        assert drift.absolute.max() < 1e-6
    assert sl.frame_velocity(robots, q.astype(np.float32), np.zeros(model.nv, np.float32), 3).dtype == np.float32
    feet = [sl.Contact(robots, foot) for foot in sl.robot_frames("quadruped").feet]
    held = sl.ConstrainedDynamics(robots, feet)
    assert sl.constraint_drift(held, sl.rollout(held, q, np.zeros(model.nv), duration=0.007))[0].absolute.shape == (
        COUNT,
        8,
    )


def test_robots_without_mass() -> None:
    """What cannot be divided by is refused for the robots' sake, not the model's."""
    builder = sl.ModelBuilder("pendulum", physical=False)
    hinge = builder.add_joint("hinge", "revolute", axis=(0, 1, 0))
    empty = builder.build()
    builder.add_body(hinge, mass=1.0, com=(0, 0, -0.5))
    heavy = builder.build()
    parameters = sl.inertial_parameters(heavy)
    with pytest.raises(sl.ModelError, match="joints without inertia.*'hinge'"):
        sl.aba(sl.vary_inertia(heavy, np.array([parameters, 0.0 * parameters])), [0.0], [0.0], [1.0])
    np.testing.assert_allclose(sl.aba(sl.vary_inertia(empty, parameters), [0.0], [0.0], [1.0]), [4.0])


def test_what_it_refuses() -> None:
    model = sl.load_robot("quadruped")
    nominal, (q, v, tau) = sl.inertial_parameters(model), states(model, ()).values()
    for wrong, words in (
        (nominal[:-1], r"parameters has shape \(12, 10\), expected \(\.\.\., 13, 10\)"),
        (np.where(nominal == nominal[0, 0], np.nan, nominal), r"parameters\[0, 0\] is nan"),
        (np.array([nominal, -nominal]), r"joint 'root_joint' of robot 1 are of no real body"),
    ):
        with pytest.raises(sl.ModelError, match=words):
            sl.vary_inertia(model, wrong)
    with pytest.raises(sl.ModelError, match="mimic joints"):
        sl.vary_inertia(with_mimic(), np.zeros((2, 10)))
    robots = sl.vary_inertia(model, nominal)
    held = sl.ConstrainedDynamics(robots, [sl.Contact(robots, sl.robot_frames("quadruped").feet[0])])
    for refused in (
        lambda: sl.OperationalSpaceControl(robots, [sl.CenterOfMassTask()]),
        lambda: sl.save_urdf(robots, "robot.urdf"),
        lambda: sl.view.plot_energy(robots, [0.0], [q], [v]),
    ):
        with pytest.raises(sl.ModelError, match="is for one robot"):
            refused()
    with pytest.raises(sl.ModelError, match="too large for single precision"):
        sl.aba(sl.vary_inertia(model, 1e40 * nominal), *(x.astype(np.float32) for x in (q, v, tau)))
    with pytest.raises(TypeError, match="differ in their joints"):
        robots.replace(joints=model.joints)
    for function in (sl.inertial_parameters, lambda x: sl.vary_inertia(x, nominal)):
        with pytest.raises(TypeError, match=r"the model is a int, expected a saltus\.Model"):
            function(3)
    for refused in (
        lambda: sl.jvp(sl.aba, robots, (q, v, tau), (None, None, v)),
        lambda: sl.jvp(sl.aba, robots, (q, v, tau), (None, None, v), "analytical"),
        lambda: sl.jacobian(sl.aba, robots, (q, v, tau)),
        lambda: sl.jacobian(sl.aba, robots, (q, v, tau), "fd"),
        lambda: sl.jvp(sl.ConstrainedDynamics.solve, held, (q, v, tau), (None, None, v)),
        lambda: held.derivatives(q, v, tau, mode="ad"),
    ):
        with pytest.raises(TypeError, match="vary_inertia"):
            refused()


def test_products_are_those_of_the_jacobians() -> None:
    model = sl.load_robot("quadruped")
    parameters, (q, v, tau) = physical(model, COUNT), states(model, (COUNT,)).values()
    robots, weights = sl.vary_inertia(model, parameters), np.random.default_rng(5).normal(size=(COUNT, model.nv))
    found = sl.vjp(sl.aba, robots, (q, v, tau), weights)
    D = sl.aba_derivatives(robots, q, v, tau)
    for ours, matrix in zip(found[-1] if isinstance(found[-1], tuple) else found, D[:3], strict=False):
        np.testing.assert_allclose(ours, np.einsum("bi,bij->bj", weights, matrix), rtol=0, atol=1e-8)
