"""Rollouts against closed forms and SciPy's integrator; their order, batches, controllers, and early ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipj, ellipk

import saltus as sl

METHODS = {"rk4": 4, "semi_implicit_euler": 1}


def pendulum(damping: float = 0.0) -> sl.Model:
    """One kilogram at the end of half a metre, hanging down at q = 0."""
    builder = sl.ModelBuilder("pendulum")
    hinge = builder.add_joint("hinge", "revolute", axis=(0, 1, 0), damping=damping)
    builder.add_body(hinge, mass=1.0, com=(0, 0, -0.5))
    return builder.build()


def brick(inertia: tuple[float, float, float] = (0.1, 0.3, 0.35), kind: str = "free_flyer") -> sl.Model:
    builder = sl.ModelBuilder("brick")
    builder.add_body(builder.add_joint("root", kind), mass=2.0, inertia=np.diag(inertia))
    return builder.build()


def test_a_pendulum_swings_as_elliptic_functions_say() -> None:
    """sin(q / 2) = k cd(w t, k), let go at rest from the angle q0 with k = sin(q0 / 2)."""
    start, w = 2.0, np.sqrt(9.81 / 0.5)
    swing = sl.rollout(pendulum(), [start], [0.0], duration=3.0, dt=1e-3)
    k = np.sin(start / 2)
    sn, _, _, _ = ellipj(ellipk(k * k) - w * swing.t, k * k)
    np.testing.assert_allclose(swing.q[:, 0], 2 * np.arcsin(k * sn), atol=1e-9)


def test_a_spinning_body_turns_as_eulers_equations_say() -> None:
    inertia = np.array([0.1, 0.3, 0.35])
    body, spin = brick(tuple(inertia)), np.array([0.2, 5.0, 0.1])  # about the middle axis: it flips over
    expected = solve_ivp(
        lambda _, w: np.cross(inertia * w, w) / inertia, (0, 4), spin, rtol=1e-12, atol=1e-12, t_eval=[4]
    )
    flight = sl.rollout(body, body.neutral(), np.r_[1.0, 0, 0, spin], duration=4.0, dt=5e-4)
    np.testing.assert_allclose(flight.v[-1, 3:], expected.y[:, 0], atol=1e-9)
    np.testing.assert_allclose(flight.q[:, 0], flight.t, atol=1e-9)
    np.testing.assert_allclose(flight.q[:, 2], -9.81 / 2 * flight.t**2, atol=1e-9)
    for drift in sl.conservation_drift(body, flight):
        assert drift.relative.max() < 1e-9, drift.name
    turned = sl.frame_placement(body, flight.q, 1)[:, :3, :3] @ (inertia * flight.v[:, 3:])[..., None]
    np.testing.assert_allclose(turned, np.broadcast_to((inertia * spin)[:, None], turned.shape), atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kinds", [["revolute"], ["free_flyer", "spherical", "planar"], ["continuous", "translation"]])
def test_order_of_convergence(method: str, kinds: list[str]) -> None:
    robot = sl.random_model(seed=3, bodies=3, kinds=kinds)
    q, v = sl.random_configuration(robot, seed=1), np.random.default_rng(2).normal(size=robot.nv)

    def last(dt: float) -> Any:
        return sl.rollout(robot, q, v, lambda t, q, v: np.sin(3 * t) - 0.1 * v, duration=0.32, dt=dt, method=method).q[
            -1
        ]

    ends = [last(dt) for dt in (8e-3, 4e-3, 2e-3)]
    order = np.log2(sl.distance(robot, ends[0], ends[1]) / sl.distance(robot, ends[1], ends[2]))
    assert order == pytest.approx(METHODS[method], abs=0.25)


@pytest.mark.parametrize("method", METHODS)
def test_a_batch_is_its_robots(method: str) -> None:
    robot = sl.random_model(seed=4, bodies=4)
    q = sl.random_configuration(robot, seed=5, shape=3)
    v, tau = np.random.default_rng(6).normal(size=(2, 1, robot.nv)), np.random.default_rng(7).normal(size=robot.nv)
    batch = sl.rollout(robot, q, v, tau, duration=0.05, dt=5e-3, method=method)
    assert batch.q.shape == (2, 3, 11, robot.nq) and batch.v.shape == (2, 3, 11, robot.nv) and batch.t.shape == (11,)
    for i, k in np.ndindex(2, 3):
        alone = sl.rollout(robot, q[k], v[i, 0], tau, duration=0.05, dt=5e-3, method=method)
        np.testing.assert_allclose(batch.q[i, k], alone.q, atol=1e-11)
        np.testing.assert_allclose(batch.v[i, k], alone.v, atol=1e-11)


def test_energy_of_a_batch() -> None:
    robot = sl.random_model(seed=4, bodies=4, kinds=["revolute"])
    swing = sl.rollout(robot, robot.neutral(), np.eye(robot.nv), duration=0.2, dt=1e-3)
    (energy,) = sl.conservation_drift(robot, swing)
    assert energy.absolute.shape == (robot.nv, 201) and energy.size.shape == (robot.nv,)
    assert energy.relative.max() < 1e-9


def test_damping_takes_the_power_that_it_should() -> None:
    damped = pendulum(damping=0.2)
    swing = sl.rollout(damped, [1.0], [0.0], duration=1.0, dt=1e-3, damping=True)
    energy = sl.kinetic_energy(damped, swing.q, swing.v) + sl.potential_energy(damped, swing.q)
    lost = np.trapezoid(0.2 * swing.v[:, 0] ** 2, swing.t)
    assert energy[0] - energy[-1] == pytest.approx(lost, rel=1e-5)
    undamped = sl.rollout(damped, [1.0], [0.0], duration=1.0, dt=1e-3)
    np.testing.assert_array_equal(undamped.q, sl.rollout(pendulum(), [1.0], [0.0], duration=1.0, dt=1e-3).q)


def test_a_controller_holds_the_arm_still() -> None:
    arm = sl.load_robot("arm")
    q = arm.reference_configurations["standing"]
    held = sl.rollout(arm, q, np.zeros(arm.nv), lambda t, q, v: sl.gravity(arm, q), duration=0.5, dt=0.01)
    np.testing.assert_allclose(held.q, np.broadcast_to(q, held.q.shape), atol=1e-12)
    still = sl.rollout(arm, q, np.zeros(arm.nv), sl.gravity(arm, q), duration=0.5, dt=0.01)
    np.testing.assert_allclose(still.q, held.q, atol=1e-12)


@pytest.mark.slow
def test_single_precision_stays_single() -> None:
    q, v = np.ones((5, 1), np.float32), np.zeros((5, 1), np.float32)
    swing = sl.rollout(pendulum(), q, v, duration=0.5, dt=1e-2)
    assert swing.q.dtype == swing.v.dtype == np.float32
    np.testing.assert_allclose(swing.q[0], sl.rollout(pendulum(), [1], [0], duration=0.5, dt=1e-2).q, atol=1e-5)


def test_progress_and_no_steps_at_all() -> None:
    told: list[tuple[int, int]] = []
    sl.rollout(pendulum(), [0.1], [0.0], duration=0.3, dt=0.1, progress=lambda *steps: told.append(steps))
    assert told == [(1, 3), (2, 3), (3, 3)]
    start = sl.rollout(pendulum(), [0.1], [0.2], duration=0)
    assert start.t.tolist() == [0] and start.q.tolist() == [[0.1]] and start.v.tolist() == [[0.2]]


@pytest.mark.parametrize("samples", [(), (3,)], ids=["one", "three"])
def test_numpy_is_given_no_members_of_enumerations(monkeypatch: pytest.MonkeyPatch, samples: tuple[int, ...]) -> None:
    """It looks for attributes of them, in Python, and drops whatever is raised meanwhile: every second Ctrl-C."""
    linkage = sl.load_robot("four_bar")
    closed = sl.ConstrainedDynamics(linkage, sl.model_loops(linkage), method="prox_ltl")
    q, v = np.tile(linkage.neutral(), (*samples, 1)), np.zeros((*samples, linkage.nv))
    sl.rollout(closed, q, v, duration=1e-3)  # compiles, and fills tables
    asked: list[str] = []

    def attribute(cls: type, name: str) -> Any:
        asked.append(name)
        raise AttributeError(name)

    monkeypatch.setattr(type(sl.Status), "__getattr__", attribute, raising=False)
    np.where(True, sl.Status.CONVERGED, 0)
    assert "__array_function__" in asked
    asked.clear()
    sl.rollout(closed, q, v, duration=0.01)
    sl.rollout(linkage, q, v, duration=0.01)
    assert not [name for name in asked if name.startswith("__array")]


def test_an_interrupted_rollout_keeps_its_states() -> None:
    def interrupt(done: int, steps: int) -> None:
        if done == 7:
            raise KeyboardInterrupt

    whole = sl.rollout(pendulum(), [1.0], [0.0], duration=1.0, dt=0.01)
    with pytest.raises(KeyboardInterrupt, match="interrupted at 0.07 s") as caught:
        sl.rollout(pendulum(), [1.0], [0.0], duration=1.0, dt=0.01, progress=interrupt)
    assert isinstance(caught.value, sl.Interrupted)
    kept = caught.value.trajectory
    assert len(kept.t) == len(kept.q) == len(kept.v) == 8
    np.testing.assert_array_equal(kept.q, whole.q[:8])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("body", [pendulum(), brick()], ids=["pendulum", "brick"])
def test_a_motion_that_diverges_says_so(body: sl.Model, method: str) -> None:
    def torques(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return 1e3 * v * abs(v)

    with pytest.raises(
        sl.RolloutError, match="could not go on after .* s: .* a dt smaller than 0.1 s may help"
    ) as caught:
        sl.rollout(body, body.neutral(), np.ones(body.nv), torques, duration=10, dt=0.1, method=method)
    kept = caught.value.trajectory
    assert 1 <= len(kept.t) < 100 and np.isfinite(kept.q).all() and np.isfinite(kept.v).all()


def blowing_up(which: Any) -> Any:
    """Torques that grow without limit for some robots; they are never asked about what is not finite."""

    def torques(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        assert np.isfinite(q).all() and np.isfinite(v).all()
        return 1e3 * v * abs(v) * np.asarray(which)[..., None]

    return torques


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("body", [pendulum(), brick()], ids=["pendulum", "brick"])
def test_a_robot_that_diverges_is_lost_and_the_others_go_on(body: sl.Model, method: str) -> None:
    v, moves = np.outer([1.0, 1.0, 2.0, 2.0, 3.0], np.ones(body.nv)), np.array([False, True, False, True, False])
    options: dict[str, Any] = {"duration": 2, "dt": 0.1, "method": method, "on_invalid": "mark"}
    batch = sl.rollout(body, body.neutral(), v, blowing_up(moves), **options)
    calm = sl.rollout(body, body.neutral(), v[~moves], blowing_up(moves[~moves]), **options)
    for name in ("q", "v", "tau", "status"):
        np.testing.assert_array_equal(getattr(batch, name)[~moves], getattr(calm, name))
    assert batch.finished.tolist() == (~moves).tolist() and calm.finished.all()
    assert (batch.worst_status == np.where(moves, sl.Status.INVALID, sl.Status.CONVERGED)).all()
    known = np.isfinite(batch.q).all(-1) & np.isfinite(batch.v).all(-1)
    np.testing.assert_array_equal(batch.status == sl.Status.INVALID, ~known)
    assert known[moves, 0].all() and not known[moves, -1].any()
    assert (np.diff(known.astype(int), axis=-1) <= 0).all()  # who is lost stays lost
    for array in (batch.q, batch.v, batch.tau):
        assert np.isnan(array[~known]).all() and not np.isnan(array[known]).any()
    energy, *_ = sl.conservation_drift(body, batch)
    assert np.isnan(energy.absolute[~known]).all() and np.isfinite(energy.absolute[~moves]).all()


def test_a_robot_alone_that_is_lost() -> None:
    alone = sl.rollout(pendulum(), [0.0], [1.0], blowing_up(True), duration=10, dt=0.1, on_invalid="mark")
    assert not alone.finished and alone.worst_status == sl.Status.INVALID and np.isnan(alone.q[-1]).all()


def test_states_and_torques_that_are_not_valid_from_the_start() -> None:
    body = brick()
    q, tau = np.tile(body.neutral(), (4, 1)), np.zeros((4, 6))
    q[1, 3:] *= 1.1
    q[2, 0] = np.nan
    tau[3, 2] = np.inf
    motion = sl.rollout(body, q, np.zeros(6), tau, duration=0.1, dt=0.01, on_invalid="mark")
    assert np.isfinite(motion.q).all(-1).sum(-1).tolist() == [11, 0, 0, 1]
    assert motion.finished.tolist() == [True, False, False, False]
    np.testing.assert_array_equal(motion.q[0], sl.rollout(body, q[:1], np.zeros(6), duration=0.1, dt=0.01).q[0])
    with pytest.raises(ValueError, match="on_invalid is 'skip', expected 'raise' or 'mark'"):
        sl.rollout(body, q, np.zeros(6), tau, duration=0.1, on_invalid="skip")  # type: ignore[arg-type]


def test_a_controller_that_fails_costs_no_states() -> None:
    def torques(t: float, q: np.ndarray, v: np.ndarray) -> list[float]:
        if t > 0.5:
            raise ValueError("the solver is out of luck")
        return [0.0]

    with pytest.raises(sl.RolloutError, match="could not go on after 0.6 s: the solver is out of luck") as caught:
        sl.rollout(pendulum(), [1.0], [0.0], torques, duration=1.0, dt=0.1, method="semi_implicit_euler")
    assert len(caught.value.trajectory.t) == 7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "leapfrog"}, "method is 'leapfrog', expected one of 'rk4', 'semi_implicit_euler'"),
        ({"dt": 0}, "dt is 0, expected a positive time"),
        ({"dt": np.nan}, "dt is nan"),
        ({"duration": -1}, "duration is -1, expected"),
        ({"q": np.zeros(2)}, r"q has shape \(2,\), expected \(..., 1\)"),
        ({"v": 0.0}, r"v has shape \(\), expected \(..., 1\)"),
        ({"tau": np.zeros(3)}, r"tau has shape \(3,\), expected \(..., 1\)"),
        ({"q": np.zeros((3, 1)), "v": np.zeros((2, 1))}, r"leading axes of q \(3, 1\), v \(2, 1\), tau \(1,\) do not"),
        ({"tau": lambda t, q, v: np.zeros(3)}, "tau"),
    ],
)
def test_errors(changes: dict[str, Any], message: str) -> None:
    arguments = {"q": [0.0], "v": [0.0], "duration": 0.1} | changes
    with pytest.raises(ValueError, match=message):
        sl.rollout(pendulum(), **arguments)


def test_momentum_counts_only_where_the_base_is_free() -> None:
    names = [[d.name for d in sl.conservation_drift(m, sl.rollout(m, m.neutral(), np.ones(m.nv), duration=0))]
             for m in (brick(), pendulum(), brick(kind="spherical"))]  # fmt: skip
    assert names == [["energy", "linear momentum", "angular momentum"], ["energy"], ["energy"]]


def test_a_body_dropped_from_rest_has_no_angular_momentum_to_compare_with() -> None:
    fall = sl.rollout(brick(), brick().neutral(), np.zeros(6), duration=0.2)
    energy, linear, angular = sl.conservation_drift(brick(), fall)
    assert energy.absolute.max() < 1e-12 and linear.relative.max() < 1e-12
    assert angular.absolute.max() == 0 and np.isnan(angular.relative).all()
