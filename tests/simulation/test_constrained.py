"""Rollouts under constraints against closed forms and SciPy's integrator; masks, impacts, controllers, drift."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipj, ellipk

import saltus as sl
from saltus.constraints.dynamics import METHODS, TREES_ONLY
from tests.constraints import truth

HALF = 0.5  # m, from a rod's middle to its ends
MASS, INERTIA = 2.0, 2.0 * (2 * HALF) ** 2 / 12


def rod() -> sl.Model:
    """A thin rod along x that flies freely, with frames at its ends."""
    builder = sl.ModelBuilder("rod")
    root = builder.add_joint("root", "free_flyer")
    builder.add_body(root, mass=MASS, inertia=np.diag([1e-3, INERTIA, INERTIA]))
    for name, x in (("left", -HALF), ("right", HALF)):
        placement = np.eye(4)
        placement[0, 3] = x
        builder.add_frame(name, root, placement)
    return builder.build()


def four_bar(method: str = "prox_ltl", **gains: float) -> sl.ConstrainedDynamics:
    model = sl.load_robot("four_bar")
    return sl.ConstrainedDynamics(model, sl.model_loops(model, **gains), method)


@pytest.mark.parametrize(("method", "tolerance"), [("rk4", 1e-9), ("semi_implicit_euler", 5e-3)])
def test_a_rod_held_at_its_end_swings_as_elliptic_functions_say(method: Any, tolerance: float) -> None:
    """Let go level: a quarter of a turn from hanging down."""
    model = rod()
    held = sl.ConstrainedDynamics(model, [sl.Contact(model, "left", 3)])
    swing = sl.rollout(held, model.neutral(), np.zeros(6), duration=2.0, method=method)
    w, k = np.sqrt(MASS * 9.81 * HALF / (INERTIA + MASS * HALF**2)), np.sin(np.pi / 4)
    sn, _, _, _ = ellipj(ellipk(k * k) - w * swing.t, k * k)
    angle = 2 * np.arcsin(k * sn)  # from hanging down
    ends = sl.frame_placement(model, swing.q, "right")[:, :3, 3] - sl.frame_placement(model, swing.q, "left")[:, :3, 3]
    np.testing.assert_allclose(ends[:, 2], -2 * HALF * np.cos(angle), atol=tolerance)
    # At the start the end carries a quarter of the weight, as of any rod held level at one end and let go.
    np.testing.assert_allclose(swing.forces[0], [0.0, 0.0, MASS * 9.81 / 4], atol=1e-9)


@pytest.mark.parametrize("method", sorted(set(METHODS) - TREES_ONLY))
def test_a_linkage_moves_as_dense_matrices_and_scipy_say(method: str) -> None:
    dynamics = four_bar(method)
    model, end = dynamics.model, 0.25
    loops = list(dynamics.constraints)

    def rates(t: float, x: Any) -> Any:
        return np.r_[x[3:], truth.solve(model, loops, x[:3], x[3:], np.array([np.sin(5 * t), 0.0, 0.0]))[0]]

    expected = solve_ivp(rates, (0, end), np.zeros(6), rtol=1e-10, atol=1e-10).y[:, -1]
    motion = sl.rollout(
        dynamics, np.zeros(3), np.zeros(3), lambda t, q, v: [np.sin(5 * t), 0.0, 0.0], duration=end, dt=2e-3
    )
    np.testing.assert_allclose(np.r_[motion.q[-1], motion.v[-1]], expected, atol=1e-6)
    np.testing.assert_allclose(motion.tau[:, 0], np.sin(5 * motion.t), atol=1e-15)


def test_baumgarte_closes_what_is_open() -> None:
    """A gap of 1 mm goes as exp(-w t) (1 + w t) at critical damping; it stays without gains."""
    w = 40.0
    start = np.array([0.0, 0.0, 0.0])
    start[2] += 0.004
    gaps = []
    for gains in ({}, {"kp": w * w, "kd": 2 * w}):
        dynamics = four_bar(**gains)
        motion = sl.rollout(dynamics, start, np.zeros(3), duration=0.2)
        A, B = (sl.frame_placement(dynamics.model, motion.q, f"closure_{side}")[:, :3, 3] for side in "ab")
        gaps.append(np.linalg.norm(A - B, axis=-1))
        if gains:
            (drift,) = sl.constraint_drift(dynamics, motion)
            np.testing.assert_allclose(drift.absolute, gaps[-1], atol=1e-12)
            assert drift.name == "closure" and drift.unit == "m" and np.isnan(drift.relative).all()
            np.testing.assert_allclose(gaps[-1] / gaps[-1][0], np.exp(-w * motion.t) * (1 + w * motion.t), atol=0.01)
    assert gaps[0][0] > 5e-4 and gaps[0][-1] > 0.9 * gaps[0][0]


def falling_rods(masks: Any, v: Any, **options: Any) -> tuple[sl.Model, sl.Trajectory]:
    model = rod()
    ends = sl.ConstrainedDynamics(model, [sl.Contact(model, "left", 3), sl.Contact(model, "right", 3)])
    return model, sl.rollout(ends, model.neutral(), v, active=masks, duration=0.04, dt=1e-3, **options)


@pytest.mark.parametrize("by", ["array", "function"])
def test_a_rod_that_is_caught_at_one_end_begins_to_turn(by: str) -> None:
    """It falls level, and its left end is caught: the angular momentum about that end stays, w = 3 v / (4 half)."""
    masks = np.zeros((41, 2))
    masks[20:, 0] = 1
    given = masks if by == "array" else lambda t, q, v: [t > 0.0199, 0]
    _, fall = falling_rods(given, np.r_[0, 0, -1.0, 0, 0, 0])
    speed = 1.0 + 9.81 * 0.02
    np.testing.assert_allclose(fall.v[19, 2], -(speed - 9.81e-3), rtol=1e-12)
    np.testing.assert_allclose(fall.v[20, 4], 3 * speed / (4 * HALF), rtol=1e-8)
    np.testing.assert_allclose(fall.v[20, 2], -3 * speed / 4, rtol=1e-8)
    np.testing.assert_array_equal(fall.active, masks)
    assert not fall.forces[:20].any() and fall.forces[20:, :3].any() and not fall.forces[:, 3:].any()


def test_a_batch_is_its_robots_each_with_its_own_contacts() -> None:
    masks = np.zeros((3, 1, 41, 2))
    masks[0, :, 10:, 0], masks[0, :, 30:, 1], masks[1, :, 25:, 1] = 1, 1, 1
    masks[2, :, :, 0] = 1  # its end moves from the start on, and must not be stopped by what happens to others
    v = np.random.default_rng(0).normal(size=(2, 6))
    _, batch = falling_rods(masks, v)
    shapes = [array.shape for array in (batch.q, batch.forces, batch.active)]
    assert shapes == [(3, 2, 41, 7), (3, 2, 41, 6), (3, 2, 41, 2)]
    for i, k in np.ndindex(3, 2):
        _, alone = falling_rods(masks[i, 0], v[k])
        for name in ("q", "v", "active"):
            np.testing.assert_allclose(getattr(batch, name)[i, k], getattr(alone, name), atol=1e-9)
        np.testing.assert_allclose(batch.forces[i, k], alone.forces, atol=1e-6)


def test_what_holds_from_the_start_does_not_jump() -> None:
    _, fall = falling_rods([1, 0], np.r_[0, 0, -1.0, 0, 0, 0])
    np.testing.assert_array_equal(fall.v[0], [0, 0, -1.0, 0, 0, 0])


def torn_apart() -> sl.ConstrainedDynamics:
    """The rod's middle belongs to two places at once."""
    model, places = rod(), []
    for z in (-0.01, 0.01):
        places.append(np.eye(4))
        places[-1][2, 3] = z
    both = [sl.Contact(model, 1, 6, anchor=place, kp=100.0, kd=20.0) for place in places]
    return sl.ConstrainedDynamics(model, both, "prox_ltl")


