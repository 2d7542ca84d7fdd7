"""What is wrong with an input is told, and states until then are kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import saltus as sl


@cache
def simulator() -> sl.Simulator:
    return sl.Simulator(sl.load_robot("quadruped"), sl.Ground())


def state() -> tuple[np.ndarray, np.ndarray]:
    return simulator().model.reference_configurations["standing"].copy(), np.zeros(18)


def step(**changed: Any) -> Any:
    q, v = state()
    given = {"q": q, "v": v, "tau": np.zeros(18)} | changed
    return simulator().step(**given)


def rollout(tau: Any = None, duration: float = 0.01, **more: Any) -> Any:
    return simulator().rollout(*state(), tau, duration=duration, **more)


def bad(place: int, value: float, size: int = 18) -> np.ndarray:
    array = state()[0] if size == 19 else np.zeros(size)
    array[place] = value
    return array


def push(frame: str = "base", force: Any = (1.0, 0.0, 0.0), *times: float) -> Any:
    return lambda: step(pushes=[sl.Push(frame, force, *times)])


ROBOT = sl.load_robot("double_pendulum")
CASES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: step(q=bad(9, np.nan, 19)), ValueError, r"q\[9\] is nan, expected finite"),
    (lambda: step(v=bad(0, np.inf)), ValueError, r"v\[0\] is inf, expected finite"),
    (lambda: step(tau=bad(7, np.nan)), ValueError, r"tau\[7\] is nan, expected finite"),
    (lambda: step(q=bad(6, 2.0, 19)), ValueError, "quaternion of joint 'root_joint'.* has norm 2, expected 1"),
    (lambda: step(q=np.zeros(18)), ValueError, r"q has shape \(18,\), expected \(\.\.\., 19\)"),
    (lambda: step(v=np.zeros(17)), ValueError, r"v has shape \(17,\), expected \(\.\.\., 18\)"),
    (lambda: step(tau=np.zeros(17)), ValueError, r"tau has shape \(17,\), expected \(\.\.\., 18\)"),
    (lambda: step(q=np.tile(state()[0], (3, 1)), v=np.zeros((2, 18))), ValueError, "broadcast"),
    (lambda: step(tau="much"), TypeError, "tau is not an array of numbers"),
    (lambda: step(friction=-1.0), ValueError, "friction is -1.0, expected factors, not negative"),
    (lambda: step(friction=np.nan), ValueError, "friction is nan"),
    (lambda: step(on_invalid="ignore"), ValueError, "on_invalid is 'ignore', expected 'raise' or 'mark'"),
    (lambda: step(start=np.zeros(3)), TypeError, "start is .*, expected a step or a motion"),
    (lambda: step(start=sl.Simulator(ROBOT).step(np.zeros(2), np.zeros(2)), friction=0.5), ValueError, "another simulator"),
    (push("nose"), sl.ModelError, "no frame 'nose'"),
    (push(force=(1.0, 0.0)), ValueError, r"force of a push is \(1.0, 0.0\), expected three finite numbers"),
    (push(force=(np.nan, 0.0, 0.0)), ValueError, "three finite numbers"),
    (push("base", (1.0, 0.0, 0.0), 0.0, -1.0), ValueError, "for -1.0 s, expected times, not negative"),
    (lambda: step(pushes=[("base", (1.0, 0.0, 0.0))]), TypeError, "a push is .*, expected a Push"),
    (lambda: rollout(duration=-1.0), ValueError, "duration is -1.0, expected a time"),
    (lambda: rollout(duration=np.nan), ValueError, "duration is nan, expected a time"),
    (lambda: rollout(every=3), ValueError, "every is 3, expected a divisor of the number of steps, 10"),
    (lambda: rollout(every=0), ValueError, "every is 0, expected a divisor"),
    (lambda: rollout(control_period=0.002), ValueError, "control_period is that of a function"),
    (lambda: rollout(lambda t, q, v: 0 * v, control_period=0.0015), ValueError, "expected a multiple of dt"),
    (lambda: rollout(lambda t, q, v: None), sl.RolloutError, r"tau\(t, q, v\) has shape \(\), expected \(\.\.\., 18\)"),
    (lambda: rollout(sl.OverTime(np.zeros((7, 18)))), ValueError, r"shape \(7, 18\), expected \(\.\.\., 10, 18\)"),
    (lambda: rollout(sl.PDTargets(np.tile(state()[0], (7, 1)), 1.0, 1.0)), ValueError, r"targets have shape \(7, 19\)"),
    (lambda: rollout(sl.PDTargets(state()[0][1:], 1.0, 1.0)), ValueError, r"targets have shape \(18,\)"),
    (lambda: rollout(sl.PDTargets(state()[0], -1.0, 1.0)), ValueError, "kp of the targets is -1.0"),
    (lambda: rollout(sl.PDTargets(state()[0], np.ones(3), 1.0)), ValueError, r"kp of the targets has shape \(3,\)"),
    (lambda: sl.Simulator("quadruped"), TypeError, "robot is 'quadruped', expected a Model"),  # type: ignore[arg-type]
    (lambda: sl.Simulator(ROBOT, dt=0.0), ValueError, "dt is 0.0, expected a positive time"),
    (lambda: sl.Simulator(ROBOT, dt=np.nan), ValueError, "dt is nan, expected a positive time"),
    (lambda: sl.Simulator(ROBOT, compliance=-1.0), ValueError, "compliance is -1.0"),
    (lambda: sl.Simulator(ROBOT, method="lcp"), ValueError, "method is 'lcp'"),  # type: ignore[arg-type]
    (lambda: sl.Simulator(ROBOT, law="dry"), ValueError, "law 'dry'"),  # type: ignore[arg-type]
    (lambda: sl.Simulator(ROBOT, most_contacts=1), ValueError, "most_contacts is 1, expected 0 to 0"),
    (lambda: sl.Simulator(ROBOT, "ground"), TypeError, "terrain"),  # type: ignore[arg-type]
    (lambda: sl.Ground(friction=-1.0), sl.ModelError, "friction of a ground is -1.0"),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(CASES)))
def test_it_is_told(k: int) -> None:
    call, kind, text = CASES[k]
    with pytest.raises(kind, match=text):
        call()


def test_invalid_robots_are_marked_and_others_go_on() -> None:
    q, v = state()
    both = np.stack([q, bad(9, np.nan, 19)])
    after = simulator().step(both, v, on_invalid="mark")
    assert after.status.tolist() == [0, int(sl.Status.INVALID)] and np.isnan(after.v[1]).all()
    motion = simulator().rollout(both, v, duration=0.01, on_invalid="mark")
    alone = simulator().rollout(q, v, duration=0.01)
    assert motion.finished.tolist() == [True, False] and np.abs(motion.q[0] - alone.q).max() < 1e-9
    assert (motion.status[1] == int(sl.Status.INVALID)).all() and (motion.status[0] == 0).all()
    runaway = simulator().rollout(np.stack([q, q]), np.stack([v, v + 1e200]), duration=0.01, on_invalid="mark")
    assert runaway.finished.tolist() == [True, False] and runaway.status[1, -1] == int(sl.Status.INVALID)


def test_states_until_then_are_kept() -> None:
    """Of controllers that raise, that are interrupted, or that ask for NaN after 4.5 ms; rows are longer, or not."""

    def ends(end: Callable[[], Any]) -> Callable[..., Any]:
        return lambda t, q, v: 0.0 * v if t < 0.0045 else end()

    def interrupt() -> None:
        raise KeyboardInterrupt

    def refuse() -> None:
        raise ValueError("no more")

    whole = rollout()
    for end, kind in (
        (interrupt, sl.Interrupted),
        (refuse, sl.RolloutError),
        (lambda: np.full(18, np.nan), sl.RolloutError),
    ):
        for every, period in ((1, 0.001), (1, 0.005), (5, 0.001), (5, 0.005)):
            with pytest.raises(kind) as told:
                rollout(ends(end), every=every, control_period=period)
            kept = told.value.trajectory
            assert isinstance(kept, sl.Motion) and kept.t[-1] == pytest.approx(0.005)
            assert np.abs(kept.q - whole.q[:6:every]).max() < 1e-9 and kept.status.max() == 0
    with pytest.raises(sl.RolloutError, match="no longer finite") as told:
        simulator().rollout(state()[0], np.full(18, 1e200), duration=0.01)
    assert told.value.trajectory.t[-1] == 0.0
    with pytest.raises(sl.RolloutError, match="no longer finite") as told:  # in the second half of a row
        rollout(
            lambda t, q, v: np.full(18, 1e300 if t > 0.0055 else 0.0), every=4, duration=0.012, control_period=0.002
        )
    assert told.value.trajectory.t[-1] == pytest.approx(0.004)


def test_progress_may_interrupt() -> None:
    def stop(done: int, steps: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(sl.Interrupted) as told:
        rollout(progress=stop)
    assert told.value.trajectory.t[-1] == pytest.approx(0.01)


def test_a_robot_in_the_ground_comes_out() -> None:
    """40 cm deep: pushed at 1 m/s at most, to the surface and no further."""
    q, v = state()
    q[2] = 0.1
    motion = simulator().rollout(q, v, sl.PDTargets(q, 200.0, 5.0), duration=2.0)
    gaps = simulator().contacts(motion.q).gap.min(axis=-1)
    assert gaps[0] < -0.39 and abs(gaps[-1]) < 1e-6 and motion.status.max() == 0
    assert motion.q[:, 2].max() < 0.6 and np.abs(motion.v[-1]).max() < 0.1


def test_too_many_contacts_are_told() -> None:
    q, v = state()
    sim = sl.Simulator(simulator().model, sl.Ground(), most_contacts=2)
    assert sim.step(q, v).status == sl.Status.STOPPED and sim.step(q, v).touching.sum() <= 2


def test_nothing_to_do() -> None:
    still = rollout(duration=0.0)
    assert still.t.tolist() == [0.0] and np.array_equal(still.q[0], state()[0])
    none = simulator().rollout(np.zeros((0, 19)), np.zeros((0, 18)), duration=0.01)
    assert none.q.shape == (0, 11, 19) and simulator().step(np.zeros((0, 19)), np.zeros((0, 18))).v.shape == (0, 18)
