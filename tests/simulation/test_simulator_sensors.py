"""Contact forces, what touches, falls, and inertial sensors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import saltus as sl
from tests.simulation.bodies import G, free, pose


def test_forces_carry_the_weight() -> None:
    robot = sl.load_robot("quadruped")
    q = robot.reference_configurations["standing"]
    sim = sl.Simulator(robot, sl.Ground())
    motion = sim.rollout(q, np.zeros(robot.nv), sl.PDTargets(q, 500.0, 20.0), duration=2.0, every=10)
    assert motion.contact_forces[-1].sum(axis=0) == pytest.approx([0, 0, G * robot.total_mass], abs=1e-3)
    names = {sim.scene.slots[s][0] for s in np.flatnonzero(motion.touching[-1])}
    assert len(names) == 4 and motion.touching[-1].sum() == 4 and not motion.touching[0].any()
    assert not motion.fallen.any()
    # Statics: gravity = motors' torques + J^T forces
    found, total = sim.contacts(motion.q[-1]), motion.tau[-1].copy()
    for s in np.flatnonzero(motion.touching[-1]):
        joint = robot.joints[int(sim.slot_bodies[s, 0])].name
        J = sl.joint_jacobian(robot, motion.q[-1], joint, "local_world_aligned")
        arm = found.point[s] - sl.joint_placements(robot, motion.q[-1])[robot.joint_index(joint)][:3, 3]
        total += J.T @ np.r_[motion.contact_forces[-1, s], np.cross(arm, motion.contact_forces[-1, s])]
    assert total == pytest.approx(sl.gravity(robot, motion.q[-1]), abs=0.02)


def test_a_fall_is_told() -> None:
    """Onto its back: from then on, also while it bounces."""
    robot = sl.load_robot("quadruped")
    q = robot.reference_configurations["standing"].copy()
    q[2:7] = 0.3, *Rotation.from_euler("x", 160, degrees=True).as_quat()
    sim = sl.Simulator(robot, sl.Ground(restitution=0.3))
    motion = sim.rollout(q, np.zeros(robot.nv), duration=1.0)
    base = [s for s, (a, b) in enumerate(sim.slot_bodies) if a == 1 and b == 0]
    first = int(np.argmax(motion.touching[:, base].any(axis=-1)))
    hit = int(np.argmax(motion.touching.any(axis=-1)))
    assert 0.1 < motion.t[hit] <= motion.t[first] < 0.4
    assert motion.fallen[first:].all() and not motion.fallen[:hit].any()


def test_a_push_is_a_force_on_a_point() -> None:
    """In empty space: momentum is force times time, about the point where it acts."""
    box = free(("box", (0.3, 0.2, 0.1)), mass=2.0).replace(gravity=np.zeros(3))
    sim = sl.Simulator(box)
    pushes = [
        sl.Push("body_0", (1.0, 2.0, 3.0), start=0.01, duration=0.03),
        sl.Push("body_0", (0.0, 0.0, 4.0), 0.05, 0.01),
    ]
    motion = sim.rollout(pose((0, 0, 0)), np.zeros(6), duration=0.1, pushes=pushes)
    assert motion.v[-1] == pytest.approx([0.015, 0.03, 0.065, 0, 0, 0], abs=1e-12)
    assert np.abs(motion.v[10]).max() == 0.0 < np.abs(motion.v[11]).max()
    assert np.array_equal(motion.v[-1], motion.v[60])
    point = sl.ModelBuilder("rod", gravity=(0, 0, 0))
    joint = point.add_joint("joint", "free_flyer")
    point.add_body(joint, 1.0, inertia=np.eye(3), name="body_0")
    point.add_frame("tip", joint, np.array([[1.0, 0, 0, 0.5], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]))
    turned = pose((1, 2, 3), (0, 0, 1), np.pi / 2)
    after = sl.Simulator(point.build()).step(turned, np.zeros(6), pushes=[sl.Push("tip", (1.0, 0.0, 0.0))])
    assert after.v == pytest.approx([0, -1e-3, 0, 0, 0, -0.5e-3], abs=1e-6)


def test_inertial_sensors() -> None:
    """At rest upwards, at G; in free fall nothing; away from the middle of what spins, towards it."""
    box = free(("box", (0.3, 0.2, 0.1)))
    q = pose((0, 0, 0.05), (0, 0, 1), 0.4)
    resting = sl.Simulator(box, sl.Ground()).rollout(q, np.zeros(6), duration=0.1)
    assert resting.accelerometer("body_0")[1:] == pytest.approx(np.tile([0, 0, G], (100, 1)), abs=1e-4)
    assert np.isnan(resting.accelerometer("body_0")[0]).all() and np.abs(resting.gyroscope("body_0")).max() < 1e-6
    tilted = sl.Ground(normal=(-np.sin(0.2), 0, np.cos(0.2)))
    q = pose(0.05 * np.array([-np.sin(0.2), 0, np.cos(0.2)]), (0, -1, 0), 0.2)
    resting = sl.Simulator(box, tilted).rollout(q, np.zeros(6), duration=0.1)
    felt = Rotation.from_rotvec([0, 0.2, 0]).apply([0, 0, G])
    assert resting.accelerometer("body_0")[-1] == pytest.approx(felt, abs=1e-4)
    builder = sl.ModelBuilder("spinner")
    joint = builder.add_joint("joint", "free_flyer")
    builder.add_body(joint, 1.0, inertia=np.eye(3), name="body_0")
    builder.add_frame("sensor", joint, np.array([[1.0, 0, 0, 0.5], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]))
    spinner = builder.build()
    motion = sl.Simulator(spinner, dt=1e-4).rollout(spinner.neutral(), np.array([0, 0, 0, 0, 0, 6.0]), duration=0.5)
    assert motion.gyroscope("sensor") == pytest.approx(np.tile([0, 0, 6.0], (len(motion.t), 1)))
    assert motion.accelerometer("sensor")[1:] == pytest.approx(np.tile([-18.0, 0, 0], (len(motion.t) - 1, 1)), abs=0.02)
    batch = sl.Simulator(spinner).rollout(
        np.tile(spinner.neutral(), (2, 3, 1)), np.zeros((2, 3, 6)), duration=0.1, every=10
    )
    assert batch.accelerometer("sensor").shape == batch.gyroscope("sensor").shape == (2, 3, 11, 3)