def test_contacts_that_contradict_each_other_push_no_harder_with_time() -> None:
    """One frame that belongs to two places stays in the middle, with forces that a warm start must not pile up."""
    dynamics = torn_apart()
    with pytest.warns(RuntimeWarning, match="did not converge at .* of 101 states, first at 0 s"):
        held = sl.rollout(dynamics, dynamics.model.neutral(), np.zeros(6), duration=0.2, dt=2e-3)
    assert np.abs(held.q[:, :3]).max() < 1e-6
    assert np.abs(held.forces[1:]).max() < 2 * np.abs(held.forces[0]).max()


def test_what_the_solver_says_is_recorded_and_not_silent() -> None:
    """Of two robots, one has contacts that contradict each other for half of the time."""
    dynamics, masks = torn_apart(), np.ones((2, 11, 2))
    masks[0, :, 1] = masks[1, :5, 1] = 0
    q, v = dynamics.model.neutral(), np.zeros(6)
    with pytest.warns(RuntimeWarning, match="did not converge at 6 of 22 states, first at 0.01 s") as caught:
        motion = sl.rollout(
            dynamics, q, v, active=masks, duration=0.02, dt=2e-3, method="semi_implicit_euler"
        )  # fmt: skip
    assert len(caught) == 1 and "see `status` of the trajectory" in str(caught[0].message)
    assert motion.status.shape == (2, 11) and motion.finished.all()
    assert not motion.status[0].any() and not motion.status[1, :5].any()
    assert (motion.status[1, 5:] > sl.Status.CONVERGED).all() and (motion.status < sl.Status.INVALID).all()
    assert (motion.worst_status == [sl.Status.CONVERGED, motion.status[1].max()]).all()


