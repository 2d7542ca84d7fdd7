"""One simulator, many ways: packets, threads, single precision, code for one robot, warm starts, parts, pickles, poison."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

import saltus as sl
from saltus.simulation.job import gather_reports
from tests.simulation.bodies import free, pose

TERRAIN = [sl.Ground(friction=0.7), sl.Box(size=(0.5, 0.5, 0.1))]
COUNT, DURATION = 11, 0.2


@cache
def simulator() -> sl.Simulator:
    return sl.Simulator(sl.load_robot("quadruped"), TERRAIN)


def pulled(q: np.ndarray) -> sl.PDTargets:
    return sl.PDTargets(q, kp=200.0, kd=5.0)


@cache
def states() -> tuple[np.ndarray, np.ndarray]:
    sim, rng = simulator(), np.random.default_rng(0)
    q = np.tile(sim.model.reference_configurations["standing"], (COUNT, 1))
    q[:, 2] += rng.uniform(0.0, 0.1, COUNT)
    q[:, 7:] += 0.1 * rng.normal(size=(COUNT, 12))
    q[:, 2] -= 1.01 * np.minimum(0.0, sim.contacts(q).gap.min(axis=1))
    return q, 0.3 * rng.normal(size=(COUNT, 18))


@cache
def motion() -> sl.Motion:
    q, v = states()
    return simulator().rollout(q, v, pulled(q), duration=DURATION)


@pytest.mark.parametrize("k", [0, 5, 10])
def test_packets_are_robots_one_by_one(k: int) -> None:
    q, v = (x[k] for x in states())
    alone = simulator().rollout(q, v, pulled(q), duration=DURATION)
    assert np.abs(alone.v - motion().v[k]).max() < 1e-8 and np.abs(alone.q - motion().q[k]).max() < 1e-9
    assert (alone.contact_forces.any(axis=-1) == motion().touching[k]).mean() > 0.999


def test_parts_are_the_whole() -> None:
    q, v = states()
    whole = motion()
    half = simulator().rollout(q, v, pulled(q), duration=DURATION / 2)
    rest = simulator().rollout(half.q[:, -1], half.v[:, -1], pulled(q), duration=DURATION / 2, start=half)
    assert np.abs(rest.v[:, -1] - whole.v[:, -1]).max() < 1e-8
    rows = simulator().rollout(q, v, pulled(q), duration=DURATION, every=10)
    assert np.array_equal(rows.q, whole.q[:, ::10]) and np.array_equal(rows.touch, whole.touch[:, ::10])
    assert np.array_equal(rows.report[:, 1:, 2], whole.report[:, 1:, 2].reshape(COUNT, -1, 10).max(axis=-1))


def test_a_controller_is_asked_at_its_own_rate() -> None:
    """The same torques given by a function every 4 steps, with rows of 8, 4 and 2 steps, as over time."""
    sim, (q, v), rng = simulator(), states(), np.random.default_rng(1)
    torques = np.concatenate([np.zeros((20, 6)), rng.normal(size=(20, 12))], axis=1)
    given = sim.rollout(q[0], v[0], sl.OverTime(torques), duration=0.08)
    asked: list[float] = []

    def tau(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        asked.append(t)
        return torques[round(t / 0.004)]

    for every in (8, 4, 2):
        asked.clear()
        found = sim.rollout(q[0], v[0], tau, duration=0.08, every=every, control_period=0.004)
        assert np.allclose(asked, 0.004 * np.arange(20))
        assert np.abs(found.v - given.v[::every]).max() < 1e-8
        steps = given.report[1:].reshape(-1, every, 7)
        assert np.abs(found.report[1:, 0] - steps[..., 0].sum(axis=1)).max() <= 2 * every
        assert np.abs(found.residuals[1:] - steps[..., 2:5].max(axis=1)).max() < 2e-8


def test_reports_of_one_row_are_gathered() -> None:
    """Counts add up, residuals and statuses are the worst, and the row is that of the worst residual."""
    report = np.array([[2.0, 0.0, 1e-9, 3e-9, 1e-9, 7.0, 0.0], [2.0, 0.0, 2e-9, 0.0, 0.0, 7.0, 2.0]])
    gather_reports(report, np.array([[3.0, 1.0, 5e-9, 1e-9, 0.0, 4.0, 3.0], [3.0, 1.0, 1e-9, 1e-9, 0.0, 4.0, 0.0]]))
    assert report.tolist() == [[5, 1, 5e-9, 3e-9, 1e-9, 4, 3], [5, 1, 2e-9, 1e-9, 0, 7, 2]]


def test_single_precision() -> None:
    """Off by what single precision and a thousandth of a second of an impact are."""
    q, v = (x.astype(np.float32) for x in states())
    single = simulator().rollout(q, v, pulled(q), duration=DURATION)
    assert {x.dtype.name for x in (single.q, single.v, single.tau, single.touch, single.report)} == {"float32"}
    assert np.abs(single.q - motion().q).max() < 1e-3 and (single.status == 0).mean() > 0.99
    assert single.v[:, -1] == pytest.approx(motion().v[:, -1], abs=0.02)


def test_starts_do_not_matter() -> None:
    sim, whole = simulator(), motion()
    for k in (50, 100, 150):
        q, v, tau = whole.q[0, k], whole.v[0, k], whole.tau[0, k + 1]
        cold = sim.step(q, v, tau)
        warm = sim.step(q, v, tau, start=cold)
        after = sim.step(
            q, v, tau, start=sim.rollout(*(x[0, k - 1] for x in (whole.q, whole.v)), whole.tau[0, k], duration=1e-3)
        )
        assert np.abs(warm.v - cold.v).max() < 1e-8 and np.abs(after.v - cold.v).max() < 1e-8
        assert warm.report[0] == 0 < cold.report[0]  # nothing is left to do
        assert np.abs(warm.contact_forces - cold.contact_forces).max() < 1e-3


def test_a_pickle_is_the_same() -> None:
    sim, (q, v) = simulator(), states()
    for original in (sim, sl.Simulator(sim.model, sl.Stairs(), dt=2e-3, method="pgs", law="convex", most_contacts=5)):
        copy = pickle.loads(pickle.dumps(original))
        assert (copy.dt, copy.method, copy.law, copy.most_contacts) == (
            original.dt, original.method, original.law, original.most_contacts,
        )  # fmt: skip
        assert np.array_equal(copy.step(q[0], v[0]).v, original.step(q[0], v[0]).v)


@pytest.mark.slow
def test_code_for_one_robot() -> None:
    q, v = (x[0] for x in states())
    sim = sl.Simulator(sl.specialise(sl.load_robot("quadruped")), TERRAIN)
    assert np.abs(sim.rollout(q, v, pulled(q), duration=DURATION).v - motion().v[0]).max() < 1e-8


def test_methods_agree() -> None:
    q, v = states()
    steps = [sl.Simulator(simulator().model, TERRAIN, method=method).step(q, v) for method in ("admm", "pgs")]
    assert np.abs(steps[0].v - steps[1].v).max() < 1e-5


def test_bodies_in_one_model_are_bodies_alone() -> None:
    """Far from each other they do not know of each other; near, they push each other as hard as they are pushed."""
    kinds = (("box", (0.2, 0.2, 0.2)), ("sphere", [0.1]), ("capsule", (0.05, 0.2)))
    places = [pose((3.0 * n, 0, 0.3), (1, 0, 0), 0.3) for n in range(3)]
    together = sl.Simulator(free(*kinds), sl.Ground()).rollout(np.concatenate(places), np.zeros(18), duration=0.5)
    for n, kind in enumerate(kinds):
        alone = sl.Simulator(free(kind), sl.Ground()).rollout(places[n], np.zeros(6), duration=0.5)
        assert np.abs(alone.q - together.q[:, 7 * n : 7 * n + 7]).max() < 1e-7
    stacked = np.concatenate([pose((0, 0, 0.1)), pose((0, 0, 0.3)), pose((0, 0, 0.45), (0, 1, 0), np.pi / 2)])
    sim = sl.Simulator(free(*kinds), sl.Ground())
    after = sim.step(stacked, np.zeros(18))
    at_ground, carried = (
        sum(f for f, (_, b) in zip(after.contact_forces, sim.scene.slots, strict=True) if bool(b) == own)
        for own in (False, True)
    )
    assert at_ground == pytest.approx([0, 0, 3 * 9.81], abs=1e-4) and abs(carried[2]) > 9.8


POISONED = """
import numpy as np, saltus as sl
from tests.simulation.test_simulator_ways import motion, simulator, states, pulled
print(np.abs(motion().v).sum().hex(), simulator().step(*(x[0] for x in states())).v.sum().hex())
"""


@pytest.mark.slow
def test_memory_that_was_never_written_does_not_matter() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", POISONED],
            env=os.environ | {"SALTUS_POISON": poison},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for poison in ("0", "1")
    }
    assert len(said) == 1 and "nan" not in said.pop()
