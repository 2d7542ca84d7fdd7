"""What textbooks know of blocks, balls, hoops and rods that touch the ground.

Velocities under steady forces are exact whatever the step, and places are those half a step later, across bounces too;
what else depends on when something happens is off by a step.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import saltus as sl
from tests.simulation.bodies import G, free, groove, pose, world

SLOPE = np.deg2rad(20.0)
NORMAL = np.array([-np.sin(SLOPE), 0.0, np.cos(SLOPE)])  # it rises along x
UPHILL = np.array([np.cos(SLOPE), 0.0, np.sin(SLOPE)])
RADIUS = 0.1


@pytest.mark.parametrize("dt", [1e-3, 1e-5])
@pytest.mark.parametrize("friction", [0.3, 0.36, 0.37, 0.5])  # tan 20 = 0.36397
def test_a_block_sticks_or_slides(friction: float, dt: float) -> None:
    block = free(("box", (0.3, 0.2, 0.1)), mass=2.0)
    sim = sl.Simulator(block, sl.Ground(normal=NORMAL, friction=friction), dt=dt)
    motion = sim.rollout(pose(0.05 * NORMAL, (0, -1, 0), SLOPE), np.zeros(6), duration=1000 * dt, every=100)
    acceleration = min(0.0, G * (friction * np.cos(SLOPE) - np.sin(SLOPE)))
    expected = np.outer(acceleration * motion.t, UPHILL)
    v = world(block, motion)
    assert np.abs(v[:, :3] - expected).max() < 1e-7 and np.abs(v[:, 3:]).max() < 1e-6  # solved to 1e-8 m/s
    assert np.abs(motion.q[:, :3] - 0.05 * NORMAL - expected * (motion.t[:, None] + dt) / 2).max() < 1e-9
    forces = motion.contact_forces[1:].sum(axis=1)
    weight = 2.0 * G
    assert np.abs(forces @ NORMAL - weight * np.cos(SLOPE)).max() < 1e-6 * weight / min(1.0, dt * 1e3)
    assert motion.status.max() == 0


@pytest.mark.parametrize("v, spin", [(1.0, 0.0), (0.0, 10.0), (1.0, -30.0)])
@pytest.mark.parametrize("dt", [1e-3, 1e-5])
def test_a_ball_slides_until_it_rolls(v: float, spin: float, dt: float) -> None:
    friction, slip = 0.2, v - RADIUS * spin
    onset, rolling = abs(slip) / (3.5 * friction * G), (5 * v + 2 * RADIUS * spin) / 7  # 5/7 of v if it does not spin
    ball = free(("sphere", [RADIUS]))
    sim = sl.Simulator(ball, sl.Ground(friction=friction), dt=dt)
    motion = sim.rollout(pose((0, 0, RADIUS)), np.array([v, 0, 0, 0, spin, 0]), duration=1.2 * onset // dt * dt)
    found = world(ball, motion)
    sliding = motion.t < onset
    expected = v - np.sign(slip) * friction * G * motion.t
    assert np.abs(found[sliding, 0] - expected[sliding]).max() < 1e-7
    at_last = motion.t > onset + dt
    assert at_last.any() and np.abs(found[at_last, 0] - rolling).max() < 1e-7
    assert np.abs(found[at_last, 4] * RADIUS - rolling).max() < 1e-7
    assert np.abs(found[:, [1, 2, 3, 5]]).max() < 1e-7 and np.abs(motion.q[:, 2] - RADIUS).max() < 1e-9
    assert motion.status.max() == 0


def thrown(t: np.ndarray, height: float, speed: float, restitution: float, friction: float) -> tuple[np.ndarray, ...]:
    """A ball that falls, and goes along x so fast that it slides whenever it bounces: where it is at times t,
    (T, 2), its velocity, and how long ago it has bounced."""
    at, moves, since = np.array([0.0, height]), np.array([speed, 0.0]), -np.inf
    begin, x, v, ago = 0.0, np.empty((len(t), 2)), np.empty((len(t), 2)), np.empty(len(t))
    while True:
        here = t >= begin
        left = (t - begin)[here, None]
        x[here], v[here] = at + left * moves - [0.0, G / 2] * left**2, moves - [0.0, G] * left
        ago[here] = t[here] - since
        flight = (moves[1] + np.sqrt(moves[1] ** 2 + 2 * G * at[1])) / G
        begin = since = begin + flight
        if begin > t[-1]:
            return x, v, ago
        hit = G * flight - moves[1]
        at = np.array([at[0] + flight * moves[0], 0.0])
        moves = np.array([moves[0] - friction * (1 + restitution) * hit, restitution * hit])


@pytest.mark.parametrize("dt", [1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("height", [0.5, 20.0])
def test_a_ball_bounces(height: float, dt: float) -> None:
    restitution, friction, speed, ball = 0.7, 0.1, 40.0, free(("sphere", [RADIUS]))
    sim = sl.Simulator(ball, sl.Ground(restitution=restitution, friction=friction), dt=dt)
    start = pose((speed * dt / 2, 0, RADIUS + height)), np.array([speed, 0, 0, 0, 0, 0])
    duration = np.sqrt(2 * height / G) * 3.0 // (10 * dt) * 10 * dt
    motion = sim.rollout(*start, duration=duration, every=10)
    given = height, speed, restitution, friction
    x, _, ago = thrown(motion.t + dt / 2, *given)
    _, v, _ = thrown(motion.t, *given)
    flies = ago > 2 * dt
    most = G * dt**2 + 1e-8
    assert np.abs(world(ball, motion)[:, [0, 2]] - v)[flies].max() < most
    assert np.abs(motion.q[:, [0, 2]] - [0, RADIUS] - x)[flies].max() < most
    assert (np.diff(ago) < 0).sum() == 2 and motion.status.max() == 0


def test_without_loss_a_ball_bounces_for_ever() -> None:
    ball = free(("sphere", [RADIUS]))
    sim = sl.Simulator(ball, sl.Ground(restitution=1.0))
    motion = sim.rollout(pose((0, 0, RADIUS + 0.5)), np.zeros(6), duration=30.0)
    tops = motion.q[motion.t > 29.0, 2].max() - RADIUS
    assert abs(tops - 0.5) < 5e-6 and (np.diff(np.sign(motion.v[:, 2])) > 0).sum() > 40


@pytest.mark.parametrize("dt", [1e-3, 1e-5])
@pytest.mark.parametrize("hollow", [1.0, 0.5])  # a hoop, a disc
def test_a_hoop_rolls_down(hollow: float, dt: float) -> None:
    radius = 0.2
    builder = sl.ModelBuilder("hoop")
    joint = builder.add_joint("joint", "free_flyer")
    builder.add_body(joint, 1.0, inertia=np.diag([0.6, 1.0, 0.6]) * hollow * radius**2, name="body_0")
    across = np.eye(4)
    across[:3, :3] = Rotation.from_euler("x", 90, degrees=True).as_matrix()
    builder.add_collider(joint, "cylinder", (radius, 0.05), across)
    hoop = builder.build()
    sim = sl.Simulator(hoop, sl.Ground(normal=NORMAL, friction=0.5), dt=dt)
    motion = sim.rollout(pose(radius * NORMAL), np.zeros(6), duration=1000 * dt, every=100)
    expected = -G * np.sin(SLOPE) / (1 + hollow) * motion.t
    v = world(hoop, motion)
    assert np.abs(v[:, :3] - np.outer(expected, UPHILL)).max() < 1e-7
    assert np.abs(v[:, 4] - expected / radius).max() < 1e-6 and motion.status.max() == 0


@pytest.mark.parametrize("v", [-1.0, 1.0])
@pytest.mark.parametrize("angle", [0.3, 0.6, 0.9, 1.2])
@pytest.mark.parametrize("friction", [0.5, 1.5, 3.0])
def test_painleves_rod(friction: float, angle: float, v: float) -> None:
    """Sliding on its end: from friction 4/3 on, forces contradict each other or have two answers; impulses have one."""
    half = 0.5
    rod = free(("capsule", (1e-3, 2 * half)), moments=(1 / 3 * half**2, 1 / 3 * half**2, 1e-4))
    sim = sl.Simulator(rod, sl.Ground(friction=friction))
    q = pose((0, 0, half * np.cos(angle) + 1e-3), (0, 1, 0), angle)
    R = Rotation.from_quat(q[3:]).as_matrix()
    motion = sim.rollout(q, np.r_[R.T @ [v, 0, 0], 0, 0, 0], duration=1.0)
    assert np.isfinite(motion.q).all() and motion.status.max() == 0 and motion.residuals.max() < 1e-8
    energy = sl.kinetic_energy(rod, motion.q, motion.v) + sl.potential_energy(rod, motion.q)
    assert (energy < energy[0] * (1 + 1e-9)).all()
    # The first step's impulse, by hand: m u+ = m u + h m g + x, I w+ = I w + p x, and u_n+ = 0.
    x = motion.contact_forces[1].sum(axis=0) * sim.dt
    lift = sim.contacts(q).point[sim.contacts(q).gap.argmin()] - q[:3]
    w = (Rotation.from_quat(q[3:]).as_matrix().T @ np.cross(lift, x))[1] / (1 / 3 * half**2)
    point = np.array([v, 0, -sim.dt * G]) + x + np.cross([0, w, 0], lift)
    assert abs(point[2]) < 1e-6 and x[2] > 0
    assert abs(x[0]) <= friction * x[2] * (1 + 1e-6)
    if abs(x[0]) < friction * x[2] * (1 - 1e-6):
        assert abs(point[0]) < 1e-6  # it sticks: dynamic jamming
    else:
        assert point[0] * x[0] < 1e-9


@pytest.mark.parametrize("deep", [1e-6, 1e-4])
@pytest.mark.parametrize("angle", [2.0, 10.0, 25.0])  # tan 35 = 0.7
def test_a_wedged_ball_stays(angle: float, deep: float) -> None:
    """Between two steep planes, a little in both: friction holds it against all that could part them, however large."""
    planes, ball = groove(angle, deep), free(("sphere", [RADIUS]), mass=2.0)
    motion = sl.Simulator(ball, planes).rollout(pose((0, 0, 0)), np.zeros(6), duration=0.2)
    assert motion.status.max() == 0 and np.abs(motion.v).max() < 1e-7
    assert np.abs(motion.contact_forces[1:].sum(axis=1) - [0, 0, 2.0 * G]).max() < 1e-4
    assert np.abs(motion.contact_forces).max() < 100.0


def test_what_is_not_wedged_parts() -> None:
    ball = free(("sphere", [RADIUS]))
    sim = sl.Simulator(ball, groove(45.0, 1e-4))
    motion = sim.rollout(pose((0, 0, 0)), np.zeros(6), duration=0.1)
    assert motion.status.max() == 0 and sim.contacts(motion.q[-1]).gap.min() > -1e-9


def test_spinning_bodies_keep_their_momentum() -> None:
    """Nothing pushes: the middle goes straight on."""
    box = free(("box", (0.3, 0.2, 0.1))).replace(gravity=np.zeros(3))
    motion = sl.Simulator(box).rollout(pose((0, 0, 0)), np.array([1.0, 2.0, 3.0, 20.0, -10.0, 30.0]), duration=2.0)
    assert np.abs(world(box, motion)[:, :3] - [1, 2, 3]).max() < 1e-12
    assert np.abs(motion.q[:, :3] - motion.t[:, None] * [1, 2, 3]).max() < 1e-12


def test_planar_bodies_keep_their_momentum() -> None:
    builder = sl.ModelBuilder("sled", gravity=(0, 0, 0))
    builder.add_body(builder.add_joint("joint", "planar"), 1.0, inertia=np.eye(3), name="body_0")
    sled = builder.build()
    motion = sl.Simulator(sled).rollout(sled.neutral(), np.array([1.0, 2.0, 20.0]), duration=1.0)
    assert np.abs(world(sled, motion)[:, :2] - [1, 2]).max() < 1e-12
    assert np.abs(motion.q[:, :2] - motion.t[:, None] * [1, 2]).max() < 1e-12