def test_a_solver_that_converges_says_nothing(recwarn: pytest.WarningsRecorder) -> None:
    motion = sl.rollout(four_bar(), np.zeros(3), np.zeros(3), duration=0.01)
    assert not motion.status.any() and not recwarn.list


def test_a_constrained_robot_that_diverges_is_lost_and_the_others_go_on() -> None:
    model = rod()
    held = sl.ConstrainedDynamics(model, [sl.Contact(model, "left", 3)])

    def torques(which: Any) -> Any:
        def asked(t: float, q: Any, v: Any) -> Any:
            assert np.isfinite(q).all() and np.isfinite(v).all()
            return 1e3 * v * abs(v) * np.asarray(which)[:, None]

        return asked

    v = np.zeros((3, 6))
    options: dict[str, Any] = {"duration": 1.0, "dt": 0.05, "on_invalid": "mark", "method": "semi_implicit_euler"}
    batch = sl.rollout(held, model.neutral(), v, torques([0, 1, 0]), **options)
    alone = sl.rollout(held, model.neutral(), v[[0, 2]], torques([0, 0]), **options)
    assert batch.finished.tolist() == [True, False, True]
    for name in ("q", "v", "tau", "forces", "active", "status"):
        np.testing.assert_array_equal(getattr(batch, name)[[0, 2]], getattr(alone, name))
        assert not np.isfinite(getattr(batch, name)[1, -1]).any() or name == "status"
    assert batch.worst_status.tolist() == [0, sl.Status.INVALID, 0]
    (drift,) = sl.constraint_drift(held, batch)
    assert np.isnan(drift.absolute[1, -1]) and np.isfinite(drift.absolute[[0, 2]]).all()


def hinged(damping: float, kind: str) -> sl.Model:
    """A rod that swings about its left end: by a hinge, or flying with that end to be held."""
    builder = sl.ModelBuilder("hinged")
    root = builder.add_joint("root", "free_flyer") if kind == "held" else 0
    arm = builder.add_joint("arm", "revolute", root, axis=(0, 1, 0), damping=damping)
    if kind == "held":
        builder.add_body(root, mass=1.0, inertia=0.1 * np.eye(3))
    builder.add_body(arm, mass=MASS, com=(HALF, 0, 0), inertia=np.diag([1e-3, INERTIA, INERTIA]))
    return builder.build()


