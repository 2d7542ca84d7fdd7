"""Robots as they are loaded stand: loops closed, in equilibrium with their springs, and for ten seconds by PD motors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import saltus as sl
from examples import constrained
from tests.closeness import assert_close
from tests.model.standing import loop_jacobian

GAINS = {  # by the ends of names of motors' joints [N m/rad, N m s/rad]
    "cassie": constrained.CASSIE_GAINS,
    "biped": dict.fromkeys(("hip_roll", "hip_yaw", "hip_pitch", "knee", "crank"), (4000.0, 40.0)),
}
ROBOTS = {"cassie": constrained.cassie, "biped": constrained.biped}
each_robot = pytest.mark.parametrize("name", ROBOTS)
ENDS = [f"{side}_{end}" for side in ("left", "right") for end in ("heel", "toe")]


def gaps(robot: sl.Model, q: np.ndarray) -> np.ndarray:
    """Of each loop (..., loops) [m]."""
    ends = [[sl.frame_placement(robot, q, frame)[..., :3, 3] for frame in (x.frame_a, x.frame_b)] for x in robot.loops]
    return np.stack([np.linalg.norm(a - b, axis=-1) for a, b in ends], axis=-1)


@each_robot
def test_as_loaded_loops_are_closed_and_soles_on_the_ground(name: str) -> None:
    robot, q = ROBOTS[name]()
    assert np.array_equal(q, sl.load_robot(name).reference_configurations["standing"])
    assert gaps(robot, q).max() < 1e-9
    soles = np.array([sl.frame_placement(robot, q, frame)[:3, 3] for frame in ENDS])
    assert np.abs(soles[:, 2]).max() < 1e-9
    com = sl.center_of_mass(robot, q)
    assert_close(com[:2], soles[:, :2].mean(axis=0), 0.03, scale=1.0)
    joints = [joint for joint in robot.joints[2:] if joint.kind.has_axis]
    iq = [joint.iq for joint in joints]
    assert (robot.lower_position_limit[iq] <= q[iq]).all() and (q[iq] <= robot.upper_position_limit[iq]).all()


@each_robot
def test_as_loaded_loops_are_independent(name: str) -> None:
    """Rounding cannot keep them open: every one of their twelve rows can be moved by itself."""
    robot, q = ROBOTS[name]()
    J = np.concatenate([loop_jacobian(robot, q, loop) for loop in robot.loops])
    assert J.shape[0] == 12 and np.linalg.svd(J)[1].min() > 1e-2


def test_motors_are_cassies() -> None:
    robot = sl.load_robot("cassie")
    named = [f"{side}-{name}-op" for side in ("left", "right") for name in ("roll", "yaw", "pitch", "knee", "foot")]
    assert [actuator.joint for actuator in robot.actuators] == named
    assert sl.motors_of(robot) == [robot.joints[robot.joint_index(name)].iv for name in named]
    assert_close(robot.effort_limit[sl.motors_of(robot)], np.tile([112.5, 112.5, 195.2, 195.2, 45.0], 2), 1e-12)
    assert np.count_nonzero(robot.effort_limit[6:]) == 10
    assert np.count_nonzero(robot.stiffness) == 4


def test_cassies_springs_carry_it() -> None:
    """Exact statics: what springs leave of gravity, motors, loops and the ground bear, with no torque at other joints."""
    robot, q = constrained.cassie()
    left = sl.gravity(robot, q) - sl.passive_torques(robot, q)
    assert 0.02 < np.abs(q[[joint.iq for joint in robot.joints[2:] if robot.stiffness[joint.iv]]]).min() < 0.1
    loops = [loop_jacobian(robot, q, loop) for loop in robot.loops]
    ground = [sl.frame_jacobian(robot, q, frame, "local_world_aligned")[:3] for frame in ENDS]
    columns = np.concatenate([np.eye(robot.nv)[sl.motors_of(robot)], *loops, *ground]).T
    found = np.linalg.lstsq(columns, left, rcond=None)[0]
    assert_close(columns @ found, left, 1e-8, scale=robot.total_mass * 9.81)
    assert (np.abs(found[:10]) < 0.5 * robot.effort_limit[sl.motors_of(robot)]).all()
    assert np.abs(sl.passive_torques(robot, q)).max() > 50.0  # N m


@each_robot
def test_it_stands_for_ten_seconds(name: str) -> None:
    """On its soles' ends, by springs and PD motors within their limits, pushed once."""
    robot, q = ROBOTS[name]()
    scene = constrained.standing(robot, q, ENDS, 3, "prox_ltl", None)
    still, motors = np.zeros(robot.nv), sl.motors_of(robot)
    weight = constrained.weight_of(scene)
    assert np.abs(scene.dynamics.solve(q, still, weight + sl.passive_torques(robot, q)).a).max() < 1e-6
    kp, kd = np.zeros((2, robot.nv))
    for k in motors:
        joint = next(joint.name for joint in robot.joints[2:] if joint.iv == k)
        kp[k], kd[k] = next(gains for end, gains in GAINS[name].items() if joint.endswith(end))
    targets = sl.PDTargets(np.tile(q, (10_000, 1)), kp, kd, weight)

    def push(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.r_[10.0 * (1.0 <= t < 1.2), 3.0 * (1.0 <= t < 1.2), np.zeros(robot.nv - 2)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # exactly at rest, rounding is all that is left of accelerations: INACCURATE
        run = sl.rollout(scene.dynamics, q, still, targets, duration=10.0, damping=True, disturbance=push)
    assert gaps(robot, run.q).max() < 1e-9  # 0.1 mm is asked for
    assert 1e-4 < np.abs(run.q - q).max() < 0.05 and np.abs(run.q[-1] - q).max() < 1e-4
    assert (np.abs(run.tau) <= robot.effort_limit + 0.0)[:, motors].all()
    assert not np.delete(run.tau, motors, axis=-1).any()
    assert constrained.contact_forces(scene, run)[..., 2].min() > 0.0
