"""Torques and targets that are known ahead: many steps in one call give what single steps do; what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus as sl

STEPS, DT = 150, 1e-3
EULER = {"duration": STEPS * DT, "dt": DT, "method": "semi_implicit_euler"}


def robot() -> sl.Model:
    model = sl.load_robot("quadruped")
    return model.replace(damping=np.linspace(0.0, 0.1, model.nv))


def start(model: sl.Model, shape: tuple[int, ...], dtype: Any = np.float64) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return sl.random_configuration(model, 1, shape).astype(dtype), rng.normal(size=(*shape, model.nv)).astype(dtype)


def commands(model: sl.Model, shape: tuple[int, ...]) -> dict[str, tuple[Any, Any]]:
    """What is known ahead, and a function that says the same."""
    rng = np.random.default_rng(1)
    constant, values = rng.normal(size=(*shape, model.nv)), rng.normal(size=(*shape, STEPS, model.nv))
    targets = sl.random_configuration(model, 2, (*shape, STEPS))
    kp, kd = np.r_[np.zeros(6), np.full(model.nv - 6, 20.0)], np.r_[np.zeros(6), np.full(model.nv - 6, 0.5)]

    def row(rows: Any, t: float) -> Any:
        return rows[..., min(round(t / DT), STEPS - 1), :]

    return {
        "constant": (constant, lambda t, q, v: constant),
        "over time": (sl.OverTime(values), lambda t, q, v: row(values, t)),
        "targets": (
            sl.PDTargets(targets, kp, kd, constant),
            lambda t, q, v: constant + kp * sl.difference(model, q, row(targets, t)) - kd * v,
        ),
    }


@pytest.mark.parametrize("name", ["constant", "over time", "targets"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 5)])
@pytest.mark.parametrize("damping", [False, True])
def test_many_steps_are_single_steps(name: str, shape: tuple[int, ...], damping: bool) -> None:
    model = robot()
    known, function = commands(model, shape)[name]
    given: Any = EULER | {"damping": damping}
    found, right = (sl.rollout(model, *start(model, shape), tau, **given) for tau in (known, function))
    for each in ("q", "v", "tau"):
        np.testing.assert_allclose(getattr(found, each), getattr(right, each), rtol=0, atol=1e-10)
    assert found.q.shape == (*shape, STEPS + 1, model.nq) and (found.status == 0).all()
    assert found.forces.shape == (*shape, STEPS + 1, 0)


@pytest.mark.parametrize("name", ["over time", "targets"])
def test_under_constraints_and_by_runge_and_kutta(name: str) -> None:
    """Whatever steps, rows are held from step to step."""
    model = robot()
    standing = sl.ConstrainedDynamics(model, [sl.Contact(model, foot) for foot in sl.robot_frames("quadruped").feet])
    known, function = commands(model, ())[name]
    for each, given in ((standing, EULER), (model, EULER | {"control_period": DT})):
        found, right = (sl.rollout(each, *start(model, ()), tau, **given) for tau in (known, function))  # type: ignore[arg-type]
        np.testing.assert_allclose(found.q, right.q, rtol=0, atol=1e-9)
    held = sl.rollout(model, *start(model, ()), known, duration=0.15, control_period=DT)
    right = sl.rollout(model, *start(model, ()), function, duration=0.15, control_period=DT)
    np.testing.assert_allclose(held.q, right.q, rtol=0, atol=1e-9)


def test_single_precision_and_code_of_its_own() -> None:
    model = robot()
    q, v = start(model, (9,), np.float32)
    found = sl.rollout(model, q, v, sl.OverTime(np.zeros((STEPS, model.nv), np.float32)), **EULER)  # type: ignore[arg-type]
    assert found.q.dtype == np.float32
    own = sl.rollout(sl.specialise(model), *start(model, (9,)), **EULER)  # type: ignore[arg-type]
    right = sl.rollout(model, *start(model, (9,)), **EULER)  # type: ignore[arg-type]
    np.testing.assert_allclose(own.q, right.q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.q, right.q, rtol=0, atol=1e-2)


def test_rows_may_differ_between_robots_that_start_alike() -> None:
    model = robot()
    values = np.random.default_rng(0).normal(size=(4, STEPS, model.nv))
    found = sl.rollout(model, *start(model, ()), sl.OverTime(values), **EULER)  # type: ignore[arg-type]
    assert found.q.shape == (4, STEPS + 1, model.nq)
    alone = sl.rollout(model, *start(model, ()), sl.OverTime(values[2]), **EULER)  # type: ignore[arg-type]
    np.testing.assert_allclose(found.q[2], alone.q, rtol=0, atol=1e-12)


def test_a_robot_that_is_lost_among_many_steps() -> None:
    """It is found when, as step by step; others go on by choice."""
    model = robot()
    q, v = start(model, (3,))
    values = np.zeros((3, STEPS, model.nv))
    values[1, 70:] = 1e200
    with pytest.raises(sl.RolloutError, match=r"after 0\.0") as caught:
        sl.rollout(model, q, v, sl.OverTime(values), **EULER)  # type: ignore[arg-type]
    kept = caught.value.trajectory
    assert 70 <= len(kept.t) <= 75 and np.isfinite(kept.q).all()
    marked = sl.rollout(model, q, v, sl.OverTime(values), on_invalid="mark", **EULER)  # type: ignore[arg-type]
    assert marked.finished.tolist() == [True, False, True]
    assert np.isnan(marked.q[1, -1]).all() and (marked.status[1, -1] == int(sl.Status.INVALID)).all()
    right = sl.rollout(model, q[[0, 2]], v[[0, 2]], **EULER)  # type: ignore[arg-type]
    np.testing.assert_allclose(marked.q[[0, 2]], right.q, rtol=0, atol=1e-10)


def test_an_interrupt_between_calls() -> None:
    model = robot()

    def stop(done: int, steps: int) -> None:
        if done == 100:
            raise KeyboardInterrupt

    with pytest.raises(sl.Interrupted) as caught:
        sl.rollout(model, *start(model, (200,)), progress=stop, **EULER)  # type: ignore[arg-type]
    kept = caught.value.trajectory
    assert len(kept.t) >= 65 and np.isfinite(kept.q).all() and np.isfinite(kept.tau).all()


def test_what_is_ambiguous_or_wrong() -> None:
    model = robot()
    q, v = start(model, ())
    wrong = [
        (np.zeros((STEPS, model.nv)), "tau has shape .* may be 150 robots or 150 steps; expected `OverTime"),
        (sl.OverTime(np.zeros((STEPS - 1, model.nv))), r"tau have shape \(149, 18\), expected \(\.\.\., 150, 18\)"),
        (sl.OverTime(np.zeros(model.nv)), "a row for each step"),
        (sl.PDTargets(np.zeros((STEPS, model.nq)), 1.0, 1.0), "quaternion"),
        (sl.PDTargets(np.tile(q, (STEPS, 1)), np.ones(3), 1.0), "kp of the targets has shape"),
    ]  # fmt: skip
    for tau, words in wrong:
        with pytest.raises(ValueError, match=words):
            sl.rollout(model, q, v, tau, **EULER)  # type: ignore[arg-type]
    many = sl.rollout(model, q[None], v, np.zeros((STEPS, model.nv)), duration=0.002)  # an axis says: robots
    assert many.q.shape == (STEPS, 3, model.nq)


@pytest.mark.parametrize("method", ["semi_implicit_euler", "rk4"])
def test_external_forces(method: Any) -> None:
    """A body that is held against its weight stays where it is; under constraints as by torques that do the same."""
    builder = sl.ModelBuilder("brick")
    builder.add_body(builder.add_joint("root", "free_flyer"), mass=2.0, inertia=np.eye(3))
    brick = builder.build()
    lift = np.zeros((2, 6))
    lift[1, 2] = 2.0 * 9.81
    found = sl.rollout(brick, brick.neutral(), np.zeros(6), duration=0.1, method=method, external=lift)
    np.testing.assert_allclose(found.q[-1], brick.neutral(), atol=1e-12)
    batch = sl.rollout(
        brick, brick.neutral(), np.zeros(6), duration=0.1, method=method, external=np.stack([lift, 0 * lift])
    )
    np.testing.assert_allclose(batch.q[:, -1, 2], [0.0, -9.81 / 2 * 0.01], atol=1e-3)
    model = robot()
    standing = sl.ConstrainedDynamics(model, [sl.Contact(model, foot) for foot in sl.robot_frames("quadruped").feet])
    q, v = start(model, ())
    push = np.random.default_rng(0).normal(size=(model.njoints, 6))

    def torques(t: float, q: Any, v: Any) -> Any:
        return sl.gravity(model, q) - sl.gravity(model, q, push)

    for each in (model, standing):
        found = sl.rollout(each, q, v, duration=0.02, method=method, external=lambda t, q, v: push)
        right = sl.rollout(each, q, v, torques, duration=0.02, method=method)
        np.testing.assert_allclose(found.q, right.q, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match=r"external has shape \(3, 6\), expected \(\.\.\., 14, 6\)"):
        sl.rollout(model, q, v, duration=0.01, external=np.zeros((3, 6)))


def test_no_steps_at_all() -> None:
    """A command without rows is one, and an interrupt before the first step loses nothing."""
    arm = sl.load_robot("arm")
    q, v = arm.neutral(), np.ones(arm.nv)
    for command in (sl.OverTime(np.zeros((0, arm.nv))), sl.PDTargets(np.zeros((0, arm.nq)), kp=1.0, kd=1.0)):
        still = sl.rollout(arm, q, v, command, duration=0.0)
        assert still.q.shape == (1, arm.nq) and not still.tau.any()

    def interrupt(t: float, q: Any, v: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(sl.Interrupted) as caught:
        sl.rollout(arm, q, v, interrupt, duration=0.1)
    np.testing.assert_array_equal(caught.value.trajectory.q, q[None])
    np.testing.assert_array_equal(caught.value.trajectory.v, v[None])