@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler"])
def test_damping_under_constraints(method: Any) -> None:
    """Its base held by a contact, the rod swings as if it had a fixed one, damped or not."""
    flying, fixed = hinged(0.7, "held"), hinged(0.7, "fixed")
    dynamics = sl.ConstrainedDynamics(flying, [sl.Contact(flying, "root", 6)])
    options: dict[str, Any] = {"duration": 0.5, "dt": 1e-3, "method": method}
    ends = {}
    for damping in (True, False):
        held = sl.rollout(dynamics, flying.neutral(), np.zeros(7), damping=damping, **options)
        free = sl.rollout(fixed, np.zeros(1), np.zeros(1), damping=damping, **options)
        np.testing.assert_allclose(held.q[:, -1], free.q[:, 0], atol=1e-7)
        ends[damping] = held.q[-1, -1]
    assert abs(ends[True] - ends[False]) > 0.1


def test_a_controller_at_its_own_rate() -> None:
    asked: list[float] = []

    def torques(t: float, q: Any, v: Any) -> Any:
        asked.append(t)
        return [t, 0.0, 0.0]

    motion = sl.rollout(four_bar(), np.zeros(3), np.zeros(3), torques, duration=0.01, dt=1e-3, control_period=4e-3)
    np.testing.assert_allclose(asked, [0.0, 4e-3, 8e-3], atol=1e-15)
    np.testing.assert_allclose(motion.tau[:, 0], np.repeat([0.0, 4e-3, 8e-3], [4, 4, 3]), atol=1e-15)


def test_a_control_period_is_rounded_to_steps() -> None:
    """0.3 / 0.1 is a little less than 3."""
    asked: list[float] = []

    def torques(t: float, q: Any, v: Any) -> Any:
        asked.append(t)
        return np.zeros(3)

    sl.rollout(four_bar(), np.zeros(3), np.zeros(3), torques, duration=0.6, dt=0.1, control_period=0.3)
    np.testing.assert_allclose(asked, [0.0, 0.3, 0.6], atol=1e-15)


def test_a_disturbance_adds_to_held_torques_and_is_not_recorded() -> None:
    def pushes(t: float, q: Any, v: Any) -> Any:
        return [np.sin(t), 0.0, -v[2]]

    options: dict[str, Any] = {"duration": 0.05, "dt": 1e-3}
    start = np.zeros(3), np.array([0.3, 0.0, 0.2])
    apart = sl.rollout(four_bar(), *start, [0.5, 0, 0], disturbance=pushes, **options)
    together = sl.rollout(four_bar(), *start, lambda t, q, v: np.add(pushes(t, q, v), [0.5, 0, 0]), **options)
    np.testing.assert_allclose(apart.q, together.q, atol=1e-12)
    np.testing.assert_array_equal(apart.tau, np.tile([0.5, 0, 0], (51, 1)))


@pytest.mark.slow
def test_single_precision_stays_single() -> None:
    q, v = np.zeros((2, 3), np.float32), np.zeros(3, np.float32)
    dynamics = sl.ConstrainedDynamics(four_bar().model, four_bar().constraints, "prox_ltl", mu=1e-3, tolerance=1e-4)
    motion = sl.rollout(dynamics, q, v, duration=0.02)
    assert {array.dtype for array in (motion.q, motion.v, motion.tau, motion.forces, motion.active)} == {q.dtype}
    exact = sl.rollout(four_bar(), np.zeros(3), np.zeros(3), duration=0.02)
    np.testing.assert_allclose(motion.q[0], exact.q, atol=1e-5)


def test_what_is_done_is_kept() -> None:
    def torques(t: float, q: Any, v: Any) -> Any:
        if t > 4.5e-3:
            raise ValueError("no torques today")
        return [1.0, 0.0, 0.0]

    with pytest.raises(sl.RolloutError, match="could not go on after 0.006 s: no torques today") as caught:
        sl.rollout(four_bar(), np.zeros(3), np.zeros(3), torques, duration=1.0, control_period=2e-3)
    kept = caught.value.trajectory
    assert len(kept.t) == len(kept.q) == len(kept.tau) == len(kept.forces) == len(kept.active) == 7
    assert np.isfinite(kept.q).all() and np.isfinite(kept.forces[:6]).all() and np.isnan(kept.tau[6]).all()


def placed(model: sl.Model, positions: Any, turns: Any, masks: Any) -> sl.Trajectory:
    """A motion of the rod by hand: positions (T, 3), angles about z (T,)."""
    count = len(positions)
    q = np.tile(model.neutral(), (count, 1))
    q[:, :3], q[:, 5], q[:, 6] = positions, np.sin(np.divide(turns, 2)), np.cos(np.divide(turns, 2))
    nothing = np.zeros((count, 6))
    return sl.Trajectory(
        np.arange(count) * 1.0, q, nothing, nothing, nothing, np.asarray(masks, float)[:, None], np.zeros(count, int)
    )


def test_drift_counts_from_where_a_contact_switched_on() -> None:
    model = rod()
    positions = np.array([[0, 0, 0], [1, 0, 0], [1.3, 0.4, 0], [5, 5, 5], [7, 7, 7], [7, 7, 7.1]])
    turns, masks = [0, 1, 1.2, 2, 3, 3.0], [0, 1, 1, 0, 1, 1]
    motion = placed(model, positions, turns, masks)
    contact = sl.Contact(model, 1, 6, name="middle")  # of the frame of the joint
    metres, radians = sl.constraint_drift(sl.ConstrainedDynamics(model, [contact]), motion)
    np.testing.assert_allclose(metres.absolute, [0, 0, 0.5, 0, 0, 0.1], atol=1e-12)
    np.testing.assert_allclose(radians.absolute, [0, 0, 0.2, 0, 0, 0], atol=1e-12)
    anchor = np.eye(4)
    anchor[:3, 3] = 1.0, 0.0, 0.0
    pulled = sl.Contact(model, 1, 3, anchor=anchor, kp=1.0)
    (metres,) = sl.constraint_drift(sl.ConstrainedDynamics(model, [pulled]), motion)
    np.testing.assert_allclose(metres.absolute[:3], [0, 0, 0.5], atol=1e-12)


def test_a_point_may_turn_without_drift() -> None:
    model, turns = rod(), np.linspace(0, 1, 5)
    about_left = HALF * np.stack([np.cos(turns) - 1, np.sin(turns), 0 * turns], axis=-1)
    motion = placed(model, about_left, turns, np.ones(5))
    (left,) = sl.constraint_drift(sl.ConstrainedDynamics(model, [sl.Contact(model, "left", 3)]), motion)
    assert left.absolute.max() < 1e-12
    (right,) = sl.constraint_drift(sl.ConstrainedDynamics(model, [sl.Contact(model, "right", 3)]), motion)
    np.testing.assert_allclose(right.absolute, 4 * HALF * np.sin(turns / 2), atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"control_period": 1.5e-3}, r"control_period is 0.0015, expected a multiple of dt, 0.001 s"),
        ({"control_period": 0.0}, "control_period is 0.0, expected a multiple"),
        ({"active": [1, 1]}, r"active has shape \(2,\), expected \(1,\) or \(..., 11, 1\)"),
        ({"active": np.ones((10, 1))}, r"active has shape \(10, 1\), expected \(1,\) or \(..., 11, 1\)"),
        ({"active": np.ones((4, 11, 1)), "q": np.zeros((3, 3))}, r"active \(4,\) do not go together"),
        ({"robot": sl.load_robot("four_bar"), "active": lambda t, q, v: [1]}, "active is for constraints"),
        (
            {"robot": sl.load_robot("four_bar"), "active": [1]},
            "active is for constraints, expected ConstrainedDynamics",
        ),
        ({"disturbance": lambda t, q, v: np.zeros(2)}, "broadcast"),
    ],
)
def test_errors(changes: dict[str, Any], message: str) -> None:
    arguments = {"robot": four_bar(), "q": np.zeros(3), "v": np.zeros(3), "duration": 0.01} | changes
    with pytest.raises(ValueError, match=message):
        sl.rollout(**arguments)
